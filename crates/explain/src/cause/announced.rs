//! A thread said that something is there before it was.

use super::story::Story;
use super::words::{at, did, last_member, place, quoted, same_variable};
use super::{CauseEvent, Found, Pattern, posted, sections};
use model::{CellId, Event, EventId, EventKind, PathConditionKind, ReadRef, WriteSource};

/// For a read that came before another thread's write: did the reader go there because of something
/// that the writer had written before?
pub(super) fn find(story: &Story<'_>, read: EventId, write: EventId) -> Option<Found> {
    let (announcement, look) = announcement(story, read, write)?;
    Some(told(story, [announcement, write, look, read]))
}

fn told(story: &Story<'_>, events: [EventId; 4]) -> Found {
    let [announcement, write, look, read] = events;
    let sentence = format!(
        "{} {} {} ({}) before it wrote {} ({}), and {}, which saw the one ({}), read the other ({}) \
         in between",
        story.thread(write),
        did(story.event(announcement)),
        quoted(&story.subject(announcement)),
        at(story, announcement),
        quoted(&story.subject(write)),
        at(story, write),
        story.thread(read),
        at(story, look),
        at(story, read)
    );
    Found { case: Some("announced-too-early"), ..Found::new(Pattern::Order, sentence, &events) }
}

/// As [`find`], of a write that only the passing run got to.
pub(super) fn find_late(story: &Story<'_>, read: EventId, write: EventId) -> Option<Found> {
    let written = story.look_up(CauseEvent::Passing(write)).1?;
    let name = story.name(CauseEvent::Passing(write))?;
    let told = posted::done_before(story, write).into_iter().filter(|said| {
        !same_variable(&story.subject(*said), &name)
            && story.event(*said).thread != story.event(read).thread
            && !story.site(*said).is_in_library()
            // How many units a library's semaphore has left says nothing of the program's data.
            && !story.event(*said).is_affair_of_library()
    });
    let (said, look) =
        told.into_iter().find_map(|said| Some((said, seen_by(story, said, read)?)))?;
    let reader = story.event(read);
    let sentence = format!(
        "{} {} {} ({}) before it {} {} ({}), and {}, which saw the one ({}), {}",
        story.thread(said),
        did(story.event(said)),
        quoted(&story.subject(said)),
        at(story, said),
        did(written),
        quoted(&name),
        place(written.site()),
        story.thread(read),
        at(story, look),
        match reader.kind {
            EventKind::Failure => format!("failed in between ({})", at(story, read)),
            _ => format!("read the other ({}) in between", at(story, read)),
        }
    );
    let [said, look, read] = [said, look, read].map(CauseEvent::Failing);
    let events = [said, CauseEvent::Passing(write), look, read];
    let case = Some("announced-too-early");
    Some(Found { case, ..Found::of_both(Pattern::Order, sentence, &events) })
}

/// Where the thread of an event saw, on its way there, what another one wrote, and went by it.
fn seen_by(story: &Story<'_>, said: EventId, end: EventId) -> Option<EventId> {
    let sources = &story.failing.evaluation.reads_from;
    let looks = story.decided_before(end, &[PathConditionKind::Branch]).into_iter();
    let mut looks = looks.flat_map(|branch| story.trace().reads_of(branch.expr));
    let look = looks.find(|look| {
        sources.get(look) == Some(&WriteSource::Write(said))
            && story.event(look.event).index < story.event(end).index
            && story.is_named(look.event)
            && !story.always_before(said, look.event)
    })?;
    Some(look.event)
}

/// As [`find`], where the writer had written something else by then that the reader saw.
pub(super) fn find_after(
    story: &Story<'_>,
    seen: EventId,
    read: EventId,
    write: EventId,
) -> Option<Found> {
    let (announcement, _) = announcement(story, read, write)?;
    let later = story.event(announcement).index > story.event(seen).index;
    later.then(|| find(story, read, write)).flatten()
}

/// For a read that came after another thread's write in a critical section that was not over: had the writer said
/// in that section that something is there, and the reader seen it without the lock?
pub(super) fn find_unfinished(story: &Story<'_>, read: EventId, write: EventId) -> Option<Found> {
    let lock = sections::open_at(story, write, read)?;
    let (reader, writer) = (story.event(read), story.event(write));
    let taken = story.event(lock);
    let own = &story.trace().threads[reader.thread.index()].events;
    let earlier = own[..reader.index as usize].iter().rev().copied();
    let seen = |look: EventId| {
        let sources = story.cells(look).into_iter().filter_map(|cell| story.source(look, cell));
        let mut sources = sources.map(|source| story.event(source));
        sources.find(|source| {
            source.thread == writer.thread
                && (taken.index + 1..writer.index).contains(&source.index)
                && !same_variable(&story.subject(source.id), &story.subject(write))
        })
    };
    let unprotected = |look: &EventId| {
        let held = sections::held(story, *look);
        !held.iter().any(|(object, _)| taken.kind.object() == Some(*object))
    };
    let mut looks = earlier.filter(|look| story.is_named(*look) && unprotected(look));
    let (look, said) = looks.find_map(|look| Some((look, seen(look)?.id)))?;
    let sentence = format!(
        "{} {} {} ({}) before it was done with {} ({}), and {}, which saw the one ({}), read the other ({}) \
         in between",
        story.thread(write),
        did(story.event(said)),
        quoted(&story.subject(said)),
        at(story, said),
        quoted(&story.subject(write)),
        at(story, write),
        story.thread(read),
        at(story, look),
        at(story, read)
    );
    let events = [said, write, look, read];
    Some(Found {
        case: Some("announced-too-early"),
        ..Found::new(Pattern::Order, sentence, &events)
    })
}

