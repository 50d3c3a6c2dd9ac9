//! What a line of the journal names: whose record it is, and under which key.
//!
//! It is read off the line's beginning: the record is not parsed.

use t2t_model::digest::Digest;

use super::{CHECK, LinePlace};

/// A line, by what it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// The identity of its action, as JSON.
    pub identity: String,
    /// The key of the record.
    pub key: Digest,
    /// Where it stands.
    pub place: LinePlace,
}

impl Named {
    /// Returns what `line` names; None where it is none of a record.
    pub(super) fn of(line: &[u8], place: LinePlace) -> Option<Self> {
        const BEFORE: &[u8] = br#" {"identity":"#;
        const BETWEEN: &[u8] = br#","key":""#;
        let rest = line.get(CHECK..)?.strip_prefix(BEFORE)?;
        let end = rest.windows(BETWEEN.len()).position(|bytes| bytes == BETWEEN)?;
        let key = rest[end + BETWEEN.len()..].split(|byte| *byte == b'"').next()?;
        let key = std::str::from_utf8(key).ok()?.parse().ok()?;
        Some(Self { identity: String::from_utf8(rest[..end].to_vec()).ok()?, key, place })
    }

    /// Returns the target that it names, as it is written there.
    #[must_use]
    pub fn target(&self) -> &str {
        let target = self.identity.strip_prefix(r#"{"target":""#).and_then(|rest| rest.split('"').next());
        target.unwrap_or_default()
    }
}
