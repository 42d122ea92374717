//! Threads that wait for each other, or one for itself: take locks in one order, take them once,
//! take them to write from the start, or give one back before waiting. Semaphores whose units are
//! taken and posted by the same thread are locks like others.

use super::{Candidate, Guard, Kind, Repair, callbacks, give_back, quoted};
use crate::Bug;
use crate::edit::{Edit, Edited};
use crate::enforce::{Rule, Stretch};
use crate::sections::{
    Section, Sections, ends_wait, guard, is_internal, lock_name, sections, sections_and_units,
};
use crate::source::{Span, asked_at, frames, span};
use crate::statements::is_own;
use crate::uses::is_found_between;
use crate::words::{shares_this, word_in};
use model::names::lock_from_outside;
use model::{
    Awaited, Event, EventId, EventKind, EventTrace, FailureCondition, LockMode, ObjectId,
    ObjectKind, Site,
};
use std::collections::BTreeSet;

pub(super) fn candidates(bug: &Bug<'_>) -> Vec<Candidate> {
    let trace = bug.trace;
    let all = sections_and_units(trace);
    let blocks: Vec<&Event> = bug
        .events
        .iter()
        .map(|id| trace.event(*id))
        .filter(|event| matches!(event.kind, EventKind::Block { .. }))
        .collect();
    let (mut found, mut foreign) = (Vec::new(), Vec::new());
    let one_order = one_order(bug, &all, &blocks);
    let same_code = one_order.is_some();
    found.extend(one_order);
    // Who came last is the likeliest to be the one that does it otherwise than the rest.
    for block in blocks.iter().rev() {
        let Some(held) = held(bug, &all, block) else { continue };
        match asked(block) {
            Some((object, mode)) if object == held.object => {
                found.extend(again(bug, &all, (block, mode), held));
            }
            Some(asked) if !same_code => {
                let calls_out = callbacks::release_first(bug, &all, block, held);
                let order = in_order(bug, &all, (block, asked), held);
                match (calls_out, order) {
                    // Its own lock is what a function knows, not those that its listeners take.
                    (Some(candidate), None) => found.insert(0, candidate),
                    (calls_out, order) => {
                        match order {
                            Some(order) if is_anothers(&order) => foreign.push(order),
                            order => found.extend(order),
                        }
                        found.extend(calls_out);
                    }
                }
            }
            Some(_) => {}
            None => found.extend(release_first(bug, &all, block, held)),
        }
    }
    found.extend(foreign);
    found.extend(one_at_a_time(bug, &all, &blocks));
    found
}

/// Is what a member function is to take first a lock that is inside of another object, whose own functions take it?
fn is_anothers(order: &Candidate) -> bool {
    let [there, here] = &order.repair.places[..] else { return false };
    let lock = order.repair.lock.as_ref().and_then(|lock| lock.name.strip_prefix("this->"));
    there.function != here.function && lock.is_some_and(|rest| rest.contains(['.', '>']))
}

/// The lock that a request is for, or the semaphore.
pub(super) fn asked(block: &Event) -> Option<(ObjectId, LockMode)> {
    match block.kind {
        EventKind::Block { on: Awaited::Lock { object, mode } } => Some((object, mode)),
        EventKind::Block { on: Awaited::Unit { object } } => Some((object, LockMode::Exclusive)),
        _ => None,
    }
}

/// The event that takes a lock, or a unit of a semaphore.
fn taking(trace: &EventTrace, (object, mode): (ObjectId, LockMode)) -> EventKind {
    match trace.objects.get(object.index()).map(|object| object.kind) {
        Some(ObjectKind::Semaphore { .. }) => EventKind::SemaphoreWait { object },
        _ => EventKind::Lock { object, mode },
    }
}

/// The event that gives it back.
pub(super) fn giving(
    trace: &EventTrace,
    (object, mode): (ObjectId, LockMode),
    synthetic: bool,
) -> EventKind {
    match trace.objects.get(object.index()).map(|object| object.kind) {
        Some(ObjectKind::Semaphore { .. }) => EventKind::SemaphorePost { object },
        _ => EventKind::Unlock { object, mode, synthetic },
    }
}

