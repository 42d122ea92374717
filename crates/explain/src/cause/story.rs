//! What the patterns look at: the failing schedule, what it is compared with, and which pairs of
//! events the two have in another order.

use super::accesses::{Accesses, Branching};
use super::namesakes::Namesakes;
use super::words::{ADDRESS, without_indices};
use super::{CauseEvent, Passing, sections};
use crate::across::{Across, Flipped, Side};
use crate::cone::{failure_reads, feeds};
use crate::conflict::positions;
use crate::dsp::DataFlow;
use crate::happens_before::HappensBefore;
use crate::root_cause::RootCause;
use model::names::outside_of_library;
use model::trace::ValueDisplay;
use model::{
    Awaited, CellId, Event, EventId, EventKind, EventTrace, ExprId, PathCondition,
    PathConditionKind, ReadRef, Site, VarId, WriteSource,
};
use rustc_hash::FxHashMap;
use solver::Order;
use std::collections::BTreeSet;

/// A reversed pair, in the failing schedule's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pair {
    /// Both runs have both.
    Reversed(Order),
    /// What the passing run waited for, or read, did not happen in the failing run, which ended
    /// first.
    Late {
        /// The failing run's event that came too early.
        before: EventId,
        /// The passing run's event, by its identifier.
        after: EventId,
    },
}

/// A write of the passing run, and what it wrote.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sign {
    /// By the passing run's identifier.
    pub(super) event: EventId,
    /// The same event of the failing run, if that got there.
    pub(super) failing: Option<EventId>,
    pub(super) value: u128,
}

pub(super) struct Story<'a> {
    pub(super) failing: Side<'a>,
    pub(super) root_cause: Option<&'a RootCause>,
    pub(super) passing: Passing<'a>,
    place: Vec<u32>,
    passing_place: Vec<u32>,
    happens_before: HappensBefore,
    pub(super) known_accesses: Accesses,
    pub(super) branching: Branching,
    namesakes: Namesakes,
    namesakes_when_passing: Namesakes,
}

impl<'a> Story<'a> {
    pub(super) fn new(
        failing: Side<'a>,
        root_cause: Option<&'a RootCause>,
        passing: Passing<'a>,
    ) -> Self {
        let passing_place = match passing {
            Passing::None => Vec::new(),
            Passing::SamePaths { alternate, .. } => {
                positions(failing.trace, &alternate.schedule.order)
            }
            Passing::OtherPaths { run, .. } => positions(run.trace, &run.schedule.order),
        };
        let place = positions(failing.trace, &failing.schedule.order);
        let happens_before = HappensBefore::new(failing.trace, &failing.schedule.order);
        let (known_accesses, branching) = Default::default();
        let (namesakes, namesakes_when_passing) = Default::default();
        Self {
            failing,
            root_cause,
            passing,
            place,
            passing_place,
            happens_before,
            known_accesses,
            branching,
            namesakes,
            namesakes_when_passing,
        }
    }

