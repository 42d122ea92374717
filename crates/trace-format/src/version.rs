//! The version of the trace directory's format.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The format that this build writes, and the newest that it reads.
///
/// Changelog:
///
/// * 1.0: the first one. Chunked, checksummed streams; threads, failure and outcome in the
///   manifest.
/// * 1.1: a copy of the executable, `program.zst`; the order of a scheduled run's turns, `order.z`;
///   the manifest says whether a schedule or noise was asked for.
/// * 1.2: readings of the clock in calls that use files ([`CallReading`](crate::layout::RuntimeEvent::CallReading)).
pub const FORMAT_VERSION: FormatVersion = FormatVersion { major: 1, minor: 2 };

/// A format version. A reader understands every format of its own major number whose minor number
/// is not above its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FormatVersion {
    /// Changes when older readers would misread.
    pub major: u32,
    /// Changes when something is added.
    pub minor: u32,
}

impl FormatVersion {
    /// Can a reader of [`FORMAT_VERSION`] read this format?
    #[must_use]
    pub fn is_readable(self) -> bool {
        self.major == FORMAT_VERSION.major && self <= FORMAT_VERSION
    }
}

impl fmt::Display for FormatVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}
