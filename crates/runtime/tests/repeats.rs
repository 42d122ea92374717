//! Loops that wait: rounds that repeat are counted.

use crate::common::{Traced, build, prepare, run};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;
use trace_format::layout::RuntimeEvent;
use trace_format::{PathEntry, PathReader, Thread, Trace, ValueReader};

fn program() -> &'static PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| build("repeats.c", "repeats", &[]))
}

fn scenario(name: &str) -> Traced {
    let traced = run(Command::new(program()).arg(name));
    assert!(traced.status.success(), "{name}");
    traced
}

/// What a thread logged of its rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Logged {
    Block(u32),
    /// Choices, and the word that was found.
    Round(u32, u64),
    /// The round before, so many times more.
    Repeat(u64),
    Handler,
}
use Logged::{Block, Handler, Repeat, Round};

/// Decodes a thread whose rounds log `readings` words before what they found.
fn logged(traced: &Traced, readings: impl Fn(usize) -> usize) -> Vec<Logged> {
    let thread = traced.trace.threads().iter().find(|thread| thread.name == "t0.1").unwrap();
    let mut path = traced.trace.path(thread).unwrap();
    let mut values = traced.trace.values(thread).unwrap();
    let (mut logged, mut last, mut rounds) = (Vec::new(), 0, 0);
    while let Some(entry) = path.next().unwrap() {
        logged.push(match entry {
            PathEntry::Block(index) => Block(index),
            PathEntry::Choices(choices) => {
                (0..readings(rounds)).for_each(|_| assert!(values.word().unwrap().is_some()));
                rounds += 1;
                Round(choices, values.word().unwrap().unwrap())
            }
            PathEntry::Runtime(RuntimeEvent::Repeat) => {
                let times = values.word().unwrap().unwrap();
                let time = values.word().unwrap().unwrap();
                assert!(time > last, "time goes on");
                last = time;
                rounds += times as usize;
                Repeat(times)
            }
            PathEntry::Runtime(RuntimeEvent::SignalBegin) => {
                (0..6).for_each(|_| assert!(values.word().unwrap().is_some()));
                Handler
            }
            PathEntry::Runtime(RuntimeEvent::SignalEnd | RuntimeEvent::ThreadExit) => {
                values.word().unwrap();
                continue;
            }
            entry => panic!("{entry:?}"),
        });
    }
    assert_eq!(values.word().unwrap(), None, "values are left");
    logged
}

#[test]
fn rounds_that_repeat_are_counted() {
    let expected = [
        Block(1),
        // Where the first one began is not known.
        Round(2, 7),
        Round(2, 7),
        Repeat(998),
        Round(3, 7),
        Repeat(4),
        Round(3, 8),
        Repeat(4),
        Round(500, 8),
        Repeat(3),
    ];
    assert_eq!(logged(&scenario("counts"), |_| 0), expected);
}

#[test]
fn a_loop_that_is_entered_again_begins_anew() {
    let mut expected = [Block(1), Round(2, 7)].repeat(5);
    expected.extend([Round(2, 7), Repeat(1)]);
    assert_eq!(logged(&scenario("enters"), |_| 0), expected);
}

#[test]
fn loops_within_rounds_have_rounds_of_their_own() {
    let mut expected = vec![Block(1)];
    for _ in 0..4 {
        expected.extend([Round(2, 5), Round(2, 5), Repeat(1), Round(3, 7)]);
    }
    // With the round before there was another loop.
    expected.extend([Round(3, 7), Repeat(2)]);
    assert_eq!(logged(&scenario("nests"), |_| 0), expected);
}

#[test]
fn rounds_that_changed_memory_are_not_counted() {
    let logged = logged(&scenario("changes"), |_| 0);
    let mut expected = vec![Block(1)];
    expected.extend([Round(2, 7); 4]);
    expected.push(Repeat(2));
    assert_eq!(logged, expected);
}

#[test]
fn readings_of_the_clock_may_differ() {
    // More readings than can be noted are in the last rounds.
    let logged = logged(&scenario("reads"), |round| if round < 10 { 2 } else { 5 });
    let mut expected = vec![Block(1), Round(2, 7), Round(2, 7), Repeat(3), Round(2, 8), Repeat(4)];
    expected.extend([Round(2, 7); 4]);
    assert_eq!(logged, expected);
}

#[test]
fn rounds_with_a_handler_of_a_signal_in_them_are_not_counted() {
    let mut expected = vec![Block(1), Round(2, 7), Round(2, 7), Repeat(8)];
    for _ in 0..3 {
        expected.extend([Handler, Block(110), Round(2, 7), Round(2, 7), Repeat(8)]);
    }
    assert_eq!(logged(&scenario("signals"), |_| 0), expected);
}

#[test]
fn windows_are_emptied_between_rounds() {
    let logged = logged(&scenario("fills"), |_| 0);
    let mut at = 0u64;
    for entry in &logged[1..] {
        match entry {
            Round(choices, found) => assert_eq!((*choices, *found), (2 + (at % 2) as u32, at / 3)),
            // Where a window was emptied.
            Repeat(0) => continue,
            entry => panic!("no two rounds in a row are alike: {entry:?}"),
        }
        at += 1;
    }
    assert_eq!(at, 200_000);
}

