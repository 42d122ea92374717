//! The program's signal handlers, which are instrumented code in the middle of other code.
//!
//! A handler that ran in the middle of a hook would tear the streams apart, and one that ran
//! anywhere else between two entries would leave open where. So the runtime's own handler stands in
//! front of the program's. When the signal came in code that is not instrumented (a system call, say)
//! the program's handler runs at once. In instrumented code it waits for the next path hook, which
//! [`crate::layout::Control::path_limit`] makes call the runtime, or until the thread calls uninstrumented code,
//! for which the processor's single-step mode watches: a handler that has to end a wait must not
//! come after it. Other signals are blocked in the meantime. To the program this is a signal that
//! came a few instructions later.
//!
//! Faults are handled where they occur: the instruction that caused them is one of the program's own.

use crate::crashes;
use crate::layout::{RuntimeEvent, SIGNAL_AT_FAULT, SIGNAL_AT_REGION_END, SIGNAL_ELSEWHERE};
use crate::modules;
use crate::process;
use crate::schedule;
use crate::signals;
use crate::streams;
use crate::sys::{self, SignalAction};
use crate::threads::Thread;
use crate::tls;
use crate::writes;
use core::ffi::c_int;
use core::ptr::{null, null_mut, read_volatile, write_volatile};
use core::sync::atomic::{AtomicI32, AtomicU64, AtomicUsize, Ordering};

const SIGNALS: usize = 65;
const SIG_DFL: usize = 0;
const SIG_IGN: usize = 1;
const SIG_ERR: usize = usize::MAX;
const SIG_UNBLOCK: c_int = 1;
/// Signals 32 and 33 are libc's own, which nobody blocks.
const LIBRARY_SIGNALS: u64 = 0b11 << 31;
const SA_NODEFER: c_int = 0x4000_0000;
const SA_RESTART: c_int = 0x1000_0000;
const SA_RESETHAND: c_int = 0x8000_0000_u32 as c_int;
/// Bytes of `siginfo_t`.
const INFO_BYTES: u64 = 128;
/// Bytes of `ucontext_t` before the floating-point registers.
const CONTEXT_BYTES: u64 = 424;
const INFO_WORDS: usize = INFO_BYTES as usize / 8;
const CONTEXT_WORDS: usize = CONTEXT_BYTES as usize / 8;
/// Words of a whole `ucontext_t`.
const WHOLE_CONTEXT: usize = 121;
/// Offsets in `ucontext_t`: program counter, flags, address of the floating-point registers, mask.
const PC: usize = 168;
const FLAGS: usize = 176;
const FLOATING_POINT: usize = 224;
const MASK: usize = 296;
/// Offsets in `siginfo_t`.
const CODE: usize = 8;
const ADDRESS: usize = 16;
/// `si_code` of a single step.
const TRAP_TRACE: c_int = 2;
const TRAP_FLAG: u64 = 0x100;
/// Instructions that are watched one by one; then the next hook has to do.
const MOST_STEPS: u32 = 50_000;

/// What the program asked for, per signal.
struct Action {
    /// 0: not the program's, or none.
    handler: AtomicUsize,
    flags: AtomicI32,
    mask: AtomicU64,
}

static ACTIONS: [Action; SIGNALS] = [const {
    Action { handler: AtomicUsize::new(0), flags: AtomicI32::new(0), mask: AtomicU64::new(0) }
}; SIGNALS];

/// A thread's signal that waits for a place to be handled at. Zeros are the state of a new thread.
#[derive(Clone, Copy)]
pub struct State {
    /// The signal; 0 for none.
    waiting: c_int,
    /// The thread is in single-step mode.
    stepping: bool,
    /// It was, and a gate that it came to meanwhile may bring the trap flag back with the flags that it kept.
    stepped: bool,
    steps: u32,
    /// The thread's mask as it was.
    mask: u64,
    info: [u64; INFO_WORDS],
    context: [u64; CONTEXT_WORDS],
}

/// Where a handler runs, as the log tells of it.
#[derive(Clone, Copy)]
pub enum Place {
    /// Right behind the choices of a region, which were written last.
    RegionEnd,
    /// Before the instruction that caused the fault, at this address.
    Fault(u64),
    /// In code that is not instrumented, or before the next entry.
    Elsewhere,
}

