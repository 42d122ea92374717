//! The program's output: passed on, and its tail kept.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// How much of the output is kept, in bytes.
pub(crate) const TAIL: usize = 64 << 10;
/// How often a quiet pipe is looked at, in milliseconds.
const PATIENCE_MS: i32 = 50;

/// Copies a pipe in a thread of its own.
pub(crate) struct Tee {
    thread: JoinHandle<Vec<u8>>,
    over: Arc<AtomicBool>,
}

impl Tee {
    /// Starts to copy `from` to `to`, if there is one, and to keep its tail.
    pub(crate) fn start<R, W>(from: R, to: Option<W>) -> io::Result<Self>
    where
        R: Read + AsFd + Send + 'static,
        W: Write + Send + 'static,
    {
        let over = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&over);
        let thread =
            std::thread::Builder::new().name("tee".into()).spawn(move || copy(from, to, &flag))?;
        Ok(Self { thread, over })
    }

    /// The process has ended: takes what is still in the pipe, and gives the tail. A grandchild
    /// that keeps the pipe open is not waited for.
    pub(crate) fn finish(self) -> Vec<u8> {
        self.over.store(true, Ordering::Release);
        self.thread.join().unwrap_or_default()
    }
}

fn copy(mut from: impl Read + AsFd, mut to: Option<impl Write>, over: &AtomicBool) -> Vec<u8> {
    let mut tail = VecDeque::new();
    let mut buffer = vec![0; TAIL];
    loop {
        let last_look = over.load(Ordering::Acquire);
        if !readable(&from, if last_look { 0 } else { PATIENCE_MS }) {
            if last_look {
                break;
            }
            continue;
        }
        let n = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        let bytes = buffer.get(..n).unwrap_or(&[]);
        tail.extend(bytes);
        let surplus = tail.len().saturating_sub(TAIL);
        tail.drain(..surplus);
        if let Some(writer) = &mut to
            && writer.write_all(bytes).and_then(|()| writer.flush()).is_err()
        {
            // Whoever read the output is gone: the program is to notice, as it would alone.
            break;
        }
    }
    tail.into()
}

/// Waits until there is something to read, or the end of it.
fn readable(from: &impl AsFd, milliseconds: i32) -> bool {
    let mut poll = libc::pollfd { fd: from.as_fd().as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: the pointer is to one live structure.
    unsafe { libc::poll(&mut poll, 1, milliseconds) > 0 }
}
