//! A signal that came too early, or woke another thread.

use super::{Candidate, Guard, Kind, Repair, again, quoted};
use crate::Bug;
use crate::edit::Edit;
use crate::enforce::Rule;
use crate::rust::is_rust;
use crate::sections::{Section, Sections, begins_wait, guard, lock_name, sections};
use crate::source::{Span, passages, same_function, span};
use crate::words::lock_word;
use model::{
    Awaited, Cell, CellId, ConditionId, Event, EventId, EventKind, EventTrace, FailureCondition,
    ObjectId, PathCondition, PathConditionKind, ReadPart, VarId, Variable, VariableOrigin,
    WritePart,
};
use std::collections::BTreeSet;

/// The wait that nobody ends, or only its time limit, and the signals that might have.
struct Missed<'a> {
    bug: &'a Bug<'a>,
    all: Sections,
    /// The request, or that its time was up.
    wait: &'a Event,
    /// The failure is not that the thread waits: it went on when the time was up.
    is_timed: bool,
    condition: ObjectId,
    /// The section of the mutex that the wait gives back.
    waiting: Section,
    /// The signal that the cause names.
    signal: &'a Event,
}

pub(super) fn candidates(bug: &Bug<'_>) -> Vec<Candidate> {
    let Some(missed) = Missed::of(bug) else { return Vec::new() };
    let stolen = bug.events.len() > 2;
    let mut found: Vec<Candidate> = Vec::new();
    found.extend(missed.under_mutex());
    // What is missing there is not that it is tested.
    let is_tested = !found.is_empty();
    if stolen {
        found.extend(missed.broadcast());
    }
    found.extend(missed.test_first().filter(|_| !is_tested));
    if !stolen {
        found.extend(missed.broadcast());
    }
    found
}

/// Does the cause name a signal that was sent?
pub(super) fn names_signal(bug: &Bug<'_>) -> bool {
    bug.events.iter().any(|id| {
        let kind = &bug.trace.event(*id).kind;
        matches!(kind, EventKind::Signal { .. } | EventKind::Broadcast { .. })
    })
}

impl<'a> Missed<'a> {
    fn of(bug: &'a Bug<'a>) -> Option<Self> {
        let trace = bug.trace;
        let events = || bug.events.iter().map(|id| trace.event(*id));
        let (wait, condition, limited) = events().find_map(|event| match event.kind {
            EventKind::Block { on: Awaited::Signal { condition } } => {
                Some((event, condition, None))
            }
            EventKind::WaitTimedOut { condition, began } => Some((event, condition, Some(began))),
            _ => None,
        })?;
        let signal = events().find(|event| {
            matches!(event.kind, EventKind::Signal { .. } | EventKind::Broadcast { .. })
        })?;
        let all = sections(trace);
        // The release right before it. Who waits without having the mutex has no section.
        let before = (wait.index as usize).checked_sub(1);
        let before = || trace.thread_of(wait.id).events.get(before?).copied();
        let began = limited.or_else(before)?;
        let waiting = *all.iter().find(|section| section.unlock == began)?;
        let waiting = given_back_inside(trace, &all, waiting).unwrap_or(waiting);
        Some(Self { bug, all, wait, is_timed: limited.is_some(), condition, waiting, signal })
    }

