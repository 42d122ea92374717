//! The processes of a recording beside the program itself: where they leave their traces, which of
//! them still run, and what is known of them when they do not.
//!
//! Every process that the program starts inherits a variable that names a directory of this
//! recording alone. Instrumented ones make their traces in there; and all of them can be told from
//! other processes by it, whatever became of their parents.

use crate::record::RecordError;
use crate::record::openmp;
use crate::record::time_limit::Ended;
use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use trace_format::layout::CHILDREN_VARIABLE;
use trace_format::{Executable, FailureKind, Manifest, Origin, Outcome, read_origin, read_raw};

/// The directory of the children of one run; it goes with this.
#[derive(Debug)]
pub struct Family {
    root: tempfile::TempDir,
    /// The processes that were there before the run, which none of its own is. Looking at each of them after
    /// every run would take longer than many a run.
    others: BTreeSet<u32>,
}

/// A trace that a process left.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub directory: PathBuf,
    pub origin: Origin,
}

impl Family {
    /// A fresh directory beside a trace directory, on the same file system. To be made before the run begins.
    pub(super) fn beside(trace: &Path) -> Result<Self, RecordError> {
        let parent = trace.parent().unwrap_or(Path::new("/"));
        let root = tempfile::Builder::new().prefix(".symbiosis-").tempdir_in(parent);
        let root =
            root.map_err(|source| RecordError::Create { path: parent.to_owned(), source })?;
        Ok(Self { root, others: processes().collect() })
    }

    pub(super) fn root(&self) -> &Path {
        self.root.path()
    }

    /// The traces that are there, in the order in which they were begun.
    pub(super) fn found(&self) -> Result<Vec<Found>, RecordError> {
        let failed = |source| RecordError::Io { action: "list the traces of children", source };
        let mut found = Vec::new();
        for entry in fs_err::read_dir(self.root()).map_err(failed)? {
            let directory = entry.map_err(failed)?.path();
            if let Some(origin) = read_origin(&directory)? {
                found.push(Found { directory, origin });
            }
        }
        found.sort_by_key(|found| {
            (found.origin.started, found.origin.identity.pid, found.directory.clone())
        });
        Ok(found)
    }

    /// The recorded processes that still run.
    pub(super) fn running(&self) -> Vec<u32> {
        let recorded = self.recorded();
        if recorded.is_empty() {
            return Vec::new();
        }
        recorded.intersection(&self.members()).copied().collect()
    }

    /// The processes that left traces, whether they still run or not.
    fn recorded(&self) -> BTreeSet<u32> {
        let entries = fs_err::read_dir(self.root()).into_iter().flatten();
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        names.filter_map(|name| name.split_once('-')?.0.parse().ok()).collect()
    }

    /// Does any process of the recording still run?
    pub(super) fn is_alive(&self) -> bool {
        !self.members().is_empty()
    }

    /// All processes of the recording that still run, recorded or not.
    fn members(&self) -> BTreeSet<u32> {
        let mut mark = CHILDREN_VARIABLE.as_bytes().to_vec();
        mark.push(b'=');
        mark.extend_from_slice(self.root().as_os_str().as_bytes());
        // An id may have come round again in a long run.
        let recorded = self.recorded();
        let is_other = |pid: &u32| self.others.contains(pid) && !recorded.contains(pid);
        let mut members = BTreeSet::new();
        let mut parents = Vec::new();
        for pid in processes().filter(|pid| !is_other(pid)) {
            // A process that is no more, or of somebody else, is none of ours. One that is only
            // waited for has no environment any more.
            let environment = fs_err::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            if environment.split(|byte| *byte == 0).any(|entry| entry == mark) {
                members.insert(pid);
            } else if let Some(parent) = parent_of(pid) {
                parents.push((pid, parent));
            }
        }
        // What a member started with an environment of its own making belongs here, too.
        loop {
            let before = members.len();
            for (pid, parent) in &parents {
                if members.contains(parent) {
                    members.insert(*pid);
                }
            }
            if members.len() == before {
                return members;
            }
        }
    }

    /// Ends all processes of the recording. Gives those that were recorded.
    pub(super) fn end(&self) -> Vec<u32> {
        /// What is started while others are being ended is found in the next round.
        const ROUNDS: usize = 20;
        let running = self.running();
        for _ in 0..ROUNDS {
            let members = self.members();
            if members.is_empty() {
                break;
            }
            for pid in members {
                // SAFETY: no pointers; the process carries this recording's own mark.
                unsafe { libc::kill(pid as libc::pid_t, libc::SIGKILL) };
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        running
    }
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs_err::read_dir("/proc").into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// The parent of a process that runs.
fn parent_of(pid: u32) -> Option<u32> {
    let text = fs_err::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    (!matches!(state, "Z" | "X")).then_some(parent)
}

impl Found {
    /// The name of the program's file.
    pub(super) fn program(&self) -> String {
        let file = Path::new(&self.origin.executable).file_name();
        file.map_or_else(|| "program".to_owned(), |name| name.to_string_lossy().into_owned())
    }

    /// The manifest of a child, from that of the run.
    pub(super) fn manifest(&self, run: &Manifest, ended: &Ended) -> Manifest {
        let origin = &self.origin;
        let executable = Executable { path: origin.executable.clone(), build_id: None };
        let mut manifest = Manifest::new(
            env!("CARGO_PKG_VERSION"),
            origin.command.clone(),
            origin.directory.clone(),
            executable,
        );
        manifest.started_ms = origin.started / 1_000_000;
        manifest.noise.clone_from(&run.noise);
        manifest.seed = run.seed;
        manifest.common_clock = run.common_clock;
        manifest.openmp = openmp::settings_of(&origin.openmp);
        manifest.process = Some(origin.identity);
        manifest.outcome = origin.exit_status.map(Outcome::Exited);
        if manifest.outcome.is_none() {
            ended.note(origin.identity.pid, &mut manifest);
        }
        let mut seen = manifest.clone();
        if manifest.outcome.is_none() && read_raw(&self.directory, &mut seen).is_ok() {
            let signal = seen.failure.filter(|failure| failure.kind != FailureKind::Exit);
            let signal = signal.and_then(|failure| i32::try_from(failure.code).ok());
            manifest.outcome = signal.filter(|signal| *signal > 0).map(Outcome::Signalled);
        }
        manifest
    }
}
