//! Accesses that belong together: one critical section for them.

use super::checked::{from_check, to_step, up_to_failure, validated};
use super::held::{
    Region, are_no_places_for, given_back, is_ambiguous, taken_inside, without_nested,
};
use super::planner::{Block, Plan, Planner};
use super::remembered::Remembered;
use super::siblings::Siblings;
use super::{Candidate, Guard, Kind, Repair, fetched, order, quoted, together};
use crate::Bug;
use crate::beside::is_beside;
use crate::edit::{Edit, Edited};
use crate::enforce::{Rule, Stretch};
use crate::rust;
use crate::sections::{
    Section, Sections, begins_wait, guard, is_end, is_held, is_internal, is_once,
    is_taken_by_program, lock_name, sections,
};
use crate::source::{Span, passages, span};
use crate::words::{lock_phrase, lock_word};
use encoders::ConstraintSystem;
use explain::Pattern;
use model::{
    CellId, EventId, EventKind, EventTrace, FailureCondition, LockMode, ObjectId, ObjectKind,
    ThreadId, VariableOrigin,
};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn candidates(bug: &Bug<'_>) -> Vec<Candidate> {
    let trace = bug.trace;
    let Ok(system) = crate::contended::orders(trace) else { return Vec::new() };
    let all = sections(trace);
    let mut siblings: BTreeMap<ObjectId, Siblings> = BTreeMap::new();
    // A lock that each object has is freed with it.
    let frees = matches!(bug.pattern, Pattern::UseAfterFree | Pattern::DoubleFree);
    let of_lock = |lock: ObjectId| match frees {
        true => Siblings::none(lock),
        false => Siblings::of(trace, &all, lock),
    };
    let (mut found, mut wide, mut sides) = (Vec::new(), Vec::new(), Vec::new());
    let parted = matches!(bug.pattern, Pattern::Atomicity | Pattern::SeveralVariables);
    let remembered = Remembered::of(bug, &all);
    let apart = super::one_sided::parted(bug);
    for width in [
        Width::Fetched,
        Width::Validated,
        Width::Telling,
        Width::Named,
        Width::Call,
        Width::Function,
        Width::Together,
    ] {
        let blocks = match width {
            Width::Fetched => fetched::blocks(bug),
            Width::Validated => validated(bug, &all, ends(bug).collect()),
            Width::Telling => telling(bug),
            Width::Together if parted => together::blocks(bug, ends(bug).collect()),
            Width::Together => Vec::new(),
            _ => blocks(bug, &all, width),
        };
        let blocks = remembered.whole(blocks);
        let mut locks: Vec<Option<ObjectId>> = locks(trace, &all, &blocks);
        for lock in elsewhere(bug, &all).into_iter().map(Some) {
            if !locks.contains(&lock) {
                locks.push(lock);
            }
        }
        agreed(bug, &all, &mut locks);
        locks.push(None);
        for lock in locks {
            let siblings = lock.map(|lock| {
                let entry = siblings.entry(lock);
                &*entry.or_insert_with(|| of_lock(lock))
            });
            let planner =
                Planner { trace, system: &system, all: &all, lock, siblings, complete: true };
            let joined = planner.joined(&blocks).and_then(|blocks| planner.plan(&blocks));
            let fewer = Planner { complete: false, ..planner };
            for plan in
                planner.one_sided(&blocks, apart).iter().filter_map(|blocks| fewer.plan(blocks))
            {
                sides.extend(candidate(bug, &all, siblings, plan));
            }
            for plan in
                [planner.plan_around(&blocks), planner.plan_called(&blocks)].into_iter().flatten()
            {
                wide.extend(candidate(bug, &all, siblings, plan));
            }
            let found = if width == Width::Together { &mut wide } else { &mut found };
            for plan in joined.into_iter().chain(planner.plan(&blocks)) {
                let instead = super::instead::plan(bug, &all, &plan);
                found.extend(instead.and_then(|plan| candidate(bug, &all, siblings, plan)));
                found.extend(candidate(bug, &all, siblings, plan));
            }
        }
    }
    // What is read too early was let loose by a section that ended too early; elsewhere, sections that
    // come before have nothing to do with it.
    if bug.pattern == Pattern::Order {
        found.extend(extended(bug, &system, &all));
        found.extend(created(bug, &system, &all));
    }
    sides.append(&mut found);
    let mut found = sides;
    // What only makes sections longer is the smallest change; a new lock is the largest.
    found.sort_by_key(|candidate: &Candidate| {
        let new = candidate.repair.lock.as_ref().is_some_and(|lock| lock.new);
        (candidate.repair.kind, new)
    });
    // Only where less is not enough.
    found.extend(wide);
    found
}

