//! `t2t import flashinfer`: the definitions in `tests/flashinfer` become ops, whose kernels get the verdicts that they deserve; what cannot be imported leaves nothing.

use serde_json::{Value, json};

use crate::workspace::{Ran, Workspace};

const GEMM: &str = "gemm_n24_k40";
const EIGHTS: &str = "gemm_fp8_n24_k64";
const NORM: &str = "rmsnorm_h96";
const DECODE: &str = "gqa_ragged_decode_h4_kv2_d16";
const PAGED: &str = "gqa_paged_decode_h4_kv2_d16_ps1";

const OPS: &str =
    "# ours\nversion: 1\nops:\n  relu: {torch: relu, inputs: {input: [M, N]}, variants: [v1_baseline]} # kept\n";

/// Returns a workspace whose ops.yaml has a comment, with the definitions in a folder of it.
fn workspace() -> Workspace {
    let workspace = Workspace::with_zygote(OPS);
    for name in [GEMM, EIGHTS, NORM, DECODE, PAGED] {
        workspace.copy(&format!("tests/flashinfer/definitions/{name}.json"), &format!("defs/{name}.json"));
    }
    workspace.copy("tests/flashinfer/workloads/rmsnorm_h96.jsonl", "rmsnorm.jsonl");
    workspace
}

/// Imports a definition of the folder, with further arguments that are parted by spaces.
fn import(workspace: &Workspace, name: &str, more: &str) -> Ran {
    let file = format!("defs/{name}.json");
    workspace.run(&[&["import", "flashinfer", &file][..], &more.split_whitespace().collect::<Vec<_>>()].concat())
}

/// Imports a definition, and puts the kernel for it in its place.
fn with_kernel(workspace: &Workspace, name: &str, more: &str) {
    let ran = import(workspace, name, more);
    assert_eq!(ran.code, Some(0), "{}", ran.told);
    workspace.copy(&format!("tests/flashinfer/kernels/{name}.py"), &format!("kernels/{name}/v1_baseline.py"));
}

/// Expects that the import is bad use for this reason, with a hint, and that nothing was written.
#[track_caller]
fn refused(workspace: &Workspace, name: &str, more: &str, said: &str) {
    let ran = import(workspace, name, more);
    assert_eq!(ran.code, Some(2), "{}", ran.told);
    assert!(ran.told.contains(said) && ran.told.contains("\nhint: "), "no `{said}` in\n{}", ran.told);
    assert!(!workspace.path("references").exists());
    assert_eq!(workspace.read("ops.yaml"), OPS);
}

/// Writes another definition: that of the norm with `to` in the place of `from`.
fn changed(workspace: &Workspace, from: &str, to: &str) {
    let text = workspace.read(&format!("defs/{NORM}.json"));
    assert!(text.contains(from), "no `{from}` in\n{text}");
    workspace.write("defs/changed.json", text.replacen(from, to, 1));
}

/// Writes another definition: that of the norm with this reference.
fn with_reference(workspace: &Workspace, reference: &str) {
    let text = workspace.read(&format!("defs/{NORM}.json"));
    let line = text.lines().find(|line| line.contains("\"reference\":")).unwrap();
    workspace.write("defs/changed.json", text.replace(line, &format!("  \"reference\": {}", json!(reference))));
}

#[test]
fn kernels_of_an_imported_product_get_the_verdicts_that_they_deserve() {
    let workspace = workspace();
    with_kernel(&workspace, GEMM, "--axis M=17,64");
    let ops = workspace.read("ops.yaml");
    assert!(ops.starts_with(OPS), "{ops}");
    for line in [
        "      A: {shape: [M, 40]}\n      B: {shape: [24, 40]}\n",
        "    outputs: {C: close}\n",
        "    dtypes: [bfloat16]\n",
        "    bench: {sizes: {small: {M: 17}, large: {M: 64}}}\n",
        "    check: {sizes: {small: {M: 17}}}\n",
    ] {
        assert!(ops.contains(line), "no `{line}` in\n{ops}");
    }
    assert_eq!(workspace.read("references/gemm_n24_k40/definition.json"), workspace.read("defs/gemm_n24_k40.json"));
    let ran = workspace.build(&["gemm_n24_k40:check"]);
    assert_eq!(ran.code, Some(0), "{}\n{ops}", ran.told);
    workspace.edit("kernels/gemm_n24_k40/v1_baseline.py", "sums += tl.dot", "sums = tl.dot");
    let ran = workspace.build(&["gemm_n24_k40:check"]);
    assert_eq!(ran.code, Some(1), "{}", ran.told);
    assert_eq!(workspace.outcome("gemm_n24_k40/v1_baseline:check"), "mismatch");
}

