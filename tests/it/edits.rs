//! Every edit that a person makes, and exactly what runs after it: the table of the README, seen from outside.
//!
//! What ran is the oracle: the interpreter's own log for actions that have children, the build's lines for the others.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::project::{OPS, Project, RELU, file};

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
    assert_eq!(ran.starts, 0);
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
    assert_eq!(ran.starts, 0);
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

// The declaration.

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

// Templates and logs.

#[test]
fn the_log_template_runs_the_logs_alone() {
    let project = Project::built();
    project.edit("assets/log_template.md", "# {{ op }}", "# Log of {{ op }}");
    let ran = project.build().exits(0).runs("gelu:log softmax:log");
    assert_eq!(ran.starts, 0);
    assert!(project.read("logs/gelu_log.md").starts_with("# Log of gelu\n"));
}

#[test]
fn the_summary_template_runs_the_summary_alone() {
    let project = Project::built();
    project.write("assets/summary_template.md", "# Of my own\n");
    project.build().exits(0).runs("summary");
    assert_eq!(project.read("logs/summary.md"), "# Of my own\n");
}

#[test]
fn a_log_that_was_deleted_is_restored_and_nothing_runs() {
    let project = Project::built();
    let logs = ["logs/softmax_log.md", "logs/summary.md"].map(|log| (log, project.read(log)));
    project.remove("logs");
    let ran = project.build().exits(0).runs("").says("note: logs/softmax_log.md was missing and is restored\n");
    assert_eq!(ran.starts, 0);
    for (log, text) in logs {
        assert_eq!(project.read(log), text);
    }
}

#[test]
fn a_log_that_was_edited_is_restored_and_the_edit_is_kept() {
    let project = Project::built();
    let log = project.read("logs/softmax_log.md");
    project.write("logs/softmax_log.md", "mine");
    let ran = project.build().exits(0).runs("").says("logs/softmax_log.md was edited by hand and is restored");
    assert_eq!((ran.starts, project.read("logs/softmax_log.md")), (0, log));
    let kept = project.files("cache/replaced");
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert_eq!(fs::read_to_string(&kept[0]).unwrap(), "mine");
    assert!(kept[0].to_str().unwrap().ends_with("-softmax_log.md"));
}

// The toolchain.

#[test]
fn another_torch_runs_all_phases_that_use_torch() {
    let project = Project::built();
    project.install(&[("torch", "2.12.0"), ("triton", "3.6.0")]);
    project.build().exits(0).runs(&everything()).says("torch 2.12.0, triton 3.6.0");
}

#[test]
fn another_triton_runs_compile_check_and_bench() {
    let project = Project::built();
    project.install(&[("torch", "2.11.0"), ("triton", "3.7.0")]);
    let of =
        |op: &str| format!("{op}:select,log {op}/v1_baseline:compile,check,bench {op}/v2_tiling:compile,check,bench");
    project.build().exits(0).runs(&format!("{} {} summary", of("gelu"), of("softmax"))).says("triton 3.7.0");
}

#[test]
fn versions_that_come_back_run_nothing() {
    let project = Project::built();
    project.install(&[("torch", "2.12.0"), ("triton", "3.7.0")]);
    project.build().runs(&everything());
    project.install(&[("torch", "2.11.0"), ("triton", "3.6.0")]);
    project.build().exits(0).runs("");
}

#[test]
fn a_package_that_no_phase_uses_starts_the_interpreter_once_and_runs_nothing() {
    let project = Project::built();
    project.install(&[("torch", "2.11.0"), ("triton", "3.6.0"), ("numpy", "2.3.0")]);
    assert_eq!(project.build().exits(0).runs("").starts, 1);
    assert_eq!(project.build().exits(0).runs("").starts, 0);
}

#[test]
fn another_interpreter_with_the_same_versions_runs_nothing() {
    let project = Project::built();
    crate::project::install(&project.path("../other"));
    let ran = project.t2t(&format!("build --python {}", project.path("../other/bin/python").display()));
    ran.exits(0).runs("").says("at [FOLDER]/other/bin/python (--python)");
}

