//! Loops that wait: the runtime counts their rounds that repeat, where others are logged.
//!
//! The rounds of a *waiting loop* lead from a loop's header back to it, through blocks that look at something
//! that other threads may change, or yield, and have no effect else. There may be loops within, unless
//! one of them is a waiting loop that does more than pause. The same
//! header may be that of other rounds as well, which are not meant: compilers give nested loops one.
//! What a round leaves for later rounds and for what comes behind the loop is kept in *cells*: phis of
//! the header, and stack objects that do not escape. At the end of a round, each cell holds
//!
//! * what it held before, or
//! * what follows from what this round loaded and from what the loop does not change, or
//! * in a [`Counter`], a constant more than before.
//!
//! All that such a loop loads is logged, and never guessed. So of two rounds with the same log the
//! second one leaves all cells but the counters as the first one did, and needs no walk of its own.
//! The addresses that it accesses are the same as well. Whether an atomic update left memory as it
//! was the program finds out ([`WaitingLoop::updates`]).
//!
//! Of other loops that look as if they waited, those with calls of small functions among them, nothing
//! of that is known ([`WaitingLoop::certain`]). Their rounds are compared and counted too, which makes the
//! log short; but the reader walks each of them, with the same log again, until it sees that they change
//! nothing.

mod calm;

use crate::assembly::{Action, Assembly};
use crate::flow::Flow;
use crate::intrinsics::{self, Intrinsic};
use crate::stack::StackObjects;
use crate::types::{
    BinaryOp, BlockId, Call, Callee, ConstantKind, Function, InstId, InstKind, Module, Operand,
    Type, TypeId,
};
use calm::{Calm, is_known};
use std::collections::{BTreeMap, BTreeSet};

/// Longer loops do more than wait.
const MOST_BLOCKS: usize = 64;
const MOST_INSTRUCTIONS: usize = 1024;

/// A function's waiting loops, by their headers.
pub type Repeats = BTreeMap<BlockId, WaitingLoop>;

/// A waiting loop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitingLoop {
    /// The blocks that its rounds lead through, the header among them, which every way to the others
    /// passes. A round goes on from the header until another block is entered, or the header again.
    pub blocks: BTreeSet<BlockId>,
    /// A round with the log of the round before leaves all as that did, but for the counters. Where this
    /// is not certain, there are no loads and updates here; and there are counters only where what they
    /// hold goes into nothing else that the function keeps, and into no call.
    pub certain: bool,
    /// What goes on by a constant in every round.
    pub counters: Vec<Counter>,
    /// Loads of memory that others may see.
    pub loads: BTreeSet<InstId>,
    /// Atomic read-modify-writes and compare-and-exchanges.
    pub updates: BTreeSet<InstId>,
}

/// A counter of rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Where it is kept.
    pub cell: Cell,
    /// An integer of at most 64 bits.
    pub ty: TypeId,
    /// What every round adds.
    pub step: i64,
}

/// What keeps a value from one round to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cell {
    /// A phi of the header.
    Phi(InstId),
    /// A stack object, by its `alloca`.
    Slot(InstId),
}

/// The waiting loops of a function, of whose blocks these are recorded.
#[must_use]
pub fn repeats(
    module: &Module,
    function: &Function,
    stack: &StackObjects,
    recorded: &[bool],
) -> Repeats {
    let flow = Flow::of(function);
    let mut found = Repeats::new();
    // Most functions have no loops, or none that could be meant.
    let back = flow.back_edges();
    if back.is_empty() {
        return found;
    }
    let quiet = |calm: Option<&Calm<'_>>| -> BTreeSet<BlockId> {
        let blocks = (0..function.blocks.len() as u32).map(BlockId);
        blocks.filter(|&block| is_quiet(module, function, stack, calm, block)).collect()
    };
    let calm = Calm::new(module);
    let (certain, likely) = (quiet(None), quiet(Some(&calm)));
    for (&header, latches) in &back {
        if recorded.get(header.index()).copied().unwrap_or(true) {
            continue;
        }
        for (quiet, calm) in [(&certain, None), (&likely, Some(&calm))] {
            let Some(blocks) = quiet_loop(&flow, header, latches, quiet) else { continue };
            let is_within = |(inner, latches): (&BlockId, &Vec<BlockId>)| {
                *inner != header && latches.iter().any(|latch| blocks.contains(latch))
            };
            if calm.is_some() && back.iter().any(is_within) {
                continue;
            }
            let look = Look::new(module, function, stack, calm, &flow, header, &blocks);
            if let Some(waiting) = look.and_then(Look::look) {
                found.insert(header, WaitingLoop { blocks, ..waiting });
                break;
            }
        }
    }
    one_in_nest(&mut found);
    found
}

