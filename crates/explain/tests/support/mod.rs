//! A session without a solver: it enumerates the schedules of a small trace.

pub mod causes;
pub mod programs;
pub mod random;
pub mod runs;

use explain::{Explanation, FailingSchedule, Options, explain};
use model::evaluate::{Check, Evaluation, Evaluator};
use model::{EventId, EventKind, EventTrace, LockMode, Schedule, WriteSource};
use solver::{Goal, Model, Order, Outcome, Session, SolverError};

/// More schedules than this are a mistake in the test.
const MOST: usize = 400_000;

struct Known {
    order: Vec<EventId>,
    positions: Vec<u32>,
    check: Check,
}

/// Answers by looking through all schedules that follow the recorded paths.
pub struct BruteForce<'t> {
    trace: &'t EventTrace,
    known: Vec<Known>,
    /// Look from the last schedule on, so that another failing schedule is found.
    pub from_end: bool,
}

impl<'t> BruteForce<'t> {
    pub fn new(trace: &'t EventTrace) -> Self {
        model::verify::verify(trace).expect("the trace is well-formed");
        let mut search = Search {
            trace,
            evaluator: Evaluator::new(trace),
            next: vec![0; trace.threads.len()],
            forked: vec![false; trace.threads.len()],
            owners: vec![0; trace.objects.len()],
            order: Vec::new(),
            known: Vec::new(),
        };
        search.forked[0] = true;
        search.explore();
        Self { trace, known: search.known, from_end: false }
    }

    pub fn schedules(&self) -> usize {
        self.known.len()
    }

    /// The number of schedules on the recorded paths that fail.
    pub fn failing(&self) -> usize {
        self.known.iter().filter(|k| k.check == Check::Fails).count()
    }

    /// The schedules on the recorded paths that do not fail.
    pub fn passing(&self) -> impl Iterator<Item = &[EventId]> {
        self.known.iter().filter(|k| k.check == Check::Passes).map(|k| &k.order[..])
    }

    /// All schedules that follow the paths.
    pub fn known(&self) -> impl Iterator<Item = (&[EventId], Check)> {
        self.known.iter().map(|known| (known.order.as_slice(), known.check))
    }

    pub fn satisfiable(&mut self, goal: Goal, orders: &[Order]) -> bool {
        matches!(self.check(goal, orders), Ok(Outcome::Sat(_)))
    }
}

impl Session for BruteForce<'_> {
    fn check(&mut self, goal: Goal, orders: &[Order]) -> Result<Outcome, SolverError> {
        let fits = |known: &&Known| {
            let goal = match goal {
                Goal::Fail => known.check == Check::Fails,
                Goal::Pass => known.check == Check::Passes,
                Goal::Any => true,
            };
            let place = |id: EventId| known.positions[id.index()];
            goal && orders.iter().all(|o| place(o.before) < place(o.after))
        };
        let found = if self.from_end {
            self.known.iter().rev().find(fits)
        } else {
            self.known.iter().find(fits)
        };
        let Some(known) = found else {
            // The worst core there is.
            return Ok(Outcome::Unsat((0..orders.len()).collect()));
        };
        let evaluation = Evaluator::new(self.trace).run(&known.order, &|_| None).expect("known");
        let values = self.trace.variables.iter();
        let values = values.filter_map(|v| Some((v.id, evaluation.values[v.id.index()]?)));
        Ok(Outcome::Sat(Model {
            schedule: Schedule { order: known.order.clone() },
            reads_from: evaluation.reads_from.clone(),
            values: values.collect(),
        }))
    }
}

struct Search<'t> {
    trace: &'t EventTrace,
    evaluator: Evaluator<'t>,
    next: Vec<usize>,
    forked: Vec<bool>,
    /// Holders by lock: -1 for an exclusive one, else how many shared ones.
    owners: Vec<i32>,
    order: Vec<EventId>,
    known: Vec<Known>,
}

