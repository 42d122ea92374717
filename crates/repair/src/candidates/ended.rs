//! What a lock cannot mend where an object was gone when another thread came to it, and until when it has to stay.

use super::act::act;
use super::order::{Wanted, like, needed, ordering, outer};
use super::{Candidate, Kind, Repair, join, quoted};
use crate::Bug;
use crate::decisions::decides;
use crate::edit::Edit;
use crate::enforce::Rule;
use crate::sections::sections;
use crate::source::{Span, passages};
use explain::Pattern;
use model::{CellId, EventId, EventKind, EventTrace, FailureCondition, ObjectKind, ThreadId};
use std::collections::BTreeMap;

/// Does the repair only lock the end of an object and its use apart? Then the use comes behind the end all the same, unless
/// the one section says what the other one asks: that the object is gone, or where there is another one.
pub(super) fn only_parts(bug: &Bug<'_>, repair: &Repair) -> bool {
    let trace = bug.trace;
    let is_end = |id: &&EventId| join::ends_object(trace, trace.event(**id));
    let (free, access) = match bug.pattern {
        Pattern::UseAfterFree => (bug.events.iter().find(is_end), bug.events.last()),
        // What a destructor wrote, and who read that.
        Pattern::Order => {
            (bug.events.iter().find(is_end), bug.events.iter().find(|id| !is_end(id)))
        }
        _ => return false,
    };
    let (Some(&free), Some(&access)) = (free, access) else { return false };
    if repair.lock.is_none() {
        return false;
    }
    let sections = (around(trace, repair, free), around(trace, repair, access));
    let (Some(end), Some(used)) = sections else { return false };
    let written = end.iter().flat_map(|id| trace.event(*id).kind.writes());
    // Of each cell, whether it gets more than a null pointer.
    let mut left: BTreeMap<CellId, bool> = BTreeMap::new();
    for part in written {
        *left.entry(part.cell).or_default() |= trace.exprs.as_const(part.value) != Some(0);
    }
    let before = used.iter().take_while(|id| **id != access);
    let mut asked = before
        .flat_map(|id| trace.event(*id).kind.reads())
        .filter_map(|part| Some((part.var, *left.get(&part.cell)?)));
    let user = trace.event(access).thread;
    !asked.any(|(var, more)| more || decides(trace, user, var))
}

/// The events of the thread in the passage through the repair's lines that an event is in.
fn around<'t>(trace: &'t EventTrace, repair: &Repair, id: EventId) -> Option<&'t [EventId]> {
    let event = trace.event(id);
    let of_thread = |span: &Span| {
        let mut all = passages(trace, span).into_iter();
        all.find(|(first, last)| {
            let index = |id: &EventId| trace.event(*id).index;
            trace.event(*first).thread == event.thread
                && (index(first)..=index(last)).contains(&event.index)
        })
    };
    let (first, last) = repair.places.iter().find_map(of_thread)?;
    let own = &trace.thread_of(id).events;
    own.get(trace.event(first).index as usize..=trace.event(last).index as usize)
}

/// An object is only given up when the other thread is done with it: each one for its own uses.
pub(super) fn later(bug: &Bug<'_>, wanted: Wanted) -> Option<Candidate> {
    let trace = bug.trace;
    let mut edit = Edit::new(trace);
    let all = sections(trace);
    for id in like(trace, wanted.then) {
        for done in last_uses(trace, id) {
            // Whoever holds what the other one needs first must not wait.
            let at = outer(trace, &all, &needed(trace, done), id);
            let object = edit.object(ObjectKind::Semaphore { initial: 0 }, "a new semaphore");
            edit.before(at, EventKind::SemaphoreWait { object });
            edit.after(done, EventKind::SemaphorePost { object });
        }
    }
    let edited = edit.finish()?;
    let places = [wanted.then, wanted.first].map(|id| Span::of(trace.event(id).site()));
    let [here, there] = &places;
    let step = format!(
        "in {}, {} ({}) only when {} is done with {} ({}): wait for that with a semaphore, or a flag and a condition \
         variable",
        here.function,
        act(trace, wanted.then, trace.event(wanted.then).site(), false),
        here.begin(),
        quoted(&trace.thread_of(wanted.first).name),
        match trace.ends_local(trace.event(wanted.then)) {
            true => "it".to_owned(),
            false =>
                trace.subject(trace.event(wanted.then)).map_or_else(|| "it".to_owned(), quoted),
        },
        there.begin(),
    );
    let candidate = ordering(bug, wanted, (Kind::WaitFor, step, &places), edited);
    // The run ended with the use, and says nothing of what the thread does with the object then.
    let repair = Repair { rule: Rule::None, ..candidate.repair };
    Some(Candidate { repair, ..candidate })
}

