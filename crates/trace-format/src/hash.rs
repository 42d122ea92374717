//! The hash that names a module's bitcode: FNV-1a with 128 bits.

const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

/// The hash of a module's uncompressed bitcode, low word first.
#[must_use]
pub fn bitcode_hash(bitcode: &[u8]) -> [u64; 2] {
    let hash =
        bitcode.iter().fold(OFFSET, |hash, &byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME));
    [hash as u64, (hash >> 64) as u64]
}

/// The name of the file in `ir/` that holds the bitcode with this hash.
#[must_use]
pub fn bitcode_file_name(hash: [u64; 2]) -> String {
    format!("{:016x}{:016x}.bc.zst", hash[1], hash[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_published_values() {
        assert_eq!(bitcode_hash(b""), [OFFSET as u64, (OFFSET >> 64) as u64]);
        let hash = bitcode_hash(b"a");
        assert_eq!(bitcode_file_name(hash), "d228cb696f1a8caf78912b704e4a8964.bc.zst");
    }
}
