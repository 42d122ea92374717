//! Locks that are held already where one is to be taken.

use super::atomicity::touches;
use super::planner::Plan;
use crate::Bug;
use crate::rust::is_rust;
use crate::sections::{Section, Sections, begins_wait, taken};
use crate::source::{Span, passages};
use crate::words::{shares_this, word_in};
use model::{CellId, Event, EventId, EventKind, EventTrace, ObjectId, ThreadId};
use std::collections::BTreeSet;

/// So often lines are left to their callers.
const OUTWARDS: usize = 4;

/// The plan without lines that threads come through only inside of others of its lines: a lock that is
/// held is not taken again. Where only some passages lie inside, the lock is for the others' callers to take.
/// `None` where these have no lines.
pub(super) fn without_nested(trace: &EventTrace, mut plan: Plan) -> Option<Plan> {
    for _ in 0..OUTWARDS {
        let callers = left_to_callers(trace, &mut plan)?;
        if callers.is_empty() {
            return Some(plan);
        }
        for span in callers {
            plan.regions.extend(passages(trace, &span));
            if !plan.spans.contains(&span) {
                plan.spans.push(span);
            }
        }
        plan.spans.sort();
    }
    None
}

/// Takes lines out of the plan that lie inside of others, and gives the callers of those that do so only
/// sometimes. `None` where a caller has no lines.
fn left_to_callers(trace: &EventTrace, plan: &mut Plan) -> Option<Vec<Span>> {
    let index = |id: EventId| trace.event(id).index;
    let thread = |id: EventId| trace.event(id).thread;
    let inside = |(first, last): (EventId, EventId), (from, to): (EventId, EventId)| {
        thread(first) == thread(from) && index(from) <= index(first) && index(last) <= index(to)
    };
    // Of the same lines, none lies in another, and each thread's come in order.
    let all: Vec<_> = plan.spans.iter().map(|span| passages(trace, span)).collect();
    let place = |id: EventId| (thread(id), index(id));
    let around = |passages: &[(EventId, EventId)], inner: (EventId, EventId)| {
        let begun = passages.partition_point(|(first, _)| place(*first) <= place(inner.0));
        begun.checked_sub(1).map(|last| passages[last]).filter(|outer| inside(inner, *outer))
    };
    let (mut kept, mut callers) = (Vec::new(), Vec::new());
    for (number, (span, own)) in plan.spans.iter().zip(&all).enumerate() {
        let nested = |passage: &&(EventId, EventId)| {
            let mut others = all.iter().enumerate().filter(|(other, _)| *other != number);
            others.any(|(_, others)| {
                around(others, **passage).is_some_and(|outer| !inside(outer, **passage))
            })
        };
        match own.iter().filter(nested).count() {
            0 => kept.push(span.clone()),
            count if count == own.len() => {}
            _ => {
                for (first, _) in own.iter().filter(|passage| !nested(passage)) {
                    let mut frames = trace.event(*first).stack.iter();
                    // In a library's line nobody takes a lock: the program's own caller does.
                    let inner = frames.find(|site| span.has(site));
                    let caller = inner.and_then(|_| frames.find(|site| !site.is_in_library()));
                    callers.push(Span::of(caller.filter(|site| site.line != 0)?));
                }
            }
        }
    }
    plan.spans = kept;
    Some(callers)
}

/// Is a lock that the program has none for these regions: another one for the next writer, or one that is made or comes to its
/// end in them?
pub(super) fn are_no_places_for(bug: &Bug<'_>, regions: &[Region], spans: &[Span]) -> bool {
    have_several_locks(bug, regions)
        || end_inside(bug.trace, regions)
        || made_inside(bug.trace, regions, spans)
}

/// Does the object that a lock is a part of come to its end in a region that is to hold it? What is destroyed keeps nobody
/// out, and nothing is left to be given back.
fn end_inside(trace: &EventTrace, regions: &[Region]) -> bool {
    regions.iter().any(|region| {
        let first = trace.event(region.first);
        let own = &trace.thread_of(first.id).events;
        let until = trace.event(region.last).index;
        let inside = own.iter().skip(first.index as usize).map(|id| trace.event(*id));
        let inside = inside.take_while(|event| event.index <= until);
        let mut ended: BTreeSet<Span> = BTreeSet::new();
        for site in inside.flat_map(|event| event.stack.iter().skip(event.depth())) {
            // Who begins there is in the object's own destructor.
            let begun = || first.stack.iter().any(|outer| outer.function == site.function);
            if site.function.starts_with('~') && !begun() {
                ended.insert(Span::of(site));
            }
        }
        ended.iter().any(|lines| shares_this(trace, region.lock, lines))
    })
}

