//! `symbiosis doctor`: what is found, in which version, and what is missing.

use super::{Failure, exit_codes, output};
use std::path::PathBuf;
use std::process::Command;

/// Arguments of `doctor`.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// One line of the report.
struct Finding {
    what: &'static str,
    found: Result<String, Missing>,
}

/// What is lost without it, and how to get it.
struct Missing {
    required: bool,
    message: String,
}

/// Prints a line per tool.
///
/// # Errors
/// When it cannot be printed; a required tool that is missing gives exit code 1.
pub fn run(_args: &Args) -> Result<u8, Failure> {
    let findings = [
        tool("clang", &["SYMBIOSIS_CLANG"], "clang", "--version", Need::Required("clang")),
        tool("clang++", &["SYMBIOSIS_CLANGXX"], "clang++", "--version", Need::Required("clang")),
        llvm(),
        Finding { what: "Z3 (linked)", found: Ok(z3_version()) },
        tool("z3", &[], "z3", "--version", Need::Optional("--solver smtlib:'z3 -in'", "z3")),
        tool("dot", &[], "dot", "-V", Need::Optional("SVG pictures", "graphviz")),
        runtime(),
    ];
    let (mut complete, mut text) = (true, String::new());
    for Finding { what, found } in &findings {
        match found {
            Ok(version) => text.push_str(&format!("found    {what:<14} {version}\n")),
            Err(Missing { required, message }) => {
                complete &= !required;
                let word = if *required { "MISSING" } else { "absent" };
                text.push_str(&format!("{word:<8} {what:<14} {message}\n"));
            }
        }
    }
    output::print(text.as_bytes())?;
    Ok(if complete { exit_codes::SUCCESS } else { exit_codes::UNEXPECTED })
}

enum Need {
    /// Debian package.
    Required(&'static str),
    /// What is lost, Debian package.
    Optional(&'static str, &'static str),
}

fn tool(what: &'static str, variables: &[&str], default: &str, flag: &str, need: Need) -> Finding {
    let program = variables
        .iter()
        .find_map(std::env::var_os)
        .map_or_else(|| PathBuf::from(default), PathBuf::from);
    let found = Command::new(&program).arg(flag).output().ok().filter(|out| out.status.success());
    let found = match (found, need) {
        (Some(out), _) => {
            // `dot -V` answers on stderr.
            let text = if out.stdout.is_empty() { out.stderr } else { out.stdout };
            let text = String::from_utf8_lossy(&text);
            Ok(text.lines().next().unwrap_or_default().trim().to_owned())
        }
        (None, Need::Required(package)) => Err(Missing {
            required: true,
            message: format!(
                "`{}` does not run; install the Debian package {package}",
                program.display()
            ),
        }),
        (None, Need::Optional(lost, package)) => Err(Missing {
            required: false,
            message: format!("needed for {lost}; Debian package {package}"),
        }),
    };
    Finding { what, found }
}

fn llvm() -> Finding {
    let found = match llvm::Llvm::load() {
        Ok(llvm) => Ok(format!("{} at {}", llvm.version(), llvm.path().display())),
        Err(error) => Err(Missing { required: true, message: error.to_string() }),
    };
    Finding { what: "LLVM library", found }
}

fn z3_version() -> String {
    solver::z3_version()
}

fn runtime() -> Finding {
    let found = match crate::runtime_archive::materialise() {
        Ok(path) => Ok(path.display().to_string()),
        Err(error) => Err(Missing {
            required: true,
            message: format!("cannot be written to the cache directory: {error}"),
        }),
    };
    Finding { what: "runtime", found }
}
