//! The evaluator: runs a schedule of an event trace without any solver.
//!
//! Every schedule is checked by it before it is shown. It executes the events one after the other
//! under sequential consistency, with the operational meaning of every synchronisation event, and
//! says what every read returned, whether the path conditions hold and whether the run fails.
//!
//! The trace must have passed [`crate::verify::verify`].

mod state;
mod values;

use crate::event::{Event, EventKind, ReadRef, WriteSource};
use crate::expr::{CmpOp, Expr, ExprId};
use crate::ids::{CellId, ConditionId, EventId, ObjectId, ThreadId, VarId};
use crate::schedule::{Schedule, ScheduleError};
use crate::trace::{EventTrace, FailureCondition, VariableOrigin};
use state::State;
use std::collections::BTreeMap;
use thiserror::Error;
use values::Values;

/// Gives values to the variables that no read returns
/// ([`VariableOrigin::Init`], [`VariableOrigin::Input`]); `None` where unknown.
pub type Inputs<'a> = dyn Fn(VarId) -> Option<u128> + 'a;

/// What a possible schedule does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evaluation {
    /// The value of every variable, by variable index; `None` where it depends on a variable
    /// without a value.
    pub values: Vec<Option<u128>>,
    /// Where every read takes its value from.
    pub reads_from: BTreeMap<ReadRef, WriteSource>,
    /// The last write of every cell, by cell index.
    pub last_writes: Vec<WriteSource>,
    /// The signal or broadcast that ended each [`EventKind::Wake`]'s wait.
    pub woken_by: BTreeMap<EventId, EventId>,
    /// The path conditions that are 0, in identifier order: with any, the schedule leaves the
    /// recorded paths.
    pub violated: Vec<ConditionId>,
    /// The path conditions whose value is unknown, in identifier order.
    pub undetermined: Vec<ConditionId>,
    /// Does the failure condition hold? False for a trace without failure, and where the
    /// condition's value is unknown.
    pub fails: bool,
    /// Is `fails` more than a guess: is the failure condition's value known?
    pub failure_known: bool,
}

impl Evaluation {
    /// Do all path conditions hold for certain?
    #[must_use]
    pub fn follows_paths(&self) -> bool {
        self.violated.is_empty() && self.undetermined.is_empty()
    }

    /// The write that an event's read of a cell returns; `None` where that is the initial value, or where the event does not read
    /// the cell.
    #[must_use]
    pub fn source(&self, event: &Event, cell: CellId) -> Option<EventId> {
        let parts = event.kind.reads().iter();
        let part = parts.zip(0..).find(|(part, _)| part.cell == cell)?.1;
        match self.reads_from.get(&ReadRef { event: event.id, part })? {
            WriteSource::Write(write) => Some(*write),
            WriteSource::Init => None,
        }
    }
}

/// The part of an [`Evaluation`] that searches need, without its tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// The schedule cannot happen.
    Impossible,
    /// It can happen, but leaves the recorded paths, or may.
    OffPath,
    /// It follows the recorded paths and fails.
    Fails,
    /// It follows the recorded paths and does not fail.
    Passes,
    /// It follows the recorded paths; whether it fails depends on an unknown value.
    Undetermined,
}

