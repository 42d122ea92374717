//! encoders
