//! The phases one after the other.

use crate::alternates::{Alternates, Wanted, alternates};
use crate::ask::{Asker, Share, Witness};
use crate::context::Context;
use crate::dsp::Dsp;
use crate::error::ExplainError;
use crate::failing::Failing;
use crate::held::{held_orders, named_orders};
use crate::nearest::nearest;
use crate::root_cause::{CauseKind, RootCause, root_cause, witnesses};
use crate::switches::{context_switches, minimise};
use crate::turned::turned;
use encoders::ConstraintSystem;
use model::evaluate::{Check, Evaluation};
use model::{EventId, EventTrace, Schedule};
use solver::{Goal, Model, Order, Outcome, Session, UnknownReason};
use std::time::Duration;

/// How much to look for, and how hard. Work is counted in executed events, so that results do not
/// depend on the machine's speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many alternates to return.
    pub alternates: usize,
    /// How many more to return where they were found without further search, for when one of the
    /// others turns out not to be what the program does.
    pub spare: usize,
    /// How many alternates to find before the best are chosen; at least `alternates`.
    pub examined: usize,
    /// How many pairs to reverse at most.
    pub pairs: usize,
    /// The time of which searches get a part for whose result something else can stand
    /// ([`solver::Limits::shared`]).
    pub time: Duration,
    /// Events to execute for fewer context switches.
    pub switch_work: u64,
    /// Events to execute in search of the root cause without the solver.
    pub cause_work: u64,
    /// Events to execute in search of alternates without the solver.
    pub alternate_work: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            alternates: 1,
            spare: 0,
            examined: 24,
            pairs: 400,
            time: Duration::from_secs(120),
            switch_work: 20_000_000,
            cause_work: 10_000_000,
            alternate_work: 40_000_000,
        }
    }
}

/// Is there a schedule that fails?
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Yes.
    FailingSchedule,
    /// None along the recorded paths.
    NoSchedule,
    /// The solver gave no answer.
    Unknown(UnknownReason),
}

/// The failing schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailingSchedule {
    /// All events of the trace.
    pub schedule: Schedule,
    /// What it does.
    pub evaluation: Evaluation,
}

/// A part of the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Finding a failing schedule.
    Schedule,
    /// Reducing its context switches.
    Switches,
    /// The root cause.
    RootCause,
    /// The alternates.
    Alternates,
}

/// Why a phase ended early.
#[derive(Debug)]
pub enum CutReason {
    /// A limit was reached.
    Limit(UnknownReason),
    /// The phase failed; what was found before is kept.
    Error(ExplainError),
}

/// A phase that ended early.
#[derive(Debug)]
pub struct Cut {
    /// Which.
    pub phase: Phase,
    /// Why.
    pub reason: CutReason,
}

/// Counts of what was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Constraints of the system.
    pub constraints: usize,
    /// Questions to the solver.
    pub solver_calls: usize,
    /// Schedules that the evaluator executed.
    pub evaluated: usize,
    /// Context switches of the solver's schedule.
    pub switches_found: usize,
    /// Context switches of the schedule shown.
    pub switches: usize,
    /// Conflict orders of the failing schedule.
    pub conflict_orders: usize,
}

/// What a failing run is explained by. Parts that were not reached are `None` or empty, and `cut`
/// says why.
#[derive(Debug)]
pub struct Explanation {
    /// Is there a failing schedule?
    pub verdict: Verdict,
    /// The failing schedule.
    pub failing: Option<FailingSchedule>,
    /// The root cause.
    pub root_cause: Option<RootCause>,
    /// The alternates.
    pub alternates: Alternates,
    /// The DSP of each alternate, in the same order.
    pub dsps: Vec<Dsp>,
    /// Phases that ended early.
    pub cut: Vec<Cut>,
    /// What the recorded run's clock was good for.
    pub clock: Clock,
    /// Counts.
    pub statistics: Statistics,
}

impl Explanation {
    fn new(verdict: Verdict) -> Self {
        Self {
            verdict,
            failing: None,
            root_cause: None,
            alternates: Alternates::default(),
            dsps: Vec::new(),
            cut: Vec::new(),
            clock: Clock::default(),
            statistics: Statistics::default(),
        }
    }

