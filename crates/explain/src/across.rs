//! The difference between a failing schedule and a run that passes along other paths.
//!
//! Where two schedules of one trace differ, [`crate::dsp`] shows every data flow that varies. Two
//! runs that take different paths differ in most that comes after, so here only the chain is shown
//! that leads from the failure back to what was ordered otherwise: the values that the failure
//! depends on, or the branch by which its thread went another way, and the same for the branches
//! by which other threads' writes came or did not come to be.

mod rounds;
mod search;

use crate::align::{Matching, align, common_points};
use crate::commuting::Commuting;
use crate::cone::Cone;
use crate::conflict::{ConflictOrder, conflict_orders, positions};
use crate::consequence::{Variation, consequences};
use crate::dsp::{DataFlow, operations};
use crate::happens_before::HappensBefore;
use crate::interrupted::Interrupted;
use crate::late::{Lateness, is_meeting};
use model::evaluate::Evaluation;
use model::{
    CellId, ConditionId, EventId, EventKind, EventTrace, ExprId, PathCondition, PathConditionKind,
    Points, ReadRef, Schedule, ThreadId, VarId, VariableOrigin, WriteSource,
};
use search::Search;
use solver::Order;
use std::collections::{BTreeMap, BTreeSet};

/// No more data flows than this are followed from one value or branch.
const FLOWS: usize = 3;
/// No more branches than this are explained.
const BRANCHES: usize = 3;
/// No more data flows than this are shown on one side.
pub(crate) const SHOWN: usize = 8;

/// A run: its events, their order, and what they did.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    /// The events.
    pub trace: &'a EventTrace,
    /// All of them in order.
    pub schedule: &'a Schedule,
    /// What the schedule does.
    pub evaluation: &'a Evaluation,
    /// The scheduling points of the events, where they are known: they tell where a path was left
    /// although each run has events for what its threads share.
    pub points: Option<&'a Points>,
}

/// A branch that the failing run takes and the passing run does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Divergence {
    /// The thread, of the failing run.
    pub thread: ThreadId,
    /// The failing run's path condition.
    pub condition: ConditionId,
    /// The reads that it depends on and that return something else in the passing run.
    pub reads: Vec<ReadRef>,
    /// The first event of the thread that only the failing run has.
    pub failing_mark: Option<EventId>,
    /// The first event of the thread that only the passing run has.
    pub passing_mark: Option<EventId>,
}

/// What comes the other way round in the passing run. Not proved to be the only cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flipped {
    /// Two events of both runs that conflict, in the failing schedule's order, which the passing
    /// run reverses.
    Reversed(Order),
    /// What the passing run's thread waited for, or read, did not happen in the failing run, which
    /// ended first, or in which the thread that does it found it done by the other one: it came too late.
    Late {
        /// The failing run's event that came too early: the read, or, where the failing run has
        /// no event for it (nobody else touched the memory there), the first thing that its thread
        /// did in place of it or after it, in the last resort the failure.
        before: EventId,
        /// The event that only the passing run has, by its identifier: a write, or a signal, post,
        /// unlock.
        after: EventId,
        /// The passing run's event that needs `after`, by its identifier; the partner of `before`
        /// if both runs have it.
        needs: EventId,
    },
}

/// What a failing and a passing run differ in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Across {
    /// Which events the two have in common.
    pub matching: Matching,
    /// What the passing run has the other way round.
    pub flipped: Flipped,
    /// The failing run's events that matter, in its order.
    pub failing: Vec<EventId>,
    /// The passing run's events that matter, in its order, by its identifiers.
    pub passing: Vec<EventId>,
    /// Data flows of the failing run that matter and that the passing run does not have.
    pub failing_only: Vec<DataFlow>,
    /// The other way round, by the passing run's identifiers.
    pub passing_only: Vec<DataFlow>,
    /// Reads, of the failing run, whose variation follows from that of others: it could not have
    /// stayed away once those were there.
    pub follows: BTreeMap<ReadRef, Vec<ReadRef>>,
    /// How many operations the variations have that do not follow from others, in both runs.
    pub operations: usize,
    /// The branches that explain it, that of the failing thread first if it is one.
    pub branches: Vec<Divergence>,
    /// How far the runs are apart: reads of both with another source, and events of the failing
    /// run that the passing run does not have.
    pub distance: usize,
    /// How many events the failing thread has behind the path that both runs take.
    pub behind: usize,
    /// The pair that comes the other way round only has a thread of one run wait for longer than in the other one.
    pub only_waits: bool,
    /// How many events the passing run has between the two that come the other way round there, and the failing run not at
    /// all, of the threads that the two are of.
    pub in_between: usize,
}

