//! Scripts, followed by a tiny scheduler over threads that are lists of points and events.

use encoders::dsl;
use model::{EventId, EventKind, EventTrace, Point, Points};
use proptest::prelude::*;
use schedule::{Built, End, Script, Target, failing, observed, passing, prefix};

/// What a thread does next.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    /// It passes a site for the so-manieth time.
    Pass(u32, u64),
    Perform(EventId),
}

/// A thread as its steps, and how many it has done.
struct Runner {
    steps: Vec<Step>,
    done: usize,
}

struct Simulation<'p> {
    points: &'p Points,
    names: Vec<String>,
    threads: Vec<Runner>,
    order: Vec<EventId>,
    records: Vec<(usize, u64, u64)>,
}

impl<'p> Simulation<'p> {
    fn new(trace: &EventTrace, points: &'p Points) -> Self {
        let runner = |thread: &model::Thread| {
            let mut steps = Vec::new();
            for &event in &thread.events {
                let point = points.of[event.index()];
                let pass = Step::Pass(point.site, point.occurrence);
                if !steps.contains(&pass) {
                    steps.push(pass);
                    steps.extend(point.through.map(|p| Step::Pass(p.site, p.occurrence)));
                }
                steps.push(Step::Perform(event));
            }
            Runner { steps, done: 0 }
        };
        let threads = trace.threads.iter().map(runner).collect();
        let names = trace.threads.iter().map(|thread| thread.name.clone()).collect();
        Self { points, names, threads, order: Vec::new(), records: Vec::new() }
    }

    fn step(&mut self, thread: usize) {
        let runner = &mut self.threads[thread];
        if let Step::Perform(event) = runner.steps[runner.done] {
            self.order.push(event);
        }
        runner.done += 1;
    }

    fn next(&self, thread: usize) -> Option<&Step> {
        self.threads[thread].steps.get(self.threads[thread].done)
    }

    fn run_past(&mut self, thread: usize, pass: &Step) {
        let runner = &self.threads[thread];
        let at = runner.steps.iter().position(|step| step == pass).expect("the thread comes there");
        while self.threads[thread].done <= at {
            self.step(thread);
        }
        while matches!(self.next(thread), Some(Step::Perform(_))) {
            self.step(thread);
        }
    }

    fn turn(&mut self, trace: &EventTrace, thread: usize, target: &Target) {
        match target {
            Target::Site { site, occurrence, past } => {
                let number = self.points.sites.iter().position(|name| name == site);
                let pass = Step::Pass(number.expect("a known site") as u32, *occurrence);
                let runner = &self.threads[thread];
                if *past {
                    self.run_past(thread, &pass);
                } else if !runner.steps[..runner.done].contains(&pass) {
                    while self.next(thread).expect("the thread comes there") != &pass {
                        self.step(thread);
                    }
                }
            }
            Target::End => {
                while self.next(thread).is_some() {
                    self.step(thread);
                }
            }
            Target::Failure => loop {
                self.step(thread);
                let last = *self.order.last().expect("an event");
                if trace.event(last).kind == EventKind::Failure {
                    break;
                }
            },
        }
        // Where the scheduler takes the turn away, it notes what the thread has passed.
        let (mut gates, mut syncs) = (0, 0);
        let runner = &self.threads[thread];
        for step in &runner.steps[..runner.done] {
            if let Step::Pass(site, _) = step {
                match self.points.sites[*site as usize].starts_with('~') {
                    true => syncs += 1,
                    false => gates += 1,
                }
            }
        }
        self.records.push((thread, gates, syncs));
    }

    fn follow(&mut self, trace: &EventTrace, script: &Script) {
        for turn in &script.turns {
            let thread = self.names.iter().position(|name| *name == turn.thread);
            self.turn(trace, thread.expect("a known thread"), &turn.target);
        }
        if script.end == End::Run {
            for thread in 0..self.threads.len() {
                while self.next(thread).is_some() {
                    self.step(thread);
                }
            }
        }
    }
}

fn is_start(trace: &EventTrace, id: EventId) -> bool {
    trace.event(id).kind == EventKind::Start
}

/// The order without what no scheduler needs to place.
fn performed(trace: &EventTrace, order: &[EventId]) -> Vec<EventId> {
    order.iter().copied().filter(|&id| !is_start(trace, id)).collect()
}

