//! `t2t publish`: writes the results of this device to `assets/results/DEVICE`, where they go with the repository.

use std::env;

use anyhow::Context;
use t2t_host::device::Models;
use t2t_host::interrupt::Interrupt;
use t2t_model::manifest::Manifest;
use t2t_model::publication::{Entry, is_published};
use t2t_model::record::{Outcome, Record};
use t2t_model::signature::SigningKey;
use t2t_plan::explain;
use t2t_plan::graph::pick::{Force, Selection, pick};
use t2t_plan::schedule::Settled;
use t2t_store::assets;
use t2t_store::git;
use t2t_store::results::{self, Facts, Signed};
use t2t_store::store::cas::Cas;

use super::error::CliError;
use super::plan::{Plan, plans};
use super::{Common, context, signing, streams};
use crate::session::Session;

/// The versions that a reader of results wants to know.
const VERSIONS: [&str; 4] = ["python", "torch", "triton", "ptxas"];

/// Runs the command. It refuses where a result is stale or missing.
pub(crate) fn publish(common: &Common) -> Result<u8, CliError> {
    let root = context::workspace()?;
    // First, so that a key that cannot be used is reported before any work.
    let key = signing::key(common)?;
    if common.sign.is_some() && common.as_device.is_some() {
        let message = "results of a device that is not here cannot be signed here";
        return Err(CliError::misuse(message, "run `t2t publish --sign` where they were measured"));
    }
    let key = key.filter(|_| common.as_device.is_none());
    let _lock = context::lock(&root)?;
    let session = context::open(common, context::as_built(common)?, &Interrupt::default())?;
    let wanted = pick(&session.graph, &Selection::default(), Force::Stale)?;
    let plans = plans(&session, &wanted)?;
    let entries = entries(&session, &plans)?;
    let class = session.inventory.device.class.to_string();
    let folder = results::folder(&session.root, &class);
    let written = results::write(&folder, &facts(&session), &entries, key.as_ref())
        .with_context(|| format!("cannot write to `{}/{class}`", results::FOLDER))?;
    let rejected = entries.iter().filter(|entry| matches!(entry.record.outcome, Outcome::Rejected { .. })).count();
    let rejections = if rejected == 0 { String::new() } else { format!(", {rejected} of them rejections") };
    streams::print(&format!(
        "{} results{rejections}, in {}/{class}: {} files, {} KiB, {}\n",
        entries.len(),
        results::FOLDER,
        written.files,
        written.bytes.div_ceil(1024),
        word(&session, written.signed, key.as_ref()),
    ));
    if let Some(note) = note(&session, written.signed, key.as_ref()) {
        streams::say(&note);
    }
    Ok(0)
}

/// Returns a line that says who signed the publication.
fn word(session: &Session, signed: Signed, key: Option<&SigningKey>) -> String {
    match (signed, key) {
        (Signed::Now, Some(key)) => match key.among(&session.spec.trust) {
            Some(holder) => format!("signed by {holder}"),
            None => format!("signed with {}", key.fingerprint()),
        },
        (Signed::Before, _) => "signed as before".to_owned(),
        (Signed::Now | Signed::Not | Signed::NoMore, _) => "unsigned".to_owned(),
    }
}

/// Returns what is good to know of the signature.
fn note(session: &Session, signed: Signed, key: Option<&SigningKey>) -> Option<String> {
    match (signed, key) {
        (Signed::NoMore, _) => {
            Some("note: the signature of an earlier publication is removed: it is of other files".to_owned())
        }
        (Signed::Now, Some(key)) if key.among(&session.spec.trust).is_none() => {
            let public = key.public();
            let name = if public.split(' ').nth(2).is_some() { "" } else { " NAME" };
            Some(format!("note: ops.yaml does not trust this key: add `- {public}{name}` to `trust`"))
        }
        _ => None,
    }
}

/// Returns every result with its blobs. For each that does not stand, or cannot be read, a line is printed, and then nothing is returned.
fn entries(session: &Session, plans: &[Plan]) -> Result<Vec<Entry>, CliError> {
    let cas = session.cas();
    let mut entries = Vec::new();
    let mut lines = String::new();
    let mut is_damaged = false;
    for plan in plans {
        let target = session.graph.action(plan.index).target();
        match plan.settled.record().map(|record| entry(&cas, record)) {
            Some(Ok(entry)) => entries.push(entry),
            Some(Err(fault)) => {
                is_damaged = true;
                lines += &format!("missing   {target}  {fault}\n");
            }
            None if plan.settled == Settled::Planned => {
                lines += &format!("stale     {target}  {}\n", explain::line(&plan.why));
            }
            None => {}
        }
    }
    if lines.is_empty() {
        return Ok(entries);
    }
    streams::print(&lines);
    let number = lines.lines().count();
    let message = format!("{number} of {} results cannot be published", plans.len());
    // A build needs no artifact of a result that stands, so it would not make the damaged one again.
    let class = &session.inventory.device.class;
    let device = if session.is_elsewhere { format!(" --as-device {class}") } else { String::new() };
    let first = if is_damaged { "run `t2t cache verify --repair` and " } else { "run " };
    Err(CliError::Missing { message, hint: format!("{first}`t2t build{device}`, then `t2t publish{device}`") })
}

fn entry(cas: &Cas, record: &Record) -> Result<Entry, String> {
    let bytes = |digest| cas.get(digest).map_err(|error| error.to_string());
    let manifest = Manifest::decode(&bytes(record.key)?).ok_or("its manifest cannot be read")?;
    let published = record.outputs.iter().filter(|(name, _)| is_published(name));
    let documents = published.map(|(name, blob)| Ok((name.clone(), bytes(blob.digest)?)));
    Ok(Entry { record: record.clone(), manifest, documents: documents.collect::<Result<_, String>>()? })
}

/// Returns the facts of the device and of the revision. For a device that is not here they come from its last publication.
fn facts(session: &Session) -> Facts {
    let before = session.published.iter().find_map(|published| published.facts.clone());
    let mut facts = before.unwrap_or_else(|| facts_here(session));
    let head = git::head(&session.root, results::FOLDER);
    facts.dirty = head.as_ref().map(|head| head.dirty);
    facts.revision = head.map(|head| head.revision);
    facts
}

fn facts_here(session: &Session) -> Facts {
    let lane = &session.inventory.device;
    let table = assets::read(&session.root, assets::DEVICES).unwrap_or_default();
    let known = Models::read(&table).ok().and_then(|models| models.find(&lane.class.to_string()));
    let row = known.map(|(_, row)| row).unwrap_or_default();
    let capability = row["capability"][0].as_u64().zip(row["capability"][1].as_u64());
    let versions = session.toolchain.iter().flat_map(|toolchain| toolchain.versions.clone());
    let versions = versions.filter(|(name, _)| VERSIONS.contains(&name.as_str()));
    let own = ("t2t".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
    let mut facts = Facts::of(lane.class.to_string());
    facts.name = session.devices.first().map(|device| device.name.clone());
    facts.capability = capability.map(|(major, minor)| [major, minor]);
    facts.driver.clone_from(&lane.driver);
    facts.versions = versions.chain([own]).collect();
    facts
}
