//! What stays the same when the same bug is met again.

use super::story::Story;
use super::words::last_member;
use super::{CauseEvent, Pattern};
use std::collections::BTreeMap;

const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

/// FNV-1a with 64 bits over the pattern and, for each event, its kind, its function and the name of that one's
/// file, how many lines it stands below the first of the cause's lines in that function, and the member
/// that it is about. The events are sorted: which thread came first may differ from run to run. Of
/// the file the directories do not count, which differ from machine to machine; the name does, since many
/// tests of one project have a `worker` and a `counter`. Where a sentence is given, members that it does not name do not
/// count.
pub(super) fn of(
    story: &Story<'_>,
    pattern: Pattern,
    (events, sentence): (&[CauseEvent], Option<&str>),
) -> String {
    let told: Option<Vec<String>> = sentence.map(named);
    let known = |id: &CauseEvent| story.look_up(*id).1.map(|event| (*id, event));
    let mut first_lines: BTreeMap<&str, u32> = BTreeMap::new();
    for (_, event) in events.iter().filter_map(known) {
        let site = event.site();
        let line = first_lines.entry(&site.function).or_insert(site.line);
        *line = (*line).min(site.line);
    }
    let mut words: Vec<String> = events
        .iter()
        .filter_map(known)
        .map(|(id, event)| {
            let site = event.site();
            let first = first_lines.get(site.function.as_str()).copied().unwrap_or(site.line);
            let member = story.name(id).map(|name| last_member(&name)).unwrap_or_default();
            let is_told = told.as_ref().is_none_or(|told| told.contains(&member));
            let member = if is_told { member } else { String::new() };
            let (kind, line) = (event.kind.name(), site.line.saturating_sub(first));
            let file = site.file.rsplit('/').next().unwrap_or_default();
            format!("{kind}\t{file}\t{}\t{line}\t{member}", site.function)
        })
        .collect();
    words.sort_unstable();
    words.insert(0, pattern.name().to_owned());
    let bytes = words.iter().flat_map(|word| word.bytes().chain([b'\n']));
    let hash = bytes.fold(OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME));
    format!("{hash:016x}")
}

/// The members that stand in backticks.
fn named(sentence: &str) -> Vec<String> {
    sentence.split('`').skip(1).step_by(2).map(last_member).collect()
}
