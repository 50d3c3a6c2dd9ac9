//! Which nodes of a cluster fit a build: those that have devices of its class and nothing else, one driver, and the t2t that is here.
//!
//! It does not know whether their torch and Triton fit: a node says so once it is sent an action.

use std::collections::BTreeMap;

use t2t_host::cluster::Node;
use t2t_host::device::Models;
use t2t_host::facts::Facts;
use t2t_model::action::DeviceClass;
use t2t_model::event::Event;
use t2t_plan::graph::expand::Device;

use crate::engine::{CORES, Seat, SeatKind};

/// What fits.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Fit {
    /// What the nodes that fit lend, node by node: devices, then cores, first those of nodes without devices.
    pub(super) seats: Vec<Seat>,
    /// Their driver; None where no driver counts.
    pub(super) driver: Option<String>,
    /// The nodes that could lend something and do not fit.
    pub(super) unused: Vec<Unused>,
}

/// A node that is not used.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unused {
    /// Its name.
    pub(super) node: String,
    /// Why, in words.
    pub(super) why: String,
    /// Whether there is nothing wrong with it: its devices are others.
    is_sound: bool,
}

impl Unused {
    /// Says so.
    pub(super) fn event(&self) -> Event {
        let text = format!("node {} is not used: {}", self.node, self.why);
        if self.is_sound { Event::Note { text } } else { Event::Warning { text } }
    }
}

/// The label by which the owner of a node says which model of device it lends: `ray start --labels t2t.device=nvidia-h200`.
const MODEL: &str = "t2t.device";

/// How many cores a node keeps for each of its devices, beside those that it lends.
const KEPT: usize = 2;

/// Returns which `nodes` fit a build for `device`, and what they lend: devices, and where `cores` are asked for, those that they have beside. Where that is not here, `is_elsewhere`, its driver is what most nodes have; of several that as many have, the greatest.
pub(super) fn fit(nodes: &[Node], device: &Device, is_elsewhere: bool, models: &Models, cores: bool) -> Fit {
    let mut fit = Fit::default();
    let mut places = Vec::new();
    let mut lenders: Vec<(&Node, Option<String>)> = Vec::new();
    // Those that came after the others were asked are used by the next build.
    let asked = nodes.iter().filter(|node| (cores || node.gpus > 0) && (node.facts.is_some() || node.fault.is_some()));
    for node in asked {
        if node.gpus == 0 {
            match facts_of(node) {
                Ok(_) => places.extend(places_of(node)),
                Err(why) => fit.unused.push(Unused { node: node.name.clone(), why, is_sound: false }),
            }
            continue;
        }
        match driver_of(node, device, models) {
            Ok(driver) => lenders.push((node, driver)),
            Err((why, is_sound)) => fit.unused.push(Unused { node: node.name.clone(), why, is_sound }),
        }
    }
    fit.driver = if is_elsewhere { most_frequent(&lenders) } else { device.driver.clone() };
    for (node, driver) in lenders {
        if driver == fit.driver {
            let seat = |number| Seat {
                node: node.id.clone(),
                lane: format!("{}/{number}", node.name),
                kind: SeatKind::Device,
            };
            fit.seats.extend((0..node.gpus).map(seat));
            places.extend(places_of(node).filter(|_| cores));
        } else {
            let [theirs, ours] = [driver, fit.driver.clone()].map(|driver| driver.unwrap_or_else(|| "none".to_owned()));
            let who = if is_elsewhere { "more nodes have" } else { "this machine has" };
            let why = format!("its driver is {theirs}, and {who} {ours}");
            fit.unused.push(Unused { node: node.name.clone(), why, is_sound: false });
        }
    }
    fit.seats.append(&mut places);
    fit
}

/// Returns the places on the cores that a node lends.
fn places_of(node: &Node) -> impl Iterator<Item = Seat> {
    let count = node.cpus.saturating_sub(KEPT * node.gpus) / CORES;
    let place =
        |number| Seat { node: node.id.clone(), lane: format!("{}/cpu{number}", node.name), kind: SeatKind::Cores };
    (0..count).map(place)
}

/// Returns what a node tells of itself. Fails with why it does not fit.
fn facts_of(node: &Node) -> Result<Facts, String> {
    if let Some(fault) = &node.fault {
        return Err(fault.clone());
    }
    let facts = node.facts.as_ref().and_then(Facts::read).ok_or("its t2t is another version")?;
    let version = env!("CARGO_PKG_VERSION");
    if facts.t2t != version {
        return Err(format!("its t2t is version {}, and this is {version}", facts.t2t));
    }
    Ok(facts)
}

