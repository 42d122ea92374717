//! One step has to come before another thread's: statements change places, or somebody waits.

use super::act::act;
use super::{Candidate, Kind, Repair, ended, interrupted, join, quoted, told};
use crate::Bug;
use crate::decisions::decides;
use crate::edit::{Edit, Edited};
use crate::enforce::{Rule, Stretch};
use crate::sections::{Sections, sections};
use crate::source::{Span, frames, is_destructor, same_function, span};
use crate::statements::{Direction, Statement, gives_back_around, move_line, statements};
use crate::uses::{is_handle_used, is_reached_less, parts};
use explain::Pattern;
use model::names::is_channel;
use model::{
    ChannelStep, Event, EventId, EventKind, EventTrace, FailureCondition, ObjectId, ObjectKind,
    Site, VarId,
};
use std::collections::BTreeSet;

/// So many other lines of a function are tried as places to move a statement to.
const LINES: usize = 8;
/// So many functions outwards a statement is looked at.
const FUNCTIONS: usize = 3;

/// The first has to come before the second, and did not.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) first: EventId,
    pub(super) then: EventId,
}

impl Wanted {
    /// Does the second step need what the first one does? Nobody writes later only because somebody
    /// may not have looked at the old value yet.
    fn relies(self, trace: &EventTrace) -> bool {
        let (first, then) = (trace.event(self.first), trace.event(self.then));
        !first.kind.writes().is_empty() || then.kind.writes().is_empty()
    }
}

pub(super) fn candidates(bug: &Bug<'_>) -> Vec<Candidate> {
    let mut found = Vec::new();
    if is_seen_in_halves(bug) {
        return found;
    }
    for wanted in wanted(bug) {
        let earlier = moves(bug, wanted, Direction::Earlier);
        let stays = earlier.is_empty();
        // What is done between the announcement and the step may belong to what is announced, too.
        let more = earlier.first().is_some_and(|first| told::does_more(bug, wanted, &first.repair));
        let mut later = told::later(bug, wanted, (stays, more));
        if more {
            found.append(&mut later);
        }
        found.extend(earlier);
        found.extend(moves(bug, wanted, Direction::Later));
        found.append(&mut later);
        found.extend(join::earlier(bug, wanted));
        found.extend(join::before(bug, wanted));
    }
    found
}

/// Did one statement read what another thread was in the middle of writing, as where a structure is copied as a whole? It may come
/// there in whichever order the parts are written.
fn is_seen_in_halves(bug: &Bug<'_>) -> bool {
    let trace = bug.trace;
    let all = |is: fn(&Event) -> bool| {
        bug.events.iter().map(|id| trace.event(*id)).filter(move |e| is(e))
    };
    let reads: Vec<&Event> = all(|event| matches!(event.kind, EventKind::Read { .. })).collect();
    let writes: Vec<&Event> = all(|event| matches!(event.kind, EventKind::Write { .. })).collect();
    bug.pattern == Pattern::SeveralVariables
        && reads.len() == 2
        && writes.len() == 2
        && reads[0].thread == reads[1].thread
        && reads[0].stack == reads[1].stack
        && writes[0].thread == writes[1].thread
}

/// What a thread gives back too early, where another one came between its steps by that.
pub(super) fn given_back(bug: &Bug<'_>) -> Vec<Candidate> {
    wanted(bug).into_iter().flat_map(|wanted| told::given_back_later(bug, wanted)).collect()
}

