//! Accesses of one variable that become fewer: a read and the write that follows from it are one
//! atomic step, a value that was read twice is read once; and a semaphore that guards them lets one
//! thread in.

use super::{Candidate, Guard, Kind, Repair, quoted};
use crate::Bug;
use crate::decisions::Decisions;
use crate::edit::Edit;
use crate::enforce::{Rule, Stretch};
use crate::rust;
use crate::sections::{lock_name, units};
use crate::source::{Span, span};
use model::trace::ValueDisplay;
use model::{
    CellId, Event, EventId, EventKind, EventTrace, FailureCondition, ObjectKind, PathCondition,
    PathConditionKind, ReadPart, VarId, VariableOrigin, WritePart,
};
use std::collections::{BTreeMap, BTreeSet};

/// A read, and what one thread does later with the same cells.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    read: EventId,
    then: EventId,
}

/// A semaphore around what nothing may come between has room for several threads: it gets room for
/// one.
pub(super) fn one_unit(bug: &Bug<'_>) -> Vec<Candidate> {
    let trace = bug.trace;
    let all = units(trace);
    let mut found = Vec::new();
    for semaphore in &trace.objects {
        let ObjectKind::Semaphore { initial } = semaphore.kind else { continue };
        let around = |id: &EventId| {
            all.around(trace, *id).into_iter().find(|unit| unit.object == semaphore.id)
        };
        let sections: Option<Vec<_>> = bug.events.iter().map(around).collect();
        let Some(sections) = sections.filter(|all| initial > 1 && !all.is_empty()) else {
            continue;
        };
        let mut places: Vec<Span> = Vec::new();
        for section in &sections {
            let place = Span::of(trace.event(section.lock).site());
            if !places.contains(&place) {
                places.push(place);
            }
        }
        let mut edit = Edit::new(trace);
        edit.change(semaphore.id, ObjectKind::Semaphore { initial: 1 });
        let Some(edited) = edit.finish() else { continue };
        let name = lock_name(trace, semaphore.id);
        let step = format!(
            "let {} begin with 1 unit, not with {initial}: then only one thread at a time gets past {}",
            quoted(&name),
            places.iter().map(Span::begin).collect::<Vec<_>>().join(" and ")
        );
        let own = all.iter().filter(|unit| unit.object == semaphore.id);
        let stretches = own.map(|unit| Stretch { first: unit.lock, last: unit.unlock });
        let repair = Repair {
            kind: Kind::OneUnit,
            steps: vec![step],
            lock: Some(Guard { name, new: false }),
            variables: super::variables(bug),
            places,
            rule: Rule::Alone(stretches.collect()),
            checked: None,
        };
        found.push(Candidate { repair, edited });
    }
    found
}

/// The reads and writes of the cause's variable that follow from each other become atomic updates.
pub(super) fn one_step(bug: &Bug<'_>) -> Option<Candidate> {
    let trace = bug.trace;
    let cells = one_variable(bug)?;
    if bug.events.iter().any(|id| is_part_of_library(trace, *id)) {
        return None;
    }
    let decisions = Decisions::of(trace);
    let pairs: Vec<Pair> = trace
        .events
        .iter()
        .filter(|event| matches!(event.kind, EventKind::Write { .. }) && touches(event, &cells))
        .filter_map(|write| update(trace, &decisions, write))
        .collect();
    let named = |pair: &Pair| bug.events.contains(&pair.read) || bug.events.contains(&pair.then);
    if !pairs.iter().any(named) || pairs.iter().any(|pair| is_one_call_of_library(trace, pair)) {
        return None;
    }
    let mut edit = Edit::new(trace);
    let mut places: BTreeMap<Span, Vec<Pair>> = BTreeMap::new();
    for pair in &pairs {
        let reads = trace.event(pair.read).kind.reads().to_vec();
        let writes = trace.event(pair.then).kind.writes().to_vec();
        edit.replace(pair.read, EventKind::ReadModifyWrite { reads, writes });
        edit.remove(pair.then);
        let place = span(trace.event(pair.read), trace.event(pair.then))?;
        places.entry(place).or_default().push(*pair);
    }
    let edited = edit.finish()?;
    let variables = super::variables(bug);
    let what = variables.first().map(|name| quoted(name)).unwrap_or_default();
    let steps = places.iter().enumerate().map(|(number, (place, pairs))| {
        let what = if number == 0 { what.as_str() } else { "it" };
        let lines = match place.first == place.last {
            true => place.begin(),
            false => format!("{} to {}", place.begin(), place.end()),
        };
        let pairs = || pairs.iter().map(|pair| (trace.event(pair.read), trace.event(pair.then)));
        let how = match place.is_region() {
            true => "`#pragma omp atomic`".to_owned(),
            false if rust::is_rust(&place.file) => {
                let is_atomic = pairs().all(|(_, write)| write.is_atomic_operation());
                rust::one_step(trace, pairs(), is_atomic)
            }
            false => "an atomic addition, exchange or compare-exchange".to_owned(),
        };
        format!("in {}, change {what} in one atomic step ({lines}): {how}", place.function)
    });
    let stretches = pairs.iter().map(|pair| Stretch { first: pair.read, last: pair.then });
    let repair = Repair {
        kind: Kind::OneStep,
        steps: steps.collect(),
        lock: None,
        variables,
        places: places.into_keys().collect(),
        rule: Rule::Alone(stretches.collect()),
        checked: None,
    };
    Some(Candidate { repair, edited })
}

