//! Why a Python file has no tree, and where.
//!
//! It does not know who parses.

use serde::{Deserialize, Serialize};

use crate::bounds;

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

/// Returns the fault of a file of so many bytes, which is not parsed.
pub(crate) fn too_long(length: usize) -> SourceFault {
    let message = format!("the file has {length} bytes, more than the {} that are read", bounds::LONGEST);
    SourceFault { kind: FaultKind::Beyond, message, line: 1, column: 1, excerpt: String::new() }
}

/// Returns the fault of bytes that are no text from the offset `at` on.
pub(crate) fn not_utf8(bytes: &[u8], at: usize) -> SourceFault {
    let text = String::from_utf8_lossy(bytes);
    let before = String::from_utf8_lossy(&bytes[..at]).len();
    fault(&text, before, &format!("not UTF-8: byte 0x{:02x} at offset {at}", bytes[at]))
}

/// Returns the fault at the byte `at` of a text that is no Python.
pub(crate) fn fault(text: &str, at: usize, message: &str) -> SourceFault {
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
