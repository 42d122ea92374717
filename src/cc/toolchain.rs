//! Finds the user's clang and runs it.

use super::{CcError, response};
use std::cmp::Reverse;
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Longer command lines go through a response file: the kernel's limit on arguments and
/// environment together can be as low as 128 KiB.
const LONGEST_COMMAND_LINE: usize = 96 * 1024;

/// The versions that distributions install under a name of their own.
const NUMBERED: std::ops::RangeInclusive<u32> = 14..=22;

/// The clang that does the compiling.
#[derive(Clone, Debug)]
pub struct Clang {
    program: PathBuf,
}

impl Clang {
    /// The clang named by `SYMBIOSIS_CLANG` (`SYMBIOSIS_CLANGXX` for C++), else the newest on PATH.
    pub fn find(cxx: bool) -> Result<Self, CcError> {
        let (name, variable) =
            if cxx { ("clang++", "SYMBIOSIS_CLANGXX") } else { ("clang", "SYMBIOSIS_CLANG") };
        if let Some(program) = std::env::var_os(variable).filter(|value| !value.is_empty()) {
            return Ok(Self { program: program.into() });
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let program = newest(candidates(name, &path));
        program.map(|program| Self { program }).ok_or(CcError::ClangNotFound { name, variable })
    }

    /// What tells this clang from others: its path, size and time. `None` where it is not named by a path.
    pub fn identity(&self) -> Option<String> {
        file_identity(&self.program)
    }

    /// Runs clang to its end with this process's streams and returns its exit status, or 128 plus
    /// the signal that killed it, as a shell reports it.
    pub fn run(&self, args: &[OsString]) -> Result<u8, CcError> {
        let mut command = Command::new(&self.program);
        let length: usize = args.iter().map(|arg| arg.len() + 1).sum();
        let mut response_file = None;
        if length > LONGEST_COMMAND_LINE {
            let mut file = tempfile::NamedTempFile::new().map_err(CcError::Temporary)?;
            file.write_all(&response::quote(args)).map_err(CcError::Temporary)?;
            let mut arg = OsString::from("@");
            arg.push(file.path());
            command.arg(arg);
            response_file = Some(file);
        } else {
            command.args(args);
        }
        let status = command
            .status()
            .map_err(|source| CcError::Spawn { program: self.program.clone(), source })?;
        drop(response_file);
        let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
        Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
    }
}

/// What tells an executable from others, and from other versions of it. A package that is installed again has another time.
pub fn file_identity(path: &Path) -> Option<String> {
    let metadata = fs_err::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    let (length, changed) = (metadata.len(), (metadata.ctime(), metadata.ctime_nsec()));
    Some(format!("{} {length} {changed:?}", fs_err::canonicalize(path).ok()?.display()))
}

/// Executables of that name on PATH: the plain name and the numbered ones, each at its first place.
fn candidates(name: &str, path: &std::ffi::OsStr) -> Vec<(PathBuf, Option<u32>)> {
    let names = std::iter::once((name.to_owned(), None))
        .chain(NUMBERED.rev().map(|version| (format!("{name}-{version}"), Some(version))));
    let mut found = Vec::new();
    for (name, version) in names {
        let place = std::env::split_paths(path).map(|dir| dir.join(&name)).find(|p| executable(p));
        found.extend(place.map(|place| (place, version)));
    }
    found
}

fn executable(path: &Path) -> bool {
    fs_err::metadata(path).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

/// The candidate with the highest version; of equals the plain name, which comes first.
fn newest(mut found: Vec<(PathBuf, Option<u32>)>) -> Option<PathBuf> {
    if found.len() > 1 {
        for (path, version) in &mut found {
            *version = version.or_else(|| version_in_path(path)).or_else(|| ask_version(path));
        }
    }
    found.sort_by_key(|(_, version)| Reverse(*version));
    found.into_iter().next().map(|(path, _)| path)
}

/// Distributions keep each version in a directory of its own (`llvm-14`), so that the version is
/// known without running anything, which would cost as much as compiling a small file.
fn version_in_path(path: &Path) -> Option<u32> {
    let target = fs_err::canonicalize(path).ok()?;
    target.iter().rev().find_map(|component| {
        let component = component.to_str()?;
        let digits = ["llvm-", "clang++-", "clang-"].iter().find_map(|p| component.strip_prefix(p));
        digits?.split('.').next()?.parse().ok()
    })
}

fn ask_version(path: &Path) -> Option<u32> {
    let output = Command::new(path).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let rest = text.split("clang version ").nth(1)?;
    rest.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fake(dir: &Path, name: &str) {
        let path = dir.join(name);
        fs_err::write(&path, "").unwrap();
        fs_err::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn the_newest_version_wins_and_the_plain_name_among_equals() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().as_os_str().to_owned();
        assert!(newest(candidates("clang", &path)).is_none());
        fake(dir.path(), "clang-14");
        assert_eq!(newest(candidates("clang", &path)), Some(dir.path().join("clang-14")));
        let home = dir.path().join("llvm-16/bin");
        fs_err::create_dir_all(&home).unwrap();
        fake(&home, "clang");
        std::os::unix::fs::symlink(home.join("clang"), dir.path().join("clang")).unwrap();
        assert_eq!(newest(candidates("clang", &path)), Some(dir.path().join("clang")));
        fake(dir.path(), "clang-19");
        assert_eq!(newest(candidates("clang", &path)), Some(dir.path().join("clang-19")));
    }

    #[test]
    fn a_version_is_read_from_where_a_link_leads() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("llvm-15/bin");
        fs_err::create_dir_all(&home).unwrap();
        fake(&home, "clang");
        std::os::unix::fs::symlink(home.join("clang"), dir.path().join("cc")).unwrap();
        assert_eq!(version_in_path(&dir.path().join("cc")), Some(15));
    }
}
