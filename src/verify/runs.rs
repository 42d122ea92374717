//! Runs of the new program.

use super::Options;
use crate::fix::{FixError, Recorded};
use crate::pipeline;
use crate::record::{self, Confined, FailAt, Interrupts, Noise, Program, RecordError, draw_seed};
use crate::replay::{self, Claim, ReplayError, Report, Settings, Target};
use crate::scratch::Scratch;
use ir::gates::gates;
use model::{EventId, Schedule};
use render::Solution;
use schedule::Target as Place;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use trace_format::layout::{
    PATIENCE_VARIABLE, REPORT_VARIABLE, SCHEDULE_VARIABLE, TAIL_GATES_VARIABLE,
};
use trace_format::{FailureKind, Manifest};

/// Pauses as `record --noise` has them.
const NOISE: Noise = Noise::Varied;

/// A log that is so many times as long as another one, and this longer at all events, is far longer.
const FAR_LONGER: u64 = 16;
const SHORT: u64 = 1 << 20;

/// A program that goes on until it fails is run for so many times as long, and so much longer, as the recorded run took and
/// logged, ...
const LONGER: u32 = 4;
const A_WHILE: Duration = Duration::from_secs(1);
/// ... or passes so many gates behind a schedule.
const TAIL: u64 = 20_000;

/// Under what a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The failing schedule.
    Scheduled,
    /// Random pauses with this seed.
    Noisy(u64),
    /// A schedule of a run of the new program that has the order of the cause.
    Forced,
    /// Nothing: what needs a write that is seen late comes up under nothing else.
    Plain,
}

impl Kind {
    pub(super) fn is_scheduled(self) -> bool {
        self == Self::Scheduled
    }

    fn has_schedule(self) -> bool {
        matches!(self, Self::Scheduled | Self::Forced)
    }
}

/// A run that is over; its trace lives as long as this does.
pub(super) struct Taken {
    pub(super) kind: Kind,
    pub(super) failed: bool,
    /// It failed by a hang.
    hung: bool,
    /// It was ended while it was being held up by its schedule, so it neither failed nor passed.
    pub(super) held_up: bool,
    /// The schedule was followed to its end.
    pub(super) followed: bool,
    /// How much its threads logged.
    bytes: u64,
    pub(super) directory: PathBuf,
    _scratch: Scratch,
}

impl Taken {
    /// Keeps the trace at this place, if there is one, instead of one that was kept there `earlier`.
    pub(super) fn keep(
        &self,
        place: Option<&Path>,
        earlier: Option<PathBuf>,
    ) -> Result<Option<PathBuf>, FixError> {
        let Some(place) = place else { return Ok(None) };
        let failed = |source| ReplayError::Io { action: "keep the trace", source };
        if let Some(earlier) = earlier {
            fs_err::remove_dir_all(earlier).map_err(failed)?;
        }
        copy(&self.directory, place).map_err(failed)?;
        Ok(Some(place.to_owned()))
    }
}

/// In which turn runs that passed are asked: one under the schedule, and others, whose paths may differ. One of far longer logs than
/// another one is last, as where a thread went round a loop while it was held up: it takes long to walk.
pub(super) fn in_turn(passed: &[Taken]) -> Vec<&Taken> {
    let (scheduled, others): (Vec<&Taken>, Vec<&Taken>) =
        passed.iter().partition(|taken| taken.kind.is_scheduled());
    let least = passed.iter().map(|taken| taken.bytes).min().unwrap_or_default();
    let mut turns: Vec<&Taken> = scheduled.into_iter().take(1).chain(others).collect();
    turns.sort_by_key(|taken| is_far_longer(taken.bytes, least));
    turns
}

fn is_far_longer(bytes: u64, least: u64) -> bool {
    bytes > least.saturating_mul(FAR_LONGER).saturating_add(SHORT)
}

/// Was the run ended while it still ran, or because its log grew without an end? Who waits for a thread by going round a loop
/// goes on with that as long as the thread is held back: of a run under a schedule that says nothing about the program. `ends_when_stuck`: it was also ended when all its threads waited, which nobody noted.
fn is_unfinished(manifest: &Manifest, ends_when_stuck: bool) -> bool {
    let failure = manifest.failure.as_ref();
    manifest.timed_out
        && failure.is_some_and(|failure| failure.kind == FailureKind::Hang)
        && manifest.still_running.unwrap_or(!ends_when_stuck)
}

