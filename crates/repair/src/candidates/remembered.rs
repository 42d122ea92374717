//! Decisions that compare what a variable is with what it was in an earlier section of the same lock, such as the length of
//! a journal with what it was at the beginning of a transaction: what others did in between is taken for the thread's own,
//! whichever of the sections the cause names. So both belong together.

use super::planner::Block;
use crate::Bug;
use crate::sections::Sections;
use model::{CmpOp, EventId, EventKind, EventTrace, Expr, ExprId, PathConditionKind, ReadRef};
use std::collections::BTreeSet;

/// The two reads of one variable of the cause, the earlier one first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Pair {
    before: EventId,
    now: EventId,
}

/// What the threads of a cause remember of its variables.
pub(super) struct Remembered<'t> {
    trace: &'t EventTrace,
    pairs: BTreeSet<Pair>,
}

impl<'t> Remembered<'t> {
    pub(super) fn of(bug: &Bug<'t>, all: &Sections) -> Self {
        let trace = bug.trace;
        let named = super::atomicity::cells(trace, bug.events);
        let threads: BTreeSet<_> = bug.events.iter().map(|id| trace.event(*id).thread).collect();
        let mut pairs = BTreeSet::new();
        let branches = trace.conditions.iter().filter(|condition| {
            condition.kind == PathConditionKind::Branch && threads.contains(&condition.thread)
        });
        for (one, other) in branches.filter_map(|branch| ordered(trace, branch.expr)) {
            let [one, other] = [one, other].map(|side| trace.reads_of(side));
            for (a, b) in one.iter().flat_map(|a| other.iter().map(move |b| (*a, *b))) {
                let cells = [a, b].map(|read| cell(trace, read));
                if cells[0] == cells[1] && cells[0].is_some_and(|cell| named.contains(&cell)) {
                    pairs.extend(pair(trace, all, [a.event, b.event]));
                }
            }
        }
        Self { trace, pairs }
    }

    /// The blocks, each with both of the reads of which it has one.
    pub(super) fn whole(&self, mut blocks: Vec<Block>) -> Vec<Block> {
        let index = |id: EventId| self.trace.event(id).index;
        for block in &mut blocks {
            let thread = self.trace.event(block.first).thread;
            let own = |pair: &&Pair| self.trace.event(pair.now).thread == thread;
            for pair in self.pairs.iter().filter(own) {
                let (first, last) = (index(block.first), index(block.last));
                if index(pair.now) < first || last < index(pair.before) {
                    continue;
                }
                if index(pair.before) < first {
                    block.first = pair.before;
                }
                if last < index(pair.now) {
                    block.last = pair.now;
                }
            }
        }
        blocks
    }
}

/// The sides of a comparison that says which of two values is greater. Who asks whether something is still what it was sees
/// to what came in between.
fn ordered(trace: &EventTrace, mut expr: ExprId) -> Option<(ExprId, ExprId)> {
    loop {
        expr = match trace.exprs.get(expr) {
            Expr::Cmp(CmpOp::Eq, a, b) => match [a, b].map(|side| trace.exprs.as_const(side)) {
                [None, Some(_)] => a,
                [Some(_), None] => b,
                _ => return None,
            },
            Expr::Cmp(_, a, b) => {
                let remembers = [a, b].iter().all(|side| trace.exprs.as_const(*side).is_none());
                return remembers.then_some((a, b));
            }
            Expr::Not(of) | Expr::Extract { of, .. } => of,
            _ => return None,
        };
    }
}

fn cell(trace: &EventTrace, read: ReadRef) -> Option<model::CellId> {
    trace.event(read.event).kind.reads().get(read.part as usize).map(|part| part.cell)
}

