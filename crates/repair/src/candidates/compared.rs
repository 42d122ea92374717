//! A look at an atomic variable and the write that relies on it become a compare-exchange, which writes only while the
//! variable has the value that was looked at.
//!
//! Where one operation can do both ([`super::steps::one_step`]) that is simpler. Here the thread decides by the value, or
//! reads other data, before it writes.

use super::steps::{cells, one_variable, synchronises, update};
use super::{Candidate, Kind, Repair, quoted};
use crate::Bug;
use crate::decisions::Decisions;
use crate::edit::Edit;
use crate::enforce::{Rule, Stretch};
use crate::source::{Span, span};
use model::{
    CellId, ConditionId, Event, EventKind, EventTrace, PathCondition, PathConditionKind, ReadPart,
    VarId, Variable, VariableOrigin,
};
use std::collections::BTreeSet;

/// A look, and the write or update that relies on it.
struct Pair<'t> {
    look: &'t Event,
    then: &'t Event,
}

pub(super) fn candidate(bug: &Bug<'_>) -> Option<Candidate> {
    let trace = bug.trace;
    let variable = one_variable(bug)?;
    if !bug.events.iter().all(|id| trace.event(*id).is_atomic_operation()) {
        return None;
    }
    let writes = trace.events.iter().filter(|event| {
        !event.kind.writes().is_empty()
            && cells(event) == variable
            && event.is_atomic_operation()
            && !compares(event)
    });
    let pairs: Vec<Pair<'_>> = writes.filter_map(|then| pair(trace, then, &variable)).collect();
    let named =
        |pair: &Pair<'_>| bug.events.contains(&pair.look.id) || bug.events.contains(&pair.then.id);
    let decisions = Decisions::of(trace);
    let simple = |pair: &Pair<'_>| update(trace, &decisions, pair.then).is_some();
    if !pairs.iter().any(named) || pairs.iter().all(simple) {
        return None;
    }
    let mut compared = trace.clone();
    let mut exchanges = Vec::new();
    for pair in &pairs {
        exchanges.push((pair.then.id, compare(&mut compared, pair)?));
    }
    let mut edit = Edit::new(&compared);
    for (id, kind) in exchanges {
        edit.replace(id, kind);
    }
    let edited = edit.finish()?;
    let places: Option<BTreeSet<Span>> =
        pairs.iter().map(|pair| span(pair.look, pair.then)).collect();
    let places = places?;
    let variables = super::variables(bug);
    let what = variables.first().map(|name| quoted(name)).unwrap_or_default();
    let steps = places.iter().enumerate().map(|(number, place)| {
        let what = if number == 0 { what.as_str() } else { "it" };
        let how = match place.file.ends_with(".rs") {
            true => "`fetch_update`, or `compare_exchange` in a loop",
            false => "a compare-exchange in a loop",
        };
        format!(
            "in {}, write {what} ({}) only while it is still what was looked at ({}), and look again otherwise: {how}",
            place.function,
            place.end(),
            place.begin()
        )
    });
    let stretches = pairs.iter().map(|pair| Stretch { first: pair.look.id, last: pair.then.id });
    let repair = Repair {
        kind: Kind::OneStep,
        steps: steps.collect(),
        lock: None,
        variables,
        rule: Rule::Alone(stretches.collect()),
        places: places.into_iter().collect(),
        checked: None,
    };
    Some(Candidate { repair, edited })
}

/// Is it a compare-exchange already?
fn compares(event: &Event) -> bool {
    let own = event.stack.iter().take(event.depth());
    own.into_iter().any(|site| site.function.contains("compare_exchange"))
}

/// The last look at the variable before a write of the same call, with nothing in between that others would notice, and
/// that would be done twice where the thread has to look again.
fn pair<'t>(
    trace: &'t EventTrace,
    then: &'t Event,
    variable: &BTreeSet<CellId>,
) -> Option<Pair<'t>> {
    let own = trace.thread_of(then.id).events.get(..then.index as usize)?;
    let before = own.iter().rev().map(|id| trace.event(*id));
    let quiet = |event: &&Event| matches!(event.kind, EventKind::Read { .. } | EventKind::Fence);
    let mut before = before.take_while(|event| !synchronises(&event.kind) && quiet(event));
    let look = before.find(|event| &cells(event) == variable)?;
    let (here, there) = (look.site(), then.site());
    let same_call = here.function == there.function
        && here.file == there.file
        && look.stack.len() - look.depth() == then.stack.len() - then.depth();
    let apart = (here.line, here.column) != (there.line, there.column);
    (same_call && apart && look.is_atomic_operation()).then_some(Pair { look, then })
}

