//! The raw layout that the runtime writes while the program runs, shared by the runtime (which
//! includes this module without `std`), the instrumenter and the reader. Here: streams, control pages,
//! the process page and the failure.
//!
//! A thread has two streams, written by that thread alone into its own files, and a control page that
//! says how far each has come, so that SIGKILL loses at most the entry being written.
//!
//! The first [`STREAM_WINDOW`] bytes of a stream's file are mapped: the window, which holds the
//! stream's end. When it has [`STREAM_PIECE`] bytes, these are appended to the file and it begins anew with
//! the rest ([`Control::path_moved`]): memory that is used again costs no fresh pages.
//!
//! * **path**: tokens of one byte, some of which a `u32` follows, see [`token`]. Zero is never
//!   written at the beginning of a token.
//! * **values**: little-endian numbers of 1, 2, 4 or 8 bytes, one behind the other. Which numbers are
//!   there, and in which order, follows from the path and from the logging plan of the IR
//!   (`ir::plan`), but for the payloads of runtime entries, which are given with [`RuntimeEvent`]:
//!   `u64` words, save those of synchronisation ([`SyncCoder`]).

mod modules;
mod schedule;
mod sync;

pub use modules::*;
pub use schedule::*;
pub use sync::*;

/// Changes whenever a binary built by an older instrumenter could be misread: the layout of the
/// streams, the control page, the module descriptor, or the logging plan.
///
/// Changelog, of the latest ones:
///
/// * 7: choices that no token has yet are in the control page; tokens of four bytes.
/// * 8: windows are emptied in whole pieces.
/// * 9: calls between instrumented functions ([`token::CALLED`], [`token::CAME_BACK`],
///   [`Control::called`]); rounds of waiting loops are counted ([`RuntimeEvent::Repeat`]).
/// * 10: such loops may have loops within.
/// * 11: rounds of loops with calls are counted, too, of which nothing is certain but the log.
/// * 12: mappings ([`RuntimeEvent::Map`], [`RuntimeEvent::Unmap`]).
/// * 13: handlers of signals say where they ran.
/// * 14: what members of `std::string` change is computed, and not logged.
/// * 15: what `__builtin_thread_pointer` gives.
/// * 16: functions that untraced ones of the same module call have an entry.
/// * 17: floating-point loads are logged where integers that feed addresses are made of them.
/// * 18: how long the texts of `strcpy` and `strcat` are; what the functions of libatomic give is computed, and not logged.
pub const INSTRUMENTATION_VERSION: u32 = 18;

/// The environment variable that names the trace directory to write. Unset: the program runs
/// without recording, and its hooks write into a small ring that nobody reads.
pub const TRACE_DIR_VARIABLE: &str = "SYMBIOSIS_TRACE_DIR";

/// The environment variable that names the directory in which every process without a trace
/// directory of its own makes one, `PID-N` for the N-th program that runs as process PID. Unlike the
/// others it stays in the environment, for the processes that this one starts.
pub const CHILDREN_VARIABLE: &str = "SYMBIOSIS_CHILDREN";
/// Name of the file with what was run in such a directory: the texts that [`Process::forked`]
/// explains, each ended by a zero byte.
pub const ORIGIN_FILE: &str = "origin.bin";
/// Name of the file with the variables of OpenMP in the environment of what was run there (`NAME=value`), each
/// ended by a zero byte.
pub const OPENMP_FILE: &str = "openmp.bin";
/// What those variables begin with.
pub const OPENMP_PREFIX: &str = "OMP_";

/// Bytes of the window at the beginning of a stream's file.
pub const STREAM_WINDOW: usize = STREAM_PIECE + (4 << 10);
/// Where in a stream's file that comes which was moved out of the window.
pub const STREAM_BEHIND: usize = 2 * STREAM_PIECE;
/// Bytes that are moved out of a window when it has so many: whole and aligned, which costs the kernel
/// less than any other number.
pub const STREAM_PIECE: usize = 64 << 10;
/// Behind the limit of the values stream there is always room for so many bytes that a function writes
/// without looking at it, after what it wrote when it looked.
pub const VALUE_SLACK: usize = 64;
/// Size in bytes of a thread's control page.
pub const CONTROL_PAGE_SIZE: usize = 4096;
/// First word of a control page: the bytes `SYMBCTL1`.
pub const CONTROL_MAGIC: u64 = u64::from_le_bytes(*b"SYMBCTL1");
/// First word of `process.bin`: the bytes `SYMBPRC1`.
pub const PROCESS_MAGIC: u64 = u64::from_le_bytes(*b"SYMBPRC1");

