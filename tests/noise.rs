//! `symbiosis record --noise`, live: the seed is kept, a run under `pct` can be made again, rare
//! failures come up, and a perturbed run is a trace like any other.

use crate::workspace::Workspace;
use std::fs;
use std::path::Path;
use trace_format::{Manifest, Trace};

const SUCCESS: i32 = 0;
const LIMIT: i32 = 12;
const USAGE: i32 = 2;
/// Seconds for one run of a program, which ends in hundredths of one.
const TIME_OUT: &str = "60";

/// A workspace with the fixture's buggy program, `buggy`.
fn compiled(purpose: &str, fixture: &str) -> Workspace {
    let workspace = Workspace::new(&format!("noise-{purpose}"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures/programs")
        .join(fixture)
        .join("buggy.c");
    let source = source.to_str().expect("a path in UTF-8");
    workspace
        .symbiosis(["cc", "-g", "-O1", "-pthread", source, "-o", "buggy"])
        .expect_code(SUCCESS);
    workspace
}

fn manifest(workspace: &Workspace, trace: &str) -> Manifest {
    let trace = Trace::open(workspace.path(trace)).expect("a whole trace");
    trace.manifest().clone()
}

/// Records one run and returns its exit code.
fn record(workspace: &Workspace, noise: &str, seed: u64, trace: &str) -> i32 {
    let seed = seed.to_string();
    let options = ["record", noise, "--seed", &seed, "--timeout", TIME_OUT, "-o", trace];
    workspace.symbiosis(options.iter().chain(&["--", "./buggy"])).code()
}

#[test]
fn the_settings_and_the_seed_are_in_the_manifest_and_on_the_terminal() {
    let workspace = compiled("manifest", "ring");
    let recording = ["record", "--noise=0.25,3", "--seed", "17", "--runs", "2", "-o", "r.trace"];
    let outcome = workspace.symbiosis(recording.iter().chain(&["--", "./buggy"]));
    assert!(outcome.stderr().contains("--noise=random,0.25,3 --seed 18"), "{}", outcome.describe());
    for (trace, seed) in [("r-1.trace", 17), ("r-2.trace", 18)] {
        let manifest = manifest(&workspace, trace);
        assert_eq!(manifest.noise.as_deref(), Some("random,0.25,3"), "{trace}");
        assert_eq!(manifest.seed, Some(seed), "{trace}");
    }
    // Without noise the threads run freely, whatever the environment says.
    workspace.symbiosis(["record", "-o", "plain.trace", "--", "./buggy"]);
    let plain = manifest(&workspace, "plain.trace");
    assert_eq!((plain.noise, plain.seed), (None, None));
}

#[test]
fn a_seed_is_drawn_when_none_is_given() {
    let workspace = compiled("drawn", "ring");
    let seeds: Vec<u64> = (0..3)
        .map(|run| {
            let trace = format!("run{run}.trace");
            workspace.symbiosis(["record", "--noise", "-o", &trace, "--", "./buggy"]);
            manifest(&workspace, &trace).seed.expect("a seed")
        })
        .collect();
    assert!(seeds.iter().any(|seed| *seed != seeds[0]), "{seeds:?}");
}

#[test]
fn what_is_no_noise_is_refused() {
    let workspace = Workspace::new("noise-refused");
    for options in [&["--noise=2"][..], &["--noise=pct,0"], &["--noise=loud"], &["--seed", "1"]] {
        let arguments = std::iter::once(&"record").chain(options).chain(&["--", "/bin/true"]);
        workspace.symbiosis(arguments).expect_code(USAGE);
    }
}

#[test]
fn the_same_seed_gives_the_same_order_under_pct() {
    let workspace = compiled("pct", "ring");
    let order = |seed: u64, name: &str| {
        let code = record(&workspace, "--noise=pct,3,500", seed, name);
        let trace = Trace::open(workspace.path(name)).expect("a whole trace");
        let order = trace.order().expect("the order can be read");
        (code, order.expect("one thread at a time"))
    };
    let (_, first) = order(1, "first.trace");
    assert!(!first.is_empty(), "threads took turns");
    let mut others = 0;
    for seed in 1..=6 {
        let run = order(seed, &format!("a{seed}.trace"));
        assert_eq!(run, order(seed, &format!("b{seed}.trace")), "two runs with the seed {seed}");
        others += usize::from(run.1 != first);
    }
    assert!(others > 0, "all seeds give one order");
}

#[test]
fn a_failure_found_under_pct_comes_again_with_its_seed() {
    let workspace = compiled("again", "ring");
    let search = ["record", "--noise=pct", "--until-failure", "2000", "--timeout", TIME_OUT];
    workspace
        .symbiosis(search.iter().chain(&["-o", "found.trace", "--", "./buggy"]))
        .expect_code(SUCCESS);
    let found = manifest(&workspace, "found.trace");
    let noise = found.noise.expect("the settings");
    let seed = found.seed.expect("the seed");
    record(&workspace, &format!("--noise={noise}"), seed, "again.trace");
    let again = manifest(&workspace, "again.trace");
    let told = |failure: Option<trace_format::Failure>| {
        failure.map(|failure| (failure.kind, failure.thread, failure.message))
    };
    assert!(found.failure.is_some(), "the failing run was kept");
    assert_eq!(told(again.failure), told(found.failure));
}

/// Plain runs fail less than once in a hundred. With noise one in ten does; that six hundred runs
/// do not fail ten times has a chance below one in a million million.
#[test]
fn noise_brings_up_a_rare_failure() {
    let workspace = compiled("rare", "ring");
    let mut seed = 1;
    for _ in 0..10 {
        let left = (600 - seed.min(600)).to_string();
        let first = seed.to_string();
        let search = ["record", "--noise", "--seed", &first, "--until-failure", &left];
        let program = ["--timeout", TIME_OUT, "-o", "found.trace", "--", "./buggy"];
        workspace.symbiosis(search.iter().chain(&program)).expect_code(SUCCESS);
        seed = manifest(&workspace, "found.trace").seed.expect("the seed") + 1;
        fs::remove_dir_all(workspace.path("found.trace")).expect("the trace can be removed");
    }
    // The same number of runs without noise has to do worse.
    let mut plain = 0;
    for _ in 1..seed {
        let code = workspace
            .symbiosis([
                "record",
                "-q",
                "--timeout",
                TIME_OUT,
                "-o",
                "plain.trace",
                "--",
                "./buggy",
            ])
            .code();
        plain += u32::from(code != SUCCESS);
        fs::remove_dir_all(workspace.path("plain.trace")).expect("the trace can be removed");
    }
    assert!(plain <= 1, "{plain} of {} plain runs failed, with noise 10", seed - 1);
}

/// Records until a run passes, and returns its trace.
fn passing(workspace: &Workspace, noise: &str) -> String {
    for seed in 1..200 {
        let trace = format!("pass{seed}.trace");
        if record(workspace, noise, seed, &trace) == SUCCESS {
            return trace;
        }
        fs::remove_dir_all(workspace.path(&trace)).expect("the trace can be removed");
    }
    panic!("no run under {noise} passed");
}

#[test]
fn perturbed_runs_are_executed_without_gaps() {
    for fixture in ["courier", "averages"] {
        let workspace = compiled(&format!("check-{fixture}"), fixture);
        for noise in ["--noise", "--noise=pct"] {
            let trace = passing(&workspace, noise);
            let report = workspace.symbiosis(["check", &trace]).expect_code(SUCCESS);
            assert!(report.stdout().contains(" 0 gaps"), "{noise}: {}", report.describe());
            fs::remove_dir_all(workspace.path(&trace)).expect("the trace can be removed");
        }
    }
}

#[test]
fn a_search_without_success_names_the_seeds_it_tried() {
    let workspace = Workspace::new("noise-none");
    let source = workspace.path("fine.c");
    fs::write(&source, "int main(void) { return 0; }\n").expect("the program can be written");
    workspace.symbiosis(["cc", "fine.c", "-o", "fine"]).expect_code(SUCCESS);
    let search = ["record", "--noise", "--seed", "5", "--until-failure", "3", "--", "./fine"];
    let outcome = workspace.symbiosis(search).expect_code(LIMIT);
    assert!(outcome.stderr().contains("with seeds 5 to 7"), "{}", outcome.describe());
}

/// Gets a signal twice in a millisecond, in code that passes many gates.
const TICKS: &str = "#include <signal.h>\n#include <sys/time.h>\n\
    static volatile int ticks, sum;\n\
    static void tick(int number) { (void)number; ticks++; }\n\
    int main(void) {\n\
    const struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};\n\
    signal(SIGALRM, tick);\n setitimer(ITIMER_REAL, &often, 0);\n\
    while (ticks < 400) sum += ticks;\n\
    setitimer(ITIMER_REAL, &never, 0);\n return 0;\n}\n";

/// A signal waits in single-step mode for a place to be handled at, and a gate keeps the processor's flags.
#[test]
fn signals_that_come_just_before_a_gate_end_no_program() {
    let workspace = Workspace::new("noise-ticks");
    fs::write(workspace.path("ticks.c"), TICKS).expect("written");
    workspace.symbiosis(["cc", "-g", "-O1", "ticks.c", "-o", "ticks"]).expect_code(SUCCESS);
    let often = "--noise=random,0.5,1,100000";
    let command = ["record", often, "--until-failure", "3", "-o", "t.trace", "--", "./ticks"];
    workspace.symbiosis(command).expect_code(LIMIT);
}
