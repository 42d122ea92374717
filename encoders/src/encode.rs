//! The encoders, one after the other.

use crate::closure::Closure;
use crate::context::{Builder, Context};
use crate::locks::Regions;
use crate::models::MemoryModel;
use crate::{ConstraintSystem, EncodeError};
use crate::{
    barriers, bug, clock, complete, conditions, fork_join, lemmas, locks, own_locks, path,
    program_order, read_write, saturate, semaphores, validate,
};
use model::EventTrace;

/// The constraint system of a trace under sequential consistency ([S] 3.2).
///
/// Reads whose value no path condition, failure condition or other such read depends on are left
/// unconstrained: every order of the events gives them some value. So are reads of counters on
/// which only conditions depend that [`ConstraintKind::Counter`](crate::ConstraintKind::Counter)
/// determines.
///
/// # Errors
/// When the trace does not make sense, as its verifier would have said.
pub fn encode(trace: &EventTrace) -> Result<ConstraintSystem, EncodeError> {
    encode_with(trace, false, &|| true)
}

/// As [`encode`], or as [`encode_recorded`] where the clock is heeded, within a budget, which is asked now and
/// then and ends the work by answering false. Of cells that threads write ten thousand times each every read has
/// as many sources, and the system may take longer, and more memory, than there is.
///
/// # Errors
/// As [`encode`], and when the budget is spent.
pub fn encode_within(
    trace: &EventTrace,
    clock: bool,
    budget: &dyn Fn() -> bool,
) -> Result<ConstraintSystem, EncodeError> {
    encode_with(trace, clock, budget)
}

/// The system of the schedules that are like the recorded run as far as its clock tells
/// ([`EventTrace::intervals`]): for the failing schedule, and for nothing else. That a schedule does
/// not exist in it says only that the clock was wrong.
///
/// # Errors
/// As [`encode`].
pub fn encode_recorded(trace: &EventTrace) -> Result<ConstraintSystem, EncodeError> {
    encode_with(trace, true, &|| true)
}

/// The orders that hold in every schedule by program order, creation and joining of threads, barriers and
/// semaphores, and nothing else: for [`surely_before`](ConstraintSystem::surely_before) where threads meet too often
/// for anything else.
///
/// # Errors
/// As [`encode`].
pub fn encode_orders(trace: &EventTrace) -> Result<ConstraintSystem, EncodeError> {
    validate::validate(trace)?;
    let mut context = Context::new(trace, Regions::of(trace)?);
    let mut builder = Builder::default();
    fork_join::encode(&mut context, &mut builder);
    barriers::encode(&mut context, &mut builder);
    semaphores::encode_pairs(&mut context, &mut builder);
    builder.system.closure = context.closure;
    Ok(builder.system)
}

/// The same with what the recorded run's clock shows of it besides: for schedules that are like that run.
///
/// # Errors
/// As [`encode`].
pub fn encode_recorded_orders(trace: &EventTrace) -> Result<ConstraintSystem, EncodeError> {
    validate::validate(trace)?;
    let mut context = Context::new(trace, Regions::of(trace)?);
    let mut builder = Builder::default();
    fork_join::encode(&mut context, &mut builder);
    barriers::encode(&mut context, &mut builder);
    semaphores::encode_pairs(&mut context, &mut builder);
    clock::encode(&mut context, &mut builder);
    builder.system.moments = clock::moments(trace);
    builder.system.closure = context.closure;
    Ok(builder.system)
}

/// The system as the paper has it ([S] 3.2): every read may take its value from every write of its
/// cell, nothing is decided beforehand, and nothing is left out. The baseline that [`encode`] is
/// measured against; both have the same schedules.
///
/// # Errors
/// As [`encode`].
pub fn encode_paper(trace: &EventTrace) -> Result<ConstraintSystem, EncodeError> {
    let span = tracing::debug_span!("encode_paper", events = trace.events.len());
    let _guard = span.enter();
    validate::validate(trace)?;
    let mut context = Context::new(trace, Regions::of(trace)?);
    let mut builder = Builder::default();

    path::encode(&context, &mut builder);
    program_order::encode(&context, MemoryModel::SequentialConsistency, &mut builder);
    fork_join::encode(&mut context, &mut builder);
    barriers::encode(&mut context, &mut builder);
    semaphores::encode_pairs(&mut context, &mut builder);
    context.closure = Closure::nothing(trace);
    locks::encode(&context, &mut builder);
    let woken = conditions::encode(&context, &mut builder);
    semaphores::encode(&context, &mut builder);
    read_write::encode_all(&context, &mut builder);
    builder.system.failure = bug::encode(&context, &woken);
    builder.system.closure = context.closure;
    Ok(builder.system)
}

fn encode_with(
    trace: &EventTrace,
    clock: bool,
    budget: &dyn Fn() -> bool,
) -> Result<ConstraintSystem, EncodeError> {
    let span = tracing::debug_span!("encode", events = trace.events.len());
    let _guard = span.enter();
    validate::validate(trace)?;
    let mut regions = Regions::of(trace)?;
    own_locks::add(trace, &mut regions);
    let mut context = Context::new(trace, regions).within(budget);
    let model = MemoryModel::SequentialConsistency;
    let mut builder = Builder::default();

    path::encode(&context, &mut builder);
    program_order::encode(&context, model, &mut builder);
    fork_join::encode(&mut context, &mut builder);
    barriers::encode(&mut context, &mut builder);
    semaphores::encode_pairs(&mut context, &mut builder);
    if clock {
        clock::encode(&mut context, &mut builder);
        builder.system.moments = clock::moments(trace);
    }
    saturate::saturate(&mut context, &mut builder);
    locks::encode(&context, &mut builder);
    if context.is_over() {
        return Err(EncodeError::BudgetSpent);
    }
    let woken = conditions::encode(&context, &mut builder);
    semaphores::encode(&context, &mut builder);
    if context.is_over() {
        return Err(EncodeError::BudgetSpent);
    }
    let resolved = lemmas::encode(&context, &mut builder, &read_write::roots(trace));
    complete::encode(&context, &mut builder, &read_write::roots(trace));
    read_write::encode(&context, &mut builder, &resolved);
    if context.is_over() {
        return Err(EncodeError::BudgetSpent);
    }
    builder.system.determined = resolved.conditions;
    builder.system.failure = bug::encode(&context, &woken);
    if context.is_over() {
        return Err(EncodeError::BudgetSpent);
    }
    builder.system.closure = context.closure;

    tracing::debug!(constraints = builder.system.constraints.len(), "encoded");
    Ok(builder.system)
}
