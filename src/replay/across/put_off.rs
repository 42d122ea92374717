//! Runs that passed and are much longer than the failing one: a thread may have waited in a loop, and to look at
//! such a run takes longer than all others together; or the failing run just ended early.

use super::{Attempt, LONGER, Plan};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::Path;
use trace_format::Trace;

/// A run whose threads passed more gates than this, and [`LONGER`] times as many as the failing run has events, is long.
const LONG: u64 = 20_000;
/// So many of them are kept, ...
const KEPT: usize = 3;
/// ... none of which is so many times as long as another one: in that one nobody waited.
const MUCH_LONGER: u64 = 2;
/// Who does so many things, while another thread is held back, that it does not do in the failing run, goes round a loop.
const ROUNDS: usize = 10_000;

/// What is needed to look at a run.
pub(super) struct Waited {
    pub plan: Plan,
    pub attempt: Attempt,
    pub text: String,
    /// How many its threads passed.
    pub gates: u64,
}

/// See the module.
#[derive(Default)]
pub(super) struct PutOff {
    runs: Vec<Waited>,
}

impl PutOff {
    /// Puts off one more.
    pub fn add(&mut self, run: Waited) {
        self.runs.push(run);
        let of = |run: &Waited| (run.gates, rank(&run.plan));
        for index in surplus(&self.runs.iter().map(of).collect::<Vec<_>>()) {
            self.runs.remove(index);
        }
    }

    /// Those that tell most come first.
    pub fn take(&mut self) -> Vec<Waited> {
        let mut runs = std::mem::take(&mut self.runs);
        runs.sort_by_key(|run| rank(&run.plan));
        runs
    }
}

/// How little a run tells that was made so: one that follows the failing schedule for long tells most, one that does not
/// follow it least.
fn rank(plan: &Plan) -> (u8, Reverse<usize>) {
    match *plan {
        Plan::Until(place) => (0, Reverse(place)),
        Plan::Near(_) | Plan::Prefix(_) | Plan::Check(_) | Plan::Goes(_) | Plan::UpTo(_) => {
            (1, Reverse(0))
        }
        Plan::Serial { .. } | Plan::Whole(_) | Plan::Free | Plan::Shuffled(_) => (2, Reverse(0)),
    }
}

/// Which of these runs, by their gates and ranks, are not to be kept; the last ones first.
fn surplus<R: Ord + Copy>(runs: &[(u64, R)]) -> Vec<usize> {
    let shortest = runs.iter().map(|run| run.0).min().unwrap_or(0);
    let waited = |index: &usize| runs[*index].0 > shortest.saturating_mul(MUCH_LONGER);
    let (mut gone, mut rest): (Vec<usize>, Vec<usize>) = (0..runs.len()).partition(waited);
    rest.sort_by_key(|index| runs[*index].1);
    gone.extend(rest.into_iter().skip(KEPT));
    gone.sort_unstable_by_key(|index| Reverse(*index));
    gone
}

/// How many gates the threads of a scheduled run passed; 0 when that cannot be read.
pub(super) fn gates(directory: &Path) -> u64 {
    let records = Trace::open(directory).ok().and_then(|trace| trace.order().ok().flatten());
    let mut passed: BTreeMap<u64, u64> = BTreeMap::new();
    for record in records.into_iter().flatten() {
        let most = passed.entry(record.thread).or_default();
        *most = record.gates.max(*most);
    }
    passed.values().fold(0, |sum, gates| sum.saturating_add(*gates))
}

/// Is a run whose threads pass so many gates much longer than one with so many events?
pub(super) fn is_long(gates: u64, events: usize) -> bool {
    let events = u64::try_from(events).unwrap_or(u64::MAX);
    gates > LONG && gates > events.saturating_mul(LONGER)
}

/// Did a thread go round a loop in the run that passed while another one was held back, `in_between` the two events that come
/// the other way round there? What it counted or wrote in all these rounds may be all that keeps the run from failing.
pub(super) fn went_round(in_between: usize, events: usize) -> bool {
    in_between > ROUNDS.max(events)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_run_is_told_by_its_gates() {
        assert!(is_long(500_000, 94));
        assert!(!is_long(19_000, 94), "quickly looked at");
        assert!(!is_long(500_000, 400_000), "the failing run is as long");
    }

    #[test]
    fn a_thread_that_went_round_is_told_by_what_it_did_besides() {
        assert!(went_round(100_002, 26_998));
        assert!(!went_round(9_000, 94), "it may have had that to do");
        assert!(!went_round(20_000, 26_998));
    }

    #[test]
    fn of_runs_put_off_those_are_kept_that_follow_the_failing_schedule() {
        let rank = |place| rank(&Plan::Until(place));
        assert!(rank(366) < rank(308) && rank(0) < super::rank(&Plan::Free));
        // The first one was free, and what came later followed the schedule further and further.
        let free = super::rank(&Plan::Free);
        let runs = [(63_677, free), (63_682, rank(308)), (63_684, rank(365)), (63_684, rank(366))];
        assert_eq!(surplus(&runs), [0]);
        assert!(surplus(&runs[..3]).is_empty());
    }

    #[test]
    fn a_run_in_which_a_thread_waited_is_not_kept_beside_one_in_which_none_did() {
        assert_eq!(surplus(&[(500_000, 0), (30_000, 2)]), [0]);
        assert!(surplus(&[(500_000, 0)]).is_empty());
    }
}
