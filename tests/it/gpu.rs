//! What only a CUDA device can show. Each test is ignored where `cargo test` runs them, with the reason; tests/gpu.sh runs them on a machine that has a device.

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use t2t_host::device::{self, Device};
use t2t_model::action::DeviceClass;
use t2t_model::record::Outcome;
use t2t_store::store::cas::Cas;

use crate::environment;
use crate::real::adoption;
use crate::real::cuda;
use crate::real::hostile;
use crate::workspace::{Ran, Workspace, finished};

mod baselines;
mod eights;
mod extensions;
mod modules;
mod profile;
mod versions;

/// How the kernels of `tests/gpu_kernels` and `tests/bad_kernels` are called.
const ADDITION: &str =
    "torch: torch.add, inputs: {input: [M, N], other: [M, N]}, kwargs: {alpha: 0.5}, entry: triton_add";

/// The devices that `CUDA_VISIBLE_DEVICES` leaves of this machine's.
fn visible_devices() -> Vec<Device> {
    let found = device::devices(env::var("CUDA_VISIBLE_DEVICES").ok().as_deref(), None);
    assert!(!found.is_empty(), "tests/gpu.sh runs this on a machine with a CUDA device");
    found
}

/// The class of this machine's devices: the model that the table has for the first one's name.
fn class() -> DeviceClass {
    let name = &visible_devices()[0].name;
    let table = device::Models::read(t2t_store::assets::carried(t2t_store::assets::DEVICES).unwrap()).unwrap();
    DeviceClass::Cuda(table.find(name).map_or_else(|| device::plain_id(name), |(id, _)| id))
}

/// Returns a build of `targets` in `workspace`. It shares the machine's own locks, so that tests at once take turns on a device.
fn build(workspace: &Workspace, targets: &[&str]) -> Command {
    let mut command = workspace.command(&[&["build"], targets].concat());
    command.env_remove("T2T_LOCK_DIR");
    command
}

/// Runs a build to its end, and says how long that took: tests/gpu.sh prints it.
fn built(command: Command) -> Ran {
    let (start, what) = (Instant::now(), format!("{:?}", command.get_args()));
    let ran = finished(command);
    println!("{:.1} s: {what}", start.elapsed().as_secs_f64());
    ran
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
        let mut command = build(workspace, &["--device", "cuda"]);
        command.env("T2T_PYTHON", &self.0);
        built(command)
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
    let workspace = Workspace::new(&format!(
        "version: 1
defaults:
  dtypes: [float32, float16, bfloat16]
  check: {{seeds: 1, timeout: 60s, sizes: {{small: [16, 16]}}}}
  bench: {{sizes: {{small: [256, 256], medium: [512, 512]}}, runs: 1, warmup_ms: 5, rep_ms: 10, baselines: [torch]}}
ops:
  add: {{{ADDITION}, variants: [right, autotuned]}}
"
    ));
    for variant in ["right", "autotuned"] {
        copy_kernel(&workspace, variant, "add");
    }
    let compile = ["--device", "cuda", "--phase", "compile"];
    let ran = built(build(&workspace, &compile));
    assert_eq!(ran.code, Some(0), "{}", ran.told);
    // Lines are no part of what is compiled: what follows finds it where they have moved, too.
    for variant in ["right", "autotuned"] {
        let file = format!("kernels/add/{variant}.py");
        workspace.edit(&file, "import torch\n", "# a comment that moves every line\n\nimport torch\n");
    }
    assert_eq!(workspace.kept_by(|| drop(built(build(&workspace, &compile)))), Vec::<String>::new());
    let counted = CountedPython::new(&workspace);
    let ran = counted.build(&workspace);
    assert_eq!(ran.code, Some(0), "{}", ran.told);
    let starts = counted.starts();
    assert!(starts > 0);
    let again = counted.build(&workspace);
    assert!(again.told.contains("ran 0,") || again.told.contains("ran 0 "), "{}", again.told);
    assert_eq!((again.code, counted.starts()), (Some(0), starts), "a build of nothing started Python");
    for variant in ["right", "autotuned"] {
        expect_no_miss(&workspace, &format!("add/{variant}:check"), "evidence");
        expect_no_miss(&workspace, &format!("add/{variant}:bench"), "bench");
    }
    expect_no_miss(&workspace, "add/autotuned:tune", "tune");
}