#[test]
fn counts_alone_empty_the_window_of_values() {
    let traced = scenario("pauses");
    let thread = traced.trace.threads().iter().find(|thread| thread.name == "t0.1").unwrap();
    let mut path = traced.trace.path(thread).unwrap();
    let mut values = traced.trace.values(thread).unwrap();
    let (mut loops, mut rounds) = (0u64, 0);
    while let Some(entry) = path.next().unwrap() {
        match entry {
            PathEntry::Block(1) => loops += 1,
            PathEntry::Choices(2) => rounds += 1,
            PathEntry::Runtime(RuntimeEvent::Repeat) => {
                rounds += values.word().unwrap().unwrap();
                assert!(values.word().unwrap().is_some(), "a time");
            }
            PathEntry::Runtime(RuntimeEvent::ThreadExit) => {
                assert!(values.word().unwrap().is_some(), "a time");
            }
            entry => panic!("{entry:?} in loop {loops}"),
        }
        assert!(rounds <= 20 * loops, "loop {loops}: {rounds} rounds");
    }
    assert_eq!((loops, rounds), (20_000, 400_000));
    assert_eq!(values.word().unwrap(), None, "values are left");
}

/// Follows a thread that does i % 50 rounds in its loop i; gives how many loops.
fn check_endless(trace: &Trace, thread: &Thread) -> u64 {
    let mut path: PathReader = trace.path(thread).unwrap();
    let mut values: ValueReader = trace.values(thread).unwrap();
    let (mut loops, mut rounds) = (0u64, 0);
    while let Some(entry) = path.next().unwrap() {
        let at = loops.wrapping_sub(1);
        match entry {
            PathEntry::Block(index) => {
                assert!(loops == 0 || rounds == at % 50, "{}: loop {at}: {rounds}", thread.name);
                assert_eq!(u64::from(index), loops % 1000);
                (loops, rounds) = (loops + 1, 0);
            }
            PathEntry::Choices(choices) => {
                assert_eq!(u64::from(choices), 2 + at % 2);
                // The values of a round that is taken back may be gone before its path.
                match values.word().unwrap() {
                    Some(found) => assert_eq!(found, at, "{}", thread.name),
                    None => assert_eq!(path.next().unwrap(), None),
                }
                rounds += 1;
            }
            PathEntry::Runtime(RuntimeEvent::Repeat) => {
                rounds += values.word().unwrap().unwrap();
                assert!(values.word().unwrap().unwrap() > 0);
            }
            PathEntry::Runtime(
                event @ (RuntimeEvent::ThreadCreate
                | RuntimeEvent::Allocate
                | RuntimeEvent::Free
                | RuntimeEvent::CallReading),
            ) => {
                let words = match event {
                    RuntimeEvent::ThreadCreate => 4,
                    RuntimeEvent::Allocate => 3,
                    RuntimeEvent::CallReading => 1,
                    _ => 2,
                };
                (0..words).for_each(|_| assert!(values.word().unwrap().is_some()));
            }
            entry => panic!("{entry:?}"),
        }
        assert!(rounds <= 49, "{}: {rounds} rounds", thread.name);
    }
    loops
}

#[test]
fn a_kill_at_any_moment_leaves_a_readable_trace() {
    let mut total = 0;
    for round in 0..20u64 {
        let directory = tempfile::tempdir().unwrap();
        prepare(directory.path());
        let mut child = Command::new(program())
            .arg("endless")
            .env("SYMBIOSIS_TRACE_DIR", directory.path())
            .env("SYMBIOSIS_READINGS", "0")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let output = child.stdout.take().unwrap();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut line).unwrap();
        std::thread::sleep(Duration::from_micros(317 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        let trace = Trace::open(directory.path()).unwrap();
        for thread in trace.threads().iter().filter(|thread| thread.name != "t0") {
            total += check_endless(&trace, thread);
        }
    }
    assert!(total > 1000, "{total}");
}

#[test]
fn children_get_whole_rounds() {
    let directory = tempfile::tempdir().unwrap();
    let (parent, children) = (directory.path().join("parent"), directory.path().join("children"));
    for made in [&parent, &children] {
        fs_err::create_dir(made).unwrap();
    }
    prepare(&parent);
    let output = Command::new(program())
        .arg("forks")
        .env("SYMBIOSIS_TRACE_DIR", &parent)
        .env("SYMBIOSIS_CHILDREN", &children)
        .env("SYMBIOSIS_READINGS", "0")
        .output()
        .unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let mut total = 0;
    for entry in fs_err::read_dir(&children).unwrap() {
        let path = entry.unwrap().path();
        prepare(&path);
        let trace = Trace::open(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        let spinning = trace.threads().iter().find(|thread| thread.name == "t0.1.1");
        if let Some(thread) = spinning {
            total += check_endless(&trace, thread);
        }
    }
    assert!(total > 1000, "{total}");
}
