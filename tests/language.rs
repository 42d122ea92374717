//! The language as it is found: every program of `tests/programs/language` is compiled with
//! Symbiosis and with clang alone, recorded, and executed from its trace. It has to behave as under
//! clang, every thread has to be walked to its end, and what it computed has to be what the log says.
//! The files are found, not listed. They say in comments what they need:
//!
//! * `//~ FLAGS: ...` for the compiler and the linker, always;
//! * `//~ LEVELS: -O0; -O2 -fPIC; ...` sets of options, each a test of its own (`-O0; -O2` otherwise);
//! * `//~ GAP: TEXT` a kind of gap, as `check` names it, that docs/limits.md documents.

#[path = "fixtures/workspace.rs"]
mod workspace;

use libtest_mimic::{Arguments, Trial};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};
use std::{env, fs};
use workspace::Workspace;

const SUCCESS: i32 = 0;
/// `check` found gaps.
const GAPS: i32 = 11;
/// Seconds for a run that takes milliseconds.
const TIME_OUT: &str = "60";

/// One source, with one set of options.
struct Case {
    source: PathBuf,
    options: Vec<String>,
    gaps: Vec<String>,
}

/// The texts after `//~ KEY:` in a source.
fn annotations<'a>(text: &'a str, key: &'a str) -> impl Iterator<Item = &'a str> {
    text.lines().filter_map(move |line| {
        let rest = line.strip_prefix("//~ ")?.strip_prefix(key)?;
        rest.strip_prefix(':').map(str::trim)
    })
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn cases(source: &Path) -> Vec<Case> {
    let text = fs::read_to_string(source).unwrap_or_else(|e| panic!("{}: {e}", source.display()));
    let flags: Vec<String> = annotations(&text, "FLAGS").flat_map(words).collect();
    let levels = annotations(&text, "LEVELS").next().unwrap_or("-O0; -O2");
    let case = |level: &str| Case {
        source: source.to_owned(),
        options: words(level).into_iter().chain(flags.clone()).collect(),
        gaps: annotations(&text, "GAP").map(str::to_owned).collect(),
    };
    levels.split(';').map(case).collect()
}

impl Case {
    fn stem(&self) -> String {
        self.source.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
    }

    fn name(&self) -> String {
        format!("{}::{}", self.stem(), self.options.join(" "))
    }

    /// How the program behaves without us.
    fn plain(&self, workspace: &Workspace) -> Output {
        let plus_plus = self.source.extension().is_some_and(|extension| extension == "cc");
        let output = Command::new(if plus_plus { "clang++" } else { "clang" })
            .args(["-g", "-pthread"])
            .args(&self.options)
            .arg(&self.source)
            .arg("-o")
            .arg(workspace.path("plain"))
            .arg("-lm")
            .output()
            .expect("clang starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let plain = Command::new(workspace.path("plain")).output().expect("the program starts");
        assert!(plain.status.success(), "under clang alone the program ends with {plain:?}");
        plain
    }

    fn run(&self) {
        let name = self.name().replace([':', ' ', '=', '/', ','], "-");
        let workspace = Workspace::new(&format!("language-{name}"));
        let plain = self.plain(&workspace);
        let plus_plus = self.source.extension().is_some_and(|extension| extension == "cc");
        let source = self.source.to_string_lossy().into_owned();
        let mut compile = vec![if plus_plus { "c++" } else { "cc" }, "-g", "-pthread"];
        compile.extend(self.options.iter().map(String::as_str));
        compile.extend([&source, "-o", "program", "-lm"]);
        workspace.symbiosis(compile).expect_code(SUCCESS);
        let record = ["record", "--timeout", TIME_OUT, "-o", "run.trace", "--", "./program"];
        let recorded = workspace.symbiosis(record).expect_code(SUCCESS);
        assert_eq!(
            recorded.stdout(),
            String::from_utf8_lossy(&plain.stdout),
            "the instrumented program prints something else"
        );
        let report = workspace.symbiosis(["check", "run.trace"]);
        let text = report.stdout();
        let allowed = report.code() == SUCCESS || report.code() == GAPS && !self.gaps.is_empty();
        assert!(allowed && !text.contains("STOPPED"), "{}", report.describe());
        // Behind the sums of all threads stands how often there was which kind of gap, and then what
        // was called.
        let sums = text.lines().skip_while(|line| !line.contains(" gaps in "));
        for line in sums.skip(1).take_while(|line| line.starts_with("    ")) {
            let kind = line.trim_start().trim_start_matches(|c: char| c.is_ascii_digit()).trim();
            assert!(self.gaps.iter().any(|gap| gap == kind), "{kind}: {}", report.describe());
        }
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/language");
    let mut sources: Vec<PathBuf> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("a directory entry").path())
        .collect();
    sources.sort();
    let trial = |case: Case| {
        Trial::test(case.name(), move || {
            case.run();
            Ok(())
        })
    };
    let trials = sources.iter().flat_map(|source| cases(source)).map(trial).collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}
