//! Expressions of dims, such as `2*N` or `(M+1)//G`, in place of a length in a shape, an init or a kwarg.
//!
//! The grammar is that of `python/t2t_harness/op/expression.py`: integers, names, `+`, `-`, `*`, `//` and brackets. It does not know
//! which dims an op has.

use std::fmt;

use super::Binding;
use super::identifier::is_identifier;

/// How deep brackets may nest.
const DEPTH_LIMIT: usize = 16;

/// How many bytes it may have: each operator is a level of the tree.
const LONGEST: usize = 1000;

/// An expression of dims; a dim alone is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Expression(Tree);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Tree {
    Number(i64),
    Dim(String),
    Of(Operator, Box<Tree>, Box<Tree>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Plus,
    Minus,
    Times,
    Over,
}

impl Expression {
    /// Parses an expression. None if the text is not one, names no dim, or has more than 1000 bytes.
    #[must_use]
    pub(crate) fn parse(text: &str) -> Option<Expression> {
        if text.len() > LONGEST {
            return None;
        }
        let mut reader = Reader { rest: text, depth: 0 };
        let tree = reader.sum()?;
        let is_whole = reader.token().is_none() && reader.rest.trim().is_empty();
        let found = Expression(tree);
        (is_whole && !found.dims().is_empty()).then_some(found)
    }

    /// Returns the dims that it names, in order of appearance.
    #[must_use]
    pub(crate) fn dims(&self) -> Vec<&str> {
        let mut found = Vec::new();
        self.0.dims(&mut found);
        found
    }

    /// Evaluates it for these lengths of dims; None if it names another dim, divides by zero, or overflows.
    #[must_use]
    pub(crate) fn value(&self, binding: &Binding) -> Option<i64> {
        self.0.value(binding)
    }
}

impl Tree {
    fn dims<'tree>(&'tree self, found: &mut Vec<&'tree str>) {
        match self {
            Tree::Number(_) => {}
            Tree::Dim(name) => found.push(name),
            Tree::Of(_, left, right) => {
                left.dims(found);
                right.dims(found);
            }
        }
    }

    fn value(&self, binding: &Binding) -> Option<i64> {
        match self {
            Tree::Number(number) => Some(*number),
            Tree::Dim(name) => i64::try_from(*binding.get(name)?).ok(),
            Tree::Of(operator, left, right) => {
                let (left, right) = (left.value(binding)?, right.value(binding)?);
                match operator {
                    Operator::Plus => left.checked_add(right),
                    Operator::Minus => left.checked_sub(right),
                    Operator::Times => left.checked_mul(right),
                    // Python rounds down, below zero too.
                    Operator::Over => floor_division(left, right),
                }
            }
        }
    }
}

fn floor_division(left: i64, right: i64) -> Option<i64> {
    let quotient = left.checked_div(right)?;
    let is_above = left % right != 0 && (left < 0) != (right < 0);
    Some(if is_above { quotient - 1 } else { quotient })
}

impl Operator {
    fn of(token: &str) -> Option<Operator> {
        match token {
            "+" => Some(Operator::Plus),
            "-" => Some(Operator::Minus),
            "*" => Some(Operator::Times),
            "//" => Some(Operator::Over),
            _ => None,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Operator::Plus => "+",
            Operator::Minus => "-",
            Operator::Times => "*",
            Operator::Over => "//",
        }
    }

    fn is_sum(self) -> bool {
        matches!(self, Operator::Plus | Operator::Minus)
    }
}

/// Written without spaces, and without brackets that say nothing: two ways to write one expression are one text.
impl fmt::Display for Expression {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write(out)
    }
}

impl Tree {
    fn write(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tree::Number(number) => write!(out, "{number}"),
            Tree::Dim(name) => out.write_str(name),
            Tree::Of(operator, left, right) => {
                let is_sum = |tree: &Tree| matches!(tree, Tree::Of(inner, ..) if inner.is_sum());
                left.bracketed(!operator.is_sum() && is_sum(left), out)?;
                out.write_str(operator.text())?;
                right.bracketed(matches!(**right, Tree::Of(..)) && (is_sum(right) || !operator.is_sum()), out)
            }
        }
    }

    fn bracketed(&self, has_brackets: bool, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !has_brackets {
            return self.write(out);
        }
        out.write_str("(")?;
        self.write(out)?;
        out.write_str(")")
    }
}

