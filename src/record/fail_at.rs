//! `record --fail-at FILE:LINE`: where the line's code begins, from the executable's line table.

use gimli::{Dwarf, EndianSlice, LittleEndian, SectionId, Unit};
use object::{Object, ObjectSection};
use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};

type Slice<'d> = EndianSlice<'d, LittleEndian>;

/// How many other lines a message names.
const NAMED: usize = 4;

/// A source line whose execution is a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailAt {
    file: String,
    line: u32,
    /// Where in the executable its code begins, in bytes from where it is loaded.
    places: Vec<u64>,
}

/// Why a line cannot be watched.
#[derive(Debug, thiserror::Error)]
pub enum FailAtError {
    /// Not of the form `FILE:LINE`.
    #[error("--fail-at {text}: FILE:LINE expected, bank.c:62 for instance")]
    Form {
        /// What was given.
        text: String,
    },
    /// The executable cannot be read, or its line table is damaged.
    #[error("--fail-at: {}: cannot read the line table: {what}", program.display())]
    Unreadable {
        /// The executable.
        program: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// The executable has no code of this file.
    #[error("--fail-at: {}: no code of {file}; lines of shared libraries cannot be watched", program.display())]
    NoFile {
        /// The executable.
        program: PathBuf,
        /// The file that was asked for.
        file: String,
    },
    /// The line has no code.
    #[error(
        "--fail-at: {file}:{line} has no code of its own; the lines around it that have: {near}"
    )]
    NoCode {
        /// The file.
        file: String,
        /// The line.
        line: u32,
        /// Lines with code.
        near: String,
    },
}

impl fmt::Display for FailAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

impl FailAt {
    /// Finds the code of `FILE:LINE` in an executable. `FILE` is a path, or the end of one.
    ///
    /// # Errors
    ///
    /// When the text is of another form, or the executable has no such code.
    pub fn find(program: &Path, text: &str) -> Result<Self, FailAtError> {
        let form = || FailAtError::Form { text: text.to_owned() };
        let (file, line) = text.rsplit_once(':').ok_or_else(form)?;
        let line: u32 = line.parse().ok().filter(|line| *line > 0).ok_or_else(form)?;
        let file = file.trim_start_matches("./").to_owned();
        if file.is_empty() {
            return Err(form());
        }
        let unreadable =
            |what: String| FailAtError::Unreadable { program: program.to_owned(), what };
        let bytes = fs_err::read(program).map_err(|error| unreadable(error.to_string()))?;
        let mut table = Table { file: &file, line, places: Vec::new(), lines: Vec::new() };
        table.read(&bytes).map_err(|what| unreadable(what.to_string()))?;
        let Table { mut places, mut lines, .. } = table;
        if lines.is_empty() {
            return Err(FailAtError::NoFile { program: program.to_owned(), file });
        }
        if places.is_empty() {
            lines.sort_unstable();
            lines.dedup();
            lines.sort_by_key(|other| other.abs_diff(line));
            lines.truncate(NAMED);
            lines.sort_unstable();
            let near = lines.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            return Err(FailAtError::NoCode { file, line, near });
        }
        places.sort_unstable();
        places.dedup();
        Ok(Self { file, line, places })
    }

    /// The value of [`FAIL_AT_VARIABLE`](trace_format::layout::FAIL_AT_VARIABLE).
    #[must_use]
    pub fn variable(&self) -> String {
        let places: Vec<String> = self.places.iter().map(|place| format!("{place:x}")).collect();
        format!("{self}={}", places.join(","))
    }
}

/// What is looked for in a line table, and what was found.
struct Table<'t> {
    file: &'t str,
    line: u32,
    places: Vec<u64>,
    /// All lines of the file that have code.
    lines: Vec<u32>,
}

impl Table<'_> {
    fn read(&mut self, bytes: &[u8]) -> Result<(), Box<dyn std::error::Error>> {
        let object = object::File::parse(bytes)?;
        let load = |id: SectionId| -> Result<Cow<'_, [u8]>, object::Error> {
            match object.section_by_name(id.name()) {
                Some(section) => section.uncompressed_data(),
                None => Ok(Cow::Borrowed(&[])),
            }
        };
        let sections = gimli::DwarfSections::load(load)?;
        let dwarf = sections.borrow(|section| EndianSlice::new(section, LittleEndian));
        let mut headers = dwarf.units();
        while let Some(header) = headers.next()? {
            let unit = dwarf.unit(header)?;
            self.read_unit(&dwarf, &unit)?;
        }
        Ok(())
    }

    fn read_unit(&mut self, dwarf: &Dwarf<Slice<'_>>, unit: &Unit<Slice<'_>>) -> gimli::Result<()> {
        let Some(program) = unit.line_program.clone() else { return Ok(()) };
        let mut rows = program.rows();
        // The row before, unless a sequence ended: did it speak of the line?
        let mut inside = false;
        while let Some((header, row)) = rows.next_row()? {
            if row.end_sequence() {
                inside = false;
                continue;
            }
            let Some(line) = row.line().and_then(|line| u32::try_from(line.get()).ok()) else {
                inside = false;
                continue;
            };
            let of_file = match row.file(header) {
                Some(file) => self.is_file(dwarf, unit, header, file)?,
                None => false,
            };
            if of_file && row.is_stmt() {
                self.lines.push(line);
            }
            let hit = of_file && line == self.line;
            if hit && !inside && row.is_stmt() && row.address() != 0 {
                self.places.push(row.address());
            }
            inside = hit && (inside || row.is_stmt());
        }
        Ok(())
    }

    fn is_file(
        &self,
        dwarf: &Dwarf<Slice<'_>>,
        unit: &Unit<Slice<'_>>,
        header: &gimli::LineProgramHeader<Slice<'_>>,
        file: &gimli::FileEntry<Slice<'_>>,
    ) -> gimli::Result<bool> {
        let text = |value| -> gimli::Result<String> {
            Ok(dwarf.attr_string(unit, value)?.to_string_lossy().into_owned())
        };
        let mut path = text(file.path_name())?;
        if let Some(directory) = file.directory(header).filter(|_| !path.starts_with('/')) {
            path = format!("{}/{path}", text(directory)?);
        }
        Ok(path.strip_suffix(self.file).is_some_and(|rest| rest.is_empty() || rest.ends_with('/')))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_a_file_and_a_line() {
        let program = std::env::current_exe().expect("a path");
        for text in ["bank.c", "bank.c:", "bank.c:x", "bank.c:0", ":3"] {
            let error = FailAt::find(&program, text).expect_err(text);
            assert!(matches!(error, FailAtError::Form { .. }), "{error}");
        }
        let error = FailAt::find(&program, "nobody-has-this.c:3").expect_err("no such file");
        assert!(error.to_string().contains("no code of nobody-has-this.c"), "{error}");
    }

    #[test]
    fn variables_name_line_and_places() {
        let place = FailAt { file: "a/b.c".to_owned(), line: 7, places: vec![0x1234, 0x2000] };
        assert_eq!(place.variable(), "a/b.c:7=1234,2000");
    }
}
