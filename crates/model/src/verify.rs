//! The verifier of event traces. A recorded run becomes an event trace only through it.
//!
//! The invariants, in the order in which they are checked:
//!
//! 1. Threads: identifiers equal indices; the first thread has no parent, every other has one
//!    with a smaller index.
//! 2. Events: identifiers equal indices; each names an existing thread; events are grouped by
//!    thread and every thread lists exactly its own, in program order, gapless from 0; every
//!    event has a source place.
//! 3. A [`Start`](crate::EventKind::Start) is its thread's first event. After an
//!    [`Exit`](crate::EventKind::Exit) or [`Failure`](crate::EventKind::Failure) come synthetic
//!    unlocks at most, so that a thread has at most one of them.
//! 4. Expressions name existing variables, with their widths.
//! 5. Cells: identifiers equal indices; widths are multiples of 8 up to 128; initial values exist
//!    and are as wide.
//! 6. Objects: identifiers equal indices; a barrier counts at least 1.
//! 7. Variables: identifiers equal indices; widths are 1 to 128; a variable that stems from a
//!    read or a cell is named by that read part, or exists as that cell, with one width.
//! 8. Reads and writes: at least one part; cells exist, none twice among the parts read or among
//!    the parts written; a part's variable stems from that part; variables and values are as wide
//!    as their cells.
//! 9. Synchronisation: objects exist and are of the kind that the event works on.
//! 10. Locks: a thread releases only what it holds, in the mode in which it holds it; takes no
//!     lock exclusively that it holds; and holds none at the end of its log, unless it came to its own
//!     end there.
//! 11. Condition waits: `began` is an earlier release of the same thread and begins one wait.
//! 12. Barriers: a thread arrives and leaves in turns.
//! 13. Threads are created once, by their parents, and joined only if they exist and by others.
//! 14. Heap objects are allocated at most once.
//! 15. Path conditions: identifiers equal indices; threads exist; positions lie within the
//!     thread; expressions exist and have 1 bit.
//! 16. The failure names an event of kind `Failure`, the only one; its condition's expressions
//!     have 1 bit and its events exist. Without a failure there is no such event.

mod accesses;
mod synchronisation;

use crate::ExprId;
use crate::event::{EventKind, LockMode};
use crate::expr::{Expr, MAX_WIDTH};
use crate::ids::{CellId, ConditionId, EventId, ObjectId, ThreadId, VarId};
use crate::trace::{EventTrace, FailureCondition, ObjectKind};
use thiserror::Error;

/// A broken invariant.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Violation {
    /// An entity's identifier is not its index.
    #[error("{what} {index} is called {id}")]
    Identifier {
        /// What kind of entity.
        what: &'static str,
        /// Its index.
        index: usize,
        /// Its identifier.
        id: String,
    },
    /// An identifier of an entity that does not exist.
    #[error("{place} names {id}, which does not exist")]
    Dangling {
        /// Where.
        place: String,
        /// The identifier.
        id: String,
    },
    /// A thread's parent is missing, comes later, or is there for the first thread.
    #[error("the parent of {thread} is {}", parent.map_or("missing".to_owned(), |p| p.to_string()))]
    Parent {
        /// The thread.
        thread: ThreadId,
        /// Its parent.
        parent: Option<ThreadId>,
    },
    /// An event is not where the program order of its thread has it.
    #[error("{event} is not at place {index} of its thread {thread}, or not in its group")]
    Place {
        /// The event.
        event: EventId,
        /// Its thread.
        thread: ThreadId,
        /// Its index within the thread.
        index: u32,
    },
    /// An event has no source place.
    #[error("{0} has no source place")]
    NoSite(EventId),
    /// A start that is not first, or events after the end.
    #[error("{0} cannot stand at this place of its thread")]
    Boundary(EventId),
    /// A width that is not allowed, or not the one expected.
    #[error("{place} is {actual} bits wide instead of {expected}")]
    Width {
        /// Where.
        place: String,
        /// The width found.
        actual: u32,
        /// The width expected, in words.
        expected: String,
    },
    /// A barrier of no threads.
    #[error("barrier {0} counts no threads")]
    EmptyBarrier(ObjectId),
    /// A variable whose origin says otherwise than the read.
    #[error("the origin of {variable} does not match the read that names it")]
    Origin {
        /// The variable.
        variable: VarId,
    },
    /// An access without parts.
    #[error("{0} touches no cell")]
    NoParts(EventId),
    /// A cell twice in one event.
    #[error("{event} touches {cell} twice")]
    CellTwice {
        /// The event.
        event: EventId,
        /// The cell.
        cell: CellId,
    },
    /// An object of another kind.
    #[error("{event} cannot work on {object}, which is a {kind:?}")]
    ObjectKind {
        /// The event.
        event: EventId,
        /// The object.
        object: ObjectId,
        /// The object's kind.
        kind: ObjectKind,
    },
    /// A release of a lock that the thread does not hold.
    #[error("{event} releases {object}, which its thread does not hold ({mode:?})")]
    NotHeld {
        /// The release.
        event: EventId,
        /// The lock.
        object: ObjectId,
        /// How it is released.
        mode: LockMode,
    },
    /// An acquisition that its own thread blocks.
    #[error("{event} acquires {object}, which its own thread holds")]
    SelfLock {
        /// The acquisition.
        event: EventId,
        /// The lock.
        object: ObjectId,
    },
    /// A lock that is held at the end of the thread's log.
    #[error("{thread} ends holding {object}")]
    HeldAtEnd {
        /// The thread.
        thread: ThreadId,
        /// The lock.
        object: ObjectId,
    },
    /// A wait that does not begin at an earlier release of its thread, or shares it.
    #[error("{event} says that its wait began at {began}")]
    Began {
        /// The wake-up or time-out.
        event: EventId,
        /// What it names.
        began: EventId,
    },
    /// A departure from a barrier without an arrival, or two arrivals.
    #[error("{event} does not alternate with the other events of its thread at {object}")]
    BarrierTurn {
        /// The event.
        event: EventId,
        /// The barrier.
        object: ObjectId,
    },
    /// A thread created twice, or by another than its parent.
    #[error("{event} creates {child}, which another event or thread creates")]
    Fork {
        /// The creation.
        event: EventId,
        /// The thread created.
        child: ThreadId,
    },
    /// A thread that joins itself.
    #[error("{0} joins its own thread")]
    SelfJoin(EventId),
    /// A second allocation of one object.
    #[error("{event} allocates {object} again")]
    Reallocated {
        /// The second allocation.
        event: EventId,
        /// The object.
        object: ObjectId,
    },
    /// A path condition behind the end of its thread.
    #[error("{condition} stands after {position} events of {thread}, which has {events}")]
    Position {
        /// The condition.
        condition: ConditionId,
        /// The thread.
        thread: ThreadId,
        /// The condition's position.
        position: u32,
        /// The thread's events.
        events: usize,
    },
    /// A failure event that is not the trace's failure, or the reverse.
    #[error("{0} is a failure event or the trace's failure, but not both")]
    Failure(EventId),
}

