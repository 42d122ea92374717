//! Who takes away what another thread uses waits for that thread's end first.

use super::act::act;
use super::order::{Wanted, ordering};
use super::{Candidate, Kind, Repair, quoted};
use crate::Bug;
use crate::decisions::decides;
use crate::edit::Edit;
use crate::enforce::Rule;
use crate::source::{Span, frames, is_destructor, same_function};
use crate::waits::END_OF_THREAD;
use model::{CellId, Event, EventId, EventKind, EventTrace, ObjectKind};

/// The function that the program's first thread begins with.
const MAIN: &str = "main";

/// The second step's thread joins the first step's: it can do so earlier.
pub(super) fn earlier(bug: &Bug<'_>, wanted: Wanted) -> Option<Candidate> {
    let trace = bug.trace;
    let (first, then) = (trace.event(wanted.first), trace.event(wanted.then));
    let own = trace.thread_of(wanted.then).events.iter().skip(then.index as usize + 1);
    let joins = |id: &&EventId| matches!(trace.event(**id).kind, EventKind::Join { child } if child == first.thread);
    let join = *own.clone().find(joins)?;
    if is_told_to_end(trace, first) {
        return None;
    }
    let mut edit = Edit::new(trace);
    edit.move_before(join, wanted.then);
    let edited = edit.finish()?;
    let places = [join, wanted.then].map(|id| Span::of(trace.event(id).site()));
    let step = format!(
        "join {} ({}) before {} reaches {}",
        quoted(&trace.thread_of(wanted.first).name),
        places[0].begin(),
        places[1].function,
        places[1].begin(),
    );
    Some(ordering(bug, wanted, (Kind::JoinFirst, step, &places), edited))
}

/// Did the thread end because of what it read there? Who joins it before that is written waits for a thread that may
/// wait for just that.
fn is_told_to_end(trace: &EventTrace, read: &Event) -> bool {
    let mut read_there = read.kind.reads().iter();
    let decides = read_there.any(|part| decides(trace, read.thread, part.var));
    let behind = trace.thread_of(read.id).events.iter().skip(read.index as usize + 1);
    let mut behind = behind.map(|id| &trace.event(*id).kind).peekable();
    let ends = |kind: &EventKind| {
        matches!(
            kind,
            EventKind::Unlock { synthetic: false, .. } | EventKind::Read { .. } | EventKind::Exit
        )
    };
    decides && behind.peek().is_some() && behind.all(ends)
}

/// Does the second step's thread write behind that what the first one's had gone by, such as that it is to end? Nobody knows
/// whether it would have come to its end without.
fn is_told_behind(trace: &EventTrace, first: &Event, then: &Event) -> bool {
    let events_of =
        |event: &Event| trace.thread_of(event.id).events.iter().map(|id| trace.event(*id));
    let mut behind = events_of(then).filter(|event| event.index > then.index);
    let went_by = |cell: CellId| {
        let earlier = events_of(first).filter(|event| event.index < first.index);
        let mut read = earlier.flat_map(|event| event.kind.reads());
        read.any(|part| part.cell == cell && decides(trace, first.thread, part.var))
    };
    behind.any(|event| event.kind.writes().iter().any(|part| went_by(part.cell)))
}

