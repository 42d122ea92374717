//! Builds and runs instrumented programs, and decodes what they recorded.

pub mod decode;
pub mod recording;

use recording::Recording;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program of some source files, each compiled to its own module.
pub struct Program<'a> {
    pub sources: &'a [(&'a str, &'a str)],
    /// For clang, on the way to bitcode.
    pub flags: &'a [&'a str],
    pub level: instrument::OptLevel,
    /// Whether its gates are open.
    pub open: bool,
}

/// What a run left.
pub struct Run {
    pub recording: Recording,
    pub bitcode: Vec<Vec<u8>>,
    pub output: String,
}

impl Program<'_> {
    /// Compiles, instruments, links with the stand-in runtime, and runs.
    pub fn run(&self) -> Run {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let directory = directory.path();
        let mut bitcode = Vec::new();
        let mut objects = Vec::new();
        for (name, text) in self.sources {
            let source = directory.join(name);
            std::fs::write(&source, text).expect("the source is written");
            let module = compile(&source, self.flags);
            let options = instrument::Options { level: self.level, verify: true, witness: false };
            let object = instrument::instrument(&module, &options).expect("instruments");
            let path = source.with_extension("o");
            std::fs::write(&path, object).expect("the object is written");
            bitcode.push(module);
            objects.push(path);
        }
        let program = link(directory, &objects);
        let saved = directory.join("recording");
        assert!(program.is_file());
        let mut command = Command::new("./program");
        command.current_dir(directory).env("MOCK_OUTPUT", &saved);
        if self.open {
            command.env("MOCK_GATES", "1");
        }
        let output = command.output().expect("the program runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{}: {text}", output.status);
        let recording = Recording::read(&std::fs::read(&saved).expect("a recording"));
        Run { recording, bitcode, output: text }
    }
}

/// Compiles a source to bitcode.
pub fn compile(source: &Path, flags: &[&str]) -> Vec<u8> {
    let is_c = source.extension().is_some_and(|extension| extension == "c");
    let output = source.with_extension("bc");
    run(Command::new(if is_c { "clang" } else { "clang++" })
        .args(["-c", "-emit-llvm", "-g", "-fno-vectorize", "-fno-slp-vectorize"])
        .args(flags)
        .arg(source)
        .arg("-o")
        .arg(&output));
    std::fs::read(&output).expect("bitcode")
}

fn link(directory: &Path, objects: &[PathBuf]) -> PathBuf {
    let runtime = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/runtime.c");
    let object = directory.join("mock-runtime.o");
    run(Command::new("clang").args(["-c", "-O1"]).arg(runtime).arg("-o").arg(&object));
    let program = directory.join("program");
    run(Command::new("clang++")
        .args(objects)
        .arg(object)
        .args(["-pthread", "-lm", "-o"])
        .arg(&program));
    program
}

fn run(command: &mut Command) {
    let output = command.output().expect("the command starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
}
