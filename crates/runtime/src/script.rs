//! The schedule to follow, parsed from its text (docs/schedule-format.md).

use crate::layout::site_hash;

/// Where a turn ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// At a passage of a site.
    Site {
        /// [`site_hash`] of its name.
        hash: u64,
        /// The thread's so-manieth passage, from 1.
        occurrence: u64,
    },
    /// `$`: the thread's end.
    End,
    /// `!`: the process's end by its failure.
    Failure,
}

/// A turn of the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Its line in the text, from 1.
    pub line: u32,
    /// [`thread_hash`] of the thread's name.
    pub thread: u64,
    /// Where it ends.
    pub target: Target,
    /// `+`: at the first scheduling point behind the target rather than before it.
    pub past: bool,
}

/// A place that is announced when it is passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Its number.
    pub number: u64,
    /// [`thread_hash`] of the thread's name.
    pub thread: u64,
    /// [`site_hash`] of the site's name.
    pub hash: u64,
    /// The thread's so-manieth passage, from 1.
    pub occurrence: u64,
}

/// A schedule.
pub struct Script(());

impl Script {
    /// The turns in order.
    #[must_use]
    pub fn turns(&self) -> &[Turn] {
        &[]
    }

    /// The places to announce.
    #[must_use]
    pub fn marks(&self) -> &[Mark] {
        &[]
    }

    /// `end hold`.
    #[must_use]
    pub fn hold_at_end(&self) -> bool {
        false
    }

    /// The name of a site that the schedule mentions, for messages; else empty.
    #[must_use]
    pub fn site_text(&self, _hash: u64) -> &[u8] {
        b""
    }

    /// Is this a site that the schedule mentions?
    #[must_use]
    pub fn is_anchor(&self, _hash: u64) -> bool {
        false
    }

    /// How many lines the text has.
    #[must_use]
    pub fn lines(&self) -> u32 {
        0
    }
}

/// The number that stands for a thread's name.
#[must_use]
pub const fn thread_hash(name: &[u8]) -> u64 {
    site_hash(name)
}
