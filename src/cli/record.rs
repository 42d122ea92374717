//! `symbiosis record`.

use crate::cli::exit_codes;
use crate::record::{Interrupts, Names, Options, Program, RecordError, Run};
use indicatif::{ProgressBar, ProgressStyle};
use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use trace_format::Manifest;

/// How often a plain line tells of progress.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Run an instrumented program and keep the trace of what its threads did.
///
/// The exit status is the program's own, 128 + n for signal n. With --runs it is that of the first
/// run that failed, or 0. With --until-failure it is 0 when a failing run was kept and 12 when all
/// runs passed.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The trace directory to make [default: PROGRAM.trace, or the next free PROGRAM-N.trace]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Run the program so many times and keep each run, as NAME-1.trace, NAME-2.trace, ...
    #[arg(long, value_name = "N", conflicts_with = "until_failure",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: Option<u32>,
    /// Run the program until it fails, at most so many times; keep only the failing run
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub until_failure: Option<u32>,
    /// End a run after so many seconds; that is a failure of the kind "hang"
    #[arg(long, value_name = "SECS", value_parser = seconds)]
    pub timeout: Option<Duration>,
    /// Say nothing but errors and the program's own output
    #[arg(short, long)]
    pub quiet: bool,
    /// The program and its arguments
    #[arg(
        value_name = "PROGRAM",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub command: Vec<OsString>,
}

pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => Err("not a positive number of seconds".to_owned()),
    }
}

/// Runs the command and gives the exit code.
///
/// # Errors
///
/// When the program cannot be recorded. A program that fails is no error.
pub fn run(args: Args) -> Result<u8, RecordError> {
    let program = Program::find(&args.command)?;
    let name = program.command.first().cloned().unwrap_or_default();
    let names = Names::new(args.output.as_deref(), &name);
    let recorder = Recorder {
        program,
        interrupts: Interrupts::catch(),
        timeout: args.timeout,
        quiet: args.quiet,
    };
    match (args.until_failure, args.runs) {
        (Some(most), _) => recorder.until_failure(&names, most),
        (None, Some(runs)) => recorder.series(names, runs),
        (None, None) => recorder.single(&names),
    }
}

struct Recorder {
    program: Program,
    interrupts: Interrupts,
    timeout: Option<Duration>,
    quiet: bool,
}

impl Recorder {
    fn once(&self, directory: &std::path::Path, show_output: bool) -> Result<Run, RecordError> {
        let options = Options { timeout: self.timeout, show_output, ..Options::default() };
        crate::record::run(&self.program, directory, &options, &self.interrupts)
    }

    fn say(&self, text: &str) {
        if !self.quiet {
            let _ = writeln!(std::io::stderr(), "symbiosis: {text}");
        }
    }

    /// Seals a run and says what came of it.
    fn keep(&self, run: &mut Run) -> Result<(), RecordError> {
        let sealed = run.seal();
        let name = run.directory.display().to_string();
        if let Err(error) = sealed {
            // What the program wrote is all there, and readable as it is.
            warn(&format!("{}; {name} is kept unsealed", causes(&error)));
            trace_format::read_raw(&run.directory, &mut run.manifest)?;
        }
        warn_of_gaps(&name, &run.manifest);
        self.say(&format!("{name}: {}", crate::record::ending(&run.manifest)));
        Ok(())
    }

    fn single(&self, names: &Names) -> Result<u8, RecordError> {
        let mut run = self.once(&names.single()?, true)?;
        self.keep(&mut run)?;
        Ok(run.status())
    }

    fn series(&self, mut names: Names, runs: u32) -> Result<u8, RecordError> {
        let mut code = exit_codes::SUCCESS;
        for number in 1..=runs {
            let mut run = self.once(&names.next_of_series()?, true)?;
            self.keep(&mut run)?;
            if code == exit_codes::SUCCESS {
                code = run.status();
            }
            if let Some(signal) = self.interrupts.received() {
                self.say(&format!("interrupted after {number} of {runs} runs"));
                return Ok(interrupted(signal));
            }
        }
        Ok(code)
    }

    fn until_failure(&self, names: &Names, most: u32) -> Result<u8, RecordError> {
        let directory = names.single()?;
        let mut progress = Progress::new(most, self.quiet);
        for number in 1..=most {
            let mut run = self.once(&directory, false)?;
            if let Some(signal) = self.interrupts.received() {
                progress.finish();
                self.keep(&mut run)?;
                self.say(&format!("interrupted in run {number} of {most}"));
                return Ok(interrupted(signal));
            }
            if run.failed()? {
                progress.finish();
                show_tails(&run);
                self.say(&format!("run {number} of {most} failed"));
                self.keep(&mut run)?;
                return Ok(exit_codes::SUCCESS);
            }
            run.discard()?;
            progress.passed(number);
        }
        progress.finish();
        self.say(&format!("no failure in {most} runs; no trace was kept"));
        Ok(exit_codes::LIMIT)
    }
}

fn interrupted(signal: i32) -> u8 {
    128u8.wrapping_add(signal as u8)
}

fn show_tails(run: &Run) {
    let _ = std::io::stdout().write_all(&run.stdout).and_then(|()| std::io::stdout().flush());
    let _ = std::io::stderr().write_all(&run.stderr);
}

fn warn(text: &str) {
    let _ = writeln!(std::io::stderr(), "symbiosis: warning: {text}");
}

fn causes(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", causes(source)),
        None => error.to_string(),
    }
}

/// Says what of the run is not in the trace.
fn warn_of_gaps(name: &str, manifest: &Manifest) {
    if let Some(failure) = &manifest.write_failure {
        let reason = std::io::Error::from_raw_os_error(failure.errno);
        warn(&format!(
            "{name}/{}: could not be written on from byte {}: {reason}; what was recorded before is kept",
            failure.file, failure.offset
        ));
    }
    if manifest.unattached_threads > 0 {
        let count = manifest.unattached_threads;
        warn(&format!("{name}: {count} thread(s) ran without being recorded"));
    }
    if manifest.cut_writes > 0 {
        let count = manifest.cut_writes;
        warn(&format!("{name}: {count} write(s) by uninstrumented code were too long and are cut"));
    }
}

/// A bar on a terminal, a line now and then elsewhere.
enum Progress {
    Bar(ProgressBar),
    Lines { most: u32, last: Instant },
    Silent,
}

impl Progress {
    fn new(most: u32, quiet: bool) -> Self {
        if quiet {
            return Self::Silent;
        }
        if !std::io::stderr().is_terminal() {
            return Self::Lines { most, last: Instant::now() };
        }
        let bar = ProgressBar::new(u64::from(most));
        let template = "{elapsed_precise} [{bar:30}] {pos} of {len} runs passed";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self::Bar(bar)
    }

    fn passed(&mut self, number: u32) {
        match self {
            Self::Bar(bar) => bar.set_position(u64::from(number)),
            Self::Lines { most, last } if last.elapsed() >= LINE_EVERY => {
                *last = Instant::now();
                let _ = writeln!(std::io::stderr(), "symbiosis: {number} of {most} runs passed");
            }
            _ => {}
        }
    }

    fn finish(&self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}
