//! The cause in one sentence: what happened between what, from the orders of the root cause and
//! the difference between the failing and the alternate schedule.
//!
//! One file per family of patterns. Each looks for its pattern and answers `None` when it is not
//! there; [`cause`] asks them in turn. A pattern is only named when the schedules show it: its
//! events are in the order that the sentence says, and in the alternate they are not. Where no
//! pattern fits, the orders themselves are the sentence.
//!
//! The patterns are those of the literature: the four unserialisable cases of two accesses of one
//! thread to one variable and another thread's access between them (Lu and others, AVIO), their
//! generalisation to two variables that belong together (MUVI), order violations, missed wake-ups,
//! and circles of threads that wait for each other.

mod accesses;
mod announced;
mod atomicity;
mod came_back;
mod container;
mod counted;
mod crossed;
mod deadlock;
mod deciding;
mod decision;
mod fingerprint;
mod glance;
mod late_write;
mod lifetime;
mod locks;
mod lost;
mod met;
mod misdirected;
mod namesakes;
mod once;
mod order;
mod orders;
mod overlaid;
mod overtaken;
mod package_locks;
mod parted;
mod posted;
mod resumed;
mod rounds;
mod same_step;
mod sections;
mod several;
mod snapshot;
mod stale;
mod story;
mod taken;
mod unasked;
mod unseen;
mod unsignalled;
mod vouched;
mod wakeup;
mod woken;
mod words;

use crate::across::{Across, Flipped, Side};
use crate::alternates::Alternate;
use crate::dsp::Dsp;
use crate::root_cause::RootCause;
use model::{CellId, EventId};
use story::{Pair, Story};

pub use late_write::late_write;
pub use model::names::outside_of_library;
pub use words::{last_member, same_variable};

/// The family that a cause belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Pattern {
    /// Another thread came between two accesses of one thread to one variable.
    Atomicity,
    /// Accesses of two threads to variables that belong together got mixed.
    SeveralVariables,
    /// One thread did something before, or after, another thread's step that it relies on.
    Order,
    /// A signal came when the thread that it was for did not wait yet, or woke another one.
    MissedWakeup,
    /// Threads wait for each other.
    Deadlock,
    /// An object was used after it had been freed.
    UseAfterFree,
    /// An object was freed twice.
    DoubleFree,
    /// A write was seen late: the processor kept it in its store buffer while it read on.
    LateWrite,
    /// None of these: the orders themselves.
    Orders,
    /// Every schedule along the recorded paths fails.
    EverySchedule,
}

impl Pattern {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Atomicity,
        Self::SeveralVariables,
        Self::Order,
        Self::MissedWakeup,
        Self::Deadlock,
        Self::UseAfterFree,
        Self::DoubleFree,
        Self::LateWrite,
        Self::Orders,
        Self::EverySchedule,
    ];

    /// The name in the JSON answer.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Atomicity => "atomicity",
            Self::SeveralVariables => "multi-variable-atomicity",
            Self::Order => "order",
            Self::MissedWakeup => "missed-wakeup",
            Self::Deadlock => "deadlock",
            Self::UseAfterFree => "use-after-free",
            Self::DoubleFree => "double-free",
            Self::LateWrite => "late-write",
            Self::Orders => "orders",
            Self::EverySchedule => "every-schedule",
        }
    }
}

/// An event of the failing run, or one that only the passing run has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CauseEvent {
    /// By the failing run's identifier.
    Failing(EventId),
    /// By the passing run's own identifier.
    Passing(EventId),
}

/// Why the run failed, for people and for telling whether two runs failed for the same reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// The family.
    pub pattern: Pattern,
    /// The member of the family, where it has several, such as `read-write-read`.
    pub case: Option<&'static str>,
    /// One sentence without a full stop; names as in the source.
    pub sentence: String,
    /// The variables, locks, condition variables and objects that it is about, without repetition.
    pub variables: Vec<String>,
    /// The events that the sentence names, in its order.
    pub events: Vec<CauseEvent>,
    /// What each of the events is about, as the sentence calls it; empty where there is nothing.
    pub names: Vec<String>,
    /// The same for the same cause in another run: 16 hexadecimal digits over the pattern, the
    /// functions and kinds of the events, how far apart their lines are within a function, and
    /// the variables. Nothing in it is an address, a thread's name or an event's number.
    pub fingerprint: String,
}

