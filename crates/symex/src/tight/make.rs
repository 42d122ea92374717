//! The list of a loop's instructions.

use super::again::Outcomes;
use super::{Access, At, Edge, End, Op, Part, Step, Tight};
use crate::eval::arith::integer;
use crate::eval::compare::comparison;
use crate::image::FunctionInfo;
use ir::loops::Loop;
use ir::name::operand_type;
use ir::types::{BlockId, CastOp, InstId, InstKind, Instruction, Module, Operand, Type};
use rustc_hash::FxHashMap;
use std::cell::Cell;

/// Loops of more instructions are walked as any other code.
const LARGEST: usize = 4096;

/// Makes a [`Tight`].
struct Maker<'a, 'r> {
    module: &'a Module,
    info: &'a FunctionInfo<'r>,
    body: &'a Loop,
    slots: FxHashMap<Operand, At>,
    own: Vec<(InstId, At)>,
    inputs: Vec<(Operand, At)>,
    numbers: FxHashMap<BlockId, usize>,
}

impl Tight {
    /// The list of a loop; none where it has nothing to gain by it.
    pub fn of(module: &Module, info: &FunctionInfo<'_>, body: &Loop) -> Option<Self> {
        let blocks = info.function.blocks.len();
        let inside = (0..blocks as u32).map(BlockId).filter(|block| body.contains(*block));
        let mut order: Vec<BlockId> = inside.filter(|block| *block != body.header).collect();
        order.insert(0, body.header);
        let recorded = |block: &BlockId| info.plan.blocks.get(block.index()) == Some(&true);
        let waits = |block: &BlockId| info.plan.repeats.contains_key(block);
        // Rounds of an inner loop are its own.
        let walked = |block: &BlockId| {
            !recorded(block)
                && !waits(block)
                && (*block == body.header || info.loops().at(*block).is_none())
        };
        if !walked(&body.header) {
            return None;
        }
        order.retain(walked);
        let numbers = order.iter().enumerate().map(|(at, block)| (*block, at)).collect();
        let mut maker = Maker {
            module,
            info,
            body,
            slots: FxHashMap::default(),
            own: Vec::new(),
            inputs: Vec::new(),
            numbers,
        };
        let phis = maker.phis(body.header)?;
        for block in &order[1..] {
            maker.phis(*block)?;
        }
        let parts: Vec<Part> = order.iter().filter_map(|block| maker.part(*block)).collect();
        let size: usize = parts.iter().map(|part| part.ops.len()).sum();
        let goes_on = |part: &Part| !matches!(part.end, End::More);
        if parts.len() != order.len() || !parts.first().is_some_and(goes_on) || size > LARGEST {
            return None;
        }
        let accesses = |op: &Op| matches!(op.step, Step::Access(_));
        let may_repeat = !parts.iter().flat_map(|part| &part.ops).any(accesses);
        Some(Self {
            parts,
            inputs: maker.inputs,
            own: maker.own,
            phis,
            slots: maker.slots.len(),
            entered: Cell::new(0),
            rounds: Cell::new(0),
            may_repeat,
            outcomes: Outcomes::default(),
        })
    }
}

impl Maker<'_, '_> {
    fn instruction(&self, id: InstId) -> Option<&Instruction> {
        self.info.function.instructions.get(id.index())
    }

    fn bits(&self, operand: Operand) -> Option<u32> {
        let ty = operand_type(self.module, self.info.function, operand)?;
        match self.module.ty(ty) {
            Type::Int(_) | Type::Pointer | Type::Float(_) => {
                self.module.scalar_bits(ty).filter(|bits| (1..=64).contains(bits))
            }
            _ => None,
        }
    }

    /// The place of an operand, which is an input where the loop does not compute it.
    fn at(&mut self, operand: Operand) -> Option<At> {
        if let Some(at) = self.slots.get(&operand) {
            return Some(*at);
        }
        let at = At { slot: self.slots.len() as u32, bits: self.bits(operand)? };
        match operand {
            Operand::Other => return None,
            Operand::Inst(id) if self.is_inside(id) => self.own.push((id, at)),
            _ => self.inputs.push((operand, at)),
        }
        self.slots.insert(operand, at);
        Some(at)
    }

    /// What other blocks of the loop compute, which are not in the list, is in registers all the same, but may change there.
    fn is_inside(&self, id: InstId) -> bool {
        self.info.function.block_of(id).is_some_and(|block| self.body.contains(block))
    }

    /// Gives the phis of a block their places; says how many there are. None where one has no number.
    fn phis(&mut self, block: BlockId) -> Option<usize> {
        let block = self.info.function.blocks.get(block.index())?;
        let mut count = 0;
        for id in block.instructions() {
            if !matches!(self.instruction(id)?.kind, InstKind::Phi(_)) {
                break;
            }
            self.at(Operand::Inst(id))?;
            count += 1;
        }
        Some(count)
    }

