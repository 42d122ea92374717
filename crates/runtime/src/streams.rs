//! A thread's two streams: mapped files that grow.

use crate::files;
use crate::handlers;
use crate::layout::{Control, RuntimeEvent, token};
use crate::process;
use crate::sys;
use crate::text::Text;
use crate::threads::{self, Thread};
use crate::tls;
use core::ffi::c_int;
use core::ptr::{read_volatile, write_volatile};

/// Address space set aside for a stream; less when there is not that much.
const RESERVATION: u64 = 16 << 30;
const SMALLEST_RESERVATION: u64 = 1 << 20;
/// The first part of a stream's file; every further part is as long as all before, up to
/// [`LARGEST_PART`].
const FIRST_PART: u64 = 64 << 10;
const LARGEST_PART: u64 = 64 << 20;
const PAGE: u64 = 4096;
/// A file with so many unused bytes is cut.
const WORTH_CUTTING: u64 = 1 << 20;
/// Room behind the limit, see [`Control::path_limit`].
const SLACK: u64 = 64;
/// Bytes of the ring that takes a stream's place when it cannot grow.
pub const RING: u64 = 4096;

/// One stream, as the runtime sees it; the cursor is in the control page.
#[derive(Clone, Copy)]
pub struct Stream {
    /// Where it begins.
    pub base: u64,
    /// Bytes of address space from `base`.
    pub reserved: u64,
    /// Bytes of the file, all of them mapped.
    pub mapped: u64,
    /// Nothing goes to the file any more.
    pub stopped: bool,
    /// What the file's name ends with.
    pub suffix: &'static [u8],
}

impl Stream {
    /// A stream that has no file.
    pub const fn none(suffix: &'static [u8]) -> Self {
        Self { base: 0, reserved: 0, mapped: 0, stopped: true, suffix }
    }

    /// Makes the stream's file and maps its first part.
    pub fn create(&mut self, thread_name: &[u8]) -> Result<(), c_int> {
        self.reserve()?;
        let path = files::name(&[b"threads/", thread_name, self.suffix]);
        let fd = files::open(&path, sys::O_RDWR | sys::O_CREAT | sys::O_EXCL)?;
        let grown = self.extend(fd);
        files::close(fd);
        if grown.is_ok() {
            self.stopped = false;
        }
        grown
    }

    fn reserve(&mut self) -> Result<(), c_int> {
        let mut size = RESERVATION;
        while size >= SMALLEST_RESERVATION {
            // SAFETY: at an address of the kernel's choice.
            let at = unsafe {
                sys::mmap(
                    core::ptr::null_mut(),
                    size as usize,
                    sys::PROT_NONE,
                    sys::MAP_PRIVATE | sys::MAP_ANONYMOUS | sys::MAP_NORESERVE,
                    -1,
                    0,
                )
            };
            if at as usize != sys::MAP_FAILED {
                self.base = at as u64;
                self.reserved = size;
                return Ok(());
            }
            size /= 2;
        }
        Err(sys::ENOMEM)
    }

    /// Extends the file and maps what is new, in a smaller part when the disk has no room for a
    /// large one.
    fn extend(&mut self, fd: c_int) -> Result<(), c_int> {
        let left = self.reserved - self.mapped;
        let mut part = self.mapped.clamp(FIRST_PART, LARGEST_PART).min(left);
        let mut result = Err(sys::EFBIG);
        while part >= PAGE {
            result = files::extend(fd, self.mapped, self.mapped + part);
            if result.is_ok() {
                break;
            }
            part = (part / 2) & !(PAGE - 1);
        }
        result?;
        // SAFETY: the range lies in the stream's reservation, behind what is mapped.
        unsafe { files::map(fd, self.mapped, part as usize, self.base + self.mapped)? };
        self.mapped += part;
        Ok(())
    }

    fn grow(&mut self, thread_name: &[u8]) -> Result<(), c_int> {
        let fd = files::open(&files::name(&[b"threads/", thread_name, self.suffix]), sys::O_RDWR)?;
        let grown = self.extend(fd);
        files::close(fd);
        grown
    }

    /// Where the cursor has to stop.
    pub fn limit(&self) -> u64 {
        self.base + self.mapped - SLACK
    }

    /// Gives the address space back, and cuts the file to its contents if much of it is unused:
    /// cutting takes as long as a file system likes, and the recorder compresses the file anyway.
    ///
    /// # Safety
    ///
    /// Nobody may use the mapping afterwards.
    pub unsafe fn release(&mut self, thread_name: &[u8], length: Option<u64>) {
        if let Some(length) =
            length.filter(|length| self.mapped.saturating_sub(*length) > WORTH_CUTTING)
        {
            let path = files::name(&[b"threads/", thread_name, self.suffix]);
            // SAFETY: the name ends with a zero.
            unsafe { sys::truncate(path.as_c(), length as i64) };
        }
        if self.reserved != 0 {
            // SAFETY: the range is the stream's own reservation.
            unsafe { sys::munmap(self.base as *mut _, self.reserved as usize) };
        }
        *self = Self::none(self.suffix);
    }
}

