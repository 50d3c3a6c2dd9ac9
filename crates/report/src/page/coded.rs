//! Sentences of t2t in the page: what stands between backticks is code.
//!
//! It does not know whose sentences they are, so each part is escaped.

use minijinja::{HtmlEscape, Value};
use t2t_model::foreign::printable;

/// Returns a text as HTML, with code where backticks say so. What follows a backtick that none closes is no code.
pub(crate) fn coded(value: &Value) -> Value {
    let text = printable(&value.to_string());
    let parts: Vec<&str> = text.split('`').collect();
    let mut told = String::with_capacity(text.len());
    for (place, part) in parts.iter().enumerate() {
        let is_last = place + 1 == parts.len();
        match place % 2 {
            0 => told += &HtmlEscape(part).to_string(),
            _ if is_last => told += &format!("`{}", HtmlEscape(part)),
            _ => told += &format!("<code>{}</code>", HtmlEscape(part)),
        }
    }
    Value::from_safe_string(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_between_backticks_is_code_and_nothing_is_markup() {
        for (text, wanted) in [
            ("`a` wins over `<b>`", "<code>a</code> wins over <code>&lt;b&gt;</code>"),
            ("one ` alone & more", "one ` alone &amp; more"),
            ("`a` and `b", "<code>a</code> and `b"),
            ("<i>`</i>`", "&lt;i&gt;<code>&lt;&#x2f;i&gt;</code>"),
            ("", ""),
        ] {
            let told = coded(&Value::from(text));
            assert!(told.is_safe());
            assert_eq!(told.to_string(), wanted);
        }
    }
}
