//! What the operations mean, written as a machine that runs one event after the other. It shares
//! nothing with the encoders.

use model::{
    EventId, EventKind, EventTrace, FailureCondition, LockMode, ObjectId, ObjectKind, ReadRef,
    ThreadId, VarId, VariableOrigin, WriteSource,
};
use std::collections::{BTreeMap, BTreeSet};

/// The machine between two events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// How many events each thread has run.
    pub done: Vec<usize>,
    started: BTreeSet<ThreadId>,
    memory: Vec<u128>,
    written_by: Vec<WriteSource>,
    pub values: BTreeMap<VarId, u128>,
    pub reads_from: BTreeMap<ReadRef, WriteSource>,
    holders: BTreeMap<ObjectId, Vec<(ThreadId, LockMode)>>,
    /// Waits that have begun, by their beginning; true once notified.
    waiting: BTreeMap<EventId, (ObjectId, bool)>,
    units: BTreeMap<ObjectId, u32>,
    /// By barrier: arrivals in the current round and completed rounds.
    rounds: BTreeMap<ObjectId, (u32, u32)>,
    /// The round in which a thread arrived at a barrier.
    arrived: BTreeMap<(ObjectId, ThreadId), u32>,
}

/// A trace with what the machine needs to know in advance.
pub struct Machine<'a> {
    pub trace: &'a EventTrace,
    /// The releases that begin a wait, with the condition waited for.
    begins: BTreeMap<EventId, ObjectId>,
}

impl<'a> Machine<'a> {
    pub fn new(trace: &'a EventTrace) -> Self {
        let mut begins = BTreeMap::new();
        for event in &trace.events {
            if let EventKind::Wake { condition, began }
            | EventKind::WaitTimedOut { condition, began } = event.kind
            {
                begins.insert(began, condition);
            }
        }
        Self { trace, begins }
    }

    /// The state before the first event, with the values of inputs and unknown initial values.
    pub fn start(&self, free: &BTreeMap<VarId, u128>) -> State {
        let trace = self.trace;
        let mut values = BTreeMap::new();
        for variable in &trace.variables {
            if !matches!(variable.origin, VariableOrigin::Read { .. }) {
                values.insert(variable.id, free.get(&variable.id).copied().unwrap_or(0));
            }
        }
        let lookup = |var: VarId| values.get(&var).copied();
        let memory = trace
            .cells
            .iter()
            .map(|cell| trace.exprs.evaluate(cell.init, &lookup).expect("a known initial value"))
            .collect();
        let units = trace.objects.iter().filter_map(|object| match object.kind {
            ObjectKind::Semaphore { initial } => Some((object.id, initial)),
            _ => None,
        });
        let units = units.collect();
        State {
            done: vec![0; trace.threads.len()],
            started: BTreeSet::from([ThreadId(0)]),
            memory,
            written_by: vec![WriteSource::Init; trace.cells.len()],
            values,
            reads_from: BTreeMap::new(),
            holders: BTreeMap::new(),
            waiting: BTreeMap::new(),
            units,
            rounds: BTreeMap::new(),
            arrived: BTreeMap::new(),
        }
    }

    /// The states after one event: none when it cannot happen now, several when it leaves a
    /// choice open.
    pub fn step(&self, state: &State, id: EventId) -> Vec<State> {
        let event = self.trace.event(id);
        let thread = event.thread;
        if state.done[thread.index()] != event.index as usize || !state.started.contains(&thread) {
            return Vec::new();
        }
        let mut next = state.clone();
        next.done[thread.index()] += 1;
        self.effect(next, id, thread)
    }

    fn effect(&self, mut next: State, id: EventId, thread: ThreadId) -> Vec<State> {
        let possible = match &self.trace.event(id).kind {
            EventKind::Fence
            | EventKind::Start
            | EventKind::Exit
            | EventKind::Allocate { .. }
            | EventKind::Free { .. }
            | EventKind::Block { .. }
            | EventKind::Failure => true,
            EventKind::Read { .. }
            | EventKind::Write { .. }
            | EventKind::ReadModifyWrite { .. } => {
                self.access(&mut next, id);
                true
            }
            EventKind::Fork { child } => next.started.insert(*child),
            EventKind::Join { child } => {
                next.done[child.index()] == self.trace.threads[child.index()].events.len()
            }
            EventKind::Lock { object, mode } => next.lock(*object, thread, *mode),
            EventKind::Unlock { object, .. } => {
                if let Some(&condition) = self.begins.get(&id) {
                    next.waiting.insert(id, (condition, false));
                }
                let holders = next.holders.entry(*object).or_default();
                let position = holders.iter().position(|&(holder, _)| holder == thread);
                position.map(|position| holders.remove(position)).is_some()
            }
            EventKind::TryLockFailed { object, mode } => {
                let excludes = |held| [held, *mode].contains(&LockMode::Exclusive);
                let holders = next.holders.get(object);
                holders.is_some_and(|holders| holders.iter().any(|&(_, held)| excludes(held)))
            }
            EventKind::Wake { began, .. } => {
                next.waiting.remove(began).is_some_and(|(_, notified)| notified)
            }
            EventKind::WaitTimedOut { began, .. } => next.waiting.remove(began).is_some(),
            EventKind::Signal { condition } => return signal(next, *condition),
            EventKind::Broadcast { condition } => {
                for (waited_for, notified) in next.waiting.values_mut() {
                    *notified |= waited_for == condition;
                }
                true
            }
            EventKind::SemaphoreWait { object } => {
                let units = next.units.entry(*object).or_default();
                let left = units.checked_sub(1);
                *units = left.unwrap_or_default();
                left.is_some()
            }
            EventKind::SemaphoreWaitFailed { object } => next.units.get(object) == Some(&0),
            EventKind::SemaphorePost { object } => {
                *next.units.entry(*object).or_default() += 1;
                true
            }
            EventKind::BarrierArrive { object } => self.arrive(&mut next, *object, thread),
            EventKind::BarrierLeave { object } => {
                let (_, complete) = next.rounds.get(object).copied().unwrap_or_default();
                next.arrived.remove(&(*object, thread)).is_some_and(|round| round < complete)
            }
        };
        if possible { vec![next] } else { Vec::new() }
    }

