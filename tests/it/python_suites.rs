//! The tests that are written in Python, one process for each way in which Triton can be imported.

use std::process::Command;

use crate::environment;

fn passes(suite: &str) {
    let root = environment::root();
    let output = Command::new(environment::python())
        .args(["-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"])
        .arg(root.join("tests/python").join(suite))
        .current_dir(&root)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("OMP_NUM_THREADS", "1")
        .output()
        .unwrap();
    let (told, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{told}\n{errors}");
}

#[test]
fn the_suite_of_the_interpreter_passes() {
    passes("interpreter");
}

#[test]
fn the_suite_of_the_compiler_passes() {
    passes("compiled");
}
