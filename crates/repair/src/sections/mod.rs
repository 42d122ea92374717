//! Critical sections of a trace, and making them larger.

mod guard;

pub(crate) use guard::guard;

use model::{Awaited, EventId, EventKind, EventTrace, LockMode, ObjectId, Thread};
use std::collections::BTreeMap;

/// A critical section of one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) object: ObjectId,
    pub(crate) mode: LockMode,
    pub(crate) lock: EventId,
    pub(crate) unlock: EventId,
}

/// Sections of a trace: all of them thread by thread, in the order of their ends, and where each of them is.
pub(crate) struct Sections {
    all: Vec<Section>,
    threads: Vec<Begun>,
}

/// Those of one thread.
#[derive(Default)]
struct Begun {
    /// In the order of their beginnings, with their ends' places in the thread.
    sections: Vec<(Section, [u32; 2])>,
    /// Of every [`STRIDE`]th of them, those that are open where it begins.
    open: Vec<Vec<usize>>,
}

/// So many sections are looked through for those that an event lies in, besides those that it does lie in.
const STRIDE: usize = 64;

impl Begun {
    fn new(mut sections: Vec<(Section, [u32; 2])>) -> Self {
        sections.sort_by_key(|(_, [from, _])| *from);
        let (mut open, mut now): (Vec<Vec<usize>>, Vec<usize>) = (Vec::new(), Vec::new());
        for (number, (_, [from, _])) in sections.iter().enumerate() {
            if number % STRIDE == 0 {
                now.retain(|earlier| sections[*earlier].1[1] >= *from);
                open.push(now.clone());
            }
            now.push(number);
        }
        Self { sections, open }
    }

    /// How many began at a place or before.
    fn begun(&self, at: u32) -> usize {
        self.sections.partition_point(|(_, [from, _])| *from <= at)
    }

    /// Those that have something of a part of the thread, in the order of their beginnings.
    fn touching(&self, first: u32, last: u32) -> impl Iterator<Item = Section> + '_ {
        let stride = self.begun(first).saturating_sub(1) / STRIDE;
        let earlier = self.open.get(stride).into_iter().flatten().copied();
        let later = stride * STRIDE..self.begun(last);
        let some = earlier.chain(later).map(|number| &self.sections[number]);
        some.filter(move |(_, [_, to])| *to >= first).map(|(section, _)| *section)
    }
}

impl Sections {
    fn new(trace: &EventTrace, all: Vec<Section>) -> Self {
        let mut threads: Vec<Vec<(Section, [u32; 2])>> = vec![Vec::new(); trace.threads.len()];
        for section in &all {
            let [lock, unlock] = [section.lock, section.unlock].map(|id| trace.event(id));
            threads[lock.thread.index()].push((*section, [lock.index, unlock.index]));
        }
        Self { all, threads: threads.into_iter().map(Begun::new).collect() }
    }

    /// The sections that have something of a part of a thread, from its first to its last event, in the order of
    /// their beginnings.
    pub(crate) fn touching(
        &self,
        trace: &EventTrace,
        (first, last): (EventId, EventId),
    ) -> impl Iterator<Item = Section> + '_ {
        let own = self.threads.get(trace.event(first).thread.index());
        let places = [first, last].map(|id| trace.event(id).index);
        own.into_iter().flat_map(move |own| own.touching(places[0], places[1]))
    }

    /// The sections that an event lies in or bounds, outermost first.
    pub(crate) fn around(&self, trace: &EventTrace, id: EventId) -> Vec<Section> {
        self.touching(trace, (id, id)).collect()
    }

    /// The sections that the event's thread has left before it, the one that began last first.
    pub(crate) fn left_before(
        &self,
        trace: &EventTrace,
        id: EventId,
    ) -> impl Iterator<Item = Section> + '_ {
        let event = trace.event(id);
        let (own, index) = (self.threads.get(event.thread.index()), event.index);
        let begun = own.into_iter().flat_map(move |own| own.sections[..own.begun(index)].iter());
        begun.rev().filter(move |(_, [_, to])| *to < index).map(|(section, _)| *section)
    }
}

impl std::ops::Deref for Sections {
    type Target = [Section];

    fn deref(&self) -> &[Section] {
        &self.all
    }
}

impl IntoIterator for Sections {
    type Item = Section;
    type IntoIter = std::vec::IntoIter<Section>;

    fn into_iter(self) -> Self::IntoIter {
        self.all.into_iter()
    }
}

