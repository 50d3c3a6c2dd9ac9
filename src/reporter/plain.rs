//! The plain reporter: one line an event, for pipes, files and quiet builds. Before the last line it names failures again: their messages may be far up.
//!
//! It does not know what it writes to.

use std::io::Write;

use t2t_model::event::Event;

use crate::reporter::lines::Lines;
use crate::reporter::{Reporter, Verbosity};

/// Writes a line for every event that has words.
#[derive(Debug)]
pub(crate) struct Plain<W> {
    out: W,
    lines: Lines,
    /// A line for each rejection and each action that the machine failed.
    failed: Vec<String>,
}

impl<W: Write> Plain<W> {
    /// Returns the reporter that writes to `out`.
    pub(super) fn new(out: W, lines: Lines) -> Self {
        Self { out, lines, failed: Vec::new() }
    }
}

impl<W: Write> Reporter for Plain<W> {
    fn report(&mut self, event: &Event) {
        self.failed.extend(self.lines.failure_again(event));
        if matches!(event, Event::Finished { .. }) && self.lines.verbosity == Verbosity::Normal {
            self.repeat();
        }
        if let Some(line) = self.lines.of(event) {
            let _ = self.out.write_all((line + "\n").as_bytes());
        }
    }
}

impl<W: Write> Plain<W> {
    fn repeat(&mut self) {
        for line in self.failed.drain(..) {
            let _ = self.out.write_all((line + "\n").as_bytes());
        }
    }
}
