//! Programs that call much of the libraries: `symbiosis check` finds nothing that it cannot model,
//! and no function that nobody described. The programs of `tests/programs/effects` are found, not
//! listed; each checks the results of the calls itself.

#[path = "fixtures/workspace.rs"]
mod workspace;

use libtest_mimic::{Arguments, Failed, Trial};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use workspace::Workspace;

const SUCCESS: i32 = 0;

fn check(source: &Path, level: &str) {
    let name = source.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let workspace = Workspace::new(&format!("effects-{name}{level}"));
    let plus_plus = name.ends_with(".cc");
    let (compiler, standard) = if plus_plus { ("c++", "-std=c++17") } else { ("cc", "-std=gnu11") };
    let expected = fs::read_to_string(source).expect("the source can be read");
    let flags = expected.lines().find_map(|line| line.strip_prefix("//~ FLAGS: "));
    let source = source.to_str().expect("a path in UTF-8");
    let fixed = [compiler, standard, "-g", level, "-pthread", source, "-lm", "-o", "program"];
    let arguments = fixed.into_iter().chain(flags.unwrap_or_default().split_whitespace());
    workspace.symbiosis(arguments).expect_code(SUCCESS);
    workspace.symbiosis(["record", "-o", "run.trace", "--", "./program"]).expect_code(SUCCESS);
    let outcome = workspace.symbiosis(["check", "run.trace"]).expect_code(SUCCESS);
    assert!(outcome.stdout().contains(" 0 gaps in "), "{}", outcome.describe());
    assert!(!outcome.stdout().contains("not described"), "{}", outcome.describe());
    for wanted in expected.lines().filter_map(|line| line.trim().strip_prefix("//~ CHECK: ")) {
        assert!(outcome.stdout().contains(wanted), "no {wanted:?}: {}", outcome.describe());
    }
    let most = expected.lines().find_map(|line| line.trim().strip_prefix("//~ LOG: "));
    if let Some(most) = most {
        let most: u64 = most.parse().expect("a number of bytes");
        let files = fs::read_dir(workspace.path("run.trace")).expect("the trace can be listed");
        let sizes = files.map(|file| file.and_then(|file| file.metadata()).expect("a file").len());
        assert!(sizes.sum::<u64>() < most, "the trace is larger");
    }
}

fn trials(source: &Path) -> impl Iterator<Item = Trial> + use<> {
    let source = source.to_owned();
    ["-O0", "-O2"].into_iter().map(move |level| {
        let name = source.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let source = source.clone();
        Trial::test(format!("{name}{level}"), move || {
            std::panic::catch_unwind(|| check(&source, level)).map_err(|panic| {
                let text = panic.downcast_ref::<String>().cloned();
                Failed::from(text.unwrap_or_else(|| "panicked".to_owned()))
            })
        })
    })
}

fn main() -> ExitCode {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/effects");
    let mut sources: Vec<PathBuf> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("an entry of the folder").path())
        .collect();
    sources.sort();
    assert!(!sources.is_empty(), "no programs in {}", folder.display());
    let trials = sources.iter().flat_map(|source| trials(source)).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
