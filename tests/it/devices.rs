//! Builds on machines with devices, which a driver's folder describes and the interpreter for tests plays: who runs where, who waits for
//! whom, and what is told of it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread::available_parallelism;
use std::{fs, slice};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use t2t_host::device::{DeviceLock, Holder};

use crate::project::{OPS, Project, RELU};

mod baselines;
mod elsewhere;
mod followed;
mod module;
mod readied;
mod report;
mod told;

/// Makes a machine with this many devices, and a workspace of three ops.
fn machine(devices: usize) -> Project {
    let project = Project::new();
    project.write("ops.yaml", format!("{OPS}{RELU}"));
    for variant in ["v1_baseline", "v2_tiling"] {
        project.kernel("relu", variant, "");
    }
    project.write("../driver/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05\n");
    for number in 0..devices {
        let text = format!("Model: \t\t NVIDIA H200\nGPU UUID: \t {}\n", uuid(number));
        project.write(&format!("../driver/gpus/0000:0{number}:00.0/information"), text);
    }
    fs::create_dir(project.path("../locks")).unwrap();
    if devices > 1 {
        // However slowly the other op comes to its measurement, the first is not over before.
        project.write("../python/bin/together", "");
    }
    project
}

fn uuid(number: usize) -> String {
    format!("GPU-0000000{number}-aaaa-bbbb-cccc-dddddddddddd")
}

/// Returns a command of `project` on the devices of `machine`, whose locks it takes.
fn on(machine: &Project, project: &Project, arguments: &str) -> Command {
    let mut command = project.command(&format!("{arguments} --device cuda"));
    command.env("T2T_DRIVER", machine.path("../driver")).env("T2T_LOCK_DIR", machine.path("../locks"));
    command
}

fn build(project: &Project, arguments: &str) {
    project.run(&mut on(project, project, &format!("build {arguments}"))).exits(0);
}

/// Returns what the children of all builds so far were told.
fn children(project: &Project) -> Vec<Value> {
    project.read("../python/bin/children.log").lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn text<'a>(child: &'a Value, key: &str) -> &'a str {
    child[key].as_str().unwrap()
}

/// Returns, by op, the devices on which it was measured.
fn homes(children: &[Value]) -> BTreeMap<String, BTreeSet<String>> {
    let mut homes: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for child in children {
        let Some((place, phase)) = text(child, "target").split_once(':') else { continue };
        if ["baseline", "tune", "bench"].contains(&phase) {
            let op = place.split('/').next().unwrap().to_owned();
            homes.entry(op).or_default().insert(text(child, "device").to_owned());
        }
    }
    homes
}

#[test]
fn two_devices_share_a_build_one_action_each_and_no_op_is_measured_on_both() {
    let project = machine(2);
    build(&project, "");
    let children = children(&project);
    let homes = homes(&children);
    assert_eq!(homes.len(), 3);
    assert!(homes.values().all(|devices| devices.len() == 1), "{homes:?}");
    let both: BTreeSet<&String> = homes.values().flatten().collect();
    assert_eq!(both.len(), 2, "{homes:?}");
    for device in both {
        let mut spans: Vec<(u64, u64)> = children
            .iter()
            .filter(|child| text(child, "device") == device)
            .map(|child| (child["span"][0].as_u64().unwrap(), child["span"][1].as_u64().unwrap()))
            .collect();
        spans.sort_unstable();
        assert!(spans.len() > 5, "{spans:?}");
        assert!(spans.windows(2).all(|pair| pair[0].1 <= pair[1].0), "two at once on {device}: {spans:?}");
    }
}

#[test]
fn a_variant_that_changes_is_measured_where_the_figures_of_its_op_stand() {
    let project = machine(2);
    build(&project, "");
    let before = homes(&children(&project));
    let (op, device) = before.iter().find(|(_, devices)| devices.contains(&uuid(1))).unwrap();
    fs::remove_file(project.path("../python/bin/children.log")).unwrap();
    project.edit(&format!("kernels/{op}/v2_tiling.py"), "+ 1", "+ 2");
    build(&project, "");
    assert_eq!(homes(&children(&project)), BTreeMap::from([(op.clone(), device.clone())]));
}

/// Returns how children were to get ready for baselines so far: device, op, and the folder.
fn ahead(project: &Project) -> Vec<(String, String, String)> {
    let log = project.read("../python/bin/reserves.log");
    let all = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let of = all.filter(|reserve| text(reserve, "function") == "t2t_harness.server.ready:compile_ahead");
    of.map(|reserve| {
        let told = &reserve["arguments"];
        assert_eq!(told["scratch"], reserve["scratch"]);
        let device = text(&reserve["environment"], "CUDA_VISIBLE_DEVICES").to_owned();
        let op = text(&told["op"], "name").to_owned();
        assert_eq!(text(&reserve, "key"), format!("{device} compiles {op}"));
        (device, op, text(&reserve, "scratch").to_owned())
    })
    .collect()
}

