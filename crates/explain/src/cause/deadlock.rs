//! Threads that wait for each other: what each holds, and what it asks for.

use super::package_locks::{self, Hold};
use super::story::Story;
use super::words::{apart, at, place, quoted};
use super::{Found, Pattern};
use model::names;
use model::{Awaited, Event, EventId, EventKind, FailureKind, LockMode, ObjectId, ThreadId};
use std::collections::BTreeSet;

/// Functions that are async-signal-safe and may take any time.
const MAY_BLOCK_IN_HANDLERS: [&str; 24] = [
    "accept",
    "clock_nanosleep",
    "connect",
    "fcntl",
    "fdatasync",
    "fsync",
    "nanosleep",
    "open",
    "openat",
    "pause",
    "poll",
    "pselect",
    "read",
    "recv",
    "recvfrom",
    "recvmsg",
    "select",
    "send",
    "sendmsg",
    "sendto",
    "sigsuspend",
    "sleep",
    "tcdrain",
    "write",
];

/// A thread that waits for another one.
#[derive(Clone, Copy, Debug)]
struct Wait {
    /// Its request.
    block: EventId,
    /// Who has to get on.
    on: ThreadId,
    /// Where that one got what is waited for; `None` when it is waited for itself.
    held: Option<EventId>,
}

pub(super) fn find(story: &Story<'_>) -> Option<Found> {
    let failure = story.trace().failure.as_ref()?;
    if !matches!(failure.kind, FailureKind::Deadlock | FailureKind::Hang) {
        return None;
    }
    let waits: Vec<Wait> = blocks(story).flat_map(|block| waits_of(story, block)).collect();
    match circle(story, &waits) {
        Some(circle) => Some(told(story, &circle)),
        None => unsafe_call(story)
            .or_else(|| starved(story, &waits, false))
            .or_else(|| left_behind(story, &waits))
            .or_else(|| abandoned(story, &waits)),
    }
}

fn blocks<'s>(story: &'s Story<'_>) -> impl Iterator<Item = &'s Event> {
    story.trace().events.iter().filter(|event| matches!(event.kind, EventKind::Block { .. }))
}

/// Whom a thread waits for.
fn waits_of(story: &Story<'_>, block: &Event) -> Vec<Wait> {
    let EventKind::Block { on } = block.kind else { return Vec::new() };
    let wait = |on, held| Wait { block: block.id, on, held };
    match on {
        Awaited::Lock { object, mode } => {
            let mut waits: Vec<Wait> = holders(story, object)
                .filter(|(_, held)| mode == LockMode::Exclusive || *held == LockMode::Exclusive)
                .map(|(acquired, _)| wait(story.event(acquired).thread, Some(acquired)))
                .collect();
            if waits.is_empty() && mode == LockMode::Shared {
                // A lock that lets waiting writers go first.
                let writers = blocks(story).filter(|other| {
                    let wanted = Awaited::Lock { object, mode: LockMode::Exclusive };
                    other.kind == EventKind::Block { on: wanted }
                });
                waits.extend(writers.map(|writer| wait(writer.thread, Some(writer.id))));
            }
            waits
        }
        Awaited::Unit { object } => {
            let units = units(story, object).into_iter();
            units.map(|unit| wait(story.event(unit).thread, Some(unit))).collect()
        }
        Awaited::End { child } => vec![wait(child, None)],
        Awaited::Other | Awaited::Change => {
            let Some((asks, held)) = package_locks::waited_for(story, block) else {
                return Vec::new();
            };
            let on = |hold: &Hold| story.event(hold.event).thread;
            held.iter()
                .map(|hold| Wait { block: asks.event, on: on(hold), held: Some(hold.event) })
                .collect()
        }
        Awaited::Signal { .. } | Awaited::Arrivals { .. } | Awaited::Call => Vec::new(),
    }
}

