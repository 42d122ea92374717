//! The cause in one sentence, where checks are overtaken and variables belong together.

use crate::support::causes::{cause_of, events, trace};
use crate::support::runs::{Run, cause_across};
use encoders::dsl::Parsed;
use explain::{CauseEvent, Pattern};
use model::trace::ValueDisplay;
use model::{EventId, EventKind, ReadPart, Site, VariableOrigin};

/// An owner takes what it saw to be there, and a thief has taken it since: that one's run of the task is told by
/// the look, and not by the counter that both change.
#[test]
fn what_was_taken_since_it_was_looked_at_is_told_by_the_look() {
    let parsed = trace(
        "
        cell top 32 = 0
        cell runs 32 = 0
        t0: fork a
        t0: fork b
        a: R left -> n
        a: assume n == 0
        a: [look] R top -> t
        a: assume t == 0
        b: [take] RMW top -> u = u + 1
        b: R runs -> r
        b: assume r == 0
        b: [run] W runs r + 1
        b: RMW left -> l = l + 1
        a: [again] R runs -> s
        a: W runs s + 1
        a: RMW left -> m = m + 1
        t0: join a
        t0: join b
        t0: R runs -> all
        t0: fail all == 2
        ",
    );
    let cause = cause_of(&parsed);
    assert_eq!((cause.pattern, cause.case), (Pattern::Atomicity, Some("read-write-use")));
    assert_eq!(cause.events, events(&parsed, &["take", "look", "again"]));
}

/// The two ends of a container are one variable to the program, which was moved between the reads of them.
#[test]
fn a_container_that_moves_between_the_reads_of_its_ends_is_told_as_that() {
    let told = |text: &str| told_of_ends(trace(text));
    let of_condition = told(
        "
        cell start 64 = 1000
        cell end 64 = 1016
        t0: fork a
        t0: fork b
        a: [begins] W start 5000
        a: [ends] W end 5016
        b: [look-end] R end -> e
        b: [look-start] R start -> s
        b: fail e < s
        ",
    );
    let between =
        "t0.2 read `arena.blocks_` (trace:8) between t0.1's writes of `arena.blocks_` (trace:6)";
    assert_eq!(of_condition, between);
    // What was read is passed on, and another thread fails.
    let passed_on = told(
        "
        cell start 64 = 1000
        cell end 64 = 1016
        cell told 64 = 0
        t0: fork a
        t0: fork b
        a: [begins] W start 5000
        a: [ends] W end 5016
        b: [look-end] R end -> e
        b: [look-start] R start -> s
        b: W told e - s
        t0: join b
        t0: R told -> seen
        t0: fail seen < 0
        ",
    );
    let between =
        "t0.2 read `arena.blocks_` (trace:9) between t0.1's writes of `arena.blocks_` (trace:7)";
    assert_eq!(passed_on, between);
}

fn told_of_ends(mut parsed: Parsed) -> String {
    for (label, member) in [
        ("begins", "_M_start"),
        ("ends", "_M_end_of_storage"),
        ("look-end", "_M_end_of_storage"),
        ("look-start", "_M_start"),
    ] {
        let line = if label.starts_with("look") { "look-end" } else { "begins" };
        let outer = parsed.trace.event(parsed.event(line)).site().clone();
        let id = parsed.event(label);
        let event = &mut parsed.trace.events[id.index()];
        event.name = Some(format!("arena.blocks_._M_impl.{member}").into());
        let file = "/usr/include/c++/12/bits/stl_vector.h".to_owned();
        let inside = Site { file, function: "capacity".to_owned(), ..Site::default() };
        event.stack = vec![inside, outer].into();
    }
    cause_of(&parsed).sentence
}

/// A thread that wrote both variables, one behind the other, has written both of them.
#[test]
fn who_has_just_written_both_is_not_half_way() {
    let parsed = trace(
        "
        cell bids 32 = 1
        cell asks 32 = 1
        a: W bids 1
        a: W asks -1
        b: R bids -> x
        b: R asks -> y
        b: fail x < 0 || y < 0
        ",
    );
    let cause = cause_of(&parsed);
    assert_ne!(cause.case, Some("half-written"), "{}", cause.sentence);
}

