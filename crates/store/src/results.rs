//! Published results: `assets/results/DEVICE/`, the results of a device, kept with the repository for machines that lack it.
//!
//! It owns the folder: which file holds what, and what of it is signed. It does not know whether a result still stands.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use t2t_model::action::{Phase, Target};
use t2t_model::digest::Digest;
use t2t_model::publication::{self, Entry, PAGE};
use t2t_model::record::Record;
use t2t_model::signature::{Purpose, Signer, SigningKey, Trust};

use crate::fs;
use crate::hashing;

/// The folder of all devices, in the workspace.
pub const FOLDER: &str = "assets/results";

/// The file with what is known of the device.
pub const DEVICE: &str = "device.json";

/// The records of no op.
pub const BUILD: &str = "build.json";

/// The file with the digests of all others: what is signed.
pub(crate) const STATEMENT: &str = "statement.json";

/// The signature of the statement, as `ssh-keygen -Y sign` calls it.
pub(crate) const SIGNATURE: &str = "statement.json.sig";

/// The format of the statement; another number is read as damage. 1: first.
const STATEMENT_VERSION: u32 = 1;

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
    /// Returns the facts of a device where only its model is known.
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

/// The statement of a publication: its signature covers every file of the folder, and the device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Statement {
    version: u32,
    device: String,
    /// Path in the folder → digest of its bytes.
    files: BTreeMap<String, Digest>,
}

/// The published results of a device.
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
    /// Signed files that have changed since, or that no trusted key signed: a line each, with the file.
    pub objections: Vec<String>,
    /// The trusted key that signed it.
    pub(crate) signer: Option<Signer>,
    /// The digests of the records that are unchanged since they were signed.
    vouched: BTreeSet<Digest>,
    /// Whether `device.json` is unchanged since it was signed.
    is_device_vouched: bool,
}

/// What was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Written {
    /// How many files.
    pub files: usize,
    /// How many bytes they have.
    pub bytes: usize,
    /// The state of the signature.
    pub signed: Signed,
}

/// The signature of a publication after it was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Signed {
    /// There is none, and was none.
    #[default]
    Not,
    /// It was made.
    Now,
    /// An earlier one stays: it fits these files.
    Before,
    /// An earlier one was made for other files, and is removed.
    NoMore,
}

/// Returns the folder of a device's results.
#[must_use]
pub fn folder(root: &Path, device: &str) -> PathBuf {
    root.join(FOLDER).join(device)
}

/// Returns the ids of the devices that have results, sorted.
#[must_use]
pub fn devices(root: &Path) -> Vec<String> {
    let all = fs::names(&root.join(FOLDER)).into_iter();
    all.filter(|name| fs::stat(&folder(root, name).join(DEVICE)).is_some()).collect()
}

/// Returns what the folder at `place` publishes, or the single file of records there; nothing if it is not there. Signatures are checked only if there are
/// trusted keys.
#[must_use]
pub fn read(place: &Path, trust: Option<&Trust>) -> Published {
    let mut published = Published { place: place.to_owned(), ..Published::default() };
    if fs::stat(place).is_some() {
        let of_op =
            place.parent().and_then(Path::parent).filter(|_| place.parent().is_some_and(|p| p.ends_with("records")));
        let home = of_op.or(place.parent()).unwrap_or(place).to_owned();
        published.facts = facts(&home).ok().flatten();
        published.take(place, &home, None);
        return published;
    }
    let statement = match trust.map(|trust| statement(place, trust)) {
        Some(Ok(Some((signer, statement)))) => {
            published.signer = Some(signer);
            Some(statement)
        }
        Some(Err(objection)) => {
            published.objections.push(objection);
            None
        }
        Some(Ok(None)) | None => None,
    };
    published.look_at_device(statement.as_ref());
    match facts(place) {
        Ok(facts) => published.facts = facts,
        Err(fault) => published.faults.push(format!("{}: {fault}", place.join(DEVICE).display())),
    }
    let files = record_files(place);
    for file in &files {
        published.take(file, place, statement.as_ref());
    }
    for path in statement.iter().flat_map(|statement| statement.files.keys()).filter(|path| is_records(path)) {
        let file = place.join(path);
        if !files.contains(&file) {
            published.object(&file, "is signed, and is not there");
        }
    }
    published
}

/// Returns the signer of the folder at `place` and the statement; None where it is not signed.
fn statement(place: &Path, trust: &Trust) -> Result<Option<(Signer, Statement)>, String> {
    let read = |name: &str| {
        let file = place.join(name);
        fs::read_if_there(&file).map_err(|error| format!("{}: {error}", file.display()))
    };
    let Some(signature) = read(SIGNATURE)? else { return Ok(None) };
    let wrong = |name: &str, why: &dyn std::fmt::Display| format!("{}: it {why}", place.join(name).display());
    let Some(bytes) = read(STATEMENT)? else { return Err(wrong(STATEMENT, &"is signed, and is not there")) };
    let verified = trust.verify(Purpose::Results, &bytes, &String::from_utf8_lossy(&signature));
    let signer = verified.map_err(|refused| wrong(SIGNATURE, &refused))?;
    // The statement is parsed only after its signature was verified.
    let statement: Option<Statement> = serde_json::from_slice(&bytes).ok();
    let statement = statement.filter(|statement| statement.version == STATEMENT_VERSION);
    let statement =
        statement.ok_or_else(|| wrong(STATEMENT, &format!("is not a statement of version {STATEMENT_VERSION}")))?;
    if place.file_name().and_then(|name| name.to_str()) != Some(&statement.device) {
        return Err(wrong(STATEMENT, &format!("is of another device, `{}`", statement.device)));
    }
    Ok(Some((signer, statement)))
}

