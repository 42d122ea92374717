//! Developer tasks.
//!
//! `cargo xtask reductions [-O0|-O1|-O2] [FIXTURE ...]` compiles, records and solves the fixtures
//! with a release build and prints how much smaller each DSP is than its failing schedule (the
//! figures of [S] table 2), and how long the stages took.

mod reductions;

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let result = match args.split_first() {
        Some((command, rest)) if command == "reductions" => reductions::run(rest),
        _ => Err("usage: cargo xtask reductions [-O0|-O1|-O2] [FIXTURE ...]".into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}