/// What the reader knows from before the writer was there does not belong to what that writes.
#[test]
fn nobody_is_half_way_through_what_was_read_before_it_began() {
    let parsed = trace(
        "
        cell size 32 = 1
        cell buffer 32 = 1
        t0: R size -> s
        t0: fork a
        a: [gone] W buffer 0
        t0: [late] R buffer -> b
        t0: fail b == 0 && s == 1
        ",
    );
    let cause = cause_of(&parsed);
    assert_eq!(
        (cause.pattern, cause.case),
        (Pattern::Order, Some("read-after-write")),
        "{cause:?}"
    );
    assert_eq!(cause.events, events(&parsed, &["late", "gone"]));
}

/// A thread looks whether something was set, and enters itself as one to be told of that, in two sections of a lock;
/// the other one sets it and looks whom to tell.
const REGISTRATION: &str = "
    t0: fork a
    t0: lock m
    t0: [look] R set -> s
    t0: assume s == 0
    t0: unlock m
    t0: lock m
    t0: [act] W first 1
    t0: unlock m
    a: lock m
    a: [change] W set 1
    a: [missed] R first -> f
    a: unlock m
    a: fail f == 0
";

/// What a thread does hangs on its last look, whether it had the lock for that or not.
#[test]
fn of_two_looks_the_last_one_counts() {
    let again = "t0: unlock m\nt0: [again] R set -> r\nt0: assume r == 0\n";
    let text = REGISTRATION.replacen("t0: unlock m\n", again, 1);
    let parsed = trace(&text);
    let cause = cause_of(&parsed);
    assert_eq!((cause.pattern, cause.case), (Pattern::SeveralVariables, Some("crossed")));
    assert_eq!(cause.events, events(&parsed, &["change", "missed", "again", "act"]), "{cause:?}");
}

/// Who has something looks whether somebody sleeps and then leaves it; who goes to sleep says so and then looks whether
/// there is something. No lock is in it.
#[test]
fn a_sleeper_and_who_wakes_it_miss_each_other_without_locks() {
    let text = "
        t0: fork a
        t0: [look] R sleeping -> s
        t0: assume s == 0
        t0: [act] W letters 1
        a: [change] W sleeping 1
        a: [missed] R letters -> l
        a: fail l == 0
    ";
    let mut parsed = trace(text);
    assert_ne!(cause_of(&parsed).case, Some("crossed"), "one lock around both would be known");
    parsed.trace.failure.as_mut().expect("a failure").kind = model::FailureKind::Hang;
    let cause = cause_of(&parsed);
    assert_eq!((cause.pattern, cause.case), (Pattern::SeveralVariables, Some("crossed")));
    assert_eq!(cause.events, events(&parsed, &["change", "missed", "look", "act"]), "{cause:?}");
}

#[test]
fn a_look_and_what_hangs_on_it_in_two_sections_have_another_section_between_them() {
    let parsed = trace(REGISTRATION);
    let cause = cause_of(&parsed);
    assert_eq!((cause.pattern, cause.case), (Pattern::SeveralVariables, Some("crossed")));
    assert_eq!(cause.events, events(&parsed, &["change", "missed", "look", "act"]));
    let sentence = "t0.1 wrote `set` (trace:11) and read `first` (trace:12) between t0's read of `set` \
                    (trace:4) and its write of `first` (trace:8)";
    assert_eq!(cause.sentence, sentence);
}

/// Without the lock nothing says that the two belong together.
#[test]
fn a_flag_that_is_set_before_a_read_that_comes_too_early_is_not_to_blame() {
    let unlocked: Vec<&str> =
        REGISTRATION.lines().filter(|line| !line.contains("lock m")).collect();
    let cause = cause_of(&trace(&unlocked.join("\n")));
    assert_eq!(cause.pattern, Pattern::Order, "{cause:?}");
}

/// Makes the two reads one read of both cells.
fn join_reads(parsed: &mut Parsed, first: EventId, second: EventId) {
    let both = [first, second];
    let parts: Vec<ReadPart> =
        both.iter().flat_map(|id| parsed.trace.event(*id).kind.reads().to_vec()).collect();
    for (part, number) in parts.iter().zip(0..) {
        let origin = VariableOrigin::Read { event: first, part: number };
        parsed.trace.variables[part.var.index()].origin = origin;
    }
    parsed.trace.events[first.index()].kind = EventKind::Read { parts };
    parsed.trace.events[second.index()].kind = EventKind::Fence;
}

