//! Whether an object that the program began with has a symbol of a name for others.
//!
//! The dynamic linker's own search allocates where it finds nothing, for the words that it would complain with. Before the
//! program's constructors have run, a `malloc` of the program's own may not be ready for that.

use crate::sys::{self, ObjectInfo};
use core::ffi::{CStr, c_char, c_int, c_void};

const PT_DYNAMIC: u32 = 2;
const DT_HASH: u64 = 4;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_VERSYM: u64 = 0x6fff_fff0;
const DT_GNU_HASH: u64 = 0x6fff_fef5;

/// In a symbol's version: only who asks for that version gets it.
const OLD_VERSION: u16 = 0x8000;

/// An entry of an object's dynamic section.
#[repr(C)]
struct Dynamic {
    tag: u64,
    value: u64,
}

#[repr(C)]
struct Symbol {
    name: u32,
    info: u8,
    other: u8,
    /// 0 where the object only asks for it.
    section: u16,
    value: u64,
    size: u64,
}

/// The head of a hash table of symbols.
#[repr(C)]
struct Head {
    buckets: u32,
    /// The first symbol in the table.
    first: u32,
    filter: u32,
    shift: u32,
}

struct Search<'a> {
    name: &'a CStr,
    /// Does the executable count, the first of all?
    executable: bool,
    /// How many objects were looked at.
    objects: u32,
    found: bool,
}

/// Has any object a symbol of this name? Yes where that cannot be told.
#[must_use]
pub fn is_anywhere(name: &CStr) -> bool {
    search(name, true)
}

/// The same of all but the executable, in which this code is.
#[must_use]
pub fn is_elsewhere(name: &CStr) -> bool {
    search(name, false)
}

fn search(name: &CStr, executable: bool) -> bool {
    let mut search = Search { name, executable, objects: 0, found: false };
    // SAFETY: the visitor gets back the pointer it is given here.
    unsafe { sys::dl_iterate_phdr(visit, (&raw mut search).cast()) };
    search.found || search.objects < 2
}

unsafe extern "C" fn visit(info: *const ObjectInfo, _: usize, search: *mut c_void) -> c_int {
    // SAFETY: the dynamic linker gives the structure, and `search` the pointer.
    let (info, search) = unsafe { (&*info, &mut *search.cast::<Search<'_>>()) };
    search.objects += 1;
    if search.executable || search.objects > 1 {
        // SAFETY: the object is loaded as long as this runs.
        search.found |= unsafe { has(info, search.name) }.unwrap_or(true);
    }
    c_int::from(search.found)
}

/// None where the object does not say what it has in a way that is known here.
///
/// # Safety
///
/// The object is loaded.
unsafe fn has(info: &ObjectInfo, name: &CStr) -> Option<bool> {
    // SAFETY: an object that is loaded has its headers, its dynamic section and what that names in memory, in the
    // format of the System V ABI.
    unsafe {
        let headers = core::slice::from_raw_parts(info.headers, usize::from(info.count));
        let header = headers.iter().find(|header| header.kind == PT_DYNAMIC)?;
        let mut entry = info.base.wrapping_add(header.address) as *const Dynamic;
        let (mut texts, mut symbols, mut versions, mut hashes, mut older) = (0, 0, 0, 0, 0);
        while (*entry).tag != 0 {
            let value = (*entry).value;
            // The dynamic linker has made addresses of most, but not of those that it cannot write to.
            let address = if value < info.base { value.wrapping_add(info.base) } else { value };
            match (*entry).tag {
                DT_STRTAB => texts = address,
                DT_SYMTAB => symbols = address,
                DT_GNU_HASH => hashes = address,
                DT_VERSYM => versions = address,
                DT_HASH => older = address,
                _ => {}
            }
            entry = entry.add(1);
        }
        if texts == 0 || symbols == 0 {
            return None;
        }
        let symbols = symbols as *const Symbol;
        let is_it = |at: usize| {
            let symbol = &*symbols.add(at);
            let text = (texts + u64::from(symbol.name)) as *const c_char;
            let hidden = versions != 0 && *(versions as *const u16).add(at) & OLD_VERSION != 0;
            symbol.section != 0 && !hidden && CStr::from_ptr(text) == name
        };
        if hashes == 0 {
            // The older table says how many symbols there are; the kernel's object has a few.
            let counts = older as *const u32;
            return (older != 0).then(|| (0..*counts.add(1) as usize).any(is_it));
        }
        let head = &*(hashes as *const Head);
        let filter = (hashes as *const Head).add(1).cast::<u64>();
        let buckets = filter.add(head.filter as usize).cast::<u32>();
        let chains = buckets.add(head.buckets as usize);
        let hash = hash(name);
        let bits = 1 << (hash % 64) | 1 << (hash.checked_shr(head.shift).unwrap_or(0) % 64);
        let word: u64 = *filter.add((hash / 64).checked_rem(head.filter)? as usize);
        if word & bits != bits {
            return Some(false);
        }
        let mut at = *buckets.add(hash.checked_rem(head.buckets)? as usize);
        while at >= head.first {
            let other = *chains.add((at - head.first) as usize);
            if other | 1 == hash | 1 && is_it(at as usize) {
                return Some(true);
            }
            if other & 1 != 0 {
                break;
            }
            at += 1;
        }
        Some(false)
    }
}

fn hash(name: &CStr) -> u32 {
    let bytes = name.to_bytes().iter();
    bytes.fold(5381, |hash: u32, byte| hash.wrapping_mul(33).wrapping_add(u32::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_libraries_have_is_found() {
        for name in [c"pthread_mutex_lock", c"malloc", c"pthread_cond_wait", c"clock_gettime"] {
            assert!(is_elsewhere(name) && is_anywhere(name), "{name:?}");
        }
    }

    #[test]
    fn what_no_library_has_is_not() {
        for name in [c"symbiosis_has_no_such_function", c"", c"_ZN3foo3barEv", c"pthread_yield"] {
            assert!(!is_elsewhere(name) && !is_anywhere(name), "{name:?}");
        }
    }
}