impl Search<'_> {
    fn explore(&mut self) {
        assert!(self.known.len() <= MOST, "too many schedules to enumerate");
        let ready: Vec<usize> =
            (0..self.next.len()).filter(|thread| self.ready(*thread).is_some()).collect();
        // Events without effect on other threads are performed at once: no order is asked of
        // them, and what they let happen later can happen now.
        let silent =
            ready.iter().find(|thread| self.ready(**thread).is_some_and(|e| self.silent(e)));
        match silent {
            Some(&thread) => self.perform(thread),
            None => ready.iter().for_each(|thread| self.perform(*thread)),
        }
        if self.order.len() == self.trace.events.len() {
            self.keep();
        }
    }

    fn silent(&self, event: EventId) -> bool {
        use EventKind::{Exit, Failure, Fence, Fork, Join, Start};
        matches!(
            self.trace.event(event).kind,
            Start | Exit | Failure | Fence | Fork { .. } | Join { .. }
        )
    }

    fn ready(&self, thread: usize) -> Option<EventId> {
        let id = *self.trace.threads[thread].events.get(self.next[thread])?;
        let possible = match self.trace.event(id).kind {
            EventKind::Lock { object, mode: LockMode::Exclusive } => {
                self.owners[object.index()] == 0
            }
            EventKind::Lock { object, mode: LockMode::Shared } => self.owners[object.index()] >= 0,
            EventKind::Join { child } => {
                self.next[child.index()] == self.trace.threads[child.index()].events.len()
            }
            _ => true,
        };
        (possible && self.forked[thread]).then_some(id)
    }

    fn perform(&mut self, thread: usize) {
        let Some(id) = self.ready(thread) else { return };
        self.apply(id, 1);
        self.next[thread] += 1;
        self.order.push(id);
        self.explore();
        self.order.pop();
        self.next[thread] -= 1;
        self.apply(id, -1);
    }

    fn apply(&mut self, id: EventId, sign: i32) {
        let trace = self.trace;
        match trace.event(id).kind {
            EventKind::Lock { object, mode } => {
                let by = if mode == LockMode::Exclusive { -1 } else { 1 };
                self.owners[object.index()] += sign * by;
            }
            EventKind::Unlock { object, mode, .. } => {
                let by = if mode == LockMode::Exclusive { 1 } else { -1 };
                self.owners[object.index()] += sign * by;
            }
            EventKind::Fork { child } => self.forked[child.index()] = sign > 0,
            _ => {}
        }
    }

    fn keep(&mut self) {
        let check = self.evaluator.check(&self.order, &|_| None);
        if !matches!(check, Check::Fails | Check::Passes) {
            return;
        }
        let mut positions = vec![0; self.order.len()];
        for (position, id) in (0u32..).zip(&self.order) {
            positions[id.index()] = position;
        }
        self.known.push(Known { order: self.order.clone(), positions, check });
    }
}

pub fn options(alternates: usize) -> Options {
    Options { alternates, ..Options::default() }
}

/// Explains with the session that enumerates, without any budget.
pub fn explained(trace: &EventTrace, alternates: usize) -> Explanation {
    let mut session = BruteForce::new(trace);
    explain_with(trace, &mut session, alternates)
}

pub fn explain_with(
    trace: &EventTrace,
    session: &mut dyn Session,
    alternates: usize,
) -> Explanation {
    let system = encoders::ConstraintSystem::default();
    let result = explain(trace, &system, session, &options(alternates), &|| true);
    result.expect("the trace is explained")
}

