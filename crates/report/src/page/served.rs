//! The page as it is served: the file, and a script that renews it while it is open.
//!
//! The file stays as it is: what differs is put into its text here. It does not know who serves it, nor at which address.

use t2t_model::digest::Digest;

/// What renews the page. It may ask whoever served it, and nobody else.
const SCRIPT: &str = include_str!("served.js");

/// The SHA-256 digest of [`SCRIPT`] in base64, as that of the page's own script.
const SCRIPT_DIGEST: &str = "p3OC8o7lCGBarNNzoGxfb3cu4AA1bHyZvNu1cIIqh6c=";

/// How many digits of its digest tell one page from another.
const DIGITS: usize = 16;

/// A page to be served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// Of two pages that differ, they do too.
    pub version: String,
    /// The HTML.
    pub text: String,
}

/// Returns the served form of the page whose file has the text `file`, as [`super::html`] makes it.
#[must_use]
pub fn served(file: &str) -> Served {
    let version = Digest::of(file.as_bytes()).to_string()[..DIGITS].to_owned();
    let policy = ("script-src 'sha256-", format!("connect-src 'self'; script-src 'sha256-{SCRIPT_DIGEST}' 'sha256-"));
    let head = (
        "<meta name=\"viewport\"",
        format!("<meta name=\"t2t.version\" content=\"{version}\">\n<meta name=\"viewport\""),
    );
    // Whoever parses the next page runs no script of it, and would take these for parts of it. The names are escaped in all that is foreign.
    let mut text = file.replace("<noscript>\n", "").replace("</noscript>\n", "");
    // What is foreign stands behind all of these, or, escaped, before none.
    for (from, to) in [policy, head] {
        text = text.replacen(from, &to, 1);
    }
    // It stands before the page's own script, which changes what it compares.
    let own = text.rfind("<script>").unwrap_or(text.len());
    text.insert_str(own, &format!("<script>{SCRIPT}</script>\n"));
    Served { version, text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{Page, html};

    fn file(place: &str) -> String {
        html(&Page { place: place.to_owned(), timeline: None, ops: Vec::new() }).unwrap()
    }

    #[test]
    fn the_served_page_is_the_file_with_what_renews_it() {
        let file = file("Here <script>.");
        let served = served(&file);
        let policy =
            served.text.split("Content-Security-Policy\" content=\"").nth(1).unwrap().split('"').next().unwrap();
        assert!(policy.contains("default-src 'none'; ") && policy.contains("; connect-src 'self'; "), "{policy}");
        assert_eq!(policy.matches("'sha256-").count(), 3, "its style, its script, and this one: {policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(served.text.matches("<script>").count(), 2);
        assert!(served.text.contains(&format!("content=\"{}\"", served.version)));
        let rest = served.text.replace(&format!("<script>{SCRIPT}</script>\n"), "");
        let rest = rest.replace(&format!("<meta name=\"t2t.version\" content=\"{}\">\n", served.version), "");
        assert_eq!(
            rest.replace(&format!("connect-src 'self'; script-src 'sha256-{SCRIPT_DIGEST}' "), "script-src "),
            file
        );
    }

    #[test]
    fn another_page_has_another_version() {
        assert_ne!(served(&file("Here.")).version, served(&file("There.")).version);
        assert_eq!(served(&file("Here.")), served(&file("Here.")));
    }
}
