//! One run of the program under a schedule.

use super::departure::Departure;
use super::{Original, ReplayError, Settings, Target};
use crate::record::{self, Confined, FailAt, Interrupts, Options, RecordError};
use crate::scratch::Scratch;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::mem::{offset_of, size_of};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use symex::Execution;
use trace_format::layout::{
    self, AVOID_VARIABLE, LINE_GATES_VARIABLE, LeftReason, NOISE_VARIABLE, PATIENCE_VARIABLE,
    REPORT_MAGIC, REPORT_VARIABLE, SCHEDULE_VARIABLE, TAIL_GATES_VARIABLE,
};
use trace_format::{Manifest, Trace, files};

/// What a run may log beyond eight times what the recorded one did: under a schedule the rounds of
/// threads that wait are not counted.
const SPINS: u64 = 256 << 20;

/// A run that logs more bytes than this, ...
const LONG_LOG: u64 = 4 << 20;
/// ... and so many times as much as the recorded one, is a long one.
const LONGER: u64 = 4;

/// How much a run of a recorded program may log before it is ended.
pub(crate) fn most_bytes(recorded: &Manifest) -> u64 {
    recorded.stream_bytes().saturating_mul(8).saturating_add(SPINS)
}

/// A run that is over. Its trace lives as long as this does.
#[derive(Debug)]
pub struct Attempt {
    /// The run's own trace directory, not sealed.
    pub directory: PathBuf,
    /// What the run did; with threads and failure.
    pub manifest: Manifest,
    /// What the scheduler says.
    pub report: Report,
    /// The schedule that was to be followed.
    pub script: String,
    /// The tail of standard output.
    pub stdout: Vec<u8>,
    /// The tail of standard error.
    pub stderr: Vec<u8>,
    /// The recorded run.
    pub original: Arc<Original>,
    /// After how many gates behind its schedule it was to be ended; none for never.
    pub(super) tail: Option<u64>,
    /// What is known of its events, where its failure was asked for.
    pub(super) for_failure: OnceLock<Option<Execution>>,
    _scratch: Scratch,
}

/// What became of the schedule, see [`layout::Report`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Lines of the schedule.
    pub lines: u32,
    /// Lines followed to their end.
    pub followed: u32,
    /// Where the schedule was left first; none when it was followed.
    pub left: Option<Left>,
    /// Gates and sync points that were passed, over all threads.
    pub steps: u64,
    /// How often another thread got the turn.
    pub switches: u64,
    /// All threads waited for each other, and the process was ended for it.
    pub deadlock: bool,
    /// The process went on behind the schedule, and was ended for it, see [`Settings::tail`].
    pub far: bool,
    /// For people.
    pub message: String,
    /// How often avoidance rules held a thread back.
    pub held_back: u64,
    /// How often such a thread was let go too early, because it took too long.
    pub gave_up: u64,
}

/// Where a schedule was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// The line in the schedule's text, from 1.
    pub line: u32,
    /// Why.
    pub reason: LeftReason,
    /// The hash of the site where the line's thread was; 0 when it was at none.
    pub site: u64,
}

/// Runs the program once under a schedule; freely when the text is empty. A program that goes on for ever is run once more,
/// as far as [`Original::tail`] says, and so are all later ones.
///
/// # Errors
///
/// When the program cannot be run, when it turns out to be another one, when its runtime does
/// not follow the schedule at all, or when the time for all runs was up first. Whatever it does under the schedule is no error.
pub fn run(
    target: &Target,
    script_text: &str,
    settings: &Settings,
) -> Result<Attempt, ReplayError> {
    let original = &target.original;
    let attempt = run_once(target, script_text, settings)?;
    let scheduled = !script_text.is_empty() || settings.by_priorities();
    if scheduled
        && attempt.goes_on()
        && !original.time_is_up()
        && settings.tail(original).is_none()
        && original.may_go_on()
    {
        tracing::info!("the run goes on: it is ended behind the schedule");
        // One that was given less time than others may only have been slow.
        if settings.timeout >= Settings::of(original.manifest()).timeout {
            original.set_endless();
        }
        let settings = Settings { tail: Some(original.a_while()), ..settings.clone() };
        return run_once(target, script_text, &settings);
    }
    Ok(attempt)
}

