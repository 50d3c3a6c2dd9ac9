//! The harness: the Python files that the binary carries, the files that each phase imports, and where the worker finds them.
//!
//! It does not know what they do.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use t2t_model::action::Phase;
use t2t_model::digest::Digest;
use t2t_model::path::RepoPath;
use t2t_python::PythonFile;
use t2t_python::closure::{Tree, closure};

use crate::fingerprint::Known;
use crate::fs;
use crate::kept;

/// The package's name.
pub(crate) const PACKAGE: &str = "t2t_harness";

/// The package in it whose functions are called: a file each.
const PHASES: &str = "phases";

/// The format of the file that keeps what parsing told. 1: no version. 2: behind a digest. 3: meanings of `t2t python 2`. 4: without what is imported for type checkers. 5: with the compile of CUDA C++ apart. 6: with that of CUDA C++ in a Python file apart.
const VERSION: u32 = 6;

/// How often the harness is put in its place again if it is removed meanwhile.
const PLACED: usize = 8;

/// The format of the file that keeps how the files lay when they were last read in their place. 1: first.
const PLACED_VERSION: u32 = 1;

/// Files that were read in their place and held what they should, by name.
type Placed = BTreeMap<String, Known>;

const CARRIED: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/harness.rs"));

/// The modules of [`PHASES`] whose functions a phase calls.
fn modules(phase: Phase) -> &'static [&'static str] {
    match phase {
        Phase::Calibrate => &["calibrate"],
        Phase::Analyze => &["analyze"],
        Phase::Compile => &["compile"],
        Phase::Check => &["prepare", "candidate", "judge"],
        Phase::Tune => &["tune"],
        Phase::Bench => &["bench", "sample"],
        Phase::Baseline => &["baseline"],
        Phase::Generate | Phase::Select | Phase::Log | Phase::Summary => &[],
    }
}

/// The module whose function compiles CUDA C++ in the place of the one of [`Phase::Compile`].
const OF_CUDA: &str = "compile_cuda";

/// The same, where it stands in a Python file.
const OF_INLINE: &str = "compile_inline";

/// What the harness files mean to those that import them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meanings {
    /// The digest of those that each phase imports.
    pub phases: BTreeMap<Phase, Digest>,
    /// That of those that the compile of CUDA C++ imports.
    pub of_cuda: Digest,
    /// That of those that the compile of CUDA C++ in a Python file imports.
    pub of_inline: Digest,
}

/// The harness files: those carried, or those of a folder that a developer names. A name has `/` between its parts, as in `cases/inputs.py`.
#[derive(Debug, Clone)]
pub struct Harness {
    files: BTreeMap<String, Cow<'static, [u8]>>,
    folder: Option<PathBuf>,
    digest: OnceLock<Digest>,
}

impl Harness {
    /// Returns the harness of `folder` (`$T2T_HARNESS`), or the one that the binary carries. Fails where the folder cannot be read.
    pub fn open(folder: Option<&Path>) -> io::Result<Self> {
        let Some(folder) = folder else {
            // A watch opens it for each round, and these files are the same in all of them.
            static DIGEST: OnceLock<Digest> = OnceLock::new();
            let files = CARRIED.iter().map(|(name, bytes)| ((*name).to_owned(), Cow::Borrowed(*bytes))).collect();
            let digest = OnceLock::from(*DIGEST.get_or_init(|| digest_of(&files)));
            return Ok(Self { files, folder: None, digest });
        };
        let package = folder.join(PACKAGE);
        let files = fs::files_below(&package, "py").into_iter().filter_map(|path| {
            let name = path.strip_prefix(&package).ok()?.to_str()?.to_owned();
            Some(fs::read(&path).map(|bytes| (name, Cow::Owned(bytes))))
        });
        Ok(Self { files: files.collect::<io::Result<_>>()?, folder: Some(folder.to_owned()), digest: OnceLock::new() })
    }

    /// Returns the folder that holds the package, for the worker's path. Carried files are put under `cache` first, by digest; those that lie there are read and compared, but for those
    /// whose size, times and inode are those of an earlier comparison. Bytecode beside them, which nothing verifies, is removed. If anything had to be written, all files
    /// are checked once more, so that a concurrent `clean` leaves no half of the folder.
    pub fn place(&self, cache: &Path) -> io::Result<PathBuf> {
        let folder = self.folder(cache);
        if self.folder.is_some() {
            return Ok(folder);
        }
        let file = cache.join("toolchain").join(format!("placed-{}.json", self.digest()));
        let before: Placed = kept::read(&file, PLACED_VERSION).unwrap_or_default();
        let mut placed = before.clone();
        for _ in 0..PLACED {
            if self.complete(&folder, &mut placed)? == 0 {
                break;
            }
        }
        if placed != before {
            // Without it the files are read again, which only takes time.
            let _ = kept::write(&file, PLACED_VERSION, &placed);
        }
        // Python trusts bytecode by its source's time and size, so whatever lies there could run instead of the verified source.
        for package in self.folders() {
            let compiled = folder.join(PACKAGE).join(package).join("__pycache__");
            fs::remove(&compiled).map_err(|error| fs::at(&compiled, &error))?;
        }
        Ok(folder)
    }

