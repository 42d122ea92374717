//! What the lines that are to hold a lock may come to on ways that the recorded run did not go: a function that they call may
//! take the lock itself where it went another way in this passage, or was called by somebody else.

use super::Candidate;
use crate::rust::is_rust;
use crate::sections::{ends_wait, taken};
use crate::source::Span;
use crate::uses::{LineCall, Uses};
use model::{Event, EventId, EventKind, EventTrace, ObjectId, Site};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A function: its file and name.
type Named = (String, String);

/// So many places are told.
const TOLD: usize = 5;

/// Adds to each repair that has a lock of the program's held where its lines may take that again without having done so in the run.
pub(super) fn told(trace: &EventTrace, uses: Uses<'_>, found: &mut [Candidate]) {
    let is_own = |found: &&mut Candidate| found.repair.lock.as_ref().is_some_and(|lock| !lock.new);
    let mut concerned = found.iter_mut().filter(is_own).peekable();
    if concerned.peek().is_none() {
        return;
    }
    let mut calls: BTreeMap<Named, Vec<LineCall>> = BTreeMap::new();
    for call in uses.0.calls() {
        calls.entry(call.caller.clone()).or_default().push(call);
    }
    for candidate in concerned {
        for step in steps(trace, &calls, candidate) {
            if !candidate.repair.steps.contains(&step) {
                candidate.repair.steps.push(step);
            }
        }
    }
}

fn steps(
    trace: &EventTrace,
    calls: &BTreeMap<Named, Vec<LineCall>>,
    candidate: &Candidate,
) -> Vec<String> {
    let places = &candidate.repair.places;
    // What threads were seen to take on their way through the lines, whichever object's lock it was, is told of already.
    let passes = |event: &Event| event.stack.iter().position(|site| is_in(places, site));
    let locks = trace.events.iter().filter(|event| taken(event).is_some());
    let seen: BTreeSet<&Site> =
        locks.filter(|event| passes(event).is_some()).map(Event::site).collect();
    let mut found = Vec::new();
    for (lock, held) in newly_held(trace, candidate) {
        let mut takers: BTreeMap<Named, BTreeSet<&Site>> = BTreeMap::new();
        let takes = || trace.events.iter().filter(|event| taken(event) == Some(lock));
        if takes().any(is_recursive) {
            continue;
        }
        for event in takes().filter(|event| !ends_wait(trace, event.id)) {
            let site = event.site();
            if !seen.contains(site) && !is_in(places, site) {
                takers.entry(named(site)).or_default().insert(site);
            }
        }
        if takers.is_empty() {
            continue;
        }
        for (function, by) in reached(trace, calls, places, &held) {
            for site in takers.get(&function).into_iter().flatten() {
                let (place, by) = (Span::of(site), Span::of(&by));
                let take = if is_rust(&place.file) { "lock it" } else { "take it" };
                found.push(format!(
                    "do not {take} again at {} in {}, to which these lines may come by {} in {}",
                    place.begin(),
                    place.function,
                    by.begin(),
                    by.function
                ));
            }
        }
    }
    found.truncate(TOLD);
    found
}

/// Is the lock one of C++'s library that its thread may take again?
fn is_recursive(event: &Event) -> bool {
    let mut library = event.stack.iter().take_while(|site| site.is_in_library());
    library.any(|site| site.function.contains("recursive_mutex"))
}

/// The functions that what is done under the lock may come to, each with a line that calls it.
fn reached(
    trace: &EventTrace,
    calls: &BTreeMap<Named, Vec<LineCall>>,
    places: &[Span],
    held: &[EventId],
) -> BTreeMap<Named, Site> {
    let mut found: BTreeMap<Named, Site> = BTreeMap::new();
    let mut next: VecDeque<Named> = VecDeque::new();
    let mut add = |next: &mut VecDeque<Named>, function: Named, by: Site| {
        if let Entry::Vacant(place) = found.entry(function) {
            next.push_back(place.key().clone());
            place.insert(by);
        }
    };
    // What was called there, also by way of a library or a pointer.
    for id in held {
        let own: Vec<&Site> =
            trace.event(*id).stack.iter().filter(|site| !site.is_in_library()).collect();
        let Some(outer) = own.iter().position(|site| is_in(places, site)) else { continue };
        for pair in own[..=outer].windows(2).rev() {
            add(&mut next, named(pair[0]), pair[1].clone());
        }
    }
    let called = |call: &LineCall| Site {
        file: call.caller.0.clone(),
        line: call.line,
        column: 0,
        function: call.caller.1.clone(),
    };
    for call in calls.values().flatten() {
        let by = called(call);
        if is_in(places, &by) {
            add(&mut next, call.callee.clone(), by);
        }
    }
    while let Some(function) = next.pop_front() {
        for call in calls.get(&function).into_iter().flatten() {
            add(&mut next, call.callee.clone(), called(call));
        }
    }
    found
}

/// By lock of the program, the events at which a thread has it with the repair and did not have it before.
fn newly_held(trace: &EventTrace, candidate: &Candidate) -> BTreeMap<ObjectId, Vec<EventId>> {
    let edited = &candidate.edited;
    let before = held(trace);
    let after = held(&edited.trace);
    let mut found: BTreeMap<ObjectId, Vec<EventId>> = BTreeMap::new();
    for (locks, origin) in after.iter().zip(&edited.origin) {
        let Some(id) = origin else { continue };
        let known = before.get(id.index());
        let is_new = |lock: &&ObjectId| {
            lock.index() < trace.objects.len() && known.is_none_or(|known| !known.contains(lock))
        };
        for lock in locks.iter().filter(is_new) {
            found.entry(*lock).or_default().push(*id);
        }
    }
    found
}

