//! `symbiosis replay`: the failure again, on demand; or the run that an alternate schedule gives.

use super::record::seconds;
use super::solve::parse_backend;
use super::{Failure, exit_codes, output};
use crate::pipeline::{self, Backend, ReplayOptions, SolveOptions};
use crate::record::ending;
use crate::replay::{self, Attempt, Claim, Settings, Target, Verdict, gdb, judge};
use crate::said::{say, warn};
use indicatif::{ProgressBar, ProgressStyle};
use render::Solution;
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;
use trace_format::Manifest;

/// So many runs that did something else are told of one by one.
const TOLD: u32 = 5;

/// What a batch session of gdb gets to read symbols and to stop, beside the time of the run.
const GDB_TIME: Duration = Duration::from_secs(120);

/// Run the recorded program again under the failing schedule, or under an alternate.
///
/// Exit codes: 0 all runs did what the schedule claims; 10 some did not; 11 there is no such
/// schedule; 12 a limit was hit before one was found; 20 bad trace; 21 the binary does not match
/// the trace.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The trace directory
    trace: PathBuf,
    /// Follow the K-th alternate schedule, as `solve --alternates` counts them from 0, in place of
    /// the failing one
    #[arg(long, value_name = "K")]
    alternate: Option<usize>,
    /// Run the program so many times
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// The binary [default: the recorded one, or its copy in the trace]
    #[arg(long, value_name = "BIN")]
    program: Option<PathBuf>,
    /// The working directory [default: the recorded one]
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
    /// Follow the schedule in this file (`-` for standard input) in place of one that is found
    #[arg(long, value_name = "FILE")]
    schedule: Option<PathBuf>,
    /// Follow the order in which the recorded run's own threads had their turns, which is known of
    /// a run recorded with `--noise=pct`; nothing is solved
    #[arg(long, conflicts_with_all = ["schedule", "alternate", "gdb", "gdb_batch"])]
    observed: bool,
    /// Print the schedule on standard output, and the summary on standard error
    #[arg(long)]
    print_schedule: bool,
    /// End a run after so many seconds [default: 10 and 20 times the recorded run's time]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,
    /// Give up following the schedule when nothing happened for so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    patience: Option<Duration>,
    /// `ordering`, `z3`, or `smtlib:COMMAND`, to find the schedule with
    #[arg(long, default_value = "ordering", value_parser = parse_backend)]
    solver: Backend,
    /// Stop looking for a schedule after so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    solve_timeout: u64,
    /// Start gdb on the program under the schedule, and stop before the events of the projection
    #[arg(long, conflicts_with_all = ["schedule", "runs", "print_schedule"])]
    gdb: bool,
    /// As --gdb, but show every stop and go on to the end; also what --gdb does when standard input
    /// is no terminal
    #[arg(long, conflicts_with_all = ["schedule", "runs", "print_schedule"])]
    gdb_batch: bool,
    /// Show the program's output
    #[arg(long)]
    show_output: bool,
    /// Say nothing but the summary
    #[arg(short, long)]
    quiet: bool,
}

/// What is to be replayed.
struct Plan {
    script: String,
    claim: Claim,
    /// What a run that bears out the claim does, in words.
    promise: String,
    /// What the schedule was found with; none for one that the user gave.
    solution: Option<Solution>,
}

/// Finds the schedule, runs the program under it, and says what came of it.
///
/// # Errors
/// When the trace cannot be read, the program cannot be run, or another one is there.
pub fn run(args: &Args) -> Result<u8, Failure> {
    let mut trace = match args.observed {
        true => args.trace.clone(),
        false => pipeline::explained_trace(&args.trace),
    };
    let mut recorded = manifest(&trace)?;
    let options = ReplayOptions {
        program: args.program.clone(),
        directory: args.directory.clone(),
        timeout: args.timeout,
        patience: args.patience,
        ..ReplayOptions::default()
    };
    // First the program: a schedule that nothing can follow is not worth the search.
    let mut target = options.target(&trace, &recorded)?;
    let plan = match &args.schedule {
        Some(file) => given(file, args, &recorded)?,
        None if args.observed => observed(&trace, &target, &recorded)?,
        None => match found(args, options.clone())? {
            Ok((plan, about)) => {
                if about != trace {
                    trace = about;
                    recorded = manifest(&trace)?;
                    target = options.target(&trace, &recorded)?;
                }
                plan
            }
            Err(code) => return Ok(code),
        },
    };
    if args.print_schedule {
        output::print(plan.script.as_bytes())?;
    }
    let settings = Settings { show_output: args.show_output, ..options.settings(&recorded) };
    if args.gdb || args.gdb_batch {
        return debug(args, &target, &plan, &settings);
    }
    let runs = Runs { args, manifest: &recorded, plan: &plan };
    runs.all(&target, &settings)
}

