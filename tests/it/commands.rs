//! The command line: what is selected, what is printed, and the exit codes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::environment;
use crate::project::{OPS, Project, RELU, copy_program, file, install, until};

const SOFTMAX: &str =
    "softmax:analyze,select,log softmax/v1_baseline:compile,check,bench softmax/v2_tiling:compile,check,bench";
const GELU: &str = "gelu:analyze,select,log gelu/v1_baseline:compile,check,bench gelu/v2_tiling:compile,check,bench";
const NOTES: &str = "\
note: python 3.12.1 at [FOLDER]/python/bin/python ($T2T_PYTHON), torch 2.11.0, triton 3.6.0
note: no CUDA device is used: kernels run in Triton's interpreter on the CPU, at the sizes of the cpu profile
";

fn with_relu() -> Project {
    let project = Project::new();
    project.write("ops.yaml", format!("{OPS}{RELU}"));
    for variant in ["v1_baseline", "v2_tiling"] {
        project.kernel("relu", variant, "");
    }
    project
}

fn rejecting(mark: &str) -> Project {
    let project = Project::new();
    project.kernel("softmax", "v2_tiling", mark);
    project
}

// What is built.

#[test]
fn an_op_is_built_alone() {
    let project = Project::new();
    project.t2t("build --op gelu").exits(0).runs(GELU);
    project.t2t("build --op gelu softmax:analyze").exits(0).runs("softmax:analyze");
}

#[test]
fn a_phase_of_an_op_is_built_with_what_it_needs() {
    let project = Project::new();
    project
        .t2t("build softmax:check")
        .exits(0)
        .runs("softmax:analyze softmax/v1_baseline:check softmax/v2_tiling:check");
    let measured = "gelu:analyze gelu/v2_tiling:compile,check,bench";
    project.t2t("build gelu/v2_tiling:bench").exits(0).runs(measured);
}

#[test]
fn a_list_of_ops_is_built() {
    with_relu().t2t("build softmax,+gelu").exits(0).runs(&format!("{GELU} {SOFTMAX}"));
}

#[test]
fn a_list_of_all_ops_has_the_summary() {
    Project::new().t2t("build softmax,gelu").exits(0).runs(&format!("{GELU} {SOFTMAX} summary"));
}

#[test]
fn variants_and_a_phase_narrow_what_is_built() {
    let project = Project::new();
    project
        .t2t("build --variant v2_tiling --phase check")
        .exits(0)
        .runs("gelu:analyze gelu/v2_tiling:check softmax:analyze softmax/v2_tiling:check");
}

#[test]
fn names_that_nothing_has_are_bad_use_with_the_nearest_name() {
    let project = Project::new();
    for (arguments, message) in [
        ("build sofmax", "error: ops.yaml has no op `sofmax`\nhint: did you mean `softmax`?\n"),
        ("build --op mha", "error: ops.yaml has no op `mha`\nhint: the ops are `gelu`, `softmax`\n"),
        ("build --variant v7", "error: no op has a variant `v7`\nhint: the variants are `v1_baseline`, `v2_tiling`\n"),
        ("build softmax:chek", "error: there is no phase `chek`\nhint: did you mean `check`?\n"),
        (
            "build softmax:log --variant v2_tiling",
            "error: no action is both in the named targets and in the named variants and phase\nhint: drop `--variant` or `--phase`; `t2t graph` lists all actions\n",
        ),
    ] {
        let ran = project.t2t(arguments).exits(2).runs("");
        assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", message), "{arguments}");
    }
    project
        .t2t("build softmax/v9:check")
        .exits(2)
        .says("error: op `softmax` has no variant `v9`\nhint: its variants are `v1_baseline`, `v2_tiling`\n");
    project.t2t("build --nonsense").exits(2).says("error: unexpected argument '--nonsense' found");
    project.t2t("build --fail-fast --keep-going").exits(2).says("cannot be used with");
    project
        .t2t("build --device cuda")
        .exits(2)
        .says("error: this machine has no such CUDA device\nhint: `--device cpu` uses");
}

#[test]
fn what_is_named_is_forced_and_nothing_else() {
    let project = Project::built();
    project.t2t("build --force softmax/v2_tiling:compile").exits(0).runs("softmax/v2_tiling:compile");
    project.t2t("build --force softmax/v2_tiling:bench").exits(0).runs("softmax/v2_tiling:bench");
}