/// Returns the driver of a node whose devices are the build's; None where no driver counts. Fails with why the node does not fit, and whether there is nothing wrong with it.
fn driver_of(node: &Node, device: &Device, models: &Models) -> Result<Option<String>, (String, bool)> {
    let facts = facts_of(node).map_err(|why| (why, false))?;
    let DeviceClass::Cuda(model) = &device.class else { return Ok(None) };
    if let Some(label) = node.labels.get(MODEL).filter(|label| *label != model) {
        return Err((format!("its label is `{MODEL}={label}`"), true));
    }
    let classes = facts.classes(models);
    if classes.len() != 1 || !classes.contains_key(model) {
        return Err((has(&classes), true));
    }
    if node.gpus > facts.devices.len() {
        return Err((format!("it lends {} devices, and {}", node.gpus, has(&classes)), false));
    }
    Ok(facts.devices.into_iter().next().map(|told| told.driver))
}

/// Says what devices a node has: `it has 2 × nvidia-a100`.
fn has(classes: &BTreeMap<String, usize>) -> String {
    let each: Vec<String> = classes.iter().map(|(class, number)| format!("{number} × {class}")).collect();
    if each.is_empty() { "it has no CUDA device".to_owned() } else { format!("it has {}", each.join(" and ")) }
}

/// Returns the driver that most nodes have; of several that as many have, the greatest.
fn most_frequent(lenders: &[(&Node, Option<String>)]) -> Option<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for driver in lenders.iter().filter_map(|(_, driver)| driver.as_deref()) {
        *counts.entry(driver).or_default() += 1;
    }
    counts
        .into_iter()
        .max_by_key(|(driver, count)| (*count, numbers(driver), *driver))
        .map(|(driver, _)| driver.to_owned())
}

