//! What the executor gives back besides the event trace: gaps, and how far each thread came.

use crate::inputs::Input;
use crate::own::OwnUse;
use model::{EventTrace, FailureKind, Points, Site};
use std::collections::BTreeMap;
use std::fmt;
use thiserror::Error;

/// Why a recording could not be executed. Streams that make no sense are not an error:
/// that thread stops with a reason ([`ThreadReport::stopped`]).
#[derive(Debug, Error)]
pub enum SymexError {
    /// There is no thread to execute.
    #[error("recording has no threads")]
    NoThreads,
    /// There is no instrumented module.
    #[error("recording has no instrumented modules")]
    NoModules,
    /// A thread's stream cannot be read to its end.
    #[error(transparent)]
    Stream(#[from] trace_format::TraceError),
    /// What the caller lets it take was spent before every thread was walked. Nothing is known of the run then.
    #[error("the recorded run was not walked to its end, because the time or the memory was up")]
    BudgetSpent,
    /// A module's IR refers to something that it does not have.
    #[error("module {module}: {detail}")]
    MalformedModule {
        /// The module's index in the recording.
        module: usize,
        /// What is wrong.
        detail: String,
    },
}

/// Limits of one execution.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The most instructions that a thread may execute after its streams have ended. A loop
    /// without recorded branches would otherwise never need an entry, and so never stop.
    pub tail_limit: u64,
    /// The most [`Gap`]s kept with their details; all are counted.
    pub max_gaps: usize,
    /// Keep every block that the threads enter, in [`ThreadReport::path`].
    pub keep_path: bool,
    /// Of a loop that a thread never came out of, in a run that was ended for it, walk the first rounds only.
    pub cut_endless: bool,
    /// Note what lines leave for each other in memory that no other thread sees, in [`Execution::own_uses`].
    pub own_uses: bool,
    /// Accesses of several threads to one place are events also where creating and joining threads keeps them in order.
    pub ordered_accesses: bool,
    /// Walk each instruction by itself, also those that only compute. What comes of it is the same, and takes up to twice as
    /// long: for comparison.
    pub one_by_one: bool,
    /// A run of at least so many shared cells, whose failure is none of memory itself, is walked without those of them that
    /// threads only hand over ([`Report::handed_over`]).
    pub handed_over_from: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            tail_limit: 1_000_000,
            max_gaps: 1000,
            keep_path: false,
            cut_endless: true,
            own_uses: false,
            ordered_accesses: false,
            one_by_one: false,
            handed_over_from: usize::MAX,
        }
    }
}

/// The result of [`execute`](crate::execute).
#[derive(Clone, Debug, Default)]
pub struct Execution {
    /// The events, path conditions and failure.
    pub trace: EventTrace,
    /// Where a scheduler can stop the threads: one point per event of the trace.
    pub points: Points,
    /// What calls gave that a replay cannot compute anew, by thread and function.
    pub inputs: Vec<Input>,
    /// What could not be modelled, once per thread, place, function and kind; at most [`Options::max_gaps`] of
    /// them.
    pub gaps: Vec<Gap>,
    /// What lines leave for each other in memory of the thread's own, when [`Options::own_uses`] says so.
    pub own_uses: Vec<OwnUse>,
    /// How far each thread came.
    pub report: Report,
}

/// Something that the executor could not model: what depends on it is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The thread's name.
    pub thread: String,
    /// Where.
    pub site: Site,
    /// The function of the program that is at work there: that of the site, or the one that a library was called from.
    pub function: String,
    /// What.
    pub what: GapKind,
    /// More, for people: of the first time.
    pub detail: String,
    /// How often it happened there.
    pub times: u64,
}

