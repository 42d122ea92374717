//! Which events of two runs of one program are the same: the same thread, at the same place of its
//! path.

use model::{Event, EventId, EventKind, EventTrace, Points, Site};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// With more differences than this between two threads, events are matched by their number among
/// those of one place, which is less exact but takes no more time for it.
const DIFFERENCES: usize = 1200;

/// Pairs of events of two traces, one to one and in the order of each thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matching {
    /// By event of the failing run.
    passing: Vec<Option<EventId>>,
    /// By event of the passing run.
    failing: Vec<Option<EventId>>,
}

impl Matching {
    /// The passing run's counterpart of an event of the failing run.
    #[must_use]
    pub fn in_passing(&self, failing: EventId) -> Option<EventId> {
        self.passing.get(failing.index()).copied().flatten()
    }

    /// The failing run's counterpart of an event of the passing run.
    #[must_use]
    pub fn in_failing(&self, passing: EventId) -> Option<EventId> {
        self.failing.get(passing.index()).copied().flatten()
    }
}

/// Matches the events of a failing and a passing run: threads by their names, and of each thread
/// the longest common subsequence of kinds, places and objects; where the scheduling points are
/// known, what has the same point of the common path ([`common_points`]) comes before that. Memory is
/// linear in the events and time too, but for the square of the differences, which is limited.
#[must_use]
pub fn align(
    failing: &EventTrace,
    passing: &EventTrace,
    points: Option<(&Points, &Points)>,
) -> Matching {
    let mut keys = Keys::default();
    let mut matching = Matching {
        passing: vec![None; failing.events.len()],
        failing: vec![None; passing.events.len()],
    };
    for thread in &failing.threads {
        let Some(other) = passing.threads.iter().find(|other| other.name == thread.name) else {
            continue;
        };
        let shared = points.map(|points| {
            common_points((failing, &thread.events), (passing, &other.events), points)
        });
        let shared = shared.unwrap_or_default();
        let (from, from_there) = shared.last().map_or((0, 0), |(i, j)| (i + 1, j + 1));
        let a = thread.events[from..].iter().map(|id| keys.of(failing, *id));
        let a: Vec<u32> = a.collect();
        let b = other.events[from_there..].iter().map(|id| keys.of(passing, *id));
        let b: Vec<u32> = b.collect();
        let rest = common(&a, &b);
        let rest = rest.into_iter().map(|(i, j)| (i + from, j + from_there));
        for (index, partner) in shared.iter().copied().chain(rest) {
            let (one, two) = (thread.events[index], other.events[partner]);
            matching.passing[one.index()] = Some(two);
            matching.failing[two.index()] = Some(one);
        }
    }
    matching
}

/// Two runs of a thread, as far as they are on one path: the pairs of events at one point of it, as
/// indices. Memory that only one of the runs shares has no events in the other one, which is no other
/// path; two events that come after equally many points at different sites are.
pub(crate) fn common_points(
    (failing, own): (&EventTrace, &[EventId]),
    (passing, other): (&EventTrace, &[EventId]),
    (points, others): (&Points, &Points),
) -> Vec<(usize, usize)> {
    let own = own.iter().take_while(|id| is_of_code(failing, **id));
    let mut own = own.map_while(|id| points.point(*id)).enumerate().peekable();
    let other = other.iter().take_while(|id| is_of_code(passing, **id));
    let mut other = other.map_while(|id| others.point(*id)).enumerate().peekable();
    let mut pairs = Vec::new();
    while let (Some((i, a)), Some((j, b))) = (own.peek().copied(), other.peek().copied()) {
        let order = (a.gates, a.syncs).cmp(&(b.gates, b.syncs));
        if order.is_eq() && points.site(a) != others.site(b) {
            break;
        }
        if order.is_le() {
            own.next();
        }
        if order.is_ge() {
            other.next();
        }
        if order.is_eq() {
            pairs.push((i, j));
        }
    }
    pairs
}

/// Did the thread's code do it? What stands for the end of a run has no place in the code.
fn is_of_code(trace: &EventTrace, id: EventId) -> bool {
    !matches!(
        trace.event(id).kind,
        EventKind::Exit
            | EventKind::Failure
            | EventKind::Block { .. }
            | EventKind::Unlock { synthetic: true, .. }
    )
}

/// Numbers for what two events must have in common.
#[derive(Default)]
struct Keys<'t> {
    numbers: FxHashMap<(&'static str, &'t [Site], String), u32>,
}

impl<'t> Keys<'t> {
    fn of(&mut self, trace: &'t EventTrace, id: EventId) -> u32 {
        let event = trace.event(id);
        let next = u32::try_from(self.numbers.len()).unwrap_or(u32::MAX);
        let key = (event.kind.name(), &*event.stack, object(trace, event));
        *self.numbers.entry(key).or_insert(next)
    }
}

