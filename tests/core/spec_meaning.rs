//! What a good ops.yaml means: layers, dims, names, and what each phase reads of it.
#![expect(clippy::float_cmp, reason = "tolerances are copied and never computed")]

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use t2t_model::action::Phase;
use t2t_model::problem::render;
use t2t_spec::{Declaration, Op, Profile, Settings, Spec, TorchNames};

const PHASES: [Phase; 6] = [Phase::Analyze, Phase::Compile, Phase::Check, Phase::Tune, Phase::Bench, Phase::Baseline];

fn parse(text: &str) -> Spec {
    Spec::parse("ops.yaml", text.as_bytes(), None).unwrap_or_else(|problems| panic!("{}", render(&problems)))
}

/// An op `x` with the given lines, below the given lines of the file.
fn op(top: &str, lines: &str) -> Op {
    let own: Vec<String> = lines.lines().map(|line| format!("    {line}\n")).collect();
    parse(&format!("version: 1\n{top}\nops:\n  x:\n{}", own.concat())).ops.remove(0)
}

fn add(lines: &str) -> Op {
    op("", &format!("torch: torch.add\ninputs: {{input: [M, N], other: [M, N]}}\n{lines}"))
}

fn cuda(op: &Op) -> &Settings {
    op.settings(Profile::Cuda)
}

fn binding(dims: &[(&str, u64)]) -> BTreeMap<String, u64> {
    dims.iter().map(|(dim, length)| ((*dim).to_owned(), *length)).collect()
}

#[test]
fn a_dtype_may_have_any_of_its_names_and_is_declared_by_one() {
    let lines = "dtypes: [half, bf16, torch.float32, double]\ncheck: {tolerances: {fp16: [0.5, 0.25]}}";
    let op = add(lines);
    let settings = cuda(&op);
    assert_eq!(settings.dtypes, ["float16", "bfloat16", "float32", "float64"]);
    assert_eq!(settings.tolerances["float16"], [0.5, 0.25]);
    let op = op_of_index("long");
    assert_eq!(op.inputs[0].tensor().unwrap().dtype.as_deref(), Some("int64"));
    assert_eq!(declared(&op), declared(&op_of_index("int64")));
}

fn op_of_index(dtype: &str) -> Op {
    let index = format!("{{shape: [M, N], dtype: {dtype}, init: {{randint: [0, 4]}}}}");
    op("", &format!("torch: torch.take\ninputs: {{index: {index}}}\nprofiles: {{cpu: {{dtypes: [{dtype}]}}}}"))
}

fn declared(op: &Op) -> [Value; 2] {
    [Profile::Cpu, Profile::Cuda].map(|profile| json!(op.declaration(profile)))
}

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
    assert_eq!(settings.baselines, ["torch", "torch.compile"]);
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
    assert_eq!(settings.baselines, ["torch"]);
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
fn sizes_bind_free_dims_in_the_order_of_the_shapes() {
    let op = op(
        "",
        "torch: torch.matmul\ninputs: {input: [M, K], other: [K, N]}\ndims: {K: 7}\nbench: {sizes: {small: [1, 2], medium: {N: 5, M: 4}, large: 6}}",
    );
    assert_eq!(cuda(&op).sizes["small"], binding(&[("K", 7), ("M", 1), ("N", 2)]));
    assert_eq!(cuda(&op).sizes["medium"], binding(&[("K", 7), ("M", 4), ("N", 5)]));
    assert_eq!(cuda(&op).sizes["large"], binding(&[("K", 7), ("M", 6), ("N", 6)]));
}

#[test]
fn an_op_without_free_dims_needs_no_sizes() {
    let op = op("", "torch: torch.add\ninputs: {input: [3, 5], other: []}");
    assert_eq!(cuda(&op).sizes["small"], binding(&[]));
}

#[test]
fn sizes_for_all_ops_may_name_dims_that_an_op_lacks() {
    let op = op("defaults: {bench: {sizes: {small: {M: 1, N: 2, K: 3}}}}", "torch: torch.relu\ninputs: {input: [N]}");
    assert_eq!(cuda(&op).sizes["small"], binding(&[("N", 2)]));
}

