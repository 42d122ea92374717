//! Inline assembly. One instruction that is understood is computed, and its access to shared memory
//! is an event as that of any other instruction; of other assembly the log says the effects.

use crate::access::{Grain, Place};
use crate::engine::{Engine, Pass};
use crate::memory::{self, MemoryByte};
use crate::report::GapKind;
use crate::thread::{ExternalCall, ExternalFrame, Frame, Stop, contradiction};
use crate::value::{self, Scalar, Value};
use ir::assembly::{self, Action, AsmInstruction, Assembly, Flag, Op};
use ir::types::{Call, InstId, Instruction};
use model::{BinOp, CmpOp};

/// What inline assembly is called among calls and gaps.
const NAME: &str = "asm";

impl<'r> Engine<'r> {
    /// A call of inline assembly.
    pub fn assembly(
        &mut self,
        t: usize,
        id: InstId,
        inst: &'r Instruction,
        call: &'r Call,
        assembly: Assembly,
    ) -> Result<(), Stop> {
        let Some((info, _)) = self.current(t) else { return contradiction("no function") };
        let arguments = self.arguments(t, &call.args);
        if !info.plan.returns.contains(&id) {
            if assembly.action == (Action::Nothing { fence: true }) {
                self.event(t, model::EventKind::Fence, None);
            }
            let value = unchanged(&assembly, &arguments);
            return self.finish(t, value);
        }
        self.idle.effect();
        let call = ExternalCall {
            name: NAME,
            address: None,
            arguments,
            operands: call.args.clone(),
            result: inst.ty,
            reallocated: None,
            walked: false,
            walked_result: None,
            performed: false,
            created: None,
            allocated: None,
            written: None,
            text_read: None,
            went_in: Vec::new(),
            measured: smallvec::SmallVec::new(),
            doubted: false,
            read: false,
            text: None,
            assembly: Some(Box::new(assembly)),
            tail: false,
            stamp: self.threads[t].last_stamp,
            reading: None,
            at_work: false,
            passed: None,
            allocations: self.threads[t].allocations,
        };
        self.threads[t]
            .frames
            .push(Frame::External(Box::new(ExternalFrame { call: Some(call), signal: None })));
        Ok(())
    }

    /// The effect and the result of logged assembly, when it has been executed.
    pub fn model_assembly(
        &mut self,
        t: usize,
        call: &ExternalCall<'r>,
        assembly: &Assembly,
        logged: &Value,
    ) -> Value {
        let computed = match &assembly.action {
            Action::Nothing { .. } => unchanged(assembly, &call.arguments),
            Action::Instruction(instruction) => {
                let run = Run { t, call, assembly, instruction, logged };
                match self.assembly_instruction(&run) {
                    Some(values) => results(assembly, values),
                    None => {
                        self.gap(t, GapKind::Instruction(NAME.to_owned()), String::new());
                        Value::Absent
                    }
                }
            }
            Action::Unknown => {
                if assembly.clobbers_memory {
                    self.unknown_effect(t, call);
                }
                Value::Absent
            }
        };
        let computed = self.widened(&computed, logged);
        self.merge(t, &computed, logged, NAME)
    }

    /// Results in the widths of the outputs; what a narrow instruction leaves of a wider register
    /// is left to the log.
    fn widened(&mut self, computed: &Value, logged: &Value) -> Value {
        match (computed, logged) {
            (Value::Scalar(computed), Value::Scalar(logged)) => {
                let exact = computed.width >= logged.width || matches!(computed.width, 1 | 32);
                match exact {
                    true => value::resize(&mut self.pool, *computed, logged.width, false).into(),
                    false => Value::Absent,
                }
            }
            (Value::Aggregate(values), Value::Aggregate(logs)) => {
                let both = values.iter().zip(logs.iter());
                Value::aggregate(both.map(|(value, log)| self.widened(value, log)).collect())
            }
            (Value::Aggregate(values), logged) => {
                let only = values.first().cloned().unwrap_or_default();
                match only {
                    Value::Aggregate(_) => Value::Absent,
                    only => self.widened(&only, logged),
                }
            }
            _ => Value::Absent,
        }
    }

