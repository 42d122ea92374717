//! A run that ended with a bad status or a wrong output: that may only tell what a check found, whose result the program
//! kept in a place that no event is about.
//!
//! What no thread touches while another one may has no events, such as a flag that is set by one thread and read by
//! another that has waited for its end. So nothing leads from the failure back to the check. But the failing run took a
//! turn there that the passing run never takes.

use crate::across::{Divergence, View, event_of, feeding};
use crate::cone::failure_reads;
use crate::conflict::positions;
use crate::dsp::DataFlow;
use model::evaluate::Evaluation;
use model::{
    ConditionId, EventId, EventKind, EventTrace, Expr, ExprId, FailureKind, PathCondition,
    PathConditionKind, ReadRef, Schedule, Site, ThreadId,
};
use std::collections::{BTreeMap, BTreeSet};

/// Does the failure come when the run is over, whatever ways its threads went?
pub(crate) fn comes_at_the_end(trace: &EventTrace) -> bool {
    let kind = trace.failure.as_ref().map(|failure| failure.kind);
    matches!(kind, Some(FailureKind::Exit | FailureKind::Output))
}

impl View<'_> {
    /// Has the failing thread nothing behind the path that both runs take but the failure and what that reads
    /// (`decisive`), for which the passing run need not have events?
    pub(crate) fn parts_at_failure(&self, thread: ThreadId, decisive: &BTreeSet<ReadRef>) -> bool {
        let trace = self.failing.trace;
        let own = &trace.threads[thread.index()].events;
        let read = |id: EventId| decisive.iter().any(|read| read.event == id);
        let at_failure =
            |id: &EventId| read(*id) || matches!(trace.event(*id).kind, EventKind::Failure);
        own.iter().skip(self.common_path(thread).0).all(at_failure)
    }

    /// A branch of the failing run that goes the other way in the passing run by what it has read there, or is not come
    /// to; what that is goes with it.
    pub(crate) fn branch_at(&self, id: ConditionId) -> Option<Divergence> {
        let condition = self.failing.trace.conditions.get(id.index())?;
        let reads = self.changed_reads(condition);
        let goes_there = self.evaluated(condition.expr) == Some(1);
        (!goes_there && !reads.is_empty()).then_some(Divergence {
            thread: condition.thread,
            condition: condition.id,
            reads,
            failing_mark: None,
            passing_mark: None,
        })
    }

    /// What of that which a condition of the failing run has read is another value in the passing run, or comes from
    /// elsewhere.
    fn changed_reads(&self, condition: &PathCondition) -> Vec<ReadRef> {
        let reads = self.failing.trace.reads_of(condition.expr).into_iter();
        let changed = |read: &ReadRef| self.flow(*read).is_some_and(|flow| self.changed(&flow));
        reads.filter(changed).collect()
    }

    /// The last branch of the program's own that hangs on what is read otherwise in the passing run, and that went, in
    /// the failing run only, the way it went there.
    pub(crate) fn turn(&self) -> Option<Divergence> {
        let (failing, passing) = (self.failing.trace, self.passing.trace);
        if !comes_at_the_end(failing) {
            return None;
        }
        let taken = ways(passing);
        let turns = failing.conditions.iter().filter(is_own_branch).filter(|condition| {
            !taken.contains(&(&condition.site, way(failing, condition.expr)))
                && self.evaluated(condition.expr) == Some(0)
        });
        let turns = turns.filter_map(|condition| {
            let reads = self.changed_reads(condition);
            let place = reads.iter().map(|read| self.place(read.event)).max()?;
            Some((place, condition, reads))
        });
        let (_, condition, reads) =
            turns.max_by_key(|(place, condition, _)| (*place, condition.id))?;
        Some(Divergence {
            thread: condition.thread,
            condition: condition.id,
            reads,
            failing_mark: None,
            passing_mark: None,
        })
    }
}

/// May the failure only tell what a check has found before? Not where a thread waits, or does what nobody may do.
#[must_use]
pub fn may_tell_of_check(trace: &EventTrace) -> bool {
    let kind = trace.failure.as_ref().map(|failure| failure.kind);
    matches!(
        kind,
        Some(
            FailureKind::Exit
                | FailureKind::Output
                | FailureKind::Assertion
                | FailureKind::Abort
                | FailureKind::Exception
                | FailureKind::Panic
                | FailureKind::User
        )
    )
}