/// By event, the locks that its thread has behind it.
fn held(trace: &EventTrace) -> Vec<Vec<ObjectId>> {
    let mut found = vec![Vec::new(); trace.events.len()];
    for thread in &trace.threads {
        let mut now: Vec<ObjectId> = Vec::new();
        for id in &thread.events {
            match trace.event(*id).kind {
                EventKind::Lock { object, .. } => now.push(object),
                EventKind::Unlock { object, .. } => now.retain(|other| *other != object),
                _ => {}
            }
            found[id.index()].clone_from(&now);
        }
    }
    found
}

fn named(site: &Site) -> Named {
    (site.file.clone(), site.function.clone())
}

fn is_in(places: &[Span], site: &Site) -> bool {
    places.iter().any(|place| place.has(site))
}

#[cfg(test)]
mod tests {
    use super::super::{Kind, all};
    use crate::uses::{LineCall, LineUse, Lines, Uses};
    use crate::{Bug, Repair};
    use encoders::dsl::parse;
    use explain::Pattern;
    use model::{EventId, EventKind, EventTrace, Site};

    /// What `note` calls at line 31.
    struct Calls(Option<&'static str>);

    impl Lines for Calls {
        fn uses(&self, _: &str, _: u32, _: u32) -> Vec<LineUse> {
            Vec::new()
        }

        fn calls(&self) -> Vec<LineCall> {
            let named = |name: &str| ("bus.c".to_owned(), name.to_owned());
            let call = self.0.map(|callee| LineCall {
                caller: named("note"),
                line: 31,
                callee: named(callee),
            });
            call.into_iter().collect()
        }
    }

    /// A thread looks for whom to call under the lock, and calls it without: `note`, which read what `drop` had taken away by then. `drop`
    /// takes the lock at line 40.
    fn bus() -> (EventTrace, Vec<EventId>) {
        let text = "
            cell listed 32 = 1
            cell buffer 32 = 1
            a: [take] lock m
            a: [look] R listed -> l
            a: assume l == 1
            a: [give] unlock m
            a: [use] R buffer -> b
            a: fail b == 0
            b: [in] lock m
            b: [drop] W listed 0
            b: [out] unlock m
            b: [free] W buffer 0
        ";
        let mut parsed = parse(text).expect("the text is a trace");
        let site = |function: &str, line| Site {
            file: "bus.c".to_owned(),
            line,
            column: 1,
            function: function.to_owned(),
        };
        let places = [
            ("take", vec![site("publish", 10)]),
            ("look", vec![site("publish", 11)]),
            ("give", vec![site("publish", 12)]),
            ("use", vec![site("note", 30), site("publish", 13)]),
            ("in", vec![site("drop", 40), site("close", 50)]),
            ("drop", vec![site("drop", 41), site("close", 50)]),
            ("out", vec![site("drop", 42), site("close", 50)]),
            ("free", vec![site("close", 51)]),
        ];
        for (label, stack) in places {
            let id = parsed.event(label);
            parsed.trace.events[id.index()].stack = stack.into();
        }
        let events = ["drop", "free", "look", "use"].map(|label| parsed.event(label));
        (parsed.trace, events.to_vec())
    }

    fn in_publish(lines: &dyn Lines) -> Repair {
        let (trace, events) = bus();
        in_publish_of(&trace, &events, lines)
    }

    fn in_publish_of(trace: &EventTrace, events: &[EventId], lines: &dyn Lines) -> Repair {
        let bug =
            Bug { uses: Uses(lines), ..Bug::by_hand(trace, Pattern::SeveralVariables, events) };
        let mut found = all(&bug).into_iter().map(|found| found.repair);
        let publishes = |repair: &Repair| {
            repair.kind == Kind::CriticalSection
                && repair.lock.as_ref().is_some_and(|lock| !lock.new)
                && repair.places.iter().all(|place| place.function == "publish")
        };
        found.find(publishes).expect("the lock is held for the call")
    }

    #[test]
    fn a_lock_that_the_lines_may_take_where_they_did_not_go_is_told() {
        let told = |lines: &dyn Lines| {
            let steps = in_publish(lines).steps;
            steps.into_iter().find(|step| step.starts_with("do not take it again"))
        };
        let step = "do not take it again at bus.c:40 in drop, to which these lines may come by bus.c:31 in note";
        assert_eq!(told(&Calls(Some("drop"))).as_deref(), Some(step));
        assert_eq!(told(&Calls(Some("close"))), None);
        assert_eq!(told(&Calls(None)), None);
    }

    #[test]
    fn a_recursive_lock_may_be_taken_again() {
        let (mut trace, events) = bus();
        let library = Site {
            file: "/usr/include/x86_64-linux-gnu/c++/12/bits/gthr-default.h".to_owned(),
            line: 811,
            column: 1,
            function: "__gthread_recursive_mutex_lock".to_owned(),
        };
        for event in &mut trace.events {
            if matches!(event.kind, EventKind::Lock { .. }) {
                let stack = std::iter::once(library.clone()).chain(event.stack.iter().cloned());
                event.stack = stack.collect::<Vec<Site>>().into();
            }
        }
        let steps = in_publish_of(&trace, &events, &Calls(Some("drop"))).steps;
        assert!(!steps.iter().any(|step| step.contains("again at")), "{steps:?}");
    }
}
