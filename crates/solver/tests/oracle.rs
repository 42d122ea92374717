//! A brute-force oracle: all schedules of random small traces, run by an interpreter that knows
//! nothing of the encoders, against both back ends.
//!
//! `SYMBIOSIS_ORACLE_TRACES` sets the number of traces, `SYMBIOSIS_ORACLE_SEED` the first seed.

use crate::enumerate::{Schedules, is_silent};
use crate::interpreter::Machine;
use crate::random::Random;
use encoders::dsl::{Parsed, parse};
use encoders::{Constraint, ConstraintKind, ConstraintSystem};
use model::{EventId, EventTrace, Interval, Schedule};
use solver::{
    Goal, Limits, Model, Order, OrderingSession, Outcome, Session, SmtLibProcess, SmtLibSession,
    Z3Session,
};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;

const TRACES: u64 = 2_000;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// What was covered, so that the test cannot pass by asking nothing of interest.
#[derive(Debug, Default)]
struct Tally {
    traces: u64,
    with_schedule: u64,
    failing: u64,
    failing_and_passing: u64,
    cores: u64,
    nonempty_cores: u64,
    /// Traces in which a condition was determined by what a counter is.
    counters: u64,
    /// Those of them that can both fail and pass.
    undecided_counters: u64,
    /// Traces in which a cell is a lock.
    own_locks: u64,
}

#[test]
fn both_back_ends_agree_with_all_schedules() {
    let first = setting("SYMBIOSIS_ORACLE_SEED", 1);
    let traces = setting("SYMBIOSIS_ORACLE_TRACES", TRACES);
    let workers = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let each = traces.div_ceil(workers as u64).max(1) as usize;
    let seeds: Vec<u64> = (first..first + traces).collect();
    let tally = std::thread::scope(|scope| {
        let parts = seeds.chunks(each).map(|part| scope.spawn(|| agreement(part)));
        let parts: Vec<_> = parts.collect();
        let tallies = parts.into_iter().map(|part| part.join().expect("agreement"));
        tallies.fold(Tally::default(), Tally::and)
    });
    println!("{tally:?}");
    if traces >= TRACES {
        tally.is_interesting();
    }
}

/// Asks all back ends about the traces of these seeds.
fn agreement(seeds: &[u64]) -> Tally {
    let mut process = SmtLibProcess::new("z3 -in", Limits::default());
    let mut tally = Tally::default();
    for &seed in seeds {
        let (text, parsed, schedules) = trace_of(seed);
        let trace = &parsed.trace;
        let machine = Machine::new(trace);
        tally.count(&schedules);

        let context = format!("seed {seed}\n{text}{}", encoders::events_text(trace));
        let system = encoders::encode(trace).unwrap_or_else(|error| panic!("{context}{error}"));
        tally.count_lemmas(trace, &system, &schedules);
        let mut linked = Z3Session::new(trace, &system, Limits::default()).expect("expressible");
        let mut piped = SmtLibSession::with_process(trace, &system, process).expect("expressible");
        let mut ordering = OrderingSession::new(trace, &system, Limits::default());
        // Small traces end within the first turn, unless it is short.
        let lazy = OrderingSession::with_eager(trace, &system, Limits::default(), 0);
        let mut lazy = lazy.with_turns_of(1).going_back_at_most(1);
        let near = OrderingSession::new(trace, &system, Limits::default());
        let mut near = near.going_back_at_most(0);
        near.look_near(&some_schedule(trace, &schedules, seed));
        let unreduced = encoders::encode_paper(trace).expect("the trace can be encoded");
        let mut paper = Z3Session::new(trace, &unreduced, Limits::default()).expect("expressible");
        let mut paper_lazy = OrderingSession::with_eager(trace, &unreduced, Limits::default(), 0);
        for (goal, orders) in questions(trace, &schedules, seed) {
            let expected = schedules.satisfiable(goal, &orders);
            let question = format!("{context}{goal:?} {orders:?}");
            // Z3 is slow to answer about what nothing was decided of beforehand.
            if seed.is_multiple_of(8) {
                let outcome = paper.check(goal, &orders).expect("an answer");
                tally.check(&machine, &schedules, (goal, &orders), &outcome, expected, &question);
            }
            for (name, session) in [
                ("eager", &mut ordering as &mut dyn Session),
                ("lazy", &mut lazy),
                ("near", &mut near),
                ("lazy, over the paper's", &mut paper_lazy),
                ("linked", &mut linked),
                ("piped", &mut piped),
            ] {
                let question = format!("{name}: {question}");
                let outcome = session.check(goal, &orders).expect("an answer");
                tally.check(&machine, &schedules, (goal, &orders), &outcome, expected, &question);
            }
        }
        process = piped.into_process();
    }
    tally
}

