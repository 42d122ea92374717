//! `symbiosis record`.

use crate::cli::exit_codes;
use crate::errors::with_causes;
use crate::record::{
    FailAt, Interrupts, Names, Noise, Options, Perturbation, Program, RecordError, Run, draw_seed,
};
use crate::said::warn;
use indicatif::{ProgressBar, ProgressStyle};
use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use trace_format::Manifest;
use trace_format::layout::NOISE_VARIABLE;

/// How often a plain line tells of progress.
const LINE_EVERY: Duration = Duration::from_secs(5);
/// A run that takes no longer than this is not taken to hang.
const HANGS: Duration = Duration::from_secs(1);

/// Run an instrumented program and keep the trace of what its threads did.
///
/// PROGRAM may also be a command that starts instrumented programs: ctest, make check, a script. Each
/// process gets a trace of its own, and those of the processes that failed are kept, as
/// CHILD.trace; beside a PROGRAM that is instrumented itself, as PROGRAM-CHILD.trace.
///
/// The exit status is the program's own, 128 + n for signal n. With --runs it is that of the first
/// run that failed, or 0. With --until-failure it is 0 when a failing run was kept, if fewer than --failures
/// too, and 12 when all runs passed.
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
    /// Go on until so many runs have failed, and keep each of these, as NAME-1.trace, NAME-2.trace, ...;
    /// `symbiosis triage` tells whether they are one bug
    #[arg(long, value_name = "K", requires = "until_failure", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub failures: u32,
    /// End a run after so many seconds; that is a failure of the kind "hang", or "still-running" where it may only have been
    /// slow. Under random noise, a run that is still running then gets the time once more without noise
    #[arg(long, value_name = "SECS", value_parser = seconds)]
    pub timeout: Option<Duration>,
    /// The program goes on until it fails, as a server or a soak test does: a run that is still at work when its time is up has
    /// passed. One whose threads all wait then has not
    #[arg(long, requires_all = ["until_failure", "timeout"])]
    pub endless: bool,
    /// Perturb the schedule, to see rare failures sooner. RATE is the chance of a pause at each
    /// access that other threads may see, for a thread's first GATES of them (100000 unless given), MICROSECONDS
    /// its greatest length (200). Without settings, runs with even seeds are under 0.02,200 and others
    /// under 0.3,200,100. With pct, threads run one at a time by random priorities that change DEPTH - 1 times among STEPS
    /// steps [default STEPS: as many as the run before took, 10000 for the first]. Effects of store
    /// buffers cannot be seen under noise
    #[arg(long, value_name = "RATE,MICROSECONDS,GATES | pct,DEPTH,STEPS", num_args = 0..=1,
          require_equals = true, default_missing_value = "random")]
    pub noise: Option<Noise>,
    /// The seed of the noise; the second run gets the next one, and so on [default: a random one]
    #[arg(long, value_name = "S", requires = "noise")]
    pub seed: Option<u64>,
    /// Watch the heap: an access to a freed object ends the run as a failure. Every object gets pages
    /// of its own, so this takes memory and time
    #[arg(long, value_name = "WHAT", value_parser = ["use-after-free"])]
    pub detect: Option<String>,
    /// Have every thread read the clock after so many bytes of its path, about four branches each: 0 for
    /// never, 1 for the most that can be known of the order in which threads met [default: 1024]
    #[arg(long, value_name = "BYTES")]
    pub readings: Option<u32>,
    /// The run has failed when a thread comes to this line
    #[arg(long, value_name = "FILE:LINE", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub fail_at: Option<String>,
    /// After a run that ended well, run this shell command with the run's standard output as its
    /// input. Status 0 says that the run has failed (`--fail-if 'grep -q wrong'`,
    /// `--fail-if '! cmp -s - expected'`), 1 to 125 that it has not
    #[arg(long, value_name = "COMMAND", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub fail_if: Option<String>,
    /// Keep the traces of all processes that the program starts, not only of those that fail
    #[arg(long)]
    pub keep_all: bool,
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
    let fail_at = match &args.fail_at {
        Some(place) => Some(FailAt::find(&program.file, place)?),
        None => None,
    };
    let recorder = Recorder {
        program,
        interrupts: Interrupts::catch(),
        timeout: args.timeout,
        endless: args.endless,
        quiet: args.quiet,
        detect: args.detect.is_some(),
        readings: args.readings,
        fail_at,
        fail_if: args.fail_if,
        keep_all: args.keep_all,
        noise: args.noise,
        seed: args.seed.unwrap_or_else(draw_seed),
    };
    recorder.announce();
    if std::env::var_os(NOISE_VARIABLE).is_some() {
        warn(format_args!("{NOISE_VARIABLE} is not passed on; ask for noise with --noise"));
    }
    match (args.until_failure, args.runs) {
        (Some(most), _) => recorder.until_failure(names, most, args.failures),
        (None, Some(runs)) => recorder.series(names, runs),
        (None, None) => recorder.single(&names),
    }
}