/// The schedule without what it says of time limits; `None` where it says nothing of them.
fn without_waits(script: &str) -> Option<String> {
    let mut script = schedule::parse(script).ok()?;
    let waits = std::mem::take(&mut script.waits);
    (!waits.is_empty()).then(|| script.to_string())
}

/// Is the place one of a call that every program has, such as `~mutex_lock`?
fn is_of_library(site: &str) -> bool {
    site.starts_with('~')
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs_err::create_dir(to)?;
    for entry in fs_err::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs_err::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// Runs the new program as the old one was recorded.
pub(super) struct Runner {
    manifest: Manifest,
    program: Program,
    script: String,
    settings: Settings,
    /// The failure needs a write that is seen late: no run can be made to have it, and noise hides it.
    needs_late_write: bool,
    /// Where the program comes from; none for the new one.
    _recorded: Option<Target>,
}

impl Runner {
    /// Runs the recorded program instead, under no schedule.
    pub(super) fn of_recorded(recorded: &Recorded, like: &Self) -> Result<Self, FixError> {
        let manifest = pipeline::whole_manifest(&recorded.directory).map_err(ReplayError::from)?;
        let target = Target::of_trace(&recorded.directory, &manifest, None)?;
        Ok(Self {
            program: target.program.clone(),
            script: String::new(),
            settings: Settings::of(&manifest),
            needs_late_write: like.needs_late_write,
            manifest,
            _recorded: Some(target),
        })
    }

    pub(super) fn new(
        recorded: &Recorded,
        solution: &Solution,
        options: &Options,
    ) -> Result<Self, FixError> {
        let manifest = pipeline::whole_manifest(&recorded.directory).map_err(ReplayError::from)?;
        let file = std::path::absolute(&options.program)
            .map_err(|source| ReplayError::Io { action: "find the new program", source })?;
        let mut command = vec![file.clone().into_os_string()];
        match &options.arguments {
            Some(arguments) => command.extend(arguments.iter().cloned()),
            None => command.extend(manifest.command.iter().skip(1).map(OsString::from)),
        }
        let settings = Settings::of(&manifest);
        let execution = &recorded.execution;
        let order: Option<Vec<EventId>> =
            solution.schedule.iter().map(|id| crate::fix::event(id)).collect();
        let schedule = Schedule { order: order.unwrap_or_default() };
        // Its events are not those of the recorded program order then.
        let needs_late_write = !solution.late_writes.is_empty();
        let whole = schedule.order.len() == execution.trace.events.len();
        let script = match whole && !needs_late_write {
            true => replay::script(
                Claim::Fails,
                &execution.trace,
                &execution.points,
                &execution.inputs,
                &schedule,
            )
            .unwrap_or_default(),
            false => String::new(),
        };
        let program = Program::at(&file, command);
        Ok(Self { manifest, program, script, settings, needs_late_write, _recorded: None })
    }

    /// The runs to take.
    pub(super) fn plan(&self, options: &Options) -> Vec<Kind> {
        let none = self.script.is_empty() || self.needs_late_write;
        let scheduled = if none { 0 } else { options.scheduled };
        let scheduled = (0..scheduled).map(|_| Kind::Scheduled);
        // The first run tells which places the program has.
        let mut free = (0..options.noisy).map(|run| self.free_kind(run));
        let first = free.next();
        first.into_iter().chain(scheduled).chain(free).collect()
    }

    /// Leaves the lines of the failing schedule out whose places the new program, which this is a run of, does not have: a thread
    /// that is to come to one would run on until it waits, and be taken to wait too long where that has a limit.
    pub(super) fn keep_known_places(&mut self, taken: &Taken) {
        let script = schedule::parse(&self.script).ok();
        let loaded = pipeline::load(&taken.directory).ok();
        let (Some(mut script), Some(loaded)) = (script, loaded) else { return };
        let mut known: BTreeSet<String> = BTreeSet::new();
        for module in &loaded.recording.modules {
            for function in &module.ir.functions {
                known.extend(gates(&module.ir, function).into_iter().map(|gate| gate.site));
            }
        }
        let count = script.turns.len();
        script.turns.retain(|turn| match &turn.target {
            Place::Site { site, .. } => is_of_library(site) || known.contains(site),
            Place::End | Place::Failure => true,
        });
        let dropped = count - script.turns.len();
        tracing::debug!(count, dropped, "lines of the failing schedule whose places are gone");
        if dropped > 0 {
            self.script = script.to_string();
        }
    }

    /// How runs are taken that are under no schedule, one after the other.
    pub(super) fn free_kind(&self, run: u32) -> Kind {
        match self.needs_late_write {
            true => Kind::Plain,
            false => Kind::Noisy(u64::from(run) + 1),
        }
    }

    /// Runs the program under the failing schedule. Where time limits do not end by that, a hang is one only if the program
    /// hangs as well when they do: what it does behind the recorded place may rest on them.
    pub(super) fn run_failing(&self) -> Result<Taken, FixError> {
        let taken = self.run(Kind::Scheduled, &self.script)?;
        if !taken.hung {
            return Ok(taken);
        }
        let Some(script) = without_waits(&self.script) else { return Ok(taken) };
        let again = self.run(Kind::Scheduled, &script)?;
        if again.failed {
            return Ok(taken);
        }
        tracing::debug!("the run only hangs where time limits do not end");
        Ok(Taken { failed: false, held_up: true, followed: false, hung: false, ..taken })
    }

    /// Runs the program, under this schedule where it is to follow one.
    pub(super) fn run(&self, kind: Kind, script: &str) -> Result<Taken, FixError> {
        let io = |action| move |source| ReplayError::Io { action, source };
        let scratch = Scratch::new("symbiosis-verify").map_err(io("make a temporary directory"))?;
        let directory = scratch.path().join("run.trace");
        let report = scratch.path().join("report");
        let mut environment: Vec<(&'static str, OsString)> = Vec::new();
        let mut perturbation = None;
        // What fails under a wrong patch fails as soon as the recorded run did.
        let endless = self.manifest.endless && !self.hung();
        let recorded = Duration::from_millis(self.manifest.duration_ms.unwrap_or_default());
        let timeout = match endless {
            true => self.settings.timeout.min(recorded.saturating_mul(LONGER) + A_WHILE),
            false => self.settings.timeout,
        };
        let most_bytes = match endless {
            true => self.manifest.stream_bytes().saturating_mul(LONGER.into()) + SHORT,
            false => replay::most_bytes(&self.manifest),
        };
        match kind {
            Kind::Scheduled | Kind::Forced => {
                let schedule = scratch.path().join("schedule");
                fs_err::write(&schedule, script).map_err(io("write the schedule"))?;
                environment.push((SCHEDULE_VARIABLE, schedule.into()));
                environment.push((REPORT_VARIABLE, report.clone().into()));
                let patience = self.settings.patience.as_millis().max(1);
                environment.push((PATIENCE_VARIABLE, patience.to_string().into()));
                if endless {
                    environment.push((TAIL_GATES_VARIABLE, TAIL.to_string().into()));
                }
            }
            Kind::Plain => {}
            Kind::Noisy(seed) => {
                // Both kinds have their turns, however few the runs.
                perturbation = Some(NOISE.of_run(draw_seed() & !1 | seed & 1, None));
            }
        }
        let fail_at = match &self.manifest.fail_at {
            Some(place) => Some(
                FailAt::find(self.program_file(), place)
                    .map_err(RecordError::from)
                    .map_err(ReplayError::from)?,
            ),
            None => None,
        };
        let options = record::Options {
            timeout: Some(timeout),
            detect: self.manifest.detect.is_some(),
            readings: None,
            fail_at,
            fail_if: self.manifest.fail_if.as_ref().map(|check| check.command.clone()),
            endless,
            show_output: false,
            follow: false,
            environment,
            openmp: self.manifest.openmp.clone(),
            confined: Some(Confined {
                directory: PathBuf::from(&self.manifest.directory),
                input: self.settings.input.clone(),
            }),
            perturbation,
            most_bytes: Some(most_bytes),
            // Under no schedule nobody else holds a thread back.
            ends_when_stuck: self.manifest.timed_out || self.hung() || !kind.has_schedule(),
        };
        let interrupts = Interrupts::catch();
        let run = record::run(&self.program, &directory, &options, &interrupts)
            .map_err(ReplayError::from)?;
        if let Some(signal) = interrupts.received() {
            return Err(ReplayError::Interrupted(signal).into());
        }
        drop(interrupts);
        let mut manifest = run.manifest;
        manifest.write(&directory).map_err(ReplayError::from)?;
        for (name, tail) in [
            (trace_format::files::STDOUT_TAIL, &run.stdout),
            (trace_format::files::STDERR_TAIL, &run.stderr),
        ] {
            fs_err::write(directory.join(name), tail).map_err(io("keep the program's output"))?;
        }
        trace_format::read_raw(&directory, &mut manifest).map_err(ReplayError::from)?;
        let report = fs_err::read(&report).ok().and_then(|bytes| Report::decode(&bytes));
        let followed = report.as_ref().is_some_and(|report| report.left.is_none());
        let deadlock = report.as_ref().is_some_and(|report| report.deadlock);
        let unfinished = is_unfinished(&manifest, options.ends_when_stuck);
        // A program that goes on until it fails was ended, and that is all.
        let went_on = endless && unfinished;
        let held_up = self.may_hold_up(kind) && unfinished && !went_on;
        let failed = (manifest.failure.is_some() && !held_up && !went_on) || deadlock;
        let held_up = held_up && !failed;
        let by_hang =
            manifest.failure.as_ref().is_some_and(|failure| failure.kind == FailureKind::Hang);
        let hung = failed && (by_hang || deadlock);
        let followed = followed && !held_up;
        let left = report.as_ref().and_then(|report| report.left);
        let still_running = manifest.still_running;
        tracing::debug!(?kind, failed, followed, ?left, ?still_running, "a run of the new program");
        let bytes = manifest.stream_bytes();
        Ok(Taken { kind, failed, hung, held_up, followed, bytes, directory, _scratch: scratch })
    }

    /// May a run that is still running at its end have been held up by its schedule? Under the failing schedule of a hang that is
    /// the failure itself.
    fn may_hold_up(&self, kind: Kind) -> bool {
        match kind {
            Kind::Forced => true,
            Kind::Scheduled => !self.hung(),
            Kind::Noisy(_) | Kind::Plain => false,
        }
    }

    /// Is the recorded failure a hang, a deadlock among them?
    fn hung(&self) -> bool {
        let failure = self.manifest.failure.as_ref();
        failure.is_some_and(|failure| failure.kind == FailureKind::Hang)
    }

    fn program_file(&self) -> &Path {
        &self.program.file
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace_format::Executable;

    #[test]
    fn a_log_is_far_longer_than_another_one_when_it_takes_longer_to_read() {
        assert!(!is_far_longer(SHORT, 100) && !is_far_longer(40 * SHORT, 4 * SHORT));
        assert!(is_far_longer(2 * SHORT, 100) && is_far_longer(100 * SHORT, 4 * SHORT));
    }

    #[test]
    fn time_limits_end_in_a_schedule_that_says_nothing_of_them() {
        let turns = "t0 > lock:~mutex_lock\nt0.1 !\n";
        let script = format!("symbiosis-schedule 1\nend hold\nwaits t0.1\n{turns}");
        let without = without_waits(&script).map(|script| script.contains("waits"));
        assert_eq!(without, Some(false), "{:?}", schedule::parse(&script));
        assert_eq!(without_waits(&script.replace("waits t0.1\n", "")), None);
    }

    /// A thread that is held back keeps those busy that look for it again and again; a run whose threads all wait hangs.
    #[test]
    fn a_run_that_was_held_up_has_not_failed() {
        let executable = Executable { path: "a".to_owned(), build_id: None };
        let mut manifest = Manifest::new("1", Vec::new(), String::new(), executable);
        assert!(!is_unfinished(&manifest, false));
        manifest.timed_out = true;
        manifest.failure = Some(trace_format::Failure {
            kind: FailureKind::Hang,
            thread_serial: None,
            thread: None,
            code: 0,
            fault_address: 0,
            fault_pc: 0,
            message: String::new(),
            path_bytes: 0,
            value_bytes: 0,
        });
        assert!(is_unfinished(&manifest, false) && !is_unfinished(&manifest, true));
        for still_running in [true, false] {
            manifest.still_running = Some(still_running);
            assert_eq!(is_unfinished(&manifest, true), still_running);
        }
    }
}
