//! `symbiosis solve` and `doctor` as a user meets them: formats, back ends, limits, determinism.

use crate::workspace::Workspace;
use render::Solution;
use render::solution::Verdict;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

const SUCCESS: i32 = 0;
const UNEXPECTED: i32 = 1;
const USAGE: i32 = 2;
const NO_SCHEDULE: i32 = 11;
const LIMIT: i32 = 12;

/// A workspace with `failing.trace`, a failing run of the smallest fixture.
fn failing(name: &str) -> Workspace {
    let workspace = Workspace::new(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/programs/two_stage/buggy.c");
    let source = source.to_str().expect("a path in UTF-8");
    workspace.symbiosis(["cc", "-O1", "-pthread", source, "-o", "program"]).expect_code(SUCCESS);
    workspace
        .symbiosis(["record", "--until-failure", "400", "-o", "failing.trace", "--", "./program"])
        .expect_code(SUCCESS);
    workspace
}

fn solve(workspace: &Workspace, more: &[&str]) -> Solution {
    let mut arguments = vec!["solve", "failing.trace", "--format", "json"];
    arguments.extend_from_slice(more);
    let outcome = workspace.symbiosis(arguments).expect_code(SUCCESS);
    serde_json::from_str(&outcome.stdout()).expect("the answer is a solution")
}

/// Without runs of the program: how many of them it takes to find one that passes along other paths, and which that is, does
/// not follow from the trace alone.
#[test]
fn equal_traces_give_equal_answers_but_for_times() {
    let workspace = failing("solve-determinism");
    let answer = || {
        let mut solution = solve(&workspace, &["--alternates", "3", "--no-replay"]);
        let stats = &mut solution.stats;
        stats.symex_ms = 0;
        stats.solve_ms = 0;
        stats.root_cause_ms = 0;
        stats.alternates_ms = 0;
        solution
    };
    let first = answer();
    assert_eq!(first, answer());
    assert!((1..=3).contains(&first.alternates.len()), "{} alternates", first.alternates.len());
    let dot = || {
        workspace
            .symbiosis(["solve", "failing.trace", "--no-replay", "--format", "dot"])
            .expect_code(SUCCESS)
            .stdout()
    };
    assert_eq!(dot(), dot());
}

#[test]
fn all_back_ends_agree_on_the_verdict() {
    let workspace = failing("solve-back-ends");
    for backend in ["ordering", "z3", "smtlib:z3 -in"] {
        let solution = solve(&workspace, &["--solver", backend]);
        assert_eq!(solution.verdict, Verdict::FailingSchedule, "{backend}");
        let cause = solution.root_cause.expect("a root cause");
        assert!(cause.minimal && !cause.fails_always, "{backend}: {cause:?}");
        assert!(!solution.alternates.is_empty(), "{backend} finds an alternate");
    }
}

#[test]
fn the_dumped_formula_is_satisfiable_for_another_solver() {
    let workspace = failing("solve-dump");
    solve(&workspace, &["--dump-smt", "a.smt2"]);
    solve(&workspace, &["--dump-smt", "b.smt2"]);
    let read = |name| fs::read_to_string(workspace.path(name)).expect("the dump is there");
    assert_eq!(read("a.smt2"), read("b.smt2"));
    let output = Command::new("z3").arg(workspace.path("a.smt2")).output().expect("z3 runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.starts_with("sat"), "{text}");
}

#[test]
fn text_and_picture_name_what_differs() {
    let workspace = failing("solve-formats");
    let arguments = ["solve", "failing.trace", "--no-replay"];
    let text = workspace.symbiosis(arguments).expect_code(SUCCESS).stdout();
    for part in ["failure: assertion", "root cause:", "alternate 0", "replay: not run", "kelvin"] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
    let full = workspace.symbiosis(["solve", "failing.trace", "--no-replay", "--full-schedule"]);
    assert!(full.stdout().lines().count() > text.lines().count() + 20);
    workspace
        .symbiosis(["solve", "failing.trace", "--format", "svg", "-o", "dsp.svg"])
        .expect_code(SUCCESS);
    let svg = fs::read_to_string(workspace.path("dsp.svg")).expect("the picture is there");
    assert!(svg.contains("<svg") && svg.contains("failing schedule"), "{svg}");
    assert!(svg.contains("celsius") || svg.contains("kelvin"), "{svg}");
}

#[test]
fn time_and_memory_limits_end_the_work_with_their_own_code() {
    let workspace = failing("solve-limits");
    let outcome =
        workspace.symbiosis(["solve", "failing.trace", "--timeout", "0"]).expect_code(LIMIT);
    assert!(outcome.stdout().contains("failure: assertion"), "{}", outcome.describe());
    assert!(outcome.stdout().contains("time limit"), "{}", outcome.describe());
    assert!(outcome.stdout().contains("--timeout is needed"), "{}", outcome.describe());
    let outcome =
        workspace.symbiosis(["solve", "failing.trace", "--memory", "1"]).expect_code(LIMIT);
    assert!(outcome.stdout().contains("--memory is needed"), "{}", outcome.describe());
    // What was not walked takes no answer's place.
    workspace.symbiosis(["show", "failing.trace"]).expect_code(UNEXPECTED);
    workspace.symbiosis(["solve", "failing.trace"]).expect_code(SUCCESS);
    workspace.symbiosis(["solve", "failing.trace", "--timeout", "0"]).expect_code(LIMIT);
    workspace.symbiosis(["show", "failing.trace"]).expect_code(SUCCESS);
    let outcome = workspace
        .symbiosis(["fix", "failing.trace", "--timeout", "0", "--format", "json"])
        .expect_code(LIMIT);
    let fixes: Value = serde_json::from_str(&outcome.stdout()).expect("an answer in JSON");
    assert_eq!(fixes["out_of_time"], true, "{}", outcome.describe());
    assert!(fixes["cause"].is_string(), "{}", outcome.describe());
    let outcome = workspace.symbiosis([
        "solve",
        "failing.trace",
        "--solver",
        "smtlib:z3 -in",
        "--memory",
        "10",
    ]);
    assert_ne!(outcome.code(), SUCCESS, "{}", outcome.describe());
    assert_ne!(outcome.code(), NO_SCHEDULE, "out of memory is no proof: {}", outcome.describe());
}

#[test]
fn a_solver_that_does_not_exist_is_named() {
    let workspace = failing("solve-no-solver");
    let outcome =
        workspace.symbiosis(["solve", "failing.trace", "--solver", "smtlib:no-such-solver -x"]);
    assert_ne!(outcome.code(), SUCCESS);
    assert!(outcome.stderr().contains("no-such-solver"), "{}", outcome.describe());
    let outcome = workspace.symbiosis(["solve", "failing.trace", "--solver", "magic"]);
    assert_eq!(outcome.code(), USAGE, "{}", outcome.describe());
}

/// A library that nobody instrumented and no table describes.
const LIBRARY: &str = r#"
#include <sched.h>
struct shared { long n; int level; };
void look_at(struct shared *s) { (void)s->level; sched_yield(); }
"#;

/// Loses updates while the library looks at the object that holds the counter.
const PROGRAM: &str = r#"
#include <pthread.h>
struct shared { long n; int level; };
void look_at(struct shared *s);
static struct shared s;
static void *count(void *unused)
{
    for (int i = 0; i < 8; i++) {
        long seen = s.n;
        look_at(&s);
        s.n = seen + 1;
    }
    return unused;
}
int main(void)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], 0, count, 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], 0);
    return s.n != 16;
}
"#;

