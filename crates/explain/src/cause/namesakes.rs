//! The events of a trace that are about the same place in memory, or the same object.
//!
//! Of a long run with thousands of events that only a library has a name for, each is called what another one calls its
//! place. To look at all events for each of them would take hours.

use model::{CellId, Event, EventId, EventTrace, ObjectId};
use rustc_hash::FxHashMap;
use std::cell::OnceCell;

/// What an event is about: an object, or else the first cell that it touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Place {
    Object(ObjectId),
    Cell(CellId),
}

/// See the module. Made when it is asked for first.
#[derive(Default)]
pub(super) struct Namesakes(OnceCell<FxHashMap<Place, Vec<EventId>>>);

impl Namesakes {
    /// The events of the trace that are about the same as this one, in the trace's order.
    pub(super) fn of(&self, trace: &EventTrace, event: &Event) -> &[EventId] {
        let all = self.0.get_or_init(|| {
            let mut all: FxHashMap<Place, Vec<EventId>> = FxHashMap::default();
            for event in &trace.events {
                for place in places(event) {
                    all.entry(place).or_default().push(event.id);
                }
            }
            all
        });
        let place = places(event).next();
        place.and_then(|place| all.get(&place)).map(Vec::as_slice).unwrap_or_default()
    }
}

/// What it is about: its object first, where it has one.
fn places(event: &Event) -> impl Iterator<Item = Place> {
    let reads = event.kind.reads().iter().map(|part| part.cell);
    let writes = event.kind.writes().iter().map(|part| part.cell);
    let cell = reads.chain(writes).min().map(Place::Cell);
    event.kind.object().map(Place::Object).into_iter().chain(cell)
}

#[cfg(test)]
mod tests {
    use super::Namesakes;

    #[test]
    fn events_about_one_place_are_found_in_their_order() {
        let text = "
            a: lock m
            a: [first] W x 1
            a: W y 1
            a: unlock m
            b: lock m
            b: [second] R x -> v
            b: unlock m
        ";
        let parsed = encoders::dsl::parse(text).expect("the text is a trace");
        let (trace, all) = (&parsed.trace, Namesakes::default());
        let [first, second] = ["first", "second"].map(|name| parsed.event(name));
        assert_eq!(all.of(trace, trace.event(second)), [first, second]);
        let locks = trace.events.iter().filter(|event| event.kind.object().is_some());
        let locks: Vec<_> = locks.map(|event| event.id).collect();
        assert_eq!(locks.len(), 4);
        assert_eq!(all.of(trace, trace.event(locks[2])), locks);
    }
}
