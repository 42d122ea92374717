//! An update that was lost on the way to the failure: a thread read, another one wrote, and the first one wrote back what
//! it had made of what it had read.
//!
//! Where threads count, or add up, a few hundred times and the sum is looked at in the end, the pair of events that the
//! passing run has the other way round may be any two of them, or an order in which something else was done: all of them
//! change who meets whom. What the failing schedule shows for itself is the update that went into nothing, or the thread
//! that wrote because of what was no longer so.

use super::atomicity::{Case, Triple, found};
use super::story::Story;
use super::{CauseEvent, Found, stale};
use model::{CellId, EventId, EventKind, PathConditionKind, ReadRef, VarId};
use std::collections::BTreeSet;

/// So many of the places that the failing thread went by, the last first, are looked at.
const CELLS: usize = 256;

/// So many branches before a free are looked at.
const WAYS: usize = 4;

/// So many updates may be missing in what the failure's condition names.
const MISSING: u128 = 64;

/// The last update that was lost of what decided that the run fails, where all that is `known` so far is which of two
/// steps came first.
pub(super) fn find(story: &Story<'_>, known: &Found) -> Option<Found> {
    let failure = story.trace().failure.as_ref()?.event;
    let reads = story.failure_reads();
    let cells_of = |reads: &BTreeSet<ReadRef>| -> BTreeSet<CellId> {
        reads.iter().filter_map(|read| cell_of(story, *read)).collect()
    };
    let named = cells_of(&reads);
    let told = known.events.iter().filter_map(|event| match event {
        CauseEvent::Failing(id) => Some(*id),
        CauseEvent::Passing(_) => None,
    });
    let told: BTreeSet<CellId> = told.flat_map(|id| story.cells(id)).collect();
    // What is known may be about the very place that the failure names: then no other place says more.
    let mut looked: Vec<(EventId, CellId)> = Vec::new();
    let mut add = |read: ReadRef| {
        let Some(cell) = cell_of(story, read) else { return };
        let own = story.event(read.event).thread == story.event(failure).thread;
        if own && looked.len() < CELLS && looked.iter().all(|(_, other)| *other != cell) {
            looked.push((read.event, cell));
        }
    };
    reads.iter().rev().for_each(|read| add(*read));
    if named.is_disjoint(&told) {
        let ways = story.decided_before(failure, &[PathConditionKind::Branch]).into_iter();
        ways.flat_map(|way| story.trace().reads_of(way.expr).into_iter().rev()).for_each(add);
    }
    let triple = looked.iter().find_map(|&(read, cell)| {
        let triple = lost(story, read, cell)?;
        (!named.contains(&cell) || hangs_on(story, read, triple)).then_some(triple)
    });
    // What is seen in the end may have been written by a thread that should not have come there.
    let on_the_way = || {
        let mut looked = looked.iter().filter(|(_, cell)| !named.contains(cell));
        looked.find_map(|&(read, cell)| {
            let write = story.source(read, cell)?;
            let own = story.event(write).thread == story.event(failure).thread;
            stale::find_way_to(story, write).filter(|_| !own)
        })
    };
    triple.map(|triple| found(story, triple, Case::ReadWriteWrite)).or_else(on_the_way)
}

/// The last update that was lost of what a thread went by when it freed something, as a count of references is: with that
/// update it would not have come there.
pub(super) fn of_free(story: &Story<'_>, free: EventId) -> Option<Found> {
    let ways = story.decided_before(free, &[PathConditionKind::Branch]).into_iter().take(WAYS);
    let looks = ways.flat_map(|way| {
        let reads = story.trace().reads_of(way.expr).into_iter();
        reads.map(move |read| (way, read))
    });
    let triple = looks.into_iter().find_map(|(way, read)| {
        if !story.in_one_call(read.event, free) {
            return None;
        }
        let cell = cell_of(story, read)?;
        let triple = lost(story, read.event, cell)?;
        let (var, value, delta) = missing(story, read.event, triple)?;
        let then = story.value_if(way.expr, var, masked(story, var, value.wrapping_add(delta)));
        (then == Some(0)).then_some(triple)
    });
    triple.map(|triple| found(story, triple, Case::ReadWriteWrite))
}

