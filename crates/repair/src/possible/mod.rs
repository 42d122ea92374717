//! After a patch: can the order of events that made the old program fail still come up in the new
//! one? Asked of a run of the new program that passed, whose events are found again by kind, function
//! and variable.

mod alone;
mod circle;
mod crossings;
mod near;
mod parts;
mod read_once;
mod together;
mod ways;

pub(crate) use near::Went;
pub use ways::Way;

use crate::awaited::awaited;
use crate::check::Limits;
use crate::contended;
use crate::sections::{lock_name, sections};
use crate::{Bug, source::Span};
use circle::circle;
use crossings::{Crossings, Form, Part, SOME, Shared, crossings, meet, some};
use encoders::ConstraintSystem;
use explain::{Pattern, last_member};
use model::{CellId, Event, EventId, EventKind, EventTrace, Points, Site, ThreadId};
use solver::{Goal, Order, OrderingSession, Outcome, Session, SolverError};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

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
        /// Schedules that have it.
        ways: Ways,
    },
    /// Along the paths of the run nobody does what the other thread of the cause did, but an access of another thread can
    /// come where that came: by these schedules.
    Between(Ways),
    /// The run does not come to the places that it is about: it says nothing, and another run may.
    Untouched(String),
    /// It is not known; why, in words.
    Unknown(String),
}

/// Schedules that have the order of the bug.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ways {
    /// The schedules; none where that could not be shown by schedules.
    pub found: Vec<Way>,
    /// They have it at every place where it can come up.
    pub everywhere: bool,
}

/// Of how many places it is asked whether the order can come up there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Places {
    /// Of some of them first.
    Some,
    /// Of all of them.
    All,
    /// Until there is one; no schedules are told.
    Any,
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
    /// What its threads saw is not all known: that their values rule an order out counts for nothing then, only what locks do
    /// and how threads begin and end.
    pub incomplete: bool,
}

/// Can the order of the bug's events come up in another run's schedules? What a thread sees behind the events does not
/// count: that a run passed says nothing about whether others do.
///
/// # Errors
/// When the solver breaks.
pub fn possible(bug: &Bug<'_>, new: Run<'_>, limits: Limits<'_>) -> Result<Possible, SolverError> {
    asked(bug, new, limits, Places::Some)
}

/// As [`possible`], where it is enough to know whether it can: [`Ways`] are not looked for.
///
/// # Errors
/// When the solver breaks.
pub fn possible_at_all(
    bug: &Bug<'_>,
    new: Run<'_>,
    limits: Limits<'_>,
) -> Result<Possible, SolverError> {
    asked(bug, new, limits, Places::Any)
}

/// As [`possible`], where it is known that the program passes where it is made to have the order at some of the places: of
/// more of them.
///
/// # Errors
/// When the solver breaks.
pub fn possible_elsewhere(
    bug: &Bug<'_>,
    new: Run<'_>,
    limits: Limits<'_>,
) -> Result<Possible, SolverError> {
    asked(bug, new, limits, Places::All)
}

fn asked(
    bug: &Bug<'_>,
    new: Run<'_>,
    limits: Limits<'_>,
    places: Places,
) -> Result<Possible, SolverError> {
    let run = new.trace;
    match bug.pattern {
        Pattern::Atomicity
        | Pattern::SeveralVariables
        | Pattern::Order
        | Pattern::Orders
        | Pattern::UseAfterFree
        | Pattern::DoubleFree => Search::ask(bug, new, limits, places),
        Pattern::Deadlock => Ok(circle(bug, run)),
        Pattern::MissedWakeup => Ok(awaited(bug, run, limits)),
        Pattern::LateWrite | Pattern::EverySchedule => Ok(Possible::Unknown(format!(
            "whether a cause of the pattern {} is gone cannot be seen in a run that passes",
            bug.pattern.name()
        ))),
    }
}

/// A place without a name.
const UNNAMED: &str = "*0x0";

/// What an event looks like in any build of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Look {
    kind: &'static str,
    function: String,
    member: String,
}

