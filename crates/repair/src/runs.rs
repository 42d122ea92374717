//! Can the threads run at all, as their synchronisation alone lets them?

use encoders::encode_recorded_orders;
use model::EventTrace;
use model::evaluate::{Check, Evaluator};

/// Is there such a run? Which ways the threads go and when the recorded run did what is taken from the trace. That none is
/// found says nothing.
pub(crate) fn run_through(mut free: EventTrace, goes_on: impl FnMut() -> bool) -> bool {
    free.conditions.clear();
    free.intervals.clear();
    let Ok(system) = encode_recorded_orders(&free) else { return false };
    let Some(found) = solver::follow(&free, &system, &[], false, goes_on) else { return false };
    let recorded = |var| Some(free.recorded_value(var));
    Evaluator::new(&free).check(&found.order, &recorded) != Check::Impossible
}

#[cfg(test)]
mod tests {
    use super::run_through;
    use encoders::dsl::parse;

    fn runs(text: &str) -> bool {
        run_through(parse(text).expect("the text is a trace").trace, || true)
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
    fn who_holds_a_lock_while_it_waits_for_another_may_have_to_come_later() {
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
        assert!(runs(text), "b may take the lock first");
        let never = text.replace("b: lock m", "b: lock m\n b: sem-wait done");
        let never = never.replace("a: unlock m", "a: unlock m\n a: post done");
        assert!(!runs(&never.replace("sem ready 0", "sem ready 0\n sem done 0")));
    }
}
