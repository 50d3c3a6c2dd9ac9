//! `t2t affected`: what a change since a commit can affect, held against what a build would then run.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

use crate::project::{OPS, Project, RELU, Ran};

const KERNEL: &str = "kernels/softmax/v2_tiling.py";

/// A built workspace in a repository, with everything committed.
fn committed(project: Project) -> Project {
    project.write(".gitignore", "cache\nlogs\n");
    git(&project, "init -q -b main");
    commit(&project);
    project
}

fn git(project: &Project, arguments: &str) {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=t", "-c", "user.email=t@t"]).args(arguments.split(' '));
    let output = command.current_dir(project.path("")).output().unwrap();
    assert!(output.status.success(), "git {arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

fn commit(project: &Project) {
    git(project, "add -A");
    git(project, "commit -qm change --allow-empty");
}

fn lines(ran: &Ran) -> Vec<String> {
    ran.stdout.lines().map(str::to_owned).collect()
}

fn affected(project: &Project, arguments: &str) -> Vec<String> {
    lines(&project.t2t(&format!("affected {arguments}")).exits(0))
}

/// Returns what a dry run would run.
fn stale(project: &Project) -> BTreeSet<String> {
    let ran = project.t2t("build --dry-run").exits(0);
    ran.stdout.lines().map(|line| line.split_whitespace().next().unwrap().to_owned()).collect()
}

#[test]
fn nothing_is_affected_where_nothing_changed_or_what_changed_means_nothing() {
    let project = committed(Project::built());
    assert!(affected(&project, "--since HEAD").is_empty());
    project.edit(KERNEL, "import triton\n", "# Triton.\nimport triton\n\n\n");
    project.edit("ops.yaml", "version: 1\n", "# All ops.\nversion: 1\n");
    project.write("README.md", "Read me.\n");
    project.write("kernels/softmax/notes.md", "No action read this.\n");
    for arguments in ["--since HEAD", "--since HEAD --targets"] {
        assert!(affected(&project, arguments).is_empty());
    }
    let document: Value =
        serde_json::from_str(&project.t2t("affected --since HEAD --format json").exits(0).stdout).unwrap();
    assert_eq!(document["version"], 1);
    assert_eq!((&document["ops"], &document["actions"]), (&Value::Array(vec![]), &Value::Array(vec![])));
    assert_eq!(document["files"].as_array().unwrap().len(), 4, "{document}");
}

#[test]
fn a_kernel_affects_its_op_committed_or_not_or_untracked() {
    let project = committed(Project::built());
    project.edit(KERNEL, "+ 1", "+ 2");
    let expected = [
        "softmax/v2_tiling:compile",
        "softmax/v2_tiling:check",
        "softmax/v2_tiling:bench",
        "softmax:select",
        "softmax:log",
        "summary",
    ];
    for step in ["", "add -A", "commit -qm two"] {
        if !step.is_empty() {
            git(&project, step);
        }
        let since = if step.starts_with("commit") { "HEAD~1" } else { "HEAD" };
        assert_eq!(affected(&project, &format!("--since {since}")), ["softmax"], "{step}");
        assert_eq!(affected(&project, &format!("--since {since} --targets")), expected, "{step}");
    }
    // The tag that stands for the commit does as well, and what was built meanwhile changes nothing.
    git(&project, "tag then HEAD~1");
    project.build().exits(0);
    assert_eq!(affected(&project, "--since then"), ["softmax"]);
    assert!(affected(&project, "--since HEAD").is_empty());
    project.write("kernels/__init__.py", "ONE = 1\n");
    assert_eq!(affected(&project, "--since HEAD"), ["softmax", "gelu"]);
    project.remove("kernels/__init__.py");
    project.remove("kernels/gelu/v1_baseline.py");
    assert_eq!(affected(&project, "--since HEAD"), ["gelu"]);
}

#[test]
fn what_is_printed_can_be_built() {
    let project = committed(Project::built());
    project.edit(KERNEL, "+ 1", "+ 2");
    let ops = affected(&project, "--since HEAD").join(" ");
    project.t2t(&format!("build {ops}")).exits(0).runs("softmax:select,log softmax/v2_tiling:compile,check,bench");
}

#[test]
fn the_document_says_why() {
    let project = committed(Project::built());
    project.edit("ops.yaml", "kwargs: {dim: -1}", "kwargs: {dim: -1}\n    check: {atol: 1e-3}");
    let gelu = OPS.find("  gelu:").unwrap();
    let text = project.read("ops.yaml");
    project.write("ops.yaml", format!("{}{RELU}", &text[..text.len() - (OPS.len() - gelu)]));
    let document: Value =
        serde_json::from_str(&project.t2t("affected --since HEAD --format json").exits(0).stdout).unwrap();
    assert_eq!(document["ops"], Value::from(vec!["softmax", "relu"]));
    assert_eq!(document["gone"], Value::from(vec!["gelu"]));
    assert_eq!(document["files"], Value::from(vec!["ops.yaml"]));
    assert_eq!(document["commit"], "[DIGEST]");
    let why = |target: &str| {
        let all = document["actions"].as_array().unwrap();
        let found = all.iter().find(|action| action["target"] == target).unwrap_or_else(|| panic!("no {target}"));
        found["why"].as_array().unwrap().iter().map(|why| why.as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert!(why("softmax/v1_baseline:check")[0].contains("tolerances"), "{:?}", why("softmax/v1_baseline:check"));
    assert_eq!(why("softmax/v1_baseline:bench"), ["after softmax/v1_baseline:check"]);
    assert_eq!(why("relu:analyze"), ["it is new"]);
}

#[test]
fn files_that_an_action_turned_out_to_read_count_and_so_does_a_cited_line() {
    let project = Project::new();
    project.kernel("softmax", "v2_tiling", "READS data/table.txt");
    project.kernel("gelu", "v1_baseline", "REJECT mismatch");
    project.build().exits(1);
    let project = committed(project);
    project.write("data/table.txt", "one");
    assert_eq!(affected(&project, "--since HEAD"), ["softmax"]);
    project.remove("data");
    let cited = "kernels/gelu/v1_baseline.py";
    project.edit(cited, "import triton\n", "# Triton.\nimport triton\n");
    assert_eq!(affected(&project, "--since HEAD"), ["gelu"], "a rejection cites a line that moved");
}

#[test]
fn a_longer_deadline_affects_what_missed_it_alone() {
    let project = Project::new();
    project.kernel("softmax", "v2_tiling", "NEEDS 30");
    for op in ["softmax", "gelu"] {
        project.edit(
            "ops.yaml",
            &format!("{op}\n    inputs"),
            &format!("{op}\n    check: {{timeout: 10s}}\n    inputs"),
        );
    }
    project.build().exits(1);
    let project = committed(project);
    for (timeout, expected) in [("5s", ""), ("20s", "softmax")] {
        let text = project.read("ops.yaml");
        project.write("ops.yaml", text.replace("timeout: 10s", &format!("timeout: {timeout}")));
        assert_eq!(affected(&project, "--since HEAD").join(" "), expected);
        project.write("ops.yaml", text);
    }
}

#[test]
fn other_tolerances_affect_a_bench_that_was_rejected_and_none_that_passed() {
    let project = Project::new();
    project.kernel("softmax", "v2_tiling", "DRIFTS 0.01");
    project.edit("ops.yaml", "kwargs: {dim: -1}", "kwargs: {dim: -1}\n    check: {atol: 0.002}");
    project.build().exits(1);
    let project = committed(project);
    project.edit("ops.yaml", "atol: 0.002", "atol: 0.02");
    let document = project.t2t("affected --since HEAD --format json").exits(0).stdout;
    let told = document.matches("the tolerances, outputs or mutated inputs changed by which it was rejected");
    assert_eq!(told.count(), 1, "{document}");
}

#[test]
fn without_results_a_file_beside_the_kernels_may_have_been_read_and_a_comment_means_nothing() {
    let project = committed(Project::new());
    project.edit(KERNEL, "import triton\n", "# Triton.\nimport triton\n");
    assert!(affected(&project, "--since HEAD").is_empty());
    project.write("kernels/softmax/table.txt", "one");
    assert_eq!(affected(&project, "--since HEAD"), ["softmax", "gelu"]);
    let document = project.t2t("affected --since HEAD --format json").exits(0).stdout;
    assert!(document.contains("no result says whether it reads what changed: kernels/softmax/table.txt"), "{document}");
}

#[test]
fn where_nothing_could_be_built_everything_is_affected() {
    let project = Project::built();
    let ops = project.read("ops.yaml");
    project.write("ops.yaml", "version: 1\nops: 3\n");
    let project = committed(project);
    project.write("ops.yaml", &ops);
    assert_eq!(lines(&project.t2t("affected --since HEAD").exits(0).says("note: at")), ["softmax", "gelu"]);
    project.remove("ops.yaml");
    commit(&project);
    project.write("ops.yaml", &ops);
    assert_eq!(affected(&project, "--since HEAD"), ["softmax", "gelu"]);
    assert!(project.files("cache/scratch").is_empty());
}

#[test]
fn a_workspace_in_a_folder_of_a_repository_is_compared_with_that_folder() {
    let project = Project::built();
    project.write("../.gitignore", "cache\nlogs\npython\n");
    project.write("../other.txt", "one");
    let above = |arguments: &str| {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=t", "-c", "user.email=t@t"]).args(arguments.split(' '));
        assert!(command.current_dir(project.path("../")).status().unwrap().success());
    };
    for step in ["init -q -b main", "add other.txt .gitignore", "commit -qm one", "add -A", "commit -qm two"] {
        above(step);
    }
    assert!(affected(&project, "--since HEAD").is_empty());
    project.write("../other.txt", "two");
    project.write("../kernels/softmax/v2_tiling.py", "two");
    assert!(affected(&project, "--since HEAD").is_empty());
    project.edit(KERNEL, "+ 1", "+ 2");
    assert_eq!(affected(&project, "--since HEAD"), ["softmax"]);
    assert_eq!(affected(&project, "--since HEAD~1"), ["softmax", "gelu"], "the folder was not there");
}

#[test]
fn what_git_is_told_to_ignore_is_no_change_and_what_lies_behind_a_link_may_be_one() {
    let project = Project::new();
    project.kernel("gelu", "v1_baseline", "READS data/table.txt");
    project.write("data/table.txt", "one");
    project.build().exits(0);
    project.write(".git/info/exclude", "data\nkernels/gelu/v2_tiling.py\n");
    let project = committed(project);
    project.edit(KERNEL, "+ 1", "+ 2");
    assert_eq!(affected(&project, "--since HEAD"), ["softmax"]);
    assert!(!stale(&project).iter().any(|target| target.starts_with("gelu")));
    let linked = "kernels/gelu/v1_baseline.py";
    project.write("behind.py", project.read(linked));
    project.remove(linked);
    std::os::unix::fs::symlink("../../behind.py", project.path(linked)).unwrap();
    commit(&project);
    project.build();
    assert!(affected(&project, "--since HEAD").is_empty(), "nothing changed");
    project.edit(KERNEL, "+ 2", "+ 3");
    assert_eq!(affected(&project, "--since HEAD"), ["softmax"], "what the link leads to is what it was");
    project.edit("behind.py", "+ 1", "+ 2");
    assert_eq!(affected(&project, "--since HEAD"), ["softmax", "gelu"]);
    // Git says nothing of what lies outside.
    commit(&project);
    project.write("../behind.py", project.read("behind.py"));
    project.remove(linked);
    std::os::unix::fs::symlink("../../../behind.py", project.path(linked)).unwrap();
    commit(&project);
    project.build();
    project.edit("../behind.py", "+ 2", "+ 3");
    assert_eq!(affected(&project, "--since HEAD"), ["gelu"]);
}

#[test]
fn a_repository_within_the_repository_changes_as_a_whole() {
    let project = committed(Project::built());
    git(&project, "rm -rq --cached kernels/gelu");
    git(&project, "-C kernels/gelu init -q");
    git(&project, "-C kernels/gelu add -A");
    git(&project, "-C kernels/gelu commit -qm own");
    git(&project, "-c advice.addEmbeddedRepo=false add kernels/gelu");
    commit(&project);
    assert!(affected(&project, "--since HEAD").is_empty());
    project.edit("kernels/gelu/v1_baseline.py", "+ 1", "+ 2");
    assert_eq!(affected(&project, "--since HEAD"), ["gelu"]);
    git(&project, "-C kernels/gelu commit -qam change");
    commit(&project);
    assert_eq!(affected(&project, "--since HEAD~1"), ["gelu"]);
    assert!(affected(&project, "--since HEAD").is_empty());
}

#[test]
fn what_is_no_commit_is_bad_use() {
    let project = Project::new();
    project.t2t("affected --since HEAD").exits(2).says("git cannot say what changed since `HEAD`: ").says("hint: ");
    let project = committed(project);
    project
        .t2t("affected --since origin/main")
        .exits(2)
        .says("git knows no commit `origin/main`")
        .says("a shallow clone has to fetch it first");
    project.t2t("affected --since --output=x").exits(2);
    project.t2t("affected").exits(2).says("--since <REV>");
    assert!(!project.exists("x"));
}

// Against what becomes stale.

/// Numbers that look random and are the same in every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % most
    }
}

/// Edits the workspace in one of the ways in which people do, and says how.
fn edit(project: &Project, chance: &mut Chance, number: usize) -> String {
    let op = ["softmax", "gelu"][chance.below(2)];
    let variant = ["v1_baseline", "v2_tiling"][chance.below(2)];
    let kernel = format!("kernels/{op}/{variant}.py");
    let prepend = |path: &str, line: &str| project.write(path, format!("{line}\n{}", project.read(path)));
    let append = |path: &str, line: &str| project.write(path, format!("{}{line}\n", project.read(path)));
    let ops = |from: &str, to: String| {
        let text = project.read("ops.yaml");
        project.write("ops.yaml", text.replacen(from, &to, 1));
    };
    let kinds: [(&str, &dyn Fn()); 20] = [
        ("code", &|| append(&kernel, &format!("CODE = {number}"))),
        ("a comment", &|| prepend(&kernel, &format!("# {number}"))),
        ("a rejection", &|| project.kernel(op, variant, "REJECT mismatch")),
        ("a good kernel", &|| project.kernel(op, variant, "")),
        ("a file that is read", &|| project.kernel(op, variant, "READS data/table.txt")),
        ("that file", &|| project.write("data/table.txt", number.to_string())),
        ("that file again", &|| project.write("data/table.txt", (number % 7).to_string())),
        ("comments in all", &|| {
            let kernels = project.files("kernels");
            let python = kernels.iter().filter(|file| file.extension().is_some_and(|ending| ending == "py"));
            python
                .for_each(|file| std::fs::write(file, [b"# All.\n", &*std::fs::read(file).unwrap()].concat()).unwrap());
        }),
        ("that file is gone", &|| _ = std::fs::remove_file(project.path("data/table.txt"))),
        ("a syntax error", &|| append(&kernel, "def (")),
        ("a kernel is gone", &|| _ = std::fs::remove_file(project.path(&kernel))),
        ("an import", &|| project.write(&kernel, "from .helper import triton_softmax, triton_gelu\n")),
        ("the helper", &|| {
            let two = format!("triton_softmax = triton_gelu = lambda input: {number}\n");
            project.write(&format!("kernels/{op}/helper.py"), two);
        }),
        ("a package", &|| project.write("kernels/__init__.py", format!("ONE = {}\n", number % 3))),
        ("kwargs", &|| ops("dim: -1", format!("dim: {}", number % 2))),
        ("a deadline", &|| ops("inputs", format!("check: {{timeout: {}}}\n    inputs", 60 + number))),
        ("shapes", &|| ops("[M, N]", "[N, M]".to_owned())),
        ("an op", &|| append("ops.yaml", RELU.trim_end())),
        ("the template", &|| append("assets/log_template.md", &format!("{number}"))),
        ("the summary's template", &|| project.write("assets/summary_template.md", format!("{number}\n"))),
    ];
    let (name, act) = kinds[chance.below(kinds.len())];
    let before = project.read("ops.yaml");
    act();
    // What would be no ops.yaml is no edit.
    if project.t2t("graph").code != 0 {
        project.write("ops.yaml", before);
    }
    let place = kernel.as_str();
    format!("{name} ({place})")
}

#[test]
fn in_a_random_history_nothing_becomes_stale_that_is_not_affected() {
    let mut chance = Chance(41);
    let project = committed(Project::new());
    project.kernel("softmax", "v1_baseline", "READS data/table.txt");
    project.kernel("gelu", "v2_tiling", "REJECT mismatch");
    let mut all = 0;
    let mut exact = 0;
    for round in 0..12 {
        project.build();
        git(&project, "tag -f built");
        let mut edits = Vec::new();
        for step in 0..=chance.below(3) {
            edits.push(edit(&project, &mut chance, 10 * round + step));
            if chance.below(2) == 0 {
                commit(&project);
            }
        }
        let stale = stale(&project);
        let found: BTreeSet<String> = affected(&project, "--since built --targets").into_iter().collect();
        let missed: Vec<_> = stale.difference(&found).collect();
        assert!(missed.is_empty(), "round {round}: {edits:?}: not affected, and yet stale: {missed:?}");
        let ops: BTreeSet<String> = affected(&project, "--since built").into_iter().collect();
        let of = |target: &String| target.split([':', '/']).next().unwrap().to_owned();
        let of_found: BTreeSet<String> = found.iter().filter(|target| *target != "summary").map(of).collect();
        assert_eq!(ops, of_found, "round {round}");
        all += 1;
        exact += usize::from(stale == found);
        commit(&project);
    }
    assert!(exact * 2 > all, "of {all} rounds {exact} were exact");
}
