//! `t2t cache`: what the store holds, whether it is whole, keeping it small, carrying it elsewhere.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use t2t_host::interrupt::Interrupt;
use t2t_model::action::Identity;
use t2t_model::digest::Digest;
use t2t_model::record::Record;
use t2t_plan::graph::pick::{Force, Selection, pick};
use t2t_spec::names::suggestion;
use t2t_store::fs;
use t2t_store::store::archive::{self, Artifacts, Refused};
use t2t_store::store::audit::{Audit, Fault, audit, repair};
use t2t_store::store::cas::Cas;
use t2t_store::store::collect::{self, Collected, Holdings, Limits, Share};
use t2t_store::store::journal::Journal;
use t2t_store::store::leftovers;

use super::error::CliError;
use super::plan::plans;
use super::{Common, ReportFormat, context, outputs, streams};
use crate::session::Session;

mod words;

pub(super) use self::words::bytes;
use self::words::{SECOND, age, ago, count, size};

/// What is to be done about the store.
#[derive(Debug, Subcommand)]
pub(crate) enum CacheCommand {
    /// Read all that is kept and hold it against its checksums and digests; the exit code is 1 where something is damaged
    Verify {
        /// Remove what is damaged, and forget the results that need it
        #[arg(long)]
        repair: bool,
    },
    /// Say what is kept, and how much of it the workspace needs as it is now
    Stats {
        /// How it is written
        #[arg(long, value_enum, default_value = "text")]
        format: ReportFormat,
    },
    /// Remove what no result names and, beyond the limits, the oldest results that the workspace does not need as it is now
    Gc(GcArguments),
    /// Write results to one file
    Export(ExportArguments),
    /// Take in the results of a file that `t2t cache export` wrote
    Import {
        /// The file
        file: PathBuf,
    },
}

/// How much may stay.
#[derive(Debug, Args)]
pub(crate) struct GcArguments {
    /// How much may stay, as in 2GiB or 500MB
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_size: Option<u64>,
    /// How old results may be, as in 30d or 12h
    #[arg(long, value_name = "AGE", value_parser = age)]
    max_age: Option<i64>,
    /// Say what would go, and remove nothing
    #[arg(long)]
    dry_run: bool,
}

/// What is exported.
#[derive(Debug, Args)]
pub(crate) struct ExportArguments {
    /// The file; one that is there is replaced
    file: PathBuf,
    /// Only results of this device model (nvidia-h200, interpreter), and those of no device
    #[arg(long, value_name = "MODEL")]
    of_device: Option<String>,
    /// Only results of this op; may be given several times
    #[arg(long, value_name = "OP")]
    op: Vec<String>,
    /// Leave out compiled kernels, which no build needs
    #[arg(long)]
    without_ir: bool,
}

/// Runs the command.
pub(crate) fn cache(common: &Common, command: &CacheCommand) -> Result<u8, CliError> {
    match command {
        CacheCommand::Verify { repair: false } => {
            let root = context::workspace()?;
            let audit = audit(&root.join("cache")).context("cannot read `cache/`")?;
            tell(&audit, &root, false);
            Ok(u8::from(!audit.faults.is_empty()))
        }
        CacheCommand::Verify { repair: true } => mend(),
        CacheCommand::Stats { format } => stats(common, *format),
        CacheCommand::Gc(arguments) => gc(common, arguments),
        CacheCommand::Export(arguments) => export(arguments),
        CacheCommand::Import { file } => import(file),
    }
}

// verify

fn mend() -> Result<u8, CliError> {
    let root = context::workspace()?;
    let cache = root.join("cache");
    let _lock = context::lock(&root)?;
    let found = audit(&cache).context("cannot read `cache/`")?;
    repair(&cache, &found).context("cannot repair `cache/`")?;
    tell(&found, &root, true);
    let left = audit(&cache).context("cannot read `cache/`")?;
    if left.faults.is_empty() {
        return Ok(0);
    }
    streams::print(&format!(
        "{} left: only you can judge files that t2t did not make or cannot read\n",
        count(left.faults.len(), "damage")
    ));
    Ok(1)
}

