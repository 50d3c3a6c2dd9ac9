//! Names of ops, variants, entries and torch functions.
//!
//! It does not know what they name.

use super::refused;

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