    pub(super) fn trace(&self) -> &'a EventTrace {
        self.failing.trace
    }

    pub(super) fn event(&self, id: EventId) -> &'a Event {
        self.trace().event(id)
    }

    /// The name of an event's thread.
    pub(super) fn thread(&self, id: EventId) -> &'a str {
        &self.trace().thread_of(id).name
    }

    /// Is what it is compared with a run along other paths?
    pub(super) fn passes_elsewhere(&self) -> bool {
        matches!(self.passing, Passing::OtherPaths { .. })
    }

    /// The run along other paths that it is compared with.
    pub(super) fn other_run(&self) -> Option<(Side<'a>, &'a Across)> {
        match self.passing {
            Passing::OtherPaths { run, across, .. } => Some((run, across)),
            Passing::None | Passing::SamePaths { .. } => None,
        }
    }

    /// An event and the trace that it is of.
    pub(super) fn look_up(&self, id: CauseEvent) -> (&'a EventTrace, Option<&'a Event>) {
        let (trace, id) = match (id, self.passing) {
            (CauseEvent::Passing(id), Passing::OtherPaths { run, .. }) => (run.trace, id),
            (CauseEvent::Failing(id) | CauseEvent::Passing(id), _) => (self.trace(), id),
        };
        (trace, trace.events.get(id.index()))
    }

    /// What an event of the failing run is about, as [`Self::name`] has it.
    pub(super) fn subject(&self, id: EventId) -> String {
        self.name(CauseEvent::Failing(id)).unwrap_or_else(|| "?".to_owned())
    }

    pub(super) fn site(&self, id: EventId) -> &'a Site {
        self.event(id).site()
    }

    /// Does the failing schedule have the first before the second?
    pub(super) fn before(&self, first: EventId, second: EventId) -> bool {
        self.place[first.index()] < self.place[second.index()]
    }

    /// Does the first come before the second in every schedule, by program order, the creation of
    /// threads and their ends?
    pub(super) fn always_before(&self, first: EventId, second: EventId) -> bool {
        self.happens_before.before(first, second)
    }

    /// The same as [`Self::before`] in what it is compared with; `None` where that does not have both.
    pub(super) fn before_when_passing(&self, first: EventId, second: EventId) -> Option<bool> {
        Some(self.place_when_passing(first)? < self.place_when_passing(second)?)
    }

    pub(super) fn place_when_passing(&self, id: EventId) -> Option<u32> {
        let id = match self.passing {
            Passing::None => return None,
            Passing::SamePaths { .. } => id,
            Passing::OtherPaths { across, .. } => across.matching.in_passing(id)?,
        };
        self.passing_place.get(id.index()).copied().filter(|place| *place != u32::MAX)
    }

    /// The pairs that passing schedules have the other way round: the one that the alternate was
    /// made with, the root cause's, and those by which data-flows differ.
    pub(super) fn pairs(&self) -> Vec<Pair> {
        let mut pairs = Vec::new();
        match self.passing {
            Passing::None => {}
            Passing::SamePaths { alternate, .. } => {
                let Order { before, after } = alternate.flipped;
                pairs.push(Pair::Reversed(Order { before: after, after: before }));
            }
            Passing::OtherPaths { across, .. } => pairs.push(match across.flipped {
                Flipped::Reversed(order) => Pair::Reversed(order),
                Flipped::Late { before, after, .. } => Pair::Late { before, after },
            }),
        }
        let causes = self.root_cause.iter().flat_map(|cause| cause.orders.iter().rev());
        let causes: Vec<Order> = causes.map(|conflict| conflict.order).collect();
        let (reversed, others): (Vec<Order>, Vec<Order>) = causes
            .into_iter()
            .partition(|order| self.before_when_passing(order.after, order.before) == Some(true));
        let flows = self.flow_pairs();
        if let Some(early) = self.read_too_early(&pairs) {
            pairs.insert(0, early);
        } else if let Passing::OtherPaths { in_vain, .. } = self.passing {
            // What was proved goes before what was only seen in a run that differs in much.
            if !in_vain && !self.is_proved(&pairs) {
                let proved = reversed.iter().chain(&others);
                pairs.splice(0..0, proved.copied().map(Pair::Reversed));
            } else if !self.explains(&pairs) {
                pairs.splice(0..0, flows.iter().copied().map(Pair::Reversed));
            }
        }
        for order in reversed.into_iter().chain(flows).chain(others) {
            let pair = Pair::Reversed(order);
            if !pairs.contains(&pair) {
                pairs.push(pair);
            }
        }
        self.with_sections(self.of_the_program(pairs))
    }

    /// Behind each pair of critical sections, the accesses in them that the pair orders: that one
    /// thread had a lock before another is no cause by itself.
    fn with_sections(&self, pairs: Vec<Pair>) -> Vec<Pair> {
        let mut all: Vec<Pair> = Vec::new();
        for pair in pairs {
            let Pair::Reversed(order) = pair else {
                all.push(pair);
                continue;
            };
            let inner = sections::accesses(self, order);
            for pair in [pair].into_iter().chain(inner.into_iter().map(Pair::Reversed)) {
                if !all.contains(&pair) {
                    all.push(pair);
                }
            }
        }
        all
    }

    /// How a person calls what an event is about: [`Self::subject`], without what is inside of a
    /// library's types. Where that leaves nothing but `this`, the event being in the library
    /// itself, the name that the nearest event elsewhere has for the same place.
    pub(super) fn name(&self, id: CauseEvent) -> Option<String> {
        let (trace, event) = self.look_up(id);
        // The function that a thread waits in is no variable.
        let event = event.filter(|event| event.kind != EventKind::Block { on: Awaited::Call })?;
        let own = trace.subject(event)?;
        let plain = outside_of_library(own);
        if !is_inside(plain) {
            return Some(plain.to_owned());
        }
        // Local variables of functions that were called one after the other share a place.
        let (known, namesakes) = match (id, self.passing) {
            (CauseEvent::Passing(_), Passing::OtherPaths { .. }) => {
                (&self.passing_place, &self.namesakes_when_passing)
            }
            _ => (&self.place, &self.namesakes),
        };
        let place = |event: &Event| known.get(event.id.index()).copied().unwrap_or_default();
        let others = namesakes.of(trace, event).iter().map(|id| trace.event(*id));
        let others = others.filter_map(|other| {
            let name = trace.subject(other).map(outside_of_library)?;
            (!is_inside(name)).then(|| (place(other).abs_diff(place(event)), name))
        });
        let better = others.min_by_key(|(distance, _)| *distance).map(|(_, name)| name);
        if let Some(better) = better {
            return Some(better.to_owned());
        }
        let of_library = is_of_library(own) && event.depth() > 0;
        if !own.starts_with(ADDRESS) && !of_library {
            return Some(own.to_owned());
        }
        // Addresses differ from run to run, and tell nobody anything.
        let library = event.depth().checked_sub(1).and_then(|outer| event.stack.get(outer));
        let function = library.map(|site| site.function.split('<').next().unwrap_or_default());
        Some(match function.filter(|name| !name.is_empty()) {
            Some(function) => format!("memory that {function} uses"),
            None => "memory without a name".to_owned(),
        })
    }

    /// Is the reversed pair of a run along other paths about a variable of the root cause? So it is
    /// where there is no variable to compare.
    fn is_proved(&self, pairs: &[Pair]) -> bool {
        let cells_of = |order: Order| self.common_cells(order.before, order.after);
        let orders = self.root_cause.iter().flat_map(|cause| &cause.orders);
        let proved: BTreeSet<CellId> =
            orders.flat_map(|conflict| cells_of(conflict.order)).collect();
        let with_inner = self.with_sections(pairs.to_vec());
        let orders = with_inner.iter().filter_map(|pair| match pair {
            Pair::Reversed(order) => Some(*order),
            Pair::Late { .. } => None,
        });
        let cells: BTreeSet<CellId> = orders.flat_map(cells_of).collect();
        proved.is_empty() || cells.is_empty() || !proved.is_disjoint(&cells)
    }

    /// Is the reversed pair of a run along other paths about a variable by which it differs? Runs
    /// differ in much that has nothing to do with the failure.
    fn explains(&self, pairs: &[Pair]) -> bool {
        let Passing::OtherPaths { across, .. } = self.passing else { return true };
        pairs.iter().any(|pair| match pair {
            Pair::Late { .. } => true,
            Pair::Reversed(order) => {
                let cells = self.common_cells(order.before, order.after);
                across.failing_only.is_empty()
                    || cells.is_empty()
                    || across.failing_only.iter().any(|flow| {
                        let reads = self.event(flow.read.event).kind.reads();
                        let read = reads.get(flow.read.part as usize);
                        read.is_some_and(|read| cells.contains(&read.cell))
                    })
            }
        })
    }

    /// The reversed pairs by which reads return something else.
    fn flow_pairs(&self) -> Vec<Order> {
        match self.passing {
            Passing::None => Vec::new(),
            Passing::SamePaths { dsp, .. } => {
                let both = dsp.failing_only.iter().zip(&dsp.alternate_only);
                both.flat_map(|(failing, passing)| self.pairs_of_flow(failing, passing)).collect()
            }
            // Most of what both runs do they do in another order; what follows a read that returned
            // something else is what it may have missed.
            Passing::OtherPaths { across, .. } => {
                let reads: Vec<ReadRef> =
                    across.failing_only.iter().map(|flow| flow.read).collect();
                self.overwritten(&reads)
            }
        }
    }

    /// Each of these reads, and the next write of its cell by another thread.
    fn overwritten(&self, reads: &[ReadRef]) -> Vec<Order> {
        let cell = |read: &ReadRef| {
            let part = self.event(read.event).kind.reads().get(read.part as usize);
            part.map(|part| part.cell)
        };
        // All at once: a run has as many reads that return something else as it has rounds.
        let mut writes: FxHashMap<CellId, Vec<EventId>> =
            reads.iter().filter_map(cell).map(|cell| (cell, Vec::new())).collect();
        for event in &self.trace().events {
            for part in event.kind.writes() {
                let of_cell = writes.get_mut(&part.cell);
                of_cell.into_iter().for_each(|writes| writes.push(event.id));
            }
        }
        let place = |id: &EventId| self.place[id.index()];
        writes.values_mut().for_each(|writes| writes.sort_by_key(place));
        let next = |read: &ReadRef| {
            let writes = writes.get(&cell(read)?)?;
            let later = writes.partition_point(|id| place(id) <= place(&read.event));
            let own = self.event(read.event).thread;
            let mut later = writes.get(later..)?.iter();
            let after = later.find(|id| self.event(**id).thread != own)?;
            Some(Order { before: read.event, after: *after })
        };
        reads.iter().filter_map(next).collect()
    }

    fn pairs_of_flow(&self, failing: &DataFlow, passing: &DataFlow) -> Vec<Order> {
        let read = failing.read.event;
        let mut orders = Vec::new();
        if let WriteSource::Write(write) = failing.write {
            orders.push(Order { before: write, after: read });
        }
        if let WriteSource::Write(write) = passing.write {
            orders.push(Order { before: read, after: write });
            if let WriteSource::Write(other) = failing.write {
                orders.push(Order { before: write, after: other });
            }
        }
        orders.retain(|order| {
            self.event(order.before).thread != self.event(order.after).thread
                && self.before(order.before, order.after)
                && self.before_when_passing(order.after, order.before) == Some(true)
        });
        orders
    }

    /// Is one of the pair a read, or did it come too late?
    pub(super) fn has_read(&self, pair: Pair) -> bool {
        match pair {
            Pair::Reversed(order) => [order.before, order.after]
                .iter()
                .any(|id| !self.event(*id).kind.reads().is_empty()),
            Pair::Late { .. } => true,
        }
    }

    /// The cells that both touch and one of them writes.
    pub(super) fn common_cells(&self, one: EventId, other: EventId) -> Vec<CellId> {
        let cells = self.cells(one);
        let both = cells.into_iter().filter(|cell| {
            let (a, b) = (self.access(one, *cell), self.access(other, *cell));
            a.any() && b.any() && (a.writes || b.writes)
        });
        both.collect()
    }

    pub(super) fn cells(&self, id: EventId) -> Vec<CellId> {
        cells_of(self.event(id))
    }

    /// The write that an event's read of a cell returns in the failing schedule.
    pub(super) fn source(&self, id: EventId, cell: CellId) -> Option<EventId> {
        self.failing.evaluation.source(self.event(id), cell)
    }

    pub(super) fn access(&self, id: EventId, cell: CellId) -> Access {
        let kind = &self.event(id).kind;
        Access {
            reads: kind.reads().iter().any(|part| part.cell == cell),
            writes: kind.writes().iter().any(|part| part.cell == cell),
        }
    }

    /// Does the event read the cell, and the expression's or condition's set of reads have it?
    fn names_read(&self, reads: &BTreeSet<ReadRef>, event: EventId, cell: CellId) -> bool {
        let parts = (0u32..).zip(self.event(event).kind.reads());
        parts
            .filter(|(_, read)| read.cell == cell)
            .any(|(part, _)| reads.contains(&ReadRef { event, part }))
    }

    /// Does a branch of the thread between the two events hang on what the first one reads?
    pub(super) fn decides(&self, first: EventId, second: EventId, cell: CellId) -> bool {
        let (first, second) = (self.event(first), self.event(second));
        let between = |position: u32| first.index < position && position <= second.index;
        let branches = self.trace().conditions.iter().filter(|condition| {
            condition.thread == first.thread
                && condition.kind != PathConditionKind::Address
                && between(condition.position)
        });
        let mut branches = branches;
        branches.any(|branch| self.names_read(&self.trace().reads_of(branch.expr), first.id, cell))
    }

    /// Do both events read a pointer from the cell, and only one of them none? A pointer that is
    /// used is known from the log, so no condition is left that would tell of the test for null.
    pub(super) fn turns_null(&self, first: EventId, second: EventId, cell: CellId) -> bool {
        let value = |id: EventId| self.found(id, cell);
        let display = self.trace().cells[cell.index()].display;
        let values = value(first).zip(value(second));
        display == ValueDisplay::Pointer && values.is_some_and(|(a, b)| (a == 0) != (b == 0))
    }

    /// A variable's value in the failing run, where it is known.
    pub(super) fn value(&self, var: VarId) -> Option<u128> {
        self.failing.evaluation.values.get(var.index()).copied().flatten()
    }

    /// What an event read from the cell.
    pub(super) fn found(&self, read: EventId, cell: CellId) -> Option<u128> {
        let part = self.event(read).kind.reads().iter().find(|part| part.cell == cell)?;
        self.value(part.var)
    }

    /// What an event wrote to the cell.
    pub(super) fn left(&self, write: EventId, cell: CellId) -> Option<u128> {
        let part = self.event(write).kind.writes().iter().find(|part| part.cell == cell)?;
        self.trace().exprs.evaluate(part.value, &|var| self.value(var))
    }

    /// Does the write leave another value in the cell than the read found there? Yes where that is not
    /// known.
    pub(super) fn brings_news(&self, write: EventId, read: EventId, cell: CellId) -> bool {
        let (written, found) = (self.left(write, cell), self.found(read, cell));
        written.is_none() || written != found
    }

    /// Is it an atomic update that leaves the cell as it was, as one does that compares in vain?
    pub(super) fn keeps(&self, update: EventId, cell: CellId) -> bool {
        let found = self.found(update, cell);
        found.is_some() && found == self.left(update, cell)
    }

    /// Does what the second event writes to the cell hang on what the first one reads?
    pub(super) fn feeds(&self, first: EventId, second: EventId, cell: CellId) -> bool {
        feeds(self.trace(), first, second, cell)
    }

    /// Does anything that the second event writes hang on what the first one reads from the cell?
    pub(super) fn computes(&self, first: EventId, second: EventId, cell: CellId) -> bool {
        let mut written = self.event(second).kind.writes().iter();
        written.any(|part| self.names_read(&self.trace().reads_of(part.value), first, cell))
    }

    /// Does the thread write what it reads there to another place before the second event, or does the failure hang on
    /// it? What only one thread touches at a time has no events of its own.
    pub(super) fn passes_on(&self, first: EventId, second: EventId, cell: CellId) -> bool {
        let (from, to) = (self.event(first), self.event(second));
        let own = &self.trace().threads[from.thread.index()].events;
        let between = own.get(from.index as usize + 1..to.index as usize).unwrap_or_default();
        let mut between = between.iter().copied().filter(|id| !self.access(*id, cell).writes);
        between.any(|id| self.computes(first, id, cell))
            || self.names_read(&self.failure_reads(), first, cell)
    }

    /// Does any branch of its thread hang on what the event reads from the cell?
    pub(super) fn decides_something(&self, id: EventId, cell: CellId) -> bool {
        let own = self.trace().conditions.iter().filter(|condition| {
            condition.thread == self.event(id).thread && condition.kind == PathConditionKind::Branch
        });
        let mut own = own;
        own.any(|branch| self.names_read(&self.trace().reads_of(branch.expr), id, cell))
    }

    /// Is there a name of the program for what the event is about, and not only one of a library?
    pub(super) fn is_named(&self, id: EventId) -> bool {
        let name = self.name(CauseEvent::Failing(id));
        name.is_some_and(|name| {
            outside_of_library(&name).len() == name.len() && !name.starts_with("memory ")
        })
    }

    /// Do both reads decide one branch of their thread, or its failure?
    pub(super) fn decide_together(&self, one: EventId, other: EventId, cell: CellId) -> bool {
        let both = |reads: &BTreeSet<ReadRef>| {
            self.names_read(reads, one, cell) && self.names_read(reads, other, cell)
        };
        let thread = self.event(one).thread;
        let failure = self.trace().failure.as_ref().map(|failure| failure.event);
        let own_failure = failure.is_some_and(|failure| self.event(failure).thread == thread);
        if own_failure && both(&self.failure_reads()) {
            return true;
        }
        let mut own = self.trace().conditions.iter().filter(|c| c.thread == thread);
        own.any(|condition| both(&self.trace().reads_of(condition.expr)))
    }

    /// Do two events read one value from the cell?
    pub(super) fn find_the_same(&self, one: EventId, other: EventId, cell: CellId) -> bool {
        let found = self.found(one, cell);
        found.is_some() && found == self.found(other, cell)
    }

    /// What decides whether the run fails was read before another thread wrote it, and that thread was on its way
    /// to write it when the run ended: that says more than by which way the two came there.
    fn read_too_early(&self, pairs: &[Pair]) -> Option<Pair> {
        let Passing::OtherPaths { run, across, .. } = self.passing else { return None };
        let named: BTreeSet<CellId> =
            self.failure_reads().iter().flat_map(|read| self.cells(read.event)).collect();
        let told = pairs.first().is_some_and(|pair| match pair {
            Pair::Reversed(order) => {
                let cells = self.common_cells(order.before, order.after);
                cells.iter().any(|cell| named.contains(cell))
            }
            Pair::Late { .. } => true,
        });
        if told {
            return None;
        }
        self.failure_reads().into_iter().find_map(|read| {
            let event = across.matching.in_passing(read.event)?;
            let there = ReadRef { event, part: read.part };
            let WriteSource::Write(after) = *run.evaluation.reads_from.get(&there)? else {
                return None;
            };
            let late = across.matching.in_failing(after).is_none()
                && run.trace.event(after).thread != run.trace.event(event).thread;
            (late && self.was_about_to(run.trace, after))
                .then_some(Pair::Late { before: read.event, after })
        })
    }

    /// Was the thread of the passing run's event on the way to it when the failing run ended, by the calls and
    /// lines that it was in?
    fn was_about_to(&self, trace: &EventTrace, event: EventId) -> bool {
        let event = trace.event(event);
        let name = &trace.threads[event.thread.index()].name;
        let thread = self.trace().threads.iter().find(|thread| thread.name == *name);
        let Some(last) = thread.and_then(|thread| thread.events.last()) else { return false };
        let last = self.event(*last);
        if matches!(last.kind, EventKind::Exit | EventKind::Failure) {
            return false;
        }
        let mut both = last.stack.iter().rev().zip(event.stack.iter().rev());
        let parting = both.find(|(a, b)| a != b);
        parting.is_some_and(|(a, b)| {
            (&a.function, &a.file) == (&b.function, &b.file) && a.line <= b.line
        })
    }

    /// Does the event read from another source in what the failing schedule is compared with, or
    /// not happen there at all?
    pub(super) fn reads_otherwise(&self, id: EventId) -> bool {
        let flows = match self.passing {
            Passing::None => return true,
            Passing::SamePaths { dsp, .. } => &dsp.failing_only,
            Passing::OtherPaths { run, across, .. } => {
                return self.reads_otherwise_there(id, run, across);
            }
        };
        flows.iter().any(|flow| flow.read.event == id)
    }

    /// The same of a run along other paths: all reads are compared, not only those that it shows.
    fn reads_otherwise_there(&self, id: EventId, run: Side<'_>, across: &Across) -> bool {
        let Some(partner) = across.matching.in_passing(id) else { return true };
        let parts = 0..u32::try_from(self.event(id).kind.reads().len()).unwrap_or(0);
        parts.into_iter().any(|part| {
            let here = self.failing.evaluation.reads_from.get(&ReadRef { event: id, part });
            let there = run.evaluation.reads_from.get(&ReadRef { event: partner, part });
            let expected = here.map(|source| match source {
                WriteSource::Init => Some(WriteSource::Init),
                WriteSource::Write(write) => {
                    across.matching.in_passing(*write).map(WriteSource::Write)
                }
            });
            // What the failing run knows as there from the start may have a write in the other.
            !matches!((expected, there), (Some(Some(source)), Some(other)) if source == *other)
        })
    }

    /// Would the condition hold if a variable had the value that an event writes to the cell? `None`
    /// where that is not known.
    pub(super) fn holds_with(
        &self,
        condition: &PathCondition,
        var: VarId,
        cell: CellId,
        write: EventId,
    ) -> Option<bool> {
        self.value_with(condition.expr, var, cell, write).map(|value| value != 0)
    }

    /// An expression's value if a variable had the value that an event writes to the cell. `None` where
    /// that is not known.
    pub(super) fn value_with(
        &self,
        expr: ExprId,
        var: VarId,
        cell: CellId,
        write: EventId,
    ) -> Option<u128> {
        self.value_if(expr, var, self.left(write, cell)?)
    }

    /// Would the condition hold if a variable had this value? `None` where that is not known.
    pub(super) fn holds_if(
        &self,
        condition: &PathCondition,
        var: VarId,
        then: u128,
    ) -> Option<bool> {
        self.value_if(condition.expr, var, then).map(|value| value != 0)
    }

    /// What the event's thread went by to get there, the last first. What decides whether the run fails is no
    /// decision of the program.
    pub(super) fn decided_before(
        &self,
        end: EventId,
        kinds: &[PathConditionKind],
    ) -> Vec<&'a PathCondition> {
        let (trace, event) = (self.trace(), self.event(end));
        let failure = trace.failure.as_ref().map(|failure| self.site(failure.event));
        let mut conditions: Vec<&PathCondition> = trace
            .conditions
            .iter()
            .filter(|condition| {
                condition.thread == event.thread
                    && condition.position <= event.index
                    && kinds.contains(&condition.kind)
                    && failure != Some(&condition.site)
            })
            .collect();
        conditions.sort_by_key(|condition| std::cmp::Reverse((condition.position, condition.id)));
        conditions
    }

    pub(super) fn value_if(&self, expr: ExprId, var: VarId, then: u128) -> Option<u128> {
        let with = |other: VarId| if other == var { Some(then) } else { self.value(other) };
        self.trace().exprs.evaluate(expr, &with)
    }

    /// The last write, by the thread of a write that only the passing run has and before that, of the
    /// cell that a read of both runs is of.
    pub(super) fn sign_when_passing(&self, look: ReadRef, write: EventId) -> Option<Sign> {
        let Passing::OtherPaths { run, across, .. } = self.passing else { return None };
        let partner = across.matching.in_passing(look.event)?;
        let cell = run.trace.event(partner).kind.reads().get(look.part as usize)?.cell;
        let writer = run.trace.event(write);
        let own = run.trace.threads[writer.thread.index()].events.iter().rev();
        let mut earlier = own.map(|id| run.trace.event(*id)).filter(|e| e.index < writer.index);
        let (event, part) = earlier.find_map(|event| {
            let part = event.kind.writes().iter().find(|part| part.cell == cell)?;
            Some((event.id, part))
        })?;
        let known = |var: VarId| run.evaluation.values.get(var.index()).copied().flatten();
        let value = run.trace.exprs.evaluate(part.value, &known)?;
        Some(Sign { event, failing: across.matching.in_failing(event), value })
    }

    /// What an event's thread does behind it in the passing run alone.
    pub(super) fn only_when_passing(
        &self,
        behind: EventId,
        fits: impl Fn(&EventTrace, &Event) -> bool,
    ) -> Option<&'a Event> {
        let Passing::OtherPaths { run, across, .. } = self.passing else { return None };
        let there = run.trace.event(across.matching.in_passing(behind)?);
        let own = run.trace.threads[there.thread.index()].events.iter();
        let own = own.map(|id| run.trace.event(*id)).filter(|event| event.index > there.index);
        let mut alone = own.filter(|event| across.matching.in_failing(event.id).is_none());
        alone.find(|event| fits(run.trace, event))
    }

    /// Does the thread go by way of the pointer that the first event reads before it comes to the second?
    pub(super) fn follows(&self, first: EventId, second: EventId, cell: CellId) -> bool {
        let (first, second) = (self.event(first), self.event(second));
        let mut led = self.trace().conditions.iter().filter(|condition| {
            condition.thread == first.thread
                && condition.kind == PathConditionKind::Address
                && first.index < condition.position
                && condition.position < second.index
        });
        self.trace().cells[cell.index()].display == ValueDisplay::Pointer
            && led.any(|led| self.names_read(&self.trace().reads_of(led.expr), first.id, cell))
    }

    /// Would the condition hold at the end of the failing schedule, with what is then in the cells that
    /// it names? `None` where that is not known.
    pub(super) fn holds_at_the_end(&self, condition: &PathCondition) -> Option<bool> {
        self.holds_at(condition, None)
    }

    /// The same right before an event.
    pub(super) fn holds_at(&self, condition: &PathCondition, end: Option<EventId>) -> Option<bool> {
        let mut last = FxHashMap::default();
        for read in self.trace().reads_of(condition.expr) {
            let part = self.event(read.event).kind.reads().get(read.part as usize)?;
            let writers = self.trace().events.iter().map(|event| event.id);
            let writers = writers.filter(|id| {
                self.access(*id, part.cell).writes && end.is_none_or(|end| self.before(*id, end))
            });
            if let Some(write) = writers.max_by_key(|id| self.place[id.index()]) {
                last.insert(part.var, self.left(write, part.cell)?);
            }
        }
        let then = |var: VarId| last.get(&var).copied().or_else(|| self.value(var));
        self.trace().exprs.evaluate(condition.expr, &then).map(|value| value != 0)
    }

    /// The reads that the failure's condition names.
    pub(super) fn failure_reads(&self) -> BTreeSet<ReadRef> {
        failure_reads(self.trace())
    }

    /// Where an event comes in the failing schedule.
    pub(super) fn place(&self, id: EventId) -> u32 {
        self.place[id.index()]
    }

    /// The last event of a kind of the schedule.
    pub(super) fn last(&self, fits: impl Fn(&Event) -> bool) -> Option<EventId> {
        let events = self.trace().events.iter().filter(|event| fits(event));
        events.map(|event| event.id).max_by_key(|id| self.place[id.index()])
    }

    /// The last event of a kind that a thread performs before another event of the schedule.
    pub(super) fn last_before(
        &self,
        end: EventId,
        fits: impl Fn(&Event) -> bool,
    ) -> Option<EventId> {
        let events = self.trace().events.iter().filter(|event| fits(event));
        let earlier = events.map(|event| event.id).filter(|id| self.before(*id, end));
        earlier.max_by_key(|id| self.place[id.index()])
    }
}

