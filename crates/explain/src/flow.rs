//! Maximum flow, and the two extreme minimum cuts, by Dinic's method.
//!
//! The same network is asked for many pairs of ends, most of which turn out too dear, so that it is
//! laid out once, and a flow is given up as soon as it is above a bound.

/// No level: not reached.
const NONE: u32 = u32::MAX;

/// A flow is given up after so many visits of edges, or so many per edge, whichever is more. What
/// takes longer in a large network is nearly always too dear.
const VISITS: usize = 2_000_000;
const VISITS_PER_EDGE: usize = 6;

/// A network. Nodes are numbered from 0; every edge has a reverse with a capacity of its own,
/// which is 0 unless something flows.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    /// By node, its first edge; one more entry at the end.
    first: Vec<u32>,
    /// By edge, grouped by tail.
    heads: Vec<u32>,
    /// By edge, the edge back.
    reverse: Vec<u32>,
    capacities: Vec<u32>,
    /// What is left of the capacities.
    left: Vec<u32>,
    levels: Vec<u32>,
    /// By node, the edge to try next.
    next: Vec<u32>,
    queue: Vec<u32>,
    /// Visits of edges that are left.
    visits: usize,
    /// Edges looked at since that was asked last.
    work: usize,
}

impl Flow {
    /// A network of edges, each given as tail, head and capacity.
    pub(crate) fn new(nodes: usize, edges: &[(u32, u32, u32)]) -> Self {
        let mut first = vec![0u32; nodes + 1];
        for &(tail, head, _) in edges {
            first[tail as usize + 1] += 1;
            first[head as usize + 1] += 1;
        }
        for node in 0..nodes {
            first[node + 1] += first[node];
        }
        let mut free = first.clone();
        let mut place = |node: u32| {
            let at = free[node as usize];
            free[node as usize] += 1;
            at
        };
        let size = 2 * edges.len();
        let (mut heads, mut reverse) = (vec![0; size], vec![0; size]);
        let mut capacities = vec![0; size];
        for &(tail, head, capacity) in edges {
            let (there, back) = (place(tail), place(head));
            heads[there as usize] = head;
            heads[back as usize] = tail;
            reverse[there as usize] = back;
            reverse[back as usize] = there;
            capacities[there as usize] = capacity;
        }
        Self {
            left: capacities.clone(),
            levels: vec![NONE; nodes],
            next: first.clone(),
            queue: Vec::new(),
            visits: 0,
            work: 0,
            first,
            heads,
            reverse,
            capacities,
        }
    }

    fn edges_of(&self, node: u32) -> std::ops::Range<usize> {
        self.first[node as usize] as usize..self.first[node as usize + 1] as usize
    }

    /// Lets as much flow from `sources` to `sinks` as can. False when that is more than `most`, when
    /// it takes too long to say, and when a node is both.
    pub(crate) fn saturate(&mut self, sources: &[u32], sinks: &[u32], most: u32) -> bool {
        if sources.iter().any(|source| sinks.contains(source)) {
            return false;
        }
        self.left.clone_from(&self.capacities);
        self.visits = VISITS.max(VISITS_PER_EDGE * self.heads.len());
        let mut total = 0u32;
        while self.level(sources, sinks) {
            if self.visits == 0 {
                return false;
            }
            self.next.copy_from_slice(&self.first);
            for &source in sources {
                while let Some(found) = self.augment(source, sinks) {
                    total = total.saturating_add(found);
                    if total > most {
                        return false;
                    }
                }
            }
        }
        true
    }

    /// How many edges were looked at since this was asked last.
    pub(crate) fn take_work(&mut self) -> usize {
        std::mem::take(&mut self.work)
    }

    /// Numbers nodes by their distance from the sources, as far as the nearest sink; false when
    /// none is reached.
    fn level(&mut self, sources: &[u32], sinks: &[u32]) -> bool {
        self.levels.fill(NONE);
        self.queue.clear();
        self.queue.extend_from_slice(sources);
        sources.iter().for_each(|source| self.levels[*source as usize] = 0);
        let mut last = NONE;
        let mut at = 0;
        while let Some(&node) = self.queue.get(at) {
            at += 1;
            let level = self.levels[node as usize];
            if level >= last {
                break;
            }
            let edges = self.edges_of(node);
            self.visits = self.visits.saturating_sub(edges.len());
            self.work += edges.len();
            for edge in edges {
                let head = self.heads[edge] as usize;
                if self.left[edge] > 0 && self.levels[head] == NONE {
                    self.levels[head] = level + 1;
                    self.queue.push(self.heads[edge]);
                    if sinks.contains(&self.heads[edge]) {
                        last = level + 1;
                    }
                }
            }
        }
        last != NONE
    }

