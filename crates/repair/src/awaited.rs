//! After a patch: can a wake-up still get lost? Seen in a run of the new program that passed: it cannot
//! where a thread decides to wait under the mutex that it gives back by waiting, whoever writes what it
//! looks at does so under that mutex and signals afterwards, and no signal can wake another one instead.

use crate::possible::{Possible, Ways};
use crate::sections::{Section, Sections, lock_name, sections};
use crate::{Bug, source::Span};
use encoders::ConstraintSystem;
use explain::last_member;
use model::{CellId, Event, EventId, EventKind, EventTrace, ObjectId, ThreadId};
use std::collections::{BTreeMap, BTreeSet};

/// A wait that came to its end.
struct Wait {
    condition: ObjectId,
    thread: ThreadId,
    /// The section of the mutex that it gives back.
    section: Section,
}

/// Can a wake-up of the bug's condition variable get lost along the run's paths?
pub(crate) fn awaited(bug: &Bug<'_>, run: &EventTrace) -> Possible {
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
    let all = sections(run);
    let waits: Vec<Wait> = run.events.iter().filter_map(|e| wait(run, &all, &names, e)).collect();
    if waits.is_empty() {
        return Possible::Untouched("in the run no thread waits for the signal".to_owned());
    }
    let system = match crate::contended::orders(run) {
        Ok(system) => system,
        Err(error) => return Possible::Unknown(error.to_string()),
    };
    let waiting: BTreeSet<ThreadId> = waits.iter().map(|wait| wait.thread).collect();
    // Those in a loop are alike: who writes what they look at is asked once about all of them.
    let mut alike: BTreeMap<_, Vec<&Wait>> = BTreeMap::new();
    for wait in &waits {
        let site = run.event(wait.section.unlock).site();
        let key = (tested(run, &wait.section, &variables), wait.section.object, wait.condition);
        alike.entry((key, &site.function, &site.file)).or_default().push(wait);
    }
    for (((tested, ..), ..), waits) in &alike {
        if let Err(why) = kept(run, &system, &all, (waits, tested), &waiting) {
            return why;
        }
    }
    let mutex = lock_name(run, waits[0].section.object);
    Possible::No(format!(
        "what is tested before the wait is written under `{mutex}` and signalled afterwards"
    ))
}

fn wait(run: &EventTrace, all: &Sections, names: &BTreeSet<String>, event: &Event) -> Option<Wait> {
    let EventKind::Wake { condition, began } = event.kind else { return None };
    let named = run.subject(event).map(last_member);
    let object = run.objects.get(condition.index()).map(|object| last_member(&object.name));
    if ![named, object].into_iter().flatten().any(|name| names.contains(&name)) {
        return None;
    }
    let section = all.around(run, began).into_iter().find(|section| section.unlock == began)?;
    Some(Wait { condition, thread: event.thread, section })
}

/// Does every other thread keep to it? The waits are at one place, for the same, and look at the same.
fn kept(
    run: &EventTrace,
    system: &ConstraintSystem,
    all: &Sections,
    (waits, tested): (&[&Wait], &BTreeSet<CellId>),
    waiting: &BTreeSet<ThreadId>,
) -> Result<(), Possible> {
    let Some(wait) = waits.first() else { return Ok(()) };
    if tested.is_empty() {
        let place = Span::of(run.event(wait.section.unlock).site()).begin();
        return Err(Possible::Yes {
            place: format!("{place}, where nothing is tested before the wait"),
            ways: Ways::default(),
        });
    }
    let is_write = |event: &&Event| {
        event.kind.writes().iter().any(|part| tested.contains(&part.cell))
            && !waiting.contains(&event.thread)
            && !waits.iter().all(|wait| system.surely_before(event.id, wait.section.lock))
    };
    for write in run.events.iter().filter(is_write) {
        let place = || Span::of(write.site()).begin();
        let guarded = all.around(run, write.id).iter().any(|s| s.object == wait.section.object);
        if !guarded {
            return Err(Possible::Yes {
                place: format!("{}, without the mutex of the wait", place()),
                ways: Ways::default(),
            });
        }
        // Who waits there in other runs takes what was waited for.
        let waits = run.event(wait.section.unlock).site();
        if write.site().function == waits.function && write.site().file == waits.file {
            continue;
        }
        let later = run.thread_of(write.id).events.iter().skip(write.index as usize + 1);
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
            None => {
                return Err(Possible::Yes {
                    place: format!("{}, which is not signalled", place()),
                    ways: Ways::default(),
                });
            }
        }
    }
    Ok(())
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
