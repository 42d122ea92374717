//! A thread tells another one that it can go on before it has done what that one needs: it can tell later.

use super::order::{Wanted, functions, lines, moved, own_statements, passages, stretches};
use super::{Candidate, Repair};
use crate::Bug;
use crate::enforce::Rule;
use crate::sections::begins_wait;
use crate::statements::{Direction, Statement, move_line};
use crate::uses::parts;
use model::{
    Awaited, CellId, Event, EventId, EventKind, EventTrace, FailureCondition, ObjectId, Site,
};
use std::collections::BTreeSet;

/// So many lines behind the step are tried as places to tell from.
const ENDS: usize = 3;

/// What the first step's thread did before it in the same call, and by which the second step's thread goes on, comes
/// behind it: that is for a step that cannot come earlier itself, as it lies in a critical section of its own, or that is
/// not the only one which comes too late. Of a step that `stays` where it is, a signal may come behind it; that what a thread
/// reads without a wait is told of too early, a signal has no part in. Where the step's thread does `more` in between, the
/// step is not all that is told of.
pub(super) fn later(bug: &Bug<'_>, wanted: Wanted, (stays, more): (bool, bool)) -> Vec<Candidate> {
    let trace = bug.trace;
    let step = trace.event(wanted.first);
    if step.kind.writes().is_empty() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for function in functions(step).into_iter().filter(|function| function.line != 0) {
        let Some((at, all)) = own_statements(trace, step.id, &function) else { continue };
        let passed: Vec<&Statement> = Direction::Earlier.passed(&all, at).collect();
        for line in lines(bug, &all[at], passed.iter().copied()) {
            let telling = passed.iter().find(|other| other.line == line && line < function.line);
            let told = telling.and_then(|telling| {
                let signals = |id: EventId| {
                    let kind = &trace.event(id).kind;
                    matches!(kind, EventKind::Signal { .. } | EventKind::Broadcast { .. })
                };
                let mut all = telling.events.iter();
                let id = all.find(|id| {
                    tells(trace, **id, wanted.then)
                        && (!signals(**id) || stays && !looks_again(trace, **id, wanted))
                })?;
                Some((*telling, *id))
            });
            let Some((telling, id)) = told else { continue };
            let place = Site { line: telling.line, ..function.clone() };
            let own = all[at].line;
            // What the step's thread writes right behind it may belong to what it tells of as well.
            let writes = |other: &&Statement| {
                other.line > own
                    && other.events.iter().any(|id| !trace.event(*id).kind.writes().is_empty())
            };
            // Who is woken goes by what it was to be told then.
            let up_to_wake = Direction::Later.passed(&all, at).take_while(|other| {
                !other.events.iter().any(|event| *event != id && wakes(trace.event(*event)))
            });
            let behind_it = up_to_wake.filter(writes).map(|other| other.line);
            // To come right behind the step is the same as that it comes right before.
            let mut ends: Vec<u32> = if stays || more { vec![own] } else { Vec::new() };
            for line in behind_it.take(ENDS) {
                if line != own && !ends.contains(&line) {
                    ends.push(line);
                }
            }
            found.extend(
                ends.into_iter().filter_map(|line| behind(bug, wanted, (&place, id), line)),
            );
        }
    }
    found
}

/// The first step's thread, which only reads, gave a unit back before it, and by that unit the second step's thread writes
/// there again: the unit is given back behind all that the cause names in that call.
pub(super) fn given_back_later(bug: &Bug<'_>, wanted: Wanted) -> Vec<Candidate> {
    let trace = bug.trace;
    let (step, then) = (trace.event(wanted.first), trace.event(wanted.then));
    if !step.kind.writes().is_empty() || then.kind.writes().is_empty() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for function in functions(step).into_iter().filter(|function| function.line != 0) {
        let Some((at, all)) = own_statements(trace, step.id, &function) else { continue };
        let named = |other: &&Statement| other.events.iter().any(|id| bug.events.contains(id));
        let behind_it = Direction::Later.passed(&all, at).filter(named).map(|other| other.line);
        let end = behind_it.chain([all[at].line]).max().unwrap_or_default();
        let posts = |id: &&EventId| {
            matches!(trace.event(**id).kind, EventKind::SemaphorePost { .. })
                && tells(trace, **id, wanted.then)
        };
        let passed = Direction::Earlier.passed(&all, at).filter(|other| other.line < function.line);
        let given =
            passed.filter_map(|other| Some((other.line, *other.events.iter().find(posts)?)));
        found.extend(given.filter_map(|(line, id)| {
            let place = Site { line, ..function.clone() };
            behind(bug, wanted, (&place, id), end)
        }));
    }
    found
}