/// Who holds a lock at the end: the acquisitions.
fn holders<'s>(
    story: &'s Story<'_>,
    lock: ObjectId,
) -> impl Iterator<Item = (EventId, LockMode)> + 's {
    story.trace().events.iter().filter_map(move |release| {
        let EventKind::Unlock { object, mode, synthetic: true } = release.kind else { return None };
        let own = story.trace().threads[release.thread.index()].events.iter().rev().copied();
        let mut earlier = own.filter(|id| story.event(*id).index < release.index);
        let acquired = earlier.find(
            |id| matches!(story.event(*id).kind, EventKind::Lock { object: o, .. } if o == object),
        );
        acquired.filter(|_| object == lock).map(|acquired| (acquired, mode))
    })
}

/// The waits by which threads have units of a semaphore at the end. None where units are handed from thread to thread, as
/// they are by who announces work: a thread that took one has nothing to give back.
fn units(story: &Story<'_>, semaphore: ObjectId) -> Vec<EventId> {
    let mut held = Vec::new();
    let mut given = Vec::new();
    let mut takers: BTreeSet<ThreadId> = BTreeSet::new();
    for thread in &story.trace().threads {
        let mut taken = Vec::new();
        for &id in &thread.events {
            match story.event(id).kind {
                EventKind::SemaphoreWait { object } if object == semaphore => {
                    taken.push(id);
                    takers.insert(thread.id);
                }
                EventKind::SemaphorePost { object } if object == semaphore => {
                    given.extend(taken.pop().is_none().then_some(id));
                }
                _ => {}
            }
        }
        held.extend(taken);
    }
    // One that begins without units is opened before anybody else is there to take one.
    let fork_of = |taker: ThreadId| {
        let events = story.trace().events.iter();
        let mut forks = events.filter(|event| event.kind == EventKind::Fork { child: taker });
        forks.next().map(|fork| fork.id)
    };
    let there: Vec<(ThreadId, Option<EventId>)> =
        takers.into_iter().map(|taker| (taker, fork_of(taker))).collect();
    let is_handed = given.iter().any(|post| {
        let mut others = there.iter().filter(|(taker, _)| *taker != story.event(*post).thread);
        others.any(|(_, fork)| fork.is_none_or(|fork| story.before(fork, *post)))
    });
    if is_handed { Vec::new() } else { held }
}

/// A shortest circle of threads that wait for each other, from its first thread on.
fn circle(story: &Story<'_>, waits: &[Wait]) -> Option<Vec<Wait>> {
    let starts = story.trace().threads.iter().map(|thread| thread.id);
    let circles = starts.filter_map(|start| circle_from(story, waits, start));
    circles.min_by_key(Vec::len)
}

fn circle_from(story: &Story<'_>, waits: &[Wait], start: ThreadId) -> Option<Vec<Wait>> {
    let from = |wait: &Wait| story.event(wait.block).thread;
    let mut paths: Vec<Vec<Wait>> =
        waits.iter().filter(|wait| from(wait) == start).map(|wait| vec![*wait]).collect();
    for _ in 0..=story.trace().threads.len() {
        if let Some(found) = paths.iter().find(|path| path.last().is_some_and(|w| w.on == start)) {
            return Some(found.clone());
        }
        let mut longer = Vec::new();
        for path in &paths {
            let Some(last) = path.last() else { continue };
            for wait in waits.iter().filter(|wait| from(wait) == last.on) {
                let known = path.iter().any(|other| from(other) == last.on)
                    || longer.iter().any(|other: &Vec<Wait>| {
                        other.last().is_some_and(|w| w.block == wait.block && w.on == wait.on)
                    });
                if !known {
                    longer.push(path.iter().copied().chain([*wait]).collect());
                }
            }
        }
        paths = longer;
    }
    None
}

