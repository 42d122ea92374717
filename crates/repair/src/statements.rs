//! The statements of a function as threads came through them, and moving them.

use crate::decisions::Decisions;
use crate::edit::Edit;
use crate::sections::{Sections, sections};
use crate::source::frames;
use crate::uses::{Uses, decides_elsewhere};
use model::{
    Event, EventId, EventKind, EventTrace, FailureKind, ObjectKind, PathCondition,
    PathConditionKind, Site, ThreadId, VarId, VariableOrigin,
};
use std::collections::BTreeSet;

/// A line of a function, once passed: the events of that line and of what it calls.
#[derive(Clone, Debug)]
pub(crate) struct Statement {
    pub(crate) line: u32,
    pub(crate) events: Vec<EventId>,
    /// Which activation of the function it is, counted per thread.
    pub(crate) activation: u32,
}

impl Statement {
    pub(crate) fn first(&self) -> EventId {
        self.events[0]
    }

    pub(crate) fn last(&self) -> EventId {
        self.events[self.events.len() - 1]
    }
}

/// A thread's passages through a function, statement by statement.
pub(crate) fn statements(trace: &EventTrace, thread: ThreadId, function: &Site) -> Vec<Statement> {
    let mut found: Vec<Statement> = Vec::new();
    let mut current: Option<(Vec<&Site>, u32)> = None;
    let mut activation = 0;
    for &id in &trace.threads[thread.index()].events {
        let event = trace.event(id);
        let frames = frames(event);
        let depth = frames
            .iter()
            .position(|site| site.function == function.function && site.file == function.file);
        let Some(depth) = depth.filter(|_| is_own(event)) else {
            current = None;
            continue;
        };
        let (path, line) = (frames[..depth].to_vec(), frames[depth].line);
        match &current {
            Some((other, number)) if *other == path && event.continues(depth) => {
                if *number == line
                    && let Some(statement) = found.last_mut()
                {
                    statement.events.push(id);
                } else {
                    found.push(Statement { line, events: vec![id], activation });
                }
            }
            _ => {
                activation += 1;
                found.push(Statement { line, events: vec![id], activation });
            }
        }
        current = Some((path, line));
    }
    found
}

/// Was the event performed by code?
pub(crate) fn is_own(event: &Event) -> bool {
    !matches!(
        event.kind,
        EventKind::Start
            | EventKind::Exit
            | EventKind::Failure
            | EventKind::Unlock { synthetic: true, .. }
    )
}

/// To which side a statement moves in its own thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Earlier,
    Later,
}

impl Direction {
    /// The statements of the same activation that one would pass on its way, nearest first. Where the thread comes back
    /// to lines on the other side, another round of a loop begins, or another call from the same place, of which nothing
    /// else may tell: no statement goes there. The lines of one statement may come in any order before it.
    pub(crate) fn passed(
        self,
        all: &[Statement],
        at: usize,
    ) -> impl Iterator<Item = &Statement> + '_ {
        let activation = all[at].activation;
        let (before, behind) = (all[..at].iter().rev(), all[at + 1..].iter());
        let (before, behind) = match self {
            Self::Earlier => (Some(before), None),
            Self::Later => (None, Some(behind)),
        };
        let passed = before.into_iter().flatten().chain(behind.into_iter().flatten());
        let own = all[at].line;
        let mut went = self == Self::Later;
        passed.take_while(move |other| {
            let (ahead, back) = match self {
                Self::Earlier => (other.line < own, other.line > own),
                Self::Later => (other.line > own, other.line < own),
            };
            went |= ahead;
            other.activation == activation && !(went && back)
        })
    }
}

/// Moves every passage through one line of the function to the other side of the nearest passage
/// through the other line in the same activation. `None` where that would change what the moved
/// statement, or what it passes, computes.
pub(crate) fn move_line<'t>(
    (trace, code): (&'t EventTrace, Uses<'_>),
    function: &Site,
    (line, other): (u32, u32),
    direction: Direction,
) -> Option<Edit<'t>> {
    let mut edit = Edit::new(trace);
    let sections = sections(trace);
    let decisions = Decisions::of(trace);
    let mut moved = false;
    for thread in &trace.threads {
        let all = statements(trace, thread.id, function);
        for (at, statement) in all.iter().enumerate().filter(|(_, s)| s.line == line) {
            let Some(target) = direction.passed(&all, at).find(|passed| passed.line == other)
            else {
                continue;
            };
            let (from, to) = match direction {
                Direction::Earlier => (target.first(), statement.first()),
                Direction::Later => (statement.last(), target.last()),
            };
            let end = match direction {
                Direction::Earlier => target.first(),
                Direction::Later => target.last(),
            };
            let known = Known { trace, decisions: &decisions, code };
            if is_kept_in_place(trace, statement, (end, direction)) {
                return None;
            }
            if !is_independent(&known, (function, statement), from, to)
                || leaves_section(trace, &sections, statement, end)
            {
                return None;
            }
            let mut last = target.last();
            for &id in &statement.events {
                match direction {
                    Direction::Earlier => edit.move_before(id, target.first()),
                    Direction::Later => edit.move_after(id, std::mem::replace(&mut last, id)),
                }
            }
            moved = true;
        }
    }
    moved.then_some(edit)
}