/// The third word of a [`RuntimeEvent::SignalBegin`]: its handler runs right behind the token of choices
/// before it, be that empty, where their region ended.
pub const SIGNAL_AT_REGION_END: u64 = 0;
/// The same word: its handler runs before the instruction that caused the fault.
pub const SIGNAL_AT_FAULT: u64 = 1;
/// The same word: its handler runs in code that is not instrumented, or before the next entry.
pub const SIGNAL_ELSEWHERE: u64 = 2;

/// The path stream as it is written: tokens.
///
/// A token below [`token::FIRST`], or a word that begins with [`token::LONG`] or more, holds choices: the
/// ways that branches went, in order, from the highest bit behind the leading one to the lowest. A
/// branch with two ways takes one bit, a switch as many as the number of its distinct targets needs
/// (`ir::regions`).
///
/// A thread keeps the choices that no token has yet in its control page (`Control::choices`): whatever
/// ends the process finds them there. The token is written where the next one goes
/// (`Control::path_next`) first, then the choices are cleared, then `path_next` counts the token. So
/// when there are none in the control page, a token of choices there counts as well; all else behind
/// the last token is zeros.
pub mod token {
    /// Choices without any: nothing happened.
    pub const EMPTY: u8 = 1;
    /// The first byte that holds no choices. Short tokens of choices are `EMPTY` to `FIRST - 1`.
    pub const FIRST: u8 = 0x80;
    /// From this first byte on a token has four bytes, the highest first: choices, and the two highest
    /// bits.
    pub const LONG: u8 = 0xc0;
    /// The two highest bits.
    pub const LONG_MARK: u32 = (LONG as u32) << 24;
    /// How many bits of choices a token holds at most. (They have room in [`super::tag`]'s entries.)
    pub const BITS: u32 = 28;
    /// A call whose target is not known to be in the same module returned. The result follows in
    /// the values stream where the plan says so.
    pub const RETURN: u8 = 0x80;
    /// A function with an entry record was entered; a `u32` follows, the process-wide function
    /// number: the module's base plus the function's index among the module's functions. The
    /// arguments follow in the values stream.
    pub const ENTER: u8 = 0x81;
    /// A recorded basic block was entered; a `u32` follows, its index in the function.
    pub const BLOCK: u8 = 0x82;
    /// The runtime had something to say before the choices in the token before this one were
    /// complete: when the function goes on, its next token of choices begins with them once more.
    pub const OPEN: u8 = 0x83;
    /// As `ENTER`, of a function that instrumented code called and had named before
    /// ([`super::Control::called`]). Integers and pointers among the arguments are the caller's and do
    /// not follow in the values stream.
    pub const CALLED: u8 = 0x84;
    /// As `RETURN`, where the callee was instrumented and has returned. A result that is an integer or
    /// a pointer does not follow in the values stream.
    pub const CAME_BACK: u8 = 0x85;
    /// The runtime saw something: the [`super::RuntimeEvent`] is added.
    pub const RUNTIME: u8 = 0x90;

    /// How a token of choices is written, behind a leading one: as the first so many of four bytes.
    #[must_use]
    pub const fn of_choices(choices: u32) -> ([u8; 4], usize) {
        if choices < FIRST as u32 {
            (choices.to_le_bytes(), 1)
        } else {
            ((LONG_MARK | choices).to_be_bytes(), 4)
        }
    }

    /// The choices of the token at the beginning of these bytes, behind a leading one, and how many bytes
    /// it has; none when it holds no choices.
    #[must_use]
    pub const fn choices(bytes: [u8; 4]) -> Option<(u32, usize)> {
        match bytes[0] {
            short if short > EMPTY && short < FIRST => Some((short as u32, 1)),
            LONG.. => {
                let choices = u32::from_be_bytes(bytes) & !LONG_MARK;
                if choices > 1 && choices >> (BITS + 1) == 0 { Some((choices, 4)) } else { None }
            }
            _ => None,
        }
    }
}

