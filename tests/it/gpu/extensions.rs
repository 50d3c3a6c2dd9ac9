//! What a Python file has torch build, on a device: judged and measured as other variants are, with what torch computes in it seen.

use t2t_model::record::Outcome;

use super::{build, built, class, document};
use crate::real::adoption;
use crate::real::cuda;
use crate::real::extensions;
use crate::workspace::Workspace;

#[test]
#[ignore = "needs a CUDA device: tests/gpu.sh runs it"]
fn what_a_python_file_has_torch_build_is_judged_and_measured_and_what_torch_computes_in_it_is_seen() {
    if !cuda::has_nvcc() {
        return;
    }
    let workspace = adoption::copied("examples/cuda");
    let ran = built(build(&workspace, &["--device", "cuda", "--op", "gelu"]));
    assert_eq!(ran.code, Some(0), "{}", ran.told);
    assert_eq!(document(&workspace, "gelu/inline:check", "verdict")["verdict"], "passed", "{}", ran.told);
    println!("gelu/inline: {}", document(&workspace, "gelu/inline:bench", "bench"));
    workspace.edit("kernels/gelu/inline.py", "  return output;\n}", "  return at::gelu(input);\n}");
    let ran = built(build(&workspace, &["--device", "cuda", "gelu/inline:check"]));
    let record = workspace.record_on(class(), "gelu/inline:check").unwrap();
    assert_eq!(record.outcome, Outcome::Rejected { class: "torch-fallback".to_owned() }, "{}", ran.told);
}

#[test]
#[ignore = "needs a CUDA device: tests/gpu.sh runs it"]
fn a_cu_with_torchs_headers_is_judged_and_measured_in_both_passes_and_wrong_ones_are_rejected() {
    if !cuda::has_nvcc() {
        return;
    }
    let workspace = adoption::copied("examples/cuda");
    let ran = built(build(&workspace, &["--device", "cuda", "softmax/extension", "softmax_backward/extension"]));
    assert_eq!(ran.code, Some(0), "{}", ran.told);
    for op in ["softmax", "softmax_backward"] {
        let target = |phase: &str| format!("{op}/extension:{phase}");
        assert_eq!(document(&workspace, &target("check"), "verdict")["verdict"], "passed", "{}", ran.told);
        println!("{op}/extension: {}", document(&workspace, &target("bench"), "bench"));
    }
    let edits = [
        ("  return output;\n}", "  return at::softmax(input, dim);\n}", "torch-fallback"),
        ("(x == -INFINITY ? 0.0f : expf(x - next))", "0.5f * expf(x - next)", "mismatch"),
    ];
    for (from, to, expected) in edits {
        let workspace = adoption::copied("examples/cuda");
        workspace.edit("kernels/softmax/extension.cu", from, to);
        let ran = built(build(&workspace, &["--device", "cuda", "softmax/extension:check"]));
        let record = workspace.record_on(class(), "softmax/extension:check").unwrap();
        assert_eq!(record.outcome, Outcome::Rejected { class: expected.to_owned() }, "{}", ran.told);
    }
}

#[test]
#[ignore = "needs a CUDA device: tests/gpu.sh runs it"]
fn an_operator_that_a_library_registers_with_torch_is_the_candidates_own_and_what_it_calls_is_seen() {
    if !cuda::has_nvcc() {
        return;
    }
    let judged = |workspace: &Workspace| {
        let ran = built(build(workspace, &["--device", "cuda", "relu/library:check"]));
        (workspace.record_on(class(), "relu/library:check").unwrap().outcome, ran.told)
    };
    let workspace = extensions::library();
    let (outcome, told) = judged(&workspace);
    assert_eq!(outcome, Outcome::Passed, "{told}");
    workspace.edit("kernels/relu/library.cpp", "  return y;", "  return at::relu(input);");
    let (outcome, told) = judged(&workspace);
    assert_eq!(outcome, Outcome::Rejected { class: "torch-fallback".to_owned() }, "{told}");
}
