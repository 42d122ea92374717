//! Causes in which a thread looks at something before it acts on it: which look, and what came in between.

use crate::support::causes::{cause_of, events, trace};
use crate::support::explained;
use crate::support::runs::{Run, compared};
use encoders::dsl::parse;
use explain::{Flipped, Passing, Pattern, cause};
use model::EventId;
use solver::Order;

/// Both did what only one should do; along the same paths both do, and which of them does it first
/// explains nothing.
#[test]
fn a_check_that_no_longer_held_is_named_and_not_what_follows_from_it() {
    let parsed = trace(
        "
        t0: fork a
        t0: fork b
        a: [look] R state -> x
        a: assume x == 0
        b: R state -> y
        b: assume y == 0
        b: [other] W state 2
        b: R calls -> d
        b: W calls d + 1
        a: [act] W state 1
        a: R calls -> c
        a: W calls c + 1
        t0: join a
        t0: join b
        t0: R calls -> n
        t0: fail n == 2
        ",
    );
    let cause = cause_of(&parsed);
    assert_eq!((cause.pattern, cause.case), (Pattern::Atomicity, Some("read-write-write")));
    assert_eq!(cause.variables, ["state"]);
}

/// What two owners of one slot do to each other follows from both having found it free.
#[test]
fn two_that_found_a_slot_free_are_told_by_that() {
    let parsed = trace(
        "
        t0: fork a
        t0: fork b
        a: [look] R slot -> x
        a: assume x == 0
        a: [mine] W slot 3
        a: R slot -> c
        b: [rival] R slot -> y
        b: assume y == 0
        b: [theirs] W slot 4
        b: R slot -> z
        b: assume z == 4
        b: W slot 0
        a: fail c != 3
        ",
    );
    let cause = cause_of(&parsed);
    assert_eq!((cause.pattern, cause.case), (Pattern::Atomicity, Some("read-write-write")));
    let either = [["theirs", "look", "mine"], ["mine", "rival", "theirs"]];
    assert!(either.iter().any(|labels| cause.events == events(&parsed, labels)), "{cause:?}");
}

/// The thread looked again, and that still held.
#[test]
fn what_was_looked_at_again_is_not_stale() {
    let parsed = trace(
        "
        cell left 32 = 2
        t0: fork a
        t0: fork b
        b: lock m
        b: R left -> v
        b: W left v - 1
        b: unlock m
        b: R calls -> d
        b: W calls d + 1
        a: R left -> x
        a: assume x > 1
        a: lock m
        a: R left -> y
        a: assume y == 1
        a: W left y - 1
        a: unlock m
        a: R calls -> c
        a: W calls c + 1
        t0: join a
        t0: join b
        t0: R calls -> n
        t0: fail n == 2
        ",
    );
    let cause = cause_of(&parsed);
    assert_ne!(cause.pattern, Pattern::Atomicity, "{}", cause.sentence);
}

/// What a thread read in its next round, at the same place, is no use of what it had read before.
#[test]
fn the_same_look_in_the_next_round_is_no_use_of_the_first() {
    let mut parsed = trace(
        "
        cell current 32 = 0
        t0: W filled 0
        t0: fork a
        t0: fork b
        a: [look] R current -> c
        a: assume c == 0
        a: W filled 1
        a: [again] R current -> d
        b: W current 1
        b: R filled -> f
        b: fail f == 0
        ",
    );
    let used = cause_of(&parsed);
    assert_eq!(used.pattern, Pattern::Atomicity, "{}", used.sentence);
    let look = parsed.event("look");
    let stack = parsed.trace.event(look).stack.clone();
    let again = parsed.event("again");
    parsed.trace.events[again.index()].stack = stack;
    let next = cause_of(&parsed);
    assert_ne!(next.pattern, Pattern::Atomicity, "{}", next.sentence);
}

