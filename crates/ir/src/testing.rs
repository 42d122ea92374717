//! Functions for the tests of control flow.

use crate::types::{
    Block, BlockId, ConstId, Function, InstId, InstKind, Instruction, Operand, TypeId,
};

/// A function whose blocks hold a terminator each.
pub(crate) fn function(terminators: Vec<InstKind>) -> Function {
    let blocks = (0..terminators.len() as u32)
        .map(|at| Block { first: InstId(at), end: InstId(at + 1) })
        .collect();
    let instructions = terminators
        .into_iter()
        .map(|kind| Instruction { kind, ty: TypeId(0), loc: None })
        .collect();
    Function {
        name: "f".into(),
        ty: TypeId(0),
        result: TypeId(0),
        params: Vec::new(),
        varargs: false,
        internal: false,
        mergeable: false,
        address_taken: false,
        intrinsic: false,
        noreturn: false,
        blocks,
        instructions,
        scope: None,
        returns: None,
        variables: Vec::new(),
        pieces: Vec::new(),
    }
}

/// A terminator that leads to these blocks, of which there are two at most; to none, a return.
pub(crate) fn terminator(targets: &[u32]) -> InstKind {
    match *targets {
        [] => InstKind::Ret(None),
        [only] => InstKind::Br(BlockId(only)),
        [a, b, ..] => InstKind::CondBr(Operand::Const(ConstId(0)), BlockId(a), BlockId(b)),
    }
}
