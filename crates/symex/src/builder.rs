//! Collects events, variables, cells, objects and path conditions while threads are walked one
//! after the other, and puts them together as an event trace.

use model::trace::ValueDisplay;
use model::{
    Cell, CellId, ConditionId, Event, EventId, EventKind, EventTrace, ExprId, ExprPool, Failure,
    Interval, Object, ObjectId, ObjectKind, PathCondition, PathConditionKind, Site, Thread,
    ThreadId, VarId, Variable, VariableOrigin,
};
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// Where a variable comes from, with the event as (thread, index in the thread).
#[derive(Clone, Copy, Debug)]
pub(crate) enum Origin {
    Read { thread: usize, event: u32, part: u32 },
    Init(CellId),
    Input,
}

struct PendingVariable {
    width: u32,
    origin: Origin,
    recorded: Option<u128>,
}

/// A path condition of one thread.
pub(crate) struct PendingCondition {
    position: u32,
    expr: ExprId,
    kind: PathConditionKind,
    site: Site,
    /// False for the one that became φbug.
    pub kept: bool,
}

/// One thread's events; event identifiers inside are indices in the thread.
#[derive(Default)]
pub(crate) struct ThreadEvents {
    pub events: Vec<Event>,
    /// By event, when it happened.
    pub intervals: Vec<Interval>,
    pub conditions: Vec<PendingCondition>,
}

/// How much a name says: a path of members more than an address computation, and that more than
/// a bare address.
pub(crate) fn name_quality(name: &str) -> u8 {
    match name {
        name if name.starts_with("*0x") => 0,
        name if name.starts_with("*(") => 1,
        name if name.starts_with('*') => 2,
        _ => 3,
    }
}

/// See the module.
#[derive(Default)]
pub(crate) struct Builder {
    pub threads: Vec<ThreadEvents>,
    variables: Vec<PendingVariable>,
    pub cells: Vec<Cell>,
    pub objects: Vec<Object>,
    /// The events' names, each once.
    names: FxHashSet<Arc<str>>,
}

/// The one copy of a name.
fn shared(names: &mut FxHashSet<Arc<str>>, name: &str) -> Arc<str> {
    if let Some(known) = names.get(name) {
        return Arc::clone(known);
    }
    let name: Arc<str> = name.into();
    names.insert(Arc::clone(&name));
    name
}

impl Builder {
    pub fn new(threads: usize) -> Self {
        Self { threads: (0..threads).map(|_| ThreadEvents::default()).collect(), ..Self::default() }
    }

    pub fn event(
        &mut self,
        thread: usize,
        kind: EventKind,
        stack: Arc<[Site]>,
        name: Option<String>,
        interval: Interval,
    ) -> u32 {
        self.threads[thread].intervals.push(interval);
        let events = &mut self.threads[thread].events;
        let index = events.len() as u32;
        let name = name.map(|name| shared(&mut self.names, &name));
        let stack = if stack.is_empty() { Arc::from([Site::default()]) } else { stack };
        events.push(Event {
            id: EventId(index),
            thread: ThreadId::from_index(thread),
            index,
            kind,
            stack,
            name,
        });
        index
    }

    /// The name of an event, if it has one of its own.
    pub fn event_name(&self, thread: usize, index: u32) -> Option<&str> {
        self.threads.get(thread)?.events.get(index as usize)?.name.as_deref()
    }

    /// Gives an event with a name another one, if there is one: `rename` gets the name and where the
    /// event happened.
    pub fn rename_event(
        &mut self,
        thread: usize,
        index: u32,
        rename: impl Fn(&str, Option<&Site>) -> Option<String>,
    ) {
        let events = self.threads.get_mut(thread).map(|thread| &mut thread.events);
        let Some(event) = events.and_then(|events| events.get_mut(index as usize)) else { return };
        let old = event.name.as_deref();
        if let Some(name) = old.and_then(|name| rename(name, event.stack.first())) {
            event.name = Some(shared(&mut self.names, &name));
        }
    }

    /// Takes the sites of these files away from the top of a thread's last event's stack, unless
    /// all are.
    pub fn strip_last_stack(&mut self, thread: usize, is_foreign: &dyn Fn(&str) -> bool) {
        let Some(event) = self.threads[thread].events.last_mut() else { return };
        let kept = event.stack.iter().position(|site| !is_foreign(&site.file));
        event.stack = event.stack[kept.unwrap_or(0)..].into();
    }

    pub fn event_count(&self, thread: usize) -> u32 {
        self.threads[thread].events.len() as u32
    }

