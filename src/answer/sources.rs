//! What the answer's source files are known by.

use render::Solution;
use render::solution::SourceFile;
use std::collections::{BTreeMap, BTreeSet};
use symex::Recording;

/// Adds the checksums of the files that the answer's locations name, from the debug information of
/// the recorded program. Where two modules were compiled from different texts of one file, it has
/// none.
pub fn add_sources(solution: &mut Solution, recording: &Recording) {
    let mut sums: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (file, sum) in recording.modules.iter().flat_map(|module| &module.ir.debug.files) {
        sums.entry(file).or_default().insert(sum);
    }
    let own = solution.events.iter();
    let events = own.chain(solution.alternates.iter().flat_map(|other| &other.events));
    let places = events.flat_map(|event| [&event.location].into_iter().chain(&event.callers));
    let failure = solution.failure.iter().map(|failure| &failure.location);
    let named: BTreeSet<&str> =
        places.chain(failure).map(|place| place.file.as_str()).filter(|f| !f.is_empty()).collect();
    let source = |file: &str| {
        let known: Vec<&str> = sums.get(file).into_iter().flatten().copied().collect();
        let md5 = match known[..] {
            [only] if !only.is_empty() => Some(only.to_owned()),
            _ => None,
        };
        SourceFile { file: file.to_owned(), md5 }
    };
    let sources: Vec<SourceFile> = named.into_iter().map(source).collect();
    solution.sources = sources;
}
