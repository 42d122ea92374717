//! Collects events, variables, cells, objects and path conditions while threads are walked one
//! after the other, and puts them together as an event trace.

use crate::containers::is_of_library;
use ir::types::BlockId;
use model::trace::ValueDisplay;
use model::{
    Cell, CellId, ConditionId, Event, EventId, EventKind, EventTrace, ExprId, ExprPool, Failure,
    FailureCondition, Interval, Object, ObjectId, ObjectKind, Outcome, PathCondition,
    PathConditionKind, Piece, Site, Stack, Thread, ThreadId, VarId, Variable, VariableOrigin,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use std::ops::Range;
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
    /// Counts conditions of the thread.
    number: usize,
    position: u32,
    pub expr: ExprId,
    kind: PathConditionKind,
    site: Site,
    /// The branch, as the number of its function's frame and its block there.
    pub branch: Option<(u64, BlockId)>,
    pub is_beside_wait: bool,
    /// False for the one that became φbug.
    pub kept: bool,
    /// It says something of this variable alone, and is of no use where nobody asks for that.
    tied: Option<VarId>,
}

/// One thread's events; event identifiers inside are numbers in the thread. These go on where events
/// were taken out ([`Builder::remove`]), so that what was noted of others stays right.
#[derive(Default)]
pub(crate) struct ThreadEvents {
    pub events: Vec<Event>,
    /// By event, when it happened.
    pub intervals: Vec<Interval>,
    pub conditions: Vec<PendingCondition>,
    /// How many events and conditions were made, those that were taken out included.
    made: (u32, usize),
}

impl ThreadEvents {
    fn position(&self, number: u32) -> Option<usize> {
        place_of(&self.events, number, |event| event.index)
    }

    /// What the event of this number is called.
    pub fn name_of(&self, number: u32) -> Option<&str> {
        self.events.get(self.position(number)?)?.name.as_deref()
    }

    /// The numbers of the events that are left; none where they are their places.
    fn numbers(&self) -> Option<Vec<u32>> {
        let all = self.events.len() == self.made.0 as usize;
        (!all).then(|| self.events.iter().map(|event| event.index).collect())
    }

    /// The number of the last condition with this expression.
    pub fn number_of(&self, expr: ExprId) -> Option<usize> {
        let found = self.conditions.iter().rev().find(|condition| condition.expr == expr);
        found.map(|condition| condition.number)
    }

    /// The condition with a number.
    pub fn condition_mut(&mut self, number: usize) -> Option<&mut PendingCondition> {
        let at = place_of(&self.conditions, number, |condition| condition.number)?;
        self.conditions.get_mut(at)
    }

    /// Has the thread no event between two conditions?
    pub fn at_once(&self, one: usize, other: usize) -> bool {
        let position = |number: usize| {
            let at = place_of(&self.conditions, number, |condition| condition.number);
            at.and_then(|at| self.conditions.get(at)).map(|condition| condition.position)
        };
        position(one).is_some_and(|at| position(other) == Some(at))
    }
}

/// Where the entry with a number stands among those that are sorted by it. The last one is asked for most: to look for
/// it among hundreds of thousands is to wait for memory at each step.
fn place_of<T, N: Ord>(entries: &[T], number: N, of: impl Fn(&T) -> N) -> Option<usize> {
    match entries.last() {
        Some(last) if of(last) == number => Some(entries.len() - 1),
        _ => entries.binary_search_by_key(&number, of).ok(),
    }
}

/// Where the events are in the finished trace, by their numbers.
#[derive(Default)]
pub(crate) struct Numbering(Vec<Option<Vec<u32>>>);

impl Numbering {
    /// The index in the thread of an event by its number. One that was taken out has the index of
    /// the next one.
    pub fn index(&self, thread: usize, number: u32) -> u32 {
        match self.0.get(thread) {
            Some(Some(numbers)) => numbers.partition_point(|&other| other < number) as u32,
            _ => number,
        }
    }
}

