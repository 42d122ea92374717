//! φbug of runs that did not come to an end: which threads wait for what, and which orders led
//! there.
//!
//! Every thread that waits when the run is ended gets a [`Block`](EventKind::Block) event: here it
//! asked for something and did not get it. What it holds is released behind that by synthetic
//! events ([S] 4.2, "Locks Held at Failure Points"), so schedules in which one critical section
//! comes after the other are there to be found. Threads wait for each other ([`graph`]); the chain
//! is followed to its root, and φbug is what makes the root wait ([`orders`]):
//!
//! * **A circle** is a *deadlock*. Each thread of it asked for what the next one had taken by then;
//!   the condition is that all of these acquisitions came before the requests. Joins in a circle
//!   add no condition, since a join always waits for the whole thread. A thread that waits for a
//!   lock that it holds itself waits under every schedule.
//! * **A condition variable** whose signals all came before the wait, or woke others: a *hang*. One that another
//!   thread initialised behind the beginning of the wait ([`crate::initialised`]), which no signal finds then.
//! * **A lock** that a thread kept which does not wait for anything, or has ended.
//! * **A variable** that the thread polls ([`polling`]): the writes with which it would go on came too
//!   early, or were overwritten before it looked again.
//! * **A child process** that does not end: no order of the recorded events is to blame, whatever else
//!   waits. The child's own trace may say more.
//! * **Something that nobody gives** (a semaphore without a unit, a barrier with too few arrivals,
//!   a call of uninstrumented code): the number of units and arrivals is the same under every
//!   schedule along the recorded paths, so every one of them fails, and only another path avoids
//!   it.
//!
//! A thread that was not waiting when the run was ended may have been about to go on, be it in a loop that
//! it had gone round for long ([`crate::endless`]): that a loop has no end cannot be read off a log. Where
//! such a thread may end the waits of the others, it is not known that the run hung, and it is told as
//! *still running* ([`running`]).

mod beside;
mod graph;
mod lost;
mod noticed;
mod orders;
mod polling;
mod running;
mod woken;
mod words;

pub(crate) use noticed::{LastWait, Noticed, Requests};
pub(crate) use orders::HangCondition;

use crate::engine::Engine;
use crate::externals::plain_name;
use crate::initialised::Touch;
use crate::recording::RecordedFailureKind;
use crate::report::AwaitedChild;
use crate::thread::{Frame, PendingSync};
use crate::value::Value;
use graph::Graph;
use lost::Memory;
use model::{Awaited, EventId, EventKind, Failure, FailureCondition, LockMode, ObjectId};
use model::{FailureKind, ObjectKind, PathConditionKind, Site, ThreadId};
use polling::Polled;
use trace_format::layout::SyncOp;
use woken::Woken;

/// What a thread waited for when the run was ended.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Waits {
    /// A lock, by internal address.
    Lock { address: u64, mode: LockMode },
    /// A condition variable, since this event of the thread. None where it had no mutex to give back, so
    /// that its request alone says since when.
    Condition { condition: ObjectId, began: Option<u32> },
    /// A unit of a semaphore.
    Semaphore(ObjectId),
    /// The others at a barrier.
    Barrier(ObjectId),
    /// Another thread's end.
    Join(usize),
    /// Another value of one of these variables.
    Change(Vec<Polled>),
    /// The end of a process that the program started: the function that waits, and which process,
    /// where it says so.
    Child(String, Option<u32>),
    /// A call of uninstrumented code, which nothing else is known of.
    Call(String),
    /// Nothing: it was still going round this loop.
    Loop(Site),
    /// Something else.
    Other,
}

/// A lock that a thread held when the run was ended.
#[derive(Clone, Copy, Debug)]
struct Held {
    thread: usize,
    /// Internal.
    address: u64,
    mode: LockMode,
    /// The acquisition, as an index in the thread.
    acquired: u32,
}

/// A thread at the end of a run that did not come to one.
#[derive(Clone, Debug)]
struct Stuck {
    thread: usize,
    waits: Waits,
    /// The [`EventKind::Block`], as an index in the thread.
    block: u32,
    /// The operation and its object, for people.
    operation: String,
    object: String,
    /// For a condition that may have been initialised behind that: the beginning of the wait.
    initialised: Option<Touch>,
    /// The futex that it waits for.
    futex: Option<u64>,
    /// Where what the call of synchronisation is about lies that it is in.
    memory: Memory,
}

