//! Second attempts, where the first was rejected.
//!
//! It does not know what an attempt is about.

use super::attempts;
use crate::core_rules::play::{Play, loses, passes, reject, rejects};

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