    /// Nothing was found before a limit was reached.
    #[must_use]
    pub fn unanswered(reason: UnknownReason) -> Self {
        let mut explanation = Self::new(Verdict::Unknown(reason.clone()));
        explanation.limit(Phase::Schedule, Some(reason));
        explanation
    }

    /// The explanation of a failing schedule that is accepted, with nothing but that.
    pub(crate) fn begun(
        context: &mut Context<'_, '_>,
        schedule: Schedule,
    ) -> Result<(Failing, Self), ExplainError> {
        let failing = Failing::new(context, schedule)
            .map_err(|errors| ExplainError::ModelRejected { goal: Goal::Fail, errors })?;
        let mut explanation = Self::new(Verdict::FailingSchedule);
        let switches = context_switches(context.trace, &failing.schedule);
        explanation.statistics.switches_found = switches;
        explanation.statistics.switches = switches;
        explanation.statistics.conflict_orders = failing.conflicts.len();
        explanation.failing = Some(FailingSchedule {
            schedule: failing.schedule.clone(),
            evaluation: failing.evaluation.clone(),
        });
        Ok((failing, explanation))
    }

    /// A failing schedule and no more: there is nothing left to look for its cause with.
    fn cut_short(trace: &EventTrace, schedule: Schedule, evaluation: Evaluation) -> Self {
        let mut explanation = Self::new(Verdict::FailingSchedule);
        let switches = context_switches(trace, &schedule);
        explanation.statistics.switches_found = switches;
        explanation.statistics.switches = switches;
        explanation.failing = Some(FailingSchedule { schedule, evaluation });
        explanation.limit(Phase::RootCause, Some(UnknownReason::TimeOut));
        explanation
    }

    /// Says that it was another limit than the time that ended the work early.
    pub fn ended_by(&mut self, reason: &UnknownReason) {
        for cut in &mut self.cut {
            if let CutReason::Limit(limit @ UnknownReason::TimeOut) = &mut cut.reason {
                *limit = reason.clone();
            }
        }
        if let Verdict::Unknown(limit @ UnknownReason::TimeOut) = &mut self.verdict {
            *limit = reason.clone();
        }
    }

    pub(crate) fn limit(&mut self, phase: Phase, reason: Option<UnknownReason>) {
        if let Some(reason) = reason {
            self.cut.push(Cut { phase, reason: CutReason::Limit(reason) });
        }
    }
}

/// Explains the failure of a trace. `session` is over `system`, which is of `trace`. `budget` is
/// asked now and then, and ends the work by answering false; what was found until then is kept.
///
/// Where the trace has inputs ([`has_inputs`](crate::has_inputs)), every schedule is compared with
/// the failing one under the same inputs.
///
/// # Errors
/// When the trace has no failure, when the back end fails before a failing schedule is found, and
/// when the evaluator rejects the schedule that the solver found.
pub fn explain(
    trace: &EventTrace,
    system: &ConstraintSystem,
    session: &mut dyn Session,
    options: &Options,
    budget: &dyn Fn() -> bool,
) -> Result<Explanation, ExplainError> {
    explain_with(trace, system, (session, None), options, budget, &|_| {}, &|| None)
}

