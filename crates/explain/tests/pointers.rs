//! The cause in one sentence, where a thread follows a pointer that is replaced.

use crate::support::runs::{Run, cause_across};
use encoders::dsl::{Parsed, parse};
use explain::{CauseEvent, Pattern};
use model::trace::ValueDisplay;
use model::{PathConditionKind, Site};

/// What stands in the objects never changes: only the addresses hang on what was read.
fn run_with(height: u32, fails: &str) -> String {
    format!(
        "
        cell current 64 = 1
        t0: fork a
        t0: fork b
        a: [replace] W current 2
        b: [width] R current -> w
        b: assume w == 1
        b: [height] R current -> h
        b: assume h == {height}
        t0: join a
        t0: join b
        t0: fail {fails}
        "
    )
}

fn cause() -> (explain::Cause, [CauseEvent; 3]) {
    let run = |text: &str, make: &dyn Fn(Parsed) -> Run| {
        let mut parsed = parse(text).expect("the text is a trace");
        for (label, line) in [("width", 15), ("height", 16)] {
            let file = "area.c".to_owned();
            let site = Site { file, line, column: 1, function: "area".to_owned() };
            let id = parsed.event(label);
            parsed.trace.events[id.index()].stack = vec![site].into();
        }
        for condition in &mut parsed.trace.conditions {
            condition.kind = PathConditionKind::Address;
        }
        parsed.trace.cells[0].display = ValueDisplay::Pointer;
        make(parsed)
    };
    let failing = run(&run_with(2, "1 == 1"), &Run::explained);
    let passing = run(&run_with(1, "1 == 2"), &|parsed| {
        let order = [0, 0, 0, 2, 2, 2, 2, 1, 1, 1, 0, 0, 0];
        Run::in_order(parsed, &order)
    });
    let events = ["replace", "width", "height"].map(|label| failing.event(label));
    (cause_across(&failing, &passing), events.map(CauseEvent::Failing))
}

#[test]
fn two_uses_of_a_pointer_that_lead_to_two_objects_belong_together() {
    let (cause, events) = cause();
    assert_eq!((cause.pattern, cause.case), (Pattern::Atomicity, Some("read-write-read")));
    assert_eq!(cause.events, events);
}
