//! Edits of a few ops, built from what the last answer knows of the others: never other than what a look at everything makes of them.
//!
//! Two workspaces get the same edits. One forgets its answers before each build, so that it looks at everything. What they hold, tell and keep is compared after each.
//! The same is done with two watches.

use std::collections::BTreeMap;
use std::fs;
use std::thread;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::project::{OPS, Project, RELU, Ran, file, until};
use crate::watching::Watching;

const OPS_OF_ALL: [&str; 3] = ["gelu", "relu", "softmax"];
const VARIANTS: [&str; 2] = ["v1_baseline", "v2_tiling"];

/// Two workspaces that get the same edits.
struct Pair {
    short: Project,
    whole: Project,
}

impl Pair {
    fn new() -> Self {
        let [short, whole] = [0; 2].map(|_| {
            let project = Project::with(&format!("{OPS}{RELU}"));
            project.write("../python/bin/steady", "");
            project.write("kernels/common.py", "def add(x):\n    return x + 1\n");
            for op in OPS_OF_ALL {
                for variant in VARIANTS {
                    project.kernel(op, variant, "");
                }
            }
            project.build().exits(0);
            project
        });
        Self { short, whole }
    }

    fn both(&self, edit: impl Fn(&Project)) {
        edit(&self.short);
        edit(&self.whole);
    }

    /// Builds both, and fails where they differ.
    fn build(&self, what: &str) -> Ran {
        self.build_by("build", what)
    }

    /// Runs a command in both, and fails where they differ.
    fn build_by(&self, command: &str, what: &str) -> Ran {
        if self.whole.exists("cache/answers") {
            self.whole.forget_answers();
        }
        let (short, whole) = (self.short.t2t(command), self.whole.t2t(command));
        let told = |ran: &Ran| (ran.code, ran.actions.replace("summary", "").trim().to_owned(), ran.stdout.clone());
        assert_eq!(told(&short), told(&whole), "{what}\n{}\n{}", short.stderr, whole.stderr);
        assert_eq!(lines(&short.stderr), lines(&whole.stderr), "{what}");
        assert_eq!(logs(&self.short), logs(&self.whole), "{what}");
        assert_eq!(records(&self.short), records(&self.whole), "{what}");
        short
    }

    /// Fails where a build that has nothing to do tells other than one that looks at everything.
    fn expect_rest(&self, what: &str) {
        let quick = self.short.build().runs("");
        self.short.forget_answers();
        let looked = self.short.build().runs("");
        let told = |ran: &Ran| (ran.code, ran.stdout.clone(), ran.stderr.clone());
        assert_eq!(told(&quick), told(&looked), "{what}");
    }
}

/// Returns what is told, without what differs by chance: how long things took, which child ended first, and whether the summary ran.
///
/// The summary is fresh where all actions took as many milliseconds as before.
fn lines(stderr: &str) -> Vec<String> {
    let is_by_chance = |line: &str| line.starts_with("summary ") || line.starts_with("fresh ");
    let mut lines: Vec<String> = stderr.lines().filter(|line| !is_by_chance(line)).map(str::to_owned).collect();
    lines.sort();
    lines
}

/// Returns the logs, without times that were added up.
fn logs(project: &Project) -> BTreeMap<String, String> {
    let logs = project.files("logs").into_iter().map(|path| {
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().filter(|line| !line.contains("Time of all actions")).collect();
        (path.file_name().unwrap().to_string_lossy().into_owned(), lines.join("\n"))
    });
    logs.collect()
}

/// Returns the lines of the journal in any order, each without what a run is not twice: its times, and the digests of what holds times. The summary's are left out.
fn records(project: &Project) -> Vec<String> {
    let journal = project.read("cache/journal");
    let record = |line: &str| {
        let mut record: serde_json::Value = serde_json::from_str(line.split_once(' ').unwrap().1).unwrap();
        if record["identity"]["target"] == "summary" {
            return None;
        }
        for name in ["wall_ms", "device_ms"] {
            record[name].take();
        }
        record["outputs"]["cost"].take();
        Some(record.to_string())
    };
    let mut records: Vec<String> = journal.lines().skip(1).filter_map(record).collect();
    records.sort();
    records
}

