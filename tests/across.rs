//! Runs that avoid the failure along other paths, where what came too late never happened in the
//! failing run: the process was dead before.

use crate::workspace::Workspace;
use render::Solution;
use render::solution::{Alternate, Event, Replay};
use std::path::Path;

const SUCCESS: i32 = 0;
const DIVERGED: i32 = 10;

/// Records a program that fails for certain, and solves the trace: the answer, and its text.
fn solved(program: &str) -> (Solution, String) {
    solved_with(program, SUCCESS)
}

/// The same where `solve` ends with another status.
fn solved_with(program: &str, code: i32) -> (Solution, String) {
    let workspace = Workspace::new(&format!("across-{program}"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/programs/{program}"));
    let compiler = if program.ends_with(".cc") { "c++" } else { "cc" };
    let source = source.to_str().expect("a path in UTF-8");
    workspace
        .symbiosis([compiler, "-g", "-O1", "-pthread", source, "-o", "program"])
        .expect_code(SUCCESS);
    // The sleeps make the failure certain, but for a machine that stands still for that long.
    let record = ["record", "--until-failure", "5", "-o", "late.trace", "--", "./program"];
    workspace.symbiosis(record).expect_code(SUCCESS);
    let json = workspace.symbiosis(["solve", "late.trace", "--format", "json"]);
    let solution = serde_json::from_str(&json.expect_code(code).stdout());
    let text = workspace.symbiosis(["solve", "late.trace"]).expect_code(code);
    (solution.expect("the answer is a solution"), text.stdout())
}

fn event<'a>(solution: &'a Solution, id: &str) -> &'a Event {
    solution.event(id).unwrap_or_else(|| panic!("the answer has no event {id}"))
}

/// The alternate, and what came too early and too late.
fn late(solution: &Solution) -> (&Alternate, [&Event; 2]) {
    let cause = solution.root_cause.as_ref().expect("a root cause");
    assert!(cause.fails_always && !cause.minimal, "{cause:?}");
    let [[before, after]] = &cause.orders[..] else { panic!("{cause:?}") };
    let [alternate] = &solution.alternates[..] else { panic!("{:?}", solution.alternates) };
    assert!(!alternate.same_path, "the failing run has no event that could come first");
    assert_eq!(alternate.replay, Replay::Confirmed, "{:?}", alternate.replay_note);
    assert_eq!(alternate.flipped[0], *after);
    let place = |id: &str| alternate.schedule.iter().position(|other| other == id);
    assert!(place(&alternate.flipped[0]).is_some(), "{alternate:?}");
    assert!(place(&alternate.flipped[0]) < place(&alternate.flipped[1]), "{alternate:?}");
    assert!(solution.schedule.contains(before) && !solution.schedule.contains(after));
    let dsp = solution.dsp.as_ref().expect("a projection");
    assert!(dsp.failing.contains(before), "{dsp:?}");
    assert!(alternate.flipped.iter().all(|id| dsp.alternate.contains(id)), "{dsp:?}");
    assert!(dsp.failing.len() <= 3 && dsp.alternate.len() <= 4, "{dsp:?}");
    (alternate, [event(solution, before), event(solution, after)])
}

/// What the program read decides, in a run of one thread: that another run passes says nothing about orders.
#[test]
fn where_there_is_one_thread_no_order_is_to_blame() {
    let (solution, text) = solved_with("one_thread.c", DIVERGED);
    let cause = solution.cause.expect("a cause");
    assert_eq!(cause.pattern, "every-schedule", "{text}");
    assert_eq!(cause.case.as_deref(), Some("one-thread"), "{text}");
    assert!(solution.alternates.is_empty() && text.contains("there was one thread"), "{text}");
}

#[test]
fn a_write_that_the_process_did_not_live_to_see_came_too_late() {
    let (solution, text) = solved("late_write.c");
    let (alternate, [before, after]) = late(&solution);
    assert_eq!((before.thread.as_str(), after.thread.as_str()), ("t0.2", "t0.1"));
    assert_eq!(before.location.function, "use");
    assert_eq!(after.kind, "write");
    assert_eq!(after.object.as_deref(), Some("configuration"));
    let read = event(&solution, &alternate.flipped[1]);
    assert_eq!((read.kind.as_str(), read.object.as_deref()), ("read", Some("configuration")));
    let flows = &solution.dsp.as_ref().expect("a projection").data_flows.alternate_only;
    let [flow] = &flows[..] else { panic!("{flows:?}") };
    assert_eq!([&flow.write, &flow.read], [&alternate.flipped[0], &alternate.flipped[1]]);
    assert!(text.contains("(only in the passing run)"), "{text}");
}

#[test]
fn a_post_that_the_process_did_not_live_to_see_came_too_late() {
    let (solution, _) = solved("late_post.c");
    let (alternate, [before, after]) = late(&solution);
    assert_eq!((before.thread.as_str(), after.thread.as_str()), ("t0.1", "t0.2"));
    assert_eq!((after.kind.as_str(), after.object.as_deref()), ("semaphore-post", Some("ready")));
    assert_eq!(event(&solution, &alternate.flipped[1]).kind, "semaphore-wait");
}