#[test]
fn what_another_thread_wrote_during_an_opaque_call_is_not_the_callers() {
    let workspace = Workspace::new("solve-opaque");
    fs::write(workspace.path("library.c"), LIBRARY).expect("the library can be written");
    fs::write(workspace.path("program.c"), PROGRAM).expect("the program can be written");
    let compiled = Command::new("clang")
        .args(["-O1", "-c", "library.c"])
        .current_dir(workspace.path("."))
        .status()
        .expect("clang runs");
    assert!(compiled.success());
    workspace
        .symbiosis(["cc", "-O1", "-pthread", "program.c", "library.o", "-o", "program"])
        .expect_code(SUCCESS);
    workspace
        .symbiosis(["record", "--until-failure", "2000", "-o", "failing.trace", "--", "./program"])
        .expect_code(SUCCESS);
    let solution = solve(&workspace, &[]);
    assert_eq!(solution.verdict, Verdict::FailingSchedule);
    let call = 1 + PROGRAM.lines().position(|line| line.contains("look_at(&s)")).expect("the call");
    let phantom = solution.events.iter().find(|event| event.location.line as usize == call);
    assert!(phantom.is_none(), "{phantom:?}");
    assert!(!solution.alternates.is_empty(), "the lost update can be avoided");
}

/// Says that the answer is ready before it is. The process ends while the writer still sleeps.
const TOO_EARLY: &str = r#"
#include <assert.h>
#include <pthread.h>
#include <unistd.h>
static volatile int ready;
static volatile int answer;
static void *think(void *unused)
{
    ready = 1;
    usleep(300000);
    answer = 42;
    return unused;
}
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, 0, think, 0);
    while (!ready)
        usleep(100);
    assert(answer == 42);
    pthread_join(thread, 0);
    return 0;
}
"#;

