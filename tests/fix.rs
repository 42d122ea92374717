//! `symbiosis fix`, live: every program of `fixtures/programs` is compiled, recorded and solved, and the
//! first repair offered has to be one that it says is right (`//~ REPAIR:`, fixtures/README.md), with its
//! checks passed. The programs are found, not listed; for the families `tests/families.rs` does the
//! same. `SYMBIOSIS_REPLAY_RUNS` gives the number of runs with a repair's order enforced (5).

#[path = "fixtures/annotations.rs"]
mod annotations;
#[path = "fixtures/chance.rs"]
mod chance;
#[path = "fixtures/repairs.rs"]
mod repairs;
#[path = "fixtures/workspace.rs"]
mod workspace;

use annotations::Annotations;
use chance::also_on_other_runs;
use libtest_mimic::{Arguments, Failed, Trial};
use repairs::strings;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use std::{env, fs};
use workspace::Workspace;

const SUCCESS: i32 = 0;
/// No repair passed its checks.
const NO_REPAIR: i32 = 11;
const LIMIT: i32 = 12;

/// So many failing runs are recorded until one shows a repair: in three of four they do for the program
/// in which the fewest do.
const RECORDINGS: usize = 4;

/// Compiles and records a buggy program; the trace is `failing.trace`.
fn record(workspace: &Workspace, source: &Path, annotations: &Annotations) {
    let plus_plus = source.extension().is_some_and(|extension| extension == "cc");
    let (compiler, copy) = if plus_plus { ("c++", "program.cc") } else { ("cc", "program.c") };
    fs::copy(source, workspace.path(copy)).expect("the source can be copied");
    let arguments = [compiler, "-g", "-O1", "-pthread", copy, "-o", "program"];
    let flags = annotations.flags.iter().map(String::as_str);
    workspace.symbiosis(arguments.into_iter().chain(flags)).expect_code(SUCCESS);
    let mut arguments = vec!["record", "--until-failure", "3000"];
    if !annotations.record.iter().any(|option| option == "--timeout") {
        arguments.extend(["--timeout", "60"]);
    }
    if annotations.noise {
        arguments.push("--noise");
    }
    arguments.extend(annotations.record.iter().map(String::as_str));
    arguments.extend(["-o", "failing.trace", "--", "./program"]);
    workspace.symbiosis(arguments).expect_code(SUCCESS);
}

fn first_repair(name: &str, source: &Path, annotations: &Annotations, ending: &str) {
    let workspace = Workspace::new(&format!("fix-{name}{ending}"));
    let runs = env::var("SYMBIOSIS_REPLAY_RUNS").unwrap_or_else(|_| "5".to_owned());
    let attempt = |_| {
        let _ = fs::remove_dir_all(workspace.path("failing.trace"));
        record(&workspace, source, annotations);
        repairs::check(&workspace, annotations, "3", &runs)
    };
    let found = (0..RECORDINGS).find_map(attempt).expect("a repair is offered");
    if found.is_empty() {
        return;
    }
    // The text says the same, with the source. Without runs, as they may refuse another repair each time.
    let unreplayed = ["fix", "failing.trace", "--repairs", "1", "--runs", "0"];
    let json = workspace.symbiosis(unreplayed.into_iter().chain(["--format", "json"]));
    let fixes: Value =
        serde_json::from_str(&json.expect_code(SUCCESS).stdout()).expect("an answer in JSON");
    let text = workspace.symbiosis(unreplayed).expect_code(SUCCESS);
    let steps = strings(&fixes["repairs"][0]["steps"]);
    assert!(!steps.is_empty(), "{fixes}");
    let output = text.stdout();
    for step in steps {
        assert!(output.contains(step), "no `{step}` in {}", text.describe());
    }
    let source = fs::read_to_string(source).expect("the source can be read");
    let is_quoted = |line: &str| {
        let Some((number, quoted)) = line.split_once(" | ") else { return false };
        let number = number.trim().parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        number.and_then(|index| source.lines().nth(index)) == Some(quoted)
    };
    assert!(output.lines().any(is_quoted), "no source in {}", text.describe());
}

/// Where every schedule fails, no change of the order helps, and nothing is offered.
fn nothing_for_a_bug_without_schedule() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/programs/always");
    let source = folder.join("buggy.c");
    let text = fs::read_to_string(&source).expect("the source can be read");
    let annotations = annotations::parse(&text).expect("well-formed annotations");
    let workspace = Workspace::new("fix-always");
    record(&workspace, &source, &annotations);
    let answer = workspace.symbiosis(["fix", "failing.trace"]).expect_code(NO_REPAIR);
    assert!(answer.stdout().contains("no repair: "), "{}", answer.describe());
}

