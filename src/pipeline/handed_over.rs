//! Runs with more shared memory than can be treated: what threads only hand over is left out first.
//!
//! A program that makes some objects for each thing that it does, and passes them from thread to thread, has shared cells by
//! the hundred thousand, and what is computed from them are as many conditions. The cause of a failed check is mostly about
//! something else. So such a run is walked without them first ([`symex::Options::handed_over_from`]). What comes of that is
//! the answer when it is one to be sure of: a failing schedule that the program follows, and something that makes it pass.
//! Otherwise the run is treated as a whole in the time that is left, and what came first is kept for when nothing comes of
//! that.

use super::{Answer, PipelineError, SolveOptions};
use render::solution::{Replay, Verdict};
use std::time::Instant;

/// So many shared cells are too many.
const MANY: usize = 1 << 16;
/// Without what is handed over, a run is explained in this part of the time that is left.
const PART: u32 = 2;
/// The whole treatment takes so many times as long, or more: where a failing schedule that the program follows is known, it is
/// made with so much time alone.
const LONGER: u32 = 3;

/// Solves by a walk that leaves out what is handed over where there is too much of it, and by one that leaves out nothing where
/// that is not enough. `by` solves by one kind of walk, and says how many cells were left out.
///
/// # Errors
/// Those of `by`.
pub(super) fn solve(
    options: &SolveOptions,
    by: impl Fn(&SolveOptions, &symex::Options) -> Result<(Answer, usize), PipelineError>,
) -> Result<Answer, PipelineError> {
    let begun = Instant::now();
    let without = symex::Options { handed_over_from: MANY, ..symex::Options::default() };
    let (first, left_out) = by(options, &without)?;
    let time = options.time.saturating_sub(begun.elapsed());
    let worth = Worth::of(&first, options);
    let is_enough = match worth {
        Worth::Explained => true,
        Worth::Followed => time < begun.elapsed() * LONGER,
        Worth::Found | Worth::Nothing => false,
    };
    if left_out == 0 || is_enough || time.is_zero() {
        return Ok(first);
    }
    tracing::info!(left_out, ?worth, "with what is handed over, too");
    let (second, _) = by(&SolveOptions { time, ..options.clone() }, &symex::Options::default())?;
    Ok(if Worth::of(&second, options) >= worth { second } else { first })
}

/// What an answer is worth, from the least on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Worth {
    Nothing,
    /// A failing schedule.
    Found,
    /// One that the program follows, or that it is not asked about, and a cause.
    Followed,
    /// That, and something that passes.
    Explained,
}

impl Worth {
    fn of(answer: &Answer, options: &SolveOptions) -> Self {
        let solution = &answer.solution;
        let is_followed = options.replay.is_none() || answer.failing.replay == Replay::Confirmed;
        let mut alternates = solution.alternates.iter();
        let passes =
            alternates.any(|it| options.replay.is_none() || it.replay == Replay::Confirmed);
        match solution.verdict {
            Verdict::FailingSchedule if !is_followed || solution.cause.is_none() => Self::Found,
            Verdict::FailingSchedule if passes => Self::Explained,
            Verdict::FailingSchedule => Self::Followed,
            _ => Self::Nothing,
        }
    }
}

/// When an explanation without what is handed over is to be over.
pub(super) fn until(deadline: Instant) -> Instant {
    let now = Instant::now();
    now + deadline.saturating_duration_since(now) / PART
}

/// What to say of an answer that leaves out so many cells.
pub(super) fn note(left_out: usize) -> Option<String> {
    (left_out > 0).then(|| {
        format!(
            "threads share so much memory here that {left_out} places of it that they only hand over, one having them \
             after the other, were taken to be what they were in the recorded run, and to be handed over as they were \
             there: a cause that is about such an object was not looked for"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::{Backend, Finding};
    use render::Solution;
    use render::solution::{Alternate, Cause};
    use std::cell::RefCell;
    use std::time::Duration;

    fn answer(verdict: Verdict, replay: Replay, explained: (bool, Option<Replay>)) -> Answer {
        let (cause, alternate) = explained;
        let mut solution = Solution { verdict, replay, ..Solution::default() };
        solution.cause = cause.then(Cause::default);
        let alternates = alternate.map(|replay| Alternate { replay, ..Alternate::default() });
        solution.alternates = alternates.into_iter().collect();
        Answer {
            solution,
            warnings: Vec::new(),
            cut_short: false,
            broke: false,
            failing: Finding { replay, ..Finding::default() },
            alternates: Vec::new(),
            trace: std::path::PathBuf::new(),
            walked: true,
        }
    }

    /// How often it is solved, and the answer's verdict, when the first walk leaves out so many cells.
    fn solved(first: &Answer, second: &Answer, left_out: usize) -> (usize, Verdict) {
        let options = SolveOptions {
            alternates: 1,
            backend: Backend::Ordering,
            time: Duration::from_secs(3600),
            memory_mb: None,
            dump_smt: None,
            replay: Some(super::super::ReplayOptions::default()),
        };
        let asked = RefCell::new(Vec::new());
        let by = |_: &SolveOptions, walk: &symex::Options| {
            asked.borrow_mut().push(walk.handed_over_from);
            Ok(match walk.handed_over_from {
                MANY => (first.clone(), left_out),
                _ => (second.clone(), 0),
            })
        };
        let answer = solve(&options, by).expect("nothing fails");
        let asked = asked.into_inner();
        assert_eq!(asked.first(), Some(&MANY));
        (asked.len(), answer.solution.verdict)
    }

    #[test]
    fn the_whole_is_treated_where_leaving_out_was_no_answer() {
        let nothing = answer(Verdict::Unknown, Replay::NotRun, (false, None));
        let followed = answer(Verdict::FailingSchedule, Replay::Confirmed, (true, None));
        let explained =
            answer(Verdict::FailingSchedule, Replay::Confirmed, (true, Some(Replay::Confirmed)));
        let failing = Verdict::FailingSchedule;
        assert_eq!(solved(&nothing, &explained, 0), (1, Verdict::Unknown), "nothing was left out");
        assert_eq!(solved(&nothing, &explained, 9), (2, failing));
        assert_eq!(solved(&explained, &nothing, 9), (1, failing));
        assert_eq!(solved(&followed, &nothing, 9), (2, failing), "the better one of both");
        let left = answer(failing, Replay::Diverged, (true, Some(Replay::Confirmed)));
        assert_eq!(solved(&left, &nothing, 9), (2, failing));
        let in_vain = answer(failing, Replay::Confirmed, (true, Some(Replay::Diverged)));
        assert_eq!(solved(&in_vain, &nothing, 9), (2, failing), "nothing was seen to pass");
    }
}