/// Reads of one thread in two sections of one lock, by different lines, without a wait in between, in which others are let
/// in on purpose.
fn pair(trace: &EventTrace, all: &Sections, mut reads: [EventId; 2]) -> Option<Pair> {
    reads.sort_by_key(|id| trace.event(*id).index);
    let [before, now] = reads.map(|id| trace.event(id));
    if before.thread != now.thread || before.stack == now.stack {
        return None;
    }
    let around = [before, now].map(|event| all.around(trace, event.id));
    let apart = around[0].iter().any(|one| {
        around[1].iter().any(|other| other.object == one.object && other.lock != one.lock)
    });
    let own = &trace.thread_of(now.id).events;
    let between = own.get(before.index as usize..now.index as usize)?;
    let waits = between.iter().any(|id| matches!(trace.event(*id).kind, EventKind::Wake { .. }));
    (apart && !waits).then_some(Pair { before: before.id, now: now.id })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sections::sections;
    use encoders::dsl::{Parsed, parse};
    use explain::Pattern;
    use model::Site;

    /// A transaction notes how long the journal is, adds to it, and takes back what is behind its mark.
    const ROLLBACK: &str = "
        cell length 32 = 0
        a: lock m
        a: [mark] R length -> mark
        a: unlock m
        a: lock m
        a: [size] R length -> size
        a: [add] W length size + 1
        a: unlock m
        a: lock m
        a: [look] R length -> now
        a: assume now > mark
        a: [drop] W length now - 1
        a: unlock m
        b: lock m
        b: [other] R length -> theirs
        b: [push] W length theirs + 1
        b: unlock m
    ";

    /// The trace, whose first thread has the lines from 11 on.
    fn trace(text: &str) -> Parsed {
        let mut parsed = parse(text).expect("the text is a trace");
        for event in &mut parsed.trace.events {
            let function = ["transfer", "other"][event.thread.index()].to_owned();
            let (file, line) = ("ledger.c".to_owned(), 10 + event.index);
            event.stack = [Site { file, line, column: 1, function }].into();
        }
        parsed
    }

    /// What becomes of a block of the first thread between these, in labels.
    fn whole(text: &str, block: [&str; 2]) -> [String; 2] {
        let parsed = trace(text);
        let [first, last] = block.map(|label| parsed.event(label));
        let events = [first, parsed.event("push"), last];
        let bug = Bug::by_hand(&parsed.trace, Pattern::Atomicity, &events);
        let remembered = Remembered::of(&bug, &sections(&parsed.trace));
        let blocks = remembered.whole(vec![Block { first, last, lines: None, counts: false }]);
        let label = |id: EventId| {
            let mut labels = parsed.labels.iter();
            labels.find(|(_, event)| **event == id).map(|(label, _)| label.clone())
        };
        [blocks[0].first, blocks[0].last].map(|id| label(id).expect("a label"))
    }

    #[test]
    fn what_a_length_is_compared_with_belongs_to_the_section() {
        assert_eq!(whole(ROLLBACK, ["size", "drop"]), ["mark", "drop"]);
        assert_eq!(whole(ROLLBACK, ["mark", "add"]), ["mark", "look"]);
        assert_eq!(whole(ROLLBACK, ["size", "add"]), ["mark", "look"]);
    }

    #[test]
    fn who_asks_whether_something_has_changed_sees_to_it() {
        let text = ROLLBACK.replace("now > mark", "now != mark");
        assert_eq!(whole(&text, ["mark", "add"]), ["mark", "add"]);
        let text = ROLLBACK.replace("a: [size]", "a: wait c m\n        a: [size]");
        assert_eq!(whole(&text, ["size", "drop"]), ["size", "drop"], "others are let in");
    }

    #[test]
    fn no_repair_holds_the_lock_for_less() {
        let parsed = trace(ROLLBACK);
        let events = ["size", "push", "drop"].map(|label| parsed.event(label));
        let bug = Bug::by_hand(&parsed.trace, Pattern::Atomicity, &events);
        let found = super::super::atomicity::candidates(&bug);
        let places = found.iter().flat_map(|found| &found.repair.places);
        let own: Vec<_> = places.filter(|place| place.function == "transfer").collect();
        let line = |label: &str| parsed.trace.event(parsed.event(label)).site().line;
        assert!(!own.is_empty());
        assert!(own.iter().all(|place| place.first <= line("mark")), "{own:?}");
        assert!(own.iter().all(|place| place.last >= line("drop")), "{own:?}");
    }
}
