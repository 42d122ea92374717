//! A failure that no schedule leads to in which every write is seen at once: with writes that other threads see
//! late (φmo of x86, `encoders::models::tso`). No run can be made to follow such a schedule.

use super::PipelineError;
use super::budget::Budget;
use super::followed::{HOPELESS, recorded};
use super::work::{Explained, Work};
use encoders::models::tso::{Delayed, Late, delayed};
use model::evaluate::{Evaluation, evaluate};
use model::{EventId, EventKind, EventTrace, Schedule, ThreadId, VarId};
use std::borrow::Cow;
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// Threads whose writes are taken to be late alone, where no schedule fails with those of all.
const ALONE: usize = 8;

/// Of a trace with fewer events that matter it takes no time to show that no other schedule fails.
const LONG: usize = 2_000;
/// So long other schedules are looked for where the recorded run had late writes by all that its clock tells.
const OTHERS: Duration = Duration::from_secs(20);

/// So long the late writes that are not needed are looked for, ...
const FEWEST: Duration = Duration::from_secs(60);
/// ... and so long root cause and alternates behind that.
const ORDERS: Duration = Duration::from_secs(30);

/// What is said of the failing schedule.
pub(super) const NOTE: &str = "it has a write that other threads see late, which no run can be made to have; no order of the recorded events \
     in which every write is seen at once leads to this failure";

/// The same where other schedules were not all looked at.
pub(super) const LIKELY: &str = "it has a write that other threads see late, which no run can be made to have; whether an order of the \
     recorded events in which every write is seen at once leads to this failure, too, is not known";

/// Until when to look for other schedules: not for long where the recorded run, in the order that its clock tells,
/// fails with late writes and not without. `None` where that is not so.
pub(super) fn look_for_others_until(
    trace: &EventTrace,
    work: &Work<'_>,
) -> Result<Option<Instant>, PipelineError> {
    if trace.events.len() < LONG || encoders::slice_below(trace, LONG)?.is_some() {
        return Ok(None);
    }
    let budget = Budget::new(work.deadline, work.options.memory_mb);
    let all = delayed(trace, &|_| true);
    let fails =
        |trace: &EventTrace| Ok::<_, PipelineError>(work.follow(trace, true, &budget)?.is_some());
    let likely = !all.late.is_empty() && !fails(trace)? && fails(&all.trace)?;
    tracing::info!(likely, "asked whether the recorded run had late writes");
    // The constraints on all schedules of some take longer than that to make.
    let hopeless = encoders::sources(trace) > HOPELESS.0;
    let others = if hopeless { Duration::ZERO } else { OTHERS };
    Ok(likely.then(|| Instant::now() + others.min(work.left())))
}

/// A failing schedule with late writes.
pub(super) struct LateWrites {
    /// About a trace in which the late writes stand behind the reads that overtook them.
    pub(super) explained: Explained<'static>,
    /// The late writes: no fewer are enough.
    pub(super) late: Vec<Late>,
}

/// What came of the search.
pub(super) enum Sought<T> {
    Found(T),
    /// No schedule fails in which the writes of all threads are seen as late as they may be, nor one in which those of
    /// one thread are.
    None,
    /// The search ended early.
    Unknown,
}

/// Looks for a failing schedule with late writes, as few of them as are enough.
pub(super) fn explain(
    trace: &EventTrace,
    work: &mut Work<'_>,
) -> Result<Sought<LateWrites>, PipelineError> {
    let timing = work.timing;
    let (wanted, most) = match search(trace, work)? {
        Sought::Found(found) => found,
        Sought::None => return Ok(Sought::None),
        Sought::Unknown => return Ok(Sought::Unknown),
    };
    let few = delayed(trace, &|id| wanted.contains(&id));
    tracing::info!(late = few.late.len(), of = most, "a failing schedule has late writes");
    work.timing = timing;
    // The orders beside the late writes say little more.
    let deadline = work.deadline;
    let soon = Instant::now() + ORDERS;
    work.deadline = Some(deadline.map_or(soon, |deadline| deadline.min(soon)));
    let explained = work.explain(&few.trace);
    work.deadline = deadline;
    let Explained { size, explanation, trace } = explained?;
    if explanation.failing.is_none() {
        return Ok(Sought::Unknown);
    }
    let explained = Explained { trace: Cow::Owned(trace.into_owned()), size, explanation };
    Ok(Sought::Found(LateWrites { explained, late: few.late }))
}

