//! Under a schedule that says what process ids, times and random numbers the recorded run got, the
//! program gets them back: a program that seeds its random numbers with its process id, say, takes
//! the same path again. What there is to give back was collected from the calls out of instrumented
//! code, so only calls from there get it. They are told from others by the executable or library
//! that their return address lies in: its uninstrumented parts, if it has any, count as
//! instrumented.
//!
//! Here are ids and random numbers; for times see `clocks`. When all values are given, or the
//! thread has none, it is the program's own function that answers; ids stay those given before. A
//! process that is told an old id of its own may send a signal there, so the calls that send
//! signals translate ids that were given back.

use crate::crashes;
use crate::gates;
use crate::layout::INPUT_FUNCTIONS;
use crate::modules;
use crate::real;
use crate::schedule;
use crate::script::{Input, thread_hash};
use crate::sys;
use crate::threads::Thread;
use crate::tls;
use core::ffi::{c_int, c_long, c_uint, c_void};
use core::sync::atomic::{AtomicI32, Ordering};

type P = *mut c_void;

/// How many functions there are.
const FUNCTIONS: usize = INPUT_FUNCTIONS.len();

/// What the runtime keeps per thread. Zeros are the state of a new thread.
#[derive(Clone, Copy, Default)]
pub struct State {
    cursors: [Cursor; FUNCTIONS],
    /// How far its clocks are from the real ones.
    pub offsets: crate::clocks::Offsets,
}

/// How many of a thread's values of one function were given.
#[derive(Clone, Copy, Debug, Default)]
struct Cursor {
    /// Runs of equal values that are used up.
    run: usize,
    /// Values that are used up of the next one.
    used: u64,
}

impl Cursor {
    fn next(&mut self, runs: &[Input]) -> Option<u64> {
        loop {
            let run = runs.get(self.run)?;
            if self.used < run.count {
                self.used += 1;
                return Some(run.value);
            }
            *self = Self { run: self.run + 1, used: 0 };
        }
    }
}

/// The place of a function in [`INPUT_FUNCTIONS`], for constants.
#[must_use]
pub const fn number(name: &str) -> usize {
    let name = name.as_bytes();
    let mut at = 0;
    loop {
        let other = INPUT_FUNCTIONS[at].name.as_bytes();
        let mut same = name.len() == other.len();
        let mut i = 0;
        while same && i < name.len() {
            same = name[i] == other[i];
            i += 1;
        }
        if same {
            return at;
        }
        at += 1;
    }
}

/// The values for a call, one after the other. They count as given with [`Values::given`].
pub struct Values {
    thread: *mut Thread,
    function: usize,
    runs: &'static [Input],
    cursor: Cursor,
}

impl Values {
    /// The values for the calling thread's call of a function that returns to `caller`; none when
    /// it gets none.
    #[must_use]
    pub fn of(function: usize, caller: u64) -> Option<Self> {
        if !schedule::active() {
            return None;
        }
        let script = gates::script().filter(|script| script.has_inputs())?;
        // SAFETY: the record is the calling thread's own.
        let (thread, name, cursor) = unsafe {
            let thread = *tls::thread_slot();
            if thread.is_null() {
                return None;
            }
            let cursor = (&raw const (*thread).inputs.cursors).cast::<Cursor>();
            if function >= FUNCTIONS {
                return None;
            }
            (thread, (*thread).name, *cursor.add(function))
        };
        let runs = script.inputs(thread_hash(name.as_bytes()), function);
        if cursor.run >= runs.len() || !modules::instrumented(caller) {
            return None;
        }
        Some(Self { thread, function, runs, cursor })
    }

    /// The next value.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Option<u64> {
        self.cursor.next(self.runs)
    }

    /// The bytes of the next values. Says whether there were enough; else the place has some of
    /// them.
    ///
    /// # Safety
    ///
    /// There must be so many bytes at the place.
    pub unsafe fn bytes(&mut self, place: *mut u8, count: usize) -> bool {
        let mut at = 0;
        while at < count {
            let Some(word) = self.next() else { return false };
            let part = (count - at).min(8);
            // SAFETY: the caller vouches for the place, and `part` bytes are left of it.
            unsafe {
                core::ptr::copy_nonoverlapping(word.to_le_bytes().as_ptr(), place.add(at), part);
            }
            at += part;
        }
        true
    }

    /// These values were given: the thread's next call gets those behind them.
    pub fn given(self) {
        // SAFETY: the record is the calling thread's own, and the function's number was looked at.
        unsafe {
            let cursors = (&raw mut (*self.thread).inputs.cursors).cast::<Cursor>();
            cursors.add(self.function).write(self.cursor);
        }
    }
}