/// One thread says that it is at work; whoever is to wait for it looked before it said so.
#[test]
fn a_look_that_came_before_it_was_said_that_work_goes_on() {
    let parsed = trace(
        "
        t0: fork a
        t0: lock m
        t0: [look] R working -> w
        t0: assume w == 0
        t0: unlock m
        t0: [early] R done -> d
        a: lock m
        a: [begin] W working 1
        a: unlock m
        a: [act] W done 1
        a: lock m
        a: W working 0
        a: unlock m
        t0: fail d == 0
        ",
    );
    let cause = cause_of(&parsed);
    assert_eq!((cause.pattern, cause.case), (Pattern::Order, Some("looked-too-early")));
    assert_eq!(cause.events, events(&parsed, &["look", "begin", "early", "act"]));
    let sentence = "t0 read `working` (trace:4) before t0.1 wrote it (trace:9), and so read `done` \
                    (trace:7) before t0.1 wrote it (trace:11)";
    assert_eq!(cause.sentence, sentence);
}

/// What the look was about has nothing to do with the work: it would have led nowhere else.
#[test]
fn a_look_that_would_have_led_here_all_the_same_is_no_cause() {
    let parsed = trace(
        "
        t0: fork a
        t0: [look] R working -> w
        t0: assume w < 2
        t0: [early] R done -> d
        a: W working 1
        a: [act] W done 1
        t0: fail d == 0
        ",
    );
    let cause = cause_of(&parsed);
    assert_ne!(cause.case, Some("looked-too-early"), "{}", cause.sentence);
}

/// Two threads find a breaker open and both try it; that one of them looks before the other has closed it is only
/// what follows.
#[test]
fn two_that_found_the_same_free_are_told_by_the_one_that_was_overtaken() {
    let parsed = trace(
        "
        cell state 32 = 1
        a: [look-a] R state -> x
        a: assume x == 1
        a: [claim-a] W state 2
        a: R probes -> p
        a: W probes p + 1
        a: R probes -> n
        a: fail n > 1
        b: [look-b] R state -> y
        b: assume y == 1
        b: [claim-b] W state 2
        b: R probes -> q
        b: W probes q + 1
        b: W state 0
        b: W probes 0
        ",
    );
    let cause = cause_of(&parsed);
    assert_eq!((cause.pattern, cause.case), (Pattern::Atomicity, Some("read-write-write")));
    let either = [["look-a", "claim-a"], ["look-b", "claim-b"]];
    assert!(either.iter().any(|own| cause.events[1..] == events(&parsed, own)), "{cause:?}");
}

/// Who clears up behind the end of another thread does not go by what was looked at in a call long before, whether that is
/// cleared, too, or not.
#[test]
fn what_is_cleared_behind_a_join_was_not_checked() {
    let whole = "
        cell lock 32 = 5
        cell head 32 = 0
        t0: fork c
        t0: fork w
        t0: [look] R head -> h
        t0: assume h != 1
        c: R lock -> q
        c: assume q != 0
        c: R head -> x
        c: W head x + 1
        w: W done 1
        t0: join w
        t0: [clear] W head 0
        t0: [gone] W lock 0
        c: [use] R lock -> p
        c: fail p == 0
        ";
    let site = |line: u32, function: &str| model::Site {
        file: "queue.c".to_owned(),
        line,
        column: 1,
        function: function.to_owned(),
    };
    let other = whole.replace("c: R lock -> q\n", "\n").replace("c: assume q != 0\n", "\n");
    for text in [whole.to_owned(), other.replace("[clear] W head 0", "[clear] W tail 0")] {
        let mut parsed = trace(&text);
        for (label, line) in [("clear", 41), ("gone", 42)] {
            let event = parsed.event(label).index();
            parsed.trace.events[event].stack = vec![site(line, "main")].into();
        }
        let look = parsed.event("look").index();
        parsed.trace.events[look].stack = vec![site(12, "add"), site(30, "main")].into();
        let cause = cause_of(&parsed);
        assert_eq!(cause.variables, ["lock"], "{cause:?}");
    }
}

