//! An explanation by an update that another thread's write falls into, or by one pair the other way round, where
//! schedules cannot be looked for.

use super::{Update, interrupted, updates};
use crate::alternates::{Alternate, Alternates};
use crate::cone::Cone;
use crate::conflict::{ConflictOrder, OrderKind, positions};
use crate::context::Context;
use crate::dsp::differential;
use crate::error::ExplainError;
use crate::explanation::{Explanation, Phase};
use crate::failing::Failing;
use crate::local::blocks;
use crate::root_cause::{CauseKind, RootCause};
use model::evaluate::Check;
use model::{CellId, EventId, EventTrace, Schedule};
use solver::{Goal, Model, Order, UnknownReason};
use std::collections::BTreeSet;

/// So many of the orders that the failure depends on are turned round, those nearest to it...
const TURNED: usize = 24;
/// ...and so many events are executed for that.
const TURNING: u64 = 20_000_000;

/// Explains a failing schedule without a solver: by `passing`, one that passes and differs from it little; where there
/// is none, by the last update of what the failure depends on that another thread's write falls into; and where there is
/// no such update, as of a crash whose pointer another thread has made null, by a schedule that passes because one pair of
/// what the failure depends on comes the other way round, which is the alternate then. Where none is found either, the
/// cause is what another thread wrote last of what the failure itself reads. The root cause is a proposal in
/// all cases: that its orders always lead to the failure is not shown, and a cut says so with `reason`. Where there is
/// none of all that, there is a failing schedule alone. `budget` is asked now and then, and ends the search for a pair to
/// turn round by answering false.
///
/// # Errors
/// When the trace has no failure, and when the evaluator rejects one of the schedules.
pub fn explain_by_update(
    trace: &EventTrace,
    failing: &Schedule,
    passing: Option<&Schedule>,
    reason: UnknownReason,
    budget: &dyn Fn() -> bool,
) -> Result<Explanation, ExplainError> {
    if trace.failure.is_none() {
        return Err(ExplainError::NoFailure);
    }
    let mut context = Context::new(trace, budget);
    let found = Model { schedule: failing.clone(), ..Model::default() };
    context.accept_model(Goal::Fail, &found)?;
    let (failing, mut explanation) = Explanation::begun(&mut context, found.schedule)?;
    explanation.limit(Phase::RootCause, Some(reason));
    let cone = Cone::new(trace, &failing.evaluation);
    let last = match passing {
        Some(_) => Vec::new(),
        None => last_interrupted(trace, &failing, &cone),
    };
    let turned = match passing {
        None if last.is_empty() => turned_round(&mut context, &failing, &cone),
        _ => None,
    };
    let orders = match passing.or(turned.as_ref()) {
        Some(passing) => {
            let alternate = alternate(&mut context, &failing, passing)?;
            let orders = alternate.as_ref().map(|(_, orders)| orders.clone()).unwrap_or_default();
            if let Some((alternate, _)) = alternate {
                explanation.dsps = vec![differential(trace, &failing, &alternate)];
                explanation.alternates =
                    Alternates { found: vec![alternate], tried: 1, unknown: 0 };
            }
            orders
        }
        None if last.is_empty() => last_met(&failing).into_iter().collect(),
        None => last,
    };
    if !orders.is_empty() {
        let in_cone = failing.conflicts.iter().filter(|order| cone.contains(trace, order)).count();
        let (kind, of) = (CauseKind::Orders, failing.conflicts.len());
        explanation.root_cause =
            Some(RootCause { kind, orders, shown: false, minimal: false, of, in_cone });
    }
    explanation.statistics.evaluated = context.executed;
    Ok(explanation)
}

