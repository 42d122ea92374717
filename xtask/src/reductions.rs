//! The table of reductions: how much of a failing schedule a DSP leaves out.

use crate::programs::{self, step};
use render::Solution;
use std::error::Error;
use std::path::Path;
use std::process::Command;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Prints a row per fixture. A fixture that could not be solved gets a row that says why, and the
/// task fails in the end.
pub fn run(args: &[String]) -> Result<()> {
    let (levels, names): (Vec<&String>, Vec<&String>) =
        args.iter().partition(|arg| arg.starts_with("-O"));
    let level = levels.first().map_or("-O1", |level| level.as_str());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let symbiosis = programs::build(&root)?;
    let mut fixtures = programs::fixtures(&root)?;
    if !names.is_empty() {
        fixtures.retain(|path| names.iter().any(|name| path.ends_with(name)));
    }
    println!(
        "| fixture ({level}) | threads | events | DSP events | fewer | data-flows | DSP data-flows | \
         fewer | core | pairs tried | symex ms | solve ms | cause ms | alternates ms |"
    );
    println!("|{}", " --- |".repeat(14));
    let mut failed = 0;
    for fixture in &fixtures {
        let name = fixture.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match solve(&symbiosis, fixture, level) {
            Ok(solution) => println!("{}", row(&name, &solution)),
            Err(error) => {
                println!("| {name} | {error} |");
                failed += 1;
            }
        }
    }
    if failed > 0 { Err(format!("{failed} fixtures were not solved").into()) } else { Ok(()) }
}

fn solve(symbiosis: &Path, fixture: &Path, level: &str) -> Result<Solution> {
    let directory = tempfile::tempdir()?;
    let source = programs::source(fixture)?;
    let compiler = if programs::is_c(&source) { "cc" } else { "c++" };
    let rare = std::fs::read_to_string(&source)?.contains("//~ RARE: noise");
    let noise: &[&str] = if rare { &["--noise"] } else { &[] };
    let program = directory.path().join("program");
    let trace = directory.path().join("t.trace");
    let mut command = Command::new(symbiosis);
    command.arg(compiler);
    programs::compile(command, &source, level, &program)?;
    step(
        Command::new(symbiosis)
            .args(["record", "--until-failure", "3000", "--timeout", "20"])
            .args(noise)
            .arg("-o")
            .arg(&trace)
            .arg("--")
            .arg(&program),
    )?;
    let json = step(Command::new(symbiosis).arg("solve").arg(&trace).args(["--format", "json"]))?;
    Ok(serde_json::from_slice(&json)?)
}

fn row(name: &str, solution: &Solution) -> String {
    let stats = &solution.stats;
    let fewer = |part: u64, whole: u64| {
        if solution.dsp.is_none() || whole == 0 {
            "-".to_owned()
        } else {
            format!("{:.1} %", 100.0 * (1.0 - part as f64 / whole as f64))
        }
    };
    let core = solution.root_cause.as_ref().map_or_else(
        || "-".to_owned(),
        |cause| match (cause.fails_always, cause.minimal) {
            (true, _) => "always".to_owned(),
            (false, true) => cause.orders.len().to_string(),
            (false, false) => format!("{} (not minimal)", cause.orders.len()),
        },
    );
    format!(
        "| {name} | {} | {} | {} | {} | {} | {} | {} | {core} | {} | {} | {} | {} | {} |",
        solution.threads.len(),
        stats.events,
        stats.dsp_events,
        fewer(stats.dsp_events, stats.events),
        stats.data_flows,
        stats.dsp_data_flows,
        fewer(stats.dsp_data_flows, stats.data_flows),
        stats.alternates_tried,
        stats.symex_ms,
        stats.solve_ms,
        stats.root_cause_ms,
        stats.alternates_ms,
    )
}
