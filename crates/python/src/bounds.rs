//! How long and how deep a Python file may be. The parser, and whatever walks or drops a tree, calls itself once for each level.
//!
//! The depth is counted from the tokens, before there is a tree. It does not know the tree: its count is never less than the tree's depth, and may be more.

use ruff_python_ast::token::TokenKind;
use ruff_python_parser::Mode;
use ruff_python_parser::lexer::lex;

/// How many bytes a file may have.
pub(crate) const LONGEST: usize = 4 << 20;

/// How deep the syntax may nest: brackets, blocks and operators within one another. Python itself gives up at 200 brackets and 100 blocks.
pub const DEEPEST: usize = 1000;

/// Up to which depth any stack will do.
const SHALLOW: usize = 32;

/// Enough for a tree of [`DEEPEST`] levels, in the largest frames that a build without optimization makes.
const STACK: usize = 64 << 20;

/// Runs `walk`, which parses, walks and drops a tree of `depth` levels, on a stack that is large enough.
pub fn with_stack<T>(depth: usize, walk: impl FnOnce() -> T) -> T {
    if depth <= SHALLOW { walk() } else { stacker::grow(STACK, walk) }
}

/// Returns how deep the module `text` nests, at most. Beyond [`DEEPEST`] nothing is counted.
#[must_use]
pub(crate) fn depth(text: &str) -> usize {
    depth_in(text, Mode::Module)
}

/// Returns how deep the expression `text` nests, at most. Beyond [`DEEPEST`] nothing is counted.
#[must_use]
pub fn depth_of_expression(text: &str) -> usize {
    depth_in(text, Mode::Expression)
}

/// Returns where `text`, which nests deeper than [`DEEPEST`], does so first, as an offset in bytes.
#[must_use]
pub(crate) fn first_beyond(text: &str) -> usize {
    // The lexer keeps its places to itself. A beginning of the text is deep enough or not, and a longer one is no less deep.
    let (mut fits, mut beyond) = (0, text.len());
    while beyond - fits > 1 {
        let middle = fits.midpoint(beyond);
        let start = &text[..text.floor_char_boundary(middle)];
        if depth(start) > DEEPEST { beyond = middle } else { fits = middle }
    }
    text.floor_char_boundary(fits)
}

fn depth_in(text: &str, mode: Mode) -> usize {
    let mut lexer = lex(text, mode);
    let mut nesting = Nesting::default();
    while nesting.deepest <= DEEPEST {
        match lexer.next_token() {
            TokenKind::EndOfFile => break,
            token => nesting.take(token),
        }
    }
    nesting.deepest
}

/// The levels that are open at a token.
#[derive(Default)]
struct Nesting {
    blocks: usize,
    /// What lies in the bracket that was opened last, or in none.
    here: Stretch,
    around: Vec<Stretch>,
    deepest: usize,
}

/// What lies between two brackets, up to a token. Whatever nests in it has a token of its own for each level.
#[derive(Default, Clone, Copy)]
struct Stretch {
    /// How many levels lie around it.
    start: usize,
    /// How many levels there may be up to here.
    depth: usize,
    /// Lambdas whose parameters have not ended: commas between those end nothing.
    lambdas: usize,
}

impl Nesting {
    fn take(&mut self, token: TokenKind) {
        match token {
            TokenKind::Indent => self.blocks += 1,
            TokenKind::Dedent => self.blocks = self.blocks.saturating_sub(1),
            TokenKind::Newline | TokenKind::Semi => self.end_statement(),
            TokenKind::Lpar | TokenKind::Lsqb | TokenKind::Lbrace => self.open(),
            TokenKind::Rpar | TokenKind::Rsqb | TokenKind::Rbrace => self.close(),
            TokenKind::Comma if self.here.lambdas == 0 => self.here.depth = self.here.start,
            token => self.pass(token),
        }
        self.deepest = self.deepest.max(self.blocks + self.here.depth);
    }

    fn pass(&mut self, token: TokenKind) {
        match token {
            TokenKind::Lambda => self.here.lambdas += 1,
            TokenKind::Colon => self.here.lambdas = self.here.lambdas.saturating_sub(1),
            _ => {}
        }
        self.here.depth += usize::from(!is_leaf(token));
    }

    fn open(&mut self) {
        let depth = self.here.depth + 1;
        self.around.push(Stretch { depth, ..self.here });
        self.here = Stretch { start: depth, depth, lambdas: 0 };
    }

    fn close(&mut self) {
        self.here = self.around.pop().unwrap_or(self.here);
    }

    fn end_statement(&mut self) {
        // In a bracket that is not closed nothing ends.
        if self.around.is_empty() {
            self.here = Stretch::default();
        }
    }
}

/// Returns whether nothing nests by this token.
fn is_leaf(token: TokenKind) -> bool {
    use TokenKind as Is;
    let is_text = matches!(token, Is::String | Is::FStringMiddle | Is::FStringEnd | Is::TStringMiddle | Is::TStringEnd);
    let is_value = matches!(token, Is::Name | Is::Int | Is::Float | Is::Complex | Is::True | Is::False | Is::None);
    is_text || is_value || matches!(token, Is::Comment | Is::NonLogicalNewline | Is::Comma | Is::Ellipsis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_counts_once_for_each_token_that_makes_one() {
        for (text, expected) in [
            ("x", 0),
            ("-x", 1),
            ("[[[x]]]", 3),
            ("[-x, -x, -x]", 2),
            ("f(-x) + f(-x)", 4),
            ("lambda a, b: lambda c, d: x", 4),
            ("[lambda a: x, lambda a: x, lambda a: x]", 3),
            ("if x:\n  if y:\n    z\n", 3),
            ("-x\n-x\n-x; -x", 1),
            ("x[(1, 2)](3)", 2),
        ] {
            assert_eq!(depth(text), expected, "{text}");
        }
    }

    #[test]
    fn commas_of_parameters_end_no_lambda() {
        assert!(depth(&format!("x = {}1", "lambda a, b: ".repeat(DEEPEST))) > DEEPEST);
    }

    #[test]
    fn the_place_is_where_it_gets_too_deep() {
        let text = format!("x = 1\n{}1", "-".repeat(5000));
        assert_eq!(first_beyond(&text), "x = 1\n".len() + DEEPEST);
    }

    #[test]
    fn many_shallow_lines_are_shallow() {
        assert!(depth(&"x = f(a + b, [c, d]) if e else -g\n".repeat(10_000)) < 20);
    }
}