/// What a thread writes to a place that it has handed to the other one: that goes by what it wrote there, and wrote to the
/// place before. The write comes before the hand-over.
pub(super) fn handed_over(bug: &Bug<'_>) -> Vec<Candidate> {
    let trace = bug.trace;
    let mut found = Vec::new();
    for wanted in wanted(bug) {
        let writes = |id: EventId| !trace.event(id).kind.writes().is_empty();
        if bug.pattern != Pattern::Atomicity || !writes(wanted.first) || !writes(wanted.then) {
            continue;
        }
        let before = trace.thread_of(wanted.first).events.iter();
        let before = before.take(trace.event(wanted.first).index as usize);
        let handed: Vec<&Event> = before
            .filter(|id| writes(**id) && told::is_seen_before(bug, **id, wanted.then))
            .map(|id| trace.event(*id))
            .collect();
        found.extend(moves(bug, wanted, Direction::Earlier).into_iter().filter(|candidate| {
            let target = &candidate.repair.places[1];
            handed.iter().any(|event| event.stack.iter().any(|site| target.has(site)))
        }));
    }
    found
}

/// What makes one thread wait for another one: more than to move a line or to hold a lock, and enough
/// for nearly every cause.
pub(super) fn waits(bug: &Bug<'_>) -> Vec<Candidate> {
    let wanted = || wanted(bug).into_iter();
    let later = wanted().filter_map(|wanted| start_later(bug, wanted));
    // Where something came between two steps, it does so in the other order of the threads as well: no repair has one
    // thread wait for the whole of another one.
    let parted = matches!(bug.pattern, Pattern::Atomicity | Pattern::SeveralVariables);
    let waits_for_all = |candidate: &Candidate| candidate.repair.steps[0].contains(" joining ");
    let later = later.filter(|candidate| !(parted && waits_for_all(candidate)));
    later.chain(wanted().filter_map(|wanted| wait(bug, wanted))).collect()
}

/// Pairs of the cause's events, of two threads and about one place, the other way round than in the
/// failing schedule: what was read too early first.
pub(super) fn wanted(bug: &Bug<'_>) -> Vec<Wanted> {
    let trace = bug.trace;
    let place = |id: EventId| bug.schedule.iter().position(|other| *other == id);
    let mut found: Vec<Wanted> = Vec::new();
    for &then in bug.events {
        for &first in bug.events.iter().filter(|first| place(then) < place(**first)) {
            let (a, b) = (trace.event(then), trace.event(first));
            let stays = [a, b].iter().any(|event| matches!(event.kind, EventKind::Failure));
            let near = bug.events.len() == 2 || meet(a, b) || is_freed_too_early(bug, then, first);
            if a.thread != b.thread && !stays && near {
                found.push(Wanted { first, then });
            }
        }
    }
    for wanted in &mut found {
        *wanted = cleared(bug, *wanted).unwrap_or(*wanted);
    }
    found.retain(|wanted| !is_polled(bug, *wanted));
    found.sort_by_key(|wanted| !trace.event(wanted.then).kind.writes().is_empty());
    found
}

/// Is it the free of a cause that says why the object was freed, and the use that came behind?
fn is_freed_too_early(bug: &Bug<'_>, free: EventId, access: EventId) -> bool {
    bug.pattern == Pattern::UseAfterFree
        && matches!(bug.trace.event(free).kind, EventKind::Free { .. })
        && bug.events.last() == Some(&access)
}

/// What the thread that frees the object wrote to the place before, where it is as bad for the other one to
/// read that: then it has to wait, and with it the free.
fn cleared(bug: &Bug<'_>, wanted: Wanted) -> Option<Wanted> {
    let trace = bug.trace;
    let (access, freed) = (trace.event(wanted.first), trace.event(wanted.then));
    let FailureCondition::Any(ways) = &trace.failure.as_ref()?.condition else { return None };
    if bug.pattern != Pattern::UseAfterFree || !matches!(freed.kind, EventKind::Free { .. }) {
        return None;
    }
    let earlier = trace.thread_of(freed.id).events.get(..freed.index as usize)?;
    let then = *earlier.iter().rfind(|id| meet(trace.event(**id), access))?;
    let read = |var: VarId| {
        let part = access.kind.reads().iter().find(|part| part.var == var)?;
        let mut written = trace.event(then).kind.writes().iter();
        trace.exprs.as_const(written.find(|other| other.cell == part.cell)?.value)
    };
    let fails = ways.iter().any(|way| match way {
        FailureCondition::Value(expr) => trace.exprs.evaluate(*expr, &read) == Some(1),
        _ => false,
    });
    fails.then_some(Wanted { first: access.id, then })
}

