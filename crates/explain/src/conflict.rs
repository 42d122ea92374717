//! The conflict orders of a schedule: what, together with program order, fixes every value.

use crate::happens_before::HappensBefore;
use model::evaluate::Evaluation;
use model::{
    CellId, EventId, EventKind, EventTrace, FailureCondition, LockMode, ObjectId, ObjectKind,
    Schedule,
};
use solver::Order;
use std::collections::BTreeMap;

/// Why two events of different threads are ordered. Where several reasons hold for one pair, the
/// first of this list is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OrderKind {
    /// The failure condition asks for the order.
    Failure,
    /// The second event reads what the first wrote.
    ReadFrom(CellId),
    /// The second event is the next write after the first, a read.
    FromRead(CellId),
    /// Two consecutive writes.
    WriteSerialisation(CellId),
    /// A release and the next acquisition, or a failed trylock and the hold that it met.
    Lock(ObjectId),
    /// The beginning of a wait and its signal, or the signal and the wake-up.
    Condition(ObjectId),
    /// A post and the wait that takes its unit, or a failed wait and its neighbours.
    Semaphore(ObjectId),
    /// An arrival and a departure of one round.
    Barrier(ObjectId),
}

impl OrderKind {
    /// The cell of an order of memory accesses.
    #[must_use]
    pub fn cell(self) -> Option<CellId> {
        match self {
            Self::ReadFrom(cell) | Self::FromRead(cell) | Self::WriteSerialisation(cell) => {
                Some(cell)
            }
            _ => None,
        }
    }
}

/// An order between two events of different threads, and why it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConflictOrder {
    /// The order, as in the schedule.
    pub order: Order,
    /// The reason.
    pub kind: OrderKind,
}

/// The conflict orders of a schedule in schedule order ([S] 3.3, φfsch): read-from, from-read and
/// write-serialisation, locks, condition variables, semaphores, barriers, and those that the
/// failure condition names. Orders that program order and thread creation and join imply are left
/// out. Together with program order they fix what every read returns and whether the run fails.
#[must_use]
pub fn conflict_orders(
    trace: &EventTrace,
    schedule: &Schedule,
    evaluation: &Evaluation,
) -> Vec<ConflictOrder> {
    let before = HappensBefore::new(trace, &schedule.order);
    conflicts(trace, &schedule.order, evaluation, &before)
}

pub(crate) fn conflicts(
    trace: &EventTrace,
    schedule: &[EventId],
    evaluation: &Evaluation,
    happens_before: &HappensBefore,
) -> Vec<ConflictOrder> {
    let mut found = Found { orders: BTreeMap::new(), happens_before };
    memory(trace, schedule, &mut found);
    synchronisation(trace, schedule, evaluation, &mut found);
    let position = positions(trace, schedule);
    if let Some(failure) = &trace.failure {
        failure_orders(trace, &failure.condition, &position, &mut found);
    }
    let mut orders: Vec<_> =
        found.orders.into_iter().map(|(order, kind)| ConflictOrder { order, kind }).collect();
    let place = |id: EventId| position[id.index()];
    orders.sort_by_key(|o| (place(o.order.after), place(o.order.before)));
    orders
}

/// The position of every event.
pub(crate) fn positions(trace: &EventTrace, schedule: &[EventId]) -> Vec<u32> {
    let mut result = vec![u32::MAX; trace.events.len()];
    for (position, id) in (0u32..).zip(schedule) {
        result[id.index()] = position;
    }
    result
}

struct Found<'h> {
    orders: BTreeMap<Order, OrderKind>,
    happens_before: &'h HappensBefore,
}

impl Found<'_> {
    fn add(&mut self, before: EventId, after: EventId, kind: OrderKind) {
        // Two events of one thread are always ordered by happens-before.
        if before == after || self.happens_before.before(before, after) {
            return;
        }
        let order = Order { before, after };
        self.orders.entry(order).and_modify(|k| *k = (*k).min(kind)).or_insert(kind);
    }
}

