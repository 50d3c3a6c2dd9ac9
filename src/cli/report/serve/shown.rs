//! What a browser is shown, and the events that tell an open page of a change.
//!
//! It does not know how changes are found, nor who is told.

use std::fmt::Write as _;
use std::sync::Arc;

use hyper::body::Bytes;
use serde::Serialize;
use serde_json::json;
use t2t_report::page::served;
use t2t_store::store::at_work::AtWork;

/// What a browser is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shown {
    /// Tells one page from another.
    pub(super) version: Arc<str>,
    /// The page.
    pub(super) page: Bytes,
    /// Who builds now.
    pub(super) at_work: Option<AtWork>,
    /// Why the page is not that of the workspace as it is now, where it is not.
    pub(super) trouble: Option<String>,
}

impl Shown {
    /// Returns what shows the page whose file has this text.
    pub(super) fn of(file: &str, at_work: Option<AtWork>) -> Self {
        let served::Served { version, text } = served::served(file);
        Self { version: version.into(), page: text.into(), at_work, trouble: None }
    }

    /// Returns the events that tell of what changed since `before`; all of them where there was nothing before.
    pub(super) fn events(&self, before: Option<&Self>) -> String {
        let mut text = String::new();
        let mut tell = |event: &str, data: &str| _ = write!(text, "event: {event}\ndata: {data}\n\n");
        if before.is_none_or(|before| before.at_work != self.at_work) {
            tell("build", &line(&self.at_work));
        }
        if before.is_none_or(|before| before.trouble != self.trouble) {
            tell("trouble", &line(&self.trouble));
        }
        if before.is_none_or(|before| before.version != self.version) {
            tell("page", &self.version);
        }
        text
    }
}

/// Returns the value as JSON, which has no line breaks.
fn line(value: impl Serialize) -> String {
    json!(value).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_tells_of_each_part_that_changed_and_of_no_other() {
        let file = "<head><meta name=\"viewport\"></head>";
        let first = Shown::of(file, None);
        let told = first.events(None);
        let page = format!("event: page\ndata: {}\n\n", first.version);
        assert_eq!(told, format!("event: build\ndata: null\n\nevent: trouble\ndata: null\n\n{page}"));
        assert_eq!(first.events(Some(&first)), "");
        let trouble = Shown { trouble: Some("one\ntwo".to_owned()), ..first.clone() };
        assert_eq!(trouble.events(Some(&first)), "event: trouble\ndata: \"one\\ntwo\"\n\n");
        let actions = vec!["softmax/v2:check".to_owned()];
        let at_work = AtWork { process: 7, command: "t2t build".to_owned(), since: "12:00:00 UTC".to_owned(), actions };
        let working = Shown::of(file, Some(at_work));
        let told = working.events(Some(&first));
        assert!(
            told.starts_with("event: build\ndata: {") && told.contains("\"actions\":[\"softmax/v2:check\"]"),
            "{told}"
        );
        assert_eq!(told.matches("event:").count(), 1, "{told}");
    }
}
