//! After a patch: can a wake-up still get lost? Seen in a run of the new program that passed: it cannot
//! where a thread decides to wait under the mutex that it gives back by waiting, whoever writes what it
//! looks at does so under that mutex, or takes it behind the write, and signals afterwards, and no signal can wake another
//! one instead. Where that is what happened, the signal has to reach all, or those who wait for it have to wait for the same.

mod waiting;

use crate::check::Limits;
use crate::possible::{Possible, Ways};
use crate::sections::{Section, Sections, lock_name, sections};
use crate::{Bug, source::Span};
use encoders::ConstraintSystem;
use explain::last_member;
use model::{Awaited, CellId, Event, EventId, EventKind, EventTrace, ObjectId, ThreadId};
use std::collections::{BTreeMap, BTreeSet};
use waiting::Known;

/// A wait that came to its end.
struct Wait {
    condition: ObjectId,
    thread: ThreadId,
    /// The section of the mutex that it gives back.
    section: Section,
    /// Where it has come to its end.
    ended: EventId,
}

/// Can a wake-up of the bug's condition variable get lost along the run's paths?
pub(crate) fn awaited(bug: &Bug<'_>, run: &EventTrace, limits: Limits<'_>) -> Possible {
    let named = |fits: &dyn Fn(&Event) -> bool| -> BTreeSet<String> {
        let events = bug.events.iter().map(|id| bug.trace.event(*id)).filter(|event| fits(event));
        events.filter_map(|event| bug.trace.subject(event).map(last_member)).collect()
    };
    let names = named(&|event| {
        matches!(event.kind, EventKind::Signal { .. } | EventKind::Broadcast { .. })
    });
    // What the cause says that was written between check and wait. Other things that are waited for there, too, may
    // be told otherwise.
    let variables = named(&|event| event.kind.is_access());
    if is_undone(bug) {
        let why = "whether what a thread was woken for still holds when it looks again is not seen in a run that passes";
        return Possible::Unknown(why.to_owned());
    }
    let all = sections(run);
    let waits = || run.events.iter().filter_map(|event| wait(run, &all, event));
    // The condition may have another name now, or be several.
    let is_there = |wait: &Wait| {
        let site = run.event(wait.section.unlock).site();
        let mut waited = bug
            .events
            .iter()
            .map(|id| bug.trace.event(*id))
            .filter(|event| is_waiting(&event.kind));
        waited.any(|event| event.site().function == site.function)
    };
    let is_named = |named: &BTreeSet<String>| !named.is_disjoint(&names);
    let any_named = waits().any(|(named, _)| is_named(&named));
    let there_too = !any_named || woke_another(bug).is_some();
    let waits: Vec<Wait> = waits()
        .filter(|(named, wait)| is_named(named) || there_too && is_there(wait))
        .map(|(_, wait)| wait)
        .collect();
    if waits.is_empty() {
        return Possible::Untouched("in the run no thread waits for the signal".to_owned());
    }
    if let Err(why) = wakes_the_right_one(bug, run, &waits) {
        return why;
    }
    let system = match encoders::encode_orders(run) {
        Ok(system) => system,
        Err(error) => return Possible::Unknown(error.to_string()),
    };
    let mut waiting: BTreeMap<ObjectId, BTreeSet<ThreadId>> = BTreeMap::new();
    for wait in &waits {
        waiting.entry(wait.condition).or_default().insert(wait.thread);
    }
    // Those in a loop are alike: who writes what they look at is asked once about all of them.
    let mut alike: BTreeMap<_, Vec<&Wait>> = BTreeMap::new();
    for wait in &waits {
        let site = run.event(wait.section.unlock).site();
        let key = (tested(run, &wait.section, &variables), wait.section.object, wait.condition);
        alike.entry((key, &site.function, &site.file)).or_default().push(wait);
    }
    let known = Known::new(run, limits);
    let mut writes = false;
    // What the cause names, if the run has writes of it, and anything else otherwise: it may have another name now.
    let of_cause = |event: &Event| {
        let name = run.subject(event).map(last_member);
        !event.kind.writes().is_empty() && name.is_some_and(|name| variables.contains(&name))
    };
    let has_name = run.events.iter().any(of_cause);
    let is_about = |event: &Event| !has_name || of_cause(event);
    for (((tested, _, condition), ..), waits) in &alike {
        let Some(waiting) = waiting.get(condition) else { continue };
        match kept(&known, (&system, &all), (waits, tested), waiting) {
            Ok(some) => writes |= some.into_iter().any(is_about),
            Err(why) => return why,
        }
    }
    // Those who wait may be others than whom it is about, such as a worker that goes on when another one is ended.
    if !writes {
        let why = "in the run nobody writes what a thread that waits for the signal looks at";
        return Possible::Untouched(why.to_owned());
    }
    let mutex = lock_name(run, waits[0].section.object);
    Possible::No(format!(
        "what is tested before the wait is written under `{mutex}` and signalled afterwards"
    ))
}