/// Compares a failing run with one that passes. `forced` is the pair that the passing run was made
/// to reverse, for want of a better one to show. `None` when no two events of both runs that
/// conflict have another order, and nothing came too late either: then the order is not what kept
/// the run from failing.
#[must_use]
pub fn across(failing: Side<'_>, passing: Side<'_>, forced: Option<Order>) -> Option<Across> {
    compare(failing, passing, Begin::Failure(forced))
}

/// The same of a run that was made to have a check of the failing run go the other way: what the check has read is
/// followed, and not what the failure depends on. `None` also where the check has read the same.
#[must_use]
pub fn across_check(
    failing: Side<'_>,
    passing: Side<'_>,
    forced: Option<Order>,
    check: ConditionId,
) -> Option<Across> {
    compare(failing, passing, Begin::Check(forced, check))
}

/// The same of a run that was made to undo how a thread's steps were interrupted in the failing run: of all that differs, that
/// is shown. `None` where no pair of them comes the other way round.
#[must_use]
pub fn across_interrupted(
    failing: Side<'_>,
    passing: Side<'_>,
    steps: &Interrupted,
) -> Option<Across> {
    compare(failing, passing, Begin::Interrupted(steps))
}

/// Where the search for what differs begins.
#[derive(Clone, Copy)]
enum Begin<'s> {
    /// At the failure; with the pair that was made to come the other way round, if there is one.
    Failure(Option<Order>),
    /// At a check, with such a pair.
    Check(Option<Order>, ConditionId),
    /// At the accesses of these steps.
    Interrupted(&'s Interrupted),
}

fn compare(failing: Side<'_>, passing: Side<'_>, begin: Begin<'_>) -> Option<Across> {
    let view = View::new(failing, passing);
    let mut search = Search::new(&view);
    let lateness =
        |search: &Search<'_, '_>, forced| Lateness::new(&view).flipped(&search.flows, forced);
    let flipped = match begin {
        Begin::Failure(forced) => {
            search.failure();
            lateness(&search, forced)?
        }
        Begin::Check(forced, check) => {
            search.check(check)?;
            lateness(&search, forced)?
        }
        Begin::Interrupted(steps) => {
            search.interrupted(steps);
            let pairs = steps.pairs(failing.trace).into_iter();
            let pairs = pairs.map(|(before, after)| Order { before, after });
            let reversed: Vec<Order> = pairs.filter(|order| view.reversed(*order)).collect();
            // In the passing run the same line may be about another object by then.
            let meet = reversed.iter().find(|order| view.meet_there(**order));
            Flipped::Reversed(*meet.or(reversed.first())?)
        }
    };
    let Search { flows, branches, .. } = search;
    let mut shown: (BTreeSet<EventId>, BTreeSet<EventId>) = Default::default();
    let (mut failing_only, mut passing_only) = (Vec::new(), Vec::new());
    let follows = view.follows(flows.get(..SHOWN).unwrap_or(&flows), &branches);
    for flow in flows.iter().take(SHOWN) {
        shown.0.extend(event_of(flow.failing.write));
        shown.0.insert(flow.failing.read.event);
        shown.1.extend(event_of(flow.passing.write));
        shown.1.insert(flow.passing.read.event);
        if !flow.same_source {
            failing_only.push(flow.failing);
            passing_only.push(flow.passing);
        }
    }
    match flipped {
        Flipped::Reversed(order) => {
            shown.0.extend([order.before, order.after]);
            if let Begin::Interrupted(steps) = begin {
                shown.0.extend([steps.first, steps.second]);
            }
        }
        Flipped::Late { before, after, needs } => {
            shown.0.insert(before);
            shown.0.extend(failing.trace.failure.as_ref().map(|failure| failure.event));
            shown.1.extend([after, needs]);
            // Where the failing run has the read too, the flow is among the others.
            let known = |flow: &DataFlow| flow.read.event == needs;
            if !passing_only.iter().any(known) {
                let flow = view.flow_between(after, needs);
                shown.1.extend(flow.and_then(|flow| event_of(flow.write)));
                passing_only.extend(flow);
            }
        }
    }
    if let Some(branch) = branches.first() {
        let alone = |id: &EventId| {
            failing.trace.event(*id).thread == branch.thread
                && view.matching.in_passing(*id).is_none()
        };
        let marked = shown.0.iter().any(alone);
        shown.0.extend(branch.failing_mark.filter(|_| !marked));
        shown.1.extend(branch.passing_mark);
    }
    // What both runs have is shown on both sides.
    let partners: Vec<EventId> =
        shown.0.iter().filter_map(|id| view.matching.in_passing(*id)).collect();
    shown.0.extend(shown.1.iter().filter_map(|id| view.matching.in_failing(*id)));
    shown.1.extend(partners);
    let sorted = |events: BTreeSet<EventId>, positions: &[u32]| {
        let mut events: Vec<EventId> = events.into_iter().collect();
        events.sort_by_key(|id| (positions[id.index()], *id));
        events
    };
    let operations = view.operations([&failing_only, &passing_only], &follows);
    failing_only.sort_by_key(|flow| (view.place(flow.read.event), flow.read));
    passing_only.sort_by_key(|flow| (view.passing_positions[flow.read.event.index()], flow.read));
    Some(Across {
        only_waits: rounds::only_waits(&view, flipped),
        in_between: rounds::in_between(&view, flipped),
        flipped,
        failing: sorted(shown.0, &view.failing_positions),
        passing: sorted(shown.1, &view.passing_positions),
        failing_only,
        passing_only,
        follows,
        operations,
        branches,
        distance: view.distance(),
        behind: view.behind(),
        matching: view.matching,
    })
}

