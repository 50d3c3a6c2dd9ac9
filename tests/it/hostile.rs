//! The workspace `tests/hostile`: kernels that are wrong on purpose, or try to look better than they are, and honest ones beside them. `expected.json` has what each deserves,
//! docs/reference/judging-evidence.md the scoreboard.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use t2t_model::action::DeviceClass;
use t2t_model::record::Outcome;
use t2t_spec::Spec;

use crate::environment;
use crate::real::adoption;
use crate::whole;
use crate::workspace::Workspace;

/// Of so many kernels each run of the tests judges one.
const EVERY: usize = 4;

#[test]
fn some_tricks_are_caught_and_honest_kernels_pass() {
    let workspace = workspace();
    let some: BTreeMap<String, Value> = expected().into_iter().skip(1).step_by(EVERY).collect();
    let targets: Vec<String> = some.keys().map(|kernel| format!("{kernel}:bench")).collect();
    let ran = workspace.build(&targets.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(ran.code, Some(1), "{}", ran.told);
    let deserved: Vec<&Value> = some.values().collect();
    assert!(deserved.iter().any(|one| **one == "passed") && deserved.len() > 4, "{some:?}");
    let wrong = wrong_of(&workspace, &DeviceClass::Interpreter, some);
    assert!(wrong.is_empty(), "{}\n{}", wrong.join("\n"), ran.told);
}

#[test]
#[ignore = "takes half a minute; tests/whole.json tells whether it has to run"]
fn whole_every_trick_is_caught_and_every_honest_kernel_passes() {
    let workspace = workspace();
    let ran = workspace.build(&[]);
    assert_eq!(ran.code, Some(1), "{}", ran.told);
    let wrong = wrong(&workspace, &DeviceClass::Interpreter);
    assert!(wrong.is_empty(), "{}\n{}", wrong.join("\n"), ran.told);
    // What was caught while it was measured is neither chosen nor counted.
    let selection = workspace.document("scale:select", "selection");
    assert_eq!(expected()[&format!("scale/{}", selection["chosen"].as_str().unwrap())], "passed", "{selection}");
    let is_here = |kernel: &str| {
        let record = workspace.record_on(DeviceClass::Interpreter, &format!("{kernel}:check"));
        !matches!(record.map(|record| record.outcome), Some(Outcome::NotJudged { .. }))
    };
    let caught = expected().iter().filter(|(kernel, deserved)| *deserved != "passed" && is_here(kernel)).count();
    let rejected = |op: &str| workspace.document(&format!("{op}:select"), "selection")["counts"]["rejected"].as_u64();
    let told: u64 = ["scale", "scale_", "roll"].into_iter().filter_map(rejected).sum();
    assert_eq!(told, caught as u64);
    whole::HOSTILE.note(&environment::root());
}

#[test]
fn every_kernel_has_what_it_deserves_written_down() {
    let text = fs::read(folder().join("ops.yaml")).unwrap();
    let spec = Spec::parse("ops.yaml", &text, None)
        .unwrap_or_else(|problems| panic!("{}", t2t_model::problem::render(&problems)));
    let of = |op: &t2t_spec::Op| {
        op.variants.iter().map(|variant| format!("{}/{}", op.name, variant.name)).collect::<Vec<_>>()
    };
    let mut declared: Vec<String> = spec.ops.iter().flat_map(of).collect();
    declared.sort();
    assert_eq!(declared, expected().into_keys().collect::<Vec<_>>());
}

/// Returns a copy of `tests/hostile`.
pub fn workspace() -> Workspace {
    adoption::copied("tests/hostile")
}

/// Returns a line for each kernel that has another verdict on a device than it deserves: that of its check, or if it passed, of its bench.
pub fn wrong(workspace: &Workspace, device: &DeviceClass) -> Vec<String> {
    wrong_of(workspace, device, expected())
}

/// Returns the same of those kernels alone that are named in `expected`, with what they deserve.
fn wrong_of(workspace: &Workspace, device: &DeviceClass, expected: BTreeMap<String, Value>) -> Vec<String> {
    let verdict = |kernel: &str, phase: &str| {
        let record = workspace.record_on(device.clone(), &format!("{kernel}:{phase}"));
        match record.map(|record| record.outcome) {
            Some(Outcome::Passed) => "passed".to_owned(),
            Some(Outcome::Rejected { class }) => class,
            Some(Outcome::NotJudged { reason }) => format!("not judged: {reason}"),
            Some(Outcome::Lost { reason }) => format!("lost: {reason}"),
            None => "not done".to_owned(),
        }
    };
    let got = |kernel: &str| match verdict(kernel, "check") {
        passed if passed == "passed" => verdict(kernel, "bench"),
        other => other,
    };
    let is_elsewhere = |got: &str| got.contains("the variant is not for the");
    let is_deserved = |got: &str, deserved: &Value| match deserved.as_array() {
        // A trick of the interpreter's memory is none on a device, and one below torch's layers is seen on a device alone.
        Some(_) if is_elsewhere(got) => true,
        Some(classes) => classes.iter().any(|class| class == got),
        None => deserved == got,
    };
    let all = expected.into_iter().map(|(kernel, deserved)| (got(&kernel), kernel, deserved));
    all.filter(|(got, _, deserved)| !is_deserved(got, deserved))
        .map(|(got, kernel, deserved)| format!("{kernel} is {got}, and deserves {deserved}"))
        .collect()
}

fn folder() -> PathBuf {
    environment::root().join("tests/hostile")
}

/// Returns, by kernel, what it deserves: `passed`, or the classes of which one will do.
fn expected() -> BTreeMap<String, Value> {
    serde_json::from_slice(&fs::read(folder().join("expected.json")).unwrap()).unwrap()
}
