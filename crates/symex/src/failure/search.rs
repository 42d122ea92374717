//! Which branch on shared data led to the failure: from the place of the failure back along control
//! dependence, and through the values that decided concrete branches.

use super::Found;
use crate::access::{Grain, Place};
use crate::engine::{Engine, operand_value};
use crate::thread::{CodeFrame, Frame, StoreRecord, Thread};
use ir::dependence::PostDominators;
use ir::types::{BlockId, InstId, InstKind, Operand};
use rustc_hash::FxHashMap;

/// How far values are followed back.
const DEEPEST: u32 = 32;
/// Pointers are so long.
const WORD: usize = 8;
/// Of a write of uninstrumented code, or a copy, so many bytes are remembered.
const LONGEST_STORE: u64 = 256;

impl<'r> Engine<'r> {
    /// Remembers which instruction wrote an address last.
    pub fn note_store(&mut self, t: usize, address: u64, id: InstId) {
        if !self.remembers_stores(t) {
            return;
        }
        let known = self.known_stored(t, id);
        let thread = &mut self.threads[t];
        if let Some(frame) = thread.code() {
            let (frame, block) = (frame.serial, frame.block);
            let store = StoreRecord { frame, block, instruction: id, known };
            thread.last_store.insert(address, store);
        }
    }

    fn remembers_stores(&self, t: usize) -> bool {
        self.symbolic() && self.failing == Some(t)
    }

    /// What stored to these addresses before tells nothing of what is there from now on. Of a single access only
    /// the beginnings of its words are looked at, since only pointers are asked for.
    pub fn note_overwritten(&mut self, t: usize, place: Place, grain: Grain) {
        if !self.remembers_stores(t) {
            return;
        }
        let known = &mut self.threads[t].last_store;
        let Place { address, length, .. } = place;
        let all = address..address.saturating_add(length);
        match grain {
            Grain::Access => all.step_by(WORD).for_each(|at| _ = known.remove(&at)),
            Grain::Cell if usize::try_from(length).is_ok_and(|length| length <= known.len()) => {
                all.for_each(|at| _ = known.remove(&at));
            }
            Grain::Cell => known.retain(|at, _| !all.contains(at)),
        }
    }

    /// By offset, who stored what lies there, as far as nobody else can have written it.
    pub fn stored_by(&self, t: usize, address: u64, length: u64) -> Vec<(u64, StoreRecord)> {
        if !self.remembers_stores(t) {
            return Vec::new();
        }
        let known = &self.threads[t].last_store;
        let at = |offset: u64| address.wrapping_add(offset);
        let stored = |offset: u64| Some((offset, *known.get(&at(offset))?));
        let stored = (0..length.min(LONGEST_STORE)).filter_map(stored);
        stored.filter(|(offset, _)| self.only_own(t, at(*offset))).collect()
    }

    /// What was copied to an address was stored by who stored it where it was.
    pub fn note_copied(&mut self, t: usize, address: u64, stored: Vec<(u64, StoreRecord)>) {
        let stored = stored.into_iter().map(|(at, store)| (address.wrapping_add(at), store));
        self.threads[t].last_store.extend(stored);
    }

    /// Remembers which call wrote these addresses last.
    pub fn note_external_store(&mut self, t: usize, address: u64, length: u64) {
        if !self.remembers_stores(t) {
            return;
        }
        let thread = &mut self.threads[t];
        let Some(frame) = thread.innermost_code() else { return };
        let (known, instruction) = (thread.stamps, frame.next);
        let store = StoreRecord { frame: frame.serial, block: frame.block, instruction, known };
        for at in 0..length.min(LONGEST_STORE) {
            thread.last_store.insert(address.wrapping_add(at), store);
        }
    }

    /// The nearest branch with a symbolic condition that led to where the thread is.
    pub(super) fn search(&self, t: usize) -> Option<Found> {
        let thread = &self.threads[t];
        let mut search = Search::new(self, thread);
        for frame in thread.frames.iter().rev() {
            let Frame::Code(frame) = frame else { continue };
            if let Some(found) = search.deciding(frame, frame.block, u64::MAX, 0) {
                return Some(found);
            }
        }
        None
    }

    /// The symbolic branch before `limit` that decided which concrete value an operand has.
    pub(super) fn origin(
        &self,
        thread: &Thread<'r>,
        frame: &CodeFrame<'r>,
        operand: Operand,
        limit: u64,
    ) -> Option<Found> {
        Search::new(self, thread).origin(frame, operand, limit, 0)
    }
}

