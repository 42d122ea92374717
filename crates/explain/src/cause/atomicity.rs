//! One variable: another thread's access between two of one thread that belong together.

use super::story::{Pair, Story};
use super::words::{at, both_at, did_in, quoted};
use super::{CauseEvent, Found, Pattern, sections};
use model::names::{is_contents, is_descriptor, is_file};
use model::{CellId, Event, EventId, PathConditionKind, Site, ThreadId};
use std::cell::LazyCell;

/// So many accesses before and behind the other thread's are tried, the nearest first.
const NEIGHBOURS: usize = 3;

/// Two accesses of one thread, and one of another between them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Triple {
    pub(super) first: EventId,
    pub(super) between: EventId,
    pub(super) second: EventId,
    pub(super) cell: CellId,
}

/// The unserialisable cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Case {
    /// The second read returns what the first one did not.
    ReadWriteRead,
    /// The read does not return what the thread wrote itself.
    WriteWriteRead,
    /// The other thread reads what was not meant to be seen.
    WriteReadWrite,
    /// What the other thread wrote is overwritten by what does not know of it.
    ReadWriteWrite,
    /// What was written to a file by two calls does not stand there in one piece.
    WriteWriteWrite,
}

impl Case {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::ReadWriteRead => "read-write-read",
            Self::WriteWriteRead => "write-write-read",
            Self::WriteReadWrite => "write-read-write",
            Self::ReadWriteWrite => "read-write-write",
            Self::WriteWriteWrite => "write-write-write",
        }
    }
}

pub(super) fn find(story: &Story<'_>, pair: Pair) -> Option<Found> {
    let order = match pair {
        Pair::Reversed(order) => order,
        Pair::Late { before, .. } => return rescued(story, before),
    };
    // The access that comes between may be either of the pair.
    let ends = [(order.before, order.after), (order.after, order.before)];
    for cell in story.common_cells(order.before, order.after) {
        for (own, other) in ends {
            let thread = story.event(own).thread;
            let mut between = std::iter::once(other).chain(consequences(story, other, cell));
            let triple = between.find_map(|between| around(story, thread, between, cell));
            if let Some((triple, case)) = triple {
                return Some(found(story, triple, case));
            }
        }
        if let Some(triple) = lost_behind(story, order.before, order.after, cell) {
            return Some(found(story, triple, Case::ReadWriteWrite));
        }
        let mixed = ends.into_iter().find_map(|(own, other)| mixed(story, own, other, cell));
        if let Some(triple) = mixed {
            return Some(found(story, triple, Case::WriteWriteWrite));
        }
    }
    None
}

/// A thread wrote to a file between two calls by which another one did. What stands in a file is more than what was
/// written last.
fn mixed(story: &Story<'_>, own: EventId, between: EventId, cell: CellId) -> Option<Triple> {
    let is_write = |id: &EventId| {
        let access = story.access(*id, cell);
        access.writes && !access.reads && is_contents(&story.subject(*id))
    };
    let accesses = story.accesses(story.event(own).thread, cell);
    let split = accesses.iter().position(|id| story.before(between, *id))?;
    let (earlier, later) = accesses.split_at(split);
    let (first, second) = (*earlier.last()?, *later.first()?);
    let triple = Triple { first, between, second, cell };
    let fits = [first, between, second].iter().all(is_write)
        && story.in_one_call(first, second)
        && story.event(first).stack != story.event(second).stack
        && is_undone(story, triple);
    fits.then_some(triple)
}

/// A thread read what another one had written, and by the time it overwrote that the other one had come through the
/// same line again: what was written then is lost, and not what was read.
fn lost_behind(story: &Story<'_>, write: EventId, read: EventId, cell: CellId) -> Option<Triple> {
    let [a, b] = [write, read].map(|id| story.access(id, cell));
    if !a.writes || !b.reads || b.writes {
        return None;
    }
    let others = story.accesses(story.event(write).thread, cell).iter().copied();
    let again = others.filter(|id| {
        story.event(*id).index > story.event(write).index
            && story.event(*id).stack == story.event(write).stack
            && story.before(read, *id)
    });
    let thread = story.event(read).thread;
    again.take(NEIGHBOURS).find_map(|between| {
        let (triple, case) = around(story, thread, between, cell)?;
        (case == Case::ReadWriteWrite && triple.first == read).then_some(triple)
    })
}

