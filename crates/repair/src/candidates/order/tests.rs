//! What is offered where two steps came in the wrong order.

use super::*;
use encoders::dsl::parse;

#[test]
fn what_is_written_under_several_locks_at_one_place_is_not_moved_into_one_of_them() {
    let text = "t0: fork a\nt0: fork b\na: [one] lock m\na: unlock m\na: [log1] W x 1\n\
                b: [two] lock n\nb: unlock n\nb: [log2] W x 2\n";
    let mut parsed = parse(text).expect("the text is a trace");
    for (label, line) in [("one", 64), ("two", 64), ("log1", 69), ("log2", 69)] {
        let (file, function) = ("wal.c".to_owned(), "session".to_owned());
        let site = Site { file, line, column: 1, function };
        parsed.trace.events[parsed.labels[label].index()].stack = [site].into();
    }
    let [one, log, two] = ["one", "log1", "two"].map(|label| parsed.event(label));
    assert!(has_several_locks(&parsed.trace, one, log));
    let same = parsed.trace.event(one).kind.clone();
    parsed.trace.events[two.index()].kind = same;
    assert!(!has_several_locks(&parsed.trace, one, log));
}

#[test]
fn what_goes_through_one_pipe_stays_in_its_order() {
    let text = "sem s 0\na: [head] post s\na: [body] post s\nb: sem-wait s\n";
    let mut parsed = parse(text).expect("the text is a trace");
    let ids = ["head", "body"].map(|label| parsed.event(label));
    let [head, body] =
        ids.map(|id| Statement { line: id.index() as u32, events: vec![id], activation: 1 });
    assert!(!is_same_channel(&parsed.trace, &head, &body), "units of a semaphore are alike");
    for id in ids {
        parsed.trace.events[id.index()].name = Some("pipe of server.c:4".into());
    }
    assert!(is_same_channel(&parsed.trace, &head, &body));
    assert_eq!(
        act(&parsed.trace, ids[0], &Site::default(), true),
        "writing to the pipe of server.c:4"
    );
}

/// The kinds of the candidates for a thread that looks at what its creator wrote, and is joined behind that.
fn kinds_for(rest: &str) -> Vec<Kind> {
    let text = format!(
        "t0: fork a\nt0: [halt] W stop 1\nt0: join a\nt0: fail\na: [look] R stop -> s\n{rest}"
    );
    let parsed = parse(&text).expect("the text is a trace");
    let [halt, look] = ["halt", "look"].map(|label| parsed.event(label));
    let bug = Bug {
        trace: &parsed.trace,
        pattern: Pattern::Order,
        events: &[look, halt],
        schedule: &[halt, look],
        handlers: &[],
        uses: crate::Uses::NONE,
    };
    candidates(&bug).into_iter().map(|found| found.repair.kind).collect()
}

#[test]
fn a_thread_that_is_told_to_end_is_not_joined_before_it_is_told() {
    assert!(kinds_for("a: W seen s\n").contains(&Kind::JoinFirst));
    assert!(kinds_for("a: assume s == 1\na: W seen 1\n").contains(&Kind::JoinFirst));
    assert!(!kinds_for("a: assume s == 1\n").contains(&Kind::JoinFirst));
}

#[test]
fn who_was_interrupted_is_not_made_to_wait() {
    let text = "a: [list] R all -> x\nb: [less] W all 1\nb: [shut] W open 1\na: [use] R open -> y\n\
                a: fail x == 0 && y == 1\n";
    let parsed = parse(text).expect("the text is a trace");
    let waits_for = |events: [&str; 4], schedule: [&str; 4]| {
        let [events, schedule] =
            [events, schedule].map(|labels| labels.map(|label| parsed.event(label)));
        let bug = Bug {
            trace: &parsed.trace,
            pattern: Pattern::SeveralVariables,
            events: &events,
            schedule: &schedule,
            handlers: &[],
            uses: crate::Uses::NONE,
        };
        waits(&bug).iter().any(|found| found.repair.kind == Kind::WaitFor)
    };
    let named = ["less", "shut", "list", "use"];
    assert!(!waits_for(named, ["list", "less", "shut", "use"]));
    assert!(waits_for(named, ["less", "list", "use", "shut"]), "it came too early");
}

