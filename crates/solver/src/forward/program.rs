//! What each thread does, compiled so that very many states can be taken a step further.
//!
//! A state is a row of words: how far each thread is, what the cells hold, what was read and is still
//! needed, and the state of the locks and their like. A word that no longer matters is 0, so that
//! states from which the same can follow are equal.

use super::functions::{Function, Functions};
use crate::actions::{Action, Actions, needs, reader};
use model::{EventId, EventTrace, ExprId, FailureCondition, Interval, VarId};
use rustc_hash::{FxHashMap, FxHashSet};

/// Wider values are not kept.
const WIDEST: u32 = 64;
/// A state takes no more words.
const MOST_WORDS: usize = 4_096;

/// A condition on what was read.
#[derive(Clone, Debug)]
pub(super) struct Condition {
    pub(super) function: Function,
    /// The only variable that it is about, where there is one.
    pub(super) only: Option<VarId>,
}

/// One event of a thread.
pub(super) struct Op {
    pub(super) event: EventId,
    /// Events of other threads that come before: the thread, and how many of its.
    needs: Vec<(u32, u32)>,
    action: Action,
    /// The wait that a release begins: its word, and what stands there then.
    begins: Option<(usize, u64)>,
    /// Cells, and where what was read goes.
    pub(super) reads: Vec<(usize, Option<usize>, VarId)>,
    pub(super) conditions: Vec<Condition>,
    pub(super) writes: Vec<(usize, Function)>,
    /// Words that do not matter any more.
    clears: Vec<usize>,
    /// Nothing is lost when it happens as soon as it can.
    is_eager: bool,
    pub(super) interval: Interval,
}

/// All threads.
pub(super) struct Program<'a> {
    pub(super) threads: Vec<Vec<Op>>,
    pub(super) functions: Functions<'a>,
    pub(super) events: usize,
    pub(super) first: Vec<u64>,
    /// The words of waits, one for each thread; none where nobody waits.
    waits: std::ops::Range<usize>,
}

impl<'a> Program<'a> {
    /// Compiles the threads of a trace with the orders that hold in every schedule, pairs of events;
    /// `None` where something has no place in a row of words.
    pub(super) fn new(trace: &'a EventTrace, certain: &[(u32, u32)]) -> Option<Self> {
        let layout = Layout::new(trace)?;
        let mut functions = Functions::new(&trace.exprs);
        let mut threads = Vec::with_capacity(trace.threads.len());
        for thread in &trace.threads {
            let mut ops = Vec::with_capacity(thread.events.len());
            for &event in &thread.events {
                ops.push(layout.op(trace, event, &mut functions)?);
            }
            narrow(&mut ops);
            threads.push(ops);
        }
        let mut program = Self {
            functions,
            events: trace.events.len(),
            first: layout.first(trace)?,
            waits: layout.actions.waits.clone(),
            threads,
        };
        for (after, needs) in needs(trace, certain) {
            let after = trace.event(after);
            program.threads[after.thread.index()][after.index as usize].needs = needs;
        }
        Some(program)
    }

    /// How many events have happened in a state.
    pub(super) fn done(&self, state: &[u64]) -> usize {
        state[..self.threads.len()].iter().map(|&done| done as usize).sum()
    }

    /// The thread's next event.
    fn next(&self, state: &[u64], thread: usize) -> Option<&Op> {
        self.threads[thread].get(state[thread] as usize)
    }

    /// When the first of the threads' next events has happened at the latest.
    pub(super) fn latest(&self, state: &[u64]) -> Option<u64> {
        let next = (0..self.threads.len()).filter_map(|thread| self.next(state, thread));
        next.map(|op| op.interval.latest).min()
    }

    /// The next event of a thread happens; false, and the state may be anything, where it cannot.
    pub(super) fn step(&mut self, state: &mut [u64], thread: usize) -> bool {
        let Some(op) = self.threads[thread].get(state[thread] as usize) else { return false };
        op.is_possible(state) && perform(op, &mut self.functions, &self.waits, state, thread)
    }

    /// Does nothing but a condition on what it reads keep a thread's next event back?
    pub(super) fn may_step(&self, state: &[u64], thread: usize) -> bool {
        self.next(state, thread).is_some_and(|op| op.is_possible(state))
    }

