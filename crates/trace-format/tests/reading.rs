//! Traces that are well: sealed ones, and ones whose recording was cut short.

use crate::common::{BITCODE, data_files, raw_trace, read, sealed_trace};
use std::mem::offset_of;
use trace_format::layout::{Control, RuntimeEvent, STREAM_BEHIND, tag};
use trace_format::{FailureKind, ModuleId, OrderRecord, Outcome, PathEntry, State, Trace};

#[test]
fn a_sealed_trace_says_what_the_raw_one_said() {
    let (directory, manifest) = raw_trace(1000);
    let raw = read(directory.path()).unwrap();
    assert_eq!(raw.manifest.state, State::Recording);
    trace_format::seal(directory.path(), &manifest).unwrap();
    let sealed = read(directory.path()).unwrap();
    assert_eq!(sealed.manifest.state, State::Complete);
    assert_eq!(sealed.manifest.outcome, Some(Outcome::Signalled(6)));
    assert_eq!(
        (&raw.modules, &raw.bitcode, &raw.streams),
        (&sealed.modules, &sealed.bitcode, &sealed.streams)
    );
    let turn = |thread, gates, points| OrderRecord { thread, gates, points };
    let order = vec![turn(1, 10, 2), turn(2, 700, 0), turn(1, 12, 3)];
    assert_eq!((raw.order, sealed.order), (Some(order.clone()), Some(order)));
    assert_eq!(sealed.manifest.turns, Some(3));
    assert_eq!(raw.manifest.threads, sealed.manifest.threads);
    assert_eq!(raw.manifest.failure, sealed.manifest.failure);
    let names: Vec<String> = data_files(directory.path())
        .iter()
        .map(|path| path.extension().unwrap().to_string_lossy().into_owned())
        .collect();
    assert_eq!(names, ["zst", "json", "z", "z", "z", "z", "z", "z"], "the raw files are gone");
}

#[test]
fn entries_are_decoded() {
    let directory = sealed_trace(3);
    let trace = Trace::open(directory.path()).unwrap();
    let names: Vec<&str> = trace.threads().iter().map(|thread| thread.name.as_str()).collect();
    assert_eq!(names, ["t0", "t0.1"]);
    let failure = trace.failure().unwrap();
    assert_eq!(failure.kind, FailureKind::Assertion);
    assert_eq!(failure.thread.as_deref(), Some("t0.1"));
    assert_eq!(failure.message, "q.c:7: void f(void): q->filled > 0");
    assert_eq!(trace.module_bitcode(ModuleId(1)).unwrap(), BITCODE);
    let mut path = trace.path(&trace.threads()[0]).unwrap();
    assert_eq!(path.peek().unwrap(), path.next().unwrap());
    assert_eq!(path.position(), 1);
    assert_eq!(path.next().unwrap(), Some(PathEntry::Block(3)));
    assert_eq!(path.next().unwrap(), Some(PathEntry::Runtime(RuntimeEvent::ThreadCreate)));
    assert_eq!(path.next().unwrap(), Some(PathEntry::Return));
    assert_eq!(path.next().unwrap(), None);
    let mut path = trace.path(&trace.threads()[1]).unwrap();
    let entry = PathEntry::Enter { module: ModuleId(1), function: 2 };
    assert_eq!(path.next().unwrap(), Some(entry));
    let mut values = trace.values(&trace.threads()[0]).unwrap();
    assert_eq!(values.bytes(9).unwrap(), Some(vec![1, 0, 0, 0, 0, 0, 0, 0, 2]));
    assert_eq!(values.position(), 16);
    assert_eq!(values.word().unwrap(), Some(3));
    assert_eq!(values.word().unwrap(), None);
}

/// Choices that a killed thread had not put into a token yet, and a token that was not counted yet.
#[test]
fn choices_behind_the_last_token_count() {
    let long = [0xc0, 0, 0x12, 0x34];
    let cases = [
        // In the control page, at the cursor, what counts, and the bytes of its token.
        (0_u32, [0b101, 0, 0, 0], Some(0b101), 1),
        (0, long, Some(0x1234), 4),
        (1, long, Some(0x1234), 4),
        (0b101, [0; 4], Some(0b101), 1),
        (0x1234, [0; 4], Some(0x1234), 4),
        // The token was written, and the choices were not cleared yet.
        (0x1234, long, Some(0x1234), 4),
        // What is at the cursor was not whole yet.
        (0x1234, [0xc0, 0, 0, 0], Some(0x1234), 4),
        ((1 << 29) - 1, [0; 4], Some((1 << 29) - 1), 4),
        (0, [1, 0, 0, 0], None, 0),
        (1, [0; 4], None, 0),
        (0, [0x82, 0, 0, 0], None, 0),
        (0, [0xe0, 0, 0, 0], None, 0),
    ];
    let plain = read(raw_trace(2).0.path()).unwrap();
    let before = plain.streams[1].0.last().copied();
    for (open, token, found, more) in cases {
        let (directory, manifest) = raw_trace(2);
        let file = directory.path().join("threads/t0.1.path");
        let mut bytes = fs_err::read(&file).unwrap();
        let length = bytes.len() as u64;
        bytes.extend(token);
        fs_err::write(&file, bytes).unwrap();
        let control = directory.path().join("threads/t0.1.ctl");
        let mut page = fs_err::read(&control).unwrap();
        let at = offset_of!(Control, choices);
        page[at..at + 8].copy_from_slice(&u64::from(open).to_le_bytes());
        fs_err::write(&control, &page).unwrap();
        let raw = read(directory.path()).unwrap();
        let last = raw.streams[1].0.last().copied();
        let name = format!("{open:#x} {token:x?}");
        assert_eq!(last, found.map(crate::common::choices).or(before), "{name}");
        assert_eq!(raw.manifest.threads[1].path_bytes, length + more, "{name}");
        trace_format::seal(directory.path(), &manifest).unwrap();
        assert_eq!(read(directory.path()).unwrap().streams, raw.streams, "{name}");
    }
}

