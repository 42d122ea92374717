//! A crash whose cause is that the thread used an object that another one had freed, in a run that
//! was not recorded to fail at such an access.
//!
//! The clock tells which objects the failing thread may have used after they were freed. Where there
//! are some, the run is walked again with their accesses as events, and where the failing thread then
//! read from one of them what nobody wrote there, the allocator did: φbug is that the free comes
//! before that read. What such reads gave are inputs, since no order of events tells. Where the thread
//! crashed at an address that it had read so, a null pointer that it reads before the free, because what
//! takes the object apart has been there, is a failure as well.

use super::lifetime::At;
use crate::cells::SharedCell;
use crate::engine::{Engine, Pass};
use crate::recording::RecordedFailureKind;
use model::{CellId, EventKind, ExprId, FailureCondition, VarId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;

/// What is known of the objects that the failing thread may have used after they were freed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Freed {
    /// Such objects, of this walk; the next one is to see their accesses.
    pub found: BTreeSet<usize>,
    /// Those that an earlier walk found.
    pub suspects: BTreeSet<usize>,
    /// The failing thread's accesses to suspects, with the object.
    uses: Vec<(At, usize)>,
    /// "The address that the thread crashed at is that of no object": so near 0 that it comes of a null
    /// pointer.
    pub(super) null: Option<ExprId>,
}

impl Engine<'_> {
    /// Does the failure look as if memory that was freed may have led to it?
    fn may_be_of_freed_memory(&self, t: usize) -> bool {
        use RecordedFailureKind::{Abort, Exception, HeapCorruption, Signal};
        let kind = self.failure_kind(t);
        self.recording.common_clock
            && matches!(kind, Some(Abort | Exception | HeapCorruption | Signal { .. }))
    }

    /// An access to an object, and when that was freed: may the thread have come too late?
    pub(crate) fn note_use_of_freed(&mut self, t: usize, object: usize) {
        let end = self.learned.heap.objects[object].freed;
        if !end.is_some_and(|(thread, time)| thread != t && time < self.happened(t).latest)
            || !self.may_be_of_freed_memory(t)
        {
            return;
        }
        self.lifetime.freed.found.insert(object);
        if self.lifetime.freed.suspects.contains(&object) {
            let next = self.out.event_count(t);
            self.lifetime.freed.uses.push(((t, next), object));
        }
    }

    /// Makes the use of an object that had been freed the failure, where one gave what nobody wrote.
    /// Did it?
    pub(crate) fn blame_freed(&mut self) -> bool {
        let Some((t, failure)) = &self.failure else { return false };
        let FailureCondition::Value(condition) = failure.condition else { return false };
        let t = *t;
        let mut decisive: FxHashSet<VarId> = self.pool.variables(condition).into_iter().collect();
        let arguments = self.threads[t].external_call().map(|call| call.arguments.clone());
        for argument in arguments.iter().flatten() {
            let expr = argument.scalar().and_then(|scalar| scalar.as_expr());
            decisive.extend(expr.map(|expr| self.pool.variables(expr)).unwrap_or_default());
        }
        let strange = self.reads_of_what_nobody_wrote();
        let last = strange.iter().rfind(|read| read.vars.iter().any(|var| decisive.contains(var)));
        let Some(chosen) = last.or(strange.first()) else { return false };
        if !self.lifetime.frees.contains_key(&chosen.object) {
            return false;
        }
        self.lifetime.access = Some((chosen.object, chosen.event));
        self.used_after_free = None;
        let mut fresh = FxHashMap::default();
        for read in &strange {
            fresh.extend(self.out.read_anything(read.event.0, read.event.1));
        }
        let null = self.lifetime.freed.null.take();
        self.lifetime.freed.null = null.map(|null| {
            self.pool.renamed(null, &|var: VarId| fresh.get(&var).copied().unwrap_or(var))
        });
        true
    }

    /// Of the cells in heap objects, in which.
    pub(crate) fn owners(&self) -> FxHashMap<CellId, usize> {
        let Pass::Symbolic(shared) = &self.pass else { return FxHashMap::default() };
        let owner =
            |cell: &SharedCell| Some((cell.id?, self.learned.heap.at_internal(cell.address)?));
        shared.cells.iter().filter_map(owner).collect()
    }

    /// The reads of suspects that gave a value that no event writes there and that was not there when
    /// the object was allocated, in the thread's order.
    fn reads_of_what_nobody_wrote(&mut self) -> Vec<StrangeRead> {
        let owners = self.owners();
        let mut uses = std::mem::take(&mut self.lifetime.freed.uses);
        uses.dedup();
        let mut reads = Vec::new();
        let mut possible: FxHashMap<CellId, Option<FxHashSet<u128>>> = FxHashMap::default();
        for (event, object) in uses {
            let Some(kind) = self.out.event_kind(event.0, event.1) else { continue };
            let EventKind::Read { parts } = kind else { continue };
            // An access that is no event leaves its number to the next one.
            if !parts.iter().all(|part| owners.get(&part.cell) == Some(&object)) {
                continue;
            }
            possible.extend(parts.iter().map(|part| (part.cell, Some(FxHashSet::default()))));
            reads.push((event, object, parts.clone()));
        }
        let mut values = Vec::new();
        for cell in &self.out.cells {
            if possible.contains_key(&cell.id) && self.pool.as_const(cell.init).is_some() {
                values.push((cell.id, cell.init));
            }
        }
        let events = self.out.threads.iter().flat_map(|thread| &thread.events);
        for part in events.flat_map(|event| event.kind.writes()) {
            if possible.contains_key(&part.cell) {
                values.push((part.cell, part.value));
            }
        }
        for (cell, value) in values {
            let value = self.recorded_value(value);
            let Some(known) = possible.get_mut(&cell) else { continue };
            match (known.as_mut(), value) {
                (Some(known), Some(value)) => {
                    known.insert(value);
                }
                _ => *known = None,
            }
        }
        let is_strange = |cell: CellId, var: VarId| {
            let value = self.out.recorded(var);
            let known = possible.get(&cell).and_then(Option::as_ref);
            value.zip(known).is_some_and(|(value, known)| !known.contains(&value))
        };
        let strange = reads.into_iter().filter_map(|(event, object, parts)| {
            parts.iter().any(|part| is_strange(part.cell, part.var)).then(|| StrangeRead {
                event,
                object,
                vars: parts.iter().map(|part| part.var).collect(),
            })
        });
        strange.collect()
    }
}

struct StrangeRead {
    event: At,
    object: usize,
    vars: Vec<VarId>,
}
