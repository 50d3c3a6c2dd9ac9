//! `t2t skill`: instructions for agents, in the form of an agent skill: a folder with SKILL.md, and pages that it refers to.
//!
//! It does not know what they say.

use std::env;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Subcommand;
use t2t_model::digest::Digest;
use t2t_store::fs;

use super::error::CliError;
use super::{context, streams};
use crate::session;

/// Where skills lie that any agent may read, below a project's folder.
const FOLDER: &str = ".agents/skills/t2t";

/// The files of the skill.
const FILES: [(&str, &str); 4] = [
    ("SKILL.md", include_str!("../../assets/skill/SKILL.md")),
    ("references/commands.md", include_str!("../../assets/skill/references/commands.md")),
    ("references/failures.md", include_str!("../../assets/skill/references/failures.md")),
    ("references/mcp.md", include_str!("../../assets/skill/references/mcp.md")),
];

/// The digests of the files as they were installed: what differs from them was changed by somebody.
const INSTALLED: &str = ".installed";

#[derive(Debug, Subcommand)]
pub(super) enum SkillCommand {
    /// Write the skill that teaches agents to work with t2t
    Install {
        /// The skill's folder (default: .agents/skills/t2t in the workspace, or in the current folder)
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
        /// Also over files that were changed
        #[arg(long)]
        overwrite: bool,
    },
}

/// Runs the command.
pub(super) fn skill(command: &SkillCommand) -> Result<u8, CliError> {
    let SkillCommand::Install { dir, overwrite } = command;
    let here = env::current_dir().context("cannot tell the current folder")?;
    let folder = match dir {
        Some(folder) => context::absolute(folder),
        None => session::workspace(&here).unwrap_or_else(|| here.clone()).join(FOLDER),
    };
    let changed = if *overwrite { None } else { changed(&folder)? };
    let shown = |path: &Path| path.strip_prefix(&here).unwrap_or(path).display().to_string();
    if let Some(name) = changed {
        let message = format!("`{}` was changed since t2t wrote it", shown(&folder.join(name)));
        return Err(CliError::misuse(message, "`--overwrite` replaces it; `--dir DIR` writes the skill elsewhere"));
    }
    for (name, text) in FILES {
        written(&folder, name, text)?;
    }
    let mut digests = String::new();
    for (name, text) in FILES {
        let _ = writeln!(digests, "{} {name}", Digest::of(text.as_bytes()));
    }
    written(&folder, INSTALLED, &digests)?;
    streams::say(&format!("wrote the skill t2t: {} files in {}", FILES.len(), shown(&folder)));
    Ok(0)
}

fn written(folder: &Path, name: &str, text: &str) -> Result<(), CliError> {
    let place = folder.join(name);
    Ok(fs::write(&place, text.as_bytes()).with_context(|| format!("cannot write `{}`", place.display()))?)
}

/// Returns the first file in `folder` that is neither what was installed nor what is to be.
fn changed(folder: &Path) -> Result<Option<&'static str>, CliError> {
    let read = |name: &str| {
        let place = folder.join(name);
        fs::read_if_there(&place).with_context(|| format!("cannot read `{}`", place.display()))
    };
    let installed = read(INSTALLED)?.unwrap_or_default();
    let installed = String::from_utf8_lossy(&installed).into_owned();
    for (name, text) in FILES {
        let Some(bytes) = read(name)? else { continue };
        let line = format!("{} {name}", Digest::of(&bytes));
        if bytes != text.as_bytes() && !installed.lines().any(|known| known == line) {
            return Ok(Some(name));
        }
    }
    Ok(None)
}
