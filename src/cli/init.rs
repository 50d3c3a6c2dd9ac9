//! `t2t init`: makes a workspace of the current folder, with what keeps derived files out of its repository.

use std::env;
use std::path::Path;

use anyhow::Context;
use t2t_store::fs;
use t2t_store::git;

use super::error::CliError;
use super::streams;
use crate::session::OPS;

/// What t2t makes, and no repository should hold.
const DERIVED: [&str; 2] = ["cache/", "logs/"];

/// The files of a workspace that has nothing yet: an op to begin with.
const FIRST: [(&str, &str); 2] = [
    (OPS, include_str!("../../assets/first/ops.yaml")),
    ("kernels/add/v1_baseline.py", include_str!("../../assets/first/v1_baseline.py")),
];

/// Runs the command. What is there stays as it is; to .gitignore the lines are added that it lacks.
pub(crate) fn init() -> Result<u8, CliError> {
    let here = env::current_dir().context("cannot tell the current folder")?;
    if fs::stat(&here.join(OPS)).is_none() {
        for (path, text) in FIRST {
            write(&here, path, text)?;
        }
    }
    let said = if ignore(&here)? { "wrote .gitignore" } else { ".gitignore has cache/ and logs/" };
    streams::say(said);
    Ok(0)
}

/// Adds to the .gitignore of the folder the lines that it lacks. Returns whether it lacked some.
pub(crate) fn ignore(here: &Path) -> anyhow::Result<bool> {
    let path = here.join(".gitignore");
    let text = fs::read_if_there(&path).context("cannot read `.gitignore`")?.unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    let lacking: Vec<&str> = DERIVED.into_iter().filter(|folder| !is_ignored(&text, folder)).collect();
    if lacking.is_empty() {
        return Ok(false);
    }
    let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    let lines: Vec<String> = lacking.iter().map(|folder| format!("/{folder}\n")).collect();
    fs::write(&path, format!("{text}{gap}{}", lines.concat()).as_bytes()).context("cannot write `.gitignore`")?;
    Ok(true)
}

fn write(here: &Path, path: &str, text: &str) -> Result<(), CliError> {
    let place = here.join(path);
    if fs::stat(&place).is_some() {
        return Ok(());
    }
    fs::write(&place, text.as_bytes()).with_context(|| format!("cannot write `{path}`"))?;
    streams::say(&format!("wrote {path}"));
    Ok(())
}

/// Returns whether the text of a .gitignore has the folder, or what is in it.
fn is_ignored(text: &str, folder: &str) -> bool {
    let bare = folder.trim_end_matches('/');
    let names = |line: &str| line.trim().trim_start_matches('/').trim_end_matches('*').trim_end_matches('/') == bare;
    text.lines().any(names)
}

/// Returns a note for a workspace whose repository would track t2t's folders. None if it would not, or if there is no repository.
pub(crate) fn unignored(root: &Path) -> Option<String> {
    let taken: Vec<&str> =
        DERIVED.into_iter().filter(|folder| git::would_add(root, &format!("{folder}file"))).collect();
    let folders = taken.join(" and ");
    (!taken.is_empty())
        .then(|| format!("git would add {folders}, which t2t makes: `t2t init` writes a .gitignore for this folder"))
}
