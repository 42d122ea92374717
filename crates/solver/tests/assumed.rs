//! Questions about schedules with many orders: what these say of the sources of reads is seen at once.

use encoders::dsl::parse;
use model::{EventId, EventTrace};
use solver::{Goal, Limits, Order, OrderingSession, Outcome, Session};
use std::fmt::Write as _;

/// Threads that count one variable up and down again without a lock, and a check of it in the end.
fn counting(threads: usize, times: usize, end: i64) -> EventTrace {
    let mut text = String::from("t0: W x 50\n");
    (1..=threads).for_each(|thread| {
        let _ = writeln!(text, "t0: fork t{thread}");
    });
    for thread in 1..=threads {
        for time in 0..times {
            let [up, down] = ["u", "d"].map(|kind| format!("{kind}{thread}_{time}"));
            let _ = writeln!(text, "t{thread}: R x -> {up}\nt{thread}: W x {up} + 1");
            let _ = writeln!(text, "t{thread}: R x -> {down}\nt{thread}: W x {down} - 1");
        }
    }
    (1..=threads).for_each(|thread| {
        let _ = writeln!(text, "t0: join t{thread}");
    });
    let _ = writeln!(text, "t0: R x -> end\nt0: fail end == {end}");
    parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}")).trace
}

/// A schedule in which the threads take turns, at every third event of one at the latest, and the value in the end.
fn taking_turns(trace: &EventTrace) -> (Vec<EventId>, i64) {
    let workers: Vec<&model::Thread> = trace.threads.iter().skip(1).collect();
    let of_main = &trace.threads[0].events;
    let forks = 1 + workers.len() + 1;
    let mut order: Vec<EventId> = of_main[..forks].to_vec();
    let mut next = vec![0; workers.len()];
    for turn in 0.. {
        let open = (0..workers.len()).filter(|&w| next[w] < workers[w].events.len());
        let open: Vec<usize> = open.collect();
        let Some(&worker) = open.get(turn % open.len().max(1)) else { break };
        for _ in 0..1 + turn % 3 {
            order.extend(workers[worker].events.get(next[worker]));
            next[worker] += 1;
        }
    }
    order.extend(&of_main[forks..]);
    let (mut x, mut read) = (50, vec![0; trace.threads.len()]);
    for id in &order {
        let event = trace.event(*id);
        let place = event.index as usize;
        if event.thread.0 > 0 && !event.kind.reads().is_empty() {
            read[event.thread.index()] = x;
        } else if event.thread.0 > 0 && !event.kind.writes().is_empty() {
            // Behind the event that begins a thread there are four accesses in a round.
            x = read[event.thread.index()] + if (place - 1) % 4 == 1 { 1 } else { -1 };
        }
    }
    (order, x)
}

/// Every order of neighbouring accesses of two threads, one of which writes.
fn conflicts(trace: &EventTrace, order: &[EventId]) -> Vec<Order> {
    let accesses = |id: &&EventId| {
        let event = trace.event(**id);
        !event.kind.reads().is_empty() || !event.kind.writes().is_empty()
    };
    let accesses: Vec<EventId> = order.iter().filter(accesses).copied().collect();
    let writes = |id: EventId| !trace.event(id).kind.writes().is_empty();
    let mut found = Vec::new();
    for (place, &after) in accesses.iter().enumerate() {
        for &before in accesses[..place].iter().rev() {
            let apart = trace.event(before).thread != trace.event(after).thread;
            if apart && (writes(before) || writes(after)) {
                found.push(Order { before, after });
            }
            if writes(before) {
                break;
            }
        }
    }
    found
}

#[test]
fn all_orders_of_a_schedule_leave_nothing_to_search() {
    let (_, end) = taking_turns(&counting(4, 12, 0));
    let trace = counting(4, 12, end);
    let (order, _) = taking_turns(&trace);
    let orders = conflicts(&trace, &order);
    let system = encoders::encode(&trace).expect("the trace can be encoded");
    let mut session = OrderingSession::new(&trace, &system, Limits::default());

    let outcome = session.check(Goal::Fail, &orders).expect("an answer");
    let Outcome::Sat(model) = outcome else { panic!("{outcome:?}") };
    let check = model::evaluate::Evaluator::new(&trace).check(&model.schedule.order, &|_| None);
    assert_eq!(check, model::evaluate::Check::Fails);
    let outcome = session.check(Goal::Pass, &orders).expect("an answer");
    let Outcome::Unsat(core) = outcome else { panic!("{outcome:?}") };
    // Without, the search tries one source after the other.
    assert!(session.work().conflicts < 20, "{:?}", session.work());

    // What it says of the orders is true, whatever is known from other questions.
    let core: Vec<Order> = core.into_iter().map(|index| orders[index]).collect();
    assert!(!core.is_empty() && core.len() < orders.len());
    let mut session = OrderingSession::new(&trace, &system, Limits::default());
    assert!(matches!(session.check(Goal::Pass, &core), Ok(Outcome::Unsat(_))));
}
