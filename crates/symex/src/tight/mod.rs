//! Rounds of loops whose values are all known numbers.
//!
//! What a program computes for long it mostly computes in loops without calls: hashes, sums, searches. Of such a loop's
//! instructions a list is made once, in which each value has a slot, and rounds are walked on the slots alone as long as
//! nothing comes that is more: registers get their values when that ends.
//!
//! Invariant: as for [`crate::plain`], what comes of it is what comes of walking the instructions one by one. Where an
//! instruction is more than plain, where the runtime has something to say, where a branch goes otherwise than its condition
//! says, or where control leaves the loop, the thread is left before that instruction or branch, which is walked by
//! itself. Nobody watches the loop's rounds meanwhile ([`crate::idle`], [`crate::endless`]), since they have no events.

mod again;
mod make;

use crate::concrete;
use crate::engine::{Engine, operand_value};
use crate::image::FunctionInfo;
use crate::plain::{Here, Marks};
use crate::thread::{BranchRecord, CodeFrame, Entry, Stop};
use crate::value::Value;
use again::Outcomes;
use ir::types::{BlockId, InstId, Operand, Type};
use model::{BinOp, CmpOp};
use std::cell::Cell;

/// So many instructions are walked until the walk asks what is left to spend.
const LONGEST: u32 = 1 << 19;
/// After so many entries a loop that went round less than once each time is walked as any other code.
const TRIALS: u32 = 64;

/// A number, and by when the thread had it ([`crate::failure::Known`]).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot {
    value: u64,
    known: usize,
}

/// Of a slot whose value was not computed yet.
const NEVER: usize = usize::MAX;

/// A value's place among the slots, and its width in bits, from 1 to 64.
#[derive(Clone, Copy)]
struct At {
    slot: u32,
    bits: u32,
}

enum Step {
    Binary(BinOp, At, At),
    Compare {
        op: CmpOp,
        a: At,
        b: At,
        negate: bool,
    },
    /// Cut or extended to the result's width.
    Resize {
        from: At,
        signed: bool,
        /// The number itself does not change, and is known since it was known.
        pointer: bool,
    },
    Copy(At),
    Select(At, At, At),
    Gep {
        base: At,
        offset: u64,
        terms: Box<[(At, u64)]>,
    },
    /// A load, or a store.
    Access(Box<Access>),
}

struct Access {
    marks: Marks,
    pointer: Operand,
    /// What is stored.
    value: Option<Operand>,
    /// Those of these that the loop computes.
    operands: Vec<(InstId, At)>,
}

struct Op {
    id: InstId,
    to: At,
    step: Step,
}

/// The way into a block.
struct Edge {
    /// As an index; none where it leaves the loop, or is to be walked as any other code.
    target: Option<usize>,
    /// Choices of a region, in bits, behind which it ends there.
    check: Option<u32>,
    /// What the target's phis get.
    phis: Box<[(At, At)]>,
}

enum End {
    /// The instruction is to be walked by itself.
    More,
    Jump(Edge),
    Branch {
        condition: At,
        then: Edge,
        otherwise: Edge,
    },
}

struct Part {
    block: BlockId,
    ops: Vec<Op>,
    /// The instruction behind `ops`.
    last: InstId,
    end: End,
    /// See [`FunctionInfo::branch_level`].
    level: u16,
}

/// See the module.
pub(crate) struct Tight {
    /// The header comes first.
    parts: Vec<Part>,
    /// What comes from outside.
    inputs: Vec<(Operand, At)>,
    /// The loop's own values, with the instructions that give them; first of all the header's phis.
    own: Vec<(InstId, At)>,
    phis: usize,
    slots: usize,
    entered: Cell<u32>,
    rounds: Cell<u32>,
    /// It accesses no memory.
    may_repeat: bool,
    outcomes: Outcomes,
}

impl Tight {
    /// Is it worth the entering?
    fn is_worth_it(&self) -> bool {
        let entered = self.entered.get();
        entered < TRIALS || self.rounds.get() >= entered
    }