#[test]
fn a_dry_run_says_what_would_run_and_why_and_runs_nothing() {
    let project = Project::built();
    project.edit("ops.yaml", "dim: -1", "dim: 0");
    project.edit("kernels/softmax/v2_tiling.py", "+ 1", "+ 2");
    let ran = project.t2t("build --dry-run").exits(0).runs("");
    let expected = "\
softmax:analyze `kwargs` in ops.yaml changed: {\"dim\":-1} → {\"dim\":0}
softmax/v1_baseline:compile `kwargs` in ops.yaml changed: {\"dim\":-1} → {\"dim\":0}; `softmax:analyze` would run first
softmax/v1_baseline:check `kwargs` in ops.yaml changed: {\"dim\":-1} → {\"dim\":0}; `softmax:analyze` would run first
softmax/v1_baseline:bench `kwargs` in ops.yaml changed: {\"dim\":-1} → {\"dim\":0}; `softmax/v1_baseline:check` would run first
softmax/v2_tiling:compile `kwargs` in ops.yaml changed: {\"dim\":-1} → {\"dim\":0}; code of `kernels/softmax/v2_tiling.py` changed: [DIGEST] → [DIGEST]; `softmax:analyze` would run first
softmax/v2_tiling:check `kwargs` in ops.yaml changed: {\"dim\":-1} → {\"dim\":0}; code of `kernels/softmax/v2_tiling.py` changed: [DIGEST] → [DIGEST]; `softmax:analyze` would run first
softmax/v2_tiling:bench `kwargs` in ops.yaml changed: {\"dim\":-1} → {\"dim\":0}; code of `kernels/softmax/v2_tiling.py` changed: [DIGEST] → [DIGEST]; `softmax/v2_tiling:check` would run first
softmax:select `softmax/v1_baseline:bench`, `softmax/v1_baseline:check`, `softmax/v2_tiling:bench` and 1 more would run first
softmax:log `kwargs` in ops.yaml changed: {\"dim\":-1} → {\"dim\":0}; `softmax/v1_baseline:bench`, `softmax/v1_baseline:check`, `softmax/v1_baseline:compile` and 5 more would run first
summary `softmax/v1_baseline:bench`, `softmax/v1_baseline:check`, `softmax/v1_baseline:compile` and 5 more would run first
";
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str(), ran.starts), (expected, "", 0));
}

#[test]
fn a_dry_run_of_what_stands_says_nothing() {
    let ran = Project::built().t2t("build --dry-run").exits(0);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
}

// What is said.

#[test]
fn a_quiet_build_says_its_result_alone() {
    let project = Project::new();
    let ran = project.t2t("build -q").exits(0);
    assert_eq!(ran.stderr, "fresh 0, restored 0, ran 19 in [TIME]\n");
}

#[test]
fn a_build_says_what_it_did_line_by_line() {
    let project = Project::new();
    let ran = project.t2t("build --jobs 1 softmax:compile softmax:analyze").exits(0);
    let lines = "\
3 actions; lanes: cpu
analyze softmax … passed [TIME]
compile softmax/v1_baseline … passed [TIME]
compile softmax/v2_tiling … passed [TIME]
fresh 0, restored 0, ran 3 in [TIME]
";
    assert_eq!((ran.stderr, ran.stdout.as_str()), (format!("{NOTES}{lines}"), ""));
}

#[test]
fn a_rejection_is_told_in_full_and_again_when_it_stands() {
    let project = rejecting("REJECT mismatch");
    let message = "\
error: kernels/softmax/v2_tiling.py:4:1: 2 of 256 elements differ (mismatch)
  |
4 | MARK = \"REJECT mismatch\"
  | ^
  case small/float32/0 of softmax/v2_tiling:check
alone: t2t repro softmax/v2_tiling small/float32/0
";
    let ran = project.t2t("build -q").exits(1).says(message);
    assert!(ran.stderr.ends_with("fresh 0, restored 0, ran 18, skipped 1, rejected 1 in [TIME]\n"), "{}", ran.stderr);
    let ran = project.t2t("build -q").exits(1).runs("");
    assert_eq!(ran.stderr, format!("{message}fresh 18, restored 0, ran 0, skipped 1, rejected 1 in [TIME]\n"));
}

#[test]
fn the_build_ends_with_the_table_on_standard_output() {
    let ran = Project::built().build().exits(0);
    let words: Vec<Vec<&str>> = ran.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    let head = ["Op", "First", "right", "kernel", "Interpreter", "took", "Correct", "Note"];
    assert_eq!(words[0], head);
    for (row, op) in words[2..].iter().zip(["softmax", "gelu"]) {
        assert_eq!(*row, [op, "v1_baseline", "[TIME]", "2/2"]);
    }
    assert_eq!(words.len(), 4, "{}", ran.stdout);
}

#[test]
fn what_is_no_terminal_gets_no_escape_codes() {
    let project = rejecting("REJECT mismatch");
    for arguments in ["build", "build", "status", "explain softmax:check", "graph", "log softmax", "build sofmax"] {
        project.t2t(arguments).never_says("\u{1b}");
    }
}

/// Runs t2t on a terminal of its own and returns what it wrote there.
fn on_a_terminal(project: &Project, variables: &[(&str, &str)]) -> String {
    let t2t = project.command("build");
    let mut command = Command::new("python3");
    command.args(["-c", "import pty, sys; pty.spawn(sys.argv[1:])"]).arg(t2t.get_program()).args(t2t.get_args());
    command.current_dir(project.path("")).env_clear().stdin(Stdio::null());
    command.envs(t2t.get_envs().filter_map(|(name, value)| Some((name, value?)))).envs(variables.iter().copied());
    String::from_utf8_lossy(&command.output().unwrap().stdout).into_owned()
}

/// Returns whether the text has colors: `ESC [ … m`.
fn is_colored(text: &str) -> bool {
    let codes = text.split("\u{1b}[").skip(1);
    codes
        .into_iter()
        .any(|rest| rest.find(|c: char| c.is_ascii_alphabetic()).is_some_and(|end| rest[end..].starts_with('m')))
}

#[test]
fn a_terminal_gets_colors_unless_they_are_refused() {
    let text = on_a_terminal(&rejecting("REJECT mismatch"), &[("TERM", "xterm")]);
    assert!(is_colored(&text), "{text}");
    let text = on_a_terminal(&rejecting("REJECT mismatch"), &[("TERM", "xterm"), ("NO_COLOR", "1")]);
    assert!(text.contains("rejected") && !is_colored(&text), "{text}");
    let text = on_a_terminal(&rejecting("REJECT mismatch"), &[("TERM", "dumb")]);
    assert!(text.contains("rejected") && !text.contains('\u{1b}'), "{text}");
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let project = Project::built();
    let mut child = project.spawn("graph");
    drop(child.stdout.take());
    project.wait(child).exits(0).never_says("panicked");
}

// After a rejection.

#[test]
fn a_build_goes_on_after_a_rejection() {
    let project = rejecting("REJECT mismatch");
    let expected =
        format!("{GELU} {} summary", SOFTMAX.replace("v2_tiling:compile,check,bench", "v2_tiling:compile,check"));
    project.t2t("build --keep-going").exits(1).runs(&expected).says("bench softmax/v2_tiling … skipped");
}

#[test]
fn a_build_that_fails_fast_starts_nothing_after_a_rejection() {
    let project = Project::new();
    project.kernel("softmax", "v1_baseline", "REJECT mismatch");
    let ran = project.t2t("build --fail-fast --jobs 1").exits(1);
    assert_eq!(ran.actions, "softmax:analyze softmax/v1_baseline:compile,check");
    project.build().exits(1).says("gelu  ");
}

#[test]
fn what_torch_refuses_is_neither_measured_nor_checked() {
    let project = Project::new();
    project.edit("ops.yaml", "dim: -1", "refused: 1");
    let ran = project.build().exits(1).says("check softmax/v1_baseline … skipped, after softmax:analyze");
    let skipped = "softmax:analyze,select,log softmax/v1_baseline:compile softmax/v2_tiling:compile";
    assert_eq!(ran.actions, format!("{GELU} {skipped} summary"));
}

// Looking.

#[test]
fn status_counts_and_names_what_is_stale_rejected_and_skipped() {
    let project = rejecting("REJECT mismatch");
    project.build();
    project.edit("assets/log_template.md", "# ", "## ");
    project.edit("kernels/gelu/v1_baseline.py", "+ 1", "+ 2");
    let ran = project.t2t("status").exits(0);
    let expected = "\
rejected  softmax/v2_tiling:check  mismatch
skipped   softmax/v2_tiling:bench  after softmax/v2_tiling:check
stale     softmax:log gelu:log  template changed: [DIGEST] → [DIGEST]
stale     gelu/v1_baseline:compile,check,bench  code of `kernels/gelu/v1_baseline.py` changed: [DIGEST] → [DIGEST]
stale     gelu:select summary  its inputs are made anew
11 up to date, 7 stale, of 19 actions
";
    let hint = "hint: `t2t build --dry-run` lists each action, `t2t explain TARGET` all its reasons\n";
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str(), ran.starts), (expected, hint, 0));
    project.t2t("status gelu:analyze").exits(0).says("1 up to date, 0 stale, of 1 actions\n");
}

#[test]
fn a_cases_file_that_is_missing_rejects_the_checks_of_its_op() {
    let project = Project::new();
    project.edit("ops.yaml", "kwargs: {dim: -1}", "kwargs: {dim: -1}\n    cases: cases/gone.py");
    let ran = project.t2t("build softmax:check").exits(1);
    let ran = ran.says("cases/gone.py: no such file (source)\nhint: write the file, or take `cases` out of ops.yaml\n");
    ran.says("check softmax/v1_baseline … rejected (source)");
    project.t2t("build softmax:check").exits(1);
}

#[test]
fn a_log_that_is_stale_is_printed_with_a_warning() {
    let project = Project::built();
    project.t2t("log gelu").exits(0).never_says("stale");
    project.edit("kernels/gelu/v1_baseline.py", "+ 1", "+ 2");
    project
        .t2t("log gelu")
        .exits(0)
        .says("warning: `gelu:log` is stale: this is its last result\nhint: run `t2t build gelu`\n");
}

#[test]
fn status_names_a_kernel_file_that_no_variant_is() {
    let project = Project::built();
    project.write("kernels/gelu/v9_forgotten.py", "x = 1\n");
    project.t2t("status").exits(0).says("unlisted  kernels/gelu/v9_forgotten.py  no variant in ops.yaml names it\n");
}

#[test]
fn status_agrees_with_a_build_after_a_package_was_installed() {
    let project = Project::built();
    project.install(&[("torch", "2.11.0"), ("triton", "3.6.0"), ("numpy", "2.3.0")]);
    project.t2t("status").exits(0).says("19 up to date, 0 stale, of 19 actions");
    project.install(&[("torch", "2.11.0"), ("triton", "3.7.0")]);
    project.t2t("status softmax:compile").exits(0).says("triton version changed: 3.6.0 → 3.7.0\n");
}

fn reasons(text: &str) -> Vec<&str> {
    text.lines().filter(|line| line.starts_with("  because ")).collect()
}

#[test]
fn explain_names_exactly_what_changed_with_both_values() {
    let project = Project::built();
    project.edit("ops.yaml", "kwargs: {dim: -1}", "kwargs: {dim: -1}\n    check: {seeds: 3}");
    project.edit("kernels/softmax/v2_tiling.py", "+ 1", "+ 2");
    project.install(&[("torch", "2.11.0"), ("triton", "3.7.0")]);
    let ran = project.t2t("explain softmax/v2_tiling:check").exits(0);
    let expected = [
        "  because `seeds` in ops.yaml changed: 2 → 3",
        "  because code of `kernels/softmax/v2_tiling.py` changed: [DIGEST] → [DIGEST]",
        "  because triton version changed: 3.6.0 → 3.7.0",
    ];
    assert!(ran.stdout.starts_with("softmax/v2_tiling:check: stale\n"), "{}", ran.stdout);
    assert_eq!(reasons(&ran.stdout), expected);
}

#[test]
fn explain_prints_what_a_result_that_stands_was_made_from() {
    let project = rejecting("READS data/table.txt");
    project.build();
    let ran = project
        .t2t("explain softmax/v2_tiling:check")
        .exits(0)
        .says("softmax/v2_tiling:check: fresh\n  passed\n  from a run of ");
    assert_eq!(reasons(&ran.stdout), [""; 0]);
    let ran = ran.says("    declaration.kwargs = {\"dim\":-1}\n").says("    toolchain.torch = 2.11.0\n");
    ran.says("    discovered.data/table.txt = absent\n");
    project.write("data/table.txt", "1");
    let ran = project.t2t("explain softmax/v2_tiling:check").exits(0);
    assert_eq!(reasons(&ran.stdout), ["  because data/table.txt appeared: absent → [DIGEST]"]);
    project.t2t("explain nothing").exits(2).says("error: ops.yaml has no op `nothing`");
}

/// Three ops of the four variants that are the default.
fn three_ops() -> Project {
    Project::with(&format!("{}{RELU}", OPS.replace("  variants: [v1_baseline, v2_tiling]\n", "")))
}

#[test]
fn the_graph_as_json_has_fifteen_actions_an_op_and_the_summary_and_no_cycle() {
    let ran = three_ops().t2t("graph --format json").exits(0);
    let graph: Value = serde_json::from_str(&ran.stdout).unwrap();
    let actions = graph["actions"].as_array().unwrap();
    let targets: BTreeSet<&str> = actions.iter().map(|action| action["target"].as_str().unwrap()).collect();
    assert_eq!((actions.len(), targets.len()), (3 * 15 + 1, 3 * 15 + 1));
    let mut waits_for: BTreeMap<&str, BTreeSet<&str>> =
        targets.iter().map(|target| (*target, BTreeSet::new())).collect();
    for edge in graph["edges"].as_array().unwrap() {
        let (from, to) = (edge["from"].as_str().unwrap(), edge["to"].as_str().unwrap());
        assert!(targets.contains(from));
        waits_for.get_mut(to).expect("an edge's end is an action").insert(from);
    }
    while !waits_for.is_empty() {
        let free: Vec<&str> = waits_for.iter().filter(|(_, waits)| waits.is_empty()).map(|(name, _)| *name).collect();
        assert!(!free.is_empty(), "a cycle among {waits_for:?}");
        waits_for.retain(|name, _| !free.contains(name));
        for waits in waits_for.values_mut() {
            waits.retain(|name| !free.contains(name));
        }
    }
}

#[test]
fn the_graph_as_dot_and_mermaid_has_the_same_actions_and_edges() {
    let project = three_ops();
    let json = project.t2t("graph --format json").stdout;
    let graph: Value = serde_json::from_str(&json).unwrap();
    let edges = graph["edges"].as_array().unwrap().len();
    let dot = project.t2t("graph").exits(0).stdout;
    assert!(dot.starts_with("digraph t2t {\n") && dot.ends_with("}\n"), "{dot}");
    let arrows = |text: &str, arrow: &str| text.lines().filter(|line| line.contains(arrow)).count();
    assert_eq!(arrows(&dot, " -> "), edges);
    assert_eq!(dot.lines().filter(|line| line.ends_with("\";") && !line.contains(" -> ")).count(), 3 * 15 + 1);
    let mermaid = project.t2t("graph --format mermaid").exits(0).stdout;
    assert!(mermaid.starts_with("flowchart LR\n"), "{mermaid}");
    assert_eq!(arrows(&mermaid, "-->") + arrows(&mermaid, "-.->"), edges);
    assert_eq!(arrows(&mermaid, "[\""), 3 * 15 + 1);
}

#[test]
fn the_graph_of_one_target_has_what_it_needs() {
    let ran = Project::new().t2t("graph gelu/v2_tiling:bench").exits(0);
    let expected = "\
digraph t2t {
  rankdir=LR;
  node [shape=box];
  \"gelu:analyze\";
  \"gelu/v2_tiling:compile\";
  \"gelu/v2_tiling:check\";
  \"gelu/v2_tiling:bench\";
  \"gelu:analyze\" -> \"gelu/v2_tiling:compile\" [style=dashed];
  \"gelu:analyze\" -> \"gelu/v2_tiling:check\";
  \"gelu/v2_tiling:compile\" -> \"gelu/v2_tiling:bench\";
  \"gelu/v2_tiling:check\" -> \"gelu/v2_tiling:bench\";
}
";
    assert_eq!(ran.stdout, expected);
}

#[test]
fn log_prints_the_log_that_the_store_has() {
    let project = Project::new();
    project.t2t("log softmax").exits(2).says("error: `softmax` has no log yet\nhint: run `t2t build softmax`\n");
    project.build();
    let written = project.read("logs/softmax_log.md");
    project.remove("logs/softmax_log.md");
    assert_eq!(project.t2t("log softmax").exits(0).stdout, written);
    project.t2t("log sofmax").exits(2).says("hint: did you mean `softmax`?");
}

#[test]
fn ir_prints_a_stage_of_the_compiled_kernels() {
    let project = Project::new();
    let ir = |arguments: &str| project.t2t(&format!("ir {arguments}"));
    ir("gelu/v2_tiling")
        .exits(2)
        .says("error: `gelu/v2_tiling` is not compiled\nhint: run `t2t build gelu/v2_tiling:compile`\n");
    project.build();
    for stage in ["ttir", "ttgir", "llir", "ptx", "cubin"] {
        let ran = ir(&format!("gelu/v2_tiling --stage {stage}")).exits(0);
        assert_eq!(ran.stdout, format!("// {stage} of [DIGEST]\n"));
    }
    ir("gelu/v2_tiling --kernel other").exits(2).says("error: `gelu/v2_tiling` has no such kernel");
    ir("gelu").exits(2).says("error: `gelu` names no variant\nhint: write it as in `t2t ir softmax/v4_optimized`\n");
    ir("gelu/v9").exits(2).says("error: op `gelu` has no variant `v9`");
    ir("gelu/v2_tiling --stage sass").exits(2).says("invalid value 'sass'");
}

#[test]
fn clean_removes_logs_that_a_build_restores_and_with_cache_every_result() {
    let project = Project::built();
    project.write("logs/.gitkeep", "");
    project.t2t("clean").exits(0);
    assert_eq!(project.files("logs"), [project.path("logs/.gitkeep")]);
    project.build().exits(0).runs("");
    project.t2t("clean --cache").exits(0);
    assert_eq!(project.files("cache"), [project.path("cache/lock")]);
    project.build().exits(0).runs(&format!("{GELU} {SOFTMAX} summary"));
}

#[test]
fn what_needs_no_workspace_works_anywhere() {
    let project = Project::with("");
    let anywhere = |arguments: &str| project.run(project.command(arguments).current_dir(project.path("../"))).exits(0);
    let schema: Value = serde_json::from_str(&anywhere("schema").stdout).unwrap();
    assert!(schema["$defs"]["op"]["properties"]["torch"].is_object());
    let version = anywhere("--version").stdout;
    assert_eq!(version.split(' ').take(2).collect::<Vec<_>>(), ["t2t", env!("CARGO_PKG_VERSION")]);
    assert!(["(debug)\n", "(release)\n"].contains(&version.split(' ').nth(2).unwrap()), "{version}");
    anywhere("completions bash").says("_t2t()");
    anywhere("--help").says("Usage: t2t [OPTIONS] <COMMAND>");
}

#[test]
fn a_copy_under_another_name_calls_itself_t2t() {
    let project = Project::with("");
    let copy = project.path("../t2t-of-yesterday");
    copy_program(&environment::binary(), &copy);
    let usage = |arguments: &str| {
        let command = project.command(arguments);
        let output = Command::new(&copy).args(command.get_args()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(usage("--help").contains("Usage: t2t [OPTIONS] <COMMAND>"));
    assert!(usage("build --help").contains("Usage: t2t build "));
}

// Where t2t is run, and with what.

#[test]
fn a_subfolder_of_the_workspace_is_as_good_as_its_root() {
    let project = Project::new();
    let ran = project.run(project.command("build gelu").current_dir(project.path("kernels/softmax")));
    ran.exits(0).runs(GELU);
    assert!(project.exists("logs/gelu_log.md") && !project.exists("kernels/softmax/cache"));
}

#[test]
fn outside_of_a_workspace_there_is_nothing_to_build() {
    let project = Project::new();
    for arguments in ["build", "status", "graph", "clean", "explain softmax", "log softmax"] {
        let ran = project.run(project.command(arguments).current_dir(project.path("../"))).exits(2);
        let expected = "error: no ops.yaml in `[FOLDER]` or in a folder above it\nhint: run t2t in a workspace: a folder with an ops.yaml\n";
        assert_eq!(ran.stderr, expected, "{arguments}");
    }
}

#[test]
fn a_bad_ops_yaml_ends_every_command_that_reads_it() {
    let project = Project::built();
    project.edit("ops.yaml", "inputs: {input: [M, N]}\n    kwargs", "input: {input: [M, N]}\n    kwargs");
    for arguments in ["build", "build --dry-run", "status", "graph", "explain softmax"] {
        project.t2t(arguments).exits(2).says("error: ops.yaml:8:5: unknown key `input`");
    }
}

#[test]
fn the_interpreter_is_found_in_the_documented_order() {
    let project = Project::new();
    let option = project.path("../option");
    for folder in [&option, &project.path("../virtual"), &project.path(".venv")] {
        install(folder);
    }
    let build = |arguments: &str, unset: &[&str], expected: &str| {
        let mut command = project.command(&format!("build softmax:analyze {arguments}"));
        command.env("VIRTUAL_ENV", project.path("../virtual"));
        for name in unset {
            command.env_remove(name);
        }
        project
            .run(&mut command)
            .exits(0)
            .says(&format!("note: python 3.12.1 at {expected}, torch 2.11.0, triton 3.6.0\n"));
    };
    build(&format!("--python {}/bin/python", option.display()), &[], "[FOLDER]/option/bin/python (--python)");
    build("--python ../option/bin/python", &[], "[ROOT]/../option/bin/python (--python)");
    build("", &[], "[FOLDER]/python/bin/python ($T2T_PYTHON)");
    build("", &["T2T_PYTHON"], "[FOLDER]/virtual/bin/python ($VIRTUAL_ENV)");
    build("", &["T2T_PYTHON", "VIRTUAL_ENV"], "[ROOT]/.venv/bin/python (the workspace's .venv)");
}

#[test]
fn the_interpreter_beside_the_binary_is_the_last() {
    let project = Project::new();
    let folder = project.path("../beside");
    install(&folder);
    copy_program(&environment::binary(), &folder.join("bin/t2t"));
    let plain = project.command("build softmax:analyze");
    let mut command = Command::new(folder.join("bin/t2t"));
    command.args(plain.get_args()).current_dir(project.path("")).env_clear();
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?)))).env_remove("T2T_PYTHON");
    project.run(&mut command).exits(0).says("at [FOLDER]/beside/bin/python (beside t2t)");
}