/// The failure's condition, and that all threads of the circle ask while all of them have what they
/// have: who got on before another one asked is not waited for. In the recorded run nobody gives
/// anything back, so that it says no more there; with a repair, the releases are real.
fn at_once(bug: &Bug<'_>, all: &Sections) -> Option<FailureCondition> {
    let trace = bug.trace;
    let mut parts = vec![trace.failure.as_ref()?.condition.clone()];
    let blocks = || {
        let events = bug.events.iter().map(|id| trace.event(*id));
        events.filter(|event| matches!(event.kind, EventKind::Block { .. }))
    };
    for held in blocks().filter_map(|block| held(bug, all, block)) {
        let before = |block: &Event| FailureCondition::Before(block.id, held.unlock);
        parts.extend(blocks().map(before));
    }
    Some(FailureCondition::All(parts))
}

/// What the thread of a request holds that another thread of the circle waits for, or that it waits
/// for itself.
fn held(bug: &Bug<'_>, all: &Sections, block: &Event) -> Option<Section> {
    let around = all.around(bug.trace, block.id);
    let named = around.iter().find(|section| bug.events.contains(&section.lock));
    let waited_for = |section: &&Section| {
        bug.trace.events.iter().any(|event| {
            event.thread != block.thread
                && matches!(event.kind, EventKind::Block { on } if on.object() == Some(section.object))
        })
    };
    named.or_else(|| around.iter().find(waited_for)).copied()
}

/// The thread has the lock that it asks for: it takes it to write from the start, does not take it
/// again, or gives it back first.
fn again(
    bug: &Bug<'_>,
    all: &Sections,
    (block, mode): (&Event, LockMode),
    held: Section,
) -> Vec<Candidate> {
    if give_back::is_left(bug.trace, held.lock, block.id) {
        let found = release_first(bug, all, block, held);
        return found
            .map(|found| give_back::on_the_way_out(bug, found, block, held))
            .into_iter()
            .collect();
    }
    let upgrades = held.mode == LockMode::Shared && mode == LockMode::Exclusive;
    let mut found = Vec::new();
    found.extend(if upgrades { to_write(bug, block, held) } else { once(bug, all, block, held) });
    found.extend(release_first(bug, all, block, held));
    found
}

/// The function of Rust's library that the program called and in which the thread waits for what no lock or condition of
/// the program is, such as `recv` of a channel.
fn called_in_rusts_library(block: &Event) -> Option<&str> {
    let EventKind::Block { on: Awaited::Call | Awaited::Other } = block.kind else { return None };
    block.called_of_rusts_library()
}

/// The lock is taken to write where it was taken to read. The thread then has what it asks for: its
/// request is no longer made, and with it goes the circle.
fn to_write(bug: &Bug<'_>, block: &Event, held: Section) -> Option<Candidate> {
    let trace = bug.trace;
    let site = |id: EventId| trace.event(id).site();
    let object = held.object;
    let mode = LockMode::Exclusive;
    let mut edit = Edit::new(trace);
    for section in sections(trace).iter().filter(|other| site(other.lock) == site(held.lock)) {
        let EventKind::Unlock { synthetic, .. } = trace.event(section.unlock).kind else {
            continue;
        };
        let object = section.object;
        edit.replace(section.lock, EventKind::Lock { object, mode });
        edit.replace(section.unlock, EventKind::Unlock { object, mode, synthetic });
    }
    let edited = without(edit, block)?;
    let lock = lock_name(trace, object);
    let places = [held.lock, block.id].map(|id| Span::of(site(id)));
    let step = format!(
        "in {}, take {} to write from the start ({}), not to read first and to write later ({})",
        places[0].function,
        quoted(&lock),
        places[0].begin(),
        places[1].begin()
    );
    Some(changed(bug, Kind::TakeToWrite, step, lock, places, (edited, Rule::None)))
}

