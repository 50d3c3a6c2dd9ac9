//! The workspace's Python files that go with the exported kernels: each as it is, but for the names of the workspace's modules in its imports.
//!
//! It does not know what calls them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use t2t_model::digest::Digest;
use t2t_model::path::RepoPath;
use t2t_python::moved::moved;
use t2t_python::used::uses;
use t2t_store::fs;
use t2t_store::sources::PACKAGES;

use super::super::error::CliError;
use crate::session::Session;

/// The folder of the package that has them, each at its place in the workspace.
const HOME: &str = "_workspace";

/// Where modules are imported from beside `sources:` of ops.yaml, as a build does it.
const HOMES: [&str; 2] = ["", "src/"];

/// The files that were taken so far.
#[derive(Debug)]
pub(super) struct Sources<'a> {
    session: &'a Session,
    /// Where each lies in the package → what it holds.
    pub(super) files: BTreeMap<String, Vec<u8>>,
    /// Where each lies in the package → the file of the workspace that it was.
    was: BTreeMap<String, (String, Digest)>,
}

/// A file with all that it imports from the workspace.
#[derive(Debug)]
pub(super) struct Taken {
    /// The name of its module, relative to the package.
    pub(super) module: String,
    /// What it holds.
    pub(super) text: String,
    /// The files of the workspace, it and those that it imports.
    pub(super) files: Vec<String>,
    /// Whether the code of one of them names libdevice, which Triton's interpreter does not have.
    pub(super) names_libdevice: bool,
}

impl<'a> Sources<'a> {
    /// Returns none.
    pub(super) fn new(session: &'a Session) -> Self {
        Self { session, files: BTreeMap::new(), was: BTreeMap::new() }
    }

    /// Takes the Python file of the workspace at `file` with all that it imports from there. Fails where one cannot be read, is not UTF-8, or changed since the session was opened.
    pub(super) fn take(&mut self, file: &str) -> Result<Taken, CliError> {
        let unread = |why: String| CliError::misuse(format!("`{file}` cannot be exported: {why}"), "run `t2t build`");
        let path = RepoPath::new(file).map_err(|_| unread("it lies outside of the workspace".to_owned()))?;
        let bytes = |path: &RepoPath| fs::read(&path.under(&self.session.root));
        let closure = if let Some(known) = self.session.inventory.files.get(file) {
            known.closure.clone()
        } else {
            let own = bytes(&path).map_err(|error| unread(error.to_string()))?;
            self.session.kernel_file(&path, &own).closure
        };
        let reached: BTreeSet<&str> = closure.keys().map(RepoPath::as_str).collect();
        let mut own = None;
        let mut names_libdevice = false;
        let mut found = Vec::new();
        for (one, source) in &closure {
            let held = bytes(one).map_err(|error| unread(format!("`{one}`: {error}")))?;
            if Digest::of(&held) != source.bytes {
                return Err(unread(format!("`{one}` changed meanwhile")));
            }
            let text = String::from_utf8(held).map_err(|_| unread(format!("`{one}` is not UTF-8")))?;
            let place = place(one.as_str());
            let led = moved(&text, &|module| self.led(module, &place, &reached));
            let led = led.ok_or_else(|| unread(format!("`{one}` is no Python that can be read")))?;
            found.push(one.to_string());
            names_libdevice |= uses(&text, "libdevice");
            if *one == path {
                own = Some(text);
            }
            let was = (one.to_string(), source.bytes);
            if self.was.insert(place.clone(), was.clone()).is_some_and(|other| other != was) {
                return Err(unread(format!("two files of the workspace would both be `{place}`")));
            }
            self.files.insert(place, led.into_bytes());
        }
        let text = own.ok_or_else(|| unread("no such file".to_owned()))?;
        Ok(Taken { module: format!(".{}", module_of(&place(file))), text, files: found, names_libdevice })
    }

    /// Returns where a module of the workspace went, seen from the file at `from` in the package, by the files that were reached; None for any other module.
    fn led(&self, module: &str, from: &str, reached: &BTreeSet<&str>) -> Option<String> {
        let path = module.replace('.', "/");
        let first = path.split('/').next().unwrap_or_default();
        let own = self.session.spec.sources.iter().map(|folder| format!("{folder}/"));
        let homes: Vec<String> = HOMES.iter().map(ToString::to_string).chain(own).collect();
        let homes = if PACKAGES.contains(&first) { &homes[..1] } else { &homes[..] };
        let is_there = |base: &String| {
            let below = format!("{base}/");
            let file = format!("{base}.py");
            reached.iter().any(|path| *path == file || path.starts_with(&below))
        };
        let found = homes.iter().map(|home| format!("{home}{path}")).find(is_there)?;
        let new = module_of(&place(&found));
        let below = new.strip_prefix(HOME).unwrap_or(&new).trim_start_matches('.');
        // As many dots as folders lead to HOME: a package may be loaded under any name.
        Some(format!("{}{below}", ".".repeat(from.matches('/').count())))
    }

    /// Returns what `provenance.json` says of the files: where each lies in the package, where it was, and the digest of the bytes that it had there.
    pub(super) fn told(&self) -> Value {
        let rows = self
            .was
            .iter()
            .map(|(place, (file, digest))| json!({"place": place, "file": file, "blake3": digest.to_string()}));
        rows.collect()
    }

    /// Returns all files, with an empty `__init__.py` in each folder that has none.
    pub(super) fn with_packages(&self) -> BTreeMap<String, Vec<u8>> {
        let mut found = self.files.clone();
        for file in self.files.keys() {
            for (at, _) in file.match_indices('/') {
                found.entry(format!("{}/__init__.py", &file[..at])).or_default();
            }
        }
        found
    }
}

/// Returns where a file, or a folder, of the workspace lies in the package: each part of its path is made a name that can be imported.
fn place(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').collect();
    let named = parts.iter().map(|part| match part.strip_suffix(".py") {
        Some(stem) => format!("{}.py", identifier(stem)),
        None => identifier(part),
    });
    format!("{HOME}/{}", named.collect::<Vec<_>>().join("/"))
}

/// Returns the module of a place in the package, without the package's name.
fn module_of(place: &str) -> String {
    let stem = place.strip_suffix(".py").unwrap_or(place);
    stem.strip_suffix("/__init__").unwrap_or(stem).replace('/', ".")
}

/// Returns a name that Python takes for one: `_` in the place of each other letter.
pub(super) fn identifier(text: &str) -> String {
    let name: String = text.chars().map(|letter| if letter.is_alphanumeric() { letter } else { '_' }).collect();
    let is_taken =
        name.is_empty() || name.starts_with(|letter: char| letter.is_numeric()) || KEYWORDS.contains(&&*name);
    if is_taken { format!("_{name}") } else { name }
}

/// What Python takes for no name.
const KEYWORDS: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del",
    "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal",
    "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_gets_a_place_that_can_be_imported() {
        for (file, expected, module) in [
            ("kernels/softmax/v1.py", "_workspace/kernels/softmax/v1.py", "_workspace.kernels.softmax.v1"),
            ("my-lib/2d/__init__.py", "_workspace/my_lib/_2d/__init__.py", "_workspace.my_lib._2d"),
            ("kernels/is/v1.2.py", "_workspace/kernels/_is/v1_2.py", "_workspace.kernels._is.v1_2"),
            ("kernels", "_workspace/kernels", "_workspace.kernels"),
        ] {
            assert_eq!((place(file).as_str(), module_of(&place(file)).as_str()), (expected, module));
        }
    }
}
