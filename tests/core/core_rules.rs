//! The rules of the core by example: what is decided after an edit, in which order, and why.
//!
//! No file is read and nothing runs: actions are closures, files are texts, and the log of what was decided is compared.

use t2t_model::action::DeviceClass;

use crate::core_rules::play::{Play, loses, order_only, pass, passes, reject, rejects, settle};

mod play;
mod discovered;
mod again;
mod order;

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