impl Look {
    fn of(trace: &EventTrace, event: &Event) -> Self {
        Self {
            kind: event.kind.name(),
            function: event.site().function.clone(),
            member: trace.subject(event).map(last_member).unwrap_or_default(),
        }
    }

    /// Is it the look of an event of another run, also where the access became part of an atomic update, or came into
    /// another function?
    fn is_of(&self, run: &EventTrace, event: &Event, in_function: bool) -> bool {
        let kind = event.kind.name();
        let same_kind = self.kind == kind
            || (kind == "read-modify-write" && matches!(self.kind, "read" | "write"));
        let same_function = !in_function || self.function == event.site().function;
        let member = || run.subject(event).map(last_member).unwrap_or_default();
        // What had no name in the one run may have one in the other.
        let unnamed = in_function && self.member == last_member(UNNAMED);
        same_kind && same_function && (unnamed || self.member == member())
    }
}

/// Events of two threads in the order in which they came when the program failed.
struct Combination {
    /// Three or four of them, or two.
    sequence: Vec<EventId>,
    /// The orders that make it: between those that follow each other and are of two threads.
    orders: Vec<Order>,
}

impl Combination {
    fn new(run: &EventTrace, mut sequence: Vec<EventId>) -> Self {
        sequence.dedup();
        let pairs = sequence.windows(2).map(|pair| Order { before: pair[0], after: pair[1] });
        let thread = |id| run.event(id).thread;
        let orders = pairs.filter(|order| thread(order.before) != thread(order.after)).collect();
        Self { sequence, orders }
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
    Like(Crossings),
    /// Any access between the two of the bug's that belong together.
    Between(Crossings),
    /// The two are one event, about this.
    OneStep(String),
    /// A thread that was woken looks at this again, and goes by what it sees then.
    Again(String),
}

/// Why nothing can be said of a run.
pub const APART: &str =
    "in the run the accesses of the cause are not made by several threads to one place";
/// How it begins that a run says nothing because it does not do what the cause is about.
pub const HAS_NO: &str = "the run has no ";
/// Why values say nothing.
const INCOMPLETE: &str = "what its threads saw rules the order out, but is not all known (`symbiosis check` says what is not)";
/// Why nothing can be said of a run that is not understood.
const CONTRADICTORY: &str = "the run that was asked has no schedule by what is known of it";
/// Why nothing can be said of locks that may not be got.
const TRIED: &str = "a lock that the accesses of the cause hold is only tried: who does not get it may go another way";

struct Search<'a> {
    bug: &'a Bug<'a>,
    run: &'a EventTrace,
    new: Run<'a>,
    limits: Limits<'a>,
    /// It is a part of a longer run, which has a beginning and an end besides.
    is_part: bool,
    places: Places,
    /// Accesses of other functions were taken for those of one that is still there.
    elsewhere: Cell<bool>,
}

/// Where the order can come up.
struct Found {
    /// The first place.
    place: Option<String>,
    ways: Ways,
    /// So many cannot come up because the thread that makes the first access had seen by then what the other one did.
    seen_before: u64,
}

impl Found {
    /// None of those that were asked about, so far.
    fn nowhere() -> Self {
        Self { place: None, ways: Ways::default(), seen_before: 0 }
    }
}

