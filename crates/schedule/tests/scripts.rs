//! Scripts of hand-written traces, and the orders that turns tell.

use encoders::dsl::{self, Parsed};
use model::{EventId, EventKind, Passage, Point, Points};
use schedule::{ObservedError, Script, failing, marks_for, observed, passing, prefix};

/// Every event at a gate of its own kind in `a.c`, with the thread's sync point behind it where
/// there is one; added releases and failures as the executor has them.
fn points(parsed: &Parsed) -> Points {
    let mut points = Points::default();
    for thread in &parsed.trace.threads {
        let mut here = Point::default();
        let mut seen: Vec<u32> = Vec::new();
        for &id in &thread.events {
            let kind = &parsed.trace.event(id).kind;
            let (site, sync) = match kind {
                EventKind::Start => ("~start", None),
                EventKind::Exit if thread.id.index() == 0 => ("", None),
                EventKind::Exit => ("~exit", None),
                EventKind::Read { .. } => ("a.c:f:read:x", None),
                EventKind::Write { .. } => ("a.c:f:write:x", None),
                EventKind::Lock { .. } => ("a.c:f:call:pthread_mutex_lock", Some("~mutex_lock")),
                EventKind::Unlock { synthetic: false, .. } => {
                    ("a.c:f:call:pthread_mutex_unlock", Some("~mutex_unlock"))
                }
                EventKind::Failure => ("a.c:f:call:__assert_fail", None),
                EventKind::Fork { .. } => ("a.c:main:call:pthread_create", Some("~create")),
                EventKind::Join { .. } => ("a.c:main:call:pthread_join", Some("~join")),
                _ => ("", None),
            };
            let mut pass = |name: &str| {
                let known = points.sites.iter().position(|site| site == name);
                let site = known.unwrap_or_else(|| {
                    points.sites.push(name.to_owned());
                    points.sites.len() - 1
                }) as u32;
                seen.push(site);
                let occurrence = seen.iter().filter(|&&other| other == site).count() as u64;
                Passage { site, occurrence }
            };
            if !site.is_empty() {
                let passage = pass(site);
                (here.site, here.occurrence) = (passage.site, passage.occurrence);
                here.first = true;
                match site.starts_with('~') {
                    true => here.syncs += 1,
                    false => here.gates += 1,
                }
                here.through = sync.map(pass);
                here.syncs += u64::from(sync.is_some());
            } else {
                here.first = false;
            }
            points.of.push(here);
        }
    }
    points
}

fn parse(text: &str) -> (Parsed, Points) {
    let parsed = dsl::parse(text).expect("a trace");
    let points = points(&parsed);
    (parsed, points)
}

/// The starts and forks, then the labelled events.
fn order(parsed: &Parsed, labels: &str) -> Vec<EventId> {
    let opening =
        |event: &&model::Event| matches!(event.kind, EventKind::Start | EventKind::Fork { .. });
    let opening = parsed.trace.events.iter().filter(opening).map(|event| event.id);
    opening.chain(labels.split_whitespace().map(|label| parsed.event(label))).collect()
}

/// A script without its comments.
fn plain(script: &Script) -> String {
    let mut script = script.clone();
    script.turns.iter_mut().for_each(|turn| turn.comment = None);
    script.to_string()
}

const LOST_UPDATE: &str = "
    m: fork a
    m: fork b
    a: [ar] R x -> p
    a: [aw] W x p + 1
    b: [br] R x -> q
    b: [bw] W x q + 1
    m: [ja] join a
    m: [jb] join b
    m: [mr] R x -> r
    m: [bug] fail r != 2
";

