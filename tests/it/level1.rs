//! The workspace `tests/level1`: `KernelBench`'s level 1 declared for t2t, all 100 problems. Every op must be analyzed at the problem's sizes; one op of each
//! kind has an honest kernel and a broken one, which must get the verdicts that they deserve.

use std::fs;

use t2t_spec::Spec;

use crate::environment;
use crate::real::adoption;
use crate::whole::{self, PART};
use crate::workspace::Workspace;

/// The ops that have kernels, one of each kind, and the class of the broken one.
const KINDS: [(&str, &str); 15] = [
    ("matmul_square", "mismatch"),
    ("scale", "mismatch"),
    ("matmul_transposed_a", "mismatch"),
    ("batch_norm", "mismatch"),
    ("max_pool2d", "mismatch"),
    ("sum_dim", "mismatch"),
    ("conv2d_strided", "mismatch"),
    ("argmax_dim", "mismatch"),
    ("conv_transpose2d_strided", "mismatch"),
    ("conv2d_separable", "mismatch"),
    ("gelu_tanh", "nan"),
    ("cumprod", "mismatch"),
    ("cumsum_masked", "mismatch"),
    ("cross_entropy", "mismatch"),
    ("attention", "mismatch"),
];

#[test]
fn all_hundred_problems_are_analyzed_at_their_sizes() {
    let workspace = workspace();
    let ran = workspace.build(&["--phase", "analyze"]);
    assert_eq!(ran.code, Some(0), "{}", ran.told);
    for op in &spec().ops {
        let target = format!("{}:analyze", op.name);
        assert_eq!(workspace.outcome(&target), "passed", "{target}");
        let analysis = workspace.document(&target, "analysis");
        assert_eq!(analysis["unknown"].as_array().map(Vec::len), Some(0), "{target}: {}", analysis["unknown"]);
        assert!(analysis["sizes"]["large"]["flops"].is_u64(), "{target}: {}", analysis["sizes"]);
    }
}

#[test]
fn ninety_two_problems_are_a_function_of_torch_and_eight_a_reference() {
    let spec = spec();
    let (torch, references): (Vec<_>, Vec<_>) = spec.ops.iter().partition(|op| op.reference.is_none());
    assert_eq!((torch.len(), references.len()), (92, 8));
    let text = fs::read_to_string(environment::root().join("tests/level1/ops.yaml")).unwrap();
    let comments = text.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let numbers = comments.filter_map(|line| line.split_once("  # ")?.1.split('.').next()?.parse::<usize>().ok());
    assert!(numbers.eq(1..=100), "each problem once, in order");
}

#[test]
fn kernels_of_some_kinds_get_the_verdicts_that_they_deserve() {
    hold(PART);
}

#[test]
#[ignore = "takes minutes; tests/whole.json tells whether it has to run"]
fn whole_a_kernel_of_each_kind_gets_the_verdict_that_it_deserves() {
    hold(1);
    whole::LEVEL1.note(&environment::root());
}

/// Checks both kernels of every n-th kind, and holds each to what it deserves.
fn hold(every: usize) {
    let workspace = workspace();
    let kinds: Vec<(&str, &str)> = KINDS.into_iter().step_by(every).collect();
    let ops: Vec<&str> = kinds.iter().map(|(op, _)| *op).collect();
    let ran = workspace.build(&[&["--phase", "check"], &ops[..]].concat());
    assert_eq!(ran.code, Some(1), "{}", ran.told);
    for (op, class) in kinds {
        assert_eq!(workspace.outcome(&format!("{op}/honest:check")), "passed", "{op}\n{}", ran.told);
        assert_eq!(workspace.outcome(&format!("{op}/broken:check")), class, "{op}\n{}", ran.told);
    }
}

/// Returns a copy of `tests/level1`.
fn workspace() -> Workspace {
    adoption::copied("tests/level1")
}

fn spec() -> Spec {
    let text = fs::read(environment::root().join("tests/level1/ops.yaml")).unwrap();
    Spec::parse("ops.yaml", &text, None).unwrap_or_else(|problems| panic!("{}", t2t_model::problem::render(&problems)))
}
