//! Gates: opening them when their module registers, and what happens at an open one.
//!
//! A closed gate is a five-byte `nop`. Opened, it is a call of the module's thunk, which jumps to
//! `__symbiosis_gate` or, where the schedule names the site, to `__symbiosis_gate_anchor`. The
//! first only counts as long as [`Control::gates`] is below [`Control::gate_stop`]; otherwise, and
//! for anchors always, [`__symbiosis_gate_reached`] is called with all registers saved, and counts
//! when the scheduler lets the thread go on.

use crate::avoid;
use crate::handlers;
use crate::layout::{Control, GATE_NOP, ModuleDescriptor, SiteEntry};
use crate::memory::{self, List};
use crate::noise;
use crate::order;
use crate::report;
use crate::schedule;
use crate::script::Script;
use crate::sys;
use crate::text::Text;
use crate::threads::Thread;
use crate::tls;
use core::ffi::c_int;
use core::ptr::{null_mut, write_volatile};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

/// What the runtime keeps per thread for its gates. Zeros are the state of a new thread.
#[derive(Clone, Copy, Default)]
pub struct State {
    /// The thread is inside the scheduler: gates that a signal handler passes meanwhile are only
    /// counted. See [`enter`].
    pub inside: bool,
    /// The thread is inside the scheduler because it waits in a call of its own: a signal handler
    /// may be what ends the wait.
    pub waits: bool,
    /// State of the thread's random numbers.
    pub random: u64,
    /// The avoidance rules, one bit each, behind whose entries the thread is again when the wait on
    /// a condition variable is over that it is in.
    pub suspended: u32,
}

/// Bytes of a gate.
const GATE: u64 = GATE_NOP.len() as u64;
/// Bytes between the two entries of a module's thunk.
const ANCHOR_ENTRY: u64 = 16;
const PAGE: u64 = 4096;

static WANTED: AtomicBool = AtomicBool::new(false);
/// Only those that avoidance rules name.
static NAMED_ONLY: AtomicBool = AtomicBool::new(false);
static SCRIPT: AtomicPtr<Script> = AtomicPtr::new(null_mut());
static OBJECTS: AtomicPtr<Object> = AtomicPtr::new(null_mut());

/// The opened gates of an executable or library. Published once and never changed.
struct Object {
    next: *mut Object,
    /// Where its section begins, which tells objects apart.
    begin: *const SiteEntry,
    /// Address and site of each gate, sorted.
    gates: &'static [(u64, u64)],
}

/// Makes modules that register from now on open their gates. To be called once.
pub fn start(script: Option<&'static Script>) {
    registers::choose();
    if let Some(script) = script {
        SCRIPT.store(core::ptr::from_ref(script).cast_mut(), Ordering::Release);
    }
    WANTED.store(true, Ordering::Release);
}

/// As [`start`], but only the gates that avoidance rules name are opened.
pub fn start_named() {
    NAMED_ONLY.store(true, Ordering::Release);
    start(None);
}

/// Does this process open its gates, that is, was a schedule or noise asked for?
#[must_use]
pub fn wanted() -> bool {
    WANTED.load(Ordering::Acquire)
}

/// The schedule to follow.
#[must_use]
pub fn script() -> Option<&'static Script> {
    // SAFETY: null, or what `start` got.
    unsafe { SCRIPT.load(Ordering::Acquire).as_ref() }
}

/// Marks the calling thread as inside the scheduler; false when it is already, because a signal
/// handler interrupted it there: then the caller must pass the scheduler by, and not [`leave`].
///
/// # Safety
///
/// `thread` is the calling thread's own record.
#[must_use]
pub unsafe fn enter(thread: *mut Thread) -> bool {
    // SAFETY: the caller vouches for the record. Volatile, because a signal handler looks.
    unsafe {
        let inside = &raw mut (*thread).gate.inside;
        let free = !core::ptr::read_volatile(inside);
        write_volatile(inside, true);
        free
    }
}

/// The end of what [`enter`] began.
///
/// # Safety
///
/// As for [`enter`], which must have returned true.
pub unsafe fn leave(thread: *mut Thread) {
    // SAFETY: the caller vouches for the record.
    unsafe {
        write_volatile(&raw mut (*thread).gate.inside, false);
        handlers::left_scheduler(thread);
    }
}

