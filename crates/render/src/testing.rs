//! A small solved trace for the tests of the formats.

use crate::solution::{
    Alternate, Cause, DataFlow, DataFlows, Dsp, Event, FORMAT, Failure, Location, RootCause,
    Solution, Stats, Thread, VERSION, ValuePair, Verdict,
};

/// A lost update: two threads read 0, both write 1.
pub(crate) fn lost_update() -> Solution {
    let location = |line| Location {
        file: "/src/bank.c".to_owned(),
        line,
        column: 5,
        function: "deposit".to_owned(),
    };
    let event = |id: &str, thread: &str, kind: &str, line, value: &str| Event {
        id: id.to_owned(),
        thread: thread.to_owned(),
        kind: kind.to_owned(),
        object: Some("bank->total".to_owned()),
        targets: vec!["m0".to_owned()],
        location: location(line),
        library: Vec::new(),
        callers: Vec::new(),
        value: Some(value.to_owned()),
    };
    let flow = |write: &str, read: &str, value: &str| DataFlow {
        write: write.to_owned(),
        read: read.to_owned(),
        value: Some(value.to_owned()),
        follows_from: Vec::new(),
    };
    let pair = |event: &str, failing: &str, alternate: &str| ValuePair {
        event: event.to_owned(),
        failing: Some(failing.to_owned()),
        alternate: Some(alternate.to_owned()),
    };
    let names = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
    Solution {
        format: FORMAT.to_owned(),
        version: VERSION.to_owned(),
        verdict: Verdict::FailingSchedule,
        failure: Some(Failure {
            kind: "assertion".to_owned(),
            thread: "t0".to_owned(),
            event: "e5".to_owned(),
            location: location(30),
            message: "bank->total == \"2\"".to_owned(),
        }),
        cause: Some(Cause {
            pattern: "atomicity".to_owned(),
            case: Some("read-write-write".to_owned()),
            sentence: "t0.1 wrote `bank->total` (bank.c:11) between t0.2's read (bank.c:10) and \
                       its write (bank.c:11)"
                .to_owned(),
            variables: vec!["bank->total".to_owned()],
            events: names(&["e1", "e2", "e3"]),
            names: names(&["bank->total"; 3]),
            fingerprint: "0123456789abcdef".to_owned(),
            in_vain: false,
        }),
        threads: vec![
            Thread { id: "t0".to_owned(), parent: None, entry: "main".to_owned() },
            Thread {
                id: "t0.1".to_owned(),
                parent: Some("t0".to_owned()),
                entry: "deposit".to_owned(),
            },
        ],
        events: vec![
            event("e0", "t0.1", "read", 10, "0"),
            event("e1", "t0.1", "write", 11, "1"),
            event("e2", "t0.2", "read", 10, "0"),
            event("e3", "t0.2", "write", 11, "1"),
            event("e4", "t0", "read", 30, "1"),
            event("e5", "t0", "failure", 30, ""),
        ],
        schedule: names(&["e0", "e2", "e1", "e3", "e4", "e5"]),
        root_cause: Some(RootCause {
            orders: vec![["e2".to_owned(), "e1".to_owned()]],
            minimal: true,
            proposed: false,
            fails_always: false,
        }),
        alternates: vec![Alternate {
            flipped: ["e1".to_owned(), "e2".to_owned()],
            same_path: true,
            schedule: names(&["e0", "e1", "e2", "e3", "e4", "e5"]),
            ..Alternate::default()
        }],
        dsp: Some(Dsp {
            failing: names(&["e2", "e1"]),
            alternate: names(&["e1", "e2"]),
            data_flows: DataFlows {
                failing_only: vec![flow("init", "e2", "0")],
                alternate_only: vec![flow("e1", "e2", "1")],
            },
            values: vec![pair("e2", "0", "1"), pair("e1", "1", "1")],
            atomic_blocks: Vec::new(),
        }),
        stats: Stats {
            events: 6,
            dsp_events: 2,
            dsp_data_flows: 2,
            data_flows: 3,
            ..Stats::default()
        },
        ..Solution::default()
    }
}

/// The lost update with an alternate that takes another path: the second thread reads 1 and writes
/// a note in place of the total.
pub(crate) fn other_path() -> Solution {
    let mut solution = lost_update();
    solution.root_cause = Some(RootCause {
        orders: vec![["e2".to_owned(), "e1".to_owned()]],
        minimal: false,
        proposed: false,
        fails_always: true,
    });
    let names = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
    let mut note = solution.events[3].clone();
    (note.id, note.object, note.value) =
        ("a0".to_owned(), Some("bank->note".to_owned()), Some("7".to_owned()));
    let alternate = &mut solution.alternates[0];
    alternate.same_path = false;
    alternate.replay = crate::solution::Replay::Confirmed;
    alternate.schedule = names(&["e0", "e1", "e2", "a0", "e4"]);
    alternate.events = vec![note];
    if let Some(dsp) = &mut solution.dsp {
        dsp.failing.push("e3".to_owned());
        dsp.alternate.push("a0".to_owned());
        let value = |event: &str, failing: Option<&str>, alternate: Option<&str>| ValuePair {
            event: event.to_owned(),
            failing: failing.map(str::to_owned),
            alternate: alternate.map(str::to_owned),
        };
        dsp.values.push(value("e3", Some("1"), None));
        dsp.values.push(value("a0", None, Some("7")));
    }
    solution
}
