//! The board on a terminal in memory.

use std::cell::RefCell;
use std::rc::Rc;

use indicatif::{InMemoryTerm, TermLike};
use t2t_model::digest::Digest;
use t2t_model::event::{Fault, Tally};
use t2t_model::spans::Times;

use super::*;
use crate::reporter::{Bars, Paint, Verbosity};

/// A terminal that a board can write to.
#[derive(Clone)]
struct Terminal(Rc<RefCell<InMemoryTerm>>);

impl Write for Terminal {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        // As a terminal's driver does.
        self.0.borrow().write_str(&std::str::from_utf8(bytes).unwrap().replace('\n', "\r\n"))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn board(height: usize) -> (Board<Terminal>, Terminal) {
    let terminal = Terminal(Rc::new(RefCell::new(InMemoryTerm::new(40, 60))));
    let lines = Lines { verbosity: Verbosity::Normal, paint: Paint::Plain };
    let screen = Screen { paint: Paint::Plain, width: Some(60), bars: Bars::Yes };
    (Board::new(terminal.clone(), lines, move || screen, move || height), terminal)
}

fn check(variant: &str) -> Target {
    Target::of_variant("softmax", variant, Phase::Check)
}

fn started(variant: &str) -> Event {
    let why = vec!["code of `kernels/softmax/v1.py` changed".to_owned()];
    Event::ActionStarted { target: check(variant), lane: "cpu".to_owned(), why }
}

fn finished(variant: &str, outcome: Outcome) -> Event {
    Event::ActionFinished {
        target: check(variant),
        lane: "cpu".to_owned(),
        outcome,
        wall: Duration::from_millis(5),
        times: Times::default(),
        key: Digest::of(b""),
    }
}

fn over() -> Event {
    let tally = Tally { ran: 1, ..Tally::default() };
    Event::Finished { tally, wall: Duration::from_millis(120), exit_code: 1 }
}

fn shown(terminal: &Terminal) -> String {
    terminal.0.borrow().contents()
}

#[test]
fn it_shows_how_variants_stand_what_failed_and_what_runs() {
    let (mut board, terminal) = board(30);
    let begun = || Event::BuildStarted { actions: 2, lanes: BTreeMap::new() };
    board.report(&begun());
    board.report(&started("v1"));
    board.report(&finished("v1", Outcome::Rejected { class: "mismatch".to_owned() }));
    let text = "error: kernels/softmax/v1.py:3: off by one\nhint: look".to_owned();
    board.report(&Event::Failure { target: check("v1"), text, fault: Fault::default() });
    board.report(&started("v2"));
    assert_eq!(
        shown(&terminal),
        format!(
            "softmax  ✖ mismatch v1\n\nerror: kernels/softmax/v1.py:3: off by one\nhint: look\n\nrunning check softmax/v2\n{KEYS}"
        )
    );
    board.report(&finished("v2", Outcome::Passed));
    board.report(&over());
    board.change(&["kernels/softmax/v1.py".to_owned()]);
    board.report(&begun());
    board.report(&started("v1"));
    board.report(&finished("v1", Outcome::Passed));
    board.report(&over());
    assert_eq!(
        shown(&terminal),
        format!("softmax  ✔ v1\n\nfresh 0, restored 0, ran 1 in 120 ms\n{KEYS}"),
        "what is mended or gone is not shown"
    );
    board.explain();
    assert!(shown(&terminal).contains("check softmax/v1: code of `kernels/softmax/v1.py` changed"));
    board.problem("error: ops.yaml:3:1: no such thing");
    assert!(shown(&terminal).contains("error: ops.yaml:3:1: no such thing"));
}

#[test]
fn what_does_not_fit_loses_its_middle() {
    let (mut board, terminal) = board(8);
    let text: Vec<String> = (0..50).map(|line| format!("line {line}")).collect();
    board.problem(&text.join("\n"));
    let shown = shown(&terminal);
    assert_eq!(shown.lines().count(), 7, "{shown}");
    assert!(shown.contains("lines more]") && shown.ends_with(KEYS), "{shown}");
}
