//! Which stack objects other code can never reach.

use crate::intrinsics::{self, Intrinsic};
use crate::types::{CastOp, Function, InstId, InstKind, Module, Operand};

/// What is known of the stack objects of a function.
#[derive(Clone, Debug)]
pub struct StackObjects {
    /// Per instruction: the `alloca` that its result points into, by constant or variable offsets.
    roots: Vec<Option<InstId>>,
    /// Per instruction: facts, when it is an `alloca`.
    facts: Vec<Facts>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Facts {
    alloca: bool,
    escapes: bool,
    addressed: bool,
    copied_into: bool,
}

impl StackObjects {
    /// Looks at a function.
    #[must_use]
    pub fn of(module: &Module, function: &Function) -> Self {
        let count = function.instructions.len();
        let mut objects = Self { roots: vec![None; count], facts: vec![Facts::default(); count] };
        for (instruction, id) in function.instructions.iter().zip((0..).map(InstId)) {
            objects.facts[id.index()].alloca = matches!(instruction.kind, InstKind::Alloca { .. });
            objects.roots[id.index()] = root(function, id);
        }
        for instruction in &function.instructions {
            objects.uses(module, &instruction.kind);
        }
        objects.spread_copies(module, function);
        objects
    }

    /// The `alloca` that an address lies in for certain, whether or not it escapes.
    #[must_use]
    pub fn root(&self, address: Operand) -> Option<InstId> {
        match address {
            Operand::Inst(id) => self.roots.get(id.index()).copied().flatten(),
            _ => None,
        }
    }

    /// The non-escaping `alloca` that an address lies in for certain.
    #[must_use]
    pub fn private_root(&self, address: Operand) -> Option<InstId> {
        self.root(address).filter(|alloca| !self.escapes(*alloca))
    }

    /// May the address of this `alloca` reach code or memory outside of the function? It does not
    /// when it only feeds loads, stores to it, atomic operations on it, address computations with
    /// the same property, annotations, and `memset`/`memcpy`/`memmove`.
    #[must_use]
    pub fn escapes(&self, alloca: InstId) -> bool {
        self.facts.get(alloca.index()).is_none_or(|facts| facts.escapes || !facts.alloca)
    }

    /// Is the `alloca` accessed with a variable index, or by `memcpy` or `memmove`?
    #[must_use]
    pub fn addressed(&self, alloca: InstId) -> bool {
        self.facts.get(alloca.index()).is_some_and(|facts| facts.addressed)
    }

    /// May the `alloca` hold bytes that `memcpy` or `memmove` brought from elsewhere?
    #[must_use]
    pub fn copied_into(&self, alloca: InstId) -> bool {
        self.facts.get(alloca.index()).is_some_and(|facts| facts.copied_into)
    }

    fn mark(&mut self, address: Operand, change: fn(&mut Facts)) {
        if let Some(facts) = self.root(address).and_then(|a| self.facts.get_mut(a.index())) {
            change(facts);
        }
    }

    fn uses(&mut self, module: &Module, kind: &InstKind) {
        let mut leak = |operand| self.mark(operand, |facts| facts.escapes = true);
        match kind {
            InstKind::Load { .. } | InstKind::Cast(CastOp::BitCast | CastOp::AddrSpaceCast, _) => {}
            InstKind::Store { value, .. } | InstKind::AtomicRmw { value, .. } => leak(*value),
            InstKind::CmpXchg { expected, new, .. } => {
                leak(*expected);
                leak(*new);
            }
            InstKind::Gep { base, terms, .. } => {
                terms.iter().for_each(|term| leak(term.index));
                if !terms.is_empty() {
                    self.mark(*base, |facts| facts.addressed = true);
                }
            }
            InstKind::Call(call) => match intrinsics::called(module, call) {
                Some(Intrinsic::Annotation | Intrinsic::Fill) => {}
                Some(Intrinsic::Copy) => {
                    for &end in call.args.iter().take(2) {
                        self.mark(end, |facts| facts.addressed = true);
                    }
                }
                _ => call.for_each_operand(&mut leak),
            },
            _ => kind.for_each_operand(&mut leak),
        }
    }

    /// What is copied out of an object that was copied into is from elsewhere, too.
    fn spread_copies(&mut self, module: &Module, function: &Function) {
        let copies: Vec<(Operand, Operand)> = function
            .instructions
            .iter()
            .filter_map(|instruction| copy_ends(module, &instruction.kind))
            .collect();
        let mut changed = true;
        while changed {
            changed = false;
            for &(to, from) in &copies {
                let Some(target) = self.root(to).filter(|target| !self.copied_into(*target)) else {
                    continue;
                };
                if self.private_root(from).is_none_or(|source| self.copied_into(source)) {
                    self.facts[target.index()].copied_into = true;
                    changed = true;
                }
            }
        }
    }
}

/// Destination and source of a `memcpy` or `memmove`.
pub(crate) fn copy_ends(module: &Module, kind: &InstKind) -> Option<(Operand, Operand)> {
    let InstKind::Call(call) = kind else { return None };
    match (intrinsics::called(module, call), call.args.as_slice()) {
        (Some(Intrinsic::Copy), [to, from, ..]) => Some((*to, *from)),
        _ => None,
    }
}

fn root(function: &Function, id: InstId) -> Option<InstId> {
    let mut id = id;
    // An unreachable block may compute an address from itself.
    for _ in 0..function.instructions.len() {
        let inner = match &function.instructions.get(id.index())?.kind {
            InstKind::Alloca { .. } => return Some(id),
            InstKind::Gep { base, .. } => *base,
            InstKind::Cast(CastOp::BitCast | CastOp::AddrSpaceCast, value) => *value,
            _ => return None,
        };
        let Operand::Inst(next) = inner else { return None };
        id = next;
    }
    None
}