/// A run that passes takes long, once there is a file: too long for many of them in the time that there is.
const SLOW_TO_END: &str = r#"
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int total;
static void *add(void *argument) {
    pthread_mutex_lock(&lock);
    int now = total;
    pthread_mutex_unlock(&lock);
    pthread_mutex_lock(&lock);
    total = now + 1;
    pthread_mutex_unlock(&lock);
    return argument;
}
int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, add, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert(total == 2);
    if (access("slow", F_OK) == 0 && system("sleep 2") != 0)
        return 1;
    return 0;
}
"#;

/// The time is one for all of it, the program's runs among it: what was not run to its end is left undecided.
fn the_time_goes_for_runs_too() {
    let workspace = Workspace::new("fix-time");
    fs::write(workspace.path("program.c"), SLOW_TO_END).expect("the source can be written");
    workspace
        .symbiosis(["cc", "-g", "-O1", "-pthread", "program.c", "-o", "program"])
        .expect_code(SUCCESS);
    let record = ["record", "--noise", "--until-failure", "200", "-o", "failing.trace"];
    workspace.symbiosis(record.into_iter().chain(["--", "./program"])).expect_code(SUCCESS);
    workspace.symbiosis(["solve", "failing.trace"]).expect_code(SUCCESS);
    fs::write(workspace.path("slow"), "").expect("a file can be written");
    let started = Instant::now();
    let fix = ["fix", "failing.trace", "--runs", "20", "--timeout", "7", "--format", "json"];
    let answer = workspace.symbiosis(fix).expect_code(LIMIT);
    // Twenty runs that pass take forty seconds.
    assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
    let fixes: Value = serde_json::from_str(&answer.stdout()).expect("an answer in JSON");
    assert_eq!(fixes["out_of_time"], true, "{}", answer.describe());
    assert!(fixes["undecided"].as_u64() > Some(0), "{}", answer.describe());
    assert_eq!(fixes["repairs"].as_array().map(Vec::len), Some(0), "{}", answer.describe());
}

/// The compiler writes the rounds of the loop out one behind the other, and the second lock is asked for in each.
const UNROLLED: &str = r#"
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
static pthread_mutex_t book = PTHREAD_MUTEX_INITIALIZER, shelf = PTHREAD_MUTEX_INITIALIZER;
static sem_t opened;
static int orders[4], counts[4];
static int wanted(int item) {
    pthread_mutex_lock(&book);
    int n = orders[item];
    pthread_mutex_unlock(&book);
    return n;
}
static int missing(void) {
    int all = 0;
    pthread_mutex_lock(&shelf);
#pragma clang loop unroll(full)
    for (int item = 0; item < 4; item++) {
        int n = wanted(item);
        if (n > counts[item])
            all += n - counts[item];
        if (item == 0)
            sem_post(&opened);
    }
    pthread_mutex_unlock(&shelf);
    return all;
}
static void ship(int item) {
    pthread_mutex_lock(&book);
    pthread_mutex_lock(&shelf);
    counts[item]--;
    orders[item]--;
    pthread_mutex_unlock(&shelf);
    pthread_mutex_unlock(&book);
}
static void *packer(void *argument) {
    sem_wait(&opened);
    ship(3);
    return argument;
}
int main(void) {
    pthread_t thread;
    sem_init(&opened, 0, 0);
    pthread_create(&thread, NULL, packer, NULL);
    int all = missing();
    pthread_join(thread, NULL);
    printf("%d\n", all);
    return 0;
}
"#;

/// An object is freed in each round of a loop, and the thread that uses it is joined behind that.
const FREED_IN_A_LOOP: &str = r#"
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
struct view { int open; int rows; };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct view *shown;
static void *draw(void *argument) {
    for (int row = 0; row < 6; row++) {
        pthread_mutex_lock(&lock);
        struct view *view = shown;
        pthread_mutex_unlock(&lock);
        if (view)
            view->rows++;
    }
    return argument;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, draw, NULL);
    for (int k = 0; k < 3; k++) {
        struct view *view = calloc(1, sizeof *view);
        pthread_mutex_lock(&lock);
        shown = view;
        pthread_mutex_unlock(&lock);
        sched_yield();
        pthread_mutex_lock(&lock);
        shown = NULL;
        pthread_mutex_unlock(&lock);
        free(view);
    }
    pthread_join(thread, NULL);
    return 0;
}
"#;