/// Does the thread do anything but lock, signal and the like in the lines between the two that change places?
pub(super) fn does_more(bug: &Bug<'_>, wanted: Wanted, repair: &Repair) -> bool {
    let trace = bug.trace;
    let [own, target] = repair.places.as_slice() else { return false };
    let site = functions(trace.event(wanted.first));
    let Some(function) = site.iter().find(|site| own.has(site)) else { return false };
    let Some((at, all)) = own_statements(trace, wanted.first, function) else { return false };
    let passed: Vec<&Statement> = Direction::Earlier.passed(&all, at).collect();
    let only_tells = |line: u32| {
        let mut own = passed.iter().filter(|other| other.line == line).peekable();
        let tells = |id: &EventId| {
            let event = trace.event(*id);
            let kind = &event.kind;
            event.is_in_synchronisation() || kind.reads().is_empty() && kind.writes().is_empty()
        };
        own.peek().is_some() && own.all(|other| other.events.iter().all(tells))
    };
    let between = bug.uses.0.acts(&own.file, target.last + 1, own.first.saturating_sub(1));
    between.into_iter().any(|line| !only_tells(line))
}

/// The statement of this event, at this place of a function, comes behind the one of another line.
fn behind(
    bug: &Bug<'_>,
    wanted: Wanted,
    (place, id): (&Site, EventId),
    line: u32,
) -> Option<Candidate> {
    let trace = bug.trace;
    let (at, all) = own_statements(trace, id, place)?;
    let mut passed: Vec<&Statement> = Direction::Later.passed(&all, at).collect();
    let end = passed.iter().position(|other| other.line == line)?;
    passed.truncate(end + 1);
    if parts(trace, bug.uses, place, (&all[at], &passed), Direction::Later) {
        return None;
    }
    let mut edit = move_line((trace, bug.uses), place, (place.line, line), Direction::Later)?;
    // That no signal is left for the wait may hold on the recorded run whatever the order.
    if let Some(unwoken) = unwoken(bug) {
        edit.fails_when(unwoken);
    }
    let rule = match trace.event(id).kind {
        // Who waits for a signal that was given before goes on waiting, however long others are held back.
        EventKind::Signal { .. } | EventKind::Broadcast { .. } => Rule::None,
        // Whoever comes between would have been told, and not find what that is about.
        _ => {
            let mut stretches = stretches(trace, place, place.line, line);
            stretches.extend(passages(trace, wanted.then, wanted.first));
            Rule::Alone(stretches)
        }
    };
    let edited = (edit.finish()?, rule);
    Some(moved(bug, (id, place), passed[end], edited, Direction::Later))
}

/// Does it wake a thread that waits, or will, or let one go on that waits for a unit?
fn wakes(event: &Event) -> bool {
    only_wakes(event) || matches!(event.kind, EventKind::SemaphorePost { .. })
}

/// Is it a signal, or a step of `unpark`? Who waits for such has looked at something else before, and looks again then.
pub(super) fn only_wakes(event: &Event) -> bool {
    matches!(event.kind, EventKind::Signal { .. } | EventKind::Broadcast { .. })
        || event.called_of_rusts_library() == Some("unpark")
}

/// Does the other step's thread go on by this event: take the unit, wake up, or read what was written, before its step?
fn tells(trace: &EventTrace, id: EventId, then: EventId) -> bool {
    let (event, then) = (trace.event(id), trace.event(then));
    let object = event.kind.object();
    let mut earlier = trace.thread_of(then.id).events.iter().take(then.index as usize + 1);
    match event.kind {
        EventKind::SemaphorePost { .. } => {
            earlier.any(|id| trace.event(*id).kind.object() == object)
        }
        EventKind::Signal { condition } | EventKind::Broadcast { condition } => {
            earlier.any(|id| waits_for(trace.event(*id)) == Some(condition))
        }
        EventKind::Write { .. } | EventKind::ReadModifyWrite { .. } => earlier.any(|id| {
            let mut reads = trace.event(*id).kind.reads().iter();
            reads.any(|read| event.kind.writes().iter().any(|part| part.cell == read.cell))
        }),
        _ => false,
    }
}

