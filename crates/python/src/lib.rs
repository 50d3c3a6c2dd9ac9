//! What t2t reads off a Python file without running it: its meaning, its imports, its docstring, its callables.
//!
//! The meaning is the syntax tree without comments, formatting, docstrings and positions. It does not know where files lie.

use std::borrow::Cow;

use ruff_python_ast::ModModule;
use ruff_python_parser::parse_module;
use serde::{Deserialize, Serialize};
use t2t_model::digest::Digest;

pub mod applied;
pub mod bounds;
mod encoding;
mod fault;
mod statements;
mod texts;
mod canonical;
pub mod closure;
pub mod moved;
pub mod parameters;
pub mod used;

use self::encoding::{Encoding, encoding};
pub use self::fault::{FaultKind, SourceFault};
use self::fault::{fault, not_utf8, too_long};
pub(crate) use self::statements::Import;
use self::statements::{Told, collect_imports, collect_names, docstring_of, drop_docstrings};

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
    /// Texts in it that may name a file in C++ or CUDA C++, in order, without docstrings.
    pub sources: Vec<String>,
    /// Why there is no tree.
    pub fault: Option<SourceFault>,
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
    // Python refuses them wherever they are, also in a comment, which has no meaning otherwise.
    if let Some(at) = text.find('\0') {
        return unread(bytes, fault(text, at, "source code cannot contain null bytes"));
    }
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

fn of_tree(mut module: ModModule, told: Told) -> PythonFile {
    let docstring = docstring_of(&module.body);
    let (mut callables, mut names) = (Vec::new(), Vec::new());
    collect_names(&module.body, &mut callables, &mut names);
    let mut imports = Vec::new();
    collect_imports(&module.body, told, &mut imports);
    drop_docstrings(&mut module.body);
    let sources = texts::of_sources(&module.body);
    PythonFile {
        meaning: canonical::digest(HEADER, &module),
        imports,
        docstring,
        callables,
        names,
        sources,
        fault: None,
    }
}

fn unread(bytes: &[u8], fault: SourceFault) -> PythonFile {
    let (callables, names, sources) = (Vec::new(), Vec::new(), Vec::new());
    PythonFile {
        meaning: Digest::of(bytes),
        imports: Vec::new(),
        docstring: None,
        callables,
        names,
        sources,
        fault: Some(fault),
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
    fn ends_of_lines_are_none_of_the_docstring() {
        let text = "\"\"\"One.\n\nTwo.\n\"\"\"\nx = 1\n";
        let [unix, windows] = [text.to_owned(), text.replace('\n', "\r\n")].map(|text| read(text.as_bytes()));
        assert_eq!(windows.docstring.as_deref(), Some("One.\n\nTwo.\n"));
        assert_eq!((unix.docstring, unix.meaning), (windows.docstring, windows.meaning));
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
    fn a_null_byte_is_a_fault_wherever_it_is() {
        for text in ["x = 1\n# a\0b\n", "x = 1\ny = 'a\0b'\n", "x = 1\n\0\n"] {
            let fault = read(text.as_bytes()).fault.unwrap();
            assert_eq!((fault.line, fault.message.as_str()), (2, "source code cannot contain null bytes"), "{text:?}");
            assert_ne!(meaning(text), meaning(&text.replace('\0', "")), "{text:?}");
        }
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
