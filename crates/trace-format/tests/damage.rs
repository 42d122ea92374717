//! Traces that are not well: every damage is a typed error that names the file, never a panic and
//! never other data.

use crate::common::{data_files, raw_trace, read, sealed_trace, write_process};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::path::Path;
use trace_format::layout::INSTRUMENTATION_VERSION;
use trace_format::{FormatVersion, Manifest, TraceError};

fn flip(path: &Path, at: usize, mask: u8) {
    let mut bytes = fs_err::read(path).unwrap();
    bytes[at] ^= mask;
    fs_err::write(path, bytes).unwrap();
}

#[test]
fn a_directory_without_a_manifest_is_not_a_trace() {
    let directory = tempfile::tempdir().unwrap();
    let error = read(directory.path()).unwrap_err();
    assert!(matches!(error, TraceError::NotATrace { .. }), "{error}");
    assert!(error.to_string().contains("symbiosis record"));
}

#[test]
fn every_missing_file_is_named() {
    let whole = sealed_trace(10);
    for file in data_files(whole.path()) {
        let bytes = fs_err::read(&file).unwrap();
        fs_err::remove_file(&file).unwrap();
        match read(whole.path()).unwrap_err() {
            TraceError::Missing { path } => assert_eq!(path, file),
            TraceError::NotATrace { .. } => assert!(file.ends_with("manifest.json")),
            other => panic!("{other}"),
        }
        fs_err::write(&file, bytes).unwrap();
    }
    read(whole.path()).unwrap();
}

/// The offsets at which the parts of a sealed stream begin: header, chunks, end marker, end.
fn boundaries(bytes: &[u8]) -> Vec<usize> {
    let mut offsets = vec![0, 20];
    let mut at = 20;
    while bytes[at..at + 4] != [0; 4] {
        let compressed = u32::from_le_bytes(bytes[at + 4..at + 8].try_into().unwrap());
        at += 12 + compressed as usize;
        offsets.push(at);
    }
    offsets
}

#[test]
fn a_truncated_stream_is_told_from_an_ended_one() {
    let directory = sealed_trace(700_000);
    let file = directory.path().join("threads/t0.1.path.z");
    let whole = fs_err::read(&file).unwrap();
    let starts = boundaries(&whole);
    assert!(starts.len() >= 5, "three chunks");
    let middles = starts.windows(2).map(|pair| (pair[0] + pair[1]) / 2);
    let cuts: Vec<usize> = starts.iter().copied().chain(middles).chain([whole.len() - 1]).collect();
    for cut in cuts {
        fs_err::write(&file, &whole[..cut]).unwrap();
        match read(directory.path()).unwrap_err() {
            TraceError::Truncated { path, offset, .. } => {
                assert_eq!(path, file);
                assert!(offset <= cut as u64, "{offset} for a cut at {cut}");
            }
            other => panic!("cut at {cut}: {other}"),
        }
    }
}

#[test]
fn a_damaged_chunk_is_named_by_its_offset() {
    let directory = sealed_trace(700_000);
    let file = directory.path().join("threads/t0.1.values.z");
    let starts = boundaries(&fs_err::read(&file).unwrap());
    flip(&file, starts[3] + 100, 0x10);
    match read(directory.path()).unwrap_err() {
        TraceError::Checksum { path, offset } => {
            assert_eq!((path, offset), (file, starts[3] as u64));
        }
        other => panic!("{other}"),
    }
}

