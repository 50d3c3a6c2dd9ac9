//! `t2t improve` with torch, in Triton's interpreter: a scripted author whose kernels are slower, wrong and faster.

use serde_json::Value;

use crate::project::program;
use crate::workspace::Workspace;

const OPS: &str = "version: 1
generators:
  agent: {command: [./authors/agent]}
defaults:
  check: {seeds: 1}
profiles:
  cpu: {bench: {sizes: {small: [8, 8], medium: [32, 32]}, runs: 1, warmup_ms: 0, rep_ms: 1}}
ops:
  add:
    torch: torch.add
    inputs: {input: [M, N], other: [M, N]}
    kwargs: {alpha: 0.5}
    variants: [right]
";

const AUTHOR: &str = r#"#!/bin/sh
cp "$(dirname "$0")/$(sed -n 's/^  "attempt": \([0-9]*\),$/\1/p' request.json).py" "$T2T_FILE"
"#;

const FILE: &str = "kernels/add/right.py";

/// Makes a workspace whose kernel waits a moment in each call, with an author of three kernels.
fn workspace() -> Workspace {
    let workspace = Workspace::with_zygote(OPS);
    workspace.copy("tests/bad_kernels/right.py", FILE);
    let right = workspace.read(FILE);
    let waiting = |seconds: &str| {
        let right = right.replace("import torch\n", "import time\n\nimport torch\n");
        right.replace("    return out", &format!("    time.sleep({seconds})\n    return out"))
    };
    workspace.write(FILE, waiting("0.01"));
    workspace.write("authors/1.py", waiting("0.04"));
    workspace.write("authors/2.py", right.replace("alpha * y", "y"));
    workspace.write("authors/3.py", right);
    program(&workspace.path("authors/agent"), AUTHOR);
    workspace
}

#[test]
fn candidates_are_checked_and_screened_and_nothing_is_replaced_on_the_interpreter() {
    let workspace = workspace();
    let before = workspace.read(FILE);
    let arguments = ["improve", "add/right", "--generator", "agent", "--rounds", "3", "--overwrite", "--device", "cpu"];
    let ran = workspace.run(&arguments);
    assert_eq!(ran.code, Some(0), "{}", ran.told);
    assert_eq!(workspace.read(FILE), before);
    let kept: Value = serde_json::from_str(&workspace.read("assets/rounds/add.json")).unwrap();
    let rounds = kept["variants"]["right"].as_array().unwrap();
    let ends: Vec<&str> = rounds.iter().map(|round| round["end"].as_str().unwrap()).collect();
    assert_eq!(ends, ["slower", "rejected", "better"], "{}", ran.told);
    assert_eq!(rounds[1]["cause"]["phase"], "check");
    for (round, ratio) in [(0, 2.0..6.0), (2, 0.0..0.9)] {
        let screened = &rounds[round]["screened"];
        assert!(ratio.contains(&screened["ratio"].as_f64().unwrap()), "{screened}");
        assert!(screened["pairs"].as_u64().unwrap() <= 10 && screened["device_s"].as_f64().unwrap() > 0.0);
    }
    assert!(workspace.read("cache/improve/add/right.py").contains("add_kernel"));
    // The candidate's check stands for whoever puts the kernel in its place.
    workspace.write(FILE, workspace.read("cache/improve/add/right.py"));
    let built = workspace.build(&["add/right:check"]);
    assert!(built.told.contains("restored 2") || built.told.contains("fresh"), "{}", built.told);
    let log = workspace.run(&["build", "--device", "cpu"]);
    assert_eq!(log.code, Some(0), "{}", log.told);
    assert!(workspace.read("logs/add_log.md").contains("### right: rounds of improvement"));
}
