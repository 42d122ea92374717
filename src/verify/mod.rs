//! After a patch: is the same cause still possible in the new program?
//!
//! The new program runs under the failing schedule, as far as its places still exist, and under
//! noise. What fails is solved, and its cause compared; what passes is asked whether the order of
//! the cause could still come up along its paths. Where it could, the new program is made to have it. Nothing is
//! claimed that was not seen or shown.

mod asked;
mod before;
mod control;
mod forced;
mod others;
mod runs;

use crate::compare::{Comparison, Traits, alike, compare};
use crate::fix::{FixError, Recorded, Unshown, bug, ordered};
use crate::pipeline::{self, ReplayOptions, SolveOptions};
use asked::{Question, Unasked, asked_of};
pub use before::Before;
use control::{Answer, Control, control};
use explain::Pattern;
use forced::{Forced, force};
pub use others::Other;
use render::Solution;
use repair::{APART, HAS_NO, Possible};
use runs::{Kind, Runner, Taken, in_turn};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The value of [`Verification::format`].
pub const FORMAT: &str = "symbiosis-verification";
/// The version of the format.
pub const VERSION: &str = "1.3";

/// So many runs that passed are asked whether the order could still come up.
const ASKED: usize = 3;
/// So many of each kind are kept for that: some have nothing to say.
const KEPT: usize = 20;
/// When so many had nothing to say, no others are asked.
const SILENT: usize = 9;

/// What to verify, and how hard.
#[derive(Clone, Debug)]
pub struct Options {
    /// The new program.
    pub program: PathBuf,
    /// Its arguments; none for the recorded ones.
    pub arguments: Option<Vec<std::ffi::OsString>>,
    /// How often to run it under the failing schedule.
    pub scheduled: u32,
    /// How often to run it under noise.
    pub noisy: u32,
    /// Wall-clock time for all of it.
    pub time: Duration,
    /// Where to keep the trace of a run that shows that it still fails.
    pub keep: Option<PathBuf>,
}

/// The verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// A run failed for the same cause.
    StillFails,
    /// Runs failed, none of them for the same cause as far as is known, and not only by bugs that the recorded program
    /// was seen to have as well.
    FailsOtherwise,
    /// No run failed but by another bug of the recorded program ([`Verification::others`]), and along the paths of those
    /// that were asked the order cannot come up.
    NoLongerPossible,
    /// No run failed but by such a bug, also not where the new program was made to have the order, wherever it can still
    /// come up along the paths of the runs that were asked.
    NoLongerHarmful,
    /// No run failed but by such a bug, and more is not known.
    #[default]
    Undecided,
}

/// What `symbiosis verify` found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verification {
    /// [`FORMAT`].
    pub format: String,
    /// [`VERSION`].
    pub version: String,
    /// The verdict.
    pub verdict: Verdict,
    /// Why, in words.
    pub reason: String,
    /// The cause of the recorded failure.
    pub cause: String,
    /// How many runs there were under the failing schedule.
    pub scheduled_runs: u32,
    /// In how many of them the schedule was followed to its end, as far as it goes.
    pub followed: u32,
    /// How many runs there were under noise.
    pub noisy_runs: u32,
    /// How many runs there were under nothing, where the failure needs a write that is seen late.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub plain_runs: u32,
    /// How many runs failed.
    pub failed_runs: u32,
    /// The other causes by which runs failed.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub others: Vec<Other>,
    /// How many runs that passed were asked whether the order could still come up.
    pub asked_runs: u32,
    /// In how many runs the program was made to have the order, by schedules of runs that were asked.
    #[serde(default)]
    pub forced_runs: u32,
    /// What the recorded program does in such runs; only where that matters, as nothing is known but that none of the new one's
    /// failed, or runs of the recorded program that pass say of the order what the new one's say.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub recorded_program: Option<Before>,
    /// The comparison with the failure that was found, if one was.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub comparison: Option<Comparison>,
    /// The trace of the run that shows it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub shown_by: Option<PathBuf>,
}

