//! Nodes whose devices others use, or that are slower than their model is: they are named, and what they measure is kept.

use std::fs;

use serde_json::json;

use super::Clustered;
use super::models::{H200, node};

#[test]
fn a_node_on_which_others_use_the_gpu_is_named_once() {
    let cluster = Clustered::new();
    let mut one = cluster.node("one");
    one["gpus"] = json!(1);
    cluster.set(&[one]);
    for variant in ["v1_baseline", "v2_tiling"] {
        cluster.home.kernel("softmax", variant, "VARIES other processes on the GPU: 2");
    }
    let ran = cluster.build("softmax").exits(0);
    let ran = ran.says("warning: node one was disturbed while it measured softmax/");
    let ran = ran.says(":bench: other processes on the GPU: 2\n");
    assert_eq!(ran.stderr.matches("was disturbed").count(), 1, "{}", ran.stderr);
}

/// Returns how often a node has calibrated.
fn calibrated(cluster: &Clustered, node: &str) -> usize {
    let log = fs::read_to_string(cluster.home.path(&format!("../{node}/python/bin/ran.log"))).unwrap_or_default();
    log.lines().filter(|line| line.starts_with("calibrate ")).count()
}

/// Returns how many calibrations are kept at home.
fn kept(cluster: &Clustered) -> usize {
    cluster.home.read("cache/journal").matches("\"target\":\"calibrate\"").count()
}

#[test]
fn each_device_is_calibrated_once_a_day_and_a_node_that_is_slower_is_named() {
    let cluster = Clustered::new();
    let [slow, fast] = ["one", "two"].map(|name| node(&cluster, name, &[H200]));
    cluster.home.write("../one/python/bin/rate", "3000");
    let build = || cluster.build("--as-device nvidia-h200 softmax").exits(0);
    cluster.set(std::slice::from_ref(&fast));
    build().never_says("is noisy");
    assert_eq!((calibrated(&cluster, "two"), kept(&cluster)), (1, 1));
    cluster.set(&[slow]);
    let why =
        "warning: node one (GPU-one-0) is noisy: copies reach 3000 GB/s, where the calibration that is kept has 4000\n";
    for round in 0..2 {
        cluster.home.kernel("softmax", "v1_baseline", &format!("edited {round}"));
        let ran = build();
        assert_eq!(ran.stderr.matches(why).count(), 1, "{}", ran.stderr);
        // What the node says of itself is no result of the build.
        assert_eq!((calibrated(&cluster, "one"), kept(&cluster)), (1, 1));
    }
    // One that was calibrated long ago is calibrated again.
    for file in cluster.home.files("../one/node/calibrations") {
        let file = fs::File::open(cluster.home.path("../one/node/calibrations").join(file)).unwrap();
        file.set_modified(std::time::SystemTime::now() - std::time::Duration::from_hours(30)).unwrap();
    }
    cluster.home.remove("../one/python/bin/rate");
    cluster.home.kernel("softmax", "v1_baseline", "edited again");
    build().never_says("is noisy");
    assert_eq!((calibrated(&cluster, "one"), kept(&cluster)), (2, 1));
    cluster.home.t2t("cache verify").exits(0).says(": 0 damages");
}

#[test]
fn a_device_that_was_disturbed_is_calibrated_again_before_it_measures_again() {
    let cluster = Clustered::new();
    cluster.set(&[node(&cluster, "one", &[H200])]);
    let build = || cluster.build("--as-device nvidia-h200 softmax/v1_baseline:bench").exits(0);
    cluster.home.write("../one/python/bin/strangers", "");
    let why = "warning: node one (GPU-one-0) is noisy: other processes on the GPU: 1\n";
    for round in 1..3 {
        cluster.home.kernel("softmax", "v1_baseline", &format!("edited {round}"));
        // A tune, if there is one, is a measurement, too.
        let ran = build();
        assert_eq!(ran.stderr.matches(why).count(), 1, "{}", ran.stderr);
        assert!(calibrated(&cluster, "one") >= round, "{round}");
    }
    cluster.home.remove("../one/python/bin/strangers");
    cluster.home.kernel("softmax", "v1_baseline", "edited again");
    build().never_says("is noisy");
    let known = calibrated(&cluster, "one");
    cluster.home.kernel("softmax", "v1_baseline", "edited once more");
    build().never_says("is noisy");
    assert_eq!(calibrated(&cluster, "one"), known);
}

#[test]
fn a_calibration_of_a_noisy_node_is_named_once_another_one_is_faster() {
    let cluster = Clustered::new();
    let [slow, fast] = ["one", "two"].map(|name| node(&cluster, name, &[H200]));
    cluster.home.write("../one/python/bin/rate", "3000");
    let build = |arguments: &str| cluster.build(&format!("--as-device nvidia-h200 {arguments}")).exits(0);
    cluster.set(&[slow]);
    build("softmax").never_says("is noisy");
    cluster.set(&[fast]);
    cluster.home.kernel("softmax", "v1_baseline", "edited");
    build("softmax/v1_baseline:bench").says(
        "warning: the calibration that is kept is noisy: copies reach 3000 GB/s, where node two (GPU-two-0) has 4000. `t2t build --force calibrate` makes it anew\n",
    );
    build("--force calibrate").never_says("is noisy");
    cluster.home.kernel("softmax", "v1_baseline", "edited again");
    build("softmax").never_says("is noisy");
}
