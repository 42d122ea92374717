//! Critical sections that certain orders keep apart.
//!
//! Where an event in a critical section comes behind one of a section of the same lock, or behind what is later still in
//! the other thread, the whole section comes behind the other's end: they would be in each other otherwise. Who makes a
//! schedule from its beginning has to know that before it enters, and not when it stands inside.

use super::{Needs, add};
use model::{EventKind, EventTrace, LockMode, ObjectId, Thread};
use rustc_hash::FxHashMap;

/// The part of a thread in which it holds a lock, by places in the thread.
#[derive(Clone, Copy)]
struct Section {
    from: u32,
    /// The event behind it; none where it lasts to the end.
    behind: Option<u32>,
    is_shared: bool,
}

/// A thread's sections of each lock, in program order.
type Sections = FxHashMap<ObjectId, Vec<Section>>;

/// Adds to what acquisitions need the ends of the sections that have to be over.
pub(super) fn keep_apart(trace: &EventTrace, needs: &mut Needs) {
    let sections: Vec<Sections> = trace.threads.iter().map(|it| sections(trace, it)).collect();
    for (thread, own) in trace.threads.iter().zip(&sections) {
        keep_thread_apart(trace, (thread, own), &sections, needs);
    }
}

fn sections(trace: &EventTrace, thread: &Thread) -> Sections {
    let mut found = Sections::default();
    for (index, &id) in (0..).zip(&thread.events) {
        match trace.event(id).kind {
            EventKind::Lock { object, mode } => {
                let is_shared = mode == LockMode::Shared;
                let section = Section { from: index, behind: None, is_shared };
                found.entry(object).or_default().push(section);
            }
            EventKind::Unlock { object, .. } => {
                let last = found.get_mut(&object).and_then(|all| all.last_mut());
                if let Some(section) = last {
                    section.behind.get_or_insert(index + 1);
                }
            }
            _ => {}
        }
    }
    found
}

fn keep_thread_apart(
    trace: &EventTrace,
    (thread, own): (&Thread, &Sections),
    sections: &[Sections],
    needs: &mut Needs,
) {
    // The locks that are held, the first one taken first.
    let mut held: Vec<(ObjectId, u32)> = Vec::new();
    for (index, &id) in (0..).zip(&thread.events) {
        let kind = &trace.event(id).kind;
        if let EventKind::Lock { object, .. } = *kind {
            held.push((object, index));
        }
        let mut pending: Vec<(usize, (u32, u32))> = Vec::new();
        let known = needs.get(&id).map(Vec::as_slice).unwrap_or_default();
        pending.extend(known.iter().map(|&need| (held.len(), need)));
        // What an acquisition needs by that, those around it do by the same reason.
        while let Some((within, (other, count))) = pending.pop() {
            for (depth, &(lock, from)) in held.get(..within).unwrap_or_default().iter().enumerate()
            {
                let theirs = sections.get(other as usize).and_then(|all| all.get(&lock));
                let is_shared = is_shared(own, lock, from);
                let Some(behind) = theirs.and_then(|all| end_before(all, count, is_shared)) else {
                    continue;
                };
                let acquisition = thread.events[from as usize];
                if add(needs, acquisition, (other, behind)) {
                    pending.push((depth, (other, behind)));
                }
            }
        }
        if let EventKind::Unlock { object, .. } = *kind {
            held.retain(|(other, _)| *other != object);
        }
    }
}

fn is_shared(own: &Sections, lock: ObjectId, from: u32) -> bool {
    let all = own.get(&lock).map(Vec::as_slice).unwrap_or_default();
    let at = all.binary_search_by_key(&from, |section| section.from);
    at.is_ok_and(|at| all.get(at).is_some_and(|section| section.is_shared))
}

/// How many events a thread has done when the last section is over that begins within its first `count` ones, and that
/// a section of the same lock must not overlap.
fn end_before(sections: &[Section], count: u32, is_shared: bool) -> Option<u32> {
    let begun = sections.partition_point(|section| section.from < count);
    let conflicts = |section: &&Section| !(is_shared && section.is_shared);
    sections.get(..begun)?.iter().rev().find(conflicts)?.behind
}

#[cfg(test)]
mod tests {
    use crate::actions::needs;
    use encoders::dsl::{Parsed, parse};

    /// Does the second event need the first one, where `before` comes before `after` for certain?
    fn follows(text: &str, (before, after): (&str, &str), (first, second): (&str, &str)) -> bool {
        let parsed: Parsed = parse(text).expect("the trace is well formed");
        let event = |label| parsed.trace.event(parsed.event(label));
        let all = needs(&parsed.trace, &[(event(before).id.0, event(after).id.0)]);
        let needs = all.get(&event(second).id).map(Vec::as_slice).unwrap_or_default();
        let (thread, count) = (event(first).thread.0, event(first).index + 1);
        needs.iter().any(|&(other, most)| other == thread && most >= count)
    }

    #[test]
    fn a_section_comes_behind_those_that_one_of_its_events_does() {
        let text = "t0: fork t1\nt0: lock n\nt0: [lock] lock m\nt0: [write] W x 1\nt0: unlock m\n\
                    t0: unlock n\nt1: lock m\nt1: [read] R x -> a\nt1: [unlock] unlock m\n\
                    t1: lock m\nt1: [later] unlock m\nt1: [last] W y 1\n";
        assert!(follows(text, ("read", "write"), ("unlock", "lock")));
        assert!(!follows(text, ("read", "write"), ("later", "lock")), "that may come later");
        assert!(follows(text, ("last", "write"), ("later", "lock")));
        assert!(!follows(text, ("unlock", "read"), ("unlock", "lock")));
    }

    #[test]
    fn both_ends_of_a_section_are_in_it() {
        let text = "t0: fork t1\nt0: [lock] lock m\nt0: W x 1\nt0: [end] unlock m\n\
                    t1: [first] lock m\nt1: R x -> a\nt1: [unlock] unlock m\n";
        assert!(follows(text, ("first", "lock"), ("unlock", "lock")));
        assert!(follows(text, ("first", "end"), ("unlock", "lock")));
    }

    #[test]
    fn what_an_acquisition_needs_those_around_it_need() {
        let text = "t0: fork t1\nt0: [outer] lock n\nt0: lock m\nt0: [write] W x 1\nt0: unlock m\n\
                    t0: unlock n\nt1: lock n\nt1: lock m\nt1: [read] R x -> a\nt1: unlock m\n\
                    t1: [unlock] unlock n\n";
        assert!(follows(text, ("read", "write"), ("unlock", "outer")));
    }

    #[test]
    fn those_who_share_a_lock_are_in_it_together() {
        let shared = "t0: fork t1\nt0: [lock] rdlock m\nt0: [write] W x 1\nt0: rdunlock m\n\
                      t1: rdlock m\nt1: [read] R x -> a\nt1: [unlock] rdunlock m\n";
        assert!(!follows(shared, ("read", "write"), ("unlock", "lock")));
        let alone =
            shared.replace("t0: rdunlock", "t0: unlock").replace("[lock] rdlock", "[lock] lock");
        assert!(follows(&alone, ("read", "write"), ("unlock", "lock")));
    }

    #[test]
    fn a_section_that_does_not_end_is_waited_for_by_nobody() {
        let text = "t0: fork t1\nt0: [lock] lock m\nt0: [write] W x 1\nt0: unlock m\n\
                    t1: lock m\nt1: [read] R x -> a\n";
        assert!(!follows(text, ("read", "write"), ("read", "lock")));
    }
}
