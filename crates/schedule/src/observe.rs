//! From the turns of a scheduled run to the order of its events.

use crate::units::event;
use model::{Event, EventId, EventKind, EventTrace, ObjectId, ObjectKind, Points, Schedule};
use rustc_hash::{FxHashMap, FxHashSet};
use thiserror::Error;
use trace_format::layout::{SyncOp, SyncPoint, sync_point_name};

/// Why the turns do not go with the trace.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ObservedError {
    /// A turn of a thread that the trace does not have.
    #[error("turn {turn} is of thread {thread}, but the trace has {threads} threads")]
    UnknownThread {
        /// The turn's number, from 1.
        turn: usize,
        /// The thread's index.
        thread: usize,
        /// How many threads there are.
        threads: usize,
    },
    /// A thread passed fewer points than in a turn before.
    #[error("turn {turn} says {thread} has passed fewer points than in one of its turns before")]
    Backwards {
        /// The turn's number, from 1.
        turn: usize,
        /// The thread's name.
        thread: String,
    },
    /// The points are not those of the trace.
    #[error("{points} points are given for {events} events")]
    Points {
        /// How many points there are.
        points: usize,
        /// How many events the trace has.
        events: usize,
    },
}

/// The order in which a scheduled run performed its events.
///
/// Each record is the end of a turn: the thread's index in the trace, and how many gates and sync
/// points it had passed by then. An event happens in its thread's first turn that passed the
/// event's point, but for a call that had to wait there: it passed its point, gave up the turn, and
/// did its work when it had the turn again. Whether a wait for a futex did, no other event tells; what it
/// found behind the wait it found in the turn in which the thread got past the call. What no record covers comes last: first what the
/// failing thread did, which went on to the end, then the threads by their last turns, the latest
/// one last, since its turn was over.
///
/// # Errors
/// When the records cannot be those of the trace.
pub fn observed(
    trace: &EventTrace,
    points: &Points,
    records: &[(usize, u64, u64)],
) -> Result<Schedule, ObservedError> {
    if points.of.len() != trace.events.len() {
        let (points, events) = (points.of.len(), trace.events.len());
        return Err(ObservedError::Points { points, events });
    }
    let threads = trace.threads.len();
    let mut run = Run::new(trace);
    let mut passed = vec![(0, 0); threads];
    let mut last_turn = vec![0; threads];
    for (index, &(thread, gates, syncs)) in records.iter().enumerate() {
        let turn = index + 1;
        let (Some(before), Some(last)) = (passed.get_mut(thread), last_turn.get_mut(thread)) else {
            return Err(ObservedError::UnknownThread { turn, thread, threads });
        };
        if gates < before.0 || syncs < before.1 {
            let thread = trace.threads.get(thread).map_or("", |thread| &thread.name).to_owned();
            return Err(ObservedError::Backwards { turn, thread });
        }
        *before = (gates, syncs);
        *last = turn;
        run.perform(thread, &|id| {
            points.point(id).is_some_and(|point| {
                let past = point.gates < gates || point.syncs < syncs;
                point.gates <= gates
                    && point.syncs <= syncs
                    && (past || !is_behind_wait(trace, points, id))
            })
        });
    }
    let failing = trace.failure.as_ref().and_then(|failure| event(trace, failure.event));
    let failing = failing.map(|event| event.thread.index());
    let mut rest: Vec<usize> = (0..threads).collect();
    rest.sort_by_key(|&thread| (Some(thread) != failing, last_turn.get(thread).copied(), thread));
    run.perform_rest(&rest);
    Ok(Schedule { order: run.order })
}

/// Is it the look at the word behind a wait for a futex?
fn is_behind_wait(trace: &EventTrace, points: &Points, id: EventId) -> bool {
    const NAME: &str = sync_point_name(SyncPoint::Begin, Some(SyncOp::FutexWait));
    let reads = event(trace, id).is_some_and(|event| matches!(event.kind, EventKind::Read { .. }));
    reads
        && points.point(id).is_some_and(|point| {
            let last = point.through.map_or(point.site, |through| through.site);
            points.sites.get(last as usize).is_some_and(|site| site == NAME)
        })
}

/// What a lock's state is.
#[derive(Default)]
struct LockState {
    exclusive: bool,
    shared: u32,
}

/// The events performed so far.
struct Run<'t> {
    trace: &'t EventTrace,
    order: Vec<EventId>,
    /// Per thread: how many of its events.
    done: Vec<usize>,
    locks: FxHashMap<ObjectId, LockState>,
    /// Per semaphore: its units. Per barrier: who has arrived, less who has left.
    counts: FxHashMap<ObjectId, i64>,
    /// Barriers whose round is complete: the threads leave.
    open: FxHashSet<ObjectId>,
}

