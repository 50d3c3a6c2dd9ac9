//! `t2t watch`, seen from outside: what runs after a save, what is cancelled, and what is told.
//!
//! What ran is the interpreter's own log. Rounds are not counted: a slow machine may see one save as two.

use std::fs;
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;

use crate::project::{OPS, Project, RELU, file, until};
use crate::watching::Watching;

/// A file that is named often.
const KERNEL: &str = "kernels/softmax/v2_tiling.py";

/// What the code of one variant reruns in children.
const V2: [&str; 3] = ["softmax/v2_tiling:bench", "softmax/v2_tiling:check", "softmax/v2_tiling:compile"];

/// A project that was built, watched, with nothing stale.
fn watched(project: &Project) -> Watching<'_> {
    let mut watching = Watching::start(project, "");
    watching.count();
    watching
}

/// Fails unless the watch left a workspace in which nothing is stale.
#[track_caller]
fn ends_whole(project: &Project, watching: Watching<'_>) {
    let (code, told) = watching.stop(Signal::SIGINT);
    assert_eq!(code, 130, "{told}");
    project.build().exits(0).runs("");
}

// Saves.

#[test]
fn a_save_runs_what_it_made_stale_on_servers_that_stay() {
    let project = Project::built();
    let mut watching = watched(&project);
    project.edit(KERNEL, "input + 1", "input + 2");
    watching.says("bench softmax/v2_tiling … passed");
    watching.settles();
    watching.ran_once(&V2);
    let starts = || project.log().iter().filter(|line| line.starts_with("start ")).count();
    let before = starts();
    watching.count();
    project.edit(KERNEL, "input + 2", "input + 3");
    watching.says("bench softmax/v2_tiling … passed");
    watching.settles();
    watching.ran_once(&V2);
    assert_eq!(starts(), before, "servers are kept");
    ends_whole(&project, watching);
}

#[test]
fn a_save_that_changes_nothing_that_counts_runs_nothing() {
    let project = Project::built();
    let mut watching = watched(&project);
    project.write(KERNEL, project.read(KERNEL));
    watching.says("changed: kernels/softmax/v2_tiling.py");
    watching.settles();
    project.edit(KERNEL, "import triton\n", "import triton  # typed\n");
    watching.says("changed: kernels/softmax/v2_tiling.py");
    assert!(watching.settles().contains("ran 0"));
    watching.ran_once(&[]);
    ends_whole(&project, watching);
}

#[test]
fn its_own_logs_and_store_and_files_of_no_account_start_no_round() {
    let project = Project::built();
    let mut watching = watched(&project);
    project.edit(KERNEL, "softmax, v2_tiling.", "Rows in tiles.");
    watching.says("log softmax … passed");
    watching.settles();
    assert!(project.read("logs/softmax_log.md").contains("Rows in tiles."));
    project.write("cache/scratch/other/file", "mine");
    project.write("logs/mine.md", "mine");
    // Nor does what nothing was made of, as the file that somebody sends these lines to.
    project.write("watch.log", "changed: watch.log");
    project.write("notes/later.py", "mine");
    // What comes next is of the next save.
    project.edit(KERNEL, "Rows in tiles.", "Tiles of rows.");
    watching.says("changed: kernels/softmax/v2_tiling.py");
    watching.settles();
    let changed: Vec<&str> = watching.told().lines().filter(|line| line.starts_with("changed: ")).collect();
    assert!(changed.iter().all(|line| *line == "changed: kernels/softmax/v2_tiling.py"), "{changed:?}");
    watching.ran_once(&[]);
    ends_whole(&project, watching);
}

/// What git does to one of the first files while it is checked out: it waits. Its lock does not become old meanwhile, as one that was left behind.
const HELD: &str = "while [ -e ../held ]; do touch .git/index.lock ../begun; sleep 0.01; done; cat";