    /// Executes one instruction; gives the values of the operands that it sets. `None` when
    /// something about it is not known.
    fn assembly_instruction(&mut self, run: &Run<'_, 'r>) -> Option<Vec<(usize, Scalar)>> {
        let instruction = run.instruction;
        let bits = instruction.bits.or_else(|| self.assembly_width(run))?;
        if !matches!(bits, 8 | 16 | 32 | 64) {
            return None;
        }
        let operand = match instruction.source {
            Some(assembly::Place::Memory { .. }) => None,
            Some(source) => Some(self.register(run, source, bits)?),
            None => None,
        };
        let mut set = Vec::new();
        let (old, new) = match instruction.target {
            assembly::Place::Memory { .. } => {
                let place = self.assembly_place(run, instruction.target, bits)?;
                self.change_memory(run, place, bits, operand)?
            }
            assembly::Place::Register(index) => {
                let operand = match instruction.source {
                    Some(source @ assembly::Place::Memory { .. }) => {
                        let place = self.assembly_place(run, source, bits)?;
                        let old = run.logged_output(index).filter(|_| instruction.op == Op::Mov);
                        Some(self.read_memory(run.t, place, bits, old))
                    }
                    _ => operand,
                };
                let old = match instruction.op {
                    Op::Mov => Scalar::constant(bits, 0),
                    _ => self.register(run, instruction.target, bits)?,
                };
                let new = self.compute(run, old, operand)?;
                set.push((index, new));
                (old, new)
            }
            assembly::Place::Immediate(_) => return None,
        };
        // Registers that get what memory held.
        let taken = match (instruction.op, instruction.source) {
            (Op::Xadd | Op::Xchg, Some(assembly::Place::Register(index))) => Some(index),
            (Op::Cmpxchg, _) => run.assembly.output_in("ax"),
            _ => None,
        };
        set.extend(taken.map(|index| (index, old)));
        for &(flag, place) in &instruction.flags {
            let holds = self.flag(run, flag, old, new)?;
            match place {
                assembly::Place::Register(index) => set.push((index, holds)),
                place => {
                    let place = self.assembly_place(run, place, 8)?;
                    let byte = value::resize(&mut self.pool, holds, 8, false);
                    let bytes = memory::decompose(&mut self.pool, byte, 1);
                    self.write(run.t, place, &bytes, Grain::Access);
                }
            }
        }
        Some(set)
    }

    /// Changes memory; gives what it held before and what it holds then.
    fn change_memory(
        &mut self,
        run: &Run<'_, 'r>,
        place: Place,
        bits: u32,
        operand: Option<Scalar>,
    ) -> Option<(Scalar, Scalar)> {
        let t = run.t;
        let logged = match (run.instruction.op, run.instruction.source) {
            (Op::Xadd | Op::Xchg, Some(assembly::Place::Register(index))) => {
                run.logged_output(index)
            }
            (Op::Cmpxchg, _) => run.assembly.output_in("ax").and_then(|ax| run.logged_output(ax)),
            _ => None,
        };
        if run.instruction.atomic {
            self.know_before(place, logged);
            let mut new = None;
            let old = self.read_modify_write(t, place, bits, &mut |engine, old| {
                new = engine.compute(run, old, operand);
                new.unwrap_or(old)
            });
            return Some((old, new?));
        }
        let old = match run.instruction.op {
            Op::Mov => Scalar::constant(bits, 0),
            _ => self.read_memory(t, place, bits, logged),
        };
        let new = self.compute(run, old, operand)?;
        let bytes = memory::decompose(&mut self.pool, new, place.length);
        self.write(t, place, &bytes, Grain::Access);
        Some((old, new))
    }

    fn read_memory(&mut self, t: usize, place: Place, bits: u32, logged: Option<Scalar>) -> Scalar {
        self.know_before(place, logged);
        let mut bytes = self.read(t, place, Grain::Access);
        self.settle_in_memory(t, place.address, &mut bytes);
        let whole = memory::compose(&mut self.pool, &bytes);
        value::resize(&mut self.pool, whole, bits, false)
    }

    /// Bytes that nothing is known of held what the log says.
    fn know_before(&mut self, place: Place, logged: Option<Scalar>) {
        let Some(logged) = logged else { return };
        let known = memory::decompose(&mut self.pool, logged, place.length);
        for (at, byte) in (place.address..).zip(known) {
            let shared = match &self.pass {
                Pass::Symbolic(shared) => shared.at(at).is_some(),
                Pass::Survey(_) => false,
            };
            let unknown = matches!(self.memory.get(at), MemoryByte::Unknown | MemoryByte::Fresh);
            if unknown && !shared {
                self.memory.set(at, byte);
            }
        }
    }

    /// What the instruction makes of its target; `None` when a value is missing.
    fn compute(
        &mut self,
        run: &Run<'_, 'r>,
        old: Scalar,
        operand: Option<Scalar>,
    ) -> Option<Scalar> {
        let accumulator = match run.instruction.op {
            Op::Cmpxchg => Some(self.accumulator(run, old.width)?),
            _ => None,
        };
        let pool = &mut self.pool;
        let one = Scalar::constant(old.width, 1);
        Some(match run.instruction.op {
            Op::Mov | Op::Xchg => operand?,
            Op::Add | Op::Xadd => value::bin(pool, BinOp::Add, old, operand?),
            Op::Sub => value::bin(pool, BinOp::Sub, old, operand?),
            Op::And => value::bin(pool, BinOp::And, old, operand?),
            Op::Or => value::bin(pool, BinOp::Or, old, operand?),
            Op::Xor => value::bin(pool, BinOp::Xor, old, operand?),
            Op::Inc => value::bin(pool, BinOp::Add, old, one),
            Op::Dec => value::bin(pool, BinOp::Sub, old, one),
            Op::Not => value::not(pool, old),
            Op::Neg => value::bin(pool, BinOp::Sub, Scalar::constant(old.width, 0), old),
            Op::Bswap => {
                let mut bytes = memory::decompose(pool, old, u64::from(old.width / 8));
                bytes.reverse();
                memory::compose(pool, &bytes)
            }
            Op::Cmpxchg => {
                let equal = value::cmp(pool, CmpOp::Eq, old, accumulator?);
                value::ite(pool, equal, operand?, old)
            }
        })
    }

