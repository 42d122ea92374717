//! Condition variables that are initialised when threads wait for them already, as where a constructor starts
//! a thread and initialises the members behind it. Such a wait is lost: no later signal finds it.
//!
//! A condition variable of which that may have happened is a variable that counts its initialisations: each
//! writes the next number, and a wait that did not end reads it. Others are no events. The survey notes both;
//! behind it is decided which conditions count: those that another thread may have initialised behind the
//! beginning of a wait, as far as the clock tells. What the hang follows from is said in [`crate::hang`].
//!
//! Known are the calls that initialise: `pthread_cond_init`, `cnd_init`, and libstdc++'s constructor. A
//! condition that is overwritten by `PTHREAD_COND_INITIALIZER`, or by a constructor that is inlined (libc++'s),
//! is not seen.

use crate::access::{Grain, Place};
use crate::engine::Engine;
use crate::memory::MemoryByte;
use crate::sizes::CONDITION_SIZE;
use crate::thread::{ExternalCall, PendingSync};
use crate::value::Value;
use model::names::INITIALISATION;
use std::collections::BTreeMap;
use trace_format::layout::SyncOp;

/// Internal addresses of the variables.
const CONDITIONS: u64 = 0xe100_0000_0000_0000;
/// Whoever initialises more of them is not looked at.
const MOST: usize = 1 << 16;

/// What is known of one condition variable.
#[derive(Clone, Debug, Default)]
struct Condition {
    /// Its place among them, in the order in which they were met.
    number: u64,
    /// Who initialised it, and by when that was done.
    made: Vec<(usize, u64)>,
    /// Who waits for it without end, and since when at the earliest.
    waits: Vec<(usize, u64)>,
}

impl Condition {
    fn is_made_late(&self) -> bool {
        self.waits
            .iter()
            .any(|&(waits, since)| self.made.iter().any(|&(t, by)| t != waits && since < by))
    }
}

/// See the module. By internal address.
#[derive(Clone, Default)]
pub(crate) struct Initialisations {
    conditions: BTreeMap<u64, Condition>,
    count: usize,
    /// By number, what those that count are called, as soon as that is known.
    told: BTreeMap<u64, Option<String>>,
}

/// An event of a condition variable that counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Touch {
    /// Internal.
    pub condition: u64,
    pub thread: usize,
    /// The event, as an index in the thread.
    pub event: u32,
    /// Of an initialisation, by when it was done; of a wait, since when it may last.
    pub time: u64,
}

impl Initialisations {
    fn met(&mut self, condition: u64) -> &mut Condition {
        let number = self.conditions.len() as u64;
        self.conditions
            .entry(condition)
            .or_insert_with(|| Condition { number, ..Condition::default() })
    }

    /// Decides which conditions count.
    pub fn decide(&mut self) {
        if self.count <= MOST {
            let late = self.conditions.values().filter(|condition| condition.is_made_late());
            self.told = late.map(|condition| (condition.number, None)).collect();
        }
    }

    /// The variable of a condition that is met again.
    fn variable(&self, condition: u64) -> Option<u64> {
        Some(CONDITIONS + self.conditions.get(&condition)?.number)
    }

    /// Does the variable count? Then the first one to know what the condition is called says so.
    fn tell(&mut self, variable: u64, name: impl FnOnce() -> Option<String>) -> bool {
        let told = variable.checked_sub(CONDITIONS).and_then(|number| self.told.get_mut(&number));
        let Some(known) = told else { return false };
        if known.is_none() {
            *known = name();
        }
        true
    }

    /// What the variable is called, by an internal address in it.
    pub fn name(&self, internal: u64) -> Option<String> {
        let name = self.told.get(&internal.checked_sub(CONDITIONS)?)?.as_deref();
        Some(format!("{INITIALISATION}{}", name.unwrap_or("a condition variable")))
    }
}

