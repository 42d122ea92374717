//! From an event trace to a constraint system ([S] 3.2): φpath, φbug, φsync, φrw, φmo, one room
//! each. Knows no solver and does no IO.

pub mod system;

pub use system::{ChoiceId, Constraint, ConstraintId, ConstraintKind, ConstraintSystem, Term};
