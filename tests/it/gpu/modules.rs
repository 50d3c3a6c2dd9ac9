//! Kernels in classes, on a device: gradients of their parameters, buffers that a call changes, outputs that they keep, arguments of their constructors, and outputs in memory of their own.

use t2t_model::record::Outcome;

use super::{build, built, class, document};
use crate::environment;
use crate::workspace::Workspace;

const OPS: &str = "\
version: 1
defaults:
  check: {seeds: 2}
  bench: {sizes: {small: {M: 512, N: 1024}}, runs: 1, warmup_ms: 1, rep_ms: 20, baselines: [torch]}
ops:
  scaled:
    reference: {file: lib/reference.py, name: Scaled, init: {dim: N}}
    inputs: {x: [M, N]}
    backward: true
    variants: [{name: right, entry: Scaled}, {name: zero, entry: Scaled}]
  centered:
    reference: {file: lib/reference.py, name: Centered, init: {dim: N}}
    inputs: {x: [M, N]}
    check: {atol: 1.0e-4, rtol: 1.0e-4}
    variants: [{name: right, entry: Centered}, {name: still, entry: Centered}, {name: kept, entry: Centered}]
  rms:
    reference: {file: lib/reference.py, name: Rms, init: {dim: N, eps: 1.0e-6, centered: false, negative_slope: 0.1}}
    inputs: {x: [M, N]}
    check: {atol: 1.0e-4, rtol: 1.0e-4}
    variants: [{name: right, entry: Rms}, {name: once, entry: Rms}, {name: sloped, entry: Rms}]
  sums:
    reference: {file: lib/reference.py, name: Sums, init: {dim: N}}
    inputs: {x: [M, N]}
    check: {atol: 1.0e-3, rtol: 1.0e-4}
    variants: [{name: right, entry: Sums}, {name: first, entry: Sums}]
";

/// Each careless variant: its target, the file that it is made of, what is written there, what it has instead, and how its check ends.
const CARELESS: [(&str, &str, &str, &str, &str); 6] = [
    (
        "scaled/zero",
        "scaled.py",
        "return multiplied(grad, weight), of_weight",
        "return multiplied(grad, weight), torch.zeros_like(weight)",
        "mismatch",
    ),
    (
        "centered/kept",
        "centered.py",
        "        out = torch.empty((M, N), dtype=x.dtype, device=x.device)\n",
        "        if getattr(self, 'out', None) is None or self.out.shape != x.shape:\n            self.out = torch.empty((M, N), dtype=x.dtype, device=x.device)\n        out = self.out\n",
        "aliased",
    ),
    (
        "centered/still",
        "centered.py",
        "    tl.store(mean_ptr + col, 0.9 * mean + 0.1 * (tl.sum(x) / M))\n",
        "",
        "mismatch",
    ),
    (
        "sums/first",
        "sums.py",
        "self.rate = torch.linspace(0.5, 1.5, 4)[1].item()",
        "self.rate = torch.linspace(0.5, 1.5, 4)[0].item()",
        "mismatch",
    ),
    ("rms/once", "rms.py", "self.calls += 1", "self.calls.fill_(1)", "mismatch"),
    ("rms/sloped", "rms.py", "numbers = self.eps, self.slope", "numbers = self.eps, 0.1", "mismatch"),
];

#[test]
#[ignore = "needs a CUDA device: tests/gpu.sh runs it"]
fn what_a_module_holds_is_judged_and_a_right_one_that_changes_it_is_measured() {
    let workspace = Workspace::new(OPS);
    let text =
        |file: &str| std::fs::read_to_string(environment::root().join("tests/gpu_kernels/modules").join(file)).unwrap();
    workspace.write("lib/reference.py", text("reference.py"));
    for op in ["scaled", "centered", "rms", "sums"] {
        workspace.write(&format!("kernels/{op}/right.py"), text(&format!("{op}.py")));
    }
    for (target, file, written, instead, _) in CARELESS {
        let right = text(file);
        assert!(right.contains(written), "{file}: {written}");
        workspace.write(&format!("kernels/{target}.py"), right.replace(written, instead));
    }
    let ran = built(build(&workspace, &["--device", "cuda:0"]));
    assert_eq!(ran.code, Some(1), "{}", ran.told);
    for op in ["scaled", "centered", "rms", "sums"] {
        assert!(
            document(&workspace, &format!("{op}/right:bench"), "bench")["final_ms"].as_f64().unwrap() > 0.0,
            "{}",
            ran.told
        );
    }
    for (target, .., expected) in CARELESS {
        let record = workspace.record_on(class(), &format!("{target}:check")).unwrap();
        assert_eq!(record.outcome, Outcome::Rejected { class: expected.to_owned() }, "{target}\n{}", ran.told);
    }
}
