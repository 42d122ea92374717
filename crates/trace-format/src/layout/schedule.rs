//! Runs under a scheduler: where it decides, what it is asked, what it reports, and the order of turns.

use super::SyncOp;

/// Where the runtime itself lets the scheduler decide, beside the gates of the program. Every
/// passage counts one in [`Control::points`](super::Control::points).
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SyncPoint {
    /// Before a thread's start routine; for the initial thread, when the runtime starts.
    Start = 1,
    /// Before the entry [`RuntimeEvent::ThreadExit`](super::RuntimeEvent::ThreadExit) of a thread other than the initial one.
    Exit = 2,
    /// Before a thread is created.
    Create = 3,
    /// Before a join, at the entry [`RuntimeEvent::JoinBegin`](super::RuntimeEvent::JoinBegin).
    Join = 4,
    /// At the entry [`RuntimeEvent::SyncBegin`](super::RuntimeEvent::SyncBegin), whatever the operation.
    Begin = 5,
    /// In a condition wait: the waiter has released the mutex and now wakes up.
    Wake = 6,
    /// In a condition wait: the waiter takes the mutex again.
    Relock = 7,
    /// In a barrier wait: the thread leaves.
    Leave = 8,
}

/// The name of a sync point as a site; it begins with `~`. `operation` is the call's for
/// [`SyncPoint::Begin`], and ignored for others.
#[must_use]
pub const fn sync_point_name(point: SyncPoint, operation: Option<SyncOp>) -> &'static str {
    match point {
        SyncPoint::Start => "~start",
        SyncPoint::Exit => "~exit",
        SyncPoint::Create => "~create",
        SyncPoint::Join => "~join",
        SyncPoint::Wake => "~wake",
        SyncPoint::Relock => "~relock",
        SyncPoint::Leave => "~leave",
        SyncPoint::Begin => match operation {
            None => "~sync",
            Some(SyncOp::MutexLock) => "~mutex_lock",
            Some(SyncOp::MutexTryLock) => "~mutex_trylock",
            Some(SyncOp::MutexTimedLock) => "~mutex_timedlock",
            Some(SyncOp::MutexUnlock) => "~mutex_unlock",
            Some(SyncOp::RwReadLock) => "~rwlock_rdlock",
            Some(SyncOp::RwTryReadLock) => "~rwlock_tryrdlock",
            Some(SyncOp::RwTimedReadLock) => "~rwlock_timedrdlock",
            Some(SyncOp::RwWriteLock) => "~rwlock_wrlock",
            Some(SyncOp::RwTryWriteLock) => "~rwlock_trywrlock",
            Some(SyncOp::RwTimedWriteLock) => "~rwlock_timedwrlock",
            Some(SyncOp::RwUnlock) => "~rwlock_unlock",
            Some(SyncOp::CondWait) => "~cond_wait",
            Some(SyncOp::CondTimedWait) => "~cond_timedwait",
            Some(SyncOp::CondSignal) => "~cond_signal",
            Some(SyncOp::CondBroadcast) => "~cond_broadcast",
            Some(SyncOp::SemInit) => "~sem_init",
            Some(SyncOp::SemWait) => "~sem_wait",
            Some(SyncOp::SemTryWait) => "~sem_trywait",
            Some(SyncOp::SemTimedWait) => "~sem_timedwait",
            Some(SyncOp::SemPost) => "~sem_post",
            Some(SyncOp::BarrierInit) => "~barrier_init",
            Some(SyncOp::BarrierWait) => "~barrier_wait",
            Some(SyncOp::SpinLock) => "~spin_lock",
            Some(SyncOp::SpinTryLock) => "~spin_trylock",
            Some(SyncOp::SpinUnlock) => "~spin_unlock",
            Some(SyncOp::Once) => "~once",
            Some(SyncOp::FutexWait) => "~futex_wait",
            Some(SyncOp::FutexWake) => "~futex_wake",
            Some(SyncOp::QueuePush) => "~queue_push",
            Some(SyncOp::QueuePop) => "~queue_pop",
            Some(SyncOp::Panic) => "~panic",
            Some(SyncOp::SocketWrite) => "~socket_write",
            Some(SyncOp::SocketRead) => "~socket_read",
        },
    }
}

