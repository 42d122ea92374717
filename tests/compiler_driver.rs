//! `symbiosis cc` and `symbiosis c++` in the place of clang and clang++.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A directory in which compilers run.
struct Bench(tempfile::TempDir);

impl Bench {
    fn new(files: &[(&str, &str)]) -> Self {
        let bench = Self(tempfile::tempdir().expect("a temporary directory"));
        for (name, text) in files {
            std::fs::write(bench.path(name), text).expect("the file is written");
        }
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).expect("a directory");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    fn run(&self, program: impl AsRef<Path>, args: &str) -> Output {
        let mut command = Command::new(program.as_ref());
        command.args(args.split_whitespace()).current_dir(self.0.path());
        command.output().expect("the command starts")
    }

    fn cc(&self, args: &str) -> Output {
        self.run(env!("CARGO_BIN_EXE_symbiosis"), &format!("cc {args}"))
    }

    /// Runs the driver, which must succeed silently.
    fn quiet(&self, args: &str) {
        let output = self.run(env!("CARGO_BIN_EXE_symbiosis"), args);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && errors.is_empty(), "{args}: {errors}");
    }

    /// Runs a program that was built here and returns what it prints.
    fn output(&self, program: &str) -> String {
        let output = self.run(self.path(program), "");
        assert!(output.status.success(), "{program}: {output:?}");
        String::from_utf8(output.stdout).expect("text")
    }

    fn is_instrumented(&self, name: &str) -> bool {
        let bytes = self.read(name);
        bytes.starts_with(b"\x7fELF") && bytes.windows(13).any(|w| w == b".symbiosis.ir")
    }
}

const HELLO: &str = "#include <stdio.h>\nint main(void) { puts(\"hello\"); return 0; }\n";
const SQUARE: &str = "int square(int n) { return n * n; }\n";
const USES_SQUARE: &str = "#include <stdio.h>\nint square(int);\n\
    int main(void) { printf(\"%d\\n\", square(12)); return 0; }\n";

#[test]
fn one_command_from_source_to_program() {
    let bench = Bench::new(&[("hello.c", HELLO)]);
    for level in ["", "-O0", "-O1", "-O2", "-O3", "-Os"] {
        bench.quiet(&format!("cc {level} hello.c"));
        assert_eq!(bench.output("a.out"), "hello\n", "{level}");
        assert!(bench.is_instrumented("a.out"), "{level}");
    }
    assert_eq!(bench.names(), ["a.out", "hello.c"], "nothing is left behind");
}

/// As runners of tests have it that count what was allocated.
const OWN_MALLOC: &str = "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <stdio.h>\n#include <stdlib.h>\n\
    static void *(*next)(size_t);\nstatic int count;\n\
    __attribute__((constructor)) static void begin(void) { next = dlsym(RTLD_NEXT, \"malloc\"); }\n\
    void *malloc(size_t size) { count++; return next(size); }\n\
    int main(void) { void *volatile one = malloc(9); free(one); return count ? 0 : 1; }\n";

#[test]
fn a_malloc_that_a_constructor_makes_ready_is_not_called_before() {
    let bench = Bench::new(&[("own.c", OWN_MALLOC)]);
    bench.quiet("cc -g -O1 -Wno-all own.c -o own");
    assert_eq!(bench.output("own"), "");
}

#[test]
fn objects_have_the_names_that_clang_gives_them() {
    let bench = Bench::new(&[("square.c", SQUARE), ("main.c", USES_SQUARE)]);
    std::fs::create_dir(bench.path("sub")).expect("a directory");
    std::fs::write(bench.path("sub/deep.c"), "int deep;\n").expect("written");
    bench.quiet("cc -c square.c main.c sub/deep.c");
    assert_eq!(bench.names(), ["deep.o", "main.c", "main.o", "square.c", "square.o", "sub"]);
    assert!(bench.is_instrumented("square.o") && bench.is_instrumented("main.o"));
    bench.quiet("cc square.o main.o -o program");
    assert_eq!(bench.output("program"), "144\n");
}

