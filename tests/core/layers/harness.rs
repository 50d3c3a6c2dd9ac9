//! The packages of the harness, and what they import.
//!
//! It does not know what their functions do.

use std::fs;
use std::path::Path;

use t2t_model::action::Phase;
use t2t_store::harness::Harness;

use super::{files, read, root};

/// Where the harness lies.
const HARNESS: &str = "python/t2t_harness";

/// The packages of the harness: each uses only those above it, as docs/design/harness.md says.
const PACKAGES: &[&str] = &[
    "boundary",
    "sources",
    "faults",
    "op",
    "counting",
    "triton",
    "cuda",
    "cases",
    "measuring",
    "judging",
    "phases",
    "server",
];

/// What only chooses the cases of a check, or makes their inputs, in the package `cases`: how the names of the files begin.
const OF_CHECKS: &[&str] = &[
    "arguments_",
    "beforehand",
    "budget",
    "inputs",
    "listing",
    "literals",
    "pace",
    "probe",
    "probing",
    "reach",
    "unusual",
];

/// Returns what the harness's files import of the harness, wherever in a file it stands, as the rest of the line after `t2t_harness`.
fn imported(text: &str) -> Vec<&str> {
    let lines =
        text.lines().map(str::trim_start).filter(|line| line.starts_with("from ") || line.starts_with("import "));
    lines.flat_map(|line| line.split("t2t_harness").skip(1)).collect()
}

#[test]
fn a_package_of_the_harness_uses_only_packages_above_it() {
    let mut wrong = Vec::new();
    for file in files(HARNESS, "py") {
        let text = read(&root().join(&file));
        let Some(own) =
            file.strip_prefix(HARNESS).unwrap().parent().and_then(Path::to_str).filter(|own| !own.is_empty())
        else {
            assert_eq!(file.file_name().unwrap(), "__init__.py", "{} lies in no package", file.display());
            continue;
        };
        let place = |name: &str| PACKAGES.iter().position(|other| *other == name);
        let own_place = place(own).unwrap_or_else(|| panic!("`PACKAGES` does not list `{own}`"));
        for rest in imported(&text) {
            let name = rest.strip_prefix('.').unwrap_or_default().split(['.', ' ']).next().unwrap();
            if place(name).is_none_or(|other| other > own_place) {
                wrong.push(format!("{} imports `t2t_harness{rest}`", file.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_docs_have_the_packages_of_the_harness_in_their_order() {
    let page = read(&root().join("docs/design/harness.md"));
    let (_, section) = page.split_once("\n## The packages\n").unwrap();
    let rows = section.split("\n## ").next().unwrap().lines().filter_map(|line| line.strip_prefix("| `"));
    assert_eq!(rows.map(|row| row.split('`').next().unwrap()).collect::<Vec<_>>(), PACKAGES);
}

#[test]
fn a_package_of_the_harness_says_what_it_is_and_imports_nothing() {
    for package in PACKAGES {
        let text = read(&root().join(HARNESS).join(package).join("__init__.py"));
        assert_eq!(text.lines().count(), 1, "{package}");
    }
    for file in files(HARNESS, "py") {
        let text = read(&root().join(&file));
        assert!(text.starts_with("\"\"\""), "{} does not open with a docstring", file.display());
        assert!(!text.contains("from ."), "{} imports by a relative name", file.display());
    }
}

#[test]
fn the_reader_of_imports_sees_them_wherever_they_stand() {
    let text = "import sys\nfrom t2t_harness.op import flops\n    from t2t_harness.cases.cases import Case\nname = 't2t_harness.x'\n\
                import t2t_harness.judging\nfrom t2t_harness import warm\n";
    assert_eq!(imported(text), [".op import flops", ".cases.cases import Case", ".judging", " import warm"]);
}

#[test]
fn what_is_measured_does_not_depend_on_what_chooses_the_cases_of_a_check() {
    let copy = tempfile::tempdir().unwrap();
    let place = |file: &Path| copy.path().join(file.strip_prefix("python").unwrap());
    for file in files(HARNESS, "py") {
        fs::create_dir_all(place(&file).parent().unwrap()).unwrap();
        fs::copy(root().join(&file), place(&file)).unwrap();
    }
    let meanings = || {
        let known = tempfile::tempdir().unwrap();
        Harness::open(Some(copy.path())).unwrap().meanings(known.path()).phases
    };
    let before = meanings();
    let cases = files(&format!("{HARNESS}/cases"), "py");
    let begins = |file: &Path, name: &str| file.file_name().unwrap().to_str().unwrap().starts_with(name);
    for name in OF_CHECKS {
        assert!(cases.iter().any(|file| begins(file, name)), "no file is called `{name}…`");
    }
    for file in cases.iter().filter(|file| OF_CHECKS.iter().any(|name| begins(file, name))) {
        fs::write(place(file), format!("{}\nCHANGED = 1\n", read(&place(file)))).unwrap();
    }
    let changed = meanings().into_iter().filter(|(phase, digest)| before[phase] != *digest);
    assert_eq!(changed.map(|(phase, _)| phase).collect::<Vec<_>>(), [Phase::Compile, Phase::Check]);
}