#[test]
fn a_check_that_is_made_again_is_none_that_was_overtaken() {
    let mut parsed = trace(
        "
        cell n 32 = 0
        t0: fork a
        t0: fork b
        a: [look] R n -> p
        a: assume p == 0
        b: [room] R n -> s
        b: assume s < 4
        b: [put] W n s + 1
        b: [load] R n -> u
        a: [again] R n -> q
        a: assume q != 0
        a: [read] R n -> r
        a: [take] W n r - 1
        b: [lost] W n u + 1
        t0: join a
        t0: join b
        t0: [end] R n -> z
        t0: fail z == 2
        ",
    );
    let stack = parsed.trace.event(parsed.event("look")).stack.clone();
    let again = parsed.event("again").index();
    parsed.trace.events[again].stack = stack;
    let cause = cause_of(&parsed);
    assert_eq!(cause.case, Some("read-write-write"), "{cause:?}");
    assert!(!cause.events.contains(&events(&parsed, &["look"])[0]), "{cause:?}");
}

/// A reader says which object it uses behind the other thread's look at that; that one frees the object by its look.
#[test]
fn a_free_is_told_by_the_look_that_it_hangs_on() {
    let text = "
        cell current 32 = 1
        cell hazard 32 = 0
        t0: alloc h
        t0: fork a
        t0: fork b
        a: [get] R current -> c
        a: assume c == 1
        a: [say] W hazard 1
        a: [use] R h_field -> f
        a: fail before gone use
        b: W current 2
        b: [look] R hazard -> z
        b: assume z != 1
        b: [gone] free h
    ";
    let parsed = trace(text);
    let cause = cause_of(&parsed);
    assert_eq!((cause.pattern, cause.case), (Pattern::UseAfterFree, Some("decided-too-early")));
    assert_eq!(cause.events, events(&parsed, &["look", "say", "gone", "use"]));
    assert!(cause.sentence.contains(", and so freed `h` ("), "{}", cause.sentence);
    // A look that finds the same with what is said then decides nothing.
    let same = trace(&text.replace("z != 1", "z < 2"));
    let cause = cause_of(&same);
    assert_eq!(cause.pattern, Pattern::UseAfterFree);
    assert_eq!(cause.events, events(&same, &["gone", "use"]));
}

/// A search of a tree has a branch at each node; all are one step of the line that searches.
#[test]
fn what_was_decided_in_front_of_a_search_is_not_too_far_away() {
    let search = |nodes: u32| -> String {
        let node = |n: u32| format!("a: [n{n}] R node{n} -> s{n}\na: assume s{n} == 0\n");
        (0..nodes).map(node).collect()
    };
    let text = format!(
        "
        cell alive 32 = 1
        a: [check] R users -> left
        a: assume left == 0
        {}
        a: [clear] W alive 0
        b: [enter] W users 1
        b: [use] R alive -> still
        b: fail still == 0
        ",
        search(20)
    );
    let apart = trace(&text);
    assert_ne!(cause_of(&apart).case, Some("decided-too-early"), "twenty lines are far away");
    let mut parsed = trace(&text);
    let stack = parsed.trace.event(parsed.event("n0")).stack.clone();
    for n in 1..20 {
        let id = parsed.event(&format!("n{n}"));
        parsed.trace.events[id.index()].stack = stack.clone();
    }
    let cause = cause_of(&parsed);
    assert_eq!(cause.case, Some("decided-too-early"), "{cause:?}");
    assert_eq!(cause.events, events(&parsed, &["check", "enter", "clear", "use"]));
}

/// A slot is given back, and its generation raised, while who holds it still has looked at the generation and not taken the lock
/// yet.
const SLOT: &str = "
    cell generation 32 = 1
    cell value 32 = 20
    t0: fork a
    t0: fork b
    t0: fork c
    b: [check] R generation -> g
    b: assume g == 1
    a: lock m
    a: [drop] W value 0
    a: [raise] W generation 2
    a: unlock m
    b: lock m
    b: [use] R value -> v
    b: unlock m
    b: fail v != 20
";

