//! Are two failures the same bug? By the fingerprints of their causes, and by what differs.

mod traits;

use render::Solution;
use render::solution::Event;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;
pub use traits::Traits;
pub(crate) use traits::place;

/// The value of [`Comparison::format`].
pub const FORMAT: &str = "symbiosis-comparison";
/// The version of the format.
pub const VERSION: &str = "1.0";

/// What `symbiosis diff` found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comparison {
    /// [`FORMAT`].
    pub format: String,
    /// [`VERSION`].
    pub version: String,
    /// Is it the same cause?
    pub same: bool,
    /// What the two have to say, in the order in which they were given.
    pub sides: [Side; 2],
    /// In what they differ: what, and both sides.
    pub differences: Vec<Difference>,
}

/// One of two failures.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Side {
    /// The sentence about the cause; empty when none is known.
    pub cause: String,
    /// The fingerprint; empty when none is known.
    pub fingerprint: String,
    /// The failure's kind and place.
    pub failure: String,
}

/// A difference.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// `pattern`, `case`, `variables`, `events`, `lines`, `threads` or `failure`.
    pub what: String,
    /// Both sides.
    pub sides: [String; 2],
}

/// The fingerprint of the cause; none where it names no events, as that every schedule fails: that has one
/// fingerprint, whatever the program.
#[must_use]
pub fn fingerprint(solution: &Solution) -> Option<&str> {
    let cause = solution.cause.as_ref().filter(|cause| !cause.events.is_empty())?;
    Some(&*cause.fingerprint).filter(|print| !print.is_empty())
}

/// What tells two causes apart: the fingerprint, or, where the cause names no events, its pattern with the kind, the file
/// and the function of the failure.
fn identity(solution: &Solution) -> Option<String> {
    if let Some(print) = fingerprint(solution) {
        return Some(print.to_owned());
    }
    let (cause, failure) = (solution.cause.as_ref()?, solution.failure.as_ref()?);
    let file = failure.location.file.rsplit('/').next().unwrap_or_default();
    Some([&*cause.pattern, &*failure.kind, file, &*failure.location.function].join(" "))
}

/// Compares two answers. Only the fingerprints say whether the cause is the same, or, of causes that name no events, the
/// place of the failure; two answers without a cause are never the same.
#[must_use]
pub fn compare(one: &Solution, other: &Solution) -> Comparison {
    let sides = [one, other].map(side);
    let known = identity(one);
    let same = known.is_some() && known == identity(other);
    let mut differences = Vec::new();
    for (what, of) in ASPECTS {
        let sides = [one, other].map(of);
        if sides[0] != sides[1] {
            differences.push(Difference { what: (*what).to_owned(), sides });
        }
    }
    let (format, version) = (FORMAT.to_owned(), VERSION.to_owned());
    Comparison { format, version, same, sides, differences }
}

