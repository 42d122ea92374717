//! After a patch of a deadlock: do threads of a run still take its locks in a circle, or wait for what else it was about
//! while they hold one of them?

use super::{Possible, Ways};
use crate::Bug;
use crate::sections::{Sections, lock_name, sections_and_units};
use explain::last_member;
use model::{Awaited, Event, EventId, EventKind, EventTrace, LockMode, ObjectId, ThreadId};
use std::collections::BTreeSet;

/// What a thread waits for that is no lock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Wait {
    Signal,
    Unit,
    Arrivals,
    End,
}

impl Wait {
    /// What the threads of the deadlock waited for. `None` where that is not seen in a run that passes.
    fn all_of(bug: &Bug<'_>) -> Option<BTreeSet<Self>> {
        let mut waits = BTreeSet::new();
        for id in bug.events {
            let EventKind::Block { on } = bug.trace.event(*id).kind else { continue };
            waits.insert(match on {
                Awaited::Lock { .. } => continue,
                Awaited::Signal { .. } => Self::Signal,
                Awaited::Unit { .. } => Self::Unit,
                Awaited::Arrivals { .. } => Self::Arrivals,
                Awaited::End { .. } => Self::End,
                Awaited::Change | Awaited::Call | Awaited::Other => return None,
            });
        }
        Some(waits)
    }

    /// What a thread waited for that has gone on.
    fn of(event: &Event) -> Option<Self> {
        match event.kind {
            EventKind::Wake { .. } | EventKind::WaitTimedOut { .. } => Some(Self::Signal),
            EventKind::SemaphoreWait { .. } => Some(Self::Unit),
            EventKind::BarrierLeave { .. } => Some(Self::Arrivals),
            EventKind::Join { .. } => Some(Self::End),
            _ => None,
        }
    }
}

/// Asks a run that passed.
pub(super) fn circle(bug: &Bug<'_>, run: &EventTrace) -> Possible {
    let old = bug.events.iter().filter_map(|id| bug.trace.event(*id).kind.object());
    let old: BTreeSet<ObjectId> = old.collect();
    let names: BTreeSet<String> =
        old.iter().map(|object| last_member(&lock_name(bug.trace, *object))).collect();
    let all = sections_and_units(run);
    let objects = run.objects.iter().map(|object| object.id);
    let known: BTreeSet<ObjectId> =
        objects.filter(|object| names.contains(&last_member(&lock_name(run, *object)))).collect();
    let Some(waits) = Wait::all_of(bug) else {
        let why = "what a thread waits for in a call is not seen in a run that passes";
        return Possible::Unknown(why.to_owned());
    };
    if old.len() < 2 && waits.iter().all(|wait| *wait == Wait::Unit) {
        return of_one(bug, run, &all, &known);
    }
    let waited = |event: &Event| {
        let object = event.kind.object();
        let wait = Wait::of(event).filter(|_| object.is_none_or(|it| known.contains(&it)));
        wait.filter(|wait| waits.contains(wait))
    };
    let seen: BTreeSet<Wait> = run.events.iter().filter_map(waited).collect();
    if seen != waits {
        return Possible::Untouched(
            "in the run no thread waits for what the threads of the deadlock waited for".to_owned(),
        );
    }
    // A semaphore that threads give back themselves is a lock.
    let locks: BTreeSet<EventId> = all.iter().map(|section| section.lock).collect();
    let mut waited = run.events.iter().filter(|e| waited(e).is_some() && !locks.contains(&e.id));
    let mut waits = false;
    let open = waited.find_map(|event| {
        waits = true;
        let own = event.kind.object();
        let held = all.around(run, event.id).into_iter().find(|section| {
            known.contains(&section.object)
                && Some(section.object) != own
                && section.unlock != event.id
        })?;
        let what = match own {
            Some(object) => format!("`{}`", lock_name(run, object)),
            None => "the end of a thread".to_owned(),
        };
        Some(format!("{what} is waited for while `{}` is held", lock_name(run, held.object)))
    });
    match open {
        Some(place) => Possible::Yes { place, ways: Ways::default() },
        None => of_locks(run, &all, &known, waits),
    }
}

