//! A lock that only some of the threads have to hold for longer: the others are consistent as they are.

use super::atomicity::cells;
use super::planner::{Block, Planner};
use crate::Bug;
use crate::sections::Section;
use crate::source::span;
use explain::Pattern;
use model::{EventId, ThreadId};

impl Planner<'_> {
    /// The blocks without those of a thread that needs no longer section of the lock, one such thread at a time:
    /// because each of its sections deals with all of the variables by itself, or because its lines have the lock only
    /// by calling a function that takes it, as a user of the other thread's class has, and only for one of the variables.
    /// Whether that is enough is for the check to say. Never without those of the thread whose two steps were `parted`.
    pub(super) fn one_sided(&self, blocks: &[Block], parted: Option<ThreadId>) -> Vec<Vec<Block>> {
        let spared = |block: &&Block| {
            if parted == Some(self.trace.event(block.first).thread) {
                return false;
            }
            let mut others = blocks.iter().filter(|other| !same(other, block));
            self.is_whole(block) || self.is_user(block) && others.any(|other| self.is_own(other))
        };
        let without = |spared: &Block| -> Vec<Block> {
            blocks.iter().filter(|block| !same(block, spared)).cloned().collect()
        };
        let plain = self.lock.is_some() && blocks.iter().all(|block| block.lines.is_none());
        let spared = blocks.iter().filter(|_| plain).filter(spared);
        spared.map(without).filter(|blocks| !blocks.is_empty()).collect()
    }

    fn sections_of_ends(&self, block: &Block) -> [Option<Section>; 2] {
        [block.first, block.last].map(|id| self.section(id))
    }

    /// Is each end in a section that deals with the variables of both?
    fn is_whole(&self, block: &Block) -> bool {
        let trace = self.trace;
        let wanted = cells(trace, &[block.first, block.last]);
        let index = |id: EventId| trace.event(id).index as usize;
        let has_all = |section: Section| {
            let own = &trace.thread_of(section.lock).events;
            let inside = own.get(index(section.lock)..=index(section.unlock)).unwrap_or_default();
            wanted.is_subset(&cells(trace, inside))
        };
        let ends = self.sections_of_ends(block);
        ends[0] != ends[1] && ends.into_iter().all(|section| section.is_some_and(has_all))
    }

    /// Does only one end lie in a section, and is the lock taken by a function that the lines call?
    fn is_user(&self, block: &Block) -> bool {
        match self.sections_of_ends(block) {
            [Some(section), None] | [None, Some(section)] => !self.takes(block, &section),
            _ => false,
        }
    }

    /// Do the block's own lines take the lock?
    fn is_own(&self, block: &Block) -> bool {
        let mut ends = self.sections_of_ends(block).into_iter().flatten();
        ends.any(|section| self.takes(block, &section))
    }

    fn takes(&self, block: &Block, section: &Section) -> bool {
        let [first, last, lock] =
            [block.first, block.last, section.lock].map(|id| self.trace.event(id));
        let site = lock.site();
        span(first, last)
            .is_some_and(|span| span.function == site.function && span.file == site.file)
    }
}

/// The thread of the two steps that another thread came between: with what it found at the first, it goes on at the second
/// whatever sections the other one has.
pub(super) fn parted(bug: &Bug<'_>) -> Option<ThreadId> {
    let &[between, first, second] = bug.events else { return None };
    let [between, first, second] = [between, first, second].map(|id| bug.trace.event(id).thread);
    (bug.pattern == Pattern::Atomicity && first == second && first != between).then_some(first)
}

