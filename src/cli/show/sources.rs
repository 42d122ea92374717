//! Source files, where the debug information says they were.

use std::cell::RefCell;
use std::collections::BTreeMap;

/// A file's text. A trace may name anything as a source file, also a device that never ends.
///
/// # Errors
/// Says why there is none.
pub(super) fn read(name: &str) -> Result<String, String> {
    const LONGEST: u64 = 16 << 20;
    let metadata = fs_err::metadata(name).map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err(format!("{name} is no regular file"));
    }
    if metadata.len() > LONGEST {
        return Err(format!("{name} is longer than {} MB", LONGEST >> 20));
    }
    let bytes = fs_err::read(name).map_err(|error| error.to_string())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Lines of files, each of which is read once.
#[derive(Debug, Default)]
pub(in crate::cli) struct Lines {
    files: RefCell<BTreeMap<String, Vec<String>>>,
}

impl Lines {
    /// A line from 1, for a terminal: without control characters, which could do anything to it.
    pub(in crate::cli) fn line(&self, file: &str, line: u32) -> Option<String> {
        if file.is_empty() {
            return None;
        }
        let mut files = self.files.borrow_mut();
        let lines = files.entry(file.to_owned()).or_insert_with(|| {
            // An excerpt is worth having, and nothing is said where there is none.
            let text = read(file).unwrap_or_default();
            text.lines().map(str::to_owned).collect()
        });
        let index = usize::try_from(line.checked_sub(1)?).ok()?;
        let kept = |c: &char| *c == '\t' || !c.is_control();
        lines.get(index).map(|line| line.chars().filter(kept).collect())
    }
}