/// A kill while the window's contents are moved behind it: they count once, whatever was done of it.
#[test]
fn what_is_being_moved_counts_once() {
    let (directory, _) = raw_trace(700_000);
    let control = directory.path().join("threads/t0.1.ctl");
    let file = directory.path().join("threads/t0.1.values");
    let whole = read(directory.path()).unwrap();
    let page = fs_err::read(&control).unwrap();
    let word = |page: &[u8], at: usize| u64::from_le_bytes(page[at..at + 8].try_into().unwrap());
    let [next, base, moved, moving] = [
        offset_of!(Control, value_next),
        offset_of!(Control, value_base),
        offset_of!(Control, value_moved),
        offset_of!(Control, value_moving),
    ];
    let (behind, window) = (word(&page, moved), word(&page, next) - word(&page, base));
    let set = |page: &mut [u8], at: usize, word: u64| {
        page[at..at + 8].copy_from_slice(&word.to_le_bytes());
        fs_err::write(&control, page).unwrap();
    };
    // All but the last bytes of the window, as when it has more than a piece.
    for left in [0, 200] {
        let (mut page, mut bytes) = (page.clone(), fs_err::read(&file).unwrap());
        let (taken, rest) = (window - left, left as usize);
        fs_err::write(&control, &page).unwrap();
        // Appended, but nothing says so yet.
        bytes.truncate(STREAM_BEHIND + behind as usize);
        bytes.extend_from_within(..taken as usize);
        fs_err::write(&file, &bytes).unwrap();
        assert_eq!(read(directory.path()).unwrap(), whole);
        // It counts; the window is as before.
        set(&mut page, moving, behind + taken);
        assert_eq!(read(directory.path()).unwrap(), whole);
        // The rest is at the window's beginning, too, and then there alone.
        bytes.copy_within(taken as usize..window as usize, 0);
        fs_err::write(&file, &bytes).unwrap();
        assert_eq!(read(directory.path()).unwrap(), whole);
        let start = word(&page, base);
        set(&mut page, next, start + left);
        assert_eq!(read(directory.path()).unwrap(), whole);
        bytes[rest..STREAM_BEHIND].fill(0);
        fs_err::write(&file, &bytes).unwrap();
        assert_eq!(read(directory.path()).unwrap(), whole);
        set(&mut page, moved, behind + taken);
        assert_eq!(read(directory.path()).unwrap(), whole);
        // As it was.
        let (again, _) = raw_trace(700_000);
        fs_err::copy(again.path().join("threads/t0.1.values"), &file).unwrap();
    }
}

/// While a path's window is emptied, the token at its beginning is an old one, and no choice that
/// was made since.
#[test]
fn what_is_being_moved_holds_no_choices() {
    let (directory, _) = raw_trace(2);
    let control = directory.path().join("threads/t0.1.ctl");
    let file = directory.path().join("threads/t0.1.path");
    let mut bytes = fs_err::read(&file).unwrap();
    let mut page = fs_err::read(&control).unwrap();
    let word = |page: &[u8], at: usize| u64::from_le_bytes(page[at..at + 8].try_into().unwrap());
    let [next, base] = [offset_of!(Control, path_next), offset_of!(Control, path_base)];
    let length = (word(&page, next) - word(&page, base)) as usize;
    bytes.truncate(length);
    let mut whole = bytes.clone();
    whole.resize(STREAM_BEHIND, 0);
    whole[0] = 0b101;
    whole.extend(&bytes);
    fs_err::write(&file, &whole).unwrap();
    let moving = offset_of!(Control, path_moving);
    page[moving..moving + 8].copy_from_slice(&(length as u64).to_le_bytes());
    fs_err::write(&control, &page).unwrap();
    let raw = read(directory.path()).unwrap();
    assert_eq!(raw.manifest.threads[1].path_bytes, length as u64);
}