/// What `fix` says of a program, run with the repairs' orders enforced.
fn fixes_of(name: &str, text: &str, (level, options): (&str, &[&str])) -> String {
    let workspace = Workspace::new(name);
    fs::write(workspace.path("program.c"), text).expect("the source can be written");
    workspace
        .symbiosis(["cc", "-g", level, "-pthread", "program.c", "-o", "program"])
        .expect_code(SUCCESS);
    let record = ["record", "--noise", "--until-failure", "2000", "-o", "failing.trace"];
    let arguments = record.iter().chain(options).chain(&["--", "./program"]);
    workspace.symbiosis(arguments.copied()).expect_code(SUCCESS);
    workspace.symbiosis(["fix", "failing.trace", "--runs", "5"]).expect_code(SUCCESS).stdout()
}

/// Two threads replace a token, and both may free the one that was there: in one line, which is called in a loop.
const REPLACED: &str = r#"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *token;

static void pause_a_little(void) { usleep(300); }

static void renew(const char *text) { char *old = token; pause_a_little(); token = strdup(text); free(old); }

static void *worker(void *text) {
    for (int i = 0; i < 4; i++)
        renew(text);
    return NULL;
}

int main(void) {
    pthread_t left, right;
    token = strdup("first");
    pthread_create(&left, NULL, worker, "left");
    pthread_create(&right, NULL, worker, "right");
    pthread_join(left, NULL);
    pthread_join(right, NULL);
    return 0;
}
"#;

/// What was freed twice was the same object: with a lock around each call it is another one. Each call is a section of its
/// own, also where it was inlined.
fn what_is_freed_twice_is_one_object() {
    for level in ["-O0", "-O1"] {
        let answer = fixes_of(&format!("fix-replaced{level}"), REPLACED, (level, &[]));
        let repair = "hold a new mutex for `token` at program.c:11 in renew\n";
        assert!(answer.contains(repair), "{level}: {answer}");
    }
}

/// Each thread gets the address of the variable that counts them.
const COUNTED: &str = r#"
#include <pthread.h>
#include <stdio.h>

#define WORKERS 4

static int started[WORKERS + 1];

static void *work(void *number) {
    started[*(int *)number]++;
    return NULL;
}

int main(void) {
    pthread_t threads[WORKERS];
    for (int i = 0; i < WORKERS; i++)
        pthread_create(&threads[i], NULL, work, &i);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < WORKERS; i++)
        if (started[i] != 1)
            return 1;
    return 0;
}
"#;

/// What the creator changes for the next thread is passed to each by its value.
fn each_thread_gets_a_copy() {
    let answer = fixes_of("fix-counted", COUNTED, ("-O1", &[]));
    let repair =
        "in main, give each thread a copy of `i` of its own (program.c:17): pass its value";
    assert!(answer.contains(repair), "{answer}");
}

/// Who asks for a lock in each round of a loop, with another one held, is alone until the last round.
fn an_order_of_locks_holds_for_all_rounds() {
    let answer = fixes_of("fix-unrolled", UNROLLED, ("-O2", &["--timeout", "1"]));
    let first = answer.lines().find(|line| line.starts_with("repair 1: ")).unwrap_or_default();
    assert!(first.contains("in ship, take `shelf` "), "{answer}");
    assert!(answer.contains("enforced: passed 5 of 5"), "{answer}");
}

/// Two threads count, round after round, with nothing else in their loop.
const ROUNDS: &str = r#"
#include <assert.h>
#include <pthread.h>

static int count;

static void *add(void *rounds) {
    for (int i = 0; i < *(int *)rounds; i++) {
        int before = __atomic_load_n(&count, __ATOMIC_SEQ_CST);
        __atomic_store_n(&count, before + 1, __ATOMIC_SEQ_CST);
    }
    return NULL;
}

int main(void) {
    pthread_t left, right;
    int rounds = 3;
    pthread_create(&left, NULL, add, &rounds);
    pthread_create(&right, NULL, add, &rounds);
    pthread_join(left, NULL);
    pthread_join(right, NULL);
    assert(count == 6);
    return 0;
}
"#;

