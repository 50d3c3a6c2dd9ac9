//! Which files and folders a session looked at, and which ones nobody names.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use t2t_model::path::RepoPath;
use t2t_store::assets;
use t2t_store::fingerprint::Fingerprint;
use t2t_store::fs;

use super::{HOMES, OPS, Session};

impl Session {
    /// Returns whether what the file or folder at `path` holds can be of any account for what was decided: it was looked at, or it lies where kernels, templates and
    /// tables do.
    #[must_use]
    pub(crate) fn is_relevant(&self, path: &RepoPath) -> bool {
        let text = path.as_str();
        let is_home = |home: &str| text.strip_prefix(home).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        text == OPS
            || HOMES.iter().any(|home| is_home(home))
            || self.fingerprints.iter().flatten().any(|fingerprint| fingerprint.path == text)
            || self.sources.has_looked_at(path)
    }

    /// Returns the paths of the files and folders that were looked at, absent ones too.
    pub(crate) fn looked_at(&self) -> impl Iterator<Item = String> {
        let declared = self.fingerprints.iter().flatten().map(|fingerprint| fingerprint.path.to_string());
        declared.chain(self.sources.paths())
    }

    /// Returns the Python and CUDA C++ files in the folders of the declared ops that no variant, no `cases.py` and no import of theirs names: most often a variant that
    /// somebody forgot to list.
    #[must_use]
    pub(crate) fn unlisted(&self) -> Vec<RepoPath> {
        let known: BTreeSet<&RepoPath> = self.inventory.files.values().flat_map(|file| file.closure.keys()).collect();
        let is_generated = |path: &RepoPath| self.inventory.generated.contains(path.as_str());
        let folders = self.spec.ops.iter().map(|op| self.root.join("kernels").join(&op.name));
        let endings =
            |folder: PathBuf| ["py", "cu"].into_iter().flat_map(move |ending| fs::files_below(&folder, ending));
        let files = folders.flat_map(endings);
        let paths = files.filter_map(|file| RepoPath::below(&self.root, &file).ok());
        paths
            .filter(|path| !known.contains(path) && !is_generated(path) && !path.as_str().ends_with("/__init__.py"))
            .collect()
    }
}

/// Returns the fingerprints of what is read whatever ops.yaml says, before it is read.
pub(super) fn declared(root: &Path) -> Vec<Fingerprint<'static>> {
    [OPS, assets::DEVICES, assets::CATALOGUE, assets::SUMMARY_TEMPLATE]
        .map(|path| Fingerprint::of_file(root, path))
        .to_vec()
}
