//! Baselines on a device: torch.compile in all its modes, two of which launch CUDA graphs, and functions.
//!
//! It does not know how fast they are.

use super::{Workspace, build, built, document};

/// Functions beside torch's: one that is right, one that is not, and one that breaks the device for its process.
const FUNCTIONS: &str = "\
import torch


def right(input, dim):
    return torch.softmax(input, dim)


def wrong(input, dim):
    return torch.softmax(input, dim) + 1e-2


def breaks(input, dim):
    return torch.take(input, torch.full((4,), 1 << 40, device=input.device)).cpu()
";

const MODES: [&str; 4] = [
    "torch.compile",
    "torch.compile:max-autotune",
    "torch.compile:reduce-overhead",
    "torch.compile:max-autotune-no-cudagraphs",
];

fn workspace(functions: &str) -> Workspace {
    let modes = MODES.join(", ");
    let workspace = Workspace::new(&format!(
        "version: 1
ops:
  softmax:
    torch: F.softmax
    inputs: {{input: [M, N]}}
    kwargs: {{dim: -1}}
    variants: [v1]
    bench:
      sizes: {{small: [64, 256], medium: [512, 512]}}
      runs: 3
      warmup_ms: 2
      rep_ms: 10
      baselines: [torch, {modes}, {functions}]
"
    ));
    workspace.write("lib/functions.py", FUNCTIONS);
    workspace
}

#[test]
#[ignore = "needs a CUDA device: tests/gpu.sh runs it"]
fn torch_compile_in_every_mode_and_a_function_of_the_workspace_have_figures() {
    let functions =
        "lib/functions.py::right, lib/functions.py::wrong, {name: absent, function: no_such_package.softmax}";
    let workspace = workspace(functions);
    let ran = built(build(&workspace, &["--device", "cuda", "softmax:baseline"]));
    assert_eq!(ran.code, Some(0), "{}", ran.told);
    let document = document(&workspace, "softmax:baseline", "baseline");
    println!("finals {}\nreasons {}", document["finals"], document["reasons"]);
    for name in MODES.iter().chain(&["torch", "right"]) {
        assert!(document["finals"][name].as_f64().is_some_and(|ms| ms > 0.0), "{name}: {document}");
    }
    for name in ["wrong", "absent"] {
        assert!(document["finals"][name].is_null() && document["reasons"][name].is_string(), "{name}: {document}");
    }
    assert_eq!(document["reasons"].as_object().unwrap().len(), 2, "{document}");
}

#[test]
#[ignore = "needs a CUDA device: tests/gpu.sh runs it"]
fn a_function_that_breaks_the_device_for_its_process_takes_no_figure_of_torch_along() {
    let workspace = workspace("lib/functions.py::right, lib/functions.py::breaks");
    let ran = built(build(&workspace, &["--device", "cuda", "softmax:baseline"]));
    assert_eq!(ran.code, Some(0), "{}", ran.told);
    let document = document(&workspace, "softmax:baseline", "baseline");
    println!("finals {}\nreasons {}", document["finals"], document["reasons"]);
    assert!(document["finals"]["torch"].as_f64().is_some_and(|ms| ms > 0.0), "{document}");
    assert!(document["finals"]["breaks"].is_null() && document["reasons"]["breaks"].is_string(), "{document}");
}
