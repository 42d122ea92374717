//! The coarse trace, by its cuts.

use super::Coarse;
use super::cuts::Cuts;
use crate::read_write::failure_values;
use model::expr::Substitute;
use model::{
    Cell, CellId, Event, EventId, EventKind, EventTrace, ExprId, LockMode, ObjectId, PathCondition,
    ReadPart, ReadRef, Thread, VarId, Variable, VariableOrigin, WritePart,
};
use rustc_hash::FxHashMap;
use std::sync::Arc;

pub(super) fn build(trace: &EventTrace, cuts: &Cuts) -> Option<Coarse> {
    let mut builder = Builder {
        trace,
        cuts,
        coarse: Coarse { images: vec![EventId(u32::MAX); trace.events.len()], ..Coarse::default() },
        follows: FxHashMap::default(),
        names: FxHashMap::default(),
    };
    for thread in &trace.threads {
        builder.thread(thread)?;
    }
    builder.references()?;
    builder.expressions()?;
    Some(builder.coarse)
}

/// What a read within an event returns.
#[derive(Clone, Copy)]
enum Follows {
    /// What the event's own read of the cell does.
    Read(VarId),
    /// What the event wrote before.
    Write(ExprId),
}

struct Builder<'a> {
    trace: &'a EventTrace,
    cuts: &'a Cuts,
    coarse: Coarse,
    /// By variable of the whole trace, for the reads that follow from others.
    follows: FxHashMap<VarId, Follows>,
    /// By variable of the whole trace.
    names: FxHashMap<VarId, VarId>,
}

/// What several accesses of a thread do together.
#[derive(Default)]
struct Together {
    reads: Vec<ReadPart>,
    writes: Vec<WritePart>,
    /// By cell, places in these.
    read: FxHashMap<CellId, usize>,
    written: FxHashMap<CellId, usize>,
    locks: Vec<(ObjectId, LockMode)>,
}

impl Together {
    fn read(&mut self, part: ReadPart) -> Option<Follows> {
        if let Some(&at) = self.written.get(&part.cell) {
            return Some(Follows::Write(self.writes[at].value));
        }
        if let Some(&at) = self.read.get(&part.cell) {
            return Some(Follows::Read(self.reads[at].var));
        }
        self.read.insert(part.cell, self.reads.len());
        self.reads.push(part);
        None
    }

    fn write(&mut self, part: WritePart) {
        match self.written.get(&part.cell) {
            Some(&at) => self.writes[at] = part,
            None => {
                self.written.insert(part.cell, self.writes.len());
                self.writes.push(part);
            }
        }
    }

    fn lock(&mut self, object: ObjectId, mode: LockMode) {
        match self.locks.iter_mut().find(|(of, _)| *of == object) {
            Some((_, LockMode::Exclusive)) => {}
            Some(known) => known.1 = mode,
            None => self.locks.push((object, mode)),
        }
    }
}

