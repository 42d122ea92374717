//! The recorded path is the path: in one and the same run every block is also told to a witness, and
//! what the executor walks along the log is compared with that, block by block. The clock is read as often
//! as can be, so that there are readings wherever there can be any.

#[path = "fixtures/workspace.rs"]
mod workspace;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use symex::ThreadReport;
use trace_format::layout::{RuntimeEvent, tag};
use workspace::Workspace;

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

/// Compiles the program with a witness, at `level`.
fn build(workspace: &Workspace, level: &str) {
    let source = |name: &str| -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/path").join(name)
    };
    let flags = ["-c", "-g", level, "-pthread", "-fno-vectorize", "-fno-slp-vectorize"];
    run(Command::new("clang++")
        .args(["-std=c++17", "-emit-llvm"])
        .args(flags)
        .arg(source("ways.cc"))
        .arg("-o")
        .arg(workspace.path("ways.bc")));
    run(Command::new("clang")
        .args(flags)
        .arg(source("witness.c"))
        .arg("-o")
        .arg(workspace.path("witness.o")));
    let bitcode = fs_err::read(workspace.path("ways.bc")).expect("bitcode");
    let options = instrument::Options { witness: true, ..Default::default() };
    let object = instrument::instrument(&bitcode, &options).expect("instruments");
    fs_err::write(workspace.path("ways.o"), object).expect("the object is written");
    workspace
        .symbiosis(["c++", "-pthread", "ways.o", "witness.o", "-o", "program"])
        .expect_code(SUCCESS);
}

/// What the witness of each thread was told, by the threads' numbers.
fn witnessed(workspace: &Workspace) -> BTreeMap<u64, Vec<Block>> {
    let mut all = BTreeMap::new();
    for serial in 1.. {
        let Ok(bytes) = fs_err::read(workspace.path(&format!("witness.{serial}"))) else { break };
        let words = bytes.chunks_exact(8).map(|word| {
            let word = u64::from_le_bytes(word.try_into().expect("eight bytes"));
            ((word >> 32) as u32, (word as u32).wrapping_sub(1))
        });
        all.insert(serial, words.take_while(|block| *block != (0, u32::MAX)).collect());
    }
    all
}

fn walked(workspace: &Workspace) -> Vec<ThreadReport> {
    let loaded = symbiosis::pipeline::load(&workspace.path("run.trace")).expect("a trace");
    let reading = tag::RUNTIME << tag::SHIFT | RuntimeEvent::Reading as u32;
    for thread in &loaded.recording.threads {
        let (mut entries, mut path) = (Vec::new(), thread.streams.path().expect("a path"));
        while path(&mut entries).expect("a whole path") {}
        let readings = entries.iter().filter(|&&entry| entry == reading).count();
        assert!(readings > 100, "{}: {readings} readings of the clock", thread.name);
    }
    let options = symex::Options { keep_path: true, ..Default::default() };
    symex::execute(&loaded.recording, &options).expect("walks").report.threads
}

/// `whole`: all threads came to an end that the log shows, so both paths end at one block. Else the
/// walk goes on behind the end of the log as long as it is certain where.
fn check(end: &str, status: i32, whole: bool) {
    for level in ["-O0", "-O2"] {
        let workspace = Workspace::new(&format!("path-{end}{level}"));
        build(&workspace, level);
        workspace
            .symbiosis(["record", "--readings=1", "-o", "run.trace", "--", "./program", end])
            .expect_code(status);
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

#[test]
fn of_a_run_that_passes() {
    check("pass", 0, true);
}

#[test]
fn with_signal_handlers_in_it() {
    check("signals", 0, true);
}

#[test]
fn up_to_an_abort() {
    check("abort", 134, true);
}

#[test]
fn up_to_a_fault() {
    check("segv", 139, true);
}

#[test]
fn up_to_a_kill() {
    check("kill", 137, false);
}
