use super::{CONTRADICTORY, INCOMPLETE, Possible, Run, TRIED, cells, possible, possible_elsewhere};
use crate::{Bug, Limits};
use encoders::dsl::{Parsed, parse};
use explain::Pattern;
use model::{EventKind, PathConditionKind, Point, Points, Site};
use std::collections::BTreeSet;
use std::time::Duration;

const LIMITS: Limits<'_> =
    Limits { time: Duration::from_secs(60), memory_mb: None, left: &|| Duration::MAX };

/// Two threads add to a total, and the initial thread looks at it when they have ended.
fn adders(step: &str, end: &str) -> Parsed {
    let own = step.replace('@', "a");
    let other = step.replace('@', "b");
    let text = format!(
        "t: fork a\n t: fork b\n t: join a\n t: join b\n t: R x -> f\n t: {end}\n{own}\n{other}"
    );
    parse(&text).expect("the text is a trace")
}

const UNLOCKED: &str = "@: [@-look] R x -> @1\n @: [@-write] W x @1 + 1";

/// Asks a run of the new program about a lost update of the old one; each event's site is called like this.
fn ask(run: &Parsed, site: &str) -> Possible {
    ask_of(run, site, false)
}

fn ask_of(run: &Parsed, site: &str, incomplete: bool) -> Possible {
    let failing = adders(UNLOCKED, "fail f != 2");
    let events = ["a-look", "b-write", "a-write"].map(|label| failing.event(label));
    let bug = Bug::by_hand(&failing.trace, Pattern::Atomicity, &events);
    let points =
        Points { sites: vec![site.to_owned()], of: vec![Point::default(); run.trace.events.len()] };
    let run = Run { trace: &run.trace, points: &points, functions: &BTreeSet::new(), incomplete };
    possible(&bug, run, LIMITS).expect("the solver answers")
}

/// Who takes an item at an index takes another one where the index is another one, and comes to its next access as well.
#[test]
fn which_element_a_thread_took_on_its_way_says_nothing() {
    let own = |thread: &str, index: u32| {
        UNLOCKED.replace("\n", &format!("\n @: assume @1 == {index}\n")).replace('@', thread)
    };
    let (own, other) = (own("a", 0), own("b", 1));
    let text = format!("t: fork a\n t: fork b\n t: join a\n t: join b\n{own}\n{other}");
    let mut run = parse(&text).expect("the text is a trace");
    let branches = ask(&run, "add:read:x");
    assert!(matches!(branches, Possible::No(_)), "{branches:?}");
    for condition in &mut run.trace.conditions {
        condition.kind = PathConditionKind::Address;
    }
    let elements = ask(&run, "add:read:x");
    assert!(matches!(elements, Possible::Yes { .. }), "{elements:?}");
}

/// That a run passed does not rule the order out: the order makes it fail.
#[test]
fn what_a_run_saw_behind_the_order_says_nothing_about_it() {
    let run = adders(UNLOCKED, "assume f == 2");
    let Possible::Yes { ways, .. } = ask(&run, "work") else {
        panic!("the order can come up");
    };
    let place = |order: &[model::EventId], label: &str| {
        order.iter().position(|event| *event == run.event(label)).expect("it is there")
    };
    // The first is to show that the initial thread finds another total then.
    let order = &ways.found[0].orders[0];
    let labels = ["a-look", "b-write", "a-write"].map(|label| place(order, label));
    let others = ["b-look", "a-write", "b-write"].map(|label| place(order, label));
    assert!(labels.is_sorted() || others.is_sorted(), "{order:?}");
    assert!(order.len() > ways.found[0].orders.last().expect("there is one").len());
}

#[test]
fn a_lock_rules_the_order_out_but_not_where_it_is_only_tried() {
    let locked = format!("@: lock m\n {UNLOCKED}\n @: unlock m");
    let run = adders(&locked, "assume f == 2");
    assert_eq!(ask(&run, "work"), Possible::No("`m` is held on both sides".to_owned()));
    let tried = ask(&run, "add.c:work:call:pthread_mutex_trylock");
    assert_eq!(tried, Possible::Unknown(TRIED.to_owned()));
    let elsewhere = ask(&run, "retry.c:_ZN8Registry3addEv:call:pthread_mutex_lock");
    assert_eq!(elsewhere, Possible::No("`m` is held on both sides".to_owned()));
}

/// `std::lock` tries all locks but one, and waits for that where it does not get another.
#[test]
fn a_lock_that_a_library_tries_until_it_has_all_of_them_rules_the_order_out() {
    let locked = format!("@: lock m\n {UNLOCKED}\n @: unlock m");
    let mut run = adders(&locked, "assume f == 2");
    let site = |file: &str, function: &str| Site {
        file: file.to_owned(),
        line: 1,
        column: 1,
        function: function.to_owned(),
    };
    for event in &mut run.trace.events {
        if matches!(event.kind, EventKind::Lock { .. }) {
            let header = "/usr/include/c++/12/mutex";
            let inner = site(header, "try_lock");
            let outer = site(header, "lock<std::mutex, std::mutex>");
            event.stack = [inner, outer, site("add.cc", "add")].into();
        }
    }
    let answer = ask(&run, "add.cc:add:call:pthread_mutex_trylock");
    assert_eq!(answer, Possible::No("`m` is held on both sides".to_owned()));
}

