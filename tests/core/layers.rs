//! The rules that no single file can hold: which crate and which module may use which, what every file opens with, where the boundaries lie.
//!
//! It asks cargo and reads the source text, and knows nothing of what the modules do.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use serde_json::Value;

mod harness;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Lists the `.rs` files in `folder` and below it, relative to the repository, sorted.
fn rust_files(folder: &str) -> Vec<PathBuf> {
    files(folder, "rs")
}

/// Lists the files in `folder` and below it that end in `ending`, relative to the repository, sorted.
fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let mut open = vec![root().join(folder)];
    let mut found = Vec::new();
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|found| found == ending) {
                found.push(path.strip_prefix(root()).unwrap().to_owned());
            }
        }
    }
    found.sort();
    found
}

/// The crates whose code is pure, and what of others each may use itself: nothing that touches files, processes, threads, networks, clocks or the environment.
const PURE: &[(&str, &[&str])] = &[
    ("t2t-model", &["blake3", "serde", "serde_json", "ssh-key", "thiserror"]),
    ("t2t-cuda", &[]),
    // `stacker` takes memory for a deep tree's stack.
    ("t2t-python", &["ruff_python_ast", "ruff_python_parser", "serde", "stacker"]),
    ("t2t-spec", &["granit-parser", "ruff_python_ast", "ruff_python_parser", "serde", "serde_json", "strsim"]),
    ("t2t-generate", &["minijinja", "serde", "serde_json", "strsim", "thiserror"]),
    ("t2t-report", &["csv", "jiff", "minijinja", "plotters", "serde", "serde_json", "thiserror", "unicode-width"]),
    ("t2t-plan", &["petgraph", "serde_json", "strsim", "thiserror"]),
    // `schemars` is for the schema alone, which the product does not have.
    ("t2t-protocol", &["schemars", "serde", "serde_json", "serde_path_to_error"]),
];

/// What no pure crate may reach, through others or not: whatever such a crate uses in the end stands on one of these.
const OUTSIDE: &[&str] = &[
    "crossbeam-deque",
    "crossbeam-utils",
    "dirs",
    "filetime",
    "getrandom",
    "inotify",
    "memmap2",
    "mio",
    "nix",
    "notify",
    "opendal",
    "parking_lot",
    "rayon",
    "rayon-core",
    "reqwest",
    "rustix",
    "rustls",
    "signal-hook",
    "socket2",
    "t2t-host",
    "t2t-store",
    "tar",
    "tempfile",
    "tokio",
    "walkdir",
];

/// The crates of t2t, and which of them each may use.
const CRATES: &[(&str, &[&str])] = &[
    ("t2t-model", &[]),
    ("t2t-cuda", &["t2t-model"]),
    ("t2t-python", &["t2t-model"]),
    ("t2t-spec", &["t2t-model", "t2t-protocol", "t2t-python"]),
    ("t2t-generate", &[]),
    ("t2t-report", &["t2t-model", "t2t-protocol"]),
    ("t2t-protocol", &[]),
    ("t2t-plan", &["t2t-model", "t2t-protocol", "t2t-report", "t2t-spec"]),
    ("t2t-store", &["t2t-cuda", "t2t-model", "t2t-python", "t2t-spec"]),
    ("t2t-host", &["t2t-model", "t2t-protocol", "t2t-spec", "t2t-store"]),
    (
        "t2t",
        &[
            "t2t-generate",
            "t2t-host",
            "t2t-model",
            "t2t-plan",
            "t2t-protocol",
            "t2t-python",
            "t2t-report",
            "t2t-spec",
            "t2t-store",
        ],
    ),
    ("t2t-worker", &["t2t-protocol"]),
];

/// Runs cargo in the repository, offline, and returns what it prints.
fn cargo(arguments: &[&str]) -> String {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let ran = Command::new(cargo).args(arguments).args(["--offline", "--locked"]).current_dir(root()).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}

/// The package of benches, which is no layer.
const BENCHES: &str = "t2t-benches";

/// Returns what each crate of t2t depends on itself, but for its tests and its build script.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let text = cargo(&["metadata", "--no-deps", "--format-version", "1"]);
    let metadata: Value = serde_json::from_str(&text).unwrap();
    let name = |value: &Value| value["name"].as_str().unwrap().to_owned();
    let of = |package: &Value| {
        let all = package["dependencies"].as_array().unwrap().iter();
        all.filter(|dependency| dependency["kind"].is_null()).map(name).collect()
    };
    let packages = metadata["packages"].as_array().unwrap().iter().filter(|package| package["name"] != BENCHES);
    packages.map(|package| (name(package), of(package))).collect()
}

/// Returns the folder of a crate's source, relative to the repository.
fn source_of(package: &str) -> String {
    package.strip_prefix("t2t-").map_or_else(|| "src".to_owned(), |name| format!("crates/{name}/src"))
}