/// Why a schedule is rejected.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EvaluationError {
    /// The list of events is not a full schedule.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// An event comes before its predecessor in its thread.
    #[error("{event} of {thread} comes out of program order: {expected} is next")]
    ProgramOrder {
        /// The event.
        event: EventId,
        /// Its thread.
        thread: ThreadId,
        /// The thread's next event at this point.
        expected: EventId,
    },
    /// A thread runs before it is created.
    #[error("{event} comes before {fork}, which creates its thread")]
    NotForked {
        /// The thread's event.
        event: EventId,
        /// The creation.
        fork: EventId,
    },
    /// A join returns before the joined thread ended.
    #[error("{event} joins {child}, which has not ended")]
    NotEnded {
        /// The join.
        event: EventId,
        /// The thread joined.
        child: ThreadId,
    },
    /// A lock is acquired while it is held.
    #[error("{event} acquires {object}, which {holder} holds")]
    LockHeld {
        /// The acquisition.
        event: EventId,
        /// The lock.
        object: ObjectId,
        /// A thread that holds it.
        holder: ThreadId,
    },
    /// A lock is released by a thread that does not hold it so.
    #[error("{event} releases {object}, which its thread does not hold")]
    NotHeld {
        /// The release.
        event: EventId,
        /// The lock.
        object: ObjectId,
    },
    /// A trylock fails while no thread holds the lock.
    #[error("{event} fails to acquire {object}, which no thread holds")]
    LockFree {
        /// The failed trylock.
        event: EventId,
        /// The lock.
        object: ObjectId,
    },
    /// No signal is left for a wake-up.
    #[error("{event} wakes up, but no signal came since {began} that woke nobody else")]
    NotSignalled {
        /// The wake-up.
        event: EventId,
        /// The release that began the wait.
        began: EventId,
    },
    /// A semaphore has no unit to take.
    #[error("{event} takes a unit of {object}, which has none")]
    NoUnit {
        /// The wait.
        event: EventId,
        /// The semaphore.
        object: ObjectId,
    },
    /// A semaphore wait fails although there is a unit.
    #[error("{event} finds no unit of {object}, which has {units}")]
    UnitsLeft {
        /// The failed wait.
        event: EventId,
        /// The semaphore.
        object: ObjectId,
        /// How many there are.
        units: u32,
    },
    /// A barrier is left before its round is complete.
    #[error("{event} leaves {object} after {arrived} arrivals of {needed}")]
    BarrierClosed {
        /// The departure.
        event: EventId,
        /// The barrier.
        object: ObjectId,
        /// Arrivals so far, over all rounds.
        arrived: u32,
        /// Arrivals that complete the round.
        needed: u32,
    },
    /// A heap object is given back before it is obtained.
    #[error("{event} frees {object} before {allocate} obtains it")]
    NotAllocated {
        /// The free.
        event: EventId,
        /// The object.
        object: ObjectId,
        /// The allocation.
        allocate: EventId,
    },
    /// An order that every schedule of the trace has is missing ([`EventTrace::given`]).
    #[error("{event} comes before {before}, which every schedule has before it")]
    NotGiven {
        /// The event that comes too soon.
        event: EventId,
        /// What comes before it.
        before: EventId,
    },
    /// A path condition is 0.
    #[error("path condition {0} does not hold")]
    ConditionViolated(ConditionId),
    /// A path condition depends on a variable without a value.
    #[error("path condition {0} depends on a value that is not known")]
    ConditionUnknown(ConditionId),
}

/// Checks one schedule: it can happen, and follows the recorded paths.
///
/// # Errors
/// Everything that is wrong with it, in schedule order, path conditions last.
pub fn evaluate(
    trace: &EventTrace,
    schedule: &Schedule,
    inputs: &Inputs<'_>,
) -> Result<Evaluation, Vec<EvaluationError>> {
    let evaluation = Evaluator::new(trace).run(&schedule.order, inputs)?;
    if evaluation.follows_paths() {
        return Ok(evaluation);
    }
    let violated = evaluation.violated.iter().copied().map(EvaluationError::ConditionViolated);
    let unknown = evaluation.undetermined.iter().copied().map(EvaluationError::ConditionUnknown);
    Err(violated.chain(unknown).collect())
}

/// What depends on the trace alone, and the buffers, so that many schedules of one trace are
/// evaluated fast: linear in events, path conditions and the expressions they use.
pub struct Evaluator<'t> {
    trace: &'t EventTrace,
    facts: Facts,
    state: State,
    values: Values,
}

