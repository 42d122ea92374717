//! The exit codes of `symbiosis`, all of them (design section 8; `docs/exit-codes.md`).

/// The command did what was asked.
pub const SUCCESS: u8 = 0;
/// Something unexpected went wrong.
pub const UNEXPECTED: u8 = 1;
/// The command line is wrong.
pub const USAGE: u8 = 2;
/// A schedule was found, but its replay differs.
pub const REPLAY_DIFFERS: u8 = 10;
/// There is no schedule (UNSAT).
pub const NO_SCHEDULE: u8 = 11;
/// A limit or time-out was hit.
pub const LIMIT: u8 = 12;
/// What was recorded can still happen, and did no harm.
pub const HARMLESS: u8 = 13;
/// The trace is corrupt or of another version.
pub const BAD_TRACE: u8 = 20;
/// The binary does not match the trace.
pub const WRONG_BINARY: u8 = 21;
