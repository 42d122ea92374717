//! What lines compute for other lines where no other thread sees it: the events of a trace do not tell.

use crate::source::{Span, frames, span};
use crate::statements::{Direction, Statement};
use model::{Event, EventId, EventKind, EventTrace, Site};
use std::collections::BTreeSet;
use std::fmt;

/// One line of a function uses what another computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineUse {
    /// Where it is computed.
    pub from: u32,
    /// Where it is used.
    pub to: u32,
    /// It is a variable that a call gets the address of as its first argument: the handle, where a thread is
    /// created.
    pub made: bool,
}

/// Who knows which lines from the first to the last of a file use what others of them compute.
#[derive(Clone, Copy)]
pub struct Uses<'a>(pub &'a dyn Fn(&str, u32, u32) -> Vec<LineUse>);

impl Uses<'_> {
    /// Nothing is known.
    pub const NONE: Uses<'static> = Uses(&|_, _, _| Vec::new());
}

impl fmt::Debug for Uses<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Uses")
    }
}

/// Does a statement that moves past others up to `end`, the last of them, leave behind what it needs, or what needs
/// it? Moved to an earlier line it cannot use what `end` computes, by whatever lines in between; moved to a later
/// one, none that it passes can use what it computes.
pub(crate) fn parts(
    trace: &EventTrace,
    uses: Uses<'_>,
    function: &Site,
    (own, passed): (&Statement, &[&Statement]),
    direction: Direction,
) -> bool {
    let Some(end) = passed.last() else { return false };
    let (first, last) = (own.line.min(end.line), own.line.max(end.line));
    let known = (uses.0)(&function.file, first, last);
    let creates = |line: u32| {
        let all = passed.iter().copied().chain([own]).filter(|other| other.line == line);
        all.flat_map(|other| &other.events).any(|id| is_fork(trace, *id))
    };
    let known: Vec<LineUse> =
        known.into_iter().filter(|known| !known.made || creates(known.from)).collect();
    let mut reached = BTreeSet::from([own.line]);
    loop {
        let next = known.iter().find_map(|known| {
            let (here, there) = match direction {
                Direction::Earlier => (known.to, known.from),
                Direction::Later => (known.from, known.to),
            };
            (reached.contains(&here) && !reached.contains(&there)).then_some(there)
        });
        let Some(line) = next else { return false };
        let stops = match direction {
            Direction::Earlier => line == end.line,
            Direction::Later => passed.iter().any(|other| other.line == line),
        };
        if stops {
            return true;
        }
        reached.insert(line);
    }
}

/// Is the handle of the thread created here used in the lines up to the other event?
pub(crate) fn is_handle_used(
    trace: &EventTrace,
    uses: Uses<'_>,
    fork: EventId,
    span: Option<&Span>,
) -> bool {
    let Some(span) = span else { return false };
    let line =
        frames(trace.event(fork)).into_iter().find(|site| span.has(site)).map(|site| site.line);
    let mut known = (uses.0)(&span.file, span.first, span.last).into_iter();
    known.any(|known| known.made && Some(known.from) == line && known.to > known.from)
}

/// Which lock a thread asks for may hang on what it has read since it took another one: then it cannot take them the
/// other way round.
pub(crate) fn is_found_between(
    trace: &EventTrace,
    uses: Uses<'_>,
    held: EventId,
    asked: &Event,
) -> bool {
    let held = trace.event(held);
    let Some(span) = span(held, asked) else { return false };
    let own = trace.thread_of(held.id).events.iter().map(|id| trace.event(*id));
    let between = own.filter(|event| (held.index + 1..asked.index).contains(&event.index));
    let reads = between.filter(|event| !event.kind.reads().is_empty());
    let lines = reads.filter_map(|event| frames(event).into_iter().find(|site| span.has(site)));
    let read: BTreeSet<u32> = lines.map(|site| site.line).collect();
    let known = (uses.0)(&span.file, span.first, span.last);
    let mut reached = BTreeSet::from([span.last]);
    loop {
        let values = known.iter().filter(|known| !known.made && reached.contains(&known.to));
        let Some(line) = values.map(|known| known.from).find(|line| !reached.contains(line)) else {
            return false;
        };
        if read.contains(&line) {
            return true;
        }
        reached.insert(line);
    }
}

fn is_fork(trace: &EventTrace, id: EventId) -> bool {
    matches!(trace.event(id).kind, EventKind::Fork { .. })
}

#[cfg(test)]
mod tests {
    use super::*;
    use encoders::dsl::parse;

    #[test]
    fn a_lock_that_is_read_under_another_one_is_not_taken_first() {
        let text = "
            a: [outer] lock job
            a: [look] R next -> n
            a: [inner] lock other
            a: unlock other
            a: unlock job
        ";
        let mut parsed = parse(text).expect("the text is a trace");
        let [outer, look, inner] = ["outer", "look", "inner"].map(|label| parsed.event(label));
        for (id, line) in [(outer, 10), (look, 12), (inner, 14)] {
            let site = Site { file: "a.c".into(), function: "run".into(), line, ..Site::default() };
            parsed.trace.events[id.index()].stack = [site].into();
        }
        let found = |from: u32, to: u32, made: bool| {
            let known = move |_: &str, _: u32, _: u32| {
                vec![LineUse { from: 13, to: 14, made: false }, LineUse { from, to, made }]
            };
            is_found_between(&parsed.trace, Uses(&known), outer, parsed.trace.event(inner))
        };
        assert!(found(12, 13, false), "12 reads what 14 locks");
        assert!(!found(11, 13, false), "nothing is read in 11");
        assert!(!found(12, 13, true));
        assert!(!found(12, 15, false));
    }
}
