//! `symbiosis check`: the executor alone. Does it walk every thread to its end, and what could it
//! not model?

use super::{Failure, exit_codes};
use crate::pipeline;
use std::path::PathBuf;
use symex::Execution;

/// Arguments of `check`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The trace directory
    trace: PathBuf,
    /// Print at most this many gaps one by one
    #[arg(long, default_value_t = 20)]
    gaps: usize,
}

/// Executes the trace and reports.
///
/// # Errors
/// When the trace cannot be read.
pub fn run(args: &Args) -> Result<u8, Failure> {
    let loaded = pipeline::load(&args.trace)?;
    for warning in &loaded.warnings {
        eprintln!("symbiosis: warning: {warning}");
    }
    let execution = pipeline::execute(&loaded.recording)?;
    print(&execution, args.gaps);
    let complete = execution.report.threads.iter().all(|thread| thread.reached_end);
    let clean = execution.report.gap_count() == 0;
    Ok(if complete && clean { exit_codes::SUCCESS } else { exit_codes::NO_SCHEDULE })
}

fn print(execution: &Execution, most: usize) {
    let report = &execution.report;
    for thread in &report.threads {
        let end = if thread.reached_end { "to its end" } else { "STOPPED" };
        println!(
            "{:<8} {:>12} instructions {:>10} blocks  {end}: {}",
            thread.name, thread.instructions, thread.blocks, thread.stopped
        );
        if let Some(blocked) = &thread.blocked {
            println!("         blocked in {} of {}", blocked.operation, blocked.object);
        }
    }
    let instructions: u64 = report.threads.iter().map(|thread| thread.instructions).sum();
    println!(
        "{} threads, {} events, {} shared cells, {} gaps in {instructions} instructions",
        report.threads.len(),
        execution.trace.events.len(),
        execution.trace.cells.len(),
        report.gap_count()
    );
    for (kind, count) in &report.gaps {
        println!("  {count:>8} {kind}");
    }
    for function in &report.inputs_left_out {
        println!("  the results of {function} are too many for a replay to give them back");
    }
    for gap in execution.gaps.iter().take(most) {
        let site = &gap.site;
        println!(
            "  {} {}:{} {}: {} {}",
            gap.thread, site.file, site.line, site.function, gap.what, gap.detail
        );
    }
    if execution.gaps.len() > most {
        println!("  ... {} more (--gaps N shows more)", execution.gaps.len() - most);
    }
}
