//! SVG: the DOT picture laid out by Graphviz, which is found on PATH.

use crate::Solution;
use graphviz_rust::cmd::{CommandArg, Format};
use std::io;
use thiserror::Error;

/// Why there is no SVG.
#[derive(Debug, Error)]
pub enum SvgError {
    /// Graphviz is not installed.
    #[error(
        "cannot lay out the picture: Graphviz's `dot` was not found; install it (Debian package \
         graphviz), or use --format dot"
    )]
    NoGraphviz(#[source] io::Error),
    /// Graphviz failed.
    #[error("Graphviz's `dot` failed")]
    Graphviz(#[source] io::Error),
}

/// The DSP as an SVG document.
///
/// # Errors
/// When `dot` is missing or fails. No other format needs it.
pub fn to_svg(solution: &Solution) -> Result<String, SvgError> {
    let dot = crate::dot::to_dot(solution);
    let bytes =
        graphviz_rust::exec_dot(dot, vec![CommandArg::Format(Format::Svg)]).map_err(|error| {
            match error.kind() {
                io::ErrorKind::NotFound => SvgError::NoGraphviz(error),
                _ => SvgError::Graphviz(error),
            }
        })?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
