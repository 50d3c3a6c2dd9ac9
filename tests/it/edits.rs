//! Every edit that a person makes, and exactly what runs after it: the table of the README, seen from outside.
//!
//! What ran is the oracle: the interpreter's own log for actions that have children, the build's lines for the others.

use std::process::Command;

use crate::project::{OPS, Project, file};

mod declaration;
mod surroundings;
mod rejections;
mod own_store;

const SOFTMAX: &str =
    "softmax:analyze,select,log softmax/v1_baseline:compile,check,bench softmax/v2_tiling:compile,check,bench";
const GELU: &str = "gelu:analyze,select,log gelu/v1_baseline:compile,check,bench gelu/v2_tiling:compile,check,bench";
/// What the code of one variant reruns.
const V2: &str = "softmax:select,log softmax/v2_tiling:compile,check,bench summary";
/// A file that is named often.
const KERNEL: &str = "kernels/softmax/v2_tiling.py";

fn everything() -> String {
    format!("{GELU} {SOFTMAX} summary")
}

/// A built workspace with one kernel that has this mark.
fn marked(mark: &str) -> Project {
    let project = Project::new();
    project.kernel("softmax", "v2_tiling", mark);
    project.build();
    project
}

// Nothing, and what means nothing.

#[test]
fn a_first_build_runs_everything() {
    Project::new().build().exits(0).runs(&everything());
}

#[test]
fn a_second_build_runs_nothing_and_starts_no_interpreter() {
    let ran = Project::built().build().exits(0).runs("");
    assert_eq!(ran.starts, 0);
}

#[test]
fn files_that_were_only_touched_run_nothing() {
    let project = Project::built();
    for path in ["ops.yaml", KERNEL, "assets/log_template.md"] {
        project.write(path, project.read(path));
    }
    project.build().exits(0).runs("");
}

#[test]
fn a_comment_and_formatting_run_nothing() {
    let project = Project::built();
    project.edit(KERNEL, "import triton\n", "# Triton.\nimport triton\n\n\n");
    project.edit(KERNEL, "return input + 1", "return (  # one more\n        input + 1\n    )");
    let ran = project.build().exits(0).runs("");
    assert_eq!(ran.asked, 0);
}

#[test]
fn comments_and_order_of_keys_in_ops_yaml_run_nothing() {
    let project = Project::built();
    project.edit("ops.yaml", "kwargs: {dim: -1}", "kwargs:\n      dim: -1 # the last");
    project.edit("ops.yaml", "  variants: [v1_baseline, v2_tiling]\n", "");
    project.edit("ops.yaml", "defaults:\n", "defaults:\n  dtypes: [float32]\n  variants: [v1_baseline, v2_tiling]\n");
    project.build().exits(0).runs("");
}

#[test]
fn a_docstring_of_the_module_reaches_the_log_alone() {
    let project = Project::built();
    project.edit(KERNEL, "softmax, v2_tiling.", "Rows in tiles.");
    project.build().exits(0).runs("softmax:log");
    assert!(project.read("logs/softmax_log.md").contains("Rows in tiles."));
}

#[test]
fn a_docstring_of_a_function_runs_nothing() {
    let project = Project::built();
    project.edit(KERNEL, "Launch it.", "Launch the kernel.");
    project.build().exits(0).runs("");
}

// Code.

#[test]
fn code_of_a_variant_runs_its_phases_and_what_shows_them() {
    let project = Project::built();
    project.edit(KERNEL, "input + 1", "input + 2");
    project.build().exits(0).runs(V2);
    project.build().exits(0).runs("");
}

#[test]
fn code_that_is_put_back_runs_nothing() {
    let project = Project::built();
    let (kernel, log) = (project.read(KERNEL), project.read("logs/softmax_log.md"));
    project.edit(KERNEL, "input + 1", "input + 2");
    project.build().runs(V2);
    assert_ne!(project.read("logs/softmax_log.md"), log);
    project.write(KERNEL, kernel);
    let ran = project.build().exits(0).runs("");
    assert_eq!(ran.asked, 0);
    assert_eq!(project.read("logs/softmax_log.md"), log);
    project.build().runs("").never_says("restored,");
}

fn with_helper() -> Project {
    let project = Project::new();
    project.write("kernels/common.py", "def add(x):\n    return x + 1\n");
    for op in ["softmax", "gelu"] {
        project.edit(&file(op, "v1_baseline"), "import triton\n", "import triton\nfrom kernels.common import add\n");
    }
    project.build().exits(0);
    project
}

const IMPORTERS: &str = "gelu:select,log gelu/v1_baseline:compile,check,bench softmax:select,log softmax/v1_baseline:compile,check,bench summary";

#[test]
fn a_helper_runs_the_two_variants_that_import_it() {
    let project = with_helper();
    project.edit("kernels/common.py", "x + 1", "x + 2");
    project.build().exits(0).runs(IMPORTERS);
}

#[test]
fn a_helpers_edit_that_is_undone_runs_nothing() {
    let project = with_helper();
    project.edit("kernels/common.py", "x + 1", "x + 2");
    project.build().runs(IMPORTERS);
    project.edit("kernels/common.py", "x + 2", "x + 1");
    project.build().exits(0).runs("");
    project.edit("kernels/common.py", "x + 1", "x + 2");
    project.build().exits(0).runs("");
}

#[test]
fn a_comment_in_a_helper_runs_nothing() {
    let project = with_helper();
    project.edit("kernels/common.py", "x + 1", "x + 1  # more");
    project.build().exits(0).runs("");
}

#[test]
fn a_helper_of_a_helper_counts() {
    let project = with_helper();
    project.edit("kernels/common.py", "def", "from . import deep\n\n\ndef");
    project.write("kernels/deep.py", "ONE = 1\n");
    project.build().runs(IMPORTERS);
    project.write("kernels/deep.py", "ONE = 2\n");
    project.build().exits(0).runs(IMPORTERS);
}

#[test]
fn a_git_checkout_there_and_back_runs_nothing() {
    let project = Project::built();
    let git = |arguments: &str| {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=t", "-c", "user.email=t@t"]).args(arguments.split(' '));
        let output = command.current_dir(project.path("")).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    project.write(".gitignore", "cache\nlogs\n");
    for step in ["init -q -b main", "add .", "commit -qm one", "checkout -qb other"] {
        git(step);
    }
    project.edit(KERNEL, "input + 1", "input + 2");
    project.edit("ops.yaml", "dim: -1", "dim: 0");
    git("commit -qam two");
    project.build().exits(0).runs(&format!("{SOFTMAX} summary"));
    git("checkout -q main");
    project.build().exits(0).runs("");
    git("checkout -q other");
    project.build().exits(0).runs("");
}

#[test]
fn ops_that_are_declared_alike_get_each_its_own_results_back() {
    let twins = OPS.replace(
        "torch.nn.functional.gelu\n    inputs: {input: [M, N]}\n",
        "softmax\n    inputs: {input: [M, N]}\n    kwargs: {dim: -1}\n",
    );
    let project = Project::with(&twins.replace("torch.nn.functional.softmax", "softmax"));
    for op in ["softmax", "gelu"] {
        for variant in ["v1_baseline", "v2_tiling"] {
            project.kernel(op, variant, "");
        }
    }
    project.build().exits(0);
    let ops = project.read("ops.yaml");
    project.write("ops.yaml", ops.replace("dim: -1", "dim: 0"));
    // Of two actions that are alike the second runs too, or gets the result of the first, if that has ended.
    project.build().exits(0);
    project.write("ops.yaml", ops);
    project.build().exits(0).runs("");
}
