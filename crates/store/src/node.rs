//! A node's folder: what a machine keeps that performs actions for workspaces elsewhere. Blobs that came, by digest, and places where actions are performed.
//!
//! In a place a workspace is laid out anew for each action, of nothing but what its bundle names. Between actions only what is known of the interpreter stays
//! there. The folder may be removed whenever nothing runs in it. It does not know what actions do.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use t2t_model::bundle::Bundle;
use t2t_model::digest::Digest;

use crate::store::cas::{Cas, Unavailable};
use crate::store::journal::Lines;
use crate::store::lock::Lock;
use crate::{fs, kept};

/// The folder of the places.
const PLACES: &str = "places";

/// How many actions a node performs at once at most: more than any has devices and cores.
const MOST: usize = 1024;

/// How long a blob is kept that no action takes, and how often the folder is looked through for such, in nanoseconds.
const KEPT: i64 = 30 * DAY;
const DAY: i64 = 24 * 3600 * 1_000_000_000;

/// The file that was written when the folder was looked through last.
const LOOKED: &str = "looked";

/// The folder of what the node's devices do at most, and the format of what is kept there. 1: first.
const CALIBRATIONS: &str = "calibrations";
const VERSION: u32 = 1;

/// What of a place's `cache/` stays from one action to the next: the lock, what would be found out again, and the folder in which children work, since one that stays may open
/// only what is below that very folder.
const STAYS: [&str; 4] = ["lock", "toolchain", "harness", "scratch"];

/// A node's folder.
#[derive(Debug)]
pub struct Node {
    folder: PathBuf,
    blobs: Cas,
}

/// Why no place could be laid out.
#[derive(Debug, thiserror::Error)]
pub enum NoPlace {
    /// A blob is not here, or damaged.
    #[error(transparent)]
    Blob(#[from] Unavailable),
    /// The records that the bundle names are no journal of this version.
    #[error("the records {0} are no journal that this t2t reads")]
    Records(Digest),
    /// All places are taken.
    #[error("{MOST} actions are performed here at once already")]
    Full,
    /// The file system refused.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// What a device does at most, as it was measured last.
#[derive(Debug, Serialize, Deserialize)]
struct Calibrated {
    /// The key of the action that measured it.
    key: Digest,
    document: Value,
}

/// A folder in which a workspace can be laid out, for as long as this is held: nobody else has it meanwhile.
#[derive(Debug)]
pub struct Place {
    /// Where it lies.
    pub root: PathBuf,
    _lock: Lock,
}

impl Node {
    /// Returns the node whose folder is `folder`, which need not be there yet.
    #[must_use]
    pub fn open(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), blobs: Cas::open(folder) }
    }

    /// Returns which of the bundle's digests have no whole blob here, in order. Each blob is read: a damaged one counts as lacking, and is written anew.
    pub fn lacks(&self, bundle: &Bundle) -> io::Result<Vec<Digest>> {
        let mut lacking = Vec::new();
        for digest in bundle.digests() {
            if self.blobs.is_whole(digest)? == Some(true) {
                self.note_use(digest);
            } else {
                lacking.push(digest);
            }
        }
        Ok(lacking)
    }

    /// Keeps a blob from [`Self::shed`] for another while. That this cannot be written costs sending it again, once.
    fn note_use(&self, digest: Digest) {
        let path = self.blobs.path(digest);
        if fs::stat(&path).is_some_and(|stat| fs::now().saturating_sub(stat.mtime) > DAY) {
            let _ = fs::touch(&path);
        }
    }

    /// Removes the blobs that no action took for 30 days, and what writers that were killed have left. Looks once a day at most, and returns how many blobs are gone. A machine that
    /// sends an action asks first what is here, so what is wanted again comes again.
    pub fn shed(&self) -> io::Result<usize> {
        let (marker, now) = (self.folder.join(LOOKED), fs::now());
        let age = |path: &Path| fs::stat(path).map(|stat| now.saturating_sub(stat.mtime));
        if age(&marker).is_some_and(|age| (0..DAY).contains(&age)) {
            return Ok(0);
        }
        fs::write(&marker, b"")?;
        let listing = self.blobs.list();
        for path in listing.unfinished.iter().filter(|path| age(path).is_some_and(|age| age > DAY)) {
            fs::remove(path)?;
        }
        let mut gone = 0;
        for digest in listing.blobs.into_keys() {
            // Looked at again, right before: an action may have taken it since it was listed.
            if age(&self.blobs.path(digest)).is_some_and(|age| age > KEPT) {
                self.blobs.remove(digest)?;
                gone += 1;
            }
        }
        Ok(gone)
    }

    /// Returns the document that a calibration of `device`, a UUID, has made under `key`, if that is no older than a day: what disturbs a device comes and goes.
    #[must_use]
    pub fn calibration(&self, device: &str, key: Digest) -> Option<Value> {
        let path = self.calibrated(device);
        let age = fs::now().saturating_sub(fs::stat(&path)?.mtime);
        let known: Calibrated = kept::read(&path, VERSION).filter(|_| (0..DAY).contains(&age))?;
        (known.key == key).then_some(known.document)
    }

