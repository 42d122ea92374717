//! The cause in one sentence, where a thread follows a pointer that is replaced.

use crate::support::runs::{Run, cause_across};
use encoders::dsl::{Parsed, parse};
use explain::{CauseEvent, Pattern};
use model::trace::ValueDisplay;
use model::{PathConditionKind, Site};

/// What stands in the objects never changes: only the addresses hang on what was read.
const TWO_OBJECTS: &str = "
    cell current 64 = 1
    t0: fork a
    t0: fork b
    a: [replace] W current 2
    b: [width] R current -> w
    b: assume w == 1
    b: [height] R current -> h
    b: assume h == 2
    t0: join a
    t0: join b
    t0: fail 1 == 1
";
const ONE_OBJECT: &str = "
    cell current 64 = 1
    t0: fork a
    t0: fork b
    a: [replace] W current 2
    b: [width] R current -> w
    b: assume w == 1
    b: [height] R current -> h
    b: assume h == 1
    t0: join a
    t0: join b
    t0: fail 1 == 2
";

fn cause(kind: PathConditionKind) -> (explain::Cause, [CauseEvent; 3]) {
    let run = |text: &str, make: &dyn Fn(Parsed) -> Run| {
        let mut parsed = parse(text).expect("the text is a trace");
        for (label, line) in [("width", 15), ("height", 16)] {
            let file = "area.c".to_owned();
            let site = Site { file, line, column: 1, function: "area".to_owned() };
            let id = parsed.event(label);
            parsed.trace.events[id.index()].stack = vec![site].into();
        }
        parsed.trace.conditions.iter_mut().for_each(|condition| condition.kind = kind);
        parsed.trace.cells[0].display = ValueDisplay::Pointer;
        make(parsed)
    };
    let failing = run(TWO_OBJECTS, &Run::explained);
    let passing = run(ONE_OBJECT, &|parsed| {
        let order = [0, 0, 0, 2, 2, 2, 2, 1, 1, 1, 0, 0, 0];
        Run::in_order(parsed, &order)
    });
    let events = ["replace", "width", "height"].map(|label| failing.event(label));
    (cause_across(&failing, &passing), events.map(CauseEvent::Failing))
}

#[test]
fn two_uses_of_a_pointer_that_lead_to_two_objects_belong_together() {
    let (cause, events) = cause(PathConditionKind::Address);
    assert_eq!((cause.pattern, cause.case), (Pattern::Atomicity, Some("read-write-read")));
    assert_eq!(cause.events, events);
}