    fn access(&self, next: &mut State, id: EventId) {
        let kind = &self.trace.event(id).kind;
        for (part, read) in kind.reads().iter().enumerate() {
            let reference = ReadRef { event: id, part: part as u32 };
            next.values.insert(read.var, next.memory[read.cell.index()]);
            next.reads_from.insert(reference, next.written_by[read.cell.index()]);
        }
        for write in kind.writes() {
            let lookup = |var: VarId| next.values.get(&var).copied();
            let value = self.trace.exprs.evaluate(write.value, &lookup);
            next.memory[write.cell.index()] = value.expect("a write of values read before");
            next.written_by[write.cell.index()] = WriteSource::Write(id);
        }
    }

    fn arrive(&self, next: &mut State, object: ObjectId, thread: ThreadId) -> bool {
        let ObjectKind::Barrier { count } = self.trace.objects[object.index()].kind else {
            return false;
        };
        let (here, complete) = next.rounds.entry(object).or_default();
        let round = *complete;
        *here += 1;
        if *here == count {
            *here = 0;
            *complete += 1;
        }
        next.arrived.insert((object, thread), round).is_none()
    }

    /// Do all path conditions hold at the end of a run?
    pub fn on_path(&self, end: &State) -> bool {
        self.trace.conditions.iter().all(|condition| self.holds(end, condition.expr))
    }

    /// Does φbug hold at the end of a run whose events had these places?
    pub fn fails(&self, end: &State, places: &[usize]) -> bool {
        self.trace
            .failure
            .as_ref()
            .is_some_and(|failure| self.condition(end, places, &failure.condition))
    }

    fn condition(&self, end: &State, places: &[usize], condition: &FailureCondition) -> bool {
        match condition {
            FailureCondition::Value(expr) => self.holds(end, *expr),
            FailureCondition::Before(a, b) => places[a.index()] < places[b.index()],
            FailureCondition::Unwoken { .. } => unreachable!("the random traces have none"),
            FailureCondition::All(parts) => {
                parts.iter().all(|part| self.condition(end, places, part))
            }
            FailureCondition::Any(parts) => {
                parts.iter().any(|part| self.condition(end, places, part))
            }
        }
    }

    fn holds(&self, end: &State, expr: model::ExprId) -> bool {
        let lookup = |var: VarId| end.values.get(&var).copied();
        self.trace.exprs.evaluate(expr, &lookup).expect("every value is known at the end") != 0
    }

    /// The end of a complete schedule, if it can happen.
    pub fn run(&self, free: &BTreeMap<VarId, u128>, schedule: &[EventId]) -> Option<State> {
        let mut states = vec![self.start(free)];
        for &event in schedule {
            states = states.iter().flat_map(|state| self.step(state, event)).collect();
        }
        states.into_iter().find(|state| {
            let mut threads = self.trace.threads.iter().zip(&state.done);
            threads.all(|(thread, &done)| done == thread.events.len())
        })
    }
}

impl State {
    fn lock(&mut self, object: ObjectId, thread: ThreadId, mode: LockMode) -> bool {
        let holders = self.holders.entry(object).or_default();
        let free = match mode {
            LockMode::Exclusive => holders.is_empty(),
            LockMode::Shared => holders.iter().all(|&(_, mode)| mode == LockMode::Shared),
        };
        holders.push((thread, mode));
        free
    }
}

/// A signal notifies one of the threads that wait, whichever; nobody when none does.
fn signal(state: State, condition: ObjectId) -> Vec<State> {
    let waiters: Vec<EventId> = state
        .waiting
        .iter()
        .filter(|(_, waiting)| **waiting == (condition, false))
        .map(|(&began, _)| began)
        .collect();
    if waiters.is_empty() {
        return vec![state];
    }
    let notify = |began: &EventId| {
        let mut next = state.clone();
        next.waiting.insert(*began, (condition, true));
        next
    };
    waiters.iter().map(notify).collect()
}
