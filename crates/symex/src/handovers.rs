//! Objects that threads hand each other inside of uninstrumented code: what comes out went in before.
//!
//! A thread pool, an event loop or a queue of a library gives a thread a pointer that another thread passed
//! to it: as an argument of a callback, or as the result of a call. What orders the two lies in the library's
//! own memory and locks. The survey notes which objects were passed to uninstrumented code, and which came
//! from there; behind it a plan is made, and the symbolic pass makes events of it: the thread that passed the
//! object gives units of a semaphore, the one that got it takes one.
//!
//! No schedule with the same results is excluded:
//!
//! * Only the first time counts that a thread passes an object, and the first time that one gets it. Where
//!   several threads passed it, any of them will do.
//! * An object counts when the program made it: a variable, or memory whose allocation gave the program its
//!   address. Not when its address was stored in something that was passed, too, from where the library may
//!   have it.
//! * A thread that passed the object itself needs nobody, nor does one that was created behind the passing, nor
//!   one that got it before another thread can have passed it.

use crate::clock::VectorClock;
use crate::engine::{Engine, Pass};
use crate::externals::plain_name;
use crate::heap::{HEAP, PRIVATE};
use crate::memory::MemoryByte;
use crate::sync::file_name;
use crate::thread::{ExternalCall, Frame};
use crate::value::{Scalar, Value};
use ir::effects::effect;
use model::trace::HAND_OVER;
use model::{EventKind, ObjectKind};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// Runs with more objects than this are left alone: each may become a semaphore.
const MOST_OBJECTS: usize = 1 << 14;
/// So many objects that hold another one's address are remembered; with more it does not count.
const MOST_HOLDERS: usize = 8;
/// A variable on a stack that was passed is taken to be of so many bytes, where its address is held.
const STACK_OBJECT: u64 = 256;
const POINTER: usize = 8;

/// Functions with a description that keep a pointer which they are given: the beginnings of their names. All
/// others with one are done with it when they return.
const KEEPERS: [&str; 22] = [
    "event_",
    "evbuffer_",
    "bufferevent_",
    "evconnlistener_",
    "pthread_create",
    "pthread_key_create",
    "pthread_setspecific",
    "thrd_create",
    "tss_set",
    "timer_create",
    "mq_notify",
    "atexit",
    "on_exit",
    "__cxa_atexit",
    "__cxa_thread_atexit",
    "__cxa_at_quick_exit",
    "__pthread_register_cancel",
    "tsearch",
    "makecontext",
    "fopencookie",
    "_ZNSt6thread15_M_start_thread",
    // GLib: what keeps nothing never gives a pointer out either.
    "g_",
];

/// A thread passes or gets objects. Both have numbers of one sequence in their thread.
#[derive(Clone)]
struct Crossing {
    thread: usize,
    ordinal: u64,
    clock: VectorClock,
}

/// What a call passes, noted when it is known to be one of uninstrumented code.
#[derive(Clone)]
pub(crate) struct Passed {
    objects: SmallVec<[u64; 2]>,
    crossing: Crossing,
}

/// What is done at a crossing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    semaphore: usize,
    gives: bool,
    units: usize,
}

/// See the module.
#[derive(Clone, Default)]
pub(crate) struct Handovers {
    /// By object, the first time that each thread passed it.
    passed: BTreeMap<u64, Vec<Crossing>>,
    /// By object, the first time that each thread got it.
    obtained: BTreeMap<u64, Vec<Crossing>>,
    /// Heap objects, by internal address, whose addresses the program got from their allocation.
    own: FxHashSet<u64>,
    /// By object, those that held its address; `None` stands for too many.
    holders: FxHashMap<u64, Option<Vec<u64>>>,
    /// Thread, whether it gives, and the number of the crossing.
    plan: FxHashMap<(usize, bool, u64), Vec<Step>>,
}

impl Handovers {
    /// Notes a crossing; the first one of a thread counts.
    fn note(list: &mut BTreeMap<u64, Vec<Crossing>>, object: u64, crossing: Crossing) {
        if list.len() > MOST_OBJECTS {
            return;
        }
        let known = list.entry(object).or_default();
        match known.iter_mut().find(|known| known.thread == crossing.thread) {
            Some(known) if known.ordinal > crossing.ordinal => *known = crossing,
            Some(_) => {}
            None => known.push(crossing),
        }
    }

    fn hold(&mut self, holder: u64, object: u64) {
        let holders = self.holders.entry(object).or_insert_with(|| Some(Vec::new()));
        if let Some(known) = holders
            && !known.contains(&holder)
        {
            known.push(holder);
            if known.len() > MOST_HOLDERS {
                *holders = None;
            }
        }
    }

