//! What a thread waits for in the kernel, where the scheduler does not see it: can only this process's
//! threads give it? When all of them wait, too, nobody will.

use crate::sockets;
use crate::sys;
use crate::syscall;
use crate::text::Text;
use core::ffi::{c_int, c_long};

const READ: u64 = 0;
const WRITE: u64 = 1;
const POLL: u64 = 7;
const READV: u64 = 19;
const WRITEV: u64 = 20;
const RECVFROM: u64 = 45;
const RECVMSG: u64 = 47;
const SIGTIMEDWAIT: u64 = 128;
const EPOLL_WAIT: u64 = 232;
const PPOLL: u64 = 271;
const EPOLL_PWAIT: u64 = 281;
const FUTEX: u64 = syscall::FUTEX as u64;
const FUTEX_COMMAND: u64 = 0x7f;
const FUTEX_PRIVATE: u64 = 128;
const FUTEX_WAIT: u64 = 0;
const FUTEX_WAIT_BITSET: u64 = 9;
const SYS_GETITIMER: c_long = 36;
const SYS_WAITID: c_long = 247;
const SYS_READLINKAT: c_long = 267;
const AT_FDCWD: c_long = -100;
/// `WNOHANG | WEXITED | WNOWAIT`
const LOOK: c_long = 1 | 4 | 0x0100_0000;
const ECHILD: c_int = 10;
/// Which word of `/proc/self/stat`, behind the process's name.
const THREADS: usize = 17;
/// With more descriptors it is not looked what they are.
const MOST_DESCRIPTORS: u64 = 64;

/// `struct pollfd`
#[repr(C)]
#[derive(Clone, Copy)]
struct PollEntry {
    fd: c_int,
    events: u32,
}

/// Has the process no threads but these, no children, who may write to what it reads, and neither an alarm
/// nor a timer that will ring?
#[must_use]
pub fn is_alone(threads: usize) -> bool {
    let mut timer = [0i64; 4];
    // SAFETY: the timer has the kernel's size, and nobody asks which child it is.
    sys::keeping_errno(|| unsafe {
        let at = timer.as_mut_ptr() as c_long;
        let set = syscall::call(SYS_GETITIMER, &[0, at]) != 0 || timer != [0; 4];
        let childless =
            || syscall::call(SYS_WAITID, &[0, 0, 0, LOOK]) < 0 && sys::errno() == ECHILD;
        !set && no_timers() && count_threads() == Some(threads as u64) && childless()
    })
}

/// Not every kernel tells: then there may be some.
fn no_timers() -> bool {
    let mut name = Text::<32>::new();
    name.push(b"/proc/self/timers");
    sys::file_is_empty(&name)
}

/// How many threads the kernel knows of.
fn count_threads() -> Option<u64> {
    let mut name = Text::<32>::new();
    name.push(b"/proc/self/stat");
    let mut bytes = [0u8; 512];
    let length = sys::read_small_file(&name, &mut bytes);
    let line = bytes.get(..length)?;
    // The process's name, in parentheses, may contain anything.
    let close = line.iter().rposition(|byte| *byte == b')')?;
    let mut words = line.get(close + 2..)?.split(|byte| *byte == b' ');
    decimal(words.nth(THREADS)?)
}

/// Does a thread of this process wait, for ever if need be, for what only this process can give: something
/// in a pipe or an event counter, bytes from its own other end of a connection, a signal, or another value of a
/// private word?
#[must_use]
pub fn waits_within(tid: i32) -> bool {
    let mut name = Text::<64>::new();
    name.push(b"/proc/self/task/").push_decimal(tid.unsigned_abs().into()).push(b"/syscall");
    let mut bytes = [0u8; 256];
    let length = sys::keeping_errno(|| sys::read_small_file(&name, &mut bytes));
    match parse(bytes.get(..length).unwrap_or(&[])) {
        Some((number, arguments)) => is_within(number, arguments),
        None => false,
    }
}

/// The number and the first four arguments of the system call that a thread is in.
fn parse(line: &[u8]) -> Option<(u64, [u64; 4])> {
    let mut words = line.split(|byte| byte.is_ascii_whitespace());
    let number = decimal(words.next()?)?;
    let mut arguments = [0; 4];
    for argument in &mut arguments {
        *argument = hexadecimal(words.next()?.strip_prefix(b"0x")?)?;
    }
    Some((number, arguments))
}

fn decimal(digits: &[u8]) -> Option<u64> {
    core::str::from_utf8(digits).ok()?.parse().ok()
}

fn hexadecimal(digits: &[u8]) -> Option<u64> {
    u64::from_str_radix(core::str::from_utf8(digits).ok()?, 16).ok()
}

fn is_within(number: u64, [first, second, third, fourth]: [u64; 4]) -> bool {
    let without_end = |milliseconds: u64| (milliseconds as i32) < 0;
    match number {
        READ | READV | WRITE | WRITEV | RECVFROM | RECVMSG => is_own(first as c_int),
        POLL => without_end(third) && are_own(first, second),
        PPOLL => third == 0 && are_own(first, second),
        EPOLL_WAIT | EPOLL_PWAIT => without_end(fourth) && watches_own(first),
        // Nobody else sends signals to a program under a scheduler.
        SIGTIMEDWAIT => third == 0,
        FUTEX => {
            let waits = matches!(second & FUTEX_COMMAND, FUTEX_WAIT | FUTEX_WAIT_BITSET);
            waits && second & FUTEX_PRIVATE != 0 && fourth == 0
        }
        _ => false,
    }
}

