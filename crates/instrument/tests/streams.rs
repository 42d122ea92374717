//! What instrumented programs record decodes to exactly the path they took.

mod support;

use instrument::OptLevel;
use ir::gates::gates;
use std::collections::HashMap;
use support::decode::{Decoded, Program as Decoder};
use support::{Program, Run};
use trace_format::layout::site_hash;

const LEVELS: [(&str, OptLevel); 4] = [
    ("-O0", OptLevel::None),
    ("-O1", OptLevel::Less),
    ("-O2", OptLevel::Default),
    ("-O3", OptLevel::Aggressive),
];

/// Runs a program at every level, with closed and with open gates, and checks the streams of all
/// its threads against the marks.
fn check(sources: &[(&str, &str)], flags: &[&str], also: impl Fn(&str, &Run, &[Decoded])) {
    for ((flag, level), open) in LEVELS.into_iter().flat_map(|l| [(l, false), (l, true)]) {
        let mut all = vec![flag];
        all.extend(flags);
        let run = Program { sources, flags: &all, level, open }.run();
        check_gates(flag, &run);
        assert_eq!(run.recording.passed.iter().all(|&passed| passed > 5), open, "{flag}");
        let modules = run.recording.modules.iter().map(|module| {
            let saved = zstd::decode_all(module.bitcode.as_slice()).expect("zstd");
            (module.base, saved)
        });
        let modules: Vec<(u32, Vec<u8>)> = modules.collect();
        for ((_, saved), module) in modules.iter().zip(&run.recording.modules) {
            assert!(run.bitcode.contains(saved), "the saved bitcode is the original");
            assert_eq!(trace_format::bitcode_hash(saved), module.hash);
        }
        let decoder = Decoder::new(modules.iter().map(|(base, saved)| (*base, saved.as_slice())));
        let threads: Vec<Decoded> =
            run.recording.threads.iter().map(|thread| decoder.decode(thread)).collect();
        for (decoded, thread) in threads.iter().zip(&run.recording.threads) {
            assert_eq!(decoded.marks, thread.marks, "{flag}");
        }
        assert!(threads.iter().any(|decoded| decoded.marks.len() > 3), "{flag}: too few marks");
        also(flag, &run, &threads);
    }
}

/// The program has the gates that `ir::gates` says, those of merged functions once; the code
/// generator may copy some, and leaves out what is never reached.
fn check_gates(flag: &str, run: &Run) {
    let mut expected: HashMap<u64, String> = HashMap::new();
    let mut total = 0;
    for bitcode in &run.bitcode {
        let module = ir::read_bitcode(bitcode).expect("reads");
        for function in module.functions.iter().filter(|function| !function.is_declaration()) {
            for gate in gates(&module, function) {
                let known = expected.insert(site_hash(gate.site.as_bytes()), gate.site.clone());
                assert!(known.is_none() || function.mergeable, "{flag}: {}", gate.site);
                total += usize::from(known.is_none());
            }
        }
    }
    let mut found: HashMap<u64, usize> = HashMap::new();
    for site in &run.recording.sites {
        *found.entry(*site).or_default() += 1;
        assert!(expected.contains_key(site), "{flag}: no site has the hash {site:#x}");
    }
    for (hash, name) in &expected {
        assert!(found.contains_key(hash), "{flag}: {name} has no gate");
    }
    assert!(run.recording.sites.len() >= total && total > 10, "{flag}");
    if flag == "-O0" {
        assert_eq!(run.recording.sites.len(), total);
    }
}

#[test]
fn control_flow_in_c() {
    let source = include_str!("programs/control.c");
    check(&[("control.c", source)], &[], |flag, run, threads| {
        let module = &run.recording.modules[0];
        assert_eq!(module.version, trace_format::layout::INSTRUMENTATION_VERSION);
        let entries = &threads[0].entries;
        assert!(entries.iter().any(|name| name == "main"), "{flag}");
        // The comparator is called by qsort alone.
        assert!(entries.iter().filter(|name| *name == "descending").count() > 5, "{flag}");
        assert_eq!(run.output, "12 4 126 3\n");
    });
}

#[test]
fn values_of_every_shape() {
    let source = include_str!("programs/shapes.c");
    check(&[("shapes.c", source)], &[], |_, run, _| assert_eq!(run.output, "ok\n"));
}

#[test]
fn what_the_library_writes() {
    let source = include_str!("programs/effects.c");
    check(&[("effects.c", source)], &[], |flag, _, threads| {
        let wrote = |bytes: &[u8]| threads[0].writes.iter().any(|(_, written)| written == bytes);
        assert!(wrote(b"value 42\0"), "{flag}: snprintf writes its text and the zero");
        assert!(wrote(b"value\0"), "{flag}: a cut text is as long as its room");
        assert!(wrote(b"pipe"), "{flag}: read writes as much as it returns");
        assert!(wrote(&17_u32.to_le_bytes()), "{flag}: sscanf falls back to its objects");
        assert!(wrote(b"set\0"), "{flag}: getenv's text");
        let sorted: Vec<u8> = [1, 2, 3_u32].iter().flat_map(|n| n.to_le_bytes()).collect();
        assert!(wrote(&sorted), "{flag}: qsort writes the array");
        assert!(wrote(b"./program\0"), "{flag}: the program's arguments");
        let tables = threads[0].writes.iter().filter(|(_, written)| written.len() == 768);
        assert_eq!(tables.count(), 1, "{flag}: the character table, once");
        assert!(threads[0].writes.iter().any(|(_, w)| w.len() == 24), "{flag}: va_start");
    });
}

