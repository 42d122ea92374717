//! Did the run do what the schedule claims?
//!
//! *Reproduced*: the same kind of failure at the same place in the same thread. *Passed*: the run
//! came past the place of the failure without it. Cheap comparisons come first; the run's own trace
//! is executed symbolically only when they do not decide.

use super::Attempt;
use super::original::{executed_for_failure, failure_place};
use crate::record::ending;
use model::{EventKind, EventTrace, FailureCondition, Site};
use std::collections::BTreeSet;
use trace_format::layout::LeftReason;
use trace_format::{Failure, FailureKind, Manifest, Module, Trace, outcomes};

/// What a schedule is said to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// The recorded failure.
    Fails,
    /// No failure.
    Passes,
}

/// What a run did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The recorded failure, again.
    Reproduced,
    /// Another failure.
    Different {
        /// Which, in words.
        found: String,
    },
    /// The recorded failure, but in another thread.
    Moved {
        /// Which, in words.
        found: String,
    },
    /// It came past the place of the failure.
    Passed {
        /// How it failed later, in words; none when it ended well.
        later: Option<String>,
    },
    /// It left the schedule, and did not do what the schedule claims.
    Left {
        /// What it did, in words.
        found: String,
    },
}

impl Verdict {
    /// Does this bear out what the schedule claims?
    #[must_use]
    pub fn confirms(&self, claim: Claim) -> bool {
        match claim {
            Claim::Fails => *self == Self::Reproduced,
            Claim::Passes => matches!(self, Self::Passed { .. }),
        }
    }
}

/// Judges a run under a schedule with this claim.
#[must_use]
pub fn judge(claim: Claim, original: &Manifest, attempt: &Attempt) -> Verdict {
    match claim {
        Claim::Fails => failing(original, attempt),
        Claim::Passes => passing(original, attempt),
    }
}

/// How it is said of a run under an alternate schedule that it failed all the same, at another place or in a later round.
pub const FAILED_BEHIND: &str = "the run came past the failure's place, and then failed";

/// How it is said of a run under an alternate schedule that would have gone on for ever.
const ENDED_BEHIND: &str = "the run came past the failure's place, and was ended while it went on";

/// How it is said of any other run that would have gone on.
const WENT_ON: &str = "the run went on without the failure, and was ended";

/// How it is said of an alternate schedule behind which the same failure came once more, unless threads went on one after the other.
pub const AGAIN_BEHIND: &str = "when all threads go on at will, the same may happen again";

/// What is to be said of a run besides whether it bears out the claim; nothing when it did exactly
/// what the schedule says.
#[must_use]
pub fn note(claim: Claim, verdict: &Verdict, attempt: &Attempt) -> Option<String> {
    let did = match (claim, verdict) {
        (Claim::Passes, Verdict::Passed { later: None }) if attempt.report.far => {
            Some(ENDED_BEHIND.to_owned())
        }
        (Claim::Fails, Verdict::Reproduced) | (Claim::Passes, Verdict::Passed { later: None }) => {
            None
        }
        (Claim::Passes, Verdict::Reproduced) => Some("the run fails all the same".to_owned()),
        (_, Verdict::Passed { later: None }) if attempt.report.far => Some(WENT_ON.to_owned()),
        (_, Verdict::Passed { later: None }) => Some("the run passed".to_owned()),
        (_, Verdict::Passed { later: Some(found) }) => Some(format!("{FAILED_BEHIND}: {found}")),
        (_, Verdict::Moved { found }) => {
            Some(format!("the failure only moves to another thread: {found}"))
        }
        (_, Verdict::Different { found } | Verdict::Left { found }) => {
            Some(format!("the run ended otherwise: {found}"))
        }
    };
    let departure = || attempt.departure().map(|departure| departure.to_string());
    let left = if left_in_earnest(claim, attempt) { departure() } else { None };
    match (did, left) {
        (Some(did), Some(left)) => Some(format!("{did}; {left}")),
        (did, left) => did.or(left),
    }
}

/// Judges a run under a failing schedule. A run that reproduced the failure although it left the
/// schedule has reproduced it; [`Attempt::departure`] has more to say then.
#[must_use]
pub fn failing(original: &Manifest, attempt: &Attempt) -> Verdict {
    if is_same_failure(original, attempt) {
        return Verdict::Reproduced;
    }
    let found = ending(&attempt.manifest);
    if attempt.report.left.is_some() {
        Verdict::Left { found }
    } else if attempt.manifest.failure.is_some() {
        Verdict::Different { found }
    } else {
        Verdict::Passed { later: None }
    }
}