/// Everything that must be true of an explanation of a trace that can fail, checked by
/// enumeration.
pub fn check_explanation(trace: &EventTrace, explanation: &Explanation) {
    assert!(explanation.cut.is_empty(), "nothing ends early: {:?}", explanation.cut);
    let mut oracle = BruteForce::new(trace);
    let failing = explanation.failing.as_ref().expect("a failing schedule");
    let mut evaluator = Evaluator::new(trace);
    assert_eq!(evaluator.check(&failing.schedule.order, &|_| None), Check::Fails);
    let statistics = explanation.statistics;
    assert!(statistics.switches <= statistics.switches_found);

    let cause = explanation.root_cause.as_ref().expect("a root cause");
    let orders: Vec<Order> = cause.orders.iter().map(|o| o.order).collect();
    assert!(cause.minimal);
    assert!(!oracle.satisfiable(Goal::Pass, &orders), "the orders cause the failure");
    for dropped in 0..orders.len() {
        let mut rest = orders.clone();
        let order = rest.remove(dropped);
        assert!(oracle.satisfiable(Goal::Pass, &rest), "{order:?} can be dropped");
    }
    let avoidable = oracle.satisfiable(Goal::Pass, &[]);
    assert_eq!(avoidable, !explanation.alternates.found.is_empty());
    assert_eq!(avoidable, !orders.is_empty());

    assert_eq!(explanation.alternates.found.len(), explanation.dsps.len());
    for (alternate, dsp) in explanation.alternates.found.iter().zip(&explanation.dsps) {
        assert_eq!(evaluator.check(&alternate.schedule.order, &|_| None), Check::Passes);
        let place = |order: &[EventId], id| order.iter().position(|e| *e == id);
        let (before, after) = (alternate.flipped.before, alternate.flipped.after);
        let there = &alternate.schedule.order;
        assert!(place(there, before) < place(there, after));
        let here = &failing.schedule.order;
        assert!(place(here, before) > place(here, after));
        assert!(dsp.failing.contains(&before) && dsp.failing.contains(&after));
        for (ours, theirs) in dsp.failing_only.iter().zip(&dsp.alternate_only) {
            assert_eq!(ours.read, theirs.read);
            assert_eq!(failing.evaluation.reads_from.get(&ours.read), Some(&ours.write));
            assert_eq!(alternate.evaluation.reads_from.get(&theirs.read), Some(&theirs.write));
            assert_ne!(ours.write, theirs.write);
        }
    }
}

/// How many reads have another source in `other`, and cells another last write and value.
pub fn variations(trace: &EventTrace, failing: &Evaluation, other: &Evaluation) -> usize {
    let last = |evaluation: &Evaluation, cell: &model::Cell| {
        let value = match evaluation.last_writes[cell.id.index()] {
            WriteSource::Init => cell.init,
            WriteSource::Write(event) => {
                let mut parts = trace.event(event).kind.writes().iter();
                parts.find(|part| part.cell == cell.id).expect("it writes the cell").value
            }
        };
        trace.exprs.evaluate(value, &|var| evaluation.values[var.index()])
    };
    let reads = failing.reads_from.iter().filter(|(read, from)| other.reads_from[read] != **from);
    let cells = trace.cells.iter().filter(|cell| {
        failing.last_writes[cell.id.index()] != other.last_writes[cell.id.index()]
            && last(failing, cell) != last(other, cell)
    });
    reads.count() + cells.count()
}

/// The fewest variations of any schedule that passes and has a single pair of conflicting accesses
/// in another order than the failing one.
pub fn fewest_of_a_single_pair(trace: &EventTrace, failing: &FailingSchedule) -> Option<usize> {
    let oracle = BruteForce::new(trace);
    let mut evaluator = Evaluator::new(trace);
    let mut fewest: Option<usize> = None;
    for order in oracle.passing() {
        if reversed_conflicts(trace, &failing.schedule.order, order) == 1 {
            let evaluation = evaluator.run(order, &|_| None).expect("it is possible");
            let found = variations(trace, &failing.evaluation, &evaluation);
            fewest = Some(fewest.map_or(found, |fewest| fewest.min(found)));
        }
    }
    fewest
}

fn reversed_conflicts(trace: &EventTrace, one: &[EventId], other: &[EventId]) -> usize {
    let place = |id: &EventId| other.iter().position(|e| e == id);
    let conflict = |a: &EventId, b: &EventId| {
        let (a, b) = (&trace.event(*a).kind, &trace.event(*b).kind);
        let cells = |kind: &EventKind| -> Vec<model::CellId> {
            let reads = kind.reads().iter().map(|part| part.cell);
            reads.chain(kind.writes().iter().map(|part| part.cell)).collect()
        };
        let hits = |a: &EventKind, b: &EventKind| {
            a.writes().iter().any(|part| cells(b).contains(&part.cell))
        };
        hits(a, b) || hits(b, a)
    };
    let mut count = 0;
    for (index, a) in one.iter().enumerate() {
        let later = one[index + 1..].iter();
        count += later.filter(|b| conflict(a, b) && place(a) > place(b)).count();
    }
    count
}
