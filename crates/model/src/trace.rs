//! The event trace: everything the encoders need to know about one recorded run.

use crate::event::{Awaited, Event, EventKind};
use crate::expr::ExprPool;
use crate::ids::{CellId, ConditionId, EventId, ObjectId, ThreadId, VarId};
use crate::{ExprId, ReadRef, Site};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

/// The symbolic events of one recorded run, its path conditions and its failure.
///
/// Invariants are listed in, and checked by, [`crate::verify`].
#[derive(Clone, Debug, Default)]
pub struct EventTrace {
    /// All expressions.
    pub exprs: ExprPool,
    /// All threads; index 0 is the initial thread; parents come before children.
    pub threads: Vec<Thread>,
    /// All events, grouped by thread, in program order within each.
    pub events: Vec<Event>,
    /// The shared cells.
    pub cells: Vec<Cell>,
    /// The synchronisation and heap objects.
    pub objects: Vec<Object>,
    /// The value variables.
    pub variables: Vec<Variable>,
    /// The path conditions of all threads ([S] 3.2, φpath), each of which must be 1.
    pub conditions: Vec<PathCondition>,
    /// The failure; `None` for a passing run.
    pub failure: Option<Failure>,
    /// By event, when it happened in the recorded run; empty when that is not known. Known orders
    /// for the failing schedule, which is to be like the recorded run, and for no other.
    pub intervals: Vec<Interval>,
    /// Accesses to a heap object that came before another thread freed it, each with that free, where
    /// the recorded run shows it; of an object that was freed twice, the other thread's free with the failing one; and what
    /// the run shows of the order of a write to a local variable that had ended, and what the variable's thread did there. For the
    /// failing schedule, as [`Self::intervals`] are: what is read from freed memory follows from no order, so that no
    /// program could be made to follow one that has it otherwise.
    pub lifetimes: Vec<(EventId, EventId)>,
    /// Orders of events that every schedule of the trace has, beyond what its events ask for. The end of a longer
    /// trace has some: what was open where it begins comes before everything else in it. And where a thread fails since
    /// another one wrote to its local variable when that had ended, that write comes before the failure.
    pub given: Vec<(EventId, EventId)>,
    /// Inputs that a function worked out: what is known of each is that it is the same wherever the same goes in. Not known of a
    /// part of a trace.
    pub outcomes: Vec<Outcome>,
    /// The process began as a fork of another one, of which it has the events until then, but no thread besides the one
    /// that forked: what the others held they do not give back.
    pub forked: bool,
}

/// A value that a function of a library worked out, which nobody computes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The value, an input ([`VariableOrigin::Input`]).
    pub var: VarId,
    /// All that goes in and may be another under other schedules.
    pub inputs: Arc<[ExprId]>,
}

/// When an event happened in the recorded run, by a clock that is the same for all threads: not
/// before `earliest` and not after `latest`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// A reading before the event.
    pub earliest: u64,
    /// A reading after it.
    pub latest: u64,
}

impl Default for Interval {
    /// Any time.
    fn default() -> Self {
        Self { earliest: 0, latest: u64::MAX }
    }
}

/// One thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// The identifier, equal to the index in `EventTrace::threads`.
    pub id: ThreadId,
    /// `t0` for the initial thread, `ti.j` for the j-th (from 1) that `ti` creates ([S] 4.1).
    pub name: String,
    /// The creator; `None` for the initial thread.
    pub parent: Option<ThreadId>,
    /// The function the thread starts in.
    pub entry: String,
    /// The thread's events in program order.
    pub events: Vec<EventId>,
}

/// A shared memory cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The identifier, equal to the index in `EventTrace::cells`.
    pub id: CellId,
    /// The width in bits; a multiple of 8.
    pub width: u32,
    /// The value before any write; an expression as wide as the cell. Every read of the initial
    /// value, from whichever thread, sees this one expression.
    pub init: ExprId,
    /// The name in the source's words, or an address-like fallback.
    pub name: String,
    /// How to print values of the cell.
    pub display: ValueDisplay,
}

