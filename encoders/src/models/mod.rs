//! Memory models: which parts of program order the hardware and the compiler keep ([S] 3.2,
//! φmo).

mod sc;
pub mod tso;

use model::{EventId, Thread};

/// A memory model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MemoryModel {
    /// Sequential consistency: program order is kept as it is.
    #[default]
    SequentialConsistency,
}

impl MemoryModel {
    /// Pairs of a thread's events whose transitive closure is the order that the model keeps.
    pub(crate) fn preserved(self, thread: &Thread) -> Vec<(EventId, EventId)> {
        match self {
            Self::SequentialConsistency => sc::preserved(thread),
        }
    }
}