/// Judges a run under an alternate schedule: it has to follow the schedule past the failure's
/// place. A run that left it before shows nothing, because most runs pass under any schedule. What
/// comes behind that place was never recorded, so there the schedule can only be a guess.
#[must_use]
pub fn passing(original: &Manifest, attempt: &Attempt) -> Verdict {
    let past = went_past(original, attempt);
    if !past && is_same_failure(original, attempt) {
        return Verdict::Reproduced;
    }
    let found = ending(&attempt.manifest);
    if left_in_earnest(Claim::Passes, attempt) {
        return Verdict::Left { found };
    }
    match &attempt.manifest.failure {
        None if attempt.report.far && !past => Verdict::Different { found: WENT_ON.to_owned() },
        None => Verdict::Passed { later: None },
        // What only leaves the failure to another thread avoids nothing.
        Some(_) if is_moved(original, attempt) => Verdict::Moved { found },
        Some(failure) if failure.kind != FailureKind::Hang && past => {
            Verdict::Passed { later: Some(found) }
        }
        Some(_) => Verdict::Different { found },
    }
}

/// Did the run leave the schedule while it still mattered? An alternate matters up to the last
/// turn of the thread that failed in the recorded run.
#[must_use]
pub fn left_in_earnest(claim: Claim, attempt: &Attempt) -> bool {
    let Some(left) = attempt.report.left else { return false };
    if claim == Claim::Fails {
        // To wait for what never comes is what the last turn of a deadlock is about.
        let line = attempt.script.lines().nth((left.line as usize).saturating_sub(1));
        let last = line.is_some_and(|line| line.split(" #").next().unwrap_or("").ends_with('!'));
        // Nothing fails when a status or the output is what tells: the process just ends.
        let kind = attempt.original.manifest().failure.as_ref().map(|failure| failure.kind);
        let told_by_end = matches!(kind, Some(FailureKind::Output | FailureKind::Exit))
            || (kind != Some(FailureKind::Hang) && attempt.original.hung());
        // The library tells of a panic under locks that others may have. Who catches it, as a harness of tests does, has
        // the thread go on to its end.
        // So has a handler of a crash that waits until others have told of it.
        let may_go_on = matches!(
            kind,
            Some(FailureKind::Panic | FailureKind::Signal | FailureKind::UseAfterFree)
        );
        let is_told = may_go_on
            && matches!(left.reason, LeftReason::Ended | LeftReason::Blocked)
            && is_same_failure(attempt.original.manifest(), attempt);
        return !((attempt.report.deadlock || told_by_end || is_told) && last);
    }
    let Some(thread) = attempt.original.failing_thread() else { return true };
    let mut lines = attempt.script.lines().zip(1u32..);
    let own = |line: &str| line.split_whitespace().next() == Some(thread);
    lines.any(|(line, number)| number >= left.line && own(line))
}

/// Did the run fail as the recorded one, in the same thread or in another? That thread has not got away either where
/// it uses memory that is not there: what it failed of shows in one way or another, by a check, by the access that is
/// noticed, by the next one, or by a pointer that it found. Of a run that failed long behind the failure's place it is taken that
/// it did so in another way: to look takes longer than all else.
#[must_use]
pub fn fails(claim: Claim, verdict: &Verdict, original: &Manifest, attempt: &Attempt) -> bool {
    let behind = claim == Claim::Passes && matches!(verdict, Verdict::Passed { .. });
    if behind && attempt.is_long() {
        return false;
    }
    // Threads that come to one throw along other paths.
    let thrown = match (&original.failure, &attempt.manifest.failure) {
        (Some(recorded), Some(found)) => {
            recorded.kind == FailureKind::Exception
                && found.kind == FailureKind::Exception
                && recorded.message == found.message
        }
        _ => false,
    };
    let bad_memory = match (&original.failure, &attempt.manifest.failure) {
        (Some(recorded), Some(found)) => recorded.thread == found.thread && is_of_memory(found),
        _ => false,
    };
    thrown || bad_memory || is_same_failure(original, attempt) || is_moved(original, attempt)
}

/// Is it a sign of memory that is used though it is not there, or not the thread's to use?
fn is_of_memory(failure: &Failure) -> bool {
    match failure.kind {
        FailureKind::UseAfterFree | FailureKind::DoubleFree | FailureKind::HeapCorruption => true,
        FailureKind::Signal => [libc::SIGSEGV, libc::SIGBUS].map(i64::from).contains(&failure.code),
        _ => false,
    }
}

