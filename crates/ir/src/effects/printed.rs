//! The conversions of `printf`'s formats: which arguments they take.

/// What a conversion does with an argument. Widths and precisions given as `*` are arguments of
/// their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Printed {
    /// An integer or a pointer, whose value is printed.
    Number,
    /// A `float` or `double`.
    Float,
    /// A `long double`.
    LongDouble,
    /// A text of which at most so many bytes are read.
    Text(Precision),
    /// A text of `wchar_t` of which at most so many characters are read.
    Wide(Precision),
    /// `%n`: a pointer to where that many bytes are written.
    Count(u64),
}

/// How much of a text is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// All of it.
    Whole,
    /// At most this.
    Most(u64),
    /// At most what the argument before says, if that is not negative.
    Before,
}

/// What a format does with its arguments, in their order; `None` for one that is not understood
/// (arguments by number, conversions that the program registered).
#[must_use]
pub fn printed(format: &[u8]) -> Option<Vec<Printed>> {
    let mut arguments = Vec::new();
    let mut rest = format;
    while let Some(at) = rest.iter().position(|&byte| byte == b'%') {
        rest = rest.get(at + 1..).unwrap_or_default();
        rest = skip(rest, b"-+ #0'I");
        (rest, _) = width(rest, &mut arguments)?;
        let mut precision = Precision::Whole;
        if let Some(after) = rest.strip_prefix(b".") {
            (rest, precision) = width(after, &mut arguments)?;
        }
        let modifiers = rest;
        rest = skip(rest, b"hljztLq");
        let length = modifiers.get(..modifiers.len() - rest.len()).unwrap_or_default();
        let (&conversion, after) = rest.split_first()?;
        rest = after;
        arguments.push(match conversion {
            b'%' | b'm' => continue,
            b'd' | b'i' | b'o' | b'u' | b'x' | b'X' | b'c' | b'C' | b'p' | b'b' | b'B' => {
                Printed::Number
            }
            b'a' | b'A' | b'e' | b'E' | b'f' | b'F' | b'g' | b'G' => match length {
                b"L" => Printed::LongDouble,
                _ => Printed::Float,
            },
            b's' if length == b"l" => Printed::Wide(precision),
            b'S' => Printed::Wide(precision),
            b's' => Printed::Text(precision),
            b'n' => Printed::Count(match length {
                b"hh" => 1,
                b"h" => 2,
                b"" => 4,
                _ => 8,
            }),
            _ => return None,
        });
    }
    Some(arguments)
}

fn skip<'a>(text: &'a [u8], these: &[u8]) -> &'a [u8] {
    let end = text.iter().position(|byte| !these.contains(byte)).unwrap_or(text.len());
    text.get(end..).unwrap_or_default()
}

/// A width or precision: digits, `*`, or nothing; what follows, and what it says.
fn width<'a>(text: &'a [u8], arguments: &mut Vec<Printed>) -> Option<(&'a [u8], Precision)> {
    if let Some(rest) = text.strip_prefix(b"*") {
        arguments.push(Printed::Number);
        return Some((rest, Precision::Before));
    }
    let rest = skip(text, b"0123456789");
    let digits = text.get(..text.len() - rest.len()).unwrap_or_default();
    if rest.first() == Some(&b'$') {
        return None;
    }
    let add = |sum: u64, digit: &u8| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
    Some((rest, Precision::Most(digits.iter().fold(0, add))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversions_take_arguments() {
        let of = |format: &str| printed(format.as_bytes());
        let whole = Printed::Text(Precision::Whole);
        assert_eq!(of("%s: %-10.3s %d%%\n"), {
            Some(vec![whole, Printed::Text(Precision::Most(3)), Printed::Number])
        });
        assert_eq!(of("%.*s %*d %ls"), {
            let wide = Printed::Wide(Precision::Whole);
            let before = Printed::Text(Precision::Before);
            Some(vec![Printed::Number, before, Printed::Number, Printed::Number, wide])
        });
        assert_eq!(of("%5.2f %Lg %zu %hhn %ln %m"), {
            let counts = [Printed::Count(1), Printed::Count(8)];
            Some(
                [vec![Printed::Float, Printed::LongDouble, Printed::Number], counts.into()]
                    .concat(),
            )
        });
        assert_eq!(of("no conversion"), Some(vec![]));
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for format in ["%1$s", "%", "%y", "%*2$d"] {
            assert_eq!(printed(format.as_bytes()), None, "{format}");
        }
    }
}
