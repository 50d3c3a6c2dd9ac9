//! What people are told, and when: after a rejection, on narrow terminals, where nothing can be written, before anything is lost.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use t2t_model::classes::CLASSES;
use t2t_model::digest::Digest;

use crate::cli::damage::bound_by_modes;
use crate::project::{OPS, Project};

fn rejecting() -> Project {
    let project = Project::new();
    project.kernel("softmax", "v2_tiling", "REJECT mismatch");
    project
}

#[test]
fn what_checks_left_out_is_told_once_and_of_those_that_ran_and_passed() {
    let note = "left out";
    let project = Project::new();
    project.t2t("build").exits(0).never_says(note);
    project.kernel("softmax", "v2_tiling", "LEFT-OUT 1");
    let one = "note: 1 check left out 1 probe, for which the interpreter's budget was too small: a device tries them (docs/reference/judging.md#limits)\n";
    project.t2t("build").exits(0).says(one);
    project.t2t("build").exits(0).never_says(note);
    project.kernel("softmax", "v2_tiling", "LEFT-OUT 3");
    project.kernel("softmax", "v1_baseline", "LEFT-OUT 2");
    project.t2t("build").exits(0).says("note: 2 checks left out 5 probes, ");
    project.kernel("softmax", "v2_tiling", "LEFT-OUT 3; REJECT mismatch");
    project.t2t("build").exits(1).never_says(note);
}

#[test]
fn arguments_tried_at_no_other_value_are_told_once_by_op_and_explained() {
    let project = Project::new();
    project.kernel("softmax", "v1_baseline", "UNTRIED order");
    project.kernel("softmax", "v2_tiling", "UNTRIED order");
    let note = "tried at no other value, since none is known to fit the inputs: ";
    let whole = format!("note: {note}`order` of softmax; an op with another one in `kwargs` tries it\n");
    project.t2t("build").exits(0).says(&whole);
    project.t2t("build").exits(0).never_says(note);
    let told = project.t2t("explain softmax/v1_baseline:check").exits(0);
    assert!(told.stdout.contains("\n  note: arguments tried at no other value: order\n"), "{}", told.stdout);
}

#[test]
fn a_case_that_a_pass_left_unjudged_is_named() {
    let project = Project::new();
    project.kernel("softmax", "v2_tiling", "UNJUDGED edge/kwarg[dilation=[2,1]]/float32");
    let note = "softmax/v2_tiling:check did not judge 1 of 2 cases in float32, as `edge/kwarg[dilation=[2,1]]/float32`: it lacks that\n";
    project.t2t("build").exits(0).says(note);
}

#[test]
fn a_judge_that_uses_up_its_memory_says_nothing_of_the_kernel() {
    let project = Project::new();
    project.kernel("softmax", "v2_tiling", "JUDGE-SPENT");
    let why = "not judged: torch, or the reference, ended the process that judges: it used up its memory (killed by the kernel, out of memory)";
    project.t2t("build").exits(0).says(why);
    project.t2t("build --require-judged").exits(1);
}

#[test]
fn nothing_is_written_over_what_is_something_else() {
    let project = Project::built();
    let other = "something else is in it\nhint: name another file, or remove that one first\n";
    for (arguments, file) in [
        ("cache export ops.yaml", "ops.yaml"),
        ("report --out kernels/softmax/v1_baseline.py", "kernels/softmax/v1_baseline.py"),
    ] {
        let before = project.read(file);
        project.t2t(arguments).exits(2).says(other);
        assert_eq!(project.read(file), before);
    }
    // What the command itself wrote, or nothing, is replaced.
    project.write("results.tar", "");
    for _ in 0..2 {
        project.t2t("cache export results.tar").exits(0);
        project.t2t("report --out page.html").exits(0);
    }
}

#[test]
fn a_clean_leaves_what_is_somebodys_own_and_keeps_an_edited_log() {
    let project = Project::built();
    project.write("logs/own.txt", "mine");
    project.write("logs/softmax_log.md", "an edit");
    let ran = project.t2t("clean").exits(0);
    let digest = Digest::of(b"an edit").short();
    for said in [
        "note: logs/own.txt stays: t2t did not make it\n".to_owned(),
        format!(
            "note: logs/softmax_log.md is not as t2t wrote it, and is kept in cache/replaced/{digest}-softmax_log.md\n"
        ),
    ] {
        assert!(ran.stderr.contains(&said), "{}", ran.stderr);
    }
    assert_eq!(project.read("logs/own.txt"), "mine");
    assert_eq!(project.read(&format!("cache/replaced/{digest}-softmax_log.md")), "an edit");
    for gone in ["logs/softmax_log.md", "logs/gelu_log.md", "logs/summary.md"] {
        assert!(!project.path(gone).exists(), "{gone}");
    }
    project.t2t("build").exits(0).runs("");
    assert!(project.path("logs/gelu_log.md").exists());
}

// Status and explain.

#[test]
fn a_new_workspace_stands_in_two_lines() {
    let project = Project::new();
    let ran = project.t2t("status").exits(0);
    assert_eq!(ran.stdout, "stale     19 actions of 2 ops  never ran\n0 up to date, 19 stale, of 19 actions\n");
}

