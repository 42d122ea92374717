//! Compiles one source to bitcode with the user's clang, and turns the bitcode into an
//! instrumented object in place.

use super::arguments::{Arguments, Input, Item, Mode};
use super::options::{self, InputKind};
use super::toolchain::Clang;
use super::{CcError, header, sanitizers};
use instrument::OptLevel;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::Path;

/// Whether one clang command serves the whole command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// The only source of a `-c` command: every argument goes along.
    Whole,
    /// One source of several, or the compiling half of a command that links as well: other inputs
    /// and what is meant for the linker stay away.
    Part,
}

/// Compiles a source to `output`, instrumented where that is possible, and returns clang's status.
pub fn compile(
    clang: &Clang,
    arguments: &Arguments,
    input: &Input,
    share: Share,
    output: &Path,
) -> Result<u8, CcError> {
    let mut args = match input.kind {
        InputKind::Source => header::options()?,
        _ => Vec::new(),
    };
    args.extend(command(arguments, input, share, output));
    let status = clang.run(&args)?;
    if status == 0 && input.kind != InputKind::Foreign {
        convert(output, Path::new(&input.path), arguments)?;
    }
    Ok(status)
}

/// The clang command for one source.
fn command(arguments: &Arguments, input: &Input, share: Share, output: &Path) -> Vec<OsString> {
    let mut command: Vec<OsString> = Vec::new();
    let bitcode = input.kind != InputKind::Foreign;
    if input.kind == InputKind::Source {
        // These stand first so that what the user says about the same things wins. Contraction
        // would leave it to the processor whether `a * b + c` rounds once or twice.
        command.extend(["-g", "-ffp-contract=off"].map(OsString::from));
    }
    if share == Share::Part {
        command.push("-Qunused-arguments".into());
    }
    for item in &arguments.items {
        match item {
            Item::Option(args) if keeps(item.option(), bitcode, share) => {
                command.extend_from_slice(args);
            }
            Item::Option(_) => {}
            Item::Input(other) if other == input => push_input(&mut command, other),
            Item::Input(other) if share == Share::Whole => push_input(&mut command, other),
            Item::Input(_) => {}
        }
    }
    if input.kind == InputKind::Source {
        command.extend(faithful(arguments.optimisation()).iter().map(OsString::from));
        command.extend(sanitizers::left_out(arguments).map(OsString::from));
    }
    if arguments.mode == Mode::Link {
        command.extend(dependency_names(arguments, input));
    }
    if bitcode {
        command.push("-emit-llvm".into());
    }
    command.extend(["-c".into(), "-o".into(), output.into()]);
    command
}

fn keeps(option: &str, bitcode: bool, share: Share) -> bool {
    !(bitcode && options::is_assembler_only(option)
        || share == Share::Part && options::is_linker_only(option))
}

fn push_input(command: &mut Vec<OsString>, input: &Input) {
    if let Some(language) = &input.language {
        command.extend(["-x".into(), language.clone()]);
    }
    command.push(plain_path(&input.path));
    if input.language.is_some() {
        command.extend(["-x", "none"].map(OsString::from));
    }
}

/// A file name after `--` may begin with a dash; spelt as a path it needs no `--`.
pub fn plain_path(path: &OsStr) -> OsString {
    let mut plain = OsString::new();
    if path.as_encoded_bytes().starts_with(b"-") && path != "-" {
        plain.push("./");
    }
    plain.push(path);
    plain
}

/// What keeps the IR close to the source: the executor does not follow vector code well, a missing
/// return must not become a trap, and unoptimised functions must stay open to hook inlining. The
/// members of a class are to be known in every file that uses them, not only where it is constructed:
/// its objects are named after them. What two branches both do stays in each of them, where it has its lines.
fn faithful(level: &str) -> &'static [&'static str] {
    const ALWAYS: &[&str] = &[
        "-fno-vectorize",
        "-fno-slp-vectorize",
        "-fno-strict-return",
        "-Xclang",
        "-fno-use-ctor-homing",
        "-mllvm",
        "-hoist-common-insts=false",
        "-mllvm",
        "-sink-common-insts=false",
    ];
    const UNOPTIMISED: &[&str] = &[
        "-fno-vectorize",
        "-fno-slp-vectorize",
        "-fno-strict-return",
        "-Xclang",
        "-fno-use-ctor-homing",
        "-Xclang",
        "-disable-O0-optnone",
    ];
    if level == "0" { UNOPTIMISED } else { ALWAYS }
}

/// In a command that links as well, the dependency file and its target are named after the final
/// output; the temporary object must not show.
fn dependency_names(arguments: &Arguments, input: &Input) -> Vec<OsString> {
    const WRITERS: [&str; 4] = ["-MD", "-MMD", "--write-dependencies", "--write-user-dependencies"];
    let mut names = Vec::new();
    if !WRITERS.iter().any(|option| arguments.has(option)) {
        return names;
    }
    if !arguments.has_prefix("-MF") {
        let file = match &arguments.output {
            Some(output) => output.with_extension("d").into(),
            None => input.default_output("d"),
        };
        names.extend(["-MF".into(), file]);
    }
    if !arguments.has_prefix("-MT") && !arguments.has_prefix("-MQ") {
        let target = match &arguments.output {
            Some(output) => output.clone().into(),
            None => input.default_output("o"),
        };
        names.extend(["-MQ".into(), target]);
    }
    names
}

/// Replaces the bitcode in a file by the instrumented object, in one step. A file that holds
/// something else is left as it is. On an error the file is removed, as clang does with its output.
fn convert(path: &Path, source_name: &Path, arguments: &Arguments) -> Result<(), CcError> {
    let bitcode = fs_err::read(path)
        .map_err(|source| CcError::ReadObject { path: path.to_owned(), source })?;
    if !instrument::is_bitcode(&bitcode) {
        return Ok(());
    }
    let options = instrument::Options { level: level(arguments), ..Default::default() };
    let result = instrument::instrument(&bitcode, &options)
        .map_err(|source| CcError::Instrument { path: source_name.to_owned(), source })
        .and_then(|object| {
            replace(path, &object)
                .map_err(|source| CcError::WriteObject { path: path.to_owned(), source })
        });
    if result.is_err() {
        // The error that is being reported matters more than one from here.
        let _ = fs_err::remove_file(path);
    }
    result
}

fn replace(path: &Path, contents: &[u8]) -> std::io::Result<()> {
    let path = fs_err::canonicalize(path)?;
    let permissions = fs_err::metadata(&path)?.permissions();
    let directory = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(".symbiosis-").tempfile_in(directory)?;
    file.write_all(contents)?;
    file.as_file().set_permissions(permissions)?;
    file.persist(&path)?;
    Ok(())
}

fn level(arguments: &Arguments) -> OptLevel {
    match arguments.optimisation() {
        "0" => OptLevel::None,
        "1" | "g" => OptLevel::Less,
        "3" | "4" | "fast" => OptLevel::Aggressive,
        _ => OptLevel::Default,
    }
}
