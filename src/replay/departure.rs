//! Where and why a run left its schedule, in terms of the source.

use super::Attempt;
use super::original::executed;
use model::{Event, EventTrace};
use std::fmt;
use symex::Execution;
use trace_format::layout::{LeftReason, site_hash};

/// The first difference between what a schedule says and what the run did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Departure {
    /// The line of the schedule's text, from 1.
    pub line: u32,
    /// The line itself.
    pub turn: String,
    /// Why.
    pub reason: LeftReason,
    /// The event that the turn was to lead up to, with its source place.
    pub expected: Option<String>,
    /// Where the thread was instead.
    pub came: Option<String>,
    /// The scheduler's own words.
    pub message: String,
    /// Per thread that took another path, where it did so first.
    pub differences: Vec<Difference>,
}

/// The first difference between a thread's recorded path and the path that it took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The thread.
    pub thread: String,
    /// What it did next in the recorded run; none when it ended there.
    pub recorded: Option<String>,
    /// What it did instead; none when it came no further.
    pub found: Option<String>,
}

impl Departure {
    pub(super) fn of(attempt: &Attempt) -> Option<Self> {
        let left = attempt.report.left?;
        let index = (left.line as usize).saturating_sub(1);
        let turn = attempt.script.lines().nth(index).unwrap_or("").trim().to_owned();
        let execution = attempt.original.execution();
        let expected = execution.and_then(|execution| event_of_turn(execution, &turn));
        let came = match execution {
            Some(execution) if left.site != 0 => place_of_site(execution, &turn, left.site),
            _ => None,
        };
        let differences = match (execution, executed(attempt)) {
            (Some(original), Some(now)) => differences(&original.trace, &now.trace),
            _ => Vec::new(),
        };
        let message = attempt.report.message.clone();
        Some(Self {
            line: left.line,
            turn,
            reason: left.reason,
            expected,
            came,
            message,
            differences,
        })
    }
}

/// Thread, site and occurrence of a turn.
fn parts(turn: &str) -> Option<(&str, &str, u64)> {
    let turn = turn.split(" #").next().unwrap_or(turn);
    let mut words = turn.split_whitespace();
    let thread = words.next()?;
    if words.next()? != ">" {
        return None;
    }
    let site = words.next()?;
    let occurrence = words.find_map(|word| word.strip_prefix('@')).and_then(|n| n.parse().ok());
    Some((thread, site, occurrence.unwrap_or(1)))
}

fn event_of_turn(execution: &Execution, turn: &str) -> Option<String> {
    let (thread, site, occurrence) = parts(turn)?;
    let (trace, points) = (&execution.trace, &execution.points);
    let event = trace.events.iter().find(|event| {
        let at = points.point(event.id);
        trace.threads[event.thread.index()].name == thread
            && at.is_some_and(|at| at.occurrence == occurrence && points.site(at) == site)
    })?;
    Some(described(trace, event))
}

/// The name of the site with this hash, and where the thread's events there are.
fn place_of_site(execution: &Execution, turn: &str, hash: u64) -> Option<String> {
    let points = &execution.points;
    let thread = parts(turn).map(|(thread, ..)| thread);
    let name = points.sites.iter().find(|name| site_hash(name.as_bytes()) == hash)?;
    let event = execution.trace.events.iter().find(|event| {
        let name_of = &execution.trace.threads[event.thread.index()].name;
        points.point(event.id).is_some_and(|at| points.site(at) == name)
            && thread.is_none_or(|thread| thread == name_of)
    });
    Some(match event {
        Some(event) => format!("{name} ({})", place(event)),
        None => name.clone(),
    })
}

fn differences(original: &EventTrace, now: &EventTrace) -> Vec<Difference> {
    let mut found = Vec::new();
    for thread in &original.threads {
        let events = |trace: &EventTrace, name: &str| -> Option<Vec<Event>> {
            let thread = trace.threads.iter().find(|thread| thread.name == name)?;
            Some(thread.events.iter().map(|id| trace.event(*id).clone()).collect())
        };
        let (Some(then), Some(this)) = (events(original, &thread.name), events(now, &thread.name))
        else {
            continue;
        };
        let same = |pair: &(&Event, &Event)| {
            pair.0.kind.name() == pair.1.kind.name() && pair.0.stack == pair.1.stack
        };
        let common = then.iter().zip(&this).take_while(same).count();
        // A run that was cut short is no difference.
        let (Some(a), Some(b)) = (then.get(common), this.get(common)) else { continue };
        found.push(Difference {
            thread: thread.name.clone(),
            recorded: Some(described(original, a)),
            found: Some(described(now, b)),
        });
    }
    found
}

fn described(trace: &EventTrace, event: &Event) -> String {
    let name = event.name.as_deref().or_else(|| {
        let reads = event.kind.reads().iter().map(|part| part.cell);
        let cell = reads.chain(event.kind.writes().iter().map(|part| part.cell)).next()?;
        Some(&trace.cells[cell.index()].name)
    });
    let kind = event.kind.name();
    match name {
        Some(name) => format!("{kind} {name} at {}", place(event)),
        None => format!("{kind} at {}", place(event)),
    }
}

fn place(event: &Event) -> String {
    let site = event.site();
    let file = site.file.rsplit('/').next().unwrap_or(&site.file);
    match (file.is_empty(), site.function.is_empty()) {
        (true, _) => "an unknown place".to_owned(),
        (false, true) => format!("{file}:{}", site.line),
        (false, false) => format!("{file}:{} in {}", site.line, site.function),
    }
}

impl fmt::Display for Departure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match self.reason {
            LeftReason::None => "for a reason that is not known",
            LeftReason::Ended => "the thread ended before it got there",
            LeftReason::Blocked => "the thread waits for another one",
            LeftReason::Late => "the thread did not get there in time",
            LeftReason::Absent => "there is no such thread",
            LeftReason::Exited => "the process ended before",
        };
        write!(f, "the schedule was left at line {} (`{}`): {why}", self.line, self.turn)?;
        if let Some(expected) = &self.expected {
            write!(f, "; expected: {expected}")?;
        }
        if let Some(came) = &self.came {
            write!(f, "; the thread was at {came}")?;
        }
        if !self.message.is_empty() {
            write!(f, "; {}", self.message)?;
        }
        for difference in &self.differences {
            write!(f, "; {difference}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nothing = || "nothing more".to_owned();
        let recorded = self.recorded.clone().unwrap_or_else(nothing);
        let found = self.found.clone().unwrap_or_else(nothing);
        write!(
            f,
            "{} took another path: {found}, where the recorded run has {recorded}",
            self.thread
        )
    }
}