/// The cursor words of one of the two streams in a control page.
struct Cursor {
    next: *mut u64,
    limit: *mut u64,
    base: *mut u64,
    last: *mut u64,
}

/// Which stream.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Path,
    Values,
}

unsafe fn cursor(control: *mut Control, kind: Kind) -> Cursor {
    // SAFETY: the caller's control page is live; only addresses are taken.
    unsafe {
        match kind {
            Kind::Path => Cursor {
                next: &raw mut (*control).path_next,
                limit: &raw mut (*control).path_limit,
                base: &raw mut (*control).path_base,
                last: &raw mut (*control).path_final,
            },
            Kind::Values => Cursor {
                next: &raw mut (*control).value_next,
                limit: &raw mut (*control).value_limit,
                base: &raw mut (*control).value_base,
                last: &raw mut (*control).value_final,
            },
        }
    }
}

/// Points a control page's cursors at rings that nobody reads.
///
/// # Safety
///
/// Both must be live, and the rings [`RING`] bytes each.
pub unsafe fn use_rings(control: *mut Control, path_ring: u64, value_ring: u64) {
    // SAFETY: the caller vouches for it.
    unsafe {
        for (kind, ring) in [(Kind::Path, path_ring), (Kind::Values, value_ring)] {
            let cursor = cursor(control, kind);
            write_volatile(cursor.limit, ring + RING - SLACK);
            write_volatile(cursor.next, ring);
        }
    }
}

unsafe fn grow(kind: Kind) {
    // SAFETY: the thread record is the calling thread's own.
    unsafe {
        let thread = *tls::thread_slot();
        if thread.is_null() {
            sys::keeping_errno(threads::attach_late);
            let step = if kind == Kind::Path { 1 } else { 8 };
            let shared = cursor(tls::sink(), kind);
            // The hook that called may still hold the shared sink: let it write there once, and
            // then stand at the limit again, so that the next such thread calls too.
            write_volatile(shared.next, read_volatile(shared.limit) - step);
            return;
        }
        let cursor = cursor((*thread).control, kind);
        // A signal that comes when the mask is set back must wait for a path hook as well.
        let inside = &raw mut (*thread).gate.inside;
        let was_inside = read_volatile(inside);
        write_volatile(inside, true);
        let mut mask = sys::set_signal_mask(u64::MAX);
        let (stream, ring) = match kind {
            Kind::Path => (&raw mut (*thread).path, (*thread).path_ring()),
            Kind::Values => (&raw mut (*thread).values, (*thread).value_ring()),
        };
        make_room(thread, &cursor, stream, ring);
        // A signal handler writes entries of its own.
        let deliver = kind == Kind::Path && !was_inside;
        while deliver && handlers::waits(thread) {
            write_volatile(inside, false);
            handlers::deliver(thread);
            write_volatile(inside, true);
            // While the signal waited, all were blocked; now the mask is the program's again.
            mask = sys::set_signal_mask(u64::MAX);
            make_room(thread, &cursor, stream, ring);
        }
        if kind == Kind::Path && handlers::waits(thread) {
            // The next hook has to call again.
            write_volatile(cursor.limit, 0);
        }
        sys::set_signal_mask(mask);
        write_volatile(inside, was_inside);
    }
}

/// Makes sure that the cursor stands below its limit. The limit may have been set to 0, to have
/// [`grow`] called.
unsafe fn make_room(thread: *mut Thread, cursor: &Cursor, stream: *mut Stream, ring: u64) {
    // SAFETY: all of it is the calling thread's own.
    unsafe {
        let limit = if (*stream).stopped { ring + RING - SLACK } else { (*stream).limit() };
        write_volatile(cursor.limit, limit);
        if read_volatile(cursor.next) < limit {
            return;
        }
        if (*stream).stopped {
            write_volatile(cursor.next, ring);
            return;
        }
        let name = (*thread).name;
        match sys::keeping_errno(|| (*stream).grow(name.as_bytes())) {
            Ok(()) => write_volatile(cursor.limit, (*stream).limit()),
            Err(error) => stop(thread, cursor, stream, ring, error),
        }
    }
}

/// Notes that a stream cannot grow, and sends what is to come into the ring.
unsafe fn stop(thread: *mut Thread, cursor: &Cursor, stream: *mut Stream, ring: u64, error: c_int) {
    // SAFETY: all of it is the calling thread's own.
    unsafe {
        let length = read_volatile(cursor.next) - read_volatile(cursor.base);
        write_volatile(cursor.last, length + 1);
        write_volatile(&raw mut (*(*thread).control).overflow_errno, error as u64);
        (*stream).stopped = true;
        write_volatile(cursor.limit, ring + RING - SLACK);
        write_volatile(cursor.next, ring);
        let mut file = Text::<256>::new();
        file.push(b"threads/").push((*thread).name.as_bytes()).push((*stream).suffix);
        process::note_write_error(file.as_bytes(), length, error);
    }
}

