//! Devices: which CUDA devices this machine has, read from the driver's files without starting CUDA, NVML or Python.
//!
//! It also owns the locks that keep two t2t processes from one device. It does not know what runs on a device.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use t2t_store::fs;

/// A CUDA device of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Its number among those visible, as CUDA counts them.
    pub number: usize,
    /// The model's name, as in `NVIDIA H200`.
    pub name: String,
    /// Its id, as in `GPU-07ea0a42-…`.
    pub uuid: String,
    /// The driver's version.
    pub driver: String,
}

/// The folder in which NVIDIA's driver describes itself.
const DRIVER: &str = "/proc/driver/nvidia";

/// Returns the CUDA devices that `CUDA_VISIBLE_DEVICES` (`visible`) leaves, in its order; all where it is not set. `driver_folder` is
/// the driver's, or None for this machine's.
#[must_use]
pub fn devices(visible: Option<&str>, driver_folder: Option<&Path>) -> Vec<Device> {
    let folder = driver_folder.unwrap_or(Path::new(DRIVER));
    let driver = driver_version(folder);
    let mut all: Vec<Device> = fs::names(&folder.join("gpus"))
        .iter()
        .filter_map(|bus| fs::read(&folder.join("gpus").join(bus).join("information")).ok())
        .filter_map(|bytes| described(&String::from_utf8_lossy(&bytes), &driver))
        .collect();
    number(&mut all);
    let Some(visible) = visible else { return all };
    let mut left: Vec<Device> = visible
        .split(',')
        .map(str::trim)
        // CUDA ignores everything from the first invalid entry on.
        .map_while(|wanted| all.iter().find(|device| names(wanted, device)).cloned())
        .collect();
    number(&mut left);
    left
}

fn number(devices: &mut [Device]) {
    for (number, device) in devices.iter_mut().enumerate() {
        device.number = number;
    }
}

fn names(wanted: &str, device: &Device) -> bool {
    wanted.parse() == Ok(device.number) || (!wanted.is_empty() && device.uuid.starts_with(wanted))
}

fn driver_version(folder: &Path) -> String {
    let bytes = fs::read(&folder.join("version")).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let first = text.lines().next().unwrap_or_default();
    let version =
        first.split_whitespace().find(|word| word.contains('.') && word.starts_with(|c: char| c.is_ascii_digit()));
    version.unwrap_or_default().to_owned()
}

fn described(text: &str, driver: &str) -> Option<Device> {
    let field = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(line[name.len()..].trim_start_matches(':').trim().to_owned())
    };
    Some(Device { number: 0, name: field("Model")?, uuid: field("GPU UUID")?, driver: driver.to_owned() })
}

/// The device table of `assets/devices.json`: what each model is, for compiling without one.
#[derive(Debug, Clone)]
pub struct Models(BTreeMap<String, Value>);

impl Models {
    /// Returns the table that `bytes` hold. Fails where they are no JSON object.
    pub fn read(bytes: &[u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(bytes).map(Self)
    }

    /// Returns the id and row that `name` means: an id, a model's name as the driver gives it, or an architecture as in `sm_90`,
    /// which means the table's model of it with the lowest `rank`. The rank is no part of the row.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<(String, Value)> {
        let known = self.0.get_key_value(name);
        let named = || self.0.iter().find(|(_, row)| row["name"].as_str() == Some(name));
        let of_architecture = || {
            let mut rows: Vec<_> = self.0.iter().filter(|(_, row)| architecture(row) == name).collect();
            rows.sort_by_key(|(_, row)| row["rank"].as_u64().unwrap_or(u64::MAX));
            rows.into_iter().next()
        };
        let (id, row) = known.or_else(named).or_else(of_architecture)?;
        let mut row = row.clone();
        row.as_object_mut().map(|fields| fields.remove("rank"));
        Some((id.clone(), row))
    }

    /// Returns the id of the model with this name, as the driver gives it, whether the table has it or not.
    #[must_use]
    pub fn id_of(&self, name: &str) -> String {
        self.find(name).map_or_else(|| plain_id(name), |(id, _)| id)
    }

