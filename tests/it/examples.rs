//! The workspaces of `examples/`, each built from a copy on the interpreter: a stranger's first build passes, and what its README says of a wrong edit holds.

use crate::environment;
use crate::real::adoption::copied;
use crate::whole;
use crate::workspace::Workspace;

/// Builds all of an example, and expects that these passed.
fn built(name: &str, targets: &[&str]) -> Workspace {
    built_of(name, &[], targets)
}

/// Builds `ops` of an example, or all of it.
fn built_of(name: &str, ops: &[&str], targets: &[&str]) -> Workspace {
    let workspace = copied(&format!("examples/{name}"));
    let ran = workspace.build(ops);
    assert_eq!(ran.code, Some(0), "{}", ran.told);
    for target in targets {
        assert_eq!(workspace.outcome(target), "passed", "{target}\n{}", ran.told);
    }
    workspace
}

/// Edits a kernel as the README proposes, and expects its check to reject it.
fn edit_is_rejected(workspace: &Workspace, file: &str, (from, to): (&str, &str), target: &str) {
    workspace.edit(file, from, to);
    let ran = workspace.build(&[target]);
    assert_eq!(ran.code, Some(1), "{}", ran.told);
    assert_eq!(workspace.outcome(target), "mismatch", "{}", ran.told);
}

#[test]
fn the_smallest_workspace_builds_and_its_readme_names_a_rejection() {
    let check = "relu/v1_baseline:check";
    let workspace = built("minimal", &["relu:analyze", "relu/v1_baseline:compile", check, "relu/v1_baseline:bench"]);
    assert!(workspace.read("logs/relu_log.md").contains("v1_baseline"));
    edit_is_rejected(&workspace, "kernels/relu/v1_baseline.py", ("x < 0", "x > 0"), check);
}

#[test]
fn an_op_with_a_reference_and_two_outputs_builds_and_its_readme_names_a_rejection() {
    let check = "row_stats/one_pass:check";
    let workspace =
        built("reference", &["row_stats:analyze", "row_stats/one_pass:compile", check, "row_stats/one_pass:bench"]);
    let edit = ("tl.where(mask, tl.abs(x - mean), 0.0)", "tl.abs(x - mean)");
    edit_is_rejected(&workspace, "kernels/row_stats/one_pass.py", edit, check);
}

#[test]
fn an_adopted_kernel_builds_with_its_gradient_and_its_readme_names_a_rejection() {
    let check = "silu/fused:check";
    let workspace = built("adopted", &["silu:analyze", "silu/fused:compile", check, "silu/fused:bench"]);
    let verdict = workspace.document(check, "verdict");
    for case in ["hook/large", "hook/larger"] {
        assert_eq!(verdict["cases"][case], "passed", "{verdict}");
    }
    edit_is_rejected(&workspace, "lib/activations.py", ("x * s * (1.0 - s)", "x * s"), check);
    let failure = &workspace.document(check, "evidence")["failure"]["message"];
    assert!(failure.as_str().unwrap().starts_with("gradient of `input`: "), "{failure}");
}

/// Expects a bench to have judged all sizes and to say which passes it measured.
fn measures(workspace: &Workspace, target: &str, passes: &str) {
    let bench = workspace.document(target, "bench");
    assert_eq!(bench["protocol"]["passes"], passes, "{bench}");
    for size in ["small", "medium", "large"] {
        assert_eq!(bench["judged"][size]["verdict"], "passed", "{bench}");
    }
}

#[test]
fn kernels_with_gradients_build_as_an_operator_and_as_an_autograd_function_and_their_readme_names_a_rejection() {
    let softmax = "softmax/rows:check";
    let workspace = built_of("gradients", &["softmax"], &[softmax, "softmax/rows:bench"]);
    measures(&workspace, "softmax/rows:bench", "both");
    let repro = workspace.command(&["repro", "softmax/rows"]).output().unwrap();
    let said = String::from_utf8_lossy(&repro.stdout);
    assert!(said.starts_with("as near to torch's as a check asks"), "{repro:?}");
    let edit = ("y * (dy - tl.sum(dy * y, axis=0))", "y * dy");
    edit_is_rejected(&workspace, "kernels/softmax/rows.py", edit, softmax);
    let failure = &workspace.document(softmax, "evidence")["failure"]["message"];
    assert!(failure.as_str().unwrap().starts_with("gradient of `input`: "), "{failure}");
    // It runs alone, too.
    let repro = workspace.command(&["repro", "softmax/rows"]).output().unwrap();
    let said = String::from_utf8_lossy(&repro.stdout);
    assert!(said.starts_with("gradient of `input` differs from torch's"), "{repro:?}");
}

#[test]
#[ignore = "takes most of a minute; tests/whole.json tells whether it has to run"]
fn whole_every_kernel_with_a_gradient_passes() {
    let workspace = built(
        "gradients",
        &[
            "softmax/rows:check",
            "layernorm/partial_sums:check",
            "layernorm/partial_sums:bench",
            "gelu/fused:check",
            "add/summed:check",
            "mha/flash:check",
            "matmul/products:check",
        ],
    );
    measures(&workspace, "layernorm/partial_sums:bench", "backward");
    assert!(workspace.read("logs/layernorm_log.md").contains("timed: the backward pass alone"));
    whole::GRADIENTS.note(&environment::root());
}
