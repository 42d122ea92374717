//! The answer of `symbiosis fix`, as data and as text (`docs/fix.md`).

use render::Solution;
use repair::Span;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// The value of [`Fixes::format`].
pub const FORMAT: &str = "symbiosis-fixes";
/// The version of the format.
pub const VERSION: &str = "1.1";

/// What `symbiosis fix` found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fixes {
    /// [`FORMAT`].
    pub format: String,
    /// [`VERSION`].
    pub version: String,
    /// The sentence about the cause; absent where none was found.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cause: Option<String>,
    /// It is no more than a possible one, as where the program did not follow the failing schedule.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub possible: bool,
    /// The cause's fingerprint.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub fingerprint: Option<String>,
    /// The repairs that passed all checks, the first to try in front.
    pub repairs: Vec<Repair>,
    /// How many candidates did not pass.
    pub refused: u64,
    /// For how many there was no answer; they are not among the repairs.
    pub undecided: u64,
    /// The failing run ended before an event of the cause: the repairs were shown on a run of the
    /// program that passes, along whose paths the order of the cause is no longer possible with them.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub other_run: bool,
    /// Other bugs of the recorded program by which runs failed with repairs of this one: what is left when this one is mended.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub others: Vec<Other>,
    /// Did the time end before all candidates were looked at?
    pub out_of_time: bool,
    /// Why there are none, where that is known beforehand.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
}

/// Another bug of the recorded program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Other {
    /// The sentence about its cause.
    pub cause: String,
    /// The cause's fingerprint.
    pub fingerprint: String,
    /// The failure's kind and place.
    pub failure: String,
    /// How many runs with a repair's order failed for it.
    pub runs: u32,
    /// How many runs of the recorded program, with no repair's order, were seen to fail for it.
    pub recorded_runs: u32,
}

/// A repair that passed all checks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repair {
    /// `hold-across`, `critical-section`, `move`, ...
    pub kind: String,
    /// What to do, in words; the first step is the change itself.
    pub steps: Vec<String>,
    /// The lock that it is about.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub lock: Option<Lock>,
    /// What it is about: variables, condition variables, locks.
    pub variables: Vec<String>,
    /// The lines to change.
    pub places: Vec<Lines>,
    /// What was shown.
    pub checks: Checks,
    /// The avoidance rule: what makes the program as it is do what the repaired one would; absent
    /// where that is no order of events.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rule: Option<String>,
}

/// The lock of a repair.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lock {
    /// As in the source; what it is for when it is new.
    pub name: String,
    /// The program does not have it yet.
    pub new: bool,
}

/// Lines of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lines {
    /// As the debug information names it.
    pub file: String,
    /// The function.
    pub function: String,
    /// The first line, from 1.
    pub first: u32,
    /// The last line.
    pub last: u32,
}

/// What was shown of a repair.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checks {
    /// No schedule of the recorded run fails with it: this many constraints together with the
    /// failure cannot be satisfied.
    pub unsatisfiable_constraints: u64,
    /// Only schedules were looked at that switch threads at few places, since they meet too often for all.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub at_few_places: bool,
    /// Only schedules were looked at that begin as the recorded run did and have so many events before its failure in an
    /// order of their own.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub events_at_the_end: Option<u64>,
    /// These come before the check that the failure tells of, and not before the failure.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub before_check: bool,
    /// Only schedules were looked at in which the other writes are all seen at once, or all as late as they may be.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub with_late_writes: bool,
    /// A schedule with it passes along the recorded paths. Where it is false, none keeps to these
    /// paths, because only the bug made them possible, but the threads' synchronisation lets them
    /// run.
    pub passes_on_recorded_paths: bool,
    /// Whether a schedule with it keeps to the recorded paths was not found out in time.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub recorded_paths_undecided: bool,
    /// It adds no way for the threads to wait for each other.
    pub no_new_deadlock: bool,
    /// The program under the failing schedule with the repair's order enforced.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub replay: Option<Replays>,
    /// The same under noise instead of the failing schedule, where another bug made runs under that fail.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub noisy_replay: Option<Replays>,
    /// Why it was not run, where it was to be.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub not_replayed: Option<String>,
}

