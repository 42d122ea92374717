//! The happens-before closure: which events are ordered whatever the schedule.

use crate::lifetimes::Lifetimes;
use model::{EventId, EventTrace};

/// A transitively closed partial order over a trace's events, kept as one vector clock per
/// event. Program order is always part of it, and that a thread comes before another one that is created behind its end.
///
/// Threads that run one after the other share an entry of the clocks, since they are one sequence of events.
#[derive(Clone, Debug, Default)]
pub(crate) struct Closure {
    /// How many entries a clock has.
    rows: usize,
    /// By thread, its entry.
    entries: Vec<Entry>,
    /// Pairs of threads of which the first one ends before the second one begins, next to each other in their row.
    successions: Vec<(EventId, EventId)>,
    /// `clocks[event * rows + row]`: how many events of the row's threads come before the event, the
    /// event itself included in its own row's count.
    clocks: Vec<u32>,
    /// For every event its thread and its index in it.
    places: Vec<(usize, u32)>,
    /// The edges besides program order, in the order they were added.
    edges: Vec<(EventId, EventId)>,
}

/// What a thread has of its row's entry.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    row: usize,
    /// How many events the row's threads before it have.
    before: u32,
    /// How many events it has.
    own: u32,
}

impl Closure {
    /// The closure of program order alone, within threads and rows of them.
    pub(crate) fn of_program_order(trace: &EventTrace) -> Self {
        let places: Vec<_> =
            trace.events.iter().map(|event| (event.thread.index(), event.index)).collect();
        let mut closure = Self { places, ..Self::default() };
        closure.entries.resize(trace.threads.len(), Entry::default());
        let rows = Lifetimes::of(trace).rows();
        closure.rows = rows.len();
        for (row, threads) in rows.iter().enumerate() {
            let (mut before, mut last) = (0, None);
            for &thread in threads {
                let events = &trace.threads[thread].events;
                closure.entries[thread] = Entry { row, before, own: events.len() as u32 };
                before += events.len() as u32;
                closure.successions.extend(last.zip(events.first().copied()));
                last = events.last().copied().or(last);
            }
        }
        closure.recompute(trace);
        closure
    }

    /// A closure that knows no order at all, not even program order.
    pub(crate) fn nothing(trace: &EventTrace) -> Self {
        let mut closure = Self::of_program_order(trace);
        closure.clocks.fill(0);
        closure
    }

    /// Does `a` come before `b` in every schedule?
    pub(crate) fn before(&self, a: EventId, b: EventId) -> bool {
        let (thread, index) = self.places[a.index()];
        a != b && self.clock(b, thread) > index
    }

    /// How many events of `thread` come before `event` in every schedule, `event` included when
    /// it is of that thread.
    pub(crate) fn clock(&self, event: EventId, thread: usize) -> u32 {
        let Entry { row, before, own } = self.entries[thread];
        self.clocks[event.index() * self.rows + row].saturating_sub(before).min(own)
    }

    /// Adds edges. Returns false, and leaves the closure as it was, when they close a cycle: no
    /// schedule exists then.
    pub(crate) fn add(&mut self, trace: &EventTrace, edges: &[(EventId, EventId)]) -> bool {
        let kept = self.edges.len();
        self.edges.extend_from_slice(edges);
        if self.recompute(trace) {
            return true;
        }
        self.edges.truncate(kept);
        false
    }

    fn recompute(&mut self, trace: &EventTrace) -> bool {
        let count = self.places.len();
        let mut successors: Vec<Vec<usize>> = vec![Vec::new(); count];
        let mut missing = vec![0u32; count];
        let mut link = |a: EventId, b: EventId| {
            successors[a.index()].push(b.index());
            missing[b.index()] += 1;
        };
        for thread in &trace.threads {
            thread.events.windows(2).for_each(|pair| link(pair[0], pair[1]));
        }
        self.successions.iter().chain(&self.edges).for_each(|&(a, b)| link(a, b));

        let rows = self.rows;
        let mut clocks = vec![0u32; count * rows];
        let mut ready: Vec<usize> = (0..count).filter(|&event| missing[event] == 0).collect();
        let mut done = 0;
        while let Some(event) = ready.pop() {
            done += 1;
            let (thread, index) = self.places[event];
            let Entry { row, before, .. } = self.entries[thread];
            clocks[event * rows + row] = before + index + 1;
            for &next in &successors[event] {
                for other in 0..rows {
                    let clock = clocks[event * rows + other];
                    let slot = &mut clocks[next * rows + other];
                    *slot = (*slot).max(clock);
                }
                missing[next] -= 1;
                if missing[next] == 0 {
                    ready.push(next);
                }
            }
        }
        if done == count {
            self.clocks = clocks;
        }
        done == count
    }
}