#[test]
fn the_catalogue_and_the_device_table_run_what_reads_them() {
    let project = Project::built();
    let assets = crate::environment::root().join("assets");
    let catalogue = fs::read_to_string(assets.join("ops_catalogue.json")).unwrap();
    project.write("assets/ops_catalogue.json", catalogue + "\n");
    project.build().exits(0).runs_beside_the_summary("gelu:analyze softmax:analyze");
    let mut devices: serde_json::Value =
        serde_json::from_slice(&fs::read(assets.join("devices.json")).unwrap()).unwrap();
    for row in devices.as_object_mut().unwrap().values_mut() {
        row["note"] = "another".into();
    }
    project.write("assets/devices.json", devices.to_string());
    let compiles =
        "gelu/v1_baseline:compile gelu/v2_tiling:compile softmax/v1_baseline:compile softmax/v2_tiling:compile";
    project.build().exits(0).runs_beside_the_summary(compiles);
}

// Rejections and losses.

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

// What actions turn out to read.

#[test]
fn a_file_that_an_action_read_counts_and_so_does_one_that_it_missed() {
    let project = marked("READS data/table.txt");
    project.build().exits(0).runs("");
    project.write("data/table.txt", "1");
    project.build().exits(0).runs(V2);
    project.write("data/table.txt", "2");
    project.build().exits(0).runs(V2);
    project.write("data/table.txt", "1");
    project.build().exits(0).runs("");
    project.remove("data/table.txt");
    project.build().exits(0).runs("");
    project.write("data/other.txt", "1");
    project.build().exits(0).runs("");
}

#[test]
fn a_python_file_that_an_action_read_counts_by_its_meaning() {
    let project = Project::new();
    project.kernel("softmax", "v2_tiling", "READS data/table.py");
    project.write("data/table.py", "ONE = 1\n");
    project.build().exits(0);
    project.write("data/table.py", "ONE = 1  # one\n");
    project.build().exits(0).runs("");
    project.write("data/table.py", "ONE = 2\n");
    project.build().exits(0).runs(V2);
}

#[test]
fn a_package_file_that_appears_above_the_kernels_runs_them() {
    let project = Project::built();
    project.write("kernels/softmax/__init__.py", "import sys\n");
    let expected =
        "softmax:select,log softmax/v1_baseline:compile,check,bench softmax/v2_tiling:compile,check,bench summary";
    project.build().exits(0).runs(expected);
}

// The store.

/// Returns the file of an artifact in the store, by what the journal says last.
fn blob(project: &Project, target: &str, artifact: &str) -> PathBuf {
    let journal = project.read("cache/journal");
    let records = journal.lines().skip(1).filter_map(|line| line.split_once(' '));
    let records = records.map(|(_, body)| serde_json::from_str::<serde_json::Value>(body).unwrap());
    let record = records.filter(|record| record["identity"]["target"] == target).last().expect(target);
    let digest = record["outputs"][artifact]["digest"].as_str().expect(artifact).to_owned();
    project.path(&format!("cache/cas/{}/{}", &digest[..2], &digest[2..]))
}

#[test]
fn without_its_store_a_build_runs_everything() {
    let project = Project::built();
    project.remove("cache");
    project.build().exits(0).runs(&everything());
}

#[test]
fn a_store_in_another_folder_answers_there() {
    let (first, second) = (Project::built(), Project::new());
    second.remove("cache");
    let copied = Command::new("cp").arg("-r").args([first.path("cache"), second.path("cache")]).status().unwrap();
    assert!(copied.success());
    second.build().exits(0).runs("");
    assert_eq!(first.read("logs/summary.md"), second.read("logs/summary.md"));
}

#[test]
fn a_workspace_that_was_moved_runs_nothing() {
    let project = Project::built();
    fs::rename(project.path(""), project.path("../moved")).unwrap();
    let ran = project.run(project.command("build").current_dir(project.path("../moved"))).exits(0).runs("");
    assert_eq!(ran.starts, 0);
}

