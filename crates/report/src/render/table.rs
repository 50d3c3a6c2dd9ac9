//! A table of plain text for a terminal: aligned columns, no wider than it is told.
//!
//! It does not know what the cells say. Widths are those of a terminal, where `✅` and Korean letters take two columns.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// What stands between two columns.
const GAP: &str = "  ";

/// No column is made narrower than this.
const NARROWEST: usize = 6;

/// A column of text that would be narrower than this, and than what it holds, stands under its row instead.
const READABLE: usize = 12;

/// To which side a column leans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// A table: a heading and a side for each column, and rows of as many cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    columns: Vec<(&'static str, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Returns a table without rows.
    #[must_use]
    pub(crate) fn new(columns: &[(&'static str, Align)]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// Adds a row.
    ///
    /// # Panics
    /// Where it has not one cell a column.
    pub(crate) fn push(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.columns.len(), "a row has one cell a column");
        self.rows.push(cells);
    }

    /// Returns the table as lines at most `width` columns wide, as far as its columns can shrink. The columns that do not fit stand under their row, each with its
    /// heading. None: as wide as it likes.
    #[must_use]
    pub(crate) fn text(&self, width: Option<usize>) -> String {
        let shown = width.map_or(self.columns.len(), |width| self.fitting(width));
        let widths = self.widths(shown, width);
        let headings: Vec<String> = self.columns.iter().map(|(heading, _)| (*heading).to_owned()).collect();
        let rule: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
        let head = [&headings, &rule].into_iter().map(|cells| self.line(cells, &widths) + "\n");
        let row = |cells: &Vec<String>| format!("{}\n{}", self.line(cells, &widths), self.rest(cells, shown, width));
        head.chain(self.rows.iter().map(row)).collect()
    }

    /// Returns how many columns, from the first on, fit into a width; one at least.
    fn fitting(&self, width: usize) -> usize {
        let natural = self.natural();
        let least = |at: usize| match self.columns[at].1 {
            Align::Left => natural[at].min(READABLE),
            Align::Right => natural[at],
        };
        let needed = |columns: usize| (0..columns).map(least).sum::<usize>() + GAP.len() * columns.saturating_sub(1);
        (1..=self.columns.len()).rev().find(|columns| needed(*columns) <= width).unwrap_or(1)
    }

    /// Returns what of a row does not stand in its line, as lines that begin further in.
    fn rest(&self, cells: &[String], shown: usize, width: Option<usize>) -> String {
        let told = self.columns.iter().zip(cells).skip(shown).filter(|(_, cell)| !cell.is_empty());
        let told: Vec<String> = told.map(|((heading, _), cell)| format!("{heading} {cell}")).collect();
        let mut lines: Vec<String> = Vec::new();
        for word in told.join(", ").split_whitespace() {
            match lines.last_mut().filter(|line| line.width() + 1 + word.width() <= width.unwrap_or(usize::MAX)) {
                Some(line) => *line += &format!(" {word}"),
                None => lines.push(format!("{GAP}{word}")),
            }
        }
        lines.into_iter().map(|line| line + "\n").collect()
    }

    /// Returns how wide each column likes to be.
    fn natural(&self) -> Vec<usize> {
        let widest = |at: usize| self.rows.iter().map(|row| row[at].width()).max().unwrap_or(0);
        self.columns.iter().enumerate().map(|(at, (heading, _))| heading.width().max(widest(at))).collect()
    }

    /// Returns the widths of the first `shown` columns.
    fn widths(&self, shown: usize, limit: Option<usize>) -> Vec<usize> {
        let mut widths = self.natural();
        widths.truncate(shown);
        let gaps = GAP.len() * shown.saturating_sub(1);
        let room = limit.unwrap_or(usize::MAX).saturating_sub(gaps);
        while widths.iter().sum::<usize>() > room {
            let Some(widest) = self.widest_text(&widths) else { break };
            widths[widest] -= 1;
        }
        widths
    }

    /// Returns the widest column of text that can still shrink: a number cut short would be another number.
    fn widest_text(&self, widths: &[usize]) -> Option<usize> {
        let columns = self.columns.iter().take(widths.len()).enumerate();
        let texts = columns.filter(|(_, (_, align))| *align == Align::Left).map(|(at, _)| at);
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

    #[test]
    fn what_does_not_fit_stands_under_its_row() {
        let told = table().text(Some(30));
        assert_eq!(
            told,
            "Op          Final (ms)\n\
             ──────────  ──────────\n\
             softmax        0.01235\n  Note ties with `v2_tiling`\n\
             소프트맥스         1.5\n  Note ✅\n"
        );
        assert!(told.lines().all(|line| line.width() <= 30), "{told}");
    }
}
