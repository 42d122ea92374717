//! The machine's state during one evaluation, and the meaning of synchronisation events.

use super::{EvaluationError, Facts};
use crate::event::{Event, EventKind, LockMode, WriteSource};
use crate::ids::{EventId, ObjectId, ThreadId};
use crate::schedule::ScheduleError;
use crate::trace::{EventTrace, ObjectKind};
use std::collections::BTreeMap;

/// No position: the event is not in the schedule.
const ABSENT: u32 = u32::MAX;

/// The state of one synchronisation object; each kind uses the fields that it needs.
#[derive(Clone, Default)]
struct ObjectState {
    /// Who holds the lock exclusively.
    owner: Option<ThreadId>,
    /// Who holds the lock shared, once per acquisition.
    readers: Vec<ThreadId>,
    /// The semaphore's units.
    units: u32,
    /// Arrivals at the barrier, over all rounds.
    arrivals: u32,
    /// Waits on the condition variable that no signal has ended yet and no broadcast will:
    /// (position of the wake-up, wake-up).
    waiting: Vec<(u32, EventId)>,
    /// The positions of the condition variable's broadcasts, ascending.
    broadcasts: Vec<(u32, EventId)>,
}

/// The machine.
pub(super) struct State {
    /// The position of every event in the schedule.
    positions: Vec<u32>,
    /// How many events each thread has performed.
    done: Vec<u32>,
    objects: Vec<ObjectState>,
    /// The number of the arrival, by arrival event.
    arrival_number: Vec<u32>,
    /// By wake-up event.
    wakers: Vec<Option<EventId>>,
    /// The last write, by cell.
    pub(super) last_writes: Vec<WriteSource>,
    /// The value last written, by cell.
    pub(super) contents: Vec<Option<u128>>,
    /// The source of every read part, in event order.
    pub(super) sources: Vec<WriteSource>,
}

impl State {
    pub(super) fn new(trace: &EventTrace, facts: &Facts) -> Self {
        Self {
            positions: vec![ABSENT; trace.events.len()],
            done: vec![0; trace.threads.len()],
            objects: vec![ObjectState::default(); trace.objects.len()],
            arrival_number: vec![0; trace.events.len()],
            wakers: vec![None; trace.events.len()],
            last_writes: vec![WriteSource::Init; trace.cells.len()],
            contents: vec![None; trace.cells.len()],
            sources: vec![WriteSource::Init; facts.reads],
        }
    }

    pub(super) fn position(&self, id: EventId) -> u32 {
        self.positions[id.index()]
    }

    pub(super) fn woken_by(&self) -> BTreeMap<EventId, EventId> {
        let wakers = self.wakers.iter().enumerate();
        wakers.filter_map(|(i, waker)| Some((EventId::from_index(i), (*waker)?))).collect()
    }

    /// Notes the positions of all events; says which are unknown, double or missing.
    pub(super) fn place(&mut self, trace: &EventTrace, order: &[EventId]) -> Vec<EvaluationError> {
        let mut errors = Vec::new();
        self.positions.fill(ABSENT);
        for (position, &id) in (0u32..).zip(order) {
            match self.positions.get_mut(id.index()) {
                None => errors.push(ScheduleError::UnknownEvent(id).into()),
                Some(place) if *place != ABSENT => errors.push(ScheduleError::Duplicate(id).into()),
                Some(place) => *place = position,
            }
        }
        let missing = trace.events.iter().filter(|e| self.positions[e.id.index()] == ABSENT);
        errors.extend(missing.map(|e| ScheduleError::Missing(e.id).into()));
        errors
    }

