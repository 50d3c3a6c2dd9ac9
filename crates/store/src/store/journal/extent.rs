//! How far a journal was read, so that a later process can tell what was added since.
//!
//! It does not know what was made of what was read.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use serde::{Deserialize, Serialize};
use t2t_model::digest::Digest;
use t2t_model::record::Record;

use super::{Journal, LinePlace, parse, parted};
use crate::fs::{self, Stat};

/// How many bytes before its end tell that the beginning of a longer journal is this one.
const END: u64 = 512;

/// How much longer than the part that was read as a whole a journal may be, in bytes, where that part is short.
const SHORT: u64 = 1 << 20;

/// How far a journal was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extent {
    /// The state of the file; None where there was none.
    stat: Option<Stat>,
    /// The digest of its last bytes.
    end: Digest,
    /// How many bytes it had when all of it was read.
    whole: u64,
}

impl Journal {
    /// Returns how far the journal reaches now. All of it was read now, or where it reached as far as `since`.
    pub fn extent(&self, since: Option<&Extent>) -> io::Result<Extent> {
        let Some(stat) = fs::stat(&self.path) else {
            return Ok(Extent { stat: None, end: Digest::of(b""), whole: 0 });
        };
        let end = end(&File::open(&self.path)?, stat.size)?;
        Ok(Extent { stat: Some(stat), end, whole: since.map_or(stat.size, |since| since.whole) })
    }

    /// Returns the records that were added since the journal reached as far as `extent`, and where they stand. None where it is another one now, where a line of them
    /// is damaged, or where they are so many that all of it is to be read again: only then it is seen that lines repeat others.
    #[must_use]
    pub fn added_since(&self, extent: &Extent) -> Option<Vec<(Record, LinePlace)>> {
        let (now, then) = (fs::stat(&self.path), extent.stat);
        if now == then {
            return Some(Vec::new());
        }
        let (now, then) = (now?, then?);
        let is_longer = now.inode == then.inode && now.size > then.size;
        if !is_longer || now.size - extent.whole.min(now.size) > extent.whole.max(SHORT) {
            return None;
        }
        let file = File::open(&self.path).ok()?;
        if end(&file, then.size).ok()? != extent.end {
            return None;
        }
        let mut bytes = vec![0; usize::try_from(now.size - then.size).ok()?];
        file.read_exact_at(&mut bytes, then.size).ok()?;
        let record = |(line, place): (&[u8], LinePlace)| {
            let line = std::str::from_utf8(line).ok()?.strip_suffix('\n')?;
            Some((parse(line)?, place))
        };
        parted(&bytes, then.size).map(record).collect()
    }
}

/// Returns the digest of the last bytes before `length`, of which the last ends a line.
fn end(file: &File, length: u64) -> io::Result<Digest> {
    let begin = length.saturating_sub(END);
    let mut bytes = vec![0; usize::try_from(length - begin).unwrap_or_default()];
    file.read_exact_at(&mut bytes, begin)?;
    Ok(Digest::of(&bytes))
}
