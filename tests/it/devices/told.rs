//! What is told of devices: how busy they were, when measuring ended, traces.
//!
//! It does not know who runs where.

use nix::sys::signal::Signal;
use serde_json::Value;

use super::{build, machine, on, signal, spawn};
use crate::project::Project;

#[test]
fn a_build_says_how_busy_each_device_was_and_how_long_it_was_timing() {
    let project = machine(1);
    let ran = project.run(&mut on(&project, &project, "build")).exits(0);
    let line =
        ran.stderr.lines().find(|line| line.starts_with("cuda:0: busy ")).unwrap_or_else(|| panic!("{}", ran.stderr));
    assert!(line.contains(" %") && line.ends_with("overhead"), "{line}");
    project.run(&mut on(&project, &project, "build")).exits(0).never_says("busy");
}

fn events(project: &Project, name: &str) -> Vec<Value> {
    let trace: Value = serde_json::from_str(&project.read(name)).unwrap();
    trace["traceEvents"].as_array().unwrap().clone()
}

#[test]
fn where_measuring_ends_by_what_is_seen_log_and_status_say_when_and_it_is_in_the_key() {
    let project = machine(1);
    project.write("assets/log_template.md", include_str!("../../../assets/log_template.md"));
    build(&project, "--op softmax");
    let fixed = project.read("logs/softmax_log.md");
    assert!(fixed.contains("10 runs a size") && !fixed.contains("tenths"), "{fixed}");
    project.edit("ops.yaml", "bench: {", "bench: {stop: auto, ");
    let explained = project.run(&mut on(&project, &project, "explain softmax/v1_baseline:bench")).exits(0).stdout;
    assert!(explained.contains("stop"), "{explained}");
    build(&project, "--op softmax");
    let log = project.read("logs/softmax_log.md");
    assert!(log.contains("- v1_baseline: Small 6 of 100, precise\n- v2_tiling: Small 6 of 100, precise\n"), "{log}");
    let status = project.run(&mut on(&project, &project, "status softmax")).exits(0).stdout;
    assert!(status.contains("measured  softmax/v2_tiling:bench: small 6 of 100 runs: precise\n"), "{status}");
}

#[test]
fn a_trace_has_every_action_with_its_children_and_what_devices_did() {
    let project = machine(1);
    build(&project, "--trace trace.json");
    let events = events(&project, "trace.json");
    let of = |kind: &'static str| events.iter().filter(move |event| event["cat"] == kind);
    let row = |event: &Value| {
        let named = events.iter().find(|other| other["ph"] == "M" && other["tid"] == event["tid"]);
        named.unwrap()["args"]["name"].as_str().unwrap().to_owned()
    };
    let ends = |event: &Value| {
        let begin = event["ts"].as_f64().unwrap();
        (begin, begin + event["dur"].as_f64().unwrap())
    };
    let bench = of("action").find(|event| event["args"]["target"] == "gelu/v2_tiling:bench").unwrap();
    assert_eq!((row(bench).as_str(), &bench["args"]["outcome"]), ("cuda:0", &Value::from("passed")));
    let whole = ends(bench);
    let within = |event: &&Value| event["args"]["target"] == "gelu/v2_tiling:bench";
    let called: Vec<&Value> = of("child").filter(within).collect();
    assert_eq!(
        called.iter().map(|child| child["name"].as_str().unwrap()).collect::<Vec<_>>(),
        ["bench:bench", "sample:judge_sample"]
    );
    let timed: Vec<&Value> = of("device").filter(within).collect();
    assert_eq!(
        timed.iter().map(|span| (row(span), span["name"].as_str().unwrap())).next(),
        Some(("cuda:0 work".to_owned(), "timing"))
    );
    for inner in called.into_iter().chain(timed) {
        let (begin, end) = ends(inner);
        assert!(begin >= whole.0 && end <= whole.1 + 1.0, "{inner} outside of {bench}");
    }
    assert!(of("action").all(|event| event["args"]["ran"] == true));
    build(&project, "--trace trace.json");
    let events = self::events(&project, "trace.json");
    assert!(events.iter().filter(|event| event["ph"] == "i").count() > 30);
    assert!(events.iter().all(|event| event["cat"] != "action"));
}

#[test]
fn a_trace_that_cannot_be_written_stops_the_build_before_anything_runs() {
    let project = machine(1);
    let ran = project.run(&mut on(&project, &project, "build --trace kernels")).exits(2).runs("");
    assert_eq!(
        ran.stderr,
        "error: cannot write the trace to `[ROOT]/kernels`: it is no file\nhint: name a file in a folder that can be written\n"
    );
    assert_eq!(ran.starts, 0);
}

#[test]
fn an_interrupted_build_leaves_a_trace_of_what_ran() {
    let project = machine(1);
    project.kernel("gelu", "v2_tiling", "HANG");
    let child = spawn(&mut on(&project, &project, "build --trace trace.json"));
    project.until_logged("pid ");
    signal(&child, Signal::SIGINT);
    project.wait(child).exits(130);
    let events = events(&project, "trace.json");
    let stopped =
        events.iter().find(|event| event["args"]["target"] == "gelu/v2_tiling:check" && event["ph"] == "X").unwrap();
    assert_eq!(stopped["args"]["outcome"], "interrupted");
}

#[test]
fn what_is_published_of_a_device_is_drawn() {
    let project = machine(1);
    build(&project, "");
    project.run(&mut on(&project, &project, "publish")).exits(0);
    let drawn = project.run(&mut on(&project, &project, "picture nvidia-h200")).exits(0).stdout;
    for word in ["<svg", "NVIDIA H200, torch 2.11.0, triton 3.6.0", "softmax", "gelu", "relu", "v1_baseline", "small"] {
        assert!(drawn.contains(word), "{word}: {drawn}");
    }
    project.run(&mut on(&project, &project, "picture nvidia-h200 --out speedups.svg")).exits(0);
    assert_eq!(project.read("speedups.svg"), drawn);
    project
        .run(&mut on(&project, &project, "picture nvidia-h200 --out logs"))
        .exits(2)
        .says("cannot write the picture to `logs`: it is no file");
}
