//! How far the threads are, and what cells and objects hold then; every step can be taken back.

use super::program::{Op, Program, Read, Value};
use crate::actions::Action;
use model::{EventId, ExprId, VarId};
use rustc_hash::{FxHashMap, FxHashSet};

/// No event.
pub(super) const NONE: u32 = u32::MAX;
/// So many events of a critical section are looked at before it is entered.
const SECTION: usize = 200;
/// What it is worth that a thread which waits for a value gets it...
const SERVES: i64 = 8;
/// ...or one that will ask for it.
const HELPS: i64 = 2;
/// What it costs to take away what a thread reads next.
const TAKES: i64 = 8;
/// What it costs to read something else than the log tells, or to enter a critical section that would.
const IN_VAIN: i64 = 16;

/// One event that has happened.
pub(super) struct Step {
    thread: u32,
    /// How many changes there were before.
    pub(super) changes: u32,
    hash: u64,
}

/// What something held before, and the event that had made it so.
pub(super) enum Change {
    Cell(u32, u128, u32),
    Word(u32, u64, u32),
    Variable(u32, u128),
    Written((u32, u128), u32),
}

pub(super) struct State<'p, 't> {
    pub(super) program: &'p Program<'t>,
    /// By event, about when it happened; empty when that is not known.
    moments: &'p [u64],
    /// By thread.
    pub(super) done: Vec<u32>,
    /// By thread, the steps in which its events happened.
    pub(super) happened: Vec<Vec<u32>>,
    pub(super) cells: Vec<u128>,
    pub(super) words: Vec<u64>,
    /// By cell and by word, the step that changed it last.
    pub(super) cell_by: Vec<u32>,
    pub(super) word_by: Vec<u32>,
    /// By condition, as it stands in the words of waits, the steps in which it was signalled.
    pub(super) notified: FxHashMap<u64, Vec<u32>>,
    /// By cell and value, the last step in which it was written.
    pub(super) written: FxHashMap<(u32, u128), u32>,
    /// By variable, what was read where the log does not tell.
    read: Vec<u128>,
    pub(super) steps: Vec<Step>,
    pub(super) changes: Vec<Change>,
    /// Of everything that what happens next depends on.
    pub(super) hash: u64,
    /// A thread that can never go on from here, and behind how many steps that was seen.
    pub(super) hopeless: Option<(u32, usize)>,
    /// Events that go on whatever they read.
    pub(super) spared: FxHashSet<EventId>,
}

impl<'p, 't> State<'p, 't> {
    pub(super) fn new(program: &'p Program<'t>, moments: &'p [u64]) -> Self {
        Self {
            program,
            moments,
            done: vec![0; program.threads.len()],
            happened: vec![Vec::new(); program.threads.len()],
            cells: program.cells.clone(),
            words: program.words.clone(),
            cell_by: vec![NONE; program.cells.len()],
            word_by: vec![NONE; program.words.len()],
            notified: FxHashMap::default(),
            written: FxHashMap::default(),
            read: vec![0; program.trace.variables.len()],
            steps: Vec::new(),
            changes: Vec::new(),
            hash: 0,
            hopeless: None,
            spared: FxHashSet::default(),
        }
    }

    pub(super) fn events(&self) -> usize {
        self.program.events
    }

    /// How many events have happened.
    pub(super) fn step(&self) -> usize {
        self.steps.len()
    }

    pub(super) fn is_done(&self) -> bool {
        self.steps.len() == self.program.events
    }

    /// Whose event each of the steps behind the first so many is.
    pub(super) fn threads_since(&self, first: usize) -> impl Iterator<Item = u32> {
        self.steps.get(first..).unwrap_or_default().iter().map(|step| step.thread)
    }

    /// The events that steps of these threads are, from the first one on.
    pub(super) fn events_of(&self, threads: &[u32]) -> Vec<EventId> {
        let mut next = vec![0usize; self.done.len()];
        let event = |&thread: &u32| {
            let thread = thread as usize;
            next[thread] += 1;
            self.program.threads[thread].get(next[thread] - 1).map(|op| op.event)
        };
        threads.iter().filter_map(event).collect()
    }

