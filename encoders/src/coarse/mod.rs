//! Coarsening: a trace in which long stretches of a thread's accesses are one event.
//!
//! Two threads that add to one counter a hundred thousand times each have a read with as many sources for
//! each of the additions. But a schedule that loses one of them need not switch threads at every turn: few
//! switches are enough for most bugs. So the schedules are looked at that switch at few places: each thread is cut
//! before the first, the middle and the last time that it goes on from one place of the source to another one,
//! and what lies between two cuts is one event, which reads what it needs of others, and writes what
//! it leaves. What a read within returns follows from the event's own reads.
//!
//! Each schedule of the coarse trace is one of the whole trace that does the same
//! ([`Coarse::schedule`]); not the other way round. That there is none of some kind says nothing of
//! the whole trace, but that every one switches at other places, too.

mod build;
mod cuts;

use crate::lifetimes::Lifetimes;
use cuts::Cuts;
use model::{EventId, EventTrace, Schedule, VarId};

/// A trace of few events that stands for one of many.
#[derive(Clone, Debug, Default)]
pub struct Coarse {
    /// A trace like any other. Cells, threads and objects are those of the whole trace; events and variables
    /// are its own. It has no clock.
    pub trace: EventTrace,
    /// By event of the whole trace, the one that it is part of.
    images: Vec<EventId>,
    /// By event, its first one of the whole trace and how many they are; none for the locks that an event
    /// with whole critical sections holds.
    members: Vec<(EventId, u32)>,
    /// By variable, which one it is of the whole trace.
    variables: Vec<VarId>,
}

/// How many sources the reads of a trace have in all, at most: for each cell and each two threads that may run at the same time,
/// the reads of the one times the writes of the other. What an encoding takes grows with it.
#[must_use]
pub fn sources(trace: &EventTrace) -> u64 {
    let lifetimes = Lifetimes::of(trace);
    // By cell: thread, reads and writes.
    let mut counts: Vec<Vec<(usize, u64, u64)>> = vec![Vec::new(); trace.cells.len()];
    for thread in &trace.threads {
        for event in thread.events.iter().map(|id| trace.event(*id)) {
            let mut count = |cell: usize, reads: u64, writes: u64| {
                let Some(counts) = counts.get_mut(cell) else { return };
                match counts.last_mut().filter(|(of, ..)| *of == event.thread.index()) {
                    Some(found) => (found.1, found.2) = (found.1 + reads, found.2 + writes),
                    None => counts.push((event.thread.index(), reads, writes)),
                }
            };
            event.kind.reads().iter().for_each(|part| count(part.cell.index(), 1, 0));
            event.kind.writes().iter().for_each(|part| count(part.cell.index(), 0, 1));
        }
    }
    let of_cell = |counts: &Vec<(usize, u64, u64)>| {
        let writes = |reader: usize| -> u64 {
            let others = counts.iter().filter(|(thread, ..)| *thread != reader);
            let others = others.filter(|(thread, ..)| lifetimes.overlap(reader, *thread));
            others.map(|(.., writes)| writes).sum()
        };
        let reading = counts.iter().filter(|(_, reads, _)| *reads > 0);
        reading.map(|(thread, reads, _)| reads * writes(*thread)).sum::<u64>()
    };
    counts.iter().map(of_cell).sum()
}

/// The trace with everything between two cuts as one event. `rounds` is how often each way to go
/// on from one place to the next is a cut: the first time, the last, and between these. `None` for a trace that does not
/// make sense, and where nothing can be put together.
#[must_use]
pub fn coarsen(trace: &EventTrace, rounds: u32) -> Option<Coarse> {
    with_cuts(trace, &Cuts::of(trace, rounds, None))
}

/// The same, with cuts where a schedule switches threads besides, and before the events that it switches behind. The
/// schedule is one of the coarse trace.
#[must_use]
pub fn coarsen_near(trace: &EventTrace, rounds: u32, schedule: &Schedule) -> Option<Coarse> {
    with_cuts(trace, &Cuts::of(trace, rounds, Some(schedule)))
}

fn with_cuts(trace: &EventTrace, cuts: &Cuts) -> Option<Coarse> {
    let coarse = build::build(trace, cuts)?;
    (coarse.trace.events.len() < trace.events.len()).then_some(coarse)
}

impl Coarse {
    /// The event that one of the whole trace is part of.
    #[must_use]
    pub fn image(&self, whole: EventId) -> Option<EventId> {
        self.images.get(whole.index()).copied()
    }

    /// A variable in the whole trace.
    #[must_use]
    pub fn variable(&self, id: VarId) -> Option<VarId> {
        self.variables.get(id.index()).copied()
    }

    /// The schedule of the whole trace that does the same: all of each event at its place.
    #[must_use]
    pub fn schedule(&self, coarse: &Schedule) -> Schedule {
        let mut order = Vec::with_capacity(self.images.len());
        for id in &coarse.order {
            let Some((first, count)) = self.members.get(id.index()) else { continue };
            order.extend((first.0..first.0 + count).map(EventId));
        }
        Schedule { order }
    }

    /// The schedule that does the same as one of the whole trace, where that does all of each event at once.
    #[must_use]
    pub fn project(&self, whole: &Schedule) -> Option<Schedule> {
        let mut order: Vec<EventId> = Vec::with_capacity(self.members.len());
        let mut at = 0;
        while let Some(&id) = whole.order.get(at) {
            let image = self.image(id)?;
            let (first, count) = *self.members.get(image.index())?;
            let all = whole.order.get(at..at + count as usize)?;
            if !all.iter().map(|id| id.0).eq(first.0..first.0 + count) {
                return None;
            }
            // The locks that it holds meanwhile.
            let held =
                |id: EventId| self.members.get(id.index()).is_some_and(|(_, count)| *count == 0);
            let thread = self.trace.event(image).thread;
            let of_thread = |id: EventId| {
                self.trace.events.get(id.index()).is_some_and(|event| event.thread == thread)
            };
            let begins =
                (0..image.0).rev().map(EventId).take_while(|id| held(*id) && of_thread(*id));
            let begins = begins.filter(|id| self.is_acquisition(*id)).count() as u32;
            let end = image.0 + begins;
            order.extend((image.0 - begins..=end).map(EventId));
            at += count as usize;
        }
        (order.len() == self.trace.events.len()).then_some(Schedule { order })
    }

    fn is_acquisition(&self, id: EventId) -> bool {
        matches!(self.trace.event(id).kind, model::EventKind::Lock { .. })
    }
}