/// The entries of the path stream as they are read: bits 31..30 say which.
pub mod tag {
    /// Which kind of entry.
    pub const SHIFT: u32 = 30;
    /// A recorded basic block was entered; bits 29..0 are its index in the function.
    pub const BLOCK: u32 = 0;
    /// A function with an entry record was entered; bits 28..0 are the function number
    /// ([`super::token::ENTER`]); bit 29 is [`CALLED`].
    pub const ENTER: u32 = 1;
    /// Bits 29..0 are 1: a call returned; [`OPEN`], [`CAME_BACK`] or [`CHOICES`].
    pub const RETURN: u32 = 2;
    /// The runtime saw something; bits 7..0 are the [`super::RuntimeEvent`]. Where that is the beginning
    /// of a signal's handler, the bits from [`EMPTY_SHIFT`] on count the empty tokens right before it
    /// ([`super::token::EMPTY`]), or are [`MOST_EMPTY`] for more.
    pub const RUNTIME: u32 = 3;
    /// See [`RUNTIME`].
    pub const EMPTY_SHIFT: u32 = 8;
    /// See [`RUNTIME`].
    pub const MOST_EMPTY: u32 = 0xffff;
    /// Mask of the payload bits.
    pub const PAYLOAD: u32 = (1 << SHIFT) - 1;
    /// A block's index is plus one, so that no entry is zero.
    pub const BLOCK_BIAS: u32 = 1;
    /// Payload of `RETURN`: the choices before come once more ([`super::token::OPEN`]).
    pub const OPEN: u32 = 2;
    /// Payload of `RETURN`: a call of an instrumented function returned ([`super::token::CAME_BACK`]).
    pub const CAME_BACK: u32 = 3;
    /// In the payload of `ENTER`: the caller had named the function ([`super::token::CALLED`]).
    pub const CALLED: u32 = 1 << 29;
    /// Payload of `RETURN`: bits 28..0 are choices behind a leading one.
    pub const CHOICES: u32 = 1 << (super::token::BITS + 1);
}

/// What the runtime reports in a thread's own stream. The payload words in the values stream are
/// given in order; `tsc` is a time-stamp-counter reading.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RuntimeEvent {
    /// `pthread_create` succeeded. `[child serial, pthread_t, start routine, argument]`.
    ThreadCreate = 1,
    /// `pthread_join` is about to wait. `[serial of the thread waited for, or 0]`.
    JoinBegin = 2,
    /// `pthread_join` returned. `[serial, what it returned: 0 or an errno]`.
    JoinEnd = 3,
    /// The thread runs its last instrumented instruction. `[tsc]`.
    ThreadExit = 4,
    /// A heap object was obtained. `[address, size, tsc after]`.
    Allocate = 5,
    /// A heap object is about to be given back. `[address, tsc before]`.
    Free = 6,
    /// A synchronisation call is about to start, and may block. `[SyncOp, address, address of the
    /// second object or 0, argument, tsc before, see [`SyncCoder`]]`.
    SyncBegin = 7,
    /// The call ended. `[SyncOp, address, second address or 0, result, tsc after]`.
    SyncEnd = 8,
    /// Uninstrumented code wrote memory. `[address, length in bytes, the bytes padded with zeros
    /// to whole words]`.
    ExternalWrite = 9,
    /// A cancellation, longjmp or other non-local exit that the runtime saw. `[]`.
    NonLocal = 10,
    /// The program's handler for a signal is about to run, in the middle of whatever the thread
    /// does. `[signal, handler, 1 for a fault of the instruction that comes next, its address,
    /// address of the siginfo_t, address of the ucontext_t]`.
    SignalBegin = 11,
    /// The handler returned. `[signal]`.
    SignalEnd = 12,
    /// The clock was read in the middle of the program's own code: right behind a token of choices
    /// where the region ended whose choices the token holds, elsewhere before the entry that comes
    /// next. `[tsc]`.
    Reading = 13,
    /// An ordinary mutex (of kind 0) could be had at once: begin and end of a `pthread_mutex_lock` that
    /// returned 0. The address and the tsc after, see [`SyncCoder::write_short`].
    Locked = 14,
    /// An ordinary mutex is about to be unlocked: begin and end of a `pthread_mutex_unlock` that
    /// returns 0. The address and the tsc before, as for `Locked`.
    Unlocked = 15,
    /// At the header of a waiting loop (`ir::repeats`), coming from within: the round before was done so many
    /// times more. `[how many times, tsc after the last one]`; the words change while it goes on. 0 times:
    /// handlers of signals may follow that ran there.
    Repeat = 16,
    /// Whole pages were mapped, perhaps over others. `[address, length, what they hold, tsc before,
    /// tsc after]`; what they hold is [`MAPPING_OTHER`], [`MAPPING_ZERO`], or an address and [`MAPPING_MOVED`] or
    /// [`MAPPING_GROWN`].
    Map = 17,
    /// Whole pages, some of which may not have been mapped, were given back. `[address, length, tsc
    /// before]`.
    Unmap = 18,
    /// The clock was read in a call that names files or uses them, before or behind what it does to them. `[tsc]`.
    CallReading = 19,
}

