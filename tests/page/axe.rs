//! axe-core, the accessibility checker: fetched when a test runs, never kept in the repository.

use super::browser::Browser;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

const PACKAGE: &str = "axe-core@4.10.3";

/// The script; `None`, and a word about it, when npm cannot get it. It is kept between runs in
/// cargo's directory for test files.
pub fn fetched(directory: &Path) -> Option<String> {
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{PACKAGE}.js"));
    if let Ok(script) = fs::read_to_string(&kept) {
        return Some(script);
    }
    let skipped = |why: &str| eprintln!("SKIPPED the check with axe-core: {why}");
    let packed = Command::new("npm")
        .args(["pack", PACKAGE, "--silent", "--fetch-timeout=20000", "--fetch-retries=0"])
        .current_dir(directory)
        .output();
    match packed {
        Ok(output) if output.status.success() => {}
        Ok(output) => {
            skipped(&String::from_utf8_lossy(&output.stderr));
            return None;
        }
        Err(error) => {
            skipped(&format!("npm does not run: {error}"));
            return None;
        }
    }
    let archive = PACKAGE.replace('@', "-") + ".tgz";
    let unpacked = Command::new("tar")
        .args(["-xzf", &archive, "-O", "package/axe.min.js"])
        .current_dir(directory)
        .output()
        .expect("tar runs");
    assert!(unpacked.status.success(), "{archive} has no axe.min.js");
    fs::write(&kept, &unpacked.stdout).expect("the script can be kept");
    Some(String::from_utf8_lossy(&unpacked.stdout).into_owned())
}

/// What the checker finds serious or critical on the page as it is.
pub fn serious(browser: &Browser, axe: &str) -> Vec<Value> {
    // A promise's value is what the script returns.
    let script = format!(
        "if (!window.axe) {{ {axe} }}
        return window.axe.run(document, {{ resultTypes: ['violations'] }}).then((found) => ({{
            checked: found.passes.length,
            violations: found.violations
                .filter((one) => ['serious', 'critical'].includes(one.impact))
                .map((one) => ({{ id: one.id, help: one.help,
                    nodes: one.nodes.slice(0, 4).map((node) => [node.html, node.failureSummary]) }})),
        }}));"
    );
    let found = browser.run(&script);
    assert!(found["checked"].as_u64() > Some(10), "axe checked next to nothing: {found}");
    found["violations"].as_array().cloned().expect("a list")
}
