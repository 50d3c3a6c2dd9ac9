//! How functions are called, and what they return.
//!
//! It does not know torch, but for a few names and one signature.

use t2t_spec::{Signature, Signatures, Spec, TorchNames};

use super::{errors_in, refused};

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
      f: {compare: rows, unset: -1}
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

error: ops.yaml:12:33: op `add`: output `f` has `unset`, and nothing in its place
   |
12 |       f: {compare: rows, unset: -1}
   |                                 ^
hint: remove `unset`, or compare it as `close`, `exact` or `indices`
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

#[test]
fn methods_are_names_or_calls_and_only_one_says_how_it_is_called() {
    let text = "\
version: 1
defaults: {bench: {sizes: {small: 8}}}
ops:
  x:
    torch: torch.sub
    inputs: {input: [M], other: [M]}
    kwargs: {alpha: 2}
    outputs: {result: close}
    variants:
      - {name: good, methods: {forward: 'fwd(other, input)', backward: 'bwd(grad, output, grad_result, alpha=alpha)'}}
      - {name: plain, methods: {}}
      - {name: unknown, methods: {backward: 'backward(grad, outptu)'}}
      - {name: early, methods: {forward: 'forward(input, grad)'}}
      - {name: dotted, methods: {forward: 'kernels.forward'}}
      - {name: both, call: 'entry(input)', methods: {}}
      - {name: misspelt, methods: {backwards: bwd}}
";
    let expected = "\
error: ops.yaml:12:45: op `x`: `backward` names `outptu`, which is neither an input nor a kwarg of the op
   |
12 |       - {name: unknown, methods: {backward: 'backward(grad, outptu)'}}
   |                                             ^
hint: did you mean `output`?

error: ops.yaml:13:42: op `x`: `forward` names `grad`, which is neither an input nor a kwarg of the op
   |
13 |       - {name: early, methods: {forward: 'forward(input, grad)'}}
   |                                          ^
hint: known: `input`, `other`, `alpha`

error: ops.yaml:14:43: `ops.x.variants[4].methods.forward`: `kernels.forward` is no method
   |
14 |       - {name: dotted, methods: {forward: 'kernels.forward'}}
   |                                           ^
hint: write its name, or a call of it as in `backward(grad, output, dim)`

error: ops.yaml:15:28: op `x`: `call` and `methods` both say how it is called
   |
15 |       - {name: both, call: 'entry(input)', methods: {}}
   |                            ^
hint: keep one: `methods` says how each method is called, as in `{forward: \"forward(input, dim)\"}`

error: ops.yaml:16:36: unknown key `backwards` in `ops.x.variants[6].methods`
   |
16 |       - {name: misspelt, methods: {backwards: bwd}}
   |                                    ^
hint: did you mean `backward`?
";
    refused(text, expected);
}
