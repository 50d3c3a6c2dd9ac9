//! What t2t reads off a Python file without running it: its meaning, its imports, its docstring, its callables.
//!
//! The meaning is the syntax tree without comments, formatting, docstrings and positions. It does not know where files lie.

use std::borrow::Cow;

use ruff_python_ast::{Expr, ModModule, Stmt, Suite};
use ruff_python_parser::parse_module;
use serde::{Deserialize, Serialize};
use t2t_model::digest::Digest;

pub mod bounds;
mod canonical;
pub mod closure;

/// Stands before the [`canonical`] form of every tree that is hashed; a new number makes all results of kernel code a miss.
const HEADER: &str = "t2t python 2\n";

/// What is known of a Python file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PythonFile {
    /// The digest of the tree, or of the bytes where there is no tree.
    pub meaning: Digest,
    /// What it imports, in order.
    pub(crate) imports: Vec<Import>,
    /// The module's docstring, as written.
    pub docstring: Option<String>,
    /// Names of the functions and classes at module level, in order.
    pub callables: Vec<String>,
    /// Other names bound at module level, imported ones among them; `*` for an import of everything.
    pub names: Vec<String>,
    /// Why there is no tree.
    pub fault: Option<SourceFault>,
}

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

/// How long a line is cited, in bytes: beyond, a place has to do.
const EXCERPT: usize = 2000;

/// Why a file has no tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FaultKind {
    /// It is no Python: no interpreter takes it.
    Invalid,
    /// It is longer or deeper than t2t reads. An interpreter may take it, and what it imports is not known.
    Beyond,
}

/// A file that is no Python, or too much of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceFault {
    /// Which of the two.
    pub kind: FaultKind,
    /// What is wrong.
    pub message: String,
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
    /// The line's text; empty where it is very long.
    pub excerpt: String,
}

/// Which imports of a file are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    /// All, whether they run or not.
    All,
    /// Those that may run: not those for type checkers alone.
    Run,
}

/// Reads `bytes` as Python. Never fails: a file that does not parse, or is beyond [`bounds`], has a fault, and its bytes for its meaning.
#[must_use]
pub fn read(bytes: &[u8]) -> PythonFile {
    read_told(bytes, Told::All)
}

/// Reads `bytes` as [`read`] does, but for the imports under `if TYPE_CHECKING:`, which never run: the file imports none of them.
///
/// That holds where the name is what `typing` has under it, and nobody sets it. It is so for files that one knows; in a file of somebody else's the name may be a
/// variable like any other, and a key must not miss what runs.
#[must_use]
pub fn read_as_run(bytes: &[u8]) -> PythonFile {
    read_told(bytes, Told::Run)
}

fn read_told(bytes: &[u8], told: Told) -> PythonFile {
    if bytes.len() > bounds::LONGEST {
        return unread(bytes, too_long(bytes.len()));
    }
    let decoded = match (encoding(bytes), std::str::from_utf8(bytes)) {
        (Encoding::Latin1, _) => Cow::Owned(bytes.iter().map(|byte| char::from(*byte)).collect()),
        (_, Ok(text)) => Cow::Borrowed(text),
        (Encoding::Other, Err(_)) => String::from_utf8_lossy(bytes),
        (Encoding::Utf8, Err(error)) => return unread(bytes, not_utf8(bytes, error.valid_up_to())),
    };
    let text = decoded.strip_prefix('\u{feff}').unwrap_or(&decoded);
    let depth = bounds::depth(text);
    if depth > bounds::DEEPEST {
        let message = format!("the syntax nests deeper than {} levels", bounds::DEEPEST);
        return unread(
            bytes,
            SourceFault { kind: FaultKind::Beyond, ..fault(text, bounds::first_beyond(text), &message) },
        );
    }
    let mut read = bounds::with_stack(depth, || match parse_module(text) {
        Ok(parsed) => of_tree(parsed.into_syntax(), told),
        Err(error) => {
            let at = error.location.start().to_usize();
            unread(bytes, fault(text, at, &error.error.to_string()))
        }
    });
    if encoding(bytes) == Encoding::Other {
        // What its letters are is for Python to know: a change to any of them counts.
        read.meaning = Digest::of(bytes);
    }
    read
}

/// How a file says that its bytes are to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Utf8,
    Latin1,
    Other,
}

/// Returns what a comment in the first two lines says, as `# -*- coding: latin-1 -*-` does; Python looks no further.
fn encoding(bytes: &[u8]) -> Encoding {
    let mut lines = bytes.split(|byte| *byte == b'\n').map(|line| String::from_utf8_lossy(line).into_owned());
    let first = lines.next().unwrap_or_default();
    let is_blank = first.trim_start_matches('\u{feff}').split('#').next().unwrap_or_default().trim().is_empty();
    let second = lines.next().filter(|_| is_blank);
    let Some(name) = [Some(first), second].into_iter().flatten().find_map(|line| named(&line)) else {
        return Encoding::Utf8;
    };
    match name.to_ascii_lowercase().replace('_', "-").as_str() {
        "utf-8" | "utf8" | "utf-8-sig" | "u8" => Encoding::Utf8,
        "latin-1" | "latin1" | "iso-8859-1" | "iso8859-1" | "iso-latin-1" | "l1" => Encoding::Latin1,
        _ => Encoding::Other,
    }
}