/// Checks of a failing run whose outcome may be what its failure tells of: branches that hang on what threads share, and
/// that went a way there which they went in none of these runs that pass. Where the failure reads something, its value has
/// to have come from what a check's thread did behind it. Of each place the first, in the schedule's order; those that
/// a passing run came to, too, before others, of which only those count that mostly go the other way in the failing run.
///
/// `evaluation` is what the failing schedule does.
#[must_use]
pub fn outcomes(
    failing: &EventTrace,
    (schedule, evaluation): (&Schedule, &Evaluation),
    passing: &[&EventTrace],
) -> Vec<ConditionId> {
    if !may_tell_of_check(failing) || passing.is_empty() {
        return Vec::new();
    }
    let sources = sources(failing, evaluation);
    let tells = |condition: &PathCondition| {
        let last = |sources: &BTreeMap<ThreadId, u32>| sources.get(&condition.thread).copied();
        let behind = |last: u32| last >= condition.position;
        sources.as_ref().is_none_or(|sources| last(sources).is_some_and(behind))
    };
    let taken: BTreeSet<_> = passing.iter().flat_map(|trace| ways(trace)).collect();
    let places: BTreeSet<&Site> = taken.iter().map(|(site, _)| *site).collect();
    let place = positions(failing, &schedule.order);
    let own = || failing.conditions.iter().filter(is_own_branch);
    let mut counts: BTreeMap<&Site, BTreeMap<String, usize>> = BTreeMap::new();
    for condition in own() {
        let ways = counts.entry(&condition.site).or_default();
        *ways.entry(way(failing, condition.expr)).or_default() += 1;
    }
    let is_rare = |site: &Site, way: &str| {
        let ways = counts.get(site);
        let count = ways.and_then(|ways| ways.get(way)).copied().unwrap_or(0);
        2 * count <= ways.map_or(0, |ways| ways.values().sum())
    };
    let mut seen = BTreeSet::new();
    let mut found: Vec<(bool, u32, ConditionId)> = Vec::new();
    for condition in own() {
        let (site, way) = (&condition.site, way(failing, condition.expr));
        let known = places.contains(site);
        if taken.contains(&(site, way.clone())) || !(known || is_rare(site, &way)) {
            continue;
        }
        let reads = failing.reads_of(condition.expr).into_iter();
        let last = reads.map(|read| place[read.event.index()]).max();
        found.extend(last.filter(|_| tells(condition)).map(|last| (!known, last, condition.id)));
    }
    found.sort_unstable();
    found.retain(|(_, _, id)| {
        let condition = &failing.conditions[id.index()];
        seen.insert((&condition.site, way(failing, condition.expr)))
    });
    found.into_iter().map(|(_, _, id)| id).collect()
}

/// Of each thread the place of its last write from which what the failure reads has come; none where it reads nothing.
fn sources(trace: &EventTrace, evaluation: &Evaluation) -> Option<BTreeMap<ThreadId, u32>> {
    let mut queue: Vec<ReadRef> = failure_reads(trace).into_iter().collect();
    if queue.is_empty() {
        return None;
    }
    let mut seen: BTreeSet<ReadRef> = queue.iter().copied().collect();
    let mut found: BTreeMap<ThreadId, u32> = BTreeMap::new();
    while let Some(read) = queue.pop() {
        let Some(&write) = evaluation.reads_from.get(&read) else { continue };
        let earlier = feeding(trace, DataFlow { write, read }).into_iter();
        queue.extend(earlier.filter(|earlier| seen.insert(*earlier)));
        let Some(write) = event_of(write).map(|id| trace.event(id)) else { continue };
        let last = found.entry(write.thread).or_default();
        *last = write.index.max(*last);
    }
    Some(found)
}

/// A branch of the program's own.
fn is_own_branch(condition: &&PathCondition) -> bool {
    condition.kind == PathConditionKind::Branch && !condition.site.is_in_library()
}

/// The ways that a run's branches went.
fn ways(trace: &EventTrace) -> BTreeSet<(&Site, String)> {
    let own = trace.conditions.iter().filter(is_own_branch);
    own.map(|condition| (&condition.site, way(trace, condition.expr))).collect()
}

/// Which way a branch went, as its condition tells: that two values are equal, say, or that they are not.
fn way(trace: &EventTrace, expr: ExprId) -> String {
    match trace.exprs.get(expr) {
        Expr::Not(inner) => format!("not {}", way(trace, inner)),
        Expr::Cmp(op, ..) => format!("{op:?}"),
        Expr::FloatCmp(op, ..) => format!("{op:?}"),
        _ => String::new(),
    }
}
