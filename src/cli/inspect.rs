//! The commands that look and run nothing: `graph`, `log`, `ir`.

use std::io::Read;

use anyhow::Context;
use flate2::read::GzDecoder;
use serde_json::json;
use t2t_host::interrupt::Interrupt;
use t2t_model::action::{Phase, Target};
use t2t_model::record::Record;
use t2t_plan::dot::{self, Format};
use t2t_plan::graph::pick::{Force, Selection, pick};
use t2t_plan::graph::{Index, Wanted};
use t2t_protocol::{CompiledKernel, Resources, read};

use super::error::CliError;
use super::plan::{history, plans, standing as standing_attempt};
use super::{Common, GraphFormat, Targets, context, declared, streams};
use crate::engine::local::log_path;
use crate::session::{Probing, Session};

/// Prints the graph.
pub(crate) fn graph(common: &Common, targets: &Targets, format: GraphFormat) -> Result<u8, CliError> {
    let session = context::open(common, Probing::Never, &Interrupt::default())?;
    let wanted = pick(&session.graph, &targets.selection(&session)?, Force::Stale)?;
    let format = match format {
        GraphFormat::Dot => Format::Dot,
        GraphFormat::Mermaid => Format::Mermaid,
        GraphFormat::Json => Format::Json,
        GraphFormat::Ops => {
            streams::print(&declared::ops(&session, &wanted));
            return Ok(0);
        }
    };
    streams::print(&dot::write(&session.graph, &wanted.wanted, format));
    Ok(0)
}

/// Prints the log of an op, as the store has it, or of another device as it is published.
pub(crate) fn log(common: &Common, op: &str) -> Result<u8, CliError> {
    let probing = if common.as_device.is_some() { context::as_built(common)? } else { Probing::Never };
    let session = context::open(common, probing, &Interrupt::default())?;
    let target = Target::of_op(op, Phase::Log);
    let wanted =
        pick(&session.graph, &Selection { targets: vec![target.to_string()], ..Selection::default() }, Force::Stale)?;
    let index = session.graph.find(&target).expect("it was picked");
    let record = standing(&session, &wanted, index, &format!("run `t2t build {op}`"))?;
    let Some(blob) = record.as_ref().and_then(|record| record.outputs.get("page")) else {
        return Err(CliError::misuse(format!("`{op}` has no log yet"), format!("run `t2t build {op}`")));
    };
    let bytes = session
        .cas()
        .get(blob.digest)
        .map_err(|error| CliError::misuse(format!("{}: {error}", log_path(op)), format!("run `t2t build {op}`")))?;
    streams::print(&String::from_utf8_lossy(&bytes));
    Ok(0)
}

/// Returns the result of the action at `index` that stands; else its last one, and says so, with `remedy`.
pub(super) fn standing(
    session: &Session,
    wanted: &Wanted,
    index: Index,
    remedy: &str,
) -> Result<Option<Record>, CliError> {
    let plan = plans(session, wanted)?.into_iter().find(|plan| plan.index == index);
    let stands = plan.as_ref().and_then(|plan| plan.settled.record()).cloned();
    let identity = &session.graph.action(index).identity;
    let last = history(session)?.last(identity).map(|record| (**record).clone());
    if stands.is_none() && last.is_some() {
        streams::say(&format!("warning: `{}` is stale: this is its last result\nhint: {remedy}", identity.target));
    }
    Ok(stands.or(last))
}

/// Which of a variant's compiled kernels are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kernels {
    /// The first compilation of each kernel.
    First,
    /// Every compilation.
    All,
}

/// What a variant was compiled to.
pub(super) struct Compiled {
    pub(super) session: Session,
    /// The compile.
    pub(super) target: Target,
    resources: Resources,
    archive: Vec<u8>,
}

