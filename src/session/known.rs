//! What is known of earlier results when a session is opened: those of the store, and published ones.
//!
//! It does not know which of them stand.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::thread::{self, JoinHandle};

use t2t_model::path::RepoPath;
use t2t_spec::Spec;
use t2t_store::results::Published;
use t2t_store::sources::Sources;
use t2t_store::store::journal::{Journal, Loaded};

use super::part::Part;

/// The reading of a store's journal, while something else is done.
pub(crate) type Reading = JoinHandle<io::Result<Loaded>>;

/// Reads the journal of the store under `cache` from now on, on another core. Nobody may write it until it is read. None where there is no thread to be had.
#[must_use]
pub(crate) fn read_ahead(cache: &Path) -> Option<Reading> {
    let journal = Journal::open(cache);
    thread::Builder::new().spawn(move || journal.load()).ok()
}

/// Returns what the store under `cache` knows, of a part of the workspace what that takes.
pub(super) fn known(cache: &Path, part: Option<&Part>) -> io::Result<Loaded> {
    let journal = Journal::open(cache);
    match part {
        Some(part) => journal.load_from(&part.records),
        None => journal.load(),
    }
}

/// Adds published results: they count before those of the store.
pub(super) fn add_published<'a>(loaded: &mut Loaded, published: impl Iterator<Item = &'a Published>) {
    for entry in published.flat_map(|published| &published.entries) {
        loaded.history.add(entry.record.clone());
    }
}

/// Returns whether the file of a variant with a generator is there and not known to be `generated`.
pub(super) fn has_unknown_kernels(spec: &Spec, sources: &Sources, generated: &BTreeSet<String>) -> bool {
    let variants = spec.ops.iter().flat_map(|op| &op.variants).filter(|variant| variant.generator.is_some());
    let mut files = variants.map(|variant| &variant.file).filter(|file| !generated.contains(*file));
    files.any(|file| RepoPath::new(file).is_ok_and(|path| sources.bytes(&path).is_some()))
}