fn told(story: &Story<'_>, circle: &[Wait]) -> Found {
    let clauses: Vec<String> = circle.iter().map(|wait| clause(story, circle, wait)).collect();
    let sentence = match &clauses[..] {
        [] => String::new(),
        [only] => only.clone(),
        [first, rest @ ..] => format!("{first}, while {}", rest.join(", and ")),
    };
    let mut events: Vec<EventId> = Vec::new();
    for wait in circle {
        events.extend(wait.held.filter(|held| !events.contains(held)));
        if !events.contains(&wait.block) {
            events.push(wait.block);
        }
    }
    Found::new(Pattern::Deadlock, sentence, &events)
}

/// ``t0.1 waits for `stock` (shop.c:11), which t0.2 took (shop.c:20)``.
fn clause(story: &Story<'_>, circle: &[Wait], wait: &Wait) -> String {
    let me = story.thread(wait.block);
    let other = &story.trace().threads[wait.on.index()].name;
    let Some(held) = wait.held else {
        return format!("{me} waits for the end of {other} ({})", at(story, wait.block));
    };
    let what = quoted(&lock_among(story, circle, wait.block));
    let [place, got] = match apart(story, wait.block, held) {
        places if places[0] != at(story, wait.block) => places,
        _ => [wait.block, held].map(|id| among(story, circle, id)),
    };
    let how = if matches!(story.event(held).kind, EventKind::Block { .. }) {
        format!("which {other} waits for to write ({got})")
    } else if let Some(signal) = interrupted_by(story, wait.block).filter(|_| me == other)
        && interrupted_by(story, held).is_none()
    {
        return format!(
            "{me} waits for {what} ({place}) in a handler of {signal}, which interrupted it while it held that \
             ({got})"
        );
    } else if me == other {
        let left = story.has_returned(held, wait.block)
            || story.event(held).stack == story.event(wait.block).stack;
        match left {
            true => format!("which it took itself before ({got}) and did not give back"),
            false => format!("which it took itself ({got})"),
        }
    } else {
        format!("which {other} took ({got})")
    };
    format!("{me} waits for {what} ({place}), {how}")
}

/// What a lock of a circle is called: where another one of it has the same name in its own class's functions, as the callers
/// of these have it.
fn lock_among(story: &Story<'_>, circle: &[Wait], id: EventId) -> String {
    let name = story.subject(id);
    let Some(object) = story.event(id).kind.object() else { return name };
    let is_namesake = |wait: &Wait| {
        let other = story.event(wait.block).kind.object();
        other.is_some_and(|other| other != object) && story.subject(wait.block) == name
    };
    if !circle.iter().any(is_namesake) {
        return name;
    }
    let outside = names::lock_from_outside(object, story.trace().events.iter());
    outside.map_or(name, str::to_owned)
}

/// The place of an event of a circle. Where one of another lock lies on the same line, with the nearest call that tells
/// the two apart.
fn among(story: &Story<'_>, circle: &[Wait], id: EventId) -> String {
    let plain = at(story, id);
    let object = story.event(id).kind.object();
    let events = circle.iter().flat_map(|wait| wait.held.into_iter().chain([wait.block]));
    let others = events.filter(|other| story.event(*other).kind.object() != object);
    let mut told = others.map(|other| apart(story, id, other)).map(|[own, _]| own);
    told.find(|own| *own != plain).unwrap_or(plain)
}

/// The signal in whose handler an event happens.
fn interrupted_by(story: &Story<'_>, id: EventId) -> Option<String> {
    story.event(id).stack.interruption().map(|interruption| names::signal(interruption.signal))
}

