//! Bad traces and bad places to write to: a clear message with the file in it, and the documented
//! exit code (`docs/exit-codes.md`).

use crate::workspace::{Outcome, Workspace};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use trace_format::{FormatVersion, Manifest};

const SUCCESS: i32 = 0;
const UNEXPECTED: i32 = 1;
const USAGE: i32 = 2;
const BAD_TRACE: i32 = 20;
const SIGKILLED: i32 = 128 + 9;
const SIGNALLED: i32 = 128 + 10;

/// Two threads that add to a counter under a lock; the argument `kill` makes the last act SIGKILL, `k` SIGUSR1.
const PROGRAM: &str = r#"
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int counter;

static void *count(void *unused)
{
    for (int i = 0; i < 20; i++) {
        pthread_mutex_lock(&lock);
        counter++;
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, count, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    if (argc > 1 && argv[1][0] == 'k')
        kill(getpid(), argv[1][1] ? SIGKILL : SIGUSR1);
    return counter != 40;
}
"#;

/// A workspace with the program, compiled, and `good.trace` of one run of it.
fn recorded(name: &str) -> Workspace {
    let workspace = compiled(name);
    workspace.symbiosis(["record", "-o", "good.trace", "--", "./program"]).expect_code(SUCCESS);
    workspace.symbiosis(["check", "good.trace"]).expect_code(SUCCESS);
    workspace
}

fn compiled(name: &str) -> Workspace {
    let workspace = Workspace::new(name);
    fs::write(workspace.path("program.c"), PROGRAM).expect("the program can be written");
    let arguments = ["cc", "-g", "-O1", "-pthread", "program.c", "-o", "program"];
    workspace.symbiosis(arguments).expect_code(SUCCESS);
    workspace
}

/// The command is refused with this code, by an error that names the path.
fn refused(outcome: Outcome, code: i32, path: &Path) {
    let outcome = outcome.expect_code(code);
    let path = path.to_string_lossy();
    assert!(outcome.stderr().contains("error"), "no error in {}", outcome.describe());
    assert!(outcome.stderr().contains(&*path), "no {path} in {}", outcome.describe());
    assert!(!outcome.stderr().contains("panicked"), "{}", outcome.describe());
}

/// All files of a trace that `check` and `solve` depend on; the tails of the output are for people,
/// the copy of the program is for replay.
fn files_of(trace: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![trace.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("the trace can be listed") {
            let path = entry.expect("a directory entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_none_or(|extension| extension != "tail")
                && !path.ends_with("program.zst")
            {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// Damages each file of a good trace in turn, and puts it back after the commands have refused it.
fn damage_each_file(workspace: &Workspace, damage: impl Fn(&Path)) {
    let files = files_of(&workspace.path("good.trace"));
    assert!(files.len() >= 6, "manifest, modules, bitcode and streams: {files:?}");
    for file in files {
        let name = Path::new(file.file_name().expect("a file has a name")).to_owned();
        let whole = fs::read(&file).expect("the file can be read");
        damage(&file);
        for command in ["check", "solve"] {
            refused(workspace.symbiosis([command, "good.trace"]), BAD_TRACE, &name);
        }
        fs::write(&file, whole).expect("the file can be put back");
    }
    workspace.symbiosis(["check", "good.trace"]).expect_code(SUCCESS);
}

#[test]
fn missing_trace_is_refused() {
    let workspace = Workspace::new("missing-trace");
    for command in ["check", "solve"] {
        refused(workspace.symbiosis([command, "no.trace"]), BAD_TRACE, Path::new("no.trace"));
    }
}

#[test]
fn directory_without_a_manifest_is_refused() {
    let workspace = Workspace::new("no-manifest");
    fs::create_dir(workspace.path("empty.trace")).expect("the directory can be made");
    for command in ["check", "solve"] {
        refused(workspace.symbiosis([command, "empty.trace"]), BAD_TRACE, Path::new("empty.trace"));
    }
}

#[test]
fn missing_file_of_a_trace_is_refused() {
    let workspace = recorded("missing-file");
    damage_each_file(&workspace, |path| {
        // Without a manifest the directory is no trace, and the error names the directory.
        if !path.ends_with("manifest.json") {
            fs::remove_file(path).expect("the file can be removed");
        } else {
            fs::write(path, "").expect("the file can be emptied");
        }
    });
}

#[test]
fn truncated_trace_is_refused() {
    let workspace = recorded("truncated");
    damage_each_file(&workspace, |path| {
        let bytes = fs::read(path).expect("the file can be read");
        fs::write(path, &bytes[..bytes.len() / 2]).expect("the file can be cut");
    });
}

#[test]
fn flipped_bits_are_noticed_or_change_nothing() {
    let workspace = recorded("flipped");
    let whole = workspace.symbiosis(["check", "good.trace"]).stdout();
    for file in files_of(&workspace.path("good.trace")) {
        let name = Path::new(file.file_name().expect("a file has a name")).to_owned();
        let good = fs::read(&file).expect("the file can be read");
        // Compressed bitcode has a few bits that decompress to the same whatever they are; it is
        // the decompressed bitcode that carries the hash.
        let may_be_idle = file.extension().is_some_and(|extension| extension == "zst");
        for position in 1..8 {
            let mut bad = good.clone();
            bad[good.len() * position / 8] ^= 1 << (position % 8);
            fs::write(&file, bad).expect("the file can be changed");
            let outcome = workspace.symbiosis(["check", "good.trace"]);
            let unharmed = outcome.code() == SUCCESS && outcome.stdout() == whole;
            if !(may_be_idle && unharmed) {
                refused(outcome, BAD_TRACE, &name);
            }
        }
        fs::write(&file, good).expect("the file can be put back");
    }
}

#[test]
fn trace_of_a_future_version_is_refused() {
    let workspace = recorded("future");
    let trace = workspace.path("good.trace");
    for version in [FormatVersion { major: 2, minor: 0 }, FormatVersion { major: 1, minor: 99 }] {
        let mut manifest = Manifest::read(&trace).expect("the manifest can be read");
        let readable = std::mem::replace(&mut manifest.version, version);
        manifest.write(&trace).expect("the manifest can be written");
        let outcome = workspace.symbiosis(["solve", "good.trace"]);
        assert!(outcome.stderr().contains(&version.to_string()), "{}", outcome.describe());
        refused(outcome, BAD_TRACE, Path::new("manifest.json"));
        manifest.version = readable;
        manifest.write(&trace).expect("the manifest can be written");
    }
}

#[test]
fn bitcode_of_another_program_is_noticed() {
    let workspace = recorded("other-bitcode");
    let other = recorded("other-bitcode-donor");
    let bitcode = |workspace: &Workspace| {
        let mut files = files_of(&workspace.path("good.trace/ir"));
        assert_eq!(files.len(), 1, "one module: {files:?}");
        files.remove(0)
    };
    // The same program, but compiled from a file with one more line.
    fs::write(other.path("program.c"), format!("int more;\n{PROGRAM}")).expect("can be written");
    other.symbiosis(["cc", "-g", "-O1", "-pthread", "program.c", "-o", "program"]).expect_code(0);
    fs::remove_dir_all(other.path("good.trace")).expect("the trace can be removed");
    other.symbiosis(["record", "-o", "good.trace", "--", "./program"]).expect_code(SUCCESS);
    let target = bitcode(&workspace);
    fs::copy(bitcode(&other), &target).expect("the bitcode can be copied");
    let name = Path::new(target.file_name().expect("a file has a name")).to_owned();
    refused(workspace.symbiosis(["check", "good.trace"]), BAD_TRACE, &name);
}

#[test]
fn killed_program_leaves_a_readable_trace() {
    let workspace = compiled("killed");
    let arguments = ["record", "-o", "killed.trace", "--", "./program", "kill"];
    workspace.symbiosis(arguments).expect_code(SIGKILLED);
    let report = workspace.symbiosis(["check", "killed.trace"]).expect_code(SUCCESS);
    for thread in ["t0 ", "t0.1 ", "t0.2 "] {
        assert!(report.stdout().contains(thread), "no {thread}in {}", report.describe());
    }
    // Only who waits may have been ended for it.
    let arguments = ["record", "-o", "signalled.trace", "--", "./program", "k"];
    workspace.symbiosis(arguments).expect_code(SIGNALLED);
    let said = workspace.symbiosis(["solve", "--no-replay", "signalled.trace"]).stderr();
    assert!(said.contains("no recorded thread is known to have got signal 10"), "{said}");
}

#[test]
fn existing_output_is_not_overwritten() {
    let workspace = recorded("existing");
    let before = fs::read(workspace.path("good.trace/manifest.json")).expect("a manifest");
    let outcome = workspace.symbiosis(["record", "-o", "good.trace", "--", "./program"]);
    refused(outcome, USAGE, Path::new("good.trace"));
    let after = fs::read(workspace.path("good.trace/manifest.json")).expect("a manifest");
    assert_eq!(before, after);
}

#[test]
fn unwritable_trace_directory_is_an_error() {
    let workspace = compiled("unwritable-trace");
    // A file in the way stops the superuser too, unlike permissions.
    fs::write(workspace.path("file"), "").expect("the file can be written");
    let outcome = workspace.symbiosis(["record", "-o", "file/x.trace", "--", "./program"]);
    refused(outcome, UNEXPECTED, Path::new("file"));
}

#[test]
fn unwritable_answer_is_an_error() {
    let workspace = Workspace::new("unwritable-answer");
    let failing = PROGRAM.replace("i < 20", "i < 2").replace("counter != 40", "counter == 4");
    fs::write(workspace.path("program.c"), failing).expect("the program can be written");
    let arguments = ["cc", "-g", "-O1", "-pthread", "program.c", "-o", "program"];
    workspace.symbiosis(arguments).expect_code(SUCCESS);
    workspace.symbiosis(["record", "-o", "bad.trace", "--", "./program"]).expect_code(1);
    let answer = Path::new("no/such/directory/answer.json");
    let path = answer.to_str().expect("a path in UTF-8");
    let outcome = workspace.symbiosis(["solve", "bad.trace", "--format", "json", "-o", path]);
    refused(outcome, UNEXPECTED, answer);
}

#[test]
fn program_that_is_not_instrumented_is_refused() {
    let workspace = Workspace::new("not-instrumented");
    let outcome = workspace.symbiosis(["record", "-o", "x.trace", "--", "/bin/true"]);
    refused(outcome, USAGE, Path::new("/bin/true"));
}

#[test]
fn a_packed_trace_is_named_as_one_and_is_a_trace_again_when_unpacked() {
    let workspace = recorded("bad-packed");
    let outcome = workspace.symbiosis(["pack", "good.trace"]).expect_code(SUCCESS);
    assert_eq!(outcome.stdout(), "good.trace.tar.zst\n");
    let outcome = workspace.symbiosis(["solve", "good.trace.tar.zst"]).expect_code(BAD_TRACE);
    assert!(outcome.stderr().contains("symbiosis unpack"), "{}", outcome.describe());
    let outcome = workspace.symbiosis(["unpack", "good.trace.tar.zst"]).expect_code(USAGE);
    assert!(outcome.stderr().contains("good.trace: is there already"), "{}", outcome.describe());
    fs::rename(workspace.path("good.trace"), workspace.path("old")).expect("renamed");
    let outcome = workspace.symbiosis(["unpack", "good.trace.tar.zst"]).expect_code(SUCCESS);
    assert_eq!(outcome.stdout(), "good.trace\n");
    workspace.symbiosis(["check", "good.trace"]).expect_code(SUCCESS);
    workspace.symbiosis(["unpack", "old/manifest.json"]).expect_code(BAD_TRACE);
    // One that is damaged or missing leaves the others alone.
    fs::remove_dir_all(workspace.path("good.trace")).expect("removed");
    let all = ["unpack", "old/manifest.json", "missing.tar.zst", "good.trace.tar.zst"];
    let outcome = workspace.symbiosis(all).expect_code(BAD_TRACE);
    assert_eq!(outcome.stdout(), "good.trace\n");
    for name in ["old/manifest.json", "missing.tar.zst"] {
        assert!(outcome.stderr().contains(name), "{}", outcome.describe());
    }
}

#[test]
fn who_cannot_print_says_where() {
    let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("it can be opened");
    let mut command = Command::new(env!("CARGO_BIN_EXE_symbiosis"));
    let output = command.args(["completions", "bash"]).stdout(full).output().expect("it starts");
    assert_eq!(output.status.code(), Some(UNEXPECTED));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("cannot write to standard output: No space left"), "{said}");
}