    /// Returns the folder that [`Self::place`] returns, whether it is filled yet or not.
    #[must_use]
    pub fn folder(&self, cache: &Path) -> PathBuf {
        self.folder.clone().unwrap_or_else(|| cache.join("harness").join(self.digest().short()))
    }

    /// Writes the files that are missing or differ, and returns how many there were. Those that `placed` shows to be as they were when they were read are not read again; the others
    /// are noted there.
    fn complete(&self, folder: &Path, placed: &mut Placed) -> io::Result<usize> {
        let mut written = 0;
        for (name, bytes) in &self.files {
            let path = folder.join(PACKAGE).join(name);
            if placed.get(name).is_some_and(|known| known.holds(&path)) {
                continue;
            }
            if fs::read_own(&path).ok().as_deref() != Some(bytes.as_ref()) {
                fs::write(&path, bytes).map_err(|error| fs::at(&path, &error))?;
                written += 1;
            }
            match Known::now(&path, None).filter(|known| known.bytes == Digest::of(bytes)) {
                Some(known) => placed.insert(name.clone(), known),
                None => placed.remove(name),
            };
        }
        Ok(written)
    }

    /// Returns when a folder that [`Self::place`] fills was last changed, in nanoseconds since 1970; None where they are not there. A folder that was removed
    /// and made anew has another time.
    #[must_use]
    pub fn trace(&self, cache: &Path) -> Option<i64> {
        let package = self.folder(cache).join(PACKAGE);
        self.folders().into_iter().filter_map(|folder| fs::folder_time(&package.join(folder))).max()
    }

    /// Returns the folders of the package that hold files, itself as the empty path.
    fn folders(&self) -> BTreeSet<&Path> {
        self.files.keys().filter_map(|name| Path::new(name).parent()).collect()
    }

    /// Returns the modules that phases call, for servers to import before they fork.
    #[must_use]
    pub fn entries() -> Vec<String> {
        Phase::ALL
            .into_iter()
            .flat_map(modules)
            .chain([&OF_CUDA, &OF_INLINE])
            .map(|module| format!("{PACKAGE}.{PHASES}.{module}"))
            .collect()
    }

    /// Returns the digest of all files' bytes.
    #[must_use]
    pub(crate) fn digest(&self) -> Digest {
        *self.digest.get_or_init(|| digest_of(&self.files))
    }

    /// Returns the semantic digests of the files that phases import. `known` keeps the results of parsing, by the digest of all bytes.
    #[must_use]
    pub fn meanings(&self, known: &Path) -> Meanings {
        let file = known.join(format!("harness-{}.json", self.digest()));
        kept::read(&file, VERSION).unwrap_or_else(|| {
            let meanings = self.parsed();
            let _ = kept::write(&file, VERSION, &meanings);
            meanings
        })
    }

    /// Returns the semantic digest of the file of `module`, of those whose functions are called, and all that it imports; None where there is none.
    #[must_use]
    pub fn meaning_of(&self, module: &str) -> Option<Digest> {
        meaning(&[module], &mut Carried { harness: self, read: BTreeMap::new() })
    }

    /// Returns what [`Self::meanings`] does, from the files themselves. Each is parsed once, however many phases import it.
    fn parsed(&self) -> Meanings {
        let mut files = Carried { harness: self, read: BTreeMap::new() };
        let of = |phase| Some((phase, meaning(modules(phase), &mut files)?));
        let phases = Phase::ALL.into_iter().filter_map(of).collect();
        // `$T2T_HARNESS` may name one without them, for which no CUDA C++ is compiled.
        let mut of = |module| meaning(&[module], &mut files).unwrap_or_else(|| Digest::of(&[]));
        let (of_cuda, of_inline) = (of(OF_CUDA), of(OF_INLINE));
        Meanings { phases, of_cuda, of_inline }
    }
}

/// Returns the digest of all bytes of harness files, with their names.
fn digest_of(files: &BTreeMap<String, Cow<'static, [u8]>>) -> Digest {
    let mut bytes = Vec::new();
    for (name, file) in files {
        bytes.extend_from_slice(name.as_bytes());
        bytes.extend_from_slice(Digest::of(file).as_bytes());
    }
    Digest::of(&bytes)
}

/// Returns the semantic digest of the files that `modules` are and import, None where there is none.
fn meaning(modules: &[&str], files: &mut Carried<'_>) -> Option<Digest> {
    let mut found: BTreeMap<RepoPath, PythonFile> = BTreeMap::new();
    for module in modules {
        let path = RepoPath::new(&format!("{PACKAGE}/{PHASES}/{module}.py")).expect("module names are plain");
        found.extend(closure(&path, files));
    }
    let mut bytes = Vec::new();
    for (path, python) in &found {
        bytes.extend_from_slice(path.as_str().as_bytes());
        bytes.extend_from_slice(python.meaning.as_bytes());
    }
    (!found.is_empty()).then(|| Digest::of(&bytes))
}