#[test]
fn what_a_library_leaves_where_threads_shared_a_variable_is_an_input() {
    for level in ["-O1", "-O2"] {
        let workspace = Workspace::new(&format!("solve-stream{level}"));
        let source =
            format!("{}/tests/programs/stream_after_threads.cc", env!("CARGO_MANIFEST_DIR"));
        let compile = ["c++", "-std=c++17", "-g", level, "-pthread", &source, "-o", "program"];
        workspace.symbiosis(compile).expect_code(SUCCESS);
        let record = ["record", "--noise", "--until-failure", "3000", "-o", "failing.trace"];
        let program = ["--", "./program"];
        workspace.symbiosis(record.iter().chain(&program)).expect_code(SUCCESS);
        let solution = solve(&workspace, &["--no-replay"]);
        assert_eq!(solution.verdict, Verdict::FailingSchedule, "{level}");
        let cause = solution.cause.as_ref().expect("a sentence about the cause");
        assert_eq!(cause.pattern, "atomicity", "{level}: {}", cause.sentence);
        assert!(cause.sentence.contains("`counters["), "{level}: {}", cause.sentence);
    }
}

#[test]
fn an_event_that_had_not_happened_yet_is_found_to_be_late() {
    for level in ["-O0", "-O2"] {
        let workspace = Workspace::new(&format!("solve-too-early{level}"));
        fs::write(workspace.path("program.c"), TOO_EARLY).expect("the program can be written");
        workspace
            .symbiosis(["cc", level, "-g", "-pthread", "program.c", "-o", "program"])
            .expect_code(SUCCESS);
        workspace
            .symbiosis(["record", "--until-failure", "5", "-o", "failing.trace", "--", "./program"])
            .expect_code(SUCCESS);
        let solution = solve(&workspace, &[]);
        let dsp = solution.dsp.as_ref().expect("an alternate, and so a projection");
        let late = 1 + TOO_EARLY.lines().position(|line| line.contains("answer = 42")).expect("it");
        let shown = |id: &String| {
            let event = solution.event(id).expect("an event of the trace");
            event.kind == "write" && event.location.line as usize == late
        };
        assert!(dsp.failing.iter().any(shown), "{level}: {dsp:?}");
    }
}

/// No order of events tells what a thread reads from freed memory, and a failed assertion is no crash. The clock does not
/// say whether that read came before the free, or when the run ended.
#[test]
fn what_no_order_leads_to_is_looked_for_in_freed_memory() {
    let workspace = Workspace::new("solve-kept-reference");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/kept_reference.c");
    let source = source.to_str().expect("a path in UTF-8");
    let compile = ["cc", "-g", "-O1", "-pthread", source, "-o", "program"];
    workspace.symbiosis(compile).expect_code(SUCCESS);
    let record = ["record", "--until-failure", "20", "-o", "run.trace", "--", "./program"];
    workspace.symbiosis(record).expect_code(SUCCESS);
    let outcome = workspace.symbiosis(["solve", "run.trace"]).expect_code(SUCCESS);
    let said = outcome.stdout();
    assert!(
        said.starts_with("cause: t0.2 freed what `items` had pointed to (kept_reference.c:21)"),
        "{said}"
    );
}