/// Returns the folders of source of all crates, and of these tests.
fn folders() -> Vec<String> {
    CRATES.iter().map(|(name, _)| source_of(name)).chain(["tests/core", "tests/it"].map(str::to_owned)).collect()
}

#[test]
fn a_crate_uses_only_the_crates_that_it_may() {
    let found = dependencies();
    assert_eq!(found.len(), CRATES.len(), "a crate of the workspace has no line in `CRATES`");
    for (name, may) in CRATES {
        let own = found[*name].iter().map(String::as_str).filter(|other| other.starts_with("t2t"));
        assert_eq!(own.collect::<Vec<_>>(), *may, "{name}");
    }
}

#[test]
fn a_pure_crate_reaches_nothing_that_touches_the_outside() {
    let direct = dependencies();
    for (name, may) in PURE {
        let others = direct[*name].iter().map(String::as_str).filter(|other| !other.starts_with("t2t"));
        let refused: Vec<&str> = others.filter(|other| !may.contains(other)).collect();
        assert!(refused.is_empty(), "{name} uses {refused:?}, which `PURE` does not list");
        let tree = cargo(&["tree", "--edges", "normal", "--package", name, "--prefix", "none", "--format", "{p}"]);
        let reached: BTreeSet<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
        assert!(reached.contains(name));
        let outside: Vec<&&str> = OUTSIDE.iter().filter(|other| reached.contains(**other)).collect();
        assert!(outside.is_empty(), "{name} reaches {outside:?}");
    }
}

/// Returns the paths that a list of clippy refuses.
fn refused(list: &str) -> BTreeSet<String> {
    let lines = read(&root().join(list));
    let path = |line: &str| Some(line.trim_start().strip_prefix("{ path = \"")?.split('"').next()?.to_owned());
    lines.lines().filter_map(path).collect()
}

/// The list of the pure crates: the standard library is in reach of every crate, and this keeps it out.
const PURE_LIST: &str = "crates/pure.clippy.toml";

#[test]
fn clippy_reads_the_list_of_the_pure_crates_for_each_of_them_and_for_no_other() {
    for (name, _) in CRATES.iter().filter(|(name, _)| !matches!(*name, "t2t" | "t2t-worker")) {
        let own = root().join(source_of(name)).with_file_name("clippy.toml");
        let leads = fs::read_link(&own).ok();
        let expected = PURE.iter().any(|(pure, _)| pure == name).then(|| PathBuf::from("../pure.clippy.toml"));
        assert_eq!(leads, expected, "{}", own.display());
        assert!(expected.is_some() || !own.exists(), "{name} has a list of its own");
    }
}

#[test]
fn what_is_refused_to_every_crate_is_refused_to_the_pure_ones_too() {
    let (all, pure) = (refused("clippy.toml"), refused(PURE_LIST));
    assert!(!all.is_empty() && all.is_subset(&pure), "{:?}", all.difference(&pure));
    for path in ["std::fs::read", "std::env::var", "std::time::Instant::now", "std::thread::spawn", "std::sync::Mutex"]
    {
        assert!(pure.contains(path) && !all.contains(path), "{path}");
    }
}

#[test]
fn a_pure_crate_lifts_no_lint_that_keeps_it_pure() {
    for (name, _) in PURE {
        for file in rust_files(&source_of(name)) {
            let text = read(&root().join(&file));
            for lint in ["disallowed_methods", "disallowed_types", "print_stdout", "print_stderr"] {
                assert!(!text.contains(lint), "{} lifts clippy::{lint}", file.display());
            }
        }
    }
}

/// What talks to the servers of a remote cache.
const SERVERS: &[&str] = &["http", "opendal", "opendal-http-transport-reqwest", "reqwest", "rustls", "tokio"];

#[test]
fn without_the_feature_for_it_nothing_of_the_remote_cache_is_in_the_binary() {
    let tree = |features: &[&str]| {
        let asked = ["tree", "--edges", "normal", "--package", "t2t", "--prefix", "none", "--format", "{p}"];
        cargo(&[&asked, features].concat())
    };
    let (with, without) = (tree(&[]), tree(&["--no-default-features"]));
    let has = |tree: &str, name: &str| tree.lines().any(|line| line.split(' ').next() == Some(name));
    assert!(SERVERS.iter().all(|name| has(&with, name)), "{with}");
    let left: Vec<&&str> = SERVERS.iter().filter(|name| has(&without, name)).collect();
    assert!(left.is_empty() && has(&without, "t2t-store"), "{left:?}");
}