/// What is asked about a frame, by its serial number: what led to a block, or to a value, before a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Question {
    Block(u64, BlockId, u64),
    Value(u64, InstId, u64),
}

/// A search through one thread.
struct Search<'e, 'r> {
    engine: &'e Engine<'r>,
    thread: &'e Thread<'r>,
    /// What was asked in vain, and how deep: from there on it is in vain again. A value that comes from a hundred others is
    /// reached in more ways than can be tried.
    in_vain: FxHashMap<Question, u32>,
}

impl<'e, 'r> Search<'e, 'r> {
    fn new(engine: &'e Engine<'r>, thread: &'e Thread<'r>) -> Self {
        Self { engine, thread, in_vain: FxHashMap::default() }
    }

    /// Answers a question by `find`, unless that was in vain before.
    fn once(
        &mut self,
        question: Question,
        depth: u32,
        find: impl FnOnce(&mut Self) -> Option<Found>,
    ) -> Option<Found> {
        let known = self.in_vain.get(&question);
        if depth > DEEPEST || known.is_some_and(|known| *known <= depth) {
            return None;
        }
        let found = find(self);
        if found.is_none() {
            self.in_vain.insert(question, depth);
        }
        found
    }

    /// The nearest symbolic branch before `limit` that decided that the block was reached.
    fn deciding(
        &mut self,
        frame: &'e CodeFrame<'r>,
        block: BlockId,
        limit: u64,
        depth: u32,
    ) -> Option<Found> {
        let question = Question::Block(frame.serial, block, limit);
        self.once(question, depth, |search| search.decided(frame, block, limit, depth))
    }

    fn decided(
        &mut self,
        frame: &'e CodeFrame<'r>,
        block: BlockId,
        limit: u64,
        depth: u32,
    ) -> Option<Found> {
        let history = frame.history.as_ref()?;
        let function = frame.info.function;
        // What a call that may throw stands behind is no more decided by that than by what was called before it.
        let tree = PostDominators::without_exceptions(function, block);
        let tree = tree.unwrap_or_else(|| PostDominators::of(function));
        let (mut block, mut limit) = (block, limit);
        loop {
            let (&branch, record) = history
                .branches
                .iter()
                .filter(|(branch, record)| record.sequence < limit && tree.decides(**branch, block))
                .max_by_key(|(_, record)| record.sequence)?;
            if let Some(condition) = record.condition {
                return Some(Found { condition, path_condition: record.path_condition });
            }
            let origin = self.branch_origin(frame, branch, record.sequence, depth);
            if origin.is_some() {
                return origin;
            }
            (block, limit) = (branch, record.sequence);
        }
    }

    /// Where a concrete branch condition came from.
    fn branch_origin(
        &mut self,
        frame: &'e CodeFrame<'r>,
        block: BlockId,
        limit: u64,
        depth: u32,
    ) -> Option<Found> {
        let function = frame.info.function;
        let terminator = function.blocks.get(block.index())?.terminator();
        match &function.instructions.get(terminator.index())?.kind {
            InstKind::CondBr(condition, ..) | InstKind::Switch(condition, ..) => {
                self.origin(frame, *condition, limit, depth + 1)
            }
            _ => None,
        }
    }

    /// The symbolic branch that decided which concrete value an operand has: through phis, the
    /// last store to a stack object, and returned values.
    fn origin(
        &mut self,
        frame: &'e CodeFrame<'r>,
        operand: Operand,
        limit: u64,
        depth: u32,
    ) -> Option<Found> {
        let Operand::Inst(id) = operand else { return None };
        let question = Question::Value(frame.serial, id, limit);
        self.once(question, depth, |search| search.value_origin(frame, id, limit, depth + 1))
    }

