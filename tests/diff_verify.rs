//! `symbiosis diff` and `symbiosis verify`, live: two runs of one bug have one cause, those of two bugs
//! have not; the buggy program still fails in the same way, and in the fixed twin the order of the
//! cause is no longer possible.

use crate::annotations::Annotations;
use crate::workspace::Workspace;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const SUCCESS: i32 = 0;
/// Not the same cause; still fails.
const DIFFERS: i32 = 10;
const UNDECIDED: i32 = 12;
const HARMLESS: i32 = 13;

fn source(name: &str, variant: &str) -> PathBuf {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let rooms = ["families", "programs"].map(|room| fixtures.join(room).join(name));
    let files = rooms.iter().map(|folder| folder.join(variant).with_extension("c"));
    files.into_iter().find(|file| file.exists()).expect("a fixture of this name")
}

/// Compiles a variant of a fixture to a program of the variant's name.
fn compile(workspace: &Workspace, name: &str, variant: &str) {
    // Schedules name places by their files: the twins have to be of one name.
    fs::copy(source(name, variant), workspace.path("program.c")).expect("a copy of the source");
    let arguments = ["cc", "-g", "-O1", "-pthread", "program.c", "-o", variant];
    workspace.symbiosis(arguments).expect_code(SUCCESS);
}

fn record(workspace: &Workspace, name: &str, trace: &str) {
    let text = fs::read_to_string(source(name, "buggy")).expect("the source can be read");
    let annotations: Annotations =
        crate::annotations::parse(&text).expect("well-formed annotations");
    let mut arguments = vec!["record", "--until-failure", "3000"];
    if !annotations.record.iter().any(|option| option == "--timeout") {
        arguments.extend(["--timeout", "60"]);
    }
    if annotations.noise {
        arguments.push("--noise");
    }
    arguments.extend(annotations.record.iter().map(String::as_str));
    arguments.extend(["-o", trace, "--", "./buggy"]);
    workspace.symbiosis(arguments).expect_code(SUCCESS);
}

#[test]
fn two_runs_of_one_bug_have_one_cause_and_those_of_two_bugs_have_not() {
    let workspace = Workspace::new("diff");
    compile(&workspace, "trap", "buggy");
    record(&workspace, "trap", "one.trace");
    record(&workspace, "trap", "two.trace");
    let same = workspace.symbiosis(["diff", "one.trace", "two.trace"]).expect_code(SUCCESS);
    assert!(same.stdout().starts_with("the same cause\n"), "{}", same.describe());
    compile(&workspace, "barrier", "buggy");
    record(&workspace, "barrier", "other.trace");
    let other = ["diff", "one.trace", "other.trace", "--format", "json"];
    let other = workspace.symbiosis(other).expect_code(DIFFERS);
    let other: Value = serde_json::from_str(&other.stdout()).expect("JSON");
    assert_eq!(other["same"], false);
    let pattern = other["differences"].as_array().into_iter().flatten();
    let pattern = pattern.filter(|difference| difference["what"] == "pattern").collect::<Vec<_>>();
    assert_eq!(pattern[0]["sides"], serde_json::json!(["atomicity", "order"]));
}

/// Verifies both programs of a fixture against the buggy one's trace.
fn verify(name: &str, how: &str) {
    let workspace = Workspace::new(&format!("verify-{name}"));
    compile(&workspace, name, "buggy");
    record(&workspace, name, "failing.trace");
    let buggy = ["verify", "failing.trace", "--program", "buggy", "--keep", "again.trace"];
    let buggy = workspace.symbiosis(buggy).expect_code(DIFFERS);
    assert!(buggy.stdout().starts_with("still fails in the same way: "), "{}", buggy.describe());
    // The run that shows it is a trace like any other.
    workspace.symbiosis(["diff", "failing.trace", "again.trace"]).expect_code(SUCCESS);
    compile(&workspace, name, "fixed");
    let fixed =
        ["verify", "failing.trace", "--program", "fixed", "--noisy", "5", "--format", "json"];
    let fixed = workspace.symbiosis(fixed).expect_code(SUCCESS);
    let fixed: Value = serde_json::from_str(&fixed.stdout()).expect("JSON");
    assert_eq!(fixed["verdict"], "no-longer-possible");
    assert_eq!(fixed["failed_runs"], 0);
    assert!(fixed["asked_runs"].as_u64() > Some(0));
    let reason = fixed["reason"].as_str().unwrap_or_default();
    assert!(reason.contains(how), "{reason}");
}