/// Who waits for what at the end of a run, and who holds what.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waiting {
    stuck: Vec<Stuck>,
    held: Vec<Held>,
    /// Threads that did not wait for anything, and where they were.
    running: Vec<(usize, Site)>,
    woken: Vec<Woken>,
    /// Threads that had not come back from a call that does not wait, and where what that is about lies.
    kept: Vec<(usize, Memory)>,
}

/// An event as thread and index in it.
type Place = (usize, u32);

impl Engine<'_> {
    /// Did the recorded run not come to an end?
    pub(crate) fn hung(&self) -> bool {
        let kind = self.limits.failure.as_ref().map(|failure| &failure.kind);
        kind == Some(&RecordedFailureKind::TimedOut)
    }

    fn hangs(&self) -> bool {
        self.symbolic() && self.hung()
    }

    /// Notes what a thread waits for at the end of its walk, and what it holds, which it releases.
    /// False when the run did not hang, or the thread does not wait.
    pub fn note_wait(&mut self, t: usize) -> bool {
        if !self.threads[t].exited {
            self.note_kept(t);
            self.complete_certain(t);
        }
        let pending = self.threads[t].pending_sync.last().cloned();
        // A thread that waits on a condition has released the mutex, which no entry tells but the
        // one of the wait's end.
        let (initialised, began) = match &pending {
            Some(pending) if !self.threads[t].exited => {
                (self.wait_initialised(t, pending), self.begin_wait(t, pending))
            }
            _ => (None, None),
        };
        if !self.hangs() {
            self.note_request(t);
            if let Some(pending) = pending.filter(|_| !self.threads[t].exited) {
                self.arrive_at_end(t, &pending);
            }
            return false;
        }
        let idle = pending.is_none() && self.threads[t].joining.is_none();
        let polled = (idle && !self.threads[t].exited).then(|| self.polls(t)).flatten();
        let held = self.threads[t].held.iter().map(|lock| Held {
            thread: t,
            address: lock.address,
            mode: lock.mode,
            acquired: lock.acquired,
        });
        let held: Vec<Held> = held.collect();
        self.waiting.held.extend(held);
        if self.threads[t].exited {
            return false;
        }
        if self.is_left_behind(t) {
            return false;
        }
        if idle && self.limits.watcher == Some(self.threads[t].log.serial) {
            self.note_running(t);
            return false;
        }
        let waits = match (&pending, self.threads[t].joining) {
            (Some(pending), _) => self.waits(t, pending, began),
            (None, Some(child)) => Waits::Join(child),
            (None, None) => match (polled, self.opaque_call(t)) {
                (Some(polled), _) => Waits::Change(polled),
                (None, Some(name)) if waits_for_process(&name) => {
                    let process = self.awaited_process(t, &name);
                    Waits::Child(name, process)
                }
                (None, Some(name)) => Waits::Call(name),
                (None, None) => match &self.threads[t].report.endless {
                    Some(endless) => Waits::Loop(endless.site.clone()),
                    None => {
                        self.note_running(t);
                        return false;
                    }
                },
            },
        };
        if let Waits::Call(_) = waits {
            self.keep_arguments(t);
        }
        if let Waits::Condition { .. } = waits {
            self.mark_beside_wait(t);
        }
        let on = self.awaited(t, &waits);
        let name = match (&pending, &waits) {
            (Some(pending), _) => pending.name.clone(),
            (None, Waits::Change(polled)) => {
                polled.last().map(|last| polling::name(&self.out, t, last))
            }
            (None, Waits::Call(function)) => Some(plain_name(function).to_owned()),
            (None, _) => None,
        };
        let object = match &waits {
            Waits::Call(_) => String::new(),
            _ => name.clone().unwrap_or_default(),
        };
        let block = self.event(t, EventKind::Block { on }, name);
        if let Waits::Change(polled) = &waits
            && let Some(last) = polled.last()
        {
            self.out.move_last(t, last.read);
        }
        let (operation, object) = match &pending {
            Some(pending) => {
                let blocked = pending.blocked();
                (blocked.operation, blocked.object)
            }
            None => (String::new(), object),
        };
        let asked = pending.as_ref().map(|pending| pending.address);
        let memory = asked.map(|address| self.memory_at(t, address)).unwrap_or_default();
        self.release_all(t);
        let futex = pending.filter(|pending| pending.operation == SyncOp::FutexWait);
        let futex = futex.and_then(|pending| self.resolve(t, pending.address));
        let stuck =
            Stuck { thread: t, waits, block, operation, object, initialised, futex, memory };
        self.waiting.stuck.push(stuck);
        true
    }

    fn waits(&mut self, t: usize, pending: &PendingSync, began: Option<(ObjectId, u32)>) -> Waits {
        let address = self.resolve(t, pending.address).unwrap_or(pending.address);
        match pending.operation {
            SyncOp::MutexLock
            | SyncOp::MutexTimedLock
            | SyncOp::RwWriteLock
            | SyncOp::RwTimedWriteLock
            | SyncOp::SpinLock => Waits::Lock { address, mode: LockMode::Exclusive },
            SyncOp::RwReadLock | SyncOp::RwTimedReadLock => {
                Waits::Lock { address, mode: LockMode::Shared }
            }
            SyncOp::CondWait | SyncOp::CondTimedWait => {
                let condition = self.sync_object(t, pending.address, ObjectKind::Condition);
                Waits::Condition { condition, began: began.map(|(_, released)| released) }
            }
            SyncOp::SemWait | SyncOp::SemTimedWait => {
                let kind = ObjectKind::Semaphore { initial: 0 };
                Waits::Semaphore(self.sync_object(t, pending.address, kind))
            }
            SyncOp::QueuePop => Waits::Semaphore(self.awaited_items(t, pending.address)),
            SyncOp::BarrierWait => {
                let kind = ObjectKind::Barrier { count: 1 };
                Waits::Barrier(self.sync_object(t, pending.address, kind))
            }
            _ => Waits::Other,
        }
    }

    fn awaited(&mut self, t: usize, waits: &Waits) -> Awaited {
        match *waits {
            Waits::Lock { address, mode } => {
                Awaited::Lock { object: self.sync_object(t, address, ObjectKind::Lock), mode }
            }
            Waits::Condition { condition, .. } => Awaited::Signal { condition },
            Waits::Semaphore(object) => Awaited::Unit { object },
            Waits::Barrier(object) => Awaited::Arrivals { object },
            Waits::Join(child) => Awaited::End { child: ThreadId::from_index(child) },
            Waits::Change(_) => Awaited::Change,
            Waits::Call(_) => Awaited::Call,
            Waits::Child(..) | Waits::Loop(_) | Waits::Other => Awaited::Other,
        }
    }

    /// What the thread reads in each round of the loop that it does not come out of, if that is so.
    fn polls(&mut self, t: usize) -> Option<Vec<Polled>> {
        let depends = |engine: &Self, range: &std::ops::Range<usize>| {
            let conditions = engine.out.threads[t].conditions.get(range.clone());
            conditions.is_some_and(|conditions| !conditions.is_empty())
        };
        if !self.threads[t].exhausted() {
            return None;
        }
        let (events, conditions) = self.last_round(t)?;
        if !depends(self, &conditions) {
            return None;
        }
        self.cut_to_last_round(t)?;
        let log = &self.out.threads[t];
        let conditions: Vec<_> =
            log.conditions.get(conditions)?.iter().map(|condition| condition.expr).collect();
        let polled = polling::polled(log.events.get(events)?.iter(), &conditions, &self.pool);
        (!polled.is_empty()).then_some(polled)
    }

    /// The uninstrumented function that the log ends in, unless it only sleeps for a while.
    fn opaque_call(&self, t: usize) -> Option<String> {
        let thread = &self.threads[t];
        let Some(Frame::External(frame)) = thread.frames.last().filter(|_| thread.exhausted())
        else {
            return None;
        };
        let call = frame.call.as_ref().filter(|call| !call.walked && !call.performed)?;
        (!crate::tail::is_sleep(call.name)).then(|| call.name.to_owned())
    }

    /// A call that did not come back was given what it was given: with something else it might have.
    fn keep_arguments(&mut self, t: usize) {
        let call = self.threads[t].external_call();
        let arguments = call.map(|call| call.arguments.clone()).unwrap_or_default();
        for argument in arguments.iter().filter_map(Value::scalar) {
            self.concretise(t, argument, PathConditionKind::Address);
        }
    }

    /// The process that a call waits for, where it names one.
    fn awaited_process(&mut self, t: usize, function: &str) -> Option<u32> {
        let at = match function {
            "waitpid" | "wait4" => 0,
            "waitid" => 1,
            _ => return None,
        };
        let argument = self.threads[t].external_call()?.arguments.get(at)?.scalar()?;
        let recorded = match argument.as_expr() {
            Some(expr) => self.recorded_value(expr),
            None => argument.as_const(),
        };
        // Other numbers stand for groups of processes, or any.
        let process = (recorded? as u32).cast_signed();
        u32::try_from(process).ok().filter(|process| *process > 0)
    }

    /// After all walks: the failure of a run that did not come to an end because threads wait.
    pub fn explain_hang(&mut self) -> HangCondition {
        if !self.hangs() || self.failure.is_some() {
            return HangCondition::default();
        }
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.stuck.sort_by_key(|stuck| stuck.thread);
        let graph = Graph::new(&waiting, &self.initialised, &self.out);
        self.awaits_lost = waiting.lost_in(Memory::Heap, &graph).is_some();
        self.still_running = self.still_runs(&graph, &waiting.running);
        // Where a thread was is known of loops alone; elsewhere there is nothing to look for.
        let loops = |stuck: &Stuck| matches!(stuck.waits, Waits::Loop(_));
        if waiting.stuck.is_empty()
            || (!self.still_running.is_empty() && !waiting.stuck.iter().any(loops))
        {
            return HangCondition::default();
        }
        let (kind, stuck, condition, concerned) = match graph.circle() {
            Some(circle) => {
                let concerned = circle.iter().map(|step| step.from).collect();
                let condition = HangCondition::of_circle(&circle);
                (FailureKind::Deadlock, graph.last_to_come(&circle), condition, concerned)
            }
            None if !self.still_running.is_empty() => {
                let mut all: Vec<usize> = (0..waiting.stuck.len()).collect();
                all.sort_by_key(|&at| !loops(&waiting.stuck[at]));
                let first = all.first().copied().unwrap_or(0);
                (FailureKind::StillRunning, first, HangCondition::default(), all)
            }
            None => {
                let (roots, condition) = self.roots_of_hang(&graph);
                self.awaited_child =
                    roots.iter().find_map(|&root| match &waiting.stuck[root].waits {
                        Waits::Child(function, process) => {
                            let thread = self.threads[waiting.stuck[root].thread].log.name.clone();
                            Some(AwaitedChild {
                                thread,
                                function: function.clone(),
                                process: *process,
                            })
                        }
                        _ => None,
                    });
                let all: Vec<usize> = (0..waiting.stuck.len()).collect();
                (FailureKind::Hang, roots.first().copied().unwrap_or(0), condition, all)
            }
        };
        let names: Vec<&str> = self.threads.iter().map(|t| t.log.name.as_str()).collect();
        let words: Vec<String> = concerned
            .iter()
            .map(|&at| words::of(&graph, at, &names, (&self.out, &self.pool)))
            .collect();
        let t = waiting.stuck[stuck].thread;
        let event = self.event(t, EventKind::Failure, None);
        if let Waits::Change(_) = &waiting.stuck[stuck].waits {
            self.out.move_last(t, waiting.stuck[stuck].block);
        }
        let always = self.pool.boolean(true);
        let failure = FailureCondition::Value(always);
        let message = words.join(", ");
        self.failure =
            Some((t, Failure { kind, event: EventId(event), condition: failure, message }));
        condition
    }
}

