//! Variables that belong together: one thread's accesses to them got between another thread's.
//!
//! That they belong together is taken from the failure: its condition compares what one thread read
//! from both, or names one, and the thread's way there was decided by the other.

use super::story::{Pair, Story};
use super::words::{at, both_named, last_member, quoted, same_variable, whole};
use super::{Found, Pattern, announced};
use model::names::{is_descriptor, outside_of_library};
use model::{CellId, EventId, PathConditionKind, Site, ThreadId};
use solver::Order;
use std::collections::BTreeMap;

/// No more of the reads that a thread's branches depend on are looked at.
const CHECKS: usize = 4;

/// The last reads of two variables by the thread whose reads decide the failure.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reads {
    pub(super) first: (EventId, CellId),
    pub(super) second: (EventId, CellId),
    /// The first is named by no condition together with the second: it only led there.
    pub(super) check: bool,
}

/// One write that a read sees, and its companion that the other read does not see.
#[derive(Clone, Copy, Debug)]
pub(super) struct Torn {
    /// The write that was seen, of the variable of the read.
    pub(super) seen: (EventId, EventId),
    /// The read that missed, and the write that it missed, if the run got there.
    pub(super) missed: (EventId, Option<EventId>),
}

pub(super) fn find(story: &Story<'_>, pair: Pair) -> Option<Found> {
    let Pair::Reversed(order) = pair else { return None };
    for (own, other) in [(order.before, order.after), (order.after, order.before)] {
        if let Some(split) = split(story, own, story.event(other).thread) {
            return Some(split);
        }
        let writer = story.event(other).thread;
        for reads in compared(story, own, &story.common_cells(own, other)) {
            if let Some(torn) = torn(story, reads, writer) {
                // The reader was told that both are there.
                let told = torn.missed.1.and_then(|missed| {
                    announced::find_after(story, torn.seen.0, torn.missed.0, missed)
                });
                return Some(told.unwrap_or_else(|| found(story, reads, torn)));
            }
            if let Some(mixed) = mixed(story, reads, own, other) {
                return Some(mixed);
            }
        }
    }
    half_seen(story, order).or_else(|| moved(story, order))
}

/// Of a library's one object the reader has one member from before another thread changed it and one from behind that, and the
/// root cause has both orders: what becomes of the values is not known then, as where they go through a text.
fn moved(story: &Story<'_>, order: Order) -> Option<Found> {
    let orders: Vec<Order> =
        story.root_cause?.orders.iter().map(|conflict| conflict.order).collect();
    let thread = |id: EventId| story.event(id).thread;
    let plain = |read: EventId, write: EventId| {
        let cell = *story.common_cells(read, write).first()?;
        let [read, write] = [read, write].map(|id| story.access(id, cell));
        (read.reads && !read.writes && write.writes).then_some(cell)
    };
    let late = orders.iter().filter_map(|late| Some((late, plain(late.after, late.before)?)));
    late.into_iter().find_map(|(late, cell)| {
        orders.iter().find_map(|early| {
            let companion = plain(early.before, early.after)?;
            if ![late, early].contains(&&order) {
                return None;
            }
            let (read, other) = (late.after, early.before);
            let fits = thread(read) == thread(other)
                && thread(late.before) == thread(early.after)
                && are_parts(story, read, other)
                && story.in_one_call(read, other)
                && story.in_one_call(late.before, early.after);
            let mut both = [(read, cell), (other, companion)];
            both.sort_by_key(|(id, _)| story.event(*id).index);
            let reads = Reads { first: both[0], second: both[1], check: false };
            let torn = Torn { seen: (late.before, read), missed: (other, Some(early.after)) };
            fits.then(|| found(story, reads, torn))
        })
    })
}

/// The reads of both variables lie between a third thread's writes of them: who came in another order in the passing run
/// need not be who was half-way, and what it wrote first may have been written again since.
fn half_seen(story: &Story<'_>, order: Order) -> Option<Found> {
    [order.before, order.after].into_iter().find_map(|own| {
        let reader = story.event(own).thread;
        let cells = story.common_cells(order.before, order.after);
        let threads = || (0..story.trace().threads.len()).map(ThreadId::from_index);
        compared(story, own, &cells).into_iter().find_map(|reads| {
            threads().filter(|writer| *writer != reader).find_map(|writer| {
                let torn = torn(story, reads, writer)?;
                let (seen, missed) = (torn.seen.0, torn.missed.1?);
                let whole = story.in_one_call(seen, missed) || story.in_one_call(missed, seen);
                whole.then(|| found(story, reads, torn))
            })
        })
    })
}

