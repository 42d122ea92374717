//! What the driver has to know about clang's options: which of them take the next argument, and
//! which of them mean that there is nothing to instrument.

/// Options whose value is the next argument when they stand alone. (Many can also be joined with
/// their value, `-Idir`; those forms are single arguments and need no entry.)
const SEPARATE: &[&str] = &[
    "--analyzer-output",
    "--assert",
    "--config",
    "--define-macro",
    "--dyld-prefix",
    "--encoding",
    "--extdirs",
    "--for-linker",
    "--force-link",
    "--forward",
    "--gcc-toolchain",
    "--imacros",
    "--include",
    "--include-barrier",
    "--include-directory",
    "--include-directory-after",
    "--include-prefix",
    "--include-with-prefix",
    "--include-with-prefix-after",
    "--include-with-prefix-before",
    "--language",
    "--library-directory",
    "--linker-option",
    "--mhwdiv",
    "--output",
    "--param",
    "--prefix",
    "--print-file-name",
    "--print-prog-name",
    "--resource",
    "--rtlib",
    "--serialize-diagnostics",
    "--std",
    "--stdlib",
    "--sysroot",
    "--undefine-macro",
    "--unwindlib",
    "-A",
    "-B",
    "-D",
    "-F",
    "-G",
    "-I",
    "-L",
    "-MF",
    "-MJ",
    "-MQ",
    "-MT",
    "-T",
    "-U",
    "-Xanalyzer",
    "-Xassembler",
    "-Xclang",
    "-Xclangas",
    "-Xcuda-fatbinary",
    "-Xcuda-ptxas",
    "-Xlinker",
    "-Xopenmp-target",
    "-Xpreprocessor",
    "-arch",
    "-aux-info",
    "-b",
    "-c-isystem",
    "-ccc-gcc-name",
    "-ccc-install-dir",
    "-cxx-isystem",
    "-dependency-dot",
    "-dependency-file",
    "-dumpdir",
    "-e",
    "-fmodules-user-build-path",
    "-framework",
    "-gcc-toolchain",
    "-idirafter",
    "-iframework",
    "-iframeworkwithsysroot",
    "-imacros",
    "-imultilib",
    "-include",
    "-include-pch",
    "-index-store-path",
    "-iprefix",
    "-iquote",
    "-isysroot",
    "-isystem",
    "-isystem-after",
    "-ivfsoverlay",
    "-iwithprefix",
    "-iwithprefixbefore",
    "-iwithsysroot",
    "-l",
    "-mllvm",
    "-mmlir",
    "-module-dependency-dir",
    "-o",
    "-objc-isystem",
    "-objcxx-isystem",
    "-resource-dir",
    "-rpath",
    "-serialize-diagnostics",
    "-specs",
    "-target",
    "-u",
    "-undefined",
    "-weak_framework",
    "-working-directory",
    "-x",
    "-z",
];

/// Whether the option takes the next argument as its value.
pub fn takes_value(option: &str) -> bool {
    SEPARATE.contains(&option) || option.starts_with("-Xarch_") || option == "-Xopenmp-target="
}

/// Options with which clang stops before machine code, answers a question, or writes what only
/// clang can write: the command line goes to clang as it is.
const PASS_THROUGH: &[&str] = &[
    "-###",
    "--analyze",
    "--assemble",
    "--dependencies",
    "--help",
    "--help-hidden",
    "--precompile",
    "--preprocess",
    "--user-dependencies",
    "--version",
    "-E",
    "-M",
    "-MM",
    "-S",
    "-cc1",
    "-cc1as",
    "-cc1gen-reproducer",
    "-ccc-print-bindings",
    "-ccc-print-phases",
    "-dumpfullversion",
    "-dumpmachine",
    "-dumpspecs",
    "-dumpversion",
    "-emit-ast",
    "-emit-interface-stubs",
    "-emit-llvm",
    "-emit-merged-ifs",
    "-extract-api",
    "-fdriver-only",
    "-fsyntax-only",
    "-help",
    "-module-file-info",
    "-rewrite-legacy-objc",
    "-rewrite-objc",
    "-verify-pch",
];

/// Whether a command line with this option has nothing to instrument.
pub fn passes_through(option: &str) -> bool {
    PASS_THROUGH.contains(&option)
        || option.starts_with("-print-")
        || option.starts_with("--print-")
}

/// Why an option is taken out of the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// Link-time optimisation: it would optimise across the instrumented modules.
    LinkTime,
    /// Every function begins with a call, for profilers: such a function is no longer recorded.
    FunctionHook,
    /// Every block counts how often it runs, for coverage or a profile, in memory that all threads share.
    Counters,
}

