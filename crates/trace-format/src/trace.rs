//! A trace, opened for reading.

use crate::chunks;
use crate::error::TraceError;
use crate::files;
use crate::hash::{bitcode_file_name, bitcode_hash};
use crate::layout::OrderRecord;
use crate::manifest::{Failure, Manifest, State, ThreadRecord};
use crate::order;
use crate::raw::{self, StreamKind};
use crate::seal::read_raw;
use crate::source::Source;
use crate::streams::{ModuleId, PathReader, ValueReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An instrumented module of the recorded process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// The hash of its bitcode, low word first ([`bitcode_hash`]).
    pub hash: [u64; 2],
    /// The process-wide number of its first function.
    pub base: u32,
    /// The addresses of its functions in IR order; 0 where unknown.
    pub functions: Vec<u64>,
    /// The addresses of its global variables in IR order; 0 where unknown.
    pub globals: Vec<u64>,
}

/// A thread of the recorded process.
pub type Thread = ThreadRecord;

/// A trace directory, opened.
#[derive(Clone, Debug)]
pub struct Trace {
    directory: PathBuf,
    manifest: Manifest,
    modules: Vec<Module>,
    functions: Arc<[(u32, u32, ModuleId)]>,
}

impl Trace {
    /// Opens a trace. One whose recording was cut short is read from its raw files; then
    /// [`Self::is_sealed`] is false.
    ///
    /// # Errors
    ///
    /// When it is no trace, or parts of it are missing, damaged, or of another version. The
    /// streams are only read, and damage in them only found, later.
    pub fn open(directory: impl AsRef<Path>) -> Result<Self, TraceError> {
        let directory = directory.as_ref().to_owned();
        let mut manifest = Manifest::read(&directory)?;
        let modules = match manifest.state {
            State::Complete => {
                let path = directory.join(files::SEALED_MODULES);
                raw::modules(&chunks::read_all(&path)?, &path, false)?
            }
            State::Recording => {
                read_raw(&directory, &mut manifest)?;
                raw_modules(&directory)?
            }
        };
        let mut functions: Vec<(u32, u32, ModuleId)> = modules
            .iter()
            .zip(0u32..)
            .map(|(module, id)| (module.base, module.functions.len() as u32, ModuleId(id)))
            .collect();
        functions.sort_unstable();
        Ok(Self { directory, manifest, modules, functions: functions.into() })
    }

