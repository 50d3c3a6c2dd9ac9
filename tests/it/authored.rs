//! What tests of kernels that a generator writes share: the workspace with one such op, scripts that are authors, and what became of both.
//!
//! It does not know what the generator is.

use std::fs;
use std::path::PathBuf;

use crate::project::{Project, program};

/// The file of the kernel that is written.
pub const FILE: &str = "kernels/softmax/v1_baseline.py";

/// An op whose kernel a person writes, to put behind the other.
pub const GELU: &str = "  gelu:\n    torch: torch.nn.functional.gelu\n    inputs: {input: [M, N]}\n";

/// What every script begins with: it notes that and what it was asked, and has `$attempt` and the function `kernel MARK`.
const HEAD: &str = r#"#!/bin/sh
here=$(dirname "$0")
attempt=$(sed -n 's/^  "attempt": \([0-9]*\),$/\1/p' request.json)
echo "$attempt $T2T_FILE" >> "$here/asked"
cp prompt.md "$here/prompt$attempt.md"
cp request.json "$here/request$attempt.json"
kernel() {
    printf '"""Softmax, by an agent."""\nMARK = "%s"\nATTEMPT = %s\n\ndef triton_softmax(input):\n    return input + 1\n' "$1" "$attempt"
}
"#;

/// Returns an ops.yaml of the op `softmax`, with these lines before the defaults and these behind the op's own.
pub fn ops(before: &str, behind: &str) -> String {
    format!(
        "\
version: 1
{before}defaults:
  variants: [v1_baseline]
  bench: {{sizes: {{small: [16, 16]}}}}
ops:
  softmax:
    torch: torch.nn.functional.softmax
    inputs: {{input: [M, N]}}
    kwargs: {{dim: -1}}
{behind}"
    )
}

/// Writes the author of the command `./authors/agent`.
pub fn author(project: &Project, script: &str) {
    fs::create_dir_all(project.path("authors")).unwrap();
    program(&project.path("authors/agent"), &format!("{HEAD}{script}"));
}

/// Returns how often the check of the written kernel ran in a child.
pub fn checks(project: &Project) -> usize {
    project.log().iter().filter(|line| *line == "softmax/v1_baseline:check candidate:run").count()
}

/// Fails where a text is in a file of the store or of the logs.
#[track_caller]
pub fn is_nowhere(project: &Project, text: &str) {
    let files: Vec<PathBuf> = [project.files("cache"), project.files("logs")].concat();
    for file in files {
        let bytes = fs::read(&file).unwrap_or_default();
        assert!(!bytes.windows(text.len()).any(|part| part == text.as_bytes()), "{}", file.display());
    }
}
