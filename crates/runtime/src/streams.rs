//! A thread's two streams: files of which a window is mapped, see [`STREAM_WINDOW`].

use crate::files;
use crate::handlers::{self, Place};
use crate::layout::{
    Control, Extent, NOTED_READINGS, RuntimeEvent, SHORT_PAYLOAD, STREAM_BEHIND, STREAM_PIECE,
    STREAM_WINDOW, SYNC_PAYLOAD, VALUE_SLACK, token,
};
use crate::process;
use crate::readings;
use crate::sys;
use crate::text::Text;
use crate::threads::{self, Thread};
use crate::tls;
use core::ffi::c_int;
use core::ptr::{read_volatile, write_volatile};
use core::sync::atomic::{Ordering, compiler_fence};

const PIECE: u64 = STREAM_PIECE as u64;
const BEHIND: u64 = STREAM_BEHIND as u64;
/// Room behind the limit, see [`Control::path_limit`]. Handlers of faults write in between what a
/// function writes without looking at the limit ([`VALUE_SLACK`]), hence more than once that.
const SLACK: u64 = 8 * VALUE_SLACK as u64;
const _: () = assert!(PIECE + 2 * SLACK <= STREAM_WINDOW as u64);
/// Bytes of the ring that takes a stream's place when it cannot grow.
pub const RING: u64 = 4096;

/// One stream, as the runtime sees it; the cursor is in the control page.
#[derive(Clone, Copy)]
pub struct Stream {
    /// Where its window begins; 0 when there is none.
    pub base: u64,
    /// Nothing goes to the file any more.
    pub stopped: bool,
    /// What the file's name ends with.
    pub suffix: &'static [u8],
}

impl Stream {
    /// A stream that has no file.
    pub const fn none(suffix: &'static [u8]) -> Self {
        Self { base: 0, stopped: true, suffix }
    }

    /// Makes the stream's file and maps its window.
    pub fn create(&mut self, thread_name: &[u8]) -> Result<(), c_int> {
        let path = files::name(&[b"threads/", thread_name, self.suffix]);
        self.base = files::create_mapped(&path, STREAM_WINDOW, true)?;
        self.stopped = false;
        Ok(())
    }

    /// Appends the first `length` bytes of the window to the file, `moved` bytes behind it.
    fn append(&self, thread_name: &[u8], moved: u64, length: u64) -> Result<(), c_int> {
        let path = files::name(&[b"threads/", thread_name, self.suffix]);
        let to = BEHIND + moved;
        if files::above_size_limit(to + length) {
            return Err(sys::EFBIG);
        }
        // SAFETY: the window is mapped, and so much of it was written.
        unsafe { sys::write_into(&path, self.base as *const u8, length as usize, to) }
    }

    /// Where the cursor has to stop.
    pub fn limit(&self) -> u64 {
        self.base + PIECE
    }

