//! `t2t watch`, seen from outside: what runs after a save, what is cancelled, and what is told.
//!
//! What ran is the interpreter's own log. Rounds are not counted: a slow machine may see one save as two.

use std::fs;
use std::process::Command;
use std::thread;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::project::{OPS, Project, RELU, copy_folder, file, until};
use crate::watching::Watching;

mod running;
mod ends;
mod made;

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

/// Saves a kernel until there is an answer. A child that is not ready when its request comes is left to the next check, so a slow machine asks for no other after the first save.
fn saved_until<T>(project: &Project, watching: &mut Watching<'_>, mut ask: impl FnMut() -> Option<T>) -> T {
    for number in 0.. {
        // None is asked for as early as a round is over.
        for _ in 0..100 {
            if let Some(answer) = ask() {
                return answer;
            }
            thread::sleep(Duration::from_millis(20));
        }
        assert!(number < 30, "no save led to it");
        project.write(KERNEL, project.read(KERNEL) + &format!("\nMORE_{number} = 1\n"));
        watching.says("bench softmax/v2_tiling … passed");
        watching.settles();
    }
    unreachable!("saves are counted above");
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
fn a_child_that_waits_for_the_next_save_draws_inputs_of_the_variant_that_was_checked_last() {
    let project = Project::built();
    let mut watching = watched(&project);
    let of = |log: &str| -> Vec<Value> {
        let text = fs::read_to_string(project.path(&format!("../python/bin/{log}"))).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let likely = || of("reserves.log").into_iter().rfind(|one| one["key"] == "check" && !one["arguments"].is_null());
    project.edit(KERNEL, "input + 1", "input + 2");
    watching.says("bench softmax/v2_tiling … passed");
    watching.settles();
    let likely = saved_until(&project, &mut watching, likely)["arguments"].clone();
    assert_eq!((&likely["op"]["name"], &likely["variant"]["name"]), (&json!("softmax"), &json!("v2_tiling")));
    assert_eq!(likely["constants"], json!({"BLOCK": 64}));
    watching.count();
    project.edit(KERNEL, "input + 2", "input + 3");
    watching.says("bench softmax/v2_tiling … passed");
    watching.settles();
    let asked = of("salts.log").pop().unwrap();
    assert_eq!(asked["target"], "softmax/v2_tiling:check");
    // A slow machine may see a save as two, of which the first one has it.
    assert!(of("salts.log").iter().any(|one| one["salt"] == likely["salt"]), "{asked}");
    ends_whole(&project, watching);
}

#[test]
fn what_a_candidate_tells_without_end_no_child_is_told() {
    let project = Project::built();
    let mut watching = watched(&project);
    project.kernel("softmax", "v2_tiling", "CONSTANTS 101");
    watching.says("bench softmax/v2_tiling … passed");
    watching.settles();
    let log = || fs::read_to_string(project.path("../python/bin/reserves.log")).unwrap_or_default();
    let of_checks = || log().lines().filter(|line| line.contains(r#""key": "check""#)).count();
    saved_until(&project, &mut watching, || (of_checks() >= 2).then_some(()));
    // A slow machine may see a save as two, of which the first one has no mark yet.
    assert!(!log().contains("BLOCK100"), "{}", log());
    ends_whole(&project, watching);
}

#[test]
fn what_is_read_for_the_op_is_not_read_before_the_check_that_it_counts_for() {
    let project = Project::built();
    project.edit("ops.yaml", "    kwargs:", "    cases: kernels/softmax/cases.py\n    kwargs:");
    project.write("kernels/softmax/cases.py", "# READS data/cases.txt\n");
    project.write("data/cases.txt", "1\n");
    project.build().exits(0);
    let mut watching = watched(&project);
    project.edit(KERNEL, "input + 1", "input + 2");
    watching.says("bench softmax/v2_tiling … passed");
    watching.settles();
    let log = || fs::read_to_string(project.path("../python/bin/reserves.log")).unwrap_or_default();
    let of_checks = || log().lines().filter(|line| line.contains(r#""key": "check""#)).count();
    saved_until(&project, &mut watching, || (of_checks() >= 2).then_some(()));
    assert!(!log().contains(r#""reached""#), "{}", log());
    ends_whole(&project, watching);
}

#[test]
fn a_judge_that_stays_makes_room_for_another_when_the_folder_that_it_may_read_is_replaced() {
    let project = Project::built();
    let mut watching = watched(&project);
    let dismissed = || {
        if project.exists("../python/bin/dismissed.log") {
            project.read("../python/bin/dismissed.log")
        } else {
            String::new()
        }
    };
    project.edit(KERNEL, "input + 1", "input + 2");
    watching.says("bench softmax/v2_tiling … passed");
    assert_eq!(dismissed(), "");
    // As a branch without the folder does, and the way back.
    copy_folder(&project.path("kernels"), &project.path("../aside"));
    fs::rename(project.path("kernels"), project.path("../before")).unwrap();
    fs::rename(project.path("../aside"), project.path("kernels")).unwrap();
    project.edit(KERNEL, "input + 2", "input + 3");
    watching.says("bench softmax/v2_tiling … passed");
    // For those without a device.
    assert_eq!(dismissed(), "\n");
    watching.settles();
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
    watching.says("check softmax/v2_tiling … passed (restored)");
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
    for once in
        ["error: kernels/gelu/v1_baseline.py:4", "bench gelu/v1_baseline … skipped, after gelu/v1_baseline:check"]
    {
        assert_eq!(watching.told().matches(once).count(), 1, "{once}: {}", watching.told());
    }
}

/// A project in which the check of `softmax/v2_tiling` waits, and that of `gelu/v1_baseline` too.
fn waiting() -> Project {
    let project = Project::built();
    project.kernel("softmax", "v2_tiling", "WAITS");
    project.kernel("gelu", "v1_baseline", "WAITS");
    project
}