#[test]
fn a_lock_that_is_kept_rules_the_cause_out() {
    verify("trap", "`lock` is held on both sides");
}

#[test]
fn a_new_lock_rules_the_cause_out() {
    verify("bank", "total_lock` is held on both sides");
}

/// Of a thread that is cancelled in a call the log may look as if the call had returned: then the handler's lock is not seen, in
/// one run of six.
#[test]
fn a_lock_that_a_cleanup_handler_takes_rules_the_cause_out() {
    verify("cancel_read", "`lock` is held on both sides");
}

#[test]
fn a_write_that_comes_earlier_rules_the_cause_out() {
    verify("barrier", "synchronisation rules them out");
}

/// The function that wrote it is still there, and a run has done all that it does.
#[test]
fn a_write_that_came_into_another_function_rules_the_cause_out() {
    verify("once", "synchronisation rules them out");
}

/// The places of the failing schedule are named by their file, which the patch has given another name: a thread that is to come to
/// one is not taken to wait too long.
#[test]
fn a_place_that_is_gone_is_not_waited_for() {
    let workspace = Workspace::new("verify-renamed");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/families/std_semaphore");
    for (source, program) in [("buggy.cc", "buggy"), ("fixed.cc", "fixed")] {
        let source = folder.join(source);
        let source = source.to_str().expect("a path in UTF-8");
        let arguments = ["c++", "-std=c++20", "-g", "-O1", "-pthread", source, "-o", program];
        workspace.symbiosis(arguments).expect_code(SUCCESS);
    }
    let until = ["record", "--noise", "--until-failure", "3000", "--timeout", "60"];
    let record = until.into_iter().chain(["-o", "failing.trace", "--", "./buggy"]);
    workspace.symbiosis(record).expect_code(SUCCESS);
    let fixed = ["verify", "failing.trace", "--program", "fixed", "--noisy", "5"];
    let fixed = workspace.symbiosis(fixed).expect_code(SUCCESS);
    assert!(fixed.stdout().contains(" 0 failed"), "{}", fixed.describe());
}

/// A pipe or an event counter is called by the line where it is made, which is another one now.
#[test]
fn a_post_that_comes_later_rules_the_cause_out() {
    verify("event_counter", "synchronisation rules them out");
}

/// Who sees the one value without the other one waits again, and has to give the lock back for that.
#[test]
fn a_thread_that_waits_again_is_made_to_have_the_order() {
    let workspace = Workspace::new("verify-waits-again");
    compile(&workspace, "c11_threads", "buggy");
    record(&workspace, "c11_threads", "failing.trace");
    compile(&workspace, "c11_threads", "fixed");
    let fixed = ["verify", "failing.trace", "--program", "fixed", "--noisy", "5"];
    let fixed = workspace.symbiosis(fixed).expect_code(HARMLESS);
    assert!(fixed.stdout().starts_with("no longer harmful: "), "{}", fixed.describe());
}

/// Who sees half of what is written looks again, for as long as the failing schedule holds the writer back: such a run has not
/// failed.
#[test]
fn a_thread_that_looks_again_while_it_is_held_up_has_not_failed() {
    let workspace = Workspace::new("verify-looks-again");
    compile(&workspace, "atomic_orders", "buggy");
    record(&workspace, "atomic_orders", "failing.trace");
    compile(&workspace, "atomic_orders", "fixed");
    let fixed = ["verify", "failing.trace", "--program", "fixed", "--noisy", "5"];
    let fixed = workspace.symbiosis(fixed);
    assert!(fixed.stdout().contains(" 0 failed"), "{}", fixed.describe());
}

