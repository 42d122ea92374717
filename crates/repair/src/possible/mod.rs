//! After a patch: can the order of events that made the old program fail still come up in the new
//! one? Asked of a run of the new program that passed, whose events are found again by kind, function
//! and variable.

mod ways;

pub use ways::Way;

use crate::awaited::awaited;
use crate::check::Limits;
use crate::contended;
use crate::sections::{lock_name, sections};
use crate::{Bug, source::Span};
use encoders::ConstraintSystem;
use explain::{Pattern, last_member};
use model::{CellId, Event, EventId, EventKind, EventTrace, Points, ThreadId};
use solver::{Goal, Order, OrderingSession, Outcome, Session, SolverError};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

/// So many combinations of events are asked about.
const MOST: usize = 600;
/// So many schedules are told of combinations on the same lines and about the same variable, those apart that lead a
/// thread away from its path where the failure was.
const ALIKE: usize = 2;
/// And of so many variables on the same lines, such as elements of one array.
const VARIABLES: usize = 8;
/// So many schedules are told.
const MOST_WAYS: usize = 200;

/// What is known about the order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Possible {
    /// No schedule along the paths of the run has it; how that comes, in words.
    No(String),
    /// Some schedule along the paths of the run up to there has it.
    Yes {
        /// Where, in words.
        place: String,
        /// Schedules that have it, at every place where it can come up; none where that could not be shown by
        /// schedules.
        ways: Vec<Way>,
    },
    /// Along the paths of the run nobody does what the other thread of the cause did, but an access of another thread can
    /// come where that came: by these schedules.
    Between(Vec<Way>),
    /// The run does not come to the places that it is about: it says nothing, and another run may.
    Untouched(String),
    /// It is not known; why, in words.
    Unknown(String),
}

/// A run of the new program that passed.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    /// What it did.
    pub trace: &'a EventTrace,
    /// Where its events are.
    pub points: &'a Points,
    /// The functions that the new program has.
    pub functions: &'a BTreeSet<String>,
}

/// Can the order of the bug's events come up in another run's schedules? What a thread sees behind the events does not
/// count: that a run passed says nothing about whether others do.
///
/// # Errors
/// When the solver breaks.
pub fn possible(bug: &Bug<'_>, new: Run<'_>, limits: Limits<'_>) -> Result<Possible, SolverError> {
    let run = new.trace;
    match bug.pattern {
        Pattern::Atomicity | Pattern::SeveralVariables | Pattern::Order | Pattern::Orders => {
            Search::ask(bug, new, limits)
        }
        Pattern::UseAfterFree | Pattern::DoubleFree => Search::ask(bug, new, limits),
        Pattern::Deadlock => Ok(circle(bug, run)),
        Pattern::MissedWakeup => Ok(awaited(bug, run)),
        Pattern::LateWrite | Pattern::EverySchedule => Ok(Possible::Unknown(format!(
            "whether a cause of the pattern {} is gone cannot be seen in a run that passes",
            bug.pattern.name()
        ))),
    }
}

/// What an event looks like in any build of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) kind: &'static str,
    function: String,
    member: String,
}

impl Look {
    pub(crate) fn of(trace: &EventTrace, event: &Event) -> Self {
        Self {
            kind: event.kind.name(),
            function: event.site().function.clone(),
            member: trace.subject(event).map(last_member).unwrap_or_default(),
        }
    }

    /// The same access, also where it became part of an atomic update, or came into another
    /// function.
    fn fits(&self, other: &Self, in_function: bool) -> bool {
        let same_kind = self.kind == other.kind
            || (other.kind == "read-modify-write" && matches!(self.kind, "read" | "write"));
        same_kind
            && self.member == other.member
            && (!in_function || self.function == other.function)
    }
}

/// Orders that together are the failing one, with the events that they are about.
struct Combination {
    orders: Vec<Order>,
    own: (EventId, EventId),
    other: EventId,
}

impl Combination {
    /// Another thread's event between two of one thread.
    fn between(first: EventId, other: EventId, last: EventId) -> Self {
        let orders =
            vec![Order { before: first, after: other }, Order { before: other, after: last }];
        Self { orders, own: (first, last), other }
    }
}