/// The descriptors of a call of `poll` that a thread is in.
fn are_own(entries: u64, count: u64) -> bool {
    let entries = entries as *const PollEntry;
    (1..=MOST_DESCRIPTORS).contains(&count)
        && (0..count as usize).all(|index| {
            // SAFETY: the kernel has read them, and the thread that they are of waits.
            let entry = unsafe { entries.add(index).read_unaligned() };
            entry.fd < 0 || is_own(entry.fd)
        })
}

/// The descriptors that an instance of `epoll` watches.
fn watches_own(epoll: u64) -> bool {
    let mut name = Text::<64>::new();
    name.push(b"/proc/self/fdinfo/").push_decimal(epoll);
    let mut bytes = [0u8; 2048];
    let length = sys::keeping_errno(|| sys::read_small_file(&name, &mut bytes));
    let Some(text) = bytes.get(..length).filter(|text| !text.is_empty() && text.len() < 2048)
    else {
        return false;
    };
    let watched = text.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"tfd:"));
    let mut all = watched.map(|line| {
        let mut words = line.split(|byte| byte.is_ascii_whitespace());
        words.find(|word| !word.is_empty()).and_then(decimal)
    });
    all.all(|fd| fd.is_some_and(|fd| is_own(fd as c_int)))
}

/// A pipe or an event counter, neither of which anybody outside knows of, the signals of this process, or a connection
/// with itself. What a process began with may be the other end of somebody's.
fn is_own(fd: c_int) -> bool {
    if fd <= 2 {
        return false;
    }
    if sockets::is_within(fd) {
        return true;
    }
    let mut name = Text::<64>::new();
    name.push(b"/proc/self/fd/").push_decimal(fd.unsigned_abs().into());
    let mut bytes = [0u8; 64];
    // SAFETY: the name ends with a zero, and the buffer has the length given.
    let length = sys::keeping_errno(|| unsafe {
        let (path, at) = (name.as_c() as c_long, bytes.as_mut_ptr() as c_long);
        syscall::call(SYS_READLINKAT, &[AT_FDCWD, path, at, bytes.len() as c_long])
    });
    let target = usize::try_from(length).ok().and_then(|length| bytes.get(..length)).unwrap_or(&[]);
    target.starts_with(b"pipe:[")
        || target == b"anon_inode:[eventfd]"
        || target == b"anon_inode:[signalfd]"
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write, pipe};
    use std::net::TcpListener;
    use std::os::fd::AsRawFd;
    use std::sync::mpsc::channel;
    use std::time::{Duration, Instant};

    #[test]
    fn a_line_of_the_kernel_is_understood() {
        let line = b"7 0x7ffc 0x1 0xffffffff 0x0 0x0 0x0 0x7ffd 0x7f00\n";
        assert_eq!(parse(line), Some((7, [0x7ffc, 1, 0xffff_ffff, 0])));
        assert_eq!(parse(b"running\n"), None);
        assert_eq!(parse(b"-1 0x7ffd 0x7f00\n"), None);
        assert_eq!(parse(b""), None);
    }

    #[test]
    fn a_wait_that_ends_by_itself_is_none() {
        let private = FUTEX_WAIT | FUTEX_PRIVATE;
        assert!(is_within(FUTEX, [0x1000, private, 0, 0]));
        assert!(!is_within(FUTEX, [0x1000, private, 0, 0x2000]), "with a time limit");
        assert!(!is_within(FUTEX, [0x1000, FUTEX_WAIT, 0, 0]), "shared with other processes");
        assert!(is_within(SIGTIMEDWAIT, [0x1000, 0, 0, 8]));
        assert!(!is_within(SIGTIMEDWAIT, [0x1000, 0, 0x2000, 8]));
        let (reader, _writer) = pipe().expect("a pipe");
        let entry = PollEntry { fd: reader.as_raw_fd(), events: 1 };
        let at = &raw const entry as u64;
        assert!(is_within(POLL, [at, 1, u64::from(u32::MAX), 0]));
        assert!(!is_within(POLL, [at, 1, 1000, 0]));
        let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
        let entry = PollEntry { fd: listener.as_raw_fd(), events: 1 };
        assert!(!is_within(POLL, [&raw const entry as u64, 1, u64::from(u32::MAX), 0]));
    }

    #[test]
    fn a_thread_that_reads_an_empty_pipe_waits_for_this_process() {
        let (mut reader, mut writer) = pipe().expect("a pipe");
        let (tell, told) = channel();
        let thread = std::thread::spawn(move || {
            tell.send(sys::gettid()).expect("somebody listens");
            reader.read(&mut [0]).expect("something to read")
        });
        let tid = told.recv().expect("a number");
        let began = Instant::now();
        while !waits_within(tid) {
            assert!(began.elapsed() < Duration::from_secs(20), "the thread never waits");
            std::thread::yield_now();
        }
        writer.write_all(b"x").expect("a reader");
        assert_eq!(thread.join().expect("no panic"), 1);
        assert!(!waits_within(sys::gettid()), "a thread that runs waits for nothing");
    }

    #[test]
    fn a_file_that_is_not_there_is_not_empty() {
        let empty = |path: &[u8]| {
            let mut name = Text::<32>::new();
            name.push(path);
            sys::file_is_empty(&name)
        };
        assert!(empty(b"/dev/null"));
        assert!(!empty(b"/proc/self/stat") && !empty(b"/proc/self/nothing"));
    }

    #[test]
    fn the_kernel_counts_threads() {
        let tasks = std::fs::read_dir("/proc/self/task").expect("a list").count() as u64;
        // Other tests begin and end meanwhile.
        assert!(count_threads().is_some_and(|count| count >= 1 && count.abs_diff(tasks) < 16));
        assert!(!is_alone(0));
    }
}
