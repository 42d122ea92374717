//! rustc's command line, as far as it decides how a crate is compiled.

use std::ffi::OsString;

/// What is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An executable or a shared library of C's kind: it is linked.
    Program,
    /// A crate that others use, whose bitcode they need.
    Library,
    /// Nothing that gets into a program: questions, checks, build scripts, procedural macros.
    Other,
}

/// One call of rustc.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compilation {
    /// What is compiled.
    pub kind: Kind,
    /// The level of optimisation that it gets: the user's, but 1 at least, since the library's locks are told
    /// by the code that was inlined.
    pub level: String,
    types: Vec<String>,
    /// The user's arguments without those that are decided here.
    kept: Vec<OsString>,
    /// Codegen options that the user set, by name.
    set: Vec<String>,
    unoptimised: bool,
}

/// Options of code generation that are decided here.
const DECIDED: [&str; 10] = [
    "codegen-units",
    "debuginfo",
    "embed-bitcode",
    "incremental",
    "linker",
    "linker-plugin-lto",
    "lto",
    "opt-level",
    "split-debuginfo",
    "strip",
];
/// What asks questions only.
const QUESTIONS: [&str; 7] = ["--print", "-V", "-vV", "--version", "-h", "--help", "--explain"];
/// How cargo calls the crates of build scripts.
const BUILD_SCRIPT: &str = "build_script_";

impl Compilation {
    /// Reads rustc's arguments.
    pub fn parse(args: &[OsString]) -> Self {
        let mut compilation = Self {
            kind: Kind::Other,
            level: "0".to_owned(),
            types: Vec::new(),
            kept: Vec::new(),
            set: Vec::new(),
            unoptimised: false,
        };
        let mut links: Option<bool> = None;
        let (mut asks, mut test, mut script, mut input) = (false, false, false, false);
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            let Some(text) = arg.to_str() else {
                input = true;
                compilation.kept.push(arg.clone());
                continue;
            };
            // An option's value stands in it or behind it.
            let mut value = |joined: Option<&str>, name: &str| match joined {
                Some(joined) => (joined.to_owned(), vec![arg.clone()]),
                None => {
                    let next = rest.next().cloned().unwrap_or_default();
                    (next.to_string_lossy().into_owned(), vec![name.into(), next])
                }
            };
            let long = |name: &str| match text.strip_prefix(name) {
                Some("") => Some(None),
                Some(rest) => rest.strip_prefix('=').map(Some),
                None => None,
            };
            if text == "-g" {
                // Said by ours.
            } else if text == "-O" {
                compilation.level = "3".to_owned();
                compilation.set.push("opt-level".to_owned());
            } else if text == "-C" || text.starts_with("-C") || long("--codegen").is_some() {
                let joined = match long("--codegen") {
                    Some(joined) => joined,
                    None => text.strip_prefix("-C").filter(|rest| !rest.is_empty()),
                };
                let (option, words) = value(joined, text);
                compilation.codegen(&option, words);
            } else if let Some(joined) = long("--crate-type") {
                let (types, words) = value(joined, text);
                compilation.types.extend(types.split(',').map(str::to_owned));
                compilation.kept.extend(words);
            } else if let Some(joined) = long("--crate-name") {
                let (name, words) = value(joined, text);
                script = name.starts_with(BUILD_SCRIPT);
                compilation.kept.extend(words);
            } else if let Some(joined) = long("--emit") {
                let (kinds, words) = value(joined, text);
                let link = kinds.split(',').any(|kind| kind == "link" || kind.starts_with("link="));
                links = Some(links.unwrap_or(false) || link);
                compilation.kept.extend(words);
            } else {
                asks |= QUESTIONS.iter().any(|question| long(question).is_some());
                test |= text == "--test";
                input |= !text.starts_with('-') || text == "-";
                compilation.kept.push(arg.clone());
            }
        }
        let has = |kind: &str| compilation.types.iter().any(|other| other == kind);
        // rustc refuses to optimise a `cdylib` as a whole where the same call makes a library for other crates.
        let linked = ["lib", "rlib", "dylib"].into_iter().any(has);
        compilation.kind = if asks || script || !input || links == Some(false) || has("proc-macro")
        {
            Kind::Other
        } else if test || compilation.types.is_empty() || has("bin") || has("cdylib") && !linked {
            Kind::Program
        } else {
            Kind::Library
        };
        if compilation.level == "0" {
            compilation.unoptimised = true;
            compilation.level = "1".to_owned();
        }
        if compilation.kind == Kind::Program && links.is_none() {
            // With an --emit of ours, what is the default has to be said.
            compilation.kept.push("--emit=link".into());
        }
        compilation
    }

    fn codegen(&mut self, option: &str, words: Vec<OsString>) {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let name = name.replace('_', "-");
        if name == "opt-level" {
            self.level = value.to_owned();
        }
        if !DECIDED.contains(&name.as_str()) {
            self.kept.extend(words);
        }
        self.set.push(name);
    }

    /// What is compiled to native code without its bitcode, if that is so.
    pub fn unseen(&self) -> Option<&str> {
        let native = ["dylib", "staticlib", "cdylib"];
        let types = self.types.iter().map(String::as_str);
        types.filter(|_| self.kind == Kind::Library).find(|kind| native.contains(kind))
    }

    /// The arguments for rustc.
    pub fn arguments(&self) -> Vec<OsString> {
        let mut arguments = self.kept.clone();
        let mut add = |option: &str| arguments.push(option.into());
        add(&format!("-Copt-level={}", self.level));
        add("-Cdebuginfo=2");
        add("-Cembed-bitcode=yes");
        // The executor does not follow vector code well.
        add("-Cno-vectorize-loops");
        add("-Cno-vectorize-slp");
        if self.unoptimised {
            // These follow from the level unless they are said.
            for check in ["debug-assertions", "overflow-checks"] {
                if !self.set.iter().any(|name| name == check) {
                    add(&format!("-C{check}=yes"));
                }
            }
        }
        if self.kind == Kind::Program {
            add("-Ccodegen-units=1");
            add("-Clto=fat");
        }
        arguments
    }
}

