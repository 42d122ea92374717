//! A session about a whole trace that looks at the schedules of a coarse one.

use crate::session::{Goal, Model, Order, Outcome, Session, SolverError, UnknownReason};
use encoders::Coarse;
use model::evaluate::Evaluator;
use model::{EventTrace, Schedule, VarId};
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;

/// Answers for the whole trace with schedules of its [`Coarse`] form.
///
/// Events, orders and schedules are the whole trace's. A schedule that is found is one of it, and
/// was accepted by the evaluator. "Unsatisfiable" is said of schedules that do all of each coarse event at once alone:
/// where even these could not fail, or could not pass, whatever their order, the answer is unknown.
pub struct CoarseSession<'a, S> {
    whole: &'a EventTrace,
    coarse: &'a Coarse,
    evaluator: Evaluator<'a>,
    inner: S,
}

impl<'a, S: Session> CoarseSession<'a, S> {
    /// `inner` is over the coarse form of `whole`.
    #[must_use]
    pub fn new(whole: &'a EventTrace, coarse: &'a Coarse, inner: S) -> Self {
        Self { whole, coarse, evaluator: Evaluator::new(whole), inner }
    }

    fn ask(
        &mut self,
        goal: Goal,
        orders: &[Order],
        ask: impl FnOnce(&mut S, &[Order]) -> Result<Outcome, SolverError>,
    ) -> Result<Outcome, SolverError> {
        let open = || Ok(Outcome::Unknown(UnknownReason::GaveUp(FEW_PLACES.to_owned())));
        // Which of the orders each coarse one is.
        let (mut images, mut indices) = (Vec::new(), Vec::new());
        let mut known = FxHashSet::default();
        for (index, order) in orders.iter().enumerate() {
            let image = |event| self.coarse.image(event);
            let (Some(before), Some(after)) = (image(order.before), image(order.after)) else {
                return open();
            };
            if before == after && order.before <= order.after {
                continue;
            }
            if before == after || known.contains(&Order { before: after, after: before }) {
                // Both may hold where the one happens within the other.
                return open();
            }
            let order = Order { before, after };
            if known.insert(order) {
                images.push(order);
                indices.push(index);
            }
        }
        // What is read from freed memory follows from no order: a failing schedule keeps to what the run shows.
        let lifetimes = self.coarse.trace.lifetimes.iter().filter(|_| goal == Goal::Fail);
        images.extend(lifetimes.map(|&(before, after)| Order { before, after }));
        match ask(&mut self.inner, &images)? {
            Outcome::Unsat(core) if core.is_empty() || goal == Goal::Fail => open(),
            Outcome::Unsat(core) => {
                let core = core.into_iter().filter_map(|index| indices.get(index).copied());
                Ok(Outcome::Unsat(core.collect()))
            }
            Outcome::Sat(found) => match self.widen(goal, &found) {
                Some(found) => Ok(Outcome::Sat(found)),
                None => open(),
            },
            unknown @ Outcome::Unknown(_) => Ok(unknown),
        }
    }

    /// What a schedule of the coarse trace does in the whole one.
    fn widen(&mut self, goal: Goal, found: &Model) -> Option<Model> {
        let schedule = self.coarse.schedule(&found.schedule);
        let mut inputs: BTreeMap<VarId, u128> = BTreeMap::new();
        for (id, value) in &found.values {
            inputs.insert(self.coarse.variable(*id)?, *value);
        }
        let variables = &self.whole.variables;
        let recorded = |var: VarId| variables.get(var.index()).and_then(|of| of.recorded);
        // One that the constraints do not mention may have any value.
        let input = |var: VarId| inputs.get(&var).copied().or(recorded(var)).or(Some(0));
        let evaluation = self.evaluator.run(&schedule.order, &input).ok()?;
        let fits = match goal {
            Goal::Any => true,
            Goal::Fail => evaluation.failure_known && evaluation.fails,
            Goal::Pass => evaluation.failure_known && !evaluation.fails,
        };
        if !fits || !evaluation.follows_paths() {
            tracing::debug!(?goal, "a coarse schedule does something else");
            return None;
        }
        let values = evaluation.values.iter().enumerate();
        let values =
            values.filter_map(|(index, value)| Some((VarId::from_index(index), (*value)?)));
        Some(Model { schedule, reads_from: evaluation.reads_from, values: values.collect() })
    }
}

/// Why there is no answer.
const FEW_PLACES: &str = "it looked at schedules that switch threads at few places";

impl<S: Session> Session for CoarseSession<'_, S> {
    fn check(&mut self, goal: Goal, orders: &[Order]) -> Result<Outcome, SolverError> {
        self.ask(goal, orders, |inner, orders| inner.check(goal, orders))
    }

    fn check_within(
        &mut self,
        goal: Goal,
        orders: &[Order],
        parts: u32,
    ) -> Result<Outcome, SolverError> {
        self.ask(goal, orders, |inner, orders| inner.check_within(goal, orders, parts))
    }

    fn look_near(&mut self, schedule: &Schedule) {
        if let Some(coarse) = self.coarse.project(schedule) {
            self.inner.look_near(&coarse);
        }
    }
}