/// Where the operator of `examples/cuda` launches.
const LAUNCH: &str = "kernel[out.numel() // n, THREADS](x, out, n, inner)";

#[test]
#[ignore = "needs a CUDA device: tests/gpu.sh runs it"]
fn a_variant_in_cuda_is_judged_and_measured_beside_one_in_triton() {
    if !cuda::has_nvcc() {
        return;
    }
    let workspace = adoption::copied("examples/cuda");
    let ran = built(build(&workspace, &["--device", "cuda", "softmax"]));
    assert_eq!(ran.code, Some(0), "{}", ran.told);
    for variant in ["cuda_plain", "cuda_warps", "cuda_registers", "triton_rows"] {
        let target = format!("softmax/{variant}:check");
        assert_eq!(document(&workspace, &target, "verdict")["verdict"], "passed", "{}", ran.told);
        let bench = document(&workspace, &format!("softmax/{variant}:bench"), "bench");
        println!("{variant}: {bench}");
    }
    let evidence = document(&workspace, "softmax/cuda_plain:check", "evidence");
    println!("{evidence}");
}

#[test]
#[ignore = "needs a CUDA device: tests/gpu.sh runs it"]
fn what_is_wrong_in_cuda_is_rejected_and_ends_its_own_process_alone() {
    if !cuda::has_nvcc() {
        return;
    }
    let (source, operator) = ("kernels/softmax/cuda_plain.cu", "kernels/softmax/cuda_plain.py");
    let past = "kernel.launch((out.numel() // n, 1, 1), (THREADS, 1, 1), 0, torch.cuda.current_stream().cuda_stream, (x, out, n, inner))";
    let edits: [(&str, &str, &str, &[&str]); 5] = [
        (source, "output[place] = ", "output[place + (1LL << 40)] = ", &["exception", "crash"]),
        (source, "total += expf(", "total += 0.5f * expf(", &["mismatch"]),
        (operator, LAUNCH, past, &["torch-fallback", "no-kernel-launched"]),
        (operator, LAUNCH, "out.copy_(torch.softmax(x.float(), dim))", &["torch-fallback"]),
        (operator, "(x, out, n, inner)", "(x, out.data_ptr(), n, inner)", &["torch-fallback"]),
    ];
    for (file, from, to, classes) in edits {
        let workspace = adoption::copied("examples/cuda");
        workspace.edit(file, from, to);
        let ran =
            built(build(&workspace, &["--device", "cuda", "softmax/cuda_plain:check", "softmax/triton_rows:check"]));
        let record = workspace.record_on(class(), "softmax/cuda_plain:check").unwrap();
        let Outcome::Rejected { class: got } = record.outcome else { panic!("{to} passed: {}", ran.told) };
        assert!(classes.contains(&got.as_str()), "{to} is {got}: {}", ran.told);
        let other = document(&workspace, "softmax/triton_rows:check", "verdict");
        assert_eq!(other["verdict"], "passed", "{}", ran.told);
    }
}

#[test]
#[ignore = "needs a CUDA device: tests/gpu.sh runs it"]
fn an_image_for_no_device_that_is_there_is_rejected_and_ptx_runs_on_a_later_one() {
    if !cuda::has_nvcc() {
        return;
    }
    let workspace = adoption::copied("examples/cuda");
    for variant in ["cuda_plain", "extension"] {
        let with = |list: &str| {
            let mut command = build(&workspace, &["--device", "cuda", &format!("softmax/{variant}:check")]);
            command.env("TORCH_CUDA_ARCH_LIST", list);
            built(command)
        };
        let told = with("7.5");
        assert!(told.told.contains("rejected (architecture)"), "{}", told.told);
        assert_eq!(with("7.5+PTX").code, Some(0), "{variant}");
    }
}

