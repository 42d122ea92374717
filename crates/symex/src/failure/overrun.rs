//! Writes that libc's checks (`_FORTIFY_SOURCE`) refused: φbug is that more is to be written than
//! there is room for.

use super::Found;
use crate::engine::Engine;
use crate::value::{self, Value};
use model::CmpOp;

/// Checked functions whose last two arguments are how much they write and how much fits, in one
/// unit.
const SIZED: [&str; 11] = [
    "__memcpy_chk",
    "__memmove_chk",
    "__mempcpy_chk",
    "__memset_chk",
    "__explicit_bzero_chk",
    "__strncpy_chk",
    "__stpncpy_chk",
    "__read_chk",
    "__wmemcpy_chk",
    "__wmemmove_chk",
    "__wmemset_chk",
];

impl Engine<'_> {
    /// The thread ended in such a function, whose check depends on shared data.
    pub(super) fn overrun(&mut self, t: usize) -> Option<Found> {
        let call = self.threads[t].external_call()?;
        if !SIZED.contains(&call.name) {
            return None;
        }
        let [.., written, room] = call.arguments.as_slice() else { return None };
        let (written, room) = Value::scalar(written).zip(Value::scalar(room))?;
        let condition = value::cmp(&mut self.pool, CmpOp::ULt, room, written).as_expr()?;
        Some(Found { condition, path_condition: None })
    }
}
