//! Raw trace directories made by hand, as the runtime would leave them.

use std::mem::{offset_of, size_of};
use std::path::Path;
use tempfile::TempDir;
use trace_format::layout::{
    CONTROL_MAGIC, CONTROL_PAGE_SIZE, Control, INSTRUMENTATION_VERSION, MODULE_MAGIC,
    ModuleRecordHeader, PROCESS_FILE_SIZE, PROCESS_MAGIC, Process, RawFailure, RuntimeEvent,
    STREAM_BEHIND, STREAM_PIECE, tag, token,
};
use trace_format::{
    Executable, Manifest, Module, OrderRecord, Outcome, Trace, TraceError, bitcode_file_name,
    bitcode_hash,
};

pub const BITCODE: &[u8] = b"BC\xc0\xdenot really bitcode, but bytes all the same";

/// Everything a trace says, for comparing.
#[derive(Clone, Debug, PartialEq)]
pub struct Contents {
    pub manifest: Manifest,
    pub modules: Vec<Module>,
    pub bitcode: Vec<Vec<u8>>,
    pub streams: Vec<(Vec<u32>, Vec<u64>)>,
    pub order: Option<Vec<OrderRecord>>,
}

pub fn read(directory: &Path) -> Result<Contents, TraceError> {
    let trace = Trace::open(directory)?;
    let mut streams = Vec::new();
    for thread in trace.threads() {
        let mut decoded = trace.path(thread)?;
        while decoded.next()?.is_some() {}
        streams.push((trace.path_entries(thread)?, trace.value_words(thread)?));
    }
    let bitcode = (0..trace.modules().len() as u32)
        .map(|id| trace.module_bitcode(trace_format::ModuleId(id)))
        .collect::<Result<_, _>>()?;
    Ok(Contents {
        manifest: trace.manifest().clone(),
        modules: trace.modules().to_vec(),
        bitcode,
        streams,
        order: trace.order()?,
    })
}

fn put(page: &mut [u8], at: usize, word: u64) {
    page[at..at + 8].copy_from_slice(&word.to_le_bytes());
}

fn put_half(page: &mut [u8], at: usize, word: u32) {
    page[at..at + 4].copy_from_slice(&word.to_le_bytes());
}

pub fn block(index: u32) -> u32 {
    tag::BLOCK << tag::SHIFT | (index + tag::BLOCK_BIAS)
}

pub fn enter(number: u32) -> u32 {
    tag::ENTER << tag::SHIFT | number
}

pub fn runtime(event: RuntimeEvent) -> u32 {
    tag::RUNTIME << tag::SHIFT | event as u32
}

pub const RETURN: u32 = tag::RETURN << tag::SHIFT | 1;

/// The tokens of entries.
fn tokens(path: &[u32]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for &entry in path {
        let payload = entry & tag::PAYLOAD;
        match entry >> tag::SHIFT {
            _ if entry == 0 => bytes.push(0),
            tag::BLOCK => {
                bytes.push(token::BLOCK);
                bytes.extend((payload - tag::BLOCK_BIAS).to_le_bytes());
            }
            tag::ENTER => {
                let called = payload & tag::CALLED != 0;
                bytes.push(if called { token::CALLED } else { token::ENTER });
                let payload = payload & !tag::CALLED;
                bytes.extend(payload.to_le_bytes());
            }
            tag::RETURN if payload == 1 => bytes.push(token::RETURN),
            tag::RETURN if payload == tag::OPEN => bytes.push(token::OPEN),
            tag::RETURN if payload == tag::CAME_BACK => bytes.push(token::CAME_BACK),
            tag::RETURN => {
                let (token, length) = token::of_choices(payload - tag::CHOICES);
                bytes.extend(&token[..length]);
            }
            _ => bytes.push(token::RUNTIME + payload as u8),
        }
    }
    bytes
}

pub fn choices(choices: u32) -> u32 {
    tag::RETURN << tag::SHIFT | tag::CHOICES | choices
}

/// Writes a thread's raw files, with `junk` bytes behind the streams as in a mapped file.
pub fn write_thread(
    directory: &Path,
    file: &str,
    ids: [u64; 3],
    path: &[u32],
    values: &[u64],
    junk: usize,
) {
    let threads = directory.join("threads");
    let mut page = vec![0; CONTROL_PAGE_SIZE];
    let bytes = tokens(path);
    put(&mut page, offset_of!(Control, path_base), 0x1000);
    let (moved, window) = raw_stream(&bytes, junk);
    put(&mut page, offset_of!(Control, path_next), 0x1000 + bytes.len() as u64 - moved);
    put(&mut page, offset_of!(Control, path_moved), moved);
    put(&mut page, offset_of!(Control, path_moving), moved);
    fs_err::write(threads.join(format!("{file}.path")), window).unwrap();
    let bytes: Vec<u8> = values.iter().flat_map(|word| word.to_le_bytes()).collect();
    put(&mut page, offset_of!(Control, value_base), 0x10_0000);
    let (moved, window) = raw_stream(&bytes, junk);
    put(&mut page, offset_of!(Control, value_next), 0x10_0000 + bytes.len() as u64 - moved);
    put(&mut page, offset_of!(Control, value_moved), moved);
    put(&mut page, offset_of!(Control, value_moving), moved);
    fs_err::write(threads.join(format!("{file}.values")), window).unwrap();
    put(&mut page, offset_of!(Control, magic), CONTROL_MAGIC);
    put(&mut page, offset_of!(Control, serial), ids[0]);
    put(&mut page, offset_of!(Control, parent), ids[1]);
    put(&mut page, offset_of!(Control, ordinal), ids[2]);
    fs_err::write(threads.join(format!("{file}.ctl")), page).unwrap();
}

