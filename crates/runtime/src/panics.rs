//! Which of a Rust program's panics the run failed of.
//!
//! The first one, but for those that the program keeps to itself. A harness of tests holds back what a test prints, the
//! message of its panic too, and shows it when the test has failed: a test that should panic, and does, is never
//! shown. So where the program told of a panic, it failed of the first one that it told of. A harness that holds nothing
//! back shows the panic that should come, too, and then says that this test is well: `test NAME - should panic ... ok`.
//! The test's thread has the test's name, and the program did not fail of what that one told of.

use crate::layout::RawFailure;
use crate::process::{self, Failure, Moment};
use crate::sys;
use core::cell::UnsafeCell;
use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering};

/// The status with which a program ends whose initial thread panicked.
const PANICKED: i64 = 101;
/// So many panics of a process are known; further ones are not told apart.
const KNOWN: usize = 512;
/// The longest message that is kept, in bytes.
const LONGEST: usize = 400;
/// What stands before the place in the message of a panic, the runtime's and the library's.
const WORDS: &[u8] = b"panicked at ";
/// What a harness of tests writes before and behind the name of a test that should panic; how that went follows.
const TEST: &[u8] = b"test ";
const SHOULD_PANIC: &[u8] = b" - should panic ... ";

struct Panic {
    noted: AtomicBool,
    told: AtomicBool,
    /// The hash of the name that its thread was told by.
    name: AtomicU64,
    /// The harness of tests said that it should come.
    expected: AtomicBool,
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

impl Panic {
    /// Did the program tell of it, and not say that it should come?
    fn counts(&self) -> bool {
        self.told.load(Ordering::Acquire) && !self.expected.load(Ordering::Acquire)
    }
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
        name: AtomicU64::new(0),
        expected: AtomicBool::new(false),
        what: UnsafeCell::new(NOTHING),
    }
}; KNOWN];
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// The hash of the name of the test that should panic and that the harness began to tell of; 0 for none.
static TELLING_OF: AtomicU64 = AtomicU64::new(0);
/// The thread that tells of it.
static TELLER: AtomicI32 = AtomicI32::new(0);

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

/// The program has written this to that descriptor: does it tell of panics, or that they should come?
pub fn written(fd: c_int, text: &[u8]) {
    if fd != 1 && fd != 2 {
        return;
    }
    if COUNT.load(Ordering::Acquire) != 0 {
        for (panic, what) in known().filter(|(panic, _)| !panic.told.load(Ordering::Relaxed)) {
            if let Some(name) = told_by(text, what.tid, what.message()) {
                panic.name.store(hash(name), Ordering::Relaxed);
                panic.told.store(true, Ordering::Release);
            }
        }
    }
    if fd == 1 {
        text.split(|byte| *byte == b'\n').for_each(|line| note_result(line, sys::gettid()));
    }
}

/// What the harness says of tests that should panic. It writes the name and how it went in two parts, and with one thread for
/// the tests the first part before the test runs.
fn note_result(line: &[u8], tid: i32) {
    let should_panic = line.strip_prefix(TEST).and_then(|rest| {
        let at = rest.windows(SHOULD_PANIC.len()).position(|part| part == SHOULD_PANIC)?;
        let (name, rest) = rest.split_at_checked(at)?;
        Some((name, rest.strip_prefix(SHOULD_PANIC)?))
    });
    let result = should_panic.map_or(line, |(_, result)| result);
    if let Some((name, _)) = should_panic {
        TELLER.store(tid, Ordering::Relaxed);
        TELLING_OF.store(hash(name.trim_ascii_end()), Ordering::Relaxed);
    }
    if TELLER.load(Ordering::Relaxed) != tid || (result != b"ok" && result != b"FAILED") {
        return;
    }
    let test = TELLING_OF.swap(0, Ordering::Relaxed);
    if test != 0 && result == b"ok" {
        for (panic, _) in known().filter(|(panic, _)| panic.name.load(Ordering::Relaxed) == test) {
            panic.expected.store(true, Ordering::Release);
        }
    }
}

