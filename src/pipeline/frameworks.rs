//! What a test framework said of a failed check: it stands in the output.

use model::EventTrace;

/// A report has no more lines than this in a message.
const LONGEST: usize = 8;
/// What stands behind the place of a check that failed: GoogleTest's word, and Catch2's.
const WORDS: [&str; 2] = [": Failure", ": FAILED:"];

/// The place in the first line that says that a check failed there: `bank.cc:31`.
fn place(line: &str) -> Option<&str> {
    let place = WORDS.iter().find_map(|word| line.trim_end().strip_suffix(word))?;
    let (file, number) = place.rsplit_once(':')?;
    (!file.is_empty() && number.parse::<u32>().is_ok()).then_some(place)
}

/// `FILE:LINE` of the first check that the output says has failed; none when it is of no framework
/// that is known.
pub(super) fn reported(output: &str) -> Option<String> {
    output.lines().find_map(place).map(str::to_owned)
}

/// Gives a failed check the framework's own words as its message, if the output has them.
pub(super) fn describe(output: &str, trace: &mut EventTrace) {
    let Some(failure) = &mut trace.failure else { return };
    let Some(words) = words(output) else { return };
    match failure.kind {
        model::FailureKind::Assertion => failure.message = words,
        // The check was not found in the program: the place in the message is what is known.
        _ => failure.message = format!("{}: {words}", failure.message),
    }
}

/// The first report: what follows its head up to an empty line, the framework's next word or the next report.
fn words(output: &str) -> Option<String> {
    let mut lines = output.lines();
    lines.by_ref().find(|line| place(line).is_some())?;
    let mut said: Vec<&str> = Vec::new();
    let is_of_report = |text: &&str| !text.starts_with('[') && place(text).is_none();
    for text in lines.map(str::trim).take_while(is_of_report).take(LONGEST) {
        match (text.is_empty(), said.is_empty()) {
            (true, true) => {}
            (true, false) => break,
            _ => said.push(text),
        }
    }
    (!said.is_empty()).then(|| said.join("; "))
}

#[cfg(test)]
mod tests {
    use super::{reported, words};

    #[test]
    fn reports_are_found() {
        let google = "[ RUN      ] Bank.Sum\nbank.cc:31: Failure\nExpected equality of these values:\n  \
                      total\n    Which is: 20\n  30\n[  FAILED  ] Bank.Sum (0 ms)\n";
        assert_eq!(reported(google).as_deref(), Some("bank.cc:31"));
        let said = words(google).expect("a report");
        assert_eq!(said, "Expected equality of these values:; total; Which is: 20; 30");
        let catch = "bank.cc:9\n....\n\nbank.cc:31: FAILED:\n  REQUIRE( total == 30 )\nwith expansion:\n  \
                     20 == 30\n\n===\n";
        assert_eq!(reported(catch).as_deref(), Some("bank.cc:31"));
        let said = words(catch).expect("a report");
        assert_eq!(said, "REQUIRE( total == 30 ); with expansion:; 20 == 30");
        let two = "bank.cc:31: Failure\nExpected: (a) <= (b)\nbank.cc:12: Failure\nExpected: (c)\n";
        assert_eq!(words(two).as_deref(), Some("Expected: (a) <= (b)"));
        assert_eq!(reported("1 test: Failure\nx:y: FAILED:\n"), None);
    }
}