/// Does one call of a library read and write, as where a bit of a `std::vector<bool>` is set? How it does that is not the
/// program's to change. An atomic variable that is loaded and then stored has a call for each.
fn is_one_call_of_library(trace: &EventTrace, pair: &Pair) -> bool {
    let [read, then] = [pair.read, pair.then].map(|id| trace.event(id));
    let call = |event: &Event| {
        let outermost = event.depth().checked_sub(1)?;
        let called = event.stack.get(outermost)?;
        Some((called.function.clone(), called.file.clone()))
    };
    read.site() == then.site() && call(read).is_some_and(|own| call(then) == Some(own))
}

/// Is it a member of a library's own, such as the count of nodes in a `std::set`? The program cannot change that in
/// an atomic step of its own. What a `std::atomic` holds is the program's.
pub(super) fn is_part_of_library(trace: &EventTrace, id: EventId) -> bool {
    let Some(name) = trace.subject(trace.event(id)) else { return false };
    let inside = name.strip_prefix(explain::outside_of_library(name)).unwrap_or_default();
    let last = inside.rsplit('.').next().unwrap_or_default();
    !inside.is_empty() && !["_M_i", "_M_p", "__a_value"].contains(&last)
}

/// Whether an object is freed hangs on a count that threads change in two steps: a change got lost, and it was
/// freed too early, or twice. Then counting is what becomes one step.
pub(super) fn one_count(bug: &Bug<'_>) -> Option<Candidate> {
    let trace = bug.trace;
    let frees = bug.events.iter().map(|id| trace.event(*id));
    let free = frees.into_iter().find(|event| matches!(event.kind, EventKind::Free { .. }))?;
    let before = || {
        let own = trace.thread_of(free.id).events.iter().take(free.index as usize).rev();
        own.map(|id| trace.event(*id))
    };
    let deciding: BTreeSet<VarId> = {
        let branches = trace.conditions.iter().filter(|condition| {
            condition.thread == free.thread
                && condition.kind == PathConditionKind::Branch
                && condition.position <= free.index
        });
        branches.flat_map(|branch| trace.exprs.variables(branch.expr)).collect()
    };
    let decisions = Decisions::of(trace);
    // The last look at a count that the thread has changed itself.
    let is_decided = |event: &&Event| {
        let parts = event.kind.reads().iter();
        matches!(event.kind, EventKind::Read { .. })
            && parts.clone().any(|part| deciding.contains(&part.var))
    };
    before().filter(is_decided).find_map(|look| {
        let counted = cells(look);
        let write = before().find(|event| {
            matches!(event.kind, EventKind::Write { .. }) && cells(event) == counted
        })?;
        let pair = update(trace, &decisions, write)?;
        let events = [pair.read, pair.then];
        one_step(&Bug { events: &events, ..*bug })
    })
}

/// The cells of the events of the cause, where they are about one variable.
pub(super) fn one_variable(bug: &Bug<'_>) -> Option<BTreeSet<CellId>> {
    let mut all = bug.events.iter().map(|id| cells(bug.trace.event(*id)));
    let first = all.next()?;
    (!first.is_empty() && all.all(|other| other == first)).then_some(first)
}

pub(super) fn cells(event: &Event) -> BTreeSet<CellId> {
    let reads = event.kind.reads().iter().map(|part| part.cell);
    reads.chain(event.kind.writes().iter().map(|part| part.cell)).collect()
}

fn touches(event: &Event, cells: &BTreeSet<CellId>) -> bool {
    event.kind.reads().iter().any(|part| cells.contains(&part.cell))
        || event.kind.writes().iter().any(|part| cells.contains(&part.cell))
}

