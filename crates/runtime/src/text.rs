//! Text in a fixed buffer: file names and messages, without allocation.

/// Bytes followed by a zero, at most `N - 1` of them; what does not fit is cut and remembered.
#[derive(Clone, Copy)]
pub struct Text<const N: usize> {
    bytes: [u8; N],
    length: usize,
    cut: bool,
}

impl<const N: usize> Default for Text<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> Text<N> {
    /// The empty text.
    #[must_use]
    pub const fn new() -> Self {
        Self { bytes: [0; N], length: 0, cut: false }
    }

    /// Appends bytes, as many as fit before the final zero.
    pub fn push(&mut self, more: &[u8]) -> &mut Self {
        for &byte in more {
            if self.length + 1 < N {
                if let Some(place) = self.bytes.get_mut(self.length) {
                    *place = byte;
                    self.length += 1;
                }
            } else {
                self.cut = true;
            }
        }
        self
    }

    /// Appends a number in decimal digits.
    pub fn push_decimal(&mut self, mut number: u64) -> &mut Self {
        let mut digits = [0u8; 20];
        let mut used = 0;
        for place in digits.iter_mut().rev() {
            *place = b'0' + (number % 10) as u8;
            used += 1;
            number /= 10;
            if number == 0 {
                break;
            }
        }
        self.push(digits.get(20 - used..).unwrap_or(&[]))
    }

    /// Appends a word as 16 hexadecimal digits.
    pub fn push_hex(&mut self, number: u64) -> &mut Self {
        for shift in (0..16).rev() {
            let nibble = (number >> (shift * 4)) as u8 & 15;
            self.push(&[if nibble < 10 { b'0' + nibble } else { b'a' + nibble - 10 }]);
        }
        self
    }

    /// The bytes without the final zero.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or(&[])
    }

    /// The text for C.
    #[must_use]
    pub fn as_c(&self) -> *const core::ffi::c_char {
        self.bytes.as_ptr().cast()
    }

    /// Did everything fit?
    #[must_use]
    pub fn is_whole(&self) -> bool {
        !self.cut
    }
}

#[cfg(test)]
mod tests {
    use super::Text;

    #[test]
    fn numbers_come_out_in_full() {
        let mut text = Text::<64>::new();
        text.push_decimal(0).push(b" ").push_decimal(u64::MAX).push(b" ").push_hex(0xab);
        assert_eq!(text.as_bytes(), b"0 18446744073709551615 00000000000000ab");
        assert!(text.is_whole());
    }

    #[test]
    fn what_does_not_fit_is_cut_before_the_zero() {
        let mut text = Text::<4>::new();
        text.push(b"abcdef");
        assert_eq!(text.as_bytes(), b"abc");
        assert!(!text.is_whole());
    }
}