/// Leaves one of loops that lie in each other: the innermost that looks at memory, or, where none does,
/// the outermost, whose rounds are longer.
fn one_in_nest(rounds: &mut Repeats) {
    let looks = |waiting: &WaitingLoop| {
        !waiting.certain || !waiting.loads.is_empty() || !waiting.updates.is_empty()
    };
    let is_within = |inner: &BlockId, (outer, waiting): (&BlockId, &WaitingLoop)| {
        inner != outer && waiting.blocks.contains(inner)
    };
    let around: BTreeSet<BlockId> = rounds
        .iter()
        .filter(|&outer| rounds.iter().any(|(inner, it)| looks(it) && is_within(inner, outer)))
        .map(|(&header, _)| header)
        .collect();
    rounds.retain(|header, _| !around.contains(header));
    let inside: BTreeSet<BlockId> = rounds
        .keys()
        .copied()
        .filter(|inner| rounds.iter().any(|outer| is_within(inner, outer)))
        .collect();
    rounds.retain(|header, _| !inside.contains(header));
}

/// The blocks on the ways from a loop's header back to it that lead through quiet blocks alone. There may
/// be more ways through the loop, and ways from these to the same blocks.
fn quiet_loop(
    flow: &Flow,
    header: BlockId,
    latches: &[BlockId],
    quiet: &BTreeSet<BlockId>,
) -> Option<BTreeSet<BlockId>> {
    if !quiet.contains(&header) {
        return None;
    }
    let may = |block: &BlockId| quiet.contains(block) && flow.dominates(header, *block);
    let forward = reached(&[header], |block| flow.after(block), |to| may(to) && *to != header);
    let ends: Vec<BlockId> =
        latches.iter().copied().filter(|latch| forward.contains(latch)).collect();
    let back = |block: BlockId| if block == header { &[] } else { flow.before(block) };
    let blocks = reached(&ends, back, |from| forward.contains(from));
    (!ends.is_empty() && blocks.len() <= MOST_BLOCKS).then_some(blocks)
}

/// What can be reached from there by such steps.
fn reached<'g>(
    from: &[BlockId],
    steps: impl Fn(BlockId) -> &'g [BlockId],
    may: impl Fn(&BlockId) -> bool,
) -> BTreeSet<BlockId> {
    let (mut seen, mut work) = (from.iter().copied().collect::<BTreeSet<_>>(), from.to_vec());
    while let Some(block) = work.pop() {
        for &next in steps(block).iter().filter(|next| may(next)) {
            if seen.insert(next) {
                work.push(next);
            }
        }
    }
    seen
}

/// Has no instruction of the block an effect that a waiting loop could not have? With `calm`: that a loop
/// would not have that looks as if it waited.
fn is_quiet(
    module: &Module,
    function: &Function,
    stack: &StackObjects,
    calm: Option<&Calm<'_>>,
    block: BlockId,
) -> bool {
    let quiet = |id: InstId| {
        function.instructions.get(id.index()).is_some_and(|instruction| match &instruction.kind {
            InstKind::Phi(_)
            | InstKind::Load { .. }
            | InstKind::AtomicRmw { .. }
            | InstKind::CmpXchg { .. } => true,
            InstKind::Store { address, value, .. } => match calm {
                None => stack.private_root(*address).is_some(),
                Some(_) => stack.root(*address).is_some() || is_found(function, *value),
            },
            InstKind::Call(call) => {
                idle_call(module, call).is_some() || calm.is_some_and(|calm| calm.is_calm(call))
            }
            InstKind::Invoke { call, .. } => calm.is_some_and(|calm| calm.is_calm(call)),
            kind => is_pure(kind),
        })
    };
    function.blocks.get(block.index()).is_some_and(|block| block.instructions().all(quiet))
}