pub(crate) fn event_of(source: WriteSource) -> Option<EventId> {
    match source {
        WriteSource::Init => None,
        WriteSource::Write(event) => Some(event),
    }
}

/// The reads that the value which a data flow brings depends on.
pub(crate) fn feeding(trace: &EventTrace, flow: DataFlow) -> Vec<ReadRef> {
    let Some(write) = event_of(flow.write) else { return Vec::new() };
    let reads = trace.event(flow.read.event).kind.reads();
    let Some(part) = reads.get(flow.read.part as usize) else { return Vec::new() };
    let mut written = trace.event(write).kind.writes().iter();
    let value = written.find(|other| other.cell == part.cell).map(|part| part.value);
    value.map(|value| trace.reads_of(value)).into_iter().flatten().collect()
}

/// A read of both runs, with its sources.
#[derive(Clone, Copy)]
pub(crate) struct Flow {
    pub(crate) failing: DataFlow,
    pub(crate) passing: DataFlow,
    /// The sources are the same event, and the value is another.
    pub(crate) same_source: bool,
}

/// Both runs, and what they have in common.
pub(crate) struct View<'a> {
    pub(crate) failing: Side<'a>,
    pub(crate) passing: Side<'a>,
    pub(crate) matching: Matching,
    failing_positions: Vec<u32>,
    passing_positions: Vec<u32>,
}

impl<'a> View<'a> {
    fn new(failing: Side<'a>, passing: Side<'a>) -> Self {
        Self {
            failing,
            passing,
            matching: align(failing.trace, passing.trace, failing.points.zip(passing.points)),
            failing_positions: positions(failing.trace, &failing.schedule.order),
            passing_positions: positions(passing.trace, &passing.schedule.order),
        }
    }

    /// The position of an event of the failing run.
    pub(crate) fn place(&self, id: EventId) -> u32 {
        self.failing_positions[id.index()]
    }

    /// The position in the passing run of an event of the failing run.
    fn passing_place(&self, id: EventId) -> Option<u32> {
        let partner = self.matching.in_passing(id)?;
        Some(self.passing_positions[partner.index()]).filter(|place| *place != u32::MAX)
    }

    /// The passing run's counterpart of a read part.
    fn partner(&self, read: ReadRef) -> Option<ReadRef> {
        let event = self.matching.in_passing(read.event)?;
        let parts = |trace: &EventTrace, id: EventId| trace.event(id).kind.reads().len();
        let same = parts(self.failing.trace, read.event) == parts(self.passing.trace, event);
        same.then_some(ReadRef { event, part: read.part })
    }

