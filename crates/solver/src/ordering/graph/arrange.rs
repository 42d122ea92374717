//! Topological orders in which critical sections come one after the other.
//!
//! Mutual exclusion is no matter of edges: which of two sections comes first is open. An order that
//! lets them overlap has to be mended by the search, one pair after the other, so that it pays to
//! begin with one that does not.

use super::Graph;
use model::{EventKind, EventTrace, LockMode};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What an event does with a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Acquire { object: u32, shared: bool },
    Release { object: u32, shared: bool },
}

/// Which events acquire and release locks.
#[derive(Debug, Default)]
pub(in super::super) struct Locks {
    /// By event; shorter than the events where none of the rest does.
    actions: Vec<Option<Action>>,
    objects: usize,
}

impl Locks {
    pub(in super::super) fn of(trace: &EventTrace) -> Self {
        let actions = trace.events.iter().map(|event| match event.kind {
            EventKind::Lock { object, mode } => {
                Some(Action::Acquire { object: object.0, shared: mode == LockMode::Shared })
            }
            EventKind::Unlock { object, mode, .. } => {
                Some(Action::Release { object: object.0, shared: mode == LockMode::Shared })
            }
            _ => None,
        });
        Self { actions: actions.collect(), objects: trace.objects.len() }
    }

    fn action(&self, event: u32) -> Option<Action> {
        self.actions.get(event as usize).copied().flatten()
    }
}

/// An event that may come next, the one with the earliest moment first.
type Ready = Reverse<(u64, u32, u32)>;

/// A lock while the order is made.
#[derive(Clone, Debug, Default)]
struct Held {
    exclusive: u32,
    shared: u32,
    /// Acquisitions that wait for it.
    waiting: Vec<Ready>,
}

impl Held {
    fn is_free(&self, shared: bool) -> bool {
        self.exclusive == 0 && (shared || self.shared == 0)
    }

    fn count(&mut self, shared: bool) -> &mut u32 {
        if shared { &mut self.shared } else { &mut self.exclusive }
    }
}

impl Graph {
    /// Sorts all events anew. The topological order follows the moments as far as it can, or is the
    /// order in which events become free where there are none, and keeps critical sections apart
    /// unless that leads to a deadlock. False, and nothing is changed, when there is no topological
    /// order.
    pub(in super::super) fn arrange(&mut self, moments: &[u64], locks: &Locks) -> bool {
        let events = self.places.len();
        let mut missing: Vec<u32> = self.predecessors.iter().map(|all| all.len() as u32).collect();
        let mut held = vec![Held::default(); locks.objects];
        // Without moments, first come, first served.
        let mut arrived = 0;
        let mut arrives = |event: u32| {
            arrived += 1;
            Reverse((moments.get(event as usize).copied().unwrap_or(0), arrived, event))
        };
        let first = (0..events as u32).filter(|&event| missing[event as usize] == 0);
        let mut ready: BinaryHeap<Ready> = first.map(&mut arrives).collect();
        let mut places = vec![0; events];
        let mut place = 0;
        loop {
            let (next, is_forced) = match ready.pop() {
                Some(next) => (next, false),
                // Nobody can go on: the earliest acquisition does so in spite of the lock.
                None => match earliest(&mut held) {
                    Some(next) => (next, true),
                    None => break,
                },
            };
            let Reverse((_, _, event)) = next;
            match locks.action(event) {
                Some(Action::Acquire { object, shared }) => {
                    let Some(held) = held.get_mut(object as usize) else { return false };
                    if !is_forced && !held.is_free(shared) {
                        held.waiting.push(next);
                        continue;
                    }
                    *held.count(shared) += 1;
                }
                Some(Action::Release { object, shared }) => {
                    let Some(held) = held.get_mut(object as usize) else { return false };
                    let count = held.count(shared);
                    *count = count.saturating_sub(1);
                    ready.extend(held.waiting.drain(..));
                }
                None => {}
            }
            places[event as usize] = place;
            place += 1;
            for edge in &self.successors[event as usize] {
                let missing = &mut missing[edge.other as usize];
                *missing -= 1;
                if *missing == 0 {
                    ready.push(arrives(edge.other));
                }
            }
        }
        let is_order = place as usize == events;
        if is_order {
            self.places = places;
            self.changes += 1;
        }
        is_order
    }
}

/// Takes the earliest of all acquisitions that wait.
fn earliest(held: &mut [Held]) -> Option<Ready> {
    let waiting = held.iter().enumerate();
    let waiting = waiting.flat_map(|(object, held)| {
        held.waiting.iter().enumerate().map(move |w| (*w.1, object, w.0))
    });
    let (_, object, index) = waiting.max()?;
    Some(held[object].waiting.swap_remove(index))
}

#[cfg(test)]
mod tests {
    use super::{Action, Graph, Locks};

    const LOCK: Option<Action> = Some(Action::Acquire { object: 0, shared: false });
    const UNLOCK: Option<Action> = Some(Action::Release { object: 0, shared: false });

    fn order(graph: &Graph, events: u32) -> Vec<u32> {
        let mut order: Vec<u32> = (0..events).collect();
        order.sort_by_key(|&event| graph.places()[event as usize]);
        order
    }

    #[test]
    fn sections_come_one_after_the_other_where_they_can() {
        let chains = [(0, 1), (1, 2), (3, 4), (4, 5)];
        let moments = [1, 3, 6, 2, 4, 5];
        let locks = Locks { actions: vec![LOCK, None, UNLOCK, LOCK, None, UNLOCK], objects: 1 };
        let plain = Graph::new(6, &chains, &moments, &Locks::default()).expect("no cycle");
        assert_eq!(order(&plain, 6), [0, 3, 1, 4, 5, 2]);
        let mut graph = Graph::new(6, &chains, &moments, &locks).expect("no cycle");
        assert_eq!(order(&graph, 6), [0, 1, 2, 3, 4, 5]);
        // The other order is as good when an edge asks for it, and none is there when both do.
        let literal = super::super::super::literal::Variable(0).literal(true);
        graph.add(5, 0, literal).expect("no cycle");
        assert!(graph.arrange(&moments, &locks));
        assert_eq!(order(&graph, 6), [3, 4, 5, 0, 1, 2]);
        graph.undo(0);
        graph.add(3, 1, literal).expect("no cycle");
        graph.add(0, 4, literal).expect("no cycle");
        assert!(graph.arrange(&moments, &locks));
        assert_eq!(order(&graph, 6).len(), 6);
    }
}
