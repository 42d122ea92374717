//! The raw layout that the runtime writes while the program runs, shared by the runtime (which
//! includes this file without `std`), the instrumenter and the reader.
//!
//! A thread has two streams, written by that thread alone into its own mapped files, and a control
//! page that says how far each has come, so that SIGKILL loses at most the entry being written.
//!
//! * **path**: little-endian `u32` entries, see [`Tag`]. Zero is never written.
//! * **values**: little-endian `u64` words. Which words are there, and in which order, follows
//!   from the path and from the logging plan of the IR (`ir::plan`), but for the payloads of
//!   runtime entries, which are given with [`RuntimeEvent`].

/// Changes whenever a binary built by an older instrumenter could be misread: the layout of the
/// streams, the control page, the module descriptor, or the logging plan.
pub const INSTRUMENTATION_VERSION: u32 = 1;

/// The environment variable that names the trace directory to write. Unset: the program runs
/// without recording, and its hooks write into a small ring that nobody reads.
pub const TRACE_DIR_VARIABLE: &str = "SYMBIOSIS_TRACE_DIR";

/// Size in bytes of a thread's control page.
pub const CONTROL_PAGE_SIZE: usize = 4096;
/// First word of a control page: the bytes `SYMBCTL1`.
pub const CONTROL_MAGIC: u64 = u64::from_le_bytes(*b"SYMBCTL1");
/// First word of `process.bin`: the bytes `SYMBPRC1`.
pub const PROCESS_MAGIC: u64 = u64::from_le_bytes(*b"SYMBPRC1");

/// The entries of the path stream: bits 31..30 say which.
pub mod tag {
    /// Which kind of entry.
    pub const SHIFT: u32 = 30;
    /// A recorded basic block was entered; bits 29..0 are its index in the function.
    pub const BLOCK: u32 = 0;
    /// A function with an entry record was entered; bits 29..0 are the process-wide function
    /// number: the module's base plus the function's index among the module's functions. The
    /// arguments follow in the values stream, one word each (two for 65 to 128 bits).
    pub const ENTER: u32 = 1;
    /// A call whose target is not known to be in the same module returned; bits 29..0 are 1. The
    /// result follows in the values stream where the plan says so.
    pub const RETURN: u32 = 2;
    /// The runtime saw something; bits 7..0 are the [`super::RuntimeEvent`].
    pub const RUNTIME: u32 = 3;
    /// Mask of the payload bits.
    pub const PAYLOAD: u32 = (1 << SHIFT) - 1;
    /// A block's index is written plus one, so that no entry is zero.
    pub const BLOCK_BIAS: u32 = 1;
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
    /// The thread runs its last instrumented instruction. `[]`.
    ThreadExit = 4,
    /// A heap object was obtained. `[address, size, tsc after]`.
    Allocate = 5,
    /// A heap object is about to be given back. `[address, tsc before]`.
    Free = 6,
    /// A synchronisation call is about to start, and may block. `[SyncOp, address, address of the
    /// second object or 0, argument]`.
    SyncBegin = 7,
    /// The call ended. `[SyncOp, address, second address or 0, result]`.
    SyncEnd = 8,
    /// Uninstrumented code wrote memory. `[address, length in bytes, the bytes padded with zeros
    /// to whole words]`.
    ExternalWrite = 9,
    /// A cancellation, longjmp or other non-local exit that the runtime saw. `[]`.
    NonLocal = 10,
}

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
            _ => return None,
        })
    }
}

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
    /// `pthread_once`: the routine, if it runs, runs between begin and end.
    Once = 26,
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
            _ => return None,
        })
    }
}

/// A thread's control page. The instrumented code reads and writes the first four words; the rest
/// is the runtime's. Pointers are addresses in the traced process.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Control {
    /// Where the next path entry goes.
    pub path_next: u64,
    /// When `path_next` has reached this, the hook calls the runtime before it writes on. At least
    /// one entry always fits behind it.
    pub path_limit: u64,
    /// Where the next value word goes.
    pub value_next: u64,
    /// As `path_limit`.
    pub value_limit: u64,
    /// Where the path stream begins; the stream's length is `path_next - path_base`.
    pub path_base: u64,
    /// Where the values stream begins.
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
}

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
    /// `si_addr` of a fatal signal.
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
}

/// What the instrumenter emits once per module, as constant data named
/// `__symbiosis_module`, and passes to `__symbiosis_register` from a constructor.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ModuleDescriptor {
    /// [`INSTRUMENTATION_VERSION`].
    pub version: u32,
    /// Number of entries of `functions`.
    pub function_count: u32,
    /// Number of entries of `globals`.
    pub global_count: u32,
    /// Bit 0 ([`DESCRIPTOR_HAS_DEFINED`]): `defined` is there.
    pub reserved: u32,
    /// Hash of the bitcode (FNV-1a 128, little end first).
    pub hash: [u64; 2],
    /// The bitcode, zstd-compressed.
    pub bitcode: *const u8,
    /// Its length in bytes.
    pub bitcode_length: u64,
    /// The addresses of the module's functions in IR order, declarations included; 0 where the
    /// address must not be taken (intrinsics, unresolved weak symbols).
    pub functions: *const u64,
    /// The addresses of the module's global variables in IR order; 0 where it cannot be taken
    /// (thread-local ones, `llvm.*`).
    pub globals: *const u64,
    /// Where the runtime writes the module's base: the process-wide number of its first function.
    pub base: *mut u32,
    /// Only read when bit 0 of `reserved` is set: one byte per function, 1 where this module
    /// defines it and 0 for a declaration. Without it the runtime takes every function whose
    /// address lies in the descriptor's own executable or library for defined.
    pub defined: *const u8,
}

/// In [`ModuleDescriptor::reserved`]: the field `defined` is there.
pub const DESCRIPTOR_HAS_DEFINED: u32 = 1;

/// A module's record in `modules.bin`: this header, then `function_count` and `global_count`
/// words of addresses. Appended once per module at registration.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ModuleRecordHeader {
    /// The bytes `SYMBMOD1`.
    pub magic: u64,
    /// As in the descriptor.
    pub hash: [u64; 2],
    /// As in the descriptor.
    pub function_count: u32,
    /// As in the descriptor.
    pub global_count: u32,
    /// The process-wide number of the module's first function.
    pub base: u32,
    /// [`INSTRUMENTATION_VERSION`] of the module.
    pub version: u32,
}

/// First word of a record in `modules.bin`.
pub const MODULE_MAGIC: u64 = u64::from_le_bytes(*b"SYMBMOD1");
