//! The cause in one sentence, for known programs as event traces.

use crate::support::causes::{cause_of, events, trace};
use crate::support::programs::{AIRLINE, BANK, PFSCAN, TWO_STAGE};
use crate::support::runs::{Run, cause_across};
use encoders::dsl::parse;
use explain::{CauseEvent, Pattern};
use model::Site;

#[test]
fn a_lost_update_is_a_write_between_read_and_write() {
    let parsed = trace(BANK);
    let cause = cause_of(&parsed);
    assert_eq!((cause.pattern, cause.case), (Pattern::Atomicity, Some("read-write-write")));
    assert_eq!(cause.variables, ["balance"]);
    let either = [["wb", "ra", "wa"], ["wa", "rb", "wb"]];
    assert!(either.iter().any(|labels| cause.events == events(&parsed, labels)), "{cause:?}");
    assert!(cause.sentence.contains(" wrote `balance` (") && cause.sentence.contains("'s read ("));
}

#[test]
fn a_check_and_its_use_have_a_write_between_them() {
    let parsed = trace(PFSCAN);
    let cause = cause_of(&parsed);
    assert_eq!((cause.pattern, cause.case), (Pattern::Atomicity, Some("read-write-read")));
    assert_eq!(cause.events, events(&parsed, &["dequeue", "r2", "assertion"]));
    let sentence = "t0.1 wrote `filled` (trace:16) between t0.2's check (trace:19) and its use \
                    (trace:22)";
    assert_eq!(cause.sentence, sentence);
}

#[test]
fn checks_of_a_counter_are_violated_by_a_write() {
    let cause = cause_of(&trace(AIRLINE));
    assert_eq!(cause.pattern, Pattern::Atomicity, "{cause:?}");
    assert_eq!(cause.variables, ["sold"]);
}

#[test]
fn variables_that_belong_together_are_both_named() {
    let parsed = trace(TWO_STAGE);
    let cause = cause_of(&parsed);
    let case = Some("reads-between-writes");
    assert_eq!((cause.pattern, cause.case), (Pattern::SeveralVariables, case));
    assert_eq!(cause.variables, ["x", "y"]);
    assert_eq!(cause.events, events(&parsed, &["rx", "ry", "first", "second"]));
}

#[test]
fn half_of_an_update_is_seen_where_the_run_ends_before_the_other_half() {
    let parsed = trace(
        "
        cell x 32 = 1
        cell y 32 = 1
        a: W x 2
        a: W y 2
        a: [half] W x 3
        b: [rx] R x -> q
        b: [ry] R y -> r
        b: fail q == 3 && r == 2
        ",
    );
    let cause = cause_of(&parsed);
    assert_eq!((cause.pattern, cause.case), (Pattern::SeveralVariables, Some("half-written")));
    assert_eq!(cause.events, events(&parsed, &["rx", "ry", "half"]));
}

#[test]
fn what_a_thread_wrote_itself_is_overwritten() {
    let parsed = trace(
        "
        a: [own] W x 1
        a: [back] R x -> p
        a: fail p != 1
        b: [other] W x 2
        ",
    );
    let cause = cause_of(&parsed);
    assert_eq!((cause.pattern, cause.case), (Pattern::Atomicity, Some("write-write-read")));
    assert_eq!(cause.events, events(&parsed, &["other", "own", "back"]));
}

#[test]
fn a_read_before_the_only_write_is_an_order_violation() {
    let parsed = trace(
        "
        t0: fork b
        t0: [publish] W pointer 77
        b: [use] R pointer -> p
        b: fail p == 0
        ",
    );
    let cause = cause_of(&parsed);
    let case = Some("use-before-initialisation");
    assert_eq!((cause.pattern, cause.case), (Pattern::Order, case));
    assert_eq!(cause.events, events(&parsed, &["use", "publish"]));
    let sentence = "t0.1 read `pointer` (trace:4) before t0 wrote it (trace:3)";
    assert_eq!(cause.sentence, sentence);
}

