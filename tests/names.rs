//! Names of what the standard library touches on behalf of a C++ program, live.

use crate::workspace::Workspace;
use model::names::outside_of_library;
use model::{EventKind, EventTrace};
use std::collections::BTreeSet;
use std::path::Path;
use symbiosis::pipeline;

const SUCCESS: i32 = 0;

fn record(program: &str, level: &str) -> EventTrace {
    let workspace = Workspace::new(&format!("names-{program}{level}"));
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let path = programs.join(format!("{program}.cc"));
    let path = path.to_str().expect("a path in UTF-8");
    let compile = ["c++", "-std=c++17", "-g", level, "-pthread", path, "-o", "program"];
    workspace.symbiosis(compile).expect_code(SUCCESS);
    let record = ["record", "--timeout", "60", "-o", "run.trace", "--", "./program"];
    workspace.symbiosis(record).expect_code(SUCCESS);
    let loaded = pipeline::load(&workspace.path("run.trace")).expect("the trace can be loaded");
    let execution = pipeline::execute(&loaded.recording).expect("the trace can be executed");
    execution.trace
}

/// The last member that the program has a name for.
fn member(name: &str) -> &str {
    let outside = outside_of_library(name);
    outside.rsplit(['.', '>']).next().unwrap_or(outside)
}

#[test]
fn what_the_library_touches_has_the_names_of_the_program() {
    for level in ["-O0", "-O2"] {
        let trace = record("containers", level);
        let (mut accesses, mut objects) = (BTreeSet::new(), BTreeSet::new());
        for event in &trace.events {
            let name = event.name.as_deref().unwrap_or_default();
            match event.kind {
                EventKind::Read { .. }
                | EventKind::Write { .. }
                | EventKind::ReadModifyWrite { .. } => accesses.insert(member(name).to_owned()),
                EventKind::Lock { .. }
                | EventKind::Unlock { synthetic: false, .. }
                | EventKind::Signal { .. } => objects.insert(member(name).to_owned()),
                _ => false,
            };
        }
        let reads = trace.events.iter().filter(|e| matches!(e.kind, EventKind::Read { .. }));
        let mut reads = reads.filter_map(|event| event.name.as_deref());
        assert!(reads.any(|name| member(name) == "name_"), "{level}: the copied string is read");
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        // What is in a node has no name but its own: a pair's key, an element.
        accesses.retain(|name| name != "first" && name != "front()" && name != "]");
        let expected: BTreeSet<String> = set(&["jobs_", "name_", "posted_", "prices_"]);
        assert_eq!(accesses, expected, "{level}");
        let expected: BTreeSet<String> = set(&["mutex_", "prices_lock_", "ready_"]);
        assert_eq!(objects, expected, "{level}");
    }
}

/// Unoptimised code has each element behind a call, optimised code behind the library's own pointers.
#[test]
fn elements_of_containers_have_the_names_of_the_program() {
    const EITHER: [&str; 2] = ["shop.owned->price", "shop.shared->price"];
    const PLAIN: [&str; 10] = [
        "shop.items[1].price",
        "shop.items.at(i).price",
        "shop.item(2).price",
        "shop.named[..]",
        "shop.numbered[i].price",
        "shop.hashed[..]",
        "shop.listed.back().price",
        "shop.waiting.front().price",
        "shop.items[i].worth()",
        "shop.text[3]",
    ];
    const OPTIMISED: [&str; 3] = ["shop.items[1].price", "shop.named[..]", "shop.hashed[..]"];
    for (level, own) in [("-O0", PLAIN.as_slice()), ("-O1", OPTIMISED.as_slice())] {
        let trace = record("elements", level);
        let written = trace.events.iter().filter(|e| !e.kind.writes().is_empty());
        let names: BTreeSet<&str> = written.filter_map(|event| event.name.as_deref()).collect();
        for expected in own.iter().chain(&EITHER) {
            assert!(names.contains(expected), "{level}: {expected} is not in {names:?}");
        }
        let mut inside = names.iter().filter(|name| name.contains("_M_storage"));
        assert_eq!(inside.next(), None, "{level}");
    }
}