#[derive(Clone, Default)]
struct CellHistory {
    last_write: Option<EventId>,
    /// The reads since the last write.
    readers: Vec<EventId>,
}

fn memory(trace: &EventTrace, schedule: &[EventId], found: &mut Found<'_>) {
    let mut cells = vec![CellHistory::default(); trace.cells.len()];
    for &id in schedule {
        let kind = &trace.event(id).kind;
        for read in kind.reads() {
            let history = &mut cells[read.cell.index()];
            if let Some(write) = history.last_write {
                found.add(write, id, OrderKind::ReadFrom(read.cell));
            }
            history.readers.push(id);
        }
        for write in kind.writes() {
            let history = &mut cells[write.cell.index()];
            for reader in history.readers.drain(..) {
                found.add(reader, id, OrderKind::FromRead(write.cell));
            }
            if let Some(last) = history.last_write.replace(id) {
                found.add(last, id, OrderKind::WriteSerialisation(write.cell));
            }
        }
    }
}

#[derive(Clone, Default)]
struct ObjectHistory {
    /// The last exclusive acquisition or release.
    exclusive: Option<EventId>,
    /// Shared acquisitions and releases since then.
    shared: Vec<EventId>,
    /// Failed trylocks, or failed semaphore waits, since the state last changed.
    failed: Vec<EventId>,
    /// Who holds the lock now: their acquisitions.
    holders: Vec<EventId>,
    /// The semaphore's posts.
    posts: Vec<EventId>,
    /// The semaphore's successful waits.
    waits: Vec<EventId>,
    /// The barrier's arrivals, all rounds.
    arrivals: Vec<EventId>,
}

fn synchronisation(
    trace: &EventTrace,
    schedule: &[EventId],
    evaluation: &Evaluation,
    found: &mut Found<'_>,
) {
    let mut objects = vec![ObjectHistory::default(); trace.objects.len()];
    for &id in schedule {
        let event = trace.event(id);
        match event.kind {
            EventKind::Lock { object, mode } => {
                acquire(&mut objects[object.index()], object, mode, id, found);
            }
            EventKind::Unlock { object, mode, .. } => {
                let history = &mut objects[object.index()];
                history.holders.retain(|held| trace.event(*held).thread != event.thread);
                for failed in history.failed.drain(..) {
                    found.add(failed, id, OrderKind::Lock(object));
                }
                match mode {
                    LockMode::Exclusive => history.exclusive = Some(id),
                    LockMode::Shared => history.shared.push(id),
                }
            }
            EventKind::TryLockFailed { object, .. } => {
                let history = &mut objects[object.index()];
                for &held in &history.holders {
                    found.add(held, id, OrderKind::Lock(object));
                }
                history.failed.push(id);
            }
            EventKind::Wake { condition, began } => {
                if let Some(&waker) = evaluation.woken_by.get(&id) {
                    found.add(began, waker, OrderKind::Condition(condition));
                    found.add(waker, id, OrderKind::Condition(condition));
                }
            }
            EventKind::SemaphorePost { object }
            | EventKind::SemaphoreWait { object }
            | EventKind::SemaphoreWaitFailed { object } => {
                semaphore(trace, &mut objects[object.index()], object, id, found);
            }
            EventKind::BarrierArrive { object } | EventKind::BarrierLeave { object } => {
                barrier(trace, &mut objects[object.index()], object, id, found);
            }
            _ => {}
        }
    }
}

fn acquire(
    history: &mut ObjectHistory,
    object: ObjectId,
    mode: LockMode,
    id: EventId,
    found: &mut Found<'_>,
) {
    if let Some(release) = history.exclusive {
        found.add(release, id, OrderKind::Lock(object));
    }
    history.holders.push(id);
    match mode {
        LockMode::Exclusive => {
            for release in history.shared.drain(..) {
                found.add(release, id, OrderKind::Lock(object));
            }
            history.exclusive = Some(id);
        }
        LockMode::Shared => {}
    }
}

