//! Looking for a run without the failure along other paths, where no schedule of the recorded
//! paths avoids it: conflicting pairs are tried the other way round on the real program.

mod came_back;
mod checks;
mod compared;
mod interrupted;
mod plans;
mod put_off;

use super::{Attempt, Claim, ReplayError, Settings, Target, judge, run, script, with_inputs};
use compared::{Compared, compared};
use explain::{Across, Commuting, Flip, Flipped, Interrupted, is_meeting};
use model::evaluate::Evaluation;
use model::{ConditionId, EventId, EventKind, EventTrace, FailureKind, Points, Schedule, ThreadId};
use plans::{Plan, plans, whole};
use put_off::{PutOff, Waited, gates, is_long, went_round};
use render::solution::Replay;
use schedule::{Built, Script, Target as Place, Turn};
use solver::Order;
use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};
use symex::{Execution, Input};
use trace_format::Manifest;
use trace_format::layout::LeftReason;

pub use came_back::search_came_back;
pub(super) use compared::turns;

/// No more runs than this.
const ATTEMPTS: usize = 40;
/// No more time than this.
const TIME: Duration = Duration::from_secs(20);
/// So many runs follow the first one that passes, in search of one that differs less.
const MORE: usize = 8;
/// Runs that are shuffled have so many changes of priority and one more.
const SHUFFLED_DEPTH: u32 = 4;
/// A run whose threads pass so many times as many gates as one that was not held back goes round in a loop that waits.
const LONGER: u64 = 50;
/// So many gates may be passed in any line, besides.
const LINE: u64 = 10_000;
/// So many runs at most look for the last moment at which the failure can still be avoided, ...
const LAST: usize = 14;
/// ... beginning so many events before the end.
const FIRST_STEP: usize = 2;
/// So many context switches of the failing schedule, the last ones, are tried the other way round.
const SWITCHES: usize = 6;
/// After so many runs that passed and could not be compared no more are made.
const NOT_COMPARED: usize = 6;
/// A run that takes so long got nowhere, ...
const SLOW: Duration = Duration::from_secs(2);
/// ... and after so many of them others are tried first.
const SLOW_RUNS: usize = 2;
/// So many runs at most reverse less than the best one does.
const NARROWER: usize = 4;
/// What a run gets beside its share of the recorded time.
const LEAST_RUN: Duration = Duration::from_secs(3);
/// With so many differences, what a run that passes tells is little sure.
const FAR: usize = 1_000;
/// How much slower than the recorded run an attempt may be.
const SLOWER: u32 = 10;
/// Where the recorded run hung, most attempts hang too, and each of them is waited for: they get this part
/// of the patience.
const HASTE: u32 = 3;

/// The failing schedule.
#[derive(Clone, Copy, Debug)]
pub struct Failing<'a> {
    /// The recorded run's manifest.
    pub manifest: &'a Manifest,
    /// The event trace.
    pub trace: &'a EventTrace,
    /// The places of its events.
    pub points: &'a Points,
    /// What calls gave in the recorded run.
    pub inputs: &'a [Input],
    /// The schedule.
    pub schedule: &'a Schedule,
    /// What it does.
    pub evaluation: &'a Evaluation,
}

/// A run that passes along other paths.
#[derive(Debug)]
pub struct CrossAlternate {
    /// The run's event trace.
    pub trace: EventTrace,
    /// Its order, as it was observed.
    pub schedule: Schedule,
    /// What that order does.
    pub evaluation: Evaluation,
    /// How it differs from the failing schedule.
    pub across: Across,
    /// The schedule's text.
    pub script: String,
    /// Did a further run under that text pass too?
    pub replay: Replay,
    /// What there is to say about that.
    pub note: Option<String>,
    /// What of the failing run it is about.
    pub told: Told,
}

/// What of the failing run a run that passes tells of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// The failure.
    Failure,
    /// A check that went the other way in it, where the failure tells of one.
    Check(ConditionId),
    /// Steps of a thread that are not interrupted in it. Runs that followed the failing schedule up to the second of them
    /// failed.
    Interrupted(Interrupted),
}

impl CrossAlternate {
    /// What to say of a run that is so far from the failing one that much else may decide.
    #[must_use]
    pub fn far(&self) -> Option<String> {
        let Across { distance, .. } = self.across;
        (distance >= FAR && self.told == Told::Failure).then(|| {
            format!(
                "the run that passes is far from the failing one: {distance} reads and events differ in them, and the \
                 pair shown may be a consequence of another difference"
            )
        })
    }
}

