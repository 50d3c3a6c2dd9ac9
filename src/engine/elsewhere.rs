//! What is published of an op by a device that this machine lacks, as far as it is of the kernels that are here.
//!
//! Facts of published benches say which kernels those are of. What is shown of them, the report says.

use std::collections::BTreeMap;

use t2t_model::action::{Phase, Target};
use t2t_model::digest::Digest;
use t2t_model::manifest::Fact;
use t2t_model::publication::Entry;
use t2t_model::record::Outcome;
use t2t_plan::graph::expand::elsewhere::{measured_elsewhere, of_a_kernel};
use t2t_protocol::read;
use t2t_report::rank::published::{self, Kernel};
use t2t_report::rank::{Published, PublishedPlace, Selection};
use t2t_spec::{Op, Variant};
use t2t_store::results;

use super::{Run, Stop};
use crate::session::{self, Session};

/// How much of a commit's hash is shown.
const SHORT: usize = 10;

impl Run<'_, '_> {
    /// Returns what is published of an op; None where nothing is.
    pub(super) fn published_elsewhere(&self, op: &Op) -> Result<Option<Published>, Stop> {
        let made = |target: &Target| self.kernel_of(&self.standing(target)).map(|kernel| kernel.digest);
        published_elsewhere(self.session, op, &made).map_err(Stop::Outdated)
    }
}

/// Returns what is published of an op by the device whose results are shown here; None where nothing is. `made` tells, of the first attempt at a kernel, which file stands of a
/// generator's. Fails with the path of a file that changed since the session was opened.
pub(crate) fn published_elsewhere(
    session: &Session,
    op: &Op,
    made: &dyn Fn(&Target) -> Option<Digest>,
) -> Result<Option<Published>, String> {
    let Some(elsewhere) = &session.inventory.elsewhere else { return Ok(None) };
    let Some(known) = elsewhere.ops.get(&op.name) else { return Ok(None) };
    let device = elsewhere.device.class.to_string();
    let outdated = || session::records_path(&device, &op.name);
    let (digest, found) = session::published_of(&session.root, &device, &op.name).ok_or_else(outdated)?;
    if digest != *known {
        return Err(outdated());
    }
    let of_op = |entry: &&Entry| entry.record.identity.target == Target::of_op(&op.name, Phase::Select);
    let selection = found.entries.iter().find(of_op).and_then(|entry| entry.documents.get("selection"));
    // What is damaged counts as not published.
    let Some(selection): Option<Selection> = selection.and_then(|bytes| read::document(bytes).ok()) else {
        return Ok(None);
    };
    let kernel = |variant: &Variant| Kernel {
        name: variant.name.clone(),
        changed: change(session, op, variant, &found.entries, made).map(str::to_owned),
    };
    let kernels: Vec<Kernel> = op.variants.iter().map(kernel).collect();
    Ok(Some(published::published(place(device, found.facts), &selection, &kernels)))
}

/// Returns in what a variant differs from the one whose bench is among the published `entries`; None where it is the same.
fn change(
    session: &Session,
    op: &Op,
    variant: &Variant,
    entries: &[Entry],
    made: &dyn Fn(&Target) -> Option<Digest>,
) -> Option<&'static str> {
    let of_phase = |phase: Phase| {
        let target = Target::of_variant(&op.name, &variant.name, phase);
        entries.iter().filter(move |entry| entry.record.identity.target.of_attempt(1) == target)
    };
    // Of several attempts the last one counts.
    let Some(there) = of_phase(Phase::Bench).max_by_key(|entry| entry.record.identity.target.attempt) else {
        return Some("not published");
    };
    let here = measured_elsewhere(&session.spec, &session.inventory, op, variant)?;
    let (mut was, mut is) = (of_a_kernel(&there.manifest), of_a_kernel(&here));
    let own = format!("source.{}", variant.file);
    if session.inventory.generated.contains(&variant.file) {
        let target = Target::of_variant(&op.name, &variant.name, Phase::Generate);
        let made = made(&target);
        let attempt = there.record.identity.target.attempt;
        let then = of_phase(Phase::Generate).find(|entry| entry.record.identity.target.attempt == attempt);
        let then = then.filter(|entry| entry.record.outcome == Outcome::Passed);
        if made.is_none() || made != then.and_then(|entry| entry.record.outputs.get("kernel")).map(|blob| blob.digest) {
            return Some("made anew since");
        }
        was.remove(own.as_str());
        is.remove(own.as_str());
    }
    if was == is {
        return None;
    }
    let sources = |facts: &BTreeMap<&str, &Fact>| -> Vec<(String, String)> {
        let told = facts.iter().filter(|(name, _)| name.starts_with("source."));
        told.map(|(name, fact)| ((*name).to_owned(), fact.to_string())).collect()
    };
    Some(if sources(&was) == sources(&is) { "declared otherwise since" } else { "edited since" })
}

fn place(device: String, facts: Option<results::Facts>) -> PublishedPlace {
    let name = facts.as_ref().and_then(|facts| facts.name.clone()).unwrap_or_else(|| device.clone());
    let revision = facts.as_ref().and_then(|facts| facts.revision.as_deref());
    PublishedPlace {
        revision: revision.map(|revision| revision.get(..SHORT).unwrap_or(revision).to_owned()),
        dirty: facts.and_then(|facts| facts.dirty).unwrap_or(false),
        device,
        name,
    }
}
