//! A path inside the workspace: relative, UTF-8, with `/` between plain components.
//!
//! It does not know where the workspace lies.

use std::fmt;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

/// A file's place in the workspace, the same on every machine.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RepoPath(String);

/// A path that leaves the workspace, or is not UTF-8.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no path inside the workspace")]
pub struct NotInside(String);

impl RepoPath {
    /// Returns the path that `text` writes. Fails where it is absolute, empty, or has a `.` or `..` component.
    pub fn new(text: &str) -> Result<Self, NotInside> {
        let plain = |part: &str| !part.is_empty() && part != "." && part != "..";
        if !text.is_empty() && text.split('/').all(plain) && !text.contains('\\') {
            Ok(Self(text.to_owned()))
        } else {
            Err(NotInside(text.to_owned()))
        }
    }

    /// Returns where `path` lies below `root`. Fails where it does not.
    pub fn below(root: &Path, path: &Path) -> Result<Self, NotInside> {
        let refuse = || NotInside(path.display().to_string());
        let relative = path.strip_prefix(root).map_err(|_| refuse())?;
        let parts: Option<Vec<&str>> = relative
            .components()
            .map(|part| match part {
                Component::Normal(name) => name.to_str(),
                _ => None,
            })
            .collect();
        Self::new(&parts.ok_or_else(refuse)?.join("/"))
    }

    /// Returns the path as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns where the file lies when the workspace lies at `root`.
    #[must_use]
    pub fn under(&self, root: &Path) -> PathBuf {
        root.join(&self.0)
    }
}

impl TryFrom<String> for RepoPath {
    type Error = NotInside;

    fn try_from(text: String) -> Result<Self, NotInside> {
        Self::new(&text)
    }
}

impl From<RepoPath> for String {
    fn from(path: RepoPath) -> Self {
        path.0
    }
}

impl fmt::Display for RepoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for RepoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.0)
    }
}