#[test]
fn without_any_interpreter_a_build_is_refused_and_a_look_is_not() {
    let project = Project::built();
    let bare = |arguments: &str| project.run(project.command(arguments).env_remove("T2T_PYTHON"));
    let ran = bare("build").exits(2);
    let expected = "\
error: no Python was found: looked at --python, $T2T_PYTHON, $VIRTUAL_ENV, the workspace's .venv and t2t's own folder
hint: run `uv run t2t build`, or name one with `--python`
";
    assert_eq!(ran.stderr, expected);
    bare("graph").exits(0);
    bare("status").exits(0);
    bare("log softmax").exits(0);
}

#[test]
fn an_interpreter_that_is_not_there_is_bad_use() {
    let ran = Project::new().t2t("build --python /nowhere/python").exits(2);
    let expected = "\
error: cannot start `/nowhere/python`: No such file or directory (os error 2)
hint: name another interpreter with `--python` or `$T2T_PYTHON`
";
    assert_eq!(ran.stderr, expected);
}

#[test]
fn an_interpreter_without_torch_is_told() {
    let project = Project::new();
    project.install(&[("triton", "3.6.0")]);
    let ran = project.build().exits(3);
    let expected = "\
error: `[FOLDER]/python/bin/python` cannot import torch: ImportError: none
hint: run `uv sync`, or name another interpreter with `--python`
";
    assert_eq!(ran.stderr, expected);
}