pub(super) fn manifest(trace: &Path) -> Result<Manifest, Failure> {
    pipeline::whole_manifest(trace).map_err(|error| Failure::new(exit_codes::BAD_TRACE, error))
}

/// A schedule from a file, and nobody but the user knows what it does: the recorded failure,
/// unless it is said to be an alternate.
fn given(file: &Path, args: &Args, manifest: &Manifest) -> Result<Plan, Failure> {
    let unreadable = |error: std::io::Error| {
        let text = format!("{}: cannot read the schedule: {error}", file.display());
        Failure::new(exit_codes::USAGE, text)
    };
    let script = if file == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map_err(unreadable)?;
        text
    } else {
        fs_err::read_to_string(file).map_err(unreadable)?
    };
    schedule::parse(&script)
        .map_err(|error| Failure::new(exit_codes::USAGE, format!("{}: {error}", file.display())))?;
    Ok(match args.alternate {
        None => Plan { script, claim: Claim::Fails, promise: ending(manifest), solution: None },
        Some(_) => {
            let promise = "passes the failure's place".to_owned();
            Plan { script, claim: Claim::Passes, promise, solution: None }
        }
    })
}

/// The recorded run's own schedule.
fn observed(trace: &Path, target: &Target, manifest: &Manifest) -> Result<Plan, Failure> {
    let unknown = |why: String| {
        let text = format!(
            "{}: the order of its threads' turns is not known ({why}); record with --noise=pct, or \
             leave --observed out",
            trace.display()
        );
        Failure::new(exit_codes::USAGE, text)
    };
    let script = replay::observed(&target.original).map_err(unknown)?;
    Ok(Plan { script, claim: Claim::Fails, promise: ending(manifest), solution: None })
}

/// A schedule that is solved for, with the trace that it is about, or the exit code when there is none.
fn found(args: &Args, options: ReplayOptions) -> Result<Result<(Plan, PathBuf), u8>, Failure> {
    // The projection that gdb goes through is between the failing schedule and the first alternate.
    let least = usize::from(args.gdb || args.gdb_batch);
    let alternates = args.alternate.map_or(0, |index| index.saturating_add(1)).max(least);
    let answer = pipeline::solve(
        &args.trace,
        &SolveOptions {
            alternates,
            backend: args.solver.clone(),
            time: Duration::from_secs(args.solve_timeout),
            memory_mb: None,
            dump_smt: None,
            // As `solve` does it, so that both speak of the same schedules.
            replay: Some(options),
        },
    )?;
    for warning in &answer.warnings {
        warn(warning);
    }
    let (finding, claim, what) = match args.alternate {
        None => (Some(&answer.failing), Claim::Fails, "failing schedule"),
        Some(index) => (answer.alternates.get(index), Claim::Passes, "alternate schedule"),
    };
    if !args.quiet {
        let last = finding.filter(|finding| finding.script.is_none());
        let last = last.and_then(|finding| finding.note.as_ref());
        for note in answer.solution.replay_notes.iter().filter(|note| Some(*note) != last) {
            say(note);
        }
    }
    if let Some(script) = finding.and_then(|finding| finding.script.clone()) {
        let promise = match claim {
            Claim::Fails => ending(&manifest(&answer.trace)?),
            Claim::Passes => format!("passes {}", failure_place(&answer.solution)),
        };
        let solution = Some(answer.solution);
        return Ok(Ok((Plan { script, claim, promise, solution }, answer.trace)));
    }
    let reason = match finding.and_then(|finding| finding.note.clone()) {
        Some(note) => note,
        None => answer.solution.reason.clone().unwrap_or_else(|| match args.alternate {
            Some(_) => alternates_end(answer.alternates.len()),
            None => "no order of the recorded events leads to this failure".to_owned(),
        }),
    };
    say(format_args!("there is no {what} to replay: {reason}"));
    Ok(Err(if answer.cut_short { exit_codes::LIMIT } else { exit_codes::NO_SCHEDULE }))
}

/// Why there is no alternate of a number, where so many were found.
fn alternates_end(found: usize) -> String {
    match found.checked_sub(1) {
        None => "none was found on the recorded paths".to_owned(),
        Some(last) => format!("the last one that was found is --alternate {last}"),
    }
}

fn failure_place(solution: &Solution) -> String {
    let Some(failure) = &solution.failure else { return "the failure's place".to_owned() };
    let file = &failure.location.file;
    let file = file.rsplit('/').next().unwrap_or(file);
    format!("{file}:{} (in thread {})", failure.location.line, failure.thread)
}

