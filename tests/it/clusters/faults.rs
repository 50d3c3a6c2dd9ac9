//! Nodes with a bad day: a full disk, a wrong clock, a device that fell off, an end that comes too late. And all of it at once, for as long as `tests/soak.sh` says.

use std::fs;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::super::clock::shim;
use super::{Clustered, record};
use crate::environment;
use crate::project::{Project, program, until};
use crate::soak::{Count, rounds};

/// Has a node start its t2t by a script, which ends in `exec "$T2T" "$@"`.
fn by(cluster: &Clustered, node: &mut Value, script: &str) {
    let path = cluster.home.path(&format!("../{}/t2t", node["name"].as_str().unwrap()));
    let t2t = environment::binary();
    program(&path, &format!("#!/bin/bash\nT2T={}\n{script}\n", t2t.display()));
    node["environment"]["T2T_BIN"] = json!(path);
}

/// Returns the checks in the journal, each with how often it is there.
fn checks(project: &Project) -> Vec<(String, usize)> {
    let journal = project.read("cache/journal");
    let records = journal.lines().skip(1).filter_map(|line| serde_json::from_str(line.split_once(' ')?.1).ok());
    let mut counts: std::collections::BTreeMap<String, usize> = std::collections::BTreeMap::new();
    for record in records {
        let record: Value = record;
        let target = record["identity"]["target"].as_str().unwrap_or_default().to_owned();
        if target.ends_with(":check") {
            *counts.entry(target).or_default() += 1;
        }
    }
    counts.into_iter().collect()
}

#[test]
fn a_node_whose_disk_is_full_is_named_and_another_one_does_its_work() {
    let cluster = Clustered::new();
    let mut one = cluster.node("one");
    let folder = cluster.home.path("../one/node");
    fs::create_dir_all(&folder).unwrap();
    // Where this user may mount nothing, no file may be longer than a block.
    let full = format!(
        "[ \"$2\" = facts ] && exec \"$T2T\" \"$@\"\n\
         export T2T=$T2T\n\
         unshare -rm true 2>/dev/null && exec unshare -rm bash -c 'mount -t tmpfs -o size=20k none {0} && exec \"$T2T\" \"$@\"' bash \"$@\"\n\
         ulimit -f 1; exec \"$T2T\" \"$@\"",
        folder.display()
    );
    by(&cluster, &mut one, &full);
    cluster.set(&[one, cluster.node("two")]);
    let ran = cluster.build("softmax:check").exits(0);
    ran.says(":check was lost on one/0: `t2t perform` ended with exit code ").says("run again 2");
    assert_eq!((cluster.ran_on("one"), cluster.ran_on("two").len()), (vec![], 2));
}

#[test]
fn a_node_with_a_wrong_clock_tells_the_same() {
    for offset in ["-2 years", "+2 years"] {
        let cluster = Clustered::new();
        let mut one = cluster.node("one");
        one["gpus"] = json!(1);
        // Files are what t2t reads a clock for: those that it finds are of another time, and new ones get another.
        by(
            &cluster,
            &mut one,
            &format!("find \"$T2T_NODE\" -exec touch -d '{offset}' {{}} + 2>/dev/null\nexec \"$T2T\" \"$@\""),
        );
        cluster.set(&[one]);
        cluster.build("softmax:check").exits(0);
        cluster.home.edit("kernels/softmax/v1_baseline.py", "import triton\n", "import triton\n\nMORE = 2\n");
        cluster.build("softmax:check").exits(0).never_says("warning: ");
        // What nobody seems to have taken for two years is not kept, and comes again.
        let sent = if offset.starts_with('-') { 4 } else { 3 };
        assert_eq!(cluster.count("run id-one"), sent, "{offset}");
        cluster.build("softmax:check").exits(0).runs("");
        cluster.home.t2t("cache verify").exits(0).says(": 0 damages");
    }
}

#[test]
#[ignore = "it takes a C compiler: tests/soak.sh runs it"]
fn a_clock_of_a_node_that_is_years_off_changes_nothing() {
    let count = Count::of("clocks", "nodes");
    for offset in [-60_000_000, 60_000_000] {
        let cluster = Clustered::new();
        let mut one = cluster.node("one");
        one["environment"]["LD_PRELOAD"] = json!(shim(&cluster.home));
        for (name, value) in [("FIRST", offset), ("READINGS", 0), ("THEN", offset)] {
            one["environment"][format!("T2T_CLOCK_{name}")] = json!(value.to_string());
        }
        cluster.set(&[one]);
        cluster.build("").exits(0).never_says("warning: ");
        cluster.home.edit("kernels/softmax/v1_baseline.py", "import triton\n", "import triton\n\nMORE = 2\n");
        cluster.build("softmax:check").exits(0).never_says("warning: ");
        cluster.build("softmax:check").exits(0).runs("");
        cluster.home.t2t("build").exits(0);
        cluster.home.t2t("build").exits(0).runs("");
        cluster.home.t2t("cache verify").exits(0).says(": 0 damages");
        count.add(1);
    }
}

