//! One thread's walk: its place in its streams, its frames, and what it holds.

use crate::choices::{Choices, choices};
use crate::clock::VectorClock;
use crate::endless::Cut;
use crate::failure::{Found, Known};
use crate::handovers::Passed;
use crate::heap::PRIVATE;
use crate::image::FunctionInfo;
use crate::locals::{Ended, Local};
use crate::memory::Bytes;
use crate::recording::ThreadLog;
use crate::repeats::Round;
use crate::report::{BlockedCall, ThreadReport};
use crate::settled::Settled;
use crate::streams::Window;
use crate::strings::Before;
use crate::value::{Scalar, Value};
use ir::assembly::Assembly;
use ir::types::{BlockId, InstId, Module, Operand, TypeId};
use model::{ExprId, Interval, Stack};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use trace_format::TraceError;
use trace_format::layout::{RuntimeEvent, SHORT_PAYLOAD, SYNC_PAYLOAD, SyncCoder, SyncOp, tag};

/// Why a thread's walk does not go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// It waits for a thread, by index, that has not come to its end. Nothing was consumed.
    Wait(usize),
    /// The streams have ended.
    EndOfLog,
    /// The instruction is over because a signal handler has left it by a jump; the walk goes on.
    Left,
    /// The failure was reached.
    Failed,
    /// What the caller lets the execution take is spent.
    Spent,
    /// The streams say something that cannot be.
    Contradiction(String),
}

pub(crate) fn contradiction<T>(detail: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Contradiction(detail.into()))
}

/// A path entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    Block(u32),
    Enter(u32),
    /// A function was entered by a call of instrumented code that had named it.
    Called(u32),
    Return,
    /// A call of an instrumented function returned.
    CameBack,
    /// The way of a branch, see [`Thread::choose`].
    Choice,
    Runtime(RuntimeEvent),
}

/// An executed multi-way branch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BranchRecord {
    /// Counts branches of the thread.
    pub sequence: u64,
    /// The condition as it went, when it was symbolic.
    pub condition: Option<ExprId>,
    /// The index of its path condition in the thread.
    pub path_condition: Option<usize>,
}

/// The last store to an address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoreRecord {
    /// The frame's serial.
    pub frame: u64,
    pub block: BlockId,
    pub instruction: InstId,
    /// How many time stamps the thread had passed when it had the value.
    pub known: usize,
}

/// What the search for φbug needs to know of a frame's past.
#[derive(Default)]
pub(crate) struct History<'r> {
    /// Per block that ends in a multi-way branch: its last execution.
    pub branches: FxHashMap<BlockId, BranchRecord>,
    /// Per block: where its last entry came from.
    pub entered_from: FxHashMap<BlockId, BlockId>,
    /// Per call: the frame that returned to it last.
    pub returned: FxHashMap<InstId, Box<CodeFrame<'r>>>,
}

/// A function being walked.
pub(crate) struct CodeFrame<'r> {
    pub info: &'r FunctionInfo<'r>,
    pub module: &'r Module,
    pub registers: Vec<Value>,
    pub arguments: Vec<Value>,
    pub block: BlockId,
    /// The instruction to execute next, or the call being executed.
    pub next: InstId,
    /// The thread's private stack pointer at entry.
    pub private_base: u64,
    pub history: Option<Box<History<'r>>>,
    /// By when the thread had what the registers hold.
    pub known: Known,
    /// Choices that were made and come once more, behind a leading one.
    pub open: Option<u32>,
    /// A region has ended since the current block was entered.
    pub region_ended: bool,
    /// Counts frames of the thread.
    pub serial: u64,
    /// What is kept of the places (`ir::guesses`); none where that is not known.
    pub kept: Vec<Option<u64>>,
    /// What the current load's guess gave.
    pub guess: Guess,
    /// The round of a waiting loop that goes on.
    pub round: Option<Round>,
    /// The fewest inlined calls in which a branch of it stood since the thread's last event.
    pub branched: u16,
}

impl CodeFrame<'_> {
    /// What is kept of a place, if that is known.
    pub fn kept_of(&self, place: Option<usize>) -> Option<u64> {
        self.kept.get(place?).copied().flatten()
    }
}

/// How the value of a load that is guessed comes to be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guess {
    /// It stands in the log.
    Logged,
    /// It was this.
    Right(u64),
    /// It was the guessed one, which is not known.
    Unknown,
}

