//! What ops call and what calls it: references in Python, kernels that several ops share, files anywhere in the workspace.

use crate::project::Project;
use crate::workspace::Workspace;

const OPS: &str = "\
version: 1
defaults: {bench: {sizes: {small: [16, 16]}}}
ops:
  double:
    reference: kernels/double/reference.py::double
    inputs: {input: [M, N]}
    variants: [{name: v1, path: lib/shared.py, entry: double}]
  triple:
    torch: torch.nn.functional.gelu
    inputs: {input: [M, N]}
    variants: [{name: v1, path: lib/shared.py, entry: triple}]
";

const REFERENCE: &str = "from kernels.shared import factor\n\n\ndef double(input):\n    return input * factor\n";

fn project() -> Project {
    let project = Project::with(OPS);
    project.write("kernels/double/reference.py", REFERENCE);
    project.write("kernels/shared.py", "factor = 2\n");
    project.write(
        "lib/shared.py",
        "MARK = \"\"\n\n\ndef double(input):\n    return input\n\n\ndef triple(input):\n    return input\n",
    );
    project
}

#[test]
fn a_reference_is_in_the_keys_of_what_calls_it() {
    let project = project();
    project.build().exits(0);
    project.edit("kernels/double/reference.py", "input * factor", "factor * input  # a comment");
    let calls = |ran: &str| ran.starts_with("double:analyze") && ran.contains(" double/v1:check");
    let ran = project.build().exits(0).actions;
    assert!(calls(&ran), "{ran}");
    assert!(!ran.contains("compile") && !ran.contains("triple"), "{ran}");
    project.edit("kernels/shared.py", "2", "3");
    let ran = project.build().exits(0).actions;
    assert!(calls(&ran), "what it imports is, too: {ran}");
    project.edit("kernels/double/reference.py", "a comment", "another");
    project.build().exits(0).runs("");
}

#[test]
fn a_shared_file_is_the_kernel_of_each_op_that_names_it() {
    let project = project();
    project.build().exits(0);
    project.edit("lib/shared.py", "return input\n\n\n", "return input + 0\n\n\n");
    let ran = project.build().exits(0).actions;
    assert!(ran.contains("double/v1:compile,check") && ran.contains("triple/v1:compile,check"), "{ran}");
    project.edit("lib/shared.py", "def triple", "def quadruple");
    let ran = project.build().exits(1);
    ran.says("error: lib/shared.py: no callable `triple`; the file has `double`, `quadruple`")
        .never_says("double/v1:check");
}

#[test]
fn a_reference_may_not_import_what_is_held_against_it() {
    let project = project();
    project.edit("ops.yaml", "path: lib/shared.py, entry: double", "path: kernels/double/v1.py, entry: double");
    project.write("kernels/double/v1.py", "def double(input):\n    return input\n");
    project.edit(
        "kernels/double/reference.py",
        "def double(input):\n",
        "def double(input):\n    import kernels.double.v1\n",
    );
    let message = "error: ops.yaml: the reference of `double`, `kernels/double/reference.py`, imports its variant `v1`\n\
        hint: let the reference compute with torch alone\n";
    project.build().exits(2).says(message);
}

const REAL: &str = "\
version: 1
defaults: {bench: {sizes: {small: [16, 16]}}}
ops:
  scaled:
    reference: {file: lib/model.py, name: Model, init: {features: N}}
    inputs: {input: [M, N]}
    check: {seeds: 1, edges: {strided: {off: the launcher asks for dense rows}, transposed: off}}
    variants:
      - {name: right, path: lib/kernels.py, entry: Right}
      - {name: wrong, path: lib/kernels.py, entry: Wrong}
";

const MODEL: &str = "\
import torch


class Model(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(features))

    def forward(self, input):
        return input * self.weight
";

const KERNELS: &str = "\
import torch
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, w_ptr, o_ptr, n, columns, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    w = tl.load(w_ptr + offsets % columns, mask=mask)
    tl.store(o_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * w, mask=mask)


class Right(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(features))

    def forward(self, x):
        assert x.is_contiguous()
        out = torch.empty_like(x)
        if x.numel():
            scale_kernel[(triton.cdiv(x.numel(), 64),)](x, self.weight, out, x.numel(), x.shape[-1], BLOCK=64)
        return out


class Wrong(Right):
    def forward(self, x):
        self.weight += 1
        return super().forward(x)
";

#[test]
fn a_class_outside_of_kernels_is_judged_with_the_weights_of_its_reference() {
    let workspace = Workspace::with_zygote(REAL);
    workspace.write("lib/model.py", MODEL);
    workspace.write("lib/kernels.py", KERNELS);
    let ran = workspace.build(&["scaled:check"]);
    assert_eq!(ran.code, Some(1), "{}", ran.told);
    let ends = ["scaled/right:check", "scaled/wrong:check"].map(|target| workspace.outcome(target));
    assert_eq!(ends, ["passed", "mutated-input"], "{}", ran.told);
    let analysis = workspace.document("scaled:analyze", "analysis");
    assert_eq!(analysis["operation"], "lib/model.py::Model");
    let evidence = workspace.document("scaled/right:check", "evidence");
    let said = "edges not asked for: padded (the launcher asks for dense rows), strided (the launcher asks for dense rows), transposed";
    assert_eq!(evidence["notes"][0], said, "{}", evidence["notes"]);
}