#[test]
fn two_rounds_of_a_loop_do_not_belong_together() {
    // The reader looks twice, but nothing hangs on the first look.
    let parsed = trace(
        "
        a: R flag -> once
        a: [late] R flag -> again
        a: fail again == 1
        b: [close] W flag 1
        ",
    );
    let cause = cause_of(&parsed);
    assert_eq!((cause.pattern, cause.case), (Pattern::Order, Some("read-after-write")));
    assert_eq!(cause.events, events(&parsed, &["late", "close"]));
}

#[test]
fn what_a_thread_freed_itself_is_told_by_how_it_came_to_do_so() {
    let failing = "
        cell count 32 = 1
        t0: fork a
        t0: [drop] W count 0
        a: alloc h
        a: [look] R count -> c
        a: assume c == 0
        a: [gone] free h
        a: [use] R value -> v
        a: fail before gone use
    ";
    let passing = failing.replace("c == 0", "c != 0").replace("a: [gone] free h", "");
    let passing = parse(&passing.replace("a: fail before gone use", ""));
    let turns = [vec![0; 2], vec![1; 5], vec![0; 2]].concat();
    let passing = Run::in_order(passing.expect("the text is a trace"), &turns);
    let failing = Run::failing(failing);
    let cause = cause_across(&failing, &passing);
    assert_eq!(cause.pattern, Pattern::Order, "{cause:?}");
    assert_eq!(
        cause.events,
        ["look", "drop"].map(|label| CauseEvent::Failing(failing.event(label)))
    );
    let own =
        trace("a: alloc h\na: [gone] free h\na: [use] R value -> v\na: fail before gone use\n");
    assert_eq!(cause_of(&own).pattern, Pattern::UseAfterFree, "there is nothing else to tell");
}

#[test]
fn a_free_before_the_use() {
    let parsed = trace(
        "
        t0: alloc h
        t0: fork b
        t0: [gone] free h
        b: [used] R h_field -> p
        b: fail before gone used
        ",
    );
    let cause = cause_of(&parsed);
    assert_eq!(cause.pattern, Pattern::UseAfterFree);
    assert_eq!(cause.events, events(&parsed, &["gone", "used"]));
}

#[test]
fn a_failure_under_every_schedule_has_no_order_to_blame() {
    let cause = cause_of(&trace("a: W x 1\n b: R x -> p\n b: fail p < 2"));
    assert_eq!((cause.pattern, cause.case), (Pattern::EverySchedule, None));
    assert!(cause.events.is_empty() && cause.variables.is_empty());
}

/// The same bug between other threads has the same fingerprint, another bug has another one.
#[test]
fn fingerprints_tell_causes_apart() {
    let first = cause_of(&trace(BANK));
    let renamed = BANK.replace("a:", "c:").replace("fork a", "fork c").replace("join a", "join c");
    assert_eq!(cause_of(&trace(&renamed)).fingerprint, first.fingerprint);
    let other = BANK.replace("balance", "total");
    assert_ne!(cause_of(&trace(&other)).fingerprint, first.fingerprint);
    assert_ne!(cause_of(&trace(PFSCAN)).fingerprint, first.fingerprint);
}

#[test]
fn a_flag_that_is_set_before_its_data_is_named() {
    let parsed = trace(
        "
        a: [flag] W ready 1
        a: [data] W value 7
        b: [look] R ready -> seen
        b: assume seen == 1
        b: [take] R value -> got
        b: fail got == 0
        ",
    );
    let cause = cause_of(&parsed);
    assert_eq!((cause.pattern, cause.case), (Pattern::Order, Some("announced-too-early")));
    assert_eq!(cause.events, events(&parsed, &["flag", "data", "look", "take"]));
    assert_eq!(cause.names, ["ready", "value", "ready", "value"]);
}

