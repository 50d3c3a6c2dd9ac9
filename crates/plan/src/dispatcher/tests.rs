//! Schedules on a machine in which time passes as actions take it: some that are known, and some that are drawn.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;
use t2t_model::action::{Lane, Phase, Target};
use t2t_protocol::ServerKind;

use super::*;
use crate::functions::{BASELINE, BENCH, CANDIDATE, JUDGE, SAMPLE};
use crate::graph::Index;

mod machine;

use self::machine::{Machine, Made, Ran, actions, beginning, graph, simulate};

/// One op of 120 s, one of 60, four of 40, in an order that is not that of their costs.
const COSTS: [f64; 6] = [40.0, 40.0, 120.0, 40.0, 60.0, 40.0];

/// By op: on how many devices it was measured.
fn homes(made: &[Made], ran: &Ran) -> Vec<usize> {
    let mut homes: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    for (index, (place, ..)) in &ran.spans {
        let Target { op, phase, .. } = &made[index.number()].target;
        if let (true, Place::Device(device)) = (measures(*phase), place) {
            homes.entry(op).or_default().insert(*device);
        }
    }
    homes.into_values().map(|devices| devices.len()).collect()
}

fn seconds(made: &[Made], devices: usize, any_device: bool) -> (f64, Vec<usize>) {
    let ran = simulate(made, Machine { jobs: 4, devices, any_device });
    (ran.wall.as_secs_f64(), homes(made, &ran))
}

#[test]
fn two_devices_end_within_a_tenth_of_half_the_work_and_no_op_is_measured_on_both() {
    let total: f64 = COSTS.iter().sum();
    let (wall, homes) = seconds(&actions(&COSTS), 2, false);
    assert!(wall <= total / 2.0 * 1.1, "{wall} of {total}");
    assert_eq!(homes, [1; 6]);
}

#[test]
fn an_op_that_is_most_of_the_work_bounds_the_build_unless_any_device_will_do() {
    let costs = [30.0, 30.0, 300.0, 30.0];
    let (total, measured): (f64, f64) = (costs.iter().sum(), 300.0 * 0.88);
    let (bound, homes) = seconds(&actions(&costs), 2, false);
    assert_eq!(homes, [1; 4]);
    assert!(bound >= measured && bound <= measured * 1.15, "{bound} for {measured}");
    let (free, homes) = seconds(&actions(&costs), 2, true);
    assert!(free <= total / 2.0 * 1.1, "{free} of {total}");
    assert!(homes.contains(&2));
}

#[test]
fn one_device_is_never_idle_and_takes_checks_then_what_was_declared_first() {
    let made = actions(&COSTS);
    let ran = simulate(&made, Machine { jobs: 4, devices: 1, any_device: false });
    assert!((ran.wall.as_secs_f64() - COSTS.iter().sum::<f64>()).abs() < 1e-6);
    let phases: Vec<Phase> = ran.order.iter().map(|index| made[index.number()].target.phase).collect();
    let (checks, rest) = phases.split_at(COSTS.len() * 4);
    assert!(checks.iter().all(|phase| *phase == Phase::Check) && !rest.contains(&Phase::Check), "{phases:?}");
    assert_eq!(made[ran.order[checks.len()].number()].target.op, "op0");
}

#[test]
fn an_op_is_measured_where_its_figures_stand() {
    let made = actions(&[10.0, 90.0]);
    let graph = graph(&made);
    let wanted = vec![true; graph.count()];
    let mut dispatcher = Dispatcher::new(4, 2);
    dispatcher.begin(&beginning(&graph, &wanted, false));
    let bench = graph.find(&Target::of_variant("op1", "v1", Phase::Bench)).unwrap();
    dispatcher.handle(Event::Ready { index: bench, lane: Lane::Device, phase: Phase::Bench });
    assert_eq!(dispatcher.unbound(), [bench]);
    dispatcher.handle(Event::Measured(bench, 1));
    assert_eq!(dispatcher.unbound(), []);
    assert_eq!(places(&dispatcher.handle(Event::Turn { now: Duration::ZERO })), [(bench, Place::Device(1))]);
}

/// Returns what starts, and where.
fn places(commands: &[Command]) -> Vec<(Index, Place)> {
    let start = |command: &Command| match command {
        Command::Start(start) => Some((start.index, start.slot.place)),
        _ => None,
    };
    commands.iter().filter_map(start).collect()
}

/// A server of the device lane.
const SERVER: Server = Server { kind: ServerKind::Device, serial: 1 };

