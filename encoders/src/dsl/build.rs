//! From text to an event trace.

use super::{DslError, Parsed, expr};
use model::{
    Cell, CellId, ConditionId, Event, EventId, EventKind, EventTrace, ExprId, Failure,
    FailureCondition, FailureKind, Interval, LockMode, Object, ObjectId, ObjectKind, PathCondition,
    PathConditionKind, ReadPart, Site, Thread, ThreadId, VarId, Variable, VariableOrigin,
    WritePart,
};
use std::collections::BTreeMap;

/// An event before identifiers are given out: its label and kind, with references to other
/// events of the same thread by position.
struct Draft {
    line: usize,
    label: Option<String>,
    name: Option<String>,
    kind: EventKind,
    /// The position of the release that a wake-up or time-out refers to.
    began: Option<usize>,
}

#[derive(Default)]
struct ThreadDraft {
    label: String,
    parent: Option<usize>,
    events: Vec<Draft>,
    /// Readings of the clock, each with how many of the events come before it.
    times: Vec<(usize, u64)>,
}

#[derive(Default)]
struct Builder {
    trace: EventTrace,
    threads: Vec<ThreadDraft>,
    cells: BTreeMap<String, CellId>,
    objects: BTreeMap<String, ObjectId>,
    names: BTreeMap<String, ExprId>,
    /// Variables of reads, to be given their event: thread, position and part.
    reads: Vec<(VarId, usize, usize)>,
    /// The failing thread and the condition, or the labels of two events in the failing order.
    failure: Option<(usize, FailureText)>,
    /// Readings of the clock: the thread, its first event after the reading, and the time.
    times: Vec<(ThreadId, usize, u64)>,
}

enum FailureText {
    Condition(FailureCondition),
    Unwoken(usize, String, String),
    Before(usize, String, String),
}

/// Reads a trace from text.
///
/// # Errors
/// At the first line that is not understood.
pub fn parse(text: &str) -> Result<Parsed, DslError> {
    let mut builder = Builder::default();
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if !line.is_empty() {
            builder.line(index + 1, line)?;
        }
    }
    builder.finish()
}

impl Builder {
    fn line(&mut self, number: usize, line: &str) -> Result<(), DslError> {
        let result = match line.split_once(':') {
            Some((thread, statement)) => {
                let thread = self.thread(thread.trim());
                self.statement(number, thread, statement.trim())
            }
            None => self.declaration(line),
        };
        result.map_err(|message| DslError::new(number, message))
    }

    fn thread(&mut self, label: &str) -> usize {
        self.threads.iter().position(|thread| thread.label == label).unwrap_or_else(|| {
            self.threads.push(ThreadDraft { label: label.to_owned(), ..ThreadDraft::default() });
            self.threads.len() - 1
        })
    }

