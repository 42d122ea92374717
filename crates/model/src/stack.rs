//! Call stacks of events.

use crate::event::Site;
use std::ops::Deref;
use std::sync::Arc;

/// Where in the source something happens, innermost frame first, with inlined calls as frames of their own. Shared:
/// a copy is as cheap as a pointer's.
#[derive(Clone, Debug)]
pub struct Stack(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    sites: Box<[Site]>,
    /// How many of the sites, from the innermost on, are in libraries; 0 where all are.
    depth: usize,
    interruption: Option<Interruption>,
}

/// Where a signal's handler interrupted its thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interruption {
    /// The signal's number.
    pub signal: u32,
    /// The function of a library in which it came, where it came in one.
    pub inside: Option<String>,
    /// How many sites, from the outermost on, are what was interrupted.
    pub outer: usize,
}

impl Stack {
    /// How many places, from the innermost on, are in headers of installed libraries, called from the
    /// program's own code; 0 where all are.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.0.depth
    }

    /// Where the innermost handler of a signal that this is in interrupted the thread; `None` in no handler.
    #[must_use]
    pub fn interruption(&self) -> Option<&Interruption> {
        self.0.interruption.as_ref()
    }

    /// What that handler interrupted, innermost first; empty in no handler.
    #[must_use]
    pub fn interrupted(&self) -> &[Site] {
        let outer = self.interruption().map_or(0, |interruption| interruption.outer);
        &self.0.sites[self.0.sites.len().saturating_sub(outer)..]
    }

    /// The same in a handler of a signal.
    #[must_use]
    pub fn in_handler(&self, interruption: Interruption) -> Self {
        Self::new(self.0.sites.to_vec(), Some(interruption))
    }

    /// The same without so many of its innermost sites.
    #[must_use]
    pub fn without_innermost(&self, sites: usize) -> Self {
        let left = self.0.sites.get(sites..).unwrap_or_default();
        let interruption = self.0.interruption.clone();
        Self::new(left.to_vec(), interruption.filter(|it| it.outer < left.len()))
    }

    fn new(sites: Vec<Site>, interruption: Option<Interruption>) -> Self {
        let depth = sites.iter().position(|site| !site.is_in_library()).unwrap_or(0);
        Self(Arc::new(Shared { sites: sites.into(), depth, interruption }))
    }

    /// A number that no other stack has while this one or a copy of it exists.
    #[must_use]
    pub fn identity(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }
}

impl Deref for Stack {
    type Target = [Site];

    fn deref(&self) -> &[Site] {
        &self.0.sites
    }
}

impl PartialEq for Stack {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || self.0.sites == other.0.sites && self.0.interruption == other.0.interruption
    }
}

impl Eq for Stack {}

impl From<Vec<Site>> for Stack {
    fn from(sites: Vec<Site>) -> Self {
        Self::new(sites, None)
    }
}

impl From<&[Site]> for Stack {
    fn from(sites: &[Site]) -> Self {
        Self::from(sites.to_vec())
    }
}

impl<const N: usize> From<[Site; N]> for Stack {
    fn from(sites: [Site; N]) -> Self {
        Self::from(Vec::from(sites))
    }
}

impl Default for Stack {
    fn default() -> Self {
        Self::from(Vec::new())
    }
}
