//! Developer tasks.
//!
//! `cargo xtask reductions [-O0|-O1|-O2] [FIXTURE ...]` compiles, records and solves the fixtures
//! with a release build and prints how much smaller each DSP is than its failing schedule (the
//! figures of [S] table 2), and how long the stages took.
//!
//! `cargo xtask noise [-O0|-O1|-O2] [--runs=N] [--random=RATE,MICROSECONDS] [--pct=pct,DEPTH]
//! [FIXTURE ...]` counts how often fixtures fail by themselves and under noise (the table of
//! docs/noise.md); without names those that are marked as rare.
//!
//! `cargo xtask repairs [-O0|-O1|-O2] [--runs=N] [FIXTURE ...]` prints what `symbiosis fix` offers first
//! for each fixture, and how often the program passed with it (the table of docs/fix.md).
//!
//! `cargo xtask guide [--check]` runs what the user's guide (docs/guide) and docs/fix.md say and pastes what is printed,
//! or checks that it is still so.
//!
//! All use the `symbiosis` that the environment variable `SYMBIOSIS_BINARY` names, if it is set.

mod guide;
mod noise;
mod programs;
mod reductions;
mod repairs;

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let result = match args.split_first() {
        Some((command, rest)) if command == "reductions" => reductions::run(rest),
        Some((command, rest)) if command == "noise" => noise::run(rest),
        Some((command, rest)) if command == "repairs" => repairs::run(rest),
        Some((command, rest)) if command == "guide" => guide::run(rest),
        _ => Err("usage: cargo xtask reductions|noise|repairs [-O0|-O1|-O2] [FIXTURE ...], or \
                  cargo xtask guide [--check]"
            .into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}