impl Place {
    /// Two words of the event, the second an address.
    fn words(self) -> [u64; 2] {
        match self {
            Self::RegionEnd => [SIGNAL_AT_REGION_END, 0],
            Self::Fault(address) => [SIGNAL_AT_FAULT, address],
            Self::Elsewhere => [SIGNAL_ELSEWHERE, 0],
        }
    }
}

fn bit(signal: c_int) -> u64 {
    1u64.checked_shl((signal - 1) as u32).unwrap_or(0)
}

fn action(signal: c_int) -> Option<&'static Action> {
    usize::try_from(signal).ok().filter(|&signal| signal != 0).and_then(|n| ACTIONS.get(n))
}

fn is_fault(signal: c_int) -> bool {
    [sys::SIGSEGV, sys::SIGBUS, sys::SIGFPE, sys::SIGILL, sys::SIGTRAP].contains(&signal)
}

fn without_faults(mut mask: [u64; 16]) -> [u64; 16] {
    mask[0] &= !faults();
    mask
}

/// The bits of the signals that faults make, in a set.
fn faults() -> u64 {
    (1..).take(SIGNALS - 1).filter(|signal| is_fault(*signal)).map(bit).sum()
}

/// Does this process put its handler in front of the program's?
fn wanted() -> bool {
    process::recording() || schedule::active()
}

/// A word of the kernel's structures.
unsafe fn word(place: *const u8, offset: usize) -> u64 {
    // SAFETY: the caller's structure has that field.
    unsafe { place.add(offset).cast::<u64>().read() }
}

unsafe fn set_word(place: *mut u8, offset: usize, value: u64) {
    // SAFETY: the caller's structure has that field.
    unsafe { place.add(offset).cast::<u64>().write(value) }
}

/// The handler that the kernel calls.
unsafe extern "C" fn arrived(signal: c_int, info: *mut u8, context: *mut u8) {
    // SAFETY: the kernel gives both structures, and the record is the calling thread's own.
    unsafe {
        let code = info.add(CODE).cast::<c_int>().read();
        if signal == sys::SIGTRAP && stepped(code, context) {
            return;
        }
        let thread = *tls::thread_slot();
        let fault = code > 0 && is_fault(signal);
        if thread.is_null() || fault || may_interrupt(thread, word(context, PC)) {
            let place = if fault { Place::Fault(word(info, ADDRESS)) } else { Place::Elsewhere };
            handle(thread, signal, info, context, place);
        } else {
            wait(thread, signal, info, context);
        }
    }
}

/// Can a handler run at that place without harm to the streams, and known to be there?
unsafe fn may_interrupt(thread: *mut Thread, pc: u64) -> bool {
    // SAFETY: the record is the calling thread's own.
    let (inside, waits) = unsafe {
        let gate = &raw const (*thread).gate;
        (read_volatile(&raw const (*gate).inside), read_volatile(&raw const (*gate).waits))
    };
    waits || !inside && (!modules::instrumented(pc) || modules::in_system_call(pc))
}

/// Puts the signal off.
unsafe fn wait(thread: *mut Thread, signal: c_int, info: *mut u8, context: *mut u8) {
    // SAFETY: as for `arrived`.
    unsafe {
        let state = &raw mut (*thread).signals;
        for index in 0..INFO_WORDS {
            (*state).info[index] = word(info, index * 8);
        }
        for index in 0..CONTEXT_WORDS {
            (*state).context[index] = word(context, index * 8);
        }
        (*state).mask = word(context, MASK);
        let faults = bit(sys::SIGSEGV) | bit(sys::SIGBUS) | bit(sys::SIGFPE);
        let open = faults | bit(sys::SIGILL) | bit(sys::SIGTRAP);
        set_word(context, MASK, !open);
        write_volatile(&raw mut (*state).waiting, signal);
        poke(thread);
        if process::recording() && !read_volatile(&raw const (*thread).gate.inside) {
            (*state).steps = 0;
            (*state).stepping = true;
            set_word(context, FLAGS, word(context, FLAGS) | TRAP_FLAG);
        }
    }
}

unsafe fn poke(thread: *mut Thread) {
    // SAFETY: the caller's record is its own.
    unsafe { write_volatile(&raw mut (*(*thread).control).path_limit, 0) };
}

