//! Gates: opening them, and what happens in them.

use crate::script::Script;

/// What the runtime keeps per thread for its gates. Zeros are the state of a new thread.
#[derive(Clone, Copy, Default)]
pub struct State {
    /// The thread is inside the slow path: gates that a signal handler passes meanwhile are only
    /// counted. Whoever calls the scheduler from elsewhere sets it too, see [`enter`].
    pub inside: bool,
    /// State of the thread's random numbers.
    pub random: u64,
}

/// Does this process open its gates, that is, was a schedule or noise asked for?
#[must_use]
pub fn wanted() -> bool {
    false
}

/// The schedule to follow.
#[must_use]
pub fn script() -> Option<&'static Script> {
    None
}

/// The site of the gate whose call returns to this address; 0 when there is none.
#[must_use]
pub fn site_at(_return_address: u64) -> u64 {
    0
}

/// In a child of `fork`: its gates do nothing from now on.
pub fn forked() {}

#[cfg(symbiosis_export)]
core::arch::global_asm!(
    ".text",
    ".globl __symbiosis_gate",
    ".type __symbiosis_gate,@function",
    "__symbiosis_gate: ret",
    ".size __symbiosis_gate,.-__symbiosis_gate",
    ".globl __symbiosis_gate_anchor",
    ".type __symbiosis_gate_anchor,@function",
    "__symbiosis_gate_anchor: ret",
    ".size __symbiosis_gate_anchor,.-__symbiosis_gate_anchor",
    options(att_syntax)
);
