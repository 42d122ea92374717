//! A thread tells another one that it can go on before it has done what that one needs: it can tell later.

use super::Candidate;
use super::order::{
    Wanted, functions, like, lines, moved, needed, outer, own_statements, stretches,
};
use crate::Bug;
use crate::enforce::{Rule, Stretch};
use crate::sections::{begins_wait, sections};
use crate::statements::{Direction, Statement, move_line};
use crate::uses::parts;
use model::{Awaited, Event, EventId, EventKind, EventTrace, FailureCondition, ObjectId, Site};

/// What the first step's thread did before it in the same call, and by which the second step's thread goes on, comes
/// behind it. That is for a step that cannot come earlier itself, as it lies in a critical section of its own.
pub(super) fn later(bug: &Bug<'_>, wanted: Wanted) -> Vec<Candidate> {
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
                let id = telling.events.iter().find(|id| tells(trace, **id, wanted.then))?;
                Some((*telling, *id))
            });
            let Some((telling, id)) = told else { continue };
            let place = Site { line: telling.line, ..function.clone() };
            found.extend(behind(bug, wanted, (&place, id), all[at].line));
        }
    }
    found
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
    let mut edit = move_line(trace, place, (place.line, line), Direction::Later)?;
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
            stretches.extend(passages(trace, wanted));
            Rule::Alone(stretches)
        }
    };
    let edited = (edit.finish()?, rule);
    Some(moved(bug, (id, place), passed[end], edited, Direction::Later))
}

/// The other step's passages, from where its thread takes a lock that the first step's needs.
fn passages(trace: &EventTrace, wanted: Wanted) -> Vec<Stretch> {
    let (all, needed) = (sections(trace), needed(trace, wanted.first));
    let ids = like(trace, wanted.then).into_iter();
    ids.map(|id| Stretch { first: outer(trace, &all, &needed, id), last: id }).collect()
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
}
