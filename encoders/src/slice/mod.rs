//! Slicing: the part of a trace that decides whether a schedule follows the recorded paths and
//! fails.
//!
//! A schedule is possible, follows the paths and fails, or does not, whatever the reads return on
//! which neither a path condition nor the failure condition depends. Those reads go, with the
//! writes that no other read can see, and the critical sections in which nothing is left. A
//! path condition goes when all reads that it depends on have one value in every schedule.
//!
//! What went comes back by [`Slice::widen`]: every thread does it as soon as it can. A section that
//! goes has only such accesses in it, so that it can happen at one moment, at any one at which
//! its lock is free.
//!
//! Of a long run, the end alone may be enough: [`window`].

mod build;
mod check;
mod ends;
mod relevance;
mod widen;
mod window;

use crate::EncodeError;
use crate::barriers;
use crate::context::{Builder, Context};
use crate::fork_join;
use crate::locks::Regions;
use crate::validate;
pub use check::{BEFORE_CHECK, failing_at_check, up_to_check};
pub use ends::{ends, is_long, is_often_woken};
use model::{
    CellId, EventId, EventTrace, ReadRef, Thread, VarId, Variable, VariableOrigin, WriteSource,
};
use relevance::Relevant;
use rustc_hash::FxHashMap;
pub use window::window;

/// A part of an event trace. Identifiers of events, cells and variables are its own; threads and
/// objects are those of the whole trace.
#[derive(Clone, Debug, Default)]
pub struct Slice {
    /// The part, a trace like any other: each of its schedules that follows the paths can be widened
    /// to one of the whole trace that does the same, unless [`widen`](Self::widen) says otherwise,
    /// and what is left of a schedule of the whole trace is one of its own.
    pub trace: EventTrace,
    /// By event, which one it is of the whole trace; ascending.
    events: Vec<EventId>,
    /// By cell, which one it is of the whole trace.
    cells: Vec<CellId>,
    /// By variable, which one it is of the whole trace.
    variables: Vec<VarId>,
    /// The read parts that have another number in the whole trace.
    parts: FxHashMap<ReadRef, u32>,
    /// What comes before everything else in every schedule, in this order: of the end of a trace alone.
    before: Vec<EventId>,
    /// What comes behind everything else, likewise.
    after: Vec<EventId>,
}

/// The part of the trace that matters.
///
/// # Errors
/// When the trace does not make sense, as its verifier would have said.
pub fn slice(trace: &EventTrace) -> Result<Slice, EncodeError> {
    let context = sliced(trace)?;
    Ok(build::build(&context, &Relevant::of(&context)))
}

/// The same where it has fewer events than `most`; it is not made otherwise.
///
/// # Errors
/// As of [`slice`].
pub fn slice_below(trace: &EventTrace, most: usize) -> Result<Option<Slice>, EncodeError> {
    let context = sliced(trace)?;
    let relevant = Relevant::of(&context);
    let events = relevant.events.iter().filter(|stays| **stays).count();
    Ok((events < most).then(|| build::build(&context, &relevant)))
}

fn sliced(trace: &EventTrace) -> Result<Context<'_>, EncodeError> {
    validate::validate(trace)?;
    let mut context = Context::new(trace, Regions::of(trace)?);
    let mut ignored = Builder::default();
    fork_join::encode(&mut context, &mut ignored);
    barriers::encode(&mut context, &mut ignored);
    Ok(context)
}

impl Slice {
    /// Is there more of the run behind it?
    #[must_use]
    pub fn goes_on(&self) -> bool {
        !self.after.is_empty()
    }

    /// What comes before everything else in every schedule, in this order; it leaves the memory that is there from the
    /// start. Empty but for the end of a trace.
    #[must_use]
    pub fn before(&self) -> &[EventId] {
        &self.before
    }

    /// An event in the whole trace.
    ///
    /// # Panics
    /// When the event is not of the slice.
    #[must_use]
    pub fn event(&self, id: EventId) -> EventId {
        self.events[id.index()]
    }

    /// An event of the whole trace in the slice, where it is there.
    #[must_use]
    pub fn find(&self, id: EventId) -> Option<EventId> {
        self.events.binary_search(&id).ok().map(EventId::from_index)
    }

    /// A cell in the whole trace.
    ///
    /// # Panics
    /// When the cell is not of the slice.
    #[must_use]
    pub fn cell(&self, id: CellId) -> CellId {
        self.cells[id.index()]
    }

    /// A variable in the whole trace.
    ///
    /// # Panics
    /// When the variable is not of the slice.
    #[must_use]
    pub fn variable(&self, id: VarId) -> VarId {
        self.variables[id.index()]
    }

    /// A read in the whole trace.
    ///
    /// # Panics
    /// When the read is not of the slice.
    #[must_use]
    pub fn read(&self, read: ReadRef) -> ReadRef {
        let part = self.parts.get(&read).copied().unwrap_or(read.part);
        ReadRef { event: self.event(read.event), part }
    }

    /// A source in the whole trace; of the end of a trace, what is there from the start was left by what came
    /// [`before`](Self::before).
    ///
    /// # Panics
    /// When the source is not of the slice.
    #[must_use]
    pub fn source(&self, source: WriteSource) -> WriteSource {
        match source {
            WriteSource::Init => WriteSource::Init,
            WriteSource::Write(event) => WriteSource::Write(self.event(event)),
        }
    }

    /// The name of a cell of the whole trace in the slice; `cells` are those that have one.
    fn named(&mut self, id: CellId, cells: &mut FxHashMap<CellId, CellId>) -> CellId {
        let next = CellId::from_index(self.cells.len());
        let found = *cells.entry(id).or_insert(next);
        if found == next {
            self.cells.push(id);
        }
        found
    }

    /// Makes the slice's variables, once its events and their names are there. `cell` is the name of a cell whose unknown
    /// initial value may be one.
    fn make_variables(&mut self, whole: &EventTrace, cell: impl Fn(CellId) -> Option<CellId>) {
        let mut reads: FxHashMap<VarId, ReadRef> = FxHashMap::default();
        for event in &self.trace.events {
            for (part, read) in (0u32..).zip(event.kind.reads()) {
                reads.insert(read.var, ReadRef { event: event.id, part });
            }
        }
        for (index, of) in self.variables.iter().enumerate() {
            let id = VarId::from_index(index);
            let of = &whole.variables[of.index()];
            let origin = match (reads.get(&id), of.origin) {
                (Some(&ReadRef { event, part }), _) => VariableOrigin::Read { event, part },
                (None, VariableOrigin::Init(of)) => {
                    cell(of).map_or(VariableOrigin::Input, VariableOrigin::Init)
                }
                (None, _) => VariableOrigin::Input,
            };
            self.trace.variables.push(Variable { id, origin, ..*of });
        }
    }
}

/// By thread and place in it, how many of the events before that place stay.
fn kept_before(trace: &EventTrace, stays: &[bool]) -> Vec<Vec<u32>> {
    let of = |thread: &Thread| {
        let mut count = 0;
        let counts = thread.events.iter().map(|id| {
            count += u32::from(stays[id.index()]);
            count
        });
        std::iter::once(0).chain(counts).collect()
    };
    trace.threads.iter().map(of).collect()
}
