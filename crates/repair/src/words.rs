//! What a lock is called in the lines where it is to be held: `this->mutex_` in the functions of its own class is
//! `lot.mutex_` in a function of another one.

use crate::beside::word_beside;
use crate::candidates::quoted;
use crate::sections::{is_internal, lock_name, lock_name_in, sections, taken};
use crate::source::Span;
use model::{CellId, Event, EventId, EventTrace, ObjectId};
use std::collections::BTreeSet;

/// What the lines call the lock that an event takes, where they lead to it.
pub(crate) fn word_in<'t>(event: &'t Event, span: &Span) -> Option<&'t str> {
    let mut frames = event.stack.iter();
    word_at(event, frames.position(|site| span.has(site))?)
}

/// What a place of its stack calls the lock that an event takes.
fn word_at(event: &Event, place: usize) -> Option<&str> {
    let own = event.name.as_deref().filter(|name| place <= event.depth() && !is_internal(name));
    let word = || event.words.get(place).and_then(Option::as_deref);
    own.or_else(word).filter(|name| !is_internal(name))
}

/// What a lock is called in some lines, of which a region is one passage: as it is taken there, or elsewhere in the
/// same function; otherwise as the thread calls it, where that means something there.
pub(crate) fn lock_word(
    trace: &EventTrace,
    object: ObjectId,
    span: &Span,
    region: Option<(EventId, EventId)>,
) -> String {
    if let Some(word) = word_of_function(trace, object, span, region) {
        return word;
    }
    let name = match region {
        Some(region) => lock_name_in(trace, object, region),
        None => lock_name(trace, object),
    };
    if !name.starts_with("this->") || shares_this(trace, object, span) {
        return name;
    }
    // A function of another class knows the object by another name, if at all.
    let takes = trace.events.iter().filter(|event| taken(event) == Some(object));
    let words = takes.flat_map(|event| event.words.iter().flatten());
    let mut words = words.map(|word| &**word);
    let outer = words.find(|word| !word.contains("this->") && !is_internal(word));
    outer.map_or(name, str::to_owned)
}

/// The same, in a step of a repair: where the name is what another function calls the lock by a variable of its own, which means
/// nothing in these lines, the function is told with it.
pub(crate) fn lock_phrase(
    trace: &EventTrace,
    object: ObjectId,
    span: &Span,
    region: Option<(EventId, EventId)>,
) -> String {
    let name = lock_word(trace, object, span, region);
    let is_own = || word_of_function(trace, object, span, region).is_some();
    let of_class = || name.starts_with("this->") && shares_this(trace, object, span);
    if !leads_through_local(&name) || is_own() || of_class() {
        return quoted(&name);
    }
    let takes = trace.events.iter().filter(|event| taken(event) == Some(object));
    let mut places = takes.filter_map(|event| {
        let place = match event.name.as_deref() == Some(name.as_str()) {
            true => event.depth(),
            false => event.words.iter().position(|word| word.as_deref() == Some(name.as_str()))?,
        };
        event.stack.get(place)
    });
    let Some(site) = places.next() else { return quoted(&name) };
    let (function, place) = (&site.function, Span::of(site).begin());
    format!("the lock that {function} takes as {} ({place})", quoted(&name))
}

/// Is it a name that begins with a variable which mostly is a function's own: what a pointer leads to, or a member of `self`?
fn leads_through_local(name: &str) -> bool {
    name.contains("->") || name.starts_with('*') || name == "self" || name.starts_with("self.")
}

/// What the function of the lines calls the lock.
fn word_of_function(
    trace: &EventTrace,
    object: ObjectId,
    span: &Span,
    region: Option<(EventId, EventId)>,
) -> Option<String> {
    let takes = || trace.events.iter().filter(|event| taken(event) == Some(object));
    let there = |event: &&Event| {
        region.is_some_and(|(first, last)| {
            let (first, last) = (trace.event(first), trace.event(last));
            event.thread == first.thread && (first.index..=last.index).contains(&event.index)
        })
    };
    let in_lines = || takes().filter(there).find_map(|event| word_in(event, span));
    let in_function = || takes().find_map(|event| word_in_function(event, span));
    let beside = |region| word_beside(trace, &sections(trace), object, span, region);
    let word = in_lines().or_else(in_function).map(str::to_owned);
    word.or_else(|| region.and_then(beside))
}

