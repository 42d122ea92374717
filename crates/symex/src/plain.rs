//! What is known of each instruction before it is walked, and runs of instructions that do nothing but compute.
//!
//! Most instructions of a walk have no effect but their value, and nothing of them stands in the log. A run of them, of
//! branches, and of loads and stores that nobody else sees, is walked without asking each for all that an instruction may
//! be: a gate, a place of the log, a fault.
//!
//! Invariant: what comes of a run is what comes of walking its instructions one by one
//! ([`crate::Options::one_by_one`]). An instruction that turns out to be more than plain is left as it was, and is walked
//! by itself.

use crate::access::{Grain, Place};
use crate::engine::{Engine, Pass, is_private, operand_value};
use crate::eval;
use crate::heap::USER_END;
use crate::image::FunctionInfo;
use crate::memory::MemoryByte;
use crate::recording::RecordedFailureKind;
use crate::thread::Stop;
use crate::value::{Scalar, Value};
use ir::name::operand_type;
use ir::plan::FunctionPlan;
use ir::regions;
use ir::types::{
    BinaryOp, Callee, ConstantKind, Function, InstId, InstKind, Instruction, Module, Operand, Type,
    TypeId,
};

/// At most so many instructions of a run are walked at once, so that the question of what is left to spend comes in time.
const LONGEST_RUN: u32 = 1 << 12;

/// What an instruction may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    is: u16,
    /// The width of the integer or pointer that it gives, or of the number that it loads or stores; 0 for others, and for
    /// what is not whole bytes in memory.
    bits: u8,
    /// See [`Self::kept`]; functions have far fewer places.
    kept: Option<u8>,
}

/// It has no effect but its value, of which nothing is logged, and no gate.
const COMPUTES: u16 = 1;
/// A load or a store of a number of whole bytes.
const MOVES: u16 = 2;
/// Its value is logged.
const LOGGED: u16 = 4;
/// Its value is guessed.
const GUESSED: u16 = 8;
/// A reading of the clock stands behind it.
const READING: u16 = 16;
/// The processor may refuse it.
const FAULTS: u16 = 32;
/// A region ends before it.
const ENDS_REGION: u16 = 64;
/// There is a gate before it.
const GATE: u16 = 128;
/// It goes on in this block or that one, and does nothing else.
const BRANCHES: u16 = 256;

impl Marks {
    fn is(self, mark: u16) -> bool {
        self.is & mark != 0
    }

    pub fn has_reading(self) -> bool {
        self.is(READING)
    }

    pub fn may_fault(self) -> bool {
        self.is(FAULTS)
    }

    pub fn ends_region(self) -> bool {
        self.is(ENDS_REGION)
    }

    pub fn is_logged(self) -> bool {
        self.is(LOGGED)
    }

    /// A load or a store of a number of whole bytes, which a run may have.
    pub fn moves(self) -> bool {
        self.is(MOVES)
    }

    /// A branch that a run may have.
    pub fn branches(self) -> bool {
        self.is(BRANCHES)
    }

    /// The width of the integer or pointer that an instruction computes which a run may have.
    pub fn computed_bits(self) -> Option<u32> {
        (self.is(COMPUTES) && self.bits != 0).then_some(u32::from(self.bits))
    }

    pub fn is_guessed(self) -> bool {
        self.is(GUESSED)
    }

    /// The place whose value it keeps (`ir::guesses`).
    pub fn kept(self) -> Option<usize> {
        self.kept.map(usize::from)
    }
}

