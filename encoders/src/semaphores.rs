//! φsync: semaphores. Every wait takes a unit of its own: an initial one or that of an earlier
//! post. A failed attempt saw every unit taken.

use crate::context::{Builder, Context};
use crate::system::{ConstraintKind, Term};
use model::{EventId, EventKind, ObjectKind};

/// The events on one semaphore.
#[derive(Default)]
struct Uses {
    waits: Vec<EventId>,
    posts: Vec<EventId>,
    failed: Vec<EventId>,
}

/// One choice per wait and unit it may have taken.
struct Taken {
    choice: Term,
    wait: EventId,
}

/// Encodes the semaphores by which one thread tells one other: so many waits need so many posts, each of
/// which comes before its wait in every schedule, which enters the closure.
pub(crate) fn encode_pairs(context: &mut Context<'_>, builder: &mut Builder) {
    let trace = context.trace;
    let mut edges = Vec::new();
    for (object, uses) in trace.objects.iter().zip(uses(context)) {
        let ObjectKind::Semaphore { initial } = object.kind else { continue };
        if !is_pair(context, &uses) {
            continue;
        }
        for (index, &wait) in uses.waits.iter().enumerate().skip(initial as usize) {
            let Some(&post) = uses.posts.get(index - initial as usize) else {
                builder.add(ConstraintKind::Semaphore, [wait], Term::False);
                continue;
            };
            builder.add(ConstraintKind::Semaphore, [post, wait], Term::Before(post, wait));
            edges.push((post, wait));
        }
    }
    // A cycle makes the system unsatisfiable, which the constraints say on their own.
    context.closure.add(trace, &edges);
}

/// Does one thread post and one other wait?
fn is_pair(context: &Context<'_>, uses: &Uses) -> bool {
    let thread = |id: &EventId| context.trace.event(*id).thread;
    let alone =
        |events: &[EventId]| events.windows(2).all(|two| thread(&two[0]) == thread(&two[1]));
    let own = uses.waits.first().map(thread) == uses.posts.first().map(thread);
    uses.failed.is_empty() && !own && alone(&uses.waits) && alone(&uses.posts)
}

/// Encodes all others.
pub(crate) fn encode(context: &Context<'_>, builder: &mut Builder) {
    for (object, uses) in context.trace.objects.iter().zip(uses(context)) {
        if let ObjectKind::Semaphore { initial } = object.kind {
            if is_pair(context, &uses) {
                continue;
            }
            // With a unit for every wait from the start nobody ever competes for one.
            if uses.failed.is_empty() && initial as usize >= uses.waits.len() {
                continue;
            }
            semaphore(context, builder, initial as usize, &uses);
        }
    }
}

/// The events on each semaphore, by the object's number.
fn uses(context: &Context<'_>) -> Vec<Uses> {
    let mut uses: Vec<Uses> = Vec::new();
    uses.resize_with(context.trace.objects.len(), Uses::default);
    for event in &context.trace.events {
        let (object, list): (_, fn(&mut Uses) -> &mut Vec<EventId>) = match event.kind {
            EventKind::SemaphoreWait { object } => (object, |uses| &mut uses.waits),
            EventKind::SemaphorePost { object } => (object, |uses| &mut uses.posts),
            EventKind::SemaphoreWaitFailed { object } => (object, |uses| &mut uses.failed),
            _ => continue,
        };
        if let Some(uses) = uses.get_mut(object.index()) {
            list(uses).push(event.id);
        }
    }
    uses
}

fn semaphore(context: &Context<'_>, builder: &mut Builder, initial: usize, uses: &Uses) {
    if initial > uses.waits.len() {
        // More initial units than waits are never all taken.
        for &failed in &uses.failed {
            builder.add(ConstraintKind::Semaphore, [failed], Term::False);
        }
        return;
    }
    let mut options: Vec<Vec<Term>> = vec![Vec::new(); uses.waits.len()];
    let units = std::iter::repeat_n(None, initial).chain(uses.posts.iter().copied().map(Some));
    for unit in units {
        let taken = unit_taken(context, builder, unit, uses, &mut options);
        for &failed in &uses.failed {
            unit_gone(context, builder, unit, &taken, failed);
        }
    }
    for (&wait, options) in uses.waits.iter().zip(options) {
        builder.add(ConstraintKind::Semaphore, [wait], Term::any(options.iter().cloned()));
        let choices: Vec<_> = options.into_iter().map(|choice| (choice, vec![wait])).collect();
        builder.at_most_one(ConstraintKind::Semaphore, &choices);
    }
}

/// The choices of who takes `unit` (`None`: an initial one); at most one of them holds.
fn unit_taken(
    context: &Context<'_>,
    builder: &mut Builder,
    unit: Option<EventId>,
    uses: &Uses,
    options: &mut [Vec<Term>],
) -> Vec<Taken> {
    let mut taken = Vec::new();
    for (&wait, options) in uses.waits.iter().zip(options) {
        let earlier = unit.map_or(Term::True, |post| context.before(post, wait));
        if earlier == Term::False {
            continue;
        }
        let choice = builder.choice();
        let implied = choice.clone().implies(earlier);
        builder.add(ConstraintKind::Semaphore, unit.into_iter().chain([wait]), implied);
        options.push(choice.clone());
        taken.push(Taken { choice, wait });
    }
    let choices: Vec<_> = taken
        .iter()
        .map(|taken| (taken.choice.clone(), unit.into_iter().chain([taken.wait]).collect()))
        .collect();
    builder.at_most_one(ConstraintKind::Semaphore, &choices);
    taken
}

/// At the failed attempt the unit is not there yet or taken. Over all units this says that the
/// count is 0: the waits before the attempt hold distinct units given before it, and all of them.
fn unit_gone(
    context: &Context<'_>,
    builder: &mut Builder,
    unit: Option<EventId>,
    taken: &[Taken],
    failed: EventId,
) {
    let later = unit.map_or(Term::False, |post| context.before(failed, post));
    let gone = taken
        .iter()
        .map(|taken| Term::all([taken.choice.clone(), context.before(taken.wait, failed)]));
    let term = Term::any(std::iter::once(later).chain(gone));
    builder.add(ConstraintKind::Semaphore, unit.into_iter().chain([failed]), term);
}
