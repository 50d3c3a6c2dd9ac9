//! Sources: what the workspace's files are now, by digest, read only when they changed.
//!
//! When a file must be read again is the business of `fingerprint`. It does not know which files matter.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use t2t_cuda::CudaFile;
use t2t_model::action::Source;
use t2t_model::digest::Digest;
use t2t_model::path::RepoPath;
use t2t_model::record::Seen;
use t2t_python::PythonFile;

use crate::fingerprint::Known;
use crate::fs;
use crate::installed::{self, Found, Installed};

mod kept;
mod looks;
mod imports;
mod includes;
mod made;

pub use self::includes::CudaClosure;
use self::kept::Kept;

/// Top-level packages that always mean folders of the workspace.
pub const PACKAGES: [&str; 1] = ["kernels"];

/// Where kernels import from beside the packages above: the workspace itself, and `src` below it. `sources:` in ops.yaml adds to them.
pub(crate) const HOMES: [&str; 2] = ["", "src/"];

/// The constant in place of the bytes of a package that has folders and no file.
const NAMESPACE: &[u8] = b"namespace";

/// From this many files on threads save more than they cost.
const WORTH_THREADS: usize = 64;

/// The results of parsing, by the digest of the bytes.
type Parsed = (Digest, PythonFile);

/// The workspace's files.
#[derive(Debug)]
pub struct Sources {
    root: PathBuf,
    file: PathBuf,
    /// The folders that are imported from, as in [`HOMES`].
    homes: Vec<String>,
    installed: Installed,
    state: RefCell<State>,
}

#[derive(Debug, Default)]
struct State {
    kept: Kept,
    /// The files that this build has looked at. A build sees each file in one state.
    looked: HashMap<RepoPath, Option<Digest>>,
    /// What was known of each file when it was first looked at.
    first: HashMap<RepoPath, Option<Known>>,
    /// Folders that could be packages, and whether they were there at the first look.
    packages: HashMap<String, bool>,
    /// What CUDA C++ files say, by the digest of their bytes. They are few, and read again by the next build.
    cuda: HashMap<Digest, CudaFile>,
    changed: bool,
}

impl Sources {
    /// Returns the sources of the workspace at `root`, with what `cache` keeps of them. A damaged file there is an empty one.
    #[must_use]
    pub fn open(root: &Path, cache: &Path) -> Self {
        let file = cache.join("sources.json");
        let kept = Kept::read(&file);
        Self { file, state: RefCell::new(State { kept, ..State::default() }), ..Self::unknown(root, cache) }
    }

    /// Returns the sources of the workspace at `root` with nothing known yet, for a look at a few files. They are never written.
    #[must_use]
    pub fn unknown(root: &Path, cache: &Path) -> Self {
        Self {
            root: root.to_owned(),
            file: cache.join("sources.json"),
            homes: HOMES.map(str::to_owned).to_vec(),
            installed: Installed::default(),
            state: RefCell::default(),
        }
    }

    /// Returns the sources with what the interpreter has installed.
    #[must_use]
    pub fn beside(self, installed: Installed) -> Self {
        Self { installed, ..self }
    }

    /// Returns the version of the installed distribution that has the module, where its metadata say so.
    #[must_use]
    pub fn version(&self, module: &str) -> Option<String> {
        self.installed.version(module)
    }

    /// Returns the sources where kernels may also import from these `folders`.
    #[must_use]
    pub fn importing_from(mut self, folders: &[String]) -> Self {
        self.homes.extend(folders.iter().map(|folder| format!("{folder}/")));
        self
    }

    /// Writes what is known for the next build, if it changed.
    pub fn save(&self) -> io::Result<()> {
        let mut state = self.state.borrow_mut();
        if !state.changed {
            return Ok(());
        }
        state.kept.write(&self.file)?;
        state.changed = false;
        Ok(())
    }

