//! Results hold wherever they are taken: keys know no folder, user, locale, time zone, order of files or time of a checkout, and a copied `cache/` answers there.

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::environment;
use crate::project::{OPS, Project, Ran, copy_program};

/// The folder of the second clone.
const ELSEWHERE: &str = "../Zweite Kopie — später";

/// A user who owns nothing.
const NOBODY: u32 = 65_534;

/// What the workspace has beside what [`Project::new`] writes: a helper, a package, cases, an own summary.
fn sources() -> Project {
    let project = Project::with(&OPS.replacen("    kwargs:", "    cases: kernels/softmax/cases.py\n    kwargs:", 1));
    for op in ["softmax", "gelu"] {
        for variant in ["v1_baseline", "v2_tiling"] {
            project.kernel(op, variant, "TAKES 5; READS data/größe.txt");
        }
    }
    project.edit("kernels/softmax/v2_tiling.py", "import triton\n", "import triton\nfrom . import helper\n");
    project.write("kernels/softmax/helper.py", "ONE = 1\n");
    project.write("kernels/__init__.py", "\"\"\"All kernels.\"\"\"\n");
    project.write("kernels/softmax/cases.py", "def cases(spec, generator):\n    return []\n");
    project.write("assets/summary_template.md", "{{ ops | length }} ops\n");
    project.write("data/größe.txt", "1\n");
    project
}

/// Writes the same files in another folder: in reverse order, with other modes, each with a time of its own.
fn cloned(project: &Project) -> Project {
    let clone = Project::with(OPS);
    clone.remove("");
    let mut files = project.files("");
    files.retain(|file| !["cache", "logs"].iter().any(|made| file.starts_with(project.path(made))));
    assert!(files.len() > 9, "{files:?}");
    for (number, file) in files.iter().rev().enumerate() {
        let name = format!("{ELSEWHERE}/{}", file.strip_prefix(project.path("")).unwrap().to_str().unwrap());
        clone.write(&name, fs::read(file).unwrap());
        let copy = File::open(clone.path(&name)).unwrap();
        copy.set_permissions(Permissions::from_mode(if number % 2 == 0 { 0o400 } else { 0o777 })).unwrap();
        let years = Duration::from_secs(31_557_600 * number as u64);
        copy.set_modified(SystemTime::UNIX_EPOCH + years).unwrap();
    }
    clone
}

/// Returns the command in the second clone, as another person with other habits types it.
fn elsewhere(clone: &Project, arguments: &str) -> Command {
    let plain = clone.command(arguments);
    let mut command = Command::new("sh");
    command.args(["-c", "umask 077 && exec \"$0\" \"$@\""]).arg(plain.get_program()).args(plain.get_args());
    command.current_dir(clone.path(ELSEWHERE)).env_clear();
    for (name, value) in plain.get_envs() {
        command.env(name, value.unwrap());
    }
    command.env("HOME", clone.path("../")).env("USER", "jemand").env("LOGNAME", "jemand").env("HOSTNAME", "anderswo");
    command.env("LANG", "tr_TR.UTF-8").env("LC_ALL", "tr_TR.UTF-8").env("TZ", "Pacific/Chatham");
    command.env("TMPDIR", clone.path("../")).env("COLUMNS", "40").env("CI", "1");
    command
}

/// Returns, by target, the key under which it stands.
fn keys(events: &Path) -> BTreeMap<String, String> {
    let text = fs::read_to_string(events).unwrap();
    let events = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let ends = events.filter(|event| event["event"] == "action-finished");
    ends.map(|event| {
        (event["target"].as_str().unwrap().to_owned(), event["key"].as_str().expect("it has a result").to_owned())
    })
    .collect()
}

