//! What Python accepts as the name of a parameter or a function.
//!
//! It does not know what is named so.

/// Returns whether Python takes the text, in ASCII, as a name.
pub(super) fn is_identifier(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
