//! What locks are called in a circle of threads.

use crate::support::causes::trace;
use crate::support::explained;
use encoders::dsl::Parsed;
use explain::{Passing, Side, cause};
use model::{Awaited, EventKind, FailureKind, LockMode, ObjectId, Site};

/// Each thread has its own class's lock and asks for the other's.
fn circle() -> Parsed {
    let mut parsed = trace(
        "
        t0: fork b
        t0: [own] lock orders
        b: [its] lock stock
        t0: [asks] W one 1
        b: [waits] W two 1
        b: [left] unlock stock
        t0: [kept] unlock orders
        t0: fail
        ",
    );
    let lock = |parsed: &Parsed, label: &str| -> ObjectId {
        let object = parsed.trace.event(parsed.event(label)).kind.object();
        object.expect("a lock")
    };
    let (orders, stock) = (lock(&parsed, "own"), lock(&parsed, "its"));
    for (label, object) in [("asks", stock), ("waits", orders)] {
        let on = Awaited::Lock { object, mode: LockMode::Exclusive };
        let id = parsed.event(label);
        parsed.trace.events[id.index()].kind = EventKind::Block { on };
    }
    for (label, object) in [("left", stock), ("kept", orders)] {
        let id = parsed.event(label);
        let mode = LockMode::Exclusive;
        parsed.trace.events[id.index()].kind = EventKind::Unlock { object, mode, synthetic: true };
    }
    parsed.trace.failure.as_mut().expect("a failure").kind = FailureKind::Deadlock;
    for (label, line) in [("own", 38), ("its", 15), ("asks", 21), ("waits", 53)] {
        let id = parsed.event(label);
        let event = &mut parsed.trace.events[id.index()];
        event.name = Some("this->m_".into());
        event.stack =
            vec![Site { file: "shop.cc".to_owned(), line, column: 1, function: "f".to_owned() }]
                .into();
    }
    parsed
}

fn sentence(parsed: &Parsed) -> String {
    let failing = explained(&parsed.trace, 0).failing.expect("a failing schedule");
    let side = Side {
        trace: &parsed.trace,
        schedule: &failing.schedule,
        evaluation: &failing.evaluation,
        points: None,
    };
    cause(side, None, Passing::None).expect("a cause").sentence
}

#[test]
fn locks_of_one_name_are_called_as_their_callers_call_them() {
    let mut parsed = circle();
    assert!(sentence(&parsed).matches("`this->m_`").count() == 2, "{}", sentence(&parsed));
    for (label, word) in [("own", "orders.m_"), ("its", "inv.m_")] {
        let id = parsed.event(label);
        parsed.trace.events[id.index()].words =
            vec![Some("this->m_".into()), Some(word.into())].into();
    }
    let told = sentence(&parsed);
    assert!(told.contains("`inv.m_` (shop.cc:21)") && told.contains("`orders.m_` (shop.cc:53)"));
}