/// How much of what a thread does with the variables belongs together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Width {
    /// From where a thread got the pointer to an object that is freed, to its use.
    Fetched,
    /// From the last look at what somebody else would have changed.
    Validated,
    /// From the check to the write that it leads to; or only up to the thread's next step that others see.
    Telling,
    /// What the cause names, and a single access with the rest of its critical section.
    Named,
    /// A single access with the rest of its call of the function.
    Call,
    /// All lines of the function that touch them, in any passage.
    Function,
    /// What calls do with other variables that the threads have in common, besides.
    Together,
}

/// The threads' sections before the events of the cause, in the same calls: each is held until the
/// event has happened.
fn extended(bug: &Bug<'_>, system: &ConstraintSystem, all: &Sections) -> Vec<Candidate> {
    let trace = bug.trace;
    let thread = |id: EventId| trace.event(id).thread;
    // The section of a lock that a thread has left last before an event.
    let before = |id: EventId, lock: Option<ObjectId>| {
        let mut earlier = all.left_before(trace, id);
        earlier.find(|section| {
            lock.is_none_or(|lock| lock == section.object) && !is_once(trace, all, section.object)
        })
    };
    let block = |id: EventId, section: Section| {
        let inner = all.around(trace, id).into_iter().next_back();
        Block {
            first: section.lock,
            last: inner.map_or(id, |s| s.unlock),
            lines: None,
            counts: false,
        }
    };
    let mut found = Vec::new();
    for &id in bug.events {
        let Some(section) = before(id, None) else { continue };
        let lock = Some(section.object);
        let one = vec![block(id, section)];
        // The others do the same, where they have such a section.
        let others = bug.events.iter().filter(|other| thread(**other) != thread(id));
        let others = others.filter_map(|other| Some(block(*other, before(*other, lock)?)));
        let both: Vec<Block> = one.iter().cloned().chain(others).collect();
        for blocks in [one, both] {
            let siblings = &Siblings::of(trace, all, section.object);
            let siblings = Some(siblings);
            let planner = Planner { trace, system, all, lock, siblings, complete: false };
            let plan = planner.plan(&blocks);
            found.extend(plan.and_then(|plan| candidate(bug, all, siblings, plan)));
        }
    }
    found
}

/// What a thread needs to find when it begins is written by its creator once it is there, its handle in a list, say:
/// where the thread looks under a lock, its creator holds that from the creation on.
fn created(bug: &Bug<'_>, system: &ConstraintSystem, all: &Sections) -> Vec<Candidate> {
    let trace = bug.trace;
    let mut found = Vec::new();
    for order::Wanted { first, then } in order::wanted(bug) {
        let child = trace.event(then).thread;
        let earlier = trace.thread_of(first).events.iter().take(trace.event(first).index as usize);
        let creates = |id: &&EventId| trace.event(**id).kind == EventKind::Fork { child };
        let Some(&fork) = earlier.rev().find(|id| creates(id)) else { continue };
        if span(trace.event(fork), trace.event(first)).is_none_or(|span| span.first == span.last) {
            continue;
        }
        for section in all.around(trace, then) {
            if is_once(trace, all, section.object) || is_internal(&lock_name(trace, section.object))
            {
                continue;
            }
            let lock = Some(section.object);
            let siblings = Siblings::of(trace, all, section.object);
            let siblings = Some(&siblings);
            let planner = Planner { trace, system, all, lock, siblings, complete: false };
            let block = |first, last| Block { first, last, lines: None, counts: false };
            let plan = planner.plan(&[block(fork, first), block(then, then)]);
            found.extend(plan.and_then(|plan| candidate(bug, all, siblings, plan)));
        }
    }
    found
}

