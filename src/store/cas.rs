//! Blobs by digest, each a file whose name is the digest of its bytes.
//!
//! A blob is verified whenever it is read. Files only ever appear whole, by rename. Blobs that lie elsewhere can be lent to a store: they are
//! read as if they were in it, and never written.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::digest::Digest;
use crate::fs;
use crate::record::Blob;

/// The content-addressed part of the store.
#[derive(Debug, Clone)]
pub struct Cas {
    folder: PathBuf,
    lent: Arc<HashMap<Digest, Vec<u8>>>,
}

/// Why a blob cannot be had.
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
        Self { lent: Arc::new(blobs.map(|bytes| (Digest::of(bytes), bytes.clone())).collect()), ..self }
    }

    /// Returns the file that holds the blob, there or not.
    #[must_use]
    pub fn path(&self, digest: Digest) -> PathBuf {
        let name = digest.to_string();
        self.folder.join(&name[..2]).join(&name[2..])
    }

    /// Keeps `bytes`, and returns the blob.
    pub fn put(&self, bytes: &[u8]) -> io::Result<Blob> {
        let blob = Blob { digest: Digest::of(bytes), size: bytes.len() as u64 };
        let path = self.path(blob.digest);
        if fs::stat(&path).is_none_or(|stat| stat.size != blob.size) {
            fs::write(&path, bytes)?;
        }
        Ok(blob)
    }

    /// Returns the bytes of the blob, verified. A damaged one is removed.
    pub fn get(&self, digest: Digest) -> Result<Vec<u8>, Unavailable> {
        let stored = self.stored(digest);
        stored.or_else(|error| self.lent.get(&digest).cloned().ok_or(error))
    }

    fn stored(&self, digest: Digest) -> Result<Vec<u8>, Unavailable> {
        let path = self.path(digest);
        let bytes = fs::read_if_there(&path).map_err(|error| Unavailable::Unreadable(digest, error))?;
        let bytes = bytes.ok_or(Unavailable::Missing(digest))?;
        if Digest::of(&bytes) == digest {
            return Ok(bytes);
        }
        let _ = fs::remove(&path);
        Err(Unavailable::Damaged(digest))
    }
}
