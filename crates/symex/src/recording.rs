//! What the executor is given: one recorded run.

use ir::types::Module;
use std::sync::Arc;
use trace_format::{InMemory, Streams};

/// One recorded run.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// The instrumented modules, in the order in which they registered.
    pub modules: Vec<RecordedModule>,
    /// The threads.
    pub threads: Vec<ThreadLog>,
    /// How the run failed; `None` for a passing run.
    pub failure: Option<RecordedFailure>,
    /// Can time stamps of different threads be compared?
    pub common_clock: bool,
    /// The run followed a schedule, or made up one: what its threads passed counts, and no round of
    /// waiting is left out.
    pub scheduled: bool,
    /// The process began as a fork of another one, of which it has the threads' logs until then, but not the threads.
    pub forked: bool,
    /// When the run was ended, none of its threads had run for a while: they waited, and none went round a loop.
    pub stuck: bool,
    /// When the program's own handler of the crash was called, by the processor's clock: what threads did behind that may
    /// come of what the handler did, which is not walked.
    pub handled: Option<u64>,
}

/// A module as it was loaded in the recorded process.
#[derive(Clone, Debug, Default)]
pub struct RecordedModule {
    /// The untouched IR.
    pub ir: Module,
    /// The process-wide number of the module's first function.
    pub base: u32,
    /// The functions' addresses in IR order; 0 where unknown.
    pub functions: Vec<u64>,
    /// The global variables' addresses in IR order; 0 where unknown.
    pub globals: Vec<u64>,
}

/// What one thread wrote.
#[derive(Clone, Debug)]
pub struct ThreadLog {
    /// `t0`, `t0.1`, …
    pub name: String,
    /// The number in order of creation, from 1.
    pub serial: u64,
    /// The creator's serial; 0 for the initial thread.
    pub parent: u64,
    /// The start routine's address; 0 for the initial thread.
    pub start_routine: u64,
    /// Its path and its values.
    pub streams: Arc<dyn Streams>,
}

impl Default for ThreadLog {
    fn default() -> Self {
        Self {
            name: String::new(),
            serial: 0,
            parent: 0,
            start_routine: 0,
            streams: Arc::new(InMemory::default()),
        }
    }
}

/// How the run failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedFailure {
    /// The kind.
    pub kind: RecordedFailureKind,
    /// The serial of the thread that failed; 0 when unknown.
    pub thread_serial: u64,
    /// What the program said.
    pub message: String,
}

/// The kind of a [`RecordedFailure`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordedFailureKind {
    /// `__assert_fail`.
    Assertion,
    /// `abort`.
    Abort,
    /// A fatal signal.
    Signal {
        /// Its number.
        signo: i32,
        /// `si_addr`.
        fault_address: u64,
    },
    /// A status other than 0.
    Exit {
        /// The status.
        status: i32,
    },
    /// The run was ended because it took too long.
    TimedOut,
    /// An access to a freed object.
    UseAfterFree {
        /// Where.
        address: u64,
    },
    /// A second free of an object.
    DoubleFree {
        /// The object's address; 0 when unknown.
        address: u64,
    },
    /// The heap was found damaged.
    HeapCorruption,
    /// An access beyond the stack's end.
    StackOverflow,
    /// A C++ exception that nobody caught.
    Exception,
    /// A Rust panic.
    Panic,
    /// A user's mark: `symbiosis_fail_if`.
    User,
    /// A source line was reached; the message is `file:line`.
    Reached,
    /// The output was wrong, although the run ended well.
    Output,
}