/// In all runs that pass, the limit was there before the thread gave up: that rules the order out along their paths, with the
/// program that was recorded as well.
#[test]
fn an_answer_that_the_recorded_program_gives_as_well_is_none() {
    let workspace = Workspace::new("verify-control");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/bounded_wait.c");
    let source = source.to_str().expect("a path in UTF-8");
    let arguments = ["cc", "-g", "-O1", "-pthread", source, "-o", "program"];
    workspace.symbiosis(arguments).expect_code(SUCCESS);
    fs::write(workspace.path("slow"), "").expect("a file");
    let record = ["record", "--until-failure", "20", "-o", "failing.trace", "--", "./program"];
    workspace.symbiosis(record).expect_code(SUCCESS);
    fs::remove_file(workspace.path("slow")).expect("no file");
    let runs = ["--scheduled", "0", "--noisy", "4", "--timeout", "6"];
    let verify = ["verify", "failing.trace", "--program", "program"].into_iter().chain(runs);
    let verify = workspace.symbiosis(verify);
    // Of the runs that it takes then one may fail.
    assert!([UNDECIDED, DIFFERS].contains(&verify.code()), "{}", verify.describe());
}

#[test]
fn locks_in_one_order_rule_the_circle_out() {
    verify("deadlock_mutex", "`stock` before `orders`");
}

#[test]
fn a_broadcast_under_the_mutex_rules_the_missed_wakeup_out() {
    verify("stolen_wakeup", "written under `lock` and signalled afterwards");
}

/// What no run shows is not claimed, and a patch that changes lines but not the bug is no fix.
#[test]
fn a_patch_that_does_not_help_is_not_taken_for_one_that_does() {
    let workspace = Workspace::new("verify-no-fix");
    compile(&workspace, "trap", "buggy");
    record(&workspace, "trap", "failing.trace");
    let text = fs::read_to_string(workspace.path("program.c")).expect("the source");
    let patched = text.replace("pthread_mutex_lock(&lock);", "pthread_mutex_lock(&lock); taken++;");
    let patched = patched.replacen("static ", "static int taken;\nstatic ", 1);
    assert_ne!(patched, text);
    fs::write(workspace.path("program.c"), patched).expect("the source can be written");
    let arguments = ["cc", "-g", "-O1", "-pthread", "program.c", "-o", "patched"];
    workspace.symbiosis(arguments).expect_code(SUCCESS);
    let verify =
        ["verify", "failing.trace", "--program", "patched", "--scheduled", "0", "--noisy", "0"];
    let answer = workspace.symbiosis(verify).expect_code(UNDECIDED);
    assert!(answer.stdout().starts_with("undecided: "), "{}", answer.describe());
    // The failing schedule finds its places again.
    let verify = ["verify", "failing.trace", "--program", "patched", "--noisy", "0"];
    let answer = workspace.symbiosis(verify).expect_code(DIFFERS);
    assert!(answer.stdout().contains("under the failing schedule failed"), "{}", answer.describe());
}

/// Verifies patches of a program whose failing run has no passing schedule along its own paths: what patch is
/// what macro, and for the one that helps what the answer says of it. Gives the exit code for the one that does not.
fn verify_patches(name: &str, helps: (&str, &str), does_not: Option<&str>) -> Option<i32> {
    let workspace = Workspace::new(&format!("verify-{name}"));
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let source = programs.join(name).with_extension("c");
    fs::copy(source, workspace.path("program.c")).expect("a copy of the source");
    let compile = |program: &str, patch: &str| {
        let patch = format!("-D{patch}");
        let arguments = ["cc", "-g", "-O1", "-pthread", &patch, "program.c", "-o", program];
        workspace.symbiosis(arguments).expect_code(SUCCESS);
    };
    compile("buggy", "NO_PATCH");
    let until = ["record", "--noise", "--until-failure", "3000", "--timeout", "60"];
    let record = until.into_iter().chain(["-o", "failing.trace", "--", "./buggy"]);
    workspace.symbiosis(record).expect_code(SUCCESS);
    let verify = |program: &str| {
        workspace.symbiosis(["verify", "failing.trace", "--program", program, "--noisy", "5"])
    };
    let buggy = verify("buggy").expect_code(DIFFERS);
    assert!(buggy.stdout().starts_with("still fails in the same way: "), "{}", buggy.describe());
    compile("fixed", helps.0);
    let fixed = verify("fixed").expect_code(SUCCESS);
    assert!(fixed.stdout().starts_with("no longer possible: "), "{}", fixed.describe());
    assert!(fixed.stdout().contains(helps.1), "{}", fixed.describe());
    let does_not = does_not.map(|patch| {
        compile("patched", patch);
        let patched = verify("patched");
        assert!(!patched.stdout().starts_with("no longer possible"), "{}", patched.describe());
        patched.code()
    });
    // The regression test says the same of the cause.
    workspace.symbiosis(["test-case", "failing.trace", "-o", "case"]).expect_code(SUCCESS);
    let readme = fs::read_to_string(workspace.path("case/README.md")).expect("it has a README");
    let told = buggy.stdout();
    let cause = told.lines().find_map(|line| line.trim().strip_prefix("the recorded cause: "));
    let cause = cause.expect("it says the cause");
    assert!(readme.contains(&format!("{cause}.")), "{cause}: {readme}");
    does_not
}

