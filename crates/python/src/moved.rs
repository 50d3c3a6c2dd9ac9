//! A Python file whose absolute imports become relative ones: all other bytes stay.
//!
//! It does not know where modules lie, nor where they go.

use ruff_python_ast::{Stmt, StmtImport, StmtImportFrom};
use ruff_python_parser::parse_module;

use crate::bounds;
use crate::statements::bodies;

/// A part of a text, by its bytes, and what stands there afterwards.
type Edit = (usize, usize, String);

/// Returns `text` with the modules that it imports absolutely under the names that `place` gives them, which begin with a dot; None of `place` leaves a module as it is.
///
/// `import a.b` still binds `a`, and `_a_b` beside it. Returns None where the text does not parse, or nests too deep.
#[must_use]
pub fn moved(text: &str, place: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let depth = bounds::depth(text);
    if depth > bounds::DEEPEST {
        return None;
    }
    let mut edits = bounds::with_stack(depth, || {
        let parsed = parse_module(text).ok()?;
        let mut edits = Vec::new();
        collect(text, &parsed.syntax().body, place, &mut edits);
        Some(edits)
    })?;
    edits.sort();
    let mut moved = String::with_capacity(text.len());
    let mut at = 0;
    for (start, end, new) in edits {
        moved.push_str(&text[at..start]);
        moved.push_str(&new);
        at = end;
    }
    moved.push_str(&text[at..]);
    Some(moved)
}

fn collect(text: &str, body: &[Stmt], place: &dyn Fn(&str) -> Option<String>, edits: &mut Vec<Edit>) {
    for statement in body {
        match statement {
            Stmt::Import(import) => edits.extend(of_import(text, import, place)),
            Stmt::ImportFrom(import) => edits.extend(of_import_from(import, place)),
            _ => {}
        }
        for inner in bodies(statement) {
            collect(text, inner, place, edits);
        }
    }
}

/// Returns the statements that stand in the place of one. None where it imports nothing that moved.
fn of_import(text: &str, import: &StmtImport, place: &dyn Fn(&str) -> Option<String>) -> Option<Edit> {
    let mut is_moved = false;
    let mut parts = Vec::new();
    for alias in &import.names {
        let module = alias.name.as_str();
        let first = module.split('.').next().unwrap_or_default();
        // Without `as` the import binds the first part, which knows the others once they are imported.
        let binds_first = alias.asname.is_none() && first != module;
        let bound = alias.asname.as_ref().map_or(first, |name| name.as_str());
        match (place(module), place(first).filter(|_| binds_first)) {
            (Some(new), Some(package)) => {
                parts.push(relative(&new, &format!("_{}", module.replace('.', "_"))));
                parts.push(relative(&package, bound));
            }
            (Some(new), None) if !binds_first => parts.push(relative(&new, bound)),
            _ => {
                let (start, end) = (alias.range.start().to_usize(), alias.range.end().to_usize());
                match parts.last_mut().filter(|last| last.starts_with("import ")) {
                    Some(last) => *last += &format!(", {}", &text[start..end]),
                    None => parts.push(format!("import {}", &text[start..end])),
                }
                continue;
            }
        }
        is_moved = true;
    }
    is_moved.then(|| (import.range.start().to_usize(), import.range.end().to_usize(), parts.join("; ")))
}

/// Returns the import of a module under a name; only `from` takes dots.
fn relative(module: &str, name: &str) -> String {
    let (parent, last) = module.split_at(module.rfind('.').map_or(0, |at| at + 1));
    let named = parent.trim_end_matches('.');
    format!("from {} import {last} as {name}", if named.is_empty() { parent } else { named })
}

fn of_import_from(import: &StmtImportFrom, place: &dyn Fn(&str) -> Option<String>) -> Option<Edit> {
    let module = import.module.as_ref().filter(|_| import.level == 0)?;
    Some((module.range.start().to_usize(), module.range.end().to_usize(), place(module.as_str())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_kernels(module: &str) -> Option<String> {
        (module.split('.').next() == Some("kernels")).then(|| format!("..{module}"))
    }

    #[test]
    fn imports_of_moved_modules_are_led_there_and_nothing_else_changes() {
        for (text, expected) in [
            ("from kernels.a import b  # why\n", "from ..kernels.a import b  # why\n"),
            ("from kernels import (\n    a,\n    b as c,\n)\n", "from ..kernels import (\n    a,\n    b as c,\n)\n"),
            ("import triton, kernels.a as k\n", "import triton; from ..kernels import a as k\n"),
            (
                "if x: import kernels.a.b  # why\n",
                "if x: from ..kernels.a import b as _kernels_a_b; from .. import kernels as kernels  # why\n",
            ),
            ("import kernels\n", "from .. import kernels as kernels\n"),
            ("import kernels as k, os.path as p\n", "from .. import kernels as k; import os.path as p\n"),
            ("import triton, os.path as p\n", "import triton, os.path as p\n"),
            ("def f():\n    from kernels.a import b\n", "def f():\n    from ..kernels.a import b\n"),
            ("from .kernels import a\nfrom . import kernels\n", "from .kernels import a\nfrom . import kernels\n"),
            ("x = 'import kernels'\n", "x = 'import kernels'\n"),
            ("é = 1\nimport kernels.a as é\n", "é = 1\nfrom ..kernels import a as é\n"),
        ] {
            assert_eq!(moved(text, &of_kernels).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_does_not_parse_is_none() {
        assert_eq!(moved("import (\n", &of_kernels), None);
    }
}
