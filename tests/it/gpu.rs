//! What only a CUDA device can show. Each test is ignored where `cargo test` runs them, with the reason; tests/gpu.sh runs them on a machine that has a device.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use t2t::action::DeviceClass;
use t2t::device;
use t2t::record::Outcome;
use t2t::store::cas::Cas;

use crate::environment;
use crate::workspace::{Ran, Workspace, finished};

const OPS: &str = "version: 1
defaults:
  dtypes: [float32, bfloat16]
  check: {seeds: 1, timeout: 60s}
  bench: {sizes: {small: [256, 256], medium: [512, 512]}, runs: 1, rep_ms: 20, baselines: [torch]}
ops:
  softmax:
    torch: softmax
    inputs: {input: [M, N]}
    kwargs: {dim: -1}
    variants: [v1_baseline, v4_optimized]
";

const V4: &str = "kernels/softmax/v4_optimized.py";

fn workspace(ops: &str) -> Workspace {
    let workspace = Workspace::new(ops);
    for variant in ["kernels/softmax/v1_baseline.py", V4] {
        workspace.copy(variant, variant);
    }
    workspace
}

/// The class of this machine's device: the model that the table has for its name.
fn class() -> DeviceClass {
    let found = device::devices(None, None);
    let name = &found.first().expect("tests/gpu.sh runs this on a machine with a CUDA device").name;
    let table = device::Models::read(t2t::assets::carried(t2t::assets::DEVICES).unwrap()).unwrap();
    DeviceClass::Cuda(table.find(name).map_or_else(|| device::plain_id(name), |(id, _)| id))
}