#[test]
fn a_product_in_float8_is_tested_in_the_dtype_of_its_result() {
    let workspace = workspace();
    with_kernel(&workspace, EIGHTS, "--axis M=17,64");
    let ops = workspace.read("ops.yaml");
    for line in [
        "      A: {shape: [M, 64], dtype: float8_e4m3fn}\n      A_scale: {shape: [M, 2], dtype: float32}\n",
        "    dtypes: [bfloat16]\n",
    ] {
        assert!(ops.contains(line), "no `{line}` in\n{ops}");
    }
    let ran = workspace.build(&["gemm_fp8_n24_k64:check"]);
    assert_eq!(ran.code, Some(0), "{}\n{ops}", ran.told);
    workspace.edit("kernels/gemm_fp8_n24_k64/v1_baseline.py", "rows * groups + group", "rows * groups");
    let ran = workspace.build(&["gemm_fp8_n24_k64:check"]);
    assert_eq!(ran.code, Some(1), "{}", ran.told);
    assert_eq!(workspace.outcome("gemm_fp8_n24_k64/v1_baseline:check"), "mismatch");
}

#[test]
fn workloads_give_sizes_and_numbers_and_results_by_name_are_put_in_order() {
    let workspace = workspace();
    with_kernel(&workspace, NORM, "--workloads rmsnorm.jsonl");
    let ops = workspace.read("ops.yaml");
    for line in [
        "      eps: {scalar: 0.00001}\n",
        "bench: {sizes: {small: {batch_size: 1}, medium: {batch_size: 7}, large: {batch_size: 5000}}}\n",
        "check: {sizes: {w1: {batch_size: 1}, w2: {batch_size: 7}, w3: {batch_size: 33}}}\n",
        "profiles: {cpu: {bench: {sizes: {small: {batch_size: 1}}}}}\n",
    ] {
        assert!(ops.contains(line), "no `{line}` in\n{ops}");
    }
    let ran = workspace.build(&["--phase", "check", "rmsnorm_h96"]);
    assert_eq!(ran.code, Some(0), "{}\n{ops}", ran.told);
    let evidence = workspace.document("rmsnorm_h96/v1_baseline:check", "evidence");
    let names: Vec<&str> =
        evidence["cases"].as_array().unwrap().iter().filter_map(|case| case["name"].as_str()).collect();
    assert!(names.iter().any(|name| name.starts_with("w3/")), "{names:?}");
    // The number is another one in some case: who does not read it is wrong.
    workspace.edit("kernels/rmsnorm_h96/v1_baseline.py", "/ width + eps", "/ width + 1e-5");
    let ran = workspace.build(&["rmsnorm_h96:check"]);
    assert_eq!(ran.code, Some(1), "{}", ran.told);
}

#[test]
fn a_reference_that_returns_a_list_is_led_to_what_others_return() {
    let workspace = workspace();
    with_reference(&workspace, "def run(x, w, eps): return [x * w + eps]\n");
    let ran = import(&workspace, "changed", "--scalar eps=0.5 --axis batch_size=3");
    assert_eq!(ran.code, Some(0), "{}", ran.told);
    let reference = workspace.read("references/rmsnorm_h96/reference.py");
    assert!(reference.contains("def run(hidden_states, weight, eps):\n"), "{reference}");
    assert!(reference.contains("    return results[0]\n"), "{reference}");
    let ran = workspace.build(&["rmsnorm_h96:analyze"]);
    assert_eq!(ran.code, Some(0), "{}", ran.told);
}

#[test]
fn a_constraint_says_a_length_by_another_and_a_decode_is_judged() {
    let workspace = workspace();
    with_kernel(&workspace, DECODE, "--axis batch_size=3 --axis kv_len=21 --scalar sm_scale=0.25");
    let ops = workspace.read("ops.yaml");
    for line in [
        "      sees: {shape: [batch_size, \"kv_len + 1\"], dtype: int32, init: {randint: [0, 2]}}\n",
        "      sm_scale: {scalar: 0.25}\n",
        "    outputs: {output: close, lse: close}\n",
        "check: {sizes: {small: {batch_size: 3, kv_len: 21}}}\n",
    ] {
        assert!(ops.contains(line), "no `{line}` in\n{ops}");
    }
    let ran = workspace.build(&["--phase", "check", DECODE]);
    assert_eq!(ran.code, Some(0), "{}\n{ops}", ran.told);
    workspace.edit(&format!("kernels/{DECODE}/v1_baseline.py"), "head // (HEADS // KV_HEADS)", "head % KV_HEADS");
    let ran = workspace.build(&[&format!("{DECODE}:check")]);
    assert_eq!(ran.code, Some(1), "{}", ran.told);
    assert_eq!(workspace.outcome(&format!("{DECODE}/v1_baseline:check")), "mismatch");
}