/// A service says that it is ready before it is in the directory. Who looks there is held back before it takes the
/// directory's lock, which the service needs to get into it.
#[test]
fn who_must_not_come_between_is_held_back_without_the_lock() {
    let text = "a: [say] W ready 1\na: [take] lock m\na: [put] W table 1\na: [give] unlock m\n\
                b: [see] R ready -> r\nb: assume r == 1\nb: [hold] lock m\nb: [look] R table -> t\n\
                b: [let] unlock m\nb: fail t == 0\n";
    let mut parsed = parse(text).expect("the text is a trace");
    let site = |function: &str, line| {
        let (file, function) = ("host.cc".to_owned(), function.to_owned());
        Site { file, line, column: 1, function }
    };
    for (label, line) in [("take", 21), ("put", 22), ("give", 23)] {
        let id = parsed.event(label);
        let stack = [site("announce", line), site("start", 60)];
        parsed.trace.events[id.index()].stack = stack.into();
    }
    let own =
        [("say", "start", 59), ("see", "wait", 86), ("hold", "size", 38), ("look", "size", 39)];
    for (label, function, line) in own.into_iter().chain([("let", "size", 40)]) {
        let id = parsed.event(label);
        parsed.trace.events[id.index()].stack = [site(function, line)].into();
    }
    let ids = |labels: &[&str]| -> Vec<EventId> {
        labels.iter().map(|label| parsed.event(label)).collect()
    };
    let (events, schedule) =
        (ids(&["look", "put"]), ids(&["say", "see", "hold", "look", "let", "take", "put", "give"]));
    let bug = Bug {
        trace: &parsed.trace,
        pattern: Pattern::Order,
        events: &events,
        schedule: &schedule,
        handlers: &[],
        uses: crate::Uses::NONE,
    };
    let found = candidates(&bug);
    let [first, last] = ["hold", "look"].map(|label| parsed.event(label));
    let held_back = found.iter().any(|found| {
        found.repair.kind == Kind::Move
            && matches!(&found.repair.rule, Rule::Alone(all) if all.contains(&Stretch { first, last }))
    });
    assert!(held_back, "{:?}", found.iter().map(|found| &found.repair).collect::<Vec<_>>());
}

/// Who gives a block back clears its owner behind that, when another thread may have it and have written its own there.
#[test]
fn what_was_handed_over_is_written_before() {
    let text = "cell free 32 = 0\ncell owner 32 = 1\n\
                a: [take] lock m\na: [put] W free 1\na: [give] unlock m\na: [clear] W owner 0\n\
                b: [hold] lock m\nb: [get] R free -> f\nb: assume f == 1\nb: [let] unlock m\n\
                b: [own] W owner 2\nb: [check] R owner -> o\nb: fail o != 2\n";
    let mut parsed = parse(text).expect("the text is a trace");
    let places =
        [("take", 60), ("put", 62), ("give", 63), ("clear", 69), ("hold", 41), ("get", 42)];
    for (label, line) in places.into_iter().chain([("let", 45), ("own", 49), ("check", 50)]) {
        let function = if line < 60 { "message" } else { "block_put" };
        let (file, function) = ("pool.c".to_owned(), function.to_owned());
        let id = parsed.event(label);
        parsed.trace.events[id.index()].stack = [Site { file, line, column: 1, function }].into();
    }
    let ids = |labels: &[&str]| -> Vec<EventId> {
        labels.iter().map(|label| parsed.event(label)).collect()
    };
    let events = ids(&["own", "clear", "check"]);
    let steps = |schedule: &[&str]| -> Vec<String> {
        let schedule = ids(schedule);
        let bug = Bug {
            trace: &parsed.trace,
            pattern: Pattern::Atomicity,
            events: &events,
            schedule: &schedule,
            handlers: &[],
            uses: crate::Uses::NONE,
        };
        handed_over(&bug).into_iter().map(|found| found.repair.steps[0].clone()).collect()
    };
    let seen = ["take", "put", "give", "hold", "get", "let", "own", "clear", "check"];
    let told = "in block_put, write `owner` (pool.c:69) before writing `free` (pool.c:62)";
    assert_eq!(steps(&seen), [told]);
    let unseen = ["hold", "get", "let", "own", "take", "put", "give", "clear", "check"];
    assert_eq!(steps(&unseen), [] as [&str; 0], "nothing was handed to it");
}