/// One read of several cells, a copy of a structure, say, between one thread's writes of two of them, where the
/// failure's condition names both.
fn split(story: &Story<'_>, read: EventId, writer: ThreadId) -> Option<Found> {
    if story.event(read).thread == writer {
        return None;
    }
    let named = story.failure_reads().into_iter().filter(|part| part.event == read);
    let parts = story.event(read).kind.reads();
    let cells: Vec<CellId> =
        named.filter_map(|named| Some(parts.get(named.part as usize)?.cell)).collect();
    let own = &story.trace().threads[writer.index()].events;
    let mut writes =
        own.iter().copied().filter(|id| cells.iter().any(|cell| story.access(*id, *cell).writes));
    let seen = writes.clone().rfind(|id| story.before(*id, read))?;
    let named = |id: EventId| format!("{} ({})", quoted(&story.subject(id)), at(story, id));
    let other = |id: EventId| {
        let mut others = cells.iter().filter(|cell| !story.access(seen, **cell).writes);
        others.any(|cell| story.access(id, *cell).writes)
    };
    let begins = format!("{} read {}", story.thread(read), named(read));
    let writer = story.thread(seen);
    let first = story.before_when_passing(seen, read) == Some(true);
    if let Some(missed) = writes.clone().find(|id| story.before(read, *id)) {
        let kept = first && story.before_when_passing(read, missed) == Some(true);
        let sentence =
            format!("{begins} between {writer}'s writes of {} and {}", named(seen), named(missed));
        return (other(missed) && !kept && story.in_one_call(seen, missed))
            .then(|| done(sentence, "reads-between-writes", &[read, seen, missed]));
    }
    // The run ended before the second write, which earlier rounds have.
    let round = writes
        .clone()
        .rfind(|id| *id != seen && story.event(*id).stack == story.event(seen).stack)?;
    let missed =
        writes.find(|id| other(*id) && story.event(*id).index > story.event(round).index)?;
    let pair =
        story.in_one_call(round, missed) && story.event(missed).index < story.event(seen).index;
    let halves = [seen, missed].map(|id| story.cells(id).first().copied());
    let [Some(one), Some(two)] = halves else { return None };
    let sentence =
        format!("{begins} when {writer} had written {} and not yet {}", named(seen), named(missed));
    (pair && !first && is_half_way(story, seen, [one, two]))
        .then(|| done(sentence, "half-written", &[read, seen]))
}

/// The reader saw one variable as one thread had written it and the other as a second thread had, which wrote it
/// between the first one's writes of both.
fn mixed(story: &Story<'_>, reads: Reads, own: EventId, other: EventId) -> Option<Found> {
    let ((mine, cell), (beside, companion)) = match reads.first.0 == own {
        true => (reads.first, reads.second),
        false => (reads.second, reads.first),
    };
    if story.source(mine, cell) != Some(other) {
        return None;
    }
    let last = story.source(beside, companion)?;
    let writer = story.event(last).thread;
    let others = [mine, other].map(|id| story.event(id).thread);
    if others.contains(&writer) {
        return None;
    }
    let earlier = story.accesses(writer, cell).iter().copied().rev();
    let mut earlier = earlier.filter(|id| story.event(*id).index < story.event(last).index);
    let first = earlier.find(|id| story.access(*id, cell).writes)?;
    let between = story.before(first, other) && story.before(other, last);
    let undone = story.before_when_passing(other, last) != Some(true)
        || story.before_when_passing(first, other) != Some(true);
    let telling = story.reads_otherwise(mine) && story.forward(first, last);
    if !(between && undone && telling) || story.always_before(first, other) {
        return None;
    }
    let named = |id: EventId| format!("{} ({})", quoted(&story.subject(id)), at(story, id));
    let sentence = format!(
        "{} wrote {} between {}'s writes of {} and {}",
        story.thread(other),
        named(other),
        story.thread(first),
        named(first),
        named(last)
    );
    Some(done(sentence, "mixed-writes", &[other, first, last]))
}

