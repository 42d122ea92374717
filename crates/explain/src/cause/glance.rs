//! A thread looked too early whether another one was at work, saw that it was not (or that something of
//! its was still there), and went on where it should have waited.
//!
//! That it then read, or failed, before the other thread's write is only what follows: with what that
//! thread wrote between the look and its work, the look would have led elsewhere.

use super::order::followed;
use super::story::Story;
use super::words::{at, did, same_variable, told};
use super::{CauseEvent, Found, Pattern};
use model::{CellId, EventId, EventKind, PathCondition, PathConditionKind, ReadRef, VarId};

/// So many branches before the read are looked at, the nearest first.
const BRANCHES: usize = 12;

/// A value that a thread went by on its way.
#[derive(Clone, Copy)]
struct Look<'t> {
    read: ReadRef,
    var: VarId,
    cell: CellId,
    condition: &'t PathCondition,
}

/// For an event that came before another thread's write, both in the failing run.
pub(super) fn find(story: &Story<'_>, read: EventId, write: EventId) -> Option<Found> {
    let writer = story.event(write);
    looks(story, read, &story.subject(write)).find_map(|look| {
        let own = story.accesses(writer.thread, look.cell).iter().copied();
        let mut own = own.rev().filter(|id| {
            story.event(*id).index < writer.index && story.access(*id, look.cell).writes
        });
        // What holds while the thread does its work.
        let sign = own.next()?;
        let led_here = story.holds_with(look.condition, look.var, look.cell, sign) == Some(false);
        let fits = led_here
            && story.before(look.read.event, sign)
            && !story.always_before(look.read.event, sign);
        let events = [look.read.event, sign, read, write].map(CauseEvent::Failing);
        fits.then(|| sentence(story, events))
    })
}

/// The same of a write that only the passing run got to.
pub(super) fn find_late(story: &Story<'_>, read: EventId, write: EventId) -> Option<Found> {
    let subject = story.name(CauseEvent::Passing(write))?;
    looks(story, read, &subject).find_map(|look| {
        let there = story.sign_when_passing(look.read, write)?;
        let led_here = story.holds_if(look.condition, look.var, there.value) == Some(false);
        let sign = match there.failing {
            Some(sign) => story.before(look.read.event, sign).then_some(CauseEvent::Failing(sign)),
            None => Some(CauseEvent::Passing(there.event)),
        };
        let sign = sign.filter(|_| led_here)?;
        let [look, read] = [look.read.event, read].map(CauseEvent::Failing);
        Some(sentence(story, [look, sign, read, CauseEvent::Passing(write)]))
    })
}

/// What the thread went by on its way to the event, the last first; of what it looked at again only the
/// last look.
fn looks<'t>(
    story: &Story<'t>,
    read: EventId,
    subject: &str,
) -> impl Iterator<Item = Look<'t>> + use<'t> {
    let trace = story.trace();
    let reader = story.event(read);
    let conditions = story.decided_before(read, &[PathConditionKind::Branch]);
    let mut nearest: Vec<Look<'t>> = Vec::new();
    for condition in conditions.into_iter().take(BRANCHES) {
        for read in trace.reads_of(condition.expr) {
            let event = story.event(read.event);
            let Some(part) = event.kind.reads().get(read.part as usize) else { continue };
            let known = |other: &Look<'_>| other.cell == part.cell;
            // How much room a container has is the library's affair, and who counts does not look whether another one
            // is at work.
            let inside = event.depth() > 0 && condition.site.is_in_library();
            let counts = || {
                let own = story.accesses(event.thread, part.cell).iter().copied();
                let next = own.into_iter().find(|id| {
                    story.event(*id).index >= event.index && story.access(*id, part.cell).writes
                });
                next.is_some_and(|next| story.feeds(event.id, next, part.cell))
            };
            let usable = event.thread == reader.thread
                && event.index < reader.index
                && story.is_named(read.event)
                && !event.is_affair_of_library()
                && !same_variable(&story.subject(read.event), subject)
                && !inside
                && !counts();
            if usable && !nearest.iter().any(known) {
                nearest.push(Look { read, var: part.var, cell: part.cell, condition });
            }
        }
    }
    nearest.into_iter()
}

fn sentence(story: &Story<'_>, events: [CauseEvent; 4]) -> Found {
    let [look, sign, read, write] = events;
    let mut sentence = format!("{} before {}", told(story, look), followed(story, sign, look));
    let (_, event) = story.look_up(read);
    let CauseEvent::Failing(id) = read else { return Found::late(sentence, &events) };
    let place = at(story, id);
    let failed = event.is_some_and(|event| matches!(event.kind, EventKind::Failure));
    if failed {
        sentence += &format!(", and failed ({place}) before {}", told(story, write));
    } else {
        let subject = super::words::quoted(&story.subject(id));
        let act = did(story.event(id));
        sentence +=
            &format!(", and so {act} {subject} ({place}) before {}", followed(story, write, read));
    }
    Found::late(sentence, &events)
}

impl Found {
    /// Events of which some are of the passing run only.
    fn late(sentence: String, events: &[CauseEvent]) -> Self {
        let case = Some("looked-too-early");
        Self { case, ..Self::of_both(Pattern::Order, sentence, events) }
    }
}
