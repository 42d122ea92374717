//! Control flow inside functions, function entry and return, and unwinding.

use crate::access::{Grain, Place};
use crate::continued::NO_BRANCH;
use crate::engine::{Engine, operand_value};
use crate::failure::Found;
use crate::image::FunctionInfo;
use crate::report::GapKind;
use crate::thread::{BranchRecord, CodeFrame, Entry, Frame, Guess, Stop, contradiction};
use crate::value::{self, Scalar, Value};
use ir::calls::is_left_out;
use ir::regions;
use ir::types::{BlockId, ConstId, InstId, InstKind, Instruction, Operand};
use model::{CmpOp, ExprPool, PathConditionKind};
use smallvec::SmallVec;
use trace_format::layout::RuntimeEvent;

/// Which of a function's arguments its entry has in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Logged {
    /// `ENTER`.
    All,
    /// `CALLED`: those that are not the caller's ([`is_left_out`]).
    Some,
    /// No entry.
    None,
}

impl<'r> Engine<'r> {
    /// The next path entry of instrumented code; what the runtime saw before it is handled first.
    pub fn next_entry(&mut self, t: usize) -> Result<Entry, Stop> {
        loop {
            match self.threads[t].peek()? {
                None => return Err(Stop::EndOfLog),
                Some(Entry::Runtime(event)) => self.runtime(t, event)?,
                Some(entry) => return Ok(entry),
            }
        }
    }

    /// Goes on at the start of a block: consumes its entry if it is recorded, then does its phis.
    pub fn enter_block(&mut self, t: usize, target: BlockId) -> Result<(), Stop> {
        let Some((info, _)) = self.current(t) else { return contradiction("no function") };
        let recorded = info.plan.blocks.get(target.index()).copied().unwrap_or(false);
        if recorded && !self.in_tail(t) && self.forbidden_block(t, &[target]).is_none() {
            match self.next_entry(t)? {
                Entry::Block(block) if block == target.0 => self.threads[t].advance(),
                entry => {
                    let name = &info.function.name;
                    return contradiction(format!("{entry:?} where {name} enters {target}"));
                }
            }
        }
        let Some(block) = info.function.blocks.get(target.index()) else {
            return contradiction(format!("{} has no {target}", info.function.name));
        };
        let phis = self.phis(t, info, target);
        if !phis.is_empty() {
            self.note_known_phis(t, info, target);
        }
        let thread = &mut self.threads[t];
        let Some(frame) = thread.code_mut() else { return contradiction("no function") };
        let from = frame.block;
        frame.branched = frame.branched.min(info.branch_level(from));
        if let Some(history) = &mut frame.history {
            history.entered_from.insert(target, from);
        }
        frame.block = target;
        frame.next = InstId(block.first.0 + phis.len() as u32);
        for (offset, value) in phis.into_iter().enumerate() {
            if let Some(register) = frame.registers.get_mut(block.first.index() + offset) {
                *register = value;
            }
        }
        if recorded {
            thread.leave_region();
        }
        self.pass_round(t, info, target)?;
        self.arrive(t, info, from, target);
        self.end_in_loop(t, info, from, target)?;
        self.check_region(t, info, target)?;
        if let Some(frame) = self.threads[t].code_mut() {
            frame.region_ended = false;
        }
        self.note_block(t, info, target);
        Ok(())
    }

    /// A region that has got long ends at the start of a block, and there a signal handler may run.
    fn check_region(
        &mut self,
        t: usize,
        info: &'r FunctionInfo<'r>,
        block: BlockId,
    ) -> Result<(), Stop> {
        let Some(&Some(bits)) = info.plan.regions.checks.get(block.index()) else { return Ok(()) };
        if !self.threads[t].fills_region(bits) {
            return Ok(());
        }
        self.end_region(t)?;
        self.handle_late_signals(t, 0)
    }

