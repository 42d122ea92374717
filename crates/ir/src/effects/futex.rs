//! Which system calls on futexes write nothing.

/// The number of the system call.
pub const FUTEX: u64 = 202;
/// Says how the word is shared and which clock is meant.
pub const FLAGS: u64 = 128 | 256;
/// To wait, wake, requeue, compare and requeue, and to wait and wake by bits.
pub const PLAIN: [u64; 6] = [0, 1, 3, 4, 9, 10];

/// Does a system call with this number and third argument write to none of the objects that it is given?
#[must_use]
pub fn is_plain_futex(number: u64, operation: u64) -> bool {
    number == FUTEX && PLAIN.contains(&(operation & u64::from(u32::MAX) & !FLAGS))
}
