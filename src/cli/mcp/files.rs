//! The files that tools read and write: only below kernels/ of the workspace, and ops.yaml. No name leads elsewhere, and no link is followed.
//!
//! It does not know what is in them.

use std::fs::File;
use std::path::{Component, Path, PathBuf};

use nix::fcntl::Flock;
use serde_json::Value;
use t2t_store::fs;

use super::child::Fault;
use crate::cli::held;

/// The folder of kernels.
const KERNELS: &str = "kernels";

/// Longest kernel file, in bytes.
pub(super) const LONGEST: usize = 1 << 20;

/// The file of a variant.
#[derive(Debug)]
pub(super) struct Kernel {
    /// Where ops.yaml says it is, relative to the workspace.
    pub(super) file: String,
    /// The same from the root of the file system.
    pub(super) place: PathBuf,
}

impl Kernel {
    /// Returns the file of a variant, as `t2t graph --format ops` writes it. Fails where a tool may not touch it.
    pub(super) fn of(root: &Path, variant: &Value) -> Result<Self, Fault> {
        let name = variant["name"].as_str().unwrap_or_default();
        let file = variant["file"].as_str().unwrap_or_default().to_owned();
        if !variant["module"].is_null() || file.is_empty() {
            let message = format!("the kernel of `{name}` is an installed module");
            return Err(Fault::hinted(message, "tools write below kernels/ alone: choose another variant"));
        }
        let path = Path::new(&file);
        let is_plain = path.components().all(|part| matches!(part, Component::Normal(_)));
        if !is_plain || !path.starts_with(KERNELS) || path.components().count() < 2 {
            let message = format!("the kernel of `{name}` is `{file}`, which is not below kernels/");
            return Err(Fault::hinted(message, "tools write below kernels/ alone: choose another variant"));
        }
        if fs::is_linked(root, path) {
            let message = format!("`{file}` is a link, or lies behind one");
            return Err(Fault::hinted(message, "tools follow no link: put a folder or a file in its place"));
        }
        Ok(Self { place: root.join(path), file })
    }

    /// Returns the bytes that are there; None where there is no file.
    pub(super) fn read(&self) -> Result<Option<Vec<u8>>, Fault> {
        fs::read_if_there(&self.place).map_err(|error| failed(&self.file, "read", &error))
    }

    /// Puts `bytes` there, whole or not at all.
    pub(super) fn write(&self, bytes: &[u8]) -> Result<(), Fault> {
        fs::write(&self.place, bytes).map_err(|error| failed(&self.file, "write", &error))
    }
}

/// Returns that a file could not be read or written.
pub(super) fn failed(file: &str, done: &str, error: &dyn std::fmt::Display) -> Fault {
    Fault::Told(format!("error: cannot {done} `{file}`: {error}"))
}

/// Takes the lock on the workspace's folder, for the moment in which one of its files is read and written again.
pub(super) fn hold(root: &Path) -> Result<Flock<File>, Fault> {
    held::hold(root).map_err(|error| failed("the workspace", "lock", &error))
}
