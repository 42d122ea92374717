//! Compare-exchanges that took a value which had come back for one that had stayed (ABA).

use crate::support::runs::{Run, cause_across};
use encoders::dsl::{Parsed, parse};
use explain::{CauseEvent, Pattern, came_back};

/// A list of free places: its head is the first, behind which the second comes. One thread takes the first away, the second
/// too, and puts the first back, behind which the third comes then. The other has read all that before.
const LIST: &str = "
    cell head 32 = 1
    cell next 32 = 2
    t0: fork a
    t0: fork b
    a: [seen] R head -> h
    a: [look] R next -> n
    b: [away] RMW head -> p = 9 + (p - p)
    b: [changed] W next 3
    b: [back] RMW head -> q = 1 + (q - q)
    a: [exchange] RMW head -> x = n + (x - h)
    t0: join a
    t0: join b
    t0: [rest] R head -> e
    t0: fail e == 2
";
/// Which thread goes on by an event, so that the value comes back.
const CROSSED: [usize; 15] = [0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 1, 1, 0, 2, 0];

fn list(change: &str) -> Parsed {
    parse(&LIST.replace("W next 3", change)).expect("the text is a trace")
}

/// The run in which the value comes back, to its failure.
fn crossed(parsed: Parsed) -> Run {
    let mut order = CROSSED.to_vec();
    order.extend([0, 0]);
    Run::in_order(parsed, &order)
}

/// The run in which the one thread comes behind the other.
fn apart(parsed: Parsed) -> Run {
    Run::in_order(parsed, &[0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 0, 0, 0, 0])
}

#[test]
fn a_value_that_came_back_is_found_with_what_is_out_of_date() {
    let run = crossed(list("W next 3"));
    let found = came_back(&run.parsed.trace, &run.schedule, &run.evaluation);
    let [found] = &found[..] else { panic!("one value came back: {found:?}") };
    let events = [found.seen, found.look, found.away, found.changed, found.back, found.exchange];
    let labels = ["seen", "look", "away", "changed", "back", "exchange"];
    assert_eq!(events, labels.map(|label| run.event(label)));
    let run = apart(list("W next 3"));
    assert_eq!(came_back(&run.parsed.trace, &run.schedule, &run.evaluation), []);
}

/// What was read for the old value holds for the new one as well.
#[test]
fn a_value_that_came_back_with_all_that_was_there_does_no_harm() {
    let run = crossed(list("W next 2"));
    assert_eq!(came_back(&run.parsed.trace, &run.schedule, &run.evaluation), []);
}

#[test]
fn that_a_value_came_back_is_the_cause() {
    let (failing, passing) = (crossed(list("W next 3")), apart(list("W next 3")));
    let cause = cause_across(&failing, &passing);
    assert_eq!((cause.pattern, cause.case), (Pattern::Atomicity, Some("came-back")));
    let events =
        ["back", "seen", "exchange"].map(|label| CauseEvent::Failing(failing.event(label)));
    assert_eq!(cause.events, events);
    assert!(cause.sentence.contains("`head`") && cause.sentence.contains("`next`"));
}
