//! A Python file whose absolute imports are led somewhere else: all other bytes stay.
//!
//! It does not know where modules lie, nor where they go.

use ruff_python_ast::{Stmt, StmtImport, StmtImportFrom};
use ruff_python_parser::parse_module;

use crate::bounds;
use crate::statements::bodies;

/// A part of a text, by its bytes, and what stands there afterwards.
type Edit = (usize, usize, String);

/// Returns `text` with the modules that it imports absolutely under the names that `place` gives them; None of `place` leaves a module as it is.
///
/// `import a.b` still binds `a`. Returns None where the text does not parse, or nests too deep.
#[must_use]
pub fn moved(text: &str, place: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let depth = bounds::depth(text);
    if depth > bounds::DEEPEST {
        return None;
    }
    let mut edits = bounds::with_stack(depth, || {
        let parsed = parse_module(text).ok()?;
        let mut edits = Vec::new();
        collect(&parsed.syntax().body, place, &mut edits);
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

fn collect(body: &[Stmt], place: &dyn Fn(&str) -> Option<String>, edits: &mut Vec<Edit>) {
    for statement in body {
        match statement {
            Stmt::Import(import) => of_import(import, place, edits),
            Stmt::ImportFrom(import) => edits.extend(of_import_from(import, place)),
            _ => {}
        }
        for inner in bodies(statement) {
            collect(inner, place, edits);
        }
    }
}

fn of_import(import: &StmtImport, place: &dyn Fn(&str) -> Option<String>, edits: &mut Vec<Edit>) {
    for alias in &import.names {
        let module = alias.name.as_str();
        let Some(new) = place(module) else { continue };
        let text = match (&alias.asname, module.split_once('.')) {
            (Some(name), _) => format!("{new} as {name}"),
            (None, None) => format!("{new} as {module}"),
            // The import binds the first part, which is a module of the workspace, too.
            (None, Some((first, _))) => match place(first) {
                Some(package) => format!("{new}, {package} as {first}"),
                None => continue,
            },
        };
        edits.push((alias.range.start().to_usize(), alias.range.end().to_usize(), text));
    }
}

fn of_import_from(import: &StmtImportFrom, place: &dyn Fn(&str) -> Option<String>) -> Option<Edit> {
    let module = import.module.as_ref().filter(|_| import.level == 0)?;
    Some((module.range.start().to_usize(), module.range.end().to_usize(), place(module.as_str())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_kernels(module: &str) -> Option<String> {
        (module.split('.').next() == Some("kernels")).then(|| format!("out.{module}"))
    }

    #[test]
    fn imports_of_moved_modules_are_led_there_and_nothing_else_changes() {
        for (text, expected) in [
            ("from kernels.a import b  # why\n", "from out.kernels.a import b  # why\n"),
            ("from kernels import (\n    a,\n    b as c,\n)\n", "from out.kernels import (\n    a,\n    b as c,\n)\n"),
            ("import triton, kernels.a as k\n", "import triton, out.kernels.a as k\n"),
            ("import kernels.a.b\n", "import out.kernels.a.b, out.kernels as kernels\n"),
            ("import kernels\n", "import out.kernels as kernels\n"),
            ("def f():\n    from kernels.a import b\n", "def f():\n    from out.kernels.a import b\n"),
            ("from .kernels import a\nfrom . import kernels\n", "from .kernels import a\nfrom . import kernels\n"),
            ("x = 'import kernels'\n", "x = 'import kernels'\n"),
            ("é = 1\nimport kernels.a as é\n", "é = 1\nimport out.kernels.a as é\n"),
        ] {
            assert_eq!(moved(text, &of_kernels).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_does_not_parse_is_none() {
        assert_eq!(moved("import (\n", &of_kernels), None);
    }
}
