//! Places: which folders of a workspace can hold what a build reads, and which events are about it.
//!
//! Left out are what t2t makes, what is hidden, what tools mark as theirs (`CACHEDIR.TAG`, `pyvenv.cfg`), and the names that editors give to copies. It asks
//! the file system, and watches nothing.

use std::path::{Component, Path, PathBuf};

use notify::event::Event;
use walkdir::WalkDir;

/// Files that mark a folder as no source of anything.
const MARKS: [&str; 2] = ["CACHEDIR.TAG", "pyvenv.cfg"];

/// Folders that tools make everywhere.
const TOOLS: [&str; 2] = ["__pycache__", "node_modules"];

/// What is watched of a workspace.
#[derive(Debug, Clone)]
pub struct Places {
    root: PathBuf,
    own: Vec<PathBuf>,
    git_lock: Option<PathBuf>,
}

impl Places {
    /// Returns the places of the workspace at `root`, but for the folders `own` of it, which t2t makes. `git_lock` is the file by which git says that it is
    /// changing files, where there is a repository.
    #[must_use]
    pub fn new(root: &Path, own: &[&str], git_lock: Option<PathBuf>) -> Self {
        Self { root: root.to_owned(), own: own.iter().map(|name| root.join(name)).collect(), git_lock }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn git_lock(&self) -> Option<&Path> {
        self.git_lock.as_deref()
    }

    /// Returns whether an event is about a file that a build may read.
    pub(super) fn concern(&self, event: &Event) -> bool {
        event.paths.iter().any(|path| self.concerns(path))
    }

    fn concerns(&self, path: &Path) -> bool {
        let Ok(relative) = path.strip_prefix(&self.root) else { return false };
        let parts = relative.components().filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_string_lossy()),
            _ => None,
        });
        let is_dull = |name: &str| name.starts_with('.') || name.ends_with('~') || TOOLS.contains(&name);
        let mut parts = parts.peekable();
        parts.peek().is_some() && !parts.any(|name| is_dull(&name)) && !self.own.iter().any(|own| path.starts_with(own))
    }

    /// Returns `folder` and those below it that can hold something that matters; links are followed.
    pub(super) fn folders(&self, folder: &Path) -> Vec<PathBuf> {
        let walk = WalkDir::new(folder).follow_links(true).into_iter();
        let kept = walk.filter_entry(|entry| entry.file_type().is_dir() && self.is_kept(entry.path()));
        // A loop of links, or a folder that may not be read, is skipped.
        kept.flatten().map(walkdir::DirEntry::into_path).collect()
    }

    fn is_kept(&self, folder: &Path) -> bool {
        folder == self.root || (self.concerns(folder) && MARKS.iter().all(|mark| !folder.join(mark).is_file()))
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the tests are somebody who makes folders")]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn folders_that_hold_no_sources_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for name in [
            "kernels/softmax/__pycache__",
            "cache/cas",
            "logs",
            "kernels/logs",
            ".git/objects",
            "env/lib",
            "target/debug",
            "data",
        ] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        fs::write(root.join("env/pyvenv.cfg"), "").unwrap();
        fs::write(root.join("target/CACHEDIR.TAG"), "").unwrap();
        std::os::unix::fs::symlink(root, root.join("data/loop")).unwrap();
        let places = Places::new(root, &["cache", "logs"], None);
        let mut found: Vec<String> = places
            .folders(root)
            .iter()
            .map(|path| path.strip_prefix(root).unwrap().to_str().unwrap().to_owned())
            .collect();
        found.sort();
        assert_eq!(found, ["", "data", "kernels", "kernels/logs", "kernels/softmax"]);
    }

    #[test]
    fn what_editors_and_t2t_itself_write_is_no_concern() {
        let places = Places::new(Path::new("/w"), &["cache", "logs"], None);
        for path in ["/w/ops.yaml", "/w/kernels/softmax/v1.py", "/w/data/cache/table.txt", "/w/kernels/softmax/4913"] {
            assert!(places.concerns(Path::new(path)), "{path}");
        }
        for path in [
            "/w",
            "/w/cache/journal",
            "/w/logs/summary.md",
            "/w/kernels/softmax/.v1.py.swp",
            "/w/kernels/softmax/v1.py~",
            "/w/kernels/__pycache__/v1.pyc",
            "/w/.git/index",
            "/elsewhere/ops.yaml",
        ] {
            assert!(!places.concerns(Path::new(path)), "{path}");
        }
    }
}