#[test]
fn dims_that_only_an_init_or_a_kwarg_names_are_dims() {
    let op = op(
        "",
        "torch: F.one_hot\ninputs: {input: {shape: [M], dtype: int64, init: {randint: [0, V]}}}\nkwargs: {num_classes: V, other: [C]}\n\
        dims: {C: 3}\nbench: {sizes: {small: [16, 10]}}",
    );
    assert_eq!(cuda(&op).sizes["small"], binding(&[("C", 3), ("M", 16), ("V", 10)]));
}

#[test]
fn check_sizes_have_any_names() {
    let op = add("check: {sizes: {odd: [7, 9], row: [1, 4097]}}");
    assert_eq!(cuda(&op).check_sizes["row"], binding(&[("M", 1), ("N", 4097)]));
    assert_eq!(op.settings(Profile::Cpu).check_sizes["odd"], binding(&[("M", 7), ("N", 9)]));
}

#[test]
fn a_variant_can_say_everything_itself() {
    let op = add(
        "entry: go\ndeterministic: false\nvariants: [plain, {name: other, file: sub/o.py, entry: run, lanes: [cuda], deterministic: true}]",
    );
    let variants: Vec<Value> = op.variants.iter().map(|variant| json!(variant)).collect();
    assert_eq!(
        variants,
        [
            json!({"name": "plain", "file": "kernels/x/plain.py", "module": null, "entry": "go", "call": null, "lanes": ["interpreter", "cuda"], "deterministic": false}),
            json!({"name": "other", "file": "kernels/x/sub/o.py", "module": null, "entry": "run", "call": null, "lanes": ["cuda"], "deterministic": true}),
        ]
    );
}

#[test]
fn torch_names_become_full_names() {
    let names: TorchNames = ["torch.nn.functional.softmax", "torch.softmax"].map(str::to_owned).into_iter().collect();
    let text = "version: 1\nops: {x: {torch: softmax, inputs: {input: [M, N]}}}";
    let spec = Spec::parse("ops.yaml", text.as_bytes(), Some(&names)).unwrap();
    assert_eq!(spec.ops[0].declaration(Profile::Cuda).torch.unwrap(), "torch.nn.functional.softmax");
}

#[test]
fn a_declaration_is_what_the_harness_page_says() {
    let op = op(
        "",
        "torch: F.scaled_dot_product_attention\ninputs:\n  query: [B, H, S, 64]\n  mask: {shape: [S], dtype: int64, init: {randint: [0, S]}, layout: strided}\n\
        kwargs: {dropout_p: 0.0}\ndims: {B: 4, H: 16}\ndtypes: [float32, float16]\nbench: {sizes: {small: {S: 256}}}",
    );
    assert_eq!(
        json!(op.declaration(Profile::Cuda)),
        json!({
            "name": "x",
            "torch": "torch.nn.functional.scaled_dot_product_attention",
            "reference": null,
            "inputs": [
                {"name": "query", "list": null, "shape": ["B", "H", "S", 64], "dtype": null, "init": {"kind": "normal", "mean": 0.0, "std": 1.0},
                    "requires_grad": false, "layout": "contiguous", "optional": false},
                {"name": "mask", "list": null, "shape": ["S"], "dtype": "int64", "init": {"kind": "randint", "low": 0, "high": "S"},
                    "requires_grad": false, "layout": "strided", "optional": false},
            ],
            "outputs": null,
            "random": null,
            "kwargs": {"dropout_p": 0.0},
            "measured": {},
            "dtypes": ["float32", "float16"],
            "sizes": {"small": {"B": 4, "H": 16, "S": 256}},
            "check_sizes": {"small": {"B": 4, "H": 16, "S": 256}},
            "seeds": 2,
            "edges": {},
            "fixed": ["B", "H"],
            "tolerances": {"float32": [1e-5, 1e-5], "float16": [1e-3, 1e-3], "bfloat16": [1.6e-2, 1e-2], "float64": [1e-7, 1e-7]},
            "precision": "ieee",
            "mutates": [],
            "allow": [],
            "backward": false,
            "broadcast": false,
            "deterministic": true,
            "cases": null,
        })
    );
}

