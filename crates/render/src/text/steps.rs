//! The events of the cause, in the failing schedule's order, with their source.

use super::style::{Paint, cut, paint};
use super::{SourceLine, TextOptions};
use crate::Solution;
use crate::held::held;
use crate::lanes::{describe, place};
use crate::solution::{Event, Location};
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

/// Lines shown before and behind the line of an event.
const AROUND: u32 = 1;

/// Writes what the sentence about the cause names, one event after the other.
pub(super) fn write(
    out: &mut String,
    solution: &Solution,
    options: TextOptions,
    source: &SourceLine<'_>,
) -> fmt::Result {
    let Some(cause) = &solution.cause else { return Ok(()) };
    let places: BTreeMap<&str, usize> =
        solution.schedule.iter().enumerate().map(|(place, id)| (id.as_str(), place)).collect();
    let mut events: Vec<&Event> = cause.events.iter().filter_map(|id| solution.event(id)).collect();
    // What only the passing run has came too late here.
    events.sort_by_key(|event| places.get(event.id.as_str()).copied().unwrap_or(usize::MAX));
    let locks = held(solution, &solution.schedule);
    for (number, event) in (1..).zip(events) {
        let held = locks.get(event.id.as_str()).map(Vec::as_slice).unwrap_or_default();
        write_event(out, solution, number, event, held)?;
        write_place(out, &event.location)?;
        write_lines(out, &event.location, options, source)?;
        write_callers(out, event, options)?;
    }
    if !cause.events.is_empty() {
        writeln!(out)?;
    }
    Ok(())
}

fn write_event(
    out: &mut String,
    solution: &Solution,
    number: usize,
    event: &Event,
    held: &[&str],
) -> fmt::Result {
    let entry = solution.all_threads().find(|thread| thread.id == event.thread);
    let entry = entry.map(|thread| format!(" ({})", thread.entry)).unwrap_or_default();
    let what = describe(event, event.value.as_deref());
    write!(out, "  {number}. {}{entry}: {what}", event.thread)?;
    if event.id.starts_with('a') {
        write!(out, ", in the passing run only")?;
    } else if let Some(other) =
        solution.values_of(&event.id).and_then(|pair| pair.alternate.as_ref())
        && Some(other) != event.value.as_ref()
        && !differ_by_address(solution, event.value.as_deref(), other)
    {
        write!(out, " ({other} when it passes)")?;
    }
    if !held.is_empty() {
        write!(out, ", holding {}", held.join(", "))?;
    }
    writeln!(out, " [{}]", event.id)
}

/// Are these two pointers of two runs, neither of them null? Where things lie in memory differs from run
/// to run, and means nothing.
fn differ_by_address(solution: &Solution, value: Option<&str>, other: &str) -> bool {
    let address = |text: &str| text.starts_with("0x");
    let same_run = solution.alternates.first().is_none_or(|alternate| alternate.same_path);
    !same_run && value.is_some_and(address) && address(other)
}

fn write_place(out: &mut String, location: &Location) -> fmt::Result {
    write!(out, "     at {}", place(location))?;
    if !location.function.is_empty() {
        write!(out, " in {}", location.function)?;
    }
    writeln!(out)
}

/// The line with its neighbours, as far as there is source.
pub(super) fn write_lines(
    out: &mut String,
    location: &Location,
    options: TextOptions,
    source: &SourceLine<'_>,
) -> fmt::Result {
    let Some(own) = source(&location.file, location.line).filter(|_| location.line > 0) else {
        return Ok(());
    };
    let from = location.line.saturating_sub(AROUND).max(1);
    for line in from..=location.line.saturating_add(AROUND) {
        let text =
            if line == location.line { Some(own.clone()) } else { source(&location.file, line) };
        let Some(text) = text else { continue };
        let text = text.replace('\t', "    ");
        let mark = if line == location.line { '>' } else { ' ' };
        let text = format!("     {mark}{line:>5} | {}", text.trim_end());
        let text = options.width.map_or_else(|| text.clone(), |width| cut(&text, width));
        let text =
            if line == location.line { text } else { paint(options.colour, Paint::Dim, &text) };
        writeln!(out, "{text}")?;
    }
    Ok(())
}

fn write_callers(out: &mut String, event: &Event, options: TextOptions) -> fmt::Result {
    for caller in &event.callers {
        let mut line = format!("     called at {}", place(caller));
        if !caller.function.is_empty() {
            let _ = write!(line, " in {}", caller.function);
        }
        writeln!(out, "{}", paint(options.colour, Paint::Dim, &line))?;
    }
    Ok(())
}
