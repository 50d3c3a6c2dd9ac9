//! Inputs, their dtypes and how they are drawn.
//!
//! It does not know which values are drawn.

use super::refused;

#[test]
fn inputs_must_be_drawable() {
    let text = "\
version: 1
ops:
  gather:
    torch: gather
    inputs:
      input: {shape: [M], layout: transposed}
      index: {shape: [M], dtype: int64, requires_grad: true}
      other: {shape: [M], init: {normal: [0, 1], constant: 3}}
      third: {shape: [M], dtype: int32, init: {randint: [5, 5]}}
    kwargs: {index: 1, low: -.inf}
    mutates: [inptu, index]
    overwrites: [other, index, thrid]
    bench: {sizes: {small: 1}}
";
    let expected = "\
error: ops.yaml:6:35: op `gather`: layout `transposed` does not suit the shape of input `input`
  |
6 |       input: {shape: [M], layout: transposed}
  |                                   ^
hint: `transposed` needs 2 dims or more, `strided` 1 or more, `channels_last` 4

error: ops.yaml:7:34: op `gather`: input `index` is int64 and needs an init for integers
  |
7 |       index: {shape: [M], dtype: int64, requires_grad: true}
  |                                  ^
hint: add `init: {randint: [0, 10]}`, or `offsets`, `constant`, `ones`

error: ops.yaml:7:56: op `gather`: input `index` is int64 and has no gradient
  |
7 |       index: {shape: [M], dtype: int64, requires_grad: true}
  |                                                        ^
hint: remove `requires_grad`

error: ops.yaml:8:33: op `gather`: the init of input `other` has 2 keys
  |
8 |       other: {shape: [M], init: {normal: [0, 1], constant: 3}}
  |                                 ^
hint: name one distribution, as in `init: {uniform: [0.0, 1.0]}`

error: ops.yaml:9:57: op `gather`: the randint of input `third` draws from an empty range
  |
9 |       third: {shape: [M], dtype: int32, init: {randint: [5, 5]}}
  |                                                         ^
hint: write `[low, high]`; high itself is never drawn

error: ops.yaml:10:14: op `gather`: `index` is an input and a kwarg
   |
10 |     kwargs: {index: 1, low: -.inf}
   |              ^
hint: a parameter is one or the other: tensors are inputs

error: ops.yaml:10:29: `ops.gather.kwargs.low` is not finite
   |
10 |     kwargs: {index: 1, low: -.inf}
   |                             ^
hint: give such an argument in the op's `cases`

error: ops.yaml:11:15: op `gather`: no input is called `inptu`
   |
11 |     mutates: [inptu, index]
   |               ^
hint: did you mean `input`?

error: ops.yaml:12:17: op `gather`: `index` is in `mutates`, too
   |
12 |     overwrites: [other, index, thrid]
   |                 ^
hint: `mutates` says that it holds what torch leaves there, `overwrites` that it may hold anything

error: ops.yaml:12:32: op `gather`: no input is called `thrid`
   |
12 |     overwrites: [other, index, thrid]
   |                                ^
hint: did you mean `third`?
";
    refused(text, expected);
}

#[test]
fn offsets_end_at_a_number_of_rows() {
    let text = "\
version: 1
ops:
  segments:
    torch: torch.add
    inputs:
      input: {shape: [B+1], dtype: int32, init: {offsets: 7.5}}
      other: {shape: [B+1], init: {offsets: -1}, dtype: int64}
      third: {shape: [], dtype: int32, init: {offsets: B}}
    bench: {sizes: {small: 4}}
";
    let expected = "\
error: ops.yaml:6:59: op `segments`: the last offset of input `input` is no number of rows
  |
6 |       input: {shape: [B+1], dtype: int32, init: {offsets: 7.5}}
  |                                                           ^
hint: write the dim that the offsets divide, as in `init: {offsets: T}`

error: ops.yaml:7:45: op `segments`: the last offset of input `other` is no number of rows
  |
7 |       other: {shape: [B+1], init: {offsets: -1}, dtype: int64}
  |                                             ^
hint: write the dim that the offsets divide, as in `init: {offsets: T}`

error: ops.yaml:8:46: op `segments`: the init of input `third` needs 1 dims or more, and it has 0
  |
8 |       third: {shape: [], dtype: int32, init: {offsets: B}}
  |                                              ^
hint: give it another `init`, or another shape
";
    refused(text, expected);
}

#[test]
fn integer_dtypes_need_inits() {
    let text = "\
version: 1
ops:
  add:
    torch: add
    inputs: {input: [M, N], other: {shape: [M, N], init: {randint: [0, 9]}}}
    dtypes: [float32, int32]
";
    let expected = "\
error: ops.yaml:5:14: op `add`: input `input` is drawn as a float, but `dtypes` has `int32`
  |
5 |     inputs: {input: [M, N], other: {shape: [M, N], init: {randint: [0, 9]}}}
  |              ^
hint: give it an `init` for integers, as in `init: {randint: [0, 10]}`, or a `dtype`
";
    refused(text, expected);
}

