//! Small projects, each with a build system of its own, built as their users would build them with
//! `symbiosis` as the compiler: built in parallel, tested by their own tests, installed, recorded, and
//! every thread walked to its end.
//!
//! The projects share their sources (`tests/programs/projects/common`): a program with a static and a
//! shared library, C, C++ and assembly, and a plug-in that starts a thread and is loaded twice.

use crate::workspace::Workspace;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const SUCCESS: i32 = 0;
const EXPECTED: &str = "sum 190\nplugin 3\nplugin 3\n";

/// A copy of a project, and a directory with `symbiosis-cc` and `symbiosis-c++` first on PATH.
struct Project {
    workspace: Workspace,
}

impl Project {
    fn new(build_system: &str, name: &str) -> Self {
        let workspace = Workspace::new(&format!("build-{name}"));
        let projects = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/projects");
        for directory in ["common", build_system] {
            for entry in fs::read_dir(projects.join(directory)).expect("the project is there") {
                let path = entry.expect("an entry").path();
                let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
                fs::copy(&path, workspace.path(name)).expect("a copy");
            }
        }
        fs::create_dir(workspace.path("tools")).expect("a directory");
        for name in ["symbiosis", "symbiosis-cc", "symbiosis-c++"] {
            let link = workspace.path("tools").join(name);
            std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_symbiosis"), link).expect("a link");
        }
        Self { workspace }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.workspace.path(name)
    }

    /// Runs a shell script in the project, which must succeed, and gives what it prints.
    fn shell(&self, script: &str) -> String {
        let path = std::env::var("PATH").expect("PATH");
        let output = Command::new("sh")
            .args(["-ec", script])
            .current_dir(self.path(""))
            .env("PATH", format!("{}:{path}", self.path("tools").display()))
            .env_remove("DESTDIR")
            .output()
            .expect("sh runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{script}\n{stdout}\n{stderr}");
        stdout + &stderr
    }

    /// Records a run of the program with its plug-in, and walks it.
    fn check(&self, program: &str, plugin: &str) {
        let trace = format!("{}.trace", program.replace('/', "-"));
        let command = ["record", "-q", "-o", &trace, "--", program, plugin];
        let outcome = self.workspace.symbiosis(command).expect_code(SUCCESS);
        assert_eq!(outcome.stdout(), EXPECTED, "{}", outcome.describe());
        let outcome = self.workspace.symbiosis(["check", &trace]).expect_code(SUCCESS);
        let report = outcome.stdout();
        // The initial thread, two that fill the queue, and the plug-in's two.
        let whole = report.contains("5 threads, ") && report.contains(" 0 gaps in ");
        assert!(whole && !report.contains("STOPPED"), "{}", outcome.describe());
    }
}

#[test]
fn make() {
    let project = Project::new("make", "make");
    project.shell("make -s -j4 CC='symbiosis cc' CXX='symbiosis c++'");
    project.check("./program", "./plugin.so");
    // Installing strips the program.
    project.shell("make -s install DESTDIR=\"$PWD/stage\" CC=symbiosis-cc CXX=symbiosis-c++");
    project.check("stage/usr/local/bin/program", "stage/usr/local/bin/plugin.so");
}

#[test]
fn make_with_other_linkers_and_archives() {
    let project = Project::new("make", "make-linkers");
    fs::write(project.path("exports"), "V1 { global: main; local: *; };\n").expect("written");
    let tools = "CC=symbiosis-cc CXX=symbiosis-c++ AR=llvm-ar ARFLAGS=rcsT RANLIB=llvm-ranlib";
    for (linker, options) in [
        ("bfd", "-Wl,--version-script=exports"),
        ("gold", "-Wl,-z,now -rdynamic"),
        ("lld", "-Wl,--gc-sections,--version-script,exports"),
    ] {
        let flags = format!("LDFLAGS='-fuse-ld={linker} {options} -s'");
        let output = project.shell(&format!("rm -f *.o *.a *.so; make -s -j4 {tools} {flags}"));
        assert_eq!(output, "", "{linker}");
        project.check("./program", "./plugin.so");
        fs::remove_dir_all(project.path(".-program.trace")).expect("the trace goes");
    }
}

#[test]
fn optimisation_at_link_time_is_dropped_and_the_build_works() {
    let project = Project::new("make", "make-lto");
    let output = project.shell(
        "make -s -j4 CC=symbiosis-cc CXX=symbiosis-c++ CFLAGS='-O2 -flto -pg' CXXFLAGS='-O2 -flto=thin' \
         LDFLAGS='-flto -O2'",
    );
    // Four compilers at a time say it on one pipe: no line is torn.
    let said: BTreeSet<&str> = output.lines().collect();
    let lto = "dropped: it would optimise instrumented code";
    let hooks = "dropped: calls at the beginning of functions hide their recording";
    let expected = [("-flto", lto), ("-flto=thin", lto), ("-pg", hooks)]
        .map(|(option, why)| format!("symbiosis: warning: {option} {why}"));
    assert_eq!(said, expected.iter().map(String::as_str).collect(), "{output}");
    project.check("./program", "./plugin.so");
}

