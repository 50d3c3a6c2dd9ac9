//! Commands of the store that are killed.
//!
//! It does not know builds that are.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use super::{Draw, KERNEL, Kill, MOMENTS, every_moment, kill_own};
use crate::project::Project;

/// Runs a command that is killed at a moment drawn over the time that it takes when nobody kills it.
fn killed_within(project: &Project, arguments: &str, takes: Duration, draw: &mut Draw) -> (Kill, Duration) {
    let delay = Duration::from_micros(draw.below(u64::try_from(takes.as_micros()).unwrap()));
    let mut command = project.command(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    thread::sleep(delay);
    (kill_own(&mut command), delay)
}

/// Returns how long a command takes.
fn time_of(project: &Project, arguments: &str) -> Duration {
    let begin = Instant::now();
    project.t2t(arguments).exits(0);
    begin.elapsed()
}

/// Fails unless the store is whole and a build has nothing to do, and leaves nothing unfinished.
fn expect_whole(project: &Project, what: &str) {
    let ran = project.t2t("cache verify").exits(0);
    assert!(ran.stdout.contains(": 0 damages"), "{what}: {}", ran.stdout);
    let ran = project.build();
    assert_eq!((ran.code, ran.actions.as_str()), (0, ""), "{what}: {}", ran.stderr);
    project.t2t("cache verify").exits(0).never_says("1 unfinished");
    let left: Vec<PathBuf> = project.files("cache/scratch").into_iter().filter(|path| path.is_file()).collect();
    assert!(left.is_empty(), "{what}: {left:?}");
}

#[test]
fn a_killed_gc_leaves_what_the_workspace_needs() {
    let project = Project::built();
    for added in 2..12 {
        project.edit(KERNEL, &format!("input + {}", added - 1), &format!("input + {added}"));
        project.build().exits(0);
    }
    let keep = project.path("../keep");
    copy(&project.path("cache"), &keep);
    let takes = time_of(&project, "cache gc --max-size 1B");
    every_moment(MOMENTS / 2, 5, |number, draw, count| {
        fs::remove_dir_all(project.path("cache")).unwrap();
        copy(&keep, &project.path("cache"));
        let (kill, delay) = killed_within(&project, "cache gc --max-size 1B", takes, draw);
        expect_whole(&project, &format!("round {number}, gc killed after {delay:?}"));
        project.t2t("cache gc --max-size 1B").exits(0);
        expect_whole(&project, &format!("round {number}, gc after one that was killed after {delay:?}"));
        count(kill);
    });
}

#[test]
fn a_killed_import_and_a_killed_export_are_made_up_for_by_the_next() {
    let (project, clone) = (Project::built(), Project::new());
    let exports = time_of(&project, "cache export ../out");
    let whole = fs::read(project.path("../out")).unwrap();
    clone.write("../in", &whole);
    let imports = time_of(&clone, "cache import ../in");
    every_moment(MOMENTS / 2, 6, |number, draw, count| {
        clone.remove("cache");
        let (kill, delay) = killed_within(&clone, "cache import ../in", imports, draw);
        let what = format!("round {number}, import killed after {delay:?}");
        clone.t2t("cache verify").exits(0).says(": 0 damages");
        clone.t2t("cache import ../in").exits(0);
        expect_whole(&clone, &what);
        count(kill);
        project.remove("../out");
        let (kill, delay) = killed_within(&project, "cache export ../out", exports, draw);
        if let Ok(bytes) = fs::read(project.path("../out")) {
            assert!(bytes == whole, "round {number}, export killed after {delay:?}: {} bytes", bytes.len());
        }
        project.t2t("cache export ../out").exits(0);
        assert!(fs::read(project.path("../out")).unwrap() == whole);
        expect_whole(&project, &format!("round {number}, after an export that was killed after {delay:?}"));
        count(kill);
    });
}

fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-a").args([from, to]).status().unwrap().success());
}
