//! An ordering solver for one recorded run: booleans say where reads take their values from and
//! which event comes first, the order is kept acyclic while it grows, and values follow by
//! evaluation. (The ordering-consistency theory of He, Sun and Fan, PLDI 2021, for one path.)
//!
//! What evaluation alone cannot settle, because it depends on inputs, is left to Z3.

mod clauses;
mod flows;
mod graph;
mod heap;
mod literal;
mod probes;
mod search;
mod terms;
mod values;

use crate::extract::{self, Assignment};
use crate::forward::Forward;
use crate::session::{
    Goal, Limits, Model, Order, Outcome, Session, SolverError, UnknownReason, check_question,
};
use crate::z3_session::Z3Session;
use encoders::{ConstraintKind, ConstraintSystem, Term};
use graph::{Graph, Locks};
use literal::Literal;
use model::evaluate::evaluate;
use model::{EventTrace, Schedule, VarId};
use rustc_hash::FxHashSet;
use search::{Answer, Search};
use std::time::Instant;
use terms::Clauses;

const MEGABYTE: usize = 1 << 20;

/// What a search took, the same on every machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// How often what was decided led to a contradiction.
    pub conflicts: u64,
    /// How many decisions were taken.
    pub decisions: u64,
}

/// After so many conflicts schedules that may fail are tried out.
const PROBED: u64 = 300;
/// The clock is looked at after so many constraints.
const SELDOM: usize = 256;
/// The part of a question's time that this may take.
const PROBING: u32 = 8;

/// A session with the ordering solver.
pub struct OrderingSession<'a> {
    trace: &'a EventTrace,
    system: &'a ConstraintSystem,
    limits: Limits,
    /// When all questions have to be over.
    ends: Option<Instant>,
    /// None when no schedule exists at all, and when the time was up before the system was taken in.
    search: Option<Search<'a>>,
    /// The time was up before the system was taken in.
    is_cut: bool,
    /// φbug.
    failure: Option<Literal>,
    /// For what evaluation cannot settle.
    fallback: Option<Z3Session<'a>>,
    /// After so many conflicts a failing schedule is looked for in another way.
    patience: u64,
}

/// After so many conflicts a failing schedule is looked for from its beginning, where the clock is
/// known: most that are found at all are found by then.
const PATIENCE: u64 = 20_000;

impl<'a> OrderingSession<'a> {
    /// A session over the system of a trace.
    #[must_use]
    pub fn new(trace: &'a EventTrace, system: &'a ConstraintSystem, limits: Limits) -> Self {
        Self::with_eager(trace, system, limits, terms::EAGER)
    }

    /// The session, of which nothing is worked on any longer at `ends`, whatever the limits of its questions: neither a
    /// question nor, before the first one, the system.
    #[must_use]
    pub fn until(
        trace: &'a EventTrace,
        system: &'a ConstraintSystem,
        limits: Limits,
        ends: Option<Instant>,
    ) -> Self {
        Self::made(trace, system, (limits, ends), terms::EAGER)
    }

    /// The session, with its two ways to decide taking turns from so many conflicts on. The answers
    /// are the same, apart from which schedule is found.
    #[must_use]
    pub fn with_turns_of(mut self, conflicts: u64) -> Self {
        if let Some(search) = &mut self.search {
            search.take_turns_of(conflicts);
        }
        self
    }

    /// The session, which goes back no more than so many levels to where what a conflict taught says
    /// something already. The answers are the same, apart from which schedule is found.
    #[must_use]
    pub fn going_back_at_most(mut self, levels: usize) -> Self {
        if let Some(search) = &mut self.search {
            search.far = levels;
        }
        self
    }

    /// The session, which looks for a failing schedule from its beginning after so many conflicts. The
    /// answers are the same, apart from which schedule is found.
    #[must_use]
    pub fn with_patience(mut self, conflicts: u64) -> Self {
        self.patience = conflicts;
        self
    }

    /// Like [`new`](Self::new), with the clauses about writes between reads and their sources there
    /// from the start when they are up to `eager` many. The answers are the same, apart from which
    /// schedule is found.
    #[must_use]
    pub fn with_eager(
        trace: &'a EventTrace,
        system: &'a ConstraintSystem,
        limits: Limits,
        eager: usize,
    ) -> Self {
        Self::made(trace, system, (limits, None), eager)
    }

