//! Installed modules: where the interpreter finds what kernels import from outside of the workspace, looked up without starting it.
//!
//! A module is named like a file of the workspace, as `module:mykernels.ops`, whatever folder it lies in: records hold such names. It is looked up as Python
//! does: on `sys.path`, then where editable installs say. It does not know who imports it.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use t2t_model::path::RepoPath;

use crate::fs;

/// The prefix of a module's name, in place of a file's folder.
pub(crate) const MARK: &str = "module:";

/// Endings of modules beside compiled ones, in the order in which Python tries them.
const ENDINGS: [&str; 2] = [".py", ".pyc"];

/// The ending of the folder with the metadata of a distribution.
const INFO: &str = ".dist-info";

/// Where an interpreter looks for modules.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Places {
    /// The folders of `sys.path`.
    pub path: Vec<String>,
    /// The endings of compiled modules, in order.
    pub suffixes: Vec<String>,
    /// Module → its file or folder, for editable installs that no folder of `sys.path` holds.
    pub mapped: BTreeMap<String, String>,
}

/// What a module is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found {
    /// A file; for a package its `__init__`.
    File(PathBuf),
    /// A package that has folders and no file.
    Namespace,
    /// There is none.
    Nothing,
}

/// A module, and the folders in which its submodules are looked up.
#[derive(Debug, Clone)]
struct Module {
    found: Found,
    folders: Vec<PathBuf>,
}

/// The modules of an interpreter. Each is looked up once.
#[derive(Debug, Default)]
pub struct Installed {
    places: Places,
    known: RefCell<HashMap<String, Module>>,
    /// The folders that were looked into.
    searched: RefCell<BTreeSet<PathBuf>>,
}

/// Returns the module that a name of a record means; None where it means a file of the workspace.
#[must_use]
pub fn module(path: &RepoPath) -> Option<&str> {
    path.as_str().strip_prefix(MARK)
}

impl Installed {
    /// Returns the modules that are found in these places.
    #[must_use]
    pub fn new(places: Places) -> Self {
        Self { places, ..Self::default() }
    }

    /// Returns what the module with this dotted name is.
    #[must_use]
    pub(crate) fn find(&self, name: &str) -> Found {
        self.look(name).found
    }

    /// Returns the folders that were searched. While no name in any of them changes, a new search would find the same.
    #[must_use]
    pub(crate) fn searched(&self) -> BTreeSet<PathBuf> {
        self.searched.borrow().clone()
    }

    /// Returns the version of the distribution that has the topmost module `name`, as its metadata say it: those of a distribution of that name, else of one that lists the module.
    #[must_use]
    pub(crate) fn version(&self, name: &str) -> Option<String> {
        let told = |folder: &Path| {
            let names = fs::names(folder);
            let all = || names.iter().filter_map(|entry| entry.strip_suffix(INFO)?.rsplit_once('-'));
            let own = all().find(|(distribution, _)| plain(distribution) == plain(name));
            let lists = |(distribution, version): &(&str, &str)| {
                let file = folder.join(format!("{distribution}-{version}{INFO}")).join("top_level.txt");
                let listed = fs::read_if_there(&file).ok().flatten().unwrap_or_default();
                String::from_utf8_lossy(&listed).lines().any(|module| module.trim() == name)
            };
            own.or_else(|| all().find(lists)).map(|(_, version)| version.to_owned())
        };
        self.places.path.iter().find_map(|folder| told(Path::new(folder)))
    }

    /// Forgets what was found.
    pub(crate) fn look_again(&self) {
        self.known.borrow_mut().clear();
    }

    fn look(&self, name: &str) -> Module {
        if let Some(known) = self.known.borrow().get(name) {
            return known.clone();
        }
        let found = self.looked_for(name);
        self.known.borrow_mut().insert(name.to_owned(), found.clone());
        found
    }

    fn looked_for(&self, name: &str) -> Module {
        let (folders, own) = match name.rsplit_once('.') {
            Some((package, own)) => (self.look(package).folders, own),
            None => (self.places.path.iter().map(PathBuf::from).collect(), name),
        };
        let mut portions = Vec::new();
        for folder in folders {
            if let Some(file) = self.file_in(&folder, own) {
                return file;
            }
            // The portion itself counts as searched, too: an `__init__` that appears in it would make it an ordinary package.
            let portion = Some(folder.join(own)).filter(|portion| portion.is_dir());
            self.searched.borrow_mut().extend(portion.iter().cloned().chain([folder]));
            portions.extend(portion);
        }
        match self.editable(name) {
            Some(mapped) => mapped,
            None if portions.is_empty() => Module { found: Found::Nothing, folders: portions },
            None => Module { found: Found::Namespace, folders: portions },
        }
    }

    /// Returns the module `own` that a folder has, which wins over one in a later folder.
    fn file_in(&self, folder: &Path, own: &str) -> Option<Module> {
        let package = folder.join(own);
        if package.is_dir()
            && let Some(file) = self.with_ending(&package.join("__init__"))
        {
            self.searched.borrow_mut().extend([folder.to_owned(), package.clone()]);
            return Some(Module { found: Found::File(file), folders: vec![package] });
        }
        let file = self.with_ending(&package)?;
        self.searched.borrow_mut().insert(folder.to_owned());
        Some(Module { found: Found::File(file), folders: Vec::new() })
    }

