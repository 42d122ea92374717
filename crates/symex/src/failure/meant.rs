//! Which object a pointer means whose place several objects have had, one after the other.
//!
//! By when a thread had a pointer's value tells: an object that was allocated later is not meant by it,
//! even where it lies at the same address. Of the failing thread's registers it is known how many time
//! stamps it had passed when what they hold, or the pointer that it was computed from, was loaded,
//! returned or passed on; of what it wrote to memory that nobody else writes, too.
//!
//! For any thread's registers it tells which of two objects is meant that lay there one after the other between
//! two of the thread's time stamps: such a time is long where the thread makes a system call behind the access.

use crate::access::STAMP_SLACK;
use crate::engine::{Engine, Pass};
use crate::thread::Frame;
use crate::value::{Scalar, Value};
use ir::types::{CastOp, FuncId, InstId, InstKind, Instruction, Operand};
use smallvec::SmallVec;
use std::sync::Arc;

/// An access, the same in every walk: thread, entries of its path before, and the instruction.
pub(crate) type AccessKey = (usize, usize, usize, FuncId, InstId);

/// Of values by registers: how many time stamps the thread had passed when it had them.
#[derive(Default)]
pub(crate) struct Known {
    registers: Vec<Option<usize>>,
    arguments: Vec<usize>,
    /// At the function's beginning.
    entered: usize,
}

impl Known {
    pub fn of(&self, operand: Operand) -> Option<usize> {
        match operand {
            Operand::Inst(id) => self.registers.get(id.index()).copied().flatten(),
            Operand::Param(at) => Some(*self.arguments.get(at as usize).unwrap_or(&self.entered)),
            Operand::Const(_) => Some(0),
            Operand::Other => None,
        }
    }

    /// The same of what an instruction has just computed; `now` is how many time stamps the thread has passed.
    pub fn of_computed(&self, inst: &Instruction, now: usize) -> usize {
        let of = |operand: &Operand| self.of(*operand).unwrap_or(now);
        match &inst.kind {
            InstKind::Gep { base, .. } => of(base),
            InstKind::Cast(
                CastOp::BitCast | CastOp::AddrSpaceCast | CastOp::PtrToInt | CastOp::IntToPtr,
                inner,
            )
            | InstKind::Freeze(inner)
            | InstKind::ExtractValue(inner, _) => of(inner),
            InstKind::Select(_, a, b) | InstKind::Binary(_, a, b) => of(a).max(of(b)),
            _ => now,
        }
    }

    /// The thread has had what the register holds since it passed so many time stamps.
    pub fn set(&mut self, id: InstId, stamps: usize) {
        if self.registers.len() <= id.index() {
            self.registers.resize(id.index() + 1, None);
        }
        self.registers[id.index()] = Some(stamps);
    }
}

impl<'r> Engine<'r> {
    /// What is known of the arguments of a function that the thread is about to enter.
    pub(crate) fn known_arguments(&self, t: usize) -> Known {
        let thread = &self.threads[t];
        let passed = || {
            let caller = thread.innermost_code()?;
            let known = &caller.known;
            let call =
                caller.info.function.instructions.get(caller.next.index())?.kind.as_call()?;
            let now = |operand: &Operand| known.of(*operand).unwrap_or(thread.stamps);
            Some(call.args.iter().map(now).collect())
        };
        // An uninstrumented function calls back with arguments of its own.
        let direct = match thread.frames.last() {
            Some(Frame::External(frame)) => frame.call.as_ref().is_some_and(|call| call.walked),
            _ => true,
        };
        let arguments = if direct { passed() } else { None };
        Known {
            arguments: arguments.unwrap_or_default(),
            entered: thread.stamps,
            ..Known::default()
        }
    }

    /// By when the thread had the value that an instruction has just given; `now` is how many time stamps
    /// it had passed then.
    pub(crate) fn note_had(&mut self, t: usize, id: InstId, inst: &Instruction, now: usize) {
        let result = self.threads[t].known_result.take();
        let thread = &self.threads[t];
        let Some(frame) = thread.code() else { return };
        let known = match &inst.kind {
            InstKind::Call(_) | InstKind::Invoke { .. } => result.unwrap_or(now),
            InstKind::Load { address, .. } => self.known_in_memory(t, *address).unwrap_or(now),
            _ => frame.known.of_computed(inst, now),
        };
        self.set_known(t, id, known);
    }

    pub(crate) fn known(&self, t: usize, operand: Operand) -> Option<usize> {
        self.threads[t].code()?.known.of(operand)
    }

    /// The same of phis, whose values were computed at the end of the block before.
    pub(crate) fn known_phis(
        &self,
        t: usize,
        incoming: impl Iterator<Item = Operand>,
    ) -> SmallVec<[usize; 8]> {
        let thread = &self.threads[t];
        let Some(frame) = thread.code() else { return SmallVec::new() };
        incoming.map(|operand| frame.known.of(operand).unwrap_or(thread.stamps)).collect()
    }

    pub(crate) fn set_known(&mut self, t: usize, id: InstId, stamps: usize) {
        let Some(frame) = self.threads[t].code_mut() else { return };
        frame.known.set(id, stamps);
    }

    /// By when the thread had what it is about to store.
    pub(crate) fn known_stored(&self, t: usize, id: InstId) -> usize {
        let thread = &self.threads[t];
        let stored = || {
            let frame = thread.code()?;
            match frame.info.function.instructions.get(id.index())?.kind {
                InstKind::Store { value, .. } => frame.known.of(value),
                _ => None,
            }
        };
        stored().unwrap_or(thread.stamps)
    }

