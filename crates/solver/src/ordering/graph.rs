//! The order of events as an acyclic graph that grows and shrinks with the search. A topological
//! order of it is kept up to date after Pearce and Kelly ("A dynamic topological sort algorithm for
//! directed acyclic graphs", 2006): only the part between the ends of a new edge is sorted again.

mod arrange;
mod clocks;

use super::literal::Literal;
pub(super) use arrange::Locks;
pub(super) use clocks::{Clocks, Threads};
use std::collections::VecDeque;

/// An edge, seen from one of its ends.
#[derive(Clone, Copy, Debug)]
struct Edge {
    other: u32,
    /// The literal that stands for the order; none for an order that always holds.
    literal: Option<Literal>,
}

/// How a node was reached.
#[derive(Clone, Copy, Debug)]
struct Reached {
    by: u32,
    literal: Option<Literal>,
    distance: u32,
}

/// An acyclic graph over events.
#[derive(Debug, Default)]
pub(super) struct Graph {
    /// The place of each event in a topological order.
    places: Vec<u32>,
    successors: Vec<Vec<Edge>>,
    predecessors: Vec<Vec<Edge>>,
    /// The ends of the edges that can be taken back, in the order in which they were added.
    added: Vec<(u32, u32)>,
    /// What a search has reached, by event; valid where the stamp is the current one.
    reached: Vec<Reached>,
    stamps: Vec<u32>,
    stamp: u32,
    /// How often places were changed.
    changes: u64,
}

impl Graph {
    /// The graph of orders that always hold; `None` when they close a cycle. The first topological
    /// order is as of [`arrange`](Self::arrange).
    pub(super) fn new(
        events: usize,
        edges: &[(u32, u32)],
        moments: &[u64],
        locks: &Locks,
    ) -> Option<Self> {
        let nothing = Reached { by: 0, literal: None, distance: 0 };
        let mut graph = Self {
            places: vec![0; events],
            successors: vec![Vec::new(); events],
            predecessors: vec![Vec::new(); events],
            added: Vec::new(),
            reached: vec![nothing; events],
            stamps: vec![0; events],
            stamp: 0,
            changes: 0,
        };
        for &(from, to) in edges {
            graph.successors[from as usize].push(Edge { other: to, literal: None });
            graph.predecessors[to as usize].push(Edge { other: from, literal: None });
        }
        graph.arrange(moments, locks).then_some(graph)
    }

    /// Does `a` come before `b` in the topological order?
    pub(super) fn precedes(&self, a: u32, b: u32) -> bool {
        self.places[a as usize] < self.places[b as usize]
    }

    /// The place of every event in the topological order.
    pub(super) fn places(&self) -> &[u32] {
        &self.places
    }

    /// How often places were changed.
    pub(super) fn changes(&self) -> u64 {
        self.changes
    }

    /// How many edges can be taken back.
    pub(super) fn len(&self) -> usize {
        self.added.len()
    }

    /// Adds an edge. When it closes a cycle, the graph stays as it was, and the literals of the
    /// cycle's other edges are given, as few as there can be.
    pub(super) fn add(&mut self, from: u32, to: u32, literal: Literal) -> Result<(), Vec<Literal>> {
        if from == to {
            return Err(Vec::new());
        }
        if self.places[to as usize] < self.places[from as usize] {
            let Some(after) = self.forward(to, from) else {
                return Err(self.path(to, from));
            };
            let before = self.backward(from, to);
            self.sort(before, after);
        }
        self.successors[from as usize].push(Edge { other: to, literal: Some(literal) });
        self.predecessors[to as usize].push(Edge { other: from, literal: Some(literal) });
        self.added.push((from, to));
        Ok(())
    }

    /// Takes the last edges back until so many are left.
    pub(super) fn undo(&mut self, left: usize) {
        for (from, to) in self.added.drain(left..).rev() {
            self.successors[from as usize].pop();
            self.predecessors[to as usize].pop();
        }
    }