/// Thread by thread, from the first to the last event that the cause names. A single access is
/// widened to what its thread does with the variable in the same critical section, or, where that
/// is asked for, in the same call of the function.
fn blocks(bug: &Bug<'_>, all: &Sections, width: Width) -> Vec<Block> {
    let trace = bug.trace;
    let cells = cells(trace, bug.events);
    let blocks = ends(bug).map(|block| match width {
        Width::Function => {
            let lines = function_lines(trace, all, &block, &cells);
            Block { lines, ..block }
        }
        _ if block.first == block.last => widened(trace, all, block, &cells, width == Width::Call),
        _ => block,
    });
    blocks.collect()
}

/// The blocks, some of them from the check to the write that it led to, or shorter. Empty where none
/// is.
fn telling(bug: &Bug<'_>) -> Vec<Block> {
    let blocks: Vec<Block> = ends(bug).collect();
    let others: Vec<Option<Block>> = blocks
        .iter()
        .map(|block| {
            from_check(bug.trace, block)
                .or_else(|| to_step(bug, block))
                .or_else(|| up_to_failure(bug, block))
        })
        .collect();
    if others.iter().all(Option::is_none) {
        return Vec::new();
    }
    blocks.into_iter().zip(others).map(|(block, other)| other.unwrap_or(block)).collect()
}

/// Thread by thread, from the first to the last event that the cause names.
fn ends<'b>(bug: &'b Bug<'_>) -> impl Iterator<Item = Block> + 'b {
    let trace = bug.trace;
    let index = move |id: &EventId| trace.event(*id).index;
    let threads: BTreeSet<_> = bug.events.iter().map(|id| trace.event(*id).thread).collect();
    threads.into_iter().filter_map(move |thread| {
        let own = || bug.events.iter().copied().filter(|id| trace.event(*id).thread == thread);
        let (first, last) = (own().min_by_key(index)?, own().max_by_key(index)?);
        Some(Block { first, last, lines: None, counts: false })
    })
}

