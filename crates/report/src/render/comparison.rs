//! A comparison as lines for a terminal.
//!
//! It judges nothing.

use crate::compare::{Comparison, Row, Verdict};
use crate::figures;
use crate::render::table::{Align, Table};

/// Which figures a table has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// Those that are faster or slower.
    Changes,
    /// All of them.
    All,
}

/// Returns the sides, the table of figures, what could not be compared, and the count of all verdicts. `width` is the terminal's.
#[must_use]
pub fn text(comparison: &Comparison, shown: Shown, width: Option<usize>) -> String {
    let [a, b] = &comparison.names;
    let mut text = format!("A  {a}\nB  {b}\nRatios are A's time over B's: above 1, B is faster.\n\n");
    let is_change = |row: &&Row| row.is_regression || matches!(row.verdict, Verdict::Faster | Verdict::Slower);
    let rows: Vec<&Row> = comparison.rows.iter().filter(|row| shown == Shown::All || is_change(row)).collect();
    if !rows.is_empty() {
        text += &table(&rows).text(width);
        text += "\n";
    }
    for (side, name) in comparison.only.iter().zip(["A", "B"]) {
        if !side.is_empty() {
            text += &format!("only in {name}: {}\n", side.join(", "));
        }
    }
    for (what, why) in &comparison.incomparable {
        text += &format!("not compared: {what}: {why}\n");
    }
    let left_out = comparison.rows.len() - rows.len();
    if left_out > 0 {
        text += &format!("not shown: {left_out} that are the same or unstable; `--all` shows them\n");
    }
    text + &closing(comparison)
}

fn table(rows: &[&Row]) -> Table {
    let mut table = Table::new(&[
        ("Op", Align::Left),
        ("Variant", Align::Left),
        ("Size", Align::Left),
        ("A (ms)", Align::Right),
        ("B (ms)", Align::Right),
        ("Ratio", Align::Right),
        ("95 %", Align::Right),
        ("Torch", Align::Right),
        ("Verdict", Align::Left),
    ]);
    for row in rows {
        table.push(vec![
            row.op.clone(),
            variant(row),
            row.size.clone(),
            figures::milliseconds(row.ms[0]),
            figures::milliseconds(row.ms[1]),
            figures::ratio(row.ratio),
            row.interval.map_or_else(|| "–".to_owned(), |interval| interval.to_string()),
            row.torch.map_or_else(|| "–".to_owned(), figures::ratio),
            if row.is_regression { format!("{}, a regression", row.verdict) } else { row.verdict.to_string() },
        ]);
    }
    table
}

fn variant(row: &Row) -> String {
    let [ours, theirs] = &row.variants;
    let name = if ours == theirs { ours.clone() } else { format!("{ours} → {theirs}") };
    if row.selected { format!("{name} *") } else { name }
}

fn closing(comparison: &Comparison) -> String {
    let counts = [Verdict::Faster, Verdict::Slower, Verdict::Same, Verdict::Unstable];
    let counts: Vec<String> =
        counts.iter().map(|verdict| format!("{} {verdict}", comparison.count(*verdict))).collect();
    let regressions = match comparison.regressions() {
        0 => "no regression".to_owned(),
        1 => "1 regression".to_owned(),
        many => format!("{many} regressions"),
    };
    let star = if comparison.rows.iter().any(|row| row.selected) { "; * is selected" } else { "" };
    format!("{}; {regressions} beyond {}{star}\n", counts.join(", "), figures::percent(comparison.threshold))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rank::bootstrap::Interval;

    #[test]
    fn a_comparison_is_told_line_by_line() {
        let row = |variants: [&str; 2], ratio: f64, is_regression: bool| Row {
            op: "softmax".to_owned(),
            variants: variants.map(str::to_owned),
            selected: variants[0] != variants[1],
            size: "small".to_owned(),
            ms: [1.0, 1.0 / ratio],
            ratio,
            interval: (!is_regression).then_some(Interval { low: ratio - 0.01, high: ratio + 0.01 }),
            torch: Some(1.0),
            verdict: if ratio > 1.0 { Verdict::Faster } else { Verdict::Slower },
            is_regression,
        };
        let comparison = Comparison {
            names: ["one".to_owned(), "two".to_owned()],
            threshold: 0.05,
            rows: vec![row(["v1", "v1"], 0.5, true), row(["v1", "v2"], 1.25, false)],
            only: [vec!["add".to_owned()], vec![]],
            incomparable: vec![("softmax/v3".to_owned(), "the clocks differ".to_owned())],
        };
        let expected = "\
A  one
B  two
Ratios are A's time over B's: above 1, B is faster.

Op       Variant    Size   A (ms)  B (ms)  Ratio       95 %  Torch  Verdict
───────  ─────────  ─────  ──────  ──────  ─────  ─────────  ─────  ────────────────────
softmax  v1         small   1.000   2.000  0.50x          –  1.00x  slower, a regression
softmax  v1 → v2 *  small   1.000  0.8000  1.25x  1.24–1.26  1.00x  faster

only in A: add
not compared: softmax/v3: the clocks differ
1 faster, 1 slower, 0 same, 0 unstable; 1 regression beyond 5 %; * is selected
";
        assert_eq!(text(&comparison, Shown::Changes, None), expected);
        let mut same = comparison.clone();
        same.rows.iter_mut().for_each(|row| (row.verdict, row.is_regression) = (Verdict::Same, false));
        let told = text(&same, Shown::Changes, None);
        assert!(told.contains("not shown: 2 that are the same or unstable; `--all` shows them\n0 faster"), "{told}");
        assert!(!told.contains("v1") && text(&same, Shown::All, None).contains("v1 → v2"), "{told}");
    }
}
