//! The same for models that this machine lacks: nodes tell their devices, and the build is for the model and the driver that they have.

use std::fs;

use serde_json::{Value, json};

use super::{Clustered, record};
use crate::project::install;

pub(super) const H200: (&str, &str) = ("NVIDIA H200", "580.95.05");
const A100: (&str, &str) = ("NVIDIA A100-SXM4-80GB", "580.95.05");

/// Returns a node with devices of these models, which share the driver of the first.
pub(super) fn node(cluster: &Clustered, name: &str, devices: &[(&str, &str)]) -> Value {
    let path = |below: &str| cluster.home.path(&format!("../{name}/{below}"));
    let _ = fs::remove_dir_all(path("driver"));
    let driver = devices.first().map_or("1", |(_, driver)| *driver);
    let version = format!("NVRM version: NVIDIA UNIX x86_64 Kernel Module  {driver}\n");
    cluster.home.write(&format!("../{name}/driver/version"), version);
    for (number, (model, _)) in devices.iter().enumerate() {
        let text = format!("Model: \t\t {model}\nGPU UUID: \t GPU-{name}-{number}\n");
        cluster.home.write(&format!("../{name}/driver/gpus/0000:0{number}:00.0/information"), text);
    }
    fs::create_dir_all(path("locks")).unwrap();
    if !path("python").exists() {
        install(&path("python"));
    }
    let mut node = cluster.node(name);
    node["gpus"] = json!(devices.len());
    node["environment"]["T2T_DRIVER"] = json!(path("driver"));
    node["environment"]["T2T_LOCK_DIR"] = json!(path("locks"));
    node
}

/// Returns how many actions of a phase ran on a node.
pub(super) fn ran(cluster: &Clustered, node: &str, phase: &str) -> usize {
    cluster.ran_on(node).iter().filter(|target| target.ends_with(phase)).count()
}

/// Forgets what ran on a node.
fn forget(cluster: &Clustered, node: &str) {
    let _ = fs::remove_file(cluster.home.path(&format!("../{node}/python/bin/ran.log")));
}

#[test]
fn a_machine_without_a_device_has_nodes_measure_and_their_driver_counts() {
    let cluster = Clustered::new();
    cluster.set(&[node(&cluster, "one", &[H200]), node(&cluster, "two", &[H200])]);
    let build = || cluster.build("--as-device nvidia-h200");
    build().exits(0).says("kernels run on nvidia-h200, on a cluster: 2 nodes lend 2 devices").never_says("warning: ");
    assert_eq!(["one", "two"].iter().map(|node| ran(&cluster, node, ":bench")).sum::<usize>(), 4);
    for target in ["calibrate", "softmax/v2_tiling:tune", "softmax:baseline", "gelu/v1_baseline:bench"] {
        let text = cluster.home.read("cache/journal");
        assert!(text.contains(&format!("\"target\":\"{target}\"")), "{target}");
    }
    cluster.home.t2t("cache verify").exits(0).says(": 0 damages");
    // It is known here, and nobody is asked again.
    build().exits(0).runs("").never_says("cluster");
    cluster.home.t2t("build --as-device nvidia-h200").exits(0).runs("");
    cluster.home.t2t("status --as-device nvidia-h200").exits(0).says(", 0 stale, of ");
    let log = cluster.home.t2t("log softmax --as-device nvidia-h200").exits(0);
    assert!(log.stdout.contains("v1_baseline passed"), "{}", log.stdout);
    assert_eq!((cluster.count("open"), cluster.count("ask id-one")), (1, 1));
    // A build for this machine's own interpreter is another.
    cluster.home.t2t("status").says("13 actions of 2 ops  never ran\n");
}

