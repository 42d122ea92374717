//! libc, as far as the runtime needs it: x86-64 Linux with glibc.
#![allow(missing_docs)]

mod own_files;

use crate::real;
use crate::text::Text;
use crate::{files, syscall};
use core::ffi::{c_char, c_int, c_long, c_uint, c_void};
use core::sync::atomic::AtomicU32;
pub use own_files::{access, change_owner, link, mkdir, open_at, pwrite, rename, unlink};

pub type Pthread = u64;

pub const O_WRONLY: c_int = 0o1;
pub const O_RDWR: c_int = 0o2;
pub const O_CREAT: c_int = 0o100;
pub const O_EXCL: c_int = 0o200;
pub const O_APPEND: c_int = 0o2000;
pub const O_CLOEXEC: c_int = 0o2_000_000;

pub const PROT_NONE: c_int = 0;
pub const PROT_READ_WRITE: c_int = 3;
pub const PROT_READ_EXEC: c_int = 5;
pub const PROT_ALL: c_int = 7;
pub const MAP_SHARED: c_int = 1;
pub const MAP_PRIVATE: c_int = 2;
pub const MAP_FIXED: c_int = 0x10;
pub const MAP_ANONYMOUS: c_int = 0x20;
pub const MAP_NORESERVE: c_int = 0x4000;
pub const MAP_FAILED: usize = usize::MAX;
pub const MREMAP_DONTUNMAP: c_int = 4;

pub const EINTR: c_int = 4;
pub const ENOMEM: c_int = 12;
pub const EEXIST: c_int = 17;
pub const EBUSY: c_int = 16;
pub const EINVAL: c_int = 22;
pub const EFBIG: c_int = 27;
pub const ENOSPC: c_int = 28;
pub const ENAMETOOLONG: c_int = 36;
pub const ENOSYS: c_int = 38;
pub const EINPROGRESS: c_int = 115;
pub const EOPNOTSUPP: c_int = 95;
pub const ETIMEDOUT: c_int = 110;
pub const ESRCH: c_int = 3;

pub const SIGILL: c_int = 4;
pub const SIGTRAP: c_int = 5;
pub const SIGABRT: c_int = 6;
/// Cannot be handled.
pub const SIGKILL: c_int = 9;
pub const SIGBUS: c_int = 7;
pub const SIGFPE: c_int = 8;
pub const SIGSEGV: c_int = 11;
pub const SA_SIGINFO: c_int = 4;
pub const SA_ONSTACK: c_int = 0x0800_0000;

pub const EAGAIN: c_int = 11;
pub const EDEADLK: c_int = 35;

pub const CLOCK_REALTIME: c_int = 0;
pub const CLOCK_MONOTONIC: c_int = 1;
pub const TIMER_ABSTIME: c_int = 1;
/// What `pthread_setcancelstate` says of a thread that can be cancelled.
pub const CANCEL_ENABLE: c_int = 0;
pub const CANCEL_DISABLE: c_int = 1;
pub const BARRIER_SERIAL_THREAD: c_int = -1;

pub const RLIMIT_FSIZE: c_int = 1;
pub const O_DIRECTORY: c_int = 0o200_000;
pub const O_PATH: c_int = 0o10_000_000;
const SYS_GETDENTS64: c_long = 217;
const SYS_GETTID: c_long = 186;
const SYS_RT_SIGPROCMASK: c_long = 14;
const EFAULT: c_int = 14;
const SIG_SETMASK: c_long = 2;
const SYS_TGKILL: c_long = 234;
const SYS_NANOSLEEP: c_long = 35;
const SYS_GETPID: c_long = 39;
const SYS_GETPPID: c_long = 110;
const SYS_GETRANDOM: c_long = 318;
const SYS_READ: c_long = 0;
pub(crate) const SYS_CLOSE: c_long = 3;
const SYS_PWRITE: c_long = 18;
const SYS_MMAP: c_long = 9;
const SYS_MUNMAP: c_long = 11;
const SYS_MREMAP: c_long = 25;
const SYS_OPENAT: c_long = 257;
const SYS_FSTAT: c_long = 5;
const SYS_FCNTL: c_long = 72;
const SYS_GETEUID: c_long = 107;
const F_DUPFD_CLOEXEC: c_long = 1030;
const SYS_SCHED_YIELD: c_long = 24;
const SYS_EXIT_GROUP: c_long = 231;
/// In the place of a directory's descriptor.
pub const CURRENT_DIRECTORY: c_int = -100;
/// Of `FUTEX_WAIT_BITSET`: whoever wakes the word wakes the sleeper.
const ALL_BITS: c_long = 0xffff_ffff;
const FUTEX_WAIT_PRIVATE: c_long = 128;
const FUTEX_WAKE_PRIVATE: c_long = 129;
const NANOSECONDS: u64 = 1_000_000_000;
pub const RTLD_NEXT: *mut c_void = usize::MAX as *mut c_void;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct SignalAction {
    pub handler: usize,
    pub mask: [u64; 16],
    pub flags: c_int,
    pub restorer: usize,
}

