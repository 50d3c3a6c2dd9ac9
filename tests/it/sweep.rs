//! `t2t bench`: one op's variants measured as a build does, and swept over sizes that no build keeps.

use serde_json::Value;

use crate::workspace::Workspace;

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
    variants: [right, raises]
";

fn workspace() -> Workspace {
    let workspace = Workspace::with_zygote(OPS);
    for name in ["right", "raises"] {
        workspace.copy(&format!("tests/bad_kernels/{name}.py"), &format!("kernels/add/{name}.py"));
    }
    workspace
}

#[test]
fn a_sweep_times_right_kernels_at_powers_of_two_and_keeps_nothing() {
    let workspace = workspace();
    let sweep = |more: &[&str]| workspace.run(&[&["bench", "add", "--sweep", "--device", "cpu"], more].concat());
    let unchecked = sweep(&["--variant", "right"]);
    assert_eq!(unchecked.code, Some(1), "{}", unchecked.told);
    assert!(unchecked.told.contains("right (not checked)\nhint: run `t2t build add:check`"), "{}", unchecked.told);

    workspace.build(&["add:check"]);
    let wrong = sweep(&[]);
    assert_eq!(wrong.code, Some(1), "{}", wrong.told);
    assert!(wrong.told.contains("raises (rejected)"), "{}", wrong.told);

    let mut ran = None;
    let kept = workspace.kept_by(|| ran = Some(sweep(&["--variant", "right", "--out", "figures"])));
    let ran = ran.unwrap();
    assert_eq!((ran.code, kept), (Some(0), Vec::new()), "{}", ran.told);
    assert!(ran.told.contains("they say nothing about a GPU"), "{}", ran.told);
    let document: Value = serde_json::from_str(&workspace.read("figures/add.json")).unwrap();
    let lengths: Vec<u64> =
        document["points"].as_array().unwrap().iter().map(|point| point["binding"]["N"].as_u64().unwrap()).collect();
    assert_eq!(lengths, [8, 16, 32]);
    let subjects = serde_json::json!(["right"]);
    assert_eq!((&document["unit"], &document["subjects"]), (&"ms in the interpreter".into(), &subjects));
    // No rate: how long the interpreter took for a call.
    let point = &document["points"][2];
    assert!(point["rate"]["right"].as_f64().unwrap() > 0.0);
    assert_eq!(point["rate"]["right"], point["ms"]["right"]["median"]);
    let csv = workspace.read("figures/add.csv");
    assert!(csv.starts_with("M,N,right (ms in the interpreter),right median (ms),"), "{csv}");
    assert!(!csv.contains("torch"), "{csv}");
    assert!(workspace.read("figures/add.svg").contains("32×32"));
    assert_eq!(ran.out.lines().count(), 5, "{}", ran.out);
    assert!(!workspace.path("logs/sweep").exists());
}

#[test]
fn bench_without_a_sweep_is_a_build_of_the_benches() {
    let workspace = workspace();
    let ran = workspace.run(&["bench", "add", "--variant", "right", "--device", "cpu"]);
    assert_eq!(ran.code, Some(0), "{}", ran.told);
    assert_eq!(workspace.outcome("add/right:bench"), "passed");
    let misused = workspace.run(&["bench", "add/right", "--sweep", "--device", "cpu"]);
    assert_eq!(misused.code, Some(2), "{}", misused.told);
}