    /// Returns all ids, sorted.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

/// Returns the architecture of a row of the device table, as in `sm_90`.
#[must_use]
pub fn architecture(row: &Value) -> String {
    let part = |index: usize| row["capability"][index].as_u64().unwrap_or(0);
    format!("sm_{}", part(0) * 10 + part(1))
}

/// Returns the id that stands for a model the table does not have: its name in plain letters.
#[must_use]
pub fn plain_id(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    name.chars().map(plain).collect()
}

/// Who holds a device, as its lock file says for those that wait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Holder {
    /// The process.
    pub pid: u32,
    /// The action.
    pub target: String,
    /// The workspace.
    pub workspace: String,
    /// Since when, as in `2026-11-21T23:30:00Z`.
    pub since: String,
}

/// The longest lock file that is read, in bytes. Any user may write to it.
const LONGEST: usize = 4096;

impl Holder {
    /// Returns what a lock file says; None where it says nothing that can be read.
    fn read(path: &Path) -> Option<Self> {
        let bytes = fs::read(path).ok().filter(|bytes| bytes.len() <= LONGEST)?;
        let holder: Self = serde_json::from_slice(&bytes).ok()?;
        let is_plain = |text: &str| !text.chars().any(char::is_control);
        [&holder.target, &holder.workspace, &holder.since].iter().all(|text| is_plain(text)).then_some(holder)
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pid {}, {} in {}, since {}", self.pid, self.target, self.workspace, self.since)
    }
}

/// The lock of one device, held until it is dropped.
#[derive(Debug)]
pub struct DeviceLock {
    file: File,
    path: PathBuf,
}

/// How often a waiting call checks whether to go on.
const LOOK: Duration = Duration::from_millis(100);

/// After how many checks a waiting call reports the holder again: a minute.
const LOOKS: u64 = 600;

/// How many checks a holder has to sign the lock before it is reported without a name.
const GRACE: u64 = 3;

impl DeviceLock {
    /// Takes the lock of the device `uuid`, signed with the result of `who`. If another process holds it, the call waits, and calls `waiting` with the holder,
    /// soon and then once a minute. None if `stopped` is true first.
    pub fn take(
        folder: &Path,
        uuid: &str,
        who: impl FnOnce() -> Holder,
        mut waiting: impl FnMut(&str),
        stopped: impl Fn() -> bool,
    ) -> io::Result<Option<Self>> {
        let path = folder.join(format!("{uuid}.lock"));
        let file = open_for_all(&path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let taken = lock_apart(&file)?;
                let (mut looks, mut was_told) = (0, false);
                loop {
                    match taken.recv_timeout(LOOK) {
                        Ok(result) => break result?,
                        Err(_) if stopped() => return Ok(None),
                        Err(_) => looks += 1,
                    }
                    if looks % LOOKS == 0 || (!was_told && (looks >= GRACE || Holder::read(&path).is_some())) {
                        waiting(&told(&file, &path));
                        was_told = true;
                    }
                }
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // Signing is a courtesy: another user's file may refuse the line, and the lock holds all the same.
        let signed = truncated(&path);
        let line = serde_json::to_string(&who()).unwrap_or_default();
        let _ = signed.and_then(|mut file| writeln!(file, "{line}"));
        Ok(Some(Self { file, path }))
    }
}

impl Drop for DeviceLock {
    fn drop(&mut self) {
        // The name is erased before the lock is released, so that nobody reads a holder that has gone.
        let _ = truncated(&self.path);
        let _ = self.file.unlock();
    }
}

/// Waits for a lock on a thread of its own, which outlives a call that gives up: where it gets the lock then, it lets go of it at once.
fn lock_apart(file: &File) -> io::Result<Receiver<io::Result<()>>> {
    // A thread cannot be stopped while it waits for a lock. So the caller gives up instead, and the thread drops its copy, and with it the lock, when it gets
    // it.
    let copy = file.try_clone()?;
    let (sender, receiver) = channel();
    std::thread::spawn(move || sender.send(copy.lock()));
    Ok(receiver)
}

/// Returns who holds a lock, in words: what the lock file says, if the kernel's list of locks confirms it.
fn told(file: &File, path: &Path) -> String {
    let claimed = Holder::read(path);
    match (&lockers(file)[..], claimed) {
        (pids, Some(holder)) if pids.contains(&holder.pid) => holder.to_string(),
        ([pid], _) => format!("pid {pid}, which has not signed the lock"),
        (_, Some(holder)) if !is_seen(holder.pid) => {
            format!("{holder} (no such process is seen here: it runs in another container, or could not sign the lock)")
        }
        (_, Some(holder)) => holder.to_string(),
        (_, None) => "a process that the lock does not name".to_owned(),
    }
}

fn is_seen(pid: u32) -> bool {
    fs::folder_time(Path::new(&format!("/proc/{pid}"))).is_some()
}

/// Returns the process that holds the lock of `file`, if the kernel shows it; several if files on other disks have the same inode number.
fn lockers(file: &File) -> Vec<u32> {
    use std::os::unix::fs::MetadataExt;
    let locks = fs::read(Path::new("/proc/locks")).unwrap_or_default();
    file.metadata().map(|data| lockers_in(&String::from_utf8_lossy(&locks), data.ino())).unwrap_or_default()
}

/// Reads lines as in `3: FLOCK  ADVISORY  WRITE 1234 00:1f:567 0 EOF`; those that wait have an arrow before the kind.
fn lockers_in(locks: &str, inode: u64) -> Vec<u32> {
    let held = locks.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let pids = held.filter_map(|words| match words[..] {
        [_, "FLOCK", _, _, pid, place, ..] if place.rsplit(':').next()?.parse() == Ok(inode) => pid.parse().ok(),
        _ => None,
    });
    // A process that this one cannot see has the number 0.
    pids.filter(|pid| *pid > 0).collect()
}

fn truncated(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).truncate(true).open(path)
}