/// The lines by which a lock's holder comes to an event in functions that it calls, the outermost first, and the line of its
/// own that calls the first of these. `None` where it does that itself.
fn called_with<'t>(lock: &'t Event, event: &'t Event) -> Option<(&'t Site, Vec<&'t Site>)> {
    let (holder, inner) = (frames(lock), frames(event));
    let one = |(a, b): &(&&Site, &&Site)| a.function == b.function && a.file == b.file;
    let common = holder.iter().zip(&inner).take_while(one).count();
    let called = inner.get(common..).filter(|called| !called.is_empty())?;
    (common == holder.len()).then_some((*inner.get(common.checked_sub(1)?)?, called.to_vec()))
}

/// Does a thread that does not have the lock come to one of the lines by which its holder asked for it once more, in a
/// function that it called?
fn is_reached_without(trace: &EventTrace, all: &Sections, block: &Event, held: Section) -> bool {
    let Some((_, called)) = called_with(trace.event(held.lock), block) else { return false };
    let has = |event: &Event| {
        let around = all.around(trace, event.id);
        around.iter().any(|other| other.object == held.object && other.lock != event.id)
    };
    let mut events = trace.events.iter().filter(|event| is_own(event));
    events.any(|event| frames(event).iter().any(|site| called.contains(site)) && !has(event))
}

/// The lock is not taken a second time: the caller has it. `None` where it need not have it.
fn once(bug: &Bug<'_>, all: &Sections, block: &Event, held: Section) -> Option<Candidate> {
    let trace = bug.trace;
    if is_reached_without(trace, all, block, held) {
        return None;
    }
    let edited = without(Edit::new(trace), block)?;
    let lock = lock_name(trace, held.object);
    let places = [block.id, held.lock].map(|id| Span::of(trace.event(id).site()));
    let step = format!(
        "in {}, do not take {} again ({}): the thread has it since {}",
        places[0].function,
        quoted(&lock),
        places[0].begin(),
        places[1].begin()
    );
    Some(changed(bug, Kind::LockOnce, step, lock, places, (edited, Rule::None)))
}

/// Takes a request out. Nobody waits at it any more, so that the circle of which it is a part cannot
/// come about; that the rest adds no other one is the check for new circles.
fn without(mut edit: Edit<'_>, block: &Event) -> Option<Edited> {
    edit.remove(block.id);
    edit.fails_when(FailureCondition::Any(Vec::new()));
    edit.finish()
}

/// A repair that is about one lock at two places.
fn changed(
    bug: &Bug<'_>,
    kind: Kind,
    step: String,
    lock: String,
    places: [Span; 2],
    (edited, rule): (Edited, Rule),
) -> Candidate {
    let mut variables = super::variables(bug);
    variables.retain(|name| *name == lock);
    if variables.is_empty() {
        variables.push(lock.clone());
    }
    let repair = Repair {
        kind,
        steps: vec![step],
        lock: Some(Guard { name: lock, new: false }),
        variables,
        places: places.to_vec(),
        rule,
        checked: None,
    };
    Candidate { repair, edited }
}

/// What the cause is about; where several locks of the circle have one name in their own classes' functions, as the callers
/// of these call them.
fn apart(bug: &Bug<'_>, blocks: &[&Event]) -> Vec<String> {
    let names = super::variables(bug);
    let wanted: BTreeSet<ObjectId> =
        blocks.iter().filter_map(|block| asked(block)).map(|(object, _)| object).collect();
    if wanted.len() <= names.len() {
        return names;
    }
    let outside = |object| lock_from_outside(object, bug.trace.events.iter()).map(str::to_owned);
    let apart: Option<Vec<String>> = wanted.into_iter().map(outside).collect();
    apart.unwrap_or(names)
}