/// The second step takes away what the first one uses, and its thread has created the first step's and has not joined
/// it: it joins it first. Where that is done behind the end of `main`, as destructors of static objects are, before that.
pub(super) fn before(bug: &Bug<'_>, wanted: Wanted) -> Option<Candidate> {
    let trace = bug.trace;
    let (first, then) = (trace.event(wanted.first), trace.event(wanted.then));
    let behind = behind_main(trace, then);
    if behind.is_none() && !takes_away(then) {
        return None;
    }
    let own = trace.thread_of(then.id).events.iter();
    let child = |id: &EventId| match trace.event(*id).kind {
        EventKind::Fork { child } | EventKind::Join { child } => Some(child),
        _ => None,
    };
    let mut of_child = own.filter(|id| child(id) == Some(first.thread));
    let fork = trace.event(*of_child.next()?);
    let joins_anyway = of_child.next().is_some();
    // Who was there before a function was called is not done when that returns.
    if trace.ends_local(then)
        && (!is_in_one_call(trace, fork, then) || is_handed_over(trace, fork, then))
    {
        return None;
    }
    if behind.is_none() && is_of_a_call(trace, fork, then) {
        return None;
    }
    if is_told_behind(trace, first, then) {
        return None;
    }
    if joins_anyway || fork.index > behind.map_or(then.index, |id| trace.event(id).index) {
        return None;
    }
    // The run ended before the thread did: its last step stands for its end.
    let last = trace.thread_of(first.id).events.iter().rev();
    let last = last.copied().find(|id| {
        !matches!(
            trace.event(*id).kind,
            EventKind::Exit | EventKind::Failure | EventKind::Unlock { synthetic: true, .. }
        )
    })?;
    let mut edit = Edit::new(trace);
    let object = edit.object(ObjectKind::Semaphore { initial: 0 }, END_OF_THREAD);
    edit.before(behind.unwrap_or(then.id), EventKind::SemaphoreWait { object });
    edit.after(last, EventKind::SemaphorePost { object });
    let edited = edit.finish()?;
    let own = frames(then)
        .into_iter()
        .find(|site| site.function == fork.site().function && site.file == fork.site().file);
    let site = own.unwrap_or_else(|| then.site());
    let places = [fork.site(), site].map(Span::of);
    let up_to = match behind {
        Some(_) => format!("before `{MAIN}` returns"),
        None => format!("before {} ({})", act(trace, then.id, site, true), places[1].begin()),
    };
    let step = format!(
        "join {}, created at {}, {up_to}",
        quoted(&trace.threads[first.thread.index()].name),
        places[0].begin(),
    );
    // Behind `main` there is no line of the program where it could be done.
    let place = if behind.is_some() { &places[..1] } else { &places[1..] };
    let candidate = ordering(bug, wanted, (Kind::JoinFirst, step, place), edited);
    // Other threads come through the same places.
    let repair = Repair { rule: Rule::None, ..candidate.repair };
    Some(Candidate { repair, ..candidate })
}

/// Does a thread come to the second event in the call of the function in which the first one was, or that this was
/// called from?
fn is_in_one_call(trace: &EventTrace, first: &Event, second: &Event) -> bool {
    let between = trace.thread_of(second.id).events.iter().map(|id| trace.event(*id));
    let mut between =
        between.filter(|event| (first.index + 1..=second.index).contains(&event.index));
    let depth = second.stack.len().saturating_sub(1);
    let of = |event: &Event| {
        let outer = event.stack.iter().rev().take(depth + 1);
        outer.map(|site| (site.file.clone(), site.function.clone())).collect::<Vec<_>>()
    };
    of(first) == of(second) && between.all(|event| event.continues(depth))
}

/// Was what the second event frees made behind the first one by the function that frees it, in which that is not?
fn is_of_a_call(trace: &EventTrace, fork: &Event, free: &Event) -> bool {
    let EventKind::Free { object } = free.kind else { return false };
    let own = frames(free).into_iter().rfind(|site| !is_destructor(site));
    let Some(own) = own else { return false };
    let is_in = |event: &Event| frames(event).into_iter().any(|site| same_function(site, own));
    let mut between = trace.thread_of(free.id).events.iter().map(|id| trace.event(*id));
    between.any(|event| {
        event.kind == EventKind::Allocate { object }
            && (fork.index..free.index).contains(&event.index)
            && is_in(event)
            && !is_in(fork)
    })
}

/// Does the thread, between the two events, store the address of what the second one frees? Who was created before has
/// more to do than what it is handed there.
fn is_handed_over(trace: &EventTrace, fork: &Event, free: &Event) -> bool {
    let EventKind::Free { object } = free.kind else { return false };
    let addresses = trace.objects.get(object.index()).and_then(|object| object.addresses.as_ref());
    let recorded = |var| Some(trace.recorded_value(var));
    let own = trace.thread_of(free.id).events.iter().map(|id| trace.event(*id));
    let between = own.filter(|event| (fork.index..free.index).contains(&event.index));
    let mut values = between
        .flat_map(|event| event.kind.writes())
        .filter_map(|part| u64::try_from(trace.exprs.evaluate(part.value, &recorded)?).ok());
    addresses.is_some_and(|addresses| values.any(|value| addresses.contains(&value)))
}

/// Does the object that the event is about end there: by its memory, its destructor, or what is done behind `main`?
pub(super) fn ends_object(trace: &EventTrace, event: &Event) -> bool {
    takes_away(event) || behind_main(trace, event).is_some()
}

/// Is an object gone with it, by its memory or by its destructor?
fn takes_away(event: &Event) -> bool {
    matches!(event.kind, EventKind::Free { .. }) || event.stack.iter().any(is_destructor)
}

