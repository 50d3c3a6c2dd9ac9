//! Commands that look: status, explain, graph, log, ir, doctor; and what needs no workspace.
//!
//! It does not know which walls stand on the machine that runs it.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

use super::{GELU, SOFTMAX, rejecting};
use crate::environment;
use crate::project::{OPS, Project, RELU, copy_program};

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
fn sizes_that_the_interpreter_alone_measures_make_checks_stale() {
    let project = Project::built();
    project.edit("ops.yaml", "ops:\n", "profiles: {cpu: {bench: {sizes: {small: [16, 16], large: [24, 40]}}}}\nops:\n");
    let ran = project.t2t("explain softmax/v2_tiling:check").exits(0);
    let reasons = reasons(&ran.stdout);
    assert!(
        matches!(reasons[..], [reason] if reason.starts_with("  because `sizes` in ops.yaml changed: ")),
        "{reasons:?}"
    );
}

#[test]
fn explain_tells_of_the_compile_that_a_build_has() {
    let target = "softmax/v2_tiling:compile";
    let is_told = |project: &Project| {
        project.t2t(&format!("explain {target}")).exits(0).says(&format!("{target}: fresh\n  passed\n"));
    };
    is_told(&Project::built());
    let project = Project::new();
    project.t2t(&format!("build {target}")).exits(0);
    is_told(&project);
}

#[test]
fn explain_prints_what_a_result_that_stands_was_made_from() {
    let project = rejecting("READS data/table.txt");
    project.build();
    let ran = project
        .t2t("explain softmax/v2_tiling:check")
        .exits(0)
        .says("softmax/v2_tiling:check: fresh\n  passed\n  1 of 1 cases passed: `--format json` names each\n  note: code ")
        .says("\n  from a run of ");
    assert_eq!(reasons(&ran.stdout), [""; 0]);
    let ran = ran.says("    declaration.kwargs = {\"dim\":-1}\n").says("    toolchain.torch = 2.11.0\n");
    ran.says("    discovered.data/table.txt = absent\n");
    project.write("data/table.txt", "1");
    let ran = project.t2t("explain softmax/v2_tiling:check").exits(0);
    assert_eq!(reasons(&ran.stdout), ["  because data/table.txt appeared: absent → [DIGEST]"]);
    project.t2t("explain nothing").exits(2).says("error: ops.yaml has no op `nothing`");
    project.t2t("explain mismtch").exits(2).says("hint: did you mean the class `mismatch`?");
    project.t2t("explain softmx").exits(2).says("hint: did you mean `softmax`?");
    project.t2t("build v2_tiling").exits(2).says("hint: a variant is named with its op: `softmax/v2_tiling`");
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
    let has = "error: kernel has no sass for nvidia-h200\nhint: it has cubin, llir, ptx, ttgir, ttir\n";
    ir("gelu/v2_tiling --stage sass").exits(2).says(has);
    ir("gelu/v2_tiling --stage asm").exits(2).says("invalid value 'asm'");
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
    anywhere("completions bash").says("_clap_complete_t2t()");
    anywhere("man").says(".TH t2t 1");
    anywhere("--help").says("Usage: t2t [OPTIONS] <COMMAND>");
}

#[test]
fn a_shell_is_told_the_names_that_ops_yaml_has() {
    let project = Project::new();
    let asked = |words: &[&str]| {
        let mut command = project.command("");
        command.args(["--", "t2t"]).args(words).env("COMPLETE", "fish");
        project.run(&mut command).exits(0).stdout
    };
    assert_eq!(asked(&["build", "so"]), "softmax\n");
    assert_eq!(asked(&["explain", "gelu/"]), "gelu/v1_baseline\ngelu/v2_tiling\n");
    assert_eq!(asked(&["repro", "gelu/v2"]), "gelu/v2_tiling\n");
    assert_eq!(asked(&["status", "gelu/v2_tiling:c"]), "gelu/v2_tiling:compile\ngelu/v2_tiling:check\n");
    assert_eq!(asked(&["build", "--variant", "v1"]), "v1_baseline\n");
    assert_eq!(asked(&["log", "g"]), "gelu\n");
    assert!(asked(&["exp"]).starts_with("explain\t"), "commands as ever");
    project.write("ops.yaml", "ops: [");
    assert_eq!(asked(&["build", "so"]), "", "what cannot be read has no names");
}

#[test]
fn every_command_has_a_manual_page() {
    let project = Project::with("");
    project.t2t("man --out ../manual").exits(0);
    let help = project.t2t("--help").exits(0).stdout;
    let commands = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap().lines();
    let commands: Vec<&str> = commands.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(commands.len() > 25, "{commands:?}");
    for command in commands.into_iter().filter(|command| *command != "help") {
        let page = project.read(&format!("../manual/t2t-{command}.1"));
        assert!(page.contains(&format!(".TH t2t-{command} 1")), "{page}");
    }
    project.write("../manual/file", "");
    project.t2t("man --out ../manual/file").exits(2).says("cannot write to `");
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