#[test]
fn a_lost_update_fails_by_two_switches() {
    let (parsed, points) = parse(LOST_UPDATE);
    let exits = |thread: usize| *parsed.trace.threads[thread].events.last().expect("an exit");
    let mut order = order(&parsed, "ar br bw");
    order.extend([exits(2), parsed.event("aw"), exits(1)]);
    order.extend(["ja", "jb", "mr", "bug"].map(|label| parsed.event(label)));
    let built = failing(&parsed.trace, &points, &order);
    assert_eq!(built.coarse, []);
    assert_eq!(
        plain(&built.script),
        "symbiosis-schedule 1
end hold
t0 > a.c:main:call:pthread_join
t0.1 > a.c:f:write:x
t0.2 > $
t0.1 > $
t0 !
"
    );
    assert_eq!(built.script.turns[1].comment.as_deref(), Some("trace:5"));
}

#[test]
fn a_passing_order_has_no_failure_in_it() {
    let (parsed, points) = parse(LOST_UPDATE);
    let built = passing(&parsed.trace, &points, &order(&parsed, "ar aw br bw ja jb mr bug"));
    assert_eq!(
        plain(&built.script),
        "symbiosis-schedule 1
end run
t0 > a.c:main:call:pthread_join
t0.1 > a.c:f:write:x +
t0.2 > a.c:f:write:x +
t0 > a.c:f:read:x +
"
    );
}

/// Behind the gate of a call of `pthread_mutex_lock` comes `~mutex_lock`, where the lock has not
/// been taken yet.
#[test]
fn past_a_lock_is_past_its_sync_point() {
    let (parsed, points) = parse(
        "m: fork a
         a: [l1] lock o
         a: [u1] unlock o
         a: [l2] lock o
         m: [w] W x 1
         m: [r] R x -> v
         m: [bug] fail v == 1",
    );
    let built = failing(&parsed.trace, &points, &order(&parsed, "l1 u1 l2 w r bug"));
    assert_eq!(
        plain(&built.script),
        "symbiosis-schedule 1
end hold
t0 > a.c:f:write:x
t0.1 > ~mutex_lock @2 +
t0 !
"
    );
}

/// The failing thread holds the lock to the end, so what others do with it is not part of the
/// script, although the order has it before the failure.
#[test]
fn nobody_has_to_take_the_lock_of_the_failing_thread() {
    let (parsed, points) = parse(
        "m: fork a
         a: [la] lock o
         a: [ra] R x -> v
         m: [lm] lock o
         m: [wm] W x 1
         m: [um] unlock o
         a: [bug] fail v == 0",
    );
    let built = failing(&parsed.trace, &points, &order(&parsed, "la ra lm wm um bug"));
    assert_eq!(plain(&built.script), "symbiosis-schedule 1\nend hold\nt0 > ~create +\nt0.1 !\n");
}

#[test]
fn another_path_starts_where_the_order_is_cut() {
    let (parsed, points) = parse(LOST_UPDATE);
    let order = order(&parsed, "ar br bw aw");
    let (until, then) = (parsed.event("ar"), parsed.event("bw"));
    let built = prefix(&parsed.trace, &points, &order, until, Some(then));
    assert_eq!(
        plain(&built.script),
        "symbiosis-schedule 1
end run
t0 > ~create @2 +
t0.2 > a.c:f:write:x +
"
    );
}

/// The failure of a thread that waits for ever can come before what others do: a run that goes another
/// way from a place behind it goes on with that thread, too.
#[test]
fn a_failure_before_the_cut_is_no_place_of_another_path() {
    let (parsed, points) = parse(
        "m: fork a
         a: [ra] R x -> v
         a: [bug] fail v == 0
         m: [w1] W x 1
         m: [w2] W x 2",
    );
    let order = order(&parsed, "ra bug w1 w2");
    let built = prefix(&parsed.trace, &points, &order, parsed.event("w2"), None);
    assert_eq!(
        plain(&built.script),
        "symbiosis-schedule 1
end run
t0 > a.c:f:write:x
t0.1 > a.c:f:read:x +
t0 > a.c:f:write:x @2
"
    );
}