#[test]
fn an_interpreter_that_is_no_interpreter_is_quoted() {
    let project = Project::new();
    let ran = project.t2t("build --python /bin/false").exits(3);
    assert!(ran.stderr.starts_with("error: `/bin/false` cannot serve: "), "{}", ran.stderr);
}

// Kernel files that cannot be used.

/// Builds with this text for a kernel, and again: both say so, reject the variant as `source` and build the others.
fn unusable(text: Option<&[u8]>, message: &str) {
    let project = Project::new();
    let path = file("softmax", "v2_tiling");
    match text {
        Some(text) => project.write(&path, text),
        None => project.remove(&path),
    }
    let others = SOFTMAX.replace(" softmax/v2_tiling:compile,check,bench", "");
    let ran = project.build().exits(1).runs(&format!("{GELU} {others} summary")).says(message);
    let ran =
        ran.says("check softmax/v2_tiling … rejected (source)").says("compile softmax/v2_tiling … rejected (source)");
    assert_eq!(ran.stderr.matches(message).count(), 1, "told once:\n{}", ran.stderr);
    project.build().exits(1).runs("").says(message);
    project.kernel("softmax", "v2_tiling", "");
    project.build().exits(0).runs("softmax:select,log softmax/v2_tiling:compile,check,bench summary");
}

