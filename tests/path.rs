//! The recorded path is the path: in one and the same run every block is also told to a witness, and
//! what the executor walks along the log is compared with that, block by block. The clock is read as often
//! as can be, so that there are readings wherever there can be any.

use crate::workspace::Workspace;
use std::collections::BTreeMap;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::Command;
use symex::ThreadReport;
use trace_format::layout::{RuntimeEvent, tag};

const SUCCESS: i32 = 0;
/// So many blocks may be entered without the log, see docs/trace-format.md.
const UNTOLD: usize = 4;

/// A block: the function's process-wide number, and the block's index.
type Block = (u32, u32);

fn run(command: &mut Command) {
    let output = command.output().expect("the command starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
}

/// A program: its instrumented files, and those that are not.
struct Program {
    instrumented: &'static [&'static str],
    plain: &'static [&'static str],
}

const WAYS: Program = Program { instrumented: &["ways.cc"], plain: &["witness.c"] };
const CALLS: Program =
    Program { instrumented: &["calls.cc", "callees.cc"], plain: &["plain.cc", "witness.c"] };

const SPINS: Program = Program { instrumented: &["spins.c"], plain: &["witness.c"] };
const POLLS: Program = Program { instrumented: &["polls.cc", "polled.cc"], plain: &["witness.c"] };

const RAISES: Program = Program { instrumented: &["raises.c"], plain: &["witness.c"] };

/// Compiles the program with a witness, at `level`.
fn build(workspace: &Workspace, program: &Program, level: &str) {
    let source = |name: &str| -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/path").join(name)
    };
    let flags = ["-c", "-g", level, "-pthread", "-fno-vectorize", "-fno-slp-vectorize"];
    let mut objects = Vec::new();
    for name in program.instrumented {
        let bitcode = workspace.path("module.bc");
        let (clang, standard) = match name.ends_with(".c") {
            true => ("clang", "-std=gnu11"),
            false => ("clang++", "-std=c++17"),
        };
        run(Command::new(clang)
            .args([standard, "-emit-llvm"])
            .args(flags)
            .arg(source(name))
            .arg("-o")
            .arg(&bitcode));
        let bitcode = fs_err::read(bitcode).expect("bitcode");
        let options = instrument::Options { witness: true, ..Default::default() };
        let object = instrument::instrument(&bitcode, &options).expect("instruments");
        objects.push(format!("{name}.o"));
        fs_err::write(workspace.path(&format!("{name}.o")), object).expect("the object is written");
    }
    for name in program.plain {
        let clang = if name.ends_with(".c") { "clang" } else { "clang++" };
        objects.push(format!("{name}.o"));
        run(Command::new(clang)
            .args(flags)
            .arg(source(name))
            .arg("-o")
            .arg(workspace.path(&format!("{name}.o"))));
    }
    let mut arguments = vec!["c++", "-pthread", "-o", "program"];
    arguments.extend(objects.iter().map(String::as_str));
    workspace.symbiosis(arguments).expect_code(SUCCESS);
}

/// What the witness of each thread was told, by the threads' numbers.
fn witnessed(workspace: &Workspace) -> BTreeMap<u64, Vec<Block>> {
    let mut all = BTreeMap::new();
    for serial in 1.. {
        // The file has room for far more than was told.
        let Ok(file) = fs_err::File::open(workspace.path(&format!("witness.{serial}"))) else {
            break;
        };
        let mut file = BufReader::new(file);
        let words = std::iter::from_fn(|| {
            let mut word = [0; 8];
            file.read_exact(&mut word).ok()?;
            let word = u64::from_le_bytes(word);
            Some(((word >> 32) as u32, (word as u32).wrapping_sub(1)))
        });
        all.insert(serial, words.take_while(|block| *block != (0, u32::MAX)).collect());
    }
    all
}

