//! The answer as people and programs see it: one file per output format, each a function of the
//! [`Solution`] alone. Nothing here solves, replays or reads a trace.

pub mod dot;
pub mod html;
pub mod json;
pub mod lanes;
pub mod solution;
pub mod svg;
pub mod text;

#[cfg(test)]
mod testing;

pub use solution::Solution;
