//! Files that actions turn out to read.
//!
//! It does not know what is in them.

use super::finder;
use crate::core_rules::play::{Play, pass, passes};

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
