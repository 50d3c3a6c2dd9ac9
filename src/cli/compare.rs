//! `t2t compare A B`: what was measured on two sides, from records, commits, the workspace or published results.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Context;
use console::Term;
use t2t_host::interrupt::Interrupt;
use t2t_model::action::{DeviceClass, Phase, Target};
use t2t_model::record::Record;
use t2t_plan::explain;
use t2t_plan::graph::pattern::fits;
use t2t_plan::graph::pick::{Force, Selection, pick};
use t2t_protocol::{Bench, read};
use t2t_report::compare::{Measurements, Side, compare};
use t2t_report::rank::Selection as Selected;
use t2t_report::render::comparison::{self, Shown};
use t2t_spec::names::suggestion;
use t2t_store::fs;
use t2t_store::git;
use t2t_store::results::{self, Published};
use t2t_store::store::cas::Cas;
use t2t_store::store::journal::Journal;

use super::error::CliError;
use super::plan::{Plan, plans};
use super::revision::Revision;
use super::{Common, CompareArguments, ReportFormat, context, streams};
use crate::reporter::Screen;
use crate::session::{OPS, Session};

/// How many reasons an error names.
const NAMED: usize = 5;

/// Runs the command: 1 where B has a regression.
pub(crate) fn run(common: &Common, arguments: &CompareArguments) -> Result<u8, CliError> {
    let mut a = side(common, &arguments.a, "A")?;
    let mut b = side(common, &arguments.b, "B")?;
    narrow([&mut a, &mut b], &arguments.ops)?;
    let comparison = compare(&a, &b, arguments.threshold / 100.0);
    if comparison.rows.is_empty() {
        let only = |at: usize| match comparison.only[at].as_slice() {
            [] => "nothing of its own".to_owned(),
            some => some.join(", "),
        };
        let unlike = comparison.incomparable.iter().map(|(what, why)| format!("; {what}: {why}"));
        return Err(CliError::misuse(
            format!("A and B have no figure in common{}", unlike.collect::<String>()),
            format!("A has {}; B has {}", only(0), only(1)),
        ));
    }
    match arguments.format {
        ReportFormat::Json => streams::print(&format!("{:#}\n", comparison.document())),
        ReportFormat::Text => {
            let environment = |name: &str| context::variable(name);
            let width = Screen::of(&Term::stdout(), &environment).width;
            let shown = if arguments.all { Shown::All } else { Shown::Changes };
            streams::print(&comparison::text(&comparison, shown, width));
        }
    }
    Ok(u8::from(comparison.regressions() > 0))
}

/// Leaves both sides the ops that were named, and all where none was.
fn narrow(sides: [&mut Side; 2], named: &[String]) -> Result<(), CliError> {
    let known: BTreeSet<String> = sides.iter().flat_map(|side| side.ops.keys().cloned()).collect();
    for name in named {
        if !known.iter().any(|op| fits(name, op)) {
            let hint = suggestion(name, known.iter().map(String::as_str));
            return Err(CliError::misuse(format!("neither side has measurements of an op `{name}`"), hint));
        }
    }
    if !named.is_empty() {
        for side in sides {
            side.ops.retain(|op, _| named.iter().any(|name| fits(name, op)));
        }
    }
    Ok(())
}

/// Returns what `text` means: a file or folder, else a record by its key, else a commit. `key:` and `rev:` before it choose.
fn side(common: &Common, text: &str, letter: &str) -> Result<Side, CliError> {
    if let Some(key) = text.strip_prefix("key:") {
        return of_key(key)?.ok_or_else(|| unknown(text, "no record has that key"));
    }
    if let Some(revision) = text.strip_prefix("rev:") {
        return of_commit(common, revision, letter)?.ok_or_else(|| unknown(text, "git knows no such commit"));
    }
    let path = Path::new(text);
    if fs::folder_time(path).is_some() {
        return of_path(common, path, letter);
    }
    let key = of_key(text)?;
    let root = context::workspace()?;
    let is_commit = git::commit(&root, text).is_ok();
    match key {
        Some(_) if is_commit => Err(CliError::misuse(
            format!("`{text}` is the key of a record and a commit"),
            format!("write `key:{text}` or `rev:{text}`"),
        )),
        Some(side) => Ok(side),
        None => of_commit(common, text, letter)?
            .ok_or_else(|| unknown(text, "it is neither a file, nor a record's key, nor a commit")),
    }
}