/// One more lock around what each thread of the circle does with its own: only one of them at a time.
fn one_at_a_time(bug: &Bug<'_>, all: &Sections, blocks: &[&Event]) -> Option<Candidate> {
    let trace = bug.trace;
    if blocks.len() < 2 || blocks.iter().any(|block| asked(block).is_none()) {
        return None;
    }
    let mut edit = Edit::new(trace);
    let object = edit.object(ObjectKind::Lock, "a new lock");
    let mut regions = Vec::new();
    let mut places: BTreeSet<Span> = BTreeSet::new();
    for block in blocks {
        let held = held(bug, all, block)?;
        // Taken before the wait, the new lock would be kept while the thread waits for others that want it.
        if ends_wait(trace, held.lock) {
            return None;
        }
        regions.push((held.lock, held.unlock));
        places.insert(span(trace.event(held.lock), block)?);
    }
    guard(&mut edit, object, &regions);
    edit.fails_when(at_once(bug, all)?);
    let edited = edit.finish()?;
    let names = apart(bug, blocks);
    let listed: Vec<String> = names.iter().map(|name| quoted(name)).collect();
    let lock = super::atomicity::new_mutex(&places, "around", &listed);
    let steps = places.iter().enumerate().map(|(number, place)| {
        super::atomicity::held(if number == 0 { &lock } else { "it" }, place)
    });
    let repair = Repair {
        kind: Kind::CriticalSection,
        steps: steps.collect(),
        lock: Some(Guard { name: lock.clone(), new: true }),
        variables: names,
        places: places.into_iter().collect(),
        rule: alone(bug, all),
        checked: None,
    };
    Some(Candidate { repair, edited })
}

/// All threads of the circle run the same code: the lines cannot change places, but the locks can
/// be taken in one order, whoever takes them.
fn one_order(bug: &Bug<'_>, all: &Sections, blocks: &[&Event]) -> Option<Candidate> {
    let trace = bug.trace;
    let first = blocks.first()?;
    if blocks.len() < 2 || blocks.iter().any(|block| block.site() != first.site()) {
        return None;
    }
    let mut edit = Edit::new(trace);
    let mut places = None;
    for block in blocks {
        let asked = asked(block)?;
        let held = held(bug, all, block)?;
        if asked.0 == held.object {
            return None;
        }
        let lock = trace.event(held.lock);
        let there = asked_at(lock, block);
        // A guard's constructor is the same place for all locks of the program: what counts is who called it.
        if lock.site() == block.site() && places.is_some_and(|other| other != there) {
            return None;
        }
        places = Some(there);
        // The order of the trace's objects stands for any that all threads agree on.
        if asked.0 < held.object {
            edit.before(held.lock, taking(trace, asked));
            edit.after(held.unlock, giving(trace, asked, true));
        }
    }
    edit.fails_when(at_once(bug, all)?);
    let edited = edit.finish()?;
    let places = places?.map(Span::of);
    // Several objects may be called the same where they are taken.
    let mut locks: Vec<String> = Vec::new();
    for lock in blocks.iter().filter_map(|block| Some(lock_name(trace, block.kind.object()?))) {
        if !locks.contains(&lock) {
            locks.push(lock);
        }
    }
    let named: Vec<String> = locks.iter().map(|lock| quoted(lock)).collect();
    let step = format!(
        "in {}, take the locks of {} and {} in one order in all threads, by their numbers or \
         addresses: {}",
        places[0].function,
        places[0].begin(),
        places[1].begin(),
        named.join(", ")
    );
    let repair = Repair {
        kind: Kind::LockOrder,
        steps: vec![step],
        lock: None,
        variables: locks,
        places: places.to_vec(),
        rule: alone(bug, all),
        checked: None,
    };
    Some(Candidate { repair, edited })
}

