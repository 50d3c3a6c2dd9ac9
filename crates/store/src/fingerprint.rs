//! Fingerprints: the state of what was looked at, so that a later process can tell whether it would see the same.
//!
//! A file is not read again while its size, times and inode are those of the last reading, unless it was written so shortly before that reading that a later
//! write could have left the same times. It does not know what was made from it.

use std::borrow::Cow;
use std::path::Path;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use t2t_model::digest::Digest;

use crate::fs::{self, Stat};
use crate::hashing;

/// From this many on threads save more than they cost.
const WORTH_THREADS: usize = 1024;

/// File systems keep times in steps of up to this many nanoseconds.
const STEP: i64 = 20_000_000;

/// A file's digest, and the state that shows without reading that it still holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    stat: Stat,
    /// When the file was read, in nanoseconds since 1970.
    read: i64,
    /// The digest of its bytes.
    pub bytes: Digest,
}

impl Known {
    /// Returns what `file` is now: `kept` if the file cannot have changed since, else the result of reading it. None where there is no readable file.
    #[must_use]
    pub(crate) fn now(file: &Path, kept: Option<Self>) -> Option<Self> {
        Self::by(fs::now, file, kept)
    }

    /// Returns whether `file` shows without being read that it still holds these bytes.
    #[must_use]
    pub(crate) fn holds(&self, file: &Path) -> bool {
        fs::stat(file).is_some_and(|stat| self.is_of(stat))
    }

    /// Whether a file in the state `stat` holds what was read. `ctime` counts, too: a program can set `mtime` back after a write, and `ctime` it cannot.
    fn is_of(&self, stat: Stat) -> bool {
        self.stat == stat && stat.mtime.max(stat.ctime).saturating_add(STEP) < self.read
    }

    /// Like [`Self::now`], with the time as an argument. The clock may have gone back, so a file whose times are not before its reading is read again.
    fn by(clock: impl FnOnce() -> i64, file: &Path, kept: Option<Self>) -> Option<Self> {
        let stat = fs::stat(file)?;
        if let Some(known) = kept.filter(|known| known.is_of(stat)) {
            return Some(known);
        }
        // The clock is read before the file: a write during the reading must not look older than the reading.
        let read = clock();
        Some(Self { stat, read, bytes: hashing::of(&fs::read(file).ok()?) })
    }
}

/// What was there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Observed {
    /// A file of these bytes; None where none could be read.
    File(Option<Known>),
    /// A file in this state, whatever it holds: for files too long to read. None where there was none.
    State(Option<Stat>),
    /// Something that changed at this time, in nanoseconds since 1970: a folder, whose time is that of its last new name. None where there was nothing.
    Time(Option<i64>),
    /// A folder with nothing in it, or none.
    Empty,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint<'a> {
    /// Where: in the workspace, or from the root of the file system.
    #[serde(borrow)]
    pub path: Cow<'a, str>,
    /// What was there.
    pub was: Observed,
}

/// The result of a second look at fingerprints.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Rechecked {
    /// The indices of those that have changed.
    pub changed: Vec<usize>,
    /// The indices of files that were rewritten with the same bytes, with their new state.
    pub touched: Vec<(usize, Known)>,
}

impl Rechecked {
    fn take(&mut self, place: usize, look: &Recheck) {
        match look {
            Recheck::Same => {}
            Recheck::Touched(known) => self.touched.push((place, *known)),
            Recheck::Changed => self.changed.push(place),
        }
    }
}

/// The result for one fingerprint.
enum Recheck {
    Same,
    Touched(Known),
    Changed,
}

impl Fingerprint<'_> {
    /// Returns the fingerprint of the file at `path` below `root` as it is now.
    #[must_use]
    pub fn of_file(root: &Path, path: &str) -> Self {
        Self { path: Cow::Owned(path.to_owned()), was: Observed::File(Known::now(&root.join(path), None)) }
    }

    fn look(&self, root: &Path) -> Recheck {
        let path = root.join(&*self.path);
        let is_same = match self.was {
            Observed::File(known) => return look_at_file(&path, known),
            Observed::State(stat) => fs::stat(&path) == stat,
            Observed::Time(time) => fs::folder_time(&path) == time,
            Observed::Empty => fs::names(&path).is_empty(),
        };
        if is_same { Recheck::Same } else { Recheck::Changed }
    }
}

fn look_at_file(path: &Path, was: Option<Known>) -> Recheck {
    let now = Known::now(path, was);
    match (was, now) {
        _ if was == now => Recheck::Same,
        (Some(was), Some(now)) if was.bytes == now.bytes => Recheck::Touched(now),
        _ => Recheck::Changed,
    }
}

