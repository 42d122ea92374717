//! Where a lock has to be held, so that what belongs together is one critical section.

use super::atomicity::{cells, touches};
use super::siblings::Siblings;
use crate::sections::{Section, Sections};
use crate::source::{Span, caller, frames, passages, span, span_in};
use encoders::ConstraintSystem;
use model::{CellId, Event, EventId, EventKind, EventTrace, ObjectId, Site, ThreadId};
use std::collections::{BTreeMap, BTreeSet};

/// What one thread does that nothing may come between.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) first: EventId,
    pub(super) last: EventId,
    /// The same in lines, where the recorded run ended in between but other passages tell.
    pub(super) lines: Option<Span>,
    /// The last event is an atomic update of something else than the cause's variables: it counts a
    /// user, and what others count is no concern of the lock.
    pub(super) counts: bool,
}

/// Which lock, and where it is to be held.
#[derive(Debug)]
pub(super) struct Plan {
    /// None for a new one.
    pub(super) lock: Option<ObjectId>,
    pub(super) spans: Vec<Span>,
    pub(super) regions: Vec<(EventId, EventId)>,
    /// Are all of these sections of the lock already, only shorter ones?
    pub(super) only_longer: bool,
}

/// All lines that a thread comes through from one event to a later one, in the innermost function that both were
/// performed in or called from.
fn around(trace: &EventTrace, one: &Event, other: &Event) -> Option<Span> {
    let (a, b) = (frames(one), frames(other));
    let common = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let same = |a: &Site, b: &Site| a.function == b.function && a.file == b.file;
    let depth = match (a.get(common), b.get(common)) {
        (Some(a), Some(b)) if same(a, b) => common,
        _ => common.checked_sub(1)?,
    };
    // Nobody takes a lock in a library's lines.
    let depth = (0..=depth).rev().find(|depth| !a[*depth].is_in_library())?;
    let own = &trace.thread_of(one.id).events;
    let between = own.get(one.index as usize..=other.index as usize)?.iter();
    let between = between.map(|id| frames(trace.event(*id)));
    let there = between.filter(|frames| {
        frames.get(..depth) == a.get(..depth)
            && frames.get(depth).is_some_and(|at| same(at, a[depth]))
    });
    let lines: BTreeSet<u32> = there.map(|frames| frames[depth].line).collect();
    let (first, last) = (*lines.first()?, *lines.last()?);
    (first != 0).then(|| Span { first, last, ..Span::of(a[depth]) })
}

/// The line that calls the function in which a thread comes from one event to a later one, where it goes round a loop
/// between them: all rounds lie in that call. The lines between the events where it goes straight on.
fn called(one: &Event, other: &Event) -> Option<Span> {
    let (a, b) = (frames(one), frames(other));
    let common = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let goes_back = match (a.get(common), b.get(common)) {
        (Some(a), Some(b)) => a.function == b.function && a.file == b.file && a.line > b.line,
        _ => one.stack == other.stack && one.id != other.id,
    };
    if !goes_back {
        return span(one, other);
    }
    let function = if common == a.len() { common.checked_sub(1)? } else { common };
    let caller = caller(a.get(..function)?)?;
    (caller.line != 0).then(|| Span::of(caller))
}

/// Finds it for one lock.
pub(super) struct Planner<'a> {
    pub(super) trace: &'a EventTrace,
    pub(super) system: &'a ConstraintSystem,
    pub(super) all: &'a Sections,
    pub(super) lock: Option<ObjectId>,
    /// Its siblings, where there is a lock.
    pub(super) siblings: Option<&'a Siblings>,
    /// Every access that may come at the same time is guarded, too.
    pub(super) complete: bool,
}

/// Parts of threads, to be looked up by what they hold.
struct Regions<'a> {
    trace: &'a EventTrace,
    /// By thread and first event; and which of those of the thread up to this one ends last.
    regions: Vec<(ThreadId, u32, u32)>,
}

