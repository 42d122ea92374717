//! Which values may become part of an address: a fixpoint, backwards over the values of a function
//! and the contents of its non-escaping stack objects.

use crate::intrinsics::{self, Intrinsic};
use crate::stack::{StackObjects, copy_ends};
use crate::types::{CastOp, Function, InstId, InstKind, Module, Operand};

/// Per instruction: may its result become part of an address, leave the function, or be passed on?
#[must_use]
pub fn address_feeding(module: &Module, function: &Function, stack: &StackObjects) -> Vec<bool> {
    let count = function.instructions.len();
    let mut flow = Flow {
        module,
        function,
        stack,
        values: vec![false; count],
        contents: vec![false; count],
        writers: writers(module, function, stack),
        work: Vec::new(),
    };
    for instruction in &function.instructions {
        flow.sinks(&instruction.kind);
    }
    while let Some(id) = flow.work.pop() {
        flow.sources(id);
    }
    flow.values
}

struct Flow<'m> {
    module: &'m Module,
    function: &'m Function,
    stack: &'m StackObjects,
    /// The result feeds.
    values: Vec<bool>,
    /// By `alloca`: what it holds feeds.
    contents: Vec<bool>,
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
        if let Operand::Inst(id) = operand
            && let Some(value) = self.values.get_mut(id.index()).filter(|value| !**value)
        {
            *value = true;
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
        match &instruction.kind {
            InstKind::Load { address, .. }
            | InstKind::AtomicRmw { address, .. }
            | InstKind::CmpXchg { address, .. } => {
                if let Some(object) = self.stack.private_root(*address) {
                    self.mark_contents(object);
                }
            }
            InstKind::Call(call) => {
                if intrinsics::called(self.module, call) == Some(Intrinsic::Arithmetic) {
                    self.mark_all(&call.args);
                }
            }
            InstKind::Invoke { .. } => {}
            kind => kind.for_each_operand(&mut |operand| self.mark(operand)),
        }
    }

    fn mark_contents(&mut self, object: InstId) {
        let mut objects = vec![object];
        while let Some(object) = objects.pop() {
            match self.contents.get_mut(object.index()) {
                Some(contents) if !*contents => *contents = true,
                _ => continue,
            }
            let written = self.writers.get(object.index()).cloned().unwrap_or_default();
            for written in written {
                match written {
                    Written::Value(value) => self.mark(value),
                    Written::Contents(other) => objects.push(other),
                }
            }
        }
    }
}
