//! `t2t build --on`: what nodes of a cluster perform is what would have run here, whatever happens to nodes. With a stand-in for Ray, whose nodes are processes of this machine.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::environment;
use crate::project::{Project, Ran, install, until};

mod cores;
mod faults;
mod models;
mod noise;
mod real;
mod stopped;
mod watched;

/// All of what a build of the two ops runs.
const ALL: &str = "gelu:analyze,select,log gelu/v1_baseline:compile,check,bench gelu/v2_tiling:compile,check,bench softmax:analyze,select,log softmax/v1_baseline:compile,check,bench softmax/v2_tiling:compile,check,bench summary";

/// A workspace and a cluster of two nodes with two devices each.
struct Clustered {
    home: Project,
}

impl Clustered {
    fn new() -> Self {
        let clustered = Self { home: Project::new() };
        for node in ["one", "two"] {
            install(&clustered.home.path(&format!("../{node}/python")));
        }
        clustered.set(&[clustered.node("one"), clustered.node("two")]);
        clustered
    }

    /// Returns a node that works.
    fn node(&self, name: &str) -> Value {
        let path = |below: &str| self.home.path(&format!("../{name}/{below}"));
        let environment = json!({"T2T_NODE": path("node"), "T2T_PYTHON": path("python/bin/python"), "T2T_BIN": environment::binary()});
        json!({"id": format!("id-{name}"), "name": name, "gpus": 2, "environment": environment})
    }

    /// Says which nodes there are.
    fn set(&self, nodes: &[Value]) {
        self.home.write("../ray/new", serde_json::to_vec(nodes).unwrap());
        fs::rename(self.home.path("../ray/new"), self.home.path("../ray/nodes.json")).unwrap();
    }

    fn command(&self, arguments: &str) -> Command {
        let mut command = self.home.command(arguments);
        let modules = ["tests/it/fake_ray", "python/api"].map(|path| environment::root().join(path));
        command
            .env("PYTHONPATH", std::env::join_paths(modules).unwrap())
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("FAKE_RAY", self.home.path("../ray"))
            .env("T2T_RAY_PYTHON", "python3");
        command
    }

    fn build(&self, arguments: &str) -> Ran {
        self.home.run(&mut self.command(&format!("build --on ray://head:10001 {arguments}")))
    }

    /// Returns how often the stand-in logged a line that starts so.
    fn count(&self, start: &str) -> usize {
        let log = fs::read_to_string(self.home.path("../ray/ray.log")).unwrap_or_default();
        log.lines().filter(|line| line.starts_with(start)).count()
    }

    /// Returns what ran on a node, oldest first.
    fn ran_on(&self, node: &str) -> Vec<String> {
        let log = fs::read_to_string(self.home.path(&format!("../{node}/python/bin/ran.log"))).unwrap_or_default();
        let targets = log.lines().filter_map(|line| line.split_once(' ')).map(|(target, _)| target.to_owned());
        // An action has a line for each of its children, and those of two that run at once lie between each other.
        let mut seen = BTreeSet::new();
        targets.filter(|target| target.contains("/v") && seen.insert(target.clone())).collect()
    }
}

/// Returns the last record of a target.
fn record(project: &Project, target: &str) -> Value {
    let journal = project.read("cache/journal");
    let records = journal.lines().skip(1).filter_map(|line| serde_json::from_str(line.split_once(' ')?.1).ok());
    records.filter(|record: &Value| record["identity"]["target"] == target).last().unwrap()
}

// What comes of it.

#[test]
fn nodes_perform_what_depends_on_a_device_and_the_results_are_those_of_a_build_here() {
    let cluster = Clustered::new();
    let ran = cluster.build("--trace ../trace.json").exits(0).says("on a cluster: 2 nodes lend 4 devices");
    // Of what nodes performed this machine's interpreter knows nothing.
    assert_eq!(ran.actions.matches("check").count() + ran.actions.matches("bench").count(), 0, "{}", ran.actions);
    let there = [cluster.ran_on("one"), cluster.ran_on("two")];
    assert!(there.iter().all(|ran| !ran.is_empty()), "{there:?}");
    let trace = cluster.home.read("../trace.json");
    for lane in ["one/0", "one/1", "two/0", "two/1"] {
        assert!(trace.contains(&format!("\"{lane}\"")), "{lane}");
    }
    cluster.home.t2t("cache verify").exits(0).says(": 0 damages");
    let here = Project::new();
    here.build().exits(0).runs(ALL);
    for target in ["softmax/v1_baseline:check", "gelu/v2_tiling:bench", "softmax:select", "gelu:log"] {
        let both = [&cluster.home, &here].map(|project| record(project, target));
        assert_eq!(both[0]["outcome"], both[1]["outcome"], "{target}");
        if target.ends_with("check") {
            assert_eq!(both[0]["key"], both[1]["key"], "{target}");
        }
    }
    // Each op is measured on one node.
    for op in ["softmax", "gelu"] {
        let is_bench = |target: &&String| target.starts_with(op) && target.ends_with(":bench");
        let measured = there.iter().filter(|ran| ran.iter().any(|target| is_bench(&target)));
        assert_eq!(measured.count(), 1, "{op} in {there:?}");
    }
}