/// Why there is nothing to ask about.
enum Missing {
    /// The run has none of these accesses.
    Accesses(String),
    /// Several threads do not make the accesses, or not to one place.
    Places,
    /// Anything else, in words.
    Other(String),
}

/// What is asked about a run.
enum Asked {
    /// Events that look like the bug's.
    Like(Vec<Combination>),
    /// Any access between the two of the bug's that belong together.
    Between(Vec<Combination>),
    /// The two are one event, at this place.
    OneStep(String),
}

/// Why nothing can be said of a run.
pub const APART: &str =
    "in the run the accesses of the cause are not made by several threads to one place";
/// Why nothing can be said of locks that may not be got.
const TRIED: &str = "a lock that the accesses of the cause hold is only tried: who does not get it may go another way";

struct Search<'a> {
    bug: &'a Bug<'a>,
    run: &'a EventTrace,
    new: Run<'a>,
    /// Accesses of other functions were taken for those of one that is still there.
    elsewhere: Cell<bool>,
}

/// Where the order can come up.
struct Found {
    /// The first place.
    place: Option<String>,
    ways: Vec<Way>,
}

impl Search<'_> {
    fn ask(bug: &Bug<'_>, new: Run<'_>, limits: Limits<'_>) -> Result<Possible, SolverError> {
        let run = new.trace;
        let search = Search { bug, run, new, elsewhere: Cell::new(false) };
        Ok(match search.answer(limits)? {
            // What others do there does not rule out what that function does.
            Possible::No(_) if search.elsewhere.get() => {
                Possible::Untouched("the run did not come to the function of the cause".to_owned())
            }
            answer => answer,
        })
    }

    fn answer(&self, limits: Limits<'_>) -> Result<Possible, SolverError> {
        let search = self;
        let run = self.run;
        let asked = match search.combinations() {
            Ok(combinations) => Asked::Like(combinations),
            Err(Missing::Accesses(why)) => return Ok(Possible::Untouched(why)),
            Err(Missing::Other(why)) => return Ok(Possible::Unknown(why)),
            Err(Missing::Places) => search.others_between(),
        };
        let combinations = match &asked {
            Asked::Like(combinations) | Asked::Between(combinations) => combinations,
            Asked::OneStep(what) => {
                return Ok(Possible::No(format!("`{what}` is looked at and changed in one step")));
            }
        };
        if combinations.is_empty() {
            return Ok(Possible::Unknown(APART.to_owned()));
        }
        if contended::is_contended(run) {
            return Ok(Possible::Unknown(contended::TOO_OFTEN.to_owned()));
        }
        let mut open = Vec::new();
        let loose = ways::without_paths(run);
        let system = match limits.encode(&loose) {
            Ok(system) => system,
            Err(error) => return Ok(Possible::Unknown(error.to_string())),
        };
        let mut session = OrderingSession::new(&loose, &system, limits.of_question());
        let surely = |order: &Order| system.surely_before(order.after, order.before);
        for combination in combinations {
            if combination.orders.iter().any(surely) {
                continue;
            }
            if !limits.is_left() {
                return Ok(Possible::Unknown("the time ended".to_owned()));
            }
            match session.check(Goal::Any, &combination.orders)? {
                Outcome::Unsat(_) => {}
                Outcome::Sat(_) => open.push(combination),
                Outcome::Unknown(reason) => return Ok(Possible::Unknown(reason.to_string())),
            }
        }
        let found =
            match search.on_paths(&open, &system, matches!(asked, Asked::Between(_)), limits)? {
                Ok(found) => found,
                Err(why) => return Ok(Possible::Unknown(why)),
            };
        if let Some(place) = found.place {
            return Ok(match asked {
                Asked::Between(_) => Possible::Between(found.ways),
                _ => Possible::Yes { place, ways: found.ways },
            });
        }
        if search.says_nothing(combinations) {
            return Ok(Possible::Unknown(APART.to_owned()));
        }
        if search.is_tried(combinations) {
            return Ok(Possible::Unknown(TRIED.to_owned()));
        }
        Ok(Possible::No(how(run, combinations)))
    }

    /// Those combinations that threads can come to, by what they see on their ways.
    fn on_paths(
        &self,
        open: &[&Combination],
        system: &ConstraintSystem,
        between: bool,
        limits: Limits<'_>,
    ) -> Result<Result<Found, String>, SolverError> {
        let run = self.run;
        let mut alike: BTreeMap<String, BTreeMap<BTreeSet<CellId>, usize>> = BTreeMap::new();
        let mut found = Found { place: None, ways: Vec::new() };
        let failure = self.bug.trace.failure.as_ref();
        let function = failure.map(|f| self.bug.trace.event(f.event).site().function.as_str());
        // What is to be told of none of the combinations, since it is not known of all.
        let mut unshown = false;
        for combination in open {
            let events = [combination.own.0, combination.other, combination.own.1];
            let mut lines: Vec<String> = events.iter().map(|id| place(run, *id)).collect();
            lines.dedup();
            let lines = lines.join(", then ");
            if !limits.is_left() || found.ways.len() >= MOST_WAYS {
                unshown = true;
                break;
            }
            let there = ways::up_to(run, &events);
            let there_system = match limits.encode(&there) {
                Ok(system) => system,
                Err(error) => return Ok(Err(error.to_string())),
            };
            let mut session = OrderingSession::new(&there, &there_system, limits.of_question());
            match session.check(Goal::Any, &combination.orders)? {
                Outcome::Unsat(_) => continue,
                Outcome::Sat(_) => {}
                Outcome::Unknown(reason) => return Ok(Err(reason.to_string())),
            }
            found.place.get_or_insert_with(|| lines.clone());
            let alike = alike.entry(lines.clone()).or_default();
            let about = cells(run.event(combination.other));
            let many = alike.len() >= VARIABLES && !alike.contains_key(&about);
            let known = alike.entry(about).or_default();
            let enough = many || *known >= ALIKE;
            let told = (function, &*lines, enough);
            match ways::ways(run, combination, system, told, between, limits)? {
                Ok(ways) => {
                    *known += usize::from(!ways.is_empty());
                    unshown |= ways.is_empty() && !enough && *known == 0;
                    found.ways.extend(ways);
                }
                Err(why) => {
                    tracing::debug!(lines, why, "no schedule is known of what can come up");
                    unshown = true;
                }
            }
        }
        match (&found.place, unshown) {
            (None, true) => return Ok(Err("the time ended".to_owned())),
            (_, true) => found.ways.clear(),
            _ => {}
        }
        Ok(Ok(found))
    }

    /// Does a combination's own thread, or the other one, hold a lock there that it only tried to get?
    fn is_tried(&self, combinations: &[Combination]) -> bool {
        let all = sections(self.run);
        let events = combinations.iter().flat_map(|c| [c.own.0, c.own.1, c.other]);
        let events: BTreeSet<EventId> = events.collect();
        let locks = events.into_iter().flat_map(|id| all.around(self.run, id));
        let locks: BTreeSet<EventId> = locks.map(|section| section.lock).collect();
        locks.into_iter().any(|lock| {
            let site = self.new.points.point(lock).map(|point| self.new.points.site(point));
            site.is_some_and(|site| site.contains("try") || site.contains("timed"))
        })
    }

    /// The events of the run that look like one of the bug's.
    fn like(&self, id: EventId) -> Vec<EventId> {
        let trace = self.bug.trace;
        let look = Look::of(trace, trace.event(id));
        let find = |in_function: bool| -> Vec<EventId> {
            let all = self.run.events.iter();
            let found = all.filter(|event| look.fits(&Look::of(self.run, event), in_function));
            found.map(|event| event.id).collect()
        };
        let near = find(true);
        if !near.is_empty() {
            return near;
        }
        // Where the function is still there, the run may just not have come to it.
        if self.new.functions.contains(&look.function) {
            self.elsewhere.set(true);
        }
        find(false)
    }

    /// The bug's events, by thread and in its order.
    fn groups(&self) -> Vec<Vec<EventId>> {
        let trace = self.bug.trace;
        let threads: BTreeSet<ThreadId> =
            self.bug.events.iter().map(|id| trace.event(*id).thread).collect();
        let own = |thread| {
            let own = self.bug.events.iter().copied();
            let mut own: Vec<EventId> =
                own.filter(|id| trace.event(*id).thread == thread).collect();
            own.sort_by_key(|id| trace.event(*id).index);
            own
        };
        threads.into_iter().map(own).collect()
    }

    fn combinations(&self) -> Result<Vec<Combination>, Missing> {
        let trace = self.bug.trace;
        let groups = self.groups();
        let [a, b] = &groups[..] else {
            return Err(Missing::Other("the cause is about more than two threads".to_owned()));
        };
        for id in self.bug.events {
            if self.like(*id).is_empty() {
                let look = Look::of(trace, trace.event(*id));
                let (kind, member) = (look.kind, look.member);
                let why = format!("the run has no {kind} of `{member}` like that of the cause");
                return Err(Missing::Accesses(why));
            }
        }
        let found = match (&a[..], &b[..]) {
            ([one], [other]) => self.pairs(*one, *other),
            ([first, .., last], others) | (others, [first, .., last]) => {
                let others: Vec<EventId> = others.iter().flat_map(|id| self.like(*id)).collect();
                self.triples(*first, *last, &others)
            }
            _ => Vec::new(),
        };
        match found.len() {
            0 => Err(Missing::Places),
            n if n > MOST => {
                Err(Missing::Other(format!("the run has {n} combinations of the cause's accesses")))
            }
            _ => Ok(found),
        }
    }

    /// Where no other thread does what the bug's other thread did: one that found the work done, say, did not do it
    /// again. What is asked then is whether another thread's accesses of any kind can come between the two of the
    /// bug's that belong together; where none can, nor can that one.
    fn others_between(&self) -> Asked {
        let groups = self.groups();
        let ends = groups.iter().find_map(|group| match group[..] {
            [first, .., last] => Some((first, last)),
            _ => None,
        });
        let Some((first, last)) = ends else { return Asked::Between(Vec::new()) };
        let (firsts, lasts) = (self.like(first), self.like(last));
        let accesses = self.run.events.iter().filter(|event| !cells(event).is_empty());
        let others: Vec<EventId> = accesses.map(|event| event.id).collect();
        let merged = firsts
            .iter()
            .copied()
            .find(|id| lasts.contains(id) && others.iter().any(|other| self.meet(*id, *other)));
        let found = self.triples(first, last, &others);
        // Who does not come to the second one says nothing about whether something can come between them.
        let comes_to_both = |first: &EventId| {
            let same = |last: &EventId| {
                let (first, last) = (self.run.event(*first), self.run.event(*last));
                first.thread == last.thread && !cells(first).is_disjoint(&cells(last))
            };
            lasts.iter().any(same)
        };
        let orders = encoders::encode_orders(self.run).ok();
        let meets_others = |first: &&EventId| self.is_concurrent(**first, &others, orders.as_ref());
        if found.is_empty() && !firsts.iter().filter(meets_others).all(comes_to_both) {
            return Asked::Between(Vec::new());
        }
        match (merged, found.len()) {
            (Some(id), 0) => {
                let run = self.run;
                Asked::OneStep(run.subject(run.event(id)).unwrap_or_default().to_owned())
            }
            // Where no thread makes them in this order any more, all that it does there may be one step.
            (None, 0) => Asked::Between(self.steps(&firsts, &lasts, &others)),
            (_, 1..=MOST) => Asked::Between(found),
            _ => Asked::Between(Vec::new()),
        }
    }

    /// Between any two accesses of a thread to what these events are about, those of others. Where none can come there
    /// nothing comes between any two of them.
    fn steps(&self, firsts: &[EventId], lasts: &[EventId], others: &[EventId]) -> Vec<Combination> {
        let event = |id: EventId| self.run.event(id);
        let both = firsts.iter().chain(lasts);
        let about: BTreeSet<CellId> = both.flat_map(|id| cells(event(*id))).collect();
        let touches = |id: &EventId| !cells(event(*id)).is_disjoint(&about);
        let mut found = Vec::new();
        for thread in &self.run.threads {
            let own: Vec<EventId> = thread.events.iter().copied().filter(touches).collect();
            for pair in own.windows(2) {
                let (first, last) = (pair[0], pair[1]);
                let others = others.iter().copied().filter(|other| self.meet(first, *other));
                found.extend(others.map(|other| Combination::between(first, other, last)));
            }
            if found.len() > MOST {
                return Vec::new();
            }
        }
        found
    }

    /// Two events of two threads, in the order of the failing schedule.
    fn pairs(&self, one: EventId, other: EventId) -> Vec<Combination> {
        let place = |id: EventId| self.bug.schedule.iter().position(|event| *event == id);
        let (before, after) = if place(one) < place(other) { (one, other) } else { (other, one) };
        let mut found = Vec::new();
        for before in self.like(before) {
            for &after in &self.like(after) {
                if self.meet(before, after) {
                    let orders = vec![Order { before, after }];
                    found.push(Combination { orders, own: (before, before), other: after });
                }
            }
        }
        found
    }

    /// An event of another thread between two that follow each other in one.
    fn triples(&self, first: EventId, last: EventId, others: &[EventId]) -> Vec<Combination> {
        let (firsts, lasts) = (self.like(first), self.like(last));
        let index = |id: EventId| self.run.event(id).index;
        let thread = |id: EventId| self.run.event(id).thread;
        let mut found = Vec::new();
        for &last in &lasts {
            let earlier = firsts
                .iter()
                .copied()
                .filter(|first| thread(*first) == thread(last) && index(*first) < index(last));
            let Some(first) = earlier.max_by_key(|first| index(*first)) else { continue };
            if self.is_one_step(last, &firsts) && !self.follows_from(last, first) {
                continue;
            }
            for &other in others {
                if self.meet(first, other) || self.meet(last, other) {
                    found.push(Combination::between(first, other, last));
                }
            }
        }
        found
    }

    /// Does the event do both, as an atomic update in the place of a read and a write?
    fn is_one_step(&self, last: EventId, firsts: &[EventId]) -> bool {
        matches!(self.run.event(last).kind, EventKind::ReadModifyWrite { .. })
            && firsts.contains(&last)
    }

    /// Does what a thread wrote, or that it came there, follow from what it had read at an earlier event?
    fn follows_from(&self, last: EventId, first: EventId) -> bool {
        let run = self.run;
        let (first, last) = (run.event(first), run.event(last));
        let written = last.kind.writes().iter().map(|part| part.value);
        let passed = run.conditions.iter().filter(|condition| {
            condition.thread == last.thread
                && condition.position > first.index
                && condition.position <= last.index
        });
        let mut exprs = written.chain(passed.map(|condition| condition.expr));
        exprs.any(|expr| run.reads_of(expr).iter().any(|read| read.event == first.id))
    }

    /// Can one of the others come before the event and after it, as far as the beginnings and ends of threads go?
    fn is_concurrent(
        &self,
        id: EventId,
        others: &[EventId],
        orders: Option<&ConstraintSystem>,
    ) -> bool {
        let ordered = |other: EventId| {
            orders.is_some_and(|orders| {
                orders.surely_before(id, other) || orders.surely_before(other, id)
            })
        };
        others.iter().any(|other| self.meet(id, *other) && !ordered(*other))
    }

    /// Are all combinations of a thread that was alone then, while others did what begins the bug and went another way
    /// behind it?
    fn says_nothing(&self, combinations: &[Combination]) -> bool {
        let Ok(orders) = encoders::encode_orders(self.run) else { return true };
        let alone = |combination: &Combination| {
            let (first, last) = combination.own;
            first != last && !self.is_concurrent(first, &[combination.other], Some(&orders))
        };
        let writes = |event: &&Event| !event.kind.writes().is_empty();
        let writes: Vec<EventId> =
            self.run.events.iter().filter(writes).map(|event| event.id).collect();
        let begins = self.bug.events.first().map(|id| self.like(*id)).unwrap_or_default();
        combinations.iter().all(alone)
            && begins.iter().any(|id| self.is_concurrent(*id, &writes, Some(&orders)))
    }

    /// Are they of two threads and about one place?
    fn meet(&self, one: EventId, other: EventId) -> bool {
        let (a, b) = (self.run.event(one), self.run.event(other));
        let objects = a.kind.object().zip(b.kind.object()).is_some_and(|(a, b)| a == b);
        let uses =
            matches!(a.kind, EventKind::Free { .. }) || matches!(b.kind, EventKind::Free { .. });
        a.thread != b.thread && (objects || uses || !cells(a).is_disjoint(&cells(b)))
    }
}