/// [`explain`], which says at the start of each phase that it begins. `recorded` is a session over
/// the schedules that are like the recorded run as far as its clock tells
/// ([`encoders::encode_recorded`]): the failing schedule is looked for among them first. Where that takes long, `followed`
/// is asked for a failing schedule that follows the recorded run.
///
/// # Errors
/// As [`explain`].
pub fn explain_with(
    trace: &EventTrace,
    system: &ConstraintSystem,
    (session, recorded): (&mut dyn Session, Option<&mut dyn Session>),
    options: &Options,
    budget: &dyn Fn() -> bool,
    begins: &dyn Fn(Phase),
    followed: &dyn Fn() -> Option<Schedule>,
) -> Result<Explanation, ExplainError> {
    begins(Phase::Schedule);
    work(trace, system, session, budget, |context, asker| {
        let mut clock = Clock::Unknown;
        let mut found = None;
        if let Some(recorded) = recorded {
            let is_open = |answer: &Outcome| matches!(answer, Outcome::Unknown(_));
            let mut recorded = Asker::new(recorded);
            let mut answer = find(trace, &mut recorded, Some(Share::Brief))?;
            if is_open(&answer)
                && let Some(schedule) = followed()
            {
                answer = Outcome::Sat(Model { schedule, ..Model::default() });
            }
            if is_open(&answer) {
                answer = find(trace, &mut recorded, Some(Share::First))?;
            }
            if is_open(&answer) {
                // What the recorded run read may be harder to come by than the failure.
                found = Some(find(trace, asker, Some(Share::Second))?).filter(|any| !is_open(any));
                if found.is_none() {
                    answer = find(trace, &mut recorded, None)?;
                }
            }
            clock = match answer {
                Outcome::Sat(_) => Clock::Followed,
                Outcome::Unsat(_) => Clock::Contradicted,
                Outcome::Unknown(_) => Clock::Unknown,
            };
            found = found.or(Some(answer).filter(|answer| matches!(answer, Outcome::Sat(_))));
        }
        let found = match found {
            Some(found) => found,
            None => find(trace, asker, None)?,
        };
        let mut explanation = match found {
            Outcome::Sat(found) => from_model(context, asker, options, &found, begins)?,
            Outcome::Unsat(_) => Explanation::new(Verdict::NoSchedule),
            Outcome::Unknown(reason) => Explanation::unanswered(reason),
        };
        explanation.clock = clock;
        Ok(explanation)
    })
}

/// What the recorded run's clock was good for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clock {
    /// Nothing: there is none, or what it shows was not enough to find a schedule in time.
    #[default]
    Unknown,
    /// The failing schedule agrees with it.
    Followed,
    /// No failing schedule agrees with it, so that it was left out.
    Contradicted,
}

/// Like [`explain`], from a failing schedule that is known already: only its `schedule` and the
/// `values` of inputs are needed. The evaluator checks it like any other.
///
/// # Errors
/// As for [`explain`].
pub fn explain_from(
    trace: &EventTrace,
    system: &ConstraintSystem,
    session: &mut dyn Session,
    found: &Model,
    options: &Options,
    budget: &dyn Fn() -> bool,
) -> Result<Explanation, ExplainError> {
    work(trace, system, session, budget, |context, asker| {
        from_model(context, asker, options, found, &|_| {})
    })
}