/// A stream's raw file with `junk` behind, and how many of the stream's bytes are behind the window:
/// all but the last ones, when it has more than the window holds.
fn raw_stream(bytes: &[u8], junk: usize) -> (u64, Vec<u8>) {
    let moved = if bytes.len() > STREAM_PIECE { bytes.len() - STREAM_PIECE / 3 } else { 0 };
    let mut file = bytes[moved..].to_vec();
    file.resize(file.len() + junk, 0xee);
    if moved > 0 {
        file.resize(STREAM_BEHIND, 0xee);
        file.extend(&bytes[..moved]);
        file.resize(file.len() + junk, 0xee);
    }
    (moved as u64, file)
}

pub fn write_process(directory: &Path, version: u32, message: &[u8]) {
    let mut page = vec![0; PROCESS_FILE_SIZE];
    put(&mut page, offset_of!(Process, magic), PROCESS_MAGIC);
    put_half(&mut page, offset_of!(Process, version), version);
    put_half(&mut page, offset_of!(Process, failure), RawFailure::Assertion as u32);
    put(&mut page, offset_of!(Process, failure_thread), 2);
    put(&mut page, offset_of!(Process, code), 6);
    put_half(&mut page, offset_of!(Process, message_length), message.len() as u32);
    let at = offset_of!(Process, message);
    page[at..at + message.len()].copy_from_slice(message);
    fs_err::write(directory.join("process.bin"), page).unwrap();
}

/// A module record as the runtime appends it.
pub fn module_record(base: u32, functions: &[u64], globals: &[u64]) -> Vec<u8> {
    let mut record = vec![0; size_of::<ModuleRecordHeader>()];
    let hash = bitcode_hash(BITCODE);
    put(&mut record, offset_of!(ModuleRecordHeader, magic), MODULE_MAGIC);
    put(&mut record, offset_of!(ModuleRecordHeader, hash), hash[0]);
    put(&mut record, offset_of!(ModuleRecordHeader, hash) + 8, hash[1]);
    put_half(&mut record, offset_of!(ModuleRecordHeader, function_count), functions.len() as u32);
    put_half(&mut record, offset_of!(ModuleRecordHeader, global_count), globals.len() as u32);
    put_half(&mut record, offset_of!(ModuleRecordHeader, base), base);
    put_half(&mut record, offset_of!(ModuleRecordHeader, version), INSTRUMENTATION_VERSION);
    record.extend(functions.iter().chain(globals).flat_map(|word| word.to_le_bytes()));
    record
}

/// An unsealed trace of two threads; the second one's streams get `blocks` entries and words.
pub fn raw_trace(blocks: u32) -> (TempDir, Manifest) {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    for part in ["threads", "ir"] {
        fs_err::create_dir(root.join(part)).unwrap();
    }
    let path = [enter(0), block(3), runtime(RuntimeEvent::ThreadCreate), RETURN];
    write_thread(root, "t0", [1, 0, 0], &path, &[1, 2, 3], 100);
    let path: Vec<u32> = std::iter::once(enter(5)).chain((0..blocks).map(block)).collect();
    let values: Vec<u64> = (0..u64::from(blocks)).map(|n| n.wrapping_mul(0x9e37_79b9)).collect();
    write_thread(root, "t0.1", [2, 1, 1], &path, &values, 0);
    write_process(root, INSTRUMENTATION_VERSION, b"q.c:7: void f(void): q->filled > 0");
    let modules =
        [module_record(0, &[0x400, 0x500, 0], &[0x9000]), module_record(3, &[0x600; 4], &[])];
    fs_err::write(root.join("modules.bin"), modules.concat()).unwrap();
    // A mapped file: what is behind the last turn is zeros, but for a record being written.
    let order = [1, 10, 2, 2, 700, 0, 1, 12, 3, 0, 5, 5, 0, 0, 0, 0];
    let order: Vec<u8> = order.iter().flat_map(|word: &u64| word.to_le_bytes()).collect();
    fs_err::write(root.join("order.bin"), order).unwrap();
    let compressed = zstd::bulk::compress(BITCODE, 3).unwrap();
    let name = bitcode_file_name(bitcode_hash(BITCODE));
    fs_err::write(root.join("ir").join(name), compressed).unwrap();
    let executable = Executable { path: "./q".into(), build_id: Some("00ff".into()) };
    let command = vec!["./q".into(), "\"checksum\": \"".into()];
    let mut manifest = Manifest::new("0.1.0", command, "/home/u".into(), executable);
    manifest.write(root).unwrap();
    manifest.outcome = Some(Outcome::Signalled(6));
    (directory, manifest)
}

/// The same, sealed.
pub fn sealed_trace(blocks: u32) -> TempDir {
    let (directory, manifest) = raw_trace(blocks);
    trace_format::seal(directory.path(), &manifest).unwrap();
    directory
}

/// The files of a trace that carry data.
pub fn data_files(directory: &Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for part in ["", "threads", "ir"] {
        for entry in fs_err::read_dir(directory.join(part)).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}