/// Runs of the program with a repair's order enforced.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replays {
    /// How many.
    pub runs: u32,
    /// How many of them did not fail.
    pub passed: u32,
    /// In how many of them a thread was let go too early, because it was held back for too long.
    pub gave_up: u32,
    /// How many of them failed for another bug ([`Fixes::others`]).
    #[serde(skip_serializing_if = "is_zero", default)]
    pub failed_otherwise: u32,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Replays {
    /// Did a run fail of which it is not known that another bug made it fail?
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.passed + self.failed_otherwise < self.runs
    }

    fn to_text(&self, under: &str) -> String {
        let Self { runs, passed, gave_up, failed_otherwise } = self;
        let mut text = format!(
            "  the program {under}, with the repair's order enforced: passed {passed} of {runs}"
        );
        if *failed_otherwise > 0 {
            let _ = write!(text, "; {failed_otherwise} failed for another bug (below)");
        }
        if *gave_up > 0 {
            let _ = write!(text, " (in {gave_up} runs a thread was held back for too long)");
        }
        text
    }
}

impl Fixes {
    /// Nothing yet.
    #[must_use]
    pub fn of(solution: &Solution) -> Self {
        let cause = solution.cause.as_ref();
        Self {
            format: FORMAT.to_owned(),
            version: VERSION.to_owned(),
            cause: cause.map(|cause| cause.sentence.clone()),
            possible: solution.doubts_cause(),
            fingerprint: cause.map(|cause| cause.fingerprint.clone()),
            ..Self::default()
        }
    }

    /// For a terminal or a log. `source` gives a line of a file.
    #[must_use]
    pub fn to_text(&self, source: &dyn Fn(&str, u32) -> Option<String>) -> String {
        let mut out = String::new();
        if let Some(cause) = &self.cause {
            let title = if self.possible { "possible cause" } else { "cause" };
            let _ = writeln!(out, "{title}: {cause}\n");
        }
        if self.other_run && !self.repairs.is_empty() {
            let _ = writeln!(
                out,
                "the failing run ended before an event of its cause: what follows was shown on a run that \
                 passes\n"
            );
        }
        for (number, repair) in self.repairs.iter().enumerate() {
            repair.write(&mut out, number + 1, source);
        }
        if self.repairs.is_empty() {
            let reason = match &self.reason {
                Some(reason) => reason.clone(),
                None if self.cause.is_none() => "no cause is known".to_owned(),
                None => "no candidate passed the checks".to_owned(),
            };
            let _ = writeln!(out, "no repair: {reason}");
        }
        self.write_rest(&mut out);
        out
    }

    fn write_rest(&self, out: &mut String) {
        let many = |count: u64, one: &str, more: &str| {
            if count == 1 { format!("1 {one}") } else { format!("{count} {more}") }
        };
        for other in &self.others {
            let _ = writeln!(
                out,
                "another failure remains, which has nothing to do with this cause: {} ({}; {} of the runs with a repair, and {} of \
                 the recorded program)",
                other.cause, other.failure, other.runs, other.recorded_runs
            );
        }
        if self.refused > 0 {
            let what = many(self.refused, "other candidate was", "other candidates were");
            let _ = writeln!(out, "{what} refused by the checks");
        }
        if self.undecided > 0 {
            let what = many(self.undecided, "candidate was", "candidates were");
            let _ = writeln!(out, "{what} left undecided");
        }
        if self.out_of_time {
            let _ = writeln!(out, "the time ended before all candidates were checked (--timeout)");
        }
    }
}

impl Repair {
    /// A checked repair.
    #[must_use]
    pub fn of(repair: &repair::Repair) -> Self {
        let checked = repair.checked.as_ref();
        Self {
            kind: repair.kind.name().to_owned(),
            steps: repair.steps.clone(),
            lock: repair.lock.as_ref().map(|lock| Lock { name: lock.name.clone(), new: lock.new }),
            variables: repair.variables.clone(),
            places: repair.places.iter().map(Lines::of).collect(),
            checks: Checks {
                unsatisfiable_constraints: checked.map_or(0, |c| c.constraints as u64),
                at_few_places: checked.is_some_and(|c| c.at_few_places),
                events_at_the_end: checked.and_then(|c| c.end).map(|events| events as u64),
                before_check: checked.is_some_and(|c| c.before_check),
                with_late_writes: false,
                passes_on_recorded_paths: checked.is_some_and(|c| c.passing.is_some()),
                recorded_paths_undecided: checked.is_some_and(|c| c.paths_open),
                no_new_deadlock: checked.is_some(),
                replay: None,
                noisy_replay: None,
                not_replayed: None,
            },
            rule: None,
        }
    }