    /// Keeps the document of a calibration of `device`, and none before it.
    pub fn keep_calibration(&self, device: &str, key: Digest, document: Value) -> io::Result<()> {
        fs::make_folder(&self.folder.join(CALIBRATIONS))?;
        kept::write(&self.calibrated(device), VERSION, &Calibrated { key, document })
    }

    fn calibrated(&self, device: &str) -> PathBuf {
        self.folder.join(CALIBRATIONS).join(format!("{device}.json"))
    }

    /// Takes what the bundle needs and this lacks out of `from`, a folder of files that are named by the digests of their bytes. Returns what is lacking still: what is not there,
    /// and what is not what its name says.
    pub fn take(&self, bundle: &Bundle, from: &Path) -> io::Result<Vec<Digest>> {
        let mut lacking = Vec::new();
        for digest in self.lacks(bundle)? {
            let path = from.join(digest.to_string());
            let bytes = fs::read_if_there(&path).map_err(|error| fs::at(&path, &error))?;
            match bytes.filter(|bytes| Digest::of(bytes) == digest) {
                Some(bytes) => _ = self.blobs.put(&bytes)?,
                None => lacking.push(digest),
            }
        }
        Ok(lacking)
    }

    /// Returns the bytes of a blob, verified.
    pub fn blob(&self, digest: Digest) -> Result<Vec<u8>, Unavailable> {
        self.blobs.get(digest)
    }

    /// Lays out a workspace in `place` with the files, records and blobs of the bundle, and nothing else.
    pub fn lay_out(&self, place: &Place, bundle: &Bundle) -> Result<(), NoPlace> {
        clear(&place.root)?;
        for (path, digest) in &bundle.files {
            fs::write(&path.under(&place.root), &self.blob(*digest)?)?;
        }
        let cache = place.root.join("cache");
        let cas = Cas::open(&cache);
        for digest in &bundle.blobs {
            cas.put(&self.blob(*digest)?)?;
        }
        let records = self.blob(bundle.records)?;
        let lines = Lines::read(&records);
        if lines.is_foreign || !lines.damaged.is_empty() {
            return Err(NoPlace::Records(bundle.records));
        }
        Ok(fs::write(&cache.join("journal"), &records)?)
    }

    /// Takes the first place that nobody has. `command` is what takes it, for who looks at its lock.
    pub fn place(&self, command: &str) -> Result<Place, NoPlace> {
        for number in 0..MOST {
            let root = self.folder.join(PLACES).join(number.to_string());
            if let Some(lock) = Lock::take_unless(&root.join("cache"), command, |_| {}, || true)? {
                return Ok(Place { root, _lock: lock });
            }
        }
        Err(NoPlace::Full)
    }
}

