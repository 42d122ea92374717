//! Places of the source, and where threads came through them.

use model::{Event, EventId, EventTrace, Site};

/// Lines of one function.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// The file as the debug information names it.
    pub file: String,
    /// The function.
    pub function: String,
    /// The first line.
    pub first: u32,
    /// The last line; not before the first.
    pub last: u32,
}

impl Span {
    /// One line.
    pub(crate) fn of(site: &Site) -> Self {
        Self {
            file: site.file.clone(),
            function: site.function.clone(),
            first: site.line,
            last: site.line,
        }
    }

    /// Is this place in it?
    pub(crate) fn has(&self, site: &Site) -> bool {
        (self.first..=self.last).contains(&site.line)
            && site.function == self.function
            && site.file == self.file
    }

    /// `queue.c:80`: the first line, where it is known.
    pub(crate) fn begin(&self) -> String {
        match self.first {
            0 => self.file_name().to_owned(),
            line => format!("{}:{line}", self.file_name()),
        }
    }

    /// `queue.c:90`: the last line.
    pub(crate) fn end(&self) -> String {
        format!("{}:{}", self.file_name(), self.last)
    }

    /// Is it in a region of OpenMP, or in a task? Both are named after their directives.
    pub(crate) fn is_region(&self) -> bool {
        self.is_task() || self.function.starts_with("parallel region at ")
    }

    /// Is it in a task of OpenMP?
    pub(crate) fn is_task(&self) -> bool {
        self.function.starts_with("task at ")
    }

    fn file_name(&self) -> &str {
        self.file.rsplit('/').next().unwrap_or(&self.file)
    }
}

/// The lines from one event to a later one of the same thread, in the innermost function that both
/// were performed in or called from. `None` when there is none, or when the second stands above
/// the first, as in a loop.
#[must_use]
pub fn span(one: &Event, other: &Event) -> Option<Span> {
    let (a, b) = (frames(one), frames(other));
    let common = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let (first, last) = match (a.get(common), b.get(common)) {
        (Some(first), Some(last)) if same_function(first, last) && !first.is_in_library() => {
            (*first, *last)
        }
        // One line that calls both.
        (Some(_), Some(_)) => {
            let shared = caller(a.get(..common)?)?;
            (shared, shared)
        }
        // Or does one and calls the other. In a library's line nobody takes a lock.
        _ => {
            let shared = *a.get(..common)?.iter().rev().find(|site| !site.is_in_library())?;
            (shared, shared)
        }
    };
    let known = first.line != 0 && last.line != 0 && first.line <= last.line;
    let span = Span {
        file: first.file.clone(),
        function: first.function.clone(),
        first: first.line,
        last: last.line,
    };
    known.then_some(span)
}

/// The same, where two functions that are called the same, such as two classes' members, are not taken for one: between
/// lines of one function there are none of another.
pub(crate) fn span_in(trace: &EventTrace, one: &Event, other: &Event) -> Option<Span> {
    let whole = span(one, other)?;
    let between = |site: &Site| {
        (whole.first + 1..whole.last).contains(&site.line)
            && site.function != whole.function
            && site.file == whole.file
            && !is_inside(site, &whole.function)
            && !is_inside(one.site(), &site.function)
    };
    let mut events = trace.events.iter();
    if whole.first == whole.last || !events.any(|event| event.stack.iter().any(between)) {
        return Some(whole);
    }
    let (a, b) = (frames(one), frames(other));
    let common = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let shared = caller(a.get(..common)?)?;
    (shared.line != 0).then(|| Span::of(shared))
}

/// Is the place in a function that is written inside of another one: a closure or lambda expression?
fn is_inside(site: &Site, function: &str) -> bool {
    site.function.split_once(" in ").is_some_and(|(_, outer)| outer == function)
}

/// Where a thread asked for two locks, the second while it had the first. Where one function of the program takes both,
/// as the constructor of a guard of its own does, these are the lines that called it.
pub(crate) fn asked_at<'t>(held: &'t Event, asked: &'t Event) -> [&'t Site; 2] {
    let sites = [held.site(), asked.site()];
    if sites[0] != sites[1] {
        return sites;
    }
    let (a, b) = (frames(held), frames(asked));
    let common = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    match (a.get(common), b.get(common)) {
        (Some(first), Some(second)) if same_function(first, second) => [*first, *second],
        _ => sites,
    }
}

/// The program's own line that calls what comes behind these frames, once or again and again: where a library calls a
/// closure, say for each element, that is the line of the function in which the closure is written.
pub(crate) fn caller<'s>(frames: &[&'s Site]) -> Option<&'s Site> {
    let own = frames.iter().rposition(|site| !site.is_in_library())?;
    let outer = frames[..own].iter().rposition(|site| !site.is_in_library());
    let outer =
        outer.filter(|outer| outer + 1 < own && is_inside(frames[own], &frames[*outer].function));
    Some(frames[outer.unwrap_or(own)])
}