/// A signal's handler that interrupted a library's function calls a function that does not come back.
fn unsafe_call(story: &Story<'_>) -> Option<Found> {
    blocks(story).find_map(|block| {
        let interruption = block.stack.interruption()?;
        let inside = interruption.inside.as_deref()?;
        let called = block.name.as_deref()?;
        if !matches!(block.kind, EventKind::Block { on: Awaited::Call })
            || MAY_BLOCK_IN_HANDLERS.contains(&called)
        {
            return None;
        }
        let interrupted = block.stack.interrupted().iter().find(|site| !site.is_in_library());
        let interrupted = interrupted.map_or_else(String::new, |site| format!(" ({})", place(site)));
        let sentence = format!(
            "a handler of {} interrupted {} in {}{interrupted}, and does not come back from its own call of {} ({}): \
             only functions that are async-signal-safe may be called in a handler",
            names::signal(interruption.signal),
            story.thread(block.id),
            quoted(inside),
            quoted(called),
            at(story, block.id)
        );
        let found = Found::new(Pattern::Deadlock, sentence, &[block.id]);
        Some(Found { case: Some("unsafe-in-handler"), ..found })
    })
}

/// Who has a lock, which, and since where; who waits for it, and where.
fn parts(story: &Story<'_>, wait: &Wait, held: EventId) -> [String; 5] {
    [
        story.thread(held).to_owned(),
        quoted(&story.subject(held)),
        at(story, held),
        story.thread(wait.block).to_owned(),
        at(story, wait.block),
    ]
}

/// What a thread held when another one forked: the child has the lock, and not the thread.
fn left_behind(story: &Story<'_>, waits: &[Wait]) -> Option<Found> {
    if !story.trace().forked {
        return None;
    }
    let waits_itself = |thread: ThreadId| blocks(story).any(|block| block.thread == thread);
    let left = waits.iter().find_map(|wait| Some((wait, wait.held?)));
    let (wait, held) = left.filter(|(wait, _)| !waits_itself(wait.on))?;
    let [holder, lock, taken, waiter, place] = parts(story, wait, held);
    let sentence = format!(
        "{holder} had taken {lock} ({taken}) when the process forked, and {waiter} waits for it in the child ({place}), \
         in which {holder} does not exist"
    );
    let found = Found::new(Pattern::Deadlock, sentence, &[held, wait.block]);
    Some(Found { case: Some("held-at-fork"), ..found })
}

/// A lock was never given back: whoever took it has ended.
fn abandoned(story: &Story<'_>, waits: &[Wait]) -> Option<Found> {
    let ended = |thread: ThreadId| {
        let events = &story.trace().threads[thread.index()].events;
        events.iter().any(|id| story.event(*id).kind == EventKind::Exit)
    };
    let (wait, held) =
        waits.iter().find_map(|wait| Some((wait, wait.held?)).filter(|_| ended(wait.on)))?;
    let [holder, lock, taken, waiter, place] = parts(story, wait, held);
    let sentence = format!(
        "{holder} took {lock} ({taken}) and ended without giving it back, and {waiter} waits for it ({place})"
    );
    let found = Found::new(Pattern::Deadlock, sentence, &[held, wait.block]);
    Some(Found { case: Some("never-given-back"), ..found })
}

/// Where nothing else can be said: who waits while it has what another one needs, apart from the failing thread.
pub(super) fn find_apart(story: &Story<'_>) -> Option<Found> {
    let failure = story.trace().failure.as_ref()?;
    if failure.kind != FailureKind::Hang {
        return None;
    }
    let waits: Vec<Wait> = blocks(story).flat_map(|block| waits_of(story, block)).collect();
    starved(story, &waits, true)
}

/// Is a wait what the failing thread waits for in the end? Where it waits for a signal that has nothing to do with that,
/// the two may be idle: of workers that take jobs in turns one waits for the next job, and the others for the lock that
/// it has meanwhile.
fn concerns_failure(story: &Story<'_>, waits: &[Wait], wait: &Wait) -> bool {
    let failing = story.trace().failure.as_ref().map(|failure| story.event(failure.event).thread);
    let Some(failing) = failing else { return true };
    let mut reached = BTreeSet::from([failing]);
    while let Some(next) = waits.iter().find(|next| {
        reached.contains(&story.event(next.block).thread) && !reached.contains(&next.on)
    }) {
        reached.insert(next.on);
    }
    let is_signalled = blocks(story).any(|block| {
        let is_for_signal = matches!(block.kind, EventKind::Block { on: Awaited::Signal { .. } });
        block.thread == failing && is_for_signal
    });
    !is_signalled || reached.contains(&wait.on)
}