#[test]
fn inits_are_written_in_one_form() {
    let op = add("");
    let with = |init: &str| {
        let lines = format!("torch: torch.add\ninputs: {{input: {{shape: [M, N], init: {init}}}}}");
        json!(self::op("", &lines).inputs[0].tensor().unwrap().init)
    };
    assert_eq!(json!(op.inputs[0].tensor().unwrap().init), with("normal"));
    assert_eq!(with("{normal: [0, 1]}"), with("normal"));
    assert_eq!(with("uniform"), json!({"kind": "uniform", "low": 0.0, "high": 1.0}));
    assert_eq!(with("{constant: 3}"), json!({"kind": "constant", "value": 3}));
    assert_eq!(with("ones"), json!({"kind": "ones"}));
    assert_eq!(with("permutation"), json!({"kind": "permutation"}));
    assert_eq!(with("{sorted: {of: unique}}"), json!({"kind": "sorted", "of": {"kind": "unique"}}));
    assert_eq!(with("{mask: 0.5}"), json!({"kind": "mask", "p": 0.5}));
    assert_eq!(with("{triangular: upper}"), json!({"kind": "triangular", "side": "upper"}));
    assert_eq!(with("{block_sparse: {block: 8}}"), json!({"kind": "block_sparse", "block": 8, "density": 0.25}));
    assert_eq!(with("{low_rank: N // 2}"), json!({"kind": "low_rank", "rank": "N//2"}));
    assert_eq!(with("{ill_conditioned: 1e4}"), json!({"kind": "ill_conditioned", "condition": 1e4}));
    let file = json!({"kind": "file", "path": "values/x.safetensors", "name": "a.b"});
    assert_eq!(with("{file: 'values/x.safetensors::a.b'}"), file);
}

