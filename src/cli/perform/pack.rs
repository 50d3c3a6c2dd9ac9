//! Packing: all that another machine needs to perform an action, as a folder.
//!
//! It does not know which machine that is.

use std::path::Path;

use anyhow::Context;
use t2t_host::interrupt::Interrupt;
use t2t_model::action::Target;
use t2t_plan::graph::pick::{Force, pick};
use t2t_store::fs;

use super::super::cache::bytes;
use super::super::error::CliError;
use super::super::plan::{history, plans};
use super::super::{Common, Targets, context, streams};
use super::{BLOBS, BUNDLE};
use crate::engine::{Bundled, NoBundle, Subject, bundle};
use crate::session::{Probing, Session};

/// Writes the bundle of the action `name` and the bytes that it names to `folder`.
pub(super) fn pack(common: &Common, name: &str, folder: &Path) -> Result<u8, CliError> {
    let targets = Targets { targets: vec![name.to_owned()], ..Targets::default() };
    let session = context::open_for(common, &targets, Probing::Allowed, &Interrupt::default())?;
    if !fs::names(folder).is_empty() {
        let message = format!("`{}` is not empty", folder.display());
        return Err(CliError::misuse(message, "name a folder that is not there yet"));
    }
    let bundled = bundled(&session, common, &targets, name)?;
    let size = write(&bundled, &session, folder)?;
    let (number, target) = (bundled.bundle.digests().len(), &bundled.bundle.target);
    streams::print(&format!(
        "{target} for {}: {number} blobs, {size} in {}\n",
        bundled.bundle.device,
        folder.display()
    ));
    Ok(0)
}

fn bundled(session: &Session, common: &Common, targets: &Targets, name: &str) -> Result<Bundled, CliError> {
    let one = "name one action, as in `softmax/v1_baseline:check`";
    let target = Target::try_from(name.to_owned()).map_err(|error| CliError::misuse(error, one))?;
    let wanted = pick(&session.graph, &targets.selection(session)?, Force::Stale)?;
    let index = session.graph.find(&target).ok_or_else(|| CliError::misuse(format!("no action `{target}`"), one))?;
    let plans = plans(session, &wanted)?;
    let plan = |index| plans.binary_search_by_key(&index, |plan| plan.index).ok().map(|place| &plans[place]);
    let settled = |index| plan(index).map(|plan| &plan.settled);
    let manifest = plan(index).and_then(|plan| plan.manifest.as_ref());
    let Some(manifest) = manifest else {
        let message = format!("`{target}` would not run: what it needs does not let it");
        return Err(CliError::misuse(message, format!("`t2t explain {target}` says more")));
    };
    let subject = Subject {
        session,
        index,
        action: session.graph.action(index),
        manifest,
        settled: &settled,
        history: &history(session)?,
        architectures: context::options(common, &session.root, Probing::Never).architectures,
    };
    bundle(&subject, &session.cas()).map_err(|error| refused(error, &target))
}

/// Writes the bytes first: a folder with a document has all that it names. Returns how much there is.
fn write(bundled: &Bundled, session: &Session, folder: &Path) -> Result<String, CliError> {
    let (cas, mut size) = (session.cas(), 0);
    let unwritable = || format!("cannot write to `{}`", folder.display());
    for digest in bundled.bundle.digests() {
        let bytes = bundled.bytes(digest, session, &cas).map_err(|error| refused(error, &bundled.bundle.target))?;
        size += bytes.len() as u64;
        fs::write(&folder.join(BLOBS).join(digest.to_string()), &bytes).with_context(unwritable)?;
    }
    fs::write(&folder.join(BUNDLE), bundled.bundle.write().as_bytes()).with_context(unwritable)?;
    Ok(bytes(size))
}

fn refused(error: NoBundle, target: &Target) -> CliError {
    let message = error.to_string();
    match error {
        NoBundle::Local(_) => CliError::misuse(message, "name an action that runs Python, as a check or a bench"),
        NoBundle::Unsettled(needed) => CliError::misuse(message, format!("run `t2t build {needed}` first")),
        NoBundle::Blob(_) => CliError::misuse(message, format!("run `t2t build {target}`, which makes it again")),
        NoBundle::Changed(_) => CliError::misuse(message, "run the command again"),
        NoBundle::Io(_) => CliError::machine(message),
    }
}
