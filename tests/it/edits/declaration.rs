//! Edits of ops.yaml.
//!
//! It does not know which of its words are mistakes.

use super::{SOFTMAX, marked};
use crate::project::{OPS, Project, RELU, file};

#[test]
fn a_tolerance_runs_the_checks_of_its_op_and_no_bench_where_they_still_pass() {
    let project = Project::built();
    project.edit("ops.yaml", "kwargs: {dim: -1}", "kwargs: {dim: -1}\n    check: {atol: 1e-3}");
    let checks = "softmax:log softmax/v1_baseline:check softmax/v2_tiling:check";
    project.build().exits(0).runs_beside_the_summary(checks);
}

#[test]
fn a_tolerance_that_lets_a_variant_pass_has_it_measured() {
    let project = marked("ERROR 1e-4");
    project.build().exits(1).runs("");
    project.edit("ops.yaml", "kwargs: {dim: -1}", "kwargs: {dim: -1}\n    check: {atol: 1e-3}");
    let expected = "softmax:select,log softmax/v1_baseline:check softmax/v2_tiling:check,bench summary";
    project.build().exits(0).runs(expected);
}

#[test]
fn a_tolerance_that_rejects_a_variant_skips_its_bench_and_chooses_anew() {
    let project = marked("ERROR 1e-6");
    project.edit("ops.yaml", "kwargs: {dim: -1}", "kwargs: {dim: -1}\n    check: {atol: 5e-7}");
    let expected = "softmax:select,log softmax/v1_baseline:check softmax/v2_tiling:check summary";
    project.build().exits(1).runs(expected).says("bench softmax/v2_tiling … skipped, after softmax/v2_tiling:check");
}

#[test]
fn kwargs_run_everything_of_their_op_and_nothing_of_others() {
    let project = Project::built();
    project.edit("ops.yaml", "dim: -1", "dim: 0");
    project.build().exits(0).runs(&format!("{SOFTMAX} summary"));
}

#[test]
fn shapes_run_everything_of_their_op_and_nothing_of_others() {
    let project = Project::built();
    project.edit("ops.yaml", "{input: [M, N]}\n    kwargs", "{input: [M, N, 4]}\n    kwargs");
    project.build().exits(0).runs(&format!("{SOFTMAX} summary"));
}

#[test]
fn an_entry_runs_what_calls_the_kernels() {
    let project = Project::new();
    for variant in ["v1_baseline", "v2_tiling"] {
        let path = file("softmax", variant);
        project.write(&path, project.read(&path) + "\n\nlaunch = triton_softmax\n");
    }
    project.build().exits(0);
    project.edit("ops.yaml", "kwargs: {dim: -1}", "kwargs: {dim: -1}\n    entry: launch");
    let expected =
        "softmax:select,log softmax/v1_baseline:compile,check,bench softmax/v2_tiling:compile,check,bench summary";
    project.build().exits(0).runs(expected);
}

#[test]
fn cases_run_what_uses_them_and_their_comments_nothing() {
    let project = Project::new();
    project.edit("ops.yaml", "kwargs: {dim: -1}", "kwargs: {dim: -1}\n    cases: cases/softmax.py");
    project.write("cases/softmax.py", "def cases(spec, generator):\n    return []\n");
    project.build().exits(0);
    project.edit("cases/softmax.py", "return []", "return []  # none");
    project.build().exits(0).runs("");
    project.edit("cases/softmax.py", "return []", "return list()");
    let expected =
        "softmax:select,log softmax/v1_baseline:compile,check,bench softmax/v2_tiling:compile,check,bench summary";
    project.build().exits(0).runs(expected);
}

#[test]
fn an_op_that_is_added_runs_alone_with_the_summary() {
    let project = Project::built();
    project.write("ops.yaml", format!("{OPS}{RELU}"));
    for variant in ["v1_baseline", "v2_tiling"] {
        project.kernel("relu", variant, "");
    }
    let expected =
        "relu:analyze,select,log relu/v1_baseline:compile,check,bench relu/v2_tiling:compile,check,bench summary";
    project.build().exits(0).runs(expected);
    project.write("ops.yaml", OPS);
    project.build().exits(0).runs("");
}

