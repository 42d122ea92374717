//! Connections of TCP and of UNIX's stream sockets whose two ends are both in this process, as in a server's own tests: who
//! connects before whom is accepted, and who wrote what others read, or closed what they found ended.
//!
//! A connection's direction is known by the addresses of its ends, which the kernel tells at every call about a
//! descriptor that came from `connect` or `accept`; nothing is asked about other descriptors. What cannot be followed
//! (`sendfile`, streams on a descriptor) is reported as doubt.

mod local;

use crate::foreign;
use crate::layout::{RuntimeEvent, SocketUse, SyncOp, SyncPoint};
use crate::panics;
use crate::paths;
use crate::real;
use crate::schedule;
use crate::streams;
use crate::sync::{self, Call};
use crate::sys;
use crate::tls;
use core::ffi::{c_char, c_int, c_long, c_uint, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};

type P = *mut c_void;

/// Connections of descriptors from here on are not followed.
const DESCRIPTORS: usize = 4096;
const UNIX: u16 = 1;
const INET: u16 = 2;
const INET6: u16 = 10;
const STREAM: c_int = 1;
const SOL_SOCKET: c_int = 1;
const SO_TYPE: c_int = 3;
/// `MSG_OOB` and `MSG_PEEK`: nothing of the stream is taken.
const TAKES_NOTHING: c_int = 1 | 2;
const SHUT_RD: c_int = 0;
/// `F_DUPFD` and `F_DUPFD_CLOEXEC`.
const DUPLICATES: [c_int; 2] = [0, 1030];
/// How much a call may write that does not say so in one argument.
const ANY_SIZE: u64 = 1 << 30;
const WRITING_ENDED: u8 = 1;
const READING_ENDED: u8 = 2;

/// Per descriptor the number of the direction in which it writes, 0 for one that is no such connection. An entry may be
/// out of date: see [`Ends::of`].
static CONNECTIONS: [AtomicU64; DESCRIPTORS] = [const { AtomicU64::new(0) }; DESCRIPTORS];
/// Which directions have ended.
static ENDED: [AtomicU8; DESCRIPTORS] = [const { AtomicU8::new(0) }; DESCRIPTORS];

fn slot(fd: c_int) -> Option<usize> {
    usize::try_from(fd).ok().filter(|fd| *fd < DESCRIPTORS)
}

/// Room for any `struct sockaddr`.
#[repr(C, align(8))]
struct RawAddress {
    family: u16,
    port: u16,
    rest: [u8; 124],
}

/// An address and port; those of version 4 are mapped into version 6. Of an end of a UNIX connection the connection and
/// which end it is.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Address([u8; 18]);

impl Address {
    fn of(raw: &RawAddress) -> Option<Self> {
        let mut bytes = [0u8; 18];
        match raw.family {
            INET => {
                bytes[10..12].fill(0xff);
                bytes[12..16].copy_from_slice(raw.rest.get(..4)?);
            }
            // Behind four bytes of flow information.
            INET6 => bytes[..16].copy_from_slice(raw.rest.get(4..20)?),
            _ => return None,
        }
        bytes[16..].copy_from_slice(&raw.port.to_ne_bytes());
        Some(Self(bytes))
    }

    fn local(connection: u64, is_first: bool) -> Self {
        // As an address of version 6 that begins so would be of no host.
        let mut bytes = [0u8; 18];
        bytes[..2].copy_from_slice(&[0xff, u8::from(is_first)]);
        bytes[8..16].copy_from_slice(&connection.to_ne_bytes());
        Self(bytes)
    }
}

type NameOf = unsafe extern "C" fn(c_int, P, *mut c_uint) -> c_int;

fn raw_name(fd: c_int, function: NameOf) -> Option<RawAddress> {
    let mut raw = RawAddress { family: 0, port: 0, rest: [0; 124] };
    let mut size = size_of::<RawAddress>() as c_uint;
    // SAFETY: the buffer has the size given.
    let done = sys::keeping_errno(|| unsafe { function(fd, (&raw mut raw).cast(), &raw mut size) });
    (done == 0).then_some(raw)
}