#[test]
fn a_device_that_falls_off_its_node_is_used_no_more_and_another_one_does_its_work() {
    let cluster = Clustered::new();
    let h200 = super::models::H200;
    let [mut one, two] = ["one", "two"].map(|name| super::models::node(&cluster, name, &[h200]));
    // It is there when the node is asked, and gone when it is wanted.
    by(&cluster, &mut one, "[ \"$2\" = facts ] || rm -rf \"$T2T_DRIVER/gpus\"\nexec \"$T2T\" \"$@\"");
    cluster.set(&[one, two]);
    let ran = cluster.build("softmax --as-device nvidia-h200").exits(0);
    ran.says(" was lost on one/0: ").says("; it runs again elsewhere");
    assert!(cluster.ran_on("one").is_empty() && cluster.ran_on("two").len() == 4, "{:?}", cluster.ran_on("two"));
    cluster.home.t2t("cache verify").exits(0).says(": 0 damages");
}

#[test]
fn of_an_action_that_two_nodes_finish_one_result_is_kept() {
    let cluster = Clustered::new();
    let [mut one, mut two] = ["one", "two"].map(|node| cluster.node(node));
    (one["gpus"], two["gpus"]) = (json!(1), json!(1));
    cluster.set(&[one, two.clone()]);
    for variant in ["v1_baseline", "v2_tiling"] {
        cluster.home.kernel("softmax", variant, "WAITS; ERROR 1e-9");
    }
    // Who is cut off does not hear that it is over.
    cluster.home.write("../ray/cut", "");
    let mut command = cluster.command("build --on ray://head:10001 softmax:check");
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until(|| (!cluster.ran_on("one").is_empty() && !cluster.ran_on("two").is_empty()).then_some(()));
    cluster.set(&[two]);
    // The first node ends its action after it was given up, and before the other one has begun it.
    thread::sleep(Duration::from_secs(2));
    let ended = || cluster.home.files("../ray").iter().filter(|file| file.ends_with("ended")).count();
    let before = ended();
    cluster.home.write("../one/python/bin/calm", "");
    until(|| (ended() > before).then_some(()));
    thread::sleep(Duration::from_millis(500));
    cluster.home.write("../two/python/bin/calm", "");
    let ran = cluster.home.wait(child).exits(0);
    ran.says("was lost on one/0: one: the node is not alive any more").says("run again 1");
    let each = ["softmax/v1_baseline:check", "softmax/v2_tiling:check"].map(|target| (target.to_owned(), 1));
    assert_eq!(checks(&cluster.home), each);
    assert_eq!(cluster.ran_on("two").len(), 2);
}

/// A number drawn from `seed`, below `end`.
fn drawn(seed: u64, end: u64) -> u64 {
    seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407).rotate_left(29) % end
}

#[test]
fn whatever_happens_to_nodes_a_build_ends_with_the_results_of_one_here() {
    let count = Count::of("clusters", "builds");
    let here = Project::new();
    here.build().exits(0);
    for round in rounds(2) {
        let cluster = Clustered::new();
        let mut extra = cluster.node("one");
        match drawn(round, 3) {
            0 => extra["fails"] = json!("out of memory"),
            1 => extra["frozen"] = json!(true),
            _ => {}
        }
        let more = ["", "--on-cpus"][usize::try_from(drawn(round + 7, 2)).unwrap()];
        cluster.set(&[extra, cluster.node("two")]);
        let mut command = cluster.command(&format!("build --on ray://head:10001 {more}"));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        thread::sleep(Duration::from_millis(500 + drawn(round + 13, 3000)));
        // One node goes, whether it was of use or not; who is killed meanwhile begins again.
        cluster.set(&[cluster.node("two")]);
        if drawn(round + 17, 3) == 0 {
            child.kill().unwrap();
        }
        let ran = cluster.home.wait(child);
        assert!([0, -1].contains(&ran.code), "round {round}: {}", ran.stderr);
        cluster.build(more).exits(0);
        cluster.build(more).exits(0).runs("");
        cluster.home.t2t("cache verify").exits(0).says(": 0 damages");
        for target in ["softmax/v1_baseline:check", "gelu/v2_tiling:check", "gelu/v1_baseline:compile"] {
            let both = [&cluster.home, &here].map(|project| record(project, target));
            assert_eq!((&both[0]["outcome"], &both[0]["key"]), (&both[1]["outcome"], &both[1]["key"]), "{target}");
        }
        count.add(1);
    }
}
