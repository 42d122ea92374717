//! The logging plan: what an instrumented function writes to its thread's streams, computed from
//! the IR alone, so that the instrumenter (which emits the hooks) and the executor (which reads
//! the streams back) cannot disagree. A change here changes `INSTRUMENTATION_VERSION`.
//!
//! In program order, a thread writes:
//!
//! * on entry to a function with [`FunctionPlan::entry`]: an `ENTER` path entry, then every
//!   argument in the values stream ([`logged_bytes`] each); or a `CALLED` entry and fewer arguments
//!   ([`crate::calls`]);
//! * at a branch that chooses ([`regions::choice`]): which way it goes, together with the choices
//!   before and after it ([`regions`]);
//! * on entry to a block of [`FunctionPlan::blocks`]: a `BLOCK` path entry. On function entry,
//!   block 0 is never recorded;
//! * after an instruction of [`FunctionPlan::readings`]: a reading of the clock, one word;
//! * after an instruction of [`FunctionPlan::values`]: its value ([`logged_bytes`]), or for a load of
//!   [`Guesses::loads`] a bit with the choices that says whether the value follows ([`guesses`]);
//! * after a call of [`FunctionPlan::returns`] (in an invoke: at the start of the normal
//!   destination, before that block's own entry; such edges are split when the destination has
//!   other predecessors): a `RETURN` path entry, then the result ([`logged_bytes`], none
//!   for `void`); or a `CAME_BACK` entry, behind which most results are left out ([`crate::calls`]).
//!
//! An *address-feeding* load reads memory that is not certainly a non-escaping stack object (see
//! [`StackObjects`]), and either its result holds a pointer, or it holds an integer that may become
//! part of an address, an argument, or the function's result ([`address_feeding`]). A floating-point
//! load is logged where an integer may be made of it that does that, or a comparison. A load from a stack object that `memcpy` filled from elsewhere counts,
//! because the copied bytes are not logged.
//!
//! Atomic read-modify-writes of memory that others may see, and stores that the processor does like
//! those (sequentially consistent ones), are followed by a reading: beside what they cost themselves
//! it costs little, and they are where threads without locks meet. What a read-modify-write found is
//! logged for the same reason.
//!
//! A load from memory that a function from outside handed out is logged as well ([`Foreign`]), and so is
//! every load of memory that others may see in a loop that waits ([`repeats`]).
//!
//! What the executor has no arithmetic for ([`is_opaque`]) is logged as well.

use crate::assembly::Assembly;
use crate::feeding::address_feeding;
use crate::foreign::Foreign;
use crate::guesses::{self, Guesses};
use crate::intrinsics::{self, Intrinsic};
use crate::opaque::is_opaque;
use crate::regions::{self, Regions};
use crate::repeats::{self, Repeats};
use crate::stack::StackObjects;
use crate::types::{
    BlockId, Callee, Function, InstId, InstKind, Instruction, Module, Ordering, Type, TypeId,
};
use std::collections::BTreeSet;

/// What one function logs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionPlan {
    /// Entry is recorded: the function can be called by code that this module does not show.
    pub entry: bool,
    /// Per block: is its entry recorded?
    pub blocks: Vec<bool>,
    /// Where the choices of branches are written.
    pub regions: Regions,
    /// Instructions right behind which the clock is read.
    pub readings: BTreeSet<InstId>,
    /// Instructions whose result is logged right after them: address-feeding loads, atomic
    /// read-modify-writes, stack objects whose address escapes, and what the executor does not compute
    /// ([`is_opaque`]).
    pub values: BTreeSet<InstId>,
    /// Which of them are loads that are guessed.
    pub guesses: Guesses,
    /// Calls and invokes that log `RETURN` and their result: those whose target is not a defined
    /// function of the same module, intrinsics excepted, and inline assembly with effects
    /// ([`Assembly::is_logged`]).
    pub returns: BTreeSet<InstId>,
    /// Loops that wait: at their headers, coming from within, a region ends, and the runtime may count
    /// the round in place of its log ([`repeats`]).
    pub repeats: Repeats,
}

