//! Where a function keeps the choices of its branches, and where it writes them to the path stream.
//!
//! A branch with two ways logs a bit, a switch as many bits as its distinct targets need
//! ([`choice`]), a load whose value is guessed a bit as well ([`crate::guesses`]). A running function
//! collects the bits of a *region* behind a leading one in a number,
//! and writes it as one token. A region ends
//!
//! * before everything that others may log after ([`ends_region`]): calls, but for intrinsics that
//!   are a few instructions, and returns;
//! * where a recorded block is entered;
//! * at the start of a block with a check ([`Regions::checks`]), when there would be no room for the
//!   bits that may come until the next end. Every loop has such a block, unless its region ends
//!   anyway.
//!
//! The reader need not know the regions: a token says how many bits it has. Only where a signal
//! handler ran is told by the checks.

use crate::intrinsics::{self, Intrinsic};
use crate::types::{Block, BlockId, Function, InstId, InstKind, Instruction, Module, Type};
use std::collections::BTreeSet;

/// How many bits a region has at most: those of a token of the path stream.
pub const REGION_BITS: u32 = 28;
/// How many bits may come between two checks at most: a loop goes through its check with so many less
/// than a token has room for.
const STRETCH_BITS: u32 = REGION_BITS / 2;
/// How many bits a choice has at most.
const CHOICE_BITS: u32 = 6;
/// So many bits take a token of one byte.
pub const SHORT_BITS: u32 = 6;

/// The ways that a branch can go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The distinct targets, in order of their first mention.
    pub targets: Vec<BlockId>,
    /// How many bits say which it was: the target's index in `targets`.
    pub bits: u32,
}

/// The choice that a conditional branch or a switch makes; `None` where there is nothing to choose,
/// and where the targets are recorded blocks instead (indirect branches, switches with more targets
/// than a choice has room for).
#[must_use]
pub fn choice(kind: &InstKind) -> Option<Choice> {
    match kind {
        InstKind::CondBr(_, then, otherwise) => {
            let targets = vec![*then, *otherwise];
            return (then != otherwise).then_some(Choice { targets, bits: 1 });
        }
        InstKind::Switch(..) => {}
        _ => return None,
    }
    let (mut seen, mut targets) = (BTreeSet::new(), kind.successors());
    targets.retain(|target| seen.insert(*target));
    let bits = targets.len().checked_sub(1)?.checked_ilog2()? + 1;
    (bits <= CHOICE_BITS).then_some(Choice { targets, bits })
}

/// Does a region end before this instruction?
#[must_use]
pub fn ends_region(module: &Module, instruction: &Instruction) -> bool {
    match &instruction.kind {
        InstKind::Call(call) => match intrinsics::called(module, call) {
            Some(Intrinsic::Annotation) => false,
            // Some of those on floating-point numbers are calls of a library after all.
            Some(Intrinsic::Arithmetic) => {
                !matches!(module.types.get(instruction.ty.index()), Some(Type::Int(_)))
            }
            _ => true,
        },
        InstKind::Invoke { .. } | InstKind::Ret(_) | InstKind::Resume(_) | InstKind::Other(..) => {
            true
        }
        _ => false,
    }
}

/// The regions of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Regions {
    /// Per block: at its start, a region with more than this many bits ends.
    pub checks: Vec<Option<u32>>,
    /// Per block: can there be bits at its start?
    pub filled: Vec<bool>,
    /// Per block: the most bits that there can be at its start, before a region ends there.
    pub most: Vec<u32>,
}

/// The regions of a function whose recorded blocks and guessed loads these are.
#[must_use]
pub fn regions(
    module: &Module,
    function: &Function,
    recorded: &[bool],
    guessed: &BTreeSet<InstId>,
) -> Regions {
    let node = |(number, block): (usize, &Block)| {
        let recorded = recorded.get(number).copied().unwrap_or(false);
        let last = function.instructions.get(block.terminator().index());
        let ends = |id: InstId| {
            function.instructions.get(id.index()).is_some_and(|inst| ends_region(module, inst))
        };
        let choice = last.and_then(|last| choice(&last.kind));
        let (mut first, mut bits) = (None, 0);
        for id in block.instructions() {
            if ends(id) {
                first = first.or(Some(bits));
                bits = 0;
            }
            bits += u32::from(guessed.contains(&id));
        }
        Node {
            targets: match &choice {
                Some(choice) => choice.targets.clone(),
                None => last.map(|last| last.kind.successors()).unwrap_or_default(),
            },
            bits: bits + choice.map_or(0, |choice| choice.bits),
            recorded,
            cut: first,
        }
    };
    let blocks: Vec<Node> = function.blocks.iter().enumerate().map(node).collect();
    let needs = Needs::of(&blocks);
    let checks = blocks.iter().enumerate().map(|(at, node)| {
        let need = node.need(needs.after.get(at).copied().unwrap_or(0));
        let checked = needs.checked.get(at) == Some(&true) && need > 0;
        checked.then_some(REGION_BITS.saturating_sub(need))
    });
    let mut checks: Vec<Option<u32>> = checks.collect();
    let most = most(&blocks, &checks);
    for (check, &most) in checks.iter_mut().zip(&most) {
        *check = check.filter(|&bits| most > bits);
    }
    Regions { checks, filled: filled(&blocks), most }
}

