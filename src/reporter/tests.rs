//! What readers of events write, compared whole.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use t2t_model::action::{Phase, Target};
use t2t_model::digest::Digest;
use t2t_model::event::{Fault, Tally};
use t2t_model::record::Outcome;
use t2t_model::spans::Times;

use super::*;

fn check(variant: &str) -> Target {
    Target::of_variant("softmax", variant, Phase::Check)
}

fn finished(variant: &str, outcome: Outcome) -> Event {
    Event::ActionFinished {
        target: check(variant),
        lane: "interpreter".into(),
        outcome,
        wall: Duration::from_millis(1_234),
        times: Times::default(),
        key: Digest::of(b""),
    }
}

fn rejected() -> Fault {
    Fault { class: "mismatch".into(), message: "3 of 256 elements differ".into(), ..Fault::default() }
}

fn build() -> Vec<Event> {
    let failure = "error: kernels/softmax/v3.py:12:5: 3 of 256 elements differ (mismatch)\n    x = \u{1b}[31m1\nhint: see the log";
    vec![
        Event::BuildStarted { actions: 161, lanes: BTreeMap::from([("cpu".into(), 2), ("cuda:0".into(), 1)]) },
        Event::Note { text: "no CUDA device: the interpreter runs the kernels".into() },
        Event::Waiting { what: "the workspace's lock".into(), holder: "pid 12, `t2t watch`, since 3 s".into() },
        Event::ActionFresh {
            target: Target::of_op("softmax", Phase::Analyze),
            outcome: Outcome::Passed,
            key: Digest::of(b""),
        },
        Event::ActionStarted {
            target: check("v2_tiling"),
            lane: "interpreter".into(),
            why: vec!["it never ran".into()],
        },
        finished("v2_tiling", Outcome::Passed),
        finished("v3", Outcome::Rejected { class: "mismatch".into() }),
        Event::Failure { target: check("v3"), text: failure.into(), fault: rejected() },
        Event::ActionSkipped { target: Target::of_variant("softmax", "v3", Phase::Bench), because: check("v3") },
        Event::ActionLost { target: Target::summary(), lane: None, reason: "disk full".into() },
        Event::Warning { text: "the journal's last line is torn".into() },
        Event::Finished {
            tally: Tally { fresh: 157, restored: 0, ran: 2, skipped: 1, rejected: 1, not_judged: 1, lost: 1, again: 0 },
            wall: Duration::from_millis(3_456),
            exit_code: 3,
        },
    ]
}

/// The reporter that writes lines to `out`.
fn plain<W: Write>(out: W, verbosity: Verbosity, paint: Paint) -> Plain<W> {
    Plain::new(out, Lines { verbosity, paint })
}

fn told(verbosity: Verbosity, paint: Paint) -> String {
    let mut out = Vec::new();
    let mut reporter = plain(&mut out, verbosity, paint);
    for event in build() {
        reporter.report(&event);
    }
    String::from_utf8(out).unwrap()
}

#[test]
fn plain_output_is_a_line_an_event() {
    assert_eq!(
        told(Verbosity::Normal, Paint::Plain),
        "161 actions; lanes: cpu ×2, cuda:0\n\
         note: no CUDA device: the interpreter runs the kernels\n\
         waiting: the workspace's lock, held by pid 12, `t2t watch`, since 3 s\n\
         check softmax/v2_tiling … passed 1.2 s\n\
         check softmax/v3 … rejected (mismatch) 1.2 s\n\
         error: kernels/softmax/v3.py:12:5: 3 of 256 elements differ (mismatch)\n    \
             x = \\u{1b}[31m1\n\
         hint: see the log\n\
         bench softmax/v3 … skipped, after softmax/v3:check\n\
         summary … lost: disk full\n\
         warning: the journal's last line is torn\n\
         failed softmax/v3:check  mismatch: 3 of 256 elements differ\n\
         failed summary  lost: disk full\n\
         fresh 157, restored 0, ran 2, skipped 1, not judged 1, rejected 1, lost 1 in 3.5 s\n"
    );
}

#[test]
fn quiet_output_is_failures_and_the_final_line() {
    assert_eq!(
        told(Verbosity::Quiet, Paint::Plain),
        "check softmax/v3 … rejected (mismatch) 1.2 s\n\
         error: kernels/softmax/v3.py:12:5: 3 of 256 elements differ (mismatch)\n    \
             x = \\u{1b}[31m1\n\
         hint: see the log\n\
         summary … lost: disk full\n\
         fresh 157, restored 0, ran 2, skipped 1, not judged 1, rejected 1, lost 1 in 3.5 s\n"
    );
}

#[test]
fn colors_change_no_words() {
    let colored = told(Verbosity::Normal, Paint::Color);
    assert!(colored.contains("\u{1b}[32mpassed\u{1b}[0m"), "{colored}");
    assert_eq!(console::strip_ansi_codes(&colored), told(Verbosity::Normal, Paint::Plain));
}

#[test]
fn a_build_with_nothing_to_do_says_only_what_matters() {
    let mut out = Vec::new();
    let tally = Tally { fresh: 160, ..Tally::default() };
    plain(&mut out, Verbosity::Normal, Paint::Plain).report(&Event::Finished {
        tally,
        wall: Duration::from_millis(3),
        exit_code: 0,
    });
    assert_eq!(String::from_utf8(out).unwrap(), "fresh 160, restored 0, ran 0 in 3 ms\n");
}

#[test]
fn no_color_and_dumb_terminals_are_heeded() {
    let environment = |pairs: &'static [(&str, &str)]| {
        move |name: &str| pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value))
    };
    let paint = |pairs| Screen::of_terminal(80, &environment(pairs));
    let colored = Screen { paint: Paint::Color, width: Some(80), bars: Bars::Yes };
    assert_eq!(paint(&[("TERM", "xterm")]), colored);
    assert_eq!(paint(&[("TERM", "xterm"), ("NO_COLOR", "")]), colored);
    assert_eq!(paint(&[("TERM", "xterm"), ("NO_COLOR", "1")]), Screen { paint: Paint::Plain, ..colored });
    assert_eq!(paint(&[("TERM", "dumb")]), Screen { paint: Paint::Plain, bars: Bars::No, ..colored });
    assert_eq!(paint(&[]), Screen { paint: Paint::Plain, bars: Bars::No, ..colored });
}

#[test]
fn a_traceback_is_told_by_its_exception() {
    let told = "Traceback (most recent call last):\n  File \"a.py\", line 1\n    import b\nImportError: no `b`\n";
    assert_eq!(super::lines::gist(told), "ImportError: no `b`");
    assert_eq!(super::lines::gist("the disk is full\nTraceback"), "the disk is full");
    assert_eq!(super::lines::gist(""), "");
}
