//! Runs that do not come to an end: recorded with a time-out, and solved.

use crate::workspace::Workspace;
use render::Solution;
use render::solution::{Event, Replay, Verdict};
use std::path::Path;

const SUCCESS: i32 = 0;

/// Solves a run of a program that hangs in one of a few runs.
fn hung(program: &str) -> Solution {
    let workspace = recorded(program);
    let solve = ["solve", "hang.trace", "--format", "json"];
    let outcome = workspace.symbiosis(solve).expect_code(SUCCESS);
    serde_json::from_str(&outcome.stdout()).expect("the answer is a solution")
}

/// Records a hanging run of a program in C.
fn recorded(program: &str) -> Workspace {
    recorded_of(program, &format!("{program}.c"), "cc", "-g")
}

/// Records a hanging run of a program, compiled with one more option.
fn recorded_of(program: &str, source: &str, compiler: &str, option: &str) -> Workspace {
    let workspace = Workspace::new(program);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(source);
    let source = source.to_str().expect("a path in UTF-8");
    let compile = [compiler, option, "-g", "-O1", "-pthread", source, "-o", "program"];
    workspace.symbiosis(compile).expect_code(SUCCESS);
    let record =
        ["record", "--until-failure", "5", "--timeout", "3", "-o", "hang.trace", "--", "./program"];
    workspace.symbiosis(record).expect_code(SUCCESS);
    workspace
}

/// Records a program that hangs for certain, replays the failure and an alternate, and solves the
/// trace.
fn solved(program: &str) -> Solution {
    let workspace = recorded(program);
    let outcome = workspace.symbiosis(["replay", "hang.trace", "--runs", "5"]).expect_code(SUCCESS);
    assert!(outcome.stdout().starts_with("reproduced 5 of 5"), "{}", outcome.describe());
    let alternate = ["replay", "hang.trace", "--runs", "5", "--alternate", "0"];
    let outcome = workspace.symbiosis(alternate).expect_code(SUCCESS);
    assert!(outcome.stdout().starts_with("confirmed 5 of 5"), "{}", outcome.describe());
    let outcome = workspace
        .symbiosis(["solve", "--no-replay", "hang.trace", "--format", "json"])
        .expect_code(SUCCESS);
    serde_json::from_str(&outcome.stdout()).expect("the answer is a solution")
}

fn cause(solution: &Solution) -> Vec<[&Event; 2]> {
    let cause = solution.root_cause.as_ref().expect("a root cause");
    assert!(cause.minimal && !cause.fails_always, "{cause:?}");
    let event = |id: &String| solution.event(id).expect("an event of the solution");
    cause.orders.iter().map(|[before, after]| [event(before), event(after)]).collect()
}

#[test]
fn of_a_deadlock_the_overlapping_critical_sections_are_the_cause() {
    let solution = solved("deadlock");
    assert_eq!(solution.verdict, Verdict::FailingSchedule);
    let failure = solution.failure.as_ref().expect("a failure");
    assert_eq!(failure.kind, "deadlock");
    assert!(failure.message.contains("waits for the lock stock"), "{}", failure.message);
    assert!(failure.message.contains("waits for the lock orders"), "{}", failure.message);
    let cause = cause(&solution);
    assert_eq!(cause.len(), 2);
    for [before, after] in &cause {
        assert_eq!((before.kind.as_str(), after.kind.as_str()), ("lock", "wait-for-lock"));
        assert_ne!(before.thread, after.thread);
    }
    assert_ne!(cause[0][0].thread, cause[1][0].thread);
    assert!(!solution.alternates.is_empty(), "one critical section after the other");
}

#[test]
fn of_a_lost_wake_up_the_signal_before_the_wait_is_the_cause() {
    let solution = solved("lost_wakeup");
    assert_eq!(solution.verdict, Verdict::FailingSchedule);
    assert_eq!(solution.failure.as_ref().map(|failure| failure.kind.as_str()), Some("hang"));
    let cause = cause(&solution);
    assert_eq!(cause.len(), 1);
    assert_eq!(cause[0][0].kind, "signal");
    assert_eq!((cause[0][1].kind.as_str(), cause[0][1].thread.as_str()), ("unlock", "t0"));
    assert!(!solution.alternates.is_empty(), "the signal may come during the wait");
}

