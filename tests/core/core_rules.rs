//! The rules of the core by example: what is decided after an edit, in which order, and why.
//!
//! No file is read and nothing runs: actions are closures, files are texts, and the log of what was decided is compared.

use std::collections::BTreeMap;

use t2t_model::action::DeviceClass;
use t2t_model::history::History;
use t2t_model::record::{Outcome, Record, Seen};
use t2t_plan::graph::{Graph, Unsealed, Wanted};
use t2t_plan::schedule::{Schedule, Settled, Step};

use crate::core_rules::play::{Play, action, loses, order_only, pass, passes, reject, rejects, settle, target};

mod play;

/// A compiler of one file: `lex` takes what stands before the `;`, the others follow.
fn compiler() -> Play {
    let mut play = Play::default();
    play.write("main.py", "a; one").add("lex", []).add("parse", [pass("lex")]).add("link", [pass("parse")]);
    play.source("lex", "main.py");
    play.does("lex", |view| passes(view.source("main.py").split(';').next().unwrap()));
    play
}

/// One action that looks at `helper.py`, which it did not declare.
fn finder() -> Play {
    let mut play = Play::default();
    play.add("check", []).does("check", |view| {
        let helper = view.look_at("helper.py");
        passes(&helper.unwrap_or_default())
    });
    play
}

/// A check that takes 40 seconds.
fn slow() -> Play {
    let mut play = Play::default();
    play.add("check", []).does("check", |view| match view.deadline {
        0..40 => rejects("timeout", "too slow"),
        _ => passes("in time"),
    });
    play
}

/// A kernel whose check passes for `good`, and otherwise cites its lines.
fn judged(text: &str) -> Play {
    let mut play = Play::default();
    play.write("kernel.py", text).add("check", []).source("check", "kernel.py");
    play.does("check", |view| match view.source("kernel.py") {
        "good" => passes("fine"),
        _ => rejects("mismatch", &view.cite("kernel.py")),
    });
    play
}

/// Two attempts at a kernel. The generator needs the failure of the first for the second.
fn attempts() -> Play {
    let mut play = Play::default();
    play.add("generate1", []).add("check1", [pass("generate1")]);
    play.add("generate2", [reject("check1")]).add("check2", [pass("generate2")]);
    play.add("select", [settle("check1"), settle("check2")]);
    play
}

#[test]
fn unchanged_inputs_run_nothing() {
    let mut play = compiler();
    assert_eq!(play.build(), ["lex: ran, never ran", "parse: ran, never ran", "link: ran, never ran"]);
    assert_eq!(play.build(), ["lex: fresh", "parse: fresh", "link: fresh"]);
}

#[test]
fn unchanged_output_stops_the_rebuild() {
    let mut play = compiler();
    play.build();
    play.write("main.py", "a; two");
    assert_eq!(play.build(), ["lex: ran, changed", "parse: fresh", "link: fresh"]);
}

#[test]
fn changed_output_goes_on_to_those_that_read_it() {
    let mut play = compiler();
    play.add("count", [order_only("lex")]);
    play.build();
    play.write("main.py", "b; one");
    assert_eq!(play.build(), ["lex: ran, changed", "parse: ran, changed", "link: ran, changed", "count: fresh"]);
}

