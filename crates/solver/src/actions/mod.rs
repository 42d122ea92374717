//! What events wait for, and what they do with locks, semaphores, barriers and waits, as words that are looked at and
//! changed.
//!
//! For making schedules from their beginning: an event may happen when its action is possible in the words as
//! they are.

mod sections;

use model::{EventId, EventKind, EventTrace, LockMode, ObjectKind, VarId, VariableOrigin};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;

/// A lock's word while somebody holds it alone; below it, how many share it.
const ALONE: u64 = 1 << 32;
/// In the word of a wait: a broadcast came since it began.
const BROADCAST: u64 = 1 << 63;
/// The same: one signal that came since it began and that no other wait took. Below it stands the condition.
const SIGNAL: u64 = 1 << 33;

/// What an event does with an object.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Action {
    Nothing,
    Acquire {
        word: usize,
        shared: bool,
    },
    Release {
        word: usize,
        shared: bool,
    },
    /// A lock is found held; by a writer, where it was to be shared.
    FindHeld {
        word: usize,
        shared: bool,
    },
    /// A unit of a semaphore is taken.
    Take {
        word: usize,
    },
    /// A semaphore is found without units.
    FindNone {
        word: usize,
    },
    Post {
        word: usize,
    },
    /// A thread arrives at a barrier of so many. Its own word says how many arrivals end its round.
    Arrive {
        word: usize,
        own: usize,
        count: u64,
    },
    /// A barrier is left.
    Leave {
        word: usize,
        own: usize,
    },
    Wake {
        word: usize,
    },
    /// A signal, or a broadcast to `all`; `condition` is what stands in the words of waits for it.
    Notify {
        condition: u64,
        all: bool,
    },
}

impl Action {
    /// May it happen as the words are?
    pub(crate) fn is_possible(self, words: &[u64]) -> bool {
        match self {
            Self::Acquire { word, shared: true } => words[word] < ALONE,
            Self::Acquire { word, shared: false } => words[word] == 0,
            Self::FindHeld { word, shared: true } => words[word] >= ALONE,
            Self::FindHeld { word, shared: false } | Self::Take { word } => words[word] > 0,
            Self::FindNone { word } => words[word] == 0,
            Self::Leave { word, own } => words[word] >= words[own],
            Self::Wake { word } => words[word] >= SIGNAL,
            Self::Nothing
            | Self::Release { .. }
            | Self::Post { .. }
            | Self::Arrive { .. }
            | Self::Notify { .. } => true,
        }
    }

    /// Has it happen. `before` is told which words change, with what they held.
    pub(crate) fn perform(
        self,
        words: &mut [u64],
        waits: &Range<usize>,
        mut before: impl FnMut(usize, u64),
    ) {
        let (word, held) = match self {
            Self::Acquire { word, shared } => (word, words[word] + if shared { 1 } else { ALONE }),
            Self::Release { word, shared } => {
                (word, words[word].saturating_sub(if shared { 1 } else { ALONE }))
            }
            Self::Take { word } => (word, words[word] - 1),
            Self::Post { word } => (word, words[word] + 1),
            Self::Arrive { word, own, count } => {
                before(own, words[own]);
                words[own] = (words[word] / count + 1) * count;
                (word, words[word] + 1)
            }
            Self::Wake { word } => {
                take_signal(words, word, waits, &mut before);
                (word, 0)
            }
            Self::Notify { condition, all } => {
                // More signals than threads could take are as good as that many.
                let most = waits.len() as u64;
                for word in waits.clone() {
                    let held = words[word];
                    if held % SIGNAL != condition || held & BROADCAST != 0 {
                        continue;
                    }
                    let after = match all {
                        true => held | BROADCAST,
                        false if held / SIGNAL < most => held + SIGNAL,
                        false => continue,
                    };
                    before(word, held);
                    words[word] = after;
                }
                return;
            }
            Self::Nothing | Self::FindHeld { .. } | Self::FindNone { .. } | Self::Leave { .. } => {
                return;
            }
        };
        before(word, words[word]);
        words[word] = held;
    }
}

/// A wait ends by the first signal that came since it began and that is left: later ones could have ended whatever other
/// wait it could. Those that lose it are the waits with as many left, or more, since the signals that came behind the
/// beginning of a wait are among those of the waits that began before.
fn take_signal(
    words: &mut [u64],
    word: usize,
    waits: &Range<usize>,
    before: &mut impl FnMut(usize, u64),
) {
    let held = words[word];
    if held & BROADCAST != 0 {
        return;
    }
    for other in waits.clone().filter(|&other| other != word) {
        let theirs = words[other];
        let is_alike = theirs % SIGNAL == held % SIGNAL && theirs & BROADCAST == 0;
        if is_alike && theirs / SIGNAL >= held / SIGNAL && theirs >= SIGNAL {
            before(other, theirs);
            words[other] = theirs - SIGNAL;
        }
    }
}

/// Which word is what.
pub(crate) struct Actions {
    /// Of objects, the first.
    first: usize,
    /// The words of waits, one for each thread; none where nobody waits.
    pub(crate) waits: Range<usize>,
    /// The wake-up of the wait that a release begins.
    wakes: FxHashMap<EventId, EventId>,
    /// Objects whose being taken somebody found.
    found: FxHashSet<u32>,
    /// The words of arrivals, one for each thread; none where there is no barrier.
    arrivals: Range<usize>,
}