impl Dropped {
    /// All of them, in the order in which they are said.
    pub const ALL: [Self; 3] = [Self::LinkTime, Self::FunctionHook, Self::Counters];

    /// Why the option is taken out, `None` for one that stays.
    pub fn of(option: &str) -> Option<Self> {
        let begins = |starts: &[&str]| starts.iter().any(|start| option.starts_with(start));
        match option {
            "-flto"
            | "-fwhole-program-vtables"
            | "-fsplit-lto-unit"
            | "-fvirtual-function-elimination" => Some(Self::LinkTime),
            _ if begins(&["-flto=", "-flto-jobs=", "-fthinlto-index="]) => Some(Self::LinkTime),
            "-pg" | "-p" | "-mfentry" | "-fxray-instrument" => Some(Self::FunctionHook),
            _ if begins(&["-finstrument-function"]) => Some(Self::FunctionHook),
            "--coverage" | "-coverage" | "-fprofile-arcs" | "-ftest-coverage"
            | "-fcoverage-mapping" => Some(Self::Counters),
            _ if begins(&["-fprofile-instr-generate", "-fprofile-generate"])
                || begins(&["-fcs-profile-generate", "-fprofile-update="]) =>
            {
                Some(Self::Counters)
            }
            _ => None,
        }
    }

    /// The reason, for the user.
    pub fn reason(self) -> &'static str {
        match self {
            Self::LinkTime => "it would optimise instrumented code",
            Self::FunctionHook => "calls at the beginning of functions hide their recording",
            Self::Counters => "its counters would be variables that all threads share",
        }
    }
}

/// Options for the assembler alone, which bitcode output never reaches. Clang would warn that they
/// are unused.
pub fn is_assembler_only(option: &str) -> bool {
    option.starts_with("-Wa,") || option == "-Xassembler"
}

/// Options for the linker alone.
pub fn is_linker_only(option: &str) -> bool {
    const JOINED: [&str; 6] = ["-Wl,", "-l", "-L", "-fuse-ld=", "--ld-path=", "-z"];
    matches!(
        option,
        "-Xlinker"
            | "-T"
            | "-u"
            | "-e"
            | "-rpath"
            | "-rdynamic"
            | "-shared"
            | "-s"
            | "-pie"
            | "-no-pie"
            | "-nopie"
            | "-nostartfiles"
            | "-nodefaultlibs"
            | "-static-libgcc"
            | "-static-libstdc++"
            | "-shared-libgcc"
            | "--for-linker"
            | "--linker-option"
            | "--library-directory"
    ) || JOINED.iter().any(|prefix| option.starts_with(prefix))
}

/// What becomes of an input file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputKind {
    /// Compiled to bitcode and instrumented.
    Source,
    /// LLVM IR, text or bitcode: instrumented as it comes out of clang.
    Ir,
    /// Turned into an object by clang alone: assembly, and languages for other processors.
    Foreign,
    /// A header to precompile.
    Header,
    /// For the linker: objects, archives, linker scripts.
    Linker,
}

/// The kind of an input under `-x language`.
pub fn kind_of_language(language: &str) -> InputKind {
    match language {
        "c"
        | "c++"
        | "cpp-output"
        | "c++-cpp-output"
        | "objective-c"
        | "objective-c++"
        | "objective-c-cpp-output"
        | "objective-c++-cpp-output"
        | "objc-cpp-output"
        | "objc++-cpp-output" => InputKind::Source,
        "ir" => InputKind::Ir,
        _ if language.ends_with("-header") || language.ends_with("-header-unit") => {
            InputKind::Header
        }
        "c++-module" => InputKind::Header,
        _ => InputKind::Foreign,
    }
}

/// The kind of an input by its name, without `-x`.
pub fn kind_of_name(name: &str) -> InputKind {
    let extension = name.rsplit('/').next().and_then(|name| name.rsplit_once('.'));
    match extension.map_or("", |(_, extension)| extension) {
        "c" | "i" | "C" | "cc" | "CC" | "cp" | "cpp" | "CPP" | "cxx" | "CXX" | "c++" | "C++"
        | "ii" | "m" | "mi" | "M" | "mm" | "mii" => InputKind::Source,
        "ll" | "bc" => InputKind::Ir,
        "s" | "asm" | "S" | "sx" | "cl" | "clcpp" | "cu" | "cui" | "hip" | "f" | "F" | "f90"
        | "F90" | "f95" | "F95" | "for" | "FOR" | "ads" | "adb" => InputKind::Foreign,
        "h" | "H" | "hh" | "hpp" | "hxx" | "h++" | "cppm" | "ccm" | "cxxm" | "c++m" | "pcm"
        | "gch" | "pch" => InputKind::Header,
        _ => InputKind::Linker,
    }
}