#[test]
fn a_step_is_given_the_artifacts_it_reads_and_no_others() {
    let mut play = compiler();
    play.add("count", [order_only("lex")]).add("log", [settle("lex"), settle("count"), settle("link")]);
    play.does("count", |view| rejects("mismatch", &view.inputs.len().to_string()));
    play.does("log", |view| passes(&format!("{:?}", view.inputs)));
    play.build();
    assert_eq!(play.made("count", "evidence"), "0");
    assert_eq!(play.made("log", "out"), r#"{"lex.out": "a", "link.out": "a"}"#);
}

#[test]
fn a_comment_runs_nothing() {
    let mut play = compiler();
    play.build();
    play.write("main.py", "a; one # and a comment");
    assert_eq!(play.build(), ["lex: fresh", "parse: fresh", "link: fresh"]);
}

#[test]
fn a_changed_parameter_runs_its_action_alone() {
    let mut play = compiler();
    play.build();
    play.parameter("parse", "strict");
    assert_eq!(play.build(), ["lex: fresh", "parse: ran, changed", "link: fresh"]);
}

#[test]
fn an_undone_edit_brings_the_earlier_results_back() {
    let mut play = compiler();
    play.build();
    play.write("main.py", "b; one").build();
    play.write("main.py", "a; one");
    assert_eq!(play.build(), ["lex: restored", "parse: restored", "link: restored"]);
    assert_eq!(play.build(), ["lex: fresh", "parse: fresh", "link: fresh"]);
}

#[test]
fn the_declared_order_is_in_no_key() {
    let mut play = compiler();
    play.build();
    play.declare_in_reverse();
    assert_eq!(play.build(), ["lex: fresh", "parse: fresh", "link: fresh"]);
}

#[test]
fn a_rejected_dependency_skips_what_needs_its_pass() {
    let mut play = compiler();
    play.does("lex", |_| rejects("mismatch", "line 1"));
    assert_eq!(play.build(), ["lex: ran, never ran", "parse: skipped for lex", "link: skipped for parse"]);
}

#[test]
fn a_rejection_is_a_result_and_is_not_run_again() {
    let mut play = compiler();
    play.does("lex", |_| rejects("mismatch", "line 1")).build();
    assert_eq!(play.build(), ["lex: fresh", "parse: skipped for lex", "link: skipped for parse"]);
}

#[test]
fn what_any_end_satisfies_goes_on_after_a_rejection() {
    let mut play = compiler();
    play.add("log", [settle("lex"), settle("link")]).does("lex", |_| rejects("mismatch", "line 1"));
    let skipped = ["parse: skipped for lex", "link: skipped for parse"];
    assert_eq!(play.build(), ["lex: ran, never ran", skipped[0], skipped[1], "log: ran, never ran"]);
    assert_eq!(play.build(), ["lex: fresh", skipped[0], skipped[1], "log: fresh"]);
}

#[test]
fn what_reads_a_skipped_action_runs_again_once_that_ran() {
    let mut play = compiler();
    play.add("log", [settle("link")]).does("lex", |view| match view.source("main.py") {
        "bad" => rejects("mismatch", "line 1"),
        other => passes(other),
    });
    play.write("main.py", "bad").build();
    play.write("main.py", "good");
    let log = play.build();
    assert_eq!(log, ["lex: ran, changed", "parse: ran, never ran", "link: ran, never ran", "log: ran, changed"]);
}

#[test]
fn a_second_attempt_runs_where_the_first_was_rejected() {
    let mut play = attempts();
    play.does("check1", |_| rejects("mismatch", "row 3"));
    play.does("generate2", |view| passes(&format!("minds {}", view.inputs["check1.evidence"])));
    let all = ["generate1", "check1", "generate2", "check2", "select"];
    assert_eq!(play.build(), all.map(|name| format!("{name}: ran, never ran")));
    assert_eq!(play.build(), all.map(|name| format!("{name}: fresh")));
}

#[test]
fn one_rejection_of_several_is_enough_for_a_second_attempt() {
    let mut play = Play::default();
    play.add("compile1", []).add("check1", []).add("generate2", [reject("compile1"), reject("check1")]);
    play.parameter("check1", "another").does("check1", |_| rejects("mismatch", "row 3"));
    assert_eq!(play.build()[2], "generate2: ran, never ran");
    play.does("check1", |_| passes("fine"));
    assert_eq!(play.force(&["check1"])[2], "generate2: not needed");
}

#[test]
fn what_no_kernel_can_help_asks_for_no_second_attempt() {
    let mut play = attempts();
    play.does("check1", |_| rejects("unfit-cases", "all zeros"));
    assert_eq!(play.build()[2..4], ["generate2: not needed", "check2: not needed"]);
    play.does("check1", |_| loses());
    assert_eq!(play.force(&["check1"])[2..4], ["generate2: not needed", "check2: not needed"]);
}

#[test]
fn a_second_attempt_is_not_needed_where_the_first_passed() {
    let first = ["generate1: ran, never ran", "check1: ran, never ran"];
    let second = ["generate2: not needed", "check2: not needed"];
    assert_eq!(attempts().build(), [first[0], first[1], second[0], second[1], "select: ran, never ran"]);
}

#[test]
fn a_second_attempt_is_not_needed_where_the_first_was_not_made() {
    let mut play = attempts();
    play.does("generate1", |_| rejects("exception", "no answer"));
    let second = ["generate2: not needed", "check2: not needed"];
    let first = ["generate1: ran, never ran", "check1: skipped for generate1"];
    assert_eq!(play.build(), [first[0], first[1], second[0], second[1], "select: ran, never ran"]);
}

#[test]
fn a_lost_result_is_never_reused() {
    let mut play = compiler();
    play.does("lex", |_| loses());
    assert_eq!(play.build(), ["lex: ran, never ran", "parse: skipped for lex", "link: skipped for parse"]);
    assert_eq!(play.build(), ["lex: ran, lost", "parse: skipped for lex", "link: skipped for parse"]);
    play.does("lex", |_| passes("a"));
    assert_eq!(play.build(), ["lex: ran, lost", "parse: ran, never ran", "link: ran, never ran"]);
}

#[test]
fn a_lost_run_takes_no_earlier_results_place() {
    let mut play = compiler();
    play.build();
    play.does("lex", |_| loses());
    assert_eq!(play.force(&["lex"]), ["lex: ran, forced", "parse: skipped for lex", "link: skipped for parse"]);
    assert_eq!(play.build(), ["lex: restored", "parse: fresh", "link: fresh"]);
}

#[test]
fn a_discovered_file_that_changed_runs_its_action() {
    let mut play = finder();
    play.write("helper.py", "x").build();
    play.write("helper.py", "y");
    assert_eq!(play.build(), ["check: ran, helper.py changed"]);
    assert_eq!(play.build(), ["check: fresh"]);
}

#[test]
fn a_discovered_file_that_appeared_runs_its_action() {
    let mut play = finder();
    play.build();
    play.write("helper.py", "x");
    assert_eq!(play.build(), ["check: ran, helper.py appeared"]);
}

#[test]
fn a_discovered_file_that_is_gone_runs_its_action() {
    let mut play = finder();
    play.write("helper.py", "x").build();
    play.delete("helper.py");
    assert_eq!(play.build(), ["check: ran, helper.py is gone"]);
}

#[test]
fn every_discovered_file_that_changed_is_named() {
    let mut play = Play::default();
    play.add("check", []).does("check", |view| {
        let (one, other) = (view.look_at("one.py"), view.look_at("other.py"));
        passes(&(one.unwrap_or_default() + &other.unwrap_or_default()))
    });
    play.write("one.py", "x").build();
    play.write("one.py", "y").write("other.py", "x");
    assert_eq!(play.build(), ["check: ran, one.py changed, other.py appeared"]);
}

#[test]
fn a_comment_in_a_discovered_file_runs_nothing() {
    let mut play = finder();
    play.write("helper.py", "x").build();
    play.write("helper.py", "x # helps");
    assert_eq!(play.build(), ["check: fresh"]);
}

#[test]
fn a_file_that_nothing_looked_at_runs_nothing() {
    let mut play = finder();
    play.build();
    play.write("other.py", "x");
    assert_eq!(play.build(), ["check: fresh"]);
}

#[test]
fn among_results_of_one_key_the_one_whose_discovered_files_match_comes_back() {
    let mut play = finder();
    play.add("show", [pass("check")]);
    for helper in ["x", "y", "z"] {
        play.write("helper.py", helper).build();
    }
    play.delete("helper.py").build();
    for helper in ["y", "x", "z"] {
        play.write("helper.py", helper);
        assert_eq!(play.build(), ["check: restored", "show: restored"], "{helper}");
    }
    play.delete("helper.py");
    assert_eq!(play.build(), ["check: restored", "show: restored"]);
}

#[test]
fn a_longer_deadline_runs_a_timeout_again_and_a_shorter_one_does_not() {
    let mut play = slow();
    assert_eq!(play.deadline("check", 20).build(), ["check: ran, never ran"]);
    assert_eq!(play.deadline("check", 10).build(), ["check: fresh"]);
    assert_eq!(play.deadline("check", 30).build(), ["check: ran, 20s before, 30s now"]);
    assert_eq!(play.deadline("check", 20).build(), ["check: fresh"]);
    assert_eq!(play.deadline("check", 50).build(), ["check: ran, 30s before, 50s now"]);
}

#[test]
fn a_pass_stands_for_any_deadline() {
    let mut play = slow();
    play.deadline("check", 50).build();
    for seconds in [1, 40, 1000] {
        assert_eq!(play.deadline("check", seconds).build(), ["check: fresh"]);
    }
}

#[test]
fn a_rejection_other_than_a_timeout_stands_for_any_deadline() {
    let mut play = judged("bad");
    play.deadline("check", 50).build();
    assert_eq!(play.deadline("check", 1000).build(), ["check: fresh"]);
}

#[test]
fn a_comment_runs_a_rejection_again_that_cites_lines() {
    let mut play = judged("bad");
    play.build();
    play.write("kernel.py", "bad # why is it?");
    assert_eq!(play.build(), ["check: ran, kernel.py changed"]);
    play.write("kernel.py", "bad");
    assert_eq!(play.build(), ["check: restored"]);
}

#[test]
fn a_comment_does_not_run_a_pass_again() {
    let mut play = judged("good");
    play.build();
    play.write("kernel.py", "good # and so it stays");
    assert_eq!(play.build(), ["check: fresh"]);
}

#[test]
fn what_is_forced_runs_whatever_is_known_and_stops_at_unchanged_output() {
    let mut play = compiler();
    play.build();
    assert_eq!(play.force(&["lex"]), ["lex: ran, forced", "parse: fresh", "link: fresh"]);
    assert_eq!(play.build(), ["lex: fresh", "parse: fresh", "link: fresh"]);
}

#[test]
fn what_is_forced_is_skipped_where_its_need_is_not_met() {
    let mut play = compiler();
    play.does("lex", |_| rejects("mismatch", "line 1"));
    assert_eq!(play.force(&["parse"]), ["lex: ran, never ran", "parse: skipped for lex", "link: skipped for parse"]);
}

#[test]
fn only_what_is_wanted_is_decided() {
    let mut play = compiler();
    assert_eq!(play.build_only(&["lex", "parse"]), ["lex: ran, never ran", "parse: ran, never ran"]);
    assert_eq!(play.build(), ["lex: fresh", "parse: fresh", "link: ran, never ran"]);
    assert!(play.build_only(&[]).is_empty());
}

#[test]
fn a_plan_follows_what_would_run_and_leaves_no_trace() {
    let mut play = compiler();
    play.build();
    play.write("main.py", "a; two");
    let planned = ["lex: would run, changed", "parse: would run, changed", "link: would run, changed"];
    assert_eq!(play.plan(), planned);
    assert_eq!(play.plan(), planned);
    assert_eq!(play.build(), ["lex: ran, changed", "parse: fresh", "link: fresh"]);
}

#[test]
fn a_forced_run_takes_the_place_of_the_result_it_had() {
    let mut play = slow();
    play.deadline("check", 50).build();
    assert_eq!(play.deadline("check", 10).force(&["check"]), ["check: ran, forced"]);
    assert_eq!(play.deadline("check", 30).build(), ["check: ran, 10s before, 30s now"]);
}

#[test]
fn of_two_results_that_stand_the_newer_comes_back() {
    let mut play = judged("good");
    play.add("bench", [pass("check")]).build();
    play.does("check", |view| rejects("mismatch", &view.cite("kernel.py")));
    assert_eq!(play.force(&["check"]), ["check: ran, forced", "bench: skipped for check"]);
    play.parameter("check", "other").build();
    play.parameter("check", "");
    assert_eq!(play.build(), ["check: restored", "bench: skipped for check"]);
}

#[test]
fn an_action_that_never_ran_says_why_the_result_of_its_key_does_not_stand() {
    let mut play = finder();
    play.build();
    play.write("helper.py", "x").add("twin", []);
    assert_eq!(play.build_only(&["twin"]), ["twin: ran, helper.py appeared"]);
}

#[test]
fn of_two_needs_that_are_not_met_the_first_declared_is_named() {
    let mut play = Play::default();
    play.add("a", []).add("b", []).add("last", [pass("a"), pass("b")]).add("turned", [pass("b"), pass("a")]);
    play.does("a", |_| rejects("mismatch", "row 1")).does("b", |_| rejects("mismatch", "row 2"));
    play.parameter("b", "other");
    let log = play.build();
    assert_eq!(log, ["a: ran, never ran", "b: ran, never ran", "last: skipped for a", "turned: skipped for a"]);
}

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
fn a_plan_expects_that_what_would_run_passes() {
    let second = ["generate2: not needed", "check2: not needed"];
    let first = ["generate1: would run, never ran", "check1: would run, never ran"];
    assert_eq!(attempts().plan(), [first[0], first[1], second[0], second[1], "select: would run, never ran"]);
}

#[test]
fn two_actions_with_one_key_share_a_result() {
    let mut play = Play::default();
    play.add("first", []).add("second", []);
    assert_eq!(play.build(), ["first: ran, never ran", "second: restored"]);
    assert_eq!(play.build(), ["first: fresh", "second: fresh"]);
    play.parameter("second", "other");
    assert_eq!(play.build(), ["first: fresh", "second: ran, changed"]);
}

#[test]
fn results_of_two_devices_stand_side_by_side() {
    let mut play = compiler();
    play.device(DeviceClass::Interpreter).parameter("lex", "interpreter").build();
    play.device(DeviceClass::Cuda("nvidia-h200".to_owned())).parameter("lex", "cuda");
    assert_eq!(play.build(), ["lex: ran, never ran", "parse: restored", "link: restored"]);
    play.device(DeviceClass::Interpreter).parameter("lex", "interpreter");
    assert_eq!(play.build(), ["lex: fresh", "parse: fresh", "link: fresh"]);
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