#[test]
fn workers_that_have_nothing_to_do_are_not_what_a_hang_is_put_down_to() {
    let solution = hung("lost_message");
    let cause = solution.cause.as_ref().expect("a sentence about the cause");
    let about = ["`scheduled`", "`box`"].iter().any(|name| cause.sentence.contains(name));
    assert!(about, "{}", cause.sentence);
    assert_ne!(cause.pattern, "missed-wakeup", "{}", cause.sentence);
}

/// One of two workers leaves where it should have come to rest first. The other one was woken, and rests again, as it does
/// where nothing hangs.
#[test]
fn who_rests_again_in_runs_that_pass_is_not_what_a_hang_is_put_down_to() {
    let solution = hung("left_at_work");
    let cause = solution.cause.as_ref().expect("a cause");
    assert!(!cause.sentence.contains("waited again"), "{}", cause.sentence);
    assert!(cause.variables.iter().any(|name| name == "ended"), "{}", cause.sentence);
}

#[test]
fn what_was_looked_at_in_an_earlier_round_is_no_check_before_the_wait() {
    let solution = hung("earlier_look");
    let cause = solution.cause.as_ref().expect("a sentence about the cause");
    assert!(!cause.sentence.contains("check"), "{}", cause.sentence);
    assert!(cause.sentence.contains("signalled `more`"), "{}", cause.sentence);
}

#[test]
fn what_was_asked_before_the_mutex_was_given_back_is_a_check_before_the_wait() {
    let solution = hung("stale_stop");
    let cause = solution.cause.as_ref().expect("a sentence about the cause");
    let case = Some("signal-between-check-and-wait");
    assert_eq!(cause.case.as_deref(), case, "{}", cause.sentence);
    let text = include_str!("programs/stale_stop.c");
    let line =
        |mark: &str| text.lines().position(|line| line.contains(mark)).expect("it is there") + 1;
    let (told, asked) = (line("/* told */"), line("/* asked */"));
    let told = format!("wrote `stop` (stale_stop.c:{told})");
    assert!(cause.sentence.contains(&told), "{}", cause.sentence);
    let asked = format!("check (stale_stop.c:{asked}) and its wait");
    assert!(cause.sentence.contains(&asked), "{}", cause.sentence);
}

#[test]
fn what_a_thread_does_not_ask_for_where_it_waits_is_named() {
    let solution = hung("unasked_flag");
    let cause = solution.cause.as_ref().expect("a sentence about the cause");
    assert_eq!(cause.case.as_deref(), Some("not-asked-where-it-waits"), "{}", cause.sentence);
    assert!(cause.sentence.contains("read `stopping`"), "{}", cause.sentence);
}

#[test]
fn a_thread_is_told_in_the_call_in_which_it_is_woken() {
    let solution = hung("told_in_one_call");
    let cause = solution.cause.as_ref().expect("a sentence about the cause");
    let case = Some("signal-between-check-and-wait");
    assert_eq!(cause.case.as_deref(), case, "{}", cause.sentence);
    assert!(cause.variables.contains(&"stop".to_owned()), "{}", cause.sentence);
    assert!(!cause.sentence.contains("`first`"), "{}", cause.sentence);
    let text = include_str!("programs/told_in_one_call.c");
    let told = text.lines().position(|line| line.contains("/* told */")).expect("it is there") + 1;
    let place = format!("broadcast `wake` (told_in_one_call.c:{told})");
    assert!(cause.sentence.contains(&place), "{}", cause.sentence);
}

#[test]
fn a_handler_that_asks_for_what_its_thread_has_is_told_as_one() {
    let solution = hung("interrupted_holder");
    let cause = solution.cause.as_ref().expect("a sentence about the cause");
    let text = include_str!("programs/interrupted_holder.c");
    let line =
        |mark: &str| text.lines().position(|line| line.contains(mark)).expect("it is there") + 1;
    let [asked, held] = ["/* asked for */", "/* held */"].map(line);
    let said = format!(
        "t0.1 waits for `lock` (interrupted_holder.c:{asked}) in a handler of SIGUSR1, which interrupted it while it \
         held that (interrupted_holder.c:{held})"
    );
    assert_eq!(cause.sentence, said);
}

