//! φsync: barriers. A round is `count` arrivals in a row; nobody leaves before all of the round
//! arrived.

use crate::context::{Builder, Context};
use crate::system::{ConstraintKind, Term};
use model::{EventId, EventKind, ObjectId, ObjectKind};

/// One passage of one thread.
#[derive(Clone, Copy)]
struct Passage {
    arrive: EventId,
    /// `None` when the thread's trace ends at the barrier.
    leave: Option<EventId>,
}

/// Encodes all barriers. Orders that hold in every schedule enter the closure.
pub(crate) fn encode(context: &mut Context<'_>, builder: &mut Builder) {
    let trace = context.trace;
    for object in &trace.objects {
        let ObjectKind::Barrier { count } = object.kind else { continue };
        let threads = passages(context, object.id);
        if threads.len() == count as usize {
            let edges = by_rank(builder, &threads);
            // A cycle makes the system unsatisfiable, which the constraints say on their own.
            context.closure.add(trace, &edges);
        } else {
            let all: Vec<_> = threads.into_iter().flatten().collect();
            by_choice(context, builder, &all, count.max(1) as usize);
        }
    }
}

/// The passages through a barrier, of each thread that takes part.
fn passages(context: &Context<'_>, of: ObjectId) -> Vec<Vec<Passage>> {
    let mut threads = Vec::new();
    for thread in &context.trace.threads {
        let mut passages: Vec<Passage> = Vec::new();
        for &event in &thread.events {
            match context.trace.event(event).kind {
                EventKind::BarrierArrive { object } if object == of => {
                    passages.push(Passage { arrive: event, leave: None });
                }
                EventKind::BarrierLeave { object } if object == of => {
                    if let Some(last) = passages.last_mut() {
                        last.leave = Some(event);
                    }
                }
                _ => {}
            }
        }
        if !passages.is_empty() {
            threads.push(passages);
        }
    }
    threads
}

/// As many threads take part as a round needs, so a thread's k-th arrival is in round k. Gives
/// the orders between threads.
fn by_rank(builder: &mut Builder, threads: &[Vec<Passage>]) -> Vec<(EventId, EventId)> {
    let mut edges = Vec::new();
    let rounds = threads.iter().map(Vec::len).max().unwrap_or(0);
    for round in 0..rounds {
        for leave in threads.iter().filter_map(|thread| thread.get(round)?.leave) {
            for thread in threads {
                let Some(passage) = thread.get(round) else {
                    // The round is never complete.
                    builder.add(ConstraintKind::Barrier, [leave], Term::False);
                    continue;
                };
                if passage.leave != Some(leave) {
                    let term = Term::Before(passage.arrive, leave);
                    builder.add(ConstraintKind::Barrier, [passage.arrive, leave], term);
                    edges.push((passage.arrive, leave));
                }
            }
        }
    }
    edges
}

/// The general case: a permutation puts every arrival into a place of some round; rounds follow
/// each other; who leaves, leaves after everybody of a complete round.
fn by_choice(context: &Context<'_>, builder: &mut Builder, all: &[Passage], count: usize) {
    let places: Vec<Vec<Term>> =
        all.iter().map(|_| all.iter().map(|_| builder.choice()).collect()).collect();
    for (passage, choices) in all.iter().zip(&places) {
        builder.add(ConstraintKind::Barrier, [passage.arrive], Term::any(choices.iter().cloned()));
    }
    for place in 0..all.len() {
        let choices: Vec<_> = all
            .iter()
            .zip(&places)
            .map(|(passage, row)| (row[place].clone(), vec![passage.arrive]))
            .collect();
        builder.at_most_one(ConstraintKind::Barrier, &choices);
    }
    let in_round = |passage: usize, round: usize| {
        let row = &places[passage];
        let end = ((round + 1) * count).min(row.len());
        Term::any(row[round * count..end].iter().cloned())
    };
    let rounds = all.len().div_ceil(count);
    for (index, passage) in all.iter().enumerate() {
        let Some(leave) = passage.leave else { continue };
        if !all.len().is_multiple_of(count) {
            let term = in_round(index, rounds - 1).negated();
            builder.add(ConstraintKind::Barrier, [passage.arrive, leave], term);
        }
        for (other, peer) in all.iter().enumerate().filter(|&(other, _)| other != index) {
            let origins = [peer.arrive, passage.arrive, leave];
            for round in 0..rounds {
                let together = Term::all([in_round(index, round), in_round(other, round)]);
                let term = together.implies(context.before(peer.arrive, leave));
                builder.add(ConstraintKind::Barrier, origins, term);
            }
        }
    }
    for (index, passage) in all.iter().enumerate() {
        for (other, peer) in all.iter().enumerate().filter(|&(other, _)| other != index) {
            for round in 1..rounds {
                let earlier = (0..round).map(|earlier| in_round(index, earlier));
                let apart = Term::all([Term::any(earlier), in_round(other, round)]);
                let term = apart.implies(context.before(passage.arrive, peer.arrive));
                builder.add(ConstraintKind::Barrier, [passage.arrive, peer.arrive], term);
            }
        }
    }
}
