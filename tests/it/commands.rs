//! The command line: what is selected, what is printed, and the exit codes.

use crate::project::{OPS, Project, RELU};

mod one_more;
mod said;
mod looking;
mod places;
mod unusable;
mod others;

const SOFTMAX: &str =
    "softmax:analyze,select,log softmax/v1_baseline:compile,check,bench softmax/v2_tiling:compile,check,bench";
const GELU: &str = "gelu:analyze,select,log gelu/v1_baseline:compile,check,bench gelu/v2_tiling:compile,check,bench";

fn with_relu() -> Project {
    let project = Project::new();
    project.write("ops.yaml", format!("{OPS}{RELU}"));
    for variant in ["v1_baseline", "v2_tiling"] {
        project.kernel("relu", variant, "");
    }
    project
}

fn rejecting(mark: &str) -> Project {
    let project = Project::new();
    project.kernel("softmax", "v2_tiling", mark);
    project
}

// What is built.

#[test]
fn an_op_is_built_alone() {
    let project = Project::new();
    project.t2t("build --op gelu").exits(0).runs(GELU);
    project.t2t("build --op gelu softmax:analyze").exits(0).runs("softmax:analyze");
}

#[test]
fn a_phase_of_an_op_is_built_with_what_it_needs() {
    let project = Project::new();
    project
        .t2t("build softmax:check")
        .exits(0)
        .runs("softmax:analyze softmax/v1_baseline:check softmax/v2_tiling:check");
    let measured = "gelu:analyze gelu/v2_tiling:compile,check,bench";
    project.t2t("build gelu/v2_tiling:bench").exits(0).runs(measured);
}

#[test]
fn a_list_of_ops_is_built() {
    with_relu().t2t("build softmax,+gelu").exits(0).runs(&format!("{GELU} {SOFTMAX}"));
}

#[test]
fn a_list_of_all_ops_has_the_summary() {
    Project::new().t2t("build softmax,gelu").exits(0).runs(&format!("{GELU} {SOFTMAX} summary"));
}

#[test]
fn variants_and_a_phase_narrow_what_is_built() {
    let project = Project::new();
    project
        .t2t("build --variant v2_tiling --phase check")
        .exits(0)
        .runs("gelu:analyze gelu/v2_tiling:check softmax:analyze softmax/v2_tiling:check");
}

#[test]
fn names_that_nothing_has_are_bad_use_with_the_nearest_name() {
    let project = Project::new();
    for (arguments, message) in [
        ("build sofmax", "error: ops.yaml has no op `sofmax`\nhint: did you mean `softmax`?\n"),
        ("build --op mha", "error: ops.yaml has no op `mha`\nhint: the ops are `gelu`, `softmax`\n"),
        ("build --variant v7", "error: no op has a variant `v7`\nhint: the variants are `v1_baseline`, `v2_tiling`\n"),
        ("build softmax:chek", "error: there is no phase `chek`\nhint: did you mean `check`?\n"),
        (
            "build softmax:log --variant v2_tiling",
            "error: no action is both in the named targets and in the named variants and phase\nhint: drop `--variant` or `--phase`; `t2t graph` lists all actions\n",
        ),
    ] {
        let ran = project.t2t(arguments).exits(2).runs("");
        assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", message), "{arguments}");
    }
    project
        .t2t("build softmax/v9:check")
        .exits(2)
        .says("error: op `softmax` has no variant `v9`\nhint: its variants are `v1_baseline`, `v2_tiling`\n");
    project.t2t("build --nonsense").exits(2).says("error: unexpected argument '--nonsense' found");
    project.t2t("build --fail-fast --keep-going").exits(2).says("cannot be used with");
    project
        .t2t("build --device cuda")
        .exits(2)
        .says("error: this machine has no such CUDA device\nhint: `--device cpu` uses");
}