/// Is it known that the statement cannot be moved to this event, although none of its own says so? It may write the pointer
/// through which what it passes goes, which the compiler had read before, or the other way round; and of a call about a lock or
/// a condition variable in which the run crashed there is no event of what it does to that, such as to signal.
fn is_kept_in_place(
    trace: &EventTrace,
    statement: &Statement,
    (end, direction): (EventId, Direction),
) -> bool {
    let own = &trace.thread_of(end).events;
    let index = |id: EventId| trace.event(id).index as usize;
    let passed = match direction {
        Direction::Earlier => own.get(index(end)..index(statement.first())),
        Direction::Later => own.get(index(statement.last()) + 1..=index(end)),
    };
    let passed = passed.unwrap_or_default();
    let goes_on_through = match direction {
        Direction::Earlier => goes_through(trace, passed, &statement.events),
        Direction::Later => goes_through(trace, &statement.events, passed),
    };
    goes_on_through
        || direction == Direction::Earlier && crashed_in_synchronisation(trace, statement)
}

/// Does one of the first events go through a pointer that one of the others writes, by their names?
fn goes_through(trace: &EventTrace, uses: &[EventId], writes: &[EventId]) -> bool {
    let writes = writes.iter().map(|id| trace.event(*id));
    let mut pointers = writes
        .filter(|event| matches!(event.kind, EventKind::Write { .. }))
        .filter_map(|event| trace.subject(event));
    pointers.any(|pointer| {
        let mut names = uses.iter().filter_map(|id| trace.subject(trace.event(*id)));
        names.any(|name| name.strip_prefix(pointer).is_some_and(|rest| rest.starts_with("->")))
    })
}

/// Did the run crash in the statement, at an object of synchronisation?
fn crashed_in_synchronisation(trace: &EventTrace, statement: &Statement) -> bool {
    let crashed = trace.failure.as_ref().is_some_and(|failure| {
        matches!(failure.kind, FailureKind::Segfault | FailureKind::UseAfterFree)
    });
    let last = trace.event(statement.last());
    let next = trace.thread_of(last.id).events.get(last.index as usize + 1);
    if !crashed || next.is_none_or(|id| trace.event(*id).kind != EventKind::Failure) {
        return false;
    }
    let member = |name: &str| name.rsplit(['.', '>']).next().map(str::to_owned);
    let own = trace.subject(last).and_then(member);
    let objects = trace
        .objects
        .iter()
        .filter(|object| !matches!(object.kind, ObjectKind::Heap | ObjectKind::Local));
    own.is_some() && objects.into_iter().any(|object| member(&object.name) == own)
}

/// Does the statement give back a lock that is held at the event, and nothing else? Behind that the event is only
/// without the lock.
pub(crate) fn gives_back_around(trace: &EventTrace, id: EventId, statement: &Statement) -> bool {
    let around = sections(trace).around(trace, id);
    let ends = |id: &EventId| around.iter().any(|section| section.unlock == *id);
    !statement.events.is_empty() && statement.events.iter().all(ends)
}

/// Would the statement leave a critical section that it lies in, moved to this event? What it writes
/// would no longer be guarded. What it only reads may be settled by then, behind a join, say.
fn leaves_section(
    trace: &EventTrace,
    known: &Sections,
    statement: &Statement,
    end: EventId,
) -> bool {
    if statement.events.iter().all(|id| trace.event(*id).kind.writes().is_empty()) {
        return false;
    }
    let index = |id: EventId| trace.event(id).index;
    known.around(trace, statement.first()).into_iter().any(|section| {
        let (from, to) = (index(section.lock), index(section.unlock));
        let inside = from < index(statement.first()) && index(statement.last()) < to;
        // At the acquisition itself it would come before that, and at the release behind it.
        inside && !(from + 1..to).contains(&index(end))
    })
}

/// What is asked for whether statements may change places.
struct Known<'t> {
    trace: &'t EventTrace,
    decisions: &'t Decisions<'t>,
    code: Uses<'t>,
}