impl Published {
    /// Returns who signed a record of this publication.
    #[must_use]
    pub fn signer_of(&self, record: &Record) -> Option<&Signer> {
        self.signer.as_ref().filter(|_| self.vouched.contains(&record.digest()))
    }

    /// Keeps only what a trusted key signed and what is unchanged since. The rest becomes faults.
    #[must_use]
    pub fn only_signed(mut self) -> Self {
        let is_told = self.entries.is_empty() || !self.objections.is_empty();
        self.entries.retain(|entry| self.vouched.contains(&entry.record.digest()));
        self.faults.append(&mut self.objections);
        if self.signer.is_none() && !is_told {
            self.faults.push(format!("{}: it is not signed", self.place.display()));
        }
        if !self.is_device_vouched {
            self.facts = None;
        }
        self
    }

    fn object(&mut self, file: &Path, what: &str) {
        self.objections.push(format!("{}: it {what}", file.display()));
    }

    /// Returns whether a file of the folder `home` has the signed bytes. If not, that is noted.
    fn is_signed(&mut self, file: &Path, home: &Path, bytes: &[u8], statement: Option<&Statement>) -> bool {
        let Some((statement, signer)) = statement.zip(self.signer.clone()) else { return false };
        let path = file.strip_prefix(home).ok().and_then(Path::to_str);
        match path.and_then(|path| statement.files.get(path)) {
            Some(digest) if *digest == hashing::of(bytes) => return true,
            Some(_) => self.object(file, &format!("is not what {} signed", signer.name)),
            None => self.object(file, &format!("is not among what {} signed", signer.name)),
        }
        false
    }

    fn look_at_device(&mut self, statement: Option<&Statement>) {
        let (file, home) = (self.place.join(DEVICE), self.place.clone());
        if let Ok(bytes) = fs::read(&file) {
            self.is_device_vouched = self.is_signed(&file, &home, &bytes, statement);
        }
    }

    /// Adds the records of a file of the folder `home`.
    fn take(&mut self, file: &Path, home: &Path, statement: Option<&Statement>) {
        let page = |target: &Target| fs::read(&home.join(page_path(target)?)).ok();
        let read = match fs::read(file) {
            Ok(bytes) => {
                let read = publication::read(&String::from_utf8_lossy(&bytes), &page);
                if self.is_signed(file, home, &bytes, statement) {
                    self.vouched.extend(read.entries.iter().map(|entry| entry.record.digest()));
                }
                read
            }
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

/// Returns whether the file at a path in a device's folder holds records.
fn is_records(path: &str) -> bool {
    path == BUILD || path.starts_with("records/")
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

/// Writes a device's results to `folder`, signed if there is a `key`, and removes files of an earlier publication. Unchanged files are not touched. Fails if
/// the file system does.
pub fn write(folder: &Path, facts: &Facts, entries: &[Entry], key: Option<&SigningKey>) -> io::Result<Written> {
    let mut files = files(facts, entries);
    let statement = stated(&facts.model, &files).into_bytes();
    let was_stated = fs::read_if_there(&folder.join(STATEMENT))?.as_ref() == Some(&statement);
    let signature = fs::read_if_there(&folder.join(SIGNATURE))?;
    let mut written = Written::default();
    if let Some(key) = key {
        let signature =
            key.sign(Purpose::Results, &statement).ok_or_else(|| io::Error::other("the key cannot sign"))?;
        files.insert(SIGNATURE.to_owned(), signature.into_bytes());
        written.signed = Signed::Now;
    } else if let Some(signature) = signature {
        if was_stated {
            files.insert(SIGNATURE.to_owned(), signature);
            written.signed = Signed::Before;
        } else {
            fs::remove(&folder.join(SIGNATURE))?;
            written.signed = Signed::NoMore;
        }
    }
    files.insert(STATEMENT.to_owned(), statement);
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

/// Returns the statement on these files.
fn stated(device: &str, files: &BTreeMap<String, Vec<u8>>) -> String {
    let digests = files.iter().map(|(path, bytes)| (path.clone(), hashing::of(bytes))).collect();
    let statement = Statement { version: STATEMENT_VERSION, device: device.to_owned(), files: digests };
    serde_json::to_string_pretty(&statement).expect("a statement is JSON") + "\n"
}

/// Returns the files of a publication but the statement: path in the folder → bytes.
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
