//! The answer that is told again: never other than what a look at everything tells, and never after a change.

use std::fs;

use crate::project::{Project, Ran};

const KERNEL: &str = "kernels/softmax/v2_tiling.py";

/// A workspace with one kernel of this mark, and nothing kept of what was told.
fn forgetful(mark: &str) -> Project {
    let project = Project::new();
    project.kernel("softmax", "v2_tiling", mark);
    project.build();
    project.forget_answers();
    project
}

fn told(ran: &Ran) -> (i32, &str, &str) {
    (ran.code, &ran.stdout, &ran.stderr)
}

#[test]
fn what_is_told_again_is_what_a_look_at_everything_tells() {
    for mark in ["", "ERROR 1", "RAISE", "COMPILE-ERROR"] {
        let project = forgetful(mark);
        let looked = project.build().runs("");
        assert_eq!(project.files("cache/answers").len(), 1);
        let again = project.build().runs("");
        assert_eq!(told(&again), told(&looked), "{mark}");
    }
}

#[test]
fn an_edit_of_one_op_is_told_as_a_look_at_everything_tells_it() {
    for mark in ["", "ERROR 1", "RAISE"] {
        let (quick, whole) = (Project::built(), Project::built());
        whole.forget_answers();
        let [quick, whole] = [quick, whole].map(|project| {
            project.kernel("softmax", "v2_tiling", mark);
            project.edit(KERNEL, "input + 1", "input + 2");
            project.build()
        });
        let sorted = |text: &str| {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        // What the stand-in measures differs from run to run.
        let table = |ran: &Ran| {
            let words = ran.stdout.split_whitespace().filter(|word| !word.contains('.'));
            words.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!((quick.code, &quick.actions, table(&quick)), (whole.code, &whole.actions, table(&whole)), "{mark}");
        assert_eq!(sorted(&quick.stderr), sorted(&whole.stderr), "{mark}");
    }
}

#[test]
fn another_command_has_an_answer_of_its_own() {
    let project = Project::built();
    project.t2t("build softmax").exits(0).runs("");
    project.t2t("build --quiet").exits(0).runs("");
    assert_eq!(project.files("cache/answers").len(), 3);
    project.t2t("build --force softmax:log").exits(0).runs("softmax:log");
    assert_eq!(project.files("cache/answers").len(), 3, "what is forced is never answered");
}

#[test]
fn a_damaged_answer_is_none() {
    let project = Project::built();
    let file = project.files("cache/answers").remove(0);
    let bytes = fs::read(&file).unwrap();
    for damaged in [&bytes[..bytes.len() / 2], b"garbage", b""] {
        fs::write(&file, damaged).unwrap();
        project.build().exits(0).runs("");
        assert_eq!(fs::read(&file).unwrap().len(), bytes.len(), "it is kept anew");
    }
}

#[test]
fn what_another_build_did_meanwhile_is_no_more_unchanged() {
    let project = Project::built();
    project.edit(KERNEL, "input + 1", "input + 2");
    project.t2t("build softmax").exits(0);
    project.edit(KERNEL, "input + 2", "input + 1");
    let ran = project.build().exits(0).runs("");
    assert!(ran.stderr.contains("restored"), "{}", ran.stderr);
}