/// The kinds of [`Gap`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GapKind {
    /// An instruction that the executor does not know, by opcode or operation.
    Instruction(String),
    /// An intrinsic that the executor does not know.
    Intrinsic(String),
    /// An uninstrumented function whose effect could not be modelled.
    External(String),
    /// Memory that no instrumented code wrote.
    UnknownMemory,
    /// An address or size that is symbolic and has no recorded value.
    UnknownAddress,
    /// A computed value that contradicts the log, by instruction kind.
    WrongValue(String),
    /// A computed branch condition that contradicts the recorded path.
    WrongBranch,
    /// A floating-point format that is only modelled when concrete.
    FloatFormat,
    /// A value whose width is not modelled.
    Width,
    /// A synchronisation entry that does not fit what came before.
    Synchronisation,
    /// A thread gave a lock back that it did not have.
    NotHeld,
    /// The failure was not found where the record says.
    Failure,
    /// What a thread did from somewhere on is not known, since its walk contradicted the log.
    Stopped,
}

impl fmt::Display for GapKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Instruction(name) => write!(f, "instruction {name}"),
            Self::Intrinsic(name) => write!(f, "intrinsic {name}"),
            Self::External(name) => write!(f, "external function {name}"),
            Self::UnknownMemory => f.write_str("memory that uninstrumented code wrote"),
            Self::UnknownAddress => f.write_str("address without a recorded value"),
            Self::WrongValue(kind) => write!(f, "value of {kind} differs from the log"),
            Self::WrongBranch => f.write_str("branch condition differs from the recorded path"),
            Self::FloatFormat => f.write_str("floating-point format"),
            Self::Width => f.write_str("value of an unsupported width"),
            Self::Synchronisation => f.write_str("synchronisation entry"),
            Self::NotHeld => f.write_str("release of a lock that the thread does not hold"),
            Self::Failure => f.write_str("failure not found"),
            Self::Stopped => f.write_str("walk that stopped before the thread's end"),
        }
    }
}

/// How far the execution came.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Per thread, in the event trace's order.
    pub threads: Vec<ThreadReport>,
    /// How often each kind of gap occurred.
    pub gaps: BTreeMap<GapKind, u64>,
    /// The uninstrumented functions that were called, by symbol.
    pub functions: Vec<FunctionCalls>,
    /// Functions whose results are too many for [`Execution::inputs`].
    pub inputs_left_out: Vec<String>,
    /// The first thread, by its name, that was seen to use heap memory after it had been freed, and
    /// where. `None` says little: which came first is known only where the clock tells.
    pub used_after_free: Option<(String, Site)>,
    /// Of a run that did not come to an end because a process that it had started did not.
    pub awaited_child: Option<AwaitedChild>,
    /// Of a run that did not come to an end: a thread waits for a lock in the heap that no thread has, as the log tells, or in a
    /// call that does not wait. Freed memory that the allocator has written to may look like that.
    pub awaits_lost: bool,
    /// Of a run that was ended by a time-out: the threads that were not waiting, where these may have brought it to
    /// its end. Then it is not known that it hung.
    pub still_running: Vec<RunningThread>,
    /// True when the run was ended by a time-out: `trace.failure` is `None`, because what the
    /// threads waited for is not analysed here.
    pub timed_out: bool,
    /// Of a run that hung, which is what `trace.failure` tells, and which something else then ended.
    pub ended_by: Option<EndedBy>,
    /// The walk took so long that it was not looked whether a check failed because of memory that had been freed, or of local
    /// variables that had ended.
    pub not_looked_again: bool,
    /// So many shared cells are only handed over between threads: what is accessed there is no event, and is taken to be what
    /// it was in the run. 0 unless [`Options::handed_over_from`] asks for it.
    pub handed_over: usize,
}

/// How a run that hung was ended: by a check of the program's own, a watchdog, an alarm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedBy {
    /// The failure that was recorded.
    pub kind: FailureKind,
    /// What the program said.
    pub message: String,
    /// The thread's name.
    pub thread: String,
    /// Where.
    pub site: Site,
}

