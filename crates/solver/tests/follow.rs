//! What is found does what the recorded run did; and where the log tells everything, it is found.

use crate::random::Random;
use crate::run::Shape;
use model::evaluate::{Check, Evaluator};
use model::{EventId, EventTrace, Schedule, VarId};
use solver::{Goal, Limits, OrderingSession, Outcome, Session, follow, follow_loosely};
use std::fmt::Write as _;

/// The trace with a schedule, one that fails where it can, as the recorded run, of which every so many reads are not in the log.
fn recorded(mut trace: EventTrace, left_out: usize) -> Option<(EventTrace, Schedule)> {
    let system = encoders::encode(&trace).expect("the trace can be encoded");
    let mut session = OrderingSession::new(&trace, &system, Limits::default());
    let goal = if trace.failure.is_some() { Goal::Fail } else { Goal::Any };
    let Outcome::Sat(found) = session.check(goal, &[]).expect("an answer") else {
        return None;
    };
    let inputs = |var: VarId| Some(found.values.get(&var).copied().unwrap_or(0));
    let values =
        Evaluator::new(&trace).run(&found.schedule.order, &inputs).expect("it can happen").values;
    for (index, (variable, value)) in trace.variables.iter_mut().zip(values).enumerate() {
        let is_read = matches!(variable.origin, model::VariableOrigin::Read { .. });
        let is_left_out = is_read && left_out > 0 && index % left_out == 0;
        variable.recorded = value.filter(|_| !is_left_out);
    }
    Some((trace, found.schedule))
}

fn values(trace: &EventTrace, schedule: &Schedule) -> Vec<Option<u128>> {
    let inputs = |var: VarId| trace.variables[var.index()].recorded;
    let ran = Evaluator::new(trace).run(&schedule.order, &inputs);
    let evaluation = ran.expect("it can happen");
    assert!(evaluation.follows_paths());
    evaluation.values
}

fn traces() -> impl Iterator<Item = EventTrace> {
    let texts = (0..1_500).map(crate::generate::generate);
    texts.map(|text| encoders::dsl::parse(&text).expect("it is well formed").trace)
}

#[test]
fn a_run_whose_log_tells_everything_is_always_followed() {
    let mut found = 0;
    for (trace, run) in traces().filter_map(|trace| recorded(trace, 0)) {
        let system = encoders::encode_recorded_orders(&trace).expect("there are orders");
        let followed = follow(&trace, &system, &[], true, || true);
        let Some(followed) = followed else { panic!("{run:?} is one of {trace:?}") };
        assert_eq!(values(&trace, &followed), values(&trace, &run));
        found += 1;
    }
    assert!(found > 300, "{found}");
}

#[test]
fn reads_that_the_log_does_not_tell_of_follow_the_paths() {
    let (mut found, mut missed) = (0, 0);
    for (trace, _) in traces().filter_map(|trace| recorded(trace, 3)) {
        let system = encoders::encode_recorded_orders(&trace).expect("there are orders");
        match follow(&trace, &system, &[], true, || true) {
            Some(followed) => {
                for (variable, value) in trace.variables.iter().zip(values(&trace, &followed)) {
                    assert!(variable.recorded.is_none() || variable.recorded == value);
                }
                found += 1;
            }
            None => missed += 1,
        }
    }
    assert!(found > 300 && missed == 0, "{found} found, {missed} missed");
}

#[test]
fn one_that_cannot_be_followed_may_read_something_else() {
    // Nobody ever writes the 7 that the log tells of, and nothing depends on it.
    let text = "t0: W x 1\nt0: R x -> a\nt0: W x a + 1\n";
    let mut trace = encoders::dsl::parse(text).expect("it is well formed").trace;
    let read =
        trace.variables.iter_mut().find(|v| matches!(v.origin, model::VariableOrigin::Read { .. }));
    read.expect("there is a read").recorded = Some(7);
    let system = encoders::encode_recorded_orders(&trace).expect("there are orders");
    assert_eq!(follow(&trace, &system, &[], true, || true), None);
    let followed = follow(&trace, &system, &[], false, || true).expect("there is a schedule");
    assert_eq!(followed.order.len(), trace.events.len());
}

#[test]
fn what_nobody_wrote_keeps_no_run_from_being_followed_loosely() {
    let (mut strange, mut spared, mut whole) = (0, 0, 0);
    for (mut trace, run) in traces().filter_map(|trace| recorded(trace, 0)) {
        let system = encoders::encode_recorded_orders(&trace).expect("there are orders");
        let (followed, none) = follow_loosely(&trace, &system, &[], || true);
        assert_eq!((values(&trace, &followed), none), (values(&trace, &run), 0));
        // What a use of freed memory finds, say.
        let is_read = |origin| matches!(origin, model::VariableOrigin::Read { .. });
        let Some(read) = trace.variables.iter_mut().rfind(|of| is_read(of.origin)) else {
            continue;
        };
        read.recorded = Some(0x4141);
        if follow(&trace, &system, &[], true, || true).is_some() {
            continue;
        }
        let (followed, some) = follow_loosely(&trace, &system, &[], || true);
        // Where the farthest that the search came is no way on, it ends there.
        whole += usize::from(followed.order.len() == trace.events.len());
        (strange, spared) = (strange + 1, spared + some);
    }
    assert!(strange > 300 && whole * 20 > strange * 19, "{whole} of {strange} runs");
    assert!(spared < 3 * strange, "{spared} reads of {strange} runs");
}

