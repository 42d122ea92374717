//! How events are put in words.

use super::CauseEvent;
use super::story::Story;
use model::names::{CONTENTS, FILE, initialised, is_channel, is_contents, is_descriptor, is_file};
use model::{Awaited, Event, EventId, EventKind, EventTrace, Site};

/// `queue.c:20`: the last component of the file and the line, where there is one; `?` when unknown.
pub(super) fn place(site: &Site) -> String {
    if site.line == 0 && site.file.is_empty() {
        return "?".to_owned();
    }
    let file = site.file.rsplit('/').next().unwrap_or(&site.file);
    match site.line {
        // What the compiler made of several statements has no line.
        0 => file.to_owned(),
        line => format!("{file}:{line}"),
    }
}

/// The place of an event of the failing run.
pub(super) fn at(story: &Story<'_>, id: EventId) -> String {
    place(story.site(id))
}

/// `a` (a.c:3) and `b` (a.c:5), or once what is the same to a reader: one line may copy a whole object, and two may be about
/// members of it that only a library knows.
pub(super) fn both_named(story: &Story<'_>, one: EventId, other: EventId) -> String {
    let [one, other] = [one, other].map(|id| (quoted(&story.subject(id)), at(story, id)));
    match (one.0 == other.0, one.1 == other.1) {
        (true, true) => format!("{} ({})", one.0, one.1),
        (true, false) => format!("{} ({} and {})", one.0, one.1, other.1),
        (false, _) => format!("{} ({}) and {} ({})", one.0, one.1, other.0, other.1),
    }
}

/// The places of two events of one thread. Where both lie on one line of a function that was called from
/// two places, with those: an accessor's line tells nothing.
pub(super) fn both_at(story: &Story<'_>, first: EventId, second: EventId) -> [String; 2] {
    let [one, other] = [first, second].map(|id| story.event(id).stack.iter().rev());
    with_calls([first, second].map(|id| at(story, id)), one.zip(other))
}

/// The places of two events of any threads. Where both lie on one line of what takes all of a program's locks, with the
/// nearest calls that differ.
pub(super) fn apart(story: &Story<'_>, one: EventId, other: EventId) -> [String; 2] {
    let [first, second] = [one, other].map(|id| story.event(id).stack.iter());
    with_calls([one, other].map(|id| at(story, id)), first.zip(second))
}

/// Two places as they are, or where they are the same, with the first of these calls by the program that differ: where in
/// a library the two lie is no place that they were called at.
fn with_calls<'s>(
    places: [String; 2],
    calls: impl Iterator<Item = (&'s Site, &'s Site)>,
) -> [String; 2] {
    if places[0] != places[1] {
        return places;
    }
    let calls = calls.filter(|(a, b)| !a.is_in_library() && !b.is_in_library());
    let mut calls = calls.map(|(a, b)| [place(a), place(b)]);
    match calls.find(|[a, b]| a != b) {
        Some([a, b]) if a != places[0] && b != places[0] => {
            let [one, two] = places;
            [format!("{one}, called at {a}"), format!("{two}, called at {b}")]
        }
        _ => places,
    }
}

/// `wrote`, `released`: what an event did, in the past.
pub(super) fn did(event: &Event) -> &'static str {
    match event.kind {
        EventKind::Read { .. } => "read",
        EventKind::Write { .. } => "wrote",
        EventKind::ReadModifyWrite { .. } => "updated",
        EventKind::Fence => "passed a fence",
        EventKind::Lock { .. } => "took",
        EventKind::Unlock { synthetic: true, .. } => "still held",
        EventKind::Unlock { .. } => "released",
        EventKind::TryLockFailed { .. } => "failed to take",
        EventKind::Wake { .. } => "was woken at",
        EventKind::WaitTimedOut { .. } => "gave up its wait for",
        EventKind::Signal { .. } => "signalled",
        EventKind::Broadcast { .. } => "broadcast",
        EventKind::SemaphoreWait { .. } => "took a unit of",
        EventKind::SemaphoreWaitFailed { .. } => "found no unit of",
        EventKind::SemaphorePost { .. } => "posted",
        EventKind::BarrierArrive { .. } => "arrived at",
        EventKind::BarrierLeave { .. } => "left",
        EventKind::Fork { .. } => "created",
        EventKind::Start => "started",
        EventKind::Exit => "ended",
        EventKind::Join { .. } => "joined",
        EventKind::Allocate { .. } => "allocated",
        EventKind::Free { .. } => "freed",
        EventKind::Block { on: Awaited::Call } => "waited in",
        EventKind::Block { on: Awaited::Other } => "waited",
        EventKind::Block { .. } => "waited for",
        EventKind::Failure => "failed",
    }
}

