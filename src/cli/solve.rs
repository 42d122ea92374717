//! `symbiosis solve`: the failing schedule, the root cause, alternates and the DSP.

use super::record::seconds;
use super::{Failure, exit_codes};
use crate::pipeline::{self, Backend, ReplayOptions, SolveOptions};
use render::Solution;
use render::solution::{Replay, Verdict};
use render::text::TextOptions;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Arguments of `solve`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The trace directory
    trace: PathBuf,
    /// What to print
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Write to this file instead of standard output
    #[arg(short, long)]
    output: Option<PathBuf>,
    /// Look for this many alternate schedules
    #[arg(long, default_value_t = 1, value_name = "K")]
    alternates: usize,
    /// `ordering`, `z3`, or `smtlib:COMMAND` for any SMT-LIB 2 solver that reads standard input
    #[arg(long, default_value = "ordering", value_parser = parse_backend)]
    solver: Backend,
    /// Write the constraint system for the failing schedule as SMT-LIB 2
    #[arg(long, value_name = "FILE")]
    dump_smt: Option<PathBuf>,
    /// Stop after this many seconds and print what was found
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    timeout: u64,
    /// Let the solver use at most this many megabytes
    #[arg(long, value_name = "MEGABYTES")]
    memory: Option<u32>,
    /// In text, print every event of the failing schedule too
    #[arg(long)]
    full_schedule: bool,
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

/// An output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Text,
    Json,
    Dot,
    Svg,
    Html,
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
        backend: args.solver.clone(),
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
        eprintln!("symbiosis: warning: {warning}");
    }
    let text = rendered(&answer.solution, args)?;
    write(&text, args.output.as_deref())?;
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

fn rendered(solution: &Solution, args: &Args) -> Result<String, Failure> {
    Ok(match args.format {
        Format::Text => {
            render::text::to_text(solution, TextOptions { full_schedule: args.full_schedule })
        }
        Format::Json => render::json::to_json(solution)
            .map_err(|error| Failure::new(exit_codes::UNEXPECTED, error))?,
        Format::Dot => render::dot::to_dot(solution),
        Format::Svg => render::svg::to_svg(solution)
            .map_err(|error| Failure::new(exit_codes::UNEXPECTED, error))?,
        Format::Html => to_html(solution)?,
    })
}

/// The page, with the sources that are found where the debug information says they were.
pub(super) fn to_html(solution: &Solution) -> Result<String, Failure> {
    let sources = render::html::Sources::gather(solution, read_source);
    render::html::to_html(solution, &sources)
        .map_err(|error| Failure::new(exit_codes::UNEXPECTED, error))
}

/// A trace may name anything as a source file, also a device that never ends.
fn read_source(name: &str) -> Result<String, String> {
    const LONGEST: u64 = 16 << 20;
    let metadata = fs_err::metadata(name).map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err(format!("{name} is no regular file"));
    }
    if metadata.len() > LONGEST {
        return Err(format!("{name} is longer than {} MB", LONGEST >> 20));
    }
    let bytes = fs_err::read(name).map_err(|error| error.to_string())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn write(text: &str, output: Option<&Path>) -> Result<(), Failure> {
    use std::io::Write as _;
    let result = match output {
        Some(path) => fs_err::write(path, text),
        None => std::io::stdout().lock().write_all(text.as_bytes()),
    };
    match result {
        // A reader such as `head` that has seen enough is no error.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Failure::new(exit_codes::UNEXPECTED, error)),
        Ok(()) => Ok(()),
    }
}