/// One edit: what is done, in words, and the edit itself.
fn edit(pair: &Pair, draw: &mut impl FnMut(usize) -> usize, round: usize) -> String {
    let (op, variant) = (OPS_OF_ALL[draw(3)], VARIANTS[draw(2)]);
    let path = file(op, variant);
    match draw(9) {
        0 | 1 => {
            pair.both(|project| {
                project.kernel(op, variant, "");
                project.edit(&path, "input + 1", &format!("input + {round}"));
            });
            format!("code of {path}")
        }
        2 => {
            pair.both(|project| project.kernel(op, variant, ""));
            format!("{path} as it was")
        }
        3 => {
            let mark = ["ERROR 1", "RAISE", "COMPILE-ERROR", "NOT-JUDGED"][draw(4)];
            pair.both(|project| project.kernel(op, variant, mark));
            format!("{mark} in {path}")
        }
        4 => {
            pair.both(|project| project.write(&path, "def broken(:\n"));
            format!("a syntax error in {path}")
        }
        5 => {
            pair.both(|project| {
                project.kernel(op, variant, "");
                project.edit(&path, "import triton\n", "import triton\nfrom kernels.common import add\n");
            });
            format!("an import in {path}")
        }
        6 => {
            pair.both(|project| project.write("kernels/common.py", format!("def add(x):\n    return x + {round}\n")));
            "the helper".to_owned()
        }
        7 => {
            if pair.short.exists(&path) {
                pair.both(|project| project.remove(&path));
            } else {
                pair.both(|project| project.kernel(op, variant, ""));
            }
            format!("{path} went or came")
        }
        _ => {
            pair.both(|project| {
                for op in OPS_OF_ALL {
                    project.kernel(op, variant, "");
                    project.edit(&file(op, variant), "Launch it.", &format!("Launch it {round} times."));
                }
            });
            format!("docstrings of all {variant}")
        }
    }
}

/// Returns numbers below any bound, the same in each run.
fn draws() -> impl FnMut(usize) -> usize {
    let mut state: u64 = 0x9e37_79b9_7f4a_7c15;
    move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).unwrap()
    }
}

#[test]
fn random_edits_come_to_what_a_look_at_everything_comes_to() {
    let pair = Pair::new();
    let mut draw = draws();
    let mut done = Vec::new();
    for round in 2..26 {
        for _ in 0..=draw(2) {
            done.push(edit(&pair, &mut draw, round));
        }
        pair.build(&done.join(", then "));
        if draw(4) == 0 {
            pair.expect_rest(&done.join(", then "));
        }
    }
}

#[test]
fn a_watch_comes_by_saves_to_what_a_look_at_everything_comes_to() {
    let pair = Pair::new();
    let mut draw = draws();
    let mut short = Watching::start(&pair.short, "");
    // What annotates for a CI service looks at everything.
    let mut whole = Watching::of(&pair.whole, pair.whole.command("watch").env("GITHUB_ACTIONS", "true"));
    whole.settles();
    for number in 2..16 {
        let done = edit(&pair, &mut draw, number);
        short.settles();
        whole.settles();
        // An edit may be several saves, of which a round has seen the first alone.
        until(|| (logs(&pair.short) == logs(&pair.whole)).then_some(()));
        assert!(!short.told().contains("panicked"), "{done}: {}", short.told());
    }
    for watching in [short, whole] {
        watching.stop(Signal::SIGINT);
    }
    let [short, whole] = [&pair.short, &pair.whole].map(|project| project.build().runs(""));
    assert_eq!((short.code, short.stdout), (whole.code, whole.stdout));
    assert_eq!(logs(&pair.short), logs(&pair.whole));
    pair.expect_rest("after the watches");
}