/// The recorded result of a call that writes nothing; none when there is none to give back.
#[must_use]
pub fn result(function: usize, caller: u64) -> Option<u64> {
    let mut values = Values::of(function, caller)?;
    let result = values.next()?;
    values.given();
    Some(result)
}

/// An id that was given back, and the one that is meant.
struct Given {
    told: AtomicI32,
    real: AtomicI32,
}

impl Given {
    const fn none() -> Self {
        Self { told: AtomicI32::new(0), real: AtomicI32::new(0) }
    }

    fn set(&self, told: c_int, real: c_int) {
        self.real.store(real, Ordering::Relaxed);
        self.told.store(told, Ordering::Release);
    }

    /// What the program was told in the place of this id; none when nothing.
    fn told(&self, real: c_int) -> Option<c_int> {
        let told = self.told.load(Ordering::Acquire);
        (told != 0 && self.real.load(Ordering::Relaxed) == real).then_some(told)
    }

    /// What is meant by an id that the program was told.
    fn meant(&self, told: c_int) -> Option<c_int> {
        let known = self.told.load(Ordering::Acquire);
        (known != 0 && known == told).then(|| self.real.load(Ordering::Relaxed))
    }
}

static PROCESS: Given = Given::none();
static PARENT: Given = Given::none();

/// The process, or for a negative number the process group, that the program means.
fn meant(id: c_int) -> c_int {
    let positive = id.saturating_abs();
    match PROCESS.meant(positive).or_else(|| PARENT.meant(positive)) {
        Some(real) if id < 0 => -real,
        Some(real) => real,
        None => id,
    }
}

/// The last id that the calling thread was told to be its own; 0 for none.
fn own_told() -> c_int {
    const GETTID: usize = number("gettid");
    // SAFETY: the record is the calling thread's own.
    unsafe {
        let thread = *tls::thread_slot();
        let (false, Some(script)) = (thread.is_null() || !schedule::active(), gates::script())
        else {
            return 0;
        };
        let cursor = (*thread).inputs.cursors[GETTID];
        let runs = script.inputs(thread_hash((*thread).name.as_bytes()), GETTID);
        let at = if cursor.used == 0 { cursor.run.wrapping_sub(1) } else { cursor.run };
        runs.get(at).map_or(0, |run| run.value as c_int)
    }
}

fn unknown() -> c_int {
    sys::set_errno(sys::ENOSYS);
    -1
}

interpose_with_caller! { caller:
    "rdi" fn getpid() -> c_int {
        let real = sys::getpid() as c_int;
        if let Some(told) = result(NUMBER, caller) {
            PROCESS.set(told as c_int, real);
            return told as c_int;
        }
        PROCESS.told(real).filter(|_| modules::instrumented(caller)).unwrap_or(real)
    }

    "rdi" fn getppid() -> c_int {
        let real = sys::getppid();
        if let Some(told) = result(NUMBER, caller) {
            PARENT.set(told as c_int, real);
            return told as c_int;
        }
        // In a child of `fork` it is the process that was told its own id.
        let told = PROCESS.told(real).or_else(|| PARENT.told(real));
        told.filter(|_| modules::instrumented(caller)).unwrap_or(real)
    }

    "rdi" fn gettid() -> c_int {
        if let Some(told) = result(NUMBER, caller) {
            return told as c_int;
        }
        match own_told() {
            told if told != 0 && modules::instrumented(caller) => told,
            _ => sys::gettid(),
        }
    }

    "rdi" fn sched_getcpu() -> c_int {
        match (result(NUMBER, caller), real::sched_getcpu()) {
            (Some(result), _) => result as c_int,
            (None, Some(function)) => function(),
            (None, None) => unknown(),
        }
    }

    // The generators of random numbers go on all the same, so that later numbers follow.
    "rdi" fn rand() -> c_int {
        let own = real::rand().map_or(0, |function| function());
        result(NUMBER, caller).map_or(own, |result| result as c_int)
    }

    "rdi" fn random() -> c_long {
        let own = real::random().map_or(0, |function| function());
        result(NUMBER, caller).map_or(own, |result| result as c_long)
    }

    "rdi" fn lrand48() -> c_long {
        let own = real::lrand48().map_or(0, |function| function());
        result(NUMBER, caller).map_or(own, |result| result as c_long)
    }

    "rdi" fn mrand48() -> c_long {
        let own = real::mrand48().map_or(0, |function| function());
        result(NUMBER, caller).map_or(own, |result| result as c_long)
    }

    "rdi" fn drand48() -> f64 {
        let own = real::drand48().map_or(0.0, |function| function());
        result(NUMBER, caller).map_or(own, f64::from_bits)
    }

    "rcx" fn getrandom(place: P, count: usize, flags: c_uint) -> isize {
        if let Some(mut values) = Values::of(NUMBER, caller)
            && let Some(result) = values.next()
        {
            // A call that asks for less is another one than the recorded.
            let bytes = usize::try_from(result.cast_signed()).unwrap_or(0);
            if bytes <= count && values.bytes(place.cast(), bytes) {
                values.given();
                return result as isize;
            }
        }
        match real::getrandom() {
            Some(function) => function(place, count, flags),
            None => unknown() as isize,
        }
    }

    "rdx" fn getentropy(place: P, count: usize) -> c_int {
        if let Some(mut values) = Values::of(NUMBER, caller)
            && let Some(result) = values.next()
            && values.bytes(place.cast(), count)
        {
            values.given();
            return result as c_int;
        }
        match real::getentropy() {
            Some(function) => function(place, count),
            None => unknown(),
        }
    }

    /// `std::random_device`.
    "rsi" fn _ZNSt13random_device9_M_getvalEv(device: P) -> c_uint {
        random_word(device, result(NUMBER, caller), real::_ZNSt13random_device9_M_getvalEv())
    }

    /// libc++'s `std::random_device`.
    "rsi" fn _ZNSt3__113random_deviceclEv(device: P) -> c_uint {
        random_word(device, result(NUMBER, caller), real::_ZNSt3__113random_deviceclEv())
    }
}