/// The trace of a seed. Half of the seeds look for one that can both fail and pass, which few
/// random traces can.
fn trace_of(seed: u64) -> (String, Parsed, Schedules) {
    let attempts = if seed.is_multiple_of(2) { 1 } else { 6 };
    let mut attempt = 0;
    loop {
        attempt += 1;
        let text = match seed % 8 {
            3 => crate::generate::generate_locked(seed * 16 + attempt),
            _ => crate::generate::generate(seed * 16 + attempt),
        };
        let parsed = parse(&text).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{text}"));
        let schedules = Schedules::of(&Machine::new(&parsed.trace));
        let both = [Goal::Fail, Goal::Pass].iter().all(|&goal| schedules.satisfiable(goal, &[]));
        if both || attempt == attempts {
            return (text, parsed, schedules);
        }
    }
}

/// One of the schedules, or any order of the events where there is none.
fn some_schedule(trace: &EventTrace, schedules: &Schedules, seed: u64) -> Schedule {
    let mut order: Vec<EventId> = trace.events.iter().map(|event| event.id).collect();
    if !schedules.found.is_empty() {
        let one = &schedules.found[seed as usize % schedules.found.len()];
        order.sort_by_key(|event| one.places[event.index()]);
    }
    Schedule { order }
}

impl Tally {
    fn and(self, other: Self) -> Self {
        Self {
            traces: self.traces + other.traces,
            with_schedule: self.with_schedule + other.with_schedule,
            failing: self.failing + other.failing,
            failing_and_passing: self.failing_and_passing + other.failing_and_passing,
            cores: self.cores + other.cores,
            nonempty_cores: self.nonempty_cores + other.nonempty_cores,
            counters: self.counters + other.counters,
            undecided_counters: self.undecided_counters + other.undecided_counters,
            own_locks: self.own_locks + other.own_locks,
        }
    }

    fn count(&mut self, schedules: &Schedules) {
        let fails = schedules.satisfiable(Goal::Fail, &[]);
        let passes = schedules.satisfiable(Goal::Pass, &[]);
        self.traces += 1;
        self.with_schedule += u64::from(fails || passes);
        self.failing += u64::from(fails);
        self.failing_and_passing += u64::from(fails && passes);
    }

    fn count_lemmas(
        &mut self,
        trace: &EventTrace,
        system: &ConstraintSystem,
        schedules: &Schedules,
    ) {
        let locks = |constraint: &&Constraint| constraint.kind == ConstraintKind::Lock;
        let own = system.constraints.iter().filter(locks).any(|lock| {
            let is_access = |id: &EventId| !trace.event(*id).kind.writes().is_empty();
            lock.origins.iter().any(is_access)
        });
        self.own_locks += u64::from(own);
        let mut constraints = system.constraints.iter();
        if constraints.any(|constraint| constraint.kind == ConstraintKind::Counter) {
            self.counters += 1;
            let both = [Goal::Fail, Goal::Pass];
            let both = both.iter().all(|&goal| schedules.satisfiable(goal, &[]));
            self.undecided_counters += u64::from(both);
        }
    }

