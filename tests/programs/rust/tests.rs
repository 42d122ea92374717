//! Test binaries of tests/rust.rs: what to run is chosen by the module's name.
#![cfg(test)]

mod flaky;
mod one_of_many;