/// The call that an [`ExternalFrame`] performs.
pub(crate) struct ExternalCall<'r> {
    pub name: &'r str,
    /// The callee's address; none for code that no call names.
    pub address: Option<u64>,
    pub arguments: Vec<Value>,
    pub operands: Vec<Operand>,
    pub result: TypeId,
    /// The object passed to `realloc`, as internal address.
    pub reallocated: Option<(u64, u64)>,
    /// The callee was instrumented and has been walked.
    pub walked: bool,
    pub walked_result: Option<Value>,
    /// The synchronisation call has had its effect, and never waits: it returns 0.
    pub performed: bool,
    /// The `pthread_t` of a thread that the call created.
    pub created: Option<u64>,
    /// A heap object that the call obtained.
    pub allocated: Option<usize>,
    /// What it wrote first, as the log says: how many bytes, and the bytes padded to whole
    /// words.
    pub written: Option<(u64, Box<[u8]>)>,
    /// Where a computed function's texts lie that the log has, and how long each is.
    pub measured: SmallVec<[(u64, u64); 2]>,
    /// What its arguments point to has been forgotten, because nobody described it.
    pub doubted: bool,
    /// The string that it edits, as it was before.
    pub text: Option<Before>,
    /// The events of what it reads have been made.
    pub read: bool,
    /// The first bytes that it read of what threads share, and all that went in of that.
    pub text_read: Option<Bytes>,
    pub went_in: Vec<ExprId>,
    /// What is called, when that is inline assembly.
    pub assembly: Option<Box<Assembly>>,
    /// `musttail`: the callee returns to the caller's caller, and nothing is logged of its return.
    pub tail: bool,
    /// The last time stamp before it.
    pub stamp: u64,
    /// The first reading of the clock inside of it.
    pub reading: Option<u64>,
    /// Does the last one stand before something that the call does?
    pub at_work: bool,
    /// What it may hand to another thread.
    pub passed: Option<Box<Passed>>,
    /// How many allocations the thread had made before it.
    pub allocations: u64,
}

/// Uninstrumented code.
#[derive(Default)]
pub(crate) struct ExternalFrame<'r> {
    /// `None` at a thread's bottom.
    pub call: Option<ExternalCall<'r>>,
    /// Of what calls a signal's handler: the signal.
    pub signal: Option<u32>,
}

/// See the module.
pub(crate) enum Frame<'r> {
    Code(Box<CodeFrame<'r>>),
    External(Box<ExternalFrame<'r>>),
}

impl<'r> Frame<'r> {
    pub fn code(&self) -> Option<&CodeFrame<'r>> {
        match self {
            Self::Code(frame) => Some(frame),
            Self::External(_) => None,
        }
    }

    /// The signal of which it calls the handler.
    pub fn signal(&self) -> Option<u32> {
        match self {
            Self::Code(_) => None,
            Self::External(frame) => frame.signal,
        }
    }

    /// The function of a library that was called.
    pub fn called(&self) -> Option<&'r str> {
        match self {
            Self::Code(_) => None,
            Self::External(frame) => {
                let call = frame.call.as_ref().filter(|_| frame.signal.is_none());
                call.map(|call| call.name)
            }
        }
    }
}

/// A lock that the thread holds.
#[derive(Clone, Debug)]
pub(crate) struct HeldLock {
    /// Internal address.
    pub address: u64,
    pub mode: model::LockMode,
    pub count: u32,
    /// The event, as an index in the thread.
    pub acquired: u32,
}

/// A synchronisation call in progress.
#[derive(Clone, Debug)]
pub(crate) struct PendingSync {
    pub operation: SyncOp,
    pub address: u64,
    /// The mutex of a condition wait.
    pub second: u64,
    pub argument: u64,
    /// How many frames the thread had.
    pub depth: usize,
    /// The time stamp at its beginning.
    pub stamp: u64,
    pub name: Option<String>,
    pub stack: Stack,
}

impl PendingSync {
    /// What it is, for people.
    pub fn blocked(&self) -> BlockedCall {
        BlockedCall {
            operation: format!("{:?}", self.operation),
            address: self.address,
            object: self.name.clone().unwrap_or_else(|| format!("{:#x}", self.address)),
            stack: self.stack.to_vec(),
        }
    }
}