/// The last use of the object that a free ends by each other thread: in the recorded run before that, or, of the failure's,
/// behind it.
fn last_uses(trace: &EventTrace, free: EventId) -> Vec<EventId> {
    let mut last: BTreeMap<ThreadId, EventId> = BTreeMap::new();
    let recorded =
        trace.lifetimes.iter().filter(|(_, end)| *end == free).map(|(access, _)| *access);
    let failing = trace.failure.iter().flat_map(|failure| used_behind(&failure.condition, free));
    for access in recorded.chain(failing) {
        let event = trace.event(access);
        let of_thread = last.entry(event.thread).or_insert(access);
        if trace.event(*of_thread).index < event.index {
            *of_thread = access;
        }
    }
    last.into_values().collect()
}

fn used_behind(condition: &FailureCondition, free: EventId) -> Vec<EventId> {
    match condition {
        FailureCondition::Before(end, access) if *end == free => vec![*access],
        FailureCondition::All(parts) | FailureCondition::Any(parts) => {
            parts.iter().flat_map(|part| used_behind(part, free)).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::candidates::all;
    use crate::check::{self, Verdict};
    use encoders::dsl::parse;
    use model::{Event, ObjectKind, Site};

    fn place(line: u32, function: &str) -> Site {
        Site { file: "cache.c".to_owned(), line, column: 1, function: function.to_owned() }
    }

    /// Does a lock around the line in which an object is freed behind `end`, and the one in which it is used behind `user`,
    /// only part the two?
    fn parts(end: &str, user: &str) -> bool {
        let text = format!(
            "cell head 64 = 4096\ncell x 32 = 5\nheap o 4096 16\nt0: fork a\nt0: fork b\n{user}\na: [use] R x -> v\n\
             {end}\nb: [free] free o\na: fail v == 5\n"
        );
        let mut parsed = parse(&text).expect("the text is a trace");
        for thread in [1, 2] {
            let function = ["look", "drop"][thread - 1];
            for id in parsed.trace.threads[thread].events.clone() {
                parsed.trace.events[id.index()].stack =
                    [place(10 * thread as u32, function)].into();
            }
        }
        let [free, access] = ["free", "use"].map(|label| parsed.event(label));
        if let Some(failure) = &mut parsed.trace.failure {
            failure.condition = FailureCondition::Before(free, access);
        }
        let events = [free, access];
        let repair = Repair {
            kind: Kind::CriticalSection,
            steps: Vec::new(),
            lock: Some(crate::candidates::Guard { name: "a new mutex".to_owned(), new: true }),
            variables: Vec::new(),
            places: [place(10, "look"), place(20, "drop")].iter().map(Span::of).collect(),
            rule: Rule::None,
            checked: None,
        };
        only_parts(&Bug::by_hand(&parsed.trace, Pattern::UseAfterFree, &events), &repair)
    }

    #[test]
    fn a_lock_keeps_no_object() {
        let look = "a: R head -> h";
        assert!(parts("b: R head -> g", look), "nothing tells that it is gone");
        assert!(parts("b: W head 0", look), "a null pointer is not looked for");
        assert!(!parts("b: W head 0", "a: R head -> h\na: assume h != 0"));
        assert!(!parts("b: W head 8192", look), "there is another one");
    }

    #[test]
    fn nor_does_it_keep_what_a_destructor_ends() {
        let text = "cell open 32 = 1\na: [look] R open -> o\nb: [close] W open 0\na: fail o == 0\n";
        let mut parsed = parse(text).expect("the text is a trace");
        let [look, close] = ["look", "close"].map(|label| parsed.event(label));
        let mut locks = |destructor: &str| {
            for (id, line, function) in [(look, 11, "add"), (close, 10, destructor)] {
                parsed.trace.events[id.index()].stack = [place(line, function)].into();
            }
            let events = [look, close];
            let repair = Repair {
                kind: Kind::CriticalSection,
                steps: Vec::new(),
                lock: Some(crate::candidates::Guard { name: "a new mutex".to_owned(), new: true }),
                variables: Vec::new(),
                places: [place(11, "add"), place(10, destructor)].iter().map(Span::of).collect(),
                rule: Rule::None,
                checked: None,
            };
            !only_parts(&Bug::by_hand(&parsed.trace, Pattern::Order, &events), &repair)
        };
        assert!(!locks("Log::~Log"));
        assert!(locks("close"));
    }

    /// A function hands its variable to a thread, by `before` or behind its creation, and returns.
    fn repairs(before: &str, behind: &str) -> Vec<(Kind, String)> {
        let text = format!(
            "cell q 64 = 0\ncell x 32 = 5\nheap o 4096 16\n{before}\nt0: [fork] fork a\n{behind}\na: R q -> p\n\
             a: [use] R x -> v\nt0: [end] free o\na: fail v == 5\n"
        );
        let mut parsed = parse(&text).expect("the text is a trace");
        let [fork, end, access] = ["fork", "end", "use"].map(|label| parsed.event(label));
        let trace = &mut parsed.trace;
        trace.objects[0].kind = ObjectKind::Local;
        trace.objects[0].name = "job".to_owned();
        trace.events[end.index()].name = Some("job".into());
        for (id, line, function) in [(fork, 21, "start"), (end, 24, "start"), (access, 12, "work")]
        {
            trace.events[id.index()].stack = [place(line, function)].into();
        }
        for event in &mut trace.events {
            event.continued = Event::ALL_CONTINUED;
        }
        if let Some(failure) = &mut trace.failure {
            failure.condition = FailureCondition::Before(end, access);
        }
        let events = [end, access];
        let bug =
            Bug { schedule: &[end, access], ..Bug::by_hand(trace, Pattern::UseAfterFree, &events) };
        let limits = crate::Limits {
            time: std::time::Duration::from_secs(60),
            memory_mb: None,
            left: &|| std::time::Duration::MAX,
        };
        let found = all(&bug).into_iter().filter(|candidate| {
            let verdict =
                check::check((trace, None), &candidate.edited, limits).expect("an answer");
            matches!(verdict, Verdict::Holds(_))
        });
        found.map(|candidate| (candidate.repair.kind, candidate.repair.steps[0].clone())).collect()
    }

    #[test]
    fn a_variable_stays_until_the_other_thread_is_done_with_it() {
        let waits = "in start, leave the scope of `job` (cache.c:24) only when `t0.1` is done with it (cache.c:12): wait \
                     for that with a semaphore, or a flag and a condition variable";
        let found = repairs("", "t0: W q 4096");
        assert_eq!(found, [(Kind::WaitFor, waits.to_owned())], "it was there before");
        let joins =
            "join `t0.1`, created at cache.c:21, before leaving the scope of `job` (cache.c:24)";
        let found = repairs("t0: W q 4096", "");
        assert_eq!(found[0], (Kind::JoinFirst, joins.to_owned()), "it was created for that");
    }
}
