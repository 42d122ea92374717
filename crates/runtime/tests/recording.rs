//! What ends up in the streams.

mod common;

use common::{Entry, build, operations, run, scenario};
use std::process::Command;
use trace_format::ModuleId;
use trace_format::layout::RuntimeEvent;
use trace_format::layout::SyncOp::*;

#[test]
fn streams_grow_and_hold_every_entry() {
    let traced = scenario("streams");
    assert_eq!(traced.names(), ["t0", "t0.1"]);
    let thread = &traced.trace.threads()[1];
    assert!(thread.ended);
    let path = traced.trace.path_entries(thread).unwrap();
    let values = traced.trace.value_words(thread).unwrap();
    let exit = 3 << 30 | RuntimeEvent::ThreadExit as u32;
    let expected: Vec<u32> = (0..300_000).map(|i| i + 1).chain([exit]).collect();
    assert!(path == expected);
    assert_eq!(values.len(), 300_001, "the last is the time of the end");
    assert!(values.iter().copied().take(300_000).eq(0..300_000));
    let file = traced.directory.path().join("threads/t0.1.path");
    let unused = file.metadata().unwrap().len() - (300_000 * 5 + 1);
    assert!(unused < 2 << 20, "{unused}");
}

#[test]
fn threads_are_named_after_their_creators() {
    let traced = scenario("names");
    assert_eq!(traced.names(), ["t0", "t0.1", "t0.1.1", "t0.1.1.1", "t0.2"]);
    let threads = traced.trace.threads();
    let created = traced.events("t0", 0, RuntimeEvent::ThreadCreate);
    assert_eq!(created.len(), 2);
    assert_eq!((created[0][0], created[1][0]), (threads[1].serial, threads[4].serial));
    assert_eq!(created[0][2], threads[1].start_routine);
    assert_eq!(created[0][3], 2, "the argument");
    let begun = traced.events("t0", 0, RuntimeEvent::JoinBegin);
    assert_eq!(begun, [[threads[1].serial], [threads[4].serial]]);
    let joined = traced.events("t0", 0, RuntimeEvent::JoinEnd);
    assert_eq!(joined, [[threads[1].serial, 0], [threads[4].serial, 0]]);
}

#[test]
fn names_too_long_for_a_file_are_still_told() {
    let traced = scenario("deep");
    let deepest = traced.trace.threads().last().unwrap();
    assert_eq!(deepest.name, format!("t0{}", ".1".repeat(121)));
    assert!(deepest.ended);
    assert!(deepest.file.starts_with('s'));
}

#[test]
fn detached_threads_are_recorded_and_do_not_pile_up() {
    let traced = scenario("detach");
    assert_eq!(traced.trace.threads().len(), 501);
    let ended = traced.trace.threads().iter().filter(|thread| thread.ended).count();
    assert!(ended > 450, "{ended}");
}

#[test]
fn synchronisation_calls_are_logged_in_order() {
    let traced = scenario("sync");
    let begun = traced.events("t0", 0, RuntimeEvent::SyncBegin);
    let (recursive, busy, timed_out) = (1, 16, 110);
    assert_eq!(
        operations(&begun),
        [
            (MutexLock, recursive),
            (MutexUnlock, recursive),
            (MutexLock, 0),
            (MutexTryLock, 0),
            (CondTimedWait, 0),
            (CondSignal, 0),
            (CondBroadcast, 0),
            (MutexUnlock, 0),
            (RwReadLock, 0),
            (RwUnlock, 0),
            (RwWriteLock, 0),
            (RwTryReadLock, 0),
            (RwUnlock, 0),
            (SemInit, 1),
            (SemWait, 0),
            (SemTryWait, 0),
            (SemTimedWait, 0),
            (SemPost, 0),
            (BarrierInit, 1),
            (BarrierWait, 0),
            (SpinLock, 0),
            (SpinTryLock, 0),
            (SpinUnlock, 0),
            (Once, 0),
        ]
    );
    let ended = operations(&traced.events("t0", 0, RuntimeEvent::SyncEnd));
    let results: Vec<i64> = ended.iter().map(|(_, result)| *result).collect();
    assert_eq!(
        results,
        [
            0, 0, 0, busy, timed_out, 0, 0, 0, 0, 0, 0, busy, 0, 0, 0, -1, -1, 0, 0, -1, 0, busy,
            0, 1
        ]
    );
    let wait = &begun[4];
    assert_eq!(wait[2], begun[2][1], "the wait's second object is the mutex");
    let entries = traced.entries("t0", 0);
    let once = entries.iter().position(|entry| *entry == Entry::Block(1)).unwrap();
    assert!(matches!(&entries[once - 1], Entry::Runtime(RuntimeEvent::SyncBegin, _)));
    assert!(matches!(&entries[once + 1], Entry::Runtime(RuntimeEvent::SyncEnd, _)));
}

#[test]
fn c11_threads_and_mutexes_look_like_pthreads() {
    let traced = scenario("c11");
    assert_eq!(traced.names(), ["t0", "t0.1"]);
    let ended = operations(&traced.events("t0", 0, RuntimeEvent::SyncEnd));
    assert_eq!(ended, [(MutexLock, 0), (MutexTryLock, 16), (MutexUnlock, 0)]);
    assert_eq!(traced.events("t0", 0, RuntimeEvent::JoinEnd).len(), 1);
    assert_eq!(traced.entries("t0.1", 0)[0], Entry::Block(5));
}