/// Every byte of every file, with a different bit each.
#[test]
fn no_flipped_bit_gives_other_data() {
    let directory = sealed_trace(50);
    let right = read(directory.path()).unwrap();
    for file in data_files(directory.path()) {
        for at in 0..fs_err::read(&file).unwrap().len() {
            let mask = 1 << (at % 8);
            flip(&file, at, mask);
            if let Ok(contents) = read(directory.path()) {
                assert_eq!(contents, right, "byte {at} of {}", file.display());
            }
            flip(&file, at, mask);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, rng_seed: RngSeed::Fixed(0), ..ProptestConfig::default() })]

    #[test]
    fn no_overwritten_range_gives_other_data(
        file in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        bytes in prop::collection::vec(any::<u8>(), 1..40),
    ) {
        let directory = sealed_trace(200);
        let right = read(directory.path()).unwrap();
        let files = data_files(directory.path());
        let path = &files[file.index(files.len())];
        let mut contents = fs_err::read(path).unwrap();
        let at = at.index(contents.len());
        let end = contents.len().min(at + bytes.len());
        contents[at..end].copy_from_slice(&bytes[..end - at]);
        fs_err::write(path, contents).unwrap();
        if let Ok(contents) = read(directory.path()) {
            prop_assert_eq!(contents, right);
        }
    }

    /// Raw files carry no checksums, but whatever is in them must not make the reader panic.
    #[test]
    fn damaged_raw_files_do_not_panic(
        file in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let (directory, manifest) = raw_trace(20);
        let files = data_files(directory.path());
        let path = &files[file.index(files.len())];
        let at = at.index(fs_err::read(path).unwrap().len());
        flip(path, at, byte);
        let _ = read(directory.path());
        let _ = trace_format::seal(directory.path(), &manifest);
        let _ = read(directory.path());
    }
}

#[test]
fn a_raw_stream_shorter_than_its_control_page_says_is_truncated() {
    let (directory, manifest) = raw_trace(20);
    let file = directory.path().join("threads/t0.1.path");
    fs_err::write(&file, [1; 10]).unwrap();
    for error in [
        read(directory.path()).unwrap_err(),
        trace_format::seal(directory.path(), &manifest).unwrap_err(),
    ] {
        assert!(matches!(&error, TraceError::Truncated { path, offset: 10, .. } if *path == file));
    }
}

/// A manifest as another version would have written it, checksum included.
fn write_manifest_of(directory: &Path, version: FormatVersion) {
    let mut manifest = Manifest::read(directory).unwrap();
    manifest.version = version;
    manifest.write(directory).unwrap();
}

#[test]
fn a_newer_format_is_refused_with_its_version() {
    let directory = sealed_trace(1);
    write_manifest_of(directory.path(), FormatVersion { major: 1, minor: 7 });
    match read(directory.path()).unwrap_err() {
        TraceError::NewerFormat { found, .. } => {
            assert_eq!(found, FormatVersion { major: 1, minor: 7 });
        }
        other => panic!("{other}"),
    }
}

#[test]
fn an_older_major_format_is_refused_too() {
    let directory = sealed_trace(1);
    write_manifest_of(directory.path(), FormatVersion { major: 0, minor: 0 });
    let error = read(directory.path()).unwrap_err();
    assert!(error.to_string().contains("trace format 0.0"), "{error}");
}

#[test]
fn another_instrumentation_is_refused() {
    let (directory, manifest) = raw_trace(1);
    write_process(directory.path(), INSTRUMENTATION_VERSION + 1, b"");
    for error in [
        read(directory.path()).unwrap_err(),
        trace_format::seal(directory.path(), &manifest).unwrap_err(),
    ] {
        match error {
            TraceError::UnknownInstrumentation { path, found, supported } => {
                assert_eq!(path, directory.path().join("process.bin"));
                assert_eq!(found, INSTRUMENTATION_VERSION + 1);
                assert_eq!(supported, INSTRUMENTATION_VERSION);
            }
            other => panic!("{other}"),
        }
    }
}

#[test]
fn a_path_entry_without_a_meaning_is_an_error() {
    let (directory, _) = raw_trace(1);
    for (entry, valid) in
        [(0u32, false), (crate::common::enter(6), true), (crate::common::enter(7), false)]
    {
        crate::common::write_thread(directory.path(), "t0", [1, 0, 0], &[entry], &[], 0);
        match read(directory.path()) {
            Ok(_) => assert!(valid, "{entry:#x}"),
            Err(TraceError::Malformed { offset: 0, .. }) => assert!(!valid, "{entry:#x}"),
            Err(other) => panic!("{other}"),
        }
    }
}