/// In a child of `fork`: its gates do nothing from now on, and the report and the order are the
/// parent's. A control page that is still shared with the parent is left alone.
pub fn forked() {
    WANTED.store(false, Ordering::Release);
    report::forget();
    order::forget();
    noise::forget();
    avoid::forget();
    // SAFETY: the record is the calling thread's own.
    unsafe {
        let thread = *tls::thread_slot();
        if !thread.is_null() {
            (*thread).gate.inside = false;
            (*thread).gate.waits = false;
            if !(*thread).live {
                write_volatile(&raw mut (*(*thread).control).gate_stop, u64::MAX);
            }
        }
    }
}

/// The slow path of a gate, called by the two entries. The gate counts when the thread goes on.
///
/// # Safety
///
/// Only called by the entries, with the address behind the gate.
#[cfg_attr(symbiosis_export, unsafe(no_mangle))]
pub unsafe extern "C" fn __symbiosis_gate_reached(return_address: u64) {
    // SAFETY: the record is the calling thread's own, and there is always a control page.
    unsafe {
        let thread = *tls::thread_slot();
        if wanted() && !thread.is_null() {
            let site = site_at(return_address);
            avoid::arrive(thread, site);
            if enter(thread) {
                sys::keeping_errno(|| {
                    if schedule::active() {
                        schedule::at_gate(thread, site);
                    } else {
                        noise::at_gate(thread);
                    }
                });
                leave(thread);
                avoid::pass(thread, site);
            }
        }
        // One instruction, as in the fast path, because a signal handler counts too.
        let control: *mut Control = *tls::control_slot();
        AtomicU64::from_ptr(&raw mut (*control).gates).fetch_add(1, Ordering::Relaxed);
    }
}

/// The site of the gate whose call returns to this address; 0 when there is none.
#[must_use]
pub fn site_at(return_address: u64) -> u64 {
    let gate = return_address.wrapping_sub(GATE);
    let mut object = OBJECTS.load(Ordering::Acquire);
    while !object.is_null() {
        // SAFETY: published objects stay.
        let (gates, next) = unsafe { ((*object).gates, (*object).next) };
        if let Some(site) = lookup(gates, gate) {
            return site;
        }
        object = next;
    }
    0
}

fn lookup(gates: &[(u64, u64)], gate: u64) -> Option<u64> {
    let index = gates.binary_search_by_key(&gate, |(address, _)| *address).ok()?;
    gates.get(index).map(|(_, site)| *site)
}

/// Opens the gates of the object that a registering module is linked into, unless another of its
/// modules did it before.
///
/// # Safety
///
/// The descriptor's sites must be those of its object, whose code nobody runs yet.
pub unsafe fn open(module: &ModuleDescriptor) {
    if !wanted() || module.sites_begin.is_null() || module.gate.is_null() {
        return;
    }
    // SAFETY: the caller vouches for the sites.
    let gates = unsafe {
        if is_open(module.sites_begin) {
            return;
        }
        list(module)
    };
    let Some(gates) = gates else { return report::problem(NO_MEMORY) };
    if gates.is_empty() {
        return;
    }
    let object = Object { next: null_mut(), begin: module.sites_begin, gates };
    let Some(object) = memory::keep(object) else { return report::problem(NO_MEMORY) };
    // The table first: once a gate is open it may be passed.
    publish(core::ptr::from_ref(object).cast_mut());
    // SAFETY: the gates lie in the object's code.
    let (skipped, error) = unsafe { patch(gates, module.gate as u64) };
    if error != 0 || skipped != 0 {
        let mut text = Text::<256>::new();
        text.push_decimal(skipped).push(b" of ").push_decimal(gates.len() as u64);
        text.push(b" gates cannot be opened, the run goes on without them: ");
        if error != 0 {
            text.push(b"the code cannot be made writable (errno ");
            text.push_decimal(error as u64).push(b")");
        } else {
            text.push(b"they are not as the instrumenter made them; rebuild the program");
        }
        report::problem(text.as_bytes());
    }
}

const NO_MEMORY: &[u8] = b"there is no memory to open the gates; the run goes on without them";

/// Were the gates of the object opened? Its place may be that of a library that was unloaded since:
/// then the first gate is closed.
unsafe fn is_open(begin: *const SiteEntry) -> bool {
    let mut object = OBJECTS.load(Ordering::Acquire);
    while !object.is_null() {
        // SAFETY: published objects stay, and the section at `begin` is that of a loaded object.
        unsafe {
            if (*object).begin == begin {
                return *(gate_of(begin) as *const [u8; 5]) != GATE_NOP;
            }
            object = (*object).next;
        }
    }
    false
}

