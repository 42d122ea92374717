//! Files of the trace directory, by name relative to it.

use crate::layout::STREAM_WINDOW;
use crate::sys::{self, ResourceLimit};
use crate::text::Text;
use core::cell::UnsafeCell;
use core::ffi::{c_char, c_int, c_uint};
use core::sync::atomic::{AtomicI32, AtomicU64, Ordering};

/// The full name of a file in the trace directory.
pub type FileName = Text<4608>;

/// The trace directory's absolute name, set once at start-up.
struct Directory(UnsafeCell<Text<4096>>);

// SAFETY: written once, before there is a second thread.
unsafe impl Sync for Directory {}

static DIRECTORY: Directory = Directory(UnsafeCell::new(Text::new()));

/// Sets the trace directory; to be called once, while the process has one thread. A relative name
/// is made absolute, because the program may change its working directory.
pub fn set_directory(name: &[u8]) -> Result<(), c_int> {
    let mut text = Text::<4096>::new();
    if name.first() != Some(&b'/') {
        let mut here = [0u8; 4096];
        // SAFETY: the buffer has the length given.
        unsafe {
            if sys::getcwd(here.as_mut_ptr().cast(), here.len()).is_null() {
                return Err(sys::errno());
            }
            let length = sys::strlen(here.as_ptr().cast());
            text.push(here.get(..length).unwrap_or(&[])).push(b"/");
        }
    }
    text.push(name);
    if !text.is_whole() {
        return Err(sys::ENAMETOOLONG);
    }
    // SAFETY: only the one thread there is gets here.
    unsafe { *DIRECTORY.0.get() = text };
    HELD.descriptor.store(NOT_HELD, Ordering::Relaxed);
    Ok(())
}

/// The trace directory, held open for when its name leads nowhere any more; which file it is, since the program may close
/// descriptors that it does not know, and open others of the same number.
struct Held {
    descriptor: AtomicI32,
    device: AtomicU64,
    inode: AtomicU64,
}

const NOT_HELD: c_int = -1;
/// Descriptors from here on are seldom the program's.
const FIRST_OF_OURS: c_int = 900;

static HELD: Held = Held {
    descriptor: AtomicI32::new(NOT_HELD),
    device: AtomicU64::new(0),
    inode: AtomicU64::new(0),
};

/// From here on files are found by the directory itself, not by its name.
///
/// # Errors
///
/// The `errno`.
pub fn hold_directory() -> Result<(), c_int> {
    if held().is_some() {
        return Ok(());
    }
    let low = open(&name(&[b"."]), sys::O_PATH | sys::O_DIRECTORY)?;
    let high = sys::duplicate_from(low, FIRST_OF_OURS);
    let descriptor = if high < 0 { low } else { high };
    if high >= 0 {
        close(low);
    }
    let (device, inode) = sys::identity(descriptor).ok_or_else(sys::errno)?;
    HELD.device.store(device, Ordering::Relaxed);
    HELD.inode.store(inode, Ordering::Relaxed);
    HELD.descriptor.store(descriptor, Ordering::Release);
    Ok(())
}

fn held() -> Option<c_int> {
    let descriptor = HELD.descriptor.load(Ordering::Acquire);
    if descriptor == NOT_HELD {
        return None;
    }
    let known = (HELD.device.load(Ordering::Relaxed), HELD.inode.load(Ordering::Relaxed));
    (sys::identity(descriptor) == Some(known)).then_some(descriptor)
}

/// Where to look for a file of the trace, and under which name.
pub fn place<const N: usize>(path: &Text<N>) -> (c_int, *const c_char) {
    let whole = (sys::CURRENT_DIRECTORY, path.as_c());
    let Some(descriptor) = held() else { return whole };
    let directory = directory();
    let within = path.as_bytes().strip_prefix(directory.as_bytes());
    match within.and_then(|rest| rest.strip_prefix(b"/")) {
        // SAFETY: so many bytes come before the rest, and the zero comes behind it.
        Some(_) => unsafe { (descriptor, path.as_c().add(directory.as_bytes().len() + 1)) },
        None => whole,
    }
}

/// Gives the trace directory and all that is in it to a user.
///
/// # Errors
///
/// The first `errno`; the rest is tried all the same.
pub fn give_to(user: c_uint) -> Result<(), c_int> {
    const SAME_GROUP: c_uint = c_uint::MAX;
    let give = |path: &FileName| {
        let (directory, path) = place(path);
        // SAFETY: the name ends with a zero.
        match unsafe { sys::change_owner(directory, path, user, SAME_GROUP, 0) } {
            0 => Ok(()),
            _ => Err(sys::errno()),
        }
    };
    let mut result = Ok(());
    let folders: [&[u8]; 3] = [b".", b"threads", b"ir"];
    for folder in folders {
        let all = for_each(&name(&[folder]), |file| {
            let given = give(&name(&[folder, b"/", file]));
            result = result.and(given);
            Ok(())
        });
        result = result.and(all).and(give(&name(&[folder])));
    }
    result
}

/// The trace directory's name.
#[must_use]
pub fn directory() -> Text<4096> {
    // SAFETY: after start-up nobody writes to it.
    unsafe { *DIRECTORY.0.get() }
}

