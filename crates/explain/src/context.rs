//! What all phases share: the trace, the evaluator, the inputs, and what may still be spent.

use crate::error::ExplainError;
use crate::happens_before::HappensBefore;
use model::evaluate::{Check, Evaluation, EvaluationError, Evaluator};
use model::{EventId, EventTrace, Schedule, VarId, VariableOrigin};
use solver::{Goal, Model};
use std::collections::BTreeMap;

/// The values of the variables that no read returns.
#[derive(Clone, Debug, Default)]
pub(crate) struct InputValues(Vec<Option<u128>>);

impl InputValues {
    /// A model's values; a variable that the constraints do not mention may have any value, so
    /// that the recorded one, or 0, will do.
    pub(crate) fn new(trace: &EventTrace, values: &BTreeMap<VarId, u128>) -> Self {
        let value = |v: &model::Variable| match v.origin {
            VariableOrigin::Read { .. } => None,
            _ => Some(values.get(&v.id).copied().or(v.recorded).unwrap_or(0)),
        };
        Self(trace.variables.iter().map(value).collect())
    }

    pub(crate) fn get(&self, var: VarId) -> Option<u128> {
        self.0.get(var.index()).copied().flatten()
    }
}

/// Limits a phase: a number of events that may be executed, and the caller's own budget.
pub(crate) struct Effort<'b> {
    left: u64,
    spent: bool,
    budget: &'b dyn Fn() -> bool,
    /// Executions until the caller's budget is asked again, and events of these.
    until_poll: (u32, u64),
    expired: bool,
}

/// How many executions go between two questions to the caller's budget.
const POLL_INTERVAL: u32 = 32;
/// The same in events: executions of long schedules take time and memory.
const POLL_EVENTS: u64 = 1_000_000;

impl<'b> Effort<'b> {
    pub(crate) fn new(budget: &'b dyn Fn() -> bool) -> Self {
        Self { left: 0, spent: false, budget, until_poll: (0, 0), expired: false }
    }

    /// Starts a phase that may execute this many events.
    pub(crate) fn allow(&mut self, events: u64) {
        self.left = events;
        self.spent = false;
    }

    /// Has the caller's budget ended?
    pub(crate) fn expired(&mut self) -> bool {
        self.expired = self.expired || !(self.budget)();
        self.expired
    }

    /// Was something refused already?
    pub(crate) fn is_spent(&self) -> bool {
        self.spent
    }

    /// Is there enough left for one execution, which is not taken?
    pub(crate) fn affords(&self, events: u64) -> bool {
        !self.expired && self.left >= events
    }

    /// Takes the cost of one execution; false when there is nothing left.
    pub(crate) fn spend(&mut self, events: u64) -> bool {
        let (executions, of_events) = self.until_poll;
        if executions == 0 || of_events == 0 {
            self.until_poll = (POLL_INTERVAL, POLL_EVENTS);
            self.expired();
        }
        let (executions, of_events) = self.until_poll;
        self.until_poll = (executions - 1, of_events.saturating_sub(events));
        if self.expired || self.left < events {
            self.spent = true;
            return false;
        }
        self.left -= events;
        true
    }
}

/// The shared context.
pub(crate) struct Context<'t, 'b> {
    pub(crate) trace: &'t EventTrace,
    pub(crate) evaluator: Evaluator<'t>,
    /// The failing schedule's inputs, which all schedules compared with it have too.
    pub(crate) inputs: InputValues,
    pub(crate) effort: Effort<'b>,
    /// How many schedules were executed.
    pub(crate) executed: usize,
    /// By event, the number of read parts of all events before it.
    first_reads: Vec<usize>,
}

