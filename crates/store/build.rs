//! Lists the harness files and the assets, so that the binary carries them.
#![expect(clippy::disallowed_methods, reason = "a build script reads the repository and Cargo's environment")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let own = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let root = own.ancestors().nth(2).expect("the crate lies two folders below the repository");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    println!("cargo::rerun-if-changed={}", root.join("python/t2t_harness").display());
    let harness = listing(root, "python/t2t_harness", &[".py"]);
    fs::write(out.join("harness.rs"), harness).expect("the build folder is writable");
    // Not the folder itself: published results lie below it, and none of them is carried. A new asset comes with code that names it.
    println!("cargo::rerun-if-changed=crates/store/src/assets.rs");
    let assets = listing(root, "assets", &[".json", ".md", ".html"]);
    fs::write(out.join("assets.rs"), assets).expect("the build folder is writable");
}

/// Returns a Rust array of (file name, bytes) for the files in `folder` that end in one of `endings`, sorted.
fn listing(root: &Path, folder: &str, endings: &[&str]) -> String {
    let entries = fs::read_dir(root.join(folder)).expect("the folder is in the repository");
    let mut names: Vec<String> = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(|name| endings.iter().any(|ending| name.ends_with(ending)));
    names.sort();
    let mut text = String::from("&[\n");
    for name in names {
        let path = root.join(folder).join(&name);
        println!("cargo::rerun-if-changed={}", path.display());
        writeln!(text, "    ({name:?}, include_bytes!({:?})),", path.display().to_string()).expect("a text grows");
    }
    text.push(']');
    text
}
