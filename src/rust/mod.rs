//! Programs in Rust: `symbiosis rustc` is rustc's command line, and `symbiosis cargo` is cargo's, with a wrapper of
//! rustc.
//!
//! rustc joins the program, the crates that it uses and the standard library in one module of bitcode, by link-time
//! optimisation: the library comes with its bitcode. The linker that rustc then calls is this program: it
//! instruments the module, links it in the place of rustc's object, and adds the runtime as `symbiosis cc` does.
//!
//! So a whole program is seen into, its standard library included, whose locks are known for what they are
//! (`instrument::rust`). Build scripts and procedural macros run in the compiler and stay as they are.

mod arguments;
mod error;

pub use error::RustError;

use crate::cc::{self, CcError};
use crate::said::warn;
use arguments::{Compilation, Kind};
use instrument::OptLevel;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Under this name the program is the linker that rustc calls.
pub const LINKER: &str = "symbiosis-rust-link";
/// Under this name it stands before rustc for cargo (`RUSTC_WRAPPER`).
pub const WRAPPER: &str = "symbiosis-rustc";
/// Tells the linker where the bitcode is.
const BITCODE_VARIABLE: &str = "SYMBIOSIS_RUST_BITCODE";
/// Tells it how hard the code generator works.
const LEVEL_VARIABLE: &str = "SYMBIOSIS_RUST_LEVEL";
/// How the objects end that rustc made of a crate's own code.
const OBJECT: &str = ".rcgu.o";

/// `symbiosis rustc ARGUMENTS`. Returns the exit status for the process.
///
/// # Errors
/// When rustc cannot be run; what it has to say about the program goes through untouched.
pub fn rustc(args: &[OsString]) -> Result<u8, RustError> {
    let program = std::env::var_os("RUSTC").filter(|name| !name.is_empty());
    compile(&program.unwrap_or_else(|| "rustc".into()), args)
}

/// As `RUSTC_WRAPPER`: the first argument is rustc.
///
/// # Errors
/// As for [`rustc`].
pub fn wrapper(args: &[OsString]) -> Result<u8, RustError> {
    let Some((program, args)) = args.split_first() else {
        return Err(RustError::NoCompiler);
    };
    compile(program, args)
}

/// `symbiosis cargo ARGUMENTS`: cargo with [`WRAPPER`], in a target directory of its own.
///
/// # Errors
/// When cargo cannot be run.
pub fn cargo(args: &[OsString]) -> Result<u8, RustError> {
    let program = std::env::var_os("CARGO").filter(|name| !name.is_empty());
    let program = program.unwrap_or_else(|| "cargo".into());
    let links = Links::new(WRAPPER)?;
    let mut command = Command::new(&program);
    command.args(args).env("RUSTC_WRAPPER", &links.path).env("CARGO_INCREMENTAL", "0");
    let chosen = args.iter().any(|arg| {
        arg.to_str().is_some_and(|arg| arg == "--target-dir" || arg.starts_with("--target-dir="))
    });
    if std::env::var_os("CARGO_TARGET_DIR").is_none()
        && !chosen
        && let Some(root) = workspace(&program)
    {
        command.env("CARGO_TARGET_DIR", root.join("target").join("symbiosis"));
    }
    run(command, &program)
}

/// The directory of the workspace that cargo is in, if it is in one.
fn workspace(cargo: &OsStr) -> Option<PathBuf> {
    let arguments = ["locate-project", "--workspace", "--message-format", "plain"];
    let output = Command::new(cargo).args(arguments).output().ok()?;
    let manifest = String::from_utf8(output.stdout).ok()?;
    let directory = Path::new(manifest.trim_end()).parent()?.to_owned();
    (output.status.success() && directory.is_absolute()).then_some(directory)
}

/// A link to this program under another name, in a directory that goes when it is dropped.
struct Links {
    path: PathBuf,
    _directory: tempfile::TempDir,
}

impl Links {
    fn new(name: &str) -> Result<Self, RustError> {
        let own = std::env::current_exe().map_err(RustError::Temporary)?;
        let directory = tempfile::Builder::new()
            .prefix("symbiosis-rust-")
            .tempdir()
            .map_err(RustError::Temporary)?;
        let path = directory.path().join(name);
        std::os::unix::fs::symlink(own, &path).map_err(RustError::Temporary)?;
        Ok(Self { path, _directory: directory })
    }
}

fn run(mut command: Command, program: &OsStr) -> Result<u8, RustError> {
    let status =
        command.status().map_err(|source| RustError::Spawn { program: program.into(), source })?;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

/// One call of rustc.
fn compile(rustc: &OsStr, args: &[OsString]) -> Result<u8, RustError> {
    let compilation = Compilation::parse(args);
    let mut command = Command::new(rustc);
    if compilation.kind == Kind::Other {
        command.args(args);
        return run(command, rustc);
    }
    if let Some(kind) = compilation.unseen() {
        warn(format_args!("a {kind} is not instrumented: what it does is not seen"));
    }
    command.args(compilation.arguments());
    if compilation.kind == Kind::Library {
        return run(command, rustc);
    }
    let links = Links::new(LINKER)?;
    let bitcode = links.path.with_file_name("program.bc");
    let mut linker = OsString::from("-Clinker=");
    linker.push(&links.path);
    let mut emit = OsString::from("--emit=llvm-bc=");
    emit.push(&bitcode);
    command.args([linker, emit]);
    command.env(BITCODE_VARIABLE, &bitcode).env(LEVEL_VARIABLE, &compilation.level);
    run(command, rustc)
}

/// As rustc's linker: the program's object is instrumented, and the rest is the work of `symbiosis cc`.
///
/// # Errors
/// When the bitcode is not where it should be, or cannot be instrumented.
pub fn link(args: &[OsString], archive: cc::ArchiveSource<'_>) -> Result<u8, RustError> {
    let Some(bitcode) = std::env::var_os(BITCODE_VARIABLE).map(PathBuf::from) else {
        return Err(RustError::NoBitcode);
    };
    let mut args = cc::expanded(args).map_err(RustError::Link)?;
    let is_object = |arg: &OsString| arg.as_encoded_bytes().ends_with(OBJECT.as_bytes());
    let Some(object) = args.iter_mut().find(|arg| is_object(arg)) else {
        return Err(RustError::NoObject);
    };
    let bytes = fs_err::read(&bitcode).map_err(RustError::Bitcode)?;
    let options = instrument::Options { level: level(), ..Default::default() };
    let instrumented = instrument::instrument(&bytes, &options).map_err(|source| {
        RustError::Link(CcError::Instrument { path: PathBuf::from(&*object), source })
    })?;
    let path = bitcode.with_extension("o");
    fs_err::write(&path, instrumented).map_err(RustError::Bitcode)?;
    *object = path.into();
    // The runtime is an archive of Rust, with what rustc's own support code consists of: of two that are alike
    // the program's comes first.
    args.push("-Wl,-z,muldefs".into());
    cc::run(false, &args, archive).map_err(RustError::Link)
}

fn level() -> OptLevel {
    match std::env::var(LEVEL_VARIABLE).as_deref() {
        Ok("1") => OptLevel::Less,
        Ok("3") => OptLevel::Aggressive,
        _ => OptLevel::Default,
    }
}
