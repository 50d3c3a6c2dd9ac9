//! `t2t compare`: what its sides may be, what it says of them, and its exit codes.

use std::process::Command;

use serde_json::Value;

use crate::project::{Project, Ran};

const V1: &str = "kernels/softmax/v1_baseline.py";
const V2: &str = "kernels/softmax/v2_tiling.py";

/// A workspace in a repository, whose softmax kernels take 2 and 1 ms; built.
fn committed() -> Project {
    let project = Project::new();
    project.write(".gitignore", "/cache/\n/logs/\n");
    project.kernel("softmax", "v1_baseline", "TAKES 2");
    project.kernel("softmax", "v2_tiling", "TAKES 1");
    git(&project, &["init", "-q", "-b", "main"]);
    commit(&project, "first");
    project.build().exits(0);
    project
}

fn git(project: &Project, arguments: &[&str]) -> String {
    let own = ["-c", "user.name=t2t", "-c", "user.email=t2t@example.org", "-c", "commit.gpgsign=false"];
    let run = Command::new("git").args(own).args(arguments).current_dir(project.path("")).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    String::from_utf8(run.stdout).unwrap().trim().to_owned()
}

fn commit(project: &Project, message: &str) {
    git(project, &["add", "."]);
    git(project, &["commit", "-qm", message]);
}

/// Returns the Finals of softmax in a comparison as `variant verdict`, with `!` for a regression.
fn rows(project: &Project, arguments: &str, code: i32) -> Vec<String> {
    let ran = project.t2t(&format!("compare {arguments} --format json")).exits(code);
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    let row = |row: &Value| {
        let text = |name: &str| row[name].as_str().unwrap().to_owned();
        let (ours, theirs) = (text("variant_a"), text("variant_b"));
        let variant = if ours == theirs { ours } else { format!("{ours}→{theirs}") };
        let regression = if row["regression"] == true { "!" } else { "" };
        format!("{variant} {}{regression}", text("verdict"))
    };
    let rows = document["rows"].as_array().unwrap().iter();
    rows.filter(|row| row["op"] == "softmax" && row["size"] == "Final").map(row).collect()
}

/// Returns the key of a bench.
fn key(project: &Project, target: &str) -> String {
    let explained = project.run_raw(&format!("explain {target}"));
    let line = explained.lines().find_map(|line| line.strip_prefix("  key ")).unwrap();
    line.to_owned()
}

#[test]
fn a_slower_commit_is_a_regression_and_a_faster_one_is_not() {
    let project = committed();
    project.kernel("softmax", "v2_tiling", "TAKES 1.5");
    commit(&project, "slower");
    project.build().exits(0);
    let expected = ["v1_baseline same", "v2_tiling slower!"];
    assert_eq!(rows(&project, "HEAD~1 HEAD", 1), expected);
    assert_eq!(rows(&project, "HEAD HEAD~1", 0), ["v1_baseline same", "v2_tiling faster"]);
    assert_eq!(rows(&project, "HEAD~1 HEAD --threshold 60", 0)[1], "v2_tiling slower");
    assert_eq!(rows(&project, "main .", 0)[1], "v2_tiling same");
    assert_eq!(project.files("cache/scratch"), [] as [std::path::PathBuf; 0], "what was checked out is gone");
}

#[test]
fn the_workspace_as_it_is_is_compared_with_a_commit() {
    let project = committed();
    project.kernel("softmax", "v2_tiling", "TAKES 0.5");
    let ran = project.t2t("compare HEAD .").exits(0);
    assert!(ran.stderr.starts_with("warning: B: no result of softmax/v2_tiling:bench: code of"), "{}", ran.stderr);
    project.build().exits(0);
    let ran = project.t2t("compare HEAD .").exits(0);
    assert_eq!(ran.stderr, "");
    assert!(ran.stdout.contains("B  the workspace `.` on interpreter\n"), "{}", ran.stdout);
    let lines = ran.stdout.lines().filter(|line| line.starts_with("softmax  v2_tiling "));
    let cells: Vec<Vec<&str>> = lines.map(|line| line.split_whitespace().collect()).collect();
    let sizes: Vec<&str> = cells.iter().map(|cells| cells[2]).collect();
    assert_eq!(sizes, ["small", "medium", "large", "Final"]);
    assert!(cells.iter().all(|cells| cells[3..6] == ["1.000", "0.5000", "2.00x"] && cells[8] == "faster"), "{cells:?}");
}