/// Looks again at all `fingerprints` of the workspace at `root`, on all cores where they are many.
#[must_use]
pub fn look(root: &Path, fingerprints: &[Fingerprint<'_>]) -> Rechecked {
    look_telling(root, fingerprints, &|_| {})
}

/// Does what [`look`] does, and calls `tell` with the index of each that has changed as soon as that is seen, on any thread.
#[must_use]
pub fn look_telling(root: &Path, fingerprints: &[Fingerprint<'_>], tell: &(impl Fn(usize) + Sync)) -> Rechecked {
    let look = |(place, fingerprint): (usize, &Fingerprint<'_>)| {
        let look = fingerprint.look(root);
        if matches!(look, Recheck::Changed) {
            tell(place);
        }
        look
    };
    let mut looked = Rechecked::default();
    if fingerprints.len() < WORTH_THREADS {
        fingerprints
            .iter()
            .enumerate()
            .for_each(|(place, fingerprint)| looked.take(place, &look((place, fingerprint))));
    } else {
        let looks: Vec<Recheck> =
            fingerprints.par_iter().enumerate().with_min_len(WORTH_THREADS / 4).map(look).collect();
        looks.into_iter().enumerate().for_each(|(place, look)| looked.take(place, &look));
    }
    looked
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fingerprint(path: &str, was: Observed) -> Fingerprint<'static> {
        Fingerprint { path: Cow::Owned(path.to_owned()), was }
    }

    #[test]
    fn what_is_as_it_was_is_seen_to_be_and_what_changed_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::write(&root.join("a"), b"1").unwrap();
        fs::write(&root.join("b"), b"2").unwrap();
        fs::make_folder(&root.join("empty")).unwrap();
        let all = [
            Fingerprint::of_file(root, "a"),
            Fingerprint::of_file(root, "b"),
            Fingerprint::of_file(root, "absent"),
            fingerprint("a", Observed::State(fs::stat(&root.join("a")))),
            fingerprint("empty", Observed::Time(fs::folder_time(&root.join("empty")))),
            fingerprint("empty", Observed::Empty),
            fingerprint("none", Observed::Empty),
            fingerprint("none", Observed::Time(None)),
        ];
        assert_eq!(look(root, &all).changed, Vec::<usize>::new());
        fs::write(&root.join("a"), b"3").unwrap();
        fs::write(&root.join("absent"), b"").unwrap();
        fs::write(&root.join("empty/x"), b"").unwrap();
        fs::make_folder(&root.join("none")).unwrap();
        let changed = look(root, &all).changed;
        assert!([0, 2, 3, 5, 7].iter().all(|place| changed.contains(place)), "{changed:?}");
        assert!([1, 6].iter().all(|place| !changed.contains(place)), "{changed:?}");
    }

    #[test]
    fn a_file_that_was_written_again_with_the_same_bytes_is_only_touched() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(&folder.path().join("a"), b"1").unwrap();
        let all = [Fingerprint::of_file(folder.path(), "a")];
        fs::write(&folder.path().join("a"), b"1").unwrap();
        let looked = look(folder.path(), &all);
        assert_eq!((looked.changed.len(), looked.touched.len()), (0, 1));
    }

    /// A day in nanoseconds.
    const DAY: i64 = 86_400_000_000_000;

    #[test]
    fn a_clock_that_is_set_back_hides_no_edit() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a");
        fs::write(&file, b"1").unwrap();
        let written = fs::stat(&file).unwrap().mtime;
        let by = |clock: i64, kept| Known::by(|| clock, &file, kept).unwrap();
        // Read while the clock was a day ahead: what is known stands, and ends with the next write.
        let ahead = by(written + DAY, None);
        assert_eq!(by(written, Some(ahead)), ahead);
        fs::write(&file, b"2").unwrap();
        let edited = by(written, Some(ahead));
        assert_eq!(edited.bytes, Digest::of(b"2"));
        // Read while the clock was a day behind the file's times: the file is read each time, until the clock has passed them.
        let forged = |read| Known { stat: edited.stat, read, bytes: Digest::of(b"other") };
        let behind = by(written - DAY, Some(forged(written - DAY)));
        assert_eq!((behind.bytes, behind.read), (Digest::of(b"2"), written - DAY));
        assert_eq!(by(written - DAY / 2, Some(behind)).read, written - DAY / 2);
        assert_eq!(by(written + DAY, Some(behind)).read, written + DAY);
        // A clock that stands still is as good as one that has not moved on: nothing read by it stands.
        assert_eq!(by(edited.stat.mtime, Some(forged(edited.stat.mtime))).bytes, Digest::of(b"2"));
    }

    #[test]
    fn times_beyond_what_can_be_counted_are_no_reason_to_believe_a_file() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(&folder.path().join("a"), b"1").unwrap();
        let file = std::fs::File::options().append(true).open(folder.path().join("a")).unwrap();
        let year_2300 = std::time::UNIX_EPOCH + std::time::Duration::from_hours(330 * 8766);
        file.set_times(std::fs::FileTimes::new().set_modified(year_2300)).unwrap();
        let stat = fs::stat(&folder.path().join("a")).unwrap();
        let forged = Known { stat, read: stat.mtime, bytes: Digest::of(b"other") };
        assert_eq!(Known::now(&folder.path().join("a"), Some(forged)).unwrap().bytes, Digest::of(b"1"));
    }

    #[test]
    fn many_are_looked_at_as_one_is() {
        let folder = tempfile::tempdir().unwrap();
        let name = |number: usize| format!("f{number}");
        for number in (0..WORTH_THREADS * 2).step_by(2) {
            fs::write(&folder.path().join(name(number)), name(number).as_bytes()).unwrap();
        }
        let all: Vec<Fingerprint<'_>> =
            (0..WORTH_THREADS * 2).map(|number| Fingerprint::of_file(folder.path(), &name(number))).collect();
        assert_eq!(look(folder.path(), &all).changed, Vec::<usize>::new());
        for number in [3, 4, WORTH_THREADS + 7] {
            fs::write(&folder.path().join(name(number)), b"other").unwrap();
        }
        assert_eq!(look(folder.path(), &all).changed, [3, 4, WORTH_THREADS + 7]);
    }
}
