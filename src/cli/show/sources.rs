//! Source files, where the debug information says they were, if they are still what was compiled.

use md5::{Digest as _, Md5};
use render::Solution;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// No text is read from a longer file.
const LONGEST: u64 = 16 << 20;

/// What names of source files end in. The headers of C++'s library end in nothing.
const ENDINGS: [&str; 25] = [
    "c", "h", "i", "y", "l", "C", "H", "s", "S", "cc", "cp", "hh", "ii", "cpp", "cxx", "c++",
    "hpp", "hxx", "h++", "inc", "inl", "ipp", "tcc", "tpp", "def",
];

/// The files that an answer names.
#[derive(Clone, Debug, Default)]
pub(in crate::cli) struct Files {
    /// By name: the sum of the text that was compiled, where it is known.
    sums: BTreeMap<String, Option<String>>,
}

impl Files {
    /// The source files of an answer.
    pub(in crate::cli) fn of(solution: &Solution) -> Self {
        let sources = solution.sources.iter();
        Self { sums: sources.map(|source| (source.file.clone(), source.md5.clone())).collect() }
    }

    /// A file's text. An answer may name anything as a source file, also a device that never ends or
    /// somebody's letters: where the debug information has a checksum, the text must have it, else
    /// the name must look like a source's.
    ///
    /// # Errors
    /// Says why there is none.
    pub(super) fn read(&self, name: &str) -> Result<String, String> {
        let metadata = fs_err::metadata(name).map_err(|error| error.to_string())?;
        if !metadata.is_file() {
            return Err(format!("{name} is no regular file"));
        }
        if metadata.len() > LONGEST {
            return Err(format!("{name} is longer than {} MB", LONGEST >> 20));
        }
        let sum = self.sums.get(name).and_then(Option::as_deref);
        if sum.is_none() && !looks_like_source(name) {
            return Err(format!("{name} does not look like a source file"));
        }
        let bytes = fs_err::read(name).map_err(|error| error.to_string())?;
        if sum.is_some_and(|sum| sum != md5(&bytes)) {
            return Err(format!("{name} was changed since the program was compiled"));
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

fn looks_like_source(name: &str) -> bool {
    match Path::new(name).extension() {
        Some(ending) => ENDINGS.iter().any(|known| ending == *known),
        None => name.starts_with("/usr/") && name.contains("/include/"),
    }
}

fn md5(bytes: &[u8]) -> String {
    Md5::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Lines of files, each of which is read once.
#[derive(Debug, Default)]
pub(in crate::cli) struct Lines {
    known: Files,
    files: RefCell<BTreeMap<String, Vec<String>>>,
    /// Why files that were asked for have no lines, other than that they are not there.
    refused: RefCell<BTreeSet<String>>,
}

impl Lines {
    /// The lines of an answer's files.
    pub(in crate::cli) fn of(solution: &Solution) -> Self {
        Self { known: Files::of(solution), ..Self::default() }
    }

    /// A line from 1, for a terminal: without control characters, which could do anything to it.
    pub(in crate::cli) fn line(&self, file: &str, line: u32) -> Option<String> {
        if file.is_empty() {
            return None;
        }
        let mut files = self.files.borrow_mut();
        let lines = files.entry(file.to_owned()).or_insert_with(|| {
            // An excerpt is worth having; that a file is not here needs no words.
            let text = self.known.read(file).unwrap_or_else(|reason| {
                if Path::new(file).exists() {
                    self.refused.borrow_mut().insert(reason);
                }
                String::new()
            });
            text.lines().map(str::to_owned).collect()
        });
        let index = usize::try_from(line.checked_sub(1)?).ok()?;
        let kept = |c: &char| *c == '\t' || !c.is_control();
        lines.get(index).map(|line| line.chars().filter(kept).collect())
    }

    /// What is to be said below the text about files whose lines it does not have.
    pub(super) fn notes(&self) -> String {
        let refused = self.refused.borrow();
        refused.iter().map(|reason| format!("note: {reason}: its lines are left out\n")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use render::solution::SourceFile;

    fn files(name: &Path, md5: Option<&str>) -> (Files, String) {
        let file = name.to_str().expect("a name").to_owned();
        let source = SourceFile { file: file.clone(), md5: md5.map(str::to_owned) };
        (Files::of(&Solution { sources: vec![source], ..Solution::default() }), file)
    }

    #[test]
    fn a_text_that_was_changed_is_refused_by_name() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("queue.c");
        std::fs::write(&path, "int x;\n").expect("it can be written");
        let (known, name) = files(&path, Some("d2dd0b4a4f5b8d7c9e1f2a3b4c5d6e7f"));
        let reason = known.read(&name).expect_err("it has another sum");
        assert!(reason.contains("queue.c") && reason.contains("changed"), "{reason}");
        let lines = Lines { known, ..Lines::default() };
        assert_eq!(lines.line(&name, 1), None);
        assert!(lines.notes().starts_with("note: ") && lines.notes().contains("queue.c"));
        let (known, name) = files(&path, Some(&md5(b"int x;\n")));
        assert_eq!(known.read(&name).as_deref(), Ok("int x;\n"));
    }

    #[test]
    fn without_a_sum_only_what_looks_like_a_source_is_read() {
        let folder = tempfile::tempdir().expect("a directory");
        for (name, right) in [("a.c", true), ("b.hpp", true), ("id_rsa", false), ("d.txt", false)] {
            let path = folder.path().join(name);
            std::fs::write(&path, "text\n").expect("it can be written");
            let (known, file) = files(&path, None);
            assert_eq!(known.read(&file).is_ok(), right, "{name}");
        }
        assert!(looks_like_source("/usr/include/c++/12/mutex"));
        assert!(Files::default().read("/dev/zero").is_err());
    }

    #[test]
    fn sums_are_those_of_the_standard() {
        assert_eq!(md5(b"abc"), "900150983cd24fb0d6963f7d28e17f72");
    }
}