/// Does the reader look at a flag again and again? That it has not been raised yet is then what it
/// expects most of the time, and raising it earlier would only keep the thread from its work.
fn is_polled(bug: &Bug<'_>, wanted: Wanted) -> bool {
    let trace = bug.trace;
    let (first, then) = (trace.event(wanted.first), trace.event(wanted.then));
    let (EventKind::Write { .. }, EventKind::Read { parts }) = (&first.kind, &then.kind) else {
        return false;
    };
    let decides = parts.iter().any(|part| decides(trace, then.thread, part.var));
    // A recursion comes through the same line with other callers.
    let again = |id: &&EventId| {
        let other = trace.event(**id);
        other.id != then.id
            && other.thread == then.thread
            && other.stack == then.stack
            && other.kind.reads().iter().map(|p| p.cell).eq(parts.iter().map(|p| p.cell))
    };
    let before = bug.schedule.iter().take_while(|id| **id != first.id);
    decides && before.filter(again).count() > 0
}

/// Do both touch one place, and one of them writes it?
fn meet(one: &Event, other: &Event) -> bool {
    let touches = |event: &Event, cell| {
        event.kind.reads().iter().any(|part| part.cell == cell)
            || event.kind.writes().iter().any(|part| part.cell == cell)
    };
    one.kind.writes().iter().any(|part| touches(other, part.cell))
        || other.kind.writes().iter().any(|part| touches(one, part.cell))
}

/// The functions that an event was performed in, inner to outer, each with the line in it.
pub(super) fn functions(event: &Event) -> Vec<Site> {
    frames(event).into_iter().rev().take(FUNCTIONS).cloned().collect()
}

/// The statement of a function that an event belongs to, and all of its thread's.
pub(super) fn own_statements(
    trace: &EventTrace,
    id: EventId,
    function: &Site,
) -> Option<(usize, Vec<Statement>)> {
    let all = statements(trace, trace.event(id).thread, function);
    let at = all.iter().position(|statement| statement.events.contains(&id))?;
    Some((at, all))
}

/// The other lines of the activation, nearest first, each once; those of the cause come before all
/// others, and those that only lock come last.
pub(super) fn lines<'s>(
    bug: &Bug<'_>,
    own: &Statement,
    others: impl Iterator<Item = &'s Statement>,
) -> Vec<u32> {
    let trace = bug.trace;
    let mut lines: Vec<(bool, u32)> = Vec::new();
    let mut named: Vec<u32> = Vec::new();
    for other in others {
        if ![0, own.line].contains(&other.line)
            && !lines.iter().any(|(_, line)| *line == other.line)
        {
            lines.push((is_locking(trace, other), other.line));
            if other.events.iter().any(|id| bug.events.contains(id)) {
                named.push(other.line);
            }
        }
        if lines.len() >= LINES {
            break;
        }
    }
    lines.sort_by_key(|(locking, line)| (!named.contains(line), *locking));
    lines.into_iter().map(|(_, line)| line).collect()
}

/// Does the statement only take or give back locks? What is said before or after such a line is less
/// telling than what is said before or after the step that others look at.
fn is_locking(trace: &EventTrace, statement: &Statement) -> bool {
    statement.events.iter().all(|id| {
        matches!(
            trace.event(*id).kind,
            EventKind::Lock { .. } | EventKind::Unlock { .. } | EventKind::TryLockFailed { .. }
        )
    })
}