impl Actions {
    /// The objects of a trace, whose words begin with this one and end with [`end`](Self::end).
    pub(crate) fn new(trace: &EventTrace, first: usize) -> Self {
        let mut actions = Self {
            first,
            waits: 0..0,
            wakes: FxHashMap::default(),
            found: FxHashSet::default(),
            arrivals: 0..0,
        };
        for event in &trace.events {
            match event.kind {
                EventKind::Wake { began, .. } => {
                    actions.wakes.insert(began, event.id);
                }
                EventKind::TryLockFailed { object, .. }
                | EventKind::SemaphoreWaitFailed { object } => {
                    actions.found.insert(object.0);
                }
                _ => {}
            }
        }
        let end = first + trace.objects.len();
        let threads = if actions.wakes.is_empty() { 0 } else { trace.threads.len() };
        actions.waits = end..end + threads;
        let is_barrier = |kind| matches!(kind, ObjectKind::Barrier { .. });
        let barriers = trace.objects.iter().any(|object| is_barrier(object.kind));
        let threads = if barriers { trace.threads.len() } else { 0 };
        actions.arrivals = actions.waits.end..actions.waits.end + threads;
        actions
    }

    /// Behind the last word.
    pub(crate) fn end(&self) -> usize {
        self.arrivals.end
    }

    /// Sets the words to what they hold before the first event.
    pub(crate) fn begin(&self, trace: &EventTrace, words: &mut [u64]) {
        for object in &trace.objects {
            if let ObjectKind::Semaphore { initial } = object.kind {
                words[self.first + object.id.index()] = u64::from(initial);
            }
        }
    }

    /// What an event does.
    pub(crate) fn action(&self, trace: &EventTrace, id: EventId) -> Action {
        let event = trace.event(id);
        let Some(object) = event.kind.object() else { return Action::Nothing };
        let word = self.first + object.index();
        let own = self.arrivals.start + event.thread.index();
        let is_shared = |mode: LockMode| mode == LockMode::Shared;
        match event.kind {
            EventKind::Lock { mode, .. } => Action::Acquire { word, shared: is_shared(mode) },
            EventKind::Unlock { mode, .. } => Action::Release { word, shared: is_shared(mode) },
            EventKind::TryLockFailed { mode, .. } => {
                Action::FindHeld { word, shared: is_shared(mode) }
            }
            EventKind::SemaphoreWait { .. } => Action::Take { word },
            EventKind::SemaphoreWaitFailed { .. } => Action::FindNone { word },
            EventKind::SemaphorePost { .. } => Action::Post { word },
            EventKind::BarrierArrive { object } => {
                let count = match trace.objects[object.index()].kind {
                    ObjectKind::Barrier { count } => u64::from(count.max(1)),
                    _ => 1,
                };
                Action::Arrive { word, own, count }
            }
            EventKind::BarrierLeave { .. } => Action::Leave { word, own },
            EventKind::Wake { .. } => {
                Action::Wake { word: self.waits.start + event.thread.index() }
            }
            EventKind::Signal { condition } | EventKind::Broadcast { condition } => {
                let all = matches!(event.kind, EventKind::Broadcast { .. });
                Action::Notify { condition: u64::from(condition.0) + 1, all }
            }
            _ => Action::Nothing,
        }
    }

    /// The wait that a release begins: its word, and what stands there then.
    pub(crate) fn begins(&self, trace: &EventTrace, id: EventId) -> Option<(usize, u64)> {
        let wake = trace.event(*self.wakes.get(&id)?);
        let EventKind::Wake { condition, .. } = wake.kind else { return None };
        Some((self.waits.start + wake.thread.index(), u64::from(condition.0) + 1))
    }

    /// May it matter to others whether an event's action has happened already?
    pub(crate) fn matters(&self, trace: &EventTrace, id: EventId, action: Action) -> bool {
        match (action, trace.event(id).kind.object()) {
            (Action::Acquire { .. } | Action::Take { .. } | Action::Notify { .. }, _) => true,
            // It takes a signal that may have been another wait's.
            (Action::Wake { .. }, _) => true,
            // It decides the round.
            (Action::Arrive { .. }, _) => true,
            (Action::Release { .. } | Action::Post { .. }, Some(object)) => {
                self.found.contains(&object.0)
            }
            _ => false,
        }
    }
}

/// By event, the other threads that have to be so far before it, as how many of their events: orders that hold in every
/// schedule that is wanted. No thread stands there twice.
pub(crate) type Needs = FxHashMap<EventId, Vec<(u32, u32)>>;

/// What events need by such orders, pairs of events, and by the critical sections that these keep apart
/// ([`sections::keep_apart`]).
pub(crate) fn needs(trace: &EventTrace, certain: &[(u32, u32)]) -> Needs {
    let mut all = Needs::default();
    for &(before, after) in certain {
        let event = |id: u32| trace.events.get(id as usize);
        let (Some(before), Some(after)) = (event(before), event(after)) else { continue };
        if before.thread == after.thread {
            continue;
        }
        add(&mut all, after.id, (before.thread.0, before.index + 1));
    }
    sections::keep_apart(trace, &mut all);
    all
}

/// Adds that a thread has to be so far; false where that is known.
fn add(all: &mut Needs, event: EventId, (other, count): (u32, u32)) -> bool {
    let needs = all.entry(event).or_default();
    match needs.iter_mut().find(|(thread, _)| *thread == other) {
        Some((_, most)) if *most >= count => return false,
        Some((_, most)) => *most = count,
        None => needs.push((other, count)),
    }
    true
}

/// The event that reads the variable.
pub(crate) fn reader(trace: &EventTrace, var: VarId) -> Option<EventId> {
    match trace.variables.get(var.index())?.origin {
        VariableOrigin::Read { event, .. } => Some(event),
        VariableOrigin::Init(_) | VariableOrigin::Input => None,
    }
}