    /// A region ends before an instruction. Only where it may have made choices it has a token, which is empty
    /// where it made none.
    pub(crate) fn region_ends(&mut self, t: usize, info: &'r FunctionInfo<'r>) -> Result<(), Stop> {
        let thread = &mut self.threads[t];
        let Some(frame) = thread.code_mut() else { return Ok(()) };
        let block = frame.block.index();
        let first = !std::mem::replace(&mut frame.region_ended, true);
        let at = |list: &[bool]| list.get(block) == Some(&true);
        let filled = first && at(&info.plan.regions.filled) && !at(&info.plan.blocks);
        let chosen = thread.choices.made > 0;
        self.end_region(t)?;
        let empty = match (chosen, filled) {
            (true, _) => 0,
            (false, true) => {
                self.threads[t].empty_regions += 1;
                self.threads[t].empty_regions
            }
            (false, false) => return Ok(()),
        };
        self.handle_late_signals(t, empty)
    }

    /// A region ends. When it has made choices, the runtime may have read the clock behind them; what
    /// stands in the log where none were made was read later.
    fn end_region(&mut self, t: usize) -> Result<(), Stop> {
        let chosen = self.threads[t].choices.made > 0;
        self.threads[t].end_region();
        self.read_behind_region(t, chosen)
    }

    fn read_behind_region(&mut self, t: usize, chosen: bool) -> Result<(), Stop> {
        match self.threads[t].peek()? {
            Some(Entry::Runtime(RuntimeEvent::Reading)) if chosen => {
                self.runtime(t, RuntimeEvent::Reading)
            }
            _ => Ok(()),
        }
    }

    /// What the runtime may have had to say behind a region that had choices, and ended at the start of a block.
    pub(crate) fn behind_region(&mut self, t: usize) -> Result<(), Stop> {
        self.read_behind_region(t, true)?;
        self.handle_late_signals(t, 0)
    }

    /// The values of a block's phis; all are read before any is written.
    fn phis(
        &mut self,
        t: usize,
        info: &'r FunctionInfo<'r>,
        target: BlockId,
    ) -> SmallVec<[Value; 4]> {
        let thread = &self.threads[t];
        let mut values = SmallVec::new();
        let (Some(frame), Some(block)) = (thread.code(), info.function.blocks.get(target.index()))
        else {
            return values;
        };
        let from = frame.block;
        for id in block.instructions() {
            let Some(instruction) = info.function.instructions.get(id.index()) else { break };
            let InstKind::Phi(incoming) = &instruction.kind else { break };
            let value = incoming.iter().find(|(block, _)| *block == from).map(|&(_, operand)| {
                operand_value(thread, frame, self.image, &mut self.constants, operand)
            });
            values.push(value.unwrap_or_default());
        }
        values
    }

    /// By when the thread had the values of a block's phis.
    fn note_known_phis(&mut self, t: usize, info: &'r FunctionInfo<'r>, target: BlockId) {
        let Some(frame) = self.threads[t].code() else { return };
        let Some(block) = info.function.blocks.get(target.index()) else { return };
        let from = frame.block;
        let incoming = |id: InstId| match &info.function.instructions.get(id.index())?.kind {
            InstKind::Phi(incoming) => {
                let came = incoming.iter().find(|(block, _)| *block == from);
                Some(came.map_or(Operand::Other, |&(_, operand)| operand))
            }
            _ => None,
        };
        let known = self.known_phis(t, block.instructions().map_while(incoming));
        for (id, known) in block.instructions().zip(known) {
            self.set_known(t, id, known);
        }
    }

    /// A conditional branch, switch or indirect branch: the path says where it went.
    pub fn branch(&mut self, t: usize, id: InstId, inst: &'r Instruction) -> Result<(), Stop> {
        let Some((info, _)) = self.current(t) else { return contradiction("no function") };
        // Nearly all branches, without lists of where they go.
        if let InstKind::CondBr(_, then, otherwise) = inst.kind
            && then != otherwise
            && !self.threads[t].exhausted()
            && self.next_entry(t)? == Entry::Choice
        {
            let way = self.threads[t].choose(1)?;
            let target = if way == 0 { then } else { otherwise };
            self.check_panicking(t, target)?;
            let condition = self.branch_condition(t, info, inst, target);
            self.take_branch(t, condition);
            return self.enter_block(t, target);
        }
        let successors = inst.kind.successors();
        let target = match successors.first() {
            Some(&only)
                if !matches!(inst.kind, InstKind::IndirectBr(..))
                    && successors.iter().all(|&block| block == only) =>
            {
                only
            }
            _ if self.in_tail(t) => self.certain_successor(t, inst)?,
            _ if let Some(block) = self.forbidden_block(t, &successors) => block,
            _ => match self.next_entry(t)? {
                Entry::Block(block) if successors.contains(&BlockId(block)) => {
                    // In the place of a choice the entry is no block's own.
                    if regions::choice(&inst.kind).is_some() {
                        self.threads[t].advance();
                    }
                    BlockId(block)
                }
                Entry::Choice if let Some(choice) = regions::choice(&inst.kind) => {
                    let way = self.threads[t].choose(choice.bits)?;
                    match choice.targets.get(way as usize) {
                        Some(&target) => target,
                        None => return contradiction(format!("{id} has no way {way}")),
                    }
                }
                entry => {
                    let name = &info.function.name;
                    return contradiction(format!("{entry:?} where {name} {id} branches"));
                }
            },
        };
        let several = successors.iter().any(|&block| block != target);
        if several {
            self.check_panicking(t, target)?;
            let condition = self.branch_condition(t, info, inst, target);
            self.take_branch(t, condition);
        }
        self.enter_block(t, target)
    }