impl Search<'_> {
    fn ask(
        bug: &Bug<'_>,
        new: Run<'_>,
        limits: Limits<'_>,
        places: Places,
    ) -> Result<Possible, SolverError> {
        let run = new.trace;
        let elsewhere = Cell::new(false);
        let search = Search { bug, run, new, limits, is_part: false, places, elsewhere };
        let answer = match search.answer()? {
            // What others do there does not rule out what that function does.
            Possible::No(_) if search.elsewhere.get() => {
                Possible::Untouched("the run did not come to the function of the cause".to_owned())
            }
            answer => answer,
        };
        let says_nothing = match &answer {
            Possible::Untouched(_) | Possible::Between(_) => true,
            Possible::Unknown(why) => why == APART,
            _ => false,
        };
        let together = || search.looks_and_writes_together().or_else(|| search.is_read_once());
        Ok(says_nothing.then(together).flatten().unwrap_or(answer))
    }

    fn answer(&self) -> Result<Possible, SolverError> {
        let asked = match self.combinations() {
            Err(Missing::Places) => self.others_between(),
            found => found.map(Asked::Like),
        };
        let asked = match asked {
            Ok(asked) => asked,
            Err(Missing::Accesses(why)) => {
                return Ok(self.is_done_alone().unwrap_or(Possible::Untouched(why)));
            }
            Err(Missing::Other(why)) => return Ok(Possible::Unknown(why)),
            Err(Missing::Places) => return Ok(Possible::Unknown(APART.to_owned())),
        };
        let (found, between) = match &asked {
            Asked::Like(found) => (found, false),
            Asked::Between(found) => (found, true),
            Asked::OneStep(what) => {
                return Ok(Possible::No(format!("`{what}` is looked at and changed in one step")));
            }
            Asked::Again(what) => {
                return Ok(Possible::No(format!("`{what}` is looked at again behind the wait")));
            }
        };
        tracing::debug!(
            all = found.all,
            open = found.open,
            asked = found.some.len(),
            between,
            "combinations of events like those of the cause"
        );
        if found.all == 0 {
            return Ok(Possible::Unknown(APART.to_owned()));
        }
        let all: Vec<&Combination> = found.some.iter().collect();
        let is_near = !found.is_all() || contended::is_contended(self.run);
        let mut ruled_out = None;
        let open = match is_near && !all.is_empty() {
            true => self.near(&all, between)?.map(|near| {
                ruled_out = Some(near.ruled_out);
                near.found
            }),
            false => self.open(&all, between)?,
        };
        let open = match open {
            Ok(open) => open,
            Err(why) => return Ok(Possible::Unknown(why)),
        };
        if let Some(place) = open.place {
            let everywhere = open.ways.everywhere && found.is_all() && !self.new.incomplete;
            let ways = Ways { everywhere, ..open.ways };
            return Ok(match between {
                true => Possible::Between(ways),
                false => Possible::Yes { place, ways },
            });
        }
        if let Some(ruled_out) = ruled_out {
            let of = found.open;
            return Ok(Possible::Unknown(format!(
                "the accesses of the cause can meet in {of} ways that no lock rules out; near {ruled_out} of these, all \
                 that were looked at, the order cannot come up"
            )));
        }
        // That the other one came first in the run, and was seen, is no reason for which it could not come later.
        // Nor is that only those who came before all of this, or behind it, do anything to what is looked at.
        let nobody = between && !found.meets;
        if nobody || self.says_nothing(found) || open.seen_before == found.all {
            return Ok(Possible::Unknown(APART.to_owned()));
        }
        if self.new.incomplete && found.open > 0 {
            return Ok(Possible::Unknown(INCOMPLETE.to_owned()));
        }
        if self.is_tried(found) {
            return Ok(Possible::Unknown(TRIED.to_owned()));
        }
        Ok(Possible::No(how(self.run, found)))
    }

    /// Which of the combinations can come up. The error says why that is not known.
    fn open(
        &self,
        combinations: &[&Combination],
        between: bool,
    ) -> Result<Result<Found, String>, SolverError> {
        let (run, limits) = (self.run, self.limits);
        if combinations.is_empty() {
            return Ok(Ok(Found::nowhere()));
        }
        if contended::is_contended(run) {
            return Ok(Err(contended::TOO_OFTEN.to_owned()));
        }
        let is_any = self.places == Places::Any;
        if is_any
            && !self.is_part
            && let Ok(near) = self.near(&some(run, combinations.to_vec()), between)?
            && near.found.place.is_some()
        {
            return Ok(Ok(near.found));
        }
        let mut seen_before = 0;
        let mut open = Vec::new();
        let loose = ways::without_paths(run);
        let system = match limits.encode(&loose) {
            Ok(system) => system,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let mut session = OrderingSession::new(&loose, &system, limits.of_question());
        let surely = |order: &Order| system.surely_before(order.after, order.before);
        let mut is_sound = false;
        for &combination in combinations {
            if combination.orders.iter().any(surely) {
                continue;
            }
            if !limits.is_left() {
                return Ok(Err("the time ended".to_owned()));
            }
            match session.check(Goal::Any, &combination.orders)? {
                Outcome::Unsat(_) if !is_sound && is_contradictory(&mut session)? => {
                    return Ok(Err(CONTRADICTORY.to_owned()));
                }
                Outcome::Unsat(_) => is_sound = true,
                Outcome::Sat(_) if is_any => {
                    match self.on_paths(&[combination], &system, between)? {
                        Ok(found) if found.place.is_none() => seen_before += found.seen_before,
                        answer => return Ok(answer),
                    }
                }
                Outcome::Sat(_) => open.push(combination),
                Outcome::Unknown(reason) => return Ok(Err(reason.to_string())),
            }
        }
        if is_any {
            return Ok(Ok(Found { seen_before, ..Found::nowhere() }));
        }
        if !self.is_part && self.places == Places::Some && open.len() > SOME {
            // It may take long to ask about all of them, and some are enough where the program fails then.
            let near = self.near(&some(run, open.clone()), between)?;
            if let Ok(near) = near
                && !near.found.ways.found.is_empty()
            {
                return Ok(Ok(near.found));
            }
        }
        self.on_paths(&open, &system, between)
    }

    /// Those combinations that threads can come to, by what they see on their ways.
    fn on_paths(
        &self,
        open: &[&Combination],
        system: &ConstraintSystem,
        between: bool,
    ) -> Result<Result<Found, String>, SolverError> {
        let (run, limits) = (self.run, self.limits);
        let mut alike: BTreeMap<String, BTreeMap<BTreeSet<CellId>, usize>> = BTreeMap::new();
        let mut found = Found::nowhere();
        let failure = self.bug.trace.failure.as_ref();
        let function = failure.map(|f| self.bug.trace.event(f.event).site().function.as_str());
        let mut unshown = false;
        for combination in open {
            let events = &combination.sequence;
            let mut lines: Vec<String> = events.iter().map(|id| place(run, *id)).collect();
            lines.dedup();
            let lines = lines.join(", then ");
            if !limits.is_left() || found.ways.found.len() >= MOST_WAYS {
                unshown = true;
                break;
            }
            let there = ways::up_to(run, events);
            let there_system = match limits.encode(&there) {
                Ok(system) => system,
                Err(error) => return Ok(Err(error.to_string())),
            };
            let mut session = OrderingSession::new(&there, &there_system, limits.of_question());
            match session.check(Goal::Any, &combination.orders)? {
                Outcome::Unsat(_) if is_contradictory(&mut session)? => {
                    return Ok(Err(CONTRADICTORY.to_owned()));
                }
                Outcome::Unsat(_) => {
                    if let (&[first, other, _], Some(begins)) =
                        (&events[..], combination.orders.first())
                        && meet(run, first, other)
                        && matches!(session.check(Goal::Any, &[*begins])?, Outcome::Unsat(_))
                    {
                        found.seen_before += 1;
                    }
                    continue;
                }
                Outcome::Sat(_) => {}
                Outcome::Unknown(reason) => return Ok(Err(reason.to_string())),
            }
            found.place.get_or_insert_with(|| lines.clone());
            if self.places == Places::Any {
                return Ok(Ok(found));
            }
            let alike = alike.entry(lines.clone()).or_default();
            let about =
                combination.sequence.get(1).map(|id| cells(run.event(*id))).unwrap_or_default();
            let many = alike.len() >= VARIABLES && !alike.contains_key(&about);
            let known = alike.entry(about).or_default();
            let enough = many || *known >= ALIKE;
            let told =
                ways::Told { function, place: &lines, enough, between, is_part: self.is_part };
            match ways::ways(run, combination, system, told, limits)? {
                Ok(ways) => {
                    *known += usize::from(!ways.is_empty());
                    unshown |= ways.is_empty() && !enough && *known == 0;
                    found.ways.found.extend(ways);
                }
                Err(why) => {
                    tracing::debug!(lines, why, "no schedule is known of what can come up");
                    unshown = true;
                }
            }
        }
        if found.place.is_none() && unshown {
            return Ok(Err("the time ended".to_owned()));
        }
        found.ways.everywhere = !unshown;
        Ok(Ok(found))
    }

    /// Does a combination's own thread, or the other one, hold a lock there that it only tried to get?
    fn is_tried(&self, found: &Crossings) -> bool {
        let all = sections(self.run);
        let locks = found.events.iter().flat_map(|id| all.around(self.run, *id));
        let locks: BTreeSet<EventId> = locks.map(|section| section.lock).collect();
        locks.into_iter().any(|lock| self.is_tried_at(lock))
    }

    fn is_tried_at(&self, lock: EventId) -> bool {
        let site = self.new.points.point(lock).map(|point| self.new.points.site(point));
        // Behind the file and the function, which may be called `retry` or belong to a `Registry`.
        let called = site.and_then(|site| site.rsplit(':').next());
        called.is_some_and(|called| called.contains("try") || called.contains("timed"))
            && !self.run.event(lock).takes_several_locks()
    }

    /// The events of the run that look like one of the bug's.
    fn like(&self, id: EventId) -> Vec<EventId> {
        let trace = self.bug.trace;
        let look = Look::of(trace, trace.event(id));
        let find = |in_function: bool| -> Vec<EventId> {
            let all = self.run.events.iter();
            let found = all.filter(|event| look.is_of(self.run, event, in_function));
            found.map(|event| event.id).collect()
        };
        let near = find(true);
        if !near.is_empty() {
            return self.at_the_same_place(id, &look, near);
        }
        // Where the function is still there, the run may just not have come to it.
        if self.new.functions.contains(&look.function) {
            self.elsewhere.set(true);
        }
        find(false)
    }

    /// Those that are at the place of the bug's event, where its function has as many places for such accesses as it had: the
    /// look before a wait is not the use behind it, although both read one variable.
    fn at_the_same_place(&self, id: EventId, look: &Look, like: Vec<EventId>) -> Vec<EventId> {
        let trace = self.bug.trace;
        fn place(site: &Site) -> (&str, u32, u32) {
            (&site.file, site.line, site.column)
        }
        let of_bug = trace.events.iter().filter(|event| look.is_of(trace, event, true));
        let before: BTreeSet<_> = of_bug.map(|event| place(event.site())).collect();
        let at = |id: &EventId| place(self.run.event(*id).site());
        let now: BTreeSet<_> = like.iter().map(at).collect();
        let rank = before.iter().position(|it| *it == place(trace.event(id).site()));
        let same = rank.filter(|_| before.len() == now.len()).and_then(|rank| now.iter().nth(rank));
        // Of what has no name nobody knows how many places there are.
        match same.filter(|_| look.member != last_member(UNNAMED)) {
            Some(same) => like.iter().copied().filter(|id| at(id) == *same).collect(),
            None => like,
        }
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

    fn combinations(&self) -> Result<Crossings, Missing> {
        let trace = self.bug.trace;
        let groups = self.groups();
        let [a, b] = &groups[..] else {
            return Err(Missing::Other("the cause is about more than two threads".to_owned()));
        };
        for id in self.bug.events {
            if self.like(*id).is_empty() {
                let look = Look::of(trace, trace.event(*id));
                let (kind, member) = (look.kind, look.member);
                let why = format!("{HAS_NO}{kind} of `{member}` like that of the cause");
                return Err(Missing::Accesses(why));
            }
        }
        let found = match (&a[..], &b[..]) {
            ([one], [other]) => self.pairs(*one, *other)?,
            ([first, .., last], [other]) | ([other], [first, .., last]) => {
                let owns = self.parts((*first, *last));
                self.crossings((Form::Between, &Shared::ANY), &owns, &alone(&self.like(*other)))?
            }
            (one, other) => self.of_two_each(one, other)?,
        };
        match found.all {
            0 => Err(Missing::Places),
            _ => Ok(found),
        }
    }

    /// Where no other thread does what the bug's other thread did: one that found the work done, say, did not do it
    /// again. What is asked then is whether another thread's accesses of any kind can come between the two of the
    /// bug's that belong together; where none can, nor can that one.
    fn others_between(&self) -> Result<Asked, Missing> {
        let groups = self.groups();
        let ends = groups.iter().find_map(|group| match group[..] {
            [first, .., last] => Some((first, last)),
            _ => None,
        });
        let Some((first, last)) = ends else { return Err(Missing::Places) };
        let (firsts, lasts) = (self.like(first), self.like(last));
        let accesses = self.run.events.iter().filter(|event| !cells(event).is_empty());
        let others: Vec<EventId> = accesses.map(|event| event.id).collect();
        let both: BTreeSet<EventId> = lasts.iter().copied().collect();
        let (owns, others) = (self.parts_of((first, last), &firsts, &lasts), alone(&others));
        let found = self.crossings((Form::Between, &Shared::ANY), &owns, &others)?;
        if found.all > 0 {
            return Ok(Asked::Between(found));
        }
        // Who does not come to the second one says nothing about whether something can come between them.
        let about = |id: &EventId| {
            let event = self.run.event(*id);
            cells(event).into_iter().map(move |cell| (event.thread, cell))
        };
        let ended: BTreeSet<(ThreadId, CellId)> = lasts.iter().flat_map(about).collect();
        let comes_to_both = |first: &EventId| about(first).any(|it| ended.contains(&it));
        let left: Vec<EventId> =
            firsts.iter().copied().filter(|first| !comes_to_both(first)).collect();
        if self.crossings((Form::Between, &Shared::ANY), &alone(&left), &others)?.meets {
            return Err(Missing::Places);
        }
        let mut merged = firsts.iter().copied().filter(|id| {
            both.contains(id) && others.iter().any(|(other, _)| meet(self.run, *id, *other))
        });
        let name =
            |id: EventId| self.run.subject(self.run.event(id)).unwrap_or_default().to_owned();
        // What is looked at behind a wait, and used, may be one access; otherwise one that does both changes it, too.
        let is_update =
            |id: &EventId| matches!(self.run.event(*id).kind, EventKind::ReadModifyWrite { .. });
        let behind_wait = self.behind_wait((first, last), &firsts, &lasts);
        if let Some(id) = merged.clone().find(|id| behind_wait.contains(id)) {
            return Ok(Asked::Again(name(id)));
        }
        match merged.find(is_update) {
            Some(id) => Ok(Asked::OneStep(name(id))),
            // Where no thread makes them in this order any more, all that it does there may be one step.
            None => Ok(Asked::Between(self.steps(&firsts, &lasts, &others)?)),
        }
    }

    /// Between any two accesses of a thread to what these events are about, those of others. Where none can come there
    /// nothing comes between any two of them.
    fn steps(
        &self,
        firsts: &[EventId],
        lasts: &[EventId],
        others: &[Part],
    ) -> Result<Crossings, Missing> {
        let event = |id: EventId| self.run.event(id);
        let both = firsts.iter().chain(lasts);
        let about: BTreeSet<CellId> = both.flat_map(|id| cells(event(*id))).collect();
        let touches = |id: &EventId| !cells(event(*id)).is_disjoint(&about);
        let mut pairs = Vec::new();
        for thread in &self.run.threads {
            let own: Vec<EventId> = thread.events.iter().copied().filter(touches).collect();
            pairs.extend(own.windows(2).map(|pair| (pair[0], pair[1])));
        }
        self.crossings((Form::Between, &Shared::ANY), &pairs, others)
    }

    /// When an event of the bug came in the failing schedule.
    fn time(&self, id: EventId) -> Option<usize> {
        self.bug.schedule.iter().position(|event| *event == id)
    }

    /// Two events of two threads, in the order of the failing schedule.
    fn pairs(&self, one: EventId, other: EventId) -> Result<Crossings, Missing> {
        let is_first = self.time(one) < self.time(other);
        let (before, after) = if is_first { (one, other) } else { (other, one) };
        let (firsts, thens) = (alone(&self.like(before)), alone(&self.like(after)));
        self.crossings((Form::Pair, &Shared::ANY), &firsts, &thens)
    }

    /// Two events of each of two threads, in the order of the failing schedule, and about the same where those are.
    fn of_two_each(&self, one: &[EventId], other: &[EventId]) -> Result<Crossings, Missing> {
        let ends = |group: &[EventId]| group.first().copied().zip(group.last().copied());
        let (Some(one), Some(other)) = (ends(one), ends(other)) else {
            return Ok(Crossings::default());
        };
        let is_first = self.time(one.0) < self.time(other.0);
        let (own, other) = if is_first { (one, other) } else { (other, one) };
        let (owns, others) = ([own.0, own.1], [other.0, other.1]);
        // Those first that come nearest to each other where the one thread is done when the other one begins.
        let mut shared = vec![(1, 0), (1, 1), (0, 0), (0, 1)];
        shared.retain(|(one, two)| meet(self.bug.trace, owns[*one], others[*two]));
        let times = [own.1, other.0, other.1].map(|id| self.time(id));
        let form = match (times, shared.first()) {
            ([last, first, _], Some(&(one, two))) if last < first => {
                return self.pairs(owns[one], others[two]);
            }
            ([last, _, other_last], _) if other_last < last => Form::Between,
            _ => Form::Crossed,
        };
        let lasts = shared.contains(&(1, 1));
        let found =
            self.crossings((form, &Shared(shared)), &self.parts(own), &self.parts(other))?;
        // Who does it the other way round now, as one that says that something is there when it is, leaves what the other
        // thread does behind it: that may not come before it.
        let is_turned = || !self.parts((own.1, own.0)).is_empty();
        match found.all == 0 && form == Form::Between && lasts && is_turned() {
            true => self.pairs(other.1, own.1),
            false => Ok(found),
        }
    }

    fn crossings(
        &self,
        form: (Form, &Shared),
        owns: &[Part],
        others: &[Part],
    ) -> Result<Crossings, Missing> {
        let found = crossings(self.run, form, owns, others, &|| self.limits.is_left());
        found.ok_or_else(|| Missing::Other("the time ended".to_owned()))
    }

    /// Are all combinations of a thread that was alone then, while others did what begins the bug and went another way
    /// behind it?
    fn says_nothing(&self, found: &Crossings) -> bool {
        if found.meets {
            return false;
        }
        let writes = |event: &&Event| !event.kind.writes().is_empty();
        let writes: Vec<EventId> =
            self.run.events.iter().filter(writes).map(|event| event.id).collect();
        let begins = self.bug.events.first().map(|id| self.like(*id)).unwrap_or_default();
        let form = (Form::Between, &Shared::ANY);
        self.crossings(form, &alone(&begins), &alone(&writes)).map_or(true, |found| found.meets)
    }
}

/// Each of the events by itself.
fn alone(events: &[EventId]) -> Vec<Part> {
    events.iter().map(|id| (*id, *id)).collect()
}

fn cells(event: &Event) -> BTreeSet<CellId> {
    let reads = event.kind.reads().iter().map(|part| part.cell);
    reads.chain(event.kind.writes().iter().map(|part| part.cell)).collect()
}

fn place(trace: &EventTrace, id: EventId) -> String {
    Span::of(trace.event(id).site()).begin()
}

/// Has the run itself no schedule? Then that it has none with an order says nothing about the order.
fn is_contradictory(session: &mut OrderingSession<'_>) -> Result<bool, SolverError> {
    Ok(matches!(session.check(Goal::Any, &[])?, Outcome::Unsat(_)))
}

/// The lock that all combinations are kept apart by, if it is one.
fn how(run: &EventTrace, found: &Crossings) -> String {
    let locks = found.locks.iter();
    let names: BTreeSet<String> =
        locks.map(|lock| lock.map(|lock| lock_name(run, lock)).unwrap_or_default()).collect();
    match (names.iter().next(), names.len()) {
        (Some(name), 1) if !name.is_empty() => format!("`{name}` is held on both sides"),
        _ => "the threads' synchronisation rules them out".to_owned(),
    }
}

#[cfg(test)]
mod tests;