#[test]
fn a_checkout_of_many_files_begins_no_round_before_git_has_done() {
    let project = Project::built();
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=t", "-c", "user.email=t@t"]).args(arguments).current_dir(project.path(""));
        command
    };
    let done = |mut command: Command| {
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    project.write(".gitignore", "cache\nlogs\n");
    project.write(".gitattributes", "kernels/softmax/helper10.py filter=held\n");
    let write_helpers = |text: &str| {
        (0..300).for_each(|number| project.write(&format!("kernels/softmax/helper{number}.py"), text));
    };
    write_helpers("ONE = 1\n");
    done(git(&["init", "-q", "-b", "main"]));
    done(git(&["config", "filter.held.smudge", HELD]));
    done(git(&["add", "."]));
    done(git(&["commit", "-qm", "one"]));
    done(git(&["checkout", "-qb", "other"]));
    write_helpers("ONE = 2\n");
    project.edit(KERNEL, "input + 1", "input + 2");
    done(git(&["commit", "-qam", "two"]));
    done(git(&["checkout", "-q", "main"]));
    let mut watching = watched(&project);
    project.write("../held", "");
    let mut checkout = git(&["checkout", "-q", "other"]).spawn().unwrap();
    until(|| project.exists("../begun").then_some(()));
    watching.says_nothing();
    project.remove("../held");
    assert!(checkout.wait().unwrap().success());
    watching.says("bench softmax/v2_tiling … passed");
    watching.settles();
    watching.ran_once(&V2);
    done(git(&["checkout", "-q", "main"]));
    watching.says("restored ");
    watching.ran_once(&V2);
    ends_whole(&project, watching);
}

#[test]
fn a_variant_that_is_created_and_deleted_is_built_and_missed() {
    let project = Project::built();
    let mut watching = watched(&project);
    project.edit("ops.yaml", "kwargs: {dim: -1}", "kwargs: {dim: -1}\n    variants: [v1_baseline, v2_tiling, v3]");
    watching.says("no such file");
    // What is made of its absence is kept once the round is over.
    watching.settles();
    project.kernel("softmax", "v3", "");
    watching.says("bench softmax/v3 … passed");
    watching.settles();
    watching.ran_once(&["softmax/v3:bench", "softmax/v3:check", "softmax/v3:compile"]);
    project.remove("kernels/softmax/v3.py");
    watching.says("error: kernels/softmax/v3.py: no such file");
    assert!(watching.settles().contains("restored 5"), "it was missing before");
    project.edit("ops.yaml", "[v1_baseline, v2_tiling, v3]", "[v1_baseline, v2_tiling]");
    watching.says("changed: ops.yaml");
    watching.settles();
    ends_whole(&project, watching);
}

#[test]
fn an_op_that_is_added_in_a_new_folder_is_built_and_watched() {
    let project = Project::built();
    let mut watching = watched(&project);
    for variant in ["v1_baseline", "v2_tiling"] {
        project.kernel("relu", variant, "");
    }
    project.write("ops.yaml", format!("{OPS}{RELU}"));
    watching.says("bench relu/v2_tiling … passed");
    watching.settles();
    watching.count();
    project.edit(&file("relu", "v1_baseline"), "input + 1", "input + 2");
    watching.says("bench relu/v1_baseline … passed");
    watching.settles();
    watching.ran_once(&["relu/v1_baseline:bench", "relu/v1_baseline:check", "relu/v1_baseline:compile"]);
    ends_whole(&project, watching);
}

#[test]
fn templates_cases_and_helpers_count_as_they_do_in_a_build() {
    let project = Project::new();
    project.edit("ops.yaml", "kwargs: {dim: -1}", "kwargs: {dim: -1}\n    cases: cases/softmax.py");
    project.write("cases/softmax.py", "def cases(spec, generator):\n    return []\n");
    project.write("kernels/common.py", "def add(x):\n    return x + 1\n");
    project.edit(&file("gelu", "v1_baseline"), "import triton\n", "import triton\nfrom kernels.common import add\n");
    project.build().exits(0);
    let mut watching = watched(&project);
    project.edit("assets/log_template.md", "# {{ op }}", "# Log of {{ op }}");
    watching.says("log softmax … passed");
    watching.settles();
    watching.ran_once(&[]);
    project.edit("kernels/common.py", "x + 1", "x + 2");
    watching.says("bench gelu/v1_baseline … passed");
    watching.settles();
    watching.ran_once(&["gelu/v1_baseline:bench", "gelu/v1_baseline:check", "gelu/v1_baseline:compile"]);
    watching.count();
    project.edit("cases/softmax.py", "return []", "return list()");
    watching.says("bench softmax/v2_tiling … passed");
    watching.settles();
    assert_eq!(watching.ran().get("softmax/v1_baseline:check"), Some(&1));
    assert_eq!(watching.ran().get("gelu/v1_baseline:check"), None);
    ends_whole(&project, watching);
}