/// The read `own` of one of these cells, and reads of other variables by the same thread, that the
/// failure's condition names together with it.
fn compared(story: &Story<'_>, own: EventId, cells: &[CellId]) -> Vec<Reads> {
    let named = story.telling_reads();
    let cell_of = |event: EventId, part: u32| {
        story.event(event).kind.reads().get(part as usize).map(|read| read.cell)
    };
    let mine = named.iter().find_map(|read| {
        let cell = cell_of(read.event, read.part)?;
        (read.event == own && cells.contains(&cell)).then_some((own, cell))
    });
    let Some(mine) = mine else { return Vec::new() };
    let others = named.iter().filter_map(|read| {
        let cell = cell_of(read.event, read.part)?;
        let another = story.event(read.event).thread == story.event(own).thread
            && cell != mine.1
            && story.is_named(read.event)
            && !story.event(read.event).is_affair_of_library()
            && (!same_variable(&story.subject(read.event), &story.subject(own))
                || are_parts(story, own, read.event)
                || is_another_object(story, (own, mine.1), (read.event, cell))
                || is_another_round(story, own, read.event));
        another.then_some((read.event, cell))
    });
    // What the thread looked at to get to the read belongs to it, too: "nothing is left, so the
    // sum must be zero".
    // What it looked at in a round before led to that round.
    // Who counts itself misses whoever counts later, which says nothing.
    let checks = checks(story, own)
        .into_iter()
        .filter(|check| story.in_one_call(*check, own) && !counts_itself(story, *check));
    let checks = checks.flat_map(|check| {
        let cells = story.cells(check).into_iter();
        let reads = cells.filter(move |cell| is_last_read(story, check, own, *cell));
        let other = reads.filter(|cell| {
            *cell != mine.1 && !same_variable(&story.subject(check), &story.subject(own))
        });
        other.map(move |cell| (check, cell)).collect::<Vec<_>>()
    });
    let others = others.map(|other| {
        let in_order = story.event(own).index <= story.event(other.0).index;
        let (first, second) = if in_order { (mine, other) } else { (other, mine) };
        Reads { first, second, check: false }
    });
    others.chain(checks.map(|first| Reads { first, second: mine, check: true })).collect()
}

/// Are they two members of a library's one object, such as the two ends of a `std::vector`? The program has one name for both.
fn are_parts(story: &Story<'_>, one: EventId, other: EventId) -> bool {
    let [one, other] = [one, other].map(|id| story.trace().subject(story.event(id)));
    let Some((one, other)) = one.zip(other) else { return false };
    let outside = [one, other].map(outside_of_library);
    outside[0] == outside[1] && one != other && outside[0] != one && outside[1] != other
}

/// Does the thread write there what it computes from the read?
fn counts_itself(story: &Story<'_>, read: EventId) -> bool {
    story.cells(read).into_iter().any(|cell| {
        let own = story.accesses(story.event(read).thread, cell).iter().copied();
        let mut behind = own.filter(|id| story.event(*id).index >= story.event(read).index);
        let next = behind.find(|id| story.access(*id, cell).writes);
        next.is_some_and(|write| story.computes(read, write, cell))
    })
}

/// Is it the same member of two objects, as of two accounts whose balances are added up: does the program write the one
/// in other places than the other?
fn is_another_object(
    story: &Story<'_>,
    (one, cell): (EventId, CellId),
    (other, its): (EventId, CellId),
) -> bool {
    let writes = |cell: CellId| {
        let events = story.trace().events.iter().map(|event| event.id);
        let writes = events.filter(move |id| story.access(*id, cell).writes);
        writes.map(|id| story.event(id).site()).collect::<Vec<_>>()
    };
    let plain = |id: EventId| story.event(id).depth() == 0;
    let (first, second) = (writes(cell), writes(its));
    one != other
        && plain(one)
        && plain(other)
        && !first.is_empty()
        && !second.is_empty()
        && first.iter().all(|site| !second.contains(site))
}

/// Are both read at one place, in two rounds of a loop that goes through the elements of one array, say, or of one that a
/// library has for that?
fn is_another_round(story: &Story<'_>, one: EventId, other: EventId) -> bool {
    one != other && story.event(one).stack == story.event(other).stack
}