fn is_same_failure(original: &Manifest, attempt: &Attempt) -> bool {
    let Some(recorded) = &original.failure else { return false };
    // The same threads wait at the same places; another deadlock is another failure. Who noticed does not matter.
    let noticed = || recorded.kind != FailureKind::Hang && attempt.original.hung();
    if (recorded.kind == FailureKind::Hang && attempt.report.deadlock) || noticed() {
        return (attempt.report.deadlock || attempt.manifest.failure.is_some())
            && is_same_hang(attempt);
    }
    let Some(found) = &attempt.manifest.failure else { return false };
    let same = recorded.thread == found.thread && is_same_but_for_thread(recorded, found, attempt);
    same || is_same_gone_object(attempt)
}

/// Did both fail of an object of synchronisation that had ended, which the thread asked for at the same place? What it comes to by
/// that depends on what lies there by then: an exception, a crash, or no end at all.
fn is_same_gone_object(attempt: &Attempt) -> bool {
    let asked = |trace: &EventTrace| {
        let failure = trace.failure.as_ref()?;
        let FailureCondition::Before(end, asked) = failure.condition else { return None };
        let (end, asked) = (trace.event(end), trace.event(asked));
        let fits = trace.ends_local(end) && matches!(asked.kind, EventKind::Block { .. });
        fits.then(|| (trace.thread_of(asked.id).name.clone(), asked.site().clone()))
    };
    let recorded = attempt.original.execution().and_then(|execution| asked(&execution.trace));
    recorded.is_some()
        && recorded == executed_for_failure(attempt).and_then(|found| asked(&found.trace))
}

/// Is it the recorded failure, but in another one of the threads that the recorded run had? One that
/// began later has its own. A status, the output and a hang are the process's.
fn is_moved(original: &Manifest, attempt: &Attempt) -> bool {
    let Some((recorded, found)) = original.failure.as_ref().zip(attempt.manifest.failure.as_ref())
    else {
        return false;
    };
    let whole =
        matches!(recorded.kind, FailureKind::Exit | FailureKind::Output) || attempt.original.hung();
    let had = |trace: &Trace| {
        trace.threads().iter().any(|thread| Some(&thread.name) == found.thread.as_ref())
    };
    !whole
        && recorded.thread != found.thread
        && attempt.original.trace().is_none_or(had)
        && is_same_but_for_thread(recorded, found, attempt)
}

fn is_same_but_for_thread(recorded: &Failure, found: &Failure, attempt: &Attempt) -> bool {
    if recorded.kind != found.kind {
        return false;
    }
    match recorded.kind {
        // The message holds file, line and function.
        FailureKind::Assertion | FailureKind::User | FailureKind::Reached | FailureKind::Panic => {
            recorded.message == found.message
        }
        // The check speaks of the whole output.
        FailureKind::Output => true,
        FailureKind::Hang => is_same_hang(attempt),
        FailureKind::Abort
        | FailureKind::Exit
        | FailureKind::UseAfterFree
        | FailureKind::DoubleFree
        | FailureKind::HeapCorruption
        | FailureKind::StackOverflow
        | FailureKind::Exception => is_same_place(recorded, found, attempt),
        FailureKind::Signal => {
            recorded.code == found.code && is_same_place(recorded, found, attempt)
        }
    }
}

fn is_same_place(recorded: &Failure, found: &Failure, attempt: &Attempt) -> bool {
    if recorded.kind == FailureKind::Exit && recorded.code != found.code {
        return false;
    }
    let traces = attempt.original.trace().zip(Trace::open(&attempt.directory).ok());
    if let Some((original, now)) = &traces {
        let at = |trace: &Trace, failure: &Failure| address(trace.modules(), failure.fault_pc);
        let (there, here) = (at(original, recorded), at(now, found));
        if there.is_some() && there == here {
            return true;
        }
        // The same path leads to the same place.
        let path = |trace, failure| path_of_failing(trace, failure);
        let (there, here) = (path(original, recorded), path(now, found));
        if there.is_some() && there == here {
            return true;
        }
    }
    is_same_source_place(attempt)
}

/// The last resort: where do the executed paths fail?
fn is_same_source_place(attempt: &Attempt) -> bool {
    let _span = tracing::info_span!("compare_failures").entered();
    let recorded = attempt.original.walked().and_then(|walked| walked.place.clone());
    let found = executed_for_failure(attempt).and_then(|execution| failure_place(&execution.trace));
    recorded.is_some() && recorded == found
}

