//! Colour and width.

/// What a piece of text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Paint {
    /// A heading.
    Heading,
    /// What fails.
    Failing,
    /// What passes.
    Passing,
    /// What stands in the background.
    Dim,
}

/// The text between the terminal's codes for it, where colour is wanted.
pub(super) fn paint(colour: bool, paint: Paint, text: &str) -> String {
    if !colour || text.is_empty() {
        return text.to_owned();
    }
    let code = match paint {
        Paint::Heading => "1",
        Paint::Failing => "31",
        Paint::Passing => "32",
        Paint::Dim => "2",
    };
    format!("\u{1b}[{code}m{text}\u{1b}[0m")
}

/// Breaks a text between words so that no line is longer than `width`, if that can be; all lines
/// but the first begin with `indent`, and `used` columns of the first are taken.
pub(super) fn wrap(text: &str, width: Option<usize>, used: usize, indent: &str) -> String {
    let Some(width) = width else { return text.to_owned() };
    let (mut out, mut column) = (String::new(), used);
    for (number, word) in text.split(' ').enumerate() {
        let length = word.chars().count();
        if number > 0 {
            if column + 1 + length > width && column > indent.len() {
                out.push('\n');
                out.push_str(indent);
                column = indent.chars().count();
            } else {
                out.push(' ');
                column += 1;
            }
        }
        out.push_str(word);
        column += length;
    }
    out
}

/// Breaks the lines that are longer than `width` between words; what follows stands further to the
/// right than where the line began.
pub(super) fn fitted(text: &str, width: Option<usize>) -> String {
    let Some(width) = width else { return text.to_owned() };
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        let bare = line.trim_start_matches(' ');
        let first = line.len() - bare.len();
        let indent = " ".repeat(first + FURTHER);
        out.push_str(&line[..first]);
        let mut column = first;
        for (number, word) in bare.split(' ').enumerate() {
            let length = shown_length(word);
            if number > 0 && column + 1 + length > width && column > indent.len() && length > 0 {
                out.push('\n');
                out.push_str(&indent);
                column = indent.len();
            } else if number > 0 {
                out.push(' ');
                column += 1;
            }
            out.push_str(word);
            column += length;
        }
    }
    out
}

/// How much further to the right the rest of a line stands.
const FURTHER: usize = 4;

/// The columns that a word takes, without the codes of [`paint`].
fn shown_length(word: &str) -> usize {
    let mut in_code = false;
    let shown = |character: &char| {
        let visible = !in_code && *character != '\u{1b}' && *character != '\n';
        in_code = (in_code || *character == '\u{1b}') && *character != 'm';
        visible
    };
    word.chars().filter(shown).count()
}

/// As much of the text as fits, with `…` for the rest.
pub(super) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words() {
        assert_eq!(wrap("one two three", Some(9), 2, "  "), "one two\n  three");
        assert_eq!(wrap("one two three", None, 2, "  "), "one two three");
        assert_eq!(wrap("unbreakable", Some(4), 0, ""), "unbreakable");
    }

    #[test]
    fn whole_texts_are_fitted_and_codes_take_no_room() {
        let text = "  one two three\nfour  five\n\n";
        assert_eq!(fitted(text, Some(12)), "  one two\n      three\nfour  five\n\n");
        assert_eq!(fitted(text, None), text);
        let painted = format!("{} two", paint(true, Paint::Heading, "one"));
        assert_eq!(fitted(&painted, Some(7)), painted);
        assert_eq!(fitted("unbreakable", Some(4)), "unbreakable");
    }

    #[test]
    fn long_lines_are_cut_with_a_mark() {
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abcdefg", 6), "abcde…");
    }

    #[test]
    fn without_colour_nothing_is_added() {
        assert_eq!(paint(false, Paint::Failing, "x"), "x");
        assert_eq!(paint(true, Paint::Failing, "x"), "\u{1b}[31mx\u{1b}[0m");
    }
}