/// The hook found the path stream at its limit, or wrote choices up to it: afterwards at least one
/// entry fits.
#[cfg_attr(symbiosis_export, unsafe(no_mangle))]
pub unsafe extern "C" fn __symbiosis_grow_path() {
    // SAFETY: works on the calling thread's own streams.
    unsafe { grow(Kind::Path) }
}

/// The hook found the values stream at its limit: afterwards at least one word fits.
#[cfg_attr(symbiosis_export, unsafe(no_mangle))]
pub unsafe extern "C" fn __symbiosis_grow_values() {
    // SAFETY: works on the calling thread's own streams.
    unsafe { grow(Kind::Values) }
}

#[inline]
unsafe fn put_path(thread: *mut Thread, entry: u8) {
    // SAFETY: the cursor of a live thread points into mapped memory, and below its limit at least
    // one entry fits. Volatile keeps the order: first the entry, then the cursor.
    unsafe {
        let control = (*thread).control;
        close_choices(control);
        if read_volatile(&raw const (*control).path_next)
            >= read_volatile(&raw const (*control).path_limit)
        {
            grow(Kind::Path);
        }
        let at = read_volatile(&raw const (*control).path_next);
        write_volatile(at as *mut u8, entry);
        write_volatile(&raw mut (*control).path_next, at + 1);
    }
}

/// Are there choices where the next token goes?
unsafe fn has_choices(control: *mut Control) -> bool {
    // SAFETY: the cursor of a live thread points into mapped memory.
    unsafe {
        token::is_open(read_volatile(read_volatile(&raw const (*control).path_next) as *const u8))
    }
}

/// Keeps the choices of a region that goes on: an entry comes in the middle of it, for a fault, say.
unsafe fn close_choices(control: *mut Control) {
    // SAFETY: as for `has_choices`; there is room for two tokens behind the limit.
    unsafe {
        if has_choices(control) {
            let at = read_volatile(&raw const (*control).path_next);
            write_volatile((at + 1) as *mut u8, token::OPEN);
            write_volatile(&raw mut (*control).path_next, at + 2);
        }
    }
}

#[inline]
unsafe fn put_word(thread: *mut Thread, word: u64) {
    // SAFETY: as in `put_path`.
    unsafe {
        let control = (*thread).control;
        if read_volatile(&raw const (*control).value_next)
            >= read_volatile(&raw const (*control).value_limit)
        {
            grow(Kind::Values);
        }
        let at = read_volatile(&raw const (*control).value_next);
        write_volatile(at as *mut u64, word);
        write_volatile(&raw mut (*control).value_next, at + 8);
    }
}

/// Writes a runtime entry and its payload.
///
/// # Safety
///
/// `thread` is the calling thread's own record, from [`tls::recording`].
#[inline]
pub unsafe fn event(thread: *mut Thread, kind: RuntimeEvent, payload: &[u64]) {
    // SAFETY: the caller vouches for the record.
    unsafe {
        put_path(thread, token::RUNTIME + kind as u8);
        for &word in payload {
            put_word(thread, word);
        }
    }
}

/// Writes `length` bytes of memory as whole words, the last one padded with zeros.
///
/// # Safety
///
/// As for [`event`]; and the bytes must be readable.
pub unsafe fn bytes(thread: *mut Thread, data: *const u8, length: u64) {
    let whole = length / 8;
    // SAFETY: the caller vouches for the bytes.
    unsafe {
        for index in 0..whole {
            put_word(thread, data.cast::<u64>().add(index as usize).read_unaligned());
        }
        let rest = length % 8;
        if rest != 0 {
            let mut word = 0u64;
            for index in 0..rest {
                let byte = data.add((whole * 8 + index) as usize).read();
                word |= u64::from(byte) << (index * 8);
            }
            put_word(thread, word);
        }
    }
}

/// How many bytes the two streams have, choices behind the path's last token included. What a
/// stopped stream got is in its final length.
///
/// # Safety
///
/// The record must be the calling thread's own and live.
pub unsafe fn lengths(thread: *mut Thread) -> (u64, u64) {
    // SAFETY: the caller vouches for the record.
    unsafe {
        let length = |kind| {
            let cursor = cursor((*thread).control, kind);
            match read_volatile(cursor.last) {
                0 => {
                    let open = kind == Kind::Path && has_choices((*thread).control);
                    read_volatile(cursor.next) - read_volatile(cursor.base) + u64::from(open)
                }
                last => last - 1,
            }
        };
        (length(Kind::Path), length(Kind::Values))
    }
}