/// Opens a lock file, without creating it first: so a file of another user will do.
fn open_for_all(path: &Path) -> io::Result<File> {
    File::open(path).or_else(|_| make_for_all(path))
}

/// Makes a lock file that every user of the machine may open.
fn make_for_all(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::PermissionsExt;
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
    // The umask has cleared bits of the mode, and other users must be able to open the file.
    let _ = file.set_permissions(std::fs::Permissions::from_mode(0o666));
    Ok(file)
}

/// Returns the folder of the device locks, the same for every process of the machine: `chosen` (`$T2T_LOCK_DIR`), `/run/lock/t2t`, or one in the
/// system's temporary folder.
#[must_use]
pub fn lock_folder(chosen: Option<&str>) -> PathBuf {
    if let Some(chosen) = chosen {
        let chosen = PathBuf::from(chosen);
        // A failure is no error here: taking a lock in the folder will report it.
        let _ = shared_folder(&chosen);
        return chosen;
    }
    let usual = PathBuf::from("/run/lock/t2t");
    if shared_folder(&usual).is_ok() { usual } else { shared_fallback() }
}

fn shared_fallback() -> PathBuf {
    let folder = PathBuf::from("/tmp/t2t-locks");
    let _ = shared_folder(&folder);
    folder
}

fn shared_folder(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    if path.is_dir() {
        return Ok(());
    }
    fs::make_folder(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o1777))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCKS: &str = "1: POSIX  ADVISORY  WRITE 11 00:1f:77 0 EOF\n2: FLOCK  ADVISORY  WRITE 22 00:1f:77 0 EOF\n2: -> FLOCK  ADVISORY  WRITE 33 00:1f:77 0 EOF\n3: FLOCK  ADVISORY  WRITE 0 00:1f:88 0 EOF\n";

    #[test]
    fn the_kernels_list_of_locks_tells_who_holds_one_and_not_who_waits() {
        assert_eq!([77, 88, 99].map(|inode| lockers_in(LOCKS, inode)), [vec![22], vec![], vec![]]);
    }

    #[test]
    fn what_a_lock_file_says_is_taken_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let said = |text: &[u8]| {
            fs::write(&path, text).unwrap();
            Holder::read(&path)
        };
        let line = r#"{"pid":12,"target":"add:baseline","workspace":"/w","since":"2026-11-21T23:30:00Z"}"#;
        assert_eq!(
            said(line.as_bytes()).unwrap().to_string(),
            "pid 12, add:baseline in /w, since 2026-11-21T23:30:00Z"
        );
        assert_eq!(said(line.replace("/w", "\\u001b[2J").as_bytes()), None);
        assert_eq!(said(line.replace("/w", &"w".repeat(LONGEST)).as_bytes()), None);
        for garbage in [&b""[..], b"pid 1", b"\xff\xfe", b"[]", &line.as_bytes()[..40]] {
            assert_eq!(said(garbage), None);
        }
    }
}