/// The generation and the value are parts of one container, which is all that is known of their names.
fn of_one_variable(text: &str) -> encoders::dsl::Parsed {
    let mut parsed = trace(text);
    let is_part = |name: &str| ["generation", "value"].contains(&name);
    for cell in parsed.trace.cells.iter_mut().filter(|cell| is_part(&cell.name)) {
        cell.name = "slots".into();
    }
    for event in &mut parsed.trace.events {
        if event.name.as_deref().is_some_and(is_part) {
            event.name = Some("slots".into());
        }
    }
    parsed
}

/// The slot has another owner by now, who wrote its value again and did not touch the generation.
#[test]
fn what_overtook_a_check_counts_where_another_operation_followed_it() {
    let text = SLOT.replace(
        "    b: lock m\n",
        "    c: lock m\n    c: [make] W value 30\n    c: unlock m\n    b: lock m\n",
    );
    let parsed = of_one_variable(&text.replace("v != 20", "v == 30"));
    let cause = cause_of(&parsed);
    assert_eq!(
        (cause.pattern, cause.case),
        (Pattern::Atomicity, Some("read-write-use")),
        "{cause:?}"
    );
    assert_eq!(cause.events, events(&parsed, &["raise", "check", "use"]), "{cause:?}");
}

/// A thread reads a pointer, another one gives up the last reference and frees the object, and the first one counts
/// itself then.
#[test]
fn a_reference_that_was_taken_too_late_is_told_by_the_pointer() {
    let text = "
        cell current 32 = 4096
        cell count 32 = 1
        t0: alloc o
        t0: fork a
        t0: fork b
        a: [get] R current -> c
        a: assume c == 4096
        a: [take] RMW count -> n = n + 1
        a: [use] R field -> f
        a: fail before gone use
        b: W current 2
        b: [last] RMW count -> k = k - 1
        b: assume k == 1
        b: [gone] free o
    ";
    let cause = |text: &str| {
        let mut parsed = trace(text);
        let take = parsed.trace.event(parsed.event("take"));
        let (thread, position) = (take.thread, take.index);
        let mut conditions = parsed.trace.conditions.iter_mut();
        let led = conditions.find(|it| it.thread == thread && it.position == position);
        led.expect("a condition").kind = model::PathConditionKind::Address;
        let told = events(&parsed, &["last", "get", "take"]);
        (cause_of(&parsed), told)
    };
    let (found, told) = cause(text);
    assert_eq!((found.pattern, found.case), (Pattern::Atomicity, Some("reference-taken-too-late")));
    assert_eq!(found.events, told);
    assert_eq!(found.variables[0], "count");
    // The same by where the object lay.
    let (found, told) = cause(&text.replacen("cell", "heap o 4096 8\ncell", 1));
    assert_eq!(found.events, told);
    // Who counted too late gives that up again and frees the object, which the other one is about to take apart.
    let twice = text
        .replace("a: [use] R field -> f\n        a: fail before gone use", "a: [gone] free o")
        .replace("b: [gone] free o", "b: [use] R field -> f\n        b: fail before gone use");
    let (found, told) = cause(&twice);
    assert_eq!(found.events, told, "{found:?}");
    // An element that is found by its index, and counts something else.
    let (found, _) = cause(&text.replace("4096", "1"));
    assert_ne!(found.case, Some("reference-taken-too-late"), "{found:?}");
    // An object that is freed whatever was counted, and one of which another reference is left.
    for (part, other) in [("b: assume k == 1", ""), ("count 32 = 1", "count 32 = 2")] {
        let other = text.replace(part, other).replace("k == 1", "k > 0");
        assert_ne!(cause(&other).0.case, Some("reference-taken-too-late"), "{other}");
    }
}

