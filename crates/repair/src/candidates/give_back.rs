//! A lock, or a unit of a semaphore, that its thread still had when it ended, while others wait for it: give it back
//! on every way out.

use super::deadlock::{asked, giving};
use super::{Candidate, Guard, Kind, Repair, quoted};
use crate::Bug;
use crate::edit::Edit;
use crate::enforce::Rule;
use crate::sections::{Section, lock_name, open_units, sections};
use crate::source::Span;
use model::{Event, EventId, EventKind, EventTrace, FailureCondition, LockMode, ObjectId, Site};

/// What a thread took, and had when it ended.
#[derive(Clone, Copy)]
struct Kept<'t> {
    object: ObjectId,
    mode: LockMode,
    taken: EventId,
    /// The release that stands for the one that never came; semaphores have none.
    release: Option<EventId>,
    exit: &'t Event,
}

pub(super) fn candidate(bug: &Bug<'_>) -> Option<Candidate> {
    let trace = bug.trace;
    let all: Vec<Kept<'_>> = locks(trace).chain(units(trace)).collect();
    let Kept { object, taken, exit, .. } =
        *all.iter().find(|kept| bug.events.contains(&kept.taken))?;
    let mut edit = Edit::new(trace);
    // Whoever came out this way still having it did it wrong, not only this thread.
    for other in all.iter().filter(|other| other.object == object) {
        let giving = giving(trace, (object, other.mode), false);
        match other.release {
            Some(release) => {
                edit.move_before(release, other.exit.id);
                edit.replace(release, giving);
            }
            None => edit.before(other.exit.id, giving),
        }
    }
    let waits = |event: &&Event| asked(event).is_some_and(|(lock, _)| lock == object);
    let waiting: Vec<&Event> = trace.events.iter().filter(waits).collect();
    if waiting.is_empty() {
        return None;
    }
    // They wait no longer than until it is given back.
    for block in &waiting {
        edit.remove(block.id);
    }
    edit.fails_when(FailureCondition::Any(Vec::new()));
    let edited = edit.finish()?;
    let lock = lock_name(trace, object);
    let place = Span::of(trace.event(taken).site());
    let entry = &trace.thread_of(exit.id).entry;
    let step = format!(
        "in {}, give {} (taken at {}) back on every way out: {} ends with it",
        place.function,
        quoted(&lock),
        place.begin(),
        if entry.is_empty() { "the thread" } else { entry.as_str() }
    );
    let repair = Repair {
        kind: Kind::GiveBack,
        steps: vec![step],
        lock: Some(Guard { name: lock.clone(), new: false }),
        variables: vec![lock],
        places: vec![place],
        rule: Rule::None,
        checked: None,
    };
    Some(Candidate { repair, edited })
}

/// The program's own places of an event's call stack, from the thread's entry on.
fn own_places(event: &Event) -> impl Iterator<Item = &Site> {
    event.stack[event.depth()..].iter().rev()
}

/// Has the function in which a thread took a lock come to its end before a later event of that thread, or does it take it
/// there once more, in another call or round?
pub(super) fn is_left(trace: &EventTrace, lock: EventId, later: EventId) -> bool {
    let [lock, later] = [lock, later].map(|id| trace.event(id));
    let own = own_places(lock).count();
    let common = own_places(lock).zip(own_places(later)).take_while(|(a, b)| a == b).count();
    let [here, there] = [lock, later].map(|event| own_places(event).nth(common));
    match own - common {
        0 => own_places(later).count() == own,
        1 => here.map(|site| &site.function) != there.map(|site| &site.function),
        _ => true,
    }
}

/// Lets a repair that gives a lock back before it is taken again say that its function is to give it back on every way
/// out, and which it went out by without that.
pub(super) fn on_the_way_out(
    bug: &Bug<'_>,
    found: Candidate,
    block: &Event,
    held: Section,
) -> Candidate {
    let trace = bug.trace;
    let taken = trace.event(held.lock);
    let place = Span::of(taken.site());
    let own = own_places(taken).count();
    let in_call = |event: &Event| {
        let outer = own_places(event).zip(own_places(taken)).take(own - 1).all(|(a, b)| a == b);
        outer.then(|| own_places(event).nth(own - 1)).flatten().cloned()
    };
    let events = &trace.thread_of(block.id).events;
    let between = &events[taken.index as usize..block.index as usize];
    let mut sites = between.iter().map_while(|id| in_call(trace.event(*id)));
    let mut last = None;
    // Where the call is made again at the same place, what that does is behind where the lock is taken once more.
    sites.by_ref().for_each(|site| last = Some(site));
    let last =
        last.filter(|site| site.function == taken.site().function && site.line > place.first);
    let name = found.repair.lock.as_ref().map(|lock| quoted(&lock.name)).unwrap_or_default();
    let back = match place.file.ends_with(".rs") {
        true => format!("drop the guard of {name} (taken at {})", place.begin()),
        false => format!("give {name} (taken at {}) back", place.begin()),
    };
    let out = match &last {
        Some(site) => {
            format!(", also behind {}: it is still held", Span::of(site).begin())
        }
        None => ": it is still held".to_owned(),
    };
    let step = format!(
        "in {}, {back} on every way out{out} where it is taken again ({})",
        place.function,
        Span::of(block.site()).begin()
    );
    let mut places = vec![place];
    places.extend(last.iter().map(Span::of));
    let rule = Rule::None;
    let repair = Repair { kind: Kind::GiveBack, steps: vec![step], places, rule, ..found.repair };
    Candidate { repair, ..found }
}

