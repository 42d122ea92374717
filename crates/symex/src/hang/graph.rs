//! Who waits for whom.

use super::woken::Woken;
use super::{Held, Place, Stuck, Waiting, Waits};
use crate::builder::Builder;
use crate::initialised::Touch;
use model::{EventKind, LockMode, ObjectId, ObjectKind};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A reason for a thread to wait until another one gets on.
#[derive(Clone, Debug)]
pub(super) struct Step {
    /// The waiting thread, as an index into the stuck ones.
    pub from: usize,
    /// Who has to get on, as an index into the stuck ones.
    pub to: usize,
    /// What made it so: each first event came before the second.
    pub orders: Vec<(Place, Place)>,
    /// The other one only asked for the lock, too, but goes first.
    pub precedence: bool,
}

/// The stuck threads and what ties them together.
pub(super) struct Graph<'w> {
    pub stuck: &'w [Stuck],
    pub held: &'w [Held],
    pub woken: &'w [Woken],
    /// Initialisations of conditions.
    initialised: &'w [Touch],
    steps: Vec<Vec<Step>>,
    /// Units that threads took from semaphores that serve as locks: the waits.
    taken: BTreeMap<ObjectId, Vec<Place>>,
}

impl<'w> Graph<'w> {
    pub fn new(waiting: &'w Waiting, initialised: &'w [Touch], out: &Builder) -> Self {
        let mut graph = Self {
            stuck: &waiting.stuck,
            held: &waiting.held,
            woken: &waiting.woken,
            initialised,
            steps: Vec::new(),
            taken: units_held(out),
        };
        graph.steps = (0..graph.stuck.len()).map(|stuck| graph.steps_from(stuck)).collect();
        graph
    }

    fn block(&self, stuck: usize) -> Place {
        (self.stuck[stuck].thread, self.stuck[stuck].block)
    }

    pub fn of_thread(&self, thread: usize) -> Option<usize> {
        self.stuck.iter().position(|other| other.thread == thread)
    }

    /// For a wait on a condition: its beginning, with each initialisation of the condition by another
    /// thread that may have come behind that.
    pub fn initialisations(&self, stuck: usize) -> impl Iterator<Item = (Place, Place)> {
        let wait = self.stuck[stuck].initialised;
        self.initialised.iter().filter_map(move |made| {
            let wait = wait.filter(|wait| {
                made.condition == wait.condition
                    && made.thread != wait.thread
                    && wait.time < made.time
            })?;
            Some(((wait.thread, wait.event), (made.thread, made.event)))
        })
    }

    /// Was the condition initialised while the thread waited for it? That has to be what the wait hangs
    /// on where it was signalled behind the wait's beginning, and no other wait can have taken that.
    pub fn is_forgotten(&self, stuck: usize, out: &Builder) -> bool {
        let (Some(wait), Waits::Condition { condition, .. }) =
            (self.stuck[stuck].initialised, &self.stuck[stuck].waits)
        else {
            return false;
        };
        if self.initialisations(stuck).next().is_none() {
            return false;
        }
        let others = out.threads.iter().enumerate().filter(|(thread, _)| *thread != wait.thread);
        let events = others.flat_map(|(_, log)| log.events.iter().zip(&log.intervals));
        let (mut signalled, mut broadcast, mut taken) = (false, false, false);
        for (event, interval) in events {
            match &event.kind {
                EventKind::Signal { condition: c } if c == condition => {
                    signalled |= wait.time < interval.earliest;
                }
                EventKind::Broadcast { condition: c } if c == condition => {
                    broadcast |= wait.time < interval.earliest;
                }
                EventKind::Wake { condition: c, .. } if c == condition => {
                    taken |= wait.time < interval.latest;
                }
                _ => {}
            }
        }
        broadcast || (signalled && !taken)
    }

    /// Who holds what this thread waits for, waiting or not.
    pub fn holders(&self, stuck: usize) -> impl Iterator<Item = &Held> {
        let waits = &self.stuck[stuck].waits;
        self.held.iter().filter(move |held| match *waits {
            Waits::Lock { address, mode } => {
                held.address == address
                    && (mode == LockMode::Exclusive || held.mode == LockMode::Exclusive)
            }
            _ => false,
        })
    }

    /// The waits that took the units of the semaphore, where that serves as a lock.
    pub fn units(&self, stuck: usize) -> &[Place] {
        match self.stuck[stuck].waits {
            Waits::Semaphore(object) => self.taken.get(&object).map_or(&[], Vec::as_slice),
            _ => &[],
        }
    }

    fn steps_from(&self, from: usize) -> Vec<Step> {
        let block = self.block(from);
        let step = |to, orders| Step { from, to, orders, precedence: false };
        match self.stuck[from].waits {
            Waits::Lock { address, mode } => {
                let holders = self.holders(from).filter_map(|held| {
                    let to = self.of_thread(held.thread)?;
                    let own = to == from;
                    let order = ((held.thread, held.acquired), block);
                    Some(step(to, if own { Vec::new() } else { vec![order] }))
                });
                let mut steps: Vec<Step> = holders.collect();
                if self.holders(from).next().is_none() && mode == LockMode::Shared {
                    steps = self.writers_in_front(from, address);
                }
                steps
            }
            Waits::Semaphore(_) => {
                let units = self.units(from);
                let orders: Vec<(Place, Place)> = units
                    .iter()
                    .filter(|unit| unit.0 != block.0)
                    .map(|unit| (*unit, block))
                    .collect();
                let mut steps: Vec<Step> = Vec::new();
                for to in units.iter().filter_map(|unit| self.of_thread(unit.0)) {
                    if steps.iter().all(|step| step.to != to) {
                        steps.push(step(to, orders.clone()));
                    }
                }
                steps
            }
            Waits::Join(child) => {
                self.of_thread(child).map(|to| step(to, Vec::new())).into_iter().collect()
            }
            Waits::Condition { .. }
            | Waits::Barrier(_)
            | Waits::Change(_)
            | Waits::Child(..)
            | Waits::Call(_)
            | Waits::Loop(_)
            | Waits::Other => Vec::new(),
        }
    }

