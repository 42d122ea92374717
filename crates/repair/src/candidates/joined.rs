//! Lines that come right after each other in one passage are one critical section, not two.

use crate::source::{Span, frames, passages};
use model::{EventId, EventKind, EventTrace};

/// Makes one span of those that threads pass right after each other in one call: with two sections
/// of one lock another thread still comes between. Nothing is joined across a step that may wait
/// or that others wait for, nor around a loop. The result is sorted.
pub(super) fn joined(trace: &EventTrace, mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort();
    let mut found: Vec<Span> = Vec::new();
    for span in spans {
        match found.last_mut() {
            Some(last) if follows(trace, last, &span) => last.last = span.last,
            _ => found.push(span),
        }
    }
    found
}

/// Does the second span come right after the first one, wherever a thread passes both?
fn follows(trace: &EventTrace, first: &Span, second: &Span) -> bool {
    if first.function != second.function || first.file != second.file || first.last >= second.first
    {
        return false;
    }
    let both = Span { last: second.last, ..first.clone() };
    let mut passed = false;
    for (from, to) in passages(trace, &both) {
        let index = |id: EventId| trace.event(id).index as usize;
        let own = &trace.thread_of(from).events;
        let own = own.get(index(from)..=index(to)).unwrap_or_default();
        // The function's own line that each event is at or is called from.
        let lines: Vec<(u32, EventId)> = own
            .iter()
            .filter_map(|id| {
                let frames = frames(trace.event(*id));
                let frame = frames.into_iter().find(|site| both.has(site))?;
                Some((frame.line, *id))
            })
            .collect();
        let Some(begin) = lines.iter().rposition(|(line, _)| *line <= first.last) else { continue };
        let Some(end) = lines.iter().position(|(line, _)| *line >= second.first) else { continue };
        if begin > end {
            return false;
        }
        let between = lines.get(begin..=end).unwrap_or_default();
        let inner = between.get(1..between.len() - 1).unwrap_or_default();
        let goes_on = between.windows(2).all(|pair| pair[0].0 <= pair[1].0);
        if !goes_on || !inner.iter().all(|(_, id)| is_plain(&trace.event(*id).kind)) {
            return false;
        }
        passed = true;
    }
    passed
}

/// Is it a step that neither waits nor is waited for?
fn is_plain(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::Read { .. }
            | EventKind::Write { .. }
            | EventKind::ReadModifyWrite { .. }
            | EventKind::Fence
            | EventKind::Allocate { .. }
            | EventKind::Free { .. }
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use encoders::dsl::parse;
    use model::Site;

    fn place(line: u32) -> Site {
        Site { file: "list.c".to_owned(), line, column: 1, function: "add".to_owned() }
    }

    fn span(first: u32, last: u32) -> Span {
        Span { first, last, ..Span::of(&place(first)) }
    }

    /// A trace whose thread `a` has its events at these lines of one function, and what becomes of the
    /// spans there.
    fn joined_at(steps: &[(&str, u32)], spans: &[Span]) -> Vec<Span> {
        let own = steps.iter().map(|(step, _)| format!("a: {step}\n"));
        let text: String = std::iter::once("t0: fork a\n".to_owned()).chain(own).collect();
        let mut trace = parse(&text).expect("the text is a trace").trace;
        let mut lines = steps.iter().map(|(_, line)| *line);
        let of_a = trace.threads[1].events.clone();
        for id in of_a {
            if !matches!(trace.event(id).kind, EventKind::Start | EventKind::Exit) {
                let line = lines.next().expect("a line for every step");
                trace.events[id.index()].stack = vec![place(line)].into();
            }
        }
        joined(&trace, spans.to_vec())
    }

    #[test]
    fn lines_that_follow_each_other_are_one_section() {
        let steps = [("R head -> h", 3), ("R length -> n", 6), ("W length n + 1", 20)];
        assert_eq!(joined_at(&steps, &[span(6, 20), span(3, 3)]), [span(3, 20)]);
    }

    #[test]
    fn a_step_that_may_wait_keeps_lines_apart() {
        let steps = [("R head -> h", 3), ("lock other", 4), ("unlock other", 5), ("W length 1", 6)];
        assert_eq!(joined_at(&steps, &[span(3, 3), span(6, 6)]), [span(3, 3), span(6, 6)]);
    }

    #[test]
    fn a_loop_between_keeps_lines_apart() {
        let steps = [("R head -> h", 3), ("R x -> x0", 5), ("R y -> y0", 4), ("W length 1", 6)];
        assert_eq!(joined_at(&steps, &[span(3, 3), span(6, 6)]), [span(3, 3), span(6, 6)]);
    }

    #[test]
    fn lines_that_no_thread_passes_in_one_call_stay_apart() {
        let steps = [("W length 1", 6), ("R head -> h", 3)];
        assert_eq!(joined_at(&steps, &[span(3, 3), span(6, 6)]), [span(3, 3), span(6, 6)]);
    }
}
