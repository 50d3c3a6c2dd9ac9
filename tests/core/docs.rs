//! What docs/ says of keys, phases and formats, held against the code. docs/reference/ops-yaml.md has `spec_docs`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use t2t_model::action::{Action, DeviceClass, Phase};
use t2t_plan::graph::expand::expand;
use t2t_spec::Spec;

use crate::inventory::inventory;

fn read(path: &str) -> String {
    fs::read_to_string(format!("{}/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// Returns the names of an action's facts as docs/design/keys.md writes them: a placeholder stands for each name that a workspace chooses.
fn fact_names(action: &Action) -> BTreeSet<String> {
    let named = |name: &String| match name.split_once('.') {
        Some(("source", _)) => "source.PATH".to_owned(),
        Some(("target", _)) => "target.ID".to_owned(),
        Some((kind @ ("docstring" | "file"), _)) => format!("{kind}.VARIANT"),
        _ => name.clone(),
    };
    let upstream = action.dependencies.iter().flat_map(|dependency| {
        let phase = dependency.on.phase;
        dependency.reads.iter().map(move |artifact| format!("from.{phase}.{artifact}"))
    });
    action.facts.keys().map(named).chain(upstream).collect()
}

/// Returns, by phase, the names in backticks in the rows of the table of facts.
fn documented_facts(text: &str) -> BTreeMap<String, BTreeSet<String>> {
    let (_, section) = text.split_once("\n## Facts per phase\n").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| ")).filter(|row| row.contains('`'));
    let names = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    rows.map(|row| row.split_once(" | ").unwrap()).map(|(phase, cell)| (phase.to_owned(), names(cell))).collect()
}

#[test]
fn the_table_of_facts_names_every_fact_and_no_other() {
    let spec = Spec::parse("ops.yaml", read("ops.yaml").as_bytes(), None).unwrap();
    let broken = &spec.ops[0].variants[0].file;
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for class in [DeviceClass::Interpreter, DeviceClass::Cuda("nvidia-h200".to_owned())] {
        let mut inventory = inventory(&spec, class, broken);
        // One kernel file is made.
        let made = &spec.ops[1].variants[0].file;
        inventory.files.remove(made);
        inventory.generated.insert(made.clone());
        inventory.generator = Some(inventory.catalogue);
        inventory.rounds.insert(spec.ops[0].name.clone(), inventory.catalogue);
        for action in expand(&spec, &inventory) {
            found.entry(action.target().phase.to_string()).or_default().extend(fact_names(&action));
        }
    }
    let documented = documented_facts(&read("docs/design/keys.md"));
    assert_eq!(documented.keys().collect::<Vec<_>>(), found.keys().collect::<Vec<_>>());
    for (phase, facts) in &found {
        assert_eq!(&documented[phase], facts, "{phase}");
    }
}

#[test]
fn the_glossary_names_every_phase() {
    let glossary = read("docs/glossary.md");
    for phase in Phase::ALL {
        assert!(glossary.contains(&format!("| {phase} |")), "docs/glossary.md has no row for `{phase}`");
    }
}

#[test]
fn every_file_that_the_glossary_the_architecture_and_the_guide_for_contributors_name_is_there() {
    for page in ["CONTRIBUTING.md", "docs/glossary.md", "docs/architecture.md"] {
        let text = read(page);
        let names = text.split('`').skip(1).step_by(2);
        let ours = ["src/", "crates/", "python/", "docs/", "tests/", "assets/"];
        let files = names
            .filter(|name| ours.iter().any(|folder| name.starts_with(folder)) && !name.contains(['*', '{', '<', ' ']));
        for file in files {
            let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
            assert!(path.exists(), "{page} names `{file}`, which is not there");
        }
    }
}

#[test]
fn the_architecture_names_every_module_of_the_crates() {
    let page = read("docs/architecture.md");
    for source in [
        "src",
        "crates/cuda/src",
        "crates/generate/src",
        "crates/host/src",
        "crates/model/src",
        "crates/plan/src",
        "crates/python/src",
        "crates/report/src",
        "crates/store/src",
    ] {
        let lib = read(&format!("{source}/lib.rs"));
        let module =
            |line: &str| Some(line.trim_start_matches("pub ").strip_prefix("mod ")?.strip_suffix(';')?.to_owned());
        for module in lib.lines().filter_map(module) {
            assert!(page.contains(&format!("| `{module}` |")), "docs/architecture.md has no row for `{module}`");
        }
    }
}

#[test]
fn a_kernel_that_stands_in_two_examples_is_the_same_in_both() {
    for kernel in ["layernorm/partial_sums", "gelu/fused", "matmul/products"] {
        let of = |example: &str| read(&format!("examples/{example}/kernels/{kernel}.py"));
        assert!(of("cuda") == of("gradients"), "{kernel}");
    }
}