impl Engine<'_> {
    /// The waits that keep the run from its end, and how they came about. Where the initial thread waits for others
    /// these are the ones at the end of its chains: a worker that has nothing to do waits whatever the others do,
    /// and is not why. Where no order is known for those, all that wait for nobody who waits.
    fn roots_of_hang(&self, graph: &Graph<'_>) -> (Vec<usize>, HangCondition) {
        let all = graph.roots();
        // A signal that came certainly behind the beginning of a wait would have ended it.
        let forgotten: Vec<usize> =
            all.iter().copied().filter(|&root| graph.is_forgotten(root, &self.out)).collect();
        if !forgotten.is_empty() {
            let condition = HangCondition::of_initialisations(graph, &forgotten);
            return (forgotten, condition);
        }
        let of = |roots: &[usize]| HangCondition::of_roots(graph, roots, &self.out, &self.pool);
        let awaited: Vec<usize> = match graph.of_thread(0) {
            Some(initial) => {
                let reached = graph.reached_from(initial);
                all.iter().copied().filter(|root| reached.contains(root)).collect()
            }
            None => Vec::new(),
        };
        if graph.of_thread(0).is_some_and(|initial| !all.contains(&initial)) {
            let condition = of(&awaited);
            if !condition.is_always() {
                return (awaited, condition);
            }
        }
        let condition = of(&all);
        // Who it waits for tells at least where.
        if condition.is_always() && !awaited.is_empty() {
            return (awaited, condition);
        }
        // The run is told as that of a thread that the initial one waits for, and not as one's that watches, say.
        let mut all = all;
        all.sort_by_key(|root| !awaited.contains(root));
        (all, condition)
    }
}

/// Does the function come back when a child process has ended?
fn waits_for_process(function: &str) -> bool {
    matches!(function, "wait" | "waitpid" | "wait3" | "wait4" | "waitid" | "system" | "pclose")
}
