//! `t2t cache`: planted damage is found, what the workspace needs stays, and what one store exports another takes whole or not at all.

use std::fs;
use std::io::{BufRead, BufReader};

use serde_json::Value;
use t2t_model::digest::Digest;

use crate::project::{Project, Ran};

mod archive;

/// Returns the place of the blob with this digest.
fn blob(digest: &str) -> String {
    format!("cache/cas/{}/{}", &digest[..2], &digest[2..])
}

/// Returns the last record of a target.
fn record(project: &Project, target: &str) -> Value {
    let journal = project.read("cache/journal");
    let records = journal.lines().skip(1).filter_map(|line| serde_json::from_str(line.split_once(' ')?.1).ok());
    records.filter(|record: &Value| record["identity"]["target"] == target).last().unwrap()
}

/// Returns the place of an artifact, or of the manifest.
fn artifact(project: &Project, target: &str, name: &str) -> String {
    let record = record(project, target);
    let digest = if name == "manifest" { &record["key"] } else { &record["outputs"][name]["digest"] };
    blob(digest.as_str().unwrap())
}

fn flip(project: &Project, path: &str, at: usize) {
    let mut bytes = fs::read(project.path(path)).unwrap();
    bytes[at] ^= 1;
    project.write(path, bytes);
}

/// Returns every file of the store but the lock, with its bytes.
fn contents(project: &Project) -> Vec<(String, Vec<u8>)> {
    let files = project.files("cache").into_iter().filter(|file| file.is_file() && !file.ends_with("lock"));
    files.map(|file| (file.display().to_string(), fs::read(&file).unwrap())).collect()
}

fn damages(ran: &Ran) -> Vec<&str> {
    let parted = |line| ["damaged   ", "missing   "].into_iter().find_map(|word| str::strip_prefix(line, word));
    ran.stdout.lines().filter_map(parted).collect()
}

/// Fails where a build has anything to do.
fn fresh(project: &Project) {
    project.build().exits(0).runs("");
}

/// A build needs no artifact of a result that stands, so it would say that all is fresh for ever.
#[test]
fn whoever_asks_for_a_damaged_artifact_of_a_result_that_stands_is_told_how_it_is_made_again() {
    let project = Project::built();
    let name = "softmax/v2_tiling:check verdict";
    flip(&project, &artifact(&project, "softmax/v2_tiling:check", "verdict"), 3);
    fresh(&project);
    let ran = project.t2t(&format!("artifact {name}")).exits(2);
    ran.says("hint: run `t2t cache verify --repair`, then `t2t build softmax/v2_tiling:check`\n");
    let ran = project.t2t("publish").exits(1);
    let hint = "\nhint: run `t2t cache verify --repair` and `t2t build`, then `t2t publish`\n";
    assert!(ran.stderr.ends_with(hint), "{}", ran.stderr);
    project.t2t("cache verify --repair").exits(0);
    project.build().exits(0);
    project.t2t(&format!("artifact {name}")).exits(0);
    project.t2t("publish").exits(0);
}

// verify

#[test]
fn a_built_store_is_whole_and_nothing_in_it_is_foreign() {
    let project = Project::built();
    let ran = project.t2t("cache verify").exits(0).runs("").says("19 records, ").says(": 0 damages");
    assert_eq!(damages(&ran), [""; 0]);
    assert_eq!(ran.stdout.lines().count(), 1, "{}", ran.stdout);
}