#[test]
fn an_edit_of_what_was_asked_for_comes_to_what_a_look_at_everything_comes_to() {
    let pair = Pair::new();
    for (number, asked) in ["softmax", "softmax/v2_tiling:check", "--phase check", "gelu softmax"].iter().enumerate() {
        for (round, op) in ["softmax", "softmax", "gelu", "softmax"].iter().enumerate() {
            let mark = if round == 1 { "RAISE" } else { "" };
            pair.both(|project| {
                project.kernel(op, "v2_tiling", mark);
                project.edit(&file(op, "v2_tiling"), "input + 1", &format!("input + {number}{round}"));
            });
            pair.build_by(&format!("build {asked}"), &format!("{asked}, {op}"));
        }
    }
    pair.build("everything");
    pair.expect_rest("everything");
}

#[test]
fn a_save_reads_no_other_op() {
    let project = Project::built();
    let mut watching = Watching::start(&project, "");
    let known = project.read("cache/sources.json");
    for number in 2..5 {
        project.write("cache/sources.json", "nothing");
        project.edit(&file("softmax", "v2_tiling"), &format!("input + {}", number - 1), &format!("input + {number}"));
        watching.says("bench softmax/v2_tiling … passed");
        assert!(watching.settles().starts_with("fresh "));
        assert_eq!(project.read("cache/sources.json"), "nothing", "nobody looks at what is known of the rest");
    }
    project.write("cache/sources.json", known);
    watching.stop(Signal::SIGINT);
    project.build().exits(0).runs("");
}

#[test]
fn an_edit_tells_of_the_failures_of_other_ops_where_a_look_at_everything_does() {
    let pair = Pair::new();
    pair.both(|project| {
        project.kernel("gelu", "v1_baseline", "RAISE");
        project.kernel("softmax", "v1_baseline", "COMPILE-ERROR");
        project.write("kernels/relu/v1_baseline.py", "def broken(:\n");
    });
    pair.build("three failures").exits(1);
    pair.both(|project| project.edit(&file("relu", "v2_tiling"), "input + 1", "input + 2"));
    pair.whole.forget_answers();
    let [short, whole] = [&pair.short, &pair.whole].map(|project| project.build().exits(1));
    // What runs at the same time ends in any order.
    let before = |ran: &Ran| ran.stderr.split(" … passed").next().unwrap().rsplit_once('\n').unwrap().0.to_owned();
    assert_eq!(before(&short), before(&whole));
    assert_eq!(lines(&short.stderr), lines(&whole.stderr));
    pair.expect_rest("an edit beside failures");
}

#[test]
fn an_edit_reads_no_other_op() {
    let project = Project::built();
    let known = project.read("cache/sources.json");
    for number in 2..5 {
        project.kernel("softmax", "v2_tiling", "");
        project.edit(&file("softmax", "v2_tiling"), "input + 1", &format!("input + {number}"));
        // Nobody looks at what is known of the rest.
        project.write("cache/sources.json", "nothing");
        project.build().exits(0).runs("softmax:select,log softmax/v2_tiling:compile,check,bench summary");
        assert_eq!(project.read("cache/sources.json"), "nothing");
        project.build().exits(0).runs("");
    }
    project.write("cache/sources.json", known);
    project.forget_answers();
    project.build().exits(0).runs("");
}

#[test]
fn what_another_command_built_meanwhile_is_part_of_the_edit() {
    let pair = Pair::new();
    pair.both(|project| {
        project.edit(&file("gelu", "v2_tiling"), "input + 1", "input + 2");
        project.t2t("build --quiet").exits(0);
        project.edit(&file("softmax", "v2_tiling"), "input + 1", "input + 3");
    });
    pair.build("two edits, one of them built by another command").exits(0);
    pair.both(|project| {
        project.edit(&file("softmax", "v2_tiling"), "input + 3", "input + 4");
        project.t2t("build softmax").exits(0);
        project.edit(&file("softmax", "v2_tiling"), "input + 4", "input + 3");
    });
    pair.build("an edit that was undone").exits(0).runs("");
    pair.expect_rest("the end");
}

