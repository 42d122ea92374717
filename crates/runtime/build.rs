//! Declares the cfg under which the root build script compiles this crate for traced programs.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(symbiosis_export)");
}
