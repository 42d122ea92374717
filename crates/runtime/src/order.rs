//! `order.bin`: the turns that were taken. A mapped file that grows by parts, so that a process
//! killed at any moment loses at most the record being written: a record is there when its first
//! word, the thread's serial, is not 0.

use crate::files;
use crate::layout::{ORDER_FILE, OrderRecord};
use crate::process;
use crate::sys;
use core::ffi::c_int;
use core::ptr::{null_mut, write_volatile};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering, compiler_fence};

/// Address space set aside; less when there is not that much.
const RESERVATION: u64 = 4 << 30;
const SMALLEST_RESERVATION: u64 = 1 << 20;
/// The first part of the file; every further part is as long as all before, up to
/// [`LARGEST_PART`].
const FIRST_PART: u64 = 64 << 10;
const LARGEST_PART: u64 = 16 << 20;
const RECORD: u64 = size_of::<OrderRecord>() as u64;

// Written by the holder of the turn alone; what hands the turn on orders their accesses.
static BASE: AtomicU64 = AtomicU64::new(0);
static RESERVED: AtomicU64 = AtomicU64::new(0);
static MAPPED: AtomicU64 = AtomicU64::new(0);
static USED: AtomicU64 = AtomicU64::new(0);
static OPEN: AtomicBool = AtomicBool::new(false);

/// Makes the file in the trace directory. To be called once, when a scheduler decides and the run
/// is recorded.
pub fn start() {
    if let Err(error) = reserve().and_then(|()| extend(sys::O_CREAT | sys::O_EXCL)) {
        process::note_write_error(ORDER_FILE.as_bytes(), 0, error);
        return;
    }
    OPEN.store(true, Ordering::Relaxed);
}

/// Stops writing: the file is the parent's.
pub fn forget() {
    OPEN.store(false, Ordering::Relaxed);
}

fn reserve() -> Result<(), c_int> {
    let mut size = RESERVATION;
    while size >= SMALLEST_RESERVATION {
        let flags = sys::MAP_PRIVATE | sys::MAP_ANONYMOUS | sys::MAP_NORESERVE;
        // SAFETY: at an address of the kernel's choice.
        let at = unsafe { sys::mmap(null_mut(), size as usize, sys::PROT_NONE, flags, -1, 0) };
        if at as usize != sys::MAP_FAILED {
            BASE.store(at as u64, Ordering::Relaxed);
            RESERVED.store(size, Ordering::Relaxed);
            return Ok(());
        }
        size /= 2;
    }
    Err(sys::ENOMEM)
}

/// Extends the file and maps what is new.
fn extend(flags: c_int) -> Result<(), c_int> {
    let mapped = MAPPED.load(Ordering::Relaxed);
    let left = RESERVED.load(Ordering::Relaxed) - mapped;
    let part = mapped.clamp(FIRST_PART, LARGEST_PART).min(left);
    if part == 0 {
        return Err(sys::EFBIG);
    }
    let fd = files::open(&files::name(&[ORDER_FILE.as_bytes()]), sys::O_RDWR | flags)?;
    let done = files::extend(fd, mapped, mapped + part).and_then(|()| {
        // SAFETY: the range lies in the reservation, behind what is mapped.
        unsafe { files::map(fd, mapped, part as usize, BASE.load(Ordering::Relaxed) + mapped) }
    });
    files::close(fd);
    done?;
    MAPPED.store(mapped + part, Ordering::Relaxed);
    Ok(())
}

/// Appends a turn that is over; only the holder of the turn calls this. Does nothing when the run
/// is not recorded.
pub fn append(record: OrderRecord) {
    if !OPEN.load(Ordering::Relaxed) {
        return;
    }
    let used = USED.load(Ordering::Relaxed);
    if used + RECORD > MAPPED.load(Ordering::Relaxed)
        && let Err(error) = sys::keeping_errno(|| extend(0))
    {
        OPEN.store(false, Ordering::Relaxed);
        process::note_write_error(ORDER_FILE.as_bytes(), used, error);
        return;
    }
    let at = (BASE.load(Ordering::Relaxed) + used) as *mut OrderRecord;
    // SAFETY: the place is mapped, and the calling thread is the only writer.
    unsafe {
        write_volatile(&raw mut (*at).gates, record.gates);
        write_volatile(&raw mut (*at).points, record.points);
        compiler_fence(Ordering::Release);
        write_volatile(&raw mut (*at).thread, record.thread);
    }
    USED.store(used + RECORD, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    // One test, because a process has one trace.
    #[test]
    fn records_are_in_the_file_at_once_and_the_file_grows() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        append(OrderRecord { thread: 9, gates: 9, points: 9 });
        files::set_directory(directory.path().as_os_str().as_encoded_bytes()).expect("short");
        start();
        let count = 3 * FIRST_PART / RECORD + 5;
        for turn in 1..=count {
            append(OrderRecord { thread: turn, gates: 2 * turn, points: 3 * turn });
        }
        let path = directory.path().join(ORDER_FILE);
        let bytes = fs_err::read(&path).expect("there");
        let words: Vec<u64> = bytes
            .chunks_exact(8)
            .map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")))
            .collect();
        let expected: Vec<u64> = (1..=count).flat_map(|n| [n, 2 * n, 3 * n]).collect();
        let (written, rest) = words.split_at(expected.len());
        assert!(written == expected);
        assert!(rest.iter().all(|word| *word == 0), "behind the last record");
        forget();
        append(OrderRecord { thread: 1, gates: 1, points: 1 });
        assert!(fs_err::read(&path).expect("there") == bytes, "the file is the parent's");
    }
}