/// What had no name but an address when the old program failed is looked for by what is done to it, and where.
#[test]
fn what_has_no_name_is_found_again() {
    let text = format!("@: lock m\n {UNLOCKED}\n @: unlock m");
    let run = adders(&text, "assume f == 2");
    let mut failing = adders(UNLOCKED, "fail f != 2");
    for event in &mut failing.trace.events {
        event.name = event.name.take().map(|_| "*0x7f5a27c08010".into());
    }
    let events = ["a-look", "b-write", "a-write"].map(|label| failing.event(label));
    let bug = Bug::by_hand(&failing.trace, Pattern::Atomicity, &events);
    let (points, functions) = (&Points::default(), &BTreeSet::new());
    let run = Run { trace: &run.trace, points, functions, incomplete: false };
    let answer = possible(&bug, run, LIMITS).expect("an answer");
    assert_eq!(answer, Possible::No("`m` is held on both sides".to_owned()));
}

/// Whatever else a thread frees, it is not what the other one uses.
#[test]
fn only_the_object_that_is_used_matters_when_it_is_freed() {
    let text = |look: &str, unlock: &str, end: &str, more: &str| {
        format!(
            "cell p 32 = 1\nt: alloc h\n t: alloc g\n t: fork a\n t: fork b\n {look}\n a: [get] R p -> q\n a: assume q == 1\n \
             a: [use] R f -> u\n {unlock}\n {end}\n {more}\n b: lock m\n b: W p 0\n b: unlock m\n b: [free] free h"
        )
    };
    // Objects of one kind are called alike.
    let parsed = |text: String| {
        let mut parsed = parse(&text).expect("the text is a trace");
        for event in &mut parsed.trace.events {
            if matches!(event.kind, EventKind::Free { .. }) {
                event.name = Some("*entry".into());
            }
        }
        parsed
    };
    let failing = parsed(text("a: fence", "a: fence", "a: fail before free use", "b: fence"));
    let events = ["get", "free", "use"].map(|label| failing.event(label));
    let bug = Bug::by_hand(&failing.trace, Pattern::UseAfterFree, &events);
    let mut run = parsed(text("a: lock m", "a: unlock m", "a: fence", "b: [other] free g"));
    let ask = |run: &Parsed| {
        let (points, functions) = (&Points::default(), &BTreeSet::new());
        let run = Run { trace: &run.trace, points, functions, incomplete: false };
        possible(&bug, run, LIMITS).expect("an answer")
    };
    // Where that is not known, any of them may be it.
    let any = ask(&run);
    assert!(matches!(any, Possible::Yes { .. }), "{any:?}");
    run.trace.lifetimes.push((run.event("use"), run.event("free")));
    run.trace.intervals =
        vec![model::Interval { earliest: 0, latest: u64::MAX }; run.trace.events.len()];
    let known = ask(&run);
    assert!(matches!(known, Possible::No(_)), "{known:?}");
}

/// Who looks again when it was woken looks and uses under one lock: that something came between two looks does no harm.
#[test]
fn the_look_before_a_wait_is_not_the_use_behind_it() {
    let trace = |text: &str| {
        let mut parsed = parse(text).expect("the text is a trace");
        let labels: Vec<(String, model::EventId)> =
            parsed.labels.iter().map(|(label, id)| (label.clone(), *id)).collect();
        for (label, id) in labels {
            let line = if label.starts_with("look") { 18 } else { 23 };
            parsed.trace.events[id.index()].stack = [Site { line, ..Site::default() }].into();
        }
        parsed
    };
    let other = "b: lock m\n b: [take] W x 0\n b: signal c\n b: unlock m";
    let text = |again: &str, end: &str| {
        format!(
            "cell x 32 = 1\n a: lock m\n a: [look] R x -> p\n a: wait c m\n {again}\n a: [use] R x -> q\n {end}\n \
             {other}"
        )
    };
    let failing = trace(&text("a: fence", "a: fail q == 0"));
    let events = ["look", "take", "use"].map(|label| failing.event(label));
    let bug = Bug::by_hand(&failing.trace, Pattern::Atomicity, &events);
    let ask = |run: &Parsed| {
        let (points, functions) = (&Points::default(), &BTreeSet::new());
        let run = Run { trace: &run.trace, points, functions, incomplete: false };
        possible(&bug, run, LIMITS).expect("an answer")
    };
    // What a thread took in one call and looked at in the next one is not what it looked at and took.
    let more = "a: W x q + -1\n a: unlock m\n a: lock m\n a: [look3] R x -> s\n a: W x s + -1\n a: unlock m";
    let next = text("a: [look2] R x -> q", more).replace("a: [use] R x -> q\n", "");
    let next = ask(&trace(&next));
    assert!(matches!(next, Possible::No(_)), "{next:?}");
    let again = ask(&trace(&text("a: [look2] R x -> r", "a: unlock m")));
    assert_eq!(again, Possible::No("`m` is held on both sides".to_owned()));
    // The compiler may make one access of the second look and the use.
    let merged =
        text("a: [look2] R x -> q", "a: W y q\n a: unlock m").replace("a: [use] R x -> q\n", "");
    let merged = ask(&trace(&merged));
    assert!(matches!(merged, Possible::No(_)), "{merged:?}");
    // One that only looks may use it where this run did not come to.
    let looks = text("a: [look2] R x -> q", "a: unlock m").replace("a: [use] R x -> q\n", "");
    let looks = ask(&trace(&looks));
    assert!(!matches!(looks, Possible::No(_)), "{looks:?}");
    // Who never had to wait says nothing.
    let call = |look: &str| {
        format!("a: lock m\n a: [{look}] R x -> {look}\n a: W y {look}\n a: unlock m\n")
    };
    for calls in [call("look"), call("look") + &call("look2")] {
        let never = ask(&trace(&format!("cell x 32 = 1\n{calls}{other}")));
        assert!(!matches!(never, Possible::No(_)), "{calls}: {never:?}");
    }
    let once = ask(&trace(&text("a: fence", "a: unlock m")));
    assert!(!matches!(once, Possible::No(_)), "{once:?}");
}