/// A copy of a structure is one read of all its members.
#[test]
fn one_read_of_two_cells_may_come_between_their_writes() {
    let mut parsed = trace(
        "
        cell workers 32 = 1
        cell queue 32 = 4
        a: [one] W workers 2
        a: [two] W queue 8
        b: [copy] R workers -> w
        b: [rest] R queue -> q
        b: fail w * 4 != q
        ",
    );
    let [copy, rest] = ["copy", "rest"].map(|label| parsed.event(label));
    join_reads(&mut parsed, copy, rest);
    let cause = cause_of(&parsed);
    let case = Some("reads-between-writes");
    assert_eq!((cause.pattern, cause.case), (Pattern::SeveralVariables, case));
    assert_eq!(cause.events, events(&parsed, &["copy", "one", "two"]));
}

/// The run may end before the second write; the round before tells that there is one.
#[test]
fn one_read_of_two_cells_may_come_before_the_second_write() {
    let mut parsed = trace(
        "
        cell workers 32 = 1
        cell queue 32 = 4
        a: [before] W workers 1
        a: W queue 4
        a: [half] W workers 2
        b: [copy] R workers -> w
        b: [rest] R queue -> q
        b: fail w * 4 != q
        ",
    );
    let [before, half, copy, rest] =
        ["before", "half", "copy", "rest"].map(|label| parsed.event(label));
    join_reads(&mut parsed, copy, rest);
    parsed.trace.events[half.index()].stack = parsed.trace.event(before).stack.clone();
    let cause = cause_of(&parsed);
    assert_eq!((cause.pattern, cause.case), (Pattern::SeveralVariables, Some("half-written")));
    assert_eq!(cause.events, events(&parsed, &["copy", "half"]));
}

/// A reader that goes through two elements in a loop, while a writer fills both.
fn rounds(fails: &str) -> Parsed {
    let mut parsed = trace(&format!(
        "
        cell one 32 = 6
        cell two 32 = 4
        a: [first] R one -> x
        a: [second] R two -> y
        a: assume y == 5
        a: fail {fails}
        b: [from] W one 5
        b: [to] W two 5
        "
    ));
    let [first, second] = ["first", "second"].map(|label| parsed.event(label).index());
    parsed.trace.events[second].stack = parsed.trace.events[first].stack.clone();
    parsed
}

/// A transfer is half seen: with neither half the sum is right.
#[test]
fn elements_that_are_added_up_belong_together() {
    let mut parsed = rounds("x + y != 10");
    let cause = cause_of(&parsed);
    assert_eq!(cause.pattern, Pattern::SeveralVariables, "{}", cause.sentence);
    // The loop may be the library's, as where values of a map are summed up.
    for label in ["first", "second"] {
        let event = parsed.event(label).index();
        let file = "/rustc/1/library/core/src/iter/traits/accum.rs".to_owned();
        let inside = Site { file, line: 1, column: 1, function: "sum".to_owned() };
        let outside = parsed.trace.events[event].stack.iter().cloned();
        let stack: Vec<Site> = std::iter::once(inside).chain(outside).collect();
        parsed.trace.events[event].stack = stack.into();
        parsed.trace.events[event].name = Some("*value".into());
    }
    let cause = cause_of(&parsed);
    assert_eq!(cause.pattern, Pattern::SeveralVariables, "{}", cause.sentence);
}

/// What was read of the second element changes nothing about the first.
#[test]
fn elements_that_are_looked_at_one_by_one_do_not_belong_together() {
    let parsed = rounds("x == 6 || y == 3");
    let cause = cause_of(&parsed);
    assert_eq!(cause.pattern, Pattern::Order, "{}", cause.sentence);
    assert_eq!(cause.events, events(&parsed, &["first", "from"]));
}

/// A leader takes what is pending, writes it, and says then how far it came: by a number that has been raised since,
/// with more that is pending.
#[test]
fn who_says_that_more_is_done_than_it_took_is_told_by_that() {
    let text = "
        cell pending 32 = 0
        cell appended 32 = 0
        t0: fork a
        t0: fork b
        a: lock m
        a: [add] W pending 1
        a: [count] W appended 1
        a: unlock m
        a: lock m
        a: [sure] R durable -> d
        a: assume d == 1
        a: unlock m
        a: [look] R disk -> k
        a: fail k == 0
        b: lock m
        b: [take] R pending -> p
        b: unlock m
        b: [write] W disk p
        b: lock m
        b: [stamp] R appended -> n
        b: [say] W durable n
        b: unlock m
    ";
    let parsed = trace(text);
    let cause = cause_of(&parsed);
    let case = Some("writes-between-reads");
    assert_eq!((cause.pattern, cause.case), (Pattern::SeveralVariables, case), "{cause:?}");
    assert_eq!(cause.events, events(&parsed, &["add", "count", "take", "stamp"]));
    // Who keeps the lock from the one to the other says what it took.
    let said = text.replace("b: unlock m\n        b: [write]", "b: [write]");
    let said = said.replace("b: lock m\n        b: [stamp]", "b: [stamp]");
    let said = said.replace("W disk p", "W disk 0");
    let cause = cause_of(&trace(&said));
    assert_ne!(cause.variables, ["pending", "appended"], "{cause:?}");
    // Who hangs an element in or out of a tree passes a pointer on, which says nothing of how far it came.
    let mut parsed = parsed;
    for cell in &mut parsed.trace.cells {
        if cell.name == "appended" {
            cell.display = ValueDisplay::Pointer;
        }
    }
    let cause = cause_of(&parsed);
    assert_ne!(cause.case, case, "{cause:?}");
}

