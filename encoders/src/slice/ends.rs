//! Which parts of a long schedule to look at: windows that end with the failure or with the run.

use model::{EventKind, EventTrace, FailureCondition, Schedule};
use std::ops::Range;

/// So many events before the failure are looked at, and where these do not explain it, so many...
const SIZES: [usize; 3] = [600, 3_000, 12_000];
/// Before all of them, this many where threads are woken often.
const OFTEN_WOKEN: usize = 200;
/// With more pairs of a signal and a wake-up on one condition variable, to show that some signal is always left
/// for a wait, or never, takes a solver too long: it is counting, which has no short proofs.
const MANY_WAKES: usize = 1_000;
/// ...of traces that have so many times more...
const SHORTER: usize = 4;
/// ...and so many times more than the part has with what decides.
const WITH_CAUSE: usize = 2;
/// ...and have so many at all.
const LONG: usize = 8_000;
/// With more events behind the failure than that, these are left as they were.
const BEHIND: usize = 500;
/// So many events before what decides whether the run fails are part of the end.
const AHEAD: usize = 200;

/// Is the run so long, or are its threads woken so often, that its end is looked at first?
#[must_use]
pub fn is_long(trace: &EventTrace) -> bool {
    trace.events.len() >= LONG || is_often_woken(trace)
}

/// Are threads woken so often that not all ways to pair signals and wake-ups can be looked at?
#[must_use]
pub fn is_often_woken(trace: &EventTrace) -> bool {
    let mut counts = vec![(0usize, 0usize); trace.objects.len()];
    for event in &trace.events {
        let (condition, one) = match event.kind {
            EventKind::Signal { condition } => (condition, (1, 0)),
            EventKind::Wake { condition, .. } => (condition, (0, 1)),
            _ => continue,
        };
        if let Some((signals, wakes)) = counts.get_mut(condition.index()) {
            (*signals, *wakes) = (*signals + one.0, *wakes + one.1);
        }
    }
    counts.iter().any(|(signals, wakes)| signals.saturating_mul(*wakes) >= MANY_WAKES)
}

/// The parts of a failing schedule to make a [`window`](super::window) of, the shorter first: up to the failure, and where
/// that is not the end, up to the end as well, since what passes may be otherwise behind it. What comes at `decides` is in
/// them, with what led there. None of a run that is not long.
#[must_use]
pub fn ends(trace: &EventTrace, schedule: &Schedule, decides: Option<usize>) -> Vec<Range<usize>> {
    let events = schedule.order.len();
    if !is_long(trace) {
        return Vec::new();
    }
    let until = failed(trace, schedule).filter(|at| events - at > BEHIND).unwrap_or(events);
    let first = is_often_woken(trace).then_some(OFTEN_WOKEN);
    parts((events, until), first, decides.map_or(events, |at| at.saturating_sub(AHEAD)))
}

/// How many events of a schedule have happened when it has failed. `None` where that is a matter of all of them.
fn failed(trace: &EventTrace, schedule: &Schedule) -> Option<usize> {
    let failure = trace.failure.as_ref()?;
    if asks_for_all(&failure.condition) {
        return None;
    }
    let mut named = vec![failure.event];
    named.extend(failure.condition.clone().events_mut().into_iter().map(|event| *event));
    let last = schedule.order.iter().rposition(|id| named.contains(id))?;
    Some(last + 1)
}

/// Whether somebody is woken up is known at the end alone.
fn asks_for_all(condition: &FailureCondition) -> bool {
    match condition {
        FailureCondition::Value(_) | FailureCondition::Before(..) => false,
        FailureCondition::Unwoken { .. } => true,
        FailureCondition::All(parts) | FailureCondition::Any(parts) => {
            parts.iter().any(asks_for_all)
        }
    }
}

/// See [`ends`].
fn parts(
    (events, failed): (usize, usize),
    first: Option<usize>,
    decides: usize,
) -> Vec<Range<usize>> {
    let most = SIZES.iter().max().copied().unwrap_or(0) + AHEAD;
    let mut parts: Vec<Range<usize>> = Vec::new();
    for size in first.into_iter().chain(SIZES).filter(|size| events >= size * SHORTER) {
        let from = failed.saturating_sub(size).min(decides);
        for until in [failed, events] {
            let part = from..until;
            if part.len() <= most && part.len() * WITH_CAUSE <= events && !parts.contains(&part) {
                parts.push(part);
            }
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::{AHEAD, OFTEN_WOKEN, parts};

    #[test]
    fn the_parts_have_what_decides_and_are_not_too_long() {
        let one = parts((10_000, 10_000), None, 10_000);
        assert_eq!((one.len(), one.first()), (1, Some(&(9_400..10_000))));
        assert_eq!(
            parts((100_000, 100_000), None, 99_000),
            [99_000..100_000, 97_000..100_000, 88_000..100_000]
        );
        // Where other threads went on, both ends are tried, as far as they are near.
        assert_eq!(
            parts((20_000, 12_000), None, 20_000),
            [11_400..12_000, 11_400..20_000, 9_000..12_000]
        );
        // Nearly all of the run is no end.
        assert!(parts((8_000, 8_000), None, 30).is_empty());
        assert_eq!(parts((90_000, 12_000), None, 90_000)[..2], [11_400..12_000, 9_000..12_000]);
        assert!(parts((100_000, 100_000), None, 80_000).is_empty());
        let woken = parts((2_000, 2_000), Some(OFTEN_WOKEN), 2_000);
        assert_eq!((woken.len(), woken.first()), (1, Some(&(1_800..2_000))));
        assert_eq!(parts((60_000, 60_000), None, 48_000 - AHEAD).len(), 1);
    }
}