    /// Nobody has the lock for writing, and a reader waits all the same: it is of the kind that
    /// lets waiting writers go first.
    fn writers_in_front(&self, from: usize, lock: u64) -> Vec<Step> {
        let wanted = Waits::Lock { address: lock, mode: LockMode::Exclusive };
        let writers = (0..self.stuck.len()).filter(|&to| self.stuck[to].waits == wanted);
        writers
            .map(|to| {
                let orders = vec![(self.block(to), self.block(from))];
                Step { from, to, orders, precedence: true }
            })
            .collect()
    }

    pub fn steps(&self, stuck: usize) -> &[Step] {
        &self.steps[stuck]
    }

    /// A shortest circle, the one with the first thread where several are as short.
    pub fn circle(&self) -> Option<Vec<Step>> {
        let circles = (0..self.stuck.len()).filter_map(|first| self.circle_of(first));
        circles.min_by_key(Vec::len)
    }

    /// A shortest circle that begins and ends at this thread.
    fn circle_of(&self, first: usize) -> Option<Vec<Step>> {
        let mut reached: Vec<Option<&Step>> = vec![None; self.stuck.len()];
        let mut queue = VecDeque::from([first]);
        while let Some(at) = queue.pop_front() {
            for step in &self.steps[at] {
                if reached[step.to].is_some() {
                    continue;
                }
                reached[step.to] = Some(step);
                if step.to == first {
                    let mut circle = vec![step.clone()];
                    while let Some(before) = circle.last().filter(|last| last.from != first) {
                        circle.push(reached[before.from]?.clone());
                    }
                    circle.reverse();
                    return Some(circle);
                }
                queue.push_back(step.to);
            }
        }
        None
    }

    /// The thread of a circle by whose request it closed. A writer that others have to let go
    /// first is the one to be let go last: when it waits, so do they. Threads that wait for a lock
    /// come before those that join, which wait whatever happens.
    pub fn last_to_come(&self, circle: &[Step]) -> usize {
        let joins = |stuck: usize| matches!(self.stuck[stuck].waits, Waits::Join(_));
        let in_front = circle.iter().find(|step| step.precedence).map(|step| step.to);
        let asks = || circle.iter().map(|step| step.from).find(|stuck| !joins(*stuck));
        in_front.or_else(asks).or(circle.first().map(|step| step.from)).unwrap_or(0)
    }

    /// Whom a thread waits for, and whom these wait for, and so on.
    pub fn reached_from(&self, first: usize) -> BTreeSet<usize> {
        let mut reached = BTreeSet::from([first]);
        let mut open = vec![first];
        while let Some(at) = open.pop() {
            open.extend(self.steps[at].iter().map(|step| step.to).filter(|&to| reached.insert(to)));
        }
        reached
    }

    /// The threads that wait for nobody who waits, those that are nearest to a cause first:
    /// whoever waits for another process, for a signal, then for other things that are given, for locks, for ends.
    pub fn roots(&self) -> Vec<usize> {
        let rank = |stuck: usize| match self.stuck[stuck].waits {
            Waits::Child(..) => 0,
            Waits::Condition { .. } | Waits::Change(_) => 1,
            Waits::Semaphore(_) | Waits::Barrier(_) => 2,
            Waits::Lock { .. } => 3,
            Waits::Call(_) | Waits::Loop(_) | Waits::Other => 4,
            Waits::Join(_) => 5,
        };
        let mut roots: Vec<usize> =
            (0..self.stuck.len()).filter(|&stuck| self.steps[stuck].is_empty()).collect();
        roots.sort_by_key(|&stuck| (rank(stuck), stuck));
        roots
    }
}

/// The units that threads have when the run ends, of semaphores that serve as locks: there is a
/// unit from the start, and nobody gives one that it did not take.
fn units_held(out: &Builder) -> BTreeMap<ObjectId, Vec<Place>> {
    let mut taken: BTreeMap<ObjectId, Vec<Place>> = BTreeMap::new();
    let mut no_locks: Vec<ObjectId> = Vec::new();
    for (thread, log) in out.threads.iter().enumerate() {
        let mut own: BTreeMap<ObjectId, Vec<Place>> = BTreeMap::new();
        for event in &log.events {
            match event.kind {
                EventKind::SemaphoreWait { object } => {
                    own.entry(object).or_default().push((thread, event.index));
                }
                EventKind::SemaphorePost { object } => {
                    let unit = own.entry(object).or_default().pop();
                    no_locks.extend(unit.is_none().then_some(object));
                }
                _ => {}
            }
        }
        for (object, units) in own {
            taken.entry(object).or_default().extend(units);
        }
    }
    taken.retain(|object, units| {
        let kind = out.objects.get(object.index()).map(|object| object.kind);
        let from_start = matches!(kind, Some(ObjectKind::Semaphore { initial }) if initial > 0);
        from_start && !units.is_empty() && !no_locks.contains(object)
    });
    taken
}