impl Engine<'_> {
    /// A semaphore or barrier is initialised: where one was at the address before, it is another one from here on. Which of the two
    /// other threads mean is only known where all of them have come to their end and were joined.
    pub(crate) fn begin_object(&mut self, t: usize, address: u64, class: u8) {
        let mine = &self.threads[t].clock;
        let is_over = |other: usize| {
            let thread = &self.threads[other];
            other == t
                || !thread.started
                || self.has_ended(other) && mine.get(other) == thread.clock.get(other)
        };
        if (0..self.threads.len()).all(is_over) {
            let internal = self.resolve(t, address).unwrap_or(address);
            self.sync_objects.remove(&(internal, class));
        }
    }

    /// A call of uninstrumented code has returned: it may have initialised a condition variable.
    pub fn note_initialisation(&mut self, t: usize, call: &ExternalCall<'_>) {
        let initialises =
            matches!(call.name, "pthread_cond_init" | "cnd_init" | "_ZNSt18condition_variableC1Ev");
        if !initialises || !self.hung() {
            return;
        }
        let address = call.arguments.first().and_then(Value::scalar);
        let address = address.and_then(|scalar| self.in_recording(scalar));
        let Some(condition) = address.and_then(|address| self.resolve(t, address)) else { return };
        let by = self.happened(t).latest;
        if !self.symbolic() {
            let known = &mut self.learned.initialisations;
            known.count += 1;
            if known.count > MOST {
                return;
            }
            known.met(condition).made.push((t, by));
        }
        let Some(variable) = self.learned.initialisations.variable(condition) else { return };
        let name = match call.operands.first() {
            Some(&operand) if self.symbolic() => {
                self.pointer_name(t, operand, Some(CONDITION_SIZE))
            }
            _ => None,
        };
        let made = self.initialised.iter().filter(|other| other.condition == condition).count();
        let number = u8::try_from(made + 1).unwrap_or(u8::MAX);
        let event = self.touch_condition(t, variable, name, |engine, place| {
            engine.write(t, place, &[MemoryByte::Const(number)], Grain::Access);
        });
        if let Some(event) = event {
            self.initialised.push(Touch { condition, thread: t, event, time: by });
        }
    }

    /// A wait for a condition that did not end begins: what it reads of how often that was initialised.
    pub fn wait_initialised(&mut self, t: usize, wait: &PendingSync) -> Option<Touch> {
        if !matches!(wait.operation, SyncOp::CondWait | SyncOp::CondTimedWait) || !self.hung() {
            return None;
        }
        let condition = self.resolve(t, wait.address)?;
        if !self.symbolic() {
            let known = self.learned.initialisations.met(condition);
            known.waits.push((t, wait.stamp));
        }
        let variable = self.learned.initialisations.variable(condition)?;
        let event = self.touch_condition(t, variable, wait.name.clone(), |engine, place| {
            engine.read(t, place, Grain::Access);
        })?;
        self.pending_reads.clear();
        Some(Touch { condition, thread: t, event, time: wait.stamp })
    }

    /// The event of an access to a variable that counts, or the survey's note of it.
    fn touch_condition(
        &mut self,
        t: usize,
        variable: u64,
        name: Option<String>,
        access: impl FnOnce(&mut Self, Place),
    ) -> Option<u32> {
        let place = Place::new(variable, 1, None);
        if !self.symbolic() {
            access(self, place);
            return None;
        }
        if !self.learned.initialisations.tell(variable, || name) {
            return None;
        }
        if self.memory.get(variable) == MemoryByte::Unknown {
            self.memory.set(variable, MemoryByte::Const(0));
        }
        access(self, place);
        let last = self.out.threads[t].events.last()?;
        let is_access = last.kind.is_access();
        is_access.then_some(last.index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_counts_when_another_thread_may_initialise_it_during_a_wait() {
        let condition = |made: &[(usize, u64)], waits: &[(usize, u64)]| Condition {
            made: made.to_vec(),
            waits: waits.to_vec(),
            ..Condition::default()
        };
        assert!(condition(&[(0, 30)], &[(1, 20)]).is_made_late());
        assert!(!condition(&[(0, 10)], &[(1, 20)]).is_made_late(), "as it should be");
        assert!(!condition(&[(1, 30)], &[(1, 20)]).is_made_late(), "by who waits itself");
        assert!(condition(&[(0, 10), (0, 30)], &[(1, 20)]).is_made_late(), "again");
        assert!(!condition(&[(0, 30)], &[]).is_made_late());
    }
}