/// See the module.
pub(crate) struct Thread<'r> {
    pub index: usize,
    pub log: &'r ThreadLog,
    path: Window<u32>,
    /// How many path entries were passed.
    pub path_at: usize,
    values: Window<u8>,
    /// What the walk left of its streams when it ended: path entries and bytes of values.
    left_over: (usize, usize),
    sync: SyncCoder,
    /// Counts the places that were marked in both streams.
    marks: u64,
    /// The same part of the log is walked again: its time stamps were those of the first time.
    pub repeating: bool,
    /// Choices that were read and not yet made.
    pub choices: Choices,
    /// How many regions without choices ended since the last entry, of those that have a token all the same.
    pub empty_regions: u32,
    pub frames: Vec<Frame<'r>>,
    /// By when it had what the function that returns gives back.
    pub known_result: Option<usize>,
    /// The outermost instrumented frame, once it has returned.
    pub left: Option<Box<CodeFrame<'r>>>,
    pub clock: VectorClock,
    /// Where its `errno` lies, as internal address.
    pub errno: Option<u64>,
    /// Where its walk ends before its log does.
    pub cut: Option<Cut>,
    /// Its creation has been walked.
    pub started: bool,
    pub stop: Option<Stop>,
    /// Another thread's turn has come ([`crate::owners`]).
    pub paused: bool,
    /// Semaphores of what it gets behind the last time stamp, which it is still to take ([`crate::owners`]).
    pub to_take: Vec<usize>,
    /// The instruction that comes next waited for another thread, and is executed once more.
    pub again: bool,
    /// `ThreadExit` was seen, or the initial thread's `main` returned.
    pub exited: bool,
    /// What follows in the log is a consequence of the failure, and is not walked.
    pub left_out: bool,
    /// A longjmp or cancellation was seen, and its target not yet.
    pub non_local: bool,
    /// How many frames the thread had in the wait in which it was cancelled, where that is known before it goes on.
    pub cancelled_in: Option<usize>,
    /// Where `setjmp` was called: buffer address to (frame serial, instruction).
    pub jump_buffers: FxHashMap<u64, (u64, InstId)>,
    /// Destructors of thread-local objects to come: their addresses, and what they are called with.
    pub destructors: Vec<(u64, Value)>,
    /// The buffers of cleanup handlers of C code, innermost last: where a cancelled thread goes on.
    pub cleanup_buffers: Vec<u64>,
    /// Where in the path the last call of uninstrumented code seemed to return while there were such handlers: what
    /// is logged of a thread that was cancelled in the call looks the same.
    pub doubtful_return: Option<usize>,
    /// The first such return behind which the log was contradicted.
    pub contradicted_return: Option<usize>,
    /// So many calls it has made that name files.
    pub file_calls: usize,
    /// How many calls it has made that open, read or write files.
    pub content_calls: usize,
    pub private_next: u64,
    tls_next: u64,
    pub report: ThreadReport,
    pub held: Vec<HeldLock>,
    pub pending_sync: Vec<PendingSync>,
    /// The thread, by index, that it is joining.
    pub joining: Option<usize>,
    /// The serial of a thread that it creates, where the handle is still to be written.
    pub creating: Option<u64>,
    /// Expressions that have an address condition.
    pub concretised: FxHashSet<ExprId>,
    /// What these conditions say of long expressions.
    pub settled: Settled,
    /// Branch conditions that are conditions already.
    pub conditioned: FxHashSet<ExprId>,
    pub allocations: u64,
    pub frees: u64,
    /// Local variables that other threads may use, of functions that have not returned.
    pub locals: Vec<Local>,
    /// How many there were.
    pub locals_made: u64,
    /// Those of functions that returned, as long as nothing has overwritten them.
    pub ended_locals: Vec<Ended>,
    /// How many mappings it has made.
    pub mappings: u64,
    /// How many calls it made that moved something through a descriptor.
    pub moves: u64,
    /// How often objects could go to uninstrumented code or come from it.
    pub crossings: u64,
    /// How many items it has given to queues.
    pub pushes: u64,
    /// Time stamps seen so far.
    pub stamps: usize,
    pub last_stamp: u64,
    /// By when it had come back from its last wait for what another thread gives.
    pub received: u64,
    /// The time stamps behind its waits whose time was up.
    pub timed_out: Vec<u64>,
    /// The number of its next event behind the last of these waits, or of its sleeps.
    pub looked: u32,
    /// How often it has slept for a while.
    pub sleeps: usize,
    /// The stamp before counted rounds of waiting, and the one behind the last of these.
    pub waited: (u64, u64),
    /// While the end of a call is walked: the time stamps between which its events happened.
    pub call_time: Option<Interval>,
    pub branch_sequence: u64,
    pub frame_serial: u64,
    /// The serial numbers of the calls that it was in at its last event, outermost first.
    pub calls: Vec<u64>,
    /// Per thread-local global: its private address.
    pub thread_locals: FxHashMap<(usize, u32), u64>,
    /// Instructions executed since the streams ended.
    pub tail: u64,
    /// Per internal address, for the failing thread only: who stored there last.
    pub last_store: FxHashMap<u64, StoreRecord>,
    /// The failing thread's last branch on shared data.
    pub last_branch: Option<Found>,
    /// What led to the last exception that was thrown.
    pub thrown: Option<Found>,
    /// Writes to standard output so far, in a run whose output was wrong.
    pub writes: u64,
}

