//! Every strict error of ops.yaml, with its whole message.

use t2t_model::problem::render;
use t2t_spec::{Spec, TorchNames};

mod yaml;
mod named;
mod sizes;
mod inputs;
mod calls;
mod settings;
mod cuda;

fn names() -> TorchNames {
    let names = [
        "torch.add",
        "torch.sub",
        "torch.matmul",
        "torch.gather",
        "torch.nn.functional.softmax",
        "torch.nn.functional.layer_norm",
    ];
    names.map(str::to_owned).into_iter().collect()
}

fn errors_in(bytes: &[u8]) -> String {
    match Spec::parse("ops.yaml", bytes, Some(&names())) {
        Ok(spec) => panic!("no errors: {spec:?}"),
        Err(problems) => render(&problems),
    }
}

/// Compares all that is printed for a file with what is expected.
#[track_caller]
fn refused(text: &str, expected: &str) {
    let found = errors_in(text.as_bytes());
    assert!(found == expected, "found:\n{found}\nexpected:\n{expected}");
}

#[test]
fn an_unknown_key_is_told_the_nearest() {
    let text = "\
version: 1
ops:
  softmax:
    torch: F.softmax
    inputs: {input: [M, N]}
    kwarg: {dim: -1}
";
    let expected = "\
error: ops.yaml:6:5: unknown key `kwarg` in op `softmax`
  |
6 |     kwarg: {dim: -1}
  |     ^
hint: did you mean `kwargs`?
";
    refused(text, expected);
}

#[test]
fn a_misspelt_required_key_is_one_mistake() {
    let text = "\
version: 1
ops:
  softmax:
    torch: F.softmax
    inptus: {input: [M, N]}
";
    let expected = "\
error: ops.yaml:5:5: unknown key `inptus` in op `softmax`
  |
5 |     inptus: {input: [M, N]}
  |     ^
hint: did you mean `inputs`?
";
    refused(text, expected);
}

#[test]
fn an_unknown_key_that_is_near_none_is_told_all() {
    let text = "\
version: 1
author: me
ops:
  softmax: {torch: F.softmax, inputs: {input: [M, N]}}
";
    let expected = "\
error: ops.yaml:2:1: unknown key `author` in the file
  |
2 | author: me
  | ^
hint: known: `version`, `targets`, `sources`, `log`, `cache`, `executor`, `trust`, `generators`, `jobs`, `budget`, `defaults`, `profiles`, `ops`
";
    refused(text, expected);
}

#[test]
fn wrong_types_say_what_was_expected_and_found() {
    let text = "\
version: 1
ops:
  softmax:
    torch: 3
    inputs: {input: 7}
    backward: no
    dtypes: float32
    check: {seeds: two, atol: -1, timeout: 120}
    bench: {runs: 2.0, sizes: {small: {M: 0, N: true}}}
";
    let expected = "\
error: ops.yaml:4:12: `ops.softmax.torch`: expected dotted name, found integer `3`
  |
4 |     torch: 3
  |            ^
hint: put it in quotes to make it a string

error: ops.yaml:5:21: `ops.softmax.inputs.input`: expected list of (integer ≥ 1 or expression of dims) or input mapping, found integer `7`
  |
5 |     inputs: {input: 7}
  |                     ^
hint: write a list: `[…]`

error: ops.yaml:6:15: `ops.softmax.backward`: expected true or false, found string `no`
  |
6 |     backward: no
  |               ^
hint: write `true` or `false`, without quotes

error: ops.yaml:7:13: `ops.softmax.dtypes`: expected set of (dtype), found string `float32`
  |
7 |     dtypes: float32
  |             ^
hint: write a list: `[…]`

error: ops.yaml:8:20: `ops.softmax.check.seeds`: expected integer ≥ 1, found string `two`
  |
8 |     check: {seeds: two, atol: -1, timeout: 120}
  |                    ^
hint: write it in digits, without quotes, such as `1`

error: ops.yaml:8:31: `ops.softmax.check.atol`: expected number ≥ 0, found integer `-1`
  |
8 |     check: {seeds: two, atol: -1, timeout: 120}
  |                               ^
hint: write it without quotes, such as `0.5` or `1e-5`

error: ops.yaml:8:44: `ops.softmax.check.timeout`: expected duration, found integer `120`
  |
8 |     check: {seeds: two, atol: -1, timeout: 120}
  |                                            ^
hint: write the unit: `120s`

error: ops.yaml:9:19: `ops.softmax.bench.runs`: expected integer ≥ 1, found number `2.0`
  |
9 |     bench: {runs: 2.0, sizes: {small: {M: 0, N: true}}}
  |                   ^
hint: write it in digits, without quotes, such as `1`

error: ops.yaml:9:43: `ops.softmax.bench.sizes.small.M`: expected integer ≥ 1, found integer `0`
  |
9 |     bench: {runs: 2.0, sizes: {small: {M: 0, N: true}}}
  |                                           ^
hint: write it in digits, without quotes, such as `1`

error: ops.yaml:9:49: `ops.softmax.bench.sizes.small.N`: expected integer ≥ 1, found `true`
  |
9 |     bench: {runs: 2.0, sizes: {small: {M: 0, N: true}}}
  |                                                 ^
hint: write it in digits, without quotes, such as `1`
";
    refused(text, expected);
}

