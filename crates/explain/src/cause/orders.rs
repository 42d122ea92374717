//! No pattern: the orders as they are.

use super::order::followed;
use super::story::{Pair, Story};
use super::words::{at, told};
use super::{CauseEvent, Found, Pattern};
use crate::root_cause::CauseKind;
use model::{Awaited, ChannelStep, EventId, EventKind};
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

/// Where nothing but the paths is to blame.
const EVERY: &str =
    "every schedule along the recorded paths fails, and no run along others is known that passes";

/// The thread waits for the other end of a channel: nothing comes by it, and that end was not dropped, with which the wait
/// would be over.
fn open_channel(story: &Story<'_>) -> Option<(String, EventId)> {
    let failure = story.event(story.trace().failure.as_ref()?.event);
    let own = story.trace().threads[failure.thread.index()].events.iter().rev();
    let block = own
        .map(|id| story.event(*id))
        .find(|event| matches!(event.kind, EventKind::Block { on: Awaited::Other }))?;
    let (nothing, end) = match block.channel_step()? {
        ChannelStep::Receive => ("no message comes", "sender"),
        ChannelStep::Send => ("nobody receives", "receiver"),
        ChannelStep::Drop => return None,
    };
    let called = block.called_of_channel().map_or("recv", |called| match called {
        "next" => "recv",
        called => called,
    });
    let sentence = format!(
        "{} waits in `{called}` ({}), where {nothing} and a {end} of the channel is never dropped: {EVERY}",
        story.thread(block.id),
        at(story, block.id)
    );
    Some((sentence, block.id))
}

fn every_schedule(story: &Story<'_>) -> Found {
    let (case, sentence) = match story.trace().has_one_thread() {
        true => (
            Some("one-thread"),
            "there was only one thread when the run failed: no order of threads led to that",
        ),
        false => match open_channel(story) {
            Some((sentence, block)) => {
                let case = Some("channel-stays-open");
                return Found { case, ..Found::new(Pattern::EverySchedule, sentence, &[block]) };
            }
            None => (None, EVERY),
        },
    };
    Found { case, ..Found::new(Pattern::EverySchedule, sentence.to_owned(), &[]) }
}
