//! Places that something else has taken: folders, pipes and endless files where t2t has files of its own.
//!
//! It does not know damaged bytes.

use std::fs;
use std::process::Command;

use super::{KERNEL, damages, expect_no_panic, logs, steady};
use crate::project::{Project, Ran};
use crate::soak::rounds;

/// What lies in the way: a file where a folder should be, or a folder with something in it where a file should be.
fn block(project: &Project, place: &str) {
    let path = project.path(place);
    match fs::metadata(&path) {
        Ok(facts) if facts.is_dir() => {
            fs::remove_dir_all(&path).unwrap();
            fs::write(&path, "in the way").unwrap();
        }
        _ => {
            fs::remove_file(&path).ok();
            fs::create_dir_all(path.join("in the way")).unwrap();
        }
    }
}

#[test]
fn what_lies_in_the_way_is_told_with_its_place_and_the_next_build_is_whole() {
    let ends = [
        ("cache", "error: cannot lock the store `cache/`"),
        ("cache/lock", "error: cannot lock the store `cache/`"),
        ("cache/journal", "cache/journal`: Is a directory"),
        ("cache/cas", "cache/cas/"),
        ("cache/scratch", "cache/scratch/"),
        ("cache/harness", "cannot write the harness"),
        ("logs", "cannot write `logs/"),
        ("logs/softmax_log.md", "cannot write `logs/softmax_log.md`"),
        // These cost time alone.
        ("cache/sources.json", "cannot keep what is known of the sources"),
        ("cache/toolchain", ""),
    ];
    let project = steady();
    let logs_before = logs(&project);
    let count = damages();
    for (place, said) in rounds(1).flat_map(|_| ends) {
        block(&project, place);
        // Twice, so that there is something to run and the text is the first one again.
        let mut ran = Vec::new();
        for (from, to) in [("input + 1", "input + 2"), ("input + 2", "input + 1")] {
            project.edit(KERNEL, from, to);
            project.edit("ops.yaml", "dim: -1", "dim: -1 ");
            ran.push(project.build());
        }
        for ran in &ran {
            expect_no_panic(ran, place);
        }
        let costs_time_alone = ["cache/sources.json", "cache/toolchain"].contains(&place);
        let is_told = ran.iter().any(|ran| ran.stderr.contains(said));
        assert!(is_told, "{place}: {}", ran[0].stderr);
        assert!(ran.iter().any(|ran| ran.code == if costs_time_alone { 0 } else { 3 }), "{place}: {}", ran[0].stderr);
        for arguments in ["status", "explain softmax", "cache verify", "cache stats", "cache gc --dry-run"] {
            expect_no_panic(&project.t2t(arguments), &format!("{arguments} with {place} in the way"));
        }
        project.remove(place);
        let ran = project.build();
        assert_eq!(ran.code, 0, "{place}: {}", ran.stderr);
        assert_eq!(logs(&project), logs_before, "{place}");
        count.add(1);
    }
}

/// Runs a command that must come to an end: what waits for a pipe, or reads what has no end, is killed.
fn within_bounds(project: &Project, arguments: &str) -> Ran {
    let plain = project.command(arguments);
    let mut command = Command::new("prlimit");
    // Far more than it takes, and far less than a machine has.
    command
        .args(["--as=4000000000", "timeout", "--signal=KILL", "120"])
        .arg(plain.get_program())
        .args(plain.get_args());
    command.current_dir(project.path("")).env_clear();
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    project.run(&mut command)
}

#[test]
fn a_pipe_or_an_endless_file_in_the_place_of_an_own_one_is_told_or_made_anew() {
    let project = steady();
    let logs_before = logs(&project);
    let below = |folder: &str| project.files(folder).into_iter().next().unwrap_or_else(|| panic!("{folder} has files"));
    let places = [
        (project.path("cache/journal"), "cache/journal`: it is a"),
        (project.path("cache/sources.json"), ""),
        (below("cache/answers"), ""),
        (below("cache/toolchain"), ""),
        (below("cache/harness"), ""),
        (below("cache/cas"), ""),
    ];
    let count = damages();
    for (path, said) in places {
        for is_pipe in [true, false] {
            let bytes = fs::read(&path).unwrap();
            fs::remove_file(&path).unwrap();
            if is_pipe {
                nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
            } else {
                std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
            }
            let what = format!("{} is {}", path.display(), if is_pipe { "a pipe" } else { "endless" });
            for arguments in ["status", "explain softmax", "cache verify", "cache stats", "log softmax", "build"] {
                let ran = within_bounds(&project, arguments);
                expect_no_panic(&ran, &format!("{arguments} where {what}"));
                assert!((0..=3).contains(&ran.code), "{arguments} where {what}: {}", ran.code);
                if !said.is_empty() {
                    assert_eq!(ran.code, 3, "{arguments} where {what}: {}", ran.stderr);
                    assert!(ran.stderr.contains(said), "{arguments} where {what}: {}", ran.stderr);
                }
            }
            fs::remove_file(&path).unwrap_or_default();
            fs::write(&path, bytes).unwrap();
            project.build().exits(0);
            assert_eq!(logs(&project), logs_before, "{what}");
            count.add(1);
        }
    }
}
