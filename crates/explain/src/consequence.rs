//! Which data-flow variations follow from others.
//!
//! Where one thread reads what another one wrote last, what everybody reads later often comes from
//! another write, too: of a lost update whose threads change places, the final read takes the other
//! thread's value. Such a variation could not have stayed away once the first one was there, and
//! tells a reader nothing new. It is shown ([S] 3.5 has all variations), and marked.

use crate::happens_before::HappensBefore;
use model::{CellId, EventId, EventTrace, ReadRef, WriteSource};
use std::collections::BTreeMap;

/// No more variations than this are looked at.
const MOST: usize = 24;

/// A read whose source differs, by the identifiers of the trace that passes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Variation {
    /// The read.
    pub(crate) read: ReadRef,
    /// Its source when it passes.
    pub(crate) passing: WriteSource,
    /// Its source when it fails; `None` when the passing run does not have that event.
    pub(crate) failing: Option<WriteSource>,
}

/// For each variation that follows from others, by its index, the indices of those. The variations
/// are in the order in which the passing schedule has the reads, and follow from earlier ones alone.
///
/// A variation follows from others when no schedule with the passing schedule's sources of those has
/// the failing one's source here: by program order, thread creation and join, and what it means to
/// read from a write, another write of the cell comes between, or the read comes before its source.
pub(crate) fn consequences(
    trace: &EventTrace,
    happens_before: &HappensBefore,
    variations: &[Variation],
) -> BTreeMap<usize, Vec<usize>> {
    let mut found: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    if variations.len() < 2 || variations.len() > MOST {
        return found;
    }
    let forced = Forced { trace, happens_before, variations };
    for index in 1..variations.len() {
        let roots: Vec<usize> = (0..index).filter(|root| !found.contains_key(root)).collect();
        let single = roots.iter().find(|root| forced.is_forced(index, &[**root]));
        if let Some(&root) = single {
            found.insert(index, vec![root]);
        } else if roots.len() > 1 && forced.is_forced(index, &roots) {
            found.insert(index, roots);
        }
    }
    found
}

struct Forced<'a> {
    trace: &'a EventTrace,
    happens_before: &'a HappensBefore,
    variations: &'a [Variation],
}

