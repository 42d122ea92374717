//! The table of repairs: what `symbiosis fix` offers first for each fixture, and what was shown of it.

use crate::programs::{self, step};
use serde_json::Value;
use std::error::Error;
use std::path::Path;
use std::process::{Command, Stdio};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// So many failing runs are recorded until one shows a repair: some end too early to show any.
const RECORDINGS: usize = 4;
/// Solving this one takes minutes, and replaying it 100 times many more.
const SLOW: &str = "shards";

/// Prints a row per fixture. `--runs=N` is the number of runs with the repair's order enforced (100).
pub fn run(args: &[String]) -> Result<()> {
    let (options, names): (Vec<&String>, Vec<&String>) =
        args.iter().partition(|arg| arg.starts_with('-'));
    let level = options.iter().find(|option| option.starts_with("-O"));
    let level = level.map_or("-O1", |level| level.as_str());
    let runs = options.iter().find_map(|option| option.strip_prefix("--runs=")).unwrap_or("100");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let symbiosis = std::fs::canonicalize(programs::build(&root)?)?;
    let mut fixtures = programs::fixtures(&root)?;
    fixtures.extend(programs::families(&root)?);
    match names.is_empty() {
        true => fixtures.retain(|path| !path.ends_with(SLOW)),
        false => fixtures.retain(|path| names.iter().any(|name| path.ends_with(name))),
    }
    println!("| fixture ({level}) | cause | first repair | constraints | passed |");
    println!("|{}", " --- |".repeat(5));
    let mut failed = 0;
    for fixture in &fixtures {
        let name = fixture.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match row(&symbiosis, fixture, level, runs) {
            Ok(row) => println!("| `{name}` | {row} |"),
            Err(error) => {
                println!("| `{name}` | {error} |");
                failed += 1;
            }
        }
    }
    if failed > 0 { Err(format!("{failed} fixtures were not looked at").into()) } else { Ok(()) }
}

fn row(symbiosis: &Path, fixture: &Path, level: &str, runs: &str) -> Result<String> {
    let directory = tempfile::tempdir()?;
    let mut fixes = Value::Null;
    for _ in 0..RECORDINGS {
        let _ = std::fs::remove_dir_all(directory.path().join("t.trace"));
        programs::record(symbiosis, fixture, level, directory.path())?;
        // Its status says whether there is a repair.
        let answer = Command::new(symbiosis)
            .current_dir(directory.path())
            .args(["fix", "t.trace", "--format", "json", "--repairs", "1", "--runs", runs])
            .stdin(Stdio::null())
            .output()?;
        fixes = serde_json::from_slice(&answer.stdout)?;
        if !fixes["repairs"][0].is_null() {
            break;
        }
    }
    let solution = step(
        Command::new(symbiosis)
            .current_dir(directory.path())
            .args(["show", "t.trace", "--format", "json"]),
    )?;
    let solution: Value = serde_json::from_slice(&solution)?;
    let cause = solution["cause"]["pattern"].as_str().unwrap_or("-");
    let first = &fixes["repairs"][0];
    if first.is_null() {
        let text = std::fs::read_to_string(programs::source(fixture)?)?;
        let why = text.split("//~ REPAIR: none, ").nth(1).and_then(|rest| rest.lines().next());
        return Ok(format!(
            "{cause} | none{} | - | -",
            why.map_or(String::new(), |w| format!(", {w}"))
        ));
    }
    let checks = &first["checks"];
    let passed = match checks.get("replay") {
        Some(replay) => format!("{} of {}", replay["passed"], replay["runs"]),
        None => "not replayed".to_owned(),
    };
    let steps = first["steps"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let steps: Vec<&str> = steps.collect();
    Ok(format!(
        "{cause} | {}: {} | {} | {passed}",
        first["kind"].as_str().unwrap_or("-"),
        steps.join("; "),
        checks["unsatisfiable_constraints"],
    ))
}