#[test]
fn looking_instead_of_being_told_does_the_same() {
    let project = Project::built();
    let mut watching = Watching::start(&project, "--poll 0.05");
    watching.count();
    project.edit(KERNEL, "input + 1", "input + 2");
    watching.says("bench softmax/v2_tiling … passed");
    watching.settles();
    watching.ran_once(&V2);
    ends_whole(&project, watching);
}

// What is wrong while somebody types.

#[test]
fn a_syntax_error_half_way_is_a_rejection_and_the_watch_goes_on() {
    let project = Project::built();
    let mut watching = watched(&project);
    project.edit(KERNEL, "return input + 1", "return input + (");
    watching.says("error: kernels/softmax/v2_tiling.py:");
    watching.says("check softmax/v2_tiling … rejected (source)");
    project.edit(KERNEL, "return input + (", "return input + 2");
    watching.says("bench softmax/v2_tiling … passed");
    watching.settles();
    watching.ran_once(&V2);
    ends_whole(&project, watching);
}

#[test]
fn a_bad_ops_yaml_is_shown_and_the_watch_goes_on_from_the_start_too() {
    let project = Project::built();
    project.edit("ops.yaml", "version: 1", "version: one");
    let mut watching = Watching::begin(&project, "");
    watching.says("error: ops.yaml:1:10:");
    project.write("ops.yaml", OPS);
    watching.settles();
    watching.count();
    project.edit("ops.yaml", "dim: -1", "dim: [");
    watching.says("error: ops.yaml:");
    project.edit("ops.yaml", "dim: [", "dim: 0");
    watching.says("bench softmax/v2_tiling … passed");
    watching.settles();
    assert_eq!(watching.ran().get("softmax/v2_tiling:check"), Some(&1));
    ends_whole(&project, watching);
}

#[test]
fn a_template_that_is_wrong_costs_its_logs_alone() {
    let project = Project::built();
    let mut watching = watched(&project);
    project.edit("assets/log_template.md", "# {{ op }}", "# {{ op");
    watching.says("error: assets/log_template.md:");
    project.edit(KERNEL, "input + 1", "input + 2");
    watching.says("bench softmax/v2_tiling … passed");
    watching.says("error: assets/log_template.md:");
    watching.ran_once(&V2);
    project.edit("assets/log_template.md", "# {{ op", "# The {{ op }}");
    watching.says("log softmax … passed");
    watching.settles();
    assert!(project.read("logs/softmax_log.md").starts_with("# The softmax"));
    ends_whole(&project, watching);
}

#[test]
fn what_ops_yaml_names_and_is_not_there_yet_is_waited_for_wherever_it_lies() {
    let project = Project::built();
    let mut watching = watched(&project);
    project.edit("ops.yaml", "kwargs: {dim: -1}", "kwargs: {dim: -1}\n    log: {template: pages/softmax.md}");
    watching.says("the log template of `softmax`, `pages/softmax.md`, cannot be read");
    project.write("pages/softmax.md", "# A page of {{ op }}\n");
    watching.says("log softmax … passed");
    watching.settles();
    assert!(project.read("logs/softmax_log.md").starts_with("# A page of softmax"));
    ends_whole(&project, watching);
}

#[test]
fn a_failure_that_stands_is_told_once() {
    let project = Project::built();
    let mut watching = watched(&project);
    project.kernel("gelu", "v1_baseline", "REJECT mismatch");
    watching.says("error: kernels/gelu/v1_baseline.py:4");
    watching.settles();
    project.edit(KERNEL, "input + 1", "input + 2");
    watching.says("bench softmax/v2_tiling … passed");
    assert!(watching.settles().contains("rejected 1"));
    assert_eq!(watching.told().matches("error: kernels/gelu/v1_baseline.py:4").count(), 1, "{}", watching.told());
}

// Saves while something runs.

/// A project in which the check of `softmax/v2_tiling` waits, and that of `gelu/v1_baseline` too.
fn waiting() -> Project {
    let project = Project::built();
    project.kernel("softmax", "v2_tiling", "WAITS");
    project.kernel("gelu", "v1_baseline", "WAITS");
    project
}