    /// The events that `start` reaches and that stand before `target`; `None` when it reaches
    /// `target` itself. Ways with few literals are gone first.
    fn forward(&mut self, start: u32, target: u32) -> Option<Vec<u32>> {
        let last = self.places[target as usize];
        self.stamp += 1;
        let stamp = self.stamp;
        let mut found = Vec::new();
        let mut open = VecDeque::from([(start, 0)]);
        self.stamps[start as usize] = stamp;
        self.reached[start as usize] = Reached { by: start, literal: None, distance: 0 };
        while let Some((event, distance)) = open.pop_front() {
            if distance > self.reached[event as usize].distance {
                continue;
            }
            if event == target {
                return None;
            }
            found.push(event);
            for edge in &self.successors[event as usize] {
                let next = edge.other as usize;
                if self.places[next] > last {
                    continue;
                }
                let further = distance + u32::from(edge.literal.is_some());
                if self.stamps[next] == stamp && self.reached[next].distance <= further {
                    continue;
                }
                self.stamps[next] = stamp;
                self.reached[next] =
                    Reached { by: event, literal: edge.literal, distance: further };
                match edge.literal {
                    None => open.push_front((edge.other, further)),
                    Some(_) => open.push_back((edge.other, further)),
                }
            }
        }
        Some(found)
    }

    /// The literals on the way that [`forward`](Self::forward) found.
    fn path(&self, start: u32, target: u32) -> Vec<Literal> {
        let mut literals = Vec::new();
        let mut event = target;
        while event != start {
            let reached = self.reached[event as usize];
            literals.extend(reached.literal);
            event = reached.by;
        }
        literals
    }

    /// The events that reach `start` and that do not stand before `first`.
    fn backward(&mut self, start: u32, first: u32) -> Vec<u32> {
        let first = self.places[first as usize];
        self.stamp += 1;
        let stamp = self.stamp;
        self.stamps[start as usize] = stamp;
        let mut found = vec![start];
        let mut next = 0;
        while let Some(&event) = found.get(next) {
            next += 1;
            for edge in &self.predecessors[event as usize] {
                let other = edge.other as usize;
                if self.places[other] >= first && self.stamps[other] != stamp {
                    self.stamps[other] = stamp;
                    found.push(edge.other);
                }
            }
        }
        found
    }

    /// Gives the places of both groups to `before`, then `after`, each in its order.
    fn sort(&mut self, mut before: Vec<u32>, mut after: Vec<u32>) {
        self.changes += 1;
        // A way is found more than once when a shorter one comes later.
        let places = &self.places;
        after.sort_unstable_by_key(|&event| places[event as usize]);
        after.dedup();
        before.sort_unstable_by_key(|&event| places[event as usize]);
        before.append(&mut after);
        let mut free: Vec<u32> = before.iter().map(|&event| places[event as usize]).collect();
        free.sort_unstable();
        for (event, place) in before.into_iter().zip(free) {
            self.places[event as usize] = place;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::literal::{Literal, Variable};
    use super::{Graph, Locks};

    fn literal(number: u32) -> Literal {
        Variable(number).literal(true)
    }

    #[test]
    fn the_order_follows_the_edges_and_cycles_are_explained() {
        let mut graph = Graph::new(4, &[(0, 1), (2, 3)], &[], &Locks::default()).expect("no cycle");
        graph.add(3, 0, literal(7)).expect("no cycle");
        assert!(graph.precedes(2, 1) && graph.precedes(3, 0));
        assert_eq!(graph.add(1, 2, literal(8)), Err(vec![literal(7)]));
        assert_eq!(graph.add(1, 0, literal(9)), Err(vec![]));
        graph.undo(0);
        graph.add(1, 2, literal(8)).expect("no cycle any more");
        assert!(graph.precedes(0, 3));
    }

    #[test]
    fn a_cycle_of_orders_that_always_hold_leaves_no_graph() {
        assert!(Graph::new(2, &[(0, 1), (1, 0)], &[], &Locks::default()).is_none());
    }

    #[test]
    fn explanations_have_few_literals() {
        let mut graph = Graph::new(5, &[(0, 4)], &[], &Locks::default()).expect("no cycle");
        for (number, (from, to)) in [(0, 1), (1, 2), (2, 4), (4, 3)].into_iter().enumerate() {
            graph.add(from, to, literal(number as u32)).expect("no cycle");
        }
        assert_eq!(graph.add(3, 0, literal(9)), Err(vec![literal(3)]));
    }
}
