//! The two sides of the projection: beside each other where the width allows, otherwise one after
//! the other.

use super::TextOptions;
use super::style::{Paint, paint};
use crate::lanes::{Lane, Row};
use std::fmt;
use std::fmt::Write as _;

/// A line of one side: its text, and whether it is one of the reordered pair.
struct Line {
    text: String,
    flipped: bool,
}

pub(super) fn write(
    out: &mut String,
    failing: &Lane,
    alternate: &Lane,
    options: TextOptions,
) -> fmt::Result {
    let folded = common_prefix(failing, alternate);
    let lines = |lane: &Lane| -> Vec<Line> { lane.rows.iter().skip(folded).map(line).collect() };
    let (left, right) = (lines(failing), lines(alternate));
    let longest = |lines: &[Line], title: &str| {
        let lengths = lines.iter().map(|line| line.text.chars().count());
        lengths.max().unwrap_or(0).max(title.len() + 2)
    };
    let (width, other) = (longest(&left, failing.title), longest(&right, alternate.title));
    let mut notes = String::from("* the reordered pair");
    if failing.rows.iter().chain(&alternate.rows).any(|row| row.atomic) {
        notes.push_str(", | what the alternate does not interrupt");
    }
    if failing.rows.iter().chain(&alternate.rows).any(|row| !row.held.is_empty()) {
        notes.push_str(", {locks held}");
    }
    let heading = paint(options.colour, Paint::Heading, "differential schedule projection");
    writeln!(out, "\n{heading} ({notes})")?;
    if folded > 0 {
        let noun = if folded == 1 { "event" } else { "events" };
        writeln!(out, "  ... {folded} {noun} that both begin with")?;
    }
    if options.width.is_some_and(|limit| width + other + 5 > limit) {
        for (lane, lines, colour) in
            [(failing, &left, Paint::Failing), (alternate, &right, Paint::Passing)]
        {
            writeln!(out, "  {}", paint(options.colour, colour, lane.title))?;
            for line in lines {
                writeln!(out, "  {}", painted(line, options, colour))?;
            }
        }
        return Ok(());
    }
    let title = format!("{:<width$}", failing.title);
    writeln!(
        out,
        "  {} | {}",
        paint(options.colour, Paint::Failing, &title),
        paint(options.colour, Paint::Passing, alternate.title)
    )?;
    writeln!(out, "  {:-<width$}-+-{:-<30}", "", "")?;
    for index in 0..left.len().max(right.len()) {
        let length = left.get(index).map_or(0, |line| line.text.chars().count());
        let a = left.get(index).map(|line| painted(line, options, Paint::Failing));
        let b = right.get(index).map(|line| painted(line, options, Paint::Passing));
        let gap = " ".repeat(width - length);
        let line = format!("{}{gap} | {}", a.unwrap_or_default(), b.unwrap_or_default());
        writeln!(out, "  {}", line.trim_end())?;
    }
    Ok(())
}

fn painted(line: &Line, options: TextOptions, colour: Paint) -> String {
    paint(options.colour && line.flipped, colour, &line.text)
}

/// So many rows at the beginning are the same on both sides and tell nothing.
fn common_prefix(failing: &Lane, alternate: &Lane) -> usize {
    let flows = |lane: &Lane, event: &str| lane.flows.iter().any(|flow| flow.read == event);
    let alike = |(a, b): &(&Row, &Row)| {
        a == b && !a.flipped && !flows(failing, &a.event) && !flows(alternate, &b.event)
    };
    failing.rows.iter().zip(&alternate.rows).take_while(alike).count()
}

fn line(row: &Row) -> Line {
    let mark = if row.flipped { '*' } else { ' ' };
    let block = if row.atomic { '|' } else { ' ' };
    let held =
        if row.held.is_empty() { String::new() } else { format!(" {{{}}}", row.held.join(", ")) };
    let alone = row.alone.map(|words| format!(" ({words})")).unwrap_or_default();
    let text =
        format!("{mark}{block}{:<5} {:<18} {}{held}{alone}", row.thread, row.place, row.what);
    Line { text: text.trim_end().to_owned(), flipped: row.flipped }
}