fn widened(
    trace: &EventTrace,
    all: &Sections,
    block: Block,
    cells: &BTreeSet<CellId>,
    wide: bool,
) -> Block {
    let limits = match all.around(trace, block.first).first() {
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
    Block { first, last: accesses.next_back().unwrap_or(first), lines: None, counts: false }
}

/// The lines of the block's function at which any thread touches the cells, or those that the
/// failure's condition compares with them, with the sections around them as far as they are taken
/// and given back in the function. `None` for a single line.
fn function_lines(
    trace: &EventTrace,
    all: &Sections,
    block: &Block,
    cells: &BTreeSet<CellId>,
) -> Option<Span> {
    let site = trace.event(block.first).site();
    let own = |id: EventId| {
        let other = trace.event(id).site();
        other.function == site.function && other.file == site.file && other.line != 0
    };
    let mut cells = cells.clone();
    cells.extend(compared(trace));
    let mut lines: BTreeSet<u32> = BTreeSet::new();
    for id in ids(trace).filter(|id| own(*id) && touches(trace, *id, &cells)) {
        lines.insert(trace.event(id).site().line);
        for section in all.around(trace, id) {
            if own(section.lock) && own(section.unlock) {
                lines.extend([section.lock, section.unlock].map(|id| trace.event(id).site().line));
            }
        }
    }
    let (first, last) = (*lines.first()?, *lines.last()?);
    (first < last).then(|| Span { first, last, ..Span::of(site) })
}

/// The cells whose values decide the failure.
fn compared(trace: &EventTrace) -> BTreeSet<CellId> {
    let Some(FailureCondition::Value(expr)) =
        trace.failure.as_ref().map(|failure| &failure.condition)
    else {
        return BTreeSet::new();
    };
    let origins = trace.exprs.variables(*expr).into_iter();
    let origins = origins.filter_map(|var| Some(trace.variables.get(var.index())?.origin));
    let cells = origins.filter_map(|origin| match origin {
        VariableOrigin::Read { event, part } => {
            trace.event(event).kind.reads().get(part as usize).map(|read| read.cell)
        }
        VariableOrigin::Init(cell) => Some(cell),
        VariableOrigin::Input => None,
    });
    cells.collect()
}

pub(super) fn cells(trace: &EventTrace, events: &[EventId]) -> BTreeSet<CellId> {
    let kinds = events.iter().map(|id| &trace.event(*id).kind);
    kinds
        .flat_map(|kind| {
            let reads = kind.reads().iter().map(|part| part.cell);
            reads.chain(kind.writes().iter().map(|part| part.cell))
        })
        .collect()
}

pub(super) fn touches(trace: &EventTrace, id: EventId, cells: &BTreeSet<CellId>) -> bool {
    let kind = &trace.event(id).kind;
    kind.reads().iter().any(|part| cells.contains(&part.cell))
        || kind.writes().iter().any(|part| cells.contains(&part.cell))
}

/// The locks that are held at some of the blocks' ends, those that are held at most of them first.
fn locks(trace: &EventTrace, all: &Sections, blocks: &[Block]) -> Vec<Option<ObjectId>> {
    let ends: Vec<EventId> = blocks.iter().flat_map(|block| [block.first, block.last]).collect();
    let held = |id: &EventId| all.around(trace, *id).into_iter().map(|section| section.object);
    let mut objects: Vec<ObjectId> = Vec::new();
    for object in ends.iter().flat_map(held) {
        // What libraries lock inside is not the program's to hold.
        if !objects.contains(&object) && is_programs(trace, all, object) {
            objects.push(object);
        }
    }
    let count =
        |object: &ObjectId| ends.iter().filter(|id| held(id).any(|other| other == *object)).count();
    objects.sort_by_key(|object| std::cmp::Reverse(count(object)));
    objects.into_iter().map(Some).collect()
}

/// Is it a lock that the program may hold for longer?
fn is_programs(trace: &EventTrace, all: &Sections, object: ObjectId) -> bool {
    !is_internal(&lock_name(trace, object))
        && !is_once(trace, all, object)
        && is_taken_by_program(trace, object)
}

/// The locks that are held at writes of the cause's variables elsewhere, those at most of them first:
/// who forgot one forgot that. What is only read under a lock may be read there for another reason, unless both are
/// members of one object; and so may
/// what is written for the first time: who makes an object, or asks for it to be made, may hold a lock of its own.
fn elsewhere(bug: &Bug<'_>, all: &Sections) -> Vec<ObjectId> {
    let trace = bug.trace;
    let cells = cells(trace, bug.events);
    let mut counts: Vec<(ObjectId, usize)> = Vec::new();
    let first_uses: BTreeSet<EventId> = cells
        .iter()
        .filter_map(|cell| {
            let of_cell = BTreeSet::from([*cell]);
            bug.schedule.iter().copied().find(|id| touches(trace, *id, &of_cell))
        })
        .collect();
    let writes = |event: &model::Event| {
        event.kind.writes().iter().any(|part| cells.contains(&part.cell))
            && !first_uses.contains(&event.id)
    };
    for id in ids(trace).filter(|id| touches(trace, *id, &cells)) {
        let event = trace.event(id);
        let held = all.around(trace, id).into_iter();
        for section in held.filter(|one| writes(event) || is_beside(trace, one, event)) {
            match counts.iter_mut().find(|(object, _)| *object == section.object) {
                Some((_, count)) => *count += 1,
                None => counts.push((section.object, 1)),
            }
        }
    }
    counts.retain(|(object, _)| is_programs(trace, all, *object));
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts.into_iter().map(|(object, _)| object).collect()
}

/// Where all threads of the cause hold some lock at its variables already, it is that one: another lock
/// that only some of them have to do with may not even be within reach of the others.
fn agreed(bug: &Bug<'_>, all: &Sections, locks: &mut Vec<Option<ObjectId>>) {
    let trace = bug.trace;
    let cells = cells(trace, bug.events);
    let accesses = || bug.events.iter().copied().filter(|id| touches(trace, *id, &cells));
    let everywhere = |lock: &Option<ObjectId>| {
        let has =
            |id: EventId| all.around(trace, id).iter().any(|section| Some(section.object) == *lock);
        accesses().next().is_some() && accesses().all(has)
    };
    if locks.iter().any(everywhere) {
        locks.retain(everywhere);
    }
}

/// Where a lock that is held at none of these places is held at an access of the cause's variables.
fn example(bug: &Bug<'_>, all: &Sections, plan: &Plan) -> Option<String> {
    let trace = bug.trace;
    let lock = plan.lock?;
    let cells = cells(trace, bug.events);
    let held = |id: EventId| all.around(trace, id).iter().any(|section| section.object == lock);
    if bug.events.iter().any(|id| held(*id)) {
        return None;
    }
    let mut accesses = trace.events.iter().filter(|event| touches(trace, event.id, &cells));
    let access = accesses.find(|event| held(event.id) && !event.site().is_in_library())?;
    let place = Span::of(access.site());
    Some(format!("as {} ({}) does", place.function, place.begin()))
}

fn candidate(
    bug: &Bug<'_>,
    all: &Sections,
    siblings: Option<&Siblings>,
    plan: Plan,
) -> Option<Candidate> {
    let trace = bug.trace;
    let of_region = |region: &(EventId, EventId)| match siblings {
        Some(siblings) => siblings.of_region(trace, all, *region),
        None => None,
    };
    let is_so = |region: &(EventId, EventId)| {
        of_region(region).is_some_and(|lock| is_held(trace, all, lock, region.0, region.1))
    };
    if plan.regions.iter().all(is_so) {
        return None;
    }
    let mut plan = without_nested(trace, plan)?;
    if !fetched::settles(bug, all, plan.lock, &plan.regions) {
        return None;
    }
    // Lines that hold the lock already, whenever anybody comes through them, need no change.
    let needed = |span: &Span| !passages(trace, span).iter().all(is_so);
    if plan.spans.iter().any(needed) {
        plan.spans.retain(needed);
        let spans = &plan.spans;
        plan.regions.retain(|region| {
            let mut frames = trace.event(region.0).stack.iter();
            !is_so(region) || frames.any(|site| spans.iter().any(|span| span.has(site)))
        });
    }
    let plan = plan;
    let variables = super::variables(bug);
    let mut edit = Edit::new(trace);
    let object = match plan.lock {
        Some(object) => object,
        None => edit.object(ObjectKind::Lock, "a new lock"),
    };
    // A region that has to do with several objects' locks says nothing about which one to hold.
    let regions: Option<Vec<Region>> = plan
        .regions
        .iter()
        .map(|region| {
            let (first, last) = *region;
            let lock = if plan.lock.is_some() { of_region(region)? } else { object };
            Some(Region { first, last, lock })
        })
        .collect();
    let regions = regions?;
    if plan.lock.is_some() && are_no_places_for(bug, &regions, &plan.spans) {
        return None;
    }
    // A wait gives back its own mutex alone: who comes to wake the thread would wait for this one.
    let kept_by_wait = |region: &Region| {
        begins_wait(trace, region.last)
            && !matches!(trace.event(region.last).kind, EventKind::Unlock { object, .. } if object == region.lock)
    };
    if regions.iter().any(kept_by_wait) {
        return None;
    }
    let others = siblings.into_iter().flat_map(Siblings::others).copied();
    // By lock, its own regions.
    let parts: Vec<(ObjectId, Vec<(EventId, EventId)>)> = std::iter::once(object)
        .chain(others)
        .map(|lock| {
            let own = regions.iter().filter(|region| region.lock == lock);
            (lock, own.map(|region| (region.first, region.last)).collect())
        })
        .filter(|(lock, own): &(ObjectId, Vec<_>)| *lock == object || !own.is_empty())
        .collect();
    for (lock, own) in &parts {
        guard(&mut edit, *lock, own);
    }
    if let Some(condition) = while_held(trace, all, object, &plan.spans, &parts[0].1) {
        edit.fails_when(condition);
    }
    let edited = edit.finish()?;
    let kind = if plan.only_longer { Kind::HoldAcross } else { Kind::CriticalSection };
    // What the lock is called in a function: by the first region there.
    let region = |span: &Span| {
        let there = |(first, _): &&(EventId, EventId)| {
            let mut frames = trace.event(*first).stack.iter();
            frames.any(|site| span.has(site))
        };
        plan.regions.iter().find(there).copied()
    };
    let called = |object, span: &Span| lock_word(trace, object, span, region(span));
    let (name, lock) = match plan.lock {
        Some(object) => {
            let name = plan
                .spans
                .first()
                .map_or_else(|| lock_name(trace, object), |span| called(object, span));
            (quoted(&name), Guard { name, new: false })
        }
        None => {
            let what: Vec<String> = variables.iter().map(|name| quoted(name)).collect();
            let name = new_mutex(&plan.spans, "for", &what);
            (name.clone(), Guard { name, new: true })
        }
    };
    if let Some(object) = plan.lock
        && plan
            .spans
            .iter()
            .any(|span| is_ambiguous(trace, all, &regions, span, &called(object, span)))
    {
        return None;
    }
    let mut steps = Vec::new();
    for (number, span) in plan.spans.iter().enumerate() {
        let lock = match plan.lock {
            Some(object) => lock_phrase(trace, object, span, region(span)),
            None if number > 0 => "it".to_owned(),
            None => name.clone(),
        };
        let only_read =
            plan.lock.is_some_and(|lock| is_taken_to_read(trace, all, lock, &plan, span));
        let instead = match (only_read, rust::is_rust(&span.file), plan.lock) {
            (true, true, _) => " with `write()`, not with `read()`,".to_owned(),
            (true, false, _) => " to write, not to read,".to_owned(),
            (false, true, Some(object)) if number == 0 && lock.starts_with('`') => {
                let method = rust::method(trace, object);
                format!(" (`{}.{method}().unwrap()`)", lock.trim_matches(['`', '*']))
            }
            _ => String::new(),
        };
        steps.push(held(&format!("{lock}{instead}"), span));
    }
    if let Some((last, example)) = steps.last_mut().zip(example(bug, all, &plan)) {
        last.push_str(&format!(", {example}"));
    }
    let known = parts.iter().filter(|_| plan.lock.is_some());
    let taken = known.clone().filter(|_| !plan.only_longer);
    let taken = taken.flat_map(|(lock, own)| taken_inside(trace, all, *lock, &plan.spans, own));
    let back = known.flat_map(|(lock, own)| given_back(trace, all, *lock, own));
    for step in taken.chain(back) {
        if !steps.contains(&step) {
            steps.push(step);
        }
    }
    let locks: Vec<ObjectId> = parts.iter().map(|(lock, _)| *lock).collect();
    let rule = alone(trace, &edited, &locks);
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

/// All events, thread by thread.
fn ids(trace: &EventTrace) -> impl Iterator<Item = EventId> + '_ {
    trace.threads.iter().flat_map(|thread| thread.events.iter().copied())
}

/// Do these lines take a reader/writer lock to read first, and write all the same?
fn is_taken_to_read(
    trace: &EventTrace,
    all: &Sections,
    lock: ObjectId,
    plan: &Plan,
    span: &Span,
) -> bool {
    let index = |id: EventId| trace.event(id).index as usize;
    // The first one that a thread takes there is what it holds from then on.
    let mut first: BTreeMap<ThreadId, &Section> = BTreeMap::new();
    for section in all.iter().filter(|s| s.object == lock) {
        let event = trace.event(section.lock);
        let earlier = first.get(&event.thread);
        if earlier.is_none_or(|earlier| event.index < trace.event(earlier.lock).index)
            && span.has(event.site())
        {
            first.insert(event.thread, section);
        }
    }
    let begins = first.into_values();
    let modes: Vec<LockMode> = begins.map(|section| section.mode).collect();
    if modes.is_empty() || modes.iter().any(|mode| *mode != LockMode::Shared) {
        return false;
    }
    let mut there = plan.regions.iter().filter(|(first, _)| {
        let mut frames = trace.event(*first).stack.iter();
        frames.any(|site| span.has(site))
    });
    there.any(|(first, last)| {
        let own = &trace.thread_of(*first).events;
        let inside = own.get(index(*first)..=index(*last)).unwrap_or_default();
        inside.iter().any(|id| !trace.event(*id).kind.writes().is_empty())
    })
}

/// What a lock that is not there yet is called. Of all places in regions of OpenMP it is a section of that.
pub(super) fn new_mutex<'s>(
    places: impl IntoIterator<Item = &'s Span> + Clone,
    is_for: &str,
    variables: &[String],
) -> String {
    let openmp = places.clone().into_iter().all(Span::is_region);
    let words = match openmp {
        true => " (`#pragma omp critical`)",
        false if rust::are_rust(places) => rust::NEW_MUTEX,
        false => "",
    };
    format!("a new mutex{words} {is_for} {}", variables.join(" and "))
}