#[test]
fn a_result_of_an_op_that_is_alike_comes_back() {
    let op = |name: &str| {
        format!(
            "  {name}:\n    torch: softmax\n    inputs: {{input: [M, N]}}\n    kwargs: {{dim: -1}}\n    variants: [{{name: one, path: kernels/shared.py, entry: triton_softmax}}]\n"
        )
    };
    let shared = format!("version: 1\nops:\n{}{}", op("left"), op("right"));
    let pair = Pair { short: Project::with(&shared), whole: Project::with(&shared) };
    pair.both(|project| {
        project.write("../python/bin/steady", "");
        project.kernel("softmax", "v1_baseline", "");
        project.write("kernels/shared.py", project.read(&file("softmax", "v1_baseline")));
    });
    // Of two that are alike one comes back only if they do not run at once.
    pair.build_by("build --jobs 1", "first").exits(0);
    for number in [2, 3, 1, 2] {
        pair.both(|project| {
            project.kernel("softmax", "v1_baseline", "");
            let text = project.read(&file("softmax", "v1_baseline"));
            project.write("kernels/shared.py", text.replace("input + 1", &format!("input + {number}")));
        });
        pair.build_by("build --jobs 1", "a shared file").exits(0);
    }
    pair.expect_rest("a shared file");
}

#[test]
fn a_build_of_an_edit_that_was_killed_is_made_up_for() {
    let pair = Pair::new();
    for (round, wait) in [5, 40, 80, 120, 200, 400].into_iter().enumerate() {
        pair.both(|project| {
            project.kernel("softmax", "v2_tiling", "");
            project.edit(&file("softmax", "v2_tiling"), "input + 1", &format!("input + 1{round}"));
        });
        let mut killed = pair.short.spawn("build");
        thread::sleep(Duration::from_millis(wait));
        killed.kill().unwrap();
        killed.wait().unwrap();
        pair.short.build().exits(0);
        pair.whole.build().exits(0);
        assert_eq!(logs(&pair.short), logs(&pair.whole));
        pair.expect_rest("a kill");
    }
    pair.short.t2t("cache verify").exits(0).says(": 0 damages");
}

#[test]
fn a_file_that_changes_while_its_edit_is_built_is_built_again() {
    let project = Project::built();
    let path = file("softmax", "v2_tiling");
    project.kernel("softmax", "v2_tiling", "WAITS");
    let child = project.spawn("build");
    until(|| project.log().iter().any(|line| line.starts_with("softmax/v2_tiling:")).then_some(()));
    project.kernel("softmax", "v2_tiling", "");
    project.edit(&path, "input + 1", "input + 7");
    project.calm();
    // The action is lost, for nobody knows in which state it read the file; or it had read all of it.
    child.wait_with_output().unwrap();
    project.build().exits(0);
    project.forget_answers();
    project.build().exits(0).runs("");
}

#[test]
fn what_reads_a_file_that_is_saved_while_it_is_built_is_built_again() {
    let project = Project::new();
    project.kernel("softmax", "v2_tiling", "WAITS");
    let child = project.spawn("build --junit cases.xml");
    project.until_logged("softmax/v2_tiling:check candidate:run");
    project.kernel("softmax", "v2_tiling", "REJECT mismatch");
    project.calm();
    let path = file("softmax", "v2_tiling");
    let ran = project.wait(child).exits(1);
    let ran = ran.says(&format!("check softmax/v2_tiling … cancelled: `{path}` changed while it ran\n"));
    let ran = ran.says(&format!("note: `{path}` changed while it was built: what reads it is built again\n"));
    let ran = ran.says("check softmax/v2_tiling … rejected (mismatch)").says("\nfresh 0, restored 0, ran ");
    assert_eq!(ran.stderr.matches("check softmax/v1_baseline … passed").count(), 1, "{}", ran.stderr);
    assert!(project.read("cases.xml").contains("mismatch"));
    project.build().exits(1).runs("");
}
