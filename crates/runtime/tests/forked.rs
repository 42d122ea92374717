//! Children of `fork` whose traces begin with what the parent had logged, while its threads go on.

use crate::common::{prepare, scenarios};
use std::process::Command;
use trace_format::layout::RuntimeEvent;
use trace_format::{PathEntry, Trace};

/// Checks that a stream counts from 0; gives how far.
fn count(trace: &Trace, thread: &trace_format::Thread) -> u64 {
    let mut path = trace.path(thread).unwrap();
    let mut values = trace.values(thread).unwrap();
    let mut blocks = 0;
    while let Some(entry) = path.next().unwrap() {
        let words = match entry {
            PathEntry::Block(index) => {
                assert_eq!(values.word().unwrap(), Some(blocks), "{}", thread.name);
                assert_eq!(u64::from(index), blocks % 1000, "{}", thread.name);
                blocks += 1;
                0
            }
            PathEntry::Runtime(RuntimeEvent::ThreadCreate) => 4,
            PathEntry::Runtime(RuntimeEvent::Allocate) => 3,
            PathEntry::Runtime(RuntimeEvent::Free) => 2,
            PathEntry::Runtime(RuntimeEvent::CallReading) => 1,
            other => panic!("{other:?}"),
        };
        for _ in 0..words {
            values.word().unwrap().unwrap();
        }
    }
    blocks
}

#[test]
fn a_child_has_what_its_parent_had_logged_at_the_fork() {
    let directory = tempfile::tempdir().unwrap();
    let (parent, children) = (directory.path().join("parent"), directory.path().join("children"));
    for made in [&parent, &children] {
        fs_err::create_dir(made).unwrap();
    }
    prepare(&parent);
    let status = Command::new(scenarios())
        .arg("busy-forks")
        .env("SYMBIOSIS_TRACE_DIR", &parent)
        .env("SYMBIOSIS_READINGS", "0")
        .env("SYMBIOSIS_CHILDREN", &children)
        .status()
        .unwrap();
    assert!(status.success());
    let own = |trace: &Trace| count(trace, &trace.threads()[0]);
    let trace = Trace::open(&parent).unwrap();
    assert_eq!(own(&trace), 10 * (3777 + 9000));
    let mut counted: Vec<u64> = fs_err::read_dir(&children)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            prepare(&path);
            let trace = Trace::open(&path).unwrap();
            assert_eq!(trace.threads().len(), 3);
            for thread in &trace.threads()[1..] {
                count(&trace, thread);
            }
            own(&trace)
        })
        .collect();
    counted.sort_unstable();
    let expected: Vec<u64> = (0..10).map(|i| i * (3777 + 9000) + 3777 + 20_000).collect();
    assert_eq!(counted, expected);
}
