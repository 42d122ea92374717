//! Causes that were known before, from a file.

use super::{FORMAT, KnownCause, Triage, TriageError};
use std::path::Path;

/// What known causes there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// In the order of the file.
    pub causes: Vec<KnownCause>,
}

impl Known {
    /// Reads the outcome of an earlier triage as JSON, or a text with a fingerprint at the beginning of each
    /// line and whatever behind it; what stands behind `#` at the beginning of a line, and empty lines,
    /// count for nothing.
    ///
    /// # Errors
    /// When the file cannot be read, or is neither.
    pub fn read(path: &Path) -> Result<Self, TriageError> {
        let text = fs_err::read_to_string(path).map_err(TriageError::Known)?;
        Self::parse(&text).map_err(|why| TriageError::NotKnown { path: path.to_owned(), why })
    }

    fn parse(text: &str) -> Result<Self, String> {
        if text.trim_start().starts_with('{') {
            return Self::of_json(text);
        }
        let mut causes = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (fingerprint, note) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            if fingerprint.len() != 16 || !fingerprint.bytes().all(|byte| byte.is_ascii_hexdigit())
            {
                return Err(format!("line {number} does not begin with 16 hexadecimal digits"));
            }
            let fingerprint = fingerprint.to_ascii_lowercase();
            causes.push(KnownCause { fingerprint, note: note.trim().to_owned() });
        }
        Ok(Self { causes })
    }

    fn of_json(text: &str) -> Result<Self, String> {
        let earlier: Triage = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if earlier.format != FORMAT {
            return Err(format!("its format is `{}`", earlier.format));
        }
        let groups = earlier.groups.into_iter();
        let causes = groups.filter_map(|group| {
            Some(KnownCause { fingerprint: group.fingerprint?, note: group.cause })
        });
        // What was known and did not come up is still known.
        Ok(Self { causes: causes.chain(earlier.absent).collect() })
    }

    /// Is this cause among them?
    #[must_use]
    pub fn has(&self, fingerprint: &str) -> bool {
        self.causes.iter().any(|cause| cause.fingerprint == fingerprint)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Group;
    use super::*;

    #[test]
    fn a_text_has_a_fingerprint_and_a_note_on_each_line() {
        let text = "# flaky since March\n\n0123456789abcdef  #42, queue\nFEDCBA9876543210\n";
        let known = Known::parse(text).expect("a list");
        assert_eq!(known.causes.len(), 2);
        assert_eq!(known.causes[0].note, "#42, queue");
        assert!(known.has("fedcba9876543210") && !known.has("1123456789abcdef"));
        let error = Known::parse("0123456789abcdef\nqueue.c:7\n").expect_err("no fingerprint");
        assert!(error.starts_with("line 2 "), "{error}");
    }

    #[test]
    fn an_earlier_outcome_has_what_came_up_and_what_was_known_before() {
        let group = Group {
            fingerprint: Some("0123456789abcdef".to_owned()),
            cause: "it was late".to_owned(),
            ..Group::default()
        };
        let absent = KnownCause { fingerprint: "1123456789abcdef".to_owned(), note: String::new() };
        let earlier = Triage {
            format: FORMAT.to_owned(),
            groups: vec![group, Group::default()],
            absent: vec![absent],
            ..Triage::default()
        };
        let text = serde_json::to_string(&earlier).expect("JSON");
        let known = Known::parse(&text).expect("an earlier outcome");
        assert_eq!(known.causes.len(), 2);
        assert_eq!(known.causes[0].note, "it was late");
        assert!(known.has("1123456789abcdef"));
        assert!(Known::parse("{\"format\": \"other\"}").is_err());
    }
}
