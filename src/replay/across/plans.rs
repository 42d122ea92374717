//! How runs along other paths are looked for: which ones there are, and which come first.

use explain::Flip;
use model::{ConditionId, Thread};
use schedule::{Script, Target as Place, Turn};

/// Pairs that are tried before runs of one thread after the other.
const FIRST_PAIRS: usize = 10;
/// With no more threads than this besides the initial one, all orders of them are tried.
const PERMUTED: usize = 4;
/// So many runs are shuffled, ...
const SHUFFLED: u64 = 6;

/// How to run the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// The failing schedule with the pair reversed.
    Near(Flip),
    /// The failing schedule up to the pair, the pair reversed, and on as the scheduler likes.
    Prefix(Flip),
    /// The failing schedule up to a check, with the pair reversed so that the check goes the other way, and on as the
    /// scheduler likes.
    Check(Flip),
    /// The failing schedule up to a check, and on as the scheduler likes.
    Goes(ConditionId),
    /// So many events of the failing schedule, and on as the scheduler likes.
    UpTo(usize),
    /// The failing schedule up to the event at this place of it; then all other threads that have
    /// begun go on to their ends before the event's own.
    Until(usize),
    /// One thread after the other.
    Serial {
        /// The last one first.
        backwards: bool,
    },
    /// Each of these threads, by its index, from its start to its end, and on as the scheduler
    /// likes. No event is named, so that this reaches what the failing run did not live to do.
    Whole(Vec<usize>),
    /// As the scheduler likes.
    Free,
    /// As a scheduler likes that gives the threads other priorities again and again, by this seed:
    /// one that lets a thread run until it waits may find the failure every time.
    Shuffled(u64),
}

impl Plan {
    /// Is no thread held back in the middle of what it does?
    pub(super) fn is_whole(&self) -> bool {
        matches!(self, Self::Serial { .. } | Self::Whole(_) | Self::Free)
    }
}

/// In which order to try what, in a program of so many threads. `ahead`: the thread that wrote what the failing thread read
/// last of others, and the failing thread. Where several threads had looked before that write, each of them fails, and no one
/// pair avoids it: the thread that wrote has to go first, and then the one that failed.
pub(super) fn plans(flips: &[Flip], threads: usize, ahead: Option<(usize, usize)>) -> Vec<Plan> {
    let (first, rest) = flips.split_at(flips.len().min(FIRST_PAIRS));
    let mut plans: Vec<Plan> = first.iter().copied().map(Plan::Near).collect();
    plans.extend([false, true].map(|backwards| Plan::Serial { backwards }));
    let created: Vec<usize> = (1..threads).collect();
    let backwards: Vec<usize> = created.iter().rev().copied().collect();
    let mut whole: Vec<Plan> = match created.len() {
        0 => Vec::new(),
        1 => vec![Plan::Whole(created.clone())],
        _ => vec![Plan::Whole(created.clone()), Plan::Whole(backwards)],
    };
    if let Some((first, second)) = ahead {
        let behind = created.iter().copied().filter(|thread| ![first, second].contains(thread));
        let ahead = Plan::Whole([first, second].into_iter().chain(behind).collect());
        whole.retain(|plan| *plan != ahead);
        whole.insert(0, ahead);
    }
    let others = permutations(if created.len() <= PERMUTED { &created } else { &[] });
    let others = others.into_iter().map(Plan::Whole).filter(|plan| !whole.contains(plan));
    let others: Vec<Plan> = others.filter(|plan| *plan != Plan::Whole(Vec::new())).collect();
    plans.extend(whole);
    plans.push(Plan::Free);
    // A single thread has no other order.
    let shuffled = 1..=if created.is_empty() { 0 } else { SHUFFLED };
    plans.extend(shuffled.map(Plan::Shuffled));
    plans.extend(first.iter().copied().map(Plan::Prefix));
    plans.extend(others);
    for flip in rest.iter().copied() {
        plans.extend([Plan::Near(flip), Plan::Prefix(flip)]);
    }
    plans
}