    /// The directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// What was run, and how it ended.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Was the trace sealed? When not, the recorder was killed, or is still at work; what the
    /// program wrote until then is there all the same.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        self.manifest.state == State::Complete
    }

    /// The failure; none for a passing run.
    #[must_use]
    pub fn failure(&self) -> Option<&Failure> {
        self.manifest.failure.as_ref()
    }

    /// The instrumented modules in the order in which they registered; [`ModuleId`] counts them.
    #[must_use]
    pub fn modules(&self) -> &[Module] {
        &self.modules
    }

    /// The threads in serial order.
    #[must_use]
    pub fn threads(&self) -> &[Thread] {
        &self.manifest.threads
    }

    /// The uncompressed bitcode of a module, exactly what was lowered to machine code.
    ///
    /// # Errors
    ///
    /// When the file is missing, or is not the bitcode with the module's hash.
    pub fn module_bitcode(&self, module: ModuleId) -> Result<Vec<u8>, TraceError> {
        let Some(record) = self.modules.get(module.0 as usize) else {
            let path = self.directory.join(files::SEALED_MODULES);
            return Err(TraceError::malformed(&path, 0, format!("there is no module {module}")));
        };
        let path = self.directory.join(files::IR).join(bitcode_file_name(record.hash));
        let compressed =
            fs_err::read(&path).map_err(|error| TraceError::io("read", &path, 0, error))?;
        match zstd::stream::decode_all(compressed.as_slice()) {
            Ok(bitcode) if bitcode_hash(&bitcode) == record.hash => Ok(bitcode),
            _ => Err(TraceError::Checksum { path, offset: 0 }),
        }
    }

    /// Did a scheduler decide who runs?
    #[must_use]
    pub fn is_scheduled(&self) -> bool {
        self.manifest.turns.is_some() || self.directory.join(files::ORDER).exists()
    }

    /// The turns that the threads of a scheduled run took, in order; none when the threads ran
    /// freely. The last turn of the run is usually not among them, see [`OrderRecord`].
    ///
    /// # Errors
    ///
    /// When the file is missing or damaged.
    pub fn order(&self) -> Result<Option<Vec<OrderRecord>>, TraceError> {
        if !self.is_sealed() {
            return order::read_raw(&self.directory.join(files::ORDER));
        }
        let path = self.directory.join(files::SEALED_ORDER);
        self.manifest.turns.map(|count| order::read_sealed(&path, count)).transpose()
    }

    /// Reads a thread's path stream from its beginning.
    ///
    /// # Errors
    ///
    /// When the file is missing or its beginning is damaged.
    pub fn path(&self, thread: &Thread) -> Result<PathReader, TraceError> {
        self.stream_files().path(thread)
    }

    /// Reads a thread's values stream from its beginning.
    ///
    /// # Errors
    ///
    /// As for [`Self::path`].
    pub fn values(&self, thread: &Thread) -> Result<ValueReader, TraceError> {
        self.stream_files().values(thread)
    }

    /// A thread's whole path stream: entries as [`tag`](crate::layout::tag) describes them.
    ///
    /// # Errors
    ///
    /// When the file is missing or damaged.
    pub fn path_entries(&self, thread: &Thread) -> Result<Vec<u32>, TraceError> {
        self.path_entries_until(thread, u64::MAX)
    }

    /// As [`Self::path_entries`], of the stream's first `bytes` bytes.
    ///
    /// # Errors
    ///
    /// When the file is missing or damaged.
    pub fn path_entries_until(&self, thread: &Thread, bytes: u64) -> Result<Vec<u32>, TraceError> {
        let mut reader = self.path(thread)?;
        let mut entries = Vec::new();
        while reader.next_piece(bytes, &mut entries)? {}
        Ok(entries)
    }

    /// A thread's whole values stream.
    ///
    /// # Errors
    ///
    /// When the file is missing or damaged.
    pub fn value_bytes(&self, thread: &Thread) -> Result<Vec<u8>, TraceError> {
        let mut reader = self.values(thread)?;
        let mut bytes = Vec::new();
        while reader.next_piece(&mut bytes)? {}
        Ok(bytes)
    }

    /// A thread's whole values stream, when it holds nothing but words; a rest is left out.
    ///
    /// # Errors
    ///
    /// When the file is missing or damaged.
    pub fn value_words(&self, thread: &Thread) -> Result<Vec<u64>, TraceError> {
        let mut reader = self.values(thread)?;
        let mut words = Vec::new();
        while let Some(word) = reader.word()? {
            words.push(word);
        }
        Ok(words)
    }

    /// The last 64 KiB of the program's standard output; empty when it was not kept.
    #[must_use]
    pub fn stdout_tail(&self) -> Vec<u8> {
        fs_err::read(self.directory.join(files::STDOUT_TAIL)).unwrap_or_default()
    }

    /// The last 64 KiB of the program's standard error; empty when it was not kept.
    #[must_use]
    pub fn stderr_tail(&self) -> Vec<u8> {
        fs_err::read(self.directory.join(files::STDERR_TAIL)).unwrap_or_default()
    }

    pub(crate) fn stream_files(&self) -> StreamFiles {
        StreamFiles {
            directory: self.directory.join(files::THREADS),
            sealed: self.is_sealed(),
            functions: Arc::clone(&self.functions),
        }
    }
}

/// Where the threads' streams are.
#[derive(Debug)]
pub(crate) struct StreamFiles {
    directory: PathBuf,
    sealed: bool,
    functions: Arc<[(u32, u32, ModuleId)]>,
}

impl StreamFiles {
    pub(crate) fn path(&self, thread: &Thread) -> Result<PathReader, TraceError> {
        let source = self.source(thread, StreamKind::Path, thread.path_bytes)?;
        Ok(PathReader::new(source, Arc::clone(&self.functions)))
    }

    pub(crate) fn values(&self, thread: &Thread) -> Result<ValueReader, TraceError> {
        self.source(thread, StreamKind::Values, thread.value_bytes).map(ValueReader::new)
    }

    fn source(
        &self,
        thread: &Thread,
        stream: StreamKind,
        length: u64,
    ) -> Result<Source, TraceError> {
        let (name, kind) = (&thread.file, stream.extension());
        if self.sealed {
            return Source::sealed(self.directory.join(format!("{name}.{kind}.z")));
        }
        let extent = raw::extent_of(&self.directory.join(format!("{name}.ctl")), stream)?;
        Source::raw(self.directory.join(format!("{name}.{kind}")), extent, length)
    }
}

/// The modules of a trace that is not sealed; none when the program did not get that far.
fn raw_modules(directory: &Path) -> Result<Vec<Module>, TraceError> {
    let path = directory.join(files::MODULES);
    match fs_err::read(&path) {
        Ok(bytes) => raw::modules(&bytes, &path, true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(TraceError::io("read", &path, 0, error)),
    }
}