#[test]
fn a_kernel_file_that_is_missing_rejects_its_variant() {
    let message = "error: kernels/softmax/v2_tiling.py: no such file\nhint: write the file, or take the variant out of ops.yaml\n";
    unusable(None, message);
}

#[test]
fn a_kernel_file_without_its_entry_rejects_its_variant_and_lists_what_it_has() {
    let message = "\
error: kernels/softmax/v2_tiling.py: no callable `triton_softmax`; the file has `softmax_kernel`, `launch`
hint: name the wrapper with `entry:` in ops.yaml
";
    unusable(Some(b"def softmax_kernel():\n    pass\n\n\ndef launch():\n    pass\n"), message);
}

#[test]
fn a_kernel_file_with_nothing_in_it_says_so() {
    unusable(
        Some(b""),
        "error: kernels/softmax/v2_tiling.py: no callable `triton_softmax`; the file has none at all\n",
    );
}

#[test]
fn a_kernel_file_that_does_not_parse_rejects_its_variant_at_its_place() {
    let message = "\
error: kernels/softmax/v2_tiling.py:2:12: expected an expression
  |
2 |     y = x +
  |            ^
";
    unusable(Some(b"def triton_softmax(x):\n    y = x +\n"), message);
}

#[test]
fn a_kernel_file_that_is_not_utf8_rejects_its_variant_at_its_place() {
    let message = "\
error: kernels/softmax/v2_tiling.py:2:6: not UTF-8: byte 0xff at offset 11
  |
2 | y = '\u{fffd}'
  |      ^
";
    unusable(Some(b"x = 1\ny = '\xff'\n"), message);
}