/// A list counts its elements, and one of them is freed when it is taken off. Only a count that is found by the pointer
/// to what is freed counts references to it, where the failure is another thing.
#[test]
fn how_many_elements_a_list_has_are_no_references() {
    let text = "
        heap o 4096 16
        cell first 32 = 4096
        cell length 32 = 1
        t0: alloc o
        t0: fork a
        t0: fork b
        a: [get] R first -> f
        a: assume f == 4096
        a: W come 1
        a: R left -> w
        a: assume f == 4096
        a: [take] RMW length -> n = n + 1
        a: fail w == 1
        b: R come -> c
        b: assume c == 1
        b: [last] RMW length -> k = k - 1
        b: assume k == 1
        b: [gone] free o
        b: W left 1
    ";
    let case = |by_pointer: bool| {
        let mut parsed = trace(text);
        let take = parsed.trace.event(parsed.event("take"));
        let (thread, position) = (take.thread, take.index);
        let mut conditions = parsed.trace.conditions.iter_mut();
        let led = conditions.find(|it| it.thread == thread && it.position == position);
        if by_pointer {
            led.expect("a condition").kind = model::PathConditionKind::Address;
        }
        cause_of(&parsed).case
    };
    assert_eq!(case(true), Some("reference-taken-too-late"));
    assert_ne!(case(false), Some("reference-taken-too-late"));
}

/// A pointer is read, another thread puts another one there and frees what the first one led to, and that is used.
#[test]
fn a_use_of_freed_memory_is_told_by_the_pointer_that_was_another_one_by_then() {
    let text = "
        heap o 4096 16
        cell current 32 = 4096
        t0: alloc o
        t0: fork a
        t0: fork b
        a: [get] R current -> c
        a: assume c == 4096
        a: [use] R field -> f
        a: fail before gone use
        b: [put] W current 8192
        b: [gone] free o
    ";
    let parsed = trace(text);
    let cause = cause_of(&parsed);
    assert_eq!((cause.pattern, cause.case), (Pattern::UseAfterFree, Some("stale-pointer")));
    assert_eq!(cause.events, events(&parsed, &["gone", "get", "use"]));
    assert!(cause.sentence.contains("freed what `current` had pointed to ("), "{}", cause.sentence);
    // By which member the object is used then, the sentence does not say, and it may be another one next time.
    let print_of = |label: &str, name: &str| {
        let mut parsed = trace(text);
        let id = parsed.event(label);
        parsed.trace.events[id.index()].name = Some(name.into());
        cause_of(&parsed).fingerprint
    };
    assert_eq!(print_of("use", "s->used"), print_of("use", "s->size"));
    assert_ne!(print_of("get", "l->current"), print_of("get", "l->first"));
    // The pointer stays as it was, and what it lies in was changed under the lock that it was read under.
    let locked = text
        .replace(
            "a: [get] R current -> c",
            "a: lock m\n        a: R size -> s\n        a: assume s == 0\n        a: [get] R current -> c\n        a: unlock m",
        )
        .replace("b: [put] W current 8192", "b: lock m\n        b: W size 1\n        b: unlock m");
    let other_lock = locked.replace("b: lock m", "b: lock n").replace("b: unlock m", "b: unlock n");
    let locked = trace(&locked);
    assert_eq!(cause_of(&locked).events, events(&locked, &["gone", "get", "use"]));
    let other_lock = trace(&other_lock);
    assert_eq!(cause_of(&other_lock).events, events(&other_lock, &["gone", "use"]));
    // Another object's pointer, and one that stays as it was.
    for (part, other) in [("heap o 4096", "heap o 5000"), ("W current 8192", "W current 4096")] {
        let other = trace(&text.replace(part, other));
        assert_eq!(cause_of(&other).events, events(&other, &["gone", "use"]));
    }
    // What the reader said before it read the pointer is not what the other one should have waited for.
    let said = text.replace("a: [get]", "a: [say] W hazard 1\n        a: [get]");
    let said = said
        .replace("b: [put]", "b: [look] R hazard -> z\n        b: assume z != 1\n        b: [put]");
    let said = trace(&said);
    assert_eq!(cause_of(&said).events, events(&said, &["gone", "get", "use"]));
}

