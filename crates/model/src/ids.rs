//! Typed identifiers. Each prints with a letter prefix (`e12`, `t1`, `x3`), and the same text
//! stands in SMT-LIB, DOT, JSON, logs and golden files.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// The identifier as an index into the arena that owns the entity.
            #[must_use]
            pub fn index(self) -> usize {
                self.0 as usize
            }

            /// The identifier of the entity at `index`.
            ///
            /// Saturates at `u32::MAX`, which no arena reaches in practice.
            #[must_use]
            pub fn from_index(index: usize) -> Self {
                Self(u32::try_from(index).unwrap_or(u32::MAX))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}

id!(
    /// An event of an [`EventTrace`](crate::EventTrace): an index into its `events`.
    EventId, "e"
);
id!(
    /// A thread, as an index into `EventTrace::threads`. Index 0 is the initial thread. The name
    /// that users see (`t0.1`) is [`Thread::name`](crate::Thread).
    ThreadId, "th"
);
id!(
    /// A shared memory cell: a maximal run of bytes that every access touches as a whole.
    CellId, "m"
);
id!(
    /// A synchronisation object: mutex, condition variable, semaphore, barrier.
    ObjectId, "o"
);
id!(
    /// A value variable: what a read returns, or an input that the trace does not fix.
    VarId, "x"
);
id!(
    /// A path condition of an event trace.
    ConditionId, "p"
);