/// Where a thread's log ends in the middle of what is to be one section, nobody gets the lock after
/// it, since the code that gives it back was not reached: then the run fails only in schedules that
/// have the others' sections before. `None` where all sections are whole.
fn while_held(
    trace: &EventTrace,
    all: &Sections,
    lock: ObjectId,
    spans: &[Span],
    regions: &[(EventId, EventId)],
) -> Option<FailureCondition> {
    let is_open = |last: EventId| {
        let event = trace.event(last);
        let inside = |span: &Span| {
            let mut frames = event.stack.iter();
            frames.any(|site| span.has(site) && site.line < span.last)
        };
        is_end(trace, last)
            && !matches!(event.kind, EventKind::Exit | EventKind::Failure | EventKind::Block { .. })
            && trace.failure.as_ref().is_some_and(|f| trace.event(f.event).thread != event.thread)
            && spans.iter().any(inside)
    };
    let open: Vec<EventId> =
        regions.iter().filter(|(_, last)| is_open(*last)).map(|(first, _)| *first).collect();
    if open.is_empty() {
        return None;
    }
    let thread = |id: EventId| trace.event(id).thread;
    let index = |id: EventId| trace.event(id).index;
    // Sections that become part of a longer one no longer have ends of their own.
    let merged = |section: &Section| {
        regions.iter().any(|(first, last)| {
            thread(*first) == thread(section.lock)
                && index(*first) <= index(section.unlock)
                && index(section.lock) <= index(*last)
        })
    };
    let known = all.iter().filter(|s| s.object == lock && !merged(s)).map(|s| (s.lock, s.unlock));
    let others: Vec<(EventId, EventId)> = known.chain(regions.iter().copied()).collect();
    let mut parts = Vec::new();
    for first in open {
        let others = others.iter().filter(|(other, _)| thread(*other) != thread(first));
        parts.extend(others.map(|(_, last)| FailureCondition::Before(*last, first)));
    }
    if parts.is_empty() {
        return None;
    }
    parts.push(trace.failure.as_ref()?.condition.clone());
    Some(FailureCondition::All(parts))
}

