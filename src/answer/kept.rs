//! The answer that `solve` keeps in a trace, for the commands that come after it.

use crate::pipeline::explained_trace;
use render::Solution;
use render::solution::{FORMAT, VERSION};
use serde::Deserialize;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The file of a trace directory in which `solve` keeps its answer.
const FILE: &str = "solution.json";

/// Why there is no answer to be had from a trace.
#[derive(Debug, Error)]
pub enum KeptError {
    /// There is no directory.
    #[error("{0} is no trace directory")]
    NoTrace(PathBuf),
    /// It holds no answer.
    #[error("{0} was not solved yet: run `symbiosis solve {0}` first")]
    NotSolved(PathBuf),
    /// The answer's file cannot be read.
    #[error("cannot read the answer")]
    Read(#[source] io::Error),
    /// What is in its place is something else.
    #[error("{path} is no answer of `symbiosis solve`: solve the trace again")]
    NoAnswer {
        /// The file.
        path: PathBuf,
        /// Where it departs from an answer.
        #[source]
        source: serde_json::Error,
    },
    /// It is an answer of another version of the format.
    #[error(
        "{path} was written by another version of symbiosis (format {found}, and this one reads \
         {FORMAT} {VERSION}): run `symbiosis solve` again"
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// The format and version that it names.
        found: String,
    },
}

/// Keeps an answer in its trace. The file is there whole or not at all.
///
/// # Errors
/// When it cannot be written.
pub fn keep(trace: &Path, solution: &Solution) -> io::Result<()> {
    // As readable as the rest of the trace.
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    let mut file = tempfile::Builder::new().permissions(permissions).tempfile_in(trace)?;
    let mut out = io::BufWriter::new(&mut file);
    render::json::write(&mut out, solution)?;
    io::Write::flush(&mut out)?;
    drop(out);
    file.persist(trace.join(FILE))?;
    Ok(())
}

/// What says whose answer it is; the rest may look different in another version.
#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    format: String,
    #[serde(default)]
    version: String,
}

/// Where a trace keeps its answer, or would.
#[must_use]
pub fn kept_file(trace: &Path) -> PathBuf {
    explained_trace(trace).join(FILE)
}

/// The answer that a trace keeps.
///
/// # Errors
/// When there is none, or none of this version.
pub fn kept(trace: &Path) -> Result<Solution, KeptError> {
    let path = kept_file(trace);
    let text = match fs_err::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound && trace.is_dir() => {
            return Err(KeptError::NotSolved(trace.to_owned()));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(KeptError::NoTrace(trace.to_owned()));
        }
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            let source = serde_json::Error::io(error);
            return Err(KeptError::NoAnswer { path, source });
        }
        Err(error) => return Err(KeptError::Read(error)),
    };
    let no_answer = |source| KeptError::NoAnswer { path: path.clone(), source };
    // A list would do for a structure whose members all have defaults.
    if text.trim_start().starts_with('[') {
        return Err(no_answer(serde::de::Error::custom("it is a list and not an object")));
    }
    let head: Head = serde_json::from_str(&text).map_err(no_answer)?;
    if (head.format.as_str(), head.version.as_str()) != (FORMAT, VERSION) {
        let found = format!("{} {}", head.format, head.version);
        return Err(KeptError::Version { path, found: found.trim().to_owned() });
    }
    serde_json::from_str(&text).map_err(no_answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_answer_comes_back() {
        let trace = tempfile::tempdir().expect("a directory");
        let solution = Solution {
            format: FORMAT.to_owned(),
            version: VERSION.to_owned(),
            ..Solution::default()
        };
        keep(trace.path(), &solution).expect("it can be written");
        assert_eq!(kept(trace.path()).expect("it can be read"), solution);
    }

    #[test]
    fn what_is_no_answer_of_this_version_is_refused_by_name() {
        let trace = tempfile::tempdir().expect("a directory");
        let error = kept(trace.path()).expect_err("there is none");
        assert!(matches!(error, KeptError::NotSolved(_)), "{error}");
        assert!(error.to_string().contains("symbiosis solve"), "{error}");
        let error = kept(&trace.path().join("none")).expect_err("there is none");
        assert!(matches!(error, KeptError::NoTrace(_)), "{error}");
        let file = trace.path().join(FILE);
        let other = r#"{"format": "symbiosis-solution", "version": "0.9"}"#;
        fs_err::write(&file, other).expect("the file can be written");
        let error = kept(trace.path()).expect_err("it is another version's");
        assert!(matches!(error, KeptError::Version { .. }), "{error}");
        assert!(error.to_string().contains("symbiosis-solution 0.9"), "{error}");
        for written in [&b"[]"[..], b"{", b"{\"format\": \"\xff\"}"] {
            fs_err::write(&file, written).expect("the file can be written");
            let error = kept(trace.path()).expect_err("it is something else");
            assert!(matches!(error, KeptError::NoAnswer { .. }), "{error}");
        }
    }
}
