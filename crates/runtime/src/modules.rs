//! Instrumented modules: their numbers, their record in `modules.bin`, their IR, and the table of
//! the functions they define.

use crate::files;
use crate::gates;
use crate::layout::{
    DESCRIPTOR_HAS_DEFINED, INSTRUMENTATION_VERSION, MODULE_MAGIC, ModuleDescriptor,
    ModuleRecordHeader,
};
use crate::memory;
use crate::process;
use crate::reload;
use crate::start;
use crate::sys::{self, ObjectInfo};
use crate::text::Text;
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

static NEXT_FUNCTION: AtomicU32 = AtomicU32::new(0);
static OBJECTS: AtomicPtr<Object> = AtomicPtr::new(null_mut());
static TABLES: AtomicPtr<Table> = AtomicPtr::new(null_mut());

/// The sorted addresses of the functions that a module defines; they follow the head. Published
/// once and never changed, so that readers need no lock.
#[repr(C)]
struct Table {
    next: *mut Table,
    count: usize,
}

impl Table {
    unsafe fn addresses<'a>(table: *mut Self) -> &'a mut [u64] {
        // SAFETY: `add_table` made the block large enough.
        unsafe { core::slice::from_raw_parts_mut(table.add(1).cast(), (*table).count) }
    }
}

/// What [`defines`] said last of addresses with this place, as twice the address, plus 1 if a module
/// defines it. Every call of a function of another module asks, and there is a table for each module.
static ANSWERS: [AtomicU64; ANSWERED] = [const { AtomicU64::new(0) }; ANSWERED];
const ANSWERED: usize = 4096;

/// Is this the address of a function that a registered module defines?
#[inline]
pub fn defines(address: u64) -> bool {
    // Functions mostly begin at multiples of 16.
    let place = (address >> 4 ^ address >> 14) as usize % ANSWERED;
    let answer = ANSWERS[place].load(Ordering::Relaxed);
    if answer >> 1 == address { answer & 1 == 1 } else { look_up(address, &ANSWERS[place]) }
}

#[cold]
fn look_up(address: u64, answer: &AtomicU64) -> bool {
    let head = TABLES.load(Ordering::Acquire);
    let mut table = head;
    let mut found = false;
    while !table.is_null() && !found {
        // SAFETY: published tables stay.
        unsafe {
            let addresses: &[u64] = Table::addresses(table);
            found = addresses.binary_search(&address).is_ok();
            table = (*table).next;
        }
    }
    answer.store(address << 1 | u64::from(found), Ordering::SeqCst);
    if TABLES.load(Ordering::SeqCst) != head {
        // A module that was registered meanwhile has perhaps cleared the answers before this one.
        answer.store(0, Ordering::Relaxed);
    }
    found
}

/// The code of an executable or library with instrumented modules.
struct Object {
    code: Code,
    next: AtomicPtr<Object>,
}

/// Is this an address in the code of an executable or library with instrumented modules? Known
/// only when the run is recorded or its gates are opened.
pub fn instrumented(address: u64) -> bool {
    objects().any(|object| object.code.contains(address))
}

/// Is the thread that stands at an address of such code about to make a system call, or just back
/// from one? The runtime's own calls lie in the same objects as the program's code.
pub fn in_system_call(address: u64) -> bool {
    const SYSTEM_CALL: [u8; 2] = [0x0f, 0x05];
    let stands_at = |place: u64| {
        let both = instrumented(place) && instrumented(place + 1);
        // SAFETY: the code of a loaded object; no alignment is asked for.
        both && unsafe { (place as *const [u8; 2]).read() } == SYSTEM_CALL
    };
    stands_at(address) || address.checked_sub(2).is_some_and(stands_at)
}

fn objects() -> impl Iterator<Item = &'static Object> {
    // SAFETY: null, or objects that were published and stay.
    let read = |at: &AtomicPtr<Object>| unsafe { at.load(Ordering::Acquire).as_ref() };
    core::iter::successors(read(&OBJECTS), move |object| read(&object.next))
}

/// Publishes the code that a descriptor belongs to, unless that was done.
fn add_object(place: u64) {
    let code = Code::around(place);
    let known = |object: &Object| object.code.start <= code.start && code.end <= object.code.end;
    if code.start >= code.end || objects().any(known) {
        return;
    }
    let Some(object) = memory::keep(Object { code, next: AtomicPtr::new(null_mut()) }) else {
        return;
    };
    let mut head = OBJECTS.load(Ordering::Relaxed);
    loop {
        object.next.store(head, Ordering::Relaxed);
        let new = core::ptr::from_ref(object).cast_mut();
        match OBJECTS.compare_exchange_weak(head, new, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => return,
            Err(now) => head = now,
        }
    }
}

/// Called by each instrumented module's constructor.
#[cfg_attr(symbiosis_export, unsafe(no_mangle))]
pub unsafe extern "C" fn __symbiosis_register(descriptor: *const ModuleDescriptor) {
    start::ensure();
    // SAFETY: the instrumenter emitted the descriptor, and the first words are the same in every
    // version.
    unsafe {
        let module = &*descriptor;
        let base = NEXT_FUNCTION.fetch_add(module.function_count, Ordering::Relaxed);
        let known = module.version == INSTRUMENTATION_VERSION;
        if known {
            *module.base = base;
            add_table(module, descriptor as u64);
            if gates::wanted() || process::recording() {
                add_object(descriptor as u64);
            }
            sys::keeping_errno(|| gates::open(module));
        }
        if process::recording() {
            sys::keeping_errno(|| {
                // Another thread may end the process at any time. A module that is named has its IR then, and one that
                // is not has run nothing yet.
                if known {
                    write_ir(module, base);
                }
                if let Err(error) = append_record(module, base, known) {
                    process::note_write_error(b"modules.bin", 0, error);
                }
                if known {
                    reload::register(descriptor as u64);
                }
            });
        }
    }
}

