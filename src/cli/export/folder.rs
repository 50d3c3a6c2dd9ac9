//! The folder that is written: whole or not at all, and never over what export did not write.
//!
//! It does not know what is in it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize};
use t2t_model::digest::Digest;
use t2t_store::fs;

use super::super::context::process;
use super::super::error::CliError;

/// The file that says what export wrote.
const WRITTEN: &str = ".t2t-export.json";

/// The format of that file; another number is nobody's. 1: first.
const VERSION: u32 = 1;

/// What Python, pip and pytest leave where they run: it is made again.
const LEFT: [&str; 4] = ["__pycache__", ".pytest_cache", "build", "dist"];

/// What was written: path → digest.
#[derive(Debug, Serialize, Deserialize)]
struct Written {
    version: u32,
    files: BTreeMap<String, Digest>,
}

/// Returns whether the folder at `place` may be written: nothing is there, or only what export wrote, as it was.
///
/// # Errors
/// Bad use, naming the file that is not export's or was changed.
pub(super) fn may_be_written(place: &Path) -> Result<(), CliError> {
    let shown = place.display();
    let refused = |why: String| CliError::misuse(why, "`--out DIR` names another folder");
    if place.is_symlink() {
        return Err(refused(format!("`{shown}` is a link, in whose place the folder would be put")));
    }
    if place.exists() && !place.is_dir() {
        return Err(refused(format!("`{shown}` is no folder")));
    }
    let below = files(place);
    if below.is_empty() {
        return Ok(());
    }
    let known: Option<Written> =
        fs::read(&place.join(WRITTEN)).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let Some(known) = known.filter(|known| known.version == VERSION) else {
        return Err(refused(format!("`{shown}` is there, and `t2t export` did not write it")));
    };
    for name in below.iter().filter(|name| *name != WRITTEN) {
        let held = fs::read(&place.join(name)).ok().map(|bytes| Digest::of(&bytes));
        match known.files.get(name) {
            Some(digest) if held == Some(*digest) => {}
            Some(_) => return Err(refused(format!("`{shown}/{name}` was changed since `t2t export` wrote it"))),
            None => return Err(refused(format!("`{shown}/{name}` is there, and `t2t export` did not write it"))),
        }
    }
    Ok(())
}

/// Returns the files below `place` that are not left by tools, sorted, with `/` between the parts of their names.
fn files(place: &Path) -> Vec<String> {
    let is_left = |name: &str| LEFT.contains(&name) || name.ends_with(".egg-info");
    let mut found = Vec::new();
    let mut open = vec![String::new()];
    while let Some(folder) = open.pop() {
        for name in fs::names(&place.join(&folder)).into_iter().filter(|name| !is_left(name)) {
            let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            let below = fs::stat(&place.join(&path)).is_none();
            if below { open.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}

/// Writes the folder at `place`. Until it is whole it lies beside its place.
pub(super) fn write(place: &Path, files: &BTreeMap<String, Vec<u8>>) -> Result<(), CliError> {
    let beside = |word: &str| -> PathBuf {
        let name = place.file_name().unwrap_or_default().to_string_lossy();
        place.with_file_name(format!(".{name}.{word}-{}", process()))
    };
    let (new, old) = (beside("new"), beside("old"));
    let done = filled(&new, files).and_then(|()| swapped(place, &new, &old));
    if done.is_err() {
        let _ = fs::remove(&new);
    }
    let _ = fs::remove(&old);
    Ok(done.with_context(|| format!("cannot write `{}`", place.display()))?)
}

fn filled(new: &Path, files: &BTreeMap<String, Vec<u8>>) -> std::io::Result<()> {
    fs::remove(new)?;
    for (name, bytes) in files {
        fs::write(&new.join(name), bytes)?;
    }
    let digests = files.iter().map(|(name, bytes)| (name.clone(), Digest::of(bytes))).collect();
    let written = serde_json::to_vec_pretty(&Written { version: VERSION, files: digests }).expect("it is a mapping");
    fs::write(&new.join(WRITTEN), &[&written[..], b"\n"].concat())
}

/// Puts the folder `new` in the place of what is there, which is put back where that fails.
fn swapped(place: &Path, new: &Path, old: &Path) -> std::io::Result<()> {
    let was_there = fs::folder_time(place).is_some();
    if was_there {
        fs::rename(place, old)?;
    }
    fs::rename(new, place).inspect_err(|_| {
        if was_there {
            let _ = fs::rename(old, place);
        }
    })
}