/// So many events behind what was said, and behind the read that saw it, are looked at.
const LATER: usize = 256;

/// For a read that saw another thread's write: had the writer said by that write that something is there which it wrote
/// only then, and did the reader read that before it was written, and go by it?
pub(super) fn find_published(story: &Story<'_>, look: EventId, said: EventId) -> Option<Found> {
    let saw = story.cells(look).into_iter().any(|cell| story.source(look, cell) == Some(said));
    // How a library lets threads wait for each other says nothing of the program's data.
    let own = |id: EventId| story.event(id).is_affair_of_library();
    if !saw || !story.is_named(look) || own(look) || own(said) || story.always_before(said, look) {
        return None;
    }
    let behind = |id: EventId| {
        let event = story.event(id);
        let own = &story.trace().threads[event.thread.index()].events;
        own.iter().copied().skip(event.index as usize + 1).take(LATER)
    };
    let named = story.failure_reads();
    let counts = |read: EventId, cell: CellId| {
        story.decides_something(read, cell) || named.iter().any(|other| other.event == read)
    };
    let writes = behind(said).filter(|id| {
        story.in_one_call(said, *id)
            && story.forward(said, *id)
            && story.site(*id) != story.site(said)
            && !own(*id)
            && !same_variable(&story.subject(*id), &story.subject(said))
    });
    let (write, read) = writes
        .flat_map(|id| {
            let cells = story.event(id).kind.writes().iter().map(|part| part.cell);
            cells.map(move |cell| (id, cell)).collect::<Vec<_>>()
        })
        .find_map(|(write, cell)| {
            let mut reads = behind(look).filter(|id| {
                story.access(*id, cell).reads
                    && story.before(*id, write)
                    && !story.always_before(*id, write)
                    && story.brings_news(write, *id, cell)
                    && counts(*id, cell)
            });
            reads.next().map(|read| (write, read))
        })?;
    Some(told(story, [said, write, look, read]))
}

/// The writer's event that the reader went on because of, and the read that saw it.
fn announcement(story: &Story<'_>, read: EventId, write: EventId) -> Option<(EventId, EventId)> {
    let (reader, writer) = (story.event(read), story.event(write));
    let reads = story.branched_on(reader.thread, reader.index);
    let sources = &story.failing.evaluation.reads_from;
    let source = |look: &ReadRef| match sources.get(look) {
        Some(WriteSource::Write(source)) => Some(*source),
        _ => None,
    };
    let own = (0u32..).zip(reader.kind.reads()).map(|(part, _)| ReadRef { event: read, part });
    let seen: Vec<EventId> = own.filter_map(|part| source(&part)).collect();
    let since = |announcement: EventId| {
        let mut seen = seen.iter().map(|id| story.event(*id));
        seen.any(|seen| {
            seen.thread == writer.thread && seen.index > story.event(announcement).index
        })
    };
    // What was left there behind it has come to the reader already, which may have taken it away since.
    let came: Vec<u32> = story
        .cells(read)
        .into_iter()
        .flat_map(|cell| {
            let own = story.accesses(reader.thread, cell).iter().copied();
            own.filter(|id| story.event(*id).index < reader.index)
                .filter_map(move |id| story.source(id, cell))
                .map(|id| story.event(id))
                .filter(|source| source.thread == writer.thread && source.index < writer.index)
                .map(|source| source.index)
                .collect::<Vec<_>>()
        })
        .collect();
    let came_since =
        |announcement: EventId| came.iter().any(|index| *index > story.event(announcement).index);
    // What was written and then said, as it should be, before the thread came to its next round: the reader has seen it, or
    // another thread has written there since.
    let round_before = |announcement: EventId| {
        let mut seen = seen.iter().map(|id| story.event(*id));
        let index = story.event(announcement).index;
        !story.forward(announcement, write)
            && (seen.any(|seen| seen.thread == writer.thread && seen.index < index)
                || wrote_there_before(story, announcement, write))
    };
    // Where the reader has itself left there what it reads, since it saw what was said, it has done its part already.
    let answered = |look: EventId| {
        let mut seen = seen.iter().map(|id| story.event(*id));
        seen.any(|seen| seen.thread == reader.thread && seen.index > story.event(look).index)
    };
    // What came to the reader by these two lines before, in an earlier round, had been said of what came then.
    let handed_over = |announcement: EventId, look: EventId| {
        let own = &story.trace().threads[reader.thread.index()].events;
        let earlier = own[..story.event(look).index as usize].iter().copied();
        let alike = earlier.filter(|id| story.event(*id).stack == reader.stack);
        let mut sources = alike.flat_map(|id| {
            let cells = story.cells(id).into_iter();
            cells.filter_map(move |cell| story.source(id, cell)).collect::<Vec<_>>()
        });
        let since = story.event(announcement).index + 1..writer.index;
        sources.any(|id| {
            let source = story.event(id);
            source.thread == writer.thread
                && source.stack == writer.stack
                && since.contains(&source.index)
        })
    };
    let announcements = reads.filter_map(|look| {
        let announcement = story.event(source(&look)?);
        let fits = announcement.thread == writer.thread
            && announcement.index < writer.index
            && story.event(look.event).index < reader.index
            && story.is_named(look.event)
            // What a library does outside of any call of the program's, or a package so that threads can wait, says
            // nothing of the program's data.
            && !announcement.site().is_in_library()
            && !announcement.only_lets_threads_wait()
            && !story.event(look.event).only_lets_threads_wait()
            && !only_counts(story.event(look.event))
            && !gives_back(story, announcement.id, look.event)
            // What the reader saw was not written after it was said.
            && !since(announcement.id)
            && !came_since(announcement.id)
            && !round_before(announcement.id)
            && !answered(look.event)
            && !handed_over(announcement.id, look.event)
            && !is_step_before(story, announcement.id, write)
            && (!same_variable(&story.subject(announcement.id), &story.subject(write))
                || says_that_there_is(story, announcement.id, write))
            // Nobody else was there yet when it was said.
            && !story.always_before(announcement.id, look.event)
            // What the thread said in an earlier round was about something else.
            && announcement.stack.last().map(|site| &site.function)
                == writer.stack.last().map(|site| &site.function);
        fits.then_some((announcement.id, look.event))
    });
    // What was said in the same call as the write comes before what was said in its callers, or in a call before.
    announcements.max_by_key(|(announcement, look)| {
        let together = story.in_one_call(*announcement, write);
        let calls =
            if together { callers_in_common(story.event(*announcement), writer) } else { 0 };
        (together, calls, story.event(*look).index)
    })
}

