//! Sources: what the workspace's files are now, by digest, read only when they changed.
//!
//! When a file must be read again is the business of `witness`. It does not know which files matter.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::action::Source;
use crate::closure::closure;
use crate::digest::Digest;
use crate::fs;
use crate::kept;
use crate::path::RepoPath;
use crate::python::{self, Python};
use crate::record::Seen;
use crate::witness::Known;

/// The format of the file below; another number is read as an empty one. 1: first. 2: behind a digest.
const VERSION: u32 = 2;

/// Top-level packages that mean folders of the workspace.
pub const PACKAGES: [&str; 1] = ["kernels"];

/// From how many files on threads save more than they cost.
const WORTH_THREADS: usize = 64;

#[derive(Debug, Serialize, Deserialize, Default)]
struct Kept {
    files: BTreeMap<RepoPath, Known>,
    parsed: HashMap<Digest, Python>,
}

/// The workspace's files.
#[derive(Debug)]
pub struct Sources {
    root: PathBuf,
    file: PathBuf,
    state: RefCell<State>,
}

#[derive(Debug, Default)]
struct State {
    kept: Kept,
    /// What was looked at in this build. A build sees each file in one state.
    looked: HashMap<RepoPath, Option<Digest>>,
    /// What was known of each file when it was first looked at.
    first: HashMap<RepoPath, Option<Known>>,
    changed: bool,
}

impl Sources {
    /// Returns the sources of the workspace at `root`, with what `cache` keeps of them. A damaged file there is an empty one.
    #[must_use]
    pub fn open(root: &Path, cache: &Path) -> Self {
        let file = cache.join("sources.json");
        let kept = kept::read(&file, VERSION).unwrap_or_default();
        Self { root: root.to_owned(), file, state: RefCell::new(State { kept, ..State::default() }) }
    }

    /// Returns the sources of the workspace at `root`, of which nothing is known: for a look at a few. They are never written.
    #[must_use]
    pub fn unknown(root: &Path, cache: &Path) -> Self {
        Self { root: root.to_owned(), file: cache.join("sources.json"), state: RefCell::default() }
    }

    /// Writes what is known for the next build, if it changed.
    pub fn save(&self) -> io::Result<()> {
        let mut state = self.state.borrow_mut();
        if !state.changed {
            return Ok(());
        }
        let live: std::collections::HashSet<Digest> = state.kept.files.values().map(|known| known.bytes).collect();
        state.kept.parsed.retain(|digest, _| live.contains(digest));
        kept::write(&self.file, VERSION, &state.kept)?;
        state.changed = false;
        Ok(())
    }

    /// Forgets what was looked at, so that the next questions see the files as they are then.
    pub fn look_again(&self) {
        self.state.borrow_mut().looked.clear();
    }

    /// Returns all files that were looked at, those that were not there too, as they were at the first look: what was made of them was made of that.
    #[must_use]
    pub fn looked_at(&self) -> BTreeMap<RepoPath, Option<Known>> {
        self.state.borrow().first.iter().map(|(path, known)| (path.clone(), *known)).collect()
    }

    /// Returns whether the file at `path`, or one below it, was looked at.
    #[must_use]
    pub fn has_looked_at(&self, path: &RepoPath) -> bool {
        let state = self.state.borrow();
        let below = format!("{path}/");
        state.first.contains_key(path) || state.first.keys().any(|looked| looked.as_str().starts_with(&below))
    }

    /// Looks at a file anew, and returns what is known of it now.
    pub fn now(&self, path: &RepoPath) -> Option<Known> {
        let mut state = self.state.borrow_mut();
        self.digest_now(path, &mut state)?;
        state.kept.files.get(path).copied()
    }

    /// Returns the digest of the bytes of the file at `path`, or None where there is no file.
    pub fn bytes(&self, path: &RepoPath) -> Option<Digest> {
        let mut state = self.state.borrow_mut();
        if let Some(&looked) = state.looked.get(path) {
            return looked;
        }
        self.digest_now(path, &mut state)
    }

    /// Returns what the Python file at `path` says, or None where there is no file.
    pub fn python(&self, path: &RepoPath) -> Option<Python> {
        let digest = self.bytes(path)?;
        let mut state = self.state.borrow_mut();
        if let Some(python) = state.kept.parsed.get(&digest) {
            return Some(python.clone());
        }
        let bytes = fs::read(&path.under(&self.root)).ok()?;
        let python = python::read(&bytes);
        state.kept.parsed.insert(Digest::of(&bytes), python.clone());
        state.changed = true;
        Some(python)
    }

