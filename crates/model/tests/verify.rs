//! The verifier: well-formed traces pass, and every invariant, once broken, is reported.

use encoders::dsl::parse;
use model::verify::{Violation, verify};
use model::{
    EventId, EventKind, EventTrace, FailureCondition, LockMode, ObjectId, ObjectKind, ThreadId,
    VarId, VariableOrigin,
};

const TEXT: &str = "
    barrier b 2
    t0: fork a
    t0: lock m
    t0: wait c m
    t0: unlock m
    t0: barrier b
    t0: R x -> p
    t0: assume p == 1
    t0: join a
    t0: fail p == 1
    a: W x 1
    a: alloc h
    a: free h
    a: signal c
    a: barrier b
";

fn good() -> EventTrace {
    let trace = parse(TEXT).expect("the text is a trace").trace;
    assert_eq!(verify(&trace), Ok(()));
    trace
}

fn find(trace: &EventTrace, name: &str) -> usize {
    trace.events.iter().position(|e| e.kind.name() == name).expect("such an event")
}

/// Breaks a good trace and checks that a violation of the expected kind is among those reported.
#[track_caller]
fn broken(change: impl Fn(&mut EventTrace), expected: impl Fn(&Violation) -> bool) {
    let mut trace = good();
    change(&mut trace);
    let violations = verify(&trace).expect_err("the trace is broken");
    assert!(violations.iter().any(expected), "{violations:?}");
}

#[test]
fn identifiers_are_indices() {
    broken(|t| t.threads[1].id = ThreadId(7), |v| matches!(v, Violation::Identifier { .. }));
    broken(|t| t.events[3].id = EventId(0), |v| matches!(v, Violation::Identifier { .. }));
    broken(|t| t.cells[0].id.0 = 4, |v| matches!(v, Violation::Identifier { .. }));
    broken(|t| t.objects[0].id.0 = 4, |v| matches!(v, Violation::Identifier { .. }));
    broken(|t| t.variables[0].id.0 = 4, |v| matches!(v, Violation::Identifier { .. }));
    broken(|t| t.conditions[0].id.0 = 4, |v| matches!(v, Violation::Identifier { .. }));
}

#[test]
fn a_thread_may_come_to_its_own_end_with_a_lock() {
    let trace = parse("t0: fork a\nt0: join a\na: lock m").expect("a trace").trace;
    assert_eq!(verify(&trace), Ok(()));
}

#[test]
fn threads_have_earlier_parents() {
    broken(|t| t.threads[1].parent = None, |v| matches!(v, Violation::Parent { .. }));
    broken(|t| t.threads[0].parent = Some(ThreadId(0)), |v| matches!(v, Violation::Parent { .. }));
    broken(|t| t.threads[1].parent = Some(ThreadId(1)), |v| matches!(v, Violation::Parent { .. }));
}

#[test]
fn program_order_has_no_gaps() {
    broken(|t| t.events[2].index = 9, |v| matches!(v, Violation::Place { .. }));
    broken(|t| t.threads[0].events.swap(1, 2), |v| matches!(v, Violation::Place { .. }));
    broken(|t| t.events[2].thread = ThreadId(9), |v| matches!(v, Violation::Place { .. }));
    broken(|t| t.threads[1].events.push(EventId(999)), |v| matches!(v, Violation::Dangling { .. }));
    broken(|t| t.events[2].stack = [].into(), |v| matches!(v, Violation::NoSite(_)));
}

#[test]
fn threads_start_and_end_once() {
    broken(|t| t.events[2].kind = EventKind::Start, |v| matches!(v, Violation::Boundary(_)));
    broken(|t| t.events[2].kind = EventKind::Exit, |v| matches!(v, Violation::Boundary(_)));
}

#[test]
fn widths_agree() {
    broken(|t| t.cells[0].width = 12, |v| matches!(v, Violation::Width { .. }));
    broken(|t| t.variables[0].width = 8, |v| matches!(v, Violation::Width { .. }));
    broken(
        |t| {
            let byte = t.exprs.constant(8, 1);
            let write = find(t, "write");
            let EventKind::Write { parts } = &mut t.events[write].kind else { return };
            parts[0].value = byte;
        },
        |v| matches!(v, Violation::Width { .. }),
    );
    broken(
        |t| t.conditions[0].expr = t.exprs.constant(8, 1),
        |v| matches!(v, Violation::Width { .. }),
    );
    broken(
        |t| {
            let byte = t.exprs.constant(8, 1);
            if let Some(failure) = &mut t.failure {
                failure.condition = FailureCondition::All(vec![FailureCondition::Value(byte)]);
            }
        },
        |v| matches!(v, Violation::Width { .. }),
    );
}