/// What mapped pages hold: what their file does, or what nobody knows of.
pub const MAPPING_OTHER: u64 = 0;
/// What mapped pages hold: zeros.
pub const MAPPING_ZERO: u64 = 1;
/// What mapped pages hold: what was at the address that is added, which was mapped until then.
pub const MAPPING_MOVED: u64 = 2;
/// What mapped pages hold: the mapping at the address that is added goes on here.
pub const MAPPING_GROWN: u64 = 3;
/// The smallest page, in bytes: addresses and lengths of mappings are multiples of it.
pub const MAPPING_PAGE: u64 = 4096;

impl RuntimeEvent {
    /// The event behind an entry's payload bits.
    #[must_use]
    pub const fn from_code(code: u32) -> Option<Self> {
        Some(match code {
            1 => Self::ThreadCreate,
            2 => Self::JoinBegin,
            3 => Self::JoinEnd,
            4 => Self::ThreadExit,
            5 => Self::Allocate,
            6 => Self::Free,
            7 => Self::SyncBegin,
            8 => Self::SyncEnd,
            9 => Self::ExternalWrite,
            10 => Self::NonLocal,
            11 => Self::SignalBegin,
            12 => Self::SignalEnd,
            13 => Self::Reading,
            14 => Self::Locked,
            15 => Self::Unlocked,
            16 => Self::Repeat,
            17 => Self::Map,
            18 => Self::Unmap,
            19 => Self::CallReading,
            _ => return None,
        })
    }
}

/// The argument of a [`SyncOp::Once`] whose routine gives a word, 8 bytes behind the object's own; the second
/// address of its end.
pub const ONCE_WITH_RESULT: u64 = 1;
/// The argument of a [`SyncOp::Once`] whose object is a word of 8 bytes, all ones when the routine has been run.
pub const ONCE_ALL_ONES: u64 = 2;

/// A synchronisation call. "Argument" is the fourth payload word of `SyncBegin`.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SyncOp {
    /// `pthread_mutex_lock`. The argument is the mutex's kind (`PTHREAD_MUTEX_*`).
    MutexLock = 1,
    /// `pthread_mutex_trylock`; result `EBUSY` is a failure. Argument as for `MutexLock`.
    MutexTryLock = 2,
    /// `pthread_mutex_timedlock` and `pthread_mutex_clocklock`. Argument as for `MutexLock`.
    MutexTimedLock = 3,
    /// `pthread_mutex_unlock`. Argument as for `MutexLock`.
    MutexUnlock = 4,
    /// `pthread_rwlock_rdlock`.
    RwReadLock = 5,
    /// `pthread_rwlock_tryrdlock`.
    RwTryReadLock = 6,
    /// `pthread_rwlock_timedrdlock` and `clockrdlock`.
    RwTimedReadLock = 7,
    /// `pthread_rwlock_wrlock`.
    RwWriteLock = 8,
    /// `pthread_rwlock_trywrlock`.
    RwTryWriteLock = 9,
    /// `pthread_rwlock_timedwrlock` and `clockwrlock`.
    RwTimedWriteLock = 10,
    /// `pthread_rwlock_unlock`.
    RwUnlock = 11,
    /// `pthread_cond_wait`: the second address is the mutex.
    CondWait = 12,
    /// `pthread_cond_timedwait` and `clockwait`: the second address is the mutex; result
    /// `ETIMEDOUT` is a time-out.
    CondTimedWait = 13,
    /// `pthread_cond_signal`.
    CondSignal = 14,
    /// `pthread_cond_broadcast`.
    CondBroadcast = 15,
    /// `sem_init`. The argument is the initial value.
    SemInit = 16,
    /// `sem_wait`.
    SemWait = 17,
    /// `sem_trywait`; result -1 is a failure.
    SemTryWait = 18,
    /// `sem_timedwait` and `sem_clockwait`; result -1 is a failure.
    SemTimedWait = 19,
    /// `sem_post`.
    SemPost = 20,
    /// `pthread_barrier_init`. The argument is the count.
    BarrierInit = 21,
    /// `pthread_barrier_wait`.
    BarrierWait = 22,
    /// `pthread_spin_lock`.
    SpinLock = 23,
    /// `pthread_spin_trylock`; result `EBUSY` is a failure.
    SpinTryLock = 24,
    /// `pthread_spin_unlock`.
    SpinUnlock = 25,
    /// `pthread_once`: the routine, if it runs, runs between begin and end. Result 1: this thread
    /// ran it. The argument is 0, [`ONCE_WITH_RESULT`] or [`ONCE_ALL_ONES`].
    Once = 26,
    /// `syscall(SYS_futex, ...)` with `FUTEX_WAIT` or `FUTEX_WAIT_BITSET`. The argument is the value
    /// that the word must have. Result 1: it had another one, at the beginning or at the end; 0: a
    /// wake-up came, and it had not; -1: the time was up, or another failure.
    FutexWait = 27,
    /// The same with `FUTEX_WAKE` or `FUTEX_WAKE_BITSET`. The argument is how many threads at most.
    FutexWake = 28,
    /// An item is given to a queue of a library, or a task to its threads: the second address is the item.
    /// The argument is 1 where it may come in front of others, 2 for a task: that may have been taken, and its
    /// function be about to be called, without a `QueuePop`.
    QueuePush = 29,
    /// An item is taken from such a queue: the second address of `SyncEnd` is the item. The argument is 1
    /// for a call that may come back without one, 2 for one that asks for this item wherever it is. The result says how many
    /// items were taken, 0 for none; others than the first have the numbers below.
    QueuePop = 30,
    /// A thread of a Rust program panics. What it does then is not followed where the panic is the failure.
    Panic = 31,
    /// Something is about to be written to a connection of TCP, or one was made: the object is the direction's number, the
    /// second address the [`SocketUse`], the argument how many bytes at most. The result says how many, less than 1 for none.
    SocketWrite = 32,
    /// Something was read from a connection of TCP, or one was accepted: as [`SyncOp::SocketWrite`]. Both entries come when
    /// the call has come back with something.
    SocketRead = 33,
}