#[repr(C)]
pub struct SignalStack {
    pub base: *mut c_void,
    pub flags: c_int,
    pub size: usize,
}

/// `struct timespec`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeSpec {
    pub seconds: i64,
    pub nanoseconds: i64,
}

impl TimeSpec {
    /// As nanoseconds; none when it is not a valid time, 0 for one before the epoch.
    pub fn nanoseconds(&self) -> Option<u64> {
        let fraction = u64::try_from(self.nanoseconds).ok().filter(|n| *n < NANOSECONDS)?;
        let seconds = u64::try_from(self.seconds).unwrap_or(0);
        Some(seconds.saturating_mul(NANOSECONDS).saturating_add(fraction))
    }
}

#[repr(C)]
pub struct ResourceLimit {
    pub current: u64,
    pub maximum: u64,
}

/// The beginning of `dl_phdr_info`.
#[repr(C)]
pub struct ObjectInfo {
    pub base: u64,
    pub name: *const c_char,
    pub headers: *const ProgramHeader,
    pub count: u16,
}

#[repr(C)]
pub struct ProgramHeader {
    pub kind: u32,
    pub flags: u32,
    pub offset: u64,
    pub address: u64,
    pub physical: u64,
    pub file_size: u64,
    pub memory_size: u64,
    pub align: u64,
}

pub type ObjectVisitor = unsafe extern "C" fn(*const ObjectInfo, usize, *mut c_void) -> c_int;

unsafe extern "C" {
    /// libc's own, not the interposed one.
    #[link_name = "__close"]
    pub fn close(fd: c_int) -> c_int;
    /// libc's own, not the interposed one.
    #[link_name = "__read"]
    pub fn read(fd: c_int, data: *mut c_void, n: usize) -> isize;
    /// libc's own, not the interposed one.
    #[link_name = "__write"]
    pub fn write(fd: c_int, data: *const c_void, n: usize) -> isize;
    pub fn getsockname(fd: c_int, address: *mut c_void, size: *mut c_uint) -> c_int;
    pub fn getpeername(fd: c_int, address: *mut c_void, size: *mut c_uint) -> c_int;
    pub fn getsockopt(
        fd: c_int,
        level: c_int,
        option: c_int,
        value: *mut c_void,
        size: *mut c_uint,
    ) -> c_int;
    pub fn lseek(fd: c_int, offset: i64, whence: c_int) -> i64;
    pub fn fallocate(fd: c_int, mode: c_int, offset: i64, n: i64) -> c_int;
    pub fn readlink(path: *const c_char, buffer: *mut c_char, n: usize) -> isize;
    pub fn getcwd(buffer: *mut c_char, n: usize) -> *mut c_char;
    pub fn mprotect(at: *mut c_void, n: usize, protection: c_int) -> c_int;
    pub fn getrlimit(which: c_int, limit: *mut ResourceLimit) -> c_int;
    /// libc's own, not the interposed one.
    #[link_name = "__sigaction"]
    pub fn sigaction(signal: c_int, new: *const SignalAction, old: *mut SignalAction) -> c_int;
    pub fn sigaltstack(new: *const SignalStack, old: *mut SignalStack) -> c_int;
    pub fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    pub fn dlvsym(handle: *mut c_void, name: *const c_char, version: *const c_char) -> *mut c_void;
    pub fn dl_iterate_phdr(visit: ObjectVisitor, data: *mut c_void) -> c_int;
    pub fn __register_atfork(
        prepare: Option<unsafe extern "C" fn()>,
        parent: Option<unsafe extern "C" fn()>,
        child: Option<unsafe extern "C" fn()>,
        dso: *mut c_void,
    ) -> c_int;
    pub fn pthread_key_create(
        key: *mut c_uint,
        destructor: Option<unsafe extern "C" fn(*mut c_void)>,
    ) -> c_int;
    pub fn pthread_setspecific(key: c_uint, value: *const c_void) -> c_int;
    pub fn on_exit(
        function: unsafe extern "C" fn(c_int, *mut c_void),
        argument: *mut c_void,
    ) -> c_int;
    pub fn pthread_self() -> Pthread;
    pub fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
    pub fn pthread_testcancel();
    pub fn strlen(text: *const c_char) -> usize;
    pub fn __errno_location() -> *mut c_int;
    pub static mut environ: *mut *mut c_char;

    pub fn __libc_malloc(size: usize) -> *mut c_void;
    pub fn __libc_calloc(count: usize, size: usize) -> *mut c_void;
    pub fn __libc_realloc(old: *mut c_void, size: usize) -> *mut c_void;
    pub fn __libc_memalign(align: usize, size: usize) -> *mut c_void;
    pub fn __libc_free(object: *mut c_void);
}

