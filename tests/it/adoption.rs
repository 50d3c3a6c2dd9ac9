//! The workspace `tests/adoption`: ops in the manner of libraries that t2t has not seen, each with an honest kernel and a broken one, and the verdicts that they
//! deserve, in `expected.json` and in docs/reference/judging-evidence.md.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use t2t_model::action::DeviceClass;
use t2t_model::record::Outcome;
use t2t_spec::Spec;

use crate::environment;
use crate::whole::{self, PART};
use crate::workspace::Workspace;

/// What stands before the reason of a check that was not judged.
const NOT_JUDGED: &str = "not judged: ";

/// The two kernels of each op.
const VARIANTS: [&str; 2] = ["honest", "broken"];

#[test]
fn the_kernels_of_some_ops_get_the_verdicts_that_they_deserve() {
    hold(PART);
}

#[test]
#[ignore = "takes minutes; tests/whole.json tells whether it has to run"]
fn whole_every_kernel_gets_the_verdict_that_it_deserves() {
    hold(1);
    whole::ADOPTION.note(&environment::root());
}

/// Checks both kernels of every n-th op, and holds each to what it deserves.
fn hold(every: usize) {
    let workspace = workspace();
    let ops: Vec<String> = expected().into_keys().step_by(every).collect();
    let targets = ["--phase", "check"].into_iter().chain(ops.iter().map(String::as_str));
    let ran = workspace.build(&targets.collect::<Vec<_>>());
    assert_eq!(ran.code, Some(1), "{}", ran.told);
    let wrong = wrong_of(&workspace, &DeviceClass::Interpreter, &ops);
    assert!(wrong.is_empty(), "{}\n{}", wrong.join("\n"), ran.told);
}

#[test]
fn every_op_has_what_it_deserves_written_down() {
    let spec = spec();
    let ops: BTreeSet<&str> = spec.ops.iter().map(|op| op.name.as_str()).collect();
    let expected = expected();
    assert_eq!(ops, expected.keys().map(String::as_str).collect());
    assert!(ops.len() >= 60, "{} ops", ops.len());
    for (op, kernels) in &expected {
        let passes = kernels["honest"] == "passed" || words(&kernels["honest"])[0].starts_with(NOT_JUDGED);
        assert!(passes, "{op}: an honest kernel passes, or is not judged");
        let is_rejected =
            words(&kernels["broken"]).iter().all(|word| *word != "passed" && !word.starts_with(NOT_JUDGED));
        assert!(is_rejected, "{op}: a broken kernel is rejected");
    }
}

#[test]
fn the_table_of_verdicts_is_current() {
    let spec = spec();
    let rows: Vec<String> = expected().iter().map(|(op, kernels)| row(&spec, op, kernels)).collect();
    let docs = fs::read_to_string(environment::root().join("docs/reference/judging-evidence.md")).unwrap();
    let (_, rest) =
        docs.split_once("\n## Adoption\n").expect("docs/reference/judging-evidence.md has a section `Adoption`");
    let section = rest.split("\n## ").next().unwrap();
    let stands: Vec<&str> = section.lines().filter(|line| line.starts_with("| `")).collect();
    assert!(
        stands == rows,
        "the rows of docs/reference/judging-evidence.md, section `Adoption`, should be\n{}",
        rows.join("\n")
    );
}

/// Returns a line for each kernel that has another verdict on a device than it deserves.
pub fn wrong(workspace: &Workspace, device: &DeviceClass) -> Vec<String> {
    wrong_of(workspace, device, &expected().into_keys().collect::<Vec<_>>())
}

/// Returns those lines for the kernels of these ops.
fn wrong_of(workspace: &Workspace, device: &DeviceClass, ops: &[String]) -> Vec<String> {
    let expected = expected();
    let all = expected
        .iter()
        .filter(|(op, _)| ops.contains(op))
        .flat_map(|(op, kernels)| VARIANTS.map(|variant| (format!("{op}/{variant}:check"), &kernels[variant])));
    all.map(|(target, deserved)| (verdict(workspace, device, &target), target, deserved))
        .filter(|(got, _, deserved)| !words(deserved).iter().any(|word| is(got, word)))
        .map(|(got, target, deserved)| format!("{target} is {got}, and deserves {deserved}"))
        .collect()
}