/// The kernels of `tests/gpu_kernels` and some of `tests/bad_kernels`, each with how its check may end and what its failure says, in the order
/// in which they are checked.
const KERNELS: [(&str, &[&str], &str); 16] = [
    ("illegal_address", &["exception"], "illegal memory access"),
    ("misaligned", &["exception"], "misaligned address"),
    ("trap", &["exception"], "CUDA error"),
    ("device_assert", &["exception"], "device-side assert"),
    ("device_memory", &["memory"], "out of memory"),
    ("no_blocks", &["nan"], ""),
    // What is refused ends no check, and what breaks the device is no refusal.
    ("refuses_an_argument", &["nan"], ""),
    ("stops_at_an_argument", &["exception"], "CUDA error"),
    ("stream_not_waited_for", RACES, ""),
    ("stream_that_does_not_wait", RACES, ""),
    ("stream_that_waits", &[PASSED], ""),
    // They raise where the sandbox lets them through.
    ("reads_secrets", &[PASSED], ""),
    ("writes_outside", &[PASSED], ""),
    ("opens_sockets", &[PASSED], ""),
    // What it does wrong it does when it is timed.
    ("stray_when_timed", &[PASSED], ""),
    ("right", &[PASSED], ""),
];

const PASSED: &str = "passed";

/// How a race may end: what is read too early is whatever the memory held before, in one run or in both. That may be NaN, other values, or other
/// values each time. Which case is the first to show it is chance as well.
const RACES: &[&str] = &["mismatch", "nan", "nondeterministic"];

