//! Writes between a read and its source. Written out, "no other write comes between" takes a clause
//! for each source and each other write. Instead the topological order is looked at when all else is
//! decided: mostly no write is between, and where one is, the clauses about it are added.

use super::literal::Literal;
use super::search::{Decision, Search, Unsatisfiable};
use model::{EventId, ReadRef, WriteSource};

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
    pub(super) fn add_flow(
        &mut self,
        unless: &[Literal],
        read: ReadRef,
        source: WriteSource,
    ) -> u32 {
        let number = self.flows.len() as u32;
        self.flows.push(Flow { read, source, unless: unless.into() });
        if let [literal] = unless {
            self.flow_of.insert(literal.variable(), number);
        }
        number
    }

    /// Flows that hold whatever is decided are looked at before anything is.
    pub(super) fn enter_sure(&mut self) {
        let sure = |index: &u32| self.flows[*index as usize].unless.len() != 1;
        self.entered = (0..self.flows.len() as u32).filter(sure).collect();
    }

    /// Has writes be outside of the flows that were decided last: a contradiction is then found
    /// near what caused it.
    pub(super) fn look_at_entered(&mut self) -> Option<Decision> {
        while let Some(&number) = self.entered.last() {
            let between = self.between(number);
            if between.is_empty() {
                self.entered.pop();
                continue;
            }
            match self.part(number, &between) {
                Err(Unsatisfiable) => return Some(Decision::Broken),
                Ok(true) => return Some(Decision::Again),
                Ok(false) => {}
            }
            match self.side(number, between[0]) {
                Some(literal) => return Some(Decision::Literal(literal)),
                None => {
                    self.entered.pop();
                }
            }
        }
        None
    }

    /// Adds clauses about writes that come between a read and its source in the topological order;
    /// `None` when there are none of these.
    pub(super) fn interrupted(&mut self) -> Option<Result<(), Unsatisfiable>> {
        let mut found = false;
        for number in 0..self.flows.len() as u32 {
            let between = self.between(number);
            if between.is_empty() {
                continue;
            }
            found = true;
            self.entered.push(number);
            if self.part(number, &between).is_err() {
                return Some(Err(Unsatisfiable));
            }
        }
        found.then_some(Ok(()))
    }

    /// The writes that come between in the topological order, when the flow is what was decided.
    fn between(&self, number: u32) -> Vec<EventId> {
        let flow = &self.flows[number as usize];
        if flow.unless.iter().any(|&literal| self.value_of(literal) != Some(false)) {
            return Vec::new();
        }
        let places = self.places();
        let end = places[flow.read.event.index()];
        let start = match flow.source {
            WriteSource::Init => None,
            WriteSource::Write(write) => Some(places[write.index()]),
        };
        let open = self.system.open_writes(flow.read).iter().copied();
        open.filter(|write| {
            let place = places[write.index()];
            place < end && start.is_none_or(|start| start < place)
        })
        .take(AT_A_TIME)
        .collect()
    }

    /// Adds the clauses about these writes that are not there yet; false when all are.
    fn part(&mut self, number: u32, between: &[EventId]) -> Result<bool, Unsatisfiable> {
        let mut added = false;
        for &write in between {
            if !self.parted.insert((number, write.0)) {
                continue;
            }
            let flow = &self.flows[number as usize];
            let (unless, pair) = (flow.unless.clone(), (flow.read, flow.source));
            if let Some(clause) = self.outside(&unless, pair, write) {
                added = true;
                self.add_lemma(clause)?;
            }
        }
        Ok(added)
    }

    /// On which side of the flow to try to have a write: an open one of the two orders, preferably
    /// the one that the first topological order has.
    fn side(&mut self, number: u32, write: EventId) -> Option<Literal> {
        let flow = &self.flows[number as usize];
        let (unless, pair) = (flow.unless.clone(), (flow.read, flow.source));
        let clause = self.outside(&unless, pair, write)?;
        let open = clause.into_iter().filter(|&literal| self.value_of(literal).is_none());
        open.max_by_key(|&literal| self.was_first(literal))
    }
}
