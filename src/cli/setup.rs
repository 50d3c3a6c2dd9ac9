//! How a build is set up by what the command line says, and how it is introduced.
//!
//! It does not know what the build does with it.

use std::collections::BTreeMap;
use std::env;
use std::hash::{BuildHasher, Hasher, RandomState};

use t2t_host::{cores, device};
use t2t_model::action::{DeviceClass, Lane};
use t2t_model::event::Event;
use t2t_plan::graph::{Index, Wanted};

use super::error::CliError;
use super::remote::{Evidence, OpenedRemote};
use super::{BuildArguments, Common, context};
use crate::engine::{AfterRejection, Children, Nodes, SeatKind, Settings};
use crate::session::Session;

/// Says which interpreter was taken, and what runs the kernels.
pub(crate) fn introduction(common: &Common, session: &Session, lent: Option<&Nodes>) -> Vec<Event> {
    let mut notes = Vec::new();
    if let Some(python) = context::python(common, session.root.clone()) {
        let versions = session.toolchain.as_ref().map(|toolchain| &toolchain.versions);
        let version = |name: &str| versions.and_then(|versions| versions.get(name)).cloned().unwrap_or_default();
        let text = format!(
            "python {} at {} ({}), torch {}, triton {}",
            version("python"),
            python.path.display(),
            python.found,
            version("torch"),
            version("triton"),
        );
        notes.push(Event::Note { text });
    }
    let text = match &session.inventory.device.class {
        class if let Some(lent) = lent => {
            let lenders =
                if lent.count() == 1 { "1 node lends".to_owned() } else { format!("{} nodes lend", lent.count()) };
            let counted = |kind, one: &str, many: &str| match lent.seats_of(kind) {
                0 => None,
                1 => Some(format!("1 {one}")),
                count => Some(format!("{count} {many}")),
            };
            let devices = counted(SeatKind::Device, "device", "devices");
            let cores = counted(SeatKind::Cores, "place on cores", "places on cores");
            let what: Vec<String> = devices.into_iter().chain(cores).collect();
            format!("kernels run on {class}, on a cluster: {lenders} {}", what.join(" and "))
        }
        class if session.is_elsewhere => format!("results of {class}{}: nothing runs on a device", published(session)),
        DeviceClass::Interpreter => {
            "no CUDA device is used: kernels run in Triton's interpreter on the CPU, at the sizes of the cpu profile"
                .to_owned()
        }
        DeviceClass::Cuda(model) => format!("kernels run on {} × {model}", session.devices.len()),
    };
    notes.push(Event::Note { text });
    notes
}

/// Says that ops.yaml names another generator than the one that is asked this once.
pub(crate) fn passed_over(arguments: &BuildArguments, session: &Session) -> Option<Event> {
    let name = arguments.generator.as_ref().filter(|_| !session.passed_over.is_empty())?;
    let text = format!(
        "ops.yaml names another generator of {}: write `generator: {name}` there, or the next build puts that one's kernels back",
        session.passed_over.join(", ")
    );
    Some(Event::Note { text })
}

/// Returns from where the published results of another device come, as far as that is known.
pub(super) fn published(session: &Session) -> String {
    let facts = session.published.iter().find_map(|published| published.facts.as_ref());
    let revision =
        facts.and_then(|facts| facts.revision.as_ref().map(|revision| (revision, facts.dirty == Some(true))));
    match revision {
        Some((revision, true)) => format!(", published from {} with changes", short(revision)),
        Some((revision, false)) => format!(", published from {}", short(revision)),
        None => String::new(),
    }
}

fn short(revision: &str) -> String {
    revision.chars().take(12).collect()
}

/// Returns how a build is run. `remote` is the remote cache that all builds of this command share.
pub(crate) fn settings(
    common: &Common,
    arguments: &BuildArguments,
    session: &Session,
    remote: &OpenedRemote,
) -> Result<Settings, CliError> {
    let shares = cores::shares(session.devices.len());
    let evidence = if arguments.require_signed { Evidence::Signed } else { Evidence::Whole };
    Ok(Settings {
        jobs: arguments.jobs.unwrap_or(shares.left).max(1),
        shares,
        any_device: arguments.any_device,
        after_rejection: if arguments.fail_fast { AfterRejection::Stop } else { AfterRejection::GoOn },
        children: match (arguments.require_cached, session.is_elsewhere) {
            (true, _) => Children::None,
            (false, true) => Children::WithoutDevice,
            (false, false) => Children::All,
        },
        locks: device::lock_folder(env::var("T2T_LOCK_DIR").ok().as_deref()),
        salt: salt(),
        remote: remote.of(common, &session.spec, evidence)?,
        nodes: None,
    })
}

/// Draws what the values of a build's checks depend on.
pub(crate) fn salt() -> String {
    // The keys of a new hasher are random.
    format!("{:016x}", RandomState::new().build_hasher().finish())
}

/// Returns the event for the start of a build of the wanted actions.
pub(crate) fn started(session: &Session, wanted: &Wanted, settings: &Settings) -> Event {
    let cpu = ("cpu".to_owned(), settings.jobs);
    let here = session.devices.iter().enumerate().map(|(number, _)| format!("cuda:{number}"));
    let devices: Vec<String> = match &settings.nodes {
        Some(nodes) => nodes.seats.iter().map(|seat| seat.lane.clone()).collect(),
        None => here.collect(),
    };
    let devices = devices.into_iter().map(|lane| (lane, 1));
    let asks = |index: Index| wanted.wanted[index.number()] && session.graph.action(index).lane == Lane::Author;
    let authors = session.graph.indices().any(asks).then(|| ("author".to_owned(), session.spec.authors.at_once));
    let lanes: BTreeMap<String, usize> = std::iter::once(cpu).chain(devices).chain(authors).collect();
    // Later attempts are not announced: most are never made.
    let is_first = |index: &Index| session.graph.action(*index).target().attempt == 1;
    let wanted = session.graph.indices().filter(|index| wanted.wanted[index.number()]).filter(is_first);
    Event::BuildStarted { actions: wanted.count(), lanes }
}