    /// Gives the address space back.
    ///
    /// # Safety
    ///
    /// Nobody may use the mapping afterwards.
    pub unsafe fn release(&mut self) {
        if self.base != 0 {
            // SAFETY: the range is the stream's own window.
            unsafe { sys::munmap(self.base as *mut _, STREAM_WINDOW) };
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
    moved: *mut u64,
    moving: *mut u64,
}

impl Cursor {
    /// How long the stream is.
    unsafe fn extent(&self) -> Extent {
        // SAFETY: the caller's control page is live.
        unsafe {
            let (last, next) = (read_volatile(self.last), read_volatile(self.next));
            let (moved, moving) = (read_volatile(self.moved), read_volatile(self.moving));
            let extent = Extent::new(last, next, read_volatile(self.base), moved, moving);
            extent.unwrap_or(Extent { moved, start: 0, window: 0 })
        }
    }
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
                moved: &raw mut (*control).path_moved,
                moving: &raw mut (*control).path_moving,
            },
            Kind::Values => Cursor {
                next: &raw mut (*control).value_next,
                limit: &raw mut (*control).value_limit,
                base: &raw mut (*control).value_base,
                last: &raw mut (*control).value_final,
                moved: &raw mut (*control).value_moved,
                moving: &raw mut (*control).value_moving,
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

unsafe fn grow(kind: Kind, place: Place) {
    // SAFETY: the thread record is the calling thread's own.
    unsafe {
        let thread = *tls::thread_slot();
        if thread.is_null() {
            sys::keeping_errno(threads::attach_late);
            let shared = cursor(tls::sink(), kind);
            // The hook that called may still hold the shared sink: let it write there once, and
            // then stand at the limit again, so that the next such thread calls too.
            write_volatile(shared.next, read_volatile(shared.limit) - 1);
            return;
        }
        rewind_sink(kind);
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
            handlers::deliver(thread, place);
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

/// A function in which the thread got its streams may keep the address of the shared sink in a register
/// until it returns, and write on there.
unsafe fn rewind_sink(kind: Kind) {
    let sink = tls::sink();
    if sink.is_null() {
        return;
    }
    // SAFETY: the sink lives as long as the program.
    unsafe {
        let shared = cursor(sink, kind);
        let limit = read_volatile(shared.limit);
        if read_volatile(shared.next) > limit {
            write_volatile(shared.next, limit);
        }
    }
}

/// Makes sure that the cursor stands below its limit. The limit may have been set to 0, to have
/// [`grow`] called.
unsafe fn make_room(thread: *mut Thread, cursor: &Cursor, stream: *mut Stream, ring: u64) {
    // SAFETY: all of it is the calling thread's own.
    unsafe {
        let limit = if (*stream).stopped { ring + RING - SLACK } else { (*stream).limit() };
        write_volatile(cursor.limit, limit);
        let path = cursor.next == &raw mut (*(*thread).control).path_next;
        if read_volatile(cursor.next) >= limit {
            if (*stream).stopped {
                write_volatile(cursor.next, ring);
            } else if let Err(error) = empty_window(thread, cursor, &*stream, path) {
                stop(thread, cursor, stream, ring, error);
            }
        }
        if path && !(*stream).stopped {
            readings::put_off(thread);
            write_volatile(cursor.limit, readings::limit(thread));
        }
    }
}

/// Moves what the window holds behind it, a whole piece when it has one. A kill at any point leaves a
/// stream that can be told ([`Extent::new`]).
unsafe fn empty_window(
    thread: *mut Thread,
    cursor: &Cursor,
    stream: &Stream,
    path: bool,
) -> Result<(), c_int> {
    // SAFETY: all of it is the calling thread's own, and no hook of it runs meanwhile. What is left of a
    // window is shorter than a piece.
    unsafe {
        let there = read_volatile(cursor.next) - stream.base;
        let (moved, length) = (read_volatile(cursor.moved), there.min(PIECE));
        let name = (*thread).name;
        sys::keeping_errno(|| stream.append(name.as_bytes(), moved, length))?;
        let (base, left) = (stream.base as *mut u8, (there - length) as usize);
        write_volatile(cursor.moving, moved + length);
        compiler_fence(Ordering::SeqCst);
        core::ptr::copy_nonoverlapping(base.add(length as usize), base, left);
        compiler_fence(Ordering::SeqCst);
        write_volatile(cursor.next, stream.base + left as u64);
        if path {
            // What is behind the cursor must not be taken for choices.
            compiler_fence(Ordering::SeqCst);
            core::ptr::write_bytes(base.add(left), 0, length as usize);
            compiler_fence(Ordering::SeqCst);
        }
        write_volatile(cursor.moved, moved + length);
        Ok(())
    }
}

/// Moves all that the calling thread has logged out of its windows, as far as there is room.
///
/// # Safety
///
/// The record must be the calling thread's own and live, and no hook of it may be running.
pub unsafe fn empty_windows(thread: *mut Thread) {
    // SAFETY: the caller vouches for the record.
    unsafe {
        let mask = sys::set_signal_mask(u64::MAX);
        for (kind, stream, ring) in [
            (Kind::Path, &raw mut (*thread).path, (*thread).path_ring()),
            (Kind::Values, &raw mut (*thread).values, (*thread).value_ring()),
        ] {
            let cursor = cursor((*thread).control, kind);
            if (*stream).stopped {
                continue;
            }
            while !(*stream).stopped && read_volatile(cursor.next) > (*stream).base {
                if let Err(error) = empty_window(thread, &cursor, &*stream, kind == Kind::Path) {
                    stop(thread, &cursor, stream, ring, error);
                }
            }
        }
        sys::set_signal_mask(mask);
    }
}

/// Notes that a stream cannot grow, and sends what is to come into the ring.
unsafe fn stop(thread: *mut Thread, cursor: &Cursor, stream: *mut Stream, ring: u64, error: c_int) {
    // SAFETY: all of it is the calling thread's own.
    unsafe {
        let length = cursor.extent().length();
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

/// The hook before an entry found the path stream at its limit: afterwards at least one entry fits.
#[cfg_attr(symbiosis_export, unsafe(no_mangle))]
pub unsafe extern "C" fn __symbiosis_grow_path() {
    // SAFETY: works on the calling thread's own streams.
    unsafe { grow_path(Place::Elsewhere) }
}

/// The hook behind a region's choices found the path stream at its limit: afterwards at least one entry
/// fits.
#[cfg_attr(symbiosis_export, unsafe(no_mangle))]
pub unsafe extern "C" fn __symbiosis_region_ended() {
    // SAFETY: works on the calling thread's own streams.
    unsafe { grow_path(Place::RegionEnd) }
}

unsafe fn grow_path(place: Place) {
    // SAFETY: as the caller promises.
    unsafe {
        let thread = *tls::thread_slot();
        if thread.is_null() || !readings::take(thread) {
            grow(Kind::Path, place);
        }
    }
}

/// The hook found the values stream at its limit: afterwards at least one word fits.
#[cfg_attr(symbiosis_export, unsafe(no_mangle))]
pub unsafe extern "C" fn __symbiosis_grow_values() {
    // SAFETY: works on the calling thread's own streams.
    unsafe { grow(Kind::Values, Place::Elsewhere) }
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
            && !readings::has_room(thread)
        {
            grow(Kind::Path, Place::Elsewhere);
        }
        append_path(control, entry);
    }
}

/// Writes an entry for which there is room.
unsafe fn append_path(control: *mut Control, entry: u8) {
    // SAFETY: as in `put_path`.
    unsafe {
        let at = read_volatile(&raw const (*control).path_next);
        write_volatile(at as *mut u8, entry);
        write_volatile(&raw mut (*control).path_next, at + 1);
    }
}

/// Writes a reading of the clock from a path hook, for which there is room.
///
/// # Safety
///
/// As for [`event`].
pub unsafe fn reading(thread: *mut Thread) {
    let tsc = sys::tsc();
    // SAFETY: the caller vouches for the record.
    unsafe {
        append_path((*thread).control, token::RUNTIME + RuntimeEvent::Reading as u8);
        put_word(thread, tsc);
        let control = (*thread).control;
        note_reading(control, read_volatile(&raw const (*control).value_next) - 8);
    }
}

/// Writes a reading of the clock from an interposed function.
///
/// # Safety
///
/// As for [`event`].
pub unsafe fn reading_in_call(thread: *mut Thread) {
    // SAFETY: the caller vouches for the record.
    unsafe {
        event(thread, RuntimeEvent::CallReading, &[sys::tsc()]);
        let control = (*thread).control;
        note_reading(control, read_volatile(&raw const (*control).value_next) - 8);
    }
}

/// Notes where a reading of the clock is in the values, for [`crate::repeats`].
unsafe fn note_reading(control: *mut Control, at: u64) {
    // SAFETY: the control page is that of a live thread.
    unsafe {
        let count = read_volatile(&raw const (*control).readings);
        let place = (&raw mut (*control).reading_at).cast::<u64>();
        write_volatile(place.add(count as usize % NOTED_READINGS), at);
        write_volatile(&raw mut (*control).readings, count.wrapping_add(1));
    }
}

/// Ends a region with these choices, behind a leading one.
///
/// # Safety
///
/// As for [`event`]; no hook of the thread may be running.
pub unsafe fn end_region(thread: *mut Thread, choices: u32) {
    // SAFETY: the caller vouches for the record. There is room for a token, as at the end of any region. The
    // order is that of `token`.
    unsafe {
        let control = (*thread).control;
        let at = read_volatile(&raw const (*control).path_next);
        let (bytes, length) = match choices {
            0 | 1 => ([0; 4], 0),
            choices => token::of_choices(choices),
        };
        for (index, &byte) in (0..).zip(bytes.iter().take(length)) {
            write_volatile((at + index) as *mut u8, byte);
        }
        write_volatile(&raw mut (*control).choices, 0);
        write_volatile(&raw mut (*control).path_next, at + length as u64);
    }
}

/// Writes an event of two words between two rounds of a waiting loop, and before what has to be done there.
///
/// # Safety
///
/// As for [`end_region`].
pub unsafe fn between_rounds(thread: *mut Thread, kind: RuntimeEvent, payload: [u64; 2]) {
    // SAFETY: the caller vouches for the record. There is room for an entry behind the limit.
    unsafe {
        append_path((*thread).control, token::RUNTIME + kind as u8);
        payload.into_iter().for_each(|word| put_word(thread, word));
    }
}

/// Has the path to be given room before its next token?
///
/// # Safety
///
/// As for [`end_region`].
pub unsafe fn is_full(thread: *mut Thread) -> bool {
    // SAFETY: the caller vouches for the record.
    unsafe {
        let control = (*thread).control;
        read_volatile(&raw const (*control).path_next)
            >= read_volatile(&raw const (*control).path_limit)
    }
}

/// Makes room for the next token, and lets the handlers of signals run that wait.
///
/// # Safety
///
/// As for [`end_region`].
pub unsafe fn make_path_room() {
    // SAFETY: as the caller promises.
    unsafe { grow(Kind::Path, Place::RegionEnd) }
}

/// Makes room for the next values where there is none.
///
/// # Safety
///
/// As for [`end_region`].
pub unsafe fn make_value_room(thread: *mut Thread) {
    // SAFETY: as the caller promises.
    unsafe {
        let control = (*thread).control;
        if read_volatile(&raw const (*control).value_next)
            >= read_volatile(&raw const (*control).value_limit)
        {
            grow(Kind::Values, Place::Elsewhere);
        }
    }
}

/// The choices that no token has yet, behind a leading one; none when there are none.
unsafe fn open_choices(control: *mut Control) -> Option<u32> {
    // SAFETY: the control page is that of a live thread.
    let choices = unsafe { read_volatile(&raw const (*control).choices) } as u32;
    (choices > 1).then_some(choices)
}

/// Keeps the choices of a region that goes on: an entry comes in the middle of it, for a fault, say.
unsafe fn close_choices(control: *mut Control) {
    // SAFETY: as for `open_choices`; there is room for two tokens behind the limit. The order is that of
    // `token`.
    unsafe {
        if let Some(choices) = open_choices(control) {
            let (bytes, length) = token::of_choices(choices);
            let mut at = read_volatile(&raw const (*control).path_next);
            for &byte in bytes.iter().take(length) {
                write_volatile(at as *mut u8, byte);
                at += 1;
            }
            write_volatile(at as *mut u8, token::OPEN);
            write_volatile(&raw mut (*control).choices, 0);
            write_volatile(&raw mut (*control).path_next, at + 1);
        }
    }
}

#[inline]
unsafe fn put_word(thread: *mut Thread, word: u64) {
    // SAFETY: as in `put_path`.
    unsafe {
        let control = (*thread).control;
        make_value_room(thread);
        let at = read_volatile(&raw const (*control).value_next);
        (at as *mut u64).write_unaligned(word);
        compiler_fence(Ordering::SeqCst);
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

/// Writes the entry and the payload of a synchronisation event.
///
/// # Safety
///
/// As for [`event`].
#[inline]
pub unsafe fn sync_event(thread: *mut Thread, kind: RuntimeEvent, payload: [u64; 5]) {
    // SAFETY: the caller vouches for the record. There is room for a payload behind the limit.
    unsafe {
        let at = begin_sync(thread, kind);
        let length = (*thread).sync.write(payload, &mut *(at as *mut [u8; SYNC_PAYLOAD]));
        end_sync(thread, at + length as u64);
    }
}

/// Writes the entry and the payload of a synchronisation event in the shortest form.
///
/// # Safety
///
/// As for [`event`].
#[inline]
pub unsafe fn short_event(thread: *mut Thread, kind: RuntimeEvent, address: u64, time: u64) {
    // SAFETY: as in `sync_event`.
    unsafe {
        let at = begin_sync(thread, kind);
        let to = &mut *(at as *mut [u8; SHORT_PAYLOAD]);
        let length = (*thread).sync.write_short(address, time, to);
        end_sync(thread, at + length as u64);
    }
}

/// Writes the entry of a synchronisation event; gives where its payload goes.
#[inline]
unsafe fn begin_sync(thread: *mut Thread, kind: RuntimeEvent) -> u64 {
    // SAFETY: the caller vouches for the record.
    unsafe {
        put_path(thread, token::RUNTIME + kind as u8);
        let control = (*thread).control;
        make_value_room(thread);
        read_volatile(&raw const (*control).value_next)
    }
}

/// The payload has been written, up to `next`.
#[inline]
unsafe fn end_sync(thread: *mut Thread, next: u64) {
    compiler_fence(Ordering::SeqCst);
    // SAFETY: the caller vouches for the record.
    unsafe { write_volatile(&raw mut (*(*thread).control).value_next, next) };
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
            let stopped = read_volatile(cursor.last) != 0;
            let open = match open_choices((*thread).control) {
                Some(choices) if !stopped && kind == Kind::Path => token::of_choices(choices).1,
                _ => 0,
            };
            cursor.extent().length() + open as u64
        };
        (length(Kind::Path), length(Kind::Values))
    }
}