#[test]
fn what_is_named_is_forced_and_nothing_else() {
    let project = Project::built();
    project.t2t("build --force softmax/v2_tiling:compile").exits(0).runs("softmax/v2_tiling:compile");
    project.t2t("build --force softmax/v2_tiling:bench").exits(0).runs("softmax/v2_tiling:bench");
}

#[test]
fn a_dry_run_says_what_would_run_and_why_and_runs_nothing() {
    let project = Project::built();
    project.edit("ops.yaml", "dim: -1", "dim: 0");
    project.edit("kernels/softmax/v2_tiling.py", "+ 1", "+ 2");
    let ran = project.t2t("build --dry-run").exits(0).runs("");
    let expected = "\
softmax:analyze `kwargs` in ops.yaml changed: {\"dim\":-1} → {\"dim\":0}
softmax/v1_baseline:compile `kwargs` in ops.yaml changed: {\"dim\":-1} → {\"dim\":0}; `softmax:analyze` would run first
softmax/v1_baseline:check `kwargs` in ops.yaml changed: {\"dim\":-1} → {\"dim\":0}; `softmax:analyze` would run first
softmax/v1_baseline:bench `kwargs` in ops.yaml changed: {\"dim\":-1} → {\"dim\":0}; `softmax/v1_baseline:check` would run first
softmax/v2_tiling:compile `kwargs` in ops.yaml changed: {\"dim\":-1} → {\"dim\":0}; code of `kernels/softmax/v2_tiling.py` changed: [DIGEST] → [DIGEST]; `softmax:analyze` would run first
softmax/v2_tiling:check `kwargs` in ops.yaml changed: {\"dim\":-1} → {\"dim\":0}; code of `kernels/softmax/v2_tiling.py` changed: [DIGEST] → [DIGEST]; `softmax:analyze` would run first
softmax/v2_tiling:bench `kwargs` in ops.yaml changed: {\"dim\":-1} → {\"dim\":0}; code of `kernels/softmax/v2_tiling.py` changed: [DIGEST] → [DIGEST]; `softmax/v2_tiling:check` would run first
softmax:select `softmax/v1_baseline:bench`, `softmax/v1_baseline:check`, `softmax/v2_tiling:bench` and 1 more would run first
softmax:log `kwargs` in ops.yaml changed: {\"dim\":-1} → {\"dim\":0}; `softmax/v1_baseline:bench`, `softmax/v1_baseline:check`, `softmax/v1_baseline:compile` and 5 more would run first
summary `softmax/v1_baseline:bench`, `softmax/v1_baseline:check`, `softmax/v1_baseline:compile` and 5 more would run first
";
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str(), ran.starts), (expected, "", 0));
}

#[test]
fn a_dry_run_of_what_stands_says_nothing() {
    let ran = Project::built().t2t("build --dry-run").exits(0);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
}

// After a rejection.

#[test]
fn a_build_goes_on_after_a_rejection() {
    let project = rejecting("REJECT mismatch");
    let expected =
        format!("{GELU} {} summary", SOFTMAX.replace("v2_tiling:compile,check,bench", "v2_tiling:compile,check"));
    project.t2t("build --keep-going").exits(1).runs(&expected).says("bench softmax/v2_tiling … skipped");
}

#[test]
fn a_build_that_fails_fast_starts_nothing_after_a_rejection() {
    let project = Project::new();
    project.kernel("softmax", "v1_baseline", "REJECT mismatch");
    let ran = project.t2t("build --fail-fast --jobs 1").exits(1);
    assert_eq!(ran.actions, "softmax:analyze softmax/v1_baseline:compile,check");
    project.build().exits(1).says("gelu  ");
}

#[test]
fn what_torch_refuses_is_neither_measured_nor_checked() {
    let project = Project::new();
    project.edit("ops.yaml", "dim: -1", "refused: 1");
    let ran = project.build().exits(1).says("check softmax/v1_baseline … skipped, after softmax:analyze");
    let skipped = "softmax:analyze,select,log softmax/v1_baseline:compile softmax/v2_tiling:compile";
    assert_eq!(ran.actions, format!("{GELU} {skipped} summary"));
}
