//! `t2t import`: problems of a public benchmark's form become ops of ops.yaml, each with its own code as the reference.
//!
//! A child of the user's Python says what a problem asks for. All is worked out before anything is written. It does not know what a problem computes.

use std::env;
use std::path::Path;

use anyhow::Context;
use t2t_store::fs;

use self::flashinfer::Given;
use self::imported::Imported;
use self::kernelbench::Problems;
use super::error::CliError;
use super::{Common, ImportForm, held, init, streams};
use crate::session::{self, OPS};

mod flashinfer;
mod imported;
mod kernelbench;

/// What is to be imported.
enum Asked<'a> {
    Problems(Problems<'a>),
    Definition(Box<Given>),
}

impl<'a> Asked<'a> {
    fn read(form: &'a ImportForm) -> Result<Self, CliError> {
        Ok(match form {
            ImportForm::Kernelbench { what } => Self::Problems(Problems::read(what)?),
            ImportForm::Flashinfer(arguments) => Self::Definition(Box::new(Given::read(arguments)?)),
        })
    }

    /// Returns the op and the place of each.
    fn named(&self) -> Vec<(&str, &str)> {
        match self {
            Self::Problems(problems) => problems.named().collect(),
            Self::Definition(given) => vec![given.named()],
        }
    }

    fn imported(&self, common: &Common, root: &Path) -> Result<Vec<Imported>, CliError> {
        match self {
            Self::Problems(problems) => problems.imported(common, root),
            Self::Definition(given) => Ok(vec![given.imported(common, root)?]),
        }
    }
}

/// Runs the command.
pub(crate) fn import(common: &Common, form: &ImportForm) -> Result<u8, CliError> {
    let here = env::current_dir().context("cannot tell the current folder")?;
    let root = session::workspace(&here).unwrap_or_else(|| here.clone());
    let asked = Asked::read(form)?;
    let named = asked.named();
    let _held = held::hold(&root).context("cannot lock the workspace")?;
    let before = fs::read_if_there(&root.join(OPS)).context("cannot read `ops.yaml`")?;
    imported::are_free(&root, before.as_deref(), &named)?;
    let all = asked.imported(common, &root)?;
    imported::write(&root, before.as_deref(), &all)?;
    if before.is_none() && init::ignore(&root)? && !common.quiet {
        streams::say("wrote .gitignore");
    }
    for Imported { op, place, takes, .. } in all.iter().filter(|_| !common.quiet) {
        streams::say(&format!("`{op}` is {place}: triton_{op}({})", takes.join(", ")));
    }
    let skipped = named.len() - all.len();
    let left = if skipped == 0 { String::new() } else { format!(", skipped {skipped}") };
    streams::say(&format!("imported {}{left}; next: `t2t build --phase analyze`", all.len()));
    Ok(0)
}
