//! The cause in one sentence, where threads meet at what stands in a file.

use crate::support::causes::{cause_of, events, trace};
use explain::Pattern;
use model::Site;

fn site(line: u32) -> Site {
    Site { file: "log.c".to_owned(), line, column: 1, function: "note".to_owned() }
}

/// One thread writes a line of a log by two calls, and another one comes between.
const LINES: &str = "
    cell log 32 = 0
    main: [head] W log 1
    main: fork b
    main: [tail] W log 2
    b: [other] W log 3
    main: join b
    main: [look] R log -> found
    main: fail found == 2
";

fn named(name: &str) -> explain::Cause {
    let mut parsed = trace(LINES);
    for (label, line) in [("head", 10), ("tail", 11), ("other", 10)] {
        let id = parsed.event(label);
        let event = &mut parsed.trace.events[id.index()];
        event.stack = vec![site(line)].into();
        event.name = Some(name.into());
    }
    let cause = cause_of(&parsed);
    if cause.case == Some("write-write-write") {
        assert_eq!(cause.events, events(&parsed, &["other", "head", "tail"]));
    }
    cause
}

#[test]
fn what_two_calls_write_to_a_file_belongs_together() {
    let cause = named("contents of work.log");
    assert_eq!((cause.pattern, cause.case), (Pattern::Atomicity, Some("write-write-write")));
    let sentence = &cause.sentence;
    assert!(sentence.contains("the contents of `work.log`"), "{sentence}");
    assert!(sentence.contains("two writes of it (log.c:10 and log.c:11)"), "{sentence}");
}

/// Of any other variable only what was written last is left.
#[test]
fn what_is_overwritten_in_memory_does_not() {
    assert_ne!(named("log").case, Some("write-write-write"));
}