/// The list is nobody's when the reader looks at it, and the order of events says nothing of what it
/// finds. Where that decides whether its own thread fails, it is told all the same.
#[test]
fn a_use_of_freed_memory_is_told_or_the_way_to_record_it() {
    let workspace = Workspace::new("solve-freed");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/freed.c");
    let source = source.to_str().expect("a path in UTF-8");
    let compile = |more: &[&str]| {
        let command = ["cc", "-g", "-O1", "-pthread", source, "-o", "program"];
        workspace.symbiosis(command.iter().chain(more)).expect_code(SUCCESS);
    };
    let record = |more: &[&str]| {
        let head = ["record", "--until-failure", "5"];
        let command = head.iter().chain(more).chain(&["-o", "run.trace", "--", "./program"]);
        let _ = fs::remove_dir_all(workspace.path("run.trace"));
        workspace.symbiosis(command).expect_code(SUCCESS);
        workspace.symbiosis(["solve", "run.trace"])
    };
    compile(&[]);
    let told = record(&[]);
    assert!(!told.stderr().contains("that had been freed before"), "{}", told.stderr());
    assert!(told.stdout().starts_with("cause: t0 freed"), "{}", told.stdout());
    compile(&["-DLATER"]);
    let said = record(&[]).stderr();
    assert!(said.contains("t0.1 used memory at freed.c:28 that had been freed before"), "{said}");
    assert!(said.contains("record with --detect=use-after-free"), "{said}");
    let watched = record(&["--detect=use-after-free"]);
    assert!(!watched.stderr().contains("that had been freed before"), "{}", watched.stderr());
    assert!(watched.stdout().starts_with("cause: t0 freed"), "{}", watched.stdout());
}

/// Nobody else knows where that thread was.
#[test]
fn a_crash_of_a_thread_that_begins_with_all_signals_blocked_is_its_own() {
    let workspace = Workspace::new("solve-timer-crash");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/timer_crash.c");
    let source = source.to_str().expect("a path in UTF-8");
    let command = ["cc", "-g", "-O1", "-pthread", source, "-o", "program"];
    workspace.symbiosis(command).expect_code(SUCCESS);
    let record = ["record", "--until-failure", "1", "-o", "run.trace", "--", "./program"];
    let said = workspace.symbiosis(record).expect_code(SUCCESS).stderr();
    assert!(said.contains("(SIGSEGV) (in thread t0.1)"), "{said}");
}

