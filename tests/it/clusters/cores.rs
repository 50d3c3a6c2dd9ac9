//! `t2t build --on … --on-cpus`: cores of nodes analyze, compile and check on the interpreter.

use serde_json::{Value, json};

use super::{Clustered, record};
use crate::project::Project;

/// Returns a node with so many cores and devices.
fn node(cluster: &Clustered, name: &str, cpus: usize, gpus: usize) -> Value {
    let mut node = cluster.node(name);
    (node["cpus"], node["gpus"]) = (json!(cpus), json!(gpus));
    node
}

#[test]
fn cores_of_nodes_analyze_compile_and_check_and_the_results_are_those_of_a_build_here() {
    let cluster = Clustered::new();
    // Two of the cores of `one` are its device's, and one is left over.
    cluster.set(&[node(&cluster, "one", 7, 1), node(&cluster, "two", 4, 0)]);
    let ran = cluster.build("--on-cpus --trace ../trace.json").exits(0);
    // Nothing of it runs Python here.
    ran.runs("gelu:select,log softmax:select,log summary").says("2 nodes lend 1 device and 4 places on cores");
    let (there, trace) = ([cluster.ran_on("one"), cluster.ran_on("two")], cluster.home.read("../trace.json"));
    for lane in ["one/0", "one/cpu0", "one/cpu1", "two/cpu0", "two/cpu1"] {
        assert!(trace.contains(&format!("\"{lane}\"")), "{lane}");
    }
    let checks = |ran: &Vec<String>| ran.iter().filter(|target| target.ends_with(":check")).count();
    assert!(there.iter().all(|ran| checks(ran) > 0), "{there:?}");
    // What is measured has a device still, and each action is sent once.
    let benches = ["softmax", "gelu"].map(|op| there[0].iter().filter(|target| target.starts_with(op)).count());
    assert!(benches.iter().all(|count| *count >= 2) && !there[1].iter().any(|target| target.ends_with(":bench")));
    assert_eq!((cluster.count("run id-one"), cluster.count("run on cores of")), (4, 10));
    cluster.home.t2t("cache verify").exits(0).says(": 0 damages");
    let here = Project::new();
    here.build().exits(0);
    for target in ["softmax:analyze", "softmax/v1_baseline:compile", "gelu/v2_tiling:check"] {
        let both = [&cluster.home, &here].map(|project| record(project, target));
        assert_eq!(both[0]["outcome"], both[1]["outcome"], "{target}");
        assert_eq!(both[0]["key"], both[1]["key"], "{target}");
    }
    cluster.build("--on-cpus").exits(0).runs("").never_says("cluster");
}

#[test]
fn where_no_node_lends_a_device_the_interpreter_measures_here() {
    let cluster = Clustered::new();
    cluster.set(&[node(&cluster, "one", 4, 0), node(&cluster, "two", 4, 0)]);
    let without = cluster.build("softmax").exits(2);
    without.says("no node of the cluster at ray://head:10001 lends a device");
    let ran = cluster.build("softmax --on-cpus").exits(0).says("2 nodes lend 4 places on cores");
    ran.runs("softmax:select,log softmax/v1_baseline:bench softmax/v2_tiling:bench");
    assert_eq!(
        (cluster.count("run"), cluster.home.log().iter().filter(|line| line.contains("bench:bench")).count()),
        (5, 2)
    );
    // For a device there is none.
    cluster.build("softmax --on-cpus --as-device nvidia-h200").exits(2).says("lends a device");
}

#[test]
fn for_a_model_that_this_machine_lacks_nodes_without_devices_compile() {
    let cluster = Clustered::new();
    let one = super::models::node(&cluster, "one", &[super::models::H200]);
    cluster.set(&[one, node(&cluster, "two", 4, 0)]);
    let ran = cluster.build("softmax --as-device nvidia-h200 --on-cpus").exits(0).never_says("warning: ");
    ran.runs("softmax:select,log").says("2 nodes lend 1 device and 2 places on cores");
    let there = [cluster.ran_on("one"), cluster.ran_on("two")];
    let of = |phase: &str| there.each_ref().map(|ran| ran.iter().filter(|target| target.ends_with(phase)).count());
    assert_eq!((of(":compile"), of(":check"), of(":bench")), ([0, 2], [2, 0], [2, 0]), "{there:?}");
    cluster.home.t2t("build softmax --as-device nvidia-h200").exits(0).runs("");
}

#[test]
fn what_the_cores_of_a_node_lose_those_of_another_run_and_a_look_lists_them() {
    let cluster = Clustered::new();
    let mut one = node(&cluster, "one", 4, 0);
    one["fails"] = json!("the node died");
    cluster.set(&[one, node(&cluster, "two", 2, 0)]);
    let look = cluster.build("softmax:check --on-cpus --dry-run").exits(0).stdout;
    for line in ["node one lends one/cpu0, one/cpu1 (2 cores each)\n", "node two lends two/cpu0 (2 cores each)\n"] {
        assert!(look.contains(line), "{look}");
    }
    let (there, here) = look.split_once("\nhere: ").unwrap();
    assert!(there.contains("softmax:analyze ") && there.contains("v1_baseline:check ") && !here.contains("check "));
    let ran = cluster.build("softmax:check --on-cpus").exits(0);
    ran.runs("").says("was lost on one/cpu0: one: RayError: the node died; it runs again elsewhere");
    // Once both have failed it, it is lost, and with it what needs it.
    let mut two = node(&cluster, "two", 2, 0);
    two["fails"] = json!("out of disk");
    cluster.set(&[two]);
    cluster.build("gelu:check --on-cpus").exits(3).says("analyze gelu … lost: on two/cpu0: two: RayError: out of disk");
}

#[test]
fn nodes_without_devices_are_not_asked_where_nobody_wants_their_cores() {
    let cluster = Clustered::new();
    cluster.set(&[node(&cluster, "one", 4, 1), node(&cluster, "two", 4, 0)]);
    cluster.build("softmax:check").exits(0).says("1 node lends 1 device");
    assert_eq!((cluster.count("ask id-one"), cluster.count("ask id-two")), (1, 0));
    assert_eq!(cluster.count("run on cores of"), 0);
    let alone = cluster.home.t2t("build --on-cpus").exits(2);
    alone.says("error: `--on-cpus` is for nodes of a cluster, and none is named\n");
}