/// Runs the new program and says whether the cause is still possible.
///
/// # Errors
/// When the program cannot be run or does not record, or the solution is another trace's.
pub fn verify(
    recorded: &Recorded,
    solution: &Solution,
    options: &Options,
) -> Result<Verification, FixError> {
    let started = Instant::now();
    let budget = || started.elapsed() < options.time;
    let mut found = Verification {
        format: FORMAT.to_owned(),
        version: VERSION.to_owned(),
        cause: solution.cause.as_ref().map(|cause| cause.sentence.clone()).unwrap_or_default(),
        ..Verification::default()
    };
    let mut runner = Runner::new(recorded, solution, options)?;
    let judge = Judge { solution, options };
    let plan = runner.plan(options);
    let mut passed: Vec<Taken> = Vec::new();
    for kind in plan {
        if !budget() {
            break;
        }
        let taken = match kind {
            Kind::Scheduled => runner.run_failing()?,
            _ => runner.run(kind, "")?,
        };
        let is_first = found.noisy_runs + found.scheduled_runs == 0;
        if is_first && !kind.is_scheduled() {
            runner.keep_known_places(&taken);
        }
        match kind {
            Kind::Noisy(_) => found.noisy_runs += 1,
            Kind::Plain => found.plain_runs += 1,
            Kind::Scheduled | Kind::Forced => {
                found.scheduled_runs += 1;
                found.followed += u32::from(taken.followed);
            }
        }
        if taken.held_up {
            continue;
        }
        if !taken.failed {
            let of_kind =
                passed.iter().filter(|other| other.kind.is_scheduled() == kind.is_scheduled());
            if of_kind.count() < KEPT {
                passed.push(taken);
            }
            continue;
        }
        judge.failed(&taken, &mut found)?;
        if found.verdict == Verdict::StillFails {
            return Ok(found);
        }
    }
    if found.verdict == Verdict::FailsOtherwise
        && !others::are_known(recorded, (judge, &runner), &mut found, &budget)?
    {
        return Ok(found);
    }
    let took = started.elapsed();
    let doubted = ask(recorded, judge, (&runner, &passed), &mut found, &budget)?;
    if found.verdict == Verdict::Undecided && found.unscheduled() > 0 && found.others.is_empty() {
        before::beside(recorded, (judge, &runner), &mut found, took, &budget)?;
    }
    if let Some(Doubted { control, answer, why }) = doubted
        && found.verdict == Verdict::Undecided
    {
        let taken = found.recorded_program.unwrap_or_default();
        let answer = Answer { passed: found.unscheduled(), ..answer };
        if !(Control { taken, ..control }).is_against(answer) {
            found.ruled_out(&why);
        }
    }
    Ok(found)
}

/// What a run that fails is compared with.
#[derive(Clone, Copy)]
struct Judge<'a> {
    solution: &'a Solution,
    options: &'a Options,
}

impl Judge<'_> {
    /// Says of a run that it failed, and whether that was for the same cause. Gives whether it was for one that the recorded program
    /// was already seen to fail for.
    fn failed(self, taken: &Taken, found: &mut Verification) -> Result<bool, FixError> {
        found.failed_runs += 1;
        let (time, is_first) = (self.options.time / 4, found.comparison.is_none());
        let told = compared(taken, self.solution, time, is_first);
        let same = told.as_ref().is_some_and(|told| told.same);
        let is_known = !same && others::note(&mut found.others, self.solution, told.as_ref());
        let Some(Told { comparison, .. }) = told else {
            if found.comparison.is_none() {
                found.reason = "a run failed, and its cause is not known".to_owned();
            }
            found.verdict = Verdict::FailsOtherwise;
            return Ok(false);
        };
        if same || found.comparison.is_none() {
            found.verdict = if same { Verdict::StillFails } else { Verdict::FailsOtherwise };
            let how = match taken.kind {
                Kind::Scheduled => "under the failing schedule",
                Kind::Noisy(_) => "under noise",
                Kind::Plain => "as it is",
                Kind::Forced => "that was made to have the order of the cause",
            };
            found.reason = format!("a run {how} failed: {}", comparison.sides[1].cause);
            found.comparison = Some(comparison);
            let earlier = found.shown_by.take();
            found.shown_by = taken.keep(self.options.keep.as_deref(), earlier)?;
        }
        Ok(is_known)
    }
}