fn unknown(text: &str, why: &str) -> CliError {
    let hint = "name a folder as `assets/results/nvidia-h200`, a key as `t2t explain` prints it, a commit, or `.` for the workspace as it is";
    CliError::misuse(format!("cannot compare `{text}`: {why}"), hint)
}

/// Returns the results of a published folder or file, or the present ones of the workspace at `path`.
fn of_path(common: &Common, path: &Path, letter: &str) -> Result<Side, CliError> {
    if fs::stat(&path.join(OPS)).is_some() {
        let root = context::absolute(path);
        let session =
            Session::open(&root, &context::options(common, &root, context::as_built(common)?), &Interrupt::default())?;
        return of_session(session, &root, &format!("the workspace `{}`", path.display()), letter);
    }
    let published = results::read(path, None);
    for fault in &published.faults {
        streams::say(&format!("warning: {letter}: {fault}; it counts as missing"));
    }
    let name = format!("{}{}", path.display(), described(&published));
    let entries = published.entries.iter().map(|entry| (&entry.record, &entry.documents));
    let ops = measured(entries.map(|(record, documents)| (record, move |name: &str| documents.get(name).cloned())));
    if ops.is_empty() {
        return Err(unknown(&path.display().to_string(), "there are no published measurements"));
    }
    Ok(Side { name, ops })
}

fn described(published: &Published) -> String {
    let Some(facts) = &published.facts else { return String::new() };
    let commit =
        facts.revision.as_ref().map(|revision| format!(" at {}", revision.chars().take(12).collect::<String>()));
    let changes = if facts.dirty == Some(true) { " with changes" } else { "" };
    format!(" ({}{}{changes})", facts.model, commit.unwrap_or_default())
}

/// Returns the bench whose key starts with `prefix`, in the store or published. None where none does, or `prefix` is no part of a key.
fn of_key(prefix: &str) -> Result<Option<Side>, CliError> {
    let is_key = prefix.len() >= 4 && prefix.chars().all(|letter| letter.is_ascii_hexdigit());
    if !is_key {
        return Ok(None);
    }
    let root = context::workspace()?;
    let cache = root.join("cache");
    let mut history = Journal::open(&cache).load().context("cannot read `cache/journal`")?.history;
    let published: Vec<Published> =
        results::devices(&root).iter().map(|device| results::read(&results::folder(&root, device), None)).collect();
    let entries = || published.iter().flat_map(|published| &published.entries);
    entries().for_each(|entry| history.add(entry.record.clone()));
    let record = match history.starting_with(prefix).as_slice() {
        [] => return Ok(None),
        [record] => (*record).clone(),
        several => {
            let keys: Vec<String> =
                several.iter().map(|record| format!("{} {}", record.key.short(), record.identity)).collect();
            return Err(CliError::misuse(
                format!("`{prefix}` is the start of several keys"),
                format!("they are {}", keys.join(", ")),
            ));
        }
    };
    let cas = Cas::open(&cache).with(entries().flat_map(|entry| entry.documents.values()));
    let named = format!("{} ({})", record.identity, record.key.short());
    let ops = measured([(&record, |name: &str| bytes(&cas, &record, name))].into_iter());
    if ops.is_empty() {
        return Err(CliError::misuse(
            format!("{named} has no measurements"),
            "name the record of a bench: `t2t explain OP/VARIANT:bench` prints its key",
        ));
    }
    Ok(Some(Side { name: named, ops }))
}

/// Returns the known results of a commit: its files give keys, which are looked up in the store and in published results. None if it is not a commit.
fn of_commit(common: &Common, name: &str, letter: &str) -> Result<Option<Side>, CliError> {
    let root = context::workspace()?;
    let commit = match git::commit(&root, name) {
        Ok(commit) => commit,
        Err(git::NoAnswer::Refused(_)) => return Ok(None),
        Err(error) => return Err(CliError::machine(error.to_string())),
    };
    let revision = Revision::check_out(&root, &commit, &format!("compare-{letter}"))
        .map_err(|error| CliError::machine(error.to_string()))?;
    if !revision.has(OPS) {
        return Err(unknown(name, "it has no ops.yaml"));
    }
    let session = revision.session(common, &root)??;
    let short: String = commit.chars().take(12).collect();
    let named = if commit.starts_with(name) { short } else { format!("{name} ({short})") };
    of_session(session, &root, &named, letter).map(Some)
}

