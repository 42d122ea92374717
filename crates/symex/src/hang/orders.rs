//! The condition of a hang: the orders that made threads wait.

use super::graph::{Graph, Step};
use super::{Place, Waits, polling};
use crate::builder::{Builder, Numbering};
use model::{EventKind, EventTrace, ExprPool, FailureCondition, ObjectId};

/// One way to hang.
#[derive(Clone, Debug)]
pub(super) enum Way {
    /// Every pair is in this order.
    Orders(Vec<(Place, Place)>),
    /// Of each of these, some pair is in this order.
    Overtaken(Vec<Vec<(Place, Place)>>),
    /// No signal is left for the wait that began here.
    Unwoken { condition: ObjectId, began: Place },
}

/// What makes the run hang: one of these. None when it hangs under every schedule along the
/// recorded paths.
#[derive(Clone, Debug, Default)]
pub(crate) struct HangCondition(Vec<Way>);

impl HangCondition {
    /// Every request of the circle came when the next thread had what it asks for.
    pub(super) fn of_circle(circle: &[Step]) -> Self {
        let mut orders: Vec<(Place, Place)> =
            circle.iter().flat_map(|step| step.orders.iter().copied()).collect();
        orders.sort_unstable();
        orders.dedup();
        Self::all(orders)
    }

    /// One of these waits began before its condition was initialised.
    pub(super) fn of_initialisations(graph: &Graph<'_>, waits: &[usize]) -> Self {
        let orders = |&wait: &usize| graph.initialisations(wait).collect();
        Self(waits.iter().map(|wait| Way::Overtaken(vec![orders(wait)])).collect())
    }

    fn all(orders: Vec<(Place, Place)>) -> Self {
        Self(if orders.is_empty() { Vec::new() } else { vec![Way::Orders(orders)] })
    }

    /// Does nothing that is known of orders decide it?
    pub(super) fn is_always(&self) -> bool {
        self.0.is_empty()
    }

    /// Some thread that waits for nobody who waits does not get what it waits for.
    pub(super) fn of_roots(
        graph: &Graph<'_>,
        roots: &[usize],
        out: &Builder,
        pool: &ExprPool,
    ) -> Self {
        // A process that does not end keeps its parent waiting, whatever else there is.
        if roots.iter().any(|&root| matches!(graph.stuck[root].waits, Waits::Child(..))) {
            return Self::default();
        }
        let ways = roots.iter().filter_map(|&root| {
            if let Waits::Change(polled) = &graph.stuck[root].waits {
                return polling::way(out, pool, graph.stuck[root].thread, polled);
            }
            by_signals(graph, root, out).or_else(|| {
                let block = (graph.stuck[root].thread, graph.stuck[root].block);
                let held = graph.holders(root).map(|held| ((held.thread, held.acquired), block));
                let units = graph.units(root).iter().map(|unit| (*unit, block));
                let orders: Vec<_> = held.chain(units).filter(|(a, b)| a.0 != b.0).collect();
                (!orders.is_empty()).then_some(Way::Orders(orders))
            })
        });
        Self(ways.collect())
    }

    /// Makes this the failure condition of the finished trace.
    pub fn apply(&self, trace: &mut EventTrace, numbering: &Numbering) {
        let id = |(thread, number): Place| {
            let index = numbering.index(thread, number) as usize;
            trace.threads.get(thread).and_then(|thread| thread.events.get(index)).copied()
        };
        let order = |&(before, after): &(Place, Place)| {
            id(before).zip(id(after)).map(|(a, b)| FailureCondition::Before(a, b))
        };
        let ways = self.0.iter().filter_map(|way| match way {
            Way::Orders(orders) => {
                Some(FailureCondition::All(orders.iter().filter_map(order).collect()))
            }
            Way::Overtaken(all) => {
                let any = |orders: &Vec<(Place, Place)>| {
                    let mut orders: Vec<FailureCondition> =
                        orders.iter().filter_map(order).collect();
                    match orders.len() {
                        1 => orders.swap_remove(0),
                        _ => FailureCondition::Any(orders),
                    }
                };
                Some(FailureCondition::All(all.iter().map(any).collect()))
            }
            Way::Unwoken { condition, began } => {
                id(*began).map(|began| FailureCondition::Unwoken { condition: *condition, began })
            }
        });
        let mut ways: Vec<FailureCondition> = ways.collect();
        let condition = match ways.len() {
            0 => return,
            1 => ways.swap_remove(0),
            _ => FailureCondition::Any(ways),
        };
        if let Some(failure) = trace.failure.as_mut() {
            failure.condition = condition;
        }
    }
}

/// For a wait on a condition variable: the signals came before it, or woke others. None when
/// every order along the recorded paths leaves it without one, because there are no more signals
/// than others need.
fn by_signals(graph: &Graph<'_>, root: usize, out: &Builder) -> Option<Way> {
    let stuck = &graph.stuck[root];
    let Waits::Condition { condition, began } = stuck.waits else { return None };
    let began = (stuck.thread, began.unwrap_or(stuck.block));
    let mut signals: Vec<Place> = Vec::new();
    let (mut broadcasts, mut taken) = (0usize, 0usize);
    for (thread, log) in out.threads.iter().enumerate() {
        for event in &log.events {
            match event.kind {
                EventKind::Wake { condition: c, .. } if c == condition => taken += 1,
                EventKind::Broadcast { condition: c } if c == condition => {
                    broadcasts += 1;
                    signals.push((thread, event.index));
                }
                EventKind::Signal { condition: c } if c == condition => {
                    signals.push((thread, event.index));
                }
                _ => {}
            }
        }
    }
    if taken == 0 {
        signals.retain(|signal| signal.0 != began.0);
        return (!signals.is_empty())
            .then_some(Way::Orders(signals.into_iter().map(|signal| (signal, began)).collect()));
    }
    (broadcasts > 0 || signals.len() > taken).then_some(Way::Unwoken { condition, began })
}