    /// What must be true for the branch to go where it went; `None` when unknown.
    fn branch_condition(
        &mut self,
        t: usize,
        info: &'r FunctionInfo<'r>,
        inst: &'r Instruction,
        target: BlockId,
    ) -> Option<Scalar> {
        match &inst.kind {
            InstKind::CondBr(condition, then, _) => {
                let condition = self.scalar(t, *condition)?;
                Some(match *then == target {
                    true => condition,
                    false => value::not(&mut self.pool, condition),
                })
            }
            InstKind::Switch(operand, default, cases) => {
                let operand = self.scalar(t, *operand)?;
                Some(self.switch_condition(info.module, operand, *default, cases, target))
            }
            InstKind::IndirectBr(operand, _) => {
                let operand = self.scalar(t, *operand)?;
                let block = crate::image::Image::block_address(info.module, info.id, target.0);
                if operand.as_const().is_some() {
                    // Block addresses are not recorded, so a logged one cannot be compared.
                    return None;
                }
                let block = Scalar::constant(operand.width, u128::from(block));
                Some(value::cmp(&mut self.pool, CmpOp::Eq, operand, block))
            }
            _ => None,
        }
    }

    fn switch_condition(
        &mut self,
        module: usize,
        operand: Scalar,
        default: BlockId,
        cases: &[(ConstId, BlockId)],
        target: BlockId,
    ) -> Scalar {
        // To the default: none of the cases that lead elsewhere. To another block: one of its own.
        let to_default = target == default;
        // Most operands are constants, and switches may have hundreds of cases.
        if let Some(word) = operand.as_const() {
            let hit = |&&(case, _): &&(ConstId, BlockId)| {
                let constant = self.image.constant_value(&mut ExprPool::default(), module, case);
                constant.scalar().and_then(Scalar::as_const) == Some(word)
            };
            let taken = cases.iter().find(hit).map_or(default, |&(_, block)| block);
            return Scalar::boolean(taken == target);
        }
        let mut any = Scalar::boolean(false);
        for &(case, block) in cases {
            if (block == target) == to_default {
                continue;
            }
            let constant = self.image.constant_value(&mut ExprPool::default(), module, case);
            let Some(constant) = constant.scalar() else { continue };
            let hit = value::cmp(&mut self.pool, CmpOp::Eq, operand, constant);
            any = value::or(&mut self.pool, any, hit);
        }
        if to_default { value::not(&mut self.pool, any) } else { any }
    }

    /// Adds the condition of a branch that went as recorded, and remembers it for φbug.
    pub fn take_branch(&mut self, t: usize, condition: Option<Scalar>) {
        let (expr, path_condition) = match condition.map(|c| (c.as_const(), c.as_expr())) {
            Some((Some(0), _)) => {
                self.gap(t, GapKind::WrongBranch, String::new());
                (None, None)
            }
            Some((_, Some(expr))) => {
                let site = self.site(t);
                let number = self.add_condition(t, expr, PathConditionKind::Branch, site);
                self.note_branch(t, number);
                (Some(expr), number)
            }
            _ => (None, None),
        };
        let thread = &mut self.threads[t];
        thread.branch_sequence += 1;
        let sequence = thread.branch_sequence;
        if let Some(frame) = thread.code_mut()
            && let Some(history) = &mut frame.history
        {
            let record = BranchRecord { sequence, condition: expr, path_condition };
            history.branches.insert(frame.block, record);
            if let Some(condition) = expr {
                thread.last_branch = Some(Found { condition, path_condition });
            }
        }
    }