#[test]
fn an_action_that_is_barred_from_a_device_and_its_op_go_to_another() {
    let graph = graph(&actions(&[1.0]));
    let wanted = vec![true; graph.count()];
    let mut dispatcher = Dispatcher::new(1, 2);
    dispatcher.begin(&beginning(&graph, &wanted, false));
    let find = |phase| graph.find(&Target::of_variant("op0", "v1", phase)).unwrap();
    let (tune, bench) = (find(Phase::Tune), find(Phase::Bench));
    let start = |dispatcher: &mut Dispatcher, index, phase| {
        dispatcher.handle(Event::Ready { index, lane: Lane::Device, phase });
        places(&dispatcher.handle(Event::Turn { now: Duration::ZERO }))
    };
    assert_eq!(start(&mut dispatcher, tune, Phase::Tune), [(tune, Place::Device(0))]);
    dispatcher.handle(Event::Ended(1));
    dispatcher.handle(Event::Barred(tune, 0));
    assert_eq!(start(&mut dispatcher, tune, Phase::Tune), [(tune, Place::Device(1))]);
    // What else is measured of the op is measured there, too, though the first device is free.
    assert_eq!(start(&mut dispatcher, bench, Phase::Bench), []);
    dispatcher.handle(Event::Withdrawn(1));
    assert_eq!(places(&dispatcher.handle(Event::Turn { now: Duration::ZERO })), [(bench, Place::Device(0))]);
}

#[test]
fn what_goes_to_lent_cores_takes_no_slot_here_and_begins_nowhere_that_it_is_barred_from() {
    let graph = graph(&actions(&[1.0]));
    let wanted = vec![true; graph.count()];
    let mut dispatcher = Dispatcher::new(1, 1).lent(2);
    dispatcher.begin(&beginning(&graph, &wanted, false));
    let check = |variant| graph.find(&Target::of_variant("op0", variant, Phase::Check)).unwrap();
    let (first, second) = (check("v1"), check("v2"));
    let mut start = |index, before: &[Event<'_>]| {
        for event in before {
            dispatcher.handle(*event);
        }
        dispatcher.handle(Event::ReadyAway { index, phase: Phase::Check });
        places(&dispatcher.handle(Event::Turn { now: Duration::ZERO }))
    };
    assert_eq!(start(first, &[]), [(first, Place::Device(1))]);
    assert_eq!(start(second, &[]), [(second, Place::Device(2))]);
    let again = [Event::Ended(1), Event::Ended(2), Event::Barred(second, 1)];
    assert_eq!(start(second, &again), [(second, Place::Device(2))]);
    assert_eq!(start(second, &[Event::Ended(3), Event::Withdrawn(2)]), []);
    assert!(!dispatcher.has_used_device());
}

#[test]
fn what_measures_waits_for_children_that_get_ready_while_something_compiles_and_not_for_ever() {
    let compile = Target::of_variant("add", "v1", Phase::Compile);
    let made = [
        Made::new(compile.clone(), Lane::Cpu, 100.0, &[]),
        Made::new(Target::of_op("add", Phase::Baseline), Lane::Device, 1.0, &[]),
    ];
    let graph = graph(&made);
    let [compiles, baseline] = graph.indices().collect::<Vec<_>>().try_into().unwrap();
    // What ends the waiting: the server says that all are ready, the compile is over, time passes.
    for ending in 0..4 {
        let wanted = vec![true; graph.count()];
        let mut dispatcher = Dispatcher::new(4, 1);
        dispatcher.begin(&beginning(&graph, &wanted, false));
        let turn =
            |dispatcher: &mut Dispatcher, seconds| dispatcher.handle(Event::Turn { now: Duration::from_secs(seconds) });
        dispatcher.handle(Event::Ready { index: compiles, lane: Lane::Cpu, phase: Phase::Compile });
        dispatcher.handle(Event::Ready { index: baseline, lane: Lane::Device, phase: Phase::Baseline });
        let first = turn(&mut dispatcher, 100);
        assert!(first.contains(&Command::PrepareBaseline(baseline, 0)));
        assert_eq!(places(&first).iter().map(|(index, _)| *index).collect::<Vec<_>>(), [compiles]);
        let made = dispatcher.handle(Event::Wanted { server: SERVER, key: "GPU compiles add", most: 1 });
        assert_eq!(made, [Command::Prepare("GPU compiles add".to_owned(), 1)]);
        dispatcher.handle(Event::Asked);
        assert_eq!(turn(&mut dispatcher, 119), []);
        let ended = [None, Some(Event::Prepared(SERVER, 1)), Some(Event::Gone(SERVER)), Some(Event::Ended(1))][ending];
        ended.map(|event| dispatcher.handle(event));
        let at = if ended.is_none() { 120 } else { 119 };
        assert_eq!(places(&turn(&mut dispatcher, at)), [(baseline, Place::Device(0))], "{ending}");
        assert!(dispatcher.has_used_device());
    }
}

