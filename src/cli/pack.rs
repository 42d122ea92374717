//! `symbiosis pack` and `symbiosis unpack`: a trace as one file.

use super::output::print;
use super::{Failure, exit_codes};
use crate::errors::with_causes;
use crate::pack::{self, PackError};
use crate::said::say;
use std::path::PathBuf;

/// Make one file of a trace, to be sent or kept by a CI job.
///
/// It is a tape archive compressed with zstd: `tar --zstd -xf` unpacks it too. The trace stays.
#[derive(Debug, clap::Args)]
pub struct PackArgs {
    /// The trace directory
    trace: PathBuf,
    /// The file to write; it must not be there yet [default: the trace's name with .tar.zst]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Make traces of packed ones again.
#[derive(Debug, clap::Args)]
pub struct UnpackArgs {
    /// The files that `symbiosis pack` made
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The trace directory to make; it must not be there yet [default: the name that the trace had]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

impl From<PackError> for Failure {
    fn from(error: PackError) -> Self {
        let code = match error {
            PackError::Trace(_)
            | PackError::Strange(_)
            | PackError::Archive { .. }
            | PackError::Open(_) => exit_codes::BAD_TRACE,
            PackError::Name(_) | PackError::Exists(_) | PackError::Inside(_) => exit_codes::USAGE,
            PackError::Io(_) | PackError::Write { .. } => exit_codes::UNEXPECTED,
        };
        Self::new(code, error)
    }
}

/// Packs the trace and prints the file's name.
///
/// # Errors
/// When it is no trace, or the file cannot be written.
pub fn pack(args: &PackArgs) -> Result<u8, Failure> {
    let file = args.output.clone().unwrap_or_else(|| pack::packed_name(&args.trace));
    pack::pack(&args.trace, &file)?;
    print(format!("{}\n", file.display()).as_bytes())?;
    Ok(exit_codes::SUCCESS)
}

/// Unpacks the files, one after the other, and prints the traces' names.
///
/// # Errors
/// When one is no packed trace, or a directory cannot be made. The others are unpacked all the same; the error is the last one.
pub fn unpack(args: &UnpackArgs) -> Result<u8, Failure> {
    if args.output.is_some() && args.files.len() > 1 {
        let error = "-o names the directory of one trace; give one file, or no -o";
        return Err(Failure::new(exit_codes::USAGE, error));
    }
    let mut failed: Option<Failure> = None;
    for file in &args.files {
        match pack::unpack(file, args.output.as_deref()) {
            Ok(trace) => print(format!("{}\n", trace.display()).as_bytes())?,
            Err(error) => {
                if let Some(earlier) = failed.replace(error.into()) {
                    say(format_args!("error: {}", with_causes(earlier.error.as_ref())));
                }
            }
        }
    }
    failed.map_or(Ok(exit_codes::SUCCESS), Err)
}
