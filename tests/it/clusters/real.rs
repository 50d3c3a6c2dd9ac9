//! The same with Ray itself: two nodes on this machine with two devices each that are none, behind which the interpreter for tests plays. One of them is killed, then the driver, then the head.

use std::fs;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

use super::stopped::expect_nothing_runs;
use super::{ALL, record};
use crate::cli::kills::children_of;
use crate::environment;
use crate::project::{Project, install, until};

/// A node of Ray, with all of its processes in a group. They are killed when it is dropped.
struct Node(Child);

impl Drop for Node {
    fn drop(&mut self) {
        // Workers are in groups of their own, and end with the node's.
        let _ = killpg(Pid::from_raw(i32::try_from(self.0.id()).unwrap()), Signal::SIGKILL);
        let _ = self.0.wait();
    }
}

/// Starts a node, and returns once it is up.
fn node(home: &Project, name: &str, arguments: &[&str]) -> Node {
    let path = |below: &str| home.path(&format!("../{name}/{below}"));
    install(&path("python"));
    let log = fs::File::create(path("log")).unwrap();
    let mut command = Command::new(environment::python());
    command
        .args([
            "-c",
            "from ray.scripts.scripts import main; main()",
            "start",
            "--block",
            "--num-cpus=1",
            "--num-gpus=2",
        ])
        .args(["--object-store-memory=100000000", "--log-style=record"])
        .args(arguments)
        .current_dir(home.path(""))
        .env("T2T_NODE", path("node"))
        .env("T2T_PYTHON", path("python/bin/python"))
        .env("T2T_BIN", environment::binary())
        .env("T2T_BYTECODE", "")
        // A token of the user's is none of this cluster's: a head would ask for it, and other nodes would not tell it.
        .env("HOME", home.path(".."))
        .env("RAY_AUTH_MODE", "disabled")
        .env("RAY_USAGE_STATS_ENABLED", "0")
        // A node that is gone is to be seen soon.
        .envs(["initial_delay_ms", "period_ms"].map(|name| (format!("RAY_health_check_{name}"), "1000")))
        .env("RAY_health_check_timeout_ms", "2000")
        .env("RAY_health_check_failure_threshold", "3")
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log);
    let node = Node(command.spawn().unwrap());
    until(|| fs::read_to_string(path("log")).unwrap_or_default().contains("will now block").then_some(()));
    node
}

/// Returns a port that nobody has now.
fn port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Returns a build that joins the cluster directly: what its client server starts for a client may take longer than it waits for, where cores are busy.
fn build(home: &Project, head: u16, arguments: &str) -> Command {
    let mut command = home.command(&format!("build --on auto {arguments}"));
    command.env("RAY_ADDRESS", format!("127.0.0.1:{head}")).env("RAY_AUTH_MODE", "disabled");
    command.env("T2T_RAY_PYTHON", environment::python()).env("PYTHONPATH", environment::root().join("python/api"));
    command
}

#[test]
fn a_cluster_of_ray_builds_what_this_machine_does_also_after_a_node_was_killed_and_loses_nothing_with_its_head() {
    let home = Project::new();
    let head = port();
    let temporary = home.path("../ray");
    let first = [
        "--head",
        "--include-dashboard=false",
        &format!("--port={head}"),
        &format!("--temp-dir={}", temporary.display()),
    ];
    let one = node(&home, "one", &first);
    let second = [&format!("--address=127.0.0.1:{head}"), "--node-ip-address=127.0.0.2", "--labels=t2t.device=none"];
    let two = node(&home, "two", &second);
    home.kernel("softmax", "v1_baseline", "WAITS");
    home.kernel("softmax", "v2_tiling", "WAITS");
    home.kernel("gelu", "v1_baseline", "WAITS");
    let mut child = build(&home, head, "").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let log = |name: &str| fs::read_to_string(home.path(&format!("../{name}/python/bin/ran.log"))).unwrap_or_default();
    // One that ended says why below.
    let is_over = |child: &mut Child| child.try_wait().unwrap().is_some();
    until(|| {
        let are_busy = log("one").contains(":check") && log("two").contains(":check");
        (are_busy || is_over(&mut child)).then_some(())
    });
    drop(two);
    for name in ["one", "two"] {
        home.write(&format!("../{name}/python/bin/calm"), "");
    }
    let ran = home.wait(child).exits(0);
    ran.says("on a cluster: 2 nodes lend 4 devices").says("127.0.0.2/").says("it runs again elsewhere");
    home.t2t("cache verify").exits(0).says(": 0 damages");
    let here = Project::new();
    for (op, variant) in [("softmax", "v1_baseline"), ("softmax", "v2_tiling"), ("gelu", "v1_baseline")] {
        here.kernel(op, variant, "WAITS");
    }
    here.calm();
    here.build().exits(0).runs(ALL);
    for target in ["softmax/v1_baseline:check", "softmax/v2_tiling:check", "gelu/v1_baseline:check"] {
        let [there, own] = [&home, &here].map(|project| record(project, target));
        assert_eq!((&there["key"], &there["outcome"]), (&own["key"], &own["outcome"]), "{target}");
        assert_eq!(there["outputs"]["verdict"], own["outputs"]["verdict"], "{target}");
    }
    home.run(&mut build(&home, head, "")).exits(0).runs("").never_says("cluster");
    // The driver is killed, then the head.
    home.remove("../one/python/bin/calm");
    // So long a head has to come back, in seconds; Ray's own default is a minute.
    let patience = ("RAY_gcs_rpc_server_reconnect_timeout_s", "5");
    let hangs = |patience: Option<(&str, &str)>| {
        home.kernel("gelu", "v2_tiling", "HANG");
        home.remove("../one/python/bin/ran.log");
        let mut command = build(&home, head, "gelu/v2_tiling:check");
        let piped = command.envs(patience).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        until(|| log("one").contains(":check").then_some(()));
        piped.unwrap()
    };
    let child = hangs(None);
    let t2t = i32::try_from(child.id()).unwrap();
    let is_driver =
        |pid: &i32| fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.contains("t2t_ray"));
    let driver = children_of(t2t).into_iter().find(is_driver).unwrap();
    kill(Pid::from_raw(driver), Signal::SIGKILL).unwrap();
    home.wait(child).exits(3).says("check gelu/v2_tiling … lost: ").says("the driver of the cluster");
    expect_nothing_runs(&home, Instant::now());
    home.kernel("gelu", "v2_tiling", "edited");
    home.run(&mut build(&home, head, "gelu/v2_tiling:check")).exits(0).says("1 node lends 2 devices");
    let child = hangs(Some(patience));
    drop(one);
    home.wait(child).exits(3).says("check gelu/v2_tiling … lost: ");
    expect_nothing_runs(&home, Instant::now());
    let mut nobody = build(&home, head, "gelu/v2_tiling:check");
    home.run(nobody.env(patience.0, patience.1)).exits(3).says("cannot reach the Ray cluster at ");
    home.kernel("gelu", "v2_tiling", "");
    home.build().exits(0);
    home.t2t("cache verify").exits(0).says(": 0 damages");
}