#[test]
fn a_page_that_the_store_lost_is_rendered_again_when_it_is_needed() {
    let project = Project::built();
    fs::remove_file(blob(&project, "softmax:log", "page")).unwrap();
    project.build().exits(0).runs("");
    project.remove("logs/softmax_log.md");
    project.build().exits(0).runs("softmax:log");
    assert!(project.exists("logs/softmax_log.md"));
}

#[test]
fn a_damaged_artifact_runs_the_action_that_made_it_when_it_is_needed() {
    let project = marked("ERROR 1e-6");
    fs::write(blob(&project, "softmax/v2_tiling:check", "evidence"), "garbage").unwrap();
    project.build().exits(0).runs("");
    project.edit(KERNEL, "softmax, v2_tiling.", "Tiles.");
    let ran = project.build().exits(0).runs_beside_the_summary("softmax:log softmax/v2_tiling:check");
    ran.says("was damaged and is removed; the action that made it runs again");
}

#[test]
fn a_damaged_selection_is_made_again_and_the_closing_table_is_whole() {
    let project = Project::built();
    fs::write(blob(&project, "softmax:select", "selection"), "garbage").unwrap();
    let told = project.build().exits(0).runs("");
    assert!(told.stdout.contains("softmax"), "{}", told.stdout);
    let ran = project.t2t("build softmax").exits(0).runs("softmax:select");
    assert!(ran.stdout.contains("softmax"), "{}", ran.stdout);
}

#[test]
fn manifests_that_are_lost_cost_explanations_and_nothing_else() {
    let project = Project::built();
    let key = |line: &str| line.split("\"key\":\"").nth(1).and_then(|rest| rest.split('"').next().map(str::to_owned));
    for key in project.read("cache/journal").lines().filter_map(key) {
        fs::remove_file(project.path(&format!("cache/cas/{}/{}", &key[..2], &key[2..]))).unwrap();
    }
    project.build().exits(0).runs("");
    project.edit(KERNEL, "input + 1", "input + 2");
    project.t2t("build --dry-run").exits(0).says("softmax/v2_tiling:check the last result's manifest is gone");
    project.build().exits(0).runs(V2);
}

#[test]
fn a_torn_journal_loses_its_last_record_alone() {
    let project = Project::built();
    let journal = project.read("cache/journal");
    project.write("cache/journal", &journal[..journal.len() - 20]);
    let ran = project.build().exits(0).runs("summary");
    ran.says("warning: 1 damaged lines of cache/journal are ignored");
    project.build().exits(0).runs("");
}

#[test]
fn garbage_in_the_journal_is_skipped() {
    let project = Project::built();
    let journal = fs::read(project.path("cache/journal")).unwrap();
    project.write("cache/journal", [&journal[..], b"\xff\x00garbage\n0123456789abcdef {}\n"].concat());
    project.build().exits(0).runs("").says("warning: 2 damaged lines of cache/journal are ignored");
}

#[test]
fn a_journal_of_another_version_is_an_empty_one() {
    let project = Project::built();
    project.edit("cache/journal", "t2t journal 1", "t2t journal 999");
    project.build().exits(0).runs(&everything());
    project.build().exits(0).runs("");
}

#[test]
fn other_garbage_in_the_store_is_a_miss() {
    let project = Project::built();
    project.write("cache/sources.json", "garbage");
    for file in project.files("cache/toolchain") {
        fs::write(file, "garbage").unwrap();
    }
    assert_eq!(project.build().exits(0).runs("").starts, 0, "nothing of it is read while nothing changed");
    assert_eq!(project.t2t("build softmax").exits(0).runs("").starts, 1);
}

// How much is compiled.

#[test]
fn without_a_device_the_first_configuration_is_compiled_unless_compiling_is_asked_for() {
    let project = Project::built();
    project.t2t("build softmax/v1_baseline:compile").exits(0).runs("softmax/v1_baseline:compile");
    project.t2t("build softmax --phase compile").exits(0).runs("softmax/v2_tiling:compile");
    project.build().exits(0).runs("");
}
