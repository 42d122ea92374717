//! Calls of pure virtual functions: φbug is that the object's table is still, or again, that of the
//! base class.
//!
//! No branch leads there. What chose the function is the pointer to the table, which the constructors
//! and destructors of an object write one after the other while another thread may call.

use super::Found;
use crate::engine::{Engine, operand_value};
use crate::value::Scalar;
use ir::types::{Callee, InstId, InstKind, Operand};

/// What compilers put into tables in place of functions that nobody may call.
const UNCALLABLE: [&str; 2] = ["__cxa_pure_virtual", "__cxa_deleted_virtual"];
/// A target passes through so many casts at most.
const CASTS: usize = 8;

impl Engine<'_> {
    /// Did the thread end in a function that no object has once it is built?
    pub(super) fn in_pure_call(&mut self, t: usize) -> bool {
        self.threads[t].external_call().is_some_and(|call| UNCALLABLE.contains(&call.name))
    }

    /// Of such an end: that the pointer to the table was what it was, where it depends on shared data.
    pub(super) fn pure_call(&mut self, t: usize) -> Option<Found> {
        if !self.in_pure_call(t) {
            return None;
        }
        let deciding = self.dispatch(t)?;
        let expr = deciding.as_expr()?;
        let value = self.recorded_scalar(deciding)?;
        let value = self.pool.constant(deciding.width, value);
        let condition = self.pool.eq(expr, value);
        let path_condition = self.out.threads[t].number_of(condition);
        Some(Found { condition, path_condition })
    }

    /// What chose the target of the call that the thread is in: the target itself, or where it was
    /// loaded from.
    fn dispatch(&mut self, t: usize) -> Option<Scalar> {
        let frame = self.threads[t].innermost_code()?;
        let (function, call) = (frame.info.function, frame.next);
        let instruction = |id: InstId| function.instructions.get(id.index());
        let Callee::Indirect(mut target) = instruction(call)?.kind.as_call()?.callee else {
            return None;
        };
        for _ in 0..CASTS {
            let frame = self.threads[t].innermost_code()?;
            let value =
                operand_value(&self.threads[t], frame, self.image, &mut self.constants, target);
            if let Some(scalar) = value.scalar().filter(|scalar| scalar.as_expr().is_some()) {
                return Some(scalar);
            }
            let Operand::Inst(id) = target else { return None };
            target = match instruction(id)?.kind {
                InstKind::Cast(_, inner) | InstKind::Load { address: inner, .. } => inner,
                _ => return None,
            };
        }
        None
    }
}