    /// Has everything happen that may as well happen now; `happened` is told which threads went on.
    pub(super) fn settle(&mut self, state: &mut [u64], mut happened: impl FnMut(usize)) {
        loop {
            let mut moved = false;
            for thread in 0..self.threads.len() {
                while let Some(op) = self.threads[thread].get(state[thread] as usize)
                    && op.is_eager
                    && op.is_possible(state)
                {
                    if !perform(op, &mut self.functions, &self.waits, state, thread) {
                        // Nothing was changed but where this event reads to, which was 0.
                        let read = op.reads.iter().filter_map(|&(_, word, _)| word);
                        read.for_each(|word| state[word] = 0);
                        break;
                    }
                    happened(thread);
                    moved = true;
                }
            }
            if !moved {
                return;
            }
        }
    }
}

impl Op {
    fn is_possible(&self, state: &[u64]) -> bool {
        let ordered = |&(thread, count): &(u32, u32)| state[thread as usize] >= u64::from(count);
        self.needs.iter().all(ordered) && self.action.is_possible(state)
    }
}

/// An event that is possible happens; false where a condition does not hold.
fn perform(
    op: &Op,
    functions: &mut Functions<'_>,
    waits: &std::ops::Range<usize>,
    state: &mut [u64],
    thread: usize,
) -> bool {
    for &(cell, word, _) in &op.reads {
        if let Some(word) = word {
            state[word] = state[cell];
        }
    }
    if !op.conditions.iter().all(|condition| functions.value(&condition.function, state) != 0) {
        return false;
    }
    // What is written depends on nothing that is written with it.
    for (cell, function) in &op.writes {
        state[*cell] = functions.value(function, state);
    }
    op.action.perform(state, waits, |_, _| {});
    if let Some((word, condition)) = op.begins {
        state[word] = condition;
    }
    op.clears.iter().for_each(|&word| state[word] = 0);
    state[thread] += 1;
    true
}

/// Narrows a thread's intervals by its program order.
fn narrow(ops: &mut [Op]) {
    let mut earliest = 0;
    for op in ops.iter_mut() {
        earliest = earliest.max(op.interval.earliest);
        op.interval.earliest = earliest;
    }
    let mut latest = u64::MAX;
    for op in ops.iter_mut().rev() {
        latest = latest.min(op.interval.latest);
        op.interval.latest = latest;
    }
}

/// Which word is what.
struct Layout {
    cells: usize,
    actions: Actions,
    /// Of variables that somebody uses.
    variables: FxHashMap<VarId, usize>,
    words: usize,
    /// What goes by without a word of its own is of no use behind this event of its thread.
    last_uses: FxHashMap<VarId, u32>,
    conditions: FxHashMap<EventId, Vec<ExprId>>,
}

impl Layout {
    fn new(trace: &EventTrace) -> Option<Self> {
        let too_wide = trace.cells.iter().any(|cell| cell.width > WIDEST)
            || trace.variables.iter().any(|variable| variable.width > WIDEST);
        if too_wide {
            return None;
        }
        let actions = Actions::new(trace, trace.threads.len() + trace.cells.len());
        let mut layout = Self {
            cells: trace.threads.len(),
            words: actions.end(),
            actions,
            variables: FxHashMap::default(),
            last_uses: FxHashMap::default(),
            conditions: FxHashMap::default(),
        };
        let lasting = layout.look_at_uses(trace);
        layout.give_words(trace, &lasting);
        (layout.words <= MOST_WORDS).then_some(layout)
    }

    /// Notes where conditions can be looked at, and up to where variables matter. Those that other
    /// threads use, too, matter for ever.
    fn look_at_uses(&mut self, trace: &EventTrace) -> FxHashSet<VarId> {
        let mut lasting = FxHashSet::default();
        let mut used =
            |layout: &mut Self, var: VarId, thread: u32, index: u32| match reader(trace, var) {
                Some(event) if trace.event(event).thread.0 == thread => {
                    let last = layout.last_uses.entry(var).or_default();
                    *last = index.max(*last);
                }
                _ => {
                    lasting.insert(var);
                }
            };
        for event in &trace.events {
            for write in event.kind.writes() {
                for var in trace.exprs.variables(write.value) {
                    used(self, var, event.thread.0, event.index);
                }
            }
        }
        let failure = trace.failure.as_ref().and_then(|failure| match failure.condition {
            FailureCondition::Value(expr) => Some(expr),
            _ => None,
        });
        let conditions = trace.conditions.iter().map(|condition| condition.expr).chain(failure);
        for expr in conditions {
            let variables = trace.exprs.variables(expr);
            let read = variables.iter().filter_map(|&var| reader(trace, var));
            // What several threads read is left to whoever checks the schedule.
            let Some(last) = read.clone().max_by_key(|&event| trace.event(event).index) else {
                continue;
            };
            let (thread, index) = (trace.event(last).thread, trace.event(last).index);
            if read.clone().any(|event| trace.event(event).thread != thread) {
                continue;
            }
            variables.iter().for_each(|&var| used(self, var, thread.0, index));
            self.conditions.entry(last).or_default().push(expr);
        }
        lasting
    }