    fn check(
        &mut self,
        machine: &Machine<'_>,
        schedules: &Schedules,
        (goal, orders): (Goal, &[Order]),
        outcome: &Outcome,
        expected: bool,
        question: &str,
    ) {
        match outcome {
            Outcome::Sat(model) => {
                assert!(expected, "satisfiable, but no schedule exists: {question}\n{model:?}");
                is_real(machine, goal, orders, model, question);
            }
            Outcome::Unsat(core) => {
                assert!(!expected, "unsatisfiable, but a schedule exists: {question}");
                let core: Vec<Order> = core.iter().map(|&index| orders[index]).collect();
                let sound = !schedules.satisfiable(goal, &core);
                assert!(sound, "the core {core:?} is satisfiable: {question}");
                self.cores += 1;
                self.nonempty_cores += u64::from(!core.is_empty());
            }
            Outcome::Unknown(reason) => panic!("unknown, {reason}: {question}"),
        }
    }

    fn is_interesting(&self) {
        let share = |part: u64, least: u64| part * 100 >= self.traces * least;
        assert!(share(self.with_schedule, 40), "{self:?}");
        assert!(share(self.traces - self.failing, 20), "{self:?}");
        assert!(share(self.failing, 30), "{self:?}");
        assert!(share(self.failing_and_passing, 20), "{self:?}");
        assert!(share(self.nonempty_cores, 50), "{self:?}");
        assert!(share(self.counters, 10), "{self:?}");
        assert!(share(self.undecided_counters, 3), "{self:?}");
        assert!(share(self.own_locks, 3), "{self:?}");
    }
}

/// The recorded run's clock never rules out the recorded order, however wide or narrow the intervals
/// are, and what is found under it is real.
#[test]
fn the_clock_keeps_the_recorded_order() {
    let first = setting("SYMBIOSIS_ORACLE_SEED", 1);
    let traces = setting("SYMBIOSIS_ORACLE_TRACES", TRACES) / 4;
    let (mut recorded_runs, mut narrowed) = (0, 0);
    for seed in first..first + traces {
        let (text, parsed, schedules) = trace_of(seed);
        let Some(recorded) = schedules.found.iter().find(|found| found.fails) else { continue };
        let mut random = Random::new(seed ^ 0x00c1_0c4e);
        let mut trace = parsed.trace;
        let width = [1, 25, 60][random.below(3)];
        let interval = |event: &model::Event| {
            // Events that nobody can see have no place of their own.
            let place = recorded.places[event.id.index()];
            if is_silent(&event.kind) || random.chance(20) {
                return Interval::default();
            }
            let now = 1_000 + 10 * place as u64;
            let (before, after) = (random.below(width) as u64, random.below(width) as u64);
            Interval { earliest: now - before, latest: now + after }
        };
        trace.intervals = trace.events.iter().map(interval).collect();
        let context = format!("seed {seed}\n{text}{}", encoders::events_text(&trace));
        let system = encoders::encode_recorded(&trace).expect("the trace can be encoded");
        let machine = Machine::new(&trace);
        let events: Vec<EventId> = trace.events.iter().map(|event| event.id).collect();
        let visible: Vec<EventId> =
            events.into_iter().filter(|&event| !is_silent(&trace.event(event).kind)).collect();
        let orders = all_orders(&trace, &visible, &recorded.places);
        let all = schedules.found.iter().filter(|found| found.fails).count();
        let mut within = OrderingSession::new(&trace, &system, Limits::default());
        let lazy = OrderingSession::with_eager(&trace, &system, Limits::default(), 0);
        let mut lazy = lazy.with_turns_of(1);
        for session in [&mut within, &mut lazy] {
            for orders in [&[][..], &orders] {
                let outcome = session.check(Goal::Fail, orders).expect("an answer");
                let Outcome::Sat(model) = outcome else {
                    panic!("the recorded order is ruled out: {context}{orders:?}: {outcome:?}")
                };
                is_real(&machine, Goal::Fail, orders, &model, &context);
            }
        }
        recorded_runs += 1;
        // Another failing schedule's order contradicts narrow intervals, as a rule.
        let others = schedules.found.iter().filter(|found| found.fails).take(8);
        narrowed += u64::from(
            all > 1 && {
                let rejected = |found: &crate::enumerate::Found| {
                    let orders = all_orders(&trace, &visible, &found.places);
                    let outcome = within.check(Goal::Fail, &orders).expect("an answer");
                    matches!(outcome, Outcome::Unsat(_))
                };
                others.into_iter().any(rejected)
            },
        );
    }
    println!("{recorded_runs} recorded runs, {narrowed} of them with a clock that rules some out");
    if traces * 4 >= TRACES {
        assert!(recorded_runs * 4 >= traces && narrowed * 10 >= recorded_runs);
    }
}

