//! Accesses that belong together: one critical section for them.

use super::{Candidate, Guard, Kind, Repair, quoted};
use crate::Bug;
use crate::edit::{Edit, Edited};
use crate::enforce::{Rule, Stretch};
use crate::sections::{Section, around, guard, lock_name, sections};
use crate::source::{Span, passages, span};
use encoders::ConstraintSystem;
use model::{CellId, EventId, EventTrace, ObjectId, ObjectKind};
use std::collections::BTreeSet;

/// What one thread does that nothing may come between.
#[derive(Clone, Copy, Debug)]
struct Block {
    first: EventId,
    last: EventId,
}

/// Which lock, and where it is to be held.
#[derive(Debug)]
struct Plan {
    /// None for a new one.
    lock: Option<ObjectId>,
    spans: Vec<Span>,
    regions: Vec<(EventId, EventId)>,
    /// Are all of these sections of the lock already, only shorter ones?
    only_longer: bool,
}

pub(super) fn candidates(bug: &Bug<'_>) -> Vec<Candidate> {
    let trace = bug.trace;
    let Ok(system) = encoders::encode(trace) else { return Vec::new() };
    let all = sections(trace);
    let mut found = Vec::new();
    for wide in [false, true] {
        let blocks = blocks(bug, &all, wide);
        let mut locks: Vec<Option<ObjectId>> = locks(trace, &all, &blocks);
        locks.push(None);
        for lock in locks {
            let plan = Planner { trace, system: &system, all: &all, lock }.plan(&blocks);
            found.extend(plan.and_then(|plan| candidate(bug, &all, plan)));
        }
    }
    // What only makes sections longer is the smallest change; a new lock is the largest.
    found.sort_by_key(|candidate| {
        let new = candidate.repair.lock.as_ref().is_some_and(|lock| lock.new);
        (candidate.repair.kind, new)
    });
    found
}

/// Thread by thread, from the first to the last event that the cause names. A single access is
/// widened to what its thread does with the variable in the same critical section, or, where that
/// is asked for, in the same call of the function.
fn blocks(bug: &Bug<'_>, all: &[Section], wide: bool) -> Vec<Block> {
    let trace = bug.trace;
    let index = |id: EventId| trace.event(id).index;
    let threads: BTreeSet<_> = bug.events.iter().map(|id| trace.event(*id).thread).collect();
    let blocks = threads.into_iter().filter_map(|thread| {
        let own = || bug.events.iter().copied().filter(|id| trace.event(*id).thread == thread);
        let block = Block {
            first: own().min_by_key(|id| index(*id))?,
            last: own().max_by_key(|id| index(*id))?,
        };
        let is_one = block.first == block.last;
        Some(if is_one {
            widened(trace, all, block, &cells(trace, bug.events), wide)
        } else {
            block
        })
    });
    blocks.collect()
}

fn widened(
    trace: &EventTrace,
    all: &[Section],
    block: Block,
    cells: &BTreeSet<CellId>,
    wide: bool,
) -> Block {
    let limits = match around(trace, all, block.first).first() {
        Some(section) => (section.lock, section.unlock),
        None if wide => {
            let function =
                Span { first: 0, last: u32::MAX, ..Span::of(trace.event(block.first).site()) };
            let index = |id: EventId| trace.event(id).index;
            let thread = trace.event(block.first).thread;
            let has = |(first, last): &(EventId, EventId)| {
                trace.event(*first).thread == thread
                    && (index(*first)..=index(*last)).contains(&index(block.first))
            };
            match passages(trace, &function).into_iter().find(has) {
                Some(passage) => passage,
                None => return block,
            }
        }
        None => return block,
    };
    let own = &trace.thread_of(block.first).events;
    let inside = own
        .get(trace.event(limits.0).index as usize..=trace.event(limits.1).index as usize)
        .unwrap_or_default();
    let mut accesses = inside.iter().copied().filter(|id| touches(trace, *id, cells));
    let first = accesses.next().unwrap_or(block.first);
    Block { first, last: accesses.next_back().unwrap_or(first) }
}

fn cells(trace: &EventTrace, events: &[EventId]) -> BTreeSet<CellId> {
    let kinds = events.iter().map(|id| &trace.event(*id).kind);
    kinds
        .flat_map(|kind| {
            let reads = kind.reads().iter().map(|part| part.cell);
            reads.chain(kind.writes().iter().map(|part| part.cell))
        })
        .collect()
}

