//! The top of the page, which is there without scripts: what failed, and why.

use super::escape;
use crate::Solution;
use crate::lanes::{describe, place};
use crate::solution::{Cause, Failure, Replay, RootCause, Verdict};
use std::fmt::Write as _;

/// The pattern of a cause where the order of events is none.
const EVERY_SCHEDULE: &str = "every-schedule";

/// The window's title.
pub(super) fn title(solution: &Solution) -> String {
    match &solution.failure {
        Some(failure) => {
            format!("{} at {} - Symbiosis", words(failure), place(&failure.location))
        }
        None => "Symbiosis".to_owned(),
    }
}

/// `assertion failed`, `deadlock`.
fn words(failure: &Failure) -> String {
    match failure.kind.as_str() {
        "assertion" => "assertion failed".to_owned(),
        kind => kind.replace('-', " "),
    }
}

/// The header's content.
pub(super) fn markup(solution: &Solution) -> String {
    let mut out = String::new();
    out.push_str("<section class=\"failed\" aria-labelledby=\"what\">");
    if let Some(failure) = &solution.failure {
        let _ = write!(
            out,
            "<h1 id=\"what\">{}{}</h1>",
            escape(&capital(&words(failure))),
            message(failure)
        );
        let location = &failure.location;
        let _ = write!(out, "<p>at {}", event(&failure.event, &place(location)));
        if !location.function.is_empty() {
            let _ = write!(out, " in <code>{}</code>", escape(&location.function));
        }
        let _ = write!(out, ", thread <b>{}</b>", escape(&failure.thread));
        if let Some(thread) = solution.threads.iter().find(|thread| thread.id == failure.thread) {
            let _ = write!(out, " (<code>{}</code>)", escape(&thread.entry));
        }
        out.push_str("</p>");
    } else {
        out.push_str("<h1 id=\"what\">No failure is recorded</h1>");
    }
    out.push_str(&replayed(solution));
    out.push_str("</section><section class=\"cause\" aria-labelledby=\"why\">");
    out.push_str(&cause(solution));
    out.push_str("</section>");
    out
}

fn capital(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(characters).collect()
}

/// What the program said.
fn message(failure: &Failure) -> String {
    let message = match failure.kind.as_str() {
        "assertion" => condition(failure),
        _ => failure.message.as_str(),
    };
    if message.is_empty() {
        return String::new();
    }
    format!(": <code>{}</code>", escape(message))
}

/// What was asserted, without the place and the function, which are said beside it. The message is
/// `FILE:LINE: FUNCTION: CONDITION`.
fn condition(failure: &Failure) -> &str {
    let message = failure.message.as_str();
    let line = format!(":{}: ", failure.location.line);
    let message = message.split_once(&line).map_or(message, |(_, behind)| behind);
    match message.split_once(": ") {
        Some((function, condition)) if function.contains('(') => condition,
        _ => message,
    }
}

/// Something that leads to an event.
fn event(id: &str, text: &str) -> String {
    format!(
        "<button type=\"button\" class=\"to\" data-event=\"{}\">{}</button>",
        escape(id),
        escape(text)
    )
}

fn replayed(solution: &Solution) -> String {
    if solution.schedule.is_empty() {
        return String::new();
    }
    let mut out = String::from("<ul class=\"replayed\">");
    let one = |out: &mut String, name: &str, replay: Replay, note: &str| {
        let (class, word) = match replay {
            Replay::Confirmed => ("good", "seen in a run of the program"),
            Replay::Diverged => ("bad", "the program left it when it was replayed"),
            Replay::NotRun => ("open", "not tried on the program"),
        };
        let _ = write!(out, "<li class=\"{class}\"><b>{name}</b> {word}");
        if !note.is_empty() {
            let _ = write!(out, ": {}", escape(note));
        }
        out.push_str("</li>");
    };
    one(&mut out, "Failing schedule:", solution.replay, &solution.replay_notes.join("; "));
    if let Some(alternate) = solution.alternates.first() {
        let name = if alternate.same_path { "Alternate schedule:" } else { "Passing run:" };
        let note = alternate.replay_note.as_deref().unwrap_or("");
        one(&mut out, name, alternate.replay, note);
    }
    out.push_str("</ul>");
    out
}