/// What the failing run is compared with.
#[derive(Clone, Copy, Debug)]
pub enum Passing<'a> {
    /// Nothing: no schedule is known that passes.
    None,
    /// A schedule along the same paths.
    SamePaths {
        /// The schedule.
        alternate: &'a Alternate,
        /// What it differs in.
        dsp: &'a Dsp,
    },
    /// A run of the program along other paths.
    OtherPaths {
        /// The run.
        run: Side<'a>,
        /// What it differs in.
        across: &'a Across,
        /// An alternate along the recorded paths failed all the same when the program was run, or failed in another way before it came
        /// to that: what is proved along them does not decide.
        in_vain: bool,
    },
}

/// Says why the run failed. `None` for traces without a failure.
#[must_use]
pub fn cause(
    failing: Side<'_>,
    root_cause: Option<&RootCause>,
    passing: Passing<'_>,
) -> Option<Cause> {
    failing.trace.failure.as_ref()?;
    let story = Story::new(failing, root_cause, passing);
    let found = deadlock::find(&story)
        .or_else(|| missed(&story))
        .or_else(|| counted::find(&story))
        .or_else(|| lifetime::find(&story))
        .or_else(|| wakeup::find_timed(&story))
        .or_else(|| firmly(&story, by_pairs(&story)))
        .or_else(|| lifetime::find_own(&story))
        .or_else(|| orders::find(&story))
        .or_else(|| deadlock::find_apart(&story))?;
    Some(found.finish(&story))
}

/// Was the thread that failed woken, or its time up, and did it go on without another look at what it had waited for? That
/// is the cause whatever others did before, so that no check of theirs need be looked for.
#[must_use]
pub fn goes_on_without_look(failing: Side<'_>) -> bool {
    failing.trace.failure.is_some()
        && woken::find(&Story::new(failing, None, Passing::None)).is_some()
}

/// A wake-up that a thread missed. Where it was never sent, what signals there were before had to do with something
/// else; and where what kept it from being sent is two steps that got mixed with two of another thread, that is the
/// cause.
fn missed(story: &Story<'_>) -> Option<Found> {
    let came = wakeup::find(story);
    let stolen = came.as_ref().is_some_and(|found| found.case == Some("woke-another"));
    let Some(not_sent) = wakeup::not_sent(story).filter(|_| !stolen) else {
        // That the last signal came before the wait is all that can be said without a look.
        let vague = came.as_ref().is_none_or(|found| found.case == Some("signal-before-wait"));
        return if vague {
            unsignalled::find(story).or_else(|| unasked::find(story)).or(came)
        } else {
            came
        };
    };
    // A thread that has something to do, and is not told, does not get to where it would send it.
    if let Some(found) = unsignalled::find_beside(story) {
        return Some(found);
    }
    let mixed = |found: &Found| found.pattern == Pattern::SeveralVariables;
    Some(by_pairs(story).filter(mixed).unwrap_or(not_sent))
}

/// That one thread was somewhere before another, or what else that one wrote beside, says less than what came between two
/// sections of the thread that failed.
fn firmly(story: &Story<'_>, found: Option<Found>) -> Option<Found> {
    let is_of_passing = |event: &CauseEvent| matches!(event, CauseEvent::Passing(_));
    let is_vague = |found: &Found| {
        found.case == Some("read-write-use")
            || (found.pattern == Pattern::Order && !found.is_firm())
            // What the failing run did not live to do may only have made good for it.
            || (found.case == Some("announced-too-early") && found.events.iter().any(is_of_passing))
    };
    match found {
        Some(found) if !is_vague(&found) => Some(found),
        vague => {
            let order = vague.as_ref().filter(|found| found.pattern == Pattern::Order);
            let order = order.filter(|found| !found.is_firm());
            container::find(story)
                .or_else(|| resumed::find(story))
                .or_else(|| order.and_then(|order| lost::find(story, order)))
                .or(vague)
        }
    }
}