/// May the statement change places with what its thread does between the two events, both of them
/// included? It may when neither uses what the other computes, no branch between hangs on it or
/// guards it, and the locks of both stay what they are.
fn is_independent(
    known: &Known<'_>,
    (function, statement): (&Site, &Statement),
    from: EventId,
    to: EventId,
) -> bool {
    let trace = known.trace;
    let thread = trace.thread_of(from);
    let (low, high) = (trace.event(from).index, trace.event(to).index);
    let moved: BTreeSet<EventId> = statement.events.iter().copied().collect();
    let passed = thread.events[low as usize..=high as usize].iter();
    let passed: Vec<EventId> = passed.filter(|id| !moved.contains(id)).copied().collect();
    let conflict = |a: &EventId, b: &EventId| {
        let (a, b) = (&trace.event(*a).kind, &trace.event(*b).kind);
        let touches = |kind: &EventKind, cell| {
            kind.reads().iter().any(|part| part.cell == cell)
                || kind.writes().iter().any(|part| part.cell == cell)
        };
        a.writes().iter().any(|part| touches(b, part.cell))
            || b.writes().iter().any(|part| touches(a, part.cell))
    };
    if moved.iter().any(|a| passed.iter().any(|b| conflict(a, b))) {
        return false;
    }
    let (own, others) = (variables(trace, &moved), variables(trace, &passed));
    let uses = |events: &[EventId], of: &BTreeSet<VarId>| {
        events.iter().flat_map(|id| trace.event(*id).kind.writes()).any(|part| {
            trace.exprs.variables(part.value).iter().any(|variable| of.contains(variable))
        })
    };
    if uses(&statement.events, &others) || uses(&passed, &own) {
        return false;
    }
    let own_places = trace.event(statement.first()).index..=trace.event(statement.last()).index;
    let of_statement = |condition: &PathCondition| own_places.contains(&condition.position);
    // What a library looks at behind the last event of a call of it, such as whether somebody waits, is a part of that
    // call.
    let of_call = |condition: &PathCondition| {
        condition.site.is_in_library()
            && trace.event(statement.last()).depth() > 0
            && condition.position == trace.event(statement.last()).index + 1
    };
    known.decisions.within(thread.id, low + 1..=high).iter().all(|condition| {
        let used = trace.exprs.variables(condition.expr);
        let used_any = |of: &BTreeSet<VarId>| used.iter().any(|variable| of.contains(variable));
        // A branch that hangs on what is passed may guard the statement.
        match condition.kind {
            _ if of_call(condition) => true,
            PathConditionKind::Branch | PathConditionKind::CallTarget => {
                used.is_empty()
                    || !is_guard(known, (function, condition), statement) && !used_any(&own)
            }
            // Where the statement touches memory may hang on what is passed.
            PathConditionKind::Address if of_statement(condition) => {
                !used_any(&own) && !used_any(&others)
            }
            PathConditionKind::Address | PathConditionKind::Assumption => !used_any(&own),
        }
    })
}

/// Could a branch decide whether the statement is reached? One of the function itself could; one
/// inside of what the function calls in between decides about the rest of that call.
fn is_guard(
    known: &Known<'_>,
    (function, condition): (&Site, &PathCondition),
    statement: &Statement,
) -> bool {
    let own = condition.site.function == function.function && condition.site.file == function.file;
    own && condition.position <= known.trace.event(statement.first()).index
        && !decides_elsewhere(known.code, &condition.site, statement.line)
}

