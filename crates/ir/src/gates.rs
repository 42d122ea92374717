//! The gates of a function: where a scheduler can stop it, and under which names. Like the logging
//! plan, they are computed from the IR alone, by one function that the instrumenter (which places
//! the gates) and the executor (which counts their passages) share. A change here changes
//! `INSTRUMENTATION_VERSION`. The names' grammar is in `docs/schedule-format.md`.
//!
//! A gate stands right before
//!
//! * loads, stores, atomic read-modify-writes, compare-exchanges, and memory copies and fills,
//!   unless all they touch is certainly a non-escaping stack object of the function
//!   ([`StackObjects`](crate::stack::StackObjects));
//! * calls and invokes that log `RETURN` ([`FunctionPlan::returns`](crate::plan::FunctionPlan::returns)).

use crate::types::{Function, InstId, Module};

/// A gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gate {
    /// The instruction that it stands before.
    pub instruction: InstId,
    /// The site's name, `bank.c:deposit:write:balance/2` for instance; unique in its function.
    pub site: String,
}

/// The gates of a function with a body, in IR order.
#[must_use]
pub fn gates(module: &Module, function: &Function) -> Vec<Gate> {
    let _ = (module, function);
    Vec::new()
}