type Aspect = (&'static str, fn(&Solution) -> String);

const ASPECTS: &[Aspect] = &[
    ("pattern", |s| s.cause.as_ref().map(|c| c.pattern.clone()).unwrap_or_default()),
    ("case", |s| s.cause.as_ref().and_then(|c| c.case.clone()).unwrap_or_default()),
    ("variables", |s| variables(s).join(", ")),
    ("events", |s| listed(s, |event| format!("{} in {}", event.kind, event.location.function))),
    ("lines", |s| {
        listed(s, |event| {
            let file = event.location.file.rsplit('/').next().unwrap_or_default();
            format!("{file}:{}", event.location.line)
        })
    }),
    ("threads", threads),
    ("failure", failure),
];

fn side(solution: &Solution) -> Side {
    let cause = solution.cause.as_ref();
    Side {
        cause: cause.map(|cause| cause.sentence.clone()).unwrap_or_default(),
        fingerprint: cause.map(|cause| cause.fingerprint.clone()).unwrap_or_default(),
        failure: failure(solution),
    }
}

/// The events of the cause, by identifier, those of an alternate on other paths included.
#[must_use]
pub fn cause_events(solution: &Solution) -> Vec<&Event> {
    let others = solution.alternates.iter().flat_map(|alternate| &alternate.events);
    let all: BTreeMap<&str, &Event> =
        solution.events.iter().chain(others).map(|event| (event.id.as_str(), event)).collect();
    let named = solution.cause.iter().flat_map(|cause| &cause.events);
    named.filter_map(|id| all.get(id.as_str()).copied()).collect()
}

fn listed(solution: &Solution, text: impl Fn(&Event) -> String) -> String {
    let mut words: Vec<String> = cause_events(solution).into_iter().map(text).collect();
    // Which thread came first may differ from run to run.
    words.sort_unstable();
    words.join(", ")
}

/// Do the two say the same but for lines, which number a thread has, and what the files are called? A patch moves the lines
/// of the function that it is made in, and a fingerprint knows how far they are from each other; it may be made in a copy.
#[must_use]
pub fn alike(one: &Solution, other: &Solution) -> bool {
    let told = |solution: &Solution| {
        let cause = solution.cause.as_ref().filter(|cause| !cause.sentence.is_empty())?;
        Some((cause.pattern.clone(), without_numbers(&cause.sentence)))
    };
    told(one).is_some_and(|known| told(other) == Some(known))
}

/// A sentence with its threads and files counted as they come, and without lines. What stands in backticks stays.
fn without_numbers(sentence: &str) -> String {
    let (mut threads, mut files): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    let mut out = String::new();
    for (part, quoted) in sentence.split('`').zip([false, true].into_iter().cycle()) {
        if quoted {
            let _ = write!(out, "`{part}`");
            continue;
        }
        for (number, word) in part.split(' ').enumerate() {
            out.push_str(if number == 0 { "" } else { " " });
            let (name, rest) = at_thread(word);
            if !name.is_empty() {
                let _ = write!(out, "t#{}", number_of(&mut threads, name));
            }
            let place = rest.trim_start_matches('(');
            match place
                .split_once(':')
                .filter(|(_, line)| line.starts_with(|c: char| c.is_ascii_digit()))
            {
                Some((file, line)) => {
                    let line = line.trim_start_matches(|c: char| c.is_ascii_digit());
                    let opening = rest.strip_suffix(place).unwrap_or_default();
                    let _ = write!(out, "{opening}f#{}:{line}", number_of(&mut files, file));
                }
                None => out.push_str(rest),
            }
        }
    }
    out
}

/// The name of a thread that a word begins with, and what follows it: `t0.1's` is `t0.1` and `'s`.
fn at_thread(word: &str) -> (&str, &str) {
    let digits = |rest: &str| rest.bytes().take_while(u8::is_ascii_digit).count();
    let Some(rest) = word.strip_prefix('t').filter(|rest| digits(rest) > 0) else {
        return ("", word);
    };
    let mut end = 1 + digits(rest);
    while let Some(rest) = word[end..].strip_prefix('.').filter(|rest| digits(rest) > 0) {
        end += 1 + digits(rest);
    }
    match word[end..].starts_with(|next: char| next.is_alphanumeric() || next == '_') {
        true => ("", word),
        false => word.split_at(end),
    }
}

/// Which of the names it is, which becomes one of them.
fn number_of(names: &mut Vec<String>, name: &str) -> usize {
    names.iter().position(|known| known == name).unwrap_or_else(|| {
        names.push(name.to_owned());
        names.len() - 1
    })
}

/// The members that the cause is about, sorted: the pointer that leads there has many names.
#[must_use]
pub fn variables(solution: &Solution) -> Vec<String> {
    let variables = solution.cause.iter().flat_map(|cause| &cause.variables);
    let mut names: Vec<String> = variables.map(|name| explain::last_member(name)).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The functions that the events of the cause are in, with the names of their files, sorted.
#[must_use]
pub fn functions(solution: &Solution) -> Vec<String> {
    let of = |event: &Event| {
        let file = event.location.file.rsplit('/').next().unwrap_or_default();
        format!("{file}:{}", event.location.function)
    };
    let mut names: Vec<String> = cause_events(solution).into_iter().map(of).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The functions that the threads of the cause start in.
fn threads(solution: &Solution) -> String {
    let events = cause_events(solution);
    let entry = |name: &str| {
        let thread = solution.threads.iter().find(|thread| thread.id == name);
        thread.map_or_else(|| name.to_owned(), |thread| thread.entry.clone())
    };
    let mut named: Vec<&str> = events.iter().map(|event| event.thread.as_str()).collect();
    named.sort_unstable();
    named.dedup();
    let mut entries: Vec<String> = named.into_iter().map(entry).collect();
    entries.sort_unstable();
    entries.join(", ")
}

/// The kind of the failure and where it is, without the directories that lead there; empty where there is none.
#[must_use]
pub fn failure(solution: &Solution) -> String {
    let Some(failure) = &solution.failure else { return String::new() };
    let file = failure.location.file.rsplit('/').next().unwrap_or_default();
    if file.is_empty() {
        // A run that was ended from outside has no place.
        return failure.kind.clone();
    }
    format!("{} at {file}:{}", failure.kind, failure.location.line)
}

impl Comparison {
    /// For a terminal or a log.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        let word = if self.same { "the same cause" } else { "not the same cause" };
        let _ = writeln!(out, "{word}");
        for (number, side) in (1..).zip(&self.sides) {
            let cause = if side.cause.is_empty() { "no cause is known" } else { &side.cause };
            let _ = writeln!(out, "  {number}: {cause}");
            if !side.fingerprint.is_empty() {
                let _ = writeln!(out, "     fingerprint {}, {}", side.fingerprint, side.failure);
            }
        }
        for Difference { what, sides } in &self.differences {
            let sides = sides.each_ref().map(|side| if side.is_empty() { "none" } else { side });
            let _ = writeln!(out, "{what}: {} | {}", sides[0], sides[1]);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use render::solution::{Cause, Location};

    fn solution(fingerprint: &str, line: u32) -> Solution {
        let event = Event {
            id: "e1".to_owned(),
            thread: "t0".to_owned(),
            kind: "write".to_owned(),
            location: Location { file: "/a/q.c".into(), line, column: 1, function: "put".into() },
            ..Event::default()
        };
        let cause = Cause {
            pattern: "order".to_owned(),
            fingerprint: fingerprint.to_owned(),
            variables: vec!["queue->filled".to_owned()],
            events: vec!["e1".to_owned()],
            ..Cause::default()
        };
        Solution { events: vec![event], cause: Some(cause), ..Solution::default() }
    }

    #[test]
    fn the_fingerprint_decides_and_the_lines_are_told() {
        let found = compare(&solution("a", 7), &solution("a", 9));
        assert!(found.same);
        let lines = found.differences.iter().find(|other| other.what == "lines");
        assert_eq!(lines.map(|lines| &lines.sides[1]), Some(&"q.c:9".to_owned()));
        let found = compare(&solution("a", 7), &solution("b", 7));
        assert!(!found.same && found.differences.is_empty());
        assert!(found.to_text().starts_with("not the same cause"));
    }

    #[test]
    fn that_every_schedule_fails_is_the_same_at_one_place_alone() {
        let at = |function: &str| {
            let location = Location { function: function.to_owned(), ..Location::default() };
            let cause = Cause {
                pattern: "every-schedule".to_owned(),
                fingerprint: "0123456789abcdef".to_owned(),
                ..Cause::default()
            };
            let failure = render::solution::Failure { location, ..Default::default() };
            Solution { cause: Some(cause), failure: Some(failure), ..Solution::default() }
        };
        assert_eq!(fingerprint(&at("one")), None);
        assert!(compare(&at("one"), &at("one")).same);
        assert!(!compare(&at("one"), &at("two")).same);
    }

    #[test]
    fn a_patch_may_part_the_lines_of_a_cause() {
        let told = |sentence: &str, pattern: &str| {
            let cause = Cause {
                pattern: pattern.to_owned(),
                sentence: sentence.to_owned(),
                ..Cause::default()
            };
            Solution { cause: Some(cause), ..Solution::default() }
        };
        let one = "t0.2 waits for `a[1]` (s.rs:24), which t0.3 took (s.rs:36), in t0.2's call";
        let is_like = |other: &str| alike(&told(one, "deadlock"), &told(other, "deadlock"));
        assert!(is_like(
            "t0.1 waits for `a[1]` (s.rs:24), which t0 took (s.rs:42), in t0.1's call"
        ));
        assert!(!is_like(
            "t0.1 waits for `a[2]` (s.rs:24), which t0 took (s.rs:36), in t0.1's call"
        ));
        assert!(!is_like("t0.1 waits for `a[1]` (s.rs:24), which t0 took (s.rs:36), in t0's call"));
        assert!(!is_like(
            "t0.1 waits for `a[1]` (q.rs:24), which t0 took (s.rs:36), in t0.1's call"
        ));
        assert!(is_like(
            "t0.1 waits for `a[1]` (new.rs:24), which t0 took (new.rs:42), in t0.1's call"
        ));
        assert!(!alike(&told(one, "deadlock"), &told(one, "order")));
        assert!(!alike(&told("", "order"), &told("", "order")));
    }

    #[test]
    fn answers_without_a_cause_are_not_the_same() {
        assert!(!compare(&Solution::default(), &Solution::default()).same);
    }
}