fn semaphore(
    trace: &EventTrace,
    history: &mut ObjectHistory,
    object: ObjectId,
    id: EventId,
    found: &mut Found<'_>,
) {
    let ObjectKind::Semaphore { initial } = trace.objects[object.index()].kind else { return };
    let kind = OrderKind::Semaphore(object);
    match trace.event(id).kind {
        EventKind::SemaphorePost { .. } => {
            for failed in history.failed.drain(..) {
                found.add(failed, id, kind);
            }
            history.posts.push(id);
        }
        EventKind::SemaphoreWait { .. } => {
            // Units are taken in the order in which they were given.
            let taken = history.waits.len().checked_sub(initial as usize);
            if let Some(&post) = taken.and_then(|number| history.posts.get(number)) {
                found.add(post, id, kind);
            }
            history.waits.push(id);
        }
        _ => {
            for &wait in &history.waits {
                found.add(wait, id, kind);
            }
            history.failed.push(id);
        }
    }
}

fn barrier(
    trace: &EventTrace,
    history: &mut ObjectHistory,
    object: ObjectId,
    id: EventId,
    found: &mut Found<'_>,
) {
    let ObjectKind::Barrier { count } = trace.objects[object.index()].kind else { return };
    let count = count.max(1) as usize;
    let event = trace.event(id);
    let kind = OrderKind::Barrier(object);
    if matches!(event.kind, EventKind::BarrierArrive { .. }) {
        // Whoever arrives for a round comes after all arrivals of the round before.
        let round = history.arrivals.len() / count;
        if let Some(previous) = round.checked_sub(1) {
            for &arrival in &history.arrivals[previous * count..round * count] {
                found.add(arrival, id, kind);
            }
        }
        history.arrivals.push(id);
        return;
    }
    let own = history.arrivals.iter().rposition(|a| trace.event(*a).thread == event.thread);
    let first = own.map_or(0, |number| number / count * count);
    for &arrival in history.arrivals.iter().skip(first).take(count) {
        found.add(arrival, id, kind);
    }
}

/// The orders of the failure condition that hold in the schedule: the condition is monotone in
/// them, so that they keep it true.
fn failure_orders(
    trace: &EventTrace,
    condition: &FailureCondition,
    position: &[u32],
    found: &mut Found<'_>,
) {
    match condition {
        FailureCondition::Value(_) => {}
        FailureCondition::Before(a, b) => {
            if position[a.index()] < position[b.index()] {
                found.add(*a, *b, OrderKind::Failure);
            }
        }
        FailureCondition::Unwoken { condition, began } => {
            wakings(trace, *condition, *began, position, found);
        }
        FailureCondition::All(parts) | FailureCondition::Any(parts) => {
            parts.iter().for_each(|part| failure_orders(trace, part, position, found));
        }
    }
}

/// How waits, signals and broadcasts of a condition variable follow each other: that decides
/// whether a signal is left for the wait that began at `began`.
fn wakings(
    trace: &EventTrace,
    condition: ObjectId,
    began: EventId,
    position: &[u32],
    found: &mut Found<'_>,
) {
    let (mut wakers, mut bounds) = (Vec::new(), vec![began]);
    for event in &trace.events {
        match event.kind {
            EventKind::Signal { condition: c } | EventKind::Broadcast { condition: c }
                if c == condition =>
            {
                wakers.push(event.id);
            }
            EventKind::Wake { condition: c, began } if c == condition => {
                bounds.extend([began, event.id]);
            }
            _ => {}
        }
    }
    let place = |id: EventId| position[id.index()];
    for (index, &bound) in bounds.iter().enumerate() {
        for &other in wakers.iter().chain(&bounds[index + 1..]) {
            let (first, second) =
                if place(bound) < place(other) { (bound, other) } else { (other, bound) };
            found.add(first, second, OrderKind::Failure);
        }
    }
}