/// A schedule that passes, in which one pair of what the failure depends on comes the other way round: of the pairs
/// nearest to the failure the first that is found.
fn turned_round(context: &mut Context<'_, '_>, failing: &Failing, cone: &Cone) -> Option<Schedule> {
    let trace = context.trace;
    let mut pairs: Vec<&ConflictOrder> =
        failing.conflicts.iter().filter(|conflict| cone.contains(trace, conflict)).collect();
    pairs.sort_by_key(|conflict| failing.distance(conflict.order));
    context.effort.allow(TURNING);
    for pair in pairs.into_iter().take(TURNED) {
        for order in blocks(trace, failing, pair.order) {
            match context.check(&order)? {
                Check::Passes => return Some(Schedule { order }),
                _ => continue,
            }
        }
    }
    None
}

/// The last order that the failure condition names, or by which it reads what another thread wrote, or does not read what
/// another one writes later.
fn last_met(failing: &Failing) -> Option<ConflictOrder> {
    let decides = |event: EventId| failing.decisive.iter().any(|read| read.event == event);
    let meets = |conflict: &&ConflictOrder| match conflict.kind {
        OrderKind::Failure => true,
        OrderKind::ReadFrom(_) => decides(conflict.order.after),
        OrderKind::FromRead(_) => decides(conflict.order.before),
        _ => false,
    };
    let place = |conflict: &&ConflictOrder| {
        let Order { before, after } = conflict.order;
        (failing.position(before), failing.position(after))
    };
    failing.conflicts.iter().filter(meets).max_by_key(place).copied()
}

/// A schedule that passes, with the orders that it does not keep; `None` where it keeps all.
fn alternate(
    context: &mut Context<'_, '_>,
    failing: &Failing,
    passing: &Schedule,
) -> Result<Option<(Alternate, Vec<ConflictOrder>)>, ExplainError> {
    let evaluation = context.passing(&passing.order)?;
    let places = positions(context.trace, &passing.order);
    let given_up = |order: &&ConflictOrder| {
        places[order.order.before.index()] > places[order.order.after.index()]
    };
    let orders: Vec<ConflictOrder> = failing.conflicts.iter().filter(given_up).copied().collect();
    // What a thread wrote between another one's read and write says more than where a lock was.
    let of_memory = |order: &&ConflictOrder| order.kind.cell().is_some();
    let flipped = orders.iter().rev().find(of_memory).or(orders.last()).map(|order| order.order);
    let schedule = passing.clone();
    Ok(flipped.map(|flipped| {
        let flipped = Order { before: flipped.after, after: flipped.before };
        (Alternate { flipped, in_root_cause: true, schedule, evaluation }, orders)
    }))
}

/// The order that lets another thread into the last update before the failure that the failure depends on. The other way
/// round, the update would be whole.
fn last_interrupted(trace: &EventTrace, failing: &Failing, cone: &Cone) -> Vec<ConflictOrder> {
    let open = interrupted(trace, &failing.schedule.order, &updates(trace));
    let last_of = |cells: BTreeSet<CellId>| {
        let decides = |update: &&Update| cells.contains(&update.cell);
        open.iter().filter(decides).max_by_key(|update| failing.position(update.write))
    };
    // Where nothing gets into what the failure is computed from, it hangs on which ways the threads went.
    let last = last_of(cone.cells().collect()).or_else(|| {
        let ways = Cone::with_paths(trace, &failing.evaluation, |_| true);
        last_of(ways.cells().collect())
    });
    let order = last.and_then(|update| {
        let (from, to) = (failing.position(update.read), failing.position(update.write));
        let thread = trace.event(update.read).thread;
        let between = failing.schedule.order.get(from as usize..to as usize)?;
        let writes = |id: &&EventId| {
            let event = trace.event(**id);
            let mut parts = event.kind.writes().iter();
            event.thread != thread && parts.any(|part| part.cell == update.cell)
        };
        let order = Order { before: update.read, after: *between.iter().find(writes)? };
        Some(ConflictOrder { order, kind: OrderKind::FromRead(update.cell) })
    });
    order.into_iter().collect()
}