/// The locks that threads ended with.
fn locks(trace: &EventTrace) -> impl Iterator<Item = Kept<'_>> {
    sections(trace).into_iter().filter_map(|Section { object, mode, lock, unlock }| {
        let kept = matches!(trace.event(unlock).kind, EventKind::Unlock { synthetic: true, .. });
        let exit = exit(trace, lock).filter(|_| kept)?;
        Some(Kept { object, mode, taken: lock, release: Some(unlock), exit })
    })
}

/// The units of semaphores that threads ended with.
fn units(trace: &EventTrace) -> impl Iterator<Item = Kept<'_>> {
    let open = trace.threads.iter().flat_map(|thread| open_units(trace, thread));
    open.filter_map(|(object, taken)| {
        let exit = exit(trace, taken)?;
        Some(Kept { object, mode: LockMode::Exclusive, taken, release: None, exit })
    })
}

/// The end of the event's thread.
fn exit(trace: &EventTrace, id: EventId) -> Option<&Event> {
    let events = trace.thread_of(id).events.iter();
    events.map(|id| trace.event(*id)).find(|event| event.kind == EventKind::Exit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use encoders::dsl::parse;

    /// What is offered where a thread that has taken a lock in a function asks for it again with this stack.
    fn offered(again: &[(u32, &str)]) -> Vec<(Kind, String)> {
        let text = "
            a: [took] lock m
            a: [broken] W open 1
            a: [ask] W turns 1
            a: unlock m
            a: fail
        ";
        let mut parsed = parse(text).expect("the text is a trace");
        let ids = ["took", "broken", "ask"].map(|label| parsed.event(label));
        let [took, broken, ask] = ids;
        let first: &[(u32, &str)] = &[(52, "acquire"), (30, "serve")];
        let stacks = [(took, first), (broken, &[(57, "acquire"), (30, "serve")]), (ask, again)];
        for (id, stack) in stacks {
            let site = |(line, function): &(u32, &str)| Site {
                file: "pool.c".to_owned(),
                line: *line,
                column: 1,
                function: (*function).to_owned(),
            };
            parsed.trace.events[id.index()].stack =
                stack.iter().map(site).collect::<Vec<_>>().into();
        }
        let object = parsed.trace.event(took).kind.object().expect("a lock");
        let on = model::Awaited::Lock { object, mode: LockMode::Exclusive };
        parsed.trace.events[ask.index()].kind = EventKind::Block { on };
        let events = [took, ask];
        let bug = Bug::by_hand(&parsed.trace, explain::Pattern::Deadlock, &events);
        let found = super::super::deadlock::candidates(&bug).into_iter();
        found.map(|found| (found.repair.kind, found.repair.steps.join("; "))).collect()
    }

    #[test]
    fn who_left_with_a_lock_gives_it_back_on_every_way_out() {
        let step = "in acquire, give `m` (taken at pool.c:52) back on every way out, also behind pool.c:57: it is \
                    still held where it is taken again (pool.c:52)";
        let expected = [(Kind::GiveBack, step.to_owned())];
        assert_eq!(offered(&[(52, "acquire"), (30, "serve")]), expected, "in the next round");
        assert_eq!(offered(&[(52, "acquire"), (34, "serve")]), expected, "in another call");
        let inside = offered(&[(9, "size"), (55, "acquire"), (30, "serve")]);
        assert_eq!(inside.first().map(|found| found.0), Some(Kind::LockOnce), "{inside:?}");
    }

    #[test]
    fn a_unit_that_was_not_posted_is_kept() {
        let text = "
            a: [one] sem-wait s
            a: post s
            a: [other] sem-wait s
            b: sem-wait s
            b: post s
        ";
        let parsed = parse(text).expect("the text is a trace");
        let kept: Vec<EventId> = units(&parsed.trace).map(|kept| kept.taken).collect();
        assert_eq!(kept, [parsed.event("other")]);
    }
}
