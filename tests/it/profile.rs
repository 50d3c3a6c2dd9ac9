//! `t2t profile` without a device: what it refuses, and that it leaves nothing.

use crate::workspace::Workspace;

const OPS: &str = "version: 1
defaults:
  check: {seeds: 1}
profiles:
  cpu: {bench: {sizes: {small: [8, 8]}, runs: 1, warmup_ms: 0, rep_ms: 1}}
ops:
  add:
    torch: torch.add
    inputs: {input: [M, N], other: [M, N]}
    kwargs: {alpha: 0.5}
    variants: [right]
";

#[test]
fn the_interpreter_is_no_device_and_nothing_is_kept() {
    let workspace = Workspace::new(OPS);
    workspace.copy("tests/bad_kernels/right.py", "kernels/add/right.py");
    let ran = workspace.run(&["profile", "add/right", "--device", "cpu"]);
    assert_eq!(ran.code, Some(2), "{}", ran.told);
    assert!(ran.told.contains("a profile needs a CUDA device"), "{}", ran.told);
    assert!(ran.told.contains("hint: run it where there is one"), "{}", ran.told);
    assert_eq!(ran.out, "");
    assert!(!workspace.path("cache/profile").exists());
}

#[test]
fn a_device_that_is_elsewhere_has_what_was_kept_of_it_alone() {
    let workspace = Workspace::new(OPS);
    workspace.copy("tests/bad_kernels/right.py", "kernels/add/right.py");
    let refused = |arguments: &[&str]| {
        let ran = workspace.run(&[&["profile", "--as-device", "nvidia-h200"], arguments].concat());
        assert_eq!(ran.out, "");
        (ran.code, ran.told)
    };
    let (code, told) = refused(&["add/right"]);
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("no bench of add/right stands that passed\nhint: run `t2t build add/right:bench`"), "{told}");
    for (arguments, message) in [
        (vec!["add"], "`add` names no variant\nhint: name one variant, as in `t2t profile softmax/v2_tiling`"),
        (vec!["sub/right"], "`sub` is no op"),
        (vec!["add/wrong"], "add has no variant `wrong`\nhint: it has right"),
        (vec!["add/right", "--size", "huge"], "add has no size `huge`\nhint: it has "),
        (vec!["add/right", "--dtype", "int7"], "add has no dtype `int7`\nhint: it has float32"),
    ] {
        let (code, told) = refused(&arguments);
        assert_eq!(code, Some(2), "{told}");
        assert!(told.contains(message), "{told}");
    }
}
