//! What the log says of values: it is right where it differs from what was computed, and it tells what
//! symbolic values were in the recorded run.

use super::{Engine, instruction_name};
use crate::eval;
use crate::heap::{HEAP, PRIVATE};
use crate::memory::MemoryByte;
use crate::report::GapKind;
use crate::settled::settle;
use crate::thread::Stop;
use crate::value::{Scalar, Value};
use ir::types::{InstId, InstKind, Instruction, Module, TypeId};
use model::expr::mask;
use model::{BinOp, Expr, ExprId, ExprPool, PathConditionKind};

impl Engine<'_> {
    /// The next value in the log.
    pub fn take_value(&mut self, t: usize, ty: TypeId) -> Result<Value, Stop> {
        let module = self.module(t);
        self.take_value_of(t, module, ty)
    }

    pub fn take_value_of(&mut self, t: usize, module: &Module, ty: TypeId) -> Result<Value, Stop> {
        let length = ir::plan::logged_bytes(module, ty);
        self.threads[t].bytes(length, |bytes| decode_logged(module, ty, bytes))
    }

    /// Compares a computed value with the logged one, which is right where they differ, and notes
    /// what the log says about symbolic ones.
    pub(super) fn reconcile(
        &mut self,
        t: usize,
        value: Value,
        id: InstId,
        inst: &Instruction,
    ) -> Result<Value, Stop> {
        let Some(logged) = self.take_guess(t, id, inst.ty)? else { return Ok(value) };
        // What the log says of a landing pad is not what some call read on its way there.
        if !matches!(inst.kind, InstKind::LandingPad) {
            self.record_reads(t, &logged, inst.ty);
        }
        // The usual case, for which the name of the instruction is not needed.
        if value == logged {
            return Ok(value);
        }
        self.note_read(t, inst, &logged);
        Ok(self.merge(t, &value, &logged, &instruction_name(&inst.kind)))
    }

    /// See [`Self::reconcile`].
    pub fn merge(&mut self, t: usize, value: &Value, logged: &Value, kind: &str) -> Value {
        match (value, logged) {
            (Value::Scalar(value), Value::Scalar(logged)) => {
                self.merge_scalar(t, *value, *logged, kind).into()
            }
            (Value::Aggregate(values), Value::Aggregate(logs)) if values.len() == logs.len() => {
                let merged = values.iter().zip(logs.iter()).map(|(v, l)| self.merge(t, v, l, kind));
                Value::aggregate(merged.collect())
            }
            (value, Value::Absent) => value.clone(),
            (_, logged) => logged.clone(),
        }
    }

    fn merge_scalar(&mut self, t: usize, value: Scalar, logged: Scalar, kind: &str) -> Scalar {
        if value.width != logged.width || !self.symbolic() {
            return logged;
        }
        let Some(word) = logged.as_const() else { return value };
        let computed = match value.as_expr() {
            None => value.as_const(),
            Some(id) => self.recorded_value(id),
        };
        match (computed, value.as_expr()) {
            (Some(computed), _) if computed == word => value,
            // Made-up addresses stand for real ones, which nobody recorded.
            (Some(computed), _) if is_made_up(computed) => value,
            (Some(computed), _) => {
                let is_read = ["load", "atomicrmw", "cmpxchg"].contains(&kind);
                if !(is_read && self.ends_behind_panic(t)) {
                    let detail = format!("computed {computed:#x}, logged {word:#x}");
                    self.gap(t, GapKind::WrongValue(kind.to_owned()), detail);
                }
                logged
            }
            (None, Some(id)) if contradicts(&self.pool, id, word) => {
                let detail = format!("a part is known to be another than in {word:#x}");
                self.gap(t, GapKind::WrongValue(kind.to_owned()), detail);
                logged
            }
            (None, Some(id)) => {
                self.learn(id, word);
                value
            }
            (None, None) => logged,
        }
    }

    fn note_known(&mut self, id: ExprId, value: u128) {
        self.idle.note_known(id);
        self.known.insert(id, value);
    }

    /// Notes that an expression had this value in the recorded run.
    ///
    /// A constant is what it is: it is one expression wherever it occurs, and what one place of the log says of it
    /// would hold for all others.
    pub(crate) fn learn(&mut self, id: ExprId, value: u128) {
        if self.pool.as_const(id).is_some() {
            return;
        }
        self.note_known(id, value);
        match self.pool.get(id) {
            Expr::Var { var, .. } => self.out.set_recorded(var, value),
            Expr::ZExt(inner, _) | Expr::SExt(inner, _) => {
                let value = value & mask(self.pool.width(inner));
                self.learn(inner, value);
            }
            Expr::Not(inner) => {
                let mask = mask(self.pool.width(inner));
                self.learn(inner, !value & mask);
            }
            Expr::Concat { high, low } => {
                let width = self.pool.width(low);
                self.learn(low, value & mask(width));
                self.learn(high, value >> width);
            }
            Expr::Bin(op @ (BinOp::Add | BinOp::Sub | BinOp::Xor), a, b) => {
                self.learn_operand(op, a, b, value);
            }
            Expr::Extract { of, width: 8, .. } => self.learn_bytes(of),
            _ => {}
        }
    }

    /// A byte of a variable is known: where all are, as of a text that is looked at character by character, it is.
    fn learn_bytes(&mut self, of: ExprId) {
        let is_open =
            matches!(self.pool.get(of), Expr::Var { .. }) && !self.known.contains_key(&of);
        let width = self.pool.width(of);
        if !is_open || !width.is_multiple_of(8) {
            return;
        }
        let whole = (0..width / 8).rev().try_fold(0, |whole: u128, byte| {
            let part = self.pool.extract(of, 8 * byte, 8);
            Some((whole << 8) | self.known.get(&part)?)
        });
        if let Some(whole) = whole {
            self.learn(of, whole);
        }
    }

    /// The operand of a sum, difference or exclusive or, of which the other operand is known: the
    /// pool may have put what is computed with it into another form.
    fn learn_operand(&mut self, op: BinOp, a: ExprId, b: ExprId, value: u128) {
        let width = self.pool.width(a);
        let constant = |engine: &Self, id: ExprId| {
            engine.pool.as_const(id).or_else(|| engine.known.get(&id).copied())
        };
        let compute = |op: BinOp, x: u128, y: u128| crate::concrete::binary(op, width, x, y);
        match (op, constant(self, a), constant(self, b)) {
            (BinOp::Add, None, Some(b)) => self.learn(a, compute(BinOp::Sub, value, b)),
            (BinOp::Add, Some(a), None) => self.learn(b, compute(BinOp::Sub, value, a)),
            (BinOp::Sub, None, Some(b)) => self.learn(a, compute(BinOp::Add, value, b)),
            (BinOp::Sub, Some(a), None) => self.learn(b, compute(BinOp::Sub, a, value)),
            (BinOp::Xor, None, Some(b)) => self.learn(a, compute(BinOp::Xor, value, b)),
            (BinOp::Xor, Some(a), None) => self.learn(b, compute(BinOp::Xor, value, a)),
            _ => {}
        }
    }

    /// Tells the variables of the current instruction's read what they were.
    fn record_reads(&mut self, t: usize, logged: &Value, ty: TypeId) {
        if self.pending_reads.is_empty() {
            return;
        }
        let module = self.module(t);
        let bytes = self.value_bytes(module, ty, logged);
        for read in std::mem::take(&mut self.pending_reads) {
            let value = (0..i64::from(read.width / 8)).rev().try_fold(0u128, |value, i| {
                let at = usize::try_from(read.offset + i).ok()?;
                match bytes.get(at)? {
                    MemoryByte::Const(byte) => Some((value << 8) | u128::from(*byte)),
                    _ => None,
                }
            });
            if let Some(value) = value {
                self.out.set_recorded(read.var, value);
            }
        }
    }

    /// The value that an expression had in the recorded run, where it follows from the log.
    pub fn recorded_value(&mut self, root: ExprId) -> Option<u128> {
        if let Some(&value) = self.known.get(&root) {
            return Some(value);
        }
        let mut stack = vec![(root, false)];
        while let Some((id, ready)) = stack.pop() {
            if self.known.contains_key(&id) {
                continue;
            }
            let expr = self.pool.get(id);
            let value = match expr {
                Expr::Const { value, .. } => Some(value),
                Expr::Var { var, .. } => Some(self.out.recorded(var)?),
                _ if ready => {
                    Some(self.pool.apply(expr, |operand| self.known.get(&operand).copied())?)
                }
                _ => None,
            };
            match value {
                Some(value) => {
                    self.note_known(id, value);
                }
                None => {
                    stack.push((id, true));
                    expr.for_each_operand(|operand| stack.push((operand, false)));
                }
            }
        }
        self.known.get(&root).copied()
    }

    /// The concrete value that a symbolic address, size or call target had; adds the condition
    /// that it stays that.
    pub fn concretise(&mut self, t: usize, scalar: Scalar, kind: PathConditionKind) -> Option<u64> {
        let id = match scalar.as_expr() {
            None => return scalar.as_const().map(|value| value as u64),
            Some(id) => id,
        };
        let value = self.recorded_value(id)?;
        if self.symbolic() && self.threads[t].concretised.insert(id) {
            self.idle.note_concretised(id);
            let equal = self.pool.pinned(id, value);
            let site = self.site(t);
            self.out.condition(t, equal, kind, site);
            settle(&self.pool, id, value, &mut self.threads[t].settled);
        }
        Some(value as u64)
    }
}