/// Checks all invariants.
///
/// # Errors
/// Every violation found, in the order of the list above.
pub fn verify(trace: &EventTrace) -> Result<(), Vec<Violation>> {
    let mut check = Checker { trace, violations: Vec::new() };
    check.threads();
    check.events();
    check.given();
    check.boundaries();
    check.expressions();
    check.cells();
    check.objects();
    check.variables();
    check.parts();
    check.synchronisation();
    check.conditions();
    check.failure();
    if check.violations.is_empty() { Ok(()) } else { Err(check.violations) }
}

struct Checker<'t> {
    trace: &'t EventTrace,
    violations: Vec<Violation>,
}

impl Checker<'_> {
    fn report(&mut self, violation: Violation) {
        self.violations.push(violation);
    }

    fn identifiers<I: ToString + PartialEq + Copy>(
        &mut self,
        what: &'static str,
        ids: impl Iterator<Item = I>,
        expected: impl Fn(usize) -> I,
    ) {
        for (index, id) in ids.enumerate() {
            if id != expected(index) {
                self.report(Violation::Identifier { what, index, id: id.to_string() });
            }
        }
    }

    /// Is `index` below `len`? Reports a dangling identifier when not.
    fn exists(
        &mut self,
        place: impl ToString,
        id: impl ToString,
        index: usize,
        len: usize,
    ) -> bool {
        if index < len {
            return true;
        }
        self.report(Violation::Dangling { place: place.to_string(), id: id.to_string() });
        false
    }

    fn event_exists(&mut self, place: impl ToString, id: EventId) -> bool {
        self.exists(place, id, id.index(), self.trace.events.len())
    }

    /// Does the expression exist and have this width?
    fn expression(&mut self, place: &str, expr: ExprId, width: u32) {
        let id = format!("{expr:?}");
        if self.exists(place, id, expr.0 as usize, self.trace.exprs.len()) {
            self.width(place, self.trace.exprs.width(expr), width);
        }
    }

    fn width(&mut self, place: &str, actual: u32, expected: u32) {
        if actual != expected {
            let (place, expected) = (place.to_owned(), expected.to_string());
            self.report(Violation::Width { place, actual, expected });
        }
    }

    fn threads(&mut self) {
        self.identifiers("thread", self.trace.threads.iter().map(|t| t.id), ThreadId::from_index);
        for (index, thread) in self.trace.threads.iter().enumerate() {
            let right = match thread.parent {
                None => index == 0,
                Some(parent) => parent.index() < index,
            };
            if !right {
                let thread_id = ThreadId::from_index(index);
                self.report(Violation::Parent { thread: thread_id, parent: thread.parent });
            }
        }
    }

    fn events(&mut self) {
        let trace = self.trace;
        self.identifiers("event", trace.events.iter().map(|e| e.id), EventId::from_index);
        let mut listed = trace.threads.iter().flat_map(|thread| (0u32..).zip(&thread.events));
        for event in &trace.events {
            // Grouped by thread and listed in the same order: the lists, one after the other, are
            // the events.
            let place = listed.next().map(|(index, id)| (index, *id));
            if place != Some((event.index, event.id))
                || trace
                    .threads
                    .get(event.thread.index())
                    .and_then(|t| t.events.get(event.index as usize).copied())
                    != Some(event.id)
            {
                self.report(Violation::Place {
                    event: event.id,
                    thread: event.thread,
                    index: event.index,
                });
            }
            if event.stack.is_empty() {
                self.report(Violation::NoSite(event.id));
            }
        }
        for (_, id) in listed {
            self.report(Violation::Dangling {
                place: "a thread's list".into(),
                id: id.to_string(),
            });
        }
    }

    fn given(&mut self) {
        for &(before, after) in &self.trace.given {
            self.event_exists("the given orders", before);
            self.event_exists("the given orders", after);
        }
        for &(access, free) in &self.trace.lifetimes {
            self.event_exists("the lifetimes", access);
            self.event_exists("the lifetimes", free);
        }
    }

    fn boundaries(&mut self) {
        let trace = self.trace;
        for thread in &trace.threads {
            let mut ended = false;
            for id in &thread.events {
                let Some(event) = trace.events.get(id.index()) else { continue };
                let synthetic = matches!(event.kind, EventKind::Unlock { synthetic: true, .. });
                let late_start = event.kind == EventKind::Start && event.index != 0;
                if late_start || (ended && !synthetic) {
                    self.report(Violation::Boundary(event.id));
                }
                ended |= matches!(event.kind, EventKind::Exit | EventKind::Failure);
            }
        }
    }

    fn expressions(&mut self) {
        for index in 0..self.trace.exprs.len() {
            let id = ExprId(u32::try_from(index).unwrap_or(u32::MAX));
            if let Expr::Var { var, width } = self.trace.exprs.get(id) {
                let place = format!("expression {id:?}");
                if self.exists(&place, var, var.index(), self.trace.variables.len()) {
                    self.width(&place, width, self.trace.variables[var.index()].width);
                }
            }
        }
    }

    fn cells(&mut self) {
        self.identifiers("cell", self.trace.cells.iter().map(|c| c.id), CellId::from_index);
        for (index, cell) in self.trace.cells.iter().enumerate() {
            let place = format!("cell {}", CellId::from_index(index));
            if cell.width == 0 || cell.width > MAX_WIDTH || cell.width % 8 != 0 {
                let expected = format!("a multiple of 8 up to {MAX_WIDTH}");
                self.report(Violation::Width {
                    place: place.clone(),
                    actual: cell.width,
                    expected,
                });
            }
            self.expression(&format!("the initial value of {place}"), cell.init, cell.width);
        }
    }

    fn objects(&mut self) {
        self.identifiers("object", self.trace.objects.iter().map(|o| o.id), ObjectId::from_index);
        for (index, object) in self.trace.objects.iter().enumerate() {
            if object.kind == (ObjectKind::Barrier { count: 0 }) {
                self.report(Violation::EmptyBarrier(ObjectId::from_index(index)));
            }
        }
    }

    fn conditions(&mut self) {
        let trace = self.trace;
        self.identifiers(
            "path condition",
            trace.conditions.iter().map(|c| c.id),
            ConditionId::from_index,
        );
        for condition in &trace.conditions {
            let place = format!("path condition {}", condition.id);
            self.expression(&place, condition.expr, 1);
            let thread = condition.thread;
            if !self.exists(&place, thread, thread.index(), trace.threads.len()) {
                continue;
            }
            let events = trace.threads[thread.index()].events.len();
            if condition.position as usize > events {
                let (condition, position) = (condition.id, condition.position);
                self.report(Violation::Position { condition, thread, position, events });
            }
        }
    }

    fn failure(&mut self) {
        let trace = self.trace;
        let named = trace.failure.as_ref().map(|failure| failure.event);
        for event in &trace.events {
            let failure = event.kind == EventKind::Failure;
            if failure != (named == Some(event.id)) {
                self.report(Violation::Failure(event.id));
            }
        }
        if let Some(failure) = &trace.failure {
            self.event_exists("the failure", failure.event);
            self.failure_condition(&failure.condition);
        }
    }

    fn failure_condition(&mut self, condition: &FailureCondition) {
        match condition {
            FailureCondition::Value(expr) => self.expression("the failure condition", *expr, 1),
            FailureCondition::Before(a, b) => {
                self.event_exists("the failure condition", *a);
                self.event_exists("the failure condition", *b);
            }
            FailureCondition::Unwoken { condition, began } => {
                let objects = self.trace.objects.len();
                self.exists("the failure condition", *condition, condition.index(), objects);
                self.event_exists("the failure condition", *began);
            }
            FailureCondition::All(parts) | FailureCondition::Any(parts) => {
                parts.iter().for_each(|part| self.failure_condition(part));
            }
        }
    }
}