/// Takes the lock that is asked for before the one that is held.
fn in_order(
    bug: &Bug<'_>,
    all: &Sections,
    (block, asked): (&Event, (ObjectId, LockMode)),
    held: Section,
) -> Option<Candidate> {
    let trace = bug.trace;
    let site = |id: EventId| trace.event(id).site();
    if is_found_between(trace, bug.uses, held.lock, block) || ends_wait(trace, held.lock) {
        return None;
    }
    let [outer_at, inner_at] = asked_at(trace.event(held.lock), block);
    // What a guard of the program's own calls the lock is no name for it where the guard is made.
    let by_guard = (site(held.lock) == block.site()).then(|| {
        let word = |event, site| word_in(event, &Span::of(site)).map(str::to_owned);
        Some([word(block, inner_at)?, word(trace.event(held.lock), outer_at)?])
    });
    if by_guard.as_ref().is_some_and(|names| names.as_ref().is_none_or(|[a, b]| a == b)) {
        return None;
    }
    let by_guard = by_guard.flatten();
    let mut edit = Edit::new(trace);
    // Whoever came through here before did it in the same order.
    for inner in all.iter().filter(|section| site(section.lock) == block.site()) {
        let outer = all.around(trace, inner.lock).into_iter().find(|section| {
            let there = asked_at(trace.event(section.lock), trace.event(inner.lock));
            site(section.lock) == site(held.lock)
                && section.lock != inner.lock
                && (by_guard.is_none() || there == [outer_at, inner_at])
        });
        if let Some(outer) = outer {
            edit.move_before(inner.lock, outer.lock);
        }
    }
    edit.before(held.lock, taking(trace, asked));
    edit.after(held.unlock, giving(trace, asked, true));
    edit.fails_when(at_once(bug, all)?);
    let edited = edit.finish()?;
    let named = by_guard.is_some();
    let [mut lock, other] = by_guard
        .unwrap_or_else(|| names_there(trace, [(block.id, asked.0), (held.lock, held.object)]));
    let places = [inner_at, outer_at].map(Span::of);
    // The function that takes both, itself or in what it calls.
    let both = span(trace.event(held.lock), block);
    // A function of another class may have no name for what is taken in what it calls.
    let member = lock.strip_prefix("this->").filter(|rest| !named && !rest.contains(['.', '>']));
    if let Some(member) = member
        && let Some(both) = both.as_ref().filter(|both| both.function != places[0].function)
        && !shares_this(trace, asked.0, both)
    {
        let word = word_in(block, both).filter(|word| explain::last_member(word) == member)?;
        lock = word.to_owned();
    }
    if let Some(both) = both.as_ref().filter(|both| both.function != places[0].function) {
        lock = known_to(block, both, lock)?;
    }
    let function = both.map_or_else(|| places[0].function.clone(), |span| span.function);
    let step = format!(
        "in {function}, take {} ({}) before {} ({})",
        quoted(&lock),
        places[0].begin(),
        quoted(&other),
        places[1].begin()
    );
    let repair = Repair {
        kind: Kind::LockOrder,
        steps: vec![step],
        lock: Some(Guard { name: lock.clone(), new: false }),
        variables: vec![lock, other],
        places: places.to_vec(),
        rule: alone(bug, all),
        checked: None,
    };
    Some(Candidate { repair, edited })
}

/// What the lines call a lock that is taken in what they call. They have no name for what only a pointer of that
/// function leads to, unless they gave it that.
fn known_to(block: &Event, lines: &Span, lock: String) -> Option<String> {
    match lock.starts_with('*') {
        true => word_in(block, lines).map(str::to_owned),
        false => Some(lock),
    }
}

/// What two locks are called where these events ask for them: what is called `job->lock` there may be another one
/// elsewhere. Where that does not tell them apart, what they are called anywhere.
fn names_there(trace: &EventTrace, asked: [(EventId, ObjectId); 2]) -> [String; 2] {
    let anywhere = asked.map(|(_, object)| lock_name(trace, object));
    let there =
        asked.map(|(id, _)| trace.subject(trace.event(id)).filter(|name| !is_internal(name)));
    match there {
        [Some(one), Some(other)] if one != other => [one.to_owned(), other.to_owned()],
        _ => anywhere,
    }
}