/// The pattern of the first reversed pair that has one: the pair that the alternate was made with
/// comes first.
fn by_pairs(story: &Story<'_>) -> Option<Found> {
    if let Some(found) = taken::find(story).or_else(|| woken::find(story)) {
        return Some(found);
    }
    if let Some(found) = came_back::find(story) {
        return Some(found);
    }
    if let Some(found) = found_in_vain(story) {
        return Some(found);
    }
    // Where the recorded paths lead to the failure in any order, what counts is why a thread came that way.
    let way = stale::find_wrong_way(story).or_else(|| misdirected::find(story));
    let (own, way) = match way {
        Some(found) if order::is_of_channel(story, &found) => (Some(found), None),
        way => (None, way),
    };
    if let Some(found) = way.or_else(|| order::find_end_of_channel(story)).or(own) {
        return Some(found);
    }
    if let Some(found) = same_step::find_on_the_way(story).or_else(|| vouched::find(story)) {
        return Some(found);
    }
    let pairs = story.pairs();
    if let Some(found) = pairs.first().and_then(|pair| woken::find_writer(story, *pair)) {
        return Some(found);
    }
    let telling = pairs.iter().find_map(|pair| {
        let found = snapshot::find(story, *pair)
            .or_else(|| several::find(story, *pair))
            .or_else(|| overtaken::find(story, *pair))
            .or_else(|| atomicity::find(story, *pair))
            .or_else(|| crossed::find(story, *pair))
            .or_else(|| order::find(story, *pair).filter(|_| story.has_read(*pair)));
        // Which of two writes came last may follow from an update that was lost on the way there.
        let Some(found) = found else {
            return stale::find(story, *pair, false)
                .filter(|found| found.case == Some("read-write-write"))
                .or_else(|| overlaid::find(story, *pair));
        };
        // What a channel keeps for itself is nothing that the program looks at twice.
        if let Some(order) = order::find_of_channel(story, *pair, &found) {
            return Some(order);
        }
        if same_step::may_say_more(&found)
            && let Some(step) = same_step::find(story, *pair)
        {
            return Some(step);
        }
        if let Some(decided) = decided(story, &found) {
            return Some(decided);
        }
        // Which variables belong together is a guess where one of two is not written yet.
        if found.case == Some("half-written")
            && let Some(overtaken) = stale::find_overtaken(story, *pair)
        {
            return Some(overtaken);
        }
        let of_one = found.pattern == Pattern::Atomicity || found.case == Some("looked-too-early");
        if of_one && let Some(claims) = stale::find_claims(story, *pair) {
            return Some(claims);
        }
        // What else was said by then may be what brought the other thread there.
        if matches!(found.case, Some("announced-too-early" | "read-before-write"))
            && let Some(rival) = stale::find_rival(story, *pair)
        {
            return Some(rival);
        }
        if matches!(found.case, Some("use-before-initialisation" | "read-before-write"))
            && let Some(rival) = stale::find_rival_on_the_way(story)
        {
            return Some(rival);
        }
        if found.is_firm() || locks::are_different(story, *pair) {
            return Some(found);
        }
        let together = found.pattern == Pattern::SeveralVariables;
        Some(stale::find(story, *pair, together).unwrap_or(found))
    });
    let telling = telling.map(|found| proved_loss(story, &found).unwrap_or(found));
    // Which of two writes came last shows only in what reads see.
    telling.or_else(|| pairs.iter().find_map(|pair| order::find(story, *pair)))
}

/// The program failed all the same when what the root cause orders came the other way round, and does not when a thread sees what
/// another one wrote that had found the same: what both did then, as two owners of one thing, follows from that.
fn found_in_vain(story: &Story<'_>) -> Option<Found> {
    match story.passing {
        Passing::OtherPaths { across, in_vain: true, .. } => match across.flipped {
            Flipped::Reversed(order) => stale::find_rival(story, Pair::Reversed(order)),
            Flipped::Late { .. } => None,
        },
        _ => None,
    }
}

/// What a run along other paths differs in may follow from an update that was lost: where the root cause says that a thread
/// overwrote one which it had not seen, that decided.
fn proved_loss(story: &Story<'_>, found: &Found) -> Option<Found> {
    let along_others = matches!(story.passing, Passing::OtherPaths { in_vain: true, .. });
    if !along_others || found.case != Some(atomicity::Case::ReadWriteRead.name()) {
        return None;
    }
    let orders = story.root_cause.iter().flat_map(|cause| &cause.orders).map(|it| it.order);
    let is_update = |id: EventId| {
        let kind = &story.event(id).kind;
        !kind.reads().is_empty() && !kind.writes().is_empty()
    };
    let lost = orders.filter(|order| is_update(order.before));
    let mut found = lost.filter_map(|order| atomicity::find(story, Pair::Reversed(order)));
    found.find(|found| found.case == Some(atomicity::Case::ReadWriteWrite.name()))
}

