//! A compare-exchange took a value that had come back for one that had stayed (ABA).

use super::story::Story;
use super::words::{at, both_at, quoted};
use super::{Found, Pattern};
use crate::came_back::{CameBack, came_back};

/// In a run that is compared with one along other paths, in which that did not happen. What two threads do to one another by
/// what they both have then only follows from it.
pub(super) fn find(story: &Story<'_>) -> Option<Found> {
    if !story.passes_elsewhere() {
        return None;
    }
    let failing = story.failing;
    let all = came_back(failing.trace, failing.schedule, failing.evaluation);
    let undone = |found: &&CameBack| {
        story.before_when_passing(found.seen, found.back) != Some(true)
            || story.before_when_passing(found.back, found.exchange) != Some(true)
    };
    all.iter().find(undone).map(|found| told(story, found))
}

fn told(story: &Story<'_>, found: &CameBack) -> Found {
    let [seen, exchange] = both_at(story, found.seen, found.exchange);
    let sentence = format!(
        "{} changed {} and changed it back ({}) between {}'s read ({seen}) and its compare-exchange ({exchange}), which \
         succeeded all the same, with a {} ({}) that was out of date (ABA)",
        story.thread(found.back),
        quoted(&story.subject(found.exchange)),
        at(story, found.back),
        story.thread(found.exchange),
        quoted(&story.subject(found.look)),
        at(story, found.look),
    );
    let events = [found.back, found.seen, found.exchange];
    Found { case: Some("came-back"), ..Found::new(Pattern::Atomicity, sentence, &events) }
}
