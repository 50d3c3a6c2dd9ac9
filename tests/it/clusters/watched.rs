//! `t2t watch --on`: rounds whose checks and measurements nodes perform. The cluster is joined once, for all of them.

use std::fs;

use nix::sys::signal::Signal;

use super::Clustered;
use crate::project::until;
use crate::watching::Watching;

const KERNEL: &str = "kernels/softmax/v2_tiling.py";

/// The check of that kernel.
const CHECK: &str = "softmax/v2_tiling:check";

/// Starts a watch, and waits until it says what it runs on.
fn watched(cluster: &Clustered) -> Watching<'_> {
    let mut watching = Watching::of(&cluster.home, &mut cluster.command("watch --on ray://head:10001"));
    watching.says("on a cluster: 2 nodes lend 4 devices");
    watching
}

/// Returns how often the kernel of a check was run on nodes.
fn ran(cluster: &Clustered, target: &str) -> usize {
    let began = format!("{target} candidate:run");
    let of_node = |node: &str| {
        let log = cluster.home.path(&format!("../{node}/python/bin/ran.log"));
        fs::read_to_string(log).unwrap_or_default().lines().filter(|line| *line == began).count()
    };
    ["one", "two"].map(of_node).iter().sum()
}

/// Fails unless the watch left a workspace in which nothing is stale, and none of its checks was done here.
fn ends_whole(cluster: &Clustered, watching: Watching<'_>) {
    let (code, told) = watching.stop(Signal::SIGINT);
    assert_eq!(code, 130, "{told}");
    cluster.home.build().exits(0).runs("");
    let log = cluster.home.log();
    assert!(!log.iter().any(|line| line.contains(":check ") || line.contains(":bench ")), "{log:?}");
    assert_eq!(cluster.count("open"), 1);
}

#[test]
fn saves_are_checked_on_nodes_and_the_cluster_is_joined_once() {
    let cluster = Clustered::new();
    let mut watching = watched(&cluster);
    watching.settles();
    for step in 1..3 {
        cluster.home.edit(KERNEL, &format!("input + {step}"), &format!("input + {}", step + 1));
        watching.says("check softmax/v2_tiling … passed");
        watching.says("bench softmax/v2_tiling … passed");
        watching.settles();
    }
    // What only the interpreter's log tells apart from a check that was there.
    cluster.home.edit(KERNEL, "import triton\n", "import triton  # a comment\n");
    watching.settles();
    assert_eq!((ran(&cluster, CHECK), ran(&cluster, "gelu/v1_baseline:check")), (3, 1));
    ends_whole(&cluster, watching);
}

#[test]
fn a_save_cancels_what_a_node_does_of_the_kernel_as_it_was_and_nothing_else() {
    let cluster = Clustered::new();
    for variant in ["v1_baseline", "v2_tiling"] {
        cluster.home.kernel("softmax", variant, "WAITS");
    }
    let mut watching = watched(&cluster);
    until(|| (ran(&cluster, CHECK) == 1 && ran(&cluster, "softmax/v1_baseline:check") == 1).then_some(()));
    cluster.home.edit(KERNEL, "WAITS", "RIGHT");
    watching.says("check softmax/v2_tiling … cancelled");
    watching.says("check softmax/v2_tiling … passed");
    for node in ["one", "two"] {
        fs::write(cluster.home.path(&format!("../{node}/python/bin/calm")), "").unwrap();
    }
    watching.settles();
    assert_eq!((ran(&cluster, CHECK), ran(&cluster, "softmax/v1_baseline:check")), (2, 1));
    ends_whole(&cluster, watching);
}

#[test]
fn what_a_node_loses_another_one_checks_and_a_later_save_too() {
    let cluster = Clustered::new();
    let mut watching = watched(&cluster);
    watching.settles();
    let mut lost = cluster.node("one");
    lost["fails"] = "the node died".into();
    cluster.set(&[lost, cluster.node("two")]);
    for step in 1..3 {
        cluster.home.edit(KERNEL, &format!("input + {step}"), &format!("input + {}", step + 1));
        watching.says("check softmax/v2_tiling … passed");
        let line = watching.settles();
        assert!(step > 1 || line.contains(", run again "), "{line}");
    }
    // A round counts what it lost itself.
    cluster.set(&[cluster.node("one"), cluster.node("two")]);
    cluster.home.edit(KERNEL, "input + 3", "input + 4");
    let line = watching.settles();
    assert!(!line.contains("run again"), "{line}");
    let (code, told) = watching.stop(Signal::SIGINT);
    assert_eq!(code, 130, "{told}");
    cluster.home.build().exits(0).runs("");
}
