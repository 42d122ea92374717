//! Libraries that come where others were: `dlopen` after `dlclose` gives variables their first
//! values again, which no instrumented instruction says. The thread that loads logs them as a write
//! of uninstrumented code.

use crate::memory;
use crate::sys::{self, ObjectInfo};
use crate::writes;
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

static LOADED: AtomicPtr<Loaded> = AtomicPtr::new(null_mut());

/// A module that was registered at some time.
struct Loaded {
    next: *mut Loaded,
    /// Its descriptor.
    place: u64,
    /// The variables of its executable or library.
    data: Data,
    /// How often it was registered.
    count: AtomicU32,
    /// In which of these times the variables were logged last.
    logged: AtomicU32,
}

/// Notes that the module with this descriptor registers, and logs the variables of its executable
/// or library when another one had this place, or this one had it before.
///
/// # Safety
///
/// The descriptor must be that of a loaded module, of which no instrumented code ran since it was
/// loaded. Constructors run one after the other, so this does, too.
pub unsafe fn register(place: u64) {
    let data = Data::around(place);
    let mut count = 1;
    let mut own = None;
    let mut other = false;
    for module in loaded() {
        if module.place == place {
            count = module.count.fetch_add(1, Ordering::Relaxed) + 1;
            own = Some(module);
        }
        other |= module.data.overlaps(&data) && !module.data.equals(&data);
    }
    let same = |module: &&Loaded| module.data.equals(&data);
    let done = loaded().filter(same).any(|module| module.logged.load(Ordering::Relaxed) >= count);
    let log = (count > 1 || other) && !done;
    let logged = if log { count } else { 0 };
    match own {
        Some(module) if log => module.logged.store(logged, Ordering::Relaxed),
        Some(_) => {}
        None => {
            let count = AtomicU32::new(count);
            let logged = AtomicU32::new(logged);
            let next = LOADED.load(Ordering::Relaxed);
            if let Some(module) = memory::keep(Loaded { next, place, data, count, logged }) {
                LOADED.store(core::ptr::from_ref(module).cast_mut(), Ordering::Release);
            }
        }
    }
    if log {
        // SAFETY: the range is mapped, and the dynamic linker has written what it writes.
        unsafe {
            let length = data.end.saturating_sub(data.start);
            writes::__symbiosis_external_write(data.start as *const c_void, length);
        }
    }
}

fn loaded() -> impl Iterator<Item = &'static Loaded> {
    // SAFETY: null, or modules that were published and stay.
    let read = |at: *mut Loaded| unsafe { at.as_ref() };
    core::iter::successors(read(LOADED.load(Ordering::Acquire)), move |module| read(module.next))
}

/// The memory of an executable or library that stays writable, from the lowest such address to the
/// highest.
#[derive(Clone, Copy)]
struct Data {
    place: u64,
    start: u64,
    end: u64,
}

impl Data {
    fn around(place: u64) -> Self {
        let mut data = Self { place, start: 0, end: 0 };
        // SAFETY: the visitor gets back the pointer it is given here.
        unsafe { sys::dl_iterate_phdr(visit, (&raw mut data).cast()) };
        data
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.start < other.end && other.start < self.end
    }

    fn equals(&self, other: &Self) -> bool {
        self.start == other.start && self.end == other.end
    }
}

unsafe extern "C" fn visit(info: *const ObjectInfo, _: usize, data: *mut c_void) -> c_int {
    const PT_LOAD: u32 = 1;
    const PF_W: u32 = 2;
    // SAFETY: the dynamic linker's description of a loaded object, and `Data::around`'s own data.
    unsafe {
        let data = &mut *data.cast::<Data>();
        let (mut inside, mut start, mut end) = (false, u64::MAX, 0);
        for index in 0..(*info).count as usize {
            let header = &*(*info).headers.add(index);
            if header.kind != PT_LOAD {
                continue;
            }
            let from = (*info).base.wrapping_add(header.address);
            let to = from.wrapping_add(header.memory_size);
            inside |= from <= data.place && data.place < to;
            if header.flags & PF_W != 0 {
                start = start.min(from);
                end = end.max(to);
            }
        }
        if inside && start < end {
            data.start = start;
            data.end = end;
        }
        c_int::from(inside)
    }
}