fn name(fd: c_int, function: NameOf) -> Option<Address> {
    Address::of(&raw_name(fd, function)?)
}

fn is_local(fd: c_int) -> bool {
    raw_name(fd, sys::getsockname).is_some_and(|name| name.family == UNIX)
}

/// The two ends of a connection, as one of them sees it.
#[derive(Clone, Copy)]
struct Ends {
    here: Address,
    there: Address,
}

impl Ends {
    /// Asks the kernel.
    fn ask(fd: c_int) -> Option<Self> {
        if let Some(local::End { connection, is_first }) = local::end(fd) {
            let [here, there] = [is_first, !is_first].map(|end| Address::local(connection, end));
            return Some(Self { here, there });
        }
        Some(Self { here: name(fd, sys::getsockname)?, there: name(fd, sys::getpeername)? })
    }

    /// Of a descriptor that came from `connect` or `accept`, or is a copy of such a one. A number may have become another
    /// descriptor's since, so the kernel is asked again.
    fn of(fd: c_int) -> Option<Self> {
        let at = slot(fd)?;
        let known = CONNECTIONS[at].load(Ordering::Relaxed);
        if known == 0 {
            return None;
        }
        let ends = Self::ask(fd);
        let now = ends.map_or(0, |ends| ends.written(SocketUse::Bytes));
        if now != known {
            CONNECTIONS[at].store(now, Ordering::Relaxed);
            ENDED[at].store(0, Ordering::Relaxed);
        }
        ends
    }

    /// Enters a new connection.
    fn enter(fd: c_int) -> Option<Self> {
        let at = slot(fd)?;
        let ends = Self::ask(fd)?;
        CONNECTIONS[at].store(ends.written(SocketUse::Bytes), Ordering::Relaxed);
        ENDED[at].store(0, Ordering::Relaxed);
        Some(ends)
    }

    /// The number of the direction in which this end writes.
    fn written(&self, what: SocketUse) -> u64 {
        what.number(&self.here.0, &self.there.0)
    }

    /// The number of the direction from which it reads.
    fn read(&self, what: SocketUse) -> u64 {
        what.number(&self.there.0, &self.here.0)
    }
}

/// Is the other end of this connection in the process as well?
#[must_use]
pub fn is_within(fd: c_int) -> bool {
    let incoming = Ends::of(fd).map(|ends| ends.read(SocketUse::Bytes));
    let mut all = CONNECTIONS.iter();
    incoming.is_some_and(|number| all.any(|entry| entry.load(Ordering::Relaxed) == number))
}

fn is_stream(fd: c_int) -> bool {
    let mut kind: c_int = 0;
    let mut size = size_of::<c_int>() as c_uint;
    let at = (&raw mut kind).cast();
    // SAFETY: the option is a number of that size.
    let done = sys::keeping_errno(|| unsafe {
        sys::getsockopt(fd, SOL_SOCKET, SO_TYPE, at, &raw mut size)
    });
    done == 0 && kind == STREAM
}

/// One use of a direction by the calling thread, between two readings of the clock: both of its entries, at the end.
fn log(op: SyncOp, number: u64, what: SocketUse, moved: i64, before: u64) {
    let thread = tls::recording();
    if thread.is_null() {
        return;
    }
    // SAFETY: the record is the calling thread's own.
    unsafe {
        let (op, what) = (op as u64, what as u64);
        let begin = before.max((*thread).sync.time());
        streams::sync_event(
            thread,
            RuntimeEvent::SyncBegin,
            [op, number, what, moved as u64, begin],
        );
        let end = [op, number, what, moved as u64, sys::tsc()];
        streams::sync_event(thread, RuntimeEvent::SyncEnd, end);
    }
}