/// Was this trap a single step of [`wait`]'s?
pub unsafe fn stepped(code: c_int, context: *mut u8) -> bool {
    // SAFETY: as for `arrived`.
    unsafe {
        let thread = *tls::thread_slot();
        if code != TRAP_TRACE || thread.is_null() {
            return false;
        }
        let state = &raw mut (*thread).signals;
        if !(*state).stepping {
            let brought_back = core::mem::take(&mut (*state).stepped);
            if brought_back {
                set_word(context, FLAGS, word(context, FLAGS) & !TRAP_FLAG);
            }
            return brought_back;
        }
        (*state).steps += 1;
        let over = (*state).waiting == 0
            || (*state).steps > MOST_STEPS
            || read_volatile(&raw const (*thread).gate.inside);
        let leaves = !over && may_interrupt(thread, word(context, PC));
        if over || leaves {
            (*state).stepping = false;
            (*state).stepped = true;
            set_word(context, FLAGS, word(context, FLAGS) & !TRAP_FLAG);
        }
        if leaves {
            set_word(context, MASK, (*state).mask);
            deliver(thread, Place::Elsewhere);
        }
        true
    }
}

/// Does a signal wait to be handled?
pub unsafe fn waits(thread: *mut Thread) -> bool {
    // SAFETY: the record is the calling thread's own.
    unsafe { read_volatile(&raw const (*thread).signals.waiting) != 0 }
}

/// The thread leaves the scheduler: a signal that waits is due.
pub unsafe fn left_scheduler(thread: *mut Thread) {
    // SAFETY: the record is the calling thread's own.
    unsafe {
        if waits(thread) {
            poke(thread);
        }
    }
}

/// Signals that stay open in a new thread although its creator blocked all: SIGKILL and SIGSTOP,
/// and the two that glibc uses itself.
const NEVER_BLOCKED: u64 = 1 << (9 - 1) | 1 << (19 - 1) | 1 << (32 - 1) | 1 << (33 - 1);

/// Creates a thread, which gets no signals before it is known.
pub unsafe fn starting(child: *mut Thread, create: impl FnOnce() -> c_int) -> c_int {
    if !wanted() {
        return create();
    }
    let mask = sys::set_signal_mask(u64::MAX);
    // SAFETY: the record is handed over by `create`.
    unsafe { (*child).signals.mask = mask };
    let result = create();
    sys::set_signal_mask(mask);
    result
}

/// The new thread is known, and gets the mask that it would have had: its creator's, or that of
/// the attributes it was created with.
pub unsafe fn started(thread: *mut Thread) {
    if !wanted() {
        return;
    }
    // SAFETY: the record is the calling thread's own.
    let inherited = sys::set_signal_mask(unsafe { (*thread).signals.mask });
    if inherited | NEVER_BLOCKED != u64::MAX {
        sys::set_signal_mask(inherited);
    }
}

/// In a child of `fork` nothing waits.
pub unsafe fn forget(thread: *mut Thread) {
    // SAFETY: the record is the calling thread's own.
    unsafe { (*thread).signals.waiting = 0 };
}

/// Handles the signal that waits. The mask is afterwards what it was before the signal.
pub unsafe fn deliver(thread: *mut Thread, place: Place) {
    // SAFETY: the record is the calling thread's own; the copies live through the handler.
    unsafe {
        let state = &raw mut (*thread).signals;
        let signal = (*state).waiting;
        let mask = (*state).mask;
        let mut info = (*state).info;
        let mut context = [0u64; WHOLE_CONTEXT];
        for (place, word) in context.iter_mut().zip((*state).context) {
            *place = word;
        }
        // The floating-point registers were not kept.
        context[FLOATING_POINT / 8] = 0;
        let Some(action) = action(signal) else { return };
        let own =
            if action.flags.load(Ordering::Acquire) & SA_NODEFER == 0 { bit(signal) } else { 0 };
        write_volatile(&raw mut (*state).waiting, 0);
        // One that comes when a mask is set waits as well where a region has ended: the log has to tell that
        // it was handled there, too.
        let inside = &raw mut (*thread).gate.inside;
        let was_inside = read_volatile(inside);
        let waits = was_inside || matches!(place, Place::RegionEnd);
        write_volatile(inside, waits);
        sys::set_signal_mask(mask | own | action.mask.load(Ordering::Acquire) & !faults());
        write_volatile(inside, was_inside);
        handle(thread, signal, info.as_mut_ptr().cast(), context.as_mut_ptr().cast(), place);
        write_volatile(inside, waits);
        sys::set_signal_mask(mask);
        write_volatile(inside, was_inside);
    }
}