/// The accesses of the cause meet in half a million ways, of which the lock rules all out, or nearly all.
#[test]
fn a_lock_in_a_loop_rules_the_cause_out_and_one_round_without_it_does_not() {
    let helps = ("LOCKED", "`lock` is held on both sides");
    assert_eq!(verify_patches("visitors", helps, Some("ONCE_WITHOUT")), Some(DIFFERS));
}

/// In five runs of six the one thread sees what the other one has done and does nothing. That says nothing, and others are
/// asked.
#[test]
fn runs_that_say_nothing_are_passed_over_for_others() {
    let workspace = Workspace::new("verify-seldom");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/seldom.c");
    fs::copy(source, workspace.path("program.c")).expect("a copy of the source");
    for (program, patch) in [("buggy", "-DNO_PATCH"), ("fixed", "-DLOCKED")] {
        let arguments = ["cc", "-g", "-O1", "-pthread", patch, "program.c", "-o", program];
        workspace.symbiosis(arguments).expect_code(SUCCESS);
    }
    let until = ["record", "--noise", "--until-failure", "3000", "-o", "failing.trace"];
    workspace.symbiosis(until.into_iter().chain(["--", "./buggy"])).expect_code(SUCCESS);
    let verify = ["verify", "failing.trace", "--program", "fixed", "--scheduled", "0"];
    let fixed = workspace.symbiosis(verify).expect_code(SUCCESS);
    assert!(fixed.stdout().starts_with("no longer possible: "), "{}", fixed.describe());
}

/// No two threads make these accesses at once any more.
#[test]
fn a_thread_that_is_joined_before_rules_the_cause_out() {
    verify_patches("early_sum", ("JOINED", "synchronisation rules them out"), None);
    verify("freed_member", "synchronisation rules them out");
}

/// Several threads go on to do what made the old program fail, and do no harm by it; the unpatched program is told from
/// that also where it passed when it was asked, by making it fail.
#[test]
fn an_order_that_can_still_come_up_is_forced_on_the_new_program() {
    const HARMLESS: i32 = 13;
    let workspace = Workspace::new("verify-forced");
    compile(&workspace, "settings", "buggy");
    record(&workspace, "settings", "failing.trace");
    compile(&workspace, "settings", "fixed");
    let fixed = ["verify", "failing.trace", "--program", "fixed", "--noisy", "5"];
    let fixed = workspace.symbiosis(fixed).expect_code(HARMLESS);
    assert!(fixed.stdout().starts_with("no longer harmful: "), "{}", fixed.describe());
    assert!(fixed.stdout().contains("  made to have the order: "), "{}", fixed.describe());

    let workspace = Workspace::new("verify-unpatched");
    compile(&workspace, "trap", "buggy");
    record(&workspace, "trap", "failing.trace");
    let few = ["--scheduled", "0", "--noisy", "1"];
    let answers: Vec<i32> = (0..3)
        .map(|_| {
            let arguments = ["verify", "failing.trace", "--program", "buggy"].into_iter();
            workspace.symbiosis(arguments.chain(few)).code()
        })
        .collect();
    // A run that was disturbed may leave it open, and none may accept it.
    assert!(answers.iter().all(|code| [DIFFERS, UNDECIDED].contains(code)), "{answers:?}");
    assert!(answers.contains(&DIFFERS), "{answers:?}");
}