/// Two find a table empty and fill it, each in a section behind the look. That both counted says only that both did.
#[test]
fn who_raises_a_count_vouches_for_nothing() {
    let fill = |thread: &str| {
        format!(
            "
            {thread}: lock m
            {thread}: [look-{thread}] R filled -> f{thread}
            {thread}: assume f{thread} == 0
            {thread}: unlock m
            {thread}: lock m
            {thread}: R count -> c{thread}
            {thread}: W count c{thread} + 1
            {thread}: [fill-{thread}] W filled 1
            {thread}: unlock m
            "
        )
    };
    let ends = "t0: join a\n t0: join b\n t0: R count -> n\n t0: fail n != 1";
    let text = format!("t0: fork a\n t0: fork b\n {} {} {ends}", fill("a"), fill("b"));
    let failing = Run::failing(&text);
    let own = text.replace("fb == 0", "fb == 1").replace("b: R count -> cb", "");
    let own = own.replace("b: W count cb + 1", "").replace("b: [fill-b] W filled 1", "");
    let passing = Run::passing(&own.replace("t0: fail n != 1", ""), [1, 2]);
    let cause = cause_across(&failing, &passing);
    assert_eq!(cause.pattern, Pattern::Atomicity, "{}", cause.sentence);
    assert_eq!(cause.variables, ["filled"], "{}", cause.sentence);
}

/// The best price is looked up in one section, and its orders in the next: a map of the library, of which the two read and
/// another thread writes different places.
#[test]
fn a_container_that_was_changed_between_two_sections_is_one_variable() {
    let text = "
        cell begin 32 = 1
        cell node 32 = 7
        t0: fork a
        t0: fork b
        a: lock m
        a: [best] R begin -> p
        a: assume p == 1
        a: unlock m
        a: lock m
        a: [find] R node -> n
        a: assume n == 0
        a: unlock m
        b: lock m
        b: [next] W begin 2
        b: [erase] W node 0
        b: unlock m
        a: fail
    ";
    let passing = text.replace("n == 0", "n == 7").replace("a: fail", "");
    let sites = [("best", 51, 58), ("find", 76, 61), ("next", 85, 61), ("erase", 85, 61)];
    let in_library = |run: &mut Parsed, library: bool| {
        for (label, line, call) in sites {
            let own = |line, function: &str| Site {
                file: "book.cc".to_owned(),
                line,
                column: 1,
                function: function.to_owned(),
            };
            let tree =
                Site { file: "/usr/include/c++/12/bits/stl_tree.h".to_owned(), ..own(9, "_M") };
            let function = if line == 51 { "best" } else { "fill" };
            let mut stack = vec![own(line, function), own(call, "buy")];
            if library {
                stack.insert(0, tree);
            }
            let id = run.event(label);
            run.trace.events[id.index()].stack = stack.into();
            let member = if ["best", "next"].contains(&label) { "_M_header" } else { "_M_left" };
            run.trace.events[id.index()].name = Some(format!("book.asks_.{member}").into());
        }
    };
    let of = |library: bool| {
        let mut parsed = trace(text);
        in_library(&mut parsed, library);
        let failing = Run::explained(parsed);
        let mut parsed = trace(&passing);
        in_library(&mut parsed, library);
        let turns = [vec![0; 3], vec![1; 8], vec![2; 6], vec![0]].concat();
        let passing = Run::in_order(parsed, &turns);
        let cause = cause_across(&failing, &passing);
        let labels = ["next", "best", "find"];
        let named = labels.map(|label| CauseEvent::Failing(failing.event(label)));
        assert_eq!((cause.pattern, &cause.events[..]), (Pattern::Atomicity, &named[..]));
        (cause.case, cause.sentence)
    };
    let (case, sentence) = of(true);
    assert_eq!(case, Some("read-write-read"), "{sentence}");
    assert!(sentence.contains(" between t0.1's check (book.cc:51) and its use (book.cc:76)"));
    let (case, sentence) = of(false);
    assert_ne!(case, Some("read-write-read"), "members of the program's own: {sentence}");

    // Whom the thread has created and joined in between did its part there in any schedule.
    let text = text.replace("t0: fork b", "t0: fork c").replace(
        "a: lock m\n        a: [find]",
        "a: fork b\n        a: join b\n        a: lock m\n        a: [find]",
    );
    let looks = "b: R mode -> o\n        b: assume o == 0\n        b: lock m";
    let text = text.replace("b: lock m", looks) + "c: W mode 1\n";
    let text = text.replace("t0: fork a", "t0: W mode 0\n        t0: fork a");
    let passing = text.replace("n == 0", "n == 7").replace("a: fail", "");
    let passing = passing.replace("o == 0", "o == 1").replace("W node 0", "R node -> q");
    let [mut failing, mut passing] = [&*text, &*passing].map(trace);
    in_library(&mut failing, true);
    in_library(&mut passing, true);
    let turns = [vec![0; 4], vec![2; 3], vec![1; 5], vec![3; 7], vec![1; 5], vec![0]].concat();
    let cause = cause_across(&Run::explained(failing), &Run::in_order(passing, &turns));
    assert_ne!(cause.case, Some("read-write-read"), "{cause:?}");
}

