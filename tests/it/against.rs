//! `t2t bench OP/VARIANT --against`: two versions of a kernel in Triton's interpreter, and what is no version.

use std::process::Command;

use serde_json::Value;

use crate::workspace::{Ran, Workspace};

const OPS: &str = "version: 1
defaults:
  check: {seeds: 1}
profiles:
  cpu: {bench: {sizes: {small: [8, 8], medium: [32, 32]}, runs: 1, warmup_ms: 0, rep_ms: 1}}
ops:
  add:
    torch: torch.add
    inputs: {input: [M, N], other: [M, N]}
    kwargs: {alpha: 0.5}
    variants: [right]
";

const FILE: &str = "kernels/add/right.py";

/// The end of the wrapper, and one that launches the kernel 20 times: it does 20 times the work for the same result.
const ONCE: &str = "    add_kernel[(triton.cdiv(x.numel(), 64),)](x, y, out, x.numel(), float(alpha), BLOCK_SIZE=64)\n";
const OFTEN: &str = "    for _ in range(20):\n        add_kernel[(triton.cdiv(x.numel(), 64),)](x, y, out, x.numel(), float(alpha), BLOCK_SIZE=64)\n";

/// A workspace in a repository: the first commit has a kernel that does 20 times the work, the files have one that does not.
fn workspace() -> Workspace {
    let workspace = Workspace::with_zygote(OPS);
    workspace.copy("tests/bad_kernels/right.py", FILE);
    workspace.edit(FILE, ONCE, OFTEN);
    workspace.write(".gitignore", "/cache/\n/logs/\n/home/\n/locks/\n");
    git(&workspace, &["init", "-q", "-b", "main"]);
    git(&workspace, &["add", "."]);
    git(&workspace, &["commit", "-qm", "slow"]);
    workspace.edit(FILE, OFTEN, ONCE);
    workspace
}

fn git(workspace: &Workspace, arguments: &[&str]) {
    let own = ["-c", "user.name=t2t", "-c", "user.email=t2t@example.org", "-c", "commit.gpgsign=false"];
    let ran = Command::new("git").args(own).args(arguments).current_dir(workspace.root()).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

fn against(workspace: &Workspace, other: &str, more: &[&str]) -> Ran {
    workspace.run(&[&["bench", "add/right", "--device", "cpu", "--against", other], more].concat())
}

#[test]
fn a_version_that_does_much_more_is_slower_at_every_size_and_nothing_is_written() {
    let workspace = workspace();
    let built = workspace.build(&[]);
    assert_eq!(built.code, Some(0), "{}", built.told);
    let (kernel, bench) = (workspace.read(FILE), workspace.artifact("add/right:bench", "bench"));
    let ran = against(&workspace, "HEAD", &["--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.told);
    assert!(ran.told.contains("they say nothing about a GPU"), "{}", ran.told);
    let document: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&document["target"], &document["against"]["name"]), (&"add/right".into(), &"HEAD".into()));
    assert_eq!(document["against"]["commit"].as_str().map(str::len), Some(40));
    assert_eq!(document["sizes"].as_object().unwrap().len(), 2);
    for size in ["small", "medium"] {
        let told = &document["sizes"][size];
        let number = |name: &str| told[name].as_f64().unwrap();
        assert!(number("low") > 1.0 && number("ratio") > number("low") && number("high") > number("ratio"), "{told}");
        assert!(number("other_ms") > number("present_ms"), "{told}");
        assert_eq!(told["verdict"], "faster", "{told}");
    }
    assert_eq!(workspace.read(FILE), kernel);
    assert_eq!(workspace.artifact("add/right:bench", "bench"), bench);
    assert!(!workspace.path("cache/against/add").exists(), "the copy of the workspace is gone");
    let again = workspace.kept_by(|| {
        let again = workspace.build(&[]);
        assert!(again.told.contains("ran 0"), "{}", again.told);
    });
    assert_eq!(again, Vec::<String>::new());
    // The other way round: the file that is there is the slow one.
    workspace.write("old.py", &kernel);
    workspace.edit(FILE, ONCE, OFTEN);
    let ran = against(&workspace, "old.py", &[]);
    assert_eq!(ran.code, Some(0), "slower is no failure: {}", ran.told);
    assert!(ran.out.starts_with("add/right against old.py: "), "{}", ran.out);
    assert_eq!(ran.out.matches(" slower").count(), 2, "{}", ran.out);
}

#[test]
fn what_is_no_version_is_said_and_what_is_rejected_is_not_timed() {
    let workspace = workspace();
    for (other, told) in [
        ("no-such-branch", "error: `no-such-branch` is no commit that git knows, and no file"),
        ("gone.py", "error: no file `gone.py`\nhint: name a Python file that is there, or a commit"),
        ("kernels/none/gone.py", "error: no file `kernels/none/gone.py`"),
    ] {
        let ran = against(&workspace, other, &[]);
        assert_eq!(ran.code, Some(2), "{}", ran.told);
        assert!(ran.told.contains(told), "{}", ran.told);
    }
    git(&workspace, &["rm", "-q", "--cached", FILE]);
    git(&workspace, &["commit", "-qm", "without"]);
    let ran = against(&workspace, "HEAD", &[]);
    assert_eq!(ran.code, Some(2), "{}", ran.told);
    assert!(ran.told.contains(&format!("`HEAD` has no file `{FILE}`")), "{}", ran.told);
    for (arguments, told) in [
        (["add", "--against", "HEAD"].as_slice(), "compares two versions of one kernel"),
        (&["add/left", "--against", "HEAD"], "add has no variant `left`\nhint: it has right"),
        (&["add/right", "--json"], "--against"),
        (&["add/right", "--sweep", "--against", "HEAD"], "cannot be used with"),
    ] {
        let ran = workspace.run(&[&["bench", "--device", "cpu"], arguments].concat());
        assert_eq!(ran.code, Some(2), "{}", ran.told);
        assert!(ran.told.contains(told), "{arguments:?}: {}", ran.told);
    }
    let wrong = workspace.read(FILE).replace("x + alpha * y", "x + alpha * y + 1");
    workspace.write("wrong.py", &wrong);
    let ran = against(&workspace, "wrong.py", &["--json"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{}", ran.told);
    assert!(ran.told.contains("error: add/right at wrong.py is rejected: "), "{}", ran.told);
    assert!(ran.told.contains("(mismatch, check)\nhint: only right kernels are timed"), "{}", ran.told);
    // The present one may be the wrong one, too.
    workspace.write("right.py", workspace.read(FILE));
    workspace.write(FILE, &wrong);
    let ran = against(&workspace, "right.py", &[]);
    assert_eq!(ran.code, Some(1), "{}", ran.told);
    assert!(ran.told.contains("error: add/right is rejected: "), "{}", ran.told);
    assert_eq!(workspace.read(FILE), wrong);
}