/// Removes what an earlier action had in a place.
fn clear(root: &Path) -> io::Result<()> {
    let below = |folder: &Path, stays: &[&str]| -> io::Result<()> {
        let names = fs::names(folder);
        let mut going = names.iter().filter(|name| !stays.contains(&name.as_str()));
        going.try_for_each(|name| fs::remove(&folder.join(name)))
    };
    below(root, &["cache"])?;
    below(&root.join("cache"), &STAYS)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use serde_json::json;
    use t2t_model::action::{DeviceClass, Phase, Target};
    use t2t_model::path::RepoPath;

    use super::*;

    /// Returns a bundle of two files, and a folder with all that it names.
    fn bundle(text: &[u8]) -> (Bundle, tempfile::TempDir) {
        let from = tempfile::tempdir().unwrap();
        let put = |bytes: &[u8]| {
            let digest = Digest::of(bytes);
            fs::write(&from.path().join(digest.to_string()), bytes).unwrap();
            digest
        };
        let (key, records) = (put(b"t2t manifest 1\n"), put(&Lines::write([]).unwrap()));
        let target = Target::of_variant("softmax", "v1", Phase::Check);
        let mut bundle = Bundle::of(target, DeviceClass::Interpreter, key, records);
        for (path, bytes) in [("ops.yaml", b"version: 1\n".as_slice()), ("kernels/softmax/v1.py", text)] {
            bundle.files.insert(RepoPath::new(path).unwrap(), put(bytes));
        }
        bundle.blobs.insert(put(b"an artifact"));
        (bundle, from)
    }

    #[test]
    fn a_place_has_what_the_bundle_names_and_nothing_of_the_one_before() {
        let folder = tempfile::tempdir().unwrap();
        let node = Node::open(folder.path());
        let (mut first, from) = bundle(b"first");
        assert_eq!(node.take(&first, from.path()).unwrap(), []);
        let place = node.place("a test").unwrap();
        node.lay_out(&place, &first).unwrap();
        assert_eq!(place.root, folder.path().join("places/0"));
        for made in
            ["logs/softmax_log.md", "cache/answers/x", "cache/toolchain/y", "cache/harness/z", "cache/scratch/1"]
        {
            fs::write(&place.root.join(made), b"made").unwrap();
        }
        drop(place);
        first.files.remove(&RepoPath::new("kernels/softmax/v1.py").unwrap());
        first.blobs.clear();
        let place = node.place("a test").unwrap();
        node.lay_out(&place, &first).unwrap();
        assert_eq!(fs::names(&place.root), ["cache", "ops.yaml"]);
        assert_eq!(fs::names(&place.root.join("cache")), ["harness", "journal", "lock", "scratch", "toolchain"]);
        // Two at once have a place each.
        let second = node.place("a test").unwrap();
        assert_eq!(second.root, folder.path().join("places/1"));
    }

    #[test]
    fn a_calibration_of_a_device_is_known_for_a_day_under_its_key() {
        let folder = tempfile::tempdir().unwrap();
        let (node, [key, other]) = (Node::open(folder.path()), [b"one", b"two"].map(|text| Digest::of(text)));
        assert_eq!(node.calibration("GPU-1", key), None);
        node.keep_calibration("GPU-1", key, json!({"copy_gb_per_s": 4000.0})).unwrap();
        assert_eq!(node.calibration("GPU-1", key), Some(json!({"copy_gb_per_s": 4000.0})));
        assert_eq!((node.calibration("GPU-1", other), node.calibration("GPU-2", key)), (None, None));
        let file = std::fs::File::open(node.calibrated("GPU-1")).unwrap();
        for (hours, is_known) in [(23, true), (25, false)] {
            file.set_modified(SystemTime::now() - Duration::from_hours(hours)).unwrap();
            assert_eq!(node.calibration("GPU-1", key).is_some(), is_known, "{hours} h");
        }
    }

    #[test]
    fn what_came_once_need_not_come_again_and_what_is_damaged_must() {
        let folder = tempfile::tempdir().unwrap();
        let node = Node::open(folder.path());
        let (first, from) = bundle(b"first");
        assert_eq!(node.lacks(&first).unwrap(), first.digests().into_iter().collect::<Vec<_>>());
        node.take(&first, from.path()).unwrap();
        let (second, from) = bundle(b"second");
        let new = Digest::of(b"second");
        assert_eq!(node.lacks(&second).unwrap(), [new]);
        fs::write(&from.path().join(new.to_string()), b"other bytes").unwrap();
        assert_eq!(node.take(&second, from.path()).unwrap(), [new]);
        let place = node.place("a test").unwrap();
        assert!(matches!(node.lay_out(&place, &second).unwrap_err(), NoPlace::Blob(_)));
        fs::write(&from.path().join(new.to_string()), b"second").unwrap();
        assert_eq!(node.take(&second, from.path()).unwrap(), []);
        fs::write(&node.blobs.path(new), b"damaged").unwrap();
        assert_eq!(node.lacks(&second).unwrap(), [new]);
    }

    #[test]
    fn what_no_action_takes_for_a_month_goes_and_what_one_takes_stays() {
        let folder = tempfile::tempdir().unwrap();
        let node = Node::open(folder.path());
        let (first, from) = bundle(b"first");
        node.take(&first, from.path()).unwrap();
        let (second, from) = bundle(b"second");
        node.take(&second, from.path()).unwrap();
        let days = |days: u32| std::time::SystemTime::now() - std::time::Duration::from_hours(24) * days;
        let set = |path: &Path, time| std::fs::File::open(path).unwrap().set_modified(time).unwrap();
        for digest in first.digests().union(&second.digests()) {
            set(&node.blobs.path(*digest), days(31));
        }
        let unfinished = folder.path().join("cas/00/.x.1.tmp");
        fs::write(&unfinished, b"half").unwrap();
        set(&unfinished, days(2));
        // What the second action takes is young again; one blob is of the first alone.
        assert_eq!((node.lacks(&second).unwrap(), node.shed().unwrap()), (vec![], 1));
        assert_eq!(node.lacks(&first).unwrap(), [Digest::of(b"first")]);
        assert!(fs::stat(&unfinished).is_none());
        // The next look is tomorrow's.
        set(&node.blobs.path(Digest::of(b"second")), days(31));
        assert_eq!(node.shed().unwrap(), 0);
        set(&folder.path().join(LOOKED), days(1));
        assert_eq!(node.shed().unwrap(), 1);
    }

    #[test]
    fn records_that_are_no_journal_make_no_place() {
        let folder = tempfile::tempdir().unwrap();
        let node = Node::open(folder.path());
        let (mut foreign, from) = bundle(b"first");
        foreign.records = Digest::of(b"an artifact");
        node.take(&foreign, from.path()).unwrap();
        let place = node.place("a test").unwrap();
        assert!(matches!(node.lay_out(&place, &foreign).unwrap_err(), NoPlace::Records(_)));
    }
}