/// Can eight bytes be read at this address? Asked of the kernel, which reads a signal mask there and
/// then refuses to use it.
pub fn is_readable(address: u64) -> bool {
    const NO_SUCH_WAY: c_long = 99;
    keeping_errno(|| {
        // SAFETY: with a way of changing it that does not exist, the mask stays as it is.
        unsafe {
            let result = syscall::call(SYS_RT_SIGPROCMASK, &[NO_SUCH_WAY, address as c_long, 0, 8]);
            result == 0 || errno() != EFAULT
        }
    })
}

/// The calling thread's `errno`.
pub fn errno() -> c_int {
    // SAFETY: glibc's `errno` always exists for the calling thread.
    unsafe { *__errno_location() }
}

/// Sets the calling thread's `errno`.
pub fn set_errno(value: c_int) {
    // SAFETY: as in `errno`.
    unsafe { *__errno_location() = value }
}

/// Runs `work` and leaves `errno` as it was.
pub fn keeping_errno<T>(work: impl FnOnce() -> T) -> T {
    let saved = errno();
    let result = work();
    set_errno(saved);
    result
}

/// The process id from the kernel, also in a child of `vfork`.
pub fn getpid() -> u32 {
    // SAFETY: no pointers.
    unsafe { syscall::call(SYS_GETPID, &[]) as u32 }
}

/// The effective user.
pub fn geteuid() -> c_uint {
    // SAFETY: no pointers.
    unsafe { syscall::call(SYS_GETEUID, &[]) as c_uint }
}

/// Another descriptor of the same file, closed by `exec`, from this number on; negative on an error.
pub fn duplicate_from(fd: c_int, first: c_int) -> c_int {
    // SAFETY: no pointers.
    unsafe { syscall::call(SYS_FCNTL, &[fd.into(), F_DUPFD_CLOEXEC, first.into()]) as c_int }
}

/// The device and the number of what is behind a descriptor.
pub fn identity(fd: c_int) -> Option<(u64, u64)> {
    // As the kernel's `struct stat` begins, and at least as long.
    let mut found = [0u64; 32];
    // SAFETY: the kernel writes 144 bytes.
    let result = unsafe { syscall::call(SYS_FSTAT, &[fd.into(), found.as_mut_ptr() as c_long]) };
    (result == 0).then_some((found[0], found[1]))
}