#[test]
fn objects_of_other_compilers_are_part_of_the_program() {
    let project = Project::new("make", "make-mixed");
    // The queue by gcc, the container by plain clang, the rest instrumented.
    project.shell(
        "gcc -O2 -fPIC -c queue.c twist.S && clang++ -O2 -fPIC -shared weigh.cc -o libweigh.so && \
         ar rcs libqueue.a queue.o twist.o && symbiosis-cc -O1 -shared -fPIC plugin.c -o plugin.so && \
         symbiosis-cc -O1 main.c -L. -lqueue -lweigh -Wl,-rpath,. -pthread -o program && \
         gcc -O1 -shared -fPIC plugin.c -o plain.so",
    );
    project.check("./program", "./plugin.so");
    let outcome = project.workspace.symbiosis(["record", "-q", "--", "./program", "./plain.so"]);
    assert_eq!(outcome.expect_code(SUCCESS).stdout(), EXPECTED);
}

#[test]
fn autotools() {
    let project = Project::new("autotools", "autotools");
    project.shell("autoreconf -i");
    project
        .shell("./configure -q CC=symbiosis-cc CXX=symbiosis-c++ --prefix=/usr --disable-static");
    let output = project.shell("make -s -j4 && make -s check");
    assert!(output.contains("# PASS:  1") && output.contains("# FAIL:  0"), "{output}");
    // The program in the build directory is a shell script of libtool's.
    let outcome =
        project.workspace.symbiosis(["record", "-q", "-o", "uninstalled.trace", "--", "./program"]);
    assert_eq!(outcome.expect_code(SUCCESS).stdout(), "sum 190\n");
    // Libtool links what it installs once more.
    project.shell("make -s install DESTDIR=\"$PWD/stage\"");
    project.shell(
        "symbiosis-cc -O1 -I. main.c -Lstage/usr/lib -lqueue -Wl,-rpath,stage/usr/lib -pthread -o own",
    );
    project.check("./own", "stage/usr/lib/queue/plugin.so");
}

#[test]
fn cmake_and_ninja() {
    let project = Project::new("cmake", "cmake-ninja");
    project.shell(
        "cmake -G Ninja -B build -DCMAKE_BUILD_TYPE=RelWithDebInfo \
         -DCMAKE_C_COMPILER=symbiosis-cc -DCMAKE_CXX_COMPILER=symbiosis-c++",
    );
    project.shell("ninja -C build -j4 && cd build && ctest --output-on-failure");
    project.check("build/program", "build/libplugin.so");
    project.shell("DESTDIR=\"$PWD/stage\" cmake --install build --prefix /usr");
    project.check("stage/usr/bin/program", "build/libplugin.so");
}

#[test]
fn cmake_and_make_with_a_compiler_of_two_words() {
    let project = Project::new("cmake", "cmake-make");
    project.shell(
        "CC='symbiosis cc' CXX='symbiosis c++' ASM='symbiosis cc' cmake -B build \
         -DCMAKE_INTERPROCEDURAL_OPTIMIZATION=ON -DCMAKE_POLICY_DEFAULT_CMP0069=NEW",
    );
    project.shell("make -s -j4 -C build && cd build && ctest --output-on-failure");
    project.check("build/program", "build/libplugin.so");
    project.check("build/unity", "build/libplugin.so");
}

#[test]
fn meson() {
    let project = Project::new("meson", "meson");
    project
        .shell("CC=symbiosis-cc CXX='symbiosis c++' meson setup build --unity=on -Db_lundef=true");
    project.shell("ninja -C build -j4 && meson test -C build");
    project.check("build/program", "build/plugin.so");
}

#[test]
fn ccache_gives_back_the_same_objects() {
    let project = Project::new("make", "ccache");
    let output = project.shell(
        "export CCACHE_DIR=\"$PWD/cache\" CCACHE_NOHASHDIR=1
         for build in first second; do
           mkdir $build && cp *.c *.cc *.h *.S Makefile $build
           make -s -j4 -C $build CC='ccache symbiosis-cc' libqueue.a plugin.so
         done
         for object in queue.o plugin.pic.o; do cmp first/$object second/$object; done
         ccache --print-stats | grep -E '^(direct|preprocessed)_cache_hit'",
    );
    let hits: u32 =
        output.lines().filter_map(|line| line.split_whitespace().last()?.parse::<u32>().ok()).sum();
    assert!(hits >= 2, "{output}");
    // Without the cache the same source gives the same object, and the same program.
    project.shell(
        "for n in 1 2; do symbiosis-cc -O2 -c queue.c -o queue$n.o
           symbiosis-cc -O1 -x c queue.c plugin.c -x none twist.S -shared -fPIC -o all$n.so; done
         cmp queue1.o queue2.o; cmp all1.so all2.so",
    );
}
