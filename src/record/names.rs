//! The names of trace directories. An existing trace is never overwritten.

use crate::record::RecordError;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Gives out names for the traces of one `record` command.
#[derive(Debug)]
pub struct Names {
    base: PathBuf,
    given: bool,
    last: u32,
}

impl Names {
    /// Names from the user's choice, or else from the program's.
    #[must_use]
    pub fn new(output: Option<&Path>, program: &OsStr) -> Self {
        match output {
            Some(output) => Self { base: output.to_owned(), given: true, last: 0 },
            None => {
                let name = Path::new(program).file_name().unwrap_or(OsStr::new("program"));
                let mut name = name.to_owned();
                name.push(".trace");
                Self { base: name.into(), given: false, last: 0 }
            }
        }
    }

    /// The name for the only trace: the user's, or the first free of `p.trace`, `p-2.trace`, ...
    ///
    /// # Errors
    ///
    /// When the user's choice exists.
    pub fn single(&self) -> Result<PathBuf, RecordError> {
        if !exists(&self.base) {
            return Ok(self.base.clone());
        }
        if self.given {
            return Err(RecordError::Exists { path: self.base.clone() });
        }
        let free = (2..).map(|number| self.numbered(number)).find(|name| !exists(name));
        free.ok_or_else(|| RecordError::Exists { path: self.base.clone() })
    }

    /// The next name of a series: `p-1.trace`, `p-2.trace`, ...
    ///
    /// # Errors
    ///
    /// When the base is the user's choice and the name exists.
    pub fn next_of_series(&mut self) -> Result<PathBuf, RecordError> {
        loop {
            self.last += 1;
            let name = self.numbered(self.last);
            if !exists(&name) {
                return Ok(name);
            }
            if self.given {
                return Err(RecordError::Exists { path: name });
            }
        }
    }

    /// The name for the trace of a process beside the program: `p-CHILD.trace` when the program has
    /// the trace `p.trace`, else `CHILD.trace`, in the directory that the user chose or here. A
    /// number is added where the name is taken.
    ///
    /// # Errors
    ///
    /// When a directory for it cannot be made.
    pub fn of_child(
        &self,
        run: &Path,
        recorded: bool,
        child: &str,
    ) -> Result<PathBuf, RecordError> {
        let base = if recorded {
            let mut name = run.file_stem().unwrap_or(OsStr::new("program")).to_owned();
            name.push(format!("-{child}.trace"));
            run.with_file_name(name)
        } else if self.given {
            fs_err::create_dir_all(run)
                .map_err(|source| RecordError::Create { path: run.to_owned(), source })?;
            run.join(format!("{child}.trace"))
        } else {
            PathBuf::from(format!("{child}.trace"))
        };
        Self { base, given: false, last: 0 }.single()
    }

    fn numbered(&self, number: u32) -> PathBuf {
        let mut name = self.base.file_stem().unwrap_or(OsStr::new("program")).to_owned();
        name.push(format!("-{number}"));
        if let Some(extension) = self.base.extension() {
            name.push(".");
            name.push(extension);
        }
        self.base.with_file_name(name)
    }
}

fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_given_name_that_exists_is_an_error_and_its_series_counts_from_one() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let base = directory.path().join("q.trace");
        let mut names = Names::new(Some(&base), OsStr::new("./prog"));
        assert_eq!(names.single().expect("free"), base);
        fs_err::create_dir(&base).expect("made");
        assert!(matches!(names.single(), Err(RecordError::Exists { .. })));
        assert_eq!(names.next_of_series().expect("free"), directory.path().join("q-1.trace"));
        assert_eq!(names.next_of_series().expect("free"), directory.path().join("q-2.trace"));
    }

    #[test]
    fn the_default_name_is_the_programs() {
        let names = Names::new(None, OsStr::new("/some/where/prog.bin"));
        assert_eq!(names.base, Path::new("prog.bin.trace"));
        assert_eq!(names.numbered(2), Path::new("prog.bin-2.trace"));
    }
}
