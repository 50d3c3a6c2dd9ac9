//! Every strict error of ops.yaml, with its whole message.

use std::fmt::Write;
use std::time::{Duration, Instant};

use t2t_model::problem::render;
use t2t_spec::{FILE_LIMIT, Signature, Signatures, Spec, TorchNames};

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
fn a_kwarg_that_torch_does_not_take_is_told_with_what_it_takes() {
    let signature = Signature {
        parameters: ["input", "dim", "_stacklevel"].map(str::to_owned).into(),
        text: "(input, dim=None, dtype=None)".to_owned(),
    };
    let name = "torch.nn.functional.softmax".to_owned();
    let signatures = Signatures { common: ["dtype".to_owned()].into(), functions: [(name.clone(), signature)].into() };
    let names: TorchNames = [name].into_iter().collect::<TorchNames>().with(signatures);
    let text = "\
version: 1
ops:
  softmax:
    torch: F.softmax
    inputs: {input: [M, N]}
    kwargs:
      dims: -1
      dtype: torch.float32
      temperature: 2.0
";
    let problems = Spec::parse("ops.yaml", text.as_bytes(), Some(&names)).unwrap_err();
    let expected = "\
error: ops.yaml:7:7: op `softmax`: torch.nn.functional.softmax takes no argument `dims`
  |
7 |       dims: -1
  |       ^
hint: did you mean `dim`? it is softmax(input, dim=None, dtype=None)

error: ops.yaml:9:7: op `softmax`: torch.nn.functional.softmax takes no argument `temperature`
  |
9 |       temperature: 2.0
  |       ^
hint: it is softmax(input, dim=None, dtype=None)
";
    assert_eq!(t2t_model::problem::render(&problems), expected);
    let right = text.replace("      dims: -1\n", "      dim: -1\n").replace("      temperature: 2.0\n", "");
    assert!(Spec::parse("ops.yaml", right.as_bytes(), Some(&names)).is_ok());
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
fn keys_that_nobody_can_trust_are_told_with_what_to_write() {
    let ada = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIqI4910CfGV/VLbLTy6XXLKZwm/HZQSG/N0iAG0D29c";
    let text = format!(
        "\
version: 1
trust:
  - ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQC7 ada@example.org
  - ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIqI4910 ada@example.org
  - {ada}
  - {ada} ada@example.org
  - {ada} eve@example.org
  - {ada} ada@example.org
  - -----BEGIN OPENSSH PRIVATE KEY-----
  - 7
ops:
  softmax: {{torch: F.softmax, inputs: {{input: [M, N]}}}}
"
    );
    let problems = Spec::parse("ops.yaml", text.as_bytes(), None).unwrap_err();
    let told = t2t_model::problem::render(&problems);
    for said in [
        "error: ops.yaml:3:5: `trust[0]`: `ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQC7 ada@example.org` is no public ssh key with a name\n",
        "hint: only `ssh-ed25519` keys are accepted: `ssh-keygen -t ed25519` makes one\n",
        "error: ops.yaml:4:5: ",
        "hint: the key is cut short or changed: copy the whole line of the `.pub` file\n",
        "error: ops.yaml:5:5: ",
        "hint: write the holder's name after the key: `ssh-ed25519 AAAA… ada@example.org`\n",
        "error: ops.yaml:7:5: `trust` names one key twice: as `ada@example.org` and as `eve@example.org`\n",
        "hint: a key has one holder: remove one of the two\n",
        "error: ops.yaml:8:5: ",
        "is given twice in `trust`\n",
        "error: ops.yaml:9:5: ",
        "hint: this is a private key: whoever has seen it can sign, so make a new one, and name the line of its `.pub` file\n",
        "error: ops.yaml:10:5: ",
        "hint: put it in quotes to make it a string\n",
    ] {
        assert!(told.contains(said), "no {said} in\n{told}");
    }
    assert_eq!(problems.len(), 7, "{told}");
}

#[test]
fn an_empty_list_of_trusted_keys_is_a_mistake() {
    let text = "version: 1\ntrust: []\nops: {softmax: {torch: F.softmax, inputs: {input: [M, N]}}}\n";
    let problems = Spec::parse("ops.yaml", text.as_bytes(), None).unwrap_err();
    let told = t2t_model::problem::render(&problems);
    assert!(told.starts_with("error: ops.yaml:2:1: `trust` is empty\n"), "{told}");
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
hint: known: `version`, `targets`, `sources`, `log`, `cache`, `trust`, `generators`, `jobs`, `budget`, `defaults`, `profiles`, `ops`
";
    refused(text, expected);
}

#[test]
fn sources_are_folders_of_the_workspace_that_are_somebodys() {
    let text = "\
version: 1
sources: [lib, cache/x, src/.ssh, ../up]
ops:
  softmax: {torch: F.softmax, inputs: {input: [M, N]}}
";
    let expected = "\
error: ops.yaml:2:16: `sources` names `cache/x`, which t2t makes
  |
2 | sources: [lib, cache/x, src/.ssh, ../up]
  |                ^
hint: name folders whose files kernels import or read

error: ops.yaml:2:25: `sources` names `src/.ssh`: `.ssh` is hidden
  |
2 | sources: [lib, cache/x, src/.ssh, ../up]
  |                         ^
hint: kernels read what is not hidden: move it to another folder

error: ops.yaml:2:35: `sources[3]`: `../up` is no path inside the workspace
  |
2 | sources: [lib, cache/x, src/.ssh, ../up]
  |                                   ^
hint: write it relative, with `/` and without `..`
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
fn an_op_is_declared_once() {
    let text = "\
version: 1
ops:
  add: {torch: add, inputs: {input: [M, N]}}
  sub: {torch: sub, inputs: {input: [M, N]}}
  add: {torch: add, inputs: {input: [M, N]}}
";
    let expected = "\
error: ops.yaml:5:3: op `add` is declared twice
  |
5 |   add: {torch: add, inputs: {input: [M, N]}}
  |   ^
hint: the first is in line 3
";
    refused(text, expected);
}

#[test]
fn ops_differ_in_more_than_case() {
    let text = "\
version: 1
ops:
  add: {torch: add, inputs: {input: [M, N]}}
  Add: {torch: add, inputs: {input: [M, N]}}
";
    let expected = "\
error: ops.yaml:4:3: op `Add` differs from op `add` only in case
  |
4 |   Add: {torch: add, inputs: {input: [M, N]}}
  |   ^
hint: some file systems cannot hold both: choose another name
";
    refused(text, expected);
}

#[test]
fn a_key_is_given_once() {
    let text = "\
version: 1
ops:
  add:
    torch: add
    inputs: {input: [M, N], input: [M, N]}
    kwargs: {x: {a: 1, a: 2}}
    torch: add
";
    let expected = "\
error: ops.yaml:5:29: input `input` is declared twice
  |
5 |     inputs: {input: [M, N], input: [M, N]}
  |                             ^
hint: the first is in line 5

error: ops.yaml:6:24: key `a` is given twice in `ops.add.kwargs.x`
  |
6 |     kwargs: {x: {a: 1, a: 2}}
  |                        ^
hint: the first is in line 6

error: ops.yaml:7:5: key `torch` is given twice in op `add`
  |
7 |     torch: add
  |     ^
hint: the first is in line 4
";
    refused(text, expected);
}

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
hint: known: `M`, `K`, `K`, `N`

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
fn torch_has_the_function() {
    let text = "\
version: 1
ops:
  a: {torch: F.sofmax, inputs: {input: [M, N]}}
  b: {torch: sofmax, inputs: {input: [M, N]}}
  c: {torch: torch.frobnicate, inputs: {input: [M, N]}}
  d: {torch: torch softmax, inputs: {input: [M, N]}}
";
    let expected = "\
error: ops.yaml:3:14: op `a`: torch has no function `F.sofmax`
  |
3 |   a: {torch: F.sofmax, inputs: {input: [M, N]}}
  |              ^
hint: did you mean `torch.nn.functional.softmax`?

error: ops.yaml:4:14: op `b`: torch has no function `sofmax`
  |
4 |   b: {torch: sofmax, inputs: {input: [M, N]}}
  |              ^
hint: did you mean `torch.nn.functional.softmax`?

error: ops.yaml:5:14: op `c`: torch has no function `torch.frobnicate`
  |
5 |   c: {torch: torch.frobnicate, inputs: {input: [M, N]}}
  |              ^
hint: write it as in Python: `softmax`, `F.softmax` or `torch.nn.functional.softmax`

error: ops.yaml:6:14: `ops.d.torch`: `torch softmax` is no dotted name
  |
6 |   d: {torch: torch softmax, inputs: {input: [M, N]}}
  |              ^
hint: write it as in Python: `softmax`, `F.softmax` or `torch.nn.functional.softmax`
";
    refused(text, expected);
}

#[test]
fn an_op_name_is_a_plain_path_component() {
    let text = r#"version: 1
ops:
  ../x: {torch: add, inputs: {input: [M, N]}}
  a/b: {torch: add, inputs: {input: [M, N]}}
  "": {torch: add, inputs: {input: [M, N]}}
  CON: {torch: add, inputs: {input: [M, N]}}
  .hidden: {torch: add, inputs: {input: [M, N]}}
  two words: {torch: add, inputs: {input: [M, N]}}
"#;
    let expected = r#"error: ops.yaml:3:3: op name `../x` is no plain path component
  |
3 |   ../x: {torch: add, inputs: {input: [M, N]}}
  |   ^
hint: use ASCII letters, digits, `_` and `-`, and begin with a letter or a digit

error: ops.yaml:4:3: op name `a/b` is no plain path component
  |
4 |   a/b: {torch: add, inputs: {input: [M, N]}}
  |   ^
hint: use ASCII letters, digits, `_` and `-`, and begin with a letter or a digit

error: ops.yaml:5:3: op name `` is no plain path component
  |
5 |   "": {torch: add, inputs: {input: [M, N]}}
  |   ^
hint: use ASCII letters, digits, `_` and `-`, and begin with a letter or a digit

error: ops.yaml:6:3: op name `CON` is no plain path component
  |
6 |   CON: {torch: add, inputs: {input: [M, N]}}
  |   ^
hint: `CON` is a device on Windows: choose another name

error: ops.yaml:7:3: op name `.hidden` is no plain path component
  |
7 |   .hidden: {torch: add, inputs: {input: [M, N]}}
  |   ^
hint: use ASCII letters, digits, `_` and `-`, and begin with a letter or a digit

error: ops.yaml:8:3: op name `two words` is no plain path component
  |
8 |   two words: {torch: add, inputs: {input: [M, N]}}
  |   ^
hint: use ASCII letters, digits, `_` and `-`, and begin with a letter or a digit
"#;
    refused(text, expected);
}

#[test]
fn a_variant_name_is_a_plain_path_component() {
    let text = "\
version: 1
ops:
  add:
    torch: add
    inputs: {input: [M, N]}
    variants: [../v1, {name: nul}, v2, v2, V2]
";
    let expected = "\
error: ops.yaml:6:16: `ops.add.variants[0]`: `../v1` is no plain path component
  |
6 |     variants: [../v1, {name: nul}, v2, v2, V2]
  |                ^
hint: use ASCII letters, digits, `_` and `-`, and begin with a letter or a digit

error: ops.yaml:6:30: `ops.add.variants[1].name`: `nul` is no plain path component
  |
6 |     variants: [../v1, {name: nul}, v2, v2, V2]
  |                              ^
hint: `nul` is a device on Windows: choose another name

error: ops.yaml:6:40: variant `v2` is declared twice
  |
6 |     variants: [../v1, {name: nul}, v2, v2, V2]
  |                                        ^
hint: the first is in line 6

error: ops.yaml:6:44: variant `V2` differs from variant `v2` only in case
  |
6 |     variants: [../v1, {name: nul}, v2, v2, V2]
  |                                            ^
hint: some file systems cannot hold both: choose another name
";
    refused(text, expected);
}

#[test]
fn an_op_whose_entry_python_cannot_name_gives_one() {
    let text = "\
version: 1
ops:
  layer-norm: {torch: F.layer_norm, inputs: {input: [M, N]}}
";
    let expected = "\
error: ops.yaml:3:3: op `layer-norm`: its entry `triton_layer-norm` would be no Python identifier
  |
3 |   layer-norm: {torch: F.layer_norm, inputs: {input: [M, N]}}
  |   ^
hint: add `entry: triton_layer_norm`
";
    refused(text, expected);
}

#[test]
fn what_this_version_cannot_do_is_refused() {
    let text = "\
version: 1
ops:
  add:
    torch: add
    inputs: {input: [M, N]}
    variants:
      - {name: cuda, file: add.cu, lang: cuda}
      - {name: written, generator: {command: agent}}
      - {name: installed, generator: template, module: kernels_of_others}
";
    let expected = "\
error: ops.yaml:7:42: this version of t2t does not build CUDA C++ variants
  |
7 |       - {name: cuda, file: add.cu, lang: cuda}
  |                                          ^
hint: remove the variant, or write it in Triton

error: ops.yaml:8:36: `ops.add.variants[1].generator`: expected plain path component, found a mapping
  |
8 |       - {name: written, generator: {command: agent}}
  |                                    ^
hint: use ASCII letters, digits, `_` and `-`, and begin with a letter or a digit

error: ops.yaml:9:38: op `add`: a variant has `generator` and `module`
  |
9 |       - {name: installed, generator: template, module: kernels_of_others}
  |                                      ^
hint: keep one: a generator writes a file of the workspace, `module` is installed
";
    refused(text, expected);
}

#[test]
fn a_generator_has_a_name_of_its_own_and_one_way_to_be_asked() {
    let text = "\
version: 1
generators:
  none: {command: [agent]}
  agent: {timeout: 60s}
ops:
  add:
    torch: add
    inputs: {input: [M, N]}
    generator: agnet
";
    let expected = "\
error: ops.yaml:3:3: `generators` names `none`, which has a meaning of its own
  |
3 |   none: {command: [agent]}
  |   ^
hint: choose another name

error: ops.yaml:4:3: generator `agent` has neither `command` nor `openai`
  |
4 |   agent: {timeout: 60s}
  |   ^
hint: add `command: [claude, -p]`, or `openai: {base_url: http://localhost:8000/v1, model: NAME}`

error: ops.yaml:9:16: there is no generator `agnet`
  |
9 |     generator: agnet
  |                ^
hint: did you mean `agent`?
";
    refused(text, expected);
}

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
    mutates: [inptu]
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
hint: add `init: {randint: [0, 10]}`, or `constant`, or `ones`

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
11 |     mutates: [inptu]
   |               ^
hint: did you mean `input`?
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
fn tolerances_of_float32_are_given_once() {
    let text = "\
version: 1
defaults: {check: {atol: 1, tolerances: {float32: [1, 1], flota16: [1, 1]}}}
ops:
  add: {torch: add, inputs: {input: [M, N]}}
";
    let expected = "\
error: ops.yaml:2:51: the tolerances of float32 are given twice
  |
2 | defaults: {check: {atol: 1, tolerances: {float32: [1, 1], flota16: [1, 1]}}}
  |                                                   ^
hint: `atol` and `rtol` are float32's: remove them, or this

error: ops.yaml:2:59: unknown dtype `flota16`
  |
2 | defaults: {check: {atol: 1, tolerances: {float32: [1, 1], flota16: [1, 1]}}}
  |                                                           ^
hint: did you mean `float16`?
";
    refused(text, expected);
}

#[test]
fn torch_is_always_a_baseline() {
    let text = "\
version: 1
ops:
  add: {torch: add, inputs: {input: [M, N]}, bench: {baselines: [torch.compile], sizes: {}}}
";
    let expected = "\
error: ops.yaml:3:65: op `add`: the baselines lack `torch`
  |
3 |   add: {torch: add, inputs: {input: [M, N]}, bench: {baselines: [torch.compile], sizes: {}}}
  |                                                                 ^
hint: add `torch`: a speedup is measured against it

error: ops.yaml:3:89: op `add`: `bench.sizes` is empty
  |
3 |   add: {torch: add, inputs: {input: [M, N]}, bench: {baselines: [torch.compile], sizes: {}}}
  |                                                                                         ^
hint: give it a size, as in `{small: [256, 256]}`
";
    refused(text, expected);
}

#[test]
fn paths_stay_inside_the_workspace() {
    let text = "\
version: 1
log: {template: /etc/passwd}
ops:
  add: {torch: add, inputs: {input: [M, N]}, cases: ../cases.py, variants: [{name: v, file: ../v.py}]}
";
    let expected = "\
error: ops.yaml:2:17: `log.template`: `/etc/passwd` is no path inside the workspace
  |
2 | log: {template: /etc/passwd}
  |                 ^
hint: write it relative, with `/` and without `..`

error: ops.yaml:4:53: `ops.add.cases`: `../cases.py` is no path inside the workspace
  |
4 |   add: {torch: add, inputs: {input: [M, N]}, cases: ../cases.py, variants: [{name: v, file: ../v.py}]}
  |                                                     ^
hint: write it relative, with `/` and without `..`

error: ops.yaml:4:93: `ops.add.variants[0].file`: `../v.py` is no path inside the workspace
  |
4 |   add: {torch: add, inputs: {input: [M, N]}, cases: ../cases.py, variants: [{name: v, file: ../v.py}]}
  |                                                                                             ^
hint: write it relative, with `/` and without `..`
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
fn tags_merge_keys_and_odd_keys_are_refused() {
    let text = "\
version: 1
ops:
  add: &add {torch: !!str add, inputs: {input: [M, N]}}
  sub:
    <<: *add
    torch: sub
    inputs: {input: [M, N]}
    ? [a]
    : 1
";
    let expected = "\
error: ops.yaml:3:27: the tag `!!str` means nothing here
  |
3 |   add: &add {torch: !!str add, inputs: {input: [M, N]}}
  |                           ^
hint: remove it; quotes make a string

error: ops.yaml:5:5: merge keys (`<<`) are not part of YAML 1.2
  |
5 |     <<: *add
  |     ^
hint: put what ops share into `defaults`

error: ops.yaml:8:7: a key must be a word
  |
8 |     ? [a]
  |       ^
hint: write `key: value`
";
    refused(text, expected);
}

#[test]
fn a_syntax_error_has_a_place() {
    let text = "\
version: 1
ops:
  add: {torch: add, inputs: {input: [M, N}}
";
    let expected = "\
error: ops.yaml:3:37: not valid YAML: mismatched bracket '[' closed by '}'
  |
3 |   add: {torch: add, inputs: {input: [M, N}}
  |                                     ^
hint: look for indentation, brackets and quotes, here and in the line before
";
    refused(text, expected);
}

#[test]
fn tabs_do_not_indent() {
    let text = "\
version: 1
ops:
	add: 1
";
    let expected = "\
error: ops.yaml:3:2: not valid YAML: tabs disallowed within this context (block indentation)
  |
3 | 	add: 1
  | 	^
hint: indent with spaces
";
    refused(text, expected);
}

#[test]
fn an_alias_has_an_anchor() {
    let text = "\
version: 1
ops: *ops
";
    let expected = "\
error: ops.yaml:2:6: not valid YAML: while parsing node, found unknown anchor
  |
2 | ops: *ops
  |      ^
hint: an alias `*name` needs an anchor `&name` before it
";
    refused(text, expected);
}

#[test]
fn there_is_one_document() {
    let text = "\
version: 1
ops:
  add: {torch: add, inputs: {input: [M, N]}}
---
version: 1
";
    let expected = "\
error: ops.yaml:4:1: a second document begins
  |
4 | ---
  | ^
hint: ops.yaml is one document: remove `---`
";
    refused(text, expected);
}

#[test]
fn an_empty_file_is_told_how_to_begin() {
    let text = "";
    let expected = "\
error: ops.yaml:1:1: the file is empty
hint: begin with `version: 1`
";
    refused(text, expected);
}

#[test]
fn a_file_of_comments_is_empty() {
    let text = "\
# nothing yet
";
    let expected = "\
error: ops.yaml:1:1: the file is empty
  |
1 | # nothing yet
  | ^
hint: begin with `version: 1`
";
    refused(text, expected);
}

#[test]
fn a_file_that_is_no_mapping_is_told_its_keys() {
    let text = "\
- add
- softmax
";
    let expected = "\
error: ops.yaml:1:1: the file: expected file mapping, found a list of 2
  |
1 | - add
  | ^
hint: its keys are `version`, `targets`, `sources`, `log`, `cache`, `trust`, `generators`, `jobs`, `budget`, `defaults`, `profiles`, `ops`
";
    refused(text, expected);
}

#[test]
fn another_version_is_the_only_error() {
    let text = "\
version: 2
kernels: 7
";
    let expected = "\
error: ops.yaml:1:10: version 2 is not supported
  |
1 | version: 2
  |          ^
hint: this t2t reads `version: 1`
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

#[test]
fn an_op_name_has_one_spelling_on_every_file_system() {
    // A letter and a combining accent: macOS and Linux store it as different bytes.
    let expected = "\
error: ops.yaml:2:7: op name `e\u{301}` is no plain path component
  |
2 | ops: {e\u{301}: {torch: add, inputs: {input: [M, N]}}}
  |       ^
hint: use ASCII letters, digits, `_` and `-`, and begin with a letter or a digit
";
    refused("version: 1\nops: {e\u{301}: {torch: add, inputs: {input: [M, N]}}}\n", expected);
}

#[test]
fn aliases_that_stand_for_a_gigabyte_are_refused_at_once() {
    let mut text = "version: 1\na0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]\n".to_owned();
    for level in 1..10 {
        let alias = format!("*a{}", level - 1);
        writeln!(text, "a{level}: &a{level} [{}]", [alias.as_str(); 10].join(", ")).unwrap();
    }
    let start = Instant::now();
    let expected = "\
error: ops.yaml:5:45: aliases stand for more than 10000 values
  |
5 | a3: &a3 [*a2, *a2, *a2, *a2, *a2, *a2, *a2, *a2, *a2, *a2]
  |                                             ^
hint: write the values out, or put what ops share into `defaults`
";
    refused(&text, expected);
    assert!(start.elapsed() < Duration::from_secs(1));
}

#[test]
fn a_file_that_is_not_utf8_shows_the_byte() {
    let expected = "\
error: ops.yaml:2:7: not UTF-8: byte 0xff at offset 17
  |
2 | ops: {\u{fffd}: 1}
  |       ^
hint: save the file as UTF-8
";
    let found = errors_in(b"version: 1\nops: {\xff: 1}\n");
    assert!(found == expected, "found:\n{found}\nexpected:\n{expected}");
}

#[test]
fn a_file_that_is_too_large_is_not_read() {
    let found = errors_in(&vec![b' '; FILE_LIMIT + 1]);
    assert_eq!(
        found,
        "error: ops.yaml: the file has 16777217 bytes, more than the 16777216 that are read\nhint: split the repository, or move cases into `cases.py` files\n"
    );
}

#[test]
fn after_a_hundred_errors_the_rest_is_counted() {
    let ops: Vec<String> = (0..150).map(|number| format!("  op{number}: {{}}\n")).collect();
    let found = errors_in(format!("version: 1\nops:\n{}", ops.concat()).as_bytes());
    assert_eq!(found.matches("error: ").count(), 101);
    assert!(
        found.ends_with("error: ops.yaml:53:3: 200 more problems from here on\n   |\n53 |   op50: {}\n   |   ^\n"),
        "{found}"
    );
}

#[test]
fn an_op_is_a_torch_function_or_a_reference() {
    let text = "\
version: 1
ops:
  neither: {inputs: {x: [M, N]}}
  both: {torch: torch.add, reference: a.py::f, inputs: {x: [M, N]}}
  misspelt: {refrence: a.py::f, inputs: {x: [M, N]}}
  shapeless: {reference: reference.py, inputs: {x: [M, N]}}
  nameless: {reference: {file: a.py}, inputs: {x: [M, N]}}
";
    let expected = "\
error: ops.yaml:3:3: op `neither` has neither torch nor reference
  |
3 |   neither: {inputs: {x: [M, N]}}
  |   ^
hint: add `torch: torch.nn.functional.softmax`, or `reference: FILE.py::FUNCTION`

error: ops.yaml:4:39: op `both`: it has a torch function and a reference
  |
4 |   both: {torch: torch.add, reference: a.py::f, inputs: {x: [M, N]}}
  |                                       ^
hint: remove one of the two

error: ops.yaml:5:14: unknown key `refrence` in op `misspelt`
  |
5 |   misspelt: {refrence: a.py::f, inputs: {x: [M, N]}}
  |              ^
hint: did you mean `reference`?

error: ops.yaml:6:26: `ops.shapeless.reference`: `reference.py` is no `FILE.py::NAME`
  |
6 |   shapeless: {reference: reference.py, inputs: {x: [M, N]}}
  |                          ^
hint: write a file of the workspace and a name in it: `kernels/geglu/reference.py::geglu`

error: ops.yaml:7:14: `ops.nameless.reference` has no name
  |
7 |   nameless: {reference: {file: a.py}, inputs: {x: [M, N]}}
  |              ^
hint: add `name: geglu`
";
    refused(text, expected);
}

#[test]
fn a_call_is_made_of_the_arguments_of_the_op_and_literals() {
    let text = "\
version: 1
defaults: {bench: {sizes: {small: 8}}}
ops:
  x:
    torch: torch.sub
    inputs: {input: [M], other: [M]}
    kwargs: {alpha: 2}
    variants:
      - {name: good, call: 'entry(other, [input, 1], -2.5, \"s\", alpha=alpha, keep=True)'}
      - {name: unknown, call: 'entry(input, otehr)'}
      - {name: computed, call: 'entry(input + other)'}
      - {name: other, call: 'launch(input)'}
      - {name: starred, call: 'entry(*input)'}
      - {name: open, call: 'entry(input))'}
      - {name: twice, call: 'entry(a=input, a=other)'}
";
    let expected = "\
error: ops.yaml:10:31: op `x`: `call` names `otehr`, which is neither an input nor a kwarg of the op
   |
10 |       - {name: unknown, call: 'entry(input, otehr)'}
   |                               ^
hint: did you mean `other`?

error: ops.yaml:11:32: op `x`: `call: entry(input + other)` has an argument that is neither a name nor a literal
   |
11 |       - {name: computed, call: 'entry(input + other)'}
   |                                ^
hint: write it as in `entry(input, dim, keepdim=True)`: inputs and kwargs of the op, and literals

error: ops.yaml:12:29: `ops.x.variants[3].call`: `launch(input)` is no call of `entry`
   |
12 |       - {name: other, call: 'launch(input)'}
   |                             ^
hint: write it as in `entry(input, dim)`

error: ops.yaml:13:31: op `x`: `call: entry(*input)` has an argument that is neither a name nor a literal
   |
13 |       - {name: starred, call: 'entry(*input)'}
   |                               ^
hint: write it as in `entry(input, dim, keepdim=True)`: inputs and kwargs of the op, and literals

error: ops.yaml:14:28: op `x`: `call: entry(input))` is no Python expression
   |
14 |       - {name: open, call: 'entry(input))'}
   |                            ^
hint: write it as in `entry(input, dim, keepdim=True)`: inputs and kwargs of the op, and literals

error: ops.yaml:15:29: op `x`: `call: entry(a=input, a=other)` gives `a` twice
   |
15 |       - {name: twice, call: 'entry(a=input, a=other)'}
   |                             ^
hint: write it as in `entry(input, dim, keepdim=True)`: inputs and kwargs of the op, and literals
";
    refused(text, expected);
}

#[test]
fn a_variant_has_one_home() {
    let text = "\
version: 1
ops:
  x: {torch: torch.add, inputs: {input: [M, N]}, variants: [{name: v1, path: lib/x.py, module: liger_kernel.ops.x}]}
";
    let expected = "\
error: ops.yaml:3:88: op `x`: a variant has `path` and `module`
  |
3 |   x: {torch: torch.add, inputs: {input: [M, N]}, variants: [{name: v1, path: lib/x.py, module: liger_kernel.ops.x}]}
  |                                                                                        ^
hint: keep one: `file` lies in `kernels/<op>/`, `path` anywhere in the workspace, `module` is installed
";
    refused(text, expected);
}

#[test]
fn edges_and_allowed_operations_are_named_as_they_are() {
    let text = "\
version: 1
ops:
  x:
    torch: torch.add
    inputs: {input: [M, N]}
    allow: [summ, mul]
    check: {edges: {empyt: off, one: {of: x}, strided: false, large: {off: ''}}}
";
    let names: TorchNames =
        ["torch.add", "torch.ops.aten.sum", "torch.ops.aten.mul"].map(str::to_owned).into_iter().collect();
    let problems = Spec::parse("ops.yaml", text.as_bytes(), Some(&names)).unwrap_err();
    let expected = "\
error: ops.yaml:6:13: op `x`: torch has no aten operation `summ`
  |
6 |     allow: [summ, mul]
  |             ^
hint: did you mean `sum`?

error: ops.yaml:7:21: unknown edge `empyt`
  |
7 |     check: {edges: {empyt: off, one: {of: x}, strided: false, large: {off: ''}}}
  |                     ^
hint: did you mean `empty`?

error: ops.yaml:7:39: unknown key `of` in `ops.x.check.edges.one`
  |
7 |     check: {edges: {empyt: off, one: {of: x}, strided: false, large: {off: ''}}}
  |                                       ^
hint: did you mean `off`?

error: ops.yaml:7:56: `ops.x.check.edges.strided`: expected `off` or `on` or edge mapping, found `false`
  |
7 |     check: {edges: {empyt: off, one: {of: x}, strided: false, large: {off: ''}}}
  |                                                        ^
hint: put it in quotes to make it a string

error: ops.yaml:7:76: `ops.x.check.edges.large.off`: `` is no line of text
  |
7 |     check: {edges: {empyt: off, one: {of: x}, strided: false, large: {off: ''}}}
  |                                                                            ^
hint: write a few words on one line
";
    let found = render(&problems);
    assert!(found == expected, "found:\n{found}\nexpected:\n{expected}");
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
fn outputs_are_compared_as_what_they_can_be() {
    let text = "\
version: 1
ops:
  add:
    torch: add
    inputs: {input: [M, N]}
    outputs:
      a: indexes
      b: indices
      c: {compare: indices, of: inptu}
      d: {compare: exact, of: input, tolerances: {float32: [1, 1]}}
      e: {compare: indices, of: input, dim: [0, 1]}
";
    let expected = "\
error: ops.yaml:7:10: unknown comparison `indexes`
  |
7 |       a: indexes
  |          ^
hint: did you mean `indices`?

error: ops.yaml:8:7: op `add`: output `b` does not say what its indices point into
  |
8 |       b: indices
  |       ^
hint: add `of:` with the input, or the output, as in `of: input`

error: ops.yaml:9:33: op `add`: no other input or output is called `inptu`
  |
9 |       c: {compare: indices, of: inptu}
  |                                 ^
hint: did you mean `input`?

error: ops.yaml:10:31: op `add`: output `d` has `of` and no indices
   |
10 |       d: {compare: exact, of: input, tolerances: {float32: [1, 1]}}
   |                               ^
hint: add `compare: indices`, or remove the key

error: ops.yaml:10:50: op `add`: output `d` is compared without tolerances
   |
10 |       d: {compare: exact, of: input, tolerances: {float32: [1, 1]}}
   |                                                  ^
hint: remove `tolerances`, or compare it as `close`

error: ops.yaml:11:45: op `add`: the dims of output `e` are not the last ones
   |
11 |       e: {compare: indices, of: input, dim: [0, 1]}
   |                                             ^
hint: write `[-2, -1]`, or one dim
";
    refused(text, expected);
}

#[test]
fn what_is_random_has_what_its_kind_needs() {
    let text = "\
version: 1
ops:
  a: {torch: add, inputs: {input: [M, N]}, random: {kind: dropuot}}
  b: {torch: add, inputs: {input: [M, N]}, random: {kind: dropout}}
  c: {torch: add, inputs: {input: [M, N]}, kwargs: {rate: 1}, random: {kind: dropout, p: rat, low: 1}}
  d: {torch: add, inputs: {input: [M, N]}, backward: true, mutates: [input], random: {kind: normal, seed: input}}
  e: {torch: add, inputs: {}, random: {kind: multinomial}}
  f: {torch: add, inputs: {input: [M, N]}, random: {kind: judged, by: holds}}
";
    let found = errors_in(text.as_bytes());
    let wanted = [
        "error: ops.yaml:3:59: unknown kind `dropuot`",
        "error: ops.yaml:4:52: op `b`: `random` of kind `dropout` needs `p`",
        "error: ops.yaml:5:90: op `c`: `p` is `rat`, and no argument is called so",
        "error: ops.yaml:5:95: op `c`: `random` of kind `dropout` has no `low`",
        "error: ops.yaml:6:86: op `d`: `random` of kind `normal` cannot be judged in an op that changes its inputs",
        "error: ops.yaml:6:86: op `d`: `random` of kind `normal` has no gradient that could be judged",
        "error: ops.yaml:6:107: op `d`: `input` is an argument of torch's, and the seed's",
        "error: ops.yaml:7:39: op `e`: `random` of kind `multinomial` needs an input",
        "error: ops.yaml:8:52: op `f`: `random` of kind `judged` needs the op's `cases`",
    ];
    let told: Vec<&str> = found.lines().filter(|line| line.starts_with("error: ")).collect();
    assert_eq!(told, wanted, "{found}");
}