#[test]
fn another_driver_of_the_nodes_is_learned_once_something_is_to_run() {
    let cluster = Clustered::new();
    cluster.set(&[node(&cluster, "one", &[H200])]);
    cluster.build("--as-device nvidia-h200 softmax:bench").exits(0);
    let first = record(&cluster.home, "softmax/v2_tiling:bench");
    let newer = ("NVIDIA H200", "590.1");
    cluster.set(&[node(&cluster, "one", &[newer]), node(&cluster, "two", &[newer]), node(&cluster, "three", &[H200])]);
    cluster.build("--as-device nvidia-h200 softmax:bench").exits(0).runs("");
    forget(&cluster, "one");
    cluster.home.kernel("softmax", "v1_baseline", "another");
    let built = cluster.build("--as-device nvidia-h200 softmax:bench").exits(0);
    let why = "warning: node three is not used: its driver is 580.95.05, and more nodes have 590.1\n";
    assert_eq!(built.stderr.matches(why).count(), 1, "{}", built.stderr);
    built.says("2 nodes lend 2 devices");
    assert_eq!(ran(&cluster, "one", ":bench") + ran(&cluster, "two", ":bench"), 2);
    assert_ne!(first["key"], record(&cluster.home, "softmax/v2_tiling:bench")["key"]);
    assert_eq!(cluster.ran_on("three"), [""; 0]);
    cluster.build("--as-device nvidia-h200 softmax:bench").exits(0).runs("").never_says("cluster");
}

#[test]
fn nodes_with_other_devices_or_without_t2t_are_told_once_and_not_used() {
    let cluster = Clustered::new();
    let mut bare = node(&cluster, "bare", &[H200]);
    bare["environment"]["T2T_BIN"] = json!(cluster.home.path("../none"));
    cluster.set(&[
        node(&cluster, "one", &[H200, H200]),
        node(&cluster, "two", &[A100, A100]),
        node(&cluster, "mixed", &[H200, A100]),
        bare,
    ]);
    let built = cluster.build("--as-device nvidia-h200 softmax").exits(0).says("1 node lends 2 devices");
    for line in [
        "note: node two is not used: it has 2 × nvidia-a100\n",
        "note: node mixed is not used: it has 1 × nvidia-a100 and 1 × nvidia-h200\n",
        "warning: node bare is not used: [Errno 2] No such file or directory: ",
    ] {
        assert_eq!(built.stderr.matches(line).count(), 1, "{line} in {}", built.stderr);
    }
    for node in ["two", "mixed", "bare"] {
        assert_eq!(cluster.ran_on(node), [""; 0], "{node}");
    }
    let none = cluster.build("--as-device nvidia-b200 softmax").exits(2);
    none.says("error: no node of the cluster at ray://head:10001 fits a build for nvidia-b200: bare: ")
        .says("; one: it has 2 × nvidia-h200")
        .says("hint: `--as-device` names the model");
    // Kernels of the interpreter run on any node.
    cluster.build("softmax:check").exits(0).says("3 nodes lend 6 devices");
}

#[test]
fn a_node_whose_label_names_another_model_is_not_used_and_ray_is_given_the_label() {
    let cluster = Clustered::new();
    let [mut own, mut other] = ["own", "other"].map(|name| node(&cluster, name, &[H200]));
    own["labels"] = json!({"t2t.device": "nvidia-h200"});
    other["labels"] = json!({"t2t.device": "nvidia-a100"});
    cluster.set(&[own, other]);
    let built = cluster.build("--as-device nvidia-h200 softmax").exits(0).says("1 node lends 1 device");
    built.says("note: node other is not used: its label is `t2t.device=nvidia-a100`\n");
    assert_eq!((ran(&cluster, "own", ":bench"), cluster.ran_on("other")), (2, vec![]));
}

#[test]
fn where_a_cluster_is_named_its_driver_counts_before_the_published_one() {
    let cluster = Clustered::new();
    let older = ("NVIDIA H200", "570.1");
    let here = node(&cluster, "here", &[older])["environment"].clone();
    let on_device = |arguments: &str| {
        let mut command = cluster.home.command(&format!("{arguments} --device cuda"));
        for name in ["T2T_DRIVER", "T2T_LOCK_DIR"] {
            command.env(name, here[name].as_str().unwrap());
        }
        cluster.home.run(&mut command).exits(0)
    };
    on_device("build");
    on_device("publish");
    cluster.home.remove("cache");
    cluster.set(&[node(&cluster, "one", &[H200])]);
    // What is published stands: there is nothing to ask for.
    cluster.build("--as-device nvidia-h200").exits(0).never_says("on a cluster");
    cluster.home.kernel("gelu", "v1_baseline", "another");
    let built = cluster.build("--as-device nvidia-h200 gelu").exits(0).says("1 node lends 1 device");
    // Compiled kernels are not published: those of the other variant are made again, for the node.
    built.says("; the action that made it runs again\n").says("compile gelu/v2_tiling … passed");
    assert_eq!(ran(&cluster, "one", ":bench"), 2, "both variants: they are compared");
    cluster.build("--as-device nvidia-h200 gelu").exits(0).runs("");
    let without = cluster.home.t2t("status --as-device nvidia-h200 gelu/v2_tiling:bench").exits(0);
    without.says(", 0 stale, of ").never_says("driver");
    let mut named = cluster.home.command("status --as-device nvidia-h200 softmax/v2_tiling:bench");
    named.env("T2T_EXECUTOR", "ray://head:10001");
    cluster.home.run(&mut named).exits(0).says("device driver changed: 570.1 → 580.95.05\n");
}

