//! Mutants of honest kernels: `tests/mutants/mutants.yaml` has small edits, such as a careless author or a language model makes. Each edit makes a variant beside the
//! kernel that it is of, and a check on the interpreter must tell them apart. docs/reference/judging-evidence.md has the table.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;

use crate::environment;
use crate::real::adoption;
use crate::whole::{self, PART};
use crate::workspace::Workspace;

/// The fewest that the library has.
const LEAST: usize = 100;

/// The most that the judge may let pass.
const MOST_MISSED: usize = 7;

/// The variant whose kernels are those of `tests/adoption`; all others are this repository's.
const ADOPTED: &str = "honest";

/// By `OP/VARIANT`, the kernel that is edited, and by name its mutants.
type Library = BTreeMap<String, BTreeMap<String, Mutant>>;

/// One edit.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mutant {
    /// The row of docs/reference/judging-evidence.md that counts it.
    kind: String,
    /// What stands once in the kernel's file.
    find: String,
    /// What stands there in its place.
    replace: String,
    /// What that does.
    why: String,
    /// The classes of which the check must give one.
    #[serde(default)]
    gets: Vec<String>,
    /// Why the judge lets it pass, if it does.
    miss: Option<String>,
    /// Whether only edges, reach and probes show it.
    #[serde(default)]
    unseen: bool,
}

#[test]
fn some_mutants_of_this_repositorys_kernels_are_rejected_and_the_kernels_pass() {
    hold(|variant| variant != ADOPTED, "", PART);
}

#[test]
fn some_mutants_of_adopted_kernels_are_rejected_and_the_kernels_pass() {
    hold(|variant| variant == ADOPTED, "tests/adoption", PART);
}

#[test]
#[ignore = "takes minutes; tests/whole.json tells whether it has to run"]
fn whole_mutants_are_rejected_and_the_kernels_pass() {
    hold(|variant| variant != ADOPTED, "", 1);
    hold(|variant| variant == ADOPTED, "tests/adoption", 1);
    whole::MUTANTS.note(&environment::root());
}

#[test]
fn every_mutant_is_one_edit_that_changes_its_kernel() {
    for (kernel, mutants) in library() {
        let text = fs::read_to_string(environment::root().join(file(&kernel))).unwrap();
        let mut made = BTreeSet::from([text.clone()]);
        for (name, mutant) in mutants {
            let found = text.matches(&mutant.find).count();
            assert_eq!(found, 1, "{kernel} {name}: `{}` stands there so often", mutant.find);
            assert!(made.insert(edited(&text, &mutant)), "{kernel} {name}: it is the kernel, or another mutant");
            assert!(mutant.gets.is_empty() == mutant.miss.is_some(), "{kernel} {name}: it gets a class or is missed");
            assert!(!mutant.gets.contains(&"passed".to_owned()), "{kernel} {name}: what passes is missed");
            let is_sentence = mutant.why.ends_with('.') && mutant.miss.as_ref().is_none_or(|why| why.ends_with('.'));
            assert!(is_sentence, "{kernel} {name}: what is said of it is a sentence");
        }
    }
}

#[test]
fn the_library_is_large_and_the_judge_misses_few_of_it() {
    let library = library();
    let all = || library.values().flat_map(BTreeMap::values);
    let ops: BTreeSet<&str> = library.keys().map(|kernel| kernel.split_once('/').unwrap().0).collect();
    assert!(all().count() >= LEAST && ops.len() >= 16, "{} mutants of {} ops", all().count(), ops.len());
    assert!(all().filter(|mutant| mutant.unseen).count() >= 20);
    assert!(all().filter(|mutant| mutant.miss.is_some()).count() <= MOST_MISSED);
}