/// What is done with a direction of a connection between two threads of the process: the second address of
/// [`SyncOp::SocketWrite`] and [`SyncOp::SocketRead`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketUse {
    /// Bytes are written or read.
    Bytes = 0,
    /// It is closed, or found to be at its end.
    End = 1,
    /// The connection is made, or accepted.
    Connection = 2,
    /// Bytes may be written that nobody sees.
    Doubt = 3,
}

impl SocketUse {
    /// The use behind a payload word.
    #[must_use]
    pub const fn from_code(code: u64) -> Option<Self> {
        Some(match code {
            0 => Self::Bytes,
            1 => Self::End,
            2 => Self::Connection,
            3 => Self::Doubt,
            _ => return None,
        })
    }

    /// The number of what goes from one end, an address with its port, to another. It is no address of memory: the highest
    /// bit is set and the next one is not.
    #[must_use]
    pub fn number(self, from: &[u8; 18], to: &[u8; 18]) -> u64 {
        let what = if self == Self::Doubt { Self::Bytes } else { self };
        let mut bytes = [what as u8; 37];
        bytes[1..19].copy_from_slice(from);
        bytes[19..].copy_from_slice(to);
        site_hash(&bytes) >> 2 | 1 << 63
    }
}

impl SyncOp {
    /// The operation behind a payload word.
    #[must_use]
    pub const fn from_code(code: u64) -> Option<Self> {
        Some(match code {
            1 => Self::MutexLock,
            2 => Self::MutexTryLock,
            3 => Self::MutexTimedLock,
            4 => Self::MutexUnlock,
            5 => Self::RwReadLock,
            6 => Self::RwTryReadLock,
            7 => Self::RwTimedReadLock,
            8 => Self::RwWriteLock,
            9 => Self::RwTryWriteLock,
            10 => Self::RwTimedWriteLock,
            11 => Self::RwUnlock,
            12 => Self::CondWait,
            13 => Self::CondTimedWait,
            14 => Self::CondSignal,
            15 => Self::CondBroadcast,
            16 => Self::SemInit,
            17 => Self::SemWait,
            18 => Self::SemTryWait,
            19 => Self::SemTimedWait,
            20 => Self::SemPost,
            21 => Self::BarrierInit,
            22 => Self::BarrierWait,
            23 => Self::SpinLock,
            24 => Self::SpinTryLock,
            25 => Self::SpinUnlock,
            26 => Self::Once,
            27 => Self::FutexWait,
            28 => Self::FutexWake,
            29 => Self::QueuePush,
            30 => Self::QueuePop,
            31 => Self::Panic,
            32 => Self::SocketWrite,
            33 => Self::SocketRead,
            _ => return None,
        })
    }
}