/// A logged value; missing bytes are zeros.
pub(crate) fn decode_logged(module: &Module, ty: TypeId, bytes: &[u8]) -> Value {
    let mut rest = bytes;
    eval::build(module, ty, &mut |bits| {
        let length = ir::plan::scalar_bytes(bits).min(rest.len());
        let (own, behind) = rest.split_at(length);
        rest = behind;
        let lowest = own.iter().take(16).rev();
        let value = lowest.fold(0u128, |value, &byte| (value << 8) | u128::from(byte));
        Scalar::constant(bits, value)
    })
}

/// Is a part of the expression a constant that is another in this value, as where code that is not walked wrote some
/// bytes of what was loaded?
fn contradicts(pool: &ExprPool, id: ExprId, value: u128) -> bool {
    match pool.get(id) {
        Expr::Const { value: constant, .. } => constant != value,
        Expr::ZExt(inner, _) | Expr::SExt(inner, _) => {
            contradicts(pool, inner, value & mask(pool.width(inner)))
        }
        Expr::Concat { high, low } => {
            let width = pool.width(low);
            contradicts(pool, low, value & mask(width))
                || contradicts(pool, high, value.checked_shr(width).unwrap_or(0))
        }
        _ => false,
    }
}

fn is_made_up(value: u128) -> bool {
    let private = u128::from(PRIVATE)..u128::from(HEAP);
    let code = u128::from(crate::image::FAKE_CODE)..u128::from(crate::image::FAKE_CODE_END);
    private.contains(&value) || code.contains(&value)
}

#[cfg(test)]
mod tests {
    use super::contradicts;
    use model::{ExprPool, VarId};

    #[test]
    fn a_constant_part_is_no_other_value() {
        let mut pool = ExprPool::default();
        let (zero, unknown) = (pool.constant(8, 0), pool.var(VarId(0), 8));
        let low = pool.concat(unknown, zero);
        let high = pool.concat(zero, unknown);
        let wide = pool.zext(low, 32);
        assert!(contradicts(&pool, zero, 249));
        assert!(!contradicts(&pool, zero, 0));
        assert!(!contradicts(&pool, unknown, 249));
        assert!(contradicts(&pool, low, 0x12f9));
        assert!(!contradicts(&pool, low, 0x1200));
        assert!(contradicts(&pool, high, 0x1200));
        assert!(!contradicts(&pool, high, 0x12));
        assert!(contradicts(&pool, wide, 0x12f9));
    }
}
