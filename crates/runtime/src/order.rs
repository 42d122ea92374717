//! `order.bin`: the turns that were taken.

use crate::layout::OrderRecord;

/// Appends a turn that is over; only the holder of the turn calls this. Does nothing when the run
/// is not recorded.
pub fn append(_record: OrderRecord) {}