/// An optional value that is said to be there before it is complete is one variable to the program.
#[test]
fn that_an_optional_value_is_there_is_said_before_what_it_holds() {
    let text = "
        a: [mark] W there 1
        a: [fill] W count 3
        b: [look] R there -> f
        b: assume f == 1
        b: [use] R count -> n
        b: fail n == 0
    ";
    let mut parsed = trace(text);
    for (label, member) in
        [("mark", "_M_engaged"), ("look", "_M_engaged"), ("fill", "_M_value"), ("use", "_M_value")]
    {
        let id = parsed.event(label);
        parsed.trace.events[id.index()].name =
            Some(format!("page.text_._M_payload.{member}").into());
    }
    let cause = cause_of(&parsed);
    assert_eq!(cause.case, Some("announced-too-early"), "{cause:?}");
    assert_eq!(cause.events, events(&parsed, &["mark", "fill", "look", "use"]));
    assert_eq!(cause.variables, ["page.text_"]);
}

#[test]
fn a_decision_that_another_thread_had_a_say_in_is_named() {
    // The reader counts itself after the writer has found that nobody is left.
    let parsed = trace(
        "
        cell alive 32 = 1
        a: [check] R users -> left
        a: assume left == 0
        a: [clear] W alive 0
        b: [enter] W users 1
        b: [use] R alive -> still
        b: fail still == 0
        ",
    );
    let cause = cause_of(&parsed);
    assert_eq!((cause.pattern, cause.case), (Pattern::Order, Some("decided-too-early")));
    assert_eq!(cause.events, events(&parsed, &["check", "enter", "clear", "use"]));
}

/// A picture is made and looked at in two calls; that another thread gives it up in between comes of its having found no
/// user of it.
#[test]
fn what_was_given_up_between_two_calls_is_told_by_why() {
    let text = "
        cell pixels 32 = 0
        t0: fork a
        a: lock m
        a: [make] W pixels 1
        a: unlock m
        a: [pin] W pins 1
        a: [use] R pixels -> p
        a: fail p == 0
        t0: lock m
        t0: R pixels -> there
        t0: assume there == 1
        t0: [look] R pins -> n
        t0: assume n == 0
        t0: [drop] W pixels 0
        t0: unlock m
    ";
    let mut parsed = trace(text);
    let viewer = site("view", 9);
    for (label, function, line) in [("make", "get", 3), ("pin", "get", 5)] {
        let id = parsed.event(label);
        parsed.trace.events[id.index()].stack = [site(function, line), viewer.clone()].into();
    }
    let id = parsed.event("use");
    parsed.trace.events[id.index()].stack = [site("view", 10)].into();
    let cause = cause_of(&parsed);
    assert_eq!((cause.pattern, cause.case), (Pattern::Order, Some("decided-too-early")));
    assert_eq!(cause.events, events(&parsed, &["look", "pin", "drop", "use"]), "{cause:?}");
}

#[test]
fn a_decision_that_would_have_been_the_same_is_none() {
    let text = "
        cell alive 32 = 1
        a: [check] R users -> left
        a: assume left == 0
        a: [clear] W alive 0
        b: [enter] W users 1
        b: [use] R alive -> still
        b: fail still == 0
    ";
    // With one user more it would have been cleared all the same.
    let same = text.replace("left == 0", "left < 2");
    // What was decided by has since been written by who decided.
    let rewritten = text.replace("a: [clear]", "a: W users 3\na: [clear]");
    let rewritten =
        rewritten.replace("b: [enter]", "b: R users -> u\nb: assume u == 3\nb: [enter]");
    for text in [same, rewritten] {
        let cause = cause_of(&trace(&text));
        assert_ne!(cause.case, Some("decided-too-early"), "{cause:?}");
    }
}

#[test]
fn what_led_to_the_read_belongs_to_it() {
    // Nothing is left, so nothing can be open; but both come in between.
    let parsed = trace(
        "
        a: [item] W items 1
        a: [sum] W bytes 8
        b: [empty] R items -> left
        b: assume left == 0
        b: [total] R bytes -> open
        b: fail open != 0
        ",
    );
    let cause = cause_of(&parsed);
    let case = Some("writes-between-reads");
    assert_eq!((cause.pattern, cause.case), (Pattern::SeveralVariables, case));
    assert_eq!(cause.events, events(&parsed, &["item", "sum", "empty", "total"]));
}

