//! Rounds of loops that wait (`ir::repeats`): those that repeat are counted, and not logged.
//!
//! The hook at the header of such a loop calls when it comes from within the loop. When the round that
//! is over has the same log as the one before, but for readings of the clock, and no atomic update in it
//! changed memory, both cursors go back to where it began, and a [`RuntimeEvent::Repeat`] there counts it.
//! Two rounds are compared when both began at such a call and nothing but them has been logged since:
//! coming from outside, the hook makes [`Control::round`] 0, and it is another one where a loop of a function
//! that was called in between has been here.
//!
//! Wherever the process is killed meanwhile, the path says nothing of a round that the values do not
//! have: the path is taken back first, and counts a `Repeat` last.

use crate::handlers;
use crate::layout::{CERTAIN_LOOP, Control, NOTED_READINGS, RuntimeEvent, token};
use crate::readings;
use crate::schedule;
use crate::streams;
use crate::sys;
use crate::threads::Thread;
use crate::tls;
use core::ptr::{read_volatile, write_volatile};
use core::sync::atomic::{Ordering, compiler_fence};

/// A reading of the clock takes longer than the rest of a round: of so many rounds one has one, from the
/// same number of rounds on. It is as good for what comes later as one a little later would be; but where
/// the rounds are walked, it has to come behind all of them.
const ROUNDS_PER_READING: u64 = 32;
/// Words of a [`RuntimeEvent::Repeat`].
const REPEAT_BYTES: u64 = 16;
const REPEAT: u8 = token::RUNTIME + RuntimeEvent::Repeat as u8;
const READING: u8 = token::RUNTIME + RuntimeEvent::Reading as u8;
const CALL_READING: u8 = token::RUNTIME + RuntimeEvent::CallReading as u8;

/// What the runtime keeps of the round before the one that goes on. Zeros say that there was none.
#[derive(Clone, Copy, Default)]
pub struct State {
    /// How many bytes of both streams had been moved when the round that goes on began.
    moved: [u64; 2],
    /// How many bytes of path and of values the round before has; none when it is not to be repeated.
    before: Option<[u64; 2]>,
    /// Where the words of the `Repeat` are that stands behind it; 0 for none.
    repeat: u64,
    /// How many readings there had been when the round that goes on began.
    readings: u64,
}

/// The header of a waiting loop was reached from within, with these choices behind a leading one. `which`
/// names the loop and the call of its function ([`Control::round`]).
#[cfg_attr(symbiosis_export, unsafe(no_mangle))]
pub unsafe extern "C" fn __symbiosis_round(choices: u32, which: u64) {
    let thread = tls::recording();
    if thread.is_null() {
        return;
    }
    // SAFETY: the record is the calling thread's own, and no hook of it is running. Signals wait while the
    // thread is inside.
    unsafe {
        let inside = &raw mut (*thread).gate.inside;
        let was_inside = read_volatile(inside);
        write_volatile(inside, true);
        streams::end_region(thread, choices);
        // What counts rounds may be all that a thread puts into its values for long.
        streams::make_value_room(thread);
        // Where turns are recorded or followed, every gate that is passed counts.
        if !schedule::active() && !(*thread).path.stopped && !(*thread).values.stopped {
            end_round(thread, which);
        }
        // A signal that comes from here on is left to the next hook, since a handler that runs here has its
        // mark in the log.
        let stop = match (*thread).path.stopped {
            true => handlers::waits(thread) || streams::is_full(thread),
            false => !readings::has_room(thread),
        };
        if stop {
            streams::between_rounds(thread, RuntimeEvent::Repeat, [0, sys::tsc()]);
        }
        write_volatile(inside, was_inside);
        if stop {
            streams::make_path_room();
        } else if handlers::waits(thread) {
            write_volatile(&raw mut (*(*thread).control).path_limit, 0);
        }
    }
}

/// A round is over: counts it, or makes it the one that the next is compared with.
unsafe fn end_round(thread: *mut Thread, which: u64) {
    // SAFETY: the caller vouches for the record.
    unsafe {
        let control = &mut *(*thread).control;
        let state = &mut (*thread).round;
        let moved = [control.path_moved, control.value_moved];
        let changed = read_volatile(&raw const control.round_changes) != 0;
        write_volatile(&raw mut control.round_changes, 0);
        let whole = read_volatile(&raw const control.round) == which && state.moved == moved;
        if whole && !changed && is_repeated(control, state) {
            count(control, state, which);
        } else {
            let lengths = [
                control.path_next.wrapping_sub(control.round_path),
                control.value_next.wrapping_sub(control.round_values),
            ];
            let comparable = whole && !changed && has_only_code(control);
            state.before = comparable.then_some(lengths);
            state.repeat = 0;
            state.moved = moved;
            begin(control, control.path_next, control.value_next, which);
        }
        state.readings = control.readings;
    }
}