#[test]
fn a_save_cancels_what_it_made_obsolete_and_lets_the_rest_finish() {
    let project = waiting();
    let mut watching = Watching::begin(&project, "--jobs 2");
    watching.begins("softmax/v2_tiling:check candidate:run");
    watching.begins("gelu/v1_baseline:check candidate:run");
    watching.count();
    project.kernel("softmax", "v2_tiling", "NEEDS 0");
    watching.says("check softmax/v2_tiling … cancelled: code of `kernels/softmax/v2_tiling.py` changed");
    // The new code is checked beside the check that goes on.
    watching.says("check softmax/v2_tiling … passed");
    assert!(!watching.told().contains("check gelu/v1_baseline …"), "{}", watching.told());
    project.calm();
    watching.says("check gelu/v1_baseline … passed");
    watching.settles();
    let ran = watching.ran();
    assert_eq!((ran.get("softmax/v2_tiling:check"), ran.get("gelu/v1_baseline:check")), (Some(&1), None), "{ran:?}");
    assert_eq!(watching.told().matches("cancelled").count(), 1, "{}", watching.told());
    ends_whole(&project, watching);
}

#[test]
fn a_save_of_nothing_new_cancels_nothing() {
    let project = waiting();
    let mut watching = Watching::begin(&project, "--jobs 2");
    watching.begins("softmax/v2_tiling:check candidate:run");
    watching.begins("gelu/v1_baseline:check candidate:run");
    watching.count();
    project.write(KERNEL, project.read(KERNEL));
    watching.says("changed: kernels/softmax/v2_tiling.py");
    project.write(KERNEL, project.read(KERNEL).replace("import triton\n", "import triton  # typed\n"));
    watching.says("changed: kernels/softmax/v2_tiling.py");
    project.calm();
    watching.says("bench softmax/v2_tiling … passed");
    watching.settles();
    assert!(!watching.told().contains("cancelled"), "{}", watching.told());
    assert_eq!(watching.ran().get("softmax/v2_tiling:check"), None, "what ran is kept");
    ends_whole(&project, watching);
}

#[test]
fn what_is_not_in_the_graph_any_more_is_cancelled() {
    let project = waiting();
    let mut watching = Watching::begin(&project, "--jobs 2");
    watching.begins("softmax/v2_tiling:check candidate:run");
    project.edit("ops.yaml", "kwargs: {dim: -1}", "kwargs: {dim: -1}\n    variants: [v1_baseline]");
    watching.says("check softmax/v2_tiling … cancelled: it is not part of the build any more");
    project.calm();
    watching.says("check gelu/v1_baseline … passed");
    watching.settles();
    ends_whole(&project, watching);
}

#[test]
fn code_that_is_put_back_cancels_the_check_and_restores_the_result() {
    let project = Project::built();
    let before = project.read(KERNEL);
    let mut watching = watched(&project);
    project.kernel("softmax", "v2_tiling", "WAITS");
    watching.begins("softmax/v2_tiling:check candidate:run");
    project.write(KERNEL, before);
    watching.says("check softmax/v2_tiling … cancelled");
    watching.settles();
    assert_eq!(watching.ran().get("softmax/v2_tiling:check"), Some(&1));
    ends_whole(&project, watching);
}

#[test]
fn what_runs_goes_on_while_ops_yaml_is_broken_and_is_kept() {
    let project = waiting();
    let mut watching = Watching::begin(&project, "--jobs 2");
    watching.begins("softmax/v2_tiling:check candidate:run");
    watching.begins("gelu/v1_baseline:check candidate:run");
    watching.count();
    project.edit("ops.yaml", "dim: -1", "dim: [");
    watching.says("error: ops.yaml:");
    project.calm();
    watching.says_all(&["check softmax/v2_tiling … passed", "check gelu/v1_baseline … passed"]);
    project.write("ops.yaml", OPS);
    watching.settles();
    let checks: Vec<String> = watching.ran().into_keys().filter(|target| target.ends_with(":check")).collect();
    assert!(checks.is_empty(), "they were kept: {checks:?}");
    ends_whole(&project, watching);
}

#[test]
fn a_file_that_a_check_looked_at_and_that_changed_meanwhile_has_it_run_again() {
    let project = Project::new();
    project.write("data/table.txt", "one");
    project.build().exits(0);
    project.kernel("softmax", "v2_tiling", "WAITS; READS data/table.txt");
    let mut watching = Watching::begin(&project, "--jobs 2");
    // What is kept says that the file is of account; until then its change begins no round.
    watching.says("compile softmax/v2_tiling … passed");
    watching.begins("softmax/v2_tiling:check candidate:run");
    project.write("data/table.txt", "two");
    watching.says("changed: data/table.txt");
    project.calm();
    watching.says("check softmax/v2_tiling … cancelled: `data/table.txt` changed while it ran");
    watching.says("check softmax/v2_tiling … passed");
    watching.settles();
    ends_whole(&project, watching);
}

// Ends, and others.

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
