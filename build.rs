//! Compiles the runtime a second time, as the static library that traced programs link, so that
//! the `symbiosis` command can carry it inside itself.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const CRATE: &str = "crates/runtime/src";
const LAYOUT: &str = "crates/trace-format/src/layout";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={CRATE}");
    println!("cargo::rerun-if-changed={LAYOUT}");
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let archive = out.join("libsymbiosis_rt.a");
    if let Err(problem) = compile(&archive) {
        println!("cargo::error={problem}");
        return;
    }
    let bytes = fs::read(&archive).unwrap_or_default();
    println!("cargo::rustc-env=SYMBIOSIS_RUNTIME_HASH={:016x}", hash(&bytes));
}

/// One code unit and link-time optimisation: the runtime is then a single object, which a linker
/// takes whole or not at all, and the library's hooks and interposed functions come together.
fn compile(archive: &Path) -> Result<(), String> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let result = Command::new(rustc)
        .args(["--edition", "2024", "--crate-name", "symbiosis_rt", "--crate-type", "staticlib"])
        .args(["-C", "panic=abort", "-C", "opt-level=3", "-C", "codegen-units=1"])
        .args(["-C", "lto=fat", "-C", "relocation-model=pic"])
        .args(["--cfg", "symbiosis_export", "--check-cfg", "cfg(symbiosis_export, test)"])
        .arg(Path::new(CRATE).join("lib.rs"))
        .arg("-o")
        .arg(archive)
        .output()
        .map_err(|error| format!("cannot run rustc for the runtime: {error}"))?;
    if result.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&result.stderr).replace('\n', " | ");
    Err(format!("the runtime does not compile: {text}"))
}

/// FNV-1a with 64 bits: names the library in the cache.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
