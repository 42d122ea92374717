//! Loads from memory that an uninstrumented function handed out: the text of `strerror`, the table
//! of `__ctype_b_loc`, the value of `getenv`. What such memory holds, only the log can tell.

use crate::types::{Callee, CastOp, Function, InstKind, Module, Operand};
use std::collections::BTreeMap;

/// How many steps back from an address are followed.
const LONGEST: usize = 16;

/// Functions whose result is fresh memory: what it holds comes from the program itself.
const ALLOCATING: &[&str] = &[
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "aligned_alloc",
    "memalign",
    "valloc",
    "pvalloc",
    "_Znwm",
    "_Znam",
    "_ZnwmSt11align_val_t",
    "_ZnamSt11align_val_t",
    "_ZnwmRKSt9nothrow_t",
    "_ZnamRKSt9nothrow_t",
    "__cxa_allocate_exception",
];

/// The addresses in one function that lead to results of uninstrumented functions.
pub struct Foreign<'m> {
    module: &'m Module,
    function: &'m Function,
    /// By variable of the function (an `alloca`): the one value that is stored in it, if it is one.
    stored: BTreeMap<u32, Option<Operand>>,
}

impl<'m> Foreign<'m> {
    /// Looks at the function's own variables.
    #[must_use]
    pub fn of(module: &'m Module, function: &'m Function) -> Self {
        let mut stored: BTreeMap<u32, Option<Operand>> = BTreeMap::new();
        for instruction in &function.instructions {
            if let InstKind::Store { address: Operand::Inst(id), value, .. } = &instruction.kind {
                stored.entry(id.0).and_modify(|only| *only = None).or_insert(Some(*value));
            }
        }
        Self { module, function, stored }
    }

    /// Does the address lead, through fields and pointers, to the result of a function that the
    /// module only declares, and that does not allocate?
    #[must_use]
    pub fn leads_outside(&self, address: Operand) -> bool {
        let mut at = address;
        for _ in 0..LONGEST {
            let Operand::Inst(id) = at else { return false };
            let Some(instruction) = self.function.instructions.get(id.index()) else {
                return false;
            };
            at = match &instruction.kind {
                InstKind::Gep { base, .. } => *base,
                InstKind::Cast(CastOp::BitCast | CastOp::AddrSpaceCast, from) => *from,
                InstKind::Load { address: from, .. } => match self.variable(*from) {
                    Some(value) => value,
                    None => *from,
                },
                kind => {
                    let Some(call) = kind.as_call() else { return false };
                    let Callee::Direct(target) = &call.callee else { return false };
                    return self.module.functions.get(target.index()).is_some_and(|callee| {
                        callee.is_declaration()
                            && !callee.intrinsic
                            && !ALLOCATING.contains(&callee.name.as_str())
                    });
                }
            };
        }
        false
    }

    /// The one value that a variable of the function gets.
    fn variable(&self, address: Operand) -> Option<Operand> {
        let Operand::Inst(id) = address else { return None };
        let variable = self.function.instructions.get(id.index())?;
        match variable.kind {
            InstKind::Alloca { .. } => self.stored.get(&id.0).copied().flatten(),
            _ => None,
        }
    }
}
