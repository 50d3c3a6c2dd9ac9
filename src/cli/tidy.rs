//! `t2t clean`: removes what t2t made, and nothing else.
#![expect(clippy::disallowed_methods, reason = "the command line owns the standard streams")]

use std::collections::BTreeSet;
use std::io::{self, BufRead, IsTerminal};
use std::path::{Path, PathBuf};

use t2t_model::digest::Digest;
use t2t_store::fs;
use t2t_store::store::cas::Cas;
use t2t_store::store::leftovers;

use super::error::CliError;
use super::{cache, context, streams};
use crate::engine::local;

/// What is removed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum What {
    /// The logs, which the store can give back.
    Logs,
    /// The logs and every result.
    LogsAndStore,
}

/// Whether to ask before results are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ask {
    /// If there is a terminal to ask on.
    OnATerminal,
    /// Never: they have said so.
    Never,
}

/// Runs the command. `.gitkeep` files and the like stay, and so does the lock, which is held meanwhile.
pub(crate) fn clean(what: What, ask: Ask) -> Result<u8, CliError> {
    let root = context::workspace()?;
    let cache = root.join("cache");
    let _lock = context::lock(&root)?;
    let folders = match what {
        What::Logs => vec![root.join("logs")],
        What::LogsAndStore => vec![root.join("logs"), cache],
    };
    if matches!(what, What::LogsAndStore) {
        announce(&folders[1]);
        if ask == Ask::OnATerminal && !is_agreed() {
            streams::say("nothing was removed");
            return Ok(0);
        }
    }
    let kept = if matches!(what, What::Logs) { own(&root)? } else { BTreeSet::new() };
    let folders: Vec<&Path> = folders.iter().map(PathBuf::as_path).collect();
    remove_all(&folders, &root.join("cache"), &kept)
        .map_err(|error| CliError::machine(format!("cannot remove {error}")))?;
    Ok(0)
}

/// Moves what t2t made in `folders` aside, then removes it. Who looks meanwhile sees each thing as it was or not at all, and after a kill the next build removes what lies
/// aside. Fails with the place and the cause.
fn remove_all(folders: &[&Path], cache: &Path, kept: &BTreeSet<String>) -> io::Result<()> {
    leftovers::sweep_scratch(cache);
    let aside = leftovers::folder_of(cache, std::process::id());
    for (number, folder) in folders.iter().enumerate() {
        let is_kept = |name: &String| {
            if *folder == cache { name == leftovers::SCRATCH || name == REPLACED } else { kept.contains(name) }
        };
        for name in in_order(made(folder)).filter(|name| !is_kept(name)) {
            let path = folder.join(&name);
            // What lies on another file system is removed where it is.
            let moved = fs::rename(&path, &aside.join(format!("{number}-{name}")));
            moved.or_else(|_| fs::remove(&path)).map_err(|error| fs::at(&path, &error))?;
        }
    }
    fs::remove(&aside).map_err(|error| fs::at(&aside, &error))?;
    if folders.contains(&cache) {
        fs::remove_if_empty(&cache.join(leftovers::SCRATCH));
    }
    Ok(())
}

/// Returns what lies in `logs/` and is somebody's own, which stays; an edited log is kept as a build keeps it before that puts it back. Says so of both.
fn own(root: &Path) -> Result<BTreeSet<String>, CliError> {
    let (logs, cas) = (root.join(local::LOGS), Cas::open(&root.join("cache")));
    let mut kept = BTreeSet::new();
    for name in made(&logs) {
        let file = logs.join(&name);
        let is_log = local::op_of_log(&name).is_some() || local::SUMMARY == format!("{}/{name}", local::LOGS);
        if MADE.contains(&name.as_str()) {
            continue;
        }
        if !is_log || !file.is_file() {
            streams::say(&format!("note: logs/{name} stays: t2t did not make it"));
            kept.insert(name);
            continue;
        }
        let failed = |error: io::Error| CliError::machine(format!("cannot keep `logs/{name}`: {error}"));
        let bytes = fs::read(&file).map_err(failed)?;
        let digest = Digest::of(&bytes);
        if cas.is_whole(digest).is_ok_and(|whole| whole == Some(true)) {
            continue;
        }
        let aside = local::kept_edit(&name, &digest.short());
        fs::write(&root.join(&aside), &bytes).map_err(failed)?;
        streams::say(&format!("note: logs/{name} is not as t2t wrote it, and is kept in {aside}"));
    }
    Ok(kept)
}

/// Where in the store that lies which persons wrote and something else replaced: nothing makes it again.
const REPLACED: &str = "replaced";

/// What commands leave in `logs/` beside logs.
const MADE: [&str; 3] = ["report.html", "repro", "sweep"];

/// Puts the journal first: no record may be left whose blobs are gone.
fn in_order(names: impl Iterator<Item = String>) -> impl Iterator<Item = String> {
    let mut names: Vec<String> = names.collect();
    names.sort_by_key(|name| name != "journal");
    names.into_iter()
}

/// Returns the names in the folder that t2t made.
fn made(folder: &Path) -> impl Iterator<Item = String> {
    fs::names(folder).into_iter().filter(|name| !matches!(name.as_str(), ".gitkeep" | ".gitignore" | "lock"))
}

/// Says what will be lost, and how much of it there is.
fn announce(cache: &Path) {
    let weights: Vec<(usize, u64)> =
        made(cache).filter(|name| name != REPLACED).map(|name| fs::weight(&cache.join(name))).collect();
    let files: usize = weights.iter().map(|(files, _)| files).sum();
    let bytes: u64 = weights.iter().map(|(_, bytes)| bytes).sum();
    let what = if files == 1 { "1 file".to_owned() } else { format!("{files} files") };
    streams::say(&format!(
        "removes logs/ and cache/: every result, {what}, {}; the next build runs everything again",
        cache::bytes(bytes)
    ));
    if cache.join(REPLACED).exists() {
        streams::say("note: cache/replaced stays: persons wrote what is in it, and nothing makes it again");
    }
}

/// Asks on a terminal, and returns whether the answer is yes. Without a terminal the command itself counts as yes.
fn is_agreed() -> bool {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return true;
    }
    streams::say("go on? [y/N]");
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    read.is_ok() && matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}