impl<'a> Regions<'a> {
    fn of(trace: &'a EventTrace, regions: &[(EventId, EventId)]) -> Self {
        let index = |id: EventId| trace.event(id).index;
        let mut regions: Vec<(ThreadId, u32, u32)> = regions
            .iter()
            .map(|(first, last)| (trace.event(*first).thread, index(*first), index(*last)))
            .collect();
        regions.sort_unstable();
        for at in 1..regions.len() {
            if regions[at].0 == regions[at - 1].0 {
                regions[at].2 = regions[at].2.max(regions[at - 1].2);
            }
        }
        Self { trace, regions }
    }

    /// Does one of them hold this part of a thread?
    fn hold(&self, (first, last): (EventId, EventId)) -> bool {
        // Of those that begin before it, the one that ends last does if any does.
        let (first, last) = (self.trace.event(first), self.trace.event(last));
        let place = (first.thread, first.index);
        let begun = self.regions.partition_point(|(thread, from, _)| (*thread, *from) <= place);
        let before = begun.checked_sub(1).map(|at| self.regions[at]);
        before.is_some_and(|(thread, _, to)| thread == first.thread && last.index <= to)
    }
}

impl Planner<'_> {
    /// The section of the lock, or of another object's same lock, that an event lies in.
    pub(super) fn section(&self, id: EventId) -> Option<Section> {
        self.siblings?.section(self.trace, self.all, id)
    }

    /// The blocks, of which some go on into a section of the lock that begins right behind them, in the same
    /// call: nobody gives a lock back only to take it again. `None` where there is none such.
    pub(super) fn joined(&self, blocks: &[Block]) -> Option<Vec<Block>> {
        let next = |block: &Block| {
            let last = self.trace.event(block.last);
            let own = &self.trace.thread_of(block.last).events;
            let next = *own.get(last.index as usize + 1)?;
            let section = self.all.around(self.trace, next);
            let section = section
                .into_iter()
                .find(|one| one.lock == next && Some(one.object) == self.lock)?;
            let callers = |id: EventId| {
                let event = self.trace.event(id);
                event.stack.get(event.depth() + 1..)
            };
            let same = [section.lock, section.unlock].iter().all(|id| {
                callers(*id) == callers(block.last)
                    && self.trace.event(*id).site().function == last.site().function
            });
            let free = block.lines.is_none() && self.section(block.last).is_none();
            (same && free).then_some(section.unlock)
        };
        if !blocks.iter().any(|block| next(block).is_some()) {
            return None;
        }
        let join =
            |block: &Block| Block { last: next(block).unwrap_or(block.last), ..block.clone() };
        Some(blocks.iter().map(join).collect())
    }

    /// The plan by the lines of the blocks' first and last events.
    pub(super) fn plan(&self, blocks: &[Block]) -> Option<Plan> {
        self.plan_by(blocks, &|a, b| span_in(self.trace, a, b))
    }

    /// The plan by all lines that the blocks come through, where these are more: in a loop, one may end in the line in
    /// which it began. `None` where they are the same.
    pub(super) fn plan_around(&self, blocks: &[Block]) -> Option<Plan> {
        let (plan, around) = (self.plan(blocks), |a: &Event, b: &Event| around(self.trace, a, b));
        let wider = self.plan_by(blocks, &around)?;
        plan.is_none_or(|plan| plan.spans != wider.spans).then_some(wider)
    }

    /// The plan by the calls in which a loop goes round. `None` where no block does.
    pub(super) fn plan_called(&self, blocks: &[Block]) -> Option<Plan> {
        let whole = self.plan_by(blocks, &called)?;
        self.plan(blocks).is_none_or(|plan| plan.spans != whole.spans).then_some(whole)
    }

    fn plan_by(
        &self,
        blocks: &[Block],
        lines: &dyn Fn(&Event, &Event) -> Option<Span>,
    ) -> Option<Plan> {
        let mut plan =
            Plan { lock: self.lock, spans: Vec::new(), regions: Vec::new(), only_longer: true };
        for block in blocks {
            let (one, two) = (self.section(block.first), self.section(block.last));
            if let Some(lines) = &block.lines {
                self.add_lines(&mut plan, block, lines);
                continue;
            }
            if one.is_some() && one == two {
                continue;
            }
            plan.only_longer &= one.is_some() && two.is_some();
            let first = one.map_or(block.first, |section| section.lock);
            let last = two.map_or(block.last, |section| section.unlock);
            let (a, b) = (self.trace.event(first), self.trace.event(last));
            self.add(&mut plan, lines(a, b)?);
        }
        if plan.spans.is_empty() {
            return None;
        }
        if self.complete {
            for line in self.unguarded(&plan, blocks) {
                plan.only_longer = false;
                self.add(&mut plan, line);
            }
        }
        let joined = super::joined::joined(self.trace, std::mem::take(&mut plan.spans));
        for span in joined {
            self.add(&mut plan, span);
        }
        if self.lock.is_none() {
            self.outermost(&mut plan)?;
        }
        plan.spans.sort();
        Some(plan)
    }

    /// A new lock is taken first: where its lines lie in a critical section of a lock that others of its lines take
    /// inside, the whole section is to be under the new one, too. `None` where a section has no lines.
    fn outermost(&self, plan: &mut Plan) -> Option<()> {
        let trace = self.trace;
        let index = |id: EventId| trace.event(id).index;
        let within = |inner: (EventId, EventId), outer: (EventId, EventId)| {
            trace.event(inner.0).thread == trace.event(outer.0).thread
                && index(outer.0) <= index(inner.0)
                && index(inner.1) <= index(outer.1)
        };
        let ends = |section: &Section| (section.lock, section.unlock);
        let regions = Regions::of(trace, &plan.regions);
        let is_inside = |section: &&Section| regions.hold(ends(section));
        let taken: BTreeSet<ObjectId> =
            self.all.iter().filter(is_inside).map(|section| section.object).collect();
        let around = |region: &(EventId, EventId)| {
            let own = self.all.around(trace, region.0);
            own.iter()
                .filter(|section| {
                    let whole = ends(section);
                    taken.contains(&section.object)
                        && within(*region, whole)
                        && !within(whole, *region)
                })
                .map(ends)
                .min_by_key(|(lock, _)| index(*lock))
        };
        let sections: BTreeSet<_> = plan.regions.iter().filter_map(around).collect();
        for (lock, unlock) in sections {
            self.add(plan, span(trace.event(lock), trace.event(unlock))?);
        }
        plan.regions = plan.spans.iter().flat_map(|span| passages(trace, span)).collect();
        Some(())
    }

    /// Adds the lines of a function, unless each passage is one section of the lock already.
    fn add_lines(&self, plan: &mut Plan, block: &Block, lines: &Span) {
        let cells = cells(self.trace, &[block.first, block.last]);
        let all = passages(self.trace, lines);
        let guarded = all.iter().all(|(first, last)| {
            self.section(*first).is_some_and(|one| self.section(*last) == Some(one))
        });
        if guarded {
            return;
        }
        let index = |id: EventId| self.trace.event(id).index as usize;
        let mut accesses = all.iter().flat_map(|(first, last)| {
            let own = &self.trace.thread_of(*first).events;
            own.get(index(*first)..=index(*last)).unwrap_or_default()
        });
        plan.only_longer &=
            accesses.all(|id| !touches(self.trace, *id, &cells) || self.section(*id).is_some());
        self.add(plan, lines.clone());
    }

    fn add(&self, plan: &mut Plan, span: Span) {
        // Lines that have one in common are one section.
        let mut span = span;
        let overlaps = |other: &Span, span: &Span| {
            other.file == span.file
                && other.function == span.function
                && other.first < other.last
                && span.first < span.last
                && other.first <= span.last
                && span.first <= other.last
        };
        while let Some(other) = plan.spans.iter().find(|other| {
            overlaps(other, &span) && (other.first < span.first || other.last > span.last)
        }) {
            let (first, last) = (span.first.min(other.first), span.last.max(other.last));
            if (first, last) == (other.first, other.last) {
                break;
            }
            span = Span { first, last, ..span };
        }
        let known = plan.spans.iter().any(|other| {
            other.file == span.file
                && other.function == span.function
                && other.first <= span.first
                && span.last <= other.last
        });
        if known {
            return;
        }
        plan.spans.retain(|other| {
            !(other.file == span.file
                && other.function == span.function
                && span.first <= other.first
                && other.last <= span.last)
        });
        plan.regions.extend(passages(self.trace, &span));
        plan.spans.push(span);
    }

    /// Does the event write what nobody has touched before, and others touch surely behind it?
    fn makes(&self, id: EventId) -> bool {
        let trace = self.trace;
        let event = trace.event(id);
        let own = cells(trace, &[id]);
        let mut others = trace.events.iter().filter(|other| touches(trace, other.id, &own));
        matches!(event.kind, EventKind::Write { .. })
            && others.all(|other| match other.thread == event.thread {
                true => other.index >= event.index,
                false => self.system.surely_before(id, other.id),
            })
    }

    /// The lines at which threads touch the same variables outside of all this, and may do so at
    /// the same time.
    fn unguarded(&self, plan: &Plan, blocks: &[Block]) -> Vec<Span> {
        let trace = self.trace;
        let index = |id: EventId| trace.event(id).index;
        let ends = blocks
            .iter()
            .flat_map(|block| [Some(block.first), Some(block.last).filter(|_| !block.counts)]);
        let ends: Vec<EventId> = ends.flatten().collect();
        // Of what else is done in such a line, only the same variable, if perhaps of another object. What a library's
        // pointer leads to, as to the count of its users, is the library's to guard.
        let called = |event: &Event| {
            let name = trace.subject(event)?;
            let own = explain::outside_of_library(name);
            Some((explain::last_member(own), name[own.len()..].starts_with("->")))
        };
        let known: BTreeSet<_> =
            ends.iter().map(|id| (trace.event(*id).site(), called(trace.event(*id)))).collect();
        let same_places =
            trace.events.iter().filter(|event| known.contains(&(event.site(), called(event))));
        let same_places: Vec<EventId> = same_places.map(|event| event.id).collect();
        let cells = cells(trace, &same_places);
        let written: BTreeSet<CellId> = {
            let writes = same_places.iter().flat_map(|id| trace.event(*id).kind.writes());
            writes.map(|part| part.cell).collect()
        };
        let regions = Regions::of(trace, &plan.regions);
        let inside = |id: EventId| regions.hold((id, id)) || self.section(id).is_some();
        // Thread by thread, in order.
        let mut others: BTreeMap<ThreadId, Vec<EventId>> = BTreeMap::new();
        for id in same_places {
            others.entry(trace.event(id).thread).or_default().push(id);
        }
        others.values_mut().for_each(|own| own.sort_by_key(|id| index(*id)));
        let mut lines: Vec<Span> = Vec::new();
        for event in trace.events.iter().filter(|event| touches(trace, event.id, &cells)) {
            let conflicts = !event.kind.writes().is_empty() || touches(trace, event.id, &written);
            let line = Span::of(event.site());
            let own = !event.site().is_in_library();
            if !conflicts || !own || lines.contains(&line) || inside(event.id) {
                continue;
            }
            // Those of a thread that surely come before the event come first, and those that surely come behind it last.
            let at_once =
                others.iter().filter(|(thread, _)| **thread != event.thread).any(|(_, own)| {
                    let before =
                        own.partition_point(|other| self.system.surely_before(*other, event.id));
                    own.get(before)
                        .is_some_and(|other| !self.system.surely_before(event.id, *other))
                });
            // Who makes an object is alone with it, whatever is done to others at that time.
            let at_once = at_once && !self.makes(event.id);
            if at_once {
                lines.push(line);
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sections::sections;
    use encoders::dsl::parse;
    use model::Site;

    /// Messages that two threads count down each, made while others are in use.
    const MESSAGES: &str = "
        t0: fork a
        t0: fork b
        t0: [make] W y 2
        t0: fork c
        a: [dec1] W x 1
        a: [look1] R x -> p
        b: [dec2] W x 0
        b: [look2] R x -> q
        c: [dec3] W y 1
        c: [look3] R y -> r
    ";

    #[test]
    fn who_makes_an_object_is_alone_with_it() {
        let mut parsed = parse(MESSAGES).expect("the text is a trace");
        let places = [("make", "new", 21), ("dec", "unref", 33), ("look", "unref", 35)];
        for (label, id) in &parsed.labels {
            let (_, function, line) =
                places.iter().find(|place| label.starts_with(place.0)).expect("a place");
            let (file, function) = ("message.c".to_owned(), (*function).to_owned());
            let site = Site { file, line: *line, column: 1, function };
            parsed.trace.events[id.index()].stack = vec![site].into();
        }
        let trace = &parsed.trace;
        let (system, all) = (encoders::encode(trace).expect("constraints"), sections(trace));
        let planner = Planner {
            trace,
            system: &system,
            all: &all,
            lock: None,
            siblings: None,
            complete: true,
        };
        let block = |first: &str, last: &str| {
            let [first, last] = [first, last].map(|label| parsed.event(label));
            Block { first, last, lines: None, counts: false }
        };
        let plan = planner.plan(&[block("dec1", "look1"), block("dec2", "look2")]).expect("lines");
        let spans: Vec<(&str, u32, u32)> =
            plan.spans.iter().map(|span| (span.function.as_str(), span.first, span.last)).collect();
        assert_eq!(spans, [("unref", 33, 35)]);
    }

    #[test]
    fn what_a_librarys_pointer_leads_to_is_not_the_programs_to_guard() {
        let text = "
            a: [look] R rules -> p
            a: [publish] W rules 1
            b: [take] R rules -> q
            b: [count] W users 2
            b: [put] W rules 2
            c: [drop] W users 1
            c: [other] R rules -> r
        ";
        let mut parsed = parse(text).expect("the text is a trace");
        let places = [
            ("look", 23, "this->rules_"),
            ("publish", 28, "this->rules_"),
            ("take", 23, "this->rules_"),
            ("count", 23, "this->rules_->_M_use_count"),
            ("put", 28, "this->rules_"),
            ("drop", 39, "this->rules_->_M_use_count"),
            ("other", 41, "this->rules_"),
        ];
        for (label, line, name) in places {
            let id = parsed.event(label);
            let (file, function) = ("wall.cc".to_owned(), format!("f{line}"));
            let event = &mut parsed.trace.events[id.index()];
            event.stack = vec![Site { file, line, column: 1, function }].into();
            event.name = Some(name.into());
        }
        let trace = &parsed.trace;
        let (system, all) = (encoders::encode(trace).expect("constraints"), sections(trace));
        let planner = Planner {
            trace,
            system: &system,
            all: &all,
            lock: None,
            siblings: None,
            complete: true,
        };
        let block = |label: &str| {
            let id = parsed.event(label);
            Block { first: id, last: id, lines: None, counts: false }
        };
        let plan = planner.plan(&[block("look"), block("take"), block("put")]).expect("lines");
        let lines: Vec<u32> = plan.spans.iter().map(|span| span.first).collect();
        assert_eq!(lines, [23, 28, 41]);
    }

    /// A thread gives the lock back in every round, between the look at a node and the way to the next one.
    #[test]
    fn a_block_may_go_round_a_loop() {
        let text = "
            a: [take] lock m
            a: [head] R head -> s
            a: [give] unlock m
            a: [again] lock m
            a: [next] R next -> n
            a: [end] unlock m
            b: W next 1
        ";
        let mut parsed = parse(text).expect("the text is a trace");
        let places =
            [("take", 65), ("head", 67), ("give", 71), ("again", 73), ("next", 67), ("end", 68)];
        for (label, line) in places {
            let id = parsed.event(label);
            let (file, function) = ("broker.c".to_owned(), "publish".to_owned());
            let site = Site { file, line, column: 1, function };
            parsed.trace.events[id.index()].stack = vec![site].into();
        }
        let trace = &parsed.trace;
        let (system, all) = (encoders::encode(trace).expect("constraints"), sections(trace));
        let lock = trace.event(parsed.event("take")).kind.object();
        let siblings = lock.map(Siblings::none);
        let siblings = siblings.as_ref();
        let planner =
            Planner { trace, system: &system, all: &all, lock, siblings, complete: false };
        let [head, next] = ["head", "next"].map(|label| parsed.event(label));
        let blocks = [Block { first: head, last: next, lines: None, counts: false }];
        let lines = |plan: Plan| -> Vec<(u32, u32)> {
            plan.spans.iter().map(|span| (span.first, span.last)).collect()
        };
        assert_eq!(planner.plan(&blocks).map(lines), Some(vec![(65, 68)]));
        assert_eq!(planner.plan_around(&blocks).map(lines), Some(vec![(65, 73)]));
        let straight = [Block { first: head, last: head, lines: None, counts: false }];
        assert!(planner.plan_around(&straight).is_none());
    }

    /// An auditor adds up what several accounts have, each under its own lock, in a loop of a function of its own.
    #[test]
    fn a_loop_that_is_a_call_is_held_as_that_call() {
        let text = "
            a: [one] lock m
            a: [first] R x -> s
            a: [two] unlock m
            a: [three] lock n
            a: [next] R y -> t
            a: [four] unlock n
            b: W x 1
            b: W y 1
        ";
        let mut parsed = parse(text).expect("the text is a trace");
        let places =
            [("one", 28), ("first", 29), ("two", 30), ("three", 28), ("next", 29), ("four", 30)];
        for (label, line) in places {
            let site = |line, function: &str| {
                let (file, function) = ("bank.c".to_owned(), function.to_owned());
                Site { file, line, column: 1, function }
            };
            let id = parsed.event(label);
            parsed.trace.events[id.index()].stack = [site(line, "sum"), site(45, "auditor")].into();
        }
        let trace = &parsed.trace;
        let (system, all) = (encoders::encode(trace).expect("constraints"), sections(trace));
        let planner = Planner {
            trace,
            system: &system,
            all: &all,
            lock: None,
            siblings: None,
            complete: false,
        };
        let [first, next] = ["first", "next"].map(|label| parsed.event(label));
        let blocks = [Block { first, last: next, lines: None, counts: false }];
        let plan = planner.plan_called(&blocks).expect("lines");
        let spans: Vec<(&str, u32, u32)> =
            plan.spans.iter().map(|span| (span.function.as_str(), span.first, span.last)).collect();
        assert_eq!(spans, [("auditor", 45, 45)]);
        assert_eq!(plan.regions.len(), 1, "all rounds are one");
        let straight = [Block { first, last: first, lines: None, counts: false }];
        assert!(planner.plan_called(&straight).is_none());
    }

    /// One thread does it in one section, and the other in two, between which it has the lock not.
    const TWO_SECTIONS: &str = "
        a: [take] lock m
        a: [see] R x -> p
        a: [set] W x 3
        a: [give] unlock m
        b: [one] lock m
        b: [look] R x -> q
        b: [two] unlock m
        b: [three] lock m
        b: [put] W x 2
        b: [four] unlock m
    ";

    #[test]
    fn a_new_lock_is_taken_before_those_that_others_take_inside_of_it() {
        let mut parsed = parse(TWO_SECTIONS).expect("the text is a trace");
        let site = |function: &str, line| {
            let (file, function) = ("vote.cc".to_owned(), function.to_owned());
            Site { file, line, column: 1, function }
        };
        let give_up = [("take", 30), ("see", 31), ("set", 33), ("give", 34)];
        let run =
            [("one", 54), ("look", 54), ("two", 54), ("three", 55), ("put", 55), ("four", 55)];
        for (label, line) in give_up {
            parsed.trace.events[parsed.labels[label].index()].stack =
                [site("give_up", line)].into();
        }
        for (label, line) in run {
            let stack = [site("own", line - 30), site("run", line)];
            parsed.trace.events[parsed.labels[label].index()].stack = stack.into();
        }
        let trace = &parsed.trace;
        let (system, all) = (encoders::encode(trace).expect("constraints"), sections(trace));
        let planner = Planner {
            trace,
            system: &system,
            all: &all,
            lock: None,
            siblings: None,
            complete: true,
        };
        let block = |first: &str, last: &str| {
            let [first, last] = [first, last].map(|label| parsed.event(label));
            Block { first, last, lines: None, counts: false }
        };
        let plan = planner.plan(&[block("see", "set"), block("look", "put")]).expect("lines");
        let spans: Vec<(&str, u32, u32)> =
            plan.spans.iter().map(|span| (span.function.as_str(), span.first, span.last)).collect();
        assert_eq!(spans, [("give_up", 30, 34), ("run", 54, 55)]);
    }
}