fn walked(workspace: &Workspace) -> Vec<ThreadReport> {
    let loaded = symbiosis::pipeline::load(&workspace.path("run.trace")).expect("a trace");
    let options = symex::Options { keep_path: true, ..Default::default() };
    let mut execution = symex::execute(&loaded.recording, &options).expect("walks");
    let one_by_one = symex::Options { one_by_one: true, ..options };
    let mut other = symex::execute(&loaded.recording, &one_by_one).expect("walks");
    // Paths are long: as they are, not as text.
    let (paths, others) = (take_paths(&mut execution), take_paths(&mut other));
    assert!(paths == others, "one by one the paths are others");
    assert!(format!("{execution:?}") == format!("{other:?}"), "one by one it is something else");
    for (thread, path) in execution.report.threads.iter_mut().zip(paths) {
        thread.path = path;
    }
    execution.report.threads
}

fn take_paths(execution: &mut symex::Execution) -> Vec<Vec<Block>> {
    execution.report.threads.iter_mut().map(|thread| std::mem::take(&mut thread.path)).collect()
}

fn check_entries(workspace: &Workspace, program: &Program) {
    let loaded = symbiosis::pipeline::load(&workspace.path("run.trace")).expect("a trace");
    let reading = tag::RUNTIME << tag::SHIFT | RuntimeEvent::Reading as u32;
    let (single, mut returns) = (program.instrumented.len() == 1, 0);
    let mut known = 0;
    for thread in &loaded.recording.threads {
        let (mut entries, mut path) = (Vec::new(), thread.streams.path().expect("a path"));
        while path(&mut entries).expect("a whole path") {}
        let readings = entries.iter().filter(|&&entry| entry == reading).count();
        assert!(readings > 100, "{}: {readings} readings of the clock", thread.name);
        // Callers and callees know each other, where there are several files.
        let called =
            |entry: &&u32| **entry >> tag::SHIFT == tag::ENTER && **entry & tag::CALLED != 0;
        let back = tag::RETURN << tag::SHIFT | tag::CAME_BACK;
        known += entries.iter().filter(called).count();
        returns += entries.iter().filter(|&&entry| entry == back).count();
    }
    let enough = known > 100 && returns > 100;
    assert!(single || enough, "{known} calls named their callees, {returns} came back");
}

/// How a run ends. `whole`: all threads came to an end that the log shows, so both paths end at one
/// block. Else the walk goes on behind the end of the log as long as it is certain where.
struct End {
    name: &'static str,
    status: i32,
    whole: bool,
}

const PASS: End = End { name: "pass", status: 0, whole: true };
const SIGNALS: End = End { name: "signals", status: 0, whole: true };
const ABORT: End = End { name: "abort", status: 134, whole: true };
const FAULT: End = End { name: "segv", status: 139, whole: true };
const KILL: End = End { name: "kill", status: 137, whole: false };

fn check(program: &Program, end: &End) {
    let End { name: end, status, whole } = *end;
    for level in ["-O0", "-O2"] {
        let workspace = Workspace::new(&format!("path-{}-{end}{level}", program.plain[0]));
        build(&workspace, program, level);
        workspace
            .symbiosis(["record", "--readings=1", "-o", "run.trace", "--", "./program", end])
            .expect_code(status);
        check_entries(&workspace, program);
        let witnessed = witnessed(&workspace);
        let walked = walked(&workspace);
        assert_eq!(witnessed.len(), 2, "{end} {level}: threads");
        assert_eq!(walked.len(), 2, "{end} {level}: threads");
        for (thread, (serial, told)) in walked.iter().zip(&witnessed) {
            let name = format!("{end} {level}, thread {serial}, {}", thread.stopped);
            let same = told.iter().zip(&thread.path).take_while(|(a, b)| a == b).count();
            let ahead = |path: &[Block]| path[same..path.len().min(same + 5)].to_vec();
            // A kill by another thread may come between a choice and its place in the log, when the
            // program does nothing else in between but to tell the witness.
            let missing = told.len() - same;
            let most = if whole || same < thread.path.len() { 0 } else { UNTOLD };
            assert!(missing <= most, "{name}: {:?}, not {:?}", ahead(&thread.path), ahead(told));
            assert!(told.len() > 5_000, "{name}: {} blocks", told.len());
            let more = thread.path.len() - same;
            assert!(more == 0 || !whole, "{name}: {more} blocks more");
        }
    }
}

/// So many blocks a witness keeps at most.
const ROOM: usize = 1 << 24;
/// So many blocks of a round that was taken back and not counted yet when the process was killed.
const LONGEST_ROUND: usize = 40;