    /// The read in both runs; `None` when the passing run does not have it.
    pub(crate) fn flow(&self, read: ReadRef) -> Option<Flow> {
        let partner = self.partner(read)?;
        let write = *self.failing.evaluation.reads_from.get(&read)?;
        let other = *self.passing.evaluation.reads_from.get(&partner)?;
        let same_source = match (write, other) {
            (WriteSource::Init, WriteSource::Init) => true,
            (WriteSource::Write(a), WriteSource::Write(b)) => {
                self.matching.in_passing(a) == Some(b)
            }
            _ => false,
        };
        Some(Flow {
            failing: DataFlow { write, read },
            passing: DataFlow { write: other, read: partner },
            same_source,
        })
    }

    /// Does the read return something else in the passing run? Addresses differ from run to run,
    /// so of pointers only whether they are null counts.
    fn returns_another_value(&self, flow: &Flow) -> bool {
        let value = |side: &Side<'_>, read: ReadRef| {
            let part = side.trace.event(read.event).kind.reads().get(read.part as usize)?;
            let display = side.trace.cells[part.cell.index()].display;
            let value = side.evaluation.values.get(part.var.index()).copied().flatten()?;
            Some(if display == model::trace::ValueDisplay::Pointer {
                u128::from(value != 0)
            } else {
                value
            })
        };
        value(&self.failing, flow.failing.read) != value(&self.passing, flow.passing.read)
    }

    pub(crate) fn changed(&self, flow: &Flow) -> bool {
        !flow.same_source || self.returns_another_value(flow)
    }

    /// What the source of the passing run's read is made of in the failing run, where it writes another value there: to have
    /// read behind it would have been no use.
    pub(crate) fn behind_other_value(&self, flow: &Flow) -> Vec<ReadRef> {
        let read = flow.failing.read;
        let here = event_of(flow.passing.write).and_then(|write| self.matching.in_failing(write));
        let cell = |trace: &EventTrace, read: ReadRef| {
            let part = trace.event(read.event).kind.reads().get(read.part as usize)?;
            Some(part.cell)
        };
        let written = |side: &Side<'_>, write: EventId, read: ReadRef| {
            let cell = cell(side.trace, read)?;
            let mut parts = side.trace.event(write).kind.writes().iter();
            let part = parts.find(|part| part.cell == cell)?;
            let known = |var: VarId| side.evaluation.values.get(var.index()).copied().flatten();
            side.trace.exprs.evaluate(part.value, &known)
        };
        let Some((here, there)) = here.zip(event_of(flow.passing.write)) else { return Vec::new() };
        let is_pointer = cell(self.failing.trace, read).is_none_or(|cell| {
            self.failing.trace.cells[cell.index()].display == model::trace::ValueDisplay::Pointer
        });
        let values = written(&self.failing, here, read).zip(written(
            &self.passing,
            there,
            flow.passing.read,
        ));
        match values {
            Some((one, other)) if one != other && !is_pointer && !flow.same_source => {
                feeding(self.failing.trace, DataFlow { write: WriteSource::Write(here), read })
            }
            _ => Vec::new(),
        }
    }

    /// The value of an expression of the failing run with what its reads return in the passing
    /// run; `None` when the passing run does not have one of them. A read that returns the same there
    /// has the failing run's value: an address is another one in every run, and the expression
    /// may compare it with addresses of the failing run.
    pub(crate) fn evaluated(&self, expr: ExprId) -> Option<u128> {
        let failing = |var: VarId| self.failing.evaluation.values.get(var.index()).copied();
        let value = |var: VarId| match self.failing.trace.variables[var.index()].origin {
            VariableOrigin::Read { event, part } => {
                let read = ReadRef { event, part };
                if self.flow(read).is_some_and(|flow| !self.changed(&flow)) {
                    return failing(var).flatten();
                }
                let read = self.partner(read)?;
                let part =
                    self.passing.trace.event(read.event).kind.reads().get(read.part as usize)?;
                self.passing.evaluation.values.get(part.var.index()).copied().flatten()
            }
            _ => failing(var).flatten(),
        };
        self.failing.trace.exprs.evaluate(expr, &value)
    }

    /// How many events of the failing and of the passing run a thread's common path has. Without
    /// scheduling points it ends at the first event that is not the other run's next one. With them,
    /// events count by where in the code they are: memory that only one of the runs shares has no
    /// events in the other one, which is no other path.
    pub(crate) fn common_path(&self, thread: ThreadId) -> (usize, usize) {
        let thread = &self.failing.trace.threads[thread.index()];
        let other = self.passing.trace.threads.iter().find(|other| other.name == thread.name);
        let Some(other) = other else { return (0, 0) };
        let both = thread.events.iter().zip(&other.events);
        let equal = both.take_while(|(a, b)| self.matching.in_passing(**a) == Some(**b)).count();
        let points = self.failing.points.zip(self.passing.points);
        let (here, there) = (self.failing.trace, self.passing.trace);
        let last = points.and_then(|points| {
            common_points((here, &thread.events), (there, &other.events), points).pop()
        });
        let by_points = last.map(|(i, j)| (i + 1, j + 1));
        by_points.filter(|(own, _)| *own > equal).unwrap_or((equal, equal))
    }

    /// The branch by which a thread leaves the failing run's path.
    fn divergence(&self, thread: ThreadId) -> Option<Divergence> {
        let (common, common_there) = self.common_path(thread);
        let own = &self.failing.trace.threads[thread.index()].events;
        let mut conditions: Vec<&PathCondition> =
            self.failing.trace.conditions.iter().filter(|c| c.thread == thread).collect();
        conditions.sort_by_key(|condition| (condition.position, condition.id));
        conditions.retain(|condition| condition.position as usize <= common);
        let broken = |c: &&&PathCondition| self.evaluated(c.expr) == Some(0);
        let branches = conditions.iter().filter(|c| c.kind == PathConditionKind::Branch);
        // Addresses differ from run to run, so they count only where the paths do part, ...
        let others = conditions.iter().filter(|c| c.position as usize == common);
        let mut others = others.filter(|_| common < own.len());
        let condition = branches.clone().find(broken).or_else(|| others.clone().find(broken));
        // ... or where what was read came from elsewhere: the last such read led another way.
        let from_elsewhere = |c: &&&PathCondition| {
            let reads = self.failing.trace.reads_of(c.expr);
            let mut flows = reads.into_iter().filter_map(|read| self.flow(read));
            flows.any(|flow| !flow.same_source)
        };
        let condition = condition.or_else(|| {
            conditions.iter().rev().filter(|_| common < own.len()).find(from_elsewhere)
        });
        let condition = condition.or_else(|| others.next_back())?;
        let mut flows: Vec<Flow> = self
            .failing
            .trace
            .reads_of(condition.expr)
            .into_iter()
            .filter_map(|read| self.flow(read))
            .filter(|flow| self.changed(flow))
            .collect();
        flows.sort_by_key(|flow| (self.place(flow.failing.read.event), flow.failing.read));
        let alone = |id: &EventId| self.matching.in_passing(*id).is_none();
        let behind = own.iter().copied().skip(common);
        let failing_mark = mark(self.failing.trace, behind.filter(alone));
        Some(Divergence {
            thread,
            condition: condition.id,
            reads: flows.into_iter().map(|flow| flow.failing.read).collect(),
            failing_mark,
            passing_mark: self.passing_mark(thread, common_there),
        })
    }

    /// Who woke the thread of a branch right before what the branch has read, by a signal that only the failing run has:
    /// that the thread went on, and looked at that time, follows from what its waker did.
    fn waker(&self, branch: &Divergence) -> Option<ThreadId> {
        let Side { trace, evaluation, .. } = self.failing;
        // What another thread read may have been handed over.
        let own = |read: &&ReadRef| trace.event(read.event).thread == branch.thread;
        let read = branch.reads.iter().rev().find(own)?.event;
        let before = trace.event(read).index as usize;
        let events = trace.threads[branch.thread.index()].events.iter().take(before).rev();
        let mut section =
            events.take_while(|id| !matches!(trace.event(**id).kind, EventKind::Unlock { .. }));
        let wake = section.find(|id| evaluation.woken_by.contains_key(*id))?;
        let signal = *evaluation.woken_by.get(wake)?;
        let alone = |id: EventId| self.matching.in_passing(id).is_none();
        (!alone(*wake) && alone(signal)).then(|| trace.event(signal).thread)
    }

    /// The threads, the one that is the first to go another way in front: what others do otherwise later may follow
    /// from that.
    fn first_to_part(&self) -> Vec<ThreadId> {
        let threads = (0..self.failing.trace.threads.len()).map(ThreadId::from_index);
        let place = |thread: ThreadId| {
            let reads = self.divergence(thread).map(|divergence| divergence.reads);
            reads.into_iter().flatten().map(|read| self.place(read.event)).max()
        };
        let mut placed: Vec<_> = threads.map(|thread| (place(thread), thread)).collect();
        // Threads whose reads tell nothing come last.
        placed.sort_by_key(|(place, thread)| (place.is_none(), *place, *thread));
        placed.into_iter().map(|(_, thread)| thread).collect()
    }

    /// The first telling event behind the common path that only the passing run has.
    fn passing_mark(&self, thread: ThreadId, from: usize) -> Option<EventId> {
        let name = &self.failing.trace.threads[thread.index()].name;
        let other = self.passing.trace.threads.iter().find(|other| other.name == *name)?;
        let alone = other.events.iter().copied().skip(from);
        let alone = alone.filter(|id| self.matching.in_failing(*id).is_none());
        mark(self.passing.trace, alone)
    }

    /// What an event of the passing run reads from another one of it, or from an update behind that one.
    fn flow_between(&self, write: EventId, event: EventId) -> Option<DataFlow> {
        let (trace, evaluation) = (self.passing.trace, self.passing.evaluation);
        let source = |id: EventId, cell: CellId| evaluation.source(trace.event(id), cell);
        let leads = |cell: CellId| {
            let mut sources = std::iter::successors(source(event, cell), |id| source(*id, cell));
            sources.any(|id| id == write)
        };
        let parts = trace.event(event).kind.reads().iter().zip(0..);
        let part = parts.into_iter().find(|(part, _)| leads(part.cell))?.1;
        let read = ReadRef { event, part };
        Some(DataFlow { write: *evaluation.reads_from.get(&read)?, read })
    }

    /// Does a pair in the failing schedule's order come the other way round in the passing run?
    fn reversed(&self, order: Order) -> bool {
        let places = self.passing_place(order.before).zip(self.passing_place(order.after));
        self.place(order.before) < self.place(order.after)
            && places.is_some_and(|(before, after)| before > after)
    }

    /// Do the two access one variable in the passing run, too?
    fn meet_there(&self, order: Order) -> bool {
        let partner = |id: EventId| self.matching.in_passing(id);
        let Some((one, other)) = partner(order.before).zip(partner(order.after)) else {
            return false;
        };
        let cells = |id: EventId| {
            let kind = &self.passing.trace.event(id).kind;
            let written = kind.writes().iter().map(|part| part.cell);
            kind.reads().iter().map(|part| part.cell).chain(written)
        };
        cells(one).any(|cell| cells(other).any(|known| known == cell))
    }

    /// A pair of events of both runs of this data flow that comes the other way round.
    pub(crate) fn reversed_by(&self, flow: &Flow) -> Option<Order> {
        let read = flow.failing.read.event;
        let source = event_of(flow.failing.write);
        let other = event_of(flow.passing.write).and_then(|id| self.matching.in_failing(id));
        let mut pairs = Vec::new();
        pairs.extend(other.map(|other| (read, other)));
        pairs.extend(source.map(|source| (source, read)));
        pairs.extend(other.zip(source));
        let mut orders = pairs.into_iter().map(|(before, after)| Order { before, after });
        orders.find(|order| self.reversed(*order))
    }

    /// Any pair that comes the other way round: of accesses that the failure depends on in the
    /// failing run, or else of those that any thread's path depends on, first those that read
    /// something else in the passing run; then any accesses, the pair that was forced, and the rest.
    /// The one nearest to the failure comes first.
    pub(crate) fn reversed_anywhere(&self, forced: Option<Order>) -> Option<Order> {
        let Side { trace, schedule, evaluation, .. } = self.failing;
        let conflicts = conflict_orders(trace, schedule, evaluation);
        let reversed = |conflict: &ConflictOrder| self.reversed(conflict.order);
        let mut reversed: Vec<ConflictOrder> =
            conflicts.into_iter().rev().filter(|conflict| reversed(conflict)).collect();
        // In which order threads came to a barrier of the library tells least.
        let meets = |conflict: &ConflictOrder| is_meeting(trace, conflict.order);
        if !reversed.iter().all(meets) {
            reversed.retain(|conflict| !meets(conflict));
        }
        let commuting = Commuting::new(trace);
        let commute = |conflict: &ConflictOrder| commuting.has(conflict.order);
        if !reversed.iter().all(|conflict| conflict.kind.cell().is_none() || commute(conflict)) {
            reversed.retain(|conflict| !commute(conflict));
        }
        let memory: Vec<&ConflictOrder> =
            reversed.iter().filter(|conflict| conflict.kind.cell().is_some()).collect();
        let failing = trace.failure.as_ref().map(|failure| trace.event(failure.event).thread);
        for all in [false, true] {
            let cone = Cone::with_paths(trace, evaluation, |condition| {
                all || Some(condition.thread) == failing
            });
            let reaching = || memory.iter().filter(|conflict| cone.contains(trace, conflict));
            let telling = reaching().find(|conflict| self.reads_otherwise(conflict.order));
            if let Some(found) = telling.or_else(|| reaching().next()) {
                return Some(found.order);
            }
        }
        // Through code that was not walked the failure may depend on what was read all the same: what returned
        // something else tells most, and a write that nobody reads nothing.
        let read: BTreeSet<CellId> = trace
            .events
            .iter()
            .flat_map(|event| event.kind.reads())
            .map(|read| read.cell)
            .collect();
        let is_read = |conflict: &&&ConflictOrder| {
            conflict.kind.cell().is_some_and(|cell| read.contains(&cell))
        };
        let telling = memory.iter().find(|conflict| self.reads_otherwise(conflict.order));
        let telling = telling.or_else(|| memory.iter().find(is_read)).or(memory.first());
        let memory = telling.map(|conflict| conflict.order);
        let forced = forced.filter(|order| self.reversed(*order));
        memory.or(forced).or_else(|| reversed.first().map(|conflict| conflict.order))
    }

    /// Does one of the two read something else in the passing run?
    fn reads_otherwise(&self, order: Order) -> bool {
        [order.before, order.after].into_iter().any(|event| {
            let parts = 0..self.failing.trace.event(event).kind.reads().len();
            let reads =
                parts.filter_map(|part| Some(ReadRef { event, part: part.try_into().ok()? }));
            reads.filter_map(|read| self.flow(read)).any(|flow| self.changed(&flow))
        })
    }

    /// What follows from what among data flows that are given effects before causes: by the order of
    /// the passing run's events, or because a source is there in one of the runs only, by a branch
    /// that depends on the other data flows.
    fn follows(&self, flows: &[Flow], branches: &[Divergence]) -> BTreeMap<ReadRef, Vec<ReadRef>> {
        let mut varying: Vec<&Flow> = flows.iter().filter(|flow| !flow.same_source).collect();
        let mut found = BTreeMap::new();
        for (index, flow) in varying.iter().enumerate() {
            let Some(branch) = self.branch_of_source(flow, branches) else { continue };
            let behind = self.varying_behind(&branch.reads, flows);
            let causes = varying[index + 1..].iter().map(|cause| cause.failing.read);
            let causes: Vec<ReadRef> = causes.filter(|read| behind.contains(read)).collect();
            if !causes.is_empty() {
                found.insert(flow.failing.read, causes);
            }
        }
        varying.retain(|flow| !found.contains_key(&flow.failing.read));
        if varying.len() < 2 {
            return found;
        }
        let Side { trace, schedule, .. } = self.passing;
        let place = |read: ReadRef| (self.passing_positions[read.event.index()], read.part);
        varying.sort_by_key(|flow| place(flow.passing.read));
        let source = |write: WriteSource| match write {
            WriteSource::Init => Some(WriteSource::Init),
            WriteSource::Write(event) => self.matching.in_passing(event).map(WriteSource::Write),
        };
        let variations: Vec<Variation> = varying
            .iter()
            .map(|flow| Variation {
                read: flow.passing.read,
                passing: flow.passing.write,
                failing: source(flow.failing.write),
            })
            .collect();
        let order = HappensBefore::new(trace, &schedule.order);
        for (index, causes) in consequences(trace, &order, &variations) {
            let causes = causes.into_iter().map(|cause| varying[cause].failing.read);
            found.insert(varying[index].failing.read, causes.collect());
        }
        found
    }

    /// The data flows with another source by which these reads return something else: themselves,
    /// or those that the value of a source of theirs depends on.
    fn varying_behind(&self, reads: &[ReadRef], flows: &[Flow]) -> BTreeSet<ReadRef> {
        let mut found = BTreeSet::new();
        let mut seen: BTreeSet<ReadRef> = reads.iter().copied().collect();
        let mut stack = reads.to_vec();
        while let Some(read) = stack.pop() {
            match flows.iter().find(|flow| flow.failing.read == read) {
                Some(flow) if flow.same_source => {
                    let earlier = feeding(self.failing.trace, flow.failing).into_iter();
                    stack.extend(earlier.filter(|earlier| seen.insert(*earlier)));
                }
                Some(_) => {
                    found.insert(read);
                }
                None => {}
            }
        }
        found
    }

    /// Does what a source of both runs writes in the passing run follow from what it reads there?
    /// `None` where that is not known.
    fn follows_from_reads(&self, flow: &Flow) -> Option<bool> {
        let (trace, read) = (self.failing.trace, flow.failing.read);
        let part = trace.event(read.event).kind.reads().get(read.part as usize)?;
        let written = trace.event(event_of(flow.failing.write)?).kind.writes();
        let value = written.iter().find(|other| other.cell == part.cell)?.value;
        let partner = flow.passing.read;
        let part =
            self.passing.trace.event(partner.event).kind.reads().get(partner.part as usize)?;
        let returned = self.passing.evaluation.values.get(part.var.index()).copied().flatten()?;
        Some(self.evaluated(value)? == returned)
    }

    /// The reads of pointers through which a read that comes from elsewhere went, where they come from elsewhere
    /// as well: then it is another object that was read.
    fn pointers(&self, flow: &Flow) -> Vec<ReadRef> {
        if flow.same_source {
            return Vec::new();
        }
        let trace = self.failing.trace;
        let reads = trace.address_reads(trace.event(flow.failing.read.event)).into_iter();
        reads.filter(|read| self.flow(*read).is_some_and(|flow| !flow.same_source)).collect()
    }

    /// The branch by which a source that only one of the runs has came to be.
    fn branch_of_source<'b>(
        &self,
        flow: &Flow,
        branches: &'b [Divergence],
    ) -> Option<&'b Divergence> {
        let failing =
            event_of(flow.failing.write).filter(|w| self.matching.in_passing(*w).is_none());
        let failing = failing.map(|write| &self.failing.trace.thread_of(write).name);
        let passing =
            event_of(flow.passing.write).filter(|w| self.matching.in_failing(*w).is_none());
        let passing = passing.map(|write| &self.passing.trace.thread_of(write).name);
        let name = failing.or(passing)?;
        let threads = &self.failing.trace.threads;
        branches.iter().find(|branch| threads[branch.thread.index()].name == *name)
    }

    /// See [`Across::operations`].
    fn operations(
        &self,
        [failing, passing]: [&[DataFlow]; 2],
        follows: &BTreeMap<ReadRef, Vec<ReadRef>>,
    ) -> usize {
        let own = operations([failing, &[]], follows);
        let partner = |read: &ReadRef| self.partner(*read);
        let others: BTreeMap<ReadRef, Vec<ReadRef>> =
            follows.keys().filter_map(partner).map(|read| (read, Vec::new())).collect();
        let theirs = operations([&[], passing], &others);
        let alone = theirs.iter().filter(|id| {
            self.matching.in_failing(**id).is_none_or(|partner| !own.contains(&partner))
        });
        own.len() + alone.count()
    }

    /// See [`Across::behind`].
    fn behind(&self) -> usize {
        let trace = self.failing.trace;
        let Some(failure) = &trace.failure else { return 0 };
        let thread = trace.thread_of(failure.event);
        thread.events.len() - self.common_path(thread.id).0
    }

    /// See [`Across::distance`].
    fn distance(&self) -> usize {
        let reads = self.failing.evaluation.reads_from.keys().copied();
        let other = reads.filter_map(|read| self.flow(read)).filter(|flow| !flow.same_source);
        let own = self.failing.trace.events.iter().map(|event| event.id);
        other.count() + own.filter(|id| self.matching.in_passing(*id).is_none()).count()
    }
}

/// The event that best tells a reader where a thread went: the first access to memory, if it comes
/// soon, or else the first event that means something by itself.
pub(crate) fn mark(trace: &EventTrace, alone: impl Iterator<Item = EventId>) -> Option<EventId> {
    /// How many events an access may come after.
    const SOON: usize = 4;
    let telling = alone.filter(|id| {
        !matches!(
            trace.event(*id).kind,
            EventKind::Start
                | EventKind::Exit
                | EventKind::Fence
                | EventKind::Failure
                | EventKind::Unlock { .. }
        )
    });
    let first: Vec<EventId> = telling.take(SOON).collect();
    let accesses = |id: &&EventId| {
        let kind = &trace.event(**id).kind;
        !kind.reads().is_empty() || !kind.writes().is_empty()
    };
    first.iter().find(accesses).or(first.first()).copied()
}
