//! Sources: what the workspace's files are now, by digest, read only when they changed.
//!
//! A file is not read again while its size, times and inode are those of the last reading, unless it was written so shortly before that
//! reading that a later write could have left the same times. It does not know which files matter.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::action::Source;
use crate::closure::closure;
use crate::digest::Digest;
use crate::fs::{self, Stat};
use crate::path::RepoPath;
use crate::python::{self, Python};
use crate::record::Seen;

/// The format of the file below; another number is read as an empty one. 1: first.
const VERSION: u32 = 1;

/// Top-level packages that mean folders of the workspace.
pub const PACKAGES: [&str; 1] = ["kernels"];

/// File systems keep times in steps of up to this many nanoseconds.
const STEP: i64 = 20_000_000;

#[derive(Debug, Serialize, Deserialize, Default)]
struct Kept {
    version: u32,
    files: BTreeMap<RepoPath, Known>,
    parsed: HashMap<Digest, Python>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Known {
    stat: Stat,
    /// When the file was read, in nanoseconds since 1970.
    read: i64,
    bytes: Digest,
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
    changed: bool,
}

impl Sources {
    /// Returns the sources of the workspace at `root`, with what `cache` keeps of them. A damaged file there is an empty one.
    #[must_use]
    pub fn open(root: &Path, cache: &Path) -> Self {
        let file = cache.join("sources.json");
        let bytes = fs::read(&file).unwrap_or_default();
        let kept = serde_json::from_slice::<Kept>(&bytes).ok().filter(|kept| kept.version == VERSION);
        let kept = kept.unwrap_or(Kept { version: VERSION, ..Kept::default() });
        Self { root: root.to_owned(), file, state: RefCell::new(State { kept, ..State::default() }) }
    }

    /// Writes what is known for the next build, if it changed.
    pub fn save(&self) -> io::Result<()> {
        let mut state = self.state.borrow_mut();
        if !state.changed {
            return Ok(());
        }
        let live: std::collections::HashSet<Digest> = state.kept.files.values().map(|known| known.bytes).collect();
        state.kept.parsed.retain(|digest, _| live.contains(digest));
        let bytes = serde_json::to_vec(&state.kept).map_err(io::Error::other)?;
        fs::write(&self.file, &bytes)?;
        state.changed = false;
        Ok(())
    }

    /// Forgets what was looked at, so that the next questions see the files as they are then.
    pub fn look_again(&self) {
        self.state.borrow_mut().looked.clear();
    }

    /// Returns the digest of the bytes of the file at `path`, or None where there is no file.
    pub fn bytes(&self, path: &RepoPath) -> Option<Digest> {
        let mut state = self.state.borrow_mut();
        if let Some(&looked) = state.looked.get(path) {
            return looked;
        }
        let digest = self.digest_now(path, &mut state);
        state.looked.insert(path.clone(), digest);
        digest
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

    fn digest_now(&self, path: &RepoPath, state: &mut State) -> Option<Digest> {
        let file = path.under(&self.root);
        let Some(stat) = fs::stat(&file) else {
            state.changed |= state.kept.files.remove(path).is_some();
            return None;
        };
        if let Some(known) = state.kept.files.get(path)
            && known.stat == stat
            && stat.mtime.max(stat.ctime) + STEP < known.read
        {
            return Some(known.bytes);
        }
        let read = fs::now();
        let bytes = Digest::of(&fs::read(&file).ok()?);
        state.kept.files.insert(path.clone(), Known { stat, read, bytes });
        state.changed = true;
        Some(bytes)
    }
}