#[test]
fn a_build_for_two_models_has_the_nodes_of_each_and_joins_once() {
    let cluster = Clustered::new();
    cluster.set(&[node(&cluster, "one", &[H200]), node(&cluster, "two", &[A100])]);
    let both = cluster.build("--as-device nvidia-h200,nvidia-a100 softmax").exits(0);
    both.says("kernels run on nvidia-h200, on a cluster: 1 node lends 1 device").says("kernels run on nvidia-a100, on");
    assert_eq!(cluster.count("open"), 1);
    assert_eq!([ran(&cluster, "one", ":bench"), ran(&cluster, "two", ":bench")], [2, 2]);
    for model in ["nvidia-h200", "nvidia-a100"] {
        cluster.home.t2t(&format!("build --as-device {model} softmax")).exits(0).runs("");
    }
    // Results need no cluster.
    cluster.home.t2t("build --as-device nvidia-h200,nvidia-a100 softmax").exits(0).runs("");
    cluster.home.t2t("build --as-device nvidia-h200,nvidia-a100 softmax --dry-run").exits(0);
}

#[test]
fn of_several_models_the_worst_exit_code_counts_and_one_does_not_stop_the_others() {
    let cluster = Clustered::new();
    cluster.set(&[node(&cluster, "one", &[H200])]);
    let none = cluster.build("--as-device nvidia-b200,nvidia-h200 softmax/v1_baseline:check").exits(2);
    none.says("fits a build for nvidia-b200: one: it has 1 × nvidia-h200").says("check softmax/v1_baseline … passed");
    cluster.home.kernel("softmax", "v1_baseline", "REJECT mismatch");
    cluster.build("--as-device nvidia-h200,nvidia-h100 softmax/v1_baseline:check").exits(2).says("rejected 1");
    let refused = |arguments: &str| cluster.home.t2t(arguments).exits(2).runs("");
    refused("build --as-device nvidia-h200,nvidia-a100 --events e.jsonl").says(
        "error: `--events` is of a build for one model, and 2 are named\nhint: build for one model after the other",
    );
    refused("build --as-device nvidia-h200,,nvidia-a100")
        .says("names no model in place 2\nhint: write models with commas");
    refused("status --as-device nvidia-h200,nvidia-a100").says("hint: name one: only a build takes several");
}

#[test]
fn a_machine_tells_its_facts() {
    let cluster = Clustered::new();
    let environment = node(&cluster, "one", &[H200, A100])["environment"].clone();
    let facts = |visible: &str| {
        let mut command = cluster.home.command("perform facts");
        command.env("T2T_DRIVER", environment["T2T_DRIVER"].as_str().unwrap()).env("CUDA_VISIBLE_DEVICES", visible);
        let ran = cluster.home.run(&mut command).exits(0).runs("");
        serde_json::from_str::<Value>(&ran.stdout).unwrap()
    };
    let a100 = json!({"name": A100.0, "class": "nvidia-a100", "driver": A100.1});
    let all = facts("0,1");
    assert_eq!((&all["version"], &all["t2t"]), (&json!(1), &json!(env!("CARGO_PKG_VERSION"))));
    assert_eq!((&all["devices"][0]["class"], &all["devices"][1]), (&json!("nvidia-h200"), &a100));
    assert_eq!(facts("1")["devices"], json!([a100]));
    assert_eq!(facts("")["devices"], json!([]));
}
