//! A trace as one file, to be passed on: a tape archive compressed with zstd, which `tar` reads as well.
//!
//! In the archive all paths begin with the trace directory's own name, and there are directories and plain
//! files alone. Names, contents and whether a file may be read by others are kept, nothing else; so the same
//! trace makes the same archive.

use crate::errors::with_causes;
use std::collections::BTreeSet;
use std::io::{self, BufReader, BufWriter, ErrorKind, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};
use trace_format::{Manifest, TraceError};

/// What a packed trace is called by: the directory's name, and this.
pub const SUFFIX: &str = ".tar.zst";

/// Compression: the streams in a sealed trace are compressed already.
const LEVEL: i32 = 3;

/// Why a trace cannot be packed or unpacked.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// What is to be packed is no trace, or one that cannot be read; or what came out is.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A path has no name of its own, like `..`.
    #[error("{}: a directory with a name is needed; give its path from elsewhere", .0.display())]
    Name(PathBuf),
    /// The file would be a part of what it is made of.
    #[error("{}: lies in the trace itself; give another place with -o", .0.display())]
    Inside(PathBuf),
    /// In the trace is what no recorder leaves there.
    #[error("{}: neither a file nor a directory; remove it from the trace", .0.display())]
    Strange(PathBuf),
    /// Where the result goes is something already.
    #[error("{}: is there already; remove it, or give another name with -o", .0.display())]
    Exists(PathBuf),
    /// A file is no packed trace, or one that was cut or damaged.
    #[error("{}: not a whole packed trace as `symbiosis pack` makes it: {reason}", path.display())]
    Archive {
        /// The file.
        path: PathBuf,
        /// What is the matter with it.
        reason: String,
    },
    /// The packed trace is not there, or cannot be opened.
    #[error("cannot read a packed trace")]
    Open(#[source] io::Error),
    /// The archive cannot be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A file cannot be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The name that a trace's archive has when none is given: beside the trace.
#[must_use]
pub fn packed_name(trace: &Path) -> PathBuf {
    let mut name = trace.components().as_path().as_os_str().to_owned();
    name.push(SUFFIX);
    name.into()
}

/// Packs a trace into a file, which is there whole or not at all.
///
/// # Errors
/// When the directory is no trace, something in it cannot be read, or the file is there or cannot be written.
pub fn pack(trace: &Path, file: &Path) -> Result<(), PackError> {
    Manifest::read(trace)?;
    let name = trace.file_name().ok_or_else(|| PackError::Name(trace.to_owned()))?;
    if fs_err::canonicalize(parent(file))?.starts_with(fs_err::canonicalize(trace)?) {
        return Err(PackError::Inside(file.to_owned()));
    }
    // As readable as other files that a user makes.
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    let temporary = tempfile::Builder::new().permissions(permissions).tempfile_in(parent(file))?;
    let mut compressed = zstd::Encoder::new(BufWriter::new(temporary.as_file()), LEVEL)?;
    // Damage on the way is to be noticed in whatever is in it.
    compressed.include_checksum(true)?;
    let mut archive = tar::Builder::new(compressed);
    archive.mode(tar::HeaderMode::Deterministic);
    let written = |result: Result<(), PackError>| match result {
        // What is read has its name in the error.
        Err(PackError::Io(source)) if is_full(&source) => {
            Err(PackError::Write { path: file.to_owned(), source })
        }
        other => other,
    };
    written(append(&mut archive, trace, Path::new(name)))?;
    let finished = archive.into_inner().and_then(zstd::Encoder::finish);
    written(finished.and_then(|mut out| out.flush()).map_err(PackError::Io))?;
    match temporary.persist_noclobber(file) {
        Ok(_) => Ok(()),
        Err(error) if error.error.kind() == ErrorKind::AlreadyExists => {
            Err(PackError::Exists(file.to_owned()))
        }
        Err(error) => Err(error.error.into()),
    }
}

/// Has it nothing to do with what was to be written?
fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

/// Adds a directory and all that is in it, in the order of the names.
fn append<W: io::Write>(
    archive: &mut tar::Builder<W>,
    directory: &Path,
    name: &Path,
) -> Result<(), PackError> {
    archive.append_dir(name, directory)?;
    let entries: io::Result<BTreeSet<PathBuf>> =
        fs_err::read_dir(directory)?.map(|entry| entry.map(|entry| entry.path())).collect();
    for path in entries? {
        let Some(own) = path.file_name() else { continue };
        let kind = fs_err::symlink_metadata(&path)?.file_type();
        if kind.is_dir() {
            append(archive, &path, &name.join(own))?;
        } else if kind.is_file() {
            archive.append_path_with_name(&path, name.join(own))?;
        } else {
            return Err(PackError::Strange(path));
        }
    }
    Ok(())
}

/// Unpacks a packed trace into a directory of the name that is given, or that it had, in the working directory. It is
/// there whole or not at all. Gives the directory.
///
/// # Errors
/// When the file is no whole packed trace, or the directory is there or cannot be made.
pub fn unpack(file: &Path, directory: Option<&Path>) -> Result<PathBuf, PackError> {
    let beside = directory.map_or(Path::new("."), parent);
    let temporary = tempfile::Builder::new().prefix(".symbiosis-").tempdir_in(beside)?;
    let found = extract(file, temporary.path())?;
    let trace = temporary.path().join(&found);
    Manifest::read(&trace)?;
    let directory = directory.map_or_else(|| PathBuf::from(&found), Path::to_owned);
    // A rename would replace an empty directory.
    if fs_err::symlink_metadata(&directory).is_ok() {
        return Err(PackError::Exists(directory));
    }
    fs_err::rename(&trace, &directory)?;
    Ok(directory)
}

/// Writes what is in an archive below a directory, and gives the name of the one directory that all of it is in.
fn extract(file: &Path, below: &Path) -> Result<PathBuf, PackError> {
    let bad = |reason: String| PackError::Archive { path: file.to_owned(), reason };
    let open = BufReader::new(fs_err::File::open(file).map_err(PackError::Open)?);
    let mut archive = tar::Archive::new(zstd::Decoder::with_buffer(open)?);
    let mut name = None;
    for entry in archive.entries()? {
        let mut entry = entry.map_err(|error| bad(error.to_string()))?;
        let path = entry.path().map_err(|error| bad(error.to_string()))?.into_owned();
        let kind = entry.header().entry_type();
        let shown = String::from_utf8_lossy(path.as_os_str().as_bytes()).into_owned();
        if !kind.is_file() && !kind.is_dir() {
            return Err(bad(format!("`{shown}` is neither a file nor a directory")));
        }
        let mut parts = path.components();
        let first = match parts.next() {
            Some(Component::Normal(first))
                if parts.all(|part| matches!(part, Component::Normal(_))) =>
            {
                PathBuf::from(first)
            }
            _ => return Err(bad(format!("`{shown}` is no path within a trace"))),
        };
        if *name.get_or_insert_with(|| first.clone()) != first {
            return Err(bad(format!("`{shown}` is in another directory than what is before it")));
        }
        let written = entry.unpack_in(below).map_err(|error| match error.kind() {
            // That has nothing to do with what is in it.
            _ if is_full(&error) || error.kind() == ErrorKind::PermissionDenied => {
                PackError::Io(error)
            }
            _ => bad(with_causes(&error)),
        });
        if !written? {
            return Err(bad(format!("`{shown}` is no path within a trace")));
        }
    }
    // The archive's own end may come before that of the compressed data, whose checksum is last.
    io::copy(&mut archive.into_inner(), &mut io::sink()).map_err(|error| bad(error.to_string()))?;
    name.ok_or_else(|| bad("there is nothing in it".to_owned()))
}

/// The directory that a path is in.
fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace_format::Executable;

    /// A directory with a trace in it that has a file in a directory of its own.
    fn trace() -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a directory");
        let trace = root.path().join("run.trace");
        fs_err::create_dir_all(trace.join("threads")).expect("it can be made");
        let executable = Executable { path: "/bin/true".into(), build_id: None };
        let manifest = Manifest::new("0", vec!["true".into()], "/".into(), executable);
        manifest.write(&trace).expect("it can be written");
        fs_err::write(trace.join("threads/t0.path.z"), [0, 1, 2]).expect("it can be written");
        root
    }

    #[test]
    fn what_is_unpacked_is_what_was_packed() {
        let root = trace();
        let (one, file) = (root.path().join("run.trace"), root.path().join("run.trace.tar.zst"));
        assert_eq!(packed_name(&root.path().join("run.trace/")), file);
        pack(&one, &file).expect("packed");
        let other = root.path().join("other.trace");
        assert_eq!(unpack(&file, Some(&other)).expect("unpacked"), other);
        for name in ["manifest.json", "threads/t0.path.z"] {
            let read = |trace: &Path| fs_err::read(trace.join(name)).expect("it is there");
            assert_eq!(read(&one), read(&other), "{name}");
        }
        let again = root.path().join("again.tar.zst");
        pack(&one, &again).expect("packed");
        assert_eq!(fs_err::read(&file).expect("read"), fs_err::read(&again).expect("read"));
        assert!(matches!(pack(&one, &file), Err(PackError::Exists(path)) if path == file));
        assert!(matches!(unpack(&file, Some(&one)), Err(PackError::Exists(path)) if path == one));
        assert!(matches!(pack(&one.join("threads"), &again), Err(PackError::Trace(_))));
        let inside = one.join("threads/packed");
        assert!(matches!(pack(&one, &inside), Err(PackError::Inside(path)) if path == inside));
    }

    #[test]
    fn what_is_cut_or_damaged_is_refused_and_leaves_nothing() {
        let root = trace();
        let file = root.path().join("packed");
        pack(&root.path().join("run.trace"), &file).expect("packed");
        let whole = fs_err::read(&file).expect("read");
        let target = root.path().join("new.trace");
        for length in 0..whole.len() {
            fs_err::write(&file, &whole[..length]).expect("written");
            let error = unpack(&file, Some(&target)).expect_err("cut");
            assert!(matches!(&error, PackError::Archive { .. }), "{length}: {error}");
            assert!(error.to_string().contains("packed"), "{error}");
        }
        let names = fs_err::read_dir(root.path()).expect("listed").count();
        assert_eq!(names, 2, "the trace and the packed one");
    }

    #[test]
    fn archives_that_lead_elsewhere_are_refused() {
        let root = tempfile::tempdir().expect("a directory");
        let file = root.path().join("packed");
        let archive = |path: &str, kind: tar::EntryType| {
            let compressed = zstd::Encoder::new(Vec::new(), LEVEL).expect("an encoder");
            let mut archive = tar::Builder::new(compressed);
            let mut header = tar::Header::new_gnu();
            header.as_mut_bytes()[..path.len()].copy_from_slice(path.as_bytes());
            header.set_entry_type(kind);
            header.set_link_name("/etc").expect("short");
            header.set_size(0);
            header.set_cksum();
            archive.append(&header, io::empty()).expect("appended");
            archive.into_inner().and_then(zstd::Encoder::finish).expect("compressed")
        };
        for (path, kind) in [
            ("../escaped", tar::EntryType::Regular),
            ("/escaped", tar::EntryType::Regular),
            ("a/../../escaped", tar::EntryType::Regular),
            ("a.trace", tar::EntryType::Symlink),
            ("a.trace", tar::EntryType::Link),
        ] {
            fs_err::write(&file, archive(path, kind)).expect("written");
            let error = unpack(&file, Some(&root.path().join("a"))).expect_err("refused");
            assert!(matches!(error, PackError::Archive { .. }), "{path}: {error}");
        }
        fs_err::write(&file, archive("a.trace/x", tar::EntryType::Regular)).expect("written");
        let error = unpack(&file, Some(&root.path().join("a"))).expect_err("no trace");
        assert!(matches!(error, PackError::Trace(_)), "{error}");
    }

    #[test]
    fn any_damage_on_the_way_is_noticed() {
        let root = trace();
        let file = root.path().join("packed");
        pack(&root.path().join("run.trace"), &file).expect("packed");
        let whole = fs_err::read(&file).expect("it can be read");
        let to = root.path().join("other.trace");
        for place in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[place] ^= 0x20;
            fs_err::write(&file, &damaged).expect("written");
            // What the format leaves unused says nothing of the contents.
            if unpack(&file, Some(&to)).is_ok() {
                let same = fs_err::read(to.join("manifest.json")).expect("it can be read");
                let own = fs_err::read(root.path().join("run.trace/manifest.json"));
                assert_eq!(same, own.expect("it can be read"), "{place}");
                let path = fs_err::read(to.join("threads/t0.path.z")).expect("it can be read");
                assert_eq!(path, [0, 1, 2], "{place}");
                fs_err::remove_dir_all(&to).expect("removed");
            }
        }
        let error = unpack(&root.path().join("nowhere"), None).expect_err("it is not there");
        assert!(matches!(error, PackError::Open(_)), "{error}");
    }

    #[test]
    fn a_link_in_a_trace_is_not_packed() {
        let root = trace();
        let trace = root.path().join("run.trace");
        std::os::unix::fs::symlink("/etc", trace.join("link")).expect("made");
        let error = pack(&trace, &root.path().join("packed")).expect_err("refused");
        assert!(matches!(&error, PackError::Strange(path) if path.ends_with("link")), "{error}");
        assert!(!root.path().join("packed").exists());
    }
}
