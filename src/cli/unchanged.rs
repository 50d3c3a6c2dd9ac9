//! The answer of a build that found nothing to do, told again while nothing that it looked at has changed: no workspace is opened for it.
//!
//! It does not know what is stale: it knows that everything a build looked at is unchanged.

use std::collections::BTreeSet;
use std::env;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use t2t_host::device;
use t2t_model::digest::Digest;
use t2t_model::event::Event;
use t2t_store::fingerprint::{self, Observed};
use t2t_store::fs;
use t2t_store::store::journal::Journal;
use t2t_store::store::noop_cache::{self, NoopCache};

use super::answer::{CACHE, Told, touch};
use super::edits::Edits;
use super::outputs::Outputs;
use super::{BuildArguments, Common, streams};
use crate::reporter::Reporter;
use crate::session::{DeviceChoice, Options};

/// Returns the key of the no-op cache: the digest of what is asked and of who asks: the arguments, the binary, the interpreter, the devices, the screen. None for what is never answered
/// without a look at the store.
pub(crate) fn key(common: &Common, arguments: &BuildArguments, options: &Options) -> Option<Digest> {
    let writes = arguments.trace.is_some() || arguments.events.is_some() || arguments.junit.is_some();
    let looks = arguments.force
        || arguments.overwrite
        || arguments.regenerate
        || arguments.require_cached
        || common.as_device.is_some();
    // What is signed is looked at in a store of its own.
    let looks = looks || arguments.require_signed;
    let is_annotated = super::outputs::is_asked_for(arguments.annotations);
    if writes || looks || is_annotated || options.harness.is_some() {
        return None;
    }
    let devices = match common.device {
        DeviceChoice::Cpu => Vec::new(),
        _ => device::devices(options.visible.as_deref(), options.driver.as_deref()),
    };
    let binary = env::current_exe().ok()?;
    let facts = (
        (env::args_os().skip(1).collect::<Vec<_>>(), &binary, fs::stat(&binary)?),
        (options.python.as_ref()?, &options.search, &options.architectures, devices, streams::width()),
    );
    Some(Digest::of(format!("{facts:?}").as_bytes()))
}

/// What has become of what the last answer rests on.
pub(crate) enum Since<'a> {
    /// It is as it was, and this is told again.
    Nothing(Told),
    /// Files of a few ops were edited, and nothing else.
    Edits(Box<Edits<'a>>),
    /// There is no answer, or something else changed.
    More,
}

/// Looks at what the last answer rests on, as [`since`] does, where there may be one.
pub(crate) fn since_last<'a>(
    place: Option<&NoopCache>,
    bytes: &'a [u8],
    root: &Path,
    ahead: &(impl Fn() + Sync),
) -> Since<'a> {
    place.map_or(Since::More, |place| since(place, bytes, root, &BTreeSet::new(), ahead))
}

/// Looks at what the last answer, which `bytes` hold, rests on. The ops `also` are built in any case. `ahead` is called once a kernel is seen to be edited, on any thread, before it is
/// known what else was. The caller holds the workspace's lock.
pub(crate) fn since<'a>(
    place: &NoopCache,
    bytes: &'a [u8],
    root: &Path,
    also: &BTreeSet<String>,
    ahead: &(impl Fn() + Sync),
) -> Since<'a> {
    let Some(kept) = noop_cache::decode(bytes) else { return Since::More };
    let is_told = AtomicBool::new(false);
    let looked = fingerprint::look_telling(root, &kept.files, &|file| {
        if is_kernel_code(&kept.files[file].path) && !is_told.swap(true, Ordering::Relaxed) {
            ahead();
        }
    });
    let mut others = fingerprint::look(root, &kept.others);
    // What is in flight has folders in the one that is empty otherwise.
    others.changed.retain(|place| also.is_empty() || kept.others[*place].was != Observed::Empty);
    let added = Journal::open(&root.join(CACHE)).added_since(&kept.journal);
    let Some(added) = added.filter(|_| others.changed.is_empty()) else { return Since::More };
    if !looked.changed.is_empty() || !added.is_empty() || !also.is_empty() {
        let edits = Edits::of(kept, root, looked, &others.touched, added, also);
        return edits.map_or(Since::More, |edits| Since::Edits(Box::new(edits)));
    }
    let Ok(told) = serde_json::from_str::<Told>(&kept.told) else { return Since::More };
    if !looked.touched.is_empty() || !others.touched.is_empty() {
        let mut renewed = kept;
        touch(&mut renewed.files, &looked.touched);
        touch(&mut renewed.others, &others.touched);
        place.keep(&renewed);
    }
    Since::Nothing(told)
}

/// Whether a file is of a language that kernels are written in, so that an edit of it is likely to have something run.
fn is_kernel_code(path: &str) -> bool {
    let ending = Path::new(path).extension();
    ending.is_some_and(|ending| ["py", "cu", "cuh"].iter().any(|of_kernels| ending == *of_kernels))
}

/// Tells an answer again, and returns the exit code.
pub(crate) fn tell_again(told: &Told, outputs: &mut Outputs, start: Instant) -> u8 {
    for event in &told.events {
        match event {
            Event::Finished { tally, exit_code, .. } => {
                outputs.report(&Event::Finished { tally: *tally, wall: start.elapsed(), exit_code: *exit_code });
            }
            other => outputs.report(other),
        }
    }
    outputs.close_screen();
    streams::print(&told.table);
    told.exit_code
}
