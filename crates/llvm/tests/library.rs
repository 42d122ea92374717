//! The loaded library, end to end: parse, verify, pass, emit, and refuse.

use llvm::llvm_sys::target_machine::{
    LLVMCodeGenFileType, LLVMCodeGenOptLevel, LLVMCodeModel, LLVMRelocMode,
};
use llvm::{Context, Llvm, LlvmError, LoadError, PassOptions, TargetMachine, TargetOptions};

const TEXT: &[u8] = br#"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
@g = global i32 7
declare void @out(i32)
define i32 @main() {
  %v = load i32, ptr @g
  %w = add i32 %v, 0
  call void @out(i32 %w)
  ret i32 %w
}
"#;

fn llvm() -> &'static Llvm {
    Llvm::load().expect("an LLVM")
}

#[test]
fn finds_a_library_that_is_new_enough() {
    assert!(llvm().version().major >= llvm::OLDEST_VERSION, "{:?}", llvm());
    assert!(llvm().path().is_file());
}

#[test]
fn text_and_bitcode_give_the_same_module() {
    let context = Context::new(llvm());
    let module = context.parse_ir(TEXT).expect("valid");
    module.verify().expect("valid");
    let again = context.parse_bitcode(&module.write_bitcode()).expect("valid");
    let body = |text: &str| text.split_once("target datalayout").map(|(_, rest)| rest.to_owned());
    assert_eq!(body(&module.print()), body(&again.print()));
    // SAFETY: the functions are alive.
    let names: Vec<String> =
        again.functions().map(|function| unsafe { llvm().value_name(function) }).collect();
    assert_eq!(names, ["out", "main"]);
    assert_eq!(again.globals().count(), 1);
}

#[test]
fn a_parse_error_is_an_error_and_not_the_end_of_the_process() {
    let context = Context::new(llvm());
    let garbage = context.parse_bitcode(b"BC\xc0\xdenot really").err();
    assert!(matches!(garbage, Some(LlvmError::Parse(_))), "{garbage:?}");
    let text = context.parse_ir(b"define nonsense").err();
    assert!(matches!(&text, Some(LlvmError::Parse(message)) if message.contains("expected")));
    context.parse_ir(TEXT).expect("the context is still usable");
}

#[test]
fn passes_run_and_machine_code_comes_out() {
    let context = Context::new(llvm());
    let module = context.parse_ir(TEXT).expect("valid");
    let options = TargetOptions {
        triple: "x86_64-pc-linux-gnu".into(),
        cpu: String::new(),
        features: String::new(),
        level: LLVMCodeGenOptLevel::LLVMCodeGenLevelDefault,
        relocation: LLVMRelocMode::LLVMRelocPIC,
        code_model: LLVMCodeModel::LLVMCodeModelDefault,
    };
    let machine = TargetMachine::new(llvm(), &options).expect("x86");
    module.run_passes("instcombine", Some(&machine), PassOptions::default()).expect("runs");
    assert!(!module.print().contains("add i32"));
    let unknown = module.run_passes("no-such-pass", None, PassOptions::default());
    assert!(matches!(unknown, Err(LlvmError::Passes(_))));
    let object = machine.emit(&module, LLVMCodeGenFileType::LLVMObjectFile).expect("machine code");
    assert!(object.starts_with(b"\x7fELF"));
}

#[test]
fn a_library_that_is_not_there_is_a_typed_error() {
    let missing = Llvm::open("/nonexistent/libLLVM.so".as_ref());
    assert!(matches!(missing, Err(LoadError::Open { .. })), "{missing:?}");
}
