//! Looking near a known schedule.
//!
//! A question about one run mostly has an answer that differs little from a schedule that is known
//! already: the failing one, when a schedule that passes is looked for. So the topological order starts
//! from that schedule, and with it what is decided: the sources that reads have there, in the order in
//! which they come there. Only what the question rules out has to be decided otherwise.

use super::{EventId, Kind, Search, Variable};

impl Search<'_> {
    /// Begins later searches from this schedule of all events.
    pub(in super::super) fn look_near(&mut self, order: &[EventId]) {
        self.cancel(0);
        let events = self.first_places.len();
        let mut model = vec![0; events];
        for (place, event) in (1..).zip(order) {
            if let Some(slot) = model.get_mut(event.index()) {
                *slot = place;
            }
        }
        if order.len() != events || model.contains(&0) || !self.graph.arrange(&model, &self.locks) {
            return;
        }
        self.model = model;
        self.first_places = self.graph.places().to_vec();
        self.line.clear();
        for variable in (0..self.kinds.len() as u32).map(Variable) {
            self.stand_in_line(variable);
            self.queue(variable);
        }
        self.front.clear();
        for clause in self.clauses.with_orders().to_vec() {
            if let Some(place) = self.place_of(self.clauses.literals(clause)) {
                self.front.add_clause(place, clause);
            }
        }
    }

    /// The events in the order that a search begins from, but for these pairs, which come in theirs; `None` where
    /// they cannot.
    pub(in super::super) fn arranged_with(
        &mut self,
        orders: &[(u32, u32)],
    ) -> Option<Vec<EventId>> {
        self.cancel(0);
        self.has_drifted = true;
        let known = self.graph.len();
        // Nobody asks why they do not hold.
        let unexplained = Variable(0).literal(true);
        let added = orders.iter().all(|&(a, b)| self.graph.add(a, b, unexplained).is_ok());
        let moments = if self.model.is_empty() { self.system.moments() } else { &self.model };
        let arranged = added && self.graph.arrange(moments, &self.locks);
        let order = arranged.then(|| {
            let mut order: Vec<EventId> =
                (0..self.first_places.len() as u32).map(EventId).collect();
            order.sort_unstable_by_key(|event| self.graph.places()[event.index()]);
            order
        });
        self.graph.undo(known);
        order
    }

    /// Gives a source its place among the others, which is that of its read.
    pub(super) fn stand_in_line(&mut self, variable: Variable) {
        if let Kind::Source(read) = self.kinds[variable.index()] {
            let place = self.first_places[self.readers[read as usize] as usize];
            let share = 1.0 - f64::from(place) / self.first_places.len() as f64;
            self.places_in_line.set(variable, share);
        }
    }

    /// Begins a search near the schedule, where there is one.
    pub(super) fn begin_near(&mut self) {
        if !self.model.is_empty() {
            self.turn.begin();
            self.has_drifted = true;
        }
    }

    /// Has the topological order be near the schedule again, as far as what is decided allows.
    pub(super) fn go_back_near(&mut self) {
        if !self.model.is_empty() && std::mem::take(&mut self.has_drifted) {
            self.graph.arrange(&self.model, &self.locks);
        }
    }
}