    fn accumulator(&mut self, run: &Run<'_, 'r>, bits: u32) -> Option<Scalar> {
        let index = run.assembly.output_in("ax")?;
        self.register(run, assembly::Place::Register(index), bits)
    }

    /// Does the condition hold after the instruction?
    fn flag(&mut self, run: &Run<'_, 'r>, flag: Flag, old: Scalar, new: Scalar) -> Option<Scalar> {
        let result = match run.instruction.op {
            // The flags are those of the comparison.
            Op::Cmpxchg => {
                let expected = self.accumulator(run, old.width)?;
                value::bin(&mut self.pool, BinOp::Sub, expected, old)
            }
            _ => new,
        };
        let (holds, wanted) = match flag {
            Flag::Zero(wanted) => {
                let zero = Scalar::constant(result.width, 0);
                (value::cmp(&mut self.pool, CmpOp::Eq, result, zero), wanted)
            }
            Flag::Negative(wanted) => {
                (value::extract(&mut self.pool, result, result.width - 1, 1), wanted)
            }
        };
        Some(if wanted { holds } else { value::not(&mut self.pool, holds) })
    }

    /// What a register or a number is before the instruction, in this width.
    fn register(&mut self, run: &Run<'_, 'r>, place: assembly::Place, bits: u32) -> Option<Scalar> {
        Some(match place {
            assembly::Place::Immediate(number) => Scalar::constant(bits, number as u128),
            assembly::Place::Register(index) => {
                let value = run.entry(index)?;
                value::resize(&mut self.pool, value, bits, value.as_const().is_some())
            }
            assembly::Place::Memory { .. } => return None,
        })
    }

    /// The width that the text does not tell: that of the operand in a register.
    fn assembly_width(&self, run: &Run<'_, 'r>) -> Option<u32> {
        let places = run.instruction.source.into_iter().chain([run.instruction.target]);
        let width = |place| match place {
            assembly::Place::Register(index) => {
                let output = || run.logged_output(index);
                run.entry(index).or_else(output).map(|value| value.width)
            }
            _ => None,
        };
        places.into_iter().find_map(width)
    }

    fn assembly_place(
        &mut self,
        run: &Run<'_, 'r>,
        place: assembly::Place,
        bits: u32,
    ) -> Option<Place> {
        let assembly::Place::Memory { argument, displacement } = place else { return None };
        let base = run.call.arguments.get(argument).and_then(Value::scalar)?;
        let displacement = Scalar::constant(64, displacement as u128);
        let pointer = value::bin(&mut self.pool, BinOp::Add, base, displacement);
        let address = self.address(run.t, Some(pointer))?;
        let operand = run.call.operands.get(argument).copied();
        Some(Place::new(address, u64::from(bits / 8), operand))
    }
}

/// An instruction of inline assembly being executed.
struct Run<'a, 'r> {
    t: usize,
    call: &'a ExternalCall<'r>,
    assembly: &'a Assembly,
    instruction: &'a AsmInstruction,
    /// The results.
    logged: &'a Value,
}

impl Run<'_, '_> {
    /// What an operand in a register is at the beginning.
    fn entry(&self, index: usize) -> Option<Scalar> {
        let argument = self.assembly.entry(index)?.argument?;
        self.call.arguments.get(argument).and_then(Value::scalar)
    }

    /// What the log says of an output in a register.
    fn logged_output(&self, index: usize) -> Option<Scalar> {
        let element = self.assembly.operands.get(index)?.result?;
        match self.logged.elements() {
            Some(elements) => elements.get(element).and_then(Value::scalar),
            None => self.logged.scalar().filter(|_| element == 0),
        }
    }
}

/// The results of assembly that does nothing: the inputs that they are tied to.
fn unchanged(assembly: &Assembly, arguments: &[Value]) -> Value {
    let outputs = (0..).zip(&assembly.operands).filter(|(_, operand)| operand.result.is_some());
    let input = |index| assembly.entry(index).and_then(|input| arguments.get(input.argument?));
    let mut values: Vec<Value> =
        outputs.map(|(index, _)| input(index).cloned().unwrap_or_default()).collect();
    match values.len() {
        0 => Value::Absent,
        1 => values.swap_remove(0),
        _ => Value::aggregate(values),
    }
}

/// The results from the values of operands; [`Value::Absent`] where there is none.
fn results(assembly: &Assembly, values: Vec<(usize, Scalar)>) -> Value {
    let count = assembly.operands.iter().filter(|operand| operand.result.is_some()).count();
    let mut elements = vec![Value::Absent; count];
    for (index, value) in values {
        let element = assembly.operands.get(index).and_then(|operand| operand.result);
        if let Some(slot) = element.and_then(|element| elements.get_mut(element)) {
            *slot = value.into();
        }
    }
    Value::aggregate(elements)
}
