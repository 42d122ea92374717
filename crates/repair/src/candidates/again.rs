//! A wait that is not in a loop: what was waited for may have gone again when the thread gets the
//! mutex back.

use super::{Candidate, Guard, Kind, Repair, quoted};
use crate::Bug;
use crate::decisions::Decisions;
use crate::edit::Edit;
use crate::enforce::Rule;
use crate::rust::is_rust;
use crate::sections::{lock_name, taken};
use crate::source::Span;
use model::evaluate::{Evaluation, Evaluator};
use model::{
    CellId, ConditionId, Event, EventId, EventKind, EventTrace, ExprId, ObjectId, PathCondition,
    PathConditionKind, ReadPart, VarId, Variable, VariableOrigin,
};
use std::collections::{BTreeMap, BTreeSet};

/// Every wait of a place where a thread of the cause was woken tests once more what it had tested
/// before it began, and goes on only when that has changed.
pub(super) fn candidates(bug: &Bug<'_>) -> Vec<Candidate> {
    let trace = bug.trace;
    let threads: BTreeSet<_> = bug.events.iter().map(|id| trace.event(*id).thread).collect();
    let woken = trace.events.iter().filter(|event| {
        matches!(event.kind, EventKind::Wake { .. })
            && threads.contains(&event.thread)
            // How a barrier or a latch waits is its library's affair.
            && !event.is_in_synchronisation()
    });
    let mut places: Vec<&Event> = Vec::new();
    for event in woken {
        if places.iter().all(|known| known.site() != event.site()) {
            places.push(event);
        }
    }
    let decisions = Decisions::of(trace);
    let recorded = |var| Some(trace.recorded_value(var));
    let went = Evaluator::new(trace).run(bug.schedule, &recorded).ok();
    let candidate = |wake| candidate(trace, &decisions, wake, went.as_ref());
    places.into_iter().filter_map(candidate).collect()
}