/// The interpreter accepts the schedule, and it gives the values, sources and goal claimed.
fn is_real(machine: &Machine<'_>, goal: Goal, orders: &[Order], model: &Model, question: &str) {
    let order = &model.schedule.order;
    let mut places = vec![usize::MAX; machine.trace.events.len()];
    order.iter().enumerate().for_each(|(place, event)| places[event.index()] = place);
    assert_eq!(order.len(), places.len(), "{question}");
    let end = machine.run(&BTreeMap::new(), order);
    let end = end.unwrap_or_else(|| panic!("the schedule cannot happen: {question}\n{model:?}"));
    assert!(machine.on_path(&end), "a path condition is false: {question}\n{model:?}");
    assert_eq!(end.values, model.values, "{question}");
    assert_eq!(end.reads_from, model.reads_from, "{question}");
    let fails = machine.fails(&end, &places);
    match goal {
        Goal::Fail => assert!(fails, "{question}\n{model:?}"),
        Goal::Pass => assert!(!fails, "{question}\n{model:?}"),
        Goal::Any => {}
    }
    for order in orders {
        let holds = places[order.before.index()] < places[order.after.index()];
        assert!(holds, "{order:?} does not hold: {question}\n{model:?}");
    }
}

/// The goals alone, under random orders, and under all orders between threads of one failing and
/// one passing schedule.
fn questions(trace: &EventTrace, schedules: &Schedules, seed: u64) -> Vec<(Goal, Vec<Order>)> {
    let mut random = Random::new(seed ^ 0xacce_55ed);
    let goals: &[Goal] =
        if trace.failure.is_some() { &[Goal::Fail, Goal::Pass, Goal::Any] } else { &[Goal::Any] };
    let mut questions: Vec<_> = goals.iter().map(|&goal| (goal, Vec::new())).collect();
    let events: Vec<EventId> =
        trace.events.iter().filter(|event| !is_silent(&event.kind)).map(|event| event.id).collect();
    for _ in 0..3 {
        let orders = (0..1 + random.below(4))
            .filter(|_| !events.is_empty())
            .map(|_| Order { before: *random.pick(&events), after: *random.pick(&events) })
            .collect();
        questions.push((*random.pick(goals), orders));
    }
    if trace.failure.is_some() {
        for (fails, goal) in [(true, Goal::Pass), (false, Goal::Fail)] {
            if let Some(found) = schedules.found.iter().find(|found| found.fails == fails) {
                questions.push((goal, all_orders(trace, &events, &found.places)));
            }
        }
    }
    questions
}

fn all_orders(trace: &EventTrace, events: &[EventId], places: &[usize]) -> Vec<Order> {
    let mut orders = Vec::new();
    for &before in events {
        for &after in events {
            let threads = trace.event(before).thread != trace.event(after).thread;
            if threads && places[before.index()] < places[after.index()] {
                orders.push(Order { before, after });
            }
        }
    }
    orders
}