/// The first step comes earlier in its own thread, before what lets the other thread go on; or the
/// second comes later, behind what it has to wait for.
fn moves(bug: &Bug<'_>, wanted: Wanted, direction: Direction) -> Vec<Candidate> {
    let trace = bug.trace;
    let id = match direction {
        Direction::Earlier => wanted.first,
        Direction::Later => wanted.then,
    };
    let mut found = Vec::new();
    for function in functions(trace.event(id)) {
        // What the compiler made of several statements is none that could be moved.
        if function.line == 0 {
            continue;
        }
        let Some((at, all)) = own_statements(trace, id, &function) else { continue };
        // What comes earlier in a later line comes in another round of a loop, and a destructor at the
        // end of its block is no statement that could change places.
        let ahead = |line: u32| match direction {
            Direction::Earlier => line < function.line,
            Direction::Later => line > function.line,
        };
        let mut all_lines = lines(bug, &all[at], direction.passed(&all, at));
        let passed = direction.passed(&all, at).map(|other| other.line).filter(|line| *line > 0);
        let first = passed.min().unwrap_or(function.line);
        all_lines.retain(|line| {
            !is_reached_less(bug.uses, &function.file, (first, function.line), *line)
        });
        for line in all_lines.into_iter().filter(|line| ahead(*line)) {
            let edited = move_line((trace, bug.uses), &function, (function.line, line), direction);
            let Some(edited) = edited.and_then(Edit::finish) else { continue };
            let mut passed: Vec<&Statement> = Vec::new();
            passed.extend(direction.passed(&all, at));
            let Some(end) = passed.iter().position(|other| other.line == line) else { continue };
            passed.truncate(end + 1);
            let target = passed[end];
            if parts(trace, bug.uses, &function, (&all[at], &passed), direction) {
                continue;
            }
            if passed.iter().any(|other| is_same_channel(trace, &all[at], other)) {
                continue;
            }
            // Behind the end of a block there is no place in it.
            if direction == Direction::Later && ends_block(trace, &function, target) {
                continue;
            }
            // A thread that waits until the run is ended does nothing behind that.
            if target.events.iter().any(|id| is_block(trace.event(*id))) {
                continue;
            }
            // Whoever it wakes would look too early, and nobody wakes it again.
            let is_write = !trace.event(id).kind.writes().is_empty();
            let wakes = || target.events.iter().any(|id| told::only_wakes(trace.event(*id)));
            if direction == Direction::Later && is_write && wakes() {
                continue;
            }
            // Without its lock it reads what may still be changing.
            if gives_back_around(trace, id, target) {
                continue;
            }
            // Nor did it come too late for a thread that it interrupted.
            if interrupted::is_created_behind(bug, wanted, target) {
                continue;
            }
            if target.events.iter().any(|id| has_several_locks(trace, *id, wanted.first)) {
                continue;
            }
            let rule = match direction {
                Direction::Earlier => {
                    // Whoever comes between would see the one without the other.
                    let mut stretches = stretches(trace, &function, line, function.line);
                    stretches.extend(passages(trace, wanted.then, wanted.first));
                    Rule::Alone(stretches)
                }
                Direction::Later if exchanges(bug, id, &passed) => {
                    let mut stretches = stretches(trace, &function, function.line, line);
                    stretches.extend(passages(trace, wanted.first, target.last()));
                    Rule::Alone(stretches)
                }
                Direction::Later => after(trace, wanted),
            };
            found.push(moved(bug, (id, &function), target, (edited, rule), direction));
        }
    }
    found
}

/// Is it the end of a variable of the function, or its destructor?
fn ends_block(trace: &EventTrace, function: &Site, statement: &Statement) -> bool {
    statement.events.iter().any(|id| {
        let event = trace.event(*id);
        let called = event.stack.iter().take_while(|site| !same_function(site, function));
        trace.ends_local(event) || called.last().is_some_and(is_destructor)
    })
}

