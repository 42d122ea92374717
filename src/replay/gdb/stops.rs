//! Where gdb stops: the events of a projection, and the marks that announce them.

use crate::replay::Claim;
use model::{EventId, EventTrace, Points};
use render::Solution;
use render::lanes::place;
use render::solution::{Event, Location};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// A stop before an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// The number of the mark that announces it. Several events may share one.
    pub mark: u32,
    /// The event, `e12`.
    pub event: String,
    /// The thread, `t0.1`.
    pub thread: String,
    /// What the thread is about to do, `writes bank->total`.
    pub what: String,
    /// The variable that is read or written, in the source's words.
    pub object: Option<String>,
    /// Where.
    pub location: Location,
    /// The event's value in the failing schedule.
    pub failing: Option<String>,
    /// The event's value in the alternate.
    pub alternate: Option<String>,
}

/// A schedule with marks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marked {
    /// The schedule's text.
    pub script: String,
    /// The stops in the order of the schedule.
    pub stops: Vec<Stop>,
}

impl Stop {
    /// `e12 t0.1 writes bank->total (bank.c:62)`.
    #[must_use]
    pub fn header(&self) -> String {
        format!("{} {} {} ({})", self.event, self.thread, self.what, place(&self.location))
    }

    /// The event's value in both schedules; empty when none is known.
    #[must_use]
    pub fn values(&self) -> String {
        match (&self.failing, &self.alternate) {
            (None, None) => String::new(),
            (failing, alternate) => {
                let or = |value: &Option<String>| value.clone().unwrap_or_else(|| "?".to_owned());
                format!("failing schedule: {}   alternate: {}", or(failing), or(alternate))
            }
        }
    }
}

/// The events to stop at: those of the projection, in the order of the failing schedule or of the
/// alternate. Without a projection, those of the root cause.
#[must_use]
pub fn events(solution: &Solution, claim: Claim) -> Vec<String> {
    let mut found = match (&solution.dsp, claim) {
        (Some(dsp), Claim::Fails) => dsp.failing.clone(),
        (Some(dsp), Claim::Passes) => dsp.alternate.clone(),
        (None, _) => Vec::new(),
    };
    if let (true, Some(cause)) = (found.is_empty(), &solution.root_cause) {
        let named: BTreeSet<&String> = cause.orders.iter().flatten().collect();
        found = solution.schedule.iter().filter(|id| named.contains(id)).cloned().collect();
    }
    found
}

/// Adds marks to a schedule's text for these events, which are given in the schedule's order.
/// Events that are not in the trace (those of another run only), and those at whose point nothing
/// is done, are left out.
#[must_use]
pub fn marked(
    script: &str,
    events: &[String],
    solution: &Solution,
    trace: &EventTrace,
    points: &Points,
) -> Marked {
    let mut places: Vec<(String, String, u64)> = Vec::new();
    let mut stops = Vec::new();
    for id in events {
        let (Some(event), Some(number)) = (solution.event(id), number(id)) else { continue };
        let id = EventId::from_index(number);
        let Some(point) = points.point(id) else { continue };
        if trace.events.len() <= number || point.occurrence == 0 {
            continue;
        }
        let place = (event.thread.clone(), points.site(point).to_owned(), point.occurrence);
        let index = places.iter().position(|other| *other == place).unwrap_or_else(|| {
            places.push(place);
            places.len() - 1
        });
        stops.push(stop(event, u32::try_from(index + 1).unwrap_or(u32::MAX), solution));
    }
    let mut marks = String::new();
    for (index, (thread, site, occurrence)) in places.iter().enumerate() {
        let _ = writeln!(marks, "mark {} {thread} {site} @{occurrence}", index + 1);
    }
    let (head, rest) = script.split_once('\n').unwrap_or((script, ""));
    Marked { script: format!("{head}\n{marks}{rest}"), stops }
}

/// `e12` is event 12.
fn number(id: &str) -> Option<usize> {
    id.strip_prefix('e')?.parse().ok()
}

fn stop(event: &Event, mark: u32, solution: &Solution) -> Stop {
    let values = solution.values_of(&event.id);
    Stop {
        mark,
        event: event.id.clone(),
        thread: event.thread.clone(),
        what: what(event),
        object: values.is_some().then(|| event.object.clone()).flatten(),
        location: event.location.clone(),
        failing: values.and_then(|pair| pair.failing.clone()),
        alternate: values.and_then(|pair| pair.alternate.clone()),
    }
}

/// `writes bank->total`.
fn what(event: &Event) -> String {
    let verb = match event.kind.as_str() {
        "read" => "reads",
        "write" => "writes",
        "read-modify-write" => "reads and writes",
        "lock" => "locks",
        "lock-shared" => "locks (shared)",
        "unlock" => "unlocks",
        "unlock-shared" => "unlocks (shared)",
        "trylock-failed" => "fails to lock",
        "wake" => "wakes up from",
        "wait-timed-out" => "stops waiting for",
        "signal" => "signals",
        "broadcast" => "broadcasts",
        "semaphore-wait" => "waits for",
        "semaphore-wait-failed" => "fails to take",
        "semaphore-post" => "posts",
        "write-to" => "writes to",
        "read-from" => "reads from",
        "found-nothing-in" => "finds nothing in",
        "barrier-arrive" => "arrives at",
        "barrier-leave" => "leaves",
        "fork" => "creates",
        "join" => "joins",
        "start" => "starts",
        "exit" => "ends",
        "allocate" => "allocates",
        "free" => "frees",
        "end" => "leaves the function of",
        "failure" => "fails",
        other => other,
    };
    match &event.object {
        Some(object) => format!("{verb} {object}"),
        None => verb.to_owned(),
    }
}