#[test]
fn an_edit_of_one_op_measures_that_op_and_calibrates_nothing() {
    let project = machine(1);
    build(&project, "");
    project.edit("kernels/softmax/v2_tiling.py", "input + 1", "input + 2");
    fs::remove_file(project.path("../python/bin/children.log")).unwrap();
    let ran = project.run(&mut on(&project, &project, "build")).exits(0);
    ran.runs("softmax:select,log softmax/v2_tiling:compile,check,bench summary");
    assert!(children(&project).iter().all(|child| text(child, "target").starts_with("softmax/v2_tiling:")));
    project.run(&mut on(&project, &project, "build")).exits(0).runs("");
}

#[test]
fn a_device_has_cores_to_itself_and_its_children_never_meet_a_compiler() {
    let project = machine(1);
    build(&project, "");
    let children = children(&project);
    let (measured, ahead): (Vec<_>, Vec<_>) = children.iter().partition(|child| !text(child, "device").is_empty());
    let cores = |children: &[&Value], whose: &str| -> BTreeSet<u64> {
        children
            .iter()
            .flat_map(|child| child[whose].as_array().into_iter().flatten())
            .filter_map(Value::as_u64)
            .collect()
    };
    let (reserved, others) = (cores(&measured, "cores"), cores(&ahead, "cores"));
    // One core cannot be shared out, and a ration of time names none.
    let all = t2t_host::cores::usable().len();
    if all > 1 && all == available_parallelism().unwrap().get() {
        assert!(!reserved.is_empty() && !others.is_empty() && reserved.is_disjoint(&others), "{reserved:?} {others:?}");
        assert!(measured.iter().all(|child| text(child, "threads") == reserved.len().to_string()));
        assert_eq!(cores(&measured, "server_cores"), others, "a server keeps off, and whoever starts it");
    }
    assert!(measured.iter().all(|child| child["nice"].is_null()), "{measured:?}");
    let nices: Vec<u64> = ahead.iter().filter_map(|child| child["nice"].as_u64()).collect();
    assert_eq!(nices.len(), ahead.len(), "{ahead:?}");
    assert!(nices.iter().all(|nice| [10, 15].contains(nice)) && nices.contains(&10), "{ahead:?}");
    let compiles = || ahead.iter().filter(|child| text(child, "function") == "compile:compile_variant");
    assert_eq!(compiles().count(), 6);
    let processes = |child: &&Value| child["processes"].as_u64().unwrap();
    assert!(compiles().map(processes).all(|processes| processes >= 1), "{ahead:?}");
}

#[test]
fn what_one_check_prepared_serves_those_of_the_ops_other_variants_and_what_was_read_for_it_counts_for_all() {
    let project = machine(1);
    project.edit("ops.yaml", "    kwargs:", "    cases: kernels/softmax/cases.py\n    kwargs:");
    project.write("kernels/softmax/cases.py", "# READS data/cases.txt\n");
    project.write("data/cases.txt", "1\n");
    // What a rejected kernel's check prepared is as good.
    project.kernel("softmax", "v1_baseline", "REJECT mismatch");
    let prepared = || {
        let children = children(&project);
        let prepared = children.iter().filter(|child| text(child, "function") == "prepare:prepare");
        prepared.map(|child| text(child, "target").to_owned()).collect::<Vec<_>>()
    };
    project.run(&mut on(&project, &project, "build")).exits(1);
    assert_eq!(prepared().len(), 1, "{:?}", prepared());
    assert!(!project.exists("cache/scratch") || project.files("cache/scratch").is_empty(), "nothing of it is left");
    project.write("data/cases.txt", "2\n");
    let ran = project.run(&mut on(&project, &project, "build")).exits(1);
    assert!(
        ran.actions.contains("softmax/v1_baseline:check") && ran.actions.contains("softmax/v2_tiling:check"),
        "{ran:?}"
    );
    assert_eq!(prepared().len(), 2, "a build does not believe what another prepared: {:?}", prepared());
}

#[test]
fn judges_alone_may_stay_and_what_is_timed_alone_is_undisturbed() {
    let project = machine(1);
    build(&project, "");
    let children = children(&project);
    let of = |key: &str| -> BTreeSet<&str> {
        children.iter().filter(|child| child[key] == true).map(|child| text(child, "function")).collect()
    };
    assert_eq!(of("stays"), BTreeSet::from(["judge:judge", "sample:judge_sample"]));
    assert!(
        of("undisturbed").is_superset(&BTreeSet::from(["bench:bench", "baseline:baseline", "calibrate:calibrate"])),
        "{children:?}"
    );
    let at_ease = ["analyze:analyze", "candidate:run", "compile:compile_variant", "judge:judge", "sample:judge_sample"];
    assert!(of("undisturbed").is_disjoint(&BTreeSet::from(at_ease)), "{children:?}");
}