#[test]
fn explain_says_what_a_class_means_with_or_without_a_workspace() {
    let project = Project::new();
    let ran = project.run(project.command("explain mismatch").current_dir(project.path("../"))).exits(0);
    assert!(
        ran.stdout.starts_with("mismatch: values differ from torch's by more than the tolerance"),
        "{}",
        ran.stdout
    );
    for class in CLASSES {
        project.t2t(&format!("explain {}", class.name)).exits(0).says(class.meaning).says(class.remedy);
    }
    project.t2t("explain mismatch softmax:analyze").exits(0).says("mismatch: ").says("softmax:analyze: stale\n");
}

#[test]
fn every_class_has_a_line_and_a_place_in_the_docs_and_the_harness_gives_no_other() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let judging = fs::read_to_string(root.join("docs/reference/judging.md")).unwrap();
    for class in CLASSES {
        assert!(
            judging.contains(&format!("`{}`", class.name)),
            "docs/reference/judging.md does not name `{}`",
            class.name
        );
    }
    for path in t2t_store::fs::files_below(&root.join("python/t2t_harness"), "py") {
        let text = fs::read_to_string(&path).unwrap();
        for call in ["Finding(", "failure.failure("] {
            for after in text.split(call).skip(1).filter_map(|after| after.trim_start().strip_prefix('"')) {
                let name = after.split('"').next().unwrap();
                assert!(CLASSES.iter().any(|class| class.name == name), "{}: `{name}`", path.display());
            }
        }
    }
}

#[test]
fn explain_says_what_a_result_is_and_where_it_comes_from() {
    let project = rejecting();
    project.build();
    let ran = project.t2t("explain softmax/v2_tiling:check").exits(0);
    let expected = "\
softmax/v2_tiling:check: fresh
  rejected (mismatch)
    error: kernels/softmax/v2_tiling.py:4:1: 2 of 256 elements differ (mismatch)
";
    assert!(ran.stdout.starts_with(expected), "{}", ran.stdout);
    ran.says("      case small/float32/0 of softmax/v2_tiling:check\n").says("  from a run of [TIME] by t2t ");
    let ran = project.t2t("explain softmax/v1_baseline:check").exits(0);
    ran.says(
        "softmax/v1_baseline:check: fresh\n  passed\n  1 of 1 cases passed: `--format json` names each\n  note: code ",
    )
    .says("\n  from a run of [TIME] by t2t 0.1.0 and python 3.12.1, kept in cache/\n");
}

// A build.

#[test]
fn what_failed_is_named_again_at_the_end() {
    let project = rejecting();
    project.kernel("gelu", "v1_baseline", "LOST");
    let ran = project.build().exits(3);
    let end: Vec<&str> = ran.stderr.lines().rev().take(3).collect();
    assert!(end[0].starts_with("fresh 0, restored 0, ran "), "{}", ran.stderr);
    let mut failed = end[1..].to_vec();
    failed.sort_unstable();
    assert!(
        failed[0].starts_with("failed gelu/v1_baseline:check  lost: the child was ended by SIGKILL"),
        "{}",
        ran.stderr
    );
    assert_eq!(failed[1], "failed softmax/v2_tiling:check  mismatch: 2 of 256 elements differ");
    project.t2t("build -q").never_says("failed softmax");
}

#[test]
fn bench_prints_its_figures_and_prints_them_again() {
    let project = rejecting();
    for _ in 0..2 {
        let ran = project.t2t("bench softmax").exits(1);
        let lines: Vec<&str> = ran.stdout.lines().collect();
        assert_eq!(lines[0], "softmax");
        let words: Vec<&str> = lines[1].split_whitespace().collect();
        assert_eq!(words, ["Variant", "Size", "Interpreter", "(ms)", "Note"]);
        assert!(lines[3].starts_with("v1_baseline  small "), "{}", ran.stdout);
        let without = "softmax/v2_tiling has no figures: softmax/v2_tiling:check did not pass";
        assert_eq!(lines.last(), Some(&without), "{}", ran.stdout);
    }
}

#[test]
fn the_log_of_an_op_that_is_gone_goes_and_the_build_says_so() {
    let project = Project::built();
    project.write("logs/mine_log.md", "What I saw.\n");
    let gelu = OPS.find("  gelu:").unwrap();
    project.write("ops.yaml", &OPS[..gelu]);
    project.build().exits(0).says("note: logs/gelu_log.md is removed: ops.yaml has no op `gelu` any more\n");
    assert!(!project.exists("logs/gelu_log.md") && project.exists("logs/softmax_log.md"));
    assert!(project.exists("logs/mine_log.md"), "a file of somebody's own stays");
    project.build().exits(0).never_says("removed");
}