impl<'t, 'b> Context<'t, 'b> {
    pub(crate) fn new(trace: &'t EventTrace, budget: &'b dyn Fn() -> bool) -> Self {
        let mut reads = 0;
        let first_reads = trace.events.iter().map(|event| {
            let first = reads;
            reads += event.kind.reads().len();
            first
        });
        Self {
            first_reads: first_reads.collect(),
            trace,
            evaluator: Evaluator::new(trace),
            inputs: InputValues::default(),
            effort: Effort::new(budget),
            executed: 0,
        }
    }

    /// The place of an event's first read part among [`Evaluator::sources`].
    pub(crate) fn read_index(&self, id: EventId) -> usize {
        self.first_reads[id.index()]
    }

    /// The verdict on a schedule; `None` when the phase's effort is spent.
    pub(crate) fn check(&mut self, order: &[EventId]) -> Option<Check> {
        if !self.effort.spend(order.len() as u64) {
            return None;
        }
        self.executed += 1;
        let inputs = &self.inputs;
        Some(self.evaluator.check(order, &|var| inputs.get(var)))
    }

    /// The full evaluation of a schedule; not limited, since results depend on it.
    pub(crate) fn evaluate(
        &mut self,
        order: &[EventId],
    ) -> Result<Evaluation, Vec<EvaluationError>> {
        self.executed += 1;
        let inputs = &self.inputs;
        self.evaluator.run(order, &|var| inputs.get(var))
    }

    /// Takes a model's inputs over.
    pub(crate) fn take_inputs(&mut self, found: &Model) {
        self.inputs = InputValues::new(self.trace, &found.values);
    }

    /// Checks a solver's model in every respect and takes its inputs over.
    pub(crate) fn accept_model(
        &mut self,
        goal: Goal,
        found: &Model,
    ) -> Result<Evaluation, ExplainError> {
        self.take_inputs(found);
        let evaluation = accepted(goal, self.evaluate(&found.schedule.order))?;
        for (read, solver) in &found.reads_from {
            match evaluation.reads_from.get(read) {
                Some(evaluator) if evaluator == solver => {}
                other => {
                    let (read, solver) = (*read, *solver);
                    let evaluator = other.copied().unwrap_or(model::WriteSource::Init);
                    return Err(ExplainError::SourceDisagrees { read, solver, evaluator });
                }
            }
        }
        for (&variable, &solver) in &found.values {
            match evaluation.values.get(variable.index()).copied().flatten() {
                Some(evaluator) if evaluator != solver => {
                    return Err(ExplainError::ValueDisagrees { variable, solver, evaluator });
                }
                _ => {}
            }
        }
        Ok(evaluation)
    }

    /// Evaluates a schedule that passes on the recorded paths with the failing schedule's inputs.
    pub(crate) fn passing(&mut self, order: &[EventId]) -> Result<Evaluation, ExplainError> {
        accepted(Goal::Pass, self.evaluate(order))
    }

    pub(crate) fn happens_before(&self, schedule: &Schedule) -> HappensBefore {
        HappensBefore::new(self.trace, &schedule.order)
    }
}

/// Does an evaluation fulfil the goal along the recorded paths?
fn accepted(
    goal: Goal,
    evaluation: Result<Evaluation, Vec<EvaluationError>>,
) -> Result<Evaluation, ExplainError> {
    let evaluation = evaluation.map_err(|errors| ExplainError::ModelRejected { goal, errors })?;
    if !evaluation.follows_paths() {
        let violated = evaluation.violated.iter().copied().map(EvaluationError::ConditionViolated);
        let unknown =
            evaluation.undetermined.iter().copied().map(EvaluationError::ConditionUnknown);
        return Err(ExplainError::ModelRejected {
            goal,
            errors: violated.chain(unknown).collect(),
        });
    }
    let fails = evaluation.failure_known.then_some(evaluation.fails);
    let right = match goal {
        Goal::Fail => fails == Some(true),
        Goal::Pass => fails == Some(false),
        Goal::Any => true,
    };
    if right { Ok(evaluation) } else { Err(ExplainError::WrongOutcome { goal, fails }) }
}