/// A call that may write so many bytes: it is told before it does.
fn writing(fd: c_int, size: u64, own: impl FnOnce() -> isize) -> isize {
    let ends = if foreign::inside() { None } else { Ends::of(fd) };
    match ends {
        Some(ends) => told(ends.written(SocketUse::Bytes), SocketUse::Bytes, size, own),
        None => paths::timed(own),
    }
}

/// `struct iovec`
#[repr(C)]
#[derive(Clone, Copy)]
struct Part {
    at: *const u8,
    length: usize,
}

/// So much was written from there.
///
/// # Safety
///
/// The kernel has read so much from there.
unsafe fn said(fd: c_int, data: P, written: isize) {
    if let Some(written) = usize::try_from(written).ok().filter(|written| *written > 0) {
        // SAFETY: the caller vouches for the bytes.
        panics::written(fd, unsafe { core::slice::from_raw_parts(data.cast(), written) });
    }
}

/// As [`said`], from several places one after the other.
///
/// # Safety
///
/// As of [`said`].
unsafe fn said_in_parts(fd: c_int, parts: *const Part, count: c_int, written: isize) {
    let mut left = usize::try_from(written).unwrap_or(0);
    for index in 0..usize::try_from(count).unwrap_or(0) {
        // Where nothing was written, nothing may be readable.
        if left == 0 {
            return;
        }
        // SAFETY: the caller vouches for what was written.
        let part = unsafe { parts.add(index).read_unaligned() };
        let length = part.length.min(left);
        left -= length;
        if length > 0 {
            // SAFETY: as above.
            panics::written(fd, unsafe { core::slice::from_raw_parts(part.at, length) });
        }
    }
}

fn told(number: u64, what: SocketUse, size: u64, own: impl FnOnce() -> isize) -> isize {
    let mut moved = -1;
    let object = core::ptr::without_provenance_mut(number as usize);
    let second = core::ptr::without_provenance_mut(what as usize);
    let call = Call { second, argument: size, ..Call::on(SyncOp::SocketWrite, object) };
    let work = || {
        moved = own();
        c_int::try_from(moved).unwrap_or(c_int::MAX)
    };
    // SAFETY: the numbers stand for addresses that nobody follows.
    unsafe { sync::around(call, work, |result| result) };
    moved
}

/// A call that may read: what it got is told when it comes back, and a scheduler decides when it goes on.
fn reading(fd: c_int, takes: bool, own: impl FnOnce() -> isize) -> isize {
    let ends = if foreign::inside() || !takes { None } else { Ends::of(fd) };
    let Some(ends) = ends else { return paths::timed(own) };
    let before = sys::tsc();
    let moved = own();
    match moved {
        1.. => passed(
            SyncOp::SocketRead,
            ends.read(SocketUse::Bytes),
            SocketUse::Bytes,
            moved as i64,
            before,
        ),
        0 if ends_first(fd, READING_ENDED) => {
            passed(SyncOp::SocketRead, ends.read(SocketUse::End), SocketUse::End, 1, before);
        }
        _ => {}
    }
    moved
}

/// A call has come back: a scheduler decides when the thread goes on.
fn passed(op: SyncOp, number: u64, what: SocketUse, moved: i64, before: u64) {
    sys::keeping_errno(|| {
        schedule::at_point(SyncPoint::Begin, Some(op));
        log(op, number, what, moved, before);
    });
}

/// Is it the first time that this direction of a descriptor ends?
fn ends_first(fd: c_int, direction: u8) -> bool {
    slot(fd).is_some_and(|at| ENDED[at].fetch_or(direction, Ordering::Relaxed) & direction == 0)
}

/// Writes end with the call, if no other descriptor has the connection.
fn ending(fd: c_int, closes: bool, own: impl FnOnce() -> c_int) -> c_int {
    let ends = if foreign::inside() { None } else { Ends::of(fd) };
    let Some((ends, at)) = ends.zip(slot(fd)) else { return paths::timed(own) };
    let number = ends.written(SocketUse::Bytes);
    let others = || {
        let mut others = CONNECTIONS.iter().enumerate().filter(|(other, _)| *other != at);
        others.any(|(_, entry)| entry.load(Ordering::Relaxed) == number)
    };
    let last = ends_first(fd, WRITING_ENDED) && !(closes && others());
    if closes {
        CONNECTIONS[at].store(0, Ordering::Relaxed);
    }
    match last {
        true => {
            let own = || if own() == 0 { 1 } else { -1 };
            let done = told(ends.written(SocketUse::End), SocketUse::End, 1, own);
            if done == 1 { 0 } else { -1 }
        }
        false => own(),
    }
}