/// Reads entries of an open directory; returns how many bytes they take, negative on an error.
pub fn directory_entries(fd: c_int, buffer: &mut [u64]) -> c_long {
    // SAFETY: the buffer has the length given.
    unsafe {
        let (at, size) = (buffer.as_mut_ptr() as c_long, size_of_val(buffer) as c_long);
        syscall::call(SYS_GETDENTS64, &[c_long::from(fd), at, size])
    }
}

/// The parent's process id from the kernel.
pub fn getppid() -> i32 {
    // SAFETY: no pointers.
    unsafe { syscall::call(SYS_GETPPID, &[]) as i32 }
}

/// Random bytes from the kernel; may change `errno`.
pub fn random(value: &mut c_uint) {
    // SAFETY: the pointer is to a live object.
    unsafe {
        let at = core::ptr::from_mut(value) as c_long;
        syscall::call(SYS_GETRANDOM, &[at, size_of::<c_uint>() as c_long])
    };
}

/// The calling thread's kernel id.
pub fn gettid() -> i32 {
    // SAFETY: no pointers.
    unsafe { syscall::call(SYS_GETTID, &[]) as i32 }
}

/// A clock's time in nanoseconds, without the virtual time of a scheduler; 0 when there is no such
/// clock.
pub fn clock(which: c_int) -> u64 {
    let mut time = TimeSpec { seconds: 0, nanoseconds: 0 };
    let Some(function) = real::clock_gettime() else { return 0 };
    // SAFETY: the pointer is to a live object.
    if unsafe { function(which, (&raw mut time).cast()) } != 0 {
        return 0;
    }
    time.nanoseconds().unwrap_or(0)
}

/// Lets the kernel run somebody else; not the interposed function.
pub fn yield_now() {
    // SAFETY: no pointers.
    unsafe { syscall::call(SYS_SCHED_YIELD, &[]) };
}

/// Sleeps until the word is changed and woken, for at most so many nanoseconds; or shorter. Not a
/// cancellation point. May change `errno`.
pub fn futex_wait(word: &AtomicU32, seen: u32, nanoseconds: Option<u64>) {
    let time = nanoseconds.map(|time| TimeSpec {
        seconds: (time / NANOSECONDS) as i64,
        nanoseconds: (time % NANOSECONDS) as i64,
    });
    let time = time.as_ref().map_or(core::ptr::null(), core::ptr::from_ref);
    // SAFETY: the time is a live object or null; the kernel answers EFAULT to a bad word.
    unsafe {
        let word = word.as_ptr() as c_long;
        syscall::call(syscall::FUTEX, &[word, FUTEX_WAIT_PRIVATE, seen.into(), time as c_long])
    };
}

/// Sleeps while the word is `seen`, by this operation of `FUTEX_WAIT_BITSET`: 0, or `ETIMEDOUT` when the time, null
/// for none, has come. May change `errno`.
///
/// # Safety
///
/// The time is null or readable.
pub unsafe fn futex_wait_until(
    word: &AtomicU32,
    operation: c_int,
    seen: u32,
    time: *const TimeSpec,
) -> c_int {
    let arguments =
        [word.as_ptr() as c_long, operation.into(), seen.into(), time as c_long, 0, ALL_BITS];
    // SAFETY: the kernel answers EFAULT to a bad word.
    match unsafe { syscall::call(syscall::FUTEX, &arguments) } {
        -1 if errno() == ETIMEDOUT => ETIMEDOUT,
        _ => 0,
    }
}

/// Wakes up to so many threads that sleep on the word. May change `errno`.
pub fn futex_wake(word: &AtomicU32, threads: u32) {
    futex_wake_at(word, threads);
}

/// The same for a word that may be gone already.
pub fn futex_wake_at(word: *const AtomicU32, threads: u32) {
    // SAFETY: as in `futex_wait`.
    unsafe {
        let word = word as c_long;
        syscall::call(syscall::FUTEX, &[word, FUTEX_WAKE_PRIVATE, threads.into()])
    };
}

/// Reads the beginning of a file, by system calls that are no cancellation points; returns how
/// many bytes, 0 when it cannot be read. May change `errno`.
pub fn read_small_file<const N: usize>(name: &Text<N>, bytes: &mut [u8]) -> usize {
    usize::try_from(read_beginning(name, bytes)).unwrap_or(0)
}

