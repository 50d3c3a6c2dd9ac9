//! `t2t perform`: an action that another machine performs is the one that would have run here, or none; what comes back stands as if it had run here.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdout, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::cli::attempts;
use crate::project::{Project, Ran};

/// The action that most tests send away.
const CHECK: &str = "softmax/v1_baseline:check";

/// A workspace whose analyses are known.
fn analyzed() -> Project {
    let project = Project::new();
    project.t2t("build softmax:analyze,gelu:analyze").exits(0);
    project
}

/// Another machine: its own interpreter, and no workspace where it is.
fn machine() -> Project {
    let machine = Project::new();
    machine.remove("ops.yaml");
    machine
}

/// Packs an action of `home` as `bundle` beside the workspace.
fn pack(home: &Project, target: &str, bundle: &str) {
    home.t2t(&format!("perform pack {target} ../{bundle}")).exits(0);
}

/// Performs on `machine` what lies in the folder `bundle` of `home`; the result lies beside it.
fn perform(machine: &Project, home: &Project, bundle: &str) -> Ran {
    let folder = home.path(&format!("../{bundle}"));
    let (folder, result) = (folder.display(), home.path("../result"));
    machine.t2t(&format!("perform run {folder} {} --node ../node", result.display()))
}

/// Returns what was printed of how it ended.
fn document(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}\n{}", ran.stdout, ran.stderr))
}

/// Has `machine` perform an action of `home`, which takes the result in.
fn send(machine: &Project, home: &Project, target: &str) -> Ran {
    if home.exists("../bundle") {
        home.remove("../bundle");
    }
    pack(home, target, "bundle");
    let ran = perform(machine, home, "bundle");
    home.t2t("cache import ../result").exits(0).says("1 new record");
    ran
}

/// Returns the last record of a target.
fn record(project: &Project, target: &str) -> Value {
    let journal = project.read("cache/journal");
    let records = journal.lines().skip(1).filter_map(|line| serde_json::from_str(line.split_once(' ')?.1).ok());
    records.filter(|record: &Value| record["identity"]["target"] == target).last().unwrap()
}

// What comes of it.

#[test]
fn every_phase_that_runs_python_can_be_performed_on_another_machine() {
    let (home, machine) = (Project::new(), machine());
    // Then a compile is the same one whoever asks for it: it has all configurations.
    home.edit("ops.yaml", "version: 1\n", "version: 1\ntargets: [nvidia-h200]\n");
    let phases = ["softmax:analyze", "softmax/v1_baseline:compile", CHECK, "softmax/v1_baseline:bench"];
    for target in phases {
        let ran = send(&machine, &home, target).exits(0).runs(target);
        let told = document(&ran);
        assert_eq!((&told["target"], &told["outcome"]), (&target.into(), &"passed".into()), "{told}");
    }
    home.t2t("build softmax/v1_baseline").exits(0).runs("");
    home.t2t("cache verify").exits(0).says(": 0 damages");
    // A build of the same here finds the same.
    let other = Project::new();
    other.write("ops.yaml", home.read("ops.yaml"));
    other.t2t("build softmax/v1_baseline").exits(0);
    for target in phases {
        assert_eq!(record(&home, target)["key"], record(&other, target)["key"], "{target}");
    }
    let verdict = |project| record(project, CHECK)["outputs"]["verdict"].clone();
    assert_eq!(verdict(&home), verdict(&other));
}

#[test]
fn a_rejection_comes_back_as_one_with_its_evidence() {
    let (home, machine) = (analyzed(), machine());
    home.kernel("softmax", "v1_baseline", "REJECT mismatch");
    let told = document(&send(&machine, &home, CHECK).exits(1).runs(CHECK));
    assert_eq!(told["outcome"]["rejected"]["class"], "mismatch");
    home.t2t(&format!("build {CHECK}"))
        .exits(1)
        .runs("")
        .says("kernels/softmax/v1_baseline.py:4:1: 2 of 256 elements differ (mismatch)");
}

#[test]
fn what_the_machine_failed_is_lost_and_leaves_no_result() {
    let (home, machine) = (analyzed(), machine());
    home.kernel("softmax", "v1_baseline", "LOST");
    pack(&home, CHECK, "bundle");
    let ran = perform(&machine, &home, "bundle").exits(3);
    let reason = document(&ran)["outcome"]["lost"]["reason"].clone();
    assert_eq!(reason, "the child was ended by SIGKILL");
    assert!(!home.exists("../result"));
}

