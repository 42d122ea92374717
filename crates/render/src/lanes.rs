//! The two sides of a DSP as rows, the common ground of the text, DOT and SVG formats.

use crate::Solution;
use crate::held::held;
use crate::solution::{DataFlow, Event, Location};
use std::collections::BTreeSet;

/// One side of the DSP: a schedule's projected events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lane {
    /// `failing schedule`, `alternate schedule`, or `passing run` when that takes other paths.
    pub title: &'static str,
    /// The events in order.
    pub rows: Vec<Row>,
    /// The data-flows that only this side has.
    pub flows: Vec<DataFlow>,
}

/// An event as one side shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The event's identifier.
    pub event: String,
    /// The thread's name.
    pub thread: String,
    /// `bank.c:20`.
    pub place: String,
    /// `read bank->total = 100`.
    pub what: String,
    /// Is it one of the reordered pair?
    pub flipped: bool,
    /// The locks that the thread holds.
    pub held: Vec<String>,
    /// Is it in a block that this side does not interrupt and the other one does?
    pub atomic: bool,
    /// In words, that the other side does not have the event; `None` when it has.
    pub alone: Option<&'static str>,
}

/// Both sides, failing first; `None` without a DSP.
#[must_use]
pub fn lanes(solution: &Solution) -> Option<[Lane; 2]> {
    let dsp = solution.dsp.as_ref()?;
    let failing = Lane {
        title: "failing schedule",
        rows: rows(solution, &dsp.failing, Side::Failing),
        flows: dsp.data_flows.failing_only.clone(),
    };
    let same_path = solution.alternates.first().is_none_or(|alternate| alternate.same_path);
    let alternate = Lane {
        title: if same_path { "alternate schedule" } else { "passing run" },
        rows: rows(solution, &dsp.alternate, Side::Alternate),
        flows: dsp.data_flows.alternate_only.clone(),
    };
    Some([failing, alternate])
}

#[derive(Clone, Copy)]
enum Side {
    Failing,
    Alternate,
}

fn rows(solution: &Solution, events: &[String], side: Side) -> Vec<Row> {
    let alternate = solution.alternates.first();
    // Of a run on other paths, what came too late may stand beside another event in the cause.
    let flipped = |id: &String| {
        let other = alternate.is_some_and(|alternate| !alternate.same_path);
        let cause = solution.root_cause.as_ref().filter(|_| other);
        alternate.is_some_and(|alternate| alternate.flipped.contains(id))
            || cause.is_some_and(|cause| cause.orders.iter().any(|order| order.contains(id)))
    };
    let elsewhere: Option<BTreeSet<&str>> = alternate
        .filter(|alternate| !alternate.same_path)
        .map(|alternate| alternate.schedule.iter().map(String::as_str).collect());
    let alone = |id: &str| match side {
        Side::Failing => elsewhere
            .as_ref()
            .is_some_and(|events| !events.contains(id))
            .then_some("does not happen there"),
        Side::Alternate => id.starts_with('a').then_some("only in the passing run"),
    };
    let schedule = match (side, alternate) {
        (Side::Alternate, Some(alternate)) => &alternate.schedule,
        _ => &solution.schedule,
    };
    let locks = held(solution, schedule);
    let blocks = match side {
        Side::Failing => Vec::new(),
        Side::Alternate => blocks(solution, events),
    };
    events
        .iter()
        .filter_map(|id| solution.event(id))
        .map(|event| {
            let pair = solution.values_of(&event.id);
            let value = match side {
                Side::Failing => pair.and_then(|pair| pair.failing.as_deref()),
                Side::Alternate => pair.and_then(|pair| pair.alternate.as_deref()),
            };
            Row {
                event: event.id.clone(),
                thread: event.thread.clone(),
                place: place(&event.location),
                what: describe(event, value),
                flipped: flipped(&event.id),
                held: locks
                    .get(event.id.as_str())
                    .map(|names| names.iter().map(|name| (*name).to_owned()).collect())
                    .unwrap_or_default(),
                atomic: blocks.contains(&event.id.as_str()),
                alone: alone(&event.id),
            }
        })
        .collect()
}

/// The events of the alternate that belong to blocks which only it keeps whole.
fn blocks<'s>(solution: &'s Solution, events: &'s [String]) -> Vec<&'s str> {
    let all = solution.dsp.iter().flat_map(|dsp| &dsp.atomic_blocks);
    let spans = all.filter_map(|block| {
        let place = |id: &String| events.iter().position(|other| other == id);
        let (from, to) = (place(&block.first)?, place(&block.last)?);
        events.get(from..=to)
    });
    // A block of one event is none.
    spans.filter(|span| span.len() > 1).flatten().map(String::as_str).collect()
}

/// `bank.c:20`: the file's last component and the line, where there is one.
#[must_use]
pub fn place(location: &Location) -> String {
    if location.line == 0 && location.file.is_empty() {
        return "?".to_owned();
    }
    let file = location.file.rsplit('/').next().unwrap_or(&location.file);
    match location.line {
        0 => file.to_owned(),
        line => format!("{file}:{line}"),
    }
}

/// `read bank->total = 100`.
#[must_use]
pub fn describe(event: &Event, value: Option<&str>) -> String {
    let mut text = event.kind.replace('-', " ");
    if let Some(object) = &event.object {
        text.push(' ');
        text.push_str(object);
    }
    if let Some(value) = value {
        text.push_str(" = ");
        text.push_str(value);
    }
    text
}