/// With LLVM's library, as in Rust and Qt, a reader lets a writer go first that waits already; under a scheduler it is that
/// which knows who waits.
#[test]
fn a_lock_that_is_read_twice_around_a_writer_hangs_in_a_replay() {
    let workspace = Workspace::new("read_twice");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/read_twice.cc");
    let options = ["-std=c++17", "-stdlib=libc++", "-g", "-pthread"];
    let compile = ["c++"].into_iter().chain(options).chain([source, "-o", "program"]);
    workspace.symbiosis(compile).expect_code(SUCCESS);
    let record = ["record", "--noise", "--until-failure", "500", "--timeout", "1"];
    let arguments = record.into_iter().chain(["-o", "hang.trace", "--", "./program"]);
    workspace.symbiosis(arguments).expect_code(SUCCESS);
    let outcome = workspace.symbiosis(["replay", "hang.trace", "--runs", "2"]).expect_code(SUCCESS);
    assert!(outcome.stdout().starts_with("reproduced 2 of 2"), "{}", outcome.describe());
}

/// A watchdog, an alarm and a time limit see the consequence; what is told is why it came to that.
#[test]
fn a_hang_that_the_program_notices_is_explained_as_one() {
    let workspace = Workspace::new("noticed");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/noticed.c");
    let source = source.to_str().expect("a path in UTF-8");
    workspace
        .symbiosis(["cc", "-g", "-O1", "-pthread", source, "-o", "noticed"])
        .expect_code(SUCCESS);
    let runs = |command: &[&str], trace: &str| {
        let record = ["record", "--until-failure", "3", "-o", "noticed.trace", "--"];
        workspace.symbiosis(record.iter().chain(command)).expect_code(SUCCESS);
        let outcome =
            workspace.symbiosis(["solve", trace, "--format", "json"]).expect_code(SUCCESS);
        let solution: Solution =
            serde_json::from_str(&outcome.stdout()).expect("the answer is a solution");
        std::fs::remove_dir_all(workspace.path("noticed.trace")).expect("the trace is removed");
        (solution, outcome.stderr())
    };
    let cause = "t0.2 wrote `full` (noticed.c:47) and signalled `filled` (noticed.c:48) between t0.1's check";
    for how in ["alarm", "handler", "limit", "watcher"] {
        let (solution, said) = runs(&["./noticed", how], "noticed.trace");
        assert_eq!(solution.failure.as_ref().map(|it| it.kind.as_str()), Some("hang"), "{how}");
        let sentence = solution.cause.as_ref().map_or("", |cause| cause.sentence.as_str());
        let cause = match how {
            // The watcher is the first thread.
            "watcher" => cause.replace("t0.2", "t0.3").replace("t0.1", "t0.2"),
            _ => cause.to_owned(),
        };
        assert!(sentence.starts_with(&cause), "{how}: {sentence}");
        assert_eq!(solution.replay, Replay::Confirmed, "{how}");
        assert!(solution.alternates.iter().any(|it| it.replay == Replay::Confirmed), "{how}");
        // Whom a signal ended has noticed nothing itself.
        assert_eq!(said.contains("when it hung already"), how != "alarm", "{how}: {said}");
    }
    // What ended the program is known to the command alone.
    for signal in ["TERM", "KILL", "ABRT"] {
        let command = ["timeout", "-s", signal, "0.5", "./noticed"];
        let (solution, said) = runs(&command, "noticed.trace/noticed.trace");
        let sentence = solution.cause.as_ref().map_or("", |cause| cause.sentence.as_str());
        assert!(sentence.starts_with(cause), "{signal}: {sentence}");
        assert!(!said.contains("when it hung already"), "{signal}: {said}");
    }
    // Who is late does not hang.
    let (solution, said) = runs(&["./noticed", "slow"], "noticed.trace");
    assert_eq!(solution.failure.as_ref().map(|it| it.kind.as_str()), Some("exit"));
    assert!(!said.contains("hung"), "{said}");
}

/// Along the recorded paths the wait has no end whatever the order. The initial thread waits for it all the same, and so would
/// the program to this day.
#[test]
fn a_hang_that_no_order_of_the_run_avoids_is_seen_through_as_well() {
    let workspace = Workspace::new("noticed-other");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/noticed.c");
    let source = source.to_str().expect("a path in UTF-8");
    let compile = ["cc", "-g", "-O1", "-pthread", source, "-o", "noticed"];
    workspace.symbiosis(compile).expect_code(SUCCESS);
    for how in ["other", "other-watched"] {
        let trace = format!("{how}.trace");
        let record = ["record", "-q", "--until-failure", "3", "-o", &trace, "--", "./noticed", how];
        workspace.symbiosis(record).expect_code(SUCCESS);
        let solve = ["solve", &trace, "--no-replay", "--format", "json"];
        let outcome = workspace.symbiosis(solve).expect_code(SUCCESS);
        let solution: Solution =
            serde_json::from_str(&outcome.stdout()).expect("the answer is a solution");
        assert_eq!(solution.failure.as_ref().map(|it| it.kind.as_str()), Some("hang"), "{how}");
        assert!(outcome.stderr().contains("when it hung already"), "{how}");
    }
}

