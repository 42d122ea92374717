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
use super::meant::AccessKey;
use crate::access::STAMP_SLACK;
use crate::cells::SharedCell;
use crate::engine::{Engine, Pass};
use crate::recording::RecordedFailureKind;
use model::{CellId, EventKind, ExprId, FailureCondition, VarId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What is known of the objects that the failing thread may have used after they were freed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Freed {
    /// Such objects, of this walk; the next one is to see their accesses.
    pub found: BTreeSet<usize>,
    /// Those that an earlier walk found.
    pub suspects: BTreeSet<usize>,
    /// Accesses whose pointer is older than the object that lies there by now, and the object that
    /// they meant, as an earlier walk found.
    pub meant: Arc<FxHashMap<AccessKey, usize>>,
    /// As this walk finds.
    pub meant_now: FxHashMap<AccessKey, usize>,
    /// The failing thread's accesses to suspects.
    uses: Vec<Use>,
    /// "The address that the thread crashed at is that of no object": so near 0 that it comes of a null
    /// pointer.
    pub(super) null: Option<ExprId>,
}

/// An access to an object that had been freed, maybe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Use {
    event: At,
    object: usize,
    /// The clock tells that it came after the free.
    certain: bool,
    /// Another object lies there by then.
    taken: bool,
}

impl Engine<'_> {
    /// Does the failure look as if memory that was freed may have led to it? `certain` says that such
    /// memory was used: of many programs that check something that cannot be excluded.
    pub(crate) fn may_be_of_freed_memory(&self, t: usize, certain: bool) -> bool {
        let kind = self.failure_kind(t);
        let Some(kind) = kind.filter(|_| self.recording.common_clock) else { return false };
        let is_lost = kind == RecordedFailureKind::TimedOut;
        is_lost || ends_in_crash(kind) || (certain && ends_in_check(kind))
    }

    /// The same of a run whose walk has met the failure already, where memory is known to be misused.
    pub(crate) fn may_have_damaged_memory(&self) -> bool {
        let kind = self.limits.failure.as_ref().map(|failure| failure.kind);
        let fits = |kind| ends_in_crash(kind) || ends_in_check(kind);
        self.recording.common_clock && kind.is_some_and(fits)
    }

    /// Did the program crash, so that memory which was misused is as likely to be to blame as anything else?
    pub(crate) fn has_crashed(&self) -> bool {
        self.limits.failure.as_ref().is_some_and(|failure| ends_in_crash(failure.kind))
    }

    /// An access to an object, and when that was freed: may the thread have come too late?
    pub(crate) fn note_use_of_freed(&mut self, t: usize, object: usize, taken: bool) {
        let Some((thread, time)) = self.learned.heap.objects[object].freed else { return };
        let happened = self.happened(t);
        // Of a local variable's end no more is known than that it lies between two stamps.
        let by = self.learned.heap.objects[object].death.max(time);
        let certain = by.saturating_add(STAMP_SLACK) < happened.earliest;
        // Which variable is meant is certain, and a value that nobody wrote there tells.
        let likely = certain || self.learned.heap.is_local(object);
        if thread == t || time >= happened.latest || !self.may_be_of_freed_memory(t, likely) {
            return;
        }
        self.lifetime.freed.found.insert(object);
        if self.lifetime.freed.suspects.contains(&object) {
            let event = (t, self.out.event_count(t));
            self.lifetime.freed.uses.push(Use { event, object, certain, taken });
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
        (0..self.threads.len()).for_each(|t| self.overwrite_locals(t));
        if self.blame_gone_lock() {
            return true;
        }
        let strange = self.reads_of_what_nobody_wrote(condition);
        tracing::debug!(reads = strange.len(), "of what nobody wrote");
        let last = strange.iter().rfind(|read| read.vars.iter().any(|var| decisive.contains(var)));
        // A check fails for other reasons, too, and the clock alone does not tell which crashes are
        // due to what the allocator did.
        let crashed = self.limits.failure.as_ref().is_some_and(|f| ends_in_crash(f.kind));
        let first = strange.iter().find(|read| crashed && read.strange);
        let Some(chosen) = last.or(first) else { return false };
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
    /// the object was allocated, in the thread's order; and those that came after the free for certain,
    /// where another object lay there by then, or the log does not say what they gave.
    /// Of a local variable, also those that the failure would not have come of with a value that was written.
    fn reads_of_what_nobody_wrote(&mut self, failure: ExprId) -> Vec<StrangeRead> {
        let owners = self.owners();
        let mut uses = std::mem::take(&mut self.lifetime.freed.uses);
        uses.dedup();
        tracing::debug!(?uses, "uses of objects that may have been freed");
        let mut reads = Vec::new();
        let mut possible: FxHashMap<CellId, Option<FxHashSet<u128>>> = FxHashMap::default();
        for Use { event, object, certain, taken } in uses {
            let Some(kind) = self.out.event_kind(event.0, event.1) else { continue };
            let EventKind::Read { parts } = kind else { continue };
            // An access that is no event leaves its number to the next one.
            if !parts.iter().all(|part| owners.get(&part.cell) == Some(&object)) {
                continue;
            }
            possible.extend(parts.iter().map(|part| (part.cell, Some(FxHashSet::default()))));
            reads.push((event, object, (certain, taken), parts.clone()));
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
        let needs_another = |cell: CellId, var: VarId| {
            let known = possible.get(&cell).and_then(Option::as_ref);
            let decides = self.pool.variables(failure).contains(&var);
            let fails = |value: u128| {
                let read = |other: VarId| match other == var {
                    true => Some(value),
                    false => self.out.recorded(other),
                };
                self.pool.evaluate(failure, &read) != Some(0)
            };
            decides && known.is_some_and(|known| !known.iter().any(|value| fails(*value)))
        };
        let strange = reads.into_iter().filter_map(|(event, object, (certain, taken), parts)| {
            let local = self.learned.heap.is_local(object);
            let strange = parts.iter().any(|part| {
                is_strange(part.cell, part.var) || (local && needs_another(part.cell, part.var))
            });
            let told = parts.iter().all(|part| self.out.recorded(part.var).is_some());
            let vars = parts.iter().map(|part| part.var).collect();
            (strange || (certain && (taken || !told))).then_some(StrangeRead {
                event,
                object,
                strange,
                vars,
            })
        });
        strange.collect()
    }
}

struct StrangeRead {
    event: At,
    object: usize,
    /// By its value.
    strange: bool,
    vars: Vec<VarId>,
}

fn ends_in_crash(kind: RecordedFailureKind) -> bool {
    use RecordedFailureKind::{Abort, Exception, HeapCorruption, Signal};
    matches!(kind, Abort | Exception | HeapCorruption | Signal { .. })
}

/// Did the program find out itself that something was wrong?
fn ends_in_check(kind: RecordedFailureKind) -> bool {
    use RecordedFailureKind::{Assertion, Exit, Output, Reached, User};
    matches!(kind, Assertion | Exit { .. } | Output | Reached | User)
}