/// Can the file be read, and is there nothing in it? May change `errno`.
pub fn file_is_empty<const N: usize>(name: &Text<N>) -> bool {
    read_beginning(name, &mut [0]) == 0
}

/// How many bytes; negative when it cannot be read.
fn read_beginning<const N: usize>(name: &Text<N>, bytes: &mut [u8]) -> c_long {
    // SAFETY: the name ends with a zero, and the buffer has the length given.
    unsafe {
        let flags = c_long::from(O_CLOEXEC);
        let fd = syscall::call(
            SYS_OPENAT,
            &[c_long::from(CURRENT_DIRECTORY), name.as_c() as c_long, flags],
        );
        if fd < 0 {
            return -1;
        }
        let at = bytes.as_mut_ptr() as c_long;
        let length = syscall::call(SYS_READ, &[fd, at, bytes.len() as c_long]);
        syscall::call(SYS_CLOSE, &[fd]);
        length
    }
}

/// Writes to a file at an offset, by system calls that are no cancellation points: a thread comes here
/// wherever it has something to log. May change `errno`.
///
/// # Errors
///
/// The `errno`.
///
/// # Safety
///
/// The bytes must be readable.
pub unsafe fn write_into<const N: usize>(
    name: &Text<N>,
    data: *const u8,
    length: usize,
    offset: u64,
) -> Result<(), c_int> {
    // SAFETY: the name ends with a zero, and the caller vouches for the bytes.
    unsafe {
        let flags = c_long::from(O_WRONLY | O_CLOEXEC);
        let fd = loop {
            let (directory, name) = files::place(name);
            let fd = syscall::call(SYS_OPENAT, &[directory.into(), name as c_long, flags]);
            if fd >= 0 {
                break fd;
            }
            if errno() != EINTR {
                return Err(errno());
            }
        };
        let mut done = 0;
        let mut result = Ok(());
        while done < length {
            let (at, left) = (data.add(done) as c_long, (length - done) as c_long);
            let to = offset as c_long + done as c_long;
            match syscall::call(SYS_PWRITE, &[fd, at, left, to]) {
                written @ 1.. => done += written as usize,
                0 => result = Err(ENOSPC),
                _ if errno() == EINTR => {}
                _ => result = Err(errno()),
            }
            if result.is_err() {
                break;
            }
        }
        syscall::call(SYS_CLOSE, &[fd]);
        result
    }
}

/// Sets the calling thread's signal mask; gives what it was.
pub fn set_signal_mask(mask: u64) -> u64 {
    let mut old = 0u64;
    // SAFETY: both masks have the kernel's size.
    unsafe {
        let (new, old) = (&raw const mask as c_long, &raw mut old as c_long);
        syscall::call(SYS_RT_SIGPROCMASK, &[SIG_SETMASK, new, old, 8]);
    }
    old
}

/// Changes the calling thread's signal mask as `how` says; gives 0 or the error.
///
/// # Safety
///
/// The sets are null or live, with the kernel's size.
pub unsafe fn change_signal_mask(how: c_int, new: *const u64, old: *mut u64) -> c_int {
    let before = errno();
    // SAFETY: as the caller promises.
    let result = unsafe {
        syscall::call(SYS_RT_SIGPROCMASK, &[how.into(), new as c_long, old as c_long, 8])
    };
    if result == 0 {
        return 0;
    }
    let error = errno();
    set_errno(before);
    error
}

/// Sends a signal (0: only asks whether there is such a thread) to a thread of this process.
pub fn tgkill(tid: i32, signal: c_int) -> c_int {
    // SAFETY: no pointers.
    unsafe {
        let arguments = [c_long::from(getpid()), tid.into(), signal.into()];
        syscall::call(SYS_TGKILL, &arguments) as c_int
    }
}

/// Sleeps, or less when a signal comes in; no cancellation point.
pub fn sleep_micros(micros: u64) {
    let time = [(micros / 1_000_000) as i64, (micros % 1_000_000 * 1000) as i64];
    // SAFETY: the pointer is to a live object of the form of a `timespec`.
    unsafe { syscall::call(SYS_NANOSLEEP, &[time.as_ptr() as c_long]) };
}

