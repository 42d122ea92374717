//! Writes between a read and its source. Written out, "no other write comes between" takes a clause
//! for each source and each other write. Instead the topological order is looked at when all else is
//! decided: mostly no write is between, and where one is, the clauses about it are added.

use super::literal::Literal;
use super::search::{Search, Unsatisfiable};
use model::{ReadRef, WriteSource};

/// So many writes between one source and its read are dealt with at a time.
const AT_A_TIME: usize = 8;

/// A source that a read may have.
#[derive(Debug)]
pub(super) struct Flow {
    read: ReadRef,
    source: WriteSource,
    /// When one of these holds, it does not matter what comes between.
    unless: Box<[Literal]>,
}

impl Search<'_> {
    /// Unless one of the literals holds, no other write comes between the source and the read.
    pub(super) fn add_flow(&mut self, unless: &[Literal], read: ReadRef, source: WriteSource) {
        self.flows.push(Flow { read, source, unless: unless.into() });
    }

    /// Adds clauses about writes that come between a read and its source in the topological order;
    /// `None` when there are none of these.
    pub(super) fn interrupted(&mut self) -> Option<Result<(), Unsatisfiable>> {
        let mut clauses = Vec::new();
        for index in 0..self.flows.len() {
            self.interruptions(index, &mut clauses);
        }
        if clauses.is_empty() {
            return None;
        }
        Some(clauses.into_iter().try_for_each(|clause| self.add_lemma(clause)))
    }

    fn interruptions(&mut self, index: usize, clauses: &mut Vec<Vec<Literal>>) {
        let flow = &self.flows[index];
        if flow.unless.iter().any(|&literal| self.value_of(literal) != Some(false)) {
            return;
        }
        let (read, source) = (flow.read, flow.source);
        let places = self.places();
        let end = places[read.event.index()];
        let start = match source {
            WriteSource::Init => None,
            WriteSource::Write(write) => Some(places[write.index()]),
        };
        let between = self.system.open_writes(read).iter().copied().filter(|write| {
            let place = places[write.index()];
            place < end && start.is_none_or(|start| start < place)
        });
        let between: Vec<_> = between.take(AT_A_TIME).collect();
        if between.is_empty() {
            return;
        }
        let unless = flow.unless.clone();
        for write in between {
            clauses.extend(self.outside(&unless, (read, source), write));
        }
    }
}