#[test]
fn sources_objects_and_archives_mix() {
    let bench = Bench::new(&[("square.c", SQUARE), ("main.c", USES_SQUARE), ("nothing.c", "")]);
    bench.quiet("cc -O2 -c square.c");
    assert!(bench.run("ar", "rcs libsquare.a square.o").status.success());
    bench.quiet("cc -x c main.c -x none nothing.c -L. -lsquare -o program -Wl,--gc-sections");
    assert_eq!(bench.output("program"), "144\n");
}

#[test]
fn response_files_count_as_the_command_line() {
    let text = "-c 'my file.c'\n-DTEXT=\\\"say\\ it\\\" -o \"my file.o\"";
    let source = "#include <stdio.h>\nint main(void) { puts(TEXT); return 0; }\n";
    let bench =
        Bench::new(&[("arguments", text), ("my file.c", source), ("link", "\"my file.o\"")]);
    bench.quiet("cc @arguments");
    assert!(bench.is_instrumented("my file.o"));
    bench.quiet("cc @link -o program");
    assert_eq!(bench.output("program"), "say it\n");
}

#[test]
fn dependency_files_are_those_of_clang() {
    let commands = [
        "-MD -MT x.o -MF x.o.d -o x.o -c main.c",
        "-MMD -c main.c",
        "-MD -c main.c -o out.o",
        "-MMD -MP -c main.c square.c",
        "-MMD main.c square.c -o program",
        "-MD main.c square.c",
        "-MMD -MF chosen.d main.c square.o -o program",
        "-MMD -MQ $(odd) -c main.c -o out.o",
    ];
    for command in commands {
        let main = format!("#include \"square.h\"\n{USES_SQUARE}");
        let files = [("square.c", SQUARE), ("main.c", &main), ("square.h", "int square(int);\n")];
        let ours = Bench::new(&files);
        let theirs = Bench::new(&files);
        for bench in [&ours, &theirs] {
            assert!(bench.run("clang", "-c square.c").status.success());
        }
        assert!(theirs.run("clang", command).status.success(), "{command}");
        ours.quiet(&format!("cc {command}"));
        assert_eq!(ours.names(), theirs.names(), "{command}");
        for name in theirs.names().iter().filter(|name| name.ends_with(".d")) {
            let text = |bench: &Bench| String::from_utf8(bench.read(name)).expect("text");
            assert_eq!(text(&ours), text(&theirs), "{command}: {name}");
        }
    }
}

#[test]
fn errors_and_warnings_are_those_of_clang() {
    let bench = Bench::new(&[("bad.c", "int main(void) { return x; }\n"), ("good.c", HELLO)]);
    let warns = "int main(void) { int unused; return 0; }\n";
    std::fs::write(bench.path("warns.c"), warns).expect("written");
    for command in [
        "-c bad.c -o bad.o",
        "bad.c good.c -o program",
        "-c bad.c good.c -o x.o",
        "-c missing.c",
        "--no-such-option good.c",
        "-Wall -c warns.c -o /dev/null",
        "-Wall -Werror -c warns.c",
    ] {
        let theirs = bench.run("clang", command);
        let before = bench.names();
        let ours = bench.cc(command);
        assert_eq!(ours.status.code(), theirs.status.code(), "{command}");
        // Names of temporary files differ from run to run.
        let text = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(text(&ours), text(&theirs), "{command}");
        assert_eq!(bench.names(), before, "{command} leaves nothing behind");
    }
}