fn document(workspace: &Workspace, target: &str, name: &str) -> Value {
    let record = workspace.record_on(class(), target).unwrap_or_else(|| panic!("{target} has no record"));
    let bytes = Cas::open(&workspace.path("cache")).get(record.outputs[name].digest).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

/// An interpreter that says when it is started.
struct CountedPython(PathBuf);

impl CountedPython {
    fn new(workspace: &Workspace) -> Self {
        let path = workspace.path("counted/python3");
        let (log, python) = (workspace.path("counted/starts"), environment::python());
        let script = format!("#!/bin/sh\necho started >> '{}'\nexec '{}' \"$@\"\n", log.display(), python.display());
        workspace.write("counted/python3", script);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        Self(path)
    }

    fn build(&self, workspace: &Workspace) -> Ran {
        let mut command = workspace.command(&["build", "--device", "cuda"]);
        command.env("T2T_PYTHON", &self.0);
        finished(command)
    }

    fn starts(&self) -> usize {
        fs::read_to_string(self.0.with_file_name("starts")).map_or(0, |text| text.lines().count())
    }
}

fn expect_no_miss(workspace: &Workspace, target: &str, name: &str) {
    let cache = document(workspace, target, name)["triton_cache"].clone();
    assert_eq!(cache["misses"], serde_json::json!([]), "{target}");
    assert!(cache["hits"].as_u64().unwrap() > 0, "{target} found nothing compiled");
    assert_eq!(cache["launchers"]["misses"], serde_json::json!([]), "{target}");
    assert!(cache["launchers"]["hits"].as_u64().unwrap() > 0, "{target} launched nothing");
}

#[test]
#[ignore = "needs a CUDA device: tests/gpu.sh runs it"]
fn everything_that_a_device_launches_was_compiled_before_and_a_second_build_starts_no_python() {
    let workspace = workspace(OPS);
    let counted = CountedPython::new(&workspace);
    let ran = counted.build(&workspace);
    assert_eq!(ran.code, Some(0), "{}", ran.told);
    let starts = counted.starts();
    assert!(starts > 0);
    let again = counted.build(&workspace);
    assert!(again.told.contains("ran 0,") || again.told.contains("ran 0 "), "{}", again.told);
    assert_eq!((again.code, counted.starts()), (Some(0), starts), "a build of nothing started Python");
    for variant in ["v1_baseline", "v4_optimized"] {
        expect_no_miss(&workspace, &format!("softmax/{variant}:check"), "evidence");
        expect_no_miss(&workspace, &format!("softmax/{variant}:bench"), "bench");
    }
    expect_no_miss(&workspace, "softmax/v4_optimized:tune", "tune");
    workspace.edit(V4, "import torch\n", "# a comment that moves every line\n\nimport torch\n");
    assert_eq!(workspace.kept_by(|| drop(workspace.run(&["build", "--device", "cuda"]))), Vec::<String>::new());
    workspace.run(&["build", "--device", "cuda", "--force", "softmax/v4_optimized:check"]);
    expect_no_miss(&workspace, "softmax/v4_optimized:check", "evidence");
}

#[test]
#[ignore = "needs a CUDA device: tests/gpu.sh runs it"]
fn a_device_is_calibrated_by_name_and_once() {
    let workspace = workspace(OPS);
    let ran = workspace.run(&["build", "--device", "cuda", "calibrate"]);
    assert_eq!(ran.code, Some(0), "{}", ran.told);
    let calibration = document(&workspace, "calibrate", "calibration");
    let copies = calibration["copies"].as_array().unwrap();
    assert_eq!((copies.len(), &copies[8]["bytes"]), (9, &serde_json::json!(1_u64 << 31)), "{calibration}");
    assert!(calibration["copy_gb_per_s"].as_f64().unwrap() > 100.0, "{calibration}");
    let rate = |name: &str| calibration["products"][name]["tflop_per_s"].as_f64().unwrap();
    assert!(rate("float16") > rate("float32") && rate("float32") > 1.0, "{calibration}");
    let again = workspace.kept_by(|| drop(workspace.run(&["build", "--device", "cuda", "calibrate"])));
    assert_eq!(again, Vec::<String>::new());
}

/// The kernels of `tests/gpu_kernels` and some of `tests/bad_kernels`, each with how its check ends and what its failure says, in the order
/// in which they are checked.
const KERNELS: [(&str, &str, &str); 13] = [
    ("illegal_address", "exception", "illegal memory access"),
    ("misaligned", "exception", "misaligned address"),
    ("trap", "exception", "CUDA error"),
    ("device_assert", "exception", "device-side assert"),
    ("device_memory", "memory", "out of memory"),
    ("no_blocks", "nan", ""),
    ("stream_not_waited_for", "nan", ""),
    ("stream_that_does_not_wait", "nondeterministic", ""),
    ("stream_that_waits", PASSED, ""),
    // They raise where the sandbox lets them through.
    ("reads_secrets", PASSED, ""),
    ("writes_outside", PASSED, ""),
    ("opens_sockets", PASSED, ""),
    ("right", PASSED, ""),
];

const PASSED: &str = "passed";

/// Returns a workspace with [`KERNELS`] as an addition's variants, an endless kernel, and one that is another when it is timed.
fn bad_workspace() -> Workspace {
    let names: Vec<&str> = KERNELS.iter().map(|(name, ..)| *name).collect();
    let addition = "torch: torch.add, inputs: {input: [M, N], other: [M, N]}, kwargs: {alpha: 0.5}, entry: triton_add";
    let workspace = Workspace::new(&format!(
        "version: 1
defaults:
  check: {{seeds: 1, timeout: 60s, sizes: {{small: [16, 16]}}}}
  bench: {{sizes: {{small: [8192, 4096]}}, runs: 1, warmup_ms: 1, rep_ms: 30, baselines: [torch]}}
ops:
  add: {{{addition}, variants: [{}, shared_memory]}}
  endless: {{{addition}, variants: [endless], check: {{timeout: 5s}}}}
  timed: {{{addition}, variants: [right, stray_when_timed]}}
",
        names.join(", ")
    ));
    for (name, ..) in KERNELS {
        copy_kernel(&workspace, name, "add");
    }
    for (name, op) in
        [("shared_memory", "add"), ("endless", "endless"), ("right", "timed"), ("stray_when_timed", "timed")]
    {
        copy_kernel(&workspace, name, op);
    }
    workspace
}

fn copy_kernel(workspace: &Workspace, name: &str, op: &str) {
    let folders = ["tests/gpu_kernels", "tests/bad_kernels"];
    let files = folders.map(|folder| format!("{folder}/{name}.py"));
    let file = files.iter().find(|file| environment::root().join(file).exists()).unwrap();
    workspace.copy(file, &format!("kernels/{op}/{name}.py"));
}

#[test]
#[ignore = "needs a CUDA device: tests/gpu.sh runs it"]
fn a_kernel_that_goes_wrong_on_a_device_ends_in_its_class_and_leaves_the_next_unharmed() {
    let workspace = bad_workspace();
    let ran = workspace.run(&["build", "--device", "cuda", "--op", "add", "--phase", "check"]);
    assert_eq!(ran.code, Some(1), "{}", ran.told);
    let ends = KERNELS.map(|(name, ..)| {
        let target = format!("add/{name}:check");
        let verdict = document(&workspace, &target, "verdict");
        let failure = document(&workspace, &target, "evidence")["failure"]["message"].clone();
        let end = verdict["class"].as_str().or(verdict["verdict"].as_str()).unwrap_or_default().to_owned();
        (name, end, failure.as_str().unwrap_or_default().to_owned())
    });
    let wrong: Vec<_> = ends
        .iter()
        .zip(KERNELS)
        .filter(|((_, end, said), (_, class, words))| end != class || !said.contains(words))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}\n{}", ran.told);
    // What the device cannot hold is known before: its compile is rejected, and no device is asked.
    let compiled = workspace.record_on(class(), "add/shared_memory:compile").unwrap().outcome;
    assert_eq!(compiled, Outcome::Rejected { class: "compile-error".to_owned() });
    assert_eq!(workspace.record_on(class(), "add/shared_memory:check"), None);
}

