//! φsync: condition waits. A wake-up needs a signal or a broadcast after the wait began.

use crate::context::{Builder, Context};
use crate::system::{ConstraintKind, Term};
use model::{EventId, EventKind, ObjectId};
use std::collections::BTreeMap;

/// One constraint per wake-up: some broadcast lies within the wait, or some signal that wakes no
/// other wait does. A signal before the wait began never counts.
pub(crate) fn encode(context: &Context<'_>, builder: &mut Builder) {
    let mut woken: BTreeMap<EventId, Vec<(Term, Vec<EventId>)>> = BTreeMap::new();
    for event in &context.trace.events {
        let EventKind::Wake { condition, began } = event.kind else { continue };
        let mut options = Vec::new();
        for (waker, is_signal) in wakers(context, condition) {
            let within = Term::all([context.before(began, waker), context.before(waker, event.id)]);
            if within == Term::False {
                continue;
            }
            if !is_signal {
                options.push(within);
                continue;
            }
            let choice = builder.choice();
            let origins = vec![began, waker, event.id];
            let implied = choice.clone().implies(within);
            builder.add(ConstraintKind::Condition, origins.clone(), implied);
            woken.entry(waker).or_default().push((choice.clone(), origins));
            options.push(choice);
        }
        builder.add(ConstraintKind::Condition, [began, event.id], Term::any(options));
    }
    for choices in woken.values() {
        builder.at_most_one(ConstraintKind::Condition, choices);
    }
}

/// The signals and broadcasts on a condition; true for signals.
fn wakers(context: &Context<'_>, of: ObjectId) -> impl Iterator<Item = (EventId, bool)> {
    context.trace.events.iter().filter_map(move |event| match event.kind {
        EventKind::Signal { condition } if condition == of => Some((event.id, true)),
        EventKind::Broadcast { condition } if condition == of => Some((event.id, false)),
        _ => None,
    })
}
