//! The parameters of a function at a file's module level, or of a method of a class there, as it is written.
//!
//! It does not know who calls it, nor what an annotation means.

use ruff_python_ast::{Expr, ParameterWithDefault, Stmt, StmtFunctionDef};
use ruff_python_parser::parse_module;

use crate::bounds;
use crate::statements::bodies;

/// What a name at module level is, as far as its definition says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Defined {
    /// A function with these parameters.
    Function(Vec<Parameter>),
    /// A function that takes whatever it is given (`*args`, `**kwargs`), or some arguments by position alone.
    Open,
    /// A class.
    Class,
}

/// A parameter that may be given by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Its annotation, as written.
    pub annotation: Option<String>,
    /// Its default as written, where it has one.
    pub default: Option<Default>,
    /// Whether it can only be given by its name.
    pub is_keyword_only: bool,
}

/// The default of a parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Default {
    /// A literal, as written: it means the same in any file.
    Literal(String),
    /// Anything else.
    Other,
}

/// Returns what `name` is in the file `text`, or in a class there, as in `Norm.forward`: of several definitions the last. None where a definition at module level says nothing of it, or the file does not parse.
#[must_use]
pub fn defined(text: &str, name: &str) -> Option<Defined> {
    let depth = bounds::depth(text);
    if depth > bounds::DEEPEST {
        return None;
    }
    bounds::with_stack(depth, || {
        let parsed = parse_module(text).ok()?;
        let mut found = None;
        look(&parsed.syntax().body, text, name, &mut found);
        found
    })
}

fn look(body: &[Stmt], text: &str, name: &str, found: &mut Option<Defined>) {
    for statement in body {
        match statement {
            Stmt::FunctionDef(function) if function.name.as_str() == name => *found = Some(of(function, text)),
            Stmt::ClassDef(class) if class.name.as_str() == name => *found = Some(Defined::Class),
            Stmt::ClassDef(class) => {
                if let Some((_, method)) = name.split_once('.').filter(|(of, _)| class.name.as_str() == *of) {
                    look(&class.body, text, method, found);
                }
            }
            Stmt::FunctionDef(_) => {}
            other => bodies(other).into_iter().for_each(|inner| look(inner, text, name, found)),
        }
    }
}

fn of(function: &StmtFunctionDef, text: &str) -> Defined {
    let taken = &function.parameters;
    if taken.vararg.is_some() || taken.kwarg.is_some() || !taken.posonlyargs.is_empty() {
        return Defined::Open;
    }
    let of = |is_keyword_only| move |given: &ParameterWithDefault| parameter(given, text, is_keyword_only);
    Defined::Function(taken.args.iter().map(of(false)).chain(taken.kwonlyargs.iter().map(of(true))).collect())
}

fn parameter(given: &ParameterWithDefault, text: &str, is_keyword_only: bool) -> Parameter {
    let own = &given.parameter;
    let slice = |from: usize, to: usize| text.get(from..to).unwrap_or_default().trim();
    let (named, annotated) = (own.name.range.end().to_usize(), own.range.end().to_usize());
    let annotation = own.annotation.as_ref().map(|_| slice(named, annotated).trim_start_matches(':').trim().to_owned());
    let default = given.default.as_ref().map(|value| {
        let written = slice(annotated, given.range.end().to_usize()).trim_start_matches('=').trim();
        if is_literal(value) { Default::Literal(written.to_owned()) } else { Default::Other }
    });
    Parameter { name: own.name.to_string(), annotation, default, is_keyword_only }
}

fn is_literal(value: &Expr) -> bool {
    match value {
        Expr::UnaryOp(unary) => is_literal(&unary.operand),
        Expr::Tuple(tuple) => tuple.elts.iter().all(is_literal),
        other => other.is_literal_expr(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<(String, Option<String>, Option<Default>, bool)> {
        let Some(Defined::Function(found)) = defined(text, "f") else { panic!("{text}") };
        found.into_iter().map(|one| (one.name, one.annotation, one.default, one.is_keyword_only)).collect()
    }

    #[test]
    fn parameters_are_told_with_annotations_and_defaults_as_written() {
        let text = "EPS = 1\ndef f(\n    x: torch.Tensor,\n    dim: int | None = -1,\n    *,\n    eps: float = EPS,\n    shape=(1, 2),\n):\n    pass\n";
        let literal = |text: &str| Some(Default::Literal(text.to_owned()));
        let text_of = |text: &str| Some(text.to_owned());
        let expected = [
            ("x".to_owned(), text_of("torch.Tensor"), None, false),
            ("dim".to_owned(), text_of("int | None"), literal("-1"), false),
            ("eps".to_owned(), text_of("float"), Some(Default::Other), true),
            ("shape".to_owned(), None, literal("(1, 2)"), true),
        ];
        assert_eq!(names(text), expected);
    }

    #[test]
    fn the_last_definition_counts_and_one_inside_of_another_function_does_not() {
        let text = "def f(a):\n    def f(b): pass\nif x:\n    def f(c): pass\n";
        assert_eq!(names(text)[0].0, "c");
        assert_eq!(defined("class f:\n    pass\n", "f"), Some(Defined::Class));
        assert_eq!(defined("def f(*a): pass\n", "f"), Some(Defined::Open));
        assert_eq!(defined("f = g\n", "f"), None);
        let text = "class C:\n    def f(self, a): pass\n";
        let Some(Defined::Function(method)) = defined(text, "C.f") else { panic!("C.f") };
        assert_eq!((method.len(), defined(text, "f"), defined(text, "C.g")), (2, None, None));
    }
}