/// Who has nothing to do waits as well, and a check that fails of what others wrote is no watchdog.
#[test]
fn a_time_limit_that_a_lost_update_runs_into_is_no_hang() {
    let workspace = Workspace::new("idle-pool");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/idle_pool.cc");
    let source = source.to_str().expect("a path in UTF-8");
    let compile = ["c++", "-g", "-O1", "-pthread", source, "-o", "pool"];
    workspace.symbiosis(compile).expect_code(SUCCESS);
    let record = ["record", "-q", "--noise", "--until-failure", "2000", "--", "./pool"];
    workspace.symbiosis(record).expect_code(SUCCESS);
    let solve = ["solve", "pool.trace", "--format", "json"];
    let outcome = workspace.symbiosis(solve).expect_code(SUCCESS);
    let solution: Solution =
        serde_json::from_str(&outcome.stdout()).expect("the answer is a solution");
    assert_eq!(solution.failure.as_ref().map(|it| it.kind.as_str()), Some("exit"));
    let sentence = solution.cause.as_ref().map_or("", |cause| cause.sentence.as_str());
    assert!(sentence.contains("wrote `finished`"), "{sentence}");
}

/// The list's own function has no word for the pool whose condition variable it would have to signal.
#[test]
fn who_gives_something_back_through_a_list_is_who_tells_of_it() {
    let workspace = recorded("untold_list");
    let repairs = workspace.symbiosis(["fix", "hang.trace"]).expect_code(SUCCESS).stdout();
    let step = "repair 1: in check, signal `pool->returned` behind calling push (untold_list.c:";
    assert!(repairs.contains(step), "{repairs}");
}

/// Whether the server sleeps decides that it is woken, and not that the flushing thread waits.
#[test]
fn what_decides_something_else_before_a_wait_is_not_what_it_waits_for() {
    let workspace = recorded("woken_beside");
    let solve = ["solve", "hang.trace", "--format", "json"];
    let outcome = workspace.symbiosis(solve).expect_code(SUCCESS);
    let solution: Solution =
        serde_json::from_str(&outcome.stdout()).expect("the answer is a solution");
    let sentence = solution.cause.as_ref().map_or("", |cause| cause.sentence.as_str());
    assert!(sentence.contains("read `asleep`") && sentence.contains("before"), "{sentence}");
    let blames_the_wait = ["did not signal that", "where it does not look at it"];
    assert!(!blames_the_wait.iter().any(|words| sentence.contains(words)), "{sentence}");
    let repairs = workspace.symbiosis(["fix", "hang.trace"]).stdout();
    assert!(!repairs.contains("signal `empty` behind"), "{repairs}");
}

/// Such a condition variable takes a mutex of its own whenever it is told.
#[test]
fn who_waits_with_a_lock_of_any_kind_can_be_told() {
    let workspace = recorded_of("untold_writer", "untold_writer.cc", "c++", "-std=c++17");
    let repairs = workspace.symbiosis(["fix", "hang.trace"]).expect_code(SUCCESS).stdout();
    assert!(repairs.contains("repair 1: in end_read, signal "), "{repairs}");
}

/// With as little to send as before the thread would have come back from the call.
#[test]
fn a_call_that_does_not_come_back_was_given_what_it_was_given() {
    let solution = hung("full_connection");
    assert_eq!(solution.replay, Replay::Confirmed, "{:?}", solution.replay_notes);
    let message = solution.failure.as_ref().map_or("", |failure| failure.message.as_str());
    assert!(message.contains("had not come back from the call of send"), "{message}");
    let cause = solution.cause.as_ref().expect("a cause");
    assert_eq!(cause.variables, ["batch"], "{}", cause.sentence);
}

/// A watchdog waits for the end of all work, and so for whoever hangs: the run is told as that of the thread that the initial one
/// waits for.
#[test]
fn who_watches_is_not_the_one_that_hangs() {
    let solution = hung("watched_tank");
    let failure = solution.failure.as_ref().expect("a failure");
    assert_eq!((failure.kind.as_str(), failure.location.function.as_str()), ("hang", "fill"));
    let cause = solution.cause.as_ref().expect("a cause");
    assert_eq!(cause.pattern, "missed-wakeup", "{}", cause.sentence);
    assert!(cause.variables.iter().any(|name| name == "room"), "{}", cause.sentence);
}
