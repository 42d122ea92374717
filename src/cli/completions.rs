//! `symbiosis completions` and `symbiosis man`: what shells and `man` know of the command line.

use super::{Cli, Failure, exit_codes, output};
use clap::CommandFactory as _;
use clap_complete::Shell;
use std::path::PathBuf;

/// Print a script that completes the command line
///
/// For bash: symbiosis completions bash > /etc/bash_completion.d/symbiosis
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Print the manual page, or write one for each command
#[derive(Debug, clap::Args)]
pub struct ManArgs {
    /// Write symbiosis.1, symbiosis-record.1 and so on into this directory
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

/// Prints the script.
///
/// # Errors
/// When standard output cannot be written.
pub fn run(args: &Args) -> Result<u8, Failure> {
    let mut script = Vec::new();
    let mut command = Cli::command();
    let name = command.get_name().to_owned();
    clap_complete::generate(args.shell, &mut command, name, &mut script);
    output::print(&script)?;
    Ok(exit_codes::SUCCESS)
}

/// Prints or writes the manual.
///
/// # Errors
/// When it cannot be written.
pub fn man(args: &ManArgs) -> Result<u8, Failure> {
    let command = Cli::command();
    let unexpected = |error| Failure::new(exit_codes::UNEXPECTED, error);
    if let Some(directory) = &args.output {
        fs_err::create_dir_all(directory).map_err(unexpected)?;
        clap_mangen::generate_to(command, directory).map_err(unexpected)?;
        return Ok(exit_codes::SUCCESS);
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page).map_err(unexpected)?;
    output::print(&page)?;
    Ok(exit_codes::SUCCESS)
}