/// Two threads count themselves in without an atomic step, and one of the counts is lost.
#[test]
fn a_count_that_was_lost_is_why_an_object_was_freed() {
    let text = "
        heap o 4096 16
        cell refs 32 = 1
        t0: alloc o
        t0: fork a
        t0: fork b
        a: [one] R refs -> p
        a: [add] W refs p + 1
        b: [other] R refs -> q
        b: [too] W refs q + 1
        b: W ready 1
        a: R ready -> r
        a: assume r == 1
        a: R refs -> s
        a: W refs s - 1
        a: [last] R refs -> u
        a: W refs u - 1
        a: assume u - 1 == 0
        a: [gone] free o
        b: [use] R field -> f
        b: fail before gone use
    ";
    let parsed = trace(text);
    let cause = cause_of(&parsed);
    assert_eq!((cause.pattern, cause.case), (Pattern::Atomicity, Some("read-write-write")));
    let mut named = cause.events.clone();
    named.sort();
    let known = [["one", "too", "add"], ["other", "add", "too"]].map(|labels| {
        let mut events = events(&parsed, &labels);
        events.sort();
        events
    });
    assert!(known.contains(&named), "{cause:?}");
    // Where none was lost, the count is not to blame.
    let parsed = trace(
        &text
            .replace("cell refs 32 = 1", "cell refs 32 = 0")
            .replace(
                "b: [other] R refs -> q\n        b: [too] W refs q + 1",
                "b: [other] RMW refs -> q = q + 1",
            )
            .replace(
                "a: [one] R refs -> p\n        a: [add] W refs p + 1",
                "a: [one] RMW refs -> p = p + 1",
            ),
    );
    assert_eq!(cause_of(&parsed).pattern, Pattern::UseAfterFree);
}

/// A run along other paths has an update elsewhere. What was proved is that one was overwritten by who had not seen it.
#[test]
fn an_update_that_was_lost_goes_before_what_another_run_differs_in() {
    let text = "
        cell n 32 = 6
        t0: fork a
        t0: fork b
        t0: fork c
        a: [check] R n -> x
        a: assume x == 6
        b: [look] R n -> p
        b: assume p > 0
        c: [update] RMW n -> u = u + 1
        b: [again] R n -> q
        b: assume q > 0
        a: [reset] W n 0
        t0: join a
        t0: join b
        t0: join c
        t0: R n -> z
        t0: fail z == 0
    ";
    // The threads' steps in turn, each to the number of events that it has then.
    let run = |turns: &[(usize, usize)]| {
        let parsed = parse(text).expect("the text is a trace");
        let threads = &parsed.trace.threads;
        let join = |id: &EventId| parsed.trace.event(*id).kind.name() == "join";
        let begin = threads[0].events.iter().position(join).expect("a join");
        let ends = (1..4).map(|thread| (thread, threads[thread].events.len()));
        let turns = [(0, begin)].into_iter().chain(turns.iter().copied()).chain(ends);
        let mut order = Vec::new();
        for (thread, until) in turns.chain([(0, threads[0].events.len())]) {
            let so_far = order.iter().filter(|other| **other == thread).count();
            order.extend(std::iter::repeat_n(thread, until.saturating_sub(so_far)));
        }
        Run::in_order(parsed, &order)
    };
    let failing = run(&[(1, 2), (2, 2), (3, 2), (2, 3), (1, 3)]);
    let passing = run(&[(1, 2), (2, 3), (1, 3), (3, 2)]);
    let [update, again] = ["update", "again"].map(|label| failing.event(label));
    let mut across = compared(&failing, &passing);
    across.flipped = Flipped::Reversed(Order { before: update, after: again });
    let against = Passing::OtherPaths { run: passing.side(), across: &across, in_vain: true };
    let root_cause = explained(&failing.parsed.trace, 1).root_cause;
    let told = |root_cause| cause(failing.side(), root_cause, against).expect("a cause");
    assert_eq!(told(None).events, events(&failing.parsed, &["update", "look", "again"]));
    let proved = told(root_cause.as_ref());
    assert_eq!(proved.case, Some("read-write-write"));
    assert_eq!(proved.events, events(&failing.parsed, &["update", "check", "reset"]));
}