    /// Would somebody who follows both texts change the program in the same way?
    #[must_use]
    pub fn is_same_change(&self, other: &Self) -> bool {
        self.steps == other.steps && self.lock == other.lock && self.places == other.places
    }

    fn write(&self, out: &mut String, number: usize, source: &dyn Fn(&str, u32) -> Option<String>) {
        for (index, step) in self.steps.iter().enumerate() {
            let head = if index == 0 { format!("repair {number}: ") } else { "  and ".to_owned() };
            let _ = writeln!(out, "{head}{step}");
        }
        for place in &self.places {
            place.write(out, source);
        }
        let Checks {
            unsatisfiable_constraints: constraints,
            at_few_places,
            events_at_the_end,
            before_check,
            with_late_writes,
            ..
        } = self.checks;
        let few = if at_few_places { " that interrupts threads at few places" } else { "" };
        let like = match events_at_the_end {
            Some(events) => {
                let what = if before_check { "check that went wrong" } else { "failure" };
                format!(" that is like it but for {events} events before the {what}")
            }
            None => String::new(),
        };
        let both = if few.is_empty() || like.is_empty() { "" } else { " and" };
        let _ = match with_late_writes {
            true => write!(
                out,
                "  no schedule of this run fails with it in which the other writes are all seen at once, or all as \
                 late as they may be"
            ),
            false => write!(out, "  no schedule of this run{like}{both}{few} fails with it"),
        };
        let _ = writeln!(out, " ({constraints} constraints, unsatisfiable)");
        if self.checks.recorded_paths_undecided {
            let _ = writeln!(
                out,
                "  whether the recorded paths are still possible with it was not found out in time"
            );
        } else if !self.checks.passes_on_recorded_paths {
            let _ = writeln!(
                out,
                "  the recorded paths themselves are no longer possible: the program takes others"
            );
        }
        let _ = writeln!(out, "  no thread can come to wait in a circle that was not there before");
        if let Some(replays) = &self.checks.replay {
            let _ = writeln!(out, "{}", replays.to_text("under the failing schedule"));
        }
        if let Some(replays) = &self.checks.noisy_replay {
            let _ = writeln!(out, "{}", replays.to_text("under noise"));
        }
        if let Some(why) = &self.checks.not_replayed {
            let _ = writeln!(out, "  not replayed: {why}");
        }
        let _ = writeln!(out);
    }
}

/// No more lines of a place are printed than this.
const SHOWN: u32 = 12;

impl Lines {
    fn of(span: &Span) -> Self {
        Self {
            file: span.file.clone(),
            function: span.function.clone(),
            first: span.first,
            last: span.last,
        }
    }

    fn write(&self, out: &mut String, source: &dyn Fn(&str, u32) -> Option<String>) {
        let length = self.last.saturating_sub(self.first) + 1;
        let shown = |line: u32| {
            let index = line - self.first;
            length <= SHOWN || index < SHOWN / 2 || index >= length - SHOWN / 2
        };
        let lines: Vec<(u32, String)> = (self.first..=self.last)
            .filter(|line| shown(*line))
            .filter_map(|line| Some((line, source(&self.file, line)?)))
            .collect();
        let mut last = self.first;
        for (line, text) in &lines {
            if *line > last + 1 {
                let _ = writeln!(out, "         ...");
            }
            let _ = writeln!(out, "  {line:>5} | {}", text.trim_end());
            last = *line;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Checks, Repair};

    #[test]
    fn what_was_not_found_out_is_not_said_to_be_so() {
        let text = |checks: Checks| {
            let mut text = String::new();
            Repair { checks, ..Repair::default() }.write(&mut text, 1, &|_, _| None);
            text
        };
        let (gone, open) = ("no longer possible", "not found out in time");
        assert!(text(Checks::default()).contains(gone));
        let undecided = Checks { recorded_paths_undecided: true, ..Checks::default() };
        let undecided = text(undecided);
        assert!(undecided.contains(open) && !undecided.contains(gone), "{undecided}");
    }
}