/// What the write becomes: it reads the variable, too, and the run goes on as recorded only where that has not changed.
fn compare(trace: &mut EventTrace, pair: &Pair<'_>) -> Option<EventKind> {
    let looked = pair.look.kind.reads();
    let mut reads: Vec<ReadPart> = pair.then.kind.reads().to_vec();
    if reads.is_empty() {
        for (part, at) in looked.iter().zip(0..) {
            let seen = *trace.variables.get(part.var.index())?;
            let var = VarId::from_index(trace.variables.len());
            let origin = VariableOrigin::Read { event: pair.then.id, part: at };
            trace.variables.push(Variable { id: var, origin, ..seen });
            reads.push(ReadPart { var, ..*part });
        }
    }
    for part in looked {
        let now = reads.iter().find(|other| other.cell == part.cell)?;
        let width = trace.variables.get(part.var.index())?.width;
        let [before, now] = [part.var, now.var].map(|var| trace.exprs.var(var, width));
        let expr = trace.exprs.eq(before, now);
        trace.conditions.push(PathCondition {
            id: ConditionId::from_index(trace.conditions.len()),
            thread: pair.then.thread,
            position: pair.then.index + 1,
            expr,
            kind: PathConditionKind::Branch,
            site: pair.then.site().clone(),
            is_beside_wait: false,
        });
    }
    Some(EventKind::ReadModifyWrite { reads, writes: pair.then.kind.writes().to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use encoders::dsl::parse;
    use explain::Pattern;
    use model::Site;

    /// Two threads look at a count and take one if there is one.
    const TAKE: &str = "
        cell left 8 = 1
        m: fork a
        m: fork b
        a: [look] R left -> x
        a: assume x != 0
        a: [take] W left x - 1
        b: [other] R left -> y
        b: assume y != 0
        b: [last] W left y - 1
        m: join a
        m: join b
        m: R left -> z
        m: fail z == 0
    ";

    fn offered(text: &str, file: &str) -> Option<Candidate> {
        offered_by(text, (file, "store"))
    }

    fn offered_by(text: &str, (file, called): (&str, &str)) -> Option<Candidate> {
        let parsed = parse(text).expect("the text is a trace");
        let mut trace = parsed.trace.clone();
        let site = |file: &str, line: u32, function: &str| Site {
            file: file.to_owned(),
            line,
            column: 1,
            function: function.to_owned(),
        };
        for event in &mut trace.events {
            let line = event.index + 10;
            let of_atomic = site(&format!("/rustc/1/library/core/src/sync/{file}"), 1, called);
            event.stack = [of_atomic, site("a.rs", line, "take")].into();
            event.name = Some("left".into());
        }
        let events = ["look", "last", "take"].map(|label| parsed.event(label));
        let bug = Bug::by_hand(&trace, Pattern::Atomicity, &events);
        candidate(&bug)
    }

    #[test]
    fn what_is_taken_after_a_look_is_taken_by_a_compare_exchange() {
        let found = offered(TAKE, "atomic.rs").expect("a candidate");
        let step = "in take, write `left` (a.rs:12) only while it is still what was looked at (a.rs:11), and look again \
                    otherwise: `fetch_update`, or `compare_exchange` in a loop";
        assert_eq!(found.repair.steps, [step]);
        let trace = &found.edited.trace;
        let updates = trace.events.iter().filter(|event| {
            matches!(&event.kind, EventKind::ReadModifyWrite { reads, .. } if reads.len() == 1)
        });
        assert_eq!(updates.count(), 2);
        assert_eq!(trace.conditions.len(), 4, "two of them compare");
        assert!(offered(TAKE, "cell.rs").is_none(), "no atomic variable");
        assert!(offered_by(TAKE, ("atomic.rs", "atomic_compare_exchange<u32>")).is_none());
    }

    #[test]
    fn what_others_notice_is_not_done_twice() {
        let noisy = TAKE.replace("a: [take]", "a: W seen 1\n        a: [take]");
        let noisy = noisy.replace("b: [last]", "b: W seen 1\n        b: [last]");
        assert!(offered(&noisy, "atomic.rs").is_none());
        // One operation does what no branch hangs on.
        let plain = TAKE.replace("a: assume x != 0\n", "").replace("b: assume y != 0\n", "");
        assert!(offered(&plain, "atomic.rs").is_none());
    }
}
