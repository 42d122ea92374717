//! The source texts that a page carries.

use crate::Solution;
use crate::solution::{Event, Location};
use std::collections::{BTreeMap, BTreeSet};

/// A file up to this many bytes and lines is carried whole.
const WHOLE_BYTES: usize = 200_000;
const WHOLE_LINES: usize = 3_000;
/// Of a longer one, so many lines before and behind each line that is spoken of.
const AROUND: usize = 40;
/// All texts together. What comes later is left out and said to be.
const TOTAL_BYTES: usize = 4_000_000;

/// The source texts of a solution's locations.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    files: BTreeMap<String, Result<Vec<Part>, Missing>>,
}

/// Why a text is not there, in words.
pub type Missing = String;

/// Lines of a file that follow each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub(super) struct Part {
    /// The first line's number.
    pub first: usize,
    /// The lines, without the last one's end.
    pub text: String,
}

impl Sources {
    /// The texts of all files that the solution's locations name, the failure's and the DSP's
    /// first, as far as they are not too long. `read` gives a file's text for its name, as the
    /// debug information has it, or says why it cannot.
    pub fn gather(
        solution: &Solution,
        mut read: impl FnMut(&str) -> Result<String, Missing>,
    ) -> Self {
        let mut files: BTreeMap<String, Result<Vec<Part>, Missing>> = BTreeMap::new();
        let lines = lines(solution);
        let mut room = TOTAL_BYTES;
        for name in by_importance(solution) {
            if files.contains_key(name) {
                continue;
            }
            let Some(lines) = lines.get(name) else { continue };
            let parts = read(name).and_then(|text| {
                let parts = parts(&text, lines)?;
                let size = parts.iter().map(|part| part.text.len()).sum();
                room = room
                    .checked_sub(size)
                    .ok_or("it would make this page too large; other files are here")?;
                Ok(parts)
            });
            files.insert(name.to_owned(), parts);
        }
        Self { files }
    }

    /// Whose text is on the page, for whoever hands it on.
    pub(super) fn carried(&self) -> String {
        let there = self.files.iter().filter(|(_, parts)| parts.is_ok());
        let names: Vec<&str> = there.map(|(name, _)| name.as_str()).collect();
        if names.is_empty() {
            return "No source text is on this page.".to_owned();
        }
        format!("Text of these files is on this page: {}.", names.join(", "))
    }

    pub(super) fn file(&self, name: &str) -> Result<&[Part], &str> {
        match self.files.get(name) {
            Some(Ok(parts)) => Ok(parts),
            Some(Err(reason)) => Err(reason),
            None => Err("nobody looked for it"),
        }
    }
}

fn all_events(solution: &Solution) -> impl Iterator<Item = &Event> {
    solution.events.iter().chain(solution.alternates.iter().flat_map(|other| &other.events))
}

fn places(event: &Event) -> impl Iterator<Item = &Location> {
    [&event.location].into_iter().chain(&event.callers)
}

fn lines(solution: &Solution) -> BTreeMap<&str, BTreeSet<usize>> {
    let mut lines: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    let failure = solution.failure.iter().map(|failure| &failure.location);
    for place in failure.chain(all_events(solution).flat_map(places)) {
        if !place.file.is_empty() {
            lines.entry(&place.file).or_default().insert(place.line as usize);
        }
    }
    lines
}

/// The files' names, with repetitions: where it failed, where the schedules differ, the rest.
fn by_importance(solution: &Solution) -> impl Iterator<Item = &str> {
    let failure = solution.failure.iter().map(|failure| &failure.location);
    let dsp = solution.dsp.iter().flat_map(|dsp| dsp.failing.iter().chain(&dsp.alternate));
    let dsp = dsp.filter_map(|id| solution.event(id)).flat_map(places);
    let innermost = all_events(solution).map(|event| &event.location);
    let callers = all_events(solution).flat_map(|event| &event.callers);
    failure.chain(dsp).chain(innermost).chain(callers).map(|place| place.file.as_str())
}

/// The whole text, or what stands around the lines.
fn parts(text: &str, lines: &BTreeSet<usize>) -> Result<Vec<Part>, Missing> {
    let all: Vec<&str> = text.lines().collect();
    if let Some(last) = lines.last().filter(|last| **last > all.len()) {
        return Err(format!(
            "it has {} lines and the trace speaks of line {last}: it was changed since",
            all.len()
        ));
    }
    if text.len() <= WHOLE_BYTES && all.len() <= WHOLE_LINES {
        return Ok(vec![Part { first: 1, text: all.join("\n") }]);
    }
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for line in lines.iter().filter(|line| **line > 0) {
        let (from, to) = (line.saturating_sub(AROUND + 1), (line + AROUND).min(all.len()));
        match ranges.last_mut() {
            Some(last) if from <= last.1 => last.1 = to,
            _ => ranges.push((from, to)),
        }
    }
    let part = |(from, to)| {
        let lines = all.get(from..to).unwrap_or_default();
        Part { first: from + 1, text: lines.join("\n") }
    };
    Ok(ranges.into_iter().map(part).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::lost_update;

    #[test]
    fn long_files_come_in_excerpts_and_short_ones_whole() {
        let solution = lost_update();
        let text =
            |lines: usize| (1..=lines).map(|line| format!("line {line}\n")).collect::<String>();
        let gather = |lines| Sources::gather(&solution, |_| Ok(text(lines)));
        let whole = gather(100);
        assert_eq!(whole.file("/src/bank.c").unwrap().len(), 1);
        let long = gather(WHOLE_LINES + 1);
        let parts = long.file("/src/bank.c").unwrap();
        // Lines 10, 11 and 30 are spoken of.
        assert_eq!((parts.len(), parts[0].first), (1, 1));
        assert!(parts[0].text.ends_with(&format!("line {}", 30 + AROUND)), "{}", parts[0].text);
    }

    #[test]
    fn what_is_missing_or_was_changed_is_said() {
        let solution = lost_update();
        let missing = Sources::gather(&solution, |_| Err("no such file".to_owned()));
        assert_eq!(missing.file("/src/bank.c"), Err("no such file"));
        assert_eq!(missing.carried(), "No source text is on this page.");
        let there = Sources::gather(&solution, |_| Ok("x\n".repeat(40)));
        assert!(there.carried().contains("/src/bank.c"), "{}", there.carried());
        let changed = Sources::gather(&solution, |_| Ok("one line\n".to_owned()));
        let reason = changed.file("/src/bank.c").unwrap_err();
        assert!(reason.contains("1 lines") && reason.contains("line 30"), "{reason}");
    }

    #[test]
    fn excerpts_that_meet_are_one() {
        let text = "x\n".repeat(WHOLE_LINES + 500);
        let lines = BTreeSet::from([100, 100 + 2 * AROUND, 2_000]);
        let parts = parts(&text, &lines).unwrap();
        let spans: Vec<_> =
            parts.iter().map(|part| (part.first, part.text.lines().count())).collect();
        assert_eq!(spans, [(100 - AROUND, 4 * AROUND + 1), (2_000 - AROUND, 2 * AROUND + 1)]);
    }
}
