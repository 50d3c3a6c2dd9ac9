//! Published results: what `t2t publish` writes, and what `--as-device` and `--require-cached` make of it, damaged or not.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::project::{Project, Ran};

const FOLDER: &str = "assets/results/interpreter";
const GATE: &str = "build --require-cached --as-device interpreter";

/// A workspace whose results are published, and whose store is empty: as a clone on another machine.
fn clone() -> Project {
    let project = Project::built();
    project.t2t("publish").exits(0);
    project.t2t("clean --cache").exits(0);
    project
}

/// Returns the targets that a build lists as missing.
fn missing(ran: &Ran) -> Vec<&str> {
    let lines = ran.stdout.lines().filter_map(|line| line.strip_prefix("missing   "));
    lines.map(|line| line.split_once(' ').map_or(line, |(target, _)| target)).collect()
}

fn names(project: &Project, folder: &str) -> Vec<String> {
    let root = project.path(folder);
    let files = project.files(folder);
    files.iter().map(|file| file.strip_prefix(&root).unwrap().to_str().unwrap().to_owned()).collect()
}

fn contents(project: &Project) -> Vec<(String, String)> {
    names(project, FOLDER).into_iter().map(|name| (name.clone(), project.read(&format!("{FOLDER}/{name}")))).collect()
}

fn git(project: &Project, arguments: &[&str]) {
    let own = ["-c", "user.name=t2t", "-c", "user.email=t2t@example.org", "-c", "commit.gpgsign=false"];
    let run = Command::new("git").args(own).args(arguments).current_dir(project.path("")).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
}

// What is written.

#[test]
fn everything_but_compiled_kernels_is_published_for_people_and_diffs() {
    let project = Project::built();
    let ran = project.t2t("publish").exits(0).runs("");
    assert!(ran.stdout.starts_with("19 results, in assets/results/interpreter: 8 files, "), "{}", ran.stdout);
    let files = ["build.json", "device.json", "logs/gelu_log.md", "logs/softmax_log.md", "logs/summary.md"];
    assert_eq!(
        names(&project, FOLDER),
        [&files[..], &["records/gelu.json", "records/softmax.json", "statement.json"]].concat()
    );
    assert_eq!(project.read(&format!("{FOLDER}/logs/gelu_log.md")), project.read("logs/gelu_log.md"));
    let device: Value = serde_json::from_str(&project.read(&format!("{FOLDER}/device.json"))).unwrap();
    let own = env!("CARGO_PKG_VERSION");
    let versions = [("ptxas", "12.8.93"), ("python", "3.12.1"), ("t2t", own), ("torch", "2.11.0"), ("triton", "3.6.0")];
    for (name, version) in versions {
        assert_eq!(device["versions"][name], version);
    }
    assert_eq!((device["model"].as_str(), device["revision"].is_null()), (Some("interpreter"), true));
    let records: Value = serde_json::from_str(&project.read(&format!("{FOLDER}/records/softmax.json"))).unwrap();
    let mut records = records["records"].as_array().unwrap().iter();
    let compile = records.find(|entry| entry["record"]["identity"]["target"] == "softmax/v2_tiling:compile").unwrap();
    assert!(compile["record"]["outputs"]["triton.tar.gz"]["digest"].is_string());
    assert!(compile["documents"]["triton.tar.gz"].is_null() && compile["documents"]["resources"].is_object());
}

#[test]
fn the_same_results_are_published_as_the_same_bytes_without_places_of_the_machine() {
    let project = Project::built();
    project.t2t("publish").exits(0);
    let first = contents(&project);
    project.remove("assets/results");
    project.t2t("publish").exits(0);
    assert_eq!(contents(&project), first);
    let folder = project.path("../").display().to_string();
    for (name, text) in first {
        assert!(!text.contains(folder.trim_end_matches('/')), "{name} names {folder}");
    }
}

#[test]
fn what_an_earlier_publication_left_is_removed() {
    let project = clone();
    project.write(&format!("{FOLDER}/records/relu.json"), "{}");
    project.build().exits(0);
    project.t2t("publish").exits(0);
    assert!(!project.exists(&format!("{FOLDER}/records/relu.json")));
}