/// Another thread wrote between what a thread did in a call that has returned since and what it did behind that: where it
/// wrote because of what the thread changed only behind that look, the decision is what came between.
fn decided(story: &Story<'_>, found: &Found) -> Option<Found> {
    let id = |event: &CauseEvent| match event {
        CauseEvent::Failing(id) => Some(*id),
        CauseEvent::Passing(_) => None,
    };
    let [between, first, second] = found.events[..] else { return None };
    let [between, first, second] = [id(&between)?, id(&first)?, id(&second)?];
    let fits = matches!(found.case, Some("write-write-read" | "read-write-read"))
        && story.event(first).thread == story.event(second).thread
        && story.has_returned(first, second)
        && !story.event(between).kind.writes().is_empty();
    if !fits {
        return None;
    }
    let decided = decision::find_between(story, between, second)?;
    let [look, change, write] = [0, 1, 2].map(|at| decided.events.get(at).and_then(id));
    let (look, change, write) = (look?, change?, write?);
    if story.event(change).index <= story.event(first).index {
        return None;
    }
    // Where all of it is about one variable, the other thread's step came between a look and what it led to.
    let in_all =
        |cell: &CellId| story.access(look, *cell).reads && story.access(write, *cell).writes;
    let of_one = story.common_cells(look, change).into_iter().find(in_all);
    let same = |cell| {
        let triple = atomicity::Triple { first: look, between: change, second: write, cell };
        atomicity::found(story, triple, atomicity::Case::ReadWriteWrite)
    };
    Some(of_one.map_or(decided, same))
}

/// A cause without what follows from it.
struct Found {
    pattern: Pattern,
    case: Option<&'static str>,
    sentence: String,
    events: Vec<CauseEvent>,
    /// What the fingerprint is made of where that is not the same: where two threads do harm to each
    /// other, which of the two the sentence is about depends on the run.
    marks: Vec<CauseEvent>,
    /// The acquisition of a lock that the sentence says is held.
    lock: Option<EventId>,
}

impl Found {
    fn new(pattern: Pattern, sentence: String, events: &[EventId]) -> Self {
        let events: Vec<CauseEvent> = events.iter().copied().map(CauseEvent::Failing).collect();
        Self::of_both(pattern, sentence, &events)
    }

    /// Of events of which some may be of the passing run only.
    fn of_both(pattern: Pattern, sentence: String, events: &[CauseEvent]) -> Self {
        Self {
            pattern,
            case: None,
            sentence,
            events: events.to_vec(),
            marks: Vec::new(),
            lock: None,
        }
    }

    /// Does it say why the threads got where they did harm? What else was read between two accesses, or
    /// in which order two threads did the same, may follow from something before.
    fn is_firm(&self) -> bool {
        matches!(
            self.case,
            Some("read-write-write" | "write-write-read" | "write-read-write")
                | Some("use-before-initialisation" | "announced-too-early" | "crossed")
                | Some("looked-too-early" | "two-moments" | "found-the-same" | "came-back")
        )
    }

    fn finish(self, story: &Story<'_>) -> Cause {
        let Self { pattern, case, mut sentence, events, marks, lock } = self;
        sentence.extend(locks::told(story, lock, &events));
        let mut variables: Vec<String> = Vec::new();
        let names: Vec<String> =
            events.iter().map(|event| story.name(*event).unwrap_or_default()).collect();
        for name in names.iter().filter(|name| !name.is_empty()) {
            let known = |other: &String| words::same_variable(other, name);
            if !variables.iter().any(known) {
                variables.push(name.clone());
            }
        }
        // An object that was freed may be used by another member the next time.
        let told = Some(sentence.as_str()).filter(|_| pattern == Pattern::UseAfterFree);
        let fingerprint = match marks.is_empty() {
            true => fingerprint::of(story, pattern, (&events, told)),
            false => fingerprint::of(story, pattern, (&marks, None)),
        };
        Cause { pattern, case, sentence, variables, events, names, fingerprint }
    }
}
