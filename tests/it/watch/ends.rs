//! How a watch ends, who else may work beside it, and the terminal that it draws on.
//!
//! It does not know saves.

use std::fs;
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{KERNEL, ends_whole, waiting, watched};
use crate::project::{Project, file, until};
use crate::watching::Watching;

#[test]
fn a_signal_ends_it_with_130_whatever_runs() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let project = waiting();
        let watching = Watching::begin(&project, "--jobs 2");
        watching.begins("softmax/v2_tiling:check candidate:run");
        assert_eq!(watching.stop(signal).0, 130);
        project.calm();
        project.build().exits(0);
    }
}

#[test]
fn between_rounds_another_build_may_run_and_a_round_says_for_whom_it_waits() {
    let project = Project::built();
    let mut watching = watched(&project);
    project.build().exits(0).runs("");
    project.kernel("gelu", "v2_tiling", "WAITS");
    watching.says("changed: kernels/gelu/v2_tiling.py");
    watching.begins("gelu/v2_tiling:check candidate:run");
    let other = project.spawn("build");
    project.calm();
    watching.settles();
    let ran = project.wait(other).exits(0).runs("");
    assert!(!ran.stderr.contains("lost"), "{}", ran.stderr);
    // Now the other way around.
    assert_eq!(watching.stop(Signal::SIGINT).0, 130);
    project.remove("../python/bin/calm");
    project.kernel("gelu", "v2_tiling", "WAITS; NEEDS 0.1");
    let checks = || project.log().iter().filter(|line| *line == "gelu/v2_tiling:check candidate:run").count();
    let before = checks();
    let other = project.spawn("build");
    until(|| (checks() > before).then_some(()));
    let mut watching = Watching::begin(&project, "");
    watching.says("waiting: the workspace's lock, cache/lock, held by pid ");
    project.calm();
    watching.settles();
    project.wait(other).exits(0);
}

#[test]
fn its_own_lines_in_a_file_of_the_workspace_begin_no_round_while_ops_yaml_is_broken() {
    let project = Project::built();
    let lines = fs::File::create(project.path("lines.txt")).unwrap();
    let mut command = project.command("watch");
    let mut child = command.stdout(lines.try_clone().unwrap()).stderr(lines).spawn().unwrap();
    let said = |text: &str| until(|| project.read("lines.txt").contains(text).then_some(()));
    said("fresh ");
    project.write("ops.yaml", "ops: [\n");
    said("changed: ops.yaml");
    for round in 0..3 {
        project.write(&format!("notes{round}.txt"), "");
        said(&format!("notes{round}.txt"));
    }
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).unwrap();
    child.wait().unwrap();
    let told = project.read("lines.txt");
    assert!(!told.contains("lines.txt"), "{told}");
}

#[test]
fn only_what_was_named_is_built_and_a_name_that_nothing_has_ends_it() {
    let project = Project::built();
    let mut watching = Watching::start(&project, "gelu");
    watching.count();
    project.edit(KERNEL, "input + 1", "input + 2");
    watching.says("changed: kernels/softmax/v2_tiling.py");
    watching.settles();
    watching.ran_once(&[]);
    project.edit(&file("gelu", "v1_baseline"), "input + 1", "input + 2");
    watching.says("bench gelu/v1_baseline … passed");
    watching.settles();
    watching.ran_once(&["gelu/v1_baseline:bench", "gelu/v1_baseline:check", "gelu/v1_baseline:compile"]);
    project.t2t("watch nosuch").exits(2).says("ops.yaml has no op `nosuch`");
    project.t2t("watch --as-device nvidia-h200").exits(2).says("nothing runs on a device that is not here");
    project.t2t("watch --poll 0").exits(2).says("it is 0.01 to 3600");
}

#[test]
fn another_torch_has_it_start_other_servers() {
    let project = Project::built();
    let mut watching = watched(&project);
    project.install(&[("torch", "2.12.0"), ("triton", "3.6.0")]);
    project.edit(KERNEL, "input + 1", "input + 2");
    watching.says("bench gelu/v2_tiling … passed");
    watching.settles();
    assert_eq!(watching.ran().get("gelu/v1_baseline:check"), Some(&1));
    ends_whole(&project, watching);
}