#[test]
fn every_kind_of_planted_damage_is_found_told_and_removed() {
    type Plant = fn(&Project);
    let plants: [(&str, Plant, &str, &str); 9] = [
        (
            "an artifact's byte",
            |project| flip(project, &artifact(project, "softmax/v2_tiling:check", "verdict"), 3),
            "its bytes do not match its name; it is `verdict` of",
            "the action that made it runs again; `t2t cache verify --repair` has it run in any case",
        ),
        (
            "an artifact cut short",
            |project| project.write(&artifact(project, "softmax/v2_tiling:bench", "bench"), "{"),
            "it is `bench` of softmax/v2_tiling:bench on interpreter",
            "the action that made it runs again; `t2t cache verify --repair` has it run in any case",
        ),
        (
            "an emptied artifact",
            |project| project.write(&artifact(project, "gelu:log", "page"), ""),
            "its bytes do not match its name; it is `page` of gelu:log",
            "the action that made it runs again; `t2t cache verify --repair` has it run in any case",
        ),
        (
            "a missing artifact",
            |project| project.remove(&artifact(project, "gelu:analyze", "analysis")),
            "it is missing; it is `analysis` of gelu:analyze",
            "the action that made it runs again; `t2t cache verify --repair` has it run in any case",
        ),
        (
            "a damaged manifest",
            |project| flip(project, &artifact(project, "gelu:select", "manifest"), 0),
            "it is the manifest of gelu:select",
            "`t2t explain` cannot say what changed since",
        ),
        (
            "a line's byte",
            |project| {
                let at = project.read("cache/journal").lines().take(2).map(str::len).sum::<usize>() + 60;
                flip(project, "cache/journal", at);
            },
            "journal:3: the line does not match its checksum",
            "its action runs again, or an earlier result stands",
        ),
        (
            "a torn last line",
            |project| {
                let journal = project.read("cache/journal");
                project.write("cache/journal", &journal[..journal.len() - 9]);
            },
            "journal:20: the line does not match its checksum",
            "its action runs again, or an earlier result stands",
        ),
        (
            "the first line",
            |project| flip(project, "cache/journal", 12),
            "journal: it is of another version, or its first line is damaged",
            "every action runs again",
        ),
        (
            "a blob that no record names",
            |project| project.write(&blob(&Digest::of(b"own").to_string()), "other"),
            "its bytes do not match its name; no record names it",
            "nothing needs it",
        ),
    ];
    for (name, plant, what, then) in plants {
        let project = Project::built();
        plant(&project);
        let ran = project.t2t("cache verify").exits(1);
        let found = damages(&ran);
        assert!(found.len() == 1 && found[0].contains(what) && found[0].ends_with(then), "{name}: {found:?}");
        let again = project.t2t("cache verify").exits(1);
        assert_eq!(again.stdout, ran.stdout, "{name}: looking changed something");
        project.t2t("cache verify --repair").exits(0).says("removed; ");
        assert_eq!(damages(&project.t2t("cache verify")), [""; 0], "{name}");
        project.build().exits(0);
        fresh(&project);
    }
}

#[test]
fn a_foreign_file_is_told_and_left_to_its_owner() {
    let project = Project::built();
    for place in ["cache/cas/ab/note.txt", "cache/cas/note.txt", "cache/note.txt"] {
        project.write(place, "mine");
        let ran = project
            .t2t("cache verify --repair")
            .exits(1)
            .says("1 damage left: only you can judge files that t2t did not make or cannot read");
        assert_eq!(damages(&ran), [format!("{place}: t2t made no such file; it is never read")]);
        assert!(project.exists(place));
        project.remove(place);
    }
}

#[test]
fn what_other_commands_keep_is_no_damage() {
    let project = Project::new();
    project.remove("cache");
    project.build().exits(0);
    assert_eq!(project.read("cache/.gitignore"), "*\n");
    for folder in ["against", "improve", "profile", "submitted"] {
        project.write(&format!("cache/{folder}/softmax/note.json"), "{}");
    }
    project.t2t("cache verify").exits(0).says(": 0 damages");
}

#[test]
fn a_compiled_kernel_that_was_left_out_is_no_damage() {
    let project = Project::built();
    project.remove(&artifact(&project, "softmax/v1_baseline:compile", "triton.tar.gz"));
    project.t2t("cache verify").exits(0).says("left out  ").says(": 0 damages");
}

// stats

#[test]
fn stats_add_up() {
    let project = Project::built();
    let stats: Value = serde_json::from_str(&project.run_raw("cache stats --format json")).unwrap();
    assert_eq!((&stats["version"], &stats["records"]["number"]), (&1.into(), &19.into()));
    assert_eq!(stats["needed"], stats["records"]);
    assert_eq!(stats["records"]["bytes"], stats["blobs"]["bytes"]);
    assert_eq!((&stats["unnamed"]["number"], &stats["damaged_lines"]), (&0.into(), &0.into()));
    let phases = stats["phases"].as_object().unwrap();
    assert_eq!(phases.values().map(|share| share["number"].as_u64().unwrap()).sum::<u64>(), 19);
    let files = project.files("cache/cas");
    let size: u64 = files.iter().map(|file| file.metadata().unwrap().len()).sum();
    assert_eq!((&stats["blobs"]["number"], &stats["blobs"]["bytes"]), (&files.len().into(), &size.into()));
    project.edit("kernels/softmax/v2_tiling.py", "+ 1", "+ 2");
    project.build().exits(0);
    project.t2t("cache stats").exits(0).says("records by phase").says("needed now");
    let stats: Value = serde_json::from_str(&project.run_raw("cache stats --format json")).unwrap();
    assert_eq!(stats["needed"]["number"], 19);
    assert!(stats["records"]["number"].as_u64() > Some(19), "{stats}");
}

