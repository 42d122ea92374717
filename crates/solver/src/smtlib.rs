//! Any SMT-LIB 2 solver, as a process.

use crate::extract::{self, Assignment};
use crate::formula::{self, Formula};
use crate::session::{
    Goal, Limits, Order, Outcome, Session, SolverError, UnknownReason, check_question,
};
use encoders::ConstraintSystem;
use model::EventTrace;
use rsmt2::parse::{ExprParser, SmtParser, SymParser, ValueParser};
use rsmt2::{SmtConf, SmtRes, Solver};
use std::collections::BTreeMap;
use std::io::{BufRead, Read, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Says its process identifier, so that it can be ended, then becomes the solver. `%` stands for
/// the memory limit.
const WRAPPER: &str = "%echo $$; exec \"$@\"";

/// Reads whatever the solver answers as text.
#[derive(Clone, Copy)]
struct Answers;

impl<R: BufRead> ExprParser<String, (), &mut SmtParser<R>> for Answers {
    fn parse_expr(self, input: &mut SmtParser<R>, _: ()) -> SmtRes<String> {
        Ok(input.get_sexpr()?.to_owned())
    }
}

impl<R: BufRead> ValueParser<String, &mut SmtParser<R>> for Answers {
    fn parse_value(self, input: &mut SmtParser<R>) -> SmtRes<String> {
        Ok(input.get_sexpr()?.to_owned())
    }
}

impl<R: BufRead> SymParser<String, &mut SmtParser<R>> for Answers {
    fn parse_sym(self, input: &mut SmtParser<R>) -> SmtRes<String> {
        Ok(input.get_sexpr()?.to_owned())
    }
}

/// A solver process that several sessions can use one after the other.
pub struct SmtLibProcess {
    command: String,
    limits: Limits,
    running: Option<Running>,
}

struct Running {
    solver: Solver<Answers>,
    id: String,
    /// Has this process been given a formula?
    used: bool,
}

impl SmtLibProcess {
    /// A process for a command line such as `z3 -in` or `cvc5 --incremental --lang smt2`. Words
    /// are separated by white space; there is no quoting. The command must read SMT-LIB 2 from
    /// its standard input. It is started when first needed.
    #[must_use]
    pub fn new(command: &str, limits: Limits) -> Self {
        Self { command: command.to_owned(), limits, running: None }
    }

    fn error(&self, message: impl ToString) -> SolverError {
        SolverError::Process { command: self.command.clone(), message: message.to_string() }
    }

    fn start(&self) -> Result<Running, SolverError> {
        let limit = match self.limits.memory_mb {
            Some(megabytes) => format!("ulimit -v {} && ", u64::from(megabytes) * 1024),
            None => String::new(),
        };
        // Of the styles that the crate knows this one adds no options of its own.
        let mut conf = SmtConf::yices_2("sh");
        conf.option("-c").option(WRAPPER.replace('%', &limit)).option("sh");
        for word in self.command.split_whitespace() {
            conf.option(word);
        }
        let mut solver = conf.spawn(Answers).map_err(|error| self.error(error))?;
        let id = read_line(&mut solver).map_err(|error| self.error(error))?;
        if id.is_empty() {
            return Err(self.error("the process ended at once"));
        }
        Ok(Running { solver, id, used: false })
    }

    /// A running process that holds `formula` and nothing else.
    fn load(&mut self, formula: &Formula) -> Result<(), SolverError> {
        let mut running = match self.running.take() {
            Some(running) => running,
            None => self.start()?,
        };
        let reset = if running.used { "(reset)\n" } else { "" };
        running.used = true;
        let text = format!(
            "{reset}(set-option :produce-models true)\n(set-option :produce-unsat-cores true)\n\
             (set-logic ALL)\n{}",
            formula.text
        );
        let written = running.solver.write_all(text.as_bytes());
        written.map_err(|error| self.error(error))?;
        self.running = Some(running);
        Ok(())
    }
}

/// A session with a solver process.
pub struct SmtLibSession<'a> {
    trace: &'a EventTrace,
    formula: Formula,
    process: SmtLibProcess,
    loaded: bool,
}

impl<'a> SmtLibSession<'a> {
    /// A session over the system of a trace, with a process of its own. See
    /// [`SmtLibProcess::new`] for the command.
    ///
    /// # Errors
    /// When an expression cannot be expressed.
    pub fn new(
        trace: &'a EventTrace,
        system: &ConstraintSystem,
        command: &str,
        limits: Limits,
    ) -> Result<Self, SolverError> {
        Self::with_process(trace, system, SmtLibProcess::new(command, limits))
    }

    /// A session that takes over a process.
    ///
    /// # Errors
    /// When an expression cannot be expressed.
    pub fn with_process(
        trace: &'a EventTrace,
        system: &ConstraintSystem,
        process: SmtLibProcess,
    ) -> Result<Self, SolverError> {
        let formula = Formula::of(trace, system)?;
        Ok(Self { trace, formula, process, loaded: false })
    }

    /// The process, for another session.
    #[must_use]
    pub fn into_process(self) -> SmtLibProcess {
        self.process
    }

    fn ask(&mut self, goal: Goal, orders: &[Order]) -> Result<Outcome, SolverError> {
        if !self.loaded || self.process.running.is_none() {
            self.process.load(&self.formula)?;
            self.loaded = true;
        }
        let Some(mut running) = self.process.running.take() else {
            return Err(self.process.error("the process is gone"));
        };
        let watchdog = self.process.limits.time.map(|limit| Watchdog::start(limit, &running.id));
        let answer = self.exchange(&mut running.solver, goal, orders);
        let timed_out = watchdog.is_some_and(Watchdog::stop);
        match answer {
            Ok(outcome) if !timed_out => {
                self.process.running = Some(running);
                Ok(outcome)
            }
            // The process is dropped with `running`; the next question starts another.
            _ if timed_out => Ok(Outcome::Unknown(UnknownReason::TimeOut)),
            Ok(outcome) => Ok(outcome),
            Err(error) => self.failed(&error.to_string()),
        }
    }