/// What happens before the reader's thread is there cannot have been said too early.
#[test]
fn what_was_said_before_the_thread_began_is_no_announcement() {
    let parsed = trace(
        "
        cell head 32 = 1
        cell closed 32 = 1
        t0: W head 0
        t0: W closed 0
        t0: fork a
        a: R head -> h
        a: assume h == 0
        a: [early] R closed -> c
        t0: [close] W closed 1
        a: fail c == 0
        ",
    );
    let cause = cause_of(&parsed);
    assert_ne!(cause.case, Some("announced-too-early"), "{}", cause.sentence);
    assert_eq!(cause.events, events(&parsed, &["early", "close"]));
}

/// A pointer that is used is known from the log, so that no condition tells of the test for null.
#[test]
fn a_pointer_that_was_null_and_then_is_not_was_tested() {
    let mut parsed = trace(
        "
        cell root 64 = 0
        t0: fork a
        t0: fork b
        a: lock m
        a: [look] R root -> x
        a: assume x == 0
        a: unlock m
        b: lock m
        b: [insert] W root 4096
        b: unlock m
        a: lock m
        a: [again] R root -> y
        a: unlock m
        a: fail y != 0
        ",
    );
    parsed.trace.cells[0].display = model::trace::ValueDisplay::Pointer;
    parsed.trace.conditions[0].kind = model::PathConditionKind::Address;
    let cause = cause_of(&parsed);
    assert_eq!((cause.pattern, cause.case), (Pattern::Atomicity, Some("read-write-read")));
    assert_eq!(cause.events, events(&parsed, &["insert", "look", "again"]));
}

/// A count that is read between two updates by others. How the one that comes behind the read came to make its
/// update is no reason for what was read before it.
#[test]
fn how_a_later_update_came_about_is_no_cause_of_what_was_read_before() {
    let parsed = trace(
        "
        cell spare 32 = 0
        cell size 32 = 0
        t0: fork taker
        t0: R spare -> s
        t0: assume s == 0
        taker: W spare 1
        taker: RMW size -> b = b - 1
        taker: fork looker
        looker: [seen] R size -> n
        looker: fail n < 0
        t0: [later] RMW size -> a = a + 1
        ",
    );
    let cause = cause_of(&parsed);
    assert_eq!(
        (cause.pattern, cause.variables.as_slice()),
        (Pattern::Order, &["size".to_owned()][..])
    );
}

/// An index that was computed from what another thread has changed since, and that is never looked at again.
#[test]
fn an_index_of_a_former_size_is_told_by_the_size() {
    let mut parsed = trace(
        "
        cell size 32 = 2
        cell old 32 = 7
        t0: fork a
        t0: fork b
        b: [look] R size -> n
        b: assume n == 2
        b: lock m
        b: [use] R old -> x
        b: unlock m
        a: lock m
        a: W old 0
        a: [grow] W size 4
        a: unlock m
        b: fail x != 7
        ",
    );
    parsed.trace.conditions[0].kind = model::PathConditionKind::Address;
    parsed.trace.conditions[0].position = parsed.trace.event(parsed.event("use")).index;
    let cause = cause_of(&parsed);
    assert_eq!((cause.pattern, cause.case), (Pattern::Atomicity, Some("read-write-use")));
    assert_eq!(cause.events, events(&parsed, &["grow", "look", "use"]));
}

/// The reader saw what was written after it had been said: it was not said too early.
#[test]
fn what_was_written_again_after_it_was_said_is_no_announcement() {
    let parsed = trace(
        "
        t0: fork a
        t0: fork b
        a: W slot 1
        a: [there] W last 3
        b: [look] R slot -> seen
        b: assume seen == 1
        b: [early] R last -> end
        a: [taken] W last 2
        b: fail end == 3
        ",
    );
    let cause = cause_of(&parsed);
    assert_ne!(cause.case, Some("announced-too-early"), "{}", cause.sentence);
}

