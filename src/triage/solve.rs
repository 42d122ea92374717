//! The answer about each trace: the one that it keeps, or that of a `symbiosis solve` of its own.

use super::TriageError;
use super::process::{self, Ended};
use crate::answer;
use crate::cli::exit_codes;
use crate::compare::{failure, fingerprint, functions, variables};
use crate::errors::with_causes;
use crate::pipeline::whole_manifest;
use crate::record::ending;
use render::Solution;
use render::solution::{Cause, Replay, Verdict};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use trace_format::{Manifest, State};

/// How traces are solved.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// So many at a time.
    pub jobs: usize,
    /// The time for each.
    pub time: Duration,
    /// Have the program run under the schedules.
    pub replay: bool,
    /// Solve those too that keep an answer.
    pub again: bool,
}

/// What came of a trace.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The directory.
    pub trace: PathBuf,
    /// The recorded command.
    pub command: String,
    /// The program's name, without the directories that lead there.
    pub program: String,
    /// How long the run took, in milliseconds.
    pub duration_ms: Option<u64>,
    /// What came of it.
    pub end: End,
}

/// See [`Outcome::end`].
#[derive(Clone, Debug)]
pub enum End {
    /// The recorded run passed.
    Passed,
    /// There is an answer, though perhaps one that knows no cause.
    Answered(Box<Found>),
    /// There is none.
    Unsolved {
        /// What `solve` ended with; none where it was ended, or crashed.
        code: Option<u8>,
        /// What it said.
        reason: String,
    },
}

/// What a group is made by, from an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The fingerprint of the cause, if one is known.
    pub fingerprint: Option<String>,
    /// The family of the cause; empty where none is known.
    pub pattern: String,
    /// The sentence.
    pub cause: String,
    /// The last members of what it is about.
    pub variables: Vec<String>,
    /// The functions of its events.
    pub functions: Vec<String>,
    /// The kind and place of the failure.
    pub failure: String,
    /// The failure's message.
    pub message: String,
    /// Why there is no more to say.
    pub reason: String,
    /// What is known of the failing schedule.
    pub replay: Replay,
    /// There is an alternate that the program was seen to follow.
    pub alternate: bool,
    /// How many events the projection has.
    pub events: u64,
    /// The file that holds the answer.
    pub answer: PathBuf,
}

impl Found {
    /// What the answer in this file says. `ended`: how the run ended, in words, for an answer that does not
    /// know.
    fn of(solution: &Solution, answer: PathBuf, ended: &str) -> Self {
        let print = fingerprint(solution);
        // That every schedule fails, or that the run went on, is the same sentence for many bugs.
        let cause = solution.cause.as_ref().filter(|_| print.is_some());
        let of_cause = |get: fn(&Cause) -> &String| cause.map(get).cloned().unwrap_or_default();
        let known = failure(solution);
        let first = solution.alternates.first();
        Self {
            fingerprint: print.map(str::to_owned),
            pattern: of_cause(|cause| &cause.pattern),
            cause: of_cause(|cause| &cause.sentence),
            variables: if cause.is_some() { variables(solution) } else { Vec::new() },
            functions: if cause.is_some() { functions(solution) } else { Vec::new() },
            failure: if known.is_empty() { ended.to_owned() } else { known },
            message: solution.failure.as_ref().map(|at| at.message.clone()).unwrap_or_default(),
            reason: reason(solution),
            replay: solution.replay,
            alternate: first.is_some_and(|first| first.replay == Replay::Confirmed),
            events: solution.stats.dsp_events,
            answer,
        }
    }
}

/// Why an answer knows no more; empty where it knows the failing schedule.
fn reason(solution: &Solution) -> String {
    let why = solution.reason.clone().unwrap_or_default();
    let what = match (solution.verdict, &solution.cause) {
        (Verdict::FailingSchedule, Some(_)) if fingerprint(solution).is_some() => {
            return String::new();
        }
        (_, Some(cause)) if fingerprint(solution).is_none() => &cause.sentence,
        (Verdict::FailingSchedule, _) => "no cause was found",
        (Verdict::NoSchedule, _) => "no schedule of the recorded run fails",
        (Verdict::Unknown, _) => "no schedule was found",
    };
    if why.is_empty() { what.to_owned() } else { format!("{what}: {why}") }
}