/// Two jobs, of which the one that was given up was not looked at: that the initial thread had set up the other one before
/// says nothing about whether that can be given up in between.
#[test]
fn who_came_before_all_of_this_says_nothing() {
    let trace = |given_up: &str, end: &str| {
        let text = format!(
            "t: [set-0] W s0 1\n t: [set-1] W s1 1\n t: fork a\n t: fork c\n a: [look] R s0 -> p\n {end}\n \
             c: [give-up] W {given_up} 3\n t: join a\n t: join c"
        );
        let mut parsed = parse(&text).expect("the text is a trace");
        for event in &mut parsed.trace.events {
            event.name = event.name.take().map(|name| name.trim_end_matches(['0', '1']).into());
        }
        for (label, function) in [
            ("set-0", "main"),
            ("set-1", "main"),
            ("look", "work"),
            ("mark", "work"),
            ("give-up", "cancel"),
        ] {
            let id = parsed.event(label);
            let site = Site { function: function.to_owned(), ..Site::default() };
            parsed.trace.events[id.index()].stack = [site].into();
        }
        parsed
    };
    let failing = trace("s0", "a: [mark] W s0 2");
    let events = ["look", "give-up", "mark"].map(|label| failing.event(label));
    let bug = Bug::by_hand(&failing.trace, Pattern::Atomicity, &events);
    let run = trace("s1", "a: [mark] W s0 2");
    let functions = ["main", "work", "cancel"].map(str::to_owned).into();
    let run = Run {
        trace: &run.trace,
        points: &Points::default(),
        functions: &functions,
        incomplete: false,
    };
    let answer = possible(&bug, run, LIMITS).expect("an answer");
    assert_eq!(answer, Possible::Unknown(super::APART.to_owned()));
}

/// What leads a thread to the accesses counts: who sees the flag comes behind what it stands for.
#[test]
fn what_a_thread_saw_on_its_way_there_counts() {
    let text = |first: &str, then: &str, end: &str| {
        let text = format!(
            "t: fork a\n t: fork b\n a: {first}\n a: {then}\n b: R flag -> g\n b: assume g == 1\n \
             b: [get] R data -> d\n b: {end}"
        );
        parse(&text).expect("the text is a trace")
    };
    let failing = text("W flag 1", "[put] W data 7", "fail d != 7");
    let events = ["get", "put"].map(|label| failing.event(label));
    let bug = Bug::by_hand(&failing.trace, Pattern::Order, &events);
    let fixed = text("[put] W data 7", "W flag 1", "assume d == 7");
    let (points, functions) = (&Points::default(), &BTreeSet::new());
    let run = Run { trace: &fixed.trace, points, functions, incomplete: false };
    let answer = possible(&bug, run, LIMITS).expect("an answer");
    assert!(matches!(answer, Possible::No(_)), "{answer:?}");
    let buggy = text("W flag 1", "[put] W data 7", "assume d == 7");
    let run = Run { trace: &buggy.trace, points, functions, incomplete: false };
    let answer = possible(&bug, run, LIMITS).expect("an answer");
    assert!(matches!(answer, Possible::Yes { .. }), "{answer:?}");
}

/// Who adds in one step follows from nothing that it saw before.
#[test]
fn two_updates_in_one_step_each_are_not_the_look_and_the_write_of_one() {
    let run = adders("@: RMW x -> @1 = @1 + 1\n @: RMW x -> @2 = @2 + 1", "assume f == 4");
    let no = "`x` is looked at and changed in one step";
    assert_eq!(ask(&run, "work"), Possible::No(no.to_owned()));
    let run = adders("@: RMW x -> @1 = @1\n @: RMW x -> @2 = @1 + 1", "assume f == 2");
    assert!(matches!(ask(&run, "work"), Possible::Yes { .. }));
}

/// A thread that took another way before its second access says nothing about whether something comes in between.
#[test]
fn who_does_not_come_to_the_second_access_says_nothing() {
    let run = parse(
        "t: fork a\n t: fork b\n t: join a\n t: join b\n t: R x -> f\n t: W x f\n\
         a: [a-look] R x -> a1\n a: assume a1 == 0\n b: R x -> b1\n b: RMW x -> b2 = b2",
    )
    .expect("the text is a trace");
    assert!(!matches!(ask(&run, "work"), Possible::No(_)));
    // All that each does there is one section, whatever comes first in it.
    let turned = "@: lock m\n @: W x 5\n @: R x -> @1\n @: unlock m";
    let run = adders(turned, "assume f == 5");
    assert!(matches!(ask(&run, "work"), Possible::No(_)));
}