/// The frames of an event's stack in the program's own code, outer to inner.
pub(crate) fn frames(event: &Event) -> Vec<&Site> {
    let own = event.stack.iter().skip(event.depth());
    let mut frames: Vec<&Site> = own.collect();
    frames.reverse();
    frames
}

pub(crate) fn same_function(one: &Site, other: &Site) -> bool {
    one.function == other.function && one.file == other.file
}

/// Is it in a destructor of C++?
pub(crate) fn is_destructor(site: &Site) -> bool {
    site.function.rsplit("::").next().is_some_and(|name| name.starts_with('~'))
}

/// The passages of the threads through these lines: first and last event of each.
pub(crate) fn passages(trace: &EventTrace, span: &Span) -> Vec<(EventId, EventId)> {
    let mut found = Vec::new();
    for thread in &trace.threads {
        let mut open: Option<Open> = None;
        for &id in &thread.events {
            let event = trace.event(id);
            let inside = frames(event).iter().position(|site| span.has(site)).map(|depth| {
                let frames = frames(event);
                let path: Vec<Site> = frames[..depth].iter().map(|site| (*site).clone()).collect();
                (path, frames[depth].line, event.continues(depth))
            });
            let Some((path, line, goes_on)) = inside else {
                found.extend(open.take().map(|open| (open.first, open.last)));
                continue;
            };
            match &mut open {
                // Further down in the same activation, or back in a loop that does not begin anew.
                Some(open)
                    if goes_on
                        && open.path == path
                        && !(line == span.first && line < open.line) =>
                {
                    (open.last, open.line) = (id, line);
                }
                _ => {
                    found.extend(open.take().map(|open| (open.first, open.last)));
                    open = Some(Open { first: id, last: id, path, line });
                }
            }
        }
        found.extend(open.map(|open| (open.first, open.last)));
    }
    found
}

/// A passage that is not over.
struct Open {
    first: EventId,
    last: EventId,
    /// The calls that led to the function.
    path: Vec<Site>,
    line: u32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use encoders::dsl::parse;

    /// `add`, which is one line, is called in each round of a loop.
    #[test]
    fn each_call_of_a_line_is_a_passage() {
        let text = "
            a: [read] R sum -> x
            a: [write] W sum 1
            a: [next] R sum -> y
            a: [last] W sum 2
        ";
        let mut parsed = parse(text).expect("the text is a trace");
        let site = |function: &str, line| Site {
            file: "sum.c".to_owned(),
            line,
            column: 1,
            function: function.to_owned(),
        };
        let events = ["read", "write", "next", "last"].map(|label| parsed.event(label));
        for id in events {
            parsed.trace.events[id.index()].stack = [site("add", 4), site("work", 9)].into();
        }
        let [read, write, next, last] = events;
        let span = Span::of(&site("add", 4));
        assert_eq!(passages(&parsed.trace, &span), [(read, last)]);
        parsed.trace.events[next.index()].continued = 1;
        assert_eq!(passages(&parsed.trace, &span), [(read, write), (next, last)]);
        // The loop itself is one passage through the line that calls it.
        let span = Span::of(&site("work", 9));
        assert_eq!(passages(&parsed.trace, &span), [(read, last)]);
    }

    #[test]
    fn lines_of_a_library_are_left_to_who_calls_it() {
        let mut parsed = parse("a: [one] W x 1\na: [two] W y 1\n").expect("the text is a trace");
        let site = |file: &str, function: &str, line| {
            let (file, function) = (file.to_owned(), function.to_owned());
            Site { file, line, column: 1, function }
        };
        let library = site("/usr/include/c++/12/bits/stl_construct.h", "_Construct", 119);
        for (label, function) in [("one", "Certificate"), ("two", "name")] {
            let own = site("server.cc", function, 14);
            let stack = vec![own, library.clone(), site("server.cc", "rotate", 21)];
            parsed.trace.events[parsed.labels[label].index()].stack = stack.into();
        }
        let [one, two] = ["one", "two"].map(|label| parsed.trace.event(parsed.event(label)));
        let lines = span(one, two).expect("lines");
        assert_eq!((lines.function.as_str(), lines.first, lines.last), ("rotate", 21, 21));
    }

    #[test]
    fn what_a_guard_takes_is_asked_for_where_the_guard_is_made() {
        let mut parsed = parse("a: [one] W x 1\na: [two] W y 1\n").expect("the text is a trace");
        let site = |function: &str, line| Site {
            file: "view.cc".to_owned(),
            line,
            column: 1,
            function: function.to_owned(),
        };
        let (guard, main) = (site("Section", 20), site("main", 90));
        let stacks = [
            vec![guard.clone(), site("append", 54), main.clone()],
            vec![guard, site("changed", 101), site("append", 56), main],
        ];
        for (label, stack) in ["one", "two"].into_iter().zip(stacks) {
            parsed.trace.events[parsed.labels[label].index()].stack = stack.into();
        }
        let [one, two] = ["one", "two"].map(|label| parsed.trace.event(parsed.event(label)));
        let lines = asked_at(one, two).map(|site| (site.function.as_str(), site.line));
        assert_eq!(lines, [("append", 54), ("append", 56)]);
    }
}
