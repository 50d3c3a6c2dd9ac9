//! What a good ops.yaml means: layers, dims, names, and what each phase reads of it.
#![expect(clippy::float_cmp, reason = "tolerances are copied and never computed")]

use std::collections::BTreeMap;

use serde_json::{Value, json};
use t2t_model::action::Phase;
use t2t_model::problem::render;
use t2t_spec::{Op, Profile, Settings, Spec, TorchNames, Variant};

mod layered;
mod facts;

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

#[test]
fn an_input_may_be_in_float8_by_the_names_of_torch_and_triton() {
    for (names, own) in [
        (["fp8_e4m3", "torch.float8_e4m3fn", "fp8e4nv", "float8_e4m3fn"], "float8_e4m3fn"),
        (["fp8_e5m2", "torch.float8_e5m2", "float8e5", "float8_e5m2"], "float8_e5m2"),
    ] {
        for name in names {
            let input = format!("torch: torch.mul\ninputs: {{input: {{shape: [M, N], dtype: {name}}}, other: [M, 1]}}");
            let op = op("", &input);
            assert_eq!(op.inputs[0].tensor().unwrap().dtype.as_deref(), Some(own), "{name}");
            assert_eq!(cuda(&op).dtypes, ["float32"]);
        }
    }
}

fn op_of_index(dtype: &str) -> Op {
    let index = format!("{{shape: [M, N], dtype: {dtype}, init: {{randint: [0, 4]}}}}");
    op("", &format!("torch: torch.take\ninputs: {{index: {index}}}\nprofiles: {{cpu: {{dtypes: [{dtype}]}}}}"))
}

fn declared(op: &Op) -> [Value; 2] {
    [Profile::Cpu, Profile::Cuda].map(|profile| json!(op.declaration(profile)))
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
            "overwrites": [],
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
fn a_variant_in_cuda_is_a_cu_and_the_python_beside_it() {
    let lines = "generator: template\nvariants: [{name: a, lang: cuda}, {name: b, lang: cuda, file: sub/k.cu}, {name: c, lang: cuda, path: lib/k.cu}, {name: d, lang: cuda, path: lib/k.cu, operator: lib/own.py}, {name: e, lang: cuda, operator: own.py}, {name: f, lang: triton}]";
    let op = add(lines);
    let files = |variant: &Variant| (variant.file.clone(), variant.cuda.clone());
    let cu = |file: &str, cuda: &str| (file.to_owned(), Some(cuda.to_owned()));
    assert_eq!(
        op.variants.iter().map(files).collect::<Vec<_>>(),
        [
            cu("kernels/x/a.py", "kernels/x/a.cu"),
            cu("kernels/x/sub/k.py", "kernels/x/sub/k.cu"),
            cu("lib/k.py", "lib/k.cu"),
            cu("lib/own.py", "lib/k.cu"),
            cu("kernels/x/own.py", "kernels/x/e.cu"),
            ("kernels/x/f.py".to_owned(), None),
        ]
    );
    let [first, .., last] = op.variants.as_slice() else { unreachable!() };
    assert_eq!((&first.generator, last.generator.as_deref()), (&None, Some("template")), "generators write Triton");
    assert_eq!(json!(first)["lanes"], json!(["cuda"]));
    let names = |variant: &Variant, phase| variant.facts(phase).into_keys().collect::<Vec<_>>().join(" ");
    assert_eq!(names(first, Phase::Compile), "cuda");
    assert_eq!(names(first, Phase::Bench), "call cuda entry module");
    assert_eq!(names(last, Phase::Bench), "call entry module", "what is in Triton has the facts that it had");
}

#[test]
fn a_python_file_with_cuda_in_it_is_the_wrapper_too() {
    let op = add("variants: [{name: a, lang: cuda, file: own.py}, {name: b, lang: cuda, path: lib/own.py}]");
    let files = |variant: &Variant| (variant.file.clone(), variant.cuda.clone(), variant.is_inline());
    let both = |file: &str| (file.to_owned(), Some(file.to_owned()), true);
    assert_eq!(op.variants.iter().map(files).collect::<Vec<_>>(), [both("kernels/x/own.py"), both("lib/own.py")]);
    let names = op.variants[0].facts_of_extension(Phase::Compile).into_keys().collect::<Vec<_>>().join(" ");
    assert_eq!(names, "call cuda entry lanes module", "what it has torch build is known once its wrapper runs");
}

#[test]
fn an_operator_has_methods_and_no_other_variant_speaks_of_them() {
    let lines = "methods: {backward: 'bwd(grad, output)'}\nvariants: [v1, {name: v2, call: 'entry(input, other)'}, {name: v3, methods: {}}]";
    let op = add(lines);
    let told = |place: usize| json!(op.variants[place])["methods"].clone();
    assert_eq!(told(0), json!({"forward": "forward", "backward": "bwd(grad, output)"}));
    assert_eq!((told(1), told(2)), (Value::Null, json!({"forward": "forward", "backward": "backward"})));
    for phase in [Phase::Compile, Phase::Check, Phase::Tune, Phase::Bench] {
        assert!(op.variants[0].facts(phase).contains_key("methods"), "{phase}");
        assert!(!op.variants[1].facts(phase).contains_key("methods"), "{phase}: no key of another variant changes");
    }
}

#[test]
fn operations_are_allowed_for_checks() {
    let op = add("allow: [sum, mul_]");
    assert_eq!(op.allow, ["sum", "mul_"]);
    let facts = |phase| op.declaration(Profile::Cuda).facts(phase).contains_key("allow");
    assert_eq!(PHASES.map(facts), [false, false, true, false, false, false]);
}