    /// Notes of which branch a new path condition is.
    fn note_branch(&mut self, t: usize, number: Option<usize>) {
        let branch = self.threads[t].code().map(|frame| (frame.serial, frame.block));
        let condition = number.and_then(|number| self.out.threads[t].condition_mut(number));
        if let Some(condition) = condition {
            condition.branch = branch;
        }
    }

    /// Adds a path condition unless the thread has it already; gives its index when it is new.
    pub fn add_condition(
        &mut self,
        t: usize,
        expr: model::ExprId,
        kind: PathConditionKind,
        site: model::Site,
    ) -> Option<usize> {
        if !self.symbolic() || !self.threads[t].conditioned.insert(expr) {
            return None;
        }
        self.idle.note_conditioned(expr);
        // A branch that disagrees with what the log says of the values that it tests.
        if self.recorded_value(expr) == Some(0) {
            self.gap(t, GapKind::WrongBranch, "by recorded values".to_owned());
            return None;
        }
        Some(self.out.condition(t, expr, kind, site))
    }

    /// Enters a function with the caller's arguments; those that the log has are checked.
    pub fn push_function(
        &mut self,
        t: usize,
        info: &'r FunctionInfo<'r>,
        arguments: Vec<Value>,
        logged: Logged,
    ) -> Result<(), Stop> {
        let module = self.image.module(info.module);
        let mut arguments = arguments;
        // What is passed beyond the parameters is read through `va_list`, which the log fills.
        arguments.truncate(info.function.params.len());
        for (index, param) in info.function.params.iter().enumerate() {
            let computed = arguments.get(index).cloned().unwrap_or_default();
            let left_out = match logged {
                Logged::All => false,
                Logged::Some => is_left_out(module, param.ty),
                Logged::None => true,
            };
            let logged = match left_out {
                false => Some(self.take_value_of(t, module, param.ty)?),
                true => None,
            };
            let value = match param.byval {
                Some(size) => self.copy_argument(t, size, &computed, logged),
                None => match logged {
                    Some(logged) => self.merge(t, &computed, &logged, "argument"),
                    None => computed,
                },
            };
            match arguments.get_mut(index) {
                Some(slot) => *slot = value,
                None => arguments.push(value),
            }
        }
        self.check_report(t, &info.function.name, &arguments)?;
        let keep_history = self.symbolic() && self.failing == Some(t);
        let history = keep_history.then(Box::default);
        let known = self.known_arguments(t);
        let thread = &mut self.threads[t];
        thread.frame_serial += 1;
        let first = info.function.blocks.first().map_or(InstId(0), |block| block.first);
        let frame = CodeFrame {
            info,
            module,
            registers: vec![Value::Absent; info.function.instructions.len()],
            arguments,
            block: BlockId(0),
            next: first,
            private_base: thread.private_next,
            history,
            known,
            open: None,
            region_ended: false,
            serial: thread.frame_serial,
            kept: vec![Some(0); info.plan.guesses.places.len()],
            guess: Guess::Logged,
            round: None,
            branched: NO_BRANCH,
        };
        thread.frames.push(Frame::Code(Box::new(frame)));
        self.note_block(t, info, BlockId(0));
        Ok(())
    }

    fn note_block(&mut self, t: usize, info: &FunctionInfo<'_>, block: BlockId) {
        self.idle.step((info.module, info.id.0, block.0));
        let report = &mut self.threads[t].report;
        report.blocks += 1;
        if self.options.keep_path {
            let base = self.recording.modules.get(info.module).map_or(0, |m| m.base);
            report.path.push((base + info.id.0, block.0));
        }
    }

