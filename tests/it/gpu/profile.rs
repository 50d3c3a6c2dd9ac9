//! A profile on a device: what CUPTI records of calls whose work is known.
//!
//! It does not know how fast the device is.

use serde_json::Value;

use super::{ADDITION, Workspace, built};

const FILE: &str = "kernels/add/right.py";

#[test]
#[ignore = "needs a CUDA device: tests/gpu.sh runs it"]
fn a_profile_counts_the_launches_of_a_call_and_is_answered_from_the_store_the_second_time() {
    let workspace = Workspace::new(&format!(
        "version: 1
defaults:
  check: {{seeds: 1, timeout: 60s, sizes: {{small: [16, 16]}}}}
  bench: {{sizes: {{small: [8, 8], large: [8192, 8192]}}}}
ops:
  add: {{{ADDITION}, variants: [right]}}
"
    ));
    workspace.copy("tests/bad_kernels/right.py", FILE);
    let run = |arguments: &[&str]| {
        let mut command = workspace.command(&[arguments, &["--device", "cuda"]].concat());
        command.env_remove("T2T_LOCK_DIR");
        built(command)
    };
    let early = run(&["profile", "add/right"]);
    assert_eq!(early.code, Some(1), "{}", early.told);
    assert!(early.told.contains("hint: run `t2t build add/right:bench`"), "{}", early.told);
    let bench = run(&["build", "add/right:bench", "add:analyze", "calibrate"]);
    assert_eq!(bench.code, Some(0), "{}", bench.told);
    let profile = |size: &str| {
        let ran = run(&["profile", "add/right", "--size", size, "--json"]);
        assert_eq!(ran.code, Some(0), "{}", ran.told);
        println!("{}", ran.out);
        (serde_json::from_str::<Value>(&ran.out).unwrap(), ran)
    };
    let (large, first) = profile("large");
    assert!(first.told.contains("profile of add/right at `large`"), "{}", first.told);
    let found = &large["profile"];
    assert_eq!(found["calls"], 30);
    let kernels = found["kernels"].as_array().unwrap();
    assert_eq!(kernels.len(), 1, "{large}");
    assert_eq!((&kernels[0]["kernel"], &kernels[0]["launches"]), (&"add_kernel".into(), &1.0.into()), "{large}");
    // A program adds 64 elements.
    assert_eq!(kernels[0]["programs"], 8192 * 8192 / 64, "{large}");
    assert!(kernels[0]["occupancy"].as_f64().unwrap() <= 1.0 && kernels[0]["registers"].as_u64().unwrap() > 0);
    // Two tensors are read, one is written.
    assert_eq!(found["bytes"].as_f64(), Some(3.0 * 4.0 * 8192.0 * 8192.0), "{large}");
    assert!(found["of_copy"].as_f64().unwrap() < 1.2, "a kernel moves no more than a device can: {large}");
    assert!(["memory", "latency"].contains(&found["bound"].as_str().unwrap()), "{large}");

    let (again, second) = profile("large");
    assert_eq!(again["profile"], large["profile"]);
    assert!(!second.told.contains("profile of add/right at"), "it was recorded again: {}", second.told);

    let (small, _) = profile("small");
    assert!(["host", "few-programs"].contains(&small["profile"]["bound"].as_str().unwrap()), "{small}");
    println!("{}", run(&["profile", "add/right"]).out);

    if std::process::Command::new("ncu").arg("--version").output().is_err() {
        println!("no counters: `ncu` is not there");
        return;
    }
    let counters = ["profile", "add/right", "--size", "large", "--counters"];
    let counted = run(&[&counters[..], &["--json"]].concat());
    assert_eq!(counted.code, Some(0), "{}", counted.told);
    let found: Value = serde_json::from_str(&counted.out).unwrap();
    let kernels = found["counters"]["kernels"].as_array().unwrap();
    assert_eq!((kernels.len(), &kernels[0]["kernel"]), (1, &"add_kernel".into()), "{found}");
    // What is read and written is far more than a cache holds; some of what is written stays in it.
    let tensor = 4.0 * 8192.0 * 8192.0;
    let moved = |name: &str| kernels[0][name].as_f64().unwrap() / tensor;
    assert!((moved("read") - 2.0).abs() < 0.1 && (0.7..1.1).contains(&moved("written")), "{found}");
    assert_eq!(kernels[0]["tensor"].as_f64(), Some(0.0), "{found}");
    assert!(!kernels[0]["waits"].as_object().unwrap().is_empty(), "{found}");
    let again = run(&counters);
    assert!(!again.told.contains("counters of add/right at"), "they were read again: {}", again.told);
    assert!(again.out.contains("warps of add_kernel wait for"), "{}", again.out);
    println!("{}", again.out);
}