/// Had the thread come by the line of its write before it said so, and written the same place?
fn wrote_there_before(story: &Story<'_>, said: EventId, write: EventId) -> bool {
    let (said, writer) = (story.event(said), story.event(write));
    story.cells(write).into_iter().any(|cell| {
        let own = story.accesses(writer.thread, cell).iter().copied().map(|id| story.event(id));
        let mut earlier = own.filter(|event| event.index < said.index);
        earlier.any(|event| event.stack == writer.stack && story.access(event.id, cell).writes)
    })
}

/// Does a shared pointer count there how many there are? What it finds says no more than that.
fn only_counts(look: &Event) -> bool {
    look.counts_references() && !look.asks_whether_it_is_there()
}

/// Was the first done at the same place of the program, in a section of a lock that is over by the second, which a
/// section of that lock does as well? Then it was the step before, which left things as they should be.
fn is_step_before(story: &Story<'_>, first: EventId, second: EventId) -> bool {
    let earlier = sections::held(story, first);
    let mut sections = sections::held(story, second).into_iter();
    story.site(first) == story.site(second)
        && sections.any(|(lock, taken)| {
            earlier.iter().any(|(other, before)| *other == lock && *before != taken)
        })
}

/// Does the thread give back there what it took by an atomic update before, as the reader takes it by its look? A lock of
/// the program's own that is given back says no more of what the thread writes later than any other lock does.
fn gives_back(story: &Story<'_>, announcement: EventId, look: EventId) -> bool {
    let (thread, index) = (story.event(announcement).thread, story.event(announcement).index);
    story.common_cells(announcement, look).into_iter().any(|cell| {
        let access = |id: EventId| story.access(id, cell);
        let takes = |id: EventId| access(id).reads && access(id).writes;
        let own = story.accesses(thread, cell).iter().copied().rev();
        let mut earlier = own.filter(|id| story.event(*id).index < index && access(*id).writes);
        takes(look)
            && earlier
                .next()
                .is_some_and(|took| sections::is_own_lock(story, took, announcement, cell))
    })
}

/// Is it written there that an optional value is there, and elsewhere what it holds? Both are the variable to the program.
fn says_that_there_is(story: &Story<'_>, announcement: EventId, write: EventId) -> bool {
    let member = |id: EventId| story.trace().subject(story.event(id)).map(last_member);
    let says = |id: EventId| matches!(member(id).as_deref(), Some("_M_engaged" | "__engaged_"));
    says(announcement) && !says(write) && story.site(announcement) != story.site(write)
}

/// How many calls both events of a thread are in.
fn callers_in_common(one: &Event, other: &Event) -> usize {
    let both = one.stack.iter().rev().zip(other.stack.iter().rev());
    let callers = one.stack.len().min(other.stack.len()).saturating_sub(1);
    both.take(callers).take_while(|(a, b)| a == b).count()
}
