//! The autograd functions of a file, and what applies them.
//!
//! It does not know what they compute, nor those of other files.

use std::collections::BTreeSet;

use ruff_python_ast::visitor::{Visitor, walk_expr};
use ruff_python_ast::{Expr, Stmt, StmtClassDef};
use ruff_python_parser::parse_module;

use crate::bounds;

/// Returns the autograd function with a backward pass that the function or class `name` at module level of the file `text` is, or that its code applies by the name of the class. None where there is none in the
/// file, or where it does not parse.
#[must_use]
pub fn applied(text: &str, name: &str) -> Option<String> {
    let depth = bounds::depth(text);
    if depth > bounds::DEEPEST {
        return None;
    }
    bounds::with_stack(depth, || {
        let parsed = parse_module(text).ok()?;
        let body = &parsed.syntax().body;
        let mut calls = Applications::default();
        for statement in body {
            match statement {
                Stmt::FunctionDef(function) if function.name.as_str() == name => calls.visit_body(&function.body),
                Stmt::ClassDef(class) if class.name.as_str() == name => {
                    calls.found.insert(name.to_owned());
                    calls.visit_body(&class.body);
                }
                _ => {}
            }
        }
        let classes = body.iter().filter_map(|statement| statement.as_class_def_stmt());
        let mut functions = classes.filter(|class| has_backward(class)).map(|class| class.name.to_string());
        functions.find(|function| calls.found.contains(function))
    })
}

fn has_backward(class: &StmtClassDef) -> bool {
    let is_function = |base: &Expr| match base {
        Expr::Name(name) => name.id.as_str() == "Function",
        Expr::Attribute(attribute) => attribute.attr.as_str() == "Function",
        _ => false,
    };
    let is_backward =
        |statement: &Stmt| statement.as_function_def_stmt().is_some_and(|method| method.name.as_str() == "backward");
    class.bases().iter().any(is_function) && class.body.iter().any(is_backward)
}

/// What comes before `.apply` where that is called.
#[derive(Default)]
struct Applications {
    found: BTreeSet<String>,
}

impl Visitor<'_> for Applications {
    fn visit_expr(&mut self, expression: &Expr) {
        if let Expr::Call(call) = expression
            && let Expr::Attribute(called) = call.func.as_ref()
            && called.attr.as_str() == "apply"
            && let Expr::Name(applied) = called.value.as_ref()
        {
            self.found.insert(applied.id.to_string());
        }
        walk_expr(self, expression);
    }
}

#[cfg(test)]
mod tests {
    use super::applied;

    #[test]
    fn what_has_a_backward_pass_is_told_where_it_is_applied_in_the_same_file() {
        let text = "class F(torch.autograd.Function):\n    def forward(ctx, x): pass\n    def backward(ctx, g): pass\n\
            class G(Function):\n    def forward(ctx, x): pass\n\
            class M(Module):\n    def forward(self, x):\n        return F.apply(x)\n\
            def f(x):\n    y = x + 1\n    return (F.apply(y),)\n\
            def g(x):\n    return G.apply(x), H.apply(x), F\n";
        for name in ["F", "M", "f"] {
            assert_eq!(applied(text, name).as_deref(), Some("F"), "{name}");
        }
        for name in ["G", "g", "gone"] {
            assert_eq!(applied(text, name), None, "{name}");
        }
    }
}
