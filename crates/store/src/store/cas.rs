//! Blobs by digest, each a file whose name is the digest of its bytes.
//!
//! A blob is verified whenever it is read. Files only ever appear whole, by rename. A store can borrow blobs that lie elsewhere: it reads them as its own, and
//! never writes them.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use t2t_model::digest::Digest;
use t2t_model::record::Blob;

use crate::fs;
use crate::hashing::{self, Running};

/// How much of a long blob is in memory at once, in bytes: enough for every core to hash a part.
const PART: usize = 4 << 20;

/// A blob's bytes are not those it is named for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Damaged;

/// The content-addressed part of the store.
#[derive(Debug, Clone)]
pub struct Cas {
    folder: PathBuf,
    lent: Arc<HashMap<Digest, Vec<u8>>>,
}

/// The content of the folder of blobs.
#[derive(Debug, Default)]
pub struct Listing {
    /// The blobs, and what each file is, by digest. None was read.
    pub blobs: BTreeMap<Digest, fs::Stat>,
    /// Files that a killed process had not finished, and those that one may be writing now.
    pub(crate) unfinished: Vec<PathBuf>,
    /// What is no blob.
    pub(crate) foreign: Vec<PathBuf>,
}

impl Listing {
    /// Returns the length of all blobs together, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.blobs.values().map(|stat| stat.size).sum()
    }
}

/// Why a blob cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Unavailable {
    /// There is none.
    #[error("the store has no blob {0}")]
    Missing(Digest),
    /// Its bytes are not those it is named for; it was removed.
    #[error("the blob {0} was damaged and is removed")]
    Damaged(Digest),
    /// The file system refused.
    #[error("cannot read the blob {0}: {1}")]
    Unreadable(Digest, io::Error),
}

impl Unavailable {
    /// Returns the digest of the blob.
    #[must_use]
    pub fn digest(&self) -> Digest {
        match self {
            Self::Missing(digest) | Self::Damaged(digest) | Self::Unreadable(digest, _) => *digest,
        }
    }
}

impl Cas {
    /// Returns the blobs kept under `cache`.
    #[must_use]
    pub fn open(cache: &Path) -> Self {
        Self { folder: cache.join("cas"), lent: Arc::default() }
    }

    /// Returns the store with these blobs lent to it.
    #[must_use]
    pub fn with<'a>(self, blobs: impl Iterator<Item = &'a Vec<u8>>) -> Self {
        Self { lent: Arc::new(blobs.map(|bytes| (hashing::of(bytes), bytes.clone())).collect()), ..self }
    }

    /// Returns the file that holds the blob, there or not.
    #[must_use]
    pub fn path(&self, digest: Digest) -> PathBuf {
        let name = digest.to_string();
        self.folder.join(&name[..2]).join(&name[2..])
    }

    /// Keeps `bytes`, and returns the blob.
    pub fn put(&self, bytes: &[u8]) -> io::Result<Blob> {
        let blob = Blob { digest: hashing::of(bytes), size: bytes.len() as u64 };
        if !self.holds(blob.digest, bytes) {
            let path = self.path(blob.digest);
            fs::write(&path, bytes).map_err(|error| fs::at(&path, &error))?;
        }
        Ok(blob)
    }

    /// Returns whether the store has `bytes`, whose digest is `digest`. The bytes are compared, since the file may be damaged.
    #[must_use]
    pub(crate) fn holds(&self, digest: Digest, bytes: &[u8]) -> bool {
        let path = self.path(digest);
        fs::stat(&path).is_some_and(|stat| stat.size == bytes.len() as u64)
            && fs::read_own(&path).is_ok_and(|there| there == bytes)
    }

    /// Moves in the blobs of `folder`, which is on the same file system and laid out like this one. Each blob replaces an existing one whole or not at all.
    pub(crate) fn take_in(&self, folder: &Path) -> io::Result<()> {
        for start in fs::names(folder) {
            let (from, to) = (folder.join(&start), self.folder.join(&start));
            let names = fs::names(&from);
            // A folder that is not here yet comes as a whole.
            if names.is_empty() || fs::rename(&from, &to).is_ok() {
                continue;
            }
            names.iter().try_for_each(|name| fs::rename(&from.join(name), &to.join(name)))?;
        }
        Ok(())
    }

    /// Returns the bytes of the blob, verified. A damaged one is removed.
    pub fn get(&self, digest: Digest) -> Result<Vec<u8>, Unavailable> {
        let stored = self.stored(digest);
        stored.or_else(|error| self.lent.get(&digest).cloned().ok_or(error))
    }

    /// Returns the length of the stored blob in bytes, [`Damaged`] where its bytes are not those it is named for, and None where there is none. Of a long one only a
    /// part is in memory. Removes nothing.
    pub(crate) fn look_at(&self, digest: Digest) -> io::Result<Option<Result<u64, Damaged>>> {
        let Some(mut file) = fs::open_own_if_there(&self.path(digest))? else { return Ok(None) };
        // One byte more than the length, so that one call reads a short blob and sees its end.
        let mut part = vec![0; usize::try_from(fs::length(&file)?).map_or(PART, |length| length.min(PART - 1) + 1)];
        let (mut running, mut length) = (Running::default(), 0);
        loop {
            let read = fill(&mut file, &mut part)?;
            running.add(&part[..read]);
            length += read as u64;
            if read < part.len() {
                return Ok(Some(if running.digest() == digest { Ok(length) } else { Err(Damaged) }));
            }
        }
    }

    /// Returns whether the bytes of the stored blob are those it is named for; None where there is none. Removes nothing.
    pub fn is_whole(&self, digest: Digest) -> io::Result<Option<bool>> {
        Ok(self.look_at(digest)?.map(|found| found.is_ok()))
    }

    /// Returns what lies in the folder of blobs.
    #[must_use]
    pub(crate) fn list(&self) -> Listing {
        let mut listing = Listing::default();
        for start in fs::names(&self.folder) {
            let folder = self.folder.join(&start);
            let names = fs::names(&folder);
            if start.len() != 2 || (names.is_empty() && fs::stat(&folder).is_some()) {
                listing.foreign.push(folder);
                continue;
            }
            for name in names {
                let path = folder.join(&name);
                let digest = format!("{start}{name}").parse().ok().filter(|digest| self.path(*digest) == path);
                match (digest, fs::stat(&path)) {
                    (Some(digest), Some(stat)) => _ = listing.blobs.insert(digest, stat),
                    (None, Some(_)) if fs::is_unfinished(&name) => listing.unfinished.push(path),
                    // It was moved or removed after the folder was listed.
                    (_, None) if fs::folder_time(&path).is_none() => {}
                    _ => listing.foreign.push(path),
                }
            }
        }
        listing
    }

    /// Removes the stored blob, if it is there.
    pub(crate) fn remove(&self, digest: Digest) -> io::Result<()> {
        fs::remove(&self.path(digest))
    }

    fn stored(&self, digest: Digest) -> Result<Vec<u8>, Unavailable> {
        let path = self.path(digest);
        let bytes = fs::read_own_if_there(&path).map_err(|error| Unavailable::Unreadable(digest, error))?;
        let bytes = bytes.ok_or(Unavailable::Missing(digest))?;
        if hashing::of(&bytes) == digest {
            return Ok(bytes);
        }
        let _ = fs::remove(&path);
        Err(Unavailable::Damaged(digest))
    }
}

/// Reads until `part` is full or the file ends, and returns how many bytes it read.
fn fill(file: &mut impl Read, part: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < part.len() {
        match file.read(&mut part[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
