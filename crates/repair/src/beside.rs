//! Locks and variables that are members of one object: the lock is for the variable, whatever either is called in the
//! functions that use them.

use crate::sections::{Section, Sections, is_internal, taken};
use crate::source::Span;
use crate::words::word_in;
use model::{CellId, Event, EventId, EventTrace, ObjectId};
use std::collections::BTreeSet;

/// `queue->` and `lock` of `queue->lock`: the object with what leads to its member, and the member. `None` for what
/// is no member.
fn parts(name: &str) -> Option<(&str, &str)> {
    let mut depth = 0u32;
    let mut last = None;
    for (at, character) in name.char_indices() {
        match character {
            '[' | '(' => depth += 1,
            ']' | ')' => depth = depth.saturating_sub(1),
            '.' | '>' if depth == 0 => last = Some(at + 1),
            _ => {}
        }
    }
    let (object, member) = name.split_at(last?);
    (!member.is_empty() && object.len() > 1).then_some((object, member))
}

/// The object, whether it is named itself or by a pointer to it.
fn object(name: &str) -> Option<&str> {
    let (object, _) = parts(name)?;
    object.strip_suffix("->").or_else(|| object.strip_suffix('.'))
}

fn own_name<'t>(trace: &'t EventTrace, event: &'t Event) -> Option<&'t str> {
    Some(explain::outside_of_library(trace.subject(event)?))
}

/// Is the section's lock a member of the same object as what an event in it touches? By what both are called there, or
/// by the variable that both are parts of.
pub(crate) fn is_beside(trace: &EventTrace, section: &Section, event: &Event) -> bool {
    let lock = trace.event(section.lock);
    let (name, other) = (own_name(trace, lock), own_name(trace, event));
    let function = |event: &Event| {
        event.stack.get(event.depth()).map(|site| (site.function.clone(), site.file.clone()))
    };
    let same = |one: &str, other: &str| object(one).is_some_and(|one| Some(one) == object(other));
    if name.zip(other).is_some_and(|(name, other)| same(name, other)) {
        return function(lock) == function(event);
    }
    let known = trace.objects.get(section.object.index()).map(|object| object.name.as_str());
    let variable = |name: &&str| !name.contains("->");
    known.into_iter().chain(name).filter(variable).any(|name| {
        let of = |cell: CellId| trace.cells.get(cell.index()).map(|cell| cell.name.as_str());
        cells(event).filter_map(of).map(explain::outside_of_library).any(|cell| same(name, cell))
    })
}

fn cells(event: &Event) -> impl Iterator<Item = CellId> + '_ {
    let reads = event.kind.reads().iter().map(|part| part.cell);
    reads.chain(event.kind.writes().iter().map(|part| part.cell))
}

/// What the lines call a lock that they do not take, by a member of the same object that a passage through them
/// touches: `c->out->lock` where they have `c->out->frames`, and where others take `m->lock` for `m->frames`.
pub(crate) fn word_beside(
    trace: &EventTrace,
    all: &Sections,
    lock: ObjectId,
    span: &Span,
    (first, last): (EventId, EventId),
) -> Option<String> {
    let from = trace.event(first).index as usize;
    let to = trace.event(last).index as usize;
    let own = trace.thread_of(first).events.get(from..=to)?.iter().map(|id| trace.event(*id));
    let sections = || all.iter().filter(|section| section.object == lock);
    // By cell, what the lock is called as a member of the object that the cell belongs to.
    let member = |cell: CellId| {
        sections().find_map(|section| {
            let events = &trace.thread_of(section.lock).events;
            let index = |id: EventId| trace.event(id).index as usize;
            let inside = events.get(index(section.lock)..=index(section.unlock))?;
            let mut inside = inside.iter().map(|id| trace.event(*id));
            inside.find(|event| {
                cells(event).any(|other| other == cell) && is_beside(trace, section, event)
            })?;
            Some(parts(own_name(trace, trace.event(section.lock))?)?.1.to_owned())
        })
    };
    let (mut known, mut found) = (BTreeSet::new(), Vec::new());
    for event in own.filter(|event| taken(event).is_none()) {
        let Some(word) = word_in(event, span).map(explain::outside_of_library) else { continue };
        let Some((object, _)) = parts(word) else { continue };
        for cell in cells(event).filter(|cell| known.insert(*cell)) {
            if let Some(member) = member(cell).filter(|member| !is_internal(member)) {
                found.push(format!("{object}{member}"));
            }
        }
    }
    // A function that has a pointer to the object says nothing of where that lies.
    let pointer = found.iter().position(|word| word.contains("->")).unwrap_or(0);
    found.into_iter().nth(pointer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sections::sections;
    use encoders::dsl::parse;
    use model::Site;

    #[test]
    fn a_lock_is_called_as_the_object_whose_member_it_is() {
        let text = "
            a: [add] W frames 1
            a: [other] W gain 1
            b: [take] lock m
            b: [look] R frames -> n
            b: unlock m
        ";
        let mut parsed = parse(text).expect("the text is a trace");
        let places = [
            ("add", "mix", 45, "c->out->frames"),
            ("other", "mix", 46, "c->gain"),
            ("take", "frames", 51, "m->lock"),
            ("look", "frames", 52, "m->frames"),
        ];
        for (label, function, line, name) in places {
            let id = parsed.event(label);
            let (file, function) = ("mixer.c".to_owned(), function.to_owned());
            let event = &mut parsed.trace.events[id.index()];
            event.stack = vec![Site { file, line, column: 1, function }].into();
            event.name = Some(name.into());
        }
        let trace = &parsed.trace;
        let [add, other, take] = ["add", "other", "take"].map(|label| parsed.event(label));
        let (all, lock) = (sections(trace), trace.event(take).kind.object().expect("a lock"));
        let word = |id: EventId| {
            word_beside(trace, &all, lock, &Span::of(trace.event(id).site()), (id, id))
        };
        assert_eq!(word(add).as_deref(), Some("c->out->lock"));
        assert_eq!(word(other), None, "another object's member");
    }

    #[test]
    fn a_pointer_to_a_variable_leads_to_its_lock() {
        let text = "
            a: [add] W frames 1
            b: [take] lock m
            b: [look] R frames -> n
            b: unlock m
        ";
        let mut parsed = parse(text).expect("the text is a trace");
        for (label, function, name) in [
            ("add", "mix", "c->out->frames"),
            ("take", "frames", "bus.lock"),
            ("look", "frames", "m->frames"),
        ] {
            let id = parsed.event(label);
            let (file, function) = ("mixer.c".to_owned(), function.to_owned());
            let event = &mut parsed.trace.events[id.index()];
            event.stack = vec![Site { file, line: 45, column: 1, function }].into();
            event.name = Some(name.into());
        }
        parsed.trace.cells[0].name = "bus.frames".to_owned();
        let trace = &parsed.trace;
        let [add, take] = ["add", "take"].map(|label| parsed.event(label));
        let (all, lock) = (sections(trace), trace.event(take).kind.object().expect("a lock"));
        let word = word_beside(trace, &all, lock, &Span::of(trace.event(add).site()), (add, add));
        assert_eq!(word.as_deref(), Some("c->out->lock"));
    }

    #[test]
    fn members_are_told_from_indices() {
        assert_eq!(parts("table[a.b].lock"), Some(("table[a.b].", "lock")));
        assert_eq!(object("this->queue->lock"), Some("this->queue"));
        assert_eq!(parts("lock"), None);
        assert_eq!(parts("table[a.b]"), None);
    }
}