    fn made(
        trace: &'a EventTrace,
        system: &'a ConstraintSystem,
        (limits, ends): (Limits, Option<Instant>),
        eager: usize,
    ) -> Self {
        let mut session = Self {
            trace,
            system,
            limits,
            ends,
            search: None,
            is_cut: false,
            failure: None,
            fallback: None,
            patience: PATIENCE,
        };
        let (events, locks) = (trace.events.len(), Locks::of(trace));
        let certain = certain(trace, system);
        let Some(graph) = Graph::new(events, &certain, system.moments(), &locks) else {
            return session;
        };
        let mut search = Search::new(trace, system, (graph, locks));
        let mut clauses = Clauses::new(&mut search, system, &trace.exprs, eager);
        let constraints = system.constraints.iter().map(|constraint| &constraint.term);
        let open = constraints.filter(|term| !matches!(term, Term::Before(..)));
        let is_over = |count: usize| {
            count.is_multiple_of(SELDOM) && ends.is_some_and(|ends| Instant::now() >= ends)
        };
        let is_cut = &mut session.is_cut;
        let open = open.enumerate().take_while(|(count, _)| {
            *is_cut |= is_over(*count);
            !*is_cut
        });
        let asserted = open.map(|(_, term)| term).try_for_each(|term| clauses.assert(term));
        if session.is_cut {
            return session;
        }
        let failure = system.failure.as_ref().map(|failure| clauses.literal(failure)).transpose();
        let (Ok(()), Ok(failure)) = (asserted, failure) else { return session };
        search.prefer();
        session.failure = failure;
        session.search = Some(search);
        session
    }

    /// What all questions together took so far.
    #[must_use]
    pub fn work(&self) -> Work {
        self.search.as_ref().map(Search::work).unwrap_or_default()
    }

    fn fall_back(
        &mut self,
        goal: Goal,
        orders: &[Order],
        parts: u32,
    ) -> Result<Outcome, SolverError> {
        let session = match self.fallback.take() {
            Some(session) => session,
            None => {
                let session = Z3Session::of_usual_size(self.trace, self.system, self.limits)?;
                let Some(session) = session else {
                    tracing::debug!("too much for Z3");
                    let why = "values that no order determines matter, and there are too many constraints on them";
                    return Ok(Outcome::Unknown(UnknownReason::GaveUp(why.to_owned())));
                };
                session
            }
        };
        let session = session.ending_at(self.ends);
        self.fallback.insert(session).check_within(goal, orders, parts)
    }
}

/// Does what was guessed hold? Of values that neither a write nor the search determines, the recorded ones
/// are tried, with which the program came this way once.
fn holds(trace: &EventTrace, goal: Goal, model: &Model) -> bool {
    let values = |var: VarId| model.values.get(&var).copied();
    let Ok(evaluation) = evaluate(trace, &model.schedule, &values) else { return false };
    match goal {
        Goal::Any => true,
        Goal::Fail => evaluation.fails,
        Goal::Pass => evaluation.failure_known && !evaluation.fails,
    }
}

/// The orders that hold in every schedule: program order, and constraints that are nothing else.
pub(crate) fn certain(trace: &EventTrace, system: &ConstraintSystem) -> Vec<(u32, u32)> {
    let threads = trace.threads.iter().flat_map(|thread| thread.events.windows(2));
    let mut edges: Vec<(u32, u32)> = threads.map(|pair| (pair[0].0, pair[1].0)).collect();
    edges.extend(system.constraints.iter().filter_map(|constraint| match constraint.term {
        Term::Before(a, b) => Some((a.0, b.0)),
        _ => None,
    }));
    edges
}