/// Is the event the last one before another of its thread that reads the cell?
fn is_last_read(story: &Story<'_>, read: EventId, end: EventId, cell: CellId) -> bool {
    let (first, last) = (story.event(read).index, story.event(end).index);
    let own = story.accesses(story.event(read).thread, cell).iter().copied();
    let later = own.filter(|id| (first + 1..last).contains(&story.event(*id).index));
    let mut later = later.filter(|id| story.access(*id, cell).reads);
    story.access(read, cell).reads && later.next().is_none()
}

/// The reads of the thread before this one that decide its branches between the two, the last first.
fn checks(story: &Story<'_>, own: EventId) -> Vec<EventId> {
    let event = story.event(own);
    let branches = story.trace().conditions.iter().filter(|condition| {
        condition.thread == event.thread
            && condition.kind == PathConditionKind::Branch
            && condition.position <= event.index
    });
    let active = |function: &str| event.stack.iter().any(|site| *site.function == *function);
    let mut checks: BTreeMap<EventId, bool> = BTreeMap::new();
    for branch in branches {
        for read in story.trace().reads_of(branch.expr) {
            let check = story.event(read.event);
            let led = check.thread == event.thread && check.index < event.index;
            if led && story.is_named(check.id) && !check.is_affair_of_library() {
                *checks.entry(check.id).or_default() |= active(&branch.site.function);
            }
        }
    }
    let mut checks: Vec<(EventId, bool)> = checks.into_iter().collect();
    checks.sort_by_key(|(id, _)| std::cmp::Reverse(story.event(*id).index));
    // What a function found that has returned may have led here, until something was looked at that is
    // still under way.
    let mut under_way = false;
    checks.retain(|(_, active)| {
        let leads = *active || !under_way;
        under_way |= *active;
        leads
    });
    checks.truncate(CHECKS);
    checks.into_iter().map(|(id, _)| id).collect()
}

/// Two writes of a thread that follow each other, of which the reads see one only.
fn torn(story: &Story<'_>, reads: Reads, writer: ThreadId) -> Option<Torn> {
    let events = story.trace().threads[writer.index()].events.iter().copied();
    let cells = [reads.first.1, reads.second.1];
    let writes = |id: EventId, cell: CellId| story.access(id, cell).writes;
    let own: Vec<EventId> =
        events.filter(|id| cells.iter().any(|cell| writes(*id, *cell))).collect();
    let sides = [(reads.first, reads.second), (reads.second, reads.first)];
    let rounds = is_another_round(story, reads.first.0, reads.second.0);
    // A check that saw what was new, and a read of what was old: it was announced too early.
    for (seen_by, missed_by) in sides.into_iter().skip(usize::from(reads.check)) {
        let saw = |id: EventId| writes(id, seen_by.1) && story.before(id, seen_by.0);
        let misses = |id: EventId| {
            let comes_late = writes(id, missed_by.1) && story.before(missed_by.0, id);
            comes_late && story.brings_news(id, missed_by.0, missed_by.1)
        };
        // Neighbours in the writer's order belong together, whichever comes first.
        let torn = own.windows(2).rev().find_map(|two| {
            let (a, b) = (two[0], two[1]);
            let both = |seen: EventId, missed: EventId| {
                let kept = || {
                    story.before_when_passing(seen, seen_by.0) == Some(true)
                        && story.before_when_passing(missed_by.0, missed) == Some(true)
                };
                // The last question goes through all that both threads do.
                let fits = saw(seen)
                    && misses(missed)
                    && !kept()
                    && story.forward(a, b)
                    && !story.set_up_once(seen, seen_by.0)
                    && (!rounds || story.fails_by_what_was_seen(seen_by, writer));
                fits.then_some((seen, missed))
            };
            both(a, b).or_else(|| both(b, a))
        });
        if let Some((seen, missed)) = torn {
            return Some(Torn { seen: (seen, seen_by.0), missed: (missed_by.0, Some(missed)) });
        }
        // The run ended before the thread wrote the other one.
        if let Some(&last) = own.last()
            && !reads.check
            && saw(last)
            && !writes(last, missed_by.1)
            && story.before_when_passing(last, seen_by.0) != Some(true)
            // What was read before the writer was there is nothing that it was half-way through.
            && !story.always_before(missed_by.0, last)
            && !belongs_to_another(story, last, cells)
            && (is_half_way(story, last, [seen_by.1, missed_by.1])
                || is_between_steps(story, last, missed_by))
        {
            return Some(Torn { seen: (last, seen_by.0), missed: (missed_by.0, None) });
        }
    }
    None
}