/// The writes that have to be late, and how many could be.
fn search(
    trace: &EventTrace,
    work: &mut Work<'_>,
) -> Result<Sought<(HashSet<EventId>, usize)>, PipelineError> {
    let all = delayed(trace, &|_| true);
    let writers: Vec<ThreadId> = {
        let threads = all.late.iter().map(|late| all.trace.event(late.write).thread);
        let mut threads: Vec<ThreadId> = threads.collect();
        threads.dedup();
        threads
    };
    let most = all.late.len();
    let deadline = work.deadline;
    let few = |made: &Delayed, failing: (&Schedule, &Evaluation)| {
        let until = Instant::now() + FEWEST;
        let end = deadline.map_or(until, |deadline| deadline.min(until));
        let wanted = fewest(trace, made, failing, &|| Instant::now() >= end);
        wanted.map_or(Sought::Unknown, |wanted| Sought::Found((wanted, most)))
    };
    let mut open = writers.len() > ALONE;
    let of_one = |thread: ThreadId| delayed(trace, &move |id| trace.event(id).thread == thread);
    let alone = writers.iter().copied().take(ALONE).filter(|_| writers.len() > 1);
    for made in std::iter::once(all).chain(alone.map(of_one)) {
        if made.late.is_empty() {
            continue;
        }
        if let Some((schedule, evaluation)) = followed(&made.trace, work)? {
            return Ok(few(&made, (&schedule, &evaluation)));
        }
        let explained = work.explain(&made.trace)?;
        if let Some(failing) = &explained.explanation.failing {
            return Ok(few(&made, (&failing.schedule, &failing.evaluation)));
        }
        open |= explained.explanation.verdict != explain::Verdict::NoSchedule;
    }
    Ok(if open { Sought::Unknown } else { Sought::None })
}

/// The failing schedule that the recorded run's clock tells, for a long trace.
fn followed(
    trace: &EventTrace,
    work: &Work<'_>,
) -> Result<Option<(Schedule, Evaluation)>, PipelineError> {
    if trace.events.len() < LONG {
        return Ok(None);
    }
    let budget = Budget::new(work.deadline, work.options.memory_mb);
    let Some(schedule) = work.follow(trace, true, &budget)? else { return Ok(None) };
    let evaluation = evaluate(trace, &schedule, &recorded(trace)).ok();
    Ok(evaluation.filter(|evaluation| evaluation.fails).map(|evaluation| (schedule, evaluation)))
}

/// As few of the writes of `trace` as have to be seen late for a failing schedule of `all`, in which all that may be
/// are: more and more of them are seen at once, as long as it fails. `None` where there is no time for that.
pub fn fewest(
    trace: &EventTrace,
    all: &Delayed,
    (schedule, evaluation): (&Schedule, &Evaluation),
    is_over: &dyn Fn() -> bool,
) -> Option<HashSet<EventId>> {
    let inputs = |var: VarId| evaluation.values.get(var.index()).copied().flatten();
    let fails = |waiting: &[EventId]| {
        let waiting: HashSet<EventId> = waiting.iter().copied().collect();
        let fewer = delayed(trace, &|id| waiting.contains(&id));
        let order = all.undone(&schedule.order, &fewer);
        let found = evaluate(&fewer.trace, &Schedule { order }, &inputs);
        found.is_ok_and(|evaluation| evaluation.fails)
    };
    // Those that are not late themselves may keep others from being seen before them.
    let threads: HashSet<ThreadId> =
        all.late.iter().map(|late| all.trace.event(late.write).thread).collect();
    let mut waiting: Vec<EventId> = trace
        .events
        .iter()
        .filter(|event| threads.contains(&event.thread))
        .filter(|event| matches!(event.kind, EventKind::Write { .. }) && !event.drains)
        .map(|event| event.id)
        .collect();
    let mut size = waiting.len();
    while size > 0 {
        let mut from = 0;
        while from < waiting.len() {
            let to = (from + size).min(waiting.len());
            let without = [&waiting[..from], &waiting[to..]].concat();
            match fails(&without) {
                true => waiting = without,
                false => from = to,
            }
            if is_over() {
                return None;
            }
        }
        size /= 2;
    }
    Some(waiting.into_iter().collect())
}
