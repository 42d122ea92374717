//! Sessions with a program that announces its places by itself.

use super::*;
use render::solution::Location;
use std::process::Output;

/// Line 10 reads, line 12 writes; then it fails as its argument says.
const PROGRAM: &str = r#"#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
struct bank { int total; };
struct bank the_bank = { 100 };
__attribute__((noinline, used)) void symbiosis_mark(unsigned long n, const char *t) { __asm__ volatile("" :: "r"(n), "r"(t)); }
static void *deposit(void *argument) {
    struct bank *bank = argument;
    symbiosis_mark(1, "t0.1");
    int seen = bank->total;
    symbiosis_mark(2, "t0.1");
    bank->total = seen + 10;
    return NULL;
}
int main(int count, char **words) {
    pthread_t thread;
    fprintf(stderr, "%d words, schedule %s\n", count, getenv("SYMBIOSIS_SCHEDULE") ? "set" : "unset");
    pthread_create(&thread, NULL, deposit, &the_bank);
    pthread_join(thread, NULL);
    symbiosis_mark(3, "t0");
    if (count > 1 && words[1][0] == 'a') abort();
    return count > 1 && words[1][0] == 'e' ? 3 : 0;
}
"#;

struct Bench(tempfile::TempDir);

impl Bench {
    fn new() -> Self {
        let bench = Self(tempfile::tempdir().unwrap());
        fs_err::write(bench.path("bank.c"), PROGRAM).unwrap();
        let mut command = Command::new("cc");
        command.args(["-g", "-O0", "-pthread", "bank.c", "-o", "bank"]);
        assert!(command.current_dir(bench.0.path()).status().unwrap().success());
        bench
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    /// Runs gdb as [`run`] does, with its output caught, on a machine whose gdb has no Python if so
    /// wanted.
    fn session(&self, argument: &str, kind: Option<&str>, with_python: bool) -> Output {
        let failure = kind.map(failure);
        let arguments = [OsString::from(argument), OsString::from("two words")];
        let session = Session {
            program: &self.path("bank"),
            arguments: &arguments,
            directory: self.0.path(),
            input: None,
            marked: &Marked { script: "symbiosis-schedule 1\n".to_owned(), stops: stops() },
            failure: failure.as_ref(),
            batch: true,
            timeout: Duration::from_secs(100),
        };
        let mut command = command(&session, self.0.path(), with_python).unwrap();
        command.output().unwrap()
    }
}

fn failure(kind: &str) -> Failure {
    Failure {
        kind: kind.to_owned(),
        thread: "t0".to_owned(),
        event: "e9".to_owned(),
        location: Location { file: "/src/bank.c".to_owned(), line: 21, ..Location::default() },
        message: "with \"quotes\" and \\".to_owned(),
    }
}

fn stops() -> Vec<Stop> {
    let stop = |mark, event: &str, what: &str, line, object: Option<&str>| Stop {
        mark,
        event: event.to_owned(),
        thread: if mark == 3 { "t0" } else { "t0.1" }.to_owned(),
        what: what.to_owned(),
        object: object.map(ToOwned::to_owned),
        location: Location {
            file: "/src/bank.c".to_owned(),
            line,
            column: 1,
            function: if mark == 3 { "main" } else { "deposit" }.to_owned(),
        },
        failing: object.map(|_| "100".to_owned()),
        alternate: object.map(|_| "90".to_owned()),
    };
    vec![
        stop(1, "e1", "reads bank->total", 9, Some("bank->total")),
        stop(2, "e2", "writes nothing->there", 11, Some("nothing->there")),
        stop(3, "e3", "reads the_bank.total", 20, Some("the_bank.total")),
        stop(3, "e4", "unlocks \"x\"", 20, None),
    ]
}

fn check_stops(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let all = format!("{text}\n{}", String::from_utf8_lossy(&output.stderr));
    let mut rest = text.as_str();
    // Standard error, so it need not come in order.
    assert!(all.contains("3 words, schedule set"), "{all}");
    for expected in [
        "e1 t0.1 reads bank->total (bank.c:9)",
        "failing schedule: 100   alternate: 90",
        "now: bank->total = 100",
        "e2 t0.1 writes nothing->there",
        "e3 t0 reads the_bank.total (bank.c:20)",
        "now: the_bank.total = 110",
        "e4 t0 unlocks \"x\"",
    ] {
        match rest.split_once(expected) {
            Some((_, behind)) => rest = behind,
            None => panic!("no {expected:?} in:\n{all}\nbehind what was found"),
        }
    }
    text
}

#[test]
fn python_stops_at_every_event_and_at_the_abort() {
    let bench = Bench::new();
    let output = bench.session("a", Some("abort"), true);
    let text = check_stops(&output);
    assert!(text.contains("[2 of 4]") && text.contains("cannot be shown"), "{text}");
    assert!(text.contains("9\t    symbiosis_mark(1"), "{text}");
    assert!(text.contains("the failure: SIGABRT\n    recorded: abort: with \"quotes\""), "{text}");
    assert!(text.contains("in main (") && output.status.success(), "{text}");
}

#[test]
fn python_stops_at_an_exit_and_tells_of_a_good_end() {
    let bench = Bench::new();
    let text = check_stops(&bench.session("e", Some("exit"), true));
    assert!(text.contains("the failure: exit status 3"), "{text}");
    let text = check_stops(&bench.session("x", None, true));
    assert!(text.contains("the program ended with exit status 0"), "{text}");
}

#[test]
fn a_plain_script_does_what_it_can() {
    let bench = Bench::new();
    let output = bench.session("a", Some("abort"), false);
    let text = {
        // Without Python the events of one mark share one look at their variables.
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let all = format!("{text}\n{}", String::from_utf8_lossy(&output.stderr));
        for expected in ["e1 t0.1", "bank->total = 100", "e2 t0.1", "e3 t0", "e4 t0", "in main ("] {
            assert!(text.contains(expected), "no {expected:?} in:\n{all}");
        }
        text
    };
    assert!(text.contains("the failure, as recorded: abort: with \"quotes\" and \\"), "{text}");
}

#[test]
fn marks_stand_behind_the_first_line() {
    use model::Points;
    let marked = marked(
        "symbiosis-schedule 1\nend run\nt0 > $\n",
        &["e1".to_owned()],
        &render::Solution::default(),
        &model::EventTrace::default(),
        &Points::default(),
    );
    assert_eq!(marked.script, "symbiosis-schedule 1\nend run\nt0 > $\n");
    assert!(marked.stops.is_empty());
}

#[test]
fn this_gdb_has_python() {
    assert!(has_python().unwrap(), "the tests above expect Debian's gdb");
}