#[test]
fn one_atomic_step_rules_a_lost_update_out() {
    let helps = ("ATOMIC", "references` is looked at and changed in one step");
    verify_patches("references", helps, Some("LATE"));
}

#[test]
fn one_section_rules_a_second_maker_out_although_only_one_thread_makes_something() {
    verify_patches("connection", ("LOCKED", "`lock` is held on both sides"), None);
}

/// The jobs are told otherwise than the end is, about which the cause is.
#[test]
fn what_is_told_to_one_thread_says_nothing_about_what_is_told_to_all() {
    let workspace = Workspace::new("verify-stopped");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/stopped_workers.c");
    fs::copy(source, workspace.path("program.c")).expect("a copy of the source");
    for (program, patch) in [("buggy", "-DNO_PATCH"), ("fixed", "-DFIXED")] {
        let arguments = ["cc", "-g", "-O1", "-pthread", patch, "program.c", "-o", program];
        workspace.symbiosis(arguments).expect_code(SUCCESS);
    }
    let until = ["record", "--noise", "--until-failure", "3000", "--timeout", "3"];
    let record = until.into_iter().chain(["-o", "failing.trace", "--", "./buggy"]);
    workspace.symbiosis(record).expect_code(SUCCESS);
    let verify =
        |program: &str| workspace.symbiosis(["verify", "failing.trace", "--program", program]);
    let fixed = verify("fixed").expect_code(SUCCESS);
    assert!(fixed.stdout().starts_with("no longer possible: "), "{}", fixed.describe());
    let buggy = verify("buggy").expect_code(DIFFERS);
    assert!(buggy.stdout().starts_with("still fails in the same way: "), "{}", buggy.describe());
}

/// Where runs of the new program say nothing but that none failed, the recorded program is run as often, and says what that
/// is worth.
#[test]
fn what_no_failure_is_worth_is_said_by_the_recorded_program() {
    let workspace = Workspace::new("verify-beside");
    compile(&workspace, "trap", "buggy");
    record(&workspace, "trap", "failing.trace");
    fs::write(workspace.path("other.c"), "int main(void) { return 0; }\n").expect("a source");
    workspace.symbiosis(["cc", "-g", "other.c", "-o", "other"]).expect_code(SUCCESS);
    // The recorded program is taken from the trace.
    fs::remove_file(workspace.path("buggy")).expect("it was there");
    let verify = ["verify", "failing.trace", "--program", "other", "--noisy", "5"];
    let json = verify.into_iter().chain(["--format", "json"]);
    let answer = workspace.symbiosis(json).expect_code(UNDECIDED);
    let value: Value = serde_json::from_str(&answer.stdout()).expect("JSON");
    let number = |path: &str| value.pointer(path).and_then(Value::as_u64);
    let [runs, failed] =
        ["runs", "failed"].map(|name| number(&format!("/recorded_program/{name}")));
    assert!(failed > Some(0) && failed <= runs, "{}", answer.describe());
    assert!(number("/noisy_runs") >= Some(5), "{}", answer.describe());
}

/// The time that a run is given may be long; one that waits for ever is not waited for.
#[test]
fn a_run_that_hangs_is_ended_before_its_time_is_up() {
    let workspace = Workspace::new("verify-hangs");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/never_told.c");
    let source = source.to_str().expect("a path in UTF-8");
    workspace.symbiosis(["cc", "-g", "-pthread", source, "-o", "program"]).expect_code(SUCCESS);
    let record = ["record", "--timeout", "1", "-o", "failing.trace", "--", "./program", "never"];
    workspace.symbiosis(record);
    workspace.symbiosis(["solve", "failing.trace", "--no-replay"]);
    let begun = Instant::now();
    let under_noise = ["--scheduled", "0", "--noisy", "1"];
    let verify = ["verify", "failing.trace", "--program", "./program"];
    let outcome = workspace.symbiosis(verify.into_iter().chain(under_noise)).expect_code(DIFFERS);
    assert!(outcome.stdout().contains("1 failed"), "{}", outcome.describe());
    let taken = begun.elapsed();
    assert!(taken < Duration::from_secs(9), "{taken:?}: {}", outcome.describe());
}

