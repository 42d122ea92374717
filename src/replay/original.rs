//! The recorded run, as far as attempts are compared with it. What takes time to load is loaded
//! once, when it is first asked for.

use crate::pipeline;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use symex::{Execution, Recording};
use trace_format::{Manifest, Trace};

/// The recorded run.
#[derive(Debug)]
pub struct Original {
    directory: PathBuf,
    manifest: Manifest,
    trace: OnceLock<Option<Trace>>,
    execution: OnceLock<Option<Execution>>,
}

impl Original {
    pub(super) fn new(directory: &Path, manifest: &Manifest) -> Arc<Self> {
        Arc::new(Self {
            directory: directory.to_owned(),
            manifest: manifest.clone(),
            trace: OnceLock::new(),
            execution: OnceLock::new(),
        })
    }

    /// The trace directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// What was recorded.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The trace; none when it cannot be opened.
    #[must_use]
    pub fn trace(&self) -> Option<&Trace> {
        self.trace.get_or_init(|| Trace::open(&self.directory).ok()).as_ref()
    }

    /// The event trace; none when the streams cannot be executed.
    #[must_use]
    pub fn execution(&self) -> Option<&Execution> {
        self.execution.get_or_init(|| executed(&self.directory)).as_ref()
    }
}

/// Loads and executes a trace; none when that is not possible.
pub(super) fn executed(directory: &Path) -> Option<Execution> {
    execute_with(directory, |_| {})
}

/// As [`executed`], for the failure only: nobody looks at how often places were passed, so rounds of
/// waiting are left out of a scheduled run, too.
pub(super) fn executed_for_failure(directory: &Path) -> Option<Execution> {
    execute_with(directory, |recording| recording.scheduled = false)
}

fn execute_with(directory: &Path, change: impl FnOnce(&mut Recording)) -> Option<Execution> {
    let result = pipeline::load(directory).and_then(|mut loaded| {
        change(&mut loaded.recording);
        pipeline::execute(&loaded.recording)
    });
    result.inspect_err(|error| tracing::info!(%error, "not executed for comparison")).ok()
}
