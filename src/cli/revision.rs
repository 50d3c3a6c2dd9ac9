//! A revision: the files of a commit in a folder of the store, and the session of them. What `compare` and `affected` stand on.
//!
//! It prints nothing.

use std::path::{Path, PathBuf};

use anyhow::Context;
use t2t_host::interrupt::Interrupt;
use t2t_model::path::RepoPath;
use t2t_store::fs;
use t2t_store::git;
use t2t_store::results;

use super::error::CliError;
use super::{Common, context};
use crate::session::{NoSession, Session};

/// The files of a commit, gone when it is dropped.
pub(crate) struct Revision {
    tree: PathBuf,
}

impl Revision {
    /// Puts the files that the workspace at `root` had at `commit` into a folder of its store. `purpose` distinguishes the folders of one process.
    pub(crate) fn check_out(root: &Path, commit: &str, purpose: &str) -> Result<Self, git::NoAnswer> {
        let tree = root.join("cache/scratch").join(format!("{purpose}-{}", context::process()));
        let revision = Self { tree };
        git::check_out(root, commit, &revision.tree)?;
        Ok(revision)
    }

    /// Returns whether it had a file at `path`.
    pub(crate) fn has(&self, path: &str) -> bool {
        fs::stat(&self.tree.join(path)).is_some()
    }

    /// Takes these files over from the workspace at `root`, where it had none.
    pub(crate) fn adopt<'a>(&self, root: &Path, paths: impl Iterator<Item = &'a RepoPath>) -> Result<(), CliError> {
        for path in paths.filter(|path| !self.has(path.as_str())) {
            let bytes = fs::read_if_there(&path.under(root)).with_context(|| format!("cannot read `{path}`"))?;
            bytes
                .map_or(Ok(()), |bytes| fs::write(&path.under(&self.tree), &bytes))
                .context("cannot write to `cache/`")?;
        }
        Ok(())
    }

    /// Opens the session of these files, with the store of the workspace at `root`. With `--as-device`, a commit from before the first publication has no facts
    /// of the device: it gets those that are published now.
    pub(crate) fn session(&self, common: &Common, root: &Path) -> Result<Result<Session, NoSession>, CliError> {
        if let Some(model) = &common.as_device {
            self.adopt_facts(root, model)?;
        }
        let mut options = context::options(common, root, context::as_built(common)?);
        options.cache = Some(root.join("cache"));
        Ok(Session::open(&self.tree, &options, &Interrupt::default()))
    }

    fn adopt_facts(&self, root: &Path, model: &str) -> Result<(), CliError> {
        let file = |root: &Path| results::folder(root, model).join(results::DEVICE);
        if fs::stat(&file(&self.tree)).is_some() {
            return Ok(());
        }
        let known = fs::read_if_there(&file(root)).context("cannot read `device.json`")?;
        known.map_or(Ok(()), |bytes| fs::write(&file(&self.tree), &bytes)).context("cannot write to `cache/`")?;
        Ok(())
    }
}

impl Drop for Revision {
    fn drop(&mut self) {
        // What cannot be removed takes nothing but space.
        let _ = fs::remove(&self.tree);
    }
}
