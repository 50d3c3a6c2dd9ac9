//! Variants whose Python file has torch build files in C++ and CUDA C++, on a machine without a device: compiled by the nvcc of the tests' interpreter.
//!
//! What they do on a device is in `gpu`.

use std::time::Instant;

use crate::environment;
use crate::real::adoption::copied;
use crate::real::cuda::{self, has_nvcc, parts, stale};
use crate::whole;
use crate::workspace::{Ran, Workspace};

const COMPILE: &str = "softmax/extension:compile";
const SOURCE: &str = "kernels/softmax/extension.cu";
const HEADER: &str = "kernels/softmax/shuffle.cuh";

fn is_stale(workspace: &Workspace, target: &str) -> bool {
    stale(workspace).iter().any(|line| line.contains(target))
}

#[test]
#[ignore = "takes minutes; tests/whole.json tells whether it has to run"]
fn whole_what_nvcc_compiles_is_compiled_anew_where_it_has_to_be_and_told_at_its_line() {
    assert!(has_nvcc(), "there is no nvcc");
    cuda::both_languages_are_compiled_and_cuda_is_not_judged();
    cuda::what_nvcc_refuses_is_told_at_its_line();
    cuda::what_a_python_file_has_torch_build_is_built_and_an_edited_kernel_changes_one_part();
    a_cu_with_torchs_headers_is_built_and_an_edited_header_changes_one_part();
    a_library_of_several_files_is_built_and_each_file_is_in_the_key();
    what_cannot_be_built_of_files_is_told_at_its_line();
    cuda::the_list_of_architectures_is_torchs();
    whole::CUDA.note(&environment::root());
}

/// Without a device.
fn a_cu_with_torchs_headers_is_built_and_an_edited_header_changes_one_part() {
    if !has_nvcc() {
        return;
    }
    let workspace = copied("examples/cuda");
    let told = workspace.build(&[COMPILE, "softmax/extension:check"]);
    assert_eq!((told.code, workspace.outcome(COMPILE).as_str()), (Some(0), "passed"), "{}", told.told);
    assert_eq!(workspace.outcome("softmax/extension:check"), "not-judged");
    let resources = workspace.document(COMPILE, "resources");
    let kernels = resources["kernels"].as_array().unwrap();
    assert_eq!(kernels.len(), 6, "float32, float16, bfloat16, forward and backward: {resources}");
    assert!(kernels.iter().all(|kernel| kernel["registers"].as_u64().unwrap() > 8), "{resources}");
    let ir = |stage: &str| workspace.run(&["ir", "softmax/extension", "--stage", stage]);
    assert!(ir("ptx").out.contains(".entry _Z14softmax_kernel"), "{}", ir("ptx").told);
    let first = parts(&workspace, COMPILE);
    assert_eq!(first.len(), 2, "the host half, the kernels: {first:?}");
    // The op that times the backward pass has the same files, and another entry.
    assert!(is_stale(&workspace, "softmax_backward/extension:compile"));

    workspace.edit(SOURCE, "  float dot = 0.0f;", "  // The first pass.\n  float  dot=0.0f ;");
    workspace.edit(HEADER, "#pragma once", "#pragma once // and no more often");
    workspace.edit("kernels/softmax/extension.py", "import torch\n", "# torch\nimport torch\n");
    assert!(!is_stale(&workspace, COMPILE), "comments and whitespace have no meaning");

    assert_eq!(workspace.run(&["cache", "export", "kept.tar"]).code, Some(0));
    let other = copied("examples/cuda");
    other.write("kept.tar", std::fs::read(workspace.path("kept.tar")).unwrap());
    assert_eq!(other.run(&["cache", "import", "kept.tar"]).code, Some(0));
    let told = other.build(&[COMPILE]).told;
    assert!(told.contains("ran 0"), "{told}");

    workspace.edit(HEADER, "value += __shfl", "value = value + __shfl");
    assert!(is_stale(&workspace, COMPILE), "an included file is part of the variant");
    let begun = Instant::now();
    let told = workspace.build(&[COMPILE]);
    assert_eq!(workspace.outcome(COMPILE), "passed", "{}", told.told);
    println!("an edited header of kernels was compiled in {:?}", begun.elapsed());
    assert_eq!(parts(&workspace, COMPILE).intersection(&first).count(), 1, "torch's headers are not read again");
}

const OPS: &str = "\
version: 1
ops:
  relu:
    torch: torch.relu
    inputs: {input: [M, N]}
    dtypes: [float32]
    entry: relu
    variants: [{name: library, lang: cuda}]
";
const LIBRARY: &str = "relu/library:compile";

fn of_relu(files: [(&str, &str); 4]) -> Workspace {
    let workspace = Workspace::new(OPS);
    for (name, text) in files {
        workspace.write(&format!("kernels/relu/{name}"), text);
    }
    workspace
}