fn cells(event: &Event) -> BTreeSet<CellId> {
    let reads = event.kind.reads().iter().map(|part| part.cell);
    reads.chain(event.kind.writes().iter().map(|part| part.cell)).collect()
}

fn place(trace: &EventTrace, id: EventId) -> String {
    Span::of(trace.event(id).site()).begin()
}

/// The lock that all combinations are kept apart by, if it is one.
fn how(run: &EventTrace, combinations: &[Combination]) -> String {
    let all = sections(run);
    let locks = combinations.iter().map(|combination| {
        let (first, last) = combination.own;
        let end = all.around(run, last);
        let own = all.around(run, first).into_iter().filter(|section| end.contains(section));
        let other: BTreeSet<_> =
            all.around(run, combination.other).iter().map(|s| s.object).collect();
        own.map(|section| section.object).find(|object| other.contains(object))
    });
    let locks: BTreeSet<_> = locks.collect();
    let names: BTreeSet<String> = locks
        .iter()
        .map(|lock| lock.map(|lock| lock_name(run, lock)).unwrap_or_default())
        .collect();
    match (names.iter().next(), names.len()) {
        (Some(name), 1) if !name.is_empty() => format!("`{name}` is held on both sides"),
        _ => "the threads' synchronisation rules them out".to_owned(),
    }
}