/// So many bits of a private address are the same in all threads.
const PRIVATE_BITS: u32 = 40;

/// Where a thread's private memory begins.
fn private_memory(index: usize) -> u64 {
    PRIVATE + ((index as u64) << PRIVATE_BITS)
}

/// The thread whose private memory an address is in.
pub(crate) fn owner_of_private(address: u64) -> Option<usize> {
    usize::try_from(address.checked_sub(PRIVATE)? >> PRIVATE_BITS).ok()
}

/// Where in its thread's private memory an address is.
pub(crate) fn within_private(address: u64) -> u64 {
    address & ((1 << PRIVATE_BITS) - 1)
}

impl<'r> Thread<'r> {
    /// What a register holds, or the constant that a condition says it is.
    #[inline]
    pub fn settled_at(&self, register: Option<&Value>) -> Value {
        let value = register.cloned().unwrap_or_default();
        match self.settled.is_empty() {
            true => value,
            false => self.as_settled(value),
        }
    }

    fn as_settled(&self, value: Value) -> Value {
        let scalar = value.scalar();
        let settled = scalar.and_then(|scalar| {
            let constant = *self.settled.get(&scalar.as_expr()?)?;
            Some(Value::from(Scalar::constant(scalar.width, constant)))
        });
        settled.unwrap_or(value)
    }

    pub fn new(index: usize, log: &'r ThreadLog) -> Self {
        Self {
            index,
            log,
            path: Window::default(),
            path_at: 0,
            values: Window::default(),
            left_over: (0, 0),
            sync: SyncCoder::default(),
            marks: 0,
            repeating: false,
            choices: Choices::default(),
            empty_regions: 0,
            frames: vec![Frame::External(Box::default())],
            known_result: None,
            left: None,
            clock: VectorClock::default(),
            errno: None,
            cut: None,
            started: index == 0,
            stop: None,
            paused: false,
            to_take: Vec::new(),
            again: false,
            exited: false,
            left_out: false,
            non_local: false,
            cancelled_in: None,
            jump_buffers: FxHashMap::default(),
            destructors: Vec::new(),
            cleanup_buffers: Vec::new(),
            doubtful_return: None,
            contradicted_return: None,
            file_calls: 0,
            content_calls: 0,
            private_next: private_memory(index) + 4096,
            tls_next: private_memory(index) + (1 << 39),
            report: ThreadReport { name: log.name.clone(), ..ThreadReport::default() },
            held: Vec::new(),
            pending_sync: Vec::new(),
            joining: None,
            creating: None,
            concretised: FxHashSet::default(),
            settled: Settled::default(),
            conditioned: FxHashSet::default(),
            allocations: 0,
            locals: Vec::new(),
            locals_made: 0,
            ended_locals: Vec::new(),
            frees: 0,
            mappings: 0,
            moves: 0,
            crossings: 0,
            pushes: 0,
            stamps: 0,
            last_stamp: 0,
            received: 0,
            timed_out: Vec::new(),
            looked: 0,
            sleeps: 0,
            waited: (0, 0),
            call_time: None,
            branch_sequence: 0,
            frame_serial: 0,
            calls: Vec::new(),
            thread_locals: FxHashMap::default(),
            tail: 0,
            last_store: FxHashMap::default(),
            last_branch: None,
            thrown: None,
            writes: 0,
        }
    }

    /// The walk begins.
    pub fn open(&mut self) {
        self.path = Window::open(self.log.streams.path());
        self.values = Window::open(self.log.streams.values());
    }

    /// The walk has ended: the streams are not needed any more.
    pub fn close(&mut self) {
        let (path, values) = (self.path.skip_rest(), self.values.skip_rest());
        let choices = usize::from(std::mem::take(&mut self.choices).left > 0);
        self.left_over = (self.left_over.0 + path + choices, self.left_over.1 + values);
    }