/// Is the value what a compare-and-exchange found? It goes to where the source says, often by a pointer.
fn is_found(function: &Function, value: Operand) -> bool {
    let kind = |operand: Operand| match operand {
        Operand::Inst(id) => Some(&function.instructions.get(id.index())?.kind),
        _ => None,
    };
    let Some(InstKind::ExtractValue(from, ..)) = kind(value) else { return false };
    matches!(kind(*from), Some(InstKind::CmpXchg { .. }))
}

/// What a call does that has no effect but that others may run meanwhile.
enum Idle {
    /// It computes its result.
    Computes,
    /// It gives way to others, and computes its result.
    Pauses,
    /// It gives way to others, and its result is logged.
    Yields,
}

fn idle_call(module: &Module, call: &Call) -> Option<Idle> {
    let name = call.target(module).map_or("", |target| target.name.as_str());
    match (&call.callee, intrinsics::called(module, call)) {
        (_, Some(Intrinsic::Arithmetic | Intrinsic::Annotation)) => Some(Idle::Computes),
        (_, Some(_)) if name == "llvm.x86.sse2.pause" => Some(Idle::Pauses),
        (Callee::Asm(text, constraints), _) => {
            let assembly = Assembly::parse(text, constraints);
            let idle = matches!(assembly.action, Action::Nothing { .. });
            let registers = assembly.operands.iter().all(|operand| !operand.indirect);
            let pauses = text.contains("pause") || text.contains("nop");
            let kind = if pauses { Idle::Pauses } else { Idle::Computes };
            (idle && registers && !assembly.is_logged()).then_some(kind)
        }
        (Callee::Direct(target), None)
            if matches!(name, "sched_yield" | "thrd_yield") && call.args.is_empty() =>
        {
            let declared = module.functions.get(target.index())?.is_declaration();
            (declared && !call.must_tail).then_some(Idle::Yields)
        }
        _ => None,
    }
}

/// What a value may be, in terms of what the cells held when the round began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Value {
    /// The content of a cell and a constant.
    exact: BTreeSet<(Cell, i64)>,
    /// Something that was computed or loaded, from what these cells held among others.
    made: Option<BTreeSet<Cell>>,
}

impl Value {
    /// What no cell has to do with.
    fn own() -> Self {
        Self { exact: BTreeSet::new(), made: Some(BTreeSet::new()) }
    }

    fn of(cell: Cell) -> Self {
        Self { exact: BTreeSet::from([(cell, 0)]), made: None }
    }

    fn cells(&self) -> BTreeSet<Cell> {
        let exact = self.exact.iter().map(|&(cell, _)| cell);
        exact.chain(self.made.iter().flatten().copied()).collect()
    }

    /// Computed from others.
    fn from<'v>(values: impl Iterator<Item = &'v Self>) -> Self {
        let cells = values.flat_map(Self::cells).collect();
        Self { exact: BTreeSet::new(), made: Some(cells) }
    }

    fn join(&mut self, other: &Self) {
        self.exact.extend(&other.exact);
        if let Some(more) = &other.made {
            self.made.get_or_insert_with(BTreeSet::new).extend(more);
        }
    }

    fn plus(&self, step: i64) -> Option<Self> {
        let [(cell, offset)] = self.exact.iter().copied().collect::<Vec<_>>()[..] else {
            return None;
        };
        let exact = BTreeSet::from([(cell, offset.checked_add(step)?)]);
        self.made.is_none().then_some(Self { exact, made: None })
    }
}

/// Looks at one loop.
struct Look<'f> {
    module: &'f Module,
    function: &'f Function,
    stack: &'f StackObjects,
    /// Not all has to be certain.
    calm: Option<&'f Calm<'f>>,
    flow: &'f Flow,
    header: BlockId,
    blocks: &'f BTreeSet<BlockId>,
    /// The stack objects that it writes, with the types of their contents.
    slots: BTreeMap<InstId, TypeId>,
    /// The results of its instructions, as far as known so far.
    values: BTreeMap<InstId, Value>,
    /// Its instructions.
    inside: BTreeSet<InstId>,
    /// Cells that addresses are made of.
    addressing: BTreeSet<Cell>,
    /// Cells that go into memory which is no slot.
    stored: BTreeSet<Cell>,
    found: WaitingLoop,
    /// It yields.
    waits: bool,
}

