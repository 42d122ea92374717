//! Tests of the side-effect-free instructions.