#[test]
fn integers_that_a_dtype_does_not_hold_are_told() {
    let text = "\
version: 1
ops:
  add:
    torch: add
    inputs:
      input: {shape: [M, N], dtype: uint8, init: {randint: [0, 257]}}
      other: {shape: [M, N], dtype: int8, init: {sorted: {of: {randint: [-129, 128]}}}}
";
    let expected = "\
error: ops.yaml:6:50: op `add`: input `input` is uint8, which holds 0 to 255, and draws 0 to 256
  |
6 |       input: {shape: [M, N], dtype: uint8, init: {randint: [0, 257]}}
  |                                                  ^
hint: the second number is not drawn itself; draw fewer, or give it another `dtype`

error: ops.yaml:7:49: op `add`: input `other` is int8, which holds -128 to 127, and draws -129 to 127
  |
7 |       other: {shape: [M, N], dtype: int8, init: {sorted: {of: {randint: [-129, 128]}}}}
  |                                                 ^
hint: the second number is not drawn itself; draw fewer, or give it another `dtype`
";
    refused(text, expected);
}

#[test]
fn a_float8_is_the_dtype_of_an_input_alone_and_has_no_gradient() {
    let text = "\
version: 1
ops:
  scaled:
    torch: add
    inputs: {input: {shape: [M, N], dtype: fp8e5, requires_grad: true}, other: [M, 1]}
    dtypes: [fp8_e4m3]
";
    let expected = "\
error: ops.yaml:5:66: op `scaled`: input `input` is float8_e5m2 and has no gradient
  |
5 |     inputs: {input: {shape: [M, N], dtype: fp8e5, requires_grad: true}, other: [M, 1]}
  |                                                                  ^
hint: remove `requires_grad`

error: ops.yaml:6:14: unknown dtype `float8_e4m3fn`
  |
6 |     dtypes: [fp8_e4m3]
  |              ^
hint: only an input has it, as in `x: {shape: [M, N], dtype: float8_e4m3fn}`: here stands what the op computes in
";
    refused(text, expected);
}

#[test]
fn an_input_is_one_thing_and_its_lengths_are_lengths() {
    let text = "\
version: 1
ops:
  add:
    torch: add
    inputs:
      a: {shape: [M], scalar: 1}
      b: {init: ones}
      c: {scalar: 1, dtype: int64}
      d: {list: [[M], [N]], optional: true}
      e: [M, 2N]
      f: [M, N / 2]
      g: {shape: [M], layout: [contiguous, transposed]}
      h: {shape: [M], init: {low_rank: 2}}
      i: {shape: [M, M], init: {mask: 2}}
      j: {shape: [M, M], init: {file: weights.bin}}
";
    let expected = "\
error: ops.yaml:6:7: op `add`: input `a` has 2 of `shape`, `list` and `scalar`
  |
6 |       a: {shape: [M], scalar: 1}
  |       ^
hint: give it one of them, as in `shape: [M, N]`

error: ops.yaml:7:7: op `add`: input `b` has 0 of `shape`, `list` and `scalar`
  |
7 |       b: {init: ones}
  |       ^
hint: give it one of them, as in `shape: [M, N]`

error: ops.yaml:8:22: op `add`: the scalar `c` has `dtype`
  |
8 |       c: {scalar: 1, dtype: int64}
  |                      ^
hint: remove the key: only tensors have it

error: ops.yaml:9:39: op `add`: the list `d` cannot be optional
  |
9 |       d: {list: [[M], [N]], optional: true}
  |                                       ^
hint: declare an op of its own for the call without it

error: ops.yaml:10:14: `ops.add.inputs.e[1]`: `2N` is no expression of dims
   |
10 |       e: [M, 2N]
   |              ^
hint: write a dim, or dims with `+`, `-`, `*`, `//` and brackets: `N`, `2*N`, `(M+1)//G`

error: ops.yaml:11:14: `ops.add.inputs.f[1]`: `N / 2` is no expression of dims
   |
11 |       f: [M, N / 2]
   |              ^
hint: write a dim, or dims with `+`, `-`, `*`, `//` and brackets: `N`, `2*N`, `(M+1)//G`

error: ops.yaml:12:31: op `add`: layout `transposed` does not suit the shape of input `g`
   |
12 |       g: {shape: [M], layout: [contiguous, transposed]}
   |                               ^
hint: `transposed` needs 2 dims or more, `strided` 1 or more, `channels_last` 4

error: ops.yaml:13:29: op `add`: the init of input `h` needs 2 dims or more, and it has 1
   |
13 |       h: {shape: [M], init: {low_rank: 2}}
   |                             ^
hint: give it another `init`, or another shape

error: ops.yaml:14:39: op `add`: the mask of input `i` is no share: `2`
   |
14 |       i: {shape: [M, M], init: {mask: 2}}
   |                                       ^
hint: write a number from 0 to 1

error: ops.yaml:15:39: `ops.add.inputs.j.init.file`: `weights.bin` is no tensor of a file
   |
15 |       j: {shape: [M, M], init: {file: weights.bin}}
   |                                       ^
hint: write the file and the tensor's name in it: `values/x.safetensors::weight`
";
    refused(text, expected);
}

#[test]
fn a_range_without_numbers_is_no_init() {
    let text = "\
version: 1
ops:
  copy:
    torch: torch.add
    inputs:
      input: {shape: [M], init: {uniform: [2, 1]}}
      other: {shape: [M], init: {normal: [0, -1.5]}}
      equal: {shape: [M], init: {uniform: [1, 1]}}
    bench: {sizes: {small: 1}}
";
    let expected = "\
error: ops.yaml:6:43: op `copy`: the uniform of input `input` draws from an empty range
  |
6 |       input: {shape: [M], init: {uniform: [2, 1]}}
  |                                           ^
hint: write `[low, high]`

error: ops.yaml:7:42: op `copy`: the normal of input `other` has a standard deviation below 0
  |
7 |       other: {shape: [M], init: {normal: [0, -1.5]}}
  |                                          ^
hint: write `[mean, std]`
";
    refused(text, expected);
}
