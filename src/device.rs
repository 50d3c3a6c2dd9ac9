//! Devices: which CUDA devices this machine has, read from the driver's files without starting CUDA, NVML or Python.
//!
//! It also owns the locks that keep two t2t processes from one device. It does not know what runs on a device.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::fs;

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

/// The lock of one device, held until it is dropped.
#[derive(Debug)]
pub struct DeviceLock {
    _file: File,
}

impl DeviceLock {
    /// Takes the lock of the device `uuid` for `who`. Where another process holds it, `waiting` is told who, once, and the call waits.
    #[expect(clippy::disallowed_methods, reason = "the lock is the open file")]
    pub fn take(folder: &Path, uuid: &str, who: &str, waiting: impl FnOnce(&str)) -> io::Result<Self> {
        let path = folder.join(format!("{uuid}.lock"));
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(_) => make_for_all(&path)?,
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                waiting(&holder(&path));
                file.lock()?;
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // Who holds it is a courtesy: another user's file may refuse the line, and the lock holds all the same.
        let signed = OpenOptions::new().write(true).truncate(true).open(&path);
        let _ = signed.and_then(|mut file| writeln!(file, "{who}"));
        Ok(Self { _file: file })
    }
}

fn holder(path: &Path) -> String {
    let text = fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).trim_end().to_owned());
    text.ok().filter(|text| !text.is_empty()).unwrap_or_else(|| "another t2t".to_owned())
}

/// Makes a lock file that every user of the machine may open.
#[expect(clippy::disallowed_methods, reason = "the lock is the open file")]
fn make_for_all(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::PermissionsExt;
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
    let _ = file.set_permissions(std::fs::Permissions::from_mode(0o666));
    Ok(file)
}

/// Returns the folder of the device locks, the same for every process of the machine: `chosen` (`$T2T_LOCK_DIR`), `/run/lock/t2t`, or one in the
/// system's temporary folder.
#[must_use]
pub fn lock_folder(chosen: Option<&str>) -> PathBuf {
    if let Some(chosen) = chosen {
        let chosen = PathBuf::from(chosen);
        // A folder that cannot be made shows when a lock in it is taken.
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

#[expect(clippy::disallowed_methods, reason = "the folder's mode is what makes it shared")]
fn shared_folder(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    if path.is_dir() {
        return Ok(());
    }
    fs::make_folder(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o1777))
}