#[test]
fn what_is_stale_is_not_published() {
    let project = Project::built();
    project.edit("kernels/softmax/v2_tiling.py", "+ 1", "+ 2");
    let ran = project.t2t("publish").exits(1).runs("");
    let stale: Vec<&str> = ran.stdout.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
    let kernel = ["softmax/v2_tiling:compile", "softmax/v2_tiling:check", "softmax/v2_tiling:bench"];
    assert_eq!(stale, [&kernel[..], &["softmax:select", "softmax:log", "summary"]].concat());
    assert_eq!(ran.stderr, "error: 6 of 19 results cannot be published\nhint: run `t2t build`, then `t2t publish`\n");
    assert!(!project.exists("assets/results"));
    let elsewhere = "hint: run `t2t build --as-device interpreter`, then `t2t publish --as-device interpreter`";
    project.t2t("publish --as-device interpreter").exits(1).says(elsewhere);
}

#[test]
fn a_rejection_is_a_result_and_fails_the_gate_as_it_fails_a_build() {
    let project = Project::new();
    project.kernel("softmax", "v2_tiling", "REJECT mismatch");
    project.build().exits(1);
    project.t2t("publish").exits(0).says("18 results, 1 of them rejections, in assets/results/interpreter");
    project.t2t("clean --cache").exits(0);
    let ran = project.t2t(GATE).exits(1).runs("").says("2 of 256 elements differ");
    assert_eq!(missing(&ran), [""; 0]);
}

#[test]
fn a_publication_says_from_which_commit_it_is_and_whether_files_differed() {
    let project = Project::built();
    project.write(".gitignore", "/cache/\n/logs/\n");
    git(&project, &["init", "-q"]);
    git(&project, &["add", "."]);
    git(&project, &["commit", "-qm", "first"]);
    let publish = || -> Value {
        project.t2t("publish").exits(0);
        serde_json::from_str(&project.read(&format!("{FOLDER}/device.json"))).unwrap()
    };
    let clean = publish();
    assert_eq!((clean["revision"].as_str().unwrap().len(), &clean["dirty"]), (40, &Value::from(false)));
    assert_eq!(publish(), clean, "what is published makes nothing dirty");
    project.edit("kernels/softmax/v2_tiling.py", "softmax, v2_tiling.", "softmax in tiles.");
    project.build().exits(0).runs("softmax:log");
    assert_eq!(publish()["dirty"], true);
    project.t2t(GATE).exits(0).says(&format!("published from {} with changes", "[DIGEST]"));
}

// What is made of it.

#[test]
fn published_results_stand_for_those_of_a_device_that_is_not_here() {
    let project = clone();
    let ran = project.t2t(GATE).exits(0).runs("").never_says("warning");
    assert!(ran.stderr.contains("note: results of interpreter: nothing runs on a device\n"), "{}", ran.stderr);
    assert!(ran.stderr.contains("fresh 19, restored 0, ran 0"), "{}", ran.stderr);
    assert!(!project.exists("logs") || names(&project, "logs").is_empty(), "the logs are of this machine's device");
    project.t2t("status --as-device interpreter").exits(0).says("19 up to date, 0 stale, of 19 actions");
    let log = project.t2t("log softmax --as-device interpreter").exits(0);
    assert_eq!(log.stdout, project.read(&format!("{FOLDER}/logs/softmax_log.md")));
    // Without `--as-device` they count for nothing.
    let ran = project.t2t("build --require-cached").exits(1).runs("");
    assert_eq!(missing(&ran).len(), 14);
}

