//! `symbiosis solve`: the failing schedule, the root cause, alternates and the DSP.

use super::record::seconds;
use super::{Failure, exit_codes, show};
use crate::answer::keep;
use crate::pipeline::{self, Backend, ReplayOptions, SolveOptions};
use crate::said::warn;
use render::solution::{Replay, Verdict};
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `solve`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The trace directory
    trace: PathBuf,
    #[command(flatten)]
    output: show::Output,
    /// Look for this many alternate schedules
    #[arg(long, default_value_t = 1, value_name = "K")]
    alternates: usize,
    /// `ordering`, `z3`, or `smtlib:COMMAND` for any SMT-LIB 2 solver that reads standard input
    #[arg(long, default_value = "ordering", value_parser = parse_backend)]
    solver: Backend,
    /// How the constraints are made: `paper` leaves everything to Z3, for comparison
    #[arg(long, value_enum, default_value_t = Encoding::Reduced)]
    encoding: Encoding,
    /// Write the constraint system for the failing schedule as SMT-LIB 2
    #[arg(long, value_name = "FILE")]
    dump_smt: Option<PathBuf>,
    /// Stop after this many seconds and print what was found
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    timeout: u64,
    /// Let the solver use at most this many megabytes
    #[arg(long, value_name = "MEGABYTES")]
    memory: Option<u32>,
    /// Do not run the program: leave every schedule at the solver's claim
    #[arg(long)]
    no_replay: bool,
    /// The binary to replay with [default: the recorded one, or its copy in the trace]
    #[arg(long, value_name = "BIN", conflicts_with = "no_replay")]
    program: Option<PathBuf>,
    /// End a replay after so many seconds [default: 10 and 20 times the recorded run's time]
    #[arg(long, value_name = "SECONDS", value_parser = seconds, conflicts_with = "no_replay")]
    replay_timeout: Option<Duration>,
    /// Look for another failing schedule so many times when the program does not follow one
    #[arg(long, value_name = "N", default_value_t = 3, conflicts_with = "no_replay")]
    attempts: usize,
}

/// How the constraints are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Encoding {
    /// What can be decided without search is decided, and what does not matter is left out.
    Reduced,
    /// As in the paper: a place for every event, every write as a source of every read.
    Paper,
}

pub(super) fn parse_backend(text: &str) -> Result<Backend, String> {
    match text.split_once(':') {
        None if text == "ordering" => Ok(Backend::Ordering),
        None if text == "z3" => Ok(Backend::Z3),
        Some(("smtlib", command)) if !command.trim().is_empty() => {
            Ok(Backend::SmtLib(command.trim().to_owned()))
        }
        _ => Err("expected `ordering`, `z3` or `smtlib:COMMAND`".to_owned()),
    }
}

/// Solves the trace and prints the answer.
///
/// # Errors
/// When the trace cannot be read, a back end fails, or the output cannot be written.
pub fn run(args: &Args) -> Result<u8, Failure> {
    let options = SolveOptions {
        alternates: args.alternates,
        backend: match args.encoding {
            Encoding::Reduced => args.solver.clone(),
            Encoding::Paper => Backend::Paper,
        },
        time: Duration::from_secs(args.timeout),
        memory_mb: args.memory,
        dump_smt: args.dump_smt.clone(),
        replay: (!args.no_replay).then(|| ReplayOptions {
            program: args.program.clone(),
            timeout: args.replay_timeout,
            attempts: args.attempts,
            ..ReplayOptions::default()
        }),
    };
    let answer = pipeline::solve(&args.trace, &options)?;
    for warning in &answer.warnings {
        warn(warning);
    }
    // Whoever only reads the trace gets the answer all the same.
    if answer.walked
        && let Err(error) = keep(&answer.trace, &answer.solution)
    {
        warn(format_args!("`symbiosis show` will not find the answer: {error}"));
    }
    args.output.write(&answer.solution)?;
    Ok(if answer.broke {
        exit_codes::UNEXPECTED
    } else if answer.cut_short {
        exit_codes::LIMIT
    } else {
        match answer.solution.verdict {
            Verdict::FailingSchedule if answer.solution.replay == Replay::Diverged => {
                exit_codes::REPLAY_DIFFERS
            }
            Verdict::FailingSchedule => exit_codes::SUCCESS,
            Verdict::NoSchedule => exit_codes::NO_SCHEDULE,
            Verdict::Unknown => exit_codes::LIMIT,
        }
    })
}
