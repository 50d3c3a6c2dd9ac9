//! Dims, and the sizes that give them lengths.
//!
//! It does not know how sizes are measured.

use super::refused;

#[test]
fn every_dim_is_bound() {
    let text = "\
version: 1
ops:
  matmul:
    torch: matmul
    inputs: {input: [M, K], other: [K, N]}
    bench: {sizes: {small: {M: 1, N: 2}, large: {}}}
";
    let expected = "\
error: ops.yaml:6:28: op `matmul`: size `small` leaves dim `K` unbound
  |
6 |     bench: {sizes: {small: {M: 1, N: 2}, large: {}}}
  |                            ^
hint: add `K: 256` to the size, or to `dims`

error: ops.yaml:6:49: op `matmul`: size `large` leaves dims `M`, `K`, `N` unbound
  |
6 |     bench: {sizes: {small: {M: 1, N: 2}, large: {}}}
  |                                                 ^
hint: add `M: 256` to the size, or to `dims`
";
    refused(text, expected);
}

#[test]
fn a_tensor_has_no_more_bytes_than_torch_counts() {
    let text = "\
version: 1
ops:
  add:
    torch: add
    inputs: {input: [M, N]}
    bench: {sizes: {small: [4294967296, 268435455]}}
    check: {sizes: {small: [4294967296, 268435456]}}
";
    let expected = "\
error: ops.yaml:5:14: op `add`: size `small` gives input `input` more bytes than any memory has
  |
5 |     inputs: {input: [M, N]}
  |              ^
hint: give the op smaller sizes
";
    refused(text, expected);
}

#[test]
fn a_size_binds_free_dims_only() {
    let text = "\
version: 1
ops:
  matmul:
    torch: matmul
    inputs: {input: [M, K], other: [K, N]}
    dims: {K: 5, L: 3}
    bench: {sizes: {small: {M: 1, N: 2, K: 3}, large: {M: 1, N: 2, X: 3}}}
";
    let expected = "\
error: ops.yaml:6:18: op `matmul`: nothing uses dim `L`
  |
6 |     dims: {K: 5, L: 3}
  |                  ^
hint: known: `M`, `K`, `N`

error: ops.yaml:7:28: op `matmul`: size `small` binds dim `K`, which `dims` fixes to 5
  |
7 |     bench: {sizes: {small: {M: 1, N: 2, K: 3}, large: {M: 1, N: 2, X: 3}}}
  |                            ^
hint: remove `K` here or under `dims`

error: ops.yaml:7:55: op `matmul`: size `large` binds `X`, but there are 2 free dims (`M`, `N`)
  |
7 |     bench: {sizes: {small: {M: 1, N: 2, K: 3}, large: {M: 1, N: 2, X: 3}}}
  |                                                       ^
hint: known: `M`, `N`
";
    refused(text, expected);
}

#[test]
fn a_size_has_the_right_arity() {
    let text = "\
version: 1
ops:
  softmax:
    torch: F.softmax
    inputs: {input: [M, N]}
    check: {sizes: {odd: [7]}}
    bench: {sizes: {small: [1, 2], medium: [1, 2, 3]}}
";
    let expected = "\
error: ops.yaml:6:26: op `softmax`: size `odd` has 1 number for 2 free dims (`M`, `N`)
  |
6 |     check: {sizes: {odd: [7]}}
  |                          ^
hint: give each free dim a length, as in `{M: 256, N: 256}`

error: ops.yaml:7:44: op `softmax`: size `medium` has 3 numbers for 2 free dims (`M`, `N`)
  |
7 |     bench: {sizes: {small: [1, 2], medium: [1, 2, 3]}}
  |                                            ^
hint: give each free dim a length, as in `{M: 256, N: 256}`
";
    refused(text, expected);
}

#[test]
fn an_op_that_the_default_sizes_do_not_fit_needs_its_own() {
    let text = "\
version: 1
defaults: {bench: {sizes: {small: [256, 256], large: [4096, 4096]}}}
ops:
  softmax: {torch: F.softmax, inputs: {input: [M, N]}}
  matmul:
    torch: matmul
    inputs: {input: [M, K], other: [K, N]}
";
    let expected = "\
error: ops.yaml:5:3: op `matmul`: size `small` of `defaults` has 2 numbers for 3 free dims (`M`, `K`, `N`)
  |
5 |   matmul:
  |   ^
hint: add `bench: {sizes: {small: {M: 256, K: 256, N: 256}}}` with the op's other sizes, or lengths under `dims`
";
    refused(text, expected);
}

