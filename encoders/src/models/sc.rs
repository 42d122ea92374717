//! Sequential consistency ([S] 3.2: "statements in a thread execute in program order").

use model::{EventId, Thread};

/// Program order as a chain.
pub(super) fn preserved(thread: &Thread) -> Vec<(EventId, EventId)> {
    thread.events.windows(2).map(|pair| (pair[0], pair[1])).collect()
}
