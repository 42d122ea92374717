//! What comes out of a library's function is in the log, as it was in the recorded run. Where something else may go in under
//! another schedule, because another thread writes what the function reads, or computed an argument, nobody knows what
//! comes out then. So it is a value of which only this is known: where the same goes in, the same comes out.
//!
//! That is so of functions that work out something, and nothing else: not of those that wait, that call back, or that use a
//! stream, a descriptor, or anything else that the system keeps. What the library prints is of no interest either.

use crate::builder::Origin;
use crate::engine::Engine;
use crate::memory::{Bytes, MemoryByte};
use crate::thread::{ExternalCall, Frame};
use crate::value::{self, Scalar, Value};
use ir::effects::{Base, Declaration, Kind, effect};
use model::{CmpOp, ExprId};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Of a call that reads more of what threads share it is only known that its outcome is not.
const MOST: usize = 4_096;
/// Which file describes the system's calls, whose outcome is not up to what they read.
const OF_THE_SYSTEM: &str = "posix.effects";
/// What it says in the end, and no number that anybody needs.
const PRINTS: [&str; 6] = ["puts", "perror", "psignal", "psiginfo", "syslog", "vsyslog"];

/// Does what comes out of such a function follow from what goes in?
fn works_out(declaration: &Declaration) -> bool {
    let prints = declaration.writes.is_empty()
        && (declaration.format.is_some_and(|format| !format.scans)
            || PRINTS.contains(&declaration.name.as_str()));
    declaration.kind == Kind::Library
        && declaration.file != OF_THE_SYSTEM
        && declaration.opaque.is_empty()
        && !(declaration.waits || declaration.sleeps || declaration.calls_back)
        && !(declaration.objects || prints)
}

impl<'r> Engine<'r> {
    /// Notes what the call that is under way read, where threads share some of it.
    pub fn note_goes_in(&mut self, t: usize, bytes: Option<Bytes>) {
        let (Some(bytes), Some(call)) = (bytes, self.threads[t].external_call()) else { return };
        let parts = bytes.iter().filter_map(|byte| match byte {
            MemoryByte::Part(id, _) => Some(*id),
            _ => None,
        });
        let mut known: BTreeSet<ExprId> = call.went_in.iter().copied().collect();
        for part in parts.take(MOST + 1) {
            if known.insert(part) {
                call.went_in.push(part);
            }
        }
        call.text_read.get_or_insert(bytes);
    }

    /// All that goes into the call that may be another under other schedules; none where what comes out does not follow from it.
    fn goes_in(&self, call: &ExternalCall<'r>) -> Arc<[ExprId]> {
        if !self.symbolic() || !effect(call.name).is_some_and(works_out) {
            return Arc::default();
        }
        let arguments = call.arguments.iter().filter_map(Value::scalar);
        let arguments = arguments.filter_map(Scalar::as_expr);
        let all = arguments.chain(call.went_in.iter().copied());
        all.filter(|id| self.is_shared(*id)).collect()
    }

    /// Is there a value in the expression that a read of shared memory had?
    fn is_shared(&self, id: ExprId) -> bool {
        let variables = self.pool.variables(id);
        variables.into_iter().any(|var| self.out.is_shared(var))
    }

    /// What a call gives back, where that follows from what threads share.
    pub fn derived(&mut self, t: usize, call: &ExternalCall<'r>, logged: Value) -> Value {
        let result = logged.scalar();
        let recorded = result.and_then(|result| Some((result.width, result.as_const()?)));
        let Some((width, recorded)) = recorded else { return logged };
        // Where new memory lies is nothing that follows from what stands in it.
        let gives_memory = effect(call.name).is_some_and(|declaration| {
            declaration.writes.iter().any(|region| region.place.base == Base::Result)
        });
        if gives_memory {
            return logged;
        }
        let inputs = self.goes_in(call);
        if inputs.is_empty() {
            return logged;
        }
        let same = self.same_goes_in(&inputs);
        let id = self.outcome(t, (&inputs, same), (width, recorded));
        Scalar::expr(&self.pool, id).into()
    }

    /// The same of bytes that the call under way wrote.
    pub fn derived_bytes(&mut self, t: usize, mut bytes: Bytes) -> Bytes {
        let Some(Frame::External(frame)) = self.threads[t].frames.last() else { return bytes };
        let inputs = frame.call.as_ref().map(|call| self.goes_in(call)).unwrap_or_default();
        if inputs.is_empty() {
            return bytes;
        }
        let same = self.same_goes_in(&inputs);
        for byte in &mut bytes {
            if let MemoryByte::Const(value) = *byte {
                let id = self.outcome(t, (&inputs, same), (8, u128::from(value)));
                *byte = MemoryByte::Part(id, 0);
            }
        }
        bytes
    }

    /// That the same goes in as in the recorded run; `None` where that is too much to say, or not known.
    fn same_goes_in(&mut self, inputs: &[ExprId]) -> Option<Scalar> {
        if inputs.len() > MOST {
            return None;
        }
        let mut same = Scalar::boolean(true);
        for &input in inputs {
            let value = self.recorded_value(input)?;
            let width = self.pool.width(input);
            let input = Scalar::expr(&self.pool, input);
            let equal =
                value::cmp(&mut self.pool, CmpOp::Eq, input, Scalar::constant(width, value));
            same = value::and(&mut self.pool, same, equal);
        }
        Some(same)
    }

    /// A value that was this in the recorded run, and is wherever the same goes in.
    fn outcome(
        &mut self,
        t: usize,
        (inputs, same): (&Arc<[ExprId]>, Option<Scalar>),
        (width, recorded): (u32, u128),
    ) -> ExprId {
        let var = self.out.variable(width, Origin::Input, Some(recorded));
        let id = self.pool.var(var, width);
        self.learn(id, recorded);
        if inputs.len() > MOST {
            return id;
        }
        self.out.outcome(&self.pool, var, Arc::clone(inputs));
        let Some(same) = same else { return id };
        let outcome = Scalar::expr(&self.pool, id);
        let equal =
            value::cmp(&mut self.pool, CmpOp::Eq, outcome, Scalar::constant(width, recorded));
        let other = value::not(&mut self.pool, same);
        let holds = value::or(&mut self.pool, other, equal);
        if let Some(holds) = holds.as_expr() {
            let site = self.site(t);
            self.out.tie(t, var, holds, site);
        }
        id
    }
}
