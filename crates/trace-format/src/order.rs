//! The order of a scheduled run's turns: `order.bin`, and `order.z` once sealed.

use crate::chunks::{self, long_at};
use crate::error::TraceError;
use crate::layout::OrderRecord;
use std::io;
use std::mem::{offset_of, size_of};
use std::path::Path;

const RECORD: usize = size_of::<OrderRecord>();

/// Reads what the runtime wrote; none when there is no such file, because the threads ran freely.
/// The file is longer than its contents: they end before the first record without a thread, which
/// may be one that the process was writing when it was killed.
pub(crate) fn read_raw(path: &Path) -> Result<Option<Vec<OrderRecord>>, TraceError> {
    let bytes = match fs_err::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(TraceError::io("read", path, 0, error)),
    };
    Ok(Some(records(&bytes).take_while(|record| record.thread != 0).collect()))
}

/// Reads a sealed order, which is to have so many records.
pub(crate) fn read_sealed(path: &Path, count: u64) -> Result<Vec<OrderRecord>, TraceError> {
    let bytes = chunks::read_all(path)?;
    if bytes.len() as u64 != count.saturating_mul(RECORD as u64) {
        let what = format!("{count} turns expected, as the manifest says");
        return Err(TraceError::malformed(path, bytes.len() as u64, what));
    }
    Ok(records(&bytes).collect())
}

/// The records as they are in the file.
pub(crate) fn to_bytes(records: &[OrderRecord]) -> Vec<u8> {
    let words = records.iter().flat_map(|record| [record.thread, record.gates, record.points]);
    words.flat_map(u64::to_le_bytes).collect()
}

fn records(bytes: &[u8]) -> impl Iterator<Item = OrderRecord> {
    bytes.chunks_exact(RECORD).map(|record| OrderRecord {
        thread: long_at(record, offset_of!(OrderRecord, thread)),
        gates: long_at(record, offset_of!(OrderRecord, gates)),
        points: long_at(record, offset_of!(OrderRecord, points)),
    })
}