#[test]
fn exceptions_and_templates_in_two_files() {
    let first = include_str!("programs/exceptions.cc");
    let second = include_str!("programs/thrower.cc");
    check(&[("exceptions.cc", first), ("thrower.cc", second)], &[], |flag, run, threads| {
        assert_eq!(run.recording.modules.len(), 2);
        let caught = threads[0].marks.iter().filter(|&&mark| mark == 300).count();
        assert_eq!(caught, 4, "{flag}");
        assert!(threads[0].marks.contains(&701), "{flag}");
        assert_eq!(run.output, "caught 4, cleaned 10\n");
    });
}

#[test]
fn calls_between_two_files() {
    let first = include_str!("programs/caller.c");
    let second = include_str!("programs/callee.c");
    let flags = &["-Wno-deprecated-non-prototype"];
    check(&[("caller.c", first), ("callee.c", second)], flags, |flag, run, threads| {
        assert_eq!(run.output, "1023 1\n");
        let times = |list: &[String], name: &str| list.iter().filter(|it| *it == name).count();
        let entered = |name| times(&threads[0].entries, name);
        let called = |name| times(&threads[0].called, name);
        // The compiler may have put a function of the file in the place of its call.
        for name in ["other", "floats", "both", "mix", "odd", "count", "descend"] {
            assert!(called(name) > 0 && called(name) == entered(name), "{flag}: {name}");
        }
        // Arguments that are copies, other types than the caller thinks, calls from elsewhere.
        for name in ["grow", "typed", "loose", "main", "compare"] {
            assert!(entered(name) > 0 && called(name) == 0, "{flag}: {name}");
        }
        for name in ["here", "stubborn", "third"] {
            assert!(called(name) > 0 && called(name) < entered(name), "{flag}: {name}");
        }
        assert_eq!((entered("stubborn"), called("stubborn")), (6, 3), "{flag}");
        assert_eq!((entered("third"), called("third")), (2, 1), "{flag}");
    });
}

#[test]
fn threads_have_streams_of_their_own() {
    let source = include_str!("programs/threads.c");
    check(&[("threads.c", source)], &["-pthread"], |flag, run, threads| {
        assert_eq!(threads.len(), 4, "{flag}");
        assert_eq!(run.output, "300\n");
    });
}

#[test]
fn addresses_are_those_of_the_program() {
    let source = include_str!("programs/control.c");
    let sources = &[("control.c", source)];
    let run = Program { sources, flags: &["-O1"], level: OptLevel::Less, open: false }.run();
    let module = &run.recording.modules[0];
    let source = ir::read_bitcode(&run.bitcode[0]).expect("reads");
    assert_eq!(module.functions.len(), source.functions.len());
    assert_eq!(module.globals.len(), source.globals.len());
    for (function, &address) in source.functions.iter().zip(&module.functions) {
        assert_eq!(address == 0, function.intrinsic, "{}", function.name);
    }
    let used = source.globals.iter().zip(&module.globals);
    for (global, &address) in used {
        assert_eq!(address == 0, global.thread_local || global.name.starts_with("llvm."));
    }
}

#[test]
fn position_dependent_and_shared_code() {
    let source = include_str!("programs/control.c");
    for flags in [["-fno-pic"], ["-fPIC"]] {
        let mut all = vec!["-O2"];
        all.extend(flags);
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("control.c");
        std::fs::write(&path, source).expect("written");
        let bitcode = support::compile(&path, &all);
        let object = instrument::instrument(&bitcode, &instrument::Options::default());
        let object = object.expect("instruments");
        assert!(object.starts_with(b"\x7fELF"));
    }
}

#[test]
fn gates_are_in_functions_that_leave_the_red_zone_alone_and_in_their_groups() {
    let source = "struct box { int id; long more; }; static int calls;
        inline int twice(box *b) { return b->id *= 2; }
        int f(box *b) { calls++; return twice(b); }
        int g(int n) { return n + 1; }
        __attribute__((naked)) void h() { __asm__(\"ret\"); }";
    for flag in ["-O0", "-O1"] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("gates.cc");
        std::fs::write(&path, source).expect("written");
        let bitcode = support::compile(&path, &[flag]);
        let options = instrument::Options { verify: true, ..Default::default() };
        let text = instrument::instrumented_ir(&bitcode, &options).expect("instruments");
        let module = ir::read_bitcode(&bitcode).expect("reads");
        let functions = module.functions.iter().filter(|function| !function.is_declaration());
        let count: usize = functions.map(|function| gates(&module, function).len()).sum();
        assert!(count >= 4, "{flag}");
        assert_eq!(text.matches("call void asm sideeffect \"771: ").count(), count, "{flag}");
        let group = |name: &str| {
            let line = text.lines().find(|line| line.starts_with("define") && line.contains(name));
            let number = line.and_then(|line| line.split('#').nth(1)).expect("attributes");
            let number = number.split([' ', '{']).next().expect("a number");
            let group = format!("attributes #{number} = ");
            text.lines().find(|line| line.starts_with(&group)).expect("the attributes")
        };
        assert!(group("@_Z1fP3box").contains("noredzone"), "{flag}");
        assert!(!group("@_Z1gi").contains("noredzone"), "{flag}");
        assert!(!group("@_Z1hv").contains("noredzone"), "{flag}");
    }
}
