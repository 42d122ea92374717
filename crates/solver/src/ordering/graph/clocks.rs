//! Which events the graph's orders have before which, all at once.

use super::super::literal::Literal;
use super::Graph;
use model::EventTrace;

/// Where each event stands in its thread.
#[derive(Debug)]
pub(in super::super) struct Threads {
    events: Vec<Vec<u32>>,
    /// By event: its thread and its index there.
    places: Vec<(u32, u32)>,
}

impl Threads {
    pub(in super::super) fn of(trace: &EventTrace) -> Self {
        let mut places = vec![(0, 0); trace.events.len()];
        let mut events = Vec::with_capacity(trace.threads.len());
        for (number, thread) in (0..).zip(&trace.threads) {
            for (index, event) in (0..).zip(&thread.events) {
                places[event.index()] = (number, index);
            }
            events.push(thread.events.iter().map(|event| event.0).collect());
        }
        Self { events, places }
    }

    /// How much it takes to compare all events.
    pub(in super::super) fn effort(&self) -> usize {
        self.places.len().saturating_mul(self.events.len()).saturating_mul(self.events.len())
    }

    /// The thread of an event, and its index there.
    pub(in super::super) fn place(&self, event: u32) -> (u32, u32) {
        self.places[event as usize]
    }
}

/// An edge that can be taken back, by where it ends.
#[derive(Clone, Copy, Debug)]
struct Entry {
    index: u32,
    from: u32,
    literal: Literal,
}

/// The orders that follow from a graph's edges.
#[derive(Debug)]
pub(in super::super) struct Clocks<'g> {
    threads: &'g Threads,
    /// `[event * threads + thread]`: how many events of the thread come before the event, which counts in its
    /// own. By the edges that always hold, and by all.
    certain: Vec<u32>,
    all: Vec<u32>,
    /// By thread the edges that can be taken back, in the order of their ends.
    entries: Vec<Vec<Entry>>,
}

impl<'g> Clocks<'g> {
    /// Of the graph as it is now. Takes time by events and threads, and by threads again.
    pub(in super::super) fn of(graph: &Graph, threads: &'g Threads) -> Self {
        let (width, events) = (threads.events.len(), threads.places.len());
        let mut in_order: Vec<u32> = (0..events as u32).collect();
        in_order.sort_unstable_by_key(|&event| graph.places[event as usize]);
        let mut this = Self {
            threads,
            certain: vec![0; events * width],
            all: vec![0; events * width],
            entries: vec![Vec::new(); width],
        };
        for event in in_order {
            let (thread, index) = threads.place(event);
            let at = event as usize * width;
            for edge in &graph.predecessors[event as usize] {
                let from = edge.other as usize * width;
                for other in 0..width {
                    this.all[at + other] = this.all[at + other].max(this.all[from + other]);
                }
                match edge.literal {
                    None => {
                        for other in 0..width {
                            let known = this.certain[from + other];
                            this.certain[at + other] = this.certain[at + other].max(known);
                        }
                    }
                    Some(literal) => {
                        this.entries[thread as usize].push(Entry {
                            index,
                            from: edge.other,
                            literal,
                        });
                    }
                }
            }
            this.certain[at + thread as usize] = index + 1;
            this.all[at + thread as usize] = index + 1;
        }
        // The order of the graph is one of each thread, too.
        debug_assert!(
            this.entries.iter().all(|entries| entries.is_sorted_by_key(|entry| entry.index))
        );
        this
    }

    /// Does `a` come before `b`?
    pub(in super::super) fn before(&self, a: u32, b: u32) -> bool {
        a != b && self.reaches(b, self.threads.place(a))
    }

    fn reaches(&self, event: u32, (thread, index): (u32, u32)) -> bool {
        self.all[self.slot(event, thread)] > index
    }

    fn slot(&self, event: u32, thread: u32) -> usize {
        event as usize * self.threads.events.len() + thread as usize
    }

    /// Of some events of one thread in their order, the last one that comes before an event.
    pub(in super::super) fn last_before(&self, events: &[u32], event: u32) -> Option<u32> {
        let behind = events.partition_point(|&other| self.before(other, event));
        events[..behind].last().copied()
    }

    /// Adds literals from which it follows that `a`, which comes before `b`, does.
    pub(in super::super) fn explain(&self, a: u32, b: u32, literals: &mut Vec<Literal>) {
        let first = self.threads.place(a);
        let mut event = b;
        while self.certain[self.slot(event, first.0)] <= first.1 {
            // Of each thread the last event that is always before; what comes before an event by way of
            // others that always are does so by way of one of these.
            let sure = self.threads.events.iter().zip(0..).filter_map(|(events, thread)| {
                let count = self.certain[self.slot(event, thread)] as usize;
                events[..count].last().copied().filter(|&last| last != event)
            });
            let mut sure = sure;
            if let Some(earlier) = sure.find(|&earlier| self.reaches(earlier, first)) {
                event = earlier;
                continue;
            }
            let (thread, index) = self.threads.place(event);
            let entries = &self.entries[thread as usize];
            let behind = entries.partition_point(|entry| entry.index <= index);
            let way = entries[..behind].iter().rev().find(|entry| self.reaches(entry.from, first));
            let Some(entry) = way else {
                debug_assert!(false, "every order has a reason");
                return;
            };
            literals.push(entry.literal);
            event = entry.from;
        }
    }
}
