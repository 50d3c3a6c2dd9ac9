//! Two versions of a kernel on a device, timed against each other.
//!
//! It does not know how fast they are, but that one does many times the work of the other.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{ADDITION, Workspace, built};

const FILE: &str = "kernels/add/right.py";

/// The launch of the kernel, and twenty launches in its place.
const LAUNCH: &str =
    "    add_kernel[(triton.cdiv(x.numel(), 64),)](x, y, out, x.numel(), float(alpha), BLOCK_SIZE=64)\n";

#[test]
#[ignore = "needs a CUDA device: tests/gpu.sh runs it"]
fn a_version_that_launches_its_kernel_twenty_times_is_slower_and_an_equal_one_is_not() {
    let workspace = Workspace::new(&format!(
        "version: 1
defaults:
  check: {{seeds: 1, timeout: 60s, sizes: {{small: [16, 16]}}}}
  bench: {{sizes: {{small: [256, 256], large: [4096, 4096]}}}}
ops:
  add: {{{ADDITION}, variants: [right]}}
"
    ));
    workspace.copy("tests/bad_kernels/right.py", FILE);
    let text = workspace.read(FILE);
    assert!(text.contains(LAUNCH));
    workspace.write("often.py", text.replace(LAUNCH, &format!("    for _ in range(20):\n    {LAUNCH}")));
    workspace.write("equal.py", &text);
    let often = against(&workspace, "often.py");
    assert!(often.values().all(|verdict| verdict == "faster"), "{often:?}");
    // An interval leaves the truth out in one of twenty comparisons, half of them on this side: in two on end at one size it hardly does.
    let twice = [against(&workspace, "equal.py"), against(&workspace, "equal.py")];
    for name in twice[0].keys() {
        assert!(twice.iter().any(|verdicts| verdicts[name] != "slower"), "{name}: {twice:?}");
    }
}

/// Times the present version against another one, and returns the verdict at each size.
fn against(workspace: &Workspace, other: &str) -> BTreeMap<String, String> {
    let mut command = workspace.command(&["bench", "add/right", "--against", other, "--json", "--device", "cuda"]);
    command.env_remove("T2T_LOCK_DIR");
    let ran = built(command);
    assert_eq!(ran.code, Some(0), "{}", ran.told);
    let document: Value = serde_json::from_str(&ran.out).unwrap();
    println!("{other}: {document}");
    let sizes = document["sizes"].as_object().unwrap();
    sizes.iter().map(|(name, size)| (name.clone(), size["verdict"].as_str().unwrap().to_owned())).collect()
}
