//! Git: the commit that a workspace is at, and its files at another one, from the `git` command.
//!
//! It does not know what the files mean. A workspace need not be in a repository.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};

use crate::fs;
use crate::secrets;

/// Where a workspace stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The commit that is checked out, in full.
    pub revision: String,
    /// Whether files differ from it.
    pub dirty: bool,
}

/// A commit that changed files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    /// The commit, in full.
    pub commit: String,
    /// The day on which it was made, as in `2026-11-27`.
    pub day: String,
    /// The files that it changed below the folder that was asked for, relative to the workspace.
    pub paths: BTreeSet<String>,
}

/// Why git did not answer.
#[derive(Debug, thiserror::Error)]
pub enum NoAnswer {
    /// The command cannot be started.
    #[error("cannot start `git`: {0}")]
    Start(io::Error),
    /// It failed.
    #[error("{0}")]
    Refused(String),
    /// Its answer cannot be used.
    #[error("cannot use the answer of `git`: {0}")]
    Answer(io::Error),
}

/// Returns where the workspace at `root` stands, None where it is in no repository or there is no git. Files below `except` do not make it dirty.
#[must_use]
pub fn head(root: &Path, except: &str) -> Option<Head> {
    let revision = commit(root, "HEAD").ok()?;
    let but = format!(":(exclude){except}");
    let status = git(root, ["status", "--porcelain", "--", ".", &but]).ok()?;
    Some(Head { revision, dirty: !status.is_empty() })
}

/// Returns the commit that `name` means in the repository around `root`, in full.
pub fn commit(root: &Path, name: &str) -> Result<String, NoAnswer> {
    let peeled = format!("{name}^{{commit}}");
    let answer = git(root, ["rev-parse", "--verify", "--quiet", "--end-of-options", &peeled])?;
    Ok(String::from_utf8_lossy(&answer).trim().to_owned())
}

/// Returns the path of the index lock of the repository around `root`, which git holds while it changes the index or, in a checkout, the files; None outside a
/// repository.
#[must_use]
pub fn index_lock(root: &Path) -> Option<PathBuf> {
    let answer = git(root, ["rev-parse", "--git-path", "index.lock"]).ok()?;
    let path = String::from_utf8(answer).ok()?;
    Some(root.join(path.trim_end_matches('\n')))
}

/// Returns what the file at `path`, relative to the folder `root`, held at `commit`. Links are followed inside of the repository.
pub fn file(root: &Path, commit: &str, path: &str) -> Result<Vec<u8>, NoAnswer> {
    let name = format!("{commit}:./{path}");
    // Names are told git a line each.
    if path.contains('\n') {
        return git(root, ["cat-file", "blob", &name]);
    }
    let answer = told(root, ["cat-file", "--batch", "--follow-symlinks"], format!("{name}\n").as_bytes())?;
    let head = answer.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let words = String::from_utf8_lossy(head);
    let mut words = words.rsplit(' ');
    match (words.next().map(str::parse::<usize>), words.next()) {
        (Some(Ok(length)), Some("blob")) if answer.len() > head.len() + length => {
            Ok(answer[head.len() + 1..][..length].to_vec())
        }
        _ => Err(NoAnswer::Refused(format!("no file {path}"))),
    }
}

/// Returns the last commits, `most` at most, that changed files below `path` in the workspace at `root`, the newest first.
pub fn changes(root: &Path, path: &str, most: usize) -> Result<Vec<Change>, NoAnswer> {
    let most = format!("-n{most}");
    let log = ["log", &most, "--format=%x00%H %cs", "--name-only", "--no-renames", "--relative", "--", path];
    let answer = git(root, log)?;
    let answer = String::from_utf8_lossy(&answer);
    let commits = answer.split('\0').filter_map(|told| {
        let mut lines = told.lines();
        let (commit, day) = lines.next()?.split_once(' ')?;
        let paths = lines.filter(|line| !line.is_empty()).map(str::to_owned).collect();
        Some(Change { commit: commit.to_owned(), day: day.to_owned(), paths })
    });
    Ok(commits.collect())
}