fn tell(audit: &Audit, root: &Path, is_repaired: bool) {
    let place = format!("{}/", root.display());
    for fault in &audit.faults {
        let kept = matches!(fault, Fault::Foreign(_) | Fault::Unreadable(..));
        let done = if is_repaired && !kept { "removed; " } else { "" };
        let what = if fault.is_missing() { "missing" } else { "damaged" };
        streams::print(&format!("{what}   {}; {done}{}\n", fault.to_string().replace(&place, ""), fault.then()));
    }
    if audit.left_out > 0 {
        let what = count(audit.left_out, "artifact");
        streams::print(&format!("left out  {what}: compiled kernels of results that came without them\n"));
    }
    if audit.unnamed + audit.unfinished > 0 {
        let what = count(audit.unnamed, "whole blob");
        let unfinished = count(audit.unfinished, "unfinished file");
        streams::print(&format!("unnamed   {what} and {unfinished}; `t2t cache gc` removes them\n"));
    }
    let missing = audit.faults.iter().filter(|fault| fault.is_missing()).count();
    let damages = count(audit.faults.len() - missing, "damage");
    let damages = if missing == 0 { damages } else { format!("{missing} missing, {damages}") };
    let records = count(audit.records, "record");
    streams::print(&format!("{records}, {}, {}: {damages}\n", count(audit.blobs, "blob"), bytes(audit.bytes)));
}

// stats and gc

/// Returns the keys that the workspace needs now: for every action the result that stands, and, for each device, the last known one.
fn needed(session: &Session, records: &[&Record]) -> Result<BTreeSet<Digest>, CliError> {
    let wanted = pick(&session.graph, &Selection::default(), Force::Stale)?;
    let plans = plans(session, &wanted)?;
    let mut keys: BTreeSet<Digest> =
        plans.iter().filter_map(|plan| plan.settled.record()).map(|record| record.key).collect();
    let targets: HashSet<_> = session.graph.indices().map(|index| session.graph.action(index).target()).collect();
    let of_targets = records.iter().filter(|record| targets.contains(&record.identity.target));
    let last: HashMap<&Identity, Digest> = of_targets.map(|record| (&record.identity, record.key)).collect();
    keys.extend(last.into_values());
    Ok(keys)
}

fn gc(common: &Common, arguments: &GcArguments) -> Result<u8, CliError> {
    let root = context::workspace()?;
    let cache = root.join("cache");
    let _lock = context::lock(&root)?;
    let holdings = Holdings::of(&cache).context("cannot read `cache/`")?;
    if holdings.lines.is_foreign {
        let message = "cache/journal is of another version, or its first line is damaged";
        return Err(CliError::misuse(message, "`t2t clean --cache` starts anew; a build does so by itself"));
    }
    let session = context::open(common, context::as_built(common)?, &Interrupt::default())?;
    let needed = needed(&session, &holdings.lines.live())?;
    let limits = Limits { size: arguments.max_size, age: arguments.max_age };
    let stays = collect::staying(&holdings, &needed, limits, fs::now());
    let going = collect::going(&holdings, &stays);
    if !arguments.dry_run {
        collect::collect(&cache, &holdings, &stays).context("cannot remove from `cache/`")?;
    }
    streams::print(&summary(&going, arguments.dry_run));
    if let Some(most) = arguments.max_size.filter(|most| going.left > *most) {
        let over = bytes(going.left - most);
        streams::say(&format!("note: {over} more than --max-size stay: the workspace needs them as it is now"));
    }
    Ok(0)
}

fn summary(going: &Collected, is_dry: bool) -> String {
    let verb = if is_dry { "would be removed" } else { "removed" };
    let (records, blobs) = (count(going.records, "record"), count(going.blobs, "blob"));
    let lines = count(going.lines, "line");
    let (gone, left) = (bytes(going.bytes), bytes(going.left));
    format!("{verb}: {records}, {blobs}, {gone}, and {lines} of the journal that no longer counted; {left} stay\n")
}