/// A thread that looks behind the other one's write, and sees it, says nothing about a look before it; one that looks before
/// it, and is done when it comes, does.
#[test]
fn what_was_seen_before_the_first_access_says_nothing() {
    let text = "t: fork a\n t: fork b\n t: join a\n t: join b\n t: R y -> f\n t: assume f == 0\n\
                b: [write] W x 1\n";
    let failing =
        format!("{text} a: [look] R x -> g\n a: assume g == 0\n a: [use] R x -> u\n a: W y u");
    let failing = failing.replace("t: assume f == 0", "t: fail f != 0");
    let failing = parse(&failing).expect("the text is a trace");
    let events = ["look", "write", "use"].map(|label| failing.event(label));
    let bug = Bug::by_hand(&failing.trace, Pattern::Atomicity, &events);
    let asked = |rest: &str| {
        let run = parse(&format!("{text}{rest}")).expect("the text is a trace");
        let run = Run {
            trace: &run.trace,
            points: &Points::default(),
            functions: &BTreeSet::new(),
            incomplete: false,
        };
        possible(&bug, run, LIMITS).expect("an answer")
    };
    let behind = asked("a: R x -> g\n a: assume g == 1\n a: R x -> u\n a: W y u + -1");
    assert_eq!(behind, Possible::Unknown(super::APART.to_owned()));
    let again = asked(
        "a: R x -> g\n a: assume g == 0\n a: R x -> u\n a: assume u == 0\n a: R x -> v\n a: W y v",
    );
    assert!(!matches!(again, Possible::Unknown(_)), "{again:?}");
}

/// A run that did not come to a function says nothing about what happens there, and what other functions do to the
/// variable says nothing either; but a function that is gone may be part of another one.
#[test]
fn a_function_that_a_run_did_not_come_to_is_not_taken_for_another_one() {
    let place = |parsed: &mut Parsed, label: &str, function: &str| {
        let id = parsed.event(label);
        let site = Site { function: function.to_owned(), ..Site::default() };
        parsed.trace.events[id.index()].stack = [site].into();
    };
    let text = "a: [len] R x -> p\n a: [get] R x -> q\n a: fail q < p\n b: [pop] W x 1";
    let mut failing = parse(text).expect("the text is a trace");
    let text = "a: lock m\n a: [len] R x -> p\n a: assume p == 1\n a: [again] R x -> q\n a: unlock m\n b: lock m\n \
                b: [pop] W x 1\n b: unlock m";
    let mut run = parse(text).expect("the text is a trace");
    for (label, function) in [("len", "len"), ("get", "get"), ("pop", "pop")] {
        place(&mut failing, label, function);
    }
    for (label, function) in [("len", "len"), ("again", "len"), ("pop", "pop")] {
        place(&mut run, label, function);
    }
    let events = ["len", "pop", "get"].map(|label| failing.event(label));
    let bug = Bug::by_hand(&failing.trace, Pattern::Atomicity, &events);
    let functions = ["len", "get", "pop"].map(str::to_owned).into();
    let run = Run {
        trace: &run.trace,
        points: &Points::default(),
        functions: &functions,
        incomplete: false,
    };
    let answer = possible(&bug, run, LIMITS).expect("an answer");
    assert!(matches!(answer, Possible::Untouched(_)), "{answer:?}");
    let merged = Run { functions: &BTreeSet::new(), ..run };
    let answer = possible(&bug, merged, LIMITS).expect("an answer");
    assert!(matches!(answer, Possible::No(_)), "{answer:?}");
}

/// Two threads that add to a total in a loop, in rounds of these statements, in which `$` is the round.
fn rounds(rounds: usize, step: &str) -> Parsed {
    let thread = |name: &str| -> String {
        let round = |round: usize| step.replace('@', name).replace('$', &round.to_string());
        (0..rounds).map(round).collect::<Vec<_>>().join("\n")
    };
    let text = format!(
        "t: fork a\n t: fork b\n t: join a\n t: join b\n t: R x -> f\n{}\n{}",
        thread("a"),
        thread("b")
    );
    parse(&text).expect("the text is a trace")
}

/// So many that asking about each other one would take forever.
#[test]
fn a_lock_rules_millions_of_combinations_out_and_no_lock_none() {
    const LOCKED: &str = "@: lock m\n @: R x -> @$\n @: W x @$ + 1\n @: unlock m";
    let no = Possible::No("`m` is held on both sides".to_owned());
    assert_eq!(ask(&rounds(1_500, LOCKED), "work"), no);
    let tried = ask(&rounds(100, LOCKED), "add.c:work:call:pthread_mutex_trylock");
    assert_eq!(tried, Possible::Unknown(TRIED.to_owned()));

    // Given back in between; held for reading; another one for each thread.
    let split = "@: lock m\n @: R x -> @$\n @: unlock m\n @: lock m\n @: W x @$ + 1\n @: unlock m";
    let shared = LOCKED.replace("lock m", "rdlock m").replace("unrdlock", "rdunlock");
    let own = LOCKED.replace("lock m", "lock m@");
    for step in [split, &shared, &own] {
        let run = rounds(30, step);
        let Possible::Yes { ways, .. } = ask(&run, "work") else {
            panic!("the order can come up: {step}");
        };
        // Some of nine hundred were asked.
        assert!(!ways.found.is_empty() && !ways.everywhere);
    }
    let Possible::Yes { ways, .. } = ask(&rounds(2, split), "work") else {
        panic!("the order can come up");
    };
    assert!(ways.everywhere);
}

