//! The happens-before closure: which events are ordered whatever the schedule.

use model::{EventId, EventTrace};

/// A transitively closed partial order over a trace's events, kept as one vector clock per
/// event. Program order is always part of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Closure {
    threads: usize,
    /// `clocks[event * threads + thread]`: how many events of `thread` come before the event, the
    /// event itself included in its own thread's count.
    clocks: Vec<u32>,
    /// For every event its thread and its index in it.
    places: Vec<(usize, u32)>,
    /// The edges besides program order, in the order they were added.
    edges: Vec<(EventId, EventId)>,
}

impl Closure {
    /// The closure of program order alone.
    pub(crate) fn of_program_order(trace: &EventTrace) -> Self {
        let places: Vec<_> =
            trace.events.iter().map(|event| (event.thread.index(), event.index)).collect();
        let mut closure =
            Self { threads: trace.threads.len(), clocks: Vec::new(), places, edges: Vec::new() };
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
        self.clocks[event.index() * self.threads + thread]
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
        self.edges.iter().for_each(|&(a, b)| link(a, b));

        let mut clocks = vec![0u32; count * self.threads];
        let mut ready: Vec<usize> = (0..count).filter(|&event| missing[event] == 0).collect();
        let mut done = 0;
        while let Some(event) = ready.pop() {
            done += 1;
            let (thread, index) = self.places[event];
            clocks[event * self.threads + thread] = index + 1;
            for &next in &successors[event] {
                for other in 0..self.threads {
                    let clock = clocks[event * self.threads + other];
                    let slot = &mut clocks[next * self.threads + other];
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