#[test]
fn a_fresh_clone_elsewhere_accepts_what_was_published_and_holds_the_gate() {
    let project = Project::built();
    project.write(".gitignore", "/cache/\n/logs/\n");
    project.t2t("publish").exits(0);
    git(&project, &["init", "-q"]);
    git(&project, &["add", "."]);
    git(&project, &["commit", "-qm", "kernels and results"]);
    git(&project, &["clone", "-q", ".", "../elsewhere"]);
    let gate = || project.run(project.command(GATE).current_dir(project.path("../elsewhere")));
    gate().exits(0).runs("").says("fresh 19, restored 0, ran 0").never_says("warning");
    project.edit("../elsewhere/kernels/gelu/v1_baseline.py", "+ 1", "+ 3");
    let kernel = ["gelu/v1_baseline:compile", "gelu/v1_baseline:check", "gelu/v1_baseline:bench"];
    assert_eq!(missing(&gate().exits(1)), kernel);
}

#[test]
fn require_cached_renders_what_needs_no_child_and_runs_none() {
    let project = Project::built();
    project.remove("logs");
    project.t2t("build --require-cached").exits(0).runs("").says("logs/softmax_log.md was missing and is restored");
    project.edit("kernels/softmax/v2_tiling.py", "softmax, v2_tiling.", "softmax in tiles.");
    project.t2t("build --require-cached").exits(0).runs("softmax:log");
    assert!(project.read("logs/softmax_log.md").contains("softmax in tiles."));
    project.edit("kernels/softmax/v2_tiling.py", "+ 1", "+ 2");
    let ran = project.t2t("build --require-cached softmax").exits(1).runs("");
    assert_eq!(missing(&ran).len(), 3);
    assert!(ran.stderr.ends_with("error: 3 results of interpreter are missing\nhint: run `t2t build`, or restore `cache/` from where it was built\n"));
    project.t2t("build --require-cached softmax/v1_baseline:bench gelu").exits(0).runs("");
    project.t2t("build --require-cached --force").exits(2).says("cannot be used with");
}

#[test]
fn an_edited_kernel_is_missing_and_nothing_else() {
    let project = clone();
    project.edit("kernels/softmax/v2_tiling.py", "+ 1", "+ 2");
    let ran = project.t2t(GATE).exits(1).runs("");
    let expected = "\
missing   softmax/v2_tiling:compile  code of `kernels/softmax/v2_tiling.py` changed: [DIGEST] → [DIGEST]
missing   softmax/v2_tiling:check  code of `kernels/softmax/v2_tiling.py` changed: [DIGEST] → [DIGEST]
missing   softmax/v2_tiling:bench  code of `kernels/softmax/v2_tiling.py` changed: [DIGEST] → [DIGEST]; `softmax/v2_tiling:check` would run first
";
    assert!(ran.stdout.starts_with(expected), "{}", ran.stdout);
    assert_eq!(missing(&ran).len(), 3);
    let said = "error: 3 results of interpreter are missing\nhint: build on a machine that has the device, run `t2t publish` there, and keep `assets/results/interpreter`\n";
    assert!(ran.stderr.ends_with(said), "{}", ran.stderr);
    project.edit("kernels/softmax/v2_tiling.py", "+ 2", "+ 1");
    project.t2t(GATE).exits(0);
}

#[test]
fn an_edited_comment_leaves_results_standing_and_an_edited_docstring_renders_a_log() {
    let project = clone();
    project.edit("kernels/softmax/v2_tiling.py", "import triton", "import triton  # the compiler");
    project.t2t(GATE).exits(0).says("fresh 19,");
    project.edit("kernels/softmax/v2_tiling.py", "softmax, v2_tiling.", "softmax in tiles.");
    project.t2t(GATE).exits(0).runs("softmax:log").says(
        "note: the pages in assets/results/interpreter/logs differ from the published records: run `t2t publish --as-device interpreter`\n",
    );
    project.t2t(GATE).exits(0).runs("").says("note: the pages in assets/results/interpreter/logs differ from");
    project.t2t("publish --as-device interpreter").exits(0);
    assert!(project.read(&format!("{FOLDER}/logs/softmax_log.md")).contains("softmax in tiles."));
    project.t2t("clean --cache").exits(0);
    project.t2t(GATE).exits(0).runs("").never_says("differs");
}