/// Is a lock made in the regions that are to hold it, by what their lines call? Nobody takes it but these calls, and threads that
/// are created there: the lines do not have it yet when they begin, nor any more when they end.
fn made_inside(trace: &EventTrace, regions: &[Region], spans: &[Span]) -> bool {
    let inside = |event: &Event, lock: ObjectId| {
        regions.iter().any(|region| {
            let [first, last] = [region.first, region.last].map(|id| trace.event(id));
            region.lock == lock
                && event.thread == first.thread
                && (first.index..=last.index).contains(&event.index)
        })
    };
    let created = |thread: ThreadId, lock: ObjectId| {
        trace.events.iter().any(|event| {
            matches!(event.kind, EventKind::Fork { child } if child == thread)
                && inside(event, lock)
        })
    };
    // What the lines have a name for, they may have from elsewhere.
    let is_known = |event: &Event| {
        let own = event.stack.get(event.depth());
        own.is_some_and(|site| spans.iter().any(|span| span.has(site)))
            || spans.iter().any(|span| word_in(event, span).is_some())
    };
    let locks: BTreeSet<ObjectId> = regions.iter().map(|region| region.lock).collect();
    locks.into_iter().any(|lock| {
        let mut takes = trace.events.iter().filter(|event| taken(event) == Some(lock)).peekable();
        takes.peek().is_some()
            && takes.clone().any(|event| inside(event, lock))
            && takes.all(|event| {
                let within = inside(event, lock);
                (within && !is_known(event)) || (!within && created(event.thread, lock))
            })
    })
}

/// What a thread does under a lock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Region {
    pub(super) first: EventId,
    pub(super) last: EventId,
    pub(super) lock: ObjectId,
}

/// Does one of the threads hold another lock of this name at these lines? Then the name says nothing: it
/// is another one in each call, as `slots[i].lock` is.
pub(super) fn is_ambiguous(
    trace: &EventTrace,
    all: &Sections,
    regions: &[Region],
    span: &Span,
    name: &str,
) -> bool {
    let there = regions.iter().filter(|region| {
        let mut frames = trace.event(region.first).stack.iter();
        frames.any(|site| span.has(site))
    });
    there.flat_map(|region| [(region.first, region.lock), (region.last, region.lock)]).any(
        |(id, lock)| {
            let others = all.around(trace, id).into_iter().filter(|section| section.object != lock);
            let word =
                |id: EventId| word_in(trace.event(id), span).or(trace.subject(trace.event(id)));
            others.filter_map(|section| word(section.lock)).any(|other| {
                let plain = |name: &str| name.strip_prefix("this->").unwrap_or(name).to_owned();
                let (one, two) = (plain(name), plain(other));
                let is_part = |long: &str, short: &str| {
                    short.contains('[') && long.ends_with(&format!(".{short}"))
                };
                let elements = one.contains('[') && without_indices(&one) == without_indices(&two);
                one == two || elements || is_part(&one, &two) || is_part(&two, &one)
            })
        },
    )
}

/// Do threads come through the lines with one object's lock and with another's, to write one and the same variable there?
/// Then none of these locks is for it.
fn have_several_locks(bug: &Bug<'_>, regions: &[Region]) -> bool {
    let trace = bug.trace;
    let events = bug.events.iter().map(|id| trace.event(*id));
    let written: BTreeSet<CellId> =
        events.flat_map(|event| event.kind.writes()).map(|part| part.cell).collect();
    written.iter().any(|cell| {
        let one = BTreeSet::from([*cell]);
        let touch = |region: &&Region| {
            let own = &trace.thread_of(region.first).events;
            let index = |id: EventId| trace.event(id).index as usize;
            let inside = own.get(index(region.first)..=index(region.last)).unwrap_or_default();
            inside.iter().any(|id| touches(trace, *id, &one))
        };
        let mut locks = regions.iter().filter(touch).map(|region| region.lock);
        locks.next().is_some_and(|first| locks.any(|lock| lock != first))
    })
}

