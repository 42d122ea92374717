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
    /// How.
    pub how: How,
}

/// How one line uses another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// By a value, in a local variable or in other memory of the thread's own.
    Value,
    /// By a variable that a call gets the address of as its first argument: the handle, where a thread is created.
    Made,
    /// By a branch in the one that decides whether the other is reached.
    Decided,
}

/// A line of a function that calls another one: files and names of both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineCall {
    /// The function that calls.
    pub caller: (String, String),
    /// The line in it.
    pub line: u32,
    /// The one that is called.
    pub callee: (String, String),
}

/// Who knows the code of lines.
pub trait Lines {
    /// Which lines from the first to the last of a file use what others of them compute?
    fn uses(&self, file: &str, first: u32, last: u32) -> Vec<LineUse>;

    /// Which lines from the first to the last of a file write what others may see, or call something?
    fn acts(&self, _file: &str, _first: u32, _last: u32) -> Vec<u32> {
        Vec::new()
    }

    /// Which lines behind these read again in the source what these wrote, where the compiler has kept the value: the line,
    /// and what the lines call it.
    fn reads_again(&self, _file: &str, _first: u32, _last: u32) -> Vec<(u32, String)> {
        Vec::new()
    }

    /// The calls between the program's own functions that stand in the code, whether they ran or not.
    fn calls(&self) -> Vec<LineCall> {
        Vec::new()
    }
}

impl<F: Fn(&str, u32, u32) -> Vec<LineUse>> Lines for F {
    fn uses(&self, file: &str, first: u32, last: u32) -> Vec<LineUse> {
        self(file, first, last)
    }
}

/// What is known of the code of lines.
#[derive(Clone, Copy)]
pub struct Uses<'a>(pub &'a dyn Lines);

impl Uses<'_> {
    /// Nothing is known.
    pub const NONE: Uses<'static> = Uses(&|_: &str, _: u32, _: u32| Vec::new());
}

impl fmt::Debug for Uses<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Uses")
    }
}

/// Does a branch between `first` and there decide whether a line is reached, and not whether `own` is? What is done before
/// such a line, or behind it, is done as seldom.
pub(crate) fn is_reached_less(
    uses: Uses<'_>,
    file: &str,
    (first, own): (u32, u32),
    line: u32,
) -> bool {
    let known = uses.0.uses(file, first.min(line), own.max(line));
    let decides = |from: u32, to: u32| {
        known.iter().any(|it| it.how == How::Decided && (it.from, it.to) == (from, to))
    };
    known.iter().any(|it| it.from != line && decides(it.from, line) && !decides(it.from, own))
}

/// Does a statement that moves past others up to `end`, the last of them, leave behind what it needs, or what needs
/// it? Moved to an earlier line it cannot use what `end` computes, by whatever lines in between; moved to a later
/// one, none that it passes can use what it computes. Nor may it overwrite what one that it passes has yet to read, or
/// find overwritten what it reads itself.
pub(crate) fn parts(
    trace: &EventTrace,
    uses: Uses<'_>,
    function: &Site,
    (own, passed): (&Statement, &[&Statement]),
    direction: Direction,
) -> bool {
    let Some(end) = passed.last() else { return false };
    let (first, last) = (own.line.min(end.line), own.line.max(end.line));
    let known = uses.0.uses(&function.file, first, last);
    let creates = |line: u32| {
        let all = passed.iter().copied().chain([own]).filter(|other| other.line == line);
        all.flat_map(|other| &other.events).any(|id| is_fork(trace, *id))
    };
    let known: Vec<LineUse> =
        known.into_iter().filter(|known| known.how != How::Made || creates(known.from)).collect();
    let swaps = |known: &LineUse| {
        let (here, there) = match direction {
            Direction::Earlier => (known.from, known.to),
            Direction::Later => (known.to, known.from),
        };
        known.how == How::Value
            && here == own.line
            && passed.iter().any(|other| other.line == there)
    };
    // Whether the other one is reached can only hang on a statement that finds something out, as a call does that leaves
    // something behind and says how it went: who checks what a lock or the creation of a thread gave back goes on
    // where it worked.
    let finds_out = |statement: &Statement| {
        let mut kinds = statement.events.iter().map(|id| &trace.event(*id).kind);
        kinds.any(|kind| kind.is_access() || matches!(kind, EventKind::TryLockFailed { .. }))
    };
    let needs = |known: &[LineUse], stops: &dyn Fn(u32) -> bool| {
        leads_to((own.line, direction), known, stops)
    };
    let values: Vec<LineUse> =
        known.iter().filter(|known| known.how != How::Decided).copied().collect();
    let passes = |line: u32| passed.iter().any(|other| other.line == line);
    let decides = |line: u32| match direction {
        Direction::Earlier => passed.iter().any(|other| other.line == line && finds_out(other)),
        Direction::Later => finds_out(own) && passes(line),
    };
    known.iter().any(swaps) || needs(&values, &passes) || needs(&known, &decides)
}

/// Following the uses from a line, backwards to where an earlier statement is to go, does one come to a line that stops?
fn leads_to(
    (line, direction): (u32, Direction),
    known: &[LineUse],
    stops: &dyn Fn(u32) -> bool,
) -> bool {
    let mut reached = BTreeSet::from([line]);
    loop {
        let next = known.iter().find_map(|known| {
            let (here, there) = match direction {
                Direction::Earlier => (known.to, known.from),
                Direction::Later => (known.from, known.to),
            };
            (reached.contains(&here) && !reached.contains(&there)).then_some(there)
        });
        let Some(line) = next else { return false };
        if stops(line) {
            return true;
        }
        reached.insert(line);
    }
}

