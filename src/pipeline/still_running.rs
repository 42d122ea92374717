//! Runs that were ended while threads still ran: nobody knows whether they would have come to an end.

use render::Solution;
use render::solution::{Cause, Replay, STILL_RUNNING};
use std::time::{Duration, Instant};
use symex::{Execution, RunningThread};

/// Such a run is worth this part of the time, ...
const PART: u32 = 10;
/// ... and no less than that.
const LEAST: Duration = Duration::from_secs(20);
/// So many threads are named.
const NAMED: usize = 3;

/// Until when the failure may be explained: one that is perhaps none gets less time than others.
pub(super) fn deadline(
    execution: &Execution,
    deadline: Option<Instant>,
    time: Duration,
) -> Option<Instant> {
    if execution.report.still_running.is_empty() {
        return deadline;
    }
    let earlier = Instant::now().checked_add(LEAST.max(time / PART));
    deadline.into_iter().chain(earlier).min()
}

/// `t0.1 was still in the loop in work at jobs.c:6`
pub(super) fn in_words(thread: &RunningThread) -> String {
    let RunningThread { name, site, in_loop } = thread;
    let at = match site.line {
        0 => String::new(),
        line => format!(" at {}:{line}", site.file.rsplit('/').next().unwrap_or_default()),
    };
    match (in_loop, site.function.is_empty()) {
        (_, true) => format!("{name} was still running"),
        (true, false) => format!("{name} was still in the loop in {}{at}", site.function),
        (false, false) => format!("{name} was still running in {}{at}", site.function),
    }
}

/// What there is to say where no run with another order came to its end.
pub(super) fn cause(running: &[RunningThread], solution: &Solution) -> Cause {
    let named = running.iter().take(NAMED).map(in_words);
    let mut named: Vec<String> = named.collect();
    if let Some(more) = running.len().checked_sub(NAMED).filter(|more| *more > 0) {
        named.push(format!("and {more} more still ran"));
    }
    let ended = match solution.replay {
        Replay::Diverged => ". In a replay it went on otherwise",
        Replay::Confirmed | Replay::NotRun => "",
    };
    let sentence = format!(
        "not known: the run was still running when its time was up, and may only have been slow \
         ({}){ended}. `symbiosis record` with a longer --timeout tells a hang from that",
        named.join(", ")
    );
    let pattern = STILL_RUNNING.to_owned();
    Cause { pattern, sentence, ..Cause::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Site;

    fn thread(name: &str, in_loop: bool) -> RunningThread {
        let site =
            Site { file: "dir/jobs.c".to_owned(), line: 6, column: 1, function: "work".to_owned() };
        RunningThread { name: name.to_owned(), site, in_loop }
    }

    #[test]
    fn nothing_is_claimed_of_a_run_that_may_have_gone_on() {
        let running: Vec<_> =
            ["t0.1", "t0.2", "t0.3", "t0.4"].map(|name| thread(name, name != "t0.2")).into();
        let cause = cause(&running, &Solution::default());
        assert!(cause.sentence.contains("may only have been slow"), "{}", cause.sentence);
        assert!(cause.sentence.contains("t0.1 was still in the loop in work at jobs.c:6, "));
        assert!(cause.sentence.contains("t0.2 was still running in work at jobs.c:6, "));
        assert!(cause.sentence.contains("and 1 more still ran"), "{}", cause.sentence);
    }
}