/// What a thread saw keeps the others out, of which not all are asked.
/// Where the program passes with some of them, the others are asked about as well.
#[test]
fn all_places_are_asked_about_in_the_end() {
    let run = rounds(7, "@: R x -> @$\n @: W x @$ + 1");
    let failing = adders(UNLOCKED, "fail f != 2");
    let events = ["a-look", "b-write", "a-write"].map(|label| failing.event(label));
    let bug = Bug::by_hand(&failing.trace, Pattern::Atomicity, &events);
    let points = Points {
        sites: vec!["work".to_owned()],
        of: vec![Point::default(); run.trace.events.len()],
    };
    let functions = &BTreeSet::new();
    let run = Run { trace: &run.trace, points: &points, functions, incomplete: false };
    let ways = |answer| match answer {
        Possible::Yes { ways, .. } => ways,
        other => panic!("{other:?}"),
    };
    let some = ways(possible(&bug, run, LIMITS).expect("the solver answers"));
    assert!(!some.everywhere && !some.found.is_empty());
    let all = ways(possible_elsewhere(&bug, run, LIMITS).expect("the solver answers"));
    assert!(all.everywhere && !all.found.is_empty());
}

#[test]
fn some_of_many_say_nothing_about_the_others() {
    let turns = |round: usize, number: usize, other: &str| {
        let step =
            "@: R turn -> t@$\n @: assume t@$ == N\n @: R x -> @$\n @: W x @$ + 1\n @: W turn O";
        let step = step.replace('N', &(2 * round + number).to_string());
        let step = step.replace('O', &(2 * round + number + 1).to_string());
        step.replace('@', if other == "b" { "a" } else { "b" }).replace('$', &round.to_string())
    };
    let run = |rounds: usize| {
        let own: Vec<String> = (0..rounds).map(|round| turns(round, 0, "b")).collect();
        let other: Vec<String> = (0..rounds).map(|round| turns(round, 1, "a")).collect();
        let text = format!(
            "t: fork a\n t: fork b\n t: join a\n t: join b\n t: R x -> f\n{}\n{}",
            own.join("\n"),
            other.join("\n")
        );
        parse(&text).expect("the text is a trace")
    };
    assert!(matches!(ask(&run(3), "work"), Possible::No(_)));
    // What only values rule out is not ruled out where they are not all known.
    let unknown = Possible::Unknown(INCOMPLETE.to_owned());
    assert_eq!(ask_of(&run(3), "work", true), unknown);
    let locked = adders(&format!("@: lock m\n {UNLOCKED}\n @: unlock m"), "assume f == 2");
    let held = Possible::No("`m` is held on both sides".to_owned());
    assert_eq!(ask_of(&locked, "work", true), held);
    let Possible::Unknown(why) = ask(&run(30), "work") else { panic!("not all were asked") };
    assert!(why.contains("in 1800 ways") && why.contains("near 60 of these"), "{why}");
}

/// Somebody says in each of some rounds that something is there, and somebody else takes it: before it is there in the old
/// program.
fn quay(rounds: usize, steps: [&str; 2]) -> Parsed {
    let puts = |round: usize| {
        let steps = steps.map(|step| format!("a: {}\n", step.replace('$', &round.to_string())));
        steps.concat()
    };
    let gets = |round: usize| {
        format!(
            "b: R there -> t{round}\n b: assume t{round} > {round}\n b: R place{round} -> p{round}\n \
             b: assume p{round} == 7\n"
        )
    };
    let all = (0..rounds).map(puts).chain((0..rounds).map(gets));
    parse(&all.collect::<String>()).expect("the text is a trace")
}