/// Does the branch at this place decide about other lines of its function, and not about this one, which comes behind it?
/// No where nothing is known of the branch.
pub(crate) fn decides_elsewhere(uses: Uses<'_>, branch: &Site, line: u32) -> bool {
    if line <= branch.line {
        return false;
    }
    let mut known = uses.0.uses(&branch.file, branch.line, line);
    known.retain(|known| known.how == How::Decided);
    known.iter().any(|known| known.from == branch.line)
        && !leads_to((branch.line, Direction::Later), &known, &|reached| reached == line)
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
    let mut known = uses.0.uses(&span.file, span.first, span.last).into_iter();
    known.any(|known| known.how == How::Made && Some(known.from) == line && known.to > known.from)
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
    let known = uses.0.uses(&span.file, span.first, span.last);
    let mut reached = BTreeSet::from([span.last]);
    loop {
        let values =
            known.iter().filter(|known| known.how == How::Value && reached.contains(&known.to));
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

    /// Is a line of these, each of which reads or writes something else, kept from moving past those between it and the
    /// other one?
    fn is_parted(uses: &[(u32, u32, How)], line: u32, past: u32) -> bool {
        let text = "
            a: [10] R table -> t
            a: [12] W log 1
            a: [14] lock m
            a: [16] W used 1
            a: unlock m
        ";
        let parsed = parse(text).expect("the text is a trace");
        let statement = |line: u32| Statement {
            line,
            events: vec![parsed.event(&line.to_string())],
            activation: 1,
        };
        let all = [10, 12, 14, 16].map(statement);
        let known = |_: &str, first: u32, last: u32| {
            let within = |line: u32| (first..=last).contains(&line);
            let uses = uses.iter().filter(|(from, to, _)| within(*from) && within(*to));
            uses.map(|&(from, to, how)| LineUse { from, to, how }).collect()
        };
        let direction = if past < line { Direction::Earlier } else { Direction::Later };
        let at = all.iter().position(|other| other.line == line).expect("it is one of them");
        let between = |other: &&Statement| match direction {
            Direction::Earlier => (past..line).contains(&other.line),
            Direction::Later => (line + 1..=past).contains(&other.line),
        };
        let mut passed: Vec<&Statement> = all.iter().filter(between).collect();
        if direction == Direction::Earlier {
            passed.reverse();
        }
        let function = Site { file: "a.c".into(), function: "run".into(), ..Site::default() };
        parts(&parsed.trace, Uses(&known), &function, (&all[at], &passed), direction)
    }

    #[test]
    fn a_line_stays_behind_what_it_uses_and_before_what_uses_it() {
        use How::{Decided, Value};
        assert!(!is_parted(&[], 16, 10));
        assert!(is_parted(&[(10, 16, Value)], 16, 10), "what is looked up there");
        assert!(
            is_parted(&[(10, 11, Value), (11, 16, Value)], 16, 10),
            "by way of a line without events"
        );
        assert!(is_parted(&[(12, 16, Value)], 16, 10), "what is passed on the way");
        assert!(!is_parted(&[(10, 16, Value)], 16, 12));
        assert!(is_parted(&[(10, 16, Value)], 10, 16));
        assert!(is_parted(&[(16, 10, Value)], 16, 10), "what is read there would be overwritten");
        assert!(is_parted(&[(16, 10, Value)], 10, 16));
        assert!(is_parted(&[(10, 16, Decided)], 16, 10), "whether it is reached at all");
        assert!(is_parted(&[(12, 16, Decided)], 16, 10), "whether a call that writes went well");
        assert!(is_parted(&[(10, 11, Value), (11, 16, Decided)], 16, 10));
        assert!(is_parted(&[(10, 11, Value), (11, 16, Decided)], 10, 16));
        assert!(
            !is_parted(&[(14, 16, Decided)], 16, 14),
            "whether the lock was there for the asking"
        );
        assert!(!is_parted(&[(16, 10, Decided)], 16, 10), "another round of a loop");
    }

    #[test]
    fn a_branch_that_decides_about_lines_before_is_no_guard() {
        let known = |_: &str, _: u32, _: u32| {
            let decided = |(from, to)| LineUse { from, to, how: How::Decided };
            [(15, 16), (15, 18), (18, 19)].map(decided).to_vec()
        };
        let branch = Site { file: "a.c".into(), line: 15, ..Site::default() };
        let elsewhere = |line| decides_elsewhere(Uses(&known), &branch, line);
        assert!(elsewhere(17) && elsewhere(20));
        assert!(!elsewhere(16) && !elsewhere(18), "it decides about these");
        assert!(!elsewhere(19), "by way of another branch");
        assert!(!elsewhere(14), "another round of a loop");
        assert!(!decides_elsewhere(Uses::NONE, &branch, 17), "nothing is known");
    }

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
        let found = |from: u32, to: u32, how: How| {
            let known = move |_: &str, _: u32, _: u32| {
                vec![LineUse { from: 13, to: 14, how: How::Value }, LineUse { from, to, how }]
            };
            is_found_between(&parsed.trace, Uses(&known), outer, parsed.trace.event(inner))
        };
        assert!(found(12, 13, How::Value), "12 reads what 14 locks");
        assert!(!found(11, 13, How::Value), "nothing is read in 11");
        assert!(!found(12, 13, How::Made));
        assert!(!found(12, 15, How::Value));
    }
}