/// What the evaluator derives from the trace once.
struct Facts {
    /// The creation of each thread, by thread.
    fork_of: Vec<Option<EventId>>,
    /// The wake-up of the wait that a release begins, by event.
    wake_of: Vec<Option<EventId>>,
    /// The arrival that a barrier departure pairs with, by event.
    arrival_of: Vec<Option<EventId>>,
    /// The allocation of each object, by object.
    allocation_of: Vec<Option<EventId>>,
    /// Where each event's read parts start in the flat table of sources, by event.
    first_read: Vec<u32>,
    /// The number of read parts of the trace.
    reads: usize,
    /// The variables that no read returns.
    free: Vec<VarId>,
    /// All signals, broadcasts and wake-ups.
    wakings: Vec<EventId>,
    /// The objects that some event names.
    objects: Vec<ObjectId>,
}

impl Facts {
    fn new(trace: &EventTrace) -> Self {
        let mut facts = Self {
            fork_of: vec![None; trace.threads.len()],
            wake_of: vec![None; trace.events.len()],
            arrival_of: vec![None; trace.events.len()],
            allocation_of: vec![None; trace.objects.len()],
            first_read: Vec::with_capacity(trace.events.len()),
            reads: 0,
            free: Vec::new(),
            wakings: Vec::new(),
            objects: Vec::new(),
        };
        let mut named = vec![false; trace.objects.len()];
        let mut arrivals: BTreeMap<(ThreadId, ObjectId), EventId> = BTreeMap::new();
        for event in &trace.events {
            if let Some(named) = event.kind.object().and_then(|it| named.get_mut(it.index())) {
                *named = true;
            }
            facts.first_read.push(u32::try_from(facts.reads).unwrap_or(u32::MAX));
            facts.reads += event.kind.reads().len();
            match event.kind {
                EventKind::Fork { child } => facts.fork_of[child.index()] = Some(event.id),
                EventKind::Wake { began, .. } => {
                    facts.wake_of[began.index()] = Some(event.id);
                    facts.wakings.push(event.id);
                }
                EventKind::Signal { .. } | EventKind::Broadcast { .. } => {
                    facts.wakings.push(event.id);
                }
                EventKind::Allocate { object } => {
                    facts.allocation_of[object.index()] = Some(event.id);
                }
                EventKind::BarrierArrive { object } => {
                    arrivals.insert((event.thread, object), event.id);
                }
                EventKind::BarrierLeave { object } => {
                    facts.arrival_of[event.id.index()] =
                        arrivals.get(&(event.thread, object)).copied();
                }
                _ => {}
            }
        }
        let free = trace.variables.iter();
        let free = free.filter(|v| !matches!(v.origin, VariableOrigin::Read { .. }));
        facts.free = free.map(|v| v.id).collect();
        let objects = named.iter().enumerate().filter(|(_, named)| **named);
        facts.objects = objects.map(|(index, _)| ObjectId::from_index(index)).collect();
        facts
    }
}

impl<'t> Evaluator<'t> {
    /// Prepares the evaluation of schedules of `trace`, which must have passed
    /// [`crate::verify::verify`].
    #[must_use]
    pub fn new(trace: &'t EventTrace) -> Self {
        let facts = Facts::new(trace);
        let state = State::new(trace, &facts);
        Self { trace, facts, state, values: Values::new(trace) }
    }

    /// Runs a schedule. Violated path conditions are part of the answer, apart from what is
    /// impossible.
    ///
    /// # Errors
    /// Everything that cannot happen, in schedule order.
    pub fn run(
        &mut self,
        order: &[EventId],
        inputs: &Inputs<'_>,
    ) -> Result<Evaluation, Vec<EvaluationError>> {
        let errors = self.execute(order, inputs, false);
        if errors.is_empty() { Ok(self.report()) } else { Err(errors) }
    }

