//! Rounds: lines for the builds of a watch, one after each change.
//!
//! A standing failure is printed once, and what it skips with it. The verdict of a check that an undone edit brings back is printed as one that was just found. It does not know what changed in the files.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use t2t_model::action::{Phase, Target};
use t2t_model::event::Event;

use crate::reporter::lines::Lines;
use crate::reporter::{Reporter, View, said};

/// Writes lines.
#[derive(Debug)]
pub(crate) struct Rounds<W> {
    out: W,
    lines: Lines,
    /// Actions that settled without running in this round; their failures were printed before.
    standing: BTreeSet<Target>,
    /// Actions that ran in this round.
    ran: BTreeSet<Target>,
    /// What was skipped in a round, and after what: that was told.
    skipped: BTreeMap<Target, Target>,
    /// Whether a whole round was printed.
    is_begun: bool,
    problem: Option<String>,
}

impl<W: Write> Rounds<W> {
    /// Returns the view that writes to `out`.
    pub(super) fn new(out: W, lines: Lines) -> Self {
        Self {
            out,
            lines,
            standing: BTreeSet::new(),
            ran: BTreeSet::new(),
            skipped: BTreeMap::new(),
            is_begun: false,
            problem: None,
        }
    }

    fn begin(&mut self) {
        self.standing.clear();
        self.ran.clear();
        self.problem = None;
    }

    fn say(&mut self, text: &str) {
        // A reader that has gone stops nothing.
        let _ = self.out.write_all(format!("{text}\n").as_bytes()).and_then(|()| self.out.flush());
    }
}

impl<W: Write> Reporter for Rounds<W> {
    fn report(&mut self, event: &Event) {
        match event {
            Event::BuildStarted { .. } => {
                self.begin();
                return;
            }
            Event::ActionFresh { target, .. } if self.is_begun => _ = self.standing.insert(target.clone()),
            Event::Failure { target, .. } if self.standing.contains(target) => return,
            Event::ActionSkipped { target, because } => {
                let before = self.skipped.insert(target.clone(), because.clone());
                if before.as_ref() == Some(because) && !self.ran.contains(because) {
                    return;
                }
            }
            Event::ActionFinished { target, .. } => _ = self.ran.insert(target.clone()),
            Event::ActionRestored { target, outcome, .. } if self.is_begun && target.phase == Phase::Check => {
                if let Some(line) = self.lines.restored(target, outcome) {
                    self.say(&line);
                }
                return;
            }
            Event::Finished { .. } => self.is_begun = true,
            _ => {}
        }
        if let Some(line) = self.lines.of(event) {
            self.say(&line);
        }
    }
}

impl<W: Write> View for Rounds<W> {
    fn change(&mut self, files: &[String]) {
        self.say(&format!("changed: {}", said(files)));
    }

    fn begin_part(&mut self, _: &BTreeSet<String>) {
        self.begin();
    }

    fn problem(&mut self, text: &str) {
        if self.problem.as_deref() != Some(text) {
            self.say(text);
        }
        self.problem = Some(text.to_owned());
    }

    fn explain(&mut self) {}

    fn draw(&mut self) {}

    fn close(&mut self) {}
}
