//! The cluster whose nodes perform what depends on a device. It is joined once for all builds of a command.
//!
//! A build that has nothing for them starts no driver, and does not ask the cluster. It does not know how actions are sent.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use t2t_host::cluster::{Cluster, NoCluster};
use t2t_host::interrupt::Interrupt;
use t2t_model::action::{DeviceClass, Identity};
use t2t_model::event::Event;
use t2t_plan::graph::Wanted;
use t2t_plan::schedule::Settled;
use t2t_store::fs;

use super::error::CliError;
use super::plan::plans;
use super::remote::OpenedRemote;
use super::{BuildArguments, Common, context, executor, setup};
use crate::engine::{CORES, Children, Nodes, SeatKind, Settings, taken_by};
use crate::session::{self, Probing, Session};

mod fit;

use self::fit::{Fit, Unused, fit};

/// The cluster that was joined, if one was.
#[derive(Debug, Default)]
pub(crate) struct Joined {
    cluster: Option<Arc<Cluster>>,
    /// The folder for what comes from it.
    results: PathBuf,
}

impl Drop for Joined {
    fn drop(&mut self) {
        // What cannot be removed takes nothing but space, and the next build removes it.
        if self.cluster.take().is_some() {
            let _ = fs::remove(&self.results);
            self.results.parent().into_iter().for_each(fs::remove_if_empty);
        }
    }
}

/// When a cluster that is named is joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Join {
    /// Once something would run that its nodes perform.
    ForWork,
    /// At once: what will run is not known yet.
    AtOnce,
}

/// What a build begins with.
pub(crate) struct Lent {
    pub(crate) session: Session,
    pub(crate) wanted: Wanted,
    /// What nodes lend. None where no cluster was named, and where nothing is for nodes.
    nodes: Option<(Arc<Cluster>, Fit)>,
    /// The nodes that are not used.
    unused: Vec<Unused>,
}

/// What a build is run with.
pub(crate) struct Ready {
    pub(crate) session: Session,
    pub(crate) wanted: Wanted,
    pub(crate) settings: Settings,
    /// What is to be told of nodes that are not used.
    pub(crate) told: Vec<Event>,
}

/// Opens the workspace, and joins the cluster if one was named and it is time to. `open` opens, and says what is wanted. It is called again where the nodes have another driver than
/// was known.
pub(crate) fn lent(
    (common, arguments): (&Common, &BuildArguments),
    join: Join,
    joined: &mut Joined,
    interrupt: &Interrupt,
    open: impl Fn() -> Result<(Session, Wanted), CliError>,
) -> Result<Lent, CliError> {
    let (mut session, mut wanted) = open()?;
    let named = executor::cluster(arguments.on.as_deref(), &session.spec)?;
    if arguments.on_cpus && named.is_none() {
        let hint = "name one with `--on`, `$T2T_EXECUTOR`, or `executor:` in ops.yaml";
        return Err(CliError::misuse("`--on-cpus` is for nodes of a cluster, and none is named", hint));
    }
    let named = named.filter(|_| !arguments.require_cached);
    let (mut nodes, mut unused) = (None, Vec::new());
    let cores = arguments.on_cpus;
    let is_time = |session: &Session, wanted: &Wanted| {
        Ok::<_, CliError>(join == Join::AtOnce || has_for_nodes(session, wanted, cores)?)
    };
    if let Some(address) = &named
        && is_time(&session, &wanted)?
    {
        let cluster = joined.join(common, &session, (address, cores), interrupt)?;
        let mut found = fitting(&cluster, &session, (address, cores))?;
        unused.append(&mut found.unused);
        if found.driver != session.inventory.device.driver {
            keep(&session, found.driver.as_deref().unwrap_or_default())?;
            (session, wanted) = open()?;
        }
        // With the driver that there is, results may stand after all.
        nodes = is_time(&session, &wanted)?.then_some((cluster, found));
    }
    Ok(Lent { session, wanted, nodes, unused })
}

/// Returns how a build is run: nodes perform what depends on a device, as [`lent`] says.
pub(crate) fn ready(
    (common, arguments): (&Common, &BuildArguments),
    joined: &mut Joined,
    remote: &OpenedRemote,
    interrupt: &Interrupt,
    open: impl Fn() -> Result<(Session, Wanted), CliError>,
) -> Result<Ready, CliError> {
    let lent = lent((common, arguments), Join::ForWork, joined, interrupt, open)?;
    let (nodes, told) = (lent.nodes(common), lent.told());
    let Lent { session, wanted, .. } = lent;
    let settings = on(nodes.as_ref(), setup::settings(common, arguments, &session, remote)?);
    Ok(Ready { session, wanted, settings, told })
}

/// Returns how a build is run, with these nodes if there are some.
pub(crate) fn on(nodes: Option<&Arc<Nodes>>, settings: Settings) -> Settings {
    match nodes {
        Some(nodes) => Settings { nodes: Some(Arc::clone(nodes)), children: Children::All, ..settings },
        None => settings,
    }
}

/// Returns whether something would run that nodes perform.
fn has_for_nodes(session: &Session, wanted: &Wanted, cores: bool) -> Result<bool, CliError> {
    let is_for = |index| taken_by(&session.graph.action(index).identity, cores).is_some();
    Ok(plans(session, wanted)?.iter().any(|plan| plan.settled == Settled::Planned && is_for(plan.index)))
}

