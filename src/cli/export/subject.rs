//! What is exported of an op: the variant that was chosen, with the results by which it was. It must stand, and have passed.
//!
//! It does not know what becomes of it.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use t2t_host::interrupt::Interrupt;
use t2t_model::action::{Phase, Target};
use t2t_model::publication::Entry;
use t2t_model::record::Record;
use t2t_plan::explain;
use t2t_plan::graph::pick::{Force, Selection, pick};
use t2t_plan::schedule::Settled;
use t2t_protocol::read;
use t2t_report::rank;
use t2t_spec::Op;
use t2t_store::results;

use super::super::error::CliError;
use super::super::plan::{Plan, plans, standing};
use super::super::{Common, context};
use crate::session::{Options, Probing, Session, published_of};

/// The phases whose results say why a variant was chosen.
const PHASES: [Phase; 5] = [Phase::Compile, Phase::Check, Phase::Tune, Phase::Bench, Phase::Select];

/// A variant that was chosen, and by what.
#[derive(Debug, Clone)]
pub(super) struct Chosen {
    /// Its name.
    pub(super) variant: String,
    /// The device of whose figures it was.
    pub(super) device: String,
    /// Why, in words.
    pub(super) why: String,
    /// Its figures, as the selection has them; null where there are none.
    pub(super) figures: Value,
    /// Target → the key of its record.
    pub(super) records: BTreeMap<String, String>,
}

/// An op with what is exported of it.
#[derive(Debug)]
pub(super) struct Subject<'a> {
    /// The op.
    pub(super) op: &'a Op,
    /// The variant that serves wherever nothing else is known.
    pub(super) chosen: Chosen,
    /// The name of a device, as its driver gives it → what was chosen there, of published devices where that is another variant.
    pub(super) elsewhere: BTreeMap<String, Chosen>,
}

/// Why nothing of an op can be exported: what is to be said, and the command that helps.
struct Refusal {
    line: String,
    help: String,
}

impl Subject<'_> {
    /// Returns the names of all variants that are exported, the chosen one first.
    pub(super) fn variants(&self) -> Vec<&str> {
        let mut found = vec![self.chosen.variant.as_str()];
        for chosen in self.elsewhere.values() {
            if !found.contains(&chosen.variant.as_str()) {
                found.push(&chosen.variant);
            }
        }
        found
    }
}

/// Returns what is exported of each of these ops, in the order in which they are named. Fails, with a line for each op that has no such kernel and the commands that help, and with exit code 2 where ops.yaml has
/// no op of a name.
pub(super) fn subjects<'a>(
    common: &Common,
    session: &'a Session,
    names: &[String],
) -> Result<Vec<Subject<'a>>, CliError> {
    let plans = planned(session, names)?;
    let (mut subjects, mut refusals) = (Vec::new(), Vec::new());
    for name in names {
        let op = session.spec.op(name).expect("it was picked");
        match chosen(session, &plans, op) {
            Ok(chosen) => subjects.push(Subject { op, chosen, elsewhere: BTreeMap::new() }),
            Err(refusal) => refusals.push(refusal),
        }
    }
    if let Some(first) = refusals.first() {
        let lines: Vec<&str> = refusals.iter().map(|refusal| refusal.line.as_str()).collect();
        return Err(CliError::Missing { message: lines.join("\n       "), hint: first.help.clone() });
    }
    for device in results::devices(&session.root) {
        if device != session.inventory.device.class.to_string() {
            add_elsewhere(common, session, &device, &mut subjects);
        }
    }
    Ok(subjects)
}

fn planned(session: &Session, names: &[String]) -> Result<Vec<Plan>, CliError> {
    let targets = names.iter().map(|name| format!("{name}:select")).collect();
    let wanted = pick(&session.graph, &Selection { targets, ..Selection::default() }, Force::Stale)?;
    plans(session, &wanted)
}