fn word_in_function<'t>(event: &'t Event, span: &Span) -> Option<&'t str> {
    let same = |place: &usize| {
        let site = &event.stack[*place];
        site.function == span.function && site.file == span.file
    };
    (0..event.stack.len()).filter(same).find_map(|place| word_at(event, place))
}

/// Does the function of the lines touch a member of the object whose functions take the lock as their own?
pub(crate) fn shares_this(trace: &EventTrace, object: ObjectId, span: &Span) -> bool {
    let function = |event: &Event| {
        event.stack.get(event.depth()).map(|site| (site.function.clone(), site.file.clone()))
    };
    let own = Some((span.function.clone(), span.file.clone()));
    let takes = |event: &&Event| {
        let name = event.name.as_deref().unwrap_or_default();
        taken(event) == Some(object) && name.starts_with("this->")
    };
    let mut related: BTreeSet<_> = trace.events.iter().filter(takes).map(function).collect();
    let member =
        |event: &&Event| event.name.as_deref().is_some_and(|name| name.starts_with("this->"));
    // A member of one name in one place is the same object's.
    let touched = |event: &Event| {
        let reads = event.kind.reads().iter().map(|part| Touched::Cell(part.cell));
        let writes = event.kind.writes().iter().map(|part| Touched::Cell(part.cell));
        let object = event.kind.object().map(Touched::Object).into_iter();
        let name = event.name.clone();
        reads.chain(writes).chain(object).map(move |it| (name.clone(), it)).collect::<Vec<_>>()
    };
    let members: Vec<_> = trace.events.iter().filter(member).collect();
    let mut known: BTreeSet<_> = BTreeSet::new();
    loop {
        let of_related = members.iter().filter(|event| related.contains(&function(event)));
        known.extend(of_related.flat_map(|event| touched(event)));
        let before = related.len();
        let shares = |event: &&&Event| touched(event).iter().any(|it| known.contains(it));
        related.extend(members.iter().filter(shares).map(|event| function(event)));
        if related.contains(&own) || related.len() == before {
            return related.contains(&own);
        }
    }
}

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Touched {
    Cell(CellId),
    Object(ObjectId),
}

#[cfg(test)]
mod tests {
    use super::*;
    use encoders::dsl::parse;
    use model::Site;

    fn site(line: u32, function: &str) -> Site {
        Site { file: "a.cc".to_owned(), line, column: 1, function: function.to_owned() }
    }

    fn span(first: u32, last: u32, function: &str) -> Span {
        Span { first, last, ..Span::of(&site(first, function)) }
    }

    /// `bid` of a house calls `best` of a lot, which takes the lot's lock; `close` of something else touches what the
    /// lock does not belong to.
    fn trace() -> (EventTrace, EventId) {
        let text = "a: [take] lock m\na: [look] R bids -> n\na: unlock m\nb: [close] W other 1\nb: [own] W bids 2";
        let parsed = parse(text).expect("the text is a trace");
        let mut trace = parsed.trace.clone();
        let take = parsed.event("take");
        let taker = trace.event(take).thread;
        for event in &mut trace.events {
            let inner = match event.thread == taker {
                true => vec![site(20, "best"), site(50, "bid")],
                false => vec![site(70, "close")],
            };
            event.stack = inner.into();
        }
        let name = |name: &str| Some(name.into());
        trace.events[take.index()].name = name("this->mutex_");
        trace.events[take.index()].words = [name("this->mutex_"), name("lot.mutex_")].into();
        trace.events[parsed.event("look").index()].name = name("this->bids_");
        trace.events[parsed.event("close").index()].name = name("this->other_");
        (trace, take)
    }