#[test]
fn a_build_with_nothing_for_the_nodes_does_not_ask_the_cluster() {
    let cluster = Clustered::new();
    cluster.build("").exits(0);
    for _ in 0..2 {
        cluster.build("").exits(0).runs("").never_says("cluster");
    }
    cluster.home.build().exits(0).runs("");
    cluster.build("--force softmax:log").exits(0).runs("softmax:log");
    assert_eq!(cluster.count("open"), 1);
    // What the comment leaves as it was is known.
    cluster.home.edit("kernels/softmax/v1_baseline.py", "import triton\n", "import triton  # a comment\n");
    cluster.build("").exits(0).never_says("cluster");
    assert_eq!(cluster.count("open ray://head:10001"), 1);
}

#[test]
fn a_look_lists_the_nodes_and_what_each_part_would_do_and_runs_nothing() {
    let cluster = Clustered::new();
    let look = |arguments: &str| cluster.build(&format!("--dry-run {arguments}")).exits(0).runs("").stdout;
    let told = look("");
    let nodes: Vec<&str> = told.lines().filter(|line| line.starts_with("node ")).collect();
    assert_eq!(nodes.len(), 2, "{told}");
    assert!(nodes[0].starts_with("node one lends one/0, one/1 (") && nodes[1].starts_with("node two lends two/0"));
    // Below a heading what nodes would perform, in the order of the graph, then what this machine would.
    let (there, here) = told.split_once("\nhere: ").unwrap();
    let there = there.split_once("\non nodes: ").unwrap().1;
    let counted = |part: &str| part.split_once(' ').unwrap().0.parse::<usize>().unwrap();
    assert_eq!((counted(there), counted(here)), (there.lines().count() - 1, here.lines().count() - 1), "{told}");
    assert!(there.contains("softmax/v1_baseline:bench ") && !here.contains(":bench "), "{told}");
    assert!(here.contains("softmax:analyze ") && !there.contains(":analyze "), "{told}");
    // A node that does not fit is named with why.
    let [mut bare, whole] = ["one", "two"].map(|node| cluster.node(node));
    bare["environment"]["T2T_BIN"] = json!(cluster.home.path("../none"));
    cluster.set(&[bare, whole]);
    let told = look("");
    assert!(told.contains("node two lends two/0, two/1 (") && told.contains("node one is not used: "), "{told}");
    // Where nothing is for nodes none is asked, and a look that names no cluster asks none.
    cluster.set(&[cluster.node("one"), cluster.node("two")]);
    cluster.build("").exits(0);
    let opened = cluster.count("open");
    assert_eq!(look(""), "");
    cluster.home.edit("kernels/softmax/v1_baseline.py", "import triton\n", "import triton\n\nMORE = 2\n");
    let alone = cluster.home.run(&mut cluster.command("build --dry-run")).exits(0).stdout;
    assert!(alone.contains("softmax/v1_baseline:check ") && !alone.contains("node "), "{alone}");
    assert_eq!(cluster.count("open"), opened);
}

#[test]
fn a_rejection_by_a_node_is_told_as_one_by_this_machine() {
    let cluster = Clustered::new();
    cluster.home.kernel("softmax", "v1_baseline", "REJECT mismatch");
    let ran = cluster.build("softmax:check").exits(1);
    ran.says("kernels/softmax/v1_baseline.py:4:1: 2 of 256 elements differ (mismatch)").says("rejected 1");
    cluster.build("softmax:check").exits(1).runs("").says("rejected 1");
}

#[test]
fn what_a_node_has_is_not_sent_again() {
    let cluster = Clustered::new();
    let mut one = cluster.node("one");
    one["gpus"] = json!(1);
    cluster.set(&[one]);
    cluster.build("softmax:check").exits(0);
    // One action after the other: the second takes the same files, but for its kernel and its manifest.
    assert_eq!(cluster.count("run id-one"), 2);
    let blobs = cluster.home.files("../one/node/cas").len();
    assert!(blobs > 2 && cluster.count("put") == blobs, "{} of {blobs}", cluster.count("put"));
}

