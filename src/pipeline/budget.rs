//! What symbolic execution, the making of constraints and the explanation may take: the time that is left, and
//! memory.

use solver::UnknownReason;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// The memory is looked at after this time again: who asks seldom may have taken much.
const SELDOM: Duration = Duration::from_millis(20);
/// Where the user names no limit, this part of the memory that is available may be taken: a solver needs more
/// of it later.
const PART: (u64, u64) = (6, 10);
/// Symbolic execution comes first, and without it there is nothing to solve.
const PART_OF_WALK: (u64, u64) = (9, 10);
/// There is ample time where so many times as much is left as was taken until now: walks that an answer does not need take as
/// long again, and what comes behind them longer.
const AMPLE: u32 = 3;
const MIB: u64 = 1 << 20;

/// See the module.
#[derive(Debug)]
pub struct Budget {
    began: Instant,
    deadline: Option<Instant>,
    /// The most bytes that the process may have; none where the system does not tell.
    most: Option<u64>,
    /// When the memory was looked at last.
    looked: Cell<Option<Instant>>,
    spent: Cell<Option<Spent>>,
}

#[derive(Clone, Copy, Debug)]
enum Spent {
    Time,
    Memory,
}

impl Budget {
    pub(super) fn new(deadline: Option<Instant>, memory_mb: Option<u32>) -> Self {
        Self::with_part(deadline, memory_mb, PART)
    }

    /// What symbolic execution may take: the time until then (none for any), and so many megabytes as the whole
    /// process may have; none for most of what the machine has left.
    #[must_use]
    pub fn of_walk(deadline: Option<Instant>, memory_mb: Option<u32>) -> Self {
        Self::with_part(deadline, memory_mb, PART_OF_WALK)
    }

    fn with_part(deadline: Option<Instant>, memory_mb: Option<u32>, part: (u64, u64)) -> Self {
        let available = || {
            let text = std::fs::read_to_string("/proc/meminfo").ok()?;
            Some(resident()?.saturating_add(available(&text)? / part.1 * part.0))
        };
        let most = match memory_mb {
            Some(mib) => Some(u64::from(mib).saturating_mul(MIB)),
            None => available(),
        };
        let began = Instant::now();
        Self { began, deadline, most, looked: Cell::new(None), spent: Cell::new(None) }
    }

    /// No more of the time than that from now on, and the same memory.
    pub(super) fn part(&self, time: Duration) -> Self {
        let began = Instant::now();
        let part = began + time;
        let deadline = self.deadline.map_or(part, |deadline| deadline.min(part));
        Self {
            began,
            deadline: Some(deadline),
            most: self.most,
            looked: Cell::new(None),
            spent: Cell::new(None),
        }
    }

    /// Is there any left?
    pub(super) fn is_left(&self) -> bool {
        if self.spent.get().is_some() {
            return false;
        }
        let now = Instant::now();
        if self.deadline.is_some_and(|deadline| now >= deadline) {
            self.spent.set(Some(Spent::Time));
        } else if self.looked.get().is_none_or(|looked| now.duration_since(looked) >= SELDOM) {
            self.looked.set(Some(now));
            if self.most.zip(resident()).is_some_and(|(most, resident)| resident > most) {
                self.spent.set(Some(Spent::Memory));
            }
        }
        self.spent.get().is_none()
    }

    /// Says in an explanation that the memory ended it, where it did.
    pub(super) fn name(&self, explanation: &mut explain::Explanation) {
        if let Some(Spent::Memory) = self.spent.get() {
            explanation.ended_by(&UnknownReason::Memory);
        }
    }

    /// What was spent, once something was.
    pub(super) fn reason(&self) -> UnknownReason {
        match self.spent.get() {
            Some(Spent::Memory) => UnknownReason::Memory,
            Some(Spent::Time) | None => UnknownReason::TimeOut,
        }
    }
}

impl symex::Spending for Budget {
    fn is_left(&self) -> bool {
        Budget::is_left(self)
    }

    fn is_ample(&self) -> bool {
        let Some(deadline) = self.deadline else { return self.is_left() };
        let now = Instant::now();
        let left = deadline.saturating_duration_since(now);
        left >= now.duration_since(self.began) * AMPLE && self.is_left()
    }
}

/// How many bytes of memory are available, by `/proc/meminfo`.
fn available(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// How many bytes of memory this process has.
fn resident() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spent_stays_spent() {
        let time = Budget::new(Some(Instant::now()), None);
        assert!(!time.is_left() && !time.is_left());
        assert_eq!(time.reason(), UnknownReason::TimeOut);
        let memory = Budget::new(None, Some(1));
        assert!(!memory.is_left(), "a test has more than a megabyte");
        assert_eq!(memory.reason(), UnknownReason::Memory);
        let part = Budget::new(None, None).part(Duration::ZERO);
        assert!(!part.is_left());
        let enough = Budget::new(None, None);
        assert!((0..100).all(|_| enough.is_left()));
        assert!(Budget::of_walk(None, None).most >= enough.most);
    }

    #[test]
    fn there_is_ample_time_at_the_beginning_alone() {
        use symex::Spending;
        let hour = Duration::from_secs(3600);
        let mut budget = Budget::new(Some(Instant::now() + hour), None);
        assert!(budget.is_ample() && Budget::new(None, None).is_ample());
        budget.deadline = Some(budget.began + hour);
        budget.began -= hour / 2;
        assert!(!budget.is_ample() && budget.is_left());
    }

    #[test]
    fn available_memory_is_understood() {
        let text = "MemTotal: 9 kB\nMemAvailable:   12 kB\n";
        assert_eq!(available(text), Some(12 * 1024));
        assert_eq!(available("MemTotal: 9 kB\n"), None);
    }
}