/// A place on a line of a function.
fn site(function: &str, line: u32) -> Site {
    let (file, function) = ("queue.c".to_owned(), function.to_owned());
    Site { file, line, column: 1, function }
}

/// The function was gone through again since the look: what the thread does in that round does not follow
/// from it.
#[test]
fn what_was_looked_at_in_the_round_before_did_not_lead_here() {
    let mut parsed = trace(
        "
        t0: fork a
        t0: fork b
        a: [look] R slot -> x
        a: assume x == 0
        a: [end] R calls -> p
        a: [begin] R calls -> q
        a: [mine] W slot 3
        a: [back] R slot -> c
        b: R slot -> y
        b: assume y == 0
        b: W slot 4
        b: R slot -> z
        b: assume z == 4
        b: W slot 0
        a: fail c != 3
        ",
    );
    let mut case_at = |lines: [u32; 5]| {
        for (label, line) in ["look", "end", "begin", "mine", "back"].into_iter().zip(lines) {
            let event = parsed.event(label);
            parsed.trace.events[event.index()].stack = vec![site("serve", line)].into();
        }
        cause_of(&parsed).case
    };
    let claimed = Some("read-write-write");
    assert_eq!(case_at([5, 6, 6, 7, 8]), claimed);
    assert_eq!(case_at([5, 9, 6, 10, 11]), claimed, "a loop behind the look");
    assert_ne!(case_at([5, 9, 5, 7, 8]), claimed);
}

/// A line of a function that is called twice does not tell the two apart.
#[test]
fn accesses_on_one_line_are_told_apart_by_their_callers() {
    let mut parsed = trace(
        "
        t0: fork a
        t0: fork b
        a: [own] W x 1
        a: [back] R x -> p
        a: fail p != 1
        b: W x 2
        ",
    );
    for (label, line) in [("own", 20), ("back", 30)] {
        let id = parsed.event(label);
        let stack = vec![site("access", 7), site("work", line), site("main", 40)];
        parsed.trace.events[id.index()].stack = stack.into();
    }
    let sentence = cause_of(&parsed).sentence;
    let rest = "between t0.1's write (queue.c:7, called at queue.c:20) and its read (queue.c:7, \
                called at queue.c:30)";
    assert!(sentence.ends_with(rest), "{sentence}");
}

/// The writer of the next round is not to blame for what the reader took twice: that it was taken is
/// said too late.
#[test]
fn what_was_said_in_the_round_before_is_no_announcement() {
    let mut parsed = trace(
        "
        t0: fork a
        a: lock m
        a: [one] W value 1
        a: [there] W waiting 1
        a: unlock m
        t0: lock m
        t0: R waiting -> w
        t0: assume w == 1
        t0: R value -> v
        t0: unlock m
        t0: lock m
        t0: [again] R waiting -> x
        t0: assume x == 1
        t0: [twice] R value -> y
        t0: unlock m
        a: lock m
        a: [taken] W waiting 0
        a: unlock m
        a: lock m
        a: [two] W value 2
        a: W waiting 1
        a: unlock m
        t0: fail y == 1
        ",
    );
    // The writer's second round is of the same lines.
    let [one, two] = ["one", "two"].map(|label| parsed.event(label).index());
    parsed.trace.events[two].stack = parsed.trace.events[one].stack.clone();
    let cause = cause_of(&parsed);
    assert_eq!((cause.pattern, cause.case), (Pattern::Order, Some("looked-too-early")));
    assert_eq!(cause.events, events(&parsed, &["again", "taken", "twice", "two"]));
}

/// Two counters are written by a thread each, and compared by a third one.
#[test]
fn reads_at_two_moments_are_told_with_both_writers() {
    let parsed = trace(
        "
        cell taken 32 = 0
        t0: W put 0
        t0: fork a
        t0: fork b
        t0: fork c
        a: W put 4
        c: [old] R taken -> t
        b: R put -> p
        b: assume p >= 4
        b: [take] W taken 4
        a: R taken -> space
        a: assume space == 4
        a: [put] W put 8
        c: [new] R put -> n
        c: fail t + 4 < n
        ",
    );
    let cause = cause_of(&parsed);
    assert_eq!((cause.pattern, cause.case), (Pattern::SeveralVariables, Some("two-moments")));
    assert_eq!(cause.events, events(&parsed, &["old", "new", "take", "put"]));
}

