//! Which of many failures are the same bug? Each trace is solved by a process of its own, so that one that
//! breaks or takes too long leaves the others alone, and the answers are grouped by the fingerprints of
//! their causes. The format of the outcome is that of `docs/triage.md`.

mod find;
mod group;
mod junit;
mod known;
mod process;
mod repairs;
mod solve;
mod text;

pub use find::traces;
pub use group::Groups;
pub use known::Known;
pub use repairs::add_repairs;
pub use solve::{Options, Outcome, solve_all};

use render::solution::Replay;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// The value of [`Triage::format`].
pub const FORMAT: &str = "symbiosis-triage";
/// The version of the format. Fields are added under the same major number.
pub const VERSION: &str = "1.1";

/// Why nothing could be triaged.
#[derive(Debug, Error)]
pub enum TriageError {
    /// A place that was given does not exist, or is a file.
    #[error("{} is no directory: give trace directories, or directories that hold some", .0.display())]
    NoDirectory(PathBuf),
    /// A directory's entries cannot be read.
    #[error("cannot look for traces in {}", path.display())]
    List {
        /// The directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The list of known causes cannot be read.
    #[error("cannot read the known causes")]
    Known(#[source] io::Error),
    /// The list of known causes is JSON, but not the outcome of an earlier triage.
    #[error(
        "{}: neither the JSON of an earlier `symbiosis triage` nor a list of fingerprints: {why}",
        path.display()
    )]
    NotKnown {
        /// The file.
        path: PathBuf,
        /// Line and reason.
        why: String,
    },
    /// No process could be started.
    #[error("cannot run symbiosis to solve a trace")]
    Start(#[source] io::Error),
    /// A report cannot be made.
    #[error("cannot write the report as {0}")]
    Report(&'static str, #[source] Box<dyn std::error::Error + Send + Sync>),
}

/// What became of a number of traces.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Triage {
    /// [`FORMAT`].
    pub format: String,
    /// [`VERSION`].
    pub version: String,
    /// The failures, by their causes; those that most traces have first.
    pub groups: Vec<Group>,
    /// Traces of which nothing could be said.
    pub unsolved: Vec<Unsolved>,
    /// Traces of runs that passed.
    pub passed: Vec<Member>,
    /// Causes that were known and did not come up; empty where no known ones were given.
    #[serde(default)]
    pub absent: Vec<KnownCause>,
}

/// Failures of one cause.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// Was the cause known before? None where no known ones were given.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub state: Option<State>,
    /// The fingerprint of the cause; none where no cause was found, and the traces have no more in common
    /// than where and how they failed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub fingerprint: Option<String>,
    /// The cause's family, as in the answer's `cause.pattern`; empty where no cause was found.
    #[serde(default)]
    pub pattern: String,
    /// The sentence about the cause in the trace that comes first; empty where no cause was found.
    #[serde(default)]
    pub cause: String,
    /// What the cause is about: the last members of its variables, sorted.
    #[serde(default)]
    pub variables: Vec<String>,
    /// The functions that the events of the cause are in, with the names of their files, sorted.
    #[serde(default)]
    pub functions: Vec<String>,
    /// The number, from 1, of what may be one bug that is told in several ways; none where no cause was found.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub bug: Option<usize>,
    /// The kind and the place of the failure in the trace that comes first.
    pub failure: String,
    /// The message of the failure in the trace that comes first.
    #[serde(default)]
    pub message: String,
    /// Why there is no more to say; empty where there is nothing to add.
    #[serde(default)]
    pub reason: String,
    /// What to change, in steps: the first repair that was found for the trace that comes first, and passed its
    /// checks. Empty where none was found, or looked for.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub repair: Vec<String>,
    /// The traces; the one that says most comes first.
    pub traces: Vec<Member>,
    /// Numbers, from 1, of other groups that may be the same bug: their causes are about the same variables, or have two of
    /// the place of the failure, a variable and a function in common; or they fail at the same place, and one has no cause.
    #[serde(default)]
    pub related: Vec<usize>,
    /// The file with the answer about the trace that comes first, as long as this process runs.
    #[serde(skip)]
    pub answer: PathBuf,
}

/// Was a cause known before?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It is among the known causes that were given.
    Known,
    /// It is not.
    New,
}

/// A trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// The directory.
    pub trace: String,
    /// The recorded command, its words separated by spaces.
    #[serde(default)]
    pub command: String,
    /// The name of the program, without the directories that lead there; empty where it is not known.
    #[serde(skip)]
    pub program: String,
    /// How long the recorded run took, in milliseconds; none where that is not known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub duration_ms: Option<u64>,
    /// What is known of the failing schedule from replay.
    #[serde(default)]
    pub replay: Replay,
}

/// A trace of which nothing could be said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unsolved {
    /// The trace.
    #[serde(flatten)]
    pub member: Member,
    /// The exit code of `symbiosis solve` (`docs/exit-codes.md`); none where it was ended or crashed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub code: Option<u8>,
    /// What it said.
    pub reason: String,
}

/// A cause that was known before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownCause {
    /// Its fingerprint.
    pub fingerprint: String,
    /// What the list says of it.
    pub note: String,
}

impl Triage {
    /// How many traces failed.
    #[must_use]
    pub fn failures(&self) -> usize {
        self.groups.iter().map(|group| group.traces.len()).sum::<usize>() + self.unsolved.len()
    }

    /// Are there failures whose cause is not among the known ones?
    #[must_use]
    pub fn has_new(&self) -> bool {
        self.groups.iter().any(|group| group.state == Some(State::New))
    }
}
