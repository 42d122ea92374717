//! Lines that hold another lock than those who do the same elsewhere: what they hold the wrong one for is to be under
//! the right one, and not only what the cause names of it.

use super::atomicity::{cells, touches};
use super::planner::Plan;
use crate::Bug;
use crate::sections::{Section, Sections, is_internal, is_once, lock_name};
use crate::source::{Span, passages, span};
use model::{EventId, ObjectId};
use std::collections::BTreeSet;

/// The plan with all lines of sections in which the wrong lock is held. `None` where there are none.
pub(super) fn plan(bug: &Bug<'_>, all: &Sections, plan: &Plan) -> Option<Plan> {
    let lock = plan.lock?;
    let trace = bug.trace;
    let wider = |lines: &Span| {
        let mut own = plan
            .regions
            .iter()
            .filter(|(first, _)| trace.event(*first).stack.iter().any(|site| lines.has(site)));
        let sections: BTreeSet<Span> =
            own.clone().map(|region| section(bug, all, lock, *region)).collect::<Option<_>>()?;
        own.next()?;
        let mut sections = sections.into_iter();
        let wide =
            sections.next().filter(|wide| wide.first <= lines.first && lines.last <= wide.last)?;
        let same = wide.function == lines.function && wide.file == lines.file;
        (sections.next().is_none() && same && wide != *lines).then_some(wide)
    };
    let spans: Vec<Span> =
        plan.spans.iter().map(|lines| wider(lines).unwrap_or_else(|| lines.clone())).collect();
    if spans == plan.spans {
        return None;
    }
    let regions = spans.iter().flat_map(|lines| passages(trace, lines)).collect();
    Some(Plan { lock: plan.lock, spans, regions, only_longer: false })
}

/// The lines of the outermost section around a region that has a lock with which nobody else touches what the cause
/// is about, while the right lock is not held.
fn section(
    bug: &Bug<'_>,
    all: &Sections,
    right: ObjectId,
    (first, last): (EventId, EventId),
) -> Option<Span> {
    let trace = bug.trace;
    let index = |id: EventId| trace.event(id).index;
    let cells = cells(trace, bug.events);
    let wrong = |section: &Section| {
        section.object != right
            && index(last) <= index(section.unlock)
            && !is_internal(&lock_name(trace, section.object))
            && !is_once(trace, all, section.object)
            && !trace.events.iter().any(|event| {
                event.thread != trace.event(first).thread
                    && touches(trace, event.id, &cells)
                    && all.around(trace, event.id).iter().any(|one| one.object == section.object)
            })
    };
    let outer = all.around(trace, first);
    if outer.iter().any(|section| section.object == right) {
        return None;
    }
    let section = outer.into_iter().find(wrong)?;
    // What else is done there, others do under the right lock.
    let own = &trace.thread_of(first).events;
    let inside = own.get(index(section.lock) as usize..index(section.unlock) as usize)?;
    let rest = inside.iter().filter(|id| !(index(first)..=index(last)).contains(&index(**id)));
    let shares = |id: &EventId| {
        let cells = self::cells(trace, &[*id]);
        let written = !trace.event(*id).kind.writes().is_empty();
        trace.events.iter().any(|other| {
            other.thread != trace.event(first).thread
                && touches(trace, other.id, &cells)
                && (written || !other.kind.writes().is_empty())
                && all.around(trace, other.id).iter().any(|one| one.object == right)
        })
    };
    if !rest.copied().any(|id| shares(&id)) {
        return None;
    }
    span(trace.event(section.lock), trace.event(section.unlock))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sections::sections;
    use encoders::dsl::parse;
    use explain::Pattern;
    use model::Site;

    #[test]
    fn the_right_lock_is_held_where_the_wrong_one_was() {
        let text = "
            a: lock table
            a: R id -> i
            a: [check] R expires -> e
            a: [use] R owner -> o
            a: unlock table
            b: lock admin
            b: W token 0
            b: W id 0
            b: [clear] W owner 0
            b: [expire] W expires 0
            b: unlock admin
        ";
        let parsed = parse(text).expect("the text is a trace");
        let mut trace = parsed.trace.clone();
        for (line, event) in (1..).zip(&mut trace.events) {
            let function = if event.thread.index() == 1 { "renew" } else { "kick" }.to_owned();
            event.stack = vec![Site { file: "a.c".to_owned(), line, column: 1, function }].into();
        }
        let [check, clear, expire] = ["check", "clear", "expire"].map(|label| parsed.event(label));
        let events = [clear, expire, check];
        let bug = Bug::by_hand(&trace, Pattern::SeveralVariables, &events);
        let all = sections(&trace);
        let lines = |first, last| {
            span(trace.event(first), trace.event(last)).expect("both are in one function")
        };
        let table = all.iter().find(|one| all.around(&trace, check).contains(one));
        let narrow = Plan {
            lock: table.map(|section| section.object),
            spans: vec![lines(clear, expire)],
            regions: vec![(clear, expire)],
            only_longer: false,
        };
        let found = plan(&bug, &all, &narrow).expect("another lock is held there");
        let admin = all.iter().find(|one| all.around(&trace, clear).contains(one));
        let admin = admin.expect("a lock is held there");
        assert_eq!(found.spans, [lines(admin.lock, admin.unlock)]);
        assert_eq!(found.regions, [(admin.lock, admin.unlock)]);
        // The wrong lock is none where others guard the same with it.
        let known = Bug { events: &events[..1], ..bug };
        let own = Plan { lock: Some(admin.object), ..narrow };
        assert!(plan(&known, &all, &own).is_none());
    }
}