    /// Forgets all looks, so that later calls see the files as they are then.
    pub fn look_again(&self) {
        self.installed.look_again();
        self.state.borrow_mut().looked.clear();
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

    /// Returns the path on disk of a workspace file or of an installed module's file; None where there is none.
    fn place(&self, path: &RepoPath) -> Option<PathBuf> {
        let Some(module) = installed::module(path) else { return Some(path.under(&self.root)) };
        match self.installed.find(module) {
            Found::File(file) => Some(file),
            Found::Namespace | Found::Nothing => None,
        }
    }

    /// Returns whether `path` names an installed package without a file of its own.
    fn is_namespace(&self, path: &RepoPath) -> bool {
        installed::module(path).is_some_and(|module| self.installed.find(module) == Found::Namespace)
    }

    /// Returns what the Python file at `path` says, or None where there is no file.
    pub fn python(&self, path: &RepoPath) -> Option<PythonFile> {
        let digest = self.bytes(path)?;
        let mut state = self.state.borrow_mut();
        if let Some(python) = state.kept.parsed.get(&digest) {
            return Some(python.clone());
        }
        let bytes = fs::read(&self.place(path)?).ok()?;
        let python = t2t_python::read(&bytes);
        // The file may have changed since `bytes` looked at it. Under the digest of what was parsed the entry is right either way.
        state.kept.parsed.insert(Digest::of(&bytes), python.clone());
        state.changed = true;
        Some(python)
    }

    /// Returns what the file at `path` is now, in the terms of `like`.
    pub fn seen(&self, path: &RepoPath, like: Seen) -> Seen {
        match like {
            _ if installed::module(path).is_some() => self.as_discovered(path),
            Seen::Bytes(_) => self.bytes(path).map_or(Seen::Absent, Seen::Bytes),
            Seen::Meaning(_) => self.python(path).map_or(Seen::Absent, |python| Seen::Meaning(python.meaning)),
            Seen::Absent => self.as_discovered(path),
        }
    }

    /// Returns what a record keeps of a discovered file: the semantic digest of Python, the digest of anything else.
    pub fn as_discovered(&self, path: &RepoPath) -> Seen {
        if self.is_namespace(path) {
            return Seen::Bytes(Digest::of(NAMESPACE));
        }
        if self.place(path).is_some_and(|place| place.extension().is_some_and(|ending| ending == "py")) {
            self.python(path).map_or(Seen::Absent, |python| Seen::Meaning(python.meaning))
        } else {
            self.bytes(path).map_or(Seen::Absent, Seen::Bytes)
        }
    }

    /// Returns what the file at `path`, which was `before`, is at this moment, whatever was looked at since; None where there is no file. Of other bytes only Python
    /// may have the same meaning.
    pub fn at_this_moment(&self, path: &RepoPath, before: &Source) -> Option<Source> {
        let state = self.state.borrow();
        let known = Known::now(&path.under(&self.root), state.kept.files.get(path).copied())?;
        if known.bytes == before.bytes {
            return Some(before.clone());
        }
        if !is_python(path) {
            return Some(Source { meaning: known.bytes, bytes: known.bytes });
        }
        let parsed = state.kept.parsed.get(&known.bytes).map(|python| python.meaning);
        let meaning = || Some(t2t_python::read(&fs::read(&path.under(&self.root)).ok()?).meaning);
        Some(Source { meaning: parsed.or_else(meaning)?, bytes: known.bytes })
    }

    /// Looks at all of `paths`, which are Python files, and parses the new ones, on all cores if they are many. Later calls find the results.
    pub fn look_at(&self, paths: &[RepoPath]) {
        // Few files are looked at one by one when they are asked for.
        if paths.len() < WORTH_THREADS {
            return;
        }
        let mut state = self.state.borrow_mut();
        let (root, Kept { files, parsed, .. }) = (self.root.as_path(), &state.kept);
        let look = |path: &RepoPath| {
            let file = path.under(root);
            let known = Known::now(&file, files.get(path).copied());
            let is_new = known.is_some_and(|known| !parsed.contains_key(&known.bytes));
            let bytes = is_new.then(|| fs::read(&file).ok()).flatten();
            (known, bytes.map(|bytes| (Digest::of(&bytes), t2t_python::read(&bytes))))
        };
        let found: Vec<(Option<Known>, Option<Parsed>)> = paths.par_iter().map(look).collect();
        for (path, (known, python)) in paths.iter().zip(found) {
            state.take(path, known);
            state.changed |= python.is_some();
            state.kept.parsed.extend(python);
        }
    }

    fn digest_now(&self, path: &RepoPath, state: &mut State) -> Option<Digest> {
        let place = self.place(path);
        let known = place.and_then(|place| Known::now(&place, state.kept.files.get(path).copied()));
        state.take(path, known)
    }
}

fn is_python(path: &RepoPath) -> bool {
    Path::new(path.as_str()).extension().is_some_and(|ending| ending == "py")
}

impl State {
    /// Keeps what is now known of a file, and returns the digest of its bytes.
    fn take(&mut self, path: &RepoPath, known: Option<Known>) -> Option<Digest> {
        let before = match known {
            Some(known) => self.kept.files.insert(path.clone(), known),
            None => self.kept.files.remove(path),
        };
        self.changed |= before != known;
        // `first` keeps the state of the first look, from which results may have been made; `looked` has the present one.
        let digest = known.map(|known| known.bytes);
        self.first.entry(path.clone()).or_insert(known);
        self.looked.insert(path.clone(), digest);
        digest
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::kept::BEFORE;
    use super::*;

    #[test]
    fn a_revision_that_comes_back_is_not_parsed_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = |number: usize| RepoPath::new(&format!("kernels/f{number}.py")).unwrap();
        let paths: Vec<RepoPath> = (0..WORTH_THREADS).map(path).collect();
        let put = |revision: &str| {
            let sources = Sources::open(folder.path(), folder.path());
            let known: HashSet<Digest> = sources.state.borrow().kept.parsed.keys().copied().collect();
            for path in &paths {
                fs::write(&path.under(folder.path()), format!("x = '{path} {revision}'\n").as_bytes()).unwrap();
            }
            sources.look_at(&paths);
            let asked: Vec<PythonFile> = paths.iter().map(|path| sources.python(path).unwrap()).collect();
            let read = |path: &RepoPath| t2t_python::read(&fs::read(&path.under(folder.path())).unwrap());
            assert_eq!(asked, paths.iter().map(read).collect::<Vec<_>>());
            sources.save().unwrap();
            let parsed = sources.state.borrow().kept.parsed.len();
            assert!(parsed <= paths.len() * (BEFORE + 1), "{parsed}");
            paths.iter().filter(|path| !known.contains(&sources.bytes(path).unwrap())).count()
        };
        let new = ["one", "two", "one", "two", "three", "one", "four", "one", "two"].map(put);
        let all = WORTH_THREADS;
        assert_eq!(new, [all, all, 0, 0, all, 0, all, 0, all], "of the oldest nothing is remembered");
    }

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
