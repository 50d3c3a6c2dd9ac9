//! What one build keeps of the sources for the next: the state of each file, and what parsing said of it and of its earlier contents.
//!
//! It does not know when a file is looked at, nor who asks.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use t2t_model::digest::Digest;
use t2t_model::path::RepoPath;
use t2t_python::PythonFile;

use crate::fingerprint::Known;
use crate::kept;

/// The format of the file; another number is read as an empty one. 1: first. 2: behind a digest. 3: what files were before. 4: the kind of a fault; files have bounds. 5: meanings of `t2t python 2`. 6: names of files in C++.
const VERSION: u32 = 6;

/// How many earlier contents are remembered per parsed file: enough for two earlier revisions in which every file differs.
pub(super) const BEFORE: usize = 2;

/// What is kept of the files.
#[derive(Debug, Serialize, Deserialize, Default)]
pub(super) struct Kept {
    /// What was known of each file when it was last looked at.
    pub(super) files: BTreeMap<RepoPath, Known>,
    /// What parsing said, by the digest of the bytes.
    pub(super) parsed: HashMap<Digest, PythonFile>,
    /// The digests in `parsed` that no file has any more, the latest first. So a revision that comes back is not parsed again.
    before: Vec<Digest>,
}

impl Kept {
    /// Reads what an earlier build kept in `file`. A damaged one is an empty one.
    pub(super) fn read(file: &Path) -> Self {
        kept::read(file, VERSION).unwrap_or_default()
    }

    /// Writes it into `file`, without what is too old. Fails where it cannot be written.
    pub(super) fn write(&mut self, file: &Path) -> io::Result<()> {
        self.age();
        kept::write(file, VERSION, self)
    }

    /// Sorts what was parsed into what files are and what they were, and forgets the oldest.
    fn age(&mut self) {
        let live: HashSet<Digest> = self.files.values().map(|known| known.bytes).collect();
        let earlier: HashSet<Digest> = self.before.iter().copied().collect();
        let mut gone: Vec<Digest> =
            self.parsed.keys().filter(|digest| !live.contains(digest) && !earlier.contains(digest)).copied().collect();
        // The map has no order, so those that went now are sorted: the same files must keep the same file.
        gone.sort();
        gone.extend(self.before.iter().filter(|digest| !live.contains(digest)));
        let most = BEFORE * self.parsed.len().saturating_sub(gone.len());
        for digest in gone.drain(most.min(gone.len())..) {
            self.parsed.remove(&digest);
        }
        self.before = gone;
    }
}
