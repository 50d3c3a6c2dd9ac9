//! The reporter: events in, lines and bars out. Plain lines, bars on a terminal, or almost nothing.
//!
//! It decides nothing about the build, and sees only the parts of the environment that its caller passes.

use std::collections::BTreeSet;
use std::ffi::OsString;

use console::Term;
use t2t_model::event::Event;

use crate::reporter::fancy::Fancy;
use crate::reporter::lines::Lines;

mod annotations;
mod board;
mod events;
mod fancy;
mod junit;
mod lines;
mod plain;
mod rounds;
mod trace;

pub(crate) use annotations::Annotations;
pub(crate) use events::{Events, Moment};
pub(crate) use junit::{Case, Verdict, junit};
pub(crate) use plain::Plain;
pub(crate) use trace::Trace;

/// A receiver of a build's events.
pub(crate) trait Reporter {
    /// Takes one event. What cannot be written is lost: a closed terminal stops no build.
    fn report(&mut self, event: &Event);
}

/// A receiver of the events of a watch, over many builds.
pub(crate) trait View: Reporter {
    /// Says which files changed.
    fn change(&mut self, files: &[String]);

    /// Says that a round begins that looks at these ops alone: all others stand as they did.
    fn begin_part(&mut self, ops: &BTreeSet<String>);

    /// Says what keeps the workspace from being built, as long as the next build does not begin.
    fn problem(&mut self, text: &str);

    /// Shows why what ran last ran, or hides it.
    fn explain(&mut self);

    /// Draws what changed with time.
    fn draw(&mut self);

    /// Leaves the last state behind.
    fn close(&mut self);
}

/// How much is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verbosity {
    /// Failures and the final line.
    Quiet,
    /// Everything.
    Normal,
}

/// Whether text is colored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paint {
    /// It is not.
    Plain,
    /// It is, with ANSI escapes.
    Color,
}

/// What a stream leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Screen {
    /// Whether text is colored there.
    pub(crate) paint: Paint,
    /// How many columns it has. None where it is no terminal.
    pub(crate) width: Option<usize>,
    /// Whether lines can be drawn over there.
    pub(crate) bars: Bars,
}

/// Whether a stream can show bars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bars {
    /// It is a file, a pipe or a dumb terminal.
    No,
    /// It is a terminal.
    Yes,
}

impl Screen {
    /// What no terminal shows: a file, a pipe.
    pub(crate) const NONE: Self = Self { paint: Paint::Plain, width: None, bars: Bars::No };

    /// Returns what `term` is. `environment` answers for `NO_COLOR` and `TERM`.
    #[must_use]
    pub(crate) fn of(term: &Term, environment: &dyn Fn(&str) -> Option<OsString>) -> Self {
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
pub(crate) fn reporter(verbosity: Verbosity, screen: Screen) -> Box<dyn Reporter> {
    match (verbosity, screen.bars) {
        (Verbosity::Normal, Bars::Yes) => Box::new(Fancy::new(screen.paint)),
        _ => Box::new(Plain::new(std::io::stderr(), Lines { verbosity, paint: screen.paint })),
    }
}

/// Returns the view on standard output, which `screen` describes: a board on a terminal, else lines.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "reporters print")]
pub(crate) fn view(verbosity: Verbosity, screen: Screen) -> Box<dyn View> {
    let lines = Lines { verbosity, paint: screen.paint };
    let out = std::io::stdout();
    if screen.bars == Bars::No {
        return Box::new(rounds::Rounds::new(out, lines));
    }
    let size = || Term::stdout().size();
    let width = move || Screen { width: Some(usize::from(size().1)), ..screen };
    Box::new(board::Board::new(out, lines, width, move || usize::from(size().0)))
}

/// Returns the names of files as one line: the first few, and how many more.
fn said(files: &[String]) -> String {
    const NAMED: usize = 3;
    let named = files.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    match files.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

#[cfg(test)]
mod tests;