#[test]
fn a_build_that_follows_keeps_the_slots_of_what_runs_and_nothing_that_was_queued() {
    let made: Vec<Made> = ["a", "b"].map(|op| Made::new(Target::of_op(op, Phase::Analyze), Lane::Cpu, 1.0, &[])).into();
    let graph = graph(&made);
    let [first, second] = graph.indices().collect::<Vec<_>>().try_into().unwrap();
    let wanted = vec![true; 2];
    let mut dispatcher = Dispatcher::new(1, 0);
    let begin = |dispatcher: &mut Dispatcher, running: &[Ticket]| {
        dispatcher.begin(&Beginning { running, ..beginning(&graph, &wanted, false) })
    };
    let ready = |index| Event::Ready { index, lane: Lane::Cpu, phase: Phase::Analyze };
    let now = Event::Turn { now: Duration::ZERO };
    begin(&mut dispatcher, &[]);
    dispatcher.handle(ready(first));
    dispatcher.handle(ready(second));
    let Some(Command::Start(start)) = dispatcher.handle(now).pop() else { panic!("nothing began") };
    begin(&mut dispatcher, &[start.slot.ticket]);
    dispatcher.handle(ready(first));
    assert_eq!(dispatcher.handle(now), [], "the slot is taken");
    dispatcher.handle(Event::Ended(start.slot.ticket));
    assert_eq!(places(&dispatcher.handle(now)), [(first, Place::Cpu)]);
    begin(&mut dispatcher, &[]);
    dispatcher.handle(Event::Stopped);
    dispatcher.handle(ready(first));
    assert_eq!(dispatcher.handle(now), [], "nothing more is to begin");
}

#[test]
fn what_lacked_memory_is_called_again_without_the_children_that_wait() {
    let mut dispatcher = Dispatcher::new(1, 1);
    let wanted = Event::Wanted { server: SERVER, key: "GPU", most: 2 };
    assert_eq!(dispatcher.handle(wanted), [Command::Prepare("GPU".to_owned(), 2)]);
    assert_eq!(dispatcher.handle(wanted), []);
    assert_eq!(dispatcher.handle(Event::Lacked(ServerKind::Device, "GPU")), [Command::Dismiss]);
    assert_eq!(dispatcher.handle(wanted), [Command::Prepare("GPU".to_owned(), 2)]);
}

#[test]
fn children_get_ready_for_as_many_baselines_as_there_is_memory_and_half_the_slots() {
    let made: Vec<Made> = (0..9)
        .map(|op| Made::new(Target::of_op(&format!("op{op}"), Phase::Baseline), Lane::Device, 1.0, &[]))
        .collect();
    let prepared = |jobs, devices| simulate(&made, Machine { jobs, devices, any_device: false }).prepared.len();
    assert_eq!([1, 2, 4, 12, 40].map(|jobs| prepared(jobs, 1)), [0, 1, 2, 6, 6]);
    assert_eq!(prepared(8, 2), 4);
}

/// A graph with edges that lead back alone: what each action is, and after which others it comes.
fn schedules() -> impl Strategy<Value = (Vec<Made>, Machine)> {
    let phase = prop::sample::select(vec![
        (Phase::Analyze, Lane::Cpu),
        (Phase::Compile, Lane::Cpu),
        (Phase::Check, Lane::Cpu),
        (Phase::Check, Lane::Device),
        (Phase::Tune, Lane::Device),
        (Phase::Bench, Lane::Device),
        (Phase::Bench, Lane::WholeCpu),
    ]);
    let action = (phase, 0..4_usize, 0..30_u32, prop::collection::vec(any::<prop::sample::Index>(), 0..3));
    let machine = (0..9_usize, 0..4_usize, any::<bool>());
    (prop::collection::vec(action, 1..40), machine).prop_map(|(drawn, (jobs, devices, any_device))| {
        let mut made: Vec<Made> = Vec::new();
        for (number, ((phase, lane), op, seconds, after)) in drawn.into_iter().enumerate() {
            // Without a device nothing asks for one.
            let lane = if devices == 0 && lane == Lane::Device { Lane::Cpu } else { lane };
            let target = Target::of_variant(&format!("op{op}"), &format!("v{number}"), phase);
            // An analysis needs nothing of others: measurements may wait for all of them.
            let after: BTreeSet<Target> = after
                .iter()
                .filter(|_| number > 0 && phase != Phase::Analyze)
                .map(|one| made[one.index(number)].target.clone())
                .collect();
            let after: Vec<&Target> = after.iter().collect();
            let one = Made::new(target, lane, f64::from(seconds) / 10.0, &after);
            made.push(one);
        }
        (made, Machine { jobs, devices, any_device })
    })
}