/// Hands the program over to gdb.
fn debug(args: &Args, target: &Target, plan: &Plan, settings: &Settings) -> Result<u8, Failure> {
    let events = plan.solution.as_ref().zip(target.original.execution());
    let Some((solution, execution)) = events else {
        let text = "the recorded run cannot be executed, so there is nothing to stop at";
        return Err(Failure::new(exit_codes::UNEXPECTED, text));
    };
    let (trace, points) = (&execution.trace, &execution.points);
    let marked =
        gdb::marked(&plan.script, &gdb::events(solution, plan.claim), solution, trace, points);
    let arguments: Vec<_> = target.program.command.iter().skip(1).cloned().collect();
    let status = gdb::run(&gdb::Session {
        program: &target.program.file,
        arguments: &arguments,
        directory: &target.directory,
        input: settings.input.as_deref(),
        marked: &marked,
        failure: solution.failure.as_ref().filter(|_| plan.claim == Claim::Fails),
        batch: args.gdb_batch || !std::io::stdin().is_terminal(),
        timeout: args.timeout.unwrap_or(settings.timeout + GDB_TIME),
    })?;
    Ok(if status.success() { exit_codes::SUCCESS } else { exit_codes::UNEXPECTED })
}

/// Run after run.
struct Runs<'a> {
    args: &'a Args,
    manifest: &'a Manifest,
    plan: &'a Plan,
}

impl Runs<'_> {
    fn all(&self, target: &Target, settings: &Settings) -> Result<u8, Failure> {
        let most = self.args.runs;
        let progress = self.progress();
        let (mut borne_out, mut told, mut left) = (0, 0, 0);
        let mut found = None;
        for number in 1..=most {
            let attempt = replay::run(target, &self.plan.script, settings)?;
            let verdict = judge::judge(self.plan.claim, self.manifest, &attempt);
            let confirms = verdict.confirms(self.plan.claim);
            borne_out += u32::from(confirms);
            // The scheduler sees who waits for whom; the recorded run may only have been ended.
            if confirms && self.plan.claim == Claim::Fails && attempt.report.deadlock {
                found = Some(ending(&attempt.manifest));
            }
            let departed = judge::left_in_earnest(self.plan.claim, &attempt);
            left += u32::from(departed);
            if (!confirms || departed) && told < TOLD {
                told += 1;
                progress.suspend(|| self.tell(number, &verdict, &attempt));
            }
            progress.inc(1);
        }
        progress.finish_and_clear();
        self.summary(found, borne_out, left)?;
        Ok(if borne_out == most { exit_codes::SUCCESS } else { exit_codes::REPLAY_DIFFERS })
    }

    fn progress(&self) -> ProgressBar {
        let shown = !self.args.quiet && self.args.runs > 1 && std::io::stderr().is_terminal();
        if !shown {
            return ProgressBar::hidden();
        }
        let bar = ProgressBar::new(u64::from(self.args.runs));
        let template = "{elapsed_precise} [{bar:30}] {pos} of {len} runs";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar
    }

    /// A run that did not do what it was to do, or not in the way it was to.
    fn tell(&self, number: u32, verdict: &Verdict, attempt: &Attempt) {
        if self.args.quiet {
            return;
        }
        let note = judge::note(self.plan.claim, verdict, attempt).unwrap_or_default();
        say(format_args!("run {number} of {}: {note}", self.args.runs));
    }

    fn summary(&self, found: Option<String>, borne_out: u32, left: u32) -> Result<(), Failure> {
        let word = match self.plan.claim {
            Claim::Fails => "reproduced",
            Claim::Passes => "confirmed",
        };
        let Plan { promise, script, .. } = self.plan;
        let promise = found.as_ref().unwrap_or(promise);
        let mut text = format!("{word} {borne_out} of {}: {promise}\n", self.args.runs);
        if left > 0 {
            text += &format!("  the schedule was left in {left} of the runs\n");
        }
        if !self.args.quiet && !self.args.print_schedule {
            let lines = script.lines().count();
            text += &format!("  --print-schedule shows the schedule ({lines} lines)\n");
        }
        // Standard output is the schedule's then, to be kept in a file and followed.
        if self.args.print_schedule {
            eprint!("{text}");
            return Ok(());
        }
        output::print(text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::alternates_end;

    #[test]
    fn which_alternates_there_are_is_told() {
        assert!(alternates_end(0).starts_with("none"));
        assert!(alternates_end(2).ends_with("--alternate 1"));
    }
}
