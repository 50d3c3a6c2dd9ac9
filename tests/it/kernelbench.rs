//! `t2t import kernelbench`: the problems in `tests/kernelbench` become ops, whose kernels get the verdicts that they deserve.

use std::fs;

use crate::environment;
use crate::workspace::{Ran, Workspace};

/// The ops of the problems that can be imported.
const OPS: [&str; 6] =
    ["p1_swish", "p2_linear_scaled_clamp", "p3_matmul", "p4_conv_norm_tanh", "p5_mlp", "p8_batch_norm"];

/// Returns a workspace whose ops.yaml has a comment, with the problems in a folder of it.
fn workspace() -> Workspace {
    let workspace =
        Workspace::with_zygote("# ours\nversion: 1\nops:\n  relu: {torch: relu, inputs: {input: [M, N]}} # kept\n");
    for file in fs::read_dir(environment::root().join("tests/kernelbench/problems")).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        workspace.copy(&format!("tests/kernelbench/problems/{name}"), &format!("bench/{name}"));
    }
    workspace.write("bench/6_broken.py", "class Model:\n    def forward(self, x:\n        return x\n");
    workspace
}

fn import(workspace: &Workspace, what: &str) -> Ran {
    workspace.run(&["import", "kernelbench", what])
}

/// Asserts that nothing was written.
fn is_untouched(workspace: &Workspace) {
    assert!(!workspace.path("references").exists());
    assert_eq!(workspace.read("ops.yaml").lines().count(), 4);
}

#[test]
fn a_folder_becomes_ops_that_are_analyzed_and_the_others_are_named() {
    let workspace = workspace();
    let ran = import(&workspace, "bench");
    assert_eq!(ran.code, Some(0), "{}", ran.told);
    for said in [
        "skipped bench/6_broken.py:2: it is no Python",
        "skipped bench/7_numbers.py: `factor` of `get_inputs` is no tensor but float",
        "triton_p2_linear_scaled_clamp(x, linear_weight, linear_bias)",
        "skipped bench/9_dropout.py: its `forward` draws random numbers",
        "imported 6, skipped 3",
    ] {
        assert!(ran.told.contains(said), "no `{said}` in\n{}", ran.told);
    }
    let ops = workspace.read("ops.yaml");
    assert!(
        ops.starts_with("# ours\nversion: 1\nops:\n  relu: {torch: relu, inputs: {input: [M, N]}} # kept\n"),
        "{ops}"
    );
    assert!(ops.contains("    mutates: [bn_running_mean, bn_running_var]\n"), "{ops}");
    assert!(ops.contains("large: {batch_size: 128, in_features: 1024, out_features: 512}"), "{ops}");
    assert!(ops.contains("B: {shape: [K, 2*M]") || ops.contains("B: {shape: [K, \"2*M\"]"), "{ops}");
    assert_eq!(workspace.read("references/p5_mlp/problem.py"), workspace.read("bench/5_mlp.py"));
    let targets = OPS.map(|op| format!("{op}:analyze"));
    let ran = workspace.build(&targets.each_ref().map(String::as_str));
    assert_eq!(ran.code, Some(0), "{}\n{ops}", ran.told);
    for target in &targets {
        assert_eq!(workspace.outcome(target), "passed", "{target}\n{}", ran.told);
    }
}

#[test]
fn kernels_of_imported_ops_get_the_verdicts_that_they_deserve() {
    let workspace = workspace();
    for (file, op) in [("1_Swish.py", OPS[0]), ("2_linear_scaled_clamp.py", OPS[1])] {
        let ran = import(&workspace, &format!("bench/{file}"));
        assert_eq!(ran.code, Some(0), "{}", ran.told);
        workspace.copy(&format!("tests/kernelbench/kernels/{op}.py"), &format!("kernels/{op}/v1_baseline.py"));
    }
    let check = |expected: i32| {
        let ran = workspace.build(&["p1_swish:check", "p2_linear_scaled_clamp:check"]);
        assert_eq!(ran.code, Some(expected), "{}\n{}", ran.told, workspace.read("ops.yaml"));
    };
    check(0);
    let evidence = workspace.document("p2_linear_scaled_clamp/v1_baseline:check", "evidence");
    let names: Vec<&str> =
        evidence["cases"].as_array().unwrap().iter().filter_map(|case| case["name"].as_str()).collect();
    assert!(names.iter().any(|name| name.starts_with("hook/problem-")), "{names:?}");
    // The bias is a weight of the module: a kernel that leaves it out is wrong.
    workspace.edit("kernels/p2_linear_scaled_clamp/v1_baseline.py", "(sums + bias[None, :])", "sums");
    check(1);
    assert_eq!(workspace.outcome("p1_swish/v1_baseline:check"), "passed");
    assert_eq!(workspace.outcome("p2_linear_scaled_clamp/v1_baseline:check"), "mismatch");
}

#[test]
fn what_cannot_be_imported_leaves_nothing() {
    let workspace = workspace();
    for (file, said) in [
        ("bench/6_broken.py", "bench/6_broken.py:2: it is no Python"),
        ("bench/7_numbers.py", "`factor` of `get_inputs` is no tensor but float"),
        ("bench/none.py", "bench/none.py: "),
    ] {
        let ran = import(&workspace, file);
        assert_eq!(ran.code, Some(2), "{}", ran.told);
        assert!(ran.told.contains(said) && ran.told.contains("\nhint: "), "{}", ran.told);
        is_untouched(&workspace);
    }
    let swish = workspace.read("bench/1_Swish.py");
    workspace.write("bench/fixed.py", swish.replace("return x *", "return x / dim *"));
    let ran = import(&workspace, "bench/fixed.py");
    assert_eq!(ran.code, Some(2), "{}", ran.told);
    assert!(ran.told.contains("bench/fixed.py: its code uses the constant `dim`"), "{}", ran.told);
    is_untouched(&workspace);
    workspace.write(
        "endless/1.py",
        workspace.read("bench/1_Swish.py").replace("return x *", "import os; os._exit(0); return x *"),
    );
    let ran = import(&workspace, "endless");
    assert_eq!(ran.code, Some(2), "{}", ran.told);
    assert!(ran.told.contains("endless/1.py: its process ended without an answer"), "{}", ran.told);
    is_untouched(&workspace);
}

#[test]
fn an_op_that_is_there_is_not_replaced() {
    let workspace = workspace();
    assert_eq!(import(&workspace, "bench/1_Swish.py").code, Some(0));
    let before = workspace.read("ops.yaml");
    let ran = import(&workspace, "bench");
    assert_eq!(ran.code, Some(2), "{}", ran.told);
    assert!(ran.told.contains("bench/1_Swish.py: ops.yaml declares `p1_swish` already"), "{}", ran.told);
    assert_eq!(workspace.read("ops.yaml"), before);
    assert!(!workspace.path("references/p3_matmul").exists());
}
