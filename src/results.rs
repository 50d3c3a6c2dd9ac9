//! Published results: `assets/results/DEVICE/`, what was found out on a device, kept with the repository for machines that lack it.
//!
//! It owns the folder: which file holds what. It does not know whether a result still stands.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::action::{Phase, Target};
use crate::fs;
use crate::publication::{self, Entry, PAGE};

/// The folder of all devices, in the workspace.
pub const FOLDER: &str = "assets/results";

/// The file with what is known of the device.
pub const DEVICE: &str = "device.json";

/// The records of no op.
const BUILD: &str = "build.json";

/// The format of `device.json`; another number is read as damage. 1: first.
const VERSION: u32 = 1;

/// The device that results are of, and what they were made with. Of these only the driver reaches keys, which are verified by themselves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Facts {
    version: u32,
    /// Its id, as in `nvidia-h200`, or `interpreter`.
    pub model: String,
    /// The model's name as the driver gives it.
    pub name: Option<String>,
    /// The CUDA capability, as in `[9, 0]`.
    pub capability: Option<[u64; 2]>,
    /// The driver's version.
    pub driver: Option<String>,
    /// Versions when it was published: `python`, `torch`, `triton`, `ptxas`, `t2t`.
    pub versions: BTreeMap<String, String>,
    /// The commit that was checked out, where there was one.
    pub revision: Option<String>,
    /// Whether files differed from that commit.
    pub dirty: Option<bool>,
}

impl Facts {
    /// Returns the facts of a device of which only the model is known.
    #[must_use]
    pub fn of(model: String) -> Self {
        Self {
            version: VERSION,
            model,
            name: None,
            capability: None,
            driver: None,
            versions: BTreeMap::new(),
            revision: None,
            dirty: None,
        }
    }
}

/// What is published of a device.
#[derive(Debug, Clone, Default)]
pub struct Published {
    /// The folder, or the file, that it was read from.
    pub place: PathBuf,
    /// The device.
    pub facts: Option<Facts>,
    /// The records that are whole.
    pub entries: Vec<Entry>,
    /// What is damaged, a line each, with its file.
    pub faults: Vec<String>,
}

/// What was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Written {
    /// How many files.
    pub files: usize,
    /// How many bytes they have.
    pub bytes: usize,
}

/// Returns the folder of a device's results.
#[must_use]
pub fn folder(root: &Path, device: &str) -> PathBuf {
    root.join(FOLDER).join(device)
}

/// Returns the ids of the devices of which there are results, sorted.
#[must_use]
pub fn devices(root: &Path) -> Vec<String> {
    let all = fs::names(&root.join(FOLDER)).into_iter();
    all.filter(|name| fs::stat(&folder(root, name).join(DEVICE)).is_some()).collect()
}

/// Returns what the folder at `place` publishes, or the single file of records there. Nothing of a folder that is not there.
#[must_use]
pub fn read(place: &Path) -> Published {
    let mut published = Published { place: place.to_owned(), ..Published::default() };
    if fs::stat(place).is_some() {
        let of_op =
            place.parent().and_then(Path::parent).filter(|_| place.parent().is_some_and(|p| p.ends_with("records")));
        let home = of_op.or(place.parent()).unwrap_or(place).to_owned();
        published.facts = facts(&home).ok().flatten();
        published.take(place, &home);
        return published;
    }
    match facts(place) {
        Ok(facts) => published.facts = facts,
        Err(fault) => published.faults.push(format!("{}: {fault}", place.join(DEVICE).display())),
    }
    for file in record_files(place) {
        published.take(&file, place);
    }
    published
}

impl Published {
    /// Adds the records of a file of the folder `home`.
    fn take(&mut self, file: &Path, home: &Path) {
        let page = |target: &Target| fs::read(&home.join(page_path(target)?)).ok();
        let read = match fs::read(file) {
            Ok(bytes) => publication::read(&String::from_utf8_lossy(&bytes), &page),
            Err(error) => publication::Read { faults: vec![error.to_string()], ..publication::Read::default() },
        };
        self.entries.extend(read.entries);
        self.faults.extend(read.faults.into_iter().map(|fault| format!("{}: {fault}", file.display())));
    }
}

fn facts(folder: &Path) -> Result<Option<Facts>, String> {
    let bytes = fs::read_if_there(&folder.join(DEVICE)).map_err(|error| error.to_string())?;
    let Some(bytes) = bytes else { return Ok(None) };
    let facts: Facts = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
    if facts.version == VERSION { Ok(Some(facts)) } else { Err(format!("its version is not {VERSION}")) }
}

fn record_files(folder: &Path) -> Vec<PathBuf> {
    let records = fs::files_below(&folder.join("records"), "json");
    let build = folder.join(BUILD);
    records.into_iter().chain(fs::stat(&build).map(|_| build)).collect()
}

/// Returns the place of an action's page in the folder of a device.
fn page_path(target: &Target) -> Option<String> {
    match target.phase {
        Phase::Log => Some(format!("logs/{}_log.md", target.op)),
        Phase::Summary => Some("logs/summary.md".to_owned()),
        _ => None,
    }
}

/// Writes what is published of a device to `folder`, and removes what an earlier publication left there. Files that are the same are not touched.
pub fn write(folder: &Path, facts: &Facts, entries: &[Entry]) -> io::Result<Written> {
    let files = files(facts, entries);
    let mut written = Written::default();
    for (path, bytes) in &files {
        let file = folder.join(path);
        if fs::read_if_there(&file)?.as_ref() != Some(bytes) {
            fs::write(&file, bytes)?;
        }
        written.files += 1;
        written.bytes += bytes.len();
    }
    for part in ["records", "logs"] {
        let known: BTreeSet<PathBuf> = files.keys().map(|path| folder.join(path)).collect();
        let there = fs::names(&folder.join(part)).into_iter().map(|name| folder.join(part).join(name));
        for left in there.filter(|file| !known.contains(file)) {
            fs::remove(&left)?;
        }
    }
    Ok(written)
}

/// Returns the files of a publication: path in the folder → bytes.
fn files(facts: &Facts, entries: &[Entry]) -> BTreeMap<String, Vec<u8>> {
    let mut by_file: BTreeMap<String, Vec<Entry>> = BTreeMap::new();
    let mut files = BTreeMap::new();
    for entry in entries {
        let target = &entry.record.identity.target;
        let file = if target.op.is_empty() { BUILD.to_owned() } else { format!("records/{}.json", target.op) };
        by_file.entry(file).or_default().push(entry.clone());
        if let Some((path, page)) = page_path(target).zip(entry.documents.get(PAGE)) {
            files.insert(path, page.clone());
        }
    }
    files.extend(by_file.into_iter().map(|(file, entries)| (file, publication::write(&entries).into_bytes())));
    let device = serde_json::to_string_pretty(facts).expect("facts are JSON");
    files.insert(DEVICE.to_owned(), (device + "\n").into_bytes());
    files
}
