//! The rules that no single file can hold: which module may use which, what every file opens with, where the boundaries lie.
//!
//! It reads the source text, and knows nothing of what the modules do.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Lists the `.rs` files in `folder` and below it, relative to the repository, sorted.
fn rust_files(folder: &str) -> Vec<PathBuf> {
    let mut open = vec![root().join(folder)];
    let mut found = Vec::new();
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                found.push(path.strip_prefix(root()).unwrap().to_owned());
            }
        }
    }
    found.sort();
    found
}

/// A top-level module of the library, and the layer whose heading stands above it.
struct Module {
    name: String,
    layer: String,
}

/// Reads the modules that `src/lib.rs` declares, in order. A layer's heading is a comment line, as in `// Core: pure.`.
fn declared() -> Vec<Module> {
    let mut layer = String::new();
    let mut modules = Vec::new();
    for line in read(&root().join("src/lib.rs")).lines() {
        if let Some(heading) = line.strip_prefix("// ") {
            heading.split([':', ' ']).next().unwrap_or_default().clone_into(&mut layer);
        }
        let declared = line.trim_start_matches("pub ").strip_prefix("mod ").and_then(|rest| rest.strip_suffix(';'));
        modules.extend(declared.map(|name| Module { name: name.to_owned(), layer: layer.clone() }));
    }
    modules
}

/// Returns the top-level module that a file of `src` belongs to; none for `lib.rs` and `main.rs`.
fn module_of(file: &Path) -> Option<String> {
    let part = file.strip_prefix("src").ok()?.components().next()?;
    let name = Path::new(part.as_os_str()).file_stem()?.to_str()?;
    (!matches!(name, "lib" | "main")).then(|| name.to_owned())
}

/// Returns the top-level modules that follow `crate::` in the code of a file, its comments and unit tests left out.
fn used(text: &str) -> BTreeSet<String> {
    let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.flat_map(|line| line.split("crate::").skip(1)).flat_map(first_names).collect()
}

/// Returns the names that a path starts with: one, or those of a group in braces.
fn first_names(path: &str) -> Vec<String> {
    let name = |text: &str| -> String {
        text.trim().chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect()
    };
    match path.strip_prefix('{') {
        Some(group) => group.split(',').map(name).filter(|name| !name.is_empty()).collect(),
        None => vec![name(path)],
    }
}

#[test]
fn a_module_uses_only_modules_declared_above_it() {
    let order: Vec<String> = declared().into_iter().map(|module| module.name).collect();
    let place = |name: &str| order.iter().position(|other| other == name);
    let mut wrong = Vec::new();
    for file in rust_files("src") {
        let Some(own) = module_of(&file) else { continue };
        let own_place = place(&own).unwrap_or_else(|| panic!("src/lib.rs declares no `{own}`"));
        for name in used(&read(&root().join(&file))) {
            match place(&name) {
                Some(other) if other <= own_place => {}
                Some(_) => wrong.push(format!("{} uses `{name}`, declared below `{own}`", file.display())),
                None => wrong.push(format!("{} uses `crate::{name}`, no module of the library", file.display())),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_reader_of_paths_sees_uses_groups_and_calls_and_no_comments() {
    let text = "//! crate::prose\nuse crate::alpha::{A, B};\nuse crate::{beta::C, gamma};\n    let x = crate::delta::make();\n\
                #[cfg(test)]\nmod tests {\n    use crate::omega;\n}\n";
    assert_eq!(used(text), ["alpha", "beta", "delta", "gamma"].map(str::to_owned).into());
}

/// Clippy forbids files, clocks, environment, processes and threads everywhere; only layers that own some may lift it.
#[test]
fn words_and_core_lift_no_lint_that_keeps_them_pure() {
    let pure: BTreeSet<String> = declared()
        .into_iter()
        .filter(|module| matches!(module.layer.as_str(), "Words" | "Core"))
        .map(|m| m.name)
        .collect();
    assert!(pure.contains("digest") && pure.contains("decide") && !pure.contains("fs"));
    for file in rust_files("src").iter().filter(|file| module_of(file).is_some_and(|name| pure.contains(&name))) {
        let text = read(&root().join(file));
        for lint in ["disallowed_methods", "disallowed_types", "print_stdout", "print_stderr"] {
            assert!(!text.contains(lint), "{} lifts clippy::{lint}", file.display());
        }
    }
}

#[test]
fn every_layer_has_its_heading() {
    let mut layers: Vec<String> = declared().into_iter().map(|module| module.layer).collect();
    layers.dedup();
    assert_eq!(layers, ["Words", "Core", "Outside", "Engine", "Views"]);
}

#[test]
fn every_integration_test_is_declared() {
    let main = read(&root().join("tests/it/main.rs"));
    for entry in fs::read_dir(root().join("tests/it")).unwrap() {
        let path = entry.unwrap().path();
        let is_rust = path.extension().is_some_and(|ending| ending == "rs");
        let name = path.file_stem().unwrap().to_str().unwrap();
        if is_rust && name != "main" {
            assert!(
                main.lines().any(|line| line == format!("mod {name};")),
                "tests/it/main.rs does not declare `{name}`"
            );
        }
    }
}

#[test]
fn every_file_opens_by_saying_what_it_is() {
    // The tests of a module in a file of their own go with that module.
    let opens = |file: &Path| file.ends_with("tests.rs") || read(&root().join(file)).starts_with("//! ");
    for folder in ["src", "crates/protocol/src", "crates/worker/src", "tests/it"] {
        let bare: Vec<PathBuf> = rust_files(folder).into_iter().filter(|file| !opens(file)).collect();
        assert!(bare.is_empty(), "these do not open with `//!`: {bare:?}");
    }
}

#[test]
fn no_folder_of_source_has_a_file_for_everything_else() {
    let refused = ["mod.rs", "utils.rs", "helpers.rs", "common.rs", "types.rs", "prelude.rs"];
    for file in rust_files("src").iter().chain(&rust_files("tests/it")).chain(&rust_files("crates")) {
        let name = file.file_name().unwrap().to_str().unwrap();
        assert!(!refused.contains(&name), "{} says nothing of what is in it", file.display());
    }
}

#[test]
fn only_the_worker_is_unsafe() {
    let keyword = concat!("un", "safe");
    let is_code = |line: &str| {
        let code = line.split("//").next().unwrap_or_default();
        code.split(|letter: char| !letter.is_alphanumeric() && letter != '_').any(|word| word == keyword)
    };
    for folder in ["src", "crates/protocol", "tests/it"] {
        for file in rust_files(folder) {
            let text = read(&root().join(&file));
            assert!(!text.lines().any(is_code), "{} is {keyword}", file.display());
        }
    }
    let forbids = format!("#![forbid({keyword}_code)]");
    for root_file in ["src/lib.rs", "crates/protocol/src/lib.rs"] {
        assert!(read(&root().join(root_file)).contains(&forbids), "{root_file} does not forbid it");
    }
}

#[test]
fn every_unsafe_block_of_the_worker_says_why_it_is_sound() {
    let opening = concat!("un", "safe {");
    for file in rust_files("crates/worker/src") {
        let text = read(&root().join(&file));
        let lines: Vec<&str> = text.lines().collect();
        for (number, line) in lines.iter().enumerate().filter(|(_, line)| line.contains(opening)) {
            let said = lines[number.saturating_sub(6)..=number].iter().any(|line| line.contains("SAFETY"));
            assert!(said, "{}:{}: {}", file.display(), number + 1, line.trim());
        }
    }
}