    /// The verdict on a schedule alone; stops at the first impossibility.
    pub fn check(&mut self, order: &[EventId], inputs: &Inputs<'_>) -> Check {
        if !self.execute(order, inputs, true).is_empty() {
            return Check::Impossible;
        }
        let trace = self.trace;
        let follows = |c: &crate::PathCondition| self.values.of(trace, c.expr) == Some(1);
        if !trace.conditions.iter().all(follows) {
            return Check::OffPath;
        }
        match self.fails() {
            Some(true) => Check::Fails,
            Some(false) => Check::Passes,
            None => Check::Undetermined,
        }
    }

    /// How far a schedule is from one that follows the recorded paths and fails: 0 for one that does, and otherwise
    /// more by one for each condition that does not hold, and by how far apart the sides of an equation are, up to
    /// 2^16. `None` where it cannot happen.
    pub fn shortfall(&mut self, order: &[EventId], inputs: &Inputs<'_>) -> Option<u64> {
        if !self.execute(order, inputs, true).is_empty() {
            return None;
        }
        let trace = self.trace;
        let mut sum = u64::from(self.fails() != Some(true));
        for condition in &trace.conditions {
            if self.values.of(trace, condition.expr) != Some(1) {
                sum += 1 + self.apart(condition.expr);
            }
        }
        Some(sum)
    }

