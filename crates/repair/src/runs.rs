//! Can the threads run at all, as their synchronisation alone lets them? Each is let go until it waits, and then the next.

use model::evaluate::{Check, Evaluator};
use model::{EventId, EventKind, EventTrace, LockMode, ObjectKind};

/// Is there such a run? That none is found says nothing: who waits for a condition variable, say, is not followed.
pub(crate) fn run_through(trace: &EventTrace) -> bool {
    let Some(order) = one_after_the_other(trace) else { return false };
    let recorded = |var| Some(trace.recorded_value(var));
    Evaluator::new(trace).check(&order, &recorded) != Check::Impossible
}

/// What an object lets its threads do.
#[derive(Clone, Copy, Default)]
struct Object {
    is_owned: bool,
    readers: u32,
    units: u32,
}

fn one_after_the_other(trace: &EventTrace) -> Option<Vec<EventId>> {
    let units = |kind: &ObjectKind| match kind {
        ObjectKind::Semaphore { initial } => *initial,
        _ => 0,
    };
    let objects = trace.objects.iter();
    let mut objects: Vec<Object> =
        objects.map(|it| Object { units: units(&it.kind), ..Object::default() }).collect();
    let mut has_begun = vec![true; trace.threads.len()];
    for event in &trace.events {
        if let EventKind::Fork { child } = event.kind {
            *has_begun.get_mut(child.index())? = false;
        }
    }
    let mut done = vec![0; trace.threads.len()];
    let mut order = Vec::with_capacity(trace.events.len());
    loop {
        let before = order.len();
        for thread in &trace.threads {
            let index = thread.id.index();
            while let Some(id) = thread.events.get(done[index]).filter(|_| has_begun[index]) {
                let kind = &trace.event(*id).kind;
                if let EventKind::Join { child } = *kind {
                    let all = trace.threads.get(child.index())?.events.len();
                    if done.get(child.index()).is_none_or(|done| *done < all) {
                        break;
                    }
                }
                if let EventKind::Fork { child } = *kind {
                    *has_begun.get_mut(child.index())? = true;
                }
                if !perform(kind, &mut objects)? {
                    break;
                }
                done[index] += 1;
                order.push(*id);
            }
        }
        if order.len() == trace.events.len() {
            return Some(order);
        }
        if order.len() == before {
            return None;
        }
    }
}

/// Does the event if it can happen now. `None` where that is not known.
fn perform(kind: &EventKind, objects: &mut [Object]) -> Option<bool> {
    let happens = match *kind {
        EventKind::Lock { object, mode } => {
            let lock = objects.get_mut(object.index())?;
            let is_free = !lock.is_owned && (mode == LockMode::Shared || lock.readers == 0);
            match mode {
                LockMode::Exclusive if is_free => lock.is_owned = true,
                LockMode::Shared if is_free => lock.readers += 1,
                _ => {}
            }
            is_free
        }
        EventKind::Unlock { object, mode, .. } => {
            let lock = objects.get_mut(object.index())?;
            match mode {
                LockMode::Exclusive => lock.is_owned = false,
                LockMode::Shared => lock.readers = lock.readers.saturating_sub(1),
            }
            true
        }
        EventKind::SemaphorePost { object } => {
            let units = &mut objects.get_mut(object.index())?.units;
            *units = units.saturating_add(1);
            true
        }
        EventKind::SemaphoreWait { object } => {
            let units = &mut objects.get_mut(object.index())?.units;
            let is_left = *units > 0;
            *units = units.saturating_sub(1);
            is_left
        }
        EventKind::TryLockFailed { .. }
        | EventKind::Wake { .. }
        | EventKind::WaitTimedOut { .. }
        | EventKind::SemaphoreWaitFailed { .. }
        | EventKind::BarrierLeave { .. } => return None,
        _ => true,
    };
    Some(happens)
}

#[cfg(test)]
mod tests {
    use super::run_through;
    use encoders::dsl::parse;

    fn runs(text: &str) -> bool {
        run_through(&parse(text).expect("the text is a trace").trace)
    }

    const HANDED_OVER: &str = "
        sem room 1
        sem items 0
        t0: fork a
        a: sem-wait room
        a: post items
        a: sem-wait room
        a: post items
        t0: sem-wait items
        t0: post room
        t0: sem-wait items
        t0: post room
        t0: join a
        t0: R x -> v
        t0: fail v == 0
    ";

    #[test]
    fn threads_that_hand_units_over_run_to_their_ends() {
        assert!(runs(HANDED_OVER));
        assert!(!runs(&HANDED_OVER.replace("sem room 1", "sem room 0")));
    }

    #[test]
    fn who_holds_a_lock_while_it_waits_for_what_another_does_under_it_does_not() {
        let text = "
            sem ready 0
            t0: fork a
            t0: fork b
            a: lock m
            a: sem-wait ready
            a: unlock m
            b: lock m
            b: post ready
            b: unlock m
            t0: join a
            t0: join b
            t0: R x -> v
            t0: fail v == 0
        ";
        assert!(!runs(text), "as the text has it, a takes the lock first");
        let first = text.replace("b: lock m", "b: post ready\n b: lock m");
        assert!(runs(&first));
    }
}
