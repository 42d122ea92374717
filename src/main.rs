//! The `symbiosis` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    symbiosis::cli::main()
}