/// Two threads check and then act, both in the same place, and the one's act came between the other's check
/// and use. In the passing run it may come there as well, and some further write have made good for it:
/// that write is not what was missing.
fn rescued(story: &Story<'_>, use_: EventId) -> Option<Found> {
    let thread = story.event(use_).thread;
    story.cells(use_).into_iter().find_map(|cell| {
        let between = story.source(use_, cell)?;
        let rival = story.event(between).thread;
        let own = story.accesses(thread, cell).iter().copied().rev();
        let check = own.into_iter().find(|id| story.event(*id).index < story.event(use_).index)?;
        let triple = Triple { first: check, between, second: use_, cell };
        let until = story.event(between).index;
        let deciding = LazyCell::new(|| story.deciding(rival, cell, until));
        let is_check = |id: &EventId| {
            story.event(*id).index < story.event(between).index
                && story.event(*id).stack == story.event(check).stack
                && deciding.contains(id)
        };
        let fits = rival != thread
            && story.before(check, between)
            && story.decides(check, use_, cell)
            && story.accesses(rival, cell).iter().any(is_check)
            && case_of(story, triple) == Some(Case::ReadWriteRead);
        fits.then(|| found(story, triple, Case::ReadWriteRead))
    })
}

/// The next accesses of an access's thread, where they hang on what it reads: of two threads that
/// both check and then act, the one's act lies between the other's check and act.
fn consequences(story: &Story<'_>, id: EventId, cell: CellId) -> Vec<EventId> {
    let near = story.accesses_behind(id, cell).iter().copied().take(NEIGHBOURS);
    near.filter(|other| story.decides(id, *other, cell) || story.feeds(id, *other, cell)).collect()
}

/// The accesses of a thread around another thread's access, where they belong together.
fn around(
    story: &Story<'_>,
    thread: ThreadId,
    between: EventId,
    cell: CellId,
) -> Option<(Triple, Case)> {
    let accesses = story.accesses(thread, cell);
    let split = accesses.iter().position(|id| story.before(between, *id))?;
    let (earlier, later) = accesses.split_at(split);
    let earlier = nearest(story, earlier.iter().rev().copied(), cell);
    let later = nearest(story, later.iter().copied(), cell);
    for &first in &earlier {
        for &second in &later {
            let triple = Triple { first, between, second, cell };
            if let Some(case) = holds(story, triple) {
                return Some(widened(story, triple, case));
            }
        }
    }
    None
}

/// The first few of these, one for each place: a loop reads the same again and again, and what is set once takes steps.
fn nearest(
    story: &Story<'_>,
    accesses: impl Iterator<Item = EventId>,
    cell: CellId,
) -> Vec<EventId> {
    let mut found: Vec<EventId> = Vec::new();
    for id in accesses {
        let known = found.iter().any(|other| {
            let [one, two] = [*other, id].map(|id| story.event(id));
            (one.stack == two.stack || is_one_setting(one, two))
                && story.access(*other, cell) == story.access(id, cell)
        });
        if !known {
            found.push(id);
        }
        if found.len() == NEIGHBOURS {
            break;
        }
    }
    found
}

/// Which of the cases it is, where what passes does not have it.
fn holds(story: &Story<'_>, triple: Triple) -> Option<Case> {
    case_of(story, triple).filter(|_| is_undone(story, triple))
}

/// Where the other thread did something else to the variable just before, with the same effect, that
/// is told: who overwrites and then clears a variable has done harm by the first of the two.
fn widened(story: &Story<'_>, triple: Triple, case: Case) -> (Triple, Case) {
    let others = story.accesses(story.event(triple.between).thread, triple.cell);
    let elsewhere = |id: EventId| story.site(id).line != story.site(triple.between).line;
    let inside = others.iter().copied().rev().filter(|id| {
        story.before(triple.first, *id)
            && story.event(*id).index < story.event(triple.between).index
            && elsewhere(*id)
    });
    let mut wider = inside.take(NEIGHBOURS).map(|between| Triple { between, ..triple });
    let found = wider.find(|wider| holds(story, *wider) == Some(case));
    (found.unwrap_or(triple), case)
}

/// Is what lies between the two accesses of one thread no place where another thread can come between?
pub(super) fn is_one_step(story: &Story<'_>, triple: Triple) -> bool {
    asks_in_vain(story, triple) || in_one_setting(story, triple)
}

/// Who asks for a lock of the program's own and finds it taken has not come into its holder's section.
fn asks_in_vain(story: &Story<'_>, triple: Triple) -> bool {
    let Triple { first, between, second, cell } = triple;
    let found = story.found(between, cell);
    found.is_some()
        && found == story.left(between, cell)
        && sections::is_own_lock(story, first, second, cell)
}

fn in_one_setting(story: &Story<'_>, triple: Triple) -> bool {
    is_one_setting(story.event(triple.first), story.event(triple.second))
}

/// Are both steps of one call that sets what Rust's library sets once? To others that call is one step.
fn is_one_setting(one: &Event, two: &Event) -> bool {
    one.sets_once() && two.sets_once() && calls(one) == calls(two)
}