unsafe fn gate_of(entry: *const SiteEntry) -> u64 {
    // SAFETY: the caller vouches for the entry; its offset counts from the field's own address,
    // which is the entry's.
    unsafe {
        let offset = (&raw const (*entry).offset).read_unaligned();
        (entry as u64).wrapping_add_signed(i64::from(offset))
    }
}

/// The gates of the object by address.
unsafe fn list(module: &ModuleDescriptor) -> Option<&'static [(u64, u64)]> {
    let bytes = (module.sites_end as usize).saturating_sub(module.sites_begin as usize);
    let count = bytes / size_of::<SiteEntry>();
    let mut gates = List::with_room(count)?;
    for index in 0..count {
        // SAFETY: the section has `count` entries.
        unsafe {
            let entry = module.sites_begin.add(index);
            gates.push((gate_of(entry), (&raw const (*entry).site).read_unaligned()));
        }
    }
    gates.as_mut_slice().sort_unstable();
    Some(gates.as_slice())
}

fn publish(object: *mut Object) {
    let mut head = OBJECTS.load(Ordering::Relaxed);
    loop {
        // SAFETY: the object is this thread's until it is in the list.
        unsafe { (*object).next = head };
        match OBJECTS.compare_exchange_weak(head, object, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => return,
            Err(now) => head = now,
        }
    }
}

/// Opens gates, run of pages by run of pages. Gives how many could not be opened, and the `errno`
/// if that was because of their pages.
unsafe fn patch(mut gates: &[(u64, u64)], thunk: u64) -> (u64, c_int) {
    let (mut skipped, mut failed) = (0, 0);
    while let Some(&(first, _)) = gates.first() {
        let start = first & !(PAGE - 1);
        let mut end = start;
        let mut count = 0;
        for &(gate, _) in gates {
            if count != 0 && gate & !(PAGE - 1) > end {
                break;
            }
            end = (gate + GATE).next_multiple_of(PAGE);
            count += 1;
        }
        let (run, rest) = gates.split_at_checked(count).unwrap_or((gates, &[]));
        gates = rest;
        // SAFETY: the pages are the object's own code. They stay executable all the while: this
        // very code may lie in them.
        unsafe {
            let (at, length) = (start as *mut _, (end - start) as usize);
            if sys::mprotect(at, length, sys::PROT_ALL) != 0 {
                failed = sys::errno();
                skipped += run.len() as u64;
                continue;
            }
            let all = !NAMED_ONLY.load(Ordering::Relaxed);
            for &(gate, site) in run.iter().filter(|(_, site)| all || avoid::is_named(*site)) {
                skipped += u64::from(!open_one(gate, site, thunk));
            }
            sys::mprotect(at, length, sys::PROT_READ_EXEC);
        }
    }
    (skipped, failed)
}

/// Writes the call. False when there is not the `nop`, or the thunk is out of reach.
unsafe fn open_one(gate: u64, site: u64, thunk: u64) -> bool {
    let anchor = script().is_some_and(|script| script.is_anchor(site)) || avoid::is_named(site);
    let target = if anchor { thunk + ANCHOR_ENTRY } else { thunk };
    let Ok(distance) = i32::try_from(target.wrapping_sub(gate + GATE) as i64) else {
        return false;
    };
    let [a, b, c, d] = distance.to_le_bytes();
    let place = gate as *mut [u8; 5];
    // SAFETY: the caller made the place writable.
    unsafe {
        if place.read() != GATE_NOP {
            return false;
        }
        place.write([0xe8, a, b, c, d]);
    }
    true
}

const _: () = assert!(core::mem::offset_of!(Control, gates) == 136);
const _: () = assert!(core::mem::offset_of!(Control, gate_stop) == 144);

