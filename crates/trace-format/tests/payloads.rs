//! The short form of synchronisation payloads.

use trace_format::layout::{SHORT_PAYLOAD, SYNC_PAYLOAD, SyncCoder};

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

#[test]
fn short_payloads_come_back() {
    let (a, b) = (0x5555_0000_1000, 0x5555_0000_1028);
    let start = 1 << 40;
    let events = [
        (a, start),
        (a, start + 99),
        (b, start + 99 + 0xffff),
        (b, start + 99 + 0xffff),
        (a, start + (1 << 20)),
        (b, start + (1 << 21)),
        (a, start + (1 << 33)),
        (a, 7),
    ];
    let (mut writer, mut reader) = (SyncCoder::default(), SyncCoder::default());
    let mut lengths = Vec::new();
    for (address, time) in events {
        let mut bytes = [0xee; SHORT_PAYLOAD];
        let length = writer.write_short(address, time, &mut bytes);
        for cut in 0..length {
            let before = reader;
            assert_eq!(reader.read_short(&bytes[..cut]), None, "{address:x} {time} cut to {cut}");
            assert_eq!(reader, before);
        }
        assert_eq!(reader.read_short(&bytes), Some((address, time, length)));
        assert_eq!(reader, writer);
        lengths.push(length);
    }
    let [head, place, word] = [1, 1, 8];
    assert_eq!(
        lengths,
        [
            head + word + word,
            head + 2,
            head + word + 2,
            head,
            head + place + 4,
            head + place + 4,
            head + place + word,
            head + word,
        ]
    );
}

#[test]
fn the_two_forms_share_address_and_time() {
    let (mut writer, mut reader) = (SyncCoder::default(), SyncCoder::default());
    let mut long = [0; SYNC_PAYLOAD];
    let mut short = [0; SHORT_PAYLOAD];
    let payload = [12, 0x1000, 0x2000, 0, 1 << 40];
    let length = writer.write(payload, &mut long);
    assert_eq!(reader.read(&long), Some((payload, length)));
    assert_eq!(writer.write_short(0x1000, (1 << 40) + 5, &mut short), 3);
    assert_eq!(reader.read_short(&short), Some((0x1000, (1 << 40) + 5, 3)));
    let payload = [4, 0x1000, 0, 0, (1 << 40) + 6];
    assert_eq!(writer.write(payload, &mut long), 8);
    assert_eq!(reader.read(&long), Some((payload, 8)));
}