struct Recorder {
    program: Program,
    interrupts: Interrupts,
    timeout: Option<Duration>,
    endless: bool,
    quiet: bool,
    detect: bool,
    readings: Option<u32>,
    fail_at: Option<FailAt>,
    fail_if: Option<String>,
    keep_all: bool,
    noise: Option<Noise>,
    /// The first run's.
    seed: u64,
}

impl Recorder {
    fn announce(&self) {
        if let Some(noise) = self.noise {
            self.say(&format!("noise {noise}, seeds from {}", self.seed));
        }
    }

    /// What the run with this number, from 1, is perturbed by. `steps` is what is known from the
    /// run before.
    fn perturbation(&self, number: u32, steps: Option<u64>) -> Option<Perturbation> {
        let seed = self.seed.wrapping_add(u64::from(number) - 1);
        self.noise.map(|noise| noise.of_run(seed, steps))
    }

    fn once(
        &self,
        directory: &std::path::Path,
        show_output: bool,
        perturbation: Option<Perturbation>,
    ) -> Result<Run, RecordError> {
        let options = Options {
            timeout: self.timeout,
            endless: self.endless,
            show_output,
            perturbation,
            detect: self.detect,
            readings: self.readings,
            fail_at: self.fail_at.clone(),
            fail_if: self.fail_if.clone(),
            follow: true,
            ..Options::default()
        };
        crate::record::run(&self.program, directory, &options, &self.interrupts)
    }

    fn say(&self, text: &str) {
        if !self.quiet {
            let _ = writeln!(std::io::stderr(), "symbiosis: {text}");
        }
    }

    /// Seals a run, and those of its children that failed, and says what came of them. Gives how many traces were kept.
    fn keep(&self, names: &Names, run: &mut Run) -> Result<usize, RecordError> {
        let mut kept = 0;
        if run.recorded {
            self.keep_one(run)?;
            kept += 1;
        }
        let mut dropped = 0;
        let children = std::mem::take(&mut run.children);
        for mut child in children {
            if !self.keep_all && !child.failed()? {
                dropped += 1;
                continue;
            }
            let name = names.of_child(&run.directory, run.recorded, &child.program)?;
            child.move_to(&name)?;
            self.keep_one(&mut child)?;
            kept += 1;
        }
        if dropped > 0 {
            let traces = if dropped == 1 { "trace" } else { "traces" };
            let text = format!("{dropped} {traces} of processes that did not fail dropped");
            self.say(&format!("{text}; --keep-all keeps them"));
        }
        if dropped > 0 && kept == 0 && run.status() != 0 {
            self.say(
                "the command failed, and none of the processes that it recorded: what it finds wrong with a program's result \
                 can be given to record as --fail-if",
            );
        }
        Ok(kept)
    }

    /// Seals one trace and says what came of it.
    fn keep_one(&self, run: &mut Run) -> Result<(), RecordError> {
        let sealed = run.seal();
        let name = run.directory.display().to_string();
        if let Err(error) = sealed {
            // What the program wrote is all there, and readable as it is.
            warn(format_args!("{}; {name} is kept unsealed", with_causes(&error)));
            trace_format::read_raw(&run.directory, &mut run.manifest)?;
        }
        warn_of_gaps(&name, &run.manifest);
        let process = match &run.manifest.process {
            Some(process) if process.forked => format!(" (process {}, forked)", process.pid),
            Some(process) => format!(" (process {})", process.pid),
            None => String::new(),
        };
        self.say(&format!("{name}: {}{process}", crate::record::ending(&run.manifest)));
        if let (Some(noise), Some(seed)) = (&run.manifest.noise, run.manifest.seed) {
            self.say(&format!("{name}: recorded with --noise={noise} --seed {seed}"));
        }
        Ok(())
    }

    fn single(&self, names: &Names) -> Result<u8, RecordError> {
        let mut run = self.once(&names.single()?, true, self.perturbation(1, None))?;
        self.keep(names, &mut run)?;
        Ok(run.status())
    }