#[test]
fn a_constraint_says_what_the_last_offset_is_and_a_paged_decode_is_judged() {
    let workspace = workspace();
    let axes = "--axis batch_size=3 --axis num_pages=9 --axis num_kv_indices=40 --scalar sm_scale=0.25";
    with_kernel(&workspace, PAGED, axes);
    let ops = workspace.read("ops.yaml");
    for line in [
        "      kv_indptr: {shape: [\"batch_size + 1\"], dtype: int32, init: {offsets: num_kv_indices}}\n",
        "      kv_indices: {shape: [num_kv_indices], dtype: int32, init: {randint: [0, 2]}}\n",
    ] {
        assert!(ops.contains(line), "no `{line}` in\n{ops}");
    }
    // Another constraint on the same two is no such one.
    let text = workspace.read(&format!("defs/{PAGED}.json"));
    let also =
        text.replace("kv_indptr[-1].item()\"", "kv_indptr[-1].item()\", \"num_kv_indices == kv_indptr[0].item()\"");
    workspace.write("defs/also.json", also.replace(PAGED, "also"));
    let ran = import(&workspace, "also", axes);
    assert_eq!(ran.code, Some(2), "{}", ran.told);
    assert!(
        ran.told.contains("defs/also.json: constraints[2]: ") && ran.told.contains(" is about the values of"),
        "{}",
        ran.told
    );
    workspace.edit("ops.yaml", "{randint: [0, 2]}", "{randint: [0, num_pages]}");
    let ran = workspace.build(&["--phase", "check", PAGED]);
    assert_eq!(ran.code, Some(0), "{}\n{ops}", ran.told);
    let kernel = format!("kernels/{PAGED}/v1_baseline.py");
    workspace.edit(&kernel, "range(first, last, BLOCK)", "range(first, tl.minimum(last, first + 4 * BLOCK), BLOCK)");
    let ran = workspace.build(&[&format!("{PAGED}:check")]);
    assert_eq!(ran.code, Some(1), "{}", ran.told);
    assert_eq!(workspace.outcome(&format!("{PAGED}/v1_baseline:check")), "mismatch");
}

#[test]
fn a_definition_that_cannot_be_imported_is_told_with_its_place_and_leaves_nothing() {
    let workspace = workspace();
    refused(&workspace, "none", "", "defs/none.json: ");
    workspace.write("defs/broken.json", "{\n  \"name\": \"a\",\n  \"axes\": [}\n");
    refused(&workspace, "broken", "", "defs/broken.json:3:10: ");
    refused(&workspace, NORM, "", "defs/rmsnorm_h96.json: inputs.eps: it is a number that has no value");
    let is_refused = |said: &str| {
        refused(&workspace, "changed", "--scalar eps=1e-6", &format!("defs/changed.json{said}"));
    };
    for (reference, said) in [
        ("def run(:\n", ": reference, line 1: it is no Python"),
        ("import nothing_of_the_kind\n", ": reference: it cannot be run: ModuleNotFoundError"),
        ("def go(): pass\n", ": reference: it has no function `run`"),
        ("def run(x): return x\n", ": reference: `run` does not take the inputs (hidden_states, weight, eps)"),
        ("def run(x, w, eps): return x.cuda(-7)\n", ": reference: `run` cannot be tried on the CPU"),
        ("def run(x, w, eps): return x[:1]\n", ": outputs.output: `run` returns the shape [1, 96]"),
        ("def run(x, w, eps): return x.half()\n", ": outputs.output: `run` returns float16"),
        ("def run(x, w, eps): return x, w\n", ": outputs: `run` returns 2 of 1"),
        ("def run(x, w, eps): return {'y': x}\n", ": outputs.output: `run` returns a mapping without it"),
        ("import torch\ndef run(x, w, eps): return torch.rand_like(x)\n", ": reference: `run` draws random numbers"),
        ("import os\ndef run(x, w, eps): os._exit(0)\n", ": reference: its process ended without an answer"),
    ] {
        with_reference(&workspace, reference);
        is_refused(said);
    }
    for (constraint, said) in [
        ("batch_size == weight[-1].item()", " is about the values of `weight`"),
        ("batch_size % 4 == 0", " does not hold at batch_size 5"),
        ("batch_size ==== 4", " is no expression of Python"),
        ("rows == 4", " names `rows`, which is no axis"),
    ] {
        changed(&workspace, "hidden_size % 32 == 0", constraint);
        is_refused(&format!(": constraints[0]: `{constraint}`{said}"));
    }
    changed(&workspace, "\"dtype\": \"float32\"", "\"dtype\": \"float4_e2m1\"");
    is_refused(": inputs.hidden_states.dtype: t2t has no `float4_e2m1`");
    changed(&workspace, "\"op_type\"", "\"custom_inputs_entrypoint\": \"make\", \"op_type\"");
    is_refused(": custom_inputs_entrypoint: ");
}