    /// Returns the closure of the kernel file at `path`: empty where there is no file.
    pub fn closure(&self, path: &RepoPath) -> BTreeMap<RepoPath, Source> {
        let found = closure(path, &PACKAGES, &mut |path| self.python(path));
        let source =
            |path: &RepoPath, python: &Python| Some(Source { meaning: python.meaning, bytes: self.bytes(path)? });
        found.iter().filter_map(|(path, python)| Some((path.clone(), source(path, python)?))).collect()
    }

    /// Returns what the file at `path` is now, in the terms of `like`.
    pub fn seen(&self, path: &RepoPath, like: Seen) -> Seen {
        match like {
            Seen::Bytes(_) => self.bytes(path).map_or(Seen::Absent, Seen::Bytes),
            Seen::Meaning(_) => self.python(path).map_or(Seen::Absent, |python| Seen::Meaning(python.meaning)),
            Seen::Absent => self.as_discovered(path),
        }
    }

    /// Returns what a record keeps of a file that an action turned out to look at: the meaning of Python, the bytes of anything else.
    pub fn as_discovered(&self, path: &RepoPath) -> Seen {
        if Path::new(path.as_str()).extension().is_some_and(|ending| ending == "py") {
            self.python(path).map_or(Seen::Absent, |python| Seen::Meaning(python.meaning))
        } else {
            self.bytes(path).map_or(Seen::Absent, Seen::Bytes)
        }
    }

    /// Returns what the Python file at `path` is at this moment, whatever was looked at before; None where there is no file.
    pub fn at_this_moment(&self, path: &RepoPath) -> Option<Source> {
        let state = self.state.borrow();
        let known = Known::now(&path.under(&self.root), state.kept.files.get(path).copied())?;
        let parsed = state.kept.parsed.get(&known.bytes).map(|python| python.meaning);
        let meaning = || Some(python::read(&fs::read(&path.under(&self.root)).ok()?).meaning);
        Some(Source { meaning: parsed.or_else(meaning)?, bytes: known.bytes })
    }

    /// Looks at all of `paths`, on all cores where they are many, so that later questions about them find the answer.
    pub fn look_at(&self, paths: &[RepoPath]) {
        if paths.len() < WORTH_THREADS {
            return;
        }
        let mut state = self.state.borrow_mut();
        let (root, kept) = (self.root.as_path(), &state.kept.files);
        let found: Vec<Option<Known>> =
            paths.par_iter().map(|path| Known::now(&path.under(root), kept.get(path).copied())).collect();
        for (path, known) in paths.iter().zip(found) {
            state.take(path, known);
        }
    }

    fn digest_now(&self, path: &RepoPath, state: &mut State) -> Option<Digest> {
        let known = Known::now(&path.under(&self.root), state.kept.files.get(path).copied());
        state.take(path, known)
    }
}

impl State {
    /// Keeps what is now known of a file, and returns the digest of its bytes.
    fn take(&mut self, path: &RepoPath, known: Option<Known>) -> Option<Digest> {
        let before = match known {
            Some(known) => self.kept.files.insert(path.clone(), known),
            None => self.kept.files.remove(path),
        };
        self.changed |= before != known;
        let digest = known.map(|known| known.bytes);
        self.first.entry(path.clone()).or_insert(known);
        self.looked.insert(path.clone(), digest);
        digest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looking_at_many_files_at_once_tells_what_asking_for_each_tells() {
        let folder = tempfile::tempdir().unwrap();
        let name = |number: usize| RepoPath::new(&format!("kernels/f{number}.py")).unwrap();
        let paths: Vec<RepoPath> = (0..WORTH_THREADS * 2).map(name).collect();
        for path in paths.iter().step_by(2) {
            fs::write(&path.under(folder.path()), path.as_str().as_bytes()).unwrap();
        }
        let (each, many) = (Sources::open(folder.path(), folder.path()), Sources::open(folder.path(), folder.path()));
        many.look_at(&paths);
        fs::remove(&folder.path().join("kernels")).unwrap();
        let there = |path: &RepoPath| many.bytes(path);
        assert!(paths.iter().step_by(2).all(|path| there(path) == Some(Digest::of(path.as_str().as_bytes()))));
        assert!(paths.iter().skip(1).step_by(2).all(|path| there(path).is_none()));
        assert_eq!(each.bytes(&paths[0]), None, "only what was looked at before is remembered");
    }
}
