//! Z3 as a linked library.
//!
//! Each session has a thread with a Z3 context of its own: a context shared between sessions
//! would make a session's answers depend on the sessions before it, and Z3's objects cannot move
//! between threads.

use crate::extract::{self, Assignment};
use crate::formula::{self, Formula};
use crate::session::{Goal, Limits, Order, Outcome, Session, SolverError, UnknownReason};
use encoders::ConstraintSystem;
use model::{EventTrace, VarId};
use rustc_hash::FxHashMap;
use std::cmp::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use z3::ast::{Ast, BV, Bool, Int};
use z3::{Params, SatResult, Solver};

/// How long a session waits for Z3 to keep its own time limit.
const GRACE: Duration = Duration::from_secs(5);

/// Z3 takes some hundred times as much memory for a formula as its text has bytes, and is asked for what another solver
/// leaves open only up to this many bytes of text.
const LARGEST: usize = 16 << 20;

/// Up to this many events Z3's dense difference logic is used: on contended traces it was three to
/// five times as fast as the general arithmetic. Its memory grows with the square of the events.
const MAX_DENSE: usize = 2_000;

/// A session with the linked Z3.
pub struct Z3Session<'a> {
    trace: &'a EventTrace,
    formula: Formula,
    limits: Limits,
    /// When all questions have to be over.
    ends: Option<Instant>,
    worker: Option<Worker>,
    /// A thread that did not keep its time limit, and may be at work still.
    lost: Option<JoinHandle<()>>,
}

struct Worker {
    questions: Sender<Question>,
    answers: Receiver<Result<Answer, SolverError>>,
    thread: JoinHandle<()>,
}

struct Question {
    goal: Goal,
    orders: Vec<Order>,
    time: Option<Duration>,
}

/// An outcome whose model is still an assignment.
enum Answer {
    Sat(Assignment),
    Unsat(Vec<usize>),
    Unknown(UnknownReason),
}

impl<'a> Z3Session<'a> {
    /// A session over the system of a trace.
    ///
    /// # Errors
    /// When an expression cannot be expressed.
    pub fn new(
        trace: &'a EventTrace,
        system: &ConstraintSystem,
        limits: Limits,
    ) -> Result<Self, SolverError> {
        let formula = Formula::of(trace, system)?;
        Ok(Self::of_formula(trace, formula, limits))
    }

    /// As [`new`](Self::new), but `None` where the system is too large for Z3 to answer in any time that there is: it
    /// would take gigabytes before it looked at its clock.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub(crate) fn of_usual_size(
        trace: &'a EventTrace,
        system: &ConstraintSystem,
        limits: Limits,
    ) -> Result<Option<Self>, SolverError> {
        let formula = Formula::within(trace, system, LARGEST)?;
        Ok(formula.map(|formula| Self::of_formula(trace, formula, limits)))
    }

    fn of_formula(trace: &'a EventTrace, formula: Formula, limits: Limits) -> Self {
        Self { trace, formula, limits, ends: None, worker: None, lost: None }
    }

    /// The session, of which no question is worked on any longer at this time, whatever its own limit.
    #[must_use]
    pub fn ending_at(mut self, ends: Option<Instant>) -> Self {
        self.ends = ends;
        self
    }

    /// Asks Z3. Of what it may take, the thread that it has is made at the first question.
    fn ask(&mut self, question: Question) -> Result<Answer, SolverError> {
        let left = self.ends.map(|ends| ends.saturating_duration_since(Instant::now()));
        let is_busy = self.lost.as_ref().is_some_and(|thread| !thread.is_finished());
        if is_busy || left.is_some_and(|left| left.is_zero()) {
            return Ok(Answer::Unknown(UnknownReason::TimeOut));
        }
        let time = question.time.into_iter().chain(left).min();
        let question = Question { time, ..question };
        if self.worker.is_none() {
            self.worker = Some(Worker::start(self.formula.clone(), self.trace, self.limits)?);
        }
        let Some(worker) = &self.worker else { return self.ended() };
        if worker.questions.send(question).is_err() {
            return self.ended();
        }
        let Some(limit) = time else {
            return worker.answers.recv().unwrap_or_else(|_| self.ended());
        };
        let wait = left.into_iter().chain([limit + GRACE]).min().unwrap_or(limit);
        match worker.answers.recv_timeout(wait) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Disconnected) => self.ended(),
            Err(RecvTimeoutError::Timeout) => {
                // Z3 looks at its clock now and then only. The thread is left to itself. A new one while it is at
                // work would take as much memory again, to come no further.
                self.lost = self.worker.take().map(|worker| worker.thread);
                Ok(Answer::Unknown(UnknownReason::TimeOut))
            }
        }
    }
}