#[test]
#[ignore = "needs a CUDA device: tests/gpu.sh runs it"]
fn work_that_is_left_to_a_stream_that_nothing_times_is_no_figure() {
    let workspace = bad_workspace();
    let ran = workspace.run(&["build", "--device", "cuda", "--op", "timed", "--phase", "bench"]);
    assert_eq!(ran.code, Some(1), "{}", ran.told);
    let failure = document(&workspace, "timed/stray_when_timed:bench", "failure");
    assert!(failure["message"].as_str().unwrap().contains("went on after the stream"), "{failure:#}");
    assert_eq!(document(&workspace, "timed/stray_when_timed:check", "verdict")["verdict"], PASSED);
    assert!(document(&workspace, "timed/right:bench", "bench")["final_ms"].as_f64().unwrap() > 0.0);
}

#[test]
#[ignore = "needs a CUDA device: tests/gpu.sh runs it"]
fn two_workspaces_take_turns_on_a_device_and_an_endless_kernel_gives_it_back() {
    let (holder, waiter) = (bad_workspace(), bad_workspace());
    let compiled = waiter.run(&["build", "--device", "cuda", "add/right:compile"]);
    assert_eq!(compiled.code, Some(0), "{}", compiled.told);
    let mut holding = holder.command(&["build", "--device", "cuda", "endless/endless:check"]);
    let mut holding = holding.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until_locked(&holder);
    let mut waiting = waiter.command(&["build", "--device", "cuda", "add/right:check"]);
    let ended = finished({
        waiting.env("T2T_LOCK_DIR", holder.path("locks"));
        waiting
    });
    assert_eq!(holding.wait().unwrap().code(), Some(1));
    assert_eq!(document(&holder, "endless/endless:check", "verdict")["class"], "timeout");
    assert_eq!(ended.code, Some(0), "{}", ended.told);
    let place = holder.root().to_str().unwrap();
    let told = ended.told.lines().find(|line| line.contains("pid")).unwrap_or_default();
    assert!(told.contains(&holding.id().to_string()) && told.contains(place), "{}", ended.told);
}

/// Waits until a device's lock names `workspace`.
fn wait_until_locked(workspace: &Workspace) {
    let place = workspace.root().to_str().unwrap();
    let start = Instant::now();
    while start.elapsed() < Duration::from_mins(1) {
        let files = fs::read_dir(workspace.path("locks")).into_iter().flatten().flatten();
        if files.into_iter().any(|file| fs::read_to_string(file.path()).is_ok_and(|text| text.contains(place))) {
            return;
        }
        thread::sleep(Duration::from_millis(20));
    }
    panic!("no device was locked");
}

#[test]
#[ignore = "needs a CUDA device: tests/gpu.sh runs it"]
fn doctor_says_what_holds_kernels_in() {
    let workspace = bad_workspace();
    let ran = workspace.run(&["doctor"]);
    let found = device::devices(None, None);
    let locks = workspace.path("locks");
    let wanted = ["sandbox: landlock", "seccomp", "/dev/nvidia*", &found[0].uuid, locks.to_str().unwrap()];
    let missing: Vec<_> = wanted.iter().filter(|part| !ran.out.contains(**part)).collect();
    assert!(missing.is_empty(), "{missing:?} in\n{}", ran.out);
}