    /// Lets an event go on whatever it reads, where that alone keeps a thread from going on, now or once it has waited for
    /// others: the first one by the clock. False where there is none.
    pub(super) fn spare_first(&mut self) -> bool {
        let next = || {
            let next = (0..self.done.len()).filter_map(|at| Some((at, self.next(at)?)));
            next.filter(|(_, op)| !self.spared.contains(&op.event))
        };
        let moment = |op: &&Op| self.moments.get(op.event.index()).copied().unwrap_or(0);
        let held = next().filter(|(_, op)| self.is_in_order(op) && !self.is_possible(op));
        let first = held.map(|(_, op)| op).min_by_key(moment).or_else(|| {
            let left = next().filter(|(at, op)| self.is_left(*at, op));
            left.map(|(_, op)| op).min_by_key(moment)
        });
        let Some(first) = first else { return false };
        self.hopeless = None;
        self.spared.insert(first.event)
    }

    pub(super) fn next(&self, thread: usize) -> Option<&'p Op> {
        self.program.threads[thread].get(self.done[thread] as usize)
    }

    /// May an event happen now?
    fn is_possible(&self, op: &Op) -> bool {
        self.is_in_order(op)
            && (!self.program.is_strict || self.reads_right(op))
            && (self.program.conditions(op).is_empty()
                || self.holds(op)
                || self.spared.contains(&op.event))
    }

    /// May it, whatever it reads?
    fn is_in_order(&self, op: &Op) -> bool {
        let ordered = |&(thread, count): &(u32, u32)| self.done[thread as usize] >= count;
        self.program.needs(op).iter().all(ordered) && op.action.is_possible(&self.words)
    }

    /// Does a read find what the log tells, if it tells anything?
    pub(super) fn is_right(&self, read: &Read) -> bool {
        read.wanted.is_none_or(|wanted| self.cells[read.cell as usize] == wanted)
    }

    /// By read of an event: its cell, what stands there, and what the log tells of it.
    pub(super) fn held(&self, op: &Op) -> Vec<(u32, u128, Option<u128>)> {
        let reads = self.program.reads(op).iter();
        reads.map(|read| (read.cell, self.cells[read.cell as usize], read.wanted)).collect()
    }

    /// Does every read of an event?
    fn reads_right(&self, op: &Op) -> bool {
        self.program.reads(op).iter().all(|read| self.is_right(read))
            || self.spared.contains(&op.event)
    }

    /// Do the conditions hold once the event has read what it reads now?
    pub(super) fn holds(&self, op: &Op) -> bool {
        self.holds_with(op, |cell| self.cells[cell as usize])
    }

    /// Do the conditions hold once the event has read this from the cells?
    pub(super) fn holds_with(&self, op: &Op, cell: impl Fn(u32) -> u128) -> bool {
        let reads = self.program.reads(op);
        let read = |var: VarId| match reads.iter().find(|read| read.var == var) {
            Some(read) => Some(cell(read.cell)),
            None => self.read.get(var.index()).copied(),
        };
        let conditions = self.program.conditions(op);
        conditions.iter().all(|&condition| self.program.value(condition, read) != Some(0))
    }

    fn value(&self, value: Value) -> u128 {
        match value {
            Value::Known(value) => value,
            Value::Open(expr) => self.open(expr),
        }
    }

    fn open(&self, expr: ExprId) -> u128 {
        let read = |var: VarId| self.read.get(var.index()).copied();
        self.program.value(expr, read).unwrap_or(0)
    }

    /// Has everything happen that may as well happen now; how many events that were.
    pub(super) fn settle(&mut self) -> u64 {
        let mut happened = 0;
        loop {
            let before = happened;
            for thread in 0..self.done.len() {
                while let Some(op) = self.next(thread)
                    && op.is_eager
                    && self.is_possible(op)
                    && self.reads_right(op)
                {
                    self.perform(thread);
                    happened += 1;
                }
            }
            if happened == before {
                return happened;
            }
        }
    }

    /// The threads that can go on, the best last.
    pub(super) fn choices(&self) -> Vec<u32> {
        let mut found = Vec::new();
        for thread in 0..self.done.len() {
            let Some(op) = self.next(thread) else { continue };
            if self.is_possible(op) {
                found.push((thread as u32, op));
            }
        }
        if found.len() > 1 {
            let moment = |op: &Op| self.moments.get(op.event.index()).copied().unwrap_or(0);
            let mut worths: Vec<(i64, std::cmp::Reverse<u64>, u32)> = found
                .iter()
                .map(|&(thread, op)| {
                    (self.worth(thread as usize, op), std::cmp::Reverse(moment(op)), thread)
                })
                .collect();
            worths.sort_unstable();
            return worths.into_iter().map(|(.., thread)| thread).collect();
        }
        found.into_iter().map(|(thread, _)| thread).collect()
    }

    /// How good it is for the other threads that an event happens next.
    fn worth(&self, thread: usize, op: &Op) -> i64 {
        if let Action::Acquire { word, .. } = op.action {
            return self.worth_of_section(thread, word);
        }
        let mut worth = if self.reads_right(op) { 0 } else { -IN_VAIN };
        for write in self.program.writes(op) {
            worth += self.worth_of(thread, write.cell, self.value(write.value));
        }
        worth
    }

    /// The same of a write.
    fn worth_of(&self, writer: usize, cell: u32, value: u128) -> i64 {
        let held = self.cells[cell as usize];
        if held == value {
            return 0;
        }
        let mut worth = 0;
        for thread in (0..self.done.len()).filter(|&thread| thread != writer) {
            let from = self.done[thread];
            let Some(at) = self.program.next_access(thread, cell, from) else { continue };
            let Some(op) = self.program.threads[thread].get(at as usize) else { continue };
            let read = self.program.reads(op).iter().find(|read| read.cell == cell);
            match read.and_then(|read| read.wanted) {
                Some(wanted) if wanted == value && at == from => worth += SERVES,
                Some(wanted) if wanted == value => worth += HELPS,
                Some(wanted) if wanted == held => worth -= TAKES,
                None if read.is_some() && at == from => {
                    worth += self.worth_of_going_on(op, cell, value);
                }
                _ => {}
            }
        }
        worth
    }

    /// The same for a thread whose next event reads the cell, and goes on as it did where a condition holds.
    fn worth_of_going_on(&self, op: &Op, cell: u32, value: u128) -> i64 {
        if self.program.conditions(op).is_empty() {
            return 0;
        }
        let then = |other: u32| if other == cell { value } else { self.cells[other as usize] };
        match (self.holds(op), self.holds_with(op, then)) {
            (true, false) => -TAKES,
            (false, true) => SERVES,
            _ => 0,
        }
    }

    /// The same of a critical section: what it leaves behind.
    fn worth_of_section(&self, thread: usize, lock: usize) -> i64 {
        let from = self.done[thread] as usize;
        let mut left: Vec<(u32, u128)> = Vec::new();
        let ops = self.program.threads[thread].get(from..).unwrap_or_default();
        for op in ops.iter().take(SECTION) {
            for read in self.program.reads(op) {
                let own = left.iter().find(|(cell, _)| *cell == read.cell);
                let held = own.map_or(self.cells[read.cell as usize], |(_, value)| *value);
                if read.wanted.is_some_and(|wanted| wanted != held) {
                    return -IN_VAIN;
                }
            }
            for write in self.program.writes(op) {
                let value = self.value(write.value);
                match left.iter_mut().find(|(cell, _)| *cell == write.cell) {
                    Some(known) => known.1 = value,
                    None => left.push((write.cell, value)),
                }
            }
            if matches!(op.action, Action::Release { word, .. } if word == lock) {
                break;
            }
        }
        left.into_iter().map(|(cell, value)| self.worth_of(thread, cell, value)).sum()
    }

    /// The next event of a thread happens.
    pub(super) fn perform(&mut self, thread: usize) {
        let Some(op) = self.next(thread) else { return };
        let step = self.steps.len() as u32;
        let (changes, hash) = (self.changes.len() as u32, self.hash);
        self.steps.push(Step { thread: thread as u32, changes, hash });
        for read in self.program.reads(op) {
            if !read.is_known {
                let (var, value) = (read.var.index(), self.cells[read.cell as usize]);
                self.changes.push(Change::Variable(var as u32, self.read[var]));
                self.hash ^= mixed(3, var as u64, value);
                self.read[var] = value;
            }
        }
        // What is written depends on nothing that is written with it.
        for write in self.program.writes(op) {
            let (cell, value) = (write.cell as usize, self.value(write.value));
            let last = self.written.insert((write.cell, value), step).unwrap_or(NONE);
            self.changes.push(Change::Written((write.cell, value), last));
            let held = self.cells[cell];
            if held != value {
                self.changes.push(Change::Cell(write.cell, held, self.cell_by[cell]));
                self.hash ^= mixed(2, cell as u64, held) ^ mixed(2, cell as u64, value);
                (self.cells[cell], self.cell_by[cell]) = (value, step);
            }
        }
        let (noted, word_by) = (&mut self.changes, &mut self.word_by);
        let mut before = |word: usize, held: u64| {
            noted.push(Change::Word(word as u32, held, word_by[word]));
            word_by[word] = step;
        };
        op.action.perform(&mut self.words, &self.program.actions.waits, &mut before);
        if let Action::Notify { condition, .. } = op.action {
            self.notified.entry(condition).or_default().push(step);
        }
        if let Some((word, condition)) = op.begins {
            before(word, self.words[word]);
            self.words[word] = condition;
        }
        // No word changes twice in a step.
        for change in self.changes.get(changes as usize..).unwrap_or_default() {
            if let Change::Word(word, held, _) = *change {
                let now = self.words[word as usize];
                self.hash ^= mixed(4, u64::from(word), u128::from(held))
                    ^ mixed(4, u64::from(word), u128::from(now));
            }
        }
        let done = u64::from(self.done[thread]);
        self.hash ^= mixed(1, thread as u64, u128::from(done))
            ^ mixed(1, thread as u64, u128::from(done + 1));
        self.done[thread] += 1;
        self.happened[thread].push(step);
        if self.hopeless.is_none() {
            let found = self.left_behind(thread, op);
            self.hopeless = found.map(|thread| (thread, self.steps.len()));
        }
    }

    /// Takes back what happened behind the first so many events.
    pub(super) fn undo(&mut self, first: usize) {
        self.hopeless = self.hopeless.filter(|&(_, behind)| behind <= first);
        while self.steps.len() > first
            && let Some(step) = self.steps.pop()
        {
            while self.changes.len() > step.changes as usize
                && let Some(change) = self.changes.pop()
            {
                match change {
                    Change::Cell(cell, held, by) => {
                        (self.cells[cell as usize], self.cell_by[cell as usize]) = (held, by);
                    }
                    Change::Word(word, held, by) => {
                        (self.words[word as usize], self.word_by[word as usize]) = (held, by);
                    }
                    Change::Variable(var, held) => self.read[var as usize] = held,
                    Change::Written(write, NONE) => {
                        self.written.remove(&write);
                    }
                    Change::Written(write, last) => {
                        self.written.insert(write, last);
                    }
                }
            }
            self.hash = step.hash;
            self.done[step.thread as usize] -= 1;
            self.happened[step.thread as usize].pop();
            if let Some(Action::Notify { condition, .. }) =
                self.next(step.thread as usize).map(|op| op.action)
                && let Some(steps) = self.notified.get_mut(&condition)
            {
                steps.pop();
            }
        }
    }
}

/// Numbers for a state's parts that are put together by exclusive or.
fn mixed(kind: u64, of: u64, value: u128) -> u64 {
    let mut hash = kind ^ of.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for part in [value as u64, (value >> 64) as u64] {
        hash = (hash ^ part).wrapping_mul(0xff51_afd7_ed55_8ccd);
        hash ^= hash >> 32;
        hash = hash.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        hash ^= hash >> 29;
    }
    hash
}