/// Registers what the module defines for [`defines`].
unsafe fn add_table(module: &ModuleDescriptor, place: u64) {
    let count = module.function_count as usize;
    let table = sys::anonymous(size_of::<Table>() + count * 8).cast::<Table>();
    if table.is_null() {
        return;
    }
    // SAFETY: the block is fresh and large enough; the descriptor's arrays have `count` entries.
    unsafe {
        let code = Code::around(place);
        let to = table.add(1).cast::<u64>();
        let mut used = 0;
        for index in 0..count {
            let address = *module.functions.add(index);
            let defined = if module.reserved & DESCRIPTOR_HAS_DEFINED != 0 {
                *module.defined.add(index) != 0
            } else {
                code.contains(address)
            };
            if defined && address != 0 {
                *to.add(used) = address;
                used += 1;
            }
        }
        (*table).count = used;
        Table::addresses(table).sort_unstable();
        publish(table);
    }
}

unsafe fn publish(table: *mut Table) {
    let mut head = TABLES.load(Ordering::Relaxed);
    loop {
        // SAFETY: the table is this thread's until it is in the list.
        unsafe { (*table).next = head };
        match TABLES.compare_exchange_weak(head, table, Ordering::SeqCst, Ordering::Relaxed) {
            Ok(_) => break,
            Err(now) => head = now,
        }
    }
    // What no module defined before this one may.
    ANSWERS.iter().for_each(|answer| answer.store(0, Ordering::SeqCst));
}

/// The executable part of the object that an address lies in.
struct Code {
    place: u64,
    start: u64,
    end: u64,
}

impl Code {
    fn around(place: u64) -> Self {
        let mut code = Self { place, start: 0, end: 0 };
        // SAFETY: the visitor gets back the pointer it is given here.
        unsafe { sys::dl_iterate_phdr(visit, (&raw mut code).cast()) };
        code
    }

    fn contains(&self, address: u64) -> bool {
        self.start <= address && address < self.end
    }
}

unsafe extern "C" fn visit(info: *const ObjectInfo, _: usize, data: *mut c_void) -> c_int {
    const PT_LOAD: u32 = 1;
    const PF_X: u32 = 1;
    // SAFETY: the dynamic linker's description of a loaded object, and `Code::around`'s own data.
    unsafe {
        let code = &mut *data.cast::<Code>();
        let (mut inside, mut start, mut end) = (false, u64::MAX, 0);
        for index in 0..(*info).count as usize {
            let header = &*(*info).headers.add(index);
            if header.kind != PT_LOAD {
                continue;
            }
            let from = (*info).base.wrapping_add(header.address);
            let to = from.wrapping_add(header.memory_size);
            inside |= from <= code.place && code.place < to;
            if header.flags & PF_X != 0 {
                start = start.min(from);
                end = end.max(to);
            }
        }
        if inside {
            code.start = start;
            code.end = end;
        }
        c_int::from(inside)
    }
}

unsafe fn append_record(module: &ModuleDescriptor, base: u32, known: bool) -> Result<(), c_int> {
    let header = ModuleRecordHeader {
        magic: MODULE_MAGIC,
        hash: if known { module.hash } else { [0; 2] },
        function_count: if known { module.function_count } else { 0 },
        global_count: if known { module.global_count } else { 0 },
        base,
        version: module.version,
    };
    let path = files::name(&[b"modules.bin"]);
    let fd = files::open(&path, sys::O_WRONLY | sys::O_CREAT | sys::O_APPEND)?;
    // SAFETY: the descriptor's arrays have as many entries as it says.
    let written = unsafe {
        files::write_all(fd, (&raw const header).cast(), size_of::<ModuleRecordHeader>())
            .and_then(|()| {
                files::write_all(fd, module.functions.cast(), header.function_count as usize * 8)
            })
            .and_then(|()| {
                files::write_all(fd, module.globals.cast(), header.global_count as usize * 8)
            })
    };
    files::close(fd);
    written
}

/// Writes the module's bitcode under its hash, unless it is there. Under another name first, so
/// that no half file ever has the right one.
unsafe fn write_ir(module: &ModuleDescriptor, base: u32) {
    let mut name = Text::<64>::new();
    name.push(b"ir/").push_hex(module.hash[1]).push_hex(module.hash[0]).push(b".bc.zst");
    let path = files::name(&[name.as_bytes()]);
    let mut number = Text::<32>::new();
    number.push_decimal(u64::from(base));
    let partial = files::name(&[b"ir/partial-", number.as_bytes()]);
    // SAFETY: names end with a zero; the descriptor's bitcode has the length it says.
    unsafe {
        if sys::access(path.as_c(), 0) == 0 {
            return;
        }
        let flags = sys::O_WRONLY | sys::O_CREAT;
        let written = files::open(&partial, flags).and_then(|fd| {
            let written = files::write_all(fd, module.bitcode, module.bitcode_length as usize);
            files::close(fd);
            written
        });
        let done = written.and_then(|()| match sys::rename(partial.as_c(), path.as_c()) {
            0 => Ok(()),
            _ => Err(sys::errno()),
        });
        if let Err(error) = done {
            sys::unlink(partial.as_c());
            process::note_write_error(name.as_bytes(), 0, error);
        }
    }
}