// Both entries keep all registers, flags included, and use only the stack below the return
// address; gated functions have no red zone. `lahf` and `seto` keep the status flags in `ax`, as
// `pushf` and `popf` take ten times as long. The call frame information names the caller's
// registers too, for debuggers.
//
// At the slow path the stack holds, from `rbp` up: rbp, flags, rdx, rcx, rax, return address. The
// vector state goes to a 64-byte aligned area below: `xsave` where there is it, else `fxsave`. The
// header of an `xsave` area must be zeros but for what `xsave` writes.
#[cfg(symbiosis_export)]
core::arch::global_asm!(
    ".text",
    ".p2align 4",
    ".globl __symbiosis_gate",
    ".type __symbiosis_gate,@function",
    "__symbiosis_gate:",
    ".cfi_startproc",
    "pushq %rax",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset %rax, -16",
    "pushq %rcx",
    ".cfi_def_cfa_offset 24",
    ".cfi_offset %rcx, -24",
    "pushq %rdx",
    ".cfi_def_cfa_offset 32",
    ".cfi_offset %rdx, -32",
    "lahf",
    "seto %al",
    "movq __symbiosis_control@GOTTPOFF(%rip), %rcx",
    "movq %fs:(%rcx), %rcx",
    "movq 136(%rcx), %rdx",
    "cmpq 144(%rcx), %rdx",
    "jae .Lsymbiosis_gate_slow",
    "incq 136(%rcx)",
    ".Lsymbiosis_gate_back:",
    "addb $0x7f, %al",
    "sahf",
    ".cfi_remember_state",
    "popq %rdx",
    ".cfi_def_cfa_offset 24",
    ".cfi_restore %rdx",
    "popq %rcx",
    ".cfi_def_cfa_offset 16",
    ".cfi_restore %rcx",
    "popq %rax",
    ".cfi_def_cfa_offset 8",
    ".cfi_restore %rax",
    "ret",
    ".cfi_restore_state",
    ".Lsymbiosis_gate_slow:",
    "pushfq",
    ".cfi_def_cfa_offset 40",
    "pushq %rbp",
    ".cfi_def_cfa_offset 48",
    ".cfi_offset %rbp, -48",
    "movq %rsp, %rbp",
    ".cfi_def_cfa_register %rbp",
    "pushq %rax",
    "pushq %rsi",
    ".cfi_offset %rsi, -64",
    "pushq %rdi",
    ".cfi_offset %rdi, -72",
    "pushq %r8",
    ".cfi_offset %r8, -80",
    "pushq %r9",
    ".cfi_offset %r9, -88",
    "pushq %r10",
    ".cfi_offset %r10, -96",
    "pushq %r11",
    ".cfi_offset %r11, -104",
    "cld",
    "movl symbiosisrt_state_size(%rip), %ecx",
    "subq %rcx, %rsp",
    "andq $-64, %rsp",
    "movq 40(%rbp), %rdi",
    "movl symbiosisrt_state_mask(%rip), %eax",
    "movl symbiosisrt_state_mask+4(%rip), %edx",
    "testl %eax, %eax",
    "jz 2f",
    "xorl %ecx, %ecx",
    "movq %rcx, 512(%rsp)",
    "movq %rcx, 520(%rsp)",
    "movq %rcx, 528(%rsp)",
    "movq %rcx, 536(%rsp)",
    "movq %rcx, 544(%rsp)",
    "movq %rcx, 552(%rsp)",
    "movq %rcx, 560(%rsp)",
    "movq %rcx, 568(%rsp)",
    "xsave64 (%rsp)",
    "call __symbiosis_gate_reached@PLT",
    "movl symbiosisrt_state_mask(%rip), %eax",
    "movl symbiosisrt_state_mask+4(%rip), %edx",
    "xrstor64 (%rsp)",
    "jmp 3f",
    "2:",
    "fxsave64 (%rsp)",
    "call __symbiosis_gate_reached@PLT",
    "fxrstor64 (%rsp)",
    "3:",
    "leaq -56(%rbp), %rsp",
    "popq %r11",
    ".cfi_restore %r11",
    "popq %r10",
    ".cfi_restore %r10",
    "popq %r9",
    ".cfi_restore %r9",
    "popq %r8",
    ".cfi_restore %r8",
    "popq %rdi",
    ".cfi_restore %rdi",
    "popq %rsi",
    ".cfi_restore %rsi",
    "popq %rax",
    "popq %rbp",
    ".cfi_def_cfa %rsp, 40",
    ".cfi_restore %rbp",
    "popfq",
    ".cfi_def_cfa_offset 32",
    "jmp .Lsymbiosis_gate_back",
    ".cfi_endproc",
    ".size __symbiosis_gate,.-__symbiosis_gate",
    ".p2align 4",
    ".globl __symbiosis_gate_anchor",
    ".type __symbiosis_gate_anchor,@function",
    "__symbiosis_gate_anchor:",
    ".cfi_startproc",
    "pushq %rax",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset %rax, -16",
    "pushq %rcx",
    ".cfi_def_cfa_offset 24",
    ".cfi_offset %rcx, -24",
    "pushq %rdx",
    ".cfi_def_cfa_offset 32",
    ".cfi_offset %rdx, -32",
    "lahf",
    "seto %al",
    "jmp .Lsymbiosis_gate_slow",
    ".cfi_endproc",
    ".size __symbiosis_gate_anchor,.-__symbiosis_gate_anchor",
    ".data",
    ".p2align 3",
    ".globl symbiosisrt_state_mask",
    ".hidden symbiosisrt_state_mask",
    "symbiosisrt_state_mask: .quad 0",
    ".globl symbiosisrt_state_size",
    ".hidden symbiosisrt_state_size",
    "symbiosisrt_state_size: .long 512",
    ".text",
    options(att_syntax)
);

