//! Exit codes, signals, and builds that wait for one another.
//!
//! It does not know which moment a kill meets: `kills` does.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::Child;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::rejecting;
use crate::project::{Project, until};

#[test]
fn exit_codes_describe_what_was_asked_for() {
    let project = rejecting("REJECT mismatch");
    project.kernel("gelu", "v2_tiling", "LOST");
    project.build().exits(3);
    project.t2t("build softmax").exits(1);
    project.t2t("build softmax/v1_baseline:bench").exits(0);
    project
        .t2t("build gelu/v2_tiling:check")
        .exits(3)
        .says("check gelu/v2_tiling … lost: the child was ended by SIGKILL");
    project.t2t("build nothing").exits(2);
}

fn signal(child: &Child, signal: Signal) {
    kill(Pid::from_raw(child.id().cast_signed()), signal).unwrap();
}

/// What is left of a build that was stopped in the last of its checks.
const REST: &str = "gelu:select,log gelu/v2_tiling:check,bench summary";

#[test]
fn ctrl_c_kills_what_runs_and_the_next_build_goes_on_from_there() {
    let project = Project::new();
    project.kernel("gelu", "v2_tiling", "HANG");
    let child = project.spawn("build --jobs 1");
    let pid = project.until_logged("pid ");
    signal(&child, Signal::SIGINT);
    project.wait(child).exits(130).never_says("panicked");
    assert!(!Path::new("/proc").join(&pid).exists(), "process {pid} is still there");
    assert_eq!(fs::read_dir(project.path("cache/scratch")).map_or(0, Iterator::count), 0);
    project.calm();
    project.t2t("build --jobs 1").exits(0).runs(REST);
}

#[test]
fn what_an_action_left_is_removed_when_the_action_is_kept() {
    let project = rejecting("WAITS");
    let running = project.spawn("build gelu:check softmax/v2_tiling:check --jobs 2");
    project.until_logged("softmax/v2_tiling:check candidate:run");
    project.until_logged("gelu/v2_tiling:check judge:judge");
    let scratch = project.path(&format!("cache/scratch/{}", running.id()));
    // Only that of the check that waits is left, though nothing has ended the build.
    until(|| (fs::read_dir(&scratch).unwrap().count() == 1).then_some(()));
    project.calm();
    project.wait(running).exits(0);
    assert_eq!(fs::read_dir(project.path("cache/scratch")).unwrap().count(), 0);
}

#[test]
fn a_build_that_is_killed_leaves_a_store_from_which_the_next_goes_on() {
    let project = Project::new();
    project.kernel("gelu", "v2_tiling", "WAITS");
    let child = project.spawn("build --jobs 1");
    project.until_logged("gelu/v2_tiling:check candidate:run");
    signal(&child, Signal::SIGKILL);
    project.wait(child).exits(-1);
    project.calm();
    project.t2t("build --jobs 1").exits(0).runs(REST).never_says("warning");
}

#[test]
fn a_second_build_waits_for_the_first_and_says_so_and_then_has_nothing_to_do() {
    let project = Project::new();
    project.kernel("gelu", "v2_tiling", "WAITS");
    let first = project.spawn("build");
    project.until_logged("gelu/v2_tiling:check candidate:run");
    let mut second = project.spawn("build");
    let mut stderr = BufReader::new(second.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    let head = format!("waiting: the workspace's lock, cache/lock, held by pid {}, `", first.id());
    assert!(line.starts_with(&head) && line.contains("t2t build") && line.contains("`, since "), "{line}");
    project.t2t("status gelu:analyze").exits(0).says("1 up to date");
    project.calm();
    project.wait(first).exits(0);
    stderr.read_to_string(&mut line).unwrap();
    project.wait(second).exits(0);
    assert!(line.contains("fresh 19, restored 0, ran 0"), "{line}");
}

#[test]
fn a_build_that_waits_for_another_can_be_stopped() {
    let project = Project::new();
    project.kernel("gelu", "v2_tiling", "WAITS");
    let first = project.spawn("build");
    project.until_logged("gelu/v2_tiling:check candidate:run");
    let mut second = project.spawn("build");
    let mut line = String::new();
    BufReader::new(second.stderr.take().unwrap()).read_line(&mut line).unwrap();
    signal(&second, Signal::SIGINT);
    assert_eq!(until(|| second.try_wait().unwrap()).code(), Some(130));
    project.calm();
    project.wait(first).exits(0);
}

#[test]
fn a_log_template_that_is_not_there_is_told_before_anything_runs() {
    let project = Project::new();
    project.edit("ops.yaml", "defaults:", "log: {template: assets/mine.md}\ndefaults:");
    let ran = project.build().exits(2).runs("");
    assert_eq!(
        ran.stderr,
        "error: ops.yaml: the log template of `softmax`, `assets/mine.md`, cannot be read\n\
         hint: write the file, or take `log: {template: …}` out of ops.yaml\n"
    );
    project.write("assets/mine.md", "# {{ op }}\n");
    project.build().exits(0);
}
