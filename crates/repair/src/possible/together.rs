//! A look and what was done by it, which have come into one critical section: where the look was made in a function of its own
//! that is not called there any more, the events of the cause are not found again.

use super::{Possible, Search, cells};
use crate::sections::{Section, Sections, lock_name, sections};
use encoders::ConstraintSystem;
use explain::{Pattern, last_member};
use model::{CellId, Event, EventId, EventKind, LockMode, ObjectId, PathConditionKind};
use std::collections::BTreeSet;

/// Are they of two threads, and come in any order?
pub(super) fn are_beside(orders: &ConstraintSystem, one: &Event, other: &Event) -> bool {
    one.thread != other.thread
        && !orders.surely_before(one.id, other.id)
        && !orders.surely_before(other.id, one.id)
}

impl Search<'_> {
    /// Where the cause is that another thread came between a look at a variable and what was done by it: does whoever writes
    /// it in that function, or anywhere where that is gone, look at it, and go by that, while it holds a lock that all who
    /// write it hold, and read it nowhere else? None where that is not so, or not seen in this run.
    pub(super) fn looks_and_writes_together(&self) -> Option<Possible> {
        let (trace, run) = (self.bug.trace, self.run);
        let (look, act) = self.look_and_act()?;
        let name = last_member(trace.subject(look)?);
        let named = |event: &&Event| run.subject(event).is_some_and(|it| last_member(it) == name);
        // Others may have other names for it.
        let writes: Vec<&Event> =
            run.events.iter().filter(|event| !event.kind.writes().is_empty()).collect();
        let orders = encoders::encode_orders(run).ok()?;
        let all = sections(run);
        let mut held: BTreeSet<ObjectId> = BTreeSet::new();
        let mut changes = false;
        // Where that function is gone, wherever it is done now.
        let function = &act.site().function;
        let is_gone = !self.new.functions.contains(function);
        let there = |event: &&Event| is_gone || event.site().function == *function;
        for event in run.events.iter().filter(named).filter(there) {
            let about = cells(event);
            let meets = |other: &&&Event| {
                !cells(other).is_disjoint(&about) && are_beside(&orders, event, other)
            };
            let mut others = writes.iter().filter(meets).peekable();
            if others.peek().is_none() {
                continue;
            }
            let section = self.section_with_look(&all, event, &about)?;
            let holds = |other: &&Event| {
                let mut around = all.around(run, other.id).into_iter();
                around.any(|it| it.object == section.object && it.mode == LockMode::Exclusive)
            };
            if !others.all(holds) {
                return None;
            }
            held.insert(section.object);
            changes |= !event.kind.writes().is_empty();
        }
        if !changes || self.takes_by_trying(&held) {
            return None;
        }
        let names: BTreeSet<String> = held.into_iter().map(|lock| lock_name(run, lock)).collect();
        let is = if names.len() == 1 { "is" } else { "are" };
        let names = names.into_iter().collect::<Vec<_>>().join("` and `");
        Some(Possible::No(format!("`{names}` {is} held from the look at `{name}` to its change")))
    }

    /// Where the cause is that another thread came between a look at a variable and what was done by it: both.
    pub(super) fn look_and_act(&self) -> Option<(&Event, &Event)> {
        let trace = self.bug.trace;
        if self.bug.pattern != Pattern::Atomicity {
            return None;
        }
        let (look, act) = self.groups().iter().find_map(|group| match group[..] {
            [first, .., last] => Some((trace.event(first), trace.event(last))),
            _ => None,
        })?;
        let is_one = !cells(look).is_disjoint(&cells(act));
        (is_one && !look.kind.reads().is_empty()).then_some((look, act))
    }

    /// The section that an access lies in, alone with its lock, in which its thread goes by a look at the same: by an earlier
    /// one where it writes.
    fn section_with_look(
        &self,
        all: &Sections,
        access: &Event,
        about: &BTreeSet<CellId>,
    ) -> Option<Section> {
        let run = self.run;
        let writes = !access.kind.writes().is_empty();
        let goes_by_a_look = |section: &Section| {
            let begin = run.event(section.lock).index;
            let end = if writes { access.index } else { run.event(section.unlock).index };
            let until = access.index as usize + usize::from(!writes);
            let own = run.thread_of(access.id).events.get(begin as usize..until);
            let looks = own.into_iter().flatten().map(|id| run.event(*id));
            let looks = looks.filter(|event| {
                let reads = event.kind.reads().iter();
                reads.map(|part| part.cell).any(|cell| about.contains(&cell))
            });
            let looks: BTreeSet<EventId> = looks.map(|event| event.id).collect();
            run.conditions.iter().any(|condition| {
                condition.thread == access.thread
                    && condition.kind == PathConditionKind::Branch
                    && (begin..=end).contains(&condition.position)
                    && run.reads_of(condition.expr).iter().any(|read| looks.contains(&read.event))
            })
        };
        let mut around = all.around(run, access.id).into_iter();
        around.find(|section| section.mode == LockMode::Exclusive && goes_by_a_look(section))
    }

    /// Is one of these locks only tried by somebody, who goes on where it is not got?
    fn takes_by_trying(&self, locks: &BTreeSet<ObjectId>) -> bool {
        let takes = |event: &&Event| match event.kind {
            EventKind::Lock { object, .. } => locks.contains(&object),
            _ => false,
        };
        self.run.events.iter().filter(takes).any(|event| self.is_tried_at(event.id))
    }
}