/// More is written through the descriptor than anybody sees.
fn doubt(fd: c_int) {
    if !foreign::inside()
        && let Some(ends) = Ends::of(fd)
    {
        told(ends.written(SocketUse::Bytes), SocketUse::Doubt, ANY_SIZE, || 1);
    }
}

/// `to` is another number of the same.
fn copied(from: c_int, to: c_int) -> c_int {
    if let (Some(_), Some(from), Some(at)) = (Ends::of(from), slot(from), slot(to)) {
        local::copied(from, at);
        CONNECTIONS[at].store(CONNECTIONS[from].load(Ordering::Relaxed), Ordering::Relaxed);
        ENDED[at].store(ENDED[from].load(Ordering::Relaxed), Ordering::Relaxed);
    }
    to
}

fn connected(fd: c_int, before: u64) {
    if foreign::inside() || !is_stream(fd) {
        return;
    }
    if is_local(fd) {
        local::connected(fd);
    }
    if let Some(ends) = Ends::enter(fd) {
        let number = ends.written(SocketUse::Connection);
        passed(SyncOp::SocketWrite, number, SocketUse::Connection, 1, before);
    }
}

fn accepted(own: impl FnOnce() -> c_int) -> c_int {
    let before = sys::tsc();
    let fd = own();
    if fd < 0 || foreign::inside() {
        return fd;
    }
    if is_local(fd) && is_stream(fd) {
        local::accepted(fd);
    }
    if let Some(ends) = Ends::enter(fd) {
        passed(
            SyncOp::SocketRead,
            ends.read(SocketUse::Connection),
            SocketUse::Connection,
            1,
            before,
        );
    }
    fd
}

/// Forwards to the program's own function, or fails as a kernel without it does.
macro_rules! own {
    ($name:ident($($argument:expr),*) -> $failed:ty) => {
        match real::$name() {
            Some(function) => function($($argument),*),
            None => {
                sys::set_errno(sys::ENOSYS);
                -1 as $failed
            }
        }
    };
}