#[test]
fn marks_are_numbered_on() {
    let (parsed, points) = parse(LOST_UPDATE);
    let mut script = Script::default();
    marks_for(&mut script, &parsed.trace, &points, &[parsed.event("aw")]);
    marks_for(&mut script, &parsed.trace, &points, &[parsed.event("jb"), EventId(99)]);
    assert_eq!(
        script.to_string(),
        "symbiosis-schedule 1
end run
mark 1 t0.1 a.c:f:write:x
mark 2 t0 a.c:main:call:pthread_join @2
"
    );
}

/// The record at which a thread has passed the point of an event.
fn at(parsed: &Parsed, points: &Points, label: &str) -> (usize, u64, u64) {
    let id = parsed.event(label);
    let point = points.of[id.index()];
    (parsed.trace.event(id).thread.index(), point.gates, point.syncs)
}

#[test]
fn a_call_that_waits_does_its_work_in_a_later_turn() {
    let (parsed, points) = parse(
        "m: fork a
         m: [lm] lock o
         m: [wm] W x 1
         m: [um] unlock o
         a: [la] lock o
         a: [ra] R x -> v
         a: [ua] unlock o",
    );
    let records = ["lm", "la", "um", "ra"].map(|label| at(&parsed, &points, label));
    let schedule = observed(&parsed.trace, &points, &records).expect("it fits");
    let seen = schedule.order.iter().filter_map(|id| {
        parsed.labels.iter().find(|(_, event)| *event == id).map(|(label, _)| label.as_str())
    });
    assert_eq!(seen.collect::<Vec<_>>(), ["lm", "wm", "um", "la", "ra", "ua"]);
    assert_eq!(schedule.order.len(), parsed.trace.events.len());
}

#[test]
fn a_wait_for_a_futex_looks_at_the_word_when_it_has_the_turn_again() {
    let (parsed, mut points) = parse(
        "m: fork a
         m: [w] W x 1
         m: [w2] W y 1
         a: [r] R x -> v
         a: [r2] R y -> z",
    );
    let site = u32::try_from(points.sites.len()).expect("few");
    points.sites.push("~futex_wait".to_owned());
    points.of[parsed.event("r").index()].through = Some(Passage { site, occurrence: 1 });
    let records = ["r", "w", "r2"].map(|label| at(&parsed, &points, label));
    let schedule = observed(&parsed.trace, &points, &records).expect("it fits");
    let place = |label: &str| schedule.order.iter().position(|&id| id == parsed.event(label));
    assert!(place("w") < place("r"), "{:?}", schedule.order);
}

#[test]
fn what_no_turn_covers_ends_with_the_thread_that_was_stopped_last() {
    let (parsed, points) = parse(
        "m: fork a
         a: [w1] W x 1
         a: [w2] W x 2
         m: [w3] W x 3
         m: [w4] W x 4",
    );
    let records = [at(&parsed, &points, "w3"), at(&parsed, &points, "w1")];
    let schedule = observed(&parsed.trace, &points, &records).expect("it fits");
    let place = |label: &str| schedule.order.iter().position(|&id| id == parsed.event(label));
    assert!(place("w3") < place("w1") && place("w1") < place("w4") && place("w4") < place("w2"));
}

#[test]
fn turns_of_another_run_are_refused() {
    let (parsed, points) = parse(LOST_UPDATE);
    let unknown = observed(&parsed.trace, &points, &[(7, 1, 1)]);
    assert_eq!(unknown, Err(ObservedError::UnknownThread { turn: 1, thread: 7, threads: 3 }));
    let back = observed(&parsed.trace, &points, &[(0, 2, 2), (1, 0, 1), (0, 2, 1)]);
    assert_eq!(back, Err(ObservedError::Backwards { turn: 3, thread: "t0".to_owned() }));
    let none = observed(&parsed.trace, &Points::default(), &[]);
    let events = parsed.trace.events.len();
    assert_eq!(none, Err(ObservedError::Points { points: 0, events }));
}