impl Z3Session<'_> {
    /// The solver's thread has ended: out of memory the library gives no objects, without which
    /// the thread cannot go on.
    fn ended(&self) -> Result<Answer, SolverError> {
        if self.limits.memory_mb.is_some() {
            return Ok(Answer::Unknown(UnknownReason::Memory));
        }
        Err(SolverError::Process {
            command: "z3".to_owned(),
            message: "the solver's thread has ended".to_owned(),
        })
    }
}

impl Session for Z3Session<'_> {
    fn check(&mut self, goal: Goal, orders: &[Order]) -> Result<Outcome, SolverError> {
        self.check_within(goal, orders, 1)
    }

    fn check_within(
        &mut self,
        goal: Goal,
        orders: &[Order],
        parts: u32,
    ) -> Result<Outcome, SolverError> {
        crate::session::check_question(self.trace, self.formula.has_failure, goal, orders)?;
        let span = tracing::trace_span!("z3", ?goal, orders = orders.len());
        let _guard = span.enter();
        let time = self.limits.share(parts);
        Ok(match self.ask(Question { goal, orders: orders.to_vec(), time })? {
            Answer::Sat(assignment) => extract::outcome(self.trace, &assignment),
            Answer::Unsat(core) => Outcome::Unsat(core),
            Answer::Unknown(reason) => Outcome::Unknown(reason),
        })
    }
}

impl Worker {
    fn start(formula: Formula, trace: &EventTrace, limits: Limits) -> Result<Self, SolverError> {
        let (questions, asked) = channel::<Question>();
        let (reply, answers) = channel();
        let events = trace.events.len();
        let run = move || {
            let mut engine = match Engine::new(&formula, events, limits) {
                Ok(engine) => engine,
                Err(error) => {
                    // Nobody listens when the session is gone.
                    let _ = reply.send(Err(error));
                    return;
                }
            };
            while let Ok(Question { goal, orders, time }) = asked.recv() {
                if time != engine.time {
                    engine.limit(time);
                }
                if reply.send(engine.check(goal, &orders)).is_err() {
                    return;
                }
            }
        };
        let spawned = thread::Builder::new().name("z3".to_owned()).spawn(run);
        match spawned {
            Ok(thread) => Ok(Self { questions, answers, thread }),
            Err(error) => {
                Err(SolverError::Process { command: "z3".to_owned(), message: error.to_string() })
            }
        }
    }
}

/// What lives in the solver's thread.
struct Engine {
    solver: Solver,
    /// Is there a memory limit?
    limited: bool,
    /// The time limit of the next check.
    time: Option<Duration>,
    places: Vec<Int>,
    variables: Vec<(VarId, BV)>,
    orders: FxHashMap<Order, Bool>,
}

impl Engine {
    fn new(formula: &Formula, events: usize, limits: Limits) -> Result<Self, SolverError> {
        if let Some(megabytes) = limits.memory_mb {
            // The library has one limit for all of its contexts.
            z3::set_global_param("memory_max_size", &megabytes.to_string());
        }
        let solver = Solver::new();
        solver.set_params(&parameters(events, limits));
        solver.from_string(formula.text.as_str());
        let asserted = solver.get_assertions().len();
        if asserted != formula.assertions {
            return Err(SolverError::Answer {
                command: "z3".to_owned(),
                answer: format!("{asserted} of {} assertions were taken", formula.assertions),
            });
        }
        let places = (0..events).map(|event| Int::new_const(format!("e{event}"))).collect();
        let variables = formula
            .variables
            .iter()
            .map(|&(var, width)| (var, BV::new_const(var.to_string(), width)))
            .collect();
        Ok(Self {
            solver,
            limited: limits.memory_mb.is_some(),
            time: limits.time,
            places,
            variables,
            orders: FxHashMap::default(),
        })
    }

