//! What only a CUDA device can show. Each test is ignored where `cargo test` runs them, with the reason; tests/gpu.sh runs them on a machine that has a device.

use serde_json::Value;
use t2t::action::DeviceClass;
use t2t::device;
use t2t::store::cas::Cas;

use crate::workspace::Workspace;

const OPS: &str = "version: 1
defaults:
  dtypes: [float32, float16, bfloat16]
  check: {seeds: 1, timeout: 60s}
  bench: {sizes: {small: [256, 256], medium: [512, 512]}, runs: 2, baselines: [torch]}
ops:
  softmax:
    torch: softmax
    inputs: {input: [M, N]}
    kwargs: {dim: -1}
    variants: [v1_baseline, v4_optimized]
";

const V4: &str = "kernels/softmax/v4_optimized.py";

fn workspace(ops: &str) -> Workspace {
    let workspace = Workspace::new(ops);
    for variant in ["kernels/softmax/v1_baseline.py", V4] {
        workspace.copy(variant, variant);
    }
    workspace
}

/// The class of this machine's device: the model that the table has for its name.
fn class() -> DeviceClass {
    let found = device::devices(None, None);
    let name = &found.first().expect("tests/gpu.sh runs this on a machine with a CUDA device").name;
    let table = device::Models::read(t2t::assets::carried(t2t::assets::DEVICES).unwrap()).unwrap();
    DeviceClass::Cuda(table.find(name).map_or_else(|| device::plain_id(name), |(id, _)| id))
}

fn document(workspace: &Workspace, target: &str, name: &str) -> Value {
    let record = workspace.record_on(class(), target).unwrap_or_else(|| panic!("{target} has no record"));
    let bytes = Cas::open(&workspace.path("cache")).get(record.outputs[name].digest).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

fn expect_no_miss(workspace: &Workspace, target: &str, name: &str) {
    let cache = document(workspace, target, name)["triton_cache"].clone();
    assert_eq!(cache["misses"], serde_json::json!([]), "{target}");
    assert!(cache["hits"].as_u64().unwrap() > 0, "{target} found nothing compiled");
    assert_eq!(cache["launchers"]["misses"], serde_json::json!([]), "{target}");
    assert!(cache["launchers"]["hits"].as_u64().unwrap() > 0, "{target} launched nothing");
}

#[test]
#[ignore = "needs a CUDA device: tests/gpu.sh runs it"]
fn everything_that_a_device_launches_was_compiled_before_and_stays_so_when_a_comment_changes() {
    let workspace = workspace(OPS);
    let ran = workspace.run(&["build", "--device", "cuda"]);
    assert_eq!(ran.code, Some(0), "{}", ran.told);
    for variant in ["v1_baseline", "v4_optimized"] {
        expect_no_miss(&workspace, &format!("softmax/{variant}:check"), "evidence");
        expect_no_miss(&workspace, &format!("softmax/{variant}:bench"), "bench");
    }
    expect_no_miss(&workspace, "softmax/v4_optimized:tune", "tune");
    workspace.edit(V4, "import torch\n", "# a comment that moves every line\n\nimport torch\n");
    assert_eq!(workspace.kept_by(|| drop(workspace.run(&["build", "--device", "cuda"]))), Vec::<String>::new());
    workspace.run(&["build", "--device", "cuda", "--force", "softmax/v4_optimized:check"]);
    expect_no_miss(&workspace, "softmax/v4_optimized:check", "evidence");
}

/// Kernels that go wrong on a device, with the class that they must have.
const BAD: [(&str, &str, &str); 3] = [
    ("out_of_bounds", "exception", "tl.store(o + tl.arange(0, 128) + 10**12, 1.0)"),
    ("endless", "timeout", "\n    while tl.program_id(0) < 1:\n        tl.store(o, tl.load(o) + 1.0)"),
    ("unwritten", "nan", "pass"),
];

fn bad_kernel(body: &str) -> String {
    format!(
        "import torch\nimport triton\nimport triton.language as tl\n\n\n@triton.jit\ndef kernel(o):\n    {body}\n\n\n\
         def triton_softmax(input, dim=-1):\n    out = torch.empty_like(input)\n    kernel[(1,)](out)\n    return out\n"
    )
}

#[test]
#[ignore = "needs a CUDA device: tests/gpu.sh runs it"]
fn a_kernel_that_goes_wrong_on_a_device_is_rejected_and_leaves_the_next_unharmed() {
    let names: Vec<&str> = BAD.iter().map(|(name, ..)| *name).collect();
    let variants = format!("variants: [{}, v1_baseline]", names.join(", "));
    let ops = OPS.replace("variants: [v1_baseline, v4_optimized]", &variants);
    let workspace =
        workspace(&ops.replace("timeout: 60s", "timeout: 20s").replace("[float32, float16, bfloat16]", "[float32]"));
    for (name, _, body) in BAD {
        workspace.write(&format!("kernels/softmax/{name}.py"), bad_kernel(body));
    }
    let ran = workspace.run(&["build", "--device", "cuda"]);
    assert_eq!(ran.code, Some(1), "{}", ran.told);
    for (name, class, _) in BAD {
        assert_eq!(
            document(&workspace, &format!("softmax/{name}:check"), "verdict")["class"],
            class,
            "{name}: {}",
            ran.told
        );
    }
    assert_eq!(document(&workspace, "softmax/v1_baseline:check", "verdict")["verdict"], "passed");
}