/// The marks of a function's instructions. `has_gate`: is there a gate before the instruction?
pub(crate) fn marks(
    module: &Module,
    function: &Function,
    plan: &FunctionPlan,
    has_gate: impl Fn(InstId) -> bool,
) -> Vec<Marks> {
    let mark = |set: bool, mark: u16| if set { mark } else { 0 };
    let of = |(id, inst): (InstId, &Instruction)| {
        let (faults, gate) = (may_fault(module, &inst.kind), has_gate(id));
        let (logged, reading) = (plan.values.contains(&id), plan.readings.contains(&id));
        let bits = match &inst.kind {
            InstKind::Load { .. } => number_bits(module, inst.ty),
            InstKind::Store { value, .. } => {
                operand_type(module, function, *value).map_or(0, |ty| number_bits(module, ty))
            }
            _ => integer_bits(module, inst.ty),
        };
        let ends = regions::ends_region(module, inst);
        let computes = inst.kind.only_computes() && !(faults || gate || logged || reading || ends);
        let moves = matches!(inst.kind, InstKind::Load { .. } | InstKind::Store { .. })
            && (bits != 0 && !reading && !ends);
        let branches =
            matches!(inst.kind, InstKind::Br(_) | InstKind::CondBr(..)) && !gate && !reading;
        let is = mark(computes, COMPUTES)
            | mark(moves, MOVES)
            | mark(logged, LOGGED)
            | mark(plan.guesses.loads.contains(&id), GUESSED)
            | mark(reading, READING)
            | mark(faults, FAULTS)
            | mark(ends, ENDS_REGION)
            | mark(gate, GATE)
            | mark(branches, BRANCHES);
        let kept = plan.guesses.kept.get(&id).and_then(|place| u8::try_from(*place).ok());
        Marks { is, bits, kept }
    };
    (0..).map(InstId).zip(&function.instructions).map(of).collect()
}

/// The width of an integer or a pointer of at most 64 bits, else 0.
fn integer_bits(module: &Module, ty: TypeId) -> u8 {
    match module.ty(ty) {
        Type::Int(_) | Type::Pointer => match module.scalar_bits(ty) {
            Some(bits @ 1..=64) => bits as u8,
            _ => 0,
        },
        _ => 0,
    }
}

/// The width of a scalar that takes one, two, four or eight bytes in memory and in the log, else 0.
fn number_bits(module: &Module, ty: TypeId) -> u8 {
    match module.ty(ty) {
        Type::Int(_) | Type::Pointer | Type::Float(_) => match module.scalar_bits(ty) {
            Some(bits @ (8 | 16 | 32 | 64)) => bits as u8,
            _ => 0,
        },
        _ => 0,
    }
}

/// Can the processor refuse it, see [`Engine::handle_fault`]?
fn may_fault(module: &Module, kind: &InstKind) -> bool {
    match kind {
        InstKind::Binary(op, _, divisor) => {
            let divides =
                matches!(op, BinaryOp::SDiv | BinaryOp::UDiv | BinaryOp::SRem | BinaryOp::URem);
            divides && !divides_well(module, *divisor)
        }
        InstKind::Unreachable => true,
        InstKind::Call(call) => matches!(call.callee, Callee::Direct(_)),
        kind => kind.address().is_some(),
    }
}

/// Is it a constant by which every number can be divided: neither 0 nor -1?
fn divides_well(module: &Module, divisor: Operand) -> bool {
    let Operand::Const(id) = divisor else { return false };
    let Some(constant) = module.constants.get(id.index()) else { return false };
    match (&constant.kind, module.scalar_bits(constant.ty)) {
        (ConstantKind::Int(words), Some(bits @ 1..=64)) => {
            let ones = u64::MAX >> (64 - bits);
            words.first().is_some_and(|word| *word & ones != 0 && *word & ones != ones)
        }
        _ => false,
    }
}

/// The instruction that a thread is at.
#[derive(Clone, Copy)]
pub(crate) struct Here<'r> {
    pub info: &'r FunctionInfo<'r>,
    pub id: InstId,
    pub inst: &'r Instruction,
    pub marks: Marks,
}

impl<'r> Engine<'r> {
    /// Walks the run of plain instructions and branches that the thread is at. What it does to the thread is what walking
    /// them one by one does, but that damage in the log is found where something of the log is needed.
    pub(crate) fn run_plain(&mut self, t: usize) -> Result<(), Stop> {
        let starts = self
            .current(t)
            .is_some_and(|(info, id)| info.marks(id).is(COMPUTES | MOVES | BRANCHES));
        let alone = self.options.one_by_one || self.reached_line().is_some();
        if !starts || alone || self.threads[t].again {
            return Ok(());
        }
        self.pending_reads.clear();
        let mut walked = 0;
        let end = self.walk_run(t, &mut walked);
        if walked > 0 {
            self.threads[t].report.instructions += u64::from(walked);
            self.limits.steps(walked);
        }
        end
    }