    /// Back to the state before the first event; positions stay.
    pub(super) fn reset(&mut self, trace: &EventTrace, facts: &Facts) {
        self.done.fill(0);
        self.wakers.fill(None);
        self.last_writes.fill(WriteSource::Init);
        for id in &facts.objects {
            let object = &trace.objects[id.index()];
            let state = &mut self.objects[id.index()];
            state.owner = None;
            state.readers.clear();
            state.arrivals = 0;
            state.waiting.clear();
            state.broadcasts.clear();
            state.units = match object.kind {
                ObjectKind::Semaphore { initial } => initial,
                _ => 0,
            };
        }
        for event in &trace.events {
            if let EventKind::Broadcast { condition } = event.kind {
                let place = (self.positions[event.id.index()], event.id);
                self.objects[condition.index()].broadcasts.push(place);
            }
        }
        for id in &facts.objects {
            self.objects[id.index()].broadcasts.sort_unstable();
        }
    }

    /// Performs an event's synchronisation. On an error the state goes on as if the event had
    /// been possible, so that one mistake is reported once.
    pub(super) fn synchronise(
        &mut self,
        trace: &EventTrace,
        facts: &Facts,
        event: &Event,
        errors: &mut Vec<EvaluationError>,
    ) {
        if let Err(error) = self.advance(trace, facts, event) {
            errors.push(error);
        }
        if let Err(error) = self.perform(trace, facts, event) {
            errors.push(error);
        }
    }

    /// Program order and thread creation.
    fn advance(
        &mut self,
        trace: &EventTrace,
        facts: &Facts,
        event: &Event,
    ) -> Result<(), EvaluationError> {
        let thread = event.thread;
        let next = self.done[thread.index()];
        self.done[thread.index()] = event.index + 1;
        if event.index != next {
            let events = &trace.threads[thread.index()].events;
            let expected = events.get(next as usize).copied().unwrap_or(event.id);
            return Err(EvaluationError::ProgramOrder { event: event.id, thread, expected });
        }
        match facts.fork_of[thread.index()] {
            Some(fork) if next == 0 && self.position(fork) > self.position(event.id) => {
                Err(EvaluationError::NotForked { event: event.id, fork })
            }
            _ => Ok(()),
        }
    }

