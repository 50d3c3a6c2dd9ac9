//! A journal that revisions filled by coming back: the build that finds it writes it anew, whatever happens meanwhile, and nothing is lost by it.

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::project::Project;

const KERNEL: &str = "kernels/softmax/v2_tiling.py";
/// How often the lines of the two revisions are added again: more than a journal may have of repeats.
const RETURNS: usize = 60;

/// A workspace of which two revisions were built.
fn two_revisions() -> Project {
    let project = Project::built();
    project.edit(KERNEL, "input + 1", "input + 2");
    project.build().exits(0);
    project.edit(KERNEL, "input + 2", "input + 1");
    project.build().exits(0).runs("");
    project
}

/// Adds the lines of the journal again and again, as returns do, and returns how many there are then. Whoever reads meanwhile sees all of it or nothing.
fn wear(project: &Project) -> usize {
    let journal = project.read("cache/journal");
    let (_, lines) = journal.split_once('\n').unwrap();
    project.write("../worn", format!("{journal}{}", lines.repeat(RETURNS)));
    fs::rename(project.path("../worn"), project.path("cache/journal")).unwrap();
    lines_of(project)
}

fn lines_of(project: &Project) -> usize {
    project.read("cache/journal").lines().count() - 1
}

/// Returns the lines that differ, in the order in which each stands last.
fn distinct(project: &Project) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in project.read("cache/journal").lines().skip(1) {
        lines.retain(|other| other != line);
        lines.push(line.to_owned());
    }
    lines
}

/// Fails unless both revisions come back without a run.
fn expect_both(project: &Project) {
    for (from, to) in [("input + 1", "input + 2"), ("input + 2", "input + 1")] {
        project.edit(KERNEL, from, to);
        let ran = project.build().exits(0).runs("");
        // One may have got a head start, before it was known what comes back.
        assert_eq!(ran.asked, 0);
        ran.never_says("warning");
    }
    project.t2t("cache verify").exits(0).says(": 0 damages").never_says("unfinished");
}

#[test]
fn a_journal_of_repeats_is_written_anew_by_the_next_build_and_tells_the_same() {
    let project = two_revisions();
    let (worn, kept) = (wear(&project), distinct(&project));
    assert!(worn > 1024 && kept.len() < 64, "{worn} {}", kept.len());
    let known = |project: &Project| project.run_raw("explain softmax/v2_tiling:check");
    let before = known(&project);
    assert_eq!(lines_of(&project), worn, "what only looks changes nothing");
    project.build().exits(0).runs("").never_says("warning");
    assert_eq!(project.read("cache/journal").lines().skip(1).collect::<Vec<_>>(), kept);
    assert_eq!(known(&project), before);
    expect_both(&project);
}

#[test]
fn damaged_lines_stay_in_a_journal_that_is_written_anew() {
    let project = two_revisions();
    let journal = project.read("cache/journal");
    let torn = &journal[..journal.len() - 20];
    project.write("cache/journal", format!("{torn}\ngarbage\ngarbage\n{}", journal.split_once('\n').unwrap().1));
    let damage = |project: &Project| {
        project.t2t("cache verify").exits(1).stdout.matches("the line does not match its checksum").count()
    };
    assert_eq!(damage(&project), 3);
    let journal = project.read("cache/journal");
    let (_, lines) = journal.split_once('\n').unwrap();
    project.write("cache/journal", format!("{journal}{}", lines.replace("garbage\n", "").repeat(RETURNS)));
    let told = damage(&project);
    let warning = format!("warning: {told} damaged lines of cache/journal are ignored");
    project.build().exits(0).runs("").says(&warning);
    assert!(lines_of(&project) < 64 + told, "{}", lines_of(&project));
    project.forget_answers();
    project.build().exits(0).runs("").says(&warning);
    assert_eq!(damage(&project), told);
    project.t2t("cache verify --repair").exits(0);
    expect_both(&project);
}

#[test]
fn what_was_remembered_of_a_journal_is_not_believed_of_the_one_that_is_written_anew() {
    let project = two_revisions();
    // An answer of the whole workspace, which knows where lines stand.
    project.calm();
    project.build().exits(0).runs("");
    wear(&project);
    // Another command writes the journal anew.
    project.t2t("build gelu").exits(0).runs("");
    assert!(lines_of(&project) < 64);
    project.edit(KERNEL, "input + 1", "input + 3");
    project.build().exits(0).runs("softmax:select,log softmax/v2_tiling:compile,check,bench summary");
    project.edit(KERNEL, "input + 3", "input + 1");
    project.build().exits(0).runs("");
    expect_both(&project);
}

#[test]
fn a_disk_without_room_for_the_new_journal_is_no_failure() {
    let project = two_revisions();
    let worn = wear(&project);
    project.forget_answers();
    let build = project.command("build");
    let mut limited = Command::new("/bin/sh");
    let binary = build.get_program().to_str().unwrap().to_owned();
    limited.args(["-c", "trap '' XFSZ; ulimit -f 2; exec \"$@\"", "sh", &binary]);
    limited.args(build.get_args()).current_dir(project.path("")).env_clear();
    limited.envs(build.get_envs().filter_map(|(name, value)| Some((name, value?))));
    project.run(&mut limited).exits(0).runs("");
    assert_eq!(lines_of(&project), worn);
    project.build().exits(0).runs("");
    assert!(lines_of(&project) < 64);
    expect_both(&project);
}

#[test]
fn a_build_that_is_killed_leaves_the_old_journal_or_the_new_one() {
    let project = two_revisions();
    let kept = distinct(&project);
    wear(&project);
    let begin = Instant::now();
    project.build().exits(0);
    let takes = begin.elapsed();
    for round in 0..12 {
        wear(&project);
        let mut build = project.command("build").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        thread::sleep(takes * round / 12);
        build.kill().ok();
        build.wait().unwrap();
        assert_eq!(distinct(&project), kept, "killed in {round}/12 of {takes:?}");
        project.build().exits(0).runs("");
        assert_eq!(lines_of(&project), kept.len());
        project.t2t("cache verify").exits(0).never_says("unfinished");
    }
    expect_both(&project);
}

#[test]
fn whoever_looks_while_a_journal_is_written_anew_finds_a_whole_one() {
    let project = two_revisions();
    let end = Instant::now() + Duration::from_secs(3);
    thread::scope(|scope| {
        let look = |arguments: &'static str| {
            let project = &project;
            scope.spawn(move || {
                while Instant::now() < end {
                    let told = project.command(arguments).output().unwrap();
                    assert_eq!(told.status.code(), Some(0), "{arguments}: {}", String::from_utf8_lossy(&told.stdout));
                    assert!(!String::from_utf8_lossy(&told.stderr).contains("damaged"), "{arguments}");
                }
            });
        };
        look("cache verify");
        look("explain softmax/v2_tiling:check");
        while Instant::now() < end {
            wear(&project);
            project.build().exits(0).runs("");
            assert!(lines_of(&project) < 64);
            for (from, to) in [("input + 1", "input + 2"), ("input + 2", "input + 1")] {
                project.edit(KERNEL, from, to);
                project.build().exits(0).runs("");
            }
        }
    });
    expect_both(&project);
}