/// Is the cause that what a thread was told was undone before it looked: was it written behind the signal, and looked at
/// behind that?
fn is_undone(bug: &Bug<'_>) -> bool {
    let time = |id: EventId| bug.schedule.iter().position(|event| *event == id);
    let times = |fits: &dyn Fn(&EventKind) -> bool| -> Vec<Option<usize>> {
        let events = bug.events.iter().filter(|id| fits(&bug.trace.event(**id).kind));
        events.map(|id| time(*id)).collect()
    };
    let is_signal =
        |kind: &EventKind| matches!(kind, EventKind::Signal { .. } | EventKind::Broadcast { .. });
    let signalled = times(&is_signal).into_iter().min().flatten();
    let written = times(&|kind| !kind.writes().is_empty());
    let looked = times(&|kind| matches!(kind, EventKind::Read { .. }));
    signalled.is_some_and(|signalled| {
        let mut behind = written.into_iter().flatten().filter(|at| *at > signalled);
        behind.any(|at| looked.iter().flatten().any(|look| *look > at))
    })
}

/// Is it part of a wait for a signal?
fn is_waiting(kind: &EventKind) -> bool {
    let awaits = matches!(kind, EventKind::Block { on: Awaited::Signal { .. } });
    awaits || matches!(kind, EventKind::Wake { .. } | EventKind::WaitTimedOut { .. })
}

/// The wait that ends with this event, and what its condition is called.
fn wait(run: &EventTrace, all: &Sections, event: &Event) -> Option<(BTreeSet<String>, Wait)> {
    let EventKind::Wake { condition, began } = event.kind else { return None };
    let named = run.subject(event).map(last_member);
    let object = run.objects.get(condition.index()).map(|object| last_member(&object.name));
    let names = [named, object].into_iter().flatten().collect();
    let section = all.around(run, began).into_iter().find(|section| section.unlock == began)?;
    let section = handed_over(run, all, (condition, section)).unwrap_or(section);
    Some((names, Wait { condition, thread: event.thread, section, ended: event.id }))
}

/// The section of another lock that the thread has left in the one of the mutex that it gives back by waiting: as
/// `std::condition_variable_any` does, which has a mutex of its own for that. Who signals takes that, so that what was decided
/// under the other lock was decided under it.
fn handed_over(
    run: &EventTrace,
    all: &Sections,
    (condition, own): (ObjectId, Section),
) -> Option<Section> {
    let index = |id: EventId| run.event(id).index;
    let mut around = all.touching(run, (own.lock, own.unlock));
    let other = around.find(|section| {
        section.object != own.object
            && index(section.lock) < index(own.lock)
            && (index(own.lock)..index(own.unlock)).contains(&index(section.unlock))
    })?;
    let mut signals = run.events.iter().filter(|event| match event.kind {
        EventKind::Signal { condition: object } | EventKind::Broadcast { condition: object } => {
            object == condition
        }
        _ => false,
    });
    let holds = |event: &Event| all.around(run, event.id).iter().any(|s| s.object == own.object);
    signals.all(holds).then_some(other)
}

/// The signal, where the cause is that it woke one thread and another one went on waiting.
fn woke_another<'t>(bug: &Bug<'t>) -> Option<&'t Event> {
    let mut events = bug.events.iter().map(|id| bug.trace.event(*id));
    let signal = events.clone().find(|event| matches!(event.kind, EventKind::Signal { .. }));
    signal.filter(|_| events.any(|event| matches!(event.kind, EventKind::Wake { .. })))
}

/// Where the cause is that a signal woke one thread and another one went on waiting: can a signal that is sent there still do
/// that?
fn wakes_the_right_one(bug: &Bug<'_>, run: &EventTrace, waits: &[Wait]) -> Result<(), Possible> {
    let Some(signal) = woke_another(bug) else { return Ok(()) };
    let events = || bug.events.iter().map(|id| bug.trace.event(*id));
    let waits_on = |condition: ObjectId| {
        let waits = waits.iter().filter(move |wait| wait.condition == condition);
        waits.map(|wait| (wait.thread, run.event(wait.section.unlock).site()))
    };
    // What was given up may be waited for elsewhere now.
    let function = |event: &Event| event.site().function.clone();
    let missed: BTreeSet<String> =
        events().filter(|event| event.id != signal.id).map(function).collect();
    let seen: BTreeSet<String> =
        waits.iter().map(|wait| run.event(wait.section.unlock).site().function.clone()).collect();
    let sends = |event: &&Event| event.site().function == signal.site().function;
    for event in run.events.iter().filter(sends) {
        let EventKind::Signal { condition } = event.kind else { continue };
        let places: BTreeSet<_> = waits_on(condition).map(|(_, site)| site).collect();
        let threads: BTreeSet<ThreadId> = waits_on(condition).map(|(thread, _)| thread).collect();
        if threads.len() > 1 && (places.len() > 1 || missed.len() < 2) {
            let places: Vec<String> =
                places.into_iter().map(|site| Span::of(site).begin()).collect();
            return Err(Possible::Yes {
                place: format!(
                    "{}, which wakes one of those that wait at {}",
                    Span::of(event.site()).begin(),
                    places.join(" and ")
                ),
                ways: Ways::default(),
            });
        }
        if !missed.is_subset(&seen) {
            let unseen = missed.difference(&seen).cloned().collect::<Vec<_>>().join(" and ");
            return Err(Possible::Untouched(format!("in the run no thread waits in {unseen}")));
        }
    }
    Ok(())
}

