//! A trace as it would be with a repair: events added, moved, removed or of another kind.
//!
//! The edited trace is an ordinary event trace. Encoders, solver and evaluator take it as any
//! other, so nothing about a repair has to be believed that they do not check.

use model::verify::verify;
use model::{
    Event, EventId, EventKind, EventTrace, Failure, FailureCondition, FailureKind, Object,
    ObjectId, ObjectKind, Site, ThreadId, VarId, VariableOrigin,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// An event of an edited thread.
#[derive(Clone, Debug)]
enum Step {
    /// One of the recorded trace's.
    Kept(EventId),
    /// One that the repair adds, at this place in the source.
    Added { kind: EventKind, stack: Arc<[Site]>, name: Option<String> },
}

/// Changes to a trace that are being collected.
#[derive(Clone, Debug)]
pub(crate) struct Edit<'t> {
    pub(crate) trace: &'t EventTrace,
    threads: Vec<Vec<Step>>,
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
        let kept = |events: &Vec<EventId>| events.iter().map(|id| Step::Kept(*id)).collect();
        Self {
            trace,
            threads: trace.threads.iter().map(|thread| kept(&thread.events)).collect(),
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
        self.objects.push(Object { id, kind, name: name.to_owned() });
        id
    }

    /// Makes an object of synchronisation begin as another one of its kind.
    pub(crate) fn change(&mut self, object: ObjectId, kind: ObjectKind) {
        self.changed.insert(object, kind);
    }

    /// Adds an event right before a recorded one, at its place in the source.
    pub(crate) fn before(&mut self, id: EventId, kind: EventKind) {
        self.insert(id, kind, 0);
    }

    /// Adds an event right behind a recorded one.
    pub(crate) fn after(&mut self, id: EventId, kind: EventKind) {
        self.insert(id, kind, 1);
    }

    /// Adds an event at the end of what a thread's code did, at the place of its last event.
    pub(crate) fn at_end(&mut self, thread: ThreadId, kind: EventKind, name: Option<String>) {
        let Some(steps) = self.threads.get_mut(thread.index()) else { return };
        let ends = |step: &Step| match step {
            Step::Kept(id) => matches!(
                self.trace.event(*id).kind,
                EventKind::Exit | EventKind::Failure | EventKind::Unlock { synthetic: true, .. }
            ),
            Step::Added { .. } => false,
        };
        let at = steps.iter().rposition(|step| !ends(step)).map_or(0, |last| last + 1);
        let stack = steps.get(at.saturating_sub(1)).map(|step| match step {
            Step::Kept(id) => Arc::clone(&self.trace.event(*id).stack),
            Step::Added { stack, .. } => Arc::clone(stack),
        });
        if let Some(stack) = stack {
            steps.insert(at, Step::Added { kind, stack, name });
        }
    }

    fn insert(&mut self, id: EventId, kind: EventKind, offset: usize) {
        let event = self.trace.event(id);
        let name = kind.object().and_then(|object| self.name(object));
        let added = Step::Added { kind, stack: Arc::clone(&event.stack), name };
        if let Some((thread, at)) = self.find(id) {
            self.threads[thread].insert(at + offset, added);
        }
    }

    fn name(&self, object: ObjectId) -> Option<String> {
        let all = self.trace.objects.iter().chain(&self.objects);
        all.filter(|other| other.id == object).map(|object| object.name.clone()).next()
    }

    /// Moves an event before another one of its thread.
    pub(crate) fn move_before(&mut self, id: EventId, target: EventId) {
        self.move_to(id, target, 0);
    }

    /// Moves an event behind another one of its thread.
    pub(crate) fn move_after(&mut self, id: EventId, target: EventId) {
        self.move_to(id, target, 1);
    }

    fn move_to(&mut self, id: EventId, target: EventId, offset: usize) {
        let same = self.trace.event(id).thread == self.trace.event(target).thread;
        if id == target || !same {
            return;
        }
        let Some((thread, at)) = self.find(id) else { return };
        let step = self.threads[thread].remove(at);
        match self.find(target) {
            Some((_, at)) => self.threads[thread].insert(at + offset, step),
            None => self.threads[thread].insert(at, step),
        }
    }

    /// Takes an event out.
    pub(crate) fn remove(&mut self, id: EventId) {
        if let Some((thread, at)) = self.find(id) {
            self.threads[thread].remove(at);
        }
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

    fn find(&self, id: EventId) -> Option<(usize, usize)> {
        let thread = self.trace.event(id).thread.index();
        let steps = self.threads.get(thread)?;
        let at = steps.iter().position(|step| matches!(step, Step::Kept(other) if *other == id))?;
        Some((thread, at))
    }

    /// The edited trace; `None` when it makes no sense: when something refers to an event that was
    /// taken out, or the verifier refuses it.
    pub(crate) fn finish(self) -> Option<Edited> {
        let mut places = vec![None; self.trace.events.len()];
        let mut origin = Vec::new();
        for step in self.threads.iter().flatten() {
            if let Step::Kept(id) = step {
                places[id.index()] = Some(EventId::from_index(origin.len()));
            }
            origin.push(match step {
                Step::Kept(id) => Some(*id),
                Step::Added { .. } => None,
            });
        }
        let place = |id: EventId| places.get(id.index()).copied().flatten();
        let mut trace = self.trace.clone();
        trace.intervals.clear();
        trace.objects.extend(self.objects.iter().cloned());
        for object in &mut trace.objects {
            object.kind = self.changed.get(&object.id).copied().unwrap_or(object.kind);
        }
        trace.events.clear();
        for (thread, steps) in self.threads.iter().enumerate() {
            let mut own = Vec::with_capacity(steps.len());
            for (index, step) in steps.iter().enumerate() {
                let id = EventId::from_index(trace.events.len());
                own.push(id);
                let index = u32::try_from(index).ok()?;
                trace.events.push(self.event(
                    step,
                    (id, ThreadId::from_index(thread), index),
                    &place,
                )?);
            }
            trace.threads[thread].events = own;
        }
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
        for condition in &mut trace.conditions {
            let before = &self.trace.threads[condition.thread.index()].events;
            let before = before.iter().take(condition.position as usize);
            let last = before.filter_map(|id| place(*id)).max();
            condition.position = last.map_or(0, |last| trace.events[last.index()].index + 1);
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

    fn event(
        &self,
        step: &Step,
        (id, thread, index): (EventId, ThreadId, u32),
        place: &impl Fn(EventId) -> Option<EventId>,
    ) -> Option<Event> {
        let (mut kind, stack, name, words, pieces) = match step {
            Step::Added { kind, stack, name } => {
                let name = name.as_deref().map(Arc::from);
                (kind.clone(), Arc::clone(stack), name, Arc::default(), Arc::default())
            }
            Step::Kept(old) => {
                let event = self.trace.event(*old);
                let kind = self.kinds.get(old).unwrap_or(&event.kind).clone();
                let (words, pieces) = (Arc::clone(&event.words), Arc::clone(&event.pieces));
                (kind, Arc::clone(&event.stack), event.name.clone(), words, pieces)
            }
        };
        if let EventKind::Wake { began, .. } | EventKind::WaitTimedOut { began, .. } = &mut kind {
            *began = place(*began)?;
        }
        Some(Event { id, thread, index, kind, stack, name, words, pieces })
    }
}