#[test]
fn two_records_are_compared_by_the_start_of_their_keys() {
    let project = committed();
    let [first, second] =
        ["v1_baseline", "v2_tiling"].map(|variant| key(&project, &format!("softmax/{variant}:bench")));
    let expected = ["v1_baseline→v2_tiling faster"];
    assert_eq!(rows(&project, &format!("{} {second}", &first[..10]), 0), expected);
    assert_eq!(rows(&project, &format!("key:{first} key:{}", second[..10].to_uppercase()), 0), expected);
    assert_eq!(rows(&project, &format!("{second} {first}"), 1), ["v2_tiling→v1_baseline slower!"]);
    let check = key(&project, "softmax/v1_baseline:check");
    let ran = project.t2t(&format!("compare {first} {check}")).exits(2);
    assert!(ran.stderr.starts_with("error: softmax/v1_baseline:check on interpreter ("), "{}", ran.stderr);
    ran.says("has no measurements\nhint: name the record of a bench: `t2t explain OP/VARIANT:bench` prints its key\n");
}

#[test]
fn published_folders_and_files_are_compared_without_a_store_or_a_workspace() {
    let project = committed();
    project.t2t("publish").exits(0);
    let folder = "assets/results/interpreter";
    Command::new("cp").arg("-r").arg(project.path(folder)).arg(project.path("../before")).status().unwrap();
    project.kernel("softmax", "v1_baseline", "TAKES 2.5");
    project.build().exits(0);
    project.t2t("publish").exits(0);
    project.t2t("clean --cache").exits(0);
    let expected = ["v1_baseline slower!", "v2_tiling same"];
    assert_eq!(rows(&project, &format!("../before {folder}"), 1), expected);
    let file = format!("{folder}/records/softmax.json");
    assert_eq!(rows(&project, &format!("../before/records/softmax.json {file}"), 1), expected);
    let published = project.path(folder);
    let mut outside = project.command(&format!("compare before {}", published.display()));
    let ran = project.run(outside.current_dir(project.path("../"))).exits(1);
    assert!(ran.stdout.starts_with("A  before (interpreter at [DIGEST])\nB  [ROOT]/"), "{}", ran.stdout);
}

#[test]
fn a_commit_stands_on_what_it_publishes_itself() {
    let project = committed();
    project.t2t("publish").exits(0);
    commit(&project, "results");
    project.kernel("softmax", "v1_baseline", "TAKES 3");
    project.build().exits(0);
    project.t2t("publish").exits(0);
    commit(&project, "slower, and results");
    project.t2t("clean --cache").exits(0);
    let expected = ["v1_baseline slower!", "v2_tiling same"];
    assert_eq!(rows(&project, "HEAD~1 HEAD", 1), expected);
    assert_eq!(rows(&project, "HEAD~1 HEAD --as-device interpreter", 1), expected);
    // The first commit publishes nothing: what is published now has no result of its kernel.
    let ran = project.t2t("compare HEAD~2 HEAD").exits(0);
    ran.says("warning: A: no result of softmax/v1_baseline:bench: code of `kernels/softmax/v1_baseline.py` changed");
}

