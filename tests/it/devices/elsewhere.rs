//! What a device published, shown by builds of machines that have none.
//!
//! It does not know how figures are measured.

use super::{build, machine, on};
use crate::project::{Project, Ran};

/// A workspace that a machine with a device built and published, and that is built without one.
fn shown() -> Project {
    let project = machine(1);
    project.write("assets/log_template.md", include_str!("../../../assets/log_template.md"));
    build(&project, "");
    project.run(&mut on(&project, &project, "publish")).exits(0);
    here(&project).exits(0);
    project
}

fn here(project: &Project) -> Ran {
    project.t2t("build --device cpu")
}

/// Returns what the log of an op says of what is published.
fn published(project: &Project, op: &str) -> String {
    let log = project.read(&format!("logs/{op}_log.md"));
    let begin = log.find("### Published: NVIDIA H200").unwrap_or_else(|| panic!("nothing published in {log}"));
    log[begin..].split("### Triton's interpreter").next().unwrap().to_owned()
}

#[test]
fn figures_of_exactly_these_kernels_are_shown_with_their_device_wherever_a_build_tells_of_them() {
    let project = shown();
    let ran = here(&project).runs("");
    let head = "Op       Correct  Best kernel  Final (ms)  Speedup  Geomean  Note\n";
    assert!(ran.stdout.contains(head) && !ran.stdout.contains("Interpreter took"), "{}", ran.stdout);
    assert!(ran.stdout.contains("Figures were published, measured on NVIDIA H200, not here:\n"), "{}", ran.stdout);
    for op in ["softmax", "gelu", "relu"] {
        let told = published(&project, op);
        assert!(told.contains("| v1_baseline") && told.contains("| v2_tiling"), "{told}");
        assert!(!told.contains("has none"), "{told}");
    }
    let summary = project.read("logs/summary.md");
    assert!(summary.contains("measured on NVIDIA H200: they are of exactly these kernels"), "{summary}");
    assert!(summary.contains("## Times in Triton's interpreter\n"), "{summary}");
}

#[test]
fn a_kernel_that_was_edited_since_has_none_and_says_so_and_the_others_keep_theirs() {
    let project = shown();
    let row = here(&project).stdout.lines().find(|line| line.starts_with("gelu ")).unwrap().to_owned();
    let [chosen, other] =
        if row.contains("v1_baseline ") { ["v1_baseline", "v2_tiling"] } else { ["v2_tiling", "v1_baseline"] };
    let kernel = format!("kernels/gelu/{chosen}.py");
    project.edit(&kernel, "+ 1", "+ 2");
    let ran = here(&project).exits(0);
    assert!(ran.stdout.contains(&format!("{chosen}, chosen there, edited since\n")), "{}", ran.stdout);
    let told = published(&project, "gelu");
    assert!(told.contains(&format!("{chosen} has none: edited since.\n")), "{told}");
    assert!(told.contains(&format!("| {other}")), "{told}");
    assert!(published(&project, "softmax").contains("| v1_baseline"));
    project.edit(&kernel, "+ 2", "+ 1  # as before");
    here(&project).exits(0);
    assert!(published(&project, "gelu").contains(&format!("| {chosen}")), "a comment is no edit");
}

#[test]
fn what_is_declared_otherwise_since_or_was_not_there_has_none() {
    let project = shown();
    project.edit("ops.yaml", "kwargs: {dim: -1}", "kwargs: {dim: 0}");
    project.edit("ops.yaml", "variants: [v1_baseline, v2_tiling]", "variants: [v1_baseline, v2_tiling, v3_new]");
    for op in ["softmax", "gelu", "relu"] {
        project.kernel(op, "v3_new", "");
    }
    here(&project).exits(0);
    let softmax = published(&project, "softmax");
    assert!(softmax.contains("v2_tiling has none: declared otherwise since.\n"), "{softmax}");
    let gelu = published(&project, "gelu");
    assert!(gelu.contains("v3_new has none: not published.\n") && gelu.contains("| v1_baseline"), "{gelu}");
}

#[test]
fn what_changes_in_the_publication_is_seen_at_once_and_what_is_damaged_or_gone_is_not_shown() {
    let project = shown();
    let records = "assets/results/nvidia-h200/records/gelu.json";
    let whole = project.read(records);
    project.write(records, &whole[..whole.len() / 2]);
    let ran = here(&project).exits(0);
    assert!(ran.stdout.contains("not published"), "{}", ran.stdout);
    assert!(!project.read("logs/gelu_log.md").contains("### Published"));
    project.write(records, &whole);
    here(&project).exits(0);
    assert!(published(&project, "gelu").contains("| v1_baseline"));
    project.remove("assets/results");
    let ran = here(&project).exits(0);
    assert!(ran.stdout.contains("Interpreter took") && !ran.stdout.contains("published"), "{}", ran.stdout);
    assert!(!project.read("logs/softmax_log.md").contains("### Published"));
}

#[test]
fn a_device_that_kernels_are_not_compiled_for_is_not_the_target() {
    let project = shown();
    project.edit("ops.yaml", "version: 1\n", "version: 1\ntargets: [nvidia-a100]\n");
    let ran = here(&project).exits(0);
    assert!(!ran.stdout.contains("published"), "{}", ran.stdout);
    project.edit("ops.yaml", "targets: [nvidia-a100]", "targets: [nvidia-h200]");
    assert!(here(&project).exits(0).stdout.contains("measured on NVIDIA H200"));
}

#[test]
fn a_kernel_that_a_generator_wrote_is_the_same_as_long_as_it_writes_that() {
    let project = machine(1);
    project.write("assets/log_template.md", include_str!("../../../assets/log_template.md"));
    project.remove("kernels/gelu");
    project.edit(
        "ops.yaml",
        "    torch: torch.nn.functional.gelu\n",
        "    torch: torch.nn.functional.gelu\n    generator: template\n",
    );
    build(&project, "");
    project.run(&mut on(&project, &project, "publish")).exits(0);
    here(&project).exits(0);
    let told = published(&project, "gelu");
    assert!(told.contains("| v1_baseline") && told.contains("| v2_tiling"), "{told}");
    let kernel = project.read("kernels/gelu/v2_tiling.py");
    project.write("kernels/gelu/v2_tiling.py", format!("{kernel}\nEDITED = 1\n"));
    here(&project).exits(0);
    let told = published(&project, "gelu");
    assert!(told.contains("v2_tiling has none: edited since.\n") && told.contains("| v1_baseline"), "{told}");
}