/// How many bytes a number of so many bits takes in the values stream: 1, 2, 4 or 8, whichever holds
/// it; above 64 bits 8 for every 64 of them begun.
#[must_use]
pub const fn scalar_bytes(bits: u32) -> usize {
    match bits {
        0 => 0,
        1..=8 => 1,
        9..=16 => 2,
        17..=32 => 4,
        _ => 8 * bits.div_ceil(64) as usize,
    }
}

/// How many bytes a value of this type takes in the values stream: [`scalar_bytes`] of a number, 8 of
/// a pointer, 0 for `void`; for aggregates and vectors the sum over the elements, in order.
#[must_use]
pub fn logged_bytes(module: &Module, ty: TypeId) -> usize {
    let times = |element, length| logged_bytes(module, element).saturating_mul(length);
    match module.types.get(ty.index()) {
        Some(Type::Int(bits)) => scalar_bytes(*bits),
        Some(Type::Float(_)) => scalar_bytes(module.scalar_bits(ty).unwrap_or(0)),
        Some(Type::Pointer) => 8,
        Some(Type::Struct { fields, .. }) => {
            fields.iter().map(|&field| logged_bytes(module, field)).sum()
        }
        Some(Type::Array { element, length }) => {
            times(*element, usize::try_from(*length).unwrap_or(usize::MAX))
        }
        Some(Type::Vector { element, length }) => times(*element, *length as usize),
        Some(Type::Void | Type::Function { .. } | Type::Other) | None => 0,
    }
}

/// The plan of a function with a body.
#[must_use]
pub fn plan(module: &Module, function: &Function) -> FunctionPlan {
    let blocks = recorded_blocks(function);
    let stack = StackObjects::of(module, function);
    let entry = is_entered(function);
    let repeats = repeats::repeats(module, function, &stack, &blocks);
    let mut values = logged_values(module, function, &stack);
    let waiting: BTreeSet<InstId> = repeats.values().flat_map(|it| &it.loads).copied().collect();
    values.extend(&waiting);
    let guesses = guesses::guesses(module, function, &values, &waiting, entry);
    FunctionPlan {
        entry,
        regions: regions::regions(module, function, &blocks, &guesses.loads),
        blocks,
        readings: readings(function, &stack),
        values,
        guesses,
        returns: logged_returns(module, function),
        repeats,
    }
}

/// Is the function's entry recorded?
#[must_use]
pub fn is_entered(function: &Function) -> bool {
    !function.internal
        || function.address_taken
        || function.params.iter().any(|param| param.byval.is_some())
}

/// Blocks that follow neither from the block before nor from a choice: landing pads, the targets of
/// indirect branches and of switches too wide for a choice.
fn recorded_blocks(function: &Function) -> Vec<bool> {
    let mut recorded = vec![false; function.blocks.len()];
    let mut record = |block: BlockId| {
        if let Some(slot) = recorded.get_mut(block.index()) {
            *slot = true;
        }
    };
    let mut unknown = false;
    for block in &function.blocks {
        let Some(last) = function.instructions.get(block.terminator().index()) else { continue };
        let successors = last.kind.successors();
        let several = successors.iter().any(|block| Some(block) != successors.first());
        let wide = several
            && matches!(last.kind, InstKind::Switch(..))
            && regions::choice(&last.kind).is_none();
        if wide || matches!(last.kind, InstKind::IndirectBr(..)) {
            successors.into_iter().for_each(&mut record);
        }
        unknown |= matches!(last.kind, InstKind::Other(..));
    }
    // Where an unknown terminator goes is not known either.
    if unknown {
        return vec![true; function.blocks.len()];
    }
    for (block, number) in function.blocks.iter().zip((0..).map(BlockId)) {
        let pad = |id: InstId| {
            let kind = function.instructions.get(id.index()).map(|instruction| &instruction.kind);
            matches!(kind, Some(InstKind::LandingPad))
        };
        if block.instructions().any(pad) {
            record(number);
        }
    }
    recorded
}