/// [`did`] of what is called so: a descriptor is a variable that says whether it is open, a condition variable's
/// initialisations are counted in one, and what goes through a pipe is units of a semaphore.
pub(super) fn did_to(event: &Event, subject: &str) -> &'static str {
    match event.kind {
        EventKind::SemaphorePost { .. } if is_channel(subject) => "wrote to",
        EventKind::SemaphoreWait { .. } if is_channel(subject) => "read from",
        EventKind::Block { on: Awaited::Other } if !subject.is_empty() => "waited for",
        EventKind::Read { .. } if is_descriptor(subject) => "used",
        EventKind::Write { .. } if is_descriptor(subject) => "opened",
        EventKind::ReadModifyWrite { .. } if is_descriptor(subject) => "closed",
        EventKind::Read { .. } if initialised(subject).is_some() => "waited for",
        EventKind::Write { .. } if initialised(subject).is_some() => "initialised",
        _ => did(event),
    }
}

/// [`did_to`] in a trace. Of a file it is said whether there was one before.
pub(super) fn did_in(trace: &EventTrace, event: &Event, subject: &str) -> &'static str {
    let reads = event.kind.reads().first();
    let found = reads.and_then(|part| trace.variables.get(part.var.index())?.recorded);
    let writes = event.kind.writes().first();
    let left = writes.and_then(|part| trace.exprs.as_const(part.value));
    match (found, left) {
        _ if !is_file(subject) => did_to(event, subject),
        (None, Some(_)) if reads.is_none() => "made",
        (None, None) => "looked for",
        (None, Some(_)) => "tried to make or remove",
        (Some(0), None) => "did not find",
        (Some(_), None) => "found",
        (Some(0), Some(0)) => "failed to remove",
        (Some(_), Some(0)) => "removed",
        (Some(0), Some(_)) => "made",
        (Some(_), Some(_)) => "failed to make",
    }
}

/// ``t0.2 wrote `filled` (queue.c:20)``.
pub(super) fn whole(story: &Story<'_>, id: EventId) -> String {
    told(story, CauseEvent::Failing(id))
}

/// The same of any run's event.
pub(super) fn told(story: &Story<'_>, id: CauseEvent) -> String {
    let (trace, event) = story.look_up(id);
    let Some(event) = event else { return String::new() };
    let thread = &trace.threads[event.thread.index()].name;
    let name = story.name(id);
    clause(
        thread,
        name.as_deref(),
        did_in(trace, event, name.as_deref().unwrap_or_default()),
        event,
    )
}

/// The same with a name that is given.
fn clause(thread: &str, subject: Option<&str>, did: &str, event: &Event) -> String {
    let subject = subject.map(|name| format!(" {}", quoted(name))).unwrap_or_default();
    format!("{thread} {did}{subject} ({})", place(event.site()))
}

/// A name of the source. What has none is told by where it was allocated.
pub(super) fn quoted(name: &str) -> String {
    if name.starts_with("heap object ") || is_channel(name) {
        format!("the {name}")
    } else if name.starts_with("memory ") || is_descriptor(name) {
        name.to_owned()
    } else if let Some(path) = name.strip_prefix(FILE) {
        format!("the file `{path}`")
    } else if let Some(path) = name.strip_prefix(CONTENTS) {
        format!("the {CONTENTS}`{path}`")
    } else {
        format!("`{}`", initialised(name).unwrap_or(name))
    }
}

/// Are these paths to the same member? The pointer that an access goes through has another name in
/// each function, the member has one, and an index may be a variable.
#[must_use]
pub fn same_variable(one: &str, other: &str) -> bool {
    last_member(one) == last_member(other) && (one == other || !one.starts_with(ADDRESS))
}

