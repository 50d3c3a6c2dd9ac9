//! Saves while something runs: what is cancelled, and what goes on.
//!
//! It does not know saves on a workspace at rest.

use super::{KERNEL, ends_whole, waiting, watched};
use crate::project::{OPS, Project};
use crate::watching::Watching;

#[test]
fn a_save_cancels_what_it_made_obsolete_and_lets_the_rest_finish() {
    let project = waiting();
    let mut watching = Watching::begin(&project, "--jobs 2");
    watching.begins("softmax/v2_tiling:check candidate:run");
    watching.begins("gelu/v1_baseline:check candidate:run");
    watching.count();
    project.kernel("softmax", "v2_tiling", "NEEDS 0");
    watching.says("check softmax/v2_tiling … cancelled: code of `kernels/softmax/v2_tiling.py` changed");
    // The new code is checked beside the check that goes on.
    watching.says("check softmax/v2_tiling … passed");
    assert!(!watching.told().contains("check gelu/v1_baseline …"), "{}", watching.told());
    project.calm();
    watching.says("check gelu/v1_baseline … passed");
    watching.settles();
    let ran = watching.ran();
    assert_eq!((ran.get("softmax/v2_tiling:check"), ran.get("gelu/v1_baseline:check")), (Some(&1), None), "{ran:?}");
    assert_eq!(watching.told().matches("cancelled").count(), 1, "{}", watching.told());
    ends_whole(&project, watching);
}

#[test]
fn a_save_of_nothing_new_cancels_nothing() {
    let project = waiting();
    let mut watching = Watching::begin(&project, "--jobs 2");
    watching.begins("softmax/v2_tiling:check candidate:run");
    watching.begins("gelu/v1_baseline:check candidate:run");
    watching.count();
    project.write(KERNEL, project.read(KERNEL));
    watching.says("changed: kernels/softmax/v2_tiling.py");
    project.write(KERNEL, project.read(KERNEL).replace("import triton\n", "import triton  # typed\n"));
    watching.says("changed: kernels/softmax/v2_tiling.py");
    project.calm();
    watching.says("bench softmax/v2_tiling … passed");
    watching.settles();
    assert!(!watching.told().contains("cancelled"), "{}", watching.told());
    assert_eq!(watching.ran().get("softmax/v2_tiling:check"), None, "what ran is kept");
    ends_whole(&project, watching);
}

#[test]
fn what_is_not_in_the_graph_any_more_is_cancelled() {
    let project = waiting();
    let mut watching = Watching::begin(&project, "--jobs 2");
    watching.begins("softmax/v2_tiling:check candidate:run");
    project.edit("ops.yaml", "kwargs: {dim: -1}", "kwargs: {dim: -1}\n    variants: [v1_baseline]");
    watching.says("check softmax/v2_tiling … cancelled: it is not part of the build any more");
    project.calm();
    watching.says("check gelu/v1_baseline … passed");
    watching.settles();
    ends_whole(&project, watching);
}

#[test]
fn code_that_is_put_back_cancels_the_check_and_restores_the_result() {
    let project = Project::built();
    let before = project.read(KERNEL);
    let mut watching = watched(&project);
    project.kernel("softmax", "v2_tiling", "WAITS");
    watching.begins("softmax/v2_tiling:check candidate:run");
    project.write(KERNEL, before);
    watching.says("check softmax/v2_tiling … cancelled");
    watching.settles();
    assert_eq!(watching.ran().get("softmax/v2_tiling:check"), Some(&1));
    ends_whole(&project, watching);
}

#[test]
fn what_runs_goes_on_while_ops_yaml_is_broken_and_is_kept() {
    let project = waiting();
    let mut watching = Watching::begin(&project, "--jobs 2");
    watching.begins("softmax/v2_tiling:check candidate:run");
    watching.begins("gelu/v1_baseline:check candidate:run");
    watching.count();
    project.edit("ops.yaml", "dim: -1", "dim: [");
    watching.says("error: ops.yaml:");
    project.calm();
    watching.says_all(&["check softmax/v2_tiling … passed", "check gelu/v1_baseline … passed"]);
    project.write("ops.yaml", OPS);
    watching.settles();
    let checks: Vec<String> = watching.ran().into_keys().filter(|target| target.ends_with(":check")).collect();
    assert!(checks.is_empty(), "they were kept: {checks:?}");
    ends_whole(&project, watching);
}

#[test]
fn a_file_that_a_check_looked_at_and_that_changed_meanwhile_has_it_run_again() {
    let project = Project::new();
    project.write("data/table.txt", "one");
    project.build().exits(0);
    project.kernel("softmax", "v2_tiling", "WAITS; READS data/table.txt");
    let mut watching = Watching::begin(&project, "--jobs 2");
    // What is kept says that the file is of account; until then its change begins no round.
    watching.says("compile softmax/v2_tiling … passed");
    watching.begins("softmax/v2_tiling:check candidate:run");
    project.write("data/table.txt", "two");
    watching.says("changed: data/table.txt");
    project.calm();
    watching.says("check softmax/v2_tiling … cancelled: `data/table.txt` changed while it ran");
    watching.says("check softmax/v2_tiling … passed");
    watching.settles();
    ends_whole(&project, watching);
}