fn unredacted(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn two_clones_have_equal_keys_and_the_store_of_one_answers_in_the_other() {
    let project = sources();
    project.t2t("build --events ../events.jsonl").exits(0);
    let clone = cloned(&project);
    let own_keys = keys(&project.path("../events.jsonl"));
    assert_eq!(own_keys.len(), 19);

    // What a result depends on beside other results.
    let built = clone.run(&mut elsewhere(&clone, "build --events ../events.jsonl")).exits(0);
    assert!(built.actions.contains("softmax/v2_tiling:compile,check,bench"), "{}", built.actions);
    let their_keys = keys(&clone.path("../events.jsonl"));
    // What was measured differs, and with it what is made of it.
    let is_measured = |target: &String| [":select", ":log", "summary"].iter().any(|end| target.ends_with(end));
    for (target, key) in own_keys.iter().filter(|(target, _)| !is_measured(target)) {
        assert_eq!(&their_keys[target], key, "{target}");
    }

    // What a device that is neither here nor there would be asked for.
    for op in ["softmax", "gelu"] {
        let explained = format!("explain {op} --as-device nvidia-h200");
        let here = unredacted(&mut project.command(&explained));
        assert!(here.contains("device.class = nvidia-h200"), "{here}");
        // How long a run took is its own.
        let told = |text: &str| {
            text.lines().filter(|line| !line.starts_with("  from a run of")).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(told(&unredacted(&mut elsewhere(&clone, &explained))), told(&here));
    }
    assert_eq!(unredacted(&mut elsewhere(&clone, "graph")), unredacted(&mut project.command("graph")));

    // The other's results.
    fs::remove_dir_all(clone.path(ELSEWHERE).join("cache")).unwrap();
    copy(&project.path("cache"), &clone.path(ELSEWHERE));
    let restored = clone.run(&mut elsewhere(&clone, "build --events ../events.jsonl")).exits(0).runs("");
    assert!(restored.stderr.contains("ran 0 in "), "{}", restored.stderr);
    assert_eq!(keys(&clone.path("../events.jsonl")), own_keys);
    let page = |folder: PathBuf| fs::read(folder.join("logs/softmax_log.md")).unwrap();
    assert_eq!(page(clone.path(ELSEWHERE)), page(project.path("")));
}

fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-r").args([from, to]).status().unwrap().success());
}

/// Gives all below `path` this mode: of files the first, of folders the second.
fn set_modes(path: &Path, file: u32, folder: u32) {
    for entry in fs::read_dir(path).unwrap() {
        let entry = entry.unwrap().path();
        if entry.is_dir() {
            set_modes(&entry, file, folder);
        } else {
            fs::set_permissions(&entry, Permissions::from_mode(file)).unwrap();
        }
    }
    fs::set_permissions(path, Permissions::from_mode(folder)).unwrap();
}

/// Returns the folder of a copy of `project` whose store may only be read, file by file. Where the tests run as root, all but the store belongs to another user, who
/// is to build: the permissions of files mean nothing to root.
fn handed_over(project: &Project) -> Project {
    let clone = Project::with(OPS);
    let root = clone.path("");
    clone.remove("");
    copy(&project.path(""), &root);
    set_modes(&root.join("cache"), 0o444, 0o777);
    fs::remove_dir_all(root.join("logs")).unwrap();
    if is_root(&root) {
        environment::expect_open_to_others();
        for folder in [root.clone(), root.join("assets")] {
            chown(&folder, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        for folder in [clone.path("../"), project.path("../")] {
            fs::set_permissions(folder, Permissions::from_mode(0o755)).unwrap();
        }
        // Nobody may look into the folder of the one that was built.
        copy_program(&environment::binary(), &clone.path("../t2t"));
    }
    clone
}

fn is_root(made: &Path) -> bool {
    fs::metadata(made).unwrap().uid() == 0
}

/// Runs t2t in `clone` as the other user where that can be, with the interpreter of `project`, which the store knows.
fn as_another(project: &Project, clone: &Project, arguments: &str) -> Ran {
    let mut command = clone.command(arguments);
    command.env("T2T_PYTHON", project.path("../python/bin/python"));
    if clone.exists("../t2t") {
        let mut other = Command::new(clone.path("../t2t"));
        other.args(command.get_args()).current_dir(clone.path("")).env_clear().uid(NOBODY).gid(NOBODY);
        for (name, value) in command.get_envs() {
            other.env(name, value.unwrap());
        }
        command = other;
    }
    clone.run(&mut command)
}

#[test]
fn a_store_of_another_user_whose_files_may_only_be_read_answers_and_takes_new_results() {
    let project = sources();
    project.build().exits(0);
    let clone = handed_over(&project);
    as_another(&project, &clone, "build").exits(0).runs("").never_says("warning");
    assert_eq!(clone.read("logs/gelu_log.md"), project.read("logs/gelu_log.md"));
    // What needs no interpreter, so that it need not be one that another user can start.
    clone.remove("assets/log_template.md");
    clone.write("assets/log_template.md", "{{ op }}\n");
    fs::set_permissions(clone.path("assets/log_template.md"), Permissions::from_mode(0o644)).unwrap();
    as_another(&project, &clone, "build").exits(0).runs("gelu:log softmax:log");
    as_another(&project, &clone, "build").exits(0).runs("");
    as_another(&project, &clone, "cache verify").exits(0).says(": 0 damages");
}