    /// The callee's own copy of a `byval` argument.
    fn copy_argument(
        &mut self,
        t: usize,
        size: u64,
        computed: &Value,
        logged: Option<Value>,
    ) -> Value {
        let copy = match logged.as_ref().and_then(Value::scalar).and_then(Scalar::as_const) {
            Some(address) => {
                self.extend_stack(t, address as u64, size);
                address as u64
            }
            None => self.threads[t].private(size),
        };
        let source = computed.scalar().and_then(|pointer| self.address(t, Some(pointer)));
        if let (Some(source), Some(target)) = (source, self.resolve(t, copy))
            && source != target
        {
            self.begin_own(target, size);
            let bytes = self.read(t, Place::new(source, size, None), Grain::Cell);
            let stored = self.stored_by(t, source, size);
            self.write(t, Place::new(target, size, None), &bytes, Grain::Cell);
            self.note_copied(t, target, stored);
        }
        Value::constant(64, u128::from(copy))
    }

    pub fn ret(&mut self, t: usize, operand: Option<Operand>) -> Result<(), Stop> {
        let value = operand.map_or(Value::Absent, |operand| self.operand(t, operand));
        self.check_exit_by_return(t, operand, &value)?;
        let known = operand.and_then(|operand| self.known(t, operand));
        self.pop_returned(t);
        // What a callback gives back is not what the call gives that it was passed to.
        let direct = matches!(self.threads[t].frames.last(), Some(Frame::Code(_)));
        self.threads[t].known_result = known.filter(|_| direct);
        match self.threads[t].frames.last() {
            Some(Frame::Code(_)) => self.finish(t, value),
            Some(Frame::External(_)) => {
                if let Some(call) = self.threads[t].external_call()
                    && call.walked
                    && call.walked_result.is_none()
                {
                    call.walked_result = Some(value);
                }
                Ok(())
            }
            None => contradiction("return without a caller"),
        }
    }

    /// Leaves the top frame, which stays known to its caller when that may have to be searched
    /// for what led to the failure.
    fn pop_returned(&mut self, t: usize) {
        self.end_locals(t);
        let thread = &mut self.threads[t];
        let Some(Frame::Code(frame)) = thread.frames.pop() else { return };
        thread.private_next = frame.private_base;
        match thread.code_mut() {
            Some(caller) => {
                let call = caller.next;
                if let Some(history) = &mut caller.history {
                    history.returned.insert(call, frame);
                }
            }
            None => thread.left = Some(frame),
        }
    }

    /// Leaves the top frame; its private stack objects die.
    pub fn pop_code(&mut self, t: usize) {
        self.end_locals(t);
        let thread = &mut self.threads[t];
        if let Some(Frame::Code(frame)) = thread.frames.pop() {
            thread.private_next = frame.private_base;
        }
    }

    /// An exception passes: the next entry is the block of the landing pad where it arrives, in
    /// the innermost frame that is in an invoke with this landing pad.
    pub fn unwind(&mut self, t: usize, from_resume: bool) -> Result<(), Stop> {
        self.idle.effect();
        let entry = self.next_entry(t)?;
        let Entry::Block(block) = entry else {
            return contradiction(format!("{entry:?} while an exception is thrown"));
        };
        if !from_resume {
            self.note_throw(t);
        }
        let top = self.threads[t].frames.len();
        // `resume` leaves its own function.
        let top = if from_resume { top.saturating_sub(1) } else { top };
        for depth in (0..top).rev() {
            let Some(Frame::Code(frame)) = self.threads[t].frames.get(depth) else { continue };
            let instruction = frame.info.function.instructions.get(frame.next.index());
            let Some(InstKind::Invoke { unwind, .. }) = instruction.map(|inst| &inst.kind) else {
                continue;
            };
            if unwind.0 != block {
                continue;
            }
            let unwind = *unwind;
            while self.threads[t].frames.len() > depth + 1 {
                match self.threads[t].frames.last() {
                    Some(Frame::Code(_)) => self.pop_code(t),
                    _ => {
                        self.threads[t].frames.pop();
                    }
                }
            }
            self.left_by_exception(t);
            // What led to the throw decided, and that is not known any more.
            if let Some(frame) = self.threads[t].code_mut()
                && let Some(history) = &mut frame.history
            {
                history.branches.remove(&frame.block);
            }
            return self.enter_block(t, unwind);
        }
        contradiction(format!("no invoke unwinds to block {block}"))
    }

    pub fn unreachable(&mut self, t: usize) -> Result<(), Stop> {
        if self.threads[t].exhausted() {
            return Err(Stop::EndOfLog);
        }
        contradiction("unreachable instruction")
    }
}