/// `slots[].lock` for `slots[3].lock`.
fn without_indices(name: &str) -> String {
    let mut depth = 0u32;
    let keeps = |character: &char| match character {
        '[' => {
            depth += 1;
            depth == 1
        }
        ']' => {
            depth = depth.saturating_sub(1);
            depth == 0
        }
        _ => depth == 0,
    };
    name.chars().filter(keeps).collect()
}

/// Where the lock is taken inside of what is to be one section, although it is held then: for the first time,
/// what follows is told as given back and taken again.
pub(super) fn taken_inside(
    trace: &EventTrace,
    all: &Sections,
    lock: ObjectId,
    spans: &[Span],
    regions: &[(EventId, EventId)],
) -> Vec<String> {
    let index = |id: EventId| trace.event(id).index;
    let mut found: Vec<String> = Vec::new();
    for (first, last) in regions {
        let mut own = all.touching(trace, (*first, *last)).filter(|section| section.object == lock);
        // At the beginning it may be taken by a function that the lines call.
        let called = |section: &Section| {
            let site = trace.event(section.lock).site();
            spans.iter().all(|span| !span.has(site))
        };
        let is_inner = |section: &Section| {
            index(section.lock) > index(*first) || (section.lock == *first && called(section))
        };
        let Some(section) = own.next().filter(is_inner) else { continue };
        let [place, back] =
            [section.lock, section.unlock].map(|id| Span::of(trace.event(id).site()));
        let (take, give) = match is_rust(&place.file) {
            true => ("lock it", "drop the guard"),
            false => ("take it", "give it back"),
        };
        let mut step = format!("do not {take} again at {} in {}", place.begin(), place.function);
        if index(section.unlock) < index(*last) && back.function == place.function {
            step.push_str(&format!(", nor {give} at {}", back.begin()));
        }
        // Where the log ends inside, less is known of the same lines.
        let is_part = |part: &str, whole: &str| {
            whole.strip_prefix(part).is_some_and(|rest| rest.is_empty() || rest.starts_with(", "))
        };
        match found.iter_mut().find(|known| is_part(known, &step) || is_part(&step, known)) {
            Some(known) if known.len() < step.len() => *known = step,
            Some(_) => {}
            None => found.push(step),
        }
    }
    found
}

