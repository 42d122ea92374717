//! The program to record, before it runs.

use crate::record::RecordError;
use object::{Object, ObjectSymbol};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use trace_format::Executable;

/// The symbol that every instrumented executable has, because it holds the runtime.
const RUNTIME_SYMBOL: &[u8] = b"__symbiosis_register";

/// Does an executable hold the runtime?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instrumented {
    /// It does.
    Yes,
    /// It has a symbol table, and the runtime is not in it.
    No,
    /// It cannot be told: a script, or an executable without symbols.
    Unknown,
}

/// The program to record.
#[derive(Clone, Debug)]
pub struct Program {
    /// The program and its arguments as given.
    pub command: Vec<OsString>,
    /// Its file.
    pub file: PathBuf,
    /// The GNU build id in hexadecimal digits.
    pub build_id: Option<String>,
    /// Is it instrumented?
    pub instrumented: Instrumented,
}

impl Program {
    /// Finds the program as a shell would and looks into its executable.
    ///
    /// # Errors
    ///
    /// When there is no such program.
    pub fn find(command: &[OsString]) -> Result<Self, RecordError> {
        let name = command.first().cloned().unwrap_or_default();
        let file = find_file(&name)
            .map_err(|source| RecordError::Start { program: name.clone(), source })?;
        let (instrumented, build_id) = inspect(&file);
        Ok(Self { command: command.to_vec(), file, build_id, instrumented })
    }

    /// The program in a file that is known to be the right one, to be run again.
    #[must_use]
    pub fn at(file: &Path, command: Vec<OsString>) -> Self {
        let (instrumented, build_id) = inspect(file);
        Self { command, file: file.to_owned(), build_id, instrumented }
    }

    /// What the manifest says of the executable.
    #[must_use]
    pub fn executable(&self) -> Executable {
        Executable {
            path: self.file.to_string_lossy().into_owned(),
            build_id: self.build_id.clone(),
        }
    }
}

fn find_file(name: &OsStr) -> io::Result<PathBuf> {
    let path = Path::new(name);
    if path.components().count() > 1 || name.as_encoded_bytes().contains(&b'/') {
        return runnable(path).map(|()| path.to_owned());
    }
    let directories = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&directories)
        .map(|directory| directory.join(name))
        .find(|file| runnable(file).is_ok())
        .ok_or_else(|| {
            let what = match name.as_encoded_bytes().starts_with(b"-") {
                true => "not an option, and not found in PATH; see `symbiosis record --help`",
                false => "not found in PATH",
            };
            io::Error::new(io::ErrorKind::NotFound, what)
        })
}

fn runnable(path: &Path) -> io::Result<()> {
    let metadata = path.metadata()?;
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if metadata.permissions().mode() & 0o111 == 0 {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok(())
}

fn inspect(file: &Path) -> (Instrumented, Option<String>) {
    let Ok(bytes) = fs_err::read(file) else { return (Instrumented::Unknown, None) };
    let Ok(object) = object::File::parse(bytes.as_slice()) else {
        return (Instrumented::Unknown, None);
    };
    let build_id = object
        .build_id()
        .ok()
        .flatten()
        .map(|id| id.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}")));
    let mut symbols = object.symbols().chain(object.dynamic_symbols());
    let instrumented = if symbols.any(|symbol| symbol.name_bytes() == Ok(RUNTIME_SYMBOL)) {
        Instrumented::Yes
    } else if object.symbols().next().is_some() {
        Instrumented::No
    } else {
        Instrumented::Unknown
    };
    (instrumented, build_id)
}