/// A thread's control page. The instrumented code reads and writes the first five words and the last
/// two; the rest is the runtime's. Pointers are addresses in the traced process.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Control {
    /// Where the next path token goes; it may be there already ([`token`]).
    pub path_next: u64,
    /// When `path_next` has reached this, the hook calls the runtime before it writes on, or after
    /// it wrote choices. Some entries always fit behind it.
    pub path_limit: u64,
    /// Where the next value word goes.
    pub value_next: u64,
    /// As `path_limit`; behind it there is also room for [`VALUE_SLACK`].
    pub value_limit: u64,
    /// The choices of the region that the thread is in, behind a leading one, as far as anything may have
    /// happened behind them; 0 or 1 for none ([`token`]). The hooks write the lower half.
    pub choices: u64,
    /// Where the path stream's window begins; the stream's length is `path_moved` and
    /// `path_next - path_base`.
    pub path_base: u64,
    /// Where the values stream's window begins.
    pub value_base: u64,
    /// [`CONTROL_MAGIC`].
    pub magic: u64,
    /// The thread's number in order of creation, from 1; the initial thread is 1.
    pub serial: u64,
    /// The serial of the creating thread; 0 for the initial thread.
    pub parent: u64,
    /// This is the parent's `ordinal`-th child, from 1; 0 for the initial thread.
    pub ordinal: u64,
    /// The start routine's address; 0 for the initial thread.
    pub start_routine: u64,
    /// How many children this thread has created.
    pub children: u64,
    /// 0 running, 1 ended.
    pub ended: u64,
    /// Not 0 when a stream could not grow: the `errno`, and from then on that stream got nothing
    /// more.
    pub overflow_errno: u64,
    /// Not 0 when the path stream could not grow: its final length in bytes plus one. `path_next`
    /// then says nothing about the file.
    pub path_final: u64,
    /// As `path_final`, for the values stream.
    pub value_final: u64,
    /// How many gates the thread has passed; only counted while gates are open (see
    /// [`SiteEntry`]). A thread that waits at a gate has not passed it.
    pub gates: u64,
    /// A gate calls the runtime when `gates` has reached this; `u64::MAX` for never.
    pub gate_stop: u64,
    /// How many sync points the thread has passed; only counted by the scheduler. See
    /// [`SyncPoint`].
    pub points: u64,
    /// How many bytes of the path stream are in its file behind the window.
    pub path_moved: u64,
    /// As `path_moved`, but changed first: while it is greater, the window is being emptied, and so many
    /// bytes are behind it already, the difference fewer in it ([`Extent`]).
    pub path_moving: u64,
    /// As `path_moved`, for the values stream.
    pub value_moved: u64,
    /// As `path_moving`, for the values stream.
    pub value_moving: u64,
    /// Who is being called, or came back: the address of the function that instrumented code is about to
    /// call, until that function is entered, or of the one that returned. `called_as` says which. The
    /// runtime takes both out of a signal handler's way.
    pub called: u64,
    /// 0 for nobody; else [`called_as`] the call's types, with [`CAME_BACK`] when the function has
    /// returned. (The hooks write the lower half.)
    pub called_as: u64,
    /// Not 0 in a round of a waiting loop (`ir::repeats`) that began at the loop's header, coming from within:
    /// the loop and the call of its function, as the address of the function's frame times 2^16, with
    /// [`loop_number`]. What is logged of the round may be taken back.
    pub round: u64,
    /// Where the path of that round begins.
    pub round_path: u64,
    /// Where its values begin.
    pub round_values: u64,
    /// Not 0 when an atomic update of the round changed memory. The hooks write the lower half.
    pub round_changes: u64,
    /// How many readings of the clock have been noted.
    pub readings: u64,
    /// Where in the window of the values stream the last of them are: the n-th at n modulo their number.
    pub reading_at: [u64; NOTED_READINGS],
}

/// In [`Control::called_as`]: the function has returned.
pub const CAME_BACK: u32 = 1 << 31;