/// A thread counts itself out, signals when it is the last, and does something more. What is done before the signal would be
/// done by the last one alone.
#[test]
fn a_line_that_is_reached_sometimes_is_no_place_to_move_to() {
    let text = "cell active 32 = 1\ncell served 32 = 0\n\
                a: [take] lock m\na: [less] RMW active -> n = 0\na: [tell] signal c\na: [give] unlock m\n\
                a: [count] W served 1\nb: [look] R active -> l\nb: assume l == 0\n\
                b: [end] R served -> s\nb: fail s == 0\n";
    let mut parsed = parse(text).expect("the text is a trace");
    let places = [("take", 57), ("less", 58), ("tell", 59), ("give", 60), ("count", 64)];
    for (label, line) in places.into_iter().chain([("look", 92), ("end", 96)]) {
        let function = if line < 70 { "connection" } else { "serve" };
        let (file, function) = ("server.c".to_owned(), function.to_owned());
        let id = parsed.event(label);
        parsed.trace.events[id.index()].stack = [Site { file, line, column: 1, function }].into();
    }
    let events = ["end", "count"].map(|label| parsed.event(label));
    let schedule = ["less", "tell", "look", "end", "count"].map(|label| parsed.event(label));
    let decided = |_: &str, _: u32, _: u32| {
        vec![crate::LineUse { from: 58, to: 59, how: crate::How::Decided }]
    };
    let lines = |uses: crate::Uses<'_>| -> Vec<u32> {
        let bug = Bug {
            trace: &parsed.trace,
            pattern: Pattern::Order,
            events: &events,
            schedule: &schedule,
            handlers: &[],
            uses,
        };
        let wanted = Wanted { first: events[1], then: events[0] };
        let found = moves(&bug, wanted, Direction::Earlier);
        found.iter().map(|found| found.repair.places[1].first).collect()
    };
    assert_eq!(lines(crate::Uses::NONE)[..2], [59, 58], "the nearest first");
    let known = lines(crate::Uses(&decided));
    assert_eq!(known[0], 58);
    assert!(!known.contains(&59), "it would only happen where the branch goes there: {known:?}");
}

/// A place in a channel of Rust's library that a line of the program called.
fn in_channel(called: &str, line: u32) -> Vec<Site> {
    let site = |file: &str, function: &str, line| Site {
        file: file.to_owned(),
        line,
        column: 1,
        function: function.to_owned(),
    };
    let library = site("/rustc/1/library/std/src/sync/mpsc.rs", called, 9);
    vec![library, site("relay.rs", "work", line)]
}

#[test]
fn who_sends_does_not_wait_for_who_receives() {
    let text = "a: [send] R head -> h\na: fail\nb: [receive] W head 4\n";
    let mut parsed = parse(text).expect("the text is a trace");
    let [send, receive] = ["send", "receive"].map(|label| parsed.event(label));
    let mut waits_for = |called: [&str; 2]| {
        for ((id, called), line) in [send, receive].into_iter().zip(called).zip([62, 24]) {
            parsed.trace.events[id.index()].stack = in_channel(called, line).into();
        }
        let bug = Bug {
            trace: &parsed.trace,
            pattern: Pattern::Order,
            events: &[send, receive],
            schedule: &[send, receive],
            handlers: &[],
            uses: crate::Uses::NONE,
        };
        waits(&bug).iter().any(|found| found.repair.kind == Kind::WaitFor)
    };
    assert!(!waits_for(["send", "recv"]));
    assert!(waits_for(["recv", "send"]));
    assert!(waits_for(["len", "recv"]));
}

