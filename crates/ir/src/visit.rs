//! Walking over what instructions use and where control goes.

use crate::types::{BlockId, Call, Callee, Function, InstKind, Module, Operand};

impl InstKind {
    /// Calls `visit` with every operand, in order of appearance; blocks are none.
    pub fn for_each_operand(&self, visit: &mut dyn FnMut(Operand)) {
        match self {
            Self::Binary(_, a, b)
            | Self::ICmp(_, a, b)
            | Self::FCmp(_, a, b)
            | Self::InsertValue(a, b, _)
            | Self::ExtractElement(a, b)
            | Self::ShuffleVector(a, b, _)
            | Self::Store { value: a, address: b, .. }
            | Self::AtomicRmw { address: a, value: b, .. } => {
                visit(*a);
                visit(*b);
            }
            Self::FNeg(a)
            | Self::Cast(_, a)
            | Self::Alloca { count: a, .. }
            | Self::Load { address: a, .. }
            | Self::ExtractValue(a, _)
            | Self::VaArg(a)
            | Self::Freeze(a)
            | Self::Ret(Some(a))
            | Self::CondBr(a, ..)
            | Self::Switch(a, ..)
            | Self::IndirectBr(a, _)
            | Self::Resume(a) => visit(*a),
            Self::Select(a, b, c)
            | Self::InsertElement(a, b, c)
            | Self::CmpXchg { address: a, expected: b, new: c, .. } => {
                visit(*a);
                visit(*b);
                visit(*c);
            }
            Self::Phi(incoming) => incoming.iter().for_each(|(_, value)| visit(*value)),
            Self::Gep { base, terms, .. } => {
                visit(*base);
                terms.iter().for_each(|term| visit(term.index));
            }
            Self::Call(call) | Self::Invoke { call, .. } => call.for_each_operand(visit),
            Self::Other(_, operands) => operands.iter().for_each(|operand| visit(*operand)),
            Self::Fence(_)
            | Self::LandingPad
            | Self::Ret(None)
            | Self::Br(_)
            | Self::Unreachable => {}
        }
    }

    /// Where control goes after a terminator, in the order of the instruction, with repetitions.
    /// Empty also for a terminator that the reader does not know.
    #[must_use]
    pub fn successors(&self) -> Vec<BlockId> {
        match self {
            Self::Br(target) => vec![*target],
            Self::CondBr(_, then, otherwise) => vec![*then, *otherwise],
            Self::Switch(_, default, cases) => {
                std::iter::once(*default).chain(cases.iter().map(|(_, block)| *block)).collect()
            }
            Self::IndirectBr(_, targets) => targets.clone(),
            Self::Invoke { normal, unwind, .. } => vec![*normal, *unwind],
            _ => Vec::new(),
        }
    }

    /// Does it do nothing but compute its value from its operands?
    #[must_use]
    pub fn only_computes(&self) -> bool {
        matches!(
            self,
            Self::Binary(..)
                | Self::FNeg(_)
                | Self::Cast(..)
                | Self::ICmp(..)
                | Self::FCmp(..)
                | Self::Select(..)
                | Self::Gep { .. }
                | Self::ExtractValue(..)
                | Self::InsertValue(..)
                | Self::ExtractElement(..)
                | Self::InsertElement(..)
                | Self::ShuffleVector(..)
                | Self::Freeze(_)
        )
    }

    /// The call of a `call` or `invoke`.
    #[must_use]
    pub fn as_call(&self) -> Option<&Call> {
        match self {
            Self::Call(call) | Self::Invoke { call, .. } => Some(call),
            _ => None,
        }
    }

    /// The address that a load, store or atomic access goes to.
    #[must_use]
    pub fn address(&self) -> Option<Operand> {
        match self {
            Self::Load { address, .. }
            | Self::Store { address, .. }
            | Self::AtomicRmw { address, .. }
            | Self::CmpXchg { address, .. } => Some(*address),
            _ => None,
        }
    }
}

impl Call {
    /// Calls `visit` with the callee, when it is a pointer, and every argument.
    pub fn for_each_operand(&self, visit: &mut dyn FnMut(Operand)) {
        if let Callee::Indirect(target) = self.callee {
            visit(target);
        }
        self.args.iter().for_each(|argument| visit(*argument));
    }

    /// The function that is called directly.
    #[must_use]
    pub fn target<'m>(&self, module: &'m Module) -> Option<&'m Function> {
        match self.callee {
            Callee::Direct(function) => module.functions.get(function.index()),
            _ => None,
        }
    }
}
