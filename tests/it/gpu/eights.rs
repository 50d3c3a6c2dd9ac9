//! Inputs in float8 on a device: a product of them is judged and measured, and a wrong one is rejected.

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
