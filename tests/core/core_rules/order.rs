//! Graphs that are none, and the order in which actions are handed out.
//!
//! It does not know what is stale.

use std::collections::BTreeMap;

use t2t_model::history::History;
use t2t_model::record::{Outcome, Record, Seen};
use t2t_plan::graph::{Graph, Unsealed, Wanted};
use t2t_plan::schedule::{Schedule, Settled, Step};

use crate::core_rules::play::{action, pass, settle, target};

#[test]
fn edges_are_listed_in_declared_order() {
    let needs = || vec![pass("b"), pass("a")];
    let actions = [("a", Vec::new()), ("b", Vec::new()), ("c", needs()), ("d", needs())];
    let graph = Graph::seal(actions.map(|(name, needs)| action(name, needs)).into()).unwrap();
    let named = |index| graph.action(index).target().op.as_str();
    let find = |name| graph.find(&target(name)).unwrap();
    assert_eq!(graph.dependencies(find("d")).into_iter().map(|(on, _)| named(on)).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(graph.dependents(find("a")).into_iter().map(named).collect::<Vec<_>>(), ["c", "d"]);
}

#[test]
fn what_is_ready_is_handed_out_in_declared_order_before_anything_finishes() {
    let lanes = ["left", "middle", "right"].map(|name| action(name, vec![pass("top")]));
    let bottom = action("bottom", ["right", "left"].map(pass).to_vec());
    let [left, middle, right] = lanes;
    let graph = Graph::seal(vec![bottom, right, middle, left, action("top", Vec::new())]).unwrap();
    let mut schedule = Schedule::new(&graph, everything(&graph));
    let mut waves = Vec::new();
    loop {
        let wave = handed_out(&graph, &mut schedule);
        if wave.is_empty() {
            break;
        }
        for name in &wave {
            schedule.finish(graph.find(&target(name)).unwrap(), Settled::Ran(record(&graph, name).into()));
        }
        waves.push(wave.join(" "));
    }
    assert_eq!(waves, ["top", "right middle left", "bottom"]);
}

#[test]
fn a_name_that_stands_twice_makes_no_graph() {
    let twice = Graph::seal(vec![action("a", Vec::new()), action("a", Vec::new())]);
    assert_eq!(twice.unwrap_err(), Unsealed::Twice(target("a")));
}

#[test]
fn an_edge_that_leads_nowhere_makes_no_graph() {
    let dangling = Graph::seal(vec![action("a", vec![settle("b")])]).unwrap_err();
    assert_eq!(dangling, Unsealed::Dangling { from: target("a"), on: target("b") });
    assert_eq!(dangling.to_string(), "`a:check` needs `b:check`, and there is no such action");
}

#[test]
fn a_cycle_makes_no_graph() {
    let cycle = Graph::seal(vec![action("a", vec![pass("b")]), action("b", vec![pass("a")])]).unwrap_err();
    assert!(matches!(cycle, Unsealed::Cycle(_)), "{cycle:?}");
    let alone = Graph::seal(vec![action("a", vec![settle("a")])]).unwrap_err();
    assert_eq!(alone, Unsealed::Cycle(target("a")));
}

#[test]
fn a_chain_of_ten_thousand_settles_without_recursion() {
    let name = |number: usize| format!("link{number}");
    let needs = |number: usize| if number == 0 { Vec::new() } else { vec![pass(&name(number - 1))] };
    let graph = Graph::seal((0..10_000).map(|number| action(&name(number), needs(number))).collect()).unwrap();
    let mut schedule = Schedule::new(&graph, everything(&graph));
    let first = graph.find(&target("link0")).unwrap();
    assert_eq!(handed_out(&graph, &mut schedule), ["link0"]);
    schedule.finish(first, Settled::Lost("the power went".to_owned()));
    assert!(handed_out(&graph, &mut schedule).is_empty());
    let skipped = graph.indices().filter(|index| matches!(schedule.settled(*index), Some(Settled::Skipped(_))));
    assert_eq!(skipped.count(), 9_999);
}

fn everything(graph: &Graph) -> Wanted {
    Wanted { wanted: vec![true; graph.count()], forced: vec![false; graph.count()] }
}

/// Returns the names of what is to run now, where nothing is known from before.
fn handed_out(graph: &Graph, schedule: &mut Schedule<'_>) -> Vec<String> {
    let history = History::default();
    let steps = std::iter::from_fn(|| schedule.next_step(&history, &|_, _| Seen::Absent));
    let running = steps.filter_map(|step| match step {
        Step::Run { index, .. } => Some(graph.action(index).target().op.clone()),
        Step::Settled(_) | Step::Recall { .. } | Step::Read { .. } => None,
    });
    running.collect()
}

fn record(graph: &Graph, name: &str) -> Record {
    let action = graph.action(graph.find(&target(name)).unwrap());
    Record {
        identity: action.identity.clone(),
        key: t2t_model::digest::Digest::of(name.as_bytes()),
        outcome: Outcome::Passed,
        outputs: BTreeMap::new(),
        discovered: BTreeMap::new(),
        deadline_ms: 0,
        wall_ms: 0,
        device_ms: 0,
        circumstances: BTreeMap::new(),
    }
}
