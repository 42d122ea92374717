//! The vocabulary of Symbiosis: events, event traces, expressions, schedules, cores and DSPs.
//!
//! This crate does no IO, knows neither LLVM nor a solver, and cannot read a clock. Every other
//! stage speaks in its types: `symex` produces an [`EventTrace`], `encoders` turn it into
//! constraints, `solver` and `explain` answer with [`Schedule`]s, which [`evaluate`] checks
//! without a solver, and `render` prints the result.

pub mod display;
pub mod evaluate;
pub mod event;
pub mod expr;
mod fit;
pub mod ids;
mod library;
pub mod names;
pub mod points;
pub mod schedule;
pub mod stack;
pub mod trace;
pub mod verify;

pub use event::{
    Awaited, ChannelStep, Event, EventKind, LockMode, PackageLock, Piece, ReadPart, ReadRef, Site,
    WritePart, WriteSource,
};
pub use expr::{BinOp, CmpOp, Expr, ExprId, ExprPool, FloatFormat, FloatOp, FloatPred};
pub use fit::{fit_inputs, fit_values};
pub use ids::{CellId, ConditionId, EventId, ObjectId, ThreadId, VarId};
pub use points::{Passage, Point, Points};
pub use schedule::{Schedule, ScheduleError};
pub use stack::{Interruption, Stack};
pub use trace::{
    Cell, EventTrace, Failure, FailureCondition, FailureKind, Interval, Object, ObjectKind,
    Outcome, PathCondition, PathConditionKind, Thread, Variable, VariableOrigin,
};
