//! What the floating-point instructions share.

use model::FloatFormat;

/// The format of a float of this width. Half, bfloat, x87 and quad have none: values of these
/// types are only moved around.
pub(crate) fn format_of(width: u32) -> Option<FloatFormat> {
    match width {
        32 => Some(FloatFormat::Single),
        64 => Some(FloatFormat::Double),
        _ => None,
    }
}