    pub fn variable(&mut self, width: u32, origin: Origin, recorded: Option<u128>) -> VarId {
        let id = VarId::from_index(self.variables.len());
        self.variables.push(PendingVariable { width, origin, recorded });
        id
    }

    pub fn recorded(&self, id: VarId) -> Option<u128> {
        self.variables.get(id.index())?.recorded
    }

    pub fn set_recorded(&mut self, id: VarId, value: u128) {
        if let Some(variable) = self.variables.get_mut(id.index()) {
            variable.recorded = Some(value);
        }
    }

    pub fn cell(
        &mut self,
        pool: &mut ExprPool,
        width: u32,
        init: Option<ExprId>,
        name: String,
        display: ValueDisplay,
    ) -> CellId {
        let id = CellId::from_index(self.cells.len());
        let init = init.unwrap_or_else(|| {
            let var = self.variable(width, Origin::Init(id), None);
            pool.var(var, width)
        });
        self.cells.push(Cell { id, width, init, name, display });
        id
    }

    pub fn object(&mut self, kind: ObjectKind, name: String) -> ObjectId {
        let id = ObjectId::from_index(self.objects.len());
        self.objects.push(Object { id, kind, name });
        id
    }

    pub fn condition(
        &mut self,
        thread: usize,
        expr: ExprId,
        kind: PathConditionKind,
        site: Site,
    ) -> usize {
        let position = self.event_count(thread);
        let conditions = &mut self.threads[thread].conditions;
        conditions.push(PendingCondition { position, expr, kind, site, kept: true });
        conditions.len() - 1
    }

    /// Gives an event without a good name of its own the name of the one cell that it touches.
    fn name_by_cell(&mut self, event: &mut Event) {
        let reads = event.kind.reads().iter().map(|part| part.cell);
        let mut cells = reads.chain(event.kind.writes().iter().map(|part| part.cell));
        let Some(first) = cells.next() else { return };
        if cells.any(|cell| cell != first) {
            return;
        }
        let Some(cell) = self.cells.get(first.index()) else { return };
        if event.name.as_deref().is_none_or(|name| name_quality(name) < name_quality(&cell.name)) {
            event.name = Some(shared(&mut self.names, &cell.name));
        }
    }

    /// Puts everything together. `threads` are the model's threads without their events.
    pub fn finish(
        mut self,
        exprs: ExprPool,
        mut threads: Vec<Thread>,
        failure: Option<(usize, Failure)>,
    ) -> EventTrace {
        let mut first = Vec::with_capacity(self.threads.len());
        let mut total = 0u32;
        for thread in &self.threads {
            first.push(total);
            total += thread.events.len() as u32;
        }
        let global =
            |thread: usize, event: u32| EventId(first.get(thread).copied().unwrap_or(0) + event);
        let mut events = Vec::with_capacity(total as usize);
        let mut conditions = Vec::new();
        let mut intervals = Vec::with_capacity(total as usize);
        for (index, log) in std::mem::take(&mut self.threads).into_iter().enumerate() {
            for mut event in log.events {
                self.name_by_cell(&mut event);
                event.id = global(index, event.index);
                if let EventKind::Wake { began, .. } | EventKind::WaitTimedOut { began, .. } =
                    &mut event.kind
                {
                    *began = global(index, began.0);
                }
                if let Some(thread) = threads.get_mut(index) {
                    thread.events.push(event.id);
                }
                events.push(event);
            }
            intervals.extend(log.intervals);
            for condition in log.conditions.into_iter().filter(|condition| condition.kept) {
                conditions.push(PathCondition {
                    id: ConditionId::from_index(conditions.len()),
                    thread: ThreadId::from_index(index),
                    position: condition.position,
                    expr: condition.expr,
                    kind: condition.kind,
                    site: condition.site,
                });
            }
        }
        let variables = self.variables.into_iter().enumerate().map(|(index, variable)| Variable {
            id: VarId::from_index(index),
            width: variable.width,
            origin: match variable.origin {
                Origin::Read { thread, event, part } => {
                    VariableOrigin::Read { event: global(thread, event), part }
                }
                Origin::Init(cell) => VariableOrigin::Init(cell),
                Origin::Input => VariableOrigin::Input,
            },
            recorded: variable.recorded,
        });
        let variables = variables.collect();
        let failure = failure.map(|(thread, mut failure)| {
            failure.event = global(thread, failure.event.0);
            failure
        });
        EventTrace {
            exprs,
            threads,
            events,
            cells: self.cells,
            objects: self.objects,
            variables,
            conditions,
            failure,
            intervals,
        }
    }
}