impl Lent {
    /// Returns that nodes lend nothing to a build.
    pub(crate) fn nothing((session, wanted): (Session, Wanted)) -> Self {
        Self { session, wanted, nodes: None, unused: Vec::new() }
    }

    /// Returns the workspace, and what of it is wanted.
    pub(crate) fn opened(self) -> (Session, Wanted) {
        (self.session, self.wanted)
    }

    /// Returns what nodes lend, if they do.
    pub(crate) fn nodes(&self, common: &Common) -> Option<Arc<Nodes>> {
        let (cluster, found) = self.nodes.as_ref()?;
        let architectures = context::options(common, &self.session.root, Probing::Never).architectures;
        Some(Arc::new(Nodes::of(Arc::clone(cluster), found.seats.clone(), architectures)))
    }

    /// Returns whether nodes perform an action.
    pub(crate) fn performs(&self, identity: &Identity) -> bool {
        let seats = self.nodes.iter().flat_map(|(_, found)| &found.seats);
        let kinds: Vec<SeatKind> = seats.map(|seat| seat.kind).collect();
        taken_by(identity, kinds.contains(&SeatKind::Cores)).is_some_and(|kind| kinds.contains(&kind))
    }

    /// Returns what is to be told of nodes that are not used.
    pub(crate) fn told(&self) -> Vec<Event> {
        self.unused.iter().map(Unused::event).collect()
    }

    /// Says what nodes lend, and which are not used, a line each. None where no node was asked for anything.
    pub(crate) fn lines(&self) -> Option<String> {
        let (_, found) = self.nodes.as_ref()?;
        let driver = found.driver.as_ref().map(|driver| format!(", driver {driver}")).unwrap_or_default();
        let what = format!("{}{driver}", self.session.inventory.device.class);
        let lending = found.seats.chunk_by(|one, next| (&one.node, one.kind) == (&next.node, next.kind)).map(|seats| {
            let lanes: Vec<&str> = seats.iter().map(|seat| seat.lane.as_str()).collect();
            let name = lanes[0].rsplit_once('/').map_or(lanes[0], |(name, _)| name);
            let what = if seats[0].kind == SeatKind::Cores { format!("{CORES} cores each") } else { what.clone() };
            format!("node {name} lends {} ({what})\n", lanes.join(", "))
        });
        let unused = self.unused.iter().map(|unused| format!("node {} is not used: {}\n", unused.node, unused.why));
        Some(lending.chain(unused).collect())
    }
}

impl Joined {
    /// Returns the cluster, which is joined if it was not. Fails where it cannot be used.
    fn join(
        &mut self,
        common: &Common,
        session: &Session,
        address: (&str, bool),
        interrupt: &Interrupt,
    ) -> Result<Arc<Cluster>, CliError> {
        if let Some(cluster) = &self.cluster {
            return Ok(Arc::clone(cluster));
        }
        let python = context::variable("T2T_RAY_PYTHON").filter(|path| !path.is_empty()).map(PathBuf::from);
        let python = python.or_else(|| context::python(common, session.root.clone()).map(|python| python.path));
        let python = python.ok_or_else(|| {
            CliError::misuse("no Python was found for the driver of the cluster", "name one with `--python`")
        })?;
        self.results = session.cache.join("scratch").join(context::process().to_string()).join("results");
        fs::make_folder(&self.results).context("cannot write to `cache/`")?;
        let cluster = Cluster::start(&python, address, &self.results, || interrupt.is_set()).map_err(unusable)?;
        Ok(Arc::clone(self.cluster.insert(Arc::new(cluster))))
    }
}

/// Returns which nodes of the cluster fit the build, with their `cores` where those are asked for. Fails where what depends on a device would have none.
fn fitting(cluster: &Cluster, session: &Session, (address, cores): (&str, bool)) -> Result<Fit, CliError> {
    let (device, models) = (&session.inventory.device, session::models(&session.root)?);
    let found = fit(&cluster.nodes(), device, session.is_elsewhere, &models, cores);
    // What the interpreter measures can be measured here.
    let serves = |kind| kind == SeatKind::Device || device.class == DeviceClass::Interpreter;
    if found.seats.iter().any(|seat| serves(seat.kind)) {
        return Ok(found);
    }
    if found.unused.is_empty() {
        let message = format!("no node of the cluster at {address} lends a device");
        return Err(CliError::misuse(message, "start its nodes with `ray start --num-gpus N`"));
    }
    let why: Vec<String> = found.unused.iter().map(|unused| format!("{}: {}", unused.node, unused.why)).collect();
    let message = format!("no node of the cluster at {address} fits a build for {}: {}", device.class, why.join("; "));
    Err(CliError::misuse(
        message,
        "`--as-device` names the model; `t2t perform facts` on a node says what t2t sees there",
    ))
}

/// Keeps what the nodes said of the driver of the session's model.
fn keep(session: &Session, driver: &str) -> Result<(), CliError> {
    let class = session.inventory.device.class.to_string();
    Ok(session::keep_driver(&session.cache, &class, driver).context("cannot write to `cache/nodes/`")?)
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