/// Returns the encoding that a line of nothing but a comment names.
fn named(line: &str) -> Option<String> {
    let comment = line.trim_start_matches('\u{feff}').trim_start().strip_prefix('#')?;
    let (_, rest) = comment.split_once("coding")?;
    let name = rest.strip_prefix([':', '='])?.trim_start_matches([' ', '\t']);
    let name: String =
        name.chars().take_while(|letter| letter.is_ascii_alphanumeric() || "-_.".contains(*letter)).collect();
    (!name.is_empty()).then_some(name)
}

fn of_tree(mut module: ModModule, told: Told) -> PythonFile {
    let docstring = docstring_of(&module.body);
    let (mut callables, mut names) = (Vec::new(), Vec::new());
    collect_names(&module.body, &mut callables, &mut names);
    let mut imports = Vec::new();
    collect_imports(&module.body, told, &mut imports);
    drop_docstrings(&mut module.body);
    PythonFile { meaning: canonical::digest(HEADER, &module), imports, docstring, callables, names, fault: None }
}

fn unread(bytes: &[u8], fault: SourceFault) -> PythonFile {
    let (imports, callables, names) = (Vec::new(), Vec::new(), Vec::new());
    PythonFile { meaning: Digest::of(bytes), imports, docstring: None, callables, names, fault: Some(fault) }
}

fn too_long(length: usize) -> SourceFault {
    let message = format!("the file has {length} bytes, more than the {} that are read", bounds::LONGEST);
    SourceFault { kind: FaultKind::Beyond, message, line: 1, column: 1, excerpt: String::new() }
}

fn not_utf8(bytes: &[u8], at: usize) -> SourceFault {
    let text = String::from_utf8_lossy(bytes);
    let before = String::from_utf8_lossy(&bytes[..at]).len();
    fault(&text, before, &format!("not UTF-8: byte 0x{:02x} at offset {at}", bytes[at]))
}

fn fault(text: &str, at: usize, message: &str) -> SourceFault {
    let at = text.floor_char_boundary(at.min(text.len()));
    let before = &text[..at];
    let start = before.rfind('\n').map_or(0, |end| end + 1);
    let excerpt = text[start..].lines().next().unwrap_or_default();
    let number = |count: usize| u32::try_from(count + 1).unwrap_or(u32::MAX);
    SourceFault {
        kind: FaultKind::Invalid,
        message: lower_first(message),
        line: number(before.matches('\n').count()),
        column: number(text[start..at].chars().count()),
        excerpt: if excerpt.len() > EXCERPT { String::new() } else { excerpt.to_owned() },
    }
}