#[test]
fn another_version_is_named_as_the_reason() {
    let project = clone();
    project.install(&[("torch", "2.11.0"), ("triton", "3.7.0")]);
    let ran = project.t2t(GATE).exits(1).says("softmax/v2_tiling:check  triton version changed: 3.6.0 → 3.7.0\n");
    assert_eq!(missing(&ran).len(), 12, "all but analyze");
    let bare = project.run(project.command(GATE).env_remove("T2T_PYTHON")).exits(1);
    let bare = bare.says("softmax/v2_tiling:check  torch version is not known here; it was 2.11.0; triton version is");
    assert_eq!((missing(&bare).len(), bare.starts), (14, 0));
}

#[test]
fn a_model_that_nobody_knows_is_bad_use_with_those_that_are_known() {
    let project = clone();
    let ran = project.t2t("status --as-device tesla").exits(2);
    assert!(ran.stderr.starts_with("error: no device model `tesla`\nhint: known are interpreter, nvidia-"));
    let ran = project.t2t("status --as-device nvidia-l40").exits(2);
    assert!(ran.stderr.starts_with("error: no device model `nvidia-l40`\nhint: did you mean `nvidia-l4`? known are "));
    project.run(project.command("status --as-device nvidia-h200").arg("--device").arg("cpu")).exits(2);
}

#[test]
fn of_a_model_without_results_everything_is_missing_and_without_require_cached_what_needs_no_device_runs() {
    let project = Project::new();
    let ran = project.t2t("build --require-cached --as-device nvidia-h200").exits(1).runs("");
    assert!(ran.stderr.contains("warning: `assets/results/nvidia-h200` is not there: the driver is not known\n"));
    assert!(missing(&ran).contains(&"softmax/v2_tiling:tune"));
    let ran = project.t2t("build --as-device nvidia-h200").exits(1).runs(
        "gelu:analyze gelu/v1_baseline:compile gelu/v2_tiling:compile softmax:analyze softmax/v1_baseline:compile softmax/v2_tiling:compile",
    );
    assert!(!missing(&ran).iter().any(|target| target.ends_with(":compile") || target.ends_with(":analyze")));
    assert!(ran.stderr.contains("are missing, and nothing runs on a device that is not here\n"), "{}", ran.stderr);
}

#[test]
fn this_machines_own_results_and_logs_are_left_alone() {
    let project = Project::built();
    project.t2t("publish").exits(0);
    project.t2t("build --force softmax/v2_tiling:bench").exits(0);
    project.build().exits(0).runs("softmax:select,log summary");
    let own = (project.read("logs/softmax_log.md"), project.read("logs/summary.md"));
    project.t2t(GATE).exits(0).runs("");
    project.build().exits(0).runs("");
    assert_eq!((project.read("logs/softmax_log.md"), project.read("logs/summary.md")), own);
}

// Damage.

/// Plants a damage in a published file; returns what the gate says of it.
fn damaged(file: &str, damage: impl Fn(&Path)) -> Ran {
    let project = clone();
    damage(&project.path(&format!("{FOLDER}/{file}")));
    project.t2t(GATE)
}

fn replaced(from: &'static str, to: &'static str) -> impl Fn(&Path) {
    move |file| {
        let text = fs::read_to_string(file).unwrap();
        assert!(text.contains(from), "{}", file.display());
        fs::write(file, text.replacen(from, to, 1)).unwrap();
    }
}

/// Returns the analysis of an op and what reads what it found out: everything of its kernels.
fn with_kernels(op: &str) -> Vec<String> {
    let of_kernels = ["v1_baseline", "v2_tiling"]
        .into_iter()
        .flat_map(|variant| ["compile", "check", "bench"].map(|phase| format!("{op}/{variant}:{phase}")));
    [format!("{op}:analyze")].into_iter().chain(of_kernels).collect()
}

