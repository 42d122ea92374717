//! Variants of a schedule in which the thread that failed meets the others less.
//!
//! The recorded run stops other threads wherever they are when one fails. In an alternate, what such a thread had just
//! begun may fall into the failing thread's step, and fail behind the schedule's end, where nothing of it was recorded.

use model::{EventId, EventTrace};
use solver::Order;

/// Orders of all events that have `flipped` as the alternate `order` has it: from the pair's first event on, the thread that
/// failed goes on at once, before any other, or comes behind all others. Whether they pass along the recorded paths is not
/// known. Empty where the pair is none of the failing thread's, or nothing changes.
#[must_use]
pub fn apart(trace: &EventTrace, order: &[EventId], flipped: Order) -> Vec<Vec<EventId>> {
    let thread = |id: EventId| trace.event(id).thread;
    let Some(failing) = trace.failure.as_ref().map(|failure| thread(failure.event)) else {
        return Vec::new();
    };
    if ![flipped.after, flipped.before].iter().any(|id| thread(*id) == failing) {
        return Vec::new();
    }
    let Some(at) = order.iter().position(|id| *id == flipped.before) else { return Vec::new() };
    let (before, behind) = order.split_at(at + usize::from(thread(flipped.before) != failing));
    let (own, others): (Vec<EventId>, Vec<EventId>) =
        behind.iter().partition(|id| thread(**id) == failing);
    let mut found: Vec<Vec<EventId>> = [[&own, &others], [&others, &own]]
        .map(|parts| [before, parts[0], parts[1]].concat())
        .into();
    let place = |order: &[EventId], event| order.iter().position(|id| *id == event);
    found.retain(|variant| {
        variant != order && place(variant, flipped.before) < place(variant, flipped.after)
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use encoders::dsl::parse;

    /// One thread has the token that it is about to write back, another one has just begun to do the same.
    const TEXT: &str = "
        a: [read] R token -> x
        a: [write] W token 1
        a: [fail] fail x == 0
        b: [look] R token -> y
        b: [renew] W token 2
        b: [again] R token -> z
    ";

    #[test]
    fn the_failing_thread_goes_on_at_once_or_behind_all_others() {
        let parsed = parse(TEXT).expect("the text is a trace");
        let order = |labels: &str| -> Vec<EventId> {
            labels.split(' ').map(|label| parsed.event(label)).collect()
        };
        let flipped = Order { before: parsed.event("renew"), after: parsed.event("read") };
        let alternate = order("look renew read again write fail");
        let variants = apart(&parsed.trace, &alternate, flipped);
        let expected =
            [order("look renew read write fail again"), order("look renew again read write fail")];
        assert_eq!(variants, expected);
        assert_eq!(apart(&parsed.trace, &expected[1], flipped), [expected[0].clone()]);
    }

    #[test]
    fn a_pair_of_others_changes_nothing() {
        let parsed = parse("a: [one] W x 1\nb: [two] W x 2\nc: fail 1 == 1\n").expect("a trace");
        let [one, two] = ["one", "two"].map(|label| parsed.event(label));
        let order: Vec<EventId> = parsed.trace.events.iter().map(|event| event.id).collect();
        assert!(apart(&parsed.trace, &order, Order { before: two, after: one }).is_empty());
    }
}