/// All critical sections.
pub(crate) fn sections(trace: &EventTrace) -> Sections {
    Sections::new(trace, of_locks(trace).collect())
}

/// From taking a unit of a semaphore to posting one: where a semaphore is used as a lock.
pub(crate) fn units(trace: &EventTrace) -> Sections {
    Sections::new(trace, of_semaphores(trace).collect())
}

/// [`sections`] and [`units`].
pub(crate) fn sections_and_units(trace: &EventTrace) -> Sections {
    Sections::new(trace, of_locks(trace).chain(of_semaphores(trace)).collect())
}

fn of_locks(trace: &EventTrace) -> impl Iterator<Item = Section> + '_ {
    trace.threads.iter().flat_map(move |thread| {
        let mut open: BTreeMap<ObjectId, (EventId, LockMode)> = BTreeMap::new();
        let ended = move |&id: &EventId| match trace.event(id).kind {
            EventKind::Lock { object, mode } => {
                open.entry(object).or_insert((id, mode));
                None
            }
            EventKind::Unlock { object, .. } => {
                let (lock, mode) = open.remove(&object)?;
                Some(Section { object, mode, lock, unlock: id })
            }
            _ => None,
        };
        thread.events.iter().filter_map(ended)
    })
}

fn of_semaphores(trace: &EventTrace) -> impl Iterator<Item = Section> + '_ {
    trace.threads.iter().flat_map(move |thread| {
        let mut taken: BTreeMap<ObjectId, Vec<EventId>> = BTreeMap::new();
        let ended = move |&id: &EventId| match trace.event(id).kind {
            EventKind::SemaphoreWait { object } => {
                taken.entry(object).or_default().push(id);
                None
            }
            EventKind::SemaphorePost { object } => {
                let lock = taken.get_mut(&object)?.pop()?;
                Some(Section { object, mode: LockMode::Exclusive, lock, unlock: id })
            }
            _ => None,
        };
        thread.events.iter().filter_map(ended)
    })
}

/// The units that a thread took and did not post, each with where it took it. A post is of the
/// unit that was taken last.
pub(crate) fn open_units(trace: &EventTrace, thread: &Thread) -> Vec<(ObjectId, EventId)> {
    let mut open: Vec<(ObjectId, EventId)> = Vec::new();
    for &id in &thread.events {
        match trace.event(id).kind {
            EventKind::SemaphoreWait { object } => open.push((object, id)),
            EventKind::SemaphorePost { object } => {
                if let Some(last) = open.iter().rposition(|(other, _)| *other == object) {
                    open.remove(last);
                }
            }
            _ => {}
        }
    }
    open
}

/// Does any line of the program take the lock, be it by a call of a library? What Rust's harness of tests holds around each of
/// them is nothing that a test could hold for longer.
pub(crate) fn is_taken_by_program(trace: &EventTrace, object: ObjectId) -> bool {
    let takes = |event: &&model::Event| matches!(event.kind, EventKind::Lock { object: taken, .. } if taken == object);
    let mut taken = trace.events.iter().filter(takes);
    taken.any(|event| !event.is_affair_of_library() && !event.site().is_in_library())
}

/// What the program calls a lock: as its acquisitions do, or else as the object is called.
pub(crate) fn lock_name(trace: &EventTrace, object: ObjectId) -> String {
    named(trace, object, |_| true)
}

/// What a lock is called where a thread takes it between two of its events; otherwise what the thread
/// calls it elsewhere, or anybody. One object has many names: `this->lock` in its own functions, and
/// `other->lock` in those of others.
pub(crate) fn lock_name_in(
    trace: &EventTrace,
    object: ObjectId,
    (first, last): (EventId, EventId),
) -> String {
    let (from, to) = (trace.event(first), trace.event(last));
    let own = |event: &model::Event| event.thread == from.thread;
    let inside =
        |event: &model::Event| own(event) && (from.index..=to.index).contains(&event.index);
    let takes = |event: &model::Event| taken(event) == Some(object);
    let is_some = |fits: &dyn Fn(&model::Event) -> bool| {
        trace.events.iter().any(|event| takes(event) && fits(event))
    };
    if is_some(&inside) {
        named(trace, object, inside)
    } else if is_some(&own) {
        named(trace, object, own)
    } else {
        lock_name(trace, object)
    }
}