    fn trace(&self) -> &'a EventTrace {
        self.bug.trace
    }

    fn name(&self, object: ObjectId) -> String {
        lock_name(self.trace(), object)
    }

    /// What the function of some lines calls the mutex of the wait: a class may have it by another name than who made it.
    fn mutex_in(&self, lines: &Span) -> String {
        let region = passages(self.trace(), lines).into_iter().next();
        lock_word(self.trace(), self.waiting.object, lines, region)
    }

    /// What an event calls the condition variable that is waited for.
    fn condition_of(&self, event: &Event) -> String {
        event.name.as_deref().map_or_else(|| self.name(self.condition), str::to_owned)
    }

    fn guard(&self) -> Option<Guard> {
        Some(Guard { name: self.name(self.waiting.object), new: false })
    }

    /// Whoever goes on when its time is up fails along the recorded path in any order: what the repair is to keep from coming
    /// up is that the wait has no signal. So it is where others wait for something else, each of whom counts as what the run
    /// hangs by: a worker without work waits whatever the order, until the thread that the cause is about goes on.
    fn fails_unwoken(&self, edit: &mut Edit<'_>) {
        let (trace, condition) = (self.trace(), self.condition);
        let began = self.waiting.unlock;
        let own = FailureCondition::Unwoken { condition, began };
        if self.is_timed {
            return edit.fails_when(own);
        }
        let failure = trace.failure.as_ref();
        if failure.is_none_or(|failure| !matches!(failure.condition, FailureCondition::Any(_))) {
            return;
        }
        let others = trace.events.iter().filter(|event| {
            let on_it =
                |on: Awaited| matches!(on, Awaited::Signal { condition: c } if c == condition);
            event.id != self.wait.id && matches!(event.kind, EventKind::Block { on } if on_it(on))
        });
        let others = others.filter_map(|wait| {
            let began = (wait.index as usize).checked_sub(1)?;
            let began = *trace.thread_of(wait.id).events.get(began)?;
            begins_wait(trace, began).then_some(FailureCondition::Unwoken { condition, began })
        });
        edit.fails_when(FailureCondition::Any(others.chain([own]).collect()));
    }

    /// The cells that the waiting thread looked at in the section before it waited.
    fn tested(&self) -> BTreeSet<CellId> {
        let index = |id: EventId| self.trace().event(id).index as usize;
        let own = &self.trace().thread_of(self.wait.id).events;
        let inside = own.get(index(self.waiting.lock)..=index(self.waiting.unlock));
        let reads =
            inside.into_iter().flatten().flat_map(|id| self.trace().event(*id).kind.reads());
        reads.map(|part| part.cell).collect()
    }

    /// The acquisition of the mutex's section around an event; the event itself outside of one.
    fn section_of(&self, id: EventId) -> EventId {
        let around = self.all.around(self.trace(), id);
        let own = around.iter().find(|section| section.object == self.waiting.object);
        own.map_or(id, |section| section.lock)
    }

    /// Does the thread of an event hold the mutex of the wait there?
    fn is_guarded(&self, id: EventId) -> bool {
        let object = self.waiting.object;
        self.all.around(self.trace(), id).iter().any(|section| section.object == object)
    }

    /// Is the event in a section of another lock that its thread has left by the time of the signal? Who looks there has the
    /// wait's mutex around that lock, so that it cannot be taken inside.
    fn is_done_before_signal(&self, write: EventId) -> bool {
        let around = self.all.around(self.trace(), write);
        around.iter().any(|section| {
            self.trace().event(section.unlock).index < self.signal.index
                && section.object != self.waiting.object
        })
    }

    /// What the waiting thread tests is written, and signalled, under the mutex. Where it is written, and tested, under a
    /// lock of its own, to signal it under the mutex is enough: who has tested it waits by then.
    fn under_mutex(&self) -> Option<Candidate> {
        let trace = self.trace();
        let tested = self.tested();
        let writes = |id: &&EventId| {
            trace.event(**id).kind.writes().iter().any(|part| tested.contains(&part.cell))
        };
        let own = trace.thread_of(self.signal.id).events.iter();
        let mut before = own.take(self.signal.index as usize).rev();
        let write = *before.find(writes)?;
        if self.is_guarded(write) {
            return None;
        }
        let is_signalled = self.is_guarded(self.signal.id);
        let last = if is_signalled { write } else { self.signal.id };
        let alone = !is_signalled && self.is_done_before_signal(write);
        let first = if alone { self.signal.id } else { write };
        let lines = span(trace.event(first), trace.event(last))?;
        let mut edit = Edit::new(trace);
        let object = self.waiting.object;
        guard(&mut edit, object, &passages(trace, &lines));
        self.fails_unwoken(&mut edit);
        let edited = edit.finish()?;
        let name = quoted(&self.mutex_in(&lines));
        let step = super::atomicity::held(&name, &lines);
        let why = format!(
            "{} is tested under it before the wait at {}",
            quoted(trace.subject(trace.event(write)).unwrap_or("it")),
            Span::of(self.wait.site()).begin()
        );
        let rule = super::atomicity::alone(trace, &edited, &[object]);
        let repair = Repair {
            kind: Kind::CriticalSection,
            steps: vec![step, why],
            lock: self.guard(),
            variables: super::variables(self.bug),
            places: vec![lines],
            rule,
            checked: None,
        };
        Some(Candidate { repair, edited })
    }

    /// Every signal of this place wakes all.
    fn broadcast(&self) -> Option<Candidate> {
        let trace = self.trace();
        let mut edit = Edit::new(trace);
        let mut changed = false;
        for event in &trace.events {
            if let EventKind::Signal { condition } = event.kind
                && condition == self.condition
                && event.site() == self.signal.site()
            {
                edit.replace(event.id, EventKind::Broadcast { condition });
                changed = true;
            }
        }
        // On the recorded run, "no signal is left for the wait" may hold whatever the order, because
        // others need all of them; with broadcasts it is a matter of order.
        let began = self.waiting.unlock;
        edit.fails_when(FailureCondition::Unwoken { condition: self.condition, began });
        let edited = edit.finish().filter(|_| changed)?;
        let place = Span::of(self.signal.site());
        let step = format!(
            "in {}, broadcast {} rather than signal it ({})",
            place.function,
            quoted(&self.condition_of(self.signal)),
            place.begin()
        );
        let steps = [Some(step), again::needed_by_all(trace, self.condition)];
        let repair = Repair {
            kind: Kind::Broadcast,
            steps: steps.into_iter().flatten().collect(),
            lock: None,
            variables: vec![self.name(self.condition)],
            places: vec![place],
            rule: Rule::None,
            checked: None,
        };
        Some(Candidate { repair, edited })
    }

    /// The waiting thread asks first whether the signal came already: modelled by a flag that the
    /// other thread sets before it signals, and that was not set on this path.
    fn test_first(&self) -> Option<Candidate> {
        if self.is_tested() {
            return None;
        }
        let trace = self.trace();
        let mut with_flag = trace.clone();
        let cell = flag(&mut with_flag);
        let mut looks: Vec<(EventId, VarId)> = Vec::new();
        let waits = std::iter::once((self.wait, self.waiting.unlock)).chain(self.others_here());
        for (wait, began) in waits {
            looks.push((began, look(&mut with_flag, cell, wait, began)?));
        }
        let set = with_flag.exprs.constant(8, 1);
        let mut edit = Edit::new(&with_flag);
        for (began, var) in looks {
            edit.before(began, EventKind::Read { parts: vec![ReadPart { cell, var }] });
        }
        // What is not signalled under the mutex could come between the test and the wait.
        let unguarded = !self.is_guarded(self.signal.id);
        let signals = trace.events.iter().filter(|event| {
            event.thread != self.wait.thread
                && matches!(event.kind, EventKind::Signal { condition: c }
                    | EventKind::Broadcast { condition: c } if c == self.condition)
        });
        let signals: Vec<EventId> = signals.map(|event| event.id).collect();
        let bare = signals.iter().copied().filter(|id| !self.is_guarded(*id));
        let bare: Vec<(EventId, EventId)> = bare.map(|id| (id, id)).collect();
        guard(&mut edit, self.waiting.object, &bare);
        for &id in &signals {
            edit.before(id, EventKind::Write { parts: vec![WritePart { cell, value: set }] });
        }
        self.fails_unwoken(&mut edit);
        let edited = edit.finish()?;
        let here = Span::of(self.wait.site());
        let there = Span::of(self.signal.site());
        let what = match self.news().or_else(|| self.written()) {
            Some(name) => format!("whether {} says that it has happened", quoted(&name)),
            None => "whether it has happened".to_owned(),
        };
        let mut steps = vec![format!(
            "in {}, test under {} {what} before waiting for {} ({}), and wait in a loop{}",
            here.function,
            quoted(&self.mutex_in(&here)),
            quoted(&self.condition_of(self.wait)),
            here.begin(),
            if is_rust(&here.file) { ", or with `wait_while`" } else { "" },
        )];
        let mut places = vec![here];
        let mutex = quoted(&self.mutex_in(&there));
        if unguarded {
            steps.push(format!(
                "in {}, hold {mutex} while noting it and signalling ({})",
                there.function,
                there.begin()
            ));
            places.push(there);
        } else {
            steps.push(format!(
                "in {}, note under {mutex} that it has happened, before signalling ({})",
                there.function,
                there.begin()
            ));
        }
        let signals = trace.events.iter().filter(|event| {
            event.site() == self.signal.site()
                && matches!(event.kind, EventKind::Signal { .. } | EventKind::Broadcast { .. })
        });
        // That somebody has come to wait there says nothing where others did, or the thread itself did before.
        let rule = match self.is_only_wait() {
            true => Rule::After {
                first: vec![self.waiting.unlock],
                then: signals.map(|event| self.section_of(event.id)).collect(),
            },
            false => Rule::None,
        };
        let repair = Repair {
            kind: Kind::TestBeforeWait,
            steps,
            lock: self.guard(),
            variables: vec![self.name(self.condition)],
            places,
            rule,
            checked: None,
        };
        Some(Candidate { repair, edited })
    }

    /// Other threads that wait for the same at the same place, with the same mutex, when all are told at once: with the test
    /// in the code that they share, they make it as well. Given are the waits and their releases of the mutex.
    fn others_here(&self) -> Vec<(&'a Event, EventId)> {
        let (trace, condition) = (self.trace(), self.condition);
        if !matches!(self.signal.kind, EventKind::Broadcast { .. }) {
            return Vec::new();
        }
        let waits_here = |event: &&Event| {
            event.id != self.wait.id
                && event.kind == EventKind::Block { on: Awaited::Signal { condition } }
                && event.site() == self.wait.site()
        };
        let waits = trace.events.iter().filter(waits_here).filter_map(|wait| {
            let before = (wait.index as usize).checked_sub(1)?;
            let began = *trace.thread_of(wait.id).events.get(before)?;
            let section = self.all.iter().find(|section| section.unlock == began)?;
            (section.object == self.waiting.object).then_some((wait, began))
        });
        waits.collect()
    }

    /// Does the waiting thread look already at what the signalling one writes before it signals, both under the
    /// mutex?
    fn is_tested(&self) -> bool {
        let tested = self.tested();
        let trace = self.trace();
        let own = trace.thread_of(self.signal.id).events.iter().take(self.signal.index as usize);
        self.telling().is_some_and(|section| {
            let inside = own.skip(trace.event(section.lock).index as usize);
            let mut written = inside.flat_map(|id| trace.event(*id).kind.writes());
            written.any(|part| tested.contains(&part.cell))
        })
    }

    /// The section of the wait's mutex in which the thread signals, or the one behind which it does so in the same function.
    fn telling(&self) -> Option<Section> {
        let trace = self.trace();
        let is_own = |section: &Section| {
            let unlock = trace.event(section.unlock);
            section.object == self.waiting.object
                && unlock.thread == self.signal.thread
                && unlock.index < self.signal.index
        };
        let around = self.all.around(trace, self.signal.id).into_iter();
        let around = around.into_iter().find(|section| section.object == self.waiting.object);
        around.or_else(|| {
            let before = self.all.iter().filter(|section| is_own(section));
            let last = before.max_by_key(|section| trace.event(section.unlock).index)?;
            let unlock = trace.event(last.unlock);
            same_function(unlock.site(), self.signal.site()).then_some(*last)
        })
    }

    /// Does no other wait begin where the thread's does?
    fn is_only_wait(&self) -> bool {
        let trace = self.trace();
        let own = trace.event(self.waiting.unlock);
        let mut others = trace.events.iter().filter(|event| event.id != own.id);
        !others.any(|event| event.site() == own.site() && begins_wait(trace, event.id))
    }

    /// What the cause says that the signalling thread wrote before it signalled.
    fn written(&self) -> Option<String> {
        let trace = self.trace();
        let mut named = self.bug.events.iter().map(|id| trace.event(*id));
        let write = named.find(|event| {
            event.thread == self.signal.thread
                && event.index < self.signal.index
                && !event.kind.writes().is_empty()
        })?;
        trace.subject(write).map(str::to_owned)
    }

    /// What the signalling thread wrote last in the same section of the mutex before it signalled.
    fn news(&self) -> Option<String> {
        let trace = self.trace();
        let object = self.waiting.object;
        let around = self.all.around(trace, self.signal.id);
        let section = around.into_iter().find(|section| section.object == object)?;
        let index = |id: EventId| trace.event(id).index as usize;
        let own = trace.thread_of(self.signal.id).events.get(index(section.lock)..);
        let before = own?.iter().take_while(|id| index(**id) < self.signal.index as usize);
        let write = before.filter(|id| !trace.event(**id).kind.writes().is_empty()).last()?;
        trace.subject(trace.event(*write)).map(str::to_owned)
    }
}