#[test]
fn a_file_that_a_kernel_turned_out_to_read_is_sent_with_it_the_second_time() {
    let cluster = Clustered::new();
    cluster.home.write("data/table.txt", "1 2 3");
    cluster.home.kernel("softmax", "v1_baseline", "READS data/table.txt");
    cluster.build("softmax/v1_baseline:check").exits(0);
    assert_eq!(cluster.count("run"), 2);
    cluster.home.t2t("build softmax/v1_baseline:check").exits(0).runs("");
    cluster.home.write("data/table.txt", "4 5 6");
    cluster.home.t2t("build softmax/v1_baseline:check --dry-run").says("data/table.txt changed");
}

// What can go wrong with a node.

#[test]
fn a_node_with_another_toolchain_is_not_used_and_that_is_said_once() {
    let cluster = Clustered::new();
    let site = cluster.home.path("../two/python/site-packages/versions.json");
    fs::write(site, json!({"torch": "2.12.0", "triton": "3.6.0"}).to_string()).unwrap();
    let ran = cluster.build("").exits(0);
    assert_eq!(ran.stderr.matches("warning: node two is not used: ").count(), 1, "{}", ran.stderr);
    ran.says("torch version changed: 2.11.0 → 2.12.0");
    assert_eq!(cluster.ran_on("two"), [""; 0]);
}

#[test]
fn what_a_node_loses_another_one_performs() {
    let cluster = Clustered::new();
    let mut one = cluster.node("one");
    one["fails"] = json!("the node died");
    cluster.set(&[one, cluster.node("two")]);
    let ran = cluster
        .build("--events ../events.jsonl --trace ../trace.json")
        .exits(0)
        .says(":check was lost on one/0: one: RayError: the node died; it runs again elsewhere");
    let losses = ran.stderr.matches("; it runs again elsewhere").count();
    ran.never_says("… lost").says(&format!(", run again {losses} in "));
    let events = cluster.home.read("../events.jsonl");
    let events: Vec<Value> = events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let lanes = &events.iter().find(|event| event["event"] == "planned").unwrap()["lanes"];
    assert_eq!((&lanes["one/1"], &lanes["two/0"], &lanes["cuda:0"]), (&json!(1), &json!(1), &Value::Null));
    let again: Vec<&Value> = events.iter().filter(|event| event["how"] == "again").collect();
    assert_eq!((again.len(), &events.last().unwrap()["tally"]["again"]), (losses, &json!(losses)));
    assert!(again.iter().all(|event| event["lane"].as_str().unwrap().starts_with("one/")), "{again:?}");
    // In the timeline each action has a bar on every lane that it was on.
    let trace: Value = serde_json::from_str(&cluster.home.read("../trace.json")).unwrap();
    let is_lost = |bar: &&Value| {
        bar["args"]["outcome"].as_str().is_some_and(|outcome| outcome.starts_with("lost, it runs again: "))
    };
    assert_eq!(trace["traceEvents"].as_array().unwrap().iter().filter(is_lost).count(), losses);
    cluster.home.t2t("report --trace ../trace.json --out ../report.html").exits(0);
    let page = cluster.home.read("../report.html").replace("&#x2f;", "/");
    assert!(page.contains("one/0") && page.contains("two/0"), "nodes are lanes of the page");
}

#[test]
fn what_every_node_loses_is_lost_with_the_name_of_the_last() {
    let cluster = Clustered::new();
    let nodes = ["one", "two"].map(|name| {
        let mut node = cluster.node(name);
        node["fails"] = json!("out of disk");
        node
    });
    cluster.set(&nodes);
    let ran = cluster.build("softmax/v1_baseline:check").exits(3);
    ran.says("check softmax/v1_baseline … lost: on two/0: two: RayError: out of disk");
    assert_eq!(cluster.count("run"), 2);
    cluster.set(&[cluster.node("one")]);
    cluster.build("softmax/v1_baseline:check").exits(0);
}

#[test]
fn what_runs_on_a_node_that_freezes_runs_on_another_once_it_is_not_alive() {
    let cluster = Clustered::new();
    let mut one = cluster.node("one");
    one["frozen"] = json!(true);
    cluster.set(&[one, cluster.node("two")]);
    let child = cluster
        .command("build --on ray://head:10001 softmax:check")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let child = child.unwrap();
    until(|| (cluster.count("run id-one") == 2).then_some(()));
    cluster.set(&[cluster.node("two")]);
    let ran = cluster.home.wait(child).exits(0);
    ran.says("was lost on one/0: one: the node is not alive any more; it runs again elsewhere");
    assert_eq!(cluster.ran_on("two").len(), 2);
}