/// Along the paths of a failing run alone, the idle worker beside it may be taken for what hangs.
#[test]
fn a_run_that_fails_again_is_compared_by_what_the_program_does() {
    let workspace = Workspace::new("verify-idle");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/idle_beside_latch.c");
    fs::copy(source, workspace.path("program.c")).expect("a copy of the source");
    let arguments = ["cc", "-g", "-O1", "-pthread", "program.c", "-o", "buggy"];
    workspace.symbiosis(arguments).expect_code(SUCCESS);
    let record = ["record", "--noise", "--until-failure", "3000", "--timeout", "5"];
    let record = record.into_iter().chain(["-o", "failing.trace", "--", "./buggy"]);
    workspace.symbiosis(record).expect_code(SUCCESS);
    let verify =
        ["verify", "failing.trace", "--program", "buggy", "--scheduled", "0", "--noisy", "2"];
    for _ in 0..4 {
        let answer = workspace.symbiosis(verify);
        assert!(!answer.stdout().starts_with("fails, in another way"), "{}", answer.describe());
    }
}

/// Runs of a program with one of two bugs mended fail by the other one, which says nothing against the patch.
#[test]
fn a_patch_of_one_of_two_bugs_is_judged_by_its_own() {
    let workspace = Workspace::new("verify-two-bugs");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/two_bugs.c");
    fs::copy(source, workspace.path("program.c")).expect("a copy of the source");
    let options = [("buggy", "-DNONE"), ("pages", "-DPAGES_FIXED"), ("tray", "-DTRAY_FIXED")];
    for (program, mended) in options {
        let arguments = ["cc", "-g", "-O1", "-pthread", mended, "program.c", "-o", program];
        workspace.symbiosis(arguments).expect_code(SUCCESS);
    }
    let record = ["record", "--noise", "--until-failure", "9000", "--failures", "40", "-q"];
    let record = record.into_iter().chain(["-o", "failing.trace", "--", "./buggy"]);
    workspace.symbiosis(record).expect_code(SUCCESS);
    // Where both struck, the cause may be the other one's.
    let of = |assertion: &str, variable: &str| {
        let fails_so = |trace: &String| {
            let manifest = fs::read_to_string(workspace.path(trace).join("manifest.json"));
            manifest.is_ok_and(|manifest| manifest.contains(assertion))
                && workspace.symbiosis(["solve", trace]).stdout().contains(variable)
        };
        let mut traces = (1..=40).map(|number| format!("failing-{number}.trace"));
        traces.find(fails_so).expect("a trace of each bug")
    };
    let (pages, tray) = (of("pages == 4", "wrote `pages`"), of("tray == 0", "updated `tray`"));
    let verify = |trace: &str, program: &str| {
        let arguments =
            ["verify", trace, "--program", program, "--format", "json", "--noisy", "200"];
        let answer = workspace.symbiosis(arguments);
        serde_json::from_str::<Value>(&answer.stdout()).expect("JSON")
    };
    for (trace, program) in [(&pages, "pages"), (&tray, "tray")] {
        let right = verify(trace, program);
        assert_eq!(right["verdict"], "no-longer-possible", "{right}");
        // The other bug strikes in few runs, and in none by chance.
        let is_known = right["others"][0]["recorded_runs"].as_u64() > Some(0);
        assert!(right["failed_runs"] == 0 || is_known, "{right}");
    }
    for (trace, program) in [(&pages, "tray"), (&tray, "pages")] {
        assert_eq!(verify(trace, program)["verdict"], "still-fails");
    }
}