/// The next round of the loop begins at these cursors. Who copies a thread's log from outside wants the values of
/// all that the path tells (`crate::forks`).
unsafe fn begin(control: &mut Control, path: u64, values: u64, which: u64) {
    // SAFETY: the control page is the thread's own.
    unsafe {
        write_volatile(&raw mut control.round_values, values);
        write_volatile(&raw mut control.round_path, path);
        write_volatile(&raw mut control.round, which);
    }
}

/// Has the round the same log as the one before?
unsafe fn is_repeated(control: &Control, state: &State) -> bool {
    let Some([path, values]) = state.before else { return false };
    let lengths =
        (control.path_next - control.round_path, control.value_next - control.round_values);
    let readings = control.readings.wrapping_sub(state.readings);
    if lengths != (path, values) || path == 0 || readings > NOTED_READINGS as u64 {
        return false;
    }
    let (entry, words) = if state.repeat == 0 { (0, 0) } else { (1, REPEAT_BYTES) };
    let noted = |at: u64| {
        (0..readings).any(|back| {
            let number = control.readings.wrapping_sub(back + 1) as usize % NOTED_READINGS;
            control.reading_at.get(number).is_some_and(|&first| at.wrapping_sub(first) < 8)
        })
    };
    // SAFETY: both rounds are in the windows, one behind the other, a `Repeat` in between.
    unsafe {
        are_same(control.round_path, path, path + entry, |_| false)
            && are_same(control.round_values, values, values + words, noted)
    }
}

/// Are so many bytes the same as those so much before them, but for these?
unsafe fn are_same(first: u64, length: u64, back: u64, may_differ: impl Fn(u64) -> bool) -> bool {
    let end = first + length;
    let mut at = first;
    // SAFETY: the caller vouches for both places.
    unsafe {
        while at < end {
            let (now, before) = (at as *const u8, (at - back) as *const u8);
            if end - at >= 8
                && now.cast::<u64>().read_unaligned() == before.cast::<u64>().read_unaligned()
            {
                at += 8;
                continue;
            }
            if read_volatile(now) != read_volatile(before) && !may_differ(at) {
                return false;
            }
            at += 1;
        }
    }
    true
}

/// Is all that the path has of the round written by the program's own code, or a reading? A handler of
/// a signal may do anything.
unsafe fn has_only_code(control: &Control) -> bool {
    let mut at = control.round_path;
    while at < control.path_next {
        // SAFETY: the round is in the window.
        let first = unsafe { read_volatile(at as *const u8) };
        at += match first {
            token::LONG.. => 4,
            token::ENTER | token::CALLED | token::BLOCK => 5,
            token::RETURN | token::CAME_BACK | READING | CALL_READING => 1,
            short if short < token::FIRST && short > 0 => 1,
            _ => return false,
        };
    }
    at == control.path_next
}

/// Takes the round back and counts it.
unsafe fn count(control: &mut Control, state: &mut State, which: u64) {
    let (path, values) = (control.round_path, control.round_values);
    let taken = control.path_next - path;
    // SAFETY: all of it is in the thread's windows; there is room for a `Repeat` behind the round before.
    unsafe {
        write_volatile(&raw mut control.path_next, path);
        compiler_fence(Ordering::SeqCst);
        // What is behind the cursor must not be taken for choices.
        write_volatile(path as *mut u8, 0);
        compiler_fence(Ordering::SeqCst);
        // A round of a few bytes is over before a call would be.
        for at in path..path + taken {
            write_volatile(at as *mut u8, 0);
        }
        compiler_fence(Ordering::SeqCst);
        write_volatile(&raw mut control.value_next, values);
        if state.repeat == 0 {
            (values as *mut u64).write_unaligned(1);
            ((values + 8) as *mut u64).write_unaligned(sys::tsc());
            compiler_fence(Ordering::SeqCst);
            write_volatile(&raw mut control.value_next, values + REPEAT_BYTES);
            write_volatile(path as *mut u8, REPEAT);
            write_volatile(&raw mut control.path_next, path + 1);
            state.repeat = values;
            begin(control, path + 1, values + REPEAT_BYTES, which);
        } else {
            let count = (state.repeat as *const u64).read_unaligned().saturating_add(1);
            let seldom = which & u64::from(CERTAIN_LOOP) != 0 && count >= ROUNDS_PER_READING;
            if !seldom || count.is_multiple_of(ROUNDS_PER_READING) {
                ((state.repeat + 8) as *mut u64).write_unaligned(sys::tsc());
                compiler_fence(Ordering::SeqCst);
            }
            (state.repeat as *mut u64).write_unaligned(count);
            compiler_fence(Ordering::SeqCst);
        }
    }
}
