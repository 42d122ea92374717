//! What a run did before it failed, as a trace of its own.
//!
//! A run of a million events mostly fails by what happened shortly before. So the schedules are
//! looked at that begin as a known one does and go on as they like. What is left to order are the events
//! behind the beginning, over memory as the beginning leaves it. What other threads did when the failure had
//! happened comes behind all that; a critical section that was entered before is finished first. Of the beginning itself
//! stays what has not come to an end where it does: creations and starts of threads, locks that are held, waits that go
//! on, signals that have woken somebody who has not gone on, and rounds of barriers that somebody has still to leave.
//! These come first in every schedule ([`EventTrace::given`]).
//!
//! Each schedule of the whole trace that begins like this, and has everything in its order that came after the failure, has
//! one of the window in it. So what holds for all schedules of the window is said of those. A schedule of the window, with
//! the rest around it, is one of the whole trace but for what other threads do afterwards, which has to be looked at.

use super::{Slice, kept_before};
use crate::clock::narrowed;
use crate::read_write::failure_values;
use model::evaluate::Evaluation;
use model::expr::Substitute;
use model::{
    Awaited, Cell, CellId, ConditionId, Event, EventId, EventKind, EventTrace, Expr, ExprId,
    ObjectId, ObjectKind, PathCondition, ReadPart, Schedule, Thread, ThreadId, VarId,
    VariableOrigin, WritePart,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::ops::Range;

/// So many events of a thread behind the window may be part of it, to finish a critical section.
const SECTION: usize = 200;

/// The events of a schedule from one place of it to another; `evaluation` is what it does. `None` where there is no
/// beginning, where that leaves a value that is not known, and where the failure speaks of an access that is not in the
/// window.
#[must_use]
pub fn window(
    trace: &EventTrace,
    schedule: &Schedule,
    evaluation: &Evaluation,
    part: Range<usize>,
) -> Option<Slice> {
    let beginning = schedule.order.get(..part.start).filter(|beginning| !beginning.is_empty())?;
    let mut begins = vec![false; trace.events.len()];
    for id in beginning {
        *begins.get_mut(id.index())? = true;
    }
    let mut ends = vec![false; trace.events.len()];
    for id in schedule.order.get(part.end..)? {
        *ends.get_mut(id.index())? = true;
    }
    let values =
        trace.exprs.evaluate_all(&|var| evaluation.values.get(var.index()).copied().flatten());
    let mut builder = Builder {
        trace,
        beginning,
        begins,
        ends,
        values,
        stays: vec![false; trace.events.len()],
        slice: Slice { before: beginning.to_vec(), ..Slice::default() },
        contents: BTreeMap::new(),
        fixed: FxHashMap::default(),
        cells: FxHashMap::default(),
        variables: FxHashMap::default(),
    };
    builder.finish_sections();
    let left = schedule.order.get(part.end..)?.iter().filter(|id| builder.is_in_end(**id));
    builder.slice.after = left.copied().collect();
    builder.remember(evaluation);
    builder.open(evaluation)?;
    builder.events()?;
    builder.conditions()?;
    builder.expressions()?;
    Some(builder.slice)
}

/// Its place says nothing of what happens.
fn is_skeleton(kind: &EventKind) -> bool {
    matches!(kind, EventKind::Start | EventKind::Exit | EventKind::Failure | EventKind::Fork { .. })
}

/// What an expression depends on.
#[derive(Clone, Copy, Default)]
struct Depends {
    /// A variable that the beginning does not fix.
    on_window: bool,
    /// One that is read behind the window.
    on_end: bool,
}

struct Builder<'a> {
    trace: &'a EventTrace,
    beginning: &'a [EventId],
    /// By event: is it in the beginning?
    begins: Vec<bool>,
    /// By event: does it come behind the window?
    ends: Vec<bool>,
    /// By expression, its value in the known schedule.
    values: Vec<Option<u128>>,
    /// By event: is it in the window?
    stays: Vec<bool>,
    slice: Slice,
    /// What the beginning leaves in the cells that it writes, where that is known.
    contents: BTreeMap<CellId, Option<u128>>,
    /// The variables whose values the beginning fixes.
    fixed: FxHashMap<VarId, u128>,
    cells: FxHashMap<CellId, CellId>,
    variables: FxHashMap<VarId, VarId>,
}

