//! Places the hooks in one function, as `ir::plan` says.
//!
//! Hooks are always inserted before an instruction of the original function, in the order of the
//! log. Several hooks before one instruction therefore come out in the order in which they were
//! inserted: the `RETURN` of an invoke first, the entry of its destination second. A gate comes
//! last: between it and the instruction that it belongs to stands nothing.

use crate::InstrumentError;
use crate::build::Builder;
use crate::calls;
use crate::choices::Choices;
use crate::edges;
use crate::gates;
use crate::hooks::Hooks;
use crate::kept::Kept;
use crate::repeats::Repeats;
use crate::values::has_opcode;
use crate::words::{self, Room};
use crate::writes::{self, Returned};
use ir::assembly::Assembly;
use ir::plan::FunctionPlan;
use ir::regions::{REGION_BITS, SHORT_BITS, ends_region};
use ir::types::{Call, Callee, Function, InstId, InstKind, RmwOp, Type, TypeId};
use llvm::{Llvm, Module};
use llvm_sys::prelude::LLVMValueRef;
use llvm_sys::{LLVMIntPredicate, LLVMOpcode, LLVMTailCallKind};
use std::collections::HashMap;
use trace_format::layout::token;

/// The function to instrument, as the executor sees it and as LLVM has it.
pub struct Target<'a> {
    pub module: &'a ir::types::Module,
    pub function: &'a Function,
    /// Its index among the module's functions.
    pub index: usize,
    pub value: LLVMValueRef,
}

/// Places all hooks of a function.
pub fn function(
    module: &Module<'_>,
    hooks: &Hooks,
    target: &Target<'_>,
) -> Result<(), InstrumentError> {
    let plan = ir::plan::plan(target.module, target.function);
    let body = Body::collect(module.llvm(), target)?;
    let builder = Builder::new(module.llvm(), module.context().raw());
    let sites = gates::sites(target.module, target.function);
    if !sites.is_empty() {
        gates::forbid_red_zone(module, target.value);
    }
    let own = ir::calls::shape_of(target.module, target.function)
        // The C library calls it, and `program_arguments` looks for other uses.
        .filter(|_| target.function.name != "main")
        .map(|shape| (calls::own_address(module, target.value), shape));
    let (plan, room) = (&plan, Room::default());
    let mut placer = Placer { module, hooks, target, plan, own, sites, builder, body, room };
    placer.gather_stack_objects();
    placer.returns_of_invokes()?;
    let kept = placer.kept()?;
    // SAFETY: the body's instructions are alive.
    let mut choices = unsafe {
        Choices::begin(module.llvm(), &placer.builder, target.function, plan, |block| {
            let &(first, _) = placer.body.blocks.get(block)?;
            placer.body.at(first)
        })
    };
    // SAFETY: as above.
    let repeats = unsafe {
        let repeats = (target.function, &plan.repeats);
        Repeats::begin(module.llvm(), &placer.builder, repeats, |block| {
            let &(first, _) = placer.body.blocks.get(block)?;
            placer.body.at(first)
        })
    };
    placer.blocks(&mut choices, &repeats, &kept)?;
    // SAFETY: the function is alive, and nothing was removed from it.
    unsafe {
        choices.join(module.llvm(), &placer.builder, target.value);
        repeats.join(module.llvm(), &placer.builder, target.value);
    }
    Ok(())
}

/// A function's instructions in their original order.
struct Body {
    instructions: Vec<LLVMValueRef>,
    /// Per block, where it begins and ends among them.
    blocks: Vec<(usize, usize)>,
}

