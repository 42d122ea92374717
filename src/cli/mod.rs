//! The command line: one file per command, and one place that turns errors into exit codes.

pub mod cc;
pub mod check;
pub mod completions;
pub mod diff;
pub mod doctor;
pub mod exit_codes;
pub mod fix;
mod output;
pub mod pack;
pub mod record;
pub mod replay;
pub mod show;
pub mod solve;
pub mod test_case;
pub mod triage;
pub mod verify;

use crate::errors::with_causes;
use crate::rust::{self, RustError};
use crate::said::say;
use clap::{Parser, Subcommand};
use std::error::Error;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

/// Says why a multi-threaded program failed, from one failing run.
#[derive(Debug, Parser)]
#[command(name = "symbiosis", version, after_help = AFTER_HELP)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "\
Typical use:
  symbiosis cc -g -O1 -pthread queue.c -o queue
  symbiosis record --until-failure 1000 -- ./queue
  symbiosis solve queue.trace
  symbiosis show queue.trace --format html -o queue.html
  symbiosis replay queue.trace
  symbiosis fix queue.trace
  symbiosis test-case queue.trace -o tests/queue
  symbiosis triage traces/ --report report

Exit codes: 0 done; 1 unexpected error; 2 wrong usage; 10 replay differs; 11 no schedule;
12 limit or time-out; 13 possible, but no harm was seen; 20 bad trace; 21 binary does not match the trace.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Compile or link C like clang does, with instrumentation
    #[command(disable_help_flag = true)]
    Cc {
        /// What clang would be given
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// Compile or link C++ like clang++ does, with instrumentation
    #[command(name = "c++", disable_help_flag = true)]
    Cxx {
        /// What clang++ would be given
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// Compile Rust like rustc does, with instrumentation
    #[command(disable_help_flag = true)]
    Rustc {
        /// What rustc would be given
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// Run cargo, which builds instrumented programs then
    #[command(disable_help_flag = true)]
    Cargo {
        /// What cargo would be given
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// Run an instrumented program and keep the trace
    Record(record::Args),
    /// Walk every thread of a trace and report what could not be modelled
    Check(check::Args),
    /// Find the failing schedule, the root cause, alternates and the DSP
    Solve(solve::Args),
    /// Show the answer of `solve` again, in any format
    Show(show::Args),
    /// Say whether two traces failed for the same cause
    Diff(diff::Args),
    /// Group many failing traces by their causes, with reports for CI
    Triage(triage::Args),
    /// Find repairs, each checked against the recorded run
    Fix(fix::Args),
    /// Run the program again under the failing schedule, or under an alternate
    Replay(replay::Args),
    /// Make a regression test from the failing schedule
    TestCase(test_case::Args),
    /// Run a patched program and say whether the recorded cause is still possible
    Verify(verify::Args),
    /// Make one file of a trace, to be sent or kept by a CI job
    Pack(pack::PackArgs),
    /// Make traces of packed ones again
    Unpack(pack::UnpackArgs),
    /// Say what is found on this machine and what is missing
    Doctor(doctor::Args),
    /// Print a script that completes the command line
    Completions(completions::Args),
    /// Print the manual page, or write one for each command
    Man(completions::ManArgs),
}

/// An error with its exit code.
pub struct Failure {
    /// The code, one of [`exit_codes`].
    pub code: u8,
    /// What went wrong.
    pub error: Box<dyn Error + Send + Sync>,
}

impl Failure {
    /// An error that ends with this code.
    pub fn new(code: u8, error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { code, error: error.into() }
    }
}

/// Runs the command that the process's arguments name.
#[must_use]
pub fn main() -> ExitCode {
    start_tracing();
    let args: Vec<OsString> = std::env::args_os().collect();
    ExitCode::from(dispatch(args).unwrap_or_else(|failure| {
        say(format_args!("error: {}", with_causes(failure.error.as_ref())));
        failure.code
    }))
}

fn dispatch(args: Vec<OsString>) -> Result<u8, Failure> {
    // Under these names `symbiosis` is a compiler, for build systems that want a single word.
    match args.first().map(Path::new).and_then(Path::file_name).and_then(OsStr::to_str) {
        Some("symbiosis-cc") => return compile(false, &args[1..]),
        Some("symbiosis-c++") => return compile(true, &args[1..]),
        Some(rust::WRAPPER) => return done(rust::wrapper(&args[1..])),
        Some(rust::LINKER) => return done(cc::link_rust(&args[1..])),
        _ => {}
    }
    // The compiler's arguments are clang's business, so clap never sees them.
    match args.get(1).and_then(|arg| arg.to_str()) {
        Some("cc") => return compile(false, &args[2..]),
        Some("c++") => return compile(true, &args[2..]),
        Some("rustc") => return done(rust::rustc(&args[2..])),
        Some("cargo") => return done(rust::cargo(&args[2..])),
        _ => {}
    }
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are not failures; clap prints them to stdout.
            let code = if error.use_stderr() { exit_codes::USAGE } else { exit_codes::SUCCESS };
            let _ = error.print();
            return Ok(code);
        }
    };
    match cli.command {
        Command::Cc { args } => compile(false, &args),
        Command::Cxx { args } => compile(true, &args),
        Command::Rustc { args } => done(rust::rustc(&args)),
        Command::Cargo { args } => done(rust::cargo(&args)),
        Command::Record(args) => {
            record::run(args).map_err(|error| Failure::new(error.exit_code(), error))
        }
        Command::Check(args) => check::run(&args),
        Command::Solve(args) => solve::run(&args),
        Command::Show(args) => show::run(&args),
        Command::Diff(args) => diff::run(&args),
        Command::Triage(args) => triage::run(&args),
        Command::Fix(args) => fix::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::TestCase(args) => test_case::run(&args),
        Command::Verify(args) => verify::run(&args),
        Command::Pack(args) => pack::pack(&args),
        Command::Unpack(args) => pack::unpack(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => completions::man(&args),
    }
}

fn compile(cxx: bool, args: &[OsString]) -> Result<u8, Failure> {
    cc::run(cxx, args).map_err(|error| Failure::new(exit_codes::UNEXPECTED, error))
}

fn done(result: Result<u8, RustError>) -> Result<u8, Failure> {
    result.map_err(|error| Failure::new(exit_codes::UNEXPECTED, error))
}

/// Stage spans and counts go to stderr when `SYMBIOSIS_LOG` asks for them.
fn start_tracing() {
    use tracing_subscriber::{EnvFilter, fmt};
    let Ok(filter) = EnvFilter::try_from_env("SYMBIOSIS_LOG") else { return };
    let _ = fmt().with_env_filter(filter).with_writer(std::io::stderr).try_init();
}