/// Both accesses of the one thread come between the two of the other, and each pair is about the same: the next round's
/// are not.
#[test]
fn of_two_accesses_each_both_come_in_the_order_of_the_failure() {
    let failing = parse(
        "a: [say] W there 1\n a: [put] W place0 7\n b: [look] R there -> t\n b: assume t > 0\n \
         b: [get] R place0 -> p\n b: fail p != 7",
    )
    .expect("the text is a trace");
    let ask = |run: &Parsed, order: [&str; 4]| {
        let events = order.map(|label| failing.event(label));
        let bug = Bug::by_hand(&failing.trace, Pattern::SeveralVariables, &events);
        let (points, functions) = (&Points::default(), &BTreeSet::new());
        let run = Run { trace: &run.trace, points, functions, incomplete: false };
        possible(&bug, run, LIMITS).expect("an answer")
    };
    let inside = ["say", "look", "get", "put"];
    // By the names that the old program had for them.
    let steps = ["W place$ 7", "W there $ + 1"];
    let named = |mut run: Parsed| {
        for event in &mut run.trace.events {
            let place = event.name.as_deref().is_some_and(|name| name.starts_with("place"));
            event.name = event.name.take().map(|name| if place { "place0".into() } else { name });
        }
        run
    };
    for rounds in [2, 12] {
        let fixed = named(quay(rounds, steps));
        let answer = ask(&fixed, inside);
        assert!(matches!(answer, Possible::No(_)), "{rounds}: {answer:?}");
        let [put, say] = steps;
        let buggy = named(quay(rounds, [say, put]));
        let Possible::Yes { ways, .. } = ask(&buggy, inside) else {
            panic!("the order can come up");
        };
        assert!(!ways.found.is_empty());
    }
    // One after the other: what is taken before it is there, which who waits for the word does not do any more.
    let fixed = named(quay(2, steps));
    let answer = ask(&fixed, ["look", "get", "say", "put"]);
    assert!(matches!(answer, Possible::No(_)), "{answer:?}");
    let buggy = named(quay(2, [steps[1], steps[0]]));
    let answer = ask(&buggy, ["look", "get", "say", "put"]);
    assert!(matches!(answer, Possible::Yes { .. }), "{answer:?}");
    // Each in the other.
    let crossed = ["look", "say", "get", "put"];
    let answer = ask(&buggy, crossed);
    assert!(matches!(answer, Possible::No(_)), "{answer:?}");
}

/// Who says that something is there when it is there keeps others from taking it before, if they look whether it is.
#[test]
fn what_is_announced_when_it_is_there_is_not_taken_before() {
    let trace = |rounds: usize, steps: [&str; 2], looks: bool, end: &str| {
        let round = |n: usize| {
            let [first, then] = steps.map(|step| step.replace('$', &n.to_string()));
            let look = if looks { format!("b: assume t{n} == 1\n") } else { String::new() };
            format!(
                "a: {first}\n a: {then}\n b: [look{n}] R slot{n} -> t{n}\n {look} b: [get{n}] R data{n} -> p{n}\n"
            )
        };
        let text = (0..rounds).map(round).collect::<String>() + end;
        let mut parsed = parse(&text).expect("the text is a trace");
        // One name for those of all rounds, as the elements of an array have.
        for event in &mut parsed.trace.events {
            let name = event.name.take();
            event.name = name.map(|name| name.trim_end_matches(['0', '1']).into());
        }
        parsed
    };
    let (say, put) = ("[say$] W slot$ 1", "[put$] W data$ 7");
    let failing = trace(1, [say, put], true, "b: fail p0 != 7");
    let events = ["say0", "look0", "get0", "put0"].map(|label| failing.event(label));
    let bug = Bug::by_hand(&failing.trace, Pattern::SeveralVariables, &events);
    let ask = |looks: bool| {
        let run = trace(2, [put, say], looks, "");
        let (points, functions) = (&Points::default(), &BTreeSet::new());
        let run = Run { trace: &run.trace, points, functions, incomplete: false };
        possible(&bug, run, LIMITS).expect("an answer")
    };
    let fixed = ask(true);
    assert!(matches!(fixed, Possible::No(_)), "{fixed:?}");
    let without_a_look = ask(false);
    assert!(matches!(without_a_look, Possible::Yes { .. }), "{without_a_look:?}");
}

/// That a wait behind the accesses came to its end in the run that passed keeps nothing from coming between them: with the
/// order of the cause the program hangs.
#[test]
fn what_was_waited_for_behind_the_accesses_says_nothing() {
    let looks =
        "a: lock m\n a: [a-look] R x -> a1\n a: unlock m\n a: lock m\n a: [a-write] W x a1 + 1";
    let puts = "b: lock m\n b: [b-look] R x -> b1\n b: [b-write] W x b1 + 1";
    for (waits, tells) in
        [("wait c m\n a: unlock m", "signal c"), ("unlock m\n a: sem-wait s", "post s")]
    {
        let text = format!(
            "sem s 0\n t: fork a\n t: fork b\n t: join a\n t: join b\n t: R x -> f\n{looks}\n a: {waits}\n{puts}\n \
             b: {tells}\n b: unlock m"
        );
        let run = parse(&text).expect("the text is a trace");
        let answer = ask(&run, "work");
        let Possible::Yes { ways, .. } = &answer else { panic!("{tells}: {answer:?}") };
        assert!(!ways.found.is_empty(), "{tells}: {answer:?}");
    }
}

/// Nor does that something was not to be had behind the accesses when somebody tried to get it: with the order of the cause
/// it may be, as it is where those who had taken it wait for it no longer.
#[test]
fn what_was_not_to_be_had_behind_the_accesses_says_nothing() {
    let (own, other) = (UNLOCKED.replace('@', "a"), UNLOCKED.replace('@', "b"));
    for (units, after, before, behind) in [
        (1, "a: sem-wait s", "b: fence", "b: sem-failed s"),
        (0, "a: sem-wait s", "b: post s", "b: sem-failed s\n a: sem-failed s"),
        (0, "a: trylock-failed m", "b: lock m\n b: unlock m", "b: fence"),
    ] {
        let text = format!(
            "sem s {units}\n t: fork a\n t: fork b\n t: join a\n t: join b\n t: R x -> f\n{own}\n {after}\n {before}\n{other}\n \
             {behind}"
        );
        let run = parse(&text).expect("the text is a trace");
        let answer = ask(&run, "work");
        let Possible::Yes { ways, .. } = &answer else { panic!("{after}: {answer:?}") };
        assert!(!ways.found.is_empty(), "{after}: {answer:?}");
    }
}