/// No circle of locks: a thread waits for a signal, for others at a barrier, or in a call that does not come back,
/// and has what others need to go on, who might end that wait; or it and they are `idle`.
fn starved(story: &Story<'_>, waits: &[Wait], idle: bool) -> Option<Found> {
    let starving = waits.iter().filter_map(|wait| {
        let held = wait.held?;
        let holder = blocks(story).find(|block| block.thread == wait.on)?;
        let EventKind::Block { on } = holder.kind else { return None };
        if concerns_failure(story, waits, wait) == idle {
            return None;
        }
        let how = match on {
            Awaited::Signal { .. } | Awaited::Arrivals { .. } => {
                format!(
                    "waits for {} ({})",
                    quoted(&story.subject(holder.id)),
                    at(story, holder.id)
                )
            }
            Awaited::Call => {
                format!("does not come back from the call at {}", at(story, holder.id))
            }
            // As the ends of a channel do.
            Awaited::Other if holder.is_in_synchronisation() => {
                let called = holder.called_of_rusts_library();
                let called = called.map_or_else(|| "the library".to_owned(), quoted);
                format!("waits in {called} ({})", at(story, holder.id))
            }
            _ => return None,
        };
        Some((wait, held, holder.id, how))
    });
    // Who asks for the lock where its holder took it does what that one does, and would hardly end its wait.
    let (wait, held, holder, how) =
        starving.min_by_key(|(wait, held, ..)| at(story, wait.block) == at(story, *held))?;
    let sentence = format!(
        "{} {how} while it holds {} ({}), for which {} waits ({})",
        story.thread(holder),
        quoted(&story.subject(held)),
        at(story, held),
        story.thread(wait.block),
        at(story, wait.block)
    );
    let found = Found::new(Pattern::Deadlock, sentence, &[held, holder, wait.block]);
    Some(Found { case: Some("waits-while-holding"), ..found })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Side;
    use crate::cause::Passing;
    use encoders::dsl::parse;
    use model::evaluate::Evaluation;
    use model::{EventTrace, Interruption, Schedule, Site, Stack};

    /// What is said of two threads that have a lock each and ask for the other's, all at these lines of `lock.c`, called at
    /// lines of `pool.c`.
    fn said(lines: [(u32, u32); 4]) -> String {
        let text = "
            t0: [one] lock m
            t0: [ask] W a 1
            t0: [end] unlock m
            t0: fail
            a: [two] lock n
            a: [want] W b 1
            a: [over] unlock n
        ";
        let mut parsed = parse(text).expect("the text is a trace");
        let [one, ask, two, want] = ["one", "ask", "two", "want"].map(|label| parsed.event(label));
        let [m, n] = [one, two].map(|id| parsed.trace.event(id).kind.object().expect("a lock"));
        for (id, object) in [(ask, n), (want, m)] {
            let on = Awaited::Lock { object, mode: LockMode::Exclusive };
            parsed.trace.events[id.index()].kind = EventKind::Block { on };
        }
        for id in ["end", "over"].map(|label| parsed.event(label)) {
            if let EventKind::Unlock { synthetic, .. } = &mut parsed.trace.events[id.index()].kind {
                *synthetic = true;
            }
        }
        for (id, (line, caller)) in [one, ask, two, want].into_iter().zip(lines) {
            let site = |file: &str, line| Site { file: file.to_owned(), line, ..Site::default() };
            let event = &mut parsed.trace.events[id.index()];
            event.stack = vec![site("lock.c", line), site("pool.c", caller)].into();
            event.name = Some("this->mutex".into());
        }
        if let Some(failure) = &mut parsed.trace.failure {
            failure.kind = FailureKind::Deadlock;
        }
        let trace = &parsed.trace;
        let schedule = Schedule { order: trace.events.iter().map(|event| event.id).collect() };
        let evaluation = Evaluation::default();
        let side = Side { trace, schedule: &schedule, evaluation: &evaluation, points: None };
        find(&Story::new(side, None, Passing::None)).expect("they wait for each other").sentence
    }

    #[test]
    fn locks_that_are_taken_on_one_line_are_told_apart_by_the_calls() {
        assert_eq!(
            said([(9, 30), (8, 31), (8, 40), (8, 41)]),
            "t0 waits for `this->mutex` (lock.c:8, called at pool.c:31), which t0.1 took (lock.c:8, called at \
             pool.c:40), while t0.1 waits for `this->mutex` (lock.c:8, called at pool.c:41), which t0 took (lock.c:9)"
        );
        assert_eq!(
            said([(1, 30), (2, 31), (3, 40), (4, 41)]),
            "t0 waits for `this->mutex` (lock.c:2), which t0.1 took (lock.c:3), while t0.1 waits for `this->mutex` \
             (lock.c:4), which t0 took (lock.c:1)"
        );
    }

    /// What is said of a thread that took a unit and asks for another one, after who `posts` a unit, if anybody does.
    fn asked_again(posts: &str) -> Option<String> {
        let text = format!(
            "
            sem s 1
            a: [took] sem-wait s
            {posts}
            a: [ask] W n 1
            t0: fail
        "
        );
        let mut parsed = parse(&text).expect("the text is a trace");
        let [took, ask] = ["took", "ask"].map(|label| parsed.event(label));
        let object = parsed.trace.event(took).kind.object().expect("a semaphore");
        let on = Awaited::Unit { object };
        parsed.trace.events[ask.index()].kind = EventKind::Block { on };
        if let Some(failure) = &mut parsed.trace.failure {
            failure.kind = FailureKind::Hang;
        }
        let trace = &parsed.trace;
        let mut order: Vec<EventId> = trace.events.iter().map(|event| event.id).collect();
        order.sort_by_key(|id| *id == ask);
        let schedule = Schedule { order };
        let evaluation = Evaluation::default();
        let side = Side { trace, schedule: &schedule, evaluation: &evaluation, points: None };
        find(&Story::new(side, None, Passing::None)).map(|found| found.sentence)
    }

    #[test]
    fn who_is_handed_units_by_others_holds_none() {
        let itself = asked_again("").expect("a thread waits for itself");
        assert!(itself.contains("which it took itself"), "{itself}");
        assert_eq!(asked_again("b: post s"), None);
    }

    /// What is said of a thread of a process that hangs in the call of `called`, in a handler that interrupted `inside`.
    fn interrupted(inside: Option<&str>, called: &str) -> Option<String> {
        let mut parsed = parse("a: [ask] W n 1\n t0: fail").expect("the text is a trace");
        let ask = parsed.event("ask");
        let event = &mut parsed.trace.events[ask.index()];
        let site = |line| Site { file: "log.c".to_owned(), line, ..Site::default() };
        event.kind = EventKind::Block { on: Awaited::Call };
        event.name = Some(called.into());
        let inside = inside.map(str::to_owned);
        let interruption = Interruption { signal: 10, inside, outer: 1 };
        event.stack = Stack::from([site(3), site(7)]).in_handler(interruption);
        said_of_hang(&mut parsed.trace)
    }

    fn said_of_hang(trace: &mut EventTrace) -> Option<String> {
        if let Some(failure) = &mut trace.failure {
            failure.kind = FailureKind::Hang;
        }
        let schedule = Schedule { order: trace.events.iter().map(|event| event.id).collect() };
        let evaluation = Evaluation::default();
        let side = Side { trace, schedule: &schedule, evaluation: &evaluation, points: None };
        find(&Story::new(side, None, Passing::None)).map(|found| found.sentence)
    }

    #[test]
    fn a_handler_that_interrupted_the_library_and_calls_it_is_told() {
        let told = interrupted(Some("malloc"), "fprintf").expect("the call is told");
        let said = "a handler of SIGUSR1 interrupted t0 in `malloc` (log.c:7), and does not come back from its own \
                    call of `fprintf` (log.c:3): only functions that are async-signal-safe may be called in a handler";
        assert_eq!(told, said);
        assert_eq!(
            interrupted(Some("malloc"), "read"),
            None,
            "it may be called, and may take its time"
        );
        assert_eq!(interrupted(None, "fprintf"), None, "the program's own code was interrupted");
    }

    /// What is said of two workers that wait, one for a job with the lock that the other one asks for, where the thread
    /// whose wait is the failure waits for a signal or, if it `joins`, for the first of them.
    fn idle(joins: bool) -> [Option<String>; 2] {
        let text = "
            t0: R n -> v
            a: [took] lock m
            a: [job] W n 1
            a: [left] unlock m
            b: [next] W n 2
            t0: [wait] W k 1
            t0: fail
        ";
        let mut parsed = parse(text).expect("the text is a trace");
        let [took, job, left] = ["took", "job", "left"].map(|label| parsed.event(label));
        let [next, wait] = ["next", "wait"].map(|label| parsed.event(label));
        let lock = parsed.trace.event(took).kind.object().expect("a lock");
        let worker = parsed.trace.event(took).thread;
        let for_signal = Awaited::Signal { condition: lock };
        let kinds = [
            (job, for_signal),
            (next, Awaited::Lock { object: lock, mode: LockMode::Exclusive }),
            (wait, if joins { Awaited::End { child: worker } } else { for_signal }),
        ];
        for (id, on) in kinds {
            parsed.trace.events[id.index()].kind = EventKind::Block { on };
        }
        if let EventKind::Unlock { synthetic, .. } = &mut parsed.trace.events[left.index()].kind {
            *synthetic = true;
        }
        let trace = &mut parsed.trace;
        for event in trace.events.iter_mut().filter(|event| event.kind == EventKind::Exit) {
            event.kind = EventKind::Fence;
        }
        let failure = trace.failure.as_mut().expect("a failure");
        (failure.kind, failure.event) = (FailureKind::Hang, wait);
        let schedule = Schedule { order: trace.events.iter().map(|event| event.id).collect() };
        let evaluation = Evaluation::default();
        let side = Side { trace, schedule: &schedule, evaluation: &evaluation, points: None };
        let story = Story::new(side, None, Passing::None);
        [find(&story), find_apart(&story)].map(|found| found.map(|found| found.sentence))
    }

    #[test]
    fn workers_that_are_idle_are_no_cause_of_a_wait_for_a_signal() {
        let [told, in_want_of_more] = idle(false);
        assert_eq!(told, None);
        let said = in_want_of_more.expect("nothing else can be said");
        assert!(said.contains("while it holds"), "{said}");
        let [told, _] = idle(true);
        let said = told.expect("it waits for the worker");
        assert!(said.contains("while it holds"), "{said}");
    }

    /// Of those that wait for the lock of a thread in a call, who does the same is not the one that the call waits for.
    #[test]
    fn who_asks_for_the_lock_elsewhere_is_told() {
        let text = "
            a: [took] lock m
            a: [call] W n 1
            a: [left] unlock m
            b: [same] W n 2
            c: [other] W n 3
            t0: fail
        ";
        let mut parsed = parse(text).expect("the text is a trace");
        let [took, call, left] = ["took", "call", "left"].map(|label| parsed.event(label));
        let [same, other] = ["same", "other"].map(|label| parsed.event(label));
        let object = parsed.trace.event(took).kind.object().expect("a lock");
        let lock = Awaited::Lock { object, mode: LockMode::Exclusive };
        for (id, on) in [(call, Awaited::Call), (same, lock), (other, lock)] {
            parsed.trace.events[id.index()].kind = EventKind::Block { on };
        }
        if let EventKind::Unlock { synthetic, .. } = &mut parsed.trace.events[left.index()].kind {
            *synthetic = true;
        }
        let place = parsed.trace.event(took).stack.clone();
        parsed.trace.events[same.index()].stack = place;
        for event in parsed.trace.events.iter_mut().filter(|event| event.kind == EventKind::Exit) {
            event.kind = EventKind::Fence;
        }
        let told = said_of_hang(&mut parsed.trace).expect("the lock is held over the call");
        assert!(told.ends_with("for which t0.2 waits (trace:6)"), "{told}");
    }

    /// A package's locks are words that it updates, and who waits for one sleeps on a futex.
    #[test]
    fn a_circle_of_locks_of_a_package_is_told() {
        let text = "
            t0: [one] RMW m -> a = 1
            t0: [ask] RMW n -> b = b
            t0: [sleep] W s 1
            t0: fail
            a: [two] RMW n -> c = 1
            a: [want] RMW m -> d = d
            a: [doze] W d 1
        ";
        let mut parsed = parse(text).expect("the text is a trace");
        let raw = "/home/me/.cargo/registry/src/index-0a1b/dashmap-6.2.1/src/lock.rs";
        let api = "/home/me/.cargo/registry/src/index-0a1b/lock_api-0.4.14/src/rwlock.rs";
        let site = |file: &str, function: &str, line| Site {
            file: file.to_owned(),
            function: function.to_owned(),
            line,
            ..Site::default()
        };
        let lines =
            [("one", 50), ("ask", 54), ("sleep", 54), ("two", 50), ("want", 54), ("doze", 54)];
        for (label, line) in lines {
            let id = parsed.event(label);
            let event = &mut parsed.trace.events[id.index()];
            let inside = site(raw, "lock_exclusive", 1);
            event.stack =
                vec![inside, site(api, "write", 2), site("lib.rs", "transfer", line)].into();
            event.name = Some("self.wallets".into());
            if ["sleep", "doze"].contains(&label) {
                event.kind = EventKind::Block { on: Awaited::Other };
            }
        }
        let told = said_of_hang(&mut parsed.trace).expect("they wait for each other");
        assert_eq!(
            told,
            "t0 waits for `self.wallets` (lib.rs:54), which t0.1 took (lib.rs:50), while t0.1 waits for \
             `self.wallets` (lib.rs:54), which t0 took (lib.rs:50)"
        );
    }

    #[test]
    fn a_lock_that_was_held_at_the_fork_is_left_behind() {
        let text = "a: [took] lock m\n a: [left] unlock m\n t0: [ask] W n 1\n t0: fail";
        let said = |forked: bool| {
            let mut parsed = parse(text).expect("the text is a trace");
            let [took, left, ask] = ["took", "left", "ask"].map(|label| parsed.event(label));
            let object = parsed.trace.event(took).kind.object().expect("a lock");
            let on = Awaited::Lock { object, mode: LockMode::Exclusive };
            parsed.trace.events[ask.index()].kind = EventKind::Block { on };
            if let EventKind::Unlock { synthetic, .. } = &mut parsed.trace.events[left.index()].kind
            {
                *synthetic = true;
            }
            parsed.trace.forked = forked;
            said_of_hang(&mut parsed.trace)
        };
        let told = said(true).expect("the lock was left behind");
        assert!(told.starts_with("t0 had taken "), "{told}");
        assert!(
            told.contains("when the process forked, and t0.1 waits for it in the child"),
            "{told}"
        );
        assert!(said(false).is_none_or(|told| !told.contains("forked")));
    }
}
