//! The size of a folder on the disk.
//!
//! It does not know whose it is. Others may write there meanwhile: a file that has gone when it is looked at counts nothing.

use std::{fs, os::unix::fs::MetadataExt, path::Path};

/// Bytes of a block, as `stat` counts them.
const BLOCK: u64 = 512;
/// The least that a file or folder takes beside its bytes: many empty ones fill a disk, too.
const ENTRY: u64 = 512;

/// Returns the bytes below a folder, or any number beyond `limit` once that is passed. No link is followed.
pub(crate) fn held(folder: &Path, limit: u64) -> u64 {
    let mut open = vec![folder.to_owned()];
    let mut held = 0;
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(facts) = entry.metadata() else { continue };
            held += facts.blocks() * BLOCK + ENTRY;
            if held > limit {
                return held;
            }
            if facts.is_dir() {
                open.push(entry.path());
            }
        }
    }
    held
}