#[test]
fn a_server_that_dies_is_started_again_in_each_round() {
    let project = Project::built();
    let mut watching = watched(&project);
    for right in ["NEEDS 0.1", "NEEDS 0.2"] {
        project.kernel("softmax", "v2_tiling", "DIES");
        watching.says("check softmax/v2_tiling … lost");
        watching.settles();
        project.kernel("softmax", "v2_tiling", right);
        watching.says("bench softmax/v2_tiling … passed");
        watching.settles();
    }
    assert_eq!(watching.stop(Signal::SIGTERM).0, 130);
}

/// Python's own module gives the watch a terminal, and passes on what is typed and drawn.
const TERMINAL: &str = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";

#[test]
fn on_a_terminal_the_state_is_drawn_and_keys_are_taken() {
    let project = Project::built();
    let watch = project.command("watch");
    let mut command = Command::new("python3");
    command.args(["-c", TERMINAL, "sh", "-c", "\"$@\"; code=$?; stty -a; exit $code", "watch"]);
    command.arg(watch.get_program()).args(watch.get_args()).current_dir(watch.get_current_dir().unwrap()).env_clear();
    command
        .envs(watch.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .env("TERM", "xterm")
        .env("NO_COLOR", "1");
    let mut watching = Watching::of(&project, command.stdin(Stdio::piped()));
    watching.says("fresh 19, restored 0, ran 0");
    watching.says("r rerun · f failed only · e explain · q quit");
    watching.press("e");
    watching.says("nothing has run yet");
    watching.count();
    project.kernel("softmax", "v2_tiling", "REJECT mismatch");
    watching.says("✖ mismatch");
    watching.says("rejected 1");
    assert!(watching.told().contains("code of `kernels/softmax/v2_tiling.py` changed"), "{}", watching.told());
    watching.ran_once(&["softmax/v2_tiling:check", "softmax/v2_tiling:compile"]);
    watching.count();
    watching.press("f");
    watching.begins("softmax/v2_tiling:check judge:judge");
    watching.says("rejected 1");
    watching.ran_once(&["softmax/v2_tiling:check"]);
    project.kernel("softmax", "v2_tiling", "NEEDS 0");
    watching.says("✔ v2_tiling");
    watching.begins("softmax/v2_tiling:bench sample:judge_sample");
    watching.says("fresh 1");
    watching.count();
    watching.press("r");
    watching.begins("softmax/v2_tiling:bench sample:judge_sample");
    watching.press("q");
    let (code, told) = watching.wait();
    assert_eq!(code, 0, "{told}");
    let modes = told.lines().find(|line| line.contains("isig")).unwrap();
    assert!(modes.split_whitespace().any(|mode| mode == "icanon"), "the terminal is as it was: {modes}");
}

/// Whoever asks the system for inotify is told that there is no room, as the system tells it.
#[test]
fn a_full_table_is_told_with_the_setting_that_makes_room() {
    let project = Project::built();
    let shim = |name: &str, body: &str| {
        let (source, library) = (project.path(&format!("../{name}.c")), project.path(&format!("../{name}.so")));
        fs::write(&source, format!("#include <errno.h>\n#include <stdint.h>\n{body}\n")).unwrap();
        let made = Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&library, &source]).status().unwrap();
        assert!(made.success(), "a C compiler is needed, as the README says");
        library
    };
    let watches = shim(
        "watches",
        "int inotify_add_watch(int fd, const char *path, uint32_t mask) { errno = ENOSPC; return -1; }",
    );
    let ran = project.run(project.command("watch").env("LD_PRELOAD", watches));
    ran.exits(3)
        .says("error: cannot watch the workspace: the system's table of inotify watches is full (fs.inotify.max_user_watches = ")
        .says("hint: allow more: `sudo sysctl fs.inotify.max_user_watches=1048576`");
    let instances = shim("instances", "int inotify_init1(int flags) { errno = EMFILE; return -1; }");
    let ran = project.run(project.command("watch").env("LD_PRELOAD", instances));
    ran.exits(3)
        .says("error: cannot watch the workspace: no inotify instance is left (fs.inotify.max_user_instances = ")
        .says("t2t watch --poll");
}