/// What came of a search.
#[derive(Debug, Default)]
pub struct Found {
    /// The alternate.
    pub alternate: Option<CrossAlternate>,
    /// How many runs were made.
    pub attempts: usize,
    /// How many of them passed, but could not be compared with the failing schedule.
    pub not_compared: usize,
}

/// Tries flips, and runs of one thread after the other, until some runs passed or the budget is
/// spent, and confirms the run that differs least from the failing schedule by another run under
/// its own order. `deadline` ends the search early.
///
/// # Errors
///
/// When the user interrupts. That the program cannot be run, or not be compared, ends the search.
pub fn search(
    failing: &Failing<'_>,
    target: &Target,
    settings: &Settings,
    deadline: Option<Instant>,
) -> Result<Found, ReplayError> {
    search_by(failing, target, settings, deadline, Search::run)
}

/// A way to look for a run that passes.
type Way<'a> = fn(&mut Search<'a>) -> Result<Option<CrossAlternate>, ReplayError>;

fn search_by<'a>(
    failing: &'a Failing<'a>,
    target: &'a Target,
    settings: &'a Settings,
    deadline: Option<Instant>,
    way: Way<'a>,
) -> Result<Found, ReplayError> {
    let end = Instant::now() + TIME;
    let end = deadline.map_or(end, |deadline| deadline.min(end));
    let _span = tracing::info_span!("across_paths").entered();
    let mut search = Search {
        failing,
        target,
        settings,
        end,
        deadline,
        attempts: 0,
        steps: 0,
        not_compared: 0,
        enough: NOT_COMPARED,
        passed: vec![],
        made: vec![],
        put_off: PutOff::default(),
    };
    let alternate = match way(&mut search) {
        Ok(alternate) => alternate,
        Err(error @ ReplayError::Interrupted(_)) => return Err(error),
        Err(error) => {
            tracing::info!(%error, "the search for other paths ended");
            None
        }
    };
    Ok(Found { alternate, attempts: search.attempts, not_compared: search.not_compared })
}

/// A run that passed.
struct Passed {
    trace: EventTrace,
    points: Points,
    inputs: Vec<Input>,
    schedule: Schedule,
    evaluation: Evaluation,
    across: Across,
    /// What it was made to follow, if it did so to the end.
    followed: Option<String>,
    /// The pair that was to be reversed, if one was.
    flip: Option<Flip>,
    /// What of the failing run it was to tell of.
    told: Told,
    /// After how many gates behind its schedule it was ended, if it was.
    tail: Option<u64>,
}

impl Passed {
    /// The least explains best: a run that differs in what was read tells more than one that only did other things; least tells
    /// in which order threads came to a barrier or added to a counter, that a thread waited a round more or less, or one in which
    /// one went round a loop while the other one of the pair was held back; then one that is near to the failing schedule, and,
    /// of these, one that was made to reverse a pair that promised something. Then one in which the failing thread kept to its
    /// path nearly up to the failure, one with a pair of which both had happened in the failing run, and the fewest data-flows
    /// explain best; in a run that hung, before these, what happened late (`hung`: the failing schedule of one that did), in all
    /// or in the thread that hangs, since any delay before that keeps it from hanging.
    fn key(
        &self,
        failing: &EventTrace,
        hung: Option<&[EventId]>,
    ) -> impl Ord + std::fmt::Debug + use<> {
        let across = &self.across;
        let early = hung.map_or(0, |order| match across.flipped {
            Flipped::Reversed(pair) => {
                let in_all = order.iter().rev().position(|id| *id == pair.before).unwrap_or(0);
                // What the thread that hangs did last led it there, whatever others did since.
                let own = failing.failure.as_ref().map(|failure| failing.thread_of(failure.event));
                let from_end = |id| own?.events.iter().rev().position(|other| *other == id);
                let in_own = [pair.before, pair.after].into_iter().filter_map(from_end);
                in_own.fold(in_all, usize::min)
            }
            Flipped::Late { .. } => 0,
        });
        let early = early.checked_ilog2().unwrap_or(0);
        let meets = match across.flipped {
            Flipped::Reversed(order) => {
                is_meeting(failing, order)
                    || across.only_waits
                    || Commuting::new(failing).has(order)
            }
            Flipped::Late { .. } => false,
        };
        let flows = across.failing_only.len().max(across.passing_only.len());
        let alone = flows.saturating_sub(across.follows.len());
        let unexplained = across.branches.is_empty() && flows == 0;
        let behind = across.behind.checked_ilog2().unwrap_or(0);
        let events = across.failing.len() + across.passing.len();
        let differs = (alone, flows, across.operations, events, across.distance);
        let distance = across.distance.checked_ilog2().unwrap_or(0);
        let by = (self.told == Told::Failure, self.flip.is_none());
        let late = matches!(across.flipped, Flipped::Late { .. });
        let round = went_round(across.in_between, failing.events.len());
        let vague = (unexplained, flows == 0, meets, round);
        (by.0, vague, distance, behind, by.1, early, late, differs)
    }
}

