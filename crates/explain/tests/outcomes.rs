//! Runs whose end only tells what a check has found before.

use crate::support::runs::Run;
use explain::{across_check, outcomes};
use model::verify::verify;
use model::{ConditionId, EventKind, EventTrace, FailureKind, Schedule};

/// A monitor looks at two variables that belong together, and notes what it finds where nobody else looks.
const COUNTED: &str = "
    t0: fork a
    t0: fork b
    a: lock m
    a: [up] W level 1
    a: unlock m
    a: lock m
    a: [turn] W trend 2
    a: unlock m
    b: lock m
    b: [level] R level -> l
    b: [trend] R trend -> t
    b: unlock m
    b: assume t != l + l
    b: lock m
    b: [end] R closed -> c
    b: unlock m
    b: assume c == 0
    t0: join a
    t0: [close] W closed 1
    t0: join b
    t0: fail
";

fn failing(text: &str, kind: FailureKind) -> Run {
    let mut parsed = encoders::dsl::parse(text).expect("the text is a trace");
    parsed.trace.failure.as_mut().expect("a failure").kind = kind;
    Run::explained(parsed)
}

/// The monitor finds them equal, and in its first round that it is closed.
fn passing(text: &str) -> Run {
    let text = text.replace("t != l + l", "t == l + l").replace("t0: fail", "");
    Run::passing(&text, [1, 2])
}

fn check_of(run: &Run) -> ConditionId {
    run.parsed.trace.conditions[0].id
}

fn checks(run: &Run, passing: &[&EventTrace]) -> Vec<ConditionId> {
    outcomes(&run.parsed.trace, (&run.schedule, &run.evaluation), passing)
}

#[test]
fn a_check_that_goes_its_way_in_no_run_that_passes_may_be_what_the_end_tells_of() {
    let run = failing(COUNTED, FailureKind::Exit);
    let passes = passing(COUNTED).parsed.trace;
    assert_eq!(checks(&run, &[&passes]), [check_of(&run)]);
    assert_eq!(checks(&run, &[]), []);
    // It went that way, too, and the run passed.
    let mut harmless = run.parsed.trace.clone();
    harmless.failure = None;
    assert_eq!(checks(&run, &[&passes, &harmless]), []);
    // A thread that does what nobody may do fails there and then.
    let crash = failing(COUNTED, FailureKind::Segfault);
    assert_eq!(checks(&crash, &[&passes]), []);
}

/// What was counted in an atomic variable comes from the thread that checks, behind its check.
#[test]
fn what_the_failure_reads_has_to_come_from_behind_the_check() {
    let counted = COUNTED.replace("t0: fail", "t0: R wrong -> w\n t0: fail w != 0");
    let [here, elsewhere] = ["b: assume c == 0", "a: lock m\n    a: [up]"].map(|place| {
        let text = match place.starts_with('b') {
            true => counted.replace(place, &format!("{place}\n b: RMW wrong -> v = v + 1")),
            false => counted.replace(place, &format!("a: W wrong 1\n {place}")),
        };
        let run = failing(&text, FailureKind::Assertion);
        let passes = text.replace("t0: fail w != 0", "t0: assume w != 0");
        (run, passing(&passes).parsed.trace)
    });
    assert_eq!(checks(&here.0, &[&here.1]), [check_of(&here.0)]);
    // The lines of the two texts differ from here on, so that it is looked for in its own passing run.
    assert_eq!(checks(&elsewhere.0, &[&elsewhere.1]), []);
}

#[test]
fn the_part_up_to_a_check_fails_where_that_goes_as_it_did() {
    for inside in [false, true] {
        let text = match inside {
            true => COUNTED.replace(
                "b: unlock m\n    b: assume t != l + l",
                "b: assume t != l + l\n    b: unlock m",
            ),
            false => COUNTED.to_owned(),
        };
        // `a` makes its first step, `b` does all that it does, and then `a` makes its second one.
        let turns = [0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0];
        let run = Run::in_order(failing(&text, FailureKind::Exit).parsed, &turns);
        let (part, known) = encoders::up_to_check(
            &run.parsed.trace,
            &run.schedule,
            &run.evaluation,
            check_of(&run),
            600,
        )
        .expect("there is something before the check");
        assert_eq!(verify(&part.trace), Ok(()));
        let evaluation = model::evaluate::evaluate(&part.trace, &known, &|_| None);
        assert!(evaluation.expect("it can happen").fails);
        // What comes behind it is not there, but for what another thread does without that.
        assert!(part.find(run.event("turn")).is_some());
        assert_eq!(part.find(run.event("end")), None);
        assert_eq!(part.find(run.event("close")), None);
        let explanation = crate::support::explained(&part.trace, 4);
        let alternates = explanation.alternates.found;
        assert!(!alternates.is_empty(), "inside: {inside}");
        // The thread that makes the check can have made it first, since it gives back its lock.
        let first = |schedule: &Schedule| {
            let of = |label| part.find(run.event(label));
            let place = |id| schedule.order.iter().position(|other| Some(*other) == id);
            place(of("trend")) < place(of("up"))
        };
        assert!(alternates.iter().any(|found| first(&found.schedule)), "inside: {inside}");
        let gives_back =
            |kind: &EventKind| matches!(kind, EventKind::Unlock { synthetic: true, .. });
        let synthetic = part.trace.events.iter().filter(|event| gives_back(&event.kind)).count();
        assert_eq!(synthetic, usize::from(inside));
    }
}

/// In the passing run the monitor is told to end in its first round: that is another difference, which comes later.
#[test]
fn what_a_check_has_read_is_followed_and_no_other_difference() {
    let run = failing(COUNTED, FailureKind::Exit);
    let text = COUNTED.replace("c == 0", "c == 1").replace("t != l + l", "t == l + l");
    let text = text.replace("t0: fail", "").replace("t0: join a", "").replace("t0: join b", "");
    let text =
        text.replace("t0: [close] W closed 1", "t0: [close] W closed 1\n t0: join a\n t0: join b");
    let passes = Run::passing(&text, [1, 2]);
    let found = across_check(run.side(), passes.side(), None, check_of(&run)).expect("it differs");
    assert_eq!(found.branches[0].condition, check_of(&run));
    let read = [run.event("level"), run.event("trend")];
    assert!(found.failing.iter().any(|id| read.contains(id)), "{found:?}");
    assert!(!found.failing.contains(&run.event("end")), "{found:?}");
    // A run in which it has read the same says nothing of it.
    assert_eq!(across_check(run.side(), run.side(), None, check_of(&run)), None);
}
