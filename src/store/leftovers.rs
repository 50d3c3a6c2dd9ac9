//! Leftovers: what processes that were killed had not finished, found by name and removed.
//!
//! Nothing in it was ever part of the store: a file gets its own name when it is whole. It does not know what the files were to become.

use std::path::{Path, PathBuf};

use crate::fs;

/// The folders, beside the workspace's store, in which files of t2t appear by rename: as seen from the workspace.
const BESIDE: [&str; 2] = ["logs", "assets/results"];

/// The folder below the store for what lasts as long as a process.
pub const SCRATCH: &str = "scratch";

/// How a folder of scratch is named that belongs to a look, not to a build.
const PROBE: &str = "probe-";

/// Removes unfinished files in the store under `cache` and in the workspace around it, and scratch folders. What a process writes that still runs stays. The caller
/// holds the workspace's lock, so that no build runs, and has written nothing yet.
pub fn sweep(cache: &Path) {
    sweep_scratch(cache);
    remove_unfinished(cache, &[SCRATCH]);
    if let Some(workspace) = cache.parent() {
        for folder in BESIDE {
            remove_unfinished(&workspace.join(folder), &[]);
        }
    }
}

/// Removes the scratch folders of builds, and those of looks that have ended. The caller holds the workspace's lock.
pub fn sweep_scratch(cache: &Path) {
    let scratch = cache.join(SCRATCH);
    for name in fs::names(&scratch) {
        let is_of_a_build = name.parse::<u32>().is_ok();
        let prober = name.strip_prefix(PROBE).and_then(|process| process.parse().ok());
        if is_of_a_build || prober.is_some_and(|process| !fs::is_another_process(process)) {
            // What cannot be removed takes nothing but space.
            let _ = fs::remove(&scratch.join(name));
        }
    }
}

/// Returns the scratch folder of a process that holds the workspace's lock: [`sweep_scratch`] removes it when the process has ended.
#[must_use]
pub fn folder_of(cache: &Path, process: u32) -> PathBuf {
    cache.join(SCRATCH).join(process.to_string())
}

/// Returns the scratch folder of a look by this process, under the folder of all of them.
#[must_use]
pub fn probe_folder(process: u32) -> String {
    format!("{PROBE}{process}")
}

fn remove_unfinished(folder: &Path, but: &[&str]) {
    for path in fs::unfinished_below(folder, but) {
        let writer = path.file_name().and_then(|name| fs::writer_of(&name.to_string_lossy()));
        if writer.is_some_and(|process| !fs::is_another_process(process)) {
            let _ = fs::remove(&path);
        }
    }
}