// Exit codes and other processes.

#[test]
fn exit_codes_describe_what_was_asked_for() {
    let project = rejecting("REJECT mismatch");
    project.kernel("gelu", "v2_tiling", "LOST");
    project.build().exits(3);
    project.t2t("build softmax").exits(1);
    project.t2t("build softmax/v1_baseline:bench").exits(0);
    project
        .t2t("build gelu/v2_tiling:check")
        .exits(3)
        .says("check gelu/v2_tiling … lost: the child was ended by SIGKILL");
    project.t2t("build nothing").exits(2);
}

fn signal(child: &Child, signal: Signal) {
    kill(Pid::from_raw(child.id().cast_signed()), signal).unwrap();
}

/// What is left of a build that was stopped in the last of its checks.
const REST: &str = "gelu:select,log gelu/v2_tiling:check,bench summary";

#[test]
fn ctrl_c_kills_what_runs_and_the_next_build_goes_on_from_there() {
    let project = Project::new();
    project.kernel("gelu", "v2_tiling", "HANG");
    let child = project.spawn("build --jobs 1");
    let pid = project.until_logged("pid ");
    signal(&child, Signal::SIGINT);
    project.wait(child).exits(130).never_says("panicked");
    assert!(!Path::new("/proc").join(&pid).exists(), "process {pid} is still there");
    assert_eq!(fs::read_dir(project.path("cache/scratch")).map_or(0, Iterator::count), 0);
    project.calm();
    project.t2t("build --jobs 1").exits(0).runs(REST);
}

