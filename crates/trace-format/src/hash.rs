//! The hash that names a module's bitcode: FNV-1a with 128 bits.

const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

/// FNV-1a with 128 bits, over bytes that come in pieces.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hasher(u128);

impl Hasher {
    pub(crate) fn new() -> Self {
        Self(OFFSET)
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0 =
            bytes.iter().fold(self.0, |hash, &byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME));
    }

    pub(crate) fn digits(self) -> String {
        format!("{:032x}", self.0)
    }
}

/// The hash of a module's uncompressed bitcode, low word first.
#[must_use]
pub fn bitcode_hash(bitcode: &[u8]) -> [u64; 2] {
    let mut hasher = Hasher::new();
    hasher.update(bitcode);
    [hasher.0 as u64, (hasher.0 >> 64) as u64]
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