    /// The same of what the thread itself stored where an instruction loads, and nobody else can have
    /// written.
    pub(crate) fn known_in_memory(&self, t: usize, address: Operand) -> Option<usize> {
        let thread = &self.threads[t];
        if thread.last_store.is_empty() {
            return None;
        }
        let register = match address {
            Operand::Inst(id) => thread.code()?.registers.get(id.index())?,
            Operand::Param(at) => thread.code()?.arguments.get(at as usize)?,
            _ => return None,
        };
        let recorded = u64::try_from(register.scalar()?.as_const()?).ok()?;
        let internal = self.lookup(t, recorded)?;
        let store = thread.last_store.get(&internal)?;
        self.only_own(t, internal).then_some(store.known)
    }

    /// Can nobody but the thread have written there? It is known of the last walk alone.
    pub(crate) fn only_own(&self, t: usize, internal: u64) -> bool {
        let Pass::Symbolic(shared) = &self.pass else { return false };
        shared.at(internal).is_none() && !self.learned.writers.other_than(t, internal)
    }

    /// The access that the thread is at.
    pub(crate) fn access_key(&self, t: usize) -> Option<AccessKey> {
        let thread = &self.threads[t];
        let frame = thread.innermost_code()?;
        Some((t, thread.path_position(), frame.info.module, frame.info.id, frame.next))
    }

    /// The object that an access means whose pointer the thread had before the object was allocated
    /// that lies there by now. As internal address.
    pub(crate) fn meant(&mut self, t: usize, pointer: Option<Scalar>, address: u64) -> Option<u64> {
        if self.failing != Some(t) || !self.recording.common_clock {
            return None;
        }
        let object = match self.lifetime.freed.meant.is_empty() {
            false => {
                let key = self.access_key(t)?;
                Arc::clone(&self.lifetime.freed.meant).get(&key).copied()?
            }
            true if self.symbolic() => {
                let object = self.older_object(t, pointer?, address)?;
                let key = self.access_key(t)?;
                self.lifetime.freed.meant_now.insert(key, object);
                object
            }
            true => return None,
        };
        let object = &self.learned.heap.objects[object];
        let offset = address.checked_sub(object.address).filter(|offset| *offset < object.size)?;
        Some(object.base + offset)
    }

    /// Of two objects that lay at an address one after the other since the thread's last time stamp, the one
    /// that was there when the thread got the pointer. Both as internal addresses.
    pub(crate) fn there_when_got(
        &self,
        t: usize,
        pointer: Option<Scalar>,
        (address, internal): (u64, u64),
    ) -> Option<u64> {
        let heap = &self.learned.heap;
        let now = heap.at_internal(internal)?;
        let (from, _) = self.interval(t);
        if heap.objects[now].birth <= from || !self.recording.common_clock {
            return None;
        }
        let by = self.had_by(t, pointer?)?;
        if heap.objects[now].birth <= by {
            return None;
        }
        let older = heap.find(address, from, by).filter(|older| *older != now)?;
        let object = &heap.objects[older];
        let given_up = object.freed.is_some_and(|(by, _)| by != t) && object.death >= from;
        let meant = given_up && object.mapped.is_none() && object.birth <= by;
        let offset = address.checked_sub(object.address).filter(|offset| *offset < object.size)?;
        meant.then_some(object.base + offset)
    }

    /// By when the thread surely had a pointer, where that is before its last time stamp.
    fn had_by(&self, t: usize, pointer: Scalar) -> Option<u64> {
        let thread = &self.threads[t];
        let operand = self.pointer_operand(t, pointer)?;
        let known = thread.innermost_code()?.known.of(operand)?;
        let earlier = known < thread.stamps;
        earlier.then(|| self.done_by(t, known).saturating_add(STAMP_SLACK))
    }

    fn older_object(&self, t: usize, pointer: Scalar, address: u64) -> Option<usize> {
        let by = self.had_by(t, pointer)?;
        let (from, to) = self.interval(t);
        let heap = &self.learned.heap;
        let now = heap.find(address, from, to)?;
        if heap.objects[now].birth <= by {
            return None;
        }
        let older = heap.find(address, 0, by).filter(|older| *older != now)?;
        let object = &heap.objects[older];
        let freed = object.freed.is_some_and(|(by, _)| by != t);
        (freed && object.mapped.is_none() && object.birth <= by).then_some(older)
    }

    /// The operand of the current instruction, or call, that the pointer is the value of.
    fn pointer_operand(&self, t: usize, pointer: Scalar) -> Option<Operand> {
        let thread = &self.threads[t];
        if let Some(Frame::External(frame)) = thread.frames.last() {
            let call = frame.call.as_ref()?;
            let mut pairs = call.operands.iter().zip(&call.arguments);
            return pairs.find_map(|(&operand, value)| {
                (Value::scalar(value) == Some(pointer)).then_some(operand)
            });
        }
        let frame = thread.code()?;
        let kind = &frame.info.function.instructions.get(frame.next.index())?.kind;
        if let Some(call) = kind.as_call() {
            let value = |operand: &Operand| match *operand {
                Operand::Inst(id) => frame.registers.get(id.index())?.scalar(),
                Operand::Param(at) => frame.arguments.get(at as usize)?.scalar(),
                _ => None,
            };
            return call.args.iter().copied().find(|operand| value(operand) == Some(pointer));
        }
        kind.address()
    }
}