/// What the event touches, without what may differ from run to run: indices and addresses.
fn object(trace: &EventTrace, event: &Event) -> String {
    let object = |id: model::ObjectId| trace.objects[id.index()].name.as_str();
    let name = event.name.as_deref().unwrap_or_else(|| match &event.kind {
        EventKind::Lock { object: id, .. }
        | EventKind::Unlock { object: id, .. }
        | EventKind::TryLockFailed { object: id, .. }
        | EventKind::Wake { condition: id, .. }
        | EventKind::WaitTimedOut { condition: id, .. }
        | EventKind::Signal { condition: id }
        | EventKind::Broadcast { condition: id }
        | EventKind::SemaphoreWait { object: id }
        | EventKind::SemaphoreWaitFailed { object: id }
        | EventKind::SemaphorePost { object: id }
        | EventKind::BarrierArrive { object: id }
        | EventKind::BarrierLeave { object: id } => object(*id),
        EventKind::Fork { child } | EventKind::Join { child } => &trace.threads[child.index()].name,
        kind => {
            let read = kind.reads().first().map(|part| part.cell);
            let cell = read.or(kind.writes().first().map(|part| part.cell));
            cell.map_or("", |cell| &trace.cells[cell.index()].name)
        }
    });
    let stable = !name.contains('[') && !name.contains("0x");
    if stable { name.to_owned() } else { without_numbers(name) }
}

/// `slots[3].key` and `slots[4].key` are touched by one instruction, and an address says nothing.
fn without_numbers(name: &str) -> String {
    let mut kept = String::with_capacity(name.len());
    let mut in_number = false;
    for (index, character) in name.char_indices() {
        let begins = character.is_ascii_digit()
            && !name[..index].ends_with(|before: char| before.is_alphanumeric() || before == '_');
        in_number = begins || (in_number && character.is_ascii_alphanumeric());
        if !in_number {
            kept.push(character);
        } else if begins {
            kept.push('#');
        }
    }
    kept
}

/// Pairs of equal elements, both ascending: the longest common subsequence, or, where the two
/// differ much, a long one.
fn common(a: &[u32], b: &[u32]) -> Vec<(usize, usize)> {
    let head = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    let (rest_a, rest_b) = (&a[head..], &b[head..]);
    let tail = rest_a.iter().rev().zip(rest_b.iter().rev()).take_while(|(x, y)| x == y).count();
    let (middle_a, middle_b) = (&rest_a[..rest_a.len() - tail], &rest_b[..rest_b.len() - tail]);
    let middle =
        shortest_edit(middle_a, middle_b).unwrap_or_else(|| by_occurrence(middle_a, middle_b));
    let mut pairs: Vec<(usize, usize)> = (0..head).map(|index| (index, index)).collect();
    pairs.extend(middle.into_iter().map(|(i, j)| (i + head, j + head)));
    pairs.extend((1..=tail).rev().map(|back| (a.len() - back, b.len() - back)));
    pairs
}

/// Myers' greedy algorithm ("An O(ND) Difference Algorithm", 1986); `None` when there are more than
/// [`DIFFERENCES`].
fn shortest_edit(a: &[u32], b: &[u32]) -> Option<Vec<(usize, usize)>> {
    if a.is_empty() || b.is_empty() {
        return Some(Vec::new());
    }
    let most = (a.len() + b.len()).min(DIFFERENCES);
    // By diagonal (index in `a` minus index in `b`, plus `most`), how far in `a` one gets.
    let mut reach = vec![0usize; 2 * most + 3];
    let middle = most + 1;
    let mut history: Vec<Vec<usize>> = Vec::new();
    for differences in 0..=most {
        history.push(reach[middle - differences..=middle + differences].to_vec());
        for diagonal in diagonals(middle, differences) {
            let down = comes_down(&reach, diagonal, middle, differences);
            let mut i = if down { reach[diagonal + 1] } else { reach[diagonal - 1] + 1 };
            // A diagonal beyond the ends is of no use.
            let Some(mut j) = (i + middle).checked_sub(diagonal) else { continue };
            while i < a.len() && j < b.len() && a[i] == b[j] {
                (i, j) = (i + 1, j + 1);
            }
            reach[diagonal] = i;
            if i >= a.len() && j >= b.len() {
                return Some(way_back(a.len(), b.len(), &history));
            }
        }
    }
    None
}

fn diagonals(middle: usize, differences: usize) -> impl Iterator<Item = usize> {
    let range: Range<usize> = middle - differences..middle + differences + 1;
    range.step_by(2)
}

/// Does the best way to the diagonal leave out an element of the second sequence?
fn comes_down(reach: &[usize], diagonal: usize, middle: usize, differences: usize) -> bool {
    diagonal == middle - differences
        || (diagonal != middle + differences && reach[diagonal - 1] < reach[diagonal + 1])
}