/// Was the thread still in the call in which it wrote one cell when the run ended, and had it not written the
/// other one just before?
fn is_half_way(story: &Story<'_>, write: EventId, cells: [CellId; 2]) -> bool {
    let event = story.event(write);
    let callers = event.stack.get(1..).unwrap_or_default();
    let in_call = |id: &EventId| {
        let stack = &story.event(*id).stack;
        stack.len() > callers.len() && stack[stack.len() - callers.len()..] == *callers
    };
    let own = &story.trace().threads[event.thread.index()].events;
    let (earlier, later) = own.split_at(event.index as usize);
    let [seen, missed] = cells;
    let mut before = earlier.iter().rev().copied().take_while(in_call);
    let mut next = |cell: CellId| before.find(|id| story.access(*id, cell).writes);
    let companion = next(missed).filter(|companion| {
        let earlier = next(seen).is_some_and(|first| story.forward(first, *companion));
        !earlier && story.forward(*companion, write)
    });
    later.iter().all(in_call) && companion.is_none()
}

/// Was the thread still in a call from which it had called what wrote the one variable, and from which another
/// call of the same function has then called what writes the other one? Each of the two may have a critical
/// section of its own.
fn is_between_steps(story: &Story<'_>, write: EventId, missed: (EventId, CellId)) -> bool {
    let event = story.event(write);
    let subject = story.subject(missed.0);
    let writes_it = |id: EventId| {
        let named = || last_member(&story.subject(id)) == last_member(&subject);
        story.access(id, missed.1).writes
            || (!story.event(id).kind.writes().is_empty() && story.is_named(id) && named())
    };
    (event.depth() + 1..event.stack.len()).any(|depth| {
        let own = Activation::of(story, write, depth);
        let later = &own.events[event.index as usize + 1..];
        let unfinished = later.iter().all(|id| own.has(story, *id))
            && !own.before(story, write).any(|id| story.access(id, missed.1).writes);
        let same_step = |other: &model::Event| {
            other.id != write && other.stack.get(..=depth) == event.stack.get(..=depth)
        };
        let mut rounds = story.trace().events.iter().filter(|other| same_step(other));
        unfinished
            && rounds.any(|other| {
                let round = Activation::of(story, other.id, depth);
                round.behind(story, other.id).any(writes_it)
            })
    })
}

/// A call of a function that an event lies in.
struct Activation<'s> {
    /// The thread's events.
    events: &'s [EventId],
    /// The function.
    function: &'s str,
    /// Where it was called.
    callers: &'s [Site],
}

impl<'s> Activation<'s> {
    /// The call so many frames above the innermost one.
    fn of(story: &Story<'s>, id: EventId, depth: usize) -> Self {
        let event = story.event(id);
        Self {
            events: &story.trace().threads[event.thread.index()].events,
            function: &event.stack[depth].function,
            callers: &event.stack[depth + 1..],
        }
    }

    /// The line of the function that an event is at or is called from. `None` outside of it.
    fn line(&self, story: &Story<'_>, id: EventId) -> Option<u32> {
        let stack = &story.event(id).stack;
        let inner = stack.len().checked_sub(self.callers.len())?;
        let frame = stack.get(inner.checked_sub(1)?)?;
        (frame.function == self.function && stack[inner..] == *self.callers).then_some(frame.line)
    }

    fn has(&self, story: &Story<'_>, id: EventId) -> bool {
        self.line(story, id).is_some()
    }

    /// The events before this one, the last first. A line further down is another call's.
    fn before<'t>(
        &'t self,
        story: &'t Story<'_>,
        id: EventId,
    ) -> impl Iterator<Item = EventId> + 't {
        let mut line = self.line(story, id);
        let earlier = self.events[..story.event(id).index as usize].iter().rev().copied();
        earlier.take_while(move |id| {
            let at = self.line(story, *id);
            let stays = at.is_some() && at <= line;
            line = at;
            stays
        })
    }

    /// The events behind this one. A line further up is another call's, or another round's.
    fn behind<'t>(
        &'t self,
        story: &'t Story<'_>,
        id: EventId,
    ) -> impl Iterator<Item = EventId> + 't {
        let mut line = self.line(story, id);
        let later = self.events[story.event(id).index as usize + 1..].iter().copied();
        later.take_while(move |id| {
            let at = self.line(story, *id);
            let stays = at.is_some() && at >= line;
            line = at;
            stays
        })
    }
}