    fn note(&self, rounds: u32) {
        let (entered, all) = (self.entered.get(), self.rounds.get());
        // Both are halved where they get large: what counts is what the loop did of late.
        let shift = u32::from(entered >= 1 << 16 || all >= 1 << 30);
        self.entered.set((entered >> shift) + 1);
        self.rounds.set((all >> shift).saturating_add(rounds));
    }
}

/// The lowest bits, of 1 to 64.
#[inline]
fn cut(value: u64, bits: u32) -> u64 {
    value & (u64::MAX >> (64 - bits))
}

/// Sign extension from 1 to 64 bits.
#[inline]
fn signed(value: u64, bits: u32) -> i64 {
    ((value << (64 - bits)) as i64) >> (64 - bits)
}

/// As [`concrete::binary`].
#[inline]
fn binary(op: BinOp, bits: u32, a: u64, b: u64) -> u64 {
    let value = match op {
        BinOp::Add => a.wrapping_add(b),
        BinOp::Sub => a.wrapping_sub(b),
        BinOp::Mul => a.wrapping_mul(b),
        BinOp::And => a & b,
        BinOp::Or => a | b,
        BinOp::Xor => a ^ b,
        BinOp::Shl if b < u64::from(bits) => a << b,
        BinOp::LShr if b < u64::from(bits) => a >> b,
        BinOp::AShr if b < u64::from(bits) => (signed(a, bits) >> b) as u64,
        _ => concrete::binary(op, bits, a.into(), b.into()) as u64,
    };
    cut(value, bits)
}

/// As [`concrete::compare`].
#[inline]
fn compare(op: CmpOp, bits: u32, a: u64, b: u64) -> bool {
    match op {
        CmpOp::Eq => a == b,
        CmpOp::ULt => a < b,
        CmpOp::ULe => a <= b,
        CmpOp::SLt => signed(a, bits) < signed(b, bits),
        CmpOp::SLe => signed(a, bits) <= signed(b, bits),
    }
}

/// What an instruction computes of `bits` bits; `now` is how many time stamps the thread has passed.
#[inline]
fn compute(step: &Step, bits: u32, slots: &[Slot], now: usize) -> Slot {
    let of = |at: At| slots[at.slot as usize];
    let both = |a: Slot, b: Slot| a.known.max(b.known);
    let (value, known) = match step {
        Step::Binary(op, a, b) => {
            let (a, b) = (of(*a), of(*b));
            (binary(*op, bits, a.value, b.value), both(a, b))
        }
        Step::Compare { op, a, b, negate } => {
            let holds = compare(*op, a.bits, of(*a).value, of(*b).value);
            (u64::from(holds != *negate), now)
        }
        Step::Resize { from, signed: false, pointer } => {
            let it = of(*from);
            (cut(it.value, bits), if *pointer { it.known } else { now })
        }
        Step::Resize { from, .. } => (cut(signed(of(*from).value, from.bits) as u64, bits), now),
        Step::Copy(from) => (of(*from).value, of(*from).known),
        Step::Select(c, a, b) => {
            let (a, b) = (of(*a), of(*b));
            let value = if of(*c).value == 0 { b.value } else { a.value };
            (value, both(a, b))
        }
        Step::Gep { base, offset, terms } => {
            let base = of(*base);
            let step = |address: u64, (index, scale): &(At, u64)| {
                let index = signed(of(*index).value, index.bits) as u64;
                address.wrapping_add(index.wrapping_mul(*scale))
            };
            let address = terms.iter().fold(base.value, step);
            (address.wrapping_add(*offset), base.known)
        }
        // It is walked with the thread.
        Step::Access(_) => (0, now),
    };
    Slot { value, known }
}

/// The number that a value is, where it has this width.
fn number(value: &Value, bits: u32) -> Option<u64> {
    let scalar = value.scalar().filter(|scalar| scalar.width == bits)?;
    u64::try_from(scalar.as_const()?).ok()
}