/// How a value of a cell is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ValueDisplay {
    /// Decimal, two's complement.
    #[default]
    Signed,
    /// Decimal, unsigned.
    Unsigned,
    /// Hexadecimal; zero is `NULL`.
    Pointer,
    /// A C `char` or a run of them.
    Char,
    /// `true` or `false`.
    Bool,
    /// IEEE 754 of the cell's width.
    Float,
    /// The source's numbers behind 0 and 1; decimal.
    Either([i64; 2]),
}

/// What a synchronisation or heap object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObjectKind {
    /// A mutex, spin lock or reader/writer lock.
    Lock,
    /// A condition variable.
    Condition,
    /// A semaphore with its initial count.
    Semaphore {
        /// The units before any wait or post.
        initial: u32,
    },
    /// A barrier with the number of threads that must arrive.
    Barrier {
        /// Threads per round; at least 1.
        count: u32,
    },
    /// A heap allocation.
    Heap,
    /// A local variable, which its function's end frees.
    Local,
}

/// How the names of semaphores begin that stand for what threads hand each other inside of a library.
pub const HAND_OVER: &str = "hand-over";

/// A synchronisation or heap object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// The identifier, equal to the index in `EventTrace::objects`.
    pub id: ObjectId,
    /// What it is.
    pub kind: ObjectKind,
    /// The name in the source's words, or an address-like fallback.
    pub name: String,
    /// Where an object of the heap, or a local variable, lay in the recorded run, from which pointers to it are known; `None`
    /// for other kinds, and where that is not known.
    pub addresses: Option<Range<u64>>,
}

/// Where a value variable comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariableOrigin {
    /// The value that one part of a read event returns.
    Read {
        /// The read event.
        event: EventId,
        /// The index into its read parts.
        part: u32,
    },
    /// The unknown initial value of a cell.
    Init(CellId),
    /// A value that the trace does not fix and no read returns, such as the result of an
    /// instruction that could not be modelled. It may take any value.
    Input,
}

/// A value variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variable {
    /// The identifier, equal to the index in `EventTrace::variables`.
    pub id: VarId,
    /// Width in bits, 1 to 128.
    pub width: u32,
    /// Where it comes from.
    pub origin: VariableOrigin,
    /// The value it had in the recorded run, where the log tells; of an input one with which the recorded branches go as
    /// they did, where they tell no more than that ([`fit_inputs`](crate::fit_inputs)).
    pub recorded: Option<u128>,
}

/// Why a path condition is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathConditionKind {
    /// A conditional branch or switch went as recorded.
    Branch,
    /// An address that depends on a symbolic value is the recorded one.
    Address,
    /// An indirect call went to the recorded target.
    CallTarget,
    /// A fact of the run other than these, such as the result of an uninstrumented call.
    Assumption,
}

/// One conjunct of φpath.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathCondition {
    /// The identifier, equal to the index in `EventTrace::conditions`.
    pub id: ConditionId,
    /// The thread it constrains.
    pub thread: ThreadId,
    /// How many events of the thread come before it.
    pub position: u32,
    /// A 1-bit expression that is 1 on the recorded path.
    pub expr: ExprId,
    /// Why it is there.
    pub kind: PathConditionKind,
    /// Where in the source.
    pub site: Site,
    /// Of a thread that still waits at its end, in a branch behind which it comes to that wait whichever way it goes.
    pub is_beside_wait: bool,
}

