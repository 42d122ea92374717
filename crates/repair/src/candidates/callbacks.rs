//! A function that calls others while it holds its lock, and one of these takes a lock of its own: the first gives its
//! lock back before it calls.

use super::{Candidate, Guard, deadlock};
use crate::Bug;
use crate::sections::{Section, Sections};
use crate::source::{Span, asked_at, frames, span};
use crate::words::lock_word;
use model::{CellId, Event, EventId, EventKind, EventTrace, ThreadId};

/// The candidate. `None` where the lock is asked for by the function itself, and where it is needed behind the call, or
/// nobody knows: no thread has come back from the call in the recorded run.
pub(super) fn release_first(
    bug: &Bug<'_>,
    all: &Sections,
    block: &Event,
    held: Section,
) -> Option<Candidate> {
    let trace = bug.trace;
    let lock = trace.event(held.lock);
    let call = span(lock, block)?;
    let [caller, _] = asked_at(lock, block);
    let last = Span { first: call.last, ..call.clone() };
    // By a guard of the program's own, which the function itself may make for the other lock as well.
    let by_guard = lock.site() == block.site();
    let first = Span { last: call.first, ..call.clone() };
    let makes_both = by_guard && callee(lock, &first) == callee(block, &last);
    // The holder's own function calls, not one that it gave back to.
    let calls_out =
        call.function == caller.function && block.site().function != caller.function && !makes_both;
    if !calls_out {
        return None;
    }
    let is_taken_there = |section: &&Section| match by_guard {
        true => frames(trace.event(section.lock)).contains(&caller),
        false => trace.event(section.lock).site() == caller,
    };
    let rests: Vec<Option<Vec<EventId>>> =
        all.iter().filter(is_taken_there).map(|section| rest(trace, *section, &last)).collect();
    rests.iter().any(Option::is_some).then_some(())?;
    if rests.into_iter().flatten().flatten().any(|id| is_contended(trace, all, held, id)) {
        return None;
    }
    let mut candidate = deadlock::release_first(bug, all, block, held)?;
    let callee = callee(block, &last)?;
    let inner = frames(block).into_iter().rev().nth(usize::from(by_guard)).map(Span::of);
    let object = deadlock::asked(block).map(|(object, _)| object).filter(|_| by_guard);
    let asked = match inner.zip(object) {
        Some((lines, object)) => lock_word(trace, object, &lines, None),
        None => trace.subject(block).unwrap_or("another lock").to_owned(),
    };
    let name = lock_word(trace, held.object, &call, Some((held.lock, block.id)));
    candidate.repair.lock = Some(Guard { name: name.clone(), new: false });
    let own = if asked == name && name.starts_with("this->") { "its own " } else { "" };
    candidate.repair.steps = vec![format!(
        "in {}, give {} (taken at {}) back before calling {callee} ({}), which takes {own}{}",
        call.function,
        super::quoted(&name),
        call.begin(),
        last.begin(),
        super::quoted(&asked)
    )];
    candidate.repair.places = vec![last, first];
    Some(candidate)
}

/// What is called on these lines on the way to the event.
fn callee<'t>(event: &'t Event, lines: &Span) -> Option<&'t str> {
    let frames = frames(event);
    let caller = frames.iter().position(|site| lines.has(site))?;
    frames.get(caller + 1).map(|site| site.function.as_str())
}

/// What a section's thread does in it behind the first call on these lines; `None` where it did not come back.
fn rest(trace: &EventTrace, section: Section, call: &Span) -> Option<Vec<EventId>> {
    let index = |id: EventId| trace.event(id).index as usize;
    if matches!(trace.event(section.unlock).kind, EventKind::Unlock { synthetic: true, .. }) {
        return None;
    }
    let own = &trace.thread_of(section.lock).events;
    let inside = own.get(index(section.lock) + 1..index(section.unlock))?;
    let calling = |id: &EventId| callee(trace.event(*id), call).is_some();
    let first = inside.iter().position(calling)?;
    let behind = inside[first..].iter().skip_while(|id| calling(id));
    Some(behind.copied().collect())
}

/// Does the lock keep this access apart from another thread's?
fn is_contended(trace: &EventTrace, all: &Sections, held: Section, id: EventId) -> bool {
    let own = trace.event(id);
    let cells = |event: &Event, writing: bool| -> Vec<CellId> {
        let reads = event.kind.reads().iter().map(|part| part.cell);
        let writes = event.kind.writes().iter().map(|part| part.cell);
        reads.filter(|_| !writing).chain(writes).collect()
    };
    let (mine, changed) = (cells(own, false), cells(own, true));
    let under_lock = |event: &Event| {
        let around = all.around(trace, event.id);
        around.iter().any(|section| section.object == held.object)
    };
    trace.events.iter().any(|other| {
        let meets = other.thread != own.thread
            && (cells(other, true).iter().any(|cell| mine.contains(cell))
                || cells(other, false).iter().any(|cell| changed.contains(cell)));
        meets && !made_ready(trace, other, own.thread) && under_lock(other)
    })
}

/// Did the event come before the thread was created, by the one that created it?
fn made_ready(trace: &EventTrace, event: &Event, thread: ThreadId) -> bool {
    let creates = |id: &EventId| matches!(trace.event(*id).kind, EventKind::Fork { child } if child == thread);
    let own = trace.threads[event.thread.index()].events.iter();
    own.skip(event.index as usize).any(creates)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sections::sections;
    use encoders::dsl::parse;
    use model::Site;

    /// `insert` holds `m` and calls `changed`, which takes `p`; what it does behind that is `last`.
    fn rest_of(last: &str) -> (Vec<EventId>, bool) {
        let text = format!(
            "
            a: lock m
            a: W lines 1
            a: [call] lock p
            a: [dirty] W marks 1
            a: [back] unlock p
            a: [last] {last}
            a: unlock m
            b: lock m
            b: R lines -> l
            b: R count -> c
            b: unlock m
            b: lock p
            b: W marks 0
            b: unlock p
            "
        );
        let parsed = parse(&text).expect("the text is a trace");
        let mut trace = parsed.trace.clone();
        let site = |function: &str, line| Site {
            file: "a.cc".to_owned(),
            line,
            column: 1,
            function: function.to_owned(),
        };
        let called = ["call", "dirty", "back"].map(|label| parsed.event(label));
        for (line, event) in (1..).zip(&mut trace.events) {
            event.stack = match called.contains(&event.id) {
                true => vec![site("changed", line), site("insert", 3)].into(),
                false => vec![site("insert", line + 10)].into(),
            };
        }
        let all = sections(&trace);
        let last = parsed.event("last");
        let held = *all.around(&trace, last).first().expect("a lock is held");
        let rest = rest(&trace, held, &Span::of(&site("insert", 3))).expect("it came back");
        let contended = rest.iter().any(|id| is_contended(&trace, &all, held, *id));
        (rest, contended)
    }

    #[test]
    fn what_comes_behind_a_call_may_need_the_lock() {
        let (rest, contended) = rest_of("W count 1");
        assert_eq!(rest.len(), 1);
        assert!(contended);
        // Both only read it.
        assert!(!rest_of("R count -> n").1);
        assert!(!rest_of("W own 1").1);
    }
}