impl Body {
    fn collect(llvm: &Llvm, target: &Target<'_>) -> Result<Self, InstrumentError> {
        let mut body = Self { instructions: Vec::new(), blocks: Vec::new() };
        // SAFETY: the function is alive, and nothing is removed.
        unsafe {
            for block in llvm.blocks(target.value) {
                let first = body.instructions.len();
                body.instructions.extend(llvm.instructions(block));
                body.blocks.push((first, body.instructions.len()));
            }
        }
        let same = |block: &ir::types::Block, range: &(usize, usize)| {
            (block.first.index(), block.end.index()) == *range
        };
        let blocks = &target.function.blocks;
        if body.instructions.len() != target.function.instructions.len()
            || blocks.len() != body.blocks.len()
            || !blocks.iter().zip(&body.blocks).all(|(block, range)| same(block, range))
        {
            return Err(target.mismatch("the instructions"));
        }
        Ok(body)
    }

    fn at(&self, index: usize) -> Option<LLVMValueRef> {
        self.instructions.get(index).copied()
    }
}

impl Target<'_> {
    fn mismatch(&self, what: &'static str) -> InstrumentError {
        InstrumentError::Mismatch { function: self.function.name.clone(), what }
    }

    fn call(&self, id: InstId) -> Option<&Call> {
        match &self.function.instructions.get(id.index())?.kind {
            InstKind::Call(call) | InstKind::Invoke { call, .. } => Some(call),
            _ => None,
        }
    }
}

/// The number that collects the choices of the region that goes on.
#[derive(Clone, Copy)]
struct Open {
    number: LLVMValueRef,
    /// How many bits it has at most.
    bits: u32,
    /// It may have bits that are not in the control page yet.
    unsaved: bool,
}

struct Placer<'a> {
    module: &'a Module<'a>,
    hooks: &'a Hooks,
    target: &'a Target<'a>,
    plan: &'a FunctionPlan,
    /// The function's own address and shape, when it looks for its mark.
    own: Option<(LLVMValueRef, u64)>,
    /// The gates: the hashes of their sites, by the instruction that they stand before.
    sites: HashMap<InstId, u64>,
    builder: Builder,
    body: Body,
    room: Room,
}