/// Does the other step's thread read what this event wrote, in the failing schedule, before its step?
pub(super) fn is_seen_before(bug: &Bug<'_>, id: EventId, then: EventId) -> bool {
    let (trace, written) = (bug.trace, bug.trace.event(id));
    let thread = trace.event(then).thread;
    let place = |id: EventId| bug.schedule.iter().position(|other| *other == id);
    let (Some(from), Some(to)) = (place(id), place(then)) else { return false };
    written.kind.writes().iter().any(|part| {
        let behind = bug.schedule.get(from + 1..to).unwrap_or_default().iter();
        let mut behind = behind.map(|id| trace.event(*id));
        let touches =
            |event: &Event| event.kind.writes().iter().any(|other| other.cell == part.cell);
        let reads = |event: &Event| event.kind.reads().iter().any(|other| other.cell == part.cell);
        let next = behind.find(|event| touches(event) || event.thread == thread && reads(event));
        next.is_some_and(|event| event.thread == thread && reads(event))
    })
}

/// Does the other step's thread, woken by this signal, look at what the first one's thread wrote before its step? It is
/// told by that, with the signal or without.
fn looks_again(trace: &EventTrace, signal: EventId, wanted: Wanted) -> bool {
    let (step, then) = (trace.event(wanted.first), trace.event(wanted.then));
    let condition = trace.event(signal).kind.object();
    let wakes = |id: &EventId| waits_for(trace.event(*id)) == condition;
    let own = trace.thread_of(then.id).events.iter().take(then.index as usize);
    let written = trace.thread_of(step.id).events.iter().take(step.index as usize);
    let written: BTreeSet<CellId> =
        written.flat_map(|id| trace.event(*id).kind.writes()).map(|part| part.cell).collect();
    let mut behind = own.skip_while(|id| !wakes(id));
    behind.any(|id| trace.event(*id).kind.reads().iter().any(|part| written.contains(&part.cell)))
}

/// The condition variable that an event is a wait for.
fn waits_for(event: &Event) -> Option<ObjectId> {
    match event.kind {
        EventKind::Wake { condition, .. }
        | EventKind::Block { on: Awaited::Signal { condition } } => Some(condition),
        _ => None,
    }
}