/// A queue is asked whether it is empty, another thread takes the last element, and the queue is empty when it is taken
/// from. A run in which a third thread puts something in meanwhile passes.
#[test]
fn what_made_good_for_a_container_that_had_changed_is_not_the_cause() {
    let text = "
        cell start 32 = 0
        cell finish 32 = 0
        t0: W finish 1
        t0: fork a
        t0: fork b
        t0: fork c
        a: lock m
        a: [full] R finish -> f
        a: [begin] R start -> s
        a: assume s != f
        a: unlock m
        b: lock m
        b: [taken] W start 1
        b: unlock m
        a: lock m
        a: [end] R finish -> g
        a: [look] R start -> n
        a: assume n == g
        a: unlock m
        a: fail
        c: lock m
        c: [put] W finish 2
        c: unlock m
    ";
    let sites = [
        ("full", 7, 15),
        ("begin", 7, 15),
        ("taken", 8, 16),
        ("end", 8, 16),
        ("look", 8, 16),
        ("put", 6, 24),
    ];
    let in_library = |run: &mut Parsed| {
        for (label, line, call) in sites {
            let own = |line, function: &str| Site {
                file: "queue.cc".to_owned(),
                line,
                column: 1,
                function: function.to_owned(),
            };
            let deque =
                Site { file: "/usr/include/c++/12/bits/stl_deque.h".to_owned(), ..own(9, "_M") };
            let function = ["push", "empty", "pop"][line as usize - 6];
            let id = run.event(label);
            run.trace.events[id.index()].stack =
                vec![deque, own(line, function), own(call, "consume")].into();
            let member =
                if ["taken", "begin", "look"].contains(&label) { "_M_start" } else { "_M_finish" };
            run.trace.events[id.index()].name = Some(format!("q.items_.{member}").into());
        }
    };
    let mut parsed = trace(text);
    in_library(&mut parsed);
    let turns = [vec![0; 5], vec![1; 5], vec![2; 5], vec![1; 5], vec![3; 5], vec![0]].concat();
    let failing = Run::in_order(parsed, &turns);
    let mut parsed = trace(&text.replace("n == g", "n != g").replace("a: fail", ""));
    in_library(&mut parsed);
    let turns = [vec![0; 5], vec![1; 5], vec![2; 5], vec![3; 5], vec![1; 5], vec![0]].concat();
    let passing = Run::in_order(parsed, &turns);
    let cause = cause_across(&failing, &passing);
    let between = |event: &CauseEvent| *event == CauseEvent::Failing(failing.event("taken"));
    assert_eq!(cause.case, Some("read-write-read"), "{cause:?}");
    assert!(cause.events.first().is_some_and(between), "{cause:?}");
}