impl Builder<'_> {
    fn thread(&mut self, thread: &Thread) -> Option<()> {
        let mut events = Vec::new();
        // By event, how many of the coarse ones there are once it is done.
        let mut done = Vec::with_capacity(thread.events.len() + 1);
        done.push(0u32);
        let mut at = 0;
        while let Some(&first) = thread.events.get(at) {
            let mut end = at + 1;
            while !self.cuts.is_alone(first)
                && thread.events.get(end).is_some_and(|id| !self.cuts.begins(*id))
            {
                end += 1;
            }
            self.step(&thread.events[at..end], &mut events)?;
            done.resize(end + 1, events.len() as u32);
            at = end;
        }
        for condition in self.trace.conditions.iter().filter(|c| c.thread == thread.id) {
            let position = *done.get(condition.position as usize)?;
            self.coarse.trace.conditions.push(PathCondition { position, ..condition.clone() });
        }
        self.coarse.trace.threads.push(Thread { events, ..thread.clone() });
        Some(())
    }

    /// Some events of a thread in a row as one, with the locks that it takes for it.
    fn step(&mut self, step: &[EventId], events: &mut Vec<EventId>) -> Option<()> {
        let first = self.trace.event(*step.first()?);
        let mut together = Together::default();
        for &id in step {
            let event = self.trace.event(id);
            if id.0 != first.id.0 + (event.index - first.index) {
                return None;
            }
            for part in event.kind.reads() {
                if let Some(follows) = together.read(*part) {
                    self.follows.insert(part.var, follows);
                }
            }
            event.kind.writes().iter().for_each(|part| together.write(*part));
            if let (EventKind::Lock { object, mode }, 2..) = (&event.kind, step.len()) {
                together.lock(*object, *mode);
            }
        }
        let held = |kind| Event { kind, name: None, pieces: Arc::new([]), ..first.clone() };
        for &(object, mode) in &together.locks {
            self.push(held(EventKind::Lock { object, mode }), (first.id, 0), events);
        }
        let image = match step {
            [_] => first.clone(),
            _ => held(match (together.reads.is_empty(), together.writes.is_empty()) {
                (true, true) => EventKind::Fence,
                (false, true) => EventKind::Read { parts: together.reads },
                (true, false) => EventKind::Write { parts: together.writes },
                (false, false) => {
                    EventKind::ReadModifyWrite { reads: together.reads, writes: together.writes }
                }
            }),
        };
        let id = self.push(image, (first.id, step.len() as u32), events);
        for whole in step {
            self.coarse.images[whole.index()] = id;
        }
        for &(object, mode) in together.locks.iter().rev() {
            let kind = EventKind::Unlock { object, mode, synthetic: false };
            self.push(held(kind), (first.id, 0), events);
        }
        Some(())
    }

    fn push(
        &mut self,
        event: Event,
        members: (EventId, u32),
        events: &mut Vec<EventId>,
    ) -> EventId {
        let id = EventId::from_index(self.coarse.trace.events.len());
        self.coarse.trace.events.push(Event { id, index: events.len() as u32, ..event });
        self.coarse.members.push(members);
        events.push(id);
        id
    }

    /// Events that others, or the failure, speak of.
    fn references(&mut self) -> Option<()> {
        let Coarse { trace, images, .. } = &mut self.coarse;
        let image = |id: EventId| images.get(id.index()).copied();
        for event in &mut trace.events {
            if let EventKind::Wake { began, .. } | EventKind::WaitTimedOut { began, .. } =
                &mut event.kind
            {
                *began = image(*began)?;
            }
        }
        let lifetimes = self.trace.lifetimes.iter();
        trace.lifetimes =
            lifetimes.filter_map(|(access, free)| image(*access).zip(image(*free))).collect();
        let given = self.trace.given.iter();
        let given = given.filter_map(|(before, after)| image(*before).zip(image(*after)));
        // Within one event they are as the thread does them.
        trace.given = given.filter(|(before, after)| before != after).collect();
        trace.objects.clone_from(&self.trace.objects);
        trace.failure.clone_from(&self.trace.failure);
        if let Some(failure) = &mut trace.failure {
            failure.event = image(failure.event)?;
            for event in failure.condition.events_mut() {
                *event = image(*event)?;
            }
        }
        // They were taken thread by thread.
        for (index, condition) in trace.conditions.iter_mut().enumerate() {
            condition.id = model::ConditionId::from_index(index);
        }
        Some(())
    }

    fn expressions(&mut self) -> Option<()> {
        let whole = self.trace;
        let coarse = &mut self.coarse.trace;
        let mut roots: Vec<ExprId> = Vec::new();
        roots.extend(coarse.events.iter().flat_map(|e| e.kind.writes().iter().map(|w| w.value)));
        roots.extend(coarse.conditions.iter().map(|condition| condition.expr));
        roots.extend(failure_values(whole));
        roots.extend(whole.cells.iter().map(|cell| cell.init));
        let (names, variables) = (&mut self.names, &mut self.coarse.variables);
        let mut rename = |var: VarId| {
            *names.entry(var).or_insert_with(|| {
                variables.push(var);
                VarId::from_index(variables.len() - 1)
            })
        };
        // Every part that is read has its variable, mentioned or not.
        for event in &mut coarse.events {
            if let EventKind::Read { parts: reads } | EventKind::ReadModifyWrite { reads, .. } =
                &mut event.kind
            {
                reads.iter_mut().for_each(|part| part.var = rename(part.var));
            }
        }
        let follows = &self.follows;
        let (pool, images) = whole.exprs.substituted(roots, |var| match follows.get(&var) {
            None => Substitute::Variable(rename(var)),
            Some(Follows::Read(first)) => Substitute::Variable(rename(*first)),
            Some(Follows::Write(value)) => Substitute::Expression(*value),
        });
        let image = |id: ExprId| images.get(id.0 as usize).copied().flatten();
        for event in &mut coarse.events {
            if let EventKind::Write { parts: writes } | EventKind::ReadModifyWrite { writes, .. } =
                &mut event.kind
            {
                for part in writes {
                    part.value = image(part.value)?;
                }
            }
        }
        // What one event decides within itself holds always.
        for condition in &mut coarse.conditions {
            condition.expr = image(condition.expr)?;
        }
        if let Some(failure) = &mut coarse.failure {
            for value in failure.condition.values_mut() {
                *value = image(*value)?;
            }
        }
        for cell in &whole.cells {
            coarse.cells.push(Cell { init: image(cell.init)?, ..cell.clone() });
        }
        coarse.exprs = pool;
        let mut reads: FxHashMap<VarId, ReadRef> = FxHashMap::default();
        for event in &coarse.events {
            for (part, read) in (0u32..).zip(event.kind.reads()) {
                reads.insert(read.var, ReadRef { event: event.id, part });
            }
        }
        for (index, var) in self.coarse.variables.iter().enumerate() {
            let id = VarId::from_index(index);
            let of = whole.variables.get(var.index())?;
            let origin = match (reads.get(&id), of.origin) {
                (Some(&ReadRef { event, part }), _) => VariableOrigin::Read { event, part },
                (None, VariableOrigin::Init(cell)) => VariableOrigin::Init(cell),
                (None, _) => VariableOrigin::Input,
            };
            coarse.variables.push(Variable { id, origin, ..*of });
        }
        Some(())
    }
}
