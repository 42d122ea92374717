//! Symbolic events: what one thread did that other threads can observe.

use crate::ExprId;
use crate::Stack;
use crate::ids::{CellId, EventId, ObjectId, ThreadId, VarId};
use crate::trace::ValueDisplay;
use std::sync::Arc;

/// One symbolic event. Its position within its thread is `index`; events of one thread are
/// ordered by it (program order).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The identifier, equal to the index in `EventTrace::events`.
    pub id: EventId,
    /// The thread that performs the event.
    pub thread: ThreadId,
    /// The position in the thread's program order, from 0 without gaps.
    pub index: u32,
    /// What happens.
    pub kind: EventKind,
    /// Where in the source it happens, innermost frame first. Never empty; an unknown place is a
    /// [`Site`] with `line` 0. Shared by all events that come from one place by one way of calls.
    pub stack: Stack,
    /// How many of the stack's places, from the outermost on, are in calls in which the thread was at its event before,
    /// too: two calls of a function by one line have the same places. At least that many are where it is
    /// [`ALL_CONTINUED`](Self::ALL_CONTINUED), as where nothing is known. A part of a trace whose events are thinned out for the
    /// solver alone does not keep count.
    pub continued: u16,
    /// What the event touches in the source's words, such as `q->filled` or `accounts[3].balance`
    /// or a mutex's name, and of a wait in a call the function that was called; `None` when debug information does not tell.
    pub name: Option<Arc<str>>,
    /// Of an acquisition, what the functions of `stack` call the lock, place by place, as far as they have words
    /// for it; empty for any other, and where the first one's word is all that is known.
    pub words: Arc<[Option<Arc<str>>]>,
    /// Of an access that moves several of the source's scalars at once, how they are shown; empty
    /// for any other.
    pub pieces: Arc<[Piece]>,
    /// All that its thread wrote before is seen by all threads when it has happened, and what it writes itself: a
    /// sequentially consistent write or fence, or a step of code that is not known. Read-modify-writes and
    /// synchronisation are so whether this is set or not. Without it a write may be seen late (x86's store buffer).
    pub drains: bool,
}

/// What is done with one end of a channel of Rust's library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelStep {
    /// A message is sent, or it is tried.
    Send,
    /// A message is received, or it is tried.
    Receive,
    /// The end goes away.
    Drop,
}

/// What is done with a lock of a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PackageLock {
    /// It is asked for, and had when the call returns.
    Asks(LockMode),
    /// It is given back.
    GivesBack,
}

/// One of several scalars that an access moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its first bit in the value of the access, which is that of the parts put together, lowest
    /// first.
    pub first: u32,
    /// How many bits of it there are; 0 for one that no part holds since only one thread uses it.
    pub width: u32,
    /// How it is shown.
    pub display: ValueDisplay,
}

impl Event {
    /// The place in the source that a person looks at: the innermost one outside of the headers of
    /// installed libraries (`std::atomic<T>::load` is in one), or just the innermost when all are
    /// in such headers.
    #[must_use]
    pub fn site(&self) -> &Site {
        &self.stack[self.depth()]
    }

    /// All places that two events have in common are in the same calls.
    pub const ALL_CONTINUED: u16 = u16::MAX;

    /// Is the call at this depth of the stack, counted from the outermost one, which is 0, the one that the thread was in at
    /// its event before, if that has the same places up to there?
    #[must_use]
    pub fn continues(&self, depth: usize) -> bool {
        depth < usize::from(self.continued)
    }

    /// How many places of the stack are inside of libraries, called from [`site`](Self::site).
    #[must_use]
    pub fn depth(&self) -> usize {
        self.stack.depth()
    }
}

/// A place in the source.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Site {
    /// The file as the debug information names it (directory joined where it is relative); empty
    /// when unknown.
    pub file: String,
    /// 1-based; 0 when unknown.
    pub line: u32,
    /// 1-based; 0 when unknown.
    pub column: u32,
    /// The function, demangled where possible; empty when unknown.
    pub function: String,
}

impl Site {
    /// Is this a header of an installed library, by where headers are installed, or code without
    /// debug information?
    #[must_use]
    pub fn is_in_library(&self) -> bool {
        self.file.is_empty() || crate::names::is_installed(&self.file)
    }
}

/// One cell that a read event reads, and the variable that stands for the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReadPart {
    /// The cell.
    pub cell: CellId,
    /// The variable, as wide as the cell.
    pub var: VarId,
}

/// One cell that a write event writes, and the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WritePart {
    /// The cell.
    pub cell: CellId,
    /// The value, as wide as the cell.
    pub value: ExprId,
}

/// One part of one read event: the unit that has exactly one writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReadRef {
    /// The read or read-modify-write event.
    pub event: EventId,
    /// The index into the event's read parts.
    pub part: u32,
}

/// Where a read takes its value from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WriteSource {
    /// The cell's initial value.
    Init,
    /// The part of this event that writes the cell.
    Write(EventId),
}