/// The first name that is not one of a library's own, among those by which it is taken.
fn named(trace: &EventTrace, object: ObjectId, fits: impl Fn(&model::Event) -> bool) -> String {
    let takes = |event: &&model::Event| taken(event) == Some(object) && fits(event);
    let names = || trace.events.iter().filter(takes).filter_map(|event| trace.subject(event));
    let own = || trace.objects.get(object.index()).map(|object| object.name.as_str());
    let name = names().find(|name| !is_internal(name)).or_else(|| names().next()).or_else(own);
    name.map_or_else(|| object.to_string(), str::to_owned)
}

/// The lock or semaphore that an event takes.
pub(crate) fn taken(event: &model::Event) -> Option<ObjectId> {
    match event.kind {
        EventKind::Lock { object, .. } | EventKind::SemaphoreWait { object } => Some(object),
        _ => None,
    }
}

/// Is this a name that only an implementation uses?
pub(crate) fn is_internal(name: &str) -> bool {
    let last = name.rsplit(['.', '>', '*', '&']).next().unwrap_or(name);
    last.starts_with("__") || (last.starts_with('_') && last[1..].starts_with(char::is_uppercase))
}

/// Is this no lock of the program but what makes a routine run once? One call is then the beginning and
/// the end of each section.
pub(crate) fn is_once(trace: &EventTrace, all: &Sections, object: ObjectId) -> bool {
    let site = |id: EventId| trace.event(id).site();
    let mut own = all.iter().filter(|section| section.object == object).peekable();
    own.peek().is_some() && own.all(|section| site(section.lock) == site(section.unlock))
}

/// Is this release the beginning of a wait on a condition variable?
#[must_use]
pub fn begins_wait(trace: &EventTrace, unlock: EventId) -> bool {
    let event = trace.event(unlock);
    if !matches!(event.kind, EventKind::Unlock { .. }) {
        return false;
    }
    let later = trace.thread_of(unlock).events.iter().skip(event.index as usize + 1);
    // Who sleeps gives nothing back.
    let mut asleep = later
        .map(|id| &trace.event(*id).kind)
        .take_while(|kind| !matches!(kind, EventKind::Unlock { .. }));
    asleep.any(|kind| match kind {
        EventKind::Wake { began, .. } | EventKind::WaitTimedOut { began, .. } => *began == unlock,
        _ => false,
    }) || is_last_release(trace, unlock)
}

/// Does a wait on a condition variable take the lock again here? Nothing of the program comes between the two.
pub(crate) fn ends_wait(trace: &EventTrace, lock: EventId) -> bool {
    let Some(before) = trace.event(lock).index.checked_sub(1) else { return false };
    let before = trace.thread_of(lock).events.get(before as usize);
    before.is_some_and(|id| {
        matches!(trace.event(*id).kind, EventKind::Wake { .. } | EventKind::WaitTimedOut { .. })
    })
}

/// Does the thread hold the lock from one of its events to another as it is, but for waits?
pub(crate) fn is_held(
    trace: &EventTrace,
    all: &Sections,
    lock: ObjectId,
    first: EventId,
    last: EventId,
) -> bool {
    let index = |id: EventId| trace.event(id).index;
    let own = all.touching(trace, (first, last)).filter(|section| section.object == lock);
    let own: Vec<Section> = own.collect();
    let begins = own.first().is_some_and(|section| index(section.lock) <= index(first));
    // What a thread held to its end, it held where it failed as well.
    let to_the_end = |unlock: EventId| {
        matches!(trace.event(unlock).kind, EventKind::Unlock { synthetic: true, .. })
    };
    let ends = own
        .last()
        .is_some_and(|section| index(section.unlock) >= index(last) || to_the_end(section.unlock));
    begins && ends && own.windows(2).all(|pair| begins_wait(trace, pair[0].unlock))
}

/// Is this the release of a wait that did not come to an end?
fn is_last_release(trace: &EventTrace, unlock: EventId) -> bool {
    let event = trace.event(unlock);
    let next = trace.thread_of(unlock).events.get(event.index as usize + 1);
    next.is_some_and(|id| {
        matches!(trace.event(*id).kind, EventKind::Block { on: Awaited::Signal { .. } })
    })
}

