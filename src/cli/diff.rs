//! `symbiosis diff`: is it the same bug?

use super::fix::{AnswerOptions, solution};
use super::{Failure, exit_codes};
use crate::compare::compare;
use std::path::PathBuf;

/// Say whether two traces failed for the same cause.
///
/// The fingerprint of the cause decides: it is made from the pattern, the functions, the kinds and
/// the variables of the cause's events, and from how far apart their lines are within a function.
/// What differs besides is told.
///
/// Exit codes: 0 the same cause; 10 not the same, or not known of one of them; 20 bad trace.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The first trace directory; it is solved first where that was not done yet
    one: PathBuf,
    /// The second
    other: PathBuf,
    #[command(flatten)]
    answer: AnswerOptions,
}

/// Compares the traces and prints what was found.
///
/// # Errors
/// When a trace cannot be read or solved, or the output cannot be written.
pub fn run(args: &Args) -> Result<u8, Failure> {
    let time = args.answer.time();
    let [(one, _), (other, _)] = [solution(&args.one, time)?, solution(&args.other, time)?];
    let comparison = compare(&one, &other);
    args.answer.print(&comparison, || comparison.to_text())?;
    Ok(if comparison.same { exit_codes::SUCCESS } else { exit_codes::REPLAY_DIFFERS })
}