    #[test]
    fn a_lock_is_called_as_the_lines_call_it() {
        let (trace, take) = trace();
        let lock = trace.event(take).kind.object().expect("it takes a lock");
        let word = |span: &Span| lock_word(&trace, lock, span, Some((take, take)));
        assert_eq!(word(&span(20, 20, "best")), "this->mutex_");
        assert_eq!(word(&span(50, 53, "bid")), "lot.mutex_");
        // Elsewhere in the function.
        assert_eq!(word(&span(58, 59, "bid")), "lot.mutex_");
    }

    #[test]
    fn what_a_class_calls_its_own_is_no_word_of_another_one() {
        let (mut trace, take) = trace();
        let lock = trace.event(take).kind.object().expect("it takes a lock");
        let close = span(70, 70, "close");
        assert_eq!(lock_word(&trace, lock, &close, None), "lot.mutex_");
        // Unless both touch a member of one object.
        let own = trace.events.iter().rposition(|event| !event.kind.writes().is_empty());
        trace.events[own.expect("it writes")].name = Some("this->bids_".into());
        assert_eq!(lock_word(&trace, lock, &close, None), "this->mutex_");
    }

    #[test]
    fn a_name_that_means_nothing_in_the_lines_is_told_with_its_function() {
        let (mut trace, take) = trace();
        let lock = trace.event(take).kind.object().expect("it takes a lock");
        let close = span(70, 70, "close");
        let mut phrase = |name: &str, outer: Option<&str>| {
            trace.events[take.index()].name = Some(name.into());
            trace.events[take.index()].words = [Some(name.into()), outer.map(Into::into)].into();
            lock_phrase(&trace, lock, &close, None)
        };
        for name in ["*lock->object", "self.views", "lock->mutex"] {
            let told = format!("the lock that best takes as `{name}` (a.cc:20)");
            assert_eq!(phrase(name, None), told);
        }
        assert_eq!(
            phrase("this->mutex_", Some("lot->mutex_")),
            "the lock that bid takes as `lot->mutex_` (a.cc:50)"
        );
        assert_eq!(phrase("door", None), "`door`");
        assert_eq!(phrase("this->mutex_", Some("lot.mutex_")), "`lot.mutex_`");
        trace.events[take.index()].name = Some("lock->mutex".into());
        assert_eq!(lock_phrase(&trace, lock, &span(20, 20, "best"), None), "`lock->mutex`");
    }

    /// `look` takes the lock and reads `bids_`, `fill` writes `bids_` and `top_`, and `close` reads `top_`.
    #[test]
    fn functions_of_one_object_are_told_by_what_they_share_with_others_of_it() {
        let text = "a: [take] lock m\na: [look] R bids -> n\na: unlock m\n
            b: [fill] W bids 1\nb: [top] W top 2\nb: [close] R top -> t\nb: [tell] signal told";
        let mut parsed = parse(text).expect("the text is a trace");
        let places = [
            ("take", "this->mutex_", "look"),
            ("look", "this->bids_", "look"),
            ("fill", "this->bids_", "fill"),
            ("top", "this->top_", "fill"),
            ("close", "this->top_", "close"),
            ("tell", "this->told_", "other"),
        ];
        for (label, name, function) in places {
            let id = parsed.event(label);
            let event = &mut parsed.trace.events[id.index()];
            (event.name, event.stack) = (Some(name.into()), [site(7, function)].into());
        }
        let trace = &parsed.trace;
        let lock = trace.event(parsed.event("take")).kind.object().expect("it takes a lock");
        assert!(shares_this(trace, lock, &span(7, 8, "close")));
        assert!(!shares_this(trace, lock, &span(7, 8, "other")));
        // Who signals what another one of them signals is of the same object, too.
        let mut trace = trace.clone();
        let signals = trace.event(parsed.event("tell")).kind.clone();
        let top = &mut trace.events[parsed.event("top").index()];
        (top.kind, top.name) = (signals, Some("this->told_".into()));
        assert!(shares_this(&trace, lock, &span(7, 8, "other")));
    }
}
