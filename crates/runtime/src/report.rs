//! The scheduler's report: a mapped page that survives any end of the process. Without a file for
//! it the functions do nothing, but for saying on standard error where a schedule was left.

use crate::layout::LeftReason;

/// The schedule has so many turns.
pub fn set_lines(_lines: u32) {}

/// So many turns were followed to their end, in order, without leaving the schedule.
pub fn followed(_lines: u32) {}

/// The schedule was left at this line of its text; only the first call counts. `site` is where the
/// line's thread is, 0 for nowhere.
pub fn left(_line: u32, _reason: LeftReason, _site: u64, _message: &[u8]) {}

/// Sets how many gates and sync points were passed, over all threads.
pub fn set_steps(_steps: u64) {}

/// Another thread got the turn. Only the holder of the turn calls it.
pub fn count_switch() {}

/// All threads wait for each other, and the process is ended for it.
pub fn deadlock(_message: &[u8]) {}