/// Does a name of the same object say more than another one?
pub(crate) fn says_more(name: &str, other: &str) -> bool {
    let rank = |name: &str| (!is_of_library(name, None), name_quality(name));
    rank(name) > rank(other)
}

/// What the map is called of which this is a part that it has for itself.
fn map_of(name: &str) -> Option<&str> {
    const PARTS: [&str; 4] = [".ctrl", ".bucket_mask", ".growth_left", ".items"];
    let at = PARTS.iter().filter_map(|part| name.find(part)).min()?;
    name.get(..at).filter(|map| !map.is_empty())
}

/// How much a name says: a path of members more than an address computation, and that more than
/// a bare address.
pub(crate) fn name_quality(name: &str) -> u8 {
    match name {
        name if name.starts_with("*0x") || name.starts_with("0x") => 0,
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
    /// The variables made of late, while somebody wants to know ([`crate::idle`]).
    pub recent: Option<Vec<VarId>>,
    /// By width, variables that nothing refers to any more.
    free: FxHashMap<u32, Vec<VarId>>,
    /// What functions of libraries worked out.
    outcomes: Vec<Outcome>,
    /// These, and the variables that went in: they are not used again.
    worked_out: FxHashSet<VarId>,
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
        (stack, continued): (Stack, u16),
        name: Option<String>,
        interval: Interval,
    ) -> u32 {
        let log = &mut self.threads[thread];
        log.intervals.push(interval);
        let index = log.made.0;
        log.made.0 += 1;
        let name = name.map(|name| shared(&mut self.names, &name));
        let stack = if stack.is_empty() { Stack::from([Site::default()]) } else { stack };
        log.events.push(Event {
            id: EventId(index),
            thread: ThreadId::from_index(thread),
            index,
            kind,
            stack,
            continued,
            name,
            words: Arc::default(),
            pieces: Arc::default(),
            drains: false,
        });
        index
    }

    /// Says of which scalars an access consists.
    pub fn set_pieces(&mut self, thread: usize, index: u32, pieces: Arc<[Piece]>) {
        let Some(log) = self.threads.get_mut(thread) else { return };
        if let Some(event) = log.position(index).and_then(|at| log.events.get_mut(at)) {
            event.pieces = pieces;
        }
    }

    /// Says that nothing that the thread wrote is seen late behind it.
    pub fn set_draining(&mut self, thread: usize, index: u32) {
        let Some(log) = self.threads.get_mut(thread) else { return };
        if let Some(event) = log.position(index).and_then(|at| log.events.get_mut(at)) {
            event.drains = true;
        }
    }

    /// Says what the functions of its stack call what an event is about.
    pub fn set_words(&mut self, thread: usize, index: u32, words: Arc<[Option<Arc<str>>]>) {
        let Some(log) = self.threads.get_mut(thread) else { return };
        if let Some(event) = log.position(index).and_then(|at| log.events.get_mut(at)) {
            event.words = words;
        }
    }

    /// The name of an event, if it has one of its own.
    pub fn event_name(&self, thread: usize, index: u32) -> Option<&str> {
        let log = self.threads.get(thread)?;
        log.events.get(log.position(index)?)?.name.as_deref()
    }

    /// What an event does.
    pub fn event_kind(&self, thread: usize, index: u32) -> Option<&EventKind> {
        let log = self.threads.get(thread)?;
        log.events.get(log.position(index)?).map(|event| &event.kind)
    }

    /// What a read gave comes from no write: its variables are inputs from now on. Gives them, each with the
    /// new variable that has what the read gives in a schedule.
    pub fn read_anything(&mut self, thread: usize, index: u32) -> Vec<(VarId, VarId)> {
        let mut renamed = Vec::new();
        let Some(log) = self.threads.get_mut(thread) else { return renamed };
        let event = log.position(index).and_then(|at| log.events.get_mut(at));
        let Some(EventKind::Read { parts }) = event.map(|event| &mut event.kind) else {
            return renamed;
        };
        for part in parts {
            let Some(given) = self.variables.get_mut(part.var.index()) else { continue };
            let origin = std::mem::replace(&mut given.origin, Origin::Input);
            let width = given.width;
            let new = VarId::from_index(self.variables.len());
            renamed.push((part.var, new));
            part.var = new;
            self.variables.push(PendingVariable { width, origin, recorded: None });
        }
        renamed
    }

    /// Is an event's name, and where it happened, of this kind? One without a name is.
    pub fn event_is(
        &self,
        thread: usize,
        index: u32,
        kind: impl Fn(&str, Option<&Site>) -> bool,
    ) -> bool {
        let log = self.threads.get(thread);
        let event = log.and_then(|log| log.events.get(log.position(index)?));
        event.is_some_and(|event| {
            event.name.as_deref().is_none_or(|name| kind(name, event.stack.first()))
        })
    }

    /// Gives an event a name.
    pub fn name_event(&mut self, thread: usize, index: u32, name: &str) {
        let Some(log) = self.threads.get_mut(thread) else { return };
        if let Some(event) = log.position(index).and_then(|at| log.events.get_mut(at)) {
            event.name = Some(shared(&mut self.names, name));
        }
    }

    /// Gives an event with a name another one, if there is one: `rename` gets the name and where the
    /// event happened.
    pub fn rename_event(
        &mut self,
        thread: usize,
        index: u32,
        rename: impl Fn(&str, Option<&Site>) -> Option<String>,
    ) {
        let Some(log) = self.threads.get_mut(thread) else { return };
        let Some(event) = log.position(index).and_then(|at| log.events.get_mut(at)) else { return };
        let old = event.name.as_deref();
        if let Some(name) = old.and_then(|name| rename(name, event.stack.first())) {
            event.name = Some(shared(&mut self.names, &name));
        }
    }

    /// The thread's last event is where another one of its was.
    pub fn move_last(&mut self, thread: usize, to: u32) {
        let Some(log) = self.threads.get_mut(thread) else { return };
        let stack = log.position(to).and_then(|at| log.events.get(at)).map(|it| it.stack.clone());
        if let (Some(stack), Some(last)) = (stack, log.events.last_mut()) {
            last.stack = stack;
        }
    }

    /// The call stacks of a thread's events.
    pub fn stacks(&self, thread: usize) -> impl Iterator<Item = &Stack> {
        let log = self.threads.get(thread);
        log.into_iter().flat_map(|log| log.events.iter().map(|event| &event.stack))
    }

    /// Takes the sites of these files away from the top of a thread's last event's stack, unless
    /// all are.
    pub fn strip_last_stack(&mut self, thread: usize, is_foreign: &dyn Fn(&str) -> bool) {
        let Some(event) = self.threads[thread].events.last_mut() else { return };
        let kept = event.stack.iter().position(|site| !is_foreign(&site.file));
        event.stack = event.stack.without_innermost(kept.unwrap_or(0));
    }

    /// The number of the thread's next event.
    pub fn event_count(&self, thread: usize) -> u32 {
        self.threads[thread].made.0
    }

    pub fn variable(&mut self, width: u32, origin: Origin, recorded: Option<u128>) -> VarId {
        let id = self.lasting_variable(width, origin, recorded);
        if let Some(recent) = &mut self.recent {
            recent.push(id);
        }
        id
    }

    /// A variable of no moment of a walk.
    fn lasting_variable(&mut self, width: u32, origin: Origin, recorded: Option<u128>) -> VarId {
        let pending = PendingVariable { width, origin, recorded };
        if let Some(id) = self.free.get_mut(&width).and_then(Vec::pop)
            && let Some(variable) = self.variables.get_mut(id.index())
        {
            *variable = pending;
            return id;
        }
        let id = VarId::from_index(self.variables.len());
        self.variables.push(pending);
        id
    }

    /// Nothing refers to these variables: they are used again.
    pub fn release(&mut self, variables: &[VarId]) {
        for id in variables {
            let Some(variable) = self.variables.get_mut(id.index()) else { continue };
            *variable =
                PendingVariable { width: variable.width, origin: Origin::Input, recorded: None };
            if self.worked_out.contains(id) {
                continue;
            }
            self.free.entry(variable.width).or_default().push(*id);
        }
    }

    /// Takes events and conditions of a thread out, given by their places.
    pub fn remove(&mut self, thread: usize, events: Range<usize>, conditions: Range<usize>) {
        let log = &mut self.threads[thread];
        log.events.drain(events.clone());
        log.intervals.drain(events);
        log.conditions.drain(conditions);
    }

    /// Where all events will be. To be asked for when no more are taken out.
    pub fn numbering(&self) -> Numbering {
        Numbering(self.threads.iter().map(ThreadEvents::numbers).collect())
    }

    pub fn recorded(&self, id: VarId) -> Option<u128> {
        self.variables.get(id.index())?.recorded
    }

    /// Is it the value of a read, or does it follow from such values?
    pub fn is_shared(&self, id: VarId) -> bool {
        let is_read = |it: &PendingVariable| matches!(it.origin, Origin::Read { .. });
        self.worked_out.contains(&id) || self.variables.get(id.index()).is_some_and(is_read)
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
            let var = self.lasting_variable(width, Origin::Init(id), None);
            pool.var(var, width)
        });
        self.cells.push(Cell { id, width, init, name, display });
        id
    }

    pub fn object(&mut self, kind: ObjectKind, name: String) -> ObjectId {
        let id = ObjectId::from_index(self.objects.len());
        self.objects.push(Object { id, kind, name, addresses: None });
        id
    }

    /// An object of memory that lay there in the recorded run.
    pub fn memory(&mut self, kind: ObjectKind, name: String, addresses: Range<u64>) -> ObjectId {
        let id = self.object(kind, name);
        if let Some(object) = self.objects.get_mut(id.index()) {
            object.addresses = Some(addresses);
        }
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
        let log = &mut self.threads[thread];
        let number = log.made.1;
        log.made.1 += 1;
        log.conditions.push(PendingCondition {
            number,
            position,
            expr,
            kind,
            site,
            branch: None,
            is_beside_wait: false,
            kept: true,
            tied: None,
        });
        number
    }

    /// A variable that is the same wherever the same goes in.
    pub fn outcome(&mut self, pool: &ExprPool, var: VarId, inputs: Arc<[ExprId]>) {
        // What one call worked out has the same inputs.
        let is_known = self.outcomes.last().is_some_and(|last| Arc::ptr_eq(&last.inputs, &inputs));
        if !is_known {
            self.worked_out.extend(inputs.iter().flat_map(|input| pool.variables(*input)));
        }
        self.worked_out.insert(var);
        self.outcomes.push(Outcome { var, inputs });
    }

    /// What is known of an outcome: no condition of the path, and only there where something depends on it.
    pub fn tie(&mut self, thread: usize, var: VarId, expr: ExprId, site: Site) {
        let number = self.condition(thread, expr, PathConditionKind::Assumption, site);
        if let Some(condition) = self.threads[thread].condition_mut(number) {
            condition.tied = Some(var);
        }
    }

    /// Leaves out the outcomes on which nothing depends.
    fn leave_outcomes_out(&mut self, exprs: &ExprPool, failure: Option<&Failure>) {
        if self.outcomes.is_empty() {
            return;
        }
        // What a loop computes of all that it read is in every round's condition: nothing is looked at twice.
        let mut seen = vec![false; exprs.len()];
        let mut needed: FxHashSet<VarId> = FxHashSet::default();
        let mut look = |asked: &mut dyn Iterator<Item = ExprId>| {
            exprs.each_variable(asked, &mut seen, |var| _ = needed.insert(var));
            needed.clone()
        };
        let logs = &self.threads;
        let conditions = logs.iter().flat_map(|log| &log.conditions);
        let conditions = conditions.filter(|it| it.kept && it.tied.is_none()).map(|it| it.expr);
        let writes = logs.iter().flat_map(|log| &log.events).flat_map(|it| it.kind.writes());
        let mut failing = failure.map(|failure| failure.condition.clone());
        let failing = failing.iter_mut().flat_map(FailureCondition::values_mut).map(|it| *it);
        let mut known = look(&mut conditions.chain(writes.map(|write| write.value)).chain(failing));
        loop {
            let before = known.len();
            let asked = self.outcomes.iter().filter(|outcome| known.contains(&outcome.var));
            let mut inputs: Vec<&Arc<[ExprId]>> = asked.map(|outcome| &outcome.inputs).collect();
            inputs.dedup_by(|one, other| Arc::ptr_eq(one, other));
            let more = look(&mut inputs.into_iter().flat_map(|inputs| inputs.iter().copied()));
            known = more;
            if known.len() == before {
                break;
            }
        }
        self.outcomes.retain(|outcome| known.contains(&outcome.var));
        for condition in self.threads.iter_mut().flat_map(|log| &mut log.conditions) {
            condition.kept &= condition.tied.is_none_or(|var| known.contains(&var));
        }
    }

    /// Gives an event without a good name of its own the name of the one cell that it touches, or of its lock as
    /// another thread calls it.
    fn name_by_target(&mut self, event: &mut Event) {
        if let Some(object) = event.kind.object() {
            let Some(object) = self.objects.get(object.index()) else { return };
            // Memory is named by where it was allocated, which says less than any pointer to it.
            if matches!(object.kind, ObjectKind::Heap | ObjectKind::Local) {
                return;
            }
            let poor = |name: &str| name_quality(name) < name_quality(&object.name);
            if event.name.as_deref().is_some_and(poor) {
                event.name = Some(shared(&mut self.names, &object.name));
            }
            return;
        }
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

    /// A cell that is a part of a scalar, as where a call changed some bytes of it alone, is called what the accesses
    /// to the whole scalar call it, unless its own name says something.
    fn name_parts(&mut self) {
        /// A scalar has no more bits.
        const SCALAR: u32 = 64;
        let mut found: FxHashMap<CellId, (usize, Arc<str>)> = FxHashMap::default();
        for event in self.threads.iter().flat_map(|log| &log.events) {
            // Most accesses are to one cell.
            if event.kind.reads().len().max(event.kind.writes().len()) < 2 {
                continue;
            }
            let Some(name) = event.name.as_ref().filter(|name| name_quality(name) > 0) else {
                continue;
            };
            let reads = event.kind.reads().iter().map(|part| part.cell);
            let cells = reads.chain(event.kind.writes().iter().map(|part| part.cell));
            let cells: BTreeSet<CellId> = cells.collect();
            let widths =
                cells.iter().filter_map(|id| self.cells.get(id.index())).map(|cell| cell.width);
            if cells.len() < 2 || widths.sum::<u32>() > SCALAR {
                continue;
            }
            for &id in &cells {
                let known = found.entry(id).or_insert_with(|| (cells.len(), Arc::clone(name)));
                if cells.len() < known.0 {
                    *known = (cells.len(), Arc::clone(name));
                }
            }
        }
        for (id, (_, name)) in found {
            if let Some(cell) =
                self.cells.get_mut(id.index()).filter(|cell| name_quality(&cell.name) == 0)
            {
                cell.name = name.to_string();
            }
        }
    }

    /// How a map of Rust's library finds what it keeps is its own affair: what it has for that is called as the map, or as the
    /// map that the same line has to do with.
    fn name_maps(&mut self) {
        let inside = |event: &Event| {
            let mut inside = event.stack.iter().take(event.depth());
            inside.any(|site| site.file.contains("/hashbrown-"))
        };
        let leads = |name: &str| name.contains('.') && name_quality(name) == name_quality("q->n");
        let mut cells: BTreeSet<CellId> = BTreeSet::new();
        let mut lines: FxHashMap<Site, Arc<str>> = FxHashMap::default();
        let names = &mut self.names;
        let mut named = |name: &str| shared(names, name);
        for event in self.threads.iter_mut().flat_map(|log| &mut log.events).filter(|it| inside(it))
        {
            cells.extend(event.kind.reads().iter().map(|part| part.cell));
            cells.extend(event.kind.writes().iter().map(|part| part.cell));
            if let Some(map) = event.name.as_deref().and_then(map_of) {
                event.name = Some(named(map));
            }
            if let Some(map) = event.name.as_ref().filter(|name| leads(name)) {
                lines.entry(event.site().clone()).or_insert_with(|| Arc::clone(map));
            }
        }
        for event in self.threads.iter_mut().flat_map(|log| &mut log.events).filter(|it| inside(it))
        {
            if !event.name.as_deref().is_some_and(leads)
                && let Some(map) = lines.get(event.site())
            {
                event.name = Some(Arc::clone(map));
            }
        }
        for id in cells {
            if let Some(cell) = self.cells.get_mut(id.index())
                && let Some(map) = map_of(&cell.name)
            {
                cell.name = map.to_owned();
            }
        }
    }

    /// Puts everything together. `threads` are the model's threads without their events.
    pub fn finish(
        mut self,
        exprs: ExprPool,
        mut threads: Vec<Thread>,
        failure: Option<(usize, Failure)>,
    ) -> EventTrace {
        self.leave_outcomes_out(&exprs, failure.as_ref().map(|(_, failure)| failure));
        let mut first = Vec::with_capacity(self.threads.len());
        let mut total = 0u32;
        for thread in &self.threads {
            first.push(total);
            total += thread.events.len() as u32;
        }
        self.name_parts();
        self.name_maps();
        let numbering = self.numbering();
        let global = |thread: usize, event: u32| {
            EventId(first.get(thread).copied().unwrap_or(0) + numbering.index(thread, event))
        };
        let mut events = Vec::with_capacity(total as usize);
        let mut conditions = Vec::new();
        let mut intervals = Vec::with_capacity(total as usize);
        for (index, log) in std::mem::take(&mut self.threads).into_iter().enumerate() {
            for mut event in log.events {
                self.name_by_target(&mut event);
                event.id = global(index, event.index);
                event.index = numbering.index(index, event.index);
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
                    position: numbering.index(index, condition.position),
                    expr: condition.expr,
                    kind: condition.kind,
                    site: condition.site,
                    is_beside_wait: condition.is_beside_wait,
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
            lifetimes: Vec::new(),
            outcomes: self.outcomes,
            given: Vec::new(),
            forked: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{ReadPart, WritePart};

    /// A call changed the first byte of an `int` alone, which is read as a whole.
    #[test]
    fn a_part_of_a_scalar_is_called_what_the_scalar_is_called() {
        let (mut out, mut pool) = (Builder::new(1), ExprPool::default());
        let named = |name: &str| name.to_owned();
        let mut cell = |out: &mut Builder, width, name| {
            out.cell(&mut pool, width, None, named(name), ValueDisplay::Signed)
        };
        let first = cell(&mut out, 8, "*0x7f0010");
        let rest = cell(&mut out, 24, "*0x7f0011");
        let other = cell(&mut out, 32, "*0x7f0020");
        let value = pool.constant(8, 3);
        let mut add = |kind, name: Option<&str>| {
            let interval = Interval::default();
            let stack = (Stack::default(), Event::ALL_CONTINUED);
            out.event(0, kind, stack, name.map(named), interval);
        };
        let write = |cell| EventKind::Write { parts: vec![WritePart { cell, value }] };
        add(write(first), None);
        add(write(other), None);
        let part = |cell| ReadPart { cell, var: VarId(0) };
        add(EventKind::Read { parts: vec![part(first), part(rest)] }, Some("tm->tm_hour"));
        out.name_parts();
        let names: Vec<&str> = out.cells.iter().map(|cell| &*cell.name).collect();
        assert_eq!(names, ["tm->tm_hour", "tm->tm_hour", "*0x7f0020"]);
    }
}
