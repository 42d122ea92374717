//! The pipeline behind the `symbiosis` command: it joins the stages, each of which is a crate.

pub mod cli;