impl<'f> Look<'f> {
    /// None when it writes more than simple stack objects, or is long.
    fn new(
        module: &'f Module,
        function: &'f Function,
        stack: &'f StackObjects,
        calm: Option<&'f Calm<'f>>,
        flow: &'f Flow,
        header: BlockId,
        blocks: &'f BTreeSet<BlockId>,
    ) -> Option<Self> {
        let mut look = Self {
            module,
            function,
            stack,
            calm,
            flow,
            header,
            blocks,
            slots: BTreeMap::new(),
            values: BTreeMap::new(),
            inside: BTreeSet::new(),
            addressing: BTreeSet::new(),
            stored: BTreeSet::new(),
            found: WaitingLoop::default(),
            waits: false,
        };
        let (mut count, mut accesses) = (0, Vec::new());
        for &block in blocks {
            for id in function.blocks.get(block.index())?.instructions() {
                count += 1;
                look.inside.insert(id);
                let instruction = function.instructions.get(id.index())?;
                match instruction.kind {
                    InstKind::Store { address, value, .. } => {
                        let Some(slot) = stack.private_root(address) else { continue };
                        let ty = look.type_of(value)?;
                        if stack.addressed(slot) || stack.copied_into(slot) {
                            return None;
                        }
                        look.slots.insert(slot, ty);
                        accesses.push((address, ty));
                    }
                    InstKind::Load { address, .. } => accesses.push((address, instruction.ty)),
                    _ => {}
                }
            }
        }
        let whole = |&(address, ty): &(Operand, TypeId)| {
            let slot = stack.root(address).and_then(|slot| Some((slot, *look.slots.get(&slot)?)));
            slot.is_none_or(|(slot, kept)| address == Operand::Inst(slot) && ty == kept)
        };
        let words = look.slots.values().all(|&ty| look.is_word(ty));
        (count <= MOST_INSTRUCTIONS && words && accesses.iter().all(whole)).then_some(look)
    }

    fn look(mut self) -> Option<WaitingLoop> {
        let order = self.flow.in_order(self.blocks);
        let mut ends: BTreeMap<BlockId, BTreeMap<InstId, Value>> = BTreeMap::new();
        // Loops within are passed until they tell nothing new. What is known only grows, by no more than
        // the cells and one step for each instruction that adds.
        loop {
            let before = (self.values.clone(), ends.clone());
            for &block in &order {
                let mut held = self.at_start(block, &ends);
                for id in self.function.blocks.get(block.index())?.instructions() {
                    self.pass(block, id, &mut held)?;
                }
                let end = ends.entry(block).or_default();
                for (slot, value) in held {
                    end.entry(slot).or_default().join(&value);
                }
            }
            if before.0 == self.values && before.1 == ends {
                return self.conclude(&ends);
            }
        }
    }

    /// What the slots hold where a block begins.
    fn at_start(
        &self,
        block: BlockId,
        ends: &BTreeMap<BlockId, BTreeMap<InstId, Value>>,
    ) -> BTreeMap<InstId, Value> {
        if block == self.header {
            return self.slots.keys().map(|&slot| (slot, Value::of(Cell::Slot(slot)))).collect();
        }
        let mut held: BTreeMap<InstId, Value> = BTreeMap::new();
        let from = self.flow.before(block).iter().filter(|from| self.blocks.contains(from));
        // What comes from further back in a loop within is there in the next pass.
        for (&slot, value) in from.filter_map(|from| ends.get(from)).flatten() {
            held.entry(slot).or_default().join(value);
        }
        held
    }

