//! No pattern: the orders as they are.

use super::order::followed;
use super::story::{Pair, Story};
use super::words::told;
use super::{CauseEvent, Found, Pattern};
use crate::root_cause::CauseKind;
use model::EventId;
use solver::Order;

/// No more orders than this are told.
const TOLD: usize = 3;

pub(super) fn find(story: &Story<'_>) -> Option<Found> {
    let mut orders: Vec<Order> = story
        .root_cause
        .iter()
        .flat_map(|cause| cause.orders.iter().map(|conflict| conflict.order))
        .collect();
    if orders.is_empty() {
        let first = story.pairs().into_iter().find_map(|pair| match pair {
            Pair::Reversed(order) => Some(order),
            Pair::Late { .. } => None,
        });
        orders.extend(first);
    }
    if orders.is_empty() {
        let always = story.root_cause.is_some_and(|cause| cause.kind == CauseKind::FailsAlways);
        return always.then(|| every_schedule(story));
    }
    let more = orders.len().saturating_sub(TOLD);
    let clauses: Vec<String> = orders
        .iter()
        .take(TOLD)
        .map(|order| {
            let [before, after] = [order.before, order.after].map(CauseEvent::Failing);
            format!("{} before {}", told(story, before), followed(story, after, before))
        })
        .collect();
    let mut sentence = clauses.join(", and ");
    if more > 0 {
        sentence.push_str(&format!(", and {more} more orderings"));
    }
    let mut events: Vec<EventId> = Vec::new();
    for id in orders.iter().take(TOLD).flat_map(|order| [order.before, order.after]) {
        if !events.contains(&id) {
            events.push(id);
        }
    }
    let events: Vec<CauseEvent> = events.into_iter().map(CauseEvent::Failing).collect();
    Some(Found::of_both(Pattern::Orders, sentence, &events))
}

fn every_schedule(story: &Story<'_>) -> Found {
    let (case, sentence) = match story.trace().has_one_thread() {
        true => (
            Some("one-thread"),
            "there was only one thread when the run failed: no order of threads led to that",
        ),
        false => (
            None,
            "every schedule along the recorded paths fails, and no run along others is known that passes",
        ),
    };
    Found { case, ..Found::new(Pattern::EverySchedule, sentence.to_owned(), &[]) }
}