/// The equal elements along the way that the search took. `history` has, for each number of
/// differences, what was reached with one less, from the lowest diagonal of that number on.
fn way_back(a: usize, b: usize, history: &[Vec<usize>]) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    let (mut i, mut j) = (a, b);
    for (differences, reach) in history.iter().enumerate().rev() {
        if differences == 0 {
            break;
        }
        // The middle of `reach` is diagonal 0.
        let diagonal = i + differences - j;
        let down = comes_down(reach, diagonal, differences, differences);
        let previous = if down { diagonal + 1 } else { diagonal - 1 };
        let from = reach[previous];
        let begun = if down { from } else { from + 1 };
        while i > begun {
            (i, j) = (i - 1, j - 1);
            pairs.push((i, j));
        }
        i = from;
        j = (from + differences).saturating_sub(previous);
    }
    while i > 0 && j > 0 {
        (i, j) = (i - 1, j - 1);
        pairs.push((i, j));
    }
    pairs.reverse();
    pairs
}

/// The k-th element of a kind with the k-th of the other sequence, as far as the order allows.
fn by_occurrence(a: &[u32], b: &[u32]) -> Vec<(usize, usize)> {
    let mut places: FxHashMap<u32, Vec<usize>> = FxHashMap::default();
    b.iter().enumerate().for_each(|(index, key)| places.entry(*key).or_default().push(index));
    let mut used: FxHashMap<u32, usize> = FxHashMap::default();
    let mut pairs = Vec::new();
    for (index, key) in a.iter().enumerate() {
        let number = used.entry(*key).or_insert(0);
        if let Some(place) = places.get(key).and_then(|places| places.get(*number)) {
            pairs.push((index, *place));
        }
        *number += 1;
    }
    increasing(&pairs)
}

/// The longest subsequence whose second numbers increase.
fn increasing(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // The last pair of the best subsequence of each length, and each pair's predecessor.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    for (index, pair) in pairs.iter().enumerate() {
        let length = ends.partition_point(|end| pairs[*end].1 < pair.1);
        before.push(length.checked_sub(1).map(|shorter| ends[shorter]));
        match ends.get_mut(length) {
            Some(end) => *end = index,
            None => ends.push(index),
        }
    }
    let mut chain = Vec::new();
    let mut at = ends.last().copied();
    while let Some(index) = at {
        chain.push(pairs[index]);
        at = before[index];
    }
    chain.reverse();
    chain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(a: &[u32], b: &[u32], pairs: &[(usize, usize)]) {
        assert!(pairs.iter().all(|(i, j)| a[*i] == b[*j]), "{pairs:?} of {a:?} {b:?}");
        assert!(pairs.windows(2).all(|p| p[0].0 < p[1].0 && p[0].1 < p[1].1), "{pairs:?}");
    }

    /// By the textbook's table.
    fn longest(a: &[u32], b: &[u32]) -> usize {
        let mut table = vec![vec![0; b.len() + 1]; a.len() + 1];
        for (i, x) in a.iter().enumerate() {
            for (j, y) in b.iter().enumerate() {
                let other = table[i][j + 1].max(table[i + 1][j]);
                table[i + 1][j + 1] = if x == y { table[i][j] + 1 } else { other };
            }
        }
        table[a.len()][b.len()]
    }

    #[test]
    fn common_subsequences_are_the_longest() {
        let mut seed = 12345u32;
        let mut draw = |limit: u32| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 16) % limit
        };
        for round in 0..400 {
            let (m, n) = (draw(18) as usize, draw(18) as usize);
            let letters = 1 + draw(5);
            let a: Vec<u32> = (0..m).map(|_| draw(letters)).collect();
            let b: Vec<u32> = (0..n).map(|_| draw(letters)).collect();
            let pairs = common(&a, &b);
            check(&a, &b, &pairs);
            assert_eq!(pairs.len(), longest(&a, &b), "round {round}: {a:?} {b:?}");
            check(&a, &b, &by_occurrence(&a, &b));
        }
    }

    #[test]
    fn a_round_more_costs_one_round() {
        let a = [1, 7, 8, 7, 8, 2];
        let b = [1, 7, 8, 2];
        assert_eq!(common(&a, &b).len(), 4);
    }

    #[test]
    fn much_that_differs_is_matched_in_reasonable_time() {
        let a: Vec<u32> = (0..60_000).map(|index| index % 977).collect();
        let b: Vec<u32> = (0..60_000).map(|index| (index * 7 + 3) % 1009).collect();
        check(&a, &b, &common(&a, &b));
    }

    #[test]
    fn indices_and_addresses_do_not_matter() {
        assert_eq!(without_numbers("slots[13].key"), "slots[#].key");
        assert_eq!(without_numbers("heap 0x55d0a+8"), "heap #+#");
        assert_eq!(without_numbers("x2->a[1][20]"), "x2->a[#][#]");
    }
}