/// The number of the program's handler of signals.
fn handler(workspace: &Workspace) -> u32 {
    let loaded = symbiosis::pipeline::load(&workspace.path("run.trace")).expect("a trace");
    let number = loaded.recording.modules.iter().find_map(|module| {
        let is_handler = |name: &str| matches!(name, "tick" | "_ZL4ticki");
        let mut functions = module.ir.functions.iter();
        let index = functions.position(|function| is_handler(&function.name))?;
        Some(module.base + index as u32)
    });
    number.expect("the handler")
}

/// As [`check`], for loops that wait: the rounds that the log counts are rounds of the run. On a busy machine there are
/// very many, so each end is tried at the levels that are given.
fn check_spins(end: &str, status: i32, whole: bool, levels: &[&str]) {
    for program in [&SPINS, &POLLS] {
        for level in levels {
            check_rounds(program, level, end, status, whole);
        }
    }
}

fn check_rounds(program: &Program, level: &str, end: &str, status: i32, whole: bool) {
    let source = program.instrumented[0];
    let workspace = Workspace::new(&format!("path-{source}-{end}{level}"));
    build(&workspace, program, level);
    let readings = if level == "-O1" { "--readings=1" } else { "--readings=1024" };
    workspace
        .symbiosis(["record", readings, "-o", "run.trace", "--", "./program", end])
        .expect_code(status);
    let (mut witnessed, mut walked) = (witnessed(&workspace), walked(&workspace));
    assert_eq!((witnessed.len(), walked.len()), (2, 2), "{source} {end} {level}: threads");
    let mut repeated = 0;
    // Where in a round the handler ran is not told.
    let (handler, mut handled) = (handler(&workspace), 0);
    for (thread, told) in walked.iter_mut().zip(witnessed.values_mut()) {
        let own = |path: &[Block]| -> Vec<Block> {
            path.iter().copied().filter(|block| block.0 == handler).collect()
        };
        let name = format!("{source} {end} {level}, {}", thread.name);
        // One that comes when the thread's log has ended already is in the witness' alone.
        let last = told.iter().rposition(|block| block.0 != handler).map_or(0, |last| last + 1);
        let late = own(told).len().saturating_sub(own(&thread.path).len());
        if thread.stopped == "end of the thread" {
            told.truncate(told.len() - late.min(told.len() - last));
        }
        assert_eq!(own(told), own(&thread.path), "{name}: what handlers did");
        handled += own(told).len();
        told.retain(|block| block.0 != handler);
        thread.path.retain(|block| block.0 != handler);
    }
    assert_eq!(
        handled > 0,
        end == "signals",
        "{source} {end} {level}: {handled} blocks of handlers"
    );
    for (thread, (serial, told)) in walked.iter().zip(&witnessed) {
        let name = format!("{source} {end} {level}, thread {serial}, {}", thread.stopped);
        let same = told.iter().zip(&thread.path).take_while(|(a, b)| a == b).count();
        let ahead = |path: &[Block]| path[same..path.len().min(same + 5)].to_vec();
        let missing = told.len() - same;
        let most = match whole || same < thread.path.len() {
            true => 0,
            false => UNTOLD + LONGEST_ROUND,
        };
        assert!(
            missing <= most,
            "{name}: {same}: {:?}, not {:?}",
            ahead(&thread.path),
            ahead(told)
        );
        assert!(told.len() > 500, "{name}: {} blocks", told.len());
        let more = thread.path.len() - same;
        assert!(more == 0 || !whole || told.len() == ROOM, "{name}: {more} blocks more");
        repeated += thread.repeated_rounds;
    }
    assert!(repeated > 1000, "{source} {end} {level}: {repeated} rounds are counted");
}

#[test]
fn of_threads_that_spin() {
    check_spins("pass", 0, true, &["-O0", "-O1", "-O2"]);
}

#[test]
fn of_threads_that_spin_with_signal_handlers() {
    check_spins("signals", 0, true, &["-O1", "-O2"]);
}

#[test]
fn of_threads_that_spin_up_to_an_abort() {
    check_spins("abort", 134, false, &["-O2"]);
}

#[test]
fn of_threads_that_spin_up_to_a_fault() {
    check_spins("segv", 139, false, &["-O1"]);
}