#[test]
fn workloads_and_arguments_that_do_not_fit_are_told_with_their_place() {
    let workspace = workspace();
    let line = |axes: Value, inputs: Value| json!({"uuid": "a", "axes": axes, "inputs": inputs}).to_string();
    let eps = json!({"type": "scalar", "value": 1e-6});
    let good = line(json!({"batch_size": 3}), json!({"eps": eps}));
    let second = |text: String, said: &str| {
        workspace.write("other.jsonl", format!("{good}\n{text}\n"));
        refused(&workspace, NORM, "--workloads other.jsonl", &format!("other.jsonl:2{said}"));
    };
    second("{".to_owned(), ":1: EOF");
    second("{}".to_owned(), ": it is no workload");
    second(line(json!({}), json!({})), ": axes: `batch_size` has no length");
    second(line(json!({"batch_size": 0}), json!({})), ": axes: `batch_size` has no length");
    second(line(json!({"batch_size": 2, "hidden_size": 5}), json!({})), ": axes: `hidden_size` is 5");
    let of = |kind: &str| json!({"hidden_states": {"type": kind, "path": "x", "tensor_key": "y"}, "eps": eps});
    let at = |kind: &str| line(json!({"batch_size": 2}), of(kind));
    second(at("safetensors"), ": inputs.hidden_states: its values lie in a safetensors file");
    second(at("custom"), ": inputs.hidden_states: a function of its own makes it");
    second(at("scalar"), ": inputs.hidden_states: it is no number");
    second(at("heap"), ": inputs.hidden_states: `heap` is no kind");
    let other = json!({"eps": {"type": "scalar", "value": 1e-5}});
    second(line(json!({"batch_size": 2}), other), ": inputs.eps: it is 0.00001, and 1e-6 in line 1");
    workspace
        .write("other.jsonl", json!({"definition": "another", "workload": {"axes": {}, "inputs": {}}}).to_string());
    refused(&workspace, NORM, "--workloads other.jsonl", "other.jsonl: it has no workload of `rmsnorm_h96`");
    refused(&workspace, NORM, "--workloads none.jsonl", "none.jsonl: ");
    // A workload that the constraints forbid is told with its line.
    changed(&workspace, "hidden_size % 32 == 0", "batch_size != 2");
    workspace.write("other.jsonl", format!("{good}\n{}\n", line(json!({"batch_size": 2}), json!({}))));
    refused(&workspace, "changed", "--workloads other.jsonl", "other.jsonl:2: `batch_size != 2` does not hold");
    for (more, said) in [
        ("--axis M=3", "`--axis M=3`: the definition has no such axis"),
        ("--scalar eps", "`--scalar eps`: it has no `=`"),
        ("--scalar eps=x", "`--scalar eps=x`: the value is no number"),
        ("--scalar weight=1", "`--scalar weight=1`: the input is a tensor"),
    ] {
        refused(&workspace, NORM, more, said);
    }
}

#[test]
fn an_op_or_a_folder_that_is_there_is_not_replaced() {
    let workspace = workspace();
    assert_eq!(import(&workspace, GEMM, "").code, Some(0));
    let ops = workspace.read("ops.yaml");
    let ran = import(&workspace, GEMM, "");
    assert_eq!(ran.code, Some(2), "{}", ran.told);
    assert!(ran.told.contains("ops.yaml declares `gemm_n24_k40` already"), "{}", ran.told);
    workspace.write("references/rmsnorm_h96/mine.py", "");
    let ran = import(&workspace, NORM, "--scalar eps=1e-6");
    assert_eq!(ran.code, Some(2), "{}", ran.told);
    assert!(ran.told.contains("the folder `references/rmsnorm_h96` is there already"), "{}", ran.told);
    assert_eq!(workspace.read("ops.yaml"), ops);
    assert!(workspace.path("references/rmsnorm_h96/mine.py").exists());
}