/// The section of the program's own lock that ends inside of one of the library's: who waits on a
/// `condition_variable_any` gives its lock back under one that the condition variable has for itself.
pub(super) fn given_back_inside(
    trace: &EventTrace,
    all: &Sections,
    inner: Section,
) -> Option<Section> {
    let [first, last] = [inner.lock, inner.unlock].map(|id| trace.event(id));
    let innermost = first.stack.first()?;
    let own = all.iter().rev().copied().find(|section| {
        let [taken, given] = [section.lock, section.unlock].map(|id| trace.event(id));
        given.thread == first.thread
            && section.object != inner.object
            && taken.index < first.index
            && (first.index..last.index).contains(&given.index)
    });
    own.filter(|_| innermost.is_in_library())
}

/// Adds a cell that is 0 at first.
fn flag(trace: &mut EventTrace) -> CellId {
    let cell = CellId::from_index(trace.cells.len());
    let init = trace.exprs.constant(8, 0);
    let display = model::trace::ValueDisplay::Unsigned;
    trace.cells.push(Cell { id: cell, width: 8, init, name: "a new flag".to_owned(), display });
    cell
}

/// Adds a variable for the flag's value that is the flag's first one, which is 0, on the path that led to a wait.
fn look(trace: &mut EventTrace, flag: CellId, wait: &Event, began: EventId) -> Option<VarId> {
    let var = VarId::from_index(trace.variables.len());
    let init = trace.cells.get(flag.index())?.init;
    let origin = VariableOrigin::Read { event: began, part: 0 };
    trace.variables.push(Variable { id: var, width: 8, origin, recorded: Some(0) });
    let value = trace.exprs.var(var, 8);
    let expr = trace.exprs.eq(value, init);
    trace.conditions.push(PathCondition {
        id: ConditionId::from_index(trace.conditions.len()),
        thread: wait.thread,
        position: trace.events.get(began.index())?.index,
        expr,
        kind: PathConditionKind::Branch,
        site: wait.site().clone(),
        is_beside_wait: false,
    });
    Some(var)
}

#[cfg(test)]
mod tests;
