//! A variable of a thread whose address it passes to each thread that it creates, and which it changes for the next one: each
//! gets a copy.

use super::{Candidate, Kind, Repair, quoted};
use crate::Bug;
use crate::edit::Edit;
use crate::enforce::Rule;
use crate::rust::is_rust;
use crate::source::{Span, caller, frames};
use model::{
    Cell, CellId, Event, EventId, EventKind, EventTrace, ExprId, ReadPart, ThreadId, WritePart,
};
use std::collections::{BTreeMap, BTreeSet};

/// The threads that were created where one of the cause's was get what stood in the variable at that time, where the
/// creator changes it between two of them, nobody else changes it, and they only read it.
pub(super) fn candidate(bug: &Bug<'_>) -> Option<Candidate> {
    let trace = bug.trace;
    bug.events.iter().find_map(|id| {
        let read = trace.event(*id);
        let cell = read.kind.reads().first().filter(|_| read.kind.writes().is_empty())?.cell;
        let created = Created::of(trace, read.thread)?;
        let cells = created.reused(trace);
        if !cells.contains(&cell) {
            return None;
        }
        created.candidate(trace, cell, &cells)
    })
}

/// Threads that one line of one thread created.
struct Created<'t> {
    creator: ThreadId,
    /// The line.
    place: Span,
    /// Where each began.
    forks: BTreeMap<ThreadId, &'t Event>,
}

impl<'t> Created<'t> {
    /// Those that were created where `thread` was; `None` where it is the only one.
    fn of(trace: &'t EventTrace, thread: ThreadId) -> Option<Self> {
        let forks = || {
            trace.events.iter().filter_map(|event| match event.kind {
                EventKind::Fork { child } => Some((child, event)),
                _ => None,
            })
        };
        let (_, own) = forks().find(|(child, _)| *child == thread)?;
        let joined = |child: ThreadId| {
            let is_join = |event: &&Event| matches!(event.kind, EventKind::Join { child: c, .. } if c == child);
            let join = trace.events.iter().find(is_join);
            join.filter(|join| join.thread == own.thread).map(|join| join.index)
        };
        // Who is created when the one before has ended gets nothing that is changed for another one.
        let together = |child: ThreadId, other: &Event| {
            joined(child).is_none_or(|end| end > own.index)
                && joined(thread).is_none_or(|end| end > other.index)
        };
        // A library may have created them along several of its own paths.
        let line = |fork: &Event| caller(&frames(fork)).map(Span::of);
        let place = line(own)?;
        let alike = |(child, other): &(ThreadId, &Event)| {
            other.thread == own.thread
                && line(other).as_ref() == Some(&place)
                && together(*child, other)
        };
        let forks: BTreeMap<ThreadId, &Event> = forks().filter(alike).collect();
        (forks.len() > 1).then_some(Self { creator: own.thread, place, forks })
    }

