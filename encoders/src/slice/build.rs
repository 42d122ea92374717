//! The trace that a slice is.

use super::relevance::{Relevant, writes_of};
use super::{Slice, kept_before};
use crate::clock::narrowed;
use crate::context::Context;
use crate::read_write::failure_values;
use model::{
    Cell, CellId, ConditionId, Event, EventId, EventKind, EventTrace, ExprId, PathCondition,
    ReadPart, ReadRef, Thread, VarId, WritePart,
};
use rustc_hash::{FxHashMap, FxHashSet};

pub(super) fn build(context: &Context<'_>, relevant: &Relevant) -> Slice {
    let trace = context.trace;
    let mut builder = Builder {
        trace,
        relevant,
        written: written(context, relevant),
        slice: Slice::default(),
        cells: FxHashMap::default(),
        variables: FxHashMap::default(),
    };
    builder.events();
    builder.expressions();
    builder.slice
}

/// The parts of writes that some read can see.
fn written(context: &Context<'_>, relevant: &Relevant) -> FxHashSet<(EventId, CellId)> {
    let mut written = FxHashSet::default();
    for (&(cell, thread), range) in &relevant.writes {
        let writes = &writes_of(context, cell, thread)[range.clone()];
        written.extend(writes.iter().map(|write| (write.event, cell)));
    }
    written
}

struct Builder<'a> {
    trace: &'a EventTrace,
    relevant: &'a Relevant,
    written: FxHashSet<(EventId, CellId)>,
    slice: Slice,
    cells: FxHashMap<CellId, CellId>,
    variables: FxHashMap<VarId, VarId>,
}