/// Returns a workspace with [`KERNELS`] as an addition's variants, and an endless kernel.
fn bad_workspace() -> Workspace {
    let names: Vec<&str> = KERNELS.iter().map(|(name, ..)| *name).collect();
    let workspace = Workspace::new(&format!(
        "version: 1
defaults:
  check: {{seeds: 1, timeout: 60s, sizes: {{small: [16, 16]}}}}
  bench: {{sizes: {{small: [8192, 4096]}}, runs: 1, warmup_ms: 1, rep_ms: 30, baselines: [torch]}}
ops:
  add: {{{ADDITION}, variants: [{}, shared_memory]}}
  endless: {{{ADDITION}, variants: [endless], check: {{timeout: 30s}}}}
",
        names.join(", ")
    ));
    for (name, ..) in KERNELS {
        copy_kernel(&workspace, name, "add");
    }
    for (name, op) in [("shared_memory", "add"), ("endless", "endless")] {
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
    // One device: the next kernel is to meet what the last one left.
    let timed = ["add/right:bench", "add/stray_when_timed:bench"];
    let ran = built(build(&workspace, &[&["--device", "cuda:0", "add:check"], &timed[..]].concat()));
    assert_eq!(ran.code, Some(1), "{}", ran.told);
    let wrong: Vec<_> = KERNELS
        .into_iter()
        .filter_map(|(name, ends, words)| {
            let (end, said) = checked(&workspace, name);
            let is_expected = ends.contains(&end.as_str()) && said.contains(words);
            (!is_expected).then_some((name, end, said))
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}\n{}", ran.told);
    // What the device cannot hold is known before: its compile is rejected, and no device is asked.
    let compiled = workspace.record_on(class(), "add/shared_memory:compile").unwrap().outcome;
    assert_eq!(compiled, Outcome::Rejected { class: "compile-error".to_owned() });
    assert_eq!(workspace.record_on(class(), "add/shared_memory:check"), None);
    // Work that is left to a stream that nothing times is no figure.
    let failure = document(&workspace, "add/stray_when_timed:bench", "failure");
    assert!(failure["message"].as_str().unwrap().contains("went on after the stream"), "{failure:#}");
    assert!(document(&workspace, "add/right:bench", "bench")["final_ms"].as_f64().unwrap() > 0.0);
}

/// How the check of a variant of `add` ended, and what its failure says.
fn checked(workspace: &Workspace, variant: &str) -> (String, String) {
    let target = format!("add/{variant}:check");
    let verdict = document(workspace, &target, "verdict");
    let failure = document(workspace, &target, "evidence")["failure"]["message"].clone();
    let end = verdict["class"].as_str().or(verdict["verdict"].as_str()).unwrap_or_default();
    (end.to_owned(), failure.as_str().unwrap_or_default().to_owned())
}

#[test]
#[ignore = "needs a CUDA device: tests/gpu.sh runs it"]
fn two_workspaces_take_turns_on_a_device_which_an_endless_kernel_gives_back_and_which_is_calibrated_once() {
    let (holder, waiter) = (bad_workspace(), bad_workspace());
    let calibrate = || {
        let mut command = build(&waiter, &["--device", "cuda:0", "calibrate"]);
        command.env("T2T_LOCK_DIR", holder.path("locks"));
        built(command)
    };
    // The endless kernel outlasts the start of the other's interpreter, so that this one has something to wait for.
    let mut holding = build(&holder, &["--device", "cuda:0", "endless/endless:check"]);
    holding.env("T2T_LOCK_DIR", holder.path("locks")).stdout(Stdio::null()).stderr(Stdio::null());
    let mut holding = holding.spawn().unwrap();
    wait_until_locked(&holder);
    let ended = calibrate();
    assert_eq!(holding.wait().unwrap().code(), Some(1));
    assert_eq!(document(&holder, "endless/endless:check", "verdict")["class"], "timeout");
    assert_eq!(ended.code, Some(0), "{}", ended.told);
    let place = holder.root().to_str().unwrap();
    let told = ended.told.lines().find(|line| line.contains("pid")).unwrap_or_default();
    assert!(told.contains(&holding.id().to_string()) && told.contains(place), "{}", ended.told);
    expect_calibrated(&waiter);
    assert_eq!(waiter.kept_by(|| drop(calibrate())), Vec::<String>::new());
}

fn expect_calibrated(workspace: &Workspace) {
    let calibration = document(workspace, "calibrate", "calibration");
    let copies = calibration["copies"].as_array().unwrap();
    assert_eq!((copies.len(), &copies[8]["bytes"]), (9, &serde_json::json!(1_u64 << 31)), "{calibration}");
    assert!(calibration["copy_gb_per_s"].as_f64().unwrap() > 100.0, "{calibration}");
    let rate = |name: &str| calibration["products"][name]["tflop_per_s"].as_f64().unwrap();
    assert!(rate("float16") > rate("float32") && rate("float32") > 1.0, "{calibration}");
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
    let found = visible_devices();
    let locks = workspace.path("locks");
    let mut wanted = vec!["sandbox: landlock", "seccomp", "/dev/nvidia*", locks.to_str().unwrap()];
    wanted.extend(found.iter().map(|device| device.uuid.as_str()));
    let missing: Vec<_> = wanted.iter().filter(|part| !ran.out.contains(**part)).collect();
    assert!(missing.is_empty(), "{missing:?} in\n{}", ran.out);
}

#[test]
#[ignore = "needs a CUDA device: tests/gpu.sh runs it"]
fn every_trick_is_caught_and_every_honest_kernel_passes_on_a_device() {
    let workspace = hostile::workspace();
    let ran = built(build(&workspace, &["--device", "cuda"]));
    assert_eq!(ran.code, Some(1), "{}", ran.told);
    let wrong = hostile::wrong(&workspace, &class());
    assert!(wrong.is_empty(), "{}\n{}", wrong.join("\n"), ran.told);
}

#[test]
#[ignore = "needs a CUDA device: tests/gpu.sh runs it"]
fn every_kernel_of_the_corpus_gets_the_verdict_that_it_deserves_on_a_device() {
    let workspace = adoption::workspace();
    let ran = built(build(&workspace, &["--device", "cuda", "--phase", "check"]));
    assert_eq!(ran.code, Some(1), "{}", ran.told);
    let wrong = adoption::wrong(&workspace, &class());
    assert!(wrong.is_empty(), "{}\n{}", wrong.join("\n"), ran.told);
}
