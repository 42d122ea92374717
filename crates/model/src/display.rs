//! Values as people read them.

use crate::expr::{mask, to_signed};
use crate::trace::ValueDisplay;

impl ValueDisplay {
    /// `value`, of `width` bits, as text.
    #[must_use]
    pub fn format(self, value: u128, width: u32) -> String {
        let value = value & mask(width);
        match self {
            Self::Signed => to_signed(value, width).to_string(),
            Self::Unsigned => value.to_string(),
            Self::Pointer if value == 0 => "NULL".to_owned(),
            Self::Pointer => format!("{value:#x}"),
            Self::Char if width == 8 => character(value as u8),
            Self::Char => text(value, width),
            Self::Bool if value <= 1 => (value == 1).to_string(),
            Self::Bool => value.to_string(),
            Self::Float if width == 32 => f32::from_bits(value as u32).to_string(),
            Self::Float if width == 64 => f64::from_bits(value as u64).to_string(),
            Self::Float => format!("{value:#x}"),
            Self::Either([no, yes]) => if value & 1 == 0 { no } else { yes }.to_string(),
        }
    }
}

/// `'a' (97)`, or the number alone where the character cannot be printed.
fn character(byte: u8) -> String {
    if byte.is_ascii_graphic() || byte == b' ' {
        format!("'{}' ({byte})", char::from(byte))
    } else {
        (byte as i8).to_string()
    }
}

/// Several characters in memory order; a number where none can be printed: memory that is declared as bytes may
/// hold anything.
fn text(value: u128, width: u32) -> String {
    let bytes: Vec<u8> = (0..width / 8).map(|index| (value >> (8 * index)) as u8).collect();
    if !bytes.iter().any(|byte| byte.is_ascii_graphic() || *byte == b' ') {
        return to_signed(value, width).to_string();
    }
    let escaped: String =
        bytes.iter().flat_map(|byte| byte.escape_ascii()).map(char::from).collect();
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_read_as_in_the_source() {
        assert_eq!(ValueDisplay::Signed.format(0xffff_ffff, 32), "-1");
        assert_eq!(ValueDisplay::Unsigned.format(0xffff_ffff, 32), "4294967295");
        assert_eq!(ValueDisplay::Pointer.format(0, 64), "NULL");
        assert_eq!(ValueDisplay::Pointer.format(0x1000, 64), "0x1000");
        assert_eq!(ValueDisplay::Char.format(u128::from(b'a'), 8), "'a' (97)");
        assert_eq!(ValueDisplay::Char.format(0x0061_6263, 32), "\"cba\\x00\"");
        assert_eq!(ValueDisplay::Char.format(3, 32), "3");
        assert_eq!(ValueDisplay::Bool.format(1, 8), "true");
        assert_eq!([0, 1].map(|stored| ValueDisplay::Either([1, 0]).format(stored, 8)), ["1", "0"]);
        assert_eq!(ValueDisplay::Float.format(u128::from(1.5f64.to_bits()), 64), "1.5");
    }
}