/// What follows the last `->` or `.`, with `[*]` for any index. What has no name but an address, which is another one in each
/// run, is like all others of that kind; so is a pipe and the like, which is called by the line where it was made.
#[must_use]
pub fn last_member(path: &str) -> String {
    if is_channel(path) {
        return path.split(" of ").next().unwrap_or_default().to_owned();
    }
    if is_file(path) || is_contents(path) {
        return path.to_owned();
    }
    let plain = without_indices(path).replace("->", ".");
    match plain.rsplit('.').next().unwrap_or_default() {
        address if address.starts_with(ADDRESS) => "*".to_owned(),
        member => member.to_owned(),
    }
}

/// How the name of a place that has none begins.
pub(super) const ADDRESS: &str = "*0x";

/// Any index replaced by `[*]`, and what a function is called with left out; both may be paths themselves.
pub(super) fn without_indices(path: &str) -> String {
    let (mut kept, mut depth) = (String::new(), 0u32);
    for character in path.chars() {
        let is_call = || kept.ends_with(|last: char| last.is_alphanumeric() || last == '_');
        match character {
            '[' | '(' if depth > 0 => depth += 1,
            '[' => {
                kept.push_str("[*]");
                depth = 1;
            }
            '(' if is_call() => {
                kept.push_str("()");
                depth = 1;
            }
            ']' | ')' if depth > 0 => depth -= 1,
            _ if depth == 0 => kept.push(character),
            _ => {}
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::ThreadId;

    #[test]
    fn one_line_that_takes_all_locks_is_told_with_its_calls() {
        let site = |line: u32| Site { file: "guard.h".to_owned(), line, ..Site::default() };
        let stacks = [vec![site(11), site(42), site(90)], vec![site(11), site(50), site(91)]];
        let places = |one: u32, other: u32| [place(&site(one)), place(&site(other))];
        let calls = |first: usize, second: usize| stacks[first].iter().zip(&stacks[second]);
        let told = with_calls(places(11, 11), calls(0, 1));
        assert_eq!(told, ["guard.h:11, called at guard.h:42", "guard.h:11, called at guard.h:50"]);
        assert_eq!(with_calls(places(11, 12), calls(0, 1)), places(11, 12));
        assert_eq!(with_calls(places(11, 11), calls(0, 0)), places(11, 11));
        // One line calls two functions of a library.
        let library = |line: u32| Site { file: "/usr/include/string.h".to_owned(), ..site(line) };
        let stacks = [[site(90), site(11), library(3)], [site(90), site(11), library(7)]];
        let inside = stacks[0].iter().zip(&stacks[1]);
        assert_eq!(with_calls(places(11, 11), inside), places(11, 11));
    }

    #[test]
    fn a_wait_that_nothing_more_is_known_of_is_a_wait_for_something() {
        let event = Event {
            id: EventId::from_index(0),
            thread: ThreadId::from_index(0),
            index: 0,
            stack: [Site { file: "turn.cpp".to_owned(), line: 16, ..Site::default() }].into(),
            continued: Event::ALL_CONTINUED,
            name: None,
            words: [].into(),
            pieces: [].into(),
            drains: false,
            kind: EventKind::Block { on: Awaited::Other },
        };
        let said = |name: Option<&str>| {
            clause("t0.1", name, did_to(&event, name.unwrap_or_default()), &event)
        };
        assert_eq!(said(Some("turn")), "t0.1 waited for `turn` (turn.cpp:16)");
        assert_eq!(said(None), "t0.1 waited (turn.cpp:16)");
    }

    #[test]
    fn the_member_tells_variables_apart() {
        assert_eq!(last_member("pipe of server.c:12"), last_member("pipe of server.c:13"));
        assert_ne!(last_member("pipe of server.c:12"), last_member("event counter of server.c:12"));
        assert!(same_variable("queue->filled", "q->filled"));
        assert!(same_variable("slots[stack->count]", "stack->slots[3]"));
        assert!(!same_variable("bank->total", "bank->totals"));
        assert_eq!(last_member("a.b[c->d[1]].e"), "e");
        assert_eq!(last_member("shop.at(job.id).price"), "price");
        assert_eq!(last_member("jobs.find(job->id)"), "find()");
        assert!(same_variable("(*this->rows_)->next", "rows[i->at(2)].next"));
        // Addresses differ from run to run.
        assert_eq!(last_member("*0x7f5a27c08010"), last_member("*0x7fd3ff016010"));
        assert!(!same_variable("*0x7f5a27c08010", "*0x7fd3ff016010"));
        assert_ne!(last_member("*0x7f5a27c08010"), last_member("*node"));
    }
}