#[test]
fn paths_are_compared_without_their_tokens() {
    let one = [crate::common::choices(0b1101), crate::common::choices(0b10), crate::common::RETURN];
    let other =
        [crate::common::choices(0b11), crate::common::choices(0b1010), crate::common::RETURN];
    assert_eq!(trace_format::outcomes(&one), trace_format::outcomes(&other));
    assert_eq!(trace_format::outcomes(&one).len(), 5);
    // When the clock was read, and how often a round was repeated, is no part of the path.
    let runtime = |event| tag::RUNTIME << tag::SHIFT | event as u32;
    let timed = [
        crate::common::choices(0b1101),
        runtime(RuntimeEvent::Repeat),
        runtime(RuntimeEvent::Reading),
        runtime(RuntimeEvent::CallReading),
        crate::common::choices(0b10),
        crate::common::RETURN,
    ];
    assert_eq!(trace_format::outcomes(&one), trace_format::outcomes(&timed));
    let shorter = [crate::common::choices(0b1101)];
    assert!(trace_format::outcomes(&one).starts_with(&trace_format::outcomes(&shorter)));
}

#[test]
fn streams_of_several_chunks_come_back_whole() {
    let directory = sealed_trace(700_000);
    let contents = read(directory.path()).unwrap();
    let (path, values) = &contents.streams[1];
    assert_eq!((path.len(), values.len()), (700_001, 700_000));
    assert_eq!(path[700_000], crate::common::block(699_999));
    assert_eq!(values[699_999], 699_999 * 0x9e37_79b9);
}

#[test]
fn a_thread_that_never_started_is_left_out() {
    let (directory, manifest) = raw_trace(1);
    let threads = directory.path().join("threads");
    fs_err::write(threads.join("t0.2.ctl"), []).unwrap();
    fs_err::write(threads.join("t0.2.path"), []).unwrap();
    assert_eq!(read(directory.path()).unwrap().streams.len(), 2);
    trace_format::seal(directory.path(), &manifest).unwrap();
    assert_eq!(read(directory.path()).unwrap().streams.len(), 2);
    assert!(!threads.join("t0.2.path").exists());
}

#[test]
fn half_a_module_record_is_left_out_of_a_cut_recording() {
    let (directory, manifest) = raw_trace(1);
    let path = directory.path().join("modules.bin");
    let mut bytes = fs_err::read(&path).unwrap();
    bytes.extend(&crate::common::module_record(7, &[1; 9], &[])[..60]);
    fs_err::write(&path, bytes).unwrap();
    assert_eq!(read(directory.path()).unwrap().modules.len(), 2);
    trace_format::seal(directory.path(), &manifest).unwrap();
    assert_eq!(read(directory.path()).unwrap().modules.len(), 2);
}

#[test]
fn sealing_that_was_cut_short_is_done_again() {
    let (directory, manifest) = raw_trace(100);
    let before = read(directory.path()).unwrap();
    fs_err::write(directory.path().join("threads/t0.1.path.z"), b"half").unwrap();
    assert_eq!(read(directory.path()).unwrap(), before);
    trace_format::seal(directory.path(), &manifest).unwrap();
    assert_eq!(read(directory.path()).unwrap().streams, before.streams);
}

#[test]
fn a_run_without_a_scheduler_has_no_order() {
    let (directory, manifest) = raw_trace(3);
    fs_err::remove_file(directory.path().join("order.bin")).unwrap();
    assert_eq!(read(directory.path()).unwrap().order, None);
    trace_format::seal(directory.path(), &manifest).unwrap();
    assert_eq!(read(directory.path()).unwrap().order, None);
}

#[test]
fn a_truncated_order_ends_before_the_missing_part() {
    let (directory, _) = raw_trace(3);
    let path = directory.path().join("order.bin");
    for (bytes, turns) in [(0, 0), (23, 0), (24, 1), (71, 2)] {
        let whole = fs_err::read(&path).unwrap();
        fs_err::write(&path, &whole[..bytes]).unwrap();
        let order = Trace::open(directory.path()).unwrap().order().unwrap().unwrap();
        assert_eq!(order.len(), turns, "{bytes}");
        fs_err::write(&path, whole).unwrap();
    }
}

#[test]
fn a_manifest_of_format_1_0_is_read() {
    let (directory, _) = raw_trace(3);
    let path = directory.path().join("manifest.json");
    let mut json: serde_json::Value =
        serde_json::from_slice(&fs_err::read(&path).unwrap()).unwrap();
    let fields = json.as_object_mut().unwrap();
    for newer in ["program", "noise", "seed", "schedule", "turns"] {
        assert!(fields.remove(newer).is_some(), "{newer}");
    }
    fields.insert("checksum".into(), "00000000".into());
    fields.insert("version".into(), serde_json::json!({"major": 1, "minor": 0}));
    let blank = serde_json::to_string_pretty(&json).unwrap();
    let sum = format!("{:08x}", crc32fast::hash(blank.as_bytes()));
    let text = blank.replacen("\"checksum\": \"00000000", &format!("\"checksum\": \"{sum}"), 1);
    fs_err::write(&path, text).unwrap();
    let trace = Trace::open(directory.path()).unwrap();
    let manifest = trace.manifest();
    assert_eq!((&manifest.noise, manifest.seed, manifest.schedule), (&None, None, false));
    assert_eq!((&manifest.program, manifest.turns), (&None, None));
}