#[test]
fn inputs_are_lists_scalars_expressions_and_layouts_in_one_form() {
    let lines = "\
torch: torch.addcmul
inputs:
  tensors: {list: [[M, 2 * N], [M, N // 2]], layout: [contiguous, strided]}
  value: {scalar: 0.5}
  bias: {shape: [N], optional: true, layout: [contiguous]}
mutates: [tensors]
bench: {sizes: {small: [4, 8]}}
profiles: {cpu: {bench: {sizes: {small: {M: 4, N: 8}}}}}";
    let op = op("", lines);
    let inputs = json!(op.inputs);
    let names: Vec<&str> = inputs.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["tensors.0", "tensors.1", "value", "bias"]);
    assert_eq!((&inputs[0]["list"], &inputs[0]["shape"]), (&json!("tensors"), &json!(["M", "2*N"])));
    assert_eq!((&inputs[1]["shape"], &inputs[1]["layout"]), (&json!(["M", "N//2"]), &json!(["contiguous", "strided"])));
    assert_eq!(inputs[2], json!({"name": "value", "scalar": 0.5}));
    assert_eq!((&inputs[3]["optional"], &inputs[3]["layout"]), (&json!(true), &json!("contiguous")));
    assert_eq!(op.mutates, ["tensors.0", "tensors.1"]);
}

#[test]
fn of_an_op_without_inputs_the_sizes_say_which_strings_are_dims() {
    let lines = "torch: torch.full
inputs: {}
kwargs: {size: [M, 2*N], fill_value: 1}
bench: {sizes: {small: {M: 4, N: 8}}}";
    let op = op("", lines);
    assert_eq!(cuda(&op).sizes["small"], binding(&[("M", 4), ("N", 8)]));
    assert_eq!(op.settings(Profile::Cpu).sizes["small"], binding(&[("M", 16), ("N", 16)]));
}

#[test]
fn outputs_and_what_is_random_are_written_in_one_form() {
    let op = add("\
outputs:
  values: {tolerances: {float32: [0.1, 0.2]}}
  indices: {compare: indices, of: input, dim: -1}
  rest: ignore
random: {kind: dropout, p: 0.5, seed: seed}");
    let plain = |name: &str, compare: &str| json!({"name": name, "compare": compare, "of": null, "dim": null, "tolerances": {}});
    let (mut values, mut indices) = (plain("values", "close"), plain("indices", "indices"));
    values["tolerances"] = json!({"float32": [0.1, 0.2]});
    (indices["of"], indices["dim"]) = (json!("input"), json!(-1));
    let declaration = json!(op.declaration(Profile::Cuda));
    assert_eq!(declaration["outputs"], json!([values, indices, plain("rest", "ignore")]));
    assert_eq!(declaration["random"], json!({"kind": "dropout", "p": 0.5, "seed": "seed"}));
}

fn changed(before: &Declaration, after: &Declaration) -> Vec<Phase> {
    PHASES.into_iter().filter(|phase| before.facts(*phase) != after.facts(*phase)).collect()
}

/// Changes each setting alone; the phases whose facts change are the ones that the table names.
#[test]
fn a_changed_setting_changes_the_facts_of_the_phases_that_the_table_names() {
    let lines = "torch: torch.add\ninputs: {input: [M, N], other: [M, N]}\n";
    let before = op("", lines).declaration(Profile::Cuda);
    let edits = [
        ("op", "kwargs", "kwargs: {alpha: 2}"),
        ("op", "dims", "dims: {N: 2}\nbench: {sizes: {small: [256], medium: [1024], large: [4096]}}"),
        ("op", "dtypes", "dtypes: [float16]"),
        ("op", "cases", "cases: kernels/x/cases.py"),
        ("op", "precision", "precision: tf32"),
        ("op", "mutates", "mutates: [input]"),
        ("op", "outputs", "outputs: {out: exact}"),
        ("op", "random", "random: {kind: normal}"),
        ("op", "backward", "backward: true"),
        ("op", "broadcast", "broadcast: true"),
        ("op", "deterministic", "deterministic: false"),
        ("op", "log", "log: {template: assets/other.md}"),
        ("op", "entry", "entry: other"),
        ("check", "atol", "check: {atol: 1}"),
        ("check", "rtol", "check: {rtol: 1}"),
        ("check", "tolerances", "check: {tolerances: {float16: [1, 1]}}"),
        ("check", "seeds", "check: {seeds: 3}"),
        ("check", "sizes", "check: {sizes: {odd: [7, 7]}}"),
        ("check", "max_retries", "check: {max_retries: 1}"),
        ("check", "timeout", "check: {timeout: 1h}"),
        ("bench", "sizes", "bench: {sizes: {small: 8}}"),
        ("bench", "runs", "bench: {runs: 2}"),
        ("bench", "warmup_ms", "bench: {warmup_ms: 2}"),
        ("bench", "rep_ms", "bench: {rep_ms: 2}"),
        ("bench", "stop", "bench: {stop: auto}"),
        ("bench", "baselines", "bench: {baselines: [torch]}"),
        ("bench", "timeout", "bench: {timeout: 1h}"),
    ];
    for (section, key, edit) in edits {
        let after = op("", &format!("{lines}{edit}")).declaration(Profile::Cuda);
        let field =
            t2t_spec::fields::FIELDS.iter().find(|field| field.section.name() == section && field.key == key).unwrap();
        // An entry is a fact of the variants, a template one of the log.
        let of_the_op = !matches!(key, "entry" | "log");
        let expected: Vec<Phase> =
            PHASES.into_iter().filter(|phase| of_the_op && field.phases.contains(phase)).collect();
        assert_eq!(changed(&before, &after), expected, "{section}.{key}");
    }
    for lines in [
        "torch: torch.sub\ninputs: {input: [M, N], other: [M, N]}",
        "torch: torch.add\ninputs: {input: [M, N], other: {shape: [M, N], init: ones}}",
    ] {
        let after = op("", lines).declaration(Profile::Cuda);
        let expected: &[Phase] = if lines.contains("sub") {
            &[Phase::Analyze, Phase::Check, Phase::Bench, Phase::Baseline]
        } else {
            &PHASES
        };
        assert_eq!(changed(&before, &after), expected, "{lines}");
    }
}

#[test]
fn a_variants_facts_are_those_that_the_table_names() {
    let facts = |variant: &str, phase| add(&format!("variants: [{variant}]")).variants[0].facts(phase);
    for (key, variant) in [
        ("entry", "{name: v, entry: other}"),
        ("lanes", "{name: v, lanes: [cuda]}"),
        ("deterministic", "{name: v, deterministic: false}"),
        ("file", "{name: v, file: w.py}"),
    ] {
        let field = t2t_spec::fields::FIELDS
            .iter()
            .find(|field| field.section.name() == "variant" && field.key == key)
            .unwrap();
        let changed: Vec<Phase> =
            PHASES.into_iter().filter(|phase| facts("v", *phase) != facts(variant, *phase)).collect();
        assert_eq!(changed, field.phases, "{key}");
    }
}

#[test]
fn the_order_of_ops_and_keys_is_in_no_declaration() {
    let one = parse(
        "version: 1\nops:\n  a: {torch: add, inputs: {input: [M, N]}, kwargs: {x: 1, y: {p: 1, q: 2}}}\n  b: {torch: sub, inputs: {input: [M, N]}}",
    );
    let other = parse(
        "ops:\n  b: {inputs: {input: [M, N]}, torch: sub}\n  a: {kwargs: {y: {q: 2, p: 1}, x: 1}, torch: add, inputs: {input: [M, N]}}\nversion: 1",
    );
    assert_eq!(one.ops[0].name, "a");
    assert_eq!(other.ops[0].name, "b");
    for name in ["a", "b"] {
        let text = |spec: &Spec| serde_json::to_string(&spec.op(name).unwrap().declaration(Profile::Cuda)).unwrap();
        assert_eq!(text(&one), text(&other));
    }
}

#[test]
fn targets_are_models_and_architectures() {
    assert_eq!(
        parse("version: 1\ntargets: [nvidia-h200, sm_90]\nops: {x: {torch: add, inputs: {i: [M, N]}}}").targets,
        ["nvidia-h200", "sm_90"]
    );
    assert!(parse("version: 1\nops: {x: {torch: add, inputs: {i: [M, N]}}}").targets.is_empty());
}

#[test]
fn a_reference_in_python_is_a_function_or_a_class_with_arguments() {
    let short = op("", "reference: kernels/x/reference.py::geglu\ninputs: {x: [M, N]}").declaration(Profile::Cuda);
    assert_eq!(short.torch, None);
    assert_eq!(json!(short.reference), json!({"file": "kernels/x/reference.py", "name": "geglu", "init": {}}));
    let long = "reference: {file: lib/model.py, name: Model, init: {hidden: H, bias: false}}\ninputs: {x: [M, N]}\ndims: {H: 64}";
    let long = op("", long).declaration(Profile::Cuda);
    let init = json!({"bias": false, "hidden": "H"});
    assert_eq!(json!(long.reference), json!({"file": "lib/model.py", "name": "Model", "init": init}));
    assert_eq!(long.sizes["small"]["H"], 64, "a dim that only the constructor takes is bound");
    for phase in PHASES {
        assert!(long.facts(phase).contains_key("reference"), "{phase}");
    }
}

#[test]
fn a_variant_lies_anywhere_and_is_called_as_it_says() {
    let lines = "call: 'entry(other, input)'\nvariants: [v1, {name: v2, path: lib/x.py, entry: Add.apply, call: 'entry(input, 1)'}, {name: v3, module: liger.ops, entry: Add}]";
    let op = add(lines);
    let told: Vec<Value> = op.variants.iter().map(|variant| json!(variant)).collect();
    let both = json!(["interpreter", "cuda"]);
    let variant = |name: &str, file: &str, module: Value, entry: &str, call: &str| json!({"name": name, "file": file, "module": module, "entry": entry, "call": call, "lanes": both, "deterministic": true});
    assert_eq!(
        told,
        [
            variant("v1", "kernels/x/v1.py", Value::Null, "triton_x", "entry(other, input)"),
            variant("v2", "lib/x.py", Value::Null, "Add.apply", "entry(input, 1)"),
            variant("v3", "liger.ops", json!("liger.ops"), "Add", "entry(other, input)"),
        ]
    );
    for phase in [Phase::Compile, Phase::Check, Phase::Tune, Phase::Bench] {
        let facts = op.variants[1].facts(phase);
        assert!(["module", "entry", "call"].iter().all(|name| facts.contains_key(*name)), "{phase}");
    }
}

#[test]
fn edges_are_off_layer_over_layer() {
    let top = "defaults: {check: {edges: {empty: off, strided: {off: dense rows}}}}";
    let lines = "torch: torch.add\ninputs: {input: [M, N]}\ncheck: {edges: {empty: on, large: {off: it overflows}}}";
    let op = op(top, lines);
    let off = |reason: &str| Some(reason.to_owned());
    let expected = [("large".to_owned(), off("it overflows")), ("strided".to_owned(), off("dense rows"))];
    assert_eq!(cuda(&op).edges, expected.into());
    let facts = |phase| op.declaration(Profile::Cuda).facts(phase).contains_key("edges");
    assert_eq!(PHASES.map(facts), [false, true, true, false, false, false]);
}

#[test]
fn operations_are_allowed_for_checks() {
    let op = add("allow: [sum, mul_]");
    assert_eq!(op.allow, ["sum", "mul_"]);
    let facts = |phase| op.declaration(Profile::Cuda).facts(phase).contains_key("allow");
    assert_eq!(PHASES.map(facts), [false, false, true, false, false, false]);
}