/// A block, as far as regions care.
struct Node {
    targets: Vec<BlockId>,
    /// Bits of its guesses and its choice, behind the last end of a region in it.
    bits: u32,
    /// A region ends where it is entered.
    recorded: bool,
    /// A region ends in it: the bits before the first end.
    cut: Option<u32>,
}

impl Node {
    /// How many bits may come for a region that enters here, when `after` may come for one that
    /// reaches the block's end.
    fn need(&self, after: u32) -> u32 {
        if self.recorded { 0 } else { self.cut.unwrap_or(after) }
    }
}

/// The most bits that may come until the next check or end.
struct Needs {
    /// Per block: from the last end in it, or from its start, on.
    after: Vec<u32>,
    /// Per block: there is a check.
    checked: Vec<bool>,
}

impl Needs {
    /// Goes through the blocks depth first. The targets of edges back to where the search came from
    /// are checked, so every loop is, and what follows from the others is known already.
    fn of(blocks: &[Node]) -> Self {
        #[derive(Clone, Copy, PartialEq)]
        enum State {
            New,
            Open,
            Done,
        }
        let mut needs = Self { after: vec![0; blocks.len()], checked: vec![false; blocks.len()] };
        let mut states = vec![State::New; blocks.len()];
        for root in 0..blocks.len() {
            let mut stack = vec![(root, 0)];
            if states.get(root) != Some(&State::New) {
                continue;
            }
            while let Some((at, next)) = stack.pop() {
                let Some(node) = blocks.get(at) else { continue };
                if let Some(state) = states.get_mut(at) {
                    *state = State::Open;
                }
                match node.targets.get(next) {
                    Some(target) => {
                        stack.push((at, next + 1));
                        match states.get(target.index()) {
                            Some(State::New) => stack.push((target.index(), 0)),
                            Some(State::Open) => needs.check(*target),
                            _ => {}
                        }
                    }
                    None => {
                        needs.finish(blocks, at);
                        if let Some(state) = states.get_mut(at) {
                            *state = State::Done;
                        }
                    }
                }
            }
        }
        needs
    }

    fn check(&mut self, block: BlockId) {
        if let Some(checked) = self.checked.get_mut(block.index()) {
            *checked = true;
        }
    }

    /// The targets of `at` are known: how much may come behind it? Targets that would make it too
    /// much get a check.
    fn finish(&mut self, blocks: &[Node], at: usize) {
        let Some(node) = blocks.get(at) else { return };
        let mut most = 0;
        for target in &node.targets {
            let Some(next) = blocks.get(target.index()) else { continue };
            let after = self.after.get(target.index()).copied().unwrap_or(0);
            let need = next.need(after);
            if self.checked.get(target.index()) == Some(&true) {
                continue;
            }
            if node.bits + need > STRETCH_BITS && need > 0 {
                self.check(*target);
            } else {
                most = most.max(need);
            }
        }
        if let Some(after) = self.after.get_mut(at) {
            *after = node.bits + most;
        }
    }
}

/// Per block: the most bits that there can be at its start, when regions end at these checks.
fn most(blocks: &[Node], checks: &[Option<u32>]) -> Vec<u32> {
    let mut most = vec![0; blocks.len()];
    let mut work: Vec<usize> = (0..blocks.len()).collect();
    while let Some(at) = work.pop() {
        let (Some(node), Some(&before)) = (blocks.get(at), most.get(at)) else { continue };
        let passing = match checks.get(at).copied().flatten() {
            Some(bits) => before.min(bits),
            None => before,
        };
        let ends = node.recorded || node.cut.is_some();
        let after = REGION_BITS.min(node.bits + if ends { 0 } else { passing });
        for target in &node.targets {
            if let Some(there) = most.get_mut(target.index()).filter(|there| **there < after) {
                *there = after;
                work.push(target.index());
            }
        }
    }
    most
}

/// Where bits may have been collected.
fn filled(blocks: &[Node]) -> Vec<bool> {
    let mut filled = vec![false; blocks.len()];
    let mut work: Vec<usize> = (0..blocks.len()).collect();
    while let Some(at) = work.pop() {
        let (Some(node), Some(&own)) = (blocks.get(at), filled.get(at)) else { continue };
        if node.bits == 0 && (!own || node.recorded || node.cut.is_some()) {
            continue;
        }
        for target in &node.targets {
            if let Some(there) = filled.get_mut(target.index()).filter(|there| !**there) {
                *there = true;
                work.push(target.index());
            }
        }
    }
    filled
}