/// A round that begins ends the one before: a rule that keeps a thread alone until its loop is over is more than the repair, and
/// runs with it say nothing of that.
fn a_rule_lets_others_in_between_rounds() {
    let workspace = Workspace::new("fix-rounds");
    fs::write(workspace.path("program.c"), ROUNDS).expect("the source can be written");
    let compile = ["cc", "-g", "-O1", "-pthread", "program.c", "-o", "program"];
    workspace.symbiosis(compile).expect_code(SUCCESS);
    let record = ["record", "--noise", "--until-failure", "2000", "-o", "failing.trace"];
    let arguments = record.iter().chain(&["--", "./program"]);
    workspace.symbiosis(arguments.copied()).expect_code(SUCCESS);
    let arguments = ["fix", "failing.trace", "--runs", "5", "--avoid", "rule"];
    workspace.symbiosis(arguments).expect_code(SUCCESS);
    let rule = fs::read_to_string(workspace.path("rule")).expect("a rule");
    let sites = |role: &str| -> Vec<String> {
        rule.lines().filter_map(|line| line.strip_prefix(role)).map(str::to_owned).collect()
    };
    assert_eq!(sites("enter ").len(), 1, "{rule}");
    assert!(sites("leave ").contains(&sites("enter ")[0]), "{rule}");
}

/// A thread can be joined once, and not in each round.
fn nobody_is_joined_in_a_loop() {
    let options = ("-O1", &["--detect=use-after-free"][..]);
    let answer = fixes_of("fix-freed-in-a-loop", FREED_IN_A_LOOP, options);
    assert!(answer.contains("repair 1: hold `lock` from "), "{answer}");
    assert!(!answer.contains("join "), "{answer}");
}

/// With a repair of one of two bugs the program goes on to fail for the other one. The repair is right all the same, and what is
/// left is told.
fn a_repair_of_one_of_two_bugs_is_not_refused_for_the_other() {
    let workspace = Workspace::new("fix-two-bugs");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/two_counts.c");
    fs::copy(source, workspace.path("program.c")).expect("the source can be copied");
    workspace
        .symbiosis(["cc", "-g", "-O1", "-pthread", "program.c", "-o", "program"])
        .expect_code(SUCCESS);
    let record = ["record", "--noise", "--until-failure", "5000", "--failures", "16", "-q"];
    let record = record.into_iter().chain(["-o", "failing.trace", "--", "./program"]);
    workspace.symbiosis(record).expect_code(SUCCESS);
    let loses_packets = |trace: &String| {
        let manifest = fs::read_to_string(workspace.path(trace).join("manifest.json"));
        manifest.is_ok_and(|manifest| manifest.contains("in.packets == 6"))
    };
    let traces = (1..=16).map(|number| format!("failing-{number}.trace")).filter(loses_packets);
    let mut answers = traces.map(|trace| -> Value {
        let answer = workspace.symbiosis(["fix", &trace, "--format", "json"]);
        serde_json::from_str(&answer.stdout()).expect("an answer in JSON")
    });
    // In some of them bytes are not lost as well.
    let fixes = answers.find(|fixes| !fixes["others"].is_null());
    let fixes = fixes.expect("a run in which both bugs strike");
    let repairs = fixes["repairs"].as_array().expect("repairs");
    assert!(!repairs.is_empty(), "{fixes}");
    for repair in repairs {
        assert_eq!(strings(&repair["variables"]), ["in.packets"], "{fixes}");
    }
    let number = |of: &Value, name: &str| of[name].as_u64().unwrap_or_default();
    let [scheduled, noisy] = ["replay", "noisy_replay"].map(|name| &repairs[0]["checks"][name]);
    for replays in [scheduled, noisy] {
        let known = number(replays, "passed") + number(replays, "failed_otherwise");
        assert_eq!(known, number(replays, "runs"), "{fixes}");
    }
    assert!(number(scheduled, "failed_otherwise") > 0, "{fixes}");
    let other = &fixes["others"][0];
    assert!(other["cause"].as_str().is_some_and(|cause| cause.contains("`in.bytes`")), "{fixes}");
    assert!(number(other, "recorded_runs") > 0, "{fixes}");
}

/// One run fails in a new way: the next one behind which there is a file of this name.
const NEW_FAILURE: &str = r#"
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
static int packets, sealed;
static void *receive(void *argument) {
    for (int i = 0; i < 3; i++)
        packets++;
    __atomic_store_n(&sealed, 1, __ATOMIC_SEQ_CST);
    return argument;
}
int main(void) {
    pthread_t threads[2];
    int looks = rename("look", "looked") == 0;
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, receive, NULL);
    int seen = looks ? __atomic_load_n(&sealed, __ATOMIC_SEQ_CST) : 1;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert(packets == 6);
    assert(seen == 1);
    return 0;
}
"#;

