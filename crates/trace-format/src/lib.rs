//! The trace directory: its on-disk layout, and the reader.

pub mod layout;