/// Only one thread at a time on its way from the first lock to the second.
fn alone(bug: &Bug<'_>, all: &Sections) -> Rule {
    let trace = bug.trace;
    let blocks = bug.events.iter().map(|id| trace.event(*id));
    let blocks = blocks.filter(|event| matches!(event.kind, EventKind::Block { .. }));
    let stretches = blocks.filter_map(|block| {
        let held = held(bug, all, block)?;
        Some(Stretch { first: held.lock, last: block.id })
    });
    Rule::Alone(stretches.collect())
}

/// Gives the lock back before it waits for something else.
pub(super) fn release_first(
    bug: &Bug<'_>,
    all: &Sections,
    block: &Event,
    held: Section,
) -> Option<Candidate> {
    let trace = bug.trace;
    let (object, mode) = (held.object, held.mode);
    // A wait on a condition variable begins at the release of its mutex.
    let before = trace.thread_of(block.id).events.get((block.index as usize).checked_sub(1)?)?;
    let signal = matches!(block.kind, EventKind::Block { on: Awaited::Signal { .. } });
    let begins = signal && matches!(trace.event(*before).kind, EventKind::Unlock { .. });
    let target = if begins { *before } else { block.id };
    let mut edit = Edit::new(trace);
    edit.move_before(held.unlock, target);
    edit.replace(held.unlock, giving(trace, (object, mode), false));
    edit.fails_when(at_once(bug, all)?);
    let edited = edit.finish()?;
    let lock = lock_name(trace, object);
    let places = [block.id, held.lock].map(|id| Span::of(trace.event(id).site()));
    let what = match block.kind {
        EventKind::Block { on: Awaited::End { child } } => {
            format!("joining {}", quoted(&trace.threads[child.index()].name))
        }
        _ if asked(block).is_some_and(|(other, _)| other == object) => match asked(block) {
            Some((_, LockMode::Exclusive)) if mode == LockMode::Shared => {
                "taking it to write".to_owned()
            }
            _ => "taking it again".to_owned(),
        },
        _ if let Some(function) = called_in_rusts_library(block) => format!("calling {function}"),
        EventKind::Block { on: Awaited::Call } => "the call that does not come back".to_owned(),
        _ => format!("waiting for {}", quoted(trace.subject(block).unwrap_or("it"))),
    };
    let back = match places[1].file.ends_with(".rs") {
        true => format!("drop the guard of {} (taken at {})", quoted(&lock), places[1].begin()),
        false => format!("give {} (taken at {}) back", quoted(&lock), places[1].begin()),
    };
    // Who took it knows of it, and not the function that it calls.
    let again = asked(block).is_some_and(|(other, _)| other == object);
    let calls = again.then(|| called_with(trace.event(held.lock), block)).flatten();
    let calls = calls.and_then(|(line, called)| {
        let callee = called.into_iter().find(|site| !site.is_in_library())?;
        Some((Span::of(line), format!("calling {}", callee.function)))
    });
    let [asking, taking] = places;
    let (asking, what) = calls.unwrap_or((asking, what));
    let places = [asking, taking];
    let step = format!("in {}, {back} before {what} ({})", places[0].function, places[0].begin());
    // Whoever wants the lock comes before it is taken.
    let wanting = trace.events.iter().filter(|event| {
        event.thread != block.thread
            && matches!(event.kind, EventKind::Block { on } if on.object() == Some(object))
    });
    let first: Vec<EventId> = wanting.map(|event| event.id).collect();
    // Who got the lock at the same place would be taken for the one that is waited for.
    let others_pass = first.iter().map(|id| trace.event(*id)).any(|wanting| {
        let got = |event: &Event| matches!(event.kind, EventKind::Lock { object: other, .. } if other == object);
        trace.events.iter().any(|event| got(event) && event.site() == wanting.site())
    });
    let rule = match first.is_empty() || others_pass {
        true => Rule::None,
        false => Rule::After { first, then: vec![held.lock] },
    };
    let repair = Repair {
        kind: Kind::ReleaseFirst,
        steps: vec![step],
        lock: Some(Guard { name: lock.clone(), new: false }),
        variables: vec![lock],
        places: places.to_vec(),
        rule,
        checked: None,
    };
    Some(Candidate { repair, edited })
}