    /// Notes what an instruction gives; none when it has effects.
    fn pass(
        &mut self,
        block: BlockId,
        id: InstId,
        held: &mut BTreeMap<InstId, Value>,
    ) -> Option<()> {
        let instruction = self.function.instructions.get(id.index())?;
        let value = match &instruction.kind {
            InstKind::Phi(_) if block == self.header => Value::of(Cell::Phi(id)),
            InstKind::Phi(incoming) => {
                let mut value = Value::default();
                for (_, operand) in incoming.iter().filter(|(from, _)| self.blocks.contains(from)) {
                    value.join(&self.value(*operand));
                }
                value
            }
            InstKind::Load { address, .. } => self.load(id, *address, instruction.ty, held)?,
            InstKind::Store { address, value, .. } => {
                match self.stack.private_root(*address) {
                    Some(slot) => {
                        held.insert(slot, self.value(*value));
                    }
                    None => {
                        self.address(*address);
                        self.stored.extend(self.value(*value).cells());
                    }
                }
                Value::default()
            }
            InstKind::AtomicRmw { op, address, .. } => {
                let known = is_known(*op);
                self.update(id, *address, known && self.is_word(instruction.ty))?
            }
            InstKind::CmpXchg { address, expected, .. } => {
                let known = self.type_of(*expected).is_some_and(|ty| self.is_word(ty));
                self.update(id, *address, known)?
            }
            InstKind::Call(call) | InstKind::Invoke { call, .. } => self.call(call)?,
            InstKind::Binary(op @ (BinaryOp::Add | BinaryOp::Sub), a, b) => {
                self.sum(*op, *a, *b).unwrap_or_else(|| self.computed(&instruction.kind))
            }
            kind if is_pure(kind) => self.computed(kind),
            _ => return None,
        };
        self.values.entry(id).or_default().join(&value);
        Some(())
    }

    fn load(
        &mut self,
        id: InstId,
        address: Operand,
        ty: TypeId,
        held: &BTreeMap<InstId, Value>,
    ) -> Option<Value> {
        if let Some(object) = self.stack.private_root(address) {
            self.address(address);
            return Some(held.get(&object).cloned().unwrap_or_else(Value::own));
        }
        self.address(address);
        self.found.loads.insert(id);
        self.is_word(ty).then(Value::own)
    }

    fn update(&mut self, id: InstId, address: Operand, known: bool) -> Option<Value> {
        self.address(address);
        self.found.updates.insert(id);
        (known && self.stack.private_root(address).is_none()).then(Value::own)
    }

    fn address(&mut self, address: Operand) {
        let cells = self.value(address).cells();
        self.addressing.extend(cells);
    }

    fn call(&mut self, call: &Call) -> Option<Value> {
        let values: Vec<Value> = call.args.iter().map(|&argument| self.value(argument)).collect();
        let Some(idle) = idle_call(self.module, call) else {
            // What it is called with is the same each time, or it would not only look.
            self.calm.filter(|calm| calm.is_calm(call))?;
            self.addressing.extend(values.iter().flat_map(Value::cells));
            self.waits = true;
            return Some(Value::own());
        };
        self.waits |= !matches!(idle, Idle::Computes);
        Some(match idle {
            Idle::Yields => Value::own(),
            Idle::Computes | Idle::Pauses => Value::from(values.iter()),
        })
    }

    fn computed(&self, kind: &InstKind) -> Value {
        let mut values = Vec::new();
        kind.for_each_operand(&mut |operand| values.push(self.value(operand)));
        Value::from(values.iter())
    }

    fn sum(&self, op: BinaryOp, a: Operand, b: Operand) -> Option<Value> {
        let (value, step) = match (self.constant(a), self.constant(b)) {
            (None, Some(step)) if op == BinaryOp::Add => (a, step),
            (None, Some(step)) => (a, step.checked_neg()?),
            (Some(step), None) if op == BinaryOp::Add => (b, step),
            _ => return None,
        };
        self.value(value).plus(step)
    }

    fn constant(&self, operand: Operand) -> Option<i64> {
        let Operand::Const(id) = operand else { return None };
        let constant = self.module.constants.get(id.index())?;
        let Some(Type::Int(bits @ 1..=64)) = self.module.types.get(constant.ty.index()) else {
            return None;
        };
        match &constant.kind {
            ConstantKind::Int(words) => {
                let unused = 64 - bits;
                Some((*words.first()? as i64) << unused >> unused)
            }
            ConstantKind::Zero => Some(0),
            _ => None,
        }
    }