    /// Gives every variable that somebody uses a word, one after the other the same in one thread.
    fn give_words(&mut self, trace: &EventTrace, lasting: &FxHashSet<VarId>) {
        let mut lasting: Vec<VarId> = lasting.iter().copied().collect();
        lasting.sort_unstable();
        for var in lasting {
            self.variables.insert(var, self.words);
            self.last_uses.remove(&var);
            self.words += 1;
        }
        for thread in &trace.threads {
            let mut free: Vec<usize> = Vec::new();
            let mut taken: Vec<(u32, usize)> = Vec::new();
            for &id in &thread.events {
                let event = trace.event(id);
                taken.retain(|&(last, word)| {
                    let matters = last >= event.index;
                    if !matters {
                        free.push(word);
                    }
                    matters
                });
                for part in event.kind.reads() {
                    let Some(&last) = self.last_uses.get(&part.var) else { continue };
                    let word = free.pop().unwrap_or_else(|| {
                        self.words += 1;
                        self.words - 1
                    });
                    taken.push((last, word));
                    self.variables.insert(part.var, word);
                }
            }
        }
    }

    fn function(&self, functions: &mut Functions<'_>, expr: ExprId) -> Option<Function> {
        let word = |var: VarId| self.variables.get(&var).copied();
        functions.compile(expr, &word)
    }

    fn op(&self, trace: &EventTrace, id: EventId, functions: &mut Functions<'_>) -> Option<Op> {
        let event = trace.event(id);
        let (mut reads, mut clears, mut lasts) = (Vec::new(), Vec::new(), false);
        for part in event.kind.reads() {
            let word = self.variables.get(&part.var).copied();
            reads.push((self.cells + part.cell.index(), word, part.var));
            lasts |= word.is_some() && self.last_uses.get(&part.var) != Some(&event.index);
        }
        let mut conditions = Vec::new();
        for &expr in self.conditions.get(&id).into_iter().flatten() {
            let variables = trace.exprs.variables(expr);
            let only = (variables.len() == 1).then(|| variables[0]);
            conditions.push(Condition { function: self.function(functions, expr)?, only });
        }
        let mut writes = Vec::new();
        for part in event.kind.writes() {
            let function = self.function(functions, part.value)?;
            writes.push((self.cells + part.cell.index(), function));
        }
        for (var, last) in self.uses_by(trace, id) {
            if last == event.index
                && let Some(&word) = self.variables.get(&var)
            {
                clears.push(word);
            }
        }
        let (action, begins) = (self.actions.action(trace, id), self.actions.begins(trace, id));
        let may_wait = self.actions.matters(trace, id, action);
        let is_eager = !may_wait && !lasts && writes.is_empty();
        let interval = trace.intervals.get(id.index()).copied().unwrap_or_default();
        let needs = Vec::new();
        Some(Op {
            event: id,
            needs,
            action,
            begins,
            reads,
            conditions,
            writes,
            clears,
            is_eager,
            interval,
        })
    }

    /// The variables that an event reads or uses, with their last use in its thread.
    fn uses_by(&self, trace: &EventTrace, id: EventId) -> FxHashMap<VarId, u32> {
        let event = trace.event(id);
        let read = event.kind.reads().iter().map(|part| part.var);
        let written = event.kind.writes().iter().flat_map(|part| trace.exprs.variables(part.value));
        let conditions = self.conditions.get(&id).into_iter().flatten();
        let looked_at = conditions.flat_map(|&expr| trace.exprs.variables(expr));
        let all = read.chain(written).chain(looked_at);
        all.filter_map(|var| Some((var, *self.last_uses.get(&var)?))).collect()
    }

    /// The state before the first event.
    fn first(&self, trace: &EventTrace) -> Option<Vec<u64>> {
        let recorded = |var: VarId| Some(trace.variables.get(var.index())?.recorded.unwrap_or(0));
        let mut words = vec![0; self.words];
        for cell in &trace.cells {
            let value = trace.exprs.evaluate(cell.init, &recorded)?;
            words[self.cells + cell.id.index()] = value as u64;
        }
        self.actions.begin(trace, &mut words);
        for (&var, &word) in &self.variables {
            if reader(trace, var).is_none() {
                words[word] = recorded(var)? as u64;
            }
        }
        Some(words)
    }
}
