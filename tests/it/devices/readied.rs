//! Children that get ready before their request, and when.
//!
//! It does not know which device measures what.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use nix::sys::signal::Signal;
use serde_json::Value;

use super::{ahead, build, children, machine, on, text, uuid};
use crate::project::Project;
use crate::watching::Watching;

#[test]
fn a_device_waits_for_no_child_that_gets_ready_while_there_is_something_to_check() {
    let project = machine(1);
    project.write("../python/bin/unready", "");
    // On a lane of fewer slots none gets ready for a baseline.
    build(&project, "-j 4");
    let children = children(&project);
    let of_device = children.iter().filter(|child| !text(child, "device").is_empty());
    let phases: Vec<&str> = of_device.filter_map(|child| Some(text(child, "target").split_once(':')?.1)).collect();
    let first = |phase: &str| phases.iter().position(|one| *one == phase).unwrap();
    assert!(first("check") < first("baseline"), "{phases:?}");
    let place = |target: &str| children.iter().position(|child| text(child, "target").ends_with(target)).unwrap();
    assert!(place(":check") < place("calibrate"), "a calibration waits as well");
    assert_eq!(phases.iter().filter(|phase| **phase == "baseline").count(), 3);
}

#[test]
fn children_get_ready_for_baselines_of_which_nothing_is_known_as_many_as_cores_allow() {
    let project = machine(1);
    build(&project, "-j 4");
    let (devices, ops): (BTreeSet<String>, Vec<String>) =
        ahead(&project).into_iter().map(|(device, op, _)| (device, op)).unzip();
    assert_eq!((devices, ops.len()), (BTreeSet::from([uuid(0)]), 2), "{ops:?}");
    assert_eq!(ahead(&project).iter().map(|(.., folder)| folder).collect::<BTreeSet<_>>().len(), 2);
    fs::remove_file(project.path("../python/bin/reserves.log")).unwrap();
    project.edit("kernels/softmax/v2_tiling.py", "input + 1", "input + 2");
    build(&project, "-j 4");
    assert_eq!(ahead(&project), [], "the figures of torch stand");
}

#[test]
fn a_device_measures_an_op_first_for_which_a_child_got_ready_there() {
    let project = machine(2);
    build(&project, "-j 16");
    let expected: BTreeMap<String, String> = ahead(&project).into_iter().map(|(device, op, _)| (op, device)).collect();
    assert_eq!(expected.len(), 3);
    for device in [uuid(0), uuid(1)] {
        let children = children(&project);
        let mut measured = children.iter().filter(|child| text(child, "target").ends_with(":baseline"));
        let first = measured.find(|child| text(child, "device") == device).unwrap();
        let op = text(first, "target").split(':').next().unwrap();
        assert_eq!(expected[op], device, "{expected:?}");
    }
}

/// Returns how many children were to get ready for kernels so far.
fn made_ready(project: &Project) -> usize {
    let log = project.read("../python/bin/reserves.log");
    let all = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    all.filter(|reserve| text(reserve, "key") == uuid(0)).count()
}

#[test]
fn as_many_children_get_ready_as_there_are_checks_and_measurements() {
    let project = machine(1);
    build(&project, "");
    let children = children(&project);
    let of = ["candidate:run", "bench:bench", "calibrate:calibrate"];
    let called = children.iter().filter(|child| of.contains(&text(child, "function"))).count();
    let made = made_ready(&project);
    // The calibration and the first check may have begun before anything got ready.
    assert!((called - 2..=called).contains(&made), "{made} for {called}");
}

#[test]
fn all_that_are_to_come_are_asked_for_before_anything_is_measured() {
    let project = machine(1);
    build(&project, "");
    let before = children(&project).len();
    fs::write(project.path("../python/bin/reserves.log"), "").unwrap();
    for op in ["softmax", "relu"] {
        for variant in ["v1_baseline", "v2_tiling"] {
            project.edit(&format!("kernels/{op}/{variant}.py"), "input + 1", "input + 2");
        }
    }
    build(&project, "");
    let again = &children(&project)[before..];
    let of = |function: &str| again.iter().filter(|child| text(child, "function") == function).collect::<Vec<_>>();
    let (checks, benches) = (of("candidate:run"), of("bench:bench"));
    assert_eq!((checks.len(), benches.len()), (4, 4));
    // The log is behind where cores are busy: a check's two children are called at once.
    assert_eq!(checks[3]["ready"], 7, "all but its own");
}

#[test]
fn a_watch_leaves_children_ready_for_the_next_save_and_a_build_leaves_none() {
    let project = machine(1);
    build(&project, "");
    fs::remove_file(project.path("../python/bin/reserves.log")).unwrap();
    project.edit("kernels/softmax/v2_tiling.py", "input + 1", "input + 2");
    build(&project, "");
    assert_eq!(made_ready(&project), 1, "its own bench alone");
    fs::remove_file(project.path("../python/bin/reserves.log")).unwrap();
    let mut watching = Watching::of(&project, &mut on(&project, &project, "watch"));
    watching.settles();
    project.edit("kernels/softmax/v2_tiling.py", "input + 2", "input + 3");
    watching.says("bench softmax/v2_tiling … passed");
    watching.settles();
    assert_eq!(watching.stop(Signal::SIGINT).0, 130);
    assert!(made_ready(&project) >= 3, "{}", made_ready(&project));
}

#[test]
fn what_the_machine_failed_on_a_device_is_tried_again_without_the_children_that_wait_there() {
    let project = machine(1);
    project.kernel("softmax", "v2_tiling", "LOST-ONCE");
    build(&project, "");
    assert_eq!(project.read("../python/bin/dismissed.log"), format!("{}\n", uuid(0)));
}