/// The environment variable with the schedule to follow: the text itself when it begins with
/// [`SCHEDULE_HEAD`], else the name of a file with the text. See docs/schedule-format.md.
pub const SCHEDULE_VARIABLE: &str = "SYMBIOSIS_SCHEDULE";
/// What a schedule's text begins with.
pub const SCHEDULE_HEAD: &str = "symbiosis-schedule 1";
/// The environment variable that asks for perturbed schedules: `random,SEED,RATE,MICROSECONDS`
/// (RATE in gates per million), or `pct,SEED,DEPTH,STEPS`.
pub const NOISE_VARIABLE: &str = "SYMBIOSIS_NOISE";
/// The environment variable with the milliseconds after which random disturbances end (default: never).
pub const NOISE_TIME_VARIABLE: &str = "SYMBIOSIS_NOISE_TIME";
/// The environment variable with the milliseconds after which a scheduler that makes no progress
/// gives up following its schedule (default [`DEFAULT_PATIENCE_MS`]).
pub const PATIENCE_VARIABLE: &str = "SYMBIOSIS_PATIENCE";
/// The environment variable with the number of gates after which it gives up a line of the schedule
/// (default: never).
pub const LINE_GATES_VARIABLE: &str = "SYMBIOSIS_LINE_GATES";
/// The environment variable with the number of gates that may be passed behind the schedule's last line; then the process is
/// ended, with status 0 (default: any number). A program that goes on for ever can be looked at in that way.
pub const TAIL_GATES_VARIABLE: &str = "SYMBIOSIS_TAIL_GATES";
/// See [`PATIENCE_VARIABLE`].
pub const DEFAULT_PATIENCE_MS: u64 = 5000;
/// The environment variable with the name of the file for the scheduler's [`Report`].
pub const REPORT_VARIABLE: &str = "SYMBIOSIS_REPORT";

/// The environment variable with the name of a file of avoidance rules, see docs/fix.md.
pub const AVOID_VARIABLE: &str = "SYMBIOSIS_AVOID";
/// What such a file begins with.
pub const AVOID_HEAD: &str = "symbiosis-avoid 1";

/// A function of which a schedule can give back what it gave in the recorded run
/// (`docs/schedule-format.md`, `input`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputFunction {
    /// Its name as a symbol.
    pub name: &'static str,
    /// What it gives beside its result.
    pub writes: InputWrites,
}

/// What such a function writes through a pointer. It is given back in words behind the result, the
/// last one filled up with zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputWrites {
    /// Nothing that is not its result.
    Nothing,
    /// A time of two words; nothing when the pointer is null.
    Time,
    /// As many bytes as the result says; nothing when that is negative.
    ResultBytes,
    /// As many bytes as the second argument says.
    ArgumentBytes,
}

/// These functions. Their places here are their numbers in the runtime.
pub const INPUT_FUNCTIONS: [InputFunction; 22] = {
    use InputWrites::{ArgumentBytes, Nothing, ResultBytes, Time};
    const fn function(name: &'static str, writes: InputWrites) -> InputFunction {
        InputFunction { name, writes }
    }
    [
        function("getpid", Nothing),
        function("getppid", Nothing),
        function("gettid", Nothing),
        function("sched_getcpu", Nothing),
        function("time", Nothing),
        function("clock", Nothing),
        function("rand", Nothing),
        function("random", Nothing),
        function("lrand48", Nothing),
        function("mrand48", Nothing),
        function("drand48", Nothing),
        function("clock_gettime", Time),
        function("gettimeofday", Time),
        function("timespec_get", Time),
        function("getrandom", ResultBytes),
        function("getentropy", ArgumentBytes),
        function("_ZNSt6chrono3_V212system_clock3nowEv", Nothing),
        function("_ZNSt6chrono3_V212steady_clock3nowEv", Nothing),
        function("_ZNSt13random_device9_M_getvalEv", Nothing),
        function("_ZNSt3__16chrono12system_clock3nowEv", Nothing),
        function("_ZNSt3__16chrono12steady_clock3nowEv", Nothing),
        function("_ZNSt3__113random_deviceclEv", Nothing),
    ]
};

