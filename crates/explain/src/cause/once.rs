//! Routines that run once, which set up what everybody reads behind the call.

use super::story::Story;
use model::{Event, EventId, EventKind, ObjectId, Site};

impl<'a> Story<'a> {
    /// Was the write part of a routine that runs once, and did the reader make sure before that it has
    /// run? One call is then both the beginning and the end of the section, and the read can see
    /// nothing else.
    pub(super) fn set_up_once(&self, write: EventId, read: EventId) -> bool {
        let (writer, reader) = (self.event(write), self.event(read));
        let routines = self.routines_around(writer);
        let mut made_sure = self.earlier(reader);
        !routines.is_empty()
            && made_sure.any(|event| {
                matches!(event.kind, EventKind::Lock { object, .. } if routines.contains(&object))
            })
    }

    /// The sections around an event of its thread that begin and end at one place, as a call does that runs a routine
    /// once.
    fn routines_around(&self, event: &Event) -> Vec<ObjectId> {
        // By object: where it was taken and not given back since.
        let mut open: Vec<(ObjectId, &Site)> = Vec::new();
        for earlier in self.earlier(event) {
            match earlier.kind {
                EventKind::Lock { object, .. } => open.push((object, earlier.site())),
                EventKind::Unlock { object, .. } => open.retain(|(other, _)| *other != object),
                _ => {}
            }
        }
        let mut routines = Vec::new();
        let own = &self.trace().threads[event.thread.index()].events;
        let later = own.get(event.index as usize + 1..).unwrap_or_default();
        for later in later.iter().map(|id| self.event(*id)) {
            if open.is_empty() {
                break;
            }
            let EventKind::Unlock { object, .. } = later.kind else { continue };
            if open.contains(&(object, later.site())) {
                routines.push(object);
            }
            open.retain(|(other, _)| *other != object);
        }
        routines
    }

    /// What an event's thread did before it.
    fn earlier(&self, event: &Event) -> impl Iterator<Item = &'a Event> + use<'a> {
        let trace = self.trace();
        let own = &trace.threads[event.thread.index()].events;
        let earlier = own.get(..event.index as usize).unwrap_or_default();
        earlier.iter().map(|id| trace.event(*id))
    }
}