impl Report {
    /// The number of gaps of all kinds.
    #[must_use]
    pub fn gap_count(&self) -> u64 {
        self.gaps.values().sum()
    }

    /// The rounds of waiting of all threads that have no events.
    #[must_use]
    pub fn rounds_left_out(&self) -> u64 {
        self.threads.iter().map(ThreadReport::rounds_left_out).sum()
    }
}

/// A thread that was not waiting when the run was ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningThread {
    /// The thread's name.
    pub name: String,
    /// Where it was, or where the rounds of the loop begin that it had gone round for long.
    pub site: Site,
    /// Had it gone round a loop for long?
    pub in_loop: bool,
}

/// A thread that waits for a process that the program started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AwaitedChild {
    /// The thread's name.
    pub thread: String,
    /// The function that waits.
    pub function: String,
    /// The process's id, where the call names one.
    pub process: Option<u32>,
}

/// The calls of one uninstrumented function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionCalls {
    /// Its symbol; empty for calls through pointers to functions that no module declares.
    pub name: String,
    /// How its effects are known.
    pub known: FunctionUse,
    /// How often it returned.
    pub calls: u64,
}

/// How the effects of an uninstrumented function are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FunctionUse {
    /// As `ir::effects` describes them.
    Described,
    /// The executor computes them.
    Computed,
    /// The runtime reports them.
    Reported,
    /// It is described as writing into the objects that its arguments point to.
    Objects,
    /// Nobody described it: the objects that its arguments point to are taken to change.
    Undescribed,
}

/// How far one thread came.
#[derive(Clone, Debug, Default)]
pub struct ThreadReport {
    /// The thread's name.
    pub name: String,
    /// Instructions executed.
    pub instructions: u64,
    /// Basic blocks entered.
    pub blocks: u64,
    /// All of them, those of repeated rounds among them, when [`Options::keep_path`] says so: the
    /// function's process-wide number and the block's index in it.
    pub path: Vec<(u32, u32)>,
    /// Did the walk use up the streams, without a contradiction?
    pub reached_end: bool,
    /// Why the walk stopped: the normal end, the failure, the end of the streams, or what is
    /// wrong with them.
    pub stopped: String,
    /// Rounds of waiting loops that the log counts, as far as they are not walked: they repeat the round
    /// before.
    pub repeated_rounds: u64,
    /// Path entries that were not used.
    pub unused_path: usize,
    /// Bytes of values that were not used.
    pub unused_values: usize,
    /// Rounds of waiting that were walked and left out of the trace, see docs/limits.md. What is said of
    /// events, gates and sync points is said as if they had not been.
    pub idle_rounds: u64,
    /// Gates that the thread passed, in a run in which gates count.
    pub gates: u64,
    /// Sync points that the thread passed, in a run in which they count.
    pub sync_points: u64,
    /// The loop that it was in to the end of its log, and in which the walk ended before that.
    pub endless: Option<EndlessLoop>,
    /// The synchronisation call that the thread was in when its stream ended.
    pub blocked: Option<BlockedCall>,
}

impl ThreadReport {
    /// The rounds of waiting that have no events, whether they were walked or not.
    #[must_use]
    pub const fn rounds_left_out(&self) -> u64 {
        self.idle_rounds.saturating_add(self.repeated_rounds)
    }
}

/// A loop that a thread was in for long when the run was ended. That it would never have come out of it is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndlessLoop {
    /// Where its rounds begin.
    pub site: Site,
    /// So many rounds were walked behind the last moment at which another thread did something.
    pub rounds: u64,
    /// How many entries of the thread's path were walked.
    pub walked: usize,
    /// How many it has.
    pub logged: usize,
}

/// A synchronisation call that had not returned when the run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockedCall {
    /// The call, such as `MutexLock`.
    pub operation: String,
    /// The object's address.
    pub address: u64,
    /// The object's name.
    pub object: String,
    /// The call stack, innermost first.
    pub stack: Vec<Site>,
}