    fn part(&mut self, block: BlockId) -> Option<Part> {
        let (info, level) = (self.info, self.info.branch_level(block));
        let bounds = info.function.blocks.get(block.index())?;
        let mut ops = Vec::new();
        let is_phi = |id: &InstId| {
            matches!(self.instruction(*id).map(|inst| &inst.kind), Some(InstKind::Phi(_)))
        };
        let phis = bounds.instructions().take_while(is_phi).count();
        for id in bounds.instructions().skip(phis) {
            let inst = info.function.instructions.get(id.index())?;
            if let Some(op) = self.op(id, inst) {
                ops.push(op);
                continue;
            }
            let branches = info.marks(id).branches();
            let end = match &inst.kind {
                InstKind::Br(target) if branches => self.edge(block, *target).map(End::Jump),
                InstKind::CondBr(_, then, otherwise) if branches && then == otherwise => {
                    self.edge(block, *then).map(End::Jump)
                }
                InstKind::CondBr(condition, then, otherwise) if branches => {
                    let condition = self.at(*condition);
                    let ways = self.edge(block, *then).zip(self.edge(block, *otherwise));
                    condition.zip(ways).map(|(condition, (then, otherwise))| End::Branch {
                        condition,
                        then,
                        otherwise,
                    })
                }
                _ => None,
            };
            return Some(Part { block, ops, last: id, end: end.unwrap_or(End::More), level });
        }
        None
    }

    fn edge(&mut self, from: BlockId, target: BlockId) -> Option<Edge> {
        let Some(&number) = self.numbers.get(&target) else {
            return Some(Edge { target: None, check: None, phis: Box::default() });
        };
        let check = self.info.plan.regions.checks.get(target.index()).copied().flatten();
        let info = self.info;
        let block = info.function.blocks.get(target.index())?;
        let mut phis = Vec::new();
        for id in block.instructions() {
            let InstKind::Phi(incoming) = &info.function.instructions.get(id.index())?.kind else {
                break;
            };
            let came = incoming.iter().find(|(block, _)| *block == from)?.1;
            phis.push((self.at(came)?, self.at(Operand::Inst(id))?));
        }
        Some(Edge { target: Some(number), check, phis: phis.into() })
    }

    fn op(&mut self, id: InstId, inst: &Instruction) -> Option<Op> {
        let marks = self.info.marks(id);
        match &inst.kind {
            InstKind::Store { address, value, .. } if marks.moves() => {
                let operands = self.operands(&[*address, *value])?;
                let access = Access { marks, pointer: *address, value: Some(*value), operands };
                let nowhere = At { slot: 0, bits: 1 };
                return Some(Op { id, to: nowhere, step: Step::Access(Box::new(access)) });
            }
            InstKind::Load { address, .. } if marks.moves() => {
                let operands = self.operands(&[*address])?;
                let access = Access { marks, pointer: *address, value: None, operands };
                let to = self.at(Operand::Inst(id))?;
                return Some(Op { id, to, step: Step::Access(Box::new(access)) });
            }
            _ => {}
        }
        let bits = marks.computed_bits()?;
        let step = match &inst.kind {
            InstKind::Binary(op, a, b) => {
                let (a, b) = (self.at(*a)?, self.at(*b)?);
                let fits = a.bits == bits && b.bits == bits;
                Step::Binary(integer(*op).filter(|_| fits)?, a, b)
            }
            InstKind::ICmp(predicate, a, b) => {
                let (a, b) = (self.at(*a)?, self.at(*b)?);
                let (op, swap, negate) = comparison(*predicate);
                let (a, b) = if swap { (b, a) } else { (a, b) };
                Step::Compare { op: Some(op).filter(|_| a.bits == b.bits)?, a, b, negate }
            }
            InstKind::Cast(
                op @ (CastOp::Trunc
                | CastOp::ZExt
                | CastOp::SExt
                | CastOp::PtrToInt
                | CastOp::IntToPtr
                | CastOp::AddrSpaceCast),
                from,
            ) => Step::Resize {
                from: self.at(*from)?,
                signed: *op == CastOp::SExt,
                pointer: !matches!(op, CastOp::Trunc | CastOp::ZExt | CastOp::SExt),
            },
            InstKind::Freeze(from) => {
                let from = self.at(*from)?;
                Step::Copy(Some(from).filter(|from| from.bits == bits)?)
            }
            InstKind::Select(c, a, b) => {
                let (c, a, b) = (self.at(*c)?, self.at(*a)?, self.at(*b)?);
                let fits = a.bits == bits && b.bits == bits;
                Step::Select(Some(c).filter(|_| fits)?, a, b)
            }
            InstKind::Gep { base, offset, terms, .. } => {
                let base = self.at(*base).filter(|base| base.bits == 64 && bits == 64)?;
                let terms = terms.iter().map(|term| Some((self.at(term.index)?, term.scale)));
                Step::Gep { base, offset: *offset as u64, terms: terms.collect::<Option<_>>()? }
            }
            _ => return None,
        };
        let to = self.at(Operand::Inst(id))?;
        Some(Op { id, to, step })
    }

    fn operands(&mut self, operands: &[Operand]) -> Option<Vec<(InstId, At)>> {
        let mut own = Vec::new();
        for &operand in operands {
            let at = self.at(operand)?;
            match operand {
                Operand::Inst(id) if self.is_inside(id) => own.push((id, at)),
                _ => {}
            }
        }
        Some(own)
    }
}