#[test]
fn what_was_measured_again_counts_in_the_workspace_before_what_it_published() {
    let project = Project::built();
    project.t2t("publish").exits(0);
    project.t2t("build --force gelu/v1_baseline:bench").exits(0);
    let ran = project.t2t("compare assets/results/interpreter . --format json").exits(0);
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    let rows = document["rows"].as_array().unwrap().iter();
    let differing = rows.filter(|row| row["size"] == "Final" && row["a_ms"] != row["b_ms"]);
    let told: Vec<&str> = differing.map(|row| row["variant_a"].as_str().unwrap()).collect();
    assert_eq!(told, ["v1_baseline"]);
}

#[test]
fn a_variant_that_only_one_side_has_is_listed() {
    let project = committed();
    project.edit("ops.yaml", "variants: [v1_baseline, v2_tiling]", "variants: [v1_baseline]");
    commit(&project, "one variant");
    project.build().exits(0);
    let ran: Ran = project.t2t("compare HEAD~1 HEAD").exits(0);
    assert!(ran.stdout.contains("only in A: gelu/v2_tiling, softmax/v2_tiling\n"), "{}", ran.stdout);
}

#[test]
fn what_cannot_be_compared_is_bad_use() {
    let project = committed();
    for (arguments, message) in [
        (
            "HEAD nothing",
            "error: cannot compare `nothing`: it is neither a file, nor a record's key, nor a commit\nhint: name a folder",
        ),
        ("key:ffffffff HEAD", "error: cannot compare `key:ffffffff`: no record has that key\n"),
        ("HEAD rev:nothing", "error: cannot compare `rev:nothing`: git knows no such commit\n"),
        ("HEAD kernels", "error: cannot compare `kernels`: there are no published measurements\n"),
        ("HEAD HEAD --threshold=-1", "error: invalid value '-1' for '--threshold"),
        (
            "HEAD --as-device nvidia-h200 HEAD",
            "error: A: no measurement of HEAD ([DIGEST]) on nvidia-h200 is known here\n",
        ),
    ] {
        let ran = project.t2t(&format!("compare {arguments}")).exits(2);
        assert!(ran.stderr.contains(message), "{arguments}: {}", ran.stderr);
    }
    project.write(V1, project.read(V1).replace("+ 1", "+ 2"));
    project.write(V2, project.read(V2).replace("+ 1", "+ 2"));
    commit(&project, "unbuilt");
    project.edit("ops.yaml", "  gelu:\n    torch: torch.nn.functional.gelu\n    inputs: {input: [M, N]}\n", "");
    commit(&project, "softmax alone, unbuilt");
    let ran = project.t2t("compare HEAD~2 HEAD").exits(2);
    assert!(
        ran.stderr.contains(
            "B: no measurement of HEAD ([DIGEST]) on interpreter is known here\n  softmax/v1_baseline:bench: code of"
        ),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_side_that_is_known_and_has_no_figure_is_told_so() {
    let project = committed();
    for op in ["softmax", "gelu"] {
        project.kernel(op, "v1_baseline", "NO-FINAL");
        project.kernel(op, "v2_tiling", "NO-FINAL");
    }
    commit(&project, "on the interpreter");
    project.build().exits(0);
    let ran = project.t2t("compare HEAD .").exits(2);
    let told = "error: A: HEAD ([DIGEST]) has no figures on interpreter: Triton's interpreter measures nothing that compares\nhint: name a device";
    assert!(ran.stderr.starts_with(told), "{}", ran.stderr);
}

#[test]
fn figures_of_other_sizes_are_no_figures_in_common() {
    let project = committed();
    let smaller = "profiles: {cpu: {bench: {sizes: {small: [8, 8], medium: [9, 9], large: [10, 10]}}}}";
    project.edit("ops.yaml", "version: 1\n", &format!("version: 1\n{smaller}\n"));
    commit(&project, "smaller");
    project.build().exits(0);
    let ran = project.t2t("compare HEAD~1 HEAD").exits(2);
    assert!(ran.stderr.starts_with("error: A and B have no figure in common; "), "{}", ran.stderr);
}