/// How a lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LockMode {
    /// A mutex, a spin lock, or a reader/writer lock for writing.
    Exclusive,
    /// A reader/writer lock for reading.
    Shared,
}

/// What a thread asked for and did not get before the run was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// A lock.
    Lock {
        /// The lock.
        object: ObjectId,
        /// Exclusive or shared.
        mode: LockMode,
    },
    /// A signal or broadcast. The wait began at the [`EventKind::Unlock`] before.
    Signal {
        /// The condition variable.
        condition: ObjectId,
    },
    /// A unit of a semaphore.
    Unit {
        /// The semaphore.
        object: ObjectId,
    },
    /// The arrival of the others at a barrier.
    Arrivals {
        /// The barrier.
        object: ObjectId,
    },
    /// Another thread's end.
    End {
        /// The thread.
        child: ThreadId,
    },
    /// Another value of the variable that it reads in a loop.
    Change,
    /// The end of a call that did not come back.
    Call,
    /// Something else.
    Other,
}

impl Awaited {
    /// The synchronisation object that is waited for.
    #[must_use]
    pub fn object(self) -> Option<ObjectId> {
        match self {
            Self::Lock { object, .. }
            | Self::Signal { condition: object }
            | Self::Unit { object }
            | Self::Arrivals { object } => Some(object),
            Self::End { .. } | Self::Change | Self::Call | Self::Other => None,
        }
    }
}

/// What an event does. Blocking operations appear as the events at which they take effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// An atomic read of one or more cells.
    Read {
        /// The cells read; at least one, no cell twice.
        parts: Vec<ReadPart>,
    },
    /// An atomic write of one or more cells.
    Write {
        /// The cells written; at least one, no cell twice.
        parts: Vec<WritePart>,
    },
    /// An atomic read-modify-write: reads and writes at one point of the order. A
    /// compare-exchange that fails writes back what it read.
    ReadModifyWrite {
        /// The cells read.
        reads: Vec<ReadPart>,
        /// The cells written.
        writes: Vec<WritePart>,
    },
    /// A memory fence. No effect under sequential consistency.
    Fence,
    /// An acquisition of a lock that succeeded, whatever the call (lock, trylock, timedlock, the
    /// re-acquisition that ends a condition wait). Inner acquisitions of a recursive mutex do not
    /// appear.
    Lock {
        /// The lock.
        object: ObjectId,
        /// Exclusive or shared.
        mode: LockMode,
    },
    /// The release of a lock, the one that starts a condition wait included.
    Unlock {
        /// The lock.
        object: ObjectId,
        /// How it was held.
        mode: LockMode,
        /// True for the release that `symex` adds at a thread's end for a lock that is still held
        /// ([S] 4.2, "Locks Held at Failure Points").
        synthetic: bool,
    },
    /// A trylock that failed: some thread holds the lock at this point, another one or the caller
    /// itself.
    TryLockFailed {
        /// The lock.
        object: ObjectId,
        /// What was asked for. Who asks to share the lock fails only where somebody has it exclusively.
        mode: LockMode,
    },
    /// The wake-up of a condition wait by a signal or broadcast. The wait began at `began`, which
    /// is the [`EventKind::Unlock`] that released the mutex; the signal lies between the two. The
    /// re-acquisition follows as a [`EventKind::Lock`].
    Wake {
        /// The condition variable.
        condition: ObjectId,
        /// The release that began the wait.
        began: EventId,
    },
    /// A timed condition wait that timed out.
    WaitTimedOut {
        /// The condition variable.
        condition: ObjectId,
        /// The release that began the wait.
        began: EventId,
    },
    /// Wakes at most one waiter.
    Signal {
        /// The condition variable.
        condition: ObjectId,
    },
    /// Wakes all waiters.
    Broadcast {
        /// The condition variable.
        condition: ObjectId,
    },
    /// Takes one unit from a semaphore.
    SemaphoreWait {
        /// The semaphore.
        object: ObjectId,
    },
    /// A non-blocking semaphore wait that found no unit.
    SemaphoreWaitFailed {
        /// The semaphore.
        object: ObjectId,
    },
    /// Gives one unit to a semaphore.
    SemaphorePost {
        /// The semaphore.
        object: ObjectId,
    },
    /// Arrives at a barrier.
    BarrierArrive {
        /// The barrier.
        object: ObjectId,
    },
    /// Leaves a barrier; pairs with the thread's preceding arrival at it.
    BarrierLeave {
        /// The barrier.
        object: ObjectId,
    },
    /// Creates a thread.
    Fork {
        /// The thread created.
        child: ThreadId,
    },
    /// A thread's first event.
    Start,
    /// A thread's last event when it ran to its end.
    Exit,
    /// Joins a thread: comes after all of its events.
    Join {
        /// The thread joined.
        child: ThreadId,
    },
    /// Obtains a heap object.
    Allocate {
        /// The object.
        object: ObjectId,
    },
    /// Gives a heap object back.
    Free {
        /// The object.
        object: ObjectId,
    },
    /// Asks for something that the thread did not get before the run was ended. It may happen
    /// whenever program order allows: whether the thread would get on there is a matter of φbug.
    /// Behind it, a thread has only synthetic releases and the failure.
    Block {
        /// What the thread asks for.
        on: Awaited,
    },
    /// The failure; the last event of its thread. At most one in a trace.
    Failure,
}

