//! A machine in which time passes as actions take it, driven by the dispatcher.
//!
//! It does not know what a schedule should be, but what must hold at each moment of any.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use t2t_model::action::{Action, Dependency, Identity, Lane, Need, Phase, Target};

use crate::dispatcher::{Beginning, Command, Dispatcher, Event, Place, Ticket};
use crate::graph::{Graph, Index};

/// An action of the simulation, by its name what the others know it by.
#[derive(Debug, Clone)]
pub(super) struct Made {
    pub(super) target: Target,
    pub(super) lane: Lane,
    pub(super) cost: Duration,
    pub(super) after: Vec<Target>,
}

impl Made {
    pub(super) fn new(target: Target, lane: Lane, seconds: f64, after: &[&Target]) -> Self {
        let after = after.iter().map(|target| (*target).clone()).collect();
        Self { target, lane, cost: Duration::from_secs_f64(seconds), after }
    }
}

/// Returns the graph of these actions.
pub(super) fn graph(made: &[Made]) -> Graph {
    let action = |made: &Made| Action {
        identity: Identity { target: made.target.clone(), device: None },
        lane: made.lane,
        facts: BTreeMap::new(),
        sources: BTreeMap::new(),
        generated: None,
        dependencies: made
            .after
            .iter()
            .map(|on| Dependency { on: on.clone(), need: Need::Settle, reads: &[] })
            .collect(),
        deadline: Duration::ZERO,
        judging: None,
    };
    Graph::seal(made.iter().map(action).collect()).unwrap()
}

/// Makes the actions of ops with these costs: a baseline, and four variants with check, tune and bench.
pub(super) fn actions(costs: &[f64]) -> Vec<Made> {
    let mut made = Vec::new();
    for (op, cost) in costs.iter().enumerate() {
        let op = format!("op{op}");
        made.push(Made::new(Target::of_op(&op, Phase::Baseline), Lane::Device, cost * 0.2, &[]));
        for variant in ["v1", "v2", "v3", "v4"] {
            let target = |phase| Target::of_variant(&op, variant, phase);
            let (check, tune) = (target(Phase::Check), target(Phase::Tune));
            made.push(Made::new(target(Phase::Bench), Lane::Device, cost * 0.15, &[&tune]));
            made.push(Made::new(tune, Lane::Device, cost * 0.02, &[&check]));
            made.push(Made::new(check, Lane::Device, cost * 0.03, &[]));
        }
    }
    // Everything needs what is declared before it.
    made.sort_by_key(|made| made.target.phase == Phase::Bench);
    made.sort_by_key(|made| made.target.op.clone());
    made
}

/// What the simulation ran, and when.
#[derive(Debug, Default)]
pub(super) struct Ran {
    /// When the last action ended.
    pub(super) wall: Duration,
    /// By action: where it ran, from when to when.
    pub(super) spans: BTreeMap<Index, (Place, Duration, Duration)>,
    /// In the order in which they began.
    pub(super) order: Vec<Index>,
    /// For which baselines children got ready.
    pub(super) prepared: Vec<Index>,
}

/// A machine: CPU slots, devices, and how builds on it are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Machine {
    pub(super) jobs: usize,
    pub(super) devices: usize,
    pub(super) any_device: bool,
}

/// Returns the beginning of a build of the wanted part of a graph.
pub(super) fn beginning<'a>(graph: &'a Graph, wanted: &'a [bool], any_device: bool) -> Beginning<'a> {
    Beginning {
        graph,
        wanted,
        running: &[],
        authors: 1,
        any_device,
        prewarms: true,
        is_followed: false,
        memory: 80 << 30,
        is_unknown: &|_| true,
    }
}

/// Runs the actions and checks what must hold at each moment.
pub(super) fn simulate(made: &[Made], machine: Machine) -> Ran {
    let graph = graph(made);
    let wanted = vec![true; graph.count()];
    let mut dispatcher = Dispatcher::new(machine.jobs, machine.devices);
    dispatcher.begin(&beginning(&graph, &wanted, machine.any_device));
    for index in graph.indices().filter(|index| graph.action(*index).lane == Lane::Device) {
        dispatcher.handle(Event::Costs(index, made[index.number()].cost));
    }
    let (mut ran, mut now) = (Ran::default(), Duration::ZERO);
    let (mut told, mut settled) = (BTreeSet::new(), BTreeSet::new());
    let mut running: BTreeMap<Ticket, (Index, Duration)> = BTreeMap::new();
    loop {
        for index in graph.indices() {
            let is_ready = graph.dependencies(index).iter().all(|(source, _)| settled.contains(source));
            if is_ready && told.insert(index) {
                let Action { lane, identity, .. } = graph.action(index);
                dispatcher.handle(Event::Ready { index, lane: *lane, phase: identity.target.phase });
            }
        }
        for command in dispatcher.handle(Event::Turn { now }) {
            match command {
                Command::Start(start) => {
                    let until = now + made[start.index.number()].cost;
                    assert!(told.contains(&start.index), "it was not ready");
                    assert!(ran.spans.insert(start.index, (start.slot.place, now, until)).is_none(), "it began twice");
                    assert!(
                        running.insert(start.slot.ticket, (start.index, until)).is_none(),
                        "a slot was given twice"
                    );
                    ran.order.push(start.index);
                }
                Command::PrepareBaseline(index, device) => {
                    assert!(device < machine.devices);
                    ran.prepared.push(index);
                    dispatcher.handle(Event::Asked);
                }
                other => panic!("{other:?} is no answer to a turn"),
            }
        }
        assert_slots(&graph, &running, &ran, machine);
        let Some(next) = running.values().map(|(_, until)| *until).min() else { break };
        now = next;
        let ended: Vec<Ticket> =
            running.iter().filter(|(_, (_, until))| *until <= now).map(|(ticket, _)| *ticket).collect();
        for ticket in ended {
            let (index, _) = running.remove(&ticket).unwrap();
            settled.insert(index);
            dispatcher.handle(Event::Ended(ticket));
            dispatcher.handle(Event::Settled(index));
        }
    }
    assert_eq!(settled.len(), graph.count(), "not all ran");
    ran.wall = now;
    ran
}

/// Checks that no slot is overfull.
fn assert_slots(graph: &Graph, running: &BTreeMap<Ticket, (Index, Duration)>, ran: &Ran, machine: Machine) {
    let of = |lane| running.values().filter(|(index, _)| graph.action(*index).lane == lane).collect::<Vec<_>>();
    let devices: Vec<Place> = of(Lane::Device).iter().map(|(index, _)| ran.spans[index].0).collect();
    for (place, device) in devices.iter().enumerate() {
        assert!(matches!(device, Place::Device(number) if *number < machine.devices));
        assert!(!devices[..place].contains(device), "a device has two actions");
    }
    let (shared, whole) = (of(Lane::Cpu).len(), of(Lane::WholeCpu).len());
    assert!(shared <= machine.jobs.max(1), "more run than there are slots");
    assert!(whole == 0 || (whole == 1 && shared == 0), "a measurement on the host shares it");
}