/// What stands in [`Control::called_as`] for a call with these types, of which there is a hash (`ir::calls`).
/// A caller that has other types in mind than the function leaves another number.
#[must_use]
pub const fn called_as(types: u64) -> u32 {
    let folded = (types ^ types >> 31 ^ types >> 62) as u32 & !CAME_BACK;
    if folded == 0 { 1 } else { folded }
}

/// In [`loop_number`]: it is certain what the rounds of the loop do.
pub const CERTAIN_LOOP: u16 = 1;

/// What tells a waiting loop of a function, by its header's index, from the function's others.
#[must_use]
pub const fn loop_number(header: u32, certain: bool) -> u16 {
    ((header as u16) << 1) | if certain { CERTAIN_LOOP } else { 0 }
}

/// See [`Control::reading_at`].
pub const NOTED_READINGS: usize = 4;

/// A stream's length: what is behind the window, and what is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Bytes behind the window, the stream's first ones.
    pub moved: u64,
    /// Bytes of the window that count no more.
    pub start: u64,
    /// Bytes in the window behind those, the stream's last ones.
    pub window: u64,
}

impl Extent {
    /// From the words of a control page: `last` is `path_final`, and so on. `None` when they cannot
    /// be.
    ///
    /// A window is emptied in this order: its first bytes are appended to the file; `moving` counts them;
    /// the rest is copied to the window's beginning; `next` is set to the end of that; `moved` counts
    /// them.
    #[must_use]
    pub const fn new(last: u64, next: u64, base: u64, moved: u64, moving: u64) -> Option<Self> {
        let there = match (last, next.checked_sub(base)) {
            (0, None) => return None,
            (0, Some(there)) => there,
            _ => match (last - 1).checked_sub(moved) {
                Some(there) => return Some(Self { moved, start: 0, window: there }),
                None => return None,
            },
        };
        match moving.checked_sub(moved) {
            Some(taken @ 1..) if there >= taken => {
                Some(Self { moved: moving, start: taken, window: there - taken })
            }
            Some(1..) => Some(Self { moved: moving, start: 0, window: there }),
            _ => Some(Self { moved, start: 0, window: there }),
        }
    }

    /// Bytes in all.
    #[must_use]
    pub const fn length(self) -> u64 {
        self.moved.saturating_add(self.window)
    }
}

impl Control {
    /// How long the path stream is, choices behind its last token left out.
    #[must_use]
    pub const fn path_extent(&self) -> Option<Extent> {
        let moving = self.path_moving;
        Extent::new(self.path_final, self.path_next, self.path_base, self.path_moved, moving)
    }

    /// How long the values stream is.
    #[must_use]
    pub const fn value_extent(&self) -> Option<Extent> {
        let moving = self.value_moving;
        Extent::new(self.value_final, self.value_next, self.value_base, self.value_moved, moving)
    }
}

/// The failure as the runtime sees it inside the process.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RawFailure {
    /// None (yet).
    None = 0,
    /// `__assert_fail` was called.
    Assertion = 1,
    /// `abort` was called.
    Abort = 2,
    /// A fatal signal: `signal` and `fault_address` tell.
    Signal = 3,
    /// `exit`, `_exit` or a return from `main` with a status other than 0.
    Exit = 4,
    /// Under a scheduler, all threads waited for each other, and the runtime ended the process
    /// with [`DEADLOCK_STATUS`]. The message says what each waits for; there is no failing thread. Or another process
    /// sent a signal that is to end this one: then the code is that, and there is no message.
    Deadlock = 5,
    /// An access to a freed object, seen by the guarded heap ([`DETECT_VARIABLE`]): `fault_address`
    /// tells where.
    UseAfterFree = 6,
    /// An object was freed that had been freed already; `fault_address` is the object's.
    DoubleFree = 7,
    /// libc found the heap damaged, or was asked to free what is no object; `fault_address` is what
    /// was being freed, 0 when nothing was.
    HeapCorruption = 8,
    /// A fatal signal for an access beyond the end of the stack.
    StackOverflow = 9,
    /// A C++ exception that nobody caught.
    Exception = 10,
    /// `symbiosis_fail_if` of `symbiosis.h`. The message is that of an assertion.
    User = 11,
    /// The place that [`FAIL_AT_VARIABLE`] names was reached; the message is `file:line`.
    Reached = 12,
    /// A thread of a Rust program panicked. A failure only if the process then ends with a status other than 0:
    /// the panic may be caught. The message says where. Of several it is the first one that the program told of on its standard output
    /// or error output, or the first one where it told of none.
    Panic = 13,
}