    /// What an error of the process means: a process with a memory limit ends when it is reached.
    fn failed(&self, message: &str) -> Result<Outcome, SolverError> {
        let ended = ["end of file", "eoi", "broken pipe", "memory", "bad_alloc"]
            .iter()
            .any(|word| message.to_lowercase().contains(word));
        if ended && self.process.limits.memory_mb.is_some() {
            return Ok(Outcome::Unknown(UnknownReason::Memory));
        }
        Err(self.process.error(message))
    }

    fn exchange(
        &self,
        solver: &mut Solver<Answers>,
        goal: Goal,
        orders: &[Order],
    ) -> SmtRes<Outcome> {
        let mut indices = BTreeMap::new();
        let mut question = String::from("(push 1)\n");
        for (index, order) in orders.iter().enumerate() {
            let name = formula::order_name(order.before, order.after);
            // The first of equal orders stands for all of them.
            indices.entry(name.clone()).or_insert_with(|| {
                let holds = formula::order(order.before, order.after);
                question.push_str(&format!("(assert (! {holds} :named {name}))\n"));
                index
            });
        }
        question.push_str(&format!("(assert {})\n", formula::goal_name(goal)));
        solver.write_all(question.as_bytes())?;
        let outcome = match solver.check_sat_or_unk()? {
            Some(true) => extract::outcome(self.trace, &self.assignment(solver)?),
            Some(false) => {
                let core: Vec<String> = solver.get_unsat_core()?;
                let mut core: Vec<usize> =
                    core.iter().filter_map(|name| indices.get(name).copied()).collect();
                core.sort_unstable();
                Outcome::Unsat(core)
            }
            None => {
                solver.write_all(b"(get-info :reason-unknown)\n")?;
                solver.flush()?;
                Outcome::Unknown(UnknownReason::of_solver(read_line(solver)?.trim()))
            }
        };
        solver.write_all(b"(pop 1)\n")?;
        Ok(outcome)
    }

    fn assignment(&self, solver: &mut Solver<Answers>) -> SmtRes<Assignment> {
        let places = self.trace.events.iter().map(|event| event.id.to_string());
        let variables = self.formula.variables.iter().map(|(var, _)| var.to_string());
        let names: Vec<String> = places.chain(variables).collect();
        // The answer has the order of the question, so no name is ever read back.
        let values: Vec<(String, String)> = solver.get_values(&names)?;
        let mut values = values.iter().map(|(_, value)| value);
        let mut assignment = Assignment::default();
        for value in values.by_ref().take(self.trace.events.len()) {
            assignment.places.push(integer(value).ok_or_else(|| not_understood(value))?);
        }
        for (&(var, _), value) in self.formula.variables.iter().zip(values) {
            let bits = bits(value).ok_or_else(|| not_understood(value))?;
            assignment.values.insert(var, bits);
        }
        Ok(assignment)
    }
}

impl Session for SmtLibSession<'_> {
    fn check(&mut self, goal: Goal, orders: &[Order]) -> Result<Outcome, SolverError> {
        check_question(self.trace, self.formula.has_failure, goal, orders)?;
        let span = tracing::trace_span!("smtlib", ?goal, orders = orders.len());
        let _guard = span.enter();
        self.ask(goal, orders)
    }
}

fn not_understood(value: &str) -> rsmt2::errors::Error {
    format!("a value that is not understood: {value}").into()
}

/// `5` or `(- 5)`.
fn integer(text: &str) -> Option<i64> {
    match text.strip_prefix("(-") {
        Some(rest) => rest.trim().trim_end_matches(')').trim().parse::<i64>().ok()?.checked_neg(),
        None => text.parse().ok(),
    }
}

/// `#b0101`, `#x1f` or `(_ bv5 8)`.
fn bits(text: &str) -> Option<u128> {
    if let Some(digits) = text.strip_prefix("#b") {
        u128::from_str_radix(digits, 2).ok()
    } else if let Some(digits) = text.strip_prefix("#x") {
        u128::from_str_radix(digits, 16).ok()
    } else {
        let rest = text.strip_prefix("(_ bv")?;
        rest.split_whitespace().next()?.parse().ok()
    }
}

/// One line of the solver's output, byte by byte, since nothing may be read past its end.
fn read_line(solver: &mut Solver<Answers>) -> std::io::Result<String> {
    let mut line = String::new();
    let mut byte = [0];
    while solver.read(&mut byte)? == 1 && byte[0] != b'\n' {
        line.push(char::from(byte[0]));
    }
    Ok(line)
}

/// Ends a process that takes too long. Solvers have no common option for that.
struct Watchdog {
    done: Sender<()>,
    thread: JoinHandle<bool>,
}

impl Watchdog {
    fn start(limit: Duration, process: &str) -> Self {
        let (done, stopped) = channel::<()>();
        let process = process.to_owned();
        let thread = thread::spawn(move || {
            let late = stopped.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
            if late {
                // When this fails the process has just ended by itself.
                let mut kill = Command::new("kill");
                let _ = kill.args(["-KILL", &process]).stderr(Stdio::null()).status();
            }
            late
        });
        Self { done, thread }
    }

    /// True when the process was ended.
    fn stop(self) -> bool {
        drop(self.done);
        self.thread.join().unwrap_or(false)
    }
}