/// The read that a write follows from, in the same call, without a branch that hangs on it (but for one that looks for
/// an overflow) and without synchronisation in between.
pub(super) fn update(trace: &EventTrace, decisions: &Decisions<'_>, write: &Event) -> Option<Pair> {
    let own = trace.thread_of(write.id).events.get(..write.index as usize)?;
    let near = own.iter().rev().map(|id| trace.event(*id));
    let written = cells(write);
    let read = near
        .take_while(|event| !synchronises(&event.kind))
        .find(|event| cells(event) == written)?;
    let EventKind::Read { parts } = &read.kind else { return None };
    let vars: BTreeSet<VarId> = parts.iter().map(|part| part.var).collect();
    let used: BTreeSet<VarId> = {
        let values = write.kind.writes().iter();
        values.flat_map(|part| trace.exprs.variables(part.value)).collect()
    };
    let early = |var: &VarId| match trace.variables.get(var.index()).map(|v| v.origin) {
        Some(VariableOrigin::Read { event, .. }) => trace.event(event).index <= read.index,
        _ => true,
    };
    // That an addition does not overflow is Rust's affair.
    let is_checked = |condition: &PathCondition| {
        let values = write.kind.writes().iter();
        values.into_iter().any(|part| rust::rules_out_overflow(trace, condition, part.value))
    };
    let mut between = decisions.hanging_on(write.thread, read.index + 1..=write.index, &vars);
    let decides = between.any(|one| !is_checked(one));
    let same_call = read.site().function == write.site().function
        && read.stack.len() == write.stack.len()
        && read.site().file == write.site().file;
    let follows = used.iter().any(|var| vars.contains(var)) && used.iter().all(early);
    (same_call && follows && !decides).then_some(Pair { read: read.id, then: write.id })
}

/// Does the event have to do with the order of threads?
pub(super) fn synchronises(kind: &EventKind) -> bool {
    !matches!(
        kind,
        EventKind::Read { .. }
            | EventKind::Write { .. }
            | EventKind::Fence
            | EventKind::Allocate { .. }
            | EventKind::Free { .. }
    )
}

/// A thread that only looks at a variable looks at it twice and relies on seeing the same: it keeps
/// what it saw first.
pub(super) fn read_once(bug: &Bug<'_>) -> Option<Candidate> {
    let trace = bug.trace;
    let cells = one_variable(bug)?;
    let reads = || bug.events.iter().map(|id| trace.event(*id));
    let mut reads = reads().filter(|event| matches!(event.kind, EventKind::Read { .. }));
    let (one, two) = (reads.next()?, reads.next()?);
    let (one, two) = if one.index < two.index { (one, two) } else { (two, one) };
    let is_pointer = cells.iter().any(|cell| {
        let display = trace.cells.get(cell.index()).map(|cell| cell.display);
        display == Some(ValueDisplay::Pointer)
    });
    // What a pointer points to may be gone when it is kept.
    if one.thread != two.thread || one.site() == two.site() || is_pointer {
        return None;
    }
    let again = later_reads(trace, (one, two), &cells)?;
    let mut kept = trace.clone();
    let mut same: BTreeMap<VarId, VarId> = BTreeMap::new();
    for pair in &again {
        let first: &[ReadPart] = trace.event(pair.read).kind.reads();
        for part in trace.event(pair.then).kind.reads() {
            let known = first.iter().find(|other| other.cell == part.cell)?;
            same.insert(part.var, known.var);
            kept.variables.get_mut(part.var.index())?.origin = VariableOrigin::Input;
        }
    }
    renamed(&mut kept, &same);
    let mut edit = Edit::new(&kept);
    again.iter().for_each(|pair| edit.remove(pair.then));
    let edited = edit.finish()?;
    let variables = super::variables(bug);
    let places = [one, two].map(|event| Span::of(event.site()));
    let step = format!(
        "in {}, read {} once ({}) and use the same value at {}",
        places[0].function,
        variables.first().map(|name| quoted(name)).unwrap_or_default(),
        places[0].begin(),
        places[1].begin()
    );
    let stretches = again.iter().map(|pair| Stretch { first: pair.read, last: pair.then });
    let other = trace.events.iter().filter(|event| {
        event.thread != one.thread
            && touches(event, &cells)
            && matches!(event.kind, EventKind::Write { .. })
    });
    let other = other.map(|event| Stretch { first: event.id, last: event.id });
    let repair = Repair {
        kind: Kind::ReadOnce,
        steps: vec![step],
        lock: None,
        variables,
        places: places.to_vec(),
        rule: Rule::Alone(stretches.chain(other).collect()),
        checked: None,
    };
    Some(Candidate { repair, edited })
}

