//! Running a program and keeping its trace.

mod children;
mod error;
mod fail_at;
mod fail_if;
mod failed;
mod input;
mod interrupts;
mod logged;
mod names;
mod noise;
mod openmp;
mod program;
mod run;
mod stuck;
mod tee;
mod time_limit;
mod words;

pub use children::Family;
pub use error::RecordError;
pub use fail_at::{FailAt, FailAtError};
pub use interrupts::Interrupts;
pub use names::Names;
pub use noise::{Noise, NoiseError, Perturbation, draw_seed};
pub use program::{Instrumented, Program};
pub use run::{Confined, Options, Run, run};
pub use words::ending;

#[cfg(test)]
mod tests;