#[test]
fn where_all_nodes_are_gone_the_rest_is_lost_and_what_was_finished_stays() {
    let cluster = Clustered::new();
    cluster.home.kernel("softmax", "v2_tiling", "WAITS");
    let child =
        cluster.command("build --on ray://head:10001 softmax").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.unwrap();
    let journal = || fs::read_to_string(cluster.home.path("cache/journal")).unwrap_or_default();
    until(|| journal().contains("softmax/v1_baseline:bench").then_some(()));
    cluster.set(&[]);
    let ran = cluster.home.wait(child).exits(3);
    ran.says("check softmax/v2_tiling … lost: on ")
        .says("the node is not alive any more")
        .says("select softmax … passed");
    cluster.set(&[cluster.node("two")]);
    cluster.home.kernel("softmax", "v2_tiling", "");
    cluster.build("softmax/v1_baseline:bench").exits(0).runs("");
}

// Who names the cluster.

#[test]
fn the_command_line_goes_before_the_environment_and_that_before_ops_yaml() {
    let cluster = Clustered::new();
    let declared = format!("executor: ray://declared:10001\n{}", cluster.home.read("ops.yaml"));
    let before = cluster.home.read("ops.yaml");
    cluster.home.build().exits(0);
    cluster.home.write("ops.yaml", &declared);
    // It is in no key.
    cluster.home.run(&mut cluster.command("build")).exits(0).runs("").never_says("cluster");
    let changed = |what: &str| cluster.home.kernel("gelu", "v1_baseline", what);
    let build = |arguments: &str, variable: Option<&str>| {
        let mut command = cluster.command(arguments);
        variable.map(|executor| command.env("T2T_EXECUTOR", executor));
        cluster.home.run(&mut command).exits(0)
    };
    let opened = |address: &str| cluster.count(&format!("open ray://{address}:1"));
    changed("first");
    build("build", None).says("on a cluster");
    assert_eq!(opened("declared"), 1);
    changed("second");
    build("build", Some("ray://variable:1")).says("on a cluster");
    changed("third");
    build("build --on ray://option:1", Some("ray://variable:1")).says("on a cluster");
    assert_eq!((opened("declared"), opened("variable"), opened("option")), (1, 1, 1));
    for (number, (arguments, variable)) in
        [("build --on local", Some("ray://variable:1")), ("build", Some("")), ("build", Some("local"))]
            .iter()
            .enumerate()
    {
        changed(&format!("here {number}"));
        let here = build(arguments, *variable).never_says("cluster");
        assert!(here.actions.contains("gelu/v1_baseline:"), "{}", here.actions);
    }
    assert_eq!(cluster.count("open"), 3);
    // What is found out of a few edited ops without the whole must not pass it by.
    changed("fourth");
    build("build", None).says("on a cluster");
    assert_eq!(opened("declared"), 2);
    cluster.home.write("ops.yaml", before);
    changed("fifth");
    build("build", None).never_says("cluster");
    for (written, place) in [("head", "1:11"), ("ray://head", "1:11"), ("7", "1:11")] {
        cluster.home.write("ops.yaml", declared.replace("ray://declared:10001", written));
        let place = format!("ops.yaml:{place}: ");
        cluster.home.run(&mut cluster.command("build")).exits(2).says(&place).says("hint: ");
    }
}

// What is no cluster.

#[test]
fn a_cluster_that_cannot_be_used_is_an_error_that_says_why() {
    let cluster = Clustered::new();
    let on = |address: &str| cluster.home.run(&mut cluster.command(&format!("build --on {address} softmax:check")));
    for address in ["head", "ray://head", "ray://:10001", "http://head:10001"] {
        on(address).exits(2).says(&format!("`{address}` is no address of a cluster\nhint: write `ray://HOST:PORT`"));
    }
    cluster.home.write("../ray/refuses", "it is\nno cluster");
    on("ray://head:10001").exits(3).says("cannot reach the Ray cluster at ray://head:10001: it is no cluster\nhint: ");
    cluster.home.remove("../ray/refuses");
    cluster.set(&[]);
    on("ray://head:10001").exits(2).says("no node of the cluster at ray://head:10001 lends a device");
    let mut command = cluster.command("build --on ray://head:10001 softmax:check");
    command.env("PYTHONPATH", "");
    cluster.home.run(&mut command).exits(3).says("No module named t2t_ray\nhint: install `t2t[ray]`");
    command.env("T2T_RAY_PYTHON", cluster.home.path("../none"));
    cluster.home.run(&mut command).exits(3).says("cannot start `[FOLDER]/none -m t2t_ray`");
    // Nothing was lost by it.
    cluster.home.t2t("build softmax:check").exits(0);
}