/// The connection is one of UNIX's sockets, whose ends have no addresses.
#[test]
fn what_goes_through_pipes_and_connections_is_written_and_read() {
    let channels = [
        ("early_message", "pipe of early_message.c:21", "ready"),
        ("early_answer", "connection of early_answer.c:40", "requests"),
    ];
    for (program, channel, variable) in channels {
        let workspace = Workspace::new(&format!("names-{program}"));
        let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
        let path = programs.join(format!("{program}.c"));
        let path = path.to_str().expect("a path in UTF-8");
        let compile = ["cc", "-g", "-O1", "-pthread", path, "-o", "program"];
        workspace.symbiosis(compile).expect_code(SUCCESS);
        workspace.symbiosis(["record", "-o", "run.trace", "--", "./program"]);
        let solve = workspace.symbiosis(["solve", "run.trace"]).expect_code(SUCCESS).stdout();
        let cause = format!("cause: t0.1 wrote to the {channel} ");
        let order = format!("before it wrote `{variable}`");
        let steps = [format!("write to {channel} "), format!("read from {channel} ")];
        for part in [cause, order].iter().chain(&steps) {
            assert!(solve.contains(part), "{part}: {solve}");
        }
        assert!(!solve.contains("possible cause"), "{solve}");
        assert_eq!(solve.matches("replay: confirmed").count(), 2, "{solve}");
    }
}

#[test]
fn a_lock_that_a_function_takes_for_others_has_their_word_and_place() {
    for level in ["-O0", "-O2"] {
        let workspace = Workspace::new(&format!("names-wrapped{level}"));
        let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
        let [user, locks] = ["uses_wrapped_locks.c", "wrapped_locks.c"]
            .map(|file| programs.join(file).to_str().expect("a path in UTF-8").to_owned());
        let compile = ["cc", "-g", level, "-pthread", &user, &locks, "-o", "program"];
        workspace.symbiosis(compile).expect_code(SUCCESS);
        let record = ["record", "--timeout", "60", "-o", "run.trace", "--", "./program"];
        workspace.symbiosis(record).expect_code(SUCCESS);
        let loaded = pipeline::load(&workspace.path("run.trace")).expect("the trace is loaded");
        let execution = pipeline::execute(&loaded.recording).expect("the trace is executed");
        let mut seen = BTreeSet::new();
        for event in &execution.trace.events {
            if matches!(event.kind, EventKind::Lock { .. } | EventKind::Unlock { .. }) {
                assert_eq!(event.site().function, "reads", "{level}");
                seen.insert(event.name.as_deref().unwrap_or_default());
            }
        }
        assert_eq!(seen, BTreeSet::from(["*sock->readlock", "*table_lock"]), "{level}");
    }
}

/// Records a program that hangs for certain, and gives what `solve` and `fix` say.
fn hung(program: &str, options: &[&str]) -> [String; 2] {
    let workspace = Workspace::new(&format!("names-{program}{}", options.join("")));
    let source = format!("{}/tests/programs/{program}.cc", env!("CARGO_MANIFEST_DIR"));
    let compile = ["c++", "-std=c++17", "-g", "-pthread", &source, "-o", "program"];
    workspace.symbiosis(compile.iter().chain(options)).expect_code(SUCCESS);
    let record = ["record", "--timeout", "2", "-o", "run.trace", "--", "./program"];
    let recording = workspace.symbiosis(record);
    assert!(recording.code() != SUCCESS, "{}", recording.describe());
    ["solve", "fix"].map(|command| workspace.symbiosis([command, "run.trace"]).stdout())
}