    fn perform(
        &mut self,
        trace: &EventTrace,
        facts: &Facts,
        event: &Event,
    ) -> Result<(), EvaluationError> {
        let id = event.id;
        match event.kind {
            EventKind::Lock { object, mode } => self.lock(event, object, mode),
            EventKind::Unlock { object, mode, .. } => {
                let released = self.unlock(event, object, mode);
                self.begin_wait(trace, facts, id);
                released
            }
            EventKind::TryLockFailed { object, mode } => {
                let lock = &self.objects[object.index()];
                // POSIX has it fail whoever holds the lock, the caller included: only a recursive
                // mutex lets its owner in once more, and then the call does not fail. Readers let each
                // other in.
                let shared = mode == LockMode::Shared;
                let held = lock.owner.is_some() || !(shared || lock.readers.is_empty());
                if held { Ok(()) } else { Err(EvaluationError::LockFree { event: id, object }) }
            }
            EventKind::Signal { condition } => {
                self.signal(condition, id);
                Ok(())
            }
            EventKind::Wake { began, .. } if self.wakers[id.index()].is_none() => {
                Err(EvaluationError::NotSignalled { event: id, began })
            }
            EventKind::SemaphoreWait { object } => self.take_unit(id, object),
            EventKind::SemaphoreWaitFailed { object } => match self.objects[object.index()].units {
                0 => Ok(()),
                units => Err(EvaluationError::UnitsLeft { event: id, object, units }),
            },
            EventKind::SemaphorePost { object } => {
                let units = &mut self.objects[object.index()].units;
                *units = units.saturating_add(1);
                Ok(())
            }
            EventKind::BarrierArrive { object } => {
                let arrivals = &mut self.objects[object.index()].arrivals;
                self.arrival_number[id.index()] = *arrivals;
                *arrivals += 1;
                Ok(())
            }
            EventKind::BarrierLeave { object } => self.leave(trace, facts, id, object),
            EventKind::Join { child } => {
                let all = trace.threads[child.index()].events.len();
                if self.done[child.index()] as usize == all {
                    Ok(())
                } else {
                    Err(EvaluationError::NotEnded { event: id, child })
                }
            }
            EventKind::Free { object } => match facts.allocation_of[object.index()] {
                Some(allocate) if self.position(allocate) > self.position(id) => {
                    Err(EvaluationError::NotAllocated { event: id, object, allocate })
                }
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn lock(
        &mut self,
        event: &Event,
        object: ObjectId,
        mode: LockMode,
    ) -> Result<(), EvaluationError> {
        let lock = &mut self.objects[object.index()];
        let holder = match mode {
            LockMode::Exclusive => lock.owner.or(lock.readers.first().copied()),
            LockMode::Shared => lock.owner,
        };
        match mode {
            LockMode::Exclusive => lock.owner = Some(event.thread),
            LockMode::Shared => lock.readers.push(event.thread),
        }
        match holder {
            Some(holder) => Err(EvaluationError::LockHeld { event: event.id, object, holder }),
            None => Ok(()),
        }
    }

    fn unlock(
        &mut self,
        event: &Event,
        object: ObjectId,
        mode: LockMode,
    ) -> Result<(), EvaluationError> {
        let lock = &mut self.objects[object.index()];
        let held = match mode {
            LockMode::Exclusive => lock.owner.take() == Some(event.thread),
            LockMode::Shared => match lock.readers.iter().position(|r| *r == event.thread) {
                Some(place) => {
                    lock.readers.swap_remove(place);
                    true
                }
                None => false,
            },
        };
        if held { Ok(()) } else { Err(EvaluationError::NotHeld { event: event.id, object }) }
    }

    /// If this release begins a condition wait, the thread is waiting from here on. A wait with
    /// a broadcast inside needs no signal of its own.
    fn begin_wait(&mut self, trace: &EventTrace, facts: &Facts, release: EventId) {
        let Some(wake) = facts.wake_of[release.index()] else { return };
        let EventKind::Wake { condition, .. } = trace.event(wake).kind else { return };
        let (from, to) = (self.position(release), self.position(wake));
        let object = &mut self.objects[condition.index()];
        let next = object.broadcasts.partition_point(|(position, _)| *position < from);
        match object.broadcasts.get(next) {
            Some(&(position, broadcast)) if position < to => {
                self.wakers[wake.index()] = Some(broadcast);
            }
            _ => object.waiting.push((to, wake)),
        }
    }

    /// A signal goes to the waiter whose wake-up comes first. For signals as points and waits as
    /// intervals this finds a matching whenever there is one.
    fn signal(&mut self, condition: ObjectId, signal: EventId) {
        let waiting = &mut self.objects[condition.index()].waiting;
        let first = waiting.iter().enumerate().min_by_key(|(_, wait)| **wait);
        if let Some(place) = first.map(|(place, _)| place) {
            let (_, wake) = waiting.swap_remove(place);
            self.wakers[wake.index()] = Some(signal);
        }
    }

    fn take_unit(&mut self, event: EventId, object: ObjectId) -> Result<(), EvaluationError> {
        let units = &mut self.objects[object.index()].units;
        match units.checked_sub(1) {
            Some(rest) => {
                *units = rest;
                Ok(())
            }
            None => Err(EvaluationError::NoUnit { event, object }),
        }
    }

    /// A barrier opens for a round when all of the round have arrived; arrivals for the next
    /// round may come before everybody left.
    fn leave(
        &mut self,
        trace: &EventTrace,
        facts: &Facts,
        event: EventId,
        object: ObjectId,
    ) -> Result<(), EvaluationError> {
        let ObjectKind::Barrier { count } = trace.objects[object.index()].kind else {
            return Ok(());
        };
        let count = count.max(1);
        let arrival = facts.arrival_of[event.index()];
        let number = arrival.map_or(0, |arrival| self.arrival_number[arrival.index()]);
        let needed = (number / count + 1).saturating_mul(count);
        let arrived = self.objects[object.index()].arrivals;
        if arrived >= needed {
            return Ok(());
        }
        Err(EvaluationError::BarrierClosed { event, object, arrived, needed })
    }
}