fn work(
    trace: &EventTrace,
    system: &ConstraintSystem,
    session: &mut dyn Session,
    budget: &dyn Fn() -> bool,
    run: impl FnOnce(&mut Context<'_, '_>, &mut Asker<'_>) -> Result<Explanation, ExplainError>,
) -> Result<Explanation, ExplainError> {
    if trace.failure.is_none() {
        return Err(ExplainError::NoFailure);
    }
    let mut context = Context::new(trace, budget);
    let mut asker = Asker::new(session);
    let mut explanation = run(&mut context, &mut asker)?;
    explanation.statistics.constraints = system.constraints.len();
    explanation.statistics.solver_calls = asker.calls;
    explanation.statistics.evaluated = context.executed;
    Ok(explanation)
}

/// What is known of a failing schedule without a search takes no time in traces of so many events.
const LONG: usize = 200_000;

fn from_model(
    context: &mut Context<'_, '_>,
    asker: &mut Asker<'_>,
    options: &Options,
    found: &Model,
    begins: &dyn Fn(Phase),
) -> Result<Explanation, ExplainError> {
    asker.within(options.time);
    let evaluation = context.accept_model(Goal::Fail, found)?;
    if context.trace.events.len() > LONG && context.effort.expired() {
        let schedule = found.schedule.clone();
        return Ok(Explanation::cut_short(context.trace, schedule, evaluation));
    }
    let (schedule, whole) = fewer_switches(context, &found.schedule, &evaluation, options);
    let is_cut = context.effort.expired().then_some(UnknownReason::TimeOut);
    let (mut failing, mut explanation) = Explanation::begun(context, schedule)?;
    begins(Phase::RootCause);
    find_witnesses(context, asker, &failing, options);
    if asker.witnesses.is_empty()
        && let Some(passing) = whole
    {
        let order = nearest(context, &failing, passing);
        asker.witnesses.push(Witness::new(context, order));
    }
    if asker.witnesses.is_empty()
        && let Some(apart) = turned(context, &failing)
    {
        (failing, explanation) = Explanation::begun(context, Schedule { order: apart.failing })?;
        asker.witnesses.push(Witness::new(context, apart.passing));
        find_witnesses(context, asker, &failing, options);
    }
    explanation.statistics.switches_found = context_switches(context.trace, &found.schedule);
    explanation.limit(Phase::Switches, is_cut);
    asker.look_near(&failing.schedule);
    find_cause(context, asker, &failing, options, &mut explanation);
    begins(Phase::Alternates);
    find_alternates(context, asker, &failing, options, &mut explanation);
    Ok(explanation)
}

fn find(
    trace: &EventTrace,
    asker: &mut Asker<'_>,
    share: Option<Share>,
) -> Result<Outcome, ExplainError> {
    let _span = tracing::info_span!("failing_schedule").entered();
    let held = held_orders(trace);
    let named = named_orders(trace);
    let all: Vec<Order> = held.iter().chain(&named).copied().collect();
    // What the condition names follows from it, unless one of several orders is enough.
    for wanted in [all, held] {
        if !wanted.is_empty() {
            let found = asker.fails(&wanted, share)?;
            if matches!(found, Outcome::Sat(_)) {
                return Ok(found);
            }
        }
    }
    asker.fails(&[], share)
}

fn fewer_switches(
    context: &mut Context<'_, '_>,
    schedule: &Schedule,
    evaluation: &Evaluation,
    options: &Options,
) -> (Schedule, Option<Vec<EventId>>) {
    let _span = tracing::info_span!("context_switches", events = schedule.order.len()).entered();
    context.effort.allow(options.switch_work);
    minimise(context, schedule, evaluation, Check::Fails)
}

/// Schedules that pass and are near the failing one.
fn find_witnesses(
    context: &mut Context<'_, '_>,
    asker: &mut Asker<'_>,
    failing: &Failing,
    options: &Options,
) {
    let _span = tracing::info_span!("witnesses").entered();
    context.effort.allow(options.cause_work);
    witnesses(context, asker, failing);
}

fn find_cause(
    context: &mut Context<'_, '_>,
    asker: &mut Asker<'_>,
    failing: &Failing,
    options: &Options,
    explanation: &mut Explanation,
) {
    let orders = failing.conflicts.len();
    let _span = tracing::info_span!("root_cause", conflict_orders = orders).entered();
    context.effort.allow(options.cause_work);
    asker.begin();
    match root_cause(context, asker, failing) {
        Ok(found) => {
            explanation.limit(Phase::RootCause, found.cut);
            explanation.root_cause = Some(found.cause);
        }
        Err(error) => {
            let reason = CutReason::Error(error);
            explanation.cut.push(Cut { phase: Phase::RootCause, reason });
        }
    }
}

fn find_alternates(
    context: &mut Context<'_, '_>,
    asker: &mut Asker<'_>,
    failing: &Failing,
    options: &Options,
    explanation: &mut Explanation,
) {
    let Some(cause) = &explanation.root_cause else { return };
    if cause.kind == CauseKind::FailsAlways || options.alternates == 0 {
        return;
    }
    let _span = tracing::info_span!("alternates", core = cause.orders.len()).entered();
    context.effort.allow(options.alternate_work);
    asker.begin();
    // Who did not find a schedule that passes in all that time hardly finds one with orders besides.
    if asker.witnesses.is_empty() && !explanation.cut.is_empty() {
        asker.be_brief();
    }
    let wanted = Wanted {
        alternates: options.alternates,
        spare: options.spare,
        examined: options.examined,
        pairs: options.pairs,
    };
    match alternates(context, asker, failing, cause, wanted) {
        Ok(found) => {
            explanation.limit(Phase::Alternates, found.cut);
            explanation.alternates = found.alternates;
            explanation.dsps = found.dsps;
        }
        Err(error) => {
            let reason = CutReason::Error(error);
            explanation.cut.push(Cut { phase: Phase::Alternates, reason });
        }
    }
}