// gc

#[test]
fn without_limits_only_what_no_record_names_goes() {
    let project = Project::built();
    project.edit("kernels/softmax/v2_tiling.py", "+ 1", "+ 2");
    project.build().exits(0);
    project.write(&blob(&Digest::of(b"left").to_string()), "left");
    project.write("cache/cas/ab/.cdef.77.0.tmp", "le");
    let before = contents(&project);
    project.t2t("cache gc --dry-run").exits(0).says("would be removed: 0 records, 1 blob, 4 B");
    assert_eq!(contents(&project), before);
    project.t2t("cache gc").exits(0).says("removed: 0 records, 1 blob, 4 B");
    assert_eq!(contents(&project).len(), before.len() - 2);
    fresh(&project);
    project.edit("kernels/softmax/v2_tiling.py", "+ 2", "+ 1");
    project.build().exits(0).never_says("check softmax/v2_tiling …").runs_beside_the_summary("");
}

#[test]
fn beyond_the_limits_the_oldest_go_and_never_what_the_workspace_needs() {
    for limit in ["--max-size 1B", "--max-age 0s"] {
        let project = Project::built();
        project.edit("kernels/softmax/v2_tiling.py", "+ 1", "+ 2");
        project.build().exits(0);
        let ran = project.t2t(&format!("cache gc {limit}")).exits(0);
        assert!(ran.stdout.starts_with("removed: ") && !ran.stdout.starts_with("removed: 0"), "{}", ran.stdout);
        assert_eq!(project.read("cache/journal").lines().count(), 20, "{limit}");
        project.t2t("cache verify").exits(0).says("19 records").never_says("unnamed");
        fresh(&project);
        project.t2t(&format!("cache gc {limit}")).exits(0).says("removed: 0 records, 0 blobs");
    }
}

#[test]
fn a_limit_that_is_kept_removes_nothing() {
    let project = Project::built();
    project.edit("kernels/softmax/v2_tiling.py", "+ 1", "+ 2");
    project.build().exits(0);
    let before = contents(&project);
    project.t2t("cache gc --max-size 1GiB --max-age 30d").exits(0).says("removed: 0 records, 0 blobs");
    assert_eq!(contents(&project), before);
}

#[test]
fn an_amount_that_is_none_is_bad_use() {
    let project = Project::new();
    for (arguments, said) in [
        ("--max-size 2XB", "it is a whole number with a unit, as in 500MB, 2GiB"),
        ("--max-size -1", "unexpected argument"),
        ("--max-size 99999999999TiB", "it is a whole number with a unit, as in 500MB, 2GiB"),
        ("--max-age 30", "it is a whole number with a unit (s, min, h, d, w), as in 12h, 30d"),
        ("--max-age 999999999999w", "it is a whole number with a unit (s, min, h, d, w), as in 12h, 30d"),
    ] {
        project.t2t(&format!("cache gc {arguments}")).exits(2).says(said);
    }
}

#[test]
fn gc_waits_for_a_build_and_says_for_whom() {
    let project = Project::new();
    project.kernel("gelu", "v2_tiling", "WAITS");
    let build = project.spawn("build");
    project.until_logged("gelu/v2_tiling:check candidate:run");
    let mut gc = project.spawn("cache gc --max-size 1B");
    let mut line = String::new();
    BufReader::new(gc.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let head = format!("waiting: the workspace's lock, cache/lock, held by pid {}, `", build.id());
    assert!(line.starts_with(&head) && line.contains("t2t build"), "{line}");
    project.calm();
    project.wait(build).exits(0);
    project.wait(gc).exits(0);
    fresh(&project);
}