/// What children are asked to do: which server, whose call, whether the one that serves it stays.
#[derive(Debug, Clone)]
enum Asks {
    Call { caller: usize, function: usize },
    Return(bool),
    Keep { key: usize, most: usize },
    Lack,
    Restart,
}

fn asks() -> impl Strategy<Value = Asks> {
    prop_oneof![
        4 => (0..3_usize, 0..5_usize).prop_map(|(caller, function)| Asks::Call { caller, function }),
        4 => any::<bool>().prop_map(Asks::Return),
        2 => (0..2_usize, 0..6_usize).prop_map(|(key, most)| Asks::Keep { key, most }),
        1 => Just(Asks::Lack),
        1 => Just(Asks::Restart),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// That every action runs once, in slots that exist, is checked by the simulation.
    #[test]
    fn whatever_is_ready_runs_once_and_no_op_is_measured_on_two_devices((made, machine) in schedules()) {
        let ran = simulate(&made, machine);
        prop_assert_eq!(ran.order.len(), made.len());
        if !machine.any_device {
            prop_assert!(homes(&made, &ran).iter().all(|devices| *devices == 1));
        }
    }

    /// The server does as it is told: it has as many children as the dispatcher counts, and never more of a key than whoever wanted the most of it.
    #[test]
    fn warm_children_are_never_more_than_there_may_be(asked in prop::collection::vec(asks(), 0..60)) {
        const FUNCTIONS: [&Function; 5] = [&CANDIDATE, &JUDGE, &BENCH, &SAMPLE, &BASELINE];
        const BOUND: usize = 6;
        let mut dispatcher = Dispatcher::new(4, 1);
        let mut server = SERVER;
        let mut children: BTreeMap<String, usize> = BTreeMap::new();
        let mut calls = Vec::new();
        let (mut ordered, mut id) = (0, 0);
        for ask in asked {
            id += 1;
            let commands = match ask {
                Asks::Call { caller, function } => {
                    let phase = [Phase::Check, Phase::Bench, Phase::Baseline][caller];
                    let caller = Caller {
                        op: "add",
                        phase,
                        device: Some("GPU"),
                        is_interpreted: false,
                        opens_files: false,
                        awaited: BOUND,
                    };
                    let (call, function) = (Call { server, id }, FUNCTIONS[function]);
                    let queues = function.queues;
                    // The child that the server hands over, where one waits, comes back if the request lets it stay.
                    let key = caller.key(function, queues);
                    let handed_over = key.filter(|key| children.get(key).is_some_and(|count| *count > 0));
                    if let Some(key) = &handed_over {
                        *children.get_mut(key).unwrap() -= 1;
                    }
                    calls.push((call, handed_over.filter(|_| function.may_stay)));
                    dispatcher.handle(Event::Called { call, caller, function, queues })
                }
                Asks::Return(would_stay) => {
                    let Some((call, lent)) = calls.pop() else { continue };
                    let stayed = lent.filter(|_| would_stay && call.server == server);
                    let has_stayed = stayed.is_some();
                    if let Some(key) = stayed {
                        *children.entry(key).or_default() += 1;
                    }
                    dispatcher.handle(Event::Returned { call, has_stayed })
                }
                Asks::Keep { key, most } => {
                    // There is one judge at the most, whoever asks.
                    let (key, most) = [("GPU", most), ("GPU judges", most.min(1))][key];
                    dispatcher.handle(Event::Wanted { server, key, most })
                }
                Asks::Lack => {
                    children.clear();
                    dispatcher.handle(Event::Lacked(ServerKind::Device, "GPU"))
                }
                Asks::Restart => {
                    let before = server;
                    server = Server { serial: before.serial + 1, ..before };
                    children.clear();
                    ordered = 0;
                    dispatcher.handle(Event::Gone(before))
                }
            };
            for command in commands {
                match command {
                    Command::Prepare(key, count) => {
                        *children.entry(key).or_default() += count;
                        ordered += count as u64;
                    }
                    other => prop_assert_eq!(other, Command::Dismiss),
                }
            }
            for (key, count) in &children {
                let lent = calls.iter().filter(|(call, lent)| call.server == server && lent.as_ref() == Some(key));
                let most = if key == "GPU" { BOUND } else { 1 };
                prop_assert!(count + lent.count() <= most, "{} of {}", count, key);
                prop_assert_eq!(dispatcher.warm.waiting(ServerKind::Device, key), *count);
            }
            prop_assert_eq!(dispatcher.prepares_devices(), ordered > 0);
        }
        dispatcher.handle(Event::Prepared(server, ordered));
        prop_assert!(!dispatcher.prepares_devices());
    }
}