fn touches(trace: &EventTrace, id: EventId, cells: &BTreeSet<CellId>) -> bool {
    let kind = &trace.event(id).kind;
    kind.reads().iter().any(|part| cells.contains(&part.cell))
        || kind.writes().iter().any(|part| cells.contains(&part.cell))
}

/// The locks that are held at some of the blocks' ends, those that are held at most of them first.
fn locks(trace: &EventTrace, all: &[Section], blocks: &[Block]) -> Vec<Option<ObjectId>> {
    let ends: Vec<EventId> = blocks.iter().flat_map(|block| [block.first, block.last]).collect();
    let held = |id: &EventId| around(trace, all, *id).into_iter().map(|section| section.object);
    let mut objects: Vec<ObjectId> = Vec::new();
    for object in ends.iter().flat_map(held) {
        // What libraries lock inside is not the program's to hold.
        if !objects.contains(&object) && !is_internal(&lock_name(trace, object)) {
            objects.push(object);
        }
    }
    let count =
        |object: &ObjectId| ends.iter().filter(|id| held(id).any(|other| other == *object)).count();
    objects.sort_by_key(|object| std::cmp::Reverse(count(object)));
    objects.into_iter().map(Some).collect()
}

/// Is this a name that only the implementation uses?
fn is_internal(name: &str) -> bool {
    let last = name.rsplit(['.', '>']).next().unwrap_or(name);
    last.starts_with("__") || (last.starts_with('_') && last[1..].starts_with(char::is_uppercase))
}

struct Planner<'a> {
    trace: &'a EventTrace,
    system: &'a ConstraintSystem,
    all: &'a [Section],
    lock: Option<ObjectId>,
}

impl Planner<'_> {
    /// The section of the lock that an event lies in.
    fn section(&self, id: EventId) -> Option<Section> {
        let lock = self.lock?;
        around(self.trace, self.all, id).into_iter().find(|section| section.object == lock)
    }

    fn plan(&self, blocks: &[Block]) -> Option<Plan> {
        let mut plan =
            Plan { lock: self.lock, spans: Vec::new(), regions: Vec::new(), only_longer: true };
        for block in blocks {
            let (one, two) = (self.section(block.first), self.section(block.last));
            if one.is_some() && one == two {
                continue;
            }
            plan.only_longer &= one.is_some() && two.is_some();
            let first = one.map_or(block.first, |section| section.lock);
            let last = two.map_or(block.last, |section| section.unlock);
            let (a, b) = (self.trace.event(first), self.trace.event(last));
            self.add(&mut plan, span(a, b)?);
        }
        if plan.spans.is_empty() {
            return None;
        }
        for line in self.unguarded(&plan, blocks) {
            plan.only_longer = false;
            self.add(&mut plan, line);
        }
        plan.spans.sort();
        Some(plan)
    }

    fn add(&self, plan: &mut Plan, span: Span) {
        let known = plan.spans.iter().any(|other| {
            other.file == span.file
                && other.function == span.function
                && other.first <= span.first
                && span.last <= other.last
        });
        if known {
            return;
        }
        plan.spans.retain(|other| {
            !(other.file == span.file
                && other.function == span.function
                && span.first <= other.first
                && other.last <= span.last)
        });
        plan.regions.extend(passages(self.trace, &span));
        plan.spans.push(span);
    }

    /// The lines at which threads touch the same variables outside of all this, and may do so at
    /// the same time.
    fn unguarded(&self, plan: &Plan, blocks: &[Block]) -> Vec<Span> {
        let trace = self.trace;
        let index = |id: EventId| trace.event(id).index;
        let ends: Vec<EventId> =
            blocks.iter().flat_map(|block| [block.first, block.last]).collect();
        let sites: BTreeSet<_> = ends.iter().map(|id| trace.event(*id).site()).collect();
        let same_places = trace.events.iter().filter(|event| sites.contains(event.site()));
        let same_places: Vec<EventId> = same_places.map(|event| event.id).collect();
        let cells = cells(trace, &same_places);
        let written: BTreeSet<CellId> = {
            let writes = same_places.iter().flat_map(|id| trace.event(*id).kind.writes());
            writes.map(|part| part.cell).collect()
        };
        let inside = |id: EventId| {
            plan.regions.iter().any(|(first, last)| {
                trace.event(*first).thread == trace.event(id).thread
                    && (index(*first)..=index(*last)).contains(&index(id))
            }) || self.section(id).is_some()
        };
        let mut lines: Vec<Span> = Vec::new();
        for event in trace.events.iter().filter(|event| touches(trace, event.id, &cells)) {
            let conflicts = !event.kind.writes().is_empty() || touches(trace, event.id, &written);
            let line = Span::of(event.site());
            let own = !event.site().is_in_library();
            if !conflicts || !own || lines.contains(&line) || inside(event.id) {
                continue;
            }
            let at_once = same_places.iter().any(|other| {
                trace.event(*other).thread != event.thread
                    && !self.system.surely_before(event.id, *other)
                    && !self.system.surely_before(*other, event.id)
            });
            if at_once {
                lines.push(line);
            }
        }
        lines
    }
}