fn stats(common: &Common, format: ReportFormat) -> Result<u8, CliError> {
    let session = context::open(common, context::as_built(common)?, &Interrupt::default())?;
    let holdings = Holdings::of(&session.cache).context("cannot read `cache/`")?;
    let live = holdings.lines.live();
    let needed = needed(&session, &live)?;
    let of_now: Vec<&Record> = live.iter().copied().filter(|record| needed.contains(&record.key)).collect();
    let named = collect::named(live.iter().copied());
    let share = |records: &[&Record]| Share {
        number: records.len(),
        bytes: holdings.bytes_of(&collect::named(records.iter().copied())),
    };
    let unnamed = holdings.listing.blobs.iter().filter(|(digest, _)| !named.contains(digest));
    let unnamed = Share { number: unnamed.clone().count(), bytes: unnamed.map(|(_, stat)| stat.size).sum() };
    let times: Vec<i64> = live.iter().filter_map(|record| holdings.time_of(record)).collect();
    let figures = Figures {
        records: share(&live),
        needed: share(&of_now),
        blobs: Share { number: holdings.listing.blobs.len(), bytes: holdings.listing.bytes() },
        unnamed,
        superseded: holdings.lines.records.len() - live.len(),
        damaged: holdings.lines.damaged.len() + usize::from(holdings.lines.is_foreign),
        oldest: times.iter().min().map(|time| time / SECOND),
        newest: times.iter().max().map(|time| time / SECOND),
        phases: collect::shares(&holdings, &live, |record| record.identity.target.phase.to_string()),
        artifacts: collect::artifacts(&holdings, &live),
    };
    streams::print(&match format {
        ReportFormat::Text => figures.text(fs::now() / SECOND),
        ReportFormat::Json => format!("{:#}\n", figures.json()),
    });
    Ok(0)
}

struct Figures {
    records: Share,
    needed: Share,
    blobs: Share,
    unnamed: Share,
    superseded: usize,
    damaged: usize,
    oldest: Option<i64>,
    newest: Option<i64>,
    phases: BTreeMap<String, Share>,
    artifacts: BTreeMap<String, Share>,
}

impl Figures {
    fn text(&self, now: i64) -> String {
        let row = |name: &str, share: Share| format!("{name:<20} {:>8} {:>12}\n", share.number, bytes(share.bytes));
        let mut text = row("records", self.records);
        text += &row("  needed now", self.needed);
        text += &row("blobs", self.blobs);
        text += &row("  named by no record", self.unnamed);
        text += "\nrecords by phase\n";
        self.phases.iter().for_each(|(name, share)| text += &row(&format!("  {name}"), *share));
        text += "\nblobs by artifact\n";
        self.artifacts.iter().for_each(|(name, share)| text += &row(&format!("  {name}"), *share));
        if let (Some(oldest), Some(newest)) = (self.oldest, self.newest) {
            text += &format!("\noldest {} ago, newest {} ago\n", ago(now - oldest), ago(now - newest));
        }
        let lines = count(self.superseded, "line");
        text + &format!("{lines} of the journal no longer count, {} damaged\n", self.damaged)
    }

    fn json(&self) -> Value {
        let share = |share: &Share| json!({"number": share.number, "bytes": share.bytes});
        let shares = |shares: &BTreeMap<String, Share>| -> Value {
            shares.iter().map(|(name, found)| (name.clone(), share(found))).collect::<serde_json::Map<_, _>>().into()
        };
        json!({
            "version": 1,
            "records": share(&self.records),
            "needed": share(&self.needed),
            "blobs": share(&self.blobs),
            "unnamed": share(&self.unnamed),
            "superseded_lines": self.superseded,
            "damaged_lines": self.damaged,
            "oldest": self.oldest,
            "newest": self.newest,
            "phases": shares(&self.phases),
            "artifacts": shares(&self.artifacts),
        })
    }
}

// export and import