const KERNEL: &str = "\
#include \"library.h\"
__global__ void relu_kernel(const float* x, float* y, long n) {
  long i = blockIdx.x * 256L + threadIdx.x;
  if (i < n) y[i] = x[i] < 0 ? 0 : x[i];
}
void launch_relu(const float* x, float* y, long n, cudaStream_t stream) {
  relu_kernel<<<(n + 255) / 256, 256, 0, stream>>>(x, y, n);
}
";
const BINDING: &str = "\
#include <ATen/ATen.h>
#include <ATen/cuda/CUDAContext.h>
#include <torch/library.h>
#include \"library.h\"
at::Tensor relu(const at::Tensor& input) {
  at::Tensor x = input.contiguous(), y = at::empty_like(x);
  if (x.numel() > 0) launch_relu(x.data_ptr<float>(), y.data_ptr<float>(), x.numel(), at::cuda::getCurrentCUDAStream());
  return y;
}
TORCH_LIBRARY(t2t_relu, m) { m.def(\"relu(Tensor input) -> Tensor\"); }
TORCH_LIBRARY_IMPL(t2t_relu, CUDA, m) { m.impl(\"relu\", &relu); }
";
const OPERATOR: &str = "\
from pathlib import Path

import torch
from torch.utils import cpp_extension

HERE = Path(__file__).parent
cpp_extension.load('relu_library', [str(HERE / 'library.cpp'), str(HERE / 'library.cu')], is_python_module=False)
relu_of_library = torch.ops.t2t_relu.relu


def relu(input):
    return relu_of_library(input)
";

const FILES: [(&str, &str); 4] =
    [("library.cu", KERNEL), ("library.cpp", BINDING), ("library.h", DECLARED), ("library.py", OPERATOR)];
const DECLARED: &str =
    "#pragma once\n#include <cuda_runtime.h>\nvoid launch_relu(const float*, float*, long, cudaStream_t);\n";

/// Returns a workspace whose only variant is a library of two files, with an operator that torch knows.
pub fn library() -> Workspace {
    of_relu(FILES)
}

/// Its operators are torch's.
fn a_library_of_several_files_is_built_and_each_file_is_in_the_key() {
    if !has_nvcc() {
        return;
    }
    let workspace = library();
    let told = workspace.build(&[LIBRARY]);
    assert_eq!((told.code, workspace.outcome(LIBRARY).as_str()), (Some(0), "passed"), "{}", told.told);
    let resources = workspace.document(LIBRARY, "resources");
    assert_eq!(resources["kernels"][0]["kernel"], "_Z11relu_kernelPKfPfl", "{resources}");
    let first = parts(&workspace, LIBRARY);
    assert_eq!(first.len(), 3, "the binding, and the two halves of the kernel's file: {first:?}");

    for file in FILES {
        let (name, text) = (format!("kernels/relu/{}", file.0), file.1);
        workspace.write(&name, format!("{text}{}x = 1;\n", if name.ends_with("py") { "" } else { "const int " }));
        assert!(is_stale(&workspace, LIBRARY), "{name} is in the key");
        workspace.write(&name, text);
        assert!(!is_stale(&workspace, LIBRARY), "{name} is as it was");
    }
    workspace.edit("kernels/relu/library.cu", "x[i] < 0 ? 0 : x[i]", "x[i] > 0 ? x[i] : 0");
    let told = workspace.build(&[LIBRARY]);
    assert_eq!(workspace.outcome(LIBRARY), "passed", "{}", told.told);
    assert_eq!(parts(&workspace, LIBRARY).intersection(&first).count(), 2, "torch's headers are not read again");
}

/// A module with Python's own headers, which compilers read quickly.
const QUICK: &str = "\
#include <Python.h>
#include \"library.h\"
static PyModuleDef own = {PyModuleDef_HEAD_INIT, \"quick\", \"\", -1, nullptr};
PyMODINIT_FUNC PyInit_quick() { return PyModule_Create(&own); }
";

fn what_cannot_be_built_of_files_is_told_at_its_line() {
    if !has_nvcc() {
        return;
    }
    let kernel = "#pragma once\n__global__ void k(float* y) {\n  *y = one;\n}\n";
    let load = "import os\nfrom torch.utils.cpp_extension import load\n\n\ndef relu(input):\n    return input\n\n\nhere = os.path.dirname(__file__)\n";
    let operator = |call: &str| format!("{load}{call}\n");
    let workspace = of_relu([("library.cu", QUICK), ("library.h", kernel), ("b.cpp", ""), ("library.py", "")]);
    let rejected = |call: &str| -> (String, Ran) {
        workspace.write("kernels/relu/library.py", operator(call));
        let told = workspace.build(&[LIBRARY]);
        assert_eq!(told.code, Some(1), "{}", told.told);
        (workspace.outcome(LIBRARY), told)
    };
    let own = "load('quick', [os.path.join(here, 'library.cu')])";
    let (class, ran) = rejected(own);
    assert!(class == "compile-error" && ran.told.contains("kernels/relu/library.h:3"), "{class}: {}", ran.told);
    assert!(ran.told.contains("identifier \"one\" is undefined") && ran.told.contains("*y = one;"), "{}", ran.told);

    for call in ["", "import t2t_cuda\nkernels = t2t_cuda.load(__file__)"] {
        let (class, ran) = rejected(call);
        assert_eq!(class, "source", "{}", ran.told);
        assert!(ran.told.contains("library.py: nothing loads `library.cu`"), "{}", ran.told);
        assert!(ran.told.contains("one for `t2t_cuda` has CUDA's headers alone"), "{}", ran.told);
    }
    let (class, ran) = rejected("load('quick', [f'{here}/library.cu', os.path.join(here, 'b' + '.cpp')])");
    assert!(class == "source" && ran.told.contains("`kernels/relu/b.cpp`, and no key holds it"), "{}", ran.told);

    workspace.edit("kernels/relu/library.h", "*y = one;", "*y = 1;");
    workspace.write("kernels/relu/library.py", operator(own));
    let told = workspace.build(&[LIBRARY]);
    assert_eq!(workspace.outcome(LIBRARY), "passed", "{}", told.told);
    workspace.edit("kernels/relu/library.cu", "library.h", "libraries.h");
    let told = workspace.build(&[LIBRARY]).told;
    assert!(told.contains("libraries.h: No such file") && told.contains("included between quotes"), "{told}");
    assert!(told.contains("kernels/relu/library.cu:2"), "{told}");
}
