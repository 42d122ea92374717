//! A trace as it would be with a repair: events added, moved, removed or of another kind.
//!
//! The edited trace is an ordinary event trace. Encoders, solver and evaluator take it as any
//! other, so nothing about a repair has to be believed that they do not check.

mod steps;

use model::verify::verify;
use model::{
    Event, EventId, EventKind, EventTrace, Failure, FailureCondition, FailureKind, Object,
    ObjectId, ObjectKind, ThreadId, VarId, VariableOrigin,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use steps::{Step, Steps};

/// Changes to a trace that are being collected.
#[derive(Clone, Debug)]
pub(crate) struct Edit<'t> {
    pub(crate) trace: &'t EventTrace,
    steps: Steps,
    kinds: BTreeMap<EventId, EventKind>,
    objects: Vec<Object>,
    changed: BTreeMap<ObjectId, ObjectKind>,
    condition: Option<FailureCondition>,
    /// For a trace without a failure: the event that becomes one.
    failure: Option<EventId>,
}

/// A trace with a repair.
#[derive(Clone, Debug)]
pub(crate) struct Edited {
    /// The trace; it has passed the verifier.
    pub(crate) trace: EventTrace,
    /// By event of the edited trace, the recorded one; `None` for added events.
    pub(crate) origin: Vec<Option<EventId>>,
}

impl<'t> Edit<'t> {
    pub(crate) fn new(trace: &'t EventTrace) -> Self {
        Self {
            trace,
            steps: Steps::of(trace),
            kinds: BTreeMap::new(),
            objects: Vec::new(),
            changed: BTreeMap::new(),
            condition: None,
            failure: None,
        }
    }

    /// A new object of synchronisation.
    pub(crate) fn object(&mut self, kind: ObjectKind, name: &str) -> ObjectId {
        let id = ObjectId::from_index(self.trace.objects.len() + self.objects.len());
        self.objects.push(Object { id, kind, name: name.to_owned(), addresses: None });
        id
    }

    /// Makes an object of synchronisation begin as another one of its kind.
    pub(crate) fn change(&mut self, object: ObjectId, kind: ObjectKind) {
        self.changed.insert(object, kind);
    }

    /// Adds an event right before a recorded one, at its place in the source.
    pub(crate) fn before(&mut self, id: EventId, kind: EventKind) {
        self.insert(id, kind, false);
    }

    /// Adds an event right behind a recorded one.
    pub(crate) fn after(&mut self, id: EventId, kind: EventKind) {
        self.insert(id, kind, true);
    }

    /// Adds an event at the end of what a thread's code did, at the place of its last event.
    pub(crate) fn at_end(&mut self, thread: ThreadId, kind: EventKind, name: Option<String>) {
        let trace = self.trace;
        let ends = |step: &Step| match step {
            Step::Kept(id) => matches!(
                trace.event(*id).kind,
                EventKind::Exit | EventKind::Failure | EventKind::Unlock { synthetic: true, .. }
            ),
            Step::Added { .. } => false,
        };
        self.steps.add_behind_last_other(thread, ends, |like| {
            let stack = match like {
                Step::Kept(id) => trace.event(*id).stack.clone(),
                Step::Added { stack, .. } => stack.clone(),
            };
            Step::Added { kind, stack, name }
        });
    }

    fn insert(&mut self, id: EventId, kind: EventKind, behind: bool) {
        let event = self.trace.event(id);
        let name = kind.object().and_then(|object| self.name(object));
        let added = Step::Added { kind, stack: event.stack.clone(), name };
        self.steps.add(id, added, behind);
    }

    fn name(&self, object: ObjectId) -> Option<String> {
        let all = self.trace.objects.iter().chain(&self.objects);
        all.filter(|other| other.id == object).map(|object| object.name.clone()).next()
    }

    /// Moves an event before another one of its thread.
    pub(crate) fn move_before(&mut self, id: EventId, target: EventId) {
        self.move_to(id, target, false);
    }

    /// Moves an event behind another one of its thread.
    pub(crate) fn move_after(&mut self, id: EventId, target: EventId) {
        self.move_to(id, target, true);
    }

    fn move_to(&mut self, id: EventId, target: EventId, behind: bool) {
        let same = self.trace.event(id).thread == self.trace.event(target).thread;
        if id != target && same {
            self.steps.move_to(id, target, behind);
        }
    }

