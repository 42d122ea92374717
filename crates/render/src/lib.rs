//! The answer as people and programs see it: one file per output format, each a function of the
//! [`Solution`] alone. Nothing here solves, replays or reads a trace.

pub mod dot;
pub mod held;
pub mod html;
pub mod json;
pub mod lanes;
pub mod mermaid;
pub mod perfetto;
pub mod sarif;
pub mod solution;
pub mod svg;
pub mod text;

#[cfg(test)]
mod testing;

pub use solution::Solution;