#[test]
fn every_crate_but_the_worker_has_the_lints_of_the_workspace() {
    let workspace = read(&root().join("Cargo.toml"));
    assert!(workspace.contains(concat!("un", "safe_code = \"forbid\"")));
    for (name, _) in CRATES.iter().filter(|(name, _)| *name != "t2t-worker") {
        let manifest = root().join(source_of(name)).with_file_name("Cargo.toml");
        assert!(read(&manifest).contains("\n[lints]\nworkspace = true\n"), "{name} does not");
    }
}

/// Reads the modules that a crate's `lib.rs` declares, in order.
fn declared(source: &str) -> Vec<String> {
    let lines = read(&root().join(source).join("lib.rs"));
    let module = |line: &str| Some(line.trim_start_matches("pub ").strip_prefix("mod ")?.strip_suffix(';')?.to_owned());
    lines.lines().filter_map(module).collect()
}

/// Returns the top-level module that a file of a crate belongs to; none for `lib.rs` and `main.rs`.
fn module_of(source: &str, file: &Path) -> Option<String> {
    let part = file.strip_prefix(source).ok()?.components().next()?;
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

/// The crates whose `lib.rs` is a map of modules and has nothing else in it.
const MAPS: &[&str] = &["t2t-model", "t2t-generate", "t2t-report", "t2t-plan", "t2t-store", "t2t-host", "t2t"];

#[test]
fn a_module_uses_only_modules_declared_above_it() {
    let mut wrong = Vec::new();
    for source in MAPS.iter().map(|name| source_of(name)) {
        let order = declared(&source);
        let place = |name: &str| order.iter().position(|other| other == name);
        for file in rust_files(&source) {
            let Some(own) = module_of(&source, &file) else { continue };
            let own_place = place(&own).unwrap_or_else(|| panic!("{source}/lib.rs declares no `{own}`"));
            for name in used(&read(&root().join(&file))) {
                match place(&name) {
                    Some(other) if other <= own_place => {}
                    Some(_) => wrong.push(format!("{} uses `{name}`, declared below `{own}`", file.display())),
                    None => wrong.push(format!("{} uses `crate::{name}`, no module of its crate", file.display())),
                }
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

/// What changes a property of the process it is called in, for as long as that lives.
const LASTING: &[&str] = &[
    "keep_off_devices",
    "sched_setaffinity",
    "set_var(",
    "remove_var(",
    "set_current_dir",
    "setrlimit",
    "set_hook",
    "umask(",
];

/// Returns what of [`LASTING`] the code of a file names, its comments left out.
fn lasting(text: &str) -> Vec<&'static str> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    LASTING.iter().copied().filter(|name| lines.iter().any(|line| line.contains(name))).collect()
}

#[test]
fn the_engine_changes_no_property_of_its_process() {
    let mut files = rust_files("src/engine");
    files.push(PathBuf::from("src/engine.rs"));
    for file in files {
        let found = lasting(&read(&root().join(&file)));
        assert!(found.is_empty(), "{} calls {found:?}, which is for a command to do", file.display());
    }
    for command in ["build/round", "edit", "watch/round", "sweep", "improve"] {
        let text = read(&root().join("src/cli").join(command).with_extension("rs"));
        assert_eq!(lasting(&text), ["keep_off_devices"], "`{command}` runs children beside devices");
    }
}

#[test]
fn every_integration_test_is_declared() {
    for folder in ["tests/core", "tests/it"] {
        for file in rust_files(folder).iter().filter(|file| !file.ends_with("main.rs")) {
            let above = file.parent().unwrap();
            let by = if above == Path::new(folder) { above.join("main.rs") } else { above.with_extension("rs") };
            let declaration = format!("mod {};", file.file_stem().unwrap().to_str().unwrap());
            let text = read(&root().join(&by));
            let is_declared = text.lines().any(|line| line.trim().trim_start_matches("pub ") == declaration);
            assert!(is_declared, "{} does not declare `{}`", by.display(), file.display());
        }
    }
}

#[test]
fn every_file_opens_by_saying_what_it_is() {
    // The tests of a module in a file of their own go with that module.
    let opens = |file: &Path| file.ends_with("tests.rs") || read(&root().join(file)).starts_with("//! ");
    for folder in folders() {
        let bare: Vec<PathBuf> = rust_files(&folder).into_iter().filter(|file| !opens(file)).collect();
        assert!(bare.is_empty(), "these do not open with `//!`: {bare:?}");
    }
}

#[test]
fn no_folder_of_source_has_a_file_for_everything_else() {
    let refused = ["mod.rs", "utils.rs", "helpers.rs", "common.rs", "types.rs", "prelude.rs"];
    for file in folders().iter().flat_map(|folder| rust_files(folder)) {
        let name = file.file_name().unwrap().to_str().unwrap();
        assert!(!refused.contains(&name), "{} says nothing of what is in it", file.display());
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