/// Where the clock is read.
fn readings(function: &Function, stack: &StackObjects) -> BTreeSet<InstId> {
    let reads = |(instruction, _): &(&Instruction, InstId)| {
        let address = match &instruction.kind {
            InstKind::AtomicRmw { address, .. } | InstKind::CmpXchg { address, .. } => *address,
            InstKind::Store { address, ordering, .. }
                if *ordering == Ordering::SequentiallyConsistent =>
            {
                *address
            }
            _ => return false,
        };
        stack.private_root(address).is_none()
    };
    function.instructions.iter().zip((0..).map(InstId)).filter(reads).map(|(_, id)| id).collect()
}

fn logged_values(module: &Module, function: &Function, stack: &StackObjects) -> BTreeSet<InstId> {
    let feeding = address_feeding(module, function, stack);
    let foreign = Foreign::of(module, function);
    let logged = |(instruction, id): &(&Instruction, InstId)| match &instruction.kind {
        InstKind::Alloca { .. } => stack.escapes(*id) || stack.addressed(*id),
        InstKind::Load { address, .. }
            if is_word(module, instruction.ty) && foreign.leads_outside(*address) =>
        {
            true
        }
        InstKind::AtomicRmw { address, .. } | InstKind::CmpXchg { address, .. }
            if stack.private_root(*address).is_none() =>
        {
            logged_bytes(module, instruction.ty) > 0
        }
        InstKind::Load { address, .. }
        | InstKind::AtomicRmw { address, .. }
        | InstKind::CmpXchg { address, .. } => {
            let private = stack.private_root(*address);
            let known = private.is_some_and(|object| !stack.copied_into(object));
            let at = id.index();
            let feeds = Feeds {
                word: feeding.values.get(at).copied().unwrap_or(true),
                float: feeding.converted.get(at).copied().unwrap_or(true),
            };
            !known && feeds_by_type(module, instruction.ty, feeds)
        }
        _ => logged_bytes(module, instruction.ty) > 0 && is_opaque(module, function, instruction),
    };
    function.instructions.iter().zip((0..).map(InstId)).filter(logged).map(|(_, id)| id).collect()
}

/// Is the type one of integers or pointers?
fn is_word(module: &Module, ty: TypeId) -> bool {
    matches!(module.types.get(ty.index()), Some(Type::Int(1..=64) | Type::Pointer))
}

/// What may become part of an address: an integer of a loaded value, or one that is made of a floating-point number in it.
#[derive(Clone, Copy)]
struct Feeds {
    word: bool,
    float: bool,
}

/// Does a loaded value of this type belong into the log, given what of it feeds?
fn feeds_by_type(module: &Module, ty: TypeId, feeds: Feeds) -> bool {
    match module.types.get(ty.index()) {
        Some(Type::Pointer) => true,
        Some(Type::Int(_)) => feeds.word,
        Some(Type::Float(_)) => feeds.float,
        Some(Type::Struct { fields, .. }) => {
            fields.iter().any(|&field| feeds_by_type(module, field, feeds))
        }
        Some(Type::Array { element, .. } | Type::Vector { element, .. }) => {
            feeds_by_type(module, *element, feeds)
        }
        _ => false,
    }
}

pub(crate) fn logged_returns(module: &Module, function: &Function) -> BTreeSet<InstId> {
    let logged = |(instruction, _): &(&Instruction, InstId)| {
        let Some(call) = instruction.kind.as_call() else { return false };
        let unseen = match &call.callee {
            Callee::Direct(target) => module
                .functions
                .get(target.index())
                .is_none_or(|callee| callee.is_declaration() && !callee.intrinsic),
            Callee::Indirect(_) => true,
            Callee::Asm(text, constraints) => Assembly::parse(text, constraints).is_logged(),
        };
        match intrinsics::called(module, call) {
            None => unseen && !call.must_tail,
            Some(called) => called == Intrinsic::ThreadPointer,
        }
    };
    function.instructions.iter().zip((0..).map(InstId)).filter(logged).map(|(_, id)| id).collect()
}