/// Solves all of them. `done` is told of each one that is ready, from any thread. Answers are left in
/// `scratch`, a directory, unless the traces keep them.
///
/// # Errors
/// When a process cannot be started.
pub fn solve_all(
    traces: &[PathBuf],
    options: &Options,
    scratch: &Path,
    done: &(dyn Fn(&Path) + Sync),
) -> Result<Vec<Outcome>, TriageError> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<(usize, Result<Outcome, TriageError>)>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..options.jobs.clamp(1, traces.len().max(1)) {
            scope.spawn(|| {
                while let Some((index, trace)) = take(&next, traces) {
                    let outcome = outcome(trace, options, &scratch.join(index.to_string()));
                    done(trace);
                    let broken = outcome.is_err();
                    let mut results = results.lock().unwrap_or_else(|error| error.into_inner());
                    results.push((index, outcome));
                    if broken {
                        // Nor could any other be started.
                        next.store(traces.len(), Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(|error| error.into_inner());
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, outcome)| outcome).collect()
}

fn take<'a>(next: &AtomicUsize, traces: &'a [PathBuf]) -> Option<(usize, &'a Path)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    Some((index, traces.get(index)?.as_path()))
}

/// What becomes of a trace. `place`: where its answer may go, with an ending.
fn outcome(trace: &Path, options: &Options, place: &Path) -> Result<Outcome, TriageError> {
    let manifest = whole_manifest(trace);
    let known = manifest.as_ref().ok();
    let end = match &manifest {
        Err(error) => {
            End::Unsolved { code: Some(exit_codes::BAD_TRACE), reason: with_causes(error) }
        }
        Ok(manifest) if passed(manifest) => End::Passed,
        Ok(manifest) => answered(trace, options, (&ending(manifest), place))?,
    };
    Ok(Outcome {
        trace: trace.to_owned(),
        command: known.map(|manifest| manifest.command.join(" ")).unwrap_or_default(),
        program: known.and_then(program).unwrap_or_default(),
        duration_ms: known.and_then(|manifest| manifest.duration_ms),
        end,
    })
}

/// There may be spaces in it, and in the directories before it.
fn program(manifest: &Manifest) -> Option<String> {
    let name = Path::new(manifest.command.first()?).file_name()?;
    Some(name.to_string_lossy().into_owned())
}

/// Of one whose recorder was killed it is not known.
fn passed(manifest: &Manifest) -> bool {
    manifest.failure.is_none() && manifest.state == State::Complete
}

fn answered(
    trace: &Path,
    options: &Options,
    (ended, place): (&str, &Path),
) -> Result<End, TriageError> {
    if !options.again
        && let Ok(solution) = answer::kept(trace)
    {
        let found = Found::of(&solution, answer::kept_file(trace), ended);
        return Ok(End::Answered(Box::new(found)));
    }
    let out = place.with_extension("json");
    let mut arguments: Vec<&OsStr> = Vec::new();
    if !options.replay {
        arguments.push("--no-replay".as_ref());
    }
    arguments.extend(["--output".as_ref(), out.as_os_str(), "--".as_ref(), trace.as_os_str()]);
    let Ended { status, said, limit } = process::ask("solve", &arguments, options.time, place)?;
    let text = fs_err::read_to_string(&out).ok();
    if let Some(solution) = text.and_then(|text| serde_json::from_str::<Solution>(&text).ok()) {
        return Ok(End::Answered(Box::new(Found::of(&solution, out, ended))));
    }
    let code = status.and_then(|status| status.code()).and_then(|code| u8::try_from(code).ok());
    let reason = match status {
        None => format!("`symbiosis solve` was ended after {} s", limit.as_secs()),
        Some(status) if said.is_empty() => format!("`symbiosis solve` ended with {status}"),
        Some(_) => said,
    };
    Ok(End::Unsolved { code, reason })
}

#[cfg(test)]
mod tests {
    use super::*;
    use render::solution::STILL_RUNNING;

    #[test]
    fn a_run_that_went_on_has_no_cause() {
        let cause = Cause {
            pattern: STILL_RUNNING.to_owned(),
            sentence: "it was still running".to_owned(),
            fingerprint: "0123456789abcdef".to_owned(),
            ..Cause::default()
        };
        let solution = Solution { cause: Some(cause), ..Solution::default() };
        let found = Found::of(&solution, PathBuf::new(), "ended by the time-out");
        assert_eq!(found.fingerprint, None);
        assert_eq!(found.failure, "ended by the time-out");
        assert_eq!(found.reason, "it was still running");
    }
}