#[test]
fn a_lock_behind_the_programs_own_guard_is_told_where_the_guard_is_made() {
    let text = include_str!("programs/guards.cc");
    let line = |words: &str| text.lines().position(|line| line.contains(words)).expect("there") + 1;
    let (add, flush) = (line("second(log_lock)"), line("second(items_lock)"));
    for options in
        [["-O0", "-DPLAIN"], ["-O1", "-DPLAIN"], ["-O0", "-DVIRTUAL"], ["-O1", "-DVIRTUAL"]]
    {
        let [solved, repaired] = hung("guards", &options);
        let told = solved.lines().next().unwrap_or_default();
        for (lock, line) in [("log_lock", add), ("items_lock", flush)] {
            let at = told
                .split(" waits for ")
                .find(|rest| rest.contains(&format!("(guards.cc:{line})")));
            let named = at
                .is_some_and(|rest| rest.split('`').nth(1).is_some_and(|name| name.contains(lock)));
            assert!(named, "{options:?}: {told}");
        }
        let first = repaired.lines().find(|line| line.starts_with("repair 1")).unwrap_or_default();
        let either = first.contains("in add, take ") || first.contains("in flush, take ");
        assert!(either && !first.contains("this->store."), "{options:?}: {repaired}");
    }
}

#[test]
fn a_condition_behind_the_programs_own_monitor_is_told_where_that_is_used() {
    for level in ["-O0", "-O1"] {
        let [solved, repaired] = hung("monitor", &[level]);
        assert!(solved.contains("in unlock_all"), "{level}: {solved}");
        assert!(repaired.contains("repair 1: in unlock_all, broadcast "), "{level}: {repaired}");
    }
}

/// How the values of a structure that is copied are written: `{2, 1}`.
fn members(value: &str) -> Option<Vec<i64>> {
    let inner = value.strip_prefix('{')?.strip_suffix('}')?;
    inner.split(", ").map(|member| member.parse().ok()).collect()
}

#[test]
fn a_copy_of_several_members_shows_each_of_them() {
    for level in ["-O1", "-O2"] {
        let workspace = Workspace::new(&format!("names-pair{level}"));
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/pair.c");
        let path = path.to_str().expect("a path in UTF-8");
        let compile = ["cc", "-g", level, "-pthread", path, "-o", "program"];
        workspace.symbiosis(compile).expect_code(SUCCESS);
        let record = ["record", "--until-failure", "1000", "-o", "run.trace", "--", "./program"];
        workspace.symbiosis(record).expect_code(SUCCESS);
        let solve = ["solve", "run.trace", "--no-replay", "--format", "json"];
        let answer = workspace.symbiosis(solve).expect_code(SUCCESS);
        let solution = answer.solution();
        let mut copies = solution
            .events
            .iter()
            .filter(|event| event.kind == "read" && event.object.as_deref() == Some("limits"));
        let last = copies.next_back().unwrap_or_else(|| panic!("{}", answer.describe()));
        let values = last.value.as_deref().and_then(members);
        let torn = |values: &Vec<i64>| values.len() == 2 && values[0] != values[1];
        assert!(values.as_ref().is_some_and(torn), "{level}: {:?}", last.value);
    }
}

/// Optimisation would make one of what two branches both begin with, which has a line of neither then.
#[test]
fn what_two_branches_both_do_is_in_its_own_lines() {
    let workspace = Workspace::new("both_ways");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/both_ways.c");
    let text = std::fs::read_to_string(path).expect("the program can be read");
    let line = text.lines().position(|line| line.ends_with("// the branch")).expect("a mark") + 1;
    let compile = ["cc", "-g", "-O1", "-pthread", path, "-o", "program"];
    workspace.symbiosis(compile).expect_code(SUCCESS);
    workspace.symbiosis(["record", "-o", "run.trace", "--", "./program"]).expect_code(SUCCESS);
    let loaded = pipeline::load(&workspace.path("run.trace")).expect("the trace can be loaded");
    let trace = pipeline::execute(&loaded.recording).expect("the trace can be executed").trace;
    let reads = trace.events.iter().filter(|event| matches!(event.kind, EventKind::Read { .. }));
    let lines: Vec<Vec<u32>> =
        reads.map(|event| event.stack.iter().map(|site| site.line).collect()).collect();
    assert_eq!(lines, [[11, u32::try_from(line).expect("a line")]], "{lines:?}");
}