/// Returns a copy of `tests/adoption`.
pub fn workspace() -> Workspace {
    copied("tests/adoption")
}

/// Returns a copy of a workspace of this repository: its ops.yaml and the files of its kernels.
pub fn copied(name: &str) -> Workspace {
    let folder = environment::root().join(name);
    let workspace = Workspace::with_zygote(&fs::read_to_string(folder.join("ops.yaml")).unwrap());
    for file in files(&folder) {
        let name = file.strip_prefix(&folder).unwrap().to_str().unwrap();
        workspace.write(name, fs::read(&file).unwrap());
    }
    workspace
}

fn folder() -> PathBuf {
    environment::root().join("tests/adoption")
}

/// The endings of the files that kernels are made from.
const ENDINGS: [&str; 3] = ["py", "cu", "cuh"];

/// Returns the Python files below `folder`, and those in CUDA C++.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<PathBuf>, Vec<PathBuf>) = entries.partition(|path| path.is_dir());
    let below = folders.iter().filter(|path| !path.ends_with("__pycache__")).flat_map(|path| self::files(path));
    files
        .into_iter()
        .filter(|path| path.extension().is_some_and(|end| ENDINGS.iter().any(|known| end == *known)))
        .chain(below)
        .collect()
}

/// Returns, by op, what its two kernels deserve: `passed`, a class, several of which one will do, or `not judged: ` and a part of the reason.
fn expected() -> BTreeMap<String, Value> {
    serde_json::from_slice(&fs::read(folder().join("expected.json")).unwrap()).unwrap()
}

fn spec() -> Spec {
    let text = fs::read(folder().join("ops.yaml")).unwrap();
    Spec::parse("ops.yaml", &text, None).unwrap_or_else(|problems| panic!("{}", t2t_model::problem::render(&problems)))
}

fn words(deserved: &Value) -> Vec<&str> {
    let several = deserved.as_array().map_or(std::slice::from_ref(deserved), Vec::as_slice);
    several.iter().map(|word| word.as_str().unwrap()).collect()
}

fn is(got: &str, word: &str) -> bool {
    match (got.strip_prefix(NOT_JUDGED), word.strip_prefix(NOT_JUDGED)) {
        (Some(reason), Some(part)) => reason.contains(part),
        _ => got == word,
    }
}

fn verdict(workspace: &Workspace, device: &DeviceClass, target: &str) -> String {
    match workspace.record_on(device.clone(), target).map(|record| record.outcome) {
        Some(Outcome::Passed) => "passed".to_owned(),
        Some(Outcome::Rejected { class }) => class,
        Some(Outcome::NotJudged { reason }) => format!("{NOT_JUDGED}{reason}"),
        Some(Outcome::Lost { reason }) => format!("lost: {reason}"),
        None => "not checked".to_owned(),
    }
}

/// Returns the row of an op: what its honest kernel does and deserves, what is wrong with the broken one and what that deserves.
fn row(spec: &Spec, op: &str, kernels: &Value) -> String {
    let cells = VARIANTS.map(|variant| {
        let deserved: Vec<String> = words(&kernels[variant]).iter().map(|word| format!("`{word}`")).collect();
        format!("{} | {}", told(spec, op, variant), deserved.join(" or "))
    });
    format!("| `{op}` | {} |", cells.join(" | "))
}

/// Returns the docstring of a kernel file.
fn told(spec: &Spec, op: &str, variant: &str) -> String {
    let file = &spec.op(op).unwrap().variant(variant).unwrap().file;
    let text = fs::read_to_string(folder().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
    text.split("\"\"\"").nth(1).unwrap().to_owned()
}