/// All orders of a few things, in lexicographic order.
fn permutations(of: &[usize]) -> Vec<Vec<usize>> {
    if of.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for (index, first) in of.iter().enumerate() {
        let mut rest = of.to_vec();
        rest.remove(index);
        for mut tail in permutations(&rest) {
            tail.insert(0, *first);
            all.push(tail);
        }
    }
    all
}

/// The threads with these indices, each from its start to its end, one after the other.
pub(super) fn whole(threads: &[Thread], order: &[usize]) -> Script {
    let threads = order.iter().filter_map(|index| threads.get(*index));
    let turns = threads.map(|thread| Turn {
        thread: thread.name.clone(),
        target: Place::End,
        comment: None,
    });
    Script { turns: turns.collect(), ..Script::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::EventId;

    #[test]
    fn the_first_pairs_come_before_whole_other_orders() {
        let flip = |n: u32| Flip { before: EventId(n), after: EventId(n + 1) };
        let flips: Vec<Flip> = (0..30).map(flip).collect();
        let plans = plans(&flips, 3, None);
        let serial = plans.iter().position(|plan| matches!(plan, Plan::Serial { .. }));
        assert_eq!(serial, Some(FIRST_PAIRS));
        let near = |n: usize| plans.iter().any(|p| matches!(p, Plan::Near(f) if *f == flips[n]));
        let prefix =
            |n: usize| plans.iter().any(|p| matches!(p, Plan::Prefix(f) if *f == flips[n]));
        assert!((0..30).all(|n| near(n) && prefix(n)));
        assert!(serial < plans.iter().position(|plan| matches!(plan, Plan::Prefix(_))));
        assert!(matches!(
            super::plans(&[], 1, None)[..],
            [Plan::Serial { .. }, Plan::Serial { .. }, Plan::Free]
        ));
    }

    #[test]
    fn whole_threads_run_one_after_the_other_in_every_order() {
        let whole = |threads| -> Vec<Vec<usize>> {
            let orders = plans(&[], threads, None).into_iter().filter_map(|plan| match plan {
                Plan::Whole(order) => Some(order),
                _ => None,
            });
            orders.collect()
        };
        assert_eq!(whole(2), [[1]]);
        assert_eq!(whole(3), [[1, 2], [2, 1]]);
        let four = whole(4);
        assert_eq!(four[..2], [[1, 2, 3], [3, 2, 1]]);
        assert_eq!(four.iter().collect::<std::collections::BTreeSet<_>>().len(), 6);
        assert_eq!(four.len(), 6);
        assert_eq!(whole(40).len(), 2, "too many threads to try all orders");
        let plans = plans(&[], 4, None);
        let place = |wanted: &Plan| plans.iter().position(|plan| plan == wanted);
        assert!(place(&Plan::Whole(vec![3, 2, 1])) < place(&Plan::Free));
        assert!(place(&Plan::Free) < place(&Plan::Whole(vec![2, 1, 3])));
    }

    #[test]
    fn who_wrote_what_the_failing_thread_read_goes_first() {
        let whole = |threads, ahead| -> Vec<Vec<usize>> {
            let orders =
                plans(&[], threads, Some(ahead)).into_iter().filter_map(|plan| match plan {
                    Plan::Whole(order) => Some(order),
                    _ => None,
                });
            orders.collect()
        };
        let four = whole(4, (2, 3));
        assert_eq!(four[..3], [[2, 3, 1], [1, 2, 3], [3, 2, 1]]);
        assert_eq!(four.len(), 6, "each once");
        assert_eq!(whole(3, (1, 2)), [[1, 2], [2, 1]]);
        assert_eq!(whole(40, (7, 3))[0][..4], [7, 3, 1, 2], "however many there are");
    }
}
