//! Of a failing schedule that loses several updates, the one that is enough is left.

mod support;

use explain::{context_switches, with_fewer_switches};
use model::{EventId, Schedule};
use support::causes::trace;

/// Two threads add to `n` in each of two phases. What a thread does before its update in a phase has to come before
/// all of the other one's, and what it does behind it after: no context switch can be spared.
const PHASES: &str = "
    cell n 32 = 0
    t0: [fa] fork a
    t0: [fb] fork b
    a: [p] W p 1
    a: [r1] R n -> x
    a: [w1] W n x + 1
    a: [q] R q -> v
    a: assume v == 1
    a: [s] W s 1
    a: [r2] R n -> y
    a: [w2] W n y + 1
    a: [u] R u -> w
    a: assume w == 1
    b: [lp] R p -> c
    b: assume c == 1
    b: [o1] R n -> g
    b: [k1] W n g + 1
    b: [lq] W q 1
    b: [ls] R s -> d
    b: assume d == 1
    b: [o2] R n -> h
    b: [k2] W n h + 1
    b: [lu] W u 1
    t0: [ja] join a
    t0: [jb] join b
    t0: [sum] R n -> z
    t0: fail z != 4
";

#[test]
fn one_lost_update_is_left() {
    let parsed = trace(PHASES);
    let labels = [
        "fa", "fb", "p", "r1", "lp", "o1", "k1", "lq", "w1", "q", "s", "r2", "ls", "o2", "k2",
        "lu", "w2", "u", "ja", "jb", "sum",
    ];
    let named: Vec<EventId> = labels.iter().map(|label| parsed.event(label)).collect();
    // A thread's start and exit come as early and as late as they can.
    let at = |id: EventId| named.iter().position(|other| *other == id);
    let mut order: Vec<EventId> = parsed.trace.events.iter().map(|event| event.id).collect();
    let own = |id: EventId| &parsed.trace.thread_of(id).events;
    let key = |id: EventId| {
        let events = own(id);
        let index = parsed.trace.event(id).index as usize;
        let earlier = events[..=index].iter().rev().find_map(|id| at(*id));
        let later = events[index..].iter().find_map(|id| at(*id));
        at(id).or(earlier).map(|place| 2 * place + 1).or(later.map(|place| 2 * place))
    };
    order.sort_by_key(|id| (key(*id), parsed.trace.event(*id).index));
    let schedule = Schedule { order };
    let better = with_fewer_switches(&parsed.trace, &schedule, 1_000_000, &|| true);
    let better = better.expect("the schedule fails");
    let place = |label: &str| better.order.iter().position(|id| *id == parsed.event(label));
    let lost =
        |[read, other, write]: [&str; 3]| place(read) < place(other) && place(other) < place(write);
    let phases = [["r1", "k1", "w1"], ["o1", "w1", "k1"], ["r2", "k2", "w2"], ["o2", "w2", "k2"]];
    let lost: Vec<[&str; 3]> = phases.into_iter().filter(|phase| lost(*phase)).collect();
    assert_eq!(lost.len(), 1, "{lost:?}");
    assert!(context_switches(&parsed.trace, &better) <= 6);
}
