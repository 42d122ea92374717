//! Calls that loops which wait may have: of functions that look at something and write next to nothing, of
//! those that give way to others, and of those that nobody knows.
//!
//! Which rounds are worth comparing is decided here, not what may be concluded from that: a reader
//! walks such rounds again as often as they were counted.

use super::idle_call;
use crate::effects;
use crate::flow::Flow;
use crate::intrinsics::{self, Intrinsic};
use crate::stack::StackObjects;
use crate::types::{Call, Callee, FuncId, Function, InstKind, Module, RmwOp};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Longer functions do more than look. (An exchange of libstdc++ has one for each order, unoptimised.)
const MOST_INSTRUCTIONS: usize = 1024;
/// So deep calls go.
const DEEPEST: usize = 8;

/// What is known of a module's functions.
pub(super) struct Calm<'m> {
    module: &'m Module,
    /// False for those that are being looked at, too: none calls itself.
    known: RefCell<BTreeMap<FuncId, bool>>,
}

impl<'m> Calm<'m> {
    pub fn new(module: &'m Module) -> Self {
        Self { module, known: RefCell::default() }
    }

    /// May a loop that waits call that?
    pub fn is_calm(&self, call: &Call) -> bool {
        self.may_call(call, 0)
    }

    fn may_call(&self, call: &Call, depth: usize) -> bool {
        if idle_call(self.module, call).is_some() {
            return true;
        }
        if call.must_tail || call.byval.iter().any(Option::is_some) {
            return false;
        }
        match (&call.callee, intrinsics::called(self.module, call)) {
            (_, Some(intrinsic)) => matches!(intrinsic, Intrinsic::Copy | Intrinsic::Fill),
            (Callee::Indirect(_), None) => true,
            (Callee::Asm(..), None) => false,
            (Callee::Direct(id), None) => match self.module.functions.get(id.index()) {
                Some(callee) if callee.is_declaration() => {
                    !callee.intrinsic
                        && (gives_way(&callee.name) || effects::effect(&callee.name).is_none())
                }
                Some(callee) => self.looks(*id, callee, depth),
                None => false,
            },
        }
    }

    /// Does a function only look, as far as it returns?
    fn looks(&self, id: FuncId, function: &Function, depth: usize) -> bool {
        if let Some(&known) = self.known.borrow().get(&id) {
            return known;
        }
        if depth >= DEEPEST || function.instructions.len() > MOST_INSTRUCTIONS {
            return false;
        }
        self.known.borrow_mut().insert(id, false);
        let stack = StackObjects::of(self.module, function);
        // What an exchange found goes to where its caller said.
        let exchanges = function
            .instructions
            .iter()
            .any(|instruction| matches!(instruction.kind, InstKind::CmpXchg { .. }));
        let looks = |kind: &InstKind| match kind {
            InstKind::Store { address, .. } => exchanges || stack.root(*address).is_some(),
            InstKind::AtomicRmw { op, .. } => is_known(*op),
            InstKind::Call(call) | InstKind::Invoke { call, .. } => self.may_call(call, depth + 1),
            InstKind::Other(..) | InstKind::IndirectBr(..) => false,
            _ => true,
        };
        let found = Flow::of(function).back_edges().is_empty()
            && returning(function).all(|block| {
                block.instructions().all(|id| {
                    function.instructions.get(id.index()).is_some_and(|it| looks(&it.kind))
                })
            });
        self.known.borrow_mut().insert(id, found);
        found
    }
}

/// The blocks that are neither for exceptions nor for the end of the program.
fn returning(function: &Function) -> impl Iterator<Item = &crate::types::Block> {
    let kind = |id: crate::types::InstId| Some(&function.instructions.get(id.index())?.kind);
    function.blocks.iter().filter(move |block| {
        let ends = kind(block.terminator());
        let pad = block.instructions().any(|id| matches!(kind(id), Some(InstKind::LandingPad)));
        !pad && !matches!(ends, Some(InstKind::Unreachable | InstKind::Resume(_)))
    })
}

/// Does an update leave what it was told to, and not a number that goes on?
pub(super) fn is_known(op: RmwOp) -> bool {
    matches!(op, RmwOp::Xchg | RmwOp::And | RmwOp::Or)
}

fn gives_way(name: &str) -> bool {
    matches!(
        name,
        "sched_yield"
            | "thrd_yield"
            | "pthread_yield"
            | "sleep"
            | "usleep"
            | "nanosleep"
            | "clock_nanosleep"
            | "thrd_sleep"
            | "__errno_location"
    )
}
