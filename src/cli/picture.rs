//! `t2t picture`: the published speedups of a device, drawn.
//!
//! It runs nothing and opens no session: what is published is drawn, whether or not it stands for the kernels that are there.

use std::collections::BTreeMap;
use std::path::Path;

use t2t_model::action::Phase;
use t2t_model::publication::Entry;
use t2t_protocol::read;
use t2t_report::render::speedups::{self, Documents, Op};
use t2t_store::fs;
use t2t_store::results::{self, Published};

use super::error::CliError;
use super::{context, outputs, streams};

/// How much of a commit's hash is shown.
const SHORT: usize = 10;

/// Prints the picture of a device's published results as an SVG, or writes it to the file `out`.
pub(crate) fn picture(device: &str, out: Option<&Path>) -> Result<u8, CliError> {
    let root = context::workspace()?;
    let published = results::read(&results::folder(&root, device), None);
    for fault in &published.faults {
        streams::say(&format!("warning: {fault}; it counts as missing"));
    }
    let ops = ops(&published.entries);
    if ops.is_empty() {
        let known = results::devices(&root).join(", ");
        let hint = if known.is_empty() {
            "`t2t publish` publishes those of a device".to_owned()
        } else {
            format!("there are results of {known}")
        };
        return Err(CliError::misuse(format!("no speedups of `{device}` are published"), hint));
    }
    let drawn = speedups::svg(&title(&published, device), &ops).map_err(anyhow::Error::new)?;
    match out {
        Some(file) => {
            outputs::may_be_written(file, "the picture", outputs::MARKUP)?;
            fs::write(file, drawn.as_bytes()).map_err(|error| {
                CliError::misuse(format!("cannot write `{}`: {error}", file.display()), "name another file")
            })?;
        }
        None => streams::print(&drawn),
    }
    Ok(0)
}

/// Returns the speedups of all ops with a selected kernel, by name.
fn ops(entries: &[Entry]) -> Vec<Op> {
    let mut found: BTreeMap<&str, Documents> = BTreeMap::new();
    let of_phase = |phase: Phase| entries.iter().filter(move |entry| entry.record.identity.target.phase == phase);
    for entry in of_phase(Phase::Select) {
        if let Some(selection) = document(entry, "selection") {
            found.entry(&entry.record.identity.target.op).or_default().selection = selection;
        }
    }
    for entry in of_phase(Phase::Baseline) {
        if let Some(documents) = found.get_mut(entry.record.identity.target.op.as_str()) {
            documents.baseline = document(entry, "baseline");
        }
    }
    for entry in of_phase(Phase::Bench) {
        let target = &entry.record.identity.target;
        let documents = found.get_mut(target.op.as_str());
        let is_chosen = |documents: &&mut Documents| documents.selection.chosen == target.variant_name();
        if let Some((documents, bench)) = documents.filter(is_chosen).zip(document(entry, "bench")) {
            documents.bench = bench;
        }
    }
    found.into_iter().filter_map(|(name, documents)| speedups::op(name, &documents)).collect()
}

fn document<T: serde::de::DeserializeOwned>(entry: &Entry, name: &str) -> Option<T> {
    read::document(entry.documents.get(name)?).ok()
}

/// Returns what was measured, with what, and of which commit.
fn title(published: &Published, device: &str) -> String {
    let Some(facts) = &published.facts else { return device.to_owned() };
    let name = facts.name.clone().unwrap_or_else(|| device.to_owned());
    let version = |name: &str| facts.versions.get(name).map(|version| format!("{name} {version}"));
    let commit = facts.revision.as_deref().map(|revision| revision.get(..SHORT).unwrap_or(revision).to_owned());
    let parts = [Some(name), version("torch"), version("triton"), commit];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}