#[test]
fn a_kernel_that_a_generator_made_is_sent_as_it_is() {
    let (home, machine) = (attempts::project(attempts::THIRD), machine());
    home.build().exits(0);
    // Elsewhere it is a file like any other: which attempt made it is no part of the key.
    let check = "softmax/v1_baseline#3:check";
    pack(&home, check, "bundle");
    let told = document(&perform(&machine, &home, "bundle").exits(0).runs(CHECK));
    assert_eq!(told["key"], record(&home, check)["key"]);
}

// On devices.

/// Gives a machine a device of this model.
fn with_device(machine: &Project, model: &str) {
    machine.write("../driver/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05\n");
    let text = format!("Model: \t\t {model}\nGPU UUID: \t GPU-00000000-aaaa-bbbb-cccc-dddddddddddd\n");
    machine.write("../driver/gpus/0000:00:00.0/information", text);
}

#[test]
fn a_check_for_a_device_that_is_not_here_runs_where_it_is() {
    let (home, machine) = (Project::new(), machine());
    home.t2t("build softmax:compile --as-device nvidia-h200").exits(0);
    home.t2t(&format!("perform pack {CHECK} ../bundle --as-device nvidia-h200")).exits(0);
    let run = || {
        let (folder, result) = (home.path("../bundle"), home.path("../result"));
        let arguments = format!("perform run {} {} --node ../node", folder.display(), result.display());
        let mut command = machine.command(&arguments);
        command.env("T2T_DRIVER", machine.path("../driver")).env("T2T_LOCK_DIR", machine.path("../locks"));
        machine.run(&mut command)
    };
    run().exits(2).runs("").says("this machine has no such CUDA device");
    with_device(&machine, "NVIDIA A100-SXM4-80GB");
    let why = "the device here is nvidia-a100, and not nvidia-h200";
    assert_eq!(document(&run().exits(3).runs(""))["unfit"][0], why);
    with_device(&machine, "NVIDIA H200");
    assert_eq!(document(&run().exits(0).runs(CHECK))["device"], "nvidia-h200");
    let children = machine.read("../python/bin/children.log");
    assert!(children.contains("GPU-00000000-aaaa-bbbb-cccc-dddddddddddd"), "{children}");
    home.t2t("cache import ../result").exits(0);
    home.t2t(&format!("build {CHECK} --as-device nvidia-h200")).exits(0).runs("");
}

// What is sent.

#[test]
fn a_machine_that_has_a_file_is_not_sent_it_again() {
    let (home, machine) = (analyzed(), machine());
    pack(&home, CHECK, "first");
    let lacks = |bundle: &str| {
        let folder = home.path(&format!("../{bundle}"));
        machine.run_raw(&format!("perform lacks {} --node ../node", folder.display()))
    };
    let blobs = |bundle: &str| fs::read_dir(home.path(&format!("../{bundle}/blobs"))).unwrap().count();
    assert_eq!(lacks("first").lines().count(), blobs("first"));
    perform(&machine, &home, "first").exits(0);
    assert_eq!(lacks("first"), "");
    home.kernel("softmax", "v1_baseline", "READS none.txt");
    pack(&home, CHECK, "second");
    // The kernel's file and the manifest, which has its digest.
    let lacking = lacks("second");
    assert_eq!(lacking.lines().count(), 2, "{lacking}");
    for entry in fs::read_dir(home.path("../second/blobs")).unwrap().map(Result::unwrap) {
        if !lacking.contains(&entry.file_name().into_string().unwrap()) {
            fs::remove_file(entry.path()).unwrap();
        }
    }
    perform(&machine, &home, "second").exits(0).runs(CHECK);
    home.t2t("cache import ../result").exits(0);
    home.t2t(&format!("build {CHECK}")).exits(0).runs("");
}