    /// May uninstrumented code have found the object's address in something that it was passed?
    fn may_be_found(&self, object: u64) -> bool {
        let mut seen = FxHashSet::default();
        let mut open = vec![object];
        while let Some(object) = open.pop() {
            match self.holders.get(&object) {
                None => {}
                Some(None) => return true,
                Some(Some(holders)) => {
                    for &holder in holders.iter().filter(|&&holder| seen.insert(holder)) {
                        if self.was_passed(holder) {
                            return true;
                        }
                        open.push(holder);
                    }
                }
            }
        }
        false
    }

    /// Was the memory passed, as an object or as a part of one on a stack?
    fn was_passed(&self, holder: u64) -> bool {
        let from = match is_on_stack(holder) {
            true => holder.saturating_sub(STACK_OBJECT),
            false => holder,
        };
        self.passed.range(from..=holder).next().is_some()
    }

    /// Decides who waits for whom. `complete`: every thread was walked to the end of its log.
    pub fn decide(&mut self, complete: bool) {
        if !complete || self.passed.len() > MOST_OBJECTS || self.obtained.len() > MOST_OBJECTS {
            return;
        }
        let mut semaphore = 0;
        let mut plan: FxHashMap<(usize, bool, u64), Vec<Step>> = FxHashMap::default();
        for (&object, takers) in &self.obtained {
            let Some(givers) = self.passed.get(&object) else { continue };
            if (object >= HEAP && !self.own.contains(&object)) || self.may_be_found(object) {
                continue;
            }
            let needs = |taker: &&Crossing| {
                givers.iter().all(|giver| match giver.thread == taker.thread {
                    true => giver.ordinal > taker.ordinal,
                    false => giver.clock.get(giver.thread) > taker.clock.get(giver.thread),
                })
            };
            // What came out before anybody can have passed it did not come from there.
            let can_have = |taker: &&Crossing| {
                givers.iter().any(|giver| {
                    giver.thread != taker.thread
                        && taker.clock.get(taker.thread) > giver.clock.get(taker.thread)
                })
            };
            let takers: Vec<&Crossing> = takers.iter().filter(needs).filter(can_have).collect();
            if takers.is_empty() {
                continue;
            }
            let mut add = |at: &Crossing, gives: bool, units: usize| {
                let step = Step { semaphore, gives, units };
                plan.entry((at.thread, gives, at.ordinal)).or_default().push(step);
            };
            givers.iter().for_each(|giver| add(giver, true, takers.len()));
            takers.iter().for_each(|taker| add(taker, false, 1));
            semaphore += 1;
        }
        self.plan = plan;
    }
}

fn is_on_stack(internal: u64) -> bool {
    (1 << 48..PRIVATE).contains(&internal)
}

/// Does the function keep no pointer that it is passed, for another thread to get?
fn keeps_nothing(name: &str) -> bool {
    let described = effect(name).is_some() || effect(plain_name(name)).is_some();
    described && !KEEPERS.iter().any(|keeper| name.starts_with(keeper))
}

impl<'r> Engine<'r> {
    /// The object at an address, as one of those that are handed over.
    fn handed(&self, t: usize, address: u64) -> Option<u64> {
        if address < 4096 {
            return None;
        }
        if let Some((.., offset)) = self.image.global_at(address) {
            return Some(address - offset);
        }
        let internal = self.lookup(t, address)?;
        if let Some(index) = self.learned.heap.at_internal(internal) {
            let object = self.learned.heap.objects.get(index)?;
            return object.mapped.is_none().then_some(object.base);
        }
        is_on_stack(internal).then_some(internal)
    }

    fn handed_value(&self, t: usize, value: &Value) -> Option<u64> {
        let scalar = value.scalar().filter(|scalar| scalar.width == 64)?;
        self.handed(t, scalar.as_const()? as u64)
    }

    fn crossing(&self, t: usize, ordinal: u64) -> Crossing {
        Crossing { thread: t, ordinal, clock: self.threads[t].clock.clone() }
    }

    /// The number of the next crossing of a thread.
    fn next_crossing(&mut self, t: usize) -> u64 {
        self.close_uses(t);
        let thread = &mut self.threads[t];
        thread.crossings += 1;
        thread.crossings
    }

    /// A function is called that may be uninstrumented: what it is passed. In the symbolic pass, the objects
    /// are there from now on.
    pub fn pass_on(&mut self, t: usize, name: &str, arguments: &[Value]) -> Option<Box<Passed>> {
        let ordinal = self.next_crossing(t);
        self.cross(t, true, ordinal);
        if self.symbolic() || keeps_nothing(name) {
            return None;
        }
        let objects = arguments.iter().filter_map(|argument| self.handed_value(t, argument));
        let objects: SmallVec<[u64; 2]> = objects.collect();
        let crossing = self.crossing(t, ordinal);
        (!objects.is_empty()).then(|| Box::new(Passed { objects, crossing }))
    }