/// What happened on the way, which the frame gets in the end.
#[derive(Clone, Default)]
struct Way {
    /// Per part: the number of its last branch, and the part from which it was entered last.
    branched: Vec<Option<u64>>,
    entered: Vec<Option<usize>>,
    level: Option<u16>,
    walked: u32,
    blocks: u64,
    rounds: u32,
    /// A region has ended at the block, and the runtime had something to say there.
    behind_region: bool,
}

impl<'r> Engine<'r> {
    /// The thread has entered a block. Where that is a loop's header, walks rounds as far as that goes; `walked` grows by the
    /// instructions.
    pub(crate) fn run_tight(&mut self, t: usize, walked: &mut u32) -> Result<(), Stop> {
        let Some((info, _)) = self.current(t) else { return Ok(()) };
        let Some(header) = self.threads[t].code().map(|frame| frame.block) else {
            return Ok(());
        };
        let Some(tight) = info.tight(self.image.module(info.module), header) else {
            return Ok(());
        };
        if !tight.is_worth_it() || !self.may_be_tight(t, header) {
            return Ok(());
        }
        let mut slots = std::mem::take(&mut self.slots);
        let mut end = Ok(());
        let mut rounds = 0;
        if self.load_slots(t, tight, &mut slots) {
            let (way, stop) = self.walk_tight(t, info, tight, &mut slots);
            (end, rounds) = (stop, way.rounds);
            *walked += way.walked;
        }
        self.slots = slots;
        tight.note(rounds);
        end
    }

    /// Does nobody watch the rounds of the loop that the thread is in?
    fn may_be_tight(&self, t: usize, header: BlockId) -> bool {
        let thread = &self.threads[t];
        let Some(frame) = thread.code() else { return false };
        self.scout.is_none()
            && !self.options.keep_path
            && self.memory.trail.is_none()
            && thread.cut.is_none()
            && frame.round.is_none()
            && !self.may_be_behind_panic(t)
            && (!self.symbolic() || self.idle.is_calm((thread.frames.len(), frame.serial, header)))
    }

    /// Gives the slots of inputs and phis their numbers. False where one has none.
    fn load_slots(&mut self, t: usize, tight: &Tight, slots: &mut Vec<Slot>) -> bool {
        slots.clear();
        slots.resize(tight.slots, Slot { value: 0, known: NEVER });
        let thread = &self.threads[t];
        let Some(frame) = thread.code() else { return false };
        let phis = tight.own.iter().take(tight.phis).map(|(id, at)| (Operand::Inst(*id), *at));
        for (operand, at) in phis.chain(tight.inputs.iter().copied()) {
            let value = operand_value(thread, frame, self.image, &mut self.constants, operand);
            let Some(value) = number(&value, at.bits) else { return false };
            let known = frame.known.of(operand).unwrap_or(thread.stamps);
            slots[at.slot as usize] = Slot { value, known };
        }
        true
    }

    fn walk_tight(
        &mut self,
        t: usize,
        info: &'r FunctionInfo<'r>,
        tight: &'r Tight,
        slots: &mut [Slot],
    ) -> (Way, Result<(), Stop>) {
        let begin = self.begins(t, tight, slots);
        let known = begin.as_ref().and_then(|begin| self.repeat_outcome(t, tight, begin, slots));
        let (way, at, end) = match known {
            Some((way, at)) => (way, at, Ok(())),
            None => {
                let (way, at, end) = self.walk_parts(t, info, tight, slots);
                if let Some(begin) = begin.filter(|_| end.is_ok()) {
                    self.keep_outcome(t, tight, begin, (slots, &way, at));
                }
                (way, at, end)
            }
        };
        if way.walked == 0 {
            return (way, end);
        }
        self.leave_tight(t, tight, at, &way, slots);
        let end = if way.behind_region { end.and_then(|()| self.behind_region(t)) } else { end };
        (way, end)
    }