#[test]
fn the_table_of_mutants_is_current() {
    let docs = fs::read_to_string(environment::root().join("docs/reference/judging-evidence.md")).unwrap();
    let (_, rest) =
        docs.split_once("\n### Mutants\n").expect("docs/reference/judging-evidence.md has a section `Mutants`");
    let section = rest.split("\n## ").next().unwrap();
    let stands: Vec<&str> = section.lines().filter(|line| line.starts_with("| ")).collect();
    let rows = [counted(&library()), missed(&library())].concat();
    assert!(
        stands == rows,
        "the tables of docs/reference/judging-evidence.md, section `Mutants`, should be\n{}",
        rows.join("\n")
    );
}

/// Checks kernels of some variants with every n-th of their mutants, and holds each to what it deserves. `folder` has their ops.yaml.
fn hold(is_of: impl Fn(&str) -> bool, folder: &str, every: usize) {
    let mut library = library();
    library.retain(|kernel, _| is_of(kernel.split_once('/').unwrap().1));
    let mut number = 0..;
    for mutants in library.values_mut() {
        mutants.retain(|_, _| number.next().unwrap() % every == 0);
    }
    library.retain(|_, mutants| !mutants.is_empty());
    let (workspace, ops) = workspace(&library, folder);
    // Checks alone: a mutant is no less wrong where it compiles, and nothing is asked of how it does.
    let targets: Vec<String> = ops.iter().map(|op| format!("{op}:check")).collect();
    let ran = workspace.build(&targets.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(ran.code, Some(1), "{}", ran.told);
    let wrong: Vec<String> = library.iter().flat_map(|(kernel, mutants)| wrong(&workspace, kernel, mutants)).collect();
    assert!(wrong.is_empty(), "{}\n{}", wrong.join("\n"), ran.told);
    // The values of declared cases are new in each build: now and then one of them shows what it seldom does.
    let (all, seen) = unseen(&workspace, &library);
    assert!(10 * seen.len() <= all.max(10), "declared cases reject {} of {all}: {}", seen.len(), seen.join(", "));
}

/// Returns a line for the kernel and for each of its mutants that got something else than it deserves.
fn wrong(workspace: &Workspace, kernel: &str, mutants: &BTreeMap<String, Mutant>) -> Vec<String> {
    let honest = workspace.outcome(&format!("{kernel}:check"));
    let mut found = Vec::new();
    if honest != "passed" {
        found.push(format!("{kernel} is {honest}, and honest"));
    }
    for (name, mutant) in mutants {
        let target = format!("{kernel}-{name}:check");
        let got = workspace.outcome(&target);
        let is_deserved = if mutant.miss.is_some() { got == "passed" } else { mutant.gets.contains(&got) };
        if !is_deserved {
            let deserved =
                if mutant.miss.is_some() { "is listed as missed".to_owned() } else { mutant.gets.join(" or ") };
            found.push(format!("{target} is {got}: {deserved}"));
        }
    }
    found
}

/// Returns the mutants that no declared case is said to reject, and of those the ones that one did.
fn unseen(workspace: &Workspace, library: &Library) -> (usize, Vec<String>) {
    let mutants =
        library.iter().flat_map(|(kernel, mutants)| mutants.iter().map(move |(name, one)| (kernel, name, one)));
    let targets: Vec<String> = mutants
        .filter(|(_, _, mutant)| mutant.unseen)
        .map(|(kernel, name, _)| format!("{kernel}-{name}:check"))
        .collect();
    let is_seen = |target: &&String| !declared_rejections(&workspace.document(target, "verdict")).is_empty();
    (targets.len(), targets.iter().filter(is_seen).cloned().collect())
}

/// Returns the declared cases that a verdict rejects.
fn declared_rejections(verdict: &Value) -> Vec<String> {
    let cases = verdict["cases"].as_object().unwrap().iter().filter(|(_, verdict)| *verdict == "rejected");
    let names = cases.map(|(name, _)| name.clone());
    names.filter(|name| !name.starts_with("edge/") && !name.starts_with("reach/")).collect()
}

/// Makes a workspace of the kernels of `folder` in which those of the library have their mutants beside them, and returns it with the library's ops.
fn workspace(library: &Library, folder: &str) -> (Workspace, BTreeSet<String>) {
    let workspace = if folder.is_empty() { own() } else { adoption::copied(folder) };
    let mut variants: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (kernel, mutants) in library {
        let (op, variant) = kernel.split_once('/').unwrap();
        let of_op = variants.entry(op.to_owned()).or_default();
        of_op.push(variant.to_owned());
        let text = workspace.read(&format!("kernels/{kernel}.py"));
        for (name, mutant) in mutants {
            of_op.push(format!("{variant}-{name}"));
            workspace.write(&format!("kernels/{kernel}-{name}.py"), edited(&text, mutant));
        }
    }
    for (op, names) in &variants {
        let op = format!("\n  {op}:\n");
        workspace.edit("ops.yaml", &op, &format!("{op}    variants: [{}]\n", names.join(", ")));
    }
    (workspace, variants.into_keys().collect())
}

/// Returns a workspace of this repository's ops.
fn own() -> Workspace {
    let folder = environment::root();
    let workspace = Workspace::with_zygote(&fs::read_to_string(folder.join("ops.yaml")).unwrap());
    for op in fs::read_dir(folder.join("kernels")).unwrap() {
        let files = fs::read_dir(op.unwrap().path()).unwrap().map(|file| file.unwrap().path());
        for file in files.filter(|file| file.extension().is_some_and(|end| end == "py")) {
            let name = file.strip_prefix(&folder).unwrap().to_str().unwrap();
            workspace.copy(name, name);
        }
    }
    workspace
}

fn edited(text: &str, mutant: &Mutant) -> String {
    text.replacen(&mutant.find, &mutant.replace, 1)
}

/// Returns the file of a kernel of the library.
fn file(kernel: &str) -> PathBuf {
    let folder = if kernel.ends_with(&format!("/{ADOPTED}")) { "tests/adoption/kernels" } else { "kernels" };
    PathBuf::from(folder).join(format!("{kernel}.py"))
}

fn library() -> Library {
    let text = fs::read_to_string(environment::root().join("tests/mutants/mutants.yaml")).unwrap();
    serde_saphyr::from_str(&text).unwrap()
}

/// Returns the rows of the first table: by kind, how many there are, how many are rejected, how many of those pass all declared cases, and with what classes.
fn counted(library: &Library) -> Vec<String> {
    let mut kinds: BTreeMap<&str, Vec<&Mutant>> = BTreeMap::new();
    for mutant in library.values().flat_map(BTreeMap::values) {
        kinds.entry(&mutant.kind).or_default().push(mutant);
    }
    let mut rows = vec![
        "| kind | mutants | caught | by no declared case | classes |".to_owned(),
        "| --- | --- | --- | --- | --- |".to_owned(),
    ];
    rows.extend(kinds.iter().map(|(kind, mutants)| counted_row(kind, mutants)));
    let all: Vec<&Mutant> = kinds.into_values().flatten().collect();
    rows.push(counted_row("all", &all));
    rows
}

fn counted_row(kind: &str, mutants: &[&Mutant]) -> String {
    let caught = mutants.iter().filter(|mutant| mutant.miss.is_none()).count();
    let unseen = mutants.iter().filter(|mutant| mutant.unseen).count();
    let classes: BTreeSet<String> =
        mutants.iter().flat_map(|mutant| &mutant.gets).map(|class| format!("`{class}`")).collect();
    let classes: Vec<String> = classes.into_iter().collect();
    format!("| {kind} | {} | {caught} | {unseen} | {} |", mutants.len(), classes.join(", "))
}

/// Returns the rows of the second table: what is missed, and why.
fn missed(library: &Library) -> Vec<String> {
    let mut rows = vec!["| missed | what it does | why it passes |".to_owned(), "| --- | --- | --- |".to_owned()];
    for (kernel, mutants) in library {
        let missed = mutants.iter().filter_map(|(name, mutant)| mutant.miss.as_ref().map(|miss| (name, mutant, miss)));
        rows.extend(missed.map(|(name, mutant, miss)| format!("| `{kernel}` `{name}` | {} | {miss} |", mutant.why)));
    }
    rows
}
