//! Perturbed schedules: what NOISE_VARIABLE asks for, and the disturbances of `random`.

use crate::threads::Thread;

/// What [`NOISE_VARIABLE`](crate::layout::NOISE_VARIABLE) asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Config {
    /// Nothing.
    Off,
    /// Threads yield or sleep at some gates and sync points.
    Random {
        /// Of the random numbers.
        seed: u64,
        /// Disturbed gates per million.
        rate: u64,
        /// The longest sleep in microseconds.
        micros: u64,
    },
    /// The scheduler runs threads by random priorities.
    Pct {
        /// Of the random numbers.
        seed: u64,
        /// The number of priority changes plus one.
        depth: u32,
        /// How many steps the run is thought to have.
        steps: u64,
    },
}

/// A thread starts: to be called when it has its name and its control page.
///
/// # Safety
///
/// `thread` is the calling thread's own record.
pub unsafe fn at_start(_thread: *mut Thread) {}

/// At a gate's slow path.
///
/// # Safety
///
/// `thread` is the calling thread's own record.
pub unsafe fn at_gate(_thread: *mut Thread) {}

/// At a sync point, when no scheduler decides; does nothing unless `random` was asked for.
///
/// # Safety
///
/// `thread` is the calling thread's own record.
pub unsafe fn at_point(_thread: *mut Thread) {}