    fn value_origin(
        &mut self,
        frame: &'e CodeFrame<'r>,
        id: InstId,
        limit: u64,
        depth: u32,
    ) -> Option<Found> {
        let function = frame.info.function;
        match &function.instructions.get(id.index())?.kind {
            InstKind::Phi(incoming) => self.phi_origin(frame, id, incoming, limit, depth),
            InstKind::Load { address, .. } => self.load_origin(frame, *address, limit, depth),
            InstKind::Call(_) | InstKind::Invoke { .. } => {
                let returned = frame.history.as_ref()?.returned.get(&id)?;
                let end = returned.info.function.instructions.get(returned.next.index())?;
                let InstKind::Ret(Some(value)) = end.kind else { return None };
                let inner = self.origin(returned, value, limit, depth);
                inner.or_else(|| self.deciding(returned, returned.block, limit, depth))
            }
            kind => value_operands(kind)
                .into_iter()
                .find_map(|operand| self.origin(frame, operand, limit, depth)),
        }
    }

    fn phi_origin(
        &mut self,
        frame: &'e CodeFrame<'r>,
        id: InstId,
        incoming: &[(BlockId, Operand)],
        limit: u64,
        depth: u32,
    ) -> Option<Found> {
        let history = frame.history.as_ref()?;
        let block = frame.info.function.block_of(id)?;
        let from = *history.entered_from.get(&block)?;
        let (_, operand) = incoming.iter().find(|(block, _)| *block == from)?;
        if let Some(found) = self.origin(frame, *operand, limit, depth) {
            return Some(found);
        }
        // The branch at the end of the block it came from, or those that led to it.
        match history.branches.get(&from).filter(|record| record.sequence < limit) {
            Some(record) if record.condition.is_some() => {
                let path_condition = record.path_condition;
                record.condition.map(|condition| Found { condition, path_condition })
            }
            _ => self.deciding(frame, from, limit, depth),
        }
    }

    fn load_origin(
        &mut self,
        frame: &'e CodeFrame<'r>,
        address: Operand,
        limit: u64,
        depth: u32,
    ) -> Option<Found> {
        let (engine, thread) = (self.engine, self.thread);
        let mut constants = crate::image::Constants::default();
        let pointer = operand_value(thread, frame, engine.image, &mut constants, address);
        let recorded = pointer.scalar()?.as_const()? as u64;
        let internal = engine.lookup(thread.index, recorded)?;
        let store = *thread.last_store.get(&internal)?;
        let writer =
            std::iter::once(frame).chain(thread.frames.iter().filter_map(|frame| match frame {
                Frame::Code(frame) => Some(&**frame),
                Frame::External(_) => None,
            }));
        let (writer, callers) =
            writer.into_iter().find_map(|frame| find_frame(frame, store.frame, DEEPEST))?;
        let instruction = writer.info.function.instructions.get(store.instruction.index())?;
        let by_value = match instruction.kind {
            InstKind::Store { value, .. } => self.origin(writer, value, limit, depth),
            // What a call wrote depends on its being made.
            _ => None,
        };
        let decided = by_value.or_else(|| self.deciding(writer, store.block, limit, depth));
        // Where nothing in the function decided, its call was decided about.
        decided.or_else(|| {
            callers.iter().rev().find_map(|(caller, call)| {
                let block = caller.info.function.block_of(*call)?;
                self.deciding(caller, block, limit, depth)
            })
        })
    }
}

/// A frame that called another one, and where.
type Caller<'f, 'r> = (&'f CodeFrame<'r>, InstId);

/// The frame with this number: this one, or one that returned to it, with those that called it, from this one on.
fn find_frame<'f, 'r>(
    frame: &'f CodeFrame<'r>,
    serial: u64,
    deepest: u32,
) -> Option<(&'f CodeFrame<'r>, Vec<Caller<'f, 'r>>)> {
    if frame.serial == serial {
        return Some((frame, Vec::new()));
    }
    let history = frame.history.as_ref().filter(|_| deepest > 0)?;
    history.returned.iter().find_map(|(call, returned)| {
        let (found, mut callers) = find_frame(returned, serial, deepest - 1)?;
        callers.insert(0, (frame, *call));
        Some((found, callers))
    })
}

/// The operands whose values a value is made of.
fn value_operands(kind: &InstKind) -> Vec<Operand> {
    match kind {
        InstKind::Binary(_, a, b) | InstKind::ICmp(_, a, b) | InstKind::FCmp(_, a, b) => {
            vec![*a, *b]
        }
        InstKind::Cast(_, a) | InstKind::FNeg(a) | InstKind::Freeze(a) => vec![*a],
        InstKind::Select(c, a, b) => vec![*c, *a, *b],
        InstKind::ExtractValue(a, _) => vec![*a],
        _ => Vec::new(),
    }
}
