//! The results of ops at earlier revisions: those that commits published, then those of this store that nobody published.
//!
//! It does not know which of them is slower.

use std::collections::{BTreeMap, BTreeSet};

use t2t_model::action::{DeviceClass, Phase};
use t2t_model::digest::Digest;
use t2t_model::record::Record;
use t2t_protocol::read;
use t2t_report::compare::Measurements;
use t2t_report::page::Revision;
use t2t_report::rank::Selection;
use t2t_spec::Op;
use t2t_store::past;
use t2t_store::store::cas::Cas;
use t2t_store::store::journal::Journal;

use crate::cli::compare::measured;
use crate::session::Session;

/// How many revisions an op has where nobody says how many.
const REVISIONS: usize = 8;

/// How many results of ops at revisions are read where nobody says how many: each takes some ms.
const RESULTS: usize = 200;

/// How many digits a commit's name has.
const SHORT: usize = 8;

/// Returns the revisions of each op, the oldest first: `most` of commits and of the store each.
pub(super) fn of(session: &Session, ops: &[&Op], most: Option<usize>) -> BTreeMap<String, Vec<Revision>> {
    let most = most.unwrap_or((RESULTS / ops.len().max(1)).min(REVISIONS));
    let class = match (&session.inventory.device.class, &session.inventory.elsewhere) {
        (DeviceClass::Interpreter, None) => return BTreeMap::new(),
        (DeviceClass::Interpreter, Some(elsewhere)) => &elsewhere.device.class,
        (class, _) => class,
    };
    if most == 0 {
        return BTreeMap::new();
    }
    let names: Vec<&str> = ops.iter().map(|op| op.name.as_str()).collect();
    let mut published = BTreeSet::new();
    let mut all: BTreeMap<String, Vec<Revision>> = BTreeMap::new();
    let wanted = |target: &str| target.ends_with(":bench") || target.ends_with(":select");
    for (op, past) in past::of(&session.root, &class.to_string(), &names, most, &wanted) {
        for past in past {
            published.extend(past.entries.iter().map(|entry| entry.record.key));
            let entries = past.entries.iter().map(|entry| (&entry.record, &entry.documents));
            let told = entries.map(|(record, documents)| (record, |name: &str| documents.get(name).cloned()));
            let Some(measured) = measured(told).remove(&op) else { continue };
            let name = past.commit.chars().take(SHORT).collect();
            all.entry(op.clone()).or_default().push(Revision { name, day: Some(past.day), measured });
        }
    }
    if !session.is_elsewhere && *class == session.inventory.device.class {
        let records = Journal::open(&session.cache).lines().map(|lines| lines.records).unwrap_or_default();
        let records: Vec<&Record> =
            records.iter().filter(|record| record.identity.device.as_ref() == Some(class)).collect();
        for op in names {
            let own: Vec<&Record> = records.iter().copied().filter(|record| record.identity.target.op == op).collect();
            all.entry(op.to_owned()).or_default().extend(of_store(&session.cas(), &own, &published, most));
        }
    }
    all
}

/// Returns what the store has of an op, as its selections followed one another, after the last result that is published.
fn of_store(cas: &Cas, records: &[&Record], published: &BTreeSet<Digest>, most: usize) -> Vec<Revision> {
    let is_bench = |record: &Record| record.identity.target.phase == Phase::Bench;
    let begin = records.iter().rposition(|record| is_bench(record) && published.contains(&record.key));
    let mut benches: BTreeMap<&str, &Record> = BTreeMap::new();
    let mut selections: Vec<(&Record, BTreeMap<&str, &Record>)> = Vec::new();
    for (place, record) in records.iter().enumerate() {
        match (record.identity.target.phase, &record.identity.target.variant) {
            (Phase::Bench, Some(variant)) => {
                benches.insert(variant, record);
            }
            (Phase::Select, _) if begin.is_none_or(|begin| place > begin) => selections.push((record, benches.clone())),
            _ => {}
        }
    }
    let document = |record: &Record, name: &str| cas.get(record.outputs.get(name)?.digest).ok();
    let revision = |(selection, benches): &(&Record, BTreeMap<&str, &Record>)| {
        let selection: Selection = read::document(&document(selection, "selection")?).ok()?;
        let chosen = selection.chosen?;
        let record = benches.get(chosen.as_str())?;
        let bench = read::document(&document(record, "bench")?).ok()?;
        let name = record.key.to_string().chars().take(SHORT).collect();
        let measured = Measurements { chosen: Some(chosen.clone()), benches: [(chosen, bench)].into() };
        Some(Revision { name, day: None, measured })
    };
    selections[selections.len().saturating_sub(most)..].iter().filter_map(revision).collect()
}
