//! Defaults, profiles and the layers of settings.
//!
//! It does not know what settings do.

use std::time::Duration;

use serde_json::json;
use t2t_model::action::Phase;
use t2t_spec::{Op, Profile};

use super::{PHASES, add, binding, cuda, op, parse};

#[test]
fn an_op_that_says_nothing_has_the_documented_defaults() {
    let op = add("");
    let settings = cuda(&op);
    let variants: Vec<&str> = op.variants.iter().map(|variant| variant.file.as_str()).collect();
    assert_eq!(
        variants,
        [
            "kernels/x/v1_baseline.py",
            "kernels/x/v2_tiling.py",
            "kernels/x/v3_coalesced.py",
            "kernels/x/v4_optimized.py"
        ]
    );
    assert_eq!(settings.dtypes, ["float32"]);
    assert_eq!((settings.seeds, settings.max_retries), (2, 3));
    assert_eq!(settings.tolerances["float32"], [1e-5, 1e-5]);
    assert_eq!(settings.tolerances["bfloat16"], [1.6e-2, 1e-2]);
    assert_eq!((settings.protocol.runs, settings.protocol.warmup_ms, settings.protocol.rep_ms), (10, 25, 100));
    assert_eq!(json!(settings.baselines), json!(["torch", "torch.compile"]));
    assert_eq!(settings.sizes["large"], binding(&[("M", 4096), ("N", 4096)]));
    assert_eq!(settings.check_sizes.keys().collect::<Vec<_>>(), ["medium", "small"]);
    assert_eq!(op.timeout(Phase::Check, Profile::Cuda), Some(Duration::from_mins(2)));
    assert_eq!(op.timeout(Phase::Bench, Profile::Cuda), Some(Duration::from_mins(10)));
    assert_eq!(op.timeout(Phase::Log, Profile::Cuda), None);
    assert_eq!(op.template, "assets/log_template.md");
}

#[test]
fn the_cpu_profile_is_small_for_every_op() {
    let op = op(
        "",
        "torch: torch.matmul\ninputs: {input: [M, K], other: [K, N]}\nbench: {sizes: {small: [1, 2, 3]}, runs: 50}",
    );
    let settings = op.settings(Profile::Cpu);
    assert_eq!(settings.sizes["small"], binding(&[("K", 16), ("M", 16), ("N", 16)]));
    assert_eq!((settings.protocol.runs, settings.protocol.warmup_ms, settings.protocol.rep_ms), (3, 0, 20));
    assert_eq!(json!(settings.baselines), json!(["torch"]));
    assert_eq!(settings.check_sizes.keys().collect::<Vec<_>>(), ["small"]);
    assert_eq!(cuda(&op).protocol.runs, 50);
}

#[test]
fn mappings_merge_by_key_and_size_sets_replace() {
    let top = "defaults: {check: {seeds: 5, atol: 0.1, tolerances: {float16: [1, 1]}}, bench: {sizes: {small: 8, large: 9}, runs: 7}}";
    let lines = "torch: torch.add\ninputs: {input: [N]}\ncheck: {rtol: 0.2, tolerances: {float64: [2, 2]}}\nbench: {sizes: {medium: 3}}";
    let op = op(top, lines);
    let settings = cuda(&op);
    assert_eq!((settings.seeds, settings.protocol.runs), (5, 7));
    assert_eq!(settings.tolerances["float32"], [0.1, 0.2]);
    assert_eq!((settings.tolerances["float16"], settings.tolerances["float64"]), ([1.0, 1.0], [2.0, 2.0]));
    assert_eq!(settings.sizes.keys().collect::<Vec<_>>(), ["medium"]);
    assert_eq!(settings.check_sizes.keys().collect::<Vec<_>>(), ["medium"]);
}

#[test]
fn lists_replace() {
    let op = op(
        "defaults: {dtypes: [float16, float64], variants: [a, b]}",
        "torch: torch.add\ninputs: {input: [M, N]}\ndtypes: [bfloat16]\nvariants: [c]",
    );
    assert_eq!(cuda(&op).dtypes, ["bfloat16"]);
    assert_eq!(op.variants.len(), 1);
}

