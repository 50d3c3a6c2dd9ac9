//! What the statements of a file say: its docstring, the names that it binds, its imports; and the statements without docstrings.
//!
//! It does not know what names and imports lead to.

use ruff_python_ast::{Expr, Stmt, Suite};
use serde::{Deserialize, Serialize};

/// An import, as written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Import {
    /// How many dots stand before the module.
    pub(crate) level: u32,
    /// The module, empty in `from . import x`.
    pub(crate) module: String,
    /// The name taken from it, which may be a module itself.
    pub(crate) name: Option<String>,
}

/// Which imports of a file are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    /// All, whether they run or not.
    All,
    /// Those that may run: not those for type checkers alone.
    Run,
}

/// Returns the string that a body begins with.
pub(crate) fn docstring_of(body: &[Stmt]) -> Option<String> {
    let Stmt::Expr(first) = body.first()? else { return None };
    let Expr::StringLiteral(text) = &*first.value else { return None };
    // Python reads each end of a line as `\n`.
    Some(text.value.to_str().replace("\r\n", "\n").replace('\r', "\n"))
}

/// Adds the names bound at module level, also under `if` and `try`: those of functions and classes to `callables`, others to `names`.
pub(crate) fn collect_names(body: &[Stmt], callables: &mut Vec<String>, names: &mut Vec<String>) {
    for statement in body {
        match statement {
            Stmt::FunctionDef(function) => callables.push(function.name.to_string()),
            Stmt::ClassDef(class) => callables.push(class.name.to_string()),
            Stmt::Assign(assign) => names.extend(assign.targets.iter().filter_map(assigned)),
            Stmt::AnnAssign(assign) => names.extend(assigned(&assign.target)),
            Stmt::ImportFrom(import) => {
                names.extend(import.names.iter().map(|alias| alias.asname.as_ref().unwrap_or(&alias.name).to_string()));
            }
            other => bodies(other).into_iter().for_each(|inner| collect_names(inner, callables, names)),
        }
    }
}

fn assigned(target: &Expr) -> Option<String> {
    target.as_name_expr().map(|name| name.id.to_string())
}

/// Adds the imports at every depth to `into`: one in a function is read when the function runs.
pub(crate) fn collect_imports(body: &[Stmt], told: Told, into: &mut Vec<Import>) {
    for statement in body {
        match statement {
            Stmt::Import(import) => into.extend(import.names.iter().map(|alias| Import {
                level: 0,
                module: alias.name.to_string(),
                name: None,
            })),
            Stmt::ImportFrom(import) => into.extend(import.names.iter().map(|alias| Import {
                level: import.level,
                module: import.module.as_ref().map(ToString::to_string).unwrap_or_default(),
                name: Some(alias.name.to_string()),
            })),
            _ => {}
        }
        // The first body of an `if` is that of its test; the others run where it fails.
        let skipped = usize::from(told == Told::Run && is_for_types(statement));
        for inner in bodies(statement).into_iter().skip(skipped) {
            collect_imports(inner, told, into);
        }
    }
}

/// Returns whether a statement is `if TYPE_CHECKING:` or `if typing.TYPE_CHECKING:`.
fn is_for_types(statement: &Stmt) -> bool {
    let Stmt::If(choice) = statement else { return false };
    match &*choice.test {
        Expr::Name(name) => name.id == "TYPE_CHECKING",
        Expr::Attribute(of) => {
            of.attr.as_str() == "TYPE_CHECKING" && of.value.as_name_expr().is_some_and(|module| module.id == "typing")
        }
        _ => false,
    }
}

/// Returns the bodies of a statement, in order.
pub(crate) fn bodies(statement: &Stmt) -> Vec<&[Stmt]> {
    match statement {
        Stmt::FunctionDef(function) => vec![&function.body],
        Stmt::ClassDef(class) => vec![&class.body],
        Stmt::For(each) => vec![&each.body, &each.orelse],
        Stmt::While(each) => vec![&each.body, &each.orelse],
        Stmt::With(with) => vec![&with.body],
        Stmt::If(choice) => {
            let clauses = choice.elif_else_clauses.iter().map(|clause| &*clause.body);
            std::iter::once(&*choice.body).chain(clauses).collect()
        }
        Stmt::Try(attempt) => {
            let handlers = attempt.handlers.iter().map(|handler| {
                let ruff_python_ast::ExceptHandler::ExceptHandler(handler) = handler;
                &*handler.body
            });
            [&*attempt.body, &*attempt.orelse, &*attempt.finalbody].into_iter().chain(handlers).collect()
        }
        Stmt::Match(choice) => choice.cases.iter().map(|case| &*case.body).collect(),
        _ => Vec::new(),
    }
}

/// Takes the docstrings of a body away, and of all functions and classes in it.
pub(crate) fn drop_docstrings(body: &mut Suite) {
    if docstring_of(body).is_some() {
        body.remove(0);
    }
    drop_inner_docstrings(body);
}

/// A string at the head of an `if` or a loop is no docstring, but a function inside may have one.
fn drop_inner_docstrings(body: &mut [Stmt]) {
    for statement in body {
        match statement {
            Stmt::FunctionDef(function) => drop_docstrings(&mut function.body),
            Stmt::ClassDef(class) => drop_docstrings(&mut class.body),
            Stmt::For(each) => drop_in([&mut each.body, &mut each.orelse]),
            Stmt::While(each) => drop_in([&mut each.body, &mut each.orelse]),
            Stmt::With(with) => drop_inner_docstrings(&mut with.body),
            Stmt::If(choice) => {
                drop_inner_docstrings(&mut choice.body);
                choice.elif_else_clauses.iter_mut().for_each(|clause| drop_inner_docstrings(&mut clause.body));
            }
            Stmt::Try(attempt) => {
                drop_in([&mut attempt.body, &mut attempt.orelse, &mut attempt.finalbody]);
                for handler in &mut attempt.handlers {
                    let ruff_python_ast::ExceptHandler::ExceptHandler(handler) = handler;
                    drop_inner_docstrings(&mut handler.body);
                }
            }
            Stmt::Match(choice) => choice.cases.iter_mut().for_each(|case| drop_inner_docstrings(&mut case.body)),
            _ => {}
        }
    }
}

fn drop_in<const N: usize>(bodies: [&mut Suite; N]) {
    for body in bodies {
        drop_inner_docstrings(body);
    }
}
