//! Compiles snippets with clang and reads the bitcode.

use ir::types::{Function, InstId, InstKind, Module};
use std::io::Write;
use std::process::{Command, Stdio};

/// Compiles C and reads it.
pub fn c(level: &str, source: &str) -> Module {
    compile(&["clang", "-xc", level], source)
}

/// Compiles C++ and reads it.
pub fn cpp(level: &str, source: &str) -> Module {
    compile(&["clang++", "-xc++", "-std=c++17", level], source)
}

/// Reads LLVM's own text.
pub fn llvm(source: &str) -> Module {
    compile(&["clang", "-xir"], source)
}

fn compile(command: &[&str], source: &str) -> Module {
    let (compiler, options) = command.split_first().expect("a compiler");
    let mut child = Command::new(compiler)
        .args(options)
        .args(["-g", "-fno-vectorize", "-fno-slp-vectorize", "-emit-llvm", "-c", "-o", "-", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("clang is installed");
    child.stdin.take().expect("piped").write_all(source.as_bytes()).expect("clang reads");
    let output = child.wait_with_output().expect("clang ends");
    assert!(output.status.success(), "clang refuses the snippet");
    ir::read_bitcode(&output.stdout).expect("the bitcode is read")
}

/// A function by name.
pub fn function<'m>(module: &'m Module, name: &str) -> &'m Function {
    module.functions.iter().find(|function| function.name == name).expect("the function")
}

/// The instructions that `wanted` picks, in order.
pub fn instructions(function: &Function, wanted: impl Fn(&InstKind) -> bool) -> Vec<InstId> {
    let ids = (0..).map(InstId).zip(&function.instructions);
    ids.filter(|(_, instruction)| wanted(&instruction.kind)).map(|(id, _)| id).collect()
}

/// The loads of a function.
pub fn loads(function: &Function) -> Vec<InstId> {
    instructions(function, |kind| matches!(kind, InstKind::Load { .. }))
}