/// Returns the numbers of a version.
fn numbers(version: &str) -> Vec<u64> {
    version.split('.').map(|part| part.parse().unwrap_or(0)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn models() -> Models {
        Models::read(br#"{"nvidia-h200": {"name": "NVIDIA H200"}, "nvidia-l4": {"name": "NVIDIA L4"}}"#).unwrap()
    }

    fn node(name: &str, gpus: usize, facts: Value) -> Node {
        let more = json!({"id": format!("id-{name}"), "name": name, "cpus": 1, "gpus": gpus, "labels": {}});
        let node: Node = serde_json::from_value(more).unwrap();
        Node { facts: Some(facts), ..node }
    }

    fn facts(devices: &[(&str, &str)]) -> Value {
        let told = |(name, driver): &(&str, &str)| json!({"name": name, "class": "as its t2t says", "driver": driver});
        json!({"version": 1, "t2t": env!("CARGO_PKG_VERSION"), "devices": devices.iter().map(told).collect::<Vec<_>>()})
    }

    fn h200(driver: Option<&str>) -> Device {
        let class = DeviceClass::Cuda("nvidia-h200".to_owned());
        Device { class, architecture: "sm_90".to_owned(), driver: driver.map(str::to_owned) }
    }

    fn lanes(fit: &Fit) -> Vec<&str> {
        fit.seats.iter().map(|seat| seat.lane.as_str()).collect()
    }

    fn reasons(fit: &Fit) -> Vec<String> {
        fit.unused.iter().map(|unused| format!("{}: {}", unused.node, unused.why)).collect()
    }

    #[test]
    fn the_label_of_a_node_keeps_builds_for_other_models_from_it() {
        let labelled = |name: &str, model: &str| Node {
            labels: BTreeMap::from([(MODEL.to_owned(), model.to_owned())]),
            ..node(name, 1, facts(&[("NVIDIA H200", "2")]))
        };
        let nodes = [labelled("a", "nvidia-h200"), labelled("b", "nvidia-l4")];
        let found = fit(&nodes, &h200(None), true, &models(), false);
        assert_eq!(
            (lanes(&found), reasons(&found)),
            (vec!["a/0"], vec!["b: its label is `t2t.device=nvidia-l4`".to_owned()])
        );
        let interpreter = Device { class: DeviceClass::Interpreter, ..h200(None) };
        assert_eq!(lanes(&fit(&nodes, &interpreter, false, &models(), false)), ["a/0", "b/0"]);
    }

    #[test]
    fn only_nodes_with_devices_of_the_class_and_nothing_else_fit() {
        let h200s = facts(&[("NVIDIA H200", "2"), ("NVIDIA H200", "2")]);
        let nodes = [
            node("a", 2, h200s.clone()),
            node("b", 1, facts(&[("NVIDIA L4", "2")])),
            node("c", 2, facts(&[("NVIDIA H200", "2"), ("NVIDIA L4", "2")])),
            node("d", 1, facts(&[])),
            node("e", 3, h200s.clone()),
            node("f", 0, h200s),
        ];
        let found = fit(&nodes, &h200(None), true, &models(), false);
        assert_eq!(lanes(&found), ["a/0", "a/1"]);
        let why = [
            "b: it has 1 × nvidia-l4",
            "c: it has 1 × nvidia-h200 and 1 × nvidia-l4",
            "d: it has no CUDA device",
            "e: it lends 3 devices, and it has 2 × nvidia-h200",
        ];
        assert_eq!(reasons(&found), why);
        assert!(matches!(found.unused[0].event(), Event::Note { .. }));
        assert!(matches!(found.unused[3].event(), Event::Warning { .. }));
    }

    #[test]
    fn the_driver_is_that_of_most_nodes_the_greatest_of_as_many_or_this_machines() {
        let of = |drivers: &[&str], own: Option<&str>| {
            let nodes: Vec<Node> = drivers
                .iter()
                .enumerate()
                .map(|(number, driver)| node(&number.to_string(), 1, facts(&[("NVIDIA H200", driver)])))
                .collect();
            fit(&nodes, &h200(own), own.is_none(), &models(), false)
        };
        let most = of(&["580.9", "580.10", "570.1", "580.9"], None);
        assert_eq!((most.driver.as_deref(), lanes(&most)), (Some("580.9"), vec!["0/0", "3/0"]));
        assert_eq!(reasons(&most)[0], "1: its driver is 580.10, and more nodes have 580.9");
        assert_eq!(of(&["580.9", "580.10"], None).driver.as_deref(), Some("580.10"));
        let own = of(&["580.9", "580.10"], Some("580.9"));
        assert_eq!((own.driver.as_deref(), lanes(&own)), (Some("580.9"), vec!["0/0"]));
        assert_eq!(reasons(&own), ["1: its driver is 580.10, and this machine has 580.9"]);
    }

    #[test]
    fn a_node_that_tells_nothing_or_has_another_t2t_does_not_fit() {
        let mut faulty = node("a", 1, json!(null));
        (faulty.facts, faulty.fault) = (None, Some("there is no t2t on this node".to_owned()));
        let mut late = node("late", 1, json!(null));
        late.facts = None;
        let nodes = [
            faulty,
            late,
            node("b", 1, json!({"version": 2})),
            node("c", 1, json!({"version": 1, "t2t": "0.0.1", "devices": []})),
        ];
        let interpreter = Device { class: DeviceClass::Interpreter, architecture: String::new(), driver: None };
        let found = fit(&nodes, &interpreter, false, &models(), false);
        let why = [
            "a: there is no t2t on this node".to_owned(),
            "b: its t2t is another version".to_owned(),
            format!("c: its t2t is version 0.0.1, and this is {}", env!("CARGO_PKG_VERSION")),
        ];
        assert_eq!((lanes(&found), reasons(&found)), (vec![], why.to_vec()));
    }

    #[test]
    fn kernels_of_the_interpreter_run_on_any_node() {
        let interpreter = Device { class: DeviceClass::Interpreter, architecture: String::new(), driver: None };
        let nodes = [node("a", 2, facts(&[])), node("b", 1, facts(&[("NVIDIA L4", "2")]))];
        let found = fit(&nodes, &interpreter, true, &models(), false);
        assert_eq!((lanes(&found), found.driver.as_deref()), (vec!["a/0", "a/1", "b/0"], None));
    }

    #[test]
    fn nodes_lend_the_cores_that_they_do_not_keep_for_their_devices_and_those_without_devices_all() {
        let with = |cpus, node: Node| Node { cpus, ..node };
        let h200s = facts(&[("NVIDIA H200", "2"), ("NVIDIA H200", "2")]);
        let old = json!({"version": 1, "t2t": "0.0.1", "devices": []});
        let nodes = [
            with(9, node("a", 2, h200s)),
            with(5, node("b", 0, facts(&[]))),
            with(1, node("c", 0, facts(&[]))),
            with(8, node("d", 0, old)),
            with(8, node("e", 1, facts(&[("NVIDIA L4", "2")]))),
        ];
        let of = |cores| fit(&nodes, &h200(None), true, &models(), cores);
        assert_eq!(lanes(&of(true)), ["a/0", "a/1", "b/cpu0", "b/cpu1", "a/cpu0", "a/cpu1"]);
        let version = env!("CARGO_PKG_VERSION");
        let d = format!("d: its t2t is version 0.0.1, and this is {version}");
        assert_eq!(reasons(&of(true)), [d, "e: it has 1 × nvidia-l4".to_owned()]);
        assert_eq!((lanes(&of(false)), reasons(&of(false)).len()), (vec!["a/0", "a/1"], 1));
    }
}