/// Does a thread take the one lock of the deadlock where it waited for it, and not have it then? That one is kept, or not
/// given back on some way, no run shows that does not go that way.
fn of_one(bug: &Bug<'_>, run: &EventTrace, all: &Sections, known: &BTreeSet<ObjectId>) -> Possible {
    let events = || bug.events.iter().map(|id| bug.trace.event(*id));
    let has = |thread: ThreadId| {
        events().any(|event| event.thread == thread && matches!(event.kind, EventKind::Lock { .. }))
    };
    let asked = |event: &Event| match event.kind {
        EventKind::Block { on: Awaited::Lock { mode, .. } } if has(event.thread) => {
            Some((mode, event.site().function.clone()))
        }
        _ => None,
    };
    let asked: Vec<(LockMode, String)> = events().filter_map(asked).collect();
    if asked.is_empty() {
        return Possible::Unknown(
            "whether a lock is kept or not given back on some way is not seen in a run that passes"
                .to_owned(),
        );
    }
    let taken = |event: &&Event| matches!(event.kind, EventKind::Lock { object, .. } if known.contains(&object));
    let again = |event: &&Event| {
        let around = all.around(run, event.id);
        around.iter().any(|it| Some(it.object) == event.kind.object() && it.lock != event.id)
    };
    let mut taken_again = run.events.iter().filter(taken).filter(again);
    let name = |event: &Event| event.kind.object().map(|it| lock_name(run, it)).unwrap_or_default();
    if let Some(event) = taken_again.next() {
        let place = format!("`{}` is taken while the thread has it", name(event));
        return Possible::Yes { place, ways: Ways::default() };
    }
    let there = |event: &&Event| {
        let EventKind::Lock { mode, .. } = event.kind else { return false };
        asked.iter().any(|(how, function)| *how == mode && *function == event.site().function)
    };
    match run.events.iter().filter(taken).find(there) {
        Some(event) => Possible::No(format!(
            "where the thread waited for it, `{}` is taken by threads that do not have it",
            name(event)
        )),
        None => Possible::Untouched(
            "in the run the lock is not taken where the thread waited for it".to_owned(),
        ),
    }
}