/// A failure that the recorded program does not have may be the repair's doing, however far from the recorded cause it is.
fn a_repair_is_refused_for_what_the_recorded_program_does_not_do() {
    let workspace = Workspace::new("fix-new-failure");
    fs::write(workspace.path("program.c"), NEW_FAILURE).expect("the source can be written");
    workspace
        .symbiosis(["cc", "-g", "-O1", "-pthread", "program.c", "-o", "program"])
        .expect_code(SUCCESS);
    let record = ["record", "--noise", "--until-failure", "3000", "-o", "failing.trace"];
    workspace.symbiosis(record.into_iter().chain(["--", "./program"])).expect_code(SUCCESS);
    let fix = || -> Value {
        let fix = ["fix", "failing.trace", "--runs", "3", "--format", "json"];
        let answer = workspace.symbiosis(fix).expect_code(SUCCESS);
        serde_json::from_str(&answer.stdout()).expect("an answer in JSON")
    };
    let before = fix();
    fs::write(workspace.path("look"), "").expect("a file can be written");
    let fixes = fix();
    assert!(workspace.path("looked").exists(), "{fixes}");
    assert!(fixes["refused"].as_u64() > before["refused"].as_u64(), "{before} {fixes}");
    assert!(fixes["others"].is_null(), "{fixes}");
}

/// Solving this one takes minutes.
const SLOW: &str = "shards";
/// Every schedule of this one fails: what is said then has a test of its own.
const HOPELESS: &str = "always";

/// The sources of the buggy programs, by the name of their folder.
fn annotated() -> Vec<(String, PathBuf, Annotations)> {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/programs");
    let mut found = Vec::new();
    for entry in fs::read_dir(programs).expect("the fixtures can be listed") {
        let folder = entry.expect("a directory entry").path();
        for source in ["buggy.c", "buggy.cc"].map(|name| folder.join(name)) {
            let Ok(text) = fs::read_to_string(&source) else { continue };
            let annotations = annotations::parse(&text)
                .unwrap_or_else(|error| panic!("{}: {error}", source.display()));
            let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
            let name = name.unwrap_or_default();
            if name != HOPELESS && name != SLOW {
                found.push((name, source, annotations));
            }
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut trials: Vec<Trial> = annotated()
        .into_iter()
        .map(|(name, source, annotations)| {
            let test = format!("{name}::the_first_repair_is_acceptable");
            Trial::test(test, move || -> Result<(), Failed> {
                also_on_other_runs(|ending| first_repair(&name, &source, &annotations, ending));
                Ok(())
            })
        })
        .collect();
    trials.push(Trial::test("always::nothing_is_offered", || {
        nothing_for_a_bug_without_schedule();
        Ok(())
    }));
    trials.push(Trial::test("time::goes_for_runs_too", || {
        the_time_goes_for_runs_too();
        Ok(())
    }));
    trials.push(Trial::test("rounds::an_order_of_locks_holds_for_all", || {
        an_order_of_locks_holds_for_all_rounds();
        Ok(())
    }));
    trials.push(Trial::test("rounds::others_get_in_between", || {
        a_rule_lets_others_in_between_rounds();
        Ok(())
    }));
    trials.push(Trial::test("rounds::nobody_is_joined_in_each", || {
        nobody_is_joined_in_a_loop();
        Ok(())
    }));
    trials.push(Trial::test("rounds::each_thread_gets_a_copy", || {
        each_thread_gets_a_copy();
        Ok(())
    }));
    trials.push(Trial::test("rounds::what_is_freed_twice_is_one_object", || {
        what_is_freed_twice_is_one_object();
        Ok(())
    }));
    trials.push(Trial::test("two_bugs::a_repair_of_one_is_not_refused_for_the_other", || {
        a_repair_of_one_of_two_bugs_is_not_refused_for_the_other();
        Ok(())
    }));
    trials.push(Trial::test("two_bugs::a_new_failure_is_not_the_other_one", || {
        a_repair_is_refused_for_what_the_recorded_program_does_not_do();
        Ok(())
    }));
    libtest_mimic::run(&arguments, trials).exit_code()
}