struct Reader<'text> {
    rest: &'text str,
    depth: usize,
}

impl<'text> Reader<'text> {
    /// Returns the next token, which stays where it is.
    fn token(&self) -> Option<&'text str> {
        let text = self.rest.trim_start_matches([' ', '\t']);
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let first = text.chars().next()?;
        let end = match first {
            _ if is_word(first) => text.find(|c: char| !is_word(c)).unwrap_or(text.len()),
            '/' if text.starts_with("//") => 2,
            '+' | '-' | '*' | '(' | ')' => 1,
            _ => return None,
        };
        text.get(..end)
    }

    fn take(&mut self, token: &str) {
        let text = self.rest.trim_start_matches([' ', '\t']);
        self.rest = &text[token.len()..];
    }

    fn sum(&mut self) -> Option<Tree> {
        let mut left = self.product()?;
        while let Some(operator) = self.operator(Operator::is_sum) {
            left = Tree::Of(operator, Box::new(left), Box::new(self.product()?));
        }
        Some(left)
    }

    fn product(&mut self) -> Option<Tree> {
        let mut left = self.atom()?;
        while let Some(operator) = self.operator(|operator| !operator.is_sum()) {
            left = Tree::Of(operator, Box::new(left), Box::new(self.atom()?));
        }
        Some(left)
    }

    fn operator(&mut self, is_wanted: impl Fn(Operator) -> bool) -> Option<Operator> {
        let token = self.token()?;
        let operator = Operator::of(token).filter(|operator| is_wanted(*operator))?;
        self.take(token);
        Some(operator)
    }

    fn atom(&mut self) -> Option<Tree> {
        let token = self.token()?;
        self.take(token);
        if token != "(" {
            let number = || token.chars().all(|c| c.is_ascii_digit()).then(|| token.parse().ok().map(Tree::Number));
            return number().unwrap_or_else(|| is_identifier(token).then(|| Tree::Dim(token.to_owned())));
        }
        self.depth += 1;
        let inner = (self.depth <= DEPTH_LIMIT).then(|| self.sum()).flatten()?;
        self.depth -= 1;
        let close = self.token().filter(|token| *token == ")")?;
        self.take(close);
        Some(inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> Option<String> {
        Expression::parse(text).map(|found| found.to_string())
    }

    #[test]
    fn a_long_one_is_none() {
        assert_eq!(written(&format!("N{}", "+1".repeat(300_000))), None);
        assert!(written(&format!("N{}", "+1".repeat(400))).is_some());
    }

    #[test]
    fn an_expression_has_one_text() {
        for (text, expected) in [
            ("N", "N"),
            ("2 * N", "2*N"),
            ("N //G", "N//G"),
            ("(M + 1) * N", "(M+1)*N"),
            ("((M*N))", "M*N"),
            ("M - (N - 1)", "M-(N-1)"),
            ("M - N*2 + 1", "M-N*2+1"),
            ("M*(N//G)", "M*(N//G)"),
        ] {
            assert_eq!(written(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_expression_of_dims_is_none() {
        for text in
            ["", "2", "2*3", "N*", "*N", "N N", "2N", "N/2", "N.shape", "f(N)", "N**2", "-N", "(N", "N)", "ij,jk"]
        {
            assert_eq!(written(text), None, "{text}");
        }
        assert_eq!(written(&format!("{}N{}", "(".repeat(20), ")".repeat(20))), None);
    }

    #[test]
    fn values_are_pythons() {
        let binding = Binding::from([("M".to_owned(), 7), ("N".to_owned(), 3)]);
        for (text, value) in
            [("M//N", Some(2)), ("(N-M)//2", Some(-2)), ("M-2*N", Some(1)), ("M//(N-3)", None), ("K", None)]
        {
            assert_eq!(Expression::parse(text).unwrap().value(&binding), value, "{text}");
        }
        assert_eq!(Expression::parse("M*9223372036854775807").unwrap().value(&binding), None);
    }
}