/// Do threads take locks in a circle? Where none waits for anything else that the deadlock was about, several have to take
/// some.
fn of_locks(
    run: &EventTrace,
    all: &Sections,
    known: &BTreeSet<ObjectId>,
    waited: bool,
) -> Possible {
    let mut threads: BTreeSet<ThreadId> = BTreeSet::new();
    let mut edges = BTreeSet::new();
    for section in all.iter().filter(|section| known.contains(&section.object)) {
        threads.insert(run.event(section.lock).thread);
        for outer in all.around(run, section.lock) {
            if outer.object != section.object && known.contains(&outer.object) {
                edges.insert((outer.object, section.object));
            }
        }
    }
    if threads.len() < 2 && !waited {
        return Possible::Unknown(
            "in the run the locks are not taken by several threads".to_owned(),
        );
    }
    // Longer circles than of two locks go through every lock: each is entered and left.
    let mut open: Vec<_> = edges.iter().copied().collect();
    loop {
        let before = open.len();
        let entered: BTreeSet<_> = open.iter().map(|edge| edge.1).collect();
        let left: BTreeSet<_> = open.iter().map(|edge| edge.0).collect();
        open.retain(|(from, to)| entered.contains(from) && left.contains(to));
        if open.len() == before {
            break;
        }
    }
    match (open.first(), edges.first()) {
        (Some((from, to)), _) => Possible::Yes {
            place: format!(
                "`{}` is taken while `{}` is held, and the other way round",
                lock_name(run, *to),
                lock_name(run, *from)
            ),
            ways: Ways::default(),
        },
        (None, _) if waited => {
            Possible::No("no thread waits for it while it holds one of the locks".to_owned())
        }
        (None, Some((from, to))) => {
            let [from, to] = [from, to].map(|lock| lock_name(run, *lock));
            Possible::No(match from == to {
                true => format!("the locks that are called `{to}` are taken in one order"),
                false => format!("the locks are taken in one order, `{from}` before `{to}`"),
            })
        }
        (None, None) => {
            Possible::No("no thread takes one of the locks while it holds another".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use encoders::dsl::{Parsed, parse};
    use explain::Pattern;

    /// Asks a run of the new program about a deadlock over `m` and what a thread waits for.
    fn ask(run: &str, on: impl Fn(&Parsed) -> Awaited) -> Possible {
        let mut failing = parse(
            "sem s 0
 a: [take] lock m
 a: [wait] lock n
 a: unlock n
 a: unlock m
 b: lock m
 \
             b: [signal] signal c
 b: [post] post s
 b: unlock m",
        )
        .expect("the text is a trace");
        let kind = EventKind::Block { on: on(&failing) };
        let wait = failing.event("wait");
        failing.trace.events[wait.index()].kind = kind;
        let events = [failing.event("take"), wait];
        let bug = Bug::by_hand(&failing.trace, Pattern::Deadlock, &events);
        circle(&bug, &parse(run).expect("the text is a trace").trace)
    }

    fn object(failing: &Parsed, label: &str) -> ObjectId {
        failing.trace.event(failing.event(label)).kind.object().expect("it has an object")
    }

    fn is_open(answer: &Possible, what: &str) -> bool {
        matches!(answer, Possible::Yes { place, .. } if place == what)
    }

    #[test]
    fn who_waits_for_a_signal_with_a_lock_still_may_and_without_one_may_not() {
        let on = |failing: &Parsed| Awaited::Signal { condition: object(failing, "signal") };
        let run = "a: lock m\n a: lock n\n a: wait c n\n a: unlock n\n a: unlock m\n b: lock n\n b: signal c\n b: unlock n";
        let answer = ask(run, on);
        assert!(is_open(&answer, "`c` is waited for while `m` is held"), "{answer:?}");
        let run = run.replace("a: lock m\n", "").replace("\n a: unlock m", "");
        assert!(matches!(ask(&run, on), Possible::No(_)), "{:?}", ask(&run, on));
        // The mutex that is given back is none.
        let run = run.replace("lock n", "lock m").replace("wait c n", "wait c m");
        assert!(matches!(ask(&run, on), Possible::No(_)), "{:?}", ask(&run, on));
        let nobody = "a: lock m\n a: lock n\n a: unlock n\n a: unlock m\n b: lock m\n b: signal c\n b: unlock m";
        assert!(matches!(ask(nobody, on), Possible::Untouched(_)), "{:?}", ask(nobody, on));
    }

    #[test]
    fn who_waits_for_a_unit_or_an_end_with_a_lock_still_may() {
        let on = |failing: &Parsed| Awaited::Unit { object: object(failing, "post") };
        let run = "sem s 0\n a: lock m\n a: sem-wait s\n a: unlock m\n b: post s\n b: lock m\n b: unlock m";
        let answer = ask(run, on);
        assert!(is_open(&answer, "`s` is waited for while `m` is held"), "{answer:?}");
        let run = run.replace("a: lock m\n a: sem-wait s", "a: sem-wait s\n a: lock m");
        assert!(matches!(ask(&run, on), Possible::No(_)), "{:?}", ask(&run, on));

        let on = |_: &Parsed| Awaited::End { child: ThreadId(1) };
        let run = "t: fork a\n t: lock m\n t: join a\n t: unlock m\n a: lock m\n a: unlock m";
        let answer = ask(run, on);
        let open = "the end of a thread is waited for while `m` is held";
        assert!(is_open(&answer, open), "{answer:?}");
        let run = run.replace("t: join a\n t: unlock m", "t: unlock m\n t: join a");
        assert!(matches!(ask(&run, on), Possible::No(_)), "{:?}", ask(&run, on));
    }

    /// A thread waits for the lock that it has.
    #[test]
    fn one_lock_is_taken_again_or_not_and_elsewhere_says_nothing() {
        let on = |failing: &Parsed| Awaited::Lock {
            object: object(failing, "take"),
            mode: LockMode::Exclusive,
        };
        let again =
            "a: rdlock m\n a: rdlock m\n a: rdunlock m\n a: rdunlock m\n b: lock m\n b: unlock m";
        let answer = ask(again, on);
        assert!(is_open(&answer, "`m` is taken while the thread has it"), "{answer:?}");
        let once = "a: rdlock m\n a: rdunlock m\n b: lock m\n b: unlock m";
        assert!(matches!(ask(once, on), Possible::No(_)), "{:?}", ask(once, on));
        // Nobody writes any more where the thread asked to.
        let reads = "a: rdlock m\n a: rdunlock m\n b: rdlock m\n b: rdunlock m";
        assert!(matches!(ask(reads, on), Possible::Untouched(_)), "{:?}", ask(reads, on));
        // What a call does that does not come back.
        let kept = ask(once, |_| Awaited::Call);
        assert!(matches!(kept, Possible::Unknown(_)), "{kept:?}");
        // Nobody waits for a unit, so nobody does with the lock.
        let on = |failing: &Parsed| Awaited::Unit { object: object(failing, "post") };
        let nobody = format!("sem s 0\n {once}\n b: post s");
        assert!(matches!(ask(&nobody, on), Possible::Untouched(_)), "{:?}", ask(&nobody, on));
    }

    /// Both give their units back: these are locks.
    #[test]
    fn semaphores_as_locks_are_taken_in_an_order() {
        let on = |failing: &Parsed| Awaited::Unit { object: object(failing, "post") };
        let run = "sem s 1\n a: lock m\n a: sem-wait s\n a: post s\n a: unlock m\n b: sem-wait s\n b: lock m\n \
                   b: unlock m\n b: post s";
        let answer = ask(run, on);
        assert!(matches!(answer, Possible::Yes { .. }), "{answer:?}");
        let run = run.replace("b: sem-wait s\n b: lock m", "b: lock m\n b: sem-wait s");
        let run = run.replace("b: unlock m\n b: post s", "b: post s\n b: unlock m");
        assert!(matches!(ask(&run, on), Possible::No(_)), "{:?}", ask(&run, on));
    }
}