/// Returns what each child of a target was told of queues, by function.
fn queues(children: &[Value], target: &str) -> BTreeMap<String, Vec<Value>> {
    let mut queues: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for child in children.iter().filter(|child| text(child, "target").starts_with(target)) {
        queues.entry(text(child, "function").to_owned()).or_default().push(child["queues"].clone());
    }
    queues
}

#[test]
fn a_kernel_has_one_queue_of_a_device_unless_it_asks_for_all() {
    let project = machine(1);
    project.kernel("softmax", "v2_tiling", "STREAMS");
    build(&project, "");
    let children = children(&project);
    let of = |target: &str, function: &str| queues(&children, target).remove(function).unwrap();
    let (one, all) = (json!("1"), Value::Null);
    for function in ["candidate:run", "bench:bench"] {
        assert_eq!(of("softmax/v1_baseline", function), slice::from_ref(&one));
        assert_eq!(of("softmax/v2_tiling", function), [one.clone(), all.clone()], "a first time, and again");
    }
    assert_eq!(of("calibrate", "calibrate:calibrate"), slice::from_ref(&one));
    for variant in ["softmax/v1_baseline", "softmax/v2_tiling"] {
        assert_eq!(of(variant, "judge:judge"), slice::from_ref(&one));
        assert_eq!(of(variant, "compile:compile_variant"), slice::from_ref(&all));
    }
    assert_eq!(of("softmax:", "baseline:baseline"), slice::from_ref(&all));
    let log = project.read("../python/bin/reserves.log");
    let mut keys: BTreeMap<String, Value> = BTreeMap::new();
    for line in log.lines() {
        let reserve: Value = serde_json::from_str(line).unwrap();
        if text(&reserve, "function") == "t2t_harness.server.ready:start_device" {
            let queues = &reserve["environment"]["CUDA_DEVICE_MAX_CONNECTIONS"];
            keys.insert(text(&reserve, "key").to_owned(), queues.clone());
        }
    }
    let expected = [(uuid(0), one.clone()), (format!("{} judges", uuid(0)), one)];
    assert_eq!(keys, BTreeMap::from(expected));
}

#[test]
fn a_child_is_told_until_when_its_device_was_timed() {
    let project = machine(1);
    build(&project, "");
    let mut timed = None;
    for child in children(&project).iter().filter(|child| !text(child, "device").is_empty()) {
        assert_eq!(child["timed_until"].as_u64(), timed, "{child}");
        if text(child, "function") == "bench:bench" {
            timed = child["span"][1].as_u64();
        }
    }
    assert!(timed.is_some());
}

fn spawn(command: &mut Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Returns the first line of a running build that starts so.
fn line_of(child: &mut Child, start: &str) -> String {
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    lines
        .map_while(Result::ok)
        .find(|line| line.starts_with(start))
        .unwrap_or_else(|| panic!("no line starts with `{start}`"))
}

fn signal(child: &Child, signal: Signal) {
    kill(Pid::from_raw(child.id().cast_signed()), signal).unwrap();
}

#[test]
fn a_build_that_waits_for_a_device_says_for_whom_and_goes_on_when_it_is_free() {
    let (machine, other) = (machine(1), Project::new());
    machine.kernel("gelu", "v2_tiling", "WAITS");
    let first = spawn(&mut on(&machine, &machine, "build gelu/v2_tiling:check"));
    machine.until_logged("gelu/v2_tiling:check candidate:run");
    let mut second = spawn(&mut on(&machine, &other, "build softmax/v1_baseline:check"));
    let line = line_of(&mut second, "waiting: device");
    let place = fs::canonicalize(machine.path("")).unwrap();
    let head = format!(
        "waiting: device {}, held by pid {}, gelu/v2_tiling:check in {}, since 20",
        uuid(0),
        first.id(),
        place.display()
    );
    assert!(line.starts_with(&head), "{line}\n{head}");
    machine.calm();
    machine.wait(first).exits(0);
    other.wait(second).exits(0);
    assert_eq!(fs::read_to_string(machine.path(&format!("../locks/{}.lock", uuid(0)))).unwrap(), "");
}

#[test]
fn what_another_writes_into_a_lock_is_not_believed_and_a_build_that_waits_can_be_stopped() {
    let machine = machine(1);
    let who = || Holder { pid: 1, target: "add:baseline".into(), workspace: "/elsewhere".into(), since: "ever".into() };
    let locks = machine.path("../locks");
    let held = DeviceLock::take(&locks, &uuid(0), who, |_| {}, || false).unwrap().unwrap();
    let mut child = spawn(&mut on(&machine, &machine, "build softmax/v1_baseline:check"));
    let line = line_of(&mut child, "waiting: device");
    let expected = format!("held by pid {}, which has not signed the lock", std::process::id());
    assert!(line.ends_with(&expected), "{line}");
    signal(&child, Signal::SIGINT);
    machine.wait(child).exits(130);
    drop(held);
    machine.run(&mut on(&machine, &machine, "build softmax/v1_baseline:check")).exits(0);
}
