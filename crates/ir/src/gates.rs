//! The gates of a function: where a scheduler can stop it, and under which names. Like the logging
//! plan, they are computed from the IR alone, by one function that the instrumenter (which places
//! the gates) and the executor (which counts their passages) share. A change here changes
//! `INSTRUMENTATION_VERSION`. The names' grammar is in `docs/schedule-format.md`.
//!
//! A gate stands right before
//!
//! * loads, stores, atomic read-modify-writes, compare-exchanges, and memory copies and fills,
//!   unless all they touch is certainly a non-escaping stack object of the function
//!   ([`StackObjects`]);
//! * calls and invokes that log `RETURN` ([`FunctionPlan::returns`](crate::plan::FunctionPlan::returns)).

mod place;

use crate::intrinsics::{self, Intrinsic};
use crate::plan;
use crate::stack::StackObjects;
use crate::types::{Call, Callee, Function, InstId, InstKind, Module};
use place::Places;
use std::collections::{BTreeSet, HashMap};

/// A gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gate {
    /// The instruction that it stands before.
    pub instruction: InstId,
    /// The site's name, `bank.c:deposit:write:balance/2` for instance; unique in its function.
    pub site: String,
}

/// The gates of a function with a body, in IR order.
#[must_use]
pub fn gates(module: &Module, function: &Function) -> Vec<Gate> {
    let stack = StackObjects::of(module, function);
    let finder = Finder {
        module,
        returns: plan::logged_returns(module, function),
        places: Places::of(module, function, &stack),
        stack: &stack,
    };
    let prefix = format!("{}:{}", file(module, function), part(&function.name));
    let mut names = HashMap::new();
    let mut gates = Vec::new();
    for (instruction, id) in function.instructions.iter().zip((0..).map(InstId)) {
        let Some((kind, place)) = finder.access(id, &instruction.kind) else {
            continue;
        };
        let name = format!("{prefix}:{kind}:{}", part(&place));
        let seen = names.entry(name.clone()).or_insert(0_u32);
        *seen += 1;
        let site = if *seen == 1 { name } else { format!("{name}/{seen}") };
        gates.push(Gate { instruction: id, site });
    }
    gates
}

/// The file's part of the names. A function that the linker may take from any module has none: the
/// name must not depend on the order of the objects.
fn file(module: &Module, function: &Function) -> String {
    if function.mergeable {
        return String::new();
    }
    part(module.source_file.rsplit('/').next().unwrap_or_default())
}

/// A part of a name without the characters that separate parts.
fn part(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.$*?<>~-".contains(c);
    text.chars().map(|c| if plain(c) { c } else { '_' }).collect()
}

struct Finder<'m> {
    module: &'m Module,
    returns: BTreeSet<InstId>,
    places: Places<'m>,
    stack: &'m StackObjects,
}

impl Finder<'_> {
    /// The kind and the place of what a gate stands before; `None` for an instruction without one.
    fn access(&self, id: InstId, kind: &InstKind) -> Option<(&'static str, String)> {
        let (word, address) = match kind {
            InstKind::Load { address, .. } => ("read", *address),
            InstKind::Store { address, .. } => ("write", *address),
            InstKind::AtomicRmw { address, .. } | InstKind::CmpXchg { address, .. } => {
                ("update", *address)
            }
            InstKind::Call(call) | InstKind::Invoke { call, .. } => return self.call(id, call),
            _ => return None,
        };
        let visible = self.stack.private_root(address).is_none();
        visible.then(|| (word, self.places.accessed(address)))
    }

    fn call(&self, id: InstId, call: &Call) -> Option<(&'static str, String)> {
        let ends = match intrinsics::called(self.module, call) {
            Some(Intrinsic::Copy) => 2,
            Some(Intrinsic::Fill) => 1,
            _ => return self.returns.contains(&id).then(|| ("call", self.callee(call))),
        };
        // Named is what is written, if others can see that.
        let visible = |end: &&_| self.stack.private_root(**end).is_none();
        let end = call.args.iter().take(ends).find(visible)?;
        Some(("copy", self.places.object(*end)))
    }

    fn callee(&self, call: &Call) -> String {
        match &call.callee {
            Callee::Direct(_) => call.target(self.module).map(|function| function.name.clone()),
            Callee::Indirect(_) => None,
            Callee::Asm(..) => Some("asm".to_owned()),
        }
        .unwrap_or_else(|| "*".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::part;

    #[test]
    fn parts_keep_only_plain_characters() {
        assert_eq!(part("_ZN4bank7depositEi"), "_ZN4bank7depositEi");
        assert_eq!(part("std::vector<int, a/b>.2"), "std__vector<int__a_b>.2");
        assert_eq!(part("my file#1.c"), "my_file_1.c");
        assert_eq!(part("größe"), "gr__e");
    }
}