#[test]
fn what_an_action_left_is_removed_when_the_action_is_kept() {
    let project = rejecting("WAITS");
    let running = project.spawn("build gelu:check softmax/v2_tiling:check --jobs 2");
    project.until_logged("softmax/v2_tiling:check candidate:run");
    project.until_logged("gelu/v2_tiling:check judge:judge");
    let scratch = project.path(&format!("cache/scratch/{}", running.id()));
    // Only that of the check that waits is left, though nothing has ended the build.
    until(|| (fs::read_dir(&scratch).unwrap().count() == 1).then_some(()));
    project.calm();
    project.wait(running).exits(0);
    assert_eq!(fs::read_dir(project.path("cache/scratch")).unwrap().count(), 0);
}

#[test]
fn a_build_that_is_killed_leaves_a_store_from_which_the_next_goes_on() {
    let project = Project::new();
    project.kernel("gelu", "v2_tiling", "WAITS");
    let child = project.spawn("build --jobs 1");
    project.until_logged("gelu/v2_tiling:check candidate:run");
    signal(&child, Signal::SIGKILL);
    project.wait(child).exits(-1);
    project.calm();
    project.t2t("build --jobs 1").exits(0).runs(REST).never_says("warning");
}

#[test]
fn a_second_build_waits_for_the_first_and_says_so_and_then_has_nothing_to_do() {
    let project = Project::new();
    project.kernel("gelu", "v2_tiling", "WAITS");
    let first = project.spawn("build");
    project.until_logged("gelu/v2_tiling:check candidate:run");
    let mut second = project.spawn("build");
    let mut stderr = BufReader::new(second.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    let head = format!("waiting: the workspace's lock, cache/lock, held by pid {}, `", first.id());
    assert!(line.starts_with(&head) && line.contains("t2t build") && line.contains("`, since "), "{line}");
    project.t2t("status gelu:analyze").exits(0).says("1 up to date");
    project.calm();
    project.wait(first).exits(0);
    stderr.read_to_string(&mut line).unwrap();
    project.wait(second).exits(0);
    assert!(line.contains("fresh 19, restored 0, ran 0"), "{line}");
}

#[test]
fn a_build_that_waits_for_another_can_be_stopped() {
    let project = Project::new();
    project.kernel("gelu", "v2_tiling", "WAITS");
    let first = project.spawn("build");
    project.until_logged("gelu/v2_tiling:check candidate:run");
    let mut second = project.spawn("build");
    let mut line = String::new();
    BufReader::new(second.stderr.take().unwrap()).read_line(&mut line).unwrap();
    signal(&second, Signal::SIGINT);
    assert_eq!(until(|| second.try_wait().unwrap()).code(), Some(130));
    project.calm();
    project.wait(first).exits(0);
}

#[test]
fn a_log_template_that_is_not_there_is_told_before_anything_runs() {
    let project = Project::new();
    project.edit("ops.yaml", "defaults:", "log: {template: assets/mine.md}\ndefaults:");
    let ran = project.build().exits(2).runs("");
    assert_eq!(
        ran.stderr,
        "error: ops.yaml: the log template of `softmax`, `assets/mine.md`, cannot be read\n\
         hint: write the file, or take `log: {template: …}` out of ops.yaml\n"
    );
    project.write("assets/mine.md", "# {{ op }}\n");
    project.build().exits(0);
}

// What holds kernel code in.

#[test]
fn doctor_says_which_walls_stand_and_what_that_leaves_open() {
    // The interpreter of these tests tells of none.
    Project::new()
        .t2t("doctor")
        .exits(0)
        .says("sandbox: none (no Landlock), seccomp (sockets, io_uring, other processes, mounts, leases, watches), no capabilities, no namespaces")
        .says("hint: this kernel has no Landlock: kernel code can read what you can")
        .says("gives its children no namespaces: kernel code can change modes and times of your files");
}

// Output that is lost.

#[test]
fn what_cannot_be_printed_is_exit_code_3_with_one_line_and_a_reader_that_has_gone_is_no_error() {
    let project = Project::built();
    let commands = [
        "build",
        "status",
        "graph",
        "log softmax",
        "explain softmax",
        "schema",
        "cache stats",
        "cache verify",
        "doctor",
        "completions bash",
        "cache gc --dry-run",
    ];
    for arguments in commands {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = project.command(arguments).stdout(full).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        let errors: Vec<&str> = told.lines().filter(|line| line.starts_with("error: ")).collect();
        assert_eq!(
            errors,
            ["error: cannot write to standard output: No space left on device (os error 28)"],
            "{arguments}: {told}"
        );
        assert_eq!(output.status.code(), Some(3), "{arguments}");
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = project.command(arguments).stdout(writer).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