/// Adds what was chosen on another device, by its published results, where these stand and another variant was.
fn add_elsewhere(common: &Common, session: &Session, device: &str, subjects: &mut [Subject<'_>]) {
    let options = context::options(common, &session.root, Probing::Never);
    let options = Options { as_device: Some(device.to_owned()), ..options };
    // What cannot be read of another device says nothing of it: the chosen variant serves there.
    let Ok(there) = Session::open(&session.root, &options, &Interrupt::default()) else { return };
    let facts = there.published.iter().find_map(|published| published.facts.as_ref());
    let Some(name) = facts.and_then(|facts| facts.name.clone()) else { return };
    let names: Vec<String> = subjects.iter().map(|subject| subject.op.name.clone()).collect();
    let Ok(plans) = planned(&there, &names) else { return };
    for subject in subjects {
        let Some(op) = there.spec.op(&subject.op.name) else { continue };
        if let Ok(found) = chosen(&there, &plans, op)
            && found.variant != subject.chosen.variant
        {
            subject.elsewhere.insert(name.clone(), found);
        }
    }
}

/// Returns the chosen variant of an op. On a machine without a device it is the one that a device chose, by published figures of exactly these kernels, where there are any.
fn chosen(session: &Session, plans: &[Plan], op: &Op) -> Result<Chosen, Refusal> {
    let device = &session.inventory.device.class;
    let build = if session.is_elsewhere {
        format!("run `t2t build {}`, then `t2t publish`, on a machine with {device}", op.name)
    } else {
        format!("run `t2t build {}`", op.name)
    };
    let refused = |why: &str, help: String| Refusal { line: format!("`{}` cannot be exported: {why}", op.name), help };
    let target = Target::of_op(&op.name, Phase::Select);
    let plan = plan_of(session, plans, &target).ok_or_else(|| refused("it has no result", build.clone()))?;
    let Some(record) = plan.settled.record() else {
        let why = match &plan.settled {
            Settled::Planned => format!("{target} is stale, {}", explain::line(&plan.why)),
            _ => format!("{target} has no result that stands"),
        };
        return Err(refused(&why, build));
    };
    let selection = record.outputs.get("selection").and_then(|blob| session.cas().get(blob.digest).ok());
    let selection = selection.ok_or_else(|| refused("its selection is not in the store any more", build.clone()))?;
    let known: rank::Selection =
        read::document(&selection).map_err(|misfit| refused(&format!("its selection: {misfit}"), build.clone()))?;
    let told: Value = serde_json::from_slice(&selection).unwrap_or_default();
    let published = &told["published"];
    let (variant, of, device) = match published["chosen"].as_str() {
        Some(variant) => (Some(variant), published, published["place"]["device"].as_str()),
        None => (known.chosen.as_deref(), &told, None),
    };
    let help = || format!("`t2t explain {}` says what became of each; mend one, then {build}", op.name);
    let why = told["why"].as_str().unwrap_or_default();
    let variant = variant.ok_or_else(|| refused(why, help()))?;
    let check = standing(session, plans, &Target::of_variant(&op.name, variant, Phase::Check));
    let passed = plan_of(session, plans, &check).and_then(|plan| plan.settled.record());
    if !passed.is_some_and(|record| record.outcome.is_pass()) {
        return Err(refused(&format!("{check} has not passed"), build));
    }
    let here = session.inventory.device.class.to_string();
    let mut records = records_here(session, plans, op, variant);
    let why = match device {
        Some(device) => {
            records.extend(records_there(&session.root, device, op, variant));
            format!("`{variant}` was chosen on {device}, whose published figures are of exactly these kernels")
        }
        None => why.to_owned(),
    };
    Ok(Chosen {
        variant: variant.to_owned(),
        device: device.map_or(here, str::to_owned),
        why,
        figures: of["figures"].clone(),
        records,
    })
}

fn plan_of<'a>(session: &Session, plans: &'a [Plan], target: &Target) -> Option<&'a Plan> {
    let index = session.graph.find(target)?;
    plans.iter().find(|plan| plan.index == index)
}

fn records_here(session: &Session, plans: &[Plan], op: &Op, variant: &str) -> BTreeMap<String, String> {
    let found = PHASES.iter().filter_map(|phase| {
        let target = match phase {
            Phase::Select => Target::of_op(&op.name, *phase),
            _ => standing(session, plans, &Target::of_variant(&op.name, variant, *phase)),
        };
        let record = plan_of(session, plans, &target)?.settled.record()?;
        Some((named(record), record.key.to_string()))
    });
    found.collect()
}

/// Returns the keys of what a device published of the variant.
fn records_there(root: &Path, device: &str, op: &Op, variant: &str) -> BTreeMap<String, String> {
    let entries = published_of(root, device, &op.name).map(|(_, published)| published.entries).unwrap_or_default();
    let is_told = |entry: &&Entry| {
        let target = &entry.record.identity.target;
        let is_of = target.phase == Phase::Select || target.variant_name().as_deref() == Some(variant);
        is_of && PHASES.contains(&target.phase) && target.phase != Phase::Compile
    };
    entries.iter().filter(is_told).map(|entry| (named(&entry.record), entry.record.key.to_string())).collect()
}

/// Returns the target with the device that it is of: results of several may be told of one op.
fn named(record: &Record) -> String {
    let target = &record.identity.target;
    record.identity.device.as_ref().map_or_else(|| target.to_string(), |device| format!("{target} on {device}"))
}

/// Returns what `provenance.json` says of a chosen variant.
pub(super) fn told(chosen: &Chosen) -> Value {
    json!({
        "variant": chosen.variant,
        "device": chosen.device,
        "why": chosen.why,
        "figures": chosen.figures,
        "records": chosen.records,
    })
}
