//! The heat map: a cell for each op and variant, with its verdict and its speedup.
//!
//! It judges nothing: verdicts and figures are ranking's. No cell tells anything by its color alone.

use serde::Serialize;

use super::Op;
use super::subjects::figures;
use crate::rank::{PublishedPlace, Status, VariantResult, standing};

/// More variants than this in all stand in columns by their place, not by their name.
const NAMED_COLUMNS: usize = 8;

/// What the heat map shows of a variant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Cell {
    pub(crate) variant: String,
    /// `passed`, `rejected`, `not-judged`, `skipped`, `stale` or `lost`.
    pub(crate) verdict: &'static str,
    pub(crate) mark: &'static str,
    /// The class of a rejection.
    pub(crate) class: Option<String>,
    /// Why, where there is more to say.
    pub(crate) reason: Option<String>,
    pub(crate) speedup: Option<f64>,
    /// The name of its color: `slow2`, `slow1`, `even`, `fast1`, `fast2`; `none` without a speedup.
    pub(crate) level: &'static str,
    pub(crate) unstable: bool,
    pub(crate) chosen: bool,
}

impl Cell {
    /// Returns what the filter finds it by.
    pub(crate) fn words(&self) -> impl Iterator<Item = &'static str> + use<> {
        [Some(self.verdict), self.unstable.then_some("unstable")].into_iter().flatten()
    }
}

/// Returns the cells of an op, in declared order.
pub(crate) fn of(op: &Op<'_>) -> Vec<Cell> {
    let selection = op.own.selection.document();
    let chosen = selection.and_then(|selection| match &selection.published {
        Some(published) => published.chosen.as_ref(),
        None => selection.chosen.as_ref(),
    });
    let cells = op.own.variants.iter().map(|variant| {
        let name = &variant.result.name;
        let figures = selection.and_then(|selection| figures(selection, name));
        let is_stale = op.stale.contains(name);
        Cell {
            speedup: figures.and_then(|figures| figures.speedup),
            level: level(figures.and_then(|figures| figures.speedup)),
            unstable: figures.is_some_and(|figures| figures.unstable),
            chosen: chosen == Some(name),
            ..judged(variant.result, is_stale)
        }
    });
    cells.collect()
}

/// Returns the cell of a variant without figures.
fn judged(result: &VariantResult, is_stale: bool) -> Cell {
    let told = standing(result);
    let (verdict, mark) = match told.status {
        _ if is_stale => ("stale", "…"),
        Status::Passed => ("passed", "✓"),
        Status::Rejected => ("rejected", "✗"),
        Status::NotJudged => ("not-judged", "?"),
        Status::Skipped => ("skipped", "–"),
        Status::Lost => ("lost", "!"),
    };
    Cell {
        variant: result.name.clone(),
        verdict,
        mark,
        class: told.class,
        reason: told.reason,
        speedup: None,
        level: "none",
        unstable: false,
        chosen: false,
    }
}

fn level(speedup: Option<f64>) -> &'static str {
    match speedup {
        None => "none",
        Some(speedup) if speedup < 0.67 => "slow2",
        Some(speedup) if speedup < 0.97 => "slow1",
        Some(speedup) if speedup <= 1.03 => "even",
        Some(speedup) if speedup < 1.5 => "fast1",
        Some(_) => "fast2",
    }
}

/// The heat map.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Matrix {
    /// The headings of its columns.
    pub(crate) columns: Vec<String>,
    /// Whether those are names of variants.
    pub(crate) named: bool,
    rows: Vec<Row>,
}

#[derive(Debug, PartialEq, Serialize)]
struct Row {
    op: String,
    cells: Vec<Option<Cell>>,
}

impl Matrix {
    /// Returns the map of ops and their cells.
    pub(crate) fn of(ops: &[(&str, &[Cell])]) -> Self {
        let mut names: Vec<&str> = Vec::new();
        for cell in ops.iter().flat_map(|(_, cells)| *cells) {
            if !names.contains(&cell.variant.as_str()) {
                names.push(&cell.variant);
            }
        }
        let by_name = names.len() <= NAMED_COLUMNS;
        let most = ops.iter().map(|(_, cells)| cells.len()).max().unwrap_or(0);
        let columns: Vec<String> = if by_name {
            names.iter().map(|name| (*name).to_owned()).collect()
        } else {
            (1..=most).map(|place| place.to_string()).collect()
        };
        let row = |cells: &[Cell]| -> Vec<Option<Cell>> {
            let at = |(place, name): (usize, &String)| {
                let own = if by_name { cells.iter().find(|cell| cell.variant == *name) } else { cells.get(place) };
                own.cloned()
            };
            columns.iter().enumerate().map(at).collect()
        };
        let rows = ops.iter().map(|(op, cells)| Row { op: (*op).to_owned(), cells: row(cells) });
        Self { rows: rows.collect(), named: by_name, columns }
    }
}

/// Returns by which device figures were published, and of which commit.
pub(crate) fn whose(place: &PublishedPlace) -> String {
    match (&place.revision, place.dirty) {
        (Some(revision), false) => format!("{} (published at {revision})", place.name),
        (Some(revision), true) => format!("{} (published at {revision} with changes)", place.name),
        (None, _) => format!("{} (published)", place.name),
    }
}