#[cfg(test)]
mod tests {
    use super::*;
    use encoders::dsl::parse;

    #[test]
    fn what_a_pointer_leads_to_is_known_by_the_name_that_the_lines_have() {
        let parsed = parse("a: [take] lock m\n a: unlock m\n").expect("the text is a trace");
        let mut trace = parsed.trace.clone();
        let take = parsed.event("take");
        let site = |line, function: &str| Site {
            file: "pool.cc".to_owned(),
            line,
            column: 1,
            function: function.to_owned(),
        };
        trace.events[take.index()].stack = vec![site(9, "Guard"), site(30, "main")].into();
        trace.events[take.index()].name = Some("*value".into());
        let main = Span::of(&site(30, "main"));
        let known =
            |trace: &EventTrace, name: &str| known_to(trace.event(take), &main, name.to_owned());
        assert_eq!(known(&trace, "*value"), None);
        assert_eq!(known(&trace, "stock").as_deref(), Some("stock"));
        trace.events[take.index()].words =
            vec![Some("*value".into()), Some("pool.lock".into())].into();
        assert_eq!(known(&trace, "*value").as_deref(), Some("pool.lock"));
    }

    /// Two threads that ask for each other's lock: what else may be done than to give a lock back, where the first does this
    /// in the section from `first` on?
    fn otherwise(first: &str) -> Vec<Kind> {
        otherwise_at(first, |_| Vec::new())
    }

    /// The same, with the stacks of what is asked for: of the first thread's two locks, and then of the other's.
    fn otherwise_at(first: &str, stack: impl Fn(usize) -> Vec<Site>) -> Vec<Kind> {
        let text = format!(
            "t0: [one] lock m\n{first}t0: [ask] W a 1\nt0: unlock m\nt0: fail\n\
             a: [two] lock n\na: [want] W b 1\na: unlock n\n"
        );
        let mut parsed = parse(&text).expect("the text is a trace");
        let [one, ask, two, want] = ["one", "ask", "two", "want"].map(|label| parsed.event(label));
        let [m, n] = [one, two].map(|id| parsed.trace.event(id).kind.object().expect("a lock"));
        for (id, object) in [(ask, n), (want, m)] {
            let on = Awaited::Lock { object, mode: LockMode::Exclusive };
            parsed.trace.events[id.index()].kind = EventKind::Block { on };
        }
        let of_m =
            |event: &&Event| matches!(event.kind, EventKind::Lock { object, .. } if object == m);
        let held = parsed.trace.events.iter().rfind(of_m).expect("it is taken").id;
        for (number, id) in [held, ask, two, want].into_iter().enumerate() {
            let stack = stack(number);
            if !stack.is_empty() {
                parsed.trace.events[id.index()].stack = stack.into();
            }
        }
        let bug = Bug {
            trace: &parsed.trace,
            pattern: explain::Pattern::Deadlock,
            events: &[two, held, ask, want],
            schedule: &[],
            handlers: &[],
            uses: crate::Uses::NONE,
        };
        let mut kinds: Vec<Kind> =
            candidates(&bug).into_iter().map(|found| found.repair.kind).collect();
        kinds.retain(|kind| *kind != Kind::ReleaseFirst);
        kinds
    }

    #[test]
    fn nothing_is_taken_before_a_lock_that_a_wait_takes_again() {
        use Kind::{CriticalSection, LockOrder};
        assert_eq!(otherwise("t0: R c -> x\n"), [LockOrder, LockOrder, CriticalSection]);
        assert_eq!(otherwise("t0: wait told m\n"), [LockOrder], "the other thread still may");
    }