/// Does something go through one pipe or the like in both? In which order is what the other side expects.
fn is_same_channel(trace: &EventTrace, one: &Statement, other: &Statement) -> bool {
    let channels = |statement: &Statement| -> BTreeSet<String> {
        let names = statement.events.iter().filter_map(|id| trace.subject(trace.event(*id)));
        names.filter(|name| is_channel(name)).map(ToOwned::to_owned).collect()
    };
    !channels(one).is_disjoint(&channels(other))
}

/// Does the cause name two steps of the thread, of which one goes behind the other, so that only that order matters and
/// not when others come? Not where something that is passed waits for them.
fn exchanges(bug: &Bug<'_>, id: EventId, passed: &[&Statement]) -> bool {
    let trace = bug.trace;
    let mut events = passed.iter().flat_map(|statement| &statement.events);
    let goes_on = |id: &EventId| {
        let kind = &trace.event(*id).kind;
        let access = !kind.reads().is_empty() || !kind.writes().is_empty();
        access || matches!(kind, EventKind::Lock { .. } | EventKind::Unlock { .. })
    };
    events.clone().all(goes_on)
        && bug.events.contains(&id)
        && events.any(|id| bug.events.contains(id))
}

/// Is it one lock here in one passage and another in the next, while a step is about the same place in all of them?
/// Then none of these locks is for that place.
fn has_several_locks(trace: &EventTrace, id: EventId, step: EventId) -> bool {
    let event = trace.event(id);
    if !matches!(event.kind, EventKind::Lock { .. } | EventKind::Unlock { .. }) {
        return false;
    }
    let others = like(trace, id).into_iter();
    let several =
        others.map(|other| trace.event(other).kind.object()).any(|o| o != event.kind.object());
    several
        && like(trace, step).into_iter().all(|other| meet(trace.event(other), trace.event(step)))
}

/// Does the thread wait here until the run is ended?
fn is_block(event: &Event) -> bool {
    matches!(event.kind, EventKind::Block { .. })
}

/// Does the call that an event lies in, made by the function that creates a thread, wait until the run is ended? Then
/// that function does nothing behind the event.
fn is_stuck(trace: &EventTrace, fork: &Event, target: &Event) -> bool {
    let depth = frames(fork).len();
    let called = frames(target);
    let mut later = trace.thread_of(target.id).events.iter().skip(target.index as usize + 1);
    called.len() > depth
        && later.any(|id| {
            let event = trace.event(*id);
            is_block(event) && frames(event).get(..depth) == called.get(..depth)
        })
}

/// From each passage through one line to the next one through the other.
pub(super) fn stretches(trace: &EventTrace, function: &Site, from: u32, to: u32) -> Vec<Stretch> {
    let mut found = Vec::new();
    for thread in &trace.threads {
        let all = statements(trace, thread.id, function);
        for (at, statement) in all.iter().enumerate().filter(|(_, s)| s.line == from) {
            let mut later = all[at..].iter().take_while(|s| s.activation == statement.activation);
            let last = later.find(|s| s.line == to).map_or(statement.last(), Statement::last);
            found.push(Stretch { first: statement.first(), last });
        }
    }
    found
}

/// All events of the same place and kind.
pub(super) fn like(trace: &EventTrace, id: EventId) -> Vec<EventId> {
    let event = trace.event(id);
    let same =
        |other: &&Event| other.site() == event.site() && other.kind.name() == event.kind.name();
    trace.events.iter().filter(same).map(|event| event.id).collect()
}

/// The passages of an event like this one, each from where its thread takes a lock that is needed up to the other
/// one: who waits with that lock for the other step to be made would wait for ever.
pub(super) fn passages(
    trace: &EventTrace,
    id: EventId,
    up_to: EventId,
) -> impl Iterator<Item = Stretch> {
    let (all, needed) = (sections(trace), needed(trace, up_to));
    let ids = like(trace, id).into_iter();
    ids.map(move |id| Stretch { first: outer(trace, &all, &needed, id), last: id })
}