/// A failing run of a program with two bugs, one of which fails this check, is told by this variable. The patch of that bug is
/// accepted, though runs go on to fail for the other one.
fn verify_one_of_two(name: &str, patch: &str, (check, variable): (&str, &str)) {
    let workspace = Workspace::new(&format!("verify-{name}"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name);
    fs::copy(source.with_extension("c"), workspace.path("program.c")).expect("a copy");
    for (program, mended) in [("buggy", "-DNONE"), ("patched", patch)] {
        let arguments = ["cc", "-g", "-O1", "-pthread", mended, "program.c", "-o", program];
        workspace.symbiosis(arguments).expect_code(SUCCESS);
    }
    let record = ["record", "--noise", "--until-failure", "9000", "--failures", "40", "-q"];
    let record = record.into_iter().chain(["-o", "failing.trace", "--", "./buggy"]);
    workspace.symbiosis(record).expect_code(SUCCESS);
    let fails_so = |trace: &String| {
        let manifest = fs::read_to_string(workspace.path(trace).join("manifest.json"));
        manifest.is_ok_and(|manifest| manifest.contains(check))
            && workspace.symbiosis(["solve", trace]).stdout().contains(variable)
    };
    let mut traces = (1..=40).map(|number| format!("failing-{number}.trace"));
    let trace = traces.find(fails_so).expect("a trace of this bug");
    let verify = ["verify", &trace, "--program", "patched", "--noisy", "150", "--format", "json"];
    let answer = workspace.symbiosis(verify);
    let found: Value = serde_json::from_str(&answer.stdout()).expect("JSON");
    assert_eq!(found["verdict"], "no-longer-possible", "{found}");
    assert!(found["failed_runs"].as_u64() > Some(0), "{found}");
    assert!(found["others"][0]["recorded_runs"].as_u64() > Some(0), "{found}");
}

/// With a patch the compiler puts lines of the other bug elsewhere, so that its fingerprint is another one in the recorded program.
#[test]
fn the_other_bug_is_known_in_the_recorded_program_where_the_patch_moved_its_lines() {
    let packets = ("in.packets == 6", "wrote `in.packets`");
    verify_one_of_two("two_counts", "-DPACKETS_FIXED", packets);
}

/// The log of a run of the recorded program alone tells it by the recorded cause.
#[test]
fn the_other_bug_is_known_in_the_recorded_program_by_runs_of_it() {
    verify_one_of_two("closed_log", "-DLINES_FIXED", ("written == 4", "wrote `written`"));
}

/// Where the recorded program crashes and the new one hangs, the runs that hang are ended soon enough to see what both have.
#[test]
fn a_hang_that_is_left_beside_a_mended_crash_is_known() {
    let workspace = Workspace::new("verify-crash-and-hang");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/crash_and_hang.c");
    fs::copy(source, workspace.path("program.c")).expect("a copy of the source");
    for (program, mended) in [("buggy", "-DNONE"), ("table", "-DTABLE_FIXED")] {
        let arguments = ["cc", "-g", "-O1", "-pthread", mended, "program.c", "-o", program];
        workspace.symbiosis(arguments).expect_code(SUCCESS);
    }
    let crashed = |number: u32| {
        let trace = format!("failing-{number}.trace");
        let record = ["record", "--noise", "--until-failure", "3000", "-q", "--timeout", "1"];
        let record = record.into_iter().chain(["-o", &trace, "--", "./buggy"]);
        workspace.symbiosis(record).expect_code(SUCCESS);
        let manifest = fs::read_to_string(workspace.path(&trace).join("manifest.json"));
        manifest.is_ok_and(|manifest| manifest.contains("\"signal\"")).then_some(trace)
    };
    let trace = (0..60).find_map(crashed).expect("a trace of the crash");
    let verify = ["verify", &trace, "--program", "table", "--timeout", "60", "--format", "json"];
    let answer = workspace.symbiosis(verify);
    let found: Value = serde_json::from_str(&answer.stdout()).expect("JSON");
    assert_eq!(found["verdict"], "no-longer-possible", "{found}");
    let left = found["others"][0]["failure"].as_str();
    assert!(left.is_some_and(|left| left.starts_with("deadlock at program.c:")), "{found}");
}
