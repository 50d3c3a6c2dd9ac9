//! The parts of a workspace that kernel code may read: its Python, folder by folder, never the workspace itself.
//!
//! A sandbox grants whole folders, so a folder with something unreadable in it is granted in parts. It does not know sandboxes.

use std::fs::{self, DirEntry};
use std::path::{Path, PathBuf};

/// Files that mark a folder as another's: a workspace, an environment of Python, a cache.
const MARKS: [&str; 3] = ["ops.yaml", "pyvenv.cfg", "CACHEDIR.TAG"];

/// Folders at the root that t2t makes, and the one that is readable anyway.
const LEFT_OUT: [&str; 3] = ["cache", "logs", "kernels"];

/// Folders of tools, which hold no sources.
const TOOLS: [&str; 2] = ["node_modules", "__pycache__"];

/// Endings of files that hold keys and certificates.
const SECRETS: [&str; 5] = ["pem", "key", "p12", "pfx", "kdbx"];

/// What was found in a folder.
#[derive(Debug, Default)]
struct Rechecked {
    /// Whether there is Python in it, or below it.
    has_python: bool,
    /// Whether all of it may be read.
    is_open: bool,
    /// The readable parts, if not all may be read.
    parts: Vec<PathBuf>,
}

/// Returns the files and folders of the workspace at `root` that kernel code may read beside `kernels`: its Python, and all of the folders `named`. Links are left out.
#[must_use]
pub fn readable(root: &Path, named: &[String]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in entries(root) {
        let name = entry.file_name();
        if name.to_str().is_none_or(|name| LEFT_OUT.contains(&name) || is_secret(name)) {
            continue;
        }
        if is_folder(&entry) {
            let looked = look(&entry.path());
            if looked.has_python {
                found.extend(looked.granted(entry.path()));
            }
        } else if is_python(&entry) {
            found.push(entry.path());
        }
    }
    let named = named.iter().map(|folder| root.join(folder)).filter(|folder| folder.is_dir());
    found.extend(named.flat_map(|folder| look(&folder).granted(folder)));
    found.sort();
    found.dedup();
    found
}

impl Rechecked {
    fn granted(self, folder: PathBuf) -> Vec<PathBuf> {
        if self.is_open { vec![folder] } else { self.parts }
    }
}

fn look(folder: &Path) -> Rechecked {
    if MARKS.iter().any(|mark| folder.join(mark).exists()) {
        return Rechecked::default();
    }
    let mut looked = Rechecked { is_open: true, ..Rechecked::default() };
    for entry in entries(folder) {
        let name = entry.file_name();
        let is_hidden = name.to_str().is_none_or(is_secret);
        if is_hidden || entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
            looked.is_open = false;
        } else if is_folder(&entry) {
            let below = look(&entry.path());
            looked.has_python |= below.has_python;
            looked.is_open &= below.is_open;
            looked.parts.extend(below.granted(entry.path()));
        } else {
            looked.has_python |= is_python(&entry);
            looked.parts.push(entry.path());
        }
    }
    looked
}

fn entries(folder: &Path) -> impl Iterator<Item = DirEntry> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_name().to_str().is_none_or(|name| !TOOLS.contains(&name)))
}

/// Whether a name is hidden or private: `.env`, `.git`, `.netrc`, `.ssh`, keys.
fn is_secret(name: &str) -> bool {
    let ending = Path::new(name).extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    name.starts_with('.') || SECRETS.contains(&ending.to_ascii_lowercase().as_str())
}

fn is_folder(entry: &DirEntry) -> bool {
    entry.file_type().is_ok_and(|kind| kind.is_dir())
}

fn is_python(entry: &DirEntry) -> bool {
    let path = entry.path();
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    ["py", "pyi", "so"].contains(&ending) && entry.file_type().is_ok_and(|kind| kind.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn readable_of(files: &[&str], named: &[&str]) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            crate::fs::write(&folder.path().join(file), b"").unwrap();
        }
        std::os::unix::fs::symlink("/etc", folder.path().join("link")).unwrap();
        let named: Vec<String> = named.iter().map(|name| (*name).to_owned()).collect();
        let found = readable(folder.path(), &named);
        let relative = found.iter().map(|path| path.strip_prefix(folder.path()).unwrap());
        relative.map(|path| path.to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn python_is_readable_and_what_is_nobody_elses_is_not() {
        let files = [
            "ops.yaml",
            "setup.py",
            ".env",
            "key.pem",
            ".git/config",
            "cache/x.py",
            "logs/y.py",
            "kernels/softmax/v1.py",
            "mine/__init__.py",
            "mine/data/table.json",
            "src/package/code.py",
            "src/package/.env",
            "src/other/code.py",
            "src/key.pem",
            "data/table.json",
            "other/ops.yaml",
            "other/kernels/a.py",
            "venv/pyvenv.cfg",
            "venv/lib/code.py",
            "deep/one/two/code.py",
        ];
        let without = ["deep", "mine", "setup.py", "src/other", "src/package/code.py"];
        assert_eq!(readable_of(&files, &[]), without);
        let with = ["data", "deep", "mine", "setup.py", "src/other", "src/package/code.py"];
        assert_eq!(readable_of(&files, &["data", "src", "none"]), with);
    }
}