    fn note_passed(&mut self, passed: Option<Box<Passed>>) {
        let Some(passed) = passed else { return };
        for &object in &passed.objects {
            let crossing = passed.crossing.clone();
            Handovers::note(&mut self.learned.handovers.passed, object, crossing);
        }
    }

    /// What the calls of uninstrumented code were passed that the thread is in.
    pub fn note_open_calls(&mut self, t: usize) {
        for at in 0..self.threads[t].frames.len() {
            let passed = match self.threads[t].frames.get_mut(at) {
                Some(Frame::External(frame)) => {
                    let call = frame.call.as_mut().filter(|call| !call.walked);
                    call.and_then(|call| call.passed.take())
                }
                _ => None,
            };
            self.note_passed(passed);
        }
    }

    /// Uninstrumented code called the function on top of the thread's frames, with these arguments.
    pub fn called_back(&mut self, t: usize) {
        let ordinal = self.next_crossing(t);
        self.cross(t, false, ordinal);
        if self.symbolic() {
            return;
        }
        self.note_open_calls(t);
        let Some(Frame::Code(frame)) = self.threads[t].frames.last() else { return };
        let arguments = frame.arguments.iter();
        let objects: SmallVec<[u64; 4]> =
            arguments.filter_map(|argument| self.handed_value(t, argument)).collect();
        for object in objects {
            self.note_obtained(t, object, ordinal);
        }
    }

    /// A call of uninstrumented code gave this.
    pub fn note_result(&mut self, t: usize, call: &ExternalCall<'r>, result: &Value) {
        let ordinal = self.next_crossing(t);
        self.cross(t, false, ordinal);
        if self.symbolic() {
            return;
        }
        self.note_passed(call.passed.clone());
        if let Some(index) = call.allocated
            && let Some(object) = self.learned.heap.objects.get(index)
            && result.scalar().and_then(Scalar::as_const) == Some(object.address.into())
            && self.threads[t].allocations == call.allocations + 1
        {
            self.learned.handovers.own.insert(object.base);
            return;
        }
        if !keeps_nothing(call.name) {
            let object = self.handed_value(t, result);
            object.into_iter().for_each(|object| self.note_obtained(t, object, ordinal));
        }
    }

    fn note_obtained(&mut self, t: usize, object: u64, ordinal: u64) {
        let crossing = self.crossing(t, ordinal);
        Handovers::note(&mut self.learned.handovers.obtained, object, crossing);
    }

    /// The program writes bytes: addresses of objects among them can be found there.
    pub fn note_held(&mut self, t: usize, internal: u64, bytes: &[MemoryByte]) {
        if !matches!(self.pass, Pass::Survey(_)) || !internal.is_multiple_of(POINTER as u64) {
            return;
        }
        for (index, word) in bytes.chunks_exact(POINTER).enumerate() {
            let mut address = 0u64;
            for (at, from) in word.iter().enumerate() {
                let MemoryByte::Const(byte) = from else { break };
                address |= u64::from(*byte) << (8 * at);
            }
            // A part of an address is none.
            let Some(object) = self.handed(t, address) else { continue };
            let at = internal + (index * POINTER) as u64;
            let holder = match self.learned.heap.at_internal(at) {
                Some(index) => self.learned.heap.objects[index].base,
                None => self.image.global_at(at).map_or(at, |(.., offset)| at - offset),
            };
            if holder != object {
                self.learned.handovers.hold(holder, object);
            }
        }
    }