/// A small trace as text: `events` per thread after the first; the failing one is the last.
fn text(threads: usize, events: &[usize], fails: bool) -> String {
    let mut text = String::from("t0: W start 1\n");
    for t in 1..=threads {
        for event in 0..events[t - 1] {
            text += &match (t + event) % 3 {
                0 => format!("t{t}: W x {event}\n"),
                1 => format!("t{t}: R x -> v{t}_{event}\n"),
                _ => format!("t{t}: RMW y -> w{t}_{event} = w{t}_{event} + 1\n"),
            };
        }
    }
    if fails {
        text += &format!("t{threads}: R x -> last\nt{threads}: fail last == 0\n");
    }
    text
}

/// What makes the points of an event differ.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// At a gate of its own.
    Gate,
    /// At a gate of its own that stands for the sync point behind it.
    Call,
    /// At a sync point.
    Sync,
    /// With the event before.
    Shared,
}

fn shapes() -> impl Strategy<Value = Vec<Shape>> {
    let shape = prop_oneof![
        4 => Just(Shape::Gate),
        2 => Just(Shape::Call),
        1 => Just(Shape::Sync),
        1 => Just(Shape::Shared)
    ];
    proptest::collection::vec(shape, 48)
}

/// Points in these shapes; few sites, so that occurrences count.
fn points(trace: &EventTrace, shapes: &[Shape]) -> Points {
    let sites = ["~start", "a.c:f:read:x", "a.c:f:call:g", "~mutex_lock", "~wake"];
    let mut points = Points {
        sites: sites.map(str::to_owned).to_vec(),
        of: vec![Point::default(); trace.events.len()],
    };
    for thread in &trace.threads {
        let mut here = Point::default();
        let mut passed = [0; 5];
        let mut pass = |site: usize| {
            passed[site] += 1;
            passed[site]
        };
        for (at, &event) in thread.events.iter().enumerate() {
            let shape = if at == 0 { Shape::Sync } else { shapes[event.index() % shapes.len()] };
            let site = match shape {
                Shape::Gate => 1,
                Shape::Call => 2,
                Shape::Sync if at == 0 => 0,
                Shape::Sync => 4,
                Shape::Shared => {
                    points.of[event.index()] = Point { first: false, ..here };
                    continue;
                }
            };
            here.site = site as u32;
            here.occurrence = pass(site);
            here.through = None;
            here.first = true;
            match shape {
                Shape::Sync => here.syncs += 1,
                _ => here.gates += 1,
            }
            if let Shape::Call = shape {
                here.syncs += 1;
                here.through = Some(model::Passage { site: 3, occurrence: pass(3) });
            }
            points.of[event.index()] = here;
        }
    }
    points
}

/// An order that creation allows, chosen by `picks`.
fn order(trace: &EventTrace, picks: &[usize]) -> Vec<EventId> {
    let mut done = vec![0; trace.threads.len()];
    let mut forked = vec![false; trace.threads.len()];
    forked[0] = true;
    let mut order = Vec::new();
    for pick in (0..).map(|i| picks[i % picks.len()] + i / picks.len()) {
        let left = |t: usize| trace.threads[t].events.len() - done[t];
        // The process ends with its initial thread.
        let last = (1..done.len()).all(|t| left(t) == 0);
        let ready = |&t: &usize| forked[t] && left(t) > usize::from(t == 0 && !last);
        let ready: Vec<usize> = (0..done.len()).filter(ready).collect();
        let Some(&thread) = ready.get(pick % ready.len().max(1)) else { break };
        let event = trace.threads[thread].events[done[thread]];
        done[thread] += 1;
        if let EventKind::Fork { child } = trace.event(event).kind {
            forked[child.index()] = true;
        }
        order.push(event);
    }
    order
}

/// What becomes of an order when each event comes with the one before it in its thread, where
/// their point is the same; and the events that come behind another thread's but cannot.
fn merged(trace: &EventTrace, points: &Points, order: &[EventId]) -> (Vec<EventId>, Vec<EventId>) {
    let mut result: Vec<EventId> = Vec::new();
    let mut moved = Vec::new();
    let mut running = None;
    for &id in order {
        let thread = trace.event(id).thread;
        let switched = running.replace(thread) != Some(thread);
        let before = result.iter().rposition(|&other| trace.event(other).thread == thread);
        match before.filter(|_| !points.of[id.index()].first) {
            Some(at) if !is_start(trace, result[at]) => {
                if switched {
                    moved.push(id);
                }
                result.insert(at + 1, id);
            }
            _ => result.push(id),
        }
    }
    (result, moved)
}

#[derive(Clone, Debug)]
struct Case {
    trace: EventTrace,
    points: Points,
    order: Vec<EventId>,
}