/// Three threads count and add up in two steps each, and a fourth one compares both while the first is half-way. What the
/// first had counted the second has counted on since, and the third does its part when the fourth is through.
#[test]
fn who_was_half_way_need_not_be_who_came_in_another_order() {
    let text = "
        cell count 32 = 0
        cell sum 32 = 0
        t0: fork a
        t0: fork b
        t0: fork c
        t0: fork d
        a: [counted] RMW count -> p = p + 1
        a: [added] RMW sum -> q = q + 10
        b: RMW count -> r = r + 1
        b: RMW sum -> s = s + 10
        d: RMW count -> u = u + 1
        d: RMW sum -> v = v + 10
        c: [first] R count -> x
        c: [second] R sum -> y
        c: assume x * 10 != y
        c: W torn 1
        t0: join a
        t0: join b
        t0: join c
        t0: join d
        t0: R torn -> t
        t0: fail t == 1
    ";
    let parsed = |text: &str| encoders::dsl::parse(text).expect("the text is a trace");
    let turns = |parts: &[(usize, usize)]| -> Vec<usize> {
        parts.iter().flat_map(|(thread, count)| vec![*thread; *count]).collect()
    };
    let order = turns(&[(0, 5), (1, 2), (2, 4), (3, 5), (1, 2), (4, 4), (0, 6)]);
    let mut fails = parsed(text);
    fails.trace.failure.as_mut().expect("a failure").kind = model::FailureKind::Exit;
    let failing = Run::in_order(fails, &order);
    let passes = text.replace("x * 10 != y", "x * 10 == y").replace("c: W torn 1", "");
    let passes = passes.replace("fail t == 1", "assume t == 0");
    let order = turns(&[(0, 5), (1, 2), (2, 4), (1, 2), (4, 4), (3, 4), (0, 6)]);
    let passing = Run::in_order(parsed(&passes), &order);
    let cause = cause_across(&failing, &passing);
    assert_eq!(cause.case, Some("reads-between-writes"), "{cause:?}");
    let named = ["first", "second", "counted", "added"];
    let named = named.map(|label| CauseEvent::Failing(failing.event(label)));
    assert_eq!(cause.events, named);
}

/// Each thread counts itself in, as at a barrier, and goes by how many there are; one reads a part that the other writes
/// before it counts itself.
#[test]
fn who_counts_itself_misses_later_counts_as_it_should() {
    let parsed = trace(
        "
        cell part 32 = 4
        t0: fork a
        t0: fork b
        a: [write] W part 5
        a: lock m
        a: R in -> p
        a: [later] W in p + 1
        a: unlock m
        b: lock m
        b: [count] R in -> q
        b: W in q + 1
        b: assume q + 1 != 2
        b: unlock m
        b: [read] R part -> v
        b: fail v == 5
        ",
    );
    let cause = cause_of(&parsed);
    assert_eq!(cause.events, events(&parsed, &["read", "write"]), "{cause:?}");
}

/// The best and whose it is are written in two steps by two threads; only whose it is is looked at in the end.
const OFFERS: &str = "
    cell best 32 = 0
    cell party 32 = 0
    t0: fork a
    t0: fork b
    a: R best -> m
    a: assume m < 9
    a: [first] W best 9
    a: [last] W party 1
    b: [look] R best -> y
    b: assume y < 12
    b: [second] W best 12
    b: [between] W party 2
    t0: join a
    t0: join b
    t0: R party -> p
    t0: fail p != 2
";

#[test]
fn two_steps_between_the_same_two_of_another_thread() {
    let cause = |text: &str| {
        let mut parsed = trace(text);
        for (label, line) in [("first", 5), ("second", 5), ("last", 6), ("between", 6)] {
            let (file, function) = ("offer.c".to_owned(), "offer".to_owned());
            let id = parsed.event(label);
            parsed.trace.events[id.index()].stack =
                vec![Site { file, line, column: 1, function }].into();
        }
        let id = parsed.event("look");
        let inside = parsed.trace.event(parsed.event("first")).stack.clone();
        parsed.trace.events[id.index()].stack = inside;
        (cause_of(&parsed), parsed)
    };
    let (found, parsed) = cause(OFFERS);
    assert_eq!((found.pattern, found.case), (Pattern::SeveralVariables, Some("mixed-writes")));
    assert_eq!(found.events, events(&parsed, &["between", "first", "last"]), "{found:?}");
    // Who had not seen the other's best does not know of it, and has not overtaken it.
    let blind =
        OFFERS.replace("R best -> y", "R other -> y").replace("R best -> m", "R other -> m");
    assert_eq!(cause(&blind).0.case, Some("write-before-write"));
}
