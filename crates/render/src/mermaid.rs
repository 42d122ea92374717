//! Mermaid: the two sides of the DSP as one sequence diagram, for pages that render Markdown.
//!
//! Every event is a note over its thread, every data-flow between threads that differs an arrow with
//! the value. Both sides share the threads' lifelines, the failing schedule first.

use crate::Solution;
use crate::lanes::{Lane, Row, lanes};
use crate::solution::Failure;
use std::fmt::{self, Write as _};

/// The sequence diagram, or one that says that there is no projection.
#[must_use]
pub fn to_mermaid(solution: &Solution) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write(&mut out, solution);
    out
}

fn write(out: &mut String, solution: &Solution) -> fmt::Result {
    writeln!(out, "sequenceDiagram")?;
    if let Some(cause) = &solution.cause {
        writeln!(out, "    accTitle: {}", text(&cause.sentence))?;
    }
    let Some([failing, alternate]) = lanes(solution) else {
        writeln!(out, "    participant none as no differential schedule projection")?;
        return Ok(());
    };
    let mut shown: Vec<&str> = Vec::new();
    for thread in solution.all_threads() {
        let mut rows = failing.rows.iter().chain(&alternate.rows);
        let ends = solution.failure.as_ref().is_some_and(|failure| failure.thread == thread.id);
        if ends || rows.any(|row| row.thread == thread.id) {
            let name = text(&format!("{} {}", thread.id, thread.entry));
            writeln!(out, "    participant {} as {name}", participant(&thread.id))?;
            shown.push(&thread.id);
        }
    }
    write_lane(out, &failing, &shown, "rgba(179, 38, 30, 0.12)")?;
    if let Some(failure) = &solution.failure {
        write_failure(out, failure)?;
    }
    writeln!(out, "    end")?;
    write_lane(out, &alternate, &shown, "rgba(30, 107, 58, 0.12)")?;
    writeln!(out, "    end")
}

fn write_lane(out: &mut String, lane: &Lane, shown: &[&str], colour: &str) -> fmt::Result {
    writeln!(out, "    rect {colour}")?;
    if let (Some(first), Some(last)) = (shown.first(), shown.last()) {
        let over = if first == last {
            participant(first)
        } else {
            format!("{},{}", participant(first), participant(last))
        };
        writeln!(out, "        Note over {over}: {}", text(lane.title))?;
    }
    for row in &lane.rows {
        let mark = if row.flipped { "* " } else { "" };
        let alone = row.alone.map(|words| format!(" ({words})")).unwrap_or_default();
        let what = text(&format!("{mark}{} {}{alone}", row.place, row.what));
        writeln!(out, "        Note over {}: {what}", participant(&row.thread))?;
        write_flows(out, lane, row)?;
    }
    Ok(())
}

/// What the event reads from another thread's event that is shown.
fn write_flows(out: &mut String, lane: &Lane, row: &Row) -> fmt::Result {
    for flow in lane.flows.iter().filter(|flow| flow.read == row.event) {
        let Some(write) = lane.rows.iter().find(|other| other.event == flow.write) else {
            continue;
        };
        let value = flow.value.as_deref().unwrap_or("?");
        let (from, to) = (participant(&write.thread), participant(&row.thread));
        writeln!(out, "        {from}->>{to}: {}", text(value))?;
    }
    Ok(())
}

fn write_failure(out: &mut String, failure: &Failure) -> fmt::Result {
    let kind = failure.kind.replace('-', " ");
    let place = crate::lanes::place(&failure.location);
    let what = text(&format!("{kind} at {place}"));
    writeln!(out, "        Note over {}: {what}", participant(&failure.thread))
}

/// A name that Mermaid takes: dots are no part of one.
fn participant(thread: &str) -> String {
    thread.replace('.', "_")
}

/// A text that means nothing to Mermaid: its own characters as entities.
fn text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            ';' | '#' | '<' | '>' | '{' | '}' | '%' | '"' | '&' | '`' => {
                let _ = write!(out, "#{};", u32::from(character));
            }
            '\n' | '\r' => out.push(' '),
            other => out.push(other),
        }
    }
    // The word ends a block, wherever it stands.
    let words: Vec<String> = out
        .split(' ')
        .map(|word| if word == "end" { "e#110;d".to_owned() } else { word.to_owned() })
        .collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{lost_update, other_path};
    use expect_test::expect;

    #[test]
    fn a_lost_update_is_a_sequence() {
        let mut solution = lost_update();
        solution.threads.push(crate::solution::Thread {
            id: "t0.2".to_owned(),
            parent: Some("t0".to_owned()),
            entry: "deposit".to_owned(),
        });
        expect![[r#"
            sequenceDiagram
                accTitle: t0.1 wrote #96;bank-#62;total#96; (bank.c:11) between t0.2's read (bank.c:10) and its write (bank.c:11)
                participant t0 as t0 main
                participant t0_1 as t0.1 deposit
                participant t0_2 as t0.2 deposit
                rect rgba(179, 38, 30, 0.12)
                    Note over t0,t0_2: failing schedule
                    Note over t0_2: * bank.c:10 read bank-#62;total = 0
                    Note over t0_1: * bank.c:11 write bank-#62;total = 1
                    Note over t0: assertion at bank.c:30
                end
                rect rgba(30, 107, 58, 0.12)
                    Note over t0,t0_2: alternate schedule
                    Note over t0_1: * bank.c:11 write bank-#62;total = 1
                    Note over t0_2: * bank.c:10 read bank-#62;total = 1
                    t0_1->>t0_2: 1
                end
        "#]].assert_eq(&to_mermaid(&solution));
    }

    #[test]
    fn what_only_one_run_has_is_said() {
        let diagram = to_mermaid(&other_path());
        assert!(diagram.contains("(does not happen there)"), "{diagram}");
        assert!(diagram.contains("passing run"), "{diagram}");
    }

    #[test]
    fn words_of_mermaid_are_escaped() {
        assert_eq!(text("a; end #b"), "a#59; e#110;d #35;b");
    }
}
