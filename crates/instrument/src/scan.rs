//! The conversions of `scanf`'s formats: what each of them assigns.

/// What one conversion writes through its pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conversion {
    /// That many bytes.
    Bytes(u64),
    /// A text with its zero byte.
    Text,
    /// A text of `wchar_t` with its zero.
    Wide,
    /// A pointer to a fresh text.
    NewText,
    /// `%n`: that many bytes, not counted in the result.
    Count(u64),
}

/// The conversions that assign something, in order; `None` for a format that is not understood.
pub fn conversions(format: &[u8]) -> Option<Vec<Conversion>> {
    let mut found = Vec::new();
    let mut bytes = format.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            continue;
        }
        let (mut kept, mut fresh, mut width) = (true, false, 0u64);
        let mut digits = false;
        while let Some(&next) = bytes.peek() {
            match next {
                b'*' => kept = false,
                b'm' => fresh = true,
                b'\'' | b'I' => {}
                b'0'..=b'9' => {
                    digits = true;
                    width = width.saturating_mul(10).saturating_add(u64::from(next - b'0'));
                }
                // Arguments by number come in an order of their own.
                b'$' => return None,
                _ => break,
            }
            bytes.next();
        }
        let mut length = Vec::new();
        while let Some(&next) = bytes.peek() {
            if !b"hljztLq".contains(&next) {
                break;
            }
            length.push(next);
            bytes.next();
        }
        let wide = length == b"l";
        let integer = match length.as_slice() {
            b"hh" => 1,
            b"h" => 2,
            b"" => 4,
            b"l" | b"ll" | b"j" | b"z" | b"t" | b"L" | b"q" => 8,
            _ => return None,
        };
        let text = match (fresh, wide) {
            (true, _) => Conversion::NewText,
            (false, true) => Conversion::Wide,
            (false, false) => Conversion::Text,
        };
        let conversion = match bytes.next()? {
            b'%' => continue,
            b'd' | b'i' | b'o' | b'u' | b'x' | b'X' | b'b' => Conversion::Bytes(integer),
            b'n' => Conversion::Count(integer),
            b'p' => Conversion::Bytes(8),
            b'a' | b'A' | b'e' | b'E' | b'f' | b'F' | b'g' | b'G' => {
                Conversion::Bytes(match length.as_slice() {
                    b"L" => 16,
                    b"l" => 8,
                    _ => 4,
                })
            }
            b's' => text,
            b'S' => Conversion::Wide,
            b'c' if fresh => Conversion::Bytes(8),
            b'c' => {
                let count = if digits { width } else { 1 };
                Conversion::Bytes(count.saturating_mul(if wide { 4 } else { 1 }))
            }
            b'[' => {
                if bytes.peek() == Some(&b'^') {
                    bytes.next();
                }
                // A bracket that comes first is one of the set.
                bytes.next()?;
                bytes.by_ref().find(|&byte| byte == b']')?;
                text
            }
            _ => return None,
        };
        if kept {
            found.push(conversion);
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Conversion::{Bytes, Count, NewText, Text, Wide};

    #[test]
    fn sizes_come_from_the_length_modifiers() {
        let of = |format: &str| conversions(format.as_bytes());
        assert_eq!(
            of("%d %hhd%hu%lx %zu"),
            Some(vec![Bytes(4), Bytes(1), Bytes(2), Bytes(8), Bytes(8)])
        );
        assert_eq!(of("%f %lf %Lg"), Some(vec![Bytes(4), Bytes(8), Bytes(16)]));
        assert_eq!(of("100%% %*d %15s %n"), Some(vec![Text, Count(4)]));
        assert_eq!(of("%[^]:]:%3c%c"), Some(vec![Text, Bytes(3), Bytes(1)]));
        assert_eq!(of("%ms %ls %p"), Some(vec![NewText, Wide, Bytes(8)]));
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for format in ["%2$d", "%", "%[abc", "%hs%y", "%hl d"] {
            assert_eq!(conversions(format.as_bytes()), None, "{format}");
        }
    }
}