#[test]
fn a_changed_document_is_a_warning_and_its_record_is_missing() {
    let ran = damaged("records/softmax.json", replaced(r#""operation": "torch"#, r#""operation": "tor"#)).exits(1);
    let ran = ran.says("warning: assets/results/interpreter/records/softmax.json: `softmax:analyze`: its `analysis` does not match its digest; it counts as missing\n");
    assert_eq!(missing(&ran), with_kernels("softmax"));
}

#[test]
fn a_changed_record_is_a_warning_and_is_missing_with_what_depends_on_it() {
    let ran = damaged(
        "records/gelu.json",
        replaced(r#""outcome": "passed""#, r#""outcome": {"rejected": {"class": "nan"}}"#),
    );
    let ran = ran.exits(1).says("`gelu:analyze`: the record does not match its checksum; it counts as missing\n");
    assert_eq!(missing(&ran), with_kernels("gelu"));
}

#[test]
fn a_file_that_is_cut_short_or_gone_takes_its_op_along() {
    let all = [
        "gelu:analyze",
        "gelu/v1_baseline:compile",
        "gelu/v1_baseline:check",
        "gelu/v1_baseline:bench",
        "gelu/v2_tiling:compile",
        "gelu/v2_tiling:check",
        "gelu/v2_tiling:bench",
    ];
    let cut = damaged("records/gelu.json", |file| {
        let text = fs::read(file).unwrap();
        fs::write(file, &text[..text.len() / 2]).unwrap();
    });
    let cut = cut.exits(1).says("warning: assets/results/interpreter/records/gelu.json: not JSON: ");
    assert_eq!(missing(&cut), all);
    let gone = damaged("records/gelu.json", |file| fs::remove_file(file).unwrap()).exits(1).never_says("warning");
    assert_eq!(missing(&gone), all);
}

#[test]
fn a_page_that_was_edited_is_a_warning_and_is_rendered_again() {
    let edited = damaged("logs/softmax_log.md", |file| fs::write(file, "# all is well\n").unwrap());
    let edited = edited.exits(0).runs("softmax:log");
    edited.says("records/softmax.json: `softmax:log`: its `page` does not match its digest; it counts as missing\n");
    damaged("logs/summary.md", |file| fs::remove_file(file).unwrap()).exits(0).runs("summary");
    damaged("build.json", |file| fs::write(file, "").unwrap()).exits(0).runs("summary");
}

#[test]
fn facts_of_the_device_that_cannot_be_read_are_a_warning() {
    let said = "warning: `assets/results/interpreter` has no `device.json` that can be read: the driver is not known\n";
    damaged("device.json", |file| fs::write(file, "{").unwrap()).exits(0).says(said);
    damaged("device.json", |file| fs::remove_file(file).unwrap()).exits(0).says(said);
}

#[test]
fn there_is_no_picture_of_what_compares_nothing_or_is_not_published() {
    let project = Project::built();
    project.t2t("picture nvidia-h200").exits(2).says("no speedups of `nvidia-h200` are published\nhint: `t2t publish`");
    project.t2t("publish").exits(0);
    project.t2t("picture interpreter").exits(2).says("hint: there are results of interpreter");
    project.t2t("picture").exits(2);
}

/// `T2T_WRITE_PICTURE=1 cargo test the_picture` writes it.
#[test]
fn the_picture_of_the_readme_is_that_of_the_published_results() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let file = root.join("assets/speedups.svg");
    let project = Project::new();
    let mut command = project.command("picture nvidia-h200");
    let drawn = command.current_dir(root).output().unwrap();
    assert!(drawn.status.success(), "{}", String::from_utf8_lossy(&drawn.stderr));
    if std::env::var_os("T2T_WRITE_PICTURE").is_some() {
        fs::write(&file, &drawn.stdout).unwrap();
    }
    assert!(fs::read(&file).unwrap() == drawn.stdout, "run `t2t picture nvidia-h200 --out assets/speedups.svg`");
    for op in ["add", "softmax", "mha", "gelu", "layernorm", "matmul"] {
        assert!(String::from_utf8_lossy(&drawn.stdout).contains(op), "{op}");
    }
    assert!(fs::read_to_string(root.join("README.md")).unwrap().contains("](assets/speedups.svg)"));
}
