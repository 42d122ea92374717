//! Where each thread is cut.

use model::{EventId, EventKind, EventTrace, LockMode, ObjectId, Schedule, Thread};
use rustc_hash::{FxHashMap, FxHashSet};

/// Which events stay alone, and before which another step begins.
pub(super) struct Cuts {
    /// By event: it is a step of its own.
    alone: Vec<bool>,
    /// By event: a step begins with it.
    begins: Vec<bool>,
}

/// From one place to the next, as numbers of places.
type Way = (u32, u32);

impl Cuts {
    /// The cuts by the ways that threads go, and where a schedule switches from one thread to another.
    pub(super) fn of(trace: &EventTrace, rounds: u32, near: Option<&Schedule>) -> Self {
        let events = trace.events.len();
        let mut cuts = Self { alone: vec![false; events], begins: vec![false; events] };
        let named = named(trace);
        for event in &trace.events {
            let joins = event.kind.is_access()
                || matches!(
                    event.kind,
                    EventKind::Fence
                        | EventKind::Lock { .. }
                        | EventKind::Unlock { synthetic: false, .. }
                );
            cuts.alone[event.id.index()] = !joins || named.contains(&event.id);
        }
        for id in near.into_iter().flat_map(|schedule| interrupted(trace, schedule)) {
            cuts.begins[id.index()] = true;
        }
        let mut places = Places::default();
        for thread in &trace.threads {
            if rounds > 0 {
                for at in places.cuts(trace, thread, rounds) {
                    cuts.begins[at.index()] = true;
                }
            }
            cuts.open_sections(trace, thread);
        }
        cuts
    }

    /// Is the event a step of its own?
    pub(super) fn is_alone(&self, id: EventId) -> bool {
        self.alone.get(id.index()).copied().unwrap_or(true)
    }

    /// Does a step begin with the event?
    pub(super) fn begins(&self, id: EventId) -> bool {
        self.is_alone(id) || self.begins.get(id.index()).copied().unwrap_or(true)
    }

    /// A critical section is part of a step as a whole, or its lock and its unlock are steps of their own.
    fn open_sections(&mut self, trace: &EventTrace, thread: &Thread) {
        let (sections, unmatched) = sections(trace, thread);
        for id in unmatched {
            self.alone[id.index()] = true;
        }
        // One that is opened may be inside of another.
        loop {
            let mut before = vec![0u32];
            let mut count = 0;
            for &id in &thread.events {
                count += u32::from(self.begins(id));
                before.push(count);
            }
            let mut changed = false;
            for &(lock, unlock) in &sections {
                let (first, last) = (thread.events[lock], thread.events[unlock]);
                // A step may begin with the lock itself.
                let inside = before[unlock + 1] > before[lock + 1];
                let is_open = self.alone[first.index()] && self.alone[last.index()];
                if !is_open && (inside || self.alone[first.index()] || self.alone[last.index()]) {
                    (self.alone[first.index()], self.alone[last.index()]) = (true, true);
                    changed = true;
                }
            }
            if !changed {
                return;
            }
        }
    }
}

/// The events that threads go on with behind the switches of a schedule.
fn interrupted(trace: &EventTrace, schedule: &Schedule) -> Vec<EventId> {
    let thread = |id: &EventId| trace.events.get(id.index()).map(|event| event.thread);
    let mut last = FxHashMap::default();
    let mut found = Vec::new();
    for (at, id) in schedule.order.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|before| schedule.order.get(before));
        let Some(own) = thread(id) else { continue };
        if before.and_then(thread) != Some(own) {
            found.push(*id);
            // What comes before the switch may have to come behind it.
            found.extend(last.get(&own));
        }
        last.insert(own, *id);
    }
    found
}

/// The events that others, or the failure, speak of.
fn named(trace: &EventTrace) -> FxHashSet<EventId> {
    let mut named = FxHashSet::default();
    for event in &trace.events {
        if let EventKind::Wake { began, .. } | EventKind::WaitTimedOut { began, .. } = event.kind {
            named.insert(began);
        }
    }
    if let Some(failure) = &trace.failure {
        let mut condition = failure.condition.clone();
        named.extend(condition.events_mut().into_iter().map(|event| *event));
    }
    named
}

/// The critical sections of a thread, from which of its events to which, and the events of those that have
/// no beginning or no end.
fn sections(trace: &EventTrace, thread: &Thread) -> (Vec<(usize, usize)>, Vec<EventId>) {
    let mut open: Vec<(ObjectId, LockMode, usize)> = Vec::new();
    let (mut sections, mut unmatched) = (Vec::new(), Vec::new());
    for (index, &id) in thread.events.iter().enumerate() {
        match trace.event(id).kind {
            EventKind::Lock { object, mode } => open.push((object, mode, index)),
            EventKind::Unlock { object, mode, .. } => {
                match open.iter().rposition(|(of, how, _)| (*of, *how) == (object, mode)) {
                    Some(at) => sections.push((open.remove(at).2, index)),
                    None => unmatched.push(id),
                }
            }
            _ => {}
        }
    }
    unmatched.extend(open.into_iter().map(|(.., index)| thread.events[index]));
    (sections, unmatched)
}

/// Places of the source as numbers.
#[derive(Default)]
struct Places<'t> {
    numbers: FxHashMap<(&'t str, u32, u32, &'static str), u32>,
}

impl<'t> Places<'t> {
    fn number(&mut self, event: &'t model::Event) -> u32 {
        let site = event.site();
        let next = self.numbers.len() as u32;
        let place = (site.file.as_str(), site.line, site.column, event.kind.name());
        *self.numbers.entry(place).or_insert(next)
    }

    /// The events before which a thread is cut: for each way from one place to the next so many of the times
    /// that it is gone.
    fn cuts(&mut self, trace: &'t EventTrace, thread: &Thread, rounds: u32) -> Vec<EventId> {
        let mut times: FxHashMap<Way, Vec<usize>> = FxHashMap::default();
        let mut last = None;
        for (index, &id) in thread.events.iter().enumerate() {
            let place = self.number(trace.event(id));
            if let Some(last) = last.replace(place) {
                times.entry((last, place)).or_default().push(index);
            }
        }
        let mut cuts = Vec::new();
        for found in times.into_values() {
            let end = found.len() - 1;
            let of = |round: u32| match rounds {
                1 => end,
                _ => end * round as usize / (rounds as usize - 1),
            };
            for at in (0..rounds).map(|round| found[of(round)]) {
                cuts.push(thread.events[at]);
                // What is read last may be of what the same step wrote before, and for what the next one writes.
                let reads = |id: &EventId| matches!(trace.event(*id).kind, EventKind::Read { .. });
                cuts.extend(thread.events.get(at - 1).filter(|id| reads(id)));
            }
        }
        cuts
    }
}