fn case(fails: bool) -> impl Strategy<Value = Case> {
    let picks = proptest::collection::vec(0..6_usize, 24);
    (1..4_usize, proptest::collection::vec(1..5_usize, 3), shapes(), picks).prop_map(
        move |(threads, events, shapes, picks)| {
            let trace = dsl::parse(&text(threads, &events, fails)).expect("a trace").trace;
            let points = points(&trace, &shapes);
            let order = order(&trace, &picks);
            Case { trace, points, order }
        },
    )
}

fn follow(case: &Case, built: &Built) -> Vec<EventId> {
    let text = built.script.to_string();
    let script = schedule::parse(&text).expect("what is printed can be read");
    let mut simulation = Simulation::new(&case.trace, &case.points);
    simulation.follow(&case.trace, &script);
    performed(&case.trace, &simulation.order)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    /// Following the script of a passing order gives the order, but for what cannot be separated.
    #[test]
    fn a_passing_script_gives_its_order(case in case(false)) {
        let built = passing(&case.trace, &case.points, &case.order);
        let (expected, moved) = merged(&case.trace, &case.points, &performed(&case.trace, &case.order));
        prop_assert_eq!(follow(&case, &built), expected, "{}", built.script);
        prop_assert_eq!(built.coarse.iter().map(|pair| pair.1).collect::<Vec<_>>(), moved);
    }

    /// Following the script of a failing order gives the order up to the last event of the failing
    /// thread, and then the failure.
    #[test]
    fn a_failing_script_gives_its_order(case in case(true)) {
        let built = failing(&case.trace, &case.points, &case.order);
        let trace = &case.trace;
        let failure = trace.failure.as_ref().expect("it fails").event;
        let thread = trace.event(failure).thread;
        let own = |id: &EventId| *id != failure && trace.event(*id).thread == thread;
        let last = case.order.iter().rposition(own).expect("it reads");
        let mut order = case.order[..=last].to_vec();
        order.push(failure);
        let order = performed(trace, &order);
        let (mut expected, _) = merged(trace, &case.points, &order);
        let end = expected.iter().position(|&id| id == failure).expect("it fails");
        expected.truncate(end + 1);
        // What the script cannot hold back, it names.
        let coarse = |id: &EventId| built.coarse.iter().any(|(_, second)| second == id);
        expected.retain(|id| !coarse(id));
        let mut seen = follow(&case, &built);
        seen.retain(|id| !coarse(id));
        let last = built.script.turns.last().expect("it fails").target.clone();
        prop_assert_eq!(last, Target::Failure);
        prop_assert_eq!(seen, expected, "{}", built.script);
    }

    /// The turns of a run that followed a script give the order of its events back.
    #[test]
    fn turns_give_the_order_back(case in case(false)) {
        let built = passing(&case.trace, &case.points, &case.order);
        let mut simulation = Simulation::new(&case.trace, &case.points);
        simulation.follow(&case.trace, &built.script);
        let schedule = observed(&case.trace, &case.points, &simulation.records).expect("they fit");
        let seen = performed(&case.trace, &schedule.order);
        prop_assert_eq!(seen, performed(&case.trace, &simulation.order));
    }

    /// Cut before an event, with another thread on: the event does not come before that one.
    #[test]
    fn a_prefix_stops_before_the_event(case in case(false), a in 0..99_usize, b in 0..99_usize) {
        let trace = &case.trace;
        let events = performed(trace, &case.order);
        // The initial thread creates the others, so it is not the one that is stopped.
        let thread = |id: EventId| trace.event(id).thread;
        let (first, later): (Vec<_>, Vec<_>) =
            events.iter().partition(|&&id| thread(id).index() == 0);
        let until = later[a % later.len()];
        let others = later.into_iter().filter(|&id| thread(id) != thread(until));
        let others: Vec<EventId> = first.into_iter().chain(others).collect();
        let then = others[b % others.len()];
        let built = prefix(trace, &case.points, &case.order, until, Some(then));
        let mut simulation = Simulation::new(trace, &case.points);
        let script = Script { end: End::Hold, ..built.script.clone() };
        simulation.follow(trace, &script);
        let place = |id: EventId| simulation.order.iter().position(|&other| other == id);
        let then_at = place(then);
        prop_assert!(then_at.is_some(), "{}", built.script);
        prop_assert_eq!(place(until), None, "{} until {} then {}", built.script, until, then);
        // Everything that comes before the cut and can be separated from it has happened.
        let cut = case.order.iter().position(|&id| id == until).expect("chosen from the order");
        for &id in &case.order[..cut] {
            let held = built.coarse.iter().any(|&(_, second)| second == until)
                && trace.event(id).thread == trace.event(until).thread;
            prop_assert!(is_start(trace, id) || held || place(id).is_some(), "{} {}", built.script, id);
        }
    }
}
