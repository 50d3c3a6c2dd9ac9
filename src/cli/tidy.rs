//! `t2t clean`: removes what t2t made, and nothing else.

use super::context;
use anyhow::Context;

use super::error::CliError;
use crate::fs;
use crate::store::lock::Lock;

/// What is removed.
#[derive(Debug, Clone, Copy)]
pub enum What {
    /// The logs, which the store can give back.
    Logs,
    /// The logs and every result.
    LogsAndStore,
}

/// Runs the command. The files that keep empty folders in a repository stay, and so does the lock that is held meanwhile.
pub fn clean(what: What) -> Result<u8, CliError> {
    let root = context::workspace()?;
    let cache = root.join("cache");
    let _lock = Lock::take(&cache, "t2t clean", |holder| {
        context::say(&format!("waiting: the workspace's lock, held by {holder}"));
    })
    .context("cannot lock the store `cache/`")?;
    let folders = match what {
        What::Logs => vec![root.join("logs")],
        What::LogsAndStore => vec![root.join("logs"), cache],
    };
    for folder in folders {
        let made =
            fs::names(&folder).into_iter().filter(|name| !matches!(name.as_str(), ".gitkeep" | ".gitignore" | "lock"));
        for name in made {
            let path = folder.join(&name);
            fs::remove(&path).with_context(|| format!("cannot remove `{}`", path.display()))?;
        }
    }
    Ok(0)
}