    /// Takes an event out.
    pub(crate) fn remove(&mut self, id: EventId) {
        self.steps.remove(id);
    }

    /// Says anew what has to hold for the run to fail, in the recorded trace's events.
    pub(crate) fn fails_when(&mut self, condition: FailureCondition) {
        self.condition = Some(condition);
    }

    /// Lets a run that passes count as failing when this holds; the event, its thread's last, becomes the
    /// failure.
    pub(crate) fn fails_at(&mut self, event: EventId, condition: FailureCondition) {
        self.replace(event, EventKind::Failure);
        self.failure = Some(event);
        self.fails_when(condition);
    }

    /// Makes an event one of another kind.
    pub(crate) fn replace(&mut self, id: EventId, kind: EventKind) {
        self.kinds.insert(id, kind);
    }

    /// The edited trace; `None` when it makes no sense: when something refers to an event that was
    /// taken out, or the verifier refuses it.
    pub(crate) fn finish(self) -> Option<Edited> {
        let mut places = vec![None; self.trace.events.len()];
        let mut origin = Vec::new();
        let threads = || self.trace.threads.iter().map(|thread| self.steps.of_thread(thread.id));
        for step in threads().flatten() {
            if let Step::Kept(id) = &step {
                places[id.index()] = Some(EventId::from_index(origin.len()));
            }
            origin.push(match step {
                Step::Kept(id) => Some(id),
                Step::Added { .. } => None,
            });
        }
        let place = |id: EventId| places.get(id.index()).copied().flatten();
        let mut trace = self.trace.clone();
        // What is known of the recorded run alone says nothing of what the threads do now.
        trace.intervals.clear();
        trace.lifetimes.clear();
        trace.objects.extend(self.objects.iter().cloned());
        for object in &mut trace.objects {
            object.kind = self.changed.get(&object.id).copied().unwrap_or(object.kind);
        }
        trace.events.clear();
        for (thread, steps) in threads().enumerate() {
            let mut own = Vec::new();
            for (index, step) in steps.enumerate() {
                let id = EventId::from_index(trace.events.len());
                own.push(id);
                let index = u32::try_from(index).ok()?;
                trace.events.push(self.event(
                    &step,
                    (id, ThreadId::from_index(thread), index),
                    &place,
                )?);
            }
            trace.threads[thread].events = own;
        }
        trace.given = self.given(&trace, &origin);
        trace.given.extend(self.freed_twice(&place));
        // A read that was added names its variables itself.
        let mut added: BTreeMap<VarId, EventId> = BTreeMap::new();
        for (event, origin) in trace.events.iter().zip(&origin) {
            if origin.is_none() {
                added.extend(event.kind.reads().iter().map(|part| (part.var, event.id)));
            }
        }
        for variable in &mut trace.variables {
            if let VariableOrigin::Read { event, .. } = &mut variable.origin {
                *event = added.get(&variable.id).copied().or_else(|| place(*event))?;
            }
        }
        // By thread, how many of its events there are once the recorded ones up to each have happened.
        let done: Vec<Vec<u32>> = self
            .trace
            .threads
            .iter()
            .map(|thread| {
                let mut most = 0;
                let counts = thread.events.iter().map(|id| {
                    let index = place(*id).map_or(0, |id| trace.events[id.index()].index + 1);
                    most = most.max(index);
                    most
                });
                std::iter::once(0).chain(counts.collect::<Vec<u32>>()).collect()
            })
            .collect();
        for condition in &mut trace.conditions {
            let done = done.get(condition.thread.index())?;
            condition.position = *done.get(condition.position as usize).or(done.last())?;
        }
        if let (None, Some(event), Some(condition)) =
            (&trace.failure, self.failure, self.condition.clone())
        {
            let message = String::new();
            trace.failure = Some(Failure { kind: FailureKind::User, event, condition, message });
        }
        if let Some(failure) = &mut trace.failure {
            failure.event = place(failure.event)?;
            if let Some(condition) = &self.condition {
                failure.condition = condition.clone();
            }
            for event in failure.condition.events_mut() {
                *event = place(*event)?;
            }
        }
        match verify(&trace) {
            Ok(()) => Some(Edited { trace, origin }),
            Err(violations) => {
                tracing::debug!(?violations, "a repair makes no valid trace");
                None
            }
        }
    }

