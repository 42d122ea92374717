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
    if left_out == 0 || is_sure(&first, options) {
        return Ok(first);
    }
    tracing::info!(left_out, verdict = ?first.solution.verdict, "with what is handed over, too");
    let time = options.time.saturating_sub(begun.elapsed());
    let (second, _) = by(&SolveOptions { time, ..options.clone() }, &symex::Options::default())?;
    let better = second.solution.verdict != Verdict::Unknown
        || first.solution.verdict != Verdict::FailingSchedule;
    Ok(if better { second } else { first })
}

/// Is it a failing schedule that the program follows, with something that passes?
fn is_sure(answer: &Answer, options: &SolveOptions) -> bool {
    let is_followed = match options.replay {
        Some(_) => answer.failing.replay == Replay::Confirmed,
        None => true,
    };
    answer.solution.verdict == Verdict::FailingSchedule
        && is_followed
        && !answer.solution.alternates.is_empty()
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