/// Along the recorded paths one of two threads fails in every run; only which one hangs on the order.
#[test]
fn an_alternate_that_leaves_the_failure_to_another_thread_is_none() {
    let (solution, text) = solved("two_owners.c");
    assert_eq!(solution.replay, Replay::Confirmed, "{:?}", solution.replay_notes);
    let [alternate] = &solution.alternates[..] else { panic!("{text}") };
    assert_eq!(alternate.replay, Replay::Confirmed, "{:?}", alternate.replay_note);
    assert_eq!((alternate.replay_note.as_deref(), alternate.same_path), (None, false), "{text}");
    let about = |id: &String| event(&solution, id).object.as_deref() == Some("references");
    assert!(alternate.flipped.iter().all(about), "{text}");
}

/// A thread that began after the place of the failure has a failure of its own.
#[test]
fn an_alternate_may_fail_later_in_a_thread_that_had_not_begun() {
    let (solution, text) = solved("outlived.c");
    assert_eq!(solution.replay, Replay::Confirmed, "{:?}", solution.replay_notes);
    let alternate = solution.alternates.first().unwrap_or_else(|| panic!("{text}"));
    assert!(alternate.same_path, "{text}");
    assert_eq!(alternate.replay, Replay::Confirmed, "{:?}", alternate.replay_note);
    let note = alternate.replay_note.as_deref().unwrap_or_default();
    assert!(note.contains("came past") && note.contains("in thread t0.3"), "{note}");
}

/// Many pairs come otherwise in the runs that pass; the last one by which this run could have passed
/// tells why it did not.
#[test]
fn of_all_that_comes_otherwise_the_last_moment_is_shown() {
    let (solution, text) = solved("pool.cc");
    let cause = solution.root_cause.as_ref().expect("a root cause");
    assert!(cause.fails_always, "{cause:?}");
    let [[before, after]] = &cause.orders[..] else { panic!("{cause:?}") };
    let [alternate] = &solution.alternates[..] else { panic!("{:?}", solution.alternates) };
    assert_eq!(alternate.replay, Replay::Confirmed, "{:?}", alternate.replay_note);
    let before = event(&solution, before);
    assert_eq!((before.thread.as_str(), before.kind.as_str()), ("t0", "write"), "{text}");
    for event in [before, event(&solution, after)] {
        assert!(event.object.as_deref().is_some_and(|it| it.ends_with("stopping_")), "{text}");
    }
    assert!(text.lines().next().is_some_and(|cause| cause.contains("stopping_`")), "{text}");
}

/// Where the failing run has no event for what its check reads, what the passing run goes on with behind the check is
/// not what it needed.
#[test]
fn what_a_run_goes_on_with_behind_the_check_is_not_what_came_too_late() {
    let (solution, text) = solved("early_empty.c");
    let (_, [before, after]) = late(&solution);
    assert_eq!((before.kind.as_str(), after.object.as_deref()), ("failure", Some("file.written")));
    let cause = solution.cause.as_ref().expect("a cause");
    assert_eq!(cause.case.as_deref(), Some("announced-too-early"), "{text}");
    assert_eq!(cause.variables, ["queue.lines", "file.written"]);
}

/// Along the path of a wait whose time was up every schedule fails; in the runs that pass the signal comes behind its
/// beginning.
#[test]
fn a_signal_that_came_before_a_wait_with_a_limit_is_the_cause() {
    let (solution, text) = solved("timed_signal.c");
    let cause = solution.cause.as_ref().expect("a cause");
    assert_eq!(cause.case.as_deref(), Some("signal-before-wait"), "{text}");
    assert_eq!(cause.pattern, "missed-wakeup", "{text}");
    assert_eq!(cause.variables, ["answered"], "{text}");
    let [alternate] = &solution.alternates[..] else { panic!("{text}") };
    assert_eq!(alternate.replay, Replay::Confirmed, "{:?}", alternate.replay_note);
}

/// The failing run ends at its first messages. All that pass go on and compute, and nobody waits in a loop there.
#[test]
fn a_run_that_passes_may_be_much_longer_than_one_that_failed_soon() {
    let (solution, text) = solved("early_ack.c");
    let [alternate] = &solution.alternates[..] else { panic!("{text}") };
    assert_eq!(alternate.replay, Replay::Confirmed, "{:?}", alternate.replay_note);
    let sentence = &solution.cause.as_ref().expect("a cause").sentence;
    assert!(sentence.contains("`table.pending[tag]`"), "{text}");
}

/// The failing run ends before the library is loaded, and every run that passes loads it.
#[test]
fn a_run_that_passes_may_load_a_library_that_the_failing_one_did_not_come_to() {
    let workspace = Workspace::new("across-late_library");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/late_library.c");
    let source = source.to_str().expect("a path in UTF-8");
    let library = ["cc", "-g", "-O1", "-fPIC", "-shared", "-DLIBRARY", source, "-o", "late.so"];
    workspace.symbiosis(library).expect_code(SUCCESS);
    let program = ["cc", "-g", "-O1", "-pthread", source, "-o", "program"];
    workspace.symbiosis(program).expect_code(SUCCESS);
    let record = ["record", "--until-failure", "5", "-o", "late.trace", "--", "./program"];
    workspace.symbiosis(record).expect_code(SUCCESS);
    let json = workspace.symbiosis(["solve", "late.trace", "--format", "json"]);
    let solution: Solution =
        serde_json::from_str(&json.expect_code(SUCCESS).stdout()).expect("an answer");
    let [alternate] = &solution.alternates[..] else { panic!("{:?}", solution.alternates) };
    assert!(!alternate.same_path);
    let sentence = &solution.cause.as_ref().expect("a cause").sentence;
    assert!(sentence.contains("`answer`"), "{sentence}");
}
