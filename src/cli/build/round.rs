//! One look at the whole workspace, and the build of what is wanted of it.
//!
//! It does not know what is told of the build once it is over.

use std::path::{Path, PathBuf};
use std::process;
use std::time::Instant;

use t2t_host::cores;
use t2t_host::interrupt::Interrupt;
use t2t_model::action::Phase;
use t2t_model::event::Event;
use t2t_plan::graph::pick::{Force, named, pick};
use t2t_plan::graph::{Index, Wanted};
use t2t_store::fs;
use t2t_store::store::noop_cache::NoopCache;

use super::Going;
use crate::cli::cluster::{self, Ready};
use crate::cli::edit::Ahead;
use crate::cli::error::CliError;
use crate::cli::outputs::Outputs;
use crate::cli::{BuildArguments, Common, context, executor, init, setup};
use crate::engine::{self, Report, Settings};
use crate::reporter::Reporter;
use crate::session::{self, Chosen, HeadStart, Options, Overwrite, Probing, Session};

/// What is known before the whole workspace is looked at.
pub(super) struct Looked {
    pub(super) root: PathBuf,
    /// Where the answer is kept, where it is.
    pub(super) place: Option<NoopCache>,
    pub(super) head_start: Option<HeadStart>,
    /// What was built of edits.
    pub(super) ahead: Ahead,
    pub(super) start: Instant,
}

/// A workspace that was looked at, and what its build came to.
pub(super) struct Built {
    pub(super) session: Session,
    pub(super) wanted: Wanted,
    pub(super) settings: Settings,
    /// What was told before anything was decided.
    pub(super) told: Vec<Event>,
    pub(super) report: Report,
    pub(super) failures: Vec<Event>,
    /// The store that the session reads, where it has one of its own.
    pub(super) own: Option<OwnStore>,
}

/// Looks at the whole workspace once, and builds it. Tells nothing again that was told ahead.
pub(super) fn round(
    (common, arguments): (&Common, &BuildArguments),
    going: &mut Going,
    outputs: &mut Outputs,
    looked: &mut Looked,
) -> Result<Built, CliError> {
    let running = going.running()?;
    let Going { joined, interrupt, remote, .. } = going;
    let Looked { root, head_start, ahead, .. } = looked;
    let is_first = fs::stat(&root.join("cache/journal")).is_none();
    let own = arguments.require_signed.then(|| OwnStore::under(root));
    let ready = cluster::ready((common, arguments), joined, remote, interrupt, || {
        let session = open(common, arguments, root, (own.as_ref(), head_start.as_ref()), interrupt)?;
        running.hold(&session.pool);
        let wanted = wanted(&session, arguments)?;
        Ok((session, wanted))
    })?;
    let told = introduction(common, arguments, &ready);
    let Ready { session, wanted, settings, .. } = ready;
    context::warn(&session);
    if is_first && let Some(text) = init::unignored(root) {
        outputs.report(&Event::Note { text });
    }
    for event in told.iter().filter(|_| !ahead.is_introduced()) {
        outputs.report(event);
    }
    let mut failures = Vec::new();
    cores::keep_off_devices(&settings.shares);
    let built = engine::build(&session, &wanted, &settings, interrupt, &mut |event| {
        if !ahead.repeats(&event) {
            outputs.report(&event);
        }
        failures.extend(Some(event).filter(|event| matches!(event, Event::Failure { .. })));
    });
    if let Err(error) = session.sources.save() {
        outputs.report(&Event::Warning { text: format!("cannot keep what is known of the sources: {error}") });
    }
    match built {
        Ok(report) => Ok(Built { session, wanted, settings, told, report, failures, own }),
        Err(error) => {
            // What ran before it failed is told of all the same.
            let _ = outputs.write_trace();
            Err(error.into())
        }
    }
}

/// Returns what is told before anything is decided.
fn introduction(common: &Common, arguments: &BuildArguments, ready: &Ready) -> Vec<Event> {
    let Ready { session, wanted, settings, told } = ready;
    let mut events = setup::introduction(common, session, settings.nodes.as_deref());
    events.extend(told.iter().cloned());
    events.extend(setup::passed_over(arguments, session));
    events.push(setup::started(session, wanted, settings));
    events
}

/// Opens the workspace at `root`, with the servers that got a head start; the build's `own` store stands in for its own where there is one.
fn open(
    common: &Common,
    arguments: &BuildArguments,
    root: &Path,
    (own, head_start): (Option<&OwnStore>, Option<&HeadStart>),
    interrupt: &Interrupt,
) -> Result<Session, CliError> {
    let probing = if arguments.require_cached { context::as_built(common)? } else { Probing::Allowed };
    if let Some(own) = own {
        return context::open_signed(common, &arguments.targets, probing, &own.0, interrupt);
    }
    let reading = session::read_ahead(&root.join("cache"));
    let overwrite = if arguments.overwrite { Overwrite::Yes } else { Overwrite::No };
    let generator =
        arguments.generator.clone().map(|generator| Chosen { generator, targets: arguments.targets.written() });
    let options = context::options(common, root, probing);
    let configurations = arguments.targets.configurations();
    let executor = executor::given(arguments.on.as_deref());
    let options = Options { executor, configurations, overwrite, generator, ..options };
    let options = HeadStart::taken(head_start, options);
    let session = Session::open(root, &options, interrupt)?;
    session.expect(reading);
    Ok(session)
}

/// Returns the actions that are wanted, and which of them run whatever is known.
fn wanted(session: &Session, arguments: &BuildArguments) -> Result<Wanted, CliError> {
    let force = if arguments.force { Force::Named } else { Force::Stale };
    let mut wanted = pick(&session.graph, &arguments.targets.selection(session)?, force)?;
    if arguments.regenerate {
        force_generators(session, arguments, &mut wanted)?;
    }
    Ok(wanted)
}

/// Has the generator asked again for every named kernel that it makes. Fails where it makes none of them.
fn force_generators(session: &Session, arguments: &BuildArguments, wanted: &mut Wanted) -> Result<(), CliError> {
    let named = named(&session.graph, &arguments.targets.selection(session)?)?;
    let is_made = |index: &Index| session.graph.action(*index).target().phase == Phase::Generate;
    let made: Vec<Index> = named.into_iter().filter(is_made).collect();
    if made.is_empty() {
        let message = format!("the generator makes no kernel of {}", arguments.targets.written().join(", "));
        let hint = "`t2t status` says whose the kernel files are; `--overwrite` replaces those that persons wrote where ops.yaml has `generator: template`";
        return Err(CliError::misuse(message, hint));
    }
    for index in made {
        wanted.forced[index.number()] = true;
    }
    Ok(())
}

/// A store that is empty at first, and gone when it is dropped.
pub(super) struct OwnStore(PathBuf);

impl OwnStore {
    /// Returns the one of this process. What a kill leaves of it, the next build removes.
    fn under(root: &Path) -> Self {
        Self(root.join("cache/scratch").join(process::id().to_string()))
    }
}

impl Drop for OwnStore {
    fn drop(&mut self) {
        // What cannot be removed takes nothing but space.
        let _ = fs::remove(&self.0);
    }
}