fn same(one: &Block, other: &Block) -> bool {
    (one.first, one.last) == (other.first, other.last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::candidates::siblings::Siblings;
    use crate::sections::sections;
    use encoders::dsl::parse;
    use model::Site;

    /// Of the labelled events' threads, those whose lock is enough with only the others holding it longer.
    fn spared(text: &str, places: &[(&str, &[(&str, u32)])], ends: [(&str, &str); 2]) -> Vec<u32> {
        spared_with(text, places, ends, &[])
    }

    /// The same where the sentence about the cause names these events.
    fn spared_with(
        text: &str,
        places: &[(&str, &[(&str, u32)])],
        ends: [(&str, &str); 2],
        named: &[&str],
    ) -> Vec<u32> {
        let mut parsed = parse(text).expect("the text is a trace");
        for (label, frames) in places {
            let site = |(function, line): &(&str, u32)| {
                let (file, function) = ("feed.c".to_owned(), (*function).to_owned());
                Site { file, line: *line, column: 1, function }
            };
            let stack: Vec<Site> = frames.iter().map(site).collect();
            parsed.trace.events[parsed.labels[*label].index()].stack = stack.into();
        }
        let trace = &parsed.trace;
        let (system, all) = (encoders::encode(trace).expect("constraints"), sections(trace));
        let lock = all.first().map(|section| section.object);
        let siblings = lock.map(Siblings::none);
        let siblings = siblings.as_ref();
        let planner = Planner { trace, system: &system, all: &all, lock, siblings, complete: true };
        let blocks = ends.map(|(first, last)| {
            let [first, last] = [first, last].map(|label| parsed.event(label));
            Block { first, last, lines: None, counts: false }
        });
        let events: Vec<EventId> = named.iter().map(|label| parsed.event(label)).collect();
        let bug = Bug::by_hand(trace, Pattern::Atomicity, &events);
        let rest = planner.one_sided(&blocks, parted(&bug));
        let spared = |rest: &Vec<Block>| blocks.iter().position(|block| !same(block, &rest[0]));
        rest.iter().filter_map(spared).map(|at| at as u32).collect()
    }

    const FEED: &str = "
        a: [in] lock m
        a: [list] R list -> p
        a: [out] unlock m
        a: [open] R open -> q
        b: [take] lock m
        b: [leave] W list 0
        b: [give] unlock m
        b: [close] W open 0
    ";

    #[test]
    fn a_user_of_a_class_needs_no_lock_of_it() {
        let own = [("in", 34), ("list", 35), ("out", 36), ("open", 38)];
        let own = own.map(|(label, line)| (label, vec![("publish", line)]));
        let user = [("take", 27), ("leave", 28), ("give", 29)];
        let called = user.map(|(label, line)| (label, vec![("leave", line), ("main", 91)]));
        let close = || ("close", vec![("main", 92)]);
        let ends = [("list", "open"), ("leave", "close")];
        let all = |user: [(&'static str, Vec<(&'static str, u32)>); 3]| {
            let places: Vec<_> = own.iter().cloned().chain(user).chain([close()]).collect();
            let places: Vec<(&str, &[(&str, u32)])> =
                places.iter().map(|(label, frames)| (*label, frames.as_slice())).collect();
            spared(FEED, &places, ends)
        };
        assert_eq!(all(called), [1]);
        let same_code = user.map(|(label, line)| (label, vec![("main", line)]));
        assert_eq!(all(same_code), [] as [u32; 0], "it has the lock in its own hands");
    }

    #[test]
    fn sections_that_change_everything_are_long_enough() {
        let text = "
            a: lock m
            a: [low] R low -> p
            a: unlock m
            a: lock m
            a: [high] R high -> q
            a: unlock m
            b: lock m
            b: W low 1
            b: [one] W high 2
            b: unlock m
            b: lock m
            b: [two] W low 3
            b: W high 4
            b: unlock m
        ";
        assert_eq!(spared(text, &[], [("low", "high"), ("one", "two")]), [1]);
        let parted = text.replace("b: W low 1\n", "");
        assert!(spared(&parted, &[], [("low", "high"), ("one", "two")]).is_empty());
    }

    /// A check and its use, each in a section of its own, and two steps of another thread.
    #[test]
    fn whose_check_and_use_were_parted_holds_the_lock_for_both() {
        let text = "
            a: lock m
            a: [check] R length -> n
            a: unlock m
            a: lock m
            a: [use] R length -> k
            a: unlock m
            b: lock m
            b: [one] W length 1
            b: unlock m
            b: lock m
            b: [two] W length 0
            b: unlock m
        ";
        let ends = [("check", "use"), ("one", "two")];
        assert_eq!(spared(text, &[], ends), [0, 1]);
        assert_eq!(spared_with(text, &[], ends, &["two", "check", "use"]), [1]);
    }
}