#[test]
fn questions_go_to_clang() {
    let bench = Bench::new(&[("hello.c", HELLO), ("odd.h", "int odd;\n")]);
    for command in [
        "--version",
        "-E hello.c",
        "-S hello.c -o -",
        "-S -emit-llvm hello.c -o -",
        "-MM hello.c",
        "-fsyntax-only hello.c",
        "-print-search-dirs",
        "-dumpmachine",
        "",
    ] {
        let (theirs, ours) = (bench.run("clang", command), bench.cc(command));
        assert_eq!(ours.status.code(), theirs.status.code(), "{command}");
        assert_eq!(ours.stdout, theirs.stdout, "{command}");
        assert_eq!(ours.stderr, theirs.stderr, "{command}");
    }
    bench.quiet("cc -x c-header odd.h");
    assert!(bench.names().iter().any(|name| name == "odd.h.gch"));
}

#[test]
fn what_is_not_c_is_left_alone() {
    let assembly = ".globl answer\nanswer:\n  movl $42, %eax\n  ret\n.section .note.GNU-stack\n";
    let main = "#include <stdio.h>\nint answer(void);\n\
        int main(void) { printf(\"%d\\n\", answer()); return 0; }\n";
    let bench = Bench::new(&[("answer.s", assembly), ("main.c", main)]);
    bench.quiet("cc -c answer.s");
    assert!(!bench.is_instrumented("answer.o"));
    bench.quiet("cc -c -x assembler answer.s -o other.o");
    assert!(!bench.is_instrumented("other.o"));
    bench.quiet("cc main.c answer.s -o program");
    assert_eq!(bench.output("program"), "42\n");
    bench.quiet("cc -Wa,--noexecstack -c main.c");
    assert!(bench.is_instrumented("main.o"));
}

#[test]
fn configure_probes_get_their_answers() {
    let probe = "char cos(); char pthread_create();\n\
        int main(void) { return pthread_create != 0 && cos == 0; }\n";
    let bench = Bench::new(&[("conftest.c", probe), ("none.c", "int main() { return no(); }\n")]);
    assert!(bench.cc("-o conftest -g -O2 conftest.c -lm").status.success());
    assert!(bench.run(bench.path("conftest"), "").status.success());
    assert!(!bench.cc("-o conftest2 none.c").status.success(), "an undefined function is noticed");
    assert!(!bench.names().iter().any(|name| name == "conftest2"));
    assert!(bench.cc("-c -o /dev/null conftest.c -w").status.success());
    assert_eq!(bench.run("sh", "-c true").status.code(), Some(0));
}

#[test]
fn standard_input_is_a_source() {
    let bench = Bench::new(&[("hello.c", HELLO)]);
    let symbiosis = env!("CARGO_BIN_EXE_symbiosis");
    let script = format!("'{symbiosis}' cc -x c - -o program < hello.c");
    let mut shell = Command::new("sh");
    let status = shell.args(["-c", &script]).current_dir(bench.0.path()).status().expect("sh");
    assert!(status.success());
    assert_eq!(bench.output("program"), "hello\n");
}

#[test]
fn what_cannot_be_done_is_said() {
    let bench = Bench::new(&[("hello.c", HELLO)]);
    let output = bench.cc("-static hello.c -o program");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && errors.contains("-static"), "{errors}");
    let output = bench.cc("-flto=thin -O2 hello.c -o program");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && errors.contains("-flto=thin"), "{errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
    assert!(bench.is_instrumented("program"));
    // The counters of a build for coverage are shared by all threads.
    let output = bench.cc("--coverage -fprofile-update=atomic hello.c -o program");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && errors.contains("--coverage -fprofile-update"), "{errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
    let output = bench.cc("-m32 -c hello.c -o program.o");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let headers_missing = errors.contains("file not found");
    assert!(!output.status.success() && (headers_missing || errors.contains("x86-64")), "{errors}");
    assert!(!bench.names().iter().any(|name| name == "program.o"));
}

