//! φsync: condition waits. A wake-up needs a signal or a broadcast after the wait began.

use crate::context::{Builder, Context};
use crate::system::{ConstraintKind, Term};
use model::{EventId, EventKind, EventTrace, FailureCondition, ObjectId};
use std::collections::BTreeMap;

/// Which signal wakes which wait.
#[derive(Default)]
pub(crate) struct Woken {
    /// By signal: the wake-ups that it may cause, each with the choice that it does.
    choices: BTreeMap<EventId, Vec<(EventId, Term)>>,
}

/// One constraint per wake-up: some broadcast lies within the wait, or some signal that wakes no
/// other wait does. A signal before the wait began never counts.
pub(crate) fn encode(context: &Context<'_>, builder: &mut Builder) -> Woken {
    let mut result = Woken::default();
    let unwoken = context.trace.failure.as_ref().map(|failure| &failure.condition);
    let mut woken: BTreeMap<EventId, Vec<(Term, Vec<EventId>)>> = BTreeMap::new();
    for event in &context.trace.events {
        let EventKind::Wake { condition, began } = event.kind else { continue };
        if context.is_over() {
            return result;
        }
        let mut options = Vec::new();
        let mut own = Vec::new();
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
            result.choices.entry(waker).or_default().push((event.id, choice.clone()));
            own.push((choice.clone(), origins.clone()));
            woken.entry(waker).or_default().push((choice.clone(), origins));
            options.push(choice);
        }
        builder.add(ConstraintKind::Condition, [began, event.id], Term::any(options));
        // Where signals are counted no wait may take two.
        if unwoken.is_some_and(|failure| counts_signals(failure, condition)) {
            builder.at_most_one(ConstraintKind::Condition, &own);
        }
    }
    for choices in woken.values() {
        if context.is_over() {
            return result;
        }
        builder.at_most_one(ConstraintKind::Condition, choices);
    }
    result
}

fn counts_signals(failure: &FailureCondition, of: ObjectId) -> bool {
    match failure {
        FailureCondition::Value(_) | FailureCondition::Before(..) => false,
        FailureCondition::Unwoken { condition, .. } => *condition == of,
        FailureCondition::All(parts) | FailureCondition::Any(parts) => {
            parts.iter().any(|part| counts_signals(part, of))
        }
    }
}

/// A wait that did end.
struct Ended {
    began: EventId,
    /// No broadcast lies within it, so it needs a signal.
    needs: Term,
}

/// "No signal is left for the wait that began here": every broadcast came before, and behind the
/// beginning of some wait, this one or one that began before it, every signal is needed by a wait
/// that began there too. Then, and only then, there are fewer signals than waits behind that place,
/// whichever signal wakes which wait ([`model::evaluate`] counts them).
pub(crate) fn unwoken(
    context: &Context<'_>,
    woken: &Woken,
    condition: ObjectId,
    began: EventId,
) -> Term {
    let of = |is_signal: bool| {
        wakers(context, condition).filter(move |waker| waker.1 == is_signal).map(|waker| waker.0)
    };
    let waits = ended_waits(context.trace, condition).map(|(begin, wake)| {
        let outside = of(false).map(|broadcast| {
            Term::any([context.before(broadcast, begin), context.before(wake, broadcast)])
        });
        (wake, Ended { began: begin, needs: Term::all(outside) })
    });
    let waits: BTreeMap<EventId, Ended> = waits.collect();
    let from = |place: EventId| {
        let no_later = |other: EventId| match other == place {
            true => Term::True,
            false => context.before(place, other),
        };
        let needed = |signal: EventId| {
            let choices = woken.choices.get(&signal).into_iter().flatten();
            let takers = choices.filter_map(|(wake, choice)| {
                let wait = waits.get(wake)?;
                Some(Term::all([choice.clone(), wait.needs.clone(), no_later(wait.began)]))
            });
            Term::any(takers.chain([context.before(signal, place)]))
        };
        Term::all([no_later(began)].into_iter().chain(of(true).map(needed)))
    };
    // Who asks whether the budget is spent throws the system away then.
    let places = waits.values().map(|wait| wait.began).chain([began]);
    let short = Term::any(places.take_while(|_| !context.is_over()).map(from));
    Term::all(of(false).map(|broadcast| context.before(broadcast, began)).chain([short]))
}

/// The waits on a condition that a signal or broadcast ended: beginning and wake-up.
fn ended_waits(trace: &EventTrace, of: ObjectId) -> impl Iterator<Item = (EventId, EventId)> + '_ {
    trace.events.iter().filter_map(move |event| match event.kind {
        EventKind::Wake { condition, began } if condition == of => Some((began, event.id)),
        _ => None,
    })
}

/// The signals and broadcasts on a condition; true for signals.
fn wakers(context: &Context<'_>, of: ObjectId) -> impl Iterator<Item = (EventId, bool)> {
    context.trace.events.iter().filter_map(move |event| match event.kind {
        EventKind::Signal { condition } if condition == of => Some((event.id, true)),
        EventKind::Broadcast { condition } if condition == of => Some((event.id, false)),
        _ => None,
    })
}