    /// What is left of the streams tells nothing.
    pub fn forget_rest(&mut self) {
        self.path = Window::default();
        self.values = Window::default();
        self.choices.left = 0;
    }

    /// Why a stream could not be read to its end.
    pub fn take_error(&mut self) -> Option<TraceError> {
        self.path.take_error().or_else(|| self.values.take_error())
    }

    /// The next path entry, which stays.
    pub fn peek(&mut self) -> Result<Option<Entry>, Stop> {
        self.pass_repeated();
        if self.choices.left > 0 {
            return Ok(Some(Entry::Choice));
        }
        let Some(word) = self.path.first() else { return Ok(None) };
        let payload = word & tag::PAYLOAD;
        Ok(Some(match word >> tag::SHIFT {
            tag::BLOCK => match payload.checked_sub(tag::BLOCK_BIAS) {
                Some(block) => Entry::Block(block),
                None => return contradiction(format!("empty path entry {}", self.path_at)),
            },
            tag::ENTER if payload & tag::CALLED != 0 => Entry::Called(payload & !tag::CALLED),
            tag::ENTER => Entry::Enter(payload),
            tag::RETURN if choices(word).is_some() => Entry::Choice,
            tag::RETURN if payload == tag::OPEN => {
                return contradiction(format!("no choices before path entry {}", self.path_at));
            }
            tag::RETURN if payload == tag::CAME_BACK => Entry::CameBack,
            tag::RETURN => Entry::Return,
            _ => match RuntimeEvent::from_code(payload & 0xff) {
                Some(event) => Entry::Runtime(event),
                None => {
                    return contradiction(format!(
                        "path entry {} has unknown runtime event {}",
                        self.path_at,
                        payload & 0xff
                    ));
                }
            },
        }))
    }

    /// Does an event of the runtime come next?
    pub fn is_at_runtime_event(&self) -> bool {
        self.choices.left == 0
            && self.path.first().is_some_and(|word| {
                !matches!(word >> tag::SHIFT, tag::BLOCK | tag::ENTER | tag::RETURN)
            })
    }

    /// The next path entry as it is written, which stays.
    pub fn path_word(&self) -> Option<u32> {
        self.path.first()
    }

    /// How many entries of the path were passed.
    pub fn path_position(&self) -> usize {
        self.path_at
    }

    /// Moves past the entry that `peek` showed, unless that is a choice.
    pub fn advance(&mut self) {
        self.empty_regions = 0;
        self.path_at += 1;
        self.path.pass(1);
    }

    /// Moves past so many entries, which are known to be choices.
    pub fn skip(&mut self, entries: usize) {
        if entries == 0 {
            return;
        }
        self.empty_regions = 0;
        self.path_at += entries;
        let mut left = entries;
        while left > 0 {
            let ready = self.path.ahead(1).len().min(left);
            if ready == 0 {
                break;
            }
            self.path.pass(ready);
            left -= ready;
        }
    }

    /// How many empty tokens stand before the handler that comes next.
    pub fn empty_before(&self) -> u32 {
        self.path_word().map_or(0, |word| (word & tag::PAYLOAD) >> tag::EMPTY_SHIFT)
    }

    /// The word `ahead` places on, which stays.
    pub fn peek_word(&mut self, ahead: usize) -> Option<u64> {
        let bytes = self.values.ahead(8 * ahead + 8).get(8 * ahead..)?;
        bytes.first_chunk().map(|word| u64::from_le_bytes(*word))
    }

    /// Is what the log has next that this handle of a thread was written somewhere?
    pub fn is_told_next(&mut self, handle: u64) -> bool {
        handle != 0
            && matches!(self.peek(), Ok(Some(Entry::Runtime(RuntimeEvent::ExternalWrite))))
            && self.peek_word(1) == Some(8)
            && self.peek_word(2) == Some(handle)
    }

    /// The next bytes of values, which stay.
    pub fn peek_bytes(&mut self, count: usize) -> Option<&[u8]> {
        self.values.ahead(count).get(..count)
    }

    /// The next bytes of values, by way of `decode`.
    pub fn bytes<R>(&mut self, count: usize, decode: impl FnOnce(&[u8]) -> R) -> Result<R, Stop> {
        let result = decode(self.peek_bytes(count).ok_or(Stop::EndOfLog)?);
        self.values.pass(count);
        Ok(result)
    }

