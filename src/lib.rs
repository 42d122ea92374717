//! The pipeline behind the `symbiosis` command: it joins the stages, each of which is a crate.

pub mod answer;
pub mod cc;
pub mod cli;
pub mod compare;
pub mod errors;
pub mod fix;
pub mod pack;
pub mod pipeline;
pub mod record;
pub mod replay;
pub mod runtime_archive;
pub mod rust;
pub mod said;
mod scratch;
pub mod test_case;
pub mod triage;
pub mod verify;