    /// What the creator changes between two of them, and nobody else, and they read.
    fn reused(&self, trace: &EventTrace) -> BTreeSet<CellId> {
        let index = self.forks.values().map(|fork| fork.index);
        let (first, last) = (index.clone().min(), index.max());
        let (mut read, mut changed, mut others) =
            (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for event in &trace.events {
            let written = event.kind.writes().iter().map(|part| part.cell);
            if event.thread != self.creator {
                others.extend(written);
            } else if Some(event.index) > first && Some(event.index) < last {
                changed.extend(written);
            }
            if self.forks.contains_key(&event.thread) {
                read.extend(event.kind.reads().iter().map(|part| part.cell));
            }
        }
        changed.retain(|cell| read.contains(cell) && !others.contains(cell));
        changed
    }

    /// Each thread reads `cells` from cells of its own, which its creator writes right before it creates it.
    fn candidate(
        &self,
        trace: &EventTrace,
        named: CellId,
        cells: &BTreeSet<CellId>,
    ) -> Option<Candidate> {
        let mut copied = trace.clone();
        let mut copies: BTreeMap<(ThreadId, CellId), CellId> = BTreeMap::new();
        let mut writes: Vec<(EventId, Vec<WritePart>)> = Vec::new();
        for (&thread, fork) in &self.forks {
            let mut parts = Vec::new();
            for &cell in cells {
                let id = CellId::from_index(copied.cells.len());
                let of = &trace.cells[cell.index()];
                let init = copied.exprs.constant(of.width, 0);
                copied.cells.push(Cell { id, init, ..of.clone() });
                copies.insert((thread, cell), id);
                let value = self.last_written(trace, fork, cell);
                parts.push(WritePart { cell: id, value: value.unwrap_or(of.init) });
            }
            writes.push((fork.id, parts));
        }
        let mut edit = Edit::new(&copied);
        for (fork, parts) in writes {
            edit.before(fork, EventKind::Write { parts });
        }
        for event in &trace.events {
            let EventKind::Read { parts } = &event.kind else { continue };
            let copy = |cell: CellId| copies.get(&(event.thread, cell)).copied();
            if parts.iter().any(|part| copy(part.cell).is_some()) {
                let own = |part: &ReadPart| ReadPart {
                    cell: copy(part.cell).unwrap_or(part.cell),
                    ..*part
                };
                let parts = parts.iter().map(own).collect();
                edit.replace(event.id, EventKind::Read { parts });
            }
        }
        let edited = edit.finish()?;
        let name = self.name(trace, named)?;
        let by_value =
            if is_rust(&self.place.file) { "" } else { ", not its address or a reference" };
        let step = format!(
            "in {}, give each thread a copy of {} of its own ({}): pass its value{by_value}",
            self.place.function,
            quoted(&name),
            self.place.begin(),
        );
        let repair = Repair {
            kind: Kind::OwnCopy,
            steps: vec![step],
            lock: None,
            variables: vec![name],
            places: vec![self.place.clone()],
            // What a thread reads later is another value, and not another order.
            rule: Rule::None,
            checked: None,
        };
        Some(Candidate { repair, edited })
    }

    /// What the creator wrote last before a thread began.
    fn last_written(&self, trace: &EventTrace, fork: &Event, cell: CellId) -> Option<ExprId> {
        let own = &trace.threads.get(self.creator.index())?.events;
        let before = own.get(..fork.index as usize)?.iter().rev();
        let mut parts = before.flat_map(|id| trace.event(*id).kind.writes());
        parts.find(|part| part.cell == cell).map(|part| part.value)
    }

    /// The variable that the cell is of, as the creator calls it.
    fn name(&self, trace: &EventTrace, cell: CellId) -> Option<String> {
        let own = trace.threads.get(self.creator.index())?.events.iter();
        let writes =
            |id: &&EventId| trace.event(**id).kind.writes().iter().any(|part| part.cell == cell);
        let name = trace.subject(trace.event(*own.clone().find(writes)?))?;
        let end = name.find(['.', '[']).unwrap_or(name.len());
        Some(name[..end].to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{self, Verdict};
    use encoders::dsl::parse;
    use explain::Pattern;
    use model::Site;

    /// Two threads get the address of one variable, which is changed in between; `who` writes it besides.
    fn found(who: &str) -> Option<Candidate> {
        let text = format!(
            "
            cell i 32 = 0
            t0: [one] fork a
            t0: [raise] W i 1
            t0: [two] fork b
            a: [look] R i -> x
            {who}
            b: R i -> y
            t0: join a
            t0: join b
            t0: fail x == 1
            "
        );
        found_in(&text)
    }

    fn found_in(text: &str) -> Option<Candidate> {
        let mut parsed = parse(text).expect("the text is a trace");
        for label in ["one", "two"] {
            let id = parsed.event(label);
            parsed.trace.events[id.index()].stack = [Site {
                file: "main.c".to_owned(),
                line: 14,
                column: 9,
                function: "main".to_owned(),
            }]
            .into();
        }
        let events = ["look", "raise"].map(|label| parsed.event(label));
        candidate(&Bug::by_hand(&parsed.trace, Pattern::Order, &events))
    }

    #[test]
    fn each_thread_reads_what_stood_there_when_it_was_created() {
        let found = found("").expect("a candidate");
        let said = "in main, give each thread a copy of `i` of its own (main.c:14): pass its value, not its address or \
                    a reference";
        assert_eq!(found.repair.steps, [said]);
        let recorded = found.edited.trace.clone();
        let limits = crate::Limits {
            time: std::time::Duration::from_secs(60),
            memory_mb: None,
            left: &|| std::time::Duration::MAX,
        };
        let verdict = check::check((&recorded, None), &found.edited, limits).expect("an answer");
        assert!(matches!(verdict, Verdict::Holds(_)), "{verdict:?}");
    }

    #[test]
    fn what_a_thread_answers_with_is_no_copy() {
        assert!(found("a: W i 7").is_none());
    }
    /// A pool and the next one at its place: a flag that its threads are to see is no copy.
    #[test]
    fn threads_of_which_one_ends_before_the_other_begins_share_on_purpose() {
        let text = "
            cell i 32 = 0
            t0: [one] fork a
            a: R i -> y
            t0: join a
            t0: W i 2
            t0: [two] fork b
            t0: [raise] W i 1
            b: [look] R i -> x
            t0: join b
            t0: fail x == 1
        ";
        assert!(found_in(text).is_none());
        assert!(
            found_in(&text.replace("t0: join a", "").replace("t0: fail", "t0: join a\nt0: fail"))
                .is_some()
        );
    }
}
