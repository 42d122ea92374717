//! The fixtures' programs, and the tool that they are tried with.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Builds `symbiosis` in release mode and gives its path.
pub fn build(root: &Path) -> Result<PathBuf> {
    // For measurements of programs that `symbiosis` only starts, any build of it will do.
    if let Some(given) = std::env::var_os("SYMBIOSIS_BINARY") {
        return Ok(given.into());
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--release", "--quiet", "--bin", "symbiosis"])
        .current_dir(root)
        .status()?;
    if !status.success() {
        return Err("the release build failed".into());
    }
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    Ok(target.join("release/symbiosis"))
}

/// The folders of the larger fixtures, sorted.
pub fn fixtures(root: &Path) -> Result<Vec<PathBuf>> {
    folders(&root.join("fixtures/programs"))
}

/// The folders of the small ones, one for each family of synchronisation and kind of failure.
pub fn families(root: &Path) -> Result<Vec<PathBuf>> {
    folders(&root.join("fixtures/families"))
}

fn folders(of: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(of)? {
        let path = entry?.path();
        if path.is_dir() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// The buggy program of a fixture.
pub fn source(fixture: &Path) -> Result<PathBuf> {
    let candidates = ["buggy.c", "buggy.cc"].map(|name| fixture.join(name));
    candidates
        .into_iter()
        .find(|path| path.exists())
        .ok_or_else(|| format!("{}: no buggy.c or buggy.cc", fixture.display()).into())
}

/// Is it C, and not C++?
pub fn is_c(source: &Path) -> bool {
    source.extension().is_some_and(|extension| extension == "c")
}

/// The options of an annotation such as `//~ FLAGS: -std=c++20`; one with spaces stands in single
/// quotes (fixtures/README.md).
pub fn options(text: &str, annotation: &str) -> Vec<String> {
    let start = format!("//~ {annotation}: ");
    let line = text.lines().find_map(|line| line.split_once(&start));
    let body = line.map(|(_, rest)| rest.split("//~").next().unwrap_or_default());
    let mut words = Vec::new();
    for (number, part) in body.unwrap_or_default().split('\'').enumerate() {
        if number % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

/// Compiles with the compiler that the command begins with.
pub fn compile(mut compiler: Command, source: &Path, level: &str, program: &Path) -> Result<()> {
    compiler.args(["-g", level, "-pthread"]).arg(source).arg("-o").arg(program);
    step(&mut compiler).map(|_| ())
}

/// Runs a command that must succeed and gives what it prints.
pub fn step(command: &mut Command) -> Result<Vec<u8>> {
    let out = command.stdin(Stdio::null()).output()?;
    if out.status.success() {
        return Ok(out.stdout);
    }
    let message = String::from_utf8_lossy(&out.stderr);
    Err(format!("{}: {}", out.status, message.trim().replace('\n', "; ")).into())
}

/// Compiles a fixture's buggy program in a directory, as its annotations say, and records runs of it
/// until one fails. The trace is `t.trace`.
pub fn record(symbiosis: &Path, fixture: &Path, level: &str, directory: &Path) -> Result<()> {
    let original = source(fixture)?;
    let text = std::fs::read_to_string(&original)?;
    let (compiler, copy) =
        if is_c(&original) { ("cc", "program.c") } else { ("c++", "program.cc") };
    // Options may name the file, and what a test calls it is `program`.
    std::fs::copy(&original, directory.join(copy))?;
    step(
        Command::new(symbiosis)
            .current_dir(directory)
            .args([compiler, "-g", level, "-pthread", copy, "-o", "program"])
            .args(options(&text, "FLAGS")),
    )?;
    let mut recording = options(&text, "RECORD");
    if !recording.iter().any(|option| option == "--timeout") {
        recording.extend(["--timeout", "20"].map(str::to_owned));
    }
    if text.contains("//~ RARE: noise") {
        recording.push("--noise".to_owned());
    }
    step(
        Command::new(symbiosis)
            .current_dir(directory)
            .args(["record", "--until-failure", "3000"])
            .args(recording)
            .args(["-o", "t.trace", "--", "./program"]),
    )?;
    Ok(())
}