/// Two threads look whether something is there and put it there otherwise: who waited at that look for the other one would wait
/// for itself.
#[test]
fn nobody_waits_where_the_giver_has_been_before() {
    let waits_for = |own_look: &str| {
        let text =
            format!("b: {own_look}b: [put] W slot 4\na: [look] R slot -> s\na: fail s == 0\n");
        let mut parsed = parse(&text).expect("the text is a trace");
        let site =
            |line| Site { file: "once.cc".to_owned(), line, column: 1, function: "get".to_owned() };
        for event in &mut parsed.trace.events {
            let line = match event.kind {
                EventKind::Read { .. } => 5,
                EventKind::Write { .. } => 8,
                _ => 20,
            };
            event.stack = [site(line)].into();
        }
        let [look, put] = ["look", "put"].map(|label| parsed.event(label));
        let bug = Bug {
            trace: &parsed.trace,
            pattern: Pattern::Order,
            events: &[look, put],
            schedule: &[look, put],
            handlers: &[],
            uses: crate::Uses::NONE,
        };
        waits(&bug).iter().any(|found| found.repair.kind == Kind::WaitFor)
    };
    assert!(waits_for("fence\n"), "only the other one looks");
    assert!(!waits_for("R slot -> o\n"));
}

#[test]
fn nothing_comes_behind_the_end_of_its_block() {
    let mut parsed = parse("a: [last] W open 0\n").expect("the text is a trace");
    let id = parsed.event("last");
    let site = |function: &str, line| {
        let (file, function) = ("pool.cc".to_owned(), function.to_owned());
        Site { file, line, column: 1, function }
    };
    let [inner, outer] = [site("Pool::~Pool", 12), site("main", 35)];
    parsed.trace.events[id.index()].stack = vec![inner.clone(), outer.clone()].into();
    let statement = Statement { line: 35, events: vec![id], activation: 1 };
    assert!(ends_block(&parsed.trace, &outer, &statement));
    assert!(
        !ends_block(&parsed.trace, &inner, &statement),
        "a destructor has statements of its own"
    );
    let between = site("std::atomic<int>::wait", 305);
    parsed.trace.events[id.index()].stack = vec![inner, between, outer.clone()].into();
    assert!(!ends_block(&parsed.trace, &outer, &statement), "it is in what is called");
}

/// A copy of the whole comes between the two writes in whichever order they are. Who reads one part after the other may go by their order.
#[test]
fn parts_that_one_statement_reads_change_no_places() {
    let text = "b: [bid] W bid 1\nb: [ask] W ask 1\na: [one] R bid -> x\na: [two] R ask -> y\n\
                a: fail x != y\n";
    let mut parsed = parse(text).expect("the text is a trace");
    let site = |function: &str, line| {
        let (file, function) = ("quotes.rs".to_owned(), function.to_owned());
        Site { file, line, column: 1, function }
    };
    let mut moved = |lines: [u32; 2]| {
        let at = [("bid", 24), ("ask", 25), ("one", lines[0]), ("two", lines[1])];
        for (label, line) in at {
            let id = parsed.event(label);
            let function = if line < 30 { "publish" } else { "read" };
            parsed.trace.events[id.index()].stack = [site(function, line)].into();
        }
        let events = ["bid", "one", "two", "ask"].map(|label| parsed.event(label));
        let bug = Bug {
            schedule: &events,
            ..Bug::by_hand(&parsed.trace, Pattern::SeveralVariables, &events)
        };
        candidates(&bug).iter().filter(|found| found.repair.kind == Kind::Move).count()
    };
    assert!(moved([33, 34]) > 0);
    assert_eq!(moved([33, 33]), 0);
}
