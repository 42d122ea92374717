//! What the making of constraints may take: the time that is left, and memory.

use solver::UnknownReason;
use std::cell::Cell;
use std::time::Instant;

/// How often it is asked before it looks at the memory.
const SELDOM: u32 = 256;
/// Where the user names no limit, this part of the memory that is available may be taken: a solver needs more
/// of it later.
const PART: (u64, u64) = (6, 10);
const MIB: u64 = 1 << 20;

/// See the module.
pub(super) struct Budget {
    deadline: Option<Instant>,
    /// The most bytes that the process may have; none where the system does not tell.
    most: Option<u64>,
    asked: Cell<u32>,
    spent: Cell<Option<Spent>>,
}

#[derive(Clone, Copy)]
enum Spent {
    Time,
    Memory,
}

impl Budget {
    pub(super) fn new(deadline: Option<Instant>, memory_mb: Option<u32>) -> Self {
        let available = || {
            let text = std::fs::read_to_string("/proc/meminfo").ok()?;
            Some(resident()?.saturating_add(available(&text)? / PART.1 * PART.0))
        };
        let most = match memory_mb {
            Some(mib) => Some(u64::from(mib).saturating_mul(MIB)),
            None => available(),
        };
        Self { deadline, most, asked: Cell::new(0), spent: Cell::new(None) }
    }

    /// Is there any left?
    pub(super) fn is_left(&self) -> bool {
        if self.spent.get().is_some() {
            return false;
        }
        self.asked.set(self.asked.get().wrapping_add(1));
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            self.spent.set(Some(Spent::Time));
        } else if self.asked.get().is_multiple_of(SELDOM)
            && self.most.zip(resident()).is_some_and(|(most, resident)| resident > most)
        {
            self.spent.set(Some(Spent::Memory));
        }
        self.spent.get().is_none()
    }

    /// What was spent, once something was.
    pub(super) fn reason(&self) -> UnknownReason {
        match self.spent.get() {
            Some(Spent::Memory) => UnknownReason::Memory,
            Some(Spent::Time) | None => UnknownReason::TimeOut,
        }
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
        assert!((0..SELDOM).any(|_| !memory.is_left()), "a test has more than a megabyte");
        assert_eq!(memory.reason(), UnknownReason::Memory);
        let enough = Budget::new(None, None);
        assert!((0..2 * SELDOM).all(|_| enough.is_left()));
    }

    #[test]
    fn available_memory_is_understood() {
        let text = "MemTotal: 9 kB\nMemAvailable:   12 kB\n";
        assert_eq!(available(text), Some(12 * 1024));
        assert_eq!(available("MemTotal: 9 kB\n"), None);
    }
}