/// ``hold `queue->lock` from queue.c:80 to queue.c:90 in get_file``.
pub(super) fn held(lock: &str, span: &Span) -> String {
    let Span { function, .. } = span;
    let guard = if rust::is_rust(&span.file) { "one guard of " } else { "" };
    if span.first == span.last {
        format!("hold {guard}{lock} at {} in {function}", span.begin())
    } else {
        format!("hold {guard}{lock} from {} to {} in {function}", span.begin(), span.end())
    }
}

/// Only one thread at a time in the sections that the edited trace has of the locks.
pub(super) fn alone(trace: &EventTrace, edited: &Edited, locks: &[ObjectId]) -> Rule {
    let recorded = |id: EventId| edited.origin.get(id.index()).copied().flatten();
    let stretches = sections(&edited.trace).into_iter().filter(|s| locks.contains(&s.object));
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

#[cfg(test)]
mod tests {
    use super::*;
    use encoders::dsl::parse;
    use model::Site;

    #[test]
    fn a_new_lock_is_told_in_the_language_of_its_lines() {
        let told = |file: &str| {
            let (file, function) = (file.to_owned(), "add".to_owned());
            let places = [Span { file, function, first: 8, last: 9 }];
            held(&new_mutex(&places, "for", &["`n`".to_owned()]), &places[0])
        };
        assert_eq!(told("n.c"), "hold a new mutex for `n` from n.c:8 to n.c:9 in add");
        assert_eq!(
            told("n.rs"),
            "hold one guard of a new mutex (`static LOCK: Mutex<()> = Mutex::new(());`, `let guard = \
             LOCK.lock().unwrap();`) for `n` from n.rs:8 to n.rs:9 in add"
        );
    }

    #[test]
    fn lines_that_hold_the_lock_already_are_not_named() {
        let text = "
            b: [take1] lock m
            b: [look1] R photos -> p
            b: [give1] unlock m
            b: [take2] lock m
            b: [look2] R photos -> q
            b: [give2] unlock m
            a: [take] lock m
            a: [find] R albums -> r
            a: [give] unlock m
            a: [use] W photos 1
        ";
        let mut parsed = parse(text).expect("the text is a trace");
        let places = [
            ("take", vec![site("find", 49), site("upload", 26)]),
            ("find", vec![site("find", 50), site("upload", 26)]),
            ("give", vec![site("find", 51), site("upload", 26)]),
            ("use", vec![site("upload", 28)]),
        ];
        let create = [("take1", 20), ("look1", 21), ("give1", 23)];
        let create = create.into_iter().chain([("take2", 20), ("look2", 21), ("give2", 23)]);
        let create = create.map(|(label, line)| (label, vec![site("create", line)]));
        for (label, stack) in places.into_iter().chain(create) {
            let id = parsed.event(label);
            parsed.trace.events[id.index()].stack = stack.into();
        }
        let events = ["look2", "use"].map(|label| parsed.event(label));
        let bug = Bug::by_hand(&parsed.trace, Pattern::Order, &events);
        let found = candidates(&bug);
        let functions = |found: &Candidate| -> Vec<String> {
            found.repair.places.iter().map(|place| place.function.clone()).collect()
        };
        let known = |found: &&Candidate| found.repair.lock.as_ref().is_some_and(|lock| !lock.new);
        let all: Vec<Vec<String>> = found.iter().filter(known).map(functions).collect();
        assert!(all.contains(&vec!["upload".to_owned()]), "{all:?}");
        assert!(!all.iter().flatten().any(|function| function == "create"), "{all:?}");
        let mut steps = found.iter().filter(known).flat_map(|found| &found.repair.steps);
        assert!(!steps.any(|step| step.contains("create")));
    }

    fn site(function: &str, line: u32) -> Site {
        let (file, function) = ("gallery.cc".to_owned(), function.to_owned());
        Site { file, line, column: 1, function }
    }
}