fn export(arguments: &ExportArguments) -> Result<u8, CliError> {
    let root = context::workspace()?;
    let cache = root.join("cache");
    let lines = Journal::open(&cache).lines().context("cannot read `cache/journal`")?;
    let live = lines.live();
    let (ops, devices): (BTreeSet<String>, BTreeSet<Option<String>>) = live
        .iter()
        .map(|record| (record.identity.target.op.clone(), record.identity.device.as_ref().map(ToString::to_string)))
        .unzip();
    are_known(&arguments.op, ops.iter().filter(|op| !op.is_empty()).map(String::as_str))?;
    if let Some(device) = arguments.of_device.as_ref().filter(|device| !devices.contains(&Some((*device).clone()))) {
        // Those of no device may be what is wanted.
        streams::say(&format!("warning: there is no result of device model `{device}`"));
    }
    let is_wanted = |record: &&Record| {
        let (target, device) = (&record.identity.target, &record.identity.device);
        let of_op = arguments.op.is_empty() || arguments.op.contains(&target.op);
        let here = device.as_ref().map(ToString::to_string);
        of_op && (arguments.of_device.is_none() || here.is_none() || here == arguments.of_device)
    };
    let records: Vec<&Record> = live.into_iter().filter(is_wanted).collect();
    let artifacts = if arguments.without_ir { Artifacts::WithoutIr } else { Artifacts::All };
    let unwritable = || format!("cannot write `{}`", arguments.file.display());
    let place = context::absolute(&arguments.file);
    outputs::may_be_written(&place, "the results", &[archive::MAGIC])?;
    let (mut draft, _noted) =
        fs::Draft::start(&place, |draft| leftovers::note(&cache, draft)).with_context(unwritable)?;
    let packed = archive::pack(&Cas::open(&cache), &records, artifacts, &mut draft).with_context(unwritable)?;
    for fault in &packed.faults {
        streams::say(&format!("warning: left out: {fault}"));
    }
    if packed.records == 0 {
        return Err(nothing_kept());
    }
    draft.finish().with_context(unwritable)?;
    let (records, blobs) = (count(packed.records, "record"), count(packed.blobs, "blob"));
    let size = bytes(packed.bytes);
    streams::print(&format!("{records}, {blobs}, {size} in {}\n", arguments.file.display()));
    Ok(0)
}

/// Fails, as bad use, on an op of which nothing is kept: a misspelled one would be left out silently.
fn are_known<'a>(names: &[String], known: impl Iterator<Item = &'a str> + Clone) -> Result<(), CliError> {
    match names.iter().find(|name| !known.clone().any(|known| known == *name)) {
        Some(_) if known.clone().next().is_none() => Err(nothing_kept()),
        Some(name) => Err(CliError::misuse(format!("there is no result of op `{name}`"), suggestion(name, known))),
        None => Ok(()),
    }
}

fn nothing_kept() -> CliError {
    CliError::misuse("there is no result to export", "run `t2t build`, or ask for other ops or another device")
}

fn import(file: &Path) -> Result<u8, CliError> {
    let root = context::workspace()?;
    let cache = root.join("cache");
    if file.is_dir() {
        return Err(CliError::misuse(
            format!("`{}` is a folder", file.display()),
            "name a file that `t2t cache export FILE` wrote",
        ));
    }
    let opened = fs::open_if_there(&context::absolute(file));
    let mut opened = opened.with_context(|| format!("cannot read `{}`", file.display()))?.ok_or_else(|| {
        CliError::misuse(format!("no file `{}`", file.display()), "`t2t cache export FILE` writes one")
    })?;
    let _lock = context::lock(&root)?;
    let stage = cache.join("scratch").join(context::process().to_string());
    let taken = archive::unpack(&mut opened, &cache, &stage).map_err(|refused| match refused {
        Refused::Store(_) => CliError::machine(refused.to_string()),
        Refused::Unreadable(error) => CliError::machine(format!("cannot read `{}`: {error}", file.display())),
        _ => CliError::misuse(
            format!("cannot import `{}`: {refused}", file.display()),
            "nothing was changed; `t2t cache export FILE` writes a file that can be imported",
        ),
    })?;
    let (new, blobs) = (count(taken.new, "new record"), count(taken.blobs, "blob"));
    streams::print(&format!("{new}, {} known before, {blobs}\n", taken.known));
    Ok(0)
}