/// Do all threads that the hang is about wait where they did?
fn is_same_hang(attempt: &Attempt) -> bool {
    let _span = tracing::info_span!("compare_hangs").entered();
    let found = executed_for_failure(attempt);
    let Some((recorded, found)) = attempt.original.execution().zip(found) else { return false };
    let kind = |trace: &EventTrace| trace.failure.as_ref().map(|failure| failure.kind);
    let recorded = &recorded.trace;
    let waits = concerned(recorded);
    let all = waits.iter().all(|thread| {
        let there = waiting_place(recorded, thread);
        there.is_none() || there == waiting_place(&found.trace, thread)
    });
    all && !waits.is_empty() && kind(recorded) == kind(&found.trace)
}

/// The names of the threads that a hang is about: the one that failed, and those that the
/// condition names.
fn concerned(trace: &EventTrace) -> BTreeSet<String> {
    let Some(failure) = &trace.failure else { return BTreeSet::new() };
    let mut events = vec![failure.event];
    let mut open = vec![&failure.condition];
    while let Some(condition) = open.pop() {
        match condition {
            FailureCondition::Value(_) => {}
            // Who came first, with a signal, say, has gone on since, and may be anywhere when the run is ended.
            FailureCondition::Before(_, b) => events.push(*b),
            FailureCondition::Unwoken { began, .. } => events.push(*began),
            FailureCondition::All(parts) | FailureCondition::Any(parts) => open.extend(parts),
        }
    }
    events.into_iter().map(|id| trace.thread_of(id).name.clone()).collect()
}

/// Where the thread of this name waits at the end.
fn waiting_place<'t>(trace: &'t EventTrace, thread: &str) -> Option<&'t Site> {
    let thread = trace.threads.iter().find(|other| other.name == thread)?;
    let mut events = thread.events.iter().map(|&id| trace.event(id));
    let wait = events.find(|event| matches!(event.kind, EventKind::Block { .. }))?;
    Some(wait.site())
}

/// An address as the offset in a function of a module; none when it is not in instrumented code,
/// as far as can be told.
fn address(modules: &[Module], pc: u64) -> Option<(usize, usize, u64)> {
    let mut nearest: Option<(usize, usize, u64)> = None;
    for (number, module) in modules.iter().enumerate() {
        for (index, &start) in module.functions.iter().enumerate() {
            if start != 0 && start <= pc && nearest.is_none_or(|(.., offset)| pc - start < offset) {
                nearest = Some((number, index, pc - start));
            }
        }
    }
    nearest
}

/// The failing thread's path up to the failure, see [`trace_format::outcomes`].
fn path_of_failing(trace: &Trace, failure: &Failure) -> Option<Vec<u32>> {
    let serial = failure.thread_serial?;
    let thread = trace.threads().iter().find(|thread| thread.serial == serial)?;
    let bytes = if failure.path_bytes > 0 { failure.path_bytes } else { u64::MAX };
    Some(outcomes(&trace.path_entries_until(thread, bytes).ok()?))
}

/// Does it say nothing of the failure, since the run was ended before the failing thread had come past its place?
pub(super) fn is_undecided(attempt: &Attempt) -> bool {
    attempt.report.far && !went_past(attempt.original.manifest(), attempt)
}

/// Did the thread that failed in the recorded run come further than it did then? A failure at the
/// same place is a later one when the path to it is longer and not the recorded one, or goes on from that one behind the
/// schedule's end. Where a signal ends a thread, it may be the log that is longer.
fn went_past(original: &Manifest, attempt: &Attempt) -> bool {
    let Some(failure) = &original.failure else { return true };
    let now = &attempt.manifest;
    let failing = attempt.original.failing_thread();
    let same = |thread: &&trace_format::Thread| Some(thread.name.as_str()) == failing;
    let Some(thread) = now.threads.iter().find(same) else { return false };
    let own = now.failure.as_ref().filter(|found| found.thread_serial == Some(thread.serial));
    if thread.ended && own.is_none() {
        return true;
    }
    let path_now = || {
        let trace = Trace::open(&attempt.directory).ok()?;
        match own {
            Some(own) => path_of_failing(&trace, own),
            None => Some(outcomes(&trace.path_entries(thread).ok()?)),
        }
    };
    let then = attempt.original.trace().and_then(|trace| path_of_failing(trace, failure));
    let followed = attempt.report.left.is_none() && attempt.report.followed == attempt.report.lines;
    let goes_on = followed && own.is_some_and(|own| own.kind != FailureKind::Signal);
    match (then, path_now()) {
        (Some(then), Some(now)) => now.len() > then.len() && (goes_on || !now.starts_with(&then)),
        _ => false,
    }
}