/// Does every other thread keep to it? The waits are at one place, for the same, and look at the same; so many threads wait
/// for that condition. Gives what is written.
fn kept<'t>(
    known: &Known<'t>,
    (system, all): (&ConstraintSystem, &Sections),
    (waits, tested): (&[&Wait], &BTreeSet<CellId>),
    waiting: &BTreeSet<ThreadId>,
) -> Result<Vec<&'t Event>, Possible> {
    let Some(wait) = waits.first() else { return Ok(Vec::new()) };
    let run = known.run();
    let mut writes = Vec::new();
    if tested.is_empty() {
        let place = Span::of(run.event(wait.section.unlock).site()).begin();
        return Err(Possible::Yes {
            place: format!("{place}, where nothing is tested before the wait"),
            ways: Ways::default(),
        });
    }
    let waits_alone = |thread: ThreadId| waits.iter().all(|wait| wait.thread == thread);
    // Such as what an object's constructor writes, before the object has threads and behind the end of those that the one
    // before it at its place had.
    let is_apart = |write: EventId, wait: &Wait| {
        system.surely_before(write, wait.section.lock) || system.surely_before(wait.ended, write)
    };
    let is_write = |event: &&Event| {
        event.kind.writes().iter().any(|part| tested.contains(&part.cell))
            && !waits_alone(event.thread)
            && !waits.iter().all(|wait| is_apart(event.id, wait))
    };
    for write in run.events.iter().filter(is_write) {
        writes.push(write);
        let place = || Span::of(write.site()).begin();
        let bare = || Possible::Yes {
            place: format!("{}, without the mutex of the wait", place()),
            ways: Ways::default(),
        };
        let own = &run.thread_of(write.id).events;
        let is_mutex = |section: &Section| section.object == wait.section.object;
        let guarded = all.around(run, write.id).iter().any(is_mutex);
        // Who takes the mutex behind the write finds whoever did not see it waiting.
        let from = match (guarded, own.last()) {
            (true, _) => Some(write.id),
            (false, Some(last)) => {
                all.touching(run, (write.id, *last)).find(is_mutex).map(|section| section.lock)
            }
            (false, None) => None,
        };
        let matters = || !known.leaves_waiting(waits, tested, write);
        let Some(from) = from else {
            match matters() {
                true => return Err(bare()),
                false => continue,
            }
        };
        // Who waits there in other runs takes what was waited for.
        let waits = run.event(wait.section.unlock).site();
        let there = write.site().function == waits.function && write.site().file == waits.file;
        if guarded && (there || waiting.contains(&write.thread)) {
            continue;
        }
        let later = own.iter().skip(run.event(from).index as usize + 1);
        let signals = later.map(|id| &run.event(*id).kind).find(|kind| match kind {
            EventKind::Signal { condition } | EventKind::Broadcast { condition } => {
                *condition == wait.condition
            }
            _ => false,
        });
        match signals {
            Some(EventKind::Broadcast { .. }) => {}
            Some(_) if waiting.len() == 1 => {}
            Some(_) => {
                let why = "several threads wait for a signal that wakes one of them";
                return Err(Possible::Unknown(why.to_owned()));
            }
            None if !matters() => {}
            None if !guarded => return Err(bare()),
            None => {
                return Err(Possible::Yes {
                    place: format!("{}, which is not signalled", place()),
                    ways: Ways::default(),
                });
            }
        }
    }
    Ok(writes)
}

/// What the thread looked at in the section that it gave back: of these variables, if it looked at one of them.
fn tested(run: &EventTrace, section: &Section, variables: &BTreeSet<String>) -> BTreeSet<CellId> {
    let index = |id: EventId| run.event(id).index as usize;
    let own = run.thread_of(section.lock).events.get(index(section.lock)..index(section.unlock));
    let looks = || own.into_iter().flatten().map(|id| run.event(*id));
    let cells = |event: &Event| event.kind.reads().iter().map(|part| part.cell).collect::<Vec<_>>();
    let named = |event: &&Event| {
        run.subject(event).is_some_and(|name| variables.contains(&last_member(name)))
    };
    let of_cause: BTreeSet<CellId> = looks().filter(named).flat_map(cells).collect();
    match of_cause.is_empty() {
        true => looks().flat_map(cells).collect(),
        false => of_cause,
    }
}

#[cfg(test)]
mod tests;
