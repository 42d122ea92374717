//! `symbiosis test-case`, live: the generated test fails on every buggy fixture and passes on its
//! fixed twin, again and again; and it does so as a part of a CMake project.

use crate::workspace::Workspace;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Runs until a failure has to come up.
const RECORDINGS: &str = "400";
/// How often each verdict has to be the same.
const RUNS: u32 = 20;

fn source(fixture: &str, variant: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/programs").join(fixture);
    let candidates = ["c", "cc"].map(|extension| folder.join(variant).with_extension(extension));
    let found = candidates.iter().find(|path| path.exists());
    found.unwrap_or_else(|| panic!("no {variant} program in {}", folder.display())).clone()
}

/// A fix does not change the file's name, which is a part of the schedule's places, so both variants
/// are compiled from a file of the same name.
fn compile(workspace: &Workspace, fixture: &str, variant: &str) {
    let source = source(fixture, variant);
    let is_cxx = source.extension().is_some_and(|e| e == "cc");
    let (compiler, name) = if is_cxx { ("c++", "program.cc") } else { ("cc", "program.c") };
    fs::copy(source, workspace.path(name)).expect("copied");
    let arguments = [compiler, "-g", "-O1", "-pthread", name, "-o", variant];
    workspace.symbiosis(arguments).expect_code(0);
}

fn describe(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}\n{}\n{}", output.status, text(&output.stdout), text(&output.stderr))
}

fn run(workspace: &Workspace, program: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(workspace.path("")).output().expect("it starts")
}

fn must(workspace: &Workspace, program: &str, arguments: &[&str]) -> String {
    let output = run(workspace, program, arguments);
    assert!(output.status.success(), "{program} {arguments:?}: {}", describe(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Records a failing run of the buggy program and makes a test from it.
fn generate(workspace: &Workspace, fixture: &str) {
    compile(workspace, fixture, "buggy");
    compile(workspace, fixture, "fixed");
    let recording = ["record", "-q", "--until-failure", RECORDINGS, "--timeout", "60"];
    // As the fixture's own annotation asks for.
    let text = fs::read_to_string(source(fixture, "buggy")).expect("the source is there");
    let noise: &[&str] = if text.contains("//~ RARE: noise") { &["--noise"] } else { &[] };
    let program = ["-o", "failing.trace", "--", "./buggy"];
    workspace.symbiosis(recording.iter().chain(noise).chain(&program)).expect_code(0);
    let name = ["--name", fixture];
    workspace
        .symbiosis(["test-case", "failing.trace", "-o", "t"].iter().chain(&name))
        .expect_code(0);
}

/// The test fails on the buggy program and passes on the fixed one, each of many times.
fn check(fixture: &str) {
    let workspace = Workspace::new(&format!("test-case-{fixture}"));
    generate(&workspace, fixture);
    let test = format!("t/{fixture}_test.c");
    for compiler in ["cc", "c++ -x c++"] {
        let mut words: Vec<&str> = compiler.split(' ').collect();
        words.extend(["-Wall", "-Wextra", "-Werror", &test, "-o", "the_test"]);
        must(&workspace, words[0], &words[1..]);
    }
    let program = workspace.path("the_test");
    let program = program.to_str().expect("a path in UTF-8");
    for number in 1..=RUNS {
        let output = run(&workspace, program, &["./buggy"]);
        let text = describe(&output);
        assert_eq!(output.status.code(), Some(1), "run {number} of the buggy {fixture}: {text}");
        assert!(text.contains("FAILED: the bug is still there"), "{fixture}: {text}");
        let output = run(&workspace, program, &["./fixed"]);
        let text = describe(&output);
        assert_eq!(output.status.code(), Some(0), "run {number} of the fixed {fixture}: {text}");
        assert!(text.contains("passed: the schedule"), "{fixture}: {text}");
    }
}

macro_rules! fixtures {
    ($($name:ident)*) => { $(
        #[test]
        fn $name() {
            check(stringify!($name));
        }
    )* };
}

fixtures! {
    airline
    always
    averages
    bank
    cache
    courier
    crasher
    drain
    file_scanner
    lazy_table
    lease
    limits
    publish
    ring
    settings
    stack
    string_buffer
    two_stage
}

/// A folder that nobody lists would be a fixture that nobody tests.
#[test]
fn all_fixtures_are_listed() {
    let this_file = include_str!("test_case.rs");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/programs");
    for entry in fs::read_dir(folder).expect("the fixtures are there") {
        let name = entry.expect("a directory entry").file_name();
        let name = name.to_str().expect("a name in UTF-8");
        // Too long to be solved in a test's time.
        if name == "shards" {
            continue;
        }
        assert!(this_file.contains(&format!("\n    {name}\n")), "{name} is not tested");
    }
}

/// The project of a user: the program is built by `symbiosis-cc`, and ctest runs the test.
#[test]
fn a_cmake_project_is_built_with_symbiosis_cc_and_tested_with_ctest() {
    let workspace = Workspace::new("test-case-cmake");
    generate(&workspace, "bank");
    let link = workspace.path("symbiosis-cc");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_symbiosis"), &link).expect("a link");
    let lists = "cmake_minimum_required(VERSION 3.13)\nproject(user C)\nenable_testing()\n\
                 find_package(Threads REQUIRED)\nadd_executable(the_bank ${BANK}/program.c)\n\
                 target_compile_options(the_bank PRIVATE -g -O1)\n\
                 target_link_libraries(the_bank Threads::Threads)\n\
                 set(bank_TARGET the_bank)\nadd_subdirectory(t)\n";
    fs::write(workspace.path("CMakeLists.txt"), lists).expect("written");
    for variant in ["buggy", "fixed"] {
        fs::remove_file(workspace.path(variant)).expect("the program is not needed any more");
        fs::create_dir(workspace.path(variant)).expect("a folder");
        let copy = workspace.path(&format!("{variant}/program.c"));
        fs::copy(source("bank", variant), copy).expect("copied");
    }
    let compiler = format!("-DCMAKE_C_COMPILER={}", link.display());
    let ctest = |build: &str, variant: &str, compiler: &str| {
        let variant = format!("-DBANK={variant}");
        must(&workspace, "cmake", &["-S", ".", "-B", build, &variant, compiler]);
        must(&workspace, "cmake", &["--build", build]);
        let mut command = Command::new("ctest");
        let command = command.args(["--output-on-failure"]).current_dir(workspace.path(build));
        let output = command.output().expect("ctest starts");
        (output.status.success(), describe(&output))
    };
    let (good, text) = ctest("buggy.build", "buggy", &compiler);
    assert!(!good && text.contains("FAILED: the bug is still there"), "{text}");
    let (good, text) = ctest("fixed.build", "fixed", &compiler);
    assert!(good && text.contains("Passed"), "{text}");
    let (good, text) = ctest("plain.build", "buggy", "-DCMAKE_C_COMPILER=cc");
    assert!(good && text.contains("Skipped"), "{text}");
}