    fn with_ending(&self, base: &Path) -> Option<PathBuf> {
        let endings = self.places.suffixes.iter().map(String::as_str).chain(ENDINGS);
        let mut files = endings.map(|ending| {
            let mut file = base.as_os_str().to_owned();
            file.push(ending);
            PathBuf::from(file)
        });
        files.find(|file| fs::stat(file).is_some())
    }

    /// Returns what an editable install says of a module: its file, or that it is a namespace above named modules.
    fn editable(&self, name: &str) -> Option<Module> {
        if let Some(place) = self.places.mapped.get(name).map(Path::new) {
            let (above, own) = (place.parent()?, place.file_name()?.to_str()?);
            let portion = || Module { found: Found::Namespace, folders: vec![place.to_owned()] };
            self.searched.borrow_mut().insert(above.to_owned());
            return self.file_in(above, own).or_else(|| place.is_dir().then(portion));
        }
        let below = format!("{name}.");
        let is_named = self.places.mapped.keys().any(|module| module.starts_with(&below));
        is_named.then(|| Module { found: Found::Namespace, folders: Vec::new() })
    }
}

/// Returns the name of a distribution or a module in the form in which both are alike.
fn plain(name: &str) -> String {
    name.to_lowercase().replace(['-', '.'], "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn installed(folder: &Path, files: &[&str], mapped: &[(&str, &str)]) -> Installed {
        for file in files {
            fs::write(&folder.join(file), b"").unwrap();
        }
        let text = |path: PathBuf| path.to_str().unwrap().to_owned();
        Installed::new(Places {
            path: ["a", "b"].map(|name| text(folder.join(name))).to_vec(),
            suffixes: vec![".cpython-312-x86_64-linux-gnu.so".to_owned(), ".abi3.so".to_owned(), ".so".to_owned()],
            mapped: mapped.iter().map(|(name, place)| ((*name).to_owned(), text(folder.join(place)))).collect(),
        })
    }

    #[test]
    fn modules_are_found_as_python_finds_them() {
        let folder = tempfile::tempdir().unwrap();
        let files = [
            "a/single.py",
            "b/single/__init__.py",
            "b/package/__init__.py",
            "b/package.py",
            "b/package/below.py",
            "a/compiled.abi3.so",
            "a/compiled.py",
            "a/name/space.py",
            "b/name/other.py",
            "b/whole/__init__.py",
            "a/whole/not.py",
            "elsewhere/mine/__init__.py",
            "elsewhere/mine/deep/code.py",
            "elsewhere/alone.py",
            "elsewhere/part/x.py",
        ];
        let mapped = [("mine", "elsewhere/mine"), ("alone", "elsewhere/alone"), ("space.part", "elsewhere/part")];
        let installed = installed(folder.path(), &files, &mapped);
        let file = |file: &str| Found::File(folder.path().join(file));
        for (name, found) in [
            ("single", file("a/single.py")),
            ("package", file("b/package/__init__.py")),
            ("package.below", file("b/package/below.py")),
            ("package.none", Found::Nothing),
            ("compiled", file("a/compiled.abi3.so")),
            ("name", Found::Namespace),
            ("name.space", file("a/name/space.py")),
            ("name.other", file("b/name/other.py")),
            ("whole", file("b/whole/__init__.py")),
            ("whole.not", Found::Nothing),
            ("single.below", Found::Nothing),
            ("mine", file("elsewhere/mine/__init__.py")),
            ("mine.deep", Found::Namespace),
            ("mine.deep.code", file("elsewhere/mine/deep/code.py")),
            ("alone", file("elsewhere/alone.py")),
            ("space", Found::Namespace),
            ("space.part", Found::Namespace),
            ("space.part.x", file("elsewhere/part/x.py")),
            ("none", Found::Nothing),
        ] {
            assert_eq!(installed.find(name), found, "{name}");
        }
    }

    #[test]
    fn a_version_is_that_of_the_distribution_of_the_name_or_of_one_that_lists_the_module() {
        let folder = tempfile::tempdir().unwrap();
        let files = [
            "a/flag_gems-2.1.dist-info/METADATA",
            "b/Other_Name-0.5.dist-info/METADATA",
            "b/flag_gems-9.dist-info/METADATA",
        ];
        let installed = installed(folder.path(), &files, &[]);
        fs::write(&folder.path().join("b/Other_Name-0.5.dist-info/top_level.txt"), b"first\nlisted\n").unwrap();
        let version = |name: &str| installed.version(name);
        assert_eq!(version("flag_gems").as_deref(), Some("2.1"), "the first folder of the path counts");
        assert_eq!(version("listed").as_deref(), Some("0.5"));
        assert_eq!(version("other-name").as_deref(), Some("0.5"));
        assert_eq!(version("list"), None);
    }

    #[test]
    fn what_was_searched_changes_whenever_something_else_would_be_found() {
        let folder = tempfile::tempdir().unwrap();
        fs::make_folder(&folder.path().join("a")).unwrap();
        let installed = installed(folder.path(), &["b/package/__init__.py", "b/package/below.py"], &[]);
        let _ = (installed.find("package.below"), installed.find("none"));
        let searched: Vec<PathBuf> = installed.searched().into_iter().collect();
        assert_eq!(searched, ["a", "b", "b/package"].map(|name| folder.path().join(name)));
        fs::write(&folder.path().join("a/package.py"), b"").unwrap();
        installed.look_again();
        assert_eq!(installed.find("package"), Found::File(folder.path().join("a/package.py")));
    }
}
