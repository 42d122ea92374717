//! Queues of libraries, and tasks that are given to their threads: an item can be taken when it was given.
//!
//! Every item of a queue is a semaphore: who gives it posts, who takes it waits. That is all that is known
//! of most queues, and no schedule with the same results is excluded. More is known
//!
//! * where a call found nothing, or waits for ever: of such a queue all items together are a semaphore, too;
//! * where items were given to the end of the queue alone: what a thread took one after the other was given in
//!   that order, and what nobody took was given behind all that was taken. Where different threads gave the
//!   two, the later one waits for the earlier.

use crate::engine::Engine;
use crate::report::GapKind;
use crate::thread::PendingSync;
use model::{EventKind, ObjectId, ObjectKind};
use rustc_hash::{FxHashMap, FxHashSet};

/// The argument of a push: the item may not be behind all others.
const ELSEWHERE: u64 = 1;
/// The argument of a push: whoever takes the item may not have said so.
const TASK: u64 = 2;
/// The argument of a pop: nothing may be there, or it asks for one item.
const PERHAPS: u64 = 1;
const THIS: u64 = 2;

/// What a semaphore stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Units {
    /// All items of a queue.
    Items(u64),
    /// The item of a queue.
    Item(u64, u64),
    /// An order of two items given.
    Turn(usize),
}

/// An item that was given: by which thread, as its which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Given {
    queue: u64,
    item: u64,
    by: (usize, u64),
}

/// See the module. Addresses are internal.
#[derive(Clone, Default)]
pub(crate) struct Queues {
    /// How many calls wait for something in each queue.
    waiting: FxHashMap<u64, i64>,
    /// Queues in which a call found nothing.
    empty: FxHashSet<u64>,
    /// Queues whose order is not known.
    unordered: FxHashSet<u64>,
    /// Queues of which items may have been taken that nobody said so of.
    tasks: FxHashSet<u64>,
    given: Vec<Given>,
    /// What each thread took from each queue, in order.
    taken: FxHashMap<(usize, u64), Vec<u64>>,
    /// What a push waits for, and what it posts: numbers of [`Units::Turn`].
    turns: FxHashMap<(usize, u64), [Vec<usize>; 2]>,
}

impl Queues {
    /// Do all items of the queue together matter?
    fn counts(&self, queue: u64) -> bool {
        self.empty.contains(&queue) || self.waiting.get(&queue).is_some_and(|&waiting| waiting > 0)
    }

    /// Decides which items were given in which order.
    pub fn decide(&mut self) {
        let mut by: FxHashMap<(u64, u64), Option<(usize, u64)>> = FxHashMap::default();
        for given in &self.given {
            // An item that was given again may be either.
            let place = by.entry((given.queue, given.item));
            place.and_modify(|known| *known = None).or_insert(Some(given.by));
        }
        let mut readers: Vec<_> = self.taken.keys().copied().collect();
        readers.sort_unstable();
        let mut orders = Vec::new();
        for (thread, queue) in readers {
            if self.unordered.contains(&queue) {
                continue;
            }
            let Some(items) = self.taken.get(&(thread, queue)) else { continue };
            let giver = |item: &u64| by.get(&(queue, *item)).copied().flatten();
            for pair in items.windows(2) {
                let [first, then] = pair else { continue };
                orders.extend(giver(first).zip(giver(then)));
            }
            let Some(last) = items.last().and_then(giver) else { continue };
            orders.extend(self.left(queue).into_iter().map(|then| (last, then)));
        }
        orders.retain(|(first, then)| first.0 != then.0);
        for (number, (first, then)) in orders.into_iter().enumerate() {
            self.turns.entry(first).or_default()[1].push(number);
            self.turns.entry(then).or_default()[0].push(number);
        }
    }

    /// The first item of each thread that nobody took, in a queue of which that is certain.
    fn left(&self, queue: u64) -> Vec<(usize, u64)> {
        let waiting = self.waiting.get(&queue).is_some_and(|&waiting| waiting > 0);
        if waiting || self.tasks.contains(&queue) {
            return Vec::new();
        }
        let taken = self.taken.iter().filter(|((_, other), _)| *other == queue);
        let taken: FxHashSet<u64> = taken.flat_map(|(_, items)| items).copied().collect();
        let mut left: Vec<(usize, u64)> = Vec::new();
        for given in &self.given {
            let known = left.iter().any(|other| other.0 == given.by.0);
            if given.queue == queue && !known && !taken.contains(&given.item) {
                left.push(given.by);
            }
        }
        left
    }
}