    /// The conditions that do not hold in the last run, or may not, each expression once.
    pub fn unmet(&mut self) -> Vec<ExprId> {
        let trace = self.trace;
        let conditions = trace.conditions.iter().map(|condition| condition.expr);
        let mut found: Vec<ExprId> =
            conditions.filter(|&expr| self.values.of(trace, expr) != Some(1)).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// How far apart the sides of an equation are.
    fn apart(&mut self, expr: ExprId) -> u64 {
        let trace = self.trace;
        let Expr::Cmp(CmpOp::Eq, a, b) = trace.exprs.get(expr) else { return 0 };
        match (self.values.of(trace, a), self.values.of(trace, b)) {
            (Some(a), Some(b)) => u64::try_from(a.abs_diff(b)).unwrap_or(u64::MAX).min(1 << 16),
            _ => 0,
        }
    }

    /// The source of every read part in the last run, in event order and part order: a cheap way
    /// to compare the data flow of two schedules of one trace. Meaningful only after a run without
    /// impossibilities.
    #[must_use]
    pub fn sources(&self) -> &[WriteSource] {
        &self.state.sources
    }

    /// The last write of every cell in the last run, as for [`sources`](Self::sources).
    #[must_use]
    pub fn last_writes(&self) -> &[WriteSource] {
        &self.state.last_writes
    }

    /// Executes the events; what stays in the buffers is meaningful only without errors.
    fn execute(
        &mut self,
        order: &[EventId],
        inputs: &Inputs<'_>,
        stop_early: bool,
    ) -> Vec<EvaluationError> {
        let mut errors = self.state.place(self.trace, order);
        if !errors.is_empty() {
            // Without each event exactly once, nothing further is meaningful.
            return errors;
        }
        for &(before, event) in &self.trace.given {
            if self.state.position(before) > self.state.position(event) {
                errors.push(EvaluationError::NotGiven { event, before });
            }
        }
        if stop_early && !errors.is_empty() {
            return errors;
        }
        self.state.reset(self.trace, &self.facts);
        self.values.reset();
        for &var in &self.facts.free {
            self.values.set(var, inputs(var));
        }
        for &id in order {
            let event = self.trace.event(id);
            self.state.synchronise(self.trace, &self.facts, event, &mut errors);
            if stop_early && !errors.is_empty() {
                return errors;
            }
            self.access(id);
        }
        errors
    }

    /// Performs an event's reads, then its writes.
    fn access(&mut self, id: EventId) {
        let trace = self.trace;
        let kind = &trace.event(id).kind;
        let first = self.facts.first_read[id.index()] as usize;
        for (part, read) in kind.reads().iter().enumerate() {
            let source = self.state.last_writes[read.cell.index()];
            self.state.sources[first + part] = source;
            let value = match source {
                WriteSource::Init => self.values.of(trace, trace.cells[read.cell.index()].init),
                WriteSource::Write(_) => self.state.contents[read.cell.index()],
            };
            self.values.set(read.var, value);
        }
        for write in kind.writes() {
            // Written cells are distinct and the values depend on reads alone, so that the parts
            // take effect together.
            self.state.contents[write.cell.index()] = self.values.of(trace, write.value);
            self.state.last_writes[write.cell.index()] = WriteSource::Write(id);
        }
    }

    fn report(&mut self) -> Evaluation {
        let trace = self.trace;
        let mut evaluation = Evaluation {
            values: self.values.variables().to_vec(),
            last_writes: self.state.last_writes.clone(),
            woken_by: self.state.woken_by(),
            ..Evaluation::default()
        };
        for event in &trace.events {
            let first = self.facts.first_read[event.id.index()] as usize;
            for (part, source) in
                (0..).zip(&self.state.sources[first..first + event.kind.reads().len()])
            {
                evaluation.reads_from.insert(ReadRef { event: event.id, part }, *source);
            }
        }
        for condition in &trace.conditions {
            match self.values.of(trace, condition.expr) {
                Some(0) => evaluation.violated.push(condition.id),
                Some(_) => {}
                None => evaluation.undetermined.push(condition.id),
            }
        }
        let fails = self.fails();
        evaluation.fails = fails == Some(true);
        evaluation.failure_known = fails.is_some();
        evaluation
    }

    /// The failure condition's value.
    fn fails(&mut self) -> Option<bool> {
        let trace = self.trace;
        trace.failure.as_ref().map_or(Some(false), |failure| self.holds(&failure.condition))
    }

    fn holds(&mut self, condition: &FailureCondition) -> Option<bool> {
        match condition {
            FailureCondition::Value(expr) => self.values.of(self.trace, *expr).map(|v| v != 0),
            FailureCondition::Before(a, b) => {
                Some(self.state.position(*a) < self.state.position(*b))
            }
            FailureCondition::Unwoken { condition, began } => {
                Some(self.is_unwoken(*condition, *began))
            }
            FailureCondition::All(parts) => {
                FailureCondition::decide(parts, false, |part| self.holds(part))
            }
            FailureCondition::Any(parts) => {
                FailureCondition::decide(parts, true, |part| self.holds(part))
            }
        }
    }

    /// Is there no way to give a wait that began here a signal, and each of the waits that ended
    /// its own? Waits are intervals and signals points, and the last wait has no end, so by Hall's
    /// theorem there is none exactly when fewer signals than waits lie behind the beginning of some
    /// wait that began no later than this one.
    fn is_unwoken(&self, condition: ObjectId, began: EventId) -> bool {
        let place = |id: EventId| self.state.position(id);
        let (mut signals, mut broadcasts, mut waits) = (Vec::new(), Vec::new(), Vec::new());
        for &id in &self.facts.wakings {
            match self.trace.event(id).kind {
                EventKind::Signal { condition: c } if c == condition => signals.push(place(id)),
                EventKind::Broadcast { condition: c } if c == condition => {
                    broadcasts.push(place(id));
                }
                EventKind::Wake { condition: c, began } if c == condition => {
                    waits.push((place(began), place(id)));
                }
                _ => {}
            }
        }
        let here = place(began);
        if broadcasts.iter().any(|broadcast| *broadcast > here) {
            return false;
        }
        // Waits with a broadcast inside need no signal.
        waits.retain(|(from, to)| !broadcasts.iter().any(|b| from < b && b < to));
        let begins = waits.iter().map(|(from, _)| *from).filter(|from| *from < here);
        begins.chain([here]).any(|from| {
            let given = signals.iter().filter(|signal| **signal > from).count();
            let needed = waits.iter().filter(|(begin, _)| *begin >= from).count();
            given < needed + 1
        })
    }
}
