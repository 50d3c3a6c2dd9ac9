//! Two versions of a kernel beside each other, for a terminal: a line for each size.
//!
//! It compares nothing: what an interval tells, the document says.

use t2t_protocol::{Against, AgainstSize, AgainstVerdict};

use crate::figures;
use crate::render::sizes;
use crate::render::table::{Align, Table};

/// Returns the table of the kernel at `place` against its version `other`, small sizes first.
#[must_use]
pub fn text(place: &str, other: &str, found: &Against, width: Option<usize>) -> String {
    let mut table = Table::new(&[
        ("Size", Align::Left),
        ("Present (ms)", Align::Right),
        ("Other (ms)", Align::Right),
        ("Other / present", Align::Right),
        ("Interval", Align::Right),
        ("The present one is", Align::Left),
    ]);
    for name in sizes::ordered(found.sizes.iter().map(|(name, size)| (name, &size.binding))) {
        table.push(row(&name, &found.sizes[&name]));
    }
    let percent = 100.0 * (1.0 - found.error);
    format!("{place} against {other}: {} pairs of runs, {percent:.0} % intervals\n{}", found.pairs, table.text(width))
}

fn row(name: &str, size: &AgainstSize) -> Vec<String> {
    let interval = format!("{}–{}", figures::ratio(size.low), figures::ratio(size.high));
    let verdict = match size.verdict {
        AgainstVerdict::Faster => "faster",
        AgainstVerdict::Slower => "slower",
        AgainstVerdict::Same => "as fast, within 1 %",
        AgainstVerdict::Open => "not told apart",
    };
    let [present, other] = [size.present_ms, size.other_ms].map(figures::milliseconds);
    vec![name.to_owned(), present, other, figures::ratio(size.ratio), interval, verdict.to_owned()]
}