/// Where the lock is given back too early, each pair of places once.
pub(super) fn given_back(
    trace: &EventTrace,
    all: &Sections,
    lock: ObjectId,
    regions: &[(EventId, EventId)],
) -> Vec<String> {
    let index = |id: EventId| trace.event(id).index;
    let mut found: Vec<String> = Vec::new();
    for (first, last) in regions {
        let own = all.touching(trace, (*first, *last));
        let own: Vec<Section> = own
            .filter(|section| section.object == lock && index(section.lock) >= index(*first))
            .collect();
        for pair in own.windows(2).filter(|pair| !begins_wait(trace, pair[0].unlock)) {
            let places = [pair[0].unlock, pair[1].lock];
            let [back, again] = places.map(|id| Span::of(trace.event(id).site()));
            let (give, take) = match is_rust(&back.file) && is_rust(&again.file) {
                true => ("drop the guard", "lock it"),
                false => ("give it back", "take it"),
            };
            let step = format!(
                "do not {give} at {} in {} and {take} again at {} in {}",
                back.begin(),
                back.function,
                again.begin(),
                again.function
            );
            if !found.contains(&step) {
                found.push(step);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sections::sections;
    use encoders::dsl::parse;
    use explain::Pattern;
    use model::Site;

    fn place(line: u32, function: &str) -> Site {
        Site { file: "list.c".to_owned(), line, column: 1, function: function.to_owned() }
    }

    /// A thread `a` that calls `remove` at line 10 of `clear`, and `remove` takes the lock at line 3.
    fn nested() -> EventTrace {
        let text = "t0: fork a\na: R length -> n\na: lock m\na: W length n + -1\na: unlock m\n";
        let mut trace = parse(text).expect("the text is a trace").trace;
        let lines = [None, None, Some(3), Some(4), Some(5)];
        for (id, line) in trace.threads[1].events.clone().into_iter().zip(lines) {
            let inner = line.map(|line| place(line, "remove"));
            let stack: Vec<Site> = inner.into_iter().chain([place(10, "clear")]).collect();
            trace.events[id.index()].stack = stack.into();
        }
        trace
    }

    fn span(line: u32, function: &str) -> Span {
        Span::of(&place(line, function))
    }

    fn plan(trace: &EventTrace, spans: Vec<Span>) -> Plan {
        let regions = spans.iter().flat_map(|span| passages(trace, span)).collect();
        Plan { lock: None, spans, regions, only_longer: false }
    }

    #[test]
    fn what_lies_inside_of_other_lines_needs_no_lock_of_its_own() {
        let trace = nested();
        let mut remove = span(3, "remove");
        remove.last = 5;
        let kept = without_nested(&trace, plan(&trace, vec![span(10, "clear"), remove]));
        assert_eq!(kept.map(|plan| plan.spans), Some(vec![span(10, "clear")]));
    }

    #[test]
    fn lines_that_only_some_reach_from_inside_are_left_to_their_callers() {
        let mut trace = nested();
        let other = trace.threads[1].events[1];
        trace.events[other.index()].stack = vec![place(4, "remove"), place(20, "main")].into();
        let mut clear = span(10, "clear");
        clear.last = 12;
        let kept = without_nested(&trace, plan(&trace, vec![clear.clone(), span(4, "remove")]));
        let kept = kept.map(|plan| plan.spans);
        assert_eq!(kept, Some(vec![clear, span(20, "main")]));
    }

    #[test]
    fn a_caller_in_a_library_leaves_it_to_its_own() {
        let mut trace = nested();
        let other = trace.threads[1].events[1];
        let file = "/usr/include/c++/12/bits/stl_construct.h".to_owned();
        let library = Site { file, ..place(119, "_Construct") };
        let stack = vec![place(4, "remove"), library, place(20, "main")];
        trace.events[other.index()].stack = stack.into();
        let mut clear = span(10, "clear");
        clear.last = 12;
        let kept = without_nested(&trace, plan(&trace, vec![clear.clone(), span(4, "remove")]));
        let kept = kept.map(|plan| plan.spans);
        assert_eq!(kept, Some(vec![clear, span(20, "main")]));
    }

    #[test]
    fn a_lock_that_is_taken_inside_is_told() {
        let trace = nested();
        let lock = trace.events.iter().find_map(|event| event.kind.object());
        let lock = lock.expect("the thread takes a lock");
        let clear = plan(&trace, vec![span(10, "clear")]);
        let steps = taken_inside(&trace, &sections(&trace), lock, &clear.spans, &clear.regions);
        assert_eq!(steps, ["do not take it again at list.c:3 in remove"]);
        assert!(taken_inside(&trace, &sections(&trace), lock, &[], &[]).is_empty());
    }

    /// The log of one of two threads ends before it gives the lock back.
    #[test]
    fn a_passage_that_ends_early_tells_nothing_besides() {
        let text = "t0: fork a\nt0: fork b\na: [in] lock m\na: [out] unlock m\na: [on] W x 1\n\
                    b: [get] lock m\nb: [do] W x 2\nb: unlock m\n";
        let mut parsed = parse(text).expect("the text is a trace");
        let lines = [("in", 3), ("out", 5), ("on", 0), ("get", 3), ("do", 0)];
        for (label, line) in lines {
            let inner = (line != 0).then(|| place(line, "remove"));
            let stack: Vec<Site> = inner.into_iter().chain([place(10, "clear")]).collect();
            parsed.trace.events[parsed.labels[label].index()].stack = stack.into();
        }
        let trace = &parsed.trace;
        let lock = trace.event(parsed.event("in")).kind.object().expect("it takes a lock");
        for passages in [[("in", "on"), ("get", "do")], [("get", "do"), ("in", "on")]] {
            let regions = passages.map(|(a, b)| (parsed.event(a), parsed.event(b)));
            let steps = taken_inside(trace, &sections(trace), lock, &[span(10, "clear")], &regions);
            let told = "do not take it again at list.c:3 in remove, nor give it back at list.c:5";
            assert_eq!(steps, [told]);
        }
    }

    #[test]
    fn elements_of_one_array_have_one_name() {
        assert_eq!(without_indices("page_lock[3]"), "page_lock[]");
        assert_eq!(without_indices("shards[hash[i]].lock"), "shards[].lock");
        assert_eq!(without_indices("this->lock"), "this->lock");
    }

    /// Two pages with a lock each, both of which number what they log, and count.
    const PAGES: &str = "
        t0: fork a
        t0: fork b
        a: [one] lock m
        a: [count1] W y 1
        a: [number1] W x 1
        a: [end1] unlock m
        b: [two] lock n
        b: [count2] W z 1
        b: [number2] W x 2
        b: [end2] unlock n
    ";

    #[test]
    fn a_lock_that_is_another_one_for_the_next_writer_guards_nothing() {
        let parsed = parse(PAGES).expect("the text is a trace");
        let trace = &parsed.trace;
        let region = |first: &str, last: &str| {
            let [first, last] = [first, last].map(|label| parsed.event(label));
            let lock = trace.event(first).kind.object().expect("it takes a lock");
            Region { first, last, lock }
        };
        let regions = [region("one", "end1"), region("two", "end2")];
        let several = |labels: [&str; 2]| {
            let events = labels.map(|label| parsed.event(label));
            let bug = Bug::by_hand(trace, Pattern::Atomicity, &events);
            have_several_locks(&bug, &regions)
        };
        assert!(several(["number1", "number2"]));
        assert!(!several(["count1", "count2"]));
    }

    /// `user` makes a panel, whose own functions take its lock, and destroys it in the same lines.
    #[test]
    fn no_lock_is_held_until_its_object_is_gone() {
        let text = "a: [make] W gauge 1\na: [gone] W gauge 0\na: [other] W sum 1\n\
                    b: [take] lock m\nb: [show] R gauge -> g\nb: unlock m\n";
        let parsed = parse(text).expect("the text is a trace");
        let mut trace = parsed.trace.clone();
        let mut set = |label: &str, name: &str, stack: Vec<Site>| {
            let event = &mut trace.events[parsed.event(label).index()];
            (event.name, event.stack) = (Some(name.into()), stack.into());
        };
        set("make", "this->gauge_", vec![place(3, "Panel"), place(16, "user")]);
        set("gone", "this->gauge_", vec![place(7, "~Panel"), place(18, "user")]);
        set("other", "this->sum_", vec![place(30, "~Total"), place(19, "user")]);
        set("take", "this->mutex_", vec![place(10, "show")]);
        set("show", "this->gauge_", vec![place(11, "show")]);
        let lock = trace.event(parsed.event("take")).kind.object().expect("a lock");
        let region = |first: &str, last: &str| {
            let [first, last] = [first, last].map(|label| parsed.event(label));
            end_inside(&trace, &[Region { first, last, lock }])
        };
        assert!(region("make", "gone"));
        assert!(!region("make", "make"));
        assert!(!region("other", "other"), "another object's end");
        assert!(!region("gone", "gone"), "who destroys it may hold its lock");
    }

    /// `main` calls what makes a server in its own stack, with threads that count themselves under its lock.
    #[test]
    fn no_lock_is_held_before_it_is_made() {
        let text = "a: [before] W round 1\na: [take] lock m\na: [add] W active 1\na: unlock m\na: [make] fork b\n\
                    b: [in] lock m\nb: [less] W active 0\nb: unlock m\nt0: fork a\nt0: fork c\nc: [other] W other 1\n";
        let parsed = parse(text).expect("the text is a trace");
        let made = |by_c: bool, word: Option<&str>| {
            let mut trace = parsed.trace.clone();
            let mut set = |label: &str, stack: Vec<Site>| {
                trace.events[parsed.event(label).index()].stack = stack.into();
            };
            set("before", vec![place(12, "main")]);
            for label in ["take", "add", "make"] {
                set(label, vec![place(85, "serve"), place(12, "main")]);
            }
            let taking = trace.events[parsed.event("take").index()].kind.clone();
            let lock = taking.object().expect("a lock");
            trace.events[parsed.event("take").index()].words =
                [None, word.map(std::sync::Arc::from)].into();
            if by_c {
                trace.events[parsed.event("other").index()].kind = taking;
            }
            let [first, last] = ["before", "make"].map(|label| parsed.event(label));
            made_inside(&trace, &[Region { first, last, lock }], &[span(12, "main")])
        };
        assert!(made(false, None));
        assert!(!made(true, None), "somebody else has it");
        assert!(!made(false, Some("server.lock")), "the lines have it");
    }
}