/// FNV-1a, and never 0.
fn hash(text: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    text.iter().fold(0xcbf2_9ce4_8422_2325, step).max(1)
}

/// The name of the thread that panicked, where there is such a message in the text, by the thread of this number where it says
/// which. Empty where it has none.
fn told_by<'t>(text: &'t [u8], tid: i32, message: &[u8]) -> Option<&'t [u8]> {
    let place = message.strip_prefix(WORDS)?;
    let mut ends = (0..text.len()).filter(|at| text.get(..*at).is_some_and(|t| t.ends_with(WORDS)));
    ends.find_map(|at| {
        let (before, behind) = text.split_at_checked(at)?;
        let rest = behind.strip_prefix(place)?;
        let before = before.strip_suffix(WORDS).unwrap_or(before);
        let whole = !rest.first().is_some_and(u8::is_ascii_digit);
        let by_it = thread_named(before).is_none_or(|named| named == i64::from(tid));
        (whole && by_it).then(|| name_of_thread(before))
    })
}

/// The name at the end of `thread 'name' (12) `; empty where there is none.
fn name_of_thread(text: &[u8]) -> &[u8] {
    const BEFORE: &[u8] = b"thread '";
    let end = text.iter().rposition(|byte| *byte == b'\'').unwrap_or(0);
    let text = text.get(..end).unwrap_or(&[]);
    let begin = text.windows(BEFORE.len()).rposition(|part| part == BEFORE);
    begin.and_then(|begin| text.get(begin + BEFORE.len()..)).unwrap_or(&[])
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
        panic.expected.store(false, Ordering::Release);
        panic.name.store(0, Ordering::Release);
    }
}

/// Did the program tell of any panic that should not come?
#[must_use]
pub fn any_told() -> bool {
    known().any(|(panic, _)| panic.counts())
}

/// The process ends, and not well: which panic was it?
pub fn settle() {
    let told = known().find(|(panic, _)| panic.counts());
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
        let tells = |text: &str| told_by(text.as_bytes(), 117, message).is_some();
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
        assert!(told_by(b"panicked at ", 117, b"panicked").is_none());
    }

    #[test]
    fn a_panic_that_should_come_does_not_count() {
        // The test's own panics, in numbers that no thread has.
        const TIDS: [i32; 3] = [2_000_000_005, 2_000_000_006, 2_000_000_007];
        for (panic, tid) in PANICS.iter().zip(TIDS) {
            let mut what = What { tid, ..NOTHING };
            what.length = process::copy(&mut what.message, b"panicked at src/lib.rs:2:9") as usize;
            // SAFETY: no other test of this process notes panics.
            unsafe { *panic.what.get() = what };
            panic.noted.store(true, Ordering::Release);
        }
        COUNT.store(TIDS.len(), Ordering::Release);
        let counts = || PANICS.iter().take(TIDS.len()).map(Panic::counts).collect::<Vec<_>>();
        // With one thread for the tests, the name comes first.
        written(1, b"test tests::empty - should panic ... ");
        written(
            2,
            b"\nthread 'tests::empty' (2000000005) panicked at src/lib.rs:2:9:\nno ids left\n",
        );
        written(1, b"ok");
        written(2, b"\nthread 'tests::full' (2000000006) panicked at src/lib.rs:2:9:\n");
        written(2, b"\nthread 'tests::add' (2000000007) panicked at src/lib.rs:2:9:\n");
        assert_eq!(counts(), [false, true, true]);
        written(1, b"test tests::full - should panic ... ");
        written(1, b"FAILED");
        written(1, b"\n");
        written(1, b"test tests::add ... ");
        written(1, b"ok");
        assert_eq!(counts(), [false, true, true]);
        written(1, b"test tests::full - should panic ... ok\n");
        assert_eq!(counts(), [false, false, true]);
        assert!(any_told());
        forget();
    }
}