/// The kind of failure, printed as in the JSON output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// `assert` failed.
    Assertion,
    /// `abort`, or an unexplained SIGABRT.
    Abort,
    /// An access outside every live object.
    Segfault,
    /// An access to a freed object.
    UseAfterFree,
    /// A second free.
    DoubleFree,
    /// An integer division by zero.
    DivisionByZero,
    /// Threads that wait for each other.
    Deadlock,
    /// A thread that waits for a wake-up that does not come.
    Hang,
    /// Threads that still ran when the run's time was up: whether they would have come to an end is not known.
    StillRunning,
    /// A non-zero exit status.
    Exit,
    /// An uncaught C++ exception.
    Exception,
    /// A Rust panic.
    Panic,
    /// A user's own failure mark: `symbiosis_fail_if`, or a line that must not be reached.
    User,
    /// libc found the heap damaged.
    HeapCorruption,
    /// An access beyond the stack's end.
    StackOverflow,
    /// Output that a user's check refused.
    Output,
}

impl FailureKind {
    /// The name in the JSON output (design section 8).
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Assertion => "assertion",
            Self::Abort => "abort",
            Self::Segfault => "segfault",
            Self::UseAfterFree => "use-after-free",
            Self::DoubleFree => "double-free",
            Self::DivisionByZero => "division-by-zero",
            Self::Deadlock => "deadlock",
            Self::Hang => "hang",
            Self::StillRunning => "still-running",
            Self::Exit => "exit",
            Self::Exception => "exception",
            Self::Panic => "panic",
            Self::User => "user",
            Self::HeapCorruption => "heap-corruption",
            Self::StackOverflow => "stack-overflow",
            Self::Output => "output",
        }
    }
}

/// What has to hold for the run to fail ([S] 3.2, φbug).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailureCondition {
    /// A 1-bit expression is 1.
    Value(ExprId),
    /// The first event comes before the second.
    Before(EventId, EventId),
    /// No signal or broadcast is left for the wait on this condition variable that began at this
    /// release: all came before it, or are needed by the waits that did end.
    Unwoken {
        /// The condition variable.
        condition: ObjectId,
        /// The release that began the wait.
        began: EventId,
    },
    /// All of these hold; the empty list always holds.
    All(Vec<FailureCondition>),
    /// At least one of these holds.
    Any(Vec<FailureCondition>),
}

impl FailureCondition {
    /// Whether a disjunction (`decisive` true) or a conjunction (`decisive` false) of parts holds, as far as that is known
    /// of each; one part with the decisive value decides whatever is unknown.
    pub fn decide(
        parts: &[Self],
        decisive: bool,
        mut holds: impl FnMut(&Self) -> Option<bool>,
    ) -> Option<bool> {
        let mut result = Some(!decisive);
        for part in parts {
            match holds(part) {
                Some(value) if value == decisive => return Some(decisive),
                Some(_) => {}
                None => result = None,
            }
        }
        result
    }

    /// The expressions that the condition speaks of, wherever in it, for making it speak of others.
    pub fn values_mut(&mut self) -> Vec<&mut ExprId> {
        match self {
            Self::Value(expr) => vec![expr],
            Self::Before(..) | Self::Unwoken { .. } => Vec::new(),
            Self::All(parts) | Self::Any(parts) => {
                parts.iter_mut().flat_map(Self::values_mut).collect()
            }
        }
    }

    /// The events that the condition speaks of, wherever in it, for making it speak of others.
    pub fn events_mut(&mut self) -> Vec<&mut EventId> {
        match self {
            Self::Value(_) => Vec::new(),
            Self::Before(first, second) => vec![first, second],
            Self::Unwoken { began, .. } => vec![began],
            Self::All(parts) | Self::Any(parts) => {
                parts.iter_mut().flat_map(Self::events_mut).collect()
            }
        }
    }
}

/// The failure of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The kind.
    pub kind: FailureKind,
    /// The [`EventKind::Failure`](crate::EventKind::Failure) event.
    pub event: EventId,
    /// φbug.
    pub condition: FailureCondition,
    /// What the program said, such as the assertion's text; may be empty.
    pub message: String,
}

impl EventTrace {
    /// Is it the end of a local variable, which its function's end frees?
    #[must_use]
    pub fn ends_local(&self, event: &Event) -> bool {
        let EventKind::Free { object } = event.kind else { return false };
        self.objects.get(object.index()).is_some_and(|object| object.kind == ObjectKind::Local)
    }

