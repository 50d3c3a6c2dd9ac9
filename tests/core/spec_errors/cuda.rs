//! Variants in CUDA C++.

use super::refused;

#[test]
fn a_variant_in_cuda_is_a_cu_and_a_python_file_that_persons_wrote() {
    let text = "\
version: 1
ops:
  add:
    torch: add
    inputs: {input: [M, N]}
    variants:
      - {name: a, file: a.cu}
      - {name: b, operator: b.py}
      - {name: c, lang: cuda, file: c.cpp}
      - {name: d, lang: cuda, operator: d.cu}
      - {name: e, lang: cuda, module: installed}
      - {name: f, lang: cuda, generator: template}
      - {name: g, lang: cuda, lanes: [interpreter, cuda]}
      - {name: h, lang: cuda, lanes: [cuda]}
      - {name: i, lang: hip}
      - {name: j, lang: cuda, file: j.py, operator: k.py}
";
    let expected = "\
error: ops.yaml:7:25: op `add`: a `.cu` is no kernel file in Triton
  |
7 |       - {name: a, file: a.cu}
  |                         ^
hint: add `lang: cuda`

error: ops.yaml:8:29: op `add`: `operator` is of variants in CUDA C++
  |
8 |       - {name: b, operator: b.py}
  |                             ^
hint: add `lang: cuda`, or remove it

error: ops.yaml:9:37: op `add`: the file of a variant in CUDA C++ ends in neither `.cu` nor `.py`
  |
9 |       - {name: c, lang: cuda, file: c.cpp}
  |                                     ^
hint: name the `.cu`, whose kernels a Python file launches, or the Python file that calls `load_inline`

error: ops.yaml:10:41: op `add`: `operator` does not end in `.py`
   |
10 |       - {name: d, lang: cuda, operator: d.cu}
   |                                         ^
hint: name the Python file that has the wrapper

error: ops.yaml:11:39: op `add`: a variant has `lang: cuda` and `module`
   |
11 |       - {name: e, lang: cuda, module: installed}
   |                                       ^
hint: keep one: nvcc compiles a file of the workspace, `module` is installed

error: ops.yaml:12:42: op `add`: a variant has `lang: cuda` and `generator`
   |
12 |       - {name: f, lang: cuda, generator: template}
   |                                          ^
hint: remove `generator`: generators write Triton

error: ops.yaml:13:38: op `add`: CUDA C++ runs on a CUDA device alone
   |
13 |       - {name: g, lang: cuda, lanes: [interpreter, cuda]}
   |                                      ^
hint: remove `lanes`: without a device such a variant is compiled and not judged

error: ops.yaml:15:25: unknown lang `hip`
   |
15 |       - {name: i, lang: hip}
   |                         ^
hint: known: `triton`, `cuda`

error: ops.yaml:16:53: op `add`: a variant has a Python file and `operator`
   |
16 |       - {name: j, lang: cuda, file: j.py, operator: k.py}
   |                                                     ^
hint: keep one: a Python file with CUDA C++ in it has the wrapper, too
";
    refused(text, expected);
}