    fn walk_run(&mut self, t: usize, walked: &mut u32) -> Result<(), Stop> {
        // Where the log is used up, each instruction counts.
        let mut read = true;
        while *walked < LONGEST_RUN && !self.threads[t].left_out {
            let Some((info, id)) = self.current(t) else { break };
            let Some(inst) = info.function.instructions.get(id.index()) else { break };
            let marks = info.marks(id);
            let here = Here { info, id, inst, marks };
            if read || marks.is(BRANCHES) {
                self.threads[t].pass_repeated();
                if self.threads[t].exhausted() {
                    break;
                }
            }
            read = marks.is(LOGGED | BRANCHES);
            let done = match &inst.kind {
                _ if marks.is(COMPUTES) => self.plain_compute(t, here),
                InstKind::Load { address, .. } if marks.is(MOVES) => {
                    self.plain_load(t, here, *address)
                }
                InstKind::Store { address, value, .. } if marks.is(MOVES) => {
                    self.plain_store(t, here, *address, *value)
                }
                InstKind::Br(target) => {
                    *walked += 1;
                    self.enter_block(t, *target)?;
                    self.run_tight(t, walked)?;
                    continue;
                }
                InstKind::CondBr(..) => {
                    *walked += 1;
                    self.branch(t, id, inst)?;
                    self.run_tight(t, walked)?;
                    continue;
                }
                _ => false,
            };
            if !done {
                break;
            }
            *walked += 1;
        }
        Ok(())
    }

    /// An instruction that only computes. False where it is to be walked by itself.
    fn plain_compute(&mut self, t: usize, here: Here<'r>) -> bool {
        let Here { id, inst, marks, .. } = here;
        let thread = &self.threads[t];
        let Some(frame) = thread.code() else { return false };
        let now = thread.stamps;
        let (image, constants) = (self.image, &mut self.constants);
        let pool = &mut self.pool;
        let usual = match marks.bits {
            0 => None,
            bits => {
                // Most registers hold constants, which need no copy of what holds them.
                let get = |operand| match operand {
                    Operand::Inst(id) => match frame.registers.get(id.index()) {
                        Some(Value::Scalar(scalar)) if scalar.as_const().is_some() => Some(*scalar),
                        register => thread.settled_at(register).scalar(),
                    },
                    _ => operand_value(thread, frame, image, constants, operand).scalar(),
                };
                eval::usual(pool, &inst.kind, u32::from(bits), get)
            }
        };
        let value = match usual {
            Some(scalar) => scalar.into(),
            None => {
                let mut get = |operand| operand_value(thread, frame, image, constants, operand);
                match eval::evaluate(pool, frame.module, &inst.kind, inst.ty, &mut get) {
                    Ok(value) => value,
                    // What cannot be computed is said of the instruction when it is walked by itself.
                    Err(_) => return false,
                }
            }
        };
        let known = frame.known.of_computed(inst, now);
        self.walked(t, id, value, known);
        true
    }

    /// The plain instruction is over.
    fn walked(&mut self, t: usize, id: InstId, value: Value, known: usize) {
        let Some(frame) = self.threads[t].code_mut() else { return };
        if let Some(register) = frame.registers.get_mut(id.index()) {
            *register = value;
        }
        frame.known.set(id, known);
        frame.next = InstId(id.0 + 1);
        self.threads[t].known_result = None;
    }

