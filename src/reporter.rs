//! The reporter: events in, lines and bars out. Plain lines, bars on a terminal, or almost nothing.
//!
//! It decides nothing about the build, and reads of the environment only what its caller hands it.

use std::ffi::OsString;
use std::io::Write;

use console::Term;

use crate::event::Event;
use crate::reporter::fancy::Fancy;
use crate::reporter::lines::Lines;

mod annotations;
mod events;
mod fancy;
mod junit;
mod lines;
mod plain;
mod trace;

pub use annotations::Annotations;
pub use events::{Events, Moment};
pub use junit::{Case, Verdict, junit};
pub use plain::Plain;
pub use trace::Trace;

/// One who is told what happens.
pub trait Reporter {
    /// Takes one event. What cannot be written is lost: a closed terminal stops no build.
    fn report(&mut self, event: &Event);
}

/// How much is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verbosity {
    /// Failures and the final line.
    Quiet,
    /// Everything.
    Normal,
}

/// Whether text is colored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    /// It is not.
    Plain,
    /// It is, with ANSI escapes.
    Color,
}

/// What a stream leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Screen {
    /// Whether text is colored there.
    pub paint: Paint,
    /// How many columns it has. None where it is no terminal.
    pub width: Option<usize>,
    /// Whether lines can be drawn over there.
    pub bars: Bars,
}

/// Whether a stream can show bars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bars {
    /// It is a file, a pipe or a dumb terminal.
    No,
    /// It is a terminal.
    Yes,
}

impl Screen {
    /// What no terminal shows: a file, a pipe.
    pub const NONE: Self = Self { paint: Paint::Plain, width: None, bars: Bars::No };

    /// Returns what `term` is. `environment` answers for `NO_COLOR` and `TERM`.
    #[must_use]
    pub fn of(term: &Term, environment: &dyn Fn(&str) -> Option<OsString>) -> Self {
        if term.is_term() { Self::of_terminal(usize::from(term.size().1), environment) } else { Self::NONE }
    }

    fn of_terminal(width: usize, environment: &dyn Fn(&str) -> Option<OsString>) -> Self {
        let dumb = environment("TERM").is_none_or(|name| name == "dumb");
        let refused = environment("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            paint: if dumb || refused { Paint::Plain } else { Paint::Color },
            width: Some(width),
            bars: if dumb { Bars::No } else { Bars::Yes },
        }
    }
}

/// Returns the reporter for standard error, which `screen` describes.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "reporters print")]
pub fn reporter(verbosity: Verbosity, screen: Screen) -> Box<dyn Reporter> {
    match (verbosity, screen.bars) {
        (Verbosity::Normal, Bars::Yes) => Box::new(Fancy::new(screen.paint)),
        _ => Box::new(Plain::new(std::io::stderr(), Lines { verbosity, paint: screen.paint })),
    }
}

/// Returns the reporter that writes lines to `out`.
#[must_use]
pub fn plain<W: Write>(out: W, verbosity: Verbosity, paint: Paint) -> Plain<W> {
    Plain::new(out, Lines { verbosity, paint })
}

#[cfg(test)]
mod tests;