/// The cells that an event touches, sorted.
pub(super) fn cells_of(event: &Event) -> Vec<CellId> {
    let reads = event.kind.reads().iter().map(|part| part.cell);
    let writes = event.kind.writes().iter().map(|part| part.cell);
    let cells: BTreeSet<CellId> = reads.chain(writes).collect();
    cells.into_iter().collect()
}

/// Does a name say no more than that a member function was called, or where in memory it is?
fn is_inside(name: &str) -> bool {
    let plain = without_indices(name);
    let bare = plain.trim_matches(|c| matches!(c, '*' | '(' | ')' | '[' | ']'));
    matches!(bare, "this" | "") || name.starts_with(ADDRESS) || is_of_library(name)
}

/// Does a name begin with a variable that the language reserves for its library, as its functions' own variables and
/// parameters are called?
fn is_of_library(name: &str) -> bool {
    let root = name.trim_start_matches(['*', '(', '&']);
    let mut rest = root.strip_prefix('_').into_iter().flat_map(str::chars);
    rest.next().is_some_and(|second| second == '_' || second.is_ascii_uppercase())
}

/// How an event touches a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Access {
    pub(super) reads: bool,
    pub(super) writes: bool,
}

impl Access {
    pub(super) fn any(self) -> bool {
        self.reads || self.writes
    }
}