impl EventKind {
    /// The cells read, empty for events that do not read.
    #[must_use]
    pub fn reads(&self) -> &[ReadPart] {
        match self {
            Self::Read { parts } => parts,
            Self::ReadModifyWrite { reads, .. } => reads,
            _ => &[],
        }
    }

    /// The cells written, empty for events that do not write.
    #[must_use]
    pub fn writes(&self) -> &[WritePart] {
        match self {
            Self::Write { parts } => parts,
            Self::ReadModifyWrite { writes, .. } => writes,
            _ => &[],
        }
    }

    /// The lock, condition, semaphore, barrier or heap object that the event is about.
    #[must_use]
    pub fn object(&self) -> Option<ObjectId> {
        match self {
            Self::Lock { object, .. }
            | Self::Unlock { object, .. }
            | Self::TryLockFailed { object, .. }
            | Self::Wake { condition: object, .. }
            | Self::WaitTimedOut { condition: object, .. }
            | Self::Signal { condition: object }
            | Self::Broadcast { condition: object }
            | Self::SemaphoreWait { object }
            | Self::SemaphoreWaitFailed { object }
            | Self::SemaphorePost { object }
            | Self::BarrierArrive { object }
            | Self::BarrierLeave { object }
            | Self::Allocate { object }
            | Self::Free { object } => Some(*object),
            Self::Block { on } => on.object(),
            Self::Read { .. }
            | Self::Write { .. }
            | Self::ReadModifyWrite { .. }
            | Self::Fence
            | Self::Fork { .. }
            | Self::Start
            | Self::Exit
            | Self::Join { .. }
            | Self::Failure => None,
        }
    }

    /// Does it read or write memory, and nothing else?
    #[must_use]
    pub fn is_access(&self) -> bool {
        matches!(self, Self::Read { .. } | Self::Write { .. } | Self::ReadModifyWrite { .. })
    }

    /// The short name used in JSON, DOT and text output.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Read { .. } => "read",
            Self::Write { .. } => "write",
            Self::ReadModifyWrite { .. } => "read-modify-write",
            Self::Fence => "fence",
            Self::Lock { mode: LockMode::Exclusive, .. } => "lock",
            Self::Lock { mode: LockMode::Shared, .. } => "lock-shared",
            Self::Unlock { synthetic: true, .. } => "still-held",
            Self::Unlock { mode: LockMode::Exclusive, .. } => "unlock",
            Self::Unlock { mode: LockMode::Shared, .. } => "unlock-shared",
            Self::TryLockFailed { .. } => "trylock-failed",
            Self::Wake { .. } => "wake",
            Self::WaitTimedOut { .. } => "wait-timed-out",
            Self::Signal { .. } => "signal",
            Self::Broadcast { .. } => "broadcast",
            Self::SemaphoreWait { .. } => "semaphore-wait",
            Self::SemaphoreWaitFailed { .. } => "semaphore-wait-failed",
            Self::SemaphorePost { .. } => "semaphore-post",
            Self::BarrierArrive { .. } => "barrier-arrive",
            Self::BarrierLeave { .. } => "barrier-leave",
            Self::Fork { .. } => "fork",
            Self::Start => "start",
            Self::Exit => "exit",
            Self::Join { .. } => "join",
            Self::Allocate { .. } => "allocate",
            Self::Free { .. } => "free",
            Self::Block { on: Awaited::Lock { mode: LockMode::Exclusive, .. } } => "wait-for-lock",
            Self::Block { on: Awaited::Lock { mode: LockMode::Shared, .. } } => {
                "wait-for-lock-shared"
            }
            Self::Block { on: Awaited::Signal { .. } } => "wait-for-signal",
            Self::Block { on: Awaited::Unit { .. } } => "wait-for-unit",
            Self::Block { on: Awaited::Arrivals { .. } } => "wait-for-arrivals",
            Self::Block { on: Awaited::End { .. } } => "wait-for-end",
            Self::Block { on: Awaited::Change } => "wait-for-change",
            Self::Block { on: Awaited::Call } => "wait-in-call",
            Self::Block { on: Awaited::Other } => "wait",
            Self::Failure => "failure",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(file: &str, line: u32) -> Site {
        Site { file: file.to_owned(), line, ..Site::default() }
    }

    #[test]
    fn places_in_libraries_are_told_from_the_programs_own() {
        let gcc = "/usr/bin/../lib/gcc/x86_64-linux-gnu/12/../../../../include/c++/12/mutex";
        for library in [gcc, "/usr/include/x86_64-linux-gnu/bits/string_fortified.h", ""] {
            assert!(site(library, 1).is_in_library(), "{library}");
        }
        for own in ["queue.c", "/home/me/include/queue.h", "/usr/src/queue/include/queue.h"] {
            assert!(!site(own, 1).is_in_library(), "{own}");
        }
    }
}
