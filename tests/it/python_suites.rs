//! The tests that are written in Python, in processes for each way in which Triton can be imported.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread;

use crate::environment;
use crate::whole::{self, PART};

/// Over how many processes the tests of the interpreter are spread at most, so that none is the last by far: they take most of the time.
const PARTS: usize = 4;

/// Has this part of the tests of the interpreter pass. There are no more parts than cores: each process, and the one that it forks children from, imports torch anew.
fn passes_of_the_interpreter(number: usize) {
    let count = thread::available_parallelism().map_or(PARTS, |cores| cores.get().min(PARTS));
    if number < count {
        passes(&part("interpreter", number, count), PART);
    }
}

#[test]
#[ignore = "takes minutes; tests/whole.json tells whether it has to run"]
fn whole_the_suite_of_the_compiler_passes() {
    passes(&part("compiled", 0, 1), 1);
    whole::COMPILER_SUITE.note(&environment::root());
}

#[test]
#[ignore = "takes minutes; tests/whole.json tells whether it has to run"]
fn whole_the_suite_of_the_interpreter_passes() {
    let count = thread::available_parallelism().map_or(1, std::num::NonZero::get).min(PARTS);
    let parts: Vec<_> = (0..count).map(|number| part("interpreter", number, count)).collect();
    thread::scope(|scope| {
        for files in &parts {
            scope.spawn(|| passes(files, 1));
        }
    });
    whole::SUITE.note(&environment::root());
}

/// Returns every n-th file of a suite, from this one on.
fn part(suite: &str, first: usize, count: usize) -> Vec<PathBuf> {
    let entries = fs::read_dir(environment::root().join("tests/python").join(suite)).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| {
        let is_test = file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("test_"));
        is_test && file.extension().is_some_and(|ending| ending == "py")
    });
    files.sort();
    files.into_iter().skip(first).step_by(count).collect()
}

/// Runs of each of these files every n-th test.
fn passes(files: &[PathBuf], every: usize) {
    assert!(!files.is_empty());
    // pytest keeps the folders of its last runs, and torch what it compiled: all of it goes with this one.
    let folder = environment::folder();
    let output = Command::new(environment::python())
        .args(["-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"])
        .args(files)
        .current_dir(environment::root())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("OMP_NUM_THREADS", "1")
        .env("T2T_TEST_PART", every.to_string())
        .env("TMPDIR", folder.path())
        .output()
        .unwrap();
    let (told, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{told}\n{errors}");
}

#[test]
fn the_suite_of_the_interpreter_passes_in_its_first_part() {
    passes_of_the_interpreter(0);
}

#[test]
fn the_suite_of_the_interpreter_passes_in_its_second_part() {
    passes_of_the_interpreter(1);
}

#[test]
fn the_suite_of_the_interpreter_passes_in_its_third_part() {
    passes_of_the_interpreter(2);
}

#[test]
fn the_suite_of_the_interpreter_passes_in_its_last_part() {
    passes_of_the_interpreter(PARTS - 1);
}

#[test]
fn the_suite_of_the_compiler_passes() {
    passes(&part("compiled", 0, 1), PART);
}

#[test]
fn the_suite_of_the_driver_of_clusters_passes() {
    passes(&part("driver", 0, 1), 1);
}
