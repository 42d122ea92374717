//! Loads from memory that an uninstrumented function handed out: the text of `strerror`, the table
//! of `__ctype_b_loc`, the value of `getenv`. What such memory holds, only the log can tell.

use crate::types::{Callee, CastOp, Function, InstKind, Module, Operand};
use std::collections::BTreeMap;

/// How many values behind an address are looked at.
const LONGEST: usize = 32;

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
    "g_malloc",
    "g_malloc0",
    "g_malloc_n",
    "g_malloc0_n",
    "g_try_malloc",
    "g_try_malloc0",
    "g_try_malloc_n",
    "g_try_malloc0_n",
    "g_realloc",
    "g_realloc_n",
    "g_try_realloc",
    "g_try_realloc_n",
    "g_aligned_alloc",
    "g_aligned_alloc0",
    "g_slice_alloc",
    "g_slice_alloc0",
];

/// The addresses in one function that lead to results of uninstrumented functions.
pub struct Foreign<'m> {
    module: &'m Module,
    function: &'m Function,
    /// By variable of the function (an `alloca`): the values that are stored in it.
    stored: BTreeMap<u32, Vec<Operand>>,
}

impl<'m> Foreign<'m> {
    /// Looks at the function's own variables.
    #[must_use]
    pub fn of(module: &'m Module, function: &'m Function) -> Self {
        let mut stored: BTreeMap<u32, Vec<Operand>> = BTreeMap::new();
        for instruction in &function.instructions {
            if let InstKind::Store { address: Operand::Inst(id), value, .. } = &instruction.kind {
                stored.entry(id.0).or_default().push(*value);
            }
        }
        Self { module, function, stored }
    }

    /// Does the address lead, through fields and pointers, to the result of a function that the
    /// module only declares, and that does not allocate? Where paths join, on one of them.
    #[must_use]
    pub fn leads_outside(&self, address: Operand) -> bool {
        let mut seen = Vec::new();
        let mut work = vec![address];
        while let Some(at) = work.pop() {
            let Operand::Inst(id) = at else { continue };
            if seen.contains(&id) || seen.len() == LONGEST {
                continue;
            }
            seen.push(id);
            let Some(instruction) = self.function.instructions.get(id.index()) else { continue };
            match &instruction.kind {
                InstKind::Gep { base, .. } => work.push(*base),
                InstKind::Cast(CastOp::BitCast | CastOp::AddrSpaceCast, from)
                | InstKind::Freeze(from) => work.push(*from),
                InstKind::Phi(incoming) => work.extend(incoming.iter().map(|(_, value)| *value)),
                InstKind::Select(_, a, b) => work.extend([*a, *b]),
                InstKind::Load { address: from, .. } => match self.stored_in(*from) {
                    Some(values) => work.extend(values.iter().copied()),
                    None => work.push(*from),
                },
                kind => {
                    let Some(call) = kind.as_call() else { continue };
                    let Callee::Direct(target) = &call.callee else { continue };
                    let foreign = self.module.functions.get(target.index()).is_some_and(|callee| {
                        callee.is_declaration()
                            && !callee.intrinsic
                            && !ALLOCATING.contains(&callee.name.as_str())
                    });
                    if foreign {
                        return true;
                    }
                }
            }
        }
        false
    }

    /// The values that a variable of the function gets; `None` for other places.
    fn stored_in(&self, address: Operand) -> Option<&[Operand]> {
        let Operand::Inst(id) = address else { return None };
        let variable = self.function.instructions.get(id.index())?;
        let is_variable = matches!(variable.kind, InstKind::Alloca { .. });
        is_variable.then(|| self.stored.get(&id.0).map(Vec::as_slice).unwrap_or_default())
    }
}