fn candidate(bug: &Bug<'_>, all: &[Section], plan: Plan) -> Option<Candidate> {
    let trace = bug.trace;
    let variables = super::variables(bug);
    let mut edit = Edit::new(trace);
    let object = match plan.lock {
        Some(object) => object,
        None => edit.object(ObjectKind::Lock, "a new lock"),
    };
    guard(&mut edit, object, &plan.regions);
    let edited = edit.finish()?;
    let kind = if plan.only_longer { Kind::HoldAcross } else { Kind::CriticalSection };
    let (name, lock) = match plan.lock {
        Some(object) => {
            let name = lock_name(trace, object);
            (quoted(&name), Guard { name, new: false })
        }
        None => {
            let what: Vec<String> = variables.iter().map(|name| quoted(name)).collect();
            let name = format!("a new mutex for {}", what.join(" and "));
            (name.clone(), Guard { name, new: true })
        }
    };
    let mut steps = Vec::new();
    for (number, span) in plan.spans.iter().enumerate() {
        let lock = if number > 0 && plan.lock.is_none() { "it" } else { &name };
        steps.push(held(lock, span));
    }
    if plan.only_longer {
        steps.extend(plan.lock.and_then(|lock| given_back(trace, all, lock, &plan.regions)));
    }
    let rule = alone(trace, &edited, object);
    let repair = Repair {
        kind,
        steps,
        lock: Some(lock),
        variables,
        places: plan.spans,
        rule,
        checked: None,
    };
    Some(Candidate { repair, edited })
}

/// ``hold `queue->lock` from queue.c:80 to queue.c:90 in get_file``.
pub(super) fn held(lock: &str, span: &Span) -> String {
    let Span { function, .. } = span;
    if span.first == span.last {
        format!("hold {lock} at {} in {function}", span.begin())
    } else {
        format!("hold {lock} from {} to {} in {function}", span.begin(), span.end())
    }
}

/// Where the lock is given back too early.
fn given_back(
    trace: &EventTrace,
    all: &[Section],
    lock: ObjectId,
    regions: &[(EventId, EventId)],
) -> Option<String> {
    let index = |id: EventId| trace.event(id).index;
    regions.iter().find_map(|(first, last)| {
        let inside = |id: EventId| {
            trace.event(id).thread == trace.event(*first).thread
                && (index(*first)..=index(*last)).contains(&index(id))
        };
        let mut own = all.iter().filter(|s| s.object == lock && inside(s.lock));
        let (one, two) = (own.next()?, own.next()?);
        let [back, again] = [one.unlock, two.lock].map(|id| Span::of(trace.event(id).site()));
        Some(format!(
            "do not give it back at {} in {} and take it again at {} in {}",
            back.begin(),
            back.function,
            again.begin(),
            again.function
        ))
    })
}

/// Only one thread at a time in the sections that the edited trace has of a lock.
pub(super) fn alone(trace: &EventTrace, edited: &Edited, object: ObjectId) -> Rule {
    let recorded = |id: EventId| edited.origin.get(id.index()).copied().flatten();
    let stretches = sections(&edited.trace).into_iter().filter(|s| s.object == object);
    let stretches = stretches.filter_map(|section| {
        let own = &edited.trace.thread_of(section.lock).events;
        let index = |id: EventId| edited.trace.event(id).index as usize;
        let inside = own.get(index(section.lock)..=index(section.unlock))?;
        let mut kept = inside
            .iter()
            .filter_map(|id| recorded(*id))
            .filter(|id| trace.events.get(id.index()).is_some_and(|event| event.site().line != 0));
        let first = kept.next()?;
        Some(Stretch { first, last: kept.next_back().unwrap_or(first) })
    });
    Rule::Alone(stretches.collect())
}