impl Compiled {
    /// Returns what the variant that `target` names was compiled to: the result that stands, else the last one.
    pub(super) fn of(common: &Common, target: &str) -> Result<Self, CliError> {
        let session = context::open(common, Probing::Never, &Interrupt::default())?;
        let place = target.split(':').next().unwrap_or(target);
        let Some((op, variant)) = place.split_once('/') else {
            return Err(CliError::misuse(
                format!("`{target}` names no variant"),
                "write it as in `t2t ir softmax/v4_optimized`",
            ));
        };
        let selection = Selection { targets: vec![format!("{place}:compile")], ..Selection::default() };
        let wanted = pick(&session.graph, &selection, Force::Stale)?;
        let named = Target::try_from(format!("{place}:compile"))
            .unwrap_or_else(|_| Target::of_variant(op, variant, Phase::Compile));
        let is_numbered = place.contains('#');
        let target = if is_numbered { named } else { standing_attempt(&session, &plans(&session, &wanted)?, &named) };
        let index = session.graph.find(&target).expect("it was picked");
        let record = standing(&session, &wanted, index, &format!("run `t2t build {place}:compile`"))?;
        let outputs = record.map(|record| record.outputs).unwrap_or_default();
        let cas = session.cas();
        let artifact = |name: &str| outputs.get(name).and_then(|blob| cas.get(blob.digest).ok());
        let (Some(resources), Some(archive)) = (artifact("resources"), artifact("triton.tar.gz")) else {
            let hint = format!("run `t2t build {place}:compile`");
            return Err(CliError::misuse(format!("`{place}` is not compiled"), hint));
        };
        Ok(Self { target, resources: read::document(&resources).unwrap_or_default(), archive, session })
    }

    /// Returns the compilations that are wanted: of one kernel or of all, the first or each.
    pub(super) fn rows(&self, kernel: Option<&str>, kernels: Kernels) -> Result<Vec<&CompiledKernel>, CliError> {
        let mut rows: Vec<&CompiledKernel> = Vec::new();
        for row in &self.resources.kernels {
            let again = kernels == Kernels::First && rows.iter().any(|shown| shown.kernel == row.kernel);
            if !again && kernel.is_none_or(|wanted| wanted == row.kernel) {
                rows.push(row);
            }
        }
        if rows.is_empty() {
            return Err(CliError::misuse(format!("`{}` has no such kernel", self.target.place()), "drop `--kernel`"));
        }
        Ok(rows)
    }

    /// Returns the bytes of a member of the archive.
    pub(super) fn member(&self, name: &str) -> anyhow::Result<Vec<u8>> {
        member_of(&self.archive, name).context("cannot read the compiled kernels")
    }
}

/// Prints a stage of a variant's compiled kernels: text with a heading for each, or the bytes of one cubin.
pub(crate) fn ir(
    common: &Common,
    target: &str,
    stage: &str,
    kernel: Option<&str>,
    kernels: Kernels,
) -> Result<u8, CliError> {
    let compiled = Compiled::of(common, target)?;
    // The kernels of a `.cu` are in one file.
    let mut members: Vec<&str> = Vec::new();
    let rows = compiled.rows(kernel, kernels)?;
    let lacks = |row: &CompiledKernel| format!("{} has no {stage} for {}", row.kernel, row.target);
    let has = |row: &CompiledKernel| row.stages.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
    if let Some(row) = rows.first().filter(|_| rows.iter().all(|row| !row.stages.contains_key(stage))) {
        // A file that this is written to would be empty.
        return Err(CliError::misuse(lacks(row), format!("it has {}", has(row))));
    }
    for row in rows {
        let Some(member) = row.stages.get(stage) else {
            streams::say(&format!("{}; it has {}", lacks(row), has(row)));
            continue;
        };
        if !members.contains(&member.as_str()) {
            members.push(member);
            print_stage(row, stage, &compiled.member(member)?);
        }
    }
    Ok(0)
}

fn print_stage(row: &CompiledKernel, stage: &str, bytes: &[u8]) {
    if stage == "cubin" {
        streams::print_bytes(bytes);
        return;
    }
    streams::say(&format!("{} for {}", row.kernel, about(row)));
    streams::print(&String::from_utf8_lossy(bytes));
}

/// Returns the device that a kernel was compiled for, its configuration and its constants.
pub(super) fn about(row: &CompiledKernel) -> String {
    let config = row.config.as_ref().map(|config| format!(" {}", json!(config))).unwrap_or_default();
    format!("{}{config} {}", row.target, json!(row.constants))
}

fn member_of(archive: &[u8], wanted: &str) -> anyhow::Result<Vec<u8>> {
    let mut archive = tar::Archive::new(GzDecoder::new(archive));
    for member in archive.entries()? {
        let mut member = member?;
        if member.path()?.to_str() == Some(wanted) {
            let mut bytes = Vec::new();
            member.read_to_end(&mut bytes)?;
            return Ok(bytes);
        }
    }
    anyhow::bail!("the archive of compiled kernels has no `{wanted}`")
}