/// Takes the mark away that one function has left for another.
unsafe fn take_called(thread: *mut Thread) -> (u64, u64) {
    // SAFETY: the caller's record is its own.
    unsafe {
        let control = (*thread).control;
        let called_as = &raw mut (*control).called_as;
        let there = (read_volatile(&raw const (*control).called), read_volatile(called_as));
        write_volatile(called_as, 0);
        there
    }
}

/// Calls the program's handler, with entries around it.
unsafe fn handle(
    thread: *mut Thread,
    signal: c_int,
    info: *mut u8,
    context: *mut u8,
    place: Place,
) {
    let Some(action) = action(signal) else { return };
    let handler = action.handler.load(Ordering::Acquire);
    if handler == SIG_DFL || handler == SIG_IGN {
        return;
    }
    let flags = action.flags.load(Ordering::Acquire);
    let with_info = flags & sys::SA_SIGINFO != 0;
    // SAFETY: as for `arrived`; the handler is what the program gave for this signal, and has the
    // type that its flags say.
    unsafe {
        // The kernel is not asked to: what ends the process next has to be seen.
        if flags & SA_RESETHAND != 0 {
            let default = SignalAction { handler: SIG_DFL, mask: [0; 16], flags: 0, restorer: 0 };
            change(signal, &default, null_mut());
        }
        let crash = signals::crash(signal, info, context).filter(crashes::begin);
        let live = !thread.is_null() && (*thread).live;
        // Whom the interrupted code was about to call, or who came back, is none of the handler's.
        let called = (!thread.is_null()).then(|| take_called(thread));
        if live {
            let [place, address] = place.words();
            let begin =
                [signal as u64, handler as u64, place, address, info as u64, context as u64];
            streams::event(thread, RuntimeEvent::SignalBegin, &begin);
            if crash.is_some() {
                streams::reading_in_call(thread);
            }
            if with_info {
                writes::__symbiosis_external_write(info.cast(), INFO_BYTES);
                writes::__symbiosis_external_write(context.cast(), CONTEXT_BYTES);
            }
        }
        if with_info {
            let handler: unsafe extern "C" fn(c_int, *mut u8, *mut u8) =
                core::mem::transmute(handler);
            handler(signal, info, context);
        } else {
            let handler: unsafe extern "C" fn(c_int) = core::mem::transmute(handler);
            handler(signal);
        }
        if let Some(crash) = crash {
            crashes::left();
            // What the C library has complained of ends the process, whatever the handler does.
            if signal == sys::SIGABRT && !crash.message.as_bytes().is_empty() {
                process::note(crash.kind, &crash.failure(), || crash.moment);
            }
        }
        if let Some((called, called_as)) = called {
            write_volatile(&raw mut (*(*thread).control).called, called);
            write_volatile(&raw mut (*(*thread).control).called_as, called_as);
        }
        if live {
            streams::event(thread, RuntimeEvent::SignalEnd, &[signal as u64]);
        }
    }
}

