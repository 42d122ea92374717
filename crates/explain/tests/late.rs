//! What a run that passes has in time, and the failing one, which ended before, has not.

use crate::support::runs::{Run, compared};
use explain::Flipped;
use model::{PathConditionKind, Site};

/// A worker takes one from a count that nobody else has touched yet.
const UNCOUNTED: &str = "
    cell pending 32 = 0
    t0: fork a
    t0: fork b
    a: W started 1

    a: [failure] fail
    b: W announced 1
";

/// Here two are counted before, and another worker takes one of them, in the same place.
const COUNTED: &str = "
    cell pending 32 = 0
    t0: fork a
    t0: fork b
    a: W started 1
    a: [take] RMW pending -> p = p - 1
    a: assume p > 0
    b: W announced 1
    b: [count] RMW pending -> n = n + 2
    b: [rival] RMW pending -> q = q - 1
    t0: join a
    t0: join b
";

#[test]
fn who_takes_from_a_count_as_well_is_not_what_was_missing() {
    let failing = Run::cut(UNCOUNTED);
    let mut passing = Run::passing(COUNTED, [2, 1]);
    let late = |passing: &Run, after: &str| Flipped::Late {
        before: failing.event("failure"),
        after: passing.event(after),
        needs: passing.event("take"),
    };
    // In a place of its own it may be anything.
    assert_eq!(compared(&failing, &passing).flipped, late(&passing, "rival"));
    let [take, rival] = ["take", "rival"].map(|label| passing.event(label).index());
    let events = &mut passing.parsed.trace.events;
    events[rival].stack = events[take].stack.clone();
    let found = compared(&failing, &passing);
    assert_eq!(found.flipped, late(&passing, "count"));
    // What was taken in between is shown, too: it lies between the two.
    assert_eq!(found.passing_only, [passing.flow("rival", "take")]);
}

/// A thread calls a handler out of a table that is not there yet.
const NO_TABLE: &str = "
    cell table 64 = 0
    cell handler 64 = 0
    t0: fork a
    t0: fork b
    a: W started 1
    a: [failure] fail



    b: W loading 1
";

/// Here it is, with what lies behind the pointer.
const TABLE: &str = "
    cell table 64 = 0
    cell handler 64 = 0
    t0: fork a
    t0: fork b
    a: W started 1
    a: [pointer] R table -> t
    a: assume t == 1
    a: [use] R handler -> h
    a: assume h != 0
    b: W loading 1
    b: [fill] W handler 5
    b: [publish] W table 1
    t0: join a
    t0: join b
";

#[test]
fn what_lies_behind_a_pointer_that_came_too_late_is_not_what_was_missing() {
    let mut failing = Run::cut(NO_TABLE);
    let mut passing = Run::passing(TABLE, [2, 1]);
    let at = |run: &mut Run, label: &str, line: u32| {
        let site = Site { line, file: "h.c".into(), function: "call".into(), column: 1 };
        let id = run.event(label);
        run.parsed.trace.events[id.index()].stack = vec![site].into();
    };
    // The handler is read in the line that fails.
    at(&mut failing, "failure", 8);
    at(&mut passing, "pointer", 7);
    at(&mut passing, "use", 8);
    let late = |passing: &Run, after: &str, needs: &str| Flipped::Late {
        before: failing.event("failure"),
        after: passing.event(after),
        needs: passing.event(needs),
    };
    assert_eq!(compared(&failing, &passing).flipped, late(&passing, "fill", "use"));
    passing.parsed.trace.conditions[0].kind = PathConditionKind::Address;
    assert_eq!(compared(&failing, &passing).flipped, late(&passing, "publish", "pointer"));
}
