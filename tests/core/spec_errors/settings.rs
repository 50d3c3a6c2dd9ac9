//! Settings of the file, of ops and of variants.
//!
//! It does not know what they do.

use t2t_model::problem::render;
use t2t_spec::{Spec, TorchNames};

use super::refused;

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
fn what_this_version_cannot_do_is_refused() {
    let text = "\
version: 1
ops:
  add:
    torch: add
    inputs: {input: [M, N]}
    variants:
      - {name: written, generator: {command: agent}}
      - {name: installed, generator: template, module: kernels_of_others}
";
    let expected = "\
error: ops.yaml:7:36: `ops.add.variants[0].generator`: expected plain path component, found a mapping
  |
7 |       - {name: written, generator: {command: agent}}
  |                                    ^
hint: use ASCII letters, digits, `_` and `-`, and begin with a letter or a digit

error: ops.yaml:8:38: op `add`: a variant has `generator` and `module`
  |
8 |       - {name: installed, generator: template, module: kernels_of_others}
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
fn integers_have_no_tolerance() {
    let text = "\
version: 1
ops:
  add: {torch: add, inputs: {input: [M, N]}, check: {tolerances: {float32: [1, 1], int8: [1, 0]}}}
  mul: {torch: add, inputs: {input: [M, N]}, outputs: {out: {tolerances: {bool: [1, 0]}}}}
";
    let expected = "\
error: ops.yaml:3:84: int8 is compared exactly, with no tolerance
  |
3 |   add: {torch: add, inputs: {input: [M, N]}, check: {tolerances: {float32: [1, 1], int8: [1, 0]}}}
  |                                                                                    ^
hint: remove it; where rounding may differ, return the value before it is rounded

error: ops.yaml:4:75: bool is compared exactly, with no tolerance
  |
4 |   mul: {torch: add, inputs: {input: [M, N]}, outputs: {out: {tolerances: {bool: [1, 0]}}}}
  |                                                                           ^
hint: remove it; where rounding may differ, return the value before it is rounded
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
hint: known: `off`, `on`

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
fn only_gradients_that_a_check_judges_are_timed() {
    let text = "\
version: 1
defaults: {bench: {pass: both}}
ops:
  add: {torch: add, inputs: {input: [M, N]}}
  neg: {torch: sub, inputs: {input: [M, N]}, bench: {pass: backward}}
  abs: {torch: add, inputs: {input: [M, N]}, bench: {pass: forward}}
  drop: {torch: add, inputs: {input: [M, N]}, backward: true, random: {kind: dropout, p: 0.5}}
  exp: {torch: add, inputs: {input: [M, N]}, backward: true, bench: {pass: back}}
";
    let expected = "\
error: ops.yaml:4:3: op `add`: `pass: both` would measure gradients that no check judges
  |
4 |   add: {torch: add, inputs: {input: [M, N]}}
  |   ^
hint: add `backward: true` to the op, or `bench: {pass: forward}`

error: ops.yaml:5:60: op `neg`: `pass: backward` would measure gradients that no check judges
  |
5 |   neg: {torch: sub, inputs: {input: [M, N]}, bench: {pass: backward}}
  |                                                            ^
hint: add `backward: true` to the op, or `bench: {pass: forward}`

error: ops.yaml:7:3: op `drop`: `pass: both` would measure gradients of random results, which are not told apart
  |
7 |   drop: {torch: add, inputs: {input: [M, N]}, backward: true, random: {kind: dropout, p: 0.5}}
  |   ^
hint: a random op is measured with `pass: forward`

error: ops.yaml:8:76: unknown pass `back`
  |
8 |   exp: {torch: add, inputs: {input: [M, N]}, backward: true, bench: {pass: back}}
  |                                                                            ^
hint: known: `forward`, `backward`, `both`
";
    refused(text, expected);
}

#[test]
fn a_baseline_is_torch_in_a_known_way_or_a_function_with_a_name_of_its_own() {
    let text = "\
version: 1
defaults: {bench: {sizes: {small: 8}}}
ops:
  x:
    torch: torch.add
    inputs: {input: [M], other: [M]}
    variants: [v1]
    bench:
      baselines:
        - torch
        - torch.compile:max-autotun
        - 'own.py::'
        - flag_gems
        - {name: gems}
        - {name: gems, function: flag_gems}
";
    let expected = "\
error: ops.yaml:11:11: `ops.x.bench.baselines[1]`: `torch.compile:max-autotun` is no baseline
   |
11 |         - torch.compile:max-autotun
   |           ^
hint: did you mean `torch.compile:max-autotune`?

error: ops.yaml:12:11: `ops.x.bench.baselines[2]`: `own.py::` is no baseline
   |
12 |         - 'own.py::'
   |           ^
hint: write a file of the workspace and a name in it: `kernels/geglu/reference.py::geglu`

error: ops.yaml:13:11: `ops.x.bench.baselines[3]`: `flag_gems` is no baseline
   |
13 |         - flag_gems
   |           ^
hint: known: `torch`, `torch.compile`, `torch.compile:max-autotune`, `torch.compile:reduce-overhead`, `torch.compile:max-autotune-no-cudagraphs`; of a function write `FILE.py::NAME`, or `{name: …, function: …}`

error: ops.yaml:14:11: `ops.x.bench.baselines[4]` has no function
   |
14 |         - {name: gems}
   |           ^
hint: add `function: flag_gems.ops.softmax`

error: ops.yaml:15:34: `ops.x.bench.baselines[5].function`: `flag_gems` is no function
   |
15 |         - {name: gems, function: flag_gems}
   |                                  ^
hint: write `MODULE.FUNCTION` of an installed module, or `FILE.py::NAME` of the workspace
";
    refused(text, expected);
    let text = "\
version: 1
defaults: {bench: {sizes: {small: 8}}}
ops:
  x:
    torch: torch.add
    inputs: {input: [M], other: [M]}
    variants: [v1]
    bench:
      baselines:
        - torch
        - own.py::v1
        - {name: gems, function: flag_gems.add}
        - other.py::gems
        - {name: torch, function: flag_gems.add}
";
    let expected = "\
error: ops.yaml:11:11: op `x`: baseline `v1` has the name of a variant
   |
11 |         - own.py::v1
   |           ^
hint: name it: `{name: NAME, function: …}`

error: ops.yaml:13:11: op `x`: baseline `gems` has the name of another baseline
   |
13 |         - other.py::gems
   |           ^
hint: name it: `{name: NAME, function: …}`

error: ops.yaml:14:11: op `x`: baseline `torch` has the name of another baseline
   |
14 |         - {name: torch, function: flag_gems.add}
   |           ^
hint: name it: `{name: NAME, function: …}`
";
    refused(text, expected);
}

#[test]
fn a_key_that_yaml_1_1_takes_for_a_flag_is_known_again() {
    let text = "\
version: 1
ops:
  softmax:
    torch: F.softmax
    inputs: {input: [M, N]}
    check: {edges: {strided: {false: the launcher asks for dense rows}}}
";
    let expected = "\
error: ops.yaml:6:31: unknown key `false` in `ops.softmax.check.edges.strided`
  |
6 |     check: {edges: {strided: {false: the launcher asks for dense rows}}}
  |                               ^
hint: write `off`: a program that knows YAML 1.1 alone takes it for a flag, and wrote that
";
    refused(text, expected);
}