/// The second step is held back, and where its thread would hold a lock by then that the first
/// step's needs, before that.
pub(super) fn after(trace: &EventTrace, wanted: Wanted) -> Rule {
    let (all, needed) = (sections(trace), needed(trace, wanted.first));
    let then = like(trace, wanted.then).into_iter().map(|id| outer(trace, &all, &needed, id));
    Rule::After { first: like(trace, wanted.first), then: then.collect() }
}

/// The locks that a thread takes before an event.
pub(super) fn needed(trace: &EventTrace, id: EventId) -> Vec<ObjectId> {
    let own = trace.thread_of(id).events.iter().take(trace.event(id).index as usize);
    let locks = own.filter_map(|id| match trace.event(*id).kind {
        EventKind::Lock { object, .. } => Some(object),
        _ => None,
    });
    locks.collect()
}

/// The event, or the acquisition of the outermost section around it of one of these locks.
pub(super) fn outer(
    trace: &EventTrace,
    all: &Sections,
    needed: &[ObjectId],
    id: EventId,
) -> EventId {
    let held = all.around(trace, id);
    let outer = held.iter().find(|section| needed.contains(&section.object));
    outer.map_or(id, |section| section.lock)
}

pub(super) fn moved(
    bug: &Bug<'_>,
    (id, function): (EventId, &Site),
    target: &Statement,
    (edited, rule): (Edited, Rule),
    direction: Direction,
) -> Candidate {
    let trace = bug.trace;
    let span = Span::of(function);
    let place = Span { first: target.line, last: target.line, ..span.clone() };
    let (end, word) = match direction {
        Direction::Earlier => (target.first(), "before"),
        Direction::Later => (target.last(), "only after"),
    };
    let step = format!(
        "in {}, {} ({}) {word} {} ({})",
        span.function,
        act(trace, id, function, false),
        span.begin(),
        act(trace, end, function, true),
        place.begin()
    );
    let repair = Repair {
        kind: Kind::Move,
        steps: vec![step],
        lock: None,
        variables: super::variables(bug),
        places: vec![span, place],
        rule,
        checked: None,
    };
    Candidate { repair, edited }
}

/// A repair in one step that has the first of two steps come before the second, and the trace with it.
pub(super) fn ordering(
    bug: &Bug<'_>,
    wanted: Wanted,
    (kind, step, places): (Kind, String, &[Span]),
    edited: Edited,
) -> Candidate {
    let repair = Repair {
        kind,
        steps: vec![step],
        lock: None,
        variables: super::variables(bug),
        places: places.to_vec(),
        rule: after(bug.trace, wanted),
        checked: None,
    };
    Candidate { repair, edited }
}

/// The second step's thread is created later: behind the first step, where its creator takes that, or
/// behind the join of the thread that does.
fn start_later(bug: &Bug<'_>, wanted: Wanted) -> Option<Candidate> {
    let trace = bug.trace;
    let (first, child) = (trace.event(wanted.first), trace.event(wanted.then).thread);
    if !wanted.relies(trace) || interrupted::is_between(bug, wanted) {
        return None;
    }
    let creates = |event: &&Event| matches!(event.kind, EventKind::Fork { child: c } if c == child);
    let fork = trace.events.iter().find(creates)?;
    let behind = trace.thread_of(fork.id).events.iter().skip(fork.index as usize + 1);
    let mut behind = behind.map(|id| trace.event(*id));
    let target = behind.find(|event| match event.kind {
        EventKind::Join { child } => child == first.thread,
        _ => event.id == first.id,
    })?;
    if is_stuck(trace, fork, target) {
        return None;
    }
    let mut between = trace.thread_of(fork.id).events.iter().map(|id| trace.event(*id));
    if between.any(|event| {
        (fork.index..target.index).contains(&event.index)
            && matches!(event.kind, EventKind::Join { child: c } if c == child)
    }) {
        return None;
    }
    if is_handle_used(trace, bug.uses, fork.id, span(fork, target).as_ref()) {
        return None;
    }
    let mut edit = Edit::new(trace);
    edit.move_after(fork.id, target.id);
    let edited = edit.finish()?;
    let places = [fork, target].map(|event| Span::of(event.site()));
    let step = format!(
        "in {}, create {} ({}) only after {} ({})",
        places[0].function,
        quoted(&trace.threads[child.index()].name),
        places[0].begin(),
        act(trace, target.id, target.site(), true),
        places[1].begin()
    );
    Some(ordering(bug, wanted, (Kind::StartLater, step, &places), edited))
}

