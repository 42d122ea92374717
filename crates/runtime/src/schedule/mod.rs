//! The scheduler: exactly one thread has the turn.

use crate::noise;
use crate::script::Script;
use crate::threads::Thread;

/// What the scheduler is asked for.
#[derive(Clone, Copy)]
pub struct Config {
    /// The schedule to follow; none for a perturbed run.
    pub script: Option<&'static Script>,
    /// The noise; of interest to the scheduler is [`noise::Config::Pct`].
    pub noise: noise::Config,
    /// Milliseconds without progress after which following is given up.
    pub patience: u64,
}

/// Does a scheduler decide, that is, was a schedule or `pct` asked for?
#[must_use]
pub fn active() -> bool {
    false
}

/// Starts the scheduler. Called once, before the program's first instruction, when the initial
/// thread has its record, and only when there is a schedule or `pct`.
pub fn start(_config: Config) {}

/// The calling thread stands at a gate that it has not passed yet (it is not counted). Returns
/// when the thread may go on.
///
/// # Safety
///
/// `thread` is the calling thread's own record.
pub unsafe fn at_gate(_thread: *mut Thread, _site: u64) {}