    fn limit(&mut self, time: Option<Duration>) {
        let mut params = Params::new();
        params.set_u32("timeout", time.map_or(u32::MAX, milliseconds));
        self.solver.set_params(&params);
        self.time = time;
    }

    fn check(&mut self, goal: Goal, orders: &[Order]) -> Result<Answer, SolverError> {
        let mut assumptions: Vec<Bool> = orders.iter().map(|&order| self.order(order)).collect();
        // The first of equal orders stands for all of them.
        let mut indices: FxHashMap<Bool, usize> = FxHashMap::default();
        for (index, literal) in assumptions.iter().enumerate() {
            indices.entry(literal.clone()).or_insert(index);
        }
        if goal != Goal::Any {
            assumptions.push(Bool::new_const(formula::goal_name(goal)));
        }
        match self.solver.check_assumptions(&assumptions) {
            SatResult::Sat => self.assignment().map(Answer::Sat),
            SatResult::Unsat => {
                let core = self.solver.get_unsat_core();
                let mut core: Vec<usize> =
                    core.iter().filter_map(|literal| indices.get(literal).copied()).collect();
                core.sort_unstable();
                Ok(Answer::Unsat(core))
            }
            SatResult::Unknown => {
                let reason = self.solver.get_reason_unknown().unwrap_or_default();
                // Z3 has no better word for the end of its memory.
                if self.limited && reason == "unknown" {
                    return Ok(Answer::Unknown(UnknownReason::Memory));
                }
                Ok(Answer::Unknown(UnknownReason::of_solver(&reason)))
            }
        }
    }

    /// The literal that implies an order.
    fn order(&mut self, order: Order) -> Bool {
        let (places, solver) = (&self.places, &self.solver);
        let new = || {
            let literal = Bool::new_const(formula::order_name(order.before, order.after));
            let (before, after) = (&places[order.before.index()], &places[order.after.index()]);
            // The same form as in the formula.
            let holds = match order.before.cmp(&order.after) {
                Ordering::Less => before.lt(after),
                Ordering::Equal => Bool::from_bool(false),
                Ordering::Greater => after.lt(before).not(),
            };
            solver.assert(literal.implies(holds));
            literal
        };
        self.orders.entry(order).or_insert_with(new).clone()
    }

    fn assignment(&self) -> Result<Assignment, SolverError> {
        let incomplete = || SolverError::Answer {
            command: "z3".to_owned(),
            answer: "an incomplete model".to_owned(),
        };
        let model = self.solver.get_model().ok_or_else(incomplete)?;
        let place = |place: &Int| model.eval(place, true)?.as_i64();
        let places: Option<Vec<i64>> = self.places.iter().map(place).collect();
        let mut assignment =
            Assignment { places: places.ok_or_else(incomplete)?, ..Assignment::default() };
        for (var, bits) in &self.variables {
            let value = value(&model, bits).ok_or_else(incomplete)?;
            assignment.values.insert(*var, value);
        }
        Ok(assignment)
    }
}

/// A bit-vector's value, read in pieces of 64 bits.
fn value(model: &z3::Model, bits: &BV) -> Option<u128> {
    let width = bits.get_size();
    let piece = |low: u32| {
        let high = (low + 63).min(width - 1);
        let value = model.eval(&bits.extract(high, low), true)?.simplify().as_u64()?;
        Some(u128::from(value))
    };
    let low = piece(0)?;
    if width > 64 { Some(low | (piece(64)? << 64)) } else { Some(low) }
}

fn parameters(events: usize, limits: Limits) -> Params {
    let mut params = Params::new();
    params.set_u32("random_seed", 0);
    if events <= MAX_DENSE {
        params.set_bool("auto_config", false);
        params.set_u32("arith.solver", 3);
    }
    if let Some(time) = limits.time {
        params.set_u32("timeout", milliseconds(time));
    }
    params
}

/// For Z3, which takes 0 for no limit.
fn milliseconds(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX).max(1)
}