/// Room for [`copy`]: the stack of a thread that forks may be small.
struct Buffer(UnsafeCell<[u8; 64 << 10]>);

// SAFETY: only used while the process has one thread.
unsafe impl Sync for Buffer {}

static BUFFER: Buffer = Buffer(UnsafeCell::new([0; 64 << 10]));

/// Writes up to `length` bytes of a file, from an offset on, at an offset of what is behind a
/// descriptor. Only to be called while the process has one thread.
///
/// # Errors
///
/// The `errno`.
pub fn copy(
    from: &FileName,
    from_at: u64,
    to: c_int,
    to_at: u64,
    length: u64,
) -> Result<(), c_int> {
    let fd = open(from, 0)?;
    // SAFETY: no pointers.
    unsafe { sys::lseek(fd, from_at as i64, 0) };
    let (mut at, mut length) = (to_at, length);
    // SAFETY: the process has one thread.
    let buffer = unsafe { &mut *BUFFER.0.get() };
    let done = loop {
        let most = length.min(buffer.len() as u64) as usize;
        if most == 0 {
            break Ok(());
        }
        // SAFETY: the buffer has at least `most` bytes.
        let read = unsafe { sys::read(fd, buffer.as_mut_ptr().cast(), most) };
        match read {
            0 => break Ok(()),
            // SAFETY: so many bytes were read.
            1.. => match unsafe { write_at(to, buffer.as_ptr(), read as usize, at) } {
                Ok(()) => {
                    length -= read as u64;
                    at += read as u64;
                }
                Err(error) => break Err(error),
            },
            _ if sys::errno() == sys::EINTR => {}
            _ => break Err(sys::errno()),
        }
    };
    close(fd);
    done
}

/// Calls `work` with the name of every file in a directory; the first error ends it.
///
/// # Errors
///
/// The `errno`, or what `work` returns.
pub fn for_each(
    directory: &FileName,
    mut work: impl FnMut(&[u8]) -> Result<(), c_int>,
) -> Result<(), c_int> {
    /// Of a `linux_dirent64`.
    const LENGTH_AT: usize = 16;
    const NAME_AT: usize = 19;
    let fd = open(directory, sys::O_DIRECTORY)?;
    let mut buffer = [0u64; 512];
    let done = 'all: loop {
        let read = sys::directory_entries(fd, &mut buffer);
        let Ok(read) = usize::try_from(read) else { break Err(sys::errno()) };
        if read == 0 {
            break Ok(());
        }
        // SAFETY: the buffer is longer than what was read.
        let bytes = unsafe { core::slice::from_raw_parts(buffer.as_ptr().cast::<u8>(), read) };
        let mut at = 0;
        while let Some(entry) = bytes.get(at..) {
            let length = match entry.get(LENGTH_AT..LENGTH_AT + 2) {
                Some(&[low, high]) => usize::from(u16::from_le_bytes([low, high])),
                _ => break,
            };
            let name = entry.get(NAME_AT..length).unwrap_or(&[]);
            let name = name.split(|byte| *byte == 0).next().unwrap_or(&[]);
            if !name.is_empty()
                && !name.starts_with(b".")
                && let Err(error) = work(name)
            {
                break 'all Err(error);
            }
            at += length.max(1);
        }
    };
    close(fd);
    done
}

/// The full name of a file given by the parts of its relative name.
pub fn name(parts: &[&[u8]]) -> FileName {
    let mut text = FileName::new();
    // SAFETY: after start-up nobody writes to it.
    text.push(unsafe { (*DIRECTORY.0.get()).as_bytes() }).push(b"/");
    for part in parts {
        text.push(part);
    }
    text
}

/// Makes a directory of the trace unless it is there.
pub fn make_directory(part: &[u8]) -> Result<(), c_int> {
    let path = name(&[part]);
    // SAFETY: the name ends with a zero.
    if unsafe { sys::mkdir(path.as_c(), 0o777) } != 0 && sys::errno() != sys::EEXIST {
        return Err(sys::errno());
    }
    Ok(())
}

/// Opens a file; the descriptor is to be closed with [`close`].
pub fn open(path: &FileName, flags: c_int) -> Result<c_int, c_int> {
    if !path.is_whole() {
        return Err(sys::ENAMETOOLONG);
    }
    loop {
        let (directory, path) = place(path);
        // SAFETY: the name ends with a zero.
        let fd = unsafe { sys::open_at(directory, path, flags | sys::O_CLOEXEC, 0o666) };
        if fd >= 0 {
            return Ok(fd);
        }
        if sys::errno() != sys::EINTR {
            return Err(sys::errno());
        }
    }
}

/// Closes a descriptor of [`open`].
pub fn close(fd: c_int) {
    // SAFETY: no pointers; the descriptor is the runtime's own.
    unsafe { sys::close(fd) };
}

/// Would a file of this length break the process's limit? Asked first, because the kernel would
/// send SIGXFSZ to the program for it.
pub fn above_size_limit(length: u64) -> bool {
    let mut limit = ResourceLimit { current: u64::MAX, maximum: u64::MAX };
    // SAFETY: the pointer is to a live object.
    unsafe { sys::getrlimit(sys::RLIMIT_FSIZE, &mut limit) == 0 && length > limit.current }
}