/// What a device of C++ gives: the recorded number, if there is one, and else what the library's own function
/// says.
unsafe fn random_word(
    device: P,
    given: Option<u64>,
    own: Option<unsafe extern "C" fn(P) -> c_uint>,
) -> c_uint {
    match (given, own) {
        (Some(given), _) => given as c_uint,
        // SAFETY: the caller vouches for the device.
        (None, Some(function)) => unsafe { function(device) },
        (None, None) => {
            let mut value: c_uint = 0;
            sys::keeping_errno(|| sys::random(&mut value));
            value
        }
    }
}

/// The process is about to send a signal to that one.
fn note_sent(process: c_int, signal: c_int) {
    if u32::try_from(process) == Ok(sys::getpid()) {
        crashes::sends_itself(signal);
    }
}

interpose! {
    fn kill(process: c_int, signal: c_int) -> c_int {
        let Some(function) = real::kill() else { return unknown() };
        let process = meant(process);
        note_sent(process, signal);
        function(process, signal)
    }

    fn killpg(group: c_int, signal: c_int) -> c_int {
        let Some(function) = real::killpg() else { return unknown() };
        function(meant(group), signal)
    }

    fn sigqueue(process: c_int, signal: c_int, value: P) -> c_int {
        let Some(function) = real::sigqueue() else { return unknown() };
        function(meant(process), signal, value)
    }

    fn tgkill(process: c_int, thread: c_int, signal: c_int) -> c_int {
        let Some(function) = real::tgkill() else { return unknown() };
        let told = own_told();
        let thread = if told != 0 && told == thread { sys::gettid() } else { thread };
        let process = meant(process);
        note_sent(process, signal);
        function(process, thread, signal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(value: u64, count: u64) -> Input {
        Input { thread: 1, function: 0, order: 0, value, count }
    }

    #[test]
    fn values_come_in_order_and_as_often_as_the_schedule_says() {
        let runs = [run(7, 2), run(9, 1), run(7, 1)];
        let mut cursor = Cursor::default();
        let given: Vec<u64> = core::iter::from_fn(|| cursor.next(&runs)).collect();
        assert_eq!(given, [7, 7, 9, 7]);
        assert!(cursor.next(&runs).is_none() && cursor.run == runs.len());
    }

    #[test]
    fn every_function_has_its_number() {
        for (at, function) in INPUT_FUNCTIONS.iter().enumerate() {
            assert_eq!(number(function.name), at);
        }
    }

    #[test]
    fn bytes_are_those_of_the_words() {
        let runs: &'static [Input] =
            Box::leak(Box::new([run(0x0807_0605_0403_0201, 1), run(0x0a09, 1)]));
        let mut values =
            Values { thread: core::ptr::null_mut(), function: 0, runs, cursor: Cursor::default() };
        let mut place = [0xffu8; 12];
        // SAFETY: there are twelve bytes.
        unsafe { assert!(values.bytes(place.as_mut_ptr(), 10)) };
        assert_eq!(place, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0xff, 0xff]);
        // SAFETY: as above.
        unsafe { assert!(!values.bytes(place.as_mut_ptr(), 1), "there are no more") };
    }

    #[test]
    fn an_id_that_was_told_means_the_real_one() {
        let given = Given::none();
        assert_eq!((given.told(12), given.meant(0), given.meant(4711)), (None, None, None));
        given.set(4711, 12);
        assert_eq!((given.told(12), given.told(13)), (Some(4711), None));
        assert_eq!((given.meant(4711), given.meant(12)), (Some(12), None));
        assert_eq!((meant(-5), meant(0)), (-5, 0));
    }
}