impl Engine<'_> {
    fn queue_object(&mut self, t: usize, address: u64, part: Units) -> ObjectId {
        if let Some(&object) = self.queue_objects.get(&part) {
            return object;
        }
        let name = self.object_name(t, address, None).unwrap_or_else(|| format!("{address:#x}"));
        let object = self.out.object(ObjectKind::Semaphore { initial: 0 }, name);
        self.queue_objects.insert(part, object);
        object
    }

    /// A call begins that takes something from a queue.
    pub(crate) fn begin_pop(&mut self, t: usize, address: u64) {
        if !self.symbolic() {
            let queue = self.resolve(t, address).unwrap_or(address);
            *self.learned.queues.waiting.entry(queue).or_default() += 1;
        }
    }

    /// What a thread waits for whose call has not come back.
    pub(crate) fn awaited_items(&mut self, t: usize, address: u64) -> ObjectId {
        let queue = self.resolve(t, address).unwrap_or(address);
        self.queue_object(t, address, Units::Items(queue))
    }

    /// The items of a queue are no longer in the order in which they were given.
    pub(crate) fn reordered(&mut self, t: usize, address: u64) {
        if !self.symbolic() {
            let queue = self.resolve(t, address).unwrap_or(address);
            self.learned.queues.unordered.insert(queue);
        }
    }

    /// An item was given to a queue.
    pub(crate) fn pushed(&mut self, t: usize, begun: &PendingSync) {
        let ordinal = self.threads[t].pushes;
        self.threads[t].pushes += 1;
        let (address, item) = (begun.address, begun.second);
        let queue = self.resolve(t, address).unwrap_or(address);
        if !self.symbolic() {
            if begun.argument == ELSEWHERE {
                self.learned.queues.unordered.insert(queue);
            }
            if begun.argument == TASK {
                self.learned.queues.tasks.insert(queue);
            }
            self.learned.queues.given.push(Given { queue, item, by: (t, ordinal) });
            return;
        }
        let turns = self.learned.queues.turns.get(&(t, ordinal)).cloned().unwrap_or_default();
        let [before, behind] = turns;
        for number in before {
            let object = self.queue_object(t, address, Units::Turn(number));
            self.event(t, EventKind::SemaphoreWait { object }, begun.name.clone());
        }
        for part in self.parts(queue, item) {
            let object = self.queue_object(t, address, part);
            self.event(t, EventKind::SemaphorePost { object }, begun.name.clone());
        }
        for number in behind {
            let object = self.queue_object(t, address, Units::Turn(number));
            self.event(t, EventKind::SemaphorePost { object }, begun.name.clone());
        }
    }

    /// So many items were taken from a queue, this one and those with the numbers below, or nothing was.
    pub(crate) fn popped(&mut self, t: usize, begun: &PendingSync, item: u64, times: u64) {
        let address = begun.address;
        let queue = self.resolve(t, address).unwrap_or(address);
        if !self.symbolic() {
            let queues = &mut self.learned.queues;
            *queues.waiting.entry(queue).or_default() -= 1;
            if times == 0 && begun.argument == PERHAPS {
                queues.empty.insert(queue);
            }
            if begun.argument == THIS {
                queues.unordered.insert(queue);
            } else if times == 1 {
                queues.taken.entry((t, queue)).or_default().push(item);
            }
            return;
        }
        if times == 0 && begun.argument == PERHAPS {
            let object = self.queue_object(t, address, Units::Items(queue));
            self.event(t, EventKind::SemaphoreWaitFailed { object }, begun.name.clone());
        }
        if times > u64::from(u32::MAX) {
            self.gap(t, GapKind::Synchronisation, format!("{times} items at once"));
            return;
        }
        for number in 0..times {
            for part in self.parts(queue, item.wrapping_sub(number)) {
                let object = self.queue_object(t, address, part);
                self.event(t, EventKind::SemaphoreWait { object }, begun.name.clone());
            }
        }
    }

    fn parts(&self, queue: u64, item: u64) -> impl Iterator<Item = Units> + use<> {
        let all = self.learned.queues.counts(queue).then_some(Units::Items(queue));
        [Units::Item(queue, item)].into_iter().chain(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A queue to which these threads gave these items, and of which these took them; the orders of givers
    /// that follow.
    fn orders(given: &[(usize, u64)], taken: &[(usize, u64)]) -> Vec<((usize, u64), (usize, u64))> {
        let mut queues = Queues::default();
        let mut ordinals = [0; 8];
        for &(thread, item) in given {
            queues.given.push(Given { queue: 1, item, by: (thread, ordinals[thread]) });
            ordinals[thread] += 1;
        }
        for &(thread, item) in taken {
            queues.taken.entry((thread, 1)).or_default().push(item);
        }
        queues.decide();
        let waits = queues
            .turns
            .iter()
            .flat_map(|(place, [waits, _])| waits.iter().map(move |number| (*number, *place)));
        let mut waits: Vec<_> = waits.collect();
        waits.sort_unstable();
        let posts = |number: usize| {
            queues.turns.iter().find(|(_, [_, posts])| posts.contains(&number)).map(|(at, _)| *at)
        };
        waits.into_iter().filter_map(|(number, then)| Some((posts(number)?, then))).collect()
    }

    #[test]
    fn what_one_thread_takes_was_given_in_that_order() {
        let taken = [(3, 20), (3, 10), (3, 11)];
        let given = [(1, 10), (1, 11), (2, 20)];
        assert_eq!(orders(&given, &taken), [((2, 0), (1, 0))]);
    }

    #[test]
    fn what_different_threads_take_tells_nothing() {
        assert_eq!(orders(&[(1, 10), (2, 20)], &[(3, 20), (4, 10)]), []);
    }

    #[test]
    fn what_nobody_took_was_given_last() {
        let given = [(1, 10), (2, 20), (2, 21), (1, 11)];
        assert_eq!(orders(&given, &[(3, 10), (3, 11)]), [((1, 1), (2, 0))]);
    }

    #[test]
    fn an_item_that_was_given_twice_may_be_either() {
        assert_eq!(orders(&[(1, 10), (2, 20), (2, 10)], &[(3, 10), (3, 20)]), []);
    }
}