fn cause(solution: &Solution) -> String {
    let mut out = String::from("<h2 id=\"why\">Cause</h2>");
    match solution.verdict {
        Verdict::NoSchedule => {
            out.push_str("<p>No order of the recorded events leads to this failure.</p>");
        }
        Verdict::Unknown => out.push_str("<p>unknown: no answer was found.</p>"),
        Verdict::FailingSchedule => {
            if let Some(cause) = &solution.cause {
                out.push_str(&sentence(solution, cause));
            }
            match &solution.root_cause {
                Some(cause) => out.push_str(&orders(solution, cause)),
                None => out.push_str("<p>The search for the root cause ended early.</p>"),
            }
        }
    }
    if let Some(reason) = &solution.reason {
        let what = match solution.verdict {
            Verdict::NoSchedule => "As far as it is modelled:",
            _ => "Incomplete:",
        };
        let _ = write!(out, "<p class=\"note\">{what} {}</p>", escape(reason));
    }
    let gaps = solution.stats.model_gaps;
    if gaps > 0 {
        let _ = write!(
            out,
            "<p class=\"note\">{gaps} model gaps: not everything that the program did could be \
             modelled; <code>symbiosis check</code> lists them.</p>"
        );
    }
    out
}

/// The sentence, and the events that it names, numbered as in the schedules below.
fn sentence(solution: &Solution, cause: &Cause) -> String {
    let mut out = String::from("<p class=\"sentence\">");
    let thread = solution.threads.iter().any(|thread| cause.sentence.starts_with(&thread.id));
    let said = if thread { cause.sentence.clone() } else { capital(&cause.sentence) };
    for (index, part) in said.split('`').enumerate() {
        if index % 2 == 1 {
            let _ = write!(out, "<code>{}</code>", escape(part));
        } else {
            out.push_str(&escape(part));
        }
    }
    out.push_str(".</p>");
    if cause.pattern != EVERY_SCHEDULE && cause.pattern != "orders" {
        let case = cause.case.iter().map(|case| format!(" ({})", case.replace('-', " ")));
        let kind = capital(&cause.pattern.replace('-', " ")) + &case.collect::<String>();
        // Where it is about that, scripts draw brackets.
        let legend = match cause.pattern.ends_with("atomicity") {
            true => ". In the schedules, a bracket is beside what should be atomic.",
            false => "",
        };
        let _ = write!(out, "<p class=\"note\">{}{legend}</p>", escape(&kind));
    }
    if !cause.events.is_empty() {
        out.push_str("<ol class=\"named\">");
        for id in &cause.events {
            let _ = write!(out, "<li>{}</li>", end(solution, id));
        }
        out.push_str("</ol>");
    }
    out
}

fn orders(solution: &Solution, cause: &RootCause) -> String {
    let other_path = solution.alternates.iter().any(|alternate| !alternate.same_path);
    if cause.orders.is_empty() || (cause.fails_always && !other_path) {
        // The sentence has said so.
        let said = solution.cause.as_ref().is_some_and(|cause| cause.pattern == EVERY_SCHEDULE);
        let words = "<p>Every order of events along the recorded paths fails.</p>";
        return if said { String::new() } else { words.to_owned() };
    }
    let words = match (cause.fails_always, cause.orders.len()) {
        (true, _) => {
            "Every order of events along the recorded paths fails. With this one the other way \
             round the program takes another path and passes"
        }
        (false, 1) => "It fails because this comes before that",
        (false, _) => "It fails because of these orders together",
    };
    // The sentence says it shorter, if there is one.
    let open = if solution.cause.is_none() { " open" } else { "" };
    let mut out = format!("<details{open}><summary>{words}</summary><ol class=\"orders\">");
    for [before, after] in &cause.orders {
        let _ = write!(
            out,
            "<li>{} <span class=\"before\">before</span> {}</li>",
            end(solution, before),
            end(solution, after)
        );
    }
    out.push_str("</ol></details>");
    out
}

fn end(solution: &Solution, id: &str) -> String {
    let Some(found) = solution.event(id) else { return escape(id) };
    let what = describe(found, found.value.as_deref());
    event(id, &format!("{}: {what} ({})", found.thread, place(&found.location)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::lost_update;

    #[test]
    fn an_assertion_is_shown_without_its_place() {
        let mut failure = lost_update().failure.unwrap();
        for (said, shown) in [
            ("bank.c:30: void deposit(struct bank *): total == 2", "total == 2"),
            ("/src/bank.c:30: check: total > 1 ? a : b", "check: total > 1 ? a : b"),
            ("total == 2", "total == 2"),
            ("bank.cc:30: int main()::<lambda()>: a == std::max(b, c)", "a == std::max(b, c)"),
        ] {
            failure.message = said.to_owned();
            assert_eq!(condition(&failure), shown);
        }
    }

    #[test]
    fn the_sentence_comes_first_and_its_names_are_code() {
        let mut solution = lost_update();
        let markup = markup(&solution);
        assert!(markup.contains("wrote <code>bank-&gt;total</code> (bank.c:11)"), "{markup}");
        assert!(markup.contains("<details><summary>"), "the orders are folded behind it");
        solution.cause = None;
        assert!(super::markup(&solution).contains("<details open>"), "without it they are shown");
    }
}
