//! `symbiosis check`: the executor alone. Does it walk every thread to its end, and what could it
//! not model?

use super::{Failure, exit_codes, output};
use crate::pipeline;
use crate::said::warn;
use std::fmt::{self, Write as _};
use std::path::PathBuf;
use symex::{Execution, FunctionCalls, FunctionUse};

/// Arguments of `check`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The trace directory
    trace: PathBuf,
    /// Print at most this many places that have gaps
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
        warn(warning);
    }
    let execution = pipeline::execute(&loaded.recording)?;
    output::print(text(&execution, args.gaps).as_bytes())?;
    let complete = execution.report.threads.iter().all(|thread| thread.reached_end);
    let clean = execution.report.gap_count() == 0;
    Ok(if complete && clean { exit_codes::SUCCESS } else { exit_codes::NO_SCHEDULE })
}

/// What the execution found, and as many gaps as asked for.
fn text(execution: &Execution, most: usize) -> String {
    let mut out = String::new();
    // Nothing goes wrong in a string.
    let _ = write_all(&mut out, execution, most);
    out
}

fn write_all(out: &mut String, execution: &Execution, most: usize) -> fmt::Result {
    let report = &execution.report;
    for thread in &report.threads {
        let end = if thread.reached_end { "to its end" } else { "STOPPED" };
        writeln!(
            out,
            "{:<8} {:>12} instructions {:>10} blocks  {end}: {}",
            thread.name, thread.instructions, thread.blocks, thread.stopped
        )?;
        match thread.rounds_left_out() {
            0 => {}
            1 => writeln!(out, "         1 round of waiting left out")?,
            rounds => writeln!(out, "         {rounds} rounds of waiting left out")?,
        }
        if let Some(endless) = &thread.endless {
            let (site, rounds) = (&endless.site, endless.rounds);
            writeln!(
                out,
                "         was still in the loop in {} at {}:{}: all but its first rounds left out ({rounds} walked)",
                site.function, site.file, site.line
            )?;
        }
        if let Some(blocked) = &thread.blocked {
            writeln!(out, "         blocked in {} of {}", blocked.operation, blocked.object)?;
        }
    }
    let instructions: u64 = report.threads.iter().map(|thread| thread.instructions).sum();
    writeln!(
        out,
        "{} threads, {} events, {} shared cells, {} gaps in {instructions} instructions",
        report.threads.len(),
        execution.trace.events.len(),
        execution.trace.cells.len(),
        report.gap_count()
    )?;
    for (kind, count) in &report.gaps {
        writeln!(out, "  {count:>8} {kind}")?;
    }
    write_functions(out, &report.functions)?;
    for function in &report.inputs_left_out {
        writeln!(out, "  the results of {function} are too many for a replay to give them back")?;
    }
    for gap in execution.gaps.iter().take(most) {
        let site = &gap.site;
        let times = if gap.times > 1 { format!(" ({} times)", gap.times) } else { String::new() };
        writeln!(
            out,
            "  {} {}:{} {}: {} {}{times}",
            gap.thread, site.file, site.line, site.function, gap.what, gap.detail
        )?;
    }
    if execution.gaps.len() > most {
        writeln!(out, "  ... {} more (--gaps N shows more)", execution.gaps.len() - most)?;
    }
    Ok(())
}

/// Says how the effects of the uninstrumented functions are known; those that nobody described, one
/// by one.
fn write_functions(out: &mut String, functions: &[FunctionCalls]) -> fmt::Result {
    let of = |known: &[FunctionUse]| {
        functions.iter().filter(|called| known.contains(&called.known)).collect::<Vec<_>>()
    };
    let calls = |called: &[&FunctionCalls]| called.iter().map(|f| f.calls).sum::<u64>();
    let described = of(&[FunctionUse::Described, FunctionUse::Computed, FunctionUse::Reported]);
    writeln!(
        out,
        "{} calls of {} functions that are described",
        calls(&described),
        described.len()
    )?;
    for (known, what) in [
        (FunctionUse::Objects, "described as changing the objects that they are given"),
        (FunctionUse::Undescribed, "not described: the objects that they are given may change"),
    ] {
        let mut found = of(&[known]);
        found.retain(|called| !called.name.is_empty());
        if found.is_empty() {
            continue;
        }
        found.sort_by_key(|called| std::cmp::Reverse(called.calls));
        writeln!(out, "{} calls of {} functions that are {what}", calls(&found), found.len())?;
        for called in found {
            let name = called.name.as_str();
            let name = ir::effects::readable(name).unwrap_or_else(|| name.to_owned());
            writeln!(out, "  {:>8} {name}", called.calls)?;
        }
    }
    for called in functions.iter().filter(|called| called.name.is_empty()) {
        writeln!(
            out,
            "{} calls through pointers to functions that no module declares",
            called.calls
        )?;
    }
    Ok(())
}