/// Returns the results that stand in a session, from a commit's own publication, the store, and the publication of the workspace at `root`.
fn of_session(mut session: Session, root: &Path, name: &str, letter: &str) -> Result<Side, CliError> {
    let class = session.inventory.device.class.to_string();
    if session.root != root && !session.is_elsewhere {
        session.published.push(results::read(&results::folder(&session.root, &class), None));
    }
    session.spare.push(results::read(&results::folder(root, &class), None));
    let wanted = pick(&session.graph, &Selection::default(), Force::Stale)?;
    let plans = plans(&session, &wanted)?;
    let cas = session.cas();
    let records = plans.iter().filter_map(|plan| plan.settled.record());
    let ops = measured(records.map(|record| (record, |name: &str| bytes(&cas, record, name))));
    let unknown = unresolved(&session, &plans);
    if ops.is_empty() && unknown.is_empty() {
        return Err(without_figures(&session.inventory.device.class, name, letter));
    }
    if ops.is_empty() {
        let why: Vec<&str> = unknown.iter().take(NAMED).map(String::as_str).collect();
        return Err(CliError::misuse(
            format!("{letter}: no measurement of {name} on {class} is known here\n  {}", why.join("\n  ")),
            "build it there, publish its results, or compare published folders; a key holds versions and the harness, too",
        ));
    }
    for line in unknown {
        streams::say(&format!("warning: {letter}: no result of {line}"));
    }
    Ok(Side { name: format!("{name} on {class}"), ops })
}

/// Returns the error where all results of a side are known, and none of them has a figure.
fn without_figures(class: &DeviceClass, name: &str, letter: &str) -> CliError {
    let (why, hint) = match class {
        DeviceClass::Interpreter => (
            "Triton's interpreter measures nothing that compares",
            "name a device that has results with `--as-device`, or compare published folders",
        ),
        DeviceClass::Cuda(_) => ("no bench passed", "`t2t status` lists what was rejected"),
    };
    CliError::misuse(format!("{letter}: {name} has no figures on {class}: {why}"), hint)
}

/// Returns a line for each bench without a result that stands.
fn unresolved(session: &Session, plans: &[Plan]) -> Vec<String> {
    let of = |plan: &Plan| {
        let target = session.graph.action(plan.index).target();
        let missing = target.phase == Phase::Bench && plan.settled.record().is_none() && !plan.why.is_empty();
        missing.then(|| format!("{target}: {}", explain::line(&plan.why)))
    };
    plans.iter().filter_map(of).collect()
}

/// Returns what the benches among `records` measured, and what the selections chose.
pub(super) fn measured<'a, F: Fn(&str) -> Option<Vec<u8>>>(
    records: impl Iterator<Item = (&'a Record, F)>,
) -> BTreeMap<String, Measurements> {
    let mut ops: BTreeMap<String, Measurements> = BTreeMap::new();
    for (record, bytes) in records {
        let Target { op, variant, .. } = &record.identity.target;
        let bench = bytes("bench").and_then(|bytes| read::document::<Bench>(&bytes).ok());
        if let Some((bench, variant)) = bench.filter(|bench| bench.final_ms.is_some()).zip(variant.clone()) {
            ops.entry(op.clone()).or_default().benches.insert(variant, bench);
        }
        if let Some(selection) = bytes("selection").and_then(|bytes| read::document::<Selected>(&bytes).ok()) {
            ops.entry(op.clone()).or_default().chosen = selection.chosen;
        }
    }
    ops.retain(|_, op| !op.benches.is_empty());
    ops
}

fn bytes(cas: &Cas, record: &Record, name: &str) -> Option<Vec<u8>> {
    cas.get(record.outputs.get(name)?.digest).ok()
}