/// A run that has no schedule at all by what is known of it rules nothing out.
#[test]
fn a_run_that_is_not_understood_rules_nothing_out() {
    let (own, other) = (UNLOCKED.replace('@', "a"), UNLOCKED.replace('@', "b"));
    // Who tried found nothing, though it was there and nobody took it.
    let text = format!(
        "sem s 1\n t: fork a\n t: fork b\n t: join a\n t: join b\n t: R x -> f\n a: sem-failed s\n{own}\n b: sem-failed s\n{other}"
    );
    let run = parse(&text).expect("the text is a trace");
    assert_eq!(ask(&run, "work"), Possible::Unknown(CONTRADICTORY.to_owned()));
}

/// The trace of a text, whose accesses have this name, in functions by label.
fn named(text: &str, name: &str, functions: &[(&str, &str)]) -> Parsed {
    let mut parsed = parse(text).expect("the text is a trace");
    for event in parsed.trace.events.iter_mut().filter(|event| !cells(event).is_empty()) {
        event.name = Some(name.into());
    }
    for (label, function) in functions {
        let id = parsed.event(label);
        let site = Site { function: (*function).to_owned(), ..Site::default() };
        parsed.trace.events[id.index()].stack = [site].into();
    }
    parsed
}

fn ask_about(failing: &Parsed, events: [&str; 3], run: &Parsed, functions: &[&str]) -> Possible {
    let events = events.map(|label| failing.event(label));
    let bug = Bug::by_hand(&failing.trace, Pattern::Atomicity, &events);
    let functions = functions.iter().map(|function| (*function).to_owned()).collect();
    let points = &Points::default();
    let run = Run { trace: &run.trace, points, functions: &functions, incomplete: false };
    possible(&bug, run, LIMITS).expect("an answer")
}

/// Where the cause's accesses are to one place, those of the new program that belong together are, too: an update of one
/// object's count is not the look before the update of another one's.
#[test]
fn two_accesses_of_one_place_are_looked_for_at_one_place() {
    let down = |who: &str, what: &str| format!("RMW {what} -> {who}{what} = {who}{what} - 1\n");
    let old = format!(
        "cell x 32 = 2\n a: [down] {} a: [look] R x -> p\n a: fail p == 0\n b: [other] {}",
        down("a", "x"),
        down("b", "x")
    );
    let new = format!(
        "cell x 32 = 2\n cell y 32 = 2\n a: {} a: assume ax == 2\n a: {} b: {} b: {}",
        down("a", "x"),
        down("a", "y"),
        down("b", "x"),
        down("b", "y")
    );
    let [old, new] = [old, new].map(|text| named(&text, "users", &[]));
    let answer = ask_about(&old, ["down", "other", "look"], &new, &[]);
    assert_eq!(answer, Possible::No("`users` is looked at and changed in one step".to_owned()));
}

/// The look was made by a function that others still call, and is made under the lock of the change now.
#[test]
fn a_look_that_came_to_the_change_is_found_there() {
    let functions = [("look", "left"), ("sale", "sell"), ("other", "sell")];
    let old = "cell x 32 = 1\n a: [look] R x -> p\n a: assume p == 1\n a: [sale] R x -> q\n a: fail q == 0\n \
               b: [other] W x 0";
    let old = named(old, "seats", &functions);
    let ask_in = |sells: &str, function: &'static str, functions: &[&str]| {
        let again = sells.replace("@1", "@3").replace("@2", "@4").replace("@p", "@q");
        let twice = format!("{sells}\n {again}");
        let own = twice.replace('@', "a");
        let other = twice.replace('@', "b");
        let new = format!(
            "cell x 32 = 3\n t: fork a\n t: fork b\n t: join a\n t: join b\n t: [end] R x -> e\n {own}\n {other}"
        );
        let sold = ["a1", "a2", "a3", "a4", "b1", "b2", "b3", "b4"].map(|label| (label, function));
        let new = named(&new, "seats", &[&[("end", "left")], &sold[..]].concat());
        ask_about(&old, ["look", "other", "sale"], &new, functions)
    };
    let ask = |sells: &str| ask_in(sells, "sell", &["left", "sell"]);
    let together =
        ask("@: lock m\n @: [@1] R x -> @p\n @: assume @p > 0\n @: [@2] W x @p - 1\n @: unlock m");
    assert_eq!(
        together,
        Possible::No("`m` is held from the look at `seats` to its change".to_owned())
    );
    // Looked at in one section, and changed in another one.
    let apart = ask(
        "@: lock m\n @: [@1] R x -> @p\n @: assume @p > 0\n @: unlock m\n @: lock m\n @: [@2] W x @p - 1\n @: unlock m",
    );
    assert!(!matches!(apart, Possible::No(_)), "{apart:?}");
    // In a function of another name, when the one of the cause is gone.
    let renamed =
        "@: lock m\n @: [@1] R x -> @p\n @: assume @p > 0\n @: [@2] W x @p - 1\n @: unlock m";
    let renamed = ask_in(renamed, "sell_one", &["left"]);
    assert!(matches!(renamed, Possible::No(_)), "{renamed:?}");
    // Somebody writes it by another name, and without the lock.
    let held =
        "@: lock m\n @: [@1] R x -> @p\n @: assume @p > 0\n @: [@2] W x @p - 1\n @: unlock m";
    let mut aliased = named(
        &format!("{}\n b: [alias] W x 7", held.replace('@', "a")),
        "seats",
        &[("a1", "sell"), ("a2", "sell"), ("alias", "left")],
    );
    let alias = aliased.event("alias");
    aliased.trace.events[alias.index()].name = Some("*pointer".into());
    let aliased = ask_about(&old, ["look", "other", "sale"], &aliased, &["left", "sell"]);
    assert!(!matches!(aliased, Possible::No(_)), "{aliased:?}");
    // What is read there is gone by nowhere: the look is elsewhere.
    let unasked = ask("@: lock m\n @: [@1] R x -> @p\n @: [@2] W x @p - 1\n @: unlock m");
    assert!(!matches!(unasked, Possible::No(_)), "{unasked:?}");
}

