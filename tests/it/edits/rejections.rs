//! Edits of kernels that are rejected, and results that the machine lost.
//!
//! It does not know why a kernel is wrong.

use super::{KERNEL, V2, marked};
use crate::project::Project;

#[test]
fn a_comment_in_a_rejected_variant_runs_its_check() {
    let project = marked("REJECT mismatch");
    project.build().exits(1).runs("");
    project.edit(KERNEL, "import triton\n", "# Triton.\nimport triton\n");
    let ran = project.build().exits(1).runs_beside_the_summary("softmax:log softmax/v2_tiling:check");
    ran.says("error: kernels/softmax/v2_tiling.py:5:1: 2 of 256 elements differ (mismatch)");
}

#[test]
fn a_comment_below_the_cited_line_runs_the_check_and_leaves_the_log() {
    let project = marked("REJECT mismatch");
    project.edit(KERNEL, "input + 1", "input + 1  # one more");
    project.build().exits(1).runs_beside_the_summary("softmax/v2_tiling:check");
}

#[test]
fn a_comment_in_a_variant_that_does_not_compile_runs_its_compile() {
    let project = marked("COMPILE-ERROR");
    project.build().exits(1).runs("");
    project.edit(KERNEL, "import triton\n", "# Triton.\nimport triton\n");
    let ran = project.build().exits(1).runs_beside_the_summary("softmax:log softmax/v2_tiling:compile");
    ran.says("error: kernels/softmax/v2_tiling.py:5:1: cannot compile (compile-error)");
}

#[test]
fn a_rejected_kernel_that_is_mended_is_measured_and_chosen_among() {
    let project = marked("REJECT nan");
    project.kernel("softmax", "v2_tiling", "");
    project.build().exits(0).runs(V2);
}

#[test]
fn a_crash_and_an_exception_reject_and_are_kept() {
    let project = Project::new();
    project.kernel("softmax", "v1_baseline", "CRASH");
    project.kernel("softmax", "v2_tiling", "RAISE");
    let ran = project.build().exits(1).says("check softmax/v1_baseline … rejected (crash)");
    ran.says("error: kernels/softmax/v2_tiling.py:4:1: ValueError: raised (exception)");
    project.build().exits(1).runs("").says("ValueError: raised");
}

#[test]
fn what_the_machine_lost_is_tried_twice_a_build_and_never_kept() {
    let project = marked("LOST");
    let tries = || project.log().iter().filter(|line| *line == "softmax/v2_tiling:check candidate:run").count();
    assert_eq!(tries(), 2);
    project.build().exits(3).runs_beside_the_summary("softmax/v2_tiling:check");
    assert_eq!(tries(), 4);
    project.kernel("softmax", "v2_tiling", "");
    project.build().exits(0).runs(V2);
}

#[test]
fn what_the_machine_lost_once_passes() {
    let project = marked("LOST-ONCE");
    project.build().exits(0).runs("");
}

#[test]
fn twenty_edits_in_a_row_each_run_what_they_must_and_nothing_is_lost() {
    let project = Project::new();
    project.t2t("build softmax/v2_tiling:check").exits(0);
    for edit in 1..=20 {
        project.kernel("softmax", "v2_tiling", &format!("NEEDS 0.{edit:03}"));
        project.t2t("build softmax/v2_tiling:check").exits(0).runs("softmax/v2_tiling:check");
    }
}

#[test]
fn a_server_that_dies_is_started_again() {
    let project = Project::new();
    project.kernel("softmax", "v2_tiling", "DIES");
    let ran = project.t2t("build --jobs 1").exits(3).says("check softmax/v2_tiling … lost");
    assert!(ran.starts >= 3, "{}", ran.starts);
}

#[test]
fn a_variant_that_cannot_be_judged_here_is_no_failure_and_not_measured() {
    let project = marked("NOT-JUDGED");
    assert!(!project.log().contains(&"softmax/v2_tiling:bench bench:bench".to_owned()));
    let line = "check softmax/v2_tiling … not judged: not here";
    project.build().exits(0).runs("").says(line).says("skipped 1, not judged 1");
    project.t2t("build --require-judged").exits(1).runs("").says(line);
    project.t2t("build softmax/v1_baseline:check --require-judged").exits(0);
    project.t2t("build --junit cases.xml").exits(0);
    assert!(
        project.read("cases.xml").contains("<skipped message=\"not judged: not here\"/>"),
        "{}",
        project.read("cases.xml")
    );
    project.t2t("status").exits(0).says("unjudged  softmax/v2_tiling:check  not here");
}