fn candidate(
    trace: &EventTrace,
    decisions: &Decisions<'_>,
    wake: &Event,
    went: Option<&Evaluation>,
) -> Option<Candidate> {
    let mut tested = trace.clone();
    let mut reads: Vec<(EventId, Vec<ReadPart>)> = Vec::new();
    let mut names: Vec<String> = Vec::new();
    let here = || trace.events.iter().filter(|other| other.site() == wake.site());
    // Who went on with what it had waited for before did not look.
    let mut waits = here().filter_map(|other| Wait::of(trace, decisions, other));
    let goes_on = went.is_some_and(|went| waits.any(|wait| wait.would_have_waited(went)));
    for other in here() {
        if let Some(wait) = Wait::of(trace, decisions, other) {
            if wait.is_in_loop() && (!goes_on || wait.looks_again()) {
                return None;
            }
            for name in wait.tested() {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            reads.push(wait.test_again(&mut tested)?);
        }
    }
    if reads.is_empty() || !is_told_behind(trace, decisions, wake) {
        return None;
    }
    let mut edit = Edit::new(&tested);
    for (locked, parts) in reads {
        edit.after(locked, EventKind::Read { parts });
    }
    let edited = edit.finish()?;
    let place = Span::of(wake.site());
    let step = in_words(trace, wake, &names)?;
    let lock = Wait::of(trace, decisions, wake)
        .map(|wait| Guard { name: lock_name(trace, wait.mutex), new: false });
    let repair = Repair {
        kind: Kind::TestAgain,
        steps: vec![step],
        lock,
        variables: names,
        places: vec![place],
        // A thread that waits once more takes another path than the recorded one.
        rule: Rule::None,
        checked: None,
    };
    Some(Candidate { repair, edited })
}

fn in_words(trace: &EventTrace, wake: &Event, names: &[String]) -> Option<String> {
    let EventKind::Wake { condition, .. } = wake.kind else { return None };
    let place = Span::of(wake.site());
    let listed: Vec<String> = names.iter().map(|name| quoted(name)).collect();
    Some(format!(
        "in {}, test {} again after waiting for {} ({}): wait in a loop{}",
        place.function,
        listed.join(" and "),
        quoted(explain::outside_of_library(&lock_name(trace, condition))),
        place.begin(),
        if is_rust(&place.file) { ", or with `wait_while`" } else { "" }
    ))
}

/// What those need who wait for the condition and go on without another look, where more of them are woken than before:
/// not all of them will find what they waited for.
pub(super) fn needed_by_all(trace: &EventTrace, condition: ObjectId) -> Option<String> {
    let decisions = Decisions::of(trace);
    trace.events.iter().find_map(|wake| {
        let is_woken =
            matches!(wake.kind, EventKind::Wake { condition: other, .. } if other == condition);
        let wait = Wait::of(trace, &decisions, wake).filter(|_| is_woken)?;
        let mut names: Vec<String> = Vec::new();
        for name in wait.tested() {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        if wait.is_in_loop() || names.is_empty() {
            return None;
        }
        in_words(trace, wake, &names)
    })
}

/// Does anybody signal the condition behind a write of what the wait's thread tests? Otherwise it would wait once
/// more, and for ever: who signals before there is something to see has to do that later first.
fn is_told_behind(trace: &EventTrace, decisions: &Decisions<'_>, wake: &Event) -> bool {
    let (Some(wait), EventKind::Wake { condition, .. }) =
        (Wait::of(trace, decisions, wake), &wake.kind)
    else {
        return false;
    };
    let mentioned = wait.conditions.iter().flat_map(|c| trace.exprs.variables(c.expr));
    let cells: BTreeSet<CellId> =
        mentioned.filter_map(|var| wait.reads.get(&var).copied()).collect();
    let tells = |event: &Event| match &event.kind {
        EventKind::Signal { condition: other, .. }
        | EventKind::Broadcast { condition: other, .. } => other == condition,
        _ => false,
    };
    let threads = trace.threads.iter().filter(|thread| thread.id != wake.thread);
    threads.into_iter().any(|thread| {
        let mut own = thread.events.iter().map(|id| trace.event(*id));
        let writes =
            |event: &Event| event.kind.writes().iter().any(|part| cells.contains(&part.cell));
        own.by_ref().any(writes) && own.any(tells)
    })
}

/// A wait that ended, and what its thread had tested in the same section of the mutex.
struct Wait<'t> {
    trace: &'t EventTrace,
    decisions: &'t Decisions<'t>,
    wake: &'t Event,
    mutex: ObjectId,
    /// The acquisition that ends the wait.
    locked: &'t Event,
    /// What held before the wait, all of it.
    conditions: Vec<&'t PathCondition>,
    /// The variables of the section's reads, with their cells.
    reads: BTreeMap<VarId, CellId>,
}

/// The program's own lock that a wait on a `condition_variable_any` gives back under one that the condition variable has for itself,
/// taken at `inner` and given back at a place of the thread; and the place at which the program's is.
fn given_back_inside(trace: &EventTrace, inner: &Event, end: u32) -> Option<(ObjectId, u32)> {
    if !inner.stack.first()?.is_in_library() {
        return None;
    }
    let own = trace.thread_of(inner.id).events.get(inner.index as usize..end as usize)?;
    own.iter().map(|id| trace.event(*id)).find_map(|event| match event.kind {
        EventKind::Unlock { object, .. } if taken(inner) != Some(object) => {
            Some((object, event.index))
        }
        _ => None,
    })
}

impl<'t> Wait<'t> {
    fn of(trace: &'t EventTrace, decisions: &'t Decisions<'t>, wake: &'t Event) -> Option<Self> {
        let EventKind::Wake { began, .. } = wake.kind else { return None };
        let EventKind::Unlock { object: given, .. } = trace.event(began).kind else { return None };
        let own = &trace.thread_of(wake.id).events;
        let before = |at: u32, lock: ObjectId| {
            own.iter().take(at as usize).rev().find(|id| taken(trace.event(**id)) == Some(lock))
        };
        let end = trace.event(began).index;
        let start = trace.event(*before(end, given)?);
        let (mutex, end) = given_back_inside(trace, start, end).unwrap_or((given, end));
        let start = trace.event(*before(end, mutex)?).index;
        let takes = |id: &&EventId| taken(trace.event(**id)) == Some(mutex);
        let locked = own.iter().skip(wake.index as usize).find(takes)?;
        let inside = own.get(start as usize..end as usize)?;
        let parts = inside.iter().flat_map(|id| trace.event(*id).kind.reads());
        let reads: BTreeMap<VarId, CellId> = parts.map(|part| (part.var, part.cell)).collect();
        let conditions = decisions.within(wake.thread, start + 1..=end).iter().copied();
        let conditions = conditions.filter(|condition| {
            condition.kind == PathConditionKind::Branch
                && trace.exprs.variables(condition.expr).iter().any(|var| reads.contains_key(var))
        });
        let conditions: Vec<&PathCondition> = conditions.collect();
        (!conditions.is_empty()).then_some(Self {
            trace,
            decisions,
            wake,
            mutex,
            locked: trace.event(*locked),
            conditions,
            reads,
        })
    }

    /// Is what was tested before the wait tested behind it, by the same line or as the first that the
    /// thread does with it, as at the end of `do { wait } while (..)`? Then the wait is in a loop as
    /// it is.
    fn is_in_loop(&self) -> bool {
        self.looks_again() || self.first_read().is_some_and(|read| self.is_tested(read))
    }

    /// Is the first that the thread reads behind the wait read by a line that read before the wait?
    fn looks_again(&self) -> bool {
        let before = self.reads.keys().filter_map(|var| self.read(*var));
        let places: BTreeSet<_> = before.map(Event::site).collect();
        self.first_read().is_some_and(|read| places.contains(read.site()))
    }

    /// What the thread reads first behind the wait.
    fn first_read(&self) -> Option<&'t Event> {
        let own = &self.trace.thread_of(self.wake.id).events;
        let behind = own.iter().skip(self.locked.index as usize + 1);
        let mut later = behind.map(|id| self.trace.event(*id));
        // What the wait itself does for its end, as a `condition_variable_any` counts who has its mutex, is no look.
        let is_wait = |event: &Event| event.depth() > 0 && event.site() == self.wake.site();
        let looks = |event: &&Event| !event.kind.reads().is_empty() && !is_wait(event);
        later.find(looks)
    }

    /// Would the thread have waited again with what it read behind the wait under the failing schedule? Then whatever it
    /// tests there, it does not go back to the wait for that.
    fn would_have_waited(&self, went: &Evaluation) -> bool {
        let own = self.trace.thread_of(self.wake.id).events.iter();
        let given_back =
            |event: &&Event| matches!(event.kind, EventKind::Unlock { .. } | EventKind::Failure);
        let behind = own.skip(self.locked.index as usize + 1).map(|id| self.trace.event(*id));
        let mut seen: BTreeMap<CellId, u128> = BTreeMap::new();
        for event in behind.take_while(|event| !given_back(event)) {
            let reads = event.kind.reads().iter();
            for part in reads {
                if let Some(value) = went.values.get(part.var.index()).copied().flatten() {
                    seen.entry(part.cell).or_insert(value);
                }
            }
            // What the thread itself writes there was not waited for.
            if event.kind.writes().iter().any(|part| self.reads.values().any(|c| *c == part.cell)) {
                break;
            }
        }
        let value_of = |var: VarId| {
            let cell = self.reads.get(&var)?;
            seen.get(cell).copied()
        };
        self.conditions.iter().all(|condition| {
            self.trace.exprs.evaluate(condition.expr, &value_of).is_some_and(|value| value != 0)
        })
    }

    /// Is a variable of the test read here, and does a branch hang on it before the thread does
    /// anything but read?
    fn is_tested(&self, read: &Event) -> bool {
        let parts = read.kind.reads().iter();
        let vars: BTreeSet<VarId> = parts
            .filter(|part| self.reads.values().any(|cell| *cell == part.cell))
            .map(|part| part.var)
            .collect();
        let is_read = |event: &&Event| matches!(event.kind, EventKind::Read { .. });
        let own = self.trace.thread_of(read.id).events.iter().skip(read.index as usize);
        let reads = own.map(|id| self.trace.event(*id)).take_while(is_read);
        let Some(last) = reads.last() else { return false };
        let mut behind = self.decisions.within(read.thread, read.index + 1..=last.index + 1).iter();
        // That it would have to be so is said there, not looked at.
        let failure = self.trace.failure.as_ref().map(|failure| self.trace.event(failure.event));
        let asserted = failure.map(Event::site);
        // What a container asks of itself when something is put into it is no test of the program's.
        let own = |site: &model::Site| {
            let mut frames = read.stack.iter().take(read.depth());
            site.is_in_library() && frames.any(|frame| frame.function == site.function)
        };
        behind.any(|condition| {
            condition.kind == PathConditionKind::Branch
                && asserted != Some(&condition.site)
                && !self.decisions.is_thrown_at(&condition.site)
                && !own(&condition.site)
                && self.trace.exprs.variables(condition.expr).iter().any(|var| vars.contains(var))
        })
    }

    /// The event that read a value.
    fn read(&self, var: VarId) -> Option<&'t Event> {
        match self.trace.variables.get(var.index())?.origin {
            VariableOrigin::Read { event, .. } => Some(self.trace.event(event)),
            _ => None,
        }
    }

    /// What was tested, as the source calls it.
    fn tested(&self) -> Vec<String> {
        let mentioned = self.conditions.iter().flat_map(|c| self.trace.exprs.variables(c.expr));
        let reads = mentioned.filter(|var| self.reads.contains_key(var));
        let events = reads.filter_map(|var| self.read(var));
        let names = events.filter_map(|event| self.trace.subject(event));
        names.map(|name| explain::outside_of_library(name).to_owned()).collect()
    }

    /// Adds the condition that not all of this holds behind the wait. Returns the acquisition behind
    /// which the cells are to be read again.
    fn test_again(&self, tested: &mut EventTrace) -> Option<(EventId, Vec<ReadPart>)> {
        let mut parts: Vec<ReadPart> = Vec::new();
        let mut again: BTreeMap<VarId, VarId> = BTreeMap::new();
        let mentioned = self.conditions.iter().flat_map(|c| self.trace.exprs.variables(c.expr));
        for var in mentioned {
            let Some(&cell) = self.reads.get(&var) else { continue };
            let known = parts.iter().find(|part| part.cell == cell).map(|part| part.var);
            let image = known.unwrap_or_else(|| {
                let id = VarId::from_index(tested.variables.len());
                let part = u32::try_from(parts.len()).unwrap_or(u32::MAX);
                tested.variables.push(Variable {
                    id,
                    origin: VariableOrigin::Read { event: self.locked.id, part },
                    recorded: None,
                    ..self.trace.variables[var.index()]
                });
                parts.push(ReadPart { cell, var: id });
                id
            });
            again.insert(var, image);
        }
        let rename = |var: VarId| again.get(&var).copied().unwrap_or(var);
        let mut all: Option<ExprId> = None;
        for condition in &self.conditions {
            let image = tested.exprs.renamed(condition.expr, &rename);
            all = Some(match all {
                None => image,
                Some(all) => tested.exprs.and(all, image),
            });
        }
        let expr = tested.exprs.not(all?);
        tested.conditions.push(PathCondition {
            id: ConditionId::from_index(tested.conditions.len()),
            thread: self.wake.thread,
            position: self.locked.index + 1,
            expr,
            kind: PathConditionKind::Branch,
            site: self.wake.site().clone(),
            is_beside_wait: false,
        });
        Some((self.locked.id, parts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use encoders::dsl::parse;
    use explain::Pattern;
    use model::Site;

    /// Who puts something into a container that it has waited for asks there whether a piece of it is full: that is the
    /// container's affair, and no second look.
    #[test]
    fn what_a_container_asks_of_itself_is_no_test() {
        let text = "
            cell count 32 = 1
            t0: fork a
            t0: fork b
            a: [take] lock m
            a: [look] R count -> c
            a: assume c == 1
            a: [wake] wait room m
            a: [again] R count -> d
            a: assume d < 60
            a: [push] W count d + 1
            a: unlock m
            b: lock m
            b: W count 0
            b: broadcast room
            b: unlock m
            b: lock m
            b: [refill] W count 1
            b: unlock m
            t0: join a
            t0: join b
            t0: R count -> n
            t0: fail n == 2
        ";
        let mut parsed = parse(text).expect("the text is a trace");
        let site = |file: &str, line: u32, function: &str| Site {
            file: file.to_owned(),
            line,
            column: 1,
            function: function.to_owned(),
        };
        let container = |function| site("/usr/include/c++/12/bits/stl_deque.h", 1500, function);
        let [again, look] = ["again", "look"].map(|label| parsed.event(label));
        let thread = parsed.trace.event(again).thread;
        parsed.trace.events[again.index()].stack =
            [container("push_back"), site("channel.cc", 17, "send")].into();
        parsed.trace.events[look.index()].stack =
            [container("size"), site("channel.cc", 16, "send")].into();
        let position = parsed.trace.event(again).index + 1;
        let asked = |c: &&mut PathCondition| c.thread == thread && c.position >= position;
        let condition = parsed.trace.conditions.iter_mut().find(asked).expect("a condition");
        condition.site = container("push_back");
        let events = ["refill", "look", "push"].map(|label| parsed.event(label));
        let found = |trace: &EventTrace| {
            let bug = Bug::by_hand(trace, Pattern::Atomicity, &events);
            candidates(&bug).len()
        };
        assert_eq!(found(&parsed.trace), 1);
        // A branch of the program's is one.
        let condition = parsed.trace.conditions.iter_mut().find(asked).expect("a condition");
        condition.site = site("channel.cc", 17, "send");
        assert_eq!(found(&parsed.trace), 0);
    }

    /// Who is woken together with another one needs another look, unless it has one already.
    #[test]
    fn all_who_are_woken_look_again() {
        let step = |behind: &str| {
            let text = format!(
                "cell idle 32 = 0
                t0: fork a
                t0: fork b
                a: lock m
                a: R idle -> i
                a: assume i == 0
                a: [wake] wait told m
                {behind}
                a: unlock m
                b: lock m
                b: W idle 1
                b: signal told
                b: unlock m
                t0: fail"
            );
            let parsed = parse(&text).expect("the text is a trace");
            let wakes = |event: &Event| match event.kind {
                EventKind::Wake { condition, .. } => Some(condition),
                _ => None,
            };
            let condition = parsed.trace.events.iter().find_map(wakes).expect("a wait");
            needed_by_all(&parsed.trace, condition)
        };
        let without = step("a: W taken 1").expect("a step");
        assert!(without.contains("test `idle` again after waiting for `told`"), "{without}");
        assert_eq!(step("a: R idle -> j\n a: assume j != 0"), None);
    }

    /// A `condition_variable_any` waits with a mutex of its own, and gives the program's lock back under that.
    #[test]
    fn a_wait_gives_the_programs_lock_back_within_the_librarys() {
        let text = "
            cell count 32 = 0
            t0: fork a
            t0: fork b
            a: [lock] lock m
            a: [look] R count -> c
            a: assume c == 0
            a: [hold] R users -> h
            a: [inner] lock own
            a: [given] unlock m
            a: [wake] wait told own
            a: [left] unlock own
            a: [locked] lock m
            a: [drop] R users -> u
            a: [take] R count -> d
            a: unlock m
            b: lock m
            b: [put] W count 1
            b: broadcast told
            b: unlock m
            b: lock m
            b: [rest] W count 0
            b: unlock m
            t0: join a
            t0: join b
            t0: fail
        ";
        let mut parsed = parse(text).expect("the text is a trace");
        let site = |file: &str, line: u32, function: &str| Site {
            file: file.to_owned(),
            line,
            column: 1,
            function: function.to_owned(),
        };
        let library = site("/usr/include/c++/12/condition_variable", 315, "wait");
        for (label, line) in [("look", 20), ("take", 22)] {
            let id = parsed.event(label);
            parsed.trace.events[id.index()].stack = vec![site("board.cc", line, "take")].into();
        }
        let [first, last] = ["hold", "drop"].map(|label| parsed.event(label).index());
        for id in (first..=last).map(EventId::from_index) {
            parsed.trace.events[id.index()].stack =
                vec![library.clone(), site("board.cc", 21, "take")].into();
        }
        let events = ["look", "rest", "take"].map(|label| parsed.event(label));
        let bug = Bug::by_hand(&parsed.trace, Pattern::Atomicity, &events);
        let found = candidates(&bug);
        assert_eq!(found.len(), 1);
        let step = &found[0].repair.steps[0];
        assert!(step.contains("test `count` again after waiting for `told`"), "{step}");
        // The second look comes right behind the program's own lock.
        let added = found[0].edited.origin.iter().position(Option::is_none).expect("a look");
        assert_eq!(found[0].edited.origin[added - 1], Some(parsed.event("locked")));
    }

    /// Who waited for an item takes it, and the taker looks first whether there is one, and throws where there is none: that is
    /// no second look of the wait's. What is thrown comes out of a future, in another thread.
    #[test]
    fn what_throws_is_no_loop() {
        let text = "
            cell count 32 = 0
            t0: fork a
            t0: fork b
            a: [lock] lock m
            a: [look] R count -> c
            a: assume c == 0
            a: [wake] wait room m
            a: [take] R count -> d
            a: assume d == 0
            a: unlock m
            b: lock m
            b: [put] W count 1
            b: broadcast room
            b: unlock m
            b: lock m
            b: [rest] W count 0
            b: unlock m
            t0: join a
            t0: join b
            t0: fail
        ";
        let mut parsed = parse(text).expect("the text is a trace");
        let site = |line: u32, function: &str| Site {
            file: "pool.cc".to_owned(),
            line,
            column: 1,
            function: function.to_owned(),
        };
        let [look, take] = ["look", "take"].map(|label| parsed.event(label));
        parsed.trace.events[look.index()].stack = vec![site(66, "acquire")].into();
        parsed.trace.events[take.index()].stack =
            vec![site(81, "take"), site(70, "acquire")].into();
        let (thread, position) = (parsed.trace.event(take).thread, parsed.trace.event(take).index);
        let threw = |c: &&mut PathCondition| c.thread == thread && c.position > position;
        parsed.trace.conditions.iter_mut().find(threw).expect("a test").site = site(81, "take");
        let events = ["rest", "look", "take"].map(|label| parsed.event(label));
        let mut offered = |kind: model::FailureKind| {
            parsed.trace.failure.as_mut().expect("it fails").kind = kind;
            candidates(&Bug::by_hand(&parsed.trace, Pattern::Atomicity, &events)).len()
        };
        assert_eq!(offered(model::FailureKind::Exception), 1);
        assert_eq!(offered(model::FailureKind::Exit), 0);
    }

    /// Who was woken for what another one took before, and asks then whether all is over, does not go back to the wait: nor does
    /// that line where others find something. How a barrier waits is its library's affair.
    #[test]
    fn a_look_that_does_not_lead_back_is_no_loop() {
        let text = "
            cell count 32 = 0
            t0: [a0] fork a
            t0: [b0] fork b
            a: [lock] lock m
            a: [look] R count -> c
            a: assume c == 0
            a: [wake] wait room m
            a: [take] R count -> d
            a: assume d < 5
            a: [late] unlock m
            b: [b1] lock m
            b: [put] W count 1
            b: [tell] broadcast room
            b: [b2] unlock m
            b: [b3] lock m
            b: [rest] W count 0
            b: [b4] unlock m
            t0: [ja] join a
            t0: [jb] join b
            t0: fail
        ";
        let mut parsed = parse(text).expect("the text is a trace");
        let site = |file: &str, line: u32| Site {
            file: file.to_owned(),
            line,
            column: 1,
            function: "take".to_owned(),
        };
        for (label, line) in [("look", 33), ("take", 36)] {
            let id = parsed.event(label);
            parsed.trace.events[id.index()].stack = vec![site("buffer.rs", line)].into();
        }
        let is_wake = |event: &&Event| matches!(event.kind, EventKind::Wake { .. });
        let wake = parsed.trace.events.iter().find(is_wake).expect("a wait").id;
        parsed.trace.events[wake.index()].stack = vec![site("buffer.rs", 34)].into();
        let EventKind::Wake { began, .. } = parsed.trace.event(wake).kind else {
            panic!("it is a wait")
        };
        let events = ["rest", "look", "take"].map(|label| parsed.event(label));
        let own = |thread: usize| parsed.trace.threads[thread].events.clone();
        let (first, [a, b]) = (own(0), [1, 2].map(own));
        let split = |events: &[EventId], at: EventId| {
            let at = events.iter().position(|id| *id == at).expect("an event") + 1;
            [events[..at].to_vec(), events[at..].to_vec()]
        };
        let ([begin, end], [asleep, awake]) = (split(&first, parsed.event("b0")), split(&a, began));
        let late = [begin.clone(), asleep.clone(), b.clone(), awake.clone(), end.clone()].concat();
        let offered = |schedule: &[EventId]| {
            let bug = Bug { schedule, ..Bug::by_hand(&parsed.trace, Pattern::Atomicity, &events) };
            candidates(&bug).len()
        };
        assert_eq!(offered(&late), 1, "nothing was there, and it went on");
        let [early, rest] = split(&b, parsed.event("b2"));
        let found = [begin, asleep, early, awake, rest, end].concat();
        assert_eq!(offered(&found), 0, "what it asks may lead back");
        let barrier = site("/rustc/1/library/std/src/sync/barrier.rs", 152);
        let inside = vec![barrier, site("buffer.rs", 34)];
        parsed.trace.events[wake.index()].stack = inside.into();
        let bug =
            Bug { schedule: &late, ..Bug::by_hand(&parsed.trace, Pattern::Atomicity, &events) };
        assert_eq!(candidates(&bug).len(), 0, "a barrier is the library's");
    }
}
