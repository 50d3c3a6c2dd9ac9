//! The interpreter that is started before it is known what an edit makes stale: it costs no process, and nobody waits for it in vain.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Child;
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::environment;
use crate::project::{Project, until};
use crate::worker::worker_leftovers::marked;

const KERNEL: &str = "kernels/softmax/v2_tiling.py";

/// A workspace that is built, and whose interpreter never says its hello while there is a file `slow` beside it; it says in `begun` that it was started.
fn slow() -> Project {
    let project = Project::new();
    let (python, real) = (project.path("../python/bin/python"), project.path("../python/bin/real"));
    fs::remove_file(&python).unwrap();
    symlink(environment::root().join("tests/it/fake_python/server.py"), &real).unwrap();
    let script = "#!/bin/sh\nhere=${0%/*}\nif [ -e \"$here/slow\" ]; then : > \"$here/begun\"; exec sleep 600; fi\nexec \"$here/real\" \"$@\"\n";
    fs::write(&python, script).unwrap();
    fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
    project.build().exits(0);
    fs::write(project.path("../python/bin/slow"), "").unwrap();
    project
}

/// Waits until no process has to do with the workspace.
fn expect_no_process(project: &Project) {
    let folder = project.path("..").canonicalize().unwrap();
    until(|| marked(&folder).is_empty().then_some(()));
}

fn has_begun(project: &Project) -> bool {
    project.exists("../python/bin/begun")
}

#[test]
fn an_edit_that_makes_nothing_stale_waits_for_no_interpreter_and_leaves_none() {
    let project = slow();
    // The build may be over before the interpreter has come to say that it was started.
    let has_begun = (0..20).any(|round| {
        project.edit(KERNEL, "\n", &format!("\n# {round}\n"));
        project.build().exits(0).runs("");
        expect_no_process(&project);
        has_begun(&project)
    });
    assert!(has_begun, "in none of the builds the interpreter had a head start");
}

fn interrupt(child: &Child) {
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).unwrap();
}

#[test]
fn an_interruption_does_not_wait_for_an_interpreter_that_is_starting() {
    let project = slow();
    project.edit(KERNEL, "input + 1", "input + 2");
    let mut build = project.command("build").spawn().unwrap();
    until(|| has_begun(&project).then_some(()));
    // By then signals are taken: it has been waiting for a while.
    thread::sleep(Duration::from_millis(500));
    interrupt(&build);
    assert_eq!(build.wait().unwrap().code(), Some(130));
    expect_no_process(&project);
    fs::remove_file(project.path("../python/bin/slow")).unwrap();
    project.build().exits(0).says("ran");
}

#[test]
fn an_edit_of_what_is_no_kernel_starts_nothing_ahead() {
    let project = slow();
    let log = "logs/softmax_log.md";
    project.write(log, project.read(log) + "\nmine\n");
    project.build().exits(0).runs("");
    expect_no_process(&project);
    assert!(!has_begun(&project));
}
