//! Texts of a Python file that may name files in C++.
//!
//! It does not know whether such files are there, nor what the texts are for.

use ruff_python_ast::visitor::source_order::{SourceOrderVisitor, walk_body};
use ruff_python_ast::{Stmt, StringLiteral};

/// How the names of files in C++ and CUDA C++ end.
const ENDINGS: [&str; 5] = [".cu", ".cpp", ".cc", ".cxx", ".c"];

/// Returns the texts of `body`, at every depth, that end as the name of a file in C++ does, each once and without `/` before it: `here + "/own.cu"` is below some
/// folder.
pub(crate) fn of_sources(body: &[Stmt]) -> Vec<String> {
    let mut found = Found(Vec::new());
    walk_body(&mut found, body);
    found.0
}

struct Found(Vec<String>);

impl<'a> SourceOrderVisitor<'a> for Found {
    fn visit_string_literal(&mut self, literal: &'a StringLiteral) {
        let text = literal.value.trim_start_matches('/');
        let ends = ENDINGS.iter().any(|ending| text.len() > ending.len() && text.ends_with(ending));
        if ends && !text.contains('\n') && !self.0.iter().any(|one| one == text) {
            self.0.push(text.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::read;

    #[test]
    fn texts_that_end_as_files_in_cpp_are_told_wherever_they_stand() {
        let text = b"\"\"\"own.cu\"\"\"\nimport os\n\ndef f(x=join(here, 'a.cu')):\n    return [x + '/b/c.cpp', {'../d.cc': 'e.py'}, '.cu', 'f\\n.cu']\n\
            class A:\n    files = ['a.cu', f'{g}', b'h.cu']\n";
        assert_eq!(read(text).sources, ["a.cu", "b/c.cpp", "../d.cc"]);
    }
}
