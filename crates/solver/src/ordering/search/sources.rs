//! Which source of a read to try, and on which side of it to have other writes.

use super::{FxHashMap, Kind, Literal, ReadRef, Search, Term, Variable, WriteSource};

impl Search<'_> {
    /// Of a read's sources that may still be, the write that comes last before it in the topological
    /// order, so that nothing has to be moved; when there is none, the first one behind it.
    pub(super) fn nearest(&self, read: u32) -> Option<Variable> {
        let places = self.graph.places();
        let own = i64::from(places[self.readers[read as usize] as usize]);
        let open = self.sources_of[read as usize].iter();
        let open = open.filter(|(variable, _)| self.assigned[variable.index()].is_none());
        open.min_by_key(|(_, write)| {
            let place = write.map_or(-1, |write| i64::from(places[write as usize]));
            (place > own, (own - place).abs())
        })
        .map(|&(variable, _)| variable)
    }

    /// Is it an order that the first topological order has?
    pub(in super::super) fn was_first(&self, literal: Literal) -> bool {
        match self.kinds[literal.variable().index()] {
            Kind::Order(a, b) => {
                let first = self.first_places[a as usize] < self.first_places[b as usize];
                first == literal.is_positive()
            }
            _ => false,
        }
    }

    /// Of a read's sources, has the one tried first that comes last before the read in the first
    /// topological order.
    pub(in super::super) fn prefer(&mut self) {
        let mut nearest: FxHashMap<ReadRef, (u32, Variable)> = FxHashMap::default();
        for (&(read, source), &variable) in &self.sources {
            let place = match source {
                WriteSource::Init => 0,
                WriteSource::Write(write) => self.first_places[write.index()],
            };
            if place >= self.first_places[read.event.index()] {
                continue;
            }
            let best = nearest.entry(read).or_insert((place, variable));
            if place > best.0 {
                *best = (place, variable);
            }
        }
        // Read after read in that order, so that what is decided hangs together.
        let count = self.first_places.len() as f64;
        let mut preferred: Vec<(u32, Variable)> = nearest
            .into_iter()
            .map(|(read, (_, best))| (self.first_places[read.event.index()], best))
            .collect();
        preferred.sort_unstable();
        for (place, variable) in preferred {
            self.activities.prefer(variable, 1.0 - f64::from(place) / count);
            self.first.raise(&self.activities, variable);
        }
    }

    /// The literal of a term that is true, false or one order; `Err` with its truth otherwise.
    fn order_of(&mut self, term: &Term) -> Result<Literal, bool> {
        match term {
            Term::Before(a, b) => Ok(self.order(a.0, b.0)),
            Term::True => Err(true),
            _ => Err(false),
        }
    }

    /// The clause that has a write be outside of a flow; none when that holds anyway.
    pub(in super::super) fn outside(
        &mut self,
        others: &[Literal],
        (read, source): (ReadRef, WriteSource),
        write: model::EventId,
    ) -> Option<Vec<Literal>> {
        let mut clause = others.to_vec();
        let term = self.system.outside(read, source, write);
        let parts = match &term {
            Term::Or(parts) => parts.as_slice(),
            other => std::slice::from_ref(other),
        };
        for part in parts {
            match self.order_of(part) {
                Ok(literal) => clause.push(literal),
                Err(true) => return None,
                Err(false) => {}
            }
        }
        Some(clause)
    }

    pub(in super::super) fn value_of(&self, literal: Literal) -> Option<bool> {
        self.value(literal)
    }
}
