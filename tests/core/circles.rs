//! No modules of a crate use each other in a circle.
//!
//! The rule: modules are compared where their paths part, so `engine::perform::step`, which uses `session`, makes `engine` use `session`, in the crate's own folder. Those in one
//! folder form no circle. A child may use what its parent has, and a parent its children: they are one thing, in several files. A use of a re-export is a use of the module that
//! re-exports. Unit tests may use what they like.
//!
//! It reads source text: `use` trees and paths that begin with `crate`, `super` or `self`, in macros, too. It knows nothing of what the modules do.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// A module's path in its crate; that of `lib.rs` is empty.
type Module = Vec<String>;

/// Which names in one folder use which others of it.
type Uses = BTreeMap<String, BTreeSet<String>>;

/// Returns the code of a file without comments, nor its unit tests.
fn code(text: &str) -> String {
    let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    code.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// Splits code into names, `::` and single other characters.
fn tokens(code: &str) -> Vec<&str> {
    let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut found = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if is_name(first) {
            rest.find(|letter| !is_name(letter)).unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        let (token, after) = rest.split_at(length);
        found.push(token);
        rest = after.trim_start();
    }
    found
}

/// Adds to `found` what the path or the `use` tree at the start of `rest` names below `base`, and returns what follows it.
fn tree<'t>(mut rest: &'t [&'t str], mut base: Module, found: &mut BTreeSet<Module>) -> &'t [&'t str] {
    if let ["{", inner @ ..] = rest {
        rest = inner;
        loop {
            rest = match rest {
                ["}", after @ ..] => return after,
                [] => return rest,
                [",", after @ ..] => after,
                _ => tree(rest, base.clone(), found),
            };
        }
    }
    let [name, after @ ..] = rest else { return rest };
    match *name {
        "self" => {}
        "super" => _ = base.pop(),
        name => base.push(name.to_owned()),
    }
    match after {
        ["::", below @ ..] => tree(below, base, found),
        ["as", _, after @ ..] => {
            found.insert(base);
            after
        }
        _ => {
            found.insert(base);
            after
        }
    }
}

/// Returns the paths that the file of `module` names in its crate.
fn named(module: &Module, text: &str) -> BTreeSet<Module> {
    let code = code(text);
    let tokens = tokens(&code);
    let mut found = BTreeSet::new();
    for at in 0..tokens.len() {
        // What follows `::` is part of a path that began before.
        if at > 0 && tokens[at - 1] == "::" {
            continue;
        }
        match tokens[at..] {
            ["crate", "::", ref rest @ ..] => _ = tree(rest, Module::new(), &mut found),
            ["super" | "self", "::", ..] => _ = tree(&tokens[at..], module.clone(), &mut found),
            _ => {}
        }
    }
    found
}

/// Returns, by folder, which of its modules use which others of it.
fn uses(files: &BTreeMap<Module, String>) -> BTreeMap<Module, Uses> {
    let mut found: BTreeMap<Module, Uses> = BTreeMap::new();
    for (module, text) in files {
        for mut other in named(module, text) {
            // What is no module is an item of one.
            while !other.is_empty() && !files.contains_key(&other) {
                other.pop();
            }
            let shared = module.iter().zip(&other).take_while(|(own, its)| own == its).count();
            if let (Some(own), Some(its)) = (module.get(shared), other.get(shared)) {
                let folder = found.entry(module[..shared].to_vec()).or_default();
                folder.entry(own.clone()).or_default().insert(its.clone());
            }
        }
    }
    found
}

/// Returns the names that are on a circle of `uses`.
fn on_circles(uses: &Uses) -> BTreeSet<&str> {
    let reaches_itself = |start: &str| {
        let mut seen = BTreeSet::new();
        let mut open = vec![start];
        while let Some(name) = open.pop() {
            for next in uses.get(name).into_iter().flatten() {
                if next == start {
                    return true;
                }
                if seen.insert(next.as_str()) {
                    open.push(next);
                }
            }
        }
        false
    };
    uses.keys().map(String::as_str).filter(|name| reaches_itself(name)).collect()
}

/// Returns a line for each folder with a circle: the names that are on one, and which of them each uses.
fn circles(files: &BTreeMap<Module, String>) -> Vec<String> {
    let mut lines = Vec::new();
    for (folder, uses) in uses(files) {
        let on = on_circles(&uses);
        let told = on.iter().map(|name| {
            let others: Vec<&str> = uses[*name].iter().map(String::as_str).filter(|other| on.contains(other)).collect();
            format!("{name} → {}", others.join(", "))
        });
        let told: Vec<String> = told.collect();
        if !told.is_empty() {
            lines.push(format!("in `{}`: {}", folder.join("::"), told.join("; ")));
        }
    }
    lines
}

/// Reads the files of the crate in the folder `source`, below the folder of `module`.
fn read(source: &Path, module: &Module, files: &mut BTreeMap<Module, String>) {
    for entry in fs::read_dir(source).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let own = || module.iter().cloned().chain([name.clone()]).collect();
        if path.is_dir() {
            read(&path, &own(), files);
        } else if path.extension().is_some_and(|ending| ending == "rs") && !matches!(name.as_str(), "main" | "tests") {
            let own = if module.is_empty() && name == "lib" { Module::new() } else { own() };
            files.insert(own, fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn the_modules_of_a_folder_form_no_circle() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let crates = fs::read_dir(root.join("crates")).unwrap().map(|entry| entry.unwrap().path().join("src"));
    let crates = crates.filter(|source| source.is_dir());
    for source in crates.chain([root.join("src")]) {
        let mut files = BTreeMap::new();
        read(&source, &Module::new(), &mut files);
        assert!(files.contains_key(&Module::new()), "{} has no lib.rs", source.display());
        let found = circles(&files);
        assert!(found.is_empty(), "{}: {}", source.display(), found.join("\n"));
    }
}

/// Returns the circles of a crate of these files, each a path with `/` and its text.
fn of(files: &[(&str, &str)]) -> Vec<String> {
    let module = |path: &str| path.split('/').filter(|name| !name.is_empty()).map(str::to_owned).collect();
    circles(&files.iter().map(|(path, text)| (module(path), (*text).to_owned())).collect())
}

#[test]
fn a_circle_is_found_however_its_paths_are_written() {
    let told = ["in ``: a → b; b → a"];
    for (a, b) in [
        ("use crate::b::B;", "use super::a::A;"),
        ("use crate::{b::{self, B as Other}, c};", "fn f() { crate::a::make() }"),
        ("use super::{\n    c::C,\n    b,\n};", "fn f() { vec![super::a::X] }"),
        ("pub use crate::b;", "use crate::{c::{C, D}, a};"),
    ] {
        assert_eq!(of(&[("", ""), ("a", a), ("b", b), ("c", "")]), told, "{a} {b}");
    }
    assert_eq!(
        of(&[("", ""), ("a", "use crate::b;"), ("b", "use crate::c;"), ("c", "use crate::a;"), ("d", "use crate::a;")]),
        ["in ``: a → b; b → c; c → a"]
    );
}

#[test]
fn modules_are_compared_where_their_paths_part() {
    let deep = [("a", ""), ("a/x", "use crate::b::y::Y;"), ("b", ""), ("b/y", "use crate::a::x::X;"), ("", "")];
    assert_eq!(of(&deep), ["in ``: a → b; b → a"]);
    let inside = [("a", ""), ("a/x", "use super::y::Y;"), ("a/y", "use super::x;"), ("", "")];
    assert_eq!(of(&inside), ["in `a`: x → y; y → x"]);
}

#[test]
fn parent_and_child_are_no_circle_nor_are_comments_and_unit_tests() {
    let family = [("", "use self::a::A;"), ("a", "use self::x::X;"), ("a/x", "use super::A;\nuse crate::ROOT;")];
    assert_eq!(of(&family), Vec::<String>::new());
    let said = [
        ("", ""),
        ("a", "use crate::b::B;"),
        ("b", "//! See crate::a.\nfn f() {} // crate::a\n#[cfg(test)]\nmod tests {\n    use crate::a;\n}\n"),
    ];
    assert_eq!(of(&said), Vec::<String>::new());
}
