//! Which binary to run, with which arguments, and where.

use super::{Original, ReplayError, Walked};
use crate::record::Program;
use crate::scratch::Scratch;
use object::{Object, ObjectSection};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use trace_format::{Manifest, Trace, bitcode_hash, program_hash, unpack_program};

/// The section of an instrumented binary that holds its modules' bitcode, zstd frame by frame.
const BITCODE_SECTION: &str = ".symbiosis.ir";
/// What a zstd frame begins with.
const FRAME: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Where the binary comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It is still where it was recorded.
    Recorded,
    /// From the copy in the trace.
    Copy,
    /// The user named it.
    Given,
}

/// A program that can be run again as it was recorded.
#[derive(Debug)]
pub struct Target {
    /// The program: its file is absolute, its command is the recorded one.
    pub program: Program,
    /// The working directory.
    pub directory: PathBuf,
    /// Where the binary comes from.
    pub origin: Origin,
    /// The recorded run.
    pub original: Arc<Original>,
    /// Holds the unpacked copy, if there is one.
    _unpacked: Option<Scratch>,
}

impl Target {
    /// The same, of which no run goes on, and of which nothing is compared, behind this moment.
    #[must_use]
    pub fn until(self, until: Option<Instant>) -> Self {
        Self { original: self.original.until(until), ..self }
    }

    /// The same, where it is known whether the run hung, see [`Original::hung`], and maybe what its walk came to.
    #[must_use]
    pub fn knowing(self, hung: bool, walked: Option<Walked>) -> Self {
        Self { original: self.original.knowing(hung, walked), ..self }
    }

    /// Finds the program of a trace: the binary that the user named, or the one at the recorded
    /// path if it is still the same, or else the copy in the trace.
    ///
    /// # Errors
    ///
    /// When there is none, when it is another one, or when the recorded working directory is gone.
    pub fn of_trace(
        directory: &Path,
        manifest: &Manifest,
        program: Option<&Path>,
    ) -> Result<Self, ReplayError> {
        let working = PathBuf::from(&manifest.directory);
        Self::in_directory(directory, manifest, program, &working)
    }

    /// As [`Self::of_trace`], with another working directory than the recorded one.
    ///
    /// # Errors
    ///
    /// As [`Self::of_trace`].
    pub fn in_directory(
        directory: &Path,
        manifest: &Manifest,
        program: Option<&Path>,
        working: &Path,
    ) -> Result<Self, ReplayError> {
        if manifest.process.is_some_and(|process| process.forked) {
            return Err(ReplayError::Forked { path: directory.to_owned() });
        }
        enterable(working)
            .map_err(|source| ReplayError::Directory { path: working.to_owned(), source })?;
        let original = Original::new(directory, manifest, None);
        let (file, origin, unpacked) = match program {
            Some(program) => {
                let file = std::path::absolute(program)
                    .map_err(|source| ReplayError::Io { action: "find the binary", source })?;
                same_program(&file, &original)
                    .map_err(|why| ReplayError::WrongBinary { path: program.to_owned(), why })?;
                (file, Origin::Given, None)
            }
            None => recorded_or_copy(directory, &original)?,
        };
        let mut command: Vec<OsString> = manifest.command.iter().map(OsString::from).collect();
        if command.is_empty() {
            command.push(file.clone().into_os_string());
        }
        let program = Program::at(&file, command);
        Ok(Self { program, directory: working.to_owned(), origin, original, _unpacked: unpacked })
    }
}

fn enterable(directory: &Path) -> io::Result<()> {
    if directory.metadata()?.is_dir() { Ok(()) } else { Err(io::ErrorKind::NotADirectory.into()) }
}

type Found = (PathBuf, Origin, Option<Scratch>);

fn recorded_or_copy(directory: &Path, original: &Arc<Original>) -> Result<Found, ReplayError> {
    let manifest = original.manifest();
    // The path is as the user gave it, so relative to where the user was.
    let recorded = Path::new(&manifest.directory).join(&manifest.executable.path);
    let why = match same_program(&recorded, original) {
        Ok(()) => return Ok((recorded, Origin::Recorded, None)),
        Err(why) => why,
    };
    let Some(saved) = &manifest.program else {
        return Err(match recorded.exists() {
            true => ReplayError::WrongBinary { path: recorded, why },
            false => ReplayError::NoProgram { path: recorded, why },
        });
    };
    let failed = |source| ReplayError::Io { action: "make a temporary directory", source };
    let scratch = Scratch::new("symbiosis-program").map_err(failed)?;
    // A program may look at its own name, so the copy keeps it.
    let name = Path::new(&saved.name).file_name().unwrap_or("program".as_ref());
    let file = scratch.path().join(name);
    unpack_program(directory, saved, &file)?;
    Ok((file, Origin::Copy, Some(scratch)))
}

/// Is this the recorded program? Else says what differs.
fn same_program(file: &Path, original: &Original) -> Result<(), String> {
    let metadata = file.metadata().map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err("not a file".to_owned());
    }
    if metadata.permissions().mode() & 0o111 == 0 {
        return Err("not executable".to_owned());
    }
    let manifest = original.manifest();
    if let Some(saved) = &manifest.program
        && saved.size == metadata.len()
        && program_hash(file).is_ok_and(|hash| hash == saved.hash)
    {
        return Ok(());
    }
    let bytes = fs_err::read(file).map_err(|error| error.to_string())?;
    let object = object::File::parse(bytes.as_slice())
        .map_err(|_| "it is no executable that symbiosis built".to_owned())?;
    same_modules(&object, original.trace())
}

/// A binary that was linked anew from the same modules is as good: gates, plan and path streams
/// follow from the modules alone. Modules of shared libraries are compared after the run.
fn same_modules(object: &object::File<'_>, trace: Option<&Trace>) -> Result<(), String> {
    let section = object.section_by_name(BITCODE_SECTION).and_then(|section| section.data().ok());
    let embedded = embedded_modules(section.unwrap_or(&[]));
    if embedded.is_empty() {
        return Err("it is not instrumented".to_owned());
    }
    let recorded: BTreeSet<[u64; 2]> =
        trace.iter().flat_map(|trace| trace.modules()).map(|module| module.hash).collect();
    let unknown = embedded.difference(&recorded).count();
    if unknown > 0 {
        return Err(format!(
            "{unknown} of its {} modules are not those that were recorded",
            embedded.len()
        ));
    }
    Ok(())
}

/// The hashes of the modules whose bitcode is in a section.
fn embedded_modules(mut section: &[u8]) -> BTreeSet<[u64; 2]> {
    let mut found = BTreeSet::new();
    while let Some(at) = section.windows(FRAME.len()).position(|bytes| bytes == FRAME) {
        section = section.get(at..).unwrap_or(&[]);
        let mut rest = section;
        let bitcode = zstd::stream::Decoder::with_buffer(&mut rest)
            .map(zstd::stream::Decoder::single_frame)
            .and_then(|mut decoder| {
                let mut bitcode = Vec::new();
                io::Read::read_to_end(&mut decoder, &mut bitcode).map(|_| bitcode)
            });
        match bitcode {
            Ok(bitcode) => {
                found.insert(bitcode_hash(&bitcode));
                section = rest;
            }
            Err(_) => section = section.get(FRAME.len()..).unwrap_or(&[]),
        }
    }
    found
}
