//! Edits of the store: moved, damaged, lost.
//!
//! It does not know every damage: `damage` does.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::{KERNEL, V2, everything, marked};
use crate::project::Project;

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
