//! Which of a Rust program's panics the run failed of.
//!
//! The first one, but for those that the program keeps to itself. A harness of tests holds back what a test prints, the
//! message of its panic too, and shows it when the test has failed: a test that should panic, and does, is never
//! shown. So where the program told of a panic, it failed of the first one that it told of.

use crate::layout::RawFailure;
use crate::process::{self, Failure, Moment};
use crate::sys;
use core::cell::UnsafeCell;
use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The status with which a program ends whose initial thread panicked.
const PANICKED: i64 = 101;
/// So many panics of a process are known; further ones are not told apart.
const KNOWN: usize = 512;
/// The longest message that is kept, in bytes.
const LONGEST: usize = 400;
/// What stands before the place in the message of a panic, the runtime's and the library's.
const WORDS: &[u8] = b"panicked at ";

struct Panic {
    noted: AtomicBool,
    told: AtomicBool,
    what: UnsafeCell<What>,
}

#[derive(Clone, Copy)]
struct What {
    /// The kernel's number of the thread.
    tid: i32,
    moment: Moment,
    length: usize,
    message: [u8; LONGEST],
}

impl What {
    fn message(&self) -> &[u8] {
        self.message.get(..self.length).unwrap_or(&[])
    }
}

fn failure(message: &[u8]) -> Failure<'_> {
    Failure { code: PANICKED, message, ..Failure::default() }
}

// SAFETY: what it is is written once, before `noted` says so, and read afterwards.
unsafe impl Sync for Panic {}

const NOTHING: What = What { tid: 0, moment: Moment::NOWHERE, length: 0, message: [0; LONGEST] };
static PANICS: [Panic; KNOWN] = [const {
    Panic {
        noted: AtomicBool::new(false),
        told: AtomicBool::new(false),
        what: UnsafeCell::new(NOTHING),
    }
}; KNOWN];
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// The known ones, in the order in which they began.
fn known() -> impl Iterator<Item = (&'static Panic, &'static What)> {
    let count = COUNT.load(Ordering::Acquire);
    let noted = PANICS.iter().take(count).filter(|panic| panic.noted.load(Ordering::Acquire));
    // SAFETY: it was noted, and is not written any more.
    noted.map(|panic| (panic, unsafe { &*panic.what.get() }))
}

/// The calling thread panics, as the message says. Whether the program fails of it shows when it ends.
pub fn note(message: &[u8]) {
    process::note_failure(RawFailure::Panic, &failure(message));
    if message.len() > LONGEST || !process::recording() {
        return;
    }
    let index = COUNT.fetch_add(1, Ordering::AcqRel);
    let Some(panic) = PANICS.get(index) else {
        COUNT.store(KNOWN, Ordering::Release);
        return;
    };
    let mut what = What { tid: sys::gettid(), moment: Moment::now(), ..NOTHING };
    what.length = process::copy(&mut what.message, message) as usize;
    // SAFETY: the index is this thread's alone.
    unsafe { *panic.what.get() = what };
    panic.noted.store(true, Ordering::Release);
}

/// The program has written this to that descriptor: does it tell of panics?
pub fn written(fd: c_int, text: &[u8]) {
    if (fd != 1 && fd != 2) || COUNT.load(Ordering::Acquire) == 0 {
        return;
    }
    for (panic, what) in known() {
        if !panic.told.load(Ordering::Relaxed) && tells(text, what.tid, what.message()) {
            panic.told.store(true, Ordering::Release);
        }
    }
}

/// Is there such a message in the text, by the thread of this number where it says which?
fn tells(text: &[u8], tid: i32, message: &[u8]) -> bool {
    let Some(place) = message.strip_prefix(WORDS) else { return false };
    let mut ends = (0..text.len()).filter(|at| text.get(..*at).is_some_and(|t| t.ends_with(WORDS)));
    ends.any(|at| {
        let (before, behind) = text.split_at_checked(at).unwrap_or((&[], &[]));
        let rest = behind.strip_prefix(place);
        let whole = rest.is_some_and(|rest| !rest.first().is_some_and(u8::is_ascii_digit));
        let before = before.strip_suffix(WORDS).unwrap_or(before);
        whole && thread_named(before).is_none_or(|named| named == i64::from(tid))
    })
}

/// The number at the end of `thread 'name' (12) `.
fn thread_named(text: &[u8]) -> Option<i64> {
    let text = text.strip_suffix(b") ")?;
    let digits = text.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let (open, digits) = text.split_at_checked(text.len() - digits)?;
    open.strip_suffix(b"(")?;
    core::str::from_utf8(digits).ok()?.parse().ok()
}

/// In a child of `fork`, which has one thread: its parent's panics are none of its own.
pub fn forget() {
    for panic in PANICS.iter().take(COUNT.swap(0, Ordering::AcqRel)) {
        panic.noted.store(false, Ordering::Release);
        panic.told.store(false, Ordering::Release);
    }
}

/// Did the program tell of any panic?
#[must_use]
pub fn any_told() -> bool {
    known().any(|(panic, _)| panic.told.load(Ordering::Acquire))
}

/// The process ends, and not well: which panic was it?
pub fn settle() {
    let told = known().find(|(panic, _)| panic.told.load(Ordering::Acquire));
    if let Some((_, what)) = told {
        process::replace_panic(RawFailure::Panic, &failure(what.message()), what.moment);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_known_by_its_place_and_thread() {
        let message = b"panicked at src/lib.rs:28:9";
        let tells = |text: &str| tells(text.as_bytes(), 117, message);
        assert!(tells(
            "\nthread 'tests::add' (117) panicked at src/lib.rs:28:9:\nassertion failed\n"
        ));
        assert!(tells("thread 'tests::add' panicked at src/lib.rs:28:9:\n"));
        assert!(tells(r#"{"stdout":"thread 't' (117) panicked at src/lib.rs:28:9:\n"}"#));
        assert!(!tells("thread 'tests::add' (118) panicked at src/lib.rs:28:9:\n"));
        assert!(!tells("thread 'tests::add' (117) panicked at src/lib.rs:28:91:\n"));
        assert!(!tells("thread 'tests::add' (117) panicked at src/lib.rs:2"));
        assert!(tells(concat!(
            "thread 'a' (118) panicked at src/lib.rs:28:9:\n",
            "thread 'b' (117) panicked at src/lib.rs:28:9:\n"
        )));
        assert!(!super::tells(b"panicked at ", 117, b"panicked"));
    }
}