/// Is there nothing behind the event that the thread's code did?
pub(crate) fn is_end(trace: &EventTrace, id: EventId) -> bool {
    let event = trace.event(id);
    let mut later = trace.thread_of(id).events.iter().skip(event.index as usize + 1);
    later.all(|id| matches!(trace.event(*id).kind, EventKind::Unlock { synthetic: true, .. }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use encoders::dsl::parse;
    use model::Site;
    use std::fmt::Write;

    /// Many sections, some within others, some that overlap, and a long one around them.
    fn nested() -> EventTrace {
        let mut text = String::from("a: lock outer\n");
        for round in 0..3 * STRIDE {
            let others = ["m", "n"];
            let (first, last) = (others[round % 2], others[(round + 1) % 2]);
            write!(text, "a: lock {first}\na: W x {round}\na: lock {last}\na: unlock {first}\na: W y {round}\n")
                .expect("text");
            writeln!(text, "a: unlock {last}\nb: lock m\nb: W x {round}\nb: unlock m")
                .expect("text");
        }
        parse(&format!("{text}a: unlock outer\na: W x 1\n")).expect("the text is a trace").trace
    }

    /// Rust's harness of tests holds a lock of its own around each test.
    #[test]
    fn a_lock_of_a_library_alone_is_not_taken_by_the_program() {
        let mut trace = parse("a: lock m\na: W x 1\na: unlock m\n").expect("a trace").trace;
        let lock = trace.events.iter().find(|event| taken(event).is_some()).expect("a lock");
        let (id, object) = (lock.id, taken(lock).expect("its object"));
        let place = |file: &str| Site { file: file.into(), ..Site::default() };
        let library = place("/rustc/1/library/core/src/sync/atomic.rs");
        trace.events[id.index()].stack = [library.clone(), place("bank.rs")].into();
        assert!(is_taken_by_program(&trace, object), "by a call of the library");
        trace.events[id.index()].stack = [library].into();
        assert!(!is_taken_by_program(&trace, object));
    }

    #[test]
    fn the_sections_around_each_event_are_those_that_it_lies_in() {
        let trace = nested();
        let all = sections(&trace);
        let index = |id: EventId| trace.event(id).index;
        for event in &trace.events {
            let own = all.iter().copied().filter(|section| {
                trace.event(section.lock).thread == event.thread
                    && (index(section.lock)..=index(section.unlock)).contains(&event.index)
            });
            let mut own: Vec<Section> = own.collect();
            own.sort_by_key(|section| index(section.lock));
            assert_eq!(all.around(&trace, event.id), own, "{event:?}");
            let left = all.iter().copied().filter(|section| {
                trace.event(section.lock).thread == event.thread
                    && index(section.unlock) < event.index
            });
            let mut left: Vec<Section> = left.collect();
            left.sort_by_key(|section| std::cmp::Reverse(index(section.lock)));
            assert_eq!(all.left_before(&trace, event.id).collect::<Vec<_>>(), left, "{event:?}");
        }
    }

    #[test]
    fn a_part_of_a_thread_touches_what_ends_or_begins_in_it() {
        let trace = nested();
        let all = sections(&trace);
        let index = |id: EventId| trace.event(id).index;
        for thread in &trace.threads {
            for part in thread.events.windows(STRIDE).step_by(7) {
                let (first, last) = (part[0], part[STRIDE - 1]);
                let touched =
                    all.touching(&trace, (first, last)).map(|section| index(section.lock));
                let own = all.iter().filter(|section| {
                    trace.event(section.lock).thread == thread.id
                        && index(section.lock) <= index(last)
                        && index(section.unlock) >= index(first)
                });
                let mut own: Vec<u32> = own.map(|section| index(section.lock)).collect();
                own.sort_unstable();
                assert_eq!(touched.collect::<Vec<_>>(), own);
            }
        }
    }

    /// Who fails under a lock still has it.
    #[test]
    fn what_is_held_to_the_end_is_held_where_the_thread_fails() {
        let text =
            "a: [take] lock m\na: [look] R done -> d\na: [kept] unlock m\na: [bad] fail d == 0";
        let mut parsed = parse(text).expect("the text is a trace");
        let [take, kept, bad] = ["take", "kept", "bad"].map(|label| parsed.event(label));
        let lock = parsed.trace.event(take).kind.object().expect("it takes a lock");
        let held = |trace: &EventTrace| is_held(trace, &sections(trace), lock, take, bad);
        assert!(!held(&parsed.trace), "it has been given back");
        if let EventKind::Unlock { synthetic, .. } = &mut parsed.trace.events[kept.index()].kind {
            *synthetic = true;
        }
        assert!(held(&parsed.trace));
    }
}