/// Does the thread ask whether something is set that is set once, and set it then? It goes by that, although along the
/// recorded paths it may find the same answer in any order, so that no branch says so.
fn asks_first(story: &Story<'_>, first: EventId, second: EventId) -> bool {
    story.event(first).asks_whether_it_is_set() && story.event(second).sets_once()
}

/// Where the program calls the library, and from where that was called.
fn calls(event: &Event) -> &[Site] {
    event.stack.get(event.depth()..).unwrap_or_default()
}

/// Which of the cases it is, provided that the two accesses belong together.
fn case_of(story: &Story<'_>, triple: Triple) -> Option<Case> {
    let Triple { first, between, second, cell } = triple;
    // What nobody but a library does to the place later, in a frame that has the same addresses, say, is no
    // use of the variable.
    if story.site(second).is_in_library() && !story.site(first).is_in_library() {
        return None;
    }
    // Nor do two looks of one wait of the library belong to a check and its use, nor what a pointer that is
    // destroyed does to a count.
    let [one, two] = [first, second].map(|id| story.event(id));
    if one.gives_up_reference()
        || one.asks_who_is_left()
        || (one.is_in_synchronisation() && two.is_in_synchronisation())
        || is_one_step(story, triple)
    {
        return None;
    }
    let [a, b, c] = [first, between, second].map(|id| story.access(id, cell));
    // How what is written to a file follows from what was read there is not known.
    let linked = || {
        story.decides(first, second, cell)
            || story.feeds(first, second, cell)
            || is_contents(&story.subject(second))
            || asks_first(story, first, second)
    };
    if b.writes {
        // With a third thread's write in between, the own one would not have been read either.
        let own = || {
            let last = story.last_write_before(between, cell);
            last.is_none_or(|last| story.event(last).thread == story.event(first).thread)
        };
        // What a thread made ready, in a constructor, say, before the other one was there at all is no step that the
        // other one could have come into.
        let made_ready = || {
            story.always_before(first, between)
                && (story.has_returned(first, second) || one.is_in_constructor_of_library())
        };
        // Nor is there a step where the other one has ended before the second access: it came there all the same, and
        // the first one was too early.
        let ended = || story.always_before(between, second);
        let behind = || story.in_one_call(first, second) && !made_ready() && !ended();
        if a.writes && c.reads && story.reads_otherwise(second) && own() && behind() {
            return Some(Case::WriteWriteRead);
        }
        let victim = || story.reads_otherwise(first) || story.reads_otherwise(second);
        // Two rounds of a loop are no check and its use, nor are two calls.
        let together = || {
            story.event(first).stack != story.event(second).stack
                && !story.looks_anew(first, second)
                && behind()
                && (linked()
                    || story.decide_together(first, second, cell)
                    || story.turns_null(first, second, cell)
                    || leads_to_two_objects(story, triple))
        };
        if a.reads && c.reads && victim() && together() {
            return Some(Case::ReadWriteRead);
        }
        // Who looked again behind the other's write knew of it.
        let knew = || {
            let own = story.accesses(story.event(first).thread, cell).iter().copied();
            let mut later = own.filter(|id| story.event(*id).index < story.event(second).index);
            later.any(|id| {
                story.before(between, id)
                    && story.access(id, cell).reads
                    && !merely_replaces(story, id, second, cell)
            })
        };
        // Who makes a new object of what the old one held has read more than the pointer.
        let copied = || {
            story.follows(first, second, cell)
                && story.event(first).stack != story.event(second).stack
                && story.in_one_call(first, second)
        };
        // Who takes what has come together and then clears the place has read it for another one.
        let taken = || {
            !a.writes
                && !c.reads
                && story.in_one_call(first, second)
                && story.passes_on(first, second, cell)
        };
        // Who has come round again, and changed the variable itself before the other one came, goes by what it left there.
        let renewed = || {
            let mut own = story.accesses(story.event(first).thread, cell).iter().copied();
            let inside = |id: &EventId| {
                story.event(*id).index > story.event(first).index
                    && story.before(*id, between)
                    && story.access(*id, cell).writes
            };
            !story.forward(first, second) && own.any(|id| inside(&id))
        };
        // Who was there only when the look was over has come into no step: the next round, or the next object at the same
        // place, is written anew, unless what it is given was computed from the look.
        let over = || {
            story.always_before(first, between)
                && (story.has_returned(first, second) || !story.forward(first, second))
                && !story.feeds(first, second, cell)
                && !story.follows(first, second, cell)
        };
        let unknowing = || !knew() && !renewed() && !over();
        if a.reads && c.writes && (linked() || copied() || taken()) && unknowing() {
            return Some(Case::ReadWriteWrite);
        }
    }
    // Of a loop that writes again and again each value may be meant to be seen.
    // How a library's atomic variable is written, by a store or an exchange, is its own affair.
    let one_activation = || {
        let [one, other] = [first, second].map(|id| calls(story.event(id)));
        let ([a, one @ ..], [b, other @ ..]) = (one, other) else { return false };
        a.function == b.function && one == other && a.line != b.line
    };
    // What was written before the other thread was there is no half of a step that it can see.
    let dirty =
        a.writes && b.reads && !b.writes && c.writes && !story.always_before(first, between);
    let dirty = dirty && story.reads_otherwise(between) && one_activation();
    dirty.then_some(Case::WriteReadWrite)
}

