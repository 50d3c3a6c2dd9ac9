//! What the commands share: the workspace around the current folder, its session, and the two streams.
#![expect(clippy::disallowed_methods, reason = "the command line owns the environment and the standard streams")]

use std::env;
use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Context;

use super::error::CliError;
use super::{Common, Targets};
use crate::graph::pick::Selection;
use crate::interrupt::Interrupt;
use crate::session::{self, Options, Probing, Session};
use crate::toolchain::{self, Places, Python};

/// Prints a result to standard output. A reader that has gone is no error.
pub fn print(text: &str) {
    print_bytes(text.as_bytes());
}

/// Prints a result that is no text to standard output.
pub fn print_bytes(bytes: &[u8]) {
    let _ = io::stdout().lock().write_all(bytes);
}

/// Prints a line to standard error.
pub fn say(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Returns the workspace around the current folder.
pub fn workspace() -> Result<PathBuf, CliError> {
    let here = env::current_dir().context("cannot tell the current folder")?;
    session::workspace(&here).ok_or_else(|| {
        let message = format!("no ops.yaml in `{}` or in a folder above it", here.display());
        CliError::misuse(message, "run t2t in a workspace: a folder with an ops.yaml")
    })
}

/// Returns the interpreter to use, if there is one.
pub fn python(common: &Common, workspace: PathBuf) -> Option<Python> {
    let named = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let absolute =
        |path: PathBuf| if path.components().count() > 1 { std::path::absolute(&path).unwrap_or(path) } else { path };
    let binary = env::current_exe().ok();
    toolchain::find(&Places {
        option: common.python.clone().map(absolute),
        variable: named("T2T_PYTHON").map(absolute),
        environment: named("VIRTUAL_ENV"),
        workspace,
        beside: binary.and_then(|path| path.parent().map(ToOwned::to_owned)),
    })
}

/// Opens the workspace around the current folder.
pub fn open(common: &Common, probing: Probing, interrupt: &Interrupt) -> Result<Session, CliError> {
    let root = workspace()?;
    let options = Options {
        python: python(common, root.clone()),
        device: common.device.clone(),
        visible: env::var("CUDA_VISIBLE_DEVICES").ok(),
        search: env::var_os("PYTHONPATH"),
        harness: env::var_os("T2T_HARNESS").map(PathBuf::from),
        probing,
    };
    Ok(Session::open(&root, &options, interrupt)?)
}

impl Targets {
    /// Returns what was asked for.
    pub fn selection(&self) -> Selection {
        let targets = self.targets.iter().chain(&self.op).cloned().collect();
        Selection { targets, variants: self.variant.clone(), phase: self.phase }
    }
}