/// What was read of a place, and what an update of it that was lost had added to that.
fn missing(story: &Story<'_>, read: EventId, triple: Triple) -> Option<(VarId, u128, u128)> {
    let Triple { first, between, cell, .. } = triple;
    let part = story.event(read).kind.reads().iter().find(|part| part.cell == cell)?;
    let delta = story.left(between, cell)?.wrapping_sub(story.found(first, cell)?);
    Some((part.var, story.value(part.var)?, delta))
}

/// A number as wide as a variable.
fn masked(story: &Story<'_>, var: VarId, value: u128) -> u128 {
    let width = story.trace().variables[var.index()].width;
    value & u128::MAX.checked_shr(128_u32.saturating_sub(width)).unwrap_or_default()
}

/// Would the failure's condition be another one with so many more of what was lost? What it only names beside
/// something else has not decided it. Yes where that is not known.
fn hangs_on(story: &Story<'_>, read: EventId, triple: Triple) -> bool {
    let (Some((var, value, delta)), Some(failure)) =
        (missing(story, read, triple), &story.trace().failure)
    else {
        return true;
    };
    let mut condition = failure.condition.clone();
    condition.values_mut().into_iter().any(|expr| {
        let now = story.value_if(*expr, var, value);
        let more = (1..=MISSING).map(|times| value.wrapping_add(delta.wrapping_mul(times)));
        let more = more.map(|value| masked(story, var, value));
        let mut then = more.map(|value| story.value_if(*expr, var, value));
        then.any(|then| then.is_none() || then != now)
    })
}

fn cell_of(story: &Story<'_>, read: ReadRef) -> Option<CellId> {
    Some(story.event(read.event).kind.reads().get(read.part as usize)?.cell)
}

/// The last update of the cell before a read of it that did not know of another thread's.
fn lost(story: &Story<'_>, read: EventId, cell: CellId) -> Option<Triple> {
    let events = story.trace().events.iter().map(|event| event.id);
    let mut writes: Vec<EventId> =
        events.filter(|id| story.access(*id, cell).writes && story.before(*id, read)).collect();
    writes.sort_by_key(|id| story.place(*id));
    writes.windows(2).rev().find_map(|two| {
        let &[between, second] = two else { return None };
        let first = update_of(story, second, cell)?;
        let fits = story.event(between).thread != story.event(second).thread
            && story.before(first, between)
            && story.brings_news(between, first, cell)
            && update_of(story, between, cell).is_some();
        fits.then_some(Triple { first, between, second, cell })
    })
}