    fn series(&self, mut names: Names, runs: u32) -> Result<u8, RecordError> {
        let names = &mut names;
        let mut code = exit_codes::SUCCESS;
        let mut steps = None;
        for number in 1..=runs {
            let perturbation = self.perturbation(number, steps);
            let mut run = self.once(&names.next_of_series()?, true, perturbation)?;
            steps = run.steps.or(steps);
            self.keep(names, &mut run)?;
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

    /// Runs the program until `wanted` runs failed, at most `most` times.
    fn until_failure(&self, mut names: Names, most: u32, wanted: u32) -> Result<u8, RecordError> {
        let next = |names: &mut Names| match wanted {
            1 => names.single(),
            _ => names.next_of_series(),
        };
        let names = &mut names;
        let mut directory = next(names)?;
        let (mut failed, mut kept) = (0, 0);
        let mut progress = Progress::new(most, self.quiet, self.noise.is_some());
        let mut steps = None;
        let mut longest = Duration::ZERO;
        for number in 1..=most {
            let began = Instant::now();
            let mut run = self.once(&directory, false, self.perturbation(number, steps))?;
            let took = began.elapsed();
            steps = run.steps.or(steps);
            if let Some(signal) = self.interrupts.received() {
                progress.finish();
                let what = format!("interrupted in run {number} of {most}");
                // Whoever gives up looking interrupts a run that is like those before it.
                if run.was_interrupted() && took < HANGS.max(longest * 3) {
                    run.discard()?;
                    self.say(&format!("{what}, which had only begun; no trace was kept"));
                } else {
                    self.keep(names, &mut run)?;
                    self.say(&what);
                }
                return Ok(interrupted(signal));
            }
            longest = longest.max(took);
            let at_work = run.was_at_work()?;
            if run.any_failed()? && !(self.endless && at_work) {
                progress.finish();
                show_tails(&run);
                self.say(&format!("run {number} of {most} failed"));
                if at_work {
                    self.say("with --endless, a run that is still at work when its time is up has passed");
                }
                kept += self.keep(names, &mut run)?;
                failed += 1;
                if failed == wanted {
                    return Ok(if kept > 0 { exit_codes::SUCCESS } else { exit_codes::LIMIT });
                }
                directory = next(names)?;
                continue;
            }
            run.discard()?;
            progress.passed(number);
        }
        progress.finish();
        if failed > 0 {
            self.say(&format!("{failed} of {most} runs failed, {wanted} were wanted"));
            return Ok(if kept > 0 { exit_codes::SUCCESS } else { exit_codes::LIMIT });
        }
        let under_noise = self.noise.map_or_else(String::new, |noise| {
            let last = self.seed.wrapping_add(u64::from(most) - 1);
            format!(" under noise {noise} with seeds {} to {last}", self.seed)
        });
        self.say(&format!("no failure in {most} runs{under_noise}; no trace was kept"));
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

/// Says what of the run is not in the trace.
fn warn_of_gaps(name: &str, manifest: &Manifest) {
    if let Some(failure) = &manifest.write_failure {
        let reason = std::io::Error::from_raw_os_error(failure.errno);
        warn(format_args!(
            "{name}/{}: could not be written on from byte {}: {reason}; what was recorded before is kept",
            failure.file, failure.offset
        ));
    }
    if manifest.unattached_threads > 0 {
        let threads = match manifest.unattached_threads {
            1 => "a thread".to_owned(),
            number => format!("{number} threads"),
        };
        warn(format_args!("{name}: {threads} ran without being recorded"));
    }
    if manifest.cut_writes > 0 {
        let count = manifest.cut_writes;
        warn(format_args!(
            "{name}: {count} write(s) by uninstrumented code were too long and are cut"
        ));
    }
}

/// A bar on a terminal, a line now and then elsewhere.
struct Progress {
    shown: Shown,
    /// What the runs that passed have done.
    passed: &'static str,
}

enum Shown {
    Bar(ProgressBar),
    Lines { most: u32, last: Instant },
    Nothing,
}

impl Progress {
    fn new(most: u32, quiet: bool, noise: bool) -> Self {
        let passed = if noise { "runs passed under noise" } else { "runs passed" };
        let shown = if quiet {
            Shown::Nothing
        } else if std::io::stderr().is_terminal() {
            let bar = ProgressBar::new(u64::from(most));
            let template = format!("{{elapsed_precise}} [{{bar:30}}] {{pos}} of {{len}} {passed}");
            if let Ok(style) = ProgressStyle::with_template(&template) {
                bar.set_style(style);
            }
            Shown::Bar(bar)
        } else {
            Shown::Lines { most, last: Instant::now() }
        };
        Self { shown, passed }
    }

    fn passed(&mut self, number: u32) {
        match &mut self.shown {
            Shown::Bar(bar) => bar.set_position(u64::from(number)),
            Shown::Lines { most, last } if last.elapsed() >= LINE_EVERY => {
                *last = Instant::now();
                let passed = self.passed;
                let _ = writeln!(std::io::stderr(), "symbiosis: {number} of {most} {passed}");
            }
            _ => {}
        }
    }

    fn finish(&self) {
        if let Shown::Bar(bar) = &self.shown {
            bar.finish_and_clear();
        }
    }
}
