//! How actions are named on the command line: targets, patterns, files, phases, and what is said of names that nothing has.

use crate::project::{OPS, Project};

#[test]
fn a_pattern_names_ops_variants_and_phases() {
    let project = Project::new();
    project.t2t("build soft*:analyze").exits(0).runs("softmax:analyze");
    project.t2t("build */v2_*:check").exits(0).runs("gelu:analyze gelu/v2_tiling:check softmax/v2_tiling:check");
    project.t2t("status *:a*").exits(0).says("2 up to date, 0 stale, of 2 actions\n");
    project.t2t("build s?*/v1_b*:ch*").exits(0).runs("softmax/v1_baseline:check");
    project.t2t("build tri*").exits(2).says("error: ops.yaml has no op `tri*`\nhint: the ops are `gelu`, `softmax`\n");
}

#[test]
fn a_file_names_the_variants_that_are_made_from_it() {
    let project = Project::new();
    project.write("kernels/shared.py", "def three():\n    return 3\n");
    let text = project.read("kernels/gelu/v2_tiling.py");
    project.write("kernels/gelu/v2_tiling.py", text.replace("import triton", "import triton\n\nimport kernels.shared"));
    let check =
        |files: &str, actions: &str| project.t2t(&format!("graph --format json --phase check {files}")).names(actions);
    check("kernels/softmax/v1_baseline.py", "softmax/v1_baseline:check");
    check("kernels/shared.py", "gelu/v2_tiling:check");
    check("kernels/softmax/*.py", "softmax/v1_baseline:check softmax/v2_tiling:check");
    check("kernels/softmax/", "softmax/v1_baseline:check softmax/v2_tiling:check");
    check("./kernels/gelu/v1_baseline.py,softmax/v2_tiling", "gelu/v1_baseline:check softmax/v2_tiling:check");
    let whole = project.path("kernels/gelu/v1_baseline.py");
    check(whole.to_str().unwrap(), "gelu/v1_baseline:check");
    let below = |arguments: &str| project.run(project.command(arguments).current_dir(project.path("kernels/softmax")));
    below("status v2_tiling.py ../gelu/v1_baseline.py").exits(0).says("of 8 actions\n");
    below("status softmax/v2_tiling:check").exits(0).says("of 2 actions\n");
}

#[test]
fn a_file_of_cases_names_its_op() {
    let project =
        Project::with(&OPS.replace("kwargs: {dim: -1}", "kwargs: {dim: -1}\n    cases: kernels/softmax/cases.py"));
    project.write("kernels/softmax/cases.py", "def cases(spec, generator):\n    yield from ()\n");
    for variant in ["v1_baseline", "v2_tiling"] {
        project.kernel("softmax", variant, "");
    }
    project.t2t("status kernels/softmax/cases.py").exits(0).says("of 9 actions\n");
}

#[test]
fn a_file_that_no_variant_is_made_from_is_bad_use() {
    let project = Project::new();
    project.write("kernels/gelu/v9_forgotten.py", "x = 1\n");
    let ran = project.t2t("build kernels/gelu/v9_forgotten.py").exits(2);
    let expected = "\
error: no variant in ops.yaml is made from `kernels/gelu/v9_forgotten.py`
hint: list it under `variants` of its op; `t2t status` names the files that no variant is
";
    assert_eq!(ran.stderr, expected);
}

#[test]
fn a_file_is_found_by_a_link_to_the_workspace_and_one_of_elsewhere_is_said_to_be_outside() {
    let project = Project::new();
    let link = project.path("../link");
    std::os::unix::fs::symlink(project.path(""), &link).unwrap();
    let linked = link.join("kernels/gelu/v1_baseline.py");
    project.t2t(&format!("graph --format json --phase check {}", linked.display())).names("gelu/v1_baseline:check");
    let outside = "lies outside of the workspace, `[ROOT]`\nhint: name an op, a variant or a file of the workspace\n";
    for path in ["/etc/passwd", "../python/bin/python"] {
        project.t2t(&format!("build {path}")).exits(2).says(&format!("error: `{path}` {outside}"));
    }
    project.t2t("build ops.yaml").exits(2).says("error: no op or variant is made from `ops.yaml`\n");
}

#[test]
fn several_phases_are_built_with_what_they_need() {
    let project = Project::new();
    let both = "softmax:analyze softmax/v1_baseline:compile,check softmax/v2_tiling:compile,check";
    project.t2t("build softmax --phase compile,check").exits(0).runs(both);
    project
        .t2t("build gelu --phase compile --phase analyze")
        .exits(0)
        .runs("gelu:analyze gelu/v1_baseline:compile gelu/v2_tiling:compile");
}

#[test]
fn a_variant_or_a_phase_that_nothing_has_is_told_the_nearest() {
    let project = Project::new();
    for (arguments, message) in [
        (
            "build softmax/v2_tilling",
            "error: op `softmax` has no variant `v2_tilling`\nhint: did you mean `v2_tiling`?\n",
        ),
        (
            "build softmax/x",
            "error: op `softmax` has no variant `x`\nhint: its variants are `v1_baseline`, `v2_tiling`\n",
        ),
        ("build --variant v1_baselin", "error: no op has a variant `v1_baselin`\nhint: did you mean `v1_baseline`?\n"),
        ("build softmax:bnech", "error: there is no phase `bnech`\nhint: did you mean `bench`?\n"),
        ("explain softmax/v2_tiling:chek", "error: there is no phase `chek`\nhint: did you mean `check`?\n"),
        (
            "build softmax/v1_baseline:select",
            "error: there is no action `softmax/v1_baseline:select`\nhint: the op has `softmax/v1",
        ),
    ] {
        project.t2t(arguments).exits(2).says(message);
    }
    project
        .t2t("build --phase chek")
        .exits(2)
        .says("invalid value 'chek' for '--phase <PHASE>': did you mean `check`?");
}

#[test]
fn nothing_is_not_everything() {
    let project = Project::new();
    let message = "error: the name of a target is empty\nhint: name an op, as in `t2t build softmax`; without any name everything is meant\n";
    for argument in ["", " ", ","] {
        let mut command = project.command("build");
        let ran = project.run(command.arg(argument)).exits(2).runs("");
        assert_eq!(ran.stderr, message);
    }
    for arguments in ["build -j 0", "build --jobs 0", "watch -j 0"] {
        project.t2t(arguments).exits(2).runs("").says("for '--jobs <N>': it is 1 or more");
    }
    project.t2t("build -j many").exits(2).says("`many` is not a number");
}