    /// Gives where the thread is in the end, as a part and an instruction of it.
    fn walk_parts(
        &mut self,
        t: usize,
        info: &'r FunctionInfo<'r>,
        tight: &'r Tight,
        slots: &mut [Slot],
    ) -> (Way, (usize, InstId), Result<(), Stop>) {
        let mut way = Way {
            branched: vec![None; tight.parts.len()],
            entered: vec![None; tight.parts.len()],
            ..Way::default()
        };
        let mut at = 0;
        let (next, end) = 'walk: loop {
            let part = &tight.parts[at];
            // Only accesses may change that, and those do not.
            let now = self.threads[t].stamps;
            for op in &part.ops {
                if let Step::Access(access) = &op.step {
                    let here = self.access_in(t, info, (tight, part.block, op.id, access), slots);
                    if !here.is_some_and(|here| self.walk_access(t, here, (op, access), slots)) {
                        break 'walk (op.id, Ok(()));
                    }
                    way.walked += 1;
                    if access.marks.is_logged() && self.is_used_up(t) {
                        break 'walk (InstId(op.id.0 + 1), Ok(()));
                    }
                } else {
                    slots[op.to.slot as usize] = compute(&op.step, op.to.bits, slots, now);
                    way.walked += 1;
                }
            }
            let edge = match &part.end {
                End::More => break (part.last, Ok(())),
                End::Jump(edge) => {
                    if edge.target.is_none() || self.is_used_up(t) {
                        break (part.last, Ok(()));
                    }
                    edge
                }
                End::Branch { condition, then, otherwise } => {
                    let value = slots[condition.slot as usize];
                    // What was not computed here is in a register.
                    if value.known == NEVER {
                        break (part.last, Ok(()));
                    }
                    let (way_taken, edge) =
                        if value.value & 1 == 1 { (0, then) } else { (1, otherwise) };
                    if edge.target.is_none() || self.is_used_up(t) {
                        break (part.last, Ok(()));
                    }
                    match self.passes_choice(t, way_taken) {
                        Ok(true) => {}
                        Ok(false) => break (part.last, Ok(())),
                        Err(stop) => break (part.last, Err(stop)),
                    }
                    self.threads[t].branch_sequence += 1;
                    way.branched[at] = Some(self.threads[t].branch_sequence);
                    edge
                }
            };
            let Some(target) = edge.target else { break (part.last, Ok(())) };
            way.walked += 1;
            way.blocks += 1;
            way.level = Some(way.level.unwrap_or(part.level).min(part.level));
            way.entered[target] = Some(at);
            enter(edge, slots, now);
            at = target;
            way.rounds += u32::from(at == 0);
            let thread = &mut self.threads[t];
            if edge.check.is_some_and(|bits| thread.fills_region(bits)) {
                thread.end_region();
                way.behind_region = thread.is_at_runtime_event();
            }
            // The first instruction of a block is walked where there is still something of the log.
            let first = first_of(&tight.parts[at]);
            if way.behind_region || self.is_used_up(t) || way.walked >= LONGEST {
                break (first, Ok(()));
            }
        };
        (way, (at, next), end)
    }

    /// Have both streams been used up?
    #[inline]
    fn is_used_up(&mut self, t: usize) -> bool {
        let thread = &mut self.threads[t];
        if thread.choices.left > 0 {
            return false;
        }
        thread.pass_repeated();
        thread.exhausted()
    }

    /// Passes a branch's choice, where that is what comes next and goes this way.
    #[inline]
    fn passes_choice(&mut self, t: usize, way: u32) -> Result<bool, Stop> {
        let thread = &mut self.threads[t];
        if thread.choices.left == 0 {
            if !matches!(thread.peek(), Ok(Some(Entry::Choice))) {
                return Ok(false);
            }
            thread.read_choices()?;
        }
        if thread.next_choice() != Some(way) {
            return Ok(false);
        }
        thread.choose(1).map(|_| true)
    }

    /// An access that the thread is at. False where it is to be walked by itself.
    fn walk_access(
        &mut self,
        t: usize,
        here: Here<'r>,
        (op, access): (&Op, &Access),
        slots: &mut [Slot],
    ) -> bool {
        if let Some(value) = access.value {
            return self.plain_store(t, here, access.pointer, value);
        }
        if !self.plain_load(t, here, access.pointer) {
            return false;
        }
        let thread = &self.threads[t];
        let Some(frame) = thread.code() else { return false };
        let value = frame.registers.get(op.id.index());
        // It is a constant of this width ([`Self::plain_load`]).
        let value = value.and_then(|value| number(value, op.to.bits)).unwrap_or_default();
        let known = frame.known.of(Operand::Inst(op.id)).unwrap_or(thread.stamps);
        slots[op.to.slot as usize] = Slot { value, known };
        true
    }

    /// Puts the thread before an access of the loop, with all registers that it has to do with.
    fn access_in(
        &mut self,
        t: usize,
        info: &'r FunctionInfo<'r>,
        (tight, block, id, access): (&Tight, BlockId, InstId, &Access),
        slots: &[Slot],
    ) -> Option<Here<'r>> {
        let inst = info.function.instructions.get(id.index())?;
        let symbolic = self.symbolic();
        let frame = self.threads[t].code_mut()?;
        (frame.block, frame.next) = (block, id);
        // A walk that makes events asks for names, of what a pointer was computed from.
        if symbolic && matches!(self.module(t).ty(inst.ty), Type::Pointer) {
            let frame = self.threads[t].code_mut()?;
            tight.own.iter().for_each(|(id, at)| put(frame, *id, *at, slots));
        } else {
            let frame = self.threads[t].code_mut()?;
            for (id, at) in &access.operands {
                put(frame, *id, *at, slots);
            }
        }
        Some(Here { info, id, inst, marks: access.marks })
    }

    /// The walk of the loop goes on one by one, before an instruction of a part.
    fn leave_tight(
        &mut self,
        t: usize,
        tight: &Tight,
        (at, next): (usize, InstId),
        way: &Way,
        slots: &[Slot],
    ) {
        let thread = &mut self.threads[t];
        thread.known_result = None;
        thread.report.blocks += way.blocks;
        let Some(frame) = thread.code_mut() else { return };
        tight.own.iter().for_each(|(id, at)| put(frame, *id, *at, slots));
        (frame.block, frame.next) = (tight.parts[at].block, next);
        if way.blocks > 0 {
            frame.region_ended = false;
        }
        frame.branched = way.level.map_or(frame.branched, |level| frame.branched.min(level));
        if let Some(history) = &mut frame.history {
            for (part, (branched, entered)) in
                tight.parts.iter().zip(way.branched.iter().zip(&way.entered))
            {
                if let Some(sequence) = *branched {
                    let record = BranchRecord { sequence, condition: None, path_condition: None };
                    history.branches.insert(part.block, record);
                }
                if let Some(from) = *entered {
                    history.entered_from.insert(part.block, tight.parts[from].block);
                }
            }
        }
    }
}

/// A register gets what a slot has.
fn put(frame: &mut CodeFrame<'_>, id: InstId, at: At, slots: &[Slot]) {
    let Slot { value, known } = slots[at.slot as usize];
    if known == NEVER {
        return;
    }
    if let Some(register) = frame.registers.get_mut(id.index()) {
        *register = Value::constant(at.bits, value.into());
    }
    frame.known.set(id, known);
}

/// The phis of the block behind an edge: all are read before any is written.
#[inline]
fn enter(edge: &Edge, slots: &mut [Slot], now: usize) {
    let read = |at: &At, slots: &[Slot]| {
        let Slot { value, known } = slots[at.slot as usize];
        Slot { value, known: if known == NEVER { now } else { known } }
    };
    if let [(from, to)] = &*edge.phis {
        slots[to.slot as usize] = read(from, slots);
        return;
    }
    let values: smallvec::SmallVec<[Slot; 8]> =
        edge.phis.iter().map(|(from, _)| read(from, slots)).collect();
    for ((_, to), value) in edge.phis.iter().zip(values) {
        slots[to.slot as usize] = value;
    }
}

fn first_of(part: &Part) -> InstId {
    part.ops.first().map_or(part.last, |op| op.id)
}
