//! `alloca`, `load`, `store` and the atomic instructions.

use crate::access::{Grain, Place};
use crate::engine::Engine;
use crate::memory::MemoryByte;
use crate::report::GapKind;
use crate::thread::Stop;
use crate::value::{self, Scalar, Value};
use ir::types::{InstId, Instruction, Operand, RmwOp, TypeId};
use model::{BinOp, CmpOp, FloatOp, PathConditionKind};

/// No stack holds more.
const LARGEST_ALLOCA: u64 = 1 << 26;

impl<'r> Engine<'r> {
    pub fn alloca(
        &mut self,
        t: usize,
        id: InstId,
        inst: &'r Instruction,
        size: u64,
        count: Operand,
    ) -> Result<(), Stop> {
        let count = match self.scalar(t, count) {
            Some(count) => self.concretise(t, count, PathConditionKind::Address),
            None => None,
        };
        let Some(count) = count else {
            let value = self.fresh(t, inst.ty, Some(GapKind::UnknownAddress));
            return self.finish(t, value);
        };
        let bytes = size.saturating_mul(count).min(LARGEST_ALLOCA);
        if !self.is_logged(t) {
            let address = self.threads[t].private(bytes);
            self.idle.note_object(self.threads[t].frames.len(), address, bytes);
            self.memory.fill(address, bytes, MemoryByte::Fresh);
            return self.finish(t, Value::constant(64, u128::from(address)));
        }
        self.finish(t, Value::Absent)?;
        // The register now holds the logged address.
        let address = self.previous_result(t).and_then(Scalar::as_const).unwrap_or(0) as u64;
        self.extend_stack(t, address, bytes);
        self.begin_local(t, id, address, bytes);
        if let Some(internal) = self.resolve(t, address) {
            self.idle.note_object(self.threads[t].frames.len(), internal, bytes);
            self.begin_own(internal, bytes);
            self.is_the_programs(internal, bytes);
            self.memory.fill(internal, bytes, MemoryByte::Fresh);
        }
        Ok(())
    }

    /// The value of the instruction that was executed last.
    fn previous_result(&self, t: usize) -> Option<Scalar> {
        let frame = self.threads[t].code()?;
        let last = frame.next.index().checked_sub(1)?;
        frame.registers.get(last)?.scalar()
    }

    pub fn load(
        &mut self,
        t: usize,
        id: InstId,
        inst: &'r Instruction,
        pointer: Operand,
    ) -> Result<(), Stop> {
        let place = self.held_pointer(t, inst.ty, pointer);
        let value = self.load_value(t, inst.ty, pointer)?;
        self.finish(t, value)?;
        // What the log says of the value is known by now.
        if let Some(place) = place {
            self.reaches(t, id, place);
        }
        Ok(())
    }

    fn load_value(&mut self, t: usize, ty: TypeId, pointer: Operand) -> Result<Value, Stop> {
        let module = self.module(t);
        let address = self.scalar(t, pointer);
        let size = module.store_size(ty);
        self.check_fault(t, address, size)?;
        let logged = self.is_logged(t);
        self.read_guess(t)?;
        let Some(address) = self.address(t, address) else {
            return Ok(self.fresh(t, ty, None));
        };
        let mut bytes = self.read(t, Place::new(address, size, Some(pointer)), Grain::Access);
        let known = bytes.iter().all(|b| !matches!(b, MemoryByte::Unknown | MemoryByte::Fresh));
        if logged && (!known || self.in_callback(t)) {
            self.fill_from_log(t, ty, address, &mut bytes);
        }
        self.settle_in_memory(t, address, &mut bytes);
        let value = self.bytes_value(module, ty, &bytes);
        if logged && !known {
            self.note_read_at(t, address, &value);
        }
        if value == Value::Absent && !logged {
            return Ok(self.fresh(t, ty, Some(GapKind::Width)));
        }
        Ok(value)
    }

    /// `llvm.load.relative`: the base plus the signed 32-bit number at an offset from it.
    pub fn load_relative(
        &mut self,
        t: usize,
        base: Option<Scalar>,
        offset: Option<Scalar>,
    ) -> Option<Scalar> {
        let (base, offset) = base.zip(offset)?;
        let offset = value::resize(&mut self.pool, offset, 64, true);
        let place = value::bin(&mut self.pool, BinOp::Add, base, offset);
        let address = self.address(t, Some(place))?;
        let mut bytes = self.read(t, Place::new(address, 4, None), Grain::Access);
        self.settle_in_memory(t, address, &mut bytes);
        let distance = crate::memory::compose(&mut self.pool, &bytes);
        let distance = value::resize(&mut self.pool, distance, 64, true);
        Some(value::bin(&mut self.pool, BinOp::Add, base, distance))
    }

    /// Unknown bytes of a logged load are what the log says. In a callback that goes for constant
    /// bytes as well: uninstrumented code may have moved them.
    fn fill_from_log(
        &mut self,
        t: usize,
        ty: TypeId,
        address: u64,
        bytes: &mut crate::memory::Bytes,
    ) {
        let module = self.module(t);
        let Some(logged) = self.peek_guess(t, ty) else { return };
        let logged = self.value_bytes(module, ty, &logged);
        let callback = self.in_callback(t);
        for (i, (byte, known)) in bytes.iter_mut().zip(logged).enumerate() {
            let doubtful = match byte {
                MemoryByte::Unknown | MemoryByte::Fresh => true,
                MemoryByte::Const(_) => callback && *byte != known,
                MemoryByte::Part(..) => false,
            };
            if doubtful {
                *byte = known;
                self.memory.set(address + i as u64, known);
            }
        }
    }