/// Of two cells that a thread each writes, nobody has written only one of the two.
#[test]
fn who_writes_one_cell_alone_is_not_half_way_through_both() {
    let parsed = trace(
        "
        t0: W put 0
        t0: W taken 0
        t0: fork a
        t0: fork b
        a: W put 4
        c: R taken -> t
        a: W put 8
        c: R put -> n
        b: W taken 4
        c: fail t + 4 < n
        ",
    );
    let cause = cause_of(&parsed);
    assert_ne!(cause.case, Some("half-written"), "{}", cause.sentence);
}

/// Two threads take the same piece of an arena, and write it: which of the two came last follows from that.
#[test]
fn two_that_write_one_place_are_told_by_how_they_got_it() {
    let mut parsed = trace(
        "
        t0: fork a
        t0: fork b
        a: [mine] R used -> x
        a: assume x == 0
        a: [first] W used 16
        a: [one] W owner 1
        b: [theirs] R used -> y
        b: assume y == 0
        b: [second] W used 16
        b: [two] W owner 2
        t0: join a
        t0: join b
        t0: R owner -> o
        t0: fail o != 1
        ",
    );
    for (condition, event) in [(0, "one"), (1, "two")] {
        let index = parsed.trace.event(parsed.event(event)).index;
        parsed.trace.conditions[condition].kind = model::PathConditionKind::Address;
        parsed.trace.conditions[condition].position = index;
    }
    let cause = cause_of(&parsed);
    assert_eq!((cause.pattern, cause.case), (Pattern::Atomicity, Some("read-write-write")));
    let either = [["second", "mine", "first"], ["first", "theirs", "second"]];
    assert!(either.iter().any(|labels| cause.events == events(&parsed, labels)), "{cause:?}");
}

/// State and data are each written under a lock, by two threads, and one comes between the other's two.
#[test]
fn one_thread_between_anothers_writes_of_two_variables() {
    let parsed = trace(
        "
        cell state 32 = 1
        cell data 32 = 0
        t0: fork a
        t0: fork b
        t0: R state -> s
        t0: assume s == 3
        t0: R data -> d
        t0: fail d == 7
        a: [clear] W data 0
        a: [failed] W state 3
        b: R state -> r
        b: assume r == 1
        b: [set] W data 7
        ",
    );
    let cause = cause_of(&parsed);
    assert_eq!((cause.pattern, cause.case), (Pattern::SeveralVariables, Some("mixed-writes")));
    assert_eq!(cause.events, events(&parsed, &["set", "clear", "failed"]));
}

#[test]
fn a_condition_variable_is_initialised_and_waited_for() {
    let mut parsed = trace(
        "
        cell made 8 = 0
        a: [make] W made 1
        b: [wait] R made -> seen
        b: fail seen == 0
        ",
    );
    for label in ["make", "wait"] {
        let event = parsed.event(label).index();
        parsed.trace.events[event].name = Some("initialisation of w->wake".into());
    }
    let cause = cause_of(&parsed);
    assert_eq!((cause.pattern, cause.case), (Pattern::Order, Some("use-before-initialisation")));
    let sentence = "t0.1 waited for `w->wake` (trace:4) before t0 initialised it (trace:3)";
    assert_eq!(cause.sentence, sentence);
}

