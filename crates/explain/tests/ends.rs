//! Explanations of the end of a run, in the words of the whole run.

use crate::support::explained;
use encoders::dsl::parse;
use explain::widen;
use model::WriteSource;

/// What is there from the start of the end was written before it, and is no initial value of the run.
#[test]
fn what_the_beginning_wrote_is_a_source_of_the_whole_run() {
    let parsed = parse(
        "
        t0: W x 4
        t0: [old] W x 5
        t0: W y 1
        t0: fork a
        t0: fork b
        a: [new] W x 7
        b: [look] R x -> v
        b: fail v == 5
        ",
    )
    .expect("the text is a trace");
    let trace = &parsed.trace;
    let failing = explained(trace, 1).failing.expect("a failing schedule");
    let place = |label: &str| {
        let id = parsed.event(label);
        failing.schedule.order.iter().position(|other| *other == id).expect("it happens")
    };
    let part = place("old") + 1..failing.schedule.order.len();
    let window = encoders::window(trace, &failing.schedule, &failing.evaluation, part)
        .expect("the end of the run");
    let narrow = explained(&window.trace, 1);
    assert_eq!(narrow.dsps[0].failing_only[0].write, WriteSource::Init);
    let wide = widen(trace, &window, narrow).expect("it is one of the whole run");
    let [old, new, look] = ["old", "new", "look"].map(|label| parsed.event(label));
    let dsp = &wide.dsps[0];
    assert_eq!(dsp.failing_only[0].write, WriteSource::Write(old));
    assert_eq!(dsp.alternate_only[0].write, WriteSource::Write(new));
    assert_eq!(dsp.failing, [old, look, new]);
    assert_eq!(dsp.alternate, [old, new, look]);
    assert_eq!(dsp.counts.events, 3);
}
