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
    fixtures.extend(programs::families(&root)?);
    if !names.is_empty() {
        fixtures.retain(|path| names.iter().any(|name| path.ends_with(name)));
    }
    println!(
        "| fixture ({level}) | threads | events | DSP events | fewer | data-flows | DSP data-flows | \
         fewer | operations to grok | core | pairs tried | cause |"
    );
    println!("|{}", " --- |".repeat(12));
    let mut averages = Averages::default();
    let mut failed = 0;
    for fixture in &fixtures {
        let name = fixture.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match solve(&symbiosis, fixture, level) {
            Ok(solution) => {
                averages.add(&solution);
                println!("{}", row(&name, &solution));
            }
            Err(error) => {
                println!("| {name} | {error} |");
                failed += 1;
            }
        }
    }
    println!("\n{averages}");
    if failed > 0 { Err(format!("{failed} fixtures were not solved").into()) } else { Ok(()) }
}

/// What the paper averages over its programs.
#[derive(Default)]
struct Averages {
    events: Vec<f64>,
    data_flows: Vec<f64>,
}

impl Averages {
    /// Runs of few events have little that could be left out.
    const LONG: u64 = 50;

    fn add(&mut self, solution: &Solution) {
        let stats = &solution.stats;
        if solution.dsp.is_none() || stats.events < Self::LONG || stats.data_flows == 0 {
            return;
        }
        self.events.push(left_out(stats.dsp_events, stats.events));
        self.data_flows.push(left_out(stats.dsp_data_flows, stats.data_flows));
    }
}

impl std::fmt::Display for Averages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mean = |figures: &[f64]| figures.iter().sum::<f64>() / figures.len().max(1) as f64;
        write!(
            f,
            "On average {:.1} % fewer events and {:.1} % fewer data-flows, over the {} runs with at \
             least {} events.",
            mean(&self.events),
            mean(&self.data_flows),
            self.events.len(),
            Self::LONG
        )
    }
}

fn left_out(part: u64, whole: u64) -> f64 {
    100.0 * (1.0 - part as f64 / whole as f64)
}

fn solve(symbiosis: &Path, fixture: &Path, level: &str) -> Result<Solution> {
    let directory = tempfile::tempdir()?;
    programs::record(symbiosis, fixture, level, directory.path())?;
    let json = step(
        Command::new(symbiosis)
            .current_dir(directory.path())
            .args(["solve", "t.trace", "--format", "json"]),
    )?;
    Ok(serde_json::from_slice(&json)?)
}

fn row(name: &str, solution: &Solution) -> String {
    let stats = &solution.stats;
    let fewer = |part: u64, whole: u64| {
        if solution.dsp.is_none() || whole == 0 {
            "-".to_owned()
        } else {
            format!("{:.1} %", left_out(part, whole))
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
    let grok = match solution.dsp {
        Some(_) => {
            let (own, all) =
                (solution.operations_to_grok(), solution.operations_of_all_variations());
            if own == all { own.to_string() } else { format!("{own} ({all})") }
        }
        None => "-".to_owned(),
    };
    let cause = solution.cause.as_ref().map_or("-", |cause| cause.pattern.as_str());
    format!(
        "| {name} | {} | {} | {} | {} | {} | {} | {} | {grok} | {core} | {} | {cause} |",
        solution.threads.len(),
        stats.events,
        stats.dsp_events,
        fewer(stats.dsp_events, stats.events),
        stats.data_flows,
        stats.dsp_data_flows,
        fewer(stats.dsp_data_flows, stats.data_flows),
        stats.alternates_tried,
    )
}
