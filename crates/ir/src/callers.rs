//! Which functions of the source call which others, by what stands in the code, whether it ran or not.

use crate::name;
use crate::types::{Callee, Function, Module};
use std::collections::{BTreeMap, BTreeSet};

/// A function of the source: its file, and what it is called there.
pub type Named = (String, String);

/// The functions that some module defines, by their symbols.
type Defined<'m> = BTreeMap<&'m str, Named>;

/// A line of one function that calls another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LineCall {
    /// The function that calls.
    pub caller: Named,
    /// The line, in the caller's file.
    pub line: u32,
    /// The one that is called.
    pub callee: Named,
}

/// The calls between functions of these modules whose callers' and callees' files are wanted. What was inlined is called at the line
/// that it was inlined in. Calls through pointers, and of functions that none of the modules defines, are not among them.
#[must_use]
pub fn line_calls<'m>(
    modules: impl Iterator<Item = &'m Module> + Clone,
    wanted: &dyn Fn(&str) -> bool,
) -> BTreeSet<LineCall> {
    let defined = |module: &'m Module| {
        let own = module.functions.iter().filter(|function| !function.is_declaration());
        own.filter_map(move |function| Some((function.name.as_str(), named(module, function)?)))
    };
    let public: Defined<'_> = modules.clone().flat_map(defined).collect();
    let mut found = BTreeSet::new();
    for module in modules {
        for function in module.functions.iter().filter(|function| !function.is_declaration()) {
            of_function(module, function, (&public, wanted), &mut found);
        }
    }
    found
}

fn of_function(
    module: &Module,
    function: &Function,
    (public, wanted): (&Defined<'_>, &dyn Fn(&str) -> bool),
    found: &mut BTreeSet<LineCall>,
) {
    let mut seen = BTreeSet::new();
    for instruction in &function.instructions {
        let called = instruction.kind.as_call().and_then(|call| match call.callee {
            Callee::Direct(id) => module.functions.get(id.index()),
            Callee::Indirect(_) | Callee::Asm(..) => None,
        });
        let called = called.filter(|callee| !callee.intrinsic).and_then(|callee| {
            match callee.is_declaration() {
                true => public.get(callee.name.as_str()).cloned(),
                false => named(module, callee),
            }
        });
        // All but the first of these were seen where one of their other instructions was.
        let mut inner = called;
        let mut next = instruction.loc;
        while let Some(id) = next {
            let Some(location) = module.debug.locations.get(id.index()) else { break };
            let Some(scope) = module.debug.scopes.get(location.scope.index()) else { break };
            let is_known = inner.is_none() && !seen.insert(id);
            let caller = (scope.file.clone(), scope.function.clone());
            if let Some(callee) = inner.take()
                && wanted(&caller.0)
                && wanted(&callee.0)
                && location.line != 0
            {
                found.insert(LineCall { caller: caller.clone(), line: location.line, callee });
            }
            if is_known {
                break;
            }
            inner = location.inlined_at.map(|_| caller);
            next = location.inlined_at;
        }
    }
}

/// What the source calls a function, where the debug information says it.
fn named(module: &Module, function: &Function) -> Option<Named> {
    let scope = module.debug.scopes.get(function.scope?.index())?;
    let name = match scope.function.is_empty() {
        true => name::function_name(module, function),
        false => scope.function.clone(),
    };
    Some((scope.file.clone(), name))
}