/// By when the allocator notices, what it says has nothing to do with it any more: the run is made again with a watched
/// heap, and everything that is asked of the trace from then on is about that.
#[test]
fn what_damaged_the_heap_is_explained_and_not_the_damage() {
    let workspace = Workspace::new("solve-freed-twice");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/freed_twice.c");
    let source = source.to_str().expect("a path in UTF-8");
    let command = ["cc", "-g", "-O1", "-pthread", source, "-o", "program"];
    workspace.symbiosis(command).expect_code(SUCCESS);
    let command = ["record", "--until-failure", "20", "-o", "run.trace", "--", "./program"];
    workspace.symbiosis(command).expect_code(SUCCESS);
    let solved = workspace.symbiosis(["solve", "run.trace"]);
    let said = solved.expect_code(SUCCESS).stdout();
    for part in [
        "updated `given->count` (freed_twice.c:19) between",
        "failure: double-free",
        "(replay: confirmed)\n  replay: the recorded run failed later (",
        "every access to freed memory watched, fails so: double free",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let cause = |text: &str| text.lines().next().map(str::to_owned);
    let shown = workspace.symbiosis(["show", "run.trace"]);
    assert_eq!(cause(&shown.stdout()), cause(&said));
    let replayed = workspace.symbiosis(["replay", "run.trace"]);
    let replayed = replayed.expect_code(SUCCESS);
    assert!(replayed.stdout().contains("double free"), "{}", replayed.stdout());
    let fixed = workspace.symbiosis(["fix", "run.trace"]);
    let fixed = fixed.expect_code(SUCCESS);
    assert!(fixed.stdout().contains("`given->count`"), "{}", fixed.stdout());
}

/// Builds and records a program of `tests/programs`, and gives what `solve` says of it.
fn said_of(program: &str, compiler: &[&str], record: &[&str]) -> String {
    let (workspace, trace) = recorded(program, compiler, record);
    workspace.symbiosis(["solve", trace]).expect_code(SUCCESS).stdout()
}

/// Builds and records a program of `tests/programs`; with the trace's name.
fn recorded(program: &str, compiler: &[&str], record: &[&str]) -> (Workspace, &'static str) {
    let workspace = Workspace::new(&format!("solve-said-{program}"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(program);
    let source = source.to_str().expect("a path in UTF-8");
    let compile = compiler.iter().copied().chain(["-pthread", source, "-o", "program"]);
    workspace.symbiosis(compile).expect_code(SUCCESS);
    let record = ["record", "-o", "run.trace"].iter().chain(record).copied();
    workspace.symbiosis(record.chain(["--", "./program"])).expect_code(SUCCESS);
    (workspace, "run.trace")
}

/// The run hangs at a mutex that no thread has, which is no matter of any order of what was recorded.
#[test]
fn a_lock_in_freed_memory_is_told_by_the_free() {
    let record = ["--until-failure", "1", "--timeout", "2"];
    let said = said_of("freed_lock.cc", &["c++", "-g", "-O1"], &record);
    for part in [
        "cause: t0.2 freed what `mailbox` had pointed to (freed_lock.cc:38) between t0.1's read of that pointer",
        "read mailbox->lock",
        "the recorded run failed later (ended by the time-out",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

/// The same of one in a stack, where something else lies by then.
#[test]
fn a_lock_that_was_a_local_variable_is_told_by_its_end_where_the_run_hangs() {
    let record = ["--until-failure", "1", "--timeout", "2"];
    let said = said_of("gone_lock.c", &["cc", "-g", "-O1"], &record);
    for part in [
        "cause: t0 left the scope of `lock` in `start` (gone_lock.c:24) before t0.1 asked for `lock` (gone_lock.c:11)",
        "failure: hang: t0.1 waits for *lock, which nobody has",
        "context switches (replay: confirmed)",
        "alternate 0 does not fail (replay: confirmed)",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

/// The library of UndefinedBehaviorSanitizer ends the program behind the back of the C library, and its table of types is no
/// variable that an order of events could be about.
#[test]
fn a_check_of_undefined_behaviour_is_told_where_it_failed() {
    let checks = ["-fsanitize=undefined", "-fno-sanitize-recover=all"];
    let compiler = [&["c++", "-g", "-O1", "-std=c++17"][..], &checks].concat();
    let said = said_of("sanitized.cc", &compiler, &["--noise", "--until-failure", "1000"]);
    for part in [
        "`shapes` (sanitized.cc:40)",
        "sanitized.cc:41:16 in look, thread t0.2",
        "context switches (replay: confirmed)",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

/// Nobody logged what the stream had written, and whoever parses it branches on its bytes: taken to be zeros, they leave no
/// schedule that follows the recorded run.
#[test]
fn texts_that_are_parsed_elsewhere_do_not_hide_the_recorded_order() {
    let record = ["--noise", "--until-failure", "300"];
    let compiler = ["c++", "-g", "-O1", "-std=c++17"];
    let (workspace, trace) = recorded("parsed_texts.cc", &compiler, &record);
    let said = workspace.symbiosis(["solve", "--timeout", "25", trace]).stdout();
    for part in [
        "cause: t0.2 read `range.low` (parsed_texts.cc:52)",
        "context switches (replay: confirmed)",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

/// Where a run is too long to be walked in the time, another one that fails in the same way is told, and what comes behind
/// `solve` is about that one.
#[test]
fn a_run_that_is_too_long_is_told_by_a_shorter_one() {
    let (workspace, trace) =
        recorded("first_run.c", &["cc", "-g", "-O1"], &["--until-failure", "1"]);
    let solve = ["solve", "--timeout", "18", trace];
    let said = workspace.symbiosis(solve).expect_code(SUCCESS).stdout();
    for part in [
        "cause: t0 failed (first_run.c:35) before t0.1 wrote `answer` (first_run.c:20)",
        "the recorded run was too long to be explained in this time",
        "context switches (replay: confirmed)",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let replayed = workspace.symbiosis(["replay", trace]).expect_code(SUCCESS).stdout();
    assert!(replayed.contains("reproduced 1 of 1"), "{replayed}");
    let shown = workspace.symbiosis(["show", trace]).expect_code(SUCCESS).stdout();
    assert!(shown.contains("the recorded run was too long"), "{shown}");
    // The recorded run has no answer of its own in this time.
    fs::remove_dir_all(workspace.path(trace).join("shorter")).expect("it is there");
    let alone = workspace.symbiosis(["solve", "--no-replay", "--timeout", "3", trace]);
    let alone = alone.expect_code(LIMIT).stdout();
    assert!(alone.contains("more --timeout is needed"), "{alone}");
}

/// Where it crashes has to do with what the allocator gave the memory to, in every run something else.
#[test]
fn a_shared_pointer_that_is_assigned_while_it_is_copied_is_told_by_both() {
    let workspace = Workspace::new("solve-shared-config");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/shared_config.cc");
    let source = source.to_str().expect("a path in UTF-8");
    let compile = ["c++", "-g", "-O1", "-pthread", source, "-o", "program"];
    workspace.symbiosis(compile).expect_code(SUCCESS);
    let record =
        ["record", "--noise", "--until-failure", "300", "-o", "run.trace", "--", "./program"];
    // What was seen to be shared differs from recording to recording, and with it what can be told.
    let told = (0..4).any(|_| {
        let _ = fs::remove_dir_all(workspace.path("run.trace"));
        workspace.symbiosis(record).expect_code(SUCCESS);
        // In one of some ten the counts in freed memory are a hard question.
        let said = workspace.symbiosis(["solve", "--timeout", "20", "run.trace"]).stdout();
        let cause = said.lines().next().unwrap_or_default();
        let by_pointer = ["config_` pointed to (", "config_` had pointed to ("];
        by_pointer.iter().any(|words| cause.contains(words))
            && cause.contains("'s read of that pointer (shared_config.cc:2")
    });
    assert!(told, "the pointer that was copied too early is told in none of four recordings");
}

/// The item that is copied with its cursor, whole and under the lock, is the new one, though the old one lay at the
/// same address and the copy lies where the thread had nothing before.
#[test]
fn a_pointer_that_was_copied_is_no_older_than_the_copy() {
    let workspace = Workspace::new("solve-cursor-copy");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/cursor_copy.c");
    let source = source.to_str().expect("a path in UTF-8");
    let compile = ["cc", "-g", "-O0", "-pthread", source, "-o", "program"];
    workspace.symbiosis(compile).expect_code(SUCCESS);
    let record =
        ["record", "--noise", "--until-failure", "300", "-o", "run.trace", "--", "./program"];
    workspace.symbiosis(record).expect_code(SUCCESS);
    let said = workspace.symbiosis(["solve", "run.trace"]).stdout();
    let cause = said.lines().next().unwrap_or_default();
    assert!(cause.contains("read `limit` (cursor_copy.c:46)"), "{said}");
}

/// Some of the recorded runs fail by what no order of their events leads to, and do not fail again in their own order:
/// then another run is made.
#[test]
fn where_the_recorded_run_tells_nothing_another_one_does() {
    let workspace = Workspace::new("solve-topic-list");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/topic_list.cc");
    let source = source.to_str().expect("a path in UTF-8");
    let compile = ["c++", "-g", "-O0", "-pthread", source, "-o", "program"];
    workspace.symbiosis(compile).expect_code(SUCCESS);
    let record =
        ["record", "--noise", "--until-failure", "300", "-o", "run.trace", "--", "./program"];
    for _ in 0..3 {
        let _ = fs::remove_dir_all(workspace.path("run.trace"));
        workspace.symbiosis(record).expect_code(SUCCESS);
        let said = workspace.symbiosis(["solve", "run.trace"]).expect_code(SUCCESS).stdout();
        let cause = said.lines().next().unwrap_or_default();
        assert!(cause.contains("`this->subscribers_`") || cause.contains("`one."), "{said}");
        let other = said.contains("that is another run, which is explained here");
        assert_eq!(workspace.path("run.trace/watched-other").exists(), other, "{said}");
        assert!(!workspace.path("run.trace/watched-other.partial").exists(), "{said}");
    }
}

/// What goes wrong in the clean-up behind a thread is that thread's, and not the initial one's.
#[test]
fn a_failure_behind_a_threads_end_is_that_threads() {
    let workspace = Workspace::new("solve-behind-end");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/behind_end.c");
    let source = source.to_str().expect("a path in UTF-8");
    let compile = ["cc", "-g", "-O0", "-w", "-pthread", source, "-o", "program"];
    workspace.symbiosis(compile).expect_code(SUCCESS);
    workspace
        .symbiosis(["record", "--until-failure", "2", "-o", "run.trace", "--", "./program"])
        .expect_code(SUCCESS);
    // With a replay, what damaged the heap is told.
    let answer = workspace.symbiosis(["solve", "run.trace", "--no-replay", "--format", "json"]);
    let solution: Solution = serde_json::from_str(&answer.stdout()).expect("an answer");
    let failure = solution.failure.expect("a failure");
    assert_eq!(failure.thread, "t0.1");
    assert!(failure.message.contains("when the thread had ended"), "{}", failure.message);
    let told = workspace.symbiosis(["solve", "run.trace"]).stdout();
    assert!(told.contains("failure: use-after-free"), "{told}");
    assert!(told.contains("behind_end.c:9:13 in worker, thread t0.1"), "{told}");
}

/// The log alone tells what an earlier check is about, which nothing but the failing thread's way to the later one depends on.
#[test]
fn what_leads_to_another_check_that_fails_is_not_the_cause() {
    let workspace = Workspace::new("solve-two-checks");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/closed_log.c");
    let source = source.to_str().expect("a path in UTF-8");
    workspace
        .symbiosis(["cc", "-g", "-O1", "-pthread", source, "-o", "program"])
        .expect_code(SUCCESS);
    let record = ["record", "--noise", "--until-failure", "9000", "--failures", "40", "-q"];
    let record = record.into_iter().chain(["-o", "failing.trace", "--", "./program"]);
    workspace.symbiosis(record).expect_code(SUCCESS);
    let is_later = |trace: &String| {
        let manifest = fs::read_to_string(workspace.path(trace).join("manifest.json"));
        manifest.is_ok_and(|manifest| manifest.contains("!seen_closed"))
    };
    let traces = (1..=40).map(|number| format!("failing-{number}.trace")).filter(is_later);
    let mut asked = 0;
    for trace in traces.take(3) {
        let outcome = workspace.symbiosis(["solve", &trace, "--format", "json"]);
        let solution: Solution =
            serde_json::from_str(&outcome.stdout()).expect("the answer is a solution");
        let variables = solution.cause.map(|cause| cause.variables).unwrap_or_default();
        assert!(variables.iter().any(|name| name == "current"), "{variables:?}");
        assert!(!variables.iter().any(|name| name == "written"), "{variables:?}");
        asked += 1;
    }
    assert!(asked > 0, "no run fails at the later check");
}

#[test]
fn doctor_finds_what_the_tests_need() {
    let workspace = Workspace::new("doctor");
    let outcome = workspace.symbiosis(["doctor"]).expect_code(SUCCESS);
    for part in ["clang", "LLVM library", "Z3", "runtime"] {
        assert!(outcome.stdout().contains(part), "{}", outcome.describe());
    }
}

#[test]
fn without_graphviz_only_the_picture_is_lost() {
    let workspace = failing("solve-no-graphviz");
    // LLVM is found through rustc on PATH, so its place is given.
    let doctor = workspace.symbiosis(["doctor"]).expect_code(SUCCESS).stdout();
    let line = doctor.lines().find(|line| line.contains("LLVM library")).expect("LLVM is found");
    let llvm = line.split(" at ").last().expect("the line ends with the path").to_owned();
    let run = |format: &str| {
        Command::new(env!("CARGO_BIN_EXE_symbiosis"))
            .args(["solve", "failing.trace", "--format", format])
            .env("PATH", "/nonexistent")
            .env("SYMBIOSIS_LLVM", &llvm)
            .current_dir(workspace.path("."))
            .output()
            .expect("the symbiosis binary starts")
    };
    let svg = run("svg");
    assert!(!svg.status.success());
    let message = String::from_utf8_lossy(&svg.stderr).into_owned();
    assert!(message.contains("graphviz") && message.contains("--format dot"), "{message}");
    for format in ["text", "json", "dot"] {
        assert!(run(format).status.success(), "{format} does not need Graphviz");
    }
}

/// Joins a thread that was never created, as who shuts down before the start has come to that. libc says that
/// there is none.
const NOBODY: &str = r#"
#include <errno.h>
#include <pthread.h>
static pthread_t thread;
int main(void)
{
    void *result;
    return pthread_join(thread, &result) != ESRCH;
}
"#;

#[test]
fn who_joins_a_thread_that_never_was_gets_libcs_answer() {
    let workspace = Workspace::new("solve-nobody");
    fs::write(workspace.path("nobody.c"), NOBODY).expect("the program can be written");
    workspace.symbiosis(["cc", "-O1", "-pthread", "nobody.c", "-o", "nobody"]).expect_code(SUCCESS);
    let recorded = workspace
        .symbiosis(["record", "-o", "nobody.trace", "--", "./nobody"])
        .expect_code(SUCCESS)
        .stderr();
    assert!(recorded.contains("the run passed"), "{recorded}");
    // And there is nothing to explain.
    let said = workspace.symbiosis(["solve", "nobody.trace"]).expect_code(USAGE).stderr();
    assert!(said.contains("the run passed, so there is nothing to explain"), "{said}");
}

/// Of the variables that a block has had in its rounds it is the one that the worker was handed.
#[test]
fn the_variable_of_a_later_round_is_the_one_that_ended() {
    let workspace = Workspace::new("solve-third-round");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/third_round.c");
    let source = source.to_str().expect("a path in UTF-8");
    let compile = ["cc", "-g", "-O1", "-pthread", source, "-o", "program"];
    workspace.symbiosis(compile).expect_code(SUCCESS);
    let record =
        ["record", "--noise", "--until-failure", "1000", "-o", "failing.trace", "--", "./program"];
    workspace.symbiosis(record).expect_code(SUCCESS);
    let said = workspace
        .symbiosis(["solve", "--no-replay", "failing.trace"])
        .expect_code(SUCCESS)
        .stdout();
    assert!(said.contains("cause: t0.2 left the scope of `task` in `produce`"), "{said}");
}

#[test]
fn a_late_write_is_the_cause_where_the_failure_may_come_of_it() {
    let cases = [("damaging", "left the scope of `answer` in `ask`"), ("harmless", "`count`")];
    for (name, cause) in cases {
        let workspace = Workspace::new(&format!("solve-{name}-late-write"));
        let source = Path::new(env!("CARGO_MANIFEST_DIR"));
        let source = source.join(format!("tests/programs/{name}_late_write.c"));
        let source = source.to_str().expect("a path in UTF-8");
        let compile = ["cc", "-g", "-O1", "-pthread", source, "-o", "program"];
        workspace.symbiosis(compile).expect_code(SUCCESS);
        let record =
            ["record", "--until-failure", "1000", "-o", "failing.trace", "--", "./program"];
        workspace.symbiosis(record).expect_code(SUCCESS);
        let solve = ["solve", "--no-replay", "failing.trace"];
        let said = workspace.symbiosis(solve).expect_code(SUCCESS).stdout();
        let told = said.lines().find(|line| line.starts_with("cause: "));
        assert!(told.is_some_and(|told| told.contains(cause)), "{said}");
    }
}

#[test]
fn a_mutex_that_had_ended_when_it_was_asked_for_is_the_cause() {
    let workspace = Workspace::new("solve-gone-mutex");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/gone_mutex.cc");
    let source = source.to_str().expect("a path in UTF-8");
    let compile = ["c++", "-g", "-O0", "-pthread", source, "-o", "program"];
    workspace.symbiosis(compile).expect_code(SUCCESS);
    let record = ["record", "--until-failure", "1000", "-o", "failing.trace", "--", "./program"];
    workspace.symbiosis(record).expect_code(SUCCESS);
    let solve = ["solve", "--no-replay", "failing.trace"];
    let said = workspace.symbiosis(solve).expect_code(SUCCESS).stdout();
    let told = said.lines().find(|line| line.starts_with("cause: ")).unwrap_or_default();
    assert!(told.contains("left the scope of `m` in `start`"), "{said}");
    assert!(told.contains("before t0.1 asked for `m`"), "{said}");
}

/// Records and solves a program of `tests/programs` whose threads share what they might have thought their own.
fn confirmed(program: &str, compiler: &[&str]) -> render::Solution {
    let workspace = Workspace::new(&format!("solve-{program}"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(program);
    let source = source.to_str().expect("a path in UTF-8");
    let compile = compiler.iter().copied().chain(["-pthread", source, "-o", "program"]);
    workspace.symbiosis(compile).expect_code(SUCCESS);
    let record = ["record", "--noise", "--until-failure", "3000", "--timeout", "60"];
    let record = record.into_iter().chain(["-o", "failing.trace", "--", "./program"]);
    workspace.symbiosis(record).expect_code(SUCCESS);
    let solution = solve(&workspace, &["--alternates", "0"]);
    assert_eq!(solution.verdict, Verdict::FailingSchedule);
    assert_eq!(solution.replay, render::solution::Replay::Confirmed, "{:?}", solution.replay_notes);
    solution
}

#[test]
fn variables_of_other_threads_are_found_by_their_addresses() {
    confirmed("queue_lock.c", &["cc", "-g", "-O1"]);
}

/// The address is in a structure that is copied as a whole, so that no load of it is in the log.
#[test]
fn variables_of_other_threads_are_found_where_the_walk_comes_to_them() {
    confirmed("lent_buffer.cc", &["c++", "-g", "-O1", "-std=c++17"]);
}

/// What a call gave is another date by the time that it is read: the C library has one object for all threads, which is written by
/// what was linked in, and not seen behind the call alone.
#[test]
fn a_date_that_all_threads_share_is_overwritten_between_two_lines() {
    let solution = confirmed("shared_date.c", &["cc", "-g", "-O1"]);
    let shared =
        |event: &render::solution::Event| event.object.as_deref() == Some("broken_down_time");
    assert!(solution.events.iter().any(shared), "{:?}", solution.events);
}