#[test]
fn shared_libraries_find_the_runtime_in_the_executable() {
    let plugin = "int count;\nint work(int n) { count++; return n + 1; }\n";
    let main = "#include <dlfcn.h>\n#include <stdio.h>\nint square(int);\n\
        int main(void) {\n\
          void *plugin = dlopen(\"./plugin.so\", RTLD_NOW);\n\
          if (!plugin) return puts(dlerror()), 1;\n\
          int (*work)(int) = (int (*)(int))dlsym(plugin, \"work\");\n\
          printf(\"%d\\n\", work(square(3)));\n\
          return 0;\n\
        }\n";
    let bench = Bench::new(&[("plugin.c", plugin), ("square.c", SQUARE), ("main.c", main)]);
    bench.quiet("cc -shared -fPIC -O1 plugin.c -o plugin.so -Wl,-z,defs");
    bench.quiet("cc -shared -fPIC -O1 square.c -o libsquare.so");
    bench.quiet("cc main.c -L. -lsquare -Wl,-rpath,. -ldl -o program");
    assert!(bench.is_instrumented("plugin.so") && bench.is_instrumented("libsquare.so"));
    assert_eq!(bench.output("program"), "10\n");
}

#[test]
fn make_builds_in_parallel() {
    let makefile = "\
CFLAGS = -O1 -Wall -MMD
OBJECTS = main.o a.o b.o c.o
program: $(OBJECTS) libsquare.a
\t$(CC) $(CFLAGS) $(OBJECTS) -L. -lsquare -pthread -o $@
libsquare.a: square.o
\t$(AR) rcs $@ $^
-include $(OBJECTS:.o=.d)
";
    let main = "#include <stdio.h>\nint square(int), a(int), b(int), c(int);\n\
        int main(void) { printf(\"%d\\n\", a(b(c(square(2))))); return 0; }\n";
    let bench = Bench::new(&[
        ("Makefile", makefile),
        ("main.c", main),
        ("square.c", SQUARE),
        ("a.c", "int a(int n) { return n + 1; }\n"),
        ("b.c", "int b(int n) { return n + 2; }\n"),
        ("c.c", "int c(int n) { return n + 3; }\n"),
    ]);
    let compiler = format!("CC={} cc", env!("CARGO_BIN_EXE_symbiosis"));
    let mut make = Command::new("make");
    make.args(["-j4", "-s", &compiler]).current_dir(bench.0.path());
    let output = make.output().expect("make runs");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    assert_eq!(bench.output("program"), "10\n");
    let output = make.output().expect("make runs");
    assert!(output.status.success() && bench.names().iter().any(|name| name == "main.d"));
}

#[test]
fn exceptions_cross_translation_units() {
    let main = "#include <iostream>\n#include <thread>\n#include \"shared.h\"\n\
        int main() {\n\
          int caught = 0;\n\
          std::thread worker([&] {\n\
            for (int i = 0; i < 6; i++)\n\
              try { twice(checked<int>(i)); } catch (const Odd &odd) { caught += odd.value; }\n\
          });\n\
          worker.join();\n\
          std::cout << caught << ' ' << twice(checked<long>(4)) << '\\n';\n\
        }\n";
    let header = "#include <stdexcept>\nstruct Odd { int value; };\n\
        template <class T> T checked(T n) { if (n % 2) throw Odd{int(n)}; return n; }\n\
        inline int twice(int n) { static int calls; return ++calls, 2 * n; }\n\
        template <class T> struct Holder { static T value; };\n\
        template <class T> T Holder<T>::value = T(checked<int>(2));\n";
    let other = "#include \"shared.h\"\nint other() { return twice(checked<int>(2)) + Holder<int>::value; }\n";
    let bench = Bench::new(&[("main.cc", main), ("shared.h", header), ("other.cc", other)]);
    for level in ["-O0", "-O2"] {
        bench.quiet(&format!("c++ {level} -pthread main.cc other.cc -o program"));
        assert_eq!(bench.output("program"), "9 8\n", "{level}");
    }
}