/// Set to `use-after-free`, it makes the runtime give every heap object pages of its own, which are
/// never used again and cannot be accessed once the object is freed.
pub const DETECT_VARIABLE: &str = "SYMBIOSIS_DETECT";
/// `FILE:LINE=OFFSET,OFFSET,...`: where the code of a source line begins, in hexadecimal bytes from
/// where the executable is loaded. A thread that gets there has failed.
pub const FAIL_AT_VARIABLE: &str = "SYMBIOSIS_FAIL_AT";

/// After how many bytes of its path a thread reads the clock, in decimal digits; 0 for never. Default:
/// [`DEFAULT_READINGS`].
pub const READINGS_VARIABLE: &str = "SYMBIOSIS_READINGS";
/// See [`READINGS_VARIABLE`].
pub const DEFAULT_READINGS: u64 = 1024;

/// The exit status of a process that the runtime ends because all of its threads wait for each
/// other.
pub const DEADLOCK_STATUS: i32 = 86;

impl RawFailure {
    /// The kind behind the number in `process.bin`.
    #[must_use]
    pub const fn from_code(code: u32) -> Option<Self> {
        Some(match code {
            0 => Self::None,
            1 => Self::Assertion,
            2 => Self::Abort,
            3 => Self::Signal,
            4 => Self::Exit,
            5 => Self::Deadlock,
            6 => Self::UseAfterFree,
            7 => Self::DoubleFree,
            8 => Self::HeapCorruption,
            9 => Self::StackOverflow,
            10 => Self::Exception,
            11 => Self::User,
            12 => Self::Reached,
            13 => Self::Panic,
            _ => return None,
        })
    }
}

/// Size in bytes of `process.bin`.
pub const PROCESS_FILE_SIZE: usize = 4096;
/// The longest `ExternalWrite` payload in bytes; what is longer is cut and counted in
/// [`Process::cut_writes`].
pub const EXTERNAL_WRITE_LIMIT: u64 = 1 << 20;

/// `process.bin`, a shared mapping like the control pages. `failure` is written last, so that a
/// process killed in the middle of its last words has none rather than half of one.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Process {
    /// [`PROCESS_MAGIC`].
    pub magic: u64,
    /// [`INSTRUMENTATION_VERSION`].
    pub version: u32,
    /// A [`RawFailure`].
    pub failure: u32,
    /// The serial of the thread that failed; 0 when unknown.
    pub failure_thread: u64,
    /// The signal's number, or the exit status.
    pub code: i64,
    /// `si_addr` of a fatal signal; the object of a failure of the heap.
    pub fault_address: u64,
    /// The program counter at a fatal signal.
    pub fault_pc: u64,
    /// Lengths in `message`: the failure message.
    pub message_length: u32,
    /// Process id.
    pub pid: u32,
    /// How many threads have control pages.
    pub threads: u64,
    /// How many threads ran instrumented code without a stream of their own.
    pub unattached: u64,
    /// `errno` of the first file that could not be made or grown; 0 when all went well.
    pub write_errno: u64,
    /// The failure message in UTF-8 (for `assert`: `file:line: function: expression`).
    pub message: [u8; 2048],
    /// How long the failing thread's path stream was at the failure, in bytes: exit handlers and
    /// unwinding may add to it afterwards.
    pub failure_path_bytes: u64,
    /// As `failure_path_bytes`, for the values stream.
    pub failure_value_bytes: u64,
    /// How many `ExternalWrite` payloads were cut at [`EXTERNAL_WRITE_LIMIT`].
    pub cut_writes: u64,
    /// Where in the file of `write_file` writing stopped, in bytes.
    pub write_offset: u64,
    /// Length in bytes of the name in `write_file`.
    pub write_file_length: u32,
    /// 0.
    pub reserved: u32,
    /// The first file that could not be made or grown, relative to the trace directory.
    pub write_file: [u8; 256],
    /// The exit status plus one, 0 to 255 before that; 0 when the process did not end by itself, or
    /// goes on as another program.
    pub exit_status: u64,
    /// When recording began, in nanoseconds since 1970 (UTC).
    pub started: u64,
    /// The parent's process id at that time.
    pub parent: u32,
    /// 1 when the process began with a `fork`: its streams then begin with what the parent's threads
    /// had logged until then. [`ORIGIN_FILE`] holds the executable's path, the working directory,
    /// and the arguments.
    pub forked: u32,
}
