//! A table of plain text for a terminal: aligned columns, no wider than it is told.
//!
//! It does not know what the cells say. Widths are those of a terminal, where `✅` and Korean letters take two columns.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// What stands between two columns.
const GAP: &str = "  ";

/// No column is made narrower than this.
const NARROWEST: usize = 6;

/// To which side a column leans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// A table: a heading and a side for each column, and rows of as many cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    columns: Vec<(&'static str, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Returns a table without rows.
    #[must_use]
    pub fn new(columns: &[(&'static str, Align)]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// Adds a row.
    ///
    /// # Panics
    /// Where it has not one cell a column.
    pub fn push(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.columns.len(), "a row has one cell a column");
        self.rows.push(cells);
    }

    /// Returns the table as lines at most `width` columns wide, as far as its columns can shrink. None: as wide as it likes.
    #[must_use]
    pub fn text(&self, width: Option<usize>) -> String {
        let widths = self.widths(width);
        let headings: Vec<String> = self.columns.iter().map(|(heading, _)| (*heading).to_owned()).collect();
        let rule: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
        let lines = [&headings, &rule].into_iter().chain(&self.rows).map(|cells| self.line(cells, &widths));
        lines.map(|line| line + "\n").collect()
    }

    fn widths(&self, limit: Option<usize>) -> Vec<usize> {
        let widest = |at: usize| self.rows.iter().map(|row| row[at].width()).max().unwrap_or(0);
        let mut widths: Vec<usize> =
            self.columns.iter().enumerate().map(|(at, (heading, _))| heading.width().max(widest(at))).collect();
        let gaps = GAP.len() * self.columns.len().saturating_sub(1);
        let room = limit.unwrap_or(usize::MAX).saturating_sub(gaps);
        while widths.iter().sum::<usize>() > room {
            let Some(widest) = self.widest_text(&widths) else { break };
            widths[widest] -= 1;
        }
        widths
    }

    /// Returns the widest column of text that can still shrink: a number cut short would be another number.
    fn widest_text(&self, widths: &[usize]) -> Option<usize> {
        let texts = self.columns.iter().enumerate().filter(|(_, (_, align))| *align == Align::Left).map(|(at, _)| at);
        texts.filter(|at| widths[*at] > NARROWEST).max_by_key(|at| widths[*at])
    }

    fn line(&self, cells: &[String], widths: &[usize]) -> String {
        let cells = cells.iter().zip(widths).zip(&self.columns);
        let cells: Vec<String> = cells.map(|((cell, width), (_, align))| fit(cell, *width, *align)).collect();
        cells.join(GAP).trim_end().to_owned()
    }
}

fn fit(cell: &str, width: usize, align: Align) -> String {
    let cell = cut(cell, width);
    let spaces = " ".repeat(width.saturating_sub(cell.width()));
    match align {
        Align::Left => cell + &spaces,
        Align::Right => spaces + &cell,
    }
}

fn cut(cell: &str, width: usize) -> String {
    if cell.width() <= width {
        return cell.to_owned();
    }
    let mut kept = String::new();
    for letter in cell.chars() {
        if kept.width() + letter.width().unwrap_or(0) >= width {
            break;
        }
        kept.push(letter);
    }
    kept + "…"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&[("Op", Align::Left), ("Final (ms)", Align::Right), ("Note", Align::Left)]);
        table.push(vec!["softmax".into(), "0.01235".into(), "ties with `v2_tiling`".into()]);
        table.push(vec!["소프트맥스".into(), "1.5".into(), "✅".into()]);
        table
    }

    #[test]
    fn columns_line_up_where_letters_are_wide() {
        assert_eq!(
            table().text(None),
            "Op          Final (ms)  Note\n\
             ──────────  ──────────  ─────────────────────\n\
             softmax        0.01235  ties with `v2_tiling`\n\
             소프트맥스         1.5  ✅\n"
        );
    }

    #[test]
    fn a_narrow_terminal_cuts_text_and_never_numbers() {
        assert_eq!(
            table().text(Some(36)),
            "Op          Final (ms)  Note\n\
             ──────────  ──────────  ────────────\n\
             softmax        0.01235  ties with `…\n\
             소프트맥스         1.5  ✅\n"
        );
        assert!(table().text(Some(1)).contains("0.01235"));
    }
}
