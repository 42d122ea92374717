//! A failure that no schedule leads to in which every write is seen at once: with writes that other threads see
//! late (φmo of x86, `encoders::models::tso`). No run can be made to follow such a schedule.

use super::PipelineError;
use super::work::{Explained, Work};
use encoders::models::tso::{Delayed, Late, delayed};
use model::evaluate::{Evaluation, evaluate};
use model::{EventId, EventKind, EventTrace, Schedule, ThreadId, VarId};
use std::borrow::Cow;
use std::collections::HashSet;

/// Threads whose writes are taken to be late alone, where no schedule fails with those of all.
const ALONE: usize = 8;

/// What is said of the failing schedule.
pub(super) const NOTE: &str = "it has a write that other threads see late, which no run can be made to have; no order of the recorded events \
     in which every write is seen at once leads to this failure";

/// A failing schedule with late writes.
pub(super) struct LateWrites {
    /// About a trace in which the late writes stand behind the reads that overtook them.
    pub(super) explained: Explained<'static>,
    /// The late writes: no fewer are enough.
    pub(super) late: Vec<Late>,
}

/// Looks for a failing schedule with late writes, as few of them as are enough.
pub(super) fn explain(
    trace: &EventTrace,
    work: &mut Work<'_>,
) -> Result<Option<LateWrites>, PipelineError> {
    let timing = work.timing;
    let Some((wanted, most)) = search(trace, work)? else { return Ok(None) };
    let few = delayed(trace, &|id| wanted.contains(&id));
    tracing::info!(late = few.late.len(), of = most, "a failing schedule has late writes");
    work.timing = timing;
    let Explained { size, explanation, trace } = work.explain(&few.trace)?;
    let explained = Explained { trace: Cow::Owned(trace.into_owned()), size, explanation };
    Ok(Some(LateWrites { explained, late: few.late }))
}

/// The writes that have to be late, and how many could be.
fn search(
    trace: &EventTrace,
    work: &mut Work<'_>,
) -> Result<Option<(HashSet<EventId>, usize)>, PipelineError> {
    let all = delayed(trace, &|_| true);
    let writers: Vec<ThreadId> = {
        let threads = all.late.iter().map(|late| all.trace.event(late.write).thread);
        let mut threads: Vec<ThreadId> = threads.collect();
        threads.dedup();
        threads
    };
    let most = all.late.len();
    let of_one = |thread: ThreadId| delayed(trace, &move |id| trace.event(id).thread == thread);
    let alone = writers.iter().copied().take(ALONE).filter(|_| writers.len() > 1);
    for made in std::iter::once(all).chain(alone.map(of_one)) {
        if made.late.is_empty() || work.is_over() {
            continue;
        }
        let explained = work.explain(&made.trace)?;
        if let Some(failing) = &explained.explanation.failing {
            let order = (&failing.schedule, &failing.evaluation);
            return Ok(Some((fewest(trace, &made, order, &|| work.is_over()), most)));
        }
    }
    Ok(None)
}

/// As few of the writes of `trace` as have to be seen late for a failing schedule of `all`, in which all that may be
/// are: more and more of them are seen at once, as long as it fails and there is time.
pub fn fewest(
    trace: &EventTrace,
    all: &Delayed,
    (schedule, evaluation): (&Schedule, &Evaluation),
    is_over: &dyn Fn() -> bool,
) -> HashSet<EventId> {
    let inputs = |var: VarId| evaluation.values.get(var.index()).copied().flatten();
    let fails = |waiting: &[EventId]| {
        let waiting: HashSet<EventId> = waiting.iter().copied().collect();
        let fewer = delayed(trace, &|id| waiting.contains(&id));
        let order = all.undone(&schedule.order, &fewer);
        let found = evaluate(&fewer.trace, &Schedule { order, ..schedule.clone() }, &inputs);
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
    while size > 0 && !is_over() {
        let mut from = 0;
        while from < waiting.len() {
            let to = (from + size).min(waiting.len());
            let without = [&waiting[..from], &waiting[to..]].concat();
            match fails(&without) {
                true => waiting = without,
                false => from = to,
            }
            if is_over() {
                break;
            }
        }
        size /= 2;
    }
    waiting.into_iter().collect()
}