#[test]
fn wrong_lists_say_how_long_they_should_be() {
    let text = "\
version: 1
ops:
  softmax:
    torch: F.softmax
    inputs: {input: {shape: [M, N], init: {uniform: [1]}}}
    variants: []
    check: {tolerances: {float16: [1, 2, 3]}}
    bench: {baselines: [torch, torch]}
";
    let expected = "\
error: ops.yaml:5:53: `ops.softmax.inputs.input.init.uniform`: expected list of 2 (number or expression of dims), found a list of 1
  |
5 |     inputs: {input: {shape: [M, N], init: {uniform: [1]}}}
  |                                                     ^
hint: write two items: `[…, …]`

error: ops.yaml:6:5: `ops.softmax.variants` is empty
  |
6 |     variants: []
  |     ^
hint: add something to it, or remove the key

error: ops.yaml:7:35: `ops.softmax.check.tolerances.float16`: expected list of 2 (number ≥ 0), found a list of 3
  |
7 |     check: {tolerances: {float16: [1, 2, 3]}}
  |                                   ^
hint: write two items: `[…, …]`

error: ops.yaml:8:32: `torch` is given twice in `ops.softmax.bench.baselines`
  |
8 |     bench: {baselines: [torch, torch]}
  |                                ^
hint: remove one of them
";
    refused(text, expected);
}

#[test]
fn an_empty_value_is_shown_at_its_key() {
    let text = "\
version: 1
ops:
  softmax:
";
    let expected = "\
error: ops.yaml:3:3: `ops.softmax`: expected op mapping, found nothing
  |
3 |   softmax:
  |   ^
hint: give a value, or remove the key
";
    refused(text, expected);
}

#[test]
fn required_keys_are_missed() {
    let text = "\
ops:
  softmax: {kwargs: {dim: -1}}
";
    let expected = "\
error: ops.yaml:1:1: the file has no version
  |
1 | ops:
  | ^
hint: add `version: 1`

error: ops.yaml:2:3: op `softmax` has neither torch nor reference
  |
2 |   softmax: {kwargs: {dim: -1}}
  |   ^
hint: add `torch: torch.nn.functional.softmax`, or `reference: FILE.py::FUNCTION`

error: ops.yaml:2:3: op `softmax` has no inputs
  |
2 |   softmax: {kwargs: {dim: -1}}
  |   ^
hint: add `inputs: {input: [M, N]}`
";
    refused(text, expected);
}

#[test]
fn three_mistakes_are_three_errors() {
    let text = "\
version: 1
ops:
  softmax:
    torch: F.sofmax
    inputs: {input: [M, N]}
    check: {sedes: 3}
  add:
    torch: torch.add
    inputs: {input: [M, N], other: [M, N]}
    bench: {sizes: {small: [256]}}
";
    let expected = "\
error: ops.yaml:4:12: op `softmax`: torch has no function `F.sofmax`
  |
4 |     torch: F.sofmax
  |            ^
hint: did you mean `torch.nn.functional.softmax`?

error: ops.yaml:6:13: unknown key `sedes` in `ops.softmax.check`
  |
6 |     check: {sedes: 3}
  |             ^
hint: did you mean `seeds`?

error: ops.yaml:10:28: op `add`: size `small` has 1 number for 2 free dims (`M`, `N`)
   |
10 |     bench: {sizes: {small: [256]}}
   |                            ^
hint: give each free dim a length, as in `{M: 256, N: 256}`
";
    refused(text, expected);
}