    /// Where a plain access goes that nobody else sees; none where it is to be walked by itself.
    fn plain_place(&mut self, t: usize, pointer: Operand, marks: Marks) -> Option<Place> {
        let scalar = self.scalar(t, pointer).filter(|scalar| scalar.width == 64)?;
        let word = u64::try_from(scalar.as_const()?).ok()?;
        // There may be a fault to handle, and one that the run ended with.
        if self.threads[t].is_at_runtime_event()
            || (word >= USER_END && !is_private(word))
            || matches!(self.failure_kind(t), Some(RecordedFailureKind::UseAfterFree { .. }))
            // Each access to these is noted once.
            || !self.lifetime.freed.suspects.is_empty()
        {
            return None;
        }
        let address = self.address(t, Some(scalar))?;
        let length = u64::from(marks.bits / 8);
        if self.handing.handed.is_some() {
            self.receive(t, address, length);
        }
        let alone = match &self.pass {
            Pass::Symbolic(shared) => shared.none_within(address, length),
            Pass::Survey(_) => true,
        };
        alone.then(|| Place::new(address, length, Some(pointer)))
    }

    /// A load of what memory has, where the log agrees. False where it is to be walked by itself.
    pub(crate) fn plain_load(&mut self, t: usize, here: Here<'r>, pointer: Operand) -> bool {
        let Here { info, id, inst, marks } = here;
        let Some(place) = self.plain_place(t, pointer, marks) else { return false };
        let Some(number) = self.memory.number(place.address, place.length) else { return false };
        if marks.is(LOGGED) && (self.in_callback(t) || !self.pass_logged(t, here, number)) {
            return false;
        }
        if marks.is(GATE) {
            self.pass_gate(t, info, id);
        }
        let held = self.held_pointer(t, inst.ty, pointer);
        self.survey(t, place, false);
        self.note_own(t, place, false);
        let known = self.known_in_memory(t, pointer).unwrap_or(self.threads[t].stamps);
        self.walked(t, id, Value::constant(u32::from(marks.bits), u128::from(number)), known);
        if let Some(held) = held {
            self.reaches(t, id, held);
        }
        true
    }

    /// Passes what the log says of a load, where that is what was computed.
    fn pass_logged(&mut self, t: usize, here: Here<'r>, number: u64) -> bool {
        let marks = here.marks;
        let thread = &mut self.threads[t];
        let guess = match marks.is(GUESSED) {
            true => match thread.next_choice() {
                Some(wrong) => wrong == 0,
                None => return false,
            },
            false => false,
        };
        let bytes = usize::from(marks.bits / 8);
        let said = match guess {
            true => thread.code().and_then(|frame| frame.kept_of(marks.kept())),
            false => thread.peek_bytes(bytes).map(|bytes| {
                bytes.iter().rev().fold(0, |number, byte| (number << 8) | u64::from(*byte))
            }),
        };
        if said != Some(number) {
            return false;
        }
        let passed = match (marks.is(GUESSED), guess) {
            (true, true) => thread.choose(1).map(|_| ()),
            (true, false) => thread.choose(1).and_then(|_| thread.bytes(bytes, |_| ())),
            (false, _) => thread.bytes(bytes, |_| ()),
        };
        self.keep(t, here.id, Some(number));
        passed.is_ok()
    }

    /// A store that nobody else sees. False where it is to be walked by itself.
    pub(crate) fn plain_store(
        &mut self,
        t: usize,
        here: Here<'r>,
        pointer: Operand,
        value: Operand,
    ) -> bool {
        let Here { info, id, marks, .. } = here;
        let value = self.scalar(t, value).filter(|value| value.width == u32::from(marks.bits));
        let number = value.and_then(Scalar::as_const).and_then(|word| u64::try_from(word).ok());
        let Some(number) = number.filter(|_| self.memory.trail.is_none()) else { return false };
        let Some(place) = self.plain_place(t, pointer, marks) else { return false };
        if marks.is(GATE) {
            self.pass_gate(t, info, id);
        }
        let bytes = number.to_le_bytes().map(MemoryByte::Const);
        let length = usize::from(marks.bits / 8);
        self.write(t, place, &bytes[..length], Grain::Access);
        self.note_store(t, place.address, id);
        self.keep(t, id, Some(number));
        let now = self.threads[t].stamps;
        self.walked(t, id, Value::Absent, now);
        true
    }
}
