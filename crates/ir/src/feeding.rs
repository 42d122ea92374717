//! Which values may become part of an address: a fixpoint, backwards over the values of a function
//! and the contents of its non-escaping stack objects.

use crate::intrinsics::{self, Intrinsic};
use crate::stack::{StackObjects, copy_ends};
use crate::types::{CastOp, Function, InstId, InstKind, Module, Operand};

/// What feeds, per instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feeding {
    /// May its result become part of an address, leave the function, or be passed on?
    pub values: Vec<bool>,
    /// May an integer be made of it that does, or a comparison? Only of these instructions is a floating-point result
    /// needed: one that is passed on as it is, is logged where it comes.
    pub converted: Vec<bool>,
}

/// What may become part of an address, leave the function, or be passed on.
#[must_use]
pub fn address_feeding(module: &Module, function: &Function, stack: &StackObjects) -> Feeding {
    let count = function.instructions.len();
    let mut flow = Flow {
        module,
        function,
        stack,
        values: vec![false; count],
        converted: vec![false; count],
        contents: vec![Contents::default(); count],
        writers: writers(module, function, stack),
        work: Vec::new(),
    };
    for instruction in &function.instructions {
        flow.sinks(&instruction.kind);
    }
    while let Some(id) = flow.work.pop() {
        flow.sources(id);
    }
    Feeding { values: flow.values, converted: flow.converted }
}

/// Does what a stack object holds feed, and may it be floating-point numbers of which integers are made?
#[derive(Clone, Copy, Default)]
struct Contents {
    feed: bool,
    converted: bool,
}

struct Flow<'m> {
    module: &'m Module,
    function: &'m Function,
    stack: &'m StackObjects,
    /// The result feeds.
    values: Vec<bool>,
    /// It does by way of an integer that is made of a floating-point number.
    converted: Vec<bool>,
    /// By `alloca`: what it holds feeds.
    contents: Vec<Contents>,
    /// By `alloca`: what is written into it.
    writers: Vec<Vec<Written>>,
    work: Vec<InstId>,
}

/// Something written into a stack object.
#[derive(Clone, Copy)]
enum Written {
    Value(Operand),
    /// The contents of another stack object.
    Contents(InstId),
}

fn writers(module: &Module, function: &Function, stack: &StackObjects) -> Vec<Vec<Written>> {
    let mut writers = vec![Vec::new(); function.instructions.len()];
    let mut add = |to: Operand, written: Written| {
        if let Some(list) = stack.private_root(to).and_then(|a| writers.get_mut(a.index())) {
            list.push(written);
        }
    };
    for instruction in &function.instructions {
        match &instruction.kind {
            InstKind::Store { address, value, .. } | InstKind::AtomicRmw { address, value, .. } => {
                add(*address, Written::Value(*value));
            }
            InstKind::CmpXchg { address, expected, new, .. } => {
                add(*address, Written::Value(*expected));
                add(*address, Written::Value(*new));
            }
            InstKind::Call(call) if intrinsics::called(module, call) == Some(Intrinsic::Fill) => {
                if let [to, byte, ..] = call.args.as_slice() {
                    add(*to, Written::Value(*byte));
                }
            }
            kind => {
                if let Some((to, from)) = copy_ends(module, kind)
                    && let Some(source) = stack.private_root(from)
                {
                    add(to, Written::Contents(source));
                }
            }
        }
    }
    writers
}

impl Flow<'_> {
    fn mark(&mut self, operand: Operand) {
        self.mark_as(operand, false);
    }

    fn mark_as(&mut self, operand: Operand, converted: bool) {
        let Operand::Inst(id) = operand else { return };
        let (Some(value), Some(known)) =
            (self.values.get_mut(id.index()), self.converted.get_mut(id.index()))
        else {
            return;
        };
        if !*value || (converted && !*known) {
            *value = true;
            *known |= converted;
            self.work.push(id);
        }
    }

    fn mark_all(&mut self, operands: &[Operand]) {
        operands.iter().for_each(|&operand| self.mark(operand));
    }

    /// Marks what an instruction makes an address of, or passes out of sight.
    fn sinks(&mut self, kind: &InstKind) {
        if let Some(address) = kind.address() {
            self.mark(address);
        }
        match kind {
            InstKind::Gep { base, terms, .. } => {
                self.mark(*base);
                terms.iter().for_each(|term| self.mark(term.index));
            }
            InstKind::Cast(CastOp::IntToPtr, value)
            | InstKind::Alloca { count: value, .. }
            | InstKind::VaArg(value)
            | InstKind::IndirectBr(value, _)
            | InstKind::Ret(Some(value)) => self.mark(*value),
            InstKind::Call(call) | InstKind::Invoke { call, .. } => {
                let called = intrinsics::called(self.module, call);
                if !matches!(called, Some(Intrinsic::Arithmetic | Intrinsic::Annotation)) {
                    call.for_each_operand(&mut |operand| self.mark(operand));
                }
            }
            InstKind::Other(_, operands) => self.mark_all(operands),
            _ => {}
        }
    }

    /// Marks what the result of an instruction is made of.
    fn sources(&mut self, id: InstId) {
        let Some(instruction) = self.function.instructions.get(id.index()) else { return };
        let converted = self.converted.get(id.index()).copied().unwrap_or(false);
        match &instruction.kind {
            InstKind::Load { address, .. }
            | InstKind::AtomicRmw { address, .. }
            | InstKind::CmpXchg { address, .. } => {
                if let Some(object) = self.stack.private_root(*address) {
                    self.mark_contents(object, converted);
                }
            }
            InstKind::Call(call) => {
                if intrinsics::called(self.module, call) == Some(Intrinsic::Arithmetic) {
                    call.args.iter().for_each(|&argument| self.mark_as(argument, converted));
                }
            }
            InstKind::Invoke { .. } => {}
            InstKind::Cast(CastOp::FpToSi | CastOp::FpToUi | CastOp::BitCast, value) => {
                self.mark_as(*value, true);
            }
            InstKind::FCmp(_, one, other) => {
                self.mark_as(*one, true);
                self.mark_as(*other, true);
            }
            kind => kind.for_each_operand(&mut |operand| self.mark_as(operand, converted)),
        }
    }

    fn mark_contents(&mut self, object: InstId, converted: bool) {
        let mut objects = vec![object];
        while let Some(object) = objects.pop() {
            match self.contents.get_mut(object.index()) {
                Some(contents) if !contents.feed || (converted && !contents.converted) => {
                    contents.feed = true;
                    contents.converted |= converted;
                }
                _ => continue,
            }
            let written = self.writers.get(object.index()).cloned().unwrap_or_default();
            for written in written {
                match written {
                    Written::Value(value) => self.mark_as(value, converted),
                    Written::Contents(other) => objects.push(other),
                }
            }
        }
    }
}
