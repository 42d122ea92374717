//! A text form of event traces for tests.
//!
//! One statement per line; `#` starts a comment. Declarations come first and are optional, since
//! a first use declares a 32-bit cell with initial value 0, a mutex, a condition variable, a
//! semaphore without units or a heap object:
//!
//! ```text
//! cell x 8 = 255        # width in bits and initial value
//! cell y 32 = ?         # unknown initial value
//! input i 32            # a value that the trace does not fix
//! sem s 2               # initial units
//! barrier b 3           # threads per round
//! heap h 4096 16        # a heap object's address and size in the recorded run
//! ```
//!
//! Events are `thread: statement`, with an optional label in front of the statement
//! (`t1: [w] W x 1`) by which [`Parsed::event`] finds the event:
//!
//! ```text
//! R x -> a              read into the name a
//! W x a + 1             write an expression over names that were read
//! RMW x -> a = a + 1    atomic read-modify-write
//! lock m | unlock m | rdlock m | rdunlock m | trylock-failed m | tryrdlock-failed m
//! wait c m              three events: release, wake-up, acquisition
//! wait-timed-out c m    the same with a time-out
//! signal c | broadcast c
//! sem-wait s | sem-failed s | post s
//! barrier b | arrive b  arrival and leaving, or the arrival alone
//! fork t2 | join t2 | fence | alloc h | free h
//! time 12               the recorded run's clock here
//! assume a == 1         a path condition
//! fail a != b           the failure with its condition; `fail` alone always holds
//! fail before w r       fails when the event labelled w comes before the one labelled r
//! ```
//!
//! The first thread in the text is the initial thread. Threads that no `fork` creates are created
//! by it at its start. Every thread gets a start event, and an exit unless it fails. Operators
//! are those of C, signed, at the width of the cells involved; an unknown one is an error.

mod build;
mod expr;

pub use build::parse;

use model::{EventId, EventTrace};
use std::collections::BTreeMap;
use thiserror::Error;

/// A trace read from text.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// The trace.
    pub trace: EventTrace,
    /// The labelled events.
    pub labels: BTreeMap<String, EventId>,
}

impl Parsed {
    /// The event with a label.
    ///
    /// # Panics
    /// When there is none: a mistake in the test.
    #[must_use]
    pub fn event(&self, label: &str) -> EventId {
        match self.labels.get(label) {
            Some(&event) => event,
            None => panic!("no event is labelled {label}"),
        }
    }
}

/// A mistake in the text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {message}")]
pub struct DslError {
    /// 1-based.
    pub line: usize,
    /// What is wrong.
    pub message: String,
}

impl DslError {
    fn new(line: usize, message: impl Into<String>) -> Self {
        Self { line, message: message.into() }
    }
}
