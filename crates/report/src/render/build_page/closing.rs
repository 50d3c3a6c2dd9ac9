//! The table that ends a build on a terminal.
//!
//! It does not know where its rows come from.

use super::{OpRow, OpSummary, PublishedRow, is_interpreted, time};
use crate::figures;
use crate::rank::PublishedPlace;
use crate::render::table::{Align, Table};

/// Returns the table that ends a build on a terminal: a row an op. Over kernels that the interpreter ran stands whose published figures they are.
#[must_use]
pub fn closing_table(ops: &[&OpSummary], width: Option<usize>) -> String {
    let shown = Shown::of(ops);
    let mut table = Table::new(&shown.head());
    for op in ops {
        table.push(op.row.cells(&shown));
    }
    let text = table.text(width);
    if let Shown::Published(place) = shown { format!("{}\n{text}", whose(place)) } else { text }
}

/// Which figures a table has.
enum Shown<'a> {
    /// Those of the device that ran the kernels.
    Measured,
    /// Those that a device published of kernels that Triton's interpreter ran.
    Published(&'a PublishedPlace),
    /// How long Triton's interpreter took, which compares nothing.
    Interpreted,
}

impl<'a> Shown<'a> {
    fn of(ops: &[&'a OpSummary]) -> Self {
        let published = ops.iter().find_map(|op| op.row.published.as_ref());
        match published {
            _ if !is_interpreted(ops) => Self::Measured,
            Some(published) => Self::Published(&published.place),
            None => Self::Interpreted,
        }
    }

    fn head(&self) -> Vec<(&'static str, Align)> {
        let (op, correct, note) = (("Op", Align::Left), ("Correct", Align::Right), ("Note", Align::Left));
        let best = ("Best kernel", Align::Left);
        let figures = ["Final (ms)", "Speedup", "Geomean"].map(|name| (name, Align::Right));
        match self {
            Self::Measured => [&[op, best][..], &figures, &[correct, note]].concat(),
            Self::Published(_) => [&[op, correct, best][..], &figures, &[note]].concat(),
            Self::Interpreted => {
                vec![op, ("First right kernel", Align::Left), ("Interpreter took", Align::Right), correct, note]
            }
        }
    }
}

/// Returns whose figures they are that stand beside what the interpreter judged.
fn whose(place: &PublishedPlace) -> String {
    let commit = match (&place.revision, place.dirty) {
        (Some(revision), false) => format!(" at {revision}"),
        (Some(revision), true) => format!(" at {revision} with changes"),
        (None, _) => String::new(),
    };
    format!(
        "Correct is what Triton's interpreter says here. Figures were published{commit}, measured on {}, not here:",
        place.name
    )
}

impl OpRow {
    fn cells(&self, shown: &Shown<'_>) -> Vec<String> {
        let told = |value: Option<f64>, written: fn(f64) -> String| value.map_or_else(|| "–".to_owned(), written);
        let figures = |final_ms, speedup, geomean| {
            [told(final_ms, figures::milliseconds), told(speedup, figures::ratio), told(geomean, figures::ratio)]
        };
        let name = |chosen: Option<&String>| chosen.cloned().unwrap_or_else(|| "none".to_owned());
        let (op, correct) =
            (self.op.clone(), format!("{}/{}", self.passed, self.passed + self.rejected + self.skipped));
        match shown {
            Shown::Measured => {
                let figures = figures(self.final_ms, self.speedup, self.geomean_speedup);
                let own = [op, name(self.chosen.as_ref())].into_iter().chain(figures);
                own.chain([correct, self.note.clone()]).collect()
            }
            Shown::Published(_) => {
                let row = self.published.as_ref();
                let told = |figure: fn(&PublishedRow) -> Option<f64>| row.and_then(figure);
                let figures =
                    figures(told(|row| row.final_ms), told(|row| row.speedup), told(|row| row.geomean_speedup));
                let note = row.map_or(NOT_PUBLISHED, |row| row.note.as_str());
                let notes = [note, &self.note].into_iter().filter(|note| !note.is_empty()).collect::<Vec<_>>();
                let own = [op, correct, name(row.and_then(|row| row.chosen.as_ref()))].into_iter().chain(figures);
                own.chain([notes.join("; ")]).collect()
            }
            Shown::Interpreted => {
                let name = name(self.chosen.as_ref());
                vec![op, name, told(self.interpreter_ms, time), correct, self.note.clone()]
            }
        }
    }
}

/// What is said of an op of which nothing is published, beside others.
const NOT_PUBLISHED: &str = "not published";