impl Builder<'_> {
    fn cell(&mut self, id: CellId) -> CellId {
        self.slice.named(id, &mut self.cells)
    }

    /// Threads and events, with the whole trace's expressions and variables still.
    fn events(&mut self) {
        let (trace, relevant) = (self.trace, self.relevant);
        let mut images: Vec<Option<EventId>> = vec![None; trace.events.len()];
        let mut intervals = Vec::new();
        for thread in &trace.threads {
            let times =
                if trace.intervals.is_empty() { Vec::new() } else { narrowed(trace, thread) };
            let mut events = Vec::new();
            for (index, &id) in thread.events.iter().enumerate() {
                if !relevant.events[id.index()] {
                    continue;
                }
                let image = EventId::from_index(self.slice.events.len());
                images[id.index()] = Some(image);
                self.slice.events.push(id);
                intervals.extend(times.get(index).copied());
                let event = self.event(trace.event(id), image, events.len());
                self.slice.trace.events.push(event);
                events.push(image);
            }
            self.slice.trace.threads.push(Thread { events, ..thread.clone() });
        }
        let image = |id: EventId| images.get(id.index()).copied().flatten().unwrap_or(id);
        for event in &mut self.slice.trace.events {
            if let EventKind::Wake { began, .. } | EventKind::WaitTimedOut { began, .. } =
                &mut event.kind
            {
                *began = image(*began);
            }
        }
        self.slice.trace.intervals = intervals;
        // An access that is not in the slice happens as soon as it can: behind the thread's event before it.
        let image_or_before = |id: EventId| {
            let event = trace.event(id);
            let before = trace.threads[event.thread.index()].events.get(..=event.index as usize)?;
            before.iter().rev().find_map(|id| images.get(id.index()).copied().flatten())
        };
        let both = |&(access, free): &(EventId, EventId)| {
            image_or_before(access).zip(images.get(free.index()).copied().flatten())
        };
        self.slice.trace.lifetimes = trace.lifetimes.iter().filter_map(both).collect();
        self.slice.trace.lifetimes.sort_unstable();
        self.slice.trace.lifetimes.dedup();
        self.slice.trace.given = trace.given.iter().filter_map(both).collect();
        self.slice.trace.objects.clone_from(&trace.objects);
        self.slice.trace.failure.clone_from(&trace.failure);
        if let Some(failure) = &mut self.slice.trace.failure {
            failure.event = image(failure.event);
            failure.condition.events_mut().into_iter().for_each(|event| *event = image(*event));
        }
        self.conditions();
    }

    fn event(&mut self, event: &Event, id: EventId, index: usize) -> Event {
        let kind = match &event.kind {
            EventKind::Read { .. }
            | EventKind::Write { .. }
            | EventKind::ReadModifyWrite { .. } => self.access(event, id),
            kind => kind.clone(),
        };
        Event { id, index: u32::try_from(index).unwrap_or(u32::MAX), kind, ..event.clone() }
    }

    /// What is left of an access.
    fn access(&mut self, event: &Event, id: EventId) -> EventKind {
        let mut reads = Vec::new();
        for (part, read) in (0u32..).zip(event.kind.reads()) {
            if !self.relevant.reads.contains(&ReadRef { event: event.id, part }) {
                continue;
            }
            let here = ReadRef { event: id, part: reads.len() as u32 };
            if here.part != part {
                self.slice.parts.insert(here, part);
            }
            reads.push(ReadPart { cell: self.cell(read.cell), ..*read });
        }
        let mut writes = Vec::new();
        for write in event.kind.writes() {
            if self.written.contains(&(event.id, write.cell)) {
                writes.push(WritePart { cell: self.cell(write.cell), ..*write });
            }
        }
        match (reads.is_empty(), writes.is_empty()) {
            (_, true) => EventKind::Read { parts: reads },
            (true, false) => EventKind::Write { parts: writes },
            (false, false) => EventKind::ReadModifyWrite { reads, writes },
        }
    }

    fn conditions(&mut self) {
        let trace = self.trace;
        let kept = kept_before(self.trace, &self.relevant.events);
        for (condition, matters) in trace.conditions.iter().zip(&self.relevant.conditions) {
            if !matters {
                continue;
            }
            let counts = kept.get(condition.thread.index());
            let position = counts.and_then(|counts| counts.get(condition.position as usize));
            let id = ConditionId::from_index(self.slice.trace.conditions.len());
            self.slice.trace.conditions.push(PathCondition {
                id,
                position: position.copied().unwrap_or(condition.position),
                ..condition.clone()
            });
        }
    }

    /// Cells, variables and expressions, of which only those stay that the events, the conditions
    /// and the failure mention.
    fn expressions(&mut self) {
        let trace = self.trace;
        let mut roots: Vec<ExprId> = Vec::new();
        let kinds = self.slice.trace.events.iter().map(|event| &event.kind);
        roots.extend(kinds.flat_map(|kind| kind.writes().iter().map(|part| part.value)));
        roots.extend(self.slice.trace.conditions.iter().map(|condition| condition.expr));
        roots.extend(failure_values(trace));
        roots.extend(self.slice.cells.iter().map(|cell| trace.cells[cell.index()].init));

        let (variables, found) = (&mut self.variables, &mut self.slice.variables);
        let mut rename = |var: VarId| {
            *variables.entry(var).or_insert_with(|| {
                found.push(var);
                VarId::from_index(found.len() - 1)
            })
        };
        // Every part that is read has its variable, mentioned or not.
        for event in &mut self.slice.trace.events {
            if let EventKind::Read { parts: reads } | EventKind::ReadModifyWrite { reads, .. } =
                &mut event.kind
            {
                reads.iter_mut().for_each(|part| part.var = rename(part.var));
            }
        }
        let (pool, images) = trace.exprs.restricted(roots, &mut rename);
        let image = |id: ExprId| images[id.0 as usize].unwrap_or(id);
        for event in &mut self.slice.trace.events {
            if let EventKind::Write { parts: writes } | EventKind::ReadModifyWrite { writes, .. } =
                &mut event.kind
            {
                writes.iter_mut().for_each(|part| part.value = image(part.value));
            }
        }
        for condition in &mut self.slice.trace.conditions {
            condition.expr = image(condition.expr);
        }
        if let Some(failure) = &mut self.slice.trace.failure {
            failure.condition.values_mut().into_iter().for_each(|expr| *expr = image(*expr));
        }
        for (index, cell) in self.slice.cells.iter().enumerate() {
            let whole = &trace.cells[cell.index()];
            self.slice.trace.cells.push(Cell {
                id: CellId::from_index(index),
                init: image(whole.init),
                ..whole.clone()
            });
        }
        self.slice.trace.exprs = pool;
        let cells = &self.cells;
        self.slice.make_variables(trace, |cell| cells.get(&cell).copied());
    }
}
