//! What Rust has of the harness, held against the harness: the table of its functions, and a number that both compare with.

use std::fs;
use std::path::Path;

use t2t_plan::functions::{COMPILE_AHEAD, FUNCTIONS, PHASES, REHEARSE, START_DEVICE};

/// Returns whether the harness has the function that is named as `package.module:function`.
fn exists(name: &str) -> bool {
    let (module, function) = name.split_once(':').unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("python");
    let file = folder.join(module.replace('.', "/")).with_extension("py");
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().any(|line| line.starts_with(&format!("def {function}(")))
}

#[test]
fn each_function_is_one_of_the_harness() {
    let listed = FUNCTIONS.map(|function| format!("{PHASES}{}", function.name));
    let others = [START_DEVICE, REHEARSE, COMPILE_AHEAD].map(str::to_owned);
    let missing: Vec<&String> = listed.iter().chain(&others).filter(|name| !exists(name)).collect();
    assert!(missing.is_empty(), "the harness has no {missing:?}");
    assert!(!exists("t2t_harness.phases.judge:no_such_function") && !exists("t2t_harness.phases.none:none"));
}

/// Returns what a file of the repository sets a constant to.
fn set(file: &str, constant: &str) -> String {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
    let line = text.lines().find_map(|line| line.split_once(constant)).unwrap_or_else(|| panic!("{file}: {constant}"));
    line.1.trim_end_matches(';').to_owned()
}

#[test]
fn figures_are_steady_in_the_harness_up_to_what_a_selection_takes_for_steady() {
    let there = set("python/t2t_harness/measuring/statistics.py", "STEADY = ");
    assert_eq!(set("crates/report/src/rank/stability.rs", "const STEADY: f64 = "), there);
}