/// What is known of a run that failed.
struct Told {
    comparison: Comparison,
    /// The cause is the recorded one.
    same: bool,
    /// Its cause, as its log alone tells it, and then as runs of the program do.
    traits: Vec<Traits>,
}

/// Solves a failing run, with runs of the program if there is something for that. `None` when it has no cause.
fn claimed(taken: &Taken, time: Duration, replay: Option<ReplayOptions>) -> Option<Solution> {
    let options = SolveOptions::for_cause(time, replay);
    let answer = pipeline::solve(&taken.directory, &options);
    let answer = answer.inspect_err(|error| tracing::info!(%error, "a failing run is not solved"));
    answer.ok().map(|answer| answer.solution).filter(|solution| solution.cause.is_some())
}

/// Solves a failing run, compares its cause, and says whether it is the same: the patch may have parted the lines that the
/// fingerprint knows the distance of. `None` when it has no cause. Where it is not the same, the program is run for it, too, as for
/// the recorded one: always for the first run that fails (`is_first`), and later where every schedule along its paths
/// fails, and not only along those of the recorded run.
fn compared(taken: &Taken, solution: &Solution, time: Duration, is_first: bool) -> Option<Told> {
    let every = |solution: &Solution| {
        let pattern = solution.cause.as_ref().map(|cause| cause.pattern.as_str());
        pattern == Some(explain::Pattern::EverySchedule.name())
    };
    let is_same = |other: &Solution| compare(solution, other).same || alike(solution, other);
    let by_log = claimed(taken, time, None)?;
    // The recorded cause is that of runs of the program, too, where these tell another one than the log alone.
    let asks = !is_same(&by_log) && (is_first || (every(&by_log) && !every(solution)));
    let by_runs = asks.then(|| claimed(taken, time, Some(ReplayOptions::default()))).flatten();
    let traits = [Some(&by_log), by_runs.as_ref()].into_iter().flatten().map(Traits::of).collect();
    let other = by_runs.unwrap_or(by_log);
    Some(Told { comparison: compare(solution, &other), same: is_same(&other), traits })
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// An answer that the recorded program gives as well.
struct Doubted {
    control: Control,
    answer: Answer,
    why: String,
}

/// Asks runs that passed whether the order of the cause can still come up along their paths. Gives the answer that it cannot where
/// it is undecided because runs of the recorded program say that as well.
fn ask(
    recorded: &Recorded,
    judge: Judge<'_>,
    (runner, passed): (&Runner, &[Taken]),
    found: &mut Verification,
    budget: &dyn Fn() -> bool,
) -> Result<Option<Doubted>, FixError> {
    let undecided = |found: &mut Verification, why: String| {
        found.verdict = Verdict::Undecided;
        found.reason = why;
        Ok(None)
    };
    let none = found.none_failed();
    if !judge.solution.late_writes.is_empty() {
        let why = format!(
            "{none}, but no run can be made to have a write that is seen late, so that says little: look \
             whether fences stand where `symbiosis fix` wants them"
        );
        return undecided(found, why);
    }
    let mut other = None;
    let (events, schedule, pattern) = match bug(recorded, judge.solution)? {
        Ok(bug) => bug,
        Err(Unshown::EndedEarly(failing)) => {
            match ordered(recorded, &failing, judge.options.time / 4)? {
                Some(run) => {
                    let run = other.insert(run);
                    let order = vec![run.then, run.first];
                    (order.clone(), order, Pattern::Order)
                }
                None => return undecided(found, Unshown::EndedEarly(failing).to_string()),
            }
        }
        Err(why) => return undecided(found, why.to_string()),
    };
    let bug = repair::Bug {
        trace: other.as_ref().map_or(&recorded.execution.trace, |run| &run.trace),
        pattern,
        events: &events,
        schedule: &schedule,
        handlers: &[],
        uses: repair::Uses::NONE,
    };
    let mut asked = in_turn(passed).into_iter().map(|taken| (taken, false));
    let mut again = None;
    let mut why = String::new();
    let mut untouched = None;
    let mut harmless = None;
    let mut count: u32 = 0;
    // A run was passed over that may have more to say than it did.
    let mut passed_over = false;
    let mut looked = 0;
    // All of them had nothing to say for one reason.
    let mut same = true;
    while let Some((taken, elsewhere)) = again.take().or_else(|| asked.next()) {
        if elsewhere && !budget() {
            return undecided(found, format!("{none}; the time ended"));
        }
        let silent = count == 0 && looked == SILENT;
        if usize::try_from(count) == Ok(ASKED) || silent || !budget() {
            break;
        }
        looked += 1;
        let time = judge.options.time / 4;
        let question = if elsewhere { Question::Elsewhere } else { Question::Where };
        let (answer, execution) = match asked_of(&bug, (taken, question), time, budget)? {
            Ok(answer) => answer,
            Err(Unasked::TooLong) => {
                passed_over = true;
                untouched
                    .get_or_insert_with(|| "a run that passed was too long to be asked".to_owned());
                continue;
            }
            Err(Unasked::Unfit(why)) => return undecided(found, why),
        };
        let (open, ways) = match answer {
            Possible::No(how) => {
                why = how;
                count += 1;
                continue;
            }
            Possible::Untouched(reason) => {
                same &= untouched.as_ref().is_none_or(|earlier| *earlier == reason);
                untouched = Some(reason);
                continue;
            }
            // Another run may say more.
            Possible::Unknown(reason) if reason == APART => {
                passed_over = true;
                untouched = Some(reason);
                continue;
            }
            Possible::Unknown(reason) => {
                return undecided(found, format!("{none}; {reason}"));
            }
            Possible::Yes { place, ways } => {
                let open = format!(
                    "{none}, but the order of the cause can still come up along the paths of \
                     one that passed ({place})"
                );
                (open, ways)
            }
            Possible::Between(ways) => (format!("{none}; {APART}"), ways),
        };
        if ways.found.is_empty() {
            return undecided(found, open);
        }
        let of = (recorded, &execution);
        match force(of, &ways.found, (judge, runner), found, budget)? {
            Forced::Failed if found.verdict == Verdict::Undecided => {
                let why = format!("{open}; a run that was made to have it failed for another one");
                return undecided(found, why);
            }
            Forced::Failed => return Ok(None),
            // At some of the places it does no harm.
            Forced::Passed if !ways.everywhere && !elsewhere => again = Some((taken, true)),
            Forced::Passed if !ways.everywhere => {
                return undecided(found, format!("{open}; where it was made to, it passed"));
            }
            Forced::Passed => {
                let places: BTreeSet<&str> =
                    ways.found.iter().map(|way| way.place.as_str()).collect();
                harmless = Some(places.into_iter().collect::<Vec<_>>().join("; "));
                count += 1;
            }
            Forced::Not(reason) => return undecided(found, format!("{open}; {reason}")),
        }
    }
    let is_few = usize::try_from(count).is_ok_and(|count| count < ASKED);
    if count == 0 || passed_over && is_few {
        let reason = match untouched {
            Some(reason) if same && !passed_over => in_none(&reason, looked),
            reason => reason.unwrap_or_else(|| "none passed that could be asked".to_owned()),
        };
        return undecided(found, format!("{none}; {reason}"));
    }
    found.asked_runs = count;
    match harmless {
        Some(places) if is_few => {
            let reason = format!(
                "{none}, but the order of the cause can still come up ({places}), and too few runs \
                 were asked where it does no harm ({count} of {ASKED})"
            );
            return undecided(found, reason);
        }
        Some(places) => {
            found.verdict = Verdict::NoLongerHarmful;
            found.reason = format!(
                "along the paths of the runs that passed, the order of the cause can still come up ({places}); \
                 the program was made to have it in {} runs, and none failed",
                found.forced_runs
            );
        }
        None => {
            let time = judge.options.time / 4;
            let answer = Answer { passed: found.unscheduled(), ruled_out: count };
            let mut control = control(recorded, &bug, (runner, answer), time, budget)?;
            let alone = found.others.is_empty();
            if !alone {
                // For which cause they failed is not known.
                control.taken.failed = 0;
            }
            if control.ruled_out > 0 && alone {
                found.recorded_program = Some(control.taken);
            }
            if control.is_against(answer) {
                let Control { ruled_out, came_up, .. } = control;
                found.reason = format!(
                    "{none}, and along the paths of the runs that passed, the order of the cause cannot come up ({why}); \
                     but it cannot along those of {ruled_out} of {} runs of the recorded program that passed, either",
                    ruled_out + came_up
                );
                found.verdict = Verdict::Undecided;
                return Ok(alone.then_some(Doubted { control, answer, why }));
            }
            found.ruled_out(&why);
            if control.is_silent(answer) {
                found.reason.push_str(
                    "; runs of the recorded program were not asked the same, or had nothing to say",
                );
            }
        }
    }
    Ok(None)
}

/// The reason for which one run said nothing, of so many that had the same. What none of them does may still be done in
/// others, so it rules nothing out.
fn in_none(reason: &str, runs: usize) -> String {
    match reason.strip_prefix(HAS_NO) {
        Some(what) if runs > 1 => format!(
            "none of the {runs} runs that passed and were looked at has a {what}, so the order could not be asked about"
        ),
        _ => reason.to_owned(),
    }
}

impl Verification {
    /// Along the paths of the runs that were asked the order cannot come up.
    fn ruled_out(&mut self, why: &str) {
        self.verdict = Verdict::NoLongerPossible;
        self.reason = format!(
            "along the paths of the runs that passed, the order of the cause is no longer possible: {why}"
        );
    }

    /// That no run failed, in words, or none but for other causes.
    fn none_failed(&self) -> &'static str {
        match self.others.is_empty() {
            true => "no run failed",
            false => "no run failed for the recorded cause",
        }
    }

    /// How many runs were under no schedule.
    fn unscheduled(&self) -> u32 {
        self.noisy_runs + self.plain_runs
    }

    /// For a terminal or a log.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        let verdict = match self.verdict {
            Verdict::StillFails => "still fails in the same way",
            Verdict::FailsOtherwise => "fails, in another way",
            Verdict::NoLongerPossible => "no longer possible",
            Verdict::NoLongerHarmful => "no longer harmful",
            Verdict::Undecided => "undecided",
        };
        let _ = writeln!(out, "{verdict}: {}", self.reason);
        let _ = writeln!(out, "  the recorded cause: {}", self.cause);
        if self.plain_runs > 0 {
            let _ =
                writeln!(out, "  runs: {}, as it is; {} failed", self.plain_runs, self.failed_runs);
            return out + &self.before() + &self.others() + &self.shown();
        }
        let _ = writeln!(
            out,
            "  runs: {} under the failing schedule ({} followed it), {} under noise; {} failed, {} of \
             those that passed were asked",
            self.scheduled_runs, self.followed, self.noisy_runs, self.failed_runs, self.asked_runs
        );
        if self.forced_runs > 0 {
            let _ = writeln!(out, "  made to have the order: {} runs", self.forced_runs);
        }
        out + &self.before() + &self.others() + &self.shown()
    }

    /// By which other bugs runs failed, where the verdict is about the recorded one all the same.
    fn others(&self) -> String {
        let mut out = String::new();
        for other in self.others.iter().filter(|other| other.recorded_runs > 0) {
            let _ = writeln!(
                out,
                "  another bug, which the recorded program has as well: {} ({}; {} of the runs)",
                other.cause, other.failure, other.runs
            );
        }
        out
    }

    /// What the recorded program does in such runs, where that was looked at.
    fn before(&self) -> String {
        let before = self.recorded_program;
        before.map(|before| before.to_text(self.unscheduled())).unwrap_or_default()
    }

    /// Where the run that shows it is kept, if it is.
    fn shown(&self) -> String {
        let path = self.shown_by.as_ref();
        path.map(|path| format!("  the run that shows it: {}\n", path.display()))
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::in_none;

    #[test]
    fn what_no_run_does_is_told_with_how_many_were_looked_at() {
        let one = "the run has no free of `impl` like that of the cause";
        let all = "none of the 9 runs that passed and were looked at has a free of `impl` like that of the cause, so the order \
                   could not be asked about";
        assert_eq!(in_none(one, 9), all);
        assert_eq!(in_none(one, 1), one);
        let other = "the run did not come to the function of the cause";
        assert_eq!(in_none(other, 9), other);
    }
}
