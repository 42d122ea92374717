//! Whether a process can go on at all: all its threads wait in the kernel, for ever, for each other.
//!
//! A replay of a run that hung would else be waited for until its time is up, each time anew.

use std::path::Path;
use std::time::{Duration, Instant};

/// For so long nothing has to change.
const LONG_ENOUGH: Duration = Duration::from_millis(300);
/// The threads are looked at so often.
const EVERY: Duration = Duration::from_millis(100);

/// What a thread waits in: the number of its system call, its arguments, and where it is.
type Waits = Vec<(u32, String)>;

/// Watches whether a process can go on.
pub(super) struct Stuck {
    /// What its threads waited in when it was looked at last, and since when.
    waits: Option<(Waits, Instant)>,
    looked: Instant,
}

impl Stuck {
    pub(super) fn new(now: Instant) -> Self {
        Self { waits: None, looked: now }
    }

    /// Looks at the process; says whether it has been stuck for long enough. What cannot be seen may go on.
    pub(super) fn seen(&mut self, process: u32, now: Instant) -> bool {
        if now.duration_since(self.looked) < EVERY {
            return false;
        }
        self.looked = now;
        let Some(waits) = waits(Path::new(&format!("/proc/{process}"))) else {
            self.waits = None;
            return false;
        };
        match &self.waits {
            Some((last, since)) if *last == waits => now.duration_since(*since) >= LONG_ENOUGH,
            _ => {
                self.waits = Some((waits, now));
                false
            }
        }
    }
}

/// What all threads of a process wait in, without an end in time; `None` where one of them may go on by itself or by
/// news from outside.
fn waits(process: &Path) -> Option<Waits> {
    if !is_alone(process)? {
        return None;
    }
    let mut waits = Waits::new();
    for task in std::fs::read_dir(process.join("task")).ok()? {
        let task = task.ok()?;
        let call = std::fs::read_to_string(task.path().join("syscall")).ok()?;
        if !waits_for_ever(&call)? {
            return None;
        }
        waits.push((task.file_name().to_str()?.parse().ok()?, call));
    }
    waits.sort();
    Some(waits)
}

/// Does a call, as `/proc` has it, wait without an end in time? `None` for what is no such call.
fn waits_for_ever(call: &str) -> Option<bool> {
    // `running`, or -1 outside of calls.
    let mut words = call.split_ascii_whitespace();
    let number: libc::c_long = words.next()?.parse().ok()?;
    let arguments: Vec<u64> = words
        .map(|word| u64::from_str_radix(word.trim_start_matches("0x"), 16))
        .collect::<Result<_, _>>()
        .ok()?;
    let argument = |at: usize| arguments.get(at).copied();
    // The time is an `int`, of which the register has no more than the lower half.
    let endless = |time: u64| (time as u32).cast_signed() < 0;
    Some(match number {
        libc::SYS_read | libc::SYS_write | libc::SYS_readv | libc::SYS_writev => true,
        // Nobody sends signals to a replay.
        libc::SYS_pause | libc::SYS_rt_sigsuspend => true,
        libc::SYS_rt_sigtimedwait => argument(2)? == 0,
        libc::SYS_poll => endless(argument(2)?),
        libc::SYS_epoll_wait | libc::SYS_epoll_pwait => endless(argument(3)?),
        libc::SYS_ppoll => argument(2)? == 0,
        libc::SYS_select | libc::SYS_pselect6 => argument(4)? == 0,
        libc::SYS_futex => argument(3)? == 0,
        _ => false,
    })
}

/// Has a process nothing that could bring it news from outside: no process that it started, no socket, no terminal, no
/// timer?
fn is_alone(process: &Path) -> Option<bool> {
    for task in std::fs::read_dir(process.join("task")).ok()? {
        let children = std::fs::read_to_string(task.ok()?.path().join("children")).ok()?;
        if !children.trim().is_empty() {
            return Some(false);
        }
    }
    if !std::fs::read_to_string(process.join("timers")).ok()?.trim().is_empty() {
        return Some(false);
    }
    for descriptor in std::fs::read_dir(process.join("fd")).ok()? {
        let target = std::fs::read_link(descriptor.ok()?.path()).ok()?;
        let kind = target.to_str()?;
        let inner =
            ["pipe:", "anon_inode:[eventfd]", "anon_inode:[eventpoll]", "anon_inode:[signalfd]"];
        let file = || std::fs::metadata(&target).is_ok_and(|data| data.is_file() || data.is_dir());
        if !inner.iter().any(|inner| kind.starts_with(inner)) && kind != "/dev/null" && !file() {
            return Some(false);
        }
    }
    Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::process::{Child, Command, Stdio};

    /// A shell with a pipe as its input, which stays open, and nothing else.
    fn shell(script: &str) -> io::Result<Child> {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
    }

    fn is_stuck(script: &str) -> io::Result<bool> {
        let mut child = shell(script)?;
        let start = Instant::now();
        let mut stuck = Stuck::new(start);
        let mut found = false;
        while !found && start.elapsed() < 4 * LONG_ENOUGH {
            std::thread::sleep(EVERY / 2);
            found = stuck.seen(child.id(), Instant::now());
        }
        child.kill()?;
        child.wait()?;
        Ok(found)
    }

    #[test]
    fn who_reads_a_pipe_that_nobody_writes_is_stuck() -> io::Result<()> {
        assert!(is_stuck("read line")?);
        Ok(())
    }

    #[test]
    fn who_sleeps_or_waits_for_another_process_is_not() -> io::Result<()> {
        assert!(!is_stuck("exec sleep 60")?);
        assert!(!is_stuck("sleep 60; true")?);
        Ok(())
    }

    #[test]
    fn waits_with_an_end_are_told_from_others() {
        for (call, expected) in [
            ("running", None),
            ("-1 0x0 0x0", Some(false)),
            ("0 0x3 0x7ffd97611fd7 0x1 0x0 0x0 0x0 0x7ffd97611fa0 0x7ff07ef9e2ec", Some(true)),
            ("202 0x7f 0x80 0x0 0x0 0x0 0x0 0x7ffd97611fa0 0x7ff07ef9e2ec", Some(true)),
            ("202 0x7f 0x80 0x0 0x7ffd 0x0 0x0 0x7ffd97611fa0 0x7ff07ef9e2ec", Some(false)),
            ("7 0x7f 0x1 0xffffffff 0x0 0x0 0x0 0x7ffd97611fa0 0x7ff07ef9e2ec", Some(true)),
            ("7 0x7f 0x1 0x64 0x0 0x0 0x0 0x7ffd97611fa0 0x7ff07ef9e2ec", Some(false)),
            ("128 0x7ffd 0x0 0x0 0x8 0x0 0x0 0x7ffd97611fa0 0x7ff07ef9e2ec", Some(true)),
            ("128 0x7ffd 0x0 0x7ffe 0x8 0x0 0x0 0x7ffd97611fa0 0x7ff07ef9e2ec", Some(false)),
            ("230 0x0 0x0 0x7ffd 0x0 0x0 0x0 0x7ffd97611fa0 0x7ff07ef9e2ec", Some(false)),
        ] {
            assert_eq!(waits_for_ever(call), expected, "{call}");
        }
    }
}
