//! Locks that are one in the source: a member of a structure, of which each object has its own.

use super::atomicity::cells;
use crate::sections::{Section, Sections};
use model::{CellId, EventId, EventTrace, ObjectId, Site};
use std::collections::{BTreeMap, BTreeSet};

/// A lock, and the others that are taken at the same places under the same name.
pub(super) struct Siblings {
    lock: ObjectId,
    others: BTreeSet<ObjectId>,
    /// Under which one of them a cell is accessed; none where it is accessed under several.
    guards: BTreeMap<CellId, Option<ObjectId>>,
}

impl Siblings {
    pub(super) fn of(trace: &EventTrace, all: &Sections, lock: ObjectId) -> Self {
        let name = |section: &Section| trace.subject(trace.event(section.lock)).unwrap_or_default();
        let site = |section: &Section| trace.event(section.lock).site();
        let mut own: Vec<(&Site, &str)> = Vec::new();
        for section in all.iter().filter(|section| section.object == lock) {
            let taken = (site(section), name(section));
            if !own.contains(&taken) {
                own.push(taken);
            }
        }
        let same = |section: &Section| {
            let mut own = own.iter().filter(|(at, _)| *at == site(section));
            own.any(|(_, called)| explain::same_variable(called, name(section)))
        };
        let mut others: BTreeSet<ObjectId> = BTreeSet::new();
        for section in all.iter().filter(|section| section.object != lock) {
            if !others.contains(&section.object) && same(section) {
                others.insert(section.object);
            }
        }
        let mut guards: BTreeMap<CellId, Option<ObjectId>> = BTreeMap::new();
        let family = |object: ObjectId| object == lock || others.contains(&object);
        for section in all.iter().filter(|s| !others.is_empty() && family(s.object)) {
            let own = &trace.thread_of(section.lock).events;
            let index = |id: EventId| trace.event(id).index as usize;
            let inside = own.get(index(section.lock)..=index(section.unlock)).unwrap_or_default();
            for cell in cells(trace, inside) {
                let guard = guards.entry(cell).or_insert(Some(section.object));
                if *guard != Some(section.object) {
                    *guard = None;
                }
            }
        }
        Self { lock, others, guards }
    }

    /// The lock by itself.
    pub(super) fn none(lock: ObjectId) -> Self {
        Self { lock, others: BTreeSet::new(), guards: BTreeMap::new() }
    }

    /// The others.
    pub(super) fn others(&self) -> &BTreeSet<ObjectId> {
        &self.others
    }

    fn has(&self, object: ObjectId) -> bool {
        object == self.lock || self.others.contains(&object)
    }

    /// The section that an event lies in: of the lock itself, or else of one of the others.
    pub(super) fn section(
        &self,
        trace: &EventTrace,
        all: &Sections,
        id: EventId,
    ) -> Option<Section> {
        let around = all.around(trace, id);
        let own = around.iter().find(|section| section.object == self.lock);
        let mut others = around.iter().filter(|section| self.others.contains(&section.object));
        own.or_else(|| others.next().filter(|_| others.next().is_none())).copied()
    }

    /// The one that a region of a thread has to do with: that it takes, or under which others access what it
    /// accesses; else the lock itself. `None` where it has to do with several.
    pub(super) fn of_region(
        &self,
        trace: &EventTrace,
        all: &Sections,
        (first, last): (EventId, EventId),
    ) -> Option<ObjectId> {
        if self.others.is_empty() {
            return Some(self.lock);
        }
        let taken = all.touching(trace, (first, last)).map(|section| section.object);
        let mut found: BTreeSet<ObjectId> = taken.filter(|object| self.has(*object)).collect();
        if found.is_empty() {
            let own = &trace.thread_of(first).events;
            let index = |id: EventId| trace.event(id).index;
            let inside = own.get(index(first) as usize..=index(last) as usize).unwrap_or_default();
            let cells = cells(trace, inside).into_iter();
            found.extend(cells.filter_map(|cell| self.guards.get(&cell).copied().flatten()));
        }
        match found.len() {
            0 => Some(self.lock),
            1 => found.first().copied(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sections::sections;
    use encoders::dsl::parse;

    /// Two objects with a lock and a cell each; a thread reads the second one's cell without its lock.
    #[test]
    fn each_object_has_its_own_lock() {
        let text = "
            t0: fork a
            a: [one] lock m
            a: W x 1
            a: [last] unlock m
            a: [two] lock n
            a: W y 1
            a: unlock n
            t0: [look] R y -> v
            t0: [other] R z -> w
        ";
        let mut parsed = parse(text).expect("the text is a trace");
        let [one, last, two, look, other] =
            ["one", "last", "two", "look", "other"].map(|label| parsed.event(label));
        let all = sections(&parsed.trace);
        let object = |id: EventId| parsed.trace.event(id).kind.object().expect("a lock");
        let (m, n) = (object(one), object(two));
        assert!(Siblings::of(&parsed.trace, &all, m).others().is_empty(), "taken elsewhere");
        let stack = parsed.trace.event(one).stack.clone();
        let second = &mut parsed.trace.events[two.index()];
        (second.stack, second.name) = (stack, Some("this->lock".into()));
        parsed.trace.events[one.index()].name = Some("this->lock".into());
        let trace = &parsed.trace;
        let siblings = Siblings::of(trace, &all, m);
        assert_eq!(siblings.others(), &BTreeSet::from([n]));
        assert_eq!(siblings.section(trace, &all, two).map(|section| section.object), Some(n));
        let of_region = |first, last| siblings.of_region(trace, &all, (first, last));
        assert_eq!(of_region(one, last), Some(m));
        assert_eq!(of_region(one, two), None, "both");
        assert_eq!(of_region(look, look), Some(n), "by what it guards");
        assert_eq!(of_region(other, other), Some(m), "nothing is known");
    }
}