#[test]
fn of_threads_that_spin_up_to_a_kill() {
    check_spins("kill", 137, false, &["-O0", "-O2"]);
}

#[test]
fn a_handler_runs_in_the_call_that_it_came_in() {
    for level in ["-O0", "-O1"] {
        let workspace = Workspace::new(&format!("path-raises{level}"));
        build(&workspace, &RAISES, level);
        workspace.symbiosis(["record", "-o", "run.trace", "--", "./program"]).expect_code(SUCCESS);
        let (witnessed, walked) = (witnessed(&workspace), walked(&workspace));
        let (told, path) = (&witnessed[&1], &walked[0].path);
        let same = told.iter().zip(path).take_while(|(a, b)| a == b).count();
        let ahead = |path: &[Block]| path[same..path.len().min(same + 5)].to_vec();
        assert!(told == path, "{level}: {same}: {:?}, not {:?}", ahead(path), ahead(told));
        assert!(path.len() > 300, "{level}: {} blocks", path.len());
    }
}

#[test]
fn of_a_run_that_passes() {
    check(&WAYS, &PASS);
}

#[test]
fn with_signal_handlers_in_it() {
    check(&WAYS, &SIGNALS);
}

#[test]
fn up_to_an_abort() {
    check(&WAYS, &ABORT);
}

#[test]
fn up_to_a_fault() {
    check(&WAYS, &FAULT);
}

#[test]
fn up_to_a_kill() {
    check(&WAYS, &KILL);
}

#[test]
fn of_calls_between_files() {
    check(&CALLS, &PASS);
}

#[test]
fn of_calls_between_files_with_signal_handlers_in_them() {
    check(&CALLS, &SIGNALS);
}

#[test]
fn of_calls_between_files_up_to_an_abort() {
    check(&CALLS, &ABORT);
}

#[test]
fn of_calls_between_files_up_to_a_fault() {
    check(&CALLS, &FAULT);
}

#[test]
fn of_calls_between_files_up_to_a_kill() {
    check(&CALLS, &KILL);
}

/// A function of the same name that calls the one that was meant, with other arguments: that one does not
/// take itself for the one that was called.
#[test]
fn a_function_that_stands_before_another_is_not_that_one() {
    let workspace = Workspace::new("path-front");
    let source = |name: &str| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/path/front");
        root.join(name).into_os_string()
    };
    let symbiosis = |arguments: &[&str], name: &str| {
        let mut arguments: Vec<_> = arguments.iter().map(std::ffi::OsString::from).collect();
        arguments.push(source(name));
        workspace.symbiosis(arguments).expect_code(SUCCESS);
    };
    let library = ["cc", "-g", "-O1", "-fPIC", "-fsemantic-interposition", "-shared"];
    symbiosis(&[&library[..], &["-o", "library.so"]].concat(), "library.c");
    let front = workspace.path("front.o");
    run(Command::new("clang").args(["-c", "-O1", "-o"]).arg(&front).arg(source("front.c")));
    symbiosis(&["cc", "-g", "-O1", "-c", "-o", "main.o"], "main.c");
    let link = ["cc", "main.o", "front.o", "./library.so", "-ldl", "-o", "program"];
    workspace.symbiosis(link).expect_code(SUCCESS);
    workspace.symbiosis(["record", "-o", "run.trace", "--", "./program"]).expect_code(SUCCESS);
    let loaded = symbiosis::pipeline::load(&workspace.path("run.trace")).expect("a trace");
    let [thread] = loaded.recording.threads.as_slice() else { panic!("one thread") };
    let (mut entries, mut path) = (Vec::new(), thread.streams.path().expect("a path"));
    while path(&mut entries).expect("a whole path") {}
    let count = |called: bool| {
        let is = |entry: &&u32| {
            **entry >> tag::SHIFT == tag::ENTER && (**entry & tag::CALLED != 0) == called
        };
        entries.iter().filter(is).count()
    };
    // `main`, and `twice` by way of the other one; `uses` is called by its name.
    assert_eq!((count(false), count(true)), (7, 3));
    let execution = symex::execute(&loaded.recording, &symex::Options::default()).expect("walks");
    let thread = &execution.report.threads[0];
    assert!(thread.reached_end, "{}", thread.stopped);
}