impl Session for OrderingSession<'_> {
    fn check(&mut self, goal: Goal, orders: &[Order]) -> Result<Outcome, SolverError> {
        self.check_within(goal, orders, 1)
    }

    fn look_near(&mut self, schedule: &Schedule) {
        if let Some(search) = &mut self.search {
            search.look_near(&schedule.order);
        }
    }

    fn check_within(
        &mut self,
        goal: Goal,
        orders: &[Order],
        parts: u32,
    ) -> Result<Outcome, SolverError> {
        check_question(self.trace, self.system.failure.is_some(), goal, orders)?;
        let span = tracing::trace_span!("ordering", ?goal, orders = orders.len());
        let _guard = span.enter();
        if self.is_cut {
            return Ok(Outcome::Unknown(UnknownReason::TimeOut));
        }
        let Some(search) = &mut self.search else { return Ok(Outcome::Unsat(Vec::new())) };
        let assumed: Vec<Literal> =
            orders.iter().map(|order| search.order(order.before.0, order.after.0)).collect();
        let goal_literal = match goal {
            Goal::Any => None,
            Goal::Fail => self.failure,
            Goal::Pass => self.failure.map(|failure| !failure),
        };
        let assumptions: Vec<Literal> = goal_literal.into_iter().chain(assumed.clone()).collect();
        let limits = self.limits;
        let deadline = limits.share(parts).map(|time| Instant::now() + time);
        let deadline = deadline.into_iter().chain(self.ends).min();
        let mut goes_on = |bytes: usize| {
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Err(UnknownReason::TimeOut);
            }
            match limits.memory_mb {
                Some(most) if bytes / MEGABYTE >= most as usize => Err(UnknownReason::Memory),
                _ => Ok(()),
            }
        };
        let before = search.work();
        let by_clock = |c: &encoders::Constraint| c.kind == ConstraintKind::Clock;
        let forward = goal == Goal::Fail && self.system.constraints.iter().any(by_clock);
        let probes = goal == Goal::Fail && orders.is_empty();
        let patience = forward.then_some(before.conflicts + self.patience);
        search.pause = match probes {
            true => Some(before.conflicts + self.patience.min(PROBED)),
            false => patience,
        };
        let mut answer = search.solve(&assumptions, &mut goes_on);
        search.pause = patience;
        if probes && matches!(answer, Answer::Paused) {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let until = left.map(|left| Instant::now() + left / PROBING);
            let found = self.probe(|| until.is_none_or(|until| Instant::now() < until));
            tracing::debug!(found = found.is_some(), "tried schedules out");
            let Some(search) = &mut self.search else { return Ok(Outcome::Unsat(Vec::new())) };
            if let Some(order) = found {
                search.look_near(&order);
            }
            answer = search.solve(&assumptions, &mut goes_on);
        }
        let Some(search) = &mut self.search else { return Ok(Outcome::Unsat(Vec::new())) };
        search.pause = None;
        if matches!(answer, Answer::Paused) {
            let until = deadline.map(|deadline| {
                let now = Instant::now();
                now + deadline.saturating_duration_since(now) / 5 * 4
            });
            let mut orders_known = certain(self.trace, self.system);
            orders_known.extend(orders.iter().map(|order| (order.before.0, order.after.0)));
            let may = |bytes: usize| {
                goes_on(bytes).is_ok() && until.is_none_or(|until| Instant::now() < until)
            };
            let found =
                Forward::new(self.trace, &orders_known).and_then(|mut forward| forward.find(may));
            tracing::debug!(found = found.is_some(), "looked forward");
            if let Some(order) = found {
                search.look_near(&order);
            }
            answer = search.solve(&assumptions, &mut goes_on);
        }
        let work = search.work();
        tracing::debug!(
            ?goal,
            orders = orders.len(),
            conflicts = work.conflicts - before.conflicts,
            decisions = work.decisions - before.decisions,
            answer = answer.name(),
            "answered"
        );
        match answer {
            Answer::Unknown(reason) => Ok(Outcome::Unknown(reason)),
            Answer::Paused => Ok(Outcome::Unknown(UnknownReason::TimeOut)),
            Answer::Unsatisfiable(core) => {
                let mut core: FxHashSet<Literal> = core.into_iter().collect();
                // Of equal assumptions one is enough.
                let indices = (0..assumed.len()).filter(|&index| core.remove(&assumed[index]));
                Ok(Outcome::Unsat(indices.collect()))
            }
            Answer::Satisfiable => {
                let places = search.places().iter().map(|&place| i64::from(place)).collect();
                let known = search.values();
                let values =
                    known.variables().filter_map(|var| Some((var, known.value(var)?))).collect();
                let assignment = Assignment { places, values };
                let model = extract::model(self.trace, &assignment);
                if search.is_guess() && !holds(self.trace, goal, &model) {
                    tracing::debug!("the values that are left do not fit");
                    return self.fall_back(goal, orders, parts);
                }
                Ok(Outcome::Sat(model))
            }
        }
    }
}