/// The variables that events read.
fn variables<'e>(
    trace: &EventTrace,
    events: impl IntoIterator<Item = &'e EventId>,
) -> BTreeSet<VarId> {
    let reads = events.into_iter().flat_map(|id| trace.event(*id).kind.reads());
    let known = |var: &VarId| {
        trace
            .variables
            .get(var.index())
            .is_some_and(|variable| matches!(variable.origin, VariableOrigin::Read { .. }))
    };
    reads.map(|part| part.var).filter(known).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use encoders::dsl::parse;

    #[test]
    fn what_writes_stays_between_the_acquisition_and_the_release() {
        let text = "
            a: [take] lock m
            a: [count] W count 1
            a: [up] W up 1
            a: [give] unlock m
            b: R up -> u
        ";
        let mut parsed = parse(text).expect("the text is a trace");
        let function = Site {
            file: "server.cc".to_owned(),
            line: 20,
            column: 1,
            function: "start".to_owned(),
        };
        for (label, line) in [("take", 19), ("count", 20), ("up", 21), ("give", 22)] {
            let id = parsed.event(label);
            parsed.trace.events[id.index()].stack = vec![Site { line, ..function.clone() }].into();
        }
        let moved = |from, to, direction| {
            let known = (&parsed.trace, Uses::NONE);
            move_line(known, &function, (from, to), direction).is_some()
        };
        assert!(moved(21, 20, Direction::Earlier));
        assert!(!moved(21, 19, Direction::Earlier), "before the acquisition");
        assert!(!moved(20, 22, Direction::Later), "behind the release");
    }

    /// A thread does one thing in each of two lines: can the second one come earlier, and the first one later?
    fn changes_places(text: &str, names: [&str; 2]) -> [bool; 2] {
        let mut parsed = parse(text).expect("the text is a trace");
        let place = |line| Site {
            file: "text.cc".to_owned(),
            line,
            column: 1,
            function: "unshare".to_owned(),
        };
        for ((label, name), line) in ["first", "second"].into_iter().zip(names).zip(20..) {
            let event = parsed.event(label).index();
            parsed.trace.events[event].stack = [place(line)].into();
            parsed.trace.events[event].name = Some(name.into());
        }
        if let Some(failure) = &mut parsed.trace.failure {
            failure.kind = FailureKind::UseAfterFree;
        }
        let moves = |lines: (u32, u32), direction| {
            move_line((&parsed.trace, Uses::NONE), &place(1), lines, direction).is_some()
        };
        [moves((21, 20), Direction::Earlier), moves((20, 21), Direction::Later)]
    }

    #[test]
    fn a_pointer_is_not_written_before_what_goes_through_it() {
        let text = "a: [first] W refs 1\na: [second] W rep 2\nb: R rep -> r\n";
        assert_eq!(changes_places(text, ["doc->rep->refs", "doc->rep"]), [false; 2]);
        assert_eq!(changes_places(text, ["doc->refs", "doc->rep"]), [true; 2]);
        assert_eq!(changes_places(text, ["doc->rep", "doc->rep->refs"]), [true; 2]);
    }

    #[test]
    fn a_signal_that_crashed_is_not_sent_before_what_it_is_sent_for() {
        let text = "b: broadcast cv\na: [first] W done 1\na: [second] R x -> c\na: fail c == 0\n";
        assert!(!changes_places(text, ["done", "this->state->cv"])[0]);
        assert!(changes_places(text, ["done", "this->state->hops"])[0], "it is a read");
    }

    #[test]
    fn a_read_is_not_moved_right_behind_the_end_of_its_section() {
        let text = "a: [take] lock m\na: [look] R x -> p\na: [give] unlock m\na: [join] R y -> q\n";
        let parsed = parse(text).expect("the text is a trace");
        let statement = |label: &str| {
            let id = parsed.event(label);
            Statement { line: id.index() as u32, events: vec![id], activation: 1 }
        };
        let look = parsed.event("look");
        assert!(gives_back_around(&parsed.trace, look, &statement("give")));
        assert!(!gives_back_around(&parsed.trace, look, &statement("join")));
        assert!(!gives_back_around(&parsed.trace, parsed.event("join"), &statement("give")));
    }

    /// A thread that passes these lines of one function, one after the other, with a write each.
    fn passing(lines: &[u32]) -> EventTrace {
        let text: Vec<String> =
            (0..lines.len()).map(|number| format!("a: [n{number}] W x{number} 1")).collect();
        let mut parsed = parse(&text.join("\n")).expect("the text is a trace");
        for (number, &line) in lines.iter().enumerate() {
            let (file, function) = ("ring.c".to_owned(), "push".to_owned());
            let id = parsed.event(&format!("n{number}"));
            parsed.trace.events[id.index()].stack =
                [Site { file, line, column: 1, function }].into();
        }
        parsed.trace
    }

    /// A short function that is called in a loop leaves nothing between two calls of it.
    #[test]
    fn no_statement_moves_into_another_round() {
        let moves = |lines: &[u32], from: u32, to: u32, direction: Direction| {
            let trace = passing(lines);
            let event = trace.threads.iter().flat_map(|thread| &thread.events);
            let mut sites = event.map(|id| trace.event(*id).site());
            let function = sites.find(|site| site.line == from).expect("the line is passed");
            move_line((&trace, Uses::NONE), function, (from, to), direction).is_some()
        };
        let rounds = [12, 20, 12, 16, 17, 12, 20];
        assert!(moves(&rounds, 16, 17, Direction::Later));
        assert!(moves(&rounds, 17, 16, Direction::Earlier));
        assert!(!moves(&rounds, 16, 20, Direction::Later));
        assert!(!moves(&rounds, 16, 20, Direction::Earlier));
        assert!(moves(&[10, 11, 12, 11, 12, 13], 10, 13, Direction::Later), "behind a loop");
        assert!(moves(&[10, 11, 12, 11, 12, 13], 13, 10, Direction::Earlier), "before it");
        assert!(
            moves(&[10, 14, 13], 13, 10, Direction::Earlier),
            "what a call is given comes first"
        );
    }
}