    /// Lets something flow along a shortest path; how much, or `None` when there is no path.
    fn augment(&mut self, source: u32, sinks: &[u32]) -> Option<u32> {
        let mut path: Vec<usize> = Vec::new();
        let mut node = source;
        while !sinks.contains(&node) {
            let end = self.first[node as usize + 1];
            let level = self.levels[node as usize];
            let mut edge = self.next[node as usize];
            while edge < end {
                let head = self.heads[edge as usize] as usize;
                if self.left[edge as usize] > 0 && self.levels[head] == level + 1 {
                    break;
                }
                edge += 1;
            }
            self.work += 1 + (edge - self.next[node as usize]) as usize;
            self.next[node as usize] = edge;
            if edge < end {
                path.push(edge as usize);
                node = self.heads[edge as usize];
            } else {
                // A dead end: the edge that led here is not tried again.
                let edge = path.pop()?;
                node = self.heads[self.reverse[edge] as usize];
                self.next[node as usize] += 1;
            }
        }
        let least = path.iter().map(|edge| self.left[*edge]).min()?;
        for edge in path {
            self.left[edge] -= least;
            self.left[self.reverse[edge] as usize] += least;
        }
        Some(least)
    }

    /// After [`saturate`](Self::saturate): the nodes on the sources' side of the cut with the
    /// fewest of them.
    pub(crate) fn reached_from(&mut self, sources: &[u32]) -> Vec<bool> {
        self.reached(sources, |flow, edge| flow.left[edge] > 0)
    }

    /// After [`saturate`](Self::saturate): the nodes on the sources' side of the cut with the most
    /// of them.
    pub(crate) fn not_reaching(&mut self, sinks: &[u32]) -> Vec<bool> {
        let mut reaching =
            self.reached(sinks, |flow, edge| flow.left[flow.reverse[edge] as usize] > 0);
        reaching.iter_mut().for_each(|reaches| *reaches = !*reaches);
        reaching
    }

    fn reached(&mut self, from: &[u32], passable: impl Fn(&Self, usize) -> bool) -> Vec<bool> {
        let mut seen = vec![false; self.levels.len()];
        let mut stack = std::mem::take(&mut self.queue);
        stack.clear();
        stack.extend_from_slice(from);
        from.iter().for_each(|node| seen[*node as usize] = true);
        while let Some(node) = stack.pop() {
            for edge in self.edges_of(node) {
                let head = self.heads[edge];
                if !seen[head as usize] && passable(self, edge) {
                    seen[head as usize] = true;
                    stack.push(head);
                }
            }
        }
        self.queue = stack;
        seen
    }
}

#[cfg(test)]
mod tests {
    use super::Flow;
    use proptest::prelude::*;

    /// The least that separates 0 from the last node, by trying all ways to part the others.
    fn cheapest(nodes: usize, edges: &[(u32, u32, u32)]) -> (u32, Vec<u32>) {
        let mut least = (u32::MAX, Vec::new());
        for inner in 0..1u32 << (nodes - 2) {
            let side = inner << 1 | 1;
            let late = |node: u32| side >> node & 1 == 1;
            let paid = edges.iter().filter(|(tail, head, _)| late(*tail) && !late(*head));
            let paid: u32 = paid.map(|(.., capacity)| capacity).sum();
            match paid.cmp(&least.0) {
                std::cmp::Ordering::Less => least = (paid, vec![side]),
                std::cmp::Ordering::Equal => least.1.push(side),
                std::cmp::Ordering::Greater => {}
            }
        }
        least
    }

    fn mask(side: &[bool]) -> u32 {
        side.iter().enumerate().map(|(node, late)| u32::from(*late) << node).sum()
    }

    const NODES: u32 = 7;

    proptest! {
        #[test]
        fn the_extreme_minimum_cuts_are_found(
            edges in prop::collection::vec((0..NODES, 0..NODES, 1..9u32), 0..20),
        ) {
            let nodes = NODES as usize;
            let (price, sides) = cheapest(nodes, &edges);
            let mut flow = Flow::new(nodes, &edges);
            let (source, sink) = ([0], [NODES - 1]);
            // The second time around nothing is left of the first.
            for _ in 0..2 {
                prop_assert!(flow.saturate(&source, &sink, price));
                let all = sides.iter().fold(u32::MAX, |all, side| all & side);
                let any = sides.iter().fold(0, |any, side| any | side);
                prop_assert_eq!(mask(&flow.reached_from(&source)), all);
                prop_assert_eq!(mask(&flow.not_reaching(&sink)), any);
                if let Some(less) = price.checked_sub(1) {
                    prop_assert!(!flow.saturate(&source, &sink, less));
                }
            }
        }
    }

    #[test]
    fn a_node_on_both_sides_cannot_be_had() {
        let mut flow = Flow::new(2, &[(0, 1, 1)]);
        assert!(!flow.saturate(&[0, 1], &[1], 100));
    }
}