#[cfg(test)]
mod tests {
    use super::{Compilation, Kind};
    use std::ffi::OsString;

    fn parse(line: &str) -> Compilation {
        Compilation::parse(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>())
    }

    fn text(compilation: &Compilation) -> String {
        let words = compilation.arguments();
        words.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    const COMMON: &str =
        "-Cdebuginfo=2 -Cembed-bitcode=yes -Cno-vectorize-loops -Cno-vectorize-slp";

    #[test]
    fn a_program_is_linked_whole_and_keeps_its_checks() {
        let compilation = parse("-g main.rs -o main");
        assert_eq!(compilation.kind, Kind::Program);
        assert_eq!(
            text(&compilation),
            format!(
                "main.rs -o main --emit=link -Copt-level=1 {COMMON} -Cdebug-assertions=yes \
                 -Coverflow-checks=yes -Ccodegen-units=1 -Clto=fat"
            )
        );
    }

    #[test]
    fn cargos_own_words_are_heeded_or_replaced() {
        let line = "--crate-name app src/lib.rs --crate-type lib --emit=dep-info,metadata,link -C \
                    embed-bitcode=no -C opt-level=3 -Coverflow-checks=off -C incremental=/t";
        let compilation = parse(line);
        assert_eq!(compilation.kind, Kind::Library);
        assert_eq!(
            text(&compilation),
            format!(
                "--crate-name app src/lib.rs --crate-type lib --emit=dep-info,metadata,link \
                 -Coverflow-checks=off -Copt-level=3 {COMMON}"
            )
        );
        assert_eq!(parse(&format!("{line} --test")).kind, Kind::Program);
    }

    #[test]
    fn what_runs_in_the_compiler_stays_as_it_is() {
        for line in [
            "-vV",
            "--print cfg --crate-type bin -",
            "--crate-name build_script_build build.rs --crate-type bin --emit=dep-info,link",
            "--crate-type proc-macro derive.rs",
            "--crate-type lib --emit=dep-info,metadata lib.rs",
        ] {
            assert_eq!(parse(line).kind, Kind::Other, "{line}");
        }
    }

    #[test]
    fn native_libraries_are_named() {
        assert_eq!(parse("--crate-type dylib a.rs").unseen(), Some("dylib"));
        assert_eq!(parse("--crate-type rlib a.rs").unseen(), None);
    }

    #[test]
    fn a_crate_that_is_also_linked_by_others_is_a_library() {
        for types in ["--crate-type cdylib --crate-type rlib", "--crate-type lib,cdylib"] {
            let compilation = parse(&format!("{types} a.rs"));
            assert_eq!(compilation.kind, Kind::Library);
            assert_eq!(compilation.unseen(), Some("cdylib"));
            assert!(!text(&compilation).contains("lto"));
        }
        assert_eq!(parse("--crate-type cdylib a.rs").kind, Kind::Program);
        assert_eq!(parse("--crate-type cdylib --crate-type rlib --test a.rs").kind, Kind::Program);
    }
}