#[test]
fn ops_in_another_order_run_the_summary_alone() {
    let project = Project::built();
    let (head, gelu) = OPS.split_once("  gelu:").unwrap();
    let (head, softmax) = head.split_once("  softmax:").unwrap();
    project.write("ops.yaml", format!("{head}  gelu:{gelu}  softmax:{softmax}"));
    project.build().exits(0).runs("summary");
}

#[test]
fn a_variant_that_is_added_runs_alone_with_what_compares_them() {
    let project = Project::built();
    project.kernel("softmax", "v3_coalesced", "");
    project.edit(
        "ops.yaml",
        "kwargs: {dim: -1}",
        "kwargs: {dim: -1}\n    variants: [v1_baseline, v2_tiling, v3_coalesced]",
    );
    project.build().exits(0).runs("softmax:select,log softmax/v3_coalesced:compile,check,bench summary");
    project.edit("ops.yaml", "[v1_baseline, v2_tiling, v3_coalesced]", "[v1_baseline, v3_coalesced]");
    project.build().exits(0).runs("softmax:select,log summary");
}

#[test]
fn retries_and_deadlines_are_in_no_key() {
    let project = Project::built();
    project.edit("ops.yaml", "kwargs: {dim: -1}", "kwargs: {dim: -1}\n    check: {timeout: 1s, max_retries: 9}");
    project.build().exits(0).runs("");
}

#[test]
fn a_deadline_that_was_missed_and_is_raised_runs_the_check_again() {
    let project = Project::new();
    project.kernel("softmax", "v2_tiling", "NEEDS 30");
    project.edit("ops.yaml", "kwargs: {dim: -1}", "kwargs: {dim: -1}\n    check: {timeout: 10s}");
    project.build().exits(1).says("check softmax/v2_tiling … rejected (timeout)");
    project.build().exits(1).runs("");
    project.edit("ops.yaml", "timeout: 10s", "timeout: 5s");
    project.build().exits(1).runs("");
    project.edit("ops.yaml", "timeout: 5s", "timeout: 20s");
    project.build().exits(1).runs_beside_the_summary("softmax/v2_tiling:check");
    project.edit("ops.yaml", "timeout: 20s", "timeout: 60s");
    project.build().exits(0).runs("softmax:select,log softmax/v2_tiling:check,bench summary");
    project.edit("ops.yaml", "timeout: 60s", "timeout: 10s");
    project.build().exits(0).runs("");
}

#[test]
fn a_bench_that_was_rejected_runs_again_where_other_tolerances_hold_and_one_that_passed_does_not() {
    let project = Project::new();
    project.kernel("softmax", "v2_tiling", "DRIFTS 0.01");
    project.edit("ops.yaml", "kwargs: {dim: -1}", "kwargs: {dim: -1}\n    check: {atol: 0.002}");
    project.build().exits(1).says("bench softmax/v2_tiling … rejected (mismatch)");
    project.build().exits(1).runs("");
    project.edit("ops.yaml", "atol: 0.002", "atol: 0.02");
    project.build().exits(0).runs("softmax:select,log softmax/v1_baseline:check softmax/v2_tiling:check,bench summary");
    project.edit("ops.yaml", "atol: 0.02", "atol: 0.03");
    project.build().exits(0).runs("softmax:log softmax/v1_baseline:check softmax/v2_tiling:check summary");
    project.kernel("softmax", "v2_tiling", "DRIFTS 0.04");
    project.build().exits(1).says("bench softmax/v2_tiling … rejected (mismatch)");
    project.edit("ops.yaml", "atol: 0.03", "atol: 0.05");
    // Its check runs first, and passes as it did.
    project.t2t("build --phase check").exits(0);
    let told = project.t2t("explain softmax/v2_tiling:bench").exits(0).stdout;
    let reason = "the tolerances, outputs or mutated inputs changed by which it was rejected";
    assert!(told.contains(reason), "{told}");
}

#[test]
fn without_a_device_the_first_configuration_is_compiled_unless_compiling_is_asked_for() {
    let project = Project::built();
    project.t2t("build softmax/v1_baseline:compile").exits(0).runs("softmax/v1_baseline:compile");
    project.t2t("build softmax --phase compile").exits(0).runs("softmax/v2_tiling:compile");
    project.build().exits(0).runs("");
}