/// The read of which a thread made what it writes to the same place, in a step that is not atomic by itself.
fn update_of(story: &Story<'_>, write: EventId, cell: CellId) -> Option<EventId> {
    let event = story.event(write);
    let plain = |id: EventId| {
        let event = story.event(id);
        matches!(event.kind, EventKind::Read { .. } | EventKind::Write { .. })
            && !event.is_affair_of_library()
    };
    if !plain(write) || !story.is_named(write) {
        return None;
    }
    let own = &story.trace().threads[event.thread.index()].events;
    let earlier = own.iter().copied().take(event.index as usize).rev();
    let first = earlier.filter(|id| story.access(*id, cell).any()).take(1);
    first
        .filter(|id| plain(*id) && story.access(*id, cell).reads)
        .find(|id| story.feeds(*id, write, cell) && story.in_one_call(*id, write))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::across::Side;
    use crate::cause::{Passing, Pattern};
    use encoders::dsl::parse;
    use model::Schedule;

    /// Two threads make an entry of a table, and add to a sum: what is told of the run whose threads take these turns, where
    /// all that is known is the order of the entries?
    fn told(turns: [usize; 8], fails: &str) -> Option<Vec<&'static str>> {
        let text = format!(
            "
            cell table 32 = 0
            cell sum 32 = 0
            t0: fork a
            t0: fork b
            a: [a0] R table -> i
            a: [a1] W table 1
            a: [a2] R sum -> j
            a: [a3] W sum j + 1
            b: [b0] R table -> k
            b: [b1] W table 2
            b: [b2] R sum -> l
            b: [b3] W sum l + 1
            t0: join a
            t0: join b
            t0: R table -> t
            t0: R sum -> s
            {fails}
            "
        );
        let begin = [0, 0, 0, 1, 2].into_iter();
        told_of(&text, begin.chain(turns).chain([1, 2]).collect(), ["a1", "b0"])
    }

    /// What is told of the run whose threads take these turns, the initial thread in the end, where all that is known is the
    /// order of two events.
    fn told_of(text: &str, turns: Vec<usize>, known: [&str; 2]) -> Option<Vec<&'static str>> {
        let parsed = parse(text).expect("the text is a trace");
        let trace = &parsed.trace;
        let mut left: Vec<_> = trace.threads.iter().map(|t| t.events.iter().copied()).collect();
        let order = turns.into_iter();
        let mut order: Vec<EventId> = order.filter_map(|thread| left[thread].next()).collect();
        order.extend(left.swap_remove(0));
        let schedule = Schedule { order };
        let evaluation =
            model::evaluate::evaluate(trace, &schedule, &|_| None).expect("the run can happen");
        let side = Side { trace, schedule: &schedule, evaluation: &evaluation, points: None };
        let story = Story::new(side, None, Passing::None);
        let known = known.map(|label| parsed.event(label));
        let known = Found::new(Pattern::Order, String::new(), &known);
        let labels = ["a0", "a1", "a2", "a3", "b0", "b1", "b2", "b3"];
        let label = |event: &CauseEvent| {
            let is = |label: &&str| {
                let known = parsed.labels.get(*label);
                known.is_some_and(|known| *event == CauseEvent::Failing(*known))
            };
            labels.into_iter().find(is)
        };
        find(&story, &known).map(|found| found.events.iter().filter_map(label).collect())
    }

    /// A worker takes a job that another thread cancels; both note what they did.
    fn cancelled(turns: [usize; 7]) -> Option<Vec<&'static str>> {
        let text = "
            cell job 32 = 1
            cell runs 32 = 0
            cell table 32 = 0
            t0: fork a
            t0: fork b
            a: [a0] R table -> i
            a: [a1] R job -> j
            a: assume j == 1
            a: [a2] W job 2
            a: [a3] W runs 1
            b: [b0] W table 2
            b: [b1] W job 3
            b: [b2] W other 1
            t0: join a
            t0: join b
            t0: R runs -> r
            t0: assume r == 1
            t0: fail
        ";
        let begin = [0, 0, 0, 1, 2].into_iter();
        told_of(text, begin.chain(turns).chain([1, 2]).collect(), ["b0", "a0"])
    }

    #[test]
    fn who_came_there_by_what_was_no_longer_so_is_told() {
        assert_eq!(cancelled([2, 1, 1, 2, 2, 1, 1]), Some(vec!["b1", "a1", "a2"]));
        assert_eq!(cancelled([2, 1, 1, 1, 1, 2, 2]), None, "cancelled behind it");
    }

    const TOGETHER: [usize; 8] = [1, 1, 1, 2, 2, 2, 2, 1];

    #[test]
    fn the_update_that_was_lost_is_told() {
        let branch = "t0: assume s < 2\nt0: fail";
        assert_eq!(told(TOGETHER, branch), Some(vec!["b3", "a2", "a3"]));
        assert_eq!(told(TOGETHER, "t0: fail s != 2"), Some(vec!["b3", "a2", "a3"]));
    }

    #[test]
    fn nothing_is_where_none_was_lost_or_the_failure_is_about_something_else() {
        assert_eq!(told([1, 1, 1, 1, 2, 2, 2, 2], "t0: assume s == 2\nt0: fail"), None);
        assert_eq!(told(TOGETHER, "t0: fail t == 2 || s > 99"), None, "named, and no more");
        assert_eq!(told(TOGETHER, "t0: assume s < 2\nt0: fail t == 2"), None, "the table is");
    }
}
