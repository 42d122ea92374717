//! The logging plan: what an instrumented function writes to its thread's streams, computed from
//! the IR alone, so that the instrumenter (which emits the hooks) and the executor (which reads
//! the streams back) cannot disagree. A change here changes `INSTRUMENTATION_VERSION`.
//!
//! In program order, a thread writes:
//!
//! * on entry to a function with [`FunctionPlan::entry`]: an `ENTER` path entry, then every
//!   argument in the values stream ([`words`] words each);
//! * on entry to a block of [`FunctionPlan::blocks`]: a `BLOCK` path entry. On function entry,
//!   block 0 is never recorded;
//! * after an instruction of [`FunctionPlan::values`]: its value ([`words`] words);
//! * after a call of [`FunctionPlan::returns`] (in an invoke: at the start of the normal
//!   destination, before that block's own entry; such edges are split when the destination has
//!   other predecessors): a `RETURN` path entry, then the result ([`words`] words, none for
//!   `void`).

use crate::types::{Function, InstId, Module, TypeId};
use std::collections::BTreeSet;

/// What one function logs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionPlan {
    /// Entry is recorded: the function can be called by code that this module does not show.
    pub entry: bool,
    /// Per block: is its entry recorded?
    pub blocks: Vec<bool>,
    /// Instructions whose result is logged right after them: address-feeding loads, stack objects
    /// whose address escapes.
    pub values: BTreeSet<InstId>,
    /// Calls and invokes that log `RETURN` and their result: those whose target is not a defined
    /// function of the same module, intrinsics excepted.
    pub returns: BTreeSet<InstId>,
}

/// How many words a value of this type takes in the values stream: 0 for `void`, 1 up to 64 bits,
/// 2 up to 128; for aggregates and vectors the sum over the elements, in order.
#[must_use]
pub fn words(module: &Module, ty: TypeId) -> usize {
    let _ = (module, ty);
    0
}

/// The plan of a function with a body.
#[must_use]
pub fn plan(module: &Module, function: &Function) -> FunctionPlan {
    let _ = (module, function);
    FunctionPlan::default()
}