/// Does the thread follow a pointer that it reads twice, and comes to two objects, one of them the other thread's? What it takes
/// from them may not belong together. It has not changed the pointer itself meanwhile.
fn leads_to_two_objects(story: &Story<'_>, triple: Triple) -> bool {
    let Triple { first, between, second, cell } = triple;
    let follows = |id: EventId| {
        let event = story.event(id);
        let mut own = story.trace().conditions.iter().filter(|c| c.thread == event.thread);
        own.any(|condition| {
            condition.kind == PathConditionKind::Address
                && story.trace().reads_of(condition.expr).iter().any(|read| read.event == id)
        })
    };
    let range = story.event(first).index..=story.event(second).index;
    let mut own = story.accesses(story.event(first).thread, cell).iter();
    story.source(second, cell) == Some(between)
        && story.found(first, cell) != story.found(second, cell)
        && own.all(|id| !range.contains(&story.event(*id).index) || !story.access(*id, cell).writes)
        && follows(first)
        && follows(second)
}

/// Is the read only how a library puts a new value in the old one's place, as a swap does: in the statement that
/// writes, and nothing hangs on it?
fn merely_replaces(story: &Story<'_>, read: EventId, write: EventId, cell: CellId) -> bool {
    let inside = story.event(read).depth() > 0;
    inside
        && story.site(read) == story.site(write)
        && !story.decides(read, write, cell)
        && !story.feeds(read, write, cell)
}

/// Does what passes have the other thread's access before or behind both?
fn is_undone(story: &Story<'_>, triple: Triple) -> bool {
    let Triple { first, between, second, .. } = triple;
    let comes_after = story.before_when_passing(first, between);
    let comes_before = story.before_when_passing(between, second);
    // Where the passing run lacks one of them, nothing comes between.
    !(comes_after == Some(true) && comes_before == Some(true))
}

pub(super) fn found(story: &Story<'_>, triple: Triple, case: Case) -> Found {
    let Triple { first, between, second, cell } = triple;
    let (own, other) = (story.thread(first), story.thread(between));
    let subject = story.subject(between);
    let what = format!(
        "{other} {} {} ({}) between {own}'s",
        did_in(story.trace(), story.event(between), &subject),
        quoted(&subject),
        at(story, between)
    );
    let [one, two] = both_at(story, first, second);
    let decides = (story.decides(first, second, cell) || asks_first(story, first, second))
        && !is_contents(&subject);
    let rest = match case {
        Case::ReadWriteRead if is_descriptor(&subject) => {
            format!("two uses of it ({one} and {two})")
        }
        Case::WriteWriteRead if is_descriptor(&subject) => {
            format!("opening it ({one}) and its use ({two})")
        }
        _ if is_file(&subject) => {
            let tries = |id: EventId| match story.event(id).kind.writes() {
                [] => "look for it",
                _ => "try to make or remove it",
            };
            format!("{} ({one}) and its {} ({two})", tries(first), tries(second))
        }
        Case::ReadWriteRead if decides => format!("check ({one}) and its use ({two})"),
        Case::ReadWriteRead => format!("two reads of it ({one} and {two})"),
        Case::WriteWriteRead => format!("write ({one}) and its read ({two})"),
        Case::WriteReadWrite | Case::WriteWriteWrite => {
            format!("two writes of it ({one} and {two})")
        }
        Case::ReadWriteWrite if decides => format!("check ({one}) and its write ({two})"),
        Case::ReadWriteWrite => format!("read ({one}) and its write ({two})"),
    };
    let sentence = format!("{what} {rest}");
    let events = [between, first, second];
    let source = source_of(story, between, cell).filter(|_| case == Case::ReadWriteWrite);
    let marks = events.iter().copied().chain(source).map(CauseEvent::Failing).collect();
    Found { case: Some(case.name()), marks, ..Found::new(Pattern::Atomicity, sentence, &events) }
}

/// The last read by which the write's own thread came to write what it wrote.
fn source_of(story: &Story<'_>, write: EventId, cell: CellId) -> Option<EventId> {
    let own = story.accesses(story.event(write).thread, cell);
    let earlier = own.iter().copied().rev().filter(|id| {
        story.event(*id).index < story.event(write).index && story.access(*id, cell).reads
    });
    let mut near = earlier.take(NEIGHBOURS);
    near.find(|id| story.decides(*id, write, cell) || story.feeds(*id, write, cell))
}
