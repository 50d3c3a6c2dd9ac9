//! A fault in a file that a person wrote, and how it is shown.
//!
//! It serves ops.yaml and kernel files alike. It does not know what was being read, nor which exit code follows.

use std::fmt;

use crate::foreign::masked;

/// How much of a long line is shown; what lies outside is replaced by `…`.
const EXCERPT_WIDTH: usize = 120;

/// A position in a text: both numbers count from 1, the column in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

/// Something wrong in a file. `Display` gives the whole message without a final newline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file as the reader should find it: relative to the workspace.
    pub file: String,
    /// The line, from 1, where one can be named.
    pub line: Option<u32>,
    /// The column, from 1, in characters.
    pub column: Option<u32>,
    /// Lower case, without a final period.
    pub message: String,
    /// The offending line, whole.
    pub excerpt: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Problem {
    /// Makes a problem of a whole file, for which no line can be named.
    pub fn of_file(file: &str, message: impl Into<String>) -> Problem {
        Problem { file: file.to_owned(), line: None, column: None, message: message.into(), excerpt: None, hint: None }
    }

    /// Returns the problem with a remedy.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Problem {
        self.hint = Some(hint.into());
        self
    }

    /// Returns what problems are ordered by: the file, then the place in it.
    #[must_use]
    pub(crate) fn order(&self) -> (&str, Option<u32>, Option<u32>) {
        (&self.file, self.line, self.column)
    }
}

/// A file's name and lines, from which problems with an excerpt are made.
///
/// Lines end as YAML and Python end them: at a line feed, a carriage return, or both.
pub struct Listing<'text> {
    file: &'text str,
    lines: Vec<&'text str>,
}

impl<'text> Listing<'text> {
    /// Splits `text`, the contents of `file`, into lines.
    #[must_use]
    pub fn new(file: &'text str, text: &'text str) -> Listing<'text> {
        let lines = text
            .split('\n')
            .map(|line| line.strip_suffix('\r').unwrap_or(line))
            .flat_map(|line| line.split('\r'))
            .collect();
        Listing { file, lines }
    }

    /// Makes a problem at `place`, with the line that is there.
    pub fn problem(&self, place: Position, message: impl Into<String>) -> Problem {
        let line = self.lines.get(place.line.saturating_sub(1) as usize);
        Problem {
            line: Some(place.line),
            column: Some(place.column),
            excerpt: line.map(|line| (*line).to_owned()),
            ..Problem::of_file(self.file, message)
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "error: {}", masked(&self.file))?;
        for number in [self.line, self.column].into_iter().flatten() {
            write!(out, ":{number}")?;
        }
        write!(out, ": {}", masked(&self.message))?;
        if let (Some(line), Some(excerpt)) = (self.line, self.excerpt.as_ref().filter(|line| !line.trim().is_empty())) {
            write_excerpt(out, line, self.column, excerpt)?;
        }
        match &self.hint {
            Some(hint) => write!(out, "\nhint: {}", masked(hint)),
            None => Ok(()),
        }
    }
}

/// Writes problems one after another, ordered by place, with an empty line between two of them.
#[must_use]
pub fn render(problems: &[Problem]) -> String {
    let mut ordered: Vec<&Problem> = problems.iter().collect();
    ordered.sort_by_key(|problem| problem.order());
    let messages: Vec<String> = ordered.iter().map(|problem| format!("{problem}\n")).collect();
    messages.join("\n")
}

fn write_excerpt(out: &mut fmt::Formatter<'_>, line: u32, column: Option<u32>, excerpt: &str) -> fmt::Result {
    let number = line.to_string();
    let margin = " ".repeat(number.len());
    let column = column.unwrap_or(1).max(1) as usize;
    let (shown, caret) = window(excerpt, column - 1);
    write!(out, "\n{margin} |\n{number} | {}", shown.trim_end())?;
    // A tab stays a tab above and below, so the caret stands under its character at any tab width.
    let lead: String = shown.chars().take(caret).map(|c| if c == '\t' { c } else { ' ' }).collect();
    write!(out, "\n{margin} | {lead}^")
}

/// Returns the part of `line` around the character `at`, and where `at` lies in it.
fn window(line: &str, at: usize) -> (String, usize) {
    let length = line.chars().count();
    if length <= EXCERPT_WIDTH {
        return (masked(line), at);
    }
    let start = at.saturating_sub(EXCERPT_WIDTH / 2).min(length - EXCERPT_WIDTH);
    let part: String = line.chars().skip(start).take(EXCERPT_WIDTH).collect();
    let left = if start > 0 { "…" } else { "" };
    let right = if start + EXCERPT_WIDTH < length { "…" } else { "" };
    let shown = format!("{left}{}{right}", masked(&part));
    (shown, at - start + left.chars().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str, line: u32, column: u32) -> String {
        Listing::new("ops.yaml", text).problem(Position { line, column }, "wrong").to_string()
    }

    #[test]
    fn a_problem_shows_place_line_and_hint() {
        let listing = Listing::new("ops.yaml", "version: 1\r\nops:\r\n  softmax:\r\n");
        let place = Position { line: 3, column: 3 };
        let problem = listing.problem(place, "op `softmax` has no inputs").with_hint("add `inputs: {input: [M, N]}`");
        let expected = "\
error: ops.yaml:3:3: op `softmax` has no inputs
  |
3 |   softmax:
  |   ^
hint: add `inputs: {input: [M, N]}`";
        assert_eq!(problem.to_string(), expected);
    }

    #[test]
    fn a_problem_of_a_whole_file_has_no_excerpt() {
        assert_eq!(Problem::of_file("ops.yaml", "the file is empty").to_string(), "error: ops.yaml: the file is empty");
    }

    #[test]
    fn the_caret_stands_under_a_character_after_tabs() {
        assert_eq!(at("\tx: y", 1, 5), "error: ops.yaml:1:5: wrong\n  |\n1 | \tx: y\n  | \t   ^");
    }

    #[test]
    fn a_long_line_is_shown_around_its_column() {
        let line = format!("{}HERE{}", "a".repeat(500), "b".repeat(500));
        let shown = at(&line, 1, 501);
        let rows: Vec<&str> = shown.lines().collect();
        let caret = rows[3].find('^').unwrap();
        assert_eq!(rows[2].chars().skip(caret).take(4).collect::<String>(), "HERE");
        assert!(rows[2].chars().count() < 140);
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert!(!at("a\u{1b}[31mb", 1, 1).contains('\u{1b}'));
    }

    #[test]
    fn a_place_outside_the_text_has_no_excerpt() {
        assert_eq!(at("one", 9, 1), "error: ops.yaml:9:1: wrong");
    }

    #[test]
    fn problems_are_printed_in_the_order_of_their_places() {
        let listing = Listing::new("ops.yaml", "a\nb");
        let second = listing.problem(Position { line: 2, column: 1 }, "second");
        let first = listing.problem(Position { line: 1, column: 1 }, "first");
        let expected = "\
error: ops.yaml:1:1: first
  |
1 | a
  | ^

error: ops.yaml:2:1: second
  |
2 | b
  | ^
";
        assert_eq!(render(&[second, first]), expected);
    }
}