    /// All locks are taken by the constructor of a guard: what counts is who made it.
    #[test]
    fn who_makes_a_guard_asks_for_its_lock() {
        let site = |line, function: &str| Site {
            file: "view.cc".to_owned(),
            line,
            column: 1,
            function: function.to_owned(),
        };
        let made = |callers: [(u32, &'static str); 4]| {
            otherwise_at("t0: R c -> x\n", |number| {
                let (line, function) = callers[number];
                vec![site(20, "Section"), site(line, function)]
            })
        };
        let apart = made([(54, "append"), (58, "append"), (105, "render"), (107, "render")]);
        assert_eq!(apart, [Kind::CriticalSection]);
        // The same code, for two pairs of objects.
        let same = made([(54, "move"), (58, "move"), (54, "move"), (58, "move")]);
        assert_eq!(same, [Kind::LockOrder, Kind::CriticalSection]);
    }

    #[test]
    fn locks_have_the_names_that_they_have_where_they_are_asked_for() {
        let text = "
            a: [add] lock first
            a: unlock first
            b: [run] lock second
            b: unlock second
        ";
        let mut parsed = parse(text).expect("the text is a trace");
        let [add, run] = ["add", "run"].map(|label| parsed.event(label));
        let objects = [add, run].map(|id| parsed.trace.event(id).kind.object().expect("a lock"));
        let asked = [(add, objects[0]), (run, objects[1])];
        let mut called = |names: [&str; 2]| {
            for (id, name) in [add, run].into_iter().zip(names) {
                parsed.trace.events[id.index()].name = Some(name.into());
            }
            names_there(&parsed.trace, asked)
        };
        assert_eq!(called(["job->lock", "depjob->lock"]), ["job->lock", "depjob->lock"]);
        assert_eq!(called(["job->lock", "__m"])[0], "job->lock");
    }

    /// A thread that has a lock asks for it in a function that it calls; another one comes to the `others` lines.
    fn asked_twice(others: &[(u32, &str)]) -> Vec<String> {
        let text = "
            a: [take] lock m
            a: [ask] W x 1
            a: unlock m
            a: fail
            b: [other] R ready -> r
        ";
        let mut parsed = parse(text).expect("the text is a trace");
        let [take, ask, other] = ["take", "ask", "other"].map(|label| parsed.event(label));
        let object = parsed.trace.event(take).kind.object().expect("a lock");
        let on = Awaited::Lock { object, mode: LockMode::Exclusive };
        parsed.trace.events[ask.index()].kind = EventKind::Block { on };
        let display = [(39, "display"), (59, "main")];
        let asks = [(17, "load"), (33, "convert"), (40, "display"), (59, "main")];
        for (id, stack) in [(take, &display[..]), (ask, &asks), (other, others)] {
            let site = |(line, function): &(u32, &str)| Site {
                file: "rates.c".to_owned(),
                line: *line,
                column: 1,
                function: (*function).to_owned(),
            };
            parsed.trace.events[id.index()].stack =
                stack.iter().map(site).collect::<Vec<_>>().into();
        }
        // The end of the run is where the thread was.
        let end = parsed.trace.event(ask).stack.clone();
        let own = parsed.trace.thread_of(ask).events.clone();
        for id in &own[parsed.trace.event(ask).index as usize..] {
            let event = &mut parsed.trace.events[id.index()];
            event.stack = end.clone();
            if let EventKind::Unlock { synthetic, .. } = &mut event.kind {
                *synthetic = true;
            }
        }
        let events = [take, ask];
        let bug = Bug::by_hand(&parsed.trace, explain::Pattern::Deadlock, &events);
        candidates(&bug).into_iter().flat_map(|found| found.repair.steps).collect()
    }

    #[test]
    fn who_need_not_have_the_lock_takes_it() {
        let once =
            "in load, do not take `m` again (rates.c:17): the thread has it since rates.c:39";
        let first =
            "in display, give `m` (taken at rates.c:39) back before calling convert (rates.c:40)";
        assert_eq!(asked_twice(&[(20, "audit")]), [once, first]);
        assert_eq!(asked_twice(&[(33, "convert"), (20, "audit")]), [first]);
    }
}
