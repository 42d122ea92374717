//! `symbiosis fix`: what could be changed so that the run cannot fail this way.

use super::show::sources::Lines;
use super::{Failure, exit_codes, output};
use crate::answer::{keep, kept};
use crate::fix::answer::Fixes;
use crate::fix::{self, FixError, Recorded};
use crate::pipeline::{self, Budget, PipelineError, ReplayOptions, SolveOptions};
use crate::said::warn;
use render::Solution;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Find repairs of the cause that `solve` found, each checked against the recorded run.
///
/// Exit codes: 0 a repair passed its checks; 11 none did; 12 none did before the time ended, or
/// without an answer of the solver; 20 bad trace.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The trace directory; it is solved first where that was not done yet
    trace: PathBuf,
    /// Look for this many repairs
    #[arg(long, default_value_t = 3, value_name = "N")]
    repairs: usize,
    /// Run the program so many times under the failing schedule with each repair's order enforced;
    /// 0 for not at all. Without this, 20 times, or fewer where that takes more than 5 seconds
    #[arg(long, value_name = "N")]
    runs: Option<u32>,
    /// Write the first repair's avoidance rule to this file: with SYMBIOSIS_AVOID=FILE the program
    /// as it is keeps to the repair's order (docs/fix.md)
    #[arg(long, value_name = "FILE")]
    avoid: Option<PathBuf>,
    #[command(flatten)]
    answer: AnswerOptions,
    /// Let the solver use at most this many megabytes
    #[arg(long, value_name = "MEGABYTES")]
    memory: Option<u32>,
}

/// Where an answer goes, and how long it may take.
#[derive(Debug, clap::Args)]
pub(super) struct AnswerOptions {
    /// What to print
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Write to this file instead of standard output
    #[arg(short, long)]
    output: Option<PathBuf>,
    /// Stop after this many seconds, whatever is being done then
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    timeout: u64,
}

impl AnswerOptions {
    /// How long the answer may take.
    pub(super) fn time(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }

    /// Prints the answer in the form that was asked for.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn print(
        &self,
        answer: &impl serde::Serialize,
        text: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        let text = match self.format {
            Format::Text => text(),
            Format::Json => json(answer)?,
        };
        output::write(self.output.as_deref(), text.as_bytes())
    }
}

/// An output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// For a terminal or a log
    Text,
    /// For programs (docs/fix.md)
    Json,
}

impl From<FixError> for Failure {
    fn from(error: FixError) -> Self {
        match error {
            FixError::Pipeline(error) => error.into(),
            FixError::Replay(error) => Self::new(error.exit_code(), error),
            FixError::Solver(_) => Self::new(exit_codes::UNEXPECTED, error),
            FixError::Stale(_) => Self::new(exit_codes::BAD_TRACE, error),
        }
    }
}

/// Finds repairs and prints them.
///
/// # Errors
/// When the trace cannot be read or solved, or the output cannot be written.
pub fn run(args: &Args) -> Result<u8, Failure> {
    let time = args.answer.time();
    // One moment for all of it: to solve, to walk the run, to check, and to run the program.
    let until = Instant::now().checked_add(time);
    let (solution, trace) = solution(&args.trace, time)?;
    let memory_mb = args.memory;
    let fixes = match Recorded::open_within(&trace, &Budget::of_walk(until, memory_mb)) {
        Ok(recorded) => {
            let options =
                fix::Options { wanted: args.repairs, time, until, memory_mb, runs: args.runs };
            fix::fix(&recorded, &solution, options)?
        }
        Err(error @ PipelineError::NotWalked { memory: false, .. }) => {
            Fixes { reason: Some(error.to_string()), out_of_time: true, ..Fixes::of(&solution) }
        }
        Err(error) => return Err(error.into()),
    };
    if let Some(file) = &args.avoid {
        match fixes.repairs.iter().find_map(|repair| repair.rule.as_ref()) {
            Some(rule) => output::write(Some(file), rule.as_bytes())?,
            None => warn("no repair has a rule to write"),
        }
    }
    args.answer.print(&fixes, || {
        let lines = Lines::of(&solution);
        fixes.to_text(&|file, line| lines.line(file, line))
    })?;
    Ok(match () {
        () if !fixes.repairs.is_empty() => exit_codes::SUCCESS,
        () if fixes.out_of_time || fixes.undecided > 0 => exit_codes::LIMIT,
        () => exit_codes::NO_SCHEDULE,
    })
}

/// The answer that the trace keeps; where there is none of this version, it is solved. With the trace that it is about.
pub(super) fn solution(trace: &Path, time: Duration) -> Result<(Solution, PathBuf), Failure> {
    if let Ok(solution) = kept(trace) {
        return Ok((solution, pipeline::explained_trace(trace)));
    }
    let options = SolveOptions::for_cause(time, Some(ReplayOptions::default()));
    let answer = pipeline::solve(trace, &options)?;
    for warning in &answer.warnings {
        warn(warning);
    }
    if answer.walked
        && let Err(error) = keep(&answer.trace, &answer.solution)
    {
        warn(format_args!("the answer cannot be kept in the trace: {error}"));
    }
    Ok((answer.solution, answer.trace))
}

/// An answer as JSON.
fn json(answer: &impl serde::Serialize) -> Result<String, Failure> {
    let json = serde_json::to_string_pretty(answer)
        .map_err(|error| Failure::new(exit_codes::UNEXPECTED, error))?;
    Ok(format!("{json}\n"))
}