/// Does a thread write one of the cells alone, and another thread, that may come later, the other one
/// alone? Then nobody was half-way through writing both.
fn belongs_to_another(story: &Story<'_>, write: EventId, cells: [CellId; 2]) -> bool {
    let writer = story.event(write).thread;
    let events = &story.trace().events;
    let writes = |thread: ThreadId, cell: CellId| {
        let own = events.iter().filter(move |event| event.thread == thread);
        own.map(|event| event.id).filter(move |id| story.access(*id, cell).writes)
    };
    let [mine, its] =
        if story.access(write, cells[0]).writes { cells } else { [cells[1], cells[0]] };
    (0..story.trace().threads.len()).map(ThreadId::from_index).any(|thread| {
        thread != writer
            && writes(thread, its).any(|id| !story.always_before(id, write))
            && !writes(thread, mine).any(|id| !story.always_before(id, write))
    })
}

pub(super) fn found(story: &Story<'_>, reads: Reads, torn: Torn) -> Found {
    let (first, second) = (reads.first.0, reads.second.0);
    let (seen, _) = torn.seen;
    let (reader, writer) = (story.thread(first), story.thread(seen));
    let named = |id: EventId| format!("{} ({})", quoted(&story.subject(id)), at(story, id));
    let both_reads = both_named(story, first, second);
    let Some(missed) = torn.missed.1 else {
        // Both are members of a library's object, which has one name.
        let written = match story.subject(first) == story.subject(second) {
            true => format!("a part of it ({})", at(story, seen)),
            false => format!("{} of the two", named(seen)),
        };
        let sentence =
            format!("{reader} read {both_reads} when {writer} had written only {written}");
        return done(sentence, "half-written", &[first, second, seen]);
    };
    let [one, two] = if story.event(seen).index < story.event(missed).index {
        [seen, missed]
    } else {
        [missed, seen]
    };
    let both_writes = both_named(story, one, two);
    let inside =
        |id: EventId, from: EventId, to: EventId| story.before(from, id) && story.before(id, to);
    // A descriptor is closed and used, not written and read.
    let closed = [one, two].into_iter().find(|id| is_descriptor(&story.subject(*id)));
    if let Some(closed) = closed.filter(|closed| inside(*closed, first, second))
        && is_descriptor(&story.subject(second))
    {
        let sentence = format!(
            "{} between {reader}'s look at {} and its use of {}",
            whole(story, closed),
            named(first),
            named(second)
        );
        return done(sentence, "writes-between-reads", &[one, two, first, second]);
    }
    if inside(one, first, second) && inside(two, first, second) {
        let sentence =
            format!("{writer} wrote {both_writes} between {reader}'s reads of {both_reads}");
        return done(sentence, "writes-between-reads", &[one, two, first, second]);
    }
    let is = |id: EventId| is_descriptor(&story.subject(id));
    if is(one) && is(second) && inside(second, one, two) && inside(first, one, two) {
        let sentence = format!(
            "{reader} looked at {} and used {} between {writer}'s closing it ({}) and its write of {}",
            named(first),
            named(second),
            at(story, one),
            named(two)
        );
        return done(sentence, "reads-between-writes", &[first, second, one, two]);
    }
    if inside(first, one, two) && inside(second, one, two) {
        let sentence =
            format!("{reader} read {both_reads} between {writer}'s writes of {both_writes}");
        return done(sentence, "reads-between-writes", &[first, second, one, two]);
    }
    let sentence = format!(
        "{reader}'s reads of {both_reads} and {writer}'s writes of {both_writes} overlapped: it saw \
         the new {} with the old {}",
        quoted(&story.subject(torn.seen.1)),
        quoted(&story.subject(torn.missed.0))
    );
    done(sentence, "overlap", &[first, second, one, two])
}

fn done(sentence: String, case: &'static str, events: &[EventId]) -> Found {
    Found { case: Some(case), ..Found::new(Pattern::SeveralVariables, sentence, events) }
}
