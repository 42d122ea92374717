//! `symbiosis verify`: after a patch, is the same cause still possible?

use super::fix::{AnswerOptions, solution};
use super::{Failure, exit_codes};
use crate::fix::Recorded;
use crate::verify::{self, Options, Verdict};
use std::ffi::OsString;
use std::path::PathBuf;

/// Run a patched program and say whether the recorded cause is still possible in it.
///
/// The new program runs under the failing schedule, as far as its places still exist there, and under
/// noise. Runs that fail are solved and their causes compared; runs that pass are asked whether the
/// order of the cause can still come up along their paths. Where it can, the program is made to have it.
///
/// Exit codes: 0 no run failed, and the order is no longer possible along the paths of those that
/// were asked; 13 it is, but no run failed that was made to have it; 10 a run failed; 12 undecided; 20 bad trace.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The trace directory of the failing run; it is solved first where that was not done yet
    trace: PathBuf,
    /// The patched program, built with `symbiosis cc`
    #[arg(long, value_name = "NEW")]
    program: PathBuf,
    /// Run it so many times under the failing schedule
    #[arg(long, value_name = "N", default_value_t = 3)]
    scheduled: u32,
    /// Run it so many times under noise
    #[arg(long, value_name = "N", default_value_t = 20)]
    noisy: u32,
    /// Keep the trace of a run that fails in this directory
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    #[command(flatten)]
    answer: AnswerOptions,
    /// Arguments for the program in place of the recorded ones
    #[arg(last = true)]
    arguments: Vec<OsString>,
}

/// Runs the program and prints the verdict.
///
/// # Errors
/// When the trace cannot be read or solved, the program cannot be run, or the output cannot be
/// written.
pub fn run(args: &Args) -> Result<u8, Failure> {
    let time = args.answer.time();
    let (solution, trace) = solution(&args.trace, time)?;
    let recorded = Recorded::open(&trace)?;
    let options = Options {
        program: args.program.clone(),
        arguments: (!args.arguments.is_empty()).then(|| args.arguments.clone()),
        scheduled: args.scheduled,
        noisy: args.noisy,
        time,
        keep: args.keep.clone(),
    };
    let found = verify::verify(&recorded, &solution, &options)?;
    args.answer.print(&found, || found.to_text())?;
    Ok(match found.verdict {
        Verdict::NoLongerPossible => exit_codes::SUCCESS,
        Verdict::NoLongerHarmful => exit_codes::HARMLESS,
        Verdict::StillFails | Verdict::FailsOtherwise => exit_codes::REPLAY_DIFFERS,
        Verdict::Undecided => exit_codes::LIMIT,
    })
}
