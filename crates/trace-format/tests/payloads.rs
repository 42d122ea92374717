//! The short form of synchronisation payloads.

use trace_format::layout::{SYNC_PAYLOAD, SyncCoder};

const PAYLOADS: [[u64; 5]; 8] = [
    [1, 0x7fff_0000_1000, 0, 2, 1 << 40],
    [1, 0x7fff_0000_1000, 0, 0, (1 << 40) + 99],
    [12, 0x7fff_0000_2000, 0x7fff_0000_1000, 0, (1 << 40) + u32::MAX as u64 + 99],
    [12, 0x7fff_0000_2000, 0x7fff_0000_1000, u64::MAX, (1 << 41) + 1],
    [16, 8, 0, 40_000, (1 << 41) + 1],
    [16, 8, 0, u64::MAX - 40_000, 1 << 30],
    [27, 0, u64::MAX, 1 << 63, u64::MAX],
    [28, 0, 0, 0, 0],
];

#[test]
fn payloads_come_back() {
    let (mut writer, mut reader) = (SyncCoder::default(), SyncCoder::default());
    let mut lengths = Vec::new();
    for payload in PAYLOADS {
        let mut bytes = [0xee; SYNC_PAYLOAD];
        let length = writer.write(payload, &mut bytes);
        for cut in 0..length {
            let before = reader;
            assert_eq!(reader.read(&bytes[..cut]), None, "{payload:?} cut to {cut}");
            assert_eq!(reader, before);
        }
        assert_eq!(reader.read(&bytes), Some((payload, length)));
        assert_eq!(reader, writer);
        lengths.push(length);
    }
    assert_eq!(lengths, [4 + 8 + 8, 4 + 4, 4 + 8 + 8 + 4, 4 + 8 + 8, 24, 20, 36, 12]);
}