/// What all threads had is each thread's own now, and the function that used it has done all that it does.
#[test]
fn what_nobody_else_uses_any_more_is_not_overwritten() {
    let of = |text: &str, look: &str| named(text, "buffer", &[("look", look), ("write", "fill")]);
    let old =
        of("a: [first] R x -> f\n a: [look] R x -> p\n a: fail p == 1\n b: [write] W x 1", "tell");
    let ask = |run: &str, functions: &[&str]| {
        let mut run = named(run, "buffer", &[("own", "tell"), ("write", "fill")]);
        let own = run.event("own");
        run.trace.events[own.index()].name = Some("mine".into());
        let events = ["write", "look"].map(|label| old.event(label));
        let bug = Bug::by_hand(&old.trace, Pattern::Order, &events);
        let functions = functions.iter().map(|function| (*function).to_owned()).collect();
        let points = &Points::default();
        let run = Run { trace: &run.trace, points, functions: &functions, incomplete: false };
        possible(&bug, run, LIMITS).expect("an answer")
    };
    let alone = ask("a: [own] R y -> p\n b: [write] W x 1", &[]);
    assert_eq!(
        alone,
        Possible::No("what `tell` uses is used by no other thread at the same time".to_owned())
    );
    let unfinished = ask("a: [own] R y -> p\n b: [write] W x 1", &["tell"]);
    assert!(matches!(unfinished, Possible::Untouched(_)), "{unfinished:?}");
    let shared = ask("a: [own] R y -> p\n b: [write] W x 1\n b: W y 2", &[]);
    assert!(matches!(shared, Possible::Untouched(_)), "{shared:?}");
    let elsewhere = ask("a: [own] R y -> p\n b: [write] W x 1\n c: R x -> q", &[]);
    assert!(!matches!(elsewhere, Possible::No(_)), "{elsewhere:?}");
}

/// What was read for the look and again for the use is read once; but not by another function that the thread comes to as well,
/// nor where nobody writes it meanwhile.
#[test]
fn what_is_read_once_does_not_change_between_look_and_use() {
    // Functions by label, and the line of `copy` that calls each, if it does.
    let of = |text: &str, calls: &[(&str, &str, Option<u32>)]| {
        let mut parsed = named(text, "length", &[]);
        for (label, function, line) in calls {
            let id = parsed.event(label);
            let site = |function: &str, line| {
                let (file, function) = ("copy.c".to_owned(), function.to_owned());
                Site { file, function, line, ..Site::default() }
            };
            let outer = line.map(|line| site("copy", line));
            let stack: Vec<Site> = [site(function, 50)].into_iter().chain(outer).collect();
            parsed.trace.events[id.index()].stack = stack.into();
        }
        parsed
    };
    let old = "a: [look] R x -> p\n a: assume p == 0\n a: [use] R x -> q\n a: fail q == 9\n b: [set] W x 9";
    let (look, set) = (("look", "fits", Some(2)), ("set", "grow", None));
    let old = of(old, &[look, ("use", "size", Some(4)), set]);
    let ask = |run: &str, calls: &[(&str, &str, Option<u32>)]| {
        ask_about(&old, ["look", "set", "use"], &of(run, calls), &["fits", "size", "grow"])
    };
    let answer = ask("a: [look] R x -> p\n b: [set] W x 9", &[look, set]);
    assert_eq!(answer, Possible::No("`length` is read once in `copy`".to_owned()));
    let again = "a: [look] R x -> p\n a: [again] R x -> q\n b: [set] W x 9";
    for other in [("again", "fits", Some(2)), ("again", "fits", None)] {
        let answer = ask(again, &[look, other, set]);
        assert!(!matches!(answer, Possible::No(_)), "{other:?}: {answer:?}");
    }
    let answer = ask("t: [set] W x 9\n t: fork a\n a: [look] R x -> p", &[look, set]);
    assert!(!matches!(answer, Possible::No(_)), "{answer:?}");
}
