//! From an event trace to a constraint system ([S] 3.2): φpath, φbug, φsync, φrw, φmo, one room
//! each. Knows no solver and does no IO.
//!
//! The encoders work on top of a happens-before closure ([`closure`]): what program order,
//! fork/join, locks and reads with one possible source already order is never left to the
//! solver. Edges that the closure derived are constraints of the system themselves, so a
//! simplification never loses the fact it rests on.

mod barriers;
mod bug;
mod clock;
mod closure;
mod coarse;
mod complete;
mod conditions;
mod connectives;
mod context;
mod counters;
#[doc(hidden)]
pub mod dsl;
mod encode;
mod error;
mod fork_join;
mod lemmas;
mod lifetimes;
mod locks;
pub mod models;
mod own_locks;
mod passed_on;
mod path;
mod program_order;
mod read_write;
mod recorded;
mod saturate;
mod semaphores;
mod size;
mod slice;
pub mod system;
mod text;
mod validate;
mod values;

pub use coarse::{Coarse, coarsen, coarsen_near, sources};
pub use connectives::{Connective, Connectives};
pub use encode::{
    encode, encode_orders, encode_paper, encode_recorded, encode_recorded_orders, encode_within,
};
pub use error::EncodeError;
pub use locks::section_pairs;
pub use passed_on::fit_passed_on;
pub use recorded::with_recorded_values;
pub use size::SystemSize;
pub use slice::{
    BEFORE_CHECK, Slice, ends, failing_at_check, is_long, is_often_woken, slice, slice_below,
    up_to_check, window,
};
pub use system::{ChoiceId, Constraint, ConstraintId, ConstraintKind, ConstraintSystem, Term};
#[doc(hidden)]
pub use text::events_text;