/// The harness's files, for the code that follows imports, and what those say that it read.
struct Carried<'a> {
    harness: &'a Harness,
    read: BTreeMap<&'a str, PythonFile>,
}

impl Tree for Carried<'_> {
    fn read(&mut self, path: &RepoPath) -> Option<PythonFile> {
        let name = path.as_str().strip_prefix(PACKAGE)?.strip_prefix('/')?;
        let (name, bytes) = self.harness.files.get_key_value(name)?;
        Some(self.read.entry(name).or_insert_with(|| t2t_python::read_as_run(bytes)).clone())
    }

    fn homes(&mut self, name: &str) -> Vec<String> {
        Some(String::new()).filter(|_| name == PACKAGE).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_module_that_a_phase_calls_is_carried() {
        let harness = Harness::open(None).unwrap();
        for phase in Phase::ALL {
            for module in modules(phase) {
                assert!(harness.files.contains_key(&format!("{PHASES}/{module}.py")), "{phase} calls {module}");
            }
        }
        for module in [OF_CUDA, OF_INLINE] {
            assert!(harness.files.contains_key(&format!("{PHASES}/{module}.py")), "{module}");
        }
    }

    #[test]
    fn a_comment_in_the_harness_changes_no_phase_and_code_changes_those_that_import_it() {
        let harness = Harness::open(None).unwrap();
        let edited = |suffix: &str| {
            let mut other = harness.clone();
            other.files.get_mut("op/flops.py").unwrap().to_mut().extend_from_slice(suffix.as_bytes());
            other
        };
        let before = harness.parsed();
        assert_eq!(before, edited("\n# a comment\n").parsed());
        let changed = edited("\nEXTRA = 1\n").parsed();
        let (phases, others) = (&before.phases, &changed.phases);
        let stale: Vec<Phase> = phases.keys().copied().filter(|phase| phases[phase] != others[phase]).collect();
        assert_eq!(stale, [Phase::Analyze]);
        assert_eq!(before.of_cuda, changed.of_cuda);
    }

    #[test]
    fn the_types_of_the_boundary_are_no_part_of_any_phase() {
        let harness = Harness::open(None).unwrap();
        let mut other = harness.clone();
        other.files.get_mut("boundary/documents.py").unwrap().to_mut().extend_from_slice(b"\nEXTRA = 1\n");
        assert_eq!(harness.parsed(), other.parsed());
        for (name, bytes) in &harness.files {
            let text = String::from_utf8_lossy(bytes);
            let sets = text.lines().any(|line| line.trim_start().starts_with("TYPE_CHECKING"));
            assert!(!sets && !text.contains("typing.TYPE_CHECKING ="), "{name} sets what no import may depend on");
            let is_from_typing = text.contains("from typing import TYPE_CHECKING");
            assert!(is_from_typing || !text.contains("if TYPE_CHECKING"), "{name} has it from elsewhere");
        }
    }

    #[test]
    fn a_placed_file_that_was_changed_is_written_again_whatever_its_times_say() {
        let cache = tempfile::tempdir().unwrap();
        let harness = Harness::open(None).unwrap();
        let file = harness.place(cache.path()).unwrap().join(PACKAGE).join("op/flops.py");
        // From the second time on it is known by its times.
        std::thread::sleep(std::time::Duration::from_millis(50));
        harness.place(cache.path()).unwrap();
        let bytes = fs::read(&file).unwrap();
        let then = std::fs::File::open(&file).unwrap().metadata().unwrap().modified().unwrap();
        let opened = std::fs::File::options().write(true).open(&file).unwrap();
        std::io::Write::write_all(&mut &opened, b"#").unwrap();
        opened.set_modified(then).unwrap();
        drop(opened);
        assert_ne!(fs::read(&file).unwrap(), bytes);
        harness.place(cache.path()).unwrap();
        assert_eq!(fs::read(&file).unwrap(), bytes);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "somebody else moves files at any moment")]
    fn a_harness_that_somebody_removes_while_it_is_placed_is_whole_or_gone() {
        let cache = tempfile::tempdir().unwrap();
        let harness = Harness::open(None).unwrap();
        let place = || harness.place(cache.path()).unwrap();
        place();
        let aside = tempfile::tempdir_in(cache.path()).unwrap();
        for round in 0..40_u32 {
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    std::thread::sleep(std::time::Duration::from_micros(u64::from(round) * 40));
                    let _ = std::fs::rename(cache.path().join("harness"), aside.path().join(round.to_string()));
                });
                place();
            });
            let folder = cache.path().join("harness").join(harness.digest().short()).join(PACKAGE);
            let there = harness.files.keys().filter(|name| folder.join(name).is_file()).count();
            assert!(there == harness.files.len() || there == 0, "round {round}: {there} of {}", harness.files.len());
        }
    }
}