#[test]
fn what_is_named_exists() {
    let dangling = |v: &Violation| matches!(v, Violation::Dangling { .. });
    broken(
        |t| {
            t.exprs.var(VarId(99), 32);
        },
        dangling,
    );
    broken(|t| t.variables[0].origin = VariableOrigin::Init(model::CellId(9)), dangling);
    broken(|t| t.conditions[0].thread = ThreadId(9), dangling);
    broken(
        |t| {
            let signal = find(t, "signal");
            t.events[signal].kind = EventKind::Signal { condition: ObjectId(9) };
        },
        dangling,
    );
    broken(
        |t| {
            let join = find(t, "join");
            t.events[join].kind = EventKind::Join { child: ThreadId(9) };
        },
        dangling,
    );
    broken(
        |t| {
            if let Some(failure) = &mut t.failure {
                failure.condition = FailureCondition::Before(EventId(0), EventId(999));
            }
        },
        dangling,
    );
}

#[test]
fn variables_stem_from_the_parts_that_name_them() {
    let origin = |v: &Violation| matches!(v, Violation::Origin { .. });
    broken(|t| t.variables[0].origin = VariableOrigin::Input, origin);
    broken(|t| t.variables[0].origin = VariableOrigin::Read { event: EventId(0), part: 0 }, origin);
}

#[test]
fn accesses_touch_cells_once() {
    broken(
        |t| {
            let write = find(t, "write");
            t.events[write].kind = EventKind::Write { parts: Vec::new() };
        },
        |v| matches!(v, Violation::NoParts(_)),
    );
    broken(
        |t| {
            let write = find(t, "write");
            let EventKind::Write { parts } = &mut t.events[write].kind else { return };
            parts.push(parts[0]);
        },
        |v| matches!(v, Violation::CellTwice { .. }),
    );
}

#[test]
fn objects_are_of_the_right_kind() {
    broken(
        |t| {
            let signal = find(t, "signal");
            t.events[signal].kind = EventKind::Signal { condition: ObjectId(0) };
        },
        |v| matches!(v, Violation::ObjectKind { .. }),
    );
    broken(
        |t| t.objects[0].kind = ObjectKind::Barrier { count: 0 },
        |v| matches!(v, Violation::EmptyBarrier(_)),
    );
}

#[test]
fn locks_are_balanced() {
    broken(
        |t| {
            let lock = find(t, "lock");
            t.events[lock].kind = EventKind::Fence;
        },
        |v| matches!(v, Violation::NotHeld { .. }),
    );
    broken(
        |t| {
            let at = find(t, "lock");
            t.events[at + 1].kind = t.events[at].kind.clone();
        },
        |v| matches!(v, Violation::SelfLock { .. }),
    );
    broken(
        |t| {
            let last = t.events.iter().rposition(|e| e.kind.name() == "unlock").expect("an unlock");
            t.events[last].kind = EventKind::Fence;
        },
        |v| matches!(v, Violation::HeldAtEnd { .. }),
    );
    broken(
        |t| {
            let unlock = find(t, "unlock");
            let EventKind::Unlock { mode, .. } = &mut t.events[unlock].kind else { return };
            *mode = LockMode::Shared;
        },
        |v| matches!(v, Violation::NotHeld { .. }),
    );
}

#[test]
fn waits_begin_at_releases() {
    broken(
        |t| {
            let wake = find(t, "wake");
            let EventKind::Wake { began, .. } = &mut t.events[wake].kind else { return };
            *began = EventId(0);
        },
        |v| matches!(v, Violation::Began { .. }),
    );
}

#[test]
fn barriers_alternate_and_threads_are_created_once() {
    broken(
        |t| {
            let arrive = find(t, "barrier-arrive");
            t.events[arrive].kind = EventKind::Fence;
        },
        |v| matches!(v, Violation::BarrierTurn { .. }),
    );
    broken(
        |t| {
            let at = find(t, "signal");
            t.events[at].kind = EventKind::Fork { child: ThreadId(1) };
        },
        |v| matches!(v, Violation::Fork { .. }),
    );
    broken(
        |t| {
            let join = find(t, "join");
            t.events[join].kind = EventKind::Join { child: ThreadId(0) };
        },
        |v| matches!(v, Violation::SelfJoin(_)),
    );
    broken(
        |t| {
            let free = find(t, "free");
            t.events[free].kind = t.events[free - 1].kind.clone();
        },
        |v| matches!(v, Violation::Reallocated { .. }),
    );
}

#[test]
fn conditions_and_the_failure_have_their_place() {
    broken(|t| t.conditions[0].position = 99, |v| matches!(v, Violation::Position { .. }));
    broken(|t| t.failure = None, |v| matches!(v, Violation::Failure(_)));
    broken(
        |t| {
            if let Some(failure) = &mut t.failure {
                failure.event = EventId(0);
            }
        },
        |v| matches!(v, Violation::Failure(_)),
    );
}

#[test]
fn all_violations_are_reported() {
    let mut trace = good();
    trace.cells[0].width = 12;
    trace.conditions[0].position = 99;
    trace.failure = None;
    let violations = verify(&trace).expect_err("the trace is broken");
    assert!(violations.len() >= 3, "{violations:?}");
}