#[test]
fn the_upper_of_two_ways_to_give_float32_tolerances_counts() {
    let lines = "torch: torch.add\ninputs: {input: [M, N]}\ncheck: ";
    let by_scalar = op("defaults: {check: {tolerances: {float32: [1, 1]}}}", &format!("{lines}{{atol: 2}}"));
    assert_eq!(cuda(&by_scalar).tolerances["float32"], [2.0, 1.0]);
    let by_dtype = op("defaults: {check: {atol: 1, rtol: 1}}", &format!("{lines}{{tolerances: {{float32: [2, 2]}}}}"));
    assert_eq!(cuda(&by_dtype).tolerances["float32"], [2.0, 2.0]);
}

#[test]
fn profiles_lie_above_ops_and_an_ops_own_above_the_files() {
    let top = "profiles: {cpu: {dims: {B: 2, H: 3}, check: {seeds: 9}, bench: {runs: 8}}}";
    let lines = "torch: torch.add\ninputs: {input: [B, H, N]}\ndims: {B: 4}\ncheck: {seeds: 4}\nbench: {sizes: {small: [16, 512]}}\n\
        profiles: {cpu: {dims: {H: 1}, dtypes: [float64], bench: {rep_ms: 1}}}";
    let op = op(top, lines);
    let cpu = op.settings(Profile::Cpu);
    assert_eq!(cpu.sizes["small"], binding(&[("B", 2), ("H", 1), ("N", 16)]));
    assert_eq!((cpu.seeds, cpu.protocol.runs, cpu.protocol.rep_ms), (9, 8, 1));
    assert_eq!(cpu.dtypes, ["float64"]);
    assert_eq!(cuda(&op).sizes["small"], binding(&[("B", 4), ("H", 16), ("N", 512)]));
    assert_eq!(cuda(&op).seeds, 4);
}

#[test]
fn a_profiles_dims_hold_only_for_ops_that_have_them() {
    let text = "version: 1\nprofiles: {cpu: {dims: {B: 2}}}\nops:\n  x: {torch: add, inputs: {input: [M, N]}}\n  y: {torch: add, inputs: {input: [B, N]}}";
    let spec = parse(text);
    assert_eq!(spec.ops[0].settings(Profile::Cpu).sizes["small"], binding(&[("M", 16), ("N", 16)]));
    assert_eq!(spec.ops[1].settings(Profile::Cpu).sizes["small"], binding(&[("B", 2), ("N", 16)]));
}

#[test]
fn edges_are_off_layer_over_layer() {
    let top = "defaults: {check: {edges: {empty: off, strided: {off: dense rows}}}}";
    let lines = "torch: torch.add\ninputs: {input: [M, N]}\ncheck: {edges: {empty: on, large: {off: it overflows}}}";
    let op = op(top, lines);
    let off = |reason: &str| Some(reason.to_owned());
    let names = |op: &Op| cuda(op).edges.keys().cloned().collect::<Vec<_>>();
    let expected = [("large".to_owned(), off("it overflows")), ("strided".to_owned(), off("dense rows"))];
    // Rows with memory between them are off where all strided tensors are, and nothing else is said of them.
    let padded = ("padded".to_owned(), off("dense rows"));
    assert_eq!(cuda(&op).edges, expected.into_iter().chain([padded]).collect());
    let lines = "torch: torch.add\ninputs: {input: [M, N]}\ncheck: {edges: {padded: on}}";
    assert_eq!(names(&self::op(top, lines)), ["empty", "strided"]);
    let lines = "torch: torch.add\ninputs: {input: [M, N]}\ncheck: {edges: {strided: on, padded: off}}";
    assert_eq!(names(&self::op(top, lines)), ["empty", "padded"]);
    let facts = |phase| op.declaration(Profile::Cuda).facts(phase).contains_key("edges");
    assert_eq!(PHASES.map(facts), [false, true, true, false, false, false]);
}