    pub fn store(
        &mut self,
        t: usize,
        id: InstId,
        _inst: &'r Instruction,
        pointer: Operand,
        value: Operand,
    ) -> Result<(), Stop> {
        let module = self.module(t);
        let Some(ty) = self.operand_type(t, value) else {
            self.gap(t, GapKind::Instruction("store".to_owned()), "no type".to_owned());
            return self.finish(t, Value::Absent);
        };
        let address = self.scalar(t, pointer);
        let size = module.store_size(ty);
        self.check_fault(t, address, size)?;
        let value = self.operand(t, value);
        // Absent is also what is undefined.
        if value == Value::Absent && !matches!(module.scalar_bits(ty), Some(1..=128)) {
            self.gap(t, GapKind::Width, String::new());
        }
        if let Some(address) = self.address(t, address) {
            let bytes = self.value_bytes(module, ty, &value);
            self.write(t, Place::new(address, size, Some(pointer)), &bytes, Grain::Access);
            self.note_store(t, address, id);
        }
        self.keep_stored(t, id, &value);
        self.finish(t, Value::Absent)
    }

    pub fn atomic_rmw(
        &mut self,
        t: usize,
        inst: &'r Instruction,
        op: RmwOp,
        pointer: Operand,
        operand: Operand,
    ) -> Result<(), Stop> {
        let module = self.module(t);
        let size = module.store_size(inst.ty);
        let address = self.scalar(t, pointer);
        self.check_fault(t, address, size)?;
        let (address, operand) = (self.address(t, address), self.scalar(t, operand));
        let (Some(address), Some(operand), Some(width)) =
            (address, operand, module.scalar_bits(inst.ty).filter(|&bits| bits <= 128))
        else {
            let value = self.fresh(t, inst.ty, None);
            return self.finish(t, value);
        };
        let place = Place::new(address, size, Some(pointer));
        let mut change = |engine: &mut Self, old: Scalar| match rmw(engine, op, old, operand) {
            Some(new) => new,
            None => {
                engine.gap(t, GapKind::Instruction(format!("atomicrmw {op:?}")), String::new());
                let expr = engine.input(old.width);
                Scalar::expr(&engine.pool, expr)
            }
        };
        let old = self.read_modify_write(t, place, width, &mut change);
        self.finish(t, old.into())
    }

    pub fn cmpxchg(
        &mut self,
        t: usize,
        inst: &'r Instruction,
        pointer: Operand,
        expected: Operand,
        new: Operand,
    ) -> Result<(), Stop> {
        let module = self.module(t);
        let size = self.operand_type(t, new).map_or(8, |ty| module.store_size(ty));
        let address = self.scalar(t, pointer);
        self.check_fault(t, address, size)?;
        let (address, expected, new) =
            (self.address(t, address), self.scalar(t, expected), self.scalar(t, new));
        let (Some(address), Some(expected), Some(new)) = (address, expected, new) else {
            let value = self.fresh(t, inst.ty, None);
            return self.finish(t, value);
        };
        let place = Place::new(address, size, Some(pointer));
        let mut success = Scalar::boolean(false);
        let mut change = |engine: &mut Self, old: Scalar| {
            success = value::cmp(&mut engine.pool, CmpOp::Eq, old, expected);
            value::ite(&mut engine.pool, success, new, old)
        };
        let old = self.read_modify_write(t, place, new.width, &mut change);
        self.finish(t, Value::aggregate(vec![old.into(), success.into()]))
    }
}

/// The new value of an `atomicrmw`; `None` for an operation that is not known.
fn rmw(engine: &mut Engine<'_>, op: RmwOp, old: Scalar, operand: Scalar) -> Option<Scalar> {
    let pool = &mut engine.pool;
    let simple = |op| Some(op);
    let bin = match op {
        RmwOp::Add => simple(BinOp::Add),
        RmwOp::Sub => simple(BinOp::Sub),
        RmwOp::And => simple(BinOp::And),
        RmwOp::Or => simple(BinOp::Or),
        RmwOp::Xor => simple(BinOp::Xor),
        _ => None,
    };
    if let Some(bin) = bin {
        return Some(value::bin(pool, bin, old, operand));
    }
    Some(match op {
        RmwOp::Xchg => operand,
        RmwOp::Nand => {
            let both = value::bin(pool, BinOp::And, old, operand);
            value::not(pool, both)
        }
        RmwOp::Max | RmwOp::Min | RmwOp::UMax | RmwOp::UMin => {
            let signed = matches!(op, RmwOp::Max | RmwOp::Min);
            let less = if signed { CmpOp::SLt } else { CmpOp::ULt };
            let below = value::cmp(pool, less, old, operand);
            match op {
                RmwOp::Max | RmwOp::UMax => value::ite(pool, below, operand, old),
                _ => value::ite(pool, below, old, operand),
            }
        }
        RmwOp::FAdd | RmwOp::FSub => {
            let format = crate::eval::float::format_of(old.width)?;
            let op = if op == RmwOp::FAdd { FloatOp::Add } else { FloatOp::Sub };
            value::float_bin(pool, op, format, old, operand)
        }
        RmwOp::UIncWrap => {
            let one = Scalar::constant(old.width, 1);
            let next = value::bin(pool, BinOp::Add, old, one);
            let wraps = value::cmp(pool, CmpOp::ULe, operand, old);
            value::ite(pool, wraps, Scalar::constant(old.width, 0), next)
        }
        RmwOp::UDecWrap => {
            let one = Scalar::constant(old.width, 1);
            let next = value::bin(pool, BinOp::Sub, old, one);
            let zero = value::cmp(pool, CmpOp::Eq, old, Scalar::constant(old.width, 0));
            let above = value::cmp(pool, CmpOp::ULt, operand, old);
            let wraps = value::or(pool, zero, above);
            value::ite(pool, wraps, operand, next)
        }
        _ => return None,
    })
}