impl Placer<'_> {
    fn llvm(&self) -> &'static Llvm {
        self.module.llvm()
    }

    /// Moves the static allocas to the front of the entry block. A hook before one of them would
    /// push it into another block, where it would become a dynamic one.
    fn gather_stack_objects(&self) {
        let Some(entry) = self.body.blocks.first() else { return };
        let indices = entry.0..entry.1;
        let Some(anchor) = indices.clone().find(|&index| !self.is_static_alloca(index)) else {
            return;
        };
        let Some(front) = self.body.at(anchor) else { return };
        for index in (anchor..indices.end).filter(|&index| self.is_static_alloca(index)) {
            let Some(alloca) = self.body.at(index) else { continue };
            // SAFETY: a static alloca depends on constants alone, so it may move up.
            unsafe { self.llvm().LLVMInstructionRemoveFromParent(alloca) };
            self.builder.before(front);
            self.builder.insert(alloca);
        }
    }

    /// Makes room for what is kept, behind the static allocas.
    fn kept(&self) -> Result<Kept<'_>, InstrumentError> {
        let guesses = &self.plan.guesses;
        let &(first, _) =
            self.body.blocks.first().ok_or_else(|| self.target.mismatch("the blocks"))?;
        self.builder.before(self.anchor(first, true)?);
        Ok(Kept::begin(&self.builder, guesses))
    }

    fn is_static_alloca(&self, index: usize) -> bool {
        let Some(instruction) = self.body.at(index) else { return false };
        let llvm = self.llvm();
        // SAFETY: the instruction is alive.
        unsafe {
            !llvm.LLVMIsAAllocaInst(instruction).is_null()
                && !llvm.LLVMIsAConstantInt(llvm.LLVMGetOperand(instruction, 0)).is_null()
        }
    }

    /// The first instruction from `index` on that hooks can stand before: not a phi, not a landing
    /// pad, and in the entry block not a static alloca.
    fn anchor(&self, index: usize, entry: bool) -> Result<LLVMValueRef, InstrumentError> {
        let mut index = index;
        while let Some(instruction) = self.body.at(index) {
            // SAFETY: the instruction is alive.
            let leads = unsafe {
                has_opcode(self.llvm(), instruction, LLVMOpcode::LLVMPHI)
                    || has_opcode(self.llvm(), instruction, LLVMOpcode::LLVMLandingPad)
            };
            if !(leads || entry && self.is_static_alloca(index)) {
                return Ok(instruction);
            }
            index += 1;
        }
        Err(self.target.mismatch("the ends of blocks"))
    }

    /// `RETURN` and result on the normal edges of invokes.
    fn returns_of_invokes(&mut self) -> Result<(), InstrumentError> {
        for &id in &self.plan.returns {
            let instruction = &self.target.function.instructions[id.index()];
            let InstKind::Invoke { normal, .. } = &instruction.kind else { continue };
            let Some(invoke) = self.body.at(id.index()) else { continue };
            // SAFETY: the invoke is alive.
            let destination = unsafe { self.llvm().LLVMGetNormalDest(invoke) };
            // SAFETY: so is its destination.
            if unsafe { edges::has_one_predecessor(self.llvm(), destination) } {
                let first = self.body.blocks.get(normal.index()).map(|range| range.0);
                let first = first.ok_or_else(|| self.target.mismatch("the blocks"))?;
                let anchor = self.anchor(first, false)?;
                self.builder.before(anchor);
            } else {
                let jump = self.split(invoke);
                self.builder.before(jump);
            }
            self.returned(id, invoke, instruction.ty)?;
        }
        Ok(())
    }

    fn split(&mut self, invoke: LLVMValueRef) -> LLVMValueRef {
        let mut renamed = HashMap::new();
        let context = self.module.context().raw();
        // SAFETY: the invoke is alive; phis that were replaced are replaced in the list as well.
        let jump = unsafe {
            edges::split_normal(self.llvm(), context, &self.builder, invoke, &mut renamed)
        };
        for instruction in &mut self.body.instructions {
            if let Some(&new) = renamed.get(instruction) {
                *instruction = new;
            }
        }
        jump
    }

    fn blocks(
        &self,
        choices: &mut Choices,
        repeats: &Repeats,
        kept: &Kept<'_>,
    ) -> Result<(), InstrumentError> {
        let unsaved = self.unsaved(choices);
        for (block, &(first, end)) in self.body.blocks.iter().enumerate() {
            let entry = block == 0;
            let anchor = self.anchor(first, entry)?;
            self.room.forget();
            let mut open = None;
            if entry && self.plan.entry {
                self.builder.before(anchor);
                self.enter()?;
            } else if !entry {
                self.builder.before(anchor);
                open = self.start(block, choices, repeats, unsaved.get(block) == Some(&true));
            }
            if let Some(witness) = self.hooks.witness {
                self.builder.before(anchor);
                let base = self.builder.load_i32(self.hooks.base);
                let function = self.builder.add(base, self.builder.i32(self.target.index as u32));
                self.builder.call(witness, &mut [function, self.builder.i32(block as u32)]);
            }
            for index in first..end {
                self.end_region(index, &mut open);
                self.save(index, &mut open);
                self.leave_mark(index);
                self.gate(index);
                self.after_instruction(index, entry, kept, &mut open)?;
            }
            choices.at_end(block, open.map(|open| open.number));
        }
        Ok(())
    }

    /// What a block logs at its start, where the choices may be `unsaved`. Gives what collects choices
    /// from then on.
    fn start(
        &self,
        block: usize,
        choices: &Choices,
        repeats: &Repeats,
        unsaved: bool,
    ) -> Option<Open> {
        let mut number = choices.at_start(block);
        if let Some((again, loop_number)) = repeats.again(block) {
            let before = number.unwrap_or_else(|| self.builder.i32(1));
            let header = self.builder.i64(u64::from(loop_number));
            let after = self.builder.call(self.hooks.round, &mut [before, again, header]);
            number = number.map(|_| after);
        }
        let bits = self.plan.regions.most.get(block).copied().unwrap_or(REGION_BITS);
        if self.plan.blocks.get(block).copied().unwrap_or(false) {
            if let Some(number) = number {
                self.end(Open { number, bits, unsaved });
            }
            let index = self.builder.i32(block as u32);
            let token = self.builder.i8(token::BLOCK);
            self.builder.call(self.hooks.path_number, &mut [token, index]);
            return None;
        }
        let mut open = Open { number: number?, bits, unsaved };
        let check = self.plan.regions.checks.get(block).copied().flatten();
        if let (Some(most), Some(bits)) = (choices.most(block, self.plan), check) {
            let most = self.builder.i32(most);
            open.number = self.builder.call(self.hooks.check, &mut [open.number, most]);
            open.bits = open.bits.min(bits);
            // A loop that does nothing does not keep its choices for itself.
            if open.unsaved && self.is_quiet_block(block) {
                self.builder.call(self.hooks.choices, &mut [open.number]);
                open.unsaved = false;
            }
        }
        Some(open)
    }

    /// Per block: are there choices at its start that may not be in the control page yet?
    ///
    /// Choices are put there before something happens that could end the thread or that others could
    /// notice. Until then there may be more of them.
    fn unsaved(&self, choices: &Choices) -> Vec<bool> {
        let blocks = &self.target.function.blocks;
        let mut starts: Vec<bool> = (0..blocks.len()).map(|at| choices.is_chosen(at)).collect();
        let mut work: Vec<usize> = (0..blocks.len()).collect();
        while let Some(at) = work.pop() {
            let (Some(block), Some(&start)) = (blocks.get(at), starts.get(at)) else { continue };
            let recorded = self.plan.blocks.get(at).copied().unwrap_or(false);
            let checked = choices.most(at, self.plan).is_some() && self.is_quiet_block(at);
            let mut unsaved = start && !recorded && !checked;
            for id in block.instructions() {
                unsaved &= self.is_quiet(id);
                unsaved |= self.plan.guesses.loads.contains(&id);
            }
            let last = self.target.function.instructions.get(block.terminator().index());
            let targets = last.map(|last| last.kind.successors()).unwrap_or_default();
            for target in targets.iter().filter(|_| unsaved) {
                if let Some(there) = starts.get_mut(target.index()).filter(|there| !**there) {
                    *there = true;
                    work.push(target.index());
                }
            }
        }
        starts
    }

    fn is_quiet_block(&self, block: usize) -> bool {
        let block = self.target.function.blocks.get(block);
        block.is_none_or(|block| block.instructions().all(|id| self.is_quiet(id)))
    }

    /// Does an instruction work on registers alone, cannot fail, and logs nothing?
    fn is_quiet(&self, id: InstId) -> bool {
        let Some(instruction) = self.target.function.instructions.get(id.index()) else {
            return false;
        };
        let quiet = match &instruction.kind {
            // Those that are no calls in the end.
            InstKind::Call(_) => !ends_region(self.target.module, instruction),
            InstKind::Br(_) | InstKind::CondBr(..) | InstKind::Switch(..) => true,
            kind => is_quiet(kind),
        };
        quiet && !self.plan.values.contains(&id) && !self.sites.contains_key(&id)
    }

    /// Puts the choices into the control page before an instruction that asks for it.
    fn save(&self, index: usize, open: &mut Option<Open>) {
        if let Some(open) = open.as_mut().filter(|open| open.unsaved)
            && !self.is_quiet(InstId(index as u32))
            && let Some(place) = self.body.at(index)
        {
            self.builder.before(place);
            self.builder.call(self.hooks.choices, &mut [open.number]);
            open.unsaved = false;
        }
    }

    /// Ends the region before an instruction that asks for it.
    fn end_region(&self, index: usize, open: &mut Option<Open>) {
        let instruction = self.target.function.instructions.get(index);
        let ends = instruction.is_some_and(|it| ends_region(self.target.module, it));
        if ends {
            self.room.forget();
        }
        if ends
            && let Some(place) = self.body.at(index)
            && let Some(open) = open.take()
        {
            self.builder.before(place);
            self.end(open);
        }
    }

    fn end(&self, open: Open) {
        let short = open.bits <= SHORT_BITS;
        let hook = if short { self.hooks.end_short } else { self.hooks.end };
        self.builder.call(hook, &mut [open.number]);
    }

    /// Leaves a mark before a call whose callee may look for it, and before a return.
    fn leave_mark(&self, index: usize) {
        let instruction = self.target.function.instructions.get(index);
        let (Some(instruction), Some(place)) = (instruction, self.body.at(index)) else { return };
        let mut mark = match (&instruction.kind, self.own) {
            (InstKind::Call(call) | InstKind::Invoke { call, .. }, _) => {
                let Some((callee, shape)) = self.called(place, call) else { return };
                self.builder.before(place);
                calls::mark(&self.builder, callee, shape)
            }
            (InstKind::Ret(_), Some((own, shape))) => {
                // SAFETY: the return is alive, and in a block.
                if unsafe { calls::ends_with_jump(self.llvm(), place) } {
                    return;
                }
                self.builder.before(place);
                calls::back_mark(&self.builder, own, shape)
            }
            _ => return,
        };
        self.builder.call(self.hooks.mark, &mut mark);
    }

    /// Callee and shape of a call that leaves a mark.
    fn called(&self, value: LLVMValueRef, call: &Call) -> Option<(LLVMValueRef, u64)> {
        let shape = ir::calls::shape_of_call(self.target.module, self.target.function, call)?;
        // SAFETY: the call is alive.
        Some((unsafe { self.llvm().LLVMGetCalledValue(value) }, shape))
    }

    /// The gate of an instruction. What is logged between it and the instruction before has its
    /// place already.
    fn gate(&self, index: usize) {
        let site = self.sites.get(&InstId(index as u32));
        if let (Some(&site), Some(instruction)) = (site, self.body.at(index)) {
            self.room.forget();
            self.builder.before(instruction);
            self.builder.call(self.hooks.gate, &mut [self.builder.i64(site)]);
        }
    }

    /// What an instruction logs after itself.
    fn after_instruction(
        &self,
        index: usize,
        entry: bool,
        kept: &Kept<'_>,
        open: &mut Option<Open>,
    ) -> Result<(), InstrumentError> {
        let id = InstId(index as u32);
        let ir = &self.target.function.instructions[index];
        let Some(value) = self.body.at(index) else { return Ok(()) };
        if let InstKind::Call(call) = &ir.kind {
            self.after_call(id, value, call, ir.ty)?;
        }
        if self.plan.readings.contains(&id) {
            self.builder.before(self.anchor(index + 1, entry)?);
            let updates = self.plan.repeats.values().any(|it| it.updates.contains(&id));
            self.builder.call(self.hooks.reading, &mut []);
            if updates {
                self.note_change(&ir.kind, value);
            }
        }
        if self.plan.values.contains(&id) {
            self.builder.before(self.anchor(index + 1, entry)?);
            if kept.is_guessed(id) {
                let ty = (self.target.module, ir.ty);
                let number = open.map(|open| open.number);
                let after = kept.guess(&self.builder, self.hooks, ty, (id, value), number);
                let number = after.ok_or_else(|| self.target.mismatch("the guessed loads"))?;
                let bits = open.map_or(0, |open| open.bits) + 1;
                *open = Some(Open { number, bits, unsaved: true });
            } else {
                self.log(ir.ty, value)?;
                kept.keep(&self.builder, id, value);
            }
        } else if matches!(ir.kind, InstKind::Store { .. }) {
            self.builder.before(self.anchor(index + 1, entry)?);
            // SAFETY: a store's first operand is what is stored.
            kept.keep(&self.builder, id, unsafe { self.llvm().LLVMGetOperand(value, 0) });
        }
        Ok(())
    }

    /// Notes whether an atomic update changed memory.
    fn note_change(&self, kind: &InstKind, value: LLVMValueRef) {
        let builder = &self.builder;
        let changed = match kind {
            InstKind::CmpXchg { .. } => builder.field(value, 1),
            InstKind::AtomicRmw { op, .. } => {
                // SAFETY: the second operand is what is stored, or what it is computed from.
                let operand = unsafe { self.llvm().LLVMGetOperand(value, 1) };
                let after = match op {
                    RmwOp::And => builder.and(value, operand),
                    RmwOp::Or => builder.or(value, operand),
                    _ => operand,
                };
                builder.compare(LLVMIntPredicate::LLVMIntNE, value, after)
            }
            _ => return,
        };
        builder.call(self.hooks.changed, &mut [changed]);
    }

    fn after_call(
        &self,
        id: InstId,
        value: LLVMValueRef,
        call: &Call,
        ty: TypeId,
    ) -> Result<(), InstrumentError> {
        // SAFETY: the call is alive. Nothing may stand between a `musttail` call and its return.
        let (va_start, tail) = unsafe {
            let must = LLVMTailCallKind::LLVMTailCallKindMustTail as i32;
            let plain_call = has_opcode(self.llvm(), value, LLVMOpcode::LLVMCall);
            (
                writes::is_va_start(self.llvm(), value),
                plain_call && self.llvm().LLVMGetTailCallKind(value) == must,
            )
        };
        let returns = self.plan.returns.contains(&id);
        if tail || !(va_start || returns) {
            return Ok(());
        }
        self.builder.before(self.anchor(id.index() + 1, false)?);
        if va_start {
            self.returning(value, call, None).report_va_start();
        } else {
            self.returned(id, value, ty)?;
        }
        Ok(())
    }

    fn returning<'b>(
        &'b self,
        value: LLVMValueRef,
        call: &'b Call,
        back: Option<LLVMValueRef>,
    ) -> Returned<'b> {
        let copied = call.byval.iter().map(Option::is_some).collect();
        let (module, hooks, builder) = (self.module, self.hooks, &self.builder);
        Returned { module, hooks, builder, call: value, copied, back }
    }

    /// The effects of a call on memory, its `RETURN` entry, and its result.
    fn returned(&self, id: InstId, value: LLVMValueRef, ty: TypeId) -> Result<(), InstrumentError> {
        self.room.forget();
        let mut back = None;
        if let Some(call) = self.target.call(id) {
            back = self.called(value, call).map(|(callee, shape)| {
                let mut mark = calls::back_mark(&self.builder, callee, shape);
                self.builder.call(self.hooks.is_marked, &mut mark)
            });
            let returning = self.returning(value, call, back);
            match &call.callee {
                Callee::Asm(text, constraints) => {
                    returning.report_assembly(&Assembly::parse(text, constraints));
                }
                Callee::Direct(_) | Callee::Indirect(_) => returning.report(),
            }
        }
        let token = self.builder.i8(token::RETURN);
        let Some(back) = back else {
            self.builder.call(self.hooks.path, &mut [token]);
            return self.log(ty, value);
        };
        let (source, values) = (self.target.module, vec![(ty, value)]);
        let values = if ir::plan::logged_bytes(source, ty) > 0 { values } else { Vec::new() };
        let written = calls::returned(self.module, &self.builder, self.hooks, back, source, values);
        self.check_bytes(written, [ty])
    }

    /// `ENTER` and the arguments.
    fn enter(&self) -> Result<(), InstrumentError> {
        self.program_arguments();
        let base = self.builder.load_i32(self.hooks.base);
        let number = self.builder.add(base, self.builder.i32(self.target.index as u32));
        let parameters = (0..).zip(&self.target.function.params).map(|(index, parameter)| {
            // SAFETY: the function is alive and has the parameters that the executor sees.
            (parameter.ty, unsafe { self.llvm().LLVMGetParam(self.target.value, index) })
        });
        if let Some((own, shape)) = self.own {
            let mark = calls::mark(&self.builder, own, shape);
            let parameters: Vec<(TypeId, LLVMValueRef)> = parameters.collect();
            let types: Vec<TypeId> = parameters.iter().map(|&(ty, _)| ty).collect();
            let (hooks, source) = (self.hooks, self.target.module);
            let first = (mark, number);
            let written =
                calls::enter(self.module, &self.builder, hooks, first, source, parameters);
            return self.check_bytes(written, types);
        }
        let token = self.builder.i8(token::ENTER);
        self.builder.call(self.hooks.path_number, &mut [token, number]);
        parameters.into_iter().try_for_each(|(ty, value)| self.log(ty, value))
    }

    /// Checks that the executor will read as many bytes as were written of values of these types.
    fn check_bytes(
        &self,
        written: usize,
        types: impl IntoIterator<Item = TypeId>,
    ) -> Result<(), InstrumentError> {
        let source = self.target.module;
        let expected = types.into_iter().map(|ty| ir::plan::logged_bytes(source, ty));
        if written == expected.sum::<usize>() {
            Ok(())
        } else {
            Err(self.target.mismatch("the bytes of values"))
        }
    }

    /// Reports the arguments of `main`, before its entry: as what the caller did. A `main` that the
    /// module itself calls is not only the program's.
    fn program_arguments(&self) {
        let function = self.target.function;
        let [count, arguments, ..] = function.params.as_slice() else { return };
        let types = (self.target.module.ty(count.ty), self.target.module.ty(arguments.ty));
        // SAFETY: the function is alive.
        let used = unsafe { !self.llvm().LLVMGetFirstUse(self.target.value).is_null() };
        if function.name != "main" || types != (&Type::Int(32), &Type::Pointer) || used {
            return;
        }
        // SAFETY: the function has two parameters.
        let (count, arguments) = unsafe {
            let function = self.target.value;
            (self.llvm().LLVMGetParam(function, 0), self.llvm().LLVMGetParam(function, 1))
        };
        self.builder.call(self.hooks.arguments, &mut [count, arguments]);
    }

    /// Logs a value, and checks that the executor will read as many bytes.
    fn log(&self, ty: TypeId, value: LLVMValueRef) -> Result<(), InstrumentError> {
        let module = self.target.module;
        let written = words::log(&self.builder, self.hooks, &self.room, module, ty, value);
        if written == ir::plan::logged_bytes(module, ty) {
            Ok(())
        } else {
            Err(self.target.mismatch("the bytes of a value"))
        }
    }
}

/// Does an instruction work on registers alone, and cannot fail?
fn is_quiet(kind: &InstKind) -> bool {
    use ir::types::{BinaryOp as Op, CastOp};
    match kind {
        InstKind::Binary(op, ..) => matches!(
            op,
            Op::Add
                | Op::Sub
                | Op::Mul
                | Op::Shl
                | Op::LShr
                | Op::AShr
                | Op::And
                | Op::Or
                | Op::Xor
        ),
        InstKind::Cast(op, _) => matches!(
            op,
            CastOp::Trunc
                | CastOp::ZExt
                | CastOp::SExt
                | CastOp::PtrToInt
                | CastOp::IntToPtr
                | CastOp::BitCast
        ),
        InstKind::ICmp(..)
        | InstKind::Select(..)
        | InstKind::Phi(_)
        | InstKind::Gep { .. }
        | InstKind::Freeze(_) => true,
        _ => false,
    }
}
