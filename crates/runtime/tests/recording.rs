//! What ends up in the streams.

use crate::common::{Entry, build, operations, run, run_in, scenario, scenarios};
use std::process::Command;
use trace_format::ModuleId;
use trace_format::layout::SyncOp::*;
use trace_format::layout::{
    MAPPING_GROWN, MAPPING_MOVED, MAPPING_OTHER, MAPPING_PAGE as PAGE, MAPPING_ZERO, RuntimeEvent,
    SocketUse, SyncOp,
};

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

/// The privileges are those of root; anybody else keeps the trace directory as it is.
#[test]
fn what_gives_up_its_privileges_is_recorded_all_the_same() {
    let traced = scenario("drops");
    let threads = traced.trace.threads();
    assert_eq!(threads.len(), 3);
    assert!(threads.iter().all(|thread| thread.ended), "{threads:?}");
    for thread in &threads[1..] {
        assert!(thread.path_bytes > 200_000, "{thread:?}");
    }
    assert_eq!(traced.trace.manifest().unattached_threads, 0);
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
    let begun = traced.calls("t0", 0, RuntimeEvent::SyncBegin);
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
    let ended = operations(&traced.calls("t0", 0, RuntimeEvent::SyncEnd));
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

/// The time stamps of synchronisation entries; an entry with that of the one before has no reading.
fn readings(entries: &[&Entry]) -> Vec<u64> {
    let mut times: Vec<u64> = entries
        .iter()
        .filter_map(|entry| match entry {
            Entry::Runtime(RuntimeEvent::Locked | RuntimeEvent::Unlocked, p) => Some(p[1]),
            Entry::Runtime(RuntimeEvent::SyncBegin | RuntimeEvent::SyncEnd, p) => Some(p[4]),
            _ => None,
        })
        .collect();
    assert!(times.is_sorted(), "{times:?}");
    times.dedup();
    times
}

#[test]
fn an_uncontended_critical_section_takes_two_entries_and_two_readings() {
    let traced = scenario("sections");
    let entries = traced.entries("t0", 0);
    let free: Vec<&Entry> = entries.iter().take_while(|entry| **entry != Entry::Block(1)).collect();
    let mut addresses = Vec::new();
    for (number, pair) in free.chunks(2).enumerate() {
        let &[
            Entry::Runtime(RuntimeEvent::Locked, locked),
            Entry::Runtime(RuntimeEvent::Unlocked, unlocked),
        ] = &pair
        else {
            panic!("section {number} is {pair:?}");
        };
        assert_eq!(locked[0], unlocked[0]);
        addresses.push(locked[0]);
    }
    assert_eq!(addresses.len(), 30);
    assert!(addresses[3..].iter().zip(&addresses).all(|(address, before)| address == before));
    assert!(addresses[0] != addresses[1] && addresses[1] != addresses[2]);
    assert_eq!(readings(&free).len(), 60);
    let bytes = traced.trace.threads()[0].value_bytes;
    assert!(bytes < 1000, "{bytes} bytes for these and a few others");
}

#[test]
fn a_mutex_that_somebody_has_takes_readings_before_and_behind_the_wait() {
    let traced = scenario("sections");
    let entries = traced.entries("t0", 0);
    let contended: Vec<&Entry> = entries
        .iter()
        .skip_while(|entry| **entry != Entry::Block(1))
        .take_while(|entry| **entry != Entry::Block(2))
        .filter(|entry| !matches!(entry, Entry::Runtime(RuntimeEvent::Allocate, _)))
        .collect();
    let [
        Entry::Block(1),
        Entry::Runtime(RuntimeEvent::ThreadCreate, _),
        Entry::Runtime(RuntimeEvent::SyncBegin, begin),
        Entry::Runtime(RuntimeEvent::SyncEnd, end),
        Entry::Runtime(RuntimeEvent::Unlocked, unlocked),
        Entry::Runtime(RuntimeEvent::JoinBegin, _),
        Entry::Runtime(RuntimeEvent::JoinEnd, _),
    ] = contended[..]
    else {
        panic!("{contended:?}");
    };
    assert_eq!([&begin[..4], &end[..4]], [&[1, unlocked[0], 0, 0]; 2]);
    assert_eq!(readings(&contended).len(), 3);
    // The other thread had it at once, and unlocked it while this one waited.
    let other = traced.entries("t0.1", 0);
    let times = readings(&other.iter().collect::<Vec<_>>());
    let [locked, released] = times[..] else { panic!("{times:?}") };
    assert!(locked < end[4] && released < end[4] && begin[4] < released);
}

#[test]
fn mutexes_of_other_kinds_are_logged_with_kind_and_result() {
    let traced = scenario("sections");
    let entries = traced.entries("t0", 0);
    let at = entries.iter().position(|entry| *entry == Entry::Block(2)).unwrap();
    let (again, dead, lost, not_own) = (35, 130, 131, 1);
    let of = |kind| -> Vec<(SyncOp, i64)> {
        let payloads: Vec<Vec<u64>> = entries[at..]
            .iter()
            .filter_map(|entry| match entry {
                Entry::Runtime(event, payload) if *event == kind => Some(payload.clone()),
                _ => None,
            })
            .collect();
        operations(&payloads)
    };
    let (recursive, checks) = (1, 2);
    assert_eq!(
        of(RuntimeEvent::SyncBegin),
        [
            (MutexLock, recursive),
            (MutexLock, recursive),
            (MutexUnlock, recursive),
            (MutexUnlock, recursive),
            (MutexLock, checks),
            (MutexLock, checks),
            (MutexUnlock, checks),
            (MutexUnlock, checks),
            (MutexLock, 0),
            (MutexUnlock, 0),
            (MutexLock, 0),
        ]
    );
    let results: Vec<i64> =
        of(RuntimeEvent::SyncEnd).into_iter().map(|(_, result)| result).collect();
    assert_eq!(results, [0, 0, 0, 0, 0, again, 0, not_own, dead, 0, lost]);
}

#[test]
fn c11_threads_and_mutexes_look_like_pthreads() {
    let traced = scenario("c11");
    assert_eq!(traced.names(), ["t0", "t0.1"]);
    let ended = operations(&traced.calls("t0", 0, RuntimeEvent::SyncEnd));
    assert_eq!(ended, [(MutexLock, 0), (MutexTryLock, 16), (MutexUnlock, 0)]);
    assert_eq!(traced.events("t0", 0, RuntimeEvent::JoinEnd).len(), 1);
    assert_eq!(traced.entries("t0.1", 0)[0], Entry::Block(5));
}

#[test]
fn the_heap_is_logged_with_growing_time_stamps() {
    let traced = scenario("heap");
    let of_the_heap = |entry| match entry {
        Entry::Runtime(RuntimeEvent::Allocate | RuntimeEvent::Free, payload) => Some(payload),
        _ => None,
    };
    // The registration allocates nothing, so the first object is the program's.
    let entries = traced.entries("t0", 0).into_iter();
    let mut words = entries.filter_map(of_the_heap).flatten();
    let mut word = || words.next().expect("one more");
    let (object, size, obtained) = (word(), word(), word());
    assert_eq!((size, word()), (10, object));
    let (freed, given_back) = (word(), word());
    assert_eq!(freed, object, "realloc gives the old object back");
    assert!(given_back > obtained);
    let (moved, size, later) = (word(), word(), word());
    assert_eq!((size, word()), (5000, moved));
    assert!(later > given_back);
    let rest: Vec<u64> = words.collect();
    let sizes: Vec<u64> = [21, 100, 6, 64].into();
    // free(moved), then pairs of an allocation (3 words) and a free (2 words).
    assert_eq!(rest[0], moved);
    for (index, size) in sizes.iter().enumerate() {
        let pair = &rest[2 + index * 5..7 + index * 5];
        assert_eq!((pair[1], pair[3]), (*size, pair[0]), "object {index}");
    }
}

#[test]
fn mappings_are_logged_page_by_page() {
    let traced = scenario("maps");
    let maps: Vec<(RuntimeEvent, Vec<u64>)> = traced
        .entries("t0", 0)
        .into_iter()
        .filter_map(|entry| match entry {
            Entry::Runtime(event @ (RuntimeEvent::Map | RuntimeEvent::Unmap), payload) => {
                Some((event, payload))
            }
            _ => None,
        })
        .collect();
    let stamps = |(event, _): &(RuntimeEvent, Vec<u64>)| match event {
        RuntimeEvent::Map => 2,
        _ => 1,
    };
    let parts = maps.iter().map(|entry| entry.1.split_at(entry.1.len() - stamps(entry)));
    let (told, times): (Vec<&[u64]>, Vec<&[u64]>) = parts.unzip();
    assert!(times.concat().is_sorted(), "{times:?}");
    let (first, room, file) = (told[0][0], told[2][0], told[told.len() - 1][0]);
    let place = room + PAGE;
    let expected: [&[u64]; 10] = [
        &[first, 2 * PAGE, MAPPING_ZERO],
        &[first + PAGE, PAGE],
        &[room, 5 * PAGE, MAPPING_ZERO],
        &[first, PAGE],
        &[place, PAGE, MAPPING_MOVED | first],
        &[place + PAGE, 3 * PAGE, MAPPING_GROWN | place],
        &[place + PAGE, 3 * PAGE],
        &[place + PAGE, PAGE, MAPPING_GROWN | place],
        &[file, PAGE, MAPPING_OTHER],
        &[file, PAGE],
    ];
    assert_eq!(told, expected);
}

#[test]
fn writes_of_uninstrumented_code_are_logged() {
    let traced = scenario("writes");
    let writes = traced.events("t0", 0, RuntimeEvent::ExternalWrite);
    let first = u64::from_le_bytes(*b"01234567");
    assert_eq!(writes.len(), 6, "not those of functions that a module defines by then");
    assert_eq!(writes[0][1..], [10, first, u64::from(u16::from_le_bytes(*b"89"))]);
    assert_eq!(writes[1][1..], [3, first & 0xff_ffff]);
    assert_eq!(writes[2][1..], [8, first]);
    assert_eq!(writes[3][1], 1 << 20);
    assert_eq!(writes[4][1..], [8, first], "the next page cannot be read");
    assert_eq!(writes[5][1..], [4, first & 0xffff_ffff]);
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

/// The process ends while a library is being loaded: where its bitcode is not there yet, it has run nothing, and is left
/// out. Nobody reads what the thread that loads it wants to write.
#[test]
fn a_library_is_named_when_its_bitcode_is_there() {
    let directory = tempfile::tempdir().unwrap();
    let ir = directory.path().join("ir");
    fs_err::create_dir(&ir).unwrap();
    let made = Command::new("mkfifo").arg(ir.join("partial-3")).status().unwrap();
    assert!(made.success());
    let traced = run_in(directory, Command::new(scenarios()).arg("loads"));
    assert!(traced.trace.failure().is_some());
    assert_eq!(traced.trace.modules().len(), 1);
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

#[test]
fn both_ends_of_a_connection_are_told_by_the_same_numbers() {
    let traced = scenario("connections");
    let begun = traced.calls("t0", 0, RuntimeEvent::SyncBegin);
    let ended = traced.calls("t0", 0, RuntimeEvent::SyncEnd);
    let told: Vec<_> =
        begun.iter().zip(&ended).map(|(begin, end)| (begin, end[3] as i64)).collect();
    let numbers: Vec<u64> = begun.iter().map(|call| call[1]).collect();
    let about = |what: SocketUse, op, moved| (op as u64, what as u64, moved);
    let expected = [
        about(SocketUse::Connection, SocketWrite, 1),
        about(SocketUse::Connection, SocketRead, 1),
        about(SocketUse::Bytes, SocketWrite, 5),
        about(SocketUse::Bytes, SocketRead, 2),
        about(SocketUse::Bytes, SocketRead, 3),
        // Only the last descriptor's closing ends it, and it is found ended once.
        about(SocketUse::End, SocketWrite, 1),
        about(SocketUse::End, SocketRead, 1),
        about(SocketUse::Doubt, SocketWrite, 1),
        about(SocketUse::End, SocketWrite, 1),
    ];
    let seen: Vec<_> = told.iter().map(|(call, moved)| (call[0], call[2], *moved)).collect();
    assert_eq!(seen, expected);
    assert_eq!(numbers[0], numbers[1]);
    assert_eq!([numbers[2]; 3], [numbers[3], numbers[4], numbers[7]]);
    assert_eq!(numbers[5], numbers[6]);
    let mut different = [numbers[0], numbers[2], numbers[5], numbers[8]];
    different.sort_unstable();
    assert!(different.windows(2).all(|pair| pair[0] != pair[1]), "{different:x?}");
}