/// The sections with the entries of gates in an object: whether each belongs to a group, and how
/// many entries it has.
fn sites(bench: &Bench, object: &str) -> Vec<(bool, u64)> {
    let output = bench.run("readelf", &format!("-SW {object}"));
    let text = String::from_utf8(output.stdout).expect("text");
    let sections = text.lines().filter_map(|line| line.split_once("] symbiosis_sites "));
    sections
        .map(|(_, line)| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            assert_eq!((fields[0], fields[5].starts_with('A')), ("PROGBITS", true), "{line}");
            let size = u64::from_str_radix(fields[3], 16).expect("a size");
            assert_eq!(size % 12, 0, "{line}");
            (fields[5].contains('G'), size / 12)
        })
        .collect()
}

#[test]
fn the_entries_of_gates_are_linked_with_their_functions() {
    let header = "extern int calls;\ninline int twice(int *n) { return ++calls, *n *= 2; }\n";
    let first = "#include <cstdio>\n#include \"shared.h\"\nint other(int *);\nint calls;\n\
        int main() { int n = 3; twice(&n); std::printf(\"%d %d\\n\", other(&n), calls); }\n";
    let second = "#include \"shared.h\"\nint other(int *n) { return twice(n) + calls; }\n\
        int unused(int *n) { return *n; }\n";
    let bench = Bench::new(&[("shared.h", header), ("first.cc", first), ("second.cc", second)]);
    let count = |list: &[(bool, u64)], group: bool| {
        list.iter().filter(|entry| entry.0 == group).map(|entry| entry.1).sum::<u64>()
    };
    for level in ["-O0", "-O1 -fno-inline -ffunction-sections"] {
        bench.quiet(&format!("c++ {level} -c -fPIC first.cc second.cc"));
        let (a, b) = (sites(&bench, "first.o"), sites(&bench, "second.o"));
        let own = (count(&a, false), count(&b, false));
        assert!(own.0 > 0 && own.1 > 0 && count(&a, true) > 0, "{level}: {a:?} {b:?}");
        assert_eq!(count(&a, true), count(&b, true), "{level}");
        let linked = vec![(false, own.0 + own.1 + count(&a, true))];
        for options in ["", "-fuse-ld=gold", "-Wl,--gc-sections", "-no-pie"] {
            if options.ends_with("gold") && Command::new("ld.gold").arg("-v").output().is_err() {
                continue;
            }
            // Gold has warnings of its own about symbols.
            let output = bench.run(
                env!("CARGO_BIN_EXE_symbiosis"),
                &format!("c++ {options} first.o second.o -o program"),
            );
            assert!(output.status.success(), "{level} {options}: {output:?}");
            assert_eq!(sites(&bench, "program"), linked, "{level} {options}");
            assert_eq!(bench.output("program"), "14 2\n", "{level} {options}");
        }
        // A library has entries of its own, and its gates lead to the runtime in the executable.
        bench.quiet("c++ -shared second.o -o libsecond.so");
        bench.quiet("c++ first.o -L. -lsecond -Wl,-rpath,. -Wl,-z,now -o program");
        assert_eq!(sites(&bench, "libsecond.so"), [(false, own.1 + count(&b, true))], "{level}");
        assert_eq!(sites(&bench, "program"), [(false, own.0 + count(&a, true))], "{level}");
        assert_eq!(bench.output("program"), "14 2\n", "{level}");
        let undefined = bench.run("nm", "-D --undefined-only libsecond.so").stdout;
        let undefined = String::from_utf8(undefined).expect("text");
        assert!(undefined.contains("__symbiosis_gate\n"), "{undefined}");
        assert!(undefined.contains("__symbiosis_gate_anchor\n"), "{undefined}");
    }
}