fn run_once(
    target: &Target,
    script_text: &str,
    settings: &Settings,
) -> Result<Attempt, ReplayError> {
    let scratch = scratch()?;
    let directory = scratch.path().join("attempt.trace");
    let (run, report) = run_into(target, script_text, settings, scratch.path(), &directory)?;
    let mut manifest = run.manifest;
    // The outcome, which is part of what a failure is read from.
    manifest.write(&directory)?;
    for (name, tail) in [(files::STDOUT_TAIL, &run.stdout), (files::STDERR_TAIL, &run.stderr)] {
        fs_err::write(directory.join(name), tail)
            .map_err(|source| ReplayError::Io { action: "keep the program's output", source })?;
    }
    trace_format::read_raw(&directory, &mut manifest)?;
    let attempt = Attempt {
        directory,
        manifest,
        report,
        script: script_text.to_owned(),
        stdout: run.stdout,
        stderr: run.stderr,
        original: Arc::clone(&target.original),
        tail: settings.tail(&target.original),
        for_failure: OnceLock::new(),
        _scratch: scratch,
    };
    check_modules(&attempt.directory, target)?;
    if attempt.manifest.failure.is_some() && !attempt.manifest.timed_out {
        target.original.note_steps(attempt.report.steps);
    }
    Ok(attempt)
}

/// Runs the program once under a schedule, as [`run`] does, and makes a trace of its own of that run in a new
/// directory. Gives its manifest.
///
/// # Errors
///
/// As [`run`], and when the trace cannot be completed.
pub fn record_again(
    target: &Target,
    script_text: &str,
    settings: &Settings,
    directory: &Path,
) -> Result<Manifest, ReplayError> {
    let scratch = scratch()?;
    let (mut run, report) = run_into(target, script_text, settings, scratch.path(), directory)?;
    tracing::info!(left = ?report.left, followed = report.followed, of = report.lines, "recorded again");
    run.seal()?;
    check_modules(directory, target)?;
    Ok(run.manifest)
}

fn scratch() -> Result<Scratch, ReplayError> {
    let failed = |source| ReplayError::Io { action: "make a temporary directory", source };
    Scratch::new("symbiosis-replay").map_err(failed)
}