/// What a thread will find is looked at before its time has come: nobody writes that, whatever the other thread does first.
#[test]
fn what_nobody_will_write_is_let_go_before_its_turn() {
    let text =
        "t0: fork t1\nt0: [first] W y 1\nt0: [second] W y 2\nt1: [read] R x -> a\nt1: W z a\n";
    let mut parsed = encoders::dsl::parse(text).expect("it is well formed");
    let [second, read] = ["second", "read"].map(|label| parsed.event(label));
    let is_read = |origin| matches!(origin, model::VariableOrigin::Read { .. });
    let variable = parsed.trace.variables.iter_mut().find(|of| is_read(of.origin));
    variable.expect("there is a read").recorded = Some(7);
    let system = encoders::encode_recorded_orders(&parsed.trace).expect("there are orders");
    let order = solver::Order { before: second, after: read };
    let (followed, spared) = follow_loosely(&parsed.trace, &system, &[order], || true);
    assert_eq!((followed.order.len(), spared), (parsed.trace.events.len(), 1));
}

#[test]
fn a_run_that_is_cut_short_is_followed_to_where_it_can_be() {
    // A signal that never comes ends the run before its last event.
    let text = "t0: fork t1\nt0: W x 1\nt1: R x -> a\nt1: sem-wait s\nt1: W x 2\n";
    let parsed = encoders::dsl::parse(text).expect("it is well formed");
    let system = encoders::encode_recorded_orders(&parsed.trace).expect("there are orders");
    let (followed, spared) = follow_loosely(&parsed.trace, &system, &[], || true);
    assert_eq!((followed.order.len(), spared), (parsed.trace.events.len() - 3, 0));
}

/// A run in which one thread puts jobs into a queue and another one takes them and looks again where there is nothing; both
/// count what is waiting without the lock.
fn polled(jobs: usize, seed: u64) -> String {
    let mut random = Random::new(seed);
    let mut text = String::from("t0: fork t1\nt0: fork t2\n");
    let (mut put, mut counted, mut taken, mut names) = (0, 0, 0, 0);
    let mut holder = None;
    // Where each thread is in its round.
    let mut at = [0, 0];
    let mut found = false;
    while counted < jobs || taken < jobs || at != [0, 0] {
        let thread = random.below(2);
        let is_producer = thread == 0;
        let is_over = at[thread] == 0 && if is_producer { counted == jobs } else { taken == jobs };
        let name = thread + 1;
        names += 1;
        let line = match at[thread] {
            _ if is_over => continue,
            0 if holder.is_some() => continue,
            0 => {
                holder = Some(thread);
                "lock m".to_owned()
            }
            1 if is_producer => {
                put += 1;
                format!("R put -> a{names}\nt{name}: W put a{names} + 1")
            }
            1 => {
                found = taken < put;
                let sign = if found { ">" } else { "<=" };
                format!("R put -> a{names}\nt{name}: assume a{names} {sign} {taken}")
            }
            2 => {
                holder = None;
                "unlock m".to_owned()
            }
            3 => format!("R waiting -> w{thread}_{}", if is_producer { counted } else { taken }),
            _ if is_producer => format!("W waiting w{thread}_{counted} + 1"),
            _ => format!("W waiting w{thread}_{taken} - 1"),
        };
        let _ = writeln!(text, "t{name}: {line}");
        let is_round_over = at[thread] == 4 || (at[thread] == 2 && !is_producer && !found);
        if at[thread] == 4 {
            *(if is_producer { &mut counted } else { &mut taken }) += 1;
        }
        at[thread] = if is_round_over { 0 } else { at[thread] + 1 };
    }
    text.push_str("t0: join t1\nt0: join t2\nt0: R waiting -> end\nt0: fail end != 0\n");
    text
}