impl<'t> Run<'t> {
    fn new(trace: &'t EventTrace) -> Self {
        let initial = |object: &model::Object| match object.kind {
            ObjectKind::Semaphore { initial } => (object.id, i64::from(initial)),
            _ => (object.id, 0),
        };
        Self {
            trace,
            order: Vec::with_capacity(trace.events.len()),
            done: vec![0; trace.threads.len()],
            locks: FxHashMap::default(),
            counts: trace.objects.iter().map(initial).collect(),
            open: FxHashSet::default(),
        }
    }

    fn next(&self, thread: usize) -> Option<&'t Event> {
        let done = self.done.get(thread).copied()?;
        let id = self.trace.threads.get(thread)?.events.get(done).copied()?;
        event(self.trace, id)
    }

    /// Performs the thread's events as long as they are `within` its turn and need not wait.
    /// Gives how many there were.
    fn perform(&mut self, thread: usize, within: &dyn Fn(EventId) -> bool) -> usize {
        let mut count = 0;
        while let Some(event) = self.next(thread).filter(|event| within(event.id)) {
            if self.must_wait(event) {
                break;
            }
            self.step(thread, event);
            count += 1;
        }
        count
    }

    /// Performs what is left, thread by thread; what waits for ever comes last.
    fn perform_rest(&mut self, threads: &[usize]) {
        loop {
            let done: usize = threads.iter().map(|&thread| self.perform(thread, &|_| true)).sum();
            if done == 0 {
                break;
            }
        }
        for &thread in threads {
            while let Some(event) = self.next(thread) {
                self.step(thread, event);
            }
        }
    }

    /// Is the event one that other threads have to make possible first?
    fn must_wait(&self, waiting: &Event) -> bool {
        match waiting.kind {
            EventKind::Lock { object, mode } => self.locks.get(&object).is_some_and(|lock| {
                lock.exclusive || (mode == model::LockMode::Exclusive && lock.shared > 0)
            }),
            EventKind::SemaphoreWait { object } => {
                self.counts.get(&object).is_some_and(|&units| units <= 0)
            }
            EventKind::BarrierLeave { object } => !self.open.contains(&object),
            EventKind::Join { child } => {
                let last = self.trace.threads.get(child.index()).and_then(|t| t.events.last());
                let exit = last.and_then(|&id| event(self.trace, id));
                exit.is_some_and(|exit| exit.kind == EventKind::Exit)
                    && self.next(child.index()).is_some()
            }
            EventKind::Start => self.is_uncreated(waiting.thread.index()),
            _ => false,
        }
    }

    /// Has the creation of the thread, if the trace has one, not happened yet?
    fn is_uncreated(&self, thread: usize) -> bool {
        let Some(parent) = self.trace.threads.get(thread).and_then(|thread| thread.parent) else {
            return false;
        };
        let done = self.done.get(parent.index()).copied().unwrap_or(0);
        let events = self.trace.threads.get(parent.index()).map_or(&[][..], |t| &t.events);
        events.get(done..).unwrap_or_default().iter().any(|&id| {
            event(self.trace, id).is_some_and(
                |e| matches!(e.kind, EventKind::Fork { child } if child.index() == thread),
            )
        })
    }

    fn step(&mut self, thread: usize, performed: &Event) {
        match performed.kind {
            EventKind::Lock { object, mode } => {
                let lock = self.locks.entry(object).or_default();
                match mode {
                    model::LockMode::Exclusive => lock.exclusive = true,
                    model::LockMode::Shared => lock.shared += 1,
                }
            }
            EventKind::Unlock { object, mode, .. } => {
                let lock = self.locks.entry(object).or_default();
                match mode {
                    model::LockMode::Exclusive => lock.exclusive = false,
                    model::LockMode::Shared => lock.shared = lock.shared.saturating_sub(1),
                }
            }
            EventKind::SemaphoreWait { object } => *self.counts.entry(object).or_default() -= 1,
            EventKind::SemaphorePost { object } => *self.counts.entry(object).or_default() += 1,
            EventKind::BarrierArrive { object } => self.arrive(object),
            EventKind::BarrierLeave { object } => {
                let inside = self.counts.entry(object).or_default();
                *inside -= 1;
                if *inside <= 0 {
                    self.open.remove(&object);
                }
            }
            _ => {}
        }
        self.order.push(performed.id);
        if let Some(done) = self.done.get_mut(thread) {
            *done += 1;
        }
    }

    fn arrive(&mut self, object: ObjectId) {
        let kind = self.trace.objects.get(object.index()).map(|object| object.kind);
        let Some(ObjectKind::Barrier { count }) = kind else { return };
        let inside = self.counts.entry(object).or_default();
        *inside += 1;
        if *inside >= i64::from(count) {
            self.open.insert(object);
        }
    }
}