#[test]
fn of_the_workspace_only_what_the_op_takes_is_sent() {
    let (home, machine) = (analyzed(), machine());
    pack(&home, CHECK, "bundle");
    let bundle: Value = serde_json::from_str(&home.read("../bundle/bundle.json")).unwrap();
    let files: Vec<&String> = bundle["files"].as_object().unwrap().keys().collect();
    assert_eq!(files, ["assets/log_template.md", "kernels/softmax/v1_baseline.py", "ops.yaml"]);
    // Another op's edit changes nothing of it, whatever it does to ops.yaml behind the op.
    home.edit("ops.yaml", "torch: torch.nn.functional.gelu", "torch: torch.nn.functional.relu");
    pack(&home, CHECK, "again");
    assert_eq!(home.read("../again/bundle.json"), home.read("../bundle/bundle.json"));
    perform(&machine, &home, "bundle").exits(0);
}

#[test]
fn a_file_that_a_kernel_turned_out_to_read_is_sent_the_next_time() {
    let (home, machine) = (analyzed(), machine());
    home.write("data/table.txt", "1 2 3");
    home.kernel("softmax", "v1_baseline", "READS data/table.txt");
    send(&machine, &home, CHECK).exits(0);
    // There it was not there, and here it is: such a result does not stand.
    home.t2t(&format!("build {CHECK} --dry-run")).exits(0).says("data/table.txt appeared");
    send(&machine, &home, CHECK).exits(0);
    home.t2t(&format!("build {CHECK}")).exits(0).runs("");
}

// What does not fit.

#[test]
fn a_machine_with_another_toolchain_runs_nothing_and_says_what_differs() {
    let (home, machine) = (analyzed(), machine());
    pack(&home, CHECK, "bundle");
    machine.install(&[("torch", "2.12.0"), ("triton", "3.6.0")]);
    let ran = perform(&machine, &home, "bundle").exits(3).runs("");
    let told = document(&ran);
    assert_eq!(
        told["unfit"][0], "`softmax:analyze` has another key here: torch version changed: 2.11.0 → 2.12.0",
        "{told}"
    );
    assert!(told["outcome"].is_null());
    machine.install(&[("torch", "2.11.0"), ("triton", "3.7.0")]);
    let told = document(&perform(&machine, &home, "bundle").exits(3).runs(""));
    assert_eq!(told["unfit"], Value::from(vec!["triton version changed: 3.6.0 → 3.7.0"]));
    assert!(!home.exists("../result"));
    machine.install(&[("torch", "2.11.0"), ("triton", "3.6.0")]);
    perform(&machine, &home, "bundle").exits(0).runs(CHECK);
}

#[test]
fn what_cannot_be_packed_says_why() {
    let home = Project::new();
    let refused = |arguments: &str, text: &str| _ = home.t2t(&format!("perform pack {arguments}")).exits(2).says(text);
    refused(&format!("{CHECK} ../bundle"), "`softmax:analyze` has no result that stands");
    refused("softmax:log ../bundle", "`softmax:log` runs nothing on another machine");
    refused("softmax ../bundle", "hint: name one action, as in `softmax/v1_baseline:check`");
    refused("softmax/v9:check ../bundle", "op `softmax` has no variant `v9`");
    refused("softmax:analyze .", "`.` is not empty");
    assert!(!home.exists("../bundle/bundle.json"));
}

#[test]
fn what_is_no_whole_bundle_is_refused() {
    let (home, machine) = (analyzed(), machine());
    pack(&home, CHECK, "bundle");
    let refused = |text: &str| _ = perform(&machine, &home, "bundle").exits(2).runs("").says(text);
    let whole = home.read("../bundle/bundle.json");
    let kernel = serde_json::from_str::<Value>(&whole).unwrap()["files"]["kernels/softmax/v1_baseline.py"].clone();
    let blob = format!("../bundle/blobs/{}", kernel.as_str().unwrap());
    let bytes = home.read(&blob);
    home.write(&blob, format!("{bytes}#"));
    refused("of what the bundle names 1 are lacking");
    home.remove(&blob);
    refused("hint: `t2t perform lacks FOLDER` lists them");
    home.write(&blob, bytes);
    home.write("../bundle/bundle.json", whole.replace("\"version\":1", "\"version\":9"));
    refused("its format is 9, and this t2t reads 1");
    home.write("../bundle/bundle.json", &whole[..whole.len() / 2]);
    refused("it is no bundle");
    home.remove("../bundle/bundle.json");
    refused("no file `");
}

// One after another.