/// Makes sure that the bytes `from..to` of the file have room on the disk, so that writing to a
/// mapping of them cannot raise SIGBUS.
pub fn extend(fd: c_int, from: u64, to: u64) -> Result<(), c_int> {
    if above_size_limit(to) {
        return Err(sys::EFBIG);
    }
    if to - from <= WRITTEN {
        return write_zeros(fd, from, to);
    }
    loop {
        // SAFETY: no pointers.
        if unsafe { sys::fallocate(fd, 0, from as i64, (to - from) as i64) } == 0 {
            return Ok(());
        }
        match sys::errno() {
            sys::EINTR => {}
            sys::EOPNOTSUPP | sys::ENOSYS => return write_zeros(fd, from, to),
            error => return Err(error),
        }
    }
}

/// Up to so many bytes are written instead of allocated. Both take the room or fail, but what is
/// written needs no place on the disk until the system writes it back, so that the files of a
/// short run that is thrown away never get one; freeing allocated places takes milliseconds.
const WRITTEN: u64 = STREAM_WINDOW as u64;

/// For small parts, and for file systems without `fallocate`.
fn write_zeros(fd: c_int, mut from: u64, to: u64) -> Result<(), c_int> {
    static ZEROS: [u8; 16 << 10] = [0; 16 << 10];
    while from < to {
        let n = (to - from).min(ZEROS.len() as u64) as usize;
        // SAFETY: the buffer has at least `n` bytes.
        let done = unsafe { sys::pwrite(fd, ZEROS.as_ptr().cast(), n, from as i64) };
        match done {
            1.. => from += done as u64,
            0 => return Err(sys::ENOSPC),
            _ if sys::errno() == sys::EINTR => {}
            _ => return Err(sys::errno()),
        }
    }
    Ok(())
}

/// Writes `length` bytes at an offset of the file.
///
/// # Safety
///
/// The bytes must be readable.
pub unsafe fn write_at(
    fd: c_int,
    data: *const u8,
    length: usize,
    offset: u64,
) -> Result<(), c_int> {
    if above_size_limit(offset.saturating_add(length as u64)) {
        return Err(sys::EFBIG);
    }
    let mut done = 0;
    while done < length {
        let at = (offset + done as u64) as i64;
        // SAFETY: the caller vouches for the bytes.
        match unsafe { sys::pwrite(fd, data.add(done).cast(), length - done, at) } {
            written @ 1.. => done += written as usize,
            0 => return Err(sys::ENOSPC),
            _ if sys::errno() == sys::EINTR => {}
            _ => return Err(sys::errno()),
        }
    }
    Ok(())
}

/// Writes `length` bytes at the descriptor's place.
///
/// # Safety
///
/// The bytes must be readable.
pub unsafe fn write_all(fd: c_int, mut data: *const u8, mut length: usize) -> Result<(), c_int> {
    // SAFETY: no pointers.
    let at = unsafe { sys::lseek(fd, 0, 2) };
    if above_size_limit((at.max(0) as u64).saturating_add(length as u64)) {
        return Err(sys::EFBIG);
    }
    while length > 0 {
        // SAFETY: the caller vouches for the bytes.
        let done = unsafe { sys::write(fd, data.cast(), length) };
        match done {
            1.. => {
                // SAFETY: `done` is at most the rest's length.
                data = unsafe { data.add(done as usize) };
                length -= done as usize;
            }
            0 => return Err(sys::ENOSPC),
            _ if sys::errno() == sys::EINTR => {}
            _ => return Err(sys::errno()),
        }
    }
    Ok(())
}

/// Maps the bytes `offset..offset + length` of a file for reading and writing, at `at` or, when
/// that is null, at any address.
///
/// # Safety
///
/// What is mapped at `at`, if it is not null, is lost.
pub unsafe fn map(fd: c_int, offset: u64, length: usize, at: u64) -> Result<u64, c_int> {
    let fixed = if at == 0 { 0 } else { sys::MAP_FIXED };
    // SAFETY: the caller vouches for the range.
    let got = unsafe {
        sys::mmap(
            at as *mut _,
            length,
            sys::PROT_READ_WRITE,
            sys::MAP_SHARED | fixed,
            fd,
            offset as i64,
        )
    };
    if got as usize == sys::MAP_FAILED { Err(sys::errno()) } else { Ok(got as u64) }
}

/// Makes a file of `length` zeros and maps it. With `exclusive` it must not be there yet.
pub fn create_mapped(path: &FileName, length: usize, exclusive: bool) -> Result<u64, c_int> {
    let flags = sys::O_RDWR | sys::O_CREAT | if exclusive { sys::O_EXCL } else { 0 };
    let fd = open(path, flags)?;
    let mapped = extend(fd, 0, length as u64).and_then(|()| {
        // SAFETY: at an address of the kernel's choice.
        unsafe { map(fd, 0, length, 0) }
    });
    close(fd);
    mapped
}