interpose! {
    fn connect(fd: c_int, address: P, size: c_uint) -> c_int {
        let before = sys::tsc();
        let result = own!(connect(fd, address, size) -> c_int);
        if result == 0 || sys::errno() == sys::EINPROGRESS {
            connected(fd, before);
        }
        result
    }

    fn accept(fd: c_int, address: P, size: P) -> c_int {
        accepted(|| own!(accept(fd, address, size) -> c_int))
    }

    fn accept4(fd: c_int, address: P, size: P, flags: c_int) -> c_int {
        accepted(|| own!(accept4(fd, address, size, flags) -> c_int))
    }

    fn write(fd: c_int, data: P, count: usize) -> isize {
        let result = writing(fd, count as u64, || own!(write(fd, data, count) -> isize));
        said(fd, data, result);
        result
    }

    fn writev(fd: c_int, parts: P, count: c_int) -> isize {
        let result = writing(fd, ANY_SIZE, || own!(writev(fd, parts, count) -> isize));
        said_in_parts(fd, parts.cast(), count, result);
        result
    }

    fn send(fd: c_int, data: P, count: usize, flags: c_int) -> isize {
        writing(fd, count as u64, || own!(send(fd, data, count, flags) -> isize))
    }

    fn sendto(fd: c_int, data: P, count: usize, flags: c_int, to: P, size: c_uint) -> isize {
        writing(fd, count as u64, || own!(sendto(fd, data, count, flags, to, size) -> isize))
    }

    fn sendmsg(fd: c_int, message: P, flags: c_int) -> isize {
        writing(fd, ANY_SIZE, || own!(sendmsg(fd, message, flags) -> isize))
    }

    fn read(fd: c_int, data: P, count: usize) -> isize {
        reading(fd, count > 0, || own!(read(fd, data, count) -> isize))
    }

    fn __read_chk(fd: c_int, data: P, count: usize, room: usize) -> isize {
        reading(fd, count > 0, || own!(__read_chk(fd, data, count, room) -> isize))
    }

    fn readv(fd: c_int, parts: P, count: c_int) -> isize {
        reading(fd, count > 0, || own!(readv(fd, parts, count) -> isize))
    }

    fn recv(fd: c_int, data: P, count: usize, flags: c_int) -> isize {
        let takes = count > 0 && flags & TAKES_NOTHING == 0;
        reading(fd, takes, || own!(recv(fd, data, count, flags) -> isize))
    }

    fn __recv_chk(fd: c_int, data: P, count: usize, room: usize, flags: c_int) -> isize {
        let takes = count > 0 && flags & TAKES_NOTHING == 0;
        reading(fd, takes, || own!(__recv_chk(fd, data, count, room, flags) -> isize))
    }

    fn recvfrom(fd: c_int, data: P, count: usize, flags: c_int, from: P, size: P) -> isize {
        let takes = count > 0 && flags & TAKES_NOTHING == 0;
        reading(fd, takes, || own!(recvfrom(fd, data, count, flags, from, size) -> isize))
    }

    fn recvmsg(fd: c_int, message: P, flags: c_int) -> isize {
        let takes = flags & TAKES_NOTHING == 0;
        reading(fd, takes, || own!(recvmsg(fd, message, flags) -> isize))
    }

    fn shutdown(fd: c_int, how: c_int) -> c_int {
        let own = || own!(shutdown(fd, how) -> c_int);
        if how == SHUT_RD { own() } else { ending(fd, false, own) }
    }

    fn close(fd: c_int) -> c_int {
        ending(fd, true, || own!(close(fd) -> c_int))
    }

    fn dup(fd: c_int) -> c_int {
        copied(fd, own!(dup(fd) -> c_int))
    }

    fn dup2(fd: c_int, to: c_int) -> c_int {
        copied(fd, own!(dup2(fd, to) -> c_int))
    }

    fn dup3(fd: c_int, to: c_int, flags: c_int) -> c_int {
        copied(fd, own!(dup3(fd, to, flags) -> c_int))
    }

    fn fcntl(fd: c_int, command: c_int, argument: c_long) -> c_int {
        let result = own!(fcntl(fd, command, argument) -> c_int);
        if DUPLICATES.contains(&command) { copied(fd, result) } else { result }
    }

    fn fcntl64(fd: c_int, command: c_int, argument: c_long) -> c_int {
        let result = own!(fcntl64(fd, command, argument) -> c_int);
        if DUPLICATES.contains(&command) { copied(fd, result) } else { result }
    }

    fn sendfile(to: c_int, from: c_int, offset: P, count: usize) -> isize {
        doubt(to);
        own!(sendfile(to, from, offset, count) -> isize)
    }

    fn sendfile64(to: c_int, from: c_int, offset: P, count: usize) -> isize {
        doubt(to);
        own!(sendfile64(to, from, offset, count) -> isize)
    }

    fn splice(from: c_int, at: P, to: c_int, offset: P, count: usize, flags: c_uint) -> isize {
        doubt(to);
        own!(splice(from, at, to, offset, count, flags) -> isize)
    }

    fn sendmmsg(fd: c_int, messages: P, count: c_uint, flags: c_int) -> c_int {
        doubt(fd);
        own!(sendmmsg(fd, messages, count, flags) -> c_int)
    }

    fn fdopen(fd: c_int, mode: *const c_char) -> P {
        doubt(fd);
        match real::fdopen() {
            Some(function) => function(fd, mode),
            None => null_mut(),
        }
    }
}