fn lower_first(message: &str) -> String {
    let mut letters = message.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

fn docstring_of(body: &[Stmt]) -> Option<String> {
    let Stmt::Expr(first) = body.first()? else { return None };
    let Expr::StringLiteral(text) = &*first.value else { return None };
    Some(text.value.to_str().to_owned())
}

/// Names bound at module level, also under `if` and `try`.
fn collect_names(body: &[Stmt], callables: &mut Vec<String>, names: &mut Vec<String>) {
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

/// Imports at every depth: one in a function is read when the function runs.
fn collect_imports(body: &[Stmt], told: Told, into: &mut Vec<Import>) {
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

fn bodies(statement: &Stmt) -> Vec<&[Stmt]> {
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

fn drop_docstrings(body: &mut Suite) {
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

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: &str = "\"\"\"Doc.\"\"\"\nimport triton\nfrom . import common\n\ndef f(x):\n    \"\"\"Inner.\"\"\"\n    return x + 1  # add\n";

    fn meaning(text: &str) -> Digest {
        read(text.as_bytes()).meaning
    }

    #[test]
    fn comments_formatting_and_docstrings_have_no_meaning() {
        let other = "# c\nimport triton\nfrom . import (\n    common,\n)\n\n\ndef f( x ):\n    # more\n    return (x\n        + 1)\n";
        assert_eq!(meaning(KERNEL), meaning(other));
    }

    #[test]
    fn code_has_meaning() {
        for (from, to) in
            [("x + 1", "x + 2"), ("x + 1", "x - 1"), ("return x", "return y"), ("import common", "import other")]
        {
            assert_ne!(meaning(KERNEL), meaning(&KERNEL.replacen(from, to, 1)), "{from} → {to}");
        }
    }

    #[test]
    fn a_string_that_is_no_docstring_has_meaning() {
        assert_ne!(meaning("x = 'a'\n"), meaning("x = 'b'\n"));
    }

    #[test]
    fn imports_docstring_and_callables_are_read() {
        let file = read(KERNEL.as_bytes());
        assert_eq!(file.docstring.as_deref(), Some("Doc."));
        assert_eq!((file.callables, file.names), (vec!["f".to_owned()], vec!["common".to_owned()]));
        let expected = [
            Import { level: 0, module: "triton".into(), name: None },
            Import { level: 1, module: String::new(), name: Some("common".into()) },
        ];
        assert_eq!(file.imports, expected);
    }

    #[test]
    fn an_import_inside_a_function_is_found() {
        let file = read(b"def f():\n    try:\n        from .a import b\n    except ImportError:\n        pass\n");
        assert_eq!(file.imports, [Import { level: 1, module: "a".into(), name: Some("b".into()) }]);
    }

    #[test]
    fn imports_for_type_checkers_run_nowhere_and_those_beside_them_do() {
        let text = b"import typing\nif TYPE_CHECKING:\n    import a\n    if x:\n        import b\nelif y:\n    import c\nelse:\n    import d\n\
            if typing.TYPE_CHECKING:\n    import e\nif not TYPE_CHECKING:\n    import f\nif other.TYPE_CHECKING:\n    import g\n\
            def h():\n    if TYPE_CHECKING:\n        import i\n    import j\n";
        let modules = |file: &PythonFile| file.imports.iter().map(|import| import.module.clone()).collect::<Vec<_>>();
        let (all, run) = (read(text), read_as_run(text));
        assert_eq!(modules(&all), ["typing", "a", "b", "c", "d", "e", "f", "g", "i", "j"]);
        assert_eq!(modules(&run), ["typing", "c", "d", "f", "g", "j"]);
        assert_eq!(all.meaning, run.meaning, "what the file itself says counts");
    }

    #[test]
    fn a_syntax_error_has_its_place() {
        let fault = read(b"x = 1\ndef f(:\n").fault.unwrap();
        assert_eq!((fault.line, fault.excerpt.as_str()), (2, "def f(:"));
    }

    #[test]
    fn a_file_is_read_in_the_encoding_that_it_names() {
        let latin = read(b"# -*- coding: latin-1 -*-\n# caf\xe9\nimport torch\nx = 'caf\xe9'\n");
        assert_eq!(latin.fault, None);
        assert_eq!(latin.meaning, read("import torch\nx = 'caf\u{e9}'\n".as_bytes()).meaning, "as Python reads it");
        let other = read(b"#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\nimport torch  # \x80\n");
        assert_eq!(other.fault, None);
        assert_eq!(other.imports.len(), 1);
        let edited = read(b"#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\nimport torch  # \x81\n");
        assert_ne!(other.meaning, edited.meaning, "any change counts");
        for late in [&b"\n\n# coding: latin-1\nx = '\xe9'\n"[..], b"x = 1\n# coding: latin-1\ny = '\xe9'\n"] {
            assert!(read(late).fault.is_some(), "Python looks at two lines, and no further than code");
        }
    }

    #[test]
    fn what_nests_too_deep_has_its_place_and_is_not_parsed() {
        let deep = bounds::DEEPEST + 1;
        for (before, more, after) in
            [("x = ", "-", "1"), ("x = a", ".b", ""), ("x = 1", "+1", ""), ("x = ", "lambda: ", "1")]
        {
            let file = read(format!("y = 1\n{before}{}{after}\n", more.repeat(300_000)).as_bytes());
            let fault = file.fault.unwrap();
            assert_eq!((fault.kind, fault.line), (FaultKind::Beyond, 2), "{more}");
            let fits = format!("{before}{}{after}\n", more.repeat(deep / 2 - 10));
            assert_eq!(read(fits.as_bytes()).fault, None, "{more}");
        }
    }

    #[test]
    fn what_nests_as_deep_as_it_may_is_read_on_any_stack() {
        for (before, more, after, end) in [
            ("x = ", "[", "", "]"),
            ("x = ", "f(", "", ")"),
            ("x = ", "{1: ", "1", "}"),
            ("x = ", "f'{", "1", "}'"),
            ("x = 1", "**1", "", ""),
        ] {
            let depth = (1..=bounds::DEEPEST).rev().find(|depth| {
                bounds::depth(&format!("{before}{}{after}{}", more.repeat(*depth), end.repeat(*depth)))
                    <= bounds::DEEPEST
            });
            let depth = depth.unwrap();
            let text = format!("{before}{}{after}{}\n", more.repeat(depth), end.repeat(depth));
            let small = std::thread::Builder::new().stack_size(256 << 10);
            let file = small.spawn(move || read(text.as_bytes())).unwrap().join().unwrap();
            assert_eq!(file.fault, None, "{more}");
        }
    }

    #[test]
    fn a_file_that_is_too_long_is_not_parsed() {
        let fault = read(&vec![b'#'; bounds::LONGEST + 1]).fault.unwrap();
        assert_eq!((fault.kind, fault.line, fault.column), (FaultKind::Beyond, 1, 1));
    }

    #[test]
    fn bytes_that_are_not_utf8_have_their_place() {
        let fault = read(b"x = 1\ny = '\xff'\n").fault.unwrap();
        assert_eq!((fault.line, fault.column), (2, 6));
        assert_eq!(fault.message, "not UTF-8: byte 0xff at offset 11");
    }
}