    /// Makes the events that are planned for a crossing.
    fn cross(&mut self, t: usize, gives: bool, ordinal: u64) {
        if !self.symbolic() {
            return;
        }
        let steps = self.learned.handovers.plan.get(&(t, gives, ordinal)).cloned();
        for Step { semaphore, units, .. } in steps.into_iter().flatten() {
            let name = match self.site(t) {
                site if site.line == 0 => HAND_OVER.to_owned(),
                site => format!("{HAND_OVER} of {}:{}", file_name(&site.file), site.line),
            };
            let known = self.handover_objects.get(&semaphore).copied();
            let object = known.unwrap_or_else(|| {
                self.out.object(ObjectKind::Semaphore { initial: 0 }, name.clone())
            });
            self.handover_objects.insert(semaphore, object);
            for _ in 0..units {
                let kind = match gives {
                    true => EventKind::SemaphorePost { object },
                    false => EventKind::SemaphoreWait { object },
                };
                self.event(t, kind, Some(name.clone()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OBJECT: u64 = 0x1000;

    fn at(thread: usize, ordinal: u64, clock: &VectorClock) -> Crossing {
        Crossing { thread, ordinal, clock: clock.clone() }
    }

    fn ticked(threads: &[usize]) -> VectorClock {
        let mut clock = VectorClock::default();
        threads.iter().for_each(|&thread| clock.tick(thread));
        clock
    }

    /// The first thread passed the object at its second crossing, and the second one got it at its first.
    fn handed() -> Handovers {
        let mut handovers = Handovers::default();
        Handovers::note(&mut handovers.passed, OBJECT, at(0, 2, &ticked(&[0, 0])));
        Handovers::note(&mut handovers.obtained, OBJECT, at(1, 1, &ticked(&[0, 1])));
        handovers
    }

    /// Thread, whether it gives, the crossing, and how many units.
    fn plan(mut handovers: Handovers) -> Vec<(usize, bool, u64, usize)> {
        handovers.decide(true);
        let plan = handovers.plan.iter();
        let mut steps: Vec<_> = plan
            .flat_map(|(&(thread, gives, at), steps)| {
                steps.iter().map(move |step| (thread, gives, at, step.units))
            })
            .collect();
        steps.sort_unstable();
        steps
    }

    #[test]
    fn what_comes_out_went_in_before() {
        assert_eq!(plan(handed()), [(0, true, 2, 1), (1, false, 1, 1)]);
    }

    #[test]
    fn the_first_time_counts() {
        let mut handovers = handed();
        let clock = ticked(&[0, 0]);
        Handovers::note(&mut handovers.passed, OBJECT, at(0, 7, &clock));
        Handovers::note(&mut handovers.obtained, OBJECT, at(1, 5, &ticked(&[0, 1])));
        // Calls are noted when they are over, which one inside of another is first.
        Handovers::note(&mut handovers.passed, OBJECT, at(0, 1, &clock));
        assert_eq!(plan(handovers), [(0, true, 1, 1), (1, false, 1, 1)]);
    }

    #[test]
    fn any_of_several_threads_will_do() {
        let mut handovers = handed();
        Handovers::note(&mut handovers.passed, OBJECT, at(2, 4, &ticked(&[0, 2])));
        Handovers::note(&mut handovers.obtained, OBJECT, at(3, 9, &ticked(&[0, 3])));
        let givers = [(0, true, 2, 2), (2, true, 4, 2)];
        let takers = [(1, false, 1, 1), (3, false, 9, 1)];
        assert_eq!(
            plan(handovers),
            [&givers[..1], &takers[..1], &givers[1..], &takers[1..]].concat()
        );
    }

    #[test]
    fn who_had_the_object_otherwise_needs_nobody() {
        // It passed the object itself before.
        let mut own = handed();
        Handovers::note(&mut own.passed, OBJECT, at(1, 0, &ticked(&[0, 1])));
        assert_eq!(plan(own), []);
        // It was created behind the passing.
        let mut created = handed();
        created.obtained.clear();
        Handovers::note(&mut created.obtained, OBJECT, at(1, 1, &ticked(&[0, 0, 1])));
        assert_eq!(plan(created), []);
        // The address lies in something that was passed, too, however far behind it.
        let mut found = handed();
        found.hold(0x2000, OBJECT);
        assert_eq!(plan(found.clone()).len(), 2);
        found.hold(0x3000, 0x2000);
        Handovers::note(&mut found.passed, 0x3000, at(0, 1, &ticked(&[0])));
        assert_eq!(plan(found), []);
    }

    #[test]
    fn what_nobody_can_have_passed_came_from_elsewhere() {
        // The one thread that passed it had got it before.
        let mut own = Handovers::default();
        Handovers::note(&mut own.obtained, OBJECT, at(0, 1, &ticked(&[0, 0])));
        Handovers::note(&mut own.passed, OBJECT, at(0, 2, &ticked(&[0, 0])));
        assert_eq!(plan(own), []);
        // Another thread passed it, which was created behind the getting.
        let mut created = Handovers::default();
        Handovers::note(&mut created.obtained, OBJECT, at(0, 1, &ticked(&[0])));
        Handovers::note(&mut created.passed, OBJECT, at(1, 1, &ticked(&[0, 1])));
        assert_eq!(plan(created), []);
    }

    #[test]
    fn memory_of_the_library_does_not_count() {
        let mut handovers = Handovers::default();
        Handovers::note(&mut handovers.passed, HEAP, at(0, 2, &ticked(&[0, 0])));
        Handovers::note(&mut handovers.obtained, HEAP, at(1, 1, &ticked(&[0, 1])));
        assert_eq!(plan(handovers.clone()), []);
        handovers.own.insert(HEAP);
        assert_eq!(plan(handovers.clone()).len(), 2);
        let mut unfinished = handovers;
        unfinished.decide(false);
        assert!(unfinished.plan.is_empty());
    }
}