/// Each thread holds a lock where it updates the sum, and it is not the same one.
#[test]
fn locks_that_are_not_the_same_are_named() {
    let updates = |locks: [&str; 2]| {
        let [one, two] = locks;
        let text = format!(
            "
            cell sum 32 = 0
            t0: fork a
            t0: fork b
            a: lock {one}
            a: R sum -> x
            a: W sum x+1
            a: unlock {one}
            b: lock {two}
            b: R sum -> y
            b: W sum y+1
            b: unlock {two}
            t0: join a
            t0: join b
            t0: R sum -> s
            t0: fail s != 2
            "
        );
        text
    };
    let sentence = cause_of(&trace(&updates(["m", "n"]))).sentence;
    let either = [
        ", where t0.1 holds `m` and t0.2 another lock, `n`",
        ", where t0.2 holds `n` and t0.1 another lock, `m`",
    ];
    assert!(either.iter().any(|end| sentence.ends_with(end)), "{sentence}");
}

/// The reader looked at a count before, which another thread has changed since; but what it reads and the other one writes
/// are under different locks.
#[test]
fn different_locks_say_more_than_a_check_that_was_overtaken() {
    let text = |lock: &str| {
        format!(
            "
            cell count 32 = 3
            cell next 32 = 7
            t0: fork a
            t0: fork b
            a: RMW count -> c = c+1
            a: assume c == 3
            a: lock stripe
            a: [used] R next -> n
            a: unlock stripe
            a: fail n == 0
            b: RMW count -> d = d+1
            b: lock {lock}
            b: [moved] W next 0
            b: unlock {lock}
            "
        )
    };
    let parsed = trace(&text("resize"));
    let cause = cause_of(&parsed);
    assert_eq!(cause.events, events(&parsed, &["used", "moved"]), "{}", cause.sentence);
    assert!(cause.sentence.contains("another lock"), "{}", cause.sentence);
    let cause = cause_of(&trace(&text("stripe")));
    assert!(!cause.sentence.contains("another lock"), "{}", cause.sentence);
}

/// The writer still holds its lock at the read: it is named once.
#[test]
fn a_lock_that_is_still_held_is_named_once() {
    let text = "
        cell next 32 = 7
        cell seen 32 = 0
        t0: fork a
        t0: fork b
        a: lock stripe
        a: R next -> n
        a: W seen 1
        a: unlock stripe
        a: fail n == 0
        b: lock resize
        b: W next 0
        b: R seen -> s
        b: assume s == 1
        b: unlock resize
    ";
    let sentence = cause_of(&trace(text)).sentence;
    assert!(sentence.contains("still held `resize`"), "{sentence}");
    assert!(sentence.ends_with(", while t0.1 holds another lock, `stripe`"), "{sentence}");
    // What a library takes of its own around a function that it calls says nothing.
    let mut parsed = trace(&text.replace("b: lock resize", "b: [take] lock resize"));
    let file = "/usr/include/c++/12/future".to_owned();
    let library = Site { file, line: 700, ..Site::default() };
    let take = parsed.event("take");
    parsed.trace.events[take.index()].stack = vec![library].into();
    let sentence = cause_of(&parsed).sentence;
    assert!(!sentence.contains("resize"), "{sentence}");
}

/// Who was alone with a place when it looked gave it back, and came round again: what another one does there then comes
/// behind that look and what hung on it.
#[test]
fn a_look_of_the_round_before_is_no_check_of_what_the_thread_has_given_back() {
    let mut parsed = trace(
        "
        a: [took] RMW owners -> w = w + 1
        a: [look] R owners -> x
        a: assume x == 1
        a: [gave] RMW owners -> v = v - 1
        a: [more] RMW owners -> y = y + 1
        b: [other] RMW owners -> u = u + 1
        a: fail y != 0
        ",
    );
    let lines = [("took", 12), ("look", 14), ("gave", 16), ("more", 12), ("other", 12)];
    for (label, line) in lines {
        let id = parsed.event(label);
        parsed.trace.events[id.index()].stack = [site("use", line)].into();
    }
    let cause = cause_of(&parsed);
    let [look, more] = ["look", "more"].map(|label| parsed.event(label));
    assert!(
        !cause.events.contains(&CauseEvent::Failing(look))
            || !cause.events.contains(&CauseEvent::Failing(more)),
        "{cause:?}"
    );
}
