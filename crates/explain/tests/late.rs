//! What a run that passes has in time, and the failing one, which ended before, has not.

use crate::support::runs::{Run, cause_across, compared};
use explain::{Flipped, across};
use model::{PathConditionKind, Site};
use solver::Order;

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

/// Two threads number what they need. One finds the first number, and makes the second one itself, before the thread that made
/// the first, which then finds it.
const NUMBERED_BY_BOTH: &str = "
    cell file 16 = 0
    cell worker 16 = 0
    cell poll 8 = 0
    t0: fork a
    t0: fork b
    a: [file-a] W file 59
    a: [poll-a] W poll 1
    a: [look-a] R worker -> wa
    a: assume wa != 0

    b: [file-b] R file -> f
    b: assume f == 59
    b: [poll-b] W poll 1
    b: [look-b] R worker -> wb
    b: assume wb == 0
    b: [number-b] W worker 59
    b: [again] R worker -> w
    b: fail w == f
";

/// Here the one thread makes both.
const NUMBERED_BY_ONE: &str = "
    cell file 16 = 0
    cell worker 16 = 0
    cell poll 8 = 0
    t0: fork a
    t0: fork b
    a: [file-a] W file 59
    a: [poll-a] W poll 1
    a: [look-a] R worker -> wa
    a: assume wa == 0
    a: [number-a] W worker 60
    b: [file-b] R file -> f
    b: assume f == 59
    b: [poll-b] W poll 1
    b: [look-b] R worker -> wb
    b: assume wb != 0

    b: [again] R worker -> w
    b: assume w != f
    t0: join a
    t0: join b
";

#[test]
fn what_was_found_done_by_the_other_thread_came_too_late() {
    let failing = Run::failing(NUMBERED_BY_BOTH);
    let passing = Run::passing(NUMBERED_BY_ONE, [1, 2]);
    let late = Flipped::Late {
        before: failing.event("look-b"),
        after: passing.event("number-a"),
        needs: passing.event("look-b"),
    };
    // The order that the passing run was made to have, of two writes of one value, is none that could matter.
    let forced = Order { before: failing.event("poll-b"), after: failing.event("poll-a") };
    let found = across(failing.side(), passing.side(), Some(forced)).expect("a difference");
    assert_eq!(found.flipped, late);
    let cause = cause_across(&failing, &passing);
    assert_eq!(
        cause.sentence,
        "t0.1 wrote `file` (trace:7) before it wrote `worker` (trace:11), and t0.2, which saw the one (trace:12), read the \
         other (trace:15) in between"
    );
}