/// The number of a function in [`INPUT_FUNCTIONS`]; none when it is not there.
#[must_use]
pub fn input_function(name: &[u8]) -> Option<usize> {
    INPUT_FUNCTIONS.iter().position(|function| function.name.as_bytes() == name)
}

/// First word of a report: the bytes `SYMBRPT1`.
pub const REPORT_MAGIC: u64 = u64::from_le_bytes(*b"SYMBRPT1");

/// All threads waited for each other; see [`Report::ended`].
pub const ENDED_DEADLOCK: u32 = 1;
/// As many gates were passed behind the schedule as [`TAIL_GATES_VARIABLE`] says; see [`Report::ended`].
pub const ENDED_FAR: u32 = 2;

/// What became of a schedule: the file of [`REPORT_VARIABLE`], a mapping that is written while the
/// program runs, so that it survives any end of the process.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Report {
    /// [`REPORT_MAGIC`].
    pub magic: u64,
    /// Lines of the schedule.
    pub lines: u32,
    /// Lines followed to their end, in order, without leaving the schedule.
    pub followed: u32,
    /// Not 0: the schedule was left at this line (its number in the text, from 1).
    pub left_line: u32,
    /// A [`LeftReason`].
    pub left_reason: u32,
    /// The hash of the site where the line's thread was then; 0 when it was at none.
    pub left_site: u64,
    /// Gates and sync points that were passed, over all threads.
    pub steps: u64,
    /// How often another thread got the turn.
    pub switches: u64,
    /// Why the scheduler ended the process: 0 when it did not, else one of [`ENDED_DEADLOCK`] and [`ENDED_FAR`].
    pub ended: u32,
    /// Length in bytes of `message`.
    pub message_length: u32,
    /// For people, in UTF-8: why the schedule was left, which thread waits for what.
    pub message: [u8; 2048],
    /// How often avoidance rules held a thread back.
    pub held_back: u64,
    /// How often a thread that was held back was let go because it took too long.
    pub gave_up: u64,
}

/// Why a schedule was left.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LeftReason {
    /// It was not.
    None = 0,
    /// The thread ended before it reached the place.
    Ended = 1,
    /// The thread waits for something that another thread has to do first.
    Blocked = 2,
    /// The thread did not get there in time.
    Late = 3,
    /// No such thread was created.
    Absent = 4,
    /// The process ended in between.
    Exited = 5,
}

impl LeftReason {
    /// The reason behind the number in a report.
    #[must_use]
    pub const fn from_code(code: u32) -> Option<Self> {
        Some(match code {
            0 => Self::None,
            1 => Self::Ended,
            2 => Self::Blocked,
            3 => Self::Late,
            4 => Self::Absent,
            5 => Self::Exited,
            _ => return None,
        })
    }
}

/// Name of the file in a trace directory with the order in which a scheduled run's threads had
/// their turns: [`OrderRecord`]s. Absent when the threads ran freely.
pub const ORDER_FILE: &str = "order.bin";

/// The end of a turn: the thread has passed so many gates and sync points by now, and another
/// thread runs next. The last turn of a run has no record, unless the thread ended: it goes on to
/// the ends of all streams.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderRecord {
    /// The thread's serial.
    pub thread: u64,
    /// Its [`Control::gates`](super::Control::gates).
    pub gates: u64,
    /// Its [`Control::points`](super::Control::points).
    pub points: u64,
}
