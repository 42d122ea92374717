//! A solution of any size, as of a program whose threads take turns at counting under locks.

use render::Solution;
use render::solution::{
    Alternate, DataFlow, DataFlows, Dsp, Event, EventValue, FORMAT, Failure, Location, Replay,
    RootCause, Thread, VERSION, ValuePair, Verdict,
};

const THREADS: usize = 8;
const COUNTERS: usize = 64;
/// Lock, read, write, unlock.
const SECTION: usize = 4;

/// A solution with about so many events. The alternate has the last two sections of one counter
/// the other way round. `name` is what the counters are called.
pub fn large(events: usize, name: &str) -> Solution {
    let sections = (events / SECTION).max(THREADS * 2);
    let per_thread = sections.div_ceil(THREADS);
    // Section `turn` is number `turn / THREADS` of thread `turn % THREADS`.
    let first_of = |turn: usize| SECTION * ((turn % THREADS) * per_thread + turn / THREADS);
    let total = THREADS * per_thread;
    let counter_of = |turn: usize| if turn + 2 >= total { 0 } else { turn % COUNTERS };
    let mut all = vec![Event::default(); SECTION * total + 1];
    let mut counters = [0_u64; COUNTERS];
    let mut schedule = Vec::with_capacity(all.len());
    for turn in 0..total {
        let counter = counter_of(turn);
        let old = counters[counter];
        counters[counter] += turn as u64 % 7 + 1;
        let steps = [
            ("lock", None),
            ("read", Some(old)),
            ("write", Some(counters[counter])),
            ("unlock", None),
        ];
        for (offset, (kind, value)) in steps.into_iter().enumerate() {
            let index = first_of(turn) + offset;
            all[index] = event(name, turn % THREADS, counter, offset, kind);
            all[index].value = value.map(|value| value.to_string());
            schedule.push(index);
        }
    }
    let failure = all.len() - 1;
    all[failure] = Event {
        thread: "t0.8".to_owned(),
        kind: "failure".to_owned(),
        location: location(99, "check"),
        ..Event::default()
    };
    schedule.push(failure);
    for (index, event) in all.iter_mut().enumerate() {
        event.id = id(index);
    }
    solution(all, &schedule, (first_of(total - 2), first_of(total - 1), total as u64))
}

fn id(index: usize) -> String {
    format!("e{index}")
}

fn location(line: u32, function: &str) -> Location {
    Location { file: "/nowhere/count.c".to_owned(), line, column: 5, function: function.to_owned() }
}

fn event(name: &str, thread: usize, counter: usize, offset: usize, kind: &str) -> Event {
    let lock = kind.ends_with("lock");
    Event {
        thread: format!("t0.{}", thread + 1),
        kind: kind.to_owned(),
        object: Some(if lock { format!("locks[{counter}]") } else { format!("{name}[{counter}]") }),
        targets: vec![format!("{}{counter}", if lock { "o" } else { "m" })],
        location: location(10 + offset as u32, "add"),
        library: Vec::new(),
        callers: vec![location(20 + thread as u32, "round"), location(40, "count")],
        ..Event::default()
    }
}

/// `a` and `b` are the first events of the last two sections, of `turns`.
fn solution(all: Vec<Event>, schedule: &[usize], (a, b, turns): (usize, usize, u64)) -> Solution {
    let value = |index: usize| all[index].value.clone();
    let number = |index: usize| value(index).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    let before = number(a + 1);
    let after_b = before + (turns - 1) % 7 + 1;
    let changed = [(b + 1, before), (b + 2, after_b), (a + 1, after_b), (a + 2, number(b + 2))];
    let mut other = schedule.to_vec();
    let end = other.len() - 1;
    other[end - 2 * SECTION..end].rotate_left(SECTION);
    let names = |indices: &[usize]| indices.iter().map(|index| id(*index)).collect::<Vec<_>>();
    let flow = |write: usize, read: usize, value: u64| DataFlow {
        write: id(write),
        read: id(read),
        value: Some(value.to_string()),
        follows_from: Vec::new(),
    };
    let values = changed.map(|(event, alternate)| ValuePair {
        event: id(event),
        failing: value(event),
        alternate: Some(alternate.to_string()),
    });
    Solution {
        format: FORMAT.to_owned(),
        version: VERSION.to_owned(),
        verdict: Verdict::FailingSchedule,
        failure: Some(Failure {
            kind: "assertion".to_owned(),
            thread: "t0.8".to_owned(),
            event: id(all.len() - 1),
            location: location(99, "check"),
            message: "the counters agree".to_owned(),
        }),
        threads: (0..=THREADS)
            .map(|thread| Thread {
                id: if thread == 0 { "t0".to_owned() } else { format!("t0.{thread}") },
                parent: (thread > 0).then(|| "t0".to_owned()),
                entry: if thread == 0 { "main" } else { "count" }.to_owned(),
            })
            .collect(),
        schedule: names(schedule),
        root_cause: Some(RootCause {
            orders: vec![[id(a + 2), id(b + 1)]],
            minimal: true,
            proposed: false,
            fails_always: false,
        }),
        alternates: vec![Alternate {
            flipped: [id(b + 2), id(a + 1)],
            same_path: true,
            schedule: names(&other),
            values: changed
                .map(|(event, value)| EventValue {
                    event: id(event),
                    value: Some(value.to_string()),
                })
                .to_vec(),
            replay: Replay::Confirmed,
            ..Alternate::default()
        }],
        dsp: Some(Dsp {
            failing: names(&[a + 1, a + 2, b + 1, b + 2]),
            alternate: names(&[b + 1, b + 2, a + 1, a + 2]),
            data_flows: DataFlows {
                failing_only: vec![flow(a + 2, b + 1, number(a + 2))],
                alternate_only: vec![flow(b + 2, a + 1, after_b)],
            },
            values: values.to_vec(),
            ..Dsp::default()
        }),
        events: all,
        ..Solution::default()
    }
}
