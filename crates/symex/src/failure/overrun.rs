//! What libc's checks (`_FORTIFY_SOURCE`) refused: φbug is that more is to be written than there is room
//! for, or that a set of descriptors has no place for one.

use super::Found;
use crate::engine::Engine;
use crate::value::{self, Scalar, Value};
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

/// So many descriptors fit into an `fd_set`.
const DESCRIPTORS: u128 = 1024;

impl Engine<'_> {
    /// The thread ended in such a function, whose check depends on shared data.
    pub(super) fn overrun(&mut self, t: usize) -> Option<Found> {
        let call = self.threads[t].external_call()?;
        if call.name == "__fdelt_chk" {
            let descriptor = call.arguments.first().and_then(Value::scalar)?;
            let limit = Scalar::constant(descriptor.width, DESCRIPTORS);
            // Negative ones are large without their sign.
            let condition = value::cmp(&mut self.pool, CmpOp::ULe, limit, descriptor).as_expr()?;
            return Some(Found { condition, path_condition: None });
        }
        if !SIZED.contains(&call.name) {
            return None;
        }
        let [.., written, room] = call.arguments.as_slice() else { return None };
        let (written, room) = Value::scalar(written).zip(Value::scalar(room))?;
        let condition = value::cmp(&mut self.pool, CmpOp::ULt, room, written).as_expr()?;
        Some(Found { condition, path_condition: None })
    }
}