/// Writes the files that the folder `root` held at `commit` into `folder`, and links that stay in it. Other links and special files are left out.
pub fn check_out(root: &Path, commit: &str, folder: &Path) -> Result<(), NoAnswer> {
    let archive = git(root, ["archive", "--format=tar", commit])?;
    let mut archive = tar::Archive::new(archive.as_slice());
    let mut links = Vec::new();
    for member in archive.entries().map_err(NoAnswer::Answer)? {
        let mut member = member.map_err(NoAnswer::Answer)?;
        let path = member.path().map_err(NoAnswer::Answer)?.into_owned();
        let plain = path.components().all(|part| matches!(part, Component::Normal(_)));
        let kind = member.header().entry_type();
        if plain && kind.is_symlink() {
            let to = member.link_name().map_err(NoAnswer::Answer)?;
            links.extend(to.filter(|to| stays(&path, to)).map(|to| (path.clone(), to.into_owned())));
        }
        if plain && kind.is_file() {
            let mut bytes = Vec::new();
            member.read_to_end(&mut bytes).map_err(NoAnswer::Answer)?;
            fs::write(&folder.join(path), &bytes).map_err(NoAnswer::Answer)?;
        }
    }
    // Last, so that nothing is written through one.
    for (path, to) in links.into_iter().filter(|(path, _)| !fs::is_linked(folder, path)) {
        fs::link(&to, &folder.join(path)).map_err(NoAnswer::Answer)?;
    }
    Ok(())
}

/// Returns whether a link at `path` to `to` leads to nothing above the folder that `path` is relative to.
fn stays(path: &Path, to: &Path) -> bool {
    let mut depth = path.components().count().saturating_sub(1);
    to.components().all(|part| match part {
        Component::Normal(_) => {
            depth += 1;
            true
        }
        Component::CurDir => true,
        Component::ParentDir => depth.checked_sub(1).is_some_and(|less| {
            depth = less;
            true
        }),
        Component::RootDir | Component::Prefix(_) => false,
    })
}

/// Returns the files below the workspace at `root` that differ from `commit`, sorted: changed, removed, added, and untracked ones that git does not ignore. A
/// name that is not UTF-8 is left out.
pub fn changed(root: &Path, commit: &str) -> Result<BTreeSet<String>, NoAnswer> {
    let diff = ["diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", "--relative", commit, "--", "."];
    let untracked = ["ls-files", "--others", "--exclude-standard", "-z", "--", "."];
    let names = [git(root, diff)?, git(root, untracked)?].concat();
    let names = names.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    Ok(names.filter_map(|name| String::from_utf8(name.to_vec()).ok()).collect())
}

/// Returns whether the repository around `root` would not ignore a new file at `path`. False where there is no repository or no git.
#[must_use]
pub fn would_add(root: &Path, path: &str) -> bool {
    git(root, ["rev-parse", "--is-inside-work-tree"]).is_ok()
        && git(root, ["check-ignore", "--quiet", "--", path]).is_err()
}

/// Returns git's output.
fn git<S: AsRef<OsStr>>(root: &Path, arguments: impl IntoIterator<Item = S>) -> Result<Vec<u8>, NoAnswer> {
    told(root, arguments, b"")
}

/// Returns git's output where it reads `input`, which a pipe holds. It takes no optional locks, never prompts, and reads no input from this process.
fn told<S: AsRef<OsStr>>(
    root: &Path,
    arguments: impl IntoIterator<Item = S>,
    input: &[u8],
) -> Result<Vec<u8>, NoAnswer> {
    let mut command = Command::new("git");
    command.arg("-C").arg(root).args(arguments).env("GIT_OPTIONAL_LOCKS", "0").env("LC_ALL", "C");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    secrets::withhold(&mut command);
    let mut child = command.spawn().map_err(NoAnswer::Start)?;
    // A git that has ended reads nothing, and says why itself.
    let _ = child.stdin.take().map(|mut stdin| stdin.write_all(input));
    let output = child.wait_with_output().map_err(NoAnswer::Answer)?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    Err(NoAnswer::Refused(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
}
