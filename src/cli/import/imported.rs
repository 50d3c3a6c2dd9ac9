//! What is imported: an entry of ops.yaml and the files that it names, and how they are written.
//!
//! It does not know the form of a benchmark.

use std::path::{Path, PathBuf};

use t2t_spec::{Spec, entry};
use t2t_store::fs;

use crate::cli::error::CliError;
use crate::cli::{Common, context};
use crate::session::OPS;

/// Where imported problems lie in the workspace.
pub(super) const FOLDER: &str = "references";

/// An op that a problem becomes.
pub(super) struct Imported {
    /// What it is called.
    pub(super) op: String,
    /// What it comes from, as that was named.
    pub(super) place: String,
    /// What a wrapper takes, in order.
    pub(super) takes: Vec<String>,
    /// Its entry in ops.yaml, the key without indentation.
    pub(super) entry: String,
    /// Its files, as paths in the workspace with their bytes: all below a folder of [`FOLDER`] with the op's name.
    pub(super) files: Vec<(String, Vec<u8>)>,
}

/// Returns a file's name as a name in Python: in lower case, `_` for all but letters and digits, `p` before a digit.
pub(super) fn name(stem: &str) -> String {
    let lower = stem.to_ascii_lowercase();
    let plain: String = lower.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let words: Vec<&str> = plain.split('_').filter(|word| !word.is_empty()).collect();
    let joined = words.join("_");
    if joined.starts_with(|c: char| c.is_ascii_digit()) { format!("p{joined}") } else { joined }
}

/// Returns the user's Python.
pub(super) fn python(common: &Common, root: &Path) -> Result<PathBuf, CliError> {
    let found = context::python(common, root.to_owned()).ok_or_else(|| CliError::Machine {
        message: "there is no Python with torch".to_owned(),
        hint: Some("name one with `--python`; `t2t doctor` says what is there".to_owned()),
    })?;
    Ok(found.path)
}

/// An op that is declared already stays as it is, and so does a folder that is there.
pub(super) fn are_free(root: &Path, before: Option<&[u8]>, named: &[(&str, &str)]) -> Result<(), CliError> {
    // A file that only lacks ops is made whole by them.
    let spec = before.and_then(|bytes| Spec::parse(OPS, bytes, None).ok());
    for (op, place) in named {
        let folder = format!("{FOLDER}/{op}");
        let hint = "rename what is imported, or remove what is there";
        if spec.as_ref().is_some_and(|spec| spec.op(op).is_some()) {
            let message = format!("{place}: ops.yaml declares `{op}` already");
            return Err(CliError::misuse(message, hint));
        }
        if fs::folder_time(&root.join(&folder)).is_some() {
            let message = format!("{place}: the folder `{folder}` is there already");
            return Err(CliError::misuse(message, hint));
        }
    }
    Ok(())
}

/// Writes the files of all problems, then ops.yaml. What was written is removed where the rest cannot be.
pub(super) fn write(root: &Path, before: Option<&[u8]>, all: &[Imported]) -> Result<(), CliError> {
    let entries: String = all.iter().map(|imported| imported.entry.as_str()).collect();
    let old = before.map_or("version: 1\n".to_owned(), |bytes| String::from_utf8_lossy(bytes).into_owned());
    let new = entry::inserted(&old, &entries)
        .ok_or_else(|| CliError::by_hand("its ops are no blocks of their own", &entries))?;
    Spec::parse(OPS, new.as_bytes(), None).map_err(CliError::Spec)?;
    let written = || {
        for (path, bytes) in all.iter().flat_map(|imported| &imported.files) {
            let path = root.join(path);
            fs::make_folder(path.parent().unwrap_or(root))?;
            fs::write(&path, bytes)?;
        }
        fs::write_linked(&root.join(OPS), new.as_bytes())
    };
    written().map_err(|error| {
        for Imported { op, .. } in all {
            let _ = fs::remove(&root.join(format!("{FOLDER}/{op}")));
        }
        CliError::from(anyhow::Error::from(error).context("cannot write the imported problems"))
    })
}