    fn value(&self, operand: Operand) -> Value {
        match operand {
            Operand::Inst(id) if self.inside.contains(&id) => {
                self.values.get(&id).cloned().unwrap_or_default()
            }
            _ => Value::own(),
        }
    }

    fn type_of(&self, operand: Operand) -> Option<TypeId> {
        match operand {
            Operand::Inst(id) => Some(self.function.instructions.get(id.index())?.ty),
            Operand::Param(index) => Some(self.function.params.get(index as usize)?.ty),
            Operand::Const(id) => Some(self.module.constants.get(id.index())?.ty),
            Operand::Other => None,
        }
    }

    fn is_word(&self, ty: TypeId) -> bool {
        matches!(self.module.types.get(ty.index()), Some(Type::Int(1..=64) | Type::Pointer))
    }

    /// What the cells hold when the next round begins; none when that is not as it has to be.
    fn conclude(self, ends: &BTreeMap<BlockId, BTreeMap<InstId, Value>>) -> Option<WaitingLoop> {
        if self.found.loads.is_empty() && self.found.updates.is_empty() && !self.waits {
            return None;
        }
        let mut next: BTreeMap<Cell, (Value, TypeId)> = BTreeMap::new();
        let latches = || self.flow.before(self.header).iter().filter(|at| self.blocks.contains(at));
        for latch in latches() {
            for (&slot, value) in ends.get(latch)? {
                let ty = *self.slots.get(&slot)?;
                next.entry(Cell::Slot(slot)).or_insert((Value::default(), ty)).0.join(value);
            }
        }
        for id in self.function.blocks.get(self.header.index())?.instructions() {
            let instruction = self.function.instructions.get(id.index())?;
            let InstKind::Phi(incoming) = &instruction.kind else { break };
            let mut value = Value::default();
            for (_, operand) in incoming.iter().filter(|(from, _)| self.blocks.contains(from)) {
                value.join(&self.value(*operand));
            }
            next.insert(Cell::Phi(id), (value, instruction.ty));
        }
        let unchanged = |cell: Cell| {
            next.get(&cell).is_some_and(|(value, _)| {
                value.made.is_none() && value.exact == BTreeSet::from([(cell, 0)])
            })
        };
        if !self.addressing.iter().all(|&cell| unchanged(cell)) {
            return None;
        }
        let counters = self.counters(&next, unchanged);
        if self.calm.is_none() {
            return Some(WaitingLoop { certain: true, counters: counters?, ..self.found });
        }
        // Other loops may do something else than to wait.
        let looks = self.waits || !self.found.updates.is_empty();
        let kept =
            |counters: &Vec<Counter>| counters.iter().any(|it| self.stored.contains(&it.cell));
        let counters = counters.filter(|counters| !kept(counters)).unwrap_or_default();
        looks.then(|| WaitingLoop { counters, ..WaitingLoop::default() })
    }

    /// The counters among the cells; none when another one does not follow from what the round loaded.
    fn counters(
        &self,
        next: &BTreeMap<Cell, (Value, TypeId)>,
        unchanged: impl Fn(Cell) -> bool,
    ) -> Option<Vec<Counter>> {
        let mut counters = Vec::new();
        for (&cell, (value, ty)) in next {
            let own: Vec<i64> =
                value.exact.iter().filter(|(of, _)| *of == cell).map(|&(_, step)| step).collect();
            let mut others = value.exact.iter().map(|&(of, _)| of).filter(|&of| of != cell);
            let follows = others.all(&unchanged)
                && value.made.iter().flatten().all(|&other| unchanged(other));
            match own[..] {
                [] | [0] if follows => {}
                [step] if value.made.is_none() && value.exact.len() == 1 => {
                    let Some(Type::Int(1..=64)) = self.module.types.get(ty.index()) else {
                        return None;
                    };
                    counters.push(Counter { cell, ty: *ty, step });
                }
                _ => return None,
            }
        }
        Some(counters)
    }
}

/// Does an instruction do nothing but compute its result, or choose a way?
fn is_pure(kind: &InstKind) -> bool {
    let chooses = matches!(
        kind,
        InstKind::Fence(_) | InstKind::Br(_) | InstKind::CondBr(..) | InstKind::Switch(..)
    );
    kind.only_computes() || chooses
}
