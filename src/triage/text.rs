//! The outcome for people: for a terminal or a log, and as Markdown for a CI job's summary.

use super::{Group, Member, State, Triage, Unsolved};
use render::solution::Replay;
use std::fmt::Write as _;

/// So many traces of a group are named.
const NAMED: usize = 5;

impl Triage {
    /// For a terminal or a log.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        let _ = writeln!(out, "{}", self.summary());
        for (number, group) in (1..).zip(&self.groups) {
            let _ = writeln!(out, "\n{number}. {}", headline(group));
            let _ = writeln!(out, "   {}", sentence(group));
            let _ = writeln!(out, "   failure: {}", failure(group));
            for fact in facts(group) {
                let _ = writeln!(out, "   {fact}");
            }
            for member in group.traces.iter().take(NAMED) {
                let _ = writeln!(out, "   {}{}", member.trace, replay(member));
            }
            if let Some(more) = group.traces.len().checked_sub(NAMED).filter(|more| *more > 0) {
                let _ = writeln!(out, "   and {more} more");
            }
        }
        if !self.unsolved.is_empty() {
            let _ = writeln!(out, "\nno answer:");
            for Unsolved { member, reason, .. } in &self.unsolved {
                let _ = writeln!(out, "   {}: {reason}", member.trace);
            }
        }
        if !self.absent.is_empty() {
            let _ = writeln!(out, "\nknown causes that did not come up:");
            for cause in &self.absent {
                let _ = writeln!(out, "   {} {}", cause.fingerprint, cause.note);
            }
        }
        out
    }

    /// As Markdown. `page`: the file that shows a group, by its number from 1.
    #[must_use]
    pub fn to_markdown(&self, page: &dyn Fn(usize) -> Option<String>) -> String {
        let mut out = String::new();
        let _ = writeln!(out, "## {}\n", escaped(&self.summary()));
        if !self.groups.is_empty() {
            let _ = writeln!(out, "| | cause | failure | traces | fingerprint |");
            let _ = writeln!(out, "| --- | --- | --- | --- | --- |");
        }
        for (number, group) in (1..).zip(&self.groups) {
            let linked = page(number).map(|page| format!("[{number}]({page})"));
            let state = state(group).map(|state| format!(" {state}")).unwrap_or_default();
            let _ = writeln!(
                out,
                "| {}{state} | {} | {} | {} | {} |",
                linked.unwrap_or_else(|| number.to_string()),
                escaped(sentence(group)),
                escaped(&failure(group)),
                group.traces.len(),
                group.fingerprint.as_deref().map(|print| format!("`{print}`")).unwrap_or_default(),
            );
        }
        for (number, group) in (1..).zip(&self.groups) {
            let _ = writeln!(out, "\n<details><summary>Traces of {number}</summary>\n");
            for fact in facts(group) {
                let _ = writeln!(out, "* {}", escaped(&fact));
            }
            for member in &group.traces {
                let _ = writeln!(out, "* {}{}", escaped(&member.trace), replay(member));
            }
            let _ = writeln!(out, "\n</details>");
        }
        if !self.unsolved.is_empty() {
            let _ = writeln!(out, "\n### No answer\n");
            for Unsolved { member, reason, .. } in &self.unsolved {
                let _ = writeln!(out, "* {}: {}", escaped(&member.trace), escaped(reason));
            }
        }
        if !self.absent.is_empty() {
            let _ = writeln!(out, "\n### Known causes that did not come up\n");
            for cause in &self.absent {
                let _ = writeln!(out, "* `{}` {}", cause.fingerprint, escaped(&cause.note));
            }
        }
        out
    }

    /// How much there is of everything.
    fn summary(&self) -> String {
        let failing = counted(self.failures(), "failing trace", "failing traces");
        let causes = self.groups.iter().filter(|group| group.fingerprint.is_some()).count();
        let bugs = self.groups.iter().filter_map(|group| group.bug).max().unwrap_or(causes);
        let causes = match bugs < causes {
            true => format!("{causes} causes of perhaps {}", counted(bugs, "bug", "bugs")),
            false => counted(causes, "cause", "causes"),
        };
        let mut parts = vec![failing, causes];
        let new = self.groups.iter().filter(|group| group.state == Some(State::New)).count();
        if new > 0 {
            parts.push(format!("{new} new"));
        }
        let unknown: usize = self
            .groups
            .iter()
            .filter(|group| group.fingerprint.is_none())
            .map(|group| group.traces.len())
            .sum();
        if unknown > 0 {
            parts.push(format!("{unknown} without a cause"));
        }
        if !self.unsolved.is_empty() {
            parts.push(format!("{} without an answer", self.unsolved.len()));
        }
        if !self.passed.is_empty() {
            parts.push(format!("{} of runs that passed", self.passed.len()));
        }
        parts.join(", ")
    }
}

fn counted(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

fn headline(group: &Group) -> String {
    let mut parts = vec![counted(group.traces.len(), "trace", "traces")];
    parts.extend(state(group).map(str::to_owned));
    if !group.pattern.is_empty() {
        parts.push(group.pattern.clone());
    }
    parts.extend(group.fingerprint.clone());
    parts.join(", ")
}

fn state(group: &Group) -> Option<&'static str> {
    group.state.map(|state| match state {
        State::New => "new",
        State::Known => "known",
    })
}

/// The cause, or why there is none.
pub(super) fn sentence(group: &Group) -> &str {
    match (group.cause.as_str(), group.reason.as_str()) {
        ("", "") => "no cause is known",
        ("", reason) => reason,
        (cause, _) => cause,
    }
}

