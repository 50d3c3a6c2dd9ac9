//! The page made: what stands in a workspace now, as HTML.
//!
//! It does not know where the page goes.

use std::collections::{BTreeMap, BTreeSet};

use t2t_model::action::{DeviceClass, Phase, Target};
use t2t_plan::graph::pick::{Force, Selection, pick};
use t2t_protocol::Sweep;
use t2t_report::page::{self, Page, Timeline};
use t2t_report::rank::{self, Found, Lane};
use t2t_spec::Op;
use t2t_spec::names::nearest;

use super::documents::Documents;
use super::gathered::Gathered;
use super::{given, history};
use crate::cli::arguments::ReportArguments;
use crate::cli::error::CliError;
use crate::cli::plan::{Plan, plans};
use crate::cli::setup;
use crate::engine::{EngineError, published_elsewhere};
use crate::session::{self, Session};

/// The page, and how many ops it shows.
pub(super) struct Made {
    /// The HTML of the file.
    pub(super) text: String,
    /// How many ops.
    pub(super) ops: usize,
}

/// What is shown beside what stands, as options say.
struct Beside {
    timeline: Option<Timeline>,
    /// By op.
    sweeps: BTreeMap<String, Vec<Sweep>>,
    /// How many revisions of each op.
    history: Option<usize>,
}

/// Returns the page of the named ops, or of all.
pub(super) fn made(session: &Session, arguments: &ReportArguments) -> Result<Made, CliError> {
    let names = arguments.ops.as_slice();
    let ops = ops(session, names)?;
    let of_op = |op: &&Op| [format!("{}:select", op.name), format!("{}:log", op.name)];
    // Everything is asked for by no name: each name is held against each action.
    let targets = if names.is_empty() { Vec::new() } else { ops.iter().flat_map(of_op).collect() };
    // Without an op there is a page, too.
    let plans = if ops.is_empty() {
        Vec::new()
    } else {
        let wanted = pick(&session.graph, &Selection { targets, ..Selection::default() }, Force::Stale)?;
        plans(session, &wanted)?
    };
    let timeline = arguments.trace.as_deref().map(given::timeline).transpose()?;
    let sweeps = given::sweeps(&session.spec, &arguments.sweep)?;
    let beside = Beside { timeline, sweeps, history: arguments.revisions() };
    Ok(Made { text: text(session, &ops, &plans, beside)?, ops: ops.len() })
}

/// Returns the named ops, or all, in declared order.
fn ops<'a>(session: &'a Session, names: &[String]) -> Result<Vec<&'a Op>, CliError> {
    if let Some(name) = names.iter().find(|name| session.spec.op(name).is_none()) {
        let known: Vec<&str> = session.spec.ops.iter().map(|op| op.name.as_str()).collect();
        let hint = match nearest(name, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "name ops as ops.yaml does; without a name the page shows all".to_owned(),
        };
        return Err(CliError::misuse(format!("ops.yaml declares no op `{name}`"), hint));
    }
    Ok(session.spec.ops.iter().filter(|op| names.is_empty() || names.contains(&op.name)).collect())
}

fn text(session: &Session, ops: &[&Op], plans: &[Plan], mut beside: Beside) -> Result<String, CliError> {
    let own = Documents::Own { session, plans, cas: Box::new(session.cas()) };
    let calibration = own.found(&Target::calibrate(), "calibration");
    let device = session.inventory.elsewhere.as_ref().map(|elsewhere| elsewhere.device.class.to_string());
    let there = device.as_deref().map_or(Found::Lost, |device| {
        let published = session::published_of_no_op(&session.root, device);
        Documents::There(published.entries).found(&Target::calibrate(), "calibration")
    });
    let shown = ops.iter().map(|op| Shown::of(session, &own, device.as_deref(), op));
    let shown: Vec<Shown<'_>> = shown.collect::<Result<_, _>>()?;
    let mut history = history::of(session, ops, beside.history);
    let pages = shown.iter().zip(ops).map(|(shown, op)| page::Op {
        own: shown.own.page(&calibration, lane(session)),
        there: shown.there.as_ref().map(|gathered| gathered.page(&there, Lane::Device)),
        stale: shown.stale.clone(),
        changes: shown.own.changes(),
        history: history.remove(&op.name).unwrap_or_default(),
        sweeps: beside.sweeps.remove(&op.name).unwrap_or_default(),
    });
    let pages: Vec<page::Op<'_>> = pages.collect();
    let page = Page { place: place(session), timeline: beside.timeline, ops: pages };
    page::html(&page).map_err(|error| CliError::machine(error.to_string()))
}

/// What the page is made from of one op.
struct Shown<'a> {
    own: Gathered<'a>,
    there: Option<Gathered<'a>>,
    stale: BTreeSet<String>,
}

impl<'a> Shown<'a> {
    /// Returns what stands of an op, with what `device`, which is not here, published of its kernels.
    fn of(session: &'a Session, own: &Documents<'_>, device: Option<&str>, op: &'a Op) -> Result<Self, CliError> {
        let mut gathered = Gathered::of(own, op, session, |_| true);
        if gathered.selection.document().is_none() {
            // The record is stale where any result behind it is. What stands is ranked as a build would.
            let made = |target: &Target| own.kernel(&own.standing(target));
            let published = published_elsewhere(session, op, &made).map_err(EngineError::Changed)?;
            let selection = rank::select(&gathered.results, gathered.baseline.document(), lane(session));
            gathered.selection = Found::Document(selection.beside(published));
        }
        let selection = gathered.selection.document();
        let names: BTreeSet<&str> = selection.map(rank::Selection::published_variants).unwrap_or_default();
        let published = device.filter(|_| !names.is_empty());
        let published = published.and_then(|device| session::published_of(&session.root, device, &op.name));
        let there = published.map(|(_, published)| {
            Gathered::of(&Documents::There(published.entries), op, session, |name| names.contains(name))
        });
        let is_stale = |name: &&String| own.is_stale(&Target::of_variant(&op.name, name, Phase::Check));
        let stale = op.variants.iter().map(|variant| &variant.name).filter(is_stale).cloned().collect();
        Ok(Self { there, stale, own: gathered })
    }
}

fn lane(session: &Session) -> Lane {
    match session.inventory.device.class {
        DeviceClass::Interpreter => Lane::Interpreter,
        DeviceClass::Cuda(_) => Lane::Device,
    }
}

/// Returns where the results are from, in words.
fn place(session: &Session) -> String {
    let name = session.published.iter().find_map(|published| published.facts.as_ref()?.name.as_deref());
    match &session.inventory.device.class {
        class if session.is_elsewhere => {
            let name = name.map_or_else(|| class.to_string(), str::to_owned);
            format!("Results of {name}{}.", setup::published(session))
        }
        DeviceClass::Interpreter => "Verdicts are those of Triton's interpreter, without a GPU.".to_owned(),
        DeviceClass::Cuda(model) => format!("Results of this machine: {model}."),
    }
}
