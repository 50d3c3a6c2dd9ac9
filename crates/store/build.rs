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
    let harness = root.join("python/t2t_harness");
    fs::write(out.join("harness.rs"), listing(&harness, below(&harness, ""))).expect("the build folder is writable");
    // Not the folder itself: published results lie below it, and none of them is carried. A new asset comes with code that names it.
    println!("cargo::rerun-if-changed=src/assets.rs");
    let assets = root.join("assets");
    let mut carried = names(&assets);
    carried.retain(|name| [".json", ".md", ".html"].iter().any(|ending| name.ends_with(ending)));
    carried.extend(["prompts/kernel.md", "prompts/improve.md"].map(str::to_owned));
    fs::write(out.join("assets.rs"), listing(&assets, carried)).expect("the build folder is writable");
}

/// Returns the names in `folder`.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("the folder is in the repository");
    entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// Returns the Python files in `folder` and below it, each after `start`, with `/` between the parts of its name.
fn below(folder: &Path, start: &str) -> Vec<String> {
    let found = names(folder).into_iter().flat_map(|name| {
        let path = folder.join(&name);
        let whole = format!("{start}{name}");
        if path.is_dir() {
            return below(&path, &format!("{whole}/"));
        }
        Some(whole).filter(|_| path.extension().is_some_and(|ending| ending == "py")).into_iter().collect()
    });
    found.collect()
}

/// Returns a Rust array of (file name, bytes) for the files of these names in `folder`, sorted.
fn listing(folder: &Path, mut names: Vec<String>) -> String {
    names.sort();
    let mut text = String::from("&[\n");
    for name in names {
        let path = folder.join(&name);
        println!("cargo::rerun-if-changed={}", path.display());
        writeln!(text, "    ({name:?}, include_bytes!({:?})),", path.display().to_string()).expect("a text grows");
    }
    text.push(']');
    text
}