/// What `sigaction` does for the program.
unsafe fn change(signal: c_int, new: *const SignalAction, old: *mut SignalAction) -> c_int {
    let Some(action) = action(signal).filter(|_| wanted()) else {
        // SAFETY: the caller's arguments.
        return unsafe { sys::sigaction(signal, new, old) };
    };
    let before = SignalAction {
        handler: action.handler.load(Ordering::Acquire),
        mask: {
            let mut mask = [0; 16];
            mask[0] = action.mask.load(Ordering::Acquire);
            mask
        },
        flags: action.flags.load(Ordering::Acquire),
        restorer: 0,
    };
    // SAFETY: null, or the caller's structure.
    let new = unsafe { new.as_ref() };
    let ours = before.handler != SIG_DFL;
    let result = match new {
        None => {
            // SAFETY: the caller's pointer.
            unsafe { sys::sigaction(signal, null(), old) }
        }
        Some(new) if new.handler == SIG_DFL || new.handler == SIG_IGN => {
            let plain = new.handler == SIG_DFL && signals::catches(signal);
            // SAFETY: the caller's pointers.
            let result = unsafe {
                if plain { signals::catch(signal, old) } else { sys::sigaction(signal, new, old) }
            };
            if result == 0 {
                action.handler.store(SIG_DFL, Ordering::Release);
            }
            result
        }
        Some(new) => {
            // Set first: the signal may come before the kernel's call returns.
            action.flags.store(new.flags, Ordering::Release);
            action.mask.store(new.mask[0], Ordering::Release);
            action.handler.store(new.handler, Ordering::Release);
            let on_stack = if is_fault(signal) { new.flags & sys::SA_ONSTACK } else { 0 };
            let front = SignalAction {
                handler: arrived as *const () as usize,
                mask: without_faults(new.mask),
                flags: new.flags & !(sys::SA_ONSTACK | SA_RESETHAND) | on_stack | sys::SA_SIGINFO,
                restorer: 0,
            };
            // SAFETY: the pointers are to live structures.
            let result = unsafe { sys::sigaction(signal, &front, old) };
            if result != 0 {
                action.handler.store(before.handler, Ordering::Release);
                action.mask.store(before.mask[0], Ordering::Release);
                action.flags.store(before.flags, Ordering::Release);
            }
            result
        }
    };
    // SAFETY: null, or the caller's structure.
    if let (0, Some(old)) = (result, unsafe { old.as_mut() }) {
        let front = old.handler == arrived as *const () as usize;
        if front && ours {
            *old = before;
        } else if signals::is_own(old.handler) {
            *old = SignalAction { handler: SIG_DFL, mask: [0; 16], flags: 0, restorer: 0 };
        }
    }
    result
}

unsafe fn simple(signal: c_int, handler: usize, flags: c_int, masked: bool) -> usize {
    let mut mask = [0; 16];
    if masked {
        mask[0] = bit(signal);
    }
    let new = SignalAction { handler, mask, flags, restorer: 0 };
    let mut old = SignalAction { handler: 0, mask: [0; 16], flags: 0, restorer: 0 };
    // SAFETY: both are live.
    if unsafe { change(signal, &new, &mut old) } == 0 { old.handler } else { SIG_ERR }
}

/// Takes the signals of faults out of the calling thread's mask, as [`change_mask`] leaves them out of it: threads that
/// the C library makes for timers begin with all signals blocked.
pub fn unblock_faults() {
    if wanted() {
        let set = faults();
        // SAFETY: a live set; only the calling thread's mask changes.
        unsafe { sys::change_signal_mask(SIG_UNBLOCK, &raw const set, null_mut()) };
    }
}

/// What `pthread_sigmask` does for the program. A fault that is blocked ends the process at once, without a
/// word of what it was; threads that leave all signals to another one block it with the others.
unsafe fn change_mask(how: c_int, new: *const u64, old: *mut u64) -> c_int {
    let takes_away = how == SIG_UNBLOCK;
    // SAFETY: null, or the caller's set.
    let mut mask = unsafe { new.as_ref() }.copied();
    if let Some(mask) = &mut mask {
        *mask &= !LIBRARY_SIGNALS;
        if wanted() && !takes_away {
            *mask &= !faults();
        }
    }
    let new = mask.as_ref().map_or(null(), |mask| &raw const *mask);
    // SAFETY: a live set or null, and the caller's.
    unsafe { sys::change_signal_mask(how, new, old) }
}

interpose! {
    fn pthread_sigmask(how: c_int, new: *const u64, old: *mut u64) -> c_int {
        change_mask(how, new, old)
    }

    fn sigprocmask(how: c_int, new: *const u64, old: *mut u64) -> c_int {
        match change_mask(how, new, old) {
            0 => 0,
            error => {
                sys::set_errno(error);
                -1
            }
        }
    }

    fn sigaction(signal: c_int, new: *const SignalAction, old: *mut SignalAction) -> c_int {
        change(signal, new, old)
    }

    fn signal(signal: c_int, handler: usize) -> usize {
        simple(signal, handler, SA_RESTART, true)
    }

    fn ssignal(signal: c_int, handler: usize) -> usize {
        simple(signal, handler, SA_RESTART, true)
    }

    fn sysv_signal(signal: c_int, handler: usize) -> usize {
        simple(signal, handler, SA_RESETHAND | SA_NODEFER, false)
    }

    fn __sysv_signal(signal: c_int, handler: usize) -> usize {
        simple(signal, handler, SA_RESETHAND | SA_NODEFER, false)
    }
}