/// Runs the program with its trace in a new directory; what else it needs is in `scratch`.
fn run_into(
    target: &Target,
    script_text: &str,
    settings: &Settings,
    scratch: &Path,
    directory: &Path,
) -> Result<(record::Run, Report), ReplayError> {
    if target.original.time_is_up() {
        return Err(ReplayError::OutOfTime);
    }
    let (schedule, report) = (scratch.join("schedule"), scratch.join("report"));
    let mut environment: Vec<(&'static str, OsString)> = Vec::new();
    if !script_text.is_empty() {
        fs_err::write(&schedule, script_text)
            .map_err(|source| ReplayError::Io { action: "write the schedule", source })?;
        environment.push((SCHEDULE_VARIABLE, schedule.into()));
    }
    let reports = !script_text.is_empty() || settings.avoid.is_some() || settings.by_priorities();
    if reports {
        environment.push((REPORT_VARIABLE, report.clone().into()));
    }
    if let Some(rules) = &settings.avoid {
        let file = scratch.join("rules");
        fs_err::write(&file, rules)
            .map_err(|source| ReplayError::Io { action: "write the avoidance rules", source })?;
        environment.push((AVOID_VARIABLE, file.into()));
    }
    if let Some(noise) = &settings.noise {
        environment.push((NOISE_VARIABLE, noise.into()));
    }
    let patience = settings.patience.as_millis().max(1);
    environment.push((PATIENCE_VARIABLE, patience.to_string().into()));
    if let Some(gates) = settings.gates {
        environment.push((LINE_GATES_VARIABLE, gates.to_string().into()));
    }
    if let Some(tail) = settings.tail(&target.original) {
        environment.push((TAIL_GATES_VARIABLE, tail.to_string().into()));
    }
    let confined = Confined { directory: target.directory.clone(), input: settings.input.clone() };
    let recorded = target.original.manifest();
    let fail_at = match &recorded.fail_at {
        Some(place) => Some(FailAt::find(&target.program.file, place).map_err(RecordError::from)?),
        None => None,
    };
    let options = Options {
        timeout: Some(settings.time(&target.original)),
        // The run fails when the recorded one would have.
        detect: settings.watches_heap || recorded.detect.is_some(),
        readings: None,
        fail_at,
        fail_if: recorded.fail_if.as_ref().map(|check| check.command.clone()),
        endless: false,
        show_output: settings.show_output,
        follow: false,
        environment,
        openmp: recorded.openmp.clone(),
        confined: Some(confined),
        perturbation: None,
        most_bytes: Some(settings.most_bytes(&target.original)),
        // Where the recorded run hung, most others do, and the time that is given may be long.
        ends_when_stuck: settings.ends_when_stuck
            || (settings.hurries && (recorded.timed_out || target.original.hung())),
    };
    let interrupts = Interrupts::catch();
    let run = record::run(&target.program, directory, &options, &interrupts)?;
    if let Some(signal) = interrupts.received() {
        return Err(ReplayError::Interrupted(signal));
    }
    drop(interrupts);
    // Nobody knows what it would have done: that it was ended is no hang.
    if run.manifest.timed_out && target.original.time_is_up() {
        return Err(ReplayError::OutOfTime);
    }
    let report = match reports {
        false => Report::default(),
        true => Report::read(&report, target)?,
    };
    Ok((run, report))
}

/// Fails when the process whose trace this is had other modules than the recorded one: another shared library. One that
/// has all of the recorded ones, and more, has come to load a library that the recorded one had not loaded yet.
fn check_modules(directory: &Path, target: &Target) -> Result<(), ReplayError> {
    let trace = Trace::open(directory)?;
    let Some(original) = target.original.trace() else { return Ok(()) };
    let known: BTreeSet<[u64; 2]> = original.modules().iter().map(|m| m.hash).collect();
    let here: BTreeSet<[u64; 2]> = trace.modules().iter().map(|m| m.hash).collect();
    let unknown = here.difference(&known).count();
    if unknown == 0 || known.is_subset(&here) {
        return Ok(());
    }
    let path = target.program.file.clone();
    let why = format!("{unknown} modules that it ran were not recorded");
    Err(ReplayError::WrongBinary { path, why })
}

impl Attempt {
    /// Did it log much more than the recorded run?
    #[must_use]
    pub fn is_long(&self) -> bool {
        let recorded = self.original.manifest().stream_bytes();
        self.manifest.stream_bytes() > recorded.saturating_mul(LONGER).saturating_add(LONG_LOG)
    }

    /// Was the program at work when its time was up?
    fn goes_on(&self) -> bool {
        let manifest = &self.manifest;
        manifest.timed_out && manifest.still_running != Some(false) && !self.report.deadlock
    }

    /// Where and why the run left the schedule; none when it followed it.
    #[must_use]
    pub fn departure(&self) -> Option<Departure> {
        Departure::of(self)
    }
}

impl Report {
    fn read(path: &Path, target: &Target) -> Result<Self, ReplayError> {
        let bytes = fs_err::read(path).unwrap_or_default();
        let missing = || ReplayError::NoScheduler { path: target.program.file.clone() };
        Self::decode(&bytes).ok_or_else(missing)
    }

    /// The report in a report file's bytes; none when it is not one.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let word = |at: usize| {
            let part = bytes.get(at..at + 4).and_then(|part| part.try_into().ok());
            part.map_or(0, u32::from_le_bytes)
        };
        let long = |at: usize| {
            let part = bytes.get(at..at + 8).and_then(|part| part.try_into().ok());
            part.map_or(0, u64::from_le_bytes)
        };
        if bytes.len() < size_of::<layout::Report>()
            || long(offset_of!(layout::Report, magic)) != REPORT_MAGIC
        {
            return None;
        }
        let line = word(offset_of!(layout::Report, left_line));
        let reason = LeftReason::from_code(word(offset_of!(layout::Report, left_reason)));
        let text = offset_of!(layout::Report, message);
        let length = (word(offset_of!(layout::Report, message_length)) as usize).min(2048);
        let message = bytes.get(text..text + length).unwrap_or(&[]);
        Some(Self {
            lines: word(offset_of!(layout::Report, lines)),
            followed: word(offset_of!(layout::Report, followed)),
            left: (line != 0).then(|| Left {
                line,
                reason: reason.unwrap_or(LeftReason::None),
                site: long(offset_of!(layout::Report, left_site)),
            }),
            steps: long(offset_of!(layout::Report, steps)),
            switches: long(offset_of!(layout::Report, switches)),
            deadlock: word(offset_of!(layout::Report, ended)) == layout::ENDED_DEADLOCK,
            far: word(offset_of!(layout::Report, ended)) == layout::ENDED_FAR,
            message: String::from_utf8_lossy(message).into_owned(),
            held_back: long(offset_of!(layout::Report, held_back)),
            gave_up: long(offset_of!(layout::Report, gave_up)),
        })
    }
}