impl Builder<'_> {
    fn is_in_beginning(&self, id: EventId) -> bool {
        self.begins.get(id.index()).copied().unwrap_or(false)
    }

    fn is_in_end(&self, id: EventId) -> bool {
        self.ends.get(id.index()).copied().unwrap_or(true)
    }

    /// Is it neither in the beginning nor behind the window?
    fn is_inside(&self, id: EventId) -> bool {
        !self.is_in_beginning(id) && !self.is_in_end(id)
    }

    /// Has each thread leave the critical sections that it is in where the window ends.
    fn finish_sections(&mut self) {
        for thread in &self.trace.threads {
            let Some(end) = thread.events.iter().position(|id| self.is_in_end(*id)) else {
                continue;
            };
            let mut held = 0usize;
            for (index, id) in thread.events.iter().enumerate() {
                if index >= end && (held == 0 || index - end > SECTION) {
                    break;
                }
                match self.trace.event(*id).kind {
                    EventKind::Lock { .. } => held += 1,
                    EventKind::Unlock { .. } => held = held.saturating_sub(1),
                    _ => {}
                }
                self.ends[id.index()] = false;
            }
        }
    }

    /// Memory and variables as the beginning leaves them. What no read fixes stays as the schedule has it.
    fn remember(&mut self, evaluation: &Evaluation) {
        for id in self.beginning {
            let kind = &self.trace.event(*id).kind;
            for part in kind.writes() {
                let value = self.values.get(part.value.0 as usize).copied().flatten();
                self.contents.insert(part.cell, value);
            }
            for part in kind.reads() {
                let value = evaluation.values.get(part.var.index()).copied().flatten();
                self.fixed.extend(value.map(|value| (part.var, value)));
            }
        }
        for variable in &self.trace.variables {
            let is_read = matches!(variable.origin, VariableOrigin::Read { .. });
            let value = evaluation.values.get(variable.id.index()).copied().flatten();
            if let (false, Some(value)) = (is_read, value) {
                self.fixed.insert(variable.id, value);
            }
        }
    }

    /// Chooses the events that stay.
    fn open(&mut self, evaluation: &Evaluation) -> Option<()> {
        let trace = self.trace;
        for event in &trace.events {
            let stays = is_skeleton(&event.kind) || !self.is_in_beginning(event.id);
            self.stays[event.id.index()] = stays && !self.is_in_end(event.id);
        }
        let mut open: Vec<EventId> = Vec::new();
        let locks = self.locks(&mut open);
        let mut waits = self.waits();
        for (wake, signal) in &evaluation.woken_by {
            if self.is_inside(*wake) && self.is_in_beginning(*signal) {
                open.push(*signal);
            }
        }
        if let Some(failure) = &trace.failure {
            for id in failure.condition.clone().events_mut() {
                match trace.event(*id).kind {
                    _ if self.is_in_end(*id) => return None,
                    _ if !self.is_in_beginning(*id) => {}
                    EventKind::Unlock { .. } => waits.push(*id),
                    EventKind::Free { .. } | EventKind::Allocate { .. } => open.push(*id),
                    _ => return None,
                }
            }
        }
        for release in waits {
            open.extend([*locks.get(&release)?, release]);
        }
        self.rounds(&mut open);
        for id in open {
            self.stays[id.index()] = true;
        }
        Some(())
    }

    /// The acquisition of each release in the beginning; those without one stay.
    fn locks(&self, open: &mut Vec<EventId>) -> BTreeMap<EventId, EventId> {
        let mut held: BTreeMap<(ThreadId, ObjectId), Vec<EventId>> = BTreeMap::new();
        let mut matched = BTreeMap::new();
        for id in self.beginning {
            let event = self.trace.event(*id);
            match event.kind {
                EventKind::Lock { object, .. } => {
                    held.entry((event.thread, object)).or_default().push(*id);
                }
                EventKind::Unlock { object, .. } => {
                    let lock = held.get_mut(&(event.thread, object)).and_then(Vec::pop);
                    matched.extend(lock.map(|lock| (*id, lock)));
                }
                _ => {}
            }
        }
        open.extend(held.into_values().flatten());
        matched
    }

    /// The releases in the beginning with which waits begin that end behind it, or do not end.
    fn waits(&self) -> Vec<EventId> {
        let trace = self.trace;
        let mut found = Vec::new();
        for event in trace.events.iter().filter(|event| self.is_inside(event.id)) {
            match event.kind {
                EventKind::Wake { began, .. } | EventKind::WaitTimedOut { began, .. } => {
                    found.push(began);
                }
                EventKind::Block { on: Awaited::Signal { .. } } => {
                    let thread = &trace.threads[event.thread.index()].events;
                    let before = thread[..event.index as usize].iter().rev();
                    let releases =
                        |id: &&EventId| matches!(trace.event(**id).kind, EventKind::Unlock { .. });
                    found.extend(before.copied().find(|id| releases(&id)));
                }
                _ => {}
            }
        }
        found.retain(|id| self.is_in_beginning(*id));
        found
    }

    /// What the beginning has of the barriers' rounds that somebody has still to leave.
    fn rounds(&self, open: &mut Vec<EventId>) {
        /// A barrier's arrivals, in order, and the departures of each thread.
        #[derive(Default)]
        struct Met {
            arrivals: Vec<(ThreadId, EventId)>,
            left: BTreeMap<ThreadId, Vec<EventId>>,
        }
        let mut met: BTreeMap<ObjectId, Met> = BTreeMap::new();
        for id in self.beginning {
            let event = self.trace.event(*id);
            match event.kind {
                EventKind::BarrierArrive { object } => {
                    met.entry(object).or_default().arrivals.push((event.thread, *id));
                }
                EventKind::BarrierLeave { object } => {
                    let left = &mut met.entry(object).or_default().left;
                    left.entry(event.thread).or_default().push(*id);
                }
                _ => {}
            }
        }
        for (object, Met { arrivals, left }) in met {
            let Some(ObjectKind::Barrier { count }) =
                self.trace.objects.get(object.index()).map(|object| object.kind)
            else {
                continue;
            };
            // A thread leaves its rounds in the order in which it came.
            let mut arrived: BTreeMap<ThreadId, usize> = BTreeMap::new();
            let arrivals: Vec<(EventId, Option<EventId>)> = arrivals
                .iter()
                .map(|&(thread, id)| {
                    let number = arrived.entry(thread).or_default();
                    *number += 1;
                    let left = left.get(&thread).and_then(|left| left.get(*number - 1));
                    (id, left.copied())
                })
                .collect();
            let stays = |(_, left): &(EventId, Option<EventId>)| left.is_none();
            let Some(first) = arrivals.iter().position(stays) else { continue };
            let round = first - first % (count.max(1) as usize);
            for (arrival, left) in &arrivals[round..] {
                open.push(*arrival);
                open.extend(*left);
            }
        }
    }

    fn cell(&mut self, id: CellId) -> CellId {
        self.slice.named(id, &mut self.cells)
    }

    /// Threads and events, with the whole trace's expressions and variables still.
    fn events(&mut self) -> Option<()> {
        let trace = self.trace;
        let mut images: FxHashMap<EventId, EventId> = FxHashMap::default();
        let mut intervals = Vec::new();
        // By thread, its last event that has to come first, and its first behind the beginning.
        let mut bounds: Vec<(Option<EventId>, Option<EventId>)> = Vec::new();
        for thread in &trace.threads {
            let times =
                if trace.intervals.is_empty() { Vec::new() } else { narrowed(trace, thread) };
            let (mut events, mut bound) = (Vec::new(), (None, None));
            // Of the calls of the last event that stays, how many those that go have left.
            let mut left = Event::ALL_CONTINUED;
            for (index, &id) in thread.events.iter().enumerate() {
                left = left.min(trace.event(id).continued);
                if !self.stays[id.index()] {
                    continue;
                }
                let continued = std::mem::replace(&mut left, Event::ALL_CONTINUED);
                let image = EventId::from_index(self.slice.events.len());
                images.insert(id, image);
                self.slice.events.push(id);
                intervals.extend(times.get(index).copied());
                let event = trace.event(id);
                let kind = self.kind(event);
                match kind {
                    _ if !self.is_in_beginning(id) => bound.1 = bound.1.or(Some(image)),
                    _ if is_skeleton(&event.kind) => {}
                    _ => bound.0 = Some(image),
                }
                let index = u32::try_from(events.len()).ok()?;
                let event = Event { id: image, index, kind, continued, ..event.clone() };
                self.slice.trace.events.push(event);
                events.push(image);
            }
            bounds.push(bound);
            self.slice.trace.threads.push(Thread { events, ..thread.clone() });
        }
        for (one, (last, _)) in bounds.iter().enumerate() {
            for (other, (_, first)) in bounds.iter().enumerate() {
                if let (true, Some(last), Some(first)) = (one != other, last, first) {
                    self.slice.trace.given.push((*last, *first));
                }
            }
        }
        let image = |id: EventId| images.get(&id).copied();
        for event in &mut self.slice.trace.events {
            if let EventKind::Wake { began, .. } | EventKind::WaitTimedOut { began, .. } =
                &mut event.kind
            {
                *began = image(*began)?;
            }
        }
        self.slice.trace.intervals = intervals;
        let both = |&(access, free): &(EventId, EventId)| image(access).zip(image(free));
        self.slice.trace.lifetimes = trace.lifetimes.iter().filter_map(both).collect();
        self.slice.trace.given.extend(trace.given.iter().filter_map(both));
        self.slice.trace.failure.clone_from(&trace.failure);
        if let Some(failure) = &mut self.slice.trace.failure {
            failure.event = image(failure.event)?;
            for event in failure.condition.events_mut() {
                *event = image(*event)?;
            }
        }
        self.objects()
    }

    fn kind(&mut self, event: &Event) -> EventKind {
        let mut kind = event.kind.clone();
        let (reads, writes): (&mut [ReadPart], &mut [WritePart]) = match &mut kind {
            EventKind::Read { parts } => (parts, &mut []),
            EventKind::Write { parts } => (&mut [], parts),
            EventKind::ReadModifyWrite { reads, writes } => (reads, writes),
            _ => (&mut [], &mut []),
        };
        reads.iter_mut().for_each(|part| part.cell = self.cell(part.cell));
        writes.iter_mut().for_each(|part| part.cell = self.cell(part.cell));
        kind
    }

    /// Semaphores have the units that the beginning leaves.
    fn objects(&mut self) -> Option<()> {
        self.slice.trace.objects.clone_from(&self.trace.objects);
        for id in self.beginning {
            let (object, posts) = match self.trace.event(*id).kind {
                EventKind::SemaphorePost { object } => (object, true),
                EventKind::SemaphoreWait { object } => (object, false),
                _ => continue,
            };
            let object = self.slice.trace.objects.get_mut(object.index())?;
            if let ObjectKind::Semaphore { initial } = &mut object.kind {
                *initial = match posts {
                    true => initial.saturating_add(1),
                    false => initial.checked_sub(1)?,
                };
            }
        }
        Some(())
    }

    /// The conditions that are not decided by the beginning.
    fn conditions(&mut self) -> Option<()> {
        let kept = kept_before(self.trace, &self.stays);
        let depends = self.dependences();
        for condition in &self.trace.conditions {
            // What depends on neither holds in the known schedule, and so in every one.
            let depends = depends.get(condition.expr.0 as usize)?;
            if !depends.on_window || depends.on_end {
                continue;
            }
            let counts = kept.get(condition.thread.index())?;
            let position = *counts.get(condition.position as usize)?;
            let id = ConditionId::from_index(self.slice.trace.conditions.len());
            self.slice.trace.conditions.push(PathCondition { id, position, ..condition.clone() });
        }
        let of_end = |expr: &ExprId| depends.get(expr.0 as usize).is_none_or(|it| it.on_end);
        (!failure_values(self.trace).iter().any(of_end)).then_some(())
    }

    /// By expression, what it depends on.
    fn dependences(&self) -> Vec<Depends> {
        let pool = &self.trace.exprs;
        let mut behind: FxHashSet<VarId> = FxHashSet::default();
        for id in &self.slice.after {
            behind.extend(self.trace.event(*id).kind.reads().iter().map(|part| part.var));
        }
        let mut found: Vec<Depends> = Vec::with_capacity(pool.len());
        // Operands come before what is made of them.
        for id in (0..pool.len()).map(|index| ExprId(index as u32)) {
            let expr = pool.get(id);
            let mut depends = match expr {
                Expr::Var { var, .. } => Depends {
                    on_window: !self.fixed.contains_key(&var),
                    on_end: behind.contains(&var),
                },
                _ => Depends::default(),
            };
            expr.for_each_operand(|operand| {
                let of = found.get(operand.0 as usize).copied().unwrap_or_default();
                depends.on_window |= of.on_window;
                depends.on_end |= of.on_end;
            });
            found.push(depends);
        }
        found
    }

    /// Cells, variables and expressions, with values in place of what the beginning fixes.
    fn expressions(&mut self) -> Option<()> {
        let whole = self.trace;
        let mut roots: Vec<ExprId> = Vec::new();
        let window = &mut self.slice.trace;
        roots.extend(window.events.iter().flat_map(|e| e.kind.writes().iter().map(|w| w.value)));
        roots.extend(window.conditions.iter().map(|condition| condition.expr));
        roots.extend(failure_values(whole));
        let (variables, found) = (&mut self.variables, &mut self.slice.variables);
        let mut rename = |var: VarId| {
            *variables.entry(var).or_insert_with(|| {
                found.push(var);
                VarId::from_index(found.len() - 1)
            })
        };
        // Every part that is read has its variable, mentioned or not.
        for event in &mut window.events {
            if let EventKind::Read { parts: reads } | EventKind::ReadModifyWrite { reads, .. } =
                &mut event.kind
            {
                reads.iter_mut().for_each(|part| part.var = rename(part.var));
            }
        }
        let fixed = &self.fixed;
        let (mut pool, images) = whole.exprs.substituted(roots, |var| match fixed.get(&var) {
            Some(value) => Substitute::Value(*value),
            None => Substitute::Variable(rename(var)),
        });
        let image = |id: ExprId| images.get(id.0 as usize).copied().flatten();
        for event in &mut window.events {
            if let EventKind::Write { parts: writes } | EventKind::ReadModifyWrite { writes, .. } =
                &mut event.kind
            {
                for part in writes {
                    part.value = image(part.value)?;
                }
            }
        }
        for condition in &mut window.conditions {
            condition.expr = image(condition.expr)?;
        }
        if let Some(failure) = &mut window.failure {
            for value in failure.condition.values_mut() {
                *value = image(*value)?;
            }
        }
        for (index, cell) in self.slice.cells.iter().enumerate() {
            let of = whole.cells.get(cell.index())?;
            let begins = || self.values.get(of.init.0 as usize).copied().flatten();
            let value = self.contents.get(cell).copied().unwrap_or_else(begins)?;
            let init = pool.constant(of.width, value);
            window.cells.push(Cell { id: CellId::from_index(index), init, ..of.clone() });
        }
        window.exprs = pool;
        self.slice.make_variables(whole, |_| None);
        Some(())
    }
}