/// Somebody waits until the first step has been taken.
fn wait(bug: &Bug<'_>, wanted: Wanted) -> Option<Candidate> {
    let trace = bug.trace;
    if matches!(trace.event(wanted.then).kind, EventKind::Free { .. }) {
        return ended::later(bug, wanted);
    }
    if !wanted.relies(trace) {
        return None;
    }
    // Who was interrupted between two steps did not come too early: it could have been done by then.
    if bug.pattern == Pattern::SeveralVariables && interrupted::is_interrupted(bug, wanted) {
        return None;
    }
    let (first, then) = (like(trace, wanted.first), like(trace, wanted.then));
    // Who looks again and again asks whether there is something to do; once it was fine without.
    let event = trace.event(wanted.then);
    let looks = |other: &Event| {
        let cells = |event: &Event| -> BTreeSet<_> {
            event.kind.reads().iter().map(|part| part.cell).collect()
        };
        other.stack == event.stack || !cells(other).is_disjoint(&cells(event))
    };
    let mut earlier = trace.thread_of(event.id).events.iter().take(event.index as usize);
    if earlier.any(|id| looks(trace.event(*id))) {
        return None;
    }
    let done = bug.schedule.iter().find(|id| first.contains(id))?;
    // What is received has been sent before: each would wait for the other.
    let steps = [trace.event(*done), event].map(Event::channel_step);
    if steps == [Some(ChannelStep::Receive), Some(ChannelStep::Send)] {
        return None;
    }
    // Where the program has one place for both threads, it would wait there for what it does only behind it.
    let giver = trace.event(*done);
    let waits_itself = |other: &Event| {
        other.thread == giver.thread && other.index < giver.index && other.stack == event.stack
    };
    if then.iter().any(|id| waits_itself(trace.event(*id))) {
        return None;
    }
    let mut edit = Edit::new(trace);
    let object = edit.object(ObjectKind::Semaphore { initial: 0 }, "a new semaphore");
    let all = sections(trace);
    let needed = needed(trace, *done);
    for &id in &then {
        if trace.event(id).thread == trace.event(*done).thread {
            continue;
        }
        // Whoever holds what the other one needs first must not wait.
        edit.before(outer(trace, &all, &needed, id), EventKind::SemaphoreWait { object });
        edit.after(*done, EventKind::SemaphorePost { object });
    }
    let edited = edit.finish()?;
    let places = [wanted.then, *done].map(|id| Span::of(trace.event(id).site()));
    let [here, there] = &places;
    let site = |id: EventId| trace.event(id).site();
    let how = match there.is_task() {
        true => "`#pragma omp taskwait`, or a dependence",
        false => "a semaphore, or a flag and a condition variable",
    };
    let step = format!(
        "in {}, {} ({}) only after {} in {} ({}): wait for that with {how}",
        here.function,
        act(trace, wanted.then, site(wanted.then), false),
        here.begin(),
        act(trace, *done, site(*done), true),
        there.function,
        there.begin(),
    );
    let repair = Repair {
        kind: Kind::WaitFor,
        steps: vec![step],
        lock: None,
        variables: super::variables(bug),
        places: places.to_vec(),
        rule: after(trace, wanted),
        checked: None,
    };
    Some(Candidate { repair, edited })
}

#[cfg(test)]
mod tests;
