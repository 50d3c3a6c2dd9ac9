//! Kept files: data that can be found out again at the cost of time, as JSON behind a version and a digest. One that is damaged, or of another version, counts
//! as missing.
//!
//! It does not know what is kept in them.

use std::io;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::fs;
use crate::hashing;

/// Returns the content of the file at `path`, or None where there is none, or one of another version, or a damaged one.
#[must_use]
pub fn read<T: DeserializeOwned>(path: &Path, version: u32) -> Option<T> {
    let bytes = fs::read_own(path).ok()?;
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let (head, body) = (&bytes[..end], &bytes[end + 1..]);
    (head == self::head(path, version, body).as_bytes()).then(|| serde_json::from_slice(body).ok()).flatten()
}

/// Writes `value` to `path`, over what is there.
pub fn write<T: Serialize>(path: &Path, version: u32, value: &T) -> io::Result<()> {
    let body = serde_json::to_vec(value).map_err(io::Error::other)?;
    let mut bytes = head(path, version, &body).into_bytes();
    bytes.push(b'\n');
    bytes.extend(body);
    fs::write(path, &bytes)
}

/// Removes all files of `folder` but the `most` that were written last. What cannot be removed only takes space.
pub fn keep_newest(folder: &Path, most: usize) {
    let mut files: Vec<_> = fs::names(folder)
        .into_iter()
        .map(|name| folder.join(name))
        .filter_map(|path| fs::stat(&path).map(|stat| (stat.mtime, path)))
        .collect();
    files.sort();
    let surplus = files.len().saturating_sub(most);
    for (_, path) in files.into_iter().take(surplus) {
        let _ = fs::remove(&path);
    }
}

/// Returns the first line: the version, the file's name, and the digest of the rest. The name is in it so that a file in another's place counts as missing.
fn head(path: &Path, version: u32, body: &[u8]) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    format!("t2t kept {version} {name} {}", hashing::of(body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_that_were_written_last_stay() {
        let folder = tempfile::tempdir().unwrap();
        for (name, age) in [("newest", 0), ("oldest", 200), ("middle", 100)] {
            let path = folder.path().join(name);
            fs::write(&path, name.as_bytes()).unwrap();
            let then = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000 - age);
            std::fs::File::options().write(true).open(&path).unwrap().set_modified(then).unwrap();
        }
        let left = || fs::names(folder.path()).into_iter().collect::<std::collections::BTreeSet<_>>();
        keep_newest(folder.path(), 3);
        assert_eq!(left().len(), 3);
        keep_newest(folder.path(), 2);
        assert_eq!(left(), ["middle", "newest"].map(str::to_owned).into());
        keep_newest(&folder.path().join("none"), 2);
    }

    #[test]
    fn any_flip_and_any_cut_of_a_kept_file_is_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kept");
        let value = vec!["one".to_owned(), "two".to_owned()];
        write(&path, 3, &value).unwrap();
        assert_eq!(read(&path, 3), Some(value));
        assert_eq!(read::<Vec<String>>(&path, 4), None);
        fs::write(&folder.path().join("other"), &fs::read(&path).unwrap()).unwrap();
        assert_eq!(read::<Vec<String>>(&folder.path().join("other"), 3), None);
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut damaged = whole.clone();
                damaged[at] ^= 1 << bit;
                fs::write(&path, &damaged).unwrap();
                assert_eq!(read::<Vec<String>>(&path, 3), None, "bit {bit} of byte {at}");
            }
            fs::write(&path, &whole[..at]).unwrap();
            assert_eq!(read::<Vec<String>>(&path, 3), None, "cut at {at}");
        }
    }
}
