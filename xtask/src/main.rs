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

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fs;
    use std::path::Path;

    /// The tests of a package are modules of its `tests/main.rs`, or named in its `Cargo.toml`; else
    /// nobody would compile them.
    #[test]
    fn each_file_of_tests_is_compiled() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let crates = fs::read_dir(root.join("crates")).expect("there are crates");
        let crates = crates.map(|entry| entry.expect("a crate").path());
        let mut packages = vec![root.clone(), root.join("encoders")];
        packages.extend(crates);
        let mut seen = 0;
        for package in packages {
            let Ok(modules) = fs::read_to_string(package.join("tests/main.rs")) else { continue };
            let manifest = fs::read_to_string(package.join("Cargo.toml")).expect("a manifest");
            for entry in fs::read_dir(package.join("tests")).expect("there are tests") {
                let path = entry.expect("a file").path();
                let (Some(name), Some("rs")) = (
                    path.file_stem().and_then(OsStr::to_str),
                    path.extension().and_then(OsStr::to_str),
                ) else {
                    continue;
                };
                let compiled = modules.lines().any(|line| line == format!("mod {name};"))
                    || manifest.contains(&format!("path = \"tests/{name}.rs\""));
                assert!(compiled, "{}: tests/main.rs has no `mod {name};`", path.display());
                seen += 1;
            }
        }
        assert!(seen > 80, "only {seen} files of tests were found");
    }
}
