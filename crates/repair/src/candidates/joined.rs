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
