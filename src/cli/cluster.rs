//! `--on`: the cluster whose nodes perform what depends on a device.
//!
//! A build that has nothing for them starts no driver, and does not ask the cluster. It does not know how actions are sent.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use t2t_host::cluster::{Cluster, NoCluster};
use t2t_host::interrupt::Interrupt;
use t2t_plan::graph::Wanted;
use t2t_plan::schedule::Settled;
use t2t_store::fs;

use super::error::CliError;
use super::plan::plans;
use super::remote::OpenedRemote;
use super::{BuildArguments, Common, context, setup};
use crate::engine::{Children, Nodes, Settings, is_for_nodes};
use crate::session::{Probing, Session};

/// Returns the cluster that was named, if one was: by `--on`, else `$T2T_EXECUTOR`.
pub(crate) fn named(arguments: &BuildArguments) -> Option<String> {
    let variable = || context::variable("T2T_EXECUTOR").and_then(|value| value.into_string().ok());
    arguments.on.clone().or_else(variable).filter(|address| !address.is_empty())
}

/// Returns how a build is run: nodes perform what depends on a device, if a cluster was named and something of that would run.
pub(crate) fn settings(
    common: &Common,
    arguments: &BuildArguments,
    (session, wanted): (&Session, &Wanted),
    remote: &OpenedRemote,
    interrupt: &Interrupt,
) -> Result<Settings, CliError> {
    let settings = setup::settings(common, arguments, session, remote)?;
    let Some(address) = named(arguments).filter(|_| !arguments.require_cached) else { return Ok(settings) };
    is_address(&address)?;
    let plans = plans(session, wanted)?;
    if !plans
        .iter()
        .any(|plan| plan.settled == Settled::Planned && is_for_nodes(&session.graph.action(plan.index).identity))
    {
        return Ok(settings);
    }
    let nodes = lent(common, session, &address, interrupt)?;
    Ok(Settings { nodes: Some(Arc::new(nodes)), children: Children::All, ..settings })
}

/// Returns what the cluster lends. Fails where it cannot be used, or lends nothing.
fn lent(common: &Common, session: &Session, address: &str, interrupt: &Interrupt) -> Result<Nodes, CliError> {
    let python = context::variable("T2T_RAY_PYTHON").filter(|path| !path.is_empty()).map(PathBuf::from);
    let python = python.or_else(|| context::python(common, session.root.clone()).map(|python| python.path));
    let python = python.ok_or_else(|| {
        CliError::misuse("no Python was found for the driver of the cluster", "name one with `--python`")
    })?;
    let scratch = session.cache.join("scratch").join(context::process().to_string()).join("results");
    fs::make_folder(&scratch).context("cannot write to `cache/`")?;
    let cluster = Cluster::start(&python, address, &scratch, || interrupt.is_set()).map_err(unusable)?;
    let nodes = Nodes::of(cluster, context::options(common, &session.root, Probing::Never).architectures);
    if nodes.seats.is_empty() {
        let message = format!("no node of the cluster at {address} lends a device");
        return Err(CliError::misuse(message, "start its nodes with `ray start --num-gpus N`"));
    }
    Ok(nodes)
}

fn is_address(address: &str) -> Result<(), CliError> {
    let port = address.strip_prefix("ray://").and_then(|rest| rest.rsplit_once(':'));
    let is_whole = port.is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
    if is_whole || address == "auto" {
        return Ok(());
    }
    let hint = "write `ray://HOST:PORT`, the port of Ray's client server, which is 10001 where nobody says otherwise; or `auto` on a node of the cluster";
    Err(CliError::misuse(format!("`{address}` is no address of a cluster"), hint))
}

fn unusable(error: NoCluster) -> CliError {
    let message = error.to_string();
    match error {
        NoCluster::Fault { hint, .. } => CliError::Machine { message, hint: Some(hint) },
        NoCluster::Start { .. } | NoCluster::Ended { .. } => {
            let hint = "install `t2t[ray]` for that Python, or name one that has it with $T2T_RAY_PYTHON";
            CliError::Machine { message, hint: Some(hint.to_owned()) }
        }
        NoCluster::Interrupted => CliError::Interrupted,
    }
}