#[test]
fn ctrl_c_is_answered_at_once() {
    let project = Project::new();
    project.kernel("gelu", "v2_tiling", "HANG");
    let mut child = project.spawn("build --jobs 1");
    project.until_logged("pid ");
    let stderr = BufReader::new(child.stderr.take().unwrap());
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).unwrap();
    let mut said =
        stderr.lines().map_while(Result::ok).skip_while(|line| !line.starts_with("interrupted: what runs is"));
    assert!(said.next().is_some());
    let end: Vec<String> = said.collect();
    assert!(end.last().is_some_and(|last| last.starts_with("fresh 0, ") && !last.contains("lost")), "{end:?}");
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn the_help_of_a_command_begins_with_its_own_options() {
    let project = Project::new();
    let text = project.t2t("build --help").exits(0).stdout;
    let (own, common) = text.split_once("\nOptions of every command:\n").expect("two lists");
    assert!(own.contains("--jobs") && own.contains("--dry-run") && !own.contains("--python"), "{text}");
    assert!(common.contains("--python") && common.contains("--device") && !common.contains("--jobs"), "{text}");
}

// Folders.

#[test]
fn a_folder_that_cannot_be_written_and_was_never_built_can_be_looked_at() {
    let project = Project::new();
    project.remove("cache");
    let set = |mode| fs::set_permissions(project.path(""), fs::Permissions::from_mode(mode)).unwrap();
    set(0o555);
    let looks = ["status", "explain softmax:analyze", "build --dry-run softmax:analyze"];
    let ran = looks.map(|arguments| bound_by_modes(&project, arguments));
    set(0o755);
    let warning = "warning: `cache/` cannot be written, so the interpreter could not be probed for its versions";
    for (ran, said) in ran.into_iter().zip(["19 stale, of 19", "softmax:analyze: stale\n", "softmax:analyze never ran"])
    {
        ran.exits(0).says(said).says(warning);
    }
    assert!(!project.exists("cache"));
}

fn git(project: &Project, arguments: &str) {
    let mut command = Command::new("git");
    command.args(arguments.split(' ')).current_dir(project.path("")).stdout(Stdio::null());
    assert!(command.status().unwrap().success());
}

#[test]
fn the_first_build_says_what_git_would_take_in_and_init_mends_it() {
    let project = Project::new();
    git(&project, "init --quiet");
    let note =
        "note: git would add cache/ and logs/, which t2t makes: `t2t init` writes a .gitignore for this folder\n";
    project.t2t("build softmax:analyze").exits(0).says(note);
    project.t2t("build gelu:analyze").exits(0).never_says("git would add");
    project.write(".gitignore", "target");
    project.t2t("init").exits(0).says("wrote .gitignore\n").never_says("ops.yaml");
    assert_eq!(project.read(".gitignore"), "target\n/cache/\n/logs/\n");
    project.t2t("init").exits(0).says(".gitignore has cache/ and logs/\n");
    project.remove("cache");
    project.t2t("build softmax:analyze").exits(0).never_says("git would add");
}

#[test]
fn init_makes_a_workspace_of_an_empty_folder() {
    let project = Project::new();
    let folder = project.path("../empty");
    fs::create_dir(&folder).unwrap();
    let here = |arguments: &str| project.run(project.command(arguments).current_dir(&folder));
    here("init").exits(0).says("wrote ops.yaml\nwrote kernels/add/v1_baseline.py\nwrote .gitignore\n");
    here("build add:check").exits(0).runs("add:analyze add/v1_baseline:check");
}

#[test]
fn clean_says_what_it_takes_and_asks_on_a_terminal() {
    let project = Project::built();
    let on_a_terminal = |answer: &str, arguments: &str| {
        let t2t = project.command(arguments);
        let script = format!(
            "import os, pty, sys\nasked = []\ndef read(fd):\n    data = os.read(fd, 1024)\n    \
             if b'y/N' in data and not asked:\n        asked.append(os.write(fd, b'{answer}\\n'))\n    return data\n\
             pty.spawn(sys.argv[1:], read)"
        );
        let mut command = Command::new("python3");
        command.args(["-c", &script]).arg(t2t.get_program()).args(t2t.get_args()).current_dir(project.path(""));
        command.env_clear().envs(t2t.get_envs().filter_map(|(name, value)| Some((name, value?)))).stdin(Stdio::null());
        String::from_utf8_lossy(&command.output().unwrap().stdout).into_owned()
    };
    let text = on_a_terminal("n", "clean --cache");
    assert!(text.contains("removes logs/ and cache/: every result, "), "{text}");
    assert!(["KiB;", "MiB;"].iter().any(|unit| text.contains(unit)), "{text}");
    assert!(text.contains("nothing was removed") && project.exists("cache/journal"), "{text}");
    let text = on_a_terminal("y", "clean --cache");
    assert!(!project.exists("cache/journal"), "{text}");
    project.build();
    let text = on_a_terminal("n", "clean --cache --yes");
    assert!(!text.contains("y/N") && !project.exists("cache/journal"), "{text}");
    project.build();
    project.write("cache/replaced/0123-relu-v1.py", "# what a person wrote\n");
    let kept = "note: cache/replaced stays: persons wrote what is in it, and nothing makes it again\n";
    project.t2t("clean --cache").exits(0).says("removes logs/ and cache/: every result, ").says(kept).never_says("y/N");
    assert!(!project.exists("cache/journal") && project.exists("cache/replaced/0123-relu-v1.py"));
    project.t2t("clean --yes").exits(0);
}