/// Which vector state the slow path saves, and how much room it takes.
mod registers {
    #[cfg(symbiosis_export)]
    unsafe extern "C" {
        static mut symbiosisrt_state_mask: u64;
        static mut symbiosisrt_state_size: u32;
    }

    /// Chooses, before the first gate is opened.
    pub fn choose() {
        let (mask, size) = state();
        #[cfg(symbiosis_export)]
        // SAFETY: the process has one thread, and no gate is open.
        unsafe {
            symbiosisrt_state_mask = mask;
            symbiosisrt_state_size = size;
        }
        let _ = (mask, size);
    }

    /// The components that the system has switched on, and the bytes of their area. Without
    /// `xsave`: none, and the 512 bytes of `fxsave`.
    pub fn state() -> (u64, u32) {
        const OSXSAVE: u32 = 1 << 27;
        /// The matrix registers: 8 KiB that the runtime never touches.
        const TILES: u64 = 3 << 17;
        /// The legacy part and the header.
        const SMALLEST: u32 = 576;
        if leaf(0, 0).0 < 0xd || leaf(1, 0).2 & OSXSAVE == 0 {
            return (0, 512);
        }
        let (low, high): (u32, u32);
        // SAFETY: OSXSAVE says that the instruction is there.
        unsafe {
            core::arch::asm!(
                "xgetbv",
                in("ecx") 0,
                out("eax") low,
                out("edx") high,
                options(nomem, nostack, preserves_flags)
            );
        }
        let mask = (u64::from(high) << 32 | u64::from(low)) & !TILES;
        let mut size = SMALLEST;
        for component in 2..63 {
            if mask & 1 << component != 0 {
                let (length, offset, _) = leaf(0xd, component);
                size = size.max(offset.saturating_add(length));
            }
        }
        (mask, size)
    }

    /// `eax`, `ebx` and `ecx` of `cpuid`.
    fn leaf(number: u32, part: u32) -> (u32, u32, u32) {
        #[allow(unused_unsafe)]
        // SAFETY: every x86-64 processor has the instruction.
        let found = unsafe { core::arch::x86_64::__cpuid_count(number, part) };
        (found.eax, found.ebx, found.ecx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_gates_themselves_are_found() {
        let gates = [(100, 7), (105, 8), (400, 9)];
        assert_eq!(lookup(&gates, 105), Some(8));
        assert_eq!(lookup(&gates, 400), Some(9));
        assert_eq!(lookup(&gates, 101), None);
        assert_eq!(lookup(&[], 100), None);
        assert_eq!(site_at(105), 0, "nothing is open here");
    }

    #[test]
    fn the_state_has_room_for_what_is_switched_on() {
        let (mask, size) = registers::state();
        assert!(mask == 0 && size == 512 || mask & 3 == 3 && size >= 576, "{mask:x} {size}");
        if std::arch::is_x86_feature_detected!("avx") {
            assert!(mask & 4 != 0 && size >= 832, "{mask:x} {size}");
        }
    }

    #[test]
    fn a_gate_is_opened_once_and_only_where_the_nop_is() {
        let code = sys::anonymous(2 * PAGE as usize) as u64;
        // The second gate lies across the two pages.
        let places = [code + 3, code + PAGE - 2, code + PAGE + 100];
        let gates = [(places[0], 1), (places[1], 2), (places[2], 3)];
        // SAFETY: all of it lies in the fresh pages.
        unsafe {
            (places[0] as *mut [u8; 5]).write(GATE_NOP);
            (places[1] as *mut [u8; 5]).write(GATE_NOP);
            assert_eq!(patch(&gates, code + 64), (1, 0), "the third is none");
            let call = |to: i32, from: i32| {
                let [a, b, c, d] = (to - from - 5).to_le_bytes();
                [0xe8, a, b, c, d]
            };
            assert_eq!((places[0] as *const [u8; 5]).read(), call(64, 3));
            assert_eq!((places[1] as *const [u8; 5]).read(), call(64, 4094));
            assert_eq!((places[2] as *const [u8; 5]).read(), [0; 5]);
            assert_eq!(patch(&gates, code + 64), (3, 0), "nothing is opened twice");
        }
    }
}