/// Do threads of the run still take the locks of a deadlock in a circle?
fn circle(bug: &Bug<'_>, run: &EventTrace) -> Possible {
    let old = bug.events.iter().map(|id| bug.trace.event(*id));
    let names: BTreeSet<String> = old
        .filter_map(|event| event.kind.object())
        .map(|object| last_member(&lock_name(bug.trace, object)))
        .collect();
    let known = |object| {
        let name = last_member(&lock_name(run, object));
        names.contains(&name)
    };
    let all = sections(run);
    let mut used: BTreeSet<(ThreadId, _)> = BTreeSet::new();
    let mut edges = BTreeSet::new();
    for section in all.iter().filter(|section| known(section.object)) {
        used.insert((run.event(section.lock).thread, section.object));
        for outer in all.around(run, section.lock) {
            if outer.object != section.object && known(outer.object) {
                edges.insert((outer.object, section.object));
            }
        }
    }
    let threads: BTreeSet<ThreadId> = used.iter().map(|(thread, _)| *thread).collect();
    if threads.len() < 2 {
        return Possible::Unknown(
            "in the run the locks are not taken by several threads".to_owned(),
        );
    }
    // Longer circles than of two locks go through every lock: each is entered and left.
    let mut open: Vec<_> = edges.iter().copied().collect();
    loop {
        let before = open.len();
        let entered: BTreeSet<_> = open.iter().map(|edge| edge.1).collect();
        let left: BTreeSet<_> = open.iter().map(|edge| edge.0).collect();
        open.retain(|(from, to)| entered.contains(from) && left.contains(to));
        if open.len() == before {
            break;
        }
    }
    match (open.first(), edges.first()) {
        (Some((from, to)), _) => Possible::Yes {
            place: format!(
                "`{}` is taken while `{}` is held, and the other way round",
                lock_name(run, *to),
                lock_name(run, *from)
            ),
            ways: Vec::new(),
        },
        (None, Some((from, to))) => Possible::No(format!(
            "the locks are taken in one order, `{}` before `{}`",
            lock_name(run, *from),
            lock_name(run, *to)
        )),
        (None, None) => {
            Possible::No("no thread takes one of the locks while it holds another".to_owned())
        }
    }
}

#[cfg(test)]
mod tests;