/// The failure with its message.
pub(super) fn failure(group: &Group) -> String {
    match said(&group.message) {
        "" => group.failure.clone(),
        message => format!("{}: {message}", group.failure),
    }
}

/// A message without the place that an assertion's begins with (`file:line: function: `), which the failure has
/// already.
fn said(message: &str) -> &str {
    let behind = |part: &str| {
        let (place, rest) = part.split_once(": ")?;
        let (_, line) = place.rsplit_once(':')?;
        line.parse::<u32>().ok()?;
        Some(rest.split_once(": ").map_or(rest, |(_, expression)| expression).len())
    };
    behind(message).map_or(message, |length| &message[message.len() - length..])
}

/// What else is known of a group.
fn facts(group: &Group) -> Vec<String> {
    let mut facts = Vec::new();
    if !group.cause.is_empty() && !group.reason.is_empty() {
        facts.push(group.reason.clone());
    }
    if !group.repair.is_empty() {
        facts.push(format!("repair: {}", group.repair.join("; ")));
    }
    if !group.related.is_empty() {
        let numbers: Vec<String> = group.related.iter().map(ToString::to_string).collect();
        facts.push(format!("perhaps the same bug as {}", numbers.join(", ")));
    }
    facts
}

fn replay(member: &Member) -> String {
    match member.replay {
        Replay::NotRun => String::new(),
        replay => format!(" ({})", replay.words()),
    }
}

/// Text as Markdown that means nothing else; what stands between backticks is code there too.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut code = false;
    for character in text.chars() {
        match character {
            '`' => {
                code = !code;
                out.push('`');
            }
            '|' => out.push_str("\\|"),
            '\n' => out.push(' '),
            '*' | '_' | '<' | '[' | ']' | '\\' if !code => {
                out.push('\\');
                out.push(character);
            }
            _ => out.push(character),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::{KnownCause, Member};
    use super::*;

    fn triage() -> Triage {
        let member =
            |trace: &str, replay| Member { trace: trace.to_owned(), replay, ..Member::default() };
        let group = Group {
            state: Some(State::New),
            fingerprint: Some("0123456789abcdef".to_owned()),
            pattern: "order".to_owned(),
            cause: "t0 read `*slot` (q.c:7) before t0.1 wrote it".to_owned(),
            failure: "assertion at q.c:9".to_owned(),
            message: "q.c:9: main: a | b".to_owned(),
            traces: (0..7).map(|n| member(&format!("{n}.trace"), Replay::Confirmed)).collect(),
            repair: vec!["hold `m` across both".to_owned()],
            related: vec![2],
            ..Group::default()
        };
        let other = Group {
            state: Some(State::New),
            failure: "assertion at q.c:9".to_owned(),
            reason: "no schedule was found: time".to_owned(),
            traces: vec![member("x_y.trace", Replay::NotRun)],
            ..Group::default()
        };
        let unsolved = Unsolved {
            member: member("cut.trace", Replay::NotRun),
            code: Some(20),
            reason: "it is cut".to_owned(),
        };
        let known =
            KnownCause { fingerprint: "f123456789abcdef".to_owned(), note: "#7".to_owned() };
        Triage {
            groups: vec![group, other],
            unsolved: vec![unsolved],
            passed: vec![member("good.trace", Replay::NotRun)],
            absent: vec![known],
            ..Triage::default()
        }
    }

    #[test]
    fn the_text_says_what_there_is() {
        let expected = "\
9 failing traces, 1 cause, 2 new, 1 without a cause, 1 without an answer, 1 of runs that passed

1. 7 traces, new, order, 0123456789abcdef
   t0 read `*slot` (q.c:7) before t0.1 wrote it
   failure: assertion at q.c:9: a | b
   repair: hold `m` across both
   perhaps the same bug as 2
   0.trace (replay: confirmed)
   1.trace (replay: confirmed)
   2.trace (replay: confirmed)
   3.trace (replay: confirmed)
   4.trace (replay: confirmed)
   and 2 more

2. 1 trace, new
   no schedule was found: time
   failure: assertion at q.c:9
   x_y.trace

no answer:
   cut.trace: it is cut

known causes that did not come up:
   f123456789abcdef #7
";
        assert_eq!(triage().to_text(), expected);
    }

    #[test]
    fn markdown_has_a_row_for_each_group_and_keeps_its_columns() {
        let text = triage().to_markdown(&|number| (number == 1).then(|| "1.html".to_owned()));
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
        assert_eq!(
            rows[2],
            "| [1](1.html) new | t0 read `*slot` (q.c:7) before t0.1 wrote it | assertion at \
             q.c:9: a \\| b | 7 | `0123456789abcdef` |"
        );
        assert!(rows[3].starts_with("| 2 new | no schedule was found: time |"), "{}", rows[3]);
        assert!(text.contains("* x\\_y.trace\n"), "{text}");
    }

    #[test]
    fn the_place_is_not_told_twice() {
        assert_eq!(said("q.c:9: int f(int): a == b: c"), "a == b: c");
        assert_eq!(said("stack smashing: q.c"), "stack smashing: q.c");
        assert_eq!(said("time 10:30"), "time 10:30");
        assert_eq!(said(""), "");
    }

    #[test]
    fn nothing_is_told_as_nothing() {
        assert_eq!(Triage::default().to_text(), "0 failing traces, 0 causes\n");
    }
}