/// A run of a ring with two producers, which look whether it is full without a lock: nothing is logged of what that look
/// at `head` returned, only which way the producer went then.
fn ring(items: usize, size: usize, seed: u64) -> String {
    let mut random = Random::new(seed);
    let mut text = String::from("t0: fork t1\nt0: fork t2\nt0: fork t3\n");
    let (mut head, mut tail, mut names) = (0, 0, 0);
    let mut left = [items, items];
    // What each producer read of `tail`, and under which name; and the way that it goes on.
    let mut read: [Option<(usize, usize, bool)>; 2] = [None, None];
    let mut looked = [false, false];
    let mut thread = 0;
    while left != [0, 0] || head < tail {
        // Mostly nobody gets in between.
        let is_within = read.get(thread).is_some_and(Option::is_some);
        if !is_within || random.below(10) == 0 {
            thread = random.below(3);
        }
        names += 1;
        let line = match thread {
            2 if head == tail => continue,
            2 => {
                head += 1;
                let before = head - 1;
                format!("R tail -> c{names}\nt3: assume c{names} > {before}\nt3: W head {head}")
            }
            _ if left[thread] == 0 => continue,
            _ => match read[thread] {
                None => {
                    read[thread] = Some((tail, names, false));
                    format!("R tail -> a{names}")
                }
                Some((found, name, _)) if !looked[thread] => {
                    let is_full = found.checked_sub(head) == Some(size);
                    looked[thread] = true;
                    read[thread] = Some((found, name, is_full));
                    let sign = if is_full { "==" } else { "!=" };
                    let thread = thread + 1;
                    format!(
                        "R head -> b{names}\nt{thread}: assume a{name} - b{names} {sign} {size}"
                    )
                }
                Some((found, name, is_full)) => {
                    (read[thread], looked[thread]) = (None, false);
                    if is_full {
                        continue;
                    }
                    tail = found + 1;
                    left[thread] -= 1;
                    format!("W tail a{name} + 1")
                }
            },
        };
        let _ = writeln!(text, "t{}: {line}", thread + 1);
        // An item that was overwritten is behind the consumer, or the whole run would end here.
        if tail < head || tail > head + size {
            return String::new();
        }
    }
    text.push_str("t0: join t1\nt0: join t2\nt0: join t3\nt0: R tail -> end\n");
    let _ = writeln!(text, "t0: fail end != {}", 2 * items);
    text
}

#[test]
fn what_threads_can_never_find_again_is_noticed_at_once() {
    // Only producers read `head`.
    let logged = |trace: &EventTrace, event: EventId| {
        let cell = trace.event(event).kind.reads()[0].cell;
        trace.cells[cell.index()].name != "head"
    };
    let runs = (0..200).map(|seed| ring(60, 4, seed)).filter(|text| !text.is_empty());
    let mut efforts: Vec<f64> = runs.filter_map(|text| effort_of(&text, logged)).collect();
    efforts.sort_by(f64::total_cmp);
    let (half, most) = (efforts.len() / 2, efforts.len() * 9 / 10);
    assert!(half > 20 && efforts[half] < 4.0 && efforts[most].is_finite(), "{efforts:?}");
}

/// Follows a run of which everything is logged; how many events of its own happened for each that there is. `None` for
/// a run that passes.
fn effort(text: &str) -> Option<f64> {
    effort_of(text, |_, _| true)
}

/// The same where the log tells of some reads alone.
fn effort_of(text: &str, logged: impl Fn(&EventTrace, EventId) -> bool) -> Option<f64> {
    let mut trace = encoders::dsl::parse(text).expect("it is well formed").trace;
    let is_logged = |variable: &model::Variable| match variable.origin {
        model::VariableOrigin::Read { event, .. } => logged(&trace, event),
        _ => true,
    };
    let known: Vec<bool> = trace.variables.iter().map(is_logged).collect();
    crate::run::record(text, &mut trace, |var| known[var.index()]);
    let order = crate::run::order(text, &trace);
    if Evaluator::new(&trace).check(&order, &|_| Some(0)) != Check::Fails {
        return None;
    }
    let system = encoders::encode_recorded_orders(&trace).expect("there are orders");
    // It is asked after a thousand events.
    let mut asked = 0;
    let followed = follow(&trace, &system, &[], true, || {
        asked += 1;
        true
    });
    let Some(followed) = followed else {
        eprintln!("none {asked}");
        return None;
    };
    assert_eq!(Evaluator::new(&trace).check(&followed.order, &|_| Some(0)), Check::Fails);
    Some(f64::from(asked) * 1_024.0 / trace.events.len() as f64)
}

#[test]
fn a_polled_queue_is_followed_almost_without_a_step_in_vain() {
    let efforts: Vec<f64> = (1..6).filter_map(|seed| effort(&polled(400, seed))).collect();
    assert!(efforts.len() > 3 && efforts.iter().all(|&effort| effort < 1.5), "{efforts:?}");
}

#[test]
fn runs_with_hot_variables_are_followed_with_few_steps_in_vain() {
    // With more threads, values that say little, and a clock that says nothing, it gives up.
    let shape =
        Shape { threads: 2, accesses: 4_000, cells: 8, locked: 5, branches: 30, reading: 0 };
    let efforts: Vec<f64> =
        (0..3).filter_map(|seed| effort(&crate::run::generate(&shape, seed))).collect();
    assert!(efforts.len() == 3 && efforts.iter().all(|&effort| effort < 3.0), "{efforts:?}");
}