/// That the wait which the cause names gets no signal.
fn unwoken(bug: &Bug<'_>) -> Option<FailureCondition> {
    let trace = bug.trace;
    let (wait, condition) = bug.events.iter().find_map(|id| match trace.event(*id).kind {
        EventKind::Block { on: Awaited::Signal { condition } } => Some((*id, condition)),
        _ => None,
    })?;
    let index = trace.event(wait).index as usize;
    let began = *trace.thread_of(wait).events.get(index.checked_sub(1)?)?;
    begins_wait(trace, began).then_some(FailureCondition::Unwoken { condition, began })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Uses, candidates::order};
    use encoders::dsl::parse;
    use explain::Pattern;
    use model::Site;

    /// A place is marked free in a section of its own, behind the post that lets the next one look for it.
    #[test]
    fn a_post_comes_behind_what_the_next_one_looks_for() {
        let text = "
            sem full 0
            cell used 32 = 1
            a: [say] post full
            a: [take] lock m
            a: [free] W used 0
            a: [give] unlock m
            b: [wait] sem-wait full
            b: [hold] lock m
            b: [look] R used -> u
            b: [let] unlock m
            b: fail u == 1
        ";
        let mut parsed = parse(text).expect("the text is a trace");
        let places = [("say", 22), ("take", 23), ("free", 24), ("give", 25), ("wait", 12)];
        for (label, line) in places.into_iter().chain([("hold", 13), ("look", 15), ("let", 20)]) {
            let function = if line > 20 { "release" } else { "acquire" };
            let (file, function) = ("pool.cpp".to_owned(), function.to_owned());
            let id = parsed.event(label);
            parsed.trace.events[id.index()].stack =
                [Site { file, line, column: 1, function }].into();
        }
        let events = ["look", "free"].map(|label| parsed.event(label));
        let schedule: Vec<EventId> = ["say", "wait", "hold", "look", "let", "take", "free", "give"]
            .map(|label| parsed.event(label))
            .to_vec();
        let bug = Bug {
            trace: &parsed.trace,
            pattern: Pattern::Order,
            events: &events,
            schedule: &schedule,
            handlers: &[],
            uses: Uses::NONE,
        };
        let found = order::candidates(&bug);
        let steps: Vec<&str> = found.iter().map(|found| &*found.repair.steps[0]).collect();
        let told = "in release, post `full` (pool.cpp:22) only after writing `used` (pool.cpp:24)";
        assert!(steps.contains(&told), "{steps:?}");
    }

    /// A frame is shown behind the post that lets the camera have its buffer again.
    #[test]
    fn a_buffer_is_given_back_behind_all_reads_of_it() {
        let text = "
            sem credits 0
            cell number 32 = 1
            cell sum 32 = 1
            a: [give] post credits
            a: [number] R number -> n
            a: [check] R sum -> s
            a: fail n != s
            b: [wait] sem-wait credits
            b: [first] W number 2
            b: [second] W sum 2
        ";
        let mut parsed = parse(text).expect("the text is a trace");
        let places = [("give", 10), ("number", 11), ("check", 13), ("wait", 20), ("first", 21)];
        for (label, line) in places.into_iter().chain([("second", 22)]) {
            let function = if line < 20 { "show" } else { "shoot" };
            let (file, function) = ("camera.c".to_owned(), function.to_owned());
            let id = parsed.event(label);
            parsed.trace.events[id.index()].stack =
                [Site { file, line, column: 1, function }].into();
        }
        let ids = |labels: &[&str]| -> Vec<EventId> {
            labels.iter().map(|label| parsed.event(label)).collect()
        };
        let events = ids(&["number", "check", "first", "second"]);
        // The reads may come between the writes, or the writes between the reads.
        for order in
            [["first", "number", "check", "second"], ["number", "first", "second", "check"]]
        {
            let schedule = ids(&[&["give", "wait"][..], &order[..]].concat());
            let bug = Bug {
                trace: &parsed.trace,
                pattern: Pattern::SeveralVariables,
                events: &events,
                schedule: &schedule,
                handlers: &[],
                uses: Uses::NONE,
            };
            let found = order::given_back(&bug);
            let steps: Vec<&str> = found.iter().map(|found| &*found.repair.steps[0]).collect();
            let told =
                "in show, post `credits` (camera.c:10) only after reading `sum` (camera.c:13)";
            assert!(!steps.is_empty() && steps.iter().all(|step| *step == told), "{steps:?}");
        }
    }

    /// Two members are written behind the post, with a line between that calls something.
    const POSTED: &str = "
        sem full 0
        cell length 32 = 0
        cell sum 32 = 0
        a: [say] post full
        a: [length] W length 3
        a: [sum] W sum 9
        b: [wait] sem-wait full
        b: [get] R length -> l
        b: [check] R sum -> s
        b: fail l == 0 || s == 0
    ";

    struct Code(Vec<u32>);

    impl crate::Lines for Code {
        fn uses(&self, _: &str, _: u32, _: u32) -> Vec<crate::LineUse> {
            Vec::new()
        }

        fn acts(&self, _: &str, first: u32, last: u32) -> Vec<u32> {
            self.0.iter().copied().filter(|line| (first..=last).contains(line)).collect()
        }
    }

    fn steps_of(code: &Code) -> Vec<String> {
        let mut parsed = parse(POSTED).expect("the text is a trace");
        let places = [("say", 10), ("length", 12), ("sum", 13), ("wait", 20), ("get", 21)];
        for (label, line) in places.into_iter().chain([("check", 22)]) {
            let function = if line < 20 { "send" } else { "receive" };
            let (file, function) = ("ring.c".to_owned(), function.to_owned());
            let id = parsed.event(label);
            parsed.trace.events[id.index()].stack =
                [Site { file, line, column: 1, function }].into();
        }
        let events = ["get", "length"].map(|label| parsed.event(label));
        let schedule = ["say", "wait", "get", "check", "length", "sum"];
        let schedule = schedule.map(|label| parsed.event(label));
        let bug = Bug {
            trace: &parsed.trace,
            pattern: Pattern::Order,
            events: &events,
            schedule: &schedule,
            handlers: &[],
            uses: Uses(code),
        };
        order::candidates(&bug).into_iter().map(|found| found.repair.steps[0].clone()).collect()
    }

    #[test]
    fn a_post_comes_behind_all_that_is_written_then() {
        let place = |steps: &[String], part: &str| {
            steps
                .iter()
                .position(|step| step.contains(part))
                .unwrap_or_else(|| panic!("{part}: {steps:?}"))
        };
        let earlier = "write `length` (ring.c:12) before posting `full` (ring.c:10)";
        let first = "post `full` (ring.c:10) only after writing `length` (ring.c:12)";
        let all = "post `full` (ring.c:10) only after writing `sum` (ring.c:13)";
        let steps = steps_of(&Code(Vec::new()));
        assert!(place(&steps, earlier) < place(&steps, all), "{steps:?}");
        assert!(!steps.iter().any(|step| step.contains(first)), "that is the same");
        let steps = steps_of(&Code(vec![11]));
        assert!(
            place(&steps, first) < place(&steps, earlier),
            "what is called there may belong to it"
        );
    }

    /// Whoever is woken before the flag is raised waits again, and nobody wakes it then.
    #[test]
    fn a_flag_is_not_raised_behind_the_wake_up_of_who_looks_at_it() {
        let text = "
            cell filled 8 = 0
            cell value 64 = 0
            cell token 32 = 0
            a: [say] W filled 1
            a: [value] W value 9
            a: [unpark] W token 1
            b: [look] R filled -> f
            b: assume f != 0
            b: [take] R value -> v
            b: fail v == 0
        ";
        let steps = |called: &str| {
            let mut parsed = parse(text).expect("the text is a trace");
            let places = [("say", 10), ("value", 11), ("unpark", 12), ("look", 20), ("take", 21)];
            for (label, line) in places {
                let function = if line < 20 { "send" } else { "receive" };
                let (path, function) = ("oneshot.rs".to_owned(), function.to_owned());
                let own = Site { file: path, line, column: 1, function };
                let file = "/rustc/1/library/std/src/thread/thread.rs".to_owned();
                let library = Site { file, line: 1, column: 1, function: called.to_owned() };
                let stack = if line == 12 { vec![library, own] } else { vec![own] };
                let id = parsed.event(label);
                parsed.trace.events[id.index()].stack = stack.into();
            }
            let events = ["say", "value", "look", "take"].map(|label| parsed.event(label));
            let schedule = ["say", "look", "take", "value", "unpark"];
            let schedule = schedule.map(|label| parsed.event(label));
            let bug = Bug {
                trace: &parsed.trace,
                pattern: Pattern::Order,
                events: &events,
                schedule: &schedule,
                handlers: &[],
                uses: Uses::NONE,
            };
            let found = order::candidates(&bug).into_iter();
            found.map(|found| found.repair.steps[0].clone()).collect::<Vec<_>>()
        };
        let late = |steps: &[String]| steps.iter().any(|step| step.contains("(oneshot.rs:12)"));
        assert!(late(&steps("replace")), "it may belong to the value");
        let woken = steps("unpark");
        assert!(!late(&woken), "{woken:?}");
        assert!(woken.iter().any(|step| step.contains("write `value` (oneshot.rs:11) before")));
    }

    /// Who has flushed a log looks whether a line is left when it is woken.
    #[test]
    fn who_looks_again_when_it_is_woken_is_not_told_by_the_signal() {
        let text = "
            b: lock m
            b: [take] W left 0
            b: [tell] signal c
            b: unlock m
            b: [step] W file 1
            a: lock m
            a: wait c m
            a: [look] R left -> l
            a: unlock m
            a: [then] R file -> f
        ";
        let parsed = parse(text).expect("the text is a trace");
        let [tell, first, then] = ["tell", "step", "then"].map(|label| parsed.event(label));
        assert!(looks_again(&parsed.trace, tell, Wanted { first, then }));
        let text = text.replace("R left", "R other");
        let parsed = parse(&text).expect("the text is a trace");
        assert!(!looks_again(&parsed.trace, tell, Wanted { first, then }));
    }
}