struct Search<'a> {
    failing: &'a Failing<'a>,
    target: &'a Target,
    settings: &'a Settings,
    end: Instant,
    /// When the user's time is up, if it is limited.
    deadline: Option<Instant>,
    attempts: usize,
    /// The most gates that a run passed in which no thread was waited for in vain.
    steps: u64,
    not_compared: usize,
    /// When so many could not be compared, no more are made.
    enough: usize,
    passed: Vec<Passed>,
    /// What was tried before all else.
    made: Vec<Plan>,
    /// Runs that passed and are looked at where no others did.
    put_off: PutOff,
}

impl Search<'_> {
    fn run(&mut self) -> Result<Option<CrossAlternate>, ReplayError> {
        let Failing { trace, schedule, evaluation, .. } = *self.failing;
        let flips = explain::flips(trace, schedule, evaluation);
        // The runs that still hang take longest, and what happened last tells most there.
        let hangs = self.hangs();
        let mut switch = if hangs { self.last_switch()? } else { None };
        if let Some(found) = self.by_values_that_came_back()? {
            return Ok(Some(found));
        }
        if let Some(found) = self.by_checks()? {
            return Ok(Some(found));
        }
        let mut more = MORE;
        // Those that were made to know the checks' ways tell little.
        let (known, most) = (self.passed.len(), ATTEMPTS + self.attempts);
        self.enough += self.not_compared;
        let mut plans = VecDeque::from(plans(&flips, trace.threads.len(), self.ahead()));
        plans.retain(|plan| !self.made.contains(plan));
        let mut slow = 0;
        let begun = Instant::now();
        while let Some(plan) = plans.pop_front() {
            let found = self.passed.len() > known;
            let over = is_over((begun, self.end), Instant::now(), found);
            if self.attempts >= most || over || self.is_beyond_compare() {
                break;
            }
            let started = Instant::now();
            self.try_out(&plan)?;
            if self.passed.len() > known {
                if more == 0 {
                    break;
                }
                more -= 1;
            }
            // Who is held back before the second of a pair may have what all others spin for.
            slow += usize::from(started.elapsed() >= SLOW);
            if slow == SLOW_RUNS && self.passed.is_empty() {
                plans.make_contiguous().sort_by_key(|plan| !plan.is_whole());
                slow += 1;
            }
        }
        if !hangs {
            switch = self.last_switch()?;
        }
        let moment = self.last_moment(switch)?;
        let hung = hangs.then_some(schedule.order.as_slice());
        self.passed.sort_by_cached_key(|passed| passed.key(trace, hung));
        self.narrow(&flips)?;
        if self.passed.is_empty() {
            self.look_at_those_put_off();
        }
        tracing::info!(attempts = self.attempts, passed = self.passed.len(), "looked across paths");
        self.passed.sort_by_cached_key(|passed| passed.key(trace, hung));
        for passed in &self.passed {
            tracing::debug!(key = ?passed.key(trace, hung), flipped = ?passed.across.flipped, flip = ?passed.flip, branches = ?passed.across.branches, "passed");
        }
        if let Some(found) = self.by_interrupted(moment)? {
            return Ok(Some(found));
        }
        let mut first = None;
        for passed in std::mem::take(&mut self.passed) {
            let alternate = self.confirm(passed)?;
            if alternate.replay == Replay::Confirmed {
                return Ok(Some(alternate));
            }
            first.get_or_insert(alternate);
            if Instant::now() >= self.end {
                break;
            }
        }
        Ok(first)
    }

    /// The created thread that wrote what the failing thread read last of others, and the failing thread.
    fn ahead(&self) -> Option<(usize, usize)> {
        let Failing { trace, schedule, evaluation, .. } = *self.failing;
        let failing = trace.thread_of(trace.failure.as_ref()?.event);
        let created = |thread: ThreadId| (thread.index() != 0).then_some(thread.index());
        let last_first = schedule.order.iter().rev().map(|id| trace.event(*id));
        let reads = last_first.filter(|event| event.thread == failing.id);
        let mut wrote = reads.flat_map(|event| {
            let sources = event.kind.reads().iter().map(|part| evaluation.source(event, part.cell));
            sources.flatten().map(|write| trace.event(write).thread)
        });
        let first = wrote.find(|wrote| *wrote != failing.id && created(*wrote).is_some())?;
        Some((created(first)?, created(failing.id)?))
    }

    /// Did runs pass, and none of them could be compared? The next would be as long.
    fn is_beyond_compare(&self) -> bool {
        self.passed.is_empty() && self.not_compared >= self.enough
    }

    /// Looks for the last place in the failing schedule up to which a run can follow it and still
    /// pass: what happens there decides. Goes back from the end in steps that double until a run
    /// passes, and halves the last step, taking it that within that step there is one place before
    /// which runs pass and behind which they fail. Of the whole schedule that need not be so: the
    /// threads that go first from a place can make the same mistake.
    ///
    /// `switch` is where a run has passed already.
    /// Gives the last place of which it is known that runs pass, and the first one of which it is known that they fail.
    fn last_moment(&mut self, switch: Option<usize>) -> Result<(usize, usize), ReplayError> {
        let length = self.failing.schedule.order.len();
        let (mut passes, mut fails) = (switch.unwrap_or(0), length);
        let mut last = None;
        let mut step = Some(FIRST_STEP);
        for _ in 0..LAST {
            if fails - passes <= 1 || Instant::now() >= self.end || self.is_beyond_compare() {
                break;
            }
            let middle = match step {
                Some(step) if passes + step < length => length - step,
                _ => passes.midpoint(fails),
            };
            match self.attempt(&Plan::Until(middle))? {
                Some(run) if !failed(&run.0) => {
                    passes = middle;
                    last = Some(run);
                    step = None;
                }
                _ => {
                    fails = middle;
                    step = step.map(|step| 2 * step);
                }
            }
        }
        if let Some((attempt, text)) = last {
            self.look_at(&Plan::Until(passes), attempt, text);
        }
        Ok((passes, fails))
    }

    /// Looks for the last context switch before which the other threads can go on instead, and the
    /// run passes. Its place in the failing schedule, if one of the last few is such.
    fn last_switch(&mut self) -> Result<Option<usize>, ReplayError> {
        let Failing { trace, schedule, .. } = *self.failing;
        let thread = |id: &EventId| trace.event(*id).thread;
        let pairs = schedule.order.windows(2).enumerate();
        let switches = pairs.filter(|(_, pair)| thread(&pair[0]) != thread(&pair[1]));
        let places: Vec<usize> = switches.map(|(place, _)| place + 1).collect();
        for place in places.into_iter().rev().take(SWITCHES) {
            if Instant::now() >= self.end {
                break;
            }
            let plan = Plan::Until(place);
            if let Some((attempt, text)) = self.attempt(&plan)?
                && !failed(&attempt)
            {
                self.look_at(&plan, attempt, text);
                return Ok(Some(place));
            }
        }
        Ok(None)
    }

    /// Where the best run reverses two far events, tries the flips between the same threads that lie
    /// within that one: where one passes, the others reverse more than it needs.
    fn narrow(&mut self, flips: &[Flip]) -> Result<(), ReplayError> {
        let Failing { trace, schedule, .. } = *self.failing;
        let Some(best) = self.passed.first().and_then(|passed| passed.flip) else { return Ok(()) };
        let mut places = vec![0; trace.events.len()];
        schedule.order.iter().enumerate().for_each(|(place, id)| places[id.index()] = place);
        let place = |id: EventId| places[id.index()];
        let thread = |id: EventId| trace.event(id).thread;
        let within = |outer: Flip, inner: Flip| {
            outer != inner
                && thread(inner.before) == thread(outer.before)
                && thread(inner.after) == thread(outer.after)
                && place(inner.before) >= place(outer.before)
                && place(inner.after) <= place(outer.after)
        };
        let all = flips.iter().copied();
        let mut narrower: Vec<Flip> = all.filter(|flip| within(best, *flip)).collect();
        narrower.sort_by_key(|flip| place(flip.after).saturating_sub(place(flip.before)));
        for flip in narrower.into_iter().take(NARROWER) {
            if Instant::now() >= self.end {
                break;
            }
            self.try_out(&Plan::Near(flip))?;
            if self.passed.iter().any(|passed| passed.flip == Some(flip)) {
                let wider = |known: Option<Flip>| known.is_some_and(|known| within(known, flip));
                self.passed.retain(|passed| !wider(passed.flip));
                break;
            }
        }
        Ok(())
    }

    /// Runs the program once, and keeps the run if it passes.
    fn try_out(&mut self, plan: &Plan) -> Result<(), ReplayError> {
        if let Some((attempt, text)) = self.attempt(plan)?
            && !failed(&attempt)
        {
            self.look_at(plan, attempt, text);
        }
        Ok(())
    }

    /// Keeps a run that passed, or puts it off when it is much longer than the failing one.
    fn look_at(&mut self, plan: &Plan, attempt: Attempt, text: String) {
        let gates = gates(&attempt.directory);
        if is_long(gates, self.failing.trace.events.len()) {
            self.put_off.add(Waited { plan: plan.clone(), attempt, text, gates });
        } else {
            self.keep(plan, &attempt, text, Told::Failure);
        }
    }

    /// Keeps what was put off, the first one in any case.
    fn look_at_those_put_off(&mut self) {
        for Waited { plan, attempt, text, .. } in self.put_off.take() {
            if !self.passed.is_empty() && Instant::now() >= self.end {
                return;
            }
            self.keep(&plan, &attempt, text, Told::Failure);
        }
    }

    /// Runs the program once, and gives what it was told; none when it could not be run so.
    fn attempt(&mut self, plan: &Plan) -> Result<Option<(Attempt, String)>, ReplayError> {
        match self.text(plan) {
            Some(text) => self.attempt_with(plan, text),
            None => Ok(None),
        }
    }

    /// The same with a text that is known.
    fn attempt_with(
        &mut self,
        plan: &Plan,
        text: String,
    ) -> Result<Option<(Attempt, String)>, ReplayError> {
        let noise = match *plan {
            Plan::Shuffled(seed) => Some(self.shuffled(seed)),
            _ => None,
        };
        self.attempts += 1;
        // One run that cannot be made is no reason to throw away those that passed.
        let mut attempt = match self.execute(&text, noise.clone(), None) {
            Err(error) if !matches!(error, ReplayError::Interrupted(_)) => {
                tracing::info!(?plan, %error, "a run could not be made");
                return Ok(None);
            }
            attempt => attempt?,
        };
        if let Some(shorter) = self.shorter(&attempt, &text, noise)? {
            attempt = shorter;
        }
        let report = &attempt.report;
        let steps = report.steps;
        tracing::debug!(?plan, left = ?report.left, steps, failed = failed(&attempt), "attempt");
        let in_vain = |reason| matches!(reason, LeftReason::Late | LeftReason::Blocked);
        if report.left.is_none_or(|left| !in_vain(left.reason)) {
            self.steps = self.steps.max(steps);
        }
        Ok(Some((attempt, text)))
    }

    /// Keeps a run that passed, if it can be compared, and differs in what it was to tell of.
    fn keep(&mut self, plan: &Plan, attempt: &Attempt, text: String, told: Told) {
        let flip = match *plan {
            Plan::Near(flip) | Plan::Prefix(flip) | Plan::Check(flip) => Some(flip),
            Plan::Until(_)
            | Plan::Serial { .. }
            | Plan::Whole(_)
            | Plan::Free
            | Plan::Goes(_)
            | Plan::UpTo(_)
            | Plan::Shuffled(_) => None,
        };
        let forced = flip.map(|flip| Order { before: flip.before, after: flip.after });
        // A thread that cannot get to its end in one go lets others help, which goes the same way
        // again.
        let whole = matches!(plan, Plan::Whole(_) | Plan::Until(_));
        let shuffled = matches!(plan, Plan::Shuffled(_));
        let followed = !shuffled && (whole || attempt.report.left.is_none());
        let followed = followed.then_some(text);
        match compared(self.failing, attempt, forced, &told) {
            Ok(found) => {
                let across = &found.across;
                let (flows, distance) = (across.failing_only.len(), across.distance);
                tracing::debug!(?plan, flows, distance, events = across.failing.len(), "passed");
                let Compared { execution, schedule, evaluation, across } = found;
                let Execution { trace, points, inputs, .. } = execution;
                self.passed.push(Passed {
                    trace,
                    points,
                    inputs,
                    schedule,
                    evaluation,
                    across,
                    followed,
                    flip,
                    told,
                    tail: attempt.tail.filter(|_| attempt.report.far),
                });
            }
            Err(why) => {
                self.not_compared += 1;
                tracing::info!(?plan, why, "a run that passed was not compared");
            }
        }
    }

    /// The schedule's text; none when the plan has no place where a thread can be stopped.
    fn text(&self, plan: &Plan) -> Option<String> {
        let Failing { trace, points, inputs, schedule, .. } = *self.failing;
        let built = match *plan {
            Plan::Near(flip) => {
                let order = explain::flipped_order(trace, schedule, flip);
                schedule::passing(trace, points, &order)
            }
            Plan::Prefix(flip) => {
                schedule::prefix(trace, points, &schedule.order, flip.before, Some(flip.after))
            }
            Plan::Until(place) => self.until(place)?,
            Plan::Serial { backwards } => {
                schedule::passing(trace, points, &explain::serial_order(trace, backwards))
            }
            Plan::Whole(ref threads) => {
                let script = whole(&trace.threads, threads);
                return Some(with_inputs(script, inputs).to_string());
            }
            // Their texts are those of what comes before the check.
            Plan::Check(_) | Plan::Goes(_) | Plan::UpTo(_) => return None,
            Plan::Free => return Some(with_inputs(Script::default(), inputs).to_string()),
            // A run follows either a text or its priorities.
            Plan::Shuffled(_) => return Some(String::new()),
        };
        let turns = !built.script.turns.is_empty();
        turns.then(|| with_inputs(built.script, inputs).to_string())
    }

    /// See [`Plan::Until`].
    fn until(&self, place: usize) -> Option<Built> {
        let Failing { trace, points, schedule, .. } = *self.failing;
        let thread_of = |id: EventId| trace.event(id).thread;
        let &until = schedule.order.get(place)?;
        let (done, rest) = schedule.order.split_at(place);
        let others: Vec<EventId> =
            rest.iter().copied().filter(|id| thread_of(*id) != thread_of(until)).collect();
        let performed = |id: &EventId| {
            !matches!(trace.event(*id).kind, EventKind::Failure | EventKind::Block { .. })
        };
        let first = others.iter().copied().find(performed);
        let mut built = schedule::prefix(trace, points, &schedule.order, until, first);
        // Those that the failing run names no further event of may have gone on, had it not ended.
        let last = trace.threads.iter().filter_map(|thread| thread.events.last());
        let cut = last.filter(|id| trace.event(**id).kind != EventKind::Exit);
        let begun: BTreeSet<ThreadId> = done
            .iter()
            .map(|id| match trace.event(*id).kind {
                EventKind::Fork { child } => child,
                _ => thread_of(*id),
            })
            .collect();
        let mut named = BTreeSet::from([thread_of(until)]);
        for thread in others.into_iter().chain(cut.copied()).map(thread_of) {
            if begun.contains(&thread) && named.insert(thread) {
                let thread = trace.threads.get(thread.index())?.name.clone();
                let turn = Turn { thread, target: Place::End, comment: None };
                built.script.turns.push(turn);
            }
        }
        Some(built)
    }

    /// Did the run fail as the recorded one did? One that was ended by its time, or failed otherwise, says nothing of what led
    /// to that failure.
    fn fails_alike(&self, attempt: &Attempt) -> bool {
        judge::failing(self.failing.manifest, attempt).confirms(Claim::Fails)
    }

    /// The noise with which a run has this seed's priorities.
    fn shuffled(&self, seed: u64) -> String {
        // A thread passes some gates and sync points for each of its events.
        let steps = 2 * self.failing.trace.events.len().max(1);
        format!("pct,{seed},{SHUFFLED_DEPTH},{steps}")
    }

    /// Did the recorded run hang?
    fn hangs(&self) -> bool {
        self.failing.trace.failure.as_ref().is_some_and(|failure| {
            matches!(
                failure.kind,
                FailureKind::Hang | FailureKind::Deadlock | FailureKind::StillRunning
            )
        })
    }

    /// A run under the same schedule that ends soon behind the failure's place, where this one passed and goes on for long:
    /// to walk what comes there takes long, and tells nothing. So it does where this one failed, and the program goes on
    /// until it fails: it may have come past the place before.
    fn shorter(
        &self,
        attempt: &Attempt,
        text: &str,
        noise: Option<String>,
    ) -> Result<Option<Attempt>, ReplayError> {
        let original = &self.target.original;
        let fails_again = failed(attempt) && original.tail().is_some();
        let goes_on = !failed(attempt) && (attempt.report.far || attempt.is_long());
        if !(goes_on || fails_again) || !original.may_go_on() {
            return Ok(None);
        }
        for tail in original.short_tails() {
            match self.execute(text, noise.clone(), Some(tail)) {
                Ok(shorter) if shorter.manifest.failure.is_some() => break,
                Ok(shorter) if !failed(&shorter) => {
                    let bytes = [attempt, &shorter].map(|run| run.manifest.stream_bytes());
                    tracing::info!(tail, ?bytes, "ended behind the failure's place");
                    return Ok(Some(shorter));
                }
                Err(error @ ReplayError::Interrupted(_)) => return Err(error),
                _ => {}
            }
        }
        Ok(None)
    }

    /// Runs the program once, no further than `tail` gates behind the schedule, if that is given.
    fn execute(
        &self,
        text: &str,
        noise: Option<String>,
        tail: Option<u64>,
    ) -> Result<Attempt, ReplayError> {
        let recorded = Duration::from_millis(self.failing.manifest.duration_ms.unwrap_or(0));
        let enough = LEAST_RUN.saturating_add(recorded.saturating_mul(SLOWER));
        let patience = match self.hangs() {
            true => self.settings.patience / HASTE,
            false => self.settings.patience,
        };
        let timeout = self.settings.timeout.min(enough);
        // Who passes many more goes round in a loop, waiting for somebody who is held back.
        let round = (self.steps > 0).then(|| LINE.max(self.steps.saturating_mul(LONGER)));
        // A thread that never ends is not waited for until its end.
        let original = &self.target.original;
        let endless = original.tail().or(tail.map(|_| original.a_while()));
        let gates = round.into_iter().chain(endless).min();
        let settings = Settings { patience, gates, tail, timeout, noise, ..self.settings.clone() };
        run(self.target, text, &settings)
    }

    /// Runs the program under the order that was observed, or, when that does not work, under what
    /// led to the run.
    fn confirm(&self, passed: Passed) -> Result<CrossAlternate, ReplayError> {
        let tail = passed.tail;
        let Passed { trace, points, inputs, schedule, evaluation, across, followed, told, .. } =
            passed;
        let observed = script(Claim::Passes, &trace, &points, &inputs, &schedule).ok();
        let mut verdict = None;
        for text in [&observed, &followed].into_iter().flatten() {
            let attempt = self.execute(text, None, tail)?;
            let judged = judge::passing(self.failing.manifest, &attempt);
            let confirmed = judged.confirms(Claim::Passes);
            let note = judge::note(Claim::Passes, &judged, &attempt);
            let replay = if confirmed { Replay::Confirmed } else { Replay::Diverged };
            if confirmed || verdict.is_none() {
                verdict = Some((replay, note, text.clone()));
            }
            if confirmed {
                break;
            }
        }
        let (replay, note, script) = verdict.unwrap_or_default();
        Ok(CrossAlternate { trace, schedule, evaluation, across, script, replay, note, told })
    }
}

/// Is the time over in which pairs are tried? Where a run was found that passes, half of it is for the last moment, which
/// mostly tells more: where runs are long, to look at some of them takes all there is.
fn is_over((begun, end): (Instant, Instant), now: Instant, found: bool) -> bool {
    let all = end.saturating_duration_since(begun);
    now >= if found { begun + all / 2 } else { end }
}

fn failed(attempt: &Attempt) -> bool {
    attempt.manifest.failure.is_some() || attempt.report.deadlock || judge::is_undecided(attempt)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_time_is_left_for_the_last_moment() {
        let begun = Instant::now();
        let end = begun + Duration::from_secs(20);
        let over =
            |seconds, found| is_over((begun, end), begun + Duration::from_secs(seconds), found);
        assert!(over(11, true) && over(20, false));
        assert!(!over(9, true) && !over(19, false));
    }
}