/// A process that performs one action after another on a machine.
struct Serving {
    process: Child,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Serving {
    fn start(machine: &Project) -> Self {
        let mut command = machine.command("perform serve --node ../node");
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let answers = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, answers }
    }

    fn ask(&mut self, line: &Value) -> Value {
        writeln!(self.process.stdin.as_mut().unwrap(), "{line}").unwrap();
        serde_json::from_str(&self.answers.next().unwrap().unwrap()).unwrap()
    }

    /// Ends its input, and returns its exit code.
    fn leave(mut self) -> Option<i32> {
        self.process.stdin.take();
        self.process.wait().unwrap().code()
    }
}

#[test]
fn one_process_performs_one_action_after_another_with_one_server() {
    let (home, machine) = (analyzed(), machine());
    machine.write("../python/bin/spans", "");
    let mut serving = Serving::start(&machine);
    let target = |op: &str| format!("{op}/v1_baseline:check");
    let folder = |op: &str| home.path(&format!("../{op}"));
    let run = |op: &str| json!({"run": {"folder": folder(op), "result": home.path(&format!("../{op}.result"))}});
    for op in ["softmax", "gelu"] {
        pack(&home, &target(op), op);
        let lacks = serving.ask(&json!({"lacks": folder(op)}));
        let lacking = lacks["document"].as_array().unwrap();
        // Of the second one it has some: the declarations of devices, for one.
        assert!(!lacking.is_empty() && lacks["exit"] == 0, "{lacks}");
        let ended = serving.ask(&run(op));
        assert_eq!((&ended["exit"], &ended["document"]["outcome"]), (&0.into(), &"passed".into()), "{ended}");
        home.t2t(&format!("cache import ../{op}.result")).exits(0).says("1 new record");
    }
    home.t2t("build softmax/v1_baseline:check,gelu/v1_baseline:check").exits(0).runs("");
    let spans = machine.log().into_iter().filter(|line| line.starts_with("span "));
    let servers: BTreeSet<String> =
        spans.filter(|line| line.ends_with(":check")).map(|line| line.split(' ').nth(1).unwrap().to_owned()).collect();
    assert_eq!(servers.len(), 1, "{:?}", machine.log());

    // What is wrong with one bundle is said, and the next is performed.
    home.kernel("gelu", "v1_baseline", "REJECT mismatch");
    home.remove("../gelu");
    pack(&home, &target("gelu"), "gelu");
    let kernel = home.read("../gelu/bundle.json");
    home.write("../gelu/bundle.json", "{");
    let refused = serving.ask(&run("gelu"));
    assert_eq!((&refused["exit"], &refused["document"]), (&2.into(), &Value::Null));
    assert!(refused["said"].as_str().unwrap().contains("it is no bundle"), "{refused}");
    assert_eq!(serving.ask(&json!({"dance": 1}))["exit"], 2);
    home.write("../gelu/bundle.json", kernel);
    assert_eq!(serving.ask(&run("gelu"))["document"]["outcome"]["rejected"]["class"], "mismatch");

    // With another toolchain there are other servers, and what does not fit says so.
    machine.install(&[("torch", "2.11.0"), ("triton", "3.7.0")]);
    let unfit = serving.ask(&run("gelu"));
    assert_eq!(unfit["document"]["unfit"], json!(["triton version changed: 3.6.0 → 3.7.0"]), "{unfit}");
    machine.install(&[("torch", "2.11.0"), ("triton", "3.6.0")]);
    assert_eq!(serving.ask(&run("gelu"))["exit"], 1);
    assert_eq!(serving.leave(), Some(0));
}

#[test]
fn a_process_that_performs_ends_with_a_signal_and_writes_no_result() {
    let (home, machine) = (analyzed(), machine());
    home.kernel("softmax", "v1_baseline", "HANG");
    pack(&home, CHECK, "bundle");
    let mut serving = Serving::start(&machine);
    let asked = json!({"run": {"folder": home.path("../bundle"), "result": home.path("../result")}});
    writeln!(serving.process.stdin.as_mut().unwrap(), "{asked}").unwrap();
    machine.until_logged(CHECK);
    kill(Pid::from_raw(i32::try_from(serving.process.id()).unwrap()), Signal::SIGTERM).unwrap();
    assert_eq!(serving.process.wait().unwrap().code(), Some(130));
    assert!(!home.exists("../result"));
}