/// The first event of the thread that runs `main` behind the return from it, where this one is such an event: what
/// `exit` calls then.
fn behind_main(trace: &EventTrace, event: &Event) -> Option<EventId> {
    let is_in_main = |id: &EventId| {
        trace.event(*id).stack.iter().next_back().is_some_and(|site| site.function == MAIN)
    };
    let own = &trace.threads.first()?.events;
    let first = own.iter().rposition(is_in_main)? + 1;
    let is_behind = event.thread == trace.threads.first()?.id && first <= event.index as usize;
    own.get(first).copied().filter(|_| is_behind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use encoders::dsl::parse;
    use explain::Pattern;
    use model::Site;

    fn place(line: u32, function: &str) -> Site {
        Site { file: "log.cc".to_owned(), line, column: 1, function: function.to_owned() }
    }

    /// What a destructor does that runs in the function or behind it, of an object that a thread still uses.
    fn step(destructor: &[Site]) -> Option<String> {
        let text =
            "t0: [fork] fork a\nt0: [close] W open 0\na: [look] R open -> o\na: fail o == 0\n";
        let mut parsed = parse(text).expect("the text is a trace");
        let [fork, close, look] = ["fork", "close", "look"].map(|label| parsed.event(label));
        let trace = &mut parsed.trace;
        trace.events[fork.index()].stack = [place(22, MAIN)].into();
        trace.events[close.index()].stack = destructor.to_vec().into();
        trace.events[look.index()].stack = [place(11, "add")].into();
        let events = [look, close];
        let bug = Bug::by_hand(trace, Pattern::Order, &events);
        let found = before(&bug, Wanted { first: look, then: close })?;
        Some(found.repair.steps[0].clone())
    }

    /// Whoever waits for the end of a thread that is told to end only behind that waits for ever.
    #[test]
    fn who_is_told_to_end_later_is_not_joined_before() {
        let joins = |told: &str| {
            let text = format!(
                "t0: [fork] fork a\nt0: [close] W open 0\nt0: W {told} 1\na: R stop -> s\na: assume s == 0\n\
                 a: [look] R open -> o\na: fail o == 0\n"
            );
            let mut parsed = parse(&text).expect("the text is a trace");
            let [fork, close, look] = ["fork", "close", "look"].map(|label| parsed.event(label));
            let trace = &mut parsed.trace;
            trace.events[fork.index()].stack = [place(22, MAIN)].into();
            trace.events[close.index()].stack = [place(10, "Log::~Log"), place(27, MAIN)].into();
            trace.events[look.index()].stack = [place(11, "add")].into();
            let events = [look, close];
            let bug = Bug::by_hand(trace, Pattern::Order, &events);
            before(&bug, Wanted { first: look, then: close }).is_some()
        };
        assert!(!joins("stop"));
        assert!(joins("count"), "nobody goes by that");
    }

    /// A pool's thread is there before the functions that hand it what they have made.
    #[test]
    fn who_serves_others_is_not_joined_for_one_of_them() {
        let joins = |made_by: &str| {
            let text = "heap o 4096 16\ncell o.x 32 = 0\nt0: [fork] fork a\nt0: [make] alloc o\nt0: [free] free o\n\
                        a: [use] R x -> v\na: fail v == 0\n";
            let mut parsed = parse(text).expect("the text is a trace");
            let labels = ["fork", "make", "free", "use"];
            let [fork, make, free, used] = labels.map(|label| parsed.event(label));
            let trace = &mut parsed.trace;
            trace.events[fork.index()].stack = [place(11, "Pool"), place(32, MAIN)].into();
            trace.events[make.index()].stack = [place(28, made_by), place(33, MAIN)].into();
            trace.events[free.index()].stack = [place(30, "handle"), place(33, MAIN)].into();
            let events = [free, used];
            let bug = Bug::by_hand(trace, Pattern::UseAfterFree, &events);
            before(&bug, Wanted { first: used, then: free }).is_some()
        };
        assert!(!joins("handle"));
        assert!(joins("open"), "another function made it");
    }

    #[test]
    fn what_is_destroyed_waits_for_its_user() {
        let own = place(10, "Log::~Log");
        let joins = |when: &str| Some(format!("join `t0.1`, created at log.cc:22, before {when}"));
        assert_eq!(step(std::slice::from_ref(&own)), joins("`main` returns"));
        let in_main = [own, place(27, MAIN)];
        assert_eq!(step(&in_main), joins("calling Log::~Log (log.cc:27)"));
        assert_eq!(step(&[place(26, MAIN)]), None, "it only writes");
    }
}
