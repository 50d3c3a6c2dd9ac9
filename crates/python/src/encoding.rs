//! The encoding that a Python file names, in a comment of its first two lines.
//!
//! It does not know how bytes become text.

/// How a file says that its bytes are to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Utf8,
    Latin1,
    Other,
}

/// Returns what a comment in the first two lines says, as `# -*- coding: latin-1 -*-` does; Python looks no further.
pub(crate) fn encoding(bytes: &[u8]) -> Encoding {
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