impl Forced<'_> {
    /// With the passing sources of `roots`, is the failing source of the variation out of reach?
    fn is_forced(&self, index: usize, roots: &[usize]) -> bool {
        let Variation { read, failing, .. } = self.variations[index];
        let (Some(source), Some(cell)) = (failing, self.cell(read)) else { return false };
        let edges: Vec<(EventId, EventId)> =
            roots.iter().flat_map(|root| self.edges(self.variations[*root])).collect();
        let reaches = |from: EventId, to: EventId| self.reaches(&edges, from, to);
        let overwritten = |write: EventId| {
            let behind = match source {
                WriteSource::Init => true,
                WriteSource::Write(source) => source != write && reaches(source, write),
            };
            behind && write != read.event && reaches(write, read.event)
        };
        let too_late = matches!(source, WriteSource::Write(source) if reaches(read.event, source));
        // Of a thread's writes those that come after the source are the last ones, and those that come before
        // the read the first.
        let by_thread = |writes: Vec<EventId>| {
            let first = writes.partition_point(|write| match source {
                WriteSource::Init => false,
                WriteSource::Write(source) => !reaches(source, *write),
            });
            let others =
                |write: &EventId| *write != read.event && WriteSource::Write(*write) != source;
            writes[first..].iter().copied().find(others).is_some_and(overwritten)
        };
        too_late || self.writes(cell).any(by_thread)
    }

    /// The orders that a read's source stands for: it comes before the read, and what overwrites it
    /// in any case comes behind the read.
    fn edges(&self, variation: Variation) -> Vec<(EventId, EventId)> {
        let read = variation.read.event;
        let Some(cell) = self.cell(variation.read) else { return Vec::new() };
        let overwrites = |write: &EventId| match variation.passing {
            WriteSource::Init => true,
            WriteSource::Write(source) => self.happens_before.before(source, *write),
        };
        // The rest of a thread's writes comes behind its first one.
        let later = self.writes(cell).filter_map(|writes| {
            writes.into_iter().find(|write| *write != read && overwrites(write))
        });
        let mut edges: Vec<(EventId, EventId)> = later.map(|write| (read, write)).collect();
        if let WriteSource::Write(source) = variation.passing {
            edges.push((source, read));
        }
        edges
    }

    /// Does one event come before another by the order of all schedules and these edges?
    fn reaches(&self, edges: &[(EventId, EventId)], from: EventId, to: EventId) -> bool {
        let before = |a: EventId, b: EventId| a == b || self.happens_before.before(a, b);
        if self.happens_before.before(from, to) {
            return true;
        }
        let mut seen = vec![false; edges.len()];
        let mut stack = vec![from];
        while let Some(at) = stack.pop() {
            for (edge, &(tail, head)) in edges.iter().enumerate() {
                if !seen[edge] && before(at, tail) {
                    if before(head, to) {
                        return true;
                    }
                    seen[edge] = true;
                    stack.push(head);
                }
            }
        }
        false
    }

    fn cell(&self, read: ReadRef) -> Option<CellId> {
        let parts = self.trace.event(read.event).kind.reads();
        parts.get(read.part as usize).map(|part| part.cell)
    }

    /// The writes of a cell, of each thread in its program order.
    fn writes(&self, cell: CellId) -> impl Iterator<Item = Vec<EventId>> {
        self.trace.threads.iter().map(move |thread| {
            let writes = |id: &EventId| {
                self.trace.event(*id).kind.writes().iter().any(|part| part.cell == cell)
            };
            thread.events.iter().copied().filter(writes).collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use encoders::dsl::{Parsed, parse};

    const UPDATES: &str = "
        t0: fork a
        t0: fork b
        a: [ra] R x -> p
        a: [wa] W x p + 1
        a: [other] R y -> q
        b: [rb] R x -> r
        b: [wb] W x r + 1
        b: [wy] W y 1
        t0: join a
        t0: join b
        t0: [total] R x -> s
    ";

    fn variation(parsed: &Parsed, read: &str, passing: &str, failing: &str) -> Variation {
        let source = |label: &str| match label {
            "init" => WriteSource::Init,
            label => WriteSource::Write(parsed.event(label)),
        };
        Variation {
            read: ReadRef { event: parsed.event(read), part: 0 },
            passing: source(passing),
            failing: Some(source(failing)),
        }
    }

    /// By read, its passing and its failing source; what follows from what.
    fn found(variations: &[[&str; 3]]) -> Vec<(usize, Vec<usize>)> {
        let parsed = parse(UPDATES).expect("the text is a trace");
        let trace = &parsed.trace;
        // The initial thread up to its first join, the others, and its rest.
        let main = &trace.threads[0].events;
        let joins = |id: &EventId| trace.event(*id).kind.name() == "join";
        let (first, rest) = main.split_at(main.iter().position(joins).expect("a join"));
        let others = trace.threads[1..].iter().flat_map(|thread| &thread.events);
        let order: Vec<EventId> = first.iter().chain(others).chain(rest).copied().collect();
        let happens_before = HappensBefore::new(trace, &order);
        let variations: Vec<Variation> =
            variations.iter().map(|[read, p, f]| variation(&parsed, read, p, f)).collect();
        consequences(trace, &happens_before, &variations).into_iter().collect()
    }

    #[test]
    fn what_is_overwritten_in_any_case_follows() {
        // The one reads what the other wrote and writes behind it: so that is what is left.
        assert_eq!(found(&[["ra", "wb", "init"], ["total", "wa", "wb"]]), [(1, vec![0])]);
    }

    #[test]
    fn what_could_have_stayed_is_a_variation_of_its_own() {
        assert_eq!(found(&[["other", "wy", "init"], ["total", "wa", "wb"]]), []);
        // Who writes last is not decided by one read of the initial value.
        assert_eq!(found(&[["rb", "init", "wa"], ["total", "wa", "wb"]]), []);
        assert_eq!(found(&[["ra", "wb", "init"]]), []);
    }

    #[test]
    fn an_initial_value_is_gone_after_any_write() {
        let both = [["other", "wy", "init"], ["ra", "wb", "init"]];
        // The initial value of `x` is read before all writes, that of `y` says nothing about it.
        assert_eq!(found(&both), []);
        let order = [["rb", "wa", "init"], ["other", "init", "wy"]];
        assert_eq!(found(&order), []);
    }
}
