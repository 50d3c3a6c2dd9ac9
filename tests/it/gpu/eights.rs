//! Inputs and results in float8 on a device: right kernels are judged and measured, and wrong ones are rejected.

use super::{build, built, document};
use crate::workspace::Workspace;

const OP: &str = "gemm_fp8_n24_k64";

#[test]
#[ignore = "needs a CUDA device: tests/gpu.sh runs it"]
fn a_product_in_float8_is_judged_and_measured_and_a_wrong_one_is_rejected() {
    let workspace = Workspace::new("version: 1\nops: {}\n");
    workspace.copy(&format!("tests/flashinfer/definitions/{OP}.json"), "defs/gemm.json");
    let ran = workspace.run(&["import", "flashinfer", "defs/gemm.json", "--axis", "M=17,4096"]);
    assert_eq!(ran.code, Some(0), "{}", ran.told);
    let kernel = format!("kernels/{OP}/v1_baseline.py");
    workspace.copy(&format!("tests/flashinfer/kernels/{OP}.py"), &kernel);
    let ran = built(build(&workspace, &[]));
    assert_eq!(ran.code, Some(0), "{}", ran.told);
    let bench = document(&workspace, &format!("{OP}/v1_baseline:bench"), "bench");
    assert!(bench["final_ms"].as_f64().unwrap() > 0.0, "{bench}");
    workspace.edit(&kernel, "columns * groups + group", "columns * groups");
    let ran = built(build(&workspace, &[&format!("{OP}:check")]));
    assert_eq!(ran.code, Some(1), "{}", ran.told);
    let evidence = document(&workspace, &format!("{OP}/v1_baseline:check"), "evidence");
    assert_eq!(evidence["failure"]["class"], "mismatch", "{}", evidence["failure"]);
}

const QUANTIZED: &str = r"import torch


def quantized(x):
    scale = x.abs().amax(-1, keepdim=True).clamp(min=1e-4) / 448.0
    return (x / scale).to(torch.float8_e4m3fn), scale
";

const KERNEL: &str = r"import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, scale_ptr, N, stride_m, stride_n, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    inside = cols < N
    x = tl.load(x_ptr + row * stride_m + cols * stride_n, mask=inside, other=0.0)
    # NaN is the largest, as torch has it.
    most = tl.reduce(tl.abs(x), 0, larger)
    scale = tl.div_rn(tl.maximum(most, 1e-4, propagate_nan=tl.PropagateNan.ALL), 448.0)
    tl.store(scale_ptr + row, scale)
    tl.store(out_ptr + row * N + cols, tl.div_rn(x, scale).to(tl.float8e4nv), mask=inside)


@triton.jit
def larger(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


def quantized(x):
    M, N = x.shape
    out = torch.empty((M, N), dtype=torch.float8_e4m3fn, device=x.device)
    scale = torch.empty((M, 1), dtype=torch.float32, device=x.device)
    if M:
        kernel[(M,)](x, out, scale, N, *x.stride(), BLOCK=triton.next_power_of_2(N))
    return out, scale
";

#[test]
#[ignore = "needs a CUDA device: tests/gpu.sh runs it"]
fn results_in_float8_are_judged_by_steps_and_a_wrong_one_is_rejected() {
    let workspace = Workspace::new(
        "version: 1
ops:
  quantized:
    reference: ref.py::quantized
    inputs: {x: [M, N]}
    entry: quantized
    variants: [v1]
    check: {edges: {empty: {off: a row without a largest}, special: {off: what torch makes of NaN in float8 is not said}}}
    bench: {sizes: {small: [64, 96], large: [4096, 1024]}}
",
    );
    workspace.write("ref.py", QUANTIZED);
    let file = "kernels/quantized/v1.py";
    workspace.write(file, KERNEL);
    let ran = built(build(&workspace, &[]));
    assert_eq!(ran.code, Some(0), "{}", ran.told);
    let right = "tl.div_rn(x, scale).to(tl.float8e4nv)";
    let scaled = "(tl.div_rn(x, scale) * 0.97).to(tl.float8e4nv)";
    let flushed = "tl.where(tl.abs(x) < 8 * scale, 0.0, tl.div_rn(x, scale)).to(tl.float8e4nv)";
    for wrong in [scaled, flushed] {
        workspace.write(file, KERNEL.replace(right, wrong));
        let ran = built(build(&workspace, &["quantized:check"]));
        assert_eq!(ran.code, Some(1), "{wrong}: {}", ran.told);
        let evidence = document(&workspace, "quantized/v1:check", "evidence");
        assert_eq!(evidence["failure"]["class"], "mismatch", "{wrong}: {}", evidence["failure"]);
    }
}