    /// The orders that every schedule has, of what a thread does now: whatever it did up to an event comes before whatever
    /// another one does from an event on. That a write to a variable that had ended comes before the failure is none: with a
    /// repair it may come behind it, and to what lies there by then.
    fn given(&self, edited: &EventTrace, origin: &[Option<EventId>]) -> Vec<(EventId, EventId)> {
        let index = |id: &EventId| {
            let recorded = origin.get(id.index()).copied().flatten()?;
            Some(self.trace.event(recorded).index)
        };
        let own = |id: EventId| edited.threads[self.trace.event(id).thread.index()].events.iter();
        let too_late = |&(last, first): &(EventId, EventId)| {
            self.trace.failure.as_ref().is_some_and(|failure| {
                let mut condition = failure.condition.clone();
                failure.event == first && condition.events_mut().into_iter().any(|id| *id == last)
            })
        };
        let given = self.trace.given.iter().filter(|order| !too_late(order));
        let both = given.filter_map(|&(last, first)| {
            let [end, begin] = [last, first].map(|id| self.trace.event(id).index);
            let last = own(last).rfind(|id| index(id).is_some_and(|index| index <= end));
            let first = own(first).find(|id| index(id).is_none_or(|index| index >= begin));
            last.copied().zip(first.copied())
        });
        both.collect()
    }

    /// The frees of an object that was freed twice: the one that fails is the second, or another thread would have failed there.
    fn freed_twice(&self, place: &impl Fn(EventId) -> Option<EventId>) -> Vec<(EventId, EventId)> {
        let is_free = |id: EventId| matches!(self.trace.event(id).kind, EventKind::Free { .. });
        let frees = self.trace.lifetimes.iter().filter(|&&(a, b)| is_free(a) && is_free(b));
        frees.filter_map(|&(first, second)| place(first).zip(place(second))).collect()
    }

    fn event(
        &self,
        step: &Step,
        (id, thread, index): (EventId, ThreadId, u32),
        place: &impl Fn(EventId) -> Option<EventId>,
    ) -> Option<Event> {
        let mut event = match step {
            Step::Added { kind, stack, name } => Event {
                id,
                thread,
                index,
                kind: kind.clone(),
                stack: stack.clone(),
                continued: Event::ALL_CONTINUED,
                name: name.as_deref().map(Arc::from),
                words: Arc::default(),
                pieces: Arc::default(),
                drains: false,
            },
            Step::Kept(old) => {
                let event = self.trace.event(*old);
                let kind = self.kinds.get(old).unwrap_or(&event.kind).clone();
                Event { id, thread, index, kind, ..event.clone() }
            }
        };
        if let EventKind::Wake { began, .. } | EventKind::WaitTimedOut { began, .. } =
            &mut event.kind
        {
            *began = place(*began)?;
        }
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use encoders::dsl::parse;

    /// What the beginning of a run has comes before all that a repair adds.
    #[test]
    fn orders_are_those_of_what_threads_do_now() {
        let text = "
            a: [held] lock m
            a: [first] W x 1
            a: [back] unlock m
            b: [begin] W y 1
            b: [next] W y 2
        ";
        let mut parsed = parse(text).expect("the text is a trace");
        let [held, first, begin, next] =
            ["held", "first", "begin", "next"].map(|label| parsed.event(label));
        parsed.trace.given.push((held, begin));
        // Of the recorded run alone.
        parsed.trace.lifetimes.push((first, next));
        let mut edit = Edit::new(&parsed.trace);
        let new = edit.object(ObjectKind::Lock, "new");
        let mode = model::LockMode::Exclusive;
        edit.before(first, EventKind::Lock { object: new, mode });
        let unlock = EventKind::Unlock { object: new, mode, synthetic: false };
        edit.after(parsed.event("back"), unlock);
        edit.move_before(next, begin);
        let edited = edit.finish().expect("the edit makes sense");
        let image = |id: EventId| {
            let at = edited.origin.iter().position(|origin| *origin == Some(id));
            EventId::from_index(at.expect("it stays"))
        };
        assert_eq!(edited.trace.given, [(image(held), image(next))]);
        assert!(edited.trace.lifetimes.is_empty());
    }
}