#[test]
fn the_heap_is_logged_with_growing_time_stamps() {
    let traced = scenario("heap");
    let thread = &traced.trace.threads()[0];
    let mut values = traced.trace.values(thread).unwrap();
    let mut path = traced.trace.path(thread).unwrap();
    // The registration comes first and allocates nothing, so the first object is the program's.
    assert!(path.next().unwrap().is_some());
    let word = |values: &mut trace_format::ValueReader| values.word().unwrap().unwrap();
    let (object, size, obtained) = (word(&mut values), word(&mut values), word(&mut values));
    assert_eq!((size, word(&mut values)), (10, object));
    let (freed, given_back) = (word(&mut values), word(&mut values));
    assert_eq!(freed, object, "realloc gives the old object back");
    assert!(given_back > obtained);
    let (moved, size, later) = (word(&mut values), word(&mut values), word(&mut values));
    assert_eq!((size, word(&mut values)), (5000, moved));
    assert!(later > given_back);
    let rest: Vec<u64> = std::iter::from_fn(|| values.word().unwrap()).collect();
    let sizes: Vec<u64> = [21, 100, 6, 64].into();
    // free(moved), then pairs of an allocation (3 words) and a free (2 words).
    assert_eq!(rest[0], moved);
    for (index, size) in sizes.iter().enumerate() {
        let pair = &rest[2 + index * 5..7 + index * 5];
        assert_eq!((pair[1], pair[3]), (*size, pair[0]), "object {index}");
    }
}

#[test]
fn writes_of_uninstrumented_code_are_logged() {
    let traced = scenario("writes");
    let writes = traced.events("t0", 0, RuntimeEvent::ExternalWrite);
    let first = u64::from_le_bytes(*b"01234567");
    assert_eq!(writes.len(), 5, "not that of a function that the module defines");
    assert_eq!(writes[0][1..], [10, first, u64::from(u16::from_le_bytes(*b"89"))]);
    assert_eq!(writes[1][1..], [3, first & 0xff_ffff]);
    assert_eq!(writes[2][1..], [8, first]);
    assert_eq!(writes[3][1], 1 << 20);
    assert_eq!(writes[4][1..], [8, first], "the next page cannot be read");
    assert_eq!(traced.trace.manifest().cut_writes, 1);
}

#[test]
fn modules_are_recorded_with_their_addresses_and_bitcode() {
    let traced = scenario("streams");
    let modules = traced.trace.modules();
    assert_eq!(modules.len(), 1);
    assert_eq!(modules[0].hash, [0x1122_3344_5566_7788, 0x99]);
    assert_eq!(modules[0].base, 0);
    assert_eq!(modules[0].functions[0], traced.trace.threads()[1].start_routine);
    assert_eq!((modules[0].functions.len(), modules[0].globals.len()), (3, 1));
    let ir = traced.directory.path().join("ir/00000000000000991122334455667788.bc.zst");
    assert_eq!(fs_err::read(ir).unwrap(), b"bitcode");
    let bad = traced.trace.module_bitcode(ModuleId(0));
    assert!(bad.is_err(), "these bytes are not the ones with that hash");
}

#[test]
fn a_forked_child_leaves_the_trace_alone() {
    let traced = scenario("fork");
    assert!(traced.status.success());
    assert_eq!(traced.trace.failure(), None);
    assert_eq!(traced.names(), ["t0"]);
    let blocks: Vec<Entry> = traced
        .entries("t0", 0)
        .into_iter()
        .filter(|entry| matches!(entry, Entry::Block(_)))
        .collect();
    assert_eq!(blocks, [Entry::Block(1), Entry::Block(2)]);
}

#[test]
fn non_local_exits_are_logged() {
    assert_eq!(scenario("jump").events("t0", 0, RuntimeEvent::NonLocal).len(), 1);
    let traced = scenario("thread-exit");
    assert_eq!(
        traced.entries("t0.1", 0)[..2],
        [Entry::Block(1), Entry::Runtime(RuntimeEvent::NonLocal, vec![])]
    );
    let entries = traced.entries("t0.1", 0);
    assert!(entries.last().is_some_and(Entry::is_thread_exit), "after what unwinding allocates");
}

#[test]
fn cxx_threads_end_after_their_thread_local_objects() {
    for (name, flags) in [("cxx", &[][..]), ("cxx-no-pie", &["-no-pie", "-fno-pie"])] {
        let program = build("threads.cpp", name, flags);
        let traced = run(&mut Command::new(&program));
        assert!(traced.status.success(), "exceptions pass through the runtime's frames");
        let entries = traced.entries("t0.1", 0);
        let blocks: Vec<&Entry> =
            entries.iter().filter(|entry| matches!(entry, Entry::Block(_))).collect();
        assert_eq!(blocks, [&Entry::Block(1), &Entry::Block(77)]);
        assert!(entries.last().is_some_and(Entry::is_thread_exit), "{:?}", entries.last());
        let traced = run(Command::new(&program).arg("uncaught"));
        assert_eq!(traced.signal(), Some(6));
        assert_eq!(traced.failure().kind, trace_format::FailureKind::Exception);
    }
}

#[test]
fn a_shared_library_uses_the_executables_runtime() {
    let library = build("library.c", "libwork.so", &["-shared", "-fPIC"]);
    let library = library.to_str().unwrap();
    let directory = std::path::Path::new(library).parent().unwrap().to_str().unwrap();
    let rpath = format!("-Wl,-rpath,{directory}");
    let program = build("uses_library.c", "uses_library", &[library, &rpath]);
    let traced = run(&mut Command::new(program));
    assert!(traced.status.success());
    assert_eq!(traced.trace.modules().len(), 2);
    let blocks: Vec<Entry> = traced
        .entries("t0", 0)
        .into_iter()
        .filter(|entry| matches!(entry, Entry::Block(_)))
        .collect();
    assert_eq!(blocks, [Entry::Block(1), Entry::Block(4)]);
}
