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
}

impl Stack {
    /// How many places, from the innermost on, are in headers of installed libraries, called from the
    /// program's own code; 0 where all are.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.0.depth
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
        Arc::ptr_eq(&self.0, &other.0) || self.0.sites == other.0.sites
    }
}

impl Eq for Stack {}

impl From<Vec<Site>> for Stack {
    fn from(sites: Vec<Site>) -> Self {
        let depth = sites.iter().position(|site| !site.is_in_library()).unwrap_or(0);
        Self(Arc::new(Shared { sites: sites.into(), depth }))
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
