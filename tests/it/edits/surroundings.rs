//! Edits of what surrounds kernels: templates and logs, the toolchain, tables, and files that actions turn out to read.
//!
//! It does not know how versions are found out.

use std::fs;

use super::{V2, everything, marked};
use crate::project::Project;

#[test]
fn the_log_template_runs_the_logs_alone() {
    let project = Project::built();
    project.edit("assets/log_template.md", "# {{ op }}", "# Log of {{ op }}");
    let ran = project.build().exits(0).runs("gelu:log softmax:log");
    assert_eq!(ran.asked, 0);
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
    assert_eq!(ran.asked, 0);
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
    assert_eq!((ran.asked, project.read("logs/softmax_log.md")), (0, log));
    let kept = project.files("cache/replaced");
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert_eq!(fs::read_to_string(&kept[0]).unwrap(), "mine");
    assert!(kept[0].to_str().unwrap().ends_with("-softmax_log.md"));
}

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
    let ran = project.build().exits(0).runs("");
    assert_eq!(ran.starts, 1);
    assert!(ran.asked > 0, "what it has installed");
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