/// Ends the process without any of its exit handlers.
pub fn exit_now(status: c_int) -> ! {
    // SAFETY: no pointers.
    unsafe {
        syscall::call(SYS_EXIT_GROUP, &[status.into()]);
        trap()
    }
}

/// The time-stamp counter, read when all that stands before is done and seen by every thread: the
/// locked instruction empties the store buffer, and the fence waits for it. What stands behind may
/// begin while the counter is read, and not before (docs/clock.md).
pub fn tsc() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: every x86-64 processor has the instructions, and the word on the stack keeps its value.
    unsafe {
        core::arch::asm!(
            "lock or dword ptr [rsp], 0",
            "lfence",
            "rdtsc",
            out("eax") low,
            out("edx") high,
        );
    }
    u64::from(high) << 32 | u64::from(low)
}

/// As [`tsc`], right behind an instruction that emptied the store buffer.
#[inline]
pub fn tsc_behind_locked() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: every x86-64 processor has the instructions.
    unsafe {
        core::arch::asm!("lfence", "rdtsc", out("eax") low, out("edx") high, options(nostack));
    }
    u64::from(high) << 32 | u64::from(low)
}

/// The time-stamp counter, read without waiting for anything: what stands before may be done a little later
/// (docs/clock.md).
#[inline]
pub fn loose_tsc() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: every x86-64 processor has the instruction.
    unsafe { core::arch::asm!("rdtsc", out("eax") low, out("edx") high, options(nostack)) };
    u64::from(high) << 32 | u64::from(low)
}

/// Fetches a cache line that is going to be written: else a look at it first would have it fetched
/// twice from a processor that wrote it, to be read and to be written.
#[inline]
pub fn prefetch_to_write(place: *const c_void) {
    // SAFETY: nothing is read, and no address is wrong; processors without the instruction ignore it.
    unsafe {
        core::arch::asm!("prefetchw [{}]", in(reg) place, options(nostack, readonly, preserves_flags));
    }
}

/// Ends the process on the spot; for what cannot happen.
pub unsafe fn trap() -> ! {
    // SAFETY: an undefined instruction raises SIGILL.
    unsafe { core::arch::asm!("ud2", options(noreturn)) }
}

/// `mmap`, past the interposed one.
///
/// # Safety
///
/// That of the function.
pub unsafe fn mmap(
    at: *mut c_void,
    n: usize,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: i64,
) -> *mut c_void {
    let arguments =
        [at as c_long, n as c_long, protection.into(), flags.into(), fd.into(), offset as c_long];
    // SAFETY: the caller's.
    unsafe { syscall::call(SYS_MMAP, &arguments) as *mut c_void }
}

/// `munmap`, past the interposed one.
///
/// # Safety
///
/// That of the function.
pub unsafe fn munmap(at: *mut c_void, n: usize) -> c_int {
    // SAFETY: the caller's.
    unsafe { syscall::call(SYS_MUNMAP, &[at as c_long, n as c_long]) as c_int }
}

/// `mremap`, past the interposed one.
///
/// # Safety
///
/// That of the function.
pub unsafe fn mremap(
    old: *mut c_void,
    had: usize,
    has: usize,
    flags: c_int,
    to: *mut c_void,
) -> *mut c_void {
    let arguments = [old as c_long, had as c_long, has as c_long, flags.into(), to as c_long];
    // SAFETY: the caller's.
    unsafe { syscall::call(SYS_MREMAP, &arguments) as *mut c_void }
}

/// Fresh zeroed private memory; null when there is none.
pub fn anonymous(size: usize) -> *mut c_void {
    // SAFETY: a mapping at an address of the kernel's choice disturbs nothing.
    let at = unsafe {
        mmap(
            core::ptr::null_mut(),
            size,
            PROT_READ_WRITE,
            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
            -1,
            0,
        )
    };
    if at as usize == MAP_FAILED { core::ptr::null_mut() } else { at }
}