    /// What the recorded run had for a variable that no read fixes; 0 where that is not known.
    #[must_use]
    pub fn recorded_value(&self, var: VarId) -> u128 {
        self.variables.get(var.index()).and_then(|variable| variable.recorded).unwrap_or(0)
    }

    /// The event with this identifier.
    ///
    /// # Panics
    /// When the identifier does not belong to this trace.
    #[must_use]
    pub fn event(&self, id: EventId) -> &Event {
        &self.events[id.index()]
    }

    /// The thread of an event.
    ///
    /// # Panics
    /// When the identifier does not belong to this trace.
    #[must_use]
    pub fn thread_of(&self, id: EventId) -> &Thread {
        &self.threads[self.event(id).thread.index()]
    }

    /// The signals and broadcasts, by condition variable and thread, in the thread's order.
    #[must_use]
    pub fn signals(&self) -> BTreeMap<ObjectId, BTreeMap<ThreadId, Vec<EventId>>> {
        let mut signals: BTreeMap<ObjectId, BTreeMap<ThreadId, Vec<EventId>>> = BTreeMap::new();
        for event in self.threads.iter().flat_map(|thread| &thread.events).map(|id| self.event(*id))
        {
            if let EventKind::Signal { condition } | EventKind::Broadcast { condition } = event.kind
            {
                signals
                    .entry(condition)
                    .or_default()
                    .entry(event.thread)
                    .or_default()
                    .push(event.id);
            }
        }
        signals
    }

    /// The reads whose values an expression depends on. Takes time by the size of the expression alone.
    #[must_use]
    pub fn reads_of(&self, expr: ExprId) -> BTreeSet<ReadRef> {
        let origins =
            self.exprs.variables(expr).into_iter().map(|var| self.variables[var.index()].origin);
        let reads = origins.filter_map(|origin| match origin {
            VariableOrigin::Read { event, part } => Some(ReadRef { event, part }),
            _ => None,
        });
        reads.collect()
    }

    /// Was there no other thread, not even one that had not come to do anything, so that the events have one order?
    #[must_use]
    pub fn has_one_thread(&self) -> bool {
        self.threads.len() == 1
            && !self.events.iter().any(|event| matches!(event.kind, EventKind::Fork { .. }))
    }

    /// The reads that say where an event takes place: of the pointers and indices that its address was made of.
    #[must_use]
    pub fn address_reads(&self, event: &Event) -> BTreeSet<ReadRef> {
        let pins = self.conditions.iter().filter(|condition| {
            condition.kind == PathConditionKind::Address
                && condition.thread == event.thread
                && condition.position == event.index
        });
        pins.flat_map(|condition| self.reads_of(condition.expr)).collect()
    }

    /// What an event is about, in the source's words where they are known: the variable, the lock,
    /// the thread. `None` for events that are about nothing but their thread.
    #[must_use]
    pub fn subject<'a>(&'a self, event: &'a Event) -> Option<&'a str> {
        if let Some(name) = &event.name {
            return Some(name);
        }
        let object = |id: ObjectId| self.objects.get(id.index()).map(|object| &*object.name);
        let thread = |id: ThreadId| self.threads.get(id.index()).map(|thread| &*thread.name);
        match &event.kind {
            EventKind::Read { .. }
            | EventKind::Write { .. }
            | EventKind::ReadModifyWrite { .. } => {
                let read = event.kind.reads().first().map(|part| part.cell);
                let cell = read.or_else(|| Some(event.kind.writes().first()?.cell))?;
                Some(&self.cells.get(cell.index())?.name)
            }
            EventKind::Block { on: Awaited::End { child } }
            | EventKind::Fork { child }
            | EventKind::Join { child } => thread(*child),
            kind => kind.object().and_then(object),
        }
    }
}
