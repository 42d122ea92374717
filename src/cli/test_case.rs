//! `symbiosis test-case`: a regression test from a failing run.

use super::record::seconds;
use super::replay::manifest;
use super::solve::parse_backend;
use super::{Failure, exit_codes, output};
use crate::answer::kept;
use crate::pipeline::{self, Backend, ReplayOptions, SolveOptions};
use crate::said::{say, warn};
use crate::test_case::{self, TestCase, TestCaseError};
use render::solution::Replay;
use std::path::PathBuf;
use std::time::Duration;

/// Make a regression test from the failing schedule: a C program that runs yours under the schedule,
/// fails as long as the bug is there, and passes when it is fixed.
///
/// Exit codes: 0 the test is written; 10 it is written, but the program does not fail under the
/// schedule; 11 there is no failing schedule; 12 a limit was hit before one was found.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The trace directory
    trace: PathBuf,
    /// Write the test into this directory
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// The test's name [default: the program's]
    #[arg(long)]
    name: Option<String>,
    /// The program that the test runs when nobody names another
    #[arg(long, value_name = "FILE")]
    test_program: Option<PathBuf>,
    /// The binary to try the schedule with [default: the recorded one, or its copy in the trace]
    #[arg(long, value_name = "BIN")]
    program: Option<PathBuf>,
    /// The working directory to try it in [default: the recorded one]
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
    /// End a run after so many seconds [default: 10 and 20 times the recorded run's time]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,
    /// `ordering`, `z3`, or `smtlib:COMMAND`, to find the schedule with
    #[arg(long, default_value = "ordering", value_parser = parse_backend)]
    solver: Backend,
    /// Stop looking for a schedule after so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    solve_timeout: u64,
}

/// Finds the failing schedule, tries it, and writes the test.
///
/// # Errors
/// When the trace cannot be read, or the test cannot be written.
pub fn run(args: &Args) -> Result<u8, Failure> {
    let manifest = manifest(&args.trace)?;
    let name = args.name.clone().unwrap_or_else(|| test_case::default_name(&manifest));
    // Before the search, which may take its time.
    test_case::check_name(&name)?;
    test_case::check_failure(&manifest)?;
    let options = SolveOptions {
        alternates: 0,
        backend: args.solver.clone(),
        time: Duration::from_secs(args.solve_timeout),
        memory_mb: None,
        dump_smt: None,
        replay: Some(ReplayOptions {
            program: args.program.clone(),
            directory: args.directory.clone(),
            timeout: args.timeout,
            ..ReplayOptions::default()
        }),
    };
    let answer = pipeline::solve(&args.trace, &options)?;
    let manifest = match answer.trace == args.trace {
        true => manifest,
        false => self::manifest(&answer.trace)?,
    };
    for warning in &answer.warnings {
        warn(warning);
    }
    let Some(schedule) = &answer.failing.script else {
        let reason = answer.failing.note.clone().or_else(|| answer.solution.reason.clone());
        let reason = reason
            .unwrap_or_else(|| "no order of the recorded events leads to this failure".to_owned());
        say(format_args!("there is no failing schedule to make a test from: {reason}"));
        return Ok(if answer.cut_short { exit_codes::LIMIT } else { exit_codes::NO_SCHEDULE });
    };
    let absolute = |path: &PathBuf| std::path::absolute(path).map_err(TestCaseError::Write);
    let program = args.test_program.as_ref().map(absolute).transpose()?;
    // An alternate, which this search does without, tells more of the cause.
    let solved = kept(&answer.trace).ok();
    let cause = solved.as_ref().and_then(|solution| solution.cause.as_ref());
    let files = test_case::files(&TestCase {
        name: &name,
        solution: &answer.solution,
        cause: cause.map(|cause| cause.sentence.as_str()),
        manifest: &manifest,
        schedule,
        program: program.as_deref(),
    })?;
    test_case::write(&args.output, &files)?;
    let written = files.iter().map(|file| format!("{}\n", args.output.join(&file.name).display()));
    output::print(written.collect::<String>().as_bytes())?;
    Ok(match answer.failing.replay {
        Replay::Confirmed => exit_codes::SUCCESS,
        Replay::NotRun => {
            warn(format_args!(
                "the schedule was not tried: {}",
                answer.solution.replay_notes.join("; ")
            ));
            exit_codes::SUCCESS
        }
        Replay::Diverged => {
            let notes = answer.solution.replay_notes.join("; ");
            warn(format_args!(
                "the program did not fail in the same way under this schedule: {notes}"
            ));
            exit_codes::REPLAY_DIFFERS
        }
    })
}