    /// The next words.
    pub fn words(&mut self, count: usize) -> Result<SmallVec<[u64; 6]>, Stop> {
        self.bytes(8 * count, |bytes| {
            let words = bytes.chunks_exact(8);
            words.filter_map(|word| Some(u64::from_le_bytes(*word.first_chunk()?))).collect()
        })
    }

    /// The time stamp of the last synchronisation event: another one with the same has none.
    pub fn sync_time(&self) -> u64 {
        self.sync.time()
    }

    /// The payload of a synchronisation event.
    pub fn sync_payload(&mut self) -> Result<SmallVec<[u64; 6]>, Stop> {
        let bytes = self.values.ahead(SYNC_PAYLOAD);
        let (payload, length) = self.sync.read(bytes).ok_or(Stop::EndOfLog)?;
        self.values.pass(length);
        Ok(SmallVec::from_slice(&payload))
    }

    /// Address and time stamp of a synchronisation event in the shortest form.
    pub fn short_payload(&mut self) -> Result<SmallVec<[u64; 6]>, Stop> {
        let bytes = self.values.ahead(SHORT_PAYLOAD);
        let (address, time, length) = self.sync.read_short(bytes).ok_or(Stop::EndOfLog)?;
        self.values.pass(length);
        Ok(SmallVec::from_slice(&[address, time]))
    }

    /// Once it is closed: how many path entries and how many bytes of values were not used.
    pub fn unused(&self) -> (usize, usize) {
        self.left_over
    }

    /// Marks the place in both streams, and gives its number. Another one that was marked is forgotten.
    pub fn mark(&mut self) -> u64 {
        self.path.mark();
        self.values.mark();
        self.marks += 1;
        self.marks
    }

    /// Forgets the place that is marked.
    pub fn unmark(&mut self) {
        self.path.unmark();
        self.values.unmark();
        self.marks += 1;
    }

    /// Goes back to the place with this number. False when it is not known any more.
    pub fn go_back(&mut self, mark: u64) -> bool {
        let (Some(entries), Some(_)) = (self.path.since_mark(), self.values.since_mark()) else {
            return false;
        };
        if mark != self.marks {
            return false;
        }
        self.path_at -= entries;
        self.path.go_back();
        self.values.go_back();
        true
    }

    /// Have both streams been used up?
    pub fn exhausted(&self) -> bool {
        self.choices.left == 0
            && self.path.is_over()
            && self.values.is_over()
            && self.left_over == (0, 0)
    }

    pub fn code(&self) -> Option<&CodeFrame<'r>> {
        match self.frames.last() {
            Some(Frame::Code(frame)) => Some(frame),
            _ => None,
        }
    }

    pub fn code_mut(&mut self) -> Option<&mut CodeFrame<'r>> {
        match self.frames.last_mut() {
            Some(Frame::Code(frame)) => Some(frame),
            _ => None,
        }
    }

    /// A thread that failed behind the end of its outermost function, in code of the compiler's (a
    /// check of the stack), failed in that function.
    pub fn back_to_last_frame(&mut self) {
        if self.innermost_code().is_none()
            && let Some(frame) = self.left.take()
        {
            self.frames.push(Frame::Code(frame));
        }
    }

    /// The innermost code frame: the caller, when uninstrumented code is on top.
    pub fn innermost_code(&self) -> Option<&CodeFrame<'r>> {
        self.frames.iter().rev().find_map(|frame| match frame {
            Frame::Code(frame) => Some(&**frame),
            Frame::External(_) => None,
        })
    }

    pub fn external_call(&mut self) -> Option<&mut ExternalCall<'r>> {
        match self.frames.last_mut() {
            Some(Frame::External(frame)) => frame.call.as_mut(),
            _ => None,
        }
    }

    /// A reading of the clock inside of a call.
    pub fn note_reading(&mut self, time: u64) {
        if let Some(call) = self.external_call() {
            call.reading.get_or_insert(time);
            call.at_work = !call.at_work;
        }
    }

    /// Fresh private memory of the thread, 16-byte aligned.
    pub fn private(&mut self, size: u64) -> u64 {
        let address = self.private_next;
        self.private_next += size.min(1 << 38).saturating_add(31) & !15;
        address
    }

    /// Memory for a thread-local variable, aligned to 64 bytes.
    pub fn thread_local(&mut self, size: u64) -> u64 {
        let address = self.tls_next;
        self.tls_next += size.min(1 << 32).saturating_add(127) & !63;
        address
    }
}
