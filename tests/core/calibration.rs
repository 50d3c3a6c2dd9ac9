//! The calibration in the graph: one a device model, wanted with the logs that show it, and by name.

use t2t_model::action::{Action, DeviceClass, Lane, Need, Phase, Target};
use t2t_plan::graph::Graph;
use t2t_plan::graph::expand::expand;
use t2t_plan::graph::pick::{Force, Selection, Unknown, pick};
use t2t_spec::Spec;

use crate::inventory::inventory;

const OPS: &str = "version: 1
defaults: {variants: [v1, v2], bench: {sizes: {small: [16, 16]}}}
ops:
  softmax: {torch: softmax, inputs: {input: [M, N]}, kwargs: {dim: -1}}
  gelu: {torch: gelu, inputs: {input: [M, N]}}
";

fn graph(class: DeviceClass) -> Graph {
    let spec = Spec::parse("ops.yaml", OPS.as_bytes(), None).unwrap();
    Graph::seal(expand(&spec, &inventory(&spec, class, ""))).unwrap()
}

fn on_a_device() -> Graph {
    graph(DeviceClass::Cuda("nvidia-h200".to_owned()))
}

fn wanted(graph: &Graph, target: &str) -> Result<Vec<String>, Unknown> {
    let selection = Selection { targets: vec![target.to_owned()], ..Selection::default() };
    let wanted = pick(graph, &selection, Force::Stale)?.wanted;
    let chosen = graph.indices().filter(|index| wanted[index.number()]);
    Ok(chosen.map(|index| graph.action(index).target().to_string()).collect())
}

#[test]
fn a_device_is_calibrated_once_and_first_whatever_ops_there_are() {
    let graph = on_a_device();
    let is_calibration = |action: &&Action| action.target().phase == Phase::Calibrate;
    let actions: Vec<&Action> = graph.indices().map(|index| graph.action(index)).collect();
    assert_eq!(actions.iter().copied().filter(is_calibration).count(), 1);
    assert_eq!((actions[0].target().to_string().as_str(), actions[0].lane), ("calibrate", Lane::Device));
    assert_eq!(actions[0].identity.to_string(), "calibrate on nvidia-h200");
    // An op has analyze, baseline, select and log; a variant compile, check, tune and bench.
    assert_eq!(graph.count(), 1 + 2 * (4 + 2 * 4) + 1);
}

#[test]
fn an_interpreter_is_not_calibrated_and_says_so_to_who_asks() {
    let graph = graph(DeviceClass::Interpreter);
    assert_eq!(graph.count(), 2 * (3 + 2 * 3) + 1);
    let unknown = wanted(&graph, "calibrate").unwrap_err();
    assert_eq!(unknown.message, "this build has no action `calibrate`");
    assert_eq!(unknown.hint, "it measures a CUDA device; `t2t graph` lists all actions");
}

#[test]
fn it_is_wanted_by_name_and_with_the_logs_that_show_it() {
    let graph = on_a_device();
    assert_eq!(wanted(&graph, "calibrate").unwrap(), ["calibrate"]);
    assert!(wanted(&graph, "gelu:log").unwrap().contains(&"calibrate".to_owned()));
    assert!(wanted(&graph, "gelu").unwrap().contains(&"calibrate".to_owned()));
    assert!(wanted(&graph, "summary").unwrap().contains(&"calibrate".to_owned()));
    assert!(!wanted(&graph, "gelu/v1:bench").unwrap().contains(&"calibrate".to_owned()));
    let log = graph.action(graph.find(&Target::of_op("gelu", Phase::Log)).unwrap());
    let edge = log.dependencies.iter().find(|dependency| dependency.on == Target::calibrate()).unwrap();
    assert_eq!((edge.need, edge.reads), (Need::Settle, ["calibration"].as_slice()));
}

#[test]
fn its_name_is_read_as_it_is_written() {
    let written = Target::calibrate().to_string();
    assert_eq!((written.as_str(), Target::try_from(written.clone())), ("calibrate", Ok(Target::calibrate())));
    assert_eq!(Target::try_from("summary".to_owned()), Ok(Target::summary()));
}