#[test]
fn sanitizers_work_or_are_refused_by_name() {
    let source = "#include <limits.h>\n#include <stdio.h>\n\
        int main(int argc, char **argv) { int n = INT_MAX - 1 + argc; printf(\"%d\\n\", n + 1 < n); }\n";
    let bench = Bench::new(&[("overflow.c", source)]);
    for name in ["address", "thread", "memory", "leak", "undefined,address"] {
        let output = bench.cc(&format!("-fsanitize={name} -c overflow.c"));
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        let refused = name.rsplit(',').next().unwrap_or(name);
        assert!(!output.status.success(), "{name}");
        assert!(errors.contains(&format!("-fsanitize={refused} cannot")), "{name}: {errors}");
    }
    assert_eq!(bench.names(), ["overflow.c"]);
    bench.quiet("cc -fsanitize=undefined -fsanitize-trap=undefined -c overflow.c");
    bench.quiet("cc -fsanitize=undefined overflow.c -o program");
    let output = bench.run(bench.path("program"), "");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && errors.contains("signed integer overflow"), "{output:?}");
}

#[test]
fn an_executable_without_the_c_library_is_refused() {
    let bench = Bench::new(&[("hello.c", HELLO), ("square.c", SQUARE)]);
    for option in ["-nostdlib", "-nodefaultlibs"] {
        let output = bench.cc(&format!("{option} hello.c"));
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && errors.contains(option), "{errors}");
    }
    bench.quiet("cc -nostdlib -c hello.c");
    bench.quiet("cc -nostdlib -fPIC -shared square.c -o libsquare.so");
    bench.quiet("cc -nodefaultlibs hello.c -lc -o program");
    assert_eq!(bench.output("program"), "hello\n");
}

#[test]
fn linkers_have_nothing_to_say() {
    let bench = Bench::new(&[("hello.c", HELLO), ("map", "V1 { local: *; };\n")]);
    for linker in ["bfd", "gold", "lld", "mold"] {
        if Command::new(format!("ld.{linker}")).arg("-v").output().is_err() {
            continue;
        }
        for options in ["", "-Wl,--version-script=map", "-Wl,--gc-sections,-z,now", "-s -rdynamic"]
        {
            bench.quiet(&format!("cc -O1 hello.c -fuse-ld={linker} {options} -o program"));
            assert_eq!(bench.output("program"), "hello\n", "{linker} {options}");
            let symbols = bench.run("nm", "-D --defined-only program").stdout;
            let symbols = String::from_utf8(symbols).expect("text");
            assert!(symbols.contains(" __symbiosis_register"), "{linker} {options}: {symbols}");
            // Without the tables of gates no schedule can be followed.
            let sections = bench.run("readelf", "-SW program").stdout;
            let sections = String::from_utf8(sections).expect("text");
            assert!(sections.contains("symbiosis_sites"), "{linker} {options}: {sections}");
        }
    }
}

/// What each link gets besides the program is compiled once for each compiler.
#[test]
fn what_links_get_in_addition_is_compiled_once() {
    let bench = Bench::new(&[("hello.c", HELLO)]);
    let kept = || {
        let entries = std::fs::read_dir(bench.path("cache/symbiosis")).expect("a directory");
        let archives =
            entries.map(|entry| entry.expect("an entry").path().join("symbiosis-library"));
        let archives = archives.filter_map(|archive| {
            let written = archive.metadata().and_then(|metadata| metadata.modified()).ok()?;
            Some((archive, written))
        });
        let mut archives: Vec<_> = archives.collect();
        archives.sort();
        archives
    };
    let link = |compiler: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_symbiosis"));
        command.args([compiler, "hello.c"]).current_dir(bench.0.path());
        command.env("XDG_CACHE_HOME", bench.path("cache"));
        assert!(command.status().expect("the command starts").success());
        assert_eq!(bench.output("a.out"), "hello\n");
        kept()
    };
    let first = link("cc");
    assert_eq!(first.len(), 1, "{first:?}");
    assert_eq!(link("cc"), first, "the same archive, not written again");
    // C++ has more of it.
    assert_eq!(link("c++").len(), 2);
    // A link does not need what is kept.
    for (archive, _) in kept() {
        std::fs::remove_file(archive).expect("removed");
    }
    assert_eq!(link("cc").len(), 1);
}