/// Each read at the second place with the one at the first before it. `None` when a thread that does
/// so also writes the variable, synchronises in between, or is in another function by then: then a new
/// look at the variable may be meant.
fn later_reads(
    trace: &EventTrace,
    (one, two): (&Event, &Event),
    cells: &BTreeSet<CellId>,
) -> Option<Vec<Pair>> {
    if one.site().function != two.site().function || one.site().file != two.site().file {
        return None;
    }
    let mut found = Vec::new();
    for thread in &trace.threads {
        let mut first: Option<EventId> = None;
        let mut changed = false;
        let before = found.len();
        for event in thread.events.iter().map(|id| trace.event(*id)) {
            let own = touches(event, cells);
            changed |= own && !event.kind.writes().is_empty();
            match &event.kind {
                EventKind::Read { .. } if own && event.site() == one.site() => {
                    first = Some(event.id);
                }
                EventKind::Read { .. } if own && event.site() == two.site() => {
                    found.push(Pair { read: first?, then: event.id });
                }
                kind if synchronises(kind) => first = None,
                _ => {}
            }
        }
        if changed && found.len() > before {
            return None;
        }
    }
    (!found.is_empty()).then_some(found)
}

/// Puts variables in place of others wherever the trace speaks of values.
fn renamed(trace: &mut EventTrace, same: &BTreeMap<VarId, VarId>) {
    let rename = |var: VarId| same.get(&var).copied().unwrap_or(var);
    let exprs = &mut trace.exprs;
    for condition in &mut trace.conditions {
        condition.expr = exprs.renamed(condition.expr, &rename);
    }
    let image = |part: &WritePart, exprs: &mut model::ExprPool| WritePart {
        value: exprs.renamed(part.value, &rename),
        ..*part
    };
    for event in &mut trace.events {
        if let EventKind::Write { parts } | EventKind::ReadModifyWrite { writes: parts, .. } =
            &mut event.kind
        {
            for part in parts.iter_mut() {
                *part = image(part, exprs);
            }
        }
    }
    if let Some(FailureCondition::Value(expr)) =
        trace.failure.as_mut().map(|failure| &mut failure.condition)
    {
        *expr = exprs.renamed(*expr, &rename);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use encoders::dsl::parse;
    use model::Site;

    #[test]
    fn members_of_a_library_are_not_changed_in_one_step() {
        let parsed = parse("a: [count] W n 1").expect("the text is a trace");
        let mut trace = parsed.trace.clone();
        let mut is_part = |name: &str| {
            trace.events[parsed.event("count").index()].name = Some(name.into());
            is_part_of_library(&trace, parsed.event("count"))
        };
        assert!(is_part("this->dirty._M_t._M_impl._M_node_count"));
        assert!(is_part("names._M_impl._M_finish"));
        assert!(!is_part("this->count"));
        assert!(!is_part("this->count._M_i"), "a std::atomic");
        assert!(!is_part("this->open._M_base._M_i"), "a std::atomic<bool>");
    }

    #[test]
    fn what_one_call_of_a_library_does_is_not_changed_in_one_step() {
        let text = "a: [look] R bits -> x\na: [set] W bits x + 1\n";
        let mut parsed = parse(text).expect("the text is a trace");
        let pair = Pair { read: parsed.event("look"), then: parsed.event("set") };
        let mut one_call = |functions: [&str; 2]| {
            for (id, function) in [pair.read, pair.then].into_iter().zip(functions) {
                let site = |file: &str, function: &str| Site {
                    file: file.to_owned(),
                    line: 11,
                    column: 4,
                    function: function.to_owned(),
                };
                let library = site("/usr/include/c++/12/bits/stl_bvector.h", function);
                parsed.trace.events[id.index()].stack = [library, site("a.cc", "main")].into();
            }
            is_one_call_of_library(&parsed.trace, &pair)
        };
        assert!(one_call(["operator=", "operator="]));
        assert!(!one_call(["load", "store"]), "an atomic variable");
    }

    /// Rust looks for one at each addition.
    #[test]
    fn a_look_for_an_overflow_decides_nothing() {
        let is_one_step = |test: &str| {
            let text =
                format!("cell x 32 = 0\na: R x -> p\na: assume {test}\na: [then] W x p + 1\n");
            let parsed = parse(&text).expect("the text is a trace");
            let decisions = Decisions::of(&parsed.trace);
            update(&parsed.trace, &decisions, parsed.trace.event(parsed.event("then"))).is_some()
        };
        assert!(is_one_step("p != 4294967295"));
        assert!(!is_one_step("p != 9"), "the program's own");
    }

    /// Each update beside each condition would take minutes.
    #[test]
    fn the_updates_of_long_runs_are_found_one_by_one() {
        use std::fmt::Write;
        const ROUNDS: usize = 20_000;
        let mut text = String::new();
        for round in 0..ROUNDS {
            writeln!(text, "a: R x -> p{round}\na: W x p{round} + 1\na: R y -> q{round}\na: assume q{round} == 0")
                .expect("text");
        }
        let parsed = parse(&text).expect("the text is a trace");
        let trace = &parsed.trace;
        let decisions = Decisions::of(trace);
        let writes = trace.events.iter().filter(|event| !event.kind.writes().is_empty());
        let found = writes.filter_map(|write| update(trace, &decisions, write)).count();
        assert_eq!(found, ROUNDS);
    }
}
