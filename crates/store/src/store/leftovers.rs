//! Leftovers: unfinished files of killed processes, found by name and removed.
//!
//! None of them was ever part of the store: a file gets its own name when it is whole. It does not know what they were for.

use std::path::{Path, PathBuf};

use crate::fs;

/// The folders, beside the workspace's store, in which files of t2t appear by rename: as seen from the workspace.
const BESIDE: [&str; 3] = ["logs", "assets/results", "assets/rounds"];

/// The folder below the store for what lasts as long as a process.
pub const SCRATCH: &str = "scratch";

/// How what lies in scratch is named that belongs to a look, not to a build, and which file is being written elsewhere.
const PROBE: &str = "probe-";
const DRAFT: &str = "draft-";

/// Removes unfinished files in the store under `cache` and in the workspace around it, and scratch folders. Files of running processes stay. The caller holds
/// the workspace's lock, so that no build runs, and has written nothing yet.
pub(crate) fn sweep(cache: &Path) {
    sweep_scratch(cache);
    remove_unfinished(cache, &[SCRATCH]);
    if let Some(workspace) = cache.parent() {
        for folder in BESIDE {
            remove_unfinished(&workspace.join(folder), &[]);
        }
    }
}

/// Removes the scratch folders of builds. Of folders of looks, and of notes on files elsewhere, it removes those whose process has ended. The caller holds the
/// workspace's lock.
pub fn sweep_scratch(cache: &Path) {
    let scratch = cache.join(SCRATCH);
    for name in fs::names(&scratch) {
        let is_of_a_build = name.parse::<u32>().is_ok();
        let looks = name.rsplit_once('-').and_then(|(_, process)| process.parse().ok());
        // A note appears by rename, too: a kill may have left it unfinished.
        let looks = looks.or_else(|| fs::writer_of(&name));
        if is_of_a_build || looks.is_some_and(|process| !fs::is_another_process(process)) {
            let place = scratch.join(&name);
            if name.starts_with(DRAFT) {
                remove_draft(&place, looks);
            }
            // A failure is no error: a leftover only takes space.
            let _ = fs::remove(&place);
        }
    }
}

/// Removes the file that is named in `note` and was never finished: it is that of this process, and nothing else.
fn remove_draft(note: &Path, writer: Option<u32>) {
    let named = fs::read_own(note).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let Some(file) = named.map(PathBuf::from).filter(|file| file.is_absolute()) else { return };
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if writer.is_some() && fs::writer_of(&name) == writer && fs::stat(&file).is_some() {
        let _ = fs::remove(&file);
    }
}

/// A note in the store about a file that is being written elsewhere. If this process is killed, the file is removed with the other leftovers. Dropping the note
/// removes it.
#[derive(Debug)]
pub struct Noted(Option<PathBuf>);

/// Writes the note for `draft`, a temporary path of [`fs::Draft`]. If the store cannot be written there is no note.
#[must_use]
pub fn note(cache: &Path, draft: &Path) -> Noted {
    let named = || {
        let writer = fs::writer_of(draft.file_name()?.to_str()?)?;
        let place = cache.join(SCRATCH).join(format!("{DRAFT}{writer}"));
        fs::write(&place, draft.to_str()?.as_bytes()).ok().map(|()| place)
    };
    Noted(named())
}

impl Drop for Noted {
    fn drop(&mut self) {
        if let Some(place) = &self.0 {
            let _ = fs::remove(place);
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