#[test]
fn a_profile_fixes_dims_that_some_op_has() {
    let text = "\
version: 1
profiles: {cpu: {dims: {m: 4}}, cuda: {}}
ops:
  add: {torch: add, inputs: {input: [M, N]}}
";
    let expected = "\
error: ops.yaml:2:25: no op has a dim `m`
  |
2 | profiles: {cpu: {dims: {m: 4}}, cuda: {}}
  |                         ^
hint: did you mean `M`?

error: ops.yaml:2:33: unknown key `cuda` in `profiles`
  |
2 | profiles: {cpu: {dims: {m: 4}}, cuda: {}}
  |                                 ^
hint: known: `cpu`
";
    refused(text, expected);
}

#[test]
fn a_size_gives_every_expression_a_length() {
    let text = "\
version: 1
ops:
  add:
    torch: add
    inputs: {input: [M, N // 64], other: [M, N - 16]}
    bench: {sizes: {small: {M: 4, N: 128}}}
    profiles: {cpu: {bench: {sizes: {small: {M: 4, N: 16}}}}}
";
    let expected = "\
error: ops.yaml:5:14: op `add`: size `small` gives input `input` the length 0 for `N//64`
  |
5 |     inputs: {input: [M, N // 64], other: [M, N - 16]}
  |              ^
hint: give the op sizes at which every length is at least 1

error: ops.yaml:5:35: op `add`: size `small` gives input `other` the length 0 for `N-16`
  |
5 |     inputs: {input: [M, N // 64], other: [M, N - 16]}
  |                                   ^
hint: give the op sizes at which every length is at least 1
";
    refused(text, expected);
}

#[test]
fn a_size_that_nobody_wrote_is_told_with_where_it_comes_from() {
    let text = "\
version: 1
ops:
  dequantized:
    torch: add
    inputs: {input: [M, N], other: [M, N - 5000]}
    bench: {sizes: {small: {M: 4, N: 6000}}}
    check: {sizes: {small: {M: 4, N: 5010}}}
";
    let expected = "\
error: ops.yaml:5:29: op `dequantized`: size `large` of the built-in CPU profile gives input `other` the length -4936 for `N-5000`
  |
5 |     inputs: {input: [M, N], other: [M, N - 5000]}
  |                             ^
hint: give the op `profiles: {cpu: {bench: {sizes: …}}}` at which every length is at least 1

error: ops.yaml:5:29: op `dequantized`: size `medium` of the built-in CPU profile gives input `other` the length -4968 for `N-5000`
  |
5 |     inputs: {input: [M, N], other: [M, N - 5000]}
  |                             ^
hint: give the op `profiles: {cpu: {bench: {sizes: …}}}` at which every length is at least 1

error: ops.yaml:5:29: op `dequantized`: size `small` of the built-in CPU profile gives input `other` the length -4984 for `N-5000`
  |
5 |     inputs: {input: [M, N], other: [M, N - 5000]}
  |                             ^
hint: give the op `profiles: {cpu: {bench: {sizes: …}}}` at which every length is at least 1
";
    refused(text, expected);
}

#[test]
fn what_is_not_of_its_type_makes_no_second_mistake() {
    let text = "\
version: 1
defaults:
  bench: {sizes: [1, 2]}
ops:
  softmax:
    torch: F.softmax
    inputs: {input: [M, N]}
    dims: {M: 0}
    dtypes: [fp8]
    check: {sizes: {small: {N: 0}}}
";
    let expected = "\
error: ops.yaml:3:18: `defaults.bench.sizes`: expected sizes mapping, found a list of 2
  |
3 |   bench: {sizes: [1, 2]}
  |                  ^
hint: its keys are `small`, `medium`, `large`

error: ops.yaml:8:15: `ops.softmax.dims.M`: expected integer ≥ 1, found integer `0`
  |
8 |     dims: {M: 0}
  |               ^
hint: write it in digits, without quotes, such as `1`

error: ops.yaml:9:14: unknown dtype `fp8`
  |
9 |     dtypes: [fp8]
  |              ^
hint: known: `float32`, `float16`, `bfloat16`, `float64`, `int8`, `int16`, `int32`, `int64`, `uint8`, `bool`

error: ops.yaml:10:32: `ops.softmax.check.sizes.small.N`: expected integer ≥ 1, found integer `0`
   |
10 |     check: {sizes: {small: {N: 0}}}
   |                                ^
hint: write it in digits, without quotes, such as `1`
";
    refused(text, expected);
}
