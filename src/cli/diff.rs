//! `symbiosis diff`: is it the same bug?

use super::fix::{Format, json, solution, write};
use super::{Failure, exit_codes};
use crate::compare::compare;
use std::path::PathBuf;
use std::time::Duration;

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
    /// What to print
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Write to this file instead of standard output
    #[arg(short, long)]
    output: Option<PathBuf>,
    /// Stop solving a trace after this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    timeout: u64,
}

/// Compares the traces and prints what was found.
///
/// # Errors
/// When a trace cannot be read or solved, or the output cannot be written.
pub fn run(args: &Args) -> Result<u8, Failure> {
    let time = Duration::from_secs(args.timeout);
    let comparison = compare(&solution(&args.one, time)?, &solution(&args.other, time)?);
    let text = match args.format {
        Format::Text => comparison.to_text(),
        Format::Json => json(&comparison)?,
    };
    write(args.output.as_deref(), &text)?;
    Ok(if comparison.same { exit_codes::SUCCESS } else { exit_codes::REPLAY_DIFFERS })
}
