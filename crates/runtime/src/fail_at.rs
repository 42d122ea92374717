//! `record --fail-at FILE:LINE`: a trap where the line's code begins. The recorder has read the
//! places from the executable's line table; a thread that comes to one has failed.

use crate::layout::GATE_NOP;
use crate::memory::{self, List};
use crate::sys::{self, ObjectInfo};
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

const PAGE: u64 = 4096;
const TRAP: u8 = 0xcc;
/// A line has no more places than this; one in a template may have many.
const MOST: usize = 4096;

/// What is planted.
struct Planted {
    /// `file:line`.
    name: &'static [u8],
    places: List<u64>,
}

static PLANTED: AtomicPtr<Planted> = AtomicPtr::new(null_mut());

unsafe extern "C" fn first_object(info: *const ObjectInfo, _: usize, base: *mut c_void) -> c_int {
    // SAFETY: the dynamic linker gives the structure, and `plant` the place for the result.
    unsafe { base.cast::<u64>().write((*info).base) };
    // The executable is the first of all.
    1
}

/// Plants the traps. False when the text is malformed or the code cannot be changed.
#[must_use]
pub fn plant(text: &[u8]) -> bool {
    let Some(at) = text.iter().rposition(|&byte| byte == b'=') else { return false };
    let (name, offsets) = (text.get(..at), text.get(at + 1..));
    let (Some(name), Some(offsets)) = (name.and_then(memory::copy), offsets) else { return false };
    let mut base = 0_u64;
    // SAFETY: the visitor writes one word.
    unsafe { sys::dl_iterate_phdr(first_object, (&raw mut base).cast()) };
    let Some(mut places) = List::with_room(MOST) else { return false };
    for offset in offsets.split(|&byte| byte == b',') {
        let Some(offset) = hexadecimal(offset) else { return false };
        // SAFETY: the line table names an instruction of the executable, which is all loaded.
        match unsafe { plant_one(base.wrapping_add(offset)) } {
            Some(place) if places.push(place) => {}
            _ => return false,
        }
    }
    let Some(planted) = memory::keep(Planted { name, places }) else { return false };
    PLANTED.store(core::ptr::from_ref(planted).cast_mut(), Ordering::Release);
    true
}

fn hexadecimal(digits: &[u8]) -> Option<u64> {
    let text = core::str::from_utf8(digits).ok()?;
    u64::from_str_radix(text, 16).ok()
}

/// A gate stays whole, since it may be opened yet: the trap comes behind it.
unsafe fn plant_one(address: u64) -> Option<u64> {
    // SAFETY: the caller vouches for the address; the process has one thread.
    unsafe {
        let gate = (address as *const [u8; GATE_NOP.len()]).read_unaligned() == GATE_NOP;
        let place = if gate { address + GATE_NOP.len() as u64 } else { address };
        let page = place & !(PAGE - 1);
        if sys::mprotect(page as *mut _, PAGE as usize, sys::PROT_ALL) != 0 {
            return None;
        }
        (place as *mut u8).write_volatile(TRAP);
        sys::mprotect(page as *mut _, PAGE as usize, sys::PROT_READ_EXEC);
        Some(place)
    }
}

/// `file:line`, when the trap before this program counter is a planted one.
#[must_use]
pub fn reached(pc: u64) -> Option<&'static [u8]> {
    // SAFETY: null, or what `plant` keeps for ever.
    let planted = unsafe { PLANTED.load(Ordering::Acquire).as_ref() }?;
    planted.places.as_slice().contains(&pc.wrapping_sub(1)).then_some(planted.name)
}
