//! Connections of UNIX's sockets that have names (`sockaddr_un`), as they are known to [`super`].
//!
//! An end that connected has no address of its own, so a connection is called by the inode of its socket. Of the end that was
//! accepted the kernel's diagnostics of sockets (`sock_diag(7)`) tell which that is; where these are not there or not
//! allowed, nothing is told of such connections.

use super::{DESCRIPTORS, slot};
use crate::sys::{self, SYS_CLOSE};
use crate::syscall::call;
use core::ffi::{c_int, c_long};
use core::sync::atomic::{AtomicU64, Ordering};

const SYS_SENDTO: c_long = 44;
const SYS_RECVFROM: c_long = 45;
const SYS_SOCKET: c_long = 41;
const SYS_FSTAT: c_long = 5;
const AF_UNIX: u8 = 1;
const AF_NETLINK: c_long = 16;
/// `SOCK_DGRAM | SOCK_CLOEXEC`.
const DATAGRAMS: c_long = 2 | 0o2_000_000;
const NETLINK_SOCK_DIAG: c_long = 4;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST: u16 = 1;
const UDIAG_SHOW_PEER: u32 = 4;
/// The number of the attribute with the inode of the other end.
const UNIX_DIAG_PEER: u16 = 2;
/// `struct nlmsghdr`, and with `struct unix_diag_msg` behind it.
const HEADER: usize = 16;
const ANSWER: usize = HEADER + 16;

/// Per descriptor the inode of its socket, and that of the end that connected; 0 for one that is no such connection.
static OWN: [AtomicU64; DESCRIPTORS] = [const { AtomicU64::new(0) }; DESCRIPTORS];
static CONNECTED: [AtomicU64; DESCRIPTORS] = [const { AtomicU64::new(0) }; DESCRIPTORS];

/// An end of a connection.
#[derive(Clone, Copy)]
pub(super) struct End {
    /// What the connection is called.
    pub(super) connection: u64,
    /// It is the end that connected.
    pub(super) is_first: bool,
}

/// Of a descriptor that was entered; a number may have become another descriptor's since, so the kernel is asked.
pub(super) fn end(fd: c_int) -> Option<End> {
    let at = slot(fd)?;
    let own = OWN[at].load(Ordering::Relaxed);
    if own == 0 {
        return None;
    }
    if inode(fd) != Some(own) {
        OWN[at].store(0, Ordering::Relaxed);
        return None;
    }
    let connection = CONNECTED[at].load(Ordering::Relaxed);
    Some(End { connection, is_first: connection == own })
}

/// Enters an end that has connected.
pub(super) fn connected(fd: c_int) {
    if let Some(own) = inode(fd) {
        enter(fd, own, own);
    }
}

/// Enters an end that was accepted.
pub(super) fn accepted(fd: c_int) {
    let own = inode(fd);
    let Some((own, other)) = own.and_then(|own| Some((own, other_end(own)?))) else { return };
    enter(fd, own, other);
}

/// `to` is another number of the same.
pub(super) fn copied(from: usize, to: usize) {
    OWN[to].store(OWN[from].load(Ordering::Relaxed), Ordering::Relaxed);
    CONNECTED[to].store(CONNECTED[from].load(Ordering::Relaxed), Ordering::Relaxed);
}

fn enter(fd: c_int, own: u64, connected: u64) {
    if let Some(at) = slot(fd) {
        CONNECTED[at].store(connected, Ordering::Relaxed);
        OWN[at].store(own, Ordering::Relaxed);
    }
}

/// The inode of a descriptor's socket.
fn inode(fd: c_int) -> Option<u64> {
    // `struct stat`, whose second member it is.
    let mut about = [0u64; 18];
    let at = about.as_mut_ptr() as c_long;
    // SAFETY: the buffer is as large as the structure.
    let done = sys::keeping_errno(|| unsafe { call(SYS_FSTAT, &[c_long::from(fd), at]) });
    (done == 0).then_some(about[1])
}

/// The inode of the socket at the other end of the connection of this one.
fn other_end(own: u64) -> Option<u64> {
    let own = u32::try_from(own).ok()?;
    let mut answer = [0u8; 256];
    let length = sys::keeping_errno(|| ask(&request(own), &mut answer));
    let answer = answer.get(..length)?;
    let kind = u16::from_ne_bytes(answer.get(4..6)?.try_into().ok()?);
    if kind != SOCK_DIAG_BY_FAMILY {
        return None;
    }
    let mut rest = answer.get(ANSWER..)?;
    loop {
        let size = usize::from(u16::from_ne_bytes(rest.get(..2)?.try_into().ok()?));
        let kind = u16::from_ne_bytes(rest.get(2..4)?.try_into().ok()?);
        if kind == UNIX_DIAG_PEER {
            let peer = u32::from_ne_bytes(rest.get(4..8)?.try_into().ok()?);
            return (peer != 0).then_some(u64::from(peer));
        }
        // An attribute is followed by the next one at a multiple of four bytes.
        rest = rest.get(size.max(4).next_multiple_of(4)..)?;
    }
}

/// `struct nlmsghdr` and `struct unix_diag_req`.
fn request(inode: u32) -> [u8; 40] {
    let mut bytes = [0u8; 40];
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    put(0, &40u32.to_ne_bytes());
    put(4, &SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    put(6, &NLM_F_REQUEST.to_ne_bytes());
    put(16, &[AF_UNIX]);
    // Any state, this socket, its other end, any cookie.
    put(20, &u32::MAX.to_ne_bytes());
    put(24, &inode.to_ne_bytes());
    put(28, &UDIAG_SHOW_PEER.to_ne_bytes());
    put(32, &u64::MAX.to_ne_bytes());
    bytes
}

/// Asks the kernel; how long its answer is, 0 for none.
fn ask(request: &[u8], answer: &mut [u8]) -> usize {
    let at = (request.as_ptr() as c_long, request.len() as c_long);
    let to = (answer.as_mut_ptr() as c_long, answer.len() as c_long);
    // SAFETY: the buffers have the sizes given, and the descriptor is the one that was made here.
    unsafe {
        let socket = call(SYS_SOCKET, &[AF_NETLINK, DATAGRAMS, NETLINK_SOCK_DIAG]);
        if socket < 0 {
            return 0;
        }
        let sent = call(SYS_SENDTO, &[socket, at.0, at.1]);
        let got = if sent < 0 { sent } else { call(SYS_RECVFROM, &[socket, to.0, to.1]) };
        call(SYS_CLOSE, &[socket]);
        usize::try_from(got).unwrap_or(0)
    }
}