    fn declaration(&mut self, line: &str) -> Result<(), String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["cell", name, width, "=", init] => {
                let width = number(width)?;
                let init = match init {
                    "?" => {
                        let cell = CellId::from_index(self.trace.cells.len());
                        self.variable(width, VariableOrigin::Init(cell)).1
                    }
                    value => {
                        let value: i128 = value.parse().map_err(|_| bad_number(value))?;
                        self.trace.exprs.constant(width, value as u128)
                    }
                };
                self.new_cell(name, width, init);
            }
            ["input", name, width] => {
                let (_, expr) = self.variable(number(width)?, VariableOrigin::Input);
                self.names.insert(name.to_owned(), expr);
            }
            ["sem", name, initial] => {
                self.new_object(name, ObjectKind::Semaphore { initial: number(initial)? });
            }
            ["heap", name, address, size] => {
                let address = u64::from(number(address)?);
                let end = address + u64::from(number(size)?);
                let object = self.new_object(name, ObjectKind::Heap);
                self.trace.objects[object.index()].addresses = Some(address..end);
            }
            ["barrier", name, count] => {
                self.new_object(name, ObjectKind::Barrier { count: number(count)? });
            }
            _ => return Err(format!("unknown declaration `{line}`")),
        }
        Ok(())
    }

    fn statement(&mut self, line: usize, thread: usize, text: &str) -> Result<(), String> {
        let (label, text) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((label, rest)) => (Some(label.trim().to_owned()), rest.trim()),
            None => (None, text),
        };
        let (verb, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let rest = rest.trim();
        let from = self.threads[thread].events.len();
        self.verb(line, thread, verb, rest)?;
        if let Some(draft) = self.threads[thread].events.get_mut(from) {
            draft.label = label;
        }
        Ok(())
    }

    fn verb(&mut self, line: usize, thread: usize, verb: &str, rest: &str) -> Result<(), String> {
        let exclusive = LockMode::Exclusive;
        let kind = match verb {
            "R" | "W" | "RMW" => return self.access(line, thread, verb, rest),
            "wait" | "wait-timed-out" => return self.wait(line, thread, verb, rest),
            "assume" => return self.assume(line, thread, rest),
            "fail" => return self.fail(line, thread, rest),
            "time" => {
                let time = rest.parse().map_err(|_| bad_number(rest))?;
                let thread = &mut self.threads[thread];
                thread.times.push((thread.events.len(), time));
                return Ok(());
            }
            "barrier" | "arrive" => return self.barrier(line, thread, verb, rest),
            "lock" => EventKind::Lock { object: self.lock(rest)?, mode: exclusive },
            "rdlock" => EventKind::Lock { object: self.lock(rest)?, mode: LockMode::Shared },
            "unlock" => unlock(self.lock(rest)?, exclusive),
            "rdunlock" => unlock(self.lock(rest)?, LockMode::Shared),
            "trylock-failed" => {
                EventKind::TryLockFailed { object: self.lock(rest)?, mode: exclusive }
            }
            "tryrdlock-failed" => {
                EventKind::TryLockFailed { object: self.lock(rest)?, mode: LockMode::Shared }
            }
            "signal" => EventKind::Signal { condition: self.condition(rest)? },
            "broadcast" => EventKind::Broadcast { condition: self.condition(rest)? },
            "sem-wait" => EventKind::SemaphoreWait { object: self.semaphore(rest)? },
            "sem-failed" => EventKind::SemaphoreWaitFailed { object: self.semaphore(rest)? },
            "post" => EventKind::SemaphorePost { object: self.semaphore(rest)? },
            "alloc" => EventKind::Allocate { object: self.object(rest, ObjectKind::Heap)? },
            "free" => EventKind::Free { object: self.object(rest, ObjectKind::Heap)? },
            "fence" => EventKind::Fence,
            "join" => EventKind::Join { child: ThreadId::from_index(self.thread(rest)) },
            "fork" => {
                let child = self.thread(rest);
                self.threads[child].parent = Some(thread);
                EventKind::Fork { child: ThreadId::from_index(child) }
            }
            _ => return Err(format!("unknown statement `{verb}`")),
        };
        let name = (!rest.is_empty()).then(|| rest.to_owned());
        self.push(line, thread, kind, name, None);
        Ok(())
    }

    fn push(
        &mut self,
        line: usize,
        thread: usize,
        kind: EventKind,
        name: Option<String>,
        began: Option<usize>,
    ) {
        self.threads[thread].events.push(Draft { line, label: None, name, kind, began });
    }

    fn access(&mut self, line: usize, thread: usize, verb: &str, rest: &str) -> Result<(), String> {
        let (cell_name, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let cell = self.cell(cell_name);
        let width = self.trace.cells[cell.index()].width;
        let name = Some(cell_name.to_owned());
        if verb == "W" {
            let value = self.expression(rest, width)?;
            let parts = vec![WritePart { cell, value }];
            self.push(line, thread, EventKind::Write { parts }, name, None);
            return Ok(());
        }
        let rest = rest.trim().strip_prefix("->").ok_or("`->` and a name are expected")?;
        let (read_as, value) = match rest.split_once('=') {
            Some((read_as, value)) if verb == "RMW" => (read_as.trim(), Some(value)),
            _ if verb == "RMW" => return Err("`= expression` is expected".into()),
            _ => (rest.trim(), None),
        };
        let position = self.threads[thread].events.len();
        let origin = VariableOrigin::Read { event: EventId(u32::MAX), part: 0 };
        let (var, expr) = self.variable(width, origin);
        self.reads.push((var, thread, position));
        if self.names.insert(read_as.to_owned(), expr).is_some() {
            return Err(format!("the name `{read_as}` is taken"));
        }
        let reads = vec![ReadPart { cell, var }];
        let kind = match value {
            None => EventKind::Read { parts: reads },
            Some(value) => {
                let value = self.expression(value, width)?;
                EventKind::ReadModifyWrite { reads, writes: vec![WritePart { cell, value }] }
            }
        };
        self.push(line, thread, kind, name, None);
        Ok(())
    }

    fn wait(&mut self, line: usize, thread: usize, verb: &str, rest: &str) -> Result<(), String> {
        let (condition, lock) = rest.split_once(char::is_whitespace).ok_or("a lock is expected")?;
        let (condition_name, lock_name) = (Some(condition.to_owned()), Some(lock.to_owned()));
        let (condition, object) = (self.condition(condition)?, self.lock(lock.trim())?);
        let position = self.threads[thread].events.len();
        let began = EventId(u32::MAX);
        let end = match verb {
            "wait" => EventKind::Wake { condition, began },
            _ => EventKind::WaitTimedOut { condition, began },
        };
        self.push(line, thread, unlock(object, LockMode::Exclusive), lock_name.clone(), None);
        self.push(line, thread, end, condition_name, Some(position));
        let lock = EventKind::Lock { object, mode: LockMode::Exclusive };
        self.push(line, thread, lock, lock_name, None);
        Ok(())
    }

    fn barrier(
        &mut self,
        line: usize,
        thread: usize,
        verb: &str,
        rest: &str,
    ) -> Result<(), String> {
        let object = *self.objects.get(rest).ok_or_else(|| format!("no barrier `{rest}`"))?;
        let name = Some(rest.to_owned());
        self.push(line, thread, EventKind::BarrierArrive { object }, name.clone(), None);
        if verb == "barrier" {
            self.push(line, thread, EventKind::BarrierLeave { object }, name, None);
        }
        Ok(())
    }

    fn assume(&mut self, line: usize, thread: usize, rest: &str) -> Result<(), String> {
        let expr = self.expression(rest, 1)?;
        // The start event that every thread gets in front counts.
        let position = self.threads[thread].events.len() as u32 + 1;
        self.trace.conditions.push(PathCondition {
            id: ConditionId::from_index(self.trace.conditions.len()),
            thread: ThreadId::from_index(thread),
            position,
            expr,
            kind: PathConditionKind::Branch,
            site: site(line),
            is_beside_wait: false,
        });
        Ok(())
    }

    fn fail(&mut self, line: usize, thread: usize, rest: &str) -> Result<(), String> {
        if self.failure.is_some() {
            return Err("there is a failure already".into());
        }
        let words: Vec<&str> = rest.split_whitespace().collect();
        let failure = match words[..] {
            [] => FailureText::Condition(FailureCondition::All(Vec::new())),
            ["before", a, b] => FailureText::Before(line, a.to_owned(), b.to_owned()),
            ["unwoken", condition, began] => {
                FailureText::Unwoken(line, condition.to_owned(), began.to_owned())
            }
            _ => FailureText::Condition(FailureCondition::Value(self.expression(rest, 1)?)),
        };
        self.failure = Some((thread, failure));
        self.push(line, thread, EventKind::Failure, None, None);
        Ok(())
    }

    fn expression(&mut self, text: &str, width: u32) -> Result<ExprId, String> {
        let names = &self.names;
        expr::parse(&mut self.trace.exprs, text, width, &|name| names.get(name).copied())
    }

    fn variable(&mut self, width: u32, origin: VariableOrigin) -> (VarId, ExprId) {
        let id = VarId::from_index(self.trace.variables.len());
        self.trace.variables.push(Variable { id, width, origin, recorded: None });
        (id, self.trace.exprs.var(id, width))
    }

    fn cell(&mut self, name: &str) -> CellId {
        match self.cells.get(name) {
            Some(&cell) => cell,
            None => {
                let init = self.trace.exprs.constant(32, 0);
                self.new_cell(name, 32, init)
            }
        }
    }

    fn new_cell(&mut self, name: &str, width: u32, init: ExprId) -> CellId {
        let id = CellId::from_index(self.trace.cells.len());
        let display = model::trace::ValueDisplay::default();
        self.trace.cells.push(Cell { id, width, init, name: name.to_owned(), display });
        self.cells.insert(name.to_owned(), id);
        id
    }

    fn lock(&mut self, name: &str) -> Result<ObjectId, String> {
        self.object(name, ObjectKind::Lock)
    }

    fn condition(&mut self, name: &str) -> Result<ObjectId, String> {
        self.object(name, ObjectKind::Condition)
    }

    /// A semaphore, declared with its units or else without any.
    fn semaphore(&mut self, name: &str) -> Result<ObjectId, String> {
        match self.objects.get(name) {
            Some(&object) => Ok(object),
            None => self.object(name, ObjectKind::Semaphore { initial: 0 }),
        }
    }

    fn object(&mut self, name: &str, kind: ObjectKind) -> Result<ObjectId, String> {
        if name.is_empty() {
            return Err("a name is expected".into());
        }
        match self.objects.get(name) {
            Some(&id) if self.trace.objects[id.index()].kind == kind => Ok(id),
            Some(_) => Err(format!("`{name}` is an object of another kind")),
            None => Ok(self.new_object(name, kind)),
        }
    }

    fn new_object(&mut self, name: &str, kind: ObjectKind) -> ObjectId {
        let id = ObjectId::from_index(self.trace.objects.len());
        self.trace.objects.push(Object { id, kind, name: name.to_owned(), addresses: None });
        self.objects.insert(name.to_owned(), id);
        id
    }

    /// Gives threads to those without a creator, then identifiers to all events.
    fn finish(mut self) -> Result<Parsed, DslError> {
        if self.threads.is_empty() {
            return Err(DslError::new(1, "no thread"));
        }
        let orphans: Vec<usize> =
            (1..self.threads.len()).filter(|&t| self.threads[t].parent.is_none()).collect();
        for &orphan in &orphans {
            self.threads[orphan].parent = Some(0);
        }
        let order = self.order()?;
        let place: BTreeMap<usize, ThreadId> =
            order.iter().enumerate().map(|(new, &old)| (old, ThreadId::from_index(new))).collect();
        let mut labels = BTreeMap::new();
        let mut first_of_thread = BTreeMap::new();
        let mut children = BTreeMap::<usize, usize>::new();
        for &old in &order {
            let forks: &[usize] = if old == 0 { &orphans } else { &[] };
            let first = self.trace.events.len();
            first_of_thread.insert(old, first + 1 + forks.len());
            let name = self.thread_name(old, &mut children, &place);
            self.emit_thread(old, name, forks, &place, &mut labels);
        }
        self.resolve(&first_of_thread, &place, &labels)?;
        Ok(Parsed { trace: self.trace, labels })
    }

    /// Parents before children.
    fn order(&self) -> Result<Vec<usize>, DslError> {
        let mut order = vec![0];
        while order.len() < self.threads.len() {
            let next = (1..self.threads.len()).find(|t| {
                !order.contains(t)
                    && self.threads[*t].parent.is_some_and(|parent| order.contains(&parent))
            });
            order.push(next.ok_or_else(|| DslError::new(1, "threads that create each other"))?);
        }
        Ok(order)
    }

    fn thread_name(
        &self,
        old: usize,
        children: &mut BTreeMap<usize, usize>,
        place: &BTreeMap<usize, ThreadId>,
    ) -> String {
        let Some(parent) = self.threads[old].parent.filter(|_| old != 0) else {
            return "t0".to_owned();
        };
        let number = children.entry(parent).or_default();
        *number += 1;
        let parent = place.get(&parent).and_then(|id| self.trace.threads.get(id.index()));
        format!("{}.{number}", parent.map_or("t0", |thread| &thread.name))
    }

    fn emit_thread(
        &mut self,
        old: usize,
        name: String,
        forks: &[usize],
        place: &BTreeMap<usize, ThreadId>,
        labels: &mut BTreeMap<String, EventId>,
    ) {
        let id = place[&old];
        let parent = self.threads[old].parent.filter(|_| old != 0).map(|parent| place[&parent]);
        let entry = self.threads[old].label.clone();
        self.trace.threads.push(Thread { id, name, parent, entry, events: Vec::new() });
        let drafts = std::mem::take(&mut self.threads[old].events);
        let first = self.trace.events.len() + 1 + forks.len();
        self.emit(id, 0, None, EventKind::Start);
        for &child in forks {
            self.emit(id, 0, None, EventKind::Fork { child: place[&child] });
        }
        let times = std::mem::take(&mut self.threads[old].times);
        self.times.extend(times.into_iter().map(|(at, time)| (id, first + at, time)));
        let fails = drafts.iter().any(|draft| draft.kind == EventKind::Failure);
        for mut draft in drafts {
            match &mut draft.kind {
                EventKind::Fork { child } | EventKind::Join { child } => {
                    *child = place[&child.index()];
                }
                EventKind::Wake { began, .. } | EventKind::WaitTimedOut { began, .. } => {
                    *began = EventId::from_index(first + draft.began.unwrap_or_default());
                }
                _ => {}
            }
            let event = self.emit(id, draft.line, draft.name, draft.kind);
            labels.extend(draft.label.map(|label| (label, event)));
        }
        if !fails {
            self.emit(id, 0, None, EventKind::Exit);
        }
    }

    fn emit(
        &mut self,
        id: ThreadId,
        line: usize,
        name: Option<String>,
        kind: EventKind,
    ) -> EventId {
        let event = EventId::from_index(self.trace.events.len());
        let thread = &mut self.trace.threads[id.index()];
        let index = thread.events.len() as u32;
        thread.events.push(event);
        let stack = [site(line)].into();
        let name = name.map(Into::into);
        let pieces = [].into();
        let words = [].into();
        let drains = kind == EventKind::Fence;
        self.trace.events.push(Event {
            id: event,
            thread: id,
            index,
            kind,
            stack,
            continued: Event::ALL_CONTINUED,
            name,
            words,
            pieces,
            drains,
        });
        event
    }

    /// Fills in what needed the events' identifiers.
    fn resolve(
        &mut self,
        first: &BTreeMap<usize, usize>,
        place: &BTreeMap<usize, ThreadId>,
        labels: &BTreeMap<String, EventId>,
    ) -> Result<(), DslError> {
        for (var, thread, position) in std::mem::take(&mut self.reads) {
            let event = EventId::from_index(first[&thread] + position);
            self.trace.variables[var.index()].origin = VariableOrigin::Read { event, part: 0 };
        }
        if !self.times.is_empty() {
            self.trace.intervals = vec![Interval::default(); self.trace.events.len()];
        }
        let mut readings: BTreeMap<ThreadId, Vec<(usize, u64)>> = BTreeMap::new();
        for (thread, at, time) in std::mem::take(&mut self.times) {
            readings.entry(thread).or_default().push((at, time));
        }
        for (thread, readings) in readings {
            let mut readings = readings.into_iter().peekable();
            let mut earliest = 0;
            for &event in &self.trace.threads[thread.index()].events {
                while let Some((_, time)) = readings.next_if(|&(at, _)| at <= event.index()) {
                    earliest = time;
                }
                let latest = readings.peek().map_or(u64::MAX, |&(_, time)| time);
                self.trace.intervals[event.index()] = Interval { earliest, latest };
            }
        }
        let forks = (first[&0] - 1) as u32;
        for condition in &mut self.trace.conditions {
            let implicit = if condition.thread.index() == 0 { forks } else { 0 };
            condition.position += implicit;
            condition.thread = place[&condition.thread.index()];
        }
        let Some((thread, failure)) = self.failure.take() else { return Ok(()) };
        let find = |line: usize, label: &String| {
            let unknown = || DslError::new(line, format!("no event is labelled {label}"));
            labels.get(label).copied().ok_or_else(unknown)
        };
        let condition = match failure {
            FailureText::Condition(condition) => condition,
            FailureText::Before(line, a, b) => {
                FailureCondition::Before(find(line, &a)?, find(line, &b)?)
            }
            FailureText::Unwoken(line, name, began) => {
                let object = self.trace.objects.iter().find(|object| object.name == name);
                let unknown = || DslError::new(line, format!("no event is about {name}"));
                let condition = object.ok_or_else(unknown)?.id;
                FailureCondition::Unwoken { condition, began: find(line, &began)? }
            }
        };
        let of_thread = &self.trace.threads[place[&thread].index()].events;
        let Some(&event) = of_thread.last() else { return Ok(()) };
        if self.trace.event(event).kind != EventKind::Failure {
            return Err(DslError::new(1, "the failure is not the last event of its thread"));
        }
        let message = String::new();
        self.trace.failure =
            Some(Failure { kind: FailureKind::Assertion, event, condition, message });
        Ok(())
    }
}

fn unlock(object: ObjectId, mode: LockMode) -> EventKind {
    EventKind::Unlock { object, mode, synthetic: false }
}

fn site(line: usize) -> Site {
    Site { file: "trace".to_owned(), line: line as u32, column: 0, function: String::new() }
}

fn number(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| bad_number(text))
}

fn bad_number(text: &str) -> String {
    format!("`{text}` is not a number")
}
