//! Sessions around sessions.

use crate::session::{Goal, Order, Outcome, Session, SolverError};
use model::Schedule;
use std::io::Write;

/// Writes every question and answer as a line of text.
pub struct LoggingSession<S, W> {
    inner: S,
    log: W,
}

impl<S: Session, W: Write> LoggingSession<S, W> {
    /// Logs what `inner` is asked and answers.
    pub fn new(inner: S, log: W) -> Self {
        Self { inner, log }
    }
}

impl<S: Session, W: Write> Session for LoggingSession<S, W> {
    fn check(&mut self, goal: Goal, orders: &[Order]) -> Result<Outcome, SolverError> {
        let answer = self.inner.check(goal, orders);
        let orders: Vec<_> =
            orders.iter().map(|order| format!("{}<{}", order.before, order.after)).collect();
        let shown = match &answer {
            Ok(outcome) => summary(outcome),
            Err(error) => format!("error: {error}"),
        };
        // A log that cannot be written must not change the answer.
        let _ = writeln!(self.log, "{goal:?} [{}] -> {shown}", orders.join(" "));
        answer
    }

    fn look_near(&mut self, schedule: &Schedule) {
        self.inner.look_near(schedule);
    }
}

/// Asks two sessions and compares: satisfiable or not, and the cores.
pub struct CrossCheckSession<A, B> {
    first: A,
    second: B,
}

impl<A: Session, B: Session> CrossCheckSession<A, B> {
    /// Answers with what `first` says, once `second` agrees.
    pub fn new(first: A, second: B) -> Self {
        Self { first, second }
    }
}

impl<A: Session, B: Session> Session for CrossCheckSession<A, B> {
    fn check(&mut self, goal: Goal, orders: &[Order]) -> Result<Outcome, SolverError> {
        let first = self.first.check(goal, orders)?;
        if let Outcome::Unsat(core) = &first {
            // A core claims more than "unsatisfiable", so that is what has to be confirmed.
            let core: Vec<Order> =
                core.iter().filter_map(|&index| orders.get(index).copied()).collect();
            let second = self.second.check(goal, &core)?;
            return agree(first, second);
        }
        let second = self.second.check(goal, orders)?;
        agree(first, second)
    }

    fn look_near(&mut self, schedule: &Schedule) {
        self.first.look_near(schedule);
        self.second.look_near(schedule);
    }
}

fn agree(first: Outcome, second: Outcome) -> Result<Outcome, SolverError> {
    match (&first, &second) {
        (Outcome::Sat(_), Outcome::Unsat(_)) | (Outcome::Unsat(_), Outcome::Sat(_)) => {
            Err(SolverError::Disagreement { first: summary(&first), second: summary(&second) })
        }
        // What one session cannot tell the other one may; a core that the second found belongs
        // to the same orders, since the first gave none.
        (Outcome::Unknown(_), _) => Ok(second),
        _ => Ok(first),
    }
}

fn summary(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Sat(model) => {
            let order: Vec<_> = model.schedule.order.iter().map(ToString::to_string).collect();
            format!("sat [{}]", order.join(" "))
        }
        Outcome::Unsat(core) => format!("unsat {core:?}"),
        Outcome::Unknown(reason) => format!("unknown: {reason}"),
    }
}
