//! Texts from outside in the languages of the generated files: whatever they hold, they stay text.

use std::fmt::Write as _;

/// As a string literal of C and C++, with the quotes.
pub fn c_string(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for byte in text.bytes() {
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            // Two of them would begin a trigraph.
            b'?' => out.push_str("\\?"),
            b' '..=b'~' => out.push(char::from(byte)),
            // Always three digits, so that a digit behind it is not taken for a part of it.
            _ => {
                let _ = write!(out, "\\{byte:03o}");
            }
        }
    }
    out.push('"');
    out
}

/// As a part of a `/* */` comment, on one line.
pub fn c_comment(text: &str) -> String {
    one_line(text).replace("*/", "* /").replace("/*", "/ *").replace("??/", "?? /")
}

/// On one line, without control characters.
pub fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// As what stands between the quotes of a string of CMake.
pub fn cmake_string(text: &str) -> String {
    one_line(text)
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('$', "\\$")
        .replace(';', "\\;")
}

/// As the value of a variable of make.
pub fn make_value(text: &str) -> String {
    one_line(text).replace('$', "$$").replace('#', "\\#")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_of_c_hold_any_text() {
        assert_eq!(c_string("a\"b\\c??/\n1\u{e9}"), r#""a\"b\\c\?\?/\0121\303\251""#);
    }

    #[test]
    fn comments_do_not_end_or_begin_inside_of_themselves() {
        assert_eq!(c_comment("a */ b /* c */*/\nd"), "a * / b / * c * / * / d");
        assert!(!c_comment("/*/*//**/").contains("*/"));
    }
}
