//! The plain reporter: one line an event, for pipes, files and quiet builds.
//!
//! It does not know what it writes to.

use std::io::Write;

use crate::event::Event;
use crate::reporter::Reporter;
use crate::reporter::lines::Lines;

/// Writes a line for every event that has words.
#[derive(Debug)]
pub struct Plain<W> {
    out: W,
    lines: Lines,
}

impl<W: Write> Plain<W> {
    /// Returns the reporter that writes to `out`.
    pub(super) fn new(out: W, lines: Lines) -> Self {
        Self { out, lines }
    }
}

impl<W: Write> Reporter for Plain<W> {
    fn report(&mut self, event: &Event) {
        if let Some(line) = self.lines.of(event) {
            let _ = self.out.write_all((line + "\n").as_bytes());
        }
    }
}
