//! A thread that another one came between two steps of was not too early for that one.

use super::order::Wanted;
use crate::Bug;
use crate::statements::Statement;
use explain::Pattern;
use model::{EventId, EventKind};

/// Does the cause name a step of the second one's thread that comes behind the first?
pub(super) fn is_interrupted(bug: &Bug<'_>, wanted: Wanted) -> bool {
    let place = |id: EventId| bug.schedule.iter().position(|other| *other == id);
    let thread = bug.trace.event(wanted.then).thread;
    let mut own = bug.events.iter().filter(|id| bug.trace.event(**id).thread == thread);
    own.any(|id| place(*id) > place(wanted.first))
}

/// Did the first step come between two of the second one's thread? What ends a server's work, say, comes between a look
/// and its use, and no thread is to find it ended from the start.
pub(super) fn is_between(bug: &Bug<'_>, wanted: Wanted) -> bool {
    matches!(bug.pattern, Pattern::Atomicity | Pattern::SeveralVariables)
        && is_interrupted(bug, wanted)
}

/// The same, and is the second step's thread created here?
pub(super) fn is_created_behind(bug: &Bug<'_>, wanted: Wanted, target: &Statement) -> bool {
    let thread = bug.trace.event(wanted.then).thread;
    let creates = |id: &EventId| match bug.trace.event(*id).kind {
        EventKind::Fork { child } => child == thread,
        _ => false,
    };
    target.events.iter().any(creates) && is_between(bug, wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;
    use crate::Uses;
    use crate::candidates::order::candidates;
    use encoders::dsl::{Parsed, parse};
    use model::Site;

    /// The texts of the moves that are offered where a thread reads two variables that its creator writes.
    fn moves(parsed: &Parsed, schedule: [&str; 4]) -> usize {
        let [events, schedule] = [["less", "shut", "look", "use"], schedule]
            .map(|labels| labels.map(|label| parsed.event(label)));
        let bug = Bug {
            trace: &parsed.trace,
            pattern: Pattern::SeveralVariables,
            events: &events,
            schedule: &schedule,
            handlers: &[],
            uses: Uses::NONE,
        };
        let all = candidates(&bug).into_iter();
        let early = |step: &String| step.contains("before creating");
        all.filter(|one| one.repair.kind == Kind::Move && one.repair.steps.iter().any(early))
            .count()
    }

    #[test]
    fn who_comes_between_two_steps_is_not_told_to_come_before_the_thread_is_there() {
        let text = "t0: [fork] fork a\nt0: [less] W drains 1\nt0: [shut] W closed 1\n\
                    a: [look] R drains -> x\na: [use] R closed -> y\na: fail x == 0 && y == 1\n";
        let mut parsed = parse(text).expect("the text is a trace");
        for (label, line) in [("fork", 48), ("less", 50), ("shut", 50)] {
            let (file, function) = ("server.c".to_owned(), "main".to_owned());
            let site = Site { file, line, column: 1, function };
            parsed.trace.events[parsed.labels[label].index()].stack = [site].into();
        }
        assert_eq!(moves(&parsed, ["look", "less", "shut", "use"]), 0);
        assert_ne!(moves(&parsed, ["look", "use", "less", "shut"]), 0, "it came too late");
    }
}
