//! Which locks a thread holds at each event of a schedule.

use crate::Solution;
use crate::solution::Event;
use std::collections::BTreeMap;

/// The locks that each event's thread holds when the event happens, in the order in which it took
/// them, by the events' identifiers; events at which none is held are left out, and so are locks of the
/// C++ library's own. A lock that an
/// event takes is not held yet, one that it gives back still is.
#[must_use]
pub fn held<'s>(solution: &'s Solution, schedule: &'s [String]) -> BTreeMap<&'s str, Vec<&'s str>> {
    let mut locks: BTreeMap<&str, Vec<&Event>> = BTreeMap::new();
    let mut found = BTreeMap::new();
    for event in schedule.iter().filter_map(|id| solution.event(id)) {
        let own = locks.entry(&event.thread).or_default();
        if !own.is_empty() {
            let names = own.iter().map(|lock| lock.object.as_deref().unwrap_or("?"));
            let names: Vec<&str> = names.filter(|name| !is_of_library(name)).collect();
            if !names.is_empty() {
                found.insert(event.id.as_str(), names);
            }
        }
        match event.kind.as_str() {
            "lock" | "lock-shared" => own.push(event),
            "unlock" | "unlock-shared" | "still-held" => {
                if let Some(index) = own.iter().rposition(|lock| same_lock(lock, event)) {
                    own.remove(index);
                }
            }
            _ => {}
        }
    }
    found
}

/// Is it a lock that the C++ library has for itself, such as the flag by which `std::async` runs its
/// function once? Its members begin with an underscore and a capital.
fn is_of_library(name: &str) -> bool {
    let member = name.rsplit(['.', '>']).next().unwrap_or(name);
    let mut letters = member.chars();
    letters.next() == Some('_') && letters.next().is_some_and(|c| c.is_ascii_uppercase())
}

/// By the object's identifier; by its name in answers that do not have that.
fn same_lock(one: &Event, other: &Event) -> bool {
    if one.targets.is_empty() || other.targets.is_empty() {
        one.object == other.object
    } else {
        one.targets == other.targets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(number: usize, thread: &str, kind: &str, lock: &str) -> Event {
        Event {
            id: format!("e{number}"),
            thread: thread.to_owned(),
            kind: kind.to_owned(),
            object: Some(lock.to_owned()),
            targets: vec![format!("o{lock}")],
            ..Event::default()
        }
    }

    #[test]
    fn locks_are_held_from_the_event_after_to_their_release() {
        let steps = [
            ("t0", "lock", "a"),
            ("t0", "lock", "b"),
            ("t1", "read", "x"),
            ("t0", "unlock", "a"),
            ("t0", "read", "x"),
            ("t0", "unlock", "b"),
            ("t0", "lock", "this->_M_once"),
            ("t0", "read", "x"),
        ];
        let events: Vec<Event> = (0..)
            .zip(steps)
            .map(|(number, (thread, kind, lock))| event(number, thread, kind, lock))
            .collect();
        let schedule: Vec<String> = events.iter().map(|event| event.id.clone()).collect();
        let solution = Solution { events, ..Solution::default() };
        let found = held(&solution, &schedule);
        let at = |id: &str| found.get(id).cloned().unwrap_or_default();
        assert!(at("e0").is_empty() && at("e2").is_empty() && at("e7").is_empty());
        assert_eq!((at("e1"), at("e3"), at("e4")), (vec!["a"], vec!["a", "b"], vec!["b"]));
    }
}
