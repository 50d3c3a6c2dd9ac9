//! `t2t perform`: one action of a workspace, performed on another machine. A bundle takes it there, and an export brings its result back.
//!
//! It does not know how files travel between the two.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, Subcommand};
use serde_json::json;
use t2t_host::device::Models;
use t2t_host::facts::Facts;
use t2t_model::bundle::Bundle;
use t2t_model::digest::Digest;
use t2t_store::node::Node;
use t2t_store::{assets, fs};

use super::error::CliError;
use super::{Common, complete, context, streams};
use crate::session::Probing;

mod pack;
mod performer;
mod run;
mod serve;

/// The document of a bundle, in its folder.
const BUNDLE: &str = "bundle.json";

/// The folder of the bytes that it names, beside it: a file each, named by its digest.
const BLOBS: &str = "blobs";

/// What is to be done.
#[derive(Debug, Subcommand)]
pub(crate) enum PerformCommand {
    /// In a workspace: write all that another machine needs to perform an action to a folder
    Pack {
        /// The action, as in softmax/v1_baseline:check; what it needs must be up to date
        #[arg(add = complete::target())]
        target: String,
        /// The folder, which must not be there, or be empty
        folder: PathBuf,
    },
    /// On the other machine: list the digests that it lacks, for who brings only those
    Lacks {
        /// The folder of the bundle; blobs need not be in it
        folder: PathBuf,
        #[command(flatten)]
        node: NodeArguments,
    },
    /// On the other machine: print what it tells of itself as JSON: t2t's version, and of each device its model, class and driver
    Facts,
    /// On the other machine: perform the action, and write its result to a file that `t2t cache import` takes
    Run {
        /// The folder of the bundle
        folder: PathBuf,
        /// The file to write; one that is there is replaced
        result: PathBuf,
        /// How many actions would run at once on the CPU: a measurement or a compile may use as many cores (default: all)
        #[arg(long, short, value_name = "N")]
        jobs: Option<usize>,
        #[command(flatten)]
        node: NodeArguments,
    },
    /// On the other machine: perform one action after another, as lines of JSON on standard input ask for them
    Serve {
        /// How many actions would run at once on the CPU, as for `run`
        #[arg(long, short, value_name = "N")]
        jobs: Option<usize>,
        #[command(flatten)]
        node: NodeArguments,
    },
}

/// Where the other machine keeps what came.
#[derive(Debug, Args)]
pub(crate) struct NodeArguments {
    /// The folder in which this machine keeps what came and performs actions (default: $T2T_NODE, else t2t/node in the user's cache)
    #[arg(long, value_name = "DIR")]
    node: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn perform(common: &Common, command: &PerformCommand) -> Result<u8, CliError> {
    match command {
        PerformCommand::Pack { target, folder } => pack::pack(common, target, folder),
        PerformCommand::Lacks { folder, node } => lacks(folder, node),
        PerformCommand::Facts => facts(common),
        PerformCommand::Run { folder, result, jobs, node } => run::run(common, (folder, result), node.open()?, *jobs),
        PerformCommand::Serve { jobs, node } => serve::serve(common, node.open()?, *jobs),
    }
}

impl NodeArguments {
    fn open(&self) -> Result<Node, CliError> {
        let named = self.node.clone().or_else(|| context::variable("T2T_NODE").map(PathBuf::from));
        let named = named.filter(|folder| !folder.as_os_str().is_empty());
        let folder = named.map(|folder| context::absolute(&folder)).or_else(|| context::of_user("node"));
        let folder = folder.ok_or_else(|| {
            CliError::misuse("there is no folder for what comes to this machine", "name one with `--node` or $T2T_NODE")
        })?;
        Ok(Node::open(&folder))
    }
}

/// Prints the digests that the bundle names and this machine lacks, a line each.
fn lacks(folder: &Path, node: &NodeArguments) -> Result<u8, CliError> {
    let lacking = lacking(&node.open()?, folder)?;
    streams::print(&lacking.iter().map(|digest| format!("{digest}\n")).collect::<Vec<_>>().concat());
    Ok(0)
}

fn lacking(node: &Node, folder: &Path) -> Result<Vec<Digest>, CliError> {
    Ok(node.lacks(&read(folder)?).context("cannot read the folder of this node")?)
}

/// Prints what this machine tells of itself.
fn facts(common: &Common) -> Result<u8, CliError> {
    let models = Models::read(assets::carried(assets::DEVICES).unwrap_or_default())
        .context("cannot read the table of devices")?;
    let options = context::options(common, Path::new("/"), Probing::Never);
    let facts = Facts::here(env!("CARGO_PKG_VERSION"), options.visible.as_deref(), options.driver.as_deref(), &models);
    streams::print(&format!("{}\n", json!(facts)));
    Ok(0)
}

/// Returns the bundle that lies in `folder`.
fn read(folder: &Path) -> Result<Bundle, CliError> {
    let file = folder.join(BUNDLE);
    let text = fs::read_if_there(&file).with_context(|| format!("cannot read `{}`", file.display()))?;
    let text = text.ok_or_else(|| {
        CliError::misuse(format!("no file `{}`", file.display()), "`t2t perform pack TARGET FOLDER` writes one")
    })?;
    Bundle::read(&text).map_err(|error| {
        let hint = "pack it again, with the t2t that is to perform it";
        CliError::misuse(format!("cannot use `{}`: {error}", file.display()), hint)
    })
}
